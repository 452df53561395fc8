"""Random histories of transactions, with exceptions at random points, beside a dictionary."""

import multiprocessing
import random

import pytest

import holdall

NAMES = [f"n{i}" for i in range(40)]


class Boom(BaseException):
    """Raised at a random point; not an Exception, so that nothing may swallow it."""


class History:
    """A store, what it holds, and calls that do the same to both."""

    def __init__(self, store, seed):
        self.store, self.rng = store, random.Random(seed)
        self.model = {}

    def data(self):
        return self.rng.randbytes(self.rng.choice([0, 1, 50, 3000, 9000, 120_000]))

    def maybe_boom(self, chance=0.08):
        if self.rng.random() < chance:
            raise Boom

    def pairs(self, model):
        for _ in range(self.rng.randrange(12)):
            self.maybe_boom()
            name, data = self.rng.choice(NAMES), self.data()
            model[name] = data
            yield name, data

    def change(self, view, model):
        """One call on a view, and the same on its model; either may raise in the middle."""
        rng, name, other = self.rng, *self.rng.sample(NAMES, 2)
        inner = dict(model)
        match rng.randrange(14):
            case 0 | 1:
                inner[name] = self.data()
                view[name] = inner[name]
            case 2:
                assert view.pop(name, None) == inner.pop(name, None)
            case 3:
                view.update(self.pairs(inner))
            case 4:
                value = self.data()
                assert view.setdefault(name, value) == inner.setdefault(name, value)
            case 5 if inner:
                assert view.popitem()[0] == min(inner)
                del inner[min(inner)]
            case 6:
                self.write_file(view, inner, name)
            case 7 if name in inner:
                piece, at = self.data(), rng.randrange(len(inner[name]) + 1)
                view.insert(name, at, piece)
                inner[name] = inner[name][:at] + piece + inner[name][at:]
            case 8 if name in inner:
                with view.open(name, "r+b") as f:
                    f.seek(3)
                    f.write(b"edit")
                inner[name] = inner[name].ljust(3, b"\0")[:3] + b"edit" + inner[name][7:]
            case 9 if name in inner and other not in inner:
                view.rename(name, other)
                inner[other] = inner.pop(name)
            case 10 if name in inner:
                view.copy(name, other)
                inner[other] = inner[name]
            case 11 if rng.random() < 0.2:
                view.clear()
                inner.clear()
            case 12:
                with pytest.raises(KeyError):
                    view["none"]
                with pytest.raises(TypeError):
                    view[name] = 5
            case 13:
                assert dict(view.items()) == inner and len(view) == len(inner)
        model.clear()
        model.update(inner)

    def write_file(self, view, inner, name):
        """A file that is closed in peace, or left by an exception, or not closed at all."""
        data, mode = self.data(), self.rng.choice(["wb", "w+b"])
        with view.open(name, mode) as f:
            f.write(data)
            self.maybe_boom(0.3)
            if mode == "w+b":
                f.seek(0)
                assert f.read() == data
        inner[name] = data

    def step(self):
        """One call, or a transaction of several, each of which may be left by an exception."""
        before = dict(self.model)
        view = self.store.deferred() if self.rng.random() < 0.3 else self.store
        try:
            if self.rng.random() < 0.5:
                self.change(view, self.model)
            else:
                with self.store.transaction() as tx:
                    for _ in range(self.rng.randrange(8)):
                        self.change(tx, self.model)
                        self.maybe_boom()
        except Boom:
            self.model = before
        assert dict(self.store.items()) == self.model


@pytest.mark.parametrize("seed", range(12))
def test_a_history(path, seed):
    with holdall.open(path, "a") as store:
        history = History(store, seed)
        for i in range(60):
            history.step()
            if i % 20 == 19:
                assert store.stat()["objects"] == len(store)
                assert store.verify()["sound"]
    with holdall.open(path) as store:
        assert dict(store.items()) == history.model


@pytest.mark.parametrize("seed", range(3))
def test_a_history_in_a_full_store(path, seed):
    """A change that finds no room changes nothing."""
    with holdall.open(path, "a", max_bytes=1 << 20) as store:
        history = History(store, seed)
        refused = 0
        with pytest.raises(holdall.FullError):
            for i in range(100):
                store[f"z{i:02}"] = history.rng.randbytes(40_000)
        history.model = dict(store.items())
        for _ in range(80):
            before = dict(history.model)
            try:
                history.step()
            except holdall.FullError:
                refused += 1
                history.model = before
            assert dict(store.items()) == history.model
        assert refused and store.verify()["sound"]


def read_all(store):
    return dict(store.items())


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_other_processes_read_what_a_history_left(path, method):
    with holdall.open(path, "a") as store:
        history = History(store, method)
        for _ in range(40):
            history.step()
    context = multiprocessing.get_context(method)
    with holdall.open(path) as store, context.Pool(3) as pool:
        views = [store, store.snapshot(), store.deferred()] * 2
        assert all(found == history.model for found in pool.map(read_all, views))
