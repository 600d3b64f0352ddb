"""Pixels that are counted nowhere: what is predicted there, and what is drawn there, moves nothing.

The truth of each metric that leaves pixels out is made anew with a part `valid`, or with a label
to ignore. Counts by hand say what void is for components, skeletons, contours and distances.
"""

import imageio.v3 as iio
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bsdsbench as bb
from bsdsbench.errors import DataError
from bsdsbench.io import read_bytes
from bsdsbench.loaders.readers import read_field_of_view
from bsdsbench.metrics import registry
from bsdsbench.protocol.signature import Signature
from bsdsbench.scores.counts import value_at
from tests.helpers.masks import blobs
from tests.helpers.runs import command, refused

SHAPE = (18, 23)
SOFT = ("saliency", "topology", "ccq", "pixel", "aiu", "calibration", "boundary", "crispness")
LABELS = ("contour", "segmentation", "instances")
PETS = {"classes": ("none", "cat", "dog")}
KINDS = {
    **{name: (name, {}) for name in (*SOFT, *LABELS)},
    "saliency as it is": ("saliency", {"stretch": False}),
    "topology in patches": ("topology", {"patch": 6, "connectivity": 4}),
    "ccq as given": ("ccq", {"lines": "given", "buffer": 1.5}),
    "contour of classes": ("contour", PETS),
    "contour of all kinds": (
        "contour",
        {"groups": ["boundary-iou", "davis", "bf", "distance", "nsd", "fom", "trimap", "cldice"]},
    ),
    "contour of instances": ("contour", {"unit": "instance", "empty": "perfect"}),
    "segmentation of classes": ("segmentation", PETS),
    "segmentation of instances": ("segmentation", {"unit": "instance"}),
    "segmentation by number": ("segmentation", {"unit": "id"}),
    "instances by components": ("instances", {"components": 8}),
}
PROTOCOLS = {
    "plain": {},
    "inverted": {"invert": True},
    "scaled": {"normalise": True},
    "suppressed": {"nms": True},
    "from 0": {"thresholds": (0.0, 0.3, 0.6), "max_dist_px": 2.0},
}
SEEDS = st.integers(0, 2**16)


def protocol_of(kind, more=None):
    metric, options = KINDS[kind]
    usual = bb.Protocol.preset(registry.get(metric).default_protocol)
    few = {} if metric in LABELS else {"thresholds": (0.2, 0.5, 0.8)}
    return usual.replace(**{**few, **(more or {})}, options={metric: options} if options else {})


def images(kind, seed):
    """A prediction's array, the parts of a truth, and pixels that are counted."""
    rng = np.random.default_rng(seed)
    field = blobs(rng, SHAPE, 3, 3)
    valid = blobs(rng, SHAPE, 3, 2) > 0
    metric, options = KINDS[kind]
    if metric in LABELS:
        labels = field if options.get("classes") or options.get("unit") else (field > 1).astype(int)
        if metric == "instances" and not options:
            labels = field
        return np.roll(labels, 1, 0).astype(np.uint8), {"labels": labels.astype(np.uint8)}, valid
    soft = np.clip(0.6 * (field == 1) + 0.4 * rng.random(SHAPE), 0, 1)
    if registry.get(metric).gt_kind == "mask":
        return soft, {"mask": field == 1}, valid
    return soft, {"boundaries": tuple(bb.seg2bdry(np.roll(field, k, 0)) for k in range(2))}, valid


def predicted(array):
    form = "classes" if array.dtype.kind == "u" else "soft"
    return bb.Prediction("a", **{form: array})


def scored(kind, array, parts, protocol=None):
    """Every column of one image, and its counts."""
    metric, protocol = registry.get(KINDS[kind][0]), protocol or protocol_of(kind)
    counts = metric.count_image(predicted(array), bb.GroundTruth("a", **parts), protocol)
    score = metric.score_of(metric.stack([counts]), protocol)
    return {
        c.key: value_at(score, c.key) for c in metric.columns if value_at(score, c.key) is not None
    }


def same(one, other):
    assert one == pytest.approx(other, rel=1e-12, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=10)
