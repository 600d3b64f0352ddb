"""The leaderboard: which runs stand together, in what order, with what beside them."""

import json
from dataclasses import replace

import imageio.v3 as iio
import numpy as np
import pytest
from click.testing import CliRunner

import bsdsbench as bb
from bsdsbench.cli.verb_report import command
from bsdsbench.loaders.identity import shipped_sets
from bsdsbench.report.html import write_report
from bsdsbench.report.leaderboard import write_leaderboard
from tests.helpers.making import make_set
from tests.helpers.simulated import simulated_run


def saved(folder, name, quality, **changes):
    run = simulated_run(name, 6, quality=quality, seed=3)
    return replace(run, **changes).save(folder / name)


def test_runs_of_one_truth_and_protocol_make_a_board(tmp_path):
    runs = tmp_path / "runs"
    for name, quality in (("worse", 0.0), ("<best>", 0.5), ("middle", 0.2)):
        saved(runs, name, quality)
    other = bb.Protocol.preset("bsds500").replace(max_dist=0.011)
    saved(runs, "tolerant", 0.3, protocol=other)
    middle = bb.Evaluation.load(runs / "middle")
    write_report([middle], runs / "middle" / "report.html", pictures=False, n_boot=20)
    boards = write_leaderboard(sorted(runs.iterdir()), tmp_path / "site", n_boot=50)
    assert [len(b.rows) for b in boards] == [3, 1]
    assert [r.name for r in boards[0].rows] == ["<best>", "middle", "worse"]
    assert boards[1].rows[0].note.startswith("bsdsbench ")
    assert "tol:.011d" in boards[1].rows[0].note
    page = (tmp_path / "site" / "index.html").read_text("utf-8")
    assert "&lt;best&gt;" in page
    assert "<best>" not in page
    assert 'href="reports/middle.html"' in page
    assert (tmp_path / "site" / "reports" / "middle.html").is_file()
    told = json.loads((tmp_path / "site" / "leaderboard.json").read_text("utf-8"))
    best = bb.Evaluation.load(runs / "<best>").boundary_score()
    row = told[0]["rows"][0]["scores"]["ods"]
    assert row["text"] == f"{best.ods.f:.3f}"
    assert row["low"] <= best.ods.f <= row["high"]


def test_runs_of_one_name_are_told_apart_by_their_last_folders(tmp_path):
    """And by no more: a page is published, where it was made is nobody's business."""
    folders = [tmp_path / case / "same" for case in ("a", "b")]
    for quality, folder in enumerate(folders):
        saved(folder.parent, "same", quality / 2)
        write_report([bb.Evaluation.load(folder)], folder / "report.html", pictures=False, n_boot=9)
    (board,) = write_leaderboard(folders, tmp_path / "site", n_boot=20)
    assert [row.name for row in board.rows] == ["same (b/same)", "same (a/same)"]
    reports = sorted(path.name for path in (tmp_path / "site" / "reports").iterdir())
    assert reports == ["same (a%2Fsame).html", "same (b%2Fsame).html"]
    for path in ("index.html", "leaderboard.json", "manifest.json"):
        assert str(tmp_path) not in (tmp_path / "site" / path).read_text("utf-8")


def test_an_undefined_score_is_a_dash_and_no_nan(tmp_path):
    """Maps of two values have one threshold that finds pixels, so no area under a curve."""
    pred, gt = make_set(tmp_path / "made", 3)
    for path in pred.iterdir():
        iio.imwrite(path, np.where(iio.imread(path) > 100, 255, 0).astype(np.uint8))
    few = {"protocol": "bsds500", "workers": 1, "executor": "thread"}
    bb.evaluate(pred, gt, out=tmp_path / "runs" / "binary", **few)
    site = tmp_path / "site"
    (board,) = write_leaderboard([tmp_path / "runs" / "binary"], site, n_boot=20)
    assert board.rows[0].values["ap"] == ("-", None, None)
    assert "nan" not in (site / "index.html").read_text("utf-8")

    def refused(word):
        raise AssertionError(word)

    text = (site / "leaderboard.json").read_text("utf-8")
    (told,) = json.loads(text, parse_constant=refused)
    assert told["rows"][0]["scores"]["ap"] == {"text": "-", "low": None, "high": None}
    assert told["rows"][0]["scores"]["ods"]["low"] > 0


def as_test_split(run):
    """The simulated records under the ids and fingerprints of the BSDS500 test split."""
    test = next(known for known in shipped_sets() if known.name == "bsds500-test")
    pairs = zip(sorted(test.images.items()), run.records, strict=True)
    return replace(run, records=[replace(r, image_id=k, truth=mark) for (k, mark), r in pairs])


