"""Every metric by one contract, and what each cannot count."""

import numpy as np
import pytest

from bsdsbench.images import GroundTruth, Prediction
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import ERROR_COLUMNS
from bsdsbench.scores.counts import part_of, value_at
from bsdsbench.testing import MetricContract
from tests.helpers.metric_cases import case_of
from tests.helpers.runs import refused


@pytest.mark.parametrize("case", registry.BUILT_IN, indirect=True)
class TestEveryMetric(MetricContract):
    @pytest.fixture
    def case(self, request):
        return case_of(request.param)


@pytest.mark.parametrize("name", registry.BUILT_IN)
def test_what_is_shown_of_an_image_is_measured(name):
    case, metric = case_of(name), registry.get(name)
    assert metric.columns[-1].key == "n_images"
    shown = {c.key for c in metric.image_columns}
    first = next(iter(case.run.image_scores(name).values()))
    assert metric.image_columns[0].key in first.keys() <= shown
    parts = metric.parts(case.run.protocol, metric.options_of(case.run.protocol))
    score = case.run.score(name)
    keys = [column.key for column in metric.columns]
    assert len(keys) == len(set(keys))
    measured = [c for c in metric.columns if c not in ERROR_COLUMNS]
    unmeasured = [c for c in measured if value_at(score, c.key) is None]
    # What an option asks for; contours have a column for each measure that there is
    asked = ("matte_", "found", "missed", "false", "pq", "sq", "rq")
    assert name == "contour" or all(c.key.startswith(asked) for c in unmeasured)
    assert name == "contour" or shown <= first.keys()
    for path in parts.values():
        part = part_of(score, path)
        assert part is None or value_at(part, metric.part_columns[0].key) is not None


FLAT, WHOLE = np.zeros((3, 4)), np.zeros((3, 4), int)
EDGES = {"boundaries": (FLAT > 0,)}
OTHER = {"depth": FLAT}
REFUSED = [  # what lacks, in which of the two it is, and what is named
    ("occlusion", {"soft": FLAT}, {**EDGES, "angles": (FLAT,)}, "p", "angles"),
    ("occlusion", {"soft": FLAT, "angles": FLAT}, EDGES, "g", "angles"),
    ("saliency", OTHER, {"mask": FLAT > 0}, "p", "soft"),
    ("saliency", {"soft": FLAT}, {}, "g", "mask"),
    ("superpixel", {"segs": (WHOLE,) * 2}, {}, "p", "2 label maps"),
    ("superpixel", {"segs": (WHOLE,)}, {}, "g", "segmentations"),
    ("semantic", OTHER, {"labels": WHOLE}, "p", "classes"),
    ("semantic", {"classes": WHOLE}, {}, "g", "labels"),
    ("region", OTHER, {"segmentations": (WHOLE,)}, "p", "soft"),
    ("segmentation", OTHER, {"labels": WHOLE}, "p", "classes"),
    ("segmentation", {"classes": WHOLE}, {}, "g", "labels"),
    *((name, OTHER, EDGES, "p", "soft") for name in ("crispness", "calibration")),
    ("depth", {"soft": FLAT}, {"depth": FLAT}, "p", "depth"),
]


@pytest.mark.parametrize(("name", "pred", "gt", "side", "named"), REFUSED)
def test_what_a_metric_cannot_count_is_named(name, pred, gt, side, named):
    metric, protocol = registry.get(name), case_of(name).run.protocol
    made = Prediction("p", **pred), GroundTruth("g", **gt)
    opt = metric.options_of(protocol)
    refused(f"^{side}: .*{named}", metric.count, *made, protocol, opt)
