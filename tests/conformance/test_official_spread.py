"""Counts against ten runs of the official program, whose solver is randomised, on real images."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from scipy.io import loadmat

from bsdsbench.metrics.boundary import boundary_counts, match_boundaries
from bsdsbench.metrics.maps import thin
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.ratios import f_measure, ratio
from tests.reference import matching as reference

ROOT = Path(os.environ.get("BSDSBENCH_BSDS500", "."))
SPREAD = ROOT.parent / "spec" / "official_val_spread.json"
pytestmark = [
    pytest.mark.skipif("BSDSBENCH_BSDS500" not in os.environ, reason="BSDSBENCH_BSDS500 is not set")
]


def load(image_id):
    """Soft map from the ucm2, and (A, H, W) bool boundaries."""
    ucm2 = loadmat(ROOT / "ucm2" / "val" / f"{image_id}.mat")["ucm2"]
    cells = loadmat(ROOT / "groundTruth" / "val" / f"{image_id}.mat")["groundTruth"][0]
    gts = np.stack([cell["Boundaries"][0, 0].astype(bool) for cell in cells])
    return np.ascontiguousarray(ucm2[2::2, 2::2], np.float64), gts


def image_ids():
    return sorted(path.stem for path in (ROOT / "ucm2" / "val").glob("*.mat"))


@pytest.mark.skipif(not SPREAD.is_file(), reason="official_val_spread.json is not beside the data")
def test_counts_lie_in_the_spread_of_the_official_program():
    shifts = []
    for image_id, official in json.loads(SPREAD.read_text())["images"].items():
        soft, gts = load(image_id)
        rows = official["thresholds"]
        protocol = Protocol(thresholds=[row["threshold"] for row in rows])
        counts = boundary_counts(soft, gts, protocol)
        for k, row in enumerate(rows):
            total_gt, total_pred = row["sumR"], row["sumP"]
            matched_gt, matched_pred = counts.matched_gt[k], counts.matched_pred[k]
            assert (counts.total_gt[k], counts.total_pred[k]) == (total_gt, total_pred)
            assert matched_gt >= max(row["cntR"])
            slack = max(2, 0.003 * total_pred)
            assert min(row["cntP"]) - slack <= matched_pred <= max(row["cntP"]) + slack

            def f(matched_gt, matched_pred, total_gt=total_gt, total_pred=total_pred):
                return f_measure(ratio(matched_pred, total_pred), ratio(matched_gt, total_gt))

            theirs = [f(r, p) for r, p in zip(row["cntR"], row["cntP"], strict=True)]
            shifts.append(f(matched_gt, matched_pred) - np.mean(theirs))
    assert len(shifts) == 40
    assert abs(np.mean(shifts)) < 0.0003


@pytest.mark.slow
def test_whole_real_problems_equal_scipy():
    """Cost and cardinality of 20 real problems, each a thinned map and one annotator."""
    chosen = image_ids()[::5]
    assert len(chosen) == 20
    for k, image_id in enumerate(chosen):
        soft, gts = load(image_id)
        bmap = thin(soft >= (0.05, 0.12, 0.25)[k % 3])
        gt = gts[k % len(gts)]
        max_dist = 0.0075 * np.hypot(*soft.shape)
        match = match_boundaries(bmap, gt, max_dist)
        assert match.cost == reference.sparse_cost(bmap, gt, max_dist), image_id
        assert match.n_matched == reference.cardinality(bmap, gt, max_dist), image_id


@pytest.mark.slow
def test_crops_of_real_maps_are_the_one_optimum():
    for k, image_id in enumerate(image_ids()[::10]):
        soft, gts = load(image_id)
        bmap = thin(soft >= 0.04)
        corner = np.s_[20 * k : 20 * k + 60, 30 * k : 30 * k + 45]
        for gt in gts:
            cost, _ = reference.optimum(bmap[corner], gt[corner], 4.34)
            assert match_boundaries(bmap[corner], gt[corner], 4.34).cost == cost


@pytest.mark.parametrize("count", [1, pytest.param(8, marks=pytest.mark.heavy)])
@pytest.mark.slow
def test_warm_start_equals_each_threshold_alone(count):
    """All 99 thresholds of real maps: the nested ucm, and a dense soft map made from it."""
    from scipy.ndimage import gaussian_filter

    for image_id in image_ids()[3::12][:count]:
        soft, gts = load(image_id)
        dense = gaussian_filter(soft, 2)
        for values in (soft, dense / dense.max()):
            values = values[:160, :240] if count == 1 else values
            masks = gts[:, :160, :240] if count == 1 else gts
            warm = boundary_counts(values, masks)
            for k, threshold in enumerate(warm.thresholds):
                alone = Protocol(thresholds=(threshold,))
                cold = boundary_counts(values, masks, alone)
                for name in ("matched_gt", "matched_pred", "total_gt", "total_pred"):
                    assert getattr(cold, name)[0] == getattr(warm, name)[k], (name, k)
