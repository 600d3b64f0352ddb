"""The matching engine against scipy and a dense exact solver; its memory; the compiler off."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from bsdsbench.kernels.matching import graph, matching
from bsdsbench.kernels.matching.matching import match_maps, match_steps, prepare_truth
from bsdsbench.kernels.thinning import stack_changes, thinning_changes
from bsdsbench.loaders.labels import seg2bdry
from bsdsbench.metrics.boundary import match_boundaries
from tests.reference import matching as reference


def random_map(rng, shape, share):
    return rng.random(shape) < share


def cold(bmaps, gts, max_dist_px):
    """Counts of each map alone, from nothing."""
    found = [
        match_steps(stack_changes(bmap[None]), prepare_truth(gts, max_dist_px)) for bmap in bmaps
    ]
    return np.array([(g[0], p[0]) for g, p in found]).T


@pytest.fixture(params=[False, True])
def direction(request, monkeypatch) -> None:
    """Thresholds are taken from the highest down, and from the lowest up."""
    monkeypatch.setattr(
        matching, "_should_start_at_lowest_threshold", lambda added, truth: request.param
    )


MANY = ((200, 211), 0.3, 0.5, 1.5)  # more than 16,384 ground-truth pixels


@pytest.mark.parametrize("case", [*(((60, 83), 0.02 * 2**k, 0.12, 4.34) for k in range(6)), MANY])
def test_cost_and_cardinality_equal_scipy_on_larger_maps(case) -> None:
    shape, share, gt_share, max_dist = case
    rng = np.random.default_rng(round(1000 * share))
    bmap, gt = random_map(rng, shape, share), random_map(rng, shape, gt_share)
    match = match_boundaries(bmap, gt, max_dist)
    assert match.cost == reference.sparse_cost(bmap, gt, max_dist)
    assert match.n_matched == reference.cardinality(bmap, gt, max_dist)


@pytest.mark.usefixtures("direction")
def test_warm_start_equals_each_map_alone_on_soft_maps() -> None:
    rng = np.random.default_rng(5)
    gts = rng.random((3, 40, 53)) < 0.1
    noise = rng.integers(0, 13, (40, 53)).astype(np.int16)
    smooth = np.add.outer(np.arange(40) % 13, np.arange(53) % 7).astype(np.int16) % 13
    for level in (noise, smooth, np.full((40, 53), 12, np.int16)):
        for do_thin in (True, False):
            changes = thinning_changes(level, 12, do_thin)
            bmap, bmaps = np.zeros(level.shape, bool), []
            for k in range(12):
                step = slice(changes.start[k], changes.start[k + 1])
                bmap.flat[changes.pixel[step]] = changes.added[step]
                bmaps.append(bmap.copy())
            warm = match_steps(changes, prepare_truth(gts, 3.3))
            np.testing.assert_array_equal(warm, cold(bmaps, gts, 3.3))


@pytest.mark.usefixtures("direction")
def test_warm_start_equals_each_map_alone_where_maps_do_not_nest() -> None:
    rng = np.random.default_rng(6)
    gts = rng.random((2, 31, 44)) < 0.15
    shares = (0.3, 0.05, 0, 0.9, 0.2, 0.2, *rng.random(20))  # edges are kept for some steps only
    bmaps = np.stack([rng.random((31, 44)) < share for share in shares])
    warm = np.array(match_steps(stack_changes(bmaps), prepare_truth(gts, 2.5)))
    np.testing.assert_array_equal(warm[:, ::-1], cold(bmaps, gts, 2.5))


@pytest.mark.usefixtures("direction")
def test_more_thresholds_than_bits_in_a_word() -> None:
    rng = np.random.default_rng(7)
    level = rng.integers(0, 201, (25, 33)).astype(np.int16)
    gts = rng.random((2, 25, 33)) < 0.2
    changes = thinning_changes(level, 200)
    every = np.array(match_steps(changes, prepare_truth(gts, 2)))
    for kept in (10, 64, 65, 128, 200):
        lower = np.maximum(level - (200 - kept), 0).astype(np.int16)
        few = thinning_changes(lower, kept)
        np.testing.assert_array_equal(match_steps(few, prepare_truth(gts, 2)), every[:, :kept])


@pytest.mark.usefixtures("direction")
def test_a_small_arena_changes_nothing(monkeypatch) -> None:
    rng = np.random.default_rng(8)
    level = rng.integers(0, 9, (40, 50)).astype(np.int16)
    gts = rng.random((2, 40, 50)) < 0.3
    changes = thinning_changes(level, 8)
    expected = match_steps(changes, prepare_truth(gts, 4))
    monkeypatch.setattr(graph, "_ARENA_EDGES", 1)
    np.testing.assert_array_equal(match_steps(changes, prepare_truth(gts, 4)), expected)


def test_a_reach_whose_table_would_not_fit_is_refused() -> None:
    bmap = np.zeros((1500, 1500), bool)
    with pytest.raises(ValueError, match="max_dist of 2000 px: expected at most 1800 px"):
        match_maps(bmap, bmap, 2000)


def test_fewer_tie_bits_where_sums_would_not_fit() -> None:
    def geometry(max_dist, n_gt):
        return graph.new_geometry((9, 9), graph.disk(max_dist, (9, 9)), n_gt, 0)

    few, many = geometry(4.34, 3000), geometry(400.0, 2**30)
    assert 64 - int(few.dropped_bits) == 24
    assert 64 - int(many.dropped_bits) == 60 - 31 - 22
    for geo in (few, many):
        assert 0 < int(geo.gain.max()) < 2**60
    with pytest.raises(ValueError, match="too large to match exactly"):
        geometry(1e12, 2**30)
    disk = graph.disk(4.34, (9, 9))
    graph.new_geometry((9, 9), disk._replace(unmatched_cost=2**29 - 1), 2**30 - 1, 0)
    with pytest.raises(ValueError, match=r"max_dist of 53687\.1 px with 1073741823 pixels: too"):
        graph.new_geometry((9, 9), disk._replace(unmatched_cost=2**29), 2**30 - 1, 0)


@pytest.mark.parametrize("max_dist", [0.0, 0.3, 5.0])
def test_empty_maps(max_dist) -> None:
    some, none = np.eye(5, 7, dtype=bool), np.zeros((5, 7), bool)
    for bmap, gt in ((some, none), (none, some), (none, none)):
        match = match_boundaries(bmap, gt, max_dist)
        assert match.cost == reference.lost_pair(max_dist) * (bmap.sum() + gt.sum())
        assert (match.pred_match == -1).all()
        assert (match.gt_match == -1).all()
    assert match_boundaries(np.zeros((0, 4), bool), np.zeros((0, 4), bool), max_dist).cost == 0


def grown_memory(folder: Path, shape: tuple[int, int], kind: str) -> float:
    """Bytes per pixel that counting one image adds to the peak of a process of its own."""
    rng = np.random.default_rng(0)
    soft = rng.random(shape, np.float32)
    fields = gaussian_filter(rng.random((2, *shape), np.float32), (0, 16, 16))
    gts = np.stack([seg2bdry(field > 0.5) for field in fields])
    if kind == "smooth":
        soft = gaussian_filter(soft, 2)
        soft = (soft - soft.min()) / np.ptp(soft)
    np.savez(folder / "image.npz", soft=soft, gts=gts)
    code = """
import sys, numpy as np
from pathlib import Path
from bsdsbench.metrics.boundary import boundary_counts
def memory(kind):
    rows = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(row.split()[1]) for row in rows if row.startswith(kind))
boundary_counts(np.eye(30, 40, dtype=np.float32), np.ones((2, 30, 40), bool))
image = np.load(sys.argv[1])
soft, gts = image["soft"], image["gts"]
Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
before = memory("VmRSS")
boundary_counts(soft, gts)
print((memory("VmHWM") - before) / soft.size)
"""
    run = [sys.executable, "-c", code, str(folder / "image.npz")]
    small = {**os.environ, "NUMPY_MADVISE_HUGEPAGE": "0"}  # the system may give huge pages or not
    return float(subprocess.run(run, capture_output=True, text=True, check=True, env=small).stdout)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peaks are read from /proc")
@pytest.mark.parametrize("kind", ["smooth", "noise"])
@pytest.mark.process
def test_memory_of_one_image(tmp_path, kind) -> None:
    """Far below 300 MB a worker at 321x481: 154,401 pixels at 120 bytes are 19 MB."""
    assert 0 < grown_memory(tmp_path, (321, 481), kind) < 120
