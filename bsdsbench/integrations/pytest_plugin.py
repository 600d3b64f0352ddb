"""pytest plugin: compare a run with a stored baseline.

    def test_scores(assert_scores):
        run = bsdsbench.evaluate("results/ours", "data/groundTruth/val")
        assert_scores(run, "baseline.json", statistical=True)

`pytest --bsdsbench-update` writes the baselines from the runs instead.
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


@pytest.fixture
def assert_scores(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """assert_scores(run, baseline, tolerance=0.002, statistical=False), as in comparison.gate.

    A relative baseline path is taken from the folder of the test's file.
    """
    from bsdsbench.comparison import gate

    update = bool(request.config.getoption("--bsdsbench-update"))
    folder = Path(request.path).parent

    def hold(run: Any, baseline: Any, **options: Any) -> Any:
        __tracebackhide__ = True
        return gate.assert_scores(run, folder / baseline, update=update, **options)

    return hold
