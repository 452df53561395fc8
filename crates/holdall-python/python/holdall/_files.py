"""Objects as files for ``io``.

A file that writes an object anew makes it when it is closed in peace. It gives the object up,
with a warning, if a write failed, if it is closed while an exception is raised that was not when
it was opened, or if nobody closes it. Whatever wraps the file, the file itself sees all three.
"""

from __future__ import annotations

import errno
import io
import operator
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, Union

from holdall._core import ObjectId, Source
from holdall.errors import NotStoredWarning, OffsetError

if TYPE_CHECKING:
    from typing_extensions import Buffer

Key = Union[str, bytes, ObjectId]

class Held(Protocol):
    """An object that a file is of, and the file's position in it."""

    @property
    def oid(self) -> ObjectId | None: ...
    def readall(self) -> bytes: ...
    def readinto(self, buffer: Any, /) -> int: ...
    def write(self, data: Any, /) -> int: ...
    def seek(self, offset: int, whence: int, /) -> int: ...
    def tell(self) -> int: ...
    def size(self) -> int: ...
    def truncate(self, size: int, /) -> int: ...
    def insert(self, data: Any, /) -> int: ...
    def delete(self, length: int, /) -> int: ...
    def flush(self) -> None: ...
    def close(self, keep: bool, transaction: Source | None = None, /) -> None: ...


class Opens(Protocol):
    """Where objects are that files are of."""

    def open_raw(
        self, key: Any, mode: str, attributes: dict[str, bytes] | None = None, /
    ) -> Any: ...


#: Bytes that a file gathers before it writes, and reads ahead.
BUFFER = 128 << 10


