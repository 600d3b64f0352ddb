"""Numbers of instances name them and mean nothing else: 255 is one, others give one score."""

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bsdsbench as bb
from bsdsbench.errors import DataError, ProtocolError
from bsdsbench.metrics import registry
from bsdsbench.metrics.instances_metric import instance_counts
from bsdsbench.metrics.label_maps import LabelOptions
from bsdsbench.metrics.segmentation import segmentation_counts
from tests.helpers.masks import blobs
from tests.helpers.runs import refused

OPTIONS = {"segmentation": {"unit": "instance"}, "contour": {"unit": "instance"}, "instances": {}}
DTYPES = ("u1", "u2", "i4", "i8")


def scores(metric, pred, gt, **options):
    given = {metric: {**OPTIONS[metric], **options}}
    protocol = bb.Protocol.preset("masks").replace(options=given)
    run = bb.evaluate_items([("a", pred, gt)], protocol, metrics=metric, workers=1)
    return run.score(metric).to_mapping()


def as_numbers(score, path=""):
    """Path -> number of everything in a score."""
    if isinstance(score, list | tuple):
        score = dict(enumerate(score))
    if not isinstance(score, Mapping):
        return {path: np.nan if score is None else score}
    return {
        k: v for key, part in score.items() for k, v in as_numbers(part, f"{path}.{key}").items()
    }


@pytest.mark.filterwarnings("ignore:each number of the prediction has several large pieces")
@pytest.mark.filterwarnings("ignore:each number of the ground truth has several large pieces")
@pytest.mark.filterwarnings("ignore:numbers of the prediction lie in many pieces")
@pytest.mark.filterwarnings("ignore:numbers of the ground truth lie in many pieces")
@pytest.mark.parametrize("metric", OPTIONS)
@given(seed=st.integers(0, 2**32), dtype=st.sampled_from(DTYPES), with_255=st.booleans())
@settings(max_examples=8, deadline=None)
def test_scores_do_not_change_when_instances_are_renumbered(metric, seed, dtype, with_255):
    rng = np.random.default_rng(seed)
    gt, pred = blobs(rng, (24, 31), 5, 0), blobs(rng, (24, 31), 5, 0)
    pred = np.where(rng.random(gt.shape) < 0.3, pred, gt)
    most = min(np.iinfo(dtype).max, 2**40)
    maps = []
    for labels in (pred, gt):
        numbers = rng.choice(most - 1, 5, replace=False) + 1
        numbers[0] = 255 if with_255 and 255 not in numbers else numbers[0]
        maps.append(np.append(0, numbers)[labels].astype(dtype))
    renumbered, plain = (as_numbers(scores(metric, *m)) for m in (maps, (pred, gt)))
    assert renumbered == pytest.approx(plain, rel=1e-12, nan_ok=True)


@pytest.mark.parametrize("dtype", DTYPES)
def test_number_255_is_an_instance_unless_it_was_said_to_be_void(dtype):
    """By hand: 255 found, 7 missed; and 7 missed where 255 of the truth is void."""
    gt = np.array([[255, 255, 0, 7, 7, 7]], dtype)
    pred = np.array([[9, 9, 0, 0, 0, 0]], dtype)
    for ignore, row in ((-1, [1, 0, 1]), (255, [0, 0, 1])):
        counts = segmentation_counts(pred, gt, LabelOptions(unit="instance", ignore=ignore))
        assert [int(counts[k][0]) for k in ("tp", "fp", "fn")] == row
    # predicted, it is an instance whatever the truth's void is
    counts = segmentation_counts(gt, pred, LabelOptions(unit="instance", ignore=255))
    assert [int(counts[k][0]) for k in ("tp", "fp", "fn")] == [1, 1, 0]


