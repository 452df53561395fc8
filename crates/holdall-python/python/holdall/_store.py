"""Stores: how they are opened, and what concerns one as a whole."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypedDict, overload

from holdall import _core
from holdall._bucket import BucketStore, Reach, is_in_bucket, reach_of
from holdall._meter import Meter, Progress
from holdall._views import Collection, Listing, N, Snapshot, Transaction, View
from holdall.errors import InvalidError, LockedError

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

__all__ = [
    "Collection",
    "Listing",
    "Options",
    "Snapshot",
    "Store",
    "Transaction",
    "View",
    "in_memory",
    "open",
    "restore",
    "salvage",
]

os.register_at_fork(after_in_child=_core.after_fork)

#: Asked to close what they have open of a path and do not need.
_RELEASERS: list[Callable[[str], bool]] = []


class Options(TypedDict, total=False):
    """What ``open`` takes beside path and mode; the crate's ``Options`` tell of those that are
    not described here."""

    cache_bytes: int
    """96 MiB."""
    max_bytes: int | None
    """Of the file."""
    space_factor: float
    """1.1."""
    page_size: int
    """Of a new store: 8192."""
    pinned_bytes: int | None
    old_version_bytes: int
    map_reads: bool
    direct_reads: bool
    background: bool
    defer: float
    """Seconds: 0.2."""
    timeout: float | None
    """Seconds that a change waits for a transaction of others; None for as long as it takes."""
    wait: float | bool
    """Seconds that the opening waits for others that have the store open; True for as long as
    it takes, and by default not at all."""
    control: bool
    """Whether other processes may ask this one, as the command line does: True."""


def _open_source(path: str | os.PathLike[str], mode: str, options: Mapping[str, Any]) -> _core.Source:
    path = os.fsdecode(path)
    wait = options.get("wait", False)
    if not isinstance(wait, bool) and not wait >= 0:
        raise ValueError(f"wait: {wait!r} is no number of seconds")
    try:
        try:
            return _core.open(path, mode, **{**options, "wait": False})
        except LockedError:
            for release in _RELEASERS:
                release(os.path.abspath(path))
            return _core.open(path, mode, **options)
    except OSError as e:
        if e.filename is None and e.errno is not None:
            e.filename = path
        raise


class Store(View[N]):
    """An open store. Threads share it; ``with`` closes it.

    Each change is a commit that survives a power cut; ``update`` and ``transaction`` make one of
    many. Open stores with ``holdall.open``.
    """

    __slots__ = ("__weakref__",)

    def __new__(
        cls,
        path: str | os.PathLike[str],
        mode: str = "r",
        *,
        keys: Literal["str", "bytes"] = "str",
        **options: Unpack[Options],
    ) -> Self:
        self = cls._unlisted(path, mode, {**options, "keys": keys})
        if self.path and not self.read_only:
            self.source.announce()
        return self

    @classmethod
    def _unlisted(
        cls, path: str | os.PathLike[str], mode: str, options: Mapping[str, Any]
    ) -> Self:
        """A store that others in this process do not find by its path."""
        return super().__new__(cls, _open_source(path, mode, options))

    @classmethod
    def _of_others(cls) -> Iterator[Store[str]]:
        """Those of this process that are open for writing, by whatever is left of them."""
        for source in _core.announced():
            yield super().__new__(Store, source, None, "str")

    @classmethod
    def _of(cls, view: View[N]) -> Store[N]:
        """The store that a view is of."""
        return super().__new__(Store, view.source.store(), None, view.keys_as)

    def _with_text(self) -> Store[str]:
        """The same store, which gives names out as ``str``, as file systems and zarr need them."""
        if self.keys_as == "str":
            return self  # type: ignore[return-value]
        return super().__new__(Store, self.source, None, "str")

    def _with_timeout(self, timeout: float) -> Store[N]:
        """The same store for one whose changes wait that many seconds for those of others."""
        return super().__new__(Store, self.source.with_timeout(timeout), None, self.keys_as)

    @property
    def path(self) -> str:
        """The store's file, absolute; empty for one in memory."""
        return self.source.path

    @property
    def read_only(self) -> bool:
        """Whether it was opened for reading."""
        return self.source.read_only

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self.source.closed

    def close(self) -> None:
        """Closes it: everything in its place, one file. Closing again does nothing."""
        self.source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def snapshot(self) -> Snapshot[N]:
        """The objects as they are now, kept so."""
        return Snapshot(self.source.snapshot(), None, self.keys_as)

    def transaction(self, timeout: float | None = None) -> Transaction[N]:
        """A transaction, as a ``with`` block: an exception undoes all of it.

        It waits for one of another thread, at most ``timeout`` seconds, or those that the store
        was opened with; ``BusyError`` then. Ctrl-C ends the wait.
        """
        return Transaction(self.source.transaction(timeout), None, self.keys_as)

    def deferred(self) -> View[N]:
        """The same objects, with changes that no call waits to be durable.

        Each is still all or nothing, and a crash keeps their order; it may take back those of the
        last ``defer`` seconds (0.2). ``flush`` makes all durable.

        >>> fast = store.deferred()
        >>> for i in range(1000):
        ...     fast[f"{i}"] = b"x"
        >>> store.flush()
        """
        return View(self.source.deferred(), None, self.keys_as)

    def flush(self) -> None:
        """Makes all changes durable: those of files not closed yet, and deferred ones."""
        self.source.flush()

    def checkpoint(self) -> None:
        """Makes everything durable and brings it to its place in the file."""
        self.source.checkpoint()

    def stat(self) -> dict[str, Any]:
        """Figures: objects, bytes, space, how full it is, collections.

        >>> store.stat()["collections"][0]["name"]
        'default'
        """
        return json.loads(self.source.stat())  # type: ignore[no-any-return]

    def frag(self, progress: Progress = None) -> dict[str, Any]:
        """How fragmented it is, what that costs and what helps."""
        with Meter(progress, "looking") as call:
            return json.loads(self.source.frag("json", call))  # type: ignore[no-any-return]

    def frag_svg(self) -> str:
        """The map of the store and its histograms as a drawing."""
        return self.source.frag("svg")

    def frag_page(self) -> str:
        """The whole report as an HTML page."""
        return self.source.frag("page")

    def verify(self, *, data: bool = True, progress: Progress = None) -> dict[str, Any]:
        """Checks every page, and with ``data`` every byte; ``["sound"]`` says the outcome.

        >>> store.verify()["sound"]
        True
        """
        with Meter(progress, "verifying") as call:
            return json.loads(self.source.verify(data, call))  # type: ignore[no-any-return]

    def backup(
        self,
        dest: str | os.PathLike[str],
        *,
        base: str | os.PathLike[str] | None = None,
        verify: bool = True,
        rate: int | None = None,
        progress: Progress = None,
        **reach: Unpack[Reach],
    ) -> dict[str, Any]:
        """Takes a backup while the store is used: to a new file, or a place in a bucket.

        ``base`` is an earlier backup, or the same place: then only what changed since is
        taken. At most ``rate`` bytes a second are copied. A place is ``s3://BUCKET/PREFIX`` or
        ``file:///DIRECTORY``; its keys come from where aws-cli has them.

        >>> done = store.backup(path + ".backup")
        >>> _ = holdall.restore(path + ".again", path + ".backup")
        >>> holdall.open(path + ".again").keys() == store.keys()
        True
        """
        with Meter(progress, "backing up") as call:
            done = self.source.backup((dest, base), verify, rate, reach_of(reach), call)
            return json.loads(done)  # type: ignore[no-any-return]

    def defrag(
        self, *, rate: int | None = None, join: bool = True, progress: Progress = None
    ) -> dict[str, Any]:
        """Puts it in order while it is used, at most ``rate`` bytes a second.

        ``progress`` is called with the bytes moved so far; with ``True`` tqdm shows a bar.
        """
        with Meter(progress, "moving") as call:
            return json.loads(self.source.defrag(rate, join, call))  # type: ignore[no-any-return]

    def keep_in_order(self, on: bool = True, *, rate: int | None = None) -> None:
        """Defragments in the background from now on, until it is closed or told ``False``."""
        self.source.keep_in_order(on, rate)

    def __reduce__(self) -> Any:
        if not self.read_only:
            raise TypeError(
                "a store open for writing cannot be sent to another process; "
                "open it with mode 'r' in each"
            )
        from holdall import _pickling

        return _pickling.of_store(self)

    def __repr__(self) -> str:
        state = "closed" if self.closed else "read-only" if self.read_only else "open"
        return f"<holdall.Store {self.path!r}, {state}>"

    def _repr_html_(self) -> str:
        if self.closed:
            return html.escape(repr(self))
        stat = self.stat()
        frag = self.frag()
        rows = [
            ("objects", f"{stat['objects']:,}"),
            ("bytes of objects", f"{stat['logical_bytes']:,}"),
            ("bytes of the file", f"{stat['file_bytes']:,}"),
            ("order, of 1", f"{frag['score']['value']:.2f}"),
            ("what would help", stat["remedy"]),
        ]
        table = "".join(
            f"<tr><th style='text-align:left'>{label}</th><td>{html.escape(value)}</td></tr>"
            for label, value in rows
        )
        name = html.escape(self.path or "in memory")
        return (
            f"<div><b>holdall</b> {name}<table>{table}</table>"
            f"<div style='max-width:40em'>{self.source.frag('map')}</div></div>"
        )


