"""Objects of a store as files of fsspec.

Owns: what is made of a file that was not closed in peace. A new object that failed, was dropped,
or was closed while an exception was raised does not appear, whatever wraps the file.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any

from fsspec.spec import AbstractBufferedFile  # type: ignore[import-untyped, unused-ignore]

from holdall._files import ObjectFile, ObjectReader, ObjectWriter, RawObject
from holdall._shared import Identity
from holdall._store import View
from holdall.errors import ConflictError, OffsetError

if TYPE_CHECKING:
    from holdall._fstransaction import Work
    from holdall.fsspec import HoldallFileSystem

NEW = ("w", "x", "w+", "x+")


class Reading(io.RawIOBase):
    """An object read through a store that others may open anew meanwhile."""

    mode = "rb"

    def __init__(
        self, use: Callable[[], AbstractContextManager[View]], name: str, file: Identity | None
    ):
        self._use = use
        self._file = file
        with use() as view:
            info = view.info(name)
        self._oid, self._version = info.oid, info.version
        self.size = info.size
        self._at = 0
        self._view: View | None = None
        self.name = name

    @property
    def oid(self) -> Any:
        return self._oid

    def readable(self) -> bool:
        self._check_open()
        return True

    def seekable(self) -> bool:
        self._check_open()
        return True

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file")

    def tell(self) -> int:
        self._check_open()
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        self._check_open()
        if whence not in (0, 1, 2):
            raise OffsetError(f"whence is 0, 1 or 2, not {whence}")
        at = offset + (0, self._at, self.size)[whence]
        if not 0 <= at < 1 << 63:
            raise OffsetError(f"a seek to byte {at}, which a file cannot have")
        self._at = at
        return at

    def _check(self, view: View) -> None:
        """Raises if the object is not the one that was opened."""
        if view is self._view and getattr(view, "read_only", False):
            return
        try:
            same = view.info(self._oid).version == self._version
            if self._file is not None and view is not self._view:
                # Another store may have an object of this id and version.
                same = same and view.source.is_own_file(*self._file)
        except KeyError:
            same = False
        if not same:
            raise ConflictError(f"{self.name!r} was changed while it was read")
        self._view = view

    def readinto(self, buffer: Any) -> int:
        self._check_open()
        with self._use() as view:
            self._check(view)
            n = view.read_into(self._oid, buffer, self._at)
        self._at += n
        return n

    def readall(self) -> bytes:
        self._check_open()
        with self._use() as view:
            self._check(view)
            found = view.get_range(self._oid, self._at) or b""
        self._at += len(found)
        return found


class Reader(ObjectReader):
    """An object open for reading, with what fsspec asks of files."""

    def __init__(self, raw: Reading, buffer: int, fs: HoldallFileSystem, path: str):
        super().__init__(raw, buffer)
        self.fs = fs
        self.path = path
        self.size = raw.size
        self.blocksize = buffer

    @property
    def full_name(self) -> str:
        """The URL of the object."""
        return self.fs.unstrip_protocol(self.path)  # type: ignore[no-any-return, unused-ignore]


class Blocks(AbstractBufferedFile):  # type: ignore[misc, unused-ignore]
    """An object read through one of fsspec's caches of blocks."""

    def __init__(self, raw: Reading, fs: HoldallFileSystem, path: str, **kwargs: Any):
        self._source = raw
        kwargs["size"] = raw.size
        super().__init__(fs, path, "rb", **kwargs)

    def _fetch_range(self, start: int, end: int) -> bytes:
        self._source.seek(start)
        wanted = bytearray(max(0, end - start))
        return bytes(wanted[: self._source.readinto(wanted)])


