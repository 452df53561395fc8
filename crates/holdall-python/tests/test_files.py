"""Objects as files."""

import io
import os
import random
import tarfile
import threading
import wave
import zipfile

import pytest

import holdall


def test_a_new_object_appears_whole_when_its_file_is_closed(store):
    with store.open("a", "wb") as f:
        for _ in range(100):
            assert f.write(b"x" * 10_000) == 10_000
        assert "a" not in store and f.oid is None and not f.readable()
        store["b"] = b"beside it"
    assert store["a"] == b"x" * 1_000_000


@pytest.mark.parametrize("seek_back", [False, True])
def test_a_with_block_that_raises_keeps_nothing(store, seek_back):
    store["a"] = b"before"
    for mode in ("wb", "w+b", "w"):
        with pytest.raises(RuntimeError), store.open("a", mode) as f:
            f.write("x" * 500_000 if mode == "w" else b"x" * 500_000)
            if seek_back:
                f.seek(3)
                f.write("y" if mode == "w" else b"y")
                f.flush()
            raise RuntimeError
        assert f.closed and store["a"] == b"before"
    with store.open("b", "wb") as f:
        f.write(b"1")
        f.give_up()
    assert "b" not in store and store.collections() == ["default"]


def test_modes(store):
    with pytest.raises(FileNotFoundError):
        store.open("a", "rb")
    with pytest.raises(KeyError):
        store.open("a", "r+b")
    with store.open("a", "xb") as f:
        f.write(b"123")
    with pytest.raises(FileExistsError):
        store.open("a", "xb")
    with store.open("a", "ab") as f:
        assert f.tell() == 3
        f.write(b"456")
    with store.open("new", "a") as f:
        f.write("text")
    assert store["a"] == b"123456" and store["new"] == b"text"
    with store.open("a", "rb") as f:
        with pytest.raises(io.UnsupportedOperation):
            f.write(b"")
    with store.open("a", "rb", buffering=0) as f:
        with pytest.raises(io.UnsupportedOperation):
            f.write(b"")
        assert isinstance(f, io.RawIOBase) and f.read() == b"123456" and f.size() == 6
        with pytest.raises(ValueError, match="before the first byte"):
            f.seek(-1)
    with store.open("a", "wb", buffering=0) as f:
        with pytest.raises(io.UnsupportedOperation):
            f.read(1)
    for bad in ("", "rw", "b", "rbt", "r++", "z"):
        with pytest.raises(ValueError):
            store.open("a", bad)
    with pytest.raises(ValueError):
        store.open("a", "rb", encoding="utf-8")
    for file in (f, store.open("b", "wb")):
        file.close()
        file.close()
        with pytest.raises(ValueError):
            file.tell()


def test_two_that_make_one_object_exclusively(store):
    one, two = store.open("a", "xb"), store.open("a", "xb")
    one.write(b"1")
    two.write(b"2")
    one.close()
    with pytest.raises(FileExistsError):
        two.close()
    assert store["a"] == b"1"


def test_a_file_that_is_read_stays_as_it_was(store):
    store["a"] = b"before" * 100_000
    with store.open("a", "rb") as f:
        store["a"] = b"after"
        assert f.read(6) == b"before" and len(f.read()) == 599_994
        assert f.seek(-6, io.SEEK_END) and f.read() == b"before"


def test_editing_in_place(store):
    store["a"] = bytes(range(256)) * 4000
    oid = store.info("a").oid
    with store.open("a", "r+b") as f:
        assert f.oid == oid
        f.seek(100)
        assert f.read(2) == b"de" and f.tell() == 102
        assert f.insert(b"INS") == 3 and f.tell() == 105
        assert f.read(1) == b"f"
        f.seek(0)
        assert f.delete(10) == 10 and f.read(1) == b"\x0a"
        f.seek(-5, io.SEEK_END)
        assert f.delete(100) == 5
        f.seek(0, io.SEEK_END)
        f.write(b"end")
        f.flush()
        assert store["a"].endswith(b"end")
        f.truncate(50)
        f.seek(60)
        f.write(b"far")
    assert len(store["a"]) == 63 and store["a"][50:60] == bytes(10)
    assert store.info("a").oid == oid


def test_files_of_a_transaction(store):
    store["a"] = b"0123456789"
    with store.transaction() as tx:
        with tx.open("a", "r+b") as f:
            f.seek(5)
            f.insert(b"-")
        with tx.open("b", "wb") as f, zipfile.ZipFile(f, "w") as z:
            z.writestr("x", b"y" * 100)
        with tx.open("c", "w") as f:
            f.write("text")
        with tx.open("c", "a") as f:
            f.write(" more")
        assert tx.open("c").read() == "text more"
        with pytest.raises(FileExistsError):
            tx.open("a", "xb")
        assert "b" not in store
    assert store["a"] == b"01234-56789" and store["c"] == b"text more"
    assert zipfile.ZipFile(store.open("b", "rb")).read("x") == b"y" * 100


def test_text(store):
    lines = [f"zeile {i} äöü\n" for i in range(5000)]
    with store.open("t", "w") as f:
        f.writelines(lines)
    with store.open("t") as f:
        assert f.readline() == lines[0] and list(f) == lines[1:]
    with store.open("t", "w", encoding="utf-16", newline="\r\n") as f:
        f.write("a\nb")
    assert store["t"].decode("utf-16") == "a\r\nb"


def test_attributes_and_collections(store):
    with store.collection("c").open("a", "wb", attributes={"k": b"v"}) as f:
        f.write(b"1")
    with store.collection("c").open("b", "wb", attributes={"k": b"w"}) as f:
        f.write(b"1" * 10)
        f.seek(2)
        f.write(b"2")
    assert store.collection("c").info("a").attributes == {"k": b"v"}
    assert store.collection("c").info("b").attributes == {"k": b"w"}
    assert store.collection("c")["b"] == b"1121111111" and len(store) == 0


