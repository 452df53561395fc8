"""No half file appears, whatever wraps the file and however it ends; what is closed in peace does."""

import contextlib
import csv
import gc
import gzip
import io
import os
import subprocess
import sys
import tarfile
import warnings
import zipfile

import fsspec
import pytest

import holdall
from holdall.fsspec import HoldallFileSystem

SOME = b"x" * 300_000


@pytest.fixture
def fs(path):
    fs = HoldallFileSystem(fo=path)
    fs.pipe("a", b"before")
    yield fs
    assert fs.find("") == ["a"] and fs.cat("a") == b"before"
    HoldallFileSystem.clear_instance_cache()


@pytest.fixture
def url(path, fs):
    return f"holdall://{path}/a"


gives_up = pytest.warns(ResourceWarning, match="'a' .*is not stored")


class Failed(Exception):
    pass


@pytest.mark.parametrize("mode", ["wb", "w", "wt"])
@pytest.mark.parametrize("compression", [None, "gzip", "bz2", "xz", "zip"])
@pytest.mark.parametrize("error", [Failed, KeyboardInterrupt])
def test_with_of_fsspec_open(url, mode, compression, error):
    with gives_up, pytest.raises(error):
        with fsspec.open(url, mode, compression=compression) as f:
            f.write(SOME if "b" in mode else SOME.decode())
            raise error


@pytest.mark.parametrize("compression", [None, "gzip", "bz2", "xz", "zip"])
@pytest.mark.parametrize("mode", ["wb", "w", "xb"])
def test_with_of_fs_open(fs, mode, compression):
    name = "new" if "x" in mode else "a"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Failed), fs.open(name, mode, compression=compression) as f:
            f.write(SOME if "b" in mode else SOME.decode())
            raise Failed


@pytest.mark.parametrize("opened", [True, False])
def test_wrappers(fs, url, opened):
    def file():
        return fsspec.open(url, "wb").open() if opened else fs.open("a", "wb")

    def text(f):
        with io.TextIOWrapper(f) as t:
            t.write("half")
            raise Failed

    def packed(f):
        with contextlib.closing(f), gzip.open(f, "wb") as z:
            z.write(SOME)
            raise Failed

    def zipped(f):
        with contextlib.closing(f), zipfile.ZipFile(f, "w") as z:
            z.writestr("x", SOME)
            raise Failed

    def tarred(f):
        with contextlib.closing(f), tarfile.open(fileobj=f, mode="w") as t:
            t.addfile(tarfile.TarInfo("x"))
            raise Failed

    def rows(f):
        with io.TextIOWrapper(f, newline="") as t:
            csv.writer(t).writerow([1, 2])
            raise Failed

    def stack(f):
        with contextlib.ExitStack() as s:
            s.callback(f.close)
            f.write(SOME)
            raise Failed

    def finally_(f):
        try:
            f.write(SOME)
            raise Failed
        finally:
            f.close()

    def generator(f):
        def values():
            with contextlib.closing(f):
                yield f.write(SOME)
                yield f.write(SOME)

        for _ in values():
            raise Failed

    for use in (text, packed, zipped, tarred, rows, stack, finally_, generator):
        with gives_up, pytest.raises(Failed):
            use(file())
        gc.collect()
        assert fs.find("") == ["a"] and fs.cat("a") == b"before", use


def test_pandas(url, fs):
    pandas = pytest.importorskip("pandas")

    class Bad:
        def __str__(self):
            raise Failed

    frame = pandas.DataFrame({"a": ["x" * 1000] * 1000 + [Bad()]})
    for options in ({}, {"compression": "gzip"}):
        with gives_up, pytest.raises(Failed):
            frame.to_csv(url, **options)
    with pytest.raises(Exception):
        pandas.DataFrame({"a": [1, Bad()]}).to_parquet(url)
    gc.collect()


@pytest.mark.parametrize("wrap", [lambda f: f, io.TextIOWrapper, lambda f: gzip.open(f, "wb")])
def test_dropped_by_the_collector(fs, wrap):
    with gives_up:
        f = wrap(fs.open("a", "wb"))
        f.write("half" if isinstance(f, io.TextIOBase) else SOME)
        del f
        gc.collect()
    with gives_up:
        f = wrap(fs.open("a", "wb"))
        circle = [f]
        circle.append(circle)
        f.write("half" if isinstance(f, io.TextIOBase) else SOME)
        del f, circle
        gc.collect()


@pytest.mark.parametrize("compression", ["gzip", "bz2", "xz", "lzma"])
@pytest.mark.parametrize("mode", ["wt", "wb"])
@pytest.mark.parametrize("of", ["fs", "fsspec"])
def test_packed_files_dropped_by_the_collector(fs, url, of, mode, compression):
    with gives_up:
        if of == "fs":
            f = fs.open("a", mode, compression=compression)
        else:
            f = fsspec.open(url, mode, compression=compression).open()
        f.write("half" if mode == "wt" else SOME)
        del f
        gc.collect()


