"""Moves and copies: into themselves, onto each other, at the top, each as one commit."""

import pytest

import holdall
from holdall.fsspec import HoldallFileSystem

ALL = {"e": b"e", "f": b"f", "d/a": b"da", "d/sub/a": b"dsa", "k/x": b"kx", "l/x": b"lx"}


@pytest.fixture(params=["alone", "in a transaction"])
def fs(path, request):
    fs = HoldallFileSystem(fo=path, skip_instance_cache=True)
    fs.pipe(ALL)
    if request.param == "alone":
        yield fs
    else:
        with fs.transaction:
            yield fs
    fs.close()


def everything(fs):
    return {name: fs.cat_file(name) for name in fs.find("")}


@pytest.mark.parametrize(
    "source, target, options",
    [
        ("e", "e/", {}),
        ("e", "e/e", {}),
        ("d", "d/sub", {"recursive": True}),
        ("d", "d/", {"recursive": True}),
        ("d/", "d/new/", {"recursive": True}),
        ("d/", "d/new", {"recursive": True}),
        ("d", "d/sub/new", {"recursive": True}),
        ("", "d", {"recursive": True}),
        ("", "new", {"recursive": True}),
        (["e", "f"], ["f", "g"], {}),
        (["e", "f"], ["f", "e"], {}),
        (["e", "f"], ["g", "g"], {}),
        (["k/x", "l/x"], "e2/", {}),
        (["d", "k"], "d/", {"recursive": True}),
    ],
)
def test_what_would_lose_something_is_refused(fs, source, target, options):
    for call in (fs.mv, fs.copy, fs.cp, fs.move, fs.rename):
        with pytest.raises(holdall.InvalidError):
            call(source, target, **options)
        assert everything(fs) == ALL


@pytest.mark.parametrize("call", ["mv", "copy", "mv_file", "cp_file"])
def test_onto_itself_changes_nothing(fs, call):
    for name in ("e", "/e", "d/a"):
        getattr(fs, call)(name, "e" if name != "d/a" else "d/a")
        assert everything(fs) == ALL
    if call in ("mv", "copy"):
        for name in ("d", "d/", "/d", ""):
            getattr(fs, call)(name, name.rstrip("/"), recursive=True)
            assert everything(fs) == ALL
    with pytest.raises(FileNotFoundError):
        getattr(fs, call)("none", "none")
    assert everything(fs) == ALL


def test_moves(fs):
    fs.mv("e", "new")
    fs.mv("f", "dir/")
    fs.mv("d", "d2", recursive=True)
    fs.mv("k", "l/", recursive=True)
    assert everything(fs) == {
        "new": b"e", "dir/f": b"f", "d2/a": b"da", "d2/sub/a": b"dsa", "l/x": b"lx", "l/k/x": b"kx"
    }
    fs.mv("new", "dir/f")
    fs.mv("d2/*", "top/", recursive=True)
    fs.mv(["l/x", "l/k/x"], ["1", "2"])
    assert everything(fs) == {
        "dir/f": b"e", "top/a": b"da", "top/sub/a": b"dsa", "1": b"lx", "2": b"kx"
    }
    assert not fs.exists("d2") and not fs.exists("l")
    fs.mv("top/sub", "", recursive=True)
    fs.mv("dir/f", "")
    assert fs.find("") == ["1", "2", "f", "sub/a", "top/a"]
    with pytest.raises(holdall.InvalidError, match="recursive"):
        fs.mv("top", "bottom")
    with pytest.raises(FileNotFoundError):
        fs.mv("none", "1")
    assert fs.cat("1") == b"lx"


def test_copies(fs):
    fs.cp("d", "d2", recursive=True)
    fs.cp("d/", "d3/", recursive=True)
    fs.cp("e", "dir/")
    fs.cp("e", "f")
    assert everything(fs) == ALL | {
        "d2/a": b"da", "d2/sub/a": b"dsa", "d3/a": b"da", "d3/sub/a": b"dsa", "dir/e": b"e", "f": b"e"
    }
    fs.cp("d", "k")
    assert "k/a" not in everything(fs)


def test_what_stands_for_a_folder_goes_with_it(path):
    with holdall.open(path, "a") as store:
        store.update({"d/": b"", "d/a": b"1", "d/sub/": b""})
        fs = HoldallFileSystem(store)
        fs.cp("d", "c", recursive=True)
        assert list(store) == ["c/", "c/a", "c/sub/", "d/", "d/a", "d/sub/"]
        fs.mv("d", "m", recursive=True)
        assert list(store) == ["c/", "c/a", "c/sub/", "m/", "m/a", "m/sub/"]
        fs.rm("c", recursive=True)
        assert not fs.exists("c")
        fs.rm("m", recursive=True)
        assert list(store) == []


def test_a_name_of_an_object_and_a_folder(path):
    fs = HoldallFileSystem(fo=path, skip_instance_cache=True)
    fs.pipe({"b": b"object", "b/x": b"inside"})
    fs.mv("b", "c")
    assert everything(fs) == {"c": b"object", "b/x": b"inside"}
    fs.pipe("b", b"again")
    fs.mv("b", "m", recursive=True)
    assert everything(fs) == {"c": b"object", "m": b"again", "m/x": b"inside"}


def test_each_is_one_commit(path, monkeypatch):
    fs = HoldallFileSystem(fo=path, skip_instance_cache=True)
    fs.pipe({f"d/{i:04}": b"x" for i in range(2500)})
    before = everything(fs)

    def fails(self):
        raise holdall.FullError("for the test")

    for call in (
        lambda: fs.mv("d", "m", recursive=True),
        lambda: fs.cp("d", "m", recursive=True),
        lambda: fs.rm("d", recursive=True),
        lambda: fs.touch("d/0001"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(holdall.Transaction, "commit", fails)
            with pytest.raises(holdall.FullError):
                call()
        assert everything(fs) == before
    fs.mv("d", "m", recursive=True)
    assert len(fs.find("m")) == 2500 and not fs.exists("d")
