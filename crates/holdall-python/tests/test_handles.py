"""One state for all handles of a process; types of names; what is pickled and how."""

import copy
import os
import pickle
import shelve
import subprocess
import sys

import pytest

import holdall


def test_what_one_handle_wrote_every_handle_sees(store):
    fast = store.deferred()
    for i in range(200):
        writer, value = (store, fast)[i % 2], f"{i}".encode()
        writer["a"] = value
        oid = store.info("a").oid
        with store.snapshot() as snapshot, store.transaction() as tx:
            for view in (store, fast, snapshot, tx, store.collection("default")):
                assert view["a"] == view.get("a") == view[oid] == value
                assert view.get_range("a") == value and view.get_many(["a"]) == [value]
                assert list(view.items()) == [("a", value)] and len(view) == 1
                assert view.info("a").size == len(value) and "a" in view
                assert view.open("a", "rb").read() == value
                buffer = bytearray(10)
                assert buffer[: view.read_into("a", buffer)] == value
        writer.collection(f"c{i % 3}")["x"] = value
        assert store.collection(f"c{i % 3}")["x"] == fast.collection(f"c{i % 3}")["x"] == value
    assert store.collections() == fast.collections() == ["c0", "c1", "c2", "default"]


def test_a_store_needs_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for mode in ("r", "r+", "a", "w", "x"):
        with pytest.raises(ValueError, match="path of a store is empty"):
            holdall.open("", mode)
    for mode in ("r", "r+"):
        with pytest.raises(FileNotFoundError):
            holdall.open(":memory:", mode)
    for mode in ("a", "w", "x"):
        with holdall.open(":memory:", mode) as one, holdall.open(":memory:", mode) as two:
            one["a"] = b"1"
            assert not two and one.path == "" and not one.read_only
    assert os.listdir(tmp_path) == []
    with pytest.raises(ValueError, match="mode"):
        holdall.open(":memory:", "z")


def test_a_store_in_memory_takes_options():
    with holdall.in_memory(max_bytes=4 << 20) as store, pytest.raises(holdall.FullError):
        for i in range(100):
            store[str(i)] = os.urandom(100_000)
    with pytest.raises(ValueError):
        holdall.in_memory(page_size=5000)
    with pytest.raises(TypeError, match="no option"):
        holdall.in_memory(colour=1)
    assert holdall.in_memory(page_size=4096).stat()["page_size"] == 4096
    assert list(holdall.in_memory(keys="bytes")) == []


def test_names_as_bytes(path):
    names = [b"a", "ä".encode(), b"\xff not utf-8", b"dir/x"]
    with holdall.open(path, "a", keys="bytes") as store:
        store.update({name: name for name in names})
        store["text"] = b"text"
        all_of_them = sorted([*names, b"text"])
        with store.snapshot() as snapshot, store.transaction() as tx:
            views = (store, snapshot, tx, store.deferred())
            for view in views:
                assert list(view) == list(view.keys()) == list(view.names()) == all_of_them
                assert list(view.items()) == [(name, name) for name in all_of_them]
                assert list(reversed(view)) == all_of_them[::-1]
                assert view.list().prefixes == [b"dir/"] and b"a" in view.list().names
                assert view.list(limit=1).next == b"a" and view.info("text").name == b"text"
        store.collection("c")[b"x"] = b"1"
        assert list(store.collection("c")) == [b"x"]
        assert store.popitem() == (b"a", b"a")
    with holdall.open(path, keys="str") as store:
        assert list(store) == [os.fsdecode(name) for name in all_of_them[1:]]
    with pytest.raises(ValueError, match="neither"):
        holdall.open(path, keys="int")


def test_shelve(path):
    with shelve.Shelf(holdall.open(path, "a", keys="bytes")) as shelf:
        shelf["a"] = {"some": ["thing"]}
        shelf["ä"] = 2
        assert list(shelf) == ["a", "ä"] and dict(shelf) == {"a": {"some": ["thing"]}, "ä": 2}
        assert "a" in shelf and len(shelf) == 2 and shelf.pop("ä") == 2
    with shelve.Shelf(holdall.open(path, "r+", keys="bytes"), writeback=True) as shelf:
        shelf["a"]["some"].append("more")
    with shelve.Shelf(holdall.open(path, keys="bytes")) as shelf:
        assert shelf["a"] == {"some": ["thing", "more"]}


