"""Names and URLs: slashes, prefixes, round trips, and the packages that are built on them."""

import random

import fsspec
import pytest

import holdall
from holdall.fsspec import HoldallFileSystem


@pytest.fixture(autouse=True)
def cache():
    HoldallFileSystem.clear_instance_cache()
    yield
    HoldallFileSystem.clear_instance_cache()


@pytest.fixture
def fs(path):
    fs = HoldallFileSystem(fo=path)
    yield fs
    fs.close()


def test_a_slash_before_a_name(path):
    with holdall.open(path, "a") as store:
        store.update({"x": b"plain", "/x": b"slash", "y": b"y", "/d/z": b"z", "a//b": b"gap"})
        fs = HoldallFileSystem(store)
        assert fs.cat("x") == b"plain" and fs.cat("/x") == b"slash" and fs.cat("/d/z") == b"z"
        # Where there is no such object the slash says nothing.
        assert fs.cat("/y") == b"y" and fs.cat("a//b") == b"gap" and not fs.exists("a/b")
        assert fs.find("") == ["/d/z", "/x", "a//b", "x", "y"] and fs.find("/d") == ["/d/z"]
        for name in fs.find(""):
            assert fs.info(name)["name"] == name and fs.cat(name) == store[name]
        assert fs.ls("", detail=False) == ["/d/z", "/x", "a", "x", "y"]
        assert fs.ls("a", detail=False) == ["a//b"]
        assert fs.find("", maxdepth=2) == fs.find("")
        list(fs.walk(""))
        fs.pipe("/x", b"changed")
        fs.pipe("/new", b"new")
        assert store["/x"] == b"changed" and store["x"] == b"plain" and store["new"] == b"new"
        fs.rm("/x")
        assert "x" in store and "/x" not in store
        fs.rm("/x")
        assert "x" not in store


def test_a_slash_in_urls(path):
    with holdall.open(path, "a") as store:
        store.update({"x": b"plain", "/x": b"slash"})
    assert fsspec.open(f"holdall://{path}/x").open().read() == b"plain"
    assert fsspec.open(f"holdall://{path}//x").open().read() == b"slash"


def test_find_with_a_prefix(fs):
    fs.pipe({n: b"" for n in ("a1", "a2/x", "a2/y/z", "b", "d/a1", "d/a2/x", "d/b")})
    assert fs.find("", prefix="a") == ["a1", "a2/x", "a2/y/z"]
    assert fs.find("d", prefix="a") == ["d/a1", "d/a2/x"]
    assert fs.find("d/", prefix="a2/") == ["d/a2/x"] and fs.find("d", prefix="none") == []
    assert fs.find("", prefix="a", maxdepth=1) == ["a1"]
    assert fs.find("", prefix="a", withdirs=True) == ["a1", "a2", "a2/x", "a2/y", "a2/y/z"]
    assert fs.find("b", prefix="x") == [] and list(fs.find("d", prefix="a1", detail=True)) == ["d/a1"]


@pytest.mark.parametrize("seed", range(5))
def test_find_beside_the_base_class(fs, seed):
    memory = fsspec.filesystem("memory", skip_instance_cache=True)
    memory.store, memory.pseudo_dirs = {}, [""]
    rng = random.Random(seed)
    for _ in range(60):
        name = "/".join(rng.choice("abc") + "-" * rng.randrange(2) for _ in range(rng.randrange(1, 5)))
        above = [name[:i] for i, c in enumerate(name) if c == "/"]
        if not any(map(fs.isfile, above)) and not fs.isdir(name):
            fs.pipe(name, b"x")
            memory.pipe("/" + name, b"x")
    for folder in ["", *fs.find("", withdirs=True)]:
        for depth in (None, 1, 2, 3):
            for dirs in (False, True):
                want = memory.find("/" + folder, maxdepth=depth, withdirs=dirs)
                want = [n.strip("/") for n in want if n != "/"]
                assert fs.find(folder, maxdepth=depth, withdirs=dirs) == sorted(want)
        want = [(n.strip("/"), sorted(d), sorted(f)) for n, d, f in memory.walk("/" + folder)]
        found = [(n, sorted(d), sorted(f)) for n, d, f in fs.walk(folder)]
        assert sorted(found) == sorted(want)
    for glob in ("*", "a*", "**", "*/*", "**/b*", "a/**", "?/", "[ab]/*"):
        assert fs.glob(glob) == sorted(n.lstrip("/") for n in memory.glob("/" + glob))


@pytest.mark.parametrize(
    "file", ["a.holdall", "data.bin", "x.holdall/b.holdall", "x.holdall/b.bin", "sp ace#?.holdall"]
)
@pytest.mark.parametrize("name", ["x", "d/x", "d/b.holdall/x", "", "a::b", "x y#?*"])
def test_urls_round_trip(tmp_path, monkeypatch, file, name):
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    fs = HoldallFileSystem(path)
    fs.pipe("probe", b"")
    url = fs.unstrip_protocol(name)
    assert fs.unstrip_protocol(url) == url and fs._name_of(fs._strip_protocol(url)) == name
    monkeypatch.chdir(tmp_path.parent)
    if name and "::" not in name and not ("b.holdall" in name and "::" in url):
        fs.pipe(name, b"1")
        again, inside = fsspec.url_to_fs(url)
        assert again.cat(inside) == again.cat(name) == b"1" and again is fs
        opened = fsspec.open(url)
        assert opened.full_name == url
        with fs.open(name) as f:
            assert f.full_name == url and f.mode == "rb" and f.size == 1 and f.path == name


