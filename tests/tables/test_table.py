"""The table model: what is best, what is undefined, what is refused."""

import math

import pytest

from bsdsbench.files.errors import visible
from bsdsbench.tables.table import Estimate, Field, Table, arrow
from tests.helpers.runs import refused

METHOD = Field("method", "Method")
UP = Field("f", "F", format=".3f", higher_is_better=True)
DOWN = Field("voi", "VOI", format=".2f", higher_is_better=False)
FLAT = Field("t", "Threshold", format=".2f")


def test_the_best_follows_the_direction_and_skips_the_undefined():
    rows = [["a", 0.5, 1.5, 0.1], ["b", 0.7, 1.2, 0.2], ["c", None, math.nan, None]]
    table = Table("x", "X", [METHOD, UP, DOWN, FLAT], rows)
    best = [[table.is_best(r, c) for c in range(4)] for r in range(3)]
    assert best == [[False] * 4, [False, True, True, False], [False] * 4]
    assert table.texts(2) == ["c", "-", "-", "-"]


def test_one_number_alone_is_not_a_best():
    table = Table("x", "X", [METHOD, UP], [["a", 0.5], ["b", None]])
    assert not table.is_best(0, 1)


def test_equal_bests_are_all_best():
    table = Table("x", "X", [METHOD, UP], [["a", 0.5], ["b", Estimate(0.5, 0.4, 0.6)], ["c", 0.1]])
    assert [table.is_best(r, 1) for r in range(3)] == [True, True, False]


def test_intervals_are_printed_in_the_columns_format():
    table = Table("x", "X", [METHOD, UP], [["a", Estimate(0.51234, 0.4, 0.6, "b")]])
    assert table.text(0, 1) == "0.512 [0.400, 0.600]"
    assert table.has_intervals(1)
    assert table.has_marks(1)


@pytest.mark.parametrize(
    ("p", "text"), [(1.0, "1.0000"), (0.0001, "0.0001"), (0.00009, "<0.0001"), (None, "-")]
)
def test_p_values(p, text):
    assert Field("p", "p", format="p").text(p) == text


def test_arrows():
    assert [arrow(c) for c in (UP, DOWN, FLAT)] == ["↑", "↓", ""]


def test_refusals():
    refused("table x: 1 cells, expected 2", Table, "x", "X", [METHOD, UP], [["a"]])
    refused("each key once", Table, "x", "X", [UP, UP], [])
    refused(r"table x, f: '0\.5', expected a number", Table, "x", "X", [METHOD, UP], [["a", "0.5"]])
    refused(r"table x, method: 0\.5, expected text", Table, "x", "X", [METHOD, UP], [[0.5, 0.5]])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("HED (ours) µ中", "HED (ours) µ中"),
        ("a\x1b]0;x\x07", "a\\x1b]0;x\\x07"),
        ("a\u202egpj.exe", "a\\u202egpj.exe"),
        ("a\u200bb\ufeff", "a\\u200bb\\ufeff"),
        ("two\nlines\t\r\x85\u2028", "two\\nlines\\t\\r\\x85\\u2028"),
        ("no\xa0break\u3000wide", "no\xa0break\u3000wide"),
        ("\udc80", "\\udc80"),
    ],
)
def test_what_is_not_seen_is_written_as_an_escape(text, shown):
    assert visible(text) == shown
