"""Stores in buckets as file systems of fsspec, which the class of those in files leads to.

Each change is of one object: a call of many changes makes one after the other, and one that fails
half way leaves what it did. There are no transactions.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fsspec.spec import AbstractFileSystem  # type: ignore[import-untyped, unused-ignore]

from holdall._bucket import BucketInfo, BucketStore, is_in_bucket
from holdall._bucketshared import SharedBucket
from holdall._fsfiles import Reading
from holdall._store import View
from holdall.errors import NotInBucketError
from holdall.fsspec import HoldallFileSystem


class _Reading(Reading):
    """One version of an object in a bucket."""

    def __init__(self, store: BucketStore, name: str):
        io.RawIOBase.__init__(self)
        self._raw = store.open_raw(name, "r")
        self.size = self._raw.size()
        self._at = 0
        self.name = name

    @property
    def oid(self) -> Any:
        return None

    def readinto(self, buffer: Any) -> int:
        self._check_open()
        self._raw.seek(self._at, 0)
        n: int = self._raw.readinto(buffer)
        self._at += n
        return n

    def readall(self) -> bytes:
        self._check_open()
        self._raw.seek(self._at, 0)
        found: bytes = self._raw.readall()
        self._at += len(found)
        return found


class HoldallBucketFileSystem(HoldallFileSystem):
    """The objects of a store in a bucket as files.

    ``fo`` is ``s3://BUCKET/PREFIX``, with the options ``endpoint``, ``region``, ``profile`` and
    ``remote``, or a ``BucketStore`` that is open. The store must be there.
    """

    in_file = False
    _shared: SharedBucket

    def _open_elsewhere(self, fo: Any, options: dict[str, Any]) -> bool:
        if not isinstance(fo, BucketStore) and not is_in_bucket(fo):
            raise ValueError("name a store: fo='s3://BUCKET/PREFIX'")
        self._shared = SharedBucket(fo, options, self.mode == "r")
        return True

    def to_dict(self, **kwargs: Any) -> dict[str, Any]:
        """What makes the file system anew, also as JSON; one of an open store has nothing."""
        if self._shared._given is not None:
            raise TypeError("a file system of an open store cannot be written down; give its place")
        return AbstractFileSystem.to_dict(self, **kwargs)  # type: ignore[no-any-return, unused-ignore]

    def start_transaction(self) -> Any:
        """Not in a bucket."""
        raise NotInBucketError(
            "a store in a bucket has no transactions over several objects; write to other names and "
            "rename, or keep a store file"
        )

    @property
    def transaction(self) -> Any:
        """Not in a bucket."""
        return self.start_transaction()

    @contextmanager
    def _atomic(self, make: bool = True) -> Iterator[View]:
        """Where a call makes its changes: each is one."""
        with self._store(make) as store:
            yield store

    def _told(self, before: str, info: BucketInfo) -> dict[str, Any]:
        return {
            "name": before + info.name,
            "size": info.size,
            "type": "file",
            "version": info.version,
            "modified": info.modified,
            "created": info.created,
        }

    def _info(self, store: Any, before: str, name: str) -> dict[str, Any]:
        return self._told(before, store.info(name))

    def _entries(self, store: Any, before: str, found: dict[str, bool]) -> list[dict[str, Any]]:
        """As of the class of files; many objects are asked for at once."""
        files = store.info_many([name for name, folder in found.items() if not folder])
        told = {info.name: self._told(before, info) for info in files}
        # One that was removed meanwhile is none.
        each = (
            self._entry(store, before, name, True) if folder else told.get(name)
            for name, folder in found.items()
        )
        return [entry for entry in each if entry is not None]

    def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        before, name = self._form(path)
        with self._reading() as store:
            for info in store.info_many([name]) if name else ():  # type: ignore[attr-defined]
                return self._told(before, info)
        return super().info(path, **kwargs)

    def _rename(self, view: Any, source: str, target: str) -> None:
        view.rename(source, target, replace=True)

    def _opened(self, name: str) -> Reading:
        return _Reading(self._shared.store(), name)

    def _open(self, path: str, mode: str = "rb", *args: Any, **kwargs: Any) -> Any:
        if "+" in mode and mode[:1] in ("w", "x"):
            raise NotInBucketError(f"mode {mode!r}: write the object with 'wb', then edit it with 'r+b'")
        return super()._open(path, mode, *args, **kwargs)
