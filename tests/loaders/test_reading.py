"""What the values of files mean: masks with a third value, gray, inverted, one-hot, of any format.

The masks are drawn here, so that each score is known: a perfect prediction is perfect however its
truth was saved, or the truth is refused.
"""

import warnings
from contextlib import nullcontext

import imageio.v3 as iio
import numpy as np
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from scipy import ndimage
from scipy.io import savemat

import bsdsbench as bb
from bsdsbench.errors import DataError, InputWarning, InvertedWarning
from bsdsbench.loaders.formats.pictures import refuse_jpeg_noise
from bsdsbench.loaders.labels import distinct_values, void_levels
from bsdsbench.loaders.pairing import Layout
from bsdsbench.loaders.reading import Kind, Readings, ReadOptions
from bsdsbench.scores.counts import LEVELS, Evidence, ImageRecord, Values
from tests.helpers.runs import counted, refused

DISK = np.hypot(*(np.indices((48, 60)) - 24)) < 12
BAND = np.zeros(DISK.shape, bool)
BAND[40:] = True
LINES = np.zeros(DISK.shape, bool)
LINES[10, 5:50] = LINES[12:40, 30] = True
FORMATS = ("png8", "png16", "npy-u1", "npy-u2", "npy-i8", "npy-f8", "npz", "mat", "tif")
# metric -> what its predictions are, and the score that is 1 (or 0) for a perfect one
MASKS = {
    "saliency": (np.float32, "iou_mean", 1),
    "topology": (np.float32, "b0", 0),
    "ccq": (np.float32, "quality", 1),
    "pixel": (np.float32, "mae", 0),
    "aiu": (np.float32, "aiu", 1),
    "calibration": (np.float32, "ece", 0),
    "contour": (np.uint8, "iou", 1),
    "segmentation": (np.uint8, "pixel_accuracy", 1),
    "instances": (np.uint8, "f1", 1),
}
IGNORE = ("saliency", "topology", "ccq", "pixel", "aiu", "calibration", "contour", "segmentation")
OPTIONS = {"instances": {"components": 8}, "ccq": {"lines": "given"}}


def write(folder, name, values, form):
    """Save a map of 0 .. 255 in a format; 16-bit ones have white where 255 is."""
    folder.mkdir(parents=True, exist_ok=True)
    kind, _, dtype = form.partition("-")
    if form in ("png16", "npy-u2"):
        values = np.where(values == 255, np.uint16(65535), values).astype(np.uint16)
    if form == "npy-f8":
        values = values / 255
    path = folder / f"{name}.{kind.removesuffix('8').removesuffix('16')}"
    if kind == "npy":
        np.save(path, values.astype(dtype))
    elif kind == "npz":
        np.savez(path, mask=values)
    elif kind == "mat":
        savemat(path, {"mask": values})
    else:
        iio.imwrite(path, values)
    return path


def protocol_of(metric, **changes):
    """The metric's own protocol with the options that its masks need."""
    own = bb.metrics.registry.get(metric).default_protocol
    tables = {metric: {**OPTIONS.get(metric, {}), **changes.pop("options", {})}}
    changes.setdefault("gt_threshold", None)
    return bb.Protocol.preset(own).replace(options=tables, **changes)


def predictions(folder, metric, n=2, mask=DISK):
    """Perfect predictions of the same mask."""
    folder.mkdir(parents=True, exist_ok=True)
    for k in range(n):
        np.save(folder / f"{k}.npy", (mask * 1).astype(MASKS[metric][0]))
    return folder


def score_of(run, metric):
    """The score that a perfect prediction makes perfect."""
    _, key, best = MASKS[metric]
    score = run.score(metric)
    return (score["ods"]["f"] if key == "ods" else score[key]), best


# ---- a third value -------------------------------------------------------------------------------

