"""The inputs of metrics: one form each, sizes, types; soft and binary maps at their limits."""

import pickle
from pathlib import Path

import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.errors import DataError, FileFormatError, ShapeError
from bsdsbench.images import (
    GroundTruth,
    Prediction,
    annotated_maps,
    binary_map,
    check_soft_map,
    is_binary,
    labels_to_integers,
    one_map,
)
from bsdsbench.loaders.pairing import Pair
from bsdsbench.loaders.readers import load_prediction, read_prediction, read_truth
from bsdsbench.loaders.reading import Kind, ReadOptions, binarise
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import Evidence, Values
from tests.helpers.runs import refused

DISK = np.hypot(*(np.indices((24, 30)) - 12)) < 7
MASKS = Protocol.preset("masks")
MAP = np.arange(12.0).reshape(3, 4) / 11
FORMS = {
    "soft": MAP,
    "ucm2": np.zeros((7, 9)),
    "segs": (MAP.astype(np.int32),),
    "classes": np.zeros((2, 3, 4)),
    "depth": MAP,
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_has_its_size_and_word(form):
    found = Prediction("a", **{form: FORMS[form]})
    assert (found.shape, found.form) == ((3, 4), {"soft": "float"}.get(form, form))
    words = {"soft": "soft maps", "segs": "segmentations"}  # in messages
    has = words.get(form, form)
    if form not in ("soft", "ucm2"):
        refused(f"^a: has {has}, expected soft maps$", found.boundary_map)
    for other in set(FORMS) - {form}:
        both = {form: FORMS[form], other: FORMS[other]}
        refused(f"has {', '.join(both)}, expected one of", Prediction, "a", **both)
        refused(f"^a: has {has}, expected {words.get(other, other)}$", getattr, found, other)


@pytest.mark.parametrize(
    ("dtype", "word"),
    [("u1", "soft8"), ("u2", "soft16"), ("b1", "binary"), ("f4", "float"), ("f8", "float")],
)
def test_the_word_of_a_soft_map(dtype, word):
    assert Prediction("a", soft=MAP.astype(dtype)).form == word


def test_the_map_of_a_ucm2_is_every_second_from_the_third_on():
    ucm2 = np.arange(63.0).reshape(7, 9) / 63
    found = Prediction("a", ucm2=ucm2).boundary_map()
    assert found.tolist() == [[ucm2[2 * r + 2, 2 * c + 2] for c in range(4)] for r in range(3)]
    assert found.flags.c_contiguous


@pytest.mark.parametrize(
    "given",
    [{"boundaries": (MAP > 0,)}, {"mask": MAP > 0}, {"labels": MAP.astype(int)},
     {"class_boundaries": np.zeros((2, 3, 4), bool)}, {}, {"photo": np.zeros((3, 4, 3), np.uint8)}],
)  # fmt: skip
def test_the_size_of_a_truth(given):
    expected = (0, 0) if given.keys() <= {"photo"} else (3, 4)
    assert GroundTruth("a", **given).shape == expected


@pytest.mark.parametrize(
    ("make", "given", "words"),
    [
        (Prediction, {"depth": MAP[0]}, "2 axes"),
        (Prediction, {"classes": MAP[0]}, "2 or 3 axes"),
        (Prediction, {"soft": MAP * 1j}, "numbers"),
        (Prediction, {"segs": (MAP,)}, "integers"),
        (Prediction, {"segs": (MAP > 0, None)}, "numbers"),
        (GroundTruth, {"boundaries": (MAP > 0, MAP[0])}, "2 axes"),
        (GroundTruth, {"labels": MAP}, "integers"),
        (GroundTruth, {"mask": np.ma.masked_less(MAP, 0.5)}, "without a mask"),
        (GroundTruth, {"class_boundaries": MAP}, "3 axes"),
        (GroundTruth, {"photo": np.zeros((3, 4, 3))}, "integers"),
    ],
)
def test_what_inputs_are_not(make, given, words):
    (name,) = given
    where = rf"(label map|{make.__name__}\.{name})"
    refused(rf"^{where}.*: .*expected .*{words}", make, "a", **given)


def test_label_maps_of_floats_are_whole_numbers():
    floats = np.array([[0.0, 7], [2**31, 1]])
    assert Prediction("a", segs=(floats,)).segs[0].tolist() == floats.tolist()
    assert GroundTruth("a", segmentations=(floats,)).segmentations[0].dtype == np.int64


@pytest.mark.parametrize("make", [Prediction, GroundTruth])
def test_an_id_is_text_and_parts_have_names(make):
    refused(rf"^{make.__name__}\.image_id: ", make, 7)
    refused(rf"^{make.__name__}\.sofd: expected one of ", make, "a", sofd=MAP)
    refused("has nothing, expected ", lambda: make("a").depth)


def test_a_path_may_be_text(tmp_path):
    pred = Prediction("a", "maps/a.png", soft=np.eye(9))
    truth = GroundTruth("a", (np.eye(9),), path="truth/a.png")
    assert (pred.path, truth.path) == (Path("maps/a.png"), Path("truth/a.png"))
    assert bb.evaluate_items([("a", pred, truth)], workers=1).boundary_score().ods.f == 1
    refused("Prediction.path: 5, expected a path", Prediction, "a", 5, soft=np.eye(9))


def test_inputs_say_in_a_line_what_they_hold():
    """A notebook shows neither pixels nor pages of them."""
    assert repr(Prediction("a", soft=np.zeros((3, 4)))) == "<Prediction 'a': soft float64 (3, 4)>"
    edges = np.eye(3, 4) > 0
    truth = GroundTruth("a", (edges, edges), path=Path("b.mat"), mask=edges)
    words = "boundaries 2 x bool (3, 4), mask bool (3, 4)"
    assert repr(truth) == f"<GroundTruth 'b.mat': {words}>"


def test_inputs_are_frozen_and_travel():
    given = GroundTruth(
        "a", (MAP > 0,), path=Path("a.png"), evidence=Evidence(Values.WHITE), mask=MAP > 0.5
    )
    with pytest.raises(AttributeError):
        given.mask = MAP
    found = pickle.loads(pickle.dumps(given)).replace(mask=None, depth=MAP)
    assert found.parts.keys() == {"boundaries", "depth"}
    assert (found.path, found.evidence, found.depth.tolist()) == (
        given.path,
        given.evidence,
        MAP.tolist(),
    )


def test_only_the_sizes_of_what_a_reader_has_checked_are_compared():
    parts = {"boundaries": (MAP > 0, MAP > 0.5), "mask": MAP > 0.5}
    found = GroundTruth.of_checked("a", None, Evidence(maps=2), parts)
    assert (found.shape, found.boundaries, found.mask) == ((3, 4), *parts.values())
    assert found.fingerprint == GroundTruth("a", **parts).fingerprint
    wrong = {**parts, "mask": MAP.T > 0.5}
    words = r"^GroundTruth\.mask: shape \(4, 3\), transposed, expected \(3, 4\)$"
    refused(words, GroundTruth.of_checked, "a", None, Evidence(), wrong, error=ShapeError)
    soft = Prediction.of_checked("a", None, Evidence(), {"soft": MAP})
    assert (soft.kind, soft.form, soft.soft is MAP) == ("soft", "float", True)


# --- soft maps


@pytest.mark.parametrize(
    ("given", "read"),
    [("?", "?"), ("u1", "u1"), ("u2", "u2"), (">u2", "u2"), ("f2", "f4"), ("f4", "f4"),
     (">f4", "f4"), ("f8", "f8"), (">f8", "f8"), ("g", "f8")],
)  # fmt: skip
def test_types_of_soft_maps(given, read):
    values = np.array([[0, 1, 1], [1, 0, 0]], given)
    found = check_soft_map(one_map(values, "mine"))
    assert (found.dtype, found.dtype.isnative) == (np.dtype(read), True)
    assert found.tolist() == values.tolist()
    assert np.shares_memory(found, values) or given != read
    assert check_soft_map(one_map(values[:0], "mine")).shape == (0, 3)


def test_values_beyond_the_range_by_rounding_are_clipped():
    for values in (np.array([[-1e-7, 1 + 1e-7]], "f4"), np.array([[-1e-300, 1 + 1e-12]])):
        assert check_soft_map(values).tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.zeros(3), r"\(3,\)"),
        (np.zeros((2, 3, 1)), r"\(2, 3, 1\)"),
        (np.array([[3, -7]]), "int64 with values from -7 to 3"),
        (np.zeros((0, 3), int), "int64, expected"),
        (np.zeros((2, 3), "u4"), "uint32 with values from 0 to 0"),
        (np.zeros((2, 3), complex), "complex128"),
        (np.array([[0, np.nan], [1, 0.5]]), "1 values are NaN or infinite, expected"),
        (np.array([[0, np.inf], [-np.inf, 0.5]]), "2 values are NaN or infinite"),
        (np.array([[0, 1.05]]), r"from 0 to 1\.05, .*overshot"),
        (np.array([[0, 1 + 2e-6]]), r"from 0 to 1\.000002, .*overshot"),
        (
            np.array([[-0.99, 0.5]]),
            r"\(x \+ 1\) / 2, if it is output of tanh; apply the sigmoid",
        ),
        (np.array([[-0.051, 1]]), r"from -0\.051 to 1, .*sigmoid"),
        (np.array([[0, 254.5]]), r"\(divide by 255, if that is white\)$"),
        (np.array([[0, 99.5]]), r"\(divide by 100 or 255, if that is white\)$"),
        (np.array([[0, 1000.5]]), r"\(divide by 65535, if that is white\)$"),
        (np.array([[0, 1.5]]), r"\(apply the sigmoid, if it is raw network output\)$"),
        (np.array([[0, 255.0]]), "by 255, .*; pred_kind='labels' for label maps"),
    ],
)
def test_what_is_no_soft_map(values, words):
    refused(rf"^mine: .*{words}", lambda: check_soft_map(one_map(values, "mine"), "mine"))


