"""AP and ODS by every rule, of every curve; where a curve starts above recall 0.02."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn import metrics as sk

import bsdsbench as bb
from bsdsbench.diagnosis.causes import build_rules_tables
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.results.score_tables import score_tables
from bsdsbench.scores.curve import AP_RULES, PRCurve, area, describe_late_starts
from tests.helpers.metric_cases import case_of


def lines(rng, strong):
    """A drawn line, of whose pixels a share is found at every threshold."""
    gt = np.zeros((40, 40), np.uint8)
    gt[20] = 1
    soft = np.where(rng.random(gt.shape) < strong, 1.0, rng.uniform(0.1, 0.8, gt.shape))
    return np.where(gt > 0, soft, rng.uniform(0, 0.1, gt.shape)), gt


def run_of(strong, metrics=("boundary", "pixel"), name="p", **changes):
    rng = np.random.default_rng(3)
    protocol = Protocol.preset("bsds500").replace(thresholds=19, **changes)
    made = [lines(rng, strong) for _ in range(3)]
    items = [(str(k), soft, [gt]) for k, (soft, gt) in enumerate(made)]
    return bb.evaluate_items(items, protocol, metrics=metrics, name=name, workers=1), made


def notes_of(tables, key):
    (table,) = [table for table in tables if table.key == key]
    return [line for line in table.lines_below if "the curve" in line]


def test_every_curve_has_its_rules():
    run, made = run_of(0.3)
    boundary, pixel = build_rules_tables([run, run])
    assert (boundary.key, pixel.key) == ("rules", "rules-pixel")
    for changed, n_notes in (({"ap_rule": "endpoints"}, 0), ({"max_dist": 0.02}, 1)):
        other = replace(run, protocol=run.protocol.replace(**changed))
        table = build_rules_tables([run, other])[0]
        assert sum("Protocols differ" in str(note) for note in table.notes) == n_notes
    for table, metric in ((boundary, "boundary"), (pixel, "pixel")):
        rows = {tuple(row[:2]): row[2:4] for row in table.rows}
        assert [rule for score, rule in rows if score == "AP"] == [*AP_RULES]
        own = "bsds" if metric == "boundary" else "step"
        assert rows["AP", own] == [run.score(metric).ap] * 2
    values = np.concatenate([np.digitize(soft, run.protocol.thresholds) for soft, _ in made])
    truth = np.concatenate([gt for _, gt in made])
    expected = sk.average_precision_score(truth.ravel(), values.ravel())
    assert dict(zip(AP_RULES, [row[2] for row in pixel.rows], strict=False))["step"] == (
        pytest.approx(expected, abs=1e-9)
    )


@pytest.mark.parametrize("strong", [0.0, 0.3])
def test_tables_say_where_a_curve_starts(strong):
    """Under AP of boundaries, where its rule gives 0 below; nowhere else."""
    run, _ = run_of(strong)
    score = run.boundary_score()
    tables = score_tables([run])
    found = notes_of(tables, "boundary")
    start = score.curve.recall.min()
    assert bool(found) == (start > 0.02) == (strong > 0)
    assert notes_of(tables, "pixel") == []
    ends, _ = run_of(strong, ap_rule="endpoints")
    assert notes_of(score_tables([ends]), "boundary") == []
    compared = bb.compare([run, run_of(strong, name="q")[0]], n_boot=20)
    both = notes_of(compared.tables(), "scores")
    assert len(both) == len(found)
    if found:
        value, text = f"{area(score.curve, 'endpoints'):.3f}", f"{start:.2f}"
        assert found == [
            f"- under AP: the curve starts at recall {text}; below that, precision counts as 0 "
            f"(AP by `endpoints` {value})."
        ]
        assert f"recall {text} (p), {text} (q)" in both[0]
        (table,) = score_tables([run], columns=["ods"])[:1]
        assert not [line for line in table.lines_below if "the curve" in line]


@pytest.mark.parametrize("rule", AP_RULES)
def test_rules_that_go_on_to_recall_0_say_nothing(rule):
    late = PRCurve([0.2, 0.5], [0.5, 0.9], [0.8, 0.19], blank=[False, False])
    early = PRCurve([0.2, 0.5], [0.5, 0.9], [0.8, 0.02])
    blank = PRCurve([0.2, 0.5, 0.9], [0.5, 0.9, 0], [0.8, 0.19, 0], blank=[False, False, True])
    zero_below = rule in ("bsds", "edter", "seism", "sbd")
    known = not np.isnan(area(late, rule))
    assert bool(describe_late_starts({"": late}, rule)) == (zero_below and known)
    assert describe_late_starts({"a": early, "b": blank}, rule) == ""


LATE = {
    "boundary": ("ap",),
    "depth": ("ap",),
    "occlusion": ("edge.ap", "orientation.ap", "accuracy.ap"),
}
LATE["crispness"] = ("seval.ap", "ceval.ap")


@pytest.mark.parametrize(
    "name", ["boundary", "crispness", "depth", "occlusion", "pixel", "semantic"]
)
def test_compare_and_doctor_say_where_any_curve_starts(name, tmp_path):
    """Under each AP that counts 0 below; not under the step rule, or where AP is undefined."""
    case = case_of(name)
    compared = bb.compare([case.run, replace(case.run, name="other")], n_boot=100)
    lines = {line for line in compared.tables()[0].note_lines if "start at recall" in line}
    assert set(compared.late_starts) == {f"{name}.{score}" for score in LATE.get(name, ())}
    assert len(lines) == (name in LATE)
    folders = case.write(tmp_path)
    note = bb.doctor(*folders, case.run.protocol, metrics=name).note
    assert ("at recall" in note) == (name in LATE)
