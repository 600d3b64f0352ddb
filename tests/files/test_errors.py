"""Every problem is one printable line, equal ones are said once, and near words are recognised."""

import pickle

from bsdsbench.files.errors import DataError, FileFormatError, grouped


def test_equal_faults_are_one_line_with_their_number_and_three_names():
    many = [f"maps/{i}.npy: values up to {i}.5, expected 0 .. 1" for i in range(2, 42)]
    few = [f"{i}.png: value {i}, expected 0 .. 1" for i in range(3)]
    other = ["x.png: 7x9, expected 40x52", "no such folder", *few]
    assert grouped([*many, *other, other[0]]) == [
        "40 files: values up to 2.5, expected 0 .. 1 (such as maps/2.npy, maps/3.npy, maps/4.npy)",
        *other,
    ]


def test_lines_stay_lines():
    error = DataError("a\nb\x1b[31m: 'c\xa0d\u3000e\u202e'")
    assert error.problems == ("a\\nb\\x1b[31m: 'c\\xa0d\\u3000e\\u202e'",)
    assert str(error) == error.problems[0]
    error = DataError("ignored", ["one\n", "tw\u202eo", "sur\udcff"])
    assert error.problems == ("one\\n", "tw\\u202eo", "sur\\udcff")
    assert str(error).splitlines() == list(error.problems)


def test_collecting_and_pickling_keep_every_line():
    joined = DataError.collect([FileFormatError("a"), DataError("", ["b", "c"])])
    assert joined.problems == ("a", "b", "c")
    again = pickle.loads(pickle.dumps(joined))
    assert (type(again), again.problems, str(again)) == (DataError, joined.problems, "a\nb\nc")
