"""Stores, snapshots and transactions as mappings."""

import os
import threading

import pytest

import holdall


def test_a_store_is_a_mapping(store):
    store["a"] = b"one"
    store[b"b"] = bytearray(b"two")
    store["c"] = memoryview(b"three")
    assert store["a"] == b"one" and store[b"b"] == b"two" and store["c"] == b"three"
    assert list(store) == ["a", "b", "c"] and list(reversed(store)) == ["c", "b", "a"]
    assert len(store) == 3 and "a" in store and "z" not in store
    assert dict(store) == {"a": b"one", "b": b"two", "c": b"three"}
    assert list(store.items())[1] == ("b", b"two")
    assert store.get("z") is None and store.get("z", 7) == 7
    assert store.pop("a") == b"one" and store.pop("a", None) is None
    assert store.setdefault("b", b"x") == b"two" and store.setdefault("d", b"x") == b"x"
    assert store.popitem() == ("b", b"two")
    del store["c"]
    for call in (lambda: store["z"], lambda: store.pop("z"), lambda: store.__delitem__("z")):
        with pytest.raises(KeyError, match="'z'"):
            call()
    store.clear()
    assert not store and len(store) == 0
    with pytest.raises(KeyError):
        store.popitem()


def test_names_are_text_or_bytes(store):
    names = [b"plain", "grüße".encode(), b"\xff\xfe not utf-8", b"a\x00b", b"x" * 1024]
    store.update((name, name) for name in names)
    assert sorted(os.fsencode(name) for name in store) == sorted(names)
    for name in store:
        assert store[name] == os.fsencode(name)
    with pytest.raises(TypeError, match="str or bytes, not int"):
        store[7]
    with pytest.raises(ValueError, match="too long"):
        store["x" * 1025] = b""
    with pytest.raises(ValueError, match="empty"):
        store[""] = b""
    with pytest.raises(TypeError):
        store["a"] = "text"


@pytest.mark.parametrize("size", [0, 1, 8191, 65535, 65536, 65537, 1 << 20, 5_000_001])
def test_objects_of_every_size(store, size):
    data = os.urandom(size)
    store["a"] = data
    assert store["a"] == data and store.get_many(["a"]) == [data]
    assert store.info("a").size == size
    with store.snapshot() as snapshot, store.transaction() as tx:
        assert snapshot["a"] == data and tx["a"] == data
        assert tx.get_many(["a", "b"]) == [data, None]
    buffer = bytearray(size + 10)
    assert store.read_into("a", buffer) == size and buffer[:size] == data
    assert store.get_range("a", -10) == data[-10:]
    assert store.get_range("a", 5, 9) == data[5:9]
    assert store.get_range("a", size, 99) == b"" and store.get_range("z") is None


def test_buffers_of_any_shape(store):
    numpy = pytest.importorskip("numpy")
    array = numpy.arange(12, dtype="f8").reshape(3, 4)
    store["a"] = array
    assert store["a"] == array.tobytes()
    back = numpy.empty((3, 4))
    assert store.read_into("a", back) == 96 and (back == array).all()
    with pytest.raises(BufferError):
        store["a"] = array[:, ::2]
    with pytest.raises(TypeError, match="read-only"):
        store.read_into("a", b"1234")


def test_a_batch_and_a_transaction_are_one_step(store):
    store["a"] = b"1"

    def broken():
        yield "a", b"2"
        yield "b", b"2"
        raise RuntimeError

    with pytest.raises(RuntimeError):
        store.update(broken())
    with pytest.raises(TypeError):
        store.update({"a": b"2", "b": 5})
    with pytest.raises(RuntimeError), store.transaction() as tx:
        tx["a"] = b"3"
        assert tx["a"] == b"3" and store["a"] == b"1"
        raise RuntimeError
    assert dict(store) == {"a": b"1"}
    store.update({"a": b"2"}, b=b"3")
    assert dict(store) == {"a": b"2", "b": b"3"}
    assert store.put_many((f"{i:05}", b"x" * 100) for i in range(3000)) == 3000
    assert len(store) == 3002


