"""The rows: gets, puts, reading through a file, inserting, the cost of a call."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
import peers

import holdall

SIZE = 4096


#: Makes what is measured in a folder, small if asked; gives a call that returns the figure.
Prepare = Callable[[Path, bool], contextlib.AbstractContextManager[Callable[[], float]]]


@dataclass
class Row:
    """One kind of work: what is measured, of whom."""

    title: str
    #: As the instrument calls it.
    unit: str
    contestants: dict[str, Prepare]


def objects(count: int) -> list[tuple[str, bytes]]:
    chance = random.Random(1)
    return [(f"{n:08}.bin", chance.randbytes(SIZE)) for n in range(count)]


def gets(peer: peers.Peer, batch: int) -> Prepare:
    """Random gets of objects of 4 KB that lie in memory, a number of them to a call."""

    @contextlib.contextmanager
    def prepared(place: Path, quick: bool) -> Iterator[Callable[[], float]]:
        count, calls = (2_000, 5_000) if quick else (50_000, 100_000)
        items = objects(count)
        store = place / "gets"
        if not store.exists():
            peer.put_many(store, items)
        chance = random.Random(2)
        with peer.reading(store) as reader:
            for key, value in items:
                assert reader.get(key) == value

            def one() -> float:
                keys = [items[chance.randrange(count)][0] for _ in range(calls)]
                get, get_many = reader.get, reader.get_many
                start = time.perf_counter()
                if batch == 1:
                    for key in keys:
                        get(key)
                else:
                    for n in range(0, calls, batch):
                        get_many(keys[n : n + batch])
                return calls / (time.perf_counter() - start)

            yield one

    return prepared


def walks(peer: peers.OrderedPeer) -> Prepare:
    """All objects of 200 bytes with their keys, in order; they lie in memory."""

    @contextlib.contextmanager
    def prepared(place: Path, quick: bool) -> Iterator[Callable[[], float]]:
        count, chance = (5_000 if quick else 500_000), random.Random(6)
        store = place / "walks"
        peer.put_many(store, [(f"{n:08}.bin", chance.randbytes(200)) for n in range(count)])
        with peer.reading(store) as reader:
            assert sum(len(value) for _, value in reader.items()) == count * 200

            def one() -> float:
                start = time.perf_counter()
                met = sum(1 for _ in reader.items())
                taken = time.perf_counter() - start
                assert met == count
                return count / taken

            yield one

    return prepared


def puts(peer: peers.Peer) -> Prepare:
    """10,000 objects of 4 KB into a new store, durable."""

    @contextlib.contextmanager
    def prepared(place: Path, quick: bool) -> Iterator[Callable[[], float]]:
        items = objects(500 if quick else 10_000)
        turn = iter(range(1_000))

        def one() -> float:
            store = place / f"puts{next(turn)}"
            os.sync()
            start = time.perf_counter()
            peer.put_many(store, items)
            taken = time.perf_counter() - start
            shutil.rmtree(store) if store.is_dir() else store.unlink()
            return len(items) / taken

        yield one

    return prepared


def sequential(through_holdall: bool) -> Prepare:
    """1 GiB through a file object, 1 MiB at a time, into one buffer."""

    @contextlib.contextmanager
    def prepared(place: Path, quick: bool) -> Iterator[Callable[[], float]]:
        size, buffer = (64 << 20 if quick else 1 << 30), bytearray(1 << 20)
        piece = random.Random(3).randbytes(1 << 20)
        with contextlib.ExitStack() as stack:
            if through_holdall:
                store = stack.enter_context(holdall.open(place / "s", "w"))
                opened = lambda mode: store.open("big", mode)  # noqa: E731
            else:
                opened = lambda mode: open(place / "big", mode, buffering=0)  # noqa: E731
            with opened("wb") as file:
                for _ in range(size >> 20):
                    file.write(piece)

            def one() -> float:
                total = 0
                start = time.perf_counter()
                with opened("rb") as file:
                    while n := file.readinto(buffer):
                        total += n
                assert total == size
                return size / 1e6 / (time.perf_counter() - start)

            yield one

    return prepared


def insertions(how: str) -> Prepare:
    """1 KB into the middle of 1 GB, durable."""

    @contextlib.contextmanager
    def prepared(place: Path, quick: bool) -> Iterator[Callable[[], float]]:
        size = 10_000_000 if quick else 1_000_000_000
        data = np.random.default_rng(4).integers(0, 256, size, np.uint8)
        new = random.Random(5).randbytes(1000)
        path = place / "insert"

        def into_holdall(store: holdall.Store) -> float:
            start = time.perf_counter()
            for _ in range(200):
                store.insert("big", size // 2, new)
            return (time.perf_counter() - start) / 200

        def into_file() -> float:
            start = time.perf_counter()
            with open(path, "rb") as old, open(f"{path}.new", "wb", buffering=0) as file:
                at = 0
                while at < size // 2:
                    at += os.sendfile(file.fileno(), old.fileno(), at, size // 2 - at)
                file.write(new)
                while sent := os.sendfile(file.fileno(), old.fileno(), at, size):
                    at += sent
                os.fsync(file)
            os.replace(f"{path}.new", path)
            return time.perf_counter() - start

        def into_hdf5(file: h5py.File) -> float:
            start = time.perf_counter()
            dataset = file["big"]
            end = dataset[size // 2 :]
            dataset.resize((dataset.shape[0] + len(new),))
            dataset[size // 2 : size // 2 + len(new)] = np.frombuffer(new, np.uint8)
            dataset[size // 2 + len(new) :] = end
            file.flush()
            with open(path, "rb") as written:
                os.fsync(written)
            return time.perf_counter() - start

        if how == "Holdall":
            with holdall.open(path, "w") as store:
                store["big"] = data.data
                yield lambda: into_holdall(store) * 1e3
        elif how == "files":
            path.write_bytes(data.data)
            yield lambda: into_file() * 1e3
        else:
            with h5py.File(path, "w") as file:
                chunks = (1 << 20,)
                file.create_dataset("big", data=data, maxshape=(None,), chunks=chunks)
                yield lambda: into_hdf5(file) * 1e3

    return prepared


def calls(language: str) -> Prepare:
    """The time of one get of ten bytes that lie in memory, from Python and from Rust."""

    @contextlib.contextmanager
    def prepared(place: Path, quick: bool) -> Iterator[Callable[[], float]]:
        times = 20_000 if quick else 500_000
        path = place / "call"
        with holdall.open(path, "w") as store:
            store["ten"] = b"0123456789"
        if language == "rust":
            arguments = ["cargo", "run", "-q", "--release", "-p", "holdall", "--example"]
            arguments += ["timed_gets", "--", str(path), "ten", str(times)]
            root = Path(__file__).parents[4]

            def rust() -> float:
                told = subprocess.run(arguments, cwd=root, check=True, capture_output=True)
                return float(told.stdout) / 1e3

            yield rust
            return
        with holdall.open(path) as store:

            def python() -> float:
                start = time.perf_counter()
                for _ in range(times):
                    store["ten"]
                return (time.perf_counter() - start) / times * 1e6

            yield python

    return prepared


def each(make: Callable[[peers.Peer], Prepare]) -> dict[str, Prepare]:
    return {peer.name: make(peer) for peer in peers.ALL}


ROWS = {
    "get": Row("get 4 KB, hot", "PerSecond", each(lambda p: gets(p, 1))),
    "get-100": Row("get 4 KB, hot, 100 to a call", "PerSecond", each(lambda p: gets(p, 100))),
    "items": Row("items() of 500,000 of 200 B, hot", "PerSecond",
                 {peer.name: walks(peer) for peer in peers.ORDERED}),
    "put": Row("put 10,000 of 4 KB in one transaction", "PerSecond", each(puts)),
    "read": Row("read 1 GiB through a file", "MbPerSecond",
                {"Holdall": sequential(True), "files": sequential(False)}),
    "insert": Row("insert 1 KB into the middle of 1 GB", "Ms",
                  {how: insertions(how) for how in ("Holdall", "files", "h5py")}),
    "call": Row("get 10 bytes", "Us", {"Holdall": calls("python"), "Rust": calls("rust")}),
}  # fmt: skip
