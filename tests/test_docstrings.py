"""Every public name has numpydoc sections that are complete, and examples that run."""

from __future__ import annotations

import doctest
import inspect

import pytest

import bsdsbench as bb
from bsdsbench import curves
from bsdsbench.integrations import compat

# Missing docstring or summary; parameters missing, unknown, in another order, without a
# description; no returned value; sections that are unknown, in the wrong order or underlined wrong.
FAULTS = {
    *("GL06", "GL07", "GL08", "SS01", "SS03"),
    *("PR01", "PR02", "PR04", "PR05", "PR07", "PR10", "RT01", "RT03"),
}


def public():
    for package in (bb, curves, compat):
        for name in package.__all__:
            found = getattr(package, name)
            if callable(found):
                yield pytest.param(found, id=f"{package.__name__}.{name}")


PUBLIC = list(public())


@pytest.mark.parametrize("found", PUBLIC)
def test_sections_are_complete(found):
    validate = pytest.importorskip("numpydoc.validate", reason="numpydoc is not installed").validate
    name = f"{found.__module__}.{found.__qualname__}"
    faults = [(code, text) for code, text in validate(name)["errors"] if code in FAULTS]
    assert faults == []
    if inspect.isfunction(found):
        assert "Examples\n--------" in inspect.getdoc(found)


@pytest.mark.parametrize("found", PUBLIC)
def test_examples_run(found):
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for test in doctest.DocTestFinder(recurse=False).find(found, globs={}):
        # Examples of a module's own names run where these are known.
        test.globs.update(vars(inspect.getmodule(found)))
        runner.run(test)
    assert runner.summarize(verbose=False).failed == 0


@pytest.mark.parametrize("found", [p for p in PUBLIC if inspect.isclass(p.values[0])])
def test_every_public_method_is_described(found):
    public_names = [name for name in vars(found) if not name.startswith("_")]
    methods = {name: getattr(found, name) for name in public_names}
    bare = [n for n, m in methods.items() if inspect.isfunction(m) and not inspect.getdoc(m)]
    assert bare == []
