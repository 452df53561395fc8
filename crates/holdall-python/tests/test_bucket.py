"""Stores in buckets as mappings, and how they are opened."""

import multiprocessing
import pickle
import signal
import socket
import threading
import time
from datetime import datetime, timedelta, timezone

import pytest

import holdall


def test_it_is_a_mapping(bucket):
    assert not bucket and len(bucket) == 0 and list(bucket) == []
    bucket["a"] = b"one"
    bucket["ordner/ü %"] = bytearray(b"two")
    bucket[b"c"] = memoryview(b"three")
    assert bucket and len(bucket) == 3 and "a" in bucket and b"none" not in bucket
    assert bucket["a"] == b"one" and bucket.get("none") is None and bucket.get("none", 7) == 7
    assert set(bucket) == set(bucket.keys()) == {"a", "ordner/ü %", "c"}
    assert dict(bucket.items()) == {"a": b"one", "ordner/ü %": b"two", "c": b"three"}
    assert sorted(bucket.values()) == [b"one", b"three", b"two"]
    assert list(bucket.names("ordner/")) == ["ordner/ü %"]
    del bucket["a"]
    with pytest.raises(holdall.NotFoundError):
        del bucket["a"]
    with pytest.raises(KeyError):
        bucket["a"]
    assert bucket.pop("c") == b"three" and bucket.pop("c", 1) == 1
    with pytest.raises(KeyError):
        bucket.pop("c")
    assert bucket.setdefault("d", b"x") == b"x" and bucket.setdefault("d", b"y") == b"x"
    bucket.update({"e": b"e"}, f=b"f")
    assert bucket.get_many(["e", "none", "f"]) == [b"e", None, b"f"]
    name, data = bucket.popitem()
    assert data in (b"two", b"x", b"e", b"f") and name not in bucket
    bucket.clear()
    assert not bucket
    with pytest.raises(KeyError):
        bucket.popitem()
    assert bucket != {} and bucket == bucket


def test_many_objects_of_many_sizes_come_back(bucket):
    sizes = [0, 1, 65_536, 65_537, 9_000_000] + [n * 1000 for n in range(150)]
    objects = {f"n{n:03}": bytes([n % 256]) * size for n, size in enumerate(sizes)}
    assert bucket.put_many(objects.items()) == len(objects)
    assert len(bucket) == len(objects)
    assert dict(bucket.items()) == objects
    page = bucket.list(limit=100)
    rest = bucket.list(start_after=page.next, limit=100)
    assert page.names + rest.names == sorted(objects) and rest.next is None
    with pytest.raises(holdall.InvalidError):
        bucket.list(start_after="n001")
    assert [info.size for info in bucket.info_many(sorted(objects))] == sizes


def test_pages_have_folders(bucket):
    bucket.update({"a/1": b"", "a/2": b"", "b": b""})
    assert bucket.list() == (["b"], ["a/"], None)
    assert bucket.list("a/").names == ["a/1", "a/2"] and bucket.list(delimiter=None).prefixes == []
    bucket.remove_many(["a/1", "a/2"])
    assert bucket.list() == (["b"], [], None)
    with pytest.raises(holdall.NotInBucketError):
        bucket.list(delimiter="-")


def test_ranges_edits_and_copies(bucket):
    data = bytes(range(256)) * 20_000
    bucket["film"] = data
    assert bucket.get_range("film", 5, 9) == data[5:9] and bucket.get_range("film", 5) == data[5:]
    assert bucket.get_range("none") is None
    buffer = bytearray(10)
    assert bucket.read_into("film", buffer, len(data) - 4) == 4 and buffer == data[-4:] + bytes(6)
    with pytest.raises(holdall.NotFoundError):
        bucket.read_into("none", buffer)
    assert bucket.insert("film", 100, b"more") == len(data) + 4
    bucket.copy("film", "before")
    assert bucket.delete_range("film", 0, 100) == len(data) - 96
    assert bucket.append("film", b"end") == len(data) - 93
    assert bucket.splice("film", 0, 4, b"M") == len(data) - 96
    assert bucket.write_at("film", 1, b"xy") == len(data) - 96
    edits = [("truncate", 10), ("insert", 0, b"-"), ("append", b"!")]
    assert bucket.edit("film", edits) == 12
    assert bucket["film"] == b"-Mxy" + data[102:109] + b"!"
    assert bucket["before"][98:106] == data[98:100] + b"more" + data[100:102]
    assert bucket.copy_range("before", 100, 104, "film", 1) == 16
    bucket.concat(["film", "film"], "twice")
    assert bucket["twice"] == bucket["film"] * 2 and bucket["film"][1:5] == b"more"
    bucket.rename("twice", "again")
    assert "twice" not in bucket
    with pytest.raises(holdall.ExistsError):
        bucket.rename("again", "film")
    bucket.rename("again", "film", replace=True)
    assert len(bucket["film"]) == 32
    with pytest.raises(holdall.InvalidError):
        bucket.insert("film", 33, b"x")
    with pytest.raises(holdall.NotFoundError):
        bucket.append("none", b"x")
    for wrong in [("insert", 1), ("turn", 1), ("append", b"x", 2)]:
        with pytest.raises(holdall.InvalidError):
            bucket.edit("film", [wrong])


