"""Class maps against plain loops, Pillow's bicubic filter, and cases counted by hand."""

import numpy as np
import pytest
from PIL import Image
from scipy import ndimage

import bsdsbench as bb
from bsdsbench.errors import DataError, ShapeError
from bsdsbench.metrics import semantic
from bsdsbench.metrics.semantic import SemanticOptions, _prepare_classes, class_boundaries
from bsdsbench.protocol.protocol import Protocol
from tests.helpers.counting import counts_of
from tests.helpers.runs import refused
from tests.reference import contours, thinning
from tests.reference import semantic as slow

TWO = SemanticOptions(classes=("cat", "dog"), first=1)


def semantic_counts(pred, gt, protocol, labels=None):
    """Of label maps, or boundaries with labels beside them."""
    parts = {"labels": gt} if gt.ndim == 2 else {"labels": labels, "class_boundaries": gt}
    pair = bb.Prediction("a", classes=pred), bb.GroundTruth("a", **parts)
    return counts_of("semantic", *pair, protocol)


def prepared(pred, params, **parts):
    return _prepare_classes(pred, bb.GroundTruth("a", **parts), params)


def regions(seed, shape, count=3):
    """Blobs of the labels 0 .. count - 1."""
    rng = np.random.default_rng(seed)
    fields = [ndimage.gaussian_filter(rng.standard_normal(shape), 4) for _ in range(count)]
    return np.argmax(fields, axis=0).astype(np.uint8)


def soft_boundaries(seed, labels, count=2):
    """Blurred, displaced outlines with noise inside and out: (C, H, W) uint8."""
    rng = np.random.default_rng(seed)
    maps = []
    for k in range(1, count + 1):
        outline = ndimage.morphological_gradient(np.uint8(labels == k), size=3)
        strength = ndimage.gaussian_filter(np.roll(outline, 1, 1).astype(float), 1.2)
        noise = ndimage.gaussian_filter(rng.random(labels.shape), 1)
        strength = strength / max(strength.max(), 1e-9) + 0.9 * noise
        maps.append((255 * np.clip(strength, 0, 1)).astype(np.uint8))
    return np.stack(maps)


