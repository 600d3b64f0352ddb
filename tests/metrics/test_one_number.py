"""Sets whose instances are not numbered: one number for several pieces in all files is refused."""

import warnings

import imageio.v3 as iio
import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

import bsdsbench as bb
from bsdsbench.protocol.protocol import Protocol
from tests.helpers.runs import call, command, refused

METRICS = {
    "instances": {},
    "segmentation": {"unit": "instance"},
    "contour": {"unit": "instance", "groups": ("boundary-iou",)},
}


def nuclei(found, numbered, white=255, shape=(40, 52), dtype=np.uint8):
    """Four squares, of which the first `found` are there, of one value or numbered."""
    drawn = np.zeros(shape, dtype)
    for k, (row, col) in enumerate([(4, 4), (4, 30), (24, 4), (24, 30)][:found]):
        drawn[row : row + 9, col : col + 9] = k + 1 if numbered else white
    return drawn


def write(folder, **maps):
    folder.mkdir(exist_ok=True)
    for name, array in maps.items():
        stem, _, suffix = name.partition("__")
        path = folder / f"{stem}.{suffix or 'png'}"
        if suffix == "npy":
            np.save(path, array)
        elif suffix == "mat":
            savemat(path, {"labels": array})
        else:
            iio.imwrite(path, array)


def scored(tmp_path, metric, **options):
    protocol = Protocol.preset("masks").replace(options={metric: {**METRICS[metric], **options}})
    run = bb.evaluate(tmp_path / "p", tmp_path / "g", protocol, metrics=metric, workers=1)
    return run.score(metric)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("suffix", ["png", "npy", "tif", "mat"])
@pytest.mark.parametrize("white", [1, 255, 65535])
def test_masks_of_several_objects_are_refused_with_the_options_that_read_them(
    tmp_path, metric, suffix, white
):
    dtype = np.uint16 if white > 255 else np.uint8
    for side, found in (("g", 4), ("p", 3)):
        maps = {f"{k}__{suffix}": nuclei(found, False, white, dtype=dtype) for k in "ab"}
        write(tmp_path / side, **maps)
    words = (
        rf"a.{suffix}: its ground truth, like all others, has one number, {white}, .*several pieces"
    )
    refused(f"{words}.*{metric}.components=8 .*{metric}.components=0", scored, tmp_path, metric)
    score = scored(tmp_path, metric, components=8)
    if metric == "segmentation":  # four objects, three found
        assert (score.rq, score.sq) == (pytest.approx(3 / 3.5), 1)
    elif metric == "instances":
        assert (score.recall, score.precision) == (0.75, 1)
    one = scored(tmp_path, metric, components=0)
    assert one.get("rq", 1) == 1


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("side", ["p", "g"])
def test_either_side_is_refused(tmp_path, metric, side):
    for folder in "pg":
        maps = {k: nuclei(4, folder != side, 255) for k in "ab"}
        write(tmp_path / folder, **maps)
    words = {"p": "its prediction", "g": "its ground truth"}[side]
    refused(f"a.png: {words}, like all others, has one number, 255", scored, tmp_path, metric)


@pytest.mark.parametrize("metric", METRICS)
def test_sound_sets_are_counted(tmp_path, metric):
    """One object in one piece; an image whose one object is in pieces where others have several."""
    write(tmp_path / "g", a=nuclei(1, False), b=nuclei(1, False, 255, (60, 70)), c=nuclei(0, False))
    write(tmp_path / "p", a=nuclei(1, False), b=nuclei(1, False, 255, (60, 70)), c=nuclei(0, False))
    scored(tmp_path, metric)
    for folder in "pg":
        write(tmp_path / folder, c=nuclei(4, False, 1), d=nuclei(3, True))
    scored(tmp_path, metric)
    for folder in "pg":  # one number in each, but not the same
        write(tmp_path / folder, a=nuclei(1, False, 1), b=nuclei(2, False, 2, (60, 70)),
              c=nuclei(4, False, 3), d=nuclei(0, False))  # fmt: skip
    scored(tmp_path, metric)


