"""Methods of several runs: spread, intervals over images and runs, pairs of seeds."""

import json
import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from click import UsageError
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import bsdsbench as bb
from bsdsbench.cli import cli
from bsdsbench.comparison.bootstrap import Sampling
from bsdsbench.comparison.method import Method, Spread, load_methods
from bsdsbench.comparison.method_tables import means_table, splits
from bsdsbench.comparison.significance import sign_flip_p
from tests.helpers.runs import call, command, refused
from tests.helpers.simulated import simulated_run

N_IMAGES = 40


def runs_of(name, qualities):
    return [
        simulated_run(f"{name}{k}", N_IMAGES, quality=quality, seed=k)
        for k, quality in enumerate(qualities)
    ]


def test_one_run_each_gives_the_numbers_of_compare():
    runs = [simulated_run(name, N_IMAGES, quality=q) for name, q in (("a", 0), ("b", 0.2))]
    compared = bb.compare(runs, n_boot=300, seed=4)
    methods = bb.compare([Method(r.name, [r]) for r in runs], n_boot=300, seed=4)
    assert methods.scores == compared.scores
    assert [str(table) for table in methods.tables()] == [str(t) for t in compared.tables()]
    for interval in compared.intervals:
        assert repr(methods.interval_of(interval.run, interval.score)) == repr(interval)
    for d in compared.differences:
        other = methods.difference_of(d.a, d.b, d.score)
        for field in ("value", "low", "high", "p", "p_holm", "least"):
            assert repr(getattr(other, field)) == repr(getattr(d, field))


def test_mean_and_spread_are_those_of_the_runs():
    runs = runs_of("s", [0, 0.1, 0.3])
    method = bb.compare([Method("m", runs)], n_boot=50)
    ods = [run.boundary_score().ods.f for run in runs]
    scores = method.of_runs["m", "boundary.ods"]
    assert scores.values == tuple(ods)
    assert scores.mean == pytest.approx(np.mean(ods), abs=1e-15)
    assert scores.sd == pytest.approx(np.std(ods, ddof=1), abs=1e-15)
    (table,) = method.tables()[:1]
    cell = table.printed_cells[0][[c.key for c in table.columns].index("boundary_ods")]
    assert cell.text == f"{np.mean(ods):.3f} ± {np.std(ods, ddof=1):.3f} (3)"
    plain = table.plain()
    assert plain["boundary_ods_spread"] == [pytest.approx(scores.sd)]
    assert plain["boundary_ods_n"] == [3]
    (least,) = means_table([Method("m", runs)], Spread.RANGE, ["ods"]).printed_cells[0][1:]
    assert (least.numbers.low, least.numbers.high) == (min(ods), max(ods))


def test_an_unknown_spread_is_refused():
    compared = bb.compare(runs_of("s", [0, 0.1]), n_boot=9)
    refused("^spread 'iqr': expected one of sd, range, se$", compared.tables, "iqr")


def test_equal_seeds_have_no_spread_and_p_1():
    run = simulated_run("one", N_IMAGES)
    same = [Method(name, [run] * 3) for name in "ab"]
    compared = bb.compare(same, n_boot=100)
    for score in compared.scores:
        scores = compared.of_runs["a", score]
        assert scores.sd == 0 or np.isnan(scores.mean)
        assert scores.mean == scores.values[0] or np.isnan(scores.mean)
        d = compared.difference_of("a", "b", score)
        assert d.p == 1 or np.isnan(d.value)
        assert d.value == 0 or np.isnan(d.value)
    alone = bb.compare([same[0], Method("c", [run])], n_boot=100)
    for score in alone.scores:
        three, one = (alone.interval_of(name, score) for name in "ac")
        assert repr((three.value, three.low, three.high)) == repr((one.value, one.low, one.high))
        if one.value == one.value:
            assert alone.ranks[score].rank == (1, 1)
            assert alone.ranks[score].beats[0][1] == 0.5


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=6))
def test_sign_flips_by_hand(differences):
    """Every assignment of signs, counted one by one with whole numbers."""
    sums = [
        abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
        for signs in product((1, -1), repeat=len(differences))
    ]
    share = sum(total >= abs(sum(differences)) for total in sums) / len(sums)
    assert sign_flip_p(np.array(differences, float)) == share


