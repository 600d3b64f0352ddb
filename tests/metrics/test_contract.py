"""Every metric in the registry keeps the contract, on small made images of its kind."""

from pathlib import Path

import numpy as np
import pytest

from bsdsbench.loaders.inputs import GroundTruth, Prediction
from bsdsbench.metrics import registry
from tests.helpers.metric_cases import case_of
from tests.helpers.metric_contract import MetricContract
from tests.helpers.runs import refused


@pytest.mark.parametrize("case", registry.BUILT_IN, indirect=True)
class TestEveryMetric(MetricContract):
    @pytest.fixture
    def case(self, request):
        return case_of(request.param)


def test_shares_and_rankings_of_images_do_not_add():
    means = {name for name in registry.BUILT_IN if not registry.get(name).counts_type.adds}
    assert means == {"region", "saliency", "superpixel", "wireframe"}


ERRORS = {  # quantities of which less is better
    *(
        "van_dongen",
        "bgm",
        "voi",
        "voi_split",
        "voi_merge",
        "voi_per_log_area",
        "bce",
        "gce",
        "lce",
    ),
    *("hamming_gt", "hamming_pred", "are_region", "are_skimage", "are_cremi", "ue", "ue_levin"),
    *("mae", "eer", "ber", "mae_mean", "mae_sum", "ber_mean", "ber_sum", "adaptive_ber_mean"),
    *("mean_ber_mean", "min_ber_mean", "hd"),
    *(f"hd{p}-{kind}" for p in (90, 95, 99) for kind in ("area", "directed", "pooled")),
    *("assd-directed", "assd-pooled", "dbe_accuracy", "dbe_completeness"),
    *("dbe_accuracy_pooled", "dbe_completeness_pooled"),
}
NO_SCORES = {
    *("n_images", "n_classes", "n_superpixels", "gt_pixels", "n_pairs", "n_one_empty"),
    *("ods.threshold", "ods.precision", "ods.recall", "ods_threshold", "threshold"),
}


@pytest.mark.parametrize("name", registry.BUILT_IN)
def test_columns_say_what_is_a_score_and_where_less_is_better(name):
    metric = registry.get(name)
    assert metric.columns[-1].key == "n_images"
    for column in [*metric.columns, *metric.part_columns, *metric.image_columns]:
        quantity = column.key.removesuffix(".ods").removesuffix(".ois")
        quantity = quantity if quantity in ERRORS else column.key.partition(".")[0]
        assert column.lower == (quantity in ERRORS), column.key
        if column.key not in ("ods", "ois"):  # of a part these are thresholds, or scores
            assert column.score == (column.key not in NO_SCORES), column.key


FLAT, WHOLE = np.zeros((3, 4)), np.zeros((3, 4), int)
EDGES = {"boundaries": (FLAT > 0,)}
REFUSED = [  # what lacks, in which of the two it is, and the line
    ("occlusion", {"angles": FLAT}, {**EDGES, "angles": (FLAT,)}, "p", "no angles, expected them"),
    ("occlusion", {"soft": FLAT}, {**EDGES, "angles": (FLAT,)}, "p", "no angles, expected them"),
    ("occlusion", {"soft": FLAT, "angles": FLAT}, EDGES, "p", "no angles, expected them beside"),
    ("saliency", {}, {"mask": FLAT > 0}, "p", "expected one soft map and one mask$"),
    ("saliency", {"soft": FLAT}, {}, "p", "expected one soft map and one mask$"),
    ("superpixel", {}, {}, "p", "no label map, expected one label map of superpixels$"),
    ("superpixel", {"segs": (WHOLE,) * 2}, {}, "p", "2 label maps, expected one label map of supe"),
    (
        "superpixel",
        {"segs": (WHOLE,)},
        {},
        "g",
        "ground truth without segmentations, expected them",
    ),
    ("semantic", {}, {}, "p", "no class maps, expected them$"),
    ("semantic", {"classes": WHOLE}, {}, "g", "no labels of classes, expected them$"),
    ("region", {}, {"segmentations": (WHOLE,)}, "p", "no segmentation, expected one or"),
    ("region", {}, {}, "g", "ground truth without segmentations, expected label maps for region"),
    ("segmentation", {}, {"labels": WHOLE}, "p", "no label map, expected a label map .H, W.$"),
    ("segmentation", {}, {}, "g", "no label map, expected masks, classes or instances$"),
    ("crispness", {}, EDGES, "p", "no soft map, expected the raw map of a detector$"),
    ("depth", {}, {"depth": FLAT}, "p", "no depth map, expected one"),
]


@pytest.mark.parametrize("path", [Path("folder/file.png"), None])
@pytest.mark.parametrize(("name", "pred", "gt", "side", "line"), REFUSED)
def test_what_a_metric_cannot_count_is_named_by_its_file_or_image(name, pred, gt, side, line, path):
    metric = registry.get(name)
    protocol = metric.example()[2]
    made = Prediction("p", path=path, **pred), GroundTruth("g", path=path, **gt)
    refused(f"^{path or side}: {line}", metric.count, *made, protocol)
