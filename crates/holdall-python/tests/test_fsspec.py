"""The file system of fsspec: paths, sharing, transactions, and what stands on top of it."""

import os
import pickle
import shutil
import subprocess
import sys
import threading

import fsspec
import pytest

import holdall
from holdall.fsspec import HoldallFileSystem


@pytest.fixture
def url(path):
    return f"holdall://{path}"


@pytest.fixture
def fs(path):
    fs = HoldallFileSystem(fo=path, skip_instance_cache=True)
    yield fs
    fs.close()


def test_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with fsspec.open("holdall://data.holdall/dir/a.holdall/b", "wb") as f:
        f.write(b"1")
    assert fsspec.open(f"holdall://{tmp_path}/data.holdall/dir/a.holdall/b").open().read() == b"1"
    with fsspec.open("holdall://dir/x", "wb", fo="other.bin") as f:
        f.write(b"2")
    assert fsspec.open(f"holdall://dir/x::file://{tmp_path}/other.bin").open().read() == b"2"
    assert fsspec.open(f"simplecache::holdall://{tmp_path}/data.holdall/dir/a.holdall/b").open().read() == b"1"
    fs, inside = fsspec.url_to_fs("holdall://data.holdall/dir")
    assert inside == f"{tmp_path}/data.holdall/dir" and fs.find(inside) == [f"{inside}/a.holdall/b"]
    assert fs.find("") == ["dir/a.holdall/b"]
    assert fs.unstrip_protocol("dir") == f"holdall://{tmp_path}/data.holdall/dir"
    with pytest.raises(ValueError, match="name a store"):
        fsspec.url_to_fs("holdall://dir/x")
    HoldallFileSystem.clear_instance_cache()


def test_a_remote_store_is_read_through_a_cache(path):
    with holdall.open(path, "a") as store:
        store["a"] = b"1"
    memory = fsspec.filesystem("memory")
    memory.pipe("/x.bin", path.read_bytes())
    with fsspec.open("holdall://a::simplecache::memory://x.bin") as f:
        assert f.read() == b"1"
    fs = fsspec.url_to_fs("holdall://a::simplecache::memory://x.bin")[0]
    with pytest.raises(PermissionError):
        fs.pipe("b", b"2")


def test_what_is_there(fs):
    fs.pipe({"a/1": b"1", "a/b/2": b"22", "c": b"333"})
    assert fs.ls("", detail=False) == ["a", "c"] and fs.ls("a", detail=False) == ["a/1", "a/b"]
    assert fs.find("") == ["a/1", "a/b/2", "c"] and fs.find("a", detail=True)["a/b/2"]["size"] == 2
    assert fs.isdir("a") and fs.isfile("c") and not fs.exists("x") and fs.exists("")
    assert fs.info("a")["type"] == "directory" and fs.size("c") == 3
    assert fs.glob("a/*") == ["a/1", "a/b"] and fs.du("") == 6
    assert sorted(fs.walk("", detail=False))[0][0] == ""
    assert fs.modified("c").timestamp() > 1.7e9
    before = fs.ukey("c")
    fs.touch("c", truncate=False)
    assert fs.ukey("c") != before and fs.cat("c") == b"333"
    for call in (fs.info, fs.ls, fs.cat_file, fs.rm_file, lambda p: fs.open(p), fs.size):
        with pytest.raises(FileNotFoundError):
            call("none")


def test_bytes(fs):
    fs.pipe({"a": b"0123456789", "b": b"x"})
    assert fs.cat_file("a", 2, 5) == b"234" and fs.cat_file("a", -3) == b"789"
    assert fs.cat_ranges(["a", "b"], [0, 0], [2, 1]) == [b"01", b"x"]
    assert fs.cat(["a", "b"]) == {"a": b"0123456789", "b": b"x"}
    assert fs.head("a", 3) == b"012" and fs.tail("a", 2) == b"89"
    with pytest.raises(FileExistsError):
        fs.pipe_file("a", b"", mode="create")
    with pytest.raises(FileExistsError):
        fs.open("a", "xb")
    with fs.open("a", "ab") as f:
        f.write(b"end")
    with fs.open("a", "r+b") as f:
        f.seek(1)
        f.write(b"!")
    assert fs.cat("a") == b"0!23456789end"
    fs.cp_file("a", "c")
    fs.mv("c", "d/e")
    fs.mv("d", "f", recursive=True)
    assert fs.find("") == ["a", "b", "f/e"]
    fs.rm("f", recursive=True)
    fs.rm("a")
    assert fs.find("") == ["b"]