@pytest.mark.parametrize("metric", OPTIONS)
@pytest.mark.parametrize(
    ("numbers", "ignore", "is_said"),
    [
        ((1, 2, 255), -1, True),
        ((1, 2, 65535), -1, True),
        ((1, 2, 255), 255, False),
        ((7, 9, 255), -1, False),
        ((2, 4, 255), -1, True),  # with gaps, as in a crop
        ((1, 2, 200), -1, False),
        ((1, 2, 3), -1, False),
    ],
)
def test_a_lone_255_beside_objects_from_1_may_be_a_void(metric, numbers, ignore, is_said, recwarn):
    gt = np.repeat(np.uint16([0, *numbers]), 6).reshape(4, 6)
    pred = np.where(gt > 2, 0, gt)
    scores(metric, pred, gt, **({} if ignore < 0 else {"ignore": ignore}))
    words = f"numbered from 1, but one is {numbers[-1]}: is it void? in 1 of 1 "
    assert [words in str(w.message) for w in recwarn] == [True] * is_said


CITYSCAPES = "numbers below 1000 are classes without instances (Cityscapes), but count as objects"
KITTI = "multiples of 256 may be classes without instances (KITTI), but count as objects"


@pytest.mark.parametrize("metric", OPTIONS)
@pytest.mark.parametrize(
    ("words", "numbers", "is_said"),
    [(CITYSCAPES, (7, 23, 26001), True), (CITYSCAPES, (7, 26, 24000), True),
     (CITYSCAPES, (24000, 26001, 26002), False), (CITYSCAPES, (7, 500, 26001), False),
     (CITYSCAPES, (7, 8, 1001), False), (CITYSCAPES, (7, 8, 9), False),
     (KITTI, (1792, 2816, 6657), True), (KITTI, (1792, 6657, 6658), False),
     (KITTI, (1, 512, 6656), False), (KITTI, (256, 400, 512), False),
     (KITTI, (256, 512, 768), False)],
)  # fmt: skip
def test_classes_beside_instances_are_said(metric, words, numbers, is_said, recwarn):
    gt = np.repeat(np.int32([0, *numbers]), 6).reshape(4, 6)
    scores(metric, gt, gt)
    assert [words in str(w.message) for w in recwarn] == [True] * is_said


@pytest.mark.parametrize("metric", OPTIONS)
@pytest.mark.parametrize("side", ["prediction", "ground truth"])
def test_objects_from_0_on_a_ground_of_minus_1_are_said(metric, side, recwarn):
    numbers = np.repeat([0, 1, 0, 2, 0], 6).reshape(5, 6)
    scores(metric, numbers, numbers)
    assert not recwarn
    shifted = numbers - 1
    scores(metric, *((shifted, numbers) if side == "prediction" else (numbers, shifted)))
    (warning,) = recwarn
    assert f"in the {side}, more pixels are below 0 than 0" in str(warning.message)


@pytest.mark.parametrize("preset", ["davis", "boundary-iou-coco"])
@pytest.mark.parametrize("metric", ["contour", "segmentation"])
def test_presets_whose_truth_has_a_void_say_so(preset, metric):
    assert bb.Protocol.preset(preset).options[metric]["ignore"] == 255


def test_void_of_classes_is_255_unless_said_otherwise():
    assert LabelOptions().ignore == -1
    assert LabelOptions(classes=("a", "b")).ignore == 255
    preset = bb.Protocol.preset("boundary-iou-cityscapes")
    assert registry.get("contour").options_of(preset).ignore == 255


def test_16_bit_numbers_read_as_signed_are_refused():
    gt = np.array([[1, 40_000]], np.uint16)
    maps = gt.astype(np.int16), gt
    words = "value -25536, expected 0 or -1 for nothing"
    refused(words, segmentation_counts, *maps, LabelOptions(unit="instance"))
    refused(words, instance_counts, *maps)


def test_unit_id_pairs_by_number_whatever_the_overlap():
    """By hand: 1 overlaps in 1 of 4 pixels, 2 nowhere, 3 is missed, 4 is new."""
    gt = [[1, 1, 1, 2, 2, 0, 0, 3]]
    pred = [[1, 0, 0, 0, 0, 2, 4, 0]]
    counts = segmentation_counts(pred, gt, LabelOptions(unit="id"))
    assert [int(counts[k][0]) for k in ("tp", "fp", "fn")] == [2, 1, 1]
    assert counts.iou_sum[0] == pytest.approx(1 / 3)