# --- binary maps


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.uint16, np.int64, np.float64])
def test_binary_maps_by_hand(dtype):
    for white in (1, 255, 65535):
        if np.array(white).astype(dtype) == white:
            for values in ([0, white], [white, white], [0, 0]):
                found = binary_map(np.array([values], dtype), "mine")
                assert (found.dtype, found.tolist()) == (bool, [[v > 0 for v in values]])
    others = [[-1, 0], [0, 0.5], [1, np.nan]] if np.dtype(dtype).kind == "f" else []
    for values in ([0, 2], [1, 255], [254, 255], *others) if dtype is not bool else ():
        refused(f"^mine: .*{np.dtype(dtype)}", binary_map, np.array([values], dtype), "mine")
    assert binary_map(np.zeros((0, 2), dtype), "mine").shape == (0, 2)
    refused("^mine: ", one_map, np.zeros(2, dtype), "mine", error=ShapeError)


def test_annotators_as_one_array():
    first, second = MAP > 0.5, (MAP < 0.2).astype(np.uint8) * 255
    expected = [(MAP > 0.5).tolist(), (MAP < 0.2).tolist()]
    assert annotated_maps(GroundTruth.of([first, second])).tolist() == expected
    assert annotated_maps(GroundTruth("a", (first, second))).tolist() == expected
    refused("no annotators", annotated_maps, GroundTruth("a"))
    words = r"\(3, 3\), expected \(3, 4\)"
    refused(words, GroundTruth, "a", [first, second[:, :3]], error=ShapeError)
    refused("^ground truth 2: ", GroundTruth, "a", [first, MAP])


