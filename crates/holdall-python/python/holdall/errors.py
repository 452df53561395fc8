"""Exceptions, each also of the class that Python's own files and mappings raise.

What the operating system refuses is ``OSError``, or the class of it that fits.
"""

from __future__ import annotations


class Error(Exception):
    """Of all that a store refuses or finds wrong."""

    def __str__(self) -> str:
        # KeyError would show the text quoted, OSError with a number.
        return str(self.args[0]) if self.args else ""


class NotFoundError(Error, KeyError, FileNotFoundError):
    """There is no object, collection or store of that name."""


class ExistsError(Error, FileExistsError):
    """Something has the name already."""


class LockedError(Error, BlockingIOError):
    """Another process, or another handle in this one, has the store open."""


class ReadOnlyError(Error, PermissionError):
    """A change was asked of a snapshot, or of a store opened for reading."""


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


class InvalidError(Error, ValueError):
    """An argument that cannot be used; nothing was changed."""


class FullError(Error, OSError):
    """The disk has no room or no inode, or the store has reached ``max_bytes``."""


class PoisonedError(Error, OSError):
    """A write or sync failed before; open the store again."""


class SnapshotTooOldError(Error):
    """The snapshot was given up for the space that it kept; take a new one."""


class ForkedError(Error, RuntimeError):
    """A process uses what its parent opened for writing before the fork."""