@pytest.mark.parametrize("unit", ["instance", "id"])
@pytest.mark.parametrize("empty", ["perfect", "skip"])
def test_an_object_wholly_on_void_counts_nowhere(unit, empty):
    """J of the one other object is 2 / 3, whatever lies on void."""
    gt = np.zeros((20, 30), np.uint8)
    gt[2:8, 2:8], gt[12:18, 12:18] = 1, 255
    pred = np.where(gt == 255, 0, gt)
    pred[2:8, 2:4] = 0
    for number in (0, 7):
        pred[13:16, 13:16] = number
        options = {"unit": unit, "ignore": 255, "empty": empty, "groups": ["davis"]}
        protocol = bb.Protocol.preset("masks").replace(options={"contour": options})
        run = bb.evaluate_items([("a", pred, gt)], protocol, metrics="contour", workers=1)
        assert (run.score("contour").iou, run.score("contour").pairs.both) == (2 / 3, 1)


@pytest.mark.parametrize("unit", ["instance", "id"])
def test_classes_of_instances_need_a_divisor(unit):
    refused("divisor 0: expected that of the maps .class x divisor", LabelOptions, ("a", "b"),
            unit=unit, error=ProtocolError)  # fmt: skip


# ---- Cityscapes' instanceIds: a label alone is a class, or a crowd of a thing

CITY = {"classes": ("road", "car", "person"), "first": 1, "divisor": 1000, "unit": "instance"}


def counted(pred, gt, **options):
    counts = segmentation_counts(pred, gt, LabelOptions(**{**CITY, **options}))
    table = np.array([counts[k] for k in ("tp", "fp", "fn")]).T.tolist()
    return table, counts.iou_sum.tolist()


def test_a_label_alone_of_a_thing_is_a_crowd_as_panopticapi_has_it():
    """By hand. Truth: road, car 2000, a group of cars (2), void (255), a person 3001."""
    gt = np.array([[1] * 6, [2000] * 3 + [2] * 3, [255, 255, 2, 2, 3001, 3001]])
    perfect, sums = counted(gt, gt, things=("car", "person"))
    assert (perfect, sums) == ([[1, 0, 0], [1, 0, 0], [1, 0, 0]], [1, 1, 1])
    pred = gt.copy()
    pred[1, 3:] = 2007  # on the group, for 3 of 3 pixels: no error
    pred[2, :2] = 3005  # on void: no error
    pred[2, 2:4] = 3009  # on a crowd of another class: an error
    pred[2, 4:] = 0  # the person is missed
    table, sums = counted(pred, gt, things=("car", "person"))
    assert table == [[1, 0, 0], [1, 0, 0], [0, 1, 1]]
    assert sums == [1, 1, 0]


def test_pixels_on_a_crowd_stay_in_the_union():
    """Car 2000 of 4 pixels; predicted with 2 more, which lie on the group: 4 / 6."""
    gt, pred = [[2000] * 4 + [2] * 4], [[2005] * 6 + [0] * 2]
    assert counted(pred, gt, things=("car",)) == ([[0, 0, 0], [1, 0, 0], [0, 0, 0]], [0, 4 / 6, 0])


@pytest.mark.parametrize("first", [0, 1, 5])
@pytest.mark.parametrize("side", [0, 1])
def test_a_label_alone_is_refused_unless_things_are_named(first, side):
    label = first + 1
    maps = [np.array([[label * 1000 + 1, label * 1000 + 2]]) for _ in range(2)]
    maps[side][0, 0] = label
    refused(f"{('prediction', 'ground truth')[side]}: value {label}, expected class x 1000.*things",
            counted, *maps, first=first)  # fmt: skip
    counted(*maps, first=first, things=("car",))


def test_without_things_the_first_numbers_may_be_of_class_0():
    assert counted([[1, 2, 1001]], [[1, 2, 1001]], first=0, things=()) == (
        [[2, 0, 0], [1, 0, 0], [0, 0, 0]],
        [2, 1, 0],
    )


@pytest.mark.parametrize("options", [{"things": ("cat",)}, {"things": ("car",), "ignore": -1}])
def test_things_are_classes_beside_a_void(options):
    with pytest.raises(DataError, match=r"things 'c.*expected names of classes"):
        LabelOptions(**{**CITY, **options})
