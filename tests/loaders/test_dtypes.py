"""What numbers mean by their dtype: masks, gray, labels; one image never decides for itself."""

import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.files.errors import DataError, FileFormatError
from bsdsbench.loaders import Pair, load_ground_truth, load_prediction, read_prediction, read_truth
from bsdsbench.loaders.inputs import GroundTruth, Prediction, cut_map, whole_labels
from bsdsbench.metrics.contour import mask_iou
from bsdsbench.protocol.protocol import Protocol
from tests.helpers.runs import refused

DISK = np.hypot(*(np.indices((24, 30)) - 12)) < 7
MASKS = Protocol.preset("masks")


@pytest.fixture
def folders(tmp_path):
    """Writes truths and predictions of the same masks; gives the two folders."""

    def write(truths, preds=None):
        for side, maps in (("gt", truths), ("pred", preds or [255 * (m > 0) for m in truths])):
            (tmp_path / side).mkdir()
            for k, values in enumerate(maps):
                values = values.astype(np.uint8) if side == "pred" and preds is None else values
                np.save(tmp_path / side / f"{k}.npy", values)
        return tmp_path / "pred", tmp_path / "gt"

    return write


# --- masks


@pytest.mark.parametrize(
    "values",
    [np.uint8([[0, 2]]), np.uint8([[2, 128]]), np.uint8([[0, 3, 5]]), np.uint16([[0, 300]]),
     np.int64([[0, 9]]), np.int64([[-1, 0]]), np.array([[0, 3.0]]), np.array([[0, np.nan]])],
)  # fmt: skip
def test_a_mask_of_no_known_scale_is_refused(tmp_path, values):
    np.save(tmp_path / "a.npy", values)
    words = rf"a\.npy: mask: {values.dtype} with values from .* to .*, expected"
    pair = Pair("a", (), (tmp_path / "a.npy",))
    refused(words, read_truth, pair, "mask", Protocol(), error=FileFormatError)
    refused("mine: ", cut_map, values, (128, 128 * 257, 0.5), "mine")


@pytest.mark.parametrize("metric", ["saliency", "pixel"])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_noise_of_0_and_1_beside_masks_up_to_white(folders, metric, dtype):
    """Is refused, or with a threshold read by the scale of the dtype: a perfect score."""
    white = np.iinfo(dtype).max
    noise = np.zeros_like(DISK, dtype)
    noise[3, ::4] = 1
    given = folders([white * DISK.astype(dtype), noise], [255 * np.uint8(DISK), 0 * np.uint8(DISK)])
    proto = Protocol.preset("saliency" if metric == "saliency" else "deepcrack")
    proto = proto.replace(empty_gt="count", gt_threshold=None)
    refused("1: .* up to 1, that of 0 .*one scale", bb.evaluate, *given, proto, metrics=metric)
    run = bb.evaluate(*given, proto.replace(gt_threshold=0.5), metrics=metric, workers=1)
    score = run.score(metric)
    assert score.mae_mean == 0 if metric == "saliency" else score.ods.f == 1
    truths = [np.load(path) for path in sorted(given[1].iterdir())]
    items = [(str(k), 255 * np.uint8(DISK), t) for k, t in enumerate(truths)]
    refused("one scale", bb.evaluate_items, items, proto, metrics=metric, workers=1)


def test_a_set_of_masks_of_0_and_1_stays_one(folders):
    given = folders([DISK.astype(np.uint8), 0 * DISK.astype(np.uint8), DISK])
    run = bb.evaluate(*given, "saliency", metrics="saliency", workers=1)
    assert run.score("saliency").mae_mean == 0
    proto = Protocol.preset("deepcrack").replace(empty_gt="count")
    refused(r"0: .* below gt_threshold", bb.evaluate, *given, proto, metrics="pixel", workers=1)
    again = bb.evaluate(*given, proto.replace(gt_threshold=None), metrics="pixel", workers=1)
    assert again.score("pixel").ods.f == 1


