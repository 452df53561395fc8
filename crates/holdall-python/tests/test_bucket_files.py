"""Objects in a bucket as files, and as a file system of fsspec."""

import gzip
import io
import json
import pickle
import tarfile
import zipfile

import fsspec
import pytest

import holdall

DATA = bytes(range(256)) * 40_000


def test_a_file_that_is_read_stays_as_it_was(bucket):
    bucket["film"] = DATA
    with bucket.open("film", "rb") as f:
        assert f.read(10) == DATA[:10]
        bucket["film"] = b"new"
        assert f.seek(-5, io.SEEK_END) == len(DATA) - 5 and f.read() == DATA[-5:]
        f.seek(1_000_000)
        assert f.read(300_000) == DATA[1_000_000:1_300_000]
        assert f.seek(1 << 40) == 1 << 40 and f.read() == b""
    with bucket.open("film") as f:
        assert f.read() == "new"
    with pytest.raises(FileNotFoundError) as raised:
        bucket.open("none")
    assert raised.value.filename == "none"


def test_it_is_read_on_and_on_in_few_requests(bucket):
    bucket["film"] = DATA
    with bucket.open("film", "rb", buffering=0) as f:
        read = iter(lambda: f.read(100_000), b"")
        assert b"".join(read) == DATA
    with bucket.open("film", "rb") as f:
        assert f.read() == DATA


def test_a_new_object_appears_when_its_file_is_closed(bucket):
    with bucket.open("new", "wb", attributes={"k": b"v"}) as f:
        assert not f.seekable() and f.tell() == 0
        for at in range(0, len(DATA), 70_000):
            f.write(DATA[at : at + 70_000])
        assert "new" not in bucket and f.tell() == len(DATA)
        with pytest.raises(io.UnsupportedOperation):
            f.seek(0)
    assert bucket["new"] == DATA and bucket.info("new").attributes == {"k": b"v"}
    with pytest.warns(holdall.NotStoredWarning), pytest.raises(RuntimeError):
        f = bucket.open("half", "wb")
        try:
            f.write(b"half")
            raise RuntimeError
        finally:
            f.close()
    with pytest.raises(RuntimeError), bucket.open("half", "wb") as f:
        raise RuntimeError
    assert "half" not in bucket
    with pytest.raises(FileExistsError):
        bucket.open("new", "xb")
    with bucket.open("x", "x") as f:
        print("text", file=f)
    assert bucket["x"] == b"text\n"
    f = bucket.open("later", "wb", commit=False)
    f.write(b"1")
    f.commit()
    assert bucket["later"] == b"1"
    for mode in ("w+b", "x+"):
        with pytest.raises(holdall.NotInBucketError, match="r+"):
            bucket.open("film", mode)


def test_archives_are_written(bucket):
    with bucket.open("a.zip", "wb") as f, zipfile.ZipFile(f, "w") as z:
        z.writestr("x", "y" * 100_000)
        z.writestr("z", "z")
    with bucket.open("a.zip", "rb") as f, zipfile.ZipFile(f) as z:
        assert z.read("x") == b"y" * 100_000 and z.testzip() is None
    with bucket.open("a.tar", "wb") as f, tarfile.open(fileobj=f, mode="w") as t:
        t.addfile(tarfile.TarInfo("x"), io.BytesIO())
    with bucket.open("a.tar", "rb") as f, tarfile.open(fileobj=f) as t:
        assert t.getnames() == ["x"]


def test_edits_are_one_change_when_they_are_flushed(bucket):
    bucket["film"] = DATA
    before = bucket.info("film").version
    with bucket.open("film", "r+b") as f:
        f.seek(500_000)
        f.insert(b"in the middle")
        f.delete(10)
        f.write(b"over")
        assert bucket.info("film").version == before
        f.flush()
        once = bucket.info("film").version
        assert once != before
        f.seek(500_000)
        assert f.read(17) == b"in the middleover"
        f.truncate(600_000)
        assert f.seek(0, io.SEEK_END) == 600_000
        f.write(b"end")
        f.seek(500_013)
        # Reading what was written is a change before.
        assert f.read(4) == b"over" and bucket.info("film").version != once
    now = DATA[:500_000] + b"in the middle" + b"over" + DATA[500_014:]
    assert bucket["film"] == now[:600_000] + b"end"
    with bucket.open("film", "r+b") as f:
        f.seek(700_000)
        f.write(b"behind")
    assert bucket["film"][600_003:] == bytes(99_997) + b"behind"


def test_others_changes_are_not_written_over(bucket):
    bucket["a"] = b"0123"
    f = bucket.open("a", "r+b")
    f.write(b"mine")
    bucket.append("a", b"theirs")
    with pytest.raises(holdall.ConflictError):
        f.flush()
    with pytest.raises(holdall.ConflictError):
        f.close()
    assert f.closed and bucket["a"] == b"0123theirs"
    with bucket.open("a", "r+b") as f:
        f.write(b"mine")
        f.flush()
        bucket["a"] = b"other"
        with pytest.raises(holdall.ConflictError):
            f.read()


