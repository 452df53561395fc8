"""Stores in buckets: objects that many processes use at once, each changed by itself."""

from __future__ import annotations

import builtins
import json
import os
from collections.abc import ItemsView, Iterable, Iterator, Mapping, MutableMapping, ValuesView
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypedDict, TypeVar, Union, overload

from holdall import _core
from holdall._bucketfiles import Appending, Editing, Reading, Sending
from holdall._files import open_object
from holdall._meter import Meter, Progress
from holdall._views import Listing
from holdall.errors import (
    ConflictError,
    ExistsError,
    InvalidError,
    NotFoundError,
    NotInBucketError,
    ReadOnlyError,
)

if TYPE_CHECKING:
    from typing_extensions import Buffer, Self, Unpack

Name = Union[str, bytes]
T = TypeVar("T")
_MISSING: Any = object()
#: What an address of a bucket begins with.
SCHEME = "s3://"
#: Names whose objects are asked for at once, and objects put at once.
AT_ONCE = 64
#: Bytes put at once, if one object is not longer.
BYTES_AT_ONCE = 16 << 20


class Reach(TypedDict, total=False):
    """How a bucket is reached, if environment and aws-cli's default profile do not say it."""

    endpoint: str
    region: str
    profile: str
    remote: str


def reach_of(given: Mapping[str, Any]) -> tuple[str | None, str | None, str | None, str | None]:
    """In the order in which the compiled part takes it."""
    unknown = set(given) - set(Reach.__annotations__)
    if unknown:
        raise TypeError(f"unexpected keyword argument {min(unknown)!r}")
    return (
        given.get("endpoint"),
        given.get("region"),
        given.get("profile"),
        given.get("remote"),
    )


def is_in_bucket(path: Any) -> bool:
    """Whether this names a store in a bucket."""
    return isinstance(path, str) and path.startswith(SCHEME)


class BucketInfo(NamedTuple):
    """What is known of an object in a bucket without reading its bytes."""

    name: str
    size: int
    version: str
    """Changes with every change of its bytes or attributes; compare it for equality only."""
    created: datetime
    modified: datetime
    """When its bytes last changed, by the clock of who did it."""
    attributes: dict[str, bytes]


class _Items(ItemsView[str, bytes]):
    _mapping: BucketStore

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        return self._mapping._walk()


class _Values(ValuesView[bytes]):
    _mapping: BucketStore

    def __iter__(self) -> Iterator[bytes]:
        return (data for _, data in self._mapping._walk())


def _lacks(what: str, instead: str) -> Any:
    def lacks(self: BucketStore, *_: Any, **__: Any) -> NoReturn:
        raise NotInBucketError(f"a store in a bucket has no {what}; {instead}")

    lacks.__doc__ = f"Not in a bucket, where there is no {what}: {instead}."
    return lacks


_LOCAL = "or keep a store file"
_EDIT = "one object's changes go together in edit() or put(if_version=)"