def test_annotators_of_an_image_have_one_scale(tmp_path):
    for k, white in enumerate((1, 255)):
        np.save(tmp_path / f"a_{k}.npy", np.eye(5, dtype=np.uint8) * white)
    refused("one scale", load_ground_truth, sorted(tmp_path.iterdir()), error=FileFormatError)


@pytest.mark.parametrize("metric", ["contour", "segmentation", "saliency"])
def test_bool_masks_are_masks_everywhere(metric):
    proto = MASKS if metric != "saliency" else Protocol.preset("saliency")
    pred = DISK if metric != "saliency" else DISK.astype(float)
    run = bb.evaluate_items([("a", pred, DISK)], proto, metrics=metric, workers=1)
    stream = bb.StreamingEvaluator(proto, metrics=metric)
    stream.update(pred, DISK, image_id="a")
    assert run.records[0].counts[metric].equals(stream.compute().records[0].counts[metric])
    assert (GroundTruth("a", labels=DISK).labels == DISK).all()


def test_masks_are_called_masks():
    with pytest.raises(DataError) as caught:
        mask_iou(DISK, DISK * 3)
    assert "boundary" not in str(caught.value)


# --- labels


@pytest.mark.parametrize("labels", [[[0, 0, 7, -1]], [[0, 0, 7, 70001]], [[0, 2**40, 7, -1]]])
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_ids_are_kept_so_that_0_is_0(tmp_path, labels, dtype):
    np.save(tmp_path / "a.npy", np.array(labels, dtype))
    assert load_prediction(tmp_path / "a.npy", kind="labels").segs[0].tolist() == labels
    path = (tmp_path / "a.npy",)
    assert read_prediction(Pair("a", path, ()), "classes", (1, 4)).classes.tolist() == labels
    truth = read_truth(Pair("a", (), path), "classes", Protocol())
    assert (truth.labels.dtype.kind, truth.labels.tolist()) == ("i", labels)


def test_far_ids_score_as_near_ones(tmp_path):
    near = np.digitize(np.indices((20, 30))[1], (10, 20))
    far, truth = np.where(near, near * 10**6 - 1_500_000, 0), (near + 1) // 2
    found = []
    for seg in (near, far):
        np.save(tmp_path / "a.npy", seg)
        segs = load_prediction(tmp_path / "a.npy", kind="labels").segs
        found.append(bb.region_counts(Prediction("a", segs=segs), [truth]))
    assert found[0].equals(found[1])


@pytest.mark.parametrize("metric", ["contour", "segmentation"])
def test_float_classes_are_those_of_the_same_integers(metric):
    options = {"classes": ("a", "b"), "ignore": 255}
    proto = MASKS.replace(options={metric: options})
    labels = np.where(DISK, 1, 0)
    labels[:2] = 255
    for dtype in (np.uint8, np.float32):
        run = bb.evaluate_items([("a", labels.astype(dtype), labels)], proto, metrics=metric)
        assert run.records[0].counts[metric].equals(
            bb.evaluate_items([("a", labels, labels.astype(float))], proto, metrics=metric)
            .records[0].counts[metric]
        )  # fmt: skip
    for dtype in (int, float):
        wrong = DISK.astype(dtype) - 1
        refused("label -1", bb.evaluate_items, [("a", wrong, labels)], proto, metrics=metric)


@pytest.mark.parametrize("value", [0.5, np.nan, np.inf, 2.0**60])
def test_floats_that_are_no_labels(tmp_path, value):
    labels = np.array([[0, 1], [2, value]])
    refused("expected integer labels", whole_labels, labels, "x")
    np.save(tmp_path / "a.npy", labels)
    for kind in ("labels", "classes"):
        given = Pair("a", (tmp_path / "a.npy",), ())
        refused(r"a\.npy: .*integer labels", read_prediction, given, kind, (2, 2))
