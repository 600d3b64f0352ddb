"""Summaries of the images' own values, in tables, files, JSON and pages."""

import csv
import json
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bsdsbench as bb
from bsdsbench.errors import DataError
from bsdsbench.results.image_tables import Summary, _compute_spread, summary_tables
from tests.helpers.runs import call, command, write_maps

CLASSES = {"contour": {"classes": ("ground", "organ", "lesion")}}
PROTOCOL = bb.Protocol.preset("masks").replace(options=CLASSES)


def drawn(k, move=0):
    labels = np.zeros((30, 40), np.uint8)
    labels[8 + move : 20, 5 : 20 + k] = 1
    if k % 3:
        labels[12:15, 8 : 11 + move] = 2
    return labels


def items(move):
    return [(f"i{k}", drawn(k, move + k % 2), drawn(k)) for k in range(7)]


@pytest.fixture(scope="module")
def runs():
    names = {"one": 0, "two": 2}
    return [
        bb.evaluate_items(items(move), PROTOCOL, "contour", name=name, workers=1)
        for name, move in names.items()
    ]


@given(st.lists(st.floats(0, 1, width=32), min_size=2, max_size=40), st.integers(0, 3))
def test_statistics_are_those_of_the_standard_library(values, n_undefined):
    found = _compute_spread(np.array([*values, *[np.nan] * n_undefined], np.float64))
    assert (found.n, found.undefined) == (len(values), n_undefined)
    assert found.mean == pytest.approx(statistics.fmean(values), abs=1e-12)
    assert found.sd == pytest.approx(statistics.stdev(values), abs=1e-9)
    assert found.median == pytest.approx(statistics.median(values), abs=1e-12)
    q1, _, q3 = statistics.quantiles(values, n=4, method="inclusive")
    assert (found.q1, found.q3) == pytest.approx((q1, q3), abs=1e-12)


def test_no_value_one_value_and_infinite_ones():
    assert _compute_spread(np.array([np.nan] * 3))[:2] == (0, 3)
    three = _compute_spread(np.array([1.0, 2.0, 4.0, np.nan]))
    assert (three.n, three.undefined, three.median) == (3, 1, 2.0)
    one = _compute_spread(np.array([0.25]))
    assert one[2:3] + one[4:] == (0.25, 0.25, 0.25, 0.25)
    assert np.isnan(one.sd)
    far = _compute_spread(np.array([1.0, 2.0, np.inf]))
    assert (far.mean, far.median, far.q3) == (np.inf, 2.0, np.inf)
    assert np.isnan(far.sd)


def test_a_row_a_score_class_and_run(runs):
    (table,) = summary_tables(runs)
    plain = table.plain()
    rows = list(zip(plain["part"], plain["method"], plain["score"], strict=True))
    for k, (part, method, score) in enumerate(rows):
        if score == "Dice":
            run = runs[method == "two"]
            values = np.array(run.image_values("contour")[part or ""]["dice"])
            known = values[~np.isnan(values)]
            assert plain["n"][k] == known.size
            assert plain["undefined"][k] == 7 - known.size
            assert plain["median"][k] == pytest.approx(np.median(known))
            assert plain["q1"][k] == pytest.approx(np.quantile(known, 0.25))
            assert plain["sd"][k] == pytest.approx(known.std(ddof=1))
    assert (None, "one", "Dice") in rows
    assert ("lesion", "two", "HD95 pooled") in rows
    lesions = [
        plain["undefined"][k] for k, row in enumerate(rows) if row == ("lesion", "one", "Dice")
    ]
    assert lesions == [3]  # images 0, 3 and 6 have none


@pytest.mark.parametrize(
    ("summary", "keys"),
    [
        ("mean", ["mean", "sd"]),
        ("median", ["mean", "sd", "median"]),
        ("iqr", ["mean", "sd", "median", "q1", "q3"]),
    ],
)
def test_a_summary_shows_the_statistics_up_to_it(runs, summary, keys):
    (table,) = summary_tables(runs[:1], Summary(summary))
    assert [c.key for c in table.columns] == ["part", "score", "n", "undefined", *keys]


@pytest.mark.parametrize(
    ("word", "rows"),
    [
        ("contour.lesion.dice", [("lesion", "Dice")]),
        ("lesion.HD95 pooled", [("lesion", "HD95 pooled")]),
        ("iou", [(None, "IoU"), *((c, "IoU") for c in ("ground", "organ", "lesion"))]),
    ],
)
def test_scores_are_chosen_by_name(runs, word, rows):
    (table,) = summary_tables(runs[:1], Summary.MEAN, [word])
    plain = table.plain()
    parts = plain.get("part", [None] * len(plain["score"]))
    assert list(zip(parts, plain["score"], strict=True)) == rows
    with pytest.raises(DataError, match="nothing"):
        summary_tables(runs, Summary.MEAN, ["nothing"])


@pytest.fixture
def folders(tmp_path):
    for name, side in (("pred", 1), ("gt", 2)):
        write_maps(tmp_path / name, {item[0]: item[side] for item in items(1)})
    return tmp_path


def evaluation(folders):
    """The words of an `evaluate` of three classes."""
    where = folders / "pred", "--gt", folders / "gt", "--quiet", "--workers", 1
    return (
        "evaluate",
        *where,
        "--metrics",
        "contour",
        "--set",
        "contour.classes=ground,organ,lesion",
    )


@pytest.mark.slow
def test_evaluate_and_report_show_summaries(folders):
    printed = call(*evaluation(folders), "-o", folders / "out", "--summary", "iqr")
    assert "Contours of masks, values of the images" in printed
    assert "lower quartile" in printed
    plain = json.loads(call(*evaluation(folders), "--format", "json", "--summary", "median"))
    assert {"n", "undefined", "median"} <= plain["summary"]["contour-images"].keys()
    call("report", folders / "out", "--summary", "mean", "-o", folders / "t.csv")
    with (folders / "t-contour-images.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {"part", "score", "n", "undefined", "mean", "sd"} == rows[0].keys()
    call("report", folders / "out", "-o", folders / "r.html", "--n-boot", 50, "--quiet")
    page = (folders / "r.html").read_text("utf-8")
    assert "Contours of masks, values of the images" in page
    page_too = command("report", folders / "out", "--summary", "iqr", "-o", folders / "r.html")
    assert "--summary" in page_too.stderr


def test_the_table_of_images_of_a_page_has_distances_and_classes(folders):
    call(*evaluation(folders), "-o", folders / "out")
    call("report", folders / "out", "-o", folders / "r.html", "--n-boot", 50, "--quiet")
    page = (folders / "r.html").read_text("utf-8")
    start = page.index('"columns":')
    columns, _ = json.JSONDecoder().raw_decode(page[start + len('"columns":') :])
    assert [c["label"] for c in columns] == [
        *("IoU", "Dice", "Boundary IoU 2%", "HD95 pooled", "ASSD pooled", "NSD area 1"),
        *("ground: Dice", "organ: Dice", "lesion: Dice"),
    ]
