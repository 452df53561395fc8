"""Waiting for a transaction or for a store can be ended."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import holdall


def held_by_another_thread(store, until):
    """A transaction of a thread that lives until the event is set."""
    begun = threading.Event()

    def hold():
        with store.transaction() as tx:
            tx["held"] = b"1"
            begun.set()
            until.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    begun.wait(60)
    return thread


CALLS = {
    "put": lambda s: s.put("a", b"1"),
    "set": lambda s: s.__setitem__("a", b"1"),
    "delete": lambda s: s.__delitem__("old"),
    "remove": lambda s: s.remove("old"),
    "update": lambda s: s.update({"a": b"1"}),
    "pop": lambda s: s.pop("old"),
    "popitem": lambda s: s.popitem(),
    "setdefault": lambda s: s.setdefault("a", b"1"),
    "clear": lambda s: s.clear(),
    "append": lambda s: s.append("old", b"1"),
    "rename": lambda s: s.rename("old", "new"),
    "copy": lambda s: s.copy("old", "new"),
    "create": lambda s: s.create(b"1"),
    "collection": lambda s: s.collection("c").put("a", b"1"),
    "deferred": lambda s: s.deferred().put("a", b"1"),
    "drop": lambda s: s.drop_collection("c"),
    "transaction": lambda s: s.transaction(),
    "edit": lambda s: s.open("old", "r+b"),
    "defrag": lambda s: s.defrag(),
}


@pytest.mark.parametrize("call", CALLS)
def test_every_change_ends_its_wait_after_the_timeout(path, call):
    with holdall.open(path, "a", timeout=0.05) as store:
        store["old"] = b"0"
        until = threading.Event()
        thread = held_by_another_thread(store, until)
        with pytest.raises(holdall.BusyError, match="transaction") as caught:
            CALLS[call](store)
        assert isinstance(caught.value, (TimeoutError, holdall.LockedError))
        assert store["old"] == b"0"
        until.set()
        thread.join()
        assert dict(store) == {"old": b"0", "held": b"1"}
        CALLS[call](store)


def test_a_transaction_has_a_timeout_of_its_own(store):
    until = threading.Event()
    thread = held_by_another_thread(store, until)
    for timeout in (0, 0.05):
        with pytest.raises(TimeoutError):
            store.transaction(timeout=timeout)
    for bad in (-1, float("nan")):
        with pytest.raises(ValueError, match="timeout"):
            store.transaction(timeout=bad)
    threading.Timer(0.2, until.set).start()
    with store.transaction(timeout=60) as tx:
        tx["after"] = b"1"
    thread.join()
    assert len(store) == 2


def test_a_file_that_cannot_be_published_in_time_says_so(path):
    with holdall.open(path, "a", timeout=0.05) as store:
        f = store.open("a", "wb")
        f.write(b"1" * 300_000)
        until = threading.Event()
        thread = held_by_another_thread(store, until)
        with pytest.raises(holdall.BusyError):
            f.close()
        until.set()
        thread.join()
        assert "a" not in store


def test_a_transaction_that_a_finished_thread_left_is_named(store):
    left = []

    def leave():
        tx = store.transaction()
        tx["a"] = b"1"
        left.append(tx)

    thread = threading.Thread(target=leave)
    thread.start()
    thread.join()
    with pytest.raises(holdall.BusyError, match="thread has ended"):
        store["b"] = b"2"
    # Somebody else may go on with it.
    left[0]["c"] = b"3"
    left[0].commit()
    store["b"] = b"2"
    assert dict(store) == {"a": b"1", "b": b"2", "c": b"3"}


def test_a_signal_ends_a_wait(path):
    code = (
        "import holdall, sys, threading\n"
        "s = holdall.open(sys.argv[1], 'a')\n"
        "begun = threading.Event()\n"
        "def hold():\n"
        "    with s.transaction() as tx:\n"
        "        tx['a'] = b'1'; begun.set(); threading.Event().wait(100)\n"
        "threading.Thread(target=hold, daemon=True).start()\n"
        "begun.wait()\n"
        "print('waits', flush=True)\n"
        "try:\n"
        "    s['b'] = b'2'\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', 'b' in s, flush=True)\n"
        "import os; os._exit(0)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "waits\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60)[0] == "interrupted False\n"


def hold_in_another_process(path, seconds):
    code = (
        "import holdall, sys, time\n"
        "with holdall.open(sys.argv[1], 'a') as s:\n"
        "    s['a'] = b'1'; print('open', flush=True); time.sleep(float(sys.argv[2]))\n"
    )
    command = [sys.executable, "-c", code, os.fspath(path), str(seconds)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "open\n"
    return process


def test_opening_waits_as_long_as_it_is_asked_to(path):
    process = hold_in_another_process(path, 0.5)
    for wait in (False, 0, 0.05):
        with pytest.raises(holdall.LockedError) as caught:
            holdall.open(path, "r+", wait=wait)
        assert caught.value.filename == os.fspath(path)
    with holdall.open(path, "r") as beside:
        assert beside["a"] == b"1"
    with holdall.open(path, "r+", wait=60) as store:
        assert store["a"] == b"1"
    process.wait()
    process = hold_in_another_process(path, 0.2)
    with holdall.open(path, "r", wait=True) as store:
        assert store["a"] == b"1"
    process.wait()
    with pytest.raises(ValueError, match="wait"):
        holdall.open(path, wait=-1)


def test_a_store_that_waits_for_nobody_does_not_wait(path):
    # What cannot be opened for another reason is said at once.
    with pytest.raises(FileNotFoundError):
        holdall.open(path, "r", wait=True)


EDITS = {
    "write": lambda f: (f.write(b"x"), f.flush()),
    "close": lambda f: (f.write(b"x"), f.close()),
    "truncate": lambda f: f.truncate(3),
    "insert": lambda f: f.insert(b"x"),
    "delete": lambda f: f.delete(1),
}


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("mode", ["r+b", "ab"])
def test_files_changed_in_place_end_their_wait(path, mode, edit):
    with holdall.open(path, "a", timeout=0.05) as store:
        store["old"] = b"01234567"
        f = store.open("old", mode)
        f.seek(2)
        until = threading.Event()
        thread = held_by_another_thread(store, until)
        with pytest.raises(holdall.BusyError, match="transaction"):
            EDITS[edit](f)
        assert store["old"] == b"01234567"
        until.set()
        thread.join()
        if not f.closed:
            f.close()


def test_a_signal_ends_the_wait_for_a_store(path):
    holder = hold_in_another_process(path, 60)
    code = (
        "import holdall, sys\n"
        "print('waits', flush=True)\n"
        "try:\n"
        "    holdall.open(sys.argv[1], 'r+', wait=True)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', flush=True)\n"
    )
    command = [sys.executable, "-c", code, os.fspath(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "waits\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60)[0] == "interrupted\n"
    with pytest.raises(holdall.LockedError, match=f"process {holder.pid}"):
        holdall.open(path, "r+")
    holder.kill()
    holder.wait()


def test_a_loop_may_change_what_it_goes_through(store):
    names = [f"{i:05}" for i in range(3000)]
    store.put_many((name, b"1") for name in names)
    quick = store.deferred()
    seen = []
    for name in store:
        quick[name] = store[name] + b"!"
        quick[f"x{name}"] = b"new"
        seen.append(name)
    assert seen == names and len(store) == 6000
    for name, value in store.items():
        assert value == (b"new" if name[0] == "x" else b"1!")
        quick.remove(name)
    assert not store and len(store) == 0
