"""zarr's own tests of a store, and arrays on top of it."""

import asyncio
import pickle
import shutil

import numpy
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

zarr = pytest.importorskip("zarr")

from zarr.core.buffer import cpu, default_buffer_prototype  # noqa: E402
from zarr.testing.stateful import (  # noqa: E402
    ZarrHierarchyStateMachine,
    ZarrStoreStateMachine,
)
from zarr.testing.store import StoreTests  # noqa: E402

import holdall  # noqa: E402
from holdall.zarr import HoldallStore  # noqa: E402

FEW = settings(
    max_examples=8, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)


@pytest.fixture(scope="session")
def many(tmp_path_factory):
    """A store with 100,000 names, before and behind those of the tests."""
    path = tmp_path_factory.mktemp("many") / "many.holdall"
    with holdall.open(path, "x") as store:
        store.update((f"{'a' if i % 2 else 'z'}/{i % 10}/{i:06}", b"") for i in range(100_000))
    return path


class TestHoldallStore(StoreTests[HoldallStore, cpu.Buffer]):
    store_cls = HoldallStore
    buffer_cls = cpu.Buffer

    async def get(self, store, key):
        with store._use() as objects:
            return self.buffer_cls.from_bytes(objects[store.prefix + key])

    async def set(self, store, key, value):
        with store._shared.writing() as objects:
            objects.deferred()[store.prefix + key] = value.to_bytes()

    @pytest.fixture(params=["alone", "many names", "two stores", "after a failure"])
    def store_kwargs(self, tmp_path, request):
        path = tmp_path / "z.holdall"
        if request.param == "many names":
            shutil.copy(request.getfixturevalue("many"), path)
        with holdall.open(path, "a") as store:
            if request.param == "after a failure":
                with pytest.raises(ZeroDivisionError), store.transaction() as tx:
                    tx.update({"zarr.json": b"lost", "c/0": b"lost"})
                    raise ZeroDivisionError
        if request.param != "two stores":
            # Other names are not the array's, which has a folder of its own.
            prefix = "p" if request.param == "many names" else ""
            yield {"store": str(path), "prefix": prefix}
            return
        other = HoldallStore(holdall.in_memory())
        for name in ("zarr.json", "c/0", "foo", "a/b"):
            other.set_sync(name, cpu.Buffer.from_bytes(b"other"))
        yield {"store": str(path)}
        assert other._names("") == ("a/b", "c/0", "foo", "zarr.json")
        assert other.get_sync("foo").to_bytes() == b"other"

    @pytest.fixture
    async def store(self, open_kwargs):
        store = await self.store_cls.open(**open_kwargs)
        yield store
        store.close()

    def test_store_repr(self, store):
        assert repr(store) == f"HoldallStore('{store}')"

    def test_store_supports_writes(self, store):
        assert store.supports_writes

    def test_store_supports_listing(self, store):
        assert store.supports_listing


@pytest.mark.parametrize("machine", [ZarrStoreStateMachine, ZarrHierarchyStateMachine])
def test_state_machines(tmp_path, machine):
    # The machine makes zarr's calls from a thread of its own.
    with HoldallStore(tmp_path / "z.holdall") as store:
        run_state_machine_as_test(lambda: machine(store), settings=FEW)
    with holdall.open(tmp_path / "z.holdall") as store:
        assert store.verify()["sound"]


def test_arrays(tmp_path):
    path = tmp_path / "z.holdall"
    data = numpy.arange(250_000).reshape(500, 500)
    with HoldallStore(path, "folder") as store:
        group = zarr.group(store)
        array = group.create_array("a", shape=data.shape, chunks=(100, 100), dtype=data.dtype)
        array[:] = data
        array[10:20, 10:20] = -1
        zarr.consolidate_metadata(store)
    with HoldallStore(path, "folder", read_only=True) as store:
        group = zarr.open_consolidated(store, mode="r")
        assert (group["a"][200:] == data[200:]).all() and (group["a"][10:20, 10:20] == -1).all()
        again = pickle.loads(pickle.dumps(store))
        assert (zarr.open_group(again, mode="r")["a"][200:] == data[200:]).all()
        again.close()
    with holdall.open(path) as store:
        assert all(name.startswith("folder/") for name in store) and len(store) > 25


def test_a_given_store_is_used_and_left_open(store):
    chunks = HoldallStore(store, "z")
    zarr.create_array(chunks, shape=(10,), dtype="i4")[:] = 7
    chunks.close()
    assert "z/zarr.json" in store
    with pytest.raises(TypeError):
        pickle.dumps(chunks)


def test_many_reads_at_a_time(tmp_path):
    async def work(store):
        prototype = default_buffer_prototype()
        await asyncio.gather(
            *(store.set(f"{i}", cpu.Buffer.from_bytes(b"%d" % i * 1000)) for i in range(200))
        )
        found = await asyncio.gather(*(store.get(f"{i}", prototype) for i in range(200)))
        assert [f.to_bytes() for f in found] == [b"%d" % i * 1000 for i in range(200)]

    for durable in (False, True):
        with HoldallStore(tmp_path / f"{durable}.holdall", durable=durable) as store:
            asyncio.run(work(store))


