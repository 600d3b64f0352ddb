"""Published rows and the human point in a report: beside runs of their own set only."""

import csv
import io
import json
import re

import pytest

import bsdsbench as bb
from bsdsbench.comparison.published import published_beside, published_curves
from bsdsbench.report import write_report
from bsdsbench.results.score_tables import score_tables
from bsdsbench.tables.forms import to_csv
from tests.helpers.runs import refused
from tests.helpers.simulated import simulated_run


def human_point(text):
    data = re.search(r'id="data">(.*?)</script>', text, re.DOTALL)
    return json.loads(data[1])["human"]


def test_published_rows_and_what_they_do_not_fit(tmp_path):
    path = tmp_path / "r.html"
    write_report([simulated_run("mine", 5)], path, published=["hed"], n_boot=10, force=True)
    text = path.read_text("utf-8")
    assert "HED (2015, published)" in text
    assert "5 images, but published results are of the 200 images of bsds500-test" in text
    assert "they are not comparable" in text
    (drawn,) = json.loads(re.search(r'id="data">(.*?)</script>', text)[1])["published"]
    assert drawn["ods"][1:] == [
        round(v, 5) for v in published_curves()["hed"].ods.to_mapping().values()
    ]
    assert len(drawn["curve"]) > 90


def test_human_agreement_on_bsds500_stands_beside_its_test_images_only(tmp_path):
    path = tmp_path / "r.html"
    for count, point in ((5, None), (200, [0.7235, 0.9014])):
        write_report([simulated_run("mine", count)], path, n_boot=10)
        assert human_point(path.read_text("utf-8")) == point


@pytest.mark.slow
def test_a_report_and_compare_have_the_same_intervals_and_p(tmp_path):
    runs = [simulated_run(name, 12, quality=q) for name, q in (("a", 0.1), ("b", 0.0))]
    write_report(runs, tmp_path / "r.html", n_boot=400)
    page = (tmp_path / "r.html").read_text("utf-8")
    assert page.count("below that, precision counts as 0") == 1
    assert "under :" not in page
    data = re.search(r'id="data">(.*?)</script>', page)
    shown = json.loads(data[1])["csv"]
    compared = bb.compare(runs, n_boot=400)
    for table in compared.tables()[1:]:
        assert shown[table.key] == to_csv(table)
    rows = {row["method"]: row for row in csv.DictReader(io.StringIO(shown["boundary"]))}
    for name in "ab":
        interval = compared.interval_of(name, "boundary.ods")
        ends = float(rows[name]["ods_low"]), float(rows[name]["ods_high"])
        assert ends == (interval.low, interval.high)


def test_published_rows_beside_other_images_are_never_the_best():
    """Two runs of 5 images below HED's 0.788: the better of them is the best of the column."""
    for n, beside in ((5, False), (200, True)):
        given = [simulated_run(m, n, quality=-1.0 - k) for k, m in enumerate(("mine", "worse"))]
        if not beside:
            refused("mine, worse: 5 images, but published", published_beside, ["hed"], given)
        rows, notes = published_beside(["hed"], given, force=True)
        assert bool(notes) != beside
        table = score_tables(given, extra=rows)[0]
        column = [c.key for c in table.columns].index("ods")
        best = [row[0] for k, row in enumerate(table.rows) if table.printed_cells[k][column].best]
        assert best == (["HED (2015, published)"] if beside else ["mine"])
        assert table.rows[2][0] == "HED (2015, published)" + " [bsds500-test]" * (not beside)
        assert all(of.numbers.mark == "" for of in table.printed_cells[2])


def test_a_row_of_other_images_keeps_the_mark_of_its_ap_rule():
    """Two differences are two marks: every score is no match, and the AP is by another rule."""
    protocol = bb.Protocol.preset("bsds500").replace(ap_rule="edter")
    run = simulated_run("mine", 5, protocol=protocol)
    ((_, _, marks),), _ = published_beside(["hed"], [run], force=True)
    assert marks["ap"] == "bsds"
    assert marks["ods"] == ""