def crossed_by_loop(by_run, n_boot, seed):
    """Draws of the mean of R runs, images and runs drawn, one by one."""
    n_runs = len(by_run)
    rng = np.random.default_rng([seed, n_runs])
    chosen = rng.multinomial(n_runs, np.full(n_runs, 1 / n_runs), size=n_boot)
    draws = []
    for b in range(n_boot):
        mean = sum(by_run[r][b] for r in range(n_runs)) / n_runs
        drawn = sum(chosen[b][r] * by_run[r][b] for r in range(n_runs)) / n_runs
        draws.append(mean + (n_runs / (n_runs - 1)) ** 0.5 * (drawn - mean))
    return np.array(draws)


def test_the_crossed_bootstrap_is_the_plain_loop(monkeypatch):
    """The draws that intervals are made of, of a method and of the difference of paired seeds."""
    from bsdsbench.comparison import significance
    from bsdsbench.comparison.bootstrap import WeightedRun, bootstrap_weights

    n_boot, seen = 60, []

    def seen_draws(draws, level, n):
        seen.append(np.array(draws))
        return 0.0, 1.0

    monkeypatch.setattr(significance, "percentile_interval", seen_draws)
    by_method = []
    methods = [Method("m", runs_of("s", [0, 0.2, 0.4])), Method("o", runs_of("s", [0.3, 0.1, 0.1]))]
    for method in methods:
        by_run = []
        for run in method.runs:
            weighted, draws = WeightedRun(run, ["boundary"]), []
            for block in bootstrap_weights(N_IMAGES, n_boot, 7):
                for row in block:
                    draws.append(weighted.scores(row[None])["boundary.ods"][0])
            by_run.append(draws)
        by_method.append(by_run)
    compared = bb.compare(methods, n_boot=n_boot, seed=7)
    assert compared.scores[0] == "boundary.ods"
    assert compared.paired == {("m", "o")}
    left, right = by_method
    gaps = [[a - b for a, b in zip(*pair, strict=True)] for pair in zip(left, right, strict=True)]
    for draws, by_run in zip(seen, (left, right, gaps), strict=False):
        assert draws == pytest.approx(crossed_by_loop(by_run, n_boot, 7), abs=1e-12)


def test_runs_of_other_seeds_are_drawn_independently():
    """Drawn together, methods of equal runs would have a difference of exactly 0 in each sample."""
    runs = runs_of("s", [0, 0.2, 0.4])
    others = [replace(run, name=f"t{k}") for k, run in enumerate(runs)]
    compared = bb.compare([Method("m", runs), Method("o", others)], n_boot=200)
    assert not compared.paired
    of_m, of_o = (compared.interval_of(name, "boundary.ods") for name in "mo")
    difference = compared.differences[0]
    assert difference.value == 0
    # Images are drawn for both at once, so that only the runs vary
    assert difference.high - difference.low > 0.5 * (of_m.high - of_m.low)
    assert of_o.high - of_o.low == pytest.approx(of_m.high - of_m.low, rel=0.3)
    exchanged = bb.compare([Method("o", others), Method("m", runs)], n_boot=200)
    assert exchanged.differences[0].low == pytest.approx(difference.low, rel=0.3)


def test_what_a_method_of_few_runs_is_told():
    sides = [Method("m", runs_of("s", [0, 0.2, 0.4])), Method("o", runs_of("o", [0]))]
    both = bb.compare(sides, n_boot=20)
    assert np.isnan(both.difference_of("m", "o", "boundary.ods").p)
    assert any("fewer than 3 runs" in note for note in both.notes)
    assert any("one run each, so the interval covers images only" in note for note in both.notes)


@pytest.mark.parametrize(
    ("given", "seeds"),
    [
        (["out/seed0/ours", "out/seed1/ours"], ("seed0", "seed1")),
        (["out/ours/seed0", "out/ours/seed1"], ("seed0", "seed1")),
        (["a/fold1/seed0", "a/fold2/seed1"], ("fold1/seed0", "fold2/seed1")),
        (["x/seed0"], ("seed0",)),
        (["x/seed0", "x/deep/seed1"], ("seed0", "seed1")),
        (["x/seed0", "x/seed0"], ("seed0", "seed0")),
    ],
)
def test_a_seed_is_what_differs_in_the_paths(given, seeds, tmp_path):
    places = [tmp_path / place for place in given]
    for place in {*places}:
        simulated_run("net", 4).save(place)
    assert Method("m", places).seeds == seeds


