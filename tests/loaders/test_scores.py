"""Labels and scores from text: separators, headers, limits; the line of each fault."""

import io
import sys

import numpy as np
import pytest

from bsdsbench.errors import FileFormatError, InputWarning
from bsdsbench.loaders.formats import scores as module
from bsdsbench.loaders.formats.scores import read_scores
from tests.helpers.runs import refused

LABELS, SCORES = [1.0, 0.0, 1.0], [0.5, 0.25, -2.0]


@pytest.fixture
def read(tmp_path):
    def call(text):
        data = text.encode() if isinstance(text, str) else text
        (tmp_path / "a.csv").write_bytes(data)
        return [v.tolist() for v in read_scores(tmp_path / "a.csv")[:2]]

    return call


@pytest.mark.parametrize("mark", [",", ";", "\t", " ", "  "])
@pytest.mark.parametrize("header", ["", "label{}score", "any{}thing"])
def test_two_columns_by_any_separator(read, mark, header):
    rows = [f"{y}{mark}{s}" for y, s in zip(LABELS, SCORES, strict=True)]
    head = [header.format(mark)] if header else []
    for text in ("\n".join([*head, *rows]), "\n \n" + "\r\n".join([*head, "  ", *rows, ""])):
        assert read(text) == [LABELS, SCORES]
    assert read(b"\xef\xbb\xbf" + "\n".join([*head, *rows]).encode()) == [LABELS, SCORES]


def test_names_of_both_columns_among_others(read):
    for label in ("label", "y_true"):
        assert read(f"x,score,{label.upper()} \n9,0.5,1\n9,0.25,0\n") == [[1, 0], [0.5, 0.25]]
    for score in ("score", "confidence"):
        assert read(f"x;label; {score.title()}\n9;1;0.5\n9;0;0.25\n") == [[1, 0], [0.5, 0.25]]
    for decision in ("prediction", "Predicted", "output"):  # beside a score, it is not read
        for score in ("score", "y_score", "probability"):
            text = f"{decision},label,{score}\n1,1,0.5\n0,0,0.25\n"
            assert read(text) == [[1, 0], [0.5, 0.25]]
    assert read('"1","0.5"\n"0","0.25"\n') == [[1, 0], [0.5, 0.25]]
    assert read('id,"score",label\n"y, z",1e-3,-1\n') == [[-1], [1e-3]]
    assert read("TRUE 0.5\n false -inf\n") == [[1, 0], [0.5, -np.inf]]
    for comments in ("", "# of a net\n\n# 2,3 samples\n"):  # the header is that of numpy.savetxt
        assert read(f"{comments}# score,label\n0.5,1\n0.25,0\n") == [[1, 0], [0.5, 0.25]]
        assert read(f"{comments}1 0.5\n0 0.25\n") == [[1, 0], [0.5, 0.25]]
    refused("line 3: 'x'", read, "# of a net\n1,2\n1,x\n", error=FileFormatError)
    assert read("# x, y of the target class\n1,2\n# fold 2\n0,3\n# end\n") == [[1, 0], [2, 3]]
    assert read("# class 3 score\nlabel x score\n1 7 2\n0 7 3\n# end it\n") == [[1, 0], [2, 3]]
    assert read("id,label,score\n#1,1,2\n#2,0,3\n") == [[1, 0], [2, 3]]
    assert read("# score label\n# of fold 2\n0 1\n1 0\n") == [[1, 0], [0, 1]]
    for header, rows in (("y,p", "1,.5\n0,.25\n"), ("p,label", ".5,1\n.25,0\n")):
        assert read(f"{header}\n{rows}") == read(f"{header.replace('p', 'score')}\n{rows}")


def test_what_spreadsheets_and_shells_write(read):
    rows = "label;score\nyes;0,5\nNo;0,25\npositive;-2,0\n"
    assert read(rows) == [LABELS, SCORES]
    assert read(rows.partition("\n")[2].replace(";", "\t")) == [LABELS, SCORES]
    assert read(rows.encode("utf-16")) == read("sep=;\r\n" + rows) == [LABELS, SCORES]
    # commas between thousands, or both marks: not decimal
    for cell in ("1,234", "1.234,5"):
        refused(f"line 2: '{cell}'", read, f"label;score\n1;{cell}\n", error=FileFormatError)
    refused("expected 1234, or 1.234", read, "label;score\n1;1,234\n")


def test_points_between_thousands_or_before_decimals(read):
    for mark in ",;":
        rows = f"label{mark}score\n1{mark}1.226\n0{mark}226\n"
        words = r"1\.226 and 226: 1226, or 1\.226.*write whole numbers without points"
        refused(words, read, rows, error=FileFormatError)
        for cells in (
            ["226", "1.2"],
            ["226.000"],
            ["12"],
            ["226", "0.226"],
            ["226", "2026"],
            ["100"],
        ):
            labels, _ = read("".join(f"1{mark}{cell}\n" for cell in ["1.226", *cells]))
            assert len(labels) == len(cells) + 1


