"""The regression gate: a planted drop fails it, noise does not; command line, JUnit, pytest."""

import base64
import io
import json
import zipfile
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path
from xml.etree import ElementTree

import click
import numpy as np
import pytest
from click.testing import CliRunner

import bsdsbench as bb
from bsdsbench.cli import cli
from bsdsbench.comparison.gate import Baseline, assert_scores, check
from bsdsbench.comparison.significance import least_p
from tests.helpers.runs import call, refused
from tests.helpers.simulated import boundary_of, simulated_run

ROOT = Path(__file__).parents[2]


def changed(run, share, seed=0):
    """`run` with each image's matched pixels times 1 - share (+ noise of 2 % where share is 0)."""
    rng = np.random.default_rng(seed)
    records = []
    for r in run.records:
        c = r.counts["boundary"]
        factor = 1 - share if share else 1 + 0.02 * rng.normal()
        gt, pred = (
            np.minimum(np.round(m * factor), t)
            for m, t in ((c.matched_gt, c.total_gt), (c.matched_pred, c.total_pred))
        )
        records.append(
            replace(
                r,
                counts={
                    **r.counts,
                    "boundary": boundary_of(c.thresholds, gt, c.total_gt, pred, c.total_pred),
                },
            )
        )
    return replace(run, records=tuple(records))


@pytest.fixture(scope="module")
def run():
    return simulated_run("ours", 60, quality=0.2, seed=3)


@pytest.mark.parametrize("statistical", [False, True])
def test_a_planted_drop_of_one_hundredth_fails(run, statistical):
    worse = changed(run, 0.0137)
    drop = run.boundary_score().ods.f - worse.boundary_score().ods.f
    assert drop == pytest.approx(0.01, abs=5e-4)
    found = check(worse, Baseline.of(run), statistical=statistical, n_boot=2000)
    ods = found.checks[0]
    assert (ods.score, ods.failed) == ("boundary.ods", True)
    assert ods.drop == drop
    assert not found.passed


@pytest.mark.slow
def test_noise_does_not_fail_the_statistical_form(run):
    baseline = Baseline.of(run)
    failures, drops = 0, []
    for seed in range(12):
        found = check(changed(run, 0, seed), baseline, statistical=True, tolerance=0.0, n_boot=400)
        failures += not found.passed
        drops.append(found.checks[0].drop)
    assert max(drops) > 0.001  # without statistics and tolerance these would have failed
    assert failures <= 2


@pytest.mark.parametrize(("n", "n_boot"), [(5, 2000), (60, 20)])
def test_where_nothing_could_be_significant_the_tolerance_decides(n, n_boot):
    few = simulated_run("ours", n, quality=0.2, seed=3)
    found = check(changed(few, 0.4), Baseline.of(few), statistical=True, n_boot=n_boot)
    assert not found.passed
    (note,) = found.notes
    assert f"{n} images and {n_boot} samples" in note
    assert note in found.to_junit()
    assert check(few, Baseline.of(few), statistical=True, n_boot=n_boot).passed


def test_the_images_that_could_be_significant_are_the_shared_ones(run):
    """A baseline of 60 images does not make a drop on 5 shared images testable."""
    worse = changed(run, 0.4)
    few = replace(worse, records=worse.records[:5])
    checked = check(few, Baseline.of(run), statistical=True, n_boot=2000, common=True)
    assert not checked.passed
    assert any("5 images and 2000 samples" in note for note in checked.notes)


@pytest.mark.parametrize("n", [3, 4, 5, 6, 8, 30])
def test_the_least_p_is_that_of_a_run_better_on_every_image(n):
    a, b = (simulated_run(name, n, quality=q, seed=3) for name, q in (("a", 0.2), ("b", 0.2)))
    worse = changed(b, 0.6)
    found = bb.compare([a, worse], n_boot=500)
    least = least_p(n, 500, 1)
    assert least_p(n, 500, 1000) == 1
    assert found.difference_of("a", "b", "ods").p == least
    assert any("nothing can be significant" in note for note in found.notes) == (least >= 0.05)


