"""The bootstrap against `aggregate` sample by sample, against truth on simulated populations."""

import inspect
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import bsdsbench as bb
from bsdsbench.comparison.bootstrap import bootstrap_weights
from bsdsbench.comparison.comparison_tables import comparison_tables
from bsdsbench.comparison.significance import holm, letters, p_value, percentile_interval
from bsdsbench.metrics import registry
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.report.html import _verdict_lines as verdict_lines
from bsdsbench.scores.counts import ImageRecord, value_at
from tests.helpers.runs import refused
from tests.helpers.simulated import boundary_of, simulated_run


@pytest.fixture(scope="module")
def pair():
    return [
        simulated_run("better", 25, quality=0.3, seed=1, pixel=True),
        simulated_run("worse", 25, quality=0.0, seed=2, pixel=True),
    ]


def label_maps(name, seed):
    """A run with one threshold, as label maps have."""
    rng, records = np.random.default_rng(seed), []
    for i in range(12):
        hit = rng.integers(20, 40, 1)
        records.append(
            ImageRecord(str(i), (9, 9), {"boundary": boundary_of([1], hit, [60], hit, [50])})
        )
    return bb.Evaluation(Protocol(name="labels"), name, tuple(records))


def test_undefined_scores_take_no_part_in_bests_and_tests():
    """Label maps have no AP, and here no R50: not a difference of 0 with p = 1, nothing in bold."""
    runs = [label_maps("one", 1), label_maps("two", 2), label_maps("three", 3)]
    assert np.isnan([runs[0].boundary_score().ap, runs[0].boundary_score().r50]).all()
    found = bb.compare(runs, n_boot=200)
    for key in ("boundary.ap", "boundary.r50"):
        i = found.interval_of("one", key)
        assert np.isnan([i.value, i.low, i.high]).all()
        differences = [d for d in found.differences if d.score == key]
        assert all(np.isnan([d.p, d.p_holm]).all() for d in differences)
        assert found.letters[key] == ("", "", "")
    assert all(found.letters["boundary.ods"])
    json.dumps(found.to_mapping(), allow_nan=False)
    scores, differences, _ = comparison_tables(found)
    assert scores.plain()["boundary_ap"] == [None] * 3
    rows = [r for r in differences.printed_cells if r[2].text == "AP"]
    assert [[cell.line for cell in r[3:]] for r in rows] == [["-"] * 4] * 3


@pytest.mark.slow
def test_a_clear_difference_is_found_and_seeded(pair):
    found = bb.compare(pair, n_boot=250, seed=4)
    d = found.difference_of("better", "worse", "boundary.ods")
    assert d.value == pair[0].boundary_score().ods.f - pair[1].boundary_score().ods.f
    assert 0 < d.low < d.value < d.high
    assert d.p_holm < 0.05
    assert found.letters["boundary.ods"] == ("a", "b")
    turned = found.difference_of("worse", "better", "boundary.ods")
    assert (turned.value, turned.low, turned.high) == (-d.value, -d.high, -d.low)
    assert bb.compare(pair, n_boot=250, seed=4).differences == found.differences


def test_an_interval_is_of_ten_thousand_samples_unless_said():
    usual = {name: each.default for name, each in inspect.signature(bb.compare).parameters.items()}
    assert (usual["n_boot"], usual["seed"]) == (10_000, 0)


def test_influence_is_what_leaving_an_image_out_does(pair):
    found = bb.compare(pair, n_boot=10).images[0]
    rest = [replace(run, records=run.records[1:]) for run in pair]
    ods = [run.boundary_score().ods.f for run in pair]
    without = [run.boundary_score().ods.f for run in rest]
    first = found.effects[0]
    assert first.image_id == "im0000"
    assert first.influence == (ods[0] - ods[1]) - (without[0] - without[1])
    assert first.a == pair[0].image_scores("boundary")["im0000"]["ods"]
    assert first.difference == first.a - first.b
    gaps = np.array([e.difference for e in found.effects])
    assert found.record == ((gaps > 0).sum(), (gaps == 0).sum(), (gaps < 0).sum())
    assert found.effect_size == pytest.approx(gaps.mean() / gaps.std(ddof=1))
    one = [replace(run, records=run.records[:1]) for run in pair]
    told = bb.compare(one, n_boot=5).images[0]
    assert (told.effects[0].influence, told.effect_size) == (0, 0)
    same = [pair[0], replace(pair[0], name="same")]
    assert bb.compare(same, n_boot=5).images[0].effect_size == 0


@pytest.mark.slow
def test_intervals_cover_the_population_s_difference_as_often_as_they_say():
    """95 % intervals of the ODS difference of 12 images from two populations of 3000 images."""
    proto, trials = Protocol.preset("bsds500").replace(thresholds=9), 100
    metric = registry.get("boundary")
    runs = [simulated_run("x", 3000, q, s, 1.0, proto) for q, s in ((0.3, 1), (0.0, 2))]
    stacks = [metric.stack([r.counts["boundary"] for r in run.records]) for run in runs]

    def difference(stacks, weights):
        return np.subtract(
            *(value_at(metric.scores(s, weights, proto, None), "ods") for s in stacks)
        )

    truth = difference(stacks, np.ones((1, 3000), int))[0]
    rng, inside = np.random.default_rng(7), {"percentile": 0, "p": 0}
    for trial in range(trials):
        drawn = rng.integers(0, 3000, 12)
        (weights,) = bootstrap_weights(12, 400, trial)
        some = [{k: v if k == "thresholds" else v[drawn] for k, v in s.items()} for s in stacks]
        draws = difference(some, weights)
        low, high = percentile_interval(draws, 0.95, 12)
        inside["percentile"] += low <= truth <= high
        inside["p"] += p_value(draws - truth, 12) >= 0.05
    assert all(0.87 <= hits / trials <= 0.99 for hits in inside.values())