def test_a_header_of_numbers_and_weights_are_said(read):
    refused("line 1: 0,1, .*or the header of pandas", read, "0,1\n1,0.5\n0,0.25\n")
    assert read("0,1\n1,2\n") == [[0, 1], [1, 2]]
    with pytest.warns(InputWarning, match="'sample_weight' is not used: every row counts once"):
        assert read("y_true,y_prob,sample_weight\n1,0.5,3\n") == [[1], [0.5]]
    assert read("label,score,weight\n1,2,1.0\n0,3,1.0\n") == [[1, 0], [2, 3]]
    with pytest.warns(InputWarning, match="'Model' is not used: the rows of x, y are pooled"):
        assert read("Model,label,score\nx,1,2\ny,1,3\nx,0,1\n") == [[1, 1, 0], [2, 3, 1]]
    with pytest.warns(
        InputWarning, match="'split' is not used: the rows of test, train are pooled"
    ):
        assert read("split,label,score\ntrain,1,2\ntest,1,3\n") == [[1, 1], [2, 3]]
    assert read("Model,label,score\nx,1,2\nx,1,3\n") == [[1, 1], [2, 3]]
    assert read("run,label,score\n1,1,2\n2,1,3\n3,0,1\n") == [[1, 1, 0], [2, 3, 1]]  # of rows
    assert read("# set A\n# label score\n1 2\n1 3\n") == [[1, 1], [2, 3]]  # by numpy.savetxt
    assert read("truth,model\n1,0.5\n0,0.2\n") == [[1, 0], [0.5, 0.2]]  # by their order


def test_ids_are_distinct(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("name,patient,image,label,score\nnet,p1,x,1,0.5\nnet,p2,y,0,0.25\n")
    sample = read_scores(path, cluster="patient")
    assert (sample.ids, sample.clusters) == (("x", "y"), ("p1", "p2"))
    path.write_text("image,label,score\ny,0,0.1\nx,1,0.9\n")
    ordered = read_scores(path).in_order_of(sample)
    assert (ordered.ids, ordered.scores.tolist()) == (("x", "y"), [0.9, 0.1])
    path.write_text("image,label,score\nx,0,0.1\nx,1,0.9\n")
    assert read_scores(path).ids is None
    path.write_text("method,label,score\nx,0,0.1\ny,1,0.9\n")
    assert read_scores(path, cluster="method").clusters == ("x", "y")  # used: no warning
    with pytest.warns(InputWarning, match="'method' is not used"):
        assert read_scores(path).ids is None  # the names of methods are no ids


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("label,id\n1,2\n", "label, id"),
        ("label,y,score\n1,2,3\n", r"label, y, score.*\(keep one of label, y: the truth\)"),
        ("y_true,y_pred,y_prob\n1,1,0.7\n", r"y_pred, y_prob: the score of the positive class\)"),
        ("label,prediction,confidence\n1,0,0.7\n", "keep one of prediction, confidence: the score"),
        ("a\n1\n", "columns a,"),
        ("1,x\n1,2\n", "line 1: 'x'"),
        (" \n\n", "no rows"),
        ("label,score\n\n", "a header and no rows"),
        ("1,2\nnan,2\n1,nan\n1,2\n", "2 rows with NaN"),
        ("1,2\n\n1,x\n", "line 3: 'x'"),
        ("x,label,score\n1,2,3\n1,2\n", "line 3: 2 columns, expected 3"),
        ("label,score\n1,0.5\n1,0,5\n", "line 3: 3 columns, expected 2"),  # a decimal comma
        (b'label,"' + b"x" * 200_000 + b'"\n1,2\n', "field larger than field limit"),
        (b"1,2\n1,2\0\n", "is not a number|.*line contains NUL"),
        (b"1,\xff\n", "not UTF-8"),
    ],
)
def test_the_line_of_each_fault(read, text, words):
    refused(rf"a\.csv: {words}|a\.csv: .*{words}", read, text, error=FileFormatError)


@pytest.mark.parametrize("binary", [False, True])
def test_standard_input_is_bounded(monkeypatch, tmp_path, binary):
    text = "1,0.5\n0,0.25\n"
    (tmp_path / "a.csv").write_text(text)
    for source in ("-", tmp_path / "a.csv"):
        for most in (len(text), len(text) - 1):
            raw = io.BytesIO(text.encode())
            monkeypatch.setattr(
                sys, "stdin", io.TextIOWrapper(raw) if binary else io.StringIO(text)
            )
            monkeypatch.setattr(module, "_MAX_BYTES", most)
            if most < len(text):
                refused(f"({most} bytes|at most {most})", read_scores, source)
                continue
            labels, values = read_scores(source)[:2]
            assert (labels.tolist(), values.tolist()) == ([1, 0], [0.5, 0.25])
            assert labels.dtype == values.dtype == np.float64


def test_words_as_labels_name_those_that_are_read(tmp_path):
    path = tmp_path / "words.csv"
    path.write_text("label,score\ncrack,0.5\n")
    refused("line 2: 'crack' .*true and false", read_scores, path)
    path.write_text("label,score\n1,0.5\n")
    refused("columns label, score, expected one called ''", read_scores, path, cluster="")
