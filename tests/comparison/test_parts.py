"""Classes and other parts in comparisons, gates and tables: METRIC.PART.SCORE."""

from dataclasses import replace

import imageio.v3 as iio
import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.comparison.gate import Baseline, check
from bsdsbench.comparison.significance import holm
from bsdsbench.comparison.slices import ALL, slice_tables
from bsdsbench.diagnosis.explain import parse_targets
from bsdsbench.errors import DataError, InputWarning
from bsdsbench.plotting import plot_runs
from bsdsbench.report.worst import worst_table
from bsdsbench.results.image_tables import Summary, summary_tables
from bsdsbench.results.score_names import flat_scores, names_meant, score_name
from bsdsbench.results.score_tables import score_tables
from bsdsbench.tables.table import Field, Table
from tests.helpers.runs import call, command, refused

CLASSES = ("liver", "left.kidney", "tumour")
OPTIONS = {"classes": CLASSES, "first": 1}
PROTOCOL = bb.Protocol.preset("masks").replace(
    options={"contour": OPTIONS, "segmentation": OPTIONS}
)


def labels(rng, move):
    rows, cols = np.mgrid[:40, :48]
    whole = np.where(np.hypot(rows - 20 - move, cols - 14) < 10, 1, 0)
    whole[np.hypot(rows - 22, cols - 36 - move) < 7] = 2
    if rng.random() < 0.7:
        whole[np.hypot(rows - 20, cols - 14 - 2 * move) < 3] = 3
    return whole


def made(name, move, seed):
    rng = np.random.default_rng(seed)
    items = [
        (f"c{k:02}", labels(rng, rng.normal(0, move)), labels(np.random.default_rng(k), 0))
        for k in range(14)
    ]
    metrics = ["contour", "segmentation"]
    return bb.evaluate_items(items, PROTOCOL, metrics, name=name, workers=1)


@pytest.fixture(scope="module")
def runs():
    return [made("one", 0.5, 1), made("two", 1.5, 2), made("three", 2.5, 3)]


@pytest.fixture(scope="module")
def compared(runs):
    return bb.compare(runs, n_boot=200)


@pytest.mark.parametrize(
    ("score", "metric", "part", "key"),
    [
        ("boundary.ods", "boundary", "", "ods"),
        ("contour.tumour.dice", "contour", "tumour", "dice"),
        ("contour.left.kidney.pooled.iou", "contour", "left.kidney", "pooled.iou"),
        ("contour.pooled.iou", "contour", "", "pooled.iou"),
        ("segmentation.tumour.iou", "segmentation", "tumour", "iou"),
    ],
)
def test_a_score_is_named_by_metric_part_and_key(score, metric, part, key):
    named = score_name(score)
    assert (named.metric, named.part, named.column.key) == (metric, part, key)


@pytest.mark.parametrize("score", ["nothing.ods", "contour.tumour.no", "contour", ""])
def test_what_no_metric_has_is_not_named(score):
    assert score_name(score) is None


def test_flat_scores_are_those_of_the_score(runs):
    flat, of_class = flat_scores(runs[0]), runs[0].score("contour").per_class["left.kidney"]
    assert flat["contour.left.kidney.dice"] == of_class["dice"]
    assert flat["segmentation.tumour.iou"] == runs[0].score("segmentation").per_class["tumour"].iou
    logged = runs[0].flat(per_class=True)
    assert logged["contour/tumour/dice"] == flat["contour.tumour.dice"]
    assert "contour/tumour/dice" not in runs[0].flat()


@pytest.mark.slow
def test_intervals_of_a_class_are_those_of_its_masks_alone(runs, compared):
    """A class is a run of its binary masks: mean, interval and p are the same."""

    def alone(seed, move):
        rng, items = np.random.default_rng(seed), []
        for k in range(14):
            pred = labels(rng, rng.normal(0, move)) == 3
            items.append((f"c{k:02}", pred, labels(np.random.default_rng(k), 0) == 3))
        options = {"contour": {"classes": ("none", "tumour")}}
        protocol = bb.Protocol.preset("masks").replace(options=options)
        items = [(name, p.astype(int), g.astype(int)) for name, p, g in items]
        return bb.evaluate_items(items, protocol, "contour", name=str(seed), workers=1)

    masks = bb.compare([alone(1, 0.5), alone(2, 1.5), alone(3, 2.5)], n_boot=200)
    for key in ("dice", "hd95-pooled"):
        expected = masks.interval_of("1", f"tumour.{key}")
        interval = compared.interval_of("one", f"contour.tumour.{key}")
        assert (interval.value, interval.low, interval.high) == (
            expected.value,
            expected.low,
            expected.high,
        )


