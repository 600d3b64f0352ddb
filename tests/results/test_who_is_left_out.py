"""Who is left out is named with its reason; an image's F at the run's threshold beside its best."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.comparison.gate import Baseline, check
from bsdsbench.comparison.method import Spread
from bsdsbench.comparison.method_tables import means_table
from bsdsbench.report.worst import worst_table
from bsdsbench.results.score_tables import score_tables, summarize_reasons
from bsdsbench.tables.forms import render, to_csv, to_markdown
from tests.helpers.runs import call, command, counted, refused, write_maps


@pytest.fixture
def folders(tmp_path):
    """Five masks; of the predictions one is missing, one small, one unreadable."""
    rng = np.random.default_rng(5)
    for side in ("gt", "pred"):
        (tmp_path / side).mkdir()
    for name in "abcde":
        gt = np.zeros((30, 40), bool)
        gt[5:20, 8:25] = True
        np.save(tmp_path / "gt" / f"{name}.npy", gt)
        soft = np.where(gt, rng.uniform(0.3, 1, gt.shape), rng.uniform(0, 0.6, gt.shape))
        np.save(tmp_path / "pred" / f"{name}.npy", soft[:9, :9] if name == "c" else soft)
    (tmp_path / "pred" / "b.npy").unlink()
    (tmp_path / "pred" / "e.npy").write_bytes(b"no array")
    return tmp_path / "pred", tmp_path / "gt"


@pytest.mark.parametrize("metric", ["pixel", "saliency", "calibration", "ccq"])
def test_everyone_who_is_left_out_is_named(folders, tmp_path, metric):
    pred, gt = folders
    out, table, page = tmp_path / "out", tmp_path / "t.csv", tmp_path / "page.html"
    how = ("--missing", "skip", "--on-error", "skip", "-o", out, "--per-image", table)
    text = call("evaluate", pred, "--gt", gt, "--metrics", metric, *how)
    run = bb.Evaluation.load(out)
    assert list(run.left_out) == ["b", "c", "e"]
    assert run.left_out["b"] == "no prediction"
    assert "expected (30, 40)" in run.left_out["c"]
    assert json.loads((out / "result.json").read_text())["left_out"] == run.left_out
    line = next(line for line in text.splitlines() if "left out" in line)
    assert line.startswith("2 of 5 images; left out: b (no prediction), c (")
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert {row["image"]: row["left_out"] for row in rows} == ({"a": "", "d": ""} | run.left_out)
    call("report", out, "-o", page, "--no-pictures", "--n-boot", 5)
    assert "2 of 5 images; left out: b (no prediction), c (" in page.read_text()


def test_who_counts_as_empty_is_named_in_every_table(folders, tmp_path):
    """`--missing zero` scores an image without a file: the table says which."""
    pred, gt = folders
    for name in "ce":
        np.save(pred / f"{name}.npy", np.load(gt / f"{name}.npy").astype(float))
    runs = [counted(pred, gt, missing="zero", name="a")]
    np.save(pred / "b.npy", np.eye(30, 40))
    runs.append(counted(pred, gt, name="b"))
    line = "a: no prediction for b, counted as empty (1 of 5 images)."
    for tables in (score_tables(runs[:1]), score_tables(runs), bb.compare(runs, n_boot=5).tables()):
        assert any(line.removesuffix(".") in str(note) for note in tables[0].notes)


def test_equal_counts_of_two_runs_are_said():
    """One seed evaluated twice halves the spread: it is said in every table of such runs."""
    rng = np.random.default_rng(0)
    maps = [rng.random((20, 20)) for _ in range(2)]
    runs = [
        bb.evaluate_items([("a", map_, [np.eye(20)])], "bsds500", name=name, workers=1)
        for name, map_ in zip("xyz", (maps[0], maps[1], maps[0]), strict=True)
    ]
    line = "m/x, m/z: equal counts in every image"
    method = bb.Method("m", runs)
    compared = bb.compare([method], n_boot=5).tables()[0]
    means = means_table([method], Spread.SD, None)
    assert all(any(line in str(note) for note in table.notes) for table in (compared, means))
    assert not any("equal counts" in str(note) for note in score_tables(runs[:2])[0].notes)
    assert not check(runs[0], Baseline.of(runs[2])).notes


def test_nobody_is_named_where_all_are_there(folders):
    pred, gt = folders
    items = [(name, np.load(pred / f"{name}.npy"), [np.load(gt / f"{name}.npy")]) for name in "ad"]
    run = bb.evaluate_items(items, metrics="pixel", workers=1)
    assert run.left_out == {}
    assert "left_out" not in to_csv(run.per_image("pixel"))
    assert not [
        line for table in score_tables([run]) for line in table.lines_below if "left out" in line
    ]


@pytest.mark.parametrize("metric", ["boundary", "pixel"])
@pytest.mark.parametrize("rule", ["interpolated", "maximum"])
def test_an_images_f_at_the_runs_threshold_has_its_own_column(folders, metric, rule):
    pred, gt = folders
    protocol = bb.Protocol.preset("bsds500").replace(ods_rule=rule, thresholds=9)
    items = [(name, np.load(pred / f"{name}.npy"), [np.load(gt / f"{name}.npy")]) for name in "ad"]
    run = bb.evaluate_items(items, protocol, metrics=metric, workers=1)
    threshold = run.score(metric).ods.threshold
    for image_id, own in run.image_scores(metric).items():
        one = [record for record in run.records if record.image_id == image_id]
        score = bb.Evaluation(protocol, "one", one).score(metric)
        assert own["ods"] == score.ods.f >= own["f_at_ods"] - 1e-12
        assert own["f_at_ods"] == pytest.approx(score.curve.at(threshold).f, abs=1e-12)
    headings = [c.heading for c in run.per_image(metric).columns]
    assert "ODS" not in headings
    assert {"best F", "F at the ODS threshold"} <= set(headings)
    shown = worst_table([run], [pred], metric=metric)
    best = {"boundary": "best F", "pixel": "best F of pixels"}[metric]
    assert [c.heading for c in shown.columns][1:3] == [best, "F at the ODS threshold"]


@pytest.fixture
def two_runs(tmp_path):
    """One without image a, the other without d and e, of five; nobody has c."""
    maps = {name: np.roll(np.eye(24, dtype=bool), k, 0) for k, name in enumerate("abcde")}
    write_maps(tmp_path / "gt", maps)
    runs = []
    for name, lacks in (("first", "ac"), ("second", "cde")):
        kept = {key: image for key, image in maps.items() if key not in lacks}
        folder = write_maps(tmp_path / name, kept)
        if name == "second":
            (folder / "e.png").write_bytes(b"no picture")
        how = {"missing": "skip", "on_error": "skip"}
        runs.append(
            counted(folder, tmp_path / "gt", metrics="pixel", out=tmp_path / f"o-{name}", **how)
        )
    return runs


def test_a_comparison_names_who_is_not_in_both_and_who_is_in_none(two_runs):
    compared = bb.compare(two_runs, n_boot=5)
    assert compared.n_images == 1
    assert compared.left_out["first"] == {
        "a": "no prediction", "c": "no prediction", "d": "not in second", "e": "not in second",
    }  # fmt: skip
    assert compared.left_out["second"]["a"] == "not in first"
    assert "is not a picture" in compared.left_out["second"]["e"]
    assert "4 images are not in every run" not in compared.notes[0]
    assert (
        "3 images are not in every run, such as 'a'; compared on the 1 shared image"
        in compared.notes[0]
    )
    first, second = compared.tables()[0].note_lines[1:3]
    assert first == ("first: 1 of 5 images; left out: a, c (no prediction), d, e (not in second).")
    assert second.startswith("second: 1 of 5 images; left out: a (not in first), c, d (no pred")
    assert json.loads(json.dumps(compared.to_mapping()))["left_out"] == compared.left_out
    assert first in worst_table(two_runs, ()).note_lines
    alone = bb.compare(two_runs[:1], n_boot=5).tables()[0]
    assert alone.note_lines[0] == "3 of 5 images; left out: a, c (no prediction)."


def test_a_table_of_a_paper_names_who_is_left_out_however_many(two_runs):
    """In its text and not in a comment; and on how many images each of the runs is."""
    reasons = {f"case_{k}": f"fault number {k}" for k in range(9)}
    runs = [replace(two_runs[0], failed=reasons), two_runs[1]]
    for tables in (score_tables(runs), bb.compare(runs, n_boot=5).tables()):
        for text in [render([table], "latex") for table in tables]:
            shown = "".join(line for line in text.splitlines() if not line.startswith("%"))
            assert all(reason in shown for reason in reasons.values())
    first = replace(runs[0], records=runs[0].records[:1])
    (table,) = score_tables([first, two_runs[1]])
    assert "2 methods on 1 to 2 images" in render([table], "latex")


@pytest.mark.parametrize("verb", ["report", "compare"])
def test_rows_of_csv_have_the_reasons(two_runs, tmp_path, verb):
    for names, reasons in (
        (("first", "second"), ["no prediction", "is not a picture"]),
        (("first",), ["no prediction"]),
    ):
        more = ("--n-boot", 5) if verb == "compare" else ()
        call(verb, *[tmp_path / f"o-{name}" for name in names], "-o", tmp_path / "x.csv", *more)
        (file,) = {*tmp_path.glob("x*.csv")} - {*tmp_path.glob("x-[di]*.csv")}
        rows = list(csv.DictReader(file.read_text().splitlines()))
        assert [row["method"] for row in rows] == [*names]
        for row, reason in zip(rows, reasons, strict=True):
            assert reason in row["left_out"]
        for made in tmp_path.glob("x*.csv"):
            made.unlink()


def test_the_gate_refuses_other_images_by_name_unless_those_in_common_are_meant(two_runs, tmp_path):
    first, second = two_runs
    baseline = Baseline.of(first)
    words = r"first, baseline|second, baseline: 3 images .*second lacks d \(no prediction\), e \(is"
    refused(words, check, second, baseline)
    refused("common=True", check, second, baseline)
    checked = check(second, baseline, common=True, statistical=True, n_boot=5)
    assert "1 of 5 images" in checked.notes[1]
    assert checked.left_out["d"] == "no prediction"
    assert {c.baseline for c in checked.checks} == {c.value for c in checked.checks}  # the same map
    gate = ("--baseline", tmp_path / "b.json")
    made = command("check", tmp_path / "o-first", *gate, "--update", "--quiet")
    assert "3 of 5 images; left out: a, c (no prediction)." in made.stderr
    done = command("check", tmp_path / "o-second", *gate)
    assert done.returncode == 2
    assert "--common" in done.stderr
    page = tmp_path / "s.md"
    done = command("check", tmp_path / "o-second", *gate, "--common", "--summary", page)
    assert "left out: a (not in baseline)" in done.stderr
    assert "left out: a (not in baseline)" in page.read_text()
    same = command("check", tmp_path / "o-first", *gate, "--format", "json")
    assert json.loads(same.stdout)["left_out"] == {"a": "no prediction", "c": "no prediction"}


def test_reasons_are_short_and_equal_ones_stand_once():
    many = {f"i{k:02}": f"p/i{k:02}.png: no picture" for k in range(30)}
    assert summarize_reasons(many).endswith("i19 and 10 more (no picture)")
    few = {"a": "empty", "b": "p/b.png: shape (9, 9), expected (8, 8)", "c": "empty"}
    assert summarize_reasons(few) == "a, c (empty), b (shape (9, 9), expected (8, 8))"
    long = {"a": f"p/a.png: {'x' * 40}, expected {'y' * 40}", "b": "z" * 90}
    assert summarize_reasons(long).startswith(f"a ({'x' * 40}), b (zzz")
    assert len(summarize_reasons(long)) < 110
    others = summarize_reasons({f"i{k}": f"fault {k}" for k in range(25)})
    assert others.endswith("i19 (fault 19), and 5 other faults")


def test_shards_name_each_image_that_is_left_out_once(tmp_path):
    maps = {f"i{k}": np.roll(np.eye(24, dtype=bool), k, 0) for k in range(9)}
    gt = write_maps(tmp_path / "gt", maps)
    pred = write_maps(tmp_path / "pred", {name: maps[name] for name in list(maps)[3:]})
    (pred / "i5.png").write_bytes(b"no picture")
    how = {"metrics": "pixel", "missing": "skip", "on_error": "skip"}
    shards = [counted(pred, gt, shard=(part, 2), **how) for part in (1, 2)]
    assert sorted(name for shard in shards for name in shard.left_out) == ["i0", "i1", "i2", "i5"]
    whole, merged = counted(pred, gt, **how), bb.merge(shards)
    assert merged.equals(whole)
    assert merged.left_out == whole.left_out
    # its scores look like those of the set
    note = "shard 1/2, not all images"
    assert note in to_markdown(shards[0].tables())
    compared = bb.compare([shards[0]] * 2, ["a", "b"], n_boot=20)
    assert f"a: {note}" in " ".join(compared.notes)
    assert "shard 1" not in to_markdown(merged.tables())


def test_a_shared_run_names_files_without_the_authors_folders(two_runs, tmp_path):
    second = bb.Evaluation.load(two_runs[1].share(tmp_path / "a.bsds.npz"))
    assert second.left_out.keys() == two_runs[1].left_out.keys()
    assert second.left_out["e"].startswith("e.png: is not a picture")
    assert str(tmp_path) not in str(second.left_out)
