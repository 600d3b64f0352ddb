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


I_AND_II = ["--points", "0,0;0,.5;.75,1;1,1", "--points", "0,0;.25,1;1,1", "--names", "I,II"]
TOTALS = ["--num-positives", "20", "--num-negatives", "2e3"]


@pytest.mark.slow
def test_points_in_both_spaces(run, tmp_path):
    """The slides: larger area in ROC space, smaller in PR space; the curves cross in both."""
    words = [*I_AND_II, *TOTALS, "--kind", "both", "--hull", "--crossings", "--areas"]
    picture = tmp_path / "a.svg"
    code, out, err = run(*words, "--format", "json", "-o", picture)
    assert (code, err) == (0, f"bsdsbench: wrote {picture}\n")
    found = json.loads(out)
    one, two = found["curves"]
    assert (one["roc_auc"], two["roc_auc"]) == (0.8125, 0.875)
    assert one["pr_area"] == pytest.approx(0.5198, abs=5e-5)
    assert two["pr_area"] == pytest.approx(1 / 26)
    assert (one["hull"], one["achievable"]) == (0.8125, pytest.approx(one["pr_area"]))
    where = {row["space"]: (row["relation"], row["where"]) for row in found["crossings"]}
    assert where == {
        "ROC": ("they cross", "FPR 0.15, TPR 0.6"),
        "PR": ("they cross", "recall 0.6, precision 0.03846"),
    }
    areas = {row["number"]: row["value_0"] for row in found["point_areas"]}
    assert areas["AUCCalculator"] == pytest.approx(0.5373, abs=5e-5)


def test_counts_and_the_points_between(run, tmp_path):
    target = tmp_path / "p.csv"
    code, out, _ = run("--counts", "5,5,15,95;10,30,10,70", "--between", "-o", target, "--quiet")
    rows = np.genfromtxt(target, delimiter=",", names=True)
    assert code == 0
    assert rows["precision"].round(3).tolist() == [0.5, 0.375, 0.318, 0.286, 0.265, 0.25]
    assert rows["recall"].tolist() == [0.25, 0.3, 0.35, 0.4, 0.45, 0.5]
    _, out, _ = run("--counts", "4,2,1,3", "--format", "json")
    (point,) = json.loads(out)["points"]
    assert (point["fpr"], point["tpr"], point["precision"]) == (0.4, 0.8, pytest.approx(2 / 3))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("vlfeat", ["--ties sample", "--labels sign", "--exclude-inf", "--scale log"]),
        ("prec_rec", ["--quantiles", "--kind both"]),
        ("sklearn", ["--ties merge", "--labels auto", "--include-inf", "--scale normal"]),
    ],
)
def test_a_convention_is_printed_and_what_is_given_comes_first(run, scores, name, words):
    signs = scores.read_text().replace("\n0,", "\n-1,")
    scores.write_text(signs)
    code, out, _ = run(scores, "--convention", name)
    assert (code, out.splitlines()[-1]) == (0, f"convention {name}: {' '.join(words)}")
    if name == "vlfeat":
        scores.write_text("label,score\n1,1\n-1,1\n1,1\n-1,-inf\n")
        _, out, _ = run(scores, "--kind", "roc", "--convention", name, "--format", "json")
        (row,) = json.loads(out)["curves"]
        assert (row["points"], row["auc"]) == (4, 0.25)  # never retrieved, and not extended
        _, out, _ = run(scores, "--convention", name, "--include-inf", "--format", "json")
        assert "--include-inf" in json.loads(out)["convention"]
        assert json.loads(out)["curves"][0]["points"] == 5


OPTIONS = {
    "--interpolate": {"interpolate": True},
    "--normalize-prior .25": {"normalize_prior": 0.25},
    "--num-positives 1e4": {"num_positives": 10_000},
    "--num-negatives 10000": {"num_negatives": 10_000},
    "--stable": {"stable": True},
    "--ties sample --include-inf": {"ties": "sample", "include_inf": True},
}


