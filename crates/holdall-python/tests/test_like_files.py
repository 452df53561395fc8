"""Objects as files beside real files: every method, attribute and exception of ``io``."""

import array
import io
import random
import warnings

import pytest

import holdall
from holdall.fsspec import HoldallFileSystem

BINARY = ["rb", "wb", "xb", "ab", "r+b", "w+b", "x+b", "a+b"]
TEXT = ["r", "w", "x", "a", "r+", "w+", "x+", "a+", "rt"]
START = b"first line\nsecond\r\nthird \xc3\xa4\xc3\xb6\n" * 40

#: What the differential test calls, or why it does not.
CALLED = {
    "read", "read1", "readinto", "readinto1", "readline", "readlines", "readall", "peek", "write",
    "writelines", "seek", "tell", "truncate", "flush", "seekable", "readable", "writable",
    "isatty", "close", "closed", "mode", "name", "detach", "raw", "buffer", "encoding", "errors",
    "newlines", "line_buffering", "write_through", "reconfigure", "closefd", "fileno",
}  # fmt: skip


def both(store, path, mode, **options):
    """A file of the store and a real one, opened alike."""
    if "x" not in mode:
        store["f"] = START
        path.write_bytes(START)
    return store.open("f", mode, **options), open(path, mode, **options)


def outcome(call):
    try:
        return call(), None
    except Exception as e:
        return None, e


def same(ours, theirs, call, what):
    """Both give the same, or raise what a handler of the real file's exception catches."""
    (a, ours_raised), (b, theirs_raised) = outcome(lambda: call(ours)), outcome(lambda: call(theirs))
    if theirs_raised is not None or ours_raised is not None:
        assert isinstance(ours_raised, type(theirs_raised)), (what, ours_raised, theirs_raised)
        if getattr(theirs_raised, "errno", None) is not None:
            assert ours_raised.errno == theirs_raised.errno, (what, ours_raised)
        return None
    assert a == b, (what, a, b)
    return a


