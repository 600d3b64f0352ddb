"""The page of printed and computed numbers: scripts/reproduce_note.py."""

import json
import sys
from pathlib import Path

import pytest

from tests.helpers.runs import refused

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture(scope="module")
def script():
    sys.path.insert(0, str(SCRIPTS))
    try:
        import reproduce_note

        yield reproduce_note
    finally:
        sys.path.remove(str(SCRIPTS))
        for name in [n for n in sys.modules if n == "reproduce_note" or n.split(".")[0] == "note"]:
            del sys.modules[name]


@pytest.fixture(scope="module")
def found(script):
    return [*script.examples(), *script.experiments(), *script.tutorial_sections()]


@pytest.mark.slow
def test_numbers_agree_or_are_marked_with_a_reason(found):
    rows = {r.what: r for s in found for r in s.rows}
    assert len(rows) == sum(len(s.rows) for s in found) > 50
    for r in rows.values():
        assert (r.printed == r.computed) != bool(r.reason)
    for what, computed in {
        "point in PR space": "(4/5, 2/3)",
        "PR point at 0.75": "(1/2, 1)",
        "precision at 0.5": "(2+2)/(3+4) = 4/7",
        "grey levels that get a point": "128, 64, 0",
        "they cross at (recall, precision)": "(0.45, 0.6207)",
        "ROC area as t grows to 450": "0.237, 0.402, 0.433, 0.445, 0.449",
        "AUC-PR of I": "0.5198",
        "AUC-PR of II (1/26)": "0.038",
    }.items():
        assert rows[what].computed == computed
    assert rows["they cross at (recall, precision)"].printed == "(0.4794, 0.6186)"


def test_a_row_cannot_hide_a_difference(script):
    refused("a: 1 and 2, ''", script.Row, "a", "1", "2", error=ValueError)
    refused("a: 1 and 1, 'why'", script.Row, "a", "1", "1", "why", error=ValueError)


@pytest.mark.slow
def test_the_page_names_every_picture_and_misprint(script, found):
    misprints = json.loads((SCRIPTS / "note" / "misprints.json").read_text("utf-8"))
    text = script.page(found, misprints)
    names = [name for s in found for name, *_ in s.figures]
    assert len(set(names)) == len(names) == 13
    for name in names:
        assert f'src="{name}.svg"' in text
    assert text.count('class="misprint"') == sum(bool(r.reason) for s in found for r in s.rows)
    assert len(misprints) == 40
    assert "&lt;= x &lt;= TP_B-TP_A" in text
