"""Large packages on top: `make python-all` installs them."""

import os

import pytest

import holdall
from holdall.fsspec import HoldallFileSystem

pytestmark = pytest.mark.heavy


@pytest.fixture
def url(path):
    yield f"holdall://{path}"
    HoldallFileSystem.clear_instance_cache()


class Pictures:
    """A torch data set of the objects of a store."""

    def __init__(self, path):
        self.store = holdall.open(path)
        self.names = list(self.store)

    def __len__(self):
        return len(self.names)

    def __getitem__(self, number):
        import torch

        return torch.frombuffer(bytearray(self.store[self.names[number]]), dtype=torch.uint8)

    def __getitems__(self, numbers):
        import torch

        found = self.store.get_many([self.names[number] for number in numbers])
        return [torch.frombuffer(bytearray(data), dtype=torch.uint8) for data in found]


@pytest.mark.parametrize("start", ["fork", "spawn", "forkserver"])
def test_a_torch_loader_with_eight_workers(path, start):
    data = pytest.importorskip("torch.utils.data")
    contents = {f"{i:04}.jpg": os.urandom(5000) for i in range(512)}
    with holdall.open(path, "a") as store:
        store.update(contents)
    loader = data.DataLoader(
        Pictures(path), batch_size=16, shuffle=True, num_workers=8, multiprocessing_context=start
    )
    for _ in range(2):
        found = [bytes(row.tolist()) for batch in loader for row in batch]
        assert sorted(found) == sorted(contents.values())


def test_dask_tables(url):
    dask = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"key": [i % 7 for i in range(10_000)], "n": range(10_000)})
    dask.from_pandas(frame, npartitions=8).to_parquet(f"{url}/table")
    back = dask.read_parquet(f"{url}/table")
    assert back.npartitions == 8
    assert (back.groupby("key").n.sum().compute() == frame.groupby("key").n.sum()).all()
    dask.from_pandas(frame, npartitions=3).to_csv(f"{url}/text-*.csv", index=False)
    assert len(dask.read_csv(f"{url}/text-*.csv").compute()) == 10_000


def test_dask_in_processes(url):
    dask = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"n": range(1000)})
    dask.from_pandas(frame, npartitions=4).to_parquet(f"{url}/table")
    total = dask.read_parquet(f"{url}/table").n.sum()
    assert total.compute(scheduler="processes", num_workers=2) == frame.n.sum()


def test_dask_arrays(path):
    array = pytest.importorskip("dask.array")
    from holdall.zarr import HoldallStore

    numbers = array.arange(1_000_000, chunks=100_000)
    with HoldallStore(path) as chunks:
        array.to_zarr(numbers, chunks)
    with HoldallStore(path, read_only=True) as chunks:
        assert array.from_zarr(chunks).sum().compute() == 499_999_500_000


def test_hugging_face_data_sets(path, url, tmp_path):
    datasets = pytest.importorskip("datasets")
    rows = {"n": list(range(1000)), "text": [f"row {i}" for i in range(1000)]}
    made = datasets.Dataset.from_dict(rows)
    made.save_to_disk(f"{url}/saved")
    assert datasets.load_from_disk(f"{url}/saved")[7] == {"n": 7, "text": "row 7"}
    made.to_parquet(f"{url}/a.parquet")
    made.to_json(f"{url}/a.jsonl")
    for kind, name in [("parquet", "a.parquet"), ("json", "*.jsonl")]:
        # Patterns keep only what stands behind the colons of an address.
        files, cache = f"holdall://{name}::{path}", str(tmp_path / f"cache-{kind}")
        found = datasets.load_dataset(kind, data_files=files, cache_dir=cache)
        assert found["train"].num_rows == 1000
    files = f"holdall://*.parquet::{path}"
    streamed = datasets.load_dataset("parquet", data_files=files, streaming=True)
    assert sum(1 for _ in streamed["train"]) == 1000