@pytest.mark.parametrize("words", OPTIONS)
def test_options_of_vl_pr_are_those_of_python(run, scores, tmp_path, words):
    target = tmp_path / "p.csv"
    _, out, _ = run(scores, *words.split(), "--format", "json", "-o", target)
    (row,), expected = (
        json.loads(out)["curves"],
        curves.pr(*zip(*ROWS, strict=True), **OPTIONS[words]),
    )
    assert [row[key] for key in ("ap", "auc", "ap_11", "chance", "positives", "negatives")] == [
        *(expected.ap, expected.auc, expected.ap_11, expected.chance),
        *(expected.positives, expected.negatives),
    ]
    points = np.genfromtxt(target, delimiter=",", names=True)
    assert points["precision"].tolist() == expected.precision.tolist()
    assert points["tp"].tolist() == expected.tp.tolist()


@pytest.mark.parametrize("words", ["tptn", "TNR over TPR", "tpfp", "fpfn"])
def test_variants_of_roc(run, scores, words):
    """Without --kind a variant is one of ROC."""
    from bsdsbench.curves.ranked import parse_variant

    _, out, _ = run(scores, "--plot", words, "--format", "json")
    (row,) = json.loads(out)["curves"]
    assert row["auc"] == curves.roc(*zip(*ROWS, strict=True), plot=parse_variant(words)).auc


def test_quantiles_shares_and_instances(run, tmp_path):
    """As prec_rec: positives of the instances in a row, and a column or a number of instances."""
    file, target = tmp_path / "rows.csv", tmp_path / "p.csv"
    file.write_text("score,target,n\n.9,3,3\n.6,1,4\n.4,.5,1\n.2,0,2\n")
    expected = curves.threshold_curve(
        [3, 1, 0.5, 0], [0.9, 0.6, 0.4, 0.2], instance_count=[3, 4, 1, 2]
    )
    code, out, _ = run(
        file, "--instance-count", "n", "--kind", "both", "-o", target, "--format", "json"
    )
    points = np.genfromtxt(target, delimiter=",", names=True)
    assert code == 0
    for name, column in (("threshold", "thresholds"), ("tpr", "tpr"), ("precision", "precision")):
        assert points[name].tolist() == getattr(expected, column).tolist()
    (row,) = json.loads(out)["curves"]
    assert (row["positives"], row["pr_area"]) == (4.5, pytest.approx(expected.area))
    strict = curves.threshold_curve(
        [3, 1, 0.5, 0], [0.9, 0.6, 0.4, 0.2], num_thresholds=3, strict=True
    )
    _, out, _ = run(file, "--strict", "--num-thresholds", "3", "--format", "json")
    assert json.loads(out)["curves"][0]["points"] == strict.thresholds.size
    assert run(file, "--instance-count", "2")[0] == 0
    code, _, err = run(file, "--instance-count", "weight")
    assert (code, "expected one called 'weight'" in err) == (2, True)


