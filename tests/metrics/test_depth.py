"""Depth boundaries against slow plain definitions, in nasty cases too, and their files."""

import numpy as np
import pytest
from scipy.io import savemat

import bsdsbench as bb
from bsdsbench.errors import FileFormatError
from bsdsbench.loaders.reading import Kind, ReadOptions
from bsdsbench.metrics import registry
from bsdsbench.metrics.depth import log_steps
from tests.helpers.counting import counts_of, score_of
from tests.helpers.runs import refused
from tests.reference import depth as slow

METRIC = registry.get("depth")
KINDS = ("steps", "noise", "flat", "all", "row", "column", "equal", "zeros", "nan", "infinite")


def depth_map(rng, kind, shape):
    if kind in ("row", "column"):
        shape = (1, shape[1]) if kind == "row" else (shape[0], 1)
    d = rng.choice([1.0, 1.05, 1.2, 2.0, 4.0], (shape[0] // 4 + 1, shape[1] // 4 + 1))
    d = np.kron(d, np.ones((4, 4)))[: shape[0], : shape[1]] * (1 + 0.02 * rng.random(shape))
    if kind in ("noise", "all"):
        d = rng.uniform(1, 3 if kind == "noise" else 1000, shape)
    if kind == "flat":
        d = np.full(shape, 2.5)
    if kind == "equal":
        d = rng.integers(1, 3, shape).astype(float)
    if kind in ("zeros", "nan", "infinite"):
        d[rng.random(shape) < 0.06] = {"zeros": 0.0, "nan": np.nan, "infinite": np.inf}[kind]
    return d


def case(seed):
    """A prediction, a truth and its edges: kinds in turn, the truth's the slower."""
    rng = np.random.default_rng(seed)
    kinds = KINDS[seed % 10], KINDS[seed // 10 % 10]
    shape = tuple(rng.integers(5, 12, 2))
    pred = depth_map(rng, kinds[0], shape)
    gt = depth_map(rng, kinds[1], pred.shape)
    if gt.shape != pred.shape:
        gt = depth_map(rng, "steps", pred.shape)
    if seed % 3 == 0 and gt.shape == pred.shape:
        pred = np.where(rng.random(gt.shape) < 0.9, gt, pred)
    drawn = rng.random(gt.shape) < (0, 0.05, 1)[seed % 3 if seed % 7 == 0 else 1]
    return pred, gt, drawn


@pytest.fixture(params=[100, pytest.param(300, marks=pytest.mark.heavy)])
def seeds(request):
    """Every kind against every kind."""
    return range(request.param)


def protocol_of(**at):
    return bb.Protocol.preset("depth").replace(options={"depth": at})


def scored(pred, gt, at):
    truth = gt if isinstance(gt, bb.GroundTruth) else bb.GroundTruth("a", depth=gt)
    counts = counts_of("depth", bb.Prediction("a", depth=pred), truth, protocol_of(**at))
    return score_of("depth", counts, protocol=protocol_of(**at))


def same(found, expected):
    chosen = {k: found[k] for k in expected}
    assert chosen == pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.slow
def test_si_is_the_plain_one(strict, seeds):
    for seed in seeds:
        pred, gt, _ = case(seed)
        invalid = ("none", "truth", "both")[seed % 3]
        left_out = {
            "none": np.zeros(gt.shape, bool),
            "truth": ~(np.isfinite(gt) & (gt > 0)),
            "both": ~(np.isfinite(gt) & (gt > 0) & np.isfinite(pred) & (pred > 0)),
        }[invalid]
        found = scored(pred, gt, {"invalid": invalid, "strict": strict})
        same(found, slow.si(pred, gt, invalid=left_out, strict=strict))


@pytest.mark.slow
def test_the_recall_of_mattes_is_the_plain_one(seeds):
    for seed in seeds[::3]:
        pred, gt, _ = case(seed)
        mask = np.nan_to_num(gt) > 1.5
        truth, strict = bb.GroundTruth("a", mask=mask), seed % 2 == 0
        found = scored(pred, truth, {"measures": ("matte",), "strict": strict})
        same(found, {"matte_recall": slow.matte_recall(pred, mask, strict=strict)})


@pytest.mark.slow
def test_dbe_is_the_plain_one(seeds):
    for seed in seeds:
        pred, gt, drawn = case(seed)
        truth = bb.GroundTruth("a", (drawn,), depth=gt)
        at = {"measures": ("dbe",), "invalid": "none"}
        mine = slow.dbe(slow._canny_edges(pred), drawn)
        for strict in (False, True):
            found = scored(pred, truth, {**at, "strict": strict})
            same(found, dict(zip(("dbe_accuracy", "dbe_completeness"), mine, strict=True)))
        found = scored(pred, truth, {**at, "dbe": "sharpdepth"})
        mine = slow.dbe_sharp(slow.both_canny(pred), slow.both_canny(gt))
        same(found, dict(zip(("dbe_accuracy", "dbe_completeness"), mine, strict=True)))


@pytest.mark.slow
def test_what_is_masked_out_of_dbe(seeds):
    """The program's mask puts it at distance 0 of the truth; otherwise its edges are left out."""
    differ = 0
    for seed in seeds:
        pred, _, drawn = case(seed)
        mask = np.random.default_rng(seed).random(drawn.shape) < 0.7
        truth, at = bb.GroundTruth("a", (drawn,), valid=mask), {"measures": ("dbe",)}
        edges = slow._canny_edges(pred)
        keys = "dbe_accuracy", "dbe_completeness"
        strict = scored(pred, truth, {**at, "strict": True})
        same(strict, dict(zip(keys, slow.dbe(edges, drawn, mask=mask), strict=True)))
        fair = scored(pred, truth, at)
        same(fair, dict(zip(keys, slow.dbe(edges & mask, drawn & mask), strict=True)))
        differ += fair["dbe_completeness"] != strict["dbe_completeness"]
    assert differ > len(seeds) / 3


def test_soft_edges_are_the_plain_ones(seeds):
    for seed in seeds:
        pred = case(seed)[0]
        if np.isfinite(pred).all():
            assert log_steps(pred) == pytest.approx(slow.log_steps(pred), abs=1e-12)


def test_matched_edges_are_those_of_boundary():
    rng = np.random.default_rng(3)
    pred, drawn = depth_map(rng, "steps", (40, 50)), rng.random((40, 50)) < 0.05
    protocol = bb.Protocol.preset("kitti-de").replace(options={"depth": {"crop": (5, 35, 2, 48)}})
    truth = bb.GroundTruth("a", depth=255 * drawn.astype(np.uint8))
    counts = counts_of("depth", bb.Prediction("a", depth=pred), truth, protocol)
    soft, cut = slow.log_steps(pred[5:35, 2:48]), drawn[5:35, 2:48]
    plain = bb.boundary_counts(soft, [cut], protocol)
    for name, values in plain.items():
        assert np.array_equal(counts[name], values), name


@pytest.mark.parametrize(
    "how", ["scale", "scale-shift", "disparity-scale", "disparity-scale-shift"]
)
def test_alignment_is_least_squares(how):
    from bsdsbench.metrics.depth import _align

    rng = np.random.default_rng(5)
    for _ in range(30):
        pred, gt = rng.uniform(0.5, 9, (2, 6, 7))
        found = _align(pred, gt, np.ones(gt.shape, bool), how)
        assert found == pytest.approx(slow.aligned(pred, gt, how), rel=1e-7)
        flat = np.full(gt.shape, 2.0)
        assert np.isfinite(_align(flat, gt, np.ones(gt.shape, bool), how)).all()


def test_a_flat_truth_leaves_the_mean_unless_strict():
    step, flat = np.ones((6, 8)), np.ones((6, 8))
    step[:, 4:] = 2
    for strict, expected in ((False, 1.0), (True, 0.125)):
        stream = bb.StreamingEvaluator(protocol_of(strict=strict), "depth")
        stream.update(step, step, "a")
        stream.update(step, flat, "b")
        found = stream.compute().score("depth").to_mapping()
        # one direction of four has edges: recall and precision .25, and 0 for the flat image
        assert found["si_f1"] == pytest.approx(expected)


def test_every_map_of_a_truths_file(tmp_path):
    """What is not 0 is valid in all three masks, or drawn; of a matte what is above a tenth."""
    from bsdsbench.loaders.pairing import Pair
    from bsdsbench.loaders.readers import read_truth

    masks = {"valid": [[0, 2, 2]], "mask_invalid": [[1, 0, 1]], "mask_transp": [[1, 1, 1]]}
    maps = {"depth": [[1.5, 0, 3]], "edges": [[0, 1, 2]], **masks}
    path = tmp_path / "a.mat"
    for kind, (below, above) in {np.uint8: (25, 26), float: (0.1, 0.11)}.items():
        savemat(path, {"data": {**maps, "matte": np.array([[below, above, 0]], kind)}})
        found = read_truth(Pair("a", (), (path,)), "depth-map", ReadOptions(Kind.DEPTH))
        assert found.depth.tolist() == maps["depth"]
        assert [e.tolist() for e in found.boundaries] == [[[False, True, True]]]
        assert found.valid.tolist() == [[False, False, True]]
        assert found.mask.tolist() == [[False, True, False]]
    np.savez(tmp_path / "c.npz", depth=[[1.0, 2]], edges=[[0, 1, 1]])
    with pytest.raises(FileFormatError, match=r"shape \(1, 2\), expected \(1, 3\)"):
        read_truth(Pair("c", (), (tmp_path / "c.npz",)), "depth-map", ReadOptions(Kind.DEPTH))


def test_what_the_truth_lacks_is_said():
    depth, drawn = np.ones((4, 5)), bb.GroundTruth("a", (np.eye(4, 5) > 0,))
    for gt, at, words in (
        (drawn, {}, "no depth, expected depth for"),
        (depth, {"measures": ("edges",)}, "no edges, expected edges for"),
        (
            drawn,
            {"measures": ("dbe",), "align": "scale"},
            "no depth, which depth.align = scale needs",
        ),
        (depth, {"crop": (0, 5, 0, 5)}, "4 x 5, expected the crop"),
    ):
        refused(f"^a: {words}", scored, depth, gt, at)


def test_infinite_depths_of_a_truth_that_all_counts_warn_of_nothing():
    gt = np.full((9, 9), 2.0)
    gt[:, 5:], gt[1, 1] = 4, np.inf
    pred, truth = bb.Prediction("a", depth=np.full((9, 9), 3.0)), bb.GroundTruth("a", depth=gt)
    metric, protocol = registry.get("depth"), bb.Protocol.preset("ibims1")
    assert [*metric.symptoms(pred, truth, protocol, metric.options_of(protocol))] == []
