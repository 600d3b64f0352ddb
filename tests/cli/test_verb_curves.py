"""bsdsbench curves, and the reading of labels and scores."""

import io
import json
import sys

import numpy as np
import pytest

from bsdsbench import cli, curves

ROWS = [(1, 7.0), (0, 6.0), (1, 5.0), (0, 4.0), (0, 3.0), (1, 2.0), (0, 1.0)]


@pytest.fixture
def run(monkeypatch, capsys):
    """Call the command line; gives exit status, standard output, standard error."""

    def call(*args, stdin=""):
        monkeypatch.setattr(sys, "argv", ["bsdsbench", "curves", *map(str, args)])
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        with pytest.raises(SystemExit) as end:
            cli.main()
        out = capsys.readouterr()
        return end.value.code, out.out, out.err

    return call


@pytest.fixture
def scores(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("label,score\n" + "".join(f"{y},{s}\n" for y, s in ROWS))
    return path


def test_json_is_the_library(run, scores):
    expected = curves.pr(*zip(*ROWS, strict=True))
    code, out, err = run(scores, "--format", "json")
    (row,) = json.loads(out)["curves"]
    assert (code, err) == (0, "")
    assert row == {
        "name": "scores",
        "positives": 3,
        "negatives": 4,
        "points": 8,
        "ap": expected.ap,
        "auc": expected.auc,
        "ap_11": expected.ap_11,
        "chance": 3 / 7,
    }
    _, out, _ = run(scores, "--kind", "roc", "--format", "json", "--plot", "fpfn", "--areas")
    (row,) = json.loads(out)["curves"]
    assert (row["auc"], row["eer_threshold"]) == (1 - 8 / 12, 4)
    table = {r["number"]: r["value_0"] for r in json.loads(out)["areas"]}
    assert table["VLFeat ap"] == pytest.approx((1 + 2 / 3 + 1 / 2) / 3)
    # scores beyond 1: the BSDS area does not exist, and JSON has no NaN
    assert table["BSDS area, 99 thresholds"] is None


def test_table_says_the_numbers(run, scores):
    code, out, _ = run(scores, "--kind", "det", "--areas")
    assert code == 0
    assert "0.333333" in out
    assert "scikit-learn average_precision_score" in out


def test_two_files_are_compared(run, scores, tmp_path):
    """As `curves.delong`; the same stem in two folders; labels in another order are not."""
    other, turned = tmp_path / "b" / "scores.csv", tmp_path / "turned.csv"
    other.parent.mkdir()
    other.write_text("".join(f"{y},{(s * 3) % 7}\n" for y, s in ROWS))
    turned.write_text("".join(f"{y},{s}\n" for y, s in ROWS[::-1]))
    _, out, err = run(scores, other, turned, "--format", "json", "--quiet")
    tables = json.loads(out)
    y, s = map(np.array, zip(*ROWS, strict=True))
    expected = curves.delong(y, s, (s * 3) % 7)
    (found,) = tables["differences"]
    assert (found["a"], found["b"]) == (str(scores), str(other))
    assert [found[f"difference{k}"] for k in ("", "_low", "_high")] + [found["p"]] == list(
        expected[2:6]
    )
    areas = {row["name"]: row["auc_low"] for row in tables["roc_areas"]}
    width = 1.959963984540054 * expected.covariance[1, 1] ** 0.5
    assert areas[str(other)] == pytest.approx(max(expected.other - width, 0))
    assert err.count("not compared") == 2
    _, out, err = run(scores, other, "-o", tmp_path / "a.png")
    assert f"{expected.difference:+.4f} [" in out
    assert err == f"bsdsbench: wrote {tmp_path / 'a.png'}\n"
    _, out, _ = run(scores, other, "--format", "csv")
    assert out.splitlines()[0] == "name,positives,negatives,points,ap,auc,ap_11,chance"
    one = "1,2\n1,3\n"
    assert "no intervals" in run("-", "--kind", "roc", stdin=one)[2]


@pytest.mark.slow
def test_several_files_one_picture(run, scores, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text(scores.read_text())
    for kind in ("pr", "roc", "det"):
        picture = tmp_path / f"{kind}.svg"
        code, out, _ = run(scores, other, "--kind", kind, "-o", picture)
        assert code == 0
        assert "scores" in out
        assert "other" in out
        assert picture.read_bytes().startswith(b"<?xml")


def test_points_of_the_curve(run, scores, tmp_path):
    target = tmp_path / "points.csv"
    run(scores, "--kind", "roc", "-o", target)
    lines = target.read_text().splitlines()
    assert lines[:3] == ["threshold,fpr,tpr,tp,fp", "inf,0.0,0.0,0,0", f"7.0,0.0,{1 / 3!r},1,0"]
    assert len(lines) == 9


def test_ties_and_labels(run):
    tied = "1,0.5\n0,0.5\n1,0.5\n0,0.5\n"
    value = {}
    for ties in ("merge", "sample"):
        out = run("-", "--kind", "roc", "--ties", ties, "--format", "json", stdin=tied)[1]
        value[ties] = json.loads(out)["curves"][0]["auc"]
    assert value == {"merge": 0.5, "sample": 0.75}
    code, out, err = run("-", "--labels", "sign", "--format", "json", stdin=tied)
    assert (code, json.loads(out)["curves"][0]["negatives"]) == (0, 0)
    assert err == "bsdsbench: -: no negatives (labels read as sign)\n"
    code, out, err = run("-", "--kind", "roc", "--format", "json", stdin="1,1\n1,2\n")
    assert (code, json.loads(out)["curves"][0]["auc"]) == (0, None)
    # -1 among the labels: 0 is neither
    out = run("-", "--format", "json", stdin="1 3\n-1 2\n0 1\n")[1]
    row = json.loads(out)["curves"][0]
    assert (row["positives"], row["negatives"]) == (1, 1)
    out = run("-", "--labels", "binary", "--format", "json", stdin="3 3\n1 2\n0 1\n")[1]
    assert json.loads(out)["curves"][0]["positives"] == 2


def test_one_class_has_no_ap(run):
    code, out, err = run("-", "--format", "json", stdin="0,1\n0,2\n")
    assert (code, json.loads(out)["curves"][0]["ap"]) == (0, None)
    assert "no positives" in err


def test_totals_that_are_too_small_are_said(run, scores):
    code, _, err = run(scores, "--num-positives", 2)
    assert (code, err) == (0, f"bsdsbench: {scores}: num_positives 2: fewer than the 3 there are\n")


@pytest.mark.parametrize(
    ("args", "stdin", "line"),
    [
        (["missing.csv"], "", "missing.csv: cannot be opened (No such file or directory)"),
        (["-"], "", "-: no rows, expected a label and a score in each row"),
        (["-"], "1,2\n1,x\n", "-: line 2: 'x' is not a number"),
        (["-", "-o", "x.gif"], "1,2\n", "x.gif: suffix '.gif', expected "),
        (["-", "-", "-o", "x.csv"], "1,2\n", "-o FILE.csv: points of 2 files, expected one file"),
        (["-", "--prior", "2"], "1,2\n", "Invalid value for '--prior': 2.0 is not in the"),
        (["-"], "".join(f"{k / 30},{k}\n" for k in range(30)), "-: labels: 30 values"),
        (["-", "--scale", "log", "--plot", "fptp"], "1,2\n", "--plot, --scale: not with --kind pr"),
    ],
)
def test_bad_input_is_one_line_and_status_2(run, args, stdin, line):
    code, out, err = run(*args, stdin=stdin)
    assert (code, out) == (2, "")
    # after a note on a missing class, if any
    assert err.splitlines()[-1].startswith(f"bsdsbench: {line}")
