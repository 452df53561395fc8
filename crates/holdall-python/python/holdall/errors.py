"""Exceptions, each also of the class that Python's own files and mappings raise.

What the operating system refuses is ``OSError``, or the class of it that fits.
"""

from __future__ import annotations

import errno
import os
from typing import Any, ClassVar


class NotStoredWarning(ResourceWarning):
    """A new object was given up: its file was not closed, was closed while an exception was
    raised, or had a write that failed. Shown unless warnings are configured."""


class Error(Exception):
    """Of all that a store refuses or finds wrong.

    Those that are ``OSError`` have an ``errno``, and as ``filename`` the name or path that was
    asked for, if there is one.
    """

    _number: ClassVar[int | None] = None

    def __init__(self, *args: Any, filename: Any = None):
        super().__init__(*args)
        if self._number is not None:
            vars_of_os_error = (self._number, os.strerror(self._number), filename)
            for name, value in zip(("errno", "strerror", "filename"), vars_of_os_error):
                setattr(self, name, value)

    def __str__(self) -> str:
        # KeyError would show the text quoted, OSError with a number.
        return str(self.args[0]) if self.args else ""

    def __reduce__(self) -> Any:
        return _made, (type(self), self.args, getattr(self, "filename", None))


def _made(kind: type[Error], args: tuple[Any, ...], filename: Any) -> Error:
    return kind(*args, filename=filename)


class NotFoundError(Error, KeyError, FileNotFoundError):
    """There is no object, collection or store of that name."""

    _number = errno.ENOENT


class ExistsError(Error, FileExistsError):
    """Something has the name already."""

    _number = errno.EEXIST


class LockedError(Error, BlockingIOError):
    """Another process, or another handle in this one, has the store open."""

    _number = errno.EAGAIN


class BusyError(LockedError, TimeoutError):
    """A transaction of others was waited for as long as ``timeout`` allows, or for one second
    where its thread has ended; nothing was changed."""

    _number = errno.ETIMEDOUT


class ReadOnlyError(Error, PermissionError):
    """A change was asked of a snapshot, or of a store opened for reading."""

    _number = errno.EACCES


class CorruptError(Error):
    """Bytes on disk are not those that were written."""


class NotAStoreError(Error, ValueError):
    """The file is not a store, or one whose creation was cut short."""


class WrongLogError(Error):
    """The log beside the store is missing, not its own, or not to be opened; nothing was touched."""


class MovedError(Error):
    """The store's name, or its log's, no longer leads to its file; no change is taken."""


class UnsupportedError(Error):
    """The store has a format that this version does not know."""


class ConflictError(Error):
    """The object is not of the version that the change was asked for."""


class OutcomeUnknownError(Error):
    """Whether a change happened is not known; read the object again before you repeat it."""


class InvalidError(Error, ValueError):
    """An argument that cannot be used; nothing was changed."""


class OffsetError(InvalidError, OSError):
    """A place that a file cannot have: before the first byte, or beyond 2⁶³."""

    _number = errno.EINVAL


class FullError(Error, OSError):
    """The disk has no room or no inode, or the store has reached ``max_bytes``."""

    _number = errno.ENOSPC


class NotInBucketError(Error, NotImplementedError):
    """Stores in buckets have no such thing; the message says what to use."""


class PoisonedError(Error, OSError):
    """A write or sync failed before; open the store again."""

    _number = errno.EIO


class SnapshotTooOldError(Error):
    """The snapshot was given up for the space that it kept; take a new one."""


class ForkedError(Error, RuntimeError):
    """A process uses what its parent opened for writing before the fork."""
