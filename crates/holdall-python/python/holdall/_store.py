"""Stores, snapshots, transactions, collections."""

from __future__ import annotations

import html
import json
import os
import weakref
from collections.abc import (
    Callable,
    ItemsView,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
    ValuesView,
)
from types import TracebackType
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    NamedTuple,
    TypedDict,
    TypeVar,
    Union,
    overload,
)

from holdall import _core
from holdall._core import ObjectId
from holdall._files import open_object
from holdall.errors import LockedError, SnapshotTooOldError

if TYPE_CHECKING:
    from typing_extensions import Buffer, Self, Unpack

Name = Union[str, bytes]
Key = Union[str, bytes, ObjectId]
T = TypeVar("T")
if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    #: What names are given out as.
    N = TypeVarWithDefault("N", str, bytes, default=str)
else:
    N = TypeVar("N", str, bytes)
_MISSING: Any = object()

os.register_at_fork(after_in_child=_core.after_fork)

#: Stores of this process that are open for writing, by path.
_WRITERS: weakref.WeakValueDictionary[str, Store[Any]] = weakref.WeakValueDictionary()
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


def _open_source(path: str | os.PathLike[str], mode: str, options: Mapping[str, Any]) -> _core.Source:
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
            e.filename = os.fspath(path)
        raise


class Listing(NamedTuple, Generic[N]):
    """Names up to a delimiter, as a folder shows them."""

    names: list[N]
    prefixes: list[N]
    next: N | None


class _Items(ItemsView[N, bytes]):
    """Names and bytes: one state, many objects fetched at a time."""

    _mapping: View[N]

    def __iter__(self) -> Iterator[tuple[N, bytes]]:
        return self._mapping.walk(True)

    def __reversed__(self) -> Iterator[tuple[N, bytes]]:
        return self._mapping.walk(True, True)


class _Values(ValuesView[bytes]):
    """Bytes of objects: one state, many fetched at a time."""

    _mapping: View[Any]

    def __iter__(self) -> Iterator[bytes]:
        return self._mapping.walk(False)

    def __reversed__(self) -> Iterator[bytes]:
        return self._mapping.walk(False, True)


