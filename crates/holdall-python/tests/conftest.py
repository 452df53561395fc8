"""Stores for tests, and what docstrings' examples run on."""

import signal

import pytest

import holdall

# Who starts the tests in the background has them ignore it, and processes that they start, too.
signal.signal(signal.SIGINT, signal.default_int_handler)


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
