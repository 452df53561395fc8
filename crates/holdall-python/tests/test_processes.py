"""Forks, other processes, pickles, threads, kills, damage."""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import pytest

import holdall


def in_child(work):
    """What `work` returns in a child made by fork."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            answer = work()
        except BaseException as e:
            answer = e
        os.write(write, pickle.dumps(answer))
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as f:
        answer = pickle.loads(f.read())
    assert os.waitpid(pid, 0)[1] == 0
    return answer


def filled(path, count=200):
    with holdall.open(path, "a") as store:
        store.update((f"{i:04}", str(i).encode() * 1000) for i in range(count))
        store["large"] = bytes(3_000_000)


def test_a_child_of_a_reader_opens_the_store_again(path):
    filled(path)
    with holdall.open(path) as store:
        snapshot, file = store.snapshot(), store.open("large", "rb")
        file.read(10)

        def work():
            return (
                store["0007"],
                snapshot["0008"],
                len(store),
                len(file.read()),
                store.get_many(["0009", "x"]),
                len(store.open("large", "rb").read()),
            )

        assert in_child(work) == (
            b"7" * 1000,
            b"8" * 1000,
            201,
            2_999_990,
            [b"9" * 1000, None],
            3_000_000,
        )
        assert store["0007"] == b"7" * 1000


def test_a_child_of_a_writer_is_told(path):
    filled(path)
    with holdall.open(path, "r+") as store:
        tx = store.transaction()
        tx["a"] = b"1"
        f = store.open("b", "wb")
        f.write(b"x" * 1_000_000)
        calls = [
            lambda: store["0007"],
            lambda: store.__setitem__("a", b""),
            lambda: tx["a"],
            tx.commit,
            store.snapshot,
            lambda: f.raw.write(b"x"),
            lambda: store.open("c", "wb"),
        ]
        for call in calls:
            error = in_child(call)
            assert isinstance(error, holdall.ForkedError), error
            assert "fork" in str(error)
        tx.commit()
        f.close()
        assert store["a"] == b"1" and len(store["b"]) == 1_000_000
    assert holdall.open(path).verify()["sound"]


def test_a_fork_while_threads_read_and_write(path):
    filled(path)
    with holdall.open(path, "r+") as store:
        stop = threading.Event()

        def write(i):
            while not stop.is_set():
                store[f"{i:04}"] = os.urandom(2000)

        def read():
            while not stop.is_set():
                store.get_many([f"{i:04}" for i in range(100)])

        threads = [threading.Thread(target=write, args=(i,)) for i in range(2)]
        threads += [threading.Thread(target=read) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(30):
                assert isinstance(in_child(lambda: store["0001"]), holdall.ForkedError)
        finally:
            stop.set()
            for thread in threads:
                thread.join()


def get(args):
    store, name = args
    return store[name]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_pool_of_workers(path, method):
    filled(path)
    with holdall.open(path) as store:
        context = multiprocessing.get_context(method)
        with context.Pool(3) as pool:
            names = [f"{i:04}" for i in range(50)]
            found = pool.map(get, [(store, name) for name in names])
        assert found == [store[name] for name in names]


def test_pickles(path):
    filled(path)
    with holdall.open(path) as store:
        again = pickle.loads(pickle.dumps(store))
        assert again["0001"] == store["0001"] and again.read_only
        oid = store.info("0001").oid
        assert pickle.loads(pickle.dumps(oid)) == oid
        again.close()
    with holdall.open(path, "r+") as store, pytest.raises(TypeError, match="mode 'r'"):
        pickle.dumps(store)
    error = pickle.loads(pickle.dumps(holdall.NotFoundError("x")))
    assert isinstance(error, KeyError) and str(error) == "x"


def test_another_process_is_kept_out(path):
    filled(path)
    code = "import holdall, sys; holdall.open(sys.argv[1], 'r+')"
    with holdall.open(path, "r+"):
        done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    assert "LockedError" in done.stderr and f"in use by process {os.getpid()} (" in done.stderr
    assert subprocess.run([sys.executable, "-c", code, path]).returncode == 0


def test_threads_run_beside_each_other(store):
    store["large"] = bytes(200_000_000)
    ticks = 0

    def read():
        for _ in range(5):
            store["large"]

    thread = threading.Thread(target=read)
    thread.start()
    while thread.is_alive():
        ticks += 1
        time.sleep(0.001)
    # Held through a read, the interpreter's lock would let this thread tick a dozen times.
    assert ticks > 50, ticks


KILLED = """
import holdall, itertools, sys
store = holdall.open(sys.argv[1], "a")
first = int(sys.argv[2])
for i in itertools.count(first):
    store.update({"a": b"%d" % i, f"n{i}": b"x" * 3000})
    with store.open("file", "ab") as f:
        f.write(b"%08d" % i)
    print(i, flush=True)
"""


def test_what_returned_survives_a_kill(path):
    last = -1
    for round in range(5):
        child = subprocess.Popen(
            [sys.executable, "-c", KILLED, path, str(last + 1)], stdout=subprocess.PIPE, text=True
        )
        for line in child.stdout:
            last = int(line)
            if last % 40 == 39:
                child.send_signal(signal.SIGKILL)
        child.wait()
        with holdall.open(path, "r+") as store:
            report = store.verify()
            assert report["sound"], report
            reached = int(store["a"])
            assert reached in (last, last + 1)
            assert all(f"n{i}" in store for i in range(reached + 1))
            assert f"n{reached + 1}" not in store
            whole = [int(store["file"][i : i + 8]) for i in range(0, len(store["file"]), 8)]
            assert whole == list(range(reached + 1)) or whole == list(range(reached))
            if len(whole) == reached:
                store.append("file", b"%08d" % reached)
            last = reached


@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_store_is_an_error_and_never_wrong_bytes(path, seed):
    import random

    filled(path, 300)
    rng = random.Random(seed)
    data = bytearray(path.read_bytes())
    for _ in range(rng.choice([1, 10, 1000])):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    if seed % 4 == 3:
        del data[rng.randrange(len(data)) :]
    path.write_bytes(data)
    try:
        store = holdall.open(path)
    except holdall.Error:
        return
    with store:
        for name in [f"{i:04}" for i in range(300)] + ["large"]:
            try:
                value = store[name]
            except (holdall.CorruptError, KeyError):
                continue
            assert value == (bytes(3_000_000) if name == "large" else str(int(name)).encode() * 1000)
        for call in (lambda: list(store), store.stat, store.frag, store._repr_html_):
            try:
                call()
            except holdall.Error:
                pass
        assert isinstance(store.verify()["sound"], bool)
