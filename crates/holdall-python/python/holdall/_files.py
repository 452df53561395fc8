"""Objects as files for ``io``."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Union

from holdall._core import ObjectId, Source, View

if TYPE_CHECKING:
    from typing_extensions import Buffer

Key = Union[str, bytes, ObjectId]

#: Bytes that a file gathers before it writes, and reads ahead.
BUFFER = 128 << 10


class RawObject(io.RawIOBase):
    """An object open as a file without a buffer."""

    def __init__(self, view: View, key: Key, mode: str, attributes: Mapping[str, bytes] | None):
        base = mode.replace("b", "")
        plus = "+" in base
        kind = base.replace("+", "")
        self._writes = plus or kind != "r"
        self._reads = plus or kind == "r"
        given = dict(attributes) if attributes is not None else None
        self._raw = view.open_raw(key, "r+" if plus and kind == "r" else kind, given)
        self._keep = True
        #: What is closed in place of the object; gets whether to keep it.
        self.when_closed: Callable[[bool], None] = self._raw.close
        self.name = key
        self.mode = mode

    @property
    def oid(self) -> ObjectId | None:
        return self._raw.oid

    def readable(self) -> bool:
        return self._reads

    def writable(self) -> bool:
        return self._writes

    def seekable(self) -> bool:
        return True

    def size(self) -> int:
        return self._raw.size()

    def readinto(self, buffer: Any) -> int:
        if not self._reads:
            raise io.UnsupportedOperation("not open for reading")
        return self._raw.readinto(buffer)

    def write(self, data: Any) -> int:
        if not self._writes:
            raise io.UnsupportedOperation("not open for writing")
        if not self._keep:
            # What is given up takes no more bytes, and its buffer may still hold some.
            return memoryview(data).nbytes
        return self._raw.write(data)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._raw.seek(offset, whence)

    def tell(self) -> int:
        return self._raw.tell()

    def truncate(self, size: int | None = None) -> int:
        if not self._writes:
            raise io.UnsupportedOperation("not open for writing")
        return self._raw.truncate(self._raw.tell() if size is None else size)

    def insert(self, data: Any) -> int:
        if not self._writes:
            raise io.UnsupportedOperation("not open for writing")
        return self._raw.insert(data)

    def delete(self, length: int) -> int:
        if not self._writes:
            raise io.UnsupportedOperation("not open for writing")
        return self._raw.delete(length)

    def flush(self) -> None:
        super().flush()
        if self._writes and self._keep and not self.closed:
            self._raw.flush()

    def give_up(self) -> None:
        """From here on nothing that is written anew becomes an object."""
        self._keep = False

    def close(self) -> None:
        if self.closed:
            return
        try:
            super().close()
        finally:
            self.when_closed(self._keep)

    def close_into(self, transaction: Source | None, keep: bool) -> None:
        """Makes what was written an object, in a transaction where one is given, or drops it."""
        self._raw.close(keep, transaction)


class _Whole:
    """A file whose ``with`` block keeps nothing of a new object if it raises."""

    @property
    def oid(self) -> ObjectId | None:
        """The object's id; None before a new object's file is closed."""
        return self._object().oid

    def give_up(self) -> None:
        """Closes a file that is written anew without making the object."""
        self._object().give_up()
        self.close()  # type: ignore[attr-defined]

    def _object(self) -> RawObject:
        raise NotImplementedError

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._object().give_up()
        self.close()  # type: ignore[attr-defined]


class ObjectReader(io.BufferedReader):
    """An object open for reading, as it was when it was opened.

    >>> with store.open("film", "rb") as f:
    ...     f.read(4)
    b'\\x00\\x01\\x02\\x03'
    """

    raw: RawObject

    @property
    def oid(self) -> ObjectId | None:
        """The object's id."""
        return self.raw.oid


class ObjectWriter(_Whole, io.BufferedWriter):
    """An object open for writing. A new one appears, whole, when the file is closed.

    >>> with store.open("new", "wb") as f:
    ...     f.write(b"all or nothing")
    14
    """

    raw: RawObject

    def _object(self) -> RawObject:
        return self.raw

    def flush(self) -> None:
        """Writes what was gathered; of an object edited in place it is then durable."""
        super().flush()
        self.raw.flush()

    def insert(self, data: Buffer) -> int:
        """Inserts bytes at the position, which moves behind them."""
        super().flush()
        return self.raw.insert(data)

    def delete(self, length: int) -> int:
        """Cuts out up to so many bytes from the position on; tells how many."""
        super().flush()
        return self.raw.delete(length)


class ObjectFile(_Whole, io.BufferedRandom):
    """An object open for reading and writing, any place of it.

    >>> with store.open("film", "r+b") as f:
    ...     _ = f.seek(2)
    ...     f.insert(b"more")          # moves what follows
    4
    >>> store["film"][:8]
    b'\\x00\\x01more\\x02\\x03'
    """

    raw: RawObject

    def _object(self) -> RawObject:
        return self.raw

    def flush(self) -> None:
        """Writes what was gathered; of an object edited in place it is then durable."""
        super().flush()
        self.raw.flush()

    def _at(self) -> int:
        """Where the next byte is, with nothing in the buffer."""
        place = self.tell()
        super().flush()
        # A seek from the end drops what was read ahead.
        self.seek(0, io.SEEK_END)
        return self.seek(place)

    def insert(self, data: Buffer) -> int:
        """Inserts bytes at the position, which moves behind them."""
        self._at()
        return self.raw.insert(data)

    def delete(self, length: int) -> int:
        """Cuts out up to so many bytes from the position on; tells how many."""
        self._at()
        return self.raw.delete(length)


class ObjectText(_Whole, io.TextIOWrapper):
    """An object open as text."""

    def _object(self) -> RawObject:
        return self.buffer.raw  # type: ignore[attr-defined, no-any-return]


def open_object(
    view: View,
    key: Key,
    mode: str = "rb",
    *,
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    attributes: Mapping[str, bytes] | None = None,
) -> Any:
    """Opens an object as ``open`` opens a file; see ``View.open``."""
    text = "b" not in mode
    kinds = mode.replace("b", "").replace("t", "")
    if sorted(kinds.replace("+", "")) not in (["r"], ["w"], ["x"], ["a"]) or kinds.count("+") > 1:
        raise ValueError(f"mode {mode!r} is none that open() knows")
    if "t" in mode and "b" in mode:
        raise ValueError("a file is either text or binary")
    if text and buffering == 0:
        raise ValueError("text is never without a buffer")
    if not text and (encoding or errors or newline):
        raise ValueError("encoding, errors and newline are of text")
    raw = RawObject(view, key, kinds, attributes)
    if buffering == 0:
        return raw
    size = BUFFER if buffering in (-1, 1) else buffering
    binary: io.BufferedIOBase
    if "+" in kinds:
        binary = ObjectFile(raw, size)
    elif kinds == "r":
        binary = ObjectReader(raw, size)
    else:
        binary = ObjectWriter(raw, size)
    if not text:
        return binary
    return ObjectText(binary, encoding or "utf-8", errors, newline, line_buffering=buffering == 1)
