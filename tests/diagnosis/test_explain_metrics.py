"""Explaining scores of other metrics than boundaries by what they say is in use."""

import imageio.v3 as iio
import numpy as np
import pytest
from scipy import ndimage as ndi

import bsdsbench as bb
from bsdsbench.diagnosis.explain import explain
from tests.helpers.masks import blobs
from tests.helpers.runs import call, refused

IDS = [f"room{k}" for k in range(8)]
PETS = {"classes": ("none", "cat", "dog"), "ignore": -1}


@pytest.fixture(scope="module")
def rooms(tmp_path_factory):
    """Depth data: boxes before a wall with annotated edges; a model's blurred depth, another's
    of unknown scale and shift, one a pixel off; label maps and saliency maps beside."""
    root = tmp_path_factory.mktemp("rooms")
    rng = np.random.default_rng(7)
    for folder in ("moved", "blurred", "shifted", "gt", "labels", "soft", "masks", "classes"):
        (root / folder).mkdir()

    def saved(folder, name, pixels):
        if pixels.dtype == np.uint8:
            iio.imwrite(root / folder / f"{name}.png", pixels)
        else:
            np.save(root / folder / f"{name}.npy", pixels)

    for name in IDS:
        depth = 2.0 + 1.5 * blobs(rng, (48, 64), 4, 5)
        if name == IDS[0]:  # one step, edges in one direction of four
            depth = np.where(np.arange(64) < 30, 2.0, 5.0) * np.ones((48, 1))
        edges = np.diff(depth, axis=1, append=depth[:, -1:]) != 0
        edges |= np.diff(depth, axis=0, append=depth[-1:]) != 0
        depth *= 1 + 0.02 * rng.random(depth.shape)
        np.savez(root / "gt" / f"{name}.npz", depth=depth, edges=edges)
        near = ndi.gaussian_filter(depth, 1.2) * (1 + 0.03 * rng.random(depth.shape))
        saved("blurred", name, near)
        saved("moved", name, np.roll(depth, 1, 1) + rng.normal(0, 0.05, (48, 64)))
        saved("shifted", name, rng.uniform(2, 4) * near + rng.uniform(1, 9))
        labels = blobs(rng, (48, 64), 2, 4).astype(np.uint8)
        saved("labels", name, labels)
        moved = np.where(rng.random(labels.shape) < 0.05, 0, np.roll(labels, 2, 1))
        saved("classes", name, moved.astype(np.uint8))
        saved("masks", name, 255 * (labels > 0).astype(np.uint8))
        soft = np.clip(40 + 120 * (moved > 0) + rng.normal(0, 30, labels.shape), 5, 240)
        saved("soft", name, soft.astype(np.uint8))
    return root


def counted(rooms, pred, gt, metric, preset, **options):
    protocol = bb.Protocol.preset(preset).replace(options={metric: options})
    return bb.evaluate(
        rooms / pred, rooms / gt, protocol, metrics=metric, workers=1, executor="thread"
    )


def value(run, metric, key):
    found = run.score(metric).to_mapping()
    for part in key.split("."):
        found = found[part]
    return found


SI = {"measures": ("si",)}
DBE = {"measures": ("dbe",)}
CASES = [
    ("blurred", "depth", SI, {"strict": True}, ("si_f1", "si_recall"), "depth.strict True"),
    (
        *("blurred", "depth", DBE, {"dbe": "sharpdepth"}),
        *(("dbe_accuracy", "dbe_completeness"), "depth.dbe sharpdepth"),
    ),
    ("soft", "saliency", {}, {"beta2": 1.0}, ("max_f_mean",), "saliency.beta2 1.0"),
    ("soft", "saliency", {}, {"stretch": False}, ("mae_mean",), "saliency.stretch False"),
    ("classes", "segmentation", PETS, {"ignore": 0}, ("mean_iou",), "segmentation.ignore 0"),
]
TRUTHS = {"depth": "gt", "saliency": "masks", "segmentation": "labels", "contour": "labels"}
PRESETS = {"depth": "depth", "saliency": "saliency", "segmentation": "masks", "contour": "masks"}


