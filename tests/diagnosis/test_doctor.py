"""Every fault the doctor knows, planted in a copy of the sample; nothing on the clean sample."""

import shutil
from pathlib import Path

import imageio.v3 as iio
import numpy as np
import pytest
from click.testing import CliRunner
from scipy.io import loadmat, savemat

from bsdsbench.cli.verb_doctor import command
from bsdsbench.diagnosis import symptoms
from bsdsbench.diagnosis.doctor import JPEG, doctor
from bsdsbench.files.errors import DataError, PairingError
from bsdsbench.loaders.sample import DETECTORS, sample_ground_truth, sample_results
from bsdsbench.protocol.protocol import Protocol
from tests.helpers.runs import refused

ALL = sample_ground_truth()
RAW = "structure-tensor-raw"
CLEAN = "structure-tensor"
SIX = ("fruit1", "herd1", "herd2", "lake1", "lake2", "leaves1")


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


def change(folder, function, names="*.png"):
    """Replace pictures by what `function` makes of them."""
    for path in sorted(folder.glob(names)):
        iio.imwrite(path, function(iio.imread(path)), compress_level=1)


def only(findings):
    """The one finding there is."""
    assert len(findings) == 1, [f.line() for f in findings]
    return findings[0]


@pytest.mark.parametrize("method", [*DETECTORS, "watershed-ucm"])
@pytest.mark.slow
def test_silent_on_the_clean_sample(method):
    assert doctor(sample_results(method), ALL) == []


@pytest.mark.parametrize(
    "protocol",
    [
        Protocol.preset("bsds500").replace(nms=True),
        Protocol.preset("crispness-seval"),
        Protocol.preset("crispness-ceval"),
    ],
)
@pytest.mark.slow
def test_silent_on_raw_maps_under_a_protocol_for_raw_maps(protocol):
    assert doctor(sample_results(RAW), ALL, protocol) == []


def test_never_nmsed(small, six):
    found = only(doctor(small / RAW, six))
    assert (found.code, found.level, found.fix) == ("raw", "warning", "--nms")
    assert "fruit1.png" in found.files


@pytest.mark.parametrize("protocol", ["crispness-seval", "crispness-ceval"])
def test_already_thinned(protocol, small, six):
    found = only(doctor(small / CLEAN, six, Protocol.preset(protocol)))
    assert (found.code, found.level) == ("thinned", "warning")


@pytest.mark.parametrize("method", [*DETECTORS, RAW])
@pytest.mark.slow
def test_inverted(method, tmp_path, small, six):
    folder = Path(shutil.copytree(small / method, tmp_path / "pred"))
    change(folder, lambda a: 255 - a)
    found = only(doctor(folder, six))
    assert (found.code, found.level, found.fix) == ("inverted", "error", "--invert")
    right = Protocol.preset("bsds500").replace(invert=True, nms=method == RAW)
    assert doctor(folder, six, right) == []


def as_arrays(folder, function):
    for path in folder.glob("*.png"):
        np.save(path.with_suffix(".npy"), function(iio.imread(path)))
        path.unlink()


def rename(folder, function):
    for number, path in enumerate(sorted(folder.glob("*.png"))):
        path.rename(folder / function(number, path.stem))