def test_too_few_seeds_have_no_letters_and_detect_nothing():
    """Of three pairs p is at least .25, so no letter says that it was tested; of six it may be."""
    notes = {}
    for n in (3, 6):
        methods = []
        for name, lead in (("a", 0), ("b", 0.5)):
            runs = [simulated_run(f"s{k}", N_IMAGES, lead, seed=k) for k in range(n)]
            methods.append(Method(name, runs))
        compared = bb.compare(methods, n_boot=100)
        d = compared.difference_of("a", "b", "ods")
        assert compared.paired
        assert d.high < 0
        assert (d.p < 0.05) == (n == 6)
        assert compared.letters["boundary.ods"] == (("", "") if n == 3 else ("b", "a"))
        lines = compared.only(["ods"]).tables()
        notes[n] = "\n".join(str(line) for table in lines for line in table.notes)
        assert "may disagree" not in notes[n]  # of samples, which this p does not count
    assert "is detected" not in notes[3]
    assert "share a letter" not in notes[3]
    assert re.search("^With these images and runs, .* is detected", notes[6], re.MULTILINE)
    assert "Methods that share a letter" in notes[6]


def test_pairs_are_those_of_equal_names_in_any_order():
    ours, base = runs_of("s", [0, 0.2, 0.4, 0.1]), runs_of("s", [0.1, 0.1, 0.2, 0.3])
    straight = bb.compare([Method("a", ours), Method("b", base)], n_boot=50)
    turned = bb.compare([Method("a", ours), Method("b", base[::-1])], n_boot=50)
    assert turned.paired == {("a", "b")}
    assert repr(turned.differences) == repr(straight.differences)
    assert turned.ranks == straight.ranks
    same_name = [simulated_run("net", N_IMAGES, seed=k) for k in range(3)]
    assert not bb.compare([Method("a", same_name), Method("b", same_name)], n_boot=5).paired


def test_a_pattern_leaves_files_out(tmp_path):
    simulated_run("net", 4).save(tmp_path / "seed0")
    (tmp_path / "notes.txt").write_text("of this week")
    (method,) = load_methods([f"ours={tmp_path}/*"])
    assert method.n_runs == 1
    with pytest.raises(bb.DataError, match="two methods are named 'a'"):
        load_methods([f"a={tmp_path}/seed0", f"a={tmp_path}/seed0"])


@pytest.mark.slow
def test_seeds_of_the_same_names_are_paired(tmp_path):
    for name, quality in (("ours", 0.4), ("base", 0)):
        for k in range(4):
            run = simulated_run(f"{name}{k}", N_IMAGES, quality=quality, seed=k)
            run.save(tmp_path / name / f"seed{k}")
    methods = load_methods([f"ours={tmp_path}/ours/seed*", f"base={tmp_path}/base/seed*"])
    compared = bb.compare(methods, n_boot=100)
    assert compared.paired == {("ours", "base")}
    d = compared.difference_of("ours", "base", "boundary.ods")
    gaps = np.subtract(*(compared.of_runs[m, "boundary.ods"].values for m in ("ours", "base")))
    assert d.p == sign_flip_p(gaps)
    shown = CliRunner().invoke(
        cli,
        [
            "compare",
            "--method",
            f"ours={tmp_path}/ours/seed*",
            "--method",
            f"base={tmp_path}/base/seed0",
            "--n-boot",
            "50",
        ],
    )
    assert shown.exit_code == 0, shown.output
    assert "(4)" in shown.output
    shown = CliRunner().invoke(
        cli, ["report", "--method", f"ours={tmp_path}/ours/seed*", "--format", "latex"]
    )
    assert shown.exit_code == 0, shown.output
    assert r" $\pm$ 0." in shown.output


def test_methods_of_one_run_each_are_compared_as_runs(tmp_path):
    """A pattern that fits one folder is such a run; the names are those of the methods."""
    for k, name in enumerate(("ours", "base")):
        simulated_run(name, N_IMAGES, seed=k).save(tmp_path / name / "seed0")
    words = ["--method", f"A={tmp_path}/ours/seed*", "--method", f"B={tmp_path}/base/seed0"]
    words += ["--n-boot", 20, "--test", "permutation", "--format", "json"]
    plain = json.loads(command("compare", *words).stdout)
    assert [plain["differences"][0][key] for key in ("a", "b")] == ["A", "B"]
    words = ["--method", f"A={tmp_path}/*/seed0", "--test", "permutation"]
    refused("a method of several runs, expected single runs", call, "compare", *words)
    refused(
        "--names: cannot be combined with --method",
        call,
        "compare",
        *words,
        "--names=a,b",
        error=UsageError,
    )


