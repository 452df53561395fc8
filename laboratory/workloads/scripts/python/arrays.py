"""The rows of zarr: chunks written, read and overwritten, and the space they take."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rows import Prepare, Row
from zarr.core.buffer import default_buffer_prototype
from zarr.core.buffer.cpu import Buffer
from zarr.storage import LocalStore, ZipStore

from holdall.zarr import HoldallStore

#: Chunks on their way at a time, as in zarr's own pipelines.
ON_THEIR_WAY = 10


class Contender:
    """A store of zarr that is filled, read and overwritten again and again."""

    def __init__(self, name: str, place: Path, quick: bool) -> None:
        self.name, self.path = name, place / name
        chance, count = random.Random(6), (200 if quick else 10_000)
        self.sizes = [chance.randrange(64 << 10, (1 << 20) + 1) for _ in range(count)]
        self.chunk = chance.randbytes(1 << 20)

    def opened(self, mode: str) -> HoldallStore | LocalStore | ZipStore:
        if self.name == "Holdall":
            return HoldallStore(self.path, read_only=mode == "r")
        if self.name == "ZipStore":
            return ZipStore(self.path, mode=mode, read_only=mode == "r")
        return LocalStore(self.path, read_only=mode == "r")

    def run(self, mode: str, numbers: list[int], work: Callable) -> float:
        """Does the work on all chunks; tells MB/s until they are with the disk."""

        async def all_of_them(store: HoldallStore | LocalStore | ZipStore) -> None:
            if isinstance(store, ZipStore):
                await store._open()
            few = asyncio.Semaphore(ON_THEIR_WAY)

            async def one(number: int) -> None:
                async with few:
                    await work(store, f"a/c/{number}", number)

            await asyncio.gather(*(one(number) for number in numbers))

        start = time.perf_counter()
        store = self.opened(mode)
        asyncio.run(all_of_them(store))
        store.close()
        if mode != "r":
            os.sync()
        taken = time.perf_counter() - start
        return sum(self.sizes[number] for number in numbers) / 1e6 / taken

    async def write(self, store: LocalStore, key: str, number: int) -> None:
        await store.set(key, Buffer.from_bytes(self.chunk[: self.sizes[number]]))

    async def read(self, store: LocalStore, key: str, number: int) -> None:
        found = await store.get(key, default_buffer_prototype())
        assert found is not None and len(found) == self.sizes[number]

    def remove(self) -> None:
        if self.path.is_dir():
            shutil.rmtree(self.path)
        else:
            self.path.unlink(missing_ok=True)

    def write_all(self) -> float:
        self.remove()
        os.sync()
        return self.run("w", list(range(len(self.sizes))), self.write)

    def read_all(self) -> float:
        numbers = list(range(len(self.sizes)))
        random.Random(7).shuffle(numbers)
        return self.run("r", numbers, self.read)

    def overwrite(self) -> float:
        half = random.Random(8).sample(range(len(self.sizes)), len(self.sizes) // 2)
        return self.run("a", half, self.write)


def chunks(name: str, what: str) -> Prepare:
    @contextlib.contextmanager
    def prepared(place: Path, quick: bool) -> Iterator[Callable[[], float]]:
        contender = Contender(name, place, quick)
        if not contender.path.exists():
            contender.write_all()
        yield getattr(contender, what)

    return prepared


def row(title: str, what: str) -> Row:
    contestants = ("Holdall", "LocalStore", "ZipStore")
    return Row(title, "MbPerSecond", {name: chunks(name, what) for name in contestants})


ROWS = {
    "zarr-write": row("zarr: write 10,000 chunks of 64 KB to 1 MB", "write_all"),
    "zarr-read": row("zarr: read them, hot if memory holds them", "read_all"),
    "zarr-again": row("zarr: overwrite half of them", "overwrite"),
}
