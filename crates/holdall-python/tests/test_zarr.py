"""zarr's own tests of a store, and arrays on top of it."""

import asyncio
import pickle

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


class TestHoldallStore(StoreTests[HoldallStore, cpu.Buffer]):
    store_cls = HoldallStore
    buffer_cls = cpu.Buffer

    async def get(self, store, key):
        with store._use() as objects:
            return self.buffer_cls.from_bytes(objects[key])

    async def set(self, store, key, value):
        with store._shared.writing() as objects:
            objects.deferred()[key] = value.to_bytes()

    @pytest.fixture
    def store_kwargs(self, tmp_path):
        path = tmp_path / "z.holdall"
        holdall.open(path, "a").close()
        return {"store": str(path)}

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