@pytest.mark.parametrize("cache", ["blockcache", "filecache", "simplecache"])
def test_caches(path, fs, cache):
    data = random.Random(1).randbytes(3_000_000)
    fs.pipe({"d/x": data, "d/y": b"y"})
    url = f"{cache}::holdall://{path}/d/x"
    for _ in range(2):
        with fsspec.open(url) as f:
            assert f.read(10) == data[:10]
            f.seek(1_500_000)
            assert f.read(100_000) == data[1_500_000:1_600_000]
            f.seek(-5, 2)
            assert f.read() == data[-5:]
    with fsspec.open(url) as f:
        assert f.read() == data
    cached, name = fsspec.url_to_fs(url)
    assert name == f"{path}/d/x" and sorted(cached.ls("d", detail=False)) == ["d/x", "d/y"]
    with fsspec.open(f"{cache}::holdall://{path}/new", "wb") as f:
        f.write(b"written")
    assert fs.cat("new") == b"written"


def test_a_cache_of_two_stores(tmp_path):
    for name in "ab":
        HoldallFileSystem(tmp_path / f"{name}.holdall").pipe("x", name.encode())
    for cache in ("filecache", "simplecache", "blockcache"):
        for name in "ab":
            url = f"{cache}::holdall://{tmp_path}/{name}.holdall/x"
            with fsspec.open(url, **{cache: {"cache_storage": str(tmp_path / cache)}}) as f:
                assert f.read() == name.encode()


def test_long_names(path, fs):
    fs.pipe({"d/x": b"1", "d/e/y": b"2", "z": b"3"})
    long = str(path)
    assert fs.find(long) == [f"{long}/{n}" for n in ("d/e/y", "d/x", "z")] == sorted(fs.find(f"{long}/"))
    assert fs.ls(f"{long}/d", detail=False) == [f"{long}/d/e", f"{long}/d/x"]
    assert fs.info(f"{long}/d")["name"] == f"{long}/d" and fs.info(long)["name"] == long
    assert fs.info(f"holdall://{long}/z")["name"] == f"{long}/z" and fs.info("z")["name"] == "z"
    assert fs.glob(f"{long}/*") == [f"{long}/d", f"{long}/z"] and fs.glob("*") == ["d", "z"]
    assert list(fs.glob(f"{long}/**", detail=True)) == fs.glob(f"{long}/**")
    assert fs.cat([f"{long}/z", "d/x"]) == {f"{long}/z": b"3", "d/x": b"1"}
    assert [n for n, _, _ in fs.walk(long)] == [long, f"{long}/d", f"{long}/d/e"]
    assert fs.isdir(long) and fs.du(long) == 3 and fs.exists(f"{long}/z")
    fs.mv(f"{long}/d", "m", recursive=True)
    fs.cp("m/x", f"{long}/copy")
    fs.rm(f"{long}/m/e", recursive=True)
    assert fs.find("") == ["copy", "m/x", "z"]
    for name in (f"{path.parent}/other.holdall/z", f"holdall://{path.parent}/other.holdall/z"):
        with pytest.raises(holdall.InvalidError, match="is not in the store"):
            fs.pipe(name, b"")
    assert fs.find("") == ["copy", "m/x", "z"]


def test_caches_of_blocks(fs):
    data = random.Random(2).randbytes(1_000_000)
    fs.pipe("x", data)
    for kind in ("readahead", "bytes", "mmap", "all", "blockcache", "first", "none"):
        with fs.open("x", cache_type=kind, block_size=1 << 16) as f:
            f.seek(900_000)
            assert f.read(50) == data[900_000:900_050]
            f.seek(0)
            assert f.read() == data
    assert fs.read_block("x", 10, 20) == data[10:30]


def test_other_file_systems_on_top(path, fs):
    fs.pipe({"d/x": b"1", "y": b"2"})
    inside = fsspec.filesystem("dir", path="d", fs=fs)
    inside.pipe("z", b"3")
    assert inside.find("") == ["x", "z"] and fs.cat("d/z") == b"3"
    mapper = fs.get_mapper("d")
    mapper["m/n"] = b"4"
    assert dict(mapper) == {"x": b"1", "z": b"3", "m/n": b"4"}
    top = fs.get_mapper("")
    top["t"] = b"5"
    assert fs.cat("t") == b"5" and top["d/x"] == b"1"
    assert fsspec.get_mapper(f"holdall://{path}/d")["x"] == b"1"


def test_upath(path, fs):
    upath = pytest.importorskip("upath")
    root = upath.UPath(f"holdall://{path}")
    a = root / "d" / "a.txt"
    a.write_text("hello")
    assert fs.cat("d/a.txt") == b"hello" and a.read_text() == "hello"
    again = upath.UPath(str(a))
    assert again.read_text() == "hello" and again.exists() and again.name == "a.txt"
    assert [p.name for p in (root / "d").iterdir()] == ["a.txt"]
    assert (root / "d").is_dir() and not (root / "none").exists()
    upath.UPath(f"holdall://{path}/d/a.txt").rename(f"holdall://{path}/d/b.txt")
    assert fs.find("") == ["d/b.txt"]


def test_datasets(path, fs):
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset.from_dict({"n": list(range(100)), "s": [str(i) for i in range(100)]})
    data.save_to_disk(f"holdall://{path}/saved")
    assert datasets.load_from_disk(f"holdall://{path}/saved").to_dict() == data.to_dict()
    data.to_parquet(f"holdall://{path}/t/a.parquet")
    found = datasets.load_dataset("parquet", data_files=f"holdall://{path}/t/a.parquet", split="train")
    assert found.to_dict() == data.to_dict()
    found = datasets.load_dataset("parquet", data_files=f"holdall://{path}/t/*.parquet", split="train")
    assert found.to_dict() == data.to_dict()
