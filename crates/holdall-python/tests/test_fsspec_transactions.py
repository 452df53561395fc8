"""Transactions of fsspec: every way in and out, and what rolls back."""

import os
import random
import threading

import fsspec
import pytest

import holdall
from holdall.fsspec import HoldallFileSystem


@pytest.fixture
def fs(path):
    fs = HoldallFileSystem(fo=path, skip_instance_cache=True)
    fs.pipe({"keep": b"kept", "d/1": b"1", "d/2": b"2"})
    yield fs
    assert_as_new(fs)
    fs.close()
    with holdall.open(path) as store:
        assert store.verify()["sound"] and store.collections() == ["default"]


def everything(fs):
    return {name: fs.cat_file(name) for name in fs.find("")}


def assert_as_new(fs):
    """The file system works as one that never had a transaction."""
    assert not fs._intrans and fs._transaction is None
    before = everything(fs)
    fs.pipe("probe", b"x")
    with fs.open("probe2", "wb") as f:
        f.write(b"y")
    with fs.transaction:
        fs.pipe("probe3", b"z")
    fs.start_transaction()
    fs.pipe("probe4", b"z")
    fs.end_transaction()
    apart = HoldallFileSystem(fo=fs._shared.path, mode="r", skip_instance_cache=True)
    assert everything(apart) == before | {
        "probe": b"x", "probe2": b"y", "probe3": b"z", "probe4": b"z"
    }
    fs.rm(["probe", "probe2", "probe3", "probe4"])
    assert everything(fs) == before


def test_a_failed_commit_ends_the_transaction(path):
    fs = HoldallFileSystem(fo=path, max_bytes=2_000_000, skip_instance_cache=True)
    for _ in range(3):
        with pytest.raises(holdall.FullError), fs.transaction:
            for name in "abc":
                fs.pipe(name, os.urandom(900_000))
        assert fs.find("") == []
    fs.pipe("x", b"")
    assert fs.exists("x")
    assert_as_new(fs)


def test_a_commit_that_fails(fs, monkeypatch):
    def fails(self):
        raise KeyboardInterrupt

    before = everything(fs)
    with pytest.raises(KeyboardInterrupt), monkeypatch.context() as patched:
        with fs.transaction:
            fs.pipe("a", b"1")
            patched.setattr(holdall.Transaction, "commit", fails)
    assert everything(fs) == before


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit, GeneratorExit])
@pytest.mark.parametrize("block", [True, False])
def test_an_exception_undoes_every_kind_of_change(fs, tmp_path, error, block):
    (tmp_path / "local").write_bytes(b"local")
    before = everything(fs)

    def work():
        fs.pipe("a", b"1")
        fs.pipe({"b": b"2", "c": b"3"})
        fs.pipe_file("keep", b"other")
        fs.touch("d/1")
        fs.touch("new")
        fs.cp_file("d/2", "copied")
        fs.copy("d", "e", recursive=True)
        fs.mv("d", "f", recursive=True)
        fs.mv("f/2", "moved")
        fs.put_file(str(tmp_path / "local"), "put")
        fs.put(str(tmp_path / "local"), "puts/")
        with fs.open("file", "wb") as f:
            f.write(b"x" * 300_000)
        with fs.open("keep", "ab") as f:
            f.write(b"more")
        fs.rm("e", recursive=True)
        fs.rm_file("a")
        assert everything(fs) == {
            "b": b"2", "c": b"3", "copied": b"2", "f/1": b"", "file": b"x" * 300_000,
            "keep": b"othermore", "moved": b"2", "new": b"", "put": b"local", "puts/local": b"local",
        }
        assert fs.isdir("f") and not fs.exists("d") and fs.size("file") == 300_000
        raise error

    if block:
        with pytest.raises(error), fs.transaction:
            work()
    else:
        transaction = fs.start_transaction()
        with pytest.raises(error):
            work()
        transaction.complete(commit=False)
    assert everything(fs) == before


