"""Stores for tests, and what docstrings' examples run on."""


import pytest

import holdall


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.holdall"


@pytest.fixture
def store(path):
    with holdall.open(path, "a") as store:
        yield store
        if not store.closed:
            report = store.verify()
            assert report["sound"], report["problems"]
