"""Every problem is one printable line, equal ones are said once, and near words are recognised."""

import pickle

from bsdsbench.errors import (
    DataError,
    FileFormatError,
    InputWarning,
    Problem,
    Setting,
    merge_similar_problems,
    with_file_of_side,
)


def test_equal_faults_are_one_line_with_their_number_and_three_names():
    many = [f"maps/{i}.npy: values up to {i}.5, expected 0 .. 1" for i in range(2, 42)]
    few = [f"{i}.png: value {i}, expected 0 .. 1" for i in range(3)]
    other = ["x.png: 7x9, expected 40x52", "no such folder", *few]
    problems = DataError(problems=[*many, *other, other[0]]).problems
    assert list(map(str, merge_similar_problems(problems))) == [
        "40 files (maps/2.npy, maps/3.npy, maps/4.npy, ...): values up to 2.5, expected 0 .. 1",
        *other,
    ]
    (merged, *_) = merge_similar_problems(problems)
    assert merged.names == tuple(f"maps/{i}.npy" for i in range(2, 42))


def test_options_are_grouped_and_written_once_for_each_language():
    fix = Setting("pred_kind", "labels", "for label maps"), "argmax first"
    faults = [Problem(f"nms=True/{k}.png", f"dtype int{k}", "a soft map", fix) for k in range(5)]
    (one,) = merge_similar_problems(faults)
    python = "dtype int0, expected a soft map (pred_kind='labels' for label maps; argmax first)"
    files = ", ".join(f"nms=True/{k}.png" for k in range(5))
    assert str(one) == f"5 files ({files}): {python}"
    line = one.line(lambda setting: f"--{setting.name}")
    assert line.endswith("(--pred_kind for label maps; argmax first)")
    assert "nms=True/0.png" in line
    warning = InputWarning("maps are dark", fix=Setting("invert"))
    assert (str(warning), warning.problem.fix) == (
        "maps are dark (invert=True)",
        (Setting("invert"),),
    )


def test_a_problem_becomes_one_of_a_file_once():
    for given in ("is empty", "a.png: is empty"):
        problem = DataError(given).problems[0].with_file("a.png")
        assert (problem.file, problem.has) == ("a.png", "is empty")
        assert problem.with_file("b.png") is problem
    assert str(DataError("cell 2 of a.png is empty").problems[0].with_file("a.png")).startswith(
        "cell 2"
    )


def test_lines_stay_lines():
    error = DataError("a\nb\x1b[31m: 'c\xa0d\u3000e\u202e'")
    assert tuple(map(str, error.problems)) == ("a\\nb\\x1b[31m: 'c\\xa0d\\u3000e\\u202e'",)
    assert str(error) == str(error.problems[0])
    error = DataError("ignored", ["one\n", "tw\u202eo", "sur\udcff"])
    assert tuple(map(str, error.problems)) == ("one\\n", "tw\\u202eo", "sur\\udcff")
    assert str(error).splitlines() == list(map(str, error.problems))


def test_collecting_and_pickling_keep_every_line():
    joined = DataError.collect([FileFormatError("a"), DataError("", ["b", "c"])])
    assert tuple(map(str, joined.problems)) == ("a", "b", "c")
    again = pickle.loads(pickle.dumps(joined))
    assert (type(again), again.problems, str(again)) == (DataError, joined.problems, "a\nb\nc")


def test_each_problem_gets_the_file_of_its_side():
    error = DataError(problems=["prediction: one", "ground truth: two", "ucm2: three", "four"])
    named = with_file_of_side(error, "p.png", "g.png")
    assert [str(problem) for problem in named.problems] == [
        "p.png: one",
        "g.png: two",
        "p.png: ucm2: three",
        "four",
    ]
    other = DataError("four")
    assert with_file_of_side(other, "p.png", "g.png") is other
