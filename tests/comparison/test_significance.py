"""The permutation test against a slow enumeration of what it is defined by."""

import threading
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.comparison import significance
from bsdsbench.comparison.bootstrap import (
    Sampling,
    WeightedRun,
    bootstrap_weights,
    jackknife_weights,
)
from bsdsbench.comparison.significance import detectable, p_value, permutation_p
from bsdsbench.scores.counts import MatchCounts
from tests.helpers.runs import refused
from tests.helpers.simulated import simulated_run


@pytest.fixture(scope="module")
def pair():
    return [simulated_run(n, 6, q, seed, pixel=True) for n, q, seed in (("a", 0.3, 1), ("b", 0, 2))]


def exchanged(a, b, swaps):
    """Two runs with the results of some images exchanged."""
    rows = [(y, x) if s else (x, y) for x, y, s in zip(a.records, b.records, swaps, strict=True)]
    mine, theirs = zip(*rows, strict=True)
    return replace(a, records=mine), replace(b, records=theirs)


def values(run):
    found = bb.compare([run], n_boot=1)
    return {s: found.interval_of(run.name, s).value for s in found.scores}


@pytest.mark.slow
def test_permutation_of_few_images_is_the_enumeration(pair):
    """All 64 exchanges, each scored as a run of its own."""
    of = {swaps: values(exchanged(*pair, swaps)[0]) for swaps in product((0, 1), repeat=6)}
    others = [of[tuple(1 - s for s in swaps)] for swaps in of]  # the second runs of the exchanges
    gaps = [{s: a[s] - b[s] for s in a} for a, b in zip(of.values(), others, strict=True)]
    found = bb.compare(pair, n_boot=64, test="permutation")
    assert {d.score for d in found.differences} == set(gaps[0]) > {"boundary.ods", "pixel.ap"}
    for d in found.differences:
        if np.isnan([g[d.score] for g in gaps]).any():
            assert np.isnan(d.p)
            continue
        far = [abs(g[d.score]) >= abs(gaps[0][d.score]) - 1e-12 for g in gaps]
        assert d.p == sum(far) / 64
    assert all(0 < d.p <= 1 for d in found.differences if not np.isnan(d.p))


@pytest.mark.slow
def test_random_exchanges_count_the_one_observed_and_come_near_the_enumeration():
    every = np.vstack([*significance._swaps(13, 4000, 3)])
    assert every.shape == (4001, 13)
    assert not every[0].any()
    assert every[1:].mean() == pytest.approx(0.5, abs=0.02)
    more = [simulated_run(n, 12, q, seed) for n, q, seed in (("a", 0.3, 1), ("b", 0, 2))]
    exact, drawn = (
        permutation_p(*more, ["boundary"], Sampling(n_ways, 0, 0.95), lambda n: None)
        for n_ways in (2**12, 2**12 - 1)
    )
    for score, p in exact.items():
        assert drawn[score] == pytest.approx(p, abs=5 * (p * (1 - p) / 2**12) ** 0.5 + 1e-3)
        assert drawn[score] >= 1 / 2**12
    assert drawn != exact


def test_runs_that_are_equal_differ_in_no_way(pair):
    twin = replace(pair[0], name="twin")
    found = bb.compare([pair[0], twin], n_boot=50, test="permutation")
    assert {d.p for d in found.differences if not np.isnan(d.p)} == {1.0}
    assert set(found.letters["boundary.ods"]) == {"a"}


def test_refusals(pair):
    refused("test 't': expected .*bootstrap, permutation", bb.compare, pair, test="t")
    other = simulated_run("n", 6, protocol=bb.Protocol.preset("nyudv2"))
    words = {"test": "permutation", "force": True, "n_boot": 9}
    refused(
        "a, n: protocols differ in .*cannot be exchanged", bb.compare, [pair[0], other], **words
    )


def test_only(pair):
    found = bb.compare(pair, n_boot=9)
    few = found.only(["ods", "pixel.ap"])
    assert few.shown == ("boundary.ods", "pixel.ap")
    assert few.difference_of("a", "b", "ods") == found.difference_of("a", "b", "ods")
    assert [c.heading for c in few.tables()[0].columns[1:2]] == ["ODS"]
    refused(r"score 'nope': expected some of boundary\.ods", found.only, ["nope"])