def test_the_verdict_is_on_the_set_also_in_shards(tmp_path):
    """The shard that holds the masks alone is no set; merged it is refused, or not."""
    for folder in "pg":
        write(tmp_path / folder, a=nuclei(4, False), b=nuclei(4, True))
    words = ("evaluate", tmp_path / "p", "--gt", tmp_path / "g", "--metrics", "instances")
    for k in (1, 2):
        call(*words, "--shard", f"{k}/2", "-o", tmp_path / f"o{k}", "--quiet")
    call("merge", tmp_path / "o1", tmp_path / "o2", "-o", tmp_path / "o", "--quiet")
    assert bb.Evaluation.load(tmp_path / "o").score("instances").f1 == 1


BY_NUMBER = {
    "contour": {"unit": "id", "groups": ("boundary-iou",)},
    "segmentation": {"unit": "id"},
    "davis": {},
}


def by_number(tmp_path, name, frames=False, **options):
    metric = "contour" if name == "davis" else name
    base = Protocol.preset("davis" if name == "davis" else "masks")
    protocol = base.replace(options={metric: {**BY_NUMBER[name], **options}})
    run = bb.evaluate(tmp_path / "p", tmp_path / "g", protocol, metrics=metric, workers=1)
    return run.score(metric)


@pytest.mark.parametrize("name", BY_NUMBER)
@pytest.mark.parametrize("suffix", ["png", "npy", "tif"])
@pytest.mark.parametrize(("true", "predicted"), [(1, 255), (255, 1), (65535, 1), (1, 65535)])
def test_white_beside_one_is_no_other_object(tmp_path, name, suffix, true, predicted):
    """One object on both sides, in one piece or in several, and frames without it."""
    dtype = np.uint16 if max(true, predicted) > 255 else np.uint8
    for side, value in (("g", true), ("p", predicted)):
        (tmp_path / side).mkdir()
        for k, n in (("00000", 3), ("00001", 1), ("00002", 0)):
            write(
                tmp_path / side / "dog", **{f"{k}__{suffix}": nuclei(n, False, value, dtype=dtype)}
            )
    ignore = {"ignore": -1} if name == "davis" else {}
    words = f"00000.{suffix}: .* one number, {predicted}, expected {true} as in the truth"
    if name != "davis":  # folders of sequences are its own
        for side in "pg":
            (tmp_path / side / "dog").rename(tmp_path / f"{side}2")
            (tmp_path / side).rmdir()
            (tmp_path / f"{side}2").rename(tmp_path / side)
    refused(words, by_number, tmp_path, name, **ignore)


@pytest.mark.parametrize("name", ["contour", "segmentation"])
def test_numbers_that_are_no_white_or_several_are_counted(tmp_path, name):
    """A tracker that has lost its object scores 0; 255 is a number beside others."""
    key = {"contour": "iou", "segmentation": "pq"}[name]
    write(tmp_path / "g", a=nuclei(1, False, 1), b=nuclei(1, False, 1))
    write(tmp_path / "p", a=nuclei(1, False, 2), b=nuclei(1, False, 2))
    assert by_number(tmp_path, name)[key] == 0
    write(tmp_path / "p", a=nuclei(1, False, 255), b=nuclei(2, True))
    by_number(tmp_path, name)
    write(tmp_path / "g", a=nuclei(1, False, 255), b=nuclei(2, True))
    assert by_number(tmp_path, name)[key] == 1


@pytest.mark.parametrize(
    ("metric", "options"),
    [("contour", {}), ("contour", {"unit": "id"}), ("segmentation", {"unit": "instance"}),
     ("segmentation", {}), ("instances", {"components": 8}), ("saliency", {})],
)  # fmt: skip
def test_a_truth_of_void_alone_is_refused_where_nothing_else_is(tmp_path, metric, options):
    for side in "pg":
        write(tmp_path / side, a=nuclei(1, False), b=nuclei(1, False), c=nuclei(0, False))
    folders, chosen = (tmp_path / "p", tmp_path / "g"), {"ignore": 255, **options}
    how = {"metrics": metric, "workers": 1}
    protocol = Protocol.preset("masks").replace(options={metric: chosen})
    words = rf"a.png: its ground truth, .* only void, .*{metric}.ignore=-1"
    refused(words, bb.evaluate, *folders, protocol, **how)
    bb.evaluate(*folders, protocol.replace(options={metric: {**chosen, "ignore": -1}}), **how)
    write(tmp_path / "g", c=nuclei(1, False, 1))  # others are frames without their object
    white = 255 if metric == "saliency" else 1
    write(tmp_path / "p", **{name: nuclei(1, False, white) for name in "abc"})
    bb.evaluate(*folders, protocol, **how)


