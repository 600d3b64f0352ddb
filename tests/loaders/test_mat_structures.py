"""Structures of .mat files: crack sets, empty fields, HoVer-Net, several variables, odd axes."""

import numpy as np
import pytest
from scipy.io import savemat

import bsdsbench as bb
from bsdsbench.errors import DataError
from bsdsbench.loaders.labels import seg2bdry
from bsdsbench.loaders.pairing import Pair
from bsdsbench.loaders.readers import (
    load_ground_truth,
    load_prediction,
    read_prediction,
    read_truth,
)
from bsdsbench.loaders.reading import Kind, ReadOptions

MASK = np.zeros((24, 32), bool)
MASK[4:20, 8:14] = True
OUTLINE = MASK.copy()
OUTLINE[5:19, 9:13] = False
CELLS = np.zeros((24, 32), np.int32)
CELLS[2:8, 2:8], CELLS[12:20, 10:20] = 1, 255


def cell(*structs):
    made = np.empty((1, len(structs)), object)
    made[0, :] = structs
    return made


def saved(path, **variables):
    path.parent.mkdir(parents=True, exist_ok=True)
    savemat(path, variables)
    return path


def of_kind(path, kind):
    return read_truth(
        Pair("a", (), (path,)), kind, ReadOptions(Kind.MASK if kind == "mask" else Kind.CLASSES)
    )


def score(tmp_path, metric, truth, pred, **variables):
    """Two images of the same form, scored from files as a run does."""
    for k in "ab":
        saved(tmp_path / "g" / f"{k}.mat", **truth)
        path = tmp_path / "p" / f"{k}.mat"
        saved(path, **(variables or {"pred": pred}))
    run = bb.evaluate(tmp_path / "p", tmp_path / "g", metrics=metric, workers=1)
    return run.score(metric)


def cracks(first, boundaries=OUTLINE, dtype=np.uint8):
    return {"Segmentation": (MASK + first).astype(dtype), "Boundaries": boundaries.astype(np.uint8)}


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float64])
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("in_cell", [False, True])
def test_the_mask_of_a_crack_set_is_its_segmentation(tmp_path, in_cell, first, dtype):
    struct = cracks(first, dtype=dtype)
    path = saved(tmp_path / "a.mat", groundTruth=cell(struct) if in_cell else struct)
    truth = load_ground_truth(path)
    np.testing.assert_array_equal(truth.mask, MASK)
    np.testing.assert_array_equal(truth.boundaries, [OUTLINE])  # alone, as officially
    np.testing.assert_array_equal(of_kind(path, "mask").mask, MASK)
    np.testing.assert_array_equal(of_kind(path, "classes").labels, MASK + 1)


def test_a_crack_without_boundaries_keeps_its_mask(tmp_path):
    labels = (MASK + 1).astype(np.uint8)
    truth = load_ground_truth(saved(tmp_path / "a.mat", groundTruth={"Segmentation": labels}))
    np.testing.assert_array_equal(truth.mask, MASK)
    np.testing.assert_array_equal(truth.boundaries, [seg2bdry(MASK)])
    np.testing.assert_array_equal(truth.segmentations, [labels])


@pytest.mark.parametrize(
    ("metric", "key", "best", "white"),
    [
        ("pixel", "ods.f", 1, 255),
        ("aiu", "aiu", 1, 255),
        ("saliency", "iou_mean", 1, 255),
        ("calibration", "ece", 0, 255),
        ("contour", "iou", 1, 1),
        ("segmentation", "mean_iou", 1, 1),
    ],
)
def test_a_perfect_mask_of_a_crack_is_perfect(tmp_path, metric, key, best, white):
    found = score(tmp_path, metric, {"groundTruth": cracks(1)}, MASK * np.uint8(white))
    assert found.numbers()[key] == best, found.numbers()


def test_pictures_without_a_crack_are_of_the_same_form(tmp_path):
    nothing = {"Segmentation": np.ones(MASK.shape, np.uint8), "Boundaries": 0 * OUTLINE}
    for struct in (nothing, cell(nothing)):
        path = saved(tmp_path / "a.mat", groundTruth=struct)
        assert not of_kind(path, "mask").mask.any()
        assert not load_ground_truth(path, empty=True).mask.any()