# --- what numbers mean by their dtype: one image never decides for itself


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


@pytest.mark.parametrize(
    "values",
    [np.uint8([[0, 2]]), np.uint8([[2, 128]]), np.uint8([[0, 3, 5]]), np.uint16([[0, 300]]),
     np.int64([[0, 9]]), np.int64([[-1, 0]]), np.array([[0, 3.0]]), np.array([[0, np.nan]])],
)  # fmt: skip
def test_a_mask_of_no_known_scale_is_refused(tmp_path, values):
    np.save(tmp_path / "a.npy", values)
    words = rf"a\.npy: mask: {values.dtype} with .*values.*, expected"
    pair = Pair("a", (), (tmp_path / "a.npy",))
    refused(words, read_truth, pair, "mask", ReadOptions(Kind.MASK), error=FileFormatError)
    refused("mine: ", binarise, values, None, "mine")


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
    refused(
        r"1\.npy: .* up to 1, that of 0\.npy .*the same scale",
        bb.evaluate,
        *given,
        proto,
        metrics=metric,
    )
    run = bb.evaluate(*given, proto.replace(gt_threshold=0.5), metrics=metric, workers=1)
    score = run.score(metric)
    assert score.mae_mean == 0 if metric == "saliency" else score.ods.f == 1
    truths = [np.load(path) for path in sorted(given[1].iterdir())]
    items = [(str(k), 255 * np.uint8(DISK), t) for k, t in enumerate(truths)]
    refused("the same scale", bb.evaluate_items, items, proto, metrics=metric, workers=1)


