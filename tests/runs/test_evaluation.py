"""An evaluation by itself: which records make one, and which evaluations add."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bsdsbench.core.errors import DataError, MergeError
from bsdsbench.core.protocol import Protocol
from bsdsbench.core.records import ImageRecord
from bsdsbench.runs.evaluation import Evaluation
from tests.runs.simulated import simulated_run

BOTH = "counts of boundary, pixel"


def run_of(image_id: str, *, pixel: bool) -> Evaluation:
    """One image with boundary counts, or with those and pixel counts."""
    run = simulated_run("x", 1, pixel=pixel)
    return replace(run, name=image_id, records=(replace(run.records[0], image_id=image_id),))


def test_evaluations_of_the_same_metrics_add() -> None:
    a, b = run_of("a", pixel=True), run_of("b", pixel=True)
    turned = replace(b.records[0], counts=dict(reversed(b.records[0].counts.items())))
    assert (a + replace(b, records=(turned,))).equals(a + b)
    nothing = Evaluation(a.protocol, "nothing", (), failed={"c": "damaged"})
    assert (a + nothing).metrics == (nothing + a).metrics == ("boundary", "pixel")


def test_evaluations_of_other_metrics_do_not_add() -> None:
    one, two = run_of("a", pixel=False), run_of("b", pixel=True)
    found = f"a . b: image 'b' has {BOTH}, image 'a' of boundary, expected the same metrics"
    with pytest.raises(MergeError, match=found):
        one + two
    with pytest.raises(
        MergeError, match="image 'a' has counts of boundary, image 'b' of boundary,"
    ):
        two + one


def test_records_of_other_metrics_are_no_evaluation() -> None:
    one, two = run_of("a", pixel=False).records[0], run_of("b", pixel=True).records[0]
    for records in ((one, two), (two, one)):
        with pytest.raises(DataError, match=r"x: image '[ab]' has counts of .*expected the same"):
            Evaluation(Protocol(), "x", records)
    with pytest.raises(DataError, match="image 'c' has counts of no metric, image 'a' of boundary"):
        Evaluation(Protocol(), "x", (one, ImageRecord("c", (3, 4))))