@given(SEEDS)
def test_what_is_predicted_or_drawn_on_void_moves_nothing(kind, seed):
    pred, parts, valid = images(kind, seed)
    rng = np.random.default_rng(seed + 1)
    name = min(parts)
    other = np.where(valid, pred, rng.permutation(pred.ravel()).reshape(SHAPE))
    drawn = parts[name] if isinstance(parts[name], tuple) else (parts[name],)
    moved = tuple(np.where(valid, one, np.roll(one, 5, 1)) for one in drawn)
    moved = {name: moved if isinstance(parts[name], tuple) else moved[0]}
    expected = scored(kind, pred, {**parts, "valid": valid})
    elsewhere = scored(kind, other, {**parts, "valid": valid})
    # A false object is excused by how much of it lies on void, as panopticapi does.
    excused = {"pq", "rq", "sq", "false"} if kind == "segmentation of instances" else set()
    same(*({k: v for k, v in s.items() if k not in excused} for s in (elsewhere, expected)))
    same(scored(kind, pred, {**moved, "valid": valid}), expected)


@pytest.mark.parametrize("more", PROTOCOLS)
@pytest.mark.parametrize("kind", ["saliency", "pixel", "aiu", "calibration", "boundary", "ccq"])
@settings(max_examples=8)
@given(SEEDS)
def test_nor_does_it_by_what_is_done_to_maps(kind, more, seed):
    pred, parts, valid = images(kind, seed)
    protocol = protocol_of(kind, PROTOCOLS[more])
    parts["valid"] = valid
    full = np.where(valid, pred, 1.0), np.where(valid, pred, 0.0)
    same(*(scored(kind, array, parts, protocol) for array in full))


@pytest.mark.parametrize("kind", KINDS)
def test_all_valid_is_no_void(kind):
    pred, parts, _ = images(kind, 3)
    same(scored(kind, pred, {**parts, "valid": np.ones(SHAPE, bool)}), scored(kind, pred, parts))


# Not: sizes in shares of the diagonal, NMS of whole maps, regions excused by their part on void
DIFFERENT = {"topology in patches", "boundary", "crispness"}
DIFFERENT |= {"segmentation of instances", "segmentation by number"}
CUT = sorted(kind for kind in {*KINDS} - DIFFERENT if KINDS[kind][0] != "contour")


@pytest.mark.parametrize("kind", CUT)
@settings(max_examples=10)
@given(SEEDS)
def test_void_at_the_border_is_cut_off(kind, seed):
    """Rows below and columns to the right: what they hold is as if the image ended before."""
    pred, parts, _ = images(kind, seed)
    valid = np.zeros(SHAPE, bool)
    valid[:14, :17] = True
    cut = {
        name: tuple(one[:14, :17] for one in part) if isinstance(part, tuple) else part[:14, :17]
        for name, part in parts.items()
    }
    same(scored(kind, pred, {**parts, "valid": valid}), scored(kind, pred[:14, :17], cut))


def test_boundaries_with_void_cut_off_are_those_of_the_rest():
    """The tolerance in pixels, so that it does not depend on the size."""
    pred, parts, _ = images("boundary", 5)
    protocol = protocol_of("boundary", {"max_dist_px": 2.0})
    valid = np.zeros(SHAPE, bool)
    valid[:14, :17] = True
    cut = {"boundaries": tuple(b[:14, :17] for b in parts["boundaries"])}
    whole = scored("boundary", pred, {**parts, "valid": valid}, protocol)
    same(whole, scored("boundary", pred[:14, :17], cut, protocol))


@pytest.mark.parametrize("kind", KINDS)
def test_an_image_that_is_all_void_has_no_score(kind):
    pred, parts, _ = images(kind, 4)
    found = scored(kind, pred, {**parts, "valid": np.zeros(SHAPE, bool)})
    curves = {"ods", "ois", "ap", "r50"}  # of no pixels, as of images without any boundary
    for key, value in found.items():
        parts = {*key.split(".")}
        if parts & {"found", "missed", "false", "n_annotated", "n_predicted"}:  # numbers of objects
            assert value == 0, key
        elif key != "n_images" and not curves & parts:
            assert np.isnan(value), key