def test_the_smallest_difference_of_two_images_is_that_of_students_t(pair):
    """t of one degree of freedom is 12.7062 at .975, 1.3764 at .8 in tables; NaN for one draw, or
    undefined ones: a sample of the first image alone has no R50."""
    two = [replace(run, records=run.records[:2]) for run in pair]
    first, other = two[0].records
    matches = first.counts["boundary"].matches * [1, 1, 0, 1]
    never = MatchCounts(first.counts["boundary"].thresholds, matches)
    odd = replace(first, counts={**first.counts, "boundary": never})
    two[0] = replace(two[0], records=[odd, other])
    draws = [WeightedRun(run, run.metrics).scores(next(bootstrap_weights(2, 40, 0))) for run in two]
    found = bb.compare(two, n_boot=40)
    for score in found.scores:
        gaps = draws[0][score] - draws[1][score]
        assert np.isnan(gaps).any() == (score == "boundary.r50")
        told = (12.7062 + 1.3764) * 2**0.5 * gaps.std(ddof=1)
        least = found.difference_of("a", "b", score).least
        assert least == pytest.approx(told, rel=1e-5, nan_ok=True)
    alone = bb.compare(two, n_boot=1).difference_of("a", "b", "ods").least
    assert np.isnan(alone)


def test_p_of_one_and_of_two_images():
    """Share 1/100: z = -2.32635, times sqrt(1/2), in Student's t of one degree of freedom."""
    assert p_value(np.ones(99), 1) == 1
    z = -2.3263479 * 0.5**0.5
    assert p_value(np.ones(99), 2) == pytest.approx(1 + 2 * np.arctan(z) / np.pi, rel=1e-6)


@pytest.mark.parametrize("n", [7, 3000])
def test_weights_come_in_blocks_of_one_stream(n, monkeypatch):
    monkeypatch.setattr("bsdsbench.comparison.bootstrap._MAX_WEIGHTS", 60_000)
    parts = [*bootstrap_weights(n, 50, 3)]
    assert max(part.size for part in parts) <= 60_000
    whole = np.random.default_rng(3).multinomial(n, np.full(n, 1 / n), size=50)
    assert np.array_equal(np.vstack(parts), whole)
    left_out = [*jackknife_weights(np.arange(n))]
    assert max(part.size for part in left_out) <= 60_000
    assert np.array_equal(np.vstack(left_out), 1 - np.eye(n, dtype=np.int8))


def test_an_interrupted_comparison_draws_no_other_block(monkeypatch):
    parts, begun, go_on = [], threading.Event(), threading.Event()

    class Slow:
        def multinomial(self, n, share, size):
            parts.append(size)
            if sum(parts) > 1250:  # the second block
                begun.set()
                go_on.wait(10)
            return np.ones((size, n), int)

    monkeypatch.setattr(np.random, "default_rng", lambda seed: Slow())
    weights = bootstrap_weights(2, 5000, 0)
    next(weights)
    drawing = [t for t in threading.enumerate() if t.name.startswith("ThreadPoolExecutor")]
    assert begun.wait(10)
    weights.close()
    go_on.set()
    for thread in drawing:
        thread.join(10)
    assert sum(parts) == 2500


@pytest.mark.parametrize(("n", "level"), [(25, 0.95), (200, 0.9)])
def test_the_smallest_detectable_difference_is_found_four_times_of_five(n, level):
    """Means of n images that differ by it from another run; images whose spread is 1 tell it."""
    rng = np.random.default_rng(n)
    weights = rng.multinomial(n, np.full(n, 1 / n), size=1000) / n
    images = rng.normal(0, 1, n)
    true = detectable(weights @ (images / images.std(ddof=1)), level, n)
    samples = weights @ (rng.normal(0, 1, (n, 800)) + true)
    significant = [p_value(draws, n) < 1 - level for draws in samples.T]
    assert np.mean(significant) == pytest.approx(0.8, abs=0.04)


def test_equal_runs_have_no_smallest_detectable_difference():
    """Their spread of 0 says nothing on what the images can show."""
    assert np.isnan(detectable(np.zeros(100), 0.95, 16))
