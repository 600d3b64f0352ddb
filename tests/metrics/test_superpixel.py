"""Superpixel measures on cases counted by hand, and against plain loops."""

import math
import warnings

import numpy as np
import pytest
from scipy.ndimage import binary_dilation
from skimage.segmentation import find_boundaries

import bsdsbench as bb
from bsdsbench.errors import ShapeError
from bsdsbench.metrics import superpixel as sp
from tests.helpers.counting import counts_of, score_of
from tests.helpers.runs import refused

# n = [[4, 2], [0, 3], [0, 3]]; a = 6, 3, 3; b = 4, 8; 3 x 4 pixels
SEG = np.array([[1, 1, 1, 7], [1, 1, 1, 7], [3, 3, 3, 7]])
GT = np.array([[5, 5, 2, 2], [5, 5, 2, 2], [2, 2, 2, 2]])


def test_measures_by_hand():
    found = sp.measures(SEG, GT)
    assert (found["ue"], found["asa"]) == ((2 + 2) / 12, (4 + 3 + 3) / 12)
    levin = sp.measures(GT, SEG)["ue_levin"]  # both regions meet the first, one the others
    assert levin == pytest.approx(((12 - 6) / 6 + 2 * (8 - 3) / 3) / 3)
    gt = np.zeros((7, 10), int)
    gt[:, 5:] = 1  # boundary: columns 4 and 5, 14 pixels
    seg = np.zeros((7, 10), int)
    seg[:3, 6:] = 1  # boundary: rows 0-2 of columns 5 and 6, rows 2 and 3 from column 6 on
    assert sp.measures(seg, gt)["recall"] == pytest.approx(3 / 14)
    assert sp.measures(gt, gt)["recall"] == 1
    assert sp.measures(gt, np.zeros_like(gt))["recall"] == 0


def test_boundary_recall_is_within_the_radius():
    """0.0025 as a float32 is less: of 600 pixels it is 1.4999999 of them, of 900 it is 2."""
    seg, gt = np.kron(np.random.default_rng(0).integers(0, 2, (2, 45, 60)), np.ones((1, 8, 8), int))
    for maps, radius in (((seg, gt), 1), ((seg.repeat(2, 0), gt.repeat(2, 0)), 2)):
        found, wanted = (find_boundaries(m, 1, "thick") for m in maps)
        near = binary_dilation(found, np.ones((2 * radius + 1,) * 2))
        assert sp.measures(*maps)["recall"] == (near & wanted).sum() / wanted.sum()


def test_boundary_recall_radius_of_every_size():
    """round(0.0025f * diagonal) by exact fractions: 0.0025f is 10737418 / 2^32."""
    for h in range(1, 900, 7):
        for w in (h, 120, 160, 321, 480, 481, 640, 800, 1024):
            r = sp._recall_radius((h, w))
            below, above = (2 * r - 1) * 2**31, (2 * r + 1) * 2**31
            square = 10737418**2 * (h * h + w * w)
            assert max(below, 0) ** 2 <= square < above**2


def test_compactness_by_hand():
    square = np.kron([[1, 2], [3, 4]], np.ones((5, 5), int))
    assert sp.compactness(square) == pytest.approx(math.pi / 4)
    # areas 6, 3, 3 with perimeters 10, 8, 8
    value = (6 * 24 * math.pi / 100 + 2 * 3 * 12 * math.pi / 64) / 12
    assert sp.compactness(SEG) == pytest.approx(value)


def test_explained_variation():
    image = np.array([[0, 0, 0, 10], [0, 0, 0, 10], [4, 5, 6, 10]])
    mean = image.mean()
    explained = 6 * mean**2 + 3 * (10 - mean) ** 2 + 3 * (5 - mean) ** 2
    share = explained / ((image - mean) ** 2).sum()
    for picture in (image, np.stack([image] * 3, axis=2).astype(np.uint8)):
        assert sp.explained_variation(SEG, picture) == pytest.approx(share)
    assert sp.explained_variation(np.arange(12).reshape(3, 4), image) == 1
    assert sp.explained_variation(SEG, np.full((3, 4), 7)) == 0


def test_maps_and_pictures_have_one_shape_and_labels_are_integers():
    for measure in (sp.measures, sp.explained_variation):
        refused("expected", measure, SEG, GT.T, error=ShapeError)
    shape = "^image: shape .*expected"
    refused(shape, sp.explained_variation, SEG, np.zeros((4, 3, 3)), error=ShapeError)
    refused("expected integers", sp.compactness, SEG / 2)
    refused("image: NaN or infinite", sp.explained_variation, SEG, np.where(SEG == 1, np.nan, 0))


def test_without_a_picture_there_is_no_explained_variation():
    pair = bb.Prediction("a", segs=(SEG,)), bb.GroundTruth("a", segmentations=(GT,))
    counts = counts_of("superpixel", *pair)
    assert np.isnan(counts.variation)
    assert np.isnan(score_of("superpixel", counts).variation)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64])