def test_segmentations_of_bsds_are_no_masks(tmp_path):
    regions = np.repeat(np.arange(1, 5), 8)[None] * np.ones((24, 1), int)
    disk = {"Segmentation": MASK + 1, "Boundaries": seg2bdry(MASK)}
    for struct in (
        cell(disk),
        cell(disk, disk),
        cell({"Segmentation": regions, "Boundaries": seg2bdry(regions)}),
        {"Segmentation": regions, "Boundaries": seg2bdry(regions)},
    ):
        path = saved(tmp_path / "a.mat", groundTruth=struct)
        assert "mask" not in load_ground_truth(path).parts
        with pytest.raises(DataError, match=r"a\.mat: .*groundTruth, expected one array"):
            of_kind(path, "mask")


@pytest.mark.parametrize("empty", [np.zeros((0, 0)), np.zeros((0, 5), np.uint8)])
@pytest.mark.parametrize("several", [1, 3])
def test_an_empty_segmentation_is_none(tmp_path, empty, several):
    structs = [{"Boundaries": OUTLINE, "Segmentation": empty}] * several
    path = saved(tmp_path / "g" / "a.mat", groundTruth=cell(*structs))
    truth = load_ground_truth(path)
    np.testing.assert_array_equal(truth.boundaries, [OUTLINE] * several)
    saved(tmp_path / "p" / "a.mat", segs=cell(MASK.astype(np.int32)))
    with pytest.raises(DataError, match=r"segmentation, expected") as caught:
        bb.evaluate(tmp_path / "p", path.parent, metrics="region", workers=1)
    assert len(caught.value.problems) == 1


def test_what_is_missing_in_one_annotation_is_not_read(tmp_path):
    """As in files of several images with different numbers of annotators."""
    regions, none = np.where(MASK, 2, 1).astype(np.uint16), np.zeros((0, 0))
    drawn = cell({"Boundaries": none, "Segmentation": regions}, {"Boundaries": OUTLINE}, None)
    drawn[0, 2] = none
    path = saved(tmp_path / "a.mat", groundTruth=drawn)
    np.testing.assert_array_equal(load_ground_truth(path).boundaries, [seg2bdry(regions), OUTLINE])
    with pytest.raises(DataError, match="no annotators"):
        load_ground_truth(saved(path, groundTruth=drawn[:, 2:]))
    drawn[0, 2] = "not drawn"  # what cannot be read is no missing annotation
    with pytest.raises(DataError, match="annotation 3: None, expected Boundaries or Segmentation"):
        load_ground_truth(saved(path, groundTruth=drawn))


def test_the_instances_of_hover_net_are_its_inst_map(tmp_path):
    beside = {"inst_type": np.ones((2, 1)), "inst_centroid": np.ones((2, 2)), "inst_uid": [[1, 2]]}
    path = saved(tmp_path / "a.mat", inst_map=CELLS.astype(float), type_map=CELLS > 0, **beside)
    np.testing.assert_array_equal(of_kind(path, "classes").labels, CELLS)
    np.testing.assert_array_equal(
        read_prediction(Pair("a", (path,), ()), "classes", CELLS.shape).classes, CELLS
    )
    np.testing.assert_array_equal(load_prediction(path, kind="labels").segs, [CELLS])


def test_several_variables_are_read_or_named(tmp_path):
    path = saved(tmp_path / "a.mat", mask=MASK * 1, scale=[[2.0]], centres=[[1.0, 2.0]], who="me")
    np.testing.assert_array_equal(of_kind(path, "mask").mask, MASK)
    path = saved(tmp_path / "a.mat", mask=MASK * 1, other=MASK * 1)
    for kind in ("mask", "classes"):
        with pytest.raises(DataError, match=r"a\.mat: has variables mask, other, expected one arr"):
            of_kind(path, kind)


@pytest.mark.parametrize("values", [MASK.astype(np.uint8), CELLS])
@pytest.mark.parametrize("axes", [(None,), (..., None)])
def test_axes_of_length_one_are_dropped(tmp_path, values, axes):
    given = values[axes]
    np.save(tmp_path / "a.npy", given)
    if values is not CELLS:
        np.testing.assert_array_equal(of_kind(tmp_path / "a.npy", "mask").mask, MASK)
    else:
        np.testing.assert_array_equal(of_kind(tmp_path / "a.npy", "classes").labels, CELLS)


def test_a_mask_with_an_axis_too_many_is_scored(tmp_path):
    for side in "pg":
        (tmp_path / side).mkdir()
        np.save(tmp_path / side / "a.npy", MASK[None].astype(np.uint8))
    assert bb.evaluate(tmp_path / "p", tmp_path / "g", metrics="contour").score("contour").iou == 1
