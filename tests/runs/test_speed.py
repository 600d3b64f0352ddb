"""Milliseconds per image stand beside the scores, in every table and form."""

from dataclasses import replace

from bsdsbench.results.score_tables import score_tables
from bsdsbench.results.storage import Provenance
from tests.helpers.simulated import simulated_run


def timed(name, ms=None, machine="made machine, 2 cores", **more):
    found = simulated_run(name, 6, quality=0.3, seed=len(name))
    speed = None if ms is None else {"ms_per_image": ms, "machine": machine}
    return replace(found, provenance=Provenance(detector=speed), **more)


def column(table):
    """The texts of the times, or None where the table has no such column."""
    keys = [c.key for c in table.columns]
    if "ms_per_image" not in keys:
        return None
    at = keys.index("ms_per_image")
    assert at == len(keys) - 1
    return [table.printed_cells[row][at].text for row in range(len(table.rows))]


def test_scores_have_the_column_where_a_run_has_times():
    runs = [timed("fast", 3.25), timed("untimed"), timed("slow", 1234)]
    (table,) = score_tables(runs)
    at = len(table.columns) - 1
    assert [table.printed_cells[row][at].best for row in range(3)] == [True, False, False]
    assert column(table) == ["3.2", "-", "1234.0"]
    (plain,) = score_tables(runs[1:2])
    assert column(plain) is None
    assert not any("ms per image" in note for note in plain.note_lines)


def test_times_of_two_machines_are_shown_and_not_ranked():
    (table,) = score_tables([timed("fast", 3), timed("slow", 9, "another machine")])
    assert column(table) == ["3.0", "9.0"]
    assert not any(table.printed_cells[row][len(table.columns) - 1].best for row in range(2))
    assert any("another machine" in note for note in table.note_lines)


def test_a_result_that_says_something_else_has_no_time():
    found = simulated_run("x", 3, quality=0.3, seed=1)
    for value in (None, 5, {}, {"ms_per_image": "9"}, {"ms_per_image": -1}):
        origin = Provenance.from_mapping({"detector": value})
        (table,) = score_tables([replace(found, provenance=origin)])
        assert column(table) is None