def test_libraries_work_on_top(store):
    with store.open("z.zip", "wb") as f, zipfile.ZipFile(f, "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("big", b"x" * 3_000_000)
        z.writestr("small", b"y")
    with store.open("z.zip", "r+b") as f, zipfile.ZipFile(f, "a") as z:
        z.writestr("later", b"z")
    with zipfile.ZipFile(store.open("z.zip", "rb")) as z:
        assert z.testzip() is None and z.namelist() == ["big", "small", "later"]
    with store.open("t.tar", "wb") as f, tarfile.open(fileobj=f, mode="w:gz") as t:
        info = tarfile.TarInfo("a")
        info.size = 5
        t.addfile(info, io.BytesIO(b"hello"))
    assert tarfile.open(fileobj=store.open("t.tar", "rb")).extractfile("a").read() == b"hello"
    with store.open("w.wav", "wb") as f, wave.open(f, "wb") as w:
        w.setparams((1, 2, 8000, 0, "NONE", ""))
        w.writeframes(b"\1\2" * 8000)
    assert wave.open(store.open("w.wav", "rb")).getnframes() == 8000


def test_images(store):
    image = pytest.importorskip("PIL.Image")
    picture = image.new("RGB", (64, 64), "red")
    for kind in ("png", "jpeg", "tiff"):
        with store.open(f"p.{kind}", "wb") as f:
            picture.save(f, kind)
        with store.open(f"p.{kind}", "rb") as f:
            assert image.open(f).size == (64, 64)


def test_hdf5(store):
    h5py = pytest.importorskip("h5py")
    with store.open("h.h5", "w+b") as f, h5py.File(f, "w") as h:
        h["a"] = list(range(100_000))
    with store.open("h.h5", "r+b") as f, h5py.File(f, "r+") as h:
        h["a"][5] = -1
        h["b"] = "more"
    with store.open("h.h5", "rb") as f, h5py.File(f, "r") as h:
        assert h["a"][5] == -1 and h["a"][99_999] == 99_999 and "b" in h


def test_sound(store):
    soundfile = pytest.importorskip("soundfile")
    with store.open("s.flac", "w+b") as f:
        soundfile.write(f, [0.0, 0.5, -0.5] * 1000, 8000, format="FLAC")
    with store.open("s.flac", "rb") as f:
        samples, rate = soundfile.read(f)
    assert len(samples) == 3000 and rate == 8000


@pytest.mark.parametrize("mode", ["r+b", "w+b", "transaction"])
@pytest.mark.parametrize("seed", range(4))
def test_random_calls_as_on_a_file_in_memory(store, mode, seed):
    rng = random.Random(seed)
    model = io.BytesIO()
    if mode == "r+b":
        store["a"] = b"start" * 50_000
        model.write(store["a"])
        model.seek(0)
    tx = store.transaction() if mode == "transaction" else None
    f = tx.open("a", "w+b") if tx is not None else store.open("a", mode)
    for _ in range(150):
        size = len(model.getvalue())
        match rng.choice(["read", "write", "seek", "truncate", "insert", "delete", "line"]):
            case "read":
                n = rng.randrange(300_000)
                assert f.read(n) == model.read(n)
            case "line":
                assert f.readline() == model.readline()
            case "write":
                data = rng.randbytes(rng.choice([1, 100, 5000, 200_000]))
                assert f.write(data) == model.write(data)
            case "seek":
                to = rng.randrange(size + 10)
                assert f.seek(to) == model.seek(to)
            case "truncate" if rng.random() < 0.2:
                to = rng.randrange(size + 1)
                assert f.truncate(to) == to
                model.truncate(to)
            case "insert" if f.tell() <= size:
                data, at = rng.randbytes(rng.choice([1, 100, 20_000])), model.tell()
                whole = model.getvalue()
                f.insert(data)
                model = io.BytesIO(whole[:at] + data + whole[at:])
                model.seek(at + len(data))
            case "delete":
                n, at, whole = rng.randrange(50_000), model.tell(), model.getvalue()
                assert f.delete(n) == max(0, min(n, size - at))
                model = io.BytesIO(whole[:at] + whole[at + n :])
                model.seek(at)
        assert f.tell() == model.tell()
    f.close()
    if tx is not None:
        tx.commit()
    assert store["a"] == model.getvalue()


def test_files_in_many_threads(store):
    def work(i):
        for j in range(5):
            with store.open(f"{i}/{j}", "wb") as f:
                f.write(str(i).encode() * 300_000)
            with store.open(f"{i}/{j}", "rb") as f:
                assert f.read() == str(i).encode() * 300_000
            with store.open("log", "ab") as f:
                f.write(f"{i}\n".encode())

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store) == 41 and len(store["log"].splitlines()) == 40


def test_drafts_of_a_killed_process_are_dropped(path):
    with holdall.open(path, "a") as store:
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
    code = (
        "import holdall, os, sys\n"
        "s = holdall.open(sys.argv[1], 'a')\n"
        "f = s.open('a', 'wb')\n"
        "f.write(b'x' * 500_000); f.seek(0); f.write(b'y'); f.flush(); s.flush()\n"
        "os._exit(0)\n"
    )
    import subprocess
    import sys

    subprocess.run([sys.executable, "-c", code, path], check=True)
    with holdall.open(path, "a") as store:
        assert store.collections() == ["default"] or store.collections() == []
        assert store.stat()["objects"] == 0 and store.verify()["sound"]