class View(_core.View[N], MutableMapping[N, bytes]):
    """Objects by their names: what stores, snapshots, transactions and collections have in common.

    A mapping of names to bytes. Iterating yields names in the order of their bytes, as ``str``
    or, with ``keys="bytes"``, as ``bytes``. A loop may change what it walks through: it sees the
    objects as they were when it began, and in a long one, after the store gave that state up,
    those of a newer state behind the name that it had come to.
    """

    __slots__ = ()

    def __reduce__(self) -> Any:
        return _deferred, (_store_of(self),)

    def items(self) -> ItemsView[N, bytes]:
        """Names and bytes, in the order of names; many objects are fetched at a time.

        >>> store.update({"a": b"1", "b": b"2"})
        >>> next(iter(store.items()))
        ('a', b'1')
        """
        return _Items(self)

    def values(self) -> ValuesView[bytes]:
        """Bytes of objects, in the order of their names; many are fetched at a time."""
        return _Values(self)

    def open(
        self,
        key: Key,
        mode: str = "r",
        *,
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        attributes: Mapping[str, bytes] | None = None,
        commit: bool = True,
    ) -> Any:
        """Opens an object as the built-in ``open`` opens a file.

        Read, it stays as it was when it was opened. A new object (``w``, ``x``) appears whole when
        the file is closed. It does not appear if a ``with`` block that closes it raises, if a
        write has failed, or if nobody closes it, which is a ``ResourceWarning``. With
        ``commit=False`` it appears only when its ``commit`` is called. One opened with ``r+`` or
        ``a`` is changed in place: what was written is durable after ``flush`` and ``close``. In a
        transaction everything happens with its commit. Binary files have ``insert`` and
        ``delete`` beside what files have.

        >>> with store.open("notes.txt", "w") as f:
        ...     print("first line", file=f)
        >>> with store.open("notes.txt") as f:
        ...     f.read()
        'first line\\n'
        """
        return open_object(
            self,
            key,
            mode,
            buffering=buffering,
            encoding=encoding,
            errors=errors,
            newline=newline,
            attributes=attributes,
            commit=commit,
        )

    def collection(self, name: str) -> Collection[N]:
        """Objects of a collection of their own, which the first put makes.

        >>> store.collection("thumbnails")["a"] = b"small"
        >>> "a" in store, list(store.collection("thumbnails"))
        (False, ['a'])
        """
        return Collection(self.source, name, self.keys_as)

    def list(
        self,
        prefix: Name = "",
        delimiter: Name | None = "/",
        *,
        start_after: Name | None = None,
        limit: int = 1000,
    ) -> Listing[N]:
        """Names and common prefixes up to a delimiter; ``next`` continues it as ``start_after``.

        >>> store.update({"a/1": b"", "a/2": b"", "b": b""})
        >>> store.list(limit=2)
        Listing(names=['b'], prefixes=['a/'], next='b')
        """
        return Listing(*self.list_page(prefix, delimiter, start_after, limit))

    def update(self, other: Any = (), /, **more: Any) -> None:
        """Puts many objects as one transaction: all of them or none.

        >>> store.update({"a": b"1", "b": b"2"}, c=b"3")
        """
        pairs = other.items() if isinstance(other, Mapping) else other
        if not isinstance(other, Mapping) and hasattr(other, "keys"):
            pairs = ((key, other[key]) for key in other.keys())

        def both() -> Iterator[tuple[Name, Buffer]]:
            yield from pairs
            yield from more.items()

        self.put_many(both())

    def _atomic(self) -> _Atomic[N]:
        """The same objects, with what a ``with`` block does to them as one step."""
        return _Atomic(self)

    @overload
    def pop(self, key: Key) -> bytes: ...
    @overload
    def pop(self, key: Key, default: T) -> bytes | T: ...
    def pop(self, key: Key, default: Any = _MISSING) -> Any:
        """Removes an object and gives its bytes, as one step."""
        with self._atomic() as tx:
            value = tx.get(key)
            if value is None and default is not _MISSING:
                return default
            # Raises where there is none.
            del tx[key]
            return value

    def popitem(self) -> tuple[N, bytes]:
        """Removes the first object and gives its name and bytes, as one step."""
        with self._atomic() as tx:
            for name in tx.names():
                value = tx[name]
                del tx[name]
                return name, value
        raise KeyError("there are no objects")

    def setdefault(self, key: Name, default: Any = b"") -> bytes:
        """The object's bytes; where there is none, ``default``, which is then put."""
        with self._atomic() as tx:
            found = tx.get(key)
            if found is not None:
                return found
            tx[key] = default
            return tx[key]

    def clear(self) -> None:
        """Removes all objects that have names, a thousand in each transaction."""
        more = True
        while more:
            with self._atomic() as tx:
                names = [name for name, _ in zip(tx.names(), range(1000))]
                for name in names:
                    tx.remove(name)
                more = bool(names)

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__


class _Atomic(Generic[N]):
    """A block whose calls are one transaction: a new one, or the one that the view is of."""

    def __init__(self, view: View[N]):
        source = view.source
        self.own = source.transaction() if source.kind == "newest" else None
        source = source if self.own is None else self.own
        self.view: _core.View[N] = _core.View(source, view.name, view.keys_as)

    def __enter__(self) -> _core.View[N]:
        return self.view

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self.own is not None:
            self.own.end(kind is None)