def test_an_image_of_void_alone_is_no_set():
    gt, protocol = nuclei(1, False), Protocol.preset("davis")
    bb.evaluate_items([("S/0", gt * 0, gt)], protocol, metrics="segmentation", workers=1)


def test_arrays_have_the_same_verdict():
    gt = nuclei(4, False, 1)
    items = [("a", gt, gt)]
    words = "a: its prediction, like all others, has one number, 1"
    refused(words, bb.evaluate_items, items, metrics="instances", workers=1)


def test_truth_in_train_ids_is_refused_by_a_protocol_of_label_ids(tmp_path):
    """With soft predictions, which say nothing of ids: sky, person and road in train ids."""
    rng = np.random.default_rng(0)
    labels = rng.choice([0, 1, 2, 10, 11], (3, 5)).repeat(20, 0).repeat(20, 1).astype(np.uint8)
    ids = np.array(Protocol.preset("cityscapes").options["semantic"]["ids"])
    soft = rng.random((19, *labels.shape)).astype(np.float32)
    protocol = Protocol.preset("cityscapes").replace(options={"semantic": {"instances": False}})
    write(tmp_path / "p", a__npy=soft)
    write(tmp_path / "g", a=labels)
    run = tmp_path / "p", tmp_path / "g", protocol
    refused(r"ground truth, like all others, has train ids .*semantic.ids=\[\]", bb.evaluate,
            *run, metrics="semantic", workers=1)  # fmt: skip
    write(tmp_path / "g", a=ids[labels].astype(np.uint8))
    bb.evaluate(*run, metrics="semantic", workers=1)


def test_the_refusal_of_train_ids_is_one_line_on_the_command_line(tmp_path):
    """With both options as they are written there."""
    write(tmp_path / "g", a=np.kron([[0, 1], [2, 11]], np.ones((9, 9), int)).astype(np.uint8))
    write(tmp_path / "p", a__npy=np.zeros((19, 18, 18), np.float32))
    words = "--protocol", "cityscapes", "--set", "semantic.instances=false"
    folders = tmp_path / "p", "--gt", tmp_path / "g"
    done = command("evaluate", *folders, "--metrics", "semantic", *words)
    assert done.returncode == 2
    ways = "--set 'semantic.ids=[]' and --set semantic.ignore=255 if both sides hold train ids"
    assert ways in done.stderr


def tiled(numbers):
    """Number the background 1 and the objects from 2, with lines of 0 as a watershed draws them."""
    lines = np.zeros(numbers.shape, bool)
    lines[:, 20] = True
    return np.where(lines, 0, numbers + 1).astype(numbers.dtype)


@pytest.mark.parametrize("metric", METRICS)
def test_a_background_that_has_a_number_is_warned_of(tmp_path, recwarn, metric):
    sound, ground = nuclei(4, True), tiled(nuclei(4, True))
    words = "save background as 0"
    for pred, truth, which in (
        (ground, sound, "predicted object is the truth's"),
        (sound, ground, "object is the prediction's"),
    ):
        write(tmp_path / "p", a=pred, b=pred)
        write(tmp_path / "g", a=truth, b=truth)
        scored(tmp_path, metric)
        (warning,) = [str(recwarn.pop().message) for _ in range(len(recwarn))]
        looked = "background in 2 of 2 checked images [a, b]"
        assert warning == f"the largest {which} {looked} ({words})"
        options = {metric: METRICS[metric]}
        protocol = Protocol.preset("masks").replace(options=options)
        findings = bb.doctor(tmp_path / "p", tmp_path / "g", protocol, metrics=metric)
        assert [finding.code for finding in findings] == ["background"]


def test_an_inverted_mask_of_one_object_is_warned_of(tmp_path, recwarn):
    """As a mask that was quantised to a palette with white at index 0."""
    mask = (nuclei(1, True) > 0).astype(np.uint8)
    write(tmp_path / "p", a=1 - mask, b=1 - mask)
    write(tmp_path / "g", a=mask, b=mask)
    scored(tmp_path, "instances")
    (warning,) = recwarn
    assert "the largest predicted object is the truth's background" in str(warning.message)


