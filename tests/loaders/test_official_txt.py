"""The official txt files: exact text, and the ways others write them."""

import hashlib
from types import SimpleNamespace

import numpy as np
import pytest

from bsdsbench.errors import FileFormatError, InputWarning
from bsdsbench.loaders.formats.official_txt import (
    _read_ev1,
    _read_rows,
    format_boundary_tables,
    format_rows,
    read_run_folder,
    safe_name,
)
from tests.helpers.runs import refused

EV1 = [[0.25, 9, 12, 30, 31], [0.5, 5, 12, 7, 8], [0.75, 0, 12, 0, 0]]
FIELDS = ("thresholds", "matched_gt", "total_gt", "matched_pred", "total_pred")


def as_rows(counts):
    return np.column_stack([counts[name] for name in FIELDS]).tolist()


def test_rows_are_ten_wide_with_six_digits():
    text = format_rows([[1 / 6, 0.64611, 1], [1234567, 1e-9, 3]])
    assert text == "  0.166667    0.64611          1\n1.23457e+06      1e-09          3\n"
    assert format_rows([]) == ""


def test_ev1_round_trip(tmp_path):
    path = tmp_path / "7_ev1.txt"
    path.write_text(format_rows(EV1[::-1]))
    assert path.read_text().endswith("      0.25          9         12         30         31\n")
    assert as_rows(_read_ev1(path)) == EV1


@pytest.mark.parametrize(("n", "images"), [(31, 1), (31, 8), (1_000_000, 1), (1_234_567, 8)])
def test_ev1_is_the_same_rows_for_any_count(n, images):
    t, counts = np.array([0.25, 0.5]), np.array([[[9, 12, 30, n], [5, 12, 7, 8]]] * images)
    point = {"threshold": 0.5, "recall": 1, "precision": 1, "f": 1}
    curve = SimpleNamespace(thresholds=t, recall=t, precision=t, f=t)
    score = {"ods": point, "ois": point, "ap": 1, "curve": curve}
    *_, (name, text) = format_boundary_tables(score, "abcdefgh"[:images], t, counts, "interpolated")
    assert name == f"per_image/{'abcdefgh'[images - 1]}_ev1.txt"
    assert text == format_rows(np.column_stack([t, counts[0]]))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0.5 1 2 3\n", "line 1 has 4 numbers"),
        ("0.5 1 2 3 4\n0.6 1 2 x 4\n", "line 2 "),
        *((f"0.5 {wrong} 2 3 4\n", "invalid counts") for wrong in ("1.5", "-1", "nan", "inf")),
        ("nan 1 2 3 4\n", "invalid counts"),
        (f"0.5 1 {2**53 + 2} 3 4\n", "invalid counts"),
        ("0.5 3 4 1 2\n0.9 1 1 1 2\n", "sumR changes with the threshold and sumP does not"),
        ("0.5 3 2 3 4\n", "more matched than there are"),
        ("0.5 1 2 5 4\n0.6 1 2 3 4\n", "more matched than there are"),
        ("# only words\n", "has no rows"),
    ],
)
def test_damaged_ev1(tmp_path, text, words):
    (tmp_path / "a_ev1.txt").write_text(text)
    refused(rf"a_ev1\.txt: .*{words}", _read_ev1, tmp_path / "a_ev1.txt", error=FileFormatError)


def test_rows_as_others_write_them(tmp_path):
    (tmp_path / "a.txt").write_text(
        "% thresh R P F extra\n0.500000,0.250000, 0.75,1,9\n\n1 2 3 4\n"
    )
    np.testing.assert_array_equal(
        _read_rows(tmp_path / "a.txt", 4), [[0.5, 0.25, 0.75, 1], [1, 2, 3, 4]]
    )


