"""Stores of small objects behind one face: Holdall, LMDB, SQLite, files, HDF5.

Each is used as its own documentation advises: readers hold one state open, writers use the bulk
call where there is one, and a write ends with what was written on the disk.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import h5py
import lmdb
import numpy as np

import holdall

Items = Sequence[tuple[str, bytes]]


class Reader(Protocol):
    """A state that is open for reading."""

    def get(self, key: str) -> bytes: ...
    def get_many(self, keys: Sequence[str]) -> Iterable[bytes]: ...


class Ordered(Reader, Protocol):
    """A state whose objects can be walked in the order of their keys."""

    def items(self) -> Iterable[tuple[str | bytes, bytes]]: ...


class Peer(Protocol):
    """One way to keep objects."""

    name: str

    def put_many(self, path: Path, items: Items) -> None:
        """Makes a store and puts all objects, durable, in one transaction where it has any."""

    def reading(self, path: Path) -> contextlib.AbstractContextManager[Reader]:
        """Opens it for reading."""


class OrderedPeer(Peer, Protocol):
    """One that keeps its keys in order."""

    def reading(self, path: Path) -> contextlib.AbstractContextManager[Ordered]:
        """Opens it for reading."""


class Loop:
    """Reading many by reading each."""

    def get(self, key: str) -> bytes:
        raise NotImplementedError

    def get_many(self, keys: Sequence[str]) -> list[bytes]:
        return [self.get(key) for key in keys]


class Holdall:
    name = "Holdall"

    def put_many(self, path: Path, items: Items) -> None:
        with holdall.open(path, "x") as store:
            store.update(items)

    @contextlib.contextmanager
    def reading(self, path: Path) -> Iterator[Ordered]:
        # As much as LMDB and the others find in memory.
        with (
            holdall.open(path, cache_bytes=256 << 20) as store,
            store.snapshot() as snapshot,
        ):
            yield snapshot


class Lmdb:
    name = "py-lmdb"

    @staticmethod
    def environment(path: Path, **options: object) -> lmdb.Environment:
        return lmdb.open(str(path), map_size=64 << 30, subdir=False, **options)

    def put_many(self, path: Path, items: Items) -> None:
        with self.environment(path) as env, env.begin(write=True) as tx:
            with tx.cursor() as cursor:
                cursor.putmulti([(key.encode(), value) for key, value in items])

    class Reading:
        def __init__(self, tx: lmdb.Transaction) -> None:
            self.tx = tx

        def get(self, key: str) -> bytes:
            return self.tx.get(key.encode())

        def get_many(self, keys: Sequence[str]) -> list[bytes]:
            with self.tx.cursor() as cursor:
                return cursor.getmulti([key.encode() for key in keys])

        def items(self) -> Iterable[tuple[bytes, bytes]]:
            return self.tx.cursor().iternext()

    @contextlib.contextmanager
    def reading(self, path: Path) -> Iterator[Ordered]:
        with self.environment(path, readonly=True, lock=False) as env, env.begin() as tx:
            yield self.Reading(tx)


class Sqlite:
    name = "sqlite3"

    def put_many(self, path: Path, items: Items) -> None:
        base = sqlite3.connect(path)
        base.execute("pragma journal_mode=wal")
        base.execute("pragma synchronous=full")
        base.execute("create table kv(k text primary key, v blob) without rowid")
        with base:
            base.executemany("insert into kv values (?, ?)", items)
        base.close()

    class Reading:
        def __init__(self, base: sqlite3.Connection) -> None:
            self.base = base

        def get(self, key: str) -> bytes:
            return self.base.execute("select v from kv where k = ?", (key,)).fetchone()[0]

        def get_many(self, keys: Sequence[str]) -> list[bytes]:
            marks = ",".join("?" * len(keys))
            found = dict(self.base.execute(f"select k, v from kv where k in ({marks})", keys))
            return [found[key] for key in keys]

        def items(self) -> Iterable[tuple[str, bytes]]:
            return self.base.execute("select k, v from kv order by k")

    @contextlib.contextmanager
    def reading(self, path: Path) -> Iterator[Ordered]:
        with contextlib.closing(sqlite3.connect(path)) as base:
            base.execute("pragma mmap_size=8000000000")
            base.execute("begin")
            yield self.Reading(base)


class Files:
    name = "files"

    def put_many(self, path: Path, items: Items) -> None:
        path.mkdir()
        for key, value in items:
            with open(path / key, "xb", buffering=0) as file:
                file.write(value)
                os.fsync(file)
        directory = os.open(path, os.O_RDONLY)
        os.fsync(directory)
        os.close(directory)

    class Reading(Loop):
        def __init__(self, path: Path) -> None:
            self.path = f"{path}/"

        def get(self, key: str) -> bytes:
            with open(self.path + key, "rb", buffering=0) as file:
                return file.read()

    @contextlib.contextmanager
    def reading(self, path: Path) -> Iterator[Reader]:
        yield self.Reading(path)


class Hdf5:
    name = "h5py"

    def put_many(self, path: Path, items: Items) -> None:
        with h5py.File(path, "x", libver="latest") as file:
            for key, value in items:
                file.create_dataset(key, data=np.frombuffer(value, np.uint8))
        with open(path, "rb") as written:
            os.fsync(written)

    class Reading(Loop):
        def __init__(self, file: h5py.File) -> None:
            self.file = file

        def get(self, key: str) -> bytes:
            return self.file[key][()].tobytes()

    @contextlib.contextmanager
    def reading(self, path: Path) -> Iterator[Reader]:
        with h5py.File(path) as file:
            yield self.Reading(file)


ORDERED: list[OrderedPeer] = [Holdall(), Lmdb(), Sqlite()]
ALL: list[Peer] = [*ORDERED, Files(), Hdf5()]