def test_labels_that_ran_out_are_refused_with_the_option_that_numbers_their_pieces(dtype):
    """600 squares of 4 x 4 pixels, numbered modulo 256."""
    wrapped = np.kron(np.arange(600).reshape(20, 30) % 256, np.ones((4, 4), int)).astype(dtype)
    line = r"256 labels up to 255 in 600 pieces .*save 16.*\(superpixel.components=8 "
    refused(line, sp.superpixels, wrapped, sp.SuperpixelOptions())
    assert np.array_equal(sp.superpixels(wrapped, sp.SuperpixelOptions(components=0)), wrapped)
    made = sp.superpixels(wrapped, sp.SuperpixelOptions(components=8))
    assert np.unique(made).size == 600


@pytest.mark.parametrize(("components", "count"), [(0, 2), (4, 4), (8, 3)])
def test_a_label_in_pieces_is_one_superpixel_unless_its_pieces_are_asked_for(components, count):
    labels = np.array([[5, 2, 2], [2, 5, 2], [2, 2, 2], [5, 2, 2]])
    made = sp.superpixels(labels, sp.SuperpixelOptions(components=components))
    assert np.unique(made).size == count
    pieces = bb.Protocol(options={"superpixel": {"components": components}})
    pred, truth = bb.Prediction("p", segs=(labels,)), bb.GroundTruth("g", (), (labels,))
    assert counts_of("superpixel", pred, truth, pieces).n_pieces == max(count, 3)


@pytest.mark.parametrize("n_labels", [11, 20, 48])
@pytest.mark.parametrize("components", [None, 0, 8])
def test_labels_that_are_used_again_are_warned_of(n_labels, components):
    """The squares of a map numbered modulo n, one pixel cut off its superpixel: by hand."""
    labels = np.kron(np.arange(48).reshape(6, 8) % n_labels, np.ones((5, 5), int))
    labels[2, 2] = 4
    truth = np.arange(40) // 20 * np.ones((30, 1), int)
    truth = bb.GroundTruth("a", (bb.seg2bdry(truth),), (truth,))
    items = [(k, bb.Prediction(k, segs=(labels,)), truth) for k in "ab"]
    given = {} if components is None else {"components": components}
    protocol = bb.Protocol.preset("bsds500").replace(options={"superpixel": given})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = bb.evaluate_items(items, protocol, metrics="superpixel", workers=1)
    lines = [str(warning.message) for warning in caught]
    again = components is None and n_labels < 48
    assert [r"labels of 2 of 2 maps lie in several pieces each [a, b]" in x for x in lines] == [
        True
    ] * again
    assert all("components=8" in x and "components=0" in x for x in lines)
    score = run.score("superpixel")
    assert score.n_pieces == 49
    assert score.n_superpixels == (49 if components == 8 else n_labels)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int64])
def test_a_few_labels_beyond_8_bits_are_refused(dtype):
    """270 squares modulo 256: fourteen labels have two pieces."""
    wrapped = np.kron(np.arange(270).reshape(18, 15) % 256, np.ones((4, 4), int)).astype(dtype)
    line = r"256 labels up to 255 in 270 pieces .*superpixel.components=8 .*superpixel.components=0"
    refused(line, sp.superpixels, wrapped, sp.SuperpixelOptions())


@pytest.mark.parametrize("segments", [60, 255, 256, 400])
@pytest.mark.parametrize("smooth", [0, 3])
def test_sound_superpixels_are_counted_as_they_are(segments, smooth):
    """SLIC and Felzenszwalb's regions are in one piece each, also 256 of them in 8 bits."""
    from scipy.ndimage import gaussian_filter
    from skimage.segmentation import felzenszwalb, slic

    picture = np.random.default_rng(segments).random((90, 120, 3))
    picture = gaussian_filter(picture, (smooth, smooth, 0)) if smooth else picture
    made = [slic(picture, segments, compactness=c, start_label=0) for c in (0.01, 1, 30)]
    made.append(felzenszwalb(picture, scale=20))
    grid = np.kron(np.arange(256).reshape(16, 16), np.ones((5, 7), int)).astype(np.uint8)
    for labels in (*made, grid):
        kept = sp.superpixels(labels, sp.SuperpixelOptions())
        assert sp.number_pieces(kept, 8).max() == np.unique(labels).size
        assert kept is labels or (kept == labels).all()


def test_the_pieces_of_labels_are_counted():
    truth = bb.GroundTruth("a", (GT == 2,), (GT,))
    run = bb.evaluate_items([("a", SEG, truth)], metrics="superpixel", workers=1)
    assert run.scores()["superpixel"]["n_pieces"] == 3
    assert run.verdict() == []


def test_boundaries_are_no_regions():
    items = [("a", SEG, GT == 2)]
    refused("boundaries, expected label maps", bb.evaluate_items, items, metrics="superpixel")