@pytest.mark.parametrize("radius", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_boundaries_are_those_of_the_disk(seed, radius):
    labels = regions(seed, (23, 31))
    labels[:, -4:] = 255
    found = class_boundaries(labels, SemanticOptions(("cat", "dog"), 1, radius=radius))
    for k in (0, 1):
        expected = slow.disk_boundary(labels == k + 1, labels != 255, radius)
        assert np.array_equal(found[k], expected)


def test_without_a_radius_a_pixel_differs_from_the_next_ones():
    labels = regions(4, (23, 31))
    found = class_boundaries(labels, SemanticOptions(("cat", "dog"), 1, radius=0))
    assert np.array_equal(found, [contours.side(labels == k) for k in (1, 2)])


@pytest.mark.parametrize("radius", [0, 2])
def test_instances_add_the_boundary_of_each(radius):
    """Of those whose number is large enough: from 1 on unless said."""
    labels = np.zeros((16, 24), np.uint8)
    labels[3:13, 4:20] = 1
    instances = np.zeros(labels.shape, np.uint16)
    instances[3:13, 4:12], instances[3:13, 12:20] = 1, 9
    params = SemanticOptions(("cat", "dog"), 1, radius=radius)
    plain, found = class_boundaries(labels, params), class_boundaries(labels, params, instances)
    one, nine = (class_boundaries((instances == v).astype(np.uint8), params)[0] for v in (1, 9))
    assert np.array_equal(found[0], plain[0] | one | nine)
    between = {0: [11], 2: [10, 11, 12, 13]}[radius]
    assert np.flatnonzero((found[0] & ~plain[0])[8]).tolist() == between
    assert not found[1].any()
    params = SemanticOptions(("cat", "dog"), 1, radius=radius, instance_from=2)
    assert np.array_equal(class_boundaries(labels, params, instances)[0], plain[0] | nine)


def test_labels_may_have_gaps_and_several_be_ignored():
    labels = np.zeros((9, 12), np.uint8)
    labels[:, 4:8], labels[:, 8:] = 7, 11
    params = SemanticOptions(("road", "wall"), ids=(7, 11), ignore=(2, 3))
    found = class_boundaries(labels, params)
    assert np.flatnonzero(found[0].all(axis=0)).tolist() == [3, 7]
    assert np.flatnonzero(found[1].all(axis=0)).tolist() == [7]
    labels[:, 3] = 2  # ignored: the pair is dropped
    assert np.flatnonzero(class_boundaries(labels, params)[0].all(axis=0)).tolist() == [7]
    labels[:, 3] = 5  # no class, yet another label than road
    assert np.flatnonzero(class_boundaries(labels, params)[0].all(axis=0)).tolist() == [3, 7]
    labels[0, 0] = 255
    with pytest.raises(DataError, match=r"label 255, expected 7 \.\. 11, 0 or 2, 3 \(ignored\)"):
        class_boundaries(labels, params)


@pytest.mark.parametrize("interior", ["kill", "kill_first", "keep"])
@pytest.mark.parametrize("thin", [True, False])
def test_counts_of_the_sbd_benchmark_threshold_by_threshold(interior, thin):
    thresholds = (0.2, 0.35, 0.5, 0.8)
    base = Protocol.preset("sbd").to_mapping()
    base["options"]["semantic"] |= {"classes": ["cat", "dog"], "interior": interior}
    protocol = Protocol.from_mapping(
        base | {"name": "pets", "thresholds": thresholds, "max_dist": 0.05, "thin": thin}
    )
    moved = 0
    for seed in range(2):
        labels = regions(seed, (41, 57))
        truth = class_boundaries(labels, TWO)
        maps = soft_boundaries(seed, labels)
        found = semantic_counts(maps, truth, protocol, labels=labels)
        for k in range(2):
            args = maps[k], truth[k], labels == k + 1, thresholds, 0.05, thin, interior
            expected = slow.counts(*args)
            assert np.array_equal(found["matches"][k], expected)
            other = slow.counts(*args[:-1], "kill_first" if interior == "kill" else "kill")
            moved += int((expected != other).sum())
    # the order matters where there is thinning, and only there
    assert (moved > 0) == (thin or interior == "keep")


def test_nothing_is_killed_where_the_class_has_no_boundary():
    """A class that fills the image has a region and no boundary."""
    labels = np.ones((12, 17), np.uint8)
    soft = np.zeros((2, 12, 17), np.uint8)
    soft[0, 6, 3:9] = 200
    protocol = Protocol(thresholds=(0.5,), options={"semantic": TWO}).replace(
        options={"semantic": {"interior": "kill"}}
    )
    assert semantic_counts(soft, labels, protocol).total_pred[0].tolist() == [6]


def test_the_border_is_cropped_and_the_tolerance_is_that_of_what_is_left():
    labels = regions(5, (40, 60))
    maps = soft_boundaries(5, labels)
    crop = SemanticOptions(TWO.classes, 1, border=5)
    protocol = Protocol(thresholds=(0.4, 0.6), max_dist=0.02, options={"semantic": crop})
    plain = Protocol(thresholds=(0.4, 0.6), max_dist=0.02, options={"semantic": TWO})
    truth = class_boundaries(labels, TWO)
    expected = semantic_counts(maps[:, 5:-5, 5:-5], truth[:, 5:-5, 5:-5], plain)
    found = semantic_counts(maps, labels, protocol)
    assert found.equals(expected)


def test_half_resolution_of_labels_and_of_boundaries():
    """MATLAB's imresize(.., 0.5, 'nearest') takes the second of two pixels."""
    labels = regions(7, (40, 61))
    maps = np.zeros((2, 40, 61), np.uint8)
    even = labels[:, :60]
    thin = SemanticOptions(TWO.classes, 1, radius=1, thin_gt=True, scale=0.5, resize="bicubic")
    _, truth, left = prepared(maps[:, :, :60], thin, labels=even)
    drawn = class_boundaries(even[1::2, 1::2], SemanticOptions(TWO.classes, 1, radius=1))
    assert np.array_equal(left, even[1::2, 1::2])
    assert np.array_equal(truth, np.stack([thinning.thin(b) for b in drawn]))
    raw = SemanticOptions(
        TWO.classes, 1, radius=2, scale=0.5, scaled="boundaries", resize="bicubic"
    )
    soft, truth, _ = prepared(maps[:, :, :60], raw, labels=even)
    full = class_boundaries(even, SemanticOptions(TWO.classes, 1, radius=2))
    assert np.array_equal(truth, full[:, 1::2, 1::2])
    assert soft.shape == truth.shape == (2, 20, 30)


def imresize_nearest(size, scale):
    """imresize's positions by its definition: the box of width 1 over a mirrored axis."""
    mirrored = [*range(size), *range(size)[::-1]]
    for x in range(1, int(np.ceil(scale * size)) + 1):
        u = x / scale + 0.5 * (1 - 1 / scale)
        weights = {i: -0.5 <= u - i < 0.5 for i in range(int(u) - 3, int(u) + 4)}
        (hit,) = [i for i, on in weights.items() if on]
        yield mirrored[(hit - 1) % (2 * size)]


@pytest.mark.slow
def test_half_resolution_of_odd_sizes():
    for size in range(1, 200):
        for scale in (0.5, 0.25, 1 / 3, 0.3, 0.7, 2.0, 1.5):
            expected = list(imresize_nearest(size, scale))
            found = semantic._scale_to_nearest(np.arange(size)[None], scale)[0]
            assert found.tolist() == expected, (size, scale)


def test_predictions_are_resized_to_the_nearest_as_pillow_does():
    values = np.random.default_rng(4).integers(0, 256, (23, 31)).astype(np.uint8)
    for wanted in ((7, 50), (1, 1), (46, 30)):
        found = semantic._resize(values[None], wanted, "nearest")[0]
        picture = Image.fromarray(values).resize(wanted[::-1], Image.Resampling.NEAREST)
        assert np.array_equal(found, np.asarray(picture)), wanted


def test_missing_instances_are_said():
    labels = regions(2, (30, 40))
    params = SemanticOptions(TWO.classes, 1, instances=True)
    refused("a: has labels, expected instances", prepared, labels, params, labels=labels)


@pytest.mark.parametrize("radius", [1, 2, 3])
@pytest.mark.slow
def test_ignored_pixels_as_py_edge_eval_draws_them(radius):
    """Distances by loops: out of class or ignored, and to the class; kept if 0 < sum <= radius."""
    rng = np.random.default_rng(radius)
    labels = np.repeat(np.repeat(rng.integers(0, 3, (4, 5)), 4, 0), 3, 1).astype(np.uint8)
    labels[:, 8:10] = labels[9, :] = 255
    params = SemanticOptions(TWO.classes, 1, radius=radius, ignored_rule="span")
    drawn = class_boundaries(labels, params)
    places = np.argwhere(np.ones(labels.shape))
    for k, label in enumerate(params.class_labels):
        inside = (labels == label) | (labels == 255)

        def distance(y, x, zero):
            if zero[y, x]:
                return 0.0
            return min(np.hypot(y - v, x - u) for v, u in places if zero[v, u])

        for y, x in places:
            total = distance(y, x, ~inside) + distance(y, x, labels == label)
            assert drawn[k, y, x] == (0 < total <= radius), (y, x)
    plain = class_boundaries(labels, SemanticOptions(TWO.classes, 1, radius=radius))
    assert not plain[:, labels == 255].any()


@pytest.mark.parametrize("rule", ["crop", "ignore"])
def test_boundaries_of_classes_have_the_border_of_their_labels(rule):
    """Drawn boundaries, thin or not, and labels beside them: cut, or cleared along the frame."""
    labels = regions(5, (20, 27))
    params = SemanticOptions(TWO.classes, 1, border=3, border_rule=rule)
    drawn = np.ones((2, 20, 27), np.uint8)
    maps, truth, left = prepared(drawn, params, class_boundaries=drawn, labels=labels)
    size = (14, 21) if rule == "crop" else (20, 27)
    assert maps.shape[1:] == truth.shape[1:] == left.shape == size
    assert truth.sum() == maps.sum() == 2 * 14 * 21
    assert (left == 255).sum() == np.prod(size) - 14 * 21


def test_more_than_the_border_must_be_left():
    drawn, params = np.ones((2, 40, 10), bool), SemanticOptions(TWO.classes, 1, border=5)
    words = r"^ground truth: shape \(40, 10\), expected more than the border of 5 pixels"
    refused(words, prepared, drawn, params, class_boundaries=drawn, error=ShapeError)


def test_instances_of_another_size_are_refused():
    labels = np.ones((16, 24), np.uint8)
    with pytest.raises(ShapeError, match=r"instances: shape \(16, 23\), expected \(16, 24\)"):
        class_boundaries(labels, TWO, labels[:, 1:])


@pytest.mark.parametrize(
    ("order", "first", "is_said"),
    [((0, 1, 2), 1, False), ((0, 2, 1), 1, True), ((2, 0, 1), 1, True), ((0, 1, 2), 0, True)],
)
def test_maps_of_other_classes_are_said(order, first, is_said, recwarn):
    labels = np.zeros((80, 100), np.uint8)  # two objects on a background; label 3 is nowhere
    labels[10:40, 10:40], labels[45:75, 50:90] = 1, 2
    outlines = class_boundaries(labels, SemanticOptions(("cat", "dog", "cow"), 1, radius=2))
    maps = ndimage.gaussian_filter(0.9 * outlines, (0, 1, 1))[list(order)]
    options = {"classes": ("cat", "dog", "cow"), "first": first}
    protocol = Protocol.preset("bsds500").replace(options={"semantic": options})
    bb.evaluate_items([("x", maps, labels)], protocol, "semantic")
    words = "boundaries of the classes are in maps of others"
    assert any(words in str(w.message) for w in recwarn) == is_said