def into(kind, size):
    def call(f, method):
        buffer = bytearray(size) if kind == "bytes" else array.array("i", [0] * (size // 4))
        n = getattr(f, method)(buffer)
        return n, bytes(memoryview(buffer).cast("B")[:n])

    return call


def binary_calls(rng, raw):
    """A random call, and whether two files may answer it with different lengths."""
    n = rng.choice([0, 1, 7, 100, 5000, -1, None])
    data = rng.choice([b"", b"x", bytes(rng.randrange(3000)), bytearray(b"abc"), array.array("i", [1, 2, 3]),
                       memoryview(bytes(12)).cast("B", (3, 4))])  # fmt: skip
    calls = {
        "read": lambda f: f.read(n),
        "read no argument": lambda f: f.read(),
        "readinto": lambda f: into(rng_kind, 64)(f, "readinto"),
        "readline": lambda f: f.readline(n if n is not None else -1),
        "readlines": lambda f: f.readlines(n),
        "next": lambda f: next(f, None),
        "write": lambda f: f.write(data),
        "write text": lambda f: f.write("text"),
        "writelines": lambda f: f.writelines([b"1", b"22\n"]),
        "seek": lambda f: f.seek(at),
        "seek from": lambda f: f.seek(step, whence),
        "seek text": lambda f: f.seek("1"),
        "tell": lambda f: f.tell(),
        "truncate": lambda f: f.truncate(size),
        "flush": lambda f: f.flush(),
        "ask": lambda f: (f.readable(), f.writable(), f.seekable(), f.isatty(), f.closed),
    }
    if raw:
        calls["readall"] = lambda f: f.readall()
    rng_kind = rng.choice(["bytes", "array"])
    at = rng.choice([0, 5, 300, 2000, -1, 1 << 40, 1 << 63])
    step, whence = rng.choice([-3, 0, 4, -(10**6)]), rng.choice([0, 1, 2])
    size = rng.choice([None, 0, 10, 3000, -1])
    what = rng.choice(list(calls))
    if what == "seek" and at == 1 << 40:
        # A write there makes a real file sparse, which says nothing here.
        return what, lambda f: (f.seek(at), f.seek(0))
    return what, calls[what]


@pytest.mark.parametrize("mode", BINARY)
@pytest.mark.parametrize("buffering", [-1, 0, 16])
@pytest.mark.parametrize("seed", range(3))
def test_binary(store, tmp_path, mode, buffering, seed):
    rng = random.Random(f"{mode} {buffering} {seed}")
    ours, theirs = both(store, tmp_path / "f", mode, buffering=buffering)
    assert ours.mode == theirs.mode
    for _ in range(120):
        what, call = binary_calls(rng, buffering == 0)
        same(ours, theirs, call, what)
        if not what.startswith("seek"):
            same(ours, theirs, lambda f: f.tell(), f"tell after {what}")
    ours.close()
    theirs.close()
    assert store["f"] == (tmp_path / "f").read_bytes()


@pytest.mark.parametrize("mode", TEXT)
@pytest.mark.parametrize("seed", range(3))
def test_text(store, tmp_path, mode, seed):
    rng = random.Random(f"{mode} {seed}")
    newline = rng.choice([None, "", "\n", "\r\n"])
    ours, theirs = both(store, tmp_path / "f", mode, encoding="utf-8", newline=newline)
    assert (ours.mode, ours.encoding, ours.errors) == (theirs.mode, theirs.encoding, theirs.errors)
    assert ours.buffer.mode == theirs.buffer.mode and ours.line_buffering == theirs.line_buffering
    for _ in range(120):
        n = rng.choice([0, 1, 30, -1, None])
        line = rng.choice([0, 5, -1])
        text = rng.choice(["", "x", "ä" * 50, "a\nb\n", "\r"])
        size = rng.choice([None, 0, 100, -1])
        calls = {
            "read": lambda f: f.read(n),
            "readline": lambda f: f.readline(line),
            "readlines": lambda f: f.readlines(),
            "next": lambda f: next(f, None),
            "write": lambda f: f.write(text),
            "write bytes": lambda f: f.write(b"x"),
            "writelines": lambda f: f.writelines(["1", "2\n"]),
            "start": lambda f: f.seek(0),
            "end": lambda f: f.seek(0, 2),
            "before": lambda f: f.seek(-1),
            "from here": lambda f: f.seek(1, 1),
            "stay": lambda f: f.seek(f.tell()) * 0,
            "truncate": lambda f: f.truncate(size),
            "flush": lambda f: f.flush(),
            "newlines": lambda f: f.newlines,
            "ask": lambda f: (f.readable(), f.writable(), f.seekable(), f.isatty(), f.closed),
            "reconfigure": lambda f: f.reconfigure(line_buffering=True),
        }
        what = rng.choice(list(calls))
        same(ours, theirs, calls[what], what)
    ours.close()
    theirs.close()
    assert store["f"] == (tmp_path / "f").read_bytes()


@pytest.mark.parametrize("mode", BINARY + TEXT)
@pytest.mark.parametrize("buffering", [-1, 0])
def test_nothing_of_a_real_file_is_missing(store, tmp_path, mode, buffering):
    if buffering == 0 and "b" not in mode:
        return
    ours, theirs = both(store, tmp_path / "f", mode, buffering=buffering)
    names = {name for name in dir(theirs) if not name.startswith("_")}
    assert names <= CALLED, names - CALLED
    assert names <= set(dir(ours)), names - set(dir(ours))
    with pytest.raises(io.UnsupportedOperation):
        ours.fileno()
    assert ours.name == "f"
    for name in sorted(names - {"fileno", "close", "closed", "name", "detach", "raw", "buffer"}):
        assert callable(getattr(ours, name)) == callable(getattr(theirs, name)), name
    ours.close()
    theirs.close()
    # Closed files refuse the same.
    for name in sorted(names - {"close", "closed", "name", "raw", "buffer", "fileno", "detach"}):
        arguments = {"write": ("x" if "b" not in mode else b"x",), "seek": (0,),
                     "readinto": (bytearray(1),), "readinto1": (bytearray(1),),
                     "writelines": ([],)}.get(name, ())  # fmt: skip
        attribute = outcome(lambda: getattr(theirs, name))[0]
        if callable(attribute):
            same(ours, theirs, lambda f: getattr(f, name)(*arguments), f"{name} when closed")
    assert ours.closed and theirs.closed
    for file in (ours, theirs):
        file.close()
        with pytest.raises(ValueError):
            file.__enter__()


def test_reads_that_give_what_is_there(store, tmp_path):
    ours, theirs = both(store, tmp_path / "f", "rb")
    assert START.startswith(ours.peek(10)) and ours.peek(10) and ours.tell() == 0
    buffer = bytearray(10)
    assert START.startswith(ours.read1(10)) and 0 < ours.readinto1(buffer) <= 10
    assert ours.read1() and ours.read1(0) == b""
    raw = ours.detach()
    assert raw.read(3) is not None and raw.size() == len(START)
    for call in (lambda f: f.read(), lambda f: f.tell()):
        with pytest.raises(ValueError):
            call(ours)
    theirs.detach().close()
    text = store.open("f")
    assert text.detach().read() == START


def test_arguments_of_open(store, tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"1")
    store["f"] = b"1"
    cases = [
        {"mode": mode} for mode in ("", "rw", "b", "rbt", "r++", "z", "rr", "rbb", "rtt", "+", "U")
    ]
    cases += [
        {"mode": "r", "buffering": 0},
        {"mode": "rb", "encoding": "utf-8"},
        {"mode": "rb", "errors": "strict"},
        {"mode": "rb", "newline": ""},
        {"mode": "r", "newline": "x"},
        {"mode": "w", "encoding": "no such"},
        {"mode": 5},
    ]
    for case in cases:
        mode = case.pop("mode")
        _, theirs = outcome(lambda: open(path, mode, **case))
        _, ours = outcome(lambda: store.open("f", mode, **case))
        assert theirs is not None and isinstance(ours, type(theirs)), (mode, case, ours, theirs)
        assert store["f"] == b"1", (mode, case)
    for mode, name in (("rb", "none"), ("r+", "none"), ("xb", "f")):
        _, theirs = outcome(lambda: open(tmp_path / name, mode))
        _, ours = outcome(lambda: store.open(name, mode))
        assert isinstance(ours, type(theirs)) and ours.errno == theirs.errno
        assert ours.filename == name and ours.strerror == theirs.strerror
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert store.open("f", "rb", buffering=1).read() == b"1"


def test_a_write_of_nothing_beyond_the_end_changes_nothing(store):
    for mode in ("w+b", "r+b", "ab"):
        with store.open("a", mode, buffering=0) as f:
            f.seek(100)
            assert f.write(b"") == 0 and f.size() == 0
        assert store["a"] == b""


def test_the_rest_is_read_in_one_call(store):
    store["a"] = bytes(3 << 20)
    calls = []
    with store.open("a", "rb") as f:
        inner = f.raw._raw

        class Counting:
            def __getattr__(self, name):
                calls.append(name)
                return getattr(inner, name)

        f.raw._raw = Counting()
        assert len(f.read()) == 3 << 20
    assert calls.count("readall") == 1 and "readinto" not in calls


@pytest.mark.parametrize("mode", ["rb", "wb", "ab", "r+b", "w+b", "xb", "r", "w", "a+", "x"])
def test_files_of_fsspec(path, tmp_path, mode):
    """What is odd is refused as files refuse it, and what was closed stays closed."""
    fs = HoldallFileSystem(fo=path, skip_instance_cache=True)
    real = tmp_path / "f"
    if mode[0] != "x":
        fs.pipe("f", START)
        real.write_bytes(START)
    ours, theirs = fs.open("f", mode if "b" in mode else mode + "t"), open(real, mode + "t" * ("b" not in mode))
    assert ours.mode == theirs.mode
    calls = [
        lambda f: f.seek(-1),
        lambda f: f.seek(-1, 1),
        lambda f: f.seek(-(1 << 40), 2),
        lambda f: f.seek(0, 9),
        lambda f: f.seek(1 << 70),
        lambda f: f.close(),
        lambda f: f.tell(),
        lambda f: f.seek(0),
        lambda f: f.read(),
        lambda f: f.readable(),
        lambda f: f.write(b"" if "b" in mode else ""),
        lambda f: next(f),
    ]
    for number, call in enumerate(calls):
        _, wanted = outcome(lambda: call(theirs))
        _, found = outcome(lambda: call(ours))
        same = found is None if wanted is None else isinstance(found, type(wanted))
        assert same, (number, found, wanted)
        assert getattr(found, "errno", None) == getattr(wanted, "errno", None), number


def test_odd_arguments_without_a_buffer(store, tmp_path):
    ours, theirs = both(store, tmp_path / "f", "rb", buffering=0)
    calls = [
        lambda f: f.read(1.5),
        lambda f: f.read("1"),
        lambda f: f.read(1 << 70),
        lambda f: f.seek(0, -1),
        lambda f: f.seek(0, 9),
        lambda f: f.readinto(memoryview(bytearray(8))[::-1]),
        lambda f: f.readinto(b"1234"),
        lambda f: f.write(b""),
        lambda f: f.truncate(0),
    ]
    for number, call in enumerate(calls):
        _, wanted = outcome(lambda: call(theirs))
        _, found = outcome(lambda: call(ours))
        assert isinstance(found, type(wanted)), (number, found, wanted)
        assert getattr(found, "errno", None) == getattr(wanted, "errno", None), number
    theirs.close()
    long = "x" * 300
    _, wanted = outcome(lambda: open(tmp_path / long, "rb"))
    _, found = outcome(lambda: holdall.open(tmp_path / long))
    assert isinstance(found, type(wanted)) and found.errno == wanted.errno
    assert found.filename == wanted.filename
