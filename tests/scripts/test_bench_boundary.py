"""The benchmark script runs, writes its figures, and its checks of equality hold on made images."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bsdsbench as bb

ROOT = Path(__file__).resolve().parents[2]


def one_pair_short(soft, gts, thresholds, max_dist):
    """A peer that misses one matched ground-truth pixel at every threshold."""
    proto = bb.Protocol(thresholds=tuple(thresholds), max_dist=max_dist)
    counts = bb.boundary_counts(np.round(soft * 255).astype(np.uint8), gts, proto)
    return counts.matched_gt - 1, counts.total_gt, counts.matched_pred, counts.total_pred


@pytest.mark.process
def test_sections(tiny, tmp_path):
    pred, gt = tiny
    figures = tmp_path / "bench.json"
    call = [sys.executable, str(ROOT / "scripts" / "bench"), "boundary", str(pred), str(gt)]
    call += ["--images", "2", "--few", "1", "--repeat", "1", "--scipy-thresholds", "2"]
    call += ["--sections", "stages,scratch,scipy,peer", "--json", str(figures)]
    call += ["--peer", "tests.scripts.test_bench_boundary:one_pair_short"]
    done = subprocess.run(
        call, capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path, env=os.environ
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(figures.read_text())
    assert found["stages"]["images"] == 2
    assert set(found["stages"]["rows"]) >= {"load", "thin", "match", "aggregate", "write"}
    for section in ("scratch", "scipy"):
        assert [row["same"] for row in found[section]["rows"].values()] == [True]
    (peer,) = found["peers"].values()
    assert [row["largest_difference"] for row in peer["rows"].values()] == [[1, 0, 0, 0]]
    assert "Milliseconds per image" in done.stdout