def test_a_score_that_samples_leave_undefined_is_decided_by_its_tolerance():
    """Half of few images have no object, so that some samples of images have none either."""
    square, empty = np.zeros((2, 20, 30), bool)
    square[5:15, 5:20] = True
    truth = {"a": square, "b": square, "c": square, "d": empty, "e": empty, "f": empty}
    good, bad = (
        bb.evaluate_items(
            [(k, np.roll(t, by, 1), t) for k, t in truth.items()], metrics="contour", workers=1
        )
        for by in (0, 5)
    )
    checked = check(bad, Baseline.of(good, gated=["contour.iou"]), statistical=True, n_boot=500)
    assert not checked.passed
    assert "only the tolerance decides: contour.iou" in checked.notes[0]
    assert check(good, Baseline.of(good), statistical=True, n_boot=500).passed


def test_a_gate_without_a_score_is_refused(run):
    refused("no score to check", check, run, replace(Baseline.of(run), scores={}))
    refused("scores: 'ods', expected a list", check, run, Baseline.of(run), scores="ods")


@pytest.mark.parametrize("level", [0, 1, float("nan"), "0.95"])
def test_no_level_switches_the_gate_off(run, level):
    with pytest.raises(bb.DataError, match="level"):
        check(changed(run, 0.3), Baseline.of(run), level=level)


def test_noise_within_the_tolerance_and_a_better_run_pass(run):
    assert check(run, Baseline.of(run)).passed
    better = Baseline.of(changed(run, 0.05))
    assert check(run, better).passed
    slightly = changed(run, 0.0015)
    assert check(slightly, Baseline.of(run)).passed
    assert not check(slightly, Baseline.of(run), tolerance=0.0).passed
    assert not check(slightly, Baseline.of(run), tolerance={"boundary.ap": 0.0}).passed
    assert check(slightly, Baseline.of(run, {"boundary.ods": 0.5}), tolerance=0.002).passed


@pytest.mark.parametrize("wrong", [float("nan"), -0.1, "x", True])
def test_a_tolerance_is_a_number(run, wrong):
    with pytest.raises(
        bb.DataError, match=r"tolerance of boundary\.ods .*expected a number of 0 or more"
    ):
        check(run, Baseline.of(run), tolerance=wrong)


def test_a_tolerance_that_nothing_can_exceed_is_said(run):
    """--tolerance 5 for 5 %: no score of at most 1 falls by 5."""
    found = check(changed(run, 0.5), Baseline.of(run), tolerance={"ods": 5}, scores=["ods"])
    assert found.passed
    assert any("no drop exceeds that of boundary.ods, expected a" in note for note in found.notes)
    assert not check(run, Baseline.of(run), tolerance="5%").notes


def test_lower_is_better_where_it_is():
    mine = simulated_run("ours", 5, pixel=True)
    baseline = Baseline.of(mine)
    lower = replace(baseline, scores={"pixel.mae": baseline.scores["pixel.mae"] - 0.01})
    higher = replace(baseline, scores={"pixel.mae": baseline.scores["pixel.mae"] + 0.01})
    assert not check(mine, lower).passed
    assert check(mine, higher).passed


def test_a_score_that_is_gone_fails(run):
    baseline = Baseline.of(simulated_run("ours", 60, quality=0.2, seed=3, pixel=True))
    found = check(run, baseline)
    assert [(c.failed, c.drop) for c in found.checks if c.score == "pixel.ods"] == [(True, 0.0)]
    assert any("pixel.ods: missing" in line for line in found.lines())


def test_baseline_round_trip_and_refusals(run, tmp_path):
    path = tmp_path / "b.json"
    Baseline.of(run, {"boundary.ap": 0.01}).save(path)
    stored = Baseline.load(path)
    assert stored.scores == Baseline.of(run).scores
    assert stored.tolerances == {"boundary.ap": 0.01}
    assert stored.run.equals(run)

    with pytest.raises(bb.DataError, match=r"ours, baseline: protocols differ in max_dist \("):
        check(replace(run, protocol=run.protocol.replace(max_dist=0.01)), stored)
    with pytest.raises(bb.DataError, match="1 images are not in every run"):
        check(replace(run, records=run.records[1:]), stored)
    with pytest.raises(bb.DataError, match=r"'odss': expected some of boundary\.ods"):
        check(run, stored, tolerance={"odss": 0.1})
    with pytest.raises(bb.DataError, match="baseline: no counts per image"):
        check(run, replace(stored, run=replace(stored.run, records=())))
    path.write_text("[]")
    refused(r"b\.json: is JSON but no object", Baseline.load, path)
    content = {"schema": "bsdsbench.baseline/1"}
    path.write_text(json.dumps(content))
    refused(r"expected 'bsdsbench.baseline/4': remove it", Baseline.load, path)
    refused("no such file, expected a baseline", Baseline.load, tmp_path / "none.json")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"scores": {"boundary.ap": "x"}}, r"boundary\.ap is 'x', expected a number"),
        ({"counts": "none"}, "is damaged"),
        ({"gated": "boundary.ods"}, r"gated is 'boundary\.ods', expected a list"),
        ({"counts": "bm9uZQ=="}, "counts"),
        ({"tolerances": {"boundary.ap": "x"}}, r"boundary\.ap is 'x', expected a number"),
    ],
)
def test_a_damaged_baseline_is_one_line(run, tmp_path, change, words):
    path = tmp_path / "b.json"
    Baseline.of(run).save(path)
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **change}), "utf-8")
    refused(words, Baseline.load, path)


