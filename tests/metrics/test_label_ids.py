"""Ids of label maps: other numberings, numbers cut to 8 bits and stacks of channels are refused."""

import imageio.v3 as iio
import numpy as np
import pytest
from scipy.io import savemat

import bsdsbench as bb
from bsdsbench.errors import DataError, InputWarning
from bsdsbench.metrics import registry
from tests.helpers.runs import refused

CITY = bb.Protocol.preset("cityscapes")
IDS = registry.get("semantic").options_of(CITY).ids
NAMES = ("a", "b", "c", "d", "e")


def regions(count, seed=0, shape=(64, 96)):
    """A map of `count` stripes that are shifted by the seed, 0 .. count - 1."""
    wide = np.arange(shape[1]) * count // shape[1]
    labels = np.tile(wide, (shape[0], 1))
    labels[shape[0] // 2 :] = np.roll(wide, 5 + seed)
    return labels


def write(folder, name, array):
    folder.mkdir(exist_ok=True)
    if name.endswith(".npy"):
        np.save(folder / name, array)
    elif name.endswith(".mat"):
        savemat(folder / name, {"labels": array})
    else:
        iio.imwrite(folder / name, array)


def evaluate(metric, pred, gt, options, preset="masks"):
    protocol = bb.Protocol.preset(preset).replace(options={metric: options})
    return bb.evaluate_items([("x", pred, gt)], protocol, metrics=metric, workers=1)


@pytest.mark.parametrize("suffix", ["npy", "png", "tif", "mat"])
@pytest.mark.parametrize("train", ["p", "g"])
@pytest.mark.parametrize(("noise", "start"), [(0, 0), (0.3, 0), (0, 1)])
def test_train_ids_beside_label_ids_are_refused(tmp_path, suffix, train, noise, start):
    """Both ways round, in every container, also where a third of the pixels is wrong."""
    rng = np.random.default_rng(3)
    place = rng.permutation(len(IDS))[:6]
    for name in "ab":
        labels = place[regions(6, ord(name))]
        wrong = np.where(rng.random(labels.shape) < noise, place[rng.integers(0, 6)], labels)
        for side, array in (("g", labels), ("p", wrong)):
            ids = array + start if side == train else np.array(IDS)[array]
            write(tmp_path / side, f"{name}.{suffix}", ids.astype(np.uint8))
    words = "train ids" if train == "p" else "label ids beside train ids"
    words += r" .*semantic.ids=\[\] and semantic.ignore=255"
    protocol = CITY.replace(options={"semantic": {"instances": False}})
    folders = tmp_path / "p", tmp_path / "g"
    refused(rf"a.{suffix}: {words}", bb.evaluate, *folders, protocol, metrics="semantic", workers=1)


@pytest.mark.parametrize("metric", ["segmentation", "contour"])
@pytest.mark.parametrize(("step", "words"), [(1, "one above"), (-1, "one below")])
@pytest.mark.parametrize("dtype", ["u1", "u2", "i4"])
def test_labels_that_begin_elsewhere_are_refused(metric, step, words, dtype):
    labels = (regions(4) + (step < 0)).astype(dtype)
    pred = (labels.astype(int) + step).astype(dtype)
    refused(f"x: labels {words} those of the truth", evaluate, metric, pred, labels,
            {"classes": NAMES})  # fmt: skip
    evaluate(metric, labels, labels, {"classes": NAMES})


@pytest.mark.parametrize("metric", ["segmentation", "contour"])
def test_wrong_predictions_are_not_taken_for_another_numbering(metric):
    """All of one class, noise: counted, whatever the score; exchanged classes with a warning."""
    rng, labels = np.random.default_rng(0), regions(2)
    for pred in (labels * 0, labels * 0 + 1, rng.integers(0, 5, labels.shape)):
        evaluate(metric, pred, labels, {"classes": NAMES})
    shuffled = np.array([2, 3, 4, 0, 1])[regions(5)]
    for pred, truth in ((1 - labels, labels), (shuffled, regions(5))):
        with pytest.warns(InputWarning, match="classes are exchanged"):
            evaluate(metric, pred, truth, {"classes": NAMES})


def cells(count, columns=20):
    """Numbered squares of 3 x 3 pixels with a gap of one between."""
    rows = -(-count // columns)
    gt = np.zeros((rows * 4, columns * 4), np.uint16)
    for k in range(count):
        r, c = divmod(k, columns)
        gt[r * 4 : r * 4 + 3, c * 4 : c * 4 + 3] = k + 1
    return gt


@pytest.mark.parametrize(
    ("metric", "options"),
    [
        ("instances", {}),
        ("segmentation", {"unit": "instance"}),
        ("contour", {"unit": "instance"}),
        ("segmentation", {"unit": "id"}),
        ("segmentation", {"classes": [f"c{k}" for k in range(400)]}),
    ],
)
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("turned", [False, True])
def test_8_bit_copies_of_16_bit_numbers_are_refused(metric, options, dtype, turned):
    gt = cells(300)
    maps = (gt, gt.astype(dtype)) if turned else (gt.astype(dtype), gt)
    refused(r"x: u?int8 with the other side's numbers modulo 256 .*save 16 or 32 bits",
            evaluate, metric, *maps, options)  # fmt: skip


@pytest.mark.parametrize("metric", ["instances", "segmentation"])
def test_8_bit_numbers_that_ran_out_are_refused_whatever_the_other_side_has(metric):
    options = {"unit": "instance"} if metric == "segmentation" else {}
    full = cells(255)
    evaluate(metric, full.astype(np.uint8), full, options)  # 255 instances fit
    short = np.where(full > 3, 0, full)
    refused("x: all 255 numbers of uint8 are in use, some for several pieces", evaluate, metric,
            np.roll(cells(300), 1, 0).astype(np.uint8), np.pad(short, ((0, 8), (0, 0))),
            options)  # fmt: skip


def test_8_bit_numbers_that_kept_instances_apart_are_right():
    """Numbers 1055, 1056 .. modulo 256 are as good as any."""
    gt = np.where(cells(50) > 0, cells(50) + 1054, 0).astype(np.uint16)
    run = evaluate("segmentation", gt.astype(np.uint8), gt, {"unit": "instance"})
    assert run.score("segmentation").pq == 1


@pytest.mark.parametrize("metric", ["segmentation", "contour", "instances"])
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("kind", [bool, np.uint8, np.float32])
@pytest.mark.parametrize("turned", [False, True])
def test_stacks_are_refused_with_their_axis(metric, axis, kind, turned):
    labels = regions(5)
    stack = np.stack([labels == k for k in range(5)], axis).astype(kind)
    options = {} if metric == "instances" else {"classes": NAMES}
    for maps in ((labels, stack) if turned else (stack, labels), (stack, stack)):
        refused(rf"x: .* maps of shape .*argmax\(maps, axis={axis}\); of instances: one map",
                evaluate, metric, *maps, options)  # fmt: skip


@pytest.mark.parametrize("metric", ["segmentation", "contour"])
def test_a_0_that_is_nowhere_predicted_may_be_void(metric, recwarn):
    words = "pixels of the truth are 0, which is nowhere predicted: void?"
    gt = regions(5) + 1
    gt[:9, :9] = 0  # as in ADE20K, whose classes begin at 1
    pred = np.maximum(gt, 1)
    for options, is_said in (({}, True), ({"ignore": 0}, False)):
        evaluate(metric, pred, gt, {"classes": NAMES, "first": 1, **options})
        assert any(words in str(w.message) for w in recwarn.list) == is_said
        recwarn.clear()
    evaluate(metric, np.roll(gt, 1, 0), gt, {"classes": NAMES, "first": 1})  # a background
    assert not any(words in str(w.message) for w in recwarn.list)


@pytest.mark.parametrize("kind", ["one-hot", "softmax", "softmax8"])
@pytest.mark.parametrize("side", ["pred", "gt"])
def test_probabilities_of_classes_are_no_boundaries_of_them(kind, side):
    rng, labels = np.random.default_rng(0), regions(5)
    stack = np.stack([labels == k for k in range(5)]).astype(np.float32)
    if kind != "one-hot" and side == "pred":
        stack = rng.dirichlet(np.ones(5), labels.shape).transpose(2, 0, 1).astype(np.float32)
    if kind == "softmax8":
        stack = np.rint(stack * 255).astype(np.uint8)
    other = stack * 0
    other[:, 10] = 255 if kind == "softmax8" else 1
    maps = (stack, other) if side == "pred" else (other, stack)
    options = {"classes": NAMES}
    refused("x: 5 maps that add up to one in every pixel", evaluate, "semantic", *maps, options)
    evaluate("semantic", other, other, options)


def test_class_maps_with_their_channels_last_are_named():
    stack = np.zeros((64, 96, 5), np.float32)
    with pytest.raises(DataError, match=r"expected \(5, rows, columns\) \(numpy.moveaxis"):
        evaluate("semantic", stack, regions(5), {"classes": NAMES})