class Raw(RawObject):
    """An object that is written, beside other changes or as a part of a transaction."""

    def __init__(self, fs: HoldallFileSystem, name: str, mode: str, autocommit: bool = True):
        is_new = mode in NEW
        self._autocommit = autocommit or not is_new
        self.pending = False
        self._fs = fs
        self._stack = ExitStack()
        self._work: Work | None = self._stack.enter_context(fs._joined())
        view: Any = self._work.tx if self._work else self._stack.enter_context(fs._writing())
        try:
            super().__init__(view, name, mode, None)
        except BaseException:
            self._stack.close()
            raise
        if self._work:
            self._work.files.append(self)
        self.when_closed = self._ended
        # The use of the transaction is one call long, that of a store until the file is closed.
        if self._work:
            self._stack.close()

    def _ended(self, keep: bool) -> None:
        if keep and not self._autocommit:
            self.pending = True
        else:
            self.settle(keep)

    def settle(self, keep: bool) -> None:
        """Makes what was written an object, or drops it."""
        self.pending = False
        with self._stack:
            if self._work is not None:
                if self in self._work.files:
                    self._work.files.remove(self)
                self.close_into(None, keep)
                return
            with self._fs._joined() as work:
                if work is not None:
                    # Closed inside a transaction, it is a part of it.
                    self.close_into(work.tx.source if keep else None, keep)
                else:
                    self.close_into(None, keep)

    def commit_by(self, close: Callable[[], None]) -> None:
        """Makes the object; `close` closes the file and what wraps it."""
        self.will_commit()
        close()
        if self.pending:
            self.settle(True)

    def discard_by(self, close: Callable[[], None]) -> None:
        """Makes no object."""
        self.give_up()
        # What wrappers still write is for nobody.
        self.closing = True
        close()
        if self.pending:
            self.settle(False)

    def __del__(self) -> None:
        if getattr(self, "pending", False):
            # The collector may have closed the store before.
            with suppress(ValueError):
                self.settle(False)
            self.warn("was neither committed nor discarded, and is not stored")
        super().__del__()


class _Ends:
    """What writers have beside those of a store: fsspec's ends."""

    fs: HoldallFileSystem
    path: str
    raw: Any

    def commit(self) -> None:
        """Closes the file and makes the object, also of one opened with ``autocommit=False``."""
        self.raw.commit_by(self.close)  # type: ignore[attr-defined]

    def discard(self) -> None:
        """Closes the file and makes no object."""
        self.raw.discard_by(self.close)  # type: ignore[attr-defined]


class Writer(_Ends, ObjectWriter):
    """An object open for writing."""

    def __init__(self, raw: Raw, buffer: int, fs: HoldallFileSystem, path: str):
        super().__init__(raw, buffer)
        self.fs, self.path = fs, path


class ReadWriter(_Ends, ObjectFile):
    """An object open for reading and writing."""

    def __init__(self, raw: Raw, buffer: int, fs: HoldallFileSystem, path: str):
        super().__init__(raw, buffer)
        self.fs, self.path = fs, path


class Text(io.TextIOWrapper):
    """A file as text; its block gives a new object up if it raises, as a binary one does."""

    mode: str

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self.closed and isinstance(self.buffer, _Ends):
            self.buffer.raw.closing = True
            self.buffer.raw.block_ended(kind is None)
        self.close()

    def commit(self) -> None:
        """As of the file below."""
        if not self.closed:
            self.flush()
        self.buffer.commit()  # type: ignore[attr-defined]

    def discard(self) -> None:
        """As of the file below."""
        self.buffer.discard()  # type: ignore[attr-defined]


def close_both(outer: Any, inner: Writer | ReadWriter) -> Any:
    """Lets the end of a compressed file be that of the file it is written to."""
    close = outer.close

    def closed() -> None:
        if getattr(outer, "_finalizing", False):
            inner.raw._dropped = True
        try:
            close()
        except BaseException:
            inner.raw.give_up()
            raise
        finally:
            inner.close()

    outer.close = closed
    outer.commit = lambda: inner.raw.commit_by(outer.close)
    outer.discard = lambda: inner.raw.discard_by(outer.close)
    # Text around it calls this when it is collected, and then `close`.
    outer._dealloc_warn = inner.raw._dealloc_warn
    return outer
