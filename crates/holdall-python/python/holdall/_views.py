"""Objects by their names: snapshots, transactions, collections."""

from __future__ import annotations

from collections.abc import (
    ItemsView,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
    ValuesView,
)
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, Union, overload

from holdall import _core
from holdall._core import ObjectId
from holdall._files import open_object
from holdall.errors import InvalidError

if TYPE_CHECKING:
    from typing_extensions import Buffer, Self

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
        from holdall import _pickling

        return _pickling.of_deferred(self)

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
        the file is closed. It does not, with a ``NotStoredWarning``, if it is closed while an
        exception is raised that was not when it was opened, if a write has failed, or if nobody
        closes it. ``commit`` closes it and makes the object all the same; with ``commit=False``
        nothing else does. One opened with ``r+`` or
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
        if limit < 1:
            raise InvalidError(f"limit={limit}: a page has one name at least")
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
            # Raises if there is none.
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
        """The object's bytes; if there is none, ``default``, which is then put."""
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
        from holdall import _pickling

        return _pickling.of_collection(self)

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
        from holdall import _pickling

        return _pickling.of_snapshot(self)

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
