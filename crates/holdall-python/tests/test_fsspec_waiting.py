"""File systems and zarr stores end their waits after `timeout=`, and when the user interrupts."""

import os
import signal
import threading
from contextlib import contextmanager

import pytest

import holdall
from holdall.fsspec import HoldallFileSystem

ALL = {"old": b"0", "d/1": b"1"}


@contextmanager
def held(make):
    """Another thread makes a block and is in it for as long."""
    begun, until = threading.Event(), threading.Event()

    def hold():
        with make():
            begun.set()
            until.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    begun.wait(60)
    try:
        yield
    finally:
        until.set()
        thread.join()


def own_block(fs, path):
    return fs.transaction


def other_block(fs, path):
    return HoldallFileSystem(fo=path, cache_bytes=1 << 20, skip_instance_cache=True).transaction


def engine_transaction(fs, path):
    # Only the transaction is left of the store.
    return holdall.open(path, "r+").transaction()


def reading(fs, path):
    return fs._shared.reading()


def write_file(fs):
    with fs.open("new", "wb") as f:
        f.write(b"1" * 300_000)


CALLS = {
    "pipe": lambda fs: fs.pipe("new", b"1"),
    "pipe many": lambda fs: fs.pipe({"new": b"1", "newer": b"2"}),
    "rm": lambda fs: fs.rm("old"),
    "rm_file": lambda fs: fs.rm_file("old"),
    "mv": lambda fs: fs.mv("old", "new"),
    "cp": lambda fs: fs.cp("d", "new", recursive=True),
    "touch": lambda fs: fs.touch("new"),
    "w": write_file,
    "a": lambda fs: fs.open("old", "ab"),
    "start_transaction": lambda fs: fs.start_transaction(),
}


def everything(fs):
    return {name: fs.cat_file(name) for name in fs.find("")}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("holder", [other_block, engine_transaction, reading])
def test_every_change_ends_its_wait(path, holder, call):
    fs = HoldallFileSystem(fo=path, timeout=0.05, skip_instance_cache=True)
    fs.pipe(ALL)
    fs.close()
    with held(lambda: holder(fs, path)):
        with pytest.raises(holdall.BusyError, match="waited"):
            CALLS[call](fs)
        assert everything(fs) == ALL and not fs._intrans
    fs.pipe("after", b"")
    assert everything(fs) == ALL | {"after": b""}
    fs.close()


def test_a_second_transaction_ends_its_wait(path):
    fs = HoldallFileSystem(fo=path, timeout=0.05, skip_instance_cache=True)
    with held(lambda: fs.transaction):
        with pytest.raises(holdall.BusyError, match="transaction of thread"), fs.transaction:
            raise AssertionError("not reached")
    with fs.transaction:
        fs.pipe(ALL)
    assert everything(fs) == ALL


def test_an_end_does_not_wait_for_ever_for_calls_of_others(path):
    fs = HoldallFileSystem(fo=path, timeout=0.05, skip_instance_cache=True)
    with pytest.raises(holdall.BusyError, match="calls of other threads"):
        with fs.transaction:
            fs.pipe(ALL)
            call = held(fs._joined)
            call.__enter__()
    call.__exit__(None, None, None)
    assert everything(fs) == {}
    fs.pipe(ALL)
    assert everything(fs) == ALL


def test_the_timeout_of_a_given_store(path):
    with holdall.open(path, "a", timeout=0.05) as store:
        fs = HoldallFileSystem(store)
        with held(lambda: fs.transaction):
            with pytest.raises(holdall.BusyError):
                fs.start_transaction()
            with pytest.raises(holdall.BusyError):
                HoldallFileSystem(store, mode="a", skip_instance_cache=True).pipe("a", b"")
    with holdall.open(path, "a") as store:
        fs = HoldallFileSystem(store, timeout=0.05)
        with held(store.transaction), pytest.raises(holdall.BusyError):
            fs.pipe("a", b"")


def test_options_that_an_open_store_cannot_take_are_refused(path, store):
    zarr = pytest.importorskip("holdall.zarr")
    for make in (HoldallFileSystem, zarr.HoldallStore):
        with pytest.raises(TypeError, match="cache_bytes"):
            make(store, cache_bytes=1 << 20)
        for bad in (-1, float("nan")):
            with pytest.raises(ValueError, match="timeout"):
                make(store, timeout=bad)


def test_zarr_ends_its_wait(store):
    zarr = pytest.importorskip("zarr")
    from holdall.zarr import HoldallStore

    chunks = HoldallStore(store, timeout=0.05)
    with held(store.transaction), pytest.raises(holdall.BusyError):
        zarr.create_array(chunks, shape=(3,), dtype="i4")
    zarr.create_array(chunks, shape=(3,), dtype="i4")[:] = 7
    assert zarr.open_array(chunks, mode="r")[:].tolist() == [7, 7, 7]


@pytest.mark.parametrize("holder", [own_block, other_block, engine_transaction, reading])
def test_a_signal_ends_a_wait(path, holder):
    fs = HoldallFileSystem(fo=path, skip_instance_cache=True)
    fs.pipe(ALL)
    fs.close()
    with held(lambda: holder(fs, path)):
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            fs.start_transaction()
        timer.join()
    with fs.transaction:
        fs.rm("old")
    assert everything(fs) == {"d/1": b"1"}


def test_what_an_interrupt_cut_short_keeps_nobody_waiting(path):
    fs = HoldallFileSystem(fo=path, timeout=5, skip_instance_cache=True)
    fs.pipe(ALL)
    fs.find("")
    use = fs._shared.reading()
    use.__enter__()
    # Its end is never reached.
    use._file = None
    del use
    with fs.transaction:
        assert fs._block.enter()
        fs.rm("old")
    assert everything(fs) == {"d/1": b"1"}


def test_reads_of_this_process_keep_no_writer_out(path):
    fs = HoldallFileSystem(fo=path, skip_instance_cache=True)
    fs.pipe(ALL)
    use = fs._shared.reading()
    use.__enter__()
    with holdall.open(path, "r+") as store:
        store["old"] = b"1"
    use.__exit__(None, None, None)
    assert everything(fs) == ALL | {"old": b"1"}
