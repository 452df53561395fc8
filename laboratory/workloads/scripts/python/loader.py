"""The rows of a data loader: eight processes read objects of the size of a JPEG at random."""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
import multiprocessing
import os
import random
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import peers
from rows import Prepare, Row

import holdall

WORKERS = 8
BATCH = 64


class Set:
    """Objects of 10 to 60 KB, as small pictures are."""

    def __init__(self, quick: bool) -> None:
        self.count = 2_000 if quick else 200_000
        self.bytes = random.Random(9).randbytes(8 << 20)

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        chance = random.Random(10)
        for number in range(self.count):
            start, size = chance.randrange(7 << 20), chance.randrange(10_000, 60_000)
            yield self.name(number), self.bytes[start : start + size]

    @staticmethod
    def name(number: int) -> str:
        return f"{number // 1000:03}/{number:06}.jpg"


def make_holdall(path: Path, data: Set) -> None:
    with holdall.open(path, "x") as store:
        store.update(data)


def make_lmdb(path: Path, data: Set) -> None:
    with peers.Lmdb.environment(path) as env:
        items = iter(data)
        while True:
            some = [(k.encode(), v) for k, v in itertools.islice(items, 5_000)]
            if not some:
                return
            with env.begin(write=True) as tx, tx.cursor() as cursor:
                cursor.putmulti(some, append=True)


def make_files(path: Path, data: Set) -> None:
    for number, (key, value) in enumerate(data):
        if number % 1000 == 0:
            (path / key).parent.mkdir(parents=True)
        (path / key).write_bytes(value)


def make_zip(path: Path, data: Set) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for key, value in data:
            archive.writestr(key, value)


def make_tar(path: Path, data: Set) -> None:
    with tarfile.open(path, "w") as archive:
        for key, value in data:
            member = tarfile.TarInfo(key)
            member.size = len(value)
            archive.addfile(member, io.BytesIO(value))


def read_holdall(path: Path, names: Sequence[str]) -> int:
    if path not in opened:
        opened[path] = holdall.open(path)
    return sum(map(len, opened[path].get_many(names)))


def read_lmdb(path: Path, names: Sequence[str]) -> int:
    if path not in opened:
        opened[path] = peers.Lmdb.environment(path, readonly=True, lock=False, readahead=False)
    with opened[path].begin() as tx:
        return sum(len(tx.get(name.encode())) for name in names)


def read_files(path: Path, names: Sequence[str]) -> int:
    return sum(len((path / name).read_bytes()) for name in names)


def read_zip(path: Path, names: Sequence[str]) -> int:
    if path not in opened:
        opened[path] = zipfile.ZipFile(path)
    return sum(len(opened[path].read(name)) for name in names)


#: What a worker keeps open.
opened: dict[Path, object] = {}

READ = {"Holdall": read_holdall, "py-lmdb": read_lmdb, "files": read_files, "zip": read_zip}
MAKE = {"Holdall": make_holdall, "py-lmdb": make_lmdb, "files": make_files, "zip": make_zip,
        "tar in order": make_tar}  # fmt: skip


def work(task: tuple[str, Path, Sequence[str]]) -> int:
    how, path, names = task
    return READ[how](path, names)


def stream_tar(task: tuple[Path, int, int]) -> int:
    """A part of the archive from front to back, as WebDataset reads its shards."""
    path, begin, end = task
    total = 0
    with open(path, "rb") as file:
        file.seek(begin)
        while file.tell() < end and (head := file.read(512)).strip(b"\0"):
            size = tarfile.TarInfo.frombuf(head, "utf-8", "strict").size
            total += len(file.read(size))
            file.seek(-size % 512, os.SEEK_CUR)
    return total


def shards(path: Path) -> list[tuple[Path, int, int]]:
    with tarfile.open(path) as archive:
        starts = [member.offset for member in archive]
    cuts = starts[:: max(1, len(starts) // (WORKERS * 4))] + [path.stat().st_size]
    return [(path, a, b) for a, b in zip(cuts, cuts[1:], strict=False)]


def forget_pages() -> None:
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3")


def loading(how: str, cold: bool) -> Prepare:
    @contextlib.contextmanager
    def prepared(place: Path, quick: bool) -> Iterator[Callable[[], float]]:
        data, path = Set(quick), place / "set"
        if not path.exists():
            MAKE[how](path, data)
        numbers = list(range(data.count))
        # Cold, a part of them is enough: nothing is read twice.
        random.Random(11).shuffle(numbers)
        if cold:
            numbers = numbers[: data.count // 5]
        names = [data.name(number) for number in numbers]
        tasks = [(how, path, names[n : n + BATCH]) for n in range(0, len(names), BATCH)]
        parts = shards(path) if how.startswith("tar") else []

        def one() -> float:
            with multiprocessing.get_context("fork").Pool(WORKERS) as pool:
                read = functools.partial(pool.imap_unordered, *(
                    (stream_tar, parts) if parts else (work, tasks)
                ))  # fmt: skip
                if cold:
                    forget_pages()
                else:
                    # All sets together are more than memory holds.
                    sum(read())
                start = time.perf_counter()
                total = sum(read())
                taken = time.perf_counter() - start
            assert total > 10_000 * len(names)
            return (data.count if parts else len(names)) / taken

        yield one

    return prepared


def row(title: str, cold: bool) -> Row:
    return Row(title, "PerSecond", {how: loading(how, cold) for how in MAKE})


ROWS = {
    "load-hot": row("8 workers read objects at random, hot", False),
    "load-cold": row("8 workers read objects at random, cold", True),
}
