"""Means over sequences, as davis2017-evaluation defines them, against plain loops and by hand."""

import json

import numpy as np
import pytest
from PIL import Image

import bsdsbench as bb
from bsdsbench.errors import DataError
from bsdsbench.metrics import contour, registry
from bsdsbench.protocol.protocol import Protocol

DAVIS = Protocol.preset("davis")


def changed(**options):
    return DAVIS.replace(
        options={**DAVIS.options, "contour": {**DAVIS.options["contour"], **options}}
    )


ALL = changed(skip_ends=False)
OPTIONS = registry.get("contour").options_of(ALL)


def boxed(*places, shape=(40, 60)):
    """A map of objects 1, 2 ..: boxes of 8 x 10 at a place each, none at None."""
    objects = np.zeros(shape, np.uint8)
    for number, place in enumerate(places, 1):
        if place is not None:
            objects[place[0] : place[0] + 8, place[1] : place[1] + 10] = number
    return objects


def drawn_sequences(seed=0):
    """Sequences of unequal length and number of objects, with objects that leave and are missed."""
    rng = np.random.default_rng(seed)
    items = []
    for name, frames, objects in (("bear", 9, 1), ("camel", 4, 3), ("dog", 13, 2)):
        for k in range(frames):
            at = [(int(2 + 12 * n), int(3 + 2 * (k % 9))) for n in range(objects)]
            true = [None if k and rng.random() < 0.2 else p for p in at]
            found = [
                None if rng.random() < 0.3 else (p[0] + int(rng.integers(3)), p[1] + 1) for p in at
            ]
            items.append((f"{name}/{k:05}", boxed(*found), boxed(*true)))
    return items


def davis_by_definition(items, skip_ends):
    """Mean, recall and decay of J and F, object by object and frame by frame."""
    names = sorted({image_id.split("/")[0] for image_id, *_ in items})
    rows = []
    for name in names:
        frames = [(p, g) for image_id, p, g in sorted(items) if image_id.split("/")[0] == name]
        for number in range(1, frames[0][1].max() + 1):
            kept = frames[1:-1] if skip_ends else frames
            masks = [(p == number, g == number) for p, g in kept]
            pair = []
            for measure in (contour.mask_iou, lambda p, g: contour.davis_f(p, g, 0.008)):
                values = np.array([measure(p, g) for p, g in masks])
                edges = np.round(np.linspace(1, len(values), 5) + 1e-10).astype(int) - 1
                bins = [values[edges[i] : edges[i + 1] + 1] for i in range(4)]
                pair += [values.mean(), (values > 0.5).mean(), bins[0].mean() - bins[3].mean()]
            rows.append(pair)
    return np.mean(rows, axis=0), len(rows)


KEYS = ("iou", "iou_recall", "iou_decay", "f@0_008", "f_recall", "f_decay")


