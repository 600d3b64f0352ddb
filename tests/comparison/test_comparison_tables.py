"""What the tables of a comparison say besides their numbers."""

from dataclasses import replace

import pytest

import bsdsbench as bb
from bsdsbench.comparison.comparison_result import Difference
from bsdsbench.comparison.comparison_tables import comparison_tables
from tests.helpers.simulated import simulated_run


@pytest.fixture(scope="module")
def found():
    runs = [
        simulated_run(name, 25, quality, seed)
        for name, quality, seed in (("a", 0.3, 1), ("b", 0, 2))
    ]
    return bb.compare(runs, n_boot=50, level=0.9)


def test_letters_are_explained_with_the_level(found):
    scores, differences, images = comparison_tables(found)
    assert scores.notes[0] == "Runs that share a letter do not differ significantly (Holm, 0.1)."
    assert not any("~" in note for note in differences.notes)  # none is a solver's unless said
    assert not Difference("a", "b", "boundary.ods", 0.1, 0.0, 0.2, 0.5, 0.5).solver
    assert [t.n_labels for t in (scores, differences, images)] == [1, 3, 3]


@pytest.mark.parametrize(
    ("low", "high", "p", "disagree"),
    [
        *((-1, 1, 0.5, False), (0, 1, 0.5, False), (-1, 0, 0.5, False), (-1, 1, 0.05, True)),
        *((0.1, 1, 0.05, False), (0.1, 1, 0.5, True), (-1, -0.1, 0.05, False)),
        *((-1, -0.1, 0.5, True), (-1, 1, None, False), (0.1, 1, None, True)),
    ],
)
def test_an_interval_and_a_p_that_disagree_about_0_are_explained(found, low, high, p, disagree):
    """None: p is the level itself, which is not significant."""
    p = 1 - found.level if p is None else p
    made = replace(found.differences[0], low=low, high=high, p=p)
    notes = comparison_tables(replace(found, differences=(made,)))[1].notes
    assert any(note.startswith("Near p = 0.1") for note in notes) == disagree
