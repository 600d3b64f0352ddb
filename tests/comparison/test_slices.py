"""Slices: scores of the groups of images, in every table, and checked by the gate."""

import csv
import json
import re
from base64 import b64decode
from dataclasses import replace

import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.comparison.gate import Baseline, check
from bsdsbench.comparison.slices import (
    ALL,
    MACRO,
    compare_slices,
    compared_table,
    group_table,
    slice_tables,
    slices_of,
)
from bsdsbench.report.worst import worst_table
from bsdsbench.results.evaluation import Evaluation
from tests.helpers.runs import call, command, counted, refused, write_maps
from tests.helpers.simulated import simulated_run

N = 12
WEATHER = ("fog", "rain", "sun")


def grouped(name="a", quality=0.0, seed=0, **how):
    """A run of 12 images: weather of three kinds, six scenes of two images, a size each."""
    run = simulated_run(name, N, quality, seed=seed, **how)
    rows = {
        image_id: {"weather": WEATHER[k % 3], "scene": f"s{k // 2}", "size": float(k * k)}
        for k, image_id in enumerate(run.image_ids)
    }
    return run.with_groups(rows)


def part(run, column, value):
    return replace(run, records=[r for r in run.records if r.groups[column] == value])


def test_a_slice_is_a_run_of_its_images():
    run = grouped(pixel=True)
    slices = slices_of(run, "weather")
    for number, name in enumerate(slices.parts.names):
        alone = slices_of(part(run, "weather", name), "weather")
        for score, found in slices.scores.items():
            assert found[number].score == alone.scores[score][0].score or np.isnan(
                found[0].score[0]
            )
            np.testing.assert_array_equal(found[number].score.value, alone.whole[score])
    ods = slices.scores["boundary.ods"]
    assert slices.whole["boundary.ods"] == run.boundary_score().ods.f
    assert slices.sizes == [4, 4, 4]
    assert slices.macro["boundary.ods"].score.value == pytest.approx(
        np.mean([found.score.value for found in ods])
    )


@pytest.mark.parametrize("cluster", [None, "scene"])
def test_intervals_are_those_of_a_plain_jackknife(cluster):
    from scipy.stats import t

    run = grouped()
    slices = slices_of(run, "weather", cluster)
    values = [run.boundary_score().ods.f]
    units = sorted({r.groups["scene"] for r in run.records}) if cluster else run.image_ids

    def without(unit, records):
        keep = [r for r in records if (r.groups["scene"] if cluster else r.image_id) != unit]
        return replace(run, records=keep).boundary_score().ods.f

    whole = np.array([without(unit, run.records) for unit in units])
    for name, found in zip(WEATHER, slices.scores["boundary.ods"], strict=True):
        records = part(run, "weather", name).records
        mine = [u for u in units if any(u in (r.image_id, r.groups["scene"]) for r in records)]
        value = found.score.value
        alone = np.array([without(u, records) for u in mine])
        gaps = np.array([without(u, records) if u in mine else value for u in units]) - whole
        for spread, each in ((found.score, alone), (found.difference, gaps)):
            n = each.size
            error = np.sqrt((n - 1) / n * ((each - each.mean()) ** 2).sum())
            half = t.ppf(0.975, len(mine) - 1) * error
            assert spread.low == pytest.approx(spread.value - half, abs=1e-12)
            assert spread.high == pytest.approx(min(spread.value + half, 1), abs=1e-12)
        assert found.difference.value == value - values[0]


def test_a_slice_of_one_image_has_no_interval():
    run = grouped().with_groups(
        {i: {"one": "x" if k else "y"} for k, i in enumerate(grouped().image_ids)}
    )
    found = slices_of(run, "one").scores["boundary.ods"]
    assert np.isnan([found[1].score.low, found[1].difference.high]).all()
    assert not np.isnan(found[0].score.low)


def test_the_table_has_all_images_each_slice_and_the_mean():
    runs = [grouped("a"), grouped("b", 0.2, seed=1)]
    (table,) = slice_tables(runs, ["weather"], ["ods"])
    assert [c.key for c in table.columns] == ["method", "slice", "images", "ods", "ods_difference"]
    assert [row[:3] for row in table.rows[:5]] == [
        ["a", ALL, N],
        *[["a", name, 4] for name in WEATHER],
        ["a", MACRO, N],
    ]
    plain = table.plain()
    assert plain["ods"][5] == runs[1].boundary_score().ods.f
    assert all(not cell.best for row in table.printed_cells for cell in row)
    assert {"ods_low", "ods_high", "ods_difference_low"} <= plain.keys()
    both = slice_tables(runs, ["weather", "size=0,50,500"], ["all"])
    assert [t.key for t in both] == ["boundary-by-weather", "boundary-by-size"]
    other = "The runs do not have the same images in each group by weather."
    assert other not in table.notes
    groups = [record.groups for record in runs[1].records][::-1]
    pairs = zip(runs[1].records, groups, strict=True)
    moved = replace(runs[1], records=[replace(r, groups=of_other) for r, of_other in pairs])
    assert other in slice_tables([runs[0], moved], ["weather"])[0].notes
    refused("'city': expected one of weather, scene, size", slice_tables, runs, ["city"])
    refused("no counts per image", slice_tables, [Evaluation(runs[0].protocol, "x", [])], ["city"])