class Collection(View[N]):
    """Objects of a collection; from ``collection`` of a store, snapshot or transaction."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        return _collection, (_outer(self), self.name)

    def __repr__(self) -> str:
        return f"<holdall.Collection {self.name!r}>"


class Snapshot(View[N]):
    """The objects as they were when it was taken, whatever is written since.

    >>> store["a"] = b"before"
    >>> with store.snapshot() as before:
    ...     store["a"] = b"after"
    ...     before["a"], store["a"]
    (b'before', b'after')
    """

    __slots__ = ()

    def close(self) -> None:
        """Gives it up; the space of what was replaced since can then be used again."""
        self.source.close()

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self.source.closed

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        """Of a store opened for reading; loading it fails if the store was changed since."""
        return _snapshot, (_store_of(self), self.source.state)

    def __repr__(self) -> str:
        return f"<holdall.Snapshot of {self.source.path!r}>"


class Transaction(View[N]):
    """Changes that happen together or not at all, and reads that see them.

    One transaction at a time changes a store; another waits, or in the same thread fails.

    >>> with store.transaction() as tx:
    ...     tx["draft"] = b"text"
    ...     tx.rename("draft", "final")
    >>> try:
    ...     with store.transaction() as tx:
    ...         del tx["final"]
    ...         raise RuntimeError("changed my mind")
    ... except RuntimeError:
    ...     store["final"]
    b'text'
    """

    __slots__ = ()

    def __reduce__(self) -> Any:
        raise TypeError("a transaction belongs to its process and cannot be pickled")

    def commit(self) -> None:
        """Makes all of it happen, durably. A ``with`` block does it at its end."""
        self.source.end(True)

    def abort(self) -> None:
        """Ends it without a trace."""
        self.source.end(False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self.abort()
        elif not self.source.closed:
            self.commit()

    def __repr__(self) -> str:
        return f"<holdall.Transaction on {self.source.path!r}>"


Progress = Union[bool, Callable[[int, int], object], None]


class _Meter:
    """Calls a progress function, or shows a bar where tqdm is installed."""

    def __init__(self, progress: Progress, what: str):
        self.call: Callable[[int, int], object] | None = None
        self.bar: Any = None
        if progress is True:
            try:
                from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]
            except ImportError:
                return
            self.bar = tqdm(desc=what, unit="B", unit_scale=True)
            self.call = self._bar
        elif callable(progress):
            self.call = progress

    def _bar(self, done: int, total: int) -> None:
        self.bar.total = total or None
        self.bar.update(done - self.bar.n)

    def __enter__(self) -> Callable[[int, int], object] | None:
        return self.call

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.close()


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
            _WRITERS[self.path] = self
        return self

    @classmethod
    def _unlisted(
        cls, path: str | os.PathLike[str], mode: str, options: Mapping[str, Any]
    ) -> Self:
        """A store that others in this process do not find by its path."""
        return super().__new__(cls, _open_source(path, mode, options))

    @classmethod
    def _of(cls, view: View[N]) -> Store[N]:
        """The store that a view is of."""
        return super().__new__(Store, view.source.store(), None, view.keys_as)

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
        with _Meter(progress, "looking") as call:
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
        with _Meter(progress, "verifying") as call:
            return json.loads(self.source.verify(data, call))  # type: ignore[no-any-return]

    def defrag(
        self, *, rate: int | None = None, join: bool = True, progress: Progress = None
    ) -> dict[str, Any]:
        """Puts it in order while it is used, at most ``rate`` bytes a second.

        ``progress`` is called with the bytes moved so far; with ``True`` tqdm shows a bar.
        """
        with _Meter(progress, "moving") as call:
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
        return _reopened, (self.path, self.source.options)

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


def _reopened(path: str, options: dict[str, Any]) -> Store[Any]:
    return Store(path, "r", **options)


def _store_of(view: View[N]) -> Store[N]:
    """The store of a view, by a handle of its own, to be pickled."""
    return Store._of(view)


def _outer(collection: Collection[N]) -> View[N]:
    """What a collection is of, to be pickled."""
    source = collection.source
    match source.kind:
        case "snapshot":
            return Snapshot(source, None, collection.keys_as)
        case "transaction":
            return Transaction(source, None, collection.keys_as)
        case _:
            return _store_of(collection)


def _deferred(store: Store[N]) -> View[N]:
    return store.deferred()


def _collection(outer: View[N], name: str) -> Collection[N]:
    return outer.collection(name)


def _snapshot(store: Store[N], state: int) -> Snapshot[N]:
    snapshot = store.snapshot()
    if snapshot.source.state != state:
        raise SnapshotTooOldError(
            f"store {store.path} was changed since the snapshot was pickled; take a new one"
        )
    return snapshot


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
) -> Store[Any]:
    """Opens a store.

    ==== ============================================================
    mode
    ==== ============================================================
    r    for reading, beside other readers
    r+   for reading and writing, what is there
    a    for reading and writing; made where it is missing
    w    made anew; only a file that is a store is replaced
    x    made where there is nothing
    ==== ============================================================

    ``keys`` is what names are given out as, ``"str"`` or ``"bytes"``; both are taken. The other
    options are described at ``Options``. The path ``":memory:"`` is a store in memory.

    >>> holdall.open("/nowhere.holdall")
    Traceback (most recent call last):
    holdall.errors.NotFoundError: not found: store /nowhere.holdall
    """
    return Store(path, mode, keys=keys, **options)


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
