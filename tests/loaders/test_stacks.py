"""Stacks of maps where one map is meant: refused by what they hold, with the ways to one map."""

import numpy as np
import pytest
from scipy.io import savemat

import bsdsbench as bb
from bsdsbench.errors import DataError
from tests.helpers.runs import refused

OBJECT = np.zeros((24, 31), bool)
OBJECT[6:18, 8:20] = True
PROBABILITIES = np.stack([np.where(OBJECT, 0.1, 0.9), np.where(OBJECT, 0.9, 0.1)])
SOFT = ["boundary", "pixel", "saliency", "calibration", "topology", "ccq", "aiu", "crispness"]


def write(folder, suffix, array):
    folder.mkdir(exist_ok=True)
    path = folder / f"a.{suffix}"
    if suffix == "npy":
        np.save(path, array)
    elif suffix == "npz":
        np.savez(path, scores=array)
    else:
        savemat(path, {"scores": array})
    return path


def usual(metric):
    return bb.Protocol.preset(bb.metrics.registry.get(metric).default_protocol)


@pytest.mark.parametrize("suffix", ["npy", "npz", "mat"])
@pytest.mark.parametrize("metric", SOFT)
@pytest.mark.parametrize(("axis", "one"), [(0, r"array\[k\]"), (-1, r"array\[:, :, k\]")])
def test_a_soft_stack_names_the_channel_and_the_argmax(tmp_path, suffix, metric, axis, one):
    stack = np.moveaxis(PROBABILITIES, 0, axis).astype(np.float32)
    write(tmp_path / "p", suffix, stack), write(tmp_path / "g", "npy", OBJECT)
    words = rf"a.{suffix}: .*2 maps along axis {axis % 3}: {one}.*argmax\(array, axis={axis % 3}\)"
    refused(words, bb.evaluate, tmp_path / "p", tmp_path / "g", usual(metric), metrics=metric,
            workers=1)  # fmt: skip
    refused(words.partition(".*")[2], bb.evaluate_items, [("a", stack, OBJECT)], usual(metric),
            metrics=metric, workers=1)  # fmt: skip


def test_one_channel_is_a_map(tmp_path):
    soft = np.where(OBJECT, 0.9, 0.1)
    for k, array in enumerate((soft, soft[None], soft[:, :, None])):
        write(tmp_path / f"p{k}", "npy", array), write(tmp_path / "g", "npy", OBJECT)
        run = bb.evaluate(tmp_path / f"p{k}", tmp_path / "g", metrics="pixel", workers=1)
        assert run.score("pixel").ods.f == 1


def test_functions_of_arrays_say_the_same():
    refused(r"2 maps along axis 0", bb.boundary_counts, PROBABILITIES, [OBJECT])
    refused(r"2 maps along axis 2", bb.nms, np.moveaxis(PROBABILITIES, 0, 2))


# ---- channels as label maps ----------------------------------------------------------------------


def channels(n, white, dtype, invert):
    labels = np.arange(31) * n // 31 * np.ones((24, 1), int)
    hot = np.stack([labels == k for k in range(n)]) != invert
    return (hot * white).astype(dtype)


@pytest.mark.parametrize("form", ["npy", "mat", "npz", "segs", "files", "items"])
@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize(("white", "dtype"), [(1, "u1"), (255, "u1"), (65535, "u2"), (1, "f4")])
@pytest.mark.parametrize("invert", [False, True])
def test_channels_of_classes_are_no_label_maps(tmp_path, form, n, white, dtype, invert):
    maps = channels(n, white, dtype, invert)
    if form == "items" and dtype == "f4":
        return  # label maps are whole numbers
    write(tmp_path / "g", "npy", OBJECT)
    if form == "items":
        call = bb.load_prediction, [write(tmp_path, "npy", maps)]
    elif form == "files":
        paths = []
        for k, drawn in enumerate(maps):
            paths.append(write(tmp_path / f"{k}", "npy", drawn))
        call = bb.load_prediction, paths, "a"
    elif form == "segs":
        cells = np.empty((1, n), object)
        cells[0, :] = list(maps)
        savemat(tmp_path / "a.mat", {"segs": cells})
        call = bb.load_prediction, tmp_path / "a.mat"
    else:
        call = bb.load_prediction, write(tmp_path, form, maps)
    words = rf"a\.\w+: {n} maps that add up to one .*label maps.*argmax"
    refused(words, *call, kind="labels")
    if form in ("npy", "mat", "npz"):  # of annotators
        refused(words, bb.load_ground_truth, *call[1:], kind="labels")


