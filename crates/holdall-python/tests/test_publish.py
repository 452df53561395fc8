"""A new object is there whole or not at all, whatever ends its file."""

import bz2
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

import pytest

import holdall
from holdall.fsspec import HoldallFileSystem

WRAPPERS = {
    "itself": lambda f: f,
    "text": lambda f: io.TextIOWrapper(f),
    "buffer": lambda f: io.BufferedWriter(f.detach()),
    "closing": contextlib.closing,
    "stack": lambda f: stacked(f),
    "generator": lambda f: generated(f),
    "codec": lambda f: __import__("codecs").getwriter("utf-8")(f),
}


@contextlib.contextmanager
def stacked(f):
    with contextlib.ExitStack() as stack:
        yield stack.enter_context(f)


@contextlib.contextmanager
def generated(f):
    try:
        yield f
    finally:
        f.close()


@pytest.mark.parametrize("inside", ["store", "transaction"])
@pytest.mark.parametrize("mode", ["wb", "w+b", "xb"])
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_with_block_that_raises_keeps_nothing(store, wrapper, mode, inside):
    with store.transaction() if inside == "transaction" else contextlib.nullcontext(store) as view:
        name = "new" if mode == "xb" else "old"
        view["old"] = b"before"
        with pytest.raises(RuntimeError), WRAPPERS[wrapper](view.open(name, mode)) as f:
            f.write("half" if wrapper in ("text", "codec") else b"half")
            f.flush()
            raise RuntimeError
        assert view.get("new") is None and view["old"] == b"before"
        with WRAPPERS[wrapper](view.open(name, mode)) as f:
            f.write("whole" if wrapper in ("text", "codec") else b"whole")
        assert view[name] == b"whole"
    assert store[name] == b"whole" and store.stat()["objects"] == len(store)


def test_compressors_and_archives_that_raise_keep_nothing(store):
    for opened in (gzip.open, bz2.open):
        with pytest.raises(RuntimeError), store.open("t", "wb") as f, opened(f, "wb") as g:
            g.write(b"half")
            raise RuntimeError
    with pytest.raises(RuntimeError), store.open("t", "wb") as f, zipfile.ZipFile(f, "w") as z:
        z.writestr("a", b"1")
        raise RuntimeError
    with pytest.raises(RuntimeError), store.open("t", "wb") as f, tarfile.open(fileobj=f, mode="w"):
        raise RuntimeError
    with pytest.raises(RuntimeError), store.open("t", "w", newline="") as f:
        csv.writer(f).writerow([1, 2])
        raise RuntimeError
    assert len(store) == 0
    with store.open("t", "wb") as f, gzip.open(f, "wb") as g:
        g.write(b"whole")
    assert gzip.decompress(store["t"]) == b"whole"


def test_a_file_closed_while_an_error_is_handled_is_kept(store):
    try:
        raise RuntimeError("the reason")
    except RuntimeError as e:
        with store.open("report", "w") as f:
            f.write(str(e))
        g = store.open("more", "wb")
        g.write(b"1")
        g.close()

    class Reports:
        def __enter__(self):
            return self

        def __exit__(self, kind, error, trace):
            with store.open("from exit", "w") as f:
                f.write(str(error))

    with pytest.raises(RuntimeError), Reports():
        raise RuntimeError("reported")
    # Whether this one is whole cannot be seen; asked for by name it is kept.
    earlier, asked = store.open("earlier", "wb"), store.open("asked", "wb")
    try:
        raise RuntimeError
    except RuntimeError:
        earlier.write(b"2")
        with pytest.warns(holdall.NotStoredWarning, match="'earlier' was closed while Runtime"):
            earlier.close()
        asked.write(b"3")
        asked.commit()
    assert dict(store) == {
        "report": b"the reason", "more": b"1", "from exit": b"reported", "asked": b"3",
    }  # fmt: skip


@pytest.mark.parametrize("mode", ["wb", "w", "w+b"])
@pytest.mark.parametrize("of", ["store", "fsspec"])
def test_a_block_that_ends_in_peace_keeps_it_whatever_is_handled_around(store, mode, of):
    opens = store.open if of == "store" else HoldallFileSystem(store).open

    def lines():
        with opens("a", mode) as f:
            while True:
                line = yield
                if line is None:
                    return
                f.write(line if mode == "w" else line.encode())

    writer = lines()
    next(writer)
    try:
        raise RuntimeError("the reason")
    except RuntimeError as e:
        writer.send(str(e))
        with pytest.raises(StopIteration):
            writer.send(None)
    assert store["a"] == b"the reason"
    writer = lines()
    next(writer)
    writer.send("half")
    writer.close()
    assert store["a"] == b"the reason"


def test_a_finally_that_closes_keeps_nothing(store):
    with pytest.raises(RuntimeError), pytest.warns(holdall.NotStoredWarning):
        f = store.open("a", "wb")
        try:
            f.write(b"half")
            raise RuntimeError
        finally:
            f.close()
    assert "a" not in store