@pytest.mark.parametrize("metric", ["contour", "segmentation"])
def test_masks_of_contours_have_one_scale_in_a_set(folders, metric):
    """Bytes of 0 and 1 beside 0 and 255 are noise or a mask; classes and instances are neither."""
    given = folders([255 * np.uint8(DISK), np.eye(24, 30, dtype=np.uint8)])
    refused(r"1\.npy: .*the same scale", bb.evaluate, *given, MASKS, metrics=metric, workers=1)
    items = [(str(k), DISK, np.load(path)) for k, path in enumerate(sorted(given[1].iterdir()))]
    refused("the same scale", bb.evaluate_items, items, MASKS, metrics=metric, workers=1)


@pytest.mark.parametrize("metric", ["contour", "segmentation", "saliency"])
def test_bool_masks_are_masks_everywhere(metric):
    proto = MASKS if metric != "saliency" else Protocol.preset("saliency")
    pred = DISK if metric != "saliency" else DISK.astype(float)
    stream = bb.StreamingEvaluator(proto, metrics=metric)
    stream.update(pred, DISK, image_id="a")
    counts = stream.compute().records[0].counts[metric]
    for truth in (DISK, GroundTruth("a", mask=DISK)):
        run = bb.evaluate_items([("a", pred, truth)], proto, metrics=metric, workers=1)
        assert run.records[0].counts[metric].equals(counts)


@pytest.mark.parametrize("labels", [[[0, 0, 7, -1]], [[0, 0, 7, 70001]], [[0, 2**40, 7, -1]]])
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_ids_are_kept_so_that_0_is_0(tmp_path, labels, dtype):
    np.save(tmp_path / "a.npy", np.array(labels, dtype))
    assert load_prediction(tmp_path / "a.npy", kind="labels").segs[0].tolist() == labels
    path = (tmp_path / "a.npy",)
    assert read_prediction(Pair("a", path, ()), "classes", (1, 4)).classes.tolist() == labels
    truth = read_truth(Pair("a", (), path), "classes", ReadOptions(Kind.CLASSES))
    assert (truth.labels.dtype.kind, truth.labels.tolist()) == ("i", labels)


@pytest.mark.filterwarnings("error")
def test_labels_in_half_precision():
    assert labels_to_integers(np.float16([[0, 2048]]), "x").tolist() == [[0, 2048]]


@pytest.mark.parametrize("value", [0.5, np.nan, np.inf, 2.0**60])
def test_floats_that_are_no_labels(tmp_path, value):
    labels = np.array([[0, 1], [2, value]])
    refused("expected integers", labels_to_integers, labels, "x")
    np.save(tmp_path / "a.npy", labels)
    for kind in ("labels", "classes"):
        given = Pair("a", (tmp_path / "a.npy",), ())
        refused(r"a\.npy: .*expected integers", read_prediction, given, kind, (2, 2))


@pytest.mark.parametrize(
    "image", [Prediction("a", soft=np.zeros((3, 4))), GroundTruth("a", mask=np.eye(3) > 0)]
)
def test_a_part_that_lacks_is_an_attribute_that_lacks(image):
    (part,) = image.parts.keys() - {"boundaries", "segmentations"}
    assert part in dir(image)
    assert hasattr(image, part)
    for lacking in ("depth", "lines"):
        assert lacking not in dir(image)
        assert not hasattr(image, lacking)
        assert getattr(image, lacking, None) is None
        with pytest.raises(DataError, match=f"^a: has .*{part}.*, expected {lacking}$"):
            getattr(image, lacking)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("top", "expected"), [(0.9, False), (1, True), (255, True), (250, False)])
def test_half_precision_ends_below_the_white_of_16_bits(top, expected):
    assert is_binary(np.float16([[0, top]])) == expected