def test_label_maps_of_several_thresholds_are_read(tmp_path):
    """Finer and finer regions; one region at each level; two levels of two regions."""
    fine = np.arange(31) // 4 * np.ones((24, 1), int)
    ones = np.ones_like(fine)
    for levels in ([fine, fine // 2, fine // 4], [ones, ones], [ones * 0, ones], [OBJECT] * 2,
                   [OBJECT, ones, ones]):  # fmt: skip
        path = write(tmp_path, "npy", np.array(levels, np.uint8))
        assert len(bb.load_prediction(path, kind="labels").segs) == len(levels)
    path = write(tmp_path, "npy", fine[..., None].astype(np.uint8))
    assert np.array_equal(bb.load_prediction(path, kind="labels").segs, [fine])


def test_a_refusal_of_arrays_names_the_image():
    hot = np.stack([OBJECT, ~OBJECT])
    with pytest.raises(DataError, match=r"^town: 2 maps that add up to one"):
        bb.evaluate_items([("town", OBJECT * 0.5, hot)], workers=1)


# ---- an axis of length one -----------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["npy", "npz", "mat", "items"])
@pytest.mark.parametrize("metric", [*SOFT, "contour", "segmentation", "instances"])
@pytest.mark.filterwarnings("ignore:.*filled areas:bsdsbench.errors.InputWarning")
def test_an_axis_of_length_one_is_none(tmp_path, suffix, metric):
    """Whichever it is, on either side: the scores are those of (H, W)."""
    soft, plain, how = metric in SOFT, (24, 31), {"metrics": metric, "workers": 1}
    maps = {"p": OBJECT * (0.9 if soft else 1), "g": OBJECT}
    maps = {side: drawn.astype(np.float32 if soft else np.uint8) for side, drawn in maps.items()}
    scores = set()
    shapes = [(plain, plain)]
    for longer in ((1, *plain), (*plain, 1)):
        shapes += [(longer, plain), (plain, longer), (longer, longer)]
    for number, (of_pred, of_gt) in enumerate(shapes):
        pred, gt = maps["p"].reshape(of_pred), maps["g"].reshape(of_gt)
        if suffix == "items":
            run = bb.evaluate_items([("a", pred, gt)], usual(metric), **how)
        else:
            folders = [
                write(tmp_path / f"{side}{number}", suffix, drawn).parent
                for side, drawn in (("p", pred), ("g", gt))
            ]
            run = bb.evaluate(*folders, usual(metric), **how)
        scores.add(repr(run.score(metric).to_mapping()))
    assert len(scores) == 1


@pytest.mark.parametrize("axis", [1, 2])
def test_maps_whose_number_is_not_the_first_axis(tmp_path, axis):
    """Also more than a usual number of annotators, and label maps of a few thresholds."""
    stack = np.moveaxis(np.stack([OBJECT] * 20), 0, axis)
    path = write(tmp_path / "g", "npy", stack)
    words = (
        rf"shape .*expected the annotators first, \(20, 24, 31\) \(np.moveaxis\(array, {axis}, 0"
    )
    refused(words, bb.load_ground_truth, path)
    np.savez(tmp_path / "a.npz", segs=stack.take(range(8), axis).astype(np.uint8))
    refused("expected the maps first", bb.load_prediction, tmp_path / "a.npz")
    assert (
        len(bb.load_ground_truth(write(tmp_path / "g", "npy", stack.swapaxes(0, axis))).boundaries)
        == 20
    )


@pytest.mark.parametrize("shape", [(100, 64, 64), (30, 28, 28), (20, 16, 30)])
def test_label_maps_may_be_more_than_the_rows_of_an_image(tmp_path, shape):
    np.savez(tmp_path / "a.npz", segs=np.zeros(shape, np.uint8))
    assert np.shape(bb.load_prediction(tmp_path / "a.npz").segs) == shape


def test_a_contour_map_of_double_size_says_its_name(tmp_path):
    doubled = np.kron(OBJECT, np.ones((2, 2)))
    (
        write(tmp_path / "p", "npy", np.pad(doubled, ((0, 1), (0, 1)))),
        write(tmp_path / "g", "npy", OBJECT),
    )
    words = (
        r"a\.npy: shape \(49, 63\), expected \(24, 31\) \(.*double size: name its variable ucm2\)"
    )
    refused(words, bb.evaluate, tmp_path / "p", tmp_path / "g", workers=1)
    with pytest.raises(bb.DataError) as caught:  # a saliency map is none
        bb.evaluate(tmp_path / "p", tmp_path / "g", metrics="saliency", workers=1)
    assert "ucm2" not in str(caught.value)


def test_truth_values_as_other_integers_are_refused_with_the_way_to_save_them(tmp_path):
    path = write(tmp_path / "p", "npy", OBJECT.astype(np.int64))
    refused(r"int64 with values from 0 to 1, .*\(save 0 and 1 as bool; ", bb.load_prediction, path)


def test_what_a_metric_misses_in_a_file_is_said_of_that_file(tmp_path):
    write(tmp_path / "g", "npy", OBJECT)
    np.savez(tmp_path / "p.npz", segs=OBJECT[None].astype(np.uint8))
    (tmp_path / "p").mkdir()
    (tmp_path / "p.npz").rename(tmp_path / "p" / "a.npz")
    words = r"a\.npy: no segmentation, expected one label map or more"
    refused(words, bb.evaluate, tmp_path / "p", tmp_path / "g", metrics="region", workers=1)
