"""The inputs of metrics: one form each, sizes, types; soft and binary maps at their limits."""

import numpy as np
import pytest

from bsdsbench.files.errors import DataError, ShapeError
from bsdsbench.loaders.inputs import (
    GroundTruth,
    Prediction,
    annotated_maps,
    binary_map,
    same_shape,
    soft_map,
)
from tests.helpers.runs import refused

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
    assert found.shape == (3, 4)
    assert found.form == {"soft": "float"}.get(form, form)
    if form not in ("soft", "ucm2"):
        refused("has no single soft boundary map$", found.boundary_map)
    for other in set(FORMS) - {form}:
        words = "several forms, expected one of soft, ucm2, segs, classes, depth$"
        refused(words, Prediction, "a", **{form: FORMS[form], other: FORMS[other]})


@pytest.mark.parametrize(
    ("dtype", "word"),
    [("u1", "soft8"), ("u2", "soft16"), ("b1", "binary"), ("f4", "float"), ("f8", "float")],
)
def test_the_word_of_a_soft_map(dtype, word):
    assert Prediction("a", soft=MAP.astype(dtype)).form == word


def test_nothing_has_no_size():
    assert (Prediction("a").shape, Prediction("a").form) == ((0, 0), "")
    assert Prediction("a", segs=()).shape == (0, 0)
    assert GroundTruth("a").shape == (0, 0)


def test_the_map_of_a_ucm2_is_every_second_from_the_third_on():
    ucm2 = np.arange(63.0).reshape(7, 9) / 63
    found = Prediction("a", ucm2=ucm2).boundary_map()
    assert found.tolist() == [[ucm2[2 * r + 2, 2 * c + 2] for c in range(4)] for r in range(3)]
    assert found.flags.c_contiguous


@pytest.mark.parametrize(
    "given",
    [
        {"boundaries": (MAP > 0,)},
        {"segmentations": (MAP.astype(int),)},
        {"labels": MAP.astype(int)},
        {"mask": MAP > 0},
        {"depth": MAP},
        {"class_boundaries": np.zeros((2, 3, 4), bool)},
    ],
)
def test_the_size_of_a_truth(given):
    assert GroundTruth("a", **given).shape == (3, 4)


@pytest.mark.parametrize(
    ("make", "given", "words"),
    [
        (Prediction, {"soft": MAP[0]}, r"Prediction\.soft: shape \(4,\), expected 2 axes$"),
        (Prediction, {"ucm2": MAP[None]}, r"ucm2: shape \(1, 3, 4\), expected 2 axes$"),
        (Prediction, {"depth": MAP[0]}, r"depth: shape \(4,\), expected 2 axes$"),
        (Prediction, {"classes": MAP[0]}, r"classes: shape \(4,\), expected 2 or 3 axes$"),
        (Prediction, {"angles": MAP[None]}, r"angles: shape \(1, 3, 4\), expected 2 axes$"),
        (Prediction, {"soft": [[1]]}, r"Prediction\.soft: .*, expected an array of numbers$"),
        (Prediction, {"soft": MAP * 1j}, r"Prediction\.soft: .*, expected an array of numbers$"),
        (Prediction, {"segs": (MAP,)}, r"Prediction\.segs 1: .*, expected integer labels$"),
        (Prediction, {"segs": (MAP > 0, None)}, r"Prediction\.segs 2: .*expected integer labels$"),
        (GroundTruth, {"boundaries": (MAP, MAP[0])}, r"boundaries 2: shape \(4,\), expected 2 ax"),
        (GroundTruth, {"labels": MAP}, r"label map: .*, expected integer labels$"),
        (GroundTruth, {"mask": MAP[None]}, r"GroundTruth\.mask: shape \(1, 3, 4\), expected"),
        (GroundTruth, {"valid": MAP[None]}, r"GroundTruth\.valid: shape \(1, 3, 4\), expected 2"),
        (GroundTruth, {"class_boundaries": MAP}, r"class_boundaries: shape \(3, 4\), expected 3"),
        (GroundTruth, {"photo": np.zeros((3, 4), np.uint8)}, r"photo: shape \(3, 4\), expected 3"),
        (GroundTruth, {"photo": np.zeros((3, 4, 3))}, r"GroundTruth\.photo: .*expected"),
        (GroundTruth, {"angles": (MAP[0],)}, r"GroundTruth\.angles 1: shape \(4,\), expected 2 ax"),
        (GroundTruth, {"mask": np.ma.masked_less(MAP, 0.5)}, r"GroundTruth\.mask: .*mask"),
    ],
)
def test_what_inputs_are_not(make, given, words):
    refused(words, make, "a", **given)


@pytest.mark.parametrize("make", [Prediction, GroundTruth])
def test_an_id_is_text(make):
    refused(rf"^{make.__name__}\.image_id: .*, expected text$", make, 7)


# --- soft maps


