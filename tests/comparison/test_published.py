"""The published table: what it holds, how rows are chosen, which AP rule each is of."""

import re

import numpy as np
import pytest

from bsdsbench.comparison.published import (
    HUMAN_POINT,
    find_published,
    published_curves,
    published_results,
)
from bsdsbench.errors import DataError
from bsdsbench.protocol.tasks import tasks
from bsdsbench.scores.curve import AP_RULES


def test_rows_have_scores_sources_and_rules():
    found = published_results()
    assert len(found) > 200
    assert found["hed"].boundary == {"ods": 0.7878, "ois": 0.8079, "ap": 0.8404}
    assert found["gpb-owt-ucm"].region["covering"]["best"] == 0.7441
    for result in found.values():
        assert result.paper
        assert result.source
        assert result.confidence in ("high", "medium")
        assert result.boundary or result.region or result.other
        assert all(0 < v < 1 for v in result.boundary.values())
        assert (result.ap_rule is None) == ("ap" not in result.boundary)
        assert result.ap_rule in (None, "unknown", *AP_RULES)
    recall, precision = HUMAN_POINT
    f = 2 * precision * recall / (precision + recall)
    assert f == pytest.approx(found["human"].boundary["ods"], abs=5e-4)


def test_the_best_point_of_a_curve_lies_on_it():
    for key, curve in published_curves().items():
        order = np.argsort(curve.recall)
        on = np.interp(curve.ods.recall, curve.recall[order], curve.precision[order])
        assert curve.ods.precision == pytest.approx(on, abs=0.01), key


def test_the_zero_row_of_the_same_counts():
    """SAUGE with and without the row of threshold 0: one ODS, two AP values, two rules."""
    with_row, without = find_published(["sauge-l", "sauge-l-bsds-ap"])
    assert with_row.boundary["ods"] == without.boundary["ods"]
    assert (with_row.ap_rule, without.ap_rule) == ("edter", "bsds")
    assert with_row.boundary["ap"] - without.boundary["ap"] == pytest.approx(0.0237)


def test_rows_are_chosen_by_key_and_an_unknown_one_is_named():
    assert [r.key for r in find_published(["HED", " rcf "])] == ["hed", "rcf"]
    with pytest.raises(DataError, match="result 'hedd': unknown key, expected one such as hed"):
        find_published(["hed", "hedd"])


def test_every_row_names_its_paper_year_and_edition():
    """The paper is where the method is described, not the page where the numbers were read."""
    papers = {}
    for result in published_results().values():
        assert result.paper != result.source, result.key
        assert result.year is not None, result.key
        papers.setdefault(result.name, set()).add(result.paper)
        years = [int(y) for y in re.findall(r"\b(?:19|20)\d\d\b(?!\.)", result.paper)]
        preprints = [2000 + int(y) for y in re.findall(r"(\d\d)\d\d\.\d{5}", result.paper)]
        assert result.year in years or any(0 <= result.year - y <= 1 for y in preprints), result.key
        assert result.tasks, result.key
        assert set(result.tasks) <= set(tasks()), result.key
    several = {name for name, found in papers.items() if len(found) > 1}
    assert not several