def test_the_warning_is_shown_unless_warnings_are_configured(path):
    code = (
        "import holdall, sys\n"
        "s = holdall.open(sys.argv[1], 'a')\n"
        "s.open('a', 'wb').write(b'half')\n"
        "print(list(s))\n"
    )
    shown = subprocess.run([sys.executable, "-c", code, path], capture_output=True)
    hidden = subprocess.run([sys.executable, "-W", "ignore", "-c", code, path], capture_output=True)
    assert shown.stdout == hidden.stdout == b"[]\n" and hidden.stderr == b""
    assert b"NotStoredWarning: object 'a' was never closed, and is not stored" in shown.stderr


@pytest.mark.parametrize("mode", ["wb", "w+b", "w", "xb"])
def test_a_file_that_nobody_closed_is_given_up_with_a_warning(store, mode):
    f = store.open("a", mode)
    f.write("half" if mode == "w" else b"half")
    with pytest.warns(ResourceWarning, match="'a' was never closed"):
        del f
        gc.collect()
    wrapped = io.TextIOWrapper(store.open("b", "wb"))
    wrapped.write("half")
    with pytest.warns(ResourceWarning, match="'b' was never closed"):
        del wrapped
        gc.collect()
    raw = store.open("c", "wb", buffering=0)
    raw.write(b"half")
    with pytest.warns(ResourceWarning, match="'c' was never closed"):
        del raw
        gc.collect()
    assert len(store) == 0 and store.collections() == []


def test_files_that_make_no_new_object_need_not_be_closed(store):
    store["a"] = b"1"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f = store.open("a", "rb")
        g = store.open("a", "ab")
        g.write(b"2")
        g.flush()
        del f, g
        gc.collect()
    assert store["a"] == b"12"


def test_a_script_that_dies_leaves_nothing_half(path):
    code = (
        "import holdall, sys\n"
        "s = holdall.open(sys.argv[1], 'a')\n"
        "f = s.open('a', 'wb')\n"
        "f.write(b'x' * 500_000)\n"
        "1 / 0\n"
    )
    done = subprocess.run([sys.executable, "-W", "always", "-c", code, path], capture_output=True)
    assert done.returncode == 1 and b"ZeroDivisionError" in done.stderr
    with holdall.open(path, "a") as store:
        assert list(store) == []


@pytest.mark.parametrize("mode", ["wb", "w+b"])
@pytest.mark.parametrize("inside", [False, True])
def test_a_failed_write_gives_the_object_up(path, mode, inside):
    with holdall.open(path, "a", max_bytes=3 << 20) as store:
        store["a"] = b"before"
        tx = store.transaction() if inside else None
        f = (store if tx is None else tx).open("a", mode)
        with pytest.raises(holdall.FullError) as caught:
            for _ in range(100):
                f.write(os.urandom(100_000))
                f.flush()
        assert caught.value.errno == 28
        with pytest.raises(OSError):
            f.write(b"x" * 300_000)
        with pytest.warns(holdall.NotStoredWarning, match="had a write that failed"):
            f.close()
        f.close()
        assert f.closed
        if tx is not None:
            tx.abort()
        assert store["a"] == b"before" and len(store) == 1


def test_a_commit_that_is_asked_for(store):
    for mode, data in (("wb", b"1"), ("w", "1"), ("x", "1"), ("w+b", b"1")):
        with store.open(mode, mode, commit=False) as f:
            f.write(data)
        assert mode not in store
        with store.open(mode, mode, commit=False) as f:
            f.write(data)
            f.commit()
        assert f.closed and store[mode] == b"1"
    with store.open("t", "wb", commit=False) as f:
        g = gzip.open(f, "wb")
        g.write(b"whole")
        g.close()
        f.commit()
    assert gzip.decompress(store["t"]) == b"whole"
    with pytest.raises(ValueError, match="commit=False"):
        store.open("t", "r+b", commit=False)


def test_files_left_open_in_a_transaction_are_no_objects(store):
    store["a"] = b"before"
    with store.transaction() as tx:
        f, g = tx.open("a", "wb"), tx.open("b", "xb")
        f.write(b"half" * 100_000)
        g.write(b"half")
        g.flush()
        assert tx["a"] == b"before" and "b" not in tx
    assert dict(store) == {"a": b"before"} and store.stat()["objects"] == 1
    for file in (f, g):
        with pytest.raises(ValueError, match="transaction is closed"):
            file.close()
    assert store.verify()["sound"]


@pytest.mark.parametrize("of", ["store", "fsspec"])
@pytest.mark.parametrize("ended", ["failed", "given up"])
def test_what_is_lost_is_not_committed_in_silence(path, of, ended):
    with holdall.open(path, "a", max_bytes=1_500_000) as store:
        opens = store.open if of == "store" else HoldallFileSystem(store).open
        f = opens("a", "wb")
        if ended == "failed":
            with pytest.raises(holdall.FullError):
                for _ in range(30):
                    f.write(os.urandom(100_000))
        else:
            f.raw.give_up()
        with pytest.raises(OSError):
            f.commit()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            f.close()
        assert not store
