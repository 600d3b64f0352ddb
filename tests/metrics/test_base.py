"""What a metric is that says no more than it must, and what every metric has."""

import sys

import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.errors import DataError, ProtocolError
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import (
    Column,
    Metric,
    ValuesMetric,
    over,
)
from bsdsbench.metrics.optional import (
    ChecksSet,
    CompletesScore,
    CurveOfPixels,
    Diagnosed,
    DrawsPixels,
    HumanForm,
    LinksImages,
    OfficialTables,
    ResultFiles,
    ShowsLabels,
)
from bsdsbench.scores.counts import Score, counts_by_image, value_at
from bsdsbench.scores.ratios import defined_ratio, ratio, weighted_sum


class Share(Metric):
    """What must be said, and no more."""

    name, title = "share", "Shares"
    columns = (Column("share", "share"), Column("n_images", "images"))
    image_columns = columns[:1]

    def count(self, pred, gt, protocol, opt):
        return {"hit": 0, "of": 0}

    def scores(self, stack, weights, protocol, opt):
        hit, of, there = (weighted_sum(weights, stack[n]) for n in ("hit", "of", "there"))
        part = {"deep": {"share": ratio(hit, of)}}
        few = over("images", {"share": (there, weights.sum(axis=1))})
        return {"share": ratio(hit, of), "part": part, "over": few}


SHARE, PROTOCOL = Share(), bb.Protocol()
FLAT = bb.Prediction("p", soft=np.zeros((3, 4)))
WIDE, TALL = (bb.GroundTruth("g", (np.zeros(s, bool),)) for s in ((3, 4), (4, 3)))


def record(image_id, hit, of, there=1):
    counts = {"hit": hit, "of": of, "there": there}
    return bb.ImageRecord(image_id, (3, 4), {"share": counts})


RECORDS = [record("b", 1, 4), record("a", 2, 2)]


def test_what_is_not_said_is_not_there():
    assert (SHARE.pred_kinds, SHARE.gt_kind) == (("soft", "labels"), "annotators")
    assert SHARE.parts(PROTOCOL, None) == {}
    assert SHARE.fits(FLAT, WIDE, None)
    assert not SHARE.fits(FLAT, TALL, None)


@pytest.mark.parametrize(
    ("call", "error", "named"),
    [
        (lambda: SHARE.count_image(None, WIDE, PROTOCOL), DataError, "share"),
        (lambda: SHARE.score([RECORDS[0], bb.ImageRecord("c", (3, 4))], PROTOCOL), DataError, "c "),
        (
            lambda: registry.get("boundary").count_image(None, WIDE, PROTOCOL),
            DataError,
            "^g: 1 annotator",
        ),
        (
            lambda: SHARE.options_of(bb.Protocol(options={"share": {"x": 1}})),
            ProtocolError,
            "share",
        ),
    ],
)
def test_refusals(call, error, named):
    with pytest.raises(error, match=named):
        call()


def test_a_score_is_of_sums_with_each_image_once():
    score = SHARE.score(RECORDS, PROTOCOL)
    assert isinstance(score, Score)
    assert (score.share, score.part.deep.share, score["n_images"]) == (3 / 6, 3 / 6, 2)
    assert "over" not in score
    assert [*counts_by_image(RECORDS, "share")] == ["a", "b"]


def test_a_mean_over_fewer_says_over_how_many():
    score = SHARE.score([*RECORDS, record("c", 0, 9, there=0)], PROTOCOL)
    assert score.over.share.images == (2, 3)


def test_images_own_values_of_many_images():
    """More than are computed at a time."""
    rows = [record(f"{k:03}", k, 150) for k in range(150)]
    stack = SHARE.stack([r.counts["share"] for r in rows])
    trees = list(SHARE.image_scores(stack, PROTOCOL))
    for key in ("share", "part.deep.share"):
        found = np.concatenate([value_at(tree, key) for tree in trees])
        np.testing.assert_array_equal(found, np.arange(150) / 150)
    assert value_at(trees[0], "none") is None


OFFERED = {
    HumanForm: {"boundary", "region"},
    OfficialTables: {"boundary", "region"},
    ResultFiles: {"boundary", "region", "semantic", "crispness", "occlusion"},
    DrawsPixels: {
        *("pixel", "aiu", "saliency", "topology"),
        *("contour", "segmentation", "instances"),
    },
    Diagnosed: {
        *("region", "wireframe", "contour", "segmentation", "instances", "depth"),
        *("topology", "ccq", "calibration", "semantic"),
    },
    ShowsLabels: {"semantic", "contour", "segmentation", "instances"},
    ChecksSet: {"superpixel", "contour"},
    CurveOfPixels: {"pixel"},
    LinksImages: {"contour"},
    CompletesScore: {"semantic"},
}


@pytest.mark.parametrize("kind", OFFERED, ids=lambda kind: kind.__name__)
def test_a_metric_offers_what_its_class_has(kind):
    assert not isinstance(SHARE, kind)
    assert {name for name in registry.BUILT_IN if isinstance(registry.get(name), kind)} == (
        OFFERED[kind]
    )


@pytest.mark.parametrize("name", registry.BUILT_IN)
def test_what_hangs_on_options_and_columns_is_declared(name):
    """An "ods" among the columns is that of one curve, and thresholds are those of soft maps."""
    metric = registry.get(name)
    columns = {column.key for column in (*metric.columns, *metric.image_columns)}
    assert metric.curved == ("ods" in columns)
    assert metric.cuts_at_thresholds == ("thresholds" in metric.uses)
    assert (metric.void_option == "ignore") == hasattr(metric.options, "ignore")
    assert {*metric.tolerance_scores} <= columns


HEADS = ("Definition", "Conventions", "Source")


@pytest.mark.parametrize("name", registry.BUILT_IN)
def test_the_module_of_a_metric_is_its_specification(name):
    """It opens with a question; definition, conventions and source are paragraphs."""
    lines = sys.modules[type(registry.get(name)).__module__].__doc__.splitlines()
    assert lines[0].endswith("?")
    heads = [line.partition(".")[0] for line in lines]
    assert [head for head in heads if head in HEADS] == [*HEADS]


class Plain(ValuesMetric):
    """One value that is averaged, one of sums, and one in a group."""

    name, title = "plain", "Plain"
    columns = (Column("mean", "mean"), Column("all.sum", "sum"))
    summed = ("part", "whole")

    def count(self, pred, gt, protocol, opt):
        return {"part": 0, "whole": 0}

    def values(self, counts, opt):
        return {"mean": defined_ratio(counts["part"], counts["whole"])}

    def pooled(self, sums, opt):
        return {"all.sum": defined_ratio(sums["part"], sums["whole"])}


def test_values_are_averaged_or_of_sums():
    stack = {"part": np.array([1, 1, 0]), "whole": np.array([2, 10, 0])}
    scores = Plain().scores(stack, np.ones((1, 3), int), PROTOCOL, None)
    assert scores["mean"].tolist() == [pytest.approx((1 / 2 + 1 / 10) / 2)]
    assert scores["all"]["sum"].tolist() == [2 / 12]
    assert scores["over"]["mean"]["images"].tolist() == [[2, 3]]