def test_a_mean_over_fewer_slices_than_there_are_says_so():
    """A slice of empty masks has no Dice; another run with a false object there has 0."""
    disk = np.hypot(*np.mgrid[-9:10, -9:10]) < 5
    false = np.hypot(*np.mgrid[-9:10, -9:10]) < 2
    groups = {"0": "full", "1": "empty"}
    runs = []
    for name, on_empty in (("a", disk & False), ("b", false)):
        items = [("0", disk, disk), ("1", on_empty, disk & False)]
        run = bb.evaluate_items(items, metrics="contour", groups=groups, name=name, workers=1)
        runs.append(run)
    (table,) = slice_tables(runs, ["group"], ["dice", "iou"])
    lines = [line for line in table.lines_below if "macro mean is" in line]
    assert lines == ["- under Dice, IoU: the macro mean is over 1 of 2 slices of a."]


def test_a_slice_of_empty_masks_does_not_suggest_one_set_of_predictions():
    """Methods that find nothing there have equal counts in it, as they should."""
    disk = np.hypot(*np.mgrid[-9:10, -9:10]) < 5
    empty, groups = disk & False, {"0": "full", "1": "empty"}
    runs = []
    for name, shift in (("a", 0), ("b", 2)):
        items = [("0", np.roll(disk, shift, 0), disk), ("1", empty, empty)]
        run = bb.evaluate_items(items, metrics="contour", groups=groups, name=name, workers=1)
        runs.append(run)
    for methods in (runs, [bb.Method(run.name, [run]) for run in runs]):
        for compared in compare_slices(methods, "group", n_boot=9).values():
            assert not any("equal counts" in note for note in compared.notes)


def test_a_metric_that_the_first_run_lacks_has_a_table():
    runs = [grouped("a"), grouped("b", pixel=True)]
    tables = slice_tables(runs, "weather")
    assert [table.key for table in tables] == ["boundary-by-weather", "pixel-by-weather"]
    assert {row[0] for row in tables[1].rows} == {"b"}


def test_runs_are_compared_within_slices():
    runs = [grouped("a"), grouped("b", 0.3, seed=1)]
    found = compare_slices(runs, "weather", n_boot=100)
    for name in WEATHER:
        alone = bb.compare([part(run, "weather", name) for run in runs], n_boot=100)
        assert repr(found[name].differences) == repr(alone.differences)
    table = compared_table({k: c.only(["ods"]) for k, c in found.items()}, "weather").plain()
    assert table["slice"] == list(WEATHER)
    assert all(c >= p for c, p in zip(table["p_holm"], table["p"], strict=True))
    alone = compare_slices(runs[:1], "weather", n_boot=100)
    (value,) = {c.interval_of("a", "ods").value for k, c in alone.items() if k == "fog"}
    assert value == slices_of(runs[0], "weather").scores["boundary.ods"][0].score.value


def test_the_gate_checks_every_slice():
    before = grouped("a")
    worse = [
        replace(now, groups=old.groups) if old.groups["weather"] == "fog" else old
        for now, old in zip(simulated_run("a", N, -0.8).records, before.records, strict=True)
    ]
    now = replace(before, records=worse)
    found = check(now, Baseline.of(before), scores=["ods"], tolerance=0.001, by="weather")
    failed = {c.score: c.failed for c in found.checks}
    assert failed["boundary.ods [weather=fog]"]
    assert not failed["boundary.ods [weather=sun]"]
    assert check(before, Baseline.of(before), by="weather").passed
    same = check(before, Baseline.of(before), by="weather", statistical=True, n_boot=50)
    assert same.passed


def test_a_baseline_keeps_groups(tmp_path):
    Baseline.of(grouped("a")).save(tmp_path / "base.json")
    plain = simulated_run("a", N)
    found = check(plain, tmp_path / "base.json", scores=["ods"], by="weather")
    assert len(found.checks) == 4


def test_the_worst_images_of_each_slice():
    table = worst_table([grouped("a")], [], 2, of_each="weather").plain()
    assert table["group"] == [name for name in WEATHER for _ in range(2)]
    cut = worst_table([grouped("a")], [], 1, of_each="size=0,50").plain()
    assert cut["group"] == ["[0, 50)", "[50, inf)"]


