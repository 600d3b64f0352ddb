"""Streaming against `evaluate` on the same files, bit for bit, however the images are split."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bsdsbench as bb
from bsdsbench.loaders import load_ground_truth, load_prediction, pair
from bsdsbench.loaders.sample import sample_ground_truth, sample_results
from bsdsbench.metrics.boundary import boundary_counts
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs import streaming
from bsdsbench.runs.streaming import fast_bound, fast_protocol, measure, measure_fast
from bsdsbench.scores.counts import BoundaryCounts, ImageRecord
from bsdsbench.scores.curve import PRCurve
from bsdsbench.scores.ratios import ratio


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    """Three images as arrays: (id, soft map, annotators), and what `evaluate` says of the files."""
    folder = tmp_path_factory.mktemp("split")
    pairs = pair(sample_results("structure-tensor"), sample_ground_truth())
    chosen = pairs[:3]
    split = folder / "ids.txt"
    split.write_text("\n".join(p.image_id for p in chosen))
    run = bb.evaluate(
        sample_results("structure-tensor"),
        sample_ground_truth(),
        "bsds500",
        split_file=split,
        workers=1,
        executor="thread",
    )
    images = [
        (p.image_id, load_prediction(p).soft, list(load_ground_truth(p).boundaries)) for p in chosen
    ]
    return images, run


def counts_equal(a, b):
    rows = zip(a.records, b.records, strict=True)
    return all(
        x.image_id == y.image_id
        and x.size == y.size
        and x.counts["boundary"].equals(y.counts["boundary"])
        for x, y in rows
    )


def test_one_by_one_equals_evaluate_bit_for_bit(sample):
    images, run = sample
    ev = bb.StreamingEvaluator("bsds500")
    for name, soft, gts in reversed(images):
        ev.update(soft, gts, image_id=name)
    assert counts_equal(ev.compute(), run)
    assert ev.compute().scores() == run.scores()
    assert len(ev) == 3
    ev.reset()
    with pytest.raises(bb.DataError, match="no images yet"):
        ev.compute()


def test_a_batch_of_lists_or_arrays_equals_single_images(sample):
    images, run = sample
    names = [name for name, _, _ in images]
    ev = bb.StreamingEvaluator()
    ev.update([soft for _, soft, _ in images], [g for _, _, g in images], image_id=names)
    assert counts_equal(ev.compute(), run)

    soft = np.stack([images[0][1]] * 2)[:, None]  # (2, 1, H, W)
    gts = [np.stack(images[0][2]).astype(np.uint8), images[0][2]]
    batch = bb.StreamingEvaluator()
    batch.update(soft, gts)
    first, second = batch.compute().records
    assert first.counts["boundary"].equals(second.counts["boundary"])
    assert first.counts["boundary"].equals(run.records[0].counts["boundary"])


def test_ranks_merge_to_the_same_bits_after_pickling(sample):
    images, run = sample
    ranks = [bb.StreamingEvaluator(), bb.StreamingEvaluator()]
    for i, (name, soft, gts) in enumerate(images):
        ranks[i % 2].update(soft, gts, image_id=name)
    a, b = (pickle.loads(pickle.dumps(r)) for r in ranks)
    assert counts_equal(b.merge(a).compute(), run)
    with pytest.raises(bb.DataError, match="in both"):
        b.merge(a)
    with pytest.raises(bb.DataError, match="protocol or metrics differ"):
        a.merge(bb.StreamingEvaluator(fast=True))


def test_threads_number_the_images_they_add_at_once(monkeypatch):
    both = Barrier(2, timeout=30)

    def at_once(*given):
        both.wait()  # both updates have their provisional numbers
        return measure(*given)

    monkeypatch.setattr(streaming, "measure", at_once)
    ev = bb.StreamingEvaluator(bb.Protocol(thresholds=2))
    with ThreadPoolExecutor(2) as pool:
        for batch in (False, True):
            maps = [np.eye(9), np.eye(9)] if batch else np.eye(9)
            gts = [[np.eye(9)], [np.eye(9)]] if batch else [np.eye(9)]
            for done in [pool.submit(ev.update, maps, gts) for _ in range(2)]:
                done.result()
    assert [r.image_id for r in ev.compute().records] == [f"image{k:06d}" for k in range(6)]


def test_a_copy_has_a_lock_of_its_own():
    ev = bb.StreamingEvaluator(bb.Protocol(thresholds=2))
    ev.update(np.eye(9), [np.eye(9)])
    for again in (pickle.loads(pickle.dumps(ev)), copy.deepcopy(ev)):
        again.update(np.eye(9), [np.eye(9)])
        assert len(again) == 2
    assert len(ev) == 1


class Tensor:
    """What a torch tensor on a device looks like to us."""

    def __init__(self, array, dtype="torch.float32"):
        self.array, self.dtype, self.ndim = array, dtype, array.ndim

    def detach(self):
        return self

    def cpu(self):
        return self

    def float(self):
        return Tensor(self.array.astype(np.float32))

    def numpy(self):
        if self.dtype == "torch.bfloat16":
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self.array


@pytest.mark.parametrize("dtype", ["torch.float32", "torch.bfloat16"])
def test_tensors_are_taken_as_arrays(dtype):
    soft = np.zeros((9, 14), np.float32)
    soft[4] = 0.5
    ev = bb.StreamingEvaluator(Protocol(thresholds=(0.5,), max_dist_px=1))
    ev.update(Tensor(soft, dtype), [Tensor((soft > 0).astype(np.int64))], image_id="t")
    ev.update(soft, [soft > 0], image_id="n")
    by_id = {r.image_id: r for r in ev.compute().records}
    assert by_id["t"].counts["boundary"].equals(by_id["n"].counts["boundary"])
    assert by_id["t"].counts["boundary"].matched_pred.tolist() == [14]


def test_torch_tensors(sample):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    (name, soft, gts), run = sample[0][0], sample[1]
    ev = bb.StreamingEvaluator()
    ev.update(torch.from_numpy(soft.copy()), torch.from_numpy(np.stack(gts)), image_id=name)
    assert ev.compute().records[0].counts["boundary"].equals(run.records[0].counts["boundary"])


def test_a_batch_with_a_fault_adds_nothing():
    ev = bb.StreamingEvaluator(Protocol(thresholds=(0.5,)))
    soft, gt = np.zeros((5, 8)), np.zeros((5, 8), bool)
    with pytest.raises(bb.DataError, match="expected"):
        ev.update([soft, soft], [[gt], [np.zeros((8, 5), bool)]], image_id=["a", "b"])
    assert len(ev) == 0
    ev.update(soft, gt.astype(np.uint8) * 255, image_id="a")
    with pytest.raises(bb.DataError, match="a: this image is already there"):
        ev.update(soft, gt, image_id="a")
    with pytest.raises(bb.ShapeError, match="1 ground truths for a batch of 2"):
        ev.update([soft, soft], [[gt]])
    with pytest.raises(bb.DataError, match="values other than 0 and 1"):
        ev.update(soft, gt + 2, image_id="b")
    with pytest.raises(bb.DataError, match="metrics"):
        bb.StreamingEvaluator(metrics=("edges",))


def test_fast_mode_counts_are_the_exact_ones_and_its_error_is_measured(sample):
    images, run = sample
    ev = bb.StreamingEvaluator(fast=True)
    for name, soft, gts in images:
        ev.update(soft, gts, image_id=name)
    fast = ev.compute()
    at = np.isin(run.protocol.threshold_array(), fast.protocol.threshold_array())
    assert at.sum() == 50
    for few, all_ in zip(fast.records, run.records, strict=True):
        assert (
            few.counts["boundary"].matched_pred.tolist()
            == all_.counts["boundary"].matched_pred[at].tolist()
        )
        assert (
            few.counts["boundary"].matched_gt.tolist()
            == all_.counts["boundary"].matched_gt[at].tolist()
        )
    error = measure_fast(run)
    assert error.ods == fast.boundary_score().ods.f - run.boundary_score().ods.f
    assert error.ap == fast.boundary_score().ap - run.boundary_score().ap
    assert abs(error.ods) < 0.001
    assert "50 thresholds on 3 images: ODS" in str(error)
    assert "fast: 50 of 99 thresholds, ODS within 0.002 and AP within 0.01" in repr(ev)
    assert fast.provenance["fast"].startswith("fast: 50 of 99 thresholds")
    assert "exact" in repr(bb.StreamingEvaluator())
    assert fast_protocol(Protocol(thresholds=5)) == Protocol(thresholds=5)


def _detected(method, gray, edges):
    from skimage import filters

    if method == "sobel":
        return filters.sobel(gray)
    if method == "canny":
        return edges * (filters.gaussian(gray, 1) > 0.3)
    if method == "ridges":
        return bb.nms((edges / edges.max()).astype(np.float32))
    return filters.gaussian(edges, 1) ** 0.7


@pytest.mark.parametrize("method", ["sobel", "canny", "structure-tensor", "ucm", "ridges"])
def test_the_bound_of_the_fast_mode_holds(method, bsds500, tmp_path):
    """ODS within 0.002 and AP within 0.01, on maps that use the range from 0 to 1."""
    from skimage import color, filters, io

    records = []
    for path in sorted((bsds500 / "ucm2" / "val").glob("*.mat"))[:8]:
        gt = load_ground_truth(bsds500 / "groundTruth" / "val" / path.name)
        gray = color.rgb2gray(io.imread(bsds500 / "images" / "val" / f"{path.stem}.jpg"))
        edges = filters.sobel(filters.gaussian(gray, 2))
        if method == "ucm":
            pred = load_prediction(path)
        else:
            soft = _detected(method, gray, edges)
            pred = soft / soft.max()
        counts = boundary_counts(pred, gt, Protocol.preset("bsds500"))
        records.append(ImageRecord(path.stem, gt.shape, {"boundary": counts}))
    run = bb.Evaluation(Protocol.preset("bsds500"), method, tuple(records))
    error = measure_fast(run)
    assert abs(error.ods) < 0.002
    assert abs(error.ap) < 0.01


@st.composite
def falling_counts(draw):
    """Matched and false pixels at 99 thresholds: with a falling threshold recall rises and
    precision falls, in steps anywhere."""
    step = st.tuples(st.integers(0, 98), st.integers(1, 40), st.integers(0, 60))
    steps = sorted(draw(st.lists(step, min_size=1, max_size=15)), reverse=True)
    hit, wrong = np.zeros(99, np.int64), np.zeros(99, np.int64)
    for k, more, false in steps:
        had, lost = int(hit[k]), int(wrong[k])
        hit[: k + 1] += more
        wrong[: k + 1] += false + (-(-more * lost // had) if had else 0)
    return hit, int(hit[0]) + draw(st.integers(1, 50)), wrong


@given(falling_counts())
def test_the_bound_of_a_fast_curve_holds_wherever_the_values_lie(made):
    hit, total_gt, wrong = made
    grid = Protocol.preset("bsds500").threshold_array()
    counts = BoundaryCounts(grid, hit, np.full(99, total_gt), hit, hit + wrong)
    record = ImageRecord("a", (9, 9), {"boundary": counts})
    run = bb.Evaluation(Protocol.preset("bsds500"), "x", (record,))
    error = measure_fast(run)
    at = np.isin(grid, fast_protocol(run.protocol).threshold_array())
    some = PRCurve(grid[at], ratio(hit, hit + wrong)[at], ratio(hit, np.full(99, total_gt))[at])
    ods, ap = fast_bound(some)
    assert abs(error.ods) <= ods + 1e-12
    assert np.isnan(error.ap) or abs(error.ap) <= ap + 1e-12


def test_the_worst_map_for_the_fast_mode_is_said_to_be_bad():
    """Edges of .025 on noise of .015: no threshold of the fast mode lies between the two."""
    gt = np.zeros((40, 50), bool)
    gt[10:30, 25] = True
    soft = np.zeros((40, 50))
    soft[:, 1:22:3] = 0.0151
    soft[gt] = 0.0251
    both = {}
    for fast in (False, True):
        ev = bb.StreamingEvaluator(fast=fast)
        ev.update(soft.astype(np.float32), [gt], image_id="a")
        both[fast] = ev.compute()
    lost = both[False].boundary_score().ods.f - both[True].boundary_score().ods.f
    ods, ap = fast_bound(both[True].boundary_score().curve)
    assert lost > 0.5
    assert lost <= ods
    assert (
        f"by this curve's own gaps ODS within {ods:.4f} and AP within {ap:.4f}"
        in (both[True].provenance["fast"])
    )