def test_pickles_keep_what_they_are_of(path):
    with holdall.open(path, "a") as store:
        store.update({"a": b"1", "b": b"2" * 100_000})
        store.collection("c")["x"] = b"3"
        info = store.info("a")
        for of_writer in (store, store.collection("c"), store.snapshot(), store.deferred()):
            with pytest.raises(TypeError, match="open for writing"):
                pickle.dumps(of_writer)
        with store.transaction() as tx:
            for of_tx in (tx, tx.collection("c")):
                with pytest.raises(TypeError, match="transaction"):
                    pickle.dumps(of_tx)
    again = pickle.loads(pickle.dumps(info))
    assert again == info and hash(again) == hash(info) and again.attributes == info.attributes
    assert repr(again) == repr(info) and again != pickle.loads(pickle.dumps(info.oid))
    assert copy.copy(info) == copy.deepcopy(info) == info
    options = {"cache_bytes": 8 << 20, "keys": "bytes", "timeout": 1.5, "max_bytes": None}
    with holdall.open(path, **options) as store:
        for view in (store, store.snapshot(), store.deferred()):
            other = pickle.loads(pickle.dumps(view))
            assert list(other) == [b"a", b"b"] and other["a"] == b"1" and type(other) is type(view)
            assert other.source.options == options and other.source.read_only
            other = pickle.loads(pickle.dumps(view.collection("c")))
            assert list(other.items()) == [(b"x", b"3")] and isinstance(other, holdall.Collection)
        text = pickle.dumps(store.snapshot())
        # Each has the store open.
        del other, view
    with holdall.open(path, "r+") as store:
        store["a"] = b"changed"
    with pytest.raises(holdall.SnapshotTooOldError, match="changed since"):
        pickle.loads(text)
    error = pytest.raises(holdall.NotFoundError, holdall.open, path.with_name("no")).value
    error = pickle.loads(pickle.dumps(error))
    assert error.errno == 2 and error.filename.endswith("no") and "not found" in str(error)


def test_errors_are_those_of_files(path, store):
    with pytest.raises(FileNotFoundError) as caught:
        holdall.open(path.with_name("none"))
    assert caught.value.errno == 2 and caught.value.filename == path.with_name("none").as_posix()
    with pytest.raises(NotADirectoryError) as caught:
        holdall.open(path / "below", "a")
    assert caught.value.errno == 20 and caught.value.filename == str(path / "below")
    for name in ("BusyError", "ExistsError", "FullError", "LockedError", "NotFoundError",
                 "OffsetError", "PoisonedError", "ReadOnlyError"):  # fmt: skip
        error = getattr(holdall, name)("text")
        assert isinstance(error, OSError) and error.errno and error.strerror and str(error) == "text"


TYPED = """
import holdall
from typing import assert_type

with holdall.open("a.holdall", "a", cache_bytes=1 << 20, timeout=5, wait=True) as s:
    assert_type(s, holdall.Store[str])
    for k in s:
        k.split("/")
    for name, value in s.items():
        name.upper(), value.hex()
    with s.transaction(timeout=1.0) as tx, s.snapshot() as snap:
        assert_type(list(tx), list[str])
        assert_type(next(iter(snap.collection("c").keys())), str)
    assert_type(s.list().names, list[str])
    assert_type(s.popitem(), tuple[str, bytes])
    s[b"bytes"] = b"1"

def takes(plain: holdall.Store) -> int:
    return sum(len(k.split("/")) for k in plain)

raw = holdall.open("a.holdall", keys="bytes")
assert_type(raw, holdall.Store[bytes])
for b in raw:
    b.split(b"/")
assert_type(holdall.in_memory(), holdall.Store[str])
options: holdall.Options = {"max_bytes": None, "defer": 0.1}
holdall.open("a.holdall", **options)
"""


@pytest.mark.parametrize(
    "line, message",
    [
        (None, ""),
        ('holdall.open("a", colour=1)', "colour"),
        ('holdall.open("a", cache_bytes="x")', "cache_bytes"),
        ('holdall.open("a", keys="int")', "open"),
        ('holdall.open("a", keys="bytes").popitem()[0].split("/")', "split"),
    ],
)
def test_types_are_those_that_a_checker_sees(tmp_path, line, message):
    (tmp_path / "typed.py").write_text(TYPED if line is None else f"import holdall\n{line}\n")
    command = [sys.executable, "-m", "mypy", "--strict", "--python-version", "3.11", "typed.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode == 0) == (line is None), done.stdout
    assert message in done.stdout
