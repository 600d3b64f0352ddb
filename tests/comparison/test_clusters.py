"""Images that are no independent draws: whole clusters are drawn, left out and exchanged."""

from dataclasses import replace

import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.errors import DataError
from bsdsbench.results.evaluation import Evaluation
from tests.helpers.runs import call
from tests.helpers.simulated import simulated_run

SCENE = r"(?P<scene>im\d+)"
NUMBERS = ("p", "p_holm", "low", "high", "least")


def pair(n=8):
    """Two runs of as many scenes."""
    return [simulated_run(name, n, 0.1 * k, seed=k) for k, name in enumerate("ab")]


def copied(run, k):
    """The run with each image k times, as frames of a scene."""
    frames = [replace(r, image_id=f"{r.image_id}_{f}") for r in run.records for f in range(k)]
    return Evaluation(run.protocol, run.name, frames)


def numbers_of(comparison):
    differences = [[getattr(d, name) for name in NUMBERS] for d in comparison.differences]
    return np.array(differences), np.array([(i.low, i.high) for i in comparison.intervals])


@pytest.mark.parametrize("test", ["bootstrap", "permutation"])
@pytest.mark.parametrize("n", [6, 30])
def test_clusters_of_one_image_give_the_numbers_without(test, n):
    plain = bb.compare(pair(n), n_boot=300, test=test)
    single = bb.compare(pair(n), n_boot=300, test=test, group_by="(?P<image>.+)", cluster="image")
    for mine, theirs in zip(numbers_of(plain), numbers_of(single), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert single.images == plain.images
    assert [single.cluster, single.n_clusters] == ["image", n]


@pytest.mark.parametrize("test", ["bootstrap", "permutation"])
@pytest.mark.parametrize("k", [2, 5])
def test_copies_in_clusters_tell_no_more_than_one_copy(test, k):
    once = bb.compare(pair(), n_boot=300, test=test)
    frames = [copied(run, k) for run in pair()]
    clustered = bb.compare(frames, n_boot=300, test=test, group_by=SCENE, cluster="scene")
    for mine, theirs in zip(numbers_of(once), numbers_of(clustered), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)
    independent = bb.compare(frames, n_boot=300, test=test).difference_of("a", "b", "ods")
    whole = once.difference_of("a", "b", "ods")
    assert independent.high - independent.low < 0.8 * (whole.high - whole.low)
    influence = [[e.influence for e in c.images[0].effects] for c in (once, clustered)]
    np.testing.assert_allclose(influence[1], np.repeat(influence[0], k), rtol=1e-12)


def test_frames_get_advice_until_they_are_clusters():
    frames = [copied(run, 3) for run in pair()]
    plain = bb.compare(frames, n_boot=50)
    (advice,) = [note for note in plain.notes if "look like frames" in note]
    assert "24 of 24 images look like frames of 8 sequences" in advice
    clustered = bb.compare(frames, n_boot=50, group_by=SCENE, cluster="scene")
    assert not [note for note in clustered.notes if "look like frames" in note]
    assert "only 8 clusters (scene): intervals and p-values are rough" in clustered.notes
    assert "24 images in 8 clusters (scene), 50 boot" in clustered.tables()[0].caption
    assert clustered.to_mapping()["n_clusters"] == 8


def test_two_runs_with_other_clusters_are_refused():
    one, other = pair()
    one = one.with_groups(group_by=SCENE)
    other = other.with_groups({i: {"scene": "all"} for i in other.image_ids})
    with pytest.raises(DataError, match="a, b: other groups by scene"):
        bb.compare([one, other], n_boot=50, cluster="scene")
    assert bb.compare([one, pair()[1]], n_boot=50, cluster="scene").n_clusters == 8


def test_the_command_line_clusters_saved_runs(tmp_path):
    outs = [copied(run, 3).save(tmp_path / run.name) for run in pair()]
    printed = call("compare", *outs, "--group-by", SCENE, "--cluster", "scene", "--n-boot", 50)
    assert "24 images in 8 clusters (scene)" in printed


def simulated_frames(rng, n_scenes=24, n_frames=5):
    """Saliency-like counts: matched pixels of frames whose scene decides most of them."""
    scene = rng.normal(0, 0.12, n_scenes).repeat(n_frames)
    share = np.clip(0.6 + scene + rng.normal(0, 0.04, scene.size), 0.02, 0.98)
    total = np.full(scene.size, 1000)
    hits = np.round(share * total).astype(np.int64)
    run = simulated_run("a", 1, protocol=bb.Protocol.preset("bsds500").replace(thresholds=(0.5,)))
    counts = run.records[0].counts["boundary"]
    records = []
    for k, hit in enumerate(hits):
        matches = np.array([[hit, total[k], hit, total[k]]])
        boundary = type(counts)(counts.thresholds, matches)
        name = f"s{k // n_frames:03}_{k % n_frames}"
        records.append(replace(run.records[0], image_id=name, counts={"boundary": boundary}))
    return replace(run, records=records)


def covered(n_sets, cluster, seed=1, n_boot=400):
    """How many of the sets have an ODS interval that holds the true value, .6."""
    rng, inside = np.random.default_rng(seed), 0
    by = {"group_by": r"(?P<scene>s\d+)", "cluster": "scene"} if cluster else {}
    for _ in range(n_sets):
        interval = bb.compare([simulated_frames(rng)], n_boot=n_boot, **by).interval_of("a", "ods")
        inside += interval.low <= 0.6 <= interval.high
    return inside / n_sets


@pytest.mark.slow
def test_intervals_by_cluster_cover_what_intervals_by_frame_miss():
    """scripts/coverage_of_clusters.py makes 400 sets: .9475 by cluster, below .65 without."""
    assert covered(40, cluster=True) >= 0.87
    assert covered(40, cluster=False) <= 0.8
