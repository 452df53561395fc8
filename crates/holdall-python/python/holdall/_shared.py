"""Open stores that several users of one process share.

Owns: when a store is open and how. It is read through a handle that stays open, and written
through one that is open only while somebody writes, so that other processes are not kept out.
A file is known by its device and inode: links to it are the same store, and a file that takes
its place under the same path is another.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
import weakref
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from holdall import _store
from holdall._bucket import BucketStore, is_in_bucket
from holdall._store import Store, View
from holdall.errors import (
    BusyError,
    Error,
    InvalidError,
    MovedError,
    NotFoundError,
    NotInBucketError,
)

Identity = tuple[int, int]

#: Times that a file is looked for anew if another takes its place while it is opened.
TRIES = 10

_FILES: weakref.WeakValueDictionary[Identity, _File] = weakref.WeakValueDictionary()
_FILES_LOCK = threading.Lock()
_NUMBERS: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
_COUNT = itertools.count(1)


def number_of(store: Any) -> int:
    """A number that no other store object of this process has had."""
    return _NUMBERS.setdefault(store, next(_COUNT))


def checked(path: str) -> str:
    """The path, if it can be that of a store that is opened when it is needed."""
    if path == ":memory:":
        raise InvalidError("a store in memory has no path; give holdall.in_memory() itself")
    if not path or "\0" in path:
        raise InvalidError(f"{path!r} is no path of a store")
    return path


def identity(path: str | os.PathLike[str]) -> Identity | None:
    """The device and inode that a path leads to; None if it leads to nothing."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def _is_file(store: Store, file: Identity) -> bool:
    try:
        return not store.closed and store.source.is_own_file(*file)
    except (Error, ValueError):
        # It was closed meanwhile, or belongs to the process that forked this one.
        return False


class Wait:
    """A wait for others in this process, which has an end."""

    def __init__(self, timeout: float | None):
        self._begun = time.monotonic()
        self._timeout = timeout

    def on(self, condition: threading.Condition, what: str) -> None:
        """Waits until something may have changed; ``BusyError`` after the timeout."""
        # Now and then it is looked whether the thread that is waited for is still there.
        left = 1.0
        if self._timeout is not None:
            waited = time.monotonic() - self._begun
            if waited >= self._timeout:
                raise BusyError(f"waited {waited:.1f} s for {what}; allow more by timeout=")
            left = min(left, self._timeout - waited)
        condition.wait(left)


class _Replaced(Exception):
    """Another file has taken the path between the look at it and its opening."""


class _File:
    """One file, and how this process has it open."""

    def __init__(self, file: Identity):
        self.identity = file
        self.clear()

    def clear(self) -> None:
        """Forgets everything, as a child must after a fork."""
        self._own: Store | None = None
        # Weak, so that a use that an interrupt cut short is none.
        self._users: weakref.WeakSet[_Use] = weakref.WeakSet()
        self._left = False
        self._changed = threading.Condition()

    def _outside(self) -> Store | None:
        """A store that somebody else in this process has open for writing."""
        for store in Store._of_others():
            if _is_file(store, self.identity):
                return store
        return None

    def begin(self, use: _Use, path: str, options: dict[str, Any], wait: Wait) -> Store:
        """The open store, until `end`."""
        outside = self._outside()
        if outside is not None:
            return outside
        with self._changed:
            if use.write:
                while self._own is not None and self._own.read_only and self._users:
                    wait.on(self._changed, f"calls that read store {path}")
            store = self._open(path, options, use.write)
            self._users.add(use)
            self._left = False
            return store

    def end(self, use: _Use) -> None:
        """Ends a use."""
        with self._changed:
            self._users.discard(use)
            if self._own is not None and not self._users:
                if self._left or not self._own.read_only:
                    self._close()
            self._changed.notify_all()

    def _open(self, path: str, options: dict[str, Any], write: bool) -> Store:
        if self._own is not None and (not write or not self._own.read_only):
            return self._own
        self._close()
        own = Store._unlisted(path, "r+" if write else "r", options)
        if not own.source.is_own_file(*self.identity):
            own.close()
            raise _Replaced
        self._own = own
        return own

    def take(self, made: Store) -> None:
        """Takes over the handle that made the file, for the use that follows."""
        with self._changed:
            self._close()
            self._own = made

    def _close(self) -> None:
        if self._own is not None:
            own, self._own = self._own, None
            own.close()

    def release(self) -> bool:
        """Closes what is open, if it is in use after its last use; tells whether it did."""
        with self._changed:
            if self._own is None or self._users:
                self._left = True
                return False
            self._close()
            return True

    def leave(self) -> None:
        """Closes what is open, now or after its last use: nobody needs it for long."""
        with self._changed:
            self._left = True
            if not self._users:
                self._close()