@pytest.mark.slow
def test_published_rows_stand_beside_their_own_set_only(tmp_path):
    run = as_test_split(simulated_run("mine", 200, quality=0.4, seed=1))
    run.save(tmp_path / "runs" / "mine")
    (board,) = write_leaderboard([tmp_path / "runs" / "mine"], tmp_path / "site", n_boot=5)
    assert board.title == "bsds500-test/boundary: bsds500-test, 200 of 200 images"
    rows = {r.name: r for r in board.rows}
    hed = rows["HED (2015, published), single-scale"]
    assert hed.note.startswith("source: ")
    edter = next(r for r in board.rows if r.values["ap"][0] == "0.880 [edter]")
    assert edter.published
    orders = [r.order for r in board.rows]
    assert orders == sorted(orders, reverse=True)
    part = replace(run, records=list(run.records)[:50])
    part.save(tmp_path / "part" / "mine")
    (board,) = write_leaderboard([tmp_path / "part" / "mine"], tmp_path / "site2", n_boot=5)
    assert [r.published for r in board.rows] == [False]


def test_the_command_line_and_its_faults(tmp_path):
    one, two = (str(saved(tmp_path / place, "one", 0.1)) for place in ("a", "b"))
    site = tmp_path / "site"
    shown = CliRunner().invoke(command, [one, two, "-o", str(site), "--n-boot", "5"])
    assert shown.stdout.splitlines()[0] == "6 images, set not known: 2 rows"
    (board,) = json.loads((site / "leaderboard.json").read_text("utf-8"))
    assert {row["name"] for row in board["rows"]} == {"one (a/one)", "one (b/one)"}
    refused = CliRunner().invoke(command, [one, "-o", str(site), "--title", "x", "--no-pictures"])
    assert refused.exit_code == 2
    assert "--title, --pictures: not with a leaderboard" in refused.output
    table = CliRunner().invoke(command, [one, "-o", str(site), "--format", "csv"])
    assert table.exit_code == 0, table.output
    assert (site / "boundary.csv").is_file()
    pred, gt = make_set(tmp_path / "made", 2)
    bb.evaluate(pred, gt, metrics="pixel", workers=1, executor="thread", out=tmp_path / "other")
    with pytest.raises(bb.DataError, match="other: no boundary counts of images, expected them"):
        write_leaderboard([one, tmp_path / "other"], tmp_path / "s")


@pytest.mark.slow
def test_only_reports_of_the_result_that_is_there_are_published(tmp_path):
    runs, site = tmp_path / "runs", tmp_path / "site"
    for name in ("a", "b", "c", "d"):
        saved(runs, name, 0.3)
        mine = bb.Evaluation.load(runs / name)
        write_report([mine], runs / name / "report.html", pictures=False, n_boot=20)
    write_leaderboard(sorted(runs.iterdir()), site, n_boot=20)
    assert len(list((site / "reports").iterdir())) == 4
    saved(runs, "b", 0.4)  # another result takes the place of the first, and its report goes
    assert not (runs / "b" / "report.html").exists()
    (runs / "b" / "report.html").write_text("<p>foreign</p>")
    (runs / "c" / "report.html").write_text("<p>altered</p>")
    write_report([mine], runs / "b" / "other.html", pictures=False, n_boot=20)  # of d
    (tmp_path / "secret").write_text("secret")
    (runs / "d" / "report.html").unlink()
    (runs / "d" / "report.html").symlink_to(tmp_path / "secret")
    write_leaderboard(sorted(runs.iterdir()), site, n_boot=20)
    assert [p.name for p in (site / "reports").iterdir()] == ["a.html"]
    page = (site / "index.html").read_text("utf-8")
    assert page.count('href="reports/') == 1
    saved(runs, "b", 0.3)
    assert (runs / "b" / "report.html").read_text() == "<p>foreign</p>"  # the user's own
    assert (runs / "b" / "other.html").exists()


def test_nothing_is_written_through_a_link_in_the_site(tmp_path):
    saved(tmp_path / "runs", "a", 0.3)
    mine = bb.Evaluation.load(tmp_path / "runs" / "a")
    write_report([mine], tmp_path / "runs" / "a" / "report.html", pictures=False, n_boot=20)
    site, elsewhere = tmp_path / "site", tmp_path / "elsewhere"
    site.mkdir()
    elsewhere.mkdir()
    (site / "reports").symlink_to(elsewhere)
    with pytest.raises(bb.DataError, match="reports: is a link"):
        write_leaderboard([tmp_path / "runs" / "a"], site, n_boot=20)
    assert not list(elsewhere.iterdir())
    (site / "reports").unlink()
    (elsewhere / "mine").write_text("mine")
    (site / "index.html").symlink_to(elsewhere / "mine")
    write_leaderboard([tmp_path / "runs" / "a"], site, n_boot=20)
    assert (elsewhere / "mine").read_text() == "mine"