def test_damaged_counts_of_a_baseline_name_its_file(run, tmp_path):
    path = tmp_path / "baseline.json"
    Baseline.of(run).save(path)
    content = json.loads(path.read_text())
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("ids.npy", b"no header of an array")
    content["counts"] = base64.b64encode(packed.getvalue()).decode()
    path.write_text(json.dumps(content))
    with pytest.raises(bb.DataError) as caught:
        Baseline.load(path)
    assert str(path) in str(caught.value)


def test_command_line_and_junit(run, tmp_path):
    bad, base, junit = tmp_path / "bad", tmp_path / "baseline.json", tmp_path / "junit.xml"
    changed(run, 0.0137).save(bad)
    Baseline.of(run).save(base)

    def status(*words):
        words = ["check", str(bad), "--baseline", str(base), *map(str, words)]
        found = CliRunner().invoke(cli, words, standalone_mode=False)
        return found.return_value, found

    code, found = status("--junit", junit, "--statistical", "--n-boot", 500)
    assert code == 1
    assert "FAIL boundary.ods" in found.output
    assert "and significant (p " in found.output
    suite = ElementTree.parse(junit).getroot()
    assert int(suite.get("failures")) == len(suite.findall("testcase/failure")) > 0
    plain = json.loads(status("--format", "json")[1].stdout)
    assert [c["score"] for c in plain["checks"]] == list(Baseline.load(base).scores)
    few = ("--tolerance", "0.05", "--tolerance", "ods=0.0", "--quiet")
    (line,) = status(*few)[1].stdout.splitlines()
    assert line.startswith("FAIL boundary.ods: ")


def test_an_update_keeps_tolerances_and_takes_no_option_of_the_check(run, tmp_path):
    out, base = tmp_path / "out", tmp_path / "baseline.json"
    run.save(out)

    def update(*words):
        words = ["check", str(out), "--baseline", str(base), "--update", *words]
        return CliRunner().invoke(cli, words, standalone_mode=False).exception

    with pytest.raises(click.UsageError, match="--statistical: cannot be combined with --update"):
        raise update("--statistical")
    with pytest.raises(bb.DataError, match=r"'boundary\.odss': expected some of boundary\.ods"):
        raise update("--tolerance", "boundary.odss=0.5")
    assert update("--tolerance", "0.05", "--tolerance", "boundary.ap=0.1") is None
    kept = Baseline.load(base)
    assert kept.tolerances == {**dict.fromkeys(kept.scores, 0.05), "boundary.ap": 0.1}
    assert_scores(run, base, update=True)
    assert Baseline.load(base).tolerances == kept.tolerances


def test_scores_are_chosen_tolerances_are_shares_and_a_summary_is_written(run, tmp_path):
    good, bad, base, summary = (tmp_path / name for name in ("good", "bad", "b.json", "s.md"))
    run.save(good)
    changed(run, 0.0137).save(bad)

    def called(*words):
        words = ["check", "--baseline", str(base), *map(str, words)]
        return CliRunner().invoke(cli, words, standalone_mode=False)

    chosen = ("--scores", "ods,boundary.ap", "--tolerance", "ods=5%", "--quiet", "--update")
    assert called(good, *chosen).stdout == ""
    stored = Baseline.load(base)
    assert (stored.gated, stored.tolerances) == (
        ["boundary.ods", "boundary.ap"],
        {"boundary.ods": "5%"},
    )
    called(good, "--update")  # keeps both
    assert replace(Baseline.load(base), run=stored.run) == stored
    ods, ap = called(bad, "--summary", summary).stdout.splitlines()
    limit = 0.05 * stored.scores["boundary.ods"]
    assert ods.startswith("ok   boundary.ods")
    assert ods.endswith(f"within the tolerance {limit:.4g}")
    assert ap.startswith("FAIL boundary.ap")
    text = summary.read_text("utf-8")
    assert "1 of 2 scores failed" in text
    assert "| FAIL | boundary.ap |" in text
    assert called(bad, "--scores", "ods").return_value == 0
    statistical = check(changed(run, 0.0137), stored, statistical=True, scores=["ap"], n_boot=500)
    alone = bb.compare([changed(run, 0.0137), replace(run, name="b")], n_boot=500)
    assert [c.p for c in statistical.checks] == [alone.difference_of("ours", "b", "ap").p]
    for words in (("--scores", "odss"), ("--tolerance", "ods=x%"), ("--tolerance", "-5%")):
        assert isinstance(called(bad, *words).exception, bb.DataError)


