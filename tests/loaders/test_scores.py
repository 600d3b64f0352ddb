"""Labels and scores from text: separators, headers, limits; the line of each fault."""

import io
import sys

import numpy as np
import pytest

from bsdsbench.loaders import scores as module
from bsdsbench.loaders.scores import read_scores
from tests.helpers.runs import refused

LABELS, SCORES = [1.0, 0.0, 1.0], [0.5, 0.25, -2.0]


@pytest.fixture
def read(tmp_path):
    def call(text):
        data = text.encode() if isinstance(text, str) else text
        (tmp_path / "a.csv").write_bytes(data)
        return [v.tolist() for v in read_scores(tmp_path / "a.csv")]

    return call


@pytest.mark.parametrize("mark", [",", ";", "\t", " ", "  "])
@pytest.mark.parametrize("header", ["", "label{}score", "any{}thing"])
def test_two_columns_by_any_separator(read, mark, header):
    rows = [f"{y}{mark}{s}" for y, s in zip(LABELS, SCORES, strict=True)]
    head = [header.format(mark)] if header else []
    for text in ("\n".join([*head, *rows]), "\n \n" + "\r\n".join([*head, "  ", *rows, ""])):
        assert read(text) == [LABELS, SCORES]
    assert read(b"\xef\xbb\xbf" + "\n".join([*head, *rows]).encode()) == [LABELS, SCORES]


@pytest.mark.parametrize("label", ["label", "labels", "y", "y_true", "target", "class", "gt"])
def test_names_of_the_label(read, label):
    assert read(f"x,score,{label.upper()} \n9,0.5,1\n9,0.25,0\n") == [[1, 0], [0.5, 0.25]]


@pytest.mark.parametrize(
    "score", ["score", "scores", "y_score", "y_pred", "pred", "prob", "probability", "confidence"]
)
def test_names_of_the_score(read, score):
    assert read(f"x;label; {score.title()}\n9;1;0.5\n9;0;0.25\n") == [[1, 0], [0.5, 0.25]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("label,other\n1,2\n", "columns label, other, expected one called label and one called"),
        ("label,score,pred\n1,2,3\n", "columns label, score, pred, expected one called label and"),
        ("label,y,score\n1,2,3\n", "columns label, y, score, expected one called label and one"),
        ("a,b,c\n1,2,3\n", "columns a, b, c, expected one called label and one called score"),
        ("a\n1\n", "columns a, expected one called label and one called score"),
        ("1,2,3\n", "3 columns and no header, expected a label and a score in each row"),
        ("1\n", "1 columns and no header, expected a label and a score in each row"),
        ("1,x\n1,2\n", "line 1: 'x' is not a number, expected a label and a score"),
        ("x,1\n1,2\n", "line 1: 'x' is not a number, expected a label and a score"),
        (" \n\n", "no rows, expected a label and a score in each row"),
        ("label,score\n\n", "a header and no rows, expected a label and a score in each row"),
        ("1,2\nnan,2\n1,nan\n1,2\n", "2 rows with NaN, expected a label and a score in each row"),
        ("1,2\n\n1,x\n", "line 3: 'x' is not a number, expected a label and a score in each row"),
        ("label,score\n1,2\ny,2\n", "line 3: 'y' is not a number, expected a label and a score"),
        ("x,label,score\n1,2,3\n1,2\n", "line 3: 2 columns, expected 3"),
        ("x,label,score\n1,2\n", "line 2: 2 columns, expected 3"),
        ("label,score\n1,0.5\n1,0,5\n", "line 3: 3 columns, expected 2"),  # a decimal comma
        ("label score\n1 0.5 x\n", "line 2: 3 columns, expected 2"),
        ("label,x,score\n1,2,0.5\n\n0,3\n", "line 4: 2 columns, expected 3"),
        ("1,2\n1\n", "line 2: 1 columns, expected 2"),
        (f"1,2\n1,{'x' * 50}\n", f"line 2: '{'x' * 40}' is not a number"),
        (b"1,\xff\n", "not UTF-8 text, expected a label and a score in each row"),
        (b"1,2\n" + b"1,2\n" * 9000 + b"1,\xff\n", "not UTF-8 text, expected a label and a score"),
    ],
)
def test_the_line_of_each_fault(read, text, words):
    refused(rf"a\.csv: {words}", read, text)


def test_quotes_and_comments_are_text_like_other(read):
    assert read('"1","0.5"\n"0","0.25"\n') == [[1, 0], [0.5, 0.25]]
    refused("line 2: '#1' is not a number", read, "1,2\n#1,2\n")


@pytest.mark.parametrize("binary", [False, True])
def test_standard_input_is_bounded(monkeypatch, tmp_path, binary):
    text = "1,0.5\n0,0.25\n"

    def stdin():
        return io.TextIOWrapper(io.BytesIO(text.encode())) if binary else io.StringIO(text)

    for source in ("-", tmp_path / "a.csv"):
        (tmp_path / "a.csv").write_text(text)
        monkeypatch.setattr(module, "MAX_BYTES", len(text))
        monkeypatch.setattr(sys, "stdin", stdin())
        labels, values = read_scores(source)
        assert (labels.tolist(), values.tolist()) == ([1, 0], [0.5, 0.25])
        assert labels.dtype == values.dtype == np.float64
        assert labels.flags.c_contiguous
        monkeypatch.setattr(module, "MAX_BYTES", len(text) - 1)
        monkeypatch.setattr(sys, "stdin", stdin())
        size = len(text) - 1
        words = f"^-: more than {size} bytes, expected fewer$" if source == "-" else "at most 12$"
        refused(words, read_scores, source)