def test_a_file_that_fails_leaves_nothing(fs):
    fs.pipe("a", b"before")
    with pytest.raises(RuntimeError), fs.open("a", "wb") as f:
        f.write(b"x" * 1_000_000)
        raise RuntimeError
    assert fs.cat("a") == b"before"


def test_a_transaction_is_one_commit(fs, path):
    fs.pipe("a", b"before")
    with pytest.raises(RuntimeError), fs.transaction:
        fs.pipe("a", b"after")
        with fs.open("b", "wb") as f:
            f.write(b"x" * 1_000_000)
        raise RuntimeError
    assert fs.find("") == ["a"] and fs.cat("a") == b"before"
    with fs.transaction:
        fs.pipe("a", b"after")
        with fs.open("b", "wb") as f:
            f.write(b"x")
            f.seek(0)
            f.write(b"y")
        assert fs.find("") == ["a", "b"] and fs.cat(["a", "b"]) == {"a": b"after", "b": b"y"}
        apart = HoldallFileSystem(fo=path, mode="r")
        assert apart.find("") == ["a"] and apart.cat("a") == b"before"
    assert fs.cat(["a", "b"]) == {"a": b"after", "b": b"y"}
    fs.close()
    with holdall.open(path) as store:
        assert store.collections() == ["default"] and store.verify()["sound"]


def test_readers_and_writers_of_one_process(fs, path):
    fs.pipe("a", b"x" * 1_000_000)
    other = HoldallFileSystem(fo=path, skip_instance_cache=True)
    with other.open("a") as source, fs.open("b", "wb") as target:
        shutil.copyfileobj(source, target)
    assert other.cat("b") == fs.cat("a")
    with fs.open("a") as f:
        f.read(10)
        other.pipe("a", b"changed")
        with pytest.raises(holdall.ConflictError):
            f.read()
    # What this process has open gives way to whoever opens the store itself, and uses it then.
    with holdall.open(path, "r+") as store:
        store["c"] = b"1"
        assert fs.cat("c") == b"1"
        fs.pipe("d", b"2")
        assert store["d"] == b"2"
        assert HoldallFileSystem(fo=store, skip_instance_cache=True).cat("d") == b"2"
    assert fs.cat("d") == b"2"


def test_threads(fs):
    def work(i):
        for j in range(5):
            fs.pipe(f"{i}/{j}", b"%d" % i)
            assert fs.cat(f"{i}/{j}") == b"%d" % i

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(fs.find("")) == 30


def test_other_processes_read_and_write_when_it_is_their_turn(fs, path):
    fs.pipe("a", b"1")
    assert fs.cat("a") == b"1"
    code = (
        "import sys, holdall.fsspec as h\n"
        "fs = h.HoldallFileSystem(fo=sys.argv[1])\n"
        "assert fs.cat('a') == b'1'\n"
    )
    subprocess.run([sys.executable, "-c", code, path], check=True)
    fs.close()
    subprocess.run([sys.executable, "-c", code + "fs.pipe('b', b'2')", path], check=True)
    assert fs.cat("b") == b"2"
    again = pickle.loads(pickle.dumps(fs))
    assert again.cat("b") == b"2"
    pid = os.fork()
    if pid == 0:
        os._exit(0 if fs.cat("b") == b"2" else 1)
    assert os.waitpid(pid, 0)[1] == 0