@pytest.mark.parametrize(
    ("spec", "words"),
    [("ours", "expected NAME=OUT"), ("ours=nowhere/seed*", "no folder fits 'nowhere/seed\\*'")],
)
def test_a_wrong_method_is_refused(spec, words):
    with pytest.raises(bb.DataError, match=words):
        load_methods([spec])


def test_runs_of_other_images_are_named():
    runs = [simulated_run("a", N_IMAGES), simulated_run("b", N_IMAGES - 1)]
    with pytest.raises(bb.DataError, match="images are not in every run") as refused:
        bb.compare([Method("m", runs)])
    assert "m/a" in str(refused.value)


@pytest.mark.slow
def test_intervals_cover_the_mean_of_runs_and_images():
    """400 methods whose runs and images vary as known: .93 to .97 of the intervals hold the mean.

    Scores are made by hand in place of counts: image effects that runs share, and run effects.
    """
    from bsdsbench.comparison import compare as tested

    rng, hits, n_boot, n_images, n_runs = np.random.default_rng(3), 0, 400, 60, 5
    for trial in range(400):
        images, effects = rng.normal(0, 1, n_images), rng.normal(0, 0.12, n_runs)
        values = effects[:, None] + images[None] + rng.normal(0, 0.3, (n_runs, n_images))
        weights = rng.multinomial(n_images, np.full(n_images, 1 / n_images), size=n_boot)
        sampling = Sampling(n_boot, trial, 0.95)
        times_drawn = tested._draw_runs(n_runs, sampling, stream=0)
        means = tested._draw_means(values @ weights.T / n_images, times_drawn, n_images)
        low, high = means.interval(0.95)
        hits += low <= 0 <= high
    assert 0.93 <= hits / 400 <= 0.97


@pytest.mark.slow
def test_splits_have_their_mean_and_are_pooled(tmp_path):
    """The mean is that of the splits' scores; pooled counts are sums, an image may be in two."""
    runs = [simulated_run(f"split{k}", 20, quality=k / 10, seed=k) for k in range(3)]
    with pytest.warns(bb.errors.InputWarning, match="3 runs have the same images"):
        table, pooled = splits(runs, "ours")
    ods = [run.boundary_score().ods.f for run in runs]
    rows = dict(zip(table.plain()["scores"], table.plain()["boundary_ods"], strict=True))
    assert rows["mean over 3 splits"] == pytest.approx(np.mean(ods), abs=1e-15)
    assert rows["pooled, 60 images"] == pooled.boundary_score().ods.f
    sums = sum(np.array(run.stack("boundary")["matches"]).sum(axis=0) for run in runs)
    assert np.array_equal(pooled.stack("boundary")["matches"].sum(axis=0), sums)
    for run in runs:
        run.save(tmp_path / run.name)
    outs = [str(tmp_path / run.name) for run in runs]
    with pytest.warns(bb.errors.InputWarning, match="3 runs have the same images"):
        called = CliRunner().invoke(cli, ["merge", *outs, "--splits", "-o", str(tmp_path / "all")])
    assert called.exit_code == 0, called.output
    assert f"{np.mean(ods):.3f} ± {np.std(ods, ddof=1):.3f} (3)" in called.output
    assert len(bb.Evaluation.load(tmp_path / "all").records) == 60


def test_pooled_folds_of_two_methods_can_be_compared():
    whole = simulated_run("a", 12)
    folds = [replace(whole, name=f"fold{k}", records=whole.records[k::3]) for k in range(3)]
    table, pooled = splits(folds, "a")
    assert pooled.image_ids == whole.image_ids
    assert len(bb.compare([pooled, simulated_run("b", 12, quality=0.3)]).differences) > 0
    assert "equal counts" not in str(table.notes)
    table, pooled = splits([*folds, replace(folds[0], name="again")])
    assert "fold0, again: equal counts" in str(table.notes)
    assert "again/" in pooled.image_ids[0]