def test_assert_scores(run, tmp_path):
    path = tmp_path / "b.json"
    refused("no baseline yet", assert_scores, run, path, error=AssertionError)
    assert assert_scores(run, path, update=True) is None
    assert assert_scores(run, path).passed
    with pytest.raises(AssertionError, match=r"(?s)ours is worse than.*FAIL boundary\.ods") as told:
        assert_scores(changed(run, 0.0137), path)
    assert str(told.value).count("\n") <= 4


@pytest.mark.slow
@pytest.mark.process
def test_the_pytest_plugin(run, tmp_path, monkeypatch, capsys):
    """Runs of pytest in this process, on a test that uses the fixture."""
    run.save(tmp_path / "good")
    changed(run, 0.0137).save(tmp_path / "bad")
    (tmp_path / "test_mine.py").write_text(
        "import os\n"
        "from bsdsbench.results.evaluation import Evaluation\n"
        "def test_scores(assert_scores):\n"
        "    run = Evaluation.load(os.environ['RUN'])\n"
        "    assert_scores(run, 'baseline.json', tolerance=0.002)\n"
        "def test_a_folder(assert_scores):\n"
        "    assert_scores(os.environ['RUN'], 'second.json')\n"
    )
    plugin = "bsdsbench.integrations.pytest_plugin"
    installed = any(e.value == plugin for e in entry_points(group="pytest11"))
    loaded = [] if installed else ["-p", plugin]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTEST_ADDOPTS", "")  # no coverage floor

    def run_pytest(which, *arguments):
        monkeypatch.setenv("RUN", str(tmp_path / which))
        quiet = ["-q", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:benchmark"]
        quiet += ["-p", "no:unraisableexception"]  # it collects this process's garbage, ten times
        return pytest.main([*quiet, *loaded, "test_mine.py", *arguments])

    assert run_pytest("good", "--bsdsbench-update") == 0
    assert run_pytest("good") == 0
    capsys.readouterr()
    assert run_pytest("bad") == 1
    assert "FAIL boundary.ods" in capsys.readouterr().out


def test_a_drop_of_just_the_tolerance_passes(run):
    drop = check(changed(run, 0.05), Baseline.of(run), tolerance=0.5).checks[0].drop
    for tolerance, failed in ((drop, False), (np.nextafter(drop, 0), True)):
        found = check(changed(run, 0.05), Baseline.of(run), tolerance={"ods": float(tolerance)})
        assert found.checks[0].failed == failed


def test_p_is_that_of_compare_and_the_corrected_one_is_labelled(run):
    worse = replace(changed(run, 0.03), name="now")
    found = check(worse, Baseline.of(run), statistical=True, n_boot=300, scores=["ods", "ap"])
    compared = bb.compare([worse, replace(run, name="was")], n_boot=300)
    p = [compared.difference_of("now", "was", c.score).p for c in found.checks]
    assert [c.p for c in found.checks] == p
    assert [c.p_holm for c in found.checks] == [2 * min(p), max(2 * min(p), max(p))]
    assert all(
        f"(p {c.p:.4f}, after Holm over 2 scores {c.p_holm:.4f})" in str(c) for c in found.checks
    )


def test_summaries_of_several_steps_stand_one_after_the_other(run, tmp_path):
    page, gate = tmp_path / "new" / "summary.md", ("--baseline", tmp_path / "b.json")
    out = run.save(tmp_path / "out")
    call("check", out, *gate, "--update")
    for _ in "ab":
        call("check", out, *gate, "--summary", page)
    assert page.read_text().count("### ours: 0 of ") == 2
    assert "\n\n### ours" in page.read_text()