def test_read_only(path):
    fs = HoldallFileSystem(fo=path, mode="r", skip_instance_cache=True)
    for call in (lambda: fs.pipe("a", b""), lambda: fs.open("a", "wb"), lambda: fs.rm_file("a")):
        with pytest.raises(PermissionError):
            call()
    assert not path.exists()
    with pytest.raises(FileNotFoundError):
        fs.cat("a")
    with pytest.raises(ValueError):
        HoldallFileSystem(fo=path, mode="w")


def test_pandas(url):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": range(1000), "b": [str(i) for i in range(1000)]})
    frame.to_parquet(f"{url}/t/a.parquet")
    assert pandas.read_parquet(f"{url}/t/a.parquet").equals(frame)
    assert list(pandas.read_parquet(f"{url}/t/a.parquet", columns=["b"])) == ["b"]
    frame.to_csv(f"{url}/t/a.csv", index=False)
    assert len(pandas.read_csv(f"{url}/t/a.csv")) == 1000
    HoldallFileSystem.clear_instance_cache()


def test_pyarrow_datasets(url):
    dataset = pytest.importorskip("pyarrow.dataset")
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"year": [2024, 2025] * 500, "n": list(range(1000))})
    fs, root = fsspec.url_to_fs(f"{url}/table")
    dataset.write_dataset(table, root, filesystem=fs, format="parquet", partitioning=["year"])
    found = dataset.dataset(root, filesystem=fs, partitioning=["year"])
    assert found.count_rows() == 1000 and len(found.files) == 2
    assert found.to_table(filter=dataset.field("year") == 2024).num_rows == 500
    fs.close()


def test_the_stores_own_files_are_neither_source_nor_target(fs, path, tmp_path):
    fs.pipe_file("a", b"1" * 100_000)
    os.link(path, tmp_path / "hard")
    os.symlink(path, tmp_path / "soft")
    for name in (path, tmp_path / "hard", tmp_path / "soft", f"{path}-log"):
        with pytest.raises(holdall.InvalidError, match="belongs to the store"):
            fs.get_file("a", str(name))
        with pytest.raises(holdall.InvalidError, match="belongs to the store"):
            fs.put_file(str(name), "self")
    fs.pipe_file("into/a.holdall", b"2")
    before = path.read_bytes()
    with pytest.raises(holdall.InvalidError):
        fs.get("into/a.holdall", str(path))
    assert path.read_bytes() == before and not os.path.exists(f"{path}-log")
    fs.get("a", str(tmp_path / "other"))
    assert (tmp_path / "other").read_bytes() == b"1" * 100_000
    fs.put(str(tmp_path / "other"), "back")
    assert fs.cat_file("back") == b"1" * 100_000
    new = HoldallFileSystem(fo=str(tmp_path / "new.holdall"), skip_instance_cache=True)
    new.put_file(str(tmp_path / "other"), "first")
    assert new.cat_file("first") == b"1" * 100_000


def test_a_file_that_is_got_has_rights_of_its_own(fs, path, tmp_path):
    def mode(name):
        return os.stat(tmp_path / name).st_mode & 0o777

    with holdall.open(path, "a") as store:
        store.put("private", b"1", attributes={"mode": b"600"})
        store.put("plain", b"2")
    mask = os.umask(0o022)
    try:
        fs.get_file("private", str(tmp_path / "dir/new"))
        fs.get_file("plain", str(tmp_path / "plain"))
        (tmp_path / "old").write_bytes(b"old")
        os.chmod(tmp_path / "old", 0o604)
        os.symlink("old", tmp_path / "link")
        fs.get_file("private", str(tmp_path / "link"))
    finally:
        os.umask(mask)
    assert (mode("dir/new"), mode("plain"), mode("old")) == (0o600, 0o644, 0o604)
    assert (tmp_path / "old").read_bytes() == b"1" and (tmp_path / "link").is_symlink()
    with pytest.raises(FileNotFoundError):
        fs.get_file("none", str(tmp_path / "old"))
    assert (tmp_path / "old").read_bytes() == b"1"
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".holdall-")]
