"""Which store a file system stands for: links, replaced files, folders, memory, closed stores."""

import gc
import os
import pickle
import shutil
import threading

import fsspec
import pytest

import holdall
from holdall._shared import Shared
from holdall.fsspec import HoldallFileSystem


@pytest.fixture(autouse=True)
def cache():
    HoldallFileSystem.clear_instance_cache()
    yield
    HoldallFileSystem.clear_instance_cache()


def made(path, **objects):
    with holdall.open(path, "a") as store:
        store.update({name: data.encode() for name, data in objects.items()})
    return path


@pytest.mark.parametrize("skip", [True, False])
def test_two_stores_in_memory(skip):
    a, b = holdall.in_memory(), holdall.in_memory()
    fa = HoldallFileSystem(a, skip_instance_cache=skip)
    fb = HoldallFileSystem(b, skip_instance_cache=skip)
    fa.pipe("x", b"a")
    assert list(a) == ["x"] and list(b) == [] and not fb.exists("x")
    fb.pipe("x", b"b")
    assert fa.cat("x") == b"a" and fb.cat("x") == b"b"
    assert fa != fb and hash(fa) != hash(fb) and fa.fsid != fb.fsid
    assert fsspec.filesystem("holdall", fo=b, skip_instance_cache=skip).cat("x") == b"b"
    with fsspec.open("holdall://x", fo=a) as f:
        assert f.read() == b"a"


def test_an_empty_store_that_is_given_is_asked(path):
    made(path, x="1")
    with holdall.in_memory() as empty, holdall.open(path, "r+") as full:
        for store in (empty, full):
            shared = Shared.of_store(store)
            with shared.reading() as read, shared.writing() as written:
                assert read is store and written is store


def test_the_same_store_is_the_same_file_system(path):
    with holdall.open(path, "a") as store:
        assert HoldallFileSystem(store) is HoldallFileSystem(fo=store)
        assert HoldallFileSystem(store) is not HoldallFileSystem(store, mode="r")
    assert HoldallFileSystem(path) is HoldallFileSystem(fo=str(path))
    assert HoldallFileSystem(path) is fsspec.url_to_fs(f"holdall://{path}/x")[0]
    assert HoldallFileSystem(path) is not HoldallFileSystem(path, mode="r")
    with pytest.raises(TypeError, match="twice"):
        HoldallFileSystem(path, fo=path)


def test_a_store_opened_again_is_another(path):
    with holdall.open(path, "a") as store:
        HoldallFileSystem(store).pipe("x", b"1")
        closed = HoldallFileSystem(store)
    with pytest.raises(ValueError, match="closed"):
        closed.cat("x")
    with pytest.raises(ValueError, match="closed"):
        closed.pipe("x", b"2")
    with holdall.open(path, "r+") as store:
        assert HoldallFileSystem(store).cat("x") == b"1"
    with pytest.raises(ValueError, match="closed"):
        closed.cat("x")


def test_stores_are_not_kept_alive():
    store = holdall.in_memory()
    fs = HoldallFileSystem(store)
    fs.pipe("x", b"1")
    import weakref

    gone = weakref.ref(store)
    del store, fs
    gc.collect()
    assert gone() is None


def test_relative_paths_stay_where_they_were(tmp_path, monkeypatch):
    for name in "ab":
        (tmp_path / name).mkdir()
        made(tmp_path / name / "s.holdall", x=name)
    monkeypatch.chdir(tmp_path / "a")
    url, _ = fsspec.url_to_fs("holdall://s.holdall/x")
    path, opened = HoldallFileSystem("s.holdall"), fsspec.open("holdall://s.holdall/y", "wb")
    chained, _ = fsspec.url_to_fs("holdall://x::file://s.holdall")
    dumped = pickle.dumps(url)
    monkeypatch.chdir(tmp_path / "b")
    for fs in (url, path, chained, pickle.loads(dumped)):
        assert fs.cat("x") == b"a"
    with opened as f:
        f.write(b"to a")
    assert fsspec.url_to_fs("holdall://s.holdall")[0].cat("x") == b"b"
    assert HoldallFileSystem("s.holdall").cat("x") == b"b"
    assert not HoldallFileSystem(tmp_path / "b/s.holdall").exists("y")
    assert HoldallFileSystem(tmp_path / "a/s.holdall").cat("y") == b"to a"