@overload
def open(
    path: str | os.PathLike[str],
    mode: str = "r",
    *,
    keys: Literal["str"] = "str",
    **options: Unpack[Options],
) -> Store[str]: ...
@overload
def open(
    path: str | os.PathLike[str],
    mode: str = "r",
    *,
    keys: Literal["bytes"],
    **options: Unpack[Options],
) -> Store[bytes]: ...
def open(
    path: str | os.PathLike[str],
    mode: str = "r",
    *,
    keys: Literal["str", "bytes"] = "str",
    **options: Unpack[Options],
) -> Any:
    """Opens a store.

    ==== ============================================================
    mode
    ==== ============================================================
    r    for reading, beside other readers
    r+   for reading and writing, what is there
    a    for reading and writing; made if it is missing
    w    made anew; only a file that is a store is replaced
    x    made if there is nothing
    ==== ============================================================

    ``keys`` is what names are given out as, ``"str"`` or ``"bytes"``; both are taken. The other
    options are described at ``Options``. The path ``":memory:"`` is a store in memory.

    ``s3://BUCKET/PREFIX`` is a store in a bucket, a ``BucketStore``, which many processes use at
    once; its options are those of ``Reach``. To make one (``a``, ``x``) asks the server some 900
    things that a store relies on; there is no ``w``.

    >>> holdall.open("/nowhere.holdall")
    Traceback (most recent call last):
    holdall.errors.NotFoundError: not found: store /nowhere.holdall
    """
    if is_in_bucket(path):
        return _open_bucket(path, mode, keys, options)
    return Store(path, mode, keys=keys, **options)


