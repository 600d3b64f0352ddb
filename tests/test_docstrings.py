"""The examples of docstrings run."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import bsdsbench as bb

ROOT = Path(bb.__file__).parent
SLOW = {"doctor", "training_labels", "engine", "detector_runs", "merge"}
WITH_EXAMPLES = [
    pytest.param(
        ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__"),
        marks=pytest.mark.slow if path.stem in SLOW else (),
    )
    for path in sorted(ROOT.rglob("*.py"))
    if ">>> " in path.read_text("utf-8")
]


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