def test_a_transaction_sees_what_it_does(store):
    store.update({f"{i:04}": b"" for i in range(2500)})
    with store.transaction() as tx:
        tx["x"] = b"1"
        del tx["0007"]
        assert len(tx) == 2500 and "0007" not in tx and "x" in tx
        assert list(tx.names("01"))[0] == "0100" and len(list(tx.names("01"))) == 100
        assert list(tx.names(start="0005", stop="0010")) == ["0005", "0006", "0008", "0009"]
        assert next(tx.names(reverse=True)) == "x" == next(reversed(tx))
        assert tx.list(start_after="2498").names == ["2499", "x"]
        tx.collection("other")["y"] = b"2"
        assert store.collection("other").get("y") is None
    assert len(store) == 2500 and store.collection("other")["y"] == b"2"
    with pytest.raises(ValueError, match="closed"):
        tx["y"]


def test_a_second_transaction_waits_in_another_thread_and_fails_in_the_same(store):
    with store.transaction() as tx:
        tx["a"] = b"1"
        with pytest.raises(holdall.BusyError, match="this thread"):
            store["b"] = b"2"
        other = threading.Thread(target=store.__setitem__, args=("a", b"2"))
        other.start()
        other.join(0.2)
        assert other.is_alive()
    other.join(10)
    assert store["a"] == b"2"