def test_runs_of_the_same_images_may_be_no_splits(recwarn):
    whole = simulated_run("a", 12)
    first, other = (replace(whole, name=f"{k}", records=whole.records[k : k + 9]) for k in (0, 3))
    for runs, is_said in (([whole, simulated_run("b", 12)], True), ([first, other], False)):
        splits(runs)
        assert any("2 runs have the same images" in str(w.message) for w in recwarn) == is_said
        recwarn.clear()


def test_splits_of_two_protocols_are_refused():
    wide = bb.Protocol.preset("bsds500").replace(max_dist=0.02)
    runs = [simulated_run("a", 5), simulated_run("b", 5, protocol=wide)]
    with pytest.raises(bb.DataError, match="max_dist"):
        splits(runs)


def test_flat_scores_are_floats_by_name():
    run = simulated_run("a", 5, pixel=True)
    flat = run.flat(prefix="val/")
    assert flat["val/boundary/ods"] == run.boundary_score().ods.f
    assert all(type(value) is float and value == value for value in flat.values())
    assert all(re.fullmatch(r"val/[\w/. -]+", name, re.ASCII) for name in flat)
    blank = bb.evaluate_items([("a", np.zeros((9, 9)), [np.eye(9)])], workers=1)
    assert "boundary/r50" not in blank.flat()


def test_flat_scores_of_classes():
    labels = np.repeat([[1, 2]], 8, axis=0).repeat(4, axis=1)
    protocol = bb.Protocol.preset("masks").replace(
        options={"contour": {"classes": ["sky", "sea"], "first": 1}}
    )
    run = bb.evaluate_items([("a", labels, labels)], protocol, "contour", workers=1)
    assert run.flat(per_class=True)["contour/sky/iou"] == 1.0
    assert not any("sky" in name for name in run.flat())


def test_twenty_pairs_of_seeds_are_not_too_many():
    """Beyond 16 pairs signs are drawn, that of the runs among them; 65,536 of 2^20 here."""
    same_sign = np.linspace(0.1, 0.2, 20)
    assert 0 < sign_flip_p(same_sign) <= 3 / 2**16
    drawn = sign_flip_p(np.array([1.0] * 9 + [-7.0] + [0.0] * 10))  # |sum| 2, of ten that count
    by_hand = np.mean([abs(np.dot(s, [1] * 9 + [-7])) >= 2 for s in product((1, -1), repeat=10)])
    assert drawn == pytest.approx(by_hand, abs=0.01)


def test_splits_with_other_counts_are_named():
    several = bb.Protocol.preset("bsds500").replace(max_dist=(0.0075, 0.015))
    pred, gts = np.eye(30), [np.eye(30)]
    runs = [
        bb.evaluate_items([("a", pred, gts)], protocol, name=name, workers=1)
        for name, protocol in (("one", "bsds500"), ("two", several))
    ]
    with pytest.raises(bb.DataError, match=r"one, two: .*expected"):
        splits(runs)


def test_published_rows_stand_beside_methods():
    from bsdsbench.comparison.published import published_beside

    runs = runs_of("s", [0, 0.1, 0.3])
    rows, notes = published_beside(["hed"], runs, force=True)
    table = means_table([Method("m", runs)], Spread.SD, ["ods", "r50"], rows, notes)
    name, ods, r50 = table.printed_cells[1]
    assert name.text == "HED (2015, published) [bsds500-test]"
    assert (ods.text, ods.best, r50.text) == ("0.788", False, "-")
    assert any("not comparable" in note for note in table.notes)


@pytest.mark.filterwarnings("ignore:.*nothing is predicted")
def test_a_score_undefined_in_one_run_keeps_its_column():
    """A seed that predicts nothing has no distance: the mean is undefined, not left out."""
    disk = np.hypot(*np.mgrid[-9:10, -9:10]) < 5
    runs = []
    for name, pred in (("s0", disk), ("s1", np.roll(disk, 1)), ("s2", disk & False)):
        runs.append(bb.evaluate_items([("a", pred, disk)], metrics="contour", name=name, workers=1))
    table = means_table([bb.Method("m", runs), bb.Method("n", runs[:1])], Spread.SD, None)
    assert table.plain()["contour_hd95-pooled"] == [None, 0]
