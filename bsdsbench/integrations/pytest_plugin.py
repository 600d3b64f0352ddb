"""pytest plugin: compare a run with a stored baseline.

    def test_scores(assert_scores):
        run = bsdsbench.evaluate("results/ours", "data/groundTruth/val")
        assert_scores(run, "baseline.json", statistical=True)

`run` may also be the folder of a saved run. With `pytest --bsdsbench-update`, the baselines are
written from the runs instead.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
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
    return partial(_assert_scores, request)


def _assert_scores(
    request: pytest.FixtureRequest, run: Evaluation | PathLike, baseline: PathLike, **options: Any
) -> GateResult | None:
    """Fail the test that `request` describes if a score of `run` is below that in `baseline`.

    `baseline` is relative to the folder of the test. `options` are those of the comparison. With
    --bsdsbench-update, `baseline` is written from `run`, and nothing is compared.
    """
    from bsdsbench.comparison import gate

    __tracebackhide__ = True  # a failure points to the line of the test
    path = Path(request.path).parent / baseline
    if request.config.getoption("--bsdsbench-update"):
        return gate.assert_scores(run, path, update=True)
    return gate.assert_scores(run, path, **options)