def test_a_transaction_goes_from_thread_to_thread(store):
    tx = store.transaction()
    tx["a"] = b"1"
    threads = [threading.Thread(target=tx.__setitem__, args=(f"t{i}", b"x")) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tx.commit()
    assert len(store) == 9
    with pytest.raises(ValueError):
        tx.commit()


def test_a_snapshot_stays(store):
    store["a"] = b"1"
    snapshot = store.snapshot()
    store["a"] = b"2"
    del store["a"]
    assert snapshot["a"] == b"1" and list(snapshot) == ["a"] and len(snapshot) == 1
    with pytest.raises(PermissionError):
        snapshot["a"] = b"3"
    with pytest.raises(PermissionError):
        snapshot.open("a", "wb")
    snapshot.close()
    with pytest.raises(ValueError, match="closed"):
        snapshot["a"]


def test_listing(store):
    store.update({name: b"" for name in ("a/1", "a/2", "a/b/3", "b", "c/4")})
    assert store.list() == (["b"], ["a/", "c/"], None)
    assert store.list("a/").names == ["a/1", "a/2"] and store.list("a/").prefixes == ["a/b/"]
    assert store.list("", None, limit=2).next == "a/2"
    assert list(store.names("a/")) == ["a/1", "a/2", "a/b/3"]
    assert list(store.names("a/", start="a/2")) == ["a/2", "a/b/3"]
    assert list(store.names("a/", stop="a/2", reverse=True)) == ["a/1"]
    assert list(store.names(start="b")) == ["b", "c/4"]
    assert list(store.names(start="z", stop="a")) == []


def test_a_page_has_a_name(store):
    store["a"] = b""
    for limit in (0, -1):
        with pytest.raises(ValueError, match="limit"):
            store.list(limit=limit)
    with pytest.raises(FileNotFoundError, match='collection "none"'):
        store.collection("none").open("a")


def test_edits(store):
    store["a"] = b"0123456789" * 100_000
    assert store.insert("a", 5, b"hello") == 1_000_005
    assert store.delete_range("a", 0, 5) == 1_000_000
    assert store.splice("a", 0, 5, b"bye") == 999_998
    assert store.append("a", b"end") == 1_000_001
    assert store.write_at("a", 3, b"__") == 1_000_001
    assert store.truncate("a", 10) == 10 and store["a"] == b"bye__78901"
    assert store.truncate("a", 12) == 12 and store["a"][10:] == b"\0\0"
    store["b"] = b"BB"
    store.concat(["a", "b", "a"], "c")
    assert store["c"] == store["a"] + b"BB" + store["a"]
    store.copy("c", "d")
    assert store.copy_range("b", 0, 1, "d", 1) == 27 and store["d"][:3] == b"bBy"
    store.rename("d", "e")
    with pytest.raises(FileExistsError):
        store.rename("e", "a")
    for bad in (lambda: store.insert("a", 99, b""), lambda: store.delete_range("a", 5, 99)):
        with pytest.raises(ValueError, match="outside"):
            bad()
    with pytest.raises(OverflowError):
        store.insert("a", -1, b"")
    with pytest.raises(KeyError):
        store.append("none", b"")


def test_ids_attributes_versions(store):
    oid = store.create(b"nameless", attributes={"type": b"text"})
    assert store[oid] == b"nameless" and oid in store and store.info(oid).name is None
    assert store.info(oid).attributes == {"type": b"text"} and len(store) == 0
    assert holdall.ObjectId(str(oid)) == oid and {oid: 1}[holdall.ObjectId(str(oid))] == 1
    assert store.put("a", b"1", attributes={"k": b"v"}) == store.info("a").oid
    seen = store.info("a").version
    store.put("a", b"2", if_version=seen)
    with pytest.raises(holdall.ConflictError):
        store.put("a", b"3", if_version=seen)
    with pytest.raises(FileExistsError):
        store.put("a", b"3", exclusive=True)
    assert store["a"] == b"2" and store.info("a").layout == "small"
    store.set_attributes("a", {"x": b"y"})
    assert store.info("a").attributes == {"x": b"y"}
    store.remove(oid)
    assert oid not in store
    with pytest.raises(KeyError):
        store[oid]


def test_collections(store):
    thumbs = store.collection("thumbnails")
    assert len(thumbs) == 0 and "a" not in thumbs and list(thumbs) == []
    with pytest.raises(KeyError):
        thumbs["a"]
    thumbs["a"] = b"small"
    store["a"] = b"large"
    assert thumbs["a"] == b"small" and store.collections() == ["default", "thumbnails"]
    assert store.collection("default")["a"] == b"large"
    with store.transaction() as tx:
        tx.collection("thumbnails")["b"] = b"2"
        tx["b"] = b"3"
    assert store.snapshot().collection("thumbnails")["b"] == b"2"
    thumbs.clear()
    assert len(thumbs) == 0 and len(store) == 2
    assert store.drop_collection("thumbnails") and not store.drop_collection("thumbnails")


def test_maintenance(store):
    store.update({f"{i}": os.urandom(1000) for i in range(3000)})
    with store.transaction() as tx:
        for i in range(2900):
            del tx[str(i)]
    told = []
    report = store.defrag(progress=lambda done, total: told.append(done))
    assert report["file_bytes_after"] < report["file_bytes_before"] and told
    assert store.verify(progress=lambda done, total: told.append(total))["sound"]
    assert store.stat()["objects"] == 100 and store.stat()["contract"]["holds"]
    assert 0 < store.frag()["score"]["value"] <= 1
    assert store.frag_svg().startswith("<svg") and "<html" in store.frag_page()
    assert "100" in store._repr_html_() and "<svg" in store._repr_html_()
    store.keep_in_order(rate=1 << 20)
    store.keep_in_order(False)
    store.flush()
    store.checkpoint()

    def stop(done, total):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        store.verify(progress=stop)


def test_modes(path):
    with pytest.raises(FileNotFoundError):
        holdall.open(path)
    with holdall.open(path, "x") as store:
        store["a"] = b"1"
        with pytest.raises(holdall.LockedError), holdall.open(path, "r+"):
            pass
        with pytest.raises(BlockingIOError):
            holdall.open(path, "w")
        assert repr(store).endswith("open>")
    store.close()
    assert store.closed and "closed" in repr(store) and "closed" in store._repr_html_()
    with pytest.raises(ValueError, match="closed"):
        store["a"]
    with pytest.raises(FileExistsError):
        holdall.open(path, "x")
    with holdall.open(path) as one, holdall.open(str(path), "r") as two:
        assert one["a"] == two["a"] == b"1" and one.read_only
        with pytest.raises(PermissionError):
            one["a"] = b"2"
    with holdall.open(path, "w") as store:
        assert len(store) == 0
    path.write_text("precious")
    for mode in ("r", "r+", "a", "w"):
        with pytest.raises(holdall.NotAStoreError, match="is not a Holdall store"):
            holdall.open(path, mode)
    assert path.read_text() == "precious"
    for bad in ({"mode": "rw"}, {"page_size": 5000, "mode": "x"}, {"defer": -1.0}):
        with pytest.raises(ValueError):
            holdall.open(path.with_name("b"), **bad)
    with pytest.raises(TypeError, match="no option"):
        holdall.open(path, colour=1)


def test_a_full_store_says_so_and_stays_usable(path):
    with holdall.open(path, "a", max_bytes=4 << 20) as store:
        with pytest.raises(OSError) as caught:
            for i in range(100):
                store[str(i)] = os.urandom(200_000)
        assert isinstance(caught.value, holdall.FullError)
        store.clear()
        store["a"] = b"1"
        assert store["a"] == b"1"


def test_closing_the_store_gives_up_what_kept_it_open(tmp_path):
    path = tmp_path / "s.holdall"
    store = holdall.open(path, "x")
    store.update({f"k{n}": bytes([n % 256]) * 100 for n in range(2500)})
    snapshot, names = store.snapshot(), iter(store)
    reading, edited = store.open("k1", "rb"), store.open("k2", "r+b")
    written = store.open("new", "wb")
    assert next(names) == "k0"
    edited.write(b"edited")
    edited.flush()
    written.write(b"x" * 100_000)
    transaction = store.transaction()
    transaction.put("undone", b"x")
    store.close()

    # Nothing keeps the file locked.
    with holdall.open(path, "r+") as again:
        assert "undone" not in again and "new" not in again
        assert again["k2"][:6] == b"edited"
    with pytest.raises(ValueError, match="closed"):
        snapshot["k1"]
    with pytest.raises(ValueError, match="closed"):
        reading.read()
    with pytest.raises(ValueError, match="closed"):
        list(names)
    with pytest.raises(ValueError, match="closed"):
        transaction["k1"]
    # Bytes that were lost are not lost in silence.
    with pytest.raises(ValueError, match="closed"):
        written.close()
    reading.close()
    edited.close()


def test_get_many_of_all_sizes(path):
    sizes = [0, 1, 2, 3, 4000, 4096, 8000, 70_000, 3_000_000]
    values = {f"{n}": bytes([n % 251]) * n for n in sizes}
    keys = [*values, "none", *reversed(values), "1", "0"]
    expected = [values.get(key) for key in keys]
    with holdall.open(path, "w") as store:
        store.update(values)
        inner = store.collection("inner")
        assert inner.get_many(keys) == [None] * len(keys)
        inner.update(values)
        assert store.get_many([]) == []
        with store.snapshot() as snapshot, store.transaction() as tx:
            for view in (store, inner, snapshot, snapshot.collection("inner"), tx):
                assert view.get_many(keys) == expected
                assert [view.get(key) for key in keys] == expected
        by_id = [store.info(key).oid for key in values]
        assert store.get_many(by_id) == list(values.values())
        with pytest.raises(TypeError):
            store.get_many(["1", 2])
        # Bytes of one object are another one's only where CPython shares them.
        first, second = store.get_many(["4096", "4096"])
        assert first == second and first is not second


def test_objects_of_which_some_lie_in_memory(path):
    sizes = [0, 1, 2, 100, 3000, 5000, 70_000]
    values = {f"{i:04}": os.urandom(sizes[i % len(sizes)]) for i in range(1500)}
    with holdall.open(path, "w") as store:
        store.update(values)
    wanted = [*values, "none", *reversed(values)]
    expected = [values.get(name) for name in wanted]
    for warm in ([], ["0004"], list(values)[::3], list(values)):
        with holdall.open(path) as store, store.snapshot() as snapshot:
            for name in warm:
                assert snapshot[name] == values[name]
            assert snapshot.get_many(wanted) == expected
            assert list(snapshot.items()) == list(values.items())
            assert store.get_many(wanted) == expected
            assert [snapshot.get(name) for name in wanted] == expected
            with pytest.raises(holdall.NotFoundError):
                snapshot["none"]


def test_threads_walk_together(store):
    store.update({f"{i:05}": b"x" * (i % 50) for i in range(20_000)})
    walk, seen = iter(store.items()), [[] for _ in range(4)]

    def take(some):
        some.extend(walk)

    threads = [threading.Thread(target=take, args=(some,)) for some in seen]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(pair for some in seen for pair in some) == list(store.items())
    assert all(some == sorted(some) for some in seen)


def test_pairs_have_two_items(store):
    for bad in [("a", b"1", b"2"), ("a",), (), ["a"], 5]:
        with pytest.raises((ValueError, TypeError)):
            store.update([("first", b""), bad])
        with pytest.raises((ValueError, TypeError)):
            store.put_many([bad])
    assert not store
