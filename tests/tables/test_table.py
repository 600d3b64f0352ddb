"""The table model: what is best, what is undefined, what is chosen."""

import math

import numpy as np
import pytest

from bsdsbench.results.score_names import select
from bsdsbench.tables.table import Estimate, Field, Note, Table, to_text
from tests.helpers.runs import refused

METHOD = Field("method", "Method")
UP = Field("f", "F", format=".3f", higher_is_better=True)
DOWN = Field("voi", "VOI", format=".2f", higher_is_better=False)
FLAT = Field("t", "Threshold", format=".2f")


@pytest.mark.parametrize(
    ("column", "cells", "best"),
    [
        (UP, [0.5, 0.7, None, math.nan], [1]),
        (DOWN, [1.5, 1.2, math.nan, None], [1]),
        (FLAT, [0.1, 0.2], []),
        (UP, [0.5, None], []),  # one number alone is not a best
        (UP, [0.5, Estimate(0.5, 0.4, 0.6), 0.1], [0, 1]),
        (UP, [0.50004, 0.5, 0.4994], [0, 1]),  # both are printed as 0.500
        (UP, [0.5, 0.6, Estimate(0.9, mark="[x]", comparable=False)], [1]),
    ],
)
def test_the_best_follows_the_direction_and_skips_the_undefined(column, cells, best):
    table = Table("x", "X", [METHOD, column], [["a", cell] for cell in cells])
    assert [r for r in range(len(cells)) if table.printed_cells[r][1].best] == best
    assert not any(table.printed_cells[r][0].best for r in range(len(cells)))


@pytest.mark.parametrize(
    ("column", "cell", "text"),
    [
        (UP, math.nan, "-"),
        (UP, np.float64(0.5), "0.500"),
        (UP, Estimate(0.51234, 0.4, 0.6, "b"), "0.512 [0.400, 0.600]"),
        (UP, Estimate(0.51234, 0.4, math.nan), "0.512"),
        (Field("p", "p", format="p"), 0.0001, "0.0001"),
        (Field("p", "p", format="p"), 0.00009, "<0.0001"),
        (METHOD, "a\x1b[31m", "a\\x1b[31m"),
    ],
)
def test_a_cell_as_people_read_it(column, cell, text):
    drawn = Table("x", "X", [column], [[cell]]).printed_cells[0][0]
    assert f"{drawn.text} {drawn.span}".strip() == text


def test_a_table_for_programs_has_plain_numbers():
    rows = [["a", Estimate(np.float64(0.5), 0.4, 0.6, "b"), 1.5], ["c", None, math.nan]]
    found = Table("x", "X", [METHOD, UP, DOWN], rows).plain()
    assert found == {
        "method": ["a", "c"],
        "f": [0.5, None],
        "f_low": [0.4, None],
        "f_high": [0.6, None],
        "f_mark": ["b", ""],
        "voi": [1.5, None],
    }
    assert type(found["f"][0]) is float


def test_a_table_shows_itself():
    table = Table("x", "X", [METHOD, UP], [["a", 0.5], ["c", None]])
    assert repr(table) == "<Table x: 2 rows, 2 columns>"
    assert str(table) == to_text([table])
    assert "<table" in table._repr_html_()
    pandas = pytest.importorskip("pandas")
    frame = table.to_dataframe()
    assert isinstance(frame, pandas.DataFrame)
    assert (frame["method"].tolist(), frame["f"].isna().tolist()) == (["a", "c"], [False, True])


def test_labels_of_rows_that_are_left_out_are_not_counted():
    table = Table("x", "", [METHOD, FLAT, UP], [["a", "b", 0.5]], n_labels=2)
    assert [table.only(columns).n_labels for columns in ([0, 1, 2], [1, 2], [2])] == [2, 1, 0]


def test_select_keeps_text_and_the_columns_asked_for_and_their_notes():
    notes = [
        Note("F: how.", ("f",)),
        Note("why.", ("voi",), names_columns=True),
        Note("both.", ("f", "voi"), names_columns=True),
        "F: a run of that name.",
    ]
    one = Table("one", "", [METHOD, UP, DOWN], [["a", 0.5, 1.5]], notes=notes)
    two = Table("two", "", [METHOD, FLAT], [["a", 0.5]])
    (found,) = select([one, two], ["voi", "one.f"])
    assert [c.key for c in found.columns] == ["method", "voi", "f"]
    assert found.rows == [["a", 1.5, 0.5]]
    assert found.notes == notes
    (less,) = select([one, two], ["voi"])
    assert less.note_lines == ["- under VOI: why.", "- under VOI: both.", "F: a run of that name."]
    assert [t.key for t in select([one, two], ["t", "f"])] == ["one", "two"]
    kinds = [Field(k, k, "", ".1f") for k in ("hd", "hd95-pooled", "hd95-area", "nsd-area@1")]
    three = Table("three", "", [METHOD, *kinds], [["a", 1.0, 2.0, 3.0, 4.0]])
    found = [select([three], [word])[0].columns[1].key for word in ("hd", "three.hd95", "nsd")]
    assert found == ["hd", "hd95-pooled", "nsd-area@1"]
    refused("score 'nope': expected some of one.f, one.voi, two.t", select, [one, two], ["nope"])
