"""The search for symptoms in the first images: its order, and faults in it."""

import warnings

import imageio.v3 as imageio
import numpy as np
import pytest
from scipy.ndimage import binary_dilation, gaussian_filter

import bsdsbench as bb
from bsdsbench.errors import DataError, InputWarning, InvertedWarning
from bsdsbench.metrics.structures import CcqMetric
from bsdsbench.runs import engine, sanity
from bsdsbench.runs.fit import CheckedImage, _block_means, thumbnail
from tests.helpers.runs import counted, write_maps

WHITES = {"u1": 255, "u2": 65535}
ONE = {"workers": 1, "executor": "thread", "metrics": "ccq"}


def masks(n=5, shape=(60, 50)):
    rng = np.random.default_rng(3)
    for k in range(n):
        mask = np.zeros(shape, np.bool_)
        row, col = rng.integers(2, 30, 2)
        mask[row : row + 20, col : col + 9] = mask[row : row + 5, col : col + 18] = True
        yield str(k), mask


@pytest.mark.parametrize(("turned", "is_said"), [("123", True), ("012", True), ("23", False)])
def test_three_of_four_turned_maps_are_said_wherever_they_are(turned, is_said):
    items = [(k, (m[::-1] if k in turned else m).astype(float), m) for k, m in masks()]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        bb.evaluate_items(items, **ONE)
    lines = [str(w.message) for w in said if "only upside down" in str(w.message)]
    assert len(lines) == is_said
    assert all(" in 3 of 4 checked images" in line for line in lines)


def test_a_transposed_map_beside_void_pixels_is_refused_for_its_size():
    items = [(k, m.T.astype(float), bb.GroundTruth(k, mask=m, valid=m)) for k, m in masks()]
    with pytest.raises(bb.DataError, match=r"^0: shape \(50, 60\), transposed"):
        bb.evaluate_items(items, **ONE)


