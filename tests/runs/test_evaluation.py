"""An evaluation by itself: which records make one."""

from bsdsbench.files.errors import MergeError
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs.evaluation import Evaluation
from bsdsbench.scores.counts import ImageRecord
from tests.helpers.runs import refused
from tests.helpers.simulated import simulated_run


def test_records_of_other_metrics_or_of_one_id_are_no_evaluation():
    one, two = (simulated_run("x", 1, pixel=pixel).records[0] for pixel in (False, True))
    cases = {"has counts of boundary, pixel, expected": two, "is a duplicate id": one}
    for words, other in {**cases, "of no metric": ImageRecord("c", (3, 4))}.items():
        refused(words, Evaluation, Protocol(), "x", (one, other), error=MergeError)
