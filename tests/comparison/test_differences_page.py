"""The page of smallest detectable differences: its table of ranks is computed again."""

import re
from pathlib import Path

import pytest
from scipy.stats import kendalltau

import bsdsbench as bb

PAGE = (Path(__file__).parents[2] / "docs/evidence/differences.md").read_text("utf-8")
ROW = r"^\| (ODS|OIS|AP)(?:, ([\w -]+))? \| ([a-z ]+) \| (\d) \| ([\d.]+) \|$"
ROWS = re.findall(ROW, PAGE, re.M)
RULES = {"plain maximum": "maximum"}


@pytest.fixture(scope="module")
def runs():
    return {name: bb.Evaluation.load(f"ref:{name}") for name in ROWS[0][2].split()}


def order(runs, score, rule):
    """The names, best first, by a score and its rule."""
    field = {"ODS": "ods_rule", "AP": "ap_rule"}.get(score)
    values = {}
    for name, run in runs.items():
        protocol = run.protocol.replace(**{field: RULES.get(rule, rule)}) if field else run.protocol
        scored = bb.boundary_score(run.records, protocol)
        values[name] = scored.ap if score == "AP" else getattr(scored, score.lower()).f
    return sorted(values, key=values.get, reverse=True)


def test_the_table_has_every_row():
    assert len(ROWS) == 8


@pytest.mark.parametrize(("score", "rule", "names", "move", "tau"), ROWS)
def test_methods_rank_as_the_page_says(score, rule, names, move, tau, runs):
    by_ods, found = ROWS[0][2].split(), order(runs, score, rule)
    assert found == names.split()
    places = [found.index(name) for name in by_ods]
    assert max(abs(place - k) for k, place in enumerate(places)) == int(move)
    assert f"{kendalltau(range(12), places).statistic:.2f}" == tau