@pytest.mark.parametrize("kind", KINDS)
def test_an_image_of_void_leaves_the_others_scores(kind):
    metric, protocol = registry.get(KINDS[kind][0]), protocol_of(kind)
    pred, parts, valid = images(kind, 6)
    void = np.zeros(SHAPE, bool)
    counts = [
        metric.count_image(predicted(pred), bb.GroundTruth("a", **parts, valid=some), protocol)
        for some in (valid, void)
    ]
    both, alone = (metric.score_of(metric.stack(some), protocol) for some in (counts, counts[:1]))
    for column in metric.columns:
        if column.key != "n_images" and value_at(alone, column.key) is not None:
            same(value_at(both, column.key), value_at(alone, column.key))


@pytest.mark.parametrize("metric", ["region", "superpixel", "wireframe", "occlusion", "semantic"])
def test_metrics_that_count_every_pixel_refuse_void(metric):
    truth = bb.GroundTruth("a", valid=np.ones((4, 5), bool))
    protocol = bb.Protocol.preset("cityscapes" if metric == "semantic" else "bsds500")
    with pytest.raises(DataError, match=f"a: has void pixels, which metric {metric} cannot"):
        registry.get(metric).count_image(bb.Prediction("a", soft=np.zeros((4, 5))), truth, protocol)


@pytest.mark.parametrize("metric", [*SOFT, "instances"])
def test_ignore_is_an_option_of_every_metric(metric):
    found = registry.get(metric)
    for said, expected in ((255, (255,)), ([1, 7], (1, 7)), (-1, ()), ([], ())):
        protocol = bb.Protocol.preset("masks").replace(options={metric: {"ignore": said}})
        opt = found.options_of(protocol)
        assert opt.ignore == expected
        assert found.files_read(opt).void == (() if metric == "instances" else expected)
    for wrong in ("x", -0.5, [-1, 2], True):
        with pytest.raises(DataError, match="ignore"):
            found.options_of(
                bb.Protocol.preset("masks").replace(options={metric: {"ignore": wrong}})
            )


@pytest.mark.parametrize("metric", ["contour", "segmentation"])
@pytest.mark.parametrize(
    "options", [{}, {"classes": ("a", "b"), "first": 1}, {"unit": "instance"}, {"unit": "id"}]
)
def test_several_labels_to_ignore_are_as_one(metric, options):
    """What two labels mark is left out as if one had marked it."""
    rng = np.random.default_rng(4)
    objects = np.kron(rng.integers(0, 2 if not options else 3, (4, 5)), np.ones((6, 6), np.uint8))
    pred = np.roll(objects, 1, 1).astype(np.uint8)
    one, two = objects.astype(np.uint8), objects.astype(np.uint8)
    one[:6], one[18:] = 255, 255
    two[:6], two[18:] = 254, 255
    runs = []
    for gt, ignore in ((one, 255), (one, [255]), (two, [254, 255]), (two, (255, 254))):
        chosen = {metric: {**options, "ignore": ignore}}
        proto = bb.Protocol.preset("masks").replace(options=chosen)
        assert registry.get(metric).options_of(proto).ignored == tuple(np.ravel(ignore).tolist())
        runs.append(bb.evaluate_items([("a", pred, gt)], proto, metrics=metric, workers=1))
    for run in runs[1:]:
        assert run.score(metric).to_mapping() == runs[0].score(metric).to_mapping()


