"""Runs from folders: ours, others' per-image counts, others' tables alone; the published table."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.comparison.comparable import comparable
from bsdsbench.comparison.gate import Baseline
from bsdsbench.errors import InputWarning
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.protocol.signature import Signature
from bsdsbench.results.given_runs import as_runs
from bsdsbench.results.score_tables import score_tables
from bsdsbench.results.storage import Provenance
from bsdsbench.scores.counts import value_at
from bsdsbench.tables.forms import to_markdown
from tests.helpers.runs import call, refused
from tests.helpers.simulated import simulated_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    run = simulated_run("mine", 25, quality=0.2, seed=4)
    return run, run.save(tmp_path_factory.mktemp("mine"))


def test_ev1_files_alone_give_the_same_scores_and_bootstrap(folder, tmp_path):
    run, path = folder
    shutil.copytree(path / "per_image", tmp_path / "theirs")
    theirs = bb.Evaluation.load(tmp_path / "theirs")
    assert theirs.name == "theirs"
    assert theirs.boundary_score().to_mapping() == run.boundary_score().to_mapping()
    found = bb.compare([run, theirs], n_boot=100)
    assert {d.p for d in found.differences} == {1.0}
    assert found.notes == (
        "theirs: read from official files, which do not state the protocol; AP by the rule bsds",
        "mine, theirs: equal counts in every image, as from one set of predictions.",
    )


@pytest.mark.parametrize("test", ["bootstrap", "permutation"])
def test_what_the_random_matching_loses_is_no_difference(test):
    """Of the same maps the official program has three pairs fewer in each: always less, and little.

    Another method's difference is starred all the same.
    """
    mine, other = (simulated_run(name, 40, quality=q) for name, q in (("mine", 0), ("other", 0.5)))
    records = []
    for record in mine.records:
        counts = dict(record.counts["boundary"])
        counts["matches"] = np.maximum(counts["matches"] - [3, 0, 3, 0], 0)  # pairs of both sides
        records.append(replace(record, counts={"boundary": counts}))
    theirs = replace(mine, name="theirs", records=records, provenance=Provenance(official="theirs"))
    compared = bb.compare([mine, theirs, other], n_boot=500, test=test)
    small, large = (compared.difference_of(name, "theirs", "ods") for name in ("mine", "other"))
    assert small.p_holm < 0.05
    assert 0 < small.value < small.solver_moves < 0.002
    assert (small.solver, large.solver) == (True, False)
    letters = dict(zip(compared.names, compared.letters["boundary.ods"], strict=True))
    assert letters["mine"] == letters["theirs"] != letters["other"]
    table = compared.tables()[1]
    rows = {(row[0], row[1]): row for row in table.rows if row[2] == "ODS"}
    assert [rows["mine", "theirs"][k].mark for k in (3, 5)] == ["~", ""]
    assert [rows["theirs", "other"][k].mark for k in (3, 5)] == ["", "*"]
    (note,) = [line for line in table.note_lines if line.startswith("~ below")]
    assert "randomised and misses about 4 pairs per map" in note
    twice = bb.compare([mine, replace(mine, name="again", records=records)], n_boot=500, test=test)
    assert not twice.difference_of("mine", "again", "ods").solver


def test_nothing_is_said_of_a_protocol_that_is_not_stated(folder, tmp_path):
    """Thresholds and the row of threshold 0 are known; the rest is not, and is no difference."""
    run, path = folder
    for source in (path / "per_image").iterdir():
        text = source.read_text("utf-8")
        _, total_gt = text.split()[1:3]
        first = f"0 {total_gt} {total_gt} {total_gt} {10 * int(total_gt)}\n"
        (tmp_path / source.name).write_text(first + text, "utf-8")
    theirs = bb.Evaluation.load(tmp_path)
    words = str(theirs.signature).split("|")
    assert words[5:] == ["thr:0+99", "tol:?", "match:?", "nms:?", "thin:?", "ap:?"]
    assert Signature.parse(str(theirs.signature)).protocol == theirs.protocol
    assert theirs.boundary_score().ap == run.boundary_score().ap
    assert theirs.boundary_score().ods.f == pytest.approx(run.boundary_score().ods.f)
    _, (note,) = comparable([theirs], force=False)
    assert note.endswith("AP by the rule bsds without the row of threshold 0")
    for rule in ("edter", "step"):  # which use this row
        other = replace(theirs, protocol=theirs.protocol.replace(ap_rule=rule))
        assert comparable([other]).notes[0].endswith(f"AP by the rule {rule}")
    plain = bb.Evaluation.load(path)
    assert Signature(plain.protocol).differences(Signature(run.protocol)) == []


def test_tables_alone_give_scores_and_a_curve(folder, tmp_path):
    run, path = folder
    for name in ("eval_bdry.txt", "eval_bdry_thr.txt", "eval_bdry_img.txt"):
        shutil.copy(path / name, tmp_path)
    (theirs,) = as_runs([tmp_path], ["theirs"])
    mine, told = run.boundary_score(), theirs.score("boundary")
    for key in ("ods.precision", "ods.threshold", "ods", "ois.recall", "ois", "ap"):
        assert value_at(told, key) == pytest.approx(value_at(mine, key), rel=1e-5)
    for key in ("recall", "precision"):
        np.testing.assert_allclose(getattr(told.curve, key), getattr(mine.curve, key), rtol=1e-5)
    images = theirs.image_scores("boundary").values()
    for best, own in zip(images, run.image_scores("boundary").values(), strict=True):
        assert list(best.values()) == pytest.approx([own[key] for key in best], rel=1e-5)
    refused("theirs: no counts per image", bb.compare, [run, theirs])
    refused("theirs: no counts per image", theirs.save, tmp_path / "out")
    refused("theirs: no boundary counts", theirs.per_image, "boundary")
    assert theirs.to_mapping()["scores"]["boundary"]["ods"]["f"] == told.ods.f
    assert score_tables([theirs, theirs])[0].printed_cells[0][1].text == f"{mine.ods.f:.3f}"


def test_the_official_programs_own_folders(bsds500_bench):
    found = bb.Evaluation.load(bsds500_bench / "test_1")
    assert found.metrics == ("boundary", "region")
    assert found.score("boundary").ods.f == np.loadtxt(bsds500_bench / "test_1/eval_bdry.txt")[3]
    row = np.loadtxt(bsds500_bench / "test_1" / "eval_cover.txt")
    assert found.scores()["region"]["covering"] == {"ods": row[1], "ois": row[2], "best": row[3]}


def test_runs_of_one_name_are_told_apart(folder, tmp_path):
    _, path = folder
    again = shutil.copytree(path, tmp_path / "again")
    runs = as_runs([path, again])
    assert [r.name.rpartition("/")[2] for r in runs] == [f"mine ({path.name})", "again)"]
    assert [r.name for r in as_runs([path, again], ["a", "b"])] == ["a", "b"]
    (tmp_path / "empty").mkdir()
    refused("empty: is not the folder of a run", as_runs, [path, tmp_path / "empty"])
    refused("1 name for 2 runs, expected one name per run", as_runs, [path, again], ["a"])


@pytest.mark.parametrize(
    ("numbers", "ois", "ap"),
    [
        ("0.3 0.6 0.7 0.64615", None, None),
        ("0.3 0.6 0.7 0.64615 0.66 0.61", None, None),
        ("0.3 0.6 0.7 0.64615 0.62 0.71 0.662", 0.662, None),
        ("0.3 0.6 0.7 0.64615 0.62 0.71 0.662 0.68", 0.662, 0.68),
        ("0.3 0.6 0.7 0.64615 0.62 0.71 0.662 0.680153 0.663051", 0.662, 0.680153),
    ],
)
def test_result_files_of_four_to_nine_numbers(tmp_path, numbers, ois, ap):
    """Nine are those of the SBD programs, whose Area keeps the last of equal recalls."""
    (tmp_path / "eval_bdry.txt").write_text(numbers + "\n", "utf-8")
    rows = "0.25 0.8 0.5\n0.5 0.6 0.7\n0.75 0.6 0.71\n"
    (tmp_path / "eval_bdry_thr.txt").write_text(rows, "utf-8")
    run = bb.Evaluation.load(tmp_path)
    score = run.score("boundary")
    assert (score.ods.threshold, score.ods.f) == (0.3, 0.64615)
    assert ois is None or score.ois.f == ois
    assert np.isnan(score.ois.f) == (ois is None)
    # of the curve where none is printed: levels .6 to .8 of recall, P from .7 to .5
    assert score.ap == pytest.approx(ap or sum(0.7 - 0.01 * k for k in range(21)) / 100)
    assert run.protocol.ap_rule == ("sbd" if len(numbers.split()) == 9 else "bsds")
    assert not run.protocol.stated


def test_a_summary_of_another_run_is_said(tmp_path):
    (tmp_path / "eval_bdry_thr.txt").write_text("0.25 0.8 0.5\n0.5 0.6 0.7\n0.75 0 nan\n")
    (tmp_path / "eval_bdry.txt").write_text("0.5 0.6 0.7 0.646\n")
    assert bb.Evaluation.load(tmp_path).score("boundary").curve.precision.tolist()[-1] == 0
    # The row of threshold 0, where all pixels are predicted, takes part in AP by some rules only
    (tmp_path / "eval_bdry_thr.txt").write_text("0 1 0.1\n0.25 0.8 0.5\n0.5 0.6 0.7\n")
    (tmp_path / "eval_bdry.txt").write_text("0.5 0.6 0.7 0.646 0.6 0.7 0.65 0.12\n")
    bb.Evaluation.load(tmp_path)
    (tmp_path / "eval_bdry_thr.txt").write_text("0.25 0.8 0.5\n0.5 0.6 0.7\n0.75 0 nan\n")
    # Half-way between two thresholds, as the official program interpolates
    few = tmp_path / "few"
    few.mkdir()
    (few / "eval_bdry_thr.txt").write_text("0.4 0.9 0.3 0.45\n0.6 0.3 0.9 0.45\n")
    (few / "eval_bdry.txt").write_text("0.5 0.6 0.6 0.6\n")
    assert bb.Evaluation.load(few).score("boundary").ods.f == 0.6
    (tmp_path / "eval_bdry.txt").write_text("0.5 0.9 0.9 0.9\n")
    with pytest.warns(InputWarning, match="F 0.900, but that of eval_bdry_thr.txt is 0.650"):
        bb.Evaluation.load(tmp_path)
    (tmp_path / "a_ev1.txt").write_text("0.5 60 100 70 100\n")
    with pytest.warns(InputWarning, match="F 0.900, but that of the counts of the images is 0.646"):
        bb.Evaluation.load(tmp_path)
    (tmp_path / "eval_bdry.txt").write_text("0.5 0.6 0.7 0.646 0.6 0.7 0.65 0.9\n")
    with pytest.warns(InputWarning, match="AP 0.900, but that of the counts of the images is 0.6"):
        bb.Evaluation.load(tmp_path)
    (tmp_path / "eval_bdry.txt").write_text("0.5 0.6 0.7 0.646\n")
    (tmp_path / "eval_bdry_img.txt").write_text("1 0.5 0.6 0.7 0.646\n2 0.5 0.6 0.7 0.646\n")
    with pytest.warns(InputWarning, match="1 file ID_ev1.txt.*lists 2 images"):
        bb.Evaluation.load(tmp_path)


def test_region_tables_that_contradict_themselves_or_hold_no_score(tmp_path):
    (tmp_path / "eval_cover_th.txt").write_text("0.1 0.65\n0.2 0.7\n")
    with pytest.raises(bb.DataError, match=r"has eval_cover_th\.txt, expected a table of scores"):
        bb.Evaluation.load(tmp_path)
    (tmp_path / "eval_cover.txt").write_text("0.2 0.7 0.75 0.8\n")
    run = bb.Evaluation.load(tmp_path)
    assert run.score("region").covering.ods == 0.7
    with pytest.raises(bb.DataError, match="no counts per image"):
        Baseline.of(run).save(tmp_path / "baseline.json")
    for name, row in (("cover_th", "0.1 0.6649\n"), ("RI_VOI", "0.2 1 1 0.2 -2.2e-16 -2.2e-16\n")):
        (tmp_path / f"eval_{name}.txt").write_text(row)  # of equal maps; beside two decimals
    (tmp_path / "eval_cover.txt").write_text("0.1 0.66 0.66 0.8\n")
    bb.Evaluation.load(tmp_path)
    (tmp_path / "eval_cover_th.txt").write_text("0.1 0.65\n0.2 0.7\n")
    (tmp_path / "eval_cover.txt").write_text("0.1 0.6 0.75 0.8\n")
    with pytest.warns(InputWarning, match=r"ODS 0\.600, but the best of eval_cover_th.txt is 0\.7"):
        bb.Evaluation.load(tmp_path)
    (tmp_path / "eval_cover_th.txt").unlink()
    (tmp_path / "eval_cover.txt").write_text("0.1 0.75 0.6 0.8\n")
    with pytest.warns(InputWarning, match=r"ODS 0\.750 is better than OIS 0\.600"):
        bb.Evaluation.load(tmp_path)
    # PRI and VOI exchanged, PRI in percent, a negative VOI
    for row in ("0.3 1.37 1.12 0.2 0.83 0.9", "0.2 83 90 0.3 1.4 1.1", "0.2 0.8 0.9 0.3 -1.4 -1.1"):
        (tmp_path / "eval_RI_VOI.txt").write_text(row)
        with pytest.raises(bb.DataError, match=r"shares from 0 to 1|none below 0"):
            bb.Evaluation.load(tmp_path)


@pytest.mark.parametrize("name", ["test_1", "test_5"])
def test_official_tables_alone_are_reported(name, bsds500_bench, tmp_path):
    """Of a folder of tables, whatever is in it."""
    folder = bsds500_bench / name
    for form in ("table", "latex"):
        assert name in call("report", folder, "--format", form).replace("\\", "")
    call("report", folder, "-o", tmp_path / "page.html", "--n-boot", 50)
    assert name in (tmp_path / "page.html").read_text("utf-8")
    if name == "test_5":
        refused("test_5: no curve", call, "report", folder, "--rules")
    else:
        assert "interpolated   0.704" in call("report", folder, "--rules")


def test_tables_without_thresholds_do_not_say_99(tmp_path):
    """eval_cover.txt alone: neither the report nor the signature invents a grid."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "eval_cover.txt").write_text("0.5 0.6 0.7 0.8\n")
    run = bb.Evaluation.load(tmp_path / "a")
    assert run.protocol.describe() == "protocol and thresholds not stated"
    assert not run.protocol.stated
    text = to_markdown(score_tables([run]))
    assert "99 thresholds" not in text
    assert "thresholds not stated" in text
    assert "thr:?" in Signature(run.protocol).words()
    assert Signature(run.protocol).differences(Signature(Protocol(name="mine", thresholds=5))) == []
