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
    _, out, _ = run(scores, "--kind", "roc", "--format", "json", "--areas")
    (row,) = json.loads(out)["curves"]
    assert (row["auc"], row["eer_threshold"]) == (8 / 12, 4)
    areas = {r["number"]: r["value_0"] for r in json.loads(out)["areas"]}
    assert areas["VLFeat ap"] == pytest.approx((1 + 2 / 3 + 1 / 2) / 3)
    # scores beyond 1: the BSDS area does not exist, and JSON has no NaN
    assert areas["BSDS area, 99 thresholds"] is None


def test_two_files_are_compared(run, scores, tmp_path):
    """As `curves.delong`; the same stem in two folders; labels in another order are not."""
    other, turned = tmp_path / "b" / "scores.csv", tmp_path / "turned.csv"
    other.parent.mkdir()
    other.write_text("".join(f"{y},{(s * 3) % 7}\n" for y, s in ROWS))
    turned.write_text("".join(f"{y},{s}\n" for y, s in ROWS[::-1]))
    _, out, err = run(scores, other, turned, "--format", "json", "--quiet")
    found = json.loads(out)
    y, s = map(np.array, zip(*ROWS, strict=True))
    expected = curves.delong(y, s, (s * 3) % 7)
    (row,) = found["differences"]
    assert (row["a"], row["b"]) == (str(scores), str(other))
    told = [row[key] for key in ("difference", "difference_low", "difference_high", "p")]
    assert told == list(expected[2:6])
    areas = {row["name"]: row["auc_low"] for row in found["roc_areas"]}
    width = 1.959963984540054 * expected.covariance[1, 1] ** 0.5
    assert areas[str(other)] == pytest.approx(max(expected.other - width, 0))
    assert err.count("not compared") == 2
    _, out, _ = run(scores, other, "--format", "csv")
    assert out.splitlines()[0] == "name,positives,negatives,points,ap,auc,ap_11,chance"
    assert "no intervals" in run("-", "--kind", "roc", stdin="1,2\n1,3\n")[2]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pr", "roc", "det"])
def test_several_files_one_picture(run, scores, tmp_path, kind):
    other, picture = tmp_path / "other.csv", tmp_path / "a.svg"
    other.write_text(scores.read_text())
    code, out, err = run(scores, other, "--kind", kind, "-o", picture)
    assert (code, err) == (0, f"bsdsbench: wrote {picture}\n")
    assert "other" in out
    assert picture.read_bytes().startswith(b"<?xml")


def test_points_of_the_curve(run, scores, tmp_path):
    target = tmp_path / "points.csv"
    run(scores, "--kind", "roc", "-o", target)
    lines = target.read_text().splitlines()
    assert lines[:3] == ["threshold,fpr,tpr,tp,fp", "inf,0.0,0.0,0,0", f"7.0,0.0,{1 / 3!r},1,0"]
    assert len(lines) == 9


@pytest.mark.parametrize(
    ("words", "stdin", "expected", "said"),
    [
        (["--kind", "roc"], "1,0.5\n0,0.5\n1,0.5\n0,0.5\n", {"auc": 0.5}, ""),
        (["--kind", "roc", "--ties", "sample"], "1,1\n0,1\n1,1\n0,1\n", {"auc": 0.75}, ""),
        (
            ["--labels", "sign"],
            "1,2\n0,1\n",
            {"negatives": 0},
            "no negatives (labels read as sign)",
        ),
        ([], "1 3\n-1 2\n0 1\n", {"positives": 1, "negatives": 1}, ""),  # 0 is neither
        (["--labels", "binary"], "3 3\n1 2\n0 1\n", {"positives": 2}, ""),
        ([], "0,1\n0,2\n", {"ap": None}, "no positives"),
    ],
)
def test_ties_labels_and_totals(run, words, stdin, expected, said):
    code, out, err = run("-", *words, "--format", "json", stdin=stdin)
    (row,) = json.loads(out)["curves"]
    assert code == 0
    assert row | expected == row
    assert said in err


@pytest.mark.parametrize(
    ("args", "stdin", "line"),
    [
        (["missing.csv"], "", "missing.csv: cannot be opened (No such file or directory)"),
        (["-"], "", "-: no rows, expected a label and a score in each row"),
        (["-"], "1,2\n1,x\n", "-: line 2: 'x' is not a number"),
        (["-", "-o", "x.gif"], "1,2\n", "x.gif: suffix '.gif', expected "),
        (["-", "-", "-o", "x.csv"], "1,2\n", "-o FILE.csv: points of 2 files, expected one file"),
        (["-"], "".join(f"{k / 30},{k}\n" for k in range(30)), "-: labels: 30 values"),
    ],
)
def test_bad_input_is_one_line_and_status_2(run, args, stdin, line):
    code, out, err = run(*args, stdin=stdin)
    assert (code, out) == (2, "")
    # after a note on a missing class, if any
    assert err.splitlines()[-1].startswith(f"bsdsbench: {line}")
