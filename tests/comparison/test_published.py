"""The published table: what it holds, how rows are chosen, which AP rule each is of."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from bsdsbench.comparison.published import (
    HUMAN_POINT,
    find_published,
    published_results,
    published_sets,
)
from bsdsbench.files.errors import DataError
from bsdsbench.scores.curve_rules import AP_RULES


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


def test_every_row_of_the_gathered_results_is_there():
    if "BSDSBENCH_SPEC" not in os.environ:
        pytest.skip("BSDSBENCH_SPEC is not set: the gathered results are not available")
    path = Path(os.environ["BSDSBENCH_SPEC"]) / "published_results.json"
    gathered = json.loads(path.read_text("utf-8"))["methods"]
    rows = [
        (r.name, r.variant, *(r.boundary.get(k) for k in ("ods", "ois", "ap")))
        for r in published_results().values()
    ]
    for row in gathered:
        assert (row["method"], row["variant"], row["ods"], row["ois"], row["ap"]) in rows
    assert len(rows) >= len(gathered) == 213


def test_the_zero_row_of_the_same_counts():
    """SAUGE with and without the row of threshold 0: one ODS, two AP values, two rules."""
    with_row, without = find_published(["sauge-l", "sauge-l-bsds-ap"])
    assert with_row.boundary["ods"] == without.boundary["ods"]
    assert (with_row.ap_rule, without.ap_rule) == ("edter", "bsds")
    assert with_row.boundary["ap"] - without.boundary["ap"] == pytest.approx(0.0237)
    assert (with_row.ap_mark("bsds"), without.ap_mark("bsds")) == ("edter", "")
    assert find_published(["xyw-net-voc"])[0].ap_mark("bsds") == "unknown"
    assert find_published(["bdcn"])[0].ap_mark("bsds") == ""


def test_rows_are_chosen_by_key_set_and_rule():
    assert [r.key for r in find_published(["HED", " rcf "])] == ["hed", "rcf"]
    cracks = find_published(["set=deepcrack"])
    assert {r.name for r in cracks} == {"DeepCrack-BN", "DeepCrack-GF"}
    seism = find_published(["set=bsds500-test", "rule=seism"])
    assert {r.ap_rule for r in seism} == {"seism"}
    assert {r.set for r in seism} == {"bsds500-test"}
    assert find_published(["hed", "rule=edter"]) == []
    assert find_published([]) == []
    assert "nyudv2-rgb" in published_sets()


@pytest.mark.parametrize(
    ("keys", "messages"),
    [
        (["hedd", "x"], ["method 'hedd': expected such as hed", "method 'x'"]),
        (["set=bsds"], ["set 'bsds': expected such as biped"]),
        (["rule=coco", "year=2015"], ["rule 'coco': expected such as bsds", "filter 'year=2015'"]),
    ],
)
def test_all_unknown_words_are_named_together(keys, messages):
    with pytest.raises(DataError) as caught:
        find_published(keys)
    for problem, message in zip(caught.value.problems, messages, strict=True):
        assert message in problem