# ---- a row a group ------------------------------------------------------------------------------


def masks(shape=(20, 20)):
    """Two patients of three pictures; one picture of each is empty on both sides."""
    rng, pred, gt = np.random.default_rng(0), {}, {}
    for patient in ("p1", "p2"):
        for k in range(3):
            truth = np.zeros(shape, bool)
            truth[4 : 4 + 5 * k, 5:15] = k > 0
            gt[f"{patient}_{k}"] = truth
            pred[f"{patient}_{k}"] = truth & (rng.random(shape) > 0.3)
    return pred, gt


def test_a_patients_dice_is_that_of_its_pictures_together(tmp_path):
    pred, gt = masks()
    sides = write_maps(tmp_path / "pred", pred), write_maps(tmp_path / "gt", gt)
    printed = command(
        "evaluate", sides[0], "--gt", sides[1], "--metrics", "contour", "--workers", 1,
        "--group-by", r"(?P<patient>p\d)", "--per-image", tmp_path / "p.csv", "--per", "patient",
    )  # fmt: skip
    assert printed.returncode == 0, printed.stderr
    rows = list(csv.DictReader((tmp_path / "p.csv").read_text("utf-8").splitlines()))
    assert [row["group"] for row in rows] == ["p1", "p2"]
    for row in rows:
        ids = [image_id for image_id in gt if image_id.startswith(row["group"])]
        inside = sum((pred[i] & gt[i]).sum() for i in ids)
        total = sum(pred[i].sum() + gt[i].sum() for i in ids)
        assert float(row["pooled_dice"]) == pytest.approx(2 * inside / total)
        sums = [(2 * (pred[i] & gt[i]).sum(), pred[i].sum() + gt[i].sum()) for i in ids]
        each = [inside / total for inside, total in sums if total]  # of two empty masks it has none
        assert float(row["mean_dice"]) == pytest.approx(np.mean(each))
        assert row["images"] == "3"


def test_numbers_are_groups_of_their_own_in_rows():
    assert len(group_table(grouped(), "boundary", "size").rows) == N
    assert len(group_table(grouped(), "boundary", "size=0,50").rows) == 2


# ---- from the command line ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Folders of two runs without groups, and a table of these."""
    root = tmp_path_factory.mktemp("runs")
    lines = ["image,weather,size"]
    for record in grouped().records:
        lines.append(f"{record.image_id},{record.groups['weather']},{record.groups['size']:g}")
    (root / "groups.csv").write_text("\n".join(lines), "utf-8")
    outs = [simulated_run(n, N, 0.2 * k, seed=k).save(root / n) for k, n in enumerate("ab")]
    return outs, root / "groups.csv"


@pytest.mark.slow
def test_every_verb_takes_groups_of_saved_runs(saved, tmp_path):
    outs, table = saved
    more = ("--groups", table, "--by", "weather")
    printed = call("report", *outs, *more)
    assert "Boundaries by weather" in printed
    assert all(name in printed for name in (*WEATHER, ALL, MACRO))
    for form in ("tex", "csv", "json"):
        call("report", *outs, *more, "--by", "size", "-o", tmp_path / f"x.{form}")
    assert r"\toprule" in (tmp_path / "x.tex").read_text("utf-8")
    sizes = list(
        csv.DictReader((tmp_path / "x-boundary-by-size.csv").read_text("utf-8").splitlines())
    )
    assert len(sizes) == 2 * (4 + 2)  # quartiles
    tables = json.loads((tmp_path / "x.json").read_text("utf-8"))["tables"]
    assert [t["key"] for t in tables] == ["boundary", "boundary-by-weather", "boundary-by-size"]
    assert "Differences by weather" in call("compare", *outs, *more, "--n-boot", 50)
    plain = json.loads(command("compare", *outs, *more, "--n-boot", 50, "--format", "json").stdout)
    assert [*plain["slices"]] == list(WEATHER)
    for form in ("table", "json"):
        words = "^[^:]+: one run, expected two to compare by slice .*report OUT --by weather"
        refused(words, call, "compare", outs[0], *more, "--format", form)
    base = tmp_path / "base.json"
    call("check", outs[1], "--baseline", base, "--update")
    gate = command("check", outs[0], "--baseline", base, *more, "--scores", "ods")
    assert gate.returncode == 1
    assert gate.stdout.count("weather=") == 3
    assert call("worst", outs[0], *more, "-n", 1).count("\nim0") == 3
    call("plot", *outs, *more, "-o", tmp_path / "slices.pdf")
    assert (tmp_path / "slices.pdf").stat().st_size > 1000