@pytest.mark.parametrize(
    ("pred", "metric", "own", "planted", "keys", "label"),
    [pytest.param(*c, id=c[-1], marks=[pytest.mark.slow] * (c[1] == "depth")) for c in CASES],
)
def test_a_planted_option_is_the_first_answer(rooms, pred, metric, own, planted, keys, label):
    place = pred, TRUTHS[metric], metric, PRESETS[metric]
    run, other = counted(rooms, *place, **own), counted(rooms, *place, **{**own, **planted})
    targets = {f"{metric}.{key}": round(value(other, metric, key), 6) for key in keys}
    told = explain(run, targets, workers=1, seconds=300)
    assert told.answer.label == label
    assert told.answer.scores == {k: pytest.approx(value(other, metric, k)) for k in keys}
    assert all(t.gap > 0 for t in told.trials if t.label == "as it is")
    assert told.complete


@pytest.mark.parametrize(
    ("pred", "metric", "own", "asked", "other", "words"),
    [
        ("blurred", "depth", SI, "si_f1", "si_f1_pooled", "SI-F1 of sums"),
        ("soft", "saliency", {}, "max_f_mean", "max_f_pr", "max F of mean P, R"),
        ("classes", "contour", PETS, "iou", "pooled.iou", "IoU of all pixels"),
    ],
)
@pytest.mark.slow
def test_another_column_of_the_quantity_is_a_reading(rooms, pred, metric, own, asked, other, words):
    run = counted(rooms, pred, TRUTHS[metric], metric, PRESETS[metric], **own)
    told = explain(run, {f"{metric}.{asked}": value(run, metric, other)}, workers=1, seconds=300)
    assert (told.answer.label, told.answer.kind) == (words, "reading")
    assert len(told.fitting) == 1


def test_a_score_of_another_metric_than_the_runs_is_refused():
    run = bb.evaluate_items([("a", np.eye(9), np.eye(9))], metrics="contour", workers=1)
    words = "items: no boundary counts for target 'iou' .contour.SCORE=VALUE"
    refused(words, explain, run, {"iou": 0.9})


@pytest.mark.parametrize(
    ("metric", "pred", "spoil", "own", "codes"),
    [
        ("depth", "blurred", lambda d: 1 / d, {}, {"inverse"}),
        ("depth", "blurred", lambda d: 1000 * d, {}, {"scale"}),
        ("depth", "blurred", lambda d: np.stack([d, d]), {}, {"unreadable"}),
        ("depth", "blurred", lambda d: d, {"measures": ("matte",)}, {"refused"}),
        ("saliency", "soft", lambda d: 255 - d, {}, {"inverted"}),
        ("segmentation", "classes", lambda d: d + 3, PETS, {"refused"}),
        ("contour", "classes", lambda d: 0 * d + 2, {**PETS, "ignore": 2}, {"ignored"}),
    ],
)
def test_the_doctor_says_what_the_metric_finds_odd(
    rooms, tmp_path, metric, pred, spoil, own, codes
):
    for path in (rooms / pred).iterdir():
        if path.suffix == ".npy":
            np.save(tmp_path / path.name, spoil(np.load(path)))
        else:
            iio.imwrite(tmp_path / path.name, spoil(iio.imread(path)).astype(np.uint8))
    protocol = bb.Protocol.preset(PRESETS[metric]).replace(options={metric: own})
    found = bb.doctor(tmp_path, rooms / TRUTHS[metric], protocol, metrics=metric)
    assert {f.code for f in found} == codes
    if not own:
        told = call("doctor", tmp_path, "--gt", rooms / TRUTHS[metric], "--metrics", metric)
        assert all(f"{code}: " in told for code in codes)


def test_the_doctor_takes_the_metrics_of_a_run_together(tmp_path):
    """What two metrics say alike is said once."""
    for side in ("pred", "gt"):
        (tmp_path / side).mkdir()
    for k in range(3):
        np.save(tmp_path / "gt" / f"a{k}.npy", np.eye(20, dtype=bool))
        np.save(tmp_path / "pred" / f"a{k}.npy", np.eye(20 + (k > 1)))
    words = ("doctor", tmp_path / "pred", "--gt", tmp_path / "gt", "--metrics")
    both, one = (call(*words, names) for names in ("boundary,pixel", "boundary"))
    assert both.count("another size") == one.count("another size") == 1