def test_normal_draws_give_the_interval_and_p_of_student_s_t():
    n = 15
    mean, error = 1.0, 0.4  # the bootstrap's standard error is that of t times sqrt((n-1)/n)
    draws = mean + error * np.sqrt((n - 1) / n) * stats.norm.ppf((np.arange(20001) + 0.5) / 20001)
    low, high = percentile_interval(draws, 0.95, n)
    assert (low, high) == pytest.approx(stats.t.interval(0.95, n - 1, mean, error), abs=2e-3)
    assert p_value(draws, n) == pytest.approx(2 * stats.t.sf(mean / error, n - 1), rel=0.06)


@pytest.mark.parametrize("below", [0, 7])
def test_p_counts_the_observed_one_too(below):
    draws = np.concatenate([np.full(below, -1.0), np.full(999 - below, 1.0)])
    z = stats.norm.ppf((below + 1) / 1000) * np.sqrt(19 / 20)
    assert p_value(draws, 20) == pytest.approx(2 * stats.t(19).cdf(z), rel=1e-9)
    assert p_value(-draws, 20) == pytest.approx(2 * stats.t(19).cdf(z), rel=1e-9)


def test_one_image_has_no_interval():
    """One of width 0 would say that the score is certain, and that any difference is detected."""
    assert np.isnan(percentile_interval(np.full(99, 0.7), 0.95, 1)).all()
    runs = [
        bb.evaluate_items([("a", np.eye(20, k=k), [np.eye(20)])], "bsds500", name=name, workers=1)
        for name, k in (("x", 0), ("y", 9))
    ]
    compared = bb.compare(runs, n_boot=20)
    (ods,) = [d for d in compared.differences if d.score == "boundary.ods"]
    assert ods.value == 1
    assert np.isnan([ods.low, ods.high, ods.least]).all()
    assert "(p = 1.000 after Holm's" in verdict_lines(compared)[1]


def test_an_interval_takes_as_many_undefined_draws_as_its_level_leaves():
    draws = np.r_[np.nan, np.arange(19.0)]
    assert percentile_interval(draws, 0.95, 9) == percentile_interval(draws[1:], 0.95, 9)
    assert np.isnan(percentile_interval(np.r_[np.nan, draws], 0.95, 9)).all()


def test_holm_by_hand():
    # 4 x .01, 3 x .015, 2 x .03, 1 x .04 made monotone: .04 .045 .06 .06
    assert holm([0.03, 0.01, 0.04, 0.015]) == pytest.approx([0.06, 0.04, 0.06, 0.045])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([np.nan, 0.4, np.nan])[1] == 0.4  # the undefined ones do not count
    assert holm([]) == []


def test_letters_by_hand():
    apart = {frozenset("ac"), frozenset("ad"), frozenset("bd")}
    assert letters("abcd", apart) == {"a": "a", "b": "ab", "c": "bc", "d": "c"}
    assert letters("abc", set()) == {"a": "a", "b": "a", "c": "a"}
    everyone = {frozenset("ab"), frozenset("ac"), frozenset("bc")}
    assert letters("abc", everyone) == {"a": "a", "b": "b", "c": "c"}


def test_refusals_name_the_fault(pair):
    a, b = pair
    fewer, other = replace(b, records=b.records[1:]), replace(b, protocol=Protocol(max_dist=0.011))
    refused("1 images are not in every run, such as 'im0000'", bb.compare, [a, fewer])
    assert bb.compare([a, fewer], n_boot=10, common=True).n_images == 24
    refused(r"tolerance: .0075d / .011d.*are not comparable", bb.compare, [a, other])
    forced = bb.compare([a, other], n_boot=10, force=True)
    assert ["tolerance" in note for note in forced.notes].count(True) == 1
    strange = simulated_run("strange", 25, images_seed=3)
    refused("ground truth of image 'im0000' differs", bb.compare, [a, strange])
    refused("two runs are named 'better'", bb.compare, [a, a])
    refused("no runs given", bb.compare, [])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"n_boot": 0}, "n_boot: 0, expected"),
        *(({"level": k}, f"level: {k!r}, .* from 0.5") for k in (-1, 0.05, 95, "x", float("nan"))),
        ({"n_boot": 10.0}, r"n_boot: 10\.0, expected a whole number from 1 to 1e\+07"),
        ({"seed": -1}, "seed: -1, expected a whole number of 0 or more"),
        ({"seed": "a"}, "seed: 'a', expected a whole number"),
        ({"cluster": 5}, "column 5: expected its name"),
        ({"names": [1, 2]}, "names: 1, expected text"),
        ({"names": ["a", ""]}, "names: '', expected text"),
        ({"names": "ab"}, "names: 'ab', expected a list of names"),
    ],
)
def test_arguments_of_another_kind_are_named(pair, given, words):
    refused(words, bb.compare, pair, **given)


def test_runs_are_a_list_of_evaluations(pair):
    refused("runs: of type dict, expected a list", bb.compare, {run.name: run for run in pair})
    detected = bb.DetectorRun("a", Path("maps"), "soft", {}, "", {}, pair[0])
    refused(r"of type DetectorRun, .*\(its attribute evaluation\)", bb.compare, [detected, pair[1]])