def test_a_page_has_a_plot_of_slices_and_a_filter(saved, tmp_path):
    outs, table = saved
    call(
        "report",
        *outs,
        "--groups",
        table,
        "--by",
        "weather",
        "-o",
        tmp_path / "x.html",
        "--n-boot",
        50,
    )
    page = (tmp_path / "x.html").read_text("utf-8")
    assert "<h3>ODS by weather</h3>" in page
    (picture,) = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', page)
    dots = re.findall(r'<use .* style="fill: (#\w+); stroke: \1"/>', b64decode(picture).decode())
    assert [dots.count(color) for color in dict.fromkeys(dots)] == 2 * [len(WEATHER) + 1]  # legend
    start = page.index('id="data">') + len('id="data">')
    groups = json.loads(page[start : page.index("</script>", start)])["groups"]
    assert [g["label"] for g in groups[:3]] == [f"weather: {name}" for name in WEATHER]
    assert sorted(i for g in groups[:3] for i in g["ids"]) == grouped().image_ids


def test_evaluate_shows_slices_and_says_what_they_need(tmp_path):
    pred, gt = masks()
    sides = write_maps(tmp_path / "pred", pred), write_maps(tmp_path / "gt", gt)
    words = ("evaluate", sides[0], "--gt", sides[1], "--metrics", "segmentation,contour")
    by = ("--group-by", r"(?P<patient>p\d)", "--by", "patient", "--workers", 1)
    printed = call(*words, *by)
    assert "Contours of masks by patient" in printed
    plain = json.loads(call(*words, *by, "--format", "json"))
    assert sorted(plain["slices"]) == [
        "contour-by-patient",
        "segmentation-by-patient",
        "segmentation-parts-by-patient",
    ]
    assert "need --groups FILE.csv or --group-by REGEX" in command(*words, "--by", "patient").stderr
    assert "--per needs --per-image FILE" in command(*words, "--per", "patient").stderr
    wrong = command(*words, *by[:2], "--by", "city")
    assert "column 'city': expected one of patient" in wrong.stderr


def test_a_slice_is_the_run_of_a_split_file(tmp_path):
    pred, gt = masks()
    sides = write_maps(tmp_path / "pred", pred), write_maps(tmp_path / "gt", gt)
    run = counted(*sides, metrics="contour", group_by=r"(?P<patient>p\d)")
    slices = slices_of(run, "patient")
    for number, name in enumerate(slices.parts.names):
        split = tmp_path / f"{name}.txt"
        split.write_text("\n".join(i for i in gt if i.startswith(name)), "utf-8")
        alone = slices_of(
            counted(*sides, metrics="contour", split_file=split, group_by="(?P<x>p)"), "x"
        )
        for score, value in alone.whole.items():
            np.testing.assert_array_equal(slices.scores[score][number].score.value, value)


def test_intervals_of_the_shares_of_classes_end_at_1():
    line, pred = np.zeros((40, 40)), np.zeros((3, 40, 40))
    line[10] = 1
    pred[:, 10], pred[0, 30], pred[1, 30], pred[2, 12, :30] = 0.9, 0.9, 0.9, 0.9
    items = [(f"s_{k}", pred[k], [line]) for k in range(3)]
    protocol = bb.Protocol(max_dist_px=2)
    run = bb.evaluate_items(items, protocol, errors=True, group_by=r"(?P<scene>s)_", workers=1)
    shares = slices_of(run, "scene").scores["boundary.error_share.background"][0].score
    assert 0.5 < shares.value < 1
    assert shares.high == 1


def test_sequences_have_the_numbers_of_their_set():
    """One object a sequence: each slice is the J of its object, and their mean that of the set."""
    truth = np.zeros((12, 12), np.int64)
    truth[3:9, 3:9] = 1
    items = []
    for name, widths in (("cat", (6, 6, 3, 6, 6)), ("dog", (6, 2, 4, 6, 6))):
        for k, width in enumerate(widths):
            pred = np.zeros_like(truth)
            pred[3:9, 3 : 3 + width] = 1
            items.append((f"{name}/{k:05}", pred, truth))
    run = bb.evaluate_items(items, "davis", "contour", group_by="(?P<sequence>.+)/", workers=1)
    slices = slices_of(run, "sequence")
    # The first and the last frame are left out: (1 + 1/2 + 1) / 3 and (1/3 + 2/3 + 1) / 3
    j = [found.score.value for found in slices.scores["contour.iou"]]
    assert j == pytest.approx([2.5 / 3, 2 / 3])
    assert slices.whole["contour.iou"] == pytest.approx(np.mean(j))
    assert slices.macro["contour.iou"].score.value == pytest.approx(np.mean(j))