@pytest.mark.parametrize("metric", ["saliency", "pixel", "calibration", "contour", "segmentation"])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("void", [0.5, 0.3, 2 / 3])
def test_a_void_of_floats_is_named_by_its_value(metric, dtype, void, tmp_path):
    """In the precision of the file, whatever that of the option; the line has both meanings."""
    gt = np.zeros((20, 30), dtype)
    gt[5:12, 5:15], gt[15:] = 1, void
    pred = (0.9 if metric not in LABELS else 1.0) * (gt == 1).astype(np.float32)
    write(tmp_path / "p", {"a": np.where(gt == gt[19, 0], 1, pred), "b": pred})
    write(tmp_path / "g", {"a": gt, "b": gt})
    proto = bb.Protocol.preset("masks" if metric in LABELS else "bsds500")

    def scored(**options):
        chosen = proto.replace(options={metric: options})
        return bb.evaluate(tmp_path / "p", tmp_path / "g", chosen, metrics=metric, workers=1).score(
            metric
        )

    with pytest.raises(DataError, match=rf"{metric}.ignore=0\.\d+ if 0.\d+ is void.*gt_threshold"):
        scored()
    for said in (void, float(gt[19, 0]), [0.125, void]):
        score = scored(ignore=said)
        key = {"saliency": "iou_mean", "pixel": "ods.f", "contour": "iou"}.get(metric, "mean_iou")
        assert metric == "calibration" or value_at(score, key) == 1


# ---- counts by hand ------------------------------------------------------------------------------

VOID_RIGHT = np.arange(8) < [[5]] * 6  # (6, 8): the last three columns are void


def mask_of(*lines):
    return np.array([[c == "#" for c in line] for line in lines])


def counted(kind, pred, gt, valid, form="mask"):
    metric, protocol = registry.get(KINDS[kind][0]), protocol_of(kind)
    truth = bb.GroundTruth("a", **{form: gt}, valid=valid)
    return metric.count_image(predicted(pred), truth, protocol)


def test_components_that_void_divides_or_hides():
    """The object goes on under void: without it two pieces; what lies on void alone is none."""
    gt = mask_of("........", "##..##..", "........", "......#.", "........", "........")
    valid = np.ones(gt.shape, bool)
    valid[:, 5:] = False
    bridge = gt.copy()
    bridge[1] = True  # joins the pieces, and leaves the valid pixels at the same place
    found = counted("topology", bridge.astype(float), gt, valid)
    assert found["errors"].tolist() == [1, 0, 1]  # one component for two
    joined = gt.copy()
    joined[1, 2:4] = True
    valid[:, 2:4] = False
    found = counted("topology", joined.astype(float), gt, valid)
    assert found["errors"].tolist() == [0, 0, 0]


def test_a_hole_of_void_is_a_hole_of_both():
    ring = np.pad(np.zeros((2, 2), bool), 1, constant_values=True)
    full, valid = np.pad(np.ones((4, 4), bool), 1), np.ones((6, 6), bool)
    valid[2:4, 2:4] = False
    found = counted("topology", full.astype(float), np.pad(ring, 1), valid)
    assert found["errors"].tolist() == [0, 0, 0]


def test_skeletons_are_those_of_what_is_counted():
    """A bar of 8 pixels, of which 3 are void: 5 pixels of line; a false bar on void is none."""
    gt, pred = np.zeros((2, 6, 8), bool)
    gt[2] = True
    pred[2, :5], pred[4, 5:] = True, True
    found = counted("ccq", pred.astype(float), gt, VOID_RIGHT)
    assert found["matched"] == [5, 5]
    assert found["total"] == [5, 5]


def test_boundary_pixels_on_void_are_in_neither_map():
    """A line of 8 pixels beside one of 8: three of each are void; a true line on void is none."""
    line = np.zeros((6, 8), bool)
    line[2] = True
    both = line.copy()
    both[5, 5:] = True
    counts = counted("boundary", line.astype(float), (both,), VOID_RIGHT, "boundaries")
    assert counts.total_gt.tolist() == counts.matched_gt.tolist() == [5] * 3
    assert counts.total_pred.tolist() == counts.matched_pred.tolist() == [5] * 3


def test_no_partner_lies_on_void():
    """The true pixel is valid, the one that would match it is not."""
    pred, gt = np.zeros((2, 6, 8), bool)
    gt[2, 4] = pred[2, 5] = True
    counts = counted("boundary", pred.astype(float), (gt,), VOID_RIGHT, "boundaries")
    assert (counts.total_gt[0], counts.matched_gt[0], counts.total_pred[0]) == (1, 0, 0)