@pytest.mark.parametrize(
    ("given", "read"),
    [("?", "?"), ("u1", "u1"), ("u2", "u2"), (">u2", "u2"), ("f2", "f4"), ("f4", "f4"),
     (">f4", "f4"), ("f8", "f8"), (">f8", "f8"), ("g", "f8")],
)  # fmt: skip
def test_types_of_soft_maps(given, read):
    values = np.array([[0, 1, 1], [1, 0, 0]], given)
    found = soft_map(values)
    assert found.dtype == np.dtype(read)
    assert found.dtype.isnative
    assert found.tolist() == values.tolist()
    if given == read:
        assert np.shares_memory(found, values)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.zeros((2, 3, 1)), r"shape \(2, 3, 1\), expected \(rows, columns\)$"),
        (np.array([[3, -7]]), r"dtype int64 with values from -7 to 3, expected uint8, uint16"),
        (np.zeros((0, 3), int), "dtype int64, expected uint8, uint16, bool or floats"),
        (np.zeros((2, 3), "u4"), "dtype uint32 with values from 0 to 0, expected uint8"),
        (
            np.zeros((2, 3), complex),
            "an array of complex128 and shape .*, expected an array",
        ),
        (np.array([[0, np.nan], [1, 0.5]]), "1 of 4 values are NaN or infinite, expected floats"),
        (np.array([[0, np.inf], [-np.inf, 0.5]]), "2 of 4 values are NaN or infinite, expected"),
        (np.array([[0, 1.05]]), r"values from 0 to 1\.05, .*\(overshoot of a resize\?"),
        (np.array([[-0.05, 1]]), r"values from -0\.05 to 1, .*\(overshoot of a resize\?"),
        (np.array([[-0.051, 1]]), r"\(raw network output\? apply the sigmoid\)$"),
        (np.array([[-0.05, 1.051]]), r"\(raw network output\? apply the sigmoid\)$"),
        (np.array([[-1e-300, 1]]), r"\(overshoot of a resize\?"),
        (np.array([[0, 1.051]]), r"\(0\.\.255 as float\? divide by 255\)$"),
        (np.array([[0, 255.0]]), r"\(0\.\.255 as float\? divide by 255\)$"),
        (np.array([[0, 255.5]]), r"\(0\.\.65535 as float\? divide by 65535\)$"),
        (np.array([[0, 65535.0]]), r"\(0\.\.65535 as float\? divide by 65535\)$"),
        (np.array([[0, 65535.5]]), r"\(scale to 0\.\.1\)$"),
    ],
)
def test_what_is_no_soft_map(values, words):
    refused(rf"^mine: .*{words}", soft_map, values, "mine")


def test_a_soft_map_may_be_empty_or_have_both_ends():
    assert soft_map(np.zeros((0, 3))).shape == (0, 3)
    assert soft_map(np.array([[0.0, 1.0]])).tolist() == [[0, 1]]
    refused("^prediction: shape", soft_map, np.zeros(3))


# --- binary maps


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.array([[False, True]]), [0, 1]),
        (np.uint8([[0, 1]]), [0, 1]),
        (np.uint8([[1, 1]]), [1, 1]),
        (np.uint8([[0, 255]]), [0, 1]),
        (np.uint8([[255, 255]]), [1, 1]),
        (np.int64([[0, 1]]), [0, 1]),
        (np.array([[0.0, 1.0]]), [0, 1]),
        (np.uint16([[1, 0]]), [1, 0]),
        (np.uint16([[0, 255]]), [0, 1]),
        (np.int64([[0, 65535]]), [0, 1]),
    ],
)
def test_binary_maps_by_hand(values, expected):
    found = binary_map(values, "mine")
    assert found.dtype == bool
    assert found.view(np.uint8).tolist() == [expected]


@pytest.mark.parametrize(
    "values",
    [np.uint8([[0, 2]]), np.uint8([[1, 255]]), np.uint8([[254, 255]]),
     np.int64([[-1, 0]]), np.array([[0, 0.5]]), np.array([[1, np.nan]])],
)  # fmt: skip
def test_what_is_no_binary_map(values):
    refused(rf"^mine: .*{values.dtype}", binary_map, values, "mine")


def test_sizes_of_binary_maps():
    assert binary_map(np.zeros((0, 3), np.uint8), "mine").shape == (0, 3)
    words = r"^mine: shape \(3,\), expected \(rows, columns\)$"
    refused(words, binary_map, np.zeros(3), "mine", error=ShapeError)


def test_annotators_as_one_array():
    first, second = MAP > 0.5, (MAP < 0.2).astype(np.uint8) * 255
    expected = [(MAP > 0.5).tolist(), (MAP < 0.2).tolist()]
    assert annotated_maps([first, second]).tolist() == expected
    assert annotated_maps(GroundTruth("a", (first, second))).tolist() == expected
    refused("^ground truth: no annotators, expected at least one$", annotated_maps, [])
    words = r"^ground truth: shapes \(3, 4\) and \(3, 3\), expected one$"
    refused(words, annotated_maps, [first, second[:, :3]], error=ShapeError)
    refused("^ground truth 2: values other", annotated_maps, [first, MAP], error=DataError)


def test_one_size():
    same_shape((3, 4), (3, 4))
    for given, hint in (((4, 3), ", transposed"), ((3, 5), ""), ((4, 4), "")):
        words = rf"^prediction: shape \({given[0]}, {given[1]}\){hint}, expected \(3, 4\)$"
        refused(words, same_shape, given, (3, 4), error=ShapeError)
    refused(r"^mask: shape", same_shape, (1, 1), (3, 4), "mask", error=ShapeError)
