"""An evaluation by itself: which records make one, and which evaluations add."""

from dataclasses import replace

import pytest

from bsdsbench.files.errors import MergeError
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs.evaluation import Evaluation
from bsdsbench.scores.counts import ImageRecord
from tests.helpers.simulated import simulated_run

BOTH = "counts of boundary, pixel"


def run_of(image_id, *, pixel):
    """One image with boundary counts, or with those and pixel counts."""
    run = simulated_run("x", 1, pixel=pixel)
    return replace(run, name=image_id, records=(replace(run.records[0], image_id=image_id),))


def test_records_of_other_metrics_are_no_evaluation():
    one, two = run_of("a", pixel=False).records[0], run_of("b", pixel=True).records[0]
    for records in ((one, two), (two, one), (one, ImageRecord("c", (3, 4)))):
        with pytest.raises(MergeError, match=r"x: image '[abc]' has counts of .*, expected those"):
            Evaluation(Protocol(), "x", records)
