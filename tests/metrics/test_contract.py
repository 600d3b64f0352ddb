"""Every metric in the registry keeps the contract, on small made images of its kind."""

import pytest

from bsdsbench.integrations.metric_contract import MetricContract
from bsdsbench.metrics import registry
from tests.helpers.metric_cases import case_of


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
    *("mean_ber_mean", "min_ber_mean", "hd", "hd95-area", "hd95-directed", "hd95-pooled"),
    *("assd-directed", "assd-pooled", "dbe_accuracy", "dbe_completeness"),
    *("dbe_accuracy_pooled", "dbe_completeness_pooled"),
}
NO_SCORES = {
    *("n_images", "n_classes", "n_superpixels", "gt_pixels"),
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