def test_pixels_of_masks_by_hand():
    """30 of 48 pixels count; of 12 true ones 2 are void; a false alarm of 4 lies on void."""
    gt, pred = np.zeros((2, 6, 8), bool)
    gt[1:3, :6], pred[1:3, :5], pred[4:, 6:] = True, True, True
    found = counted("saliency", pred.astype(float), gt, VOID_RIGHT)
    assert (found["pixels"], found["positives"]) == (30, 10)
    assert (found["half_tp"], found["half_fp"], found["abs_error_sum"]) == (10, 0, 0)
    pred, gt = pred.astype(np.uint8), gt.astype(np.uint8)
    found = counted("segmentation", pred, gt, VOID_RIGHT, "labels")
    assert found.confusion.tolist() == [[10, 0], [0, 20]]
    outline = counted("contour", pred, gt, VOID_RIGHT, "labels")
    assert outline.areas.tolist() == [[10, 10, 10]]


def test_davis_an_object_on_void_is_none():
    """J of two objects, one right and one missed: .5, whatever is predicted on void."""
    gt = np.zeros((12, 16), np.uint8)
    gt[1:4, 1:5], gt[1:4, 8:12], gt[8:] = 1, 2, 255
    pred = np.where(gt == 1, 1, 0).astype(np.uint8)
    more = pred.copy()
    more[9:11, 2:6] = 3
    davis = bb.Protocol.preset("davis")
    frames = davis.replace(options={"contour": {**davis.options["contour"], "mean": "images"}})
    for array in (pred, more):
        images = [(f"s/{k}", array, gt) for k in range(3)]
        for protocol in (davis, frames):
            run = bb.evaluate_items(images, protocol, metrics="contour", workers=1)
            assert run.score("contour").iou == 0.5
            assert run.score("contour").pairs.pred_only == 0


def test_objects_on_void_are_none():
    """Two of three objects are valid, one of them in part; a predicted one lies on void."""
    gt = np.zeros((6, 8), np.uint8)
    gt[0:2, 0:2], gt[3:5, 3:7], gt[0:2, 6:] = 1, 2, 3
    pred = gt.copy()
    pred[5, 5:] = 9
    found = counted("instances", pred, gt, VOID_RIGHT, "labels")
    assert found.objects.tolist() == [[2, 2], [2, 2]]
    assert found.inside.tolist() == found.joined.tolist() == [8, 8, 8]
    protocol = bb.Protocol.preset("masks").replace(options={"instances": {"ignore": [3]}})
    metric = registry.get("instances")
    said = metric.count_image(predicted(pred), bb.GroundTruth("a", labels=gt), protocol)
    assert said.objects.tolist() == [[2, 2], [2, 3]]  # number 9 is no void


# ---- files ---------------------------------------------------------------------------------------


def write(folder, arrays):
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    return folder


@pytest.fixture
def made(tmp_path):
    """Folders p, g and v of masks; what is wrong is wrong outside the field of view."""
    gt = {k: np.eye(20, 30, n).astype(np.uint8) for n, k in enumerate("abc")}
    valid = {k: (np.arange(30) < 25) * np.ones((20, 1), np.uint8) * 255 for k in gt}
    pred = {k: np.where(valid[k], 255 * g, 255).astype(np.uint8) for k, g in gt.items()}
    for name, arrays in (("p", pred), ("g", gt), ("v", valid)):
        write(tmp_path / name, arrays)
    return tmp_path


def test_a_field_of_view_in_jpeg_is_cut_at_half_of_white(tmp_path):
    view = np.full((40, 56), 255, np.uint8)
    view[:, :21] = 0
    iio.imwrite(tmp_path / "a.jpg", view)
    assert (read_field_of_view(tmp_path / "a.jpg", view.shape, read_bytes) == (view > 0)).all()
    iio.imwrite(tmp_path / "a.png", iio.imread(tmp_path / "a.jpg"))
    refused("a.png", read_field_of_view, tmp_path / "a.png", view.shape, read_bytes)