def test_a_commit_keeps_every_kind_of_change(fs):
    with fs.transaction:
        fs.mv("d", "f", recursive=True)
        fs.rm("keep")
        with fs.open("text", "w") as f:
            f.write("äöü")
        with fs.open("w+", "w+b") as f:
            f.write(b"abc")
            f.seek(1)
            assert f.read() == b"bc"
        with pytest.raises(FileExistsError):
            fs.open("text", "xb")
        with pytest.raises(RuntimeError), fs.open("failed", "wb") as f:
            f.write(b"half")
            raise RuntimeError
    assert everything(fs) == {
        "f/1": b"1", "f/2": b"2", "text": "äöü".encode(), "w+": b"abc"
    }


def test_others_see_nothing_before_the_commit(fs, path):
    apart = HoldallFileSystem(fo=path, mode="r", skip_instance_cache=True)
    reader = fs.open("keep")
    with fs.transaction:
        fs.pipe("keep", b"new")
        inside = fs.open("keep")
        assert fs.cat("keep") == b"new" and apart.cat("keep") == b"kept"
        assert inside.read(1) == b"n" and reader.read() == b"kept"
    assert apart.cat("keep") == b"new" and inside.read() == b"ew"


def test_what_is_wrong_at_the_start(path):
    fs = HoldallFileSystem(fo=path, mode="r", skip_instance_cache=True)
    with pytest.raises(PermissionError), fs.transaction:
        raise AssertionError("not reached")
    assert not fs._intrans
    with pytest.raises(PermissionError):
        fs.start_transaction()
    assert not fs._intrans
    with pytest.raises(holdall.InvalidError, match="no transaction"):
        fs.end_transaction()
    fs = HoldallFileSystem(fo=path, skip_instance_cache=True)
    with holdall.open(path, "a") as store:
        store.close()
    # As in another process.
    with holdall.Store._unlisted(path, "r+", {}):
        with pytest.raises(holdall.LockedError), fs.transaction:
            raise AssertionError("not reached")
    assert_as_new(fs)


def test_one_in_another_is_refused_and_the_outer_goes_on(fs):
    with fs.transaction:
        fs.pipe("a", b"1")
        with pytest.raises(holdall.InvalidError, match="under way"), fs.transaction:
            raise AssertionError("not reached")
        with pytest.raises(holdall.InvalidError, match="under way"):
            fs.start_transaction()
        fs.pipe("b", b"2")
    assert fs.cat(["a", "b"]) == {"a": b"1", "b": b"2"}
    same = fs.transaction
    with same:
        fs.pipe("c", b"3")
    with pytest.raises(RuntimeError), same:
        fs.rm("c")
        raise RuntimeError
    assert fs.cat("c") == b"3"


def test_files_left_open_are_refused(fs):
    before = everything(fs)
    with pytest.raises(holdall.InvalidError, match="still open: 'left'"):
        with fs.transaction:
            fs.pipe("a", b"1")
            f = fs.open("left", "w")
            f.write("half")
    f.close()
    assert everything(fs) == before
    with pytest.raises(RuntimeError), fs.transaction:
        f = fs.open("left", "wb")
        f.write(b"half")
        raise RuntimeError
    f.close()
    assert everything(fs) == before


def test_files_of_before(fs):
    f = fs.open("before", "wb")
    f.write(b"x" * 500_000)
    with pytest.raises(RuntimeError), fs.transaction:
        fs.pipe("a", b"1")
        # Closed inside, it is a part of it.
        f.close()
        assert fs.size("before") == 500_000
        raise RuntimeError
    assert not fs.exists("before")
    f = fs.open("before", "wb")
    with fs.transaction:
        fs.pipe("a", b"1")
    f.write(b"whole")
    f.close()
    assert fs.cat("before") == b"whole"


def test_a_call_that_fails_half_way_spoils_it(fs):
    before = everything(fs)
    with pytest.raises(holdall.InvalidError, match="half way"), fs.transaction:
        with pytest.raises(TypeError):
            fs.pipe({"a": b"1", "b": None})
    assert everything(fs) == before


