"""pytest plugin: compare a run with a stored baseline.

    def test_scores(assert_scores):
        run = bsdsbench.evaluate("results/ours", "data/groundTruth/val")
        assert_scores(run, "baseline.json", statistical=True)

`run` may also be the folder of a run. `pytest --bsdsbench-update` writes the baselines from the
runs instead.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("bsdsbench").addoption(
        "--bsdsbench-update",
        action="store_true",
        help="write the baselines of assert_scores from this run instead of checking them",
    )


@pytest.fixture
def assert_scores(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """assert_scores(run, baseline, tolerance=0.002, ...), as in comparison.gate; a relative path is
    taken from the folder of the test's file."""
    from bsdsbench.comparison import gate

    def hold(run: Any, baseline: Any, **options: Any) -> Any:
        __tracebackhide__ = True
        if request.config.getoption("--bsdsbench-update"):
            options = {"update": True}
        return gate.assert_scores(run, Path(request.path).parent / baseline, **options)

    return hold