def test_run_folder_of_another_program(tmp_path):
    """Descending thresholds, %f, an extra column, a dropped row; counts beside the tables."""
    (tmp_path / "eval_bdry.txt").write_text("0.5 0.6 0.7 0.646 0.6 0.7 0.65 0.61\n")
    (tmp_path / "eval_bdry_thr.txt").write_text("0.900000 0.1 0.9 0.2 7\n0.100000 0.8 0.3 0.4 7\n")
    (tmp_path / "per_image").mkdir(exist_ok=True)
    (tmp_path / "per_image" / "a_ev1.txt").write_text(format_rows(EV1))
    (tmp_path / "b_ev1.txt").write_text(format_rows(EV1))
    found = read_run_folder(tmp_path)
    assert set(found) == {"eval_bdry.txt", "eval_bdry_thr.txt", "ev1"}
    np.testing.assert_array_equal(found["eval_bdry_thr.txt"][:, 0], [0.1, 0.9])
    np.testing.assert_array_equal(found["eval_bdry_thr.txt"][:, 1], [0.8, 0.1])
    assert found["eval_bdry_thr.txt"].shape == (2, 4)
    assert sorted(found["ev1"]) == ["a", "b"]
    assert as_rows(found["ev1"]["a"]) == EV1


@pytest.mark.parametrize("mark", ["\t", ";", "   "])
def test_decimal_commas(tmp_path, mark):
    """As a spreadsheet saves the table in many countries."""
    table = np.array([[0.25, 0.5, 1, 0.667], [0.5, 0.25, 1, 0.4]])
    text = "\n".join(mark.join(f"{number:g}" for number in row) for row in table)
    for written in (text, text.replace(".", ",")):
        (tmp_path / "eval_bdry_thr.txt").write_text(written)
        np.testing.assert_array_equal(read_run_folder(tmp_path)["eval_bdry_thr.txt"], table)


def test_percent_nan_and_exchanged_columns(tmp_path):
    path = tmp_path / "eval_bdry_thr.txt"
    path.write_text("0.1 80 30 43.6\n0.9 10 90 18\n")
    refused("eval_bdry_thr.txt: values up to 90, .* by 100", read_run_folder, tmp_path)
    path.write_text("0.1 nan 0.3 0.4\n0.9 0.1 0.9 0.2\n")
    refused("eval_bdry_thr.txt: NaN", read_run_folder, tmp_path)
    path.write_text("0.1 0.3 0.8 0.436\n0.9 0.9 0.1 0.18\n")
    with pytest.warns(InputWarning, match="are R and P exchanged"):
        read_run_folder(tmp_path)
    path.write_text("1 0.3 0.8 0.436\n20 0.9 0.1 0.18\n")  # numbers of regions
    read_run_folder(tmp_path)


def test_run_folder_without_results(tmp_path):
    with pytest.raises(
        FileFormatError, match=r"not the folder of a run, expected .*eval_bdry\.txt"
    ):
        read_run_folder(tmp_path)


def test_names_that_are_safe_on_every_system():
    assert safe_name("2018") == "2018"
    assert safe_name("a/b") == "a%2Fb"
    assert safe_name("a%2Fb") == "a%252Fb"
    assert safe_name("<b>\"'\\") == "%3Cb%3E%22'%5C"
    long = [safe_name("\u00e9" * 300 + end) for end in "ab"]
    assert long[0] != long[1]
    assert all(len(name.encode()) <= 200 for name in long)
    mark = hashlib.blake2b(b"x" * 201, digest_size=8).hexdigest()
    assert safe_name("x" * 201) == "x" * 150 + "-" + mark


def test_counts_of_one_image_in_two_folders(tmp_path):
    """Equal copies are read once; of other counts none is chosen in silence."""
    for place in ("per_image", "nms-eval"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "a_ev1.txt").write_text("0.5 1 2 3 4\n")
    assert list(read_run_folder(tmp_path)["ev1"]) == ["a"]
    (tmp_path / "nms-eval" / "a_ev1.txt").write_text("0.5 2 2 4 4\n")
    with pytest.raises(FileFormatError, match="counts differ from those"):
        read_run_folder(tmp_path)
