"""Transactions of fsspec: changes of a file system that are one commit.

Owns: `Work`, which is the engine's transaction with the files that are written to it. A block of
``fs.transaction`` has one for its length, which calls of all threads use; a call that makes many
changes has one of its own.
"""

from __future__ import annotations

import threading
from collections import deque
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from fsspec.transaction import (  # type: ignore[import-untyped, unused-ignore]
    Transaction as FsTransaction,
)

from holdall._fsfiles import Raw
from holdall.errors import InvalidError

if TYPE_CHECKING:
    from holdall._store import Transaction
    from holdall.fsspec import HoldallFileSystem


class Work:
    """A transaction of the engine, and the files that are open in it."""

    def __init__(self, fs: HoldallFileSystem, make: bool = True):
        self.files: list[Raw] = []
        #: What failed half way; then nothing is committed.
        self.spoilt: BaseException | None = None
        self._wait = fs._shared.wait
        #: Threads, once for each of their calls.
        self._calls: list[threading.Thread] = []
        self._ended = False
        self._changed = threading.Condition()
        self._stack = ExitStack()
        store = self._stack.enter_context(fs._store(make))
        try:
            self.tx: Transaction = store.transaction(fs._shared.timeout)
        except BaseException:
            self._stack.close()
            raise

    def enter(self) -> bool:
        """Begins a call; false after the end."""
        with self._changed:
            if not self._ended:
                self._calls.append(threading.current_thread())
            return not self._ended

    def leave(self) -> None:
        """Ends a call."""
        with self._changed:
            self._calls.remove(threading.current_thread())
            self._changed.notify_all()

    def _others(self) -> bool:
        """Whether other threads are in a call. One of this thread was cut short."""
        me = threading.current_thread()
        return any(thread is not me and thread.is_alive() for thread in self._calls)

    def end(self, commit: bool) -> None:
        """Commits everything, or nothing."""
        with self._stack:
            try:
                with self._changed:
                    self._ended = True
                    wait = self._wait()
                    while self._others():
                        wait.on(self._changed, "calls of other threads in the transaction")
                left = list(self.files)
                for raw in left:
                    raw.give_up()
                    raw.close()
                if commit:
                    self._check(left)
                    self.tx.commit()
            finally:
                # After a commit this does nothing.
                self.tx.abort()

    def _check(self, left: list[Raw]) -> None:
        if self.spoilt is not None:
            text = f"nothing was committed, as a call failed half way: {self.spoilt}"
            raise InvalidError(text) from self.spoilt
        if left:
            names = ", ".join(repr(raw.name) for raw in left)
            text = f"nothing was committed, as files were still open: {names}; close them before"
            raise InvalidError(text)


class HoldallTransaction(FsTransaction):  # type: ignore[misc, unused-ignore]
    """A block whose changes are one commit, and whose reads see them."""

    fs: HoldallFileSystem

    def start(self) -> None:
        """Begins it; waits for one of another thread."""
        self.fs._take_turn()
        try:
            self.fs._block = Work(self.fs)
        except BaseException:
            self.fs._transaction = None
            self.fs._end_turn()
            raise
        self.files: deque[Any] = deque()
        self.fs._intrans = True
        self.fs._transaction = self

    def complete(self, commit: bool = True) -> None:
        """Ends it. Whatever happens, the file system is then as before."""
        fs = self.fs
        block, fs._block = fs._block, None
        if block is None:
            raise InvalidError("there is no transaction to end")
        fs._intrans = False
        fs._transaction = None
        try:
            block.end(commit)
        finally:
            fs._end_turn()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.complete(commit=kind is None)