def test_a_background_that_both_sides_number_is_warned_of(tmp_path, recwarn):
    """As where 1 was added to both; cells that fill the image have no background."""
    cells, tiles = nuclei(4, True), np.kron(np.uint8([[1, 2], [3, 4]]), np.ones((32, 32), np.uint8))
    uneven = np.where(np.arange(64) < 24, tiles, 4)  # number 4 fills most, but not to the left
    for labels, is_said in ((cells + 1, True), (cells, False), (tiles, False), (uneven, False)):
        write(tmp_path / "p", a=labels.astype(np.uint8))
        write(tmp_path / "g", a=labels.astype(np.uint8))
        scored(tmp_path, "instances")
        texts = [str(recwarn.pop().message) for _ in range(len(recwarn))]
        assert ["one object fills most of both maps" in text for text in texts] == [True] * is_said


@pytest.mark.parametrize("metric", METRICS)
def test_classes_in_place_of_objects_are_warned_of(tmp_path, recwarn, metric):
    objects = nuclei(4, True)
    objects[20, 20:22] = 1  # a stray piece
    classes = (objects > 0) + (objects > 2).astype(np.uint8)  # two of each
    write(tmp_path / "g", a=objects, b=objects)
    for maps, n_warnings in ((objects, 0), (classes, 1)):
        recwarn.clear()
        write(tmp_path / "p", a=maps, b=np.roll(maps, 1, 0))
        scored(tmp_path, metric)
        words = "each number of the prediction has several large pieces: classes?"
        assert [words in str(w.message) for w in recwarn] == [True] * n_warnings


@pytest.mark.parametrize("metric", METRICS)
def test_numbers_that_were_interpolated_or_saved_as_jpeg_are_warned_of(tmp_path, recwarn, metric):
    disc = np.hypot(*np.mgrid[-8:8, -8:8]) < 6
    objects = np.kron(np.arange(1, 31).reshape(5, 6), disc).astype(np.uint8)
    small = Image.fromarray(objects).resize((60, 50), Image.Resampling.BILINEAR)
    bilinear = small.resize(objects.shape[::-1], Image.Resampling.BILINEAR)
    Image.fromarray(objects).save(tmp_path / "a.jpg", quality=90)
    # Specks of a prediction, each with the number of the object beside it
    is_speck = np.random.default_rng(0).random(objects.shape) < 0.1
    noisy = np.where(is_speck, np.kron(np.arange(1, 31).reshape(5, 6), np.ones((16, 16))), objects)
    words = "numbers of the prediction lie in many pieces each: interpolated, or JPEG?"
    for maps, is_said in (
        (objects, False),
        (noisy.astype(np.uint8), False),
        (bilinear, True),
        (Image.open(tmp_path / "a.jpg"), True),
    ):
        write(tmp_path / "g", a=objects, b=objects)
        write(tmp_path / "p", a=np.asarray(maps), b=np.roll(maps, 1, 0))
        warnings.simplefilter("always")  # the same line again
        recwarn.clear()
        scored(tmp_path, metric)
        assert any(words in str(w.message) for w in recwarn) == is_said


def stripes(n, shift=0):
    """A tiling of n columns of objects, without background."""
    cols = (np.arange(52) + shift) % 52
    return np.repeat(1 + (cols * n // 52)[None], 40, axis=0).astype(np.uint8)


@pytest.mark.parametrize(
    ("pred", "truth"),
    [
        (stripes(3), stripes(3, 5)),  # both cover the image
        (stripes(3), np.where(stripes(3) == 2, 0, stripes(3))),  # an object is false
        (np.where(stripes(2) == 2, 0, stripes(2)), stripes(2)),  # half of the image is missed
        (np.ones((40, 52), np.uint8), nuclei(4, True)),  # one object is all that is predicted
        (nuclei(4, True), nuclei(4, True)),
        (np.zeros((40, 52), np.uint8), nuclei(4, True)),
    ],
)
def test_sound_objects_are_not_taken_for_background(tmp_path, recwarn, pred, truth):
    write(tmp_path / "p", a=pred, b=pred)
    write(tmp_path / "g", a=truth, b=truth)
    scored(tmp_path, "instances")
    assert [str(w.message) for w in recwarn if "background" in str(w.message)] == []


def test_void_is_no_background(tmp_path, recwarn):
    """The largest object lies on what is ignored, and nothing else is there to be taken for it."""
    truth = nuclei(4, True)
    truth[truth == 0] = 255
    pred = np.where(truth == 255, 9, truth)
    write(tmp_path / "p", a=pred, b=pred)
    write(tmp_path / "g", a=truth, b=truth)
    scored(tmp_path, "instances", ignore=255)
    assert list(recwarn) == []