THIRD = {"0/1/255": (1, 255), "0/128/255": (255, 128), "0/127/255": (255, 127)}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("third", THIRD)
def test_a_third_value_is_refused_unless_the_void_is_said(third, form, tmp_path):
    (on, void), gt = THIRD[third], tmp_path / "gt"
    for k in range(2):
        values = on * DISK.astype(np.uint8)
        values[BAND] = void if k else values[BAND]  # one file of the set is enough
        write(gt, k, values, form)
    for metric in MASKS:
        pred = predictions(tmp_path / metric, metric)
        with pytest.raises(DataError) as caught:
            counted(pred, gt, protocol_of(metric), metrics=metric)
        line = str(caught.value).splitlines()[-1]
        assert "1." in line, metric
        if form in ("png16", "npy-u2", "npy-f8") or metric not in IGNORE:
            continue
        assert f"{metric}.ignore" in line
        if metric == "contour" and third == "0/1/255":
            assert "255" in line
        protocol = protocol_of(metric, options={"ignore": void})
        value, best = score_of(counted(pred, gt, protocol, metrics=metric), metric)
        assert value == pytest.approx(best, abs=1e-6), metric


@pytest.mark.parametrize("third", THIRD)
@pytest.mark.parametrize("preset", ["crack-aiu", "crack"])
def test_the_cut_of_a_preset_just_above_zero_says_nothing_of_a_third_value(third, preset, tmp_path):
    (on, void), gt = THIRD[third], tmp_path / "gt"
    metric = "aiu" if preset == "crack-aiu" else "pixel"
    for k in range(2):
        values = on * DISK.astype(np.uint8)
        values[BAND] = void
        write(gt, k, values, "png8")
    pred = predictions(tmp_path / "pred", metric)
    protocol = bb.Protocol.preset(preset)
    with pytest.raises(DataError, match=rf"{metric}\.ignore"):
        counted(pred, gt, protocol, metrics=metric)
    counted(pred, gt, protocol.replace(options={metric: {"ignore": void}}), metrics=metric)
    # Said by the user; where the disk is 1, only the band is boundary then
    dark = pytest.warns(InvertedWarning, match="2 of 2 checked maps") if on == 1 else nullcontext()
    with dark:
        counted(pred, gt, protocol.replace(gt_threshold=0.01), metrics=metric)


@pytest.mark.parametrize("preset", ["crack-aiu", "crack"])
@pytest.mark.parametrize("kind", ["jpg", "png"])
def test_noise_of_jpeg_is_no_object_of_a_preset_that_cuts_above_zero(preset, kind, tmp_path):
    metric = "aiu" if preset == "crack-aiu" else "pixel"
    for k in range(2):
        lossy = iio.imread(write(tmp_path / "jpg", k, np.uint8(255) * DISK, "jpg"))
        write(tmp_path / "gt", k, lossy, kind)
    pred = predictions(tmp_path / "pred", metric)
    protocol = bb.Protocol.preset(preset)
    words = "gt_threshold=0.5 if it is noise of JPEG.*gt_threshold=0.004 if it is object"
    refused(words, counted, pred, tmp_path / "gt", protocol, metrics=metric)
    for cut in (0.004, 0.5):
        run = counted(pred, tmp_path / "gt", protocol.replace(gt_threshold=cut), metrics=metric)
        score = run.score(metric)
        assert ((score.aiu if metric == "aiu" else score.ods.f) == 1) == (cut == 0.5)


@pytest.mark.parametrize("size", [(200, 150), (313, 211), (600, 450)])
def test_masks_that_were_resized_have_no_noise_of_jpeg(size):
    mask = np.zeros((300, 400), np.uint8)
    mask[100:200, 50:60] = 255
    for filter_ in (Image.Resampling.BICUBIC, Image.Resampling.LANCZOS):
        resized = np.asarray(Image.fromarray(mask).resize(size, filter_))
        refuse_jpeg_noise(resized, 255, 0.001, "mask")


