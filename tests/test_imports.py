"""The arrows of the design, read from the sources: who may import whom, and no circle."""

import ast
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import bsdsbench as bb
from bsdsbench.metrics import registry

PACKAGE = Path(__file__).parents[1] / "bsdsbench"

# A package imports those before it, and itself.
LAYERS = (
    *(
        "lazy",
        "text",
        "errors",
        "kernels",
        "arguments",
        "io",
        "tables",
        "scores",
        "protocol",
        "images",
    ),
    *("loaders curves", "transforms"),
    *("metrics", "results", "runs", "detectors"),
    *("comparison diagnosis", "plotting", "report", "integrations testing", "cli"),
)
RANK = {name: k for k, names in enumerate(LAYERS) for name in names.split()}


def name_of(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def parsed(path):
    return ast.parse(path.read_text("utf-8"))


@cache
def imported(path):
    """Names of all modules a file imports, anywhere in it but for type checkers only."""
    names = []
    for node in nodes(parsed(path)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            named = [f"{node.module}.{alias.name}" for alias in node.names]
            modules = [name for name in named if name in MODULES]
            names += modules if len(modules) == len(named) else [*modules, node.module]
    return names


def nodes(tree):
    for node in ast.iter_child_nodes(tree):
        typing_only = isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        if not typing_only:
            yield node
            yield from nodes(node)


@cache
def graph():
    """Each module -> those of ours that it imports."""
    return {
        name: {m for m in imported(path) if m in MODULES and m != name}
        for name, path in MODULES.items()
    }


def package(module):
    return module.split(".")[1] if "." in module else ""


def test_imports_go_one_way():
    wrong = {
        (name, other)
        for name in MODULES
        for other in graph()[name]
        if package(other) != package(name)
        and RANK.get(package(other), -1) >= RANK.get(package(name), 99)
    }
    assert wrong == set()


def test_there_is_no_circle():
    """A module's imports, also those inside functions, never lead back to it."""
    assert len([*TopologicalSorter(graph()).static_order()]) == len(MODULES)


def test_only_plotting_imports_matplotlib():
    users = {
        package(name)
        for name, path in MODULES.items()
        if any(module.startswith("matplotlib") for module in imported(path))
    }
    assert users == {"plotting"}


@pytest.mark.parametrize("folder", ["bsdsbench", "scripts", "tests"])
def test_no_module_is_longer_than_a_reader_can_hold(folder):
    files = (PACKAGE.parent / folder).rglob("*.py")
    lengths = {path.name: len(path.read_text("utf-8").splitlines()) for path in files}
    assert {name: n for name, n in lengths.items() if n > 600} == {}


# NMS recipes of those names and published tables, which are of two benchmarks; the short forms that
# users know.
MAY_NAME_METRICS = (
    "bsdsbench.protocol.protocol",
    "bsdsbench.results.evaluation",
    "bsdsbench.comparison.published",
    "bsdsbench.loaders.formats.coco",  # a key in files
    "bsdsbench.loaders.formats.depth_files",  # a name of arrays in files
    "bsdsbench.images",  # a form of predictions
)


def test_nothing_outside_metrics_names_one():
    """No string is the name of a metric, and no code distinguishes counts by their type."""
    wanted = {*registry.BUILT_IN} - {"instances", "depth"}  # also parts of a ground truth
    found = {}
    for name, path in MODULES.items():
        if package(name) == "metrics" or name.startswith(MAY_NAME_METRICS) or name == "bsdsbench":
            continue
        strings = {n.value for n in ast.walk(parsed(path)) if isinstance(n, ast.Constant)}
        named = sorted(s for s in strings if isinstance(s, str) and s.partition(".")[0] in wanted)
        if named:
            found[name] = named
    assert found == {}


HEAVY = (
    *("numba", "numpy", "scipy", "skimage", "matplotlib", "jinja2", "dask", "distributed"),
    *("imageio", "rich", "h5py", "torch"),
)


def printed(program):
    """What a new process prints."""
    words = [sys.executable, "-c", program]
    run = {"capture_output": True, "text": True, "check": True, "cwd": PACKAGE.parent}
    return subprocess.run(words, **run).stdout.split()


@pytest.mark.parametrize("code", ["import bsdsbench", "import bsdsbench.cli"])
@pytest.mark.process
def test_importing_the_package_imports_nothing_heavy(code):
    assert printed(f"{code}; import sys; print(*{{*{HEAVY!r}}} & {{*sys.modules}})") == []


@pytest.mark.process
def test_scores_are_read_without_compiled_kernels():
    """Loading and showing a run of the BSDS benchmarks needs no numba."""
    program = (
        "from bsdsbench.metrics import registry\n"
        "from bsdsbench.results.evaluation import Evaluation\n"
        "[registry.get(m) for m in ('boundary', 'region', 'pixel')]\n"
        "import sys; print('numba' in sys.modules)"
    )
    assert printed(program) == ["False"]


def test_public_names_are_there_and_no_module_hides_one():
    """Importing bsdsbench.x sets the attribute x of the package, and would shadow a function x."""
    assert not {name.partition(".")[0] for name in bb._PACKAGES} & set(bb._HOME)
    assert [name for name in bb.__all__ if getattr(bb, name) is None] == []
    assert bb.explain.__name__ == "bsdsbench.diagnosis.explain"
    for where in (bb, bb.integrations):
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            _ = where.nothing
