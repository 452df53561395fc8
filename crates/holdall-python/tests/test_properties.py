"""Random changes of a store in another process, which is killed at random moments, beside a dict.

HOLDALL_EXAMPLES=N runs N histories, other ones each time.
"""

import os
import random
import shutil
import tempfile
import time
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from worker import Worker, apply

EXAMPLES = os.environ.get("HOLDALL_EXAMPLES")
NAMES = [*(f"n{i}" for i in range(10)), "grüße", "a\x00b", "\udcff", "x" * 1024]
SIZES = st.sampled_from([0, 1, 100, 3000, 8192, 20_000, 65_537, 400_000])
DATA = st.builds(lambda seed, size: random.Random(seed).randbytes(size), st.integers(0, 999), SIZES)
SHARE = st.integers(0, 1000)


class Model(dict):
    """What a store is to do, with dicts and bytes."""

    def splice(self, key, start, stop, data):
        old = self[key]
        self[key] = old[:start] + data + old[stop:]

    def insert(self, key, at, data):
        self.splice(key, at, at, data)

    def delete_range(self, key, start, stop):
        self.splice(key, start, stop, b"")

    def write_at(self, key, at, data):
        self.splice(key, at, at + len(data), data)

    def append(self, key, data):
        self[key] += data

    def truncate(self, key, size):
        self[key] = self[key][:size].ljust(size, b"\0")

    def rename(self, source, target):
        self[target] = self.pop(source)

    def copy(self, source, target):
        self[target] = self[source]

    def concat(self, parts, target):
        self[target] = b"".join([self[part] for part in parts])


@st.composite
def changes(draw, model):
    """One to four changes that can be done to `model`, one after the other."""
    after, made = Model(model), []
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 4]))):
        change = draw(one(after))
        apply(after, change)
        made.append(change)
    return made, after


@st.composite
def one(draw, model):
    """One change that can be done to `model`."""
    free = [name for name in NAMES if name not in model]
    if not model or draw(st.integers(0, 3)) == 0:
        names = st.lists(st.sampled_from(NAMES), min_size=1, max_size=5)
        return ("update", {name: draw(DATA) for name in draw(names)})
    key = draw(st.sampled_from(sorted(model)))
    size = len(model[key])
    start, stop = sorted(size * draw(SHARE) // 1000 for _ in range(2))
    made = [
        ("pop", key, None),
        ("splice", key, start, stop, draw(DATA)),
        ("insert", key, start, draw(DATA)),
        ("delete_range", key, start, stop),
        ("write_at", key, start, draw(DATA)),
        ("append", key, draw(DATA)),
        ("truncate", key, draw(st.sampled_from([stop, size + 10]))),
    ]
    if free:
        target = draw(st.sampled_from(free))
        parts = draw(st.lists(st.sampled_from(sorted(model)), min_size=1, max_size=3))
        made += [("rename", key, target), ("copy", key, target), ("concat", parts, target)]
    return draw(st.sampled_from(made))


class Killed(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.model = Model()
        self.worker = Worker(self.directory / "a.holdall")

    def again(self):
        self.worker = Worker(self.directory / "a.holdall")

    def teardown(self):
        self.compare()
        self.worker.close()
        shutil.rmtree(self.directory)

    @rule(data=st.data())
    def change(self, data):
        made, after = data.draw(changes(self.model))
        assert self.worker.call(made) == "done"
        self.model = after

    @precondition(lambda self: self.model)
    @rule(data=st.data(), wait=st.integers(0, 30))
    def kill_while_it_changes(self, data, wait):
        made, after = data.draw(changes(self.model))
        self.worker.connection.send(made)
        time.sleep(wait / 10_000)
        self.worker.kill()
        self.again()
        found, sound = self.worker.call("all")
        assert sound and found in (self.model, after)
        # What comes next must not depend on the moment of the kill.
        assert found == after or self.worker.call(made) == "done"
        self.model = after

    @rule()
    def compare(self):
        assert self.worker.call("all") == (self.model, True)

    @rule()
    def close_and_open(self):
        self.worker.close()
        self.again()


Killed.TestCase.settings = settings(
    max_examples=int(EXAMPLES or 12),
    stateful_step_count=25,
    deadline=None,
    derandomize=EXAMPLES is None,
    suppress_health_check=list(HealthCheck),
)
TestKilled = Killed.TestCase