@pytest.mark.parametrize("how", ["replace", "rename", "remove", "link"])
def test_a_file_that_takes_the_place_is_seen(tmp_path, how):
    first, second = made(tmp_path / "1.bin", x="1"), made(tmp_path / "2.bin", x="2", y="2")
    path = tmp_path / "s.holdall"
    os.symlink(first, path) if how == "link" else shutil.copy(first, path)
    fs = HoldallFileSystem(path)
    assert fs.cat("x") == b"1"
    file = fs.open("x")
    if how == "replace":
        os.replace(second, path)
    elif how == "rename":
        os.rename(path, tmp_path / "old")
        os.rename(second, path)
    elif how == "remove":
        os.remove(path)
        assert not fs.exists("x") and fs.find("") == []
        shutil.copy(second, path)
    else:
        os.remove(path)
        os.symlink(second, path)
    assert fs.cat("x") == b"2" and fs.find("") == ["x", "y"]
    with pytest.raises((holdall.ConflictError, FileNotFoundError)):
        # Of one store's object and another's, nothing is read as one.
        assert file.read() == b"1"
        raise FileNotFoundError
    fs.pipe("z", b"3")
    assert fs.find("") == ["x", "y", "z"]


def test_a_file_removed_for_good(path):
    made(path, x="1")
    fs = HoldallFileSystem(path)
    assert fs.cat("x") == b"1"
    os.remove(path)
    with pytest.raises(FileNotFoundError):
        fs.cat("x")
    fs.pipe("y", b"2")
    assert fs.find("") == ["y"]


def test_links_are_the_same_store(tmp_path):
    path = made(tmp_path / "a.holdall", x="1")
    os.link(path, tmp_path / "hard.holdall")
    os.symlink(path, tmp_path / "soft.holdall")
    every = [HoldallFileSystem(tmp_path / f"{n}.holdall") for n in ("a", "hard", "soft")]
    for fs in every:
        assert fs.cat("x") == b"1"
    for i, fs in enumerate(every):
        # One reads while another writes.
        with every[0].open("x") as source, fs.open(f"new{i}", "wb") as target:
            target.write(source.read())
        assert [other.cat(f"new{i}") for other in every] == [b"1"] * 3
    with holdall.open(path, "r+") as store:
        store["mine"] = b"2"
        for i, fs in enumerate(every):
            assert fs.cat("mine") == b"2"
            fs.pipe(f"more{i}", b"3")
            assert store[f"more{i}"] == b"3"


def test_a_url_of_another_store_is_refused(tmp_path):
    a, b = made(tmp_path / "a.holdall", x="a"), made(tmp_path / "b.holdall", x="b")
    os.symlink(a, tmp_path / "soft.holdall")
    fs = HoldallFileSystem(a)
    assert fs.cat(f"holdall://{a}/x") == b"a" == fs.cat(f"holdall://{tmp_path}/soft.holdall/x")
    for call in (fs.cat, fs.open, fs.rm, fs.info, lambda u: fs.mv(u, "y"), lambda u: fs.pipe(u, b"")):
        with pytest.raises(holdall.InvalidError, match="is not in the store"):
            call(f"holdall://{b}/x")
    assert fs.find("") == ["x"]


def test_where_the_store_is_missing(path):
    fs = HoldallFileSystem(path)
    assert fs.find("") == [] and fs.find("a", detail=True) == {} and fs.glob("*") == []
    assert fs.find("", maxdepth=1) == [] and fs.find("", withdirs=True) == []
    assert not fs.exists("") and not fs.exists("a") and not fs.isdir("") and not fs.isfile("a")
    assert list(fs.walk("")) == [] and fs.du("") == 0
    for call in (
        fs.ls, fs.info, fs.cat, fs.open, fs.rm, fs.rm_file, lambda n: fs.mv(n, "b"),
        lambda n: fs.copy(n, "b"), lambda n: fs.cp_file(n, "b"), lambda n: fs.rm(n, recursive=True),
        lambda n: fs.mv(n, "b", recursive=True),
    ):
        with pytest.raises(FileNotFoundError):
            call("a")
        # Nothing that only looks for objects makes the file.
        assert not path.exists()
    with pytest.raises(FileNotFoundError):
        fs.ls("")
    fs.touch("a")
    assert fs.find("") == ["a"]