def test_p_values_are_corrected_over_pairs_and_classes(compared):
    differences = [
        d for d in compared.differences if (name := score_name(d.score)) and name.part
        and (name.metric, name.column.key) == ("contour", "dice")
    ]  # fmt: skip
    assert len(differences) == 9
    assert [d.p_holm for d in differences] == holm([d.p for d in differences])


def test_methods_are_corrected_over_the_same_tests_as_runs(runs, compared):
    methods = bb.compare([bb.Method(run.name, [run]) for run in runs], n_boot=200)
    for d in compared.differences:
        assert methods.difference_of(d.a, d.b, d.score).p_holm == pytest.approx(
            d.p_holm, nan_ok=True
        )
    for score, tests in (("contour.tumour.dice", "pairs and parts"), ("contour.dice", "pairs")):
        (note, *_) = methods.only([score]).tables()[-2].notes
        assert (
            note == f"* significant at 0.05 after Holm's correction over the {tests} of each score."
        )


def test_tables_mark_the_best_run_of_each_class(runs, compared):
    for tables in (score_tables(runs), compared.tables()):
        table = next(t for t in tables if t.key == "contour-parts")
        assert [c.key for c in table.columns[:3]] == ["part", "method", "dice"]
        assert [row[:2] for row in table.rows] == [
            [part, run.name] for part in CLASSES for run in runs
        ]
        dice = [row[2] for row in table.printed_cells]
        for k in range(0, 9, 3):
            of_class = dice[k : k + 3]
            values = [cell.numbers.value for cell in of_class]
            assert [cell.best for cell in of_class] == [value == max(values) for value in values]
    (alone,) = [t for t in score_tables(runs[:1]) if t.key == "contour-parts"]
    assert not any(cell.best for row in alone.printed_cells for cell in row)


@pytest.mark.parametrize(
    ("words", "scores"),
    [
        (["contour.tumour.dice"], ["contour.tumour.dice"]),
        (["tumour.dice"], ["contour.tumour.dice", "segmentation.tumour.dice"]),
        (["left.kidney.HD95 pooled"], ["contour.left.kidney.hd95-pooled"]),
        (["contour.dice"], ["contour.dice"]),
        (["hd95"], ["contour.hd95-pooled", *(f"contour.{c}.hd95-pooled" for c in CLASSES)]),
    ],
)
def test_words_choose_scores_of_classes(compared, words, scores):
    assert names_meant(words, compared.scores) == scores
    assert compared.only(words).shown == tuple(scores)
    shown = {column.key for table in compared.only(words).tables() for column in table.columns}
    assert "difference" in shown


@pytest.mark.parametrize("word", ["spleen.dice", "contour.spleen.dice", "tumour.no"])
def test_a_class_that_is_not_there_is_refused(runs, compared, word):
    with pytest.raises(DataError, match=word):
        compared.only([word])
    with pytest.raises(DataError, match=word):
        score_tables(runs, columns=[word])


def test_columns_of_a_class_choose_its_rows(runs):
    (table,) = score_tables(runs, columns=["contour.left.kidney.dice"])
    assert [column.key for column in table.columns] == ["part", "method", "dice"]
    assert [row[0] for row in table.rows] == ["left.kidney"] * 3


def test_a_class_that_falls_fails_the_gate(runs):
    """Usual scores of classes are gated; any other is where it is named."""
    good, bad = runs[0], runs[2]
    baseline = Baseline.of(good)
    failed = {c.score for c in check(bad, baseline).checks if c.failed}
    assert {"contour.left.kidney.dice", "segmentation.left.kidney.iou"} <= failed
    assert "contour.left.kidney.hd" not in {c.score for c in check(bad, baseline).checks}
    (one,) = check(bad, baseline, scores=["contour.left.kidney.hd"]).checks
    assert one.failed
    assert one.drop > 0  # a distance grows
    chosen = Baseline.of(
        good, {"contour.left.kidney.dice": 1.0}, gated=["contour.left.kidney.dice"]
    )
    assert check(bad, chosen).passed


def test_columns_that_are_empty_for_all_are_not_shown_to_people():
    """Nothing is predicted, so that there is no distance."""
    mask = np.eye(9, dtype=np.uint8)
    with pytest.warns(InputWarning, match="nothing is predicted"):
        run = bb.evaluate_items([("a", 0 * mask, mask)], "masks", metrics="contour", workers=1)
    (table,) = score_tables([run])
    assert "hd95-pooled" in table.plain()  # for programs
    shown = table.for_people
    assert not {"hd95-pooled", "assd-pooled"} & {c.key for c in shown.columns}
    assert any(n.startswith("- not shown, HD95 pooled, ASSD pooled") for n in shown.note_lines)
    (asked,) = score_tables([run], columns=["hd95"])
    assert [c.key for c in asked.for_people.columns] == ["method", "hd95-pooled"]
    empty = Table("t", "T", [Field("x", "X", "", ".1f")], [[None]])
    assert empty.for_people is empty


