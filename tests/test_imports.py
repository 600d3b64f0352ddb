"""The arrows of the design: who may import whom."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "bsdsbench"
METRICS = {"boundary", "pixel", "region", "semantic", "saliency", "superpixels", "humans"}
SCORES = {
    "aggregate",
    "region_scores",
    "evaluation",
    "comparison",
    "runner",
    "report",
    "plotting",
    "cli",
}


def modules(room):
    path = PACKAGE / room
    return sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]


def imported(path):
    """Names of all modules a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            if node.module == "bsdsbench":
                yield from (f"bsdsbench.{alias.name}" for alias in node.names)


def rooms_used(path):
    return {name.split(".")[1] for name in imported(path) if name.startswith("bsdsbench.")}


@pytest.mark.parametrize(
    ("room", "forbidden"),
    [
        ("loaders", METRICS | SCORES - {"evaluation"}),
        ("kernels", METRICS | SCORES | {"loaders", "protocol", "records"}),
        ("aggregate", METRICS | {"loaders", "kernels", "runner"}),
        ("region_scores", METRICS | {"loaders", "kernels", "runner"}),
        ("boundary", {"loaders", "aggregate", "evaluation", "runner"}),
        ("pixel", {"loaders", "aggregate", "evaluation", "runner"}),
        ("region", {"loaders", "aggregate", "evaluation", "runner"}),
        ("curves", METRICS | {"loaders", "evaluation", "runner", "plotting"}),
        ("runner", {"cli", "report", "plotting", "comparison"}),
        ("records", METRICS | SCORES | {"loaders", "kernels"}),
    ],
)
def test_imports_go_one_way(room, forbidden):
    found = {path.name: rooms_used(path) & forbidden for path in modules(room)}
    assert {name: used for name, used in found.items() if used} == {}


def test_only_plotting_imports_matplotlib():
    users = {
        path.relative_to(PACKAGE).parts[0]
        for path in PACKAGE.rglob("*.py")
        if any(name.split(".")[0] == "matplotlib" for name in imported(path))
    }
    assert users == {"plotting"}


def test_no_module_is_longer_than_a_reader_can_hold():
    lengths = {p.name: len(p.read_text("utf-8").splitlines()) for p in PACKAGE.rglob("*.py")}
    assert {name: n for name, n in lengths.items() if n > 500} == {}


HEAVY = (
    *("numba", "numpy", "scipy", "skimage", "matplotlib", "jinja2", "dask", "distributed"),
    *("imageio", "rich", "h5py", "torch"),
)


@pytest.mark.parametrize("code", ["import bsdsbench", "import bsdsbench.cli"])
def test_importing_the_package_imports_nothing_heavy(code):
    program = f"{code}; import sys; print(*[m for m in {HEAVY!r} if m in sys.modules])"
    found = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=PACKAGE.parent,
    )
    assert found.stdout.split() == []


def test_every_public_name_is_there():
    import bsdsbench as bb

    for name in bb.__all__:
        assert getattr(bb, name) is not None, name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = bb.nothing
