"""Ranks over bootstrap samples against a loop over the samples, and their tables."""

import json

import numpy as np
import pytest
from click import UsageError

import bsdsbench as bb
from bsdsbench.comparison.bootstrap import WeightedRun, bootstrap_weights
from bsdsbench.comparison.ranks import indistinguishable_groups, rank_tables, ranks_of
from bsdsbench.comparison.slices import compare_slices
from tests.helpers.runs import call
from tests.helpers.simulated import simulated_run

N_IMAGES, N_BOOT, SEED = 25, 60, 5
QUALITIES = {"a": 0.1, "b": 0.15, "c": 0.0, "d": 0.12}


@pytest.fixture(scope="module")
def runs():
    return [
        simulated_run(name, N_IMAGES, quality=quality, seed=k)
        for k, (name, quality) in enumerate(QUALITIES.items())
    ]


def rank_by_hand(scores, name):
    """1 and the number of methods that are better."""
    return 1 + sum(other > scores[name] for other in scores.values())


def test_ranks_are_those_of_a_loop_over_samples(runs):
    compared = bb.compare(runs, n_boot=N_BOOT, seed=SEED)
    weighted = {run.name: WeightedRun(run, ["boundary"]) for run in runs}
    samples = []
    for block in bootstrap_weights(N_IMAGES, N_BOOT, SEED):
        for row in block:
            samples.append(
                {k: float(w.scores(row[None])["boundary.ods"][0]) for k, w in weighted.items()}
            )
    ranks = compared.ranks["boundary.ods"]
    whole = {run.name: run.boundary_score().ods.f for run in runs}
    assert list(ranks.names) == sorted(whole, key=whole.get, reverse=True)
    for k, name in enumerate(ranks.names):
        by_hand = [rank_by_hand(sample, name) for sample in samples]
        assert ranks.rank[k] == rank_by_hand(whole, name)
        assert ranks.median[k] == np.median(by_hand)
        assert (ranks.low[k], ranks.high[k]) == tuple(np.quantile(by_hand, [0.025, 0.975]))
        shares = [by_hand.count(rank) / N_BOOT for rank in range(1, 5)]
        assert ranks.shares[k] == tuple(shares)
        for j, other in enumerate(ranks.names):
            better = sum(s[name] > s[other] for s in samples)
            equal = sum(s[name] == s[other] for s in samples)
            assert ranks.beats[k][j] == pytest.approx((better + equal / 2) / N_BOOT, abs=1e-15)
    shares = np.array(ranks.shares)
    assert shares.sum(axis=1) == pytest.approx(1)
    assert (shares > 0).sum() > len(runs)  # the samples do not all rank alike


def arrays(draws):
    return {name: (value, np.array(values)) for name, (value, values) in draws.items()}


def test_equal_scores_share_the_smaller_rank_and_half_of_a_win():
    draws = {"x": (0.5, [0.5, 0.6]), "y": (0.5, [0.5, 0.5]), "z": (0.4, [0.1, 0.7])}
    ranks = ranks_of("boundary.ods", arrays(draws), 0.95)
    assert ranks.names == ("x", "y", "z")
    assert ranks.rank == (1, 1, 3)
    assert ranks.shares == ((0.5, 0.5, 0), (0.5, 0, 0.5), (0.5, 0, 0.5))
    assert ranks.beats == ((0.5, 0.75, 0.5), (0.25, 0.5, 0.5), (0.5, 0.5, 0.5))


def test_undefined_scores_have_no_rank_or_the_last():
    none = {"z": (np.nan, [np.nan, np.nan])}
    draws = {"x": (0.7, [np.nan, 0.6]), "y": (0.5, [0.5, 0.5]), **none}
    ranks = ranks_of("boundary.r50", arrays(draws), 0.95)
    assert ranks.names == ("x", "y")
    assert ranks.shares == ((0.5, 0.5), (0.5, 0.5))
    assert ranks_of("boundary.ap", arrays(none), 0.95).names == ()


def test_the_smaller_error_is_the_better_one():
    ranks = ranks_of("pixel.mae", arrays({"x": (0.3, [0.3, 0.3]), "y": (0.15, [0.1, 0.2])}), 0.95)
    assert ranks.names == ("y", "x")
    assert ranks.beats[0][1] == 1


