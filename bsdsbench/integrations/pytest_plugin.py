"""pytest plugin: compare a run with a stored baseline.

    def test_scores(assert_scores):
        run = bsdsbench.evaluate("results/ours", "data/groundTruth/val")
        assert_scores(run, "baseline.json", statistical=True)

`run` may also be the folder of a run. `pytest --bsdsbench-update` writes the baselines from the
runs instead, and says at the end which of them changed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("bsdsbench")
    group.addoption(
        "--bsdsbench-update",
        action="store_true",
        default=False,
        help="write the baselines of assert_scores from this run instead of checking them",
    )


WRITTEN = pytest.StashKey[dict[Path, tuple[str, str]]]()  # baseline -> its test, what became of it


def pytest_configure(config: pytest.Config) -> None:
    config.stash[WRITTEN] = {}


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    for path, (_, became) in config.stash[WRITTEN].items():
        terminalreporter.write_line(f"bsdsbench: baseline {became}: {path}")


@pytest.fixture
def assert_scores(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """assert_scores(run, baseline, tolerance=0.002, ...), as in comparison.gate; a relative path is
    taken from the folder of the test's file. Two tests cannot update one baseline."""
    from bsdsbench.comparison import gate

    update = bool(request.config.getoption("--bsdsbench-update"))
    folder = Path(request.path).parent

    def hold(run: Any, baseline: Any, **options: Any) -> Any:
        __tracebackhide__ = True
        path = (folder / baseline).resolve()
        if not update:
            return gate.assert_scores(run, path, **options)
        test, written = request.node.nodeid, request.config.stash[WRITTEN]
        if path in written:
            raise AssertionError(f"{path}: is the baseline of {written[path][0]} too")
        before = path.read_bytes() if path.exists() else None
        gate.assert_scores(run, path, update=True)
        same = "unchanged" if path.read_bytes() == before else "changed"
        written[path] = test, "new" if before is None else same
        return None

    return hold