LONG = "y" * 900


@pytest.mark.parametrize(
    "call",
    [
        lambda fs, folder: fs.pipe({"a": b"1", "x" * 2000: b"2"}),
        lambda fs, folder: fs.pipe({"a": b"1", "keep": b"2"}, mode="create"),
        lambda fs, folder: fs.mv("m", "z" * 300, recursive=True),
        lambda fs, folder: fs.copy("m", "z" * 300, recursive=True),
        lambda fs, folder: fs.put([f"{folder}/1", f"{folder}/none"], "in/"),
        lambda fs, folder: fs.put(folder, "x" * 1020, recursive=True),
    ],
)
def test_what_a_call_did_before_it_failed_is_not_committed(fs, tmp_path, call):
    """Whatever it raises: also what is otherwise raised before anything is changed."""
    (tmp_path / "in").mkdir()
    for name in ("1", "2" * 200):
        (tmp_path / "in" / name).write_bytes(b"x")
    fs.pipe({"m/a": b"1", "m/b": b"2", f"m/{LONG}": b"3"})
    before = everything(fs)
    with pytest.raises((ValueError, OSError)):
        call(fs, str(tmp_path / "in"))
    assert everything(fs) == before
    with pytest.raises(holdall.InvalidError, match="half way"), fs.transaction:
        with pytest.raises((ValueError, OSError)):
            call(fs, str(tmp_path / "in"))
    assert everything(fs) == before


def test_what_is_refused_leaves_the_transaction_as_it_was(fs):
    with fs.transaction:
        fs.pipe("a", b"1")
        for refused in (
            lambda: fs.rm("none"),
            lambda: fs.mv("none", "x"),
            lambda: fs.copy("d", "d/e", recursive=True),
            lambda: fs.pipe_file("keep", b"", mode="create"),
        ):
            with pytest.raises(holdall.Error):
                refused()
    assert fs.cat("a") == b"1" and fs.cat("keep") == b"kept"


def test_putting_many_files_is_one_commit(fs, tmp_path):
    (tmp_path / "in" / "s").mkdir(parents=True)
    for i in range(4):
        (tmp_path / "in" / "s" / str(i)).write_bytes(b"%d" % i * 300_000)
    folder = str(tmp_path / "in")
    apart = HoldallFileSystem(fo=fs._shared.path, mode="r", skip_instance_cache=True)
    seen = set()

    class Watch(fsspec.callbacks.Callback):
        def relative_update(self, inc=1):
            seen.add(len(apart.find("p")))

    fs.put(folder, "p", recursive=True, callback=Watch())
    # As long as it goes on, nobody else sees any of it.
    assert seen == {0} and len(fs.find("p")) == 4
    fs.put([f"{folder}/s/{i}" for i in range(4)], "list/")
    fs.put(f"{folder}/s/*", "glob/")
    for name in ("p/s/3", "list/3", "glob/3"):
        assert fs.cat(name) == b"3" * 300_000


def test_a_full_store_is_said_to_be_full(path):
    fs = HoldallFileSystem(fo=path, max_bytes=1_500_000, skip_instance_cache=True)
    with pytest.raises(holdall.FullError), fs.transaction:
        with fs.open("big", "wb") as f:
            f.write(os.urandom(3_000_000))
    fs.pipe("x", b"1")
    assert everything(fs) == {"x": b"1"}


def test_calls_of_many_changes_are_one_commit(fs):
    before = everything(fs)
    with pytest.raises(TypeError):
        fs.pipe({"a": b"1", "b": None})
    with pytest.raises(FileNotFoundError):
        fs.rm(["keep", "none"])
    with pytest.raises(FileNotFoundError):
        fs.mv(["keep", "none"], ["x", "y"])
    with pytest.raises(FileNotFoundError):
        fs.copy(["keep", "none"], ["x", "y"])
    assert everything(fs) == before


