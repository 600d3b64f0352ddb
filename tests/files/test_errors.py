"""Faults said once: equal ones are grouped, and a word that is nearly right is recognised."""

from bsdsbench.files.errors import DataError, did_you_mean, grouped


def test_equal_faults_are_one_line_with_their_number_and_three_names():
    many = [f"maps/{i}.npy: values up to {i}.5, expected 0 .. 1" for i in range(2, 42)]
    other = ["x.png: 7x9, expected 40x52", "no such folder"]
    assert grouped([*many, *other]) == [
        "40 files: values up to 2.5, expected 0 .. 1 (such as maps/2.npy, maps/3.npy, maps/4.npy)",
        *other,
    ]


def test_few_faults_keep_a_line_each():
    few = [f"{i}.png: value {i}, expected 0 .. 1" for i in range(3)]
    assert grouped(few) == few


def test_did_you_mean():
    assert did_you_mean("evalute", ["evaluate", "merge"]) == "; did you mean 'evaluate'?"
    assert did_you_mean("xyz", ["evaluate"]) == ""


def test_the_same_line_is_said_once():
    assert grouped(["metric 'x': has no human form"] * 9) == ["metric 'x': has no human form"]


def test_lines_are_printable_whatever_they_quote():
    found = DataError("f.mat: has 'a\xa0b\u3000c\x1b[31m\u202e', expected one")
    assert str(found) == "f.mat: has 'a\\xa0b\\u3000c\\x1b[31m\\u202e', expected one"
