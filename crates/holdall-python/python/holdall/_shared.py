"""Open stores that several users of one process share.

Owns: when a store is open and how. It is read through a handle that stays open, and written
through one that is open only while somebody writes, so that other processes are not kept out.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from holdall import _store
from holdall._store import Store, View

_ALL: dict[str, Shared] = {}
_ALL_LOCK = threading.Lock()


class Shared:
    """A store by its path, or one that somebody else has open."""

    def __init__(self, path: str, options: dict[str, Any], given: Store | None = None):
        self.path = path
        self.options = options
        self._given = given
        self._clear()

    def _clear(self) -> None:
        self._own: Store | None = None
        self._using = 0
        self._writing = 0
        self._changed = threading.Condition()

    @staticmethod
    def of(path: str, options: dict[str, Any]) -> Shared:
        """The one of this path in this process; options are those of the first who asks."""
        path = os.path.abspath(path)
        with _ALL_LOCK:
            return _ALL.setdefault(path, Shared(path, options))

    def _outside(self, write: bool) -> Store | None:
        """One that somebody else in this process has open."""
        store = self._given or _store._WRITERS.get(self.path)
        usable = store is not None and not store.closed and not (write and store.read_only)
        return store if usable or store is self._given else None

    @contextmanager
    def reading(self) -> Iterator[View]:
        """The store, for one call."""
        with self._use(write=False) as store:
            yield store

    @contextmanager
    def writing(self) -> Iterator[Store]:
        """The store, for as long as something is written; made where it is missing."""
        with self._use(write=True) as store:
            yield store

    @contextmanager
    def _use(self, write: bool) -> Iterator[Store]:
        store = self._outside(write)
        if store is not None:
            yield store
            return
        with self._changed:
            if write:
                # Calls of others that read are short.
                while self._own is not None and self._own.read_only and self._using:
                    self._changed.wait()
                self._open("a")
                self._writing += 1
            elif self._own is None:
                self._open("r")
            self._using += 1
            store = self._own
        assert store is not None
        try:
            yield store
        finally:
            with self._changed:
                self._using -= 1
                if write:
                    self._writing -= 1
                    if not self._using and not self._writing:
                        self._close()
                elif not self._using and not store.read_only and not self._writing:
                    self._close()
                self._changed.notify_all()

    def _open(self, mode: str) -> None:
        if self._own is not None and (mode == "r" or not self._own.read_only):
            return
        self._close()
        self._own = Store._unlisted(self.path, mode, self.options)

    def _close(self) -> None:
        if self._own is not None:
            self._own.close()
            self._own = None

    def release(self) -> bool:
        """Closes what is open and not in use; tells whether it did."""
        with self._changed:
            if self._own is None or self._using or self._writing:
                return False
            self._close()
            return True


def _release(path: str) -> bool:
    shared = _ALL.get(path)
    return shared is not None and shared.release()


def _after_fork() -> None:
    # The parent's locks may be held for ever, and its stores are not this process's.
    global _ALL_LOCK
    _ALL_LOCK = threading.Lock()
    for shared in _ALL.values():
        shared._clear()


_store._RELEASERS.append(_release)
os.register_at_fork(after_in_child=_after_fork)
