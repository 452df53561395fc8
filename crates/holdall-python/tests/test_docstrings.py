"""Examples in docstrings run as they stand."""

import doctest
import importlib
import pkgutil

import pytest

import holdall

MODULES = ["holdall"] + [f"holdall.{m.name}" for m in pkgutil.iter_modules(holdall.__path__)]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL


def examples():
    for name in MODULES:
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        for test in doctest.DocTestFinder().find(module, name):
            if test.examples:
                yield pytest.param(test, id=test.name)


@pytest.mark.parametrize("test", list(examples()))
def test_example(test, store, path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store["film"] = bytes(range(200))
    test.globs.update(store=store, path=str(tmp_path / "b.holdall"), holdall=holdall)
    output = []
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    failed = runner.run(test, out=output.append).failed
    assert not failed, "".join(output)


def test_there_are_examples():
    assert len(list(examples())) >= 10
