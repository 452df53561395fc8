"""fsspec's own tests of what a file system does."""

import fsspec
import pytest
from fsspec.tests import abstract

from holdall.fsspec import HoldallFileSystem


class Fixtures(abstract.AbstractFixtures):
    @pytest.fixture
    def fs(self, tmp_path):
        fs = HoldallFileSystem(fo=tmp_path / "a.holdall", skip_instance_cache=True)
        fs.pipe("keep", b"")
        yield fs
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