FAULTS = {
    "inverted": (lambda f: change(f, lambda a: 255 - a, "fruit1.png"), ["fruit1.png"], "1 of 6"),
    "range": (lambda f: as_arrays(f, np.float32), 6, "divide by 255"),
    "zero": (lambda f: change(f, np.zeros_like, "herd1.png"), ["herd1.png"], "1 map with"),
    "saturated": (lambda f: change(f, lambda a: 0 * a + 255, "herd1.png"), ["herd1.png"], "1 map"),
    "transposed": (lambda f: change(f, np.transpose), 6, ""),
    "resized": (lambda f: change(f, lambda a: a[::2, ::2]), 6, "81 x 121 for an image of 161 x"),
    "sizes": (lambda f: change(f, lambda a: a[:-1, :-1], "*2.png"), 2, ""),
    "few-values": (lambda f: change(f, lambda a: a // 32 * 32), 6, ""),
    "split": (lambda f: rename(f, lambda k, _: f"other{k}.png"), None, "only 0 of 6 images"),
    "names": (lambda f: rename(f, lambda _, name: f"{name}_edge.png"), None, "'*_edge'"),
    "doubled": (
        *(lambda f: np.save(f / "lake1.npy", iio.imread(f / "lake1.png") / 255),),
        *(["lake1.npy", "lake1.png"], ""),
    ),
    "unreadable": (lambda f: (f / "lake1.png").write_bytes(b"none"), ["lake1.png"], ""),
}


@pytest.mark.parametrize("code", FAULTS)
def test_a_planted_fault_is_the_one_finding(pred, code, six):
    plant, files, words = FAULTS[code]
    plant(pred)
    found = only(doctor(pred, six, looked_at=100))
    assert (found.code, found.level) == (code, "warning" if code == "few-values" else "error")
    assert words in found.line()
    named = [Path(f).name for f in found.files]
    assert files is None or (len(named) if isinstance(files, int) else named) == files


def test_transposed_squares(tmp_path):
    preds, truths = tmp_path / "pred", tmp_path / "gt"
    preds.mkdir(), truths.mkdir()
    for path in sorted(sample_results(CLEAN).glob("*.png"))[:4]:
        iio.imwrite(preds / path.name, iio.imread(path)[:320, :320].T)
        marks = loadmat(ALL / f"{path.stem}.mat")["groundTruth"][0, 0]["Boundaries"][0, 0]
        iio.imwrite(truths / path.name, 255 * marks[:320, :320].astype(np.uint8))
    found = only(doctor(preds, truths, Protocol.preset("brind")))
    assert (found.code, len(found.files)) == ("transposed", 4)


@pytest.mark.parametrize("shift", [(2, 2), (0, 4), (-3, 0), (-8, 5)])
def test_off_by_some_pixels(pred, shift, six):
    change(pred, lambda a: np.roll(a, shift, (0, 1)))
    found = only(doctor(pred, six))
    assert (found.code, found.level) == ("shift", "warning")
    words = found.message.split()
    measured = [float(words[words.index(unit) - 1]) for unit in ("rows", "columns")]
    assert np.abs(np.array(measured) - shift).max() <= 0.75


@pytest.mark.parametrize("method", [*DETECTORS, RAW])
def test_no_jpeg_in_small_sound_maps(method):
    """Between a hundred blocks chance alone makes the ratio 1.9."""
    maps = [iio.imread(path) / 255 for path in sorted(sample_results(method).glob("*.png"))]
    crops = [soft[y : y + 96, x : x + 96] for soft in maps for y in (0, 160) for x in (0, 160)]
    assert max(map(symptoms.jpeg_ratio, crops)) <= JPEG


@pytest.mark.parametrize("method", [*DETECTORS, RAW])
@pytest.mark.parametrize("keep_suffix", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_jpeg(method, keep_suffix, tmp_path, small, six):
    """Saved as JPEG, or as JPEG and then as PNG."""
    folder = tmp_path / "pred"
    folder.mkdir()
    for path in (small / method).iterdir():
        data = iio.imwrite("<bytes>", iio.imread(path), extension=".jpg", quality=90)
        if keep_suffix:
            (folder / f"{path.stem}.jpg").write_bytes(data)
        else:
            iio.imwrite(folder / path.name, iio.imread(data), compress_level=1)
    found = only(doctor(folder, six, Protocol.preset("bsds500").replace(nms=method == RAW)))
    assert (found.code, found.level) == ("jpeg", "warning")
    assert len(found.files) == 6


def test_empty_annotator(pred, gt):
    edit_annotators(gt / "lake1.mat", lambda k, b: b * (k != 1))
    found = only(doctor(pred, gt))
    assert (found.code, found.level) == ("empty-annotator", "warning")
    assert found.files == ("lake1 annotator 2",)


def test_all_annotators_empty(pred, gt):
    edit_annotators(gt / "lake1.mat", lambda k, b: b * 0)
    found = only(doctor(pred, gt))
    assert (found.code, found.level, found.files) == ("empty-truth", "error", ("lake1.mat",))


def test_dark_ground_truth(tmp_path, pred, six):
    folder = tmp_path / "gt"
    folder.mkdir()
    for path in six.glob("*.mat"):
        marks = loadmat(path)["groundTruth"][0, 0]["Boundaries"][0, 0]
        iio.imwrite(folder / f"{path.stem}.png", np.where(marks, 0, 255).astype(np.uint8))
    found = only(doctor(pred, folder, Protocol.preset("brind")))
    assert (found.code, found.level) == ("gt-polarity", "error")
    right = Protocol.preset("brind").replace(gt_invert=True)
    assert doctor(pred, folder, right) == []


@pytest.mark.slow
def test_one_annotator_where_the_data_set_has_several(pred, gt):
    for path in gt.glob("*.mat"):
        cells = loadmat(path)["groundTruth"]
        savemat(path, {"groundTruth": cells[:, :1]})
    found = only(doctor(pred, gt))
    assert (found.code, found.level) == ("one-annotator", "warning")
    assert doctor(pred, gt, Protocol.preset("brind")) == []


def test_label_maps(pred, six):
    for path in sorted(pred.iterdir()):
        iio.imwrite(path, (iio.imread(path) > 40).astype(np.uint8))
    assert "faint" in {f.code for f in doctor(pred, six)}
    assert doctor(pred, six, pred_kind="labels") == []


@pytest.mark.parametrize("kind", ["gray", "labels"])
def test_ground_truth_that_is_no_boundary_map(pred, six, tmp_path, kind):
    folder = tmp_path / "gt"
    folder.mkdir()
    for path in six.glob("*.mat"):
        first = loadmat(path)["groundTruth"][0, 0]
        gray = np.maximum(200 * first["Boundaries"][0, 0], 3)
        picture = gray if kind == "gray" else first["Segmentation"][0, 0]
        iio.imwrite(folder / f"{path.stem}.png", picture.astype(np.uint8))
    brind = Protocol.preset("brind")
    found = doctor(pred, folder, brind)
    assert {(f.code, f.level) for f in found} == {("gt-values", "error")}
    assert "--set gt_threshold=0.5" in found[0].fix
    changes = {"gt_threshold": 0.5} if kind == "gray" else {"gt_kind": "labels"}
    assert doctor(pred, folder, brind.replace(**changes)) == []


@pytest.mark.slow
def test_missing_extra_and_the_split_file_that_mends(pred, tmp_path, six):
    (pred / "lake1.png").unlink()
    found = only(doctor(pred, six))
    assert (found.code, found.level, found.files) == ("missing", "error", ("lake1",))
    assert "--missing zero|skip" in found.fix
    shutil.copy(pred / "lake2.png", pred / "more.png")
    codes = {f.code: f.files for f in doctor(pred, six)}
    assert codes == {"missing": ("lake1",), "extra": ("more",)}
    split = tmp_path / "ids.txt"
    split.write_text("lake2\nherd1\n")
    assert doctor(pred, six, split_file=split) == []


def test_several_faults_at_once_errors_first(pred, gt):
    change(pred, lambda a: np.zeros_like(a), "herd1.png")
    change(pred, lambda a: a.T, "herd2.png")
    edit_annotators(gt / "lake1.mat", lambda k, b: b * (k != 0))
    found = doctor(pred, gt)
    assert [f.level for f in found] == ["error", "error", "warning"]
    assert {f.code for f in found} == {"transposed", "zero", "empty-annotator"}


def test_no_folder(tmp_path):
    refused("no such folder", doctor, tmp_path / "gone", ALL, error=PairingError)
    refused("no predictions", doctor, tmp_path, ALL, error=PairingError)


@pytest.mark.parametrize(("method", "status"), [(CLEAN, 0), (RAW, 0), ("inverted", 2)])
@pytest.mark.slow
def test_exit_status(method, status, pred, small, six):
    if method == "inverted":
        change(pred, lambda a: 255 - a)
    if method == RAW:
        pred = small / RAW
    result = CliRunner().invoke(
        command, [str(pred), "--gt", str(six)], standalone_mode=False, catch_exceptions=False
    )
    assert result.return_value == status
    assert ("--invert" in result.output) == (status == 2)
    assert ("nothing found" in result.output) == (method == CLEAN)
    assert "protocol bsds500 v1" in result.output


@pytest.mark.slow
def test_float_maps_of_hundredths(pred, six):
    for path in pred.glob("*.png"):
        soft = iio.imread(path) / 255
        np.save(path.with_suffix(".npy"), np.round(soft, 2))
        path.unlink()
    found = only(doctor(pred, six))
    assert (found.code, found.level) == ("grid-values", "warning")
    assert "25 of which differ from k/100" in found.message
    # other thresholds, or unrounded maps: nothing to say
    assert doctor(pred, six, Protocol.preset("bsds500").replace(thresholds=(0.255, 0.505))) == []
    for path in pred.glob("*.npy"):
        np.save(path, np.load(path) * 0.999)
    assert doctor(pred, six) == []


def test_share_of_hundredths_by_hand():
    values = np.array([[0.0, 1.0, 0.29, 0.57], [0.3, 0.123, 0.5001, 0.7]])
    assert symptoms.on_hundredths(values) == pytest.approx(4 / 6)
    assert symptoms.on_hundredths(values.astype(np.float32)) == pytest.approx(4 / 6)
    assert symptoms.on_hundredths(np.zeros((2, 3))) == 0


def test_values_of_hundredths_flip_at_23_thresholds():
    """MATLAB's linspace is above k/100 for 23 of the 99: a value of k/100 is off there."""
    thresholds = Protocol.preset("bsds500").threshold_array()
    assert (np.arange(1, 100) / 100 < thresholds).sum() == 23


@pytest.mark.slow
def test_level_ridges_under_nms(tmp_path, small, six):
    folder = Path(shutil.copytree(small / RAW, tmp_path / "pred"))
    soft = iio.imread(folder / "fruit1.png")
    rows = 120 * np.exp(-((np.arange(soft.shape[0]) - 60.0) ** 2) / 18)
    soft[40:80] = np.maximum(rows[40:80, None], 0).astype(np.uint8)
    iio.imwrite(folder / "fruit1.png", soft)
    found = [
        f
        for f in doctor(folder, six, Protocol.preset("bsds500").replace(nms=True), looked_at=100)
        if f.code == "level-ridges"
    ]
    assert only(found).files == ("fruit1.png",)
    assert symptoms.level_ridges(np.zeros((20, 20))) != symptoms.level_ridges(soft / 255.0)


def test_edges_that_are_answered_twice_are_a_finding(tmp_path):
    """Two lines two pixels apart for every edge: right many to one, half wrong one to one.

    ODS one to one is 2 P R / (P + R) with P 1/2 and R 1, 2/3; many to one it is 1.
    """
    for folder in ("pred", "gt"):
        (tmp_path / folder).mkdir()
    for k in range(5):
        gt = np.zeros((120, 160), np.uint8)
        gt[20:100, 40 + k], gt[20:100, 110 + k] = 255, 255
        pred = np.roll(gt, -1, 1) // 2 + np.roll(gt, 1, 1) // 2
        iio.imwrite(tmp_path / "gt" / f"im{k}.png", gt)
        iio.imwrite(tmp_path / "pred" / f"im{k}.png", pred + (pred > 0) * np.uint8(k))
    found = {f.code: f for f in doctor(tmp_path / "pred", tmp_path / "gt", "biped")}
    message = found["many-to-one"].message
    assert "ODS about 0.67 one to one, as the benchmark matches, 1.00 many to one" in message
    assert "--nms" in found["many-to-one"].fix


def masks(folder, found):
    """Ten images of one square each; the first `found` predictions have it, the others nothing."""
    for name in ("pred", "gt"):
        (folder / name).mkdir()
        for k in range(10):
            pixels = np.zeros((24, 24), np.uint8)
            pixels[6:15, 6:15] = name == "gt" or k < found
            iio.imwrite(folder / name / f"{k}.png", pixels)
    return folder / "pred", folder / "gt"


@pytest.mark.parametrize(
    ("found", "empty", "codes"),
    [(1, "skip", {"left-out"}), (10, "skip", set()), (1, "diagonal", set())],
)
def test_masks_that_distances_leave_out(found, empty, codes, tmp_path):
    protocol = Protocol.preset("masks").replace(options={"contour": {"empty": empty}})
    given = doctor(*masks(tmp_path, found), protocol, metric="contour")
    assert {f.code for f in given if f.level == "warning"} & {"left-out"} == codes


def test_the_kind_of_predictions_is_that_of_the_metric(pred, six):
    with pytest.raises(DataError, match=r"contour: takes .* not .labels"):
        doctor(pred, six, "masks", metric="contour", pred_kind="labels")