def test_conditions_attributes_and_what_is_known(bucket):
    version = bucket.put("a", b"1", attributes={"content-type": b"text/plain"}, exclusive=True)
    info = bucket.info("a")
    assert (info.name, info.size, info.version) == ("a", 1, version)
    assert info.attributes == {"content-type": b"text/plain"}
    assert datetime.now(timezone.utc) - info.modified < timedelta(minutes=5)
    with pytest.raises(holdall.ExistsError):
        bucket.put("a", b"2", exclusive=True)
    with pytest.raises(holdall.ExistsError):
        bucket.copy("a", "a", exclusive=True)
    newer = bucket.put("a", b"2", if_version=version)
    with pytest.raises(holdall.ConflictError):
        bucket.put("a", b"3", if_version=version)
    with pytest.raises(holdall.ConflictError):
        bucket.edit_if("a", [("append", b"x")], version)
    with pytest.raises(holdall.ConflictError):
        bucket.remove("a", if_version=version)
    newest = bucket.edit_if("a", [("append", b"x")], newer)
    bucket.set_attributes("a", {"k": b"v"})
    assert bucket.info("a").attributes == {"k": b"v"} and bucket["a"] == b"2x"
    assert bucket.info("a").version != newest
    assert bucket.remove("a", if_version=bucket.info("a").version) and not bucket.remove("a")
    with pytest.raises(holdall.NotFoundError):
        bucket.info("a")
    for wrong in [{"if_version": "1"}, {"if_version": version, "exclusive": True}]:
        with pytest.raises(holdall.InvalidError):
            bucket.put("a", b"", **wrong)


def test_modes(server, place):
    with holdall.open(place, **server) as store:
        assert isinstance(store, holdall.BucketStore) and store.read_only and store.path == place
        for change in (lambda: store.put("a", b""), lambda: store.open("a", "w"), store.gc):
            with pytest.raises(holdall.ReadOnlyError):
                change()
    assert store.closed and "closed" in repr(store)
    with pytest.raises(ValueError):
        store["a"]
    with holdall.open(place, "a", **server) as store:
        assert not store.read_only
    with pytest.raises(holdall.ExistsError):
        holdall.open(place, "x", **server)
    with pytest.raises(holdall.NotFoundError) as raised:
        holdall.open("s3://bucket/none", "r+", **server)
    assert raised.value.filename == "s3://bucket/none"
    for wrong in [{"mode": "w"}, {"mode": "q"}, {"keys": "bytes"}]:
        with pytest.raises(holdall.InvalidError):
            holdall.open(place, **server | wrong)
    with pytest.raises(TypeError):
        holdall.open(place, cache_bytes=1, **server)
    with pytest.raises(holdall.InvalidError):
        holdall.BucketStore("file.holdall")


def test_what_buckets_lack_says_what_to_use(bucket):
    for call in ("transaction", "snapshot", "deferred", "flush", "checkpoint", "create", "backup", "frag"):
        with pytest.raises(holdall.NotInBucketError, match="in a bucket has no"):
            getattr(bucket, call)()
    with pytest.raises(NotImplementedError):
        bucket[holdall.in_memory().put("a", b"")]
    with pytest.raises(holdall.InvalidError):
        bucket["\udcff"]
    with pytest.raises(TypeError):
        bucket[7]


def test_collections_are_apart(bucket):
    other = bucket.collection(bucket.name + "-2")
    other["a"] = b"other"
    assert "a" not in bucket and set(bucket.collections()) >= {other.name}
    other.clear()
    with pytest.raises(holdall.InvalidError):
        bucket.collection("")


def test_it_is_looked_after(bucket):
    bucket["a"] = bytes(200_000)
    seen = []
    assert bucket.verify(progress=lambda *n: seen.append(n))["sound"] and seen
    assert bucket.stat()["collections"][bucket.name] == 1
    assert bucket.gc(full=True)["cycle"] >= 1
    assert bucket.compact()["rewritten"] == 0

    def stop(done, total):
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        bucket.verify(progress=stop)


def test_threads_share_a_store(bucket):
    def add(n):
        for i in range(5):
            bucket.append("log", b"%d" % n)
            bucket[f"{n}/{i}"] = b"x"

    bucket["log"] = b""
    threads = [threading.Thread(target=add, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(bucket["log"]) == sorted(b"00000111112222233333") and len(bucket) == 21


def _in_child(bucket, found):
    bucket["child"] = bucket["parent"] + b"!"
    found.put(bucket["child"])


def test_processes_use_one(bucket, server):
    bucket["parent"] = b"hello"
    again = pickle.loads(pickle.dumps(bucket))
    assert again["parent"] == b"hello" and again.name == bucket.name and not again.read_only
    again.close()
    for method in ("fork", "spawn"):
        context = multiprocessing.get_context(method)
        found = context.Queue()
        child = context.Process(target=_in_child, args=(bucket, found))
        child.start()
        assert found.get(timeout=60) == b"hello!"
        child.join(60)
        assert child.exitcode == 0 and bucket["child"] == b"hello!"


def test_an_interrupt_ends_a_wait(server, place):
    # Nobody answers there.
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        endpoint = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        before = time.monotonic()
        main = threading.main_thread().ident
        timer = threading.Timer(0.3, signal.pthread_kill, [main, signal.SIGINT])
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            holdall.open(place, **server | {"endpoint": endpoint})
        assert time.monotonic() - before < 5