def test_what_is_wrong_is_not_taken_for_missing(path):
    path.write_bytes(b"not a store at all" * 1000)
    fs = HoldallFileSystem(path)
    for call in (fs.find, fs.exists, fs.isdir, fs.isfile, fs.ls, fs.info):
        with pytest.raises(holdall.NotAStoreError):
            call("")


def test_many_make_the_file(path):
    def work(i):
        HoldallFileSystem(path, skip_instance_cache=True).pipe(f"{i}", b"x")

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(HoldallFileSystem(path).find("")) == [str(i) for i in range(8)]


def test_two_sets_of_options(path):
    made(path, x="1")
    wide = HoldallFileSystem(path)
    assert wide.cat("x") == b"1"
    narrow = HoldallFileSystem(path, max_bytes=2_000_000)
    with pytest.raises(holdall.FullError):
        narrow.pipe("y", os.urandom(3_000_000))
    wide.pipe("y", os.urandom(3_000_000))
    assert wide.size("y") == 3_000_000


def test_a_fork_with_stores_open(path):
    made(path, x="1")
    fs = HoldallFileSystem(path)
    assert fs.cat("x") == b"1"
    pid = os.fork()
    if pid == 0:
        os._exit(0 if fs.cat("x") == b"1" and HoldallFileSystem(path).cat("x") == b"1" else 1)
    assert os.waitpid(pid, 0)[1] == 0


def test_a_store_that_gives_names_out_as_bytes(path):
    """What a store's user chose for names does not reach those who share it."""
    with holdall.open(path, "a", keys="bytes") as store:
        store["a/b"] = b"1"
        given = HoldallFileSystem(store, skip_instance_cache=True)
        for fs in (given, HoldallFileSystem(path, skip_instance_cache=True)):
            assert fs.find("") == ["a/b"] and fs.ls("a", detail=False) == ["a/b"]
            assert fs.isdir("a") and fs.cat("a/b") == b"1" and fs.glob("a/*") == ["a/b"]
            fs.pipe("a/c", b"2")
            fs.rm("a/c")
        assert list(store) == [b"a/b"]

    with pytest.raises(ValueError, match="keys"):
        HoldallFileSystem(path, keys="text").find("")
    made(path, y="2")
    assert HoldallFileSystem(path, keys="bytes").find("") == HoldallFileSystem(path).find("")


WHAT_IS_LEFT = {
    "deferred": lambda s: s.deferred(),
    "collection": lambda s: s.collection("c"),
    "transaction": lambda s: s.transaction(),
    "file": lambda s: s.open("x", "r+b"),
    "new file": lambda s: s.open("y", "wb"),
    "names": lambda s: iter(s),
}


@pytest.mark.parametrize("left", WHAT_IS_LEFT)
def test_a_store_is_found_by_whatever_is_left_of_it(path, left):
    """The program keeps no store, only something of it; that has the file open."""
    made(path, x="1")
    kept = WHAT_IS_LEFT[left](holdall.open(path, "r+"))
    gc.collect()
    fs = HoldallFileSystem(path)
    assert fs.cat("x") == b"1"
    if left == "deferred":
        kept["x"] = b"2"
        assert fs.cat("x") == b"2"
        fs.pipe("x", b"3")
        assert kept["x"] == b"3"
    if hasattr(kept, "give_up"):
        kept.give_up()
    del kept
    gc.collect()
    fs.pipe("z", b"4")
    with holdall.open(path, "r+") as store:
        assert store["z"] == b"4"


@pytest.mark.parametrize("fo", [":memory:", "", b"", "a\0b"])
def test_what_is_no_path_is_refused(tmp_path, monkeypatch, fo):
    zarr = pytest.importorskip("holdall.zarr")
    monkeypatch.chdir(tmp_path)
    for make in (HoldallFileSystem, zarr.HoldallStore):
        with pytest.raises(ValueError):
            make(fo)
    if fo != ":memory:":
        for mode in ("r", "r+", "a", "w", "x"):
            with pytest.raises(ValueError):
                holdall.open(fo, mode)
    assert os.listdir() == []


def test_written_down(path):
    made(path, x="1")
    fs = HoldallFileSystem(path, timeout=3, mode="r")
    again = HoldallFileSystem.from_json(fs.to_json())
    assert again is fs and again.cat("x") == b"1"
    # A store is a mapping, and its objects are no options.
    with holdall.open(path) as store:
        for call in (HoldallFileSystem(store).to_json, HoldallFileSystem(store).to_dict):
            with pytest.raises(TypeError, match="open store"):
                call()