@pytest.mark.parametrize(
    ("words", "stdin"),
    [
        (["-", "--kind", "both", "--hull", "--steps"], "1,2\n1,1\n"),
        (["-", "--kind", "both", "--hull", "--steps"], "0,2\n0,1\n"),
        (["-", "--kind", "both", "--hull", "--between"], "1,.5\n0,.5\n1,.5\n"),
        (["-", "--kind", "both", "--hull", "--ties", "sample"], "1,-inf\n0,-inf\n1,2\n0,inf\n"),
        (["-", "--quantiles", "--areas", "--steps"], ".2,2\n.9,1\n.5,3\n"),
        (["-", "--kind", "det", "--stable", "--hull"], "1,2\n0,1\n1,0\n"),
        (["--points", ".5,.3;.2,.6;.6,.9", "--kind", "roc", "--hull"], ""),  # no curve
        (["--points", ".2,.6;.6,.9", "--kind", "det", "--hull", "--scale", "log"], ""),
        (["--counts", "0,0,5,5", "--kind", "both"], ""),
    ],
)
def test_odd_curves_are_shown_and_drawn(run, words, stdin, tmp_path):
    code, _, err = run(*words, "--format", "json", "-o", tmp_path / "a.svg", stdin=stdin)
    assert code == 0, err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "give SCORES.csv, --points or --counts"),
        (["--points", "0,.5,1"], "'0,.5,1': expected FPR,TPR"),
        (["--points", " ; "], "expected FPR,TPR"),
        (["--points", "0,nan"], "expected FPR,TPR"),
        (["--points", "0,1.5"], "tpr: values from 1.5"),
        (["--points", "0,.5"], "--num-positives ...; --num-negatives ..."),
        (["--points", "0,.5", "--kind", "roc", "--areas"], "--num-positives ...;"),
        (["--points", "0,.5", "--kind", "roc", "--between"], "--num-positives ...;"),
        (["--counts", "5,5,15,95;10,30,10,71"], "positives + negatives 20 + 100 and 20 + 101"),
        (["--counts", "5,5,15,95", "--num-negatives", "9"], "which have their totals"),
        (["--points", "0,.5", "--ties", "sample"], "--ties: cannot be combined with points alone"),
        (["-", "--quantiles", "--ties", "sample"], "--ties: cannot be combined with --quantiles"),
        (
            ["-", "--kind", "roc", "--interpolate"],
            "--interpolate: cannot be combined with --kind roc",
        ),
        (["-", "--num-negatives", "1.5"], "num_negatives: 1.5, expected a whole number from 0"),
        (["-", "--names", "a,b"], "--names: 2 names, expected 1"),
        (["-", "--plot", "up"], "plot 'up': expected fptp"),
    ],
)
def test_what_means_nothing_is_one_line(run, words, said):
    code, out, err = run(*words, stdin="1,2\n0,1\n")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err


@pytest.mark.parametrize("kind", ["pr", "roc", "both"])
def test_a_class_that_is_missing_is_warned_of_once(run, kind):
    code, _, err = run("-", "--kind", kind, "--areas", stdin="label,score\n1,.2\n1,.5\n1,.7\n")
    assert (code, err.count("no negatives (labels read as binary)")) == (0, 1)


@pytest.mark.parametrize(("options", "noted"), [((), False), (("--exclude-inf",), True)])
def test_areas_that_count_other_rows_than_the_curve_say_so(run, tmp_path, options, noted):
    """Of scores of -inf: DeLong's area is of all rows, with and without `--exclude-inf`."""
    path = tmp_path / "scores.csv"
    path.write_text("label,score\n1,3\n0,2\n1,1\n0,-inf\n1,-inf\n", "utf-8")
    shown = " ".join(map(str, run(path, "--kind", "roc", *options)))
    assert ("Of all rows, -inf as the smallest score" in shown) == noted


def test_an_input_is_not_overwritten(run, scores):
    before = scores.read_bytes()
    code, _, err = run(scores, "-o", scores.parent / "." / scores.name)
    assert (code, scores.read_bytes()) == (2, before)
    assert "scores.csv: is one of the inputs, expected another file" in err


def test_rows_are_paired_by_their_ids(run, tmp_path):
    """Equal labels in the same order are not the same samples."""
    rows = [f"{k},{k % 2},{k * 37 % 11}" for k in range(40)]
    mixed = [row for pair in zip(rows[::2][::-1], rows[1::2][::-1], strict=True) for row in pair]
    others = [f"x{row}" for row in rows]
    for name, order in {"a": rows, "b": mixed, "c": rows[::-1], "d": others}.items():
        (tmp_path / name).write_text("\n".join(["id,label,score", *order]))
    for other in "bc":
        code, out, _ = run(tmp_path / "a", tmp_path / other, "--kind", "roc", "--format", "json")
        (difference,) = json.loads(out)["differences"]
        assert (code, difference["difference_low"], difference["difference_high"]) == (0, 0, 0)
    assert "a, d: other ids" in run(tmp_path / "a", tmp_path / "d", "--kind", "roc")[2]