class BucketStore(_core.Bucket, MutableMapping[str, bytes]):
    """Objects in a bucket, which many processes and machines may use at once.

    A mapping of names to bytes. Each call changes one object, and once it returned every later call
    anywhere sees it. There are no transactions over several objects, no snapshots and no ids.
    Names come in the order of their keys in the bucket; a loop sees what is there as it goes.
    Open stores with ``holdall.open("s3://BUCKET/PREFIX")``; threads share one, and a child made by
    ``fork`` opens it again.
    """

    __slots__ = ("__weakref__",)

    def __new__(cls, place: str, mode: str = "r", **reach: Unpack[Reach]) -> Self:
        if not is_in_bucket(place):
            raise InvalidError(f"{place!r}: write s3://BUCKET/PREFIX")
        return super().__new__(cls, _core.BucketSource(place, mode, reach_of(reach)), None)

    # As a whole.

    @property
    def path(self) -> str:
        """Its address."""
        return self.source.place

    @property
    def read_only(self) -> bool:
        """Whether it was opened for reading."""
        return self.source.read_only

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self.source.closed

    def close(self) -> None:
        """Ends the connections. Files that are open go on; closing again does nothing."""
        self.source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def collection(self, name: str) -> BucketStore:
        """The same store, seen from a collection, whose names are apart."""
        return super().__new__(BucketStore, self.source, name)

    def stat(self) -> dict[str, Any]:
        """Figures: objects, bytes in records and blobs, operations under way. By listings alone."""
        return json.loads(super()._stat())  # type: ignore[no-any-return]

    def verify(self, *, progress: Progress = None) -> dict[str, Any]:
        """Reads and checks everything; ``["sound"]`` says the outcome."""
        with Meter(progress, "verifying") as call:
            return json.loads(super()._verify(call))  # type: ignore[no-any-return]

    def gc(
        self, *, full: bool = False, alone: bool = False, progress: Progress = None
    ) -> dict[str, Any]:
        """Deletes what was replaced more than a day ago and what broken-off writes left.

        Run it daily, from one machine. ``full`` looks for what no record tells of too; ``alone``
        says that nobody else uses the store meanwhile.
        """
        with Meter(progress, "collecting") as call:
            return json.loads(super()._gc(full, alone, call))  # type: ignore[no-any-return]

    def compact(self, *, progress: Progress = None) -> dict[str, Any]:
        """Writes again what is left of blobs of which less than half is used."""
        with Meter(progress, "compacting") as call:
            return json.loads(super()._compact(call))  # type: ignore[no-any-return]

    # What others have and this has not.

    transaction = _lacks("transactions over several objects", f"{_EDIT}, {_LOCAL}")
    snapshot = _lacks("snapshots", f"open() keeps one version of one object, {_LOCAL}")
    deferred = _lacks("deferred changes", "put_many() and edit() gather changes")
    flush = _lacks("changes to flush", "each is durable when its call returns")
    checkpoint = _lacks("checkpoints", "each change is durable when its call returns")
    create = _lacks("objects without a name", "put() one under a name that you draw")
    drop_collection = _lacks("removal of collections", "clear() removes a collection's objects")
    frag = _lacks("fragmentation to report", "stat() has figures, compact() helps")
    defrag = _lacks("order to keep", "compact() writes sparse blobs again")
    keep_in_order = _lacks("order to keep", "run gc() daily")
    backup = _lacks("backups", "the server replicates; `holdall export` makes files")

    # Names.

    def __len__(self) -> int:
        """How many objects there are. They are counted: a request for each thousand."""
        return sum(1 for _ in self.names())

    def __bool__(self) -> bool:
        return bool(self.list_page("", False, None, 1)[0])

    def __iter__(self) -> Iterator[str]:
        return self.names()

    def names(self, prefix: Name = "") -> Iterator[str]:
        """Names that begin with a prefix."""
        after: str | None = None
        while True:
            names, _, after = self.list_page(prefix, False, after, None)
            yield from names
            if after is None:
                return

    def list(
        self,
        prefix: Name = "",
        delimiter: Name | None = "/",
        *,
        start_after: str | None = None,
        limit: int = 1000,
    ) -> Listing[str]:
        """Names and folders, a page at a time; ``start_after`` is what ``next`` of a page said.

        The delimiter is a slash, or None for all names.
        """
        if delimiter not in ("/", b"/", None):
            raise NotInBucketError("folders in a bucket end with a slash, and with nothing else")
        if limit < 1:
            raise InvalidError(f"limit={limit}: a page has one name at least")
        return Listing(*self.list_page(prefix, delimiter is not None, start_after, limit))

    # Reading.

    def items(self) -> ItemsView[str, bytes]:
        """Names and bytes; many objects are fetched at a time."""
        return _Items(self)

    def values(self) -> ValuesView[bytes]:
        """Bytes of objects; many are fetched at a time."""
        return _Values(self)

    def _walk(self) -> Iterator[tuple[str, bytes]]:
        names = self.names()
        while some := builtins.list(islice(names, AT_ONCE)):
            for name, data in zip(some, self.get_many(some)):
                # One that was removed meanwhile is none.
                if data is not None:
                    yield name, data

    def get_many(self, keys: Iterable[Name]) -> builtins.list[bytes | None]:
        """The bytes of objects, 16 at a time; None of one that is not there."""
        found: builtins.list[bytes | None] = []
        left = builtins.list(keys)
        at = 0
        while at < len(left):
            some = self.read_batch(left[at : at + AT_ONCE])
            found += some
            at += len(some)
        return found

    def read_into(self, key: Name, buffer: Buffer, offset: int = 0) -> int:
        """Reads bytes from a place on into a buffer; returns how many there are."""
        view = memoryview(buffer).cast("B")
        found = self.get_range(key, offset, offset + len(view))
        if found is None:
            raise NotFoundError(f"not found: object {key!r}")
        view[: len(found)] = found
        return len(found)

    def info(self, key: Name) -> BucketInfo:
        """What is known of an object without reading its bytes."""
        for found in self.infos([key]):
            return BucketInfo(*found)
        raise NotFoundError(f"not found: object {key!r}")

    def info_many(self, keys: Iterable[Name]) -> builtins.list[BucketInfo]:
        """As ``info``, 64 at a time; nothing of those that are not there."""
        return [BucketInfo(*found) for found in self.infos(builtins.list(keys))]

    # Changing.

    def put_many(
        self,
        items: Iterable[tuple[Name, Buffer]],
        *,
        attributes: Mapping[str, bytes] | None = None,
    ) -> int:
        """Puts objects, 16 at a time; returns how many. After an error some are there."""
        count = 0
        given = dict(attributes) if attributes is not None else None
        some: builtins.list[tuple[Name, Buffer]] = []
        size = 0
        for name, data in items:
            some.append((name, data))
            size += memoryview(data).nbytes
            if len(some) >= AT_ONCE or size >= BYTES_AT_ONCE:
                count += self.put_batch(some, given)
                some, size = [], 0
        return count + self.put_batch(some, given) if some else count

    def update(self, other: Any = (), /, **more: Any) -> None:
        """Puts many objects, each by itself: after an error some are there."""
        pairs = other.items() if isinstance(other, Mapping) else other
        if not isinstance(other, Mapping) and hasattr(other, "keys"):
            pairs = ((key, other[key]) for key in other.keys())
        self.put_many(pairs)
        self.put_many(more.items())

    def insert(self, key: Name, at: int, data: Buffer) -> int:
        """Inserts bytes before byte ``at``; returns the new size."""
        return self.edit(key, [("insert", at, data)])

    def delete_range(self, key: Name, start: int, stop: int) -> int:
        """Cuts a range out; returns the new size."""
        return self.edit(key, [("delete_range", start, stop)])

    def splice(self, key: Name, start: int, stop: int, data: Buffer) -> int:
        """Replaces a range by bytes; returns the new size."""
        return self.edit(key, [("splice", start, stop, data)])

    def write_at(self, key: Name, at: int, data: Buffer) -> int:
        """Writes bytes over what is there; returns the new size."""
        return self.edit(key, [("write_at", at, data)])

    def append(self, key: Name, data: Buffer) -> int:
        """Puts bytes behind the last one, wherever that is then; returns the new size."""
        return self.edit(key, [("append", data)])

    def truncate(self, key: Name, size: int) -> int:
        """Cuts the object, or adds zeros; returns the new size."""
        return self.edit(key, [("truncate", size)])

    @overload
    def pop(self, key: Name) -> bytes: ...
    @overload
    def pop(self, key: Name, default: T) -> bytes | T: ...
    def pop(self, key: Name, default: Any = _MISSING) -> Any:
        """Removes an object and gives its bytes: those of the version that was removed."""
        while True:
            try:
                found = self.open_object(key)
            except NotFoundError:
                if default is _MISSING:
                    raise
                return default
            data = found.read(0, found.size)
            try:
                if self.remove(key, if_version=found.version):
                    return data
            except ConflictError:
                # Somebody changed it: that version is removed next.
                continue

    def popitem(self) -> tuple[str, bytes]:
        """Removes an object and gives its name and bytes."""
        for name in self.names():
            data = self.pop(name, None)
            if data is not None:
                return name, data
        raise KeyError("there are no objects")

    def setdefault(self, key: Name, default: Any = b"") -> bytes:
        """The object's bytes; if there is none, ``default``, which is then put."""
        while True:
            found: bytes | None = self.get(key)
            if found is not None:
                return found
            try:
                self.put(key, default, exclusive=True)
            except ExistsError:
                continue
            return bytes(default)

    def clear(self) -> None:
        """Removes the collection's objects one by one, 16 at a time."""
        while names := builtins.list(islice(self.names(), 1000)):
            self.remove_many(names)

    # Files.

    def open(
        self,
        key: Name,
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

        Read, it stays as it was when it was opened. A new object (``w``, ``x``) is sent as it is
        written, from front to back, and appears whole when the file is closed, by the rule of
        ``View.open``. One opened with ``r+`` is edited: what was written until ``flush`` or
        ``close``, or 8 MiB of it, is one change, on the condition that nobody else changed the
        object since it was opened; ``ConflictError`` otherwise. With ``a`` each such change goes
        behind the last byte, wherever that is then.
        """
        if "+" in mode and mode[:1] in ("w", "x"):
            raise NotInBucketError(
                f"mode {mode!r} changes what it has not stored yet; write the object with 'w', "
                "then edit it with 'r+'"
            )
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

    def open_raw(self, key: Name, mode: str, attributes: dict[str, bytes] | None = None) -> Any:
        """What files stand on."""
        if mode == "r":
            return Reading(self, key)
        if self.read_only:
            raise ReadOnlyError("the store was opened for reading; open it with mode 'r+'")
        if mode == "r+":
            return Editing(self, key)
        if mode == "a":
            return Appending(self, key, attributes)
        return Sending(self, key, attributes, mode == "x")

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    def __reduce__(self) -> Any:
        """Opened again, with the same options and environment."""
        source = self.source
        mode = "r" if source.read_only else "r+"
        return _reopened, (source.place, mode, source.reach, self.name)

    def __repr__(self) -> str:
        state = "closed" if self.closed else "read-only" if self.read_only else "open"
        of = "" if self.name == "default" else f", collection {self.name!r}"
        return f"<holdall.BucketStore {self.path!r}{of}, {state}>"


def _reopened(place: str, mode: str, reach: tuple[str | None, ...], name: str) -> BucketStore:
    given = {key: value for key, value in zip(Reach.__annotations__, reach) if value is not None}
    store = BucketStore(place, mode, **given)
    return store if name == store.name else store.collection(name)
