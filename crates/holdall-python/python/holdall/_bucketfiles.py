"""What files of objects in a bucket stand on, below the classes for ``io``.

A file that is read has one version. One that is written anew is sent from front to back. One that is
edited gathers edits and makes them one change of the version that it was opened with, or that its
last change left; one that is appended to puts its bytes behind the last one, whatever others did.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from holdall.errors import ConflictError, ExistsError, ForkedError, InvalidError, OffsetError

if TYPE_CHECKING:
    from holdall._bucket import BucketStore, Name
    from holdall._core import BucketObject

#: Bytes that a file reads at once that is read on and on.
MOST_AHEAD = 16 << 20
#: Bytes of edits that are gathered, and how many edits.
MOST_GATHERED = 8 << 20
MOST_EDITS = 1000


class _Ahead:
    """Reads a version, more at a time the longer it is read on."""

    def __init__(self, found: BucketObject):
        self.found = found
        self._start, self._bytes = 0, b""
        self._next = 0

    def read(self, at: int, length: int) -> memoryview:
        """The bytes from a place on; fewer at the end."""
        end = min(at + length, self.found.size)
        if at >= end:
            return memoryview(b"")
        if not self._start <= at <= end <= self._start + len(self._bytes):
            goes_on = at == self._start + len(self._bytes)
            self._next = min(max(2 * self._next, 4 * length), MOST_AHEAD) if goes_on else 0
            self._bytes = self.found.read(at, max(end, at + self._next))
            self._start = at
        return memoryview(self._bytes)[at - self._start : end - self._start]


class _Raw:
    """A position in an object, and what files ask."""

    #: Whether any place can be sought.
    seeks = True
    #: Objects in a bucket have no ids.
    oid = None

    def __init__(self) -> None:
        self._at = 0
        self._process = os.getpid()

    def size(self) -> int:
        raise NotImplementedError

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int) -> int:
        if whence not in (0, 1, 2):
            raise OffsetError(f"whence {whence} is not 0, 1 or 2")
        at = offset + (0 if whence == 0 else self._at if whence == 1 else self.size())
        if not 0 <= at < 1 << 63:
            raise OffsetError(f"a seek to byte {at}, which a file cannot have")
        self._at = at
        return at

    def _ahead(self) -> _Ahead:
        raise io.UnsupportedOperation("File not open for reading")

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        found = self._ahead().read(self._at, len(view))
        view[: len(found)] = found
        self._at += len(found)
        return len(found)

    def readall(self) -> bytes:
        found = self._ahead().found
        data = found.read(self._at, found.size) if self._at < found.size else b""
        self._at += len(data)
        return data

    def flush(self) -> None:
        """Makes what was gathered a change."""

    def _is_own(self) -> bool:
        """Whether this process opened it: a child has it by a fork, and the parent goes on with it."""
        return self._process == os.getpid()

    def close(self, keep: bool, transaction: Any = None) -> None:
        if self._is_own():
            self._end(keep)

    def _end(self, keep: bool) -> None:
        self.flush()


class Reading(_Raw):
    """One version of an object."""

    def __init__(self, store: BucketStore, name: Name):
        super().__init__()
        self._whole = _Ahead(store.open_object(name))

    def size(self) -> int:
        return self._whole.found.size

    def _ahead(self) -> _Ahead:
        return self._whole


class Sending(_Raw):
    """A new object, which appears when it is closed."""

    seeks = False

    def __init__(
        self, store: BucketStore, name: Name, attributes: dict[str, bytes] | None, exclusive: bool
    ):
        super().__init__()
        if exclusive and name in store:
            raise ExistsError(f"exists already: object {name!r}")
        self._writer = store.writer(name, attributes, exclusive)

    def size(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int) -> int:
        before = self._at
        if super().seek(offset, whence) != before:
            self._at = before
            raise self._front_to_back()
        return before

    def _front_to_back(self) -> io.UnsupportedOperation:
        return io.UnsupportedOperation(
            "an object goes into a bucket from front to back; write it whole, then edit it with 'r+'"
        )

    def write(self, data: Any) -> int:
        self._writer.push(data)
        size = memoryview(data).nbytes
        self._at += size
        return size

    def truncate(self, size: int) -> int:
        if size != self._at:
            raise self._front_to_back()
        return size

    def insert(self, data: Any) -> int:
        return self.write(data)

    def delete(self, length: int) -> int:
        return 0

    def _end(self, keep: bool) -> None:
        if keep:
            self._writer.finish()
        else:
            self._writer.give_up()


class _Gathering(_Raw):
    """Edits that become one change."""

    #: Whether edits are sent again after an error, by which they may have happened.
    repeats = True

    def __init__(self, store: BucketStore, name: Name, found: BucketObject):
        super().__init__()
        self._store, self._name = store, name
        self._found: _Ahead | None = _Ahead(found)
        self._version, self._size = found.version, found.size
        self._edits: list[tuple[Any, ...]] = []
        self._gathered = 0

    def size(self) -> int:
        return self._size

    def _ahead(self) -> _Ahead:
        self.flush()
        if self._found is None:
            self._found = _Ahead(self._opened())
        return self._found

    def _opened(self) -> BucketObject:
        return self._store.open_object(self._name)

    def _make_room(self, size: int = 0) -> None:
        """Sends what was gathered before more is taken: who gets an error gives it again."""
        if self._gathered + size > MOST_GATHERED or len(self._edits) >= MOST_EDITS:
            self.flush()

    def _gather(self, *edit: Any, size: int = 0) -> None:
        self._edits.append(edit)
        self._gathered += size

    def _send(self, edits: list[tuple[Any, ...]]) -> None:
        raise NotImplementedError

    def flush(self) -> None:
        if self._edits:
            if not self._is_own():
                raise ForkedError("the file was opened before a fork; open it again")
            edits = self._edits
            if not self.repeats:
                self._edits, self._gathered = [], 0
            self._send(edits)
            self._edits, self._gathered, self._found = [], 0, None


class Editing(_Gathering):
    """An object that is edited, as long as nobody else does."""

    def __init__(self, store: BucketStore, name: Name):
        super().__init__(store, name, store.open_object(name))

    def _opened(self) -> BucketObject:
        found = super()._opened()
        if found.version != self._version:
            raise ConflictError(f"object {self._name!r} was changed by others while it was edited")
        return found

    def _send(self, edits: list[tuple[Any, ...]]) -> None:
        self._version = self._store.edit_if(self._name, edits, self._version)

    def write(self, data: Any) -> int:
        copy = bytes(data)
        if copy:
            self._make_room(len(copy))
            at, self._at = self._at, self._at + len(copy)
            self._size = max(self._size, self._at)
            self._gather("write_at", at, copy, size=len(copy))
        return len(copy)

    def truncate(self, size: int) -> int:
        self._make_room()
        self._size = size
        self._gather("truncate", size)
        return size

    def insert(self, data: Any) -> int:
        copy = bytes(data)
        if self._at > self._size:
            raise InvalidError(f"bytes inserted at {self._at} of an object of {self._size}")
        self._make_room(len(copy))
        at, self._at = self._at, self._at + len(copy)
        self._size += len(copy)
        self._gather("insert", at, copy, size=len(copy))
        return len(copy)

    def delete(self, length: int) -> int:
        if length < 0:
            raise InvalidError(f"{length} bytes cannot be deleted")
        end = min(self._at + length, self._size)
        if end <= self._at:
            return 0
        self._make_room()
        self._size -= end - self._at
        self._gather("delete_range", self._at, end)
        return end - self._at


class Appending(_Gathering):
    """An object to whose end bytes go, also while others put some there."""

    repeats = False

    def __init__(self, store: BucketStore, name: Name, attributes: Mapping[str, bytes] | None):
        if name not in store:
            try:
                store.put(name, b"", attributes=attributes, exclusive=True)
            except ExistsError:
                # Others were first.
                pass
        super().__init__(store, name, store.open_object(name))
        self._at = self._size

    def _send(self, edits: list[tuple[Any, ...]]) -> None:
        self._size = self._store.edit(self._name, edits)

    def _opened(self) -> BucketObject:
        found = super()._opened()
        self._size = found.size
        return found

    def write(self, data: Any) -> int:
        copy = bytes(data)
        if copy:
            self._make_room(len(copy))
            self._size += len(copy)
            self._at = self._size
            self._gather("append", copy, size=len(copy))
        return len(copy)

    def truncate(self, size: int) -> int:
        raise self._at_end()

    def insert(self, data: Any) -> int:
        raise self._at_end()

    def delete(self, length: int) -> int:
        raise self._at_end()

    def _at_end(self) -> io.UnsupportedOperation:
        return io.UnsupportedOperation("mode 'a' changes the end alone; open it with 'r+'")