class _Use:
    """The open store, for the length of a block."""

    __slots__ = ("__weakref__", "_file", "_make", "_shared", "write")

    def __init__(self, shared: Shared, write: bool, make: bool):
        self._shared, self.write, self._make = shared, write, make
        self._file: _File | None = None

    def __enter__(self) -> Store:
        shared = self._shared
        for _ in range(TRIES):
            self._file = file = shared._find(self._make)
            try:
                store = file.begin(self, shared.path, shared.options, shared.wait())
            except _Replaced:
                continue
            return shared._limited(store) if self.write else store
        raise MovedError(f"another file takes the place of {shared.path} again and again")

    def __exit__(self, *_: object) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.end(self)

    def __del__(self) -> None:
        # Of a file that was dropped, not closed.
        self.__exit__()


class Shared:
    """A store by its path, or one that somebody else has open.

    The options are for the times when this one opens the file; if it is open already, they wait.
    `timeout` is of this one's changes, whoever opened it.
    """

    def __init__(self, path: str, options: dict[str, Any], given: Store | None = None):
        timeout = options.get("timeout")
        if timeout is not None and not 0 <= timeout:
            raise ValueError(f"timeout: {timeout!r} is no number of seconds")
        #: None as long as it takes, or for a given store what that was opened with.
        self.timeout: float | None = timeout
        self.path = path
        # File systems and zarr need names as text.
        self.options = options | {"keys": "str"} if options.get("keys") == "bytes" else options
        self.given = given
        self._file: _File | None = None

    @staticmethod
    def of(path: str | os.PathLike[str] | BucketStore, options: dict[str, Any]) -> Shared:
        """Of a path, which stays the same file if the process changes its folder."""
        if isinstance(path, BucketStore) or is_in_bucket(path):
            raise NotInBucketError(
                f"{path} is no file; a store in a bucket is reached by holdall.open, by fo= of "
                "holdall's file system, and from zarr through that"
            )
        return Shared(os.path.abspath(checked(os.fsdecode(path))), options)

    @staticmethod
    def of_store(store: Store, options: dict[str, Any] | None = None) -> Shared:
        """Of an open store, which stays the caller's to close."""
        options = options or {}
        others = sorted(set(options) - {"timeout"})
        if others:
            text = f"{', '.join(others)}: the store is open, and only opening it takes options"
            raise TypeError(text)
        if options.get("timeout") is None:
            options = {"timeout": store.source.options.get("timeout")}
        # One in memory has no path that leads to it.
        return Shared(store.path if os.path.isabs(store.path) else "", options, store)

    def wait(self) -> Wait:
        """A wait that begins now."""
        return Wait(self.timeout)

    def _limited(self, store: Store) -> Store:
        """The store, whose changes wait as long as this one's."""
        if self.timeout is None or self.timeout == store.source.options.get("timeout"):
            return store
        return store._with_timeout(self.timeout)

    def __str__(self) -> str:
        if self.given is not None and not self.path:
            return f"memory-{number_of(self.given)}"
        return self.path

    def identity(self) -> Identity | None:
        """The device and inode of its file; None if there is none."""
        return identity(self.path) if self.path else None

    def is_same(self, other: Shared) -> bool:
        """Whether both lead to one store."""
        if not self.path or not other.path:
            return self.given is other.given
        mine, its = identity(self.path), identity(other.path)
        return mine == its if mine and its else self.path == other.path

    def reading(self) -> AbstractContextManager[View]:
        """The store, for one call."""
        return self._use(write=False, make=False)

    def writing(self, make: bool = True) -> AbstractContextManager[Store]:
        """The store, for as long as something is written; made if it is missing, with `make`."""
        return self._use(write=True, make=make)

    def _use(self, write: bool, make: bool) -> AbstractContextManager[Store]:
        if self.given is None:
            return _Use(self, write, make)
        store = self.given._with_text()
        return nullcontext(self._limited(store) if write else store)

    def _find(self, make: bool) -> _File:
        """The file that the path leads to now."""
        before, found = self._file, identity(self.path)
        if before is not None and before.identity == found:
            return before
        with _FILES_LOCK:
            found, made = identity(self.path), None
            if found is None:
                if not make:
                    raise NotFoundError(f"not found: store {self.path}")
                # Who finds the file waits here, and then finds its handle too.
                made = Store._unlisted(self.path, "a", self.options)
                found = identity(self.path)
                if found is None:
                    raise MovedError(f"{self.path} is gone again after it was made")
            file = _FILES.get(found)
            if file is None:
                file = _FILES[found] = _File(found)
            if made is not None:
                file.take(made)
            self._file = file
        if before is not None:
            # Nothing leads to it by this path any more.
            before.leave()
        return file

    def release(self) -> bool:
        """Closes what is open and not in use; tells whether it did."""
        return self._file is not None and self._file.release()


def _release(path: str) -> bool:
    found = identity(path)
    file = _FILES.get(found) if found else None
    return file is not None and file.release()


def _after_fork() -> None:
    # The parent's locks may be held for ever, and its stores are not this process's.
    global _FILES_LOCK
    _FILES_LOCK = threading.Lock()
    for file in list(_FILES.values()):
        file.clear()


_store._RELEASERS.append(_release)
os.register_at_fork(after_in_child=_after_fork)