def _open_bucket(path: Any, mode: str, keys: str, options: Mapping[str, Any]) -> Any:
    if keys != "str":
        raise InvalidError(f"keys={keys!r}: names in a bucket are text")
    try:
        return BucketStore(path, mode, **options)
    except OSError as e:
        if e.filename is None and e.errno is not None:
            e.filename = path
        raise


def restore(
    dest: str | os.PathLike[str],
    *parts: str | os.PathLike[str],
    at: str | None = None,
    progress: Progress = None,
    **reach: Unpack[Reach],
) -> dict[str, Any]:
    """Makes a store of a whole backup and increments, or of the newest backup of a place.

    ``at`` names another backup of the place, or a time as ``2026-11-27T08:00:00Z``. The store
    is verified before it has its name.
    """
    with Meter(progress, "restoring") as call:
        done = _core.restore((dest, list(parts)), at, reach_of(reach), call)
        return json.loads(done)  # type: ignore[no-any-return]


def salvage(
    damaged: str | os.PathLike[str],
    new: str | os.PathLike[str],
    *,
    partial: bool = False,
    progress: Progress = None,
) -> dict[str, Any]:
    """Brings what is whole of a damaged store into a new one; says what is lost.

    ``partial`` brings objects too of which bytes are lost, with zeros in their place. What is
    returned is that of ``holdall salvage --json``; ``lost`` and ``doubtful`` are empty if all is
    there.
    """
    with Meter(progress, "salvaging") as call:
        done = _core.salvage(damaged, new, partial, call)
        return json.loads(done)  # type: ignore[no-any-return]


@overload
def in_memory(
    *, keys: Literal["str"] = "str", **options: Unpack[Options]
) -> Store[str]: ...
@overload
def in_memory(*, keys: Literal["bytes"], **options: Unpack[Options]) -> Store[bytes]: ...
def in_memory(
    *, keys: Literal["str", "bytes"] = "str", **options: Unpack[Options]
) -> Store[Any]:
    """A store in memory, gone with its last user: for tests and examples.

    >>> s = holdall.in_memory()
    >>> s["a"] = b"1"
    >>> len(s)
    1
    """
    return Store(":memory:", "x", keys=keys, **options)