@pytest.mark.parametrize("metric", ["pixel", "saliency", "boundary", "segmentation"])
def test_a_field_of_view(made, metric):
    how = {"metrics": metric, "workers": 1, "executor": "thread"}
    key = {"pixel": "ods.f", "saliency": "iou_mean", "boundary": "ods.f"}.get(metric, "mean_iou")
    out = made / "out"
    run = bb.evaluate(made / "p", made / "g", **how, valid_dir=made / "v", out=out)
    assert value_at(run.score(metric), key) == 1
    assert value_at(bb.evaluate(made / "p", made / "g", **how).score(metric), key) < 1
    assert bb.Evaluation.load(out).provenance.valid == str(made / "v")
    again = bb.evaluate(made / "p", made / "g", **how, valid_dir=made / "v", out=out)
    assert again.kept == 3
    write(made / "v", {"a": np.full((20, 30), 255, np.uint8)})
    again = bb.evaluate(made / "p", made / "g", **how, valid_dir=made / "v", out=out)
    assert again.kept == 2
    assert value_at(again.score(metric), key) < 1


@pytest.mark.parametrize("metric", ["pixel", "saliency", "boundary", "segmentation"])
def test_a_field_of_view_is_in_the_signature(made, metric):
    """A run with it is not compared with one without; nor is its line used without it."""
    how = {"metrics": metric, "workers": 1, "executor": "thread"}
    runs = [bb.evaluate(made / "p", made / "g", **how, valid_dir=v) for v in (made / "v", None)]
    runs.append(bb.Evaluation.load(runs[0].save(made / "out") or made / "out"))
    lines = [str(run.signature).split("|") for run in runs]
    assert ["valid:masks" in line for line in lines] == [True, False, True]
    forbids = {d.field for d in bb.comparability(*runs[:2]) if d.severity.value == "forbids"}
    assert forbids == {"valid", "truth"}
    assert bb.comparability(runs[0], runs[2]) == []
    parsed = [Signature.parse(str(run.signature)) for run in runs[:2]]
    assert [line.valid for line in parsed] == ["masks", ""]
    assert any("field of view" in meaning for _, meaning in parsed[0].decode())
    words = "--gt", made / "g", "--metrics", metric, "--signature", str(parsed[0])
    without = command("evaluate", made / "p", *words)
    assert without.returncode == 2
    assert "--valid" in without.stderr
    assert command("evaluate", made / "p", *words, "--valid", made / "v").returncode == 0


def test_a_field_of_view_that_does_not_fit_is_named(made):
    how = {"metrics": "pixel", "workers": 1, "executor": "thread", "valid_dir": made / "v"}
    write(made / "v", {"b": np.ones((20, 29), np.uint8)})
    with pytest.raises(DataError, match=r"b\.npy: field of view: shape \(20, 29\)"):
        bb.evaluate(made / "p", made / "g", **how)
    write(made / "v", {"b": np.arange(600).reshape(20, 30) % 9})
    with pytest.raises(DataError, match=r"b\.npy: mask: values other than 0 and 1"):
        bb.evaluate(made / "p", made / "g", **how)
    write(made / "v", {"b": np.zeros((20, 30), np.uint8)})
    with pytest.raises(DataError, match=r"b\.npy: a field of view without a pixel"):
        bb.evaluate(made / "p", made / "g", **how)
    (made / "v" / "b.npy").unlink()
    with pytest.raises(DataError, match=r"v: no mask of the field of view for: b "):
        bb.evaluate(made / "p", made / "g", **how)
    with pytest.raises(DataError, match="metric region: counts every pixel"):
        bb.evaluate(made / "p", made / "g", **{**how, "metrics": "region"})


def test_a_field_of_view_and_ignore_are_both_left_out():
    """By and: a pixel counts that neither leaves out."""
    gt, pred = np.zeros((2, 6, 8), np.uint8)
    gt[0], gt[1], pred[:] = 1, 7, 1
    protocol = bb.Protocol.preset("masks").replace(options={"segmentation": {"ignore": 7}})
    truth = bb.GroundTruth("a", labels=gt, valid=VOID_RIGHT)
    counts = registry.get("segmentation").count_image(predicted(pred), truth, protocol)
    assert counts.confusion.tolist() == [[5, 0], [20, 0]]