@pytest.mark.parametrize("values", [(0, 0.5, 1), (0, 1, 2, 255), (0, 30000, 65535)])
def test_other_third_values_are_refused(values, tmp_path):
    maps = np.array(values)[(np.arange(60) // 8) % len(values)] * np.ones((48, 1))
    dtype = np.float32 if 0.5 in values else np.uint16 if max(values) > 255 else np.uint8
    (tmp_path / "gt").mkdir()
    np.save(tmp_path / "gt" / "0.npy", maps.astype(dtype))
    pred = predictions(tmp_path / "pred", "saliency", 1)
    words = r"0\.npy: .*gt_threshold=0\.5"
    refused(words, counted, pred, tmp_path / "gt", metrics="saliency")
    run = counted(
        pred, tmp_path / "gt", protocol_of("saliency", gt_threshold=0.5), metrics="saliency"
    )
    assert len(run.records) == 1


@pytest.mark.parametrize(("low", "advice"), [(-4, "apply the sigmoid"), (np.nan, "")])
def test_logits_and_nan_are_no_gray_levels(low, advice, tmp_path):
    path = tmp_path / "gt"
    write(path, 0, np.uint8(255) * DISK, "png8")
    predictions(tmp_path / "pred", "saliency", 1, np.where(DISK, 4, low))
    with pytest.raises(DataError) as error:
        counted(tmp_path / "pred", path, metrics="contour")
    assert ("normalise=" in str(error.value), advice in str(error.value)) == (False, True)


@pytest.mark.parametrize(("form", "cut"), [("png8", 128), ("png16", 32896)])
def test_a_weak_gray_map_has_an_advice_for_each_scale(form, cut, tmp_path):
    """Divided by its maximum it would be an object, among sigmoids of one network it is none."""
    soft = np.uint8(np.clip(3 * ndimage.gaussian_filter(DISK * 85.0, 1), 0, 255))
    for k, values in enumerate((soft, soft // 3)):
        write(tmp_path / "pred", k, values * (np.uint16(257) if form == "png16" else 1), form)
        write(tmp_path / "gt", k, np.uint8(255) * DISK, "png8")
    words = rf"1\.png: .*normalise=True if the maximum.*save map > {cut}, which is empty here"
    refused(words, counted, tmp_path / "pred", tmp_path / "gt", metrics="contour")


# ---- gray ----------------------------------------------------------------------------------------


def resized(mask, factor=0.5):
    """A mask as a picture program resizes it, and the same cut at one half."""
    soft = ndimage.zoom(ndimage.gaussian_filter(mask.astype(float), 1), factor, order=1)
    gray = np.rint(255 * np.clip(soft, 0, 1)).astype(np.uint8)
    return gray, gray > 128


@pytest.mark.parametrize(
    "metric", ["saliency", "topology", "ccq", "contour", "segmentation", "instances"]
)
@pytest.mark.parametrize("form", ["png8", "npy-u1", "mat", "tif"])
def test_gray_masks_are_cut_at_one_half_by_every_metric_of_masks(metric, form, tmp_path):
    several = DISK | np.roll(DISK, (0, 30), (0, 1))
    for k, mask in enumerate((DISK, several)):
        gray, cut = resized(mask, 2)
        write(tmp_path / "gt", k, gray, form)
        predictions(tmp_path / str(k), metric, 1, cut)
        (tmp_path / "pred").mkdir(exist_ok=True)
        (tmp_path / str(k) / "0.npy").rename(tmp_path / "pred" / f"{k}.npy")
    run = counted(tmp_path / "pred", tmp_path / "gt", protocol_of(metric), metrics=metric)
    value, best = score_of(run, metric)
    assert value == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("metric", ["contour", "segmentation", "instances"])
def test_gray_predictions_of_masks_are_cut_as_well(metric, tmp_path):
    gray, cut = resized(DISK, 2)
    write(tmp_path / "pred", 0, gray, "png8")
    write(tmp_path / "gt", 0, 255 * cut.astype(np.uint8), "png8")
    run = counted(tmp_path / "pred", tmp_path / "gt", protocol_of(metric), metrics=metric)
    assert score_of(run, metric)[0] == pytest.approx(1)


def test_an_image_of_three_levels_is_gray_where_others_of_its_set_are(tmp_path):
    gray, cut = resized(DISK, 2)
    few = 255 * cut.astype(np.uint8)
    few[:, 40] = 128  # a seam, as halving a rectangle makes it
    for k, values in enumerate((gray, few)):
        write(tmp_path / "gt", k, values, "png8")
    pred = predictions(tmp_path / "pred", "saliency", 2, cut)
    assert len(counted(pred, tmp_path / "gt", metrics="saliency").records) == 2


def test_jpeg_has_no_values_of_its_own(tmp_path):
    """Near white and black it has three levels now and then: never a void."""
    path = tmp_path / "gt" / "0.jpg"
    path.parent.mkdir()
    iio.imwrite(path, 255 * np.kron(DISK, np.ones((4, 4))).astype(np.uint8), quality=100)
    pred = predictions(tmp_path / "pred", "saliency", 1, np.kron(DISK, np.ones((4, 4))) > 0)
    assert counted(pred, path.parent, metrics="saliency").score("saliency").iou_mean > 0.99


# ---- inverted, scaled ----------------------------------------------------------------------------


@pytest.mark.parametrize("metric", MASKS)
@pytest.mark.parametrize("form", FORMATS)
def test_inverted_truth_is_inverted_in_every_format(metric, form, tmp_path):
    for k in range(2):
        write(tmp_path / "gt", k, 255 * (~DISK).astype(np.uint8), form)
    pred = predictions(tmp_path / "pred", metric)
    protocol = protocol_of(metric, gt_invert=True)
    value, best = score_of(counted(pred, tmp_path / "gt", protocol, metrics=metric), metric)
    assert value == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("metric", ["contour", "segmentation", "instances"])
@pytest.mark.parametrize(
    "changes", [{"invert": True}, {"invert": True, "normalise": True}, {"normalise": True}]
)
def test_masks_of_predictions_are_inverted_after_they_are_scaled(metric, changes, tmp_path):
    on = 38 if "normalise" in changes else 255
    drawn = ~DISK if "invert" in changes else DISK
    for k in range(2):
        write(tmp_path / "pred", k, on * drawn.astype(np.uint8), "png8")
        write(tmp_path / "gt", k, 255 * DISK.astype(np.uint8), "png8")
    run = counted(
        tmp_path / "pred", tmp_path / "gt", protocol_of(metric, **changes), metrics=metric
    )
    assert score_of(run, metric)[0] == pytest.approx(1)


@pytest.mark.parametrize(
    ("metric", "changes"),
    [("saliency", {"normalise": True}), ("semantic", {"gt_invert": True}),
     ("segmentation", {"gt_threshold": 0.3, "options": {"unit": "instance"}}),
     ("instances", {"invert": True, "options": {"components": 0}})],
)  # fmt: skip
def test_what_a_metric_does_not_read_by_is_refused(metric, changes, tmp_path):
    (name, value), *_ = changes.items()
    preset = "cityscapes" if metric == "semantic" else None
    options = {metric: changes.pop("options", {})}
    base = bb.Protocol.preset(preset or bb.metrics.registry.get(metric).default_protocol)
    words = rf"{name} = {value}.* {metric}"
    refused(
        words, counted, tmp_path, tmp_path, base.replace(options=options, **changes), metrics=metric
    )


@pytest.mark.parametrize("form", ["mat", "png", "struct", "seg"])
@pytest.mark.parametrize("metric", ["boundary", "pixel"])
def test_dark_boundaries_on_bright_ground_in_every_format(form, metric, tmp_path):
    (tmp_path / "gt").mkdir()
    (tmp_path / "pred").mkdir()
    iio.imwrite(tmp_path / "pred" / "1.png", 255 * LINES.astype(np.uint8))
    dark = (~LINES).astype(np.uint8)
    if form == "png":
        iio.imwrite(tmp_path / "gt" / "1.png", 255 * dark)
    elif form == "mat":
        savemat(tmp_path / "gt" / "1.mat", {"boundaries": dark})
    elif form == "struct":
        cells = np.empty((1, 1), object)
        cells[0, 0] = {"Boundaries": dark}
        savemat(tmp_path / "gt" / "1.mat", {"groundTruth": cells})
    else:
        rows = "".join(f"0 {row} 0 59\n" for row in range(48))
        text = f"format ascii cr\nwidth 60\nheight 48\nsegments 1\ndata\n{rows}"
        (tmp_path / "gt" / "1.seg").write_text(text)
    call = tmp_path / "pred", tmp_path / "gt", bb.Protocol.preset("bsds500").replace(gt_invert=True)
    if form == "seg":
        refused("region labels.*gt_invert", counted, *call, metrics=metric)
    else:
        assert counted(*call, metrics=metric).score(metric).ods.f == 1


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
def test_a_map_is_scaled_and_then_inverted(dtype, tmp_path):
    """What the refusal of a faint map advises gives the score of the map at full scale."""
    (tmp_path / "gt").mkdir()
    iio.imwrite(tmp_path / "gt" / "1.png", 255 * LINES.astype(np.uint8))
    values = (255 - LINES * 230).astype(np.float64)
    (tmp_path / "pred").mkdir()
    np.save(
        tmp_path / "pred" / "1.npy",
        (values / 65535 if dtype is np.float32 else values).astype(dtype),
    )
    plain = bb.Protocol.preset("bsds500").replace(invert=True)
    call = tmp_path / "pred", tmp_path / "gt"
    if dtype is not np.uint8:
        refused("normalise=True", counted, *call, plain)
    assert counted(*call, plain.replace(normalise=True)).boundary_score().ods.f == 1


# ---- classes that look like annotators -----------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("metric", ["boundary", "pixel", "calibration", "aiu"])
@pytest.mark.parametrize("form", ["npy", "mat", "png", "items"])
def test_one_hot_truth_is_not_several_annotators(form, metric, n, tmp_path):
    labels = (np.arange(60) * n // 60) * np.ones((48, 1), int)
    hot = np.stack([labels == k for k in range(n)]).astype(np.uint8)
    soft = np.where(DISK, 0.9, 0.1).astype(np.float32)
    proto = bb.Protocol.preset(bb.metrics.registry.get(metric).default_protocol)
    if form == "items":
        words = "a: .*annotators.*classes"
        refused(words, bb.evaluate_items, [("a", soft, hot)], proto, metrics=metric, workers=1)
        return
    (tmp_path / "gt").mkdir()
    (tmp_path / "pred").mkdir()
    np.save(tmp_path / "pred" / "a.npy", soft)
    if form == "npy":
        np.save(tmp_path / "gt" / "a.npy", hot)
    elif form == "mat":
        cells = np.empty((1, n), object)
        for k in range(n):
            cells[0, k] = {"Boundaries": hot[k]}
        savemat(tmp_path / "gt" / "a.mat", {"groundTruth": cells})
    else:
        for k in range(n):
            iio.imwrite(tmp_path / "gt" / f"a_{k + 1}.png", 255 * hot[k])
    refused(r"a.*: .*classes", counted, tmp_path / "pred", tmp_path / "gt", proto, metrics=metric)


def test_annotators_along_the_last_axis_are_refused_with_the_axis(tmp_path):
    np.save(tmp_path / "a.npy", np.stack([LINES, np.roll(LINES, 1, 0)], axis=-1))
    refused(r"a\.npy: .*moveaxis", bb.load_ground_truth, tmp_path / "a.npy")


# ---- a whole set ---------------------------------------------------------------------------------


def outcome(function, *args, **options):
    """What a call ends in: its error, or its scores; and what it warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            ended = function(*args, **options).scores()
        except DataError as error:
            ended = str(error)
    return ended, [str(warning.message) for warning in caught]


SETS = {
    "one faint of four": lambda k: (255 if k else 1) * LINES.astype(np.uint8),
    "all faint": lambda k: LINES.astype(np.uint8),
    "all zero": lambda k: np.zeros(LINES.shape, np.uint8),
    "inverted": lambda k: np.where(LINES, 20, 220 + k).astype(np.uint8),
    "sound": lambda k: np.where(LINES, 220, 20 + k).astype(np.uint8),
}


@pytest.mark.filterwarnings("ignore::bsdsbench.errors.InputWarning")
@pytest.mark.parametrize("planted", SETS)
def test_shards_come_to_the_verdict_of_the_undivided_run(planted, tmp_path):
    for k in range(4):
        for side, values in (("pred", SETS[planted](k)), ("gt", 255 * LINES.astype(np.uint8))):
            (tmp_path / side).mkdir(exist_ok=True)
            iio.imwrite(tmp_path / side / f"{k}.png", values)
    call = tmp_path / "pred", tmp_path / "gt"
    whole = outcome(counted, *call)
    for parts in (2, 4):
        outs = [tmp_path / f"{parts}-{part}" for part in range(1, parts + 1)]
        for part, out in enumerate(outs, 1):
            counted(*call, shard=(part, parts), out=out)
        joined = outcome(bb.merge, [bb.Evaluation.load(out) for out in outs[::-1]])
        assert joined[0] == whole[0]
        for _, warned in (whole, joined):
            dark = [text for text in warned if "darker" in text]
            assert len(dark) == (planted == "inverted")


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("kind", ["list", "iterator"])
def test_inverted_maps_are_said_of_iterators_of_any_length(kind, n):
    items = [(str(k), SETS["inverted"](k), [LINES]) for k in range(n)]
    given_items = items if kind == "list" else iter(items)
    with pytest.warns(InputWarning, match="darker on the ground truth.*invert=True") as caught:
        bb.evaluate_items(given_items, bb.Protocol(max_dist_px=2), workers=1)
    assert len(caught) == 1
    assert issubclass(caught[0].category, InvertedWarning)


evidence = st.builds(
    Evidence,
    st.sampled_from([Values(0), *Values, Values.FEW | Values.STRONG]),
    st.lists(st.integers(0, 9).map(float), max_size=LEVELS).map(tuple),
    st.floats(0, 255),
    st.integers(0, 9),
    st.sampled_from(["", "a.png", "b.png"]),
)


@given(evidence, evidence, evidence)
def test_evidence_joins_in_any_order(a, b, c):
    assert (a | b) | c == a | (b | c)
    assert a | b == b | a
    assert a | Evidence() == a
    assert Evidence.of_row(a.row(), a.file) == a


@pytest.mark.slow
@given(st.lists(st.tuples(evidence, evidence), max_size=6), st.randoms(use_true_random=False))
def test_a_verdict_does_not_depend_on_the_order(sides, random):
    readings = Readings(ReadOptions(Kind.MASK, truth=False), ReadOptions(Kind.MASK))

    def verdict(pairs):
        records = [ImageRecord(str(k), (1, 1), pred=a, gt=b) for k, (a, b) in pairs]
        records.sort(key=lambda r: r.image_id)
        return sorted(map(str, readings.check_values(records)))

    pairs = list(enumerate(sides))
    mixed = random.sample(pairs, len(pairs))
    assert verdict(pairs) == verdict(mixed)


@given(st.lists(st.sampled_from([0, 1, 7, 255]), min_size=1, max_size=30))
def test_levels_are_the_distinct_values(values):
    assert distinct_values(np.array([values])) == tuple(sorted({float(v) for v in values}))


@given(st.sets(st.sampled_from([1, 3, 127, 128, 255, 65535]), min_size=1, max_size=4))
def test_without_its_void_a_map_is_a_mask(levels):
    void = void_levels((0, *sorted(levels)))
    left = levels - set(void)
    if void:
        assert left < {1, 255, 65535}
        assert len(left) == 1


# ---- in words ------------------------------------------------------------------------------------


SOFT, MASK = ReadOptions(Kind.SOFT, truth=False), ReadOptions(Kind.MASK)
ONE = Evidence(maps=1)
WORDS = [
    (SOFT, [ONE, ONE], ["soft8"] * 2, "soft 8-bit maps, 2 files"),
    (evolve(SOFT, inverted=True), [ONE], ["soft16"], "soft 16-bit maps, inverted, 1 file"),
    (
        SOFT,
        [ONE, ONE],
        ["float", "ucm2"],
        "soft float maps and contour maps of double size (ucm2), 2",
    ),
    (
        ReadOptions(Kind.BOUNDARIES),
        [Evidence(maps=5), Evidence(maps=8)],
        [],
        "5-8 annotators per image",
    ),
    (ReadOptions(Kind.BOUNDARIES), [ONE], [], "boundaries, 1 annotator per image"),
    (ReadOptions(Kind.BOUNDARIES, reads_regions=True), [ONE], [], "segmentations, 1 annotator"),
    (
        evolve(MASK, void=(128,)),
        [Evidence(Values.WHITE)],
        [],
        "masks (white is the object), void 128",
    ),
    (MASK, [Evidence(Values.UNIT)], [], "masks (1 is the object), 1 file"),
    (MASK, [Evidence(Values.GRAY)], [], "masks (gray above one half is the object), 1 file"),
    (ReadOptions(Kind.MASK, 0.3), [ONE], [], "masks (from 0.3 of white on is the object), 1 file"),
    (ReadOptions(Kind.INSTANCES), [ONE], [], "instance maps, 1 file"),
]


def test_labels_of_classes_are_refused_with_the_options_that_name_them(tmp_path):
    for folder in ("gt", "pred"):
        write(tmp_path / folder, "a", 3 * DISK + 9 * LINES, "npy-u1")
    words = "values from 0 to 12, .*contour.classes=NAME,NAME .segmentation.classes. if"
    refused(words, counted, tmp_path / "pred", tmp_path / "gt", metrics="contour")


@pytest.mark.parametrize(("side", "shown", "forms", "words"), WORDS)
def test_a_reading_in_words(side, shown, forms, words):
    assert words in side.describe(shown, Layout(), forms)


@pytest.mark.parametrize("form", ["table", "markdown", "latex", "json", "html"])
def test_every_table_says_what_its_files_were_read_as(form, tmp_path):
    from bsdsbench.tables.forms import render

    run = bb.evaluate_items([("a", SETS["sound"](0), [LINES])], workers=1)
    words = "Read as: predictions soft 8-bit maps, 1 file; truth boundaries, 1 annotator per image"
    assert run.read_as == words
    assert words.split(";")[0] in render(run.tables()[:1], form).replace("\\", "")
    run.save(tmp_path / "out")
    loaded = bb.Evaluation.load(tmp_path / "out")
    assert loaded.read_as == words
    assert words in (tmp_path / "out" / "result.json").read_text()


def two_runs():
    """Runs of two forms of the same maps."""
    soft = SETS["sound"](0)
    for name, drawn in (("eight", soft), ("sixteen", soft.astype(np.uint16) * 257)):
        yield bb.evaluate_items([("a", drawn, [LINES])], name=name, workers=1)


@pytest.mark.parametrize("what", ["compare", "means", "rules"])
def test_every_table_of_several_runs_says_it_of_each(what):
    from bsdsbench.comparison.method import Method, Spread
    from bsdsbench.comparison.method_tables import means_table
    from bsdsbench.diagnosis.causes import build_rules_tables

    runs = list(two_runs())
    methods = [Method(run.name, [run]) for run in runs]
    tables = {
        "compare": lambda: bb.compare(runs, n_boot=100).tables(),
        "means": lambda: [means_table(methods, Spread.SD, None)],
        "rules": lambda: build_rules_tables(runs),
    }[what]()
    assert len(tables) == {"compare": 3}.get(what, 1)
    truth = "1 file; truth boundaries, 1 annotator per image"
    words = (
        f"eight read as: predictions soft 8-bit maps, {truth}; "
        f"sixteen read as: predictions soft 16-bit maps, {truth}"
    )
    assert [table.reading for table in tables] == [words] * len(tables)


def test_a_check_and_a_threshold_of_another_run_say_it_too(tmp_path):
    from bsdsbench.comparison.gate import Baseline, check
    from bsdsbench.results.at_threshold import at_threshold_of

    run, _ = two_runs()
    Baseline.of(run).save(tmp_path / "base.json")
    verdict = check(run, tmp_path / "base.json")
    assert verdict.to_mapping()["reading"] == run.read_as != ""
    assert run.read_as in verdict.to_markdown().replace("\\", "")
    (table,) = at_threshold_of(run, run)
    assert table.reading == run.read_as


@pytest.mark.parametrize(("levels", "n_void"), [((0, 1, 255), 1), ((0, 1, 2, 3), 2), (range(5), 0)])
def test_many_values_of_a_mask_are_not_suggested_as_void(levels, n_void):
    values = np.array([[*levels]], np.uint8)
    options = ReadOptions(Kind.MASK, void_option="contour.ignore")
    fixes = options.suggest_fixes(tuple(map(float, levels)), values)
    values_of_void = [fix.value for fix in fixes if "contour.ignore" in str(fix)]
    assert [np.size(value) for value in values_of_void] == [n_void] * (n_void > 0)
