"""fsspec's own tests of what a file system does: in a store alone, beside 100,000 other names,
beside another store of the same names, and after a transaction that failed."""

import shutil

import fsspec
import pytest
from fsspec.tests import abstract

import holdall
from holdall.fsspec import HoldallFileSystem

MANY = 100_000


@pytest.fixture(scope="session")
def many(tmp_path_factory):
    """A store with many names, before and behind those of the tests."""
    path = tmp_path_factory.mktemp("many") / "many.holdall"
    with holdall.open(path, "x") as store:
        store.update((f"{'a' if i % 2 else 'z'}/{i % 10}/{i:06}", b"") for i in range(MANY))
    return path


class Fixtures(abstract.AbstractFixtures):
    @pytest.fixture(params=["alone", "many names", "two stores", "after a failure"])
    def fs(self, tmp_path, request):
        if request.param == "many names":
            store = shutil.copy(request.getfixturevalue("many"), tmp_path / "a.holdall")
        elif request.param == "alone":
            store = tmp_path / "a.holdall"
        else:
            store = holdall.in_memory()
        fs = HoldallFileSystem(store, skip_instance_cache=True)
        fs.pipe("keep", b"")
        if request.param == "after a failure":
            with pytest.raises(ZeroDivisionError), fs.transaction:
                fs.pipe({"base/subdir/subfile1": b"lost", "keep": b"lost"})
                raise ZeroDivisionError
        if request.param != "two stores":
            yield fs
        else:
            other = HoldallFileSystem(holdall.in_memory())
            other.pipe({f"base/{n}": b"other" for n in ("source/file", "target/file", "abc")})
            with other.open("base/open", "wb"):
                yield fs
            assert len(other.find("")) == 4 and other.cat("base/source/file") == b"other"
        assert fs.cat("keep") == b""
        if request.param == "many names":
            assert len(fs.find("a")) + len(fs.find("z")) == MANY
        fs.close()

    @pytest.fixture
    def fs_path(self):
        return "base"

    @pytest.fixture
    def supports_empty_directories(self):
        return False


class TestCopy(abstract.AbstractCopyTests, Fixtures):
    pass


class TestGet(abstract.AbstractGetTests, Fixtures):
    pass


class TestPut(abstract.AbstractPutTests, Fixtures):
    pass


class TestOpen(abstract.AbstractOpenTests, Fixtures):
    pass


class TestPipe(abstract.AbstractPipeTests, Fixtures):
    pass


def test_the_protocol_is_registered():
    assert fsspec.get_filesystem_class("holdall") is HoldallFileSystem