def test_a_fault_of_a_search_is_one_line(monkeypatch):
    monkeypatch.setattr(CcqMetric, "symptoms", lambda *_: 1 // 0)
    items = [(k, m.astype(float), m) for k, m in masks()]
    with pytest.raises(bb.DataError, match=r"^unexpected ZeroDivisionError: .*\(a bug in"):
        bb.evaluate_items(items, **ONE)
    with pytest.warns(InputWarning, match=r"^unexpected ZeroDivisionError: .*\(a bug in"):
        run = bb.evaluate_items(items, **ONE, on_error="skip")
    assert len(run.records) == 5


@pytest.mark.parametrize("shape", [(1, 5), (3, 2), (41, 60), (203, 410)])
def test_thumbnails_are_means_of_blocks_without_those_of_their_surroundings(shape):
    ndimage = pytest.importorskip("scipy.ndimage")
    values = np.random.default_rng(1).random(shape)
    side = 4 if min(shape) >= 200 else min(2, *shape)
    rows, cols = shape[0] // side, shape[1] // side
    blocks = values[: rows * side, : cols * side].reshape(rows, side, cols, side).mean((1, 3))
    assert np.allclose(_block_means(values), blocks, rtol=1e-14)
    ones = np.round(values).astype(np.bool_)
    assert np.array_equal(_block_means(ones), _block_means(ones.astype(float)))
    for axis in (0, 1):
        blocks = ndimage.correlate1d(blocks, np.array([1, 4, 6, 4, 1]) / 16, axis, mode="nearest")
    expected = blocks - ndimage.uniform_filter(blocks, 9, mode="nearest")
    expected /= np.linalg.norm(expected) or 1
    assert np.allclose(thumbnail(values), expected, atol=1e-10)


@pytest.mark.parametrize("dtype", ["u1", "u2", "f4", "f8", "?"])
@pytest.mark.parametrize("inverts", [False, True])
@pytest.mark.parametrize("least", [0, 0.5])
def test_a_map_is_dark_on_a_mask_by_its_means(dtype, inverts, least):
    rng = np.random.default_rng(5)
    protocol, n_dark = bb.Protocol(invert=inverts), 0
    for k in range(40):
        mask, valid = rng.random((2, 12, 15)) < rng.uniform(0.1, 0.9, (2, 1, 1))
        soft = np.clip(rng.random(mask.shape) * rng.random() + (k % 5) / 4 * (mask == k % 2), 0, 1)
        soft = soft > 0.5 if dtype == "?" else (WHITES.get(dtype, 1) * soft).astype(dtype)
        values = bb.images.to_unit_range(soft)
        values = 1 - values if inverts else values
        parts = {"mask": mask} | ({"valid": valid} if k % 3 else {})
        beside = ~mask & (valid if k % 3 else True)
        needed = 0.5 if np.isin(values, (0, 1)).all() else least
        on, off = values[mask].mean(), values[beside].mean()
        expected = off > max(on + 0.05, needed, on + 3 * values[beside].std() / mask.sum() ** 0.5)
        n_dark += expected
        pred, gt = bb.Prediction("a", soft=soft), bb.GroundTruth("a", **parts)
        assert CheckedImage(pred, gt, protocol).is_dark_on_mask(least) == expected
    assert 0 < n_dark < 40


def test_void_pixels_of_a_predicted_mask_take_nothing_from_what_is_beside_the_object():
    mask, valid = np.zeros((2, 12, 15), np.bool_)
    mask[2:5, 2:6], valid[:8] = True, True
    labels = np.where(valid, ~mask, -1).astype(np.int64)  # inverted, and -1 where it is void
    pred, gt = bb.Prediction("a", classes=labels), bb.GroundTruth("a", mask=mask, valid=valid)
    assert CheckedImage(pred, gt, bb.Protocol()).is_dark_on_mask(least=0.5)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize(("n_empty", "is_said"), [(0, True), (2, True), (40, True), (100, False)])
def test_images_without_an_object_are_not_those_that_are_checked(n_empty, is_said, workers):
    """As in the first slices of a volume."""
    empty = [(f"{k:03}", np.zeros((60, 50)), np.zeros((60, 50), bool)) for k in range(n_empty)]
    turned = [(f"x{k}", mask[::-1].astype(float), mask) for k, mask in masks()]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        bb.evaluate_items(empty + turned, **ONE | {"workers": workers})
    lines = [str(w.message) for w in said if "only upside down" in str(w.message)]
    assert [" in 4 of 4 checked images [x0" in line for line in lines] == [True] * is_said


def test_images_whose_truth_is_known_to_show_nothing_are_not_read_again(monkeypatch):
    read = []
    load = engine._read_for_checks
    monkeypatch.setattr(
        engine, "_read_for_checks", lambda item, *more: read.append(item) or load(item, *more)
    )
    maps = [mask for _, mask in masks(4)]
    shapes = [(60, 50)] * 9 + [(50, 60)] * 9
    empty = [(f"{k:03}", np.zeros(shape), np.zeros(shape, bool)) for k, shape in enumerate(shapes)]
    bb.evaluate_items(empty + [(f"x{k}", mask * 0.5, mask) for k, mask in enumerate(maps)], **ONE)
    assert [item.image_id for item in read] == ["009", "x0", "x1", "x2", "x3"]


@pytest.mark.parametrize("metric", ["instances", "segmentation"])
def test_void_beside_nothing_shows_nothing(metric, tmp_path):
    """The first predictions are rightly empty: their truth has background and void."""
    pred, gt = tmp_path / "pred", tmp_path / "gt"
    pred.mkdir(), gt.mkdir()
    for k in range(7):
        labels = np.zeros((60, 50), np.uint8)
        labels[10:30, 10 + k : 20] = k > 3
        imageio.imwrite(pred / f"{k}.png", labels)
        labels[:, :5] = 255
        imageio.imwrite(gt / f"{k}.png", labels)
    options = {"metrics": metric, "protocol": bb.Protocol.preset("masks"), "workers": 1}
    void = options["protocol"].replace(options={metric: {"ignore": 255}})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bb.evaluate(pred, gt, **options | {"protocol": void})
        assert not [f for f in bb.doctor(pred, gt, void, metrics=metric) if f.code == "constant"]


def test_the_first_photos_do_not_show_what_is_annotated():
    photo = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
    truth = bb.GroundTruth("a", mask=np.zeros((4, 5), bool), photo=photo, valid=np.eye(4, 5) > 0)
    assert not sanity._shows_something(truth, ())
    assert sanity._shows_something(truth.replace(depth=np.eye(4, 5)), ())


@pytest.mark.parametrize("shape", [(0, 5), (5, 0)])
def test_maps_without_pixels_are_refused_or_counted_but_raise_nothing_else(shape):
    items = [("a", np.zeros(shape), np.zeros(shape)), ("b", np.eye(5) + 1, np.eye(5) + 1)]
    with pytest.raises(DataError, match=r"a: ground truth of shape .* expected two dimensions"):
        bb.evaluate_items([("a", np.zeros(shape), [np.zeros(shape)])], workers=1)
    assert bb.evaluate_items(items, workers=1, metrics="depth", on_error="skip").records


def said_of(maps, truth, metric="pixel", **protocol):
    """Return the warnings of a run of a metric."""
    items = [
        (f"i{k}", soft, drawn) for k, (soft, drawn) in enumerate(zip(maps, truth, strict=True))
    ]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        changed = bb.Protocol.preset("bsds500").replace(**protocol)
        bb.evaluate_items(items, changed, **ONE | {"metrics": metric})
    return [str(warning.message) for warning in said]


@pytest.mark.parametrize("top", [10, 100])
def test_values_in_percent_and_votes_are_said(top):
    drawn = [mask for _, mask in masks()]
    maps = [np.where(mask, np.uint8(top), np.uint8(7)) for mask in drawn]
    (line,) = said_of(maps, drawn)
    assert line.startswith(f"no value above {top} of 255 in the checked maps (percent, or votes?)")
    assert said_of(maps, drawn, "saliency") == []  # which stretches each map to [0, 1]
    assert said_of(maps[:2], drawn[:2]) == ([line] if top == 100 else [])  # 10 may be by chance
    assert said_of(maps[:1], drawn[:1]) == []
    for other in (maps[1] - np.uint8(1), maps[1] + np.uint8(100)):  # one of five on another scale
        said = said_of([maps[0], other, *maps[2:]], drawn)
        words = "100 of 255 is the largest value of 4 of 5 maps [i0, i2, i3 and 1 more] (percent?"
        assert [line[: len(words)] for line in said] == [words] * (top == 100)


@pytest.mark.parametrize("metric", ["pixel", "aiu", "calibration"])
def test_lines_that_are_dark_in_the_truth_are_said(metric, tmp_path):
    pred, gt = tmp_path / "pred", tmp_path / "gt"
    pred.mkdir(), gt.mkdir()
    for name, mask in masks():
        outline = bb.seg2bdry(mask.astype(np.uint8))
        imageio.imwrite(gt / f"{name}.png", np.uint8(255) * ~outline)
        imageio.imwrite(pred / f"{name}.png", np.uint8(180) * outline + np.uint8(20))
    words = "most pixels of the truth are boundaries, on which the map is darker"
    options = {"metrics": metric, "workers": 1}
    with pytest.warns(InvertedWarning, match=rf"{words} .* in 4 of 4 .*\(gt_invert=True\)"):
        bb.evaluate(pred, gt, **options)
    (finding,) = [f for f in bb.doctor(pred, gt, metrics=metric) if f.code == "inverted"]
    assert finding.message.startswith(words)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bb.evaluate(pred, gt, bb.Protocol.preset("bsds500").replace(gt_invert=True), **options)


def test_large_objects_as_truth_of_pixels_are_not_inverted_truth():
    large = np.hypot(*np.mgrid[-40:40, -60:60]) < 70  # more than half of the image
    drawn = [large, large[:-1]]
    maps = [0.6 * mask + 0.2 * k for k, mask in enumerate(drawn)]
    assert said_of(maps, drawn) == []
    assert "are darker on the ground truth" in said_of(maps, drawn, invert=True)[0]


@pytest.mark.parametrize(("shape", "is_said"), [((2, 2), False), ((3, 3), True)])
def test_cells_without_numbers_as_regions_of_the_truth_are_said(shape, is_said, recwarn):
    """Two regions, of one label in several pieces; a mask of cells has many."""
    cell = np.pad(np.ones((18, 18), int), 1)
    mask = np.tile(cell, shape)
    protocol = bb.Protocol.preset("bsds500").replace(gt_kind="labels")
    items = [(k, bb.Prediction(k, segs=(mask + 1,)), mask) for k in "ab"]
    bb.evaluate_items(items, protocol, metrics="region", workers=1)
    words = "a map of the truth has two labels in many pieces: cells without numbers? in 2 of 2"
    assert [words in str(w.message) for w in recwarn] == [True] * is_said


@pytest.mark.parametrize(
    ("low", "high", "is_said"),
    [
        (0, 1, True),
        (-1, 1, True),
        (-2, 1, False),
        (-1, 2, False),
        (0, 0, False),
        (-0.8, 0.8, False),
    ],
)
@pytest.mark.parametrize("dtype", ["u1", "u2", "f4"])
def test_a_second_sigmoid_is_said(low, high, is_said, dtype):
    drawn = [mask for _, mask in masks()]
    maps = [1 / (1 + np.exp(-np.where(mask, float(high), low))) for mask in drawn]
    stored = [(soft * WHITES.get(dtype, 1)).astype(dtype) for soft in maps]
    lines = [line for line in said_of(stored, drawn) if "sigmoid or softmax twice?" in line]
    assert len(lines) == is_said


def test_thin_maps_with_nms_are_said():
    """NMS of maps that have gone through it breaks their lines."""
    drawn = [bb.seg2bdry(mask.astype(np.uint8)) for _, mask in masks()]
    thin, thick = [0.5 * lines for lines in drawn], [0.5 * mask for _, mask in masks()]
    narrow = [gaussian_filter(lines.astype(float), 0.7) for lines in drawn]
    double = [binary_dilation(lines, np.ones((2, 2))) for lines in drawn]
    raw = [(maps, True, False) for maps in (thick, narrow, np.multiply(0.5, double))]
    for maps, nms, is_said in ((thin, True, True), (thin, False, False), *raw):
        said = said_of(maps, drawn, "boundary", nms=nms, max_dist_px=3)
        assert ["have thin edges, which NMS breaks up" in line for line in said] == [True] * is_said


@pytest.mark.parametrize("metric", ["aiu", "pixel"])
def test_annotators_who_mark_an_object_each_are_said(metric):
    left = np.hypot(*np.mgrid[-30:30, -20:60]) < 15
    outline = bb.seg2bdry(left.astype(np.uint8))
    apart, lines = (left, left[:, ::-1]), (outline, outline[:, ::-1])
    same, single = (left, np.roll(left, 2, 0)), (left, left & False)
    pen = tuple(map(binary_dilation, lines))
    sound = [(drawn, False) for drawn in (same, single, lines, pen)]
    for drawn, is_said in ((apart, True), *sound):
        said = said_of([0.8 * np.any(drawn, axis=0)] * 2, [drawn] * 2, metric)
        words = "the areas that annotators mark never overlap: a file for each object? in 2 of 2"
        assert [line[: len(words)] for line in said] == [words] * is_said


@pytest.mark.parametrize("metric", ["aiu", "calibration", "saliency", "contour"])
def test_inverted_truth_of_objects_may_be_turned_itself(metric):
    """Inverted maps beside it would have the score of the background."""
    drawn = [mask for _, mask in masks()]
    maps = [0.6 * mask + 0.3 for mask in drawn]
    if metric == "contour":
        maps = drawn
    (line,) = said_of(maps, [~mask for mask in drawn], metric)
    assert line.endswith("(invert=True if the maps are inverted; gt_invert=True if the truth is)")
    assert said_of(maps, [~mask for mask in drawn], metric, gt_invert=True) == []


@pytest.mark.parametrize("metric", ["ccq", "saliency", "calibration"])
def test_a_map_that_misses_the_object_is_not_inverted(metric):
    drawn = [mask for _, mask in masks()]
    missing = [0.9 * (np.roll(mask, 25, 0) & ~mask) for mask in drawn]
    assert [line for line in said_of(missing, drawn, metric) if "darker" in line] == []
    inverted = [1 - 0.9 * mask for mask in drawn]
    assert [line for line in said_of(inverted, drawn, metric) if "darker" in line]
    rng, dot = np.random.default_rng(3), np.zeros((60, 50), bool)
    dot[20:22, 30:32] = True
    for _ in range(20):  # by chance, noise is dark there
        assert said_of([rng.random(dot.shape)], [dot], metric) == []


@pytest.mark.parametrize(("gt_thin", "is_said"), [(False, True), (True, False)])
def test_areas_are_lines_if_the_protocol_thins_them(gt_thin, is_said):
    drawn = [mask for _, mask in masks()]
    said = said_of([0.9 * mask for mask in drawn], drawn, "boundary", gt_thin=gt_thin)
    assert ["have filled areas as ground truth" in line for line in said] == [True] * is_said


def test_truth_drawn_with_a_broad_pen_is_told_the_option():
    """A thin edge is matched with one of the pixels across a line, so that recall is low."""
    lines = [bb.seg2bdry(mask.astype(np.uint8)) for _, mask in masks()]
    pen = [binary_dilation(drawn, iterations=2) for drawn in lines]
    maps = [0.9 * drawn for drawn in lines]
    (line,) = said_of(maps, pen, "boundary")
    assert "lines of the truth are several pixels wide" in line
    assert line.endswith("(gt_thin=True)")
    assert said_of(maps, pen, "boundary", gt_thin=True) == said_of(maps, lines, "boundary") == []
    shifted = tuple(np.roll(drawn, k, 0) for k in range(6) for drawn in lines[:1])
    assert said_of(maps[:1], [shifted], "boundary") == []  # of annotators who disagree a little


@pytest.mark.parametrize(("size", "is_inverted"), [(2, False), (20, True)])
def test_boundaries_of_many_small_regions_are_not_inverted(size, is_inverted):
    cells = np.add.outer(np.arange(60) // size, 99 * (np.arange(50) // size))
    lines = bb.seg2bdry(cells)
    truth = bb.GroundTruth("a", (lines ^ is_inverted,), segmentations=(cells,))
    said = said_of([0.5 * lines + 0.1] * 2, [truth] * 2, "boundary")
    assert any("dark lines on white" in line for line in said) == is_inverted


def test_a_crack_wider_than_half_of_the_image_is_not_inverted(tmp_path):
    crack = np.zeros((40, 60), bool)
    crack[8:33] = True
    maps = {k: gaussian_filter(crack * 0.7, 2) for k in "ab"}
    protocol = bb.Protocol.preset("bsds500").replace(gt_thin=True, nms=True)
    assert said_of(maps.values(), [crack] * 2, "boundary", gt_thin=True, nms=True) == []
    truth = write_maps(tmp_path / "gt", {k: crack * np.uint8(255) for k in "ab"})
    assert bb.doctor(write_maps(tmp_path / "pred", maps), truth, protocol) == []


def test_three_weak_values_are_no_void():
    drawn = [mask for _, mask in masks()]
    for values, is_said in (((2, 3, 4), False), ((0, 1, 255), True), ((0, 128, 255), True)):
        maps = [np.where(mask, values[2], values[0]).astype(np.uint8) for mask in drawn]
        for soft in maps:
            soft[:3] = values[1]
        said = said_of(maps, drawn, "ccq", normalise=values[2] < 255)
        assert any("is one a void?" in line for line in said) == is_said


def test_no_object_at_all_is_no_other_order_of_labels():
    protocol = bb.Protocol.preset("masks").replace(options={"contour": {"unit": "id"}})
    truth = bb.GroundTruth(
        "a", labels=np.add.outer(np.arange(20) // 5, 4 * (np.arange(20) // 5)) + 1
    )
    none, one = np.zeros((20, 20), int), np.full((20, 20), 99)
    for labels, is_said in ((none, False), (one, False), (truth.labels + 50, True)):
        pred = bb.Prediction("a", classes=labels)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            bb.evaluate_items([("a", pred, truth)], protocol, **ONE | {"metrics": "contour"})
        assert any("no label is in both" in str(warning.message) for warning in said) == is_said


@pytest.mark.filterwarnings("ignore:no probability exceeds")
def test_a_metric_that_stretches_each_map_takes_masks_of_0_and_1(tmp_path):
    for folder in ("pred", "gt", "none"):
        (tmp_path / folder).mkdir()
    for k, mask in masks(3):
        imageio.imwrite(tmp_path / "pred" / f"{k}.png", mask.astype(np.uint8))
        imageio.imwrite(tmp_path / "none" / f"{k}.png", mask.astype(np.uint8) * 0)
        imageio.imwrite(tmp_path / "gt" / f"{k}.png", mask.astype(np.uint8) * 255)
    run = bb.evaluate(tmp_path / "pred", tmp_path / "gt", **ONE | {"metrics": "saliency"})
    assert run.score("saliency").mae_mean == 0
    with pytest.warns(InputWarning, match="every map is all zeros"):
        bb.evaluate(tmp_path / "none", tmp_path / "gt", **ONE | {"metrics": "saliency"})
    with pytest.raises(DataError, match=r"no value above 1 of 255 .*\(normalise=True"):
        bb.evaluate(tmp_path / "pred", tmp_path / "gt", **ONE | {"metrics": "calibration"})
    for k, mask in masks(3):  # numbers of objects
        numbers = (1 + np.arange(50) % 2) * mask
        imageio.imwrite(tmp_path / "pred" / f"{k}.png", numbers.astype(np.uint8))
    with pytest.raises(DataError, match="no value above 2 of 255"):
        bb.evaluate(tmp_path / "pred", tmp_path / "gt", **ONE | {"metrics": "saliency"})


def test_truth_that_is_inverted_in_some_images_is_named():
    rng, items = np.random.default_rng(0), []
    for k in range(8):
        lines = np.zeros((60, 80), np.bool_)
        lines[10 + 3 * k], lines[:, 30 + k] = True, True
        soft = np.clip(0.8 * gaussian_filter(lines * 2.0, 1) + 0.1 * rng.random((60, 80)), 0, 1)
        items.append((f"i{k}", soft, ~lines if k > 5 else lines))
    words = r"ground truth of 2 of 8 images is inverted.*\[i6, i7\] \(invert only these\)"
    with pytest.warns(InvertedWarning, match=words):
        bb.evaluate_items(items, workers=1)


def test_label_maps_that_are_read_as_boundary_strengths_are_named():
    """Votes of several binary maps have as few values, but no regions."""
    rng, labels, votes = np.random.default_rng(0), [], []
    for k in range(5):
        regions = np.full((60, 80), 60, np.uint8)
        regions[10 : 30 + k, 20:60], regions[40:55, 5 : 30 + k] = 120, 240
        edges = np.pad(regions[1:] != regions[:-1], ((0, 1), (0, 0)))
        blurred = gaussian_filter(edges * 4.0, 1) + 0.1 * rng.random(edges.shape)
        labels.append((f"i{k}", regions, edges))
        votes.append((f"i{k}", np.clip(np.round(3 * blurred), 0, 3) / 3, edges))
    words = r"4 of 4 checked maps have regions of one value each.*\(pred_kind='labels' if"
    with pytest.warns(InputWarning, match=words):
        bb.evaluate_items(labels, workers=1)
    with pytest.warns(InputWarning, match="have broad edges"):
        bb.evaluate_items(votes, workers=1)


@pytest.mark.parametrize(("dtype", "weak"), [("u1", 1), ("u2", 255)])
def test_a_faint_map_is_right_where_nothing_is_annotated(dtype, weak, tmp_path):
    maps, truth = {}, {}
    for k, mask in masks(6):
        is_empty = k in "01"
        maps[k] = mask * np.array(weak if is_empty else WHITES[dtype], dtype)
        truth[k] = mask & (not is_empty)
    pred, gt = write_maps(tmp_path / "pred", maps), write_maps(tmp_path / "gt", truth)
    counted(pred, gt, metrics="ccq")
    counted(pred, gt, bb.Protocol.preset("bsds500").replace(empty_gt="count", gt_thin=True))
    with pytest.warns(InputWarning, match="2 of 6 maps have no value above"):
        counted(pred, write_maps(gt, dict(masks(6))), metrics="ccq")
    everywhere = {k: mask | True for k, mask in masks(6)}
    maps = {k: mask * np.array(weak, dtype) for k, mask in everywhere.items()}
    with pytest.raises(DataError, match=f"no value above {weak} of"):
        counted(write_maps(pred, maps), write_maps(gt, everywhere), metrics="pixel")


def test_a_weak_noise_beside_broad_edges_is_not_what_nms_leaves():
    lines = [np.pad(bb.seg2bdry(mask.astype(np.uint8)), 40) for _, mask in masks()]
    rng = np.random.default_rng(0)
    maps = []
    for drawn in lines:
        noise = rng.integers(0, 2, drawn.shape)  # 0 and 1 of 255
        maps.append(np.where(binary_dilation(drawn), 200, noise).astype("u1"))
    assert said_of(maps, lines, "boundary", nms=True) == []
    thin = [200 * drawn.astype("u1") for drawn in lines]
    assert "thin edges, which NMS breaks up" in said_of(thin, lines, "boundary", nms=True)[0]


def test_a_map_that_misses_an_area_lies_by_chance_where_it_would_be_if_it_was_flipped():
    y, x = np.mgrid[:80, :120]
    discs = [np.hypot(y - 40, x - column) < 15 for column in (30, 40, 50, 60)]
    maps = [disc * 0.9 for disc in discs]
    maps[0] = maps[0][:, ::-1]
    assert said_of(maps, discs, "pixel") == []
    evaluator = bb.StreamingEvaluator(metrics="pixel")
    evaluator.update(maps[0], discs[0])
    (line,) = said_of([disc[:, ::-1] * 0.9 for disc in discs], discs, "pixel")
    assert line.startswith("3 of 4 checked maps fit their ground truth only mirrored")