def test_two_threads(fs):
    """Each in its turn, each whole; those that fail leave nothing."""
    failures = []

    def work(i):
        for j in range(10):
            try:
                with fs.transaction:
                    for k in range(3):
                        fs.pipe(f"{i}/{j}/{k}", b"%d" % i)
                    if j % 2:
                        raise RuntimeError
            except RuntimeError:
                pass
            except BaseException as e:
                failures.append(e)

    run(work, 4)
    assert not failures
    wanted = {f"{i}/{j}/{k}" for i in range(4) for j in range(0, 10, 2) for k in range(3)}
    assert set(fs.find("")) - {"keep", "d/1", "d/2"} == wanted


def run(work, count):
    threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_threads_of_one_block(fs):
    def work(i):
        with fs.open(f"t/{i}", "wb") as f:
            f.write(b"%d" % i * 1000)

    before = everything(fs)
    with pytest.raises(RuntimeError), fs.transaction:
        run(work, 4)
        assert len(fs.find("t")) == 4
        raise RuntimeError
    assert everything(fs) == before
    with fs.transaction:
        run(work, 4)
    assert fs.cat("t/3") == b"3" * 1000


def test_a_thread_that_ends_in_a_transaction(fs):
    run(lambda _: fs.start_transaction(), 1)
    with pytest.raises(holdall.InvalidError, match="left a transaction"), fs.transaction:
        raise AssertionError("not reached")
    fs.pipe("a", b"1")
    fs.end_transaction()
    assert fs.cat("a") == b"1"


def test_urls_in_a_block_are_the_same_file_system(path):
    fs, _ = fsspec.url_to_fs(f"holdall://{path}")
    with pytest.raises(RuntimeError), fs.transaction:
        with fsspec.open(f"holdall://{path}/a", "w") as f:
            f.write("1")
        assert HoldallFileSystem(str(path)).cat("a") == b"1"
        raise RuntimeError
    assert not fs.exists("a")
    HoldallFileSystem.clear_instance_cache()


@pytest.mark.parametrize("seed", range(20))
def test_random_histories_beside_a_dict(fs, seed):
    rng = random.Random(seed)
    want = everything(fs)
    names = [f"{folder}{i}" for folder in ("", "p/", "q/") for i in range(4)]

    def step(have):
        a, b = rng.choice(names), rng.choice(names)
        kind = rng.choice(["pipe", "file", "rm", "cp", "mv", "append", "mvdir", "fail"])
        if kind == "pipe":
            have[a] = rng.randbytes(10)
            fs.pipe(a, have[a])
        elif kind == "file":
            have[a] = rng.randbytes(1000)
            with fs.open(a, "wb") as f:
                f.write(have[a])
        elif kind == "append":
            have[a] = have.get(a, b"") + b"+"
            with fs.open(a, "ab") as f:
                f.write(b"+")
        elif kind == "fail":
            with pytest.raises(ZeroDivisionError), fs.open(a, "wb") as f:
                f.write(b"half")
                raise ZeroDivisionError
        elif kind == "mvdir" and fs.isdir("p") and not fs.exists("q"):
            fs.mv("p", "q", recursive=True)
            for name in [n for n in have if n.startswith("p/")]:
                have["q" + name[1:]] = have.pop(name)
        elif kind == "rm" and a in have:
            fs.rm(a)
            del have[a]
        elif kind in ("cp", "mv") and a in have:
            (fs.cp_file if kind == "cp" else fs.mv_file)(a, b)
            value = have[a] if kind == "cp" else have.pop(a)
            have[b] = value
        assert everything(fs) == have, kind

    for _ in range(12):
        after = dict(want)
        fails = rng.random() < 0.5
        try:
            with fs.transaction:
                for _ in range(rng.randrange(6)):
                    step(after)
                if fails:
                    raise RuntimeError
            want = after
        except RuntimeError:
            assert fails
        step(want)
