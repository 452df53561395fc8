"""Going through all objects: items, values, counts, changes on the way."""

import random
import threading

import pytest

import holdall

#: So little that a long loop's state is given up.
TIGHT = {"old_version_bytes": 1 << 16, "pinned_bytes": 1 << 16, "cache_bytes": 4 << 20}


@pytest.fixture(params=["store", "collection", "snapshot", "transaction", "deferred"])
def view(request, store):
    """A view with objects of many sizes, and what is in it."""
    rng = random.Random(1)
    sizes = [0, 1, 100, 5000, 70_000, 3_000_000]
    objects = {f"{i:04}": rng.randbytes(rng.choice(sizes[:4])) for i in range(700)}
    objects |= {f"big{i}": rng.randbytes(size) for i, size in enumerate(sizes)}
    target = store.collection("c") if request.param == "collection" else store
    target.update(objects)
    store.create(b"without a name")
    views = {
        "store": lambda: store,
        "collection": lambda: target,
        "snapshot": store.snapshot,
        "transaction": store.transaction,
        "deferred": store.deferred,
    }
    view = views[request.param]()
    yield view, objects
    if isinstance(view, holdall.Transaction):
        view.abort()


def test_items_and_values_in_the_order_of_names(view):
    view, objects = view
    names = sorted(objects)
    assert list(view.items()) == [(name, objects[name]) for name in names]
    assert list(view.values()) == [objects[name] for name in names]
    assert list(reversed(view.items())) == [(name, objects[name]) for name in reversed(names)]
    assert list(reversed(view.values())) == [objects[name] for name in reversed(names)]
    assert list(view) == list(view.keys()) == names == list(reversed(list(reversed(view))))
    assert dict(view) == objects and len(view) == len(view.items()) == len(view.values()) == 706
    assert ("0001", objects["0001"]) in view.items() and ("0001", b"no") not in view.items()
    assert objects["big5"] in view.values()


def test_counts(store):
    assert not store and len(store) == 0 and not store.collection("c")
    oid = store.create(b"1")
    assert not store and len(store) == 0
    store["a"] = b""
    assert store and len(store) == 1 and not store.collection("c")
    store.update({f"{i}": b"" for i in range(5000)})
    assert len(store) == 5001
    with store.transaction() as tx:
        tx["b"] = b""
        del tx["0"]
        del tx["1"]
        assert len(tx) == 5000 and tx and len(store) == 5001
    assert len(store) == 5000 == len(store.snapshot())
    store.clear()
    assert not store and store[oid] == b"1"


def test_a_loop_may_change_what_it_walks_through(path):
    with holdall.open(path, "a", **TIGHT) as store:
        store.update({f"{i:05}": bytes(1000) for i in range(8000)})
        for name in store:
            store[name] = store[name] + name.encode()
        assert [value[1000:].decode() for value in store.values()] == list(store)
        count = 0
        for name, value in store.items():
            assert value[1000:] == name.encode()
            store[name] = b"again " + name.encode()
            count += 1
        assert count == 8000 == len(store)
        for name in reversed(store):
            assert store.pop(name) == b"again " + name.encode()
        assert not store


def test_a_long_loop_misses_nothing_that_stays(path):
    """Each name that is there all the time comes once, with one of its values."""
    with holdall.open(path, "a", **TIGHT) as store:
        names = [f"{i:05}" for i in range(0, 6000, 2)]
        store.update({name: b"0" * 500 for name in names})
        done = threading.Event()

        def churn():
            rng = random.Random(2)
            while not done.is_set():
                i = rng.randrange(1, 6000, 2)
                store[f"{i:05}"] = bytes([i % 256]) * 500
                store[rng.choice(names)] = b"1" * 500
                store.remove(f"{rng.randrange(1, 6000, 2):05}")

        threads = [threading.Thread(target=churn) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            for walk in (store.items(), reversed(store.items())):
                seen = []
                for name, value in walk:
                    assert len(value) == 500 and len(set(value)) == 1
                    seen.append(name)
                assert len(seen) == len(set(seen)) and set(names) <= set(seen)
                assert sorted(seen) in (seen, seen[::-1])
        finally:
            done.set()
            for thread in threads:
                thread.join()


def test_a_snapshot_that_was_given_up_says_so(path):
    with holdall.open(path, "a", **TIGHT) as store:
        store.update({f"{i:05}": bytes(1000) for i in range(3000)})
        store.update({f"large {i}": bytes(100_000) for i in range(20)})
        snapshot = store.snapshot()
        pairs, names = iter(snapshot.items()), iter(snapshot)
        assert next(pairs)[0] == next(names) == "00000"
        # What the snapshot sees and others replace is freed space that it keeps from use.
        for _ in range(3):
            for i in range(20):
                store[f"large {i}"] = bytes(100_000)
        with pytest.raises(holdall.SnapshotTooOldError):
            list(pairs)
        with pytest.raises(holdall.SnapshotTooOldError):
            list(names)


def test_a_transaction_may_change_what_it_walks_through(store):
    store.update({f"{i:04}": b"0" for i in range(2500)})
    with store.transaction() as tx:
        for name, value in tx.items():
            assert value == b"0"
            tx[name] = b"1"
            if int(name) % 2:
                del tx[name]
        assert len(tx) == 1250 and set(tx.values()) == {b"1"}
    assert len(store) == 1250


def test_a_walk_that_outlives_its_store_says_so(path):
    store = holdall.open(path, "a")
    store.update({f"{i:05}": b"1" for i in range(3000)})
    pairs, values = iter(store.items()), iter(store.values())
    next(pairs)
    store.close()
    with pytest.raises(ValueError, match="closed"):
        list(pairs)
    with pytest.raises(ValueError, match="closed"):
        list(values)


def test_one_state_is_seen(store):
    store.update({f"{i:04}": b"before" for i in range(3000)})
    pairs = iter(store.items())
    seen = dict([next(pairs)])
    store.update({f"{i:04}": b"after" for i in range(3000)} | {"9999": b"new"})
    seen |= dict(pairs)
    assert set(seen.values()) == {b"before"} and len(seen) == 3000


def test_large_objects_do_not_pile_up_in_memory(store):
    import resource

    for i in range(40):
        store[f"{i}"] = bytes(8 << 20)
    list(zip(store.values(), range(4)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert sum(len(value) for value in store.values()) == 40 * (8 << 20)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10