@pytest.mark.parametrize("how", ["text", "gzip", "packed text", "fsspec", "bytes"])
@pytest.mark.parametrize("end", ["", "raise RuntimeError", "sys.exit(1)"])
def test_a_script_that_ends(fs, path, how, end):
    code = f"""
import sys, fsspec
from holdall.fsspec import HoldallFileSystem
fs = HoldallFileSystem(sys.argv[1])
f = {{
    "text": lambda: fs.open("a", "w"),
    "gzip": lambda: fs.open("a", "wb", compression="gzip"),
    "packed text": lambda: fs.open("a", "wt", compression="gzip"),
    "fsspec": lambda: fsspec.open("holdall://" + sys.argv[1] + "/a", "w").open(),
    "bytes": lambda: fs.open("a", "wb"),
}}["{how}"]()
f.write("half" if "{how}" in ("text", "packed text", "fsspec") else b"x" * 300_000)
{end}
"""
    fs.close()
    code = code.replace(end, f"print('reached', flush=True)\n{end}") if end else code
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    assert not end or "reached" in done.stdout, done.stderr


def test_a_write_that_fails(path):
    fs = HoldallFileSystem(fo=path, max_bytes=2_000_000, skip_instance_cache=True)
    fs.pipe("a", b"before")
    for mode in ("wb", "w+b"):
        f = fs.open("a", mode)
        with pytest.raises(holdall.FullError):
            for _ in range(8):
                f.write(os.urandom(1 << 20))
        with pytest.raises(OSError):
            for _ in range(3):
                f.write(b"more" * 100_000)
        f.close()
        with pytest.raises(holdall.FullError), fs.open("a", mode) as f:
            for _ in range(8):
                f.write(os.urandom(1 << 20))
        assert fs.find("") == ["a"] and fs.cat("a") == b"before"
    with fs.open("a", "wb") as f:
        f.write(b"after")
    assert fs.cat("a") == b"after"


@pytest.mark.parametrize("compression", [None, "gzip", "bz2", "xz", "zip"])
def test_what_is_closed_in_peace_is_there(path, compression):
    fs = HoldallFileSystem(fo=path, skip_instance_cache=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name, text in (("b", False), ("t", True)):
            mode = "w" if text else "wb"
            with fs.open(name, mode, compression=compression) as f:
                f.write("ä" * 9 if text else SOME)
            with fs.open(name, mode[1:] and "rb" or "r", compression=compression) as f:
                assert f.read() == ("ä" * 9 if text else SOME)
        # An exception that is older than the file says nothing about it.
        try:
            raise Failed
        except Failed:
            with fs.open("c", "w", compression=compression) as f:
                f.write("1")
            f = fs.open("d", "w", compression=compression)
        f.write("2")
        f.close()
        f = fs.open("e", "wb")
        try:
            f.write(SOME)
            raise Failed
        except Failed:
            f.commit()
        try:
            with fsspec.open(f"holdall://{path}/f", "w") as f:
                try:
                    raise Failed
                except Failed:
                    f.write("caught")
        finally:
            HoldallFileSystem.clear_instance_cache()
    assert fs.find("") == ["b", "c", "d", "e", "f", "t"]
    assert fs.cat("e") == SOME and fs.cat("f") == b"caught"


@pytest.mark.parametrize("compression", [None, "gzip", "bz2", "xz", "zip"])
@pytest.mark.parametrize("text", [False, True])
def test_commit_and_discard(path, text, compression):
    fs = HoldallFileSystem(fo=path, skip_instance_cache=True)
    data = "x" if text else b"x"
    mode = "w" if text else "wb"
    f = fs.open("a", mode, autocommit=False, compression=compression)
    f.write(data)
    f.close()
    assert not fs.exists("a")
    f.discard()
    assert not fs.exists("a")
    with fs.open("a", mode, autocommit=False, compression=compression) as f:
        f.write(data)
    assert not fs.exists("a")
    f.commit()
    f.commit()
    assert fs.open("a", "rb", compression=compression).read() == b"x"
    fs.rm("a")
    f = fs.open("a", mode, compression=compression)
    try:
        raise Failed
    except Failed:
        f.write(data)
        f.commit()
    assert fs.open("a", "rb", compression=compression).read() == b"x"
    with pytest.warns(ResourceWarning, match="neither committed nor discarded"):
        f = fs.open("b", mode, autocommit=False, compression=compression)
        f.write(data)
        f.close()
        del f
        gc.collect()
    with fs.open("c", mode, compression=compression) as f:
        f.write(data)
        f.discard()
    assert fs.find("") == ["a"]
    fs.close()
    with holdall.open(path, "r+") as store:
        assert list(store) == ["a"] and store.verify()["sound"]


def test_a_file_that_outlives_its_store_says_so(store):
    f = HoldallFileSystem(store).open("a", "w+b", autocommit=False)
    f.write(SOME)
    f.seek(0)
    f.write(b"y")
    f.close()
    store.close()
    with pytest.warns(ResourceWarning, match="neither committed nor discarded"):
        del f
        gc.collect()