# ---- in other verbs ------------------------------------------------------------------------------


def test_the_worst_images_of_a_class(runs):
    table = worst_table(runs[:1], [], columns=["contour.tumour.dice", "contour.dice"], n=3)
    values = runs[0].image_values("contour")["tumour"]["dice"]
    known = dict(zip(runs[0].image_ids, values, strict=True))
    lowest = sorted((k for k in known if known[k] == known[k]), key=lambda k: (known[k], k))[:3]
    assert [row[0] for row in table.rows] == lowest
    assert [row[1].value for row in table.rows] == [known[k] for k in lowest]
    assert [c.heading for c in table.columns][1:3] == ["tumour: Dice", "Dice"]
    assert len({c.key for c in table.columns}) == len(table.columns)


@pytest.mark.parametrize(
    ("metric", "part", "key"),
    [
        ("contour.tumour.dice", "tumour", "dice"),
        ("contour.hd95", "", "hd95-pooled"),
        ("segmentation.left.kidney.iou", "left.kidney", "iou"),
    ],
)
def test_boxes_of_a_class_or_of_a_distance(runs, metric, part, key):
    (ax,) = plot_runs(runs[:2], kind="box", metric=metric).axes
    values = np.array(runs[0].image_values(metric.partition(".")[0])[part][key])
    box = ax.lines[0].get_ydata()
    quartiles = np.percentile(values[np.isfinite(values)], [25, 75])
    assert (box.min(), box.max()) == pytest.approx(tuple(quartiles))
    assert part in ax.get_ylabel()


def test_names_of_classes_keep_their_letters_in_targets():
    assert parse_targets(["contour.Left Lung.dice=.9", "Boundary.ODS=.7"]) == {
        "contour.Left Lung.dice": ".9",
        "ods": ".7",
    }


def test_slices_have_their_classes(runs):
    groups = {f"c{k:02}": {"site": "xy"[k % 2]} for k in range(14)}
    grouped = runs[0].with_groups(groups)
    tables = {t.key: t for t in slice_tables([grouped], ["site"])}
    table = tables["contour-parts-by-site"]
    plain, seen = table.plain(), 0
    for row, part in enumerate(plain["part"]):
        ids = [i for i, g in groups.items() if plain["slice"][row] in (g["site"], ALL)]
        records = [r for r in grouped.records if r.image_id in ids]
        if records:
            alone = bb.Evaluation(grouped.protocol, "x", records)
            assert plain["dice"][row] == alone.score("contour").per_class[part]["dice"]
            seen += 1
    assert seen == 9
    assert [c.key for c in table.columns[:4]] == ["method", "slice", "part", "images"]


@pytest.fixture
def folders(tmp_path):
    """Folders of label maps, two a patient."""
    for name, seed in (("gt", 0), ("pred", 5)):
        rng = np.random.default_rng(seed)
        (tmp_path / name).mkdir()
        for k in range(6):
            drawn = labels(rng, seed * rng.random() / 5).astype(np.uint8)
            iio.imwrite(tmp_path / name / f"p{k // 2}-{k % 2}-{'ab'[k % 2]}.png", drawn)
    return tmp_path


WORDS = (
    *("--metrics", "contour", "--set", "contour.classes=liver,kidney,tumour"),
    *("--set", "contour.first=1", "--quiet", "--workers", 1),
    *("--group-by", "(?P<patient>p.)-.-(?P<side>.)"),
)


@pytest.mark.slow
def test_evaluate_and_report_take_clusters_for_slices(folders):
    given = ("evaluate", folders / "pred", "--gt", folders / "gt", *WORDS, "-o", folders / "out")
    by = ("--by", "side", "--cluster", "patient")
    printed = call(*given, *by)
    assert "leaves out one patient at a time" in printed
    assert "Contours of masks by side, part by part" in printed
    saved = call("report", folders / "out", *by, "--columns", "contour.kidney.dice")
    assert "leaves out one patient at a time" in saved
    call("report", folders / "out", *by, "-o", folders / "r.html", "--n-boot", 50, "--quiet")
    assert "leaves out one patient at a time" in (folders / "r.html").read_text("utf-8")
    assert "--by" in command(*given, "--cluster", "patient").stderr
    assert "--by" in command("report", folders / "out", "--cluster", "patient").stderr