def test_xarray(tmp_path):
    xarray = pytest.importorskip("xarray")
    data = xarray.Dataset({"t": (("x", "y"), numpy.random.rand(100, 50))}, {"x": range(100)})
    with HoldallStore(tmp_path / "x.holdall") as store:
        data.to_zarr(store, consolidated=True)
    with HoldallStore(tmp_path / "x.holdall", read_only=True) as store:
        assert xarray.open_zarr(store).load().equals(data)


def test_what_one_handle_wrote_every_handle_reads(tmp_path):
    with HoldallStore(tmp_path / "z.holdall") as store:
        array = zarr.create_array(store, shape=(10,), chunks=(5,), dtype="i4")
        reader = zarr.open_array(store, mode="r")
        apart = HoldallStore(tmp_path / "z.holdall", read_only=True)
        for value in range(1, 20):
            array[:] = value
            assert (zarr.open_array(store, mode="r")[:] == value).all()
            assert (reader[:] == value).all() and (zarr.open_array(apart, mode="r")[:] == value).all()
            if value == 2:
                # What was durable in between is not what is read later.
                store._objects.source.flush()
        apart.close()


@pytest.mark.parametrize("durable", [False, True])
def test_readers_of_a_given_store(store, durable):
    chunks = HoldallStore(store, "z", durable=durable)
    array = zarr.create_array(chunks, shape=(10,), dtype="i4")
    for value in (1, 2):
        array[:] = value
        store.flush()
        array[:] = value + 10
        assert (zarr.open_array(chunks, mode="r")[:] == value + 10).all()
        assert (zarr.open_array(chunks.with_read_only(True), mode="r")[:] == value + 10).all()
        assert (zarr.open_array(HoldallStore(store, "z", read_only=True))[:] == value + 10).all()
    chunks.close()


def test_two_stores_in_memory():
    a, b = holdall.in_memory(), holdall.in_memory()
    za, zb = HoldallStore(a), HoldallStore(b)
    assert za == HoldallStore(a) and za != zb and str(za) != str(zb)
    # An empty store is one too.
    assert za.with_read_only(True) == za
    zarr.create_array(za, shape=(3,), dtype="i4")[:] = 1
    zarr.create_array(zb, shape=(3,), dtype="i4")[:] = 2
    assert (zarr.open_array(za, mode="r")[:] == 1).all()
    assert (zarr.open_array(zb, mode="r")[:] == 2).all()


def test_links_are_the_same_store(tmp_path):
    import os

    path = tmp_path / "z.holdall"
    with HoldallStore(path) as store:
        array = zarr.create_array(store, shape=(3,), dtype="i4")
        array[:] = 1
        os.link(path, tmp_path / "hard.holdall")
        linked = HoldallStore(tmp_path / "hard.holdall", read_only=True)
        assert (zarr.open_array(linked)[:] == 1).all() and linked == store
        linked.close()


@pytest.mark.parametrize("read_only", [False, True])
def test_what_is_closed_stays_closed(tmp_path, read_only):
    path = tmp_path / "z.holdall"
    with HoldallStore(path) as store:
        zarr.create_array(store, shape=(3,), dtype="i4")[:] = 1
    store = HoldallStore(path, read_only=read_only)
    array = zarr.open_array(store, mode="r" if read_only else "r+")
    store.close()
    store.close()
    calls = [lambda: array[:], lambda: zarr.open_array(store, mode="r+"), lambda: store.get_sync("x")]
    calls.append(lambda: zarr.open_array(store, mode="r"))
    calls += [] if read_only else [lambda: array.__setitem__(0, 1)]
    for call in calls:
        with pytest.raises(ValueError, match="closed|read-only"):
            call()
    # Nobody keeps it open for writing.
    with holdall.open(path, "r+") as opened:
        assert opened.verify()["sound"]
    with HoldallStore(path, read_only=True) as again:
        assert (zarr.open_array(again)[:] == 1).all()


def test_a_relative_path_stays_where_it_was(tmp_path, monkeypatch):
    (tmp_path / "b").mkdir()
    monkeypatch.chdir(tmp_path)
    store = HoldallStore("z.holdall")
    monkeypatch.chdir(tmp_path / "b")
    zarr.create_array(store, shape=(3,), dtype="i4")[:] = 1
    store.close()
    assert (tmp_path / "z.holdall").exists() and not (tmp_path / "b/z.holdall").exists()


def test_removing_a_folder_is_one_commit(store, monkeypatch):
    chunks = HoldallStore(store)
    store.update({f"d/{i:05}": b"x" for i in range(2500)})

    ends = []
    kept = type(store._atomic()).__exit__

    def counted(self, *error):
        ends.append(1)
        return kept(self, *error)

    monkeypatch.setattr(type(store._atomic()), "__exit__", counted)
    asyncio.run(chunks.delete_dir("d"))
    assert list(store) == [] and len(ends) == 1
    chunks.close()