class RawObject(io.RawIOBase):
    """An object open as a file without a buffer."""

    def __init__(
        self,
        view: Opens,
        key: Key,
        mode: str,
        attributes: Mapping[str, bytes] | None,
        commit: bool = True,
    ):
        base = mode.replace("b", "")
        plus = "+" in base
        kind = base.replace("+", "")
        self._writes = plus or kind != "r"
        self._reads = plus or kind == "r"
        given = dict(attributes) if attributes is not None else None
        try:
            self._raw: Held = view.open_raw(key, "r+" if plus and kind == "r" else kind, given)
        except OSError as e:
            if e.filename is None and e.errno is not None:
                e.filename = key
            raise
        #: Whether closing makes an object of what is written anew.
        self._keep = commit
        self._given_up = self._failed = self._dropped = False
        self._anew = kind in ("w", "x")
        #: What is raised already says nothing about the file.
        self._before = sys.exception()
        #: Whether what is written now comes from closing the buffer.
        self.closing = False
        #: What is closed in place of the object; gets whether to keep it.
        self.when_closed: Callable[[bool], None] = self._raw.close
        self.name = key
        # As ``io.FileIO`` has it.
        self.mode = {"w+": "rb+", "r+": "rb+", "a+": "ab+", "x+": "xb+"}.get(base, kind + "b")

    @property
    def oid(self) -> ObjectId | None:
        """The object's id; None before a new object's file is closed."""
        return self._raw.oid

    @property
    def closefd(self) -> bool:
        """True, as of a file that was opened by its name."""
        return True

    def readable(self) -> bool:
        self._check()
        return self._reads

    def writable(self) -> bool:
        self._check()
        return self._writes

    def seekable(self) -> bool:
        self._check()
        # What goes to a bucket is sent as it comes.
        return bool(getattr(self._raw, "seeks", True))

    def size(self) -> int:
        """The object's size in bytes."""
        self._check()
        return self._raw.size()

    def _check(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file")

    def _check_reads(self) -> None:
        self._check()
        if not self._reads:
            raise io.UnsupportedOperation("File not open for reading")

    def _check_writes(self) -> None:
        self._check()
        if not self._writes:
            raise io.UnsupportedOperation("File not open for writing")

    def read(self, size: int | None = -1, /) -> bytes:
        """Bytes from the position on: ``size`` of them, or all that follow."""
        self._check_reads()
        size = -1 if size is None else operator.index(size)
        if size < 0:
            return self.readall()
        if size > sys.maxsize:
            raise OverflowError(f"{size} bytes are more than there can be")
        # Not more memory than there are bytes.
        buffer = bytearray(min(size, max(0, self._raw.size() - self._raw.tell())))
        count = self._raw.readinto(buffer)
        return bytes(memoryview(buffer)[:count])

    def readall(self) -> bytes:
        """All bytes from the position on."""
        self._check()
        if not self._reads:
            # As the system says it of a file.
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return self._raw.readall()

    def readinto(self, buffer: Any, /) -> int:
        self._check_reads()
        return self._raw.readinto(buffer)

    def write(self, data: Any, /) -> int:
        size = memoryview(data).nbytes
        self._check_writes()
        if self._given_up:
            if self.closing or self._dropped:
                # The buffer still holds some that nobody wants any more.
                return size
            raise self._lost()
        return self._change(self._raw.write, data)

    def seek(self, offset: int, whence: int = 0, /) -> int:
        self._check()
        return self._raw.seek(offset, whence)

    def tell(self) -> int:
        self._check()
        return self._raw.tell()

    def truncate(self, size: int | None = None, /) -> int:
        self._check_writes()
        size = self._raw.tell() if size is None else size
        if size < 0:
            raise OffsetError(f"a file of {size} bytes")
        return self._change(self._raw.truncate, size)

    def insert(self, data: Any) -> int:
        self._check_writes()
        return self._change(self._raw.insert, data)

    def delete(self, length: int) -> int:
        self._check_writes()
        return self._change(self._raw.delete, length)

    def _change(self, call: Callable[[Any], int], given: Any) -> int:
        try:
            return call(given)
        except (TypeError, OverflowError, BufferError, io.UnsupportedOperation):
            raise
        except BaseException:
            if self._anew:
                self._failed = True
                self._given_up = True
            raise

    def flush(self) -> None:
        super().flush()
        if self._writes and not self._given_up and not self.closed:
            self._raw.flush()

    def give_up(self) -> None:
        """From here on nothing that is written anew becomes an object."""
        self._keep = False
        self._given_up = self._anew

    def _lost(self) -> OSError:
        return OSError(errno.EIO, f"object {self.name!r} was given up; write it anew")

    def block_ended(self, in_peace: bool) -> None:
        """A block of the file has ended, by an exception or not; what is raised around it says
        nothing about the file."""
        if in_peace:
            self._before = sys.exception()
        else:
            self.give_up()

    def will_commit(self) -> None:
        """Closing makes the object, whatever is raised now; not if a write has failed."""
        if self._given_up:
            raise self._lost()
        self._keep = True
        self._before = sys.exception()

    def _trouble(self) -> str | None:
        """Why what was written may be half of what should have been."""
        if self._failed:
            return "had a write that failed"
        if self._dropped or getattr(self, "_finalizing", False):
            return "was never closed"
        error = sys.exception()
        if error is not None and error is not self._before:
            return f"was closed while {type(error).__name__} was raised"
        return None

    def close(self) -> None:
        if self.closed:
            return
        if not hasattr(self, "when_closed"):
            # It could not be opened.
            super().close()
            return
        trouble = self._trouble() if self._anew and self._keep else None
        if trouble is not None:
            self.give_up()
        self._before = None
        try:
            super().close()
        except BaseException:
            self._keep = False
            raise
        finally:
            self.when_closed(self._keep)
        if trouble is not None:
            self.warn(f"{trouble}, and is not stored")

    def warn(self, text: str) -> None:
        """Says what became of the object."""
        text = f"object {self.name!r} {text}"
        warnings.warn(text, NotStoredWarning, stacklevel=3, source=self)

    def _dealloc_warn(self, source: Any) -> None:
        """Files of ``io`` around this one call it when they are collected, and then ``close``."""
        self._dropped = True

    def close_into(self, transaction: Source | None, keep: bool) -> None:
        """Makes what was written an object, in a transaction where one is given, or drops it."""
        self._raw.close(keep, transaction)

    def __reduce__(self) -> Any:
        raise TypeError(f"cannot pickle {type(self).__name__!r} object")


class _Whole:
    """A file of which a new object is made when it is closed in peace."""

    @property
    def oid(self) -> ObjectId | None:
        """The object's id; None before a new object's file is closed."""
        return self._object().oid

    def close(self) -> None:
        """Closes the file; a new object then appears."""
        try:
            self._object().closing = True
        except (AttributeError, ValueError):
            # It was detached.
            pass
        super().close()  # type: ignore[misc]

    def give_up(self) -> None:
        """Closes a file that is written anew without making the object."""
        self._object().give_up()
        self.close()

    def commit(self) -> None:
        """Closes a file that was opened with ``commit=False``, and makes the object."""
        self.flush()  # type: ignore[attr-defined]
        self._object().will_commit()
        self.close()

    def _object(self) -> RawObject:
        raise NotImplementedError

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> None:
        if not self.closed:  # type: ignore[attr-defined]
            self._object().block_ended(kind is None)
        self.close()


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

    mode: str

    def _object(self) -> RawObject:
        return self.buffer.raw  # type: ignore[attr-defined, no-any-return]


def _mode_of(mode: str) -> tuple[str, bool]:
    """The mode without its kind, and whether it is text."""
    if not isinstance(mode, str):
        raise TypeError(f"a mode is str, not {type(mode).__name__}")
    text = "b" not in mode
    kinds = mode.replace("b", "").replace("t", "")
    known = sorted(kinds.replace("+", "")) in (["r"], ["w"], ["x"], ["a"])
    if not known or kinds.count("+") > 1 or mode.count("b") > 1 or mode.count("t") > 1:
        raise ValueError(f"mode {mode!r} is none that open() knows")
    if "t" in mode and "b" in mode:
        raise ValueError("a file is either text or binary")
    return kinds, text


def open_object(
    view: Opens,
    key: Key,
    mode: str = "rb",
    *,
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    attributes: Mapping[str, bytes] | None = None,
    commit: bool = True,
) -> Any:
    """Opens an object as ``open`` opens a file; see ``View.open``."""
    kinds, text = _mode_of(mode)
    if text and buffering == 0:
        raise ValueError("text is never without a buffer")
    if not text and (encoding is not None or errors is not None or newline is not None):
        raise ValueError("encoding, errors and newline are of text")
    if not commit and kinds[0] not in "wx":
        raise ValueError(f"commit=False is of a new object, and mode {mode!r} makes none")
    if text:
        # Before anything is made of it.
        io.TextIOWrapper(io.BytesIO(), encoding or "utf-8", errors, newline)
    raw = RawObject(view, key, kinds, attributes, commit)
    if buffering == 0:
        return raw
    size = BUFFER if buffering < 2 else buffering
    binary: io.BufferedIOBase
    if "+" in kinds:
        binary = ObjectFile(raw, size)
    elif kinds == "r":
        binary = ObjectReader(raw, size)
    else:
        binary = ObjectWriter(raw, size)
    if not text:
        return binary
    line = buffering == 1
    file = ObjectText(binary, encoding or "utf-8", errors, newline, line_buffering=line)
    file.mode = mode
    return file
