"""Inputs that would be counted without a word and should not: values, places, empty truth."""

import re
import shutil
import warnings

import imageio.v3 as iio
import numpy as np
import pytest
from PIL import Image
from scipy import ndimage

import bsdsbench as bb
from bsdsbench.errors import InputWarning, InvertedWarning
from bsdsbench.loaders.sample import DETECTORS, sample_ground_truth, sample_results
from bsdsbench.metrics import registry
from bsdsbench.runs.keywords import RunKeywords, make_plan
from bsdsbench.runs.sanity import N_CHECKED, CheckedImage, check_first_images
from bsdsbench.runs.sources import list_items
from tests.helpers.making import make_set
from tests.helpers.runs import changed, command, counted, refused, write_maps

TEN = bb.Protocol.preset("bsds500").replace(thresholds=10)


FAINT = {
    "0/1": (lambda a: (a > 90).astype(np.uint8), r"no value above 1 of 255 .*0/1 .*normalise=True"),
    "0..2": (lambda a: (a // 90).astype(np.uint8), "no value above 2 of 255"),
    "labels": (lambda a: (a // 26).astype(np.uint8), "no value above [89] of .*pred_kind='labels'"),
    "8 in 16": (lambda a: a.astype(np.uint16), r"of 65535 .*8 bit saved as 16"),
    "twice": (lambda a: a / 255.0**2, r"no value above 0.0\d+ .*divided by 255 twice\?"),
    "0..255": (lambda a: a.astype(np.float32), "divide by 255"),
}


@pytest.mark.parametrize("kind", FAINT)
def test_maps_of_which_nothing_would_count_are_refused(kind, tmp_path):
    make, words = FAINT[kind]
    pred, gt = make_set(tmp_path)
    changed(pred, make)
    refused(words, counted, pred, gt, TEN.replace(thresholds=99), metrics=("boundary", "pixel"))
    found = bb.doctor(pred, gt, TEN.replace(thresholds=99))
    assert any(f.level == "error" and f.code in ("values", "unreadable") for f in found)


def test_maps_of_zeros_are_a_warning(tmp_path):
    pred, gt = make_set(tmp_path)
    changed(pred, np.zeros_like)
    with pytest.warns(InputWarning, match="every map is all zeros") as said:
        run = counted(pred, gt, TEN, metrics=("boundary", "pixel"))
    assert run.boundary_score().ods.f == 0
    assert run.score("pixel").auc_roc == 0.5  # so the warning says nothing of all scores
    assert not any("scores are 0" in str(warning.message) for warning in said)
    # Floats, in metrics without thresholds
    masks = write_maps(tmp_path / "masks", {path.stem: BLOCK > 0 for path in pred.iterdir()})
    zeros = write_maps(tmp_path / "zeros", {path.stem: 0.0 * BLOCK for path in pred.iterdir()})
    for metric in ("saliency", "topology", "ccq", "calibration"):
        with pytest.warns(InputWarning, match="every map is all zeros"):
            counted(zeros, masks, metrics=metric)


def test_the_scale_that_is_said_is_that_of_the_maps_that_are_named(tmp_path):
    """A map that is only dark (up to 7) is no mistake, and says nothing of the one of 0/1."""
    pred, gt = make_set(tmp_path)
    changed(pred, lambda a: (a > 90).astype("u1"), "im001*")
    changed(pred, lambda a: a // 36, "im002*")
    with pytest.warns(InputWarning, match=r"1 of 6 maps have no value above 1, .*\[im001\]"):
        counted(pred, gt, TEN)


@pytest.mark.parametrize(("scale", "dtype", "top"), [(1, "u1", 1), (1, "u2", 1), (255, "u2", 255)])
def test_one_map_of_another_scale_is_named(tmp_path, scale, dtype, top):
    pred, gt = make_set(tmp_path)
    changed(pred, lambda a: (a > 90).astype(dtype) * np.array(scale, dtype), "im001*")
    with pytest.warns(InputWarning, match=rf"1 of 6 maps have no value above {top}, .*\[im001\]"):
        counted(pred, gt, TEN)


def test_values_of_twelve_bits_in_sixteen_are_said(tmp_path):
    pred, gt = make_set(tmp_path)
    fine = TEN.replace(thresholds=99)
    changed(pred, lambda a: a.astype(np.uint16) * 16 + 15)
    with pytest.warns(InputWarning, match=r"no value above 3\d+ of 65535 .*12 bit saved as 16"):
        counted(pred, gt, fine)
    counted(pred, gt, fine.replace(normalise=True))
    changed(pred, lambda a: a * np.uint16(17))
    counted(pred, gt, fine)


def test_maps_of_eight_bits_in_sixteen_are_named_beside_others(tmp_path):
    pred, gt = make_set(tmp_path)
    changed(pred, lambda a: a * np.uint16(257))
    changed(pred, lambda a: a // 257, "im00[12]*")
    words = r"2 of 6 maps have no value above 2\d\d, unlike the others \[im001, im002\] \(.*8 bit"
    with pytest.warns(InputWarning, match=words):
        counted(pred, gt, TEN)
    changed(pred, lambda a: a * np.uint16(257), "im001*")
    counted(pred, gt, TEN)  # one may be an image without boundaries


def test_one_map_that_is_inverted_is_named(tmp_path):
    pred, gt = make_set(tmp_path)
    changed(pred, lambda a: 255 - a, "im005*")
    words = r"1 of 6 maps are darker .*\[im005\] \(invert only these\)"
    with pytest.warns(InputWarning, match=words):
        counted(pred, gt, TEN)


# ---- what a metric looks for ---------------------------------------------------------------------

BLOCK = np.pad(np.ones((20, 20)), ((10, 30), (30, 20)))  # (60, 70)
STEP = 4 - 2 * BLOCK
ENDS = np.array([[10, 20, 60, 20], [30, 90, 40, 100], [5, 70, 9, 110.0]])


def warnings_of(recwarn, pred, gt, metric, **changes):
    protocol = bb.Protocol.preset(registry.get(metric).default_protocol or "bsds500")
    recwarn.clear()
    counted(pred, gt, protocol.replace(**changes), metrics=metric)
    return [str(w.message) for w in recwarn if issubclass(w.category, InputWarning)]


@pytest.mark.parametrize("metric", ["contour", "segmentation", "saliency", "topology", "ccq"])
def test_inverted_masks_are_said_until_they_are_inverted(metric, tmp_path, recwarn):
    names = "abc"
    gt = write_maps(tmp_path / "gt", {name: BLOCK > 0 for name in names})
    sound = write_maps(tmp_path / "sound", {name: np.roll(BLOCK > 0, 3, 1) for name in names})
    dark = write_maps(tmp_path / "dark", {name: np.roll(BLOCK == 0, 3, 1) for name in names})
    assert warnings_of(recwarn, sound, gt, metric) == []
    assert warnings_of(recwarn, dark, gt, metric, invert=True) == []
    (line,) = warnings_of(recwarn, dark, gt, metric)
    words = "the map is darker on the object than beside it in 3 of 3 checked images [a, b, c]"
    assert line == f"{words} (invert=True if the maps are inverted; gt_invert=True if the truth is)"


HOOK = np.zeros((64, 64), int)  # two labels, without any symmetry
HOOK[10:52, 8:16], HOOK[44:52, 16:50] = 1, 2
TURNS = {
    "contour": ("transposed", np.transpose),
    "segmentation": ("turned to the left", lambda a: np.rot90(a, 3)),
    "instances": ("turned by 180 degrees", lambda a: np.rot90(a, 2)),
    "saliency": ("mirrored left to right", np.fliplr),
    "topology": ("transposed and turned by 180 degrees", lambda a: np.rot90(a, 2).T),
}


@pytest.mark.parametrize("metric", TURNS)
def test_masks_in_a_wrong_place_are_said_and_sound_ones_are_not(metric, tmp_path, recwarn):
    orientation, turn = TURNS[metric]
    labels = HOOK if metric == "instances" else HOOK > 0
    shifted = {
        name: np.roll(labels, shift, 0) for name, shift in zip("abcd", (0, 5, -6, 9), strict=True)
    }
    gt = write_maps(tmp_path / "gt", shifted)
    sound = write_maps(tmp_path / "sound", {n: np.roll(a, 2, 1) for n, a in shifted.items()})
    turned = write_maps(tmp_path / "turned", {n: turn(a) for n, a in shifted.items()})
    assert warnings_of(recwarn, sound, gt, metric) == []
    said = warnings_of(recwarn, turned, gt, metric)
    assert any(line.startswith(f"maps fit the ground truth only {orientation} in") for line in said)
    if metric != "saliency":  # those that the doctor knows no more of than what the run says
        protocol = registry.get(metric).default_protocol
        assert "turned" in {f.code for f in bb.doctor(turned, gt, protocol, metrics=metric)}
    other = dict(zip("abcd", [shifted[name] for name in "bcda"], strict=True))
    said = warnings_of(recwarn, write_maps(tmp_path / "other", other), gt, metric)
    words = "4 of 4 checked maps fit the ground truth of another image [a looks like b"
    assert any(line.startswith(words) for line in said)


def test_one_map_under_every_name_is_said(tmp_path):
    """Equal maps of equal ground truth, as of two frames, are no mistake."""
    pred, gt = make_set(tmp_path, annotators=1)
    maps = sorted(pred.glob("*.png"))
    for path in maps[1:]:
        path.write_bytes(maps[0].read_bytes())
    (note,) = looked_at(pred, gt)
    assert note.startswith("4 of 4 checked maps are the same map [im000, im001, im002")
    for path in gt.rglob("*.png"):
        path.write_bytes((gt / "im000" / "1.png").read_bytes())
    assert not any("same map" in note for note in looked_at(pred, gt))


@pytest.mark.parametrize("metric", ["boundary", "contour", "segmentation", "instances", "depth"])
def test_constant_maps_of_other_ground_truth_are_said(metric, tmp_path, recwarn):
    if metric == "boundary":
        pred, gt = make_set(tmp_path, annotators=1)
        changed(pred, lambda a: a * 0 + 100)
    else:
        drawn = {"depth": STEP, "instances": HOOK}.get(metric, BLOCK > 0)
        gt = write_maps(tmp_path / "gt", {"a": drawn, "b": np.roll(drawn, 4, 0)})
        pred = write_maps(tmp_path / "pred", dict.fromkeys("ab", np.ones_like(drawn)))
    assert any("have one value everywhere" in s for s in warnings_of(recwarn, pred, gt, metric))
    if metric == "depth":
        return
    warnings.simplefilter("always")  # the same line again, for instances
    changed(pred, lambda a: a * 0)  # in soft maps and masks, nothing is predicted
    said = warnings_of(recwarn, pred, gt, metric)
    words = "one value everywhere" if metric == "instances" else "nothing is predicted"
    assert any(words in line for line in said)


def test_one_mask_that_fits_when_it_is_turned_may_be_shifted(tmp_path, recwarn):
    y, x = np.mgrid[:80, :120]
    ellipse = ((y - 37) / 12) ** 2 + ((x - 57) / 9) ** 2 < 1
    gt = write_maps(tmp_path / "gt", {"a": ellipse})
    pred = write_maps(tmp_path / "pred", {"a": np.roll(ellipse, (6, 6), (0, 1))})
    assert warnings_of(recwarn, pred, gt, "contour") == []


def test_empty_maps_are_not_constant_and_hide_no_inverted_truth(tmp_path, recwarn):
    """Half of the first images have no prediction; then their ground truth is inverted."""
    pred, gt = make_set(tmp_path, annotators=1)
    for name in ("im000", "im001"):
        changed(pred, lambda a: a * 0, name)
    assert not any("one value" in note for note in looked_at(pred, gt))
    for path in gt.rglob("*.png"):
        iio.imwrite(path, 255 - iio.imread(path))
    (note,) = looked_at(pred, gt)
    assert "most pixels are boundary" in note


@pytest.mark.parametrize("metric", ["saliency", "topology"])
def test_large_objects_that_are_inverted_are_counted_once(metric):
    y, x = np.mgrid[:80, :120]
    disc = np.hypot(y - 40, x - 60) < 45  # more than half of the image
    items = [(f"i{k}", (1.0 - disc if k > 3 else disc) * 0.98 + 0.01, disc) for k in range(10)]
    protocol = registry.get(metric).default_protocol
    with pytest.warns(InvertedWarning) as caught:
        bb.evaluate_items(items, protocol, metrics=metric, workers=1)
    lines = [str(warning.message) for warning in caught]
    words = "are darker on the ground truth than off it [i4, i5, i6 and 3 more] (invert=True)"
    assert [line for line in lines if "darker" in line] == [f"6 of 10 maps {words}"]


def test_one_wrong_mask_of_many_is_not_said_to_be_inverted(tmp_path, recwarn):
    drawn = {f"{k}": np.roll(BLOCK > 0, k, 1) for k in range(9)}
    gt = write_maps(tmp_path / "gt", drawn)
    pred = write_maps(tmp_path / "pred", {n: a ^ (n == "7") for n, a in drawn.items()})
    assert warnings_of(recwarn, pred, gt, "contour") == []


@pytest.mark.parametrize("metric", ["contour", "segmentation", "saliency"])
def test_masks_of_which_some_are_inverted_are_named(metric, tmp_path, recwarn):
    drawn = {name: np.roll(BLOCK > 0, k, 1) for k, name in enumerate("abcdef")}
    gt = write_maps(tmp_path / "gt", drawn)
    pred = write_maps(tmp_path / "pred", {n: a ^ (n in "bf") for n, a in drawn.items()})
    (line,) = warnings_of(recwarn, pred, gt, metric)
    words = "2 of 6 maps are darker on the ground truth than off it [b, f] (invert only these)"
    assert line == words


@pytest.mark.parametrize(("metric", "protocol"), [("contour", "masks"), ("boundary", "bsds500")])
def test_a_field_of_view_without_the_object_is_said(metric, protocol, tmp_path, recwarn):
    """Masks of what to ignore taken for the field of view, and nearly nothing is scored."""
    gt = write_maps(tmp_path / "gt", {"a": BLOCK > 0})
    pred = write_maps(tmp_path / "pred", {"a": np.roll(BLOCK > 0, 3, 1)})
    some = np.zeros(BLOCK.shape, bool)
    some[tuple(np.argwhere(BLOCK > 0)[0])] = True  # a pixel of the object
    for view, n_lines in ((BLOCK > 0, 0), ((BLOCK == 0) | some, 1)):
        recwarn.clear()
        valid = write_maps(tmp_path / f"valid{n_lines}", {"a": view})
        counted(pred, gt, protocol, metrics=metric, valid_dir=valid)
        lines = [str(w.message) for w in recwarn if "pixels that do not count" in str(w.message)]
        assert len(lines) == n_lines


def test_a_line_beside_the_annotated_one_is_no_inversion():
    """It misses all of the object, but is white on a quarter of what lies beside it."""
    gt, pred = np.zeros((2, 5, 10), bool)
    gt[1], pred[3] = True, True
    bb.evaluate_items([("a", pred, gt)], "masks", metrics="ccq", workers=1)  # warnings are errors


def test_inverse_depth_is_said_and_another_scale_is_not(tmp_path, recwarn):
    gt = write_maps(tmp_path / "gt", {"a": STEP + 0.5})
    scaled = write_maps(tmp_path / "scaled", {"a": 1000 * STEP + 0.5})
    inverse = write_maps(tmp_path / "inverse", {"a": 1 / (STEP + 0.5)})
    assert warnings_of(recwarn, scaled, gt, "depth") == []
    (line,) = warnings_of(recwarn, inverse, gt, "depth")
    assert re.search("decreases where .* in 1 of 1 .*depth.pred_holds='inverse'", line)
    negative = write_maps(tmp_path / "negative", {"a": -STEP - 0.5})
    (line,) = warnings_of(recwarn, negative, gt, "depth")
    assert re.search("over 1 % of the predicted depths are 0, .*depth.invalid='both'", line)
    more = write_maps(tmp_path / "more", {name: STEP + 0.5 for name in "abc"})
    recwarn.clear()
    counted(gt, more, "depth", metrics="depth", missing="zero")  # two of three are no prediction
    assert not recwarn


def test_depth_that_is_stretched_to_its_range_is_said(tmp_path, recwarn):
    gt = write_maps(tmp_path / "gt", {"a": STEP + 0.5})
    stretched = (STEP - STEP.min()) / np.ptp(STEP)
    for top in (1, 255, 65535):
        pred = write_maps(tmp_path / str(top), {"a": stretched * top})
        lines = warnings_of(recwarn, pred, gt, "depth")
        assert any(f"goes from 0 to {top}: stretched to its range?" in line for line in lines)
    edges = bb.GroundTruth("a", boundaries=(np.eye(*STEP.shape) > 0,))
    items = [("a", bb.Prediction("a", depth=stretched), edges)]
    recwarn.clear()
    name = registry.get("depth").default_protocol
    protocol = bb.Protocol.preset(name).replace(options={"depth": {"measures": ("dbe",)}})
    bb.evaluate_items(items, protocol, metrics="depth", workers=1)
    assert not any("stretched" in str(w.message) for w in recwarn)  # no depth to align with
    fitted = {"options": {"depth": {"align": "scale-shift"}}}
    assert not any(
        "stretched" in line for line in warnings_of(recwarn, pred, gt, "depth", **fitted)
    )


@pytest.mark.parametrize("metric", ["topology", "ccq"])
def test_a_mask_of_three_values_is_said(metric, tmp_path, recwarn):
    gt = write_maps(tmp_path / "gt", {"a": BLOCK > 0})
    void = np.where(np.arange(BLOCK.shape[1]) < 4, 128, 255 * BLOCK).astype(np.uint8)
    pred = write_maps(tmp_path / "pred", {"a": void})
    (line,) = warnings_of(recwarn, pred, gt, metric)
    assert line.startswith("the map has the values 0, 128, 255: is one a void? in 1 of 1")


def test_boundaries_that_are_given_as_regions_are_said(tmp_path, recwarn):
    regions = np.kron([[1, 2], [3, 1]], np.ones((10, 12), np.int32))
    for name, maps in (
        ("gt", regions),
        ("edges", bb.seg2bdry(regions) * 255),
        ("two", regions // 3),
    ):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "a.npy", maps.astype(np.uint8))
    options = {"gt_kind": "labels"}

    def said(name):
        recwarn.clear()
        protocol = bb.Protocol.preset("bsds500").replace(**options)
        folders = tmp_path / name, tmp_path / "gt"
        counted(*folders, protocol, metrics="region", pred_kind="labels")
        return [str(warning.message) for warning in recwarn]

    assert said("two") == []
    (line,) = said("edges")
    assert line.startswith("a label map has two labels, of which one is thin lines in 1 of 1")


def test_lines_as_column_and_row_are_said(tmp_path, recwarn):
    for name, ends in (("gt", ENDS + 1), ("rows", ENDS[:, [1, 0, 3, 2]]), ("columns", ENDS)):
        (tmp_path / name).mkdir()
        size = {"size": (128, 128)} if name == "gt" else {"score": [0.99, 0.98, 0.7]}
        np.savez(tmp_path / name / "a.npz", lines=ends, **size)
    assert warnings_of(recwarn, tmp_path / "rows", tmp_path / "gt", "wireframe") == []
    said = warnings_of(recwarn, tmp_path / "columns", tmp_path / "gt", "wireframe")
    words = "lines fit the truth only with rows and columns exchanged in 1 of 1 checked images [a]"
    assert f"{words} (write row, column of both ends)" in said


CLASSES = {"classes": list("abcdef")}


@pytest.mark.parametrize("metric", ["contour", "segmentation"])
def test_classes_that_are_exchanged_are_said(metric, tmp_path, recwarn):
    labels = np.kron([[0, 1, 2], [3, 0, 4]], np.ones((10, 12), np.uint8))
    gt = write_maps(tmp_path / "gt", {"a": labels})
    swapped = write_maps(tmp_path / "swapped", {"a": np.array([0, 1, 4, 3, 2])[labels]})
    confused = write_maps(tmp_path / "confused", {"a": np.array([0, 1, 5, 1, 4])[labels]})
    options = {"options": {metric: CLASSES}}
    assert warnings_of(recwarn, confused, gt, metric, **options) == []
    (line,) = warnings_of(recwarn, swapped, gt, metric, **options)
    words = "classes are exchanged (label 2 is 4 of the truth, 4 is 2 of the truth) in 1 of 1"
    assert line.startswith(words)
    (line_of_numbers,) = warnings_of(recwarn, swapped, gt, metric, options={metric: {"unit": "id"}})
    assert line_of_numbers.startswith(words.replace("classes", "numbers of objects"))
    assert "`unit` instance" in line_of_numbers
    numbers = {"options": {metric: CLASSES | {"unit": "instance", "divisor": 10}}}
    for folder in (gt, swapped):
        changed(folder, lambda maps: maps.astype(np.uint8) * 10)
    warnings.simplefilter("always")  # the same line again
    assert warnings_of(recwarn, swapped, gt, metric, **numbers) == [line]


@pytest.mark.parametrize("times", [2, 4])
def test_labels_that_are_interpolated_are_said(times, tmp_path, recwarn):
    labels = np.zeros((96, 120), np.uint8)
    labels[8:40, 8:60], labels[56:88, 16:48], labels[20:80, 70:110] = 4, 2, 5
    rows, cols = np.mgrid[:96, :120]
    rims = np.clip(25 - np.hypot(rows - 48, cols - 60), 0, 5).astype(np.uint8)  # 0, 1 .. 5
    options = {"options": {"segmentation": CLASSES}}
    for name, maps, order, n_said in (
        ("nearest", labels, Image.Resampling.NEAREST, 0),
        ("bilinear", labels, Image.Resampling.BILINEAR, 1),
        ("rims", rims, Image.Resampling.BILINEAR, 0),
    ):
        small = Image.fromarray(maps).resize((120 // times, 96 // times), order)
        resized = np.asarray(small.resize((120, 96), order))
        gt = write_maps(tmp_path / f"{name}_gt", {"a": maps})
        pred = write_maps(tmp_path / name, {"a": resized})
        for maps, truth, side in ((pred, gt, "prediction"), (gt, pred, "ground truth")):
            said = warnings_of(recwarn, maps, truth, "segmentation", **options)
            lines = [line for line in said if "interpolated? in 1 of 1 checked images" in line]
            assert [f"stripes of the {side}" in line for line in lines] == [True] * n_said


def test_probabilities_below_one_half_are_said(tmp_path, recwarn):
    gt = write_maps(tmp_path / "gt", {"a": BLOCK > 0})
    low = write_maps(tmp_path / "low", {"a": 0.4 * BLOCK + 0.01})
    expected = "no value exceeds one half: nothing is predicted"
    assert warnings_of(recwarn, low, gt, "contour") == [expected]
    twice = write_maps(tmp_path / "twice", {"a": (BLOCK * 0.9) / 255})
    (line,) = warnings_of(recwarn, twice, gt, "calibration")
    assert re.search("no probability exceeds 1/255 in 1 of 1 .*divided by 255 twice", line)
    assert warnings_of(recwarn, low, gt, "calibration") == []
    warnings.simplefilter("always")  # the same line for both metrics
    for metric in ("topology", "ccq"):
        (line,) = warnings_of(recwarn, low, gt, metric)
        assert re.search(r"no value reaches the threshold 0.5 in 1 of 1 .*\(normalise=True", line)
        assert warnings_of(recwarn, low, gt, metric, options={metric: {"threshold": 0.4}}) == []


# ---- places --------------------------------------------------------------------------------------


def looked_at(pred, gt=None, **changes):
    given = {"protocol": TEN, **changes}
    words = {k: given.pop(k) for k in ("protocol", "metrics") if k in given}
    options = make_plan(RunKeywords(**given), **words)
    items, _ = list_items(pred, sample_ground_truth() if gt is None else gt, options)
    (alike,) = options.metric_groups
    images = [CheckedImage(*item.load(alike), options.protocol) for item in items[:N_CHECKED]]
    unused = registry.unused_settings(options.metrics, options.protocol)
    return list(map(str, check_first_images(images, options.protocol, unused)))


@pytest.mark.parametrize(
    ("changes", "metric", "said"),
    [
        ({}, "boundary", True),
        ({"nms": True}, "boundary", False),
        ({"thin": False}, "boundary", False),
        ({}, "crispness", False),
        ({}, "pixel", False),
    ],
)
def test_thick_maps_without_nms_are_said(changes, metric, said):
    notes = looked_at(
        sample_results("structure-tensor-raw"), protocol=TEN.replace(**changes), metrics=metric
    )
    assert ["nms=True" in note for note in notes] == [True] * said


def exchange(folder):
    names = sorted(folder.iterdir())
    upright = [p for p in names if iio.imread(p).shape == iio.imread(names[0]).shape]
    first, last = upright[0], upright[1]
    kept = first.read_bytes()
    first.write_bytes(last.read_bytes())
    last.write_bytes(kept)


PLACES = {
    "mirrored": (lambda f: changed(f, np.fliplr), "fit their ground truth only mirrored left"),
    "flipped": (lambda f: changed(f, np.flipud), "upside down"),
    "turned": (lambda f: changed(f, lambda a: np.rot90(a, 2)), "turned by 180"),
    "inverted": (lambda f: changed(f, lambda a: 255 - a), "darker on the ground .*invert=True"),
    "exchanged": (exchange, "2 of . checked maps fit the ground truth of another image"),
}


def planted(kind, method, folder):
    paths = sorted(sample_results(method).glob("*.png"))
    folder.mkdir()
    for path in paths[:N_CHECKED]:  # the others are not looked at
        shutil.copy(path, folder)
    PLACES[kind][0](folder)
    for path in paths[N_CHECKED:]:
        (folder / path.name).symlink_to(path)
    return folder


@pytest.mark.parametrize("method", DETECTORS)
def test_maps_in_a_wrong_place_are_one_line_each_and_sound_ones_none(method, tmp_path):
    assert looked_at(sample_results(method)) == []
    for kind, (_, words) in PLACES.items():
        (note,) = looked_at(planted(kind, method, tmp_path / kind))
        assert re.search(words, note), kind


@pytest.mark.parametrize("offset", [0, 20])
def test_distances_to_the_boundaries_are_dark_on_them(offset, tmp_path):
    pred, gt = make_set(tmp_path, annotators=1)
    for path in gt.rglob("*.png"):
        distance = ndimage.distance_transform_edt(iio.imread(path) == 0)
        iio.imwrite(pred / f"{path.parent.name}.png", (8 * distance + offset).astype(np.uint8))
    (note,) = looked_at(pred, gt)
    assert re.search(r"4 of 4 checked maps are darker .*invert=True", note)


def test_truth_that_is_inverted_is_said_where_boundaries_are_matched(tmp_path):
    pred, gt = make_set(tmp_path)
    for path in gt.rglob("*.png"):
        iio.imwrite(path, 255 - iio.imread(path))
    (note,) = looked_at(pred, gt)
    assert note.startswith("4 of 4 checked maps have ground truth in which most pixels are")
    assert note.endswith("(gt_invert=True)")
    assert looked_at(pred, gt, protocol=TEN.replace(gt_invert=True)) == []


def test_the_command_line_warns_in_a_line(tmp_path):
    pred, gt = make_set(tmp_path)
    changed(pred, lambda a: 255 - a)
    found = command("evaluate", pred, "--gt", gt, "--max-dist-px", "2", "--workers", "1")
    (line,) = [x for x in found.stderr.splitlines() if "warning" in x]
    assert line.startswith("bsdsbench: warning: 4 of 4 checked maps are darker")


# ---- empty ground truth --------------------------------------------------------------------------


@pytest.fixture
def with_empty(tmp_path):
    """Six images, the last of which nobody drew a boundary in, and the first five alone."""
    pred, gt = make_set(tmp_path / "all")
    for path in (gt / "im005").iterdir():
        iio.imwrite(path, np.zeros((40, 52), np.uint8))
    five = make_set(tmp_path / "five", images=5)
    return pred, gt, five


@pytest.mark.parametrize("metric", ["boundary", "pixel", "aiu", "region", "crispness"])
def test_empty_ground_truth_is_refused(with_empty, metric):
    pred, gt, _ = with_empty
    protocol = TEN.replace(regions_from_soft=True)
    words = "im005.*no boundary pixel.*empty_gt='count'.*on_error='skip'"
    refused(words, counted, pred, gt, protocol, metrics=metric)


def test_skipped_images_are_as_if_they_were_not_there(with_empty, tmp_path):
    pred, gt, five = with_empty
    skip = TEN.replace(empty_gt="skip")
    found = counted(pred, gt, skip, out=tmp_path / "out")
    assert found.scores() == counted(*five, TEN).scores()
    assert (found.provenance.empty_gt, found.failed) == (("im005",), {})
    assert bb.Evaluation.load(tmp_path / "out").provenance.empty_gt == ("im005",)
    shards = [counted(pred, gt, skip, shard=(k, 2)) for k in (1, 2)]
    merged, expected = bb.merge(shards).to_mapping(), {**found.to_mapping(), "failed": {}}
    for mapping in (merged, expected):  # runs end in different seconds
        assert mapping["provenance"].pop("date")
    assert merged == expected


def test_counted_images_add_their_false_positives_alone(with_empty):
    pred, gt, five = with_empty
    every = counted(pred, gt, TEN.replace(empty_gt="count"))
    assert 'empty_gt="count"' in str(every.signature)
    soft = iio.imread(pred / "im005.png")
    mine = every.records[5].counts["boundary"]
    assert mine.total_pred.tolist() == [bb.thin(soft / 255 >= t).sum() for t in TEN.thresholds]
    assert not mine.total_gt.any()
    assert not mine.matched_pred.any()
    drawn, curve = counted(*five, TEN).boundary_score(), every.boundary_score()
    assert curve.curve.recall.tolist() == drawn.curve.recall.tolist()
    assert curve.ois.recall == drawn.ois.recall


def test_a_stream_leaves_empty_ground_truth_out_with_a_warning():
    nothing, said = [np.zeros((20, 20), bool)], "a: no boundary pixel in any of 1"
    ev = bb.StreamingEvaluator(TEN, on_error="fail")
    refused(said, ev.update, np.eye(20), nothing, image_id="a")
    ev = bb.StreamingEvaluator(TEN)
    with pytest.warns(InputWarning, match=f"left out: {said}"):
        ev.update(np.eye(20), nothing, image_id="a")
    assert len(ev) == 0


# ---- streams -------------------------------------------------------------------------------------


def test_a_stream_of_zeros_and_ones_in_bytes_is_refused_when_it_is_scored():
    """A network that predicts next to nothing is no error in training."""
    ones, faint = np.eye(30, dtype=np.uint8), np.full((30, 30), 1e-4)
    for pred, second in ((ones, ones), (ones, 200 * ones), (faint, faint)):
        ev = bb.StreamingEvaluator(TEN)
        ev.update([pred, second], [[np.eye(30)], [np.eye(30)]])
        if second is ones:
            refused("no value above 1 of 255 in any map", ev.compute)
        else:
            assert (ev.compute().boundary_score().ods.f > 0) == (second is not faint)


@pytest.mark.parametrize(
    ("others", "words"),
    [
        (0.4, r"all values of its ground truth, and of all others, are at most one half"),
        (255, r"all values of its ground truth are at most one half"),
    ],
)
def test_a_truth_below_the_threshold_is_refused(tmp_path, others, words):
    mask = np.zeros((20, 30), np.float32)
    mask[5:15, 5:20] = 1
    for folder in ("gt", "pred"):
        (tmp_path / folder).mkdir()
    for name, value in (("a", 0.4), ("b", others)):
        iio.imwrite(tmp_path / "pred" / f"{name}.png", np.uint8(255 * mask))
        np.save(tmp_path / "gt" / f"{name}.npy", (value * mask).astype("f4" if value < 1 else "u1"))
    with pytest.raises(bb.DataError, match=rf"^a\.npy: {words}, expected"):
        bb.evaluate(tmp_path / "pred", tmp_path / "gt", metrics="contour")