def test_run_shows_slices(folders):
    rng, photos = np.random.default_rng(1), folders / "photos"
    photos.mkdir()
    for path in (folders / "gt").glob("p*"):
        path.unlink()
    for k in range(4):
        name = f"s{k % 2}-{k}.png"
        iio.imwrite(photos / name, (rng.random((24, 24, 3)) * 255).astype(np.uint8))
        iio.imwrite(folders / "gt" / name, np.eye(24, dtype=np.uint8) * 255)
    words = ("run", "sobel", photos, "--gt", folders / "gt", "-o", folders / "run", "--quiet")
    printed = call(*words, "--group-by", "(?P<scene>s.)-", "--by", "scene", "--workers", 1)
    assert "Boundaries by scene" in printed
    assert "--groups" in command(*words, "--fresh", "--by", "scene").stderr


def test_explain_reads_a_class_off_other_columns(folders):
    given = ("evaluate", folders / "pred", "--gt", folders / "gt", *WORDS, "-o", folders / "out")
    call(*given)
    score = bb.Evaluation.load(folders / "out").score("contour").per_class["kidney"]
    target = f"contour.kidney.dice={score.pooled.dice:.6f}"
    printed = call("explain", folders / "out", "--target", target, "--seconds", 1, "--quiet")
    assert "Dice of all pixels" in printed


@pytest.mark.parametrize(
    ("metric", "names", "fault"),
    [
        ("contour", ["liver", "pooled"], "'pooled': 'pooled' is"),
        ("contour", ["liver", "cyst.pooled"], "'cyst.pooled': 'pooled' is"),
        ("contour", ["Pooled", "pooled.cyst"], None),
        ("segmentation", ["pooled", "mean"], None),
        ("semantic", ["ods", "all"], None),
    ],
)
def test_a_class_with_the_name_of_other_scores_is_refused(metric, names, fault):
    """Else METRIC.CLASS.SCORE is two scores; sound names are those of as many scores."""
    labels = np.kron([[1, 0], [0, 2]], np.ones((9, 9), int))
    options = {metric: {"classes": names, "first": 1}}
    protocol = bb.Protocol.preset("strict").replace(options=options)
    given = [("a", labels, labels)], protocol
    if fault:
        refused(
            f"{metric}.classes {fault} .*expected another name",
            bb.evaluate_items,
            *given,
            metrics=metric,
        )
        return
    run = bb.evaluate_items(*given, metrics=metric, workers=1)
    scores = flat_scores(run)
    assert {score_name(s).part for s in scores} == {"", *names}
    of_each = [{k: scores[k] for k in scores if score_name(k).part == name} for name in names]
    assert len(of_each[0]) == len(of_each[1]) > 1


def test_notes_are_of_the_rows_that_are_shown(runs):
    """The tumour is not in every image, the kidney is; a chosen class takes its notes along."""
    missing = replace(runs[0], records=runs[0].records[:1], name="short")
    parts = {t.key: t for t in score_tables([missing, runs[1]], columns=["contour.tumour.hd95"])}
    (table,) = parts.values()
    (line,) = [line for line in table.note_lines if "means over" in line]
    assert "of tumour, two" in line
    (kidney,) = score_tables([missing, runs[1]], columns=["contour.left.kidney.dice"])
    assert not any("under Dice" in line for line in kidney.note_lines)


def test_a_score_is_known_by_its_name_in_result_json(runs, compared):
    name = "segmentation.per_class.left.kidney.iou"
    assert name in runs[0].numbers()
    assert compared.only([name]).shown == ("segmentation.left.kidney.iou",)
    assert [c.score for c in check(runs[0], Baseline.of(runs[0]), scores=[name]).checks] == [
        "segmentation.left.kidney.iou"
    ]
    (table,) = score_tables(runs, columns=[name])
    assert {row[0] for row in table.rows} == {"left.kidney"}
    (images,) = summary_tables(runs, Summary.MEAN, [name])
    assert {row[0] for row in images.rows} == {"left.kidney"}


def test_a_heading_of_two_metrics_means_both(compared):
    chosen = compared.only(["Tumour.Dice"]).shown
    assert chosen == ("contour.tumour.dice", "segmentation.tumour.dice")


def test_a_gate_keeps_a_class_whatever_its_name(tmp_path):
    """Also with commas; and who had no counts when the baseline was made."""
    mask = np.kron([[1, 0], [0, 2]], np.ones((9, 9), int))
    options = {"segmentation": {"classes": ["lobe, left", "lobe, 5%"], "first": 1}}
    protocol = bb.Protocol.preset("masks").replace(options=options)
    run = bb.evaluate_items([("a", mask, mask)], protocol, metrics="segmentation", workers=1)
    chosen = ["segmentation.lobe, left.iou", "segmentation.lobe, 5%.dice"]
    Baseline.of(replace(run, failed={"b": "torn"}), gated=chosen).save(tmp_path / "b.json")
    checked = check(run, tmp_path / "b.json")
    assert [c.score for c in checked.checks] == chosen
    assert "baseline: 1 of 2 images; left out: b (torn)." in checked.notes
