"""Every fault the doctor knows, planted in a copy of the sample; nothing on the clean sample."""

import re
import shutil
from pathlib import Path

import imageio.v3 as iio
import numpy as np
import pytest
from PIL import Image
from scipy.io import loadmat, savemat
from scipy.ndimage import gaussian_filter

import bsdsbench as bb
from bsdsbench.diagnosis import checks
from bsdsbench.diagnosis.checks import GAIN
from bsdsbench.diagnosis.doctor import doctor
from bsdsbench.diagnosis.measured_maps import JPEG_RATIO, _jpeg_ratio
from bsdsbench.loaders.sample import DETECTORS, sample_ground_truth, sample_results
from bsdsbench.protocol.protocol import Protocol
from tests.helpers.runs import changed, refused, write_maps

ALL = sample_ground_truth()
RAW = "structure-tensor-raw"
CLEAN = "structure-tensor"
SIX = ("fruit1", "herd1", "herd2", "lake1", "lake2", "leaves1")
BSDS, BRIND = Protocol.preset("bsds500"), Protocol.preset("brind")


def quarter(pixels):
    """The lower right."""
    return pixels[pixels.shape[0] // 2 :, pixels.shape[1] // 2 :]


def edit_annotators(path, function, parts=("Boundaries",)):
    cells = loadmat(path)["groundTruth"]
    for k in range(cells.shape[1]):
        for part in parts:
            cells[0, k][part][0, 0] = function(k, cells[0, k][part][0, 0])
    savemat(path, {"groundTruth": cells})


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The lower right of six images, one of them upright: maps by method, and their "gt"."""
    root = tmp_path_factory.mktemp("small")
    for folder in (*DETECTORS, RAW, "gt"):
        (root / folder).mkdir()
    for name in SIX:
        for method in (*DETECTORS, RAW):
            soft = iio.imread(sample_results(method) / f"{name}.png")
            iio.imwrite(root / method / f"{name}.png", quarter(soft))
        shutil.copy(ALL / f"{name}.mat", root / "gt")
        both = ("Boundaries", "Segmentation")
        edit_annotators(root / "gt" / f"{name}.mat", lambda _, pixels: quarter(pixels), both)
    return root


@pytest.fixture
def six(small):
    """Ground truth of the six images, not to be changed."""
    return small / "gt"


@pytest.fixture
def pred(small, tmp_path):
    return Path(shutil.copytree(small / CLEAN, tmp_path / "pred"))


@pytest.fixture
def gt(small, tmp_path):
    return Path(shutil.copytree(small / "gt", tmp_path / "gt"))


def rename(folder, function):
    for number, path in enumerate(sorted(folder.glob("*.png"))):
        path.rename(folder / function(number, path.stem))


def truths(folder, small, drawn):
    """Ground truth as pictures made of (boundaries, regions) of the first annotator."""
    folder.mkdir()
    for path in (small / "gt").glob("*.mat"):
        first = loadmat(path)["groundTruth"][0, 0]
        made = drawn(first["Boundaries"][0, 0], first["Segmentation"][0, 0])
        iio.imwrite(folder / f"{path.stem}.png", made.astype(np.uint8))
    return folder


def codes(*given, **options):
    return {f.code for f in doctor(*given, **options)}


def only(findings):
    """The one finding there is, which says what mends it."""
    assert len(findings) == 1, [f.line() for f in findings]
    assert findings[0].fix
    return findings[0]


@pytest.mark.slow
@pytest.mark.usefixtures("counted_once")
@pytest.mark.parametrize(
    ("method", "protocol"),
    [
        *((method, BSDS) for method in (*DETECTORS, "watershed-ucm")),
        (RAW, BSDS.replace(nms=True)),
        (RAW, Protocol.preset("crispness-seval")),
        (RAW, Protocol.preset("crispness-ceval")),
    ],
)
def test_silent_on_the_clean_sample(method, protocol):
    assert doctor(sample_results(method), ALL, protocol) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "protocol", "code", "fix"),
    [
        (RAW, BSDS, "raw", "nms=True"),
        (CLEAN, Protocol.preset("crispness-ceval"), "thinned", "give the raw maps"),
        (CLEAN, BSDS.replace(nms=True), "thinned", "nms=False"),
    ],
)
def test_maps_that_are_not_as_thick_as_the_protocol_expects(method, protocol, code, fix, small):
    found = only(doctor(small / method, small / "gt", protocol))
    assert (found.code, found.level) == (code, "warning")
    assert fix in found.fixes()
    assert "fruit1.png" in found.files
    assert protocol.nms or "nms=False" not in found.fixes()


@pytest.mark.slow
@pytest.mark.parametrize("method", [*DETECTORS, RAW])
def test_inverted(method, tmp_path, small, six):
    folder = Path(shutil.copytree(small / method, tmp_path / "pred"))
    changed(folder, lambda a: 255 - a)
    found = only(doctor(folder, six))
    assert (found.code, found.level, found.fixes()) == ("inverted", "error", "invert=True")
    assert doctor(folder, six, BSDS.replace(invert=True, nms=method == RAW)) == []
    found = only(doctor(small / method, six, BSDS.replace(invert=True, nms=method == RAW)))
    assert (found.code, found.fixes()) == ("inverted", "invert=False")


FAULTS = {
    "inverted": (lambda f: changed(f, lambda a: 255 - a, "fruit1.png"), ["fruit1.png"], "1 of 6"),
    "zero": (lambda f: changed(f, np.zeros_like, "herd1.png"), ["herd1.png"], "1 map with"),
    "saturated": (lambda f: changed(f, lambda a: 0 * a + 255, "herd1.png"), ["herd1.png"], "1 map"),
    "transposed": (lambda f: changed(f, np.transpose), 6, "6 of 6"),
    "resized": (lambda f: changed(f, lambda a: a[::2, ::2]), 6, "81 x 121 for an image of 161 x"),
    "few-values": (lambda f: changed(f, lambda a: a // 32 * 32), 6, ""),
    "split": (lambda f: rename(f, lambda k, _: f"other{k}.png"), None, "only 0 of 6 images"),
    "names": (lambda f: rename(f, lambda _, name: f"{name}_edge.png"), None, "'*_edge'"),
    "doubled": (
        *(lambda f: np.save(f / "lake1.npy", iio.imread(f / "lake1.png") / 255),),
        *(["lake1.npy", "lake1.png"], ""),
    ),
    "unreadable": (lambda f: changed(f, np.float32), 6, "divide by 255"),
    "mirrored": (lambda f: changed(f, np.fliplr), 6, "mirrored left to right"),
}


@pytest.mark.parametrize("code", FAULTS)
def test_a_planted_fault_is_the_one_finding(pred, code, six):
    plant, files, words = FAULTS[code]
    plant(pred)
    found = only(doctor(pred, six, looked_at=100))
    assert (found.code, found.level == "warning") == (code, code == "few-values")
    assert words in found.line()
    named = [Path(f).name for f in found.files]
    assert files is None or (len(named) if isinstance(files, int) else named) == files


def test_maps_of_other_images(pred, six):
    for a, b in (("herd1", "herd2"), ("lake1", "lake2")):
        (pred / f"{a}.png").rename(pred / "kept")
        (pred / f"{b}.png").rename(pred / f"{a}.png")
        (pred / "kept").rename(pred / f"{b}.png")
    found = only([f for f in doctor(pred, six) if f.code == "exchanged"])
    assert set(found.files) <= {f"{name}.png" for name in SIX}


@pytest.mark.parametrize("shift", [(1, 1), (2, 2), (0, 4), (-3, 0), (-8, 5)])
def test_off_by_some_pixels(pred, shift, six):
    changed(pred, lambda a: np.roll(a, shift, (0, 1)))
    found = only(doctor(pred, six))
    assert (found.code, found.level) == ("shift", "warning")
    measured = re.findall(r"([-+][0-9.]+) (?:rows|columns)", found.message)
    assert np.abs(np.array(measured, float) - shift).max() <= 0.75
    before, after = map(float, re.findall(r"from ([0-9.]+) to ([0-9.]+)$", found.message)[0])
    assert after - before >= GAIN


@pytest.mark.parametrize("names", [["stones2"], ["lake1", "stones1"]])
@pytest.mark.parametrize("method", DETECTORS)
def test_a_few_sound_maps_are_not_shifted_however_their_lines_happen_to_lie(
    method, names, tmp_path
):
    (tmp_path / "split.txt").write_text("\n".join(names))
    assert doctor(sample_results(method), ALL, split_file=tmp_path / "split.txt") == []


@pytest.mark.parametrize("method", DETECTORS)
def test_a_few_lines_in_tiny_crops_lie_anywhere(method, tmp_path):
    crop = np.s_[200:232, 100:132]
    for name in ("fruit1", "fruit2", "herd1", "herd2"):
        truth = bb.load_ground_truth(ALL / f"{name}.mat").boundaries
        soft = iio.imread(sample_results(method) / f"{name}.png")
        write_maps(tmp_path / "pred", {name: soft[crop]})
        write_maps(tmp_path / "gt", {name: [drawn[crop] for drawn in truth]})
    assert doctor(tmp_path / "pred", tmp_path / "gt", BSDS.replace(empty_gt="count")) == []


def test_the_curve_has_many_points_if_each_map_has_other_values(pred, six):
    for k, name in enumerate(SIX):
        changed(pred, lambda a, k=k: a // 64 * np.uint8(50 + k), f"{name}.png")
    assert doctor(pred, six) == []
    changed(pred, lambda a: a // 50 * np.uint8(50))
    assert codes(pred, six) == {"few-values"}


def test_images_without_an_edge_and_a_few_sparse_maps_are_sound(tmp_path):
    """Cracks: in two images is none, a third map has weak specks, and a fourth was a JPEG."""
    rng, maps, truth = np.random.default_rng(0), {}, {}
    for k in range(12):
        crack = np.zeros((96, 128), np.bool_)
        crack[48 + np.cumsum(rng.integers(-1, 2, 128)), np.arange(128)] = True
        soft = gaussian_filter(crack * 600.0, 1.5) + 2 * rng.random(crack.shape)
        maps[f"c{k}"], truth[f"c{k}"] = soft.clip(0, 255).astype("u1"), 255 * crack.astype("u1")
    truth["c0"] *= 0
    truth["c1"] *= 0
    maps["c0"] *= 0
    maps["c1"] = (rng.random((96, 128)) > 0.99).astype("u1")
    maps["c2"] = 9 * maps["c1"]
    jpeg = iio.imwrite("<bytes>", maps["c3"], extension=".jpg", quality=90)
    pred, gt = write_maps(tmp_path / "pred", maps), write_maps(tmp_path / "gt", truth)
    iio.imwrite(pred / "c3.png", iio.imread(jpeg))
    assert doctor(pred, gt, BSDS.replace(nms=True, empty_gt="count"), looked_at=100) == []


def resized(soft, shape):
    return np.asarray(Image.fromarray(soft).resize(shape[::-1], Image.BILINEAR))


def in_a_corner(soft):
    """Predicted at a smaller size and padded to that of the image: another shift everywhere."""
    small = resized(soft, (soft.shape[0] - 8, soft.shape[1] - 8))
    return np.pad(small, ((0, 8), (0, 8)))


def test_another_scale_is_no_shift(pred, six):
    changed(pred, in_a_corner)
    found = only(doctor(pred, six))
    assert (found.code, found.level) == ("scaled", "warning")
    rows, cols, rows_below, cols_right = map(float, re.findall(r"[-+][0-9.]+", found.message))
    assert min(rows - rows_below, cols - cols_right) > 1.5


@pytest.mark.parametrize(
    "blur",
    [
        lambda a: resized(resized(a, (a.shape[0] - 1, a.shape[1] - 1)), a.shape),
        lambda a: resized(resized(a, (a.shape[0] // 2, a.shape[1] // 2)), a.shape),
    ],
)
@pytest.mark.parametrize("method", [CLEAN, "canny"])
def test_no_cause_is_named_that_cannot_be_told(blur, method, small, tmp_path, six):
    """Maps that were resized and back are as blurred as others; and so says the documentation."""
    folder = Path(shutil.copytree(small / method, tmp_path / "pred"))
    changed(folder, blur)
    assert codes(folder, six) - {"raw"} == set()


@pytest.mark.parametrize(
    ("code", "plant", "options"),
    [
        ("inverted", lambda a: 255 - a, {}),
        ("shift", lambda a: np.roll(a, (3, 3), (0, 1)), {}),
        ("raw", lambda a: a, {"method": RAW}),
    ],
)
def test_a_remedy_that_does_not_help_is_not_named(
    code, plant, options, small, tmp_path, six, monkeypatch
):
    folder = Path(shutil.copytree(small / options.get("method", CLEAN), tmp_path / "pred"))
    changed(folder, plant)
    assert code in codes(folder, six)
    monkeypatch.setattr("bsdsbench.diagnosis.checks.GAIN", 1.0)
    assert code not in codes(folder, six)


def test_the_number_of_images_that_are_measured_is_a_number_from_one(pred, six):
    refused("looked_at: 0, expected a whole number from 1", doctor, pred, six, looked_at=0)
    assert doctor(pred, six, looked_at=1).n_measured == 1


@pytest.mark.parametrize("preset", ["crispness-ceval", "crispness-seval"])
def test_thin_lines_of_a_network_are_not_those_of_nms(preset, pred, six):
    changed(pred, lambda a: np.clip(gaussian_filter(a / 255, 0.5) + 0.01, 0, 1).astype("f4"))
    assert "thinned" not in codes(pred, six, Protocol.preset(preset))


@pytest.mark.parametrize("shape", [(16, 16), (61, 48), (96, 128)])
def test_noise_and_votes_of_small_maps_have_no_faults(shape, tmp_path):
    """Noise is nowhere like the truth, and votes are not rounded. Ids differ in case."""
    rng = np.random.default_rng(1)
    for folder in ("noise", "votes", "gt"):
        (tmp_path / folder).mkdir()
    for name in ("a", "A", "b"):
        cells = np.add.outer(np.arange(shape[0]) // 7, 5 * (np.arange(shape[1]) // 11))
        lines = [bb.seg2bdry(np.roll(cells, rng.integers(-2, 3, 2), (0, 1))) for _ in range(5)]
        np.save(tmp_path / "gt" / f"{name}.npy", lines)
        np.save(tmp_path / "votes" / f"{name}.npy", np.mean(lines, axis=0))
        np.save(tmp_path / "noise" / f"{name}.npy", rng.random(shape))
    assert codes(tmp_path / "noise", tmp_path / "gt") == set()
    assert codes(tmp_path / "votes", tmp_path / "gt") - {"few-values"} == set()


@pytest.mark.parametrize("method", [*DETECTORS, RAW])
def test_no_jpeg_in_small_sound_maps(method):
    """Between a hundred blocks chance alone makes the ratio 1.9."""
    maps = [iio.imread(path) / 255 for path in sorted(sample_results(method).glob("*.png"))]
    crops = [soft[y : y + 96, x : x + 96] for soft in maps for y in (0, 160) for x in (0, 160)]
    assert max(map(_jpeg_ratio, crops)) <= JPEG_RATIO


@pytest.mark.parametrize("method", [*DETECTORS, RAW])
def test_maps_that_were_jpeg(method, tmp_path, small, six):
    for path in (small / method).iterdir():
        data = iio.imwrite("<bytes>", iio.imread(path), extension=".jpg", quality=90)
        iio.imwrite(tmp_path / path.name, iio.imread(data), compress_level=1)
    found = only(doctor(tmp_path, six, BSDS.replace(nms=method == RAW)))
    assert (found.code, found.level, len(found.files)) == ("jpeg", "warning", 6)


def test_annotators_without_boundaries(pred, gt):
    edit_annotators(gt / "lake1.mat", lambda k, b: 0 * b)
    told = only(doctor(pred, gt))
    assert (told.code, told.level, told.files) == ("unreadable", "error", ("lake1.mat",))


@pytest.mark.parametrize(
    ("drawn", "code", "mended"),
    [
        (lambda b, _: np.where(b, 0, 255), "gt-polarity", {"gt_invert": True}),
        (lambda b, _: np.maximum(200 * b, 3), "unreadable", {"gt_threshold": 0.5}),
        (lambda _, regions: regions, "unreadable", {"gt_kind": "labels"}),
    ],
)
def test_ground_truth_in_another_form(drawn, code, mended, pred, small, tmp_path):
    folder = truths(tmp_path / "gt", small, drawn)
    found = doctor(pred, folder, BRIND)
    assert {(f.code, f.level) for f in found} == {(code, "error")}
    assert f"{next(iter(mended))}=" in found[0].fixes()
    assert doctor(pred, folder, BRIND.replace(**mended)) == []


@pytest.mark.slow
def test_one_annotator_where_the_data_set_has_several(pred, gt, small, tmp_path):
    for path in gt.glob("*.mat"):
        savemat(path, {"groundTruth": loadmat(path)["groundTruth"][:, :1]})
    assert only(doctor(pred, gt)).code == "one-annotator"
    assert doctor(pred, gt, BRIND) == []
    drawn = truths(tmp_path / "pictures", small, lambda boundaries, _: boundaries)
    assert doctor(pred, drawn) == []  # of a data set of one's own


def test_missing_extra_and_the_split_file_that_mends(pred, tmp_path, six):
    (pred / "lake1.png").unlink()
    found = only(doctor(pred, six))
    assert (found.code, found.level, found.files) == ("missing", "error", ("lake1",))
    assert "missing='zero'; missing='skip'" in found.fixes()
    shutil.copy(pred / "lake2.png", pred / "more.png")
    given = {f.code: f.files for f in doctor(pred, six)}
    assert given == {"missing": ("lake1",), "extra": ("more",)}
    (tmp_path / "ids.txt").write_text("lake2\nherd1\n")
    assert doctor(pred, six, split_file=tmp_path / "ids.txt") == []


def test_values_on_thresholds_matter_where_the_grid_has_them(pred, six):
    """MATLAB's linspace is above k/100 for 23 of the 99: a value of k/100 is off there."""
    assert (np.arange(1, 100) / 100 < BSDS.threshold_array()).sum() == 23
    changed(pred, lambda a: np.round(a / 255, 2))
    assert doctor(pred, six, BSDS.replace(thresholds=(0.255, 0.505))) == []
    assert codes(pred, six) == {"grid-values"}
    for change in (lambda a: a * 0.999, lambda a: np.round(255 * a) / 255):  # 51 / 255 is 0.2
        for path in pred.glob("*.npy"):
            np.save(path, change(np.load(path)))
        assert doctor(pred, six) == []


@pytest.mark.parametrize(("strong", "rule"), [(0.3, "bsds"), (0.0, "bsds"), (0.3, "endpoints")])
def test_a_note_says_where_the_curve_starts(tmp_path, strong, rule):
    """It is no finding, and the recall is that of the run's curve."""
    rng = np.random.default_rng(3)
    for side in ("gt", "pred"):
        (tmp_path / side).mkdir()
    for k in range(4):
        gt = np.zeros((60, 60), bool)
        gt[15 + k], gt[42 - k, 5:50] = True, True
        soft = np.where(rng.random(gt.shape) < strong, 1.0, rng.uniform(0.1, 0.8, gt.shape))
        np.save(tmp_path / "gt" / f"{k}.npy", gt)
        np.save(tmp_path / "pred" / f"{k}.npy", np.where(gt, soft, rng.uniform(0, 0.1, gt.shape)))
    protocol = bb.Protocol.preset("bsds500").replace(ap_rule=rule, thresholds=19)
    findings = bb.doctor(tmp_path / "pred", tmp_path / "gt", protocol)
    run = bb.evaluate(tmp_path / "pred", tmp_path / "gt", protocol, workers=1)
    start = run.boundary_score().curve.recall.min()
    assert not [finding for finding in findings if "curve" in finding.message]
    if start > 0.02 and rule == "bsds":
        assert f"starts at recall {start:.2f};" in findings.note
    else:
        assert findings.note == ""


@pytest.mark.parametrize("others", [[], ["lake1"]])
def test_a_split_of_unknown_images_is_an_error(pred, tmp_path, six, others):
    split = tmp_path / "split.txt"
    split.write_text("\n".join(["nowhere", "elsewhere", *others]))
    found = doctor(pred, six, split_file=split)
    (error,) = (f for f in found if f.code == "unknown")
    assert error.level == "error"
    assert error.files == ("elsewhere", "nowhere")
    assert error.message == f"2 of {2 + len(others)} ids in the split file have no ground truth"


def test_unsound_images_are_left_out_without_a_search_of_the_list():
    class Unsearchable(list):
        __contains__ = None

    images = [checks.ExaminedImage(name, name, "", set()) for name in "abc"]
    found = checks.Examination(None, BSDS, "soft", None)
    found.sound = images[:]
    found.report_images("zero", Unsearchable(images[:2]))
    assert found.sound == images[2:]


def test_a_set_without_any_score_is_a_finding(tmp_path):
    """All boundaries of classes are void in the truth."""
    for folder, drawn in (("gt", [0, 255, 1]), ("pred", [0, 1, 1])):
        (tmp_path / folder).mkdir()
        labels = np.repeat(np.array(drawn, np.uint8), 9)
        iio.imwrite(tmp_path / folder / "a.png", np.tile(labels, (30, 1)))
    options = {"classes": ["a", "b"], "ids": [0, 1], "ignore": 255}
    protocol = BSDS.replace(options={"semantic": options})
    found = only(doctor(tmp_path / "pred", tmp_path / "gt", protocol, metrics="semantic"))
    assert "no class has a ground-truth boundary" in found.message
