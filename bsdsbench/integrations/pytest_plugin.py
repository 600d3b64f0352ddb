"""pytest plugin: compare a run with a stored baseline.

    def test_scores(assert_scores):
        run = bsdsbench.evaluate("results/ours", "data/groundTruth/val")
        assert_scores(run, "baseline.json", statistical=True)

`run` may also be the folder of a saved run. With `pytest --bsdsbench-update`, the baselines are
written from the runs instead.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.register_assert_rewrite("bsdsbench.testing")  # whose failures then show values

if TYPE_CHECKING:
    from bsdsbench.comparison.gate import GateResult
    from bsdsbench.io import PathLike
    from bsdsbench.results.evaluation import Evaluation


@pytest.hookimpl
def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flag --bsdsbench-update to the options of pytest, which calls this hook."""
    parser.getgroup("bsdsbench").addoption(
        "--bsdsbench-update",
        action="store_true",
        help="write the baselines of assert_scores from this run instead of checking them",
    )


@pytest.fixture(name="assert_scores")
def _assert_scores_fixture(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Provide the function `assert_scores`, which fails a test if a score is below its baseline.

    It takes the arguments of `comparison.gate.assert_scores`, but the path of the baseline is
    relative to the folder of the test file. With --bsdsbench-update, it only writes the baseline.
    """
    from bsdsbench.comparison import gate

    def assert_scores(
        run: Evaluation | PathLike, baseline: PathLike, **options: Any
    ) -> GateResult | None:
        """Fail if a score of `run` is below that in `baseline`, relative to the test's folder."""
        __tracebackhide__ = True  # a failure points to the line of the test
        # `request` is the test that asked for the fixture
        if request.config.getoption("--bsdsbench-update"):
            options = {"update": True}  # write the baseline; options of a comparison are not needed
        return gate.assert_scores(run, Path(request.path).parent / baseline, **options)

    return assert_scores
