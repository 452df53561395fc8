"""Stores for tests, and what docstrings' examples run on."""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

import holdall

ROOT = Path(__file__).resolve().parents[3]

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


def command():
    """Where the command `holdall` is; None where it was not built."""
    built = [ROOT / "target" / kind / "holdall" for kind in ("release", "debug")]
    return shutil.which("holdall") or next((str(path) for path in built if path.exists()), None)


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """The options that reach buckets of `holdall serve`, which has one, ``bucket``."""
    program = command()
    if program is None:
        pytest.skip("the command holdall is not built")
    path = tmp_path_factory.mktemp("server") / "s.holdall"
    with holdall.open(path, "a") as store:
        store.collection("bucket")["first"] = b""
    keys = {"HOLDALL_ACCESS_KEY": "me", "HOLDALL_SECRET_KEY": "secret-of-the-tests"}
    args = [program, "serve", str(path), "--listen", "127.0.0.1:0", "--json"]
    serving = subprocess.Popen(args, env=os.environ | keys, stdout=subprocess.PIPE, text=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "me")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "secret-of-the-tests")
        for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN"):
            patch.delenv(name, raising=False)
        # Of nobody's files.
        for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
            patch.setenv(name, str(path.parent / "none"))
        listening = json.loads(serving.stdout.readline())["listening"]
        yield {"endpoint": f"http://{listening}", "region": "us-east-1"}
    serving.terminate()
    serving.wait(30)


@pytest.fixture(scope="session")
def place(server):
    """A store in a bucket, to be opened with the server's options."""
    holdall.open("s3://bucket/made", "x", **server).close()
    return "s3://bucket/made"


@pytest.fixture
def bucket(server, place, request):
    """A collection of that store for one test."""
    with holdall.open(place, "r+", **server) as whole:
        objects = whole.collection(request.node.name)
        yield objects
        if not whole.closed:
            objects.clear()
