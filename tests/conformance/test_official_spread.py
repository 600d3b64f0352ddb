"""Counts against ten runs of the official program, whose solver is randomised, on real images."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from scipy.io import loadmat

from bsdsbench.metrics.boundary import boundary_counts, match_boundaries
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.ratios import f_measure, ratio
from bsdsbench.transforms.maps import thin
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
            gt, pred = (
                np.append(row[k], n) for k, n in (("cntR", matched_gt), ("cntP", matched_pred))
            )
            f = f_measure(ratio(pred, total_pred), ratio(gt, total_gt))
            shifts.append(f[-1] - f[:-1].mean())
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
def test_warm_start_equals_each_threshold_alone():
    """All 99 thresholds of a piece of a real map: the nested ucm, and a dense soft map of it."""
    from scipy.ndimage import gaussian_filter

    soft, gts = load(image_ids()[3])
    dense = gaussian_filter(soft, 2)
    for values in (soft, dense / dense.max()):
        given = values[:160, :240], gts[:, :160, :240]
        warm = boundary_counts(*given)
        for k, threshold in enumerate(warm.thresholds):
            cold = boundary_counts(*given, Protocol(thresholds=(threshold,)))
            for name in ("matched_gt", "matched_pred", "total_gt", "total_pred"):
                assert getattr(cold, name)[0] == getattr(warm, name)[k], (name, k)
