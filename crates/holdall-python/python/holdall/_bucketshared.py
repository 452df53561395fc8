"""Stores in buckets that file systems use: opened when they are first needed."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from holdall._bucket import BucketStore, reach_of
from holdall._shared import Identity, Shared


class SharedBucket(Shared):
    """A store in a bucket by its address, or one that somebody else has open."""

    def __init__(
        self, fo: str | BucketStore, options: dict[str, Any], read_only: bool
    ):
        given = fo if isinstance(fo, BucketStore) else None
        if given is not None and options:
            raise TypeError(
                f"{', '.join(sorted(options))}: the store is open, and only opening it takes options"
            )
        reach_of(options)
        super().__init__("", {})
        self._place = given.path if given is not None else str(fo)
        self._reach = options
        self._mode = "r" if read_only else "r+"
        self._given, self._own = given, None
        self._opening = threading.Lock()

    _own: BucketStore | None

    def store(self) -> BucketStore:
        """The open store. One in a bucket is not made by the way: the server is to be asked first."""
        if self._given is not None:
            return self._given
        with self._opening:
            if self._own is None:
                self._own = BucketStore(self._place, self._mode, **self._reach)
            return self._own

    def __str__(self) -> str:
        return self._place

    def identity(self) -> Identity | None:
        """None would say that there is no store."""
        return 0, 0

    def is_same(self, other: Shared) -> bool:
        return isinstance(other, SharedBucket) and other._place == self._place

    def _use(self, write: bool, make: bool) -> AbstractContextManager[Any]:
        return nullcontext(self.store())

    def release(self) -> bool:
        with self._opening:
            own, self._own = self._own, None
        if own is not None:
            own.close()
        return own is not None