def test_what_is_appended_goes_behind_what_others_did(bucket):
    with bucket.open("log", "ab") as f:
        f.write(b"1")
        f.flush()
        bucket.append("log", b"2")
        f.write(b"3")
    with bucket.open("log", "a+") as f:
        f.write("4")
        f.seek(0)
        assert f.read() == "1234"
        f.write("5")
        with pytest.raises(io.UnsupportedOperation):
            f.truncate(0)
    assert bucket["log"] == b"12345"


@pytest.fixture
def fs(bucket):
    return fsspec.filesystem("holdall", fo=bucket)


def test_it_is_a_file_system(fs, bucket, tmp_path):
    fs.pipe({"a/1": b"one", "a/b/2": b"two", "c": b"three"})
    assert fs.ls("a", detail=False) == ["a/1", "a/b"] and fs.find("") == ["a/1", "a/b/2", "c"]
    told = {entry["name"]: (entry["type"], entry["size"]) for entry in fs.ls("a")}
    assert told == {"a/1": ("file", 3), "a/b": ("directory", 0)}
    assert fs.find("", detail=True)["a/b/2"]["version"] == bucket.info("a/b/2").version
    assert fs.info("c")["size"] == 5 and fs.isdir("a") and fs.isfile("c") and not fs.exists("d")
    assert fs.modified("c") == bucket.info("c").modified
    assert fs.cat(["a/1", "c"]) == {"a/1": b"one", "c": b"three"} and fs.cat_file("c", 1, 3) == b"hr"
    assert fs.glob("a/*") == ["a/1", "a/b"]
    with fs.open("d.txt.gz", "w", compression="gzip") as f:
        f.write("hello")
    assert gzip.decompress(bucket["d.txt.gz"]) == b"hello"
    with fs.open("c", "rb") as f:
        assert f.read() == b"three" and f.size == 5
    with fs.open("c", "rb", cache_type="readahead", block_size=2) as f:
        f.seek(2)
        assert f.read() == b"ree"
    with fs.open("c", "ab") as f:
        f.write(b"!")
    fs.cp("a", "copy", recursive=True)
    fs.mv("c", "a/1")
    assert fs.cat("a/1") == b"three!" and not fs.exists("c") and fs.cat("copy/b/2") == b"two"
    fs.get("copy", str(tmp_path / "got"), recursive=True)
    assert (tmp_path / "got" / "b" / "2").read_bytes() == b"two"
    fs.put(str(tmp_path / "got"), "put", recursive=True)
    assert fs.find("put") == ["put/1", "put/b/2"]
    fs.rm("put", recursive=True)
    assert not fs.exists("put")
    fs.touch("empty")
    assert bucket["empty"] == b""
    with pytest.raises(FileNotFoundError):
        fs.rm("none")
    with pytest.raises(holdall.NotInBucketError, match="rename"), fs.transaction:
        pass
    with pytest.raises(holdall.NotInBucketError):
        fs.open("c", "w+b")


def test_a_place_names_a_file_system(server, place):
    options = {"fo": place, **server}
    with fsspec.open("holdall://by/place.txt", "w", **options) as f:
        f.write("x")
    fs = fsspec.filesystem("holdall", **options)
    assert fs is fsspec.filesystem("holdall", **options)
    assert pickle.loads(pickle.dumps(fs)).cat("by/place.txt") == b"x"
    assert fsspec.AbstractFileSystem.from_json(fs.to_json()).cat("by/place.txt") == b"x"
    assert json.loads(fs.to_json())["fo"] == place
    reading = fsspec.filesystem("holdall", mode="r", **options)
    with pytest.raises(holdall.ReadOnlyError):
        reading.rm("by/place.txt")
    fs.rm("by/place.txt")
    fs.close()
    assert fs.ls("") == []
    with pytest.raises(TypeError):
        fsspec.filesystem("holdall", fo=place, cache_bytes=1)
    with pytest.raises(holdall.NotFoundError):
        fsspec.filesystem("holdall", **options | {"fo": "s3://bucket/none"}).find("")


def test_pandas_writes_and_reads(server, place):
    pandas = pytest.importorskip("pandas")
    options = {"fo": place, **server}
    frame = pandas.DataFrame({"n": range(1000)})
    frame.to_parquet("holdall://tables/a.parquet", storage_options=options)
    again = pandas.read_parquet("holdall://tables/a.parquet", storage_options=options)
    assert again.equals(frame)
    fsspec.filesystem("holdall", **options).rm("tables", recursive=True)


def test_zarr_takes_its_file_system(server, place):
    zarr = pytest.importorskip("zarr")
    from holdall.zarr import HoldallStore

    options = {"fo": place, **server}
    chunks = zarr.storage.FsspecStore.from_url("holdall://cube", storage_options=options)
    array = zarr.create_array(chunks, shape=(20, 20), chunks=(10, 10), dtype="f4")
    array[:] = 3
    chunks = zarr.storage.FsspecStore.from_url(
        "holdall://cube", storage_options=options, read_only=True
    )
    assert (zarr.open_array(chunks, mode="r")[:] == 3).all()
    fsspec.filesystem("holdall", **options).rm("cube", recursive=True)
    with pytest.raises(holdall.NotInBucketError, match="fo="):
        HoldallStore(place)