@pytest.mark.slow
def test_equal_runs_share_rank_1_and_are_joined():
    run = simulated_run("one", N_IMAGES)
    compared = bb.compare([run, run, simulated_run("far", N_IMAGES, quality=-4)], ["a", "b", "c"])
    ranks = compared.ranks["boundary.ods"]
    assert ranks.rank == (1, 1, 3)
    assert ranks.beats[0][1] == 0.5
    assert indistinguishable_groups(compared, "boundary.ods") == [(0, 1)]


def test_methods_are_ranked_by_draws_of_images_and_runs(runs):
    methods = [bb.Method("ab", runs[:2]), bb.Method("cd", runs[2:])]
    compared = bb.compare(methods, n_boot=N_BOOT, seed=SEED)
    ranks, d = compared.ranks["boundary.ods"], compared.differences[0]
    assert ranks.names == ("ab", "cd")
    assert np.isnan(d.p)  # of two runs: the interval separates
    assert indistinguishable_groups(compared, "boundary.ods") == [(0, 1)] * (d.low < 0 < d.high)
    plain = json.loads(json.dumps(compared.to_mapping()))
    assert plain["ranks"]["boundary.ods"]["names"] == ["ab", "cd"]


def test_tables_name_score_slice_and_method(runs, tmp_path):
    table, beats = rank_tables({"": bb.compare(runs, n_boot=N_BOOT).only(["ods"])})
    assert table.rows[0][:3] == ["ODS", "b", 1]
    assert [field.heading for field in beats.columns[2:]] == list(QUALITIES)
    groups = {image_id: {"side": "lr"[k % 2]} for k, image_id in enumerate(runs[0].image_ids)}
    grouped = [run.with_groups(groups) for run in runs]
    slices = compare_slices(grouped, "side", n_boot=N_BOOT)
    by_side, beats_by_side = rank_tables({k: v.only(["ods"]) for k, v in slices.items()}, "side")
    tables = (table, beats, by_side, beats_by_side)  # all in one call, each with a CSV file
    assert len({each.key for each in tables}) == len(tables)
    assert [row[1] for row in by_side.rows] == ["l"] * 4 + ["r"] * 4
    for run in grouped:
        run.save(tmp_path / run.name)
    methods = ["--method", f"x={tmp_path}/a,{tmp_path}/b", "--method", f"y={tmp_path}/c"]
    words = ["--ranks", "--by", "side", "--n-boot", N_BOOT, "--columns", "ods", "--quiet"]
    shown = call("compare", *methods, *words)
    for heading in ("Ranks by side", "P(row beats column) by side", "Differences by side"):
        assert heading in shown


def test_methods_in_slices_and_clusters(runs):
    """Clusters of one image give the numbers without; a slice is a comparison of its images."""
    groups = {i: {"side": "lr"[k % 2], "id": i} for k, i in enumerate(runs[0].image_ids)}
    methods = [bb.Method("m", [run.with_groups(groups) for run in runs[:3]])]
    methods += [bb.Method("n", runs[3:])]
    options = {"n_boot": N_BOOT, "seed": SEED}
    alone = bb.compare(methods, **options)
    clustered = bb.compare(methods, cluster="id", groups=None, **options)
    assert clustered.n_clusters == N_IMAGES
    assert repr(clustered.intervals) == repr(alone.intervals)
    wide = bb.compare(methods, cluster="side", **options)
    assert wide.n_clusters == 2
    assert "in 2 clusters (side)" in wide.tables()[0].caption
    assert any("only 2 clusters (side)" in note for note in wide.notes)
    slices = compare_slices(methods, "side", **options)
    left = [i for i in runs[0].image_ids if groups[i]["side"] == "l"]
    part = [
        bb.Method(
            method.name,
            [
                bb.Evaluation(
                    run.protocol, run.name, [r for r in run.records if r.image_id in left]
                )
                for run in method.runs
            ],
        )
        for method in methods
    ]
    assert repr(slices["l"].intervals) == repr(bb.compare(part, **options).intervals)


def test_methods_are_reported_without_slices_and_labels(runs, tmp_path):
    runs[0].save(tmp_path / "a")
    words = ["report", "--method", f"ab={tmp_path}/a", "--columns", "ods"]
    for more in (["--by", "end"], ["--group-by", "(?P<end>.)$"]):
        with pytest.raises(UsageError, match="cannot be combined with --method"):
            call(*words, *more)
    with pytest.raises(
        bb.DataError, match=r"label 'abc': no runs or .* rename, expected no labels"
    ):
        call(*words, "--label", "abc=x")
