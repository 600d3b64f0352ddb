"""What the tables of a comparison say besides their numbers."""

import math
from dataclasses import replace

import pytest

import bsdsbench as bb
from bsdsbench.comparison.comparison import ScoreDifference
from bsdsbench.comparison.comparison_tables import comparison_tables
from tests.helpers.simulated import simulated_run


@pytest.fixture(scope="module")
def found():
    runs = [
        simulated_run(name, 25, quality, seed)
        for name, quality, seed in (("a", 0.3, 1), ("b", 0, 2))
    ]
    return bb.compare(runs, n_boot=50, level=0.9)


@pytest.mark.parametrize(
    ("low", "high", "p", "disagree"),
    [
        *((0, 1, 0.5, False), (-1, 1, 0.05, True), (0.1, 1, 0.05, False), (-1, -0.1, 0.5, True)),
        (0.1, 1, None, True),
    ],
)
def test_an_interval_and_a_p_that_disagree_about_0_are_explained(found, low, high, p, disagree):
    """None: p is the level itself, which is not significant."""
    p = 1 - found.level if p is None else p
    made = replace(found.differences[0], low=low, high=high, p=p)
    notes = comparison_tables(replace(found, differences=(made,)))[1].notes
    assert any(note.startswith("Near p = 0.1") for note in notes) == disagree


def differing(**given):
    usual = {"value": 0.1, "low": 0.05, "high": 0.2, "p": 0.5, "p_holm": 0.5, "least": 0.5}
    return ScoreDifference("a", "b", **({"score": "boundary.ods"} | usual | given))


@pytest.mark.parametrize(
    ("least", "said"),
    [
        ([0.0123, 0.0124], "of 0.012 is"),
        ([0.02, 0.0123, math.nan], "of 0.012 to 0.020, by pair, is"),
        ([math.nan], None),
    ],
)
def test_what_these_images_can_tell_of_the_first_score(found, least, said):
    made = [differing(least=one) for one in least] + [differing(score="boundary.ap", least=0.7)]
    notes = comparison_tables(replace(found, differences=tuple(made)))[1].notes
    told = [note for note in notes if "With these images" in note]
    assert len(told) == bool(said)
    sentence = f"With these images, a difference in ODS {said} detected four times out of five ("
    assert all(note.startswith(sentence) for note in told)


def test_one_difference_that_a_solver_can_make_is_explained(found):
    reach = {"solver": True, "solver_moves": 0.0003, "p_holm": 0.01}
    made = replace(found, differences=(differing(**reach), differing(p_holm=0.01)))
    table = comparison_tables(made)[1]
    assert [(row[3].mark, row[5].mark) for row in table.rows] == [("~", ""), ("", "*")]
    assert any(note.startswith("~ below 0.0003, by which the official") for note in table.notes)


def test_scores_show_their_interval_and_a_letter_where_runs_are_several(found):
    row = comparison_tables(found)[0].rows[0]
    one = found.interval_of("a", "ods")
    shown = row[1].value, row[1].low, row[1].high, row[1].mark
    assert shown == (one.value, one.low, one.high, found.letters["boundary.ods"][0])
    assert one.low < one.value < one.high
