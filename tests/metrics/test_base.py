"""What a metric is that says no more than it must, and its counts in order."""

from dataclasses import dataclass

import numpy as np
import pytest
from bsdsbench.metrics.columns import Column, Score

import bsdsbench as bb
from bsdsbench.files.errors import DataError, ProtocolError
from bsdsbench.metrics.base import Metric, at_least_two, column_values, counts_in_order
from bsdsbench.scores.counts import Counts, count_field
from bsdsbench.scores.ratios import ratio, weighted_sum


@dataclass(frozen=True, slots=True, eq=False)
class Hits(Counts):
    """Hits of so many."""

    hit: object = count_field("")
    of: object = count_field("")


class Share(Metric):
    """What must be said, and no more."""

    name, title, counts_type = "share", "Shares", Hits
    columns = (Column("share", "share"), Column("n_images", "images"))
    image_columns = columns[:1]

    def count(self, pred, gt, protocol):
        return Hits(np.array(0), np.array(0))

    def scores(self, stack, weights, protocol):
        hit, of = (weighted_sum(weights, stack[name]) for name in ("hit", "of"))
        return {"share": ratio(hit, of)}

    def image_values(self, counts, protocol):
        return {"share": float(ratio(counts.hit, counts.of))}

    def example(self):
        raise NotImplementedError


SHARE, PROTOCOL = Share(), bb.Protocol()
FLAT = bb.Prediction("p", soft=np.zeros((3, 4)))
WIDE, TALL = (bb.GroundTruth("g", (np.zeros(s, bool),)) for s in ((3, 4), (4, 3)))


def record(image_id, hit, of):
    return bb.ImageRecord(image_id, (3, 4), {"share": Hits(np.array(hit), np.array(of))})


def test_what_stands_where_nothing_is_said():
    """As the docstrings of `Metric` tell."""
    says = {name: getattr(Share, name) for name in ("version", "pred_kinds", "gt_kind", "photo")}
    expected = {"pred_kinds": ("soft", "labels"), "gt_kind": "annotators", "photo": False}
    assert says == {"version": 1, **expected}
    assert (Share.default_protocol, Share.options) == ("bsds500", None)
    assert (Share.part_columns, Share.uses) == ((), bb.Protocol.names())
    assert SHARE.used(PROTOCOL) == bb.Protocol.names()
    assert (SHARE.describe(PROTOCOL), SHARE.class_names(PROTOCOL)) == ("", ())
    assert SHARE.reads_instances(PROTOCOL) is False
    assert SHARE.has_tables({"eval_bdry.txt": []}) is False
    assert SHARE.parts(None) == {}
    assert [*SHARE.files(None, (), PROTOCOL), *SHARE.symptoms(FLAT, WIDE, PROTOCOL)] == []
    assert SHARE.check(PROTOCOL) is None


def test_a_prediction_fits_a_truth_of_its_size_alone():
    assert SHARE.fits(FLAT, WIDE, PROTOCOL) is True
    assert SHARE.fits(FLAT, TALL, PROTOCOL) is False


@pytest.mark.parametrize(
    ("call", "error", "line"),
    [
        (lambda: SHARE.count_humans(WIDE, PROTOCOL), DataError, "metric 'share': has no human for"),
        (lambda: SHARE.reported({}, "x"), DataError, "x: metric share has no official tables"),
        (
            lambda: SHARE.options_of(PROTOCOL),
            ProtocolError,
            "options 'share': this metric has none, expected none",
        ),
        (lambda: SHARE.score([], PROTOCOL), DataError, "share scores: no records, expected at lea"),
        (lambda: SHARE.score([3], PROTOCOL), DataError, "records: 3, expected ImageRecords"),
        (lambda: SHARE.score(3, PROTOCOL), DataError, "records: 3, expected ImageRecords"),
        (
            lambda: SHARE.score([record("a", 1, 2), bb.ImageRecord("b", (3, 4), {})], PROTOCOL),
            DataError,
            "share scores: expected every record to have share counts",
        ),
        (lambda: at_least_two(WIDE, 1), DataError, r"g: 1 annotator\(s\), expected two or more"),
    ],
)
def test_refusals(call, error, line):
    with pytest.raises(error, match=f"^{line}"):
        call()


def test_two_annotators_are_enough():
    at_least_two(WIDE, 2)


def test_a_score_is_of_sums_with_each_image_once():
    records = [record("b", 1, 4), record("a", 2, 2)]
    score = SHARE.score(iter(records), PROTOCOL)
    assert isinstance(score, Score)
    assert (score.share, score.n_images) == (3 / 6, 2)
    assert score.to_mapping() == {"share": 0.5, "n_images": 2}
    assert [i for i, _ in counts_in_order(records, "share")] == ["a", "b"]
    assert SHARE.values_of_images([r.counts["share"] for r in records], PROTOCOL) == [
        {"share": 0.25},
        {"share": 1.0},
    ]


def test_columns_find_their_numbers():
    columns = [Column(key, key) for key in ("ods", "ods.recall", "ap", "deep.er.f", "none", "ap.f")]
    nan = float("nan")
    mapping = {"ods": {"f": 0.5, "recall": 0.25}, "ap": nan, "deep": {"er": {"f": 0.0}}}
    expected = [0.5, 0.25, None, 0.0, None, None]
    assert list(column_values(columns, mapping).values()) == expected
    assert column_values(columns[:1], {"ods": {"precision": 1.0}}) == {"ods": None}