@pytest.mark.parametrize("skip_ends", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_as_davis2017_evaluation_defines_it(seed, skip_ends):
    items = drawn_sequences(seed)
    run = bb.evaluate_items(items, changed(skip_ends=skip_ends), metrics="contour", workers=1)
    score = run.score("contour")
    means, n_objects = davis_by_definition(items, skip_ends)
    np.testing.assert_allclose([score[key] for key in KEYS], means, rtol=1e-12)
    assert score.jf == pytest.approx((means[0] + means[3]) / 2)
    assert score.objects == n_objects == 6


def test_by_hand():
    """Object 1 of A is right in 3 frames, missed in 1; B is missed in all its 6 frames."""
    true, none = boxed((3, 3)), boxed(None)
    items = [(f"A/{k}", true if k else none, true) for k in range(4)]
    items += [(f"B/{k}", none, true) for k in range(6)]
    score = bb.evaluate_items(items, ALL, metrics="contour", workers=1).score("contour")
    assert (score.iou, score.iou_recall, score["f@0_008"]) == (0.375, 0.375, 0.375)
    # A's bins are frames 1 2, 2 3, 3 4 (of 1 .. 4: edges 1, 2, 3, 3, 4), so -1/2; B's are 0
    assert score.iou_decay == -0.25
    ends = bb.evaluate_items(items, DAVIS, metrics="contour", workers=1).score("contour")
    assert (ends.iou, ends.iou_recall, ends.iou_decay) == (0.5, 0.5, 0)
    old = bb.evaluate_items(items, changed(mean="images"), metrics="contour", workers=1)
    assert old.score("contour").iou == 0.3


def test_an_object_absent_from_both_maps_is_right_and_one_of_a_later_frame_is_none():
    both, first = boxed((3, 3), (20, 30)), boxed((3, 3))
    leaves = [("A/0", both, both), ("A/1", first, first), ("A/2", first, first)]
    run = bb.evaluate_items(leaves, ALL, metrics="contour", workers=1)
    assert (run.score("contour").iou, run.score("contour").objects) == (1, 2)
    comes = [("A/0", first, first), ("A/1", boxed(None), both), ("A/2", both, both)]
    run = bb.evaluate_items(comes, ALL, metrics="contour", workers=1)
    assert run.score("contour").objects == 1
    assert run.score("contour").iou == pytest.approx(2 / 3)


def test_an_object_of_the_prediction_alone_is_refused_but_on_void():
    true, more = boxed((3, 3)), boxed((3, 3), (20, 30))
    items = [(f"A/{k}", more if k == 1 else true, true) for k in range(4)]
    with pytest.raises(DataError, match=r"A/1: object 2 is predicted, expected .*images"):
        bb.evaluate_items(items, DAVIS, metrics="contour", workers=1).score("contour")
    void = np.where(more == 2, 255, true).astype(np.uint8)
    items = [(f"A/{k}", more, void) for k in range(4)]
    assert bb.evaluate_items(items, DAVIS, metrics="contour", workers=1).score("contour").iou == 1


def test_numbers_of_objects_mean_nothing():
    items = drawn_sequences()
    to = np.array([0, 7, 200, 3], np.uint8)
    other = [(image_id, to[p], to[g]) for image_id, p, g in items]
    runs = [bb.evaluate_items(i, DAVIS, metrics="contour", workers=1) for i in (items, other)]
    assert runs[0].score("contour").numbers() == runs[1].score("contour").numbers()


def test_weights_are_whole_numbers_of_frames():
    """A frame drawn twice counts twice in its sequence; without any its objects count nowhere."""
    items = drawn_sequences()
    run = bb.evaluate_items(items, ALL, metrics="contour", workers=1)
    weights = np.zeros((2, len(items)), np.int64)
    weights[0, :9] = 1  # bear alone
    weights[1, 9] = 3  # the first frame of camel
    scores = registry.get("contour").scores(run.stack("contour"), weights, ALL, OPTIONS)
    bear = bb.evaluate_items(items[:9], ALL, metrics="contour", workers=1).score("contour")
    own = run.image_scores("contour")["camel/00000"]["iou"]
    np.testing.assert_allclose(scores["iou"], [bear.iou, own])
    np.testing.assert_array_equal(scores["objects"], [1, 3])


@pytest.mark.parametrize("count", [1, 2])
def test_a_sequence_without_frames_between_its_ends_is_refused(count):
    items = [(f"A/{k}", boxed((3, 3)), boxed((3, 3))) for k in range(count)]
    with pytest.raises(DataError, match=r"fewer than 3 frames, .*skip_ends"):
        bb.evaluate_items(items, DAVIS, metrics="contour", workers=1).score("contour")
    assert bb.evaluate_items(items, ALL, metrics="contour", workers=1).score("contour").iou == 1


def test_names_of_several_sequences_in_one_folder_are_refused():
    items = [(f"{s}_{k}", boxed((3, 3)), boxed((3, 3))) for s in "ab" for k in range(4)]
    with pytest.raises(DataError, match=r"begin with a and b, expected .* SEQUENCE/FRAME"):
        bb.evaluate_items(items, DAVIS, metrics="contour", workers=1).score("contour")
    one = [(image_id[2:], p, g) for image_id, p, g in items[:4]]
    assert bb.evaluate_items(one, DAVIS, metrics="contour", workers=1).score("contour").iou == 1


def test_a_truth_of_another_id_is_refused():
    true = boxed((3, 3))
    items = [(f"{s}/{k}", true, bb.GroundTruth("x", labels=true)) for s in "ab" for k in range(4)]
    with pytest.raises(DataError, match=r"a/0: the ground truth has another image_id"):
        bb.evaluate_items(items, DAVIS, metrics="contour", workers=1)


@pytest.mark.slow
def test_files_shards_and_what_is_written(tmp_path):
    items = drawn_sequences()
    for image_id, pred, gt in items:
        for side, values in (("p", pred), ("g", gt)):
            path = tmp_path / side / f"{image_id}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(values).save(path)
    places = tmp_path / "p", tmp_path / "g", DAVIS, "contour"
    whole = bb.evaluate(*places, workers=1, out=tmp_path / "o")
    arrays = bb.evaluate_items(items, DAVIS, metrics="contour", workers=1)
    assert whole.score("contour").numbers() == arrays.score("contour").numbers()
    assert (
        json.loads((tmp_path / "o" / "result.json").read_text())["images"][0]["id"] == "bear/00000"
    )
    assert bb.Evaluation.load(tmp_path / "o").scores() == whole.scores()
    parts = []
    for k in (1, 2, 3):
        parts.append(tmp_path / "o" / f"shard{k}")
        bb.evaluate(*places, workers=1, out=parts[-1], shard=(k, 3))
    merged = bb.merge([bb.Evaluation.load(part) for part in parts])
    assert merged.scores() == whole.scores()
    table = whole.per_image("contour")
    assert table.rows[0][0] == "bear/00000"
    outside = {path.name for path in tmp_path.iterdir()}
    assert outside == {"p", "g", "o"}
