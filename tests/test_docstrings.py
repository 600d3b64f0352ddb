"""Every public name has numpydoc sections that are complete, and examples that run."""

import doctest
import inspect
from importlib import import_module
from pathlib import Path

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
ROOT = Path(bb.__file__).parent
WITH_EXAMPLES = [
    pytest.param(
        ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__"),
        marks=pytest.mark.slow if "bb.run(" in path.read_text("utf-8") else (),
    )
    for path in sorted(ROOT.rglob("*.py"))
    if ">>> " in path.read_text("utf-8")
]


@pytest.mark.parametrize("found", PUBLIC)
def test_sections_are_complete(found):
    validate = pytest.importorskip("numpydoc.validate", reason="numpydoc is not installed").validate
    name = f"{found.__module__}.{found.__qualname__}"
    faults = [(code, text) for code, text in validate(name)["errors"] if code in FAULTS]
    assert faults == []
    if inspect.isfunction(found) or found.__module__.partition(compat.__name__)[0]:
        assert "Examples\n--------" in inspect.getdoc(found)


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_run(name, detectors_once):
    """Those of every module, of public names or not."""
    try:
        module = import_module(name)
    except ImportError as error:  # of an extra
        pytest.skip(str(error))
    found = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert found.attempted > 0
    assert found.failed == 0


def methods():
    """The public methods of public classes, each once; one that overrides may inherit its text."""
    found = {}
    for cls in (p.values[0] for p in PUBLIC if inspect.isclass(p.values[0])):
        for name in dir(cls):
            method = inspect.unwrap(getattr(cls, name))
            method = getattr(method, "__func__", method)
            ours = getattr(method, "__module__", None) or ""
            if name.startswith("_") or not inspect.isfunction(method):
                continue
            inherited = not method.__doc__ and inspect.getdoc(getattr(cls, name))
            if ours.startswith("bsdsbench.") and not inherited:
                found[f"{ours}.{method.__qualname__}"] = method
    return sorted(found)


@pytest.mark.parametrize("name", methods())
def test_every_public_method_is_described(name):
    validate = pytest.importorskip("numpydoc.validate", reason="numpydoc is not installed").validate
    assert [(code, text) for code, text in validate(name)["errors"] if code in FAULTS] == []


NEED_DATA = ("certificate", "py_edge_classes")


def test_examples_of_entry_points_are_not_skipped():
    """But for those that need a data set that does not ship."""
    skipped = [
        f"{path.stem}: {line}"
        for path in sorted(ROOT.rglob("*.py"))
        for line in path.read_text("utf-8").splitlines()
        if "doctest: +SKIP" in line and path.stem not in NEED_DATA
    ]
    assert skipped == []
