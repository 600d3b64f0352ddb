"""Best of M: the rule, row by row, beside a plain loop; runs that do not belong together."""

import json
from dataclasses import replace

import pytest

import bsdsbench as bb
from bsdsbench.errors import MergeError
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.runs.merge import best_of
from bsdsbench.scores.counts import ImageRecord, MatchCounts
from tests.helpers.making import make_set
from tests.helpers.runs import call, counted, refused
from tests.helpers.simulated import simulated_run
from tests.reference.scores import f_of, shares


@pytest.fixture(scope="module")
def three():
    """Runs on the same images with the same ground truth."""
    return [simulated_run("m", 7, quality=q, seed=3) for q in (0.0, 0.2, 0.4)]


def test_the_rule_by_its_definition(three):
    """Of the runs' rows at a threshold the first one of largest F."""
    found = best_of(three)
    for record, *given in zip(found.records, *[run.records for run in three], strict=True):
        tables = [r.counts["boundary"].matches.tolist() for r in given]
        expected = [max(rows, key=lambda r: f_of(*shares(r))) for rows in zip(*tables, strict=True)]
        assert record.counts["boundary"].matches.tolist() == expected
    assert found.name == "m (best of 3 by the ground truth)"
    assert found.signature.pred == "best-of-3"
    runs = []
    for rows in ([[4, 8, 4, 8], [2, 8, 2, 2]], [[4, 8, 4, 6], [1, 8, 1, 1]]):
        record = ImageRecord("a", (9, 9), {"boundary": MatchCounts([0.3, 0.6], rows)})
        runs.append(Evaluation(bb.Protocol(), "m", [record]))
    (record,) = best_of(runs).records
    assert record.counts["boundary"].matches.tolist() == [[4, 8, 4, 6], [2, 8, 2, 2]]


def test_the_best_of_soft_maps_is_not_read_as_classes(tmp_path):
    pred, gt = make_set(tmp_path / "set", images=2)
    run = counted(pred, gt, bb.Protocol.preset("bsds500").replace(thresholds=3))
    assert best_of([run, run]).provenance.pred_kind == run.provenance.pred_kind == "soft"


def test_runs_that_do_not_belong_together(three):
    refused("best of 1 runs: expected two or more", best_of, three[:1])
    other = simulated_run("other", 6, seed=3)
    refused(r"other: image .* is not in both it and m", best_of, [three[0], other])
    several = replace(three[0], protocol=three[0].protocol.replace(max_dist=(0.0075, 0.00375)))
    refused("m: tolerances 0.0075, 0.00375, expected one", best_of, [three[1], several])


def test_tables_of_other_programs_without_images_are_no_shards(three):
    tables = Evaluation(three[0].protocol, "m", (), reported={"boundary": {"ods": {"f": 0.7}}})
    for runs in ([tables, three[0]], [three[0], tables]):
        refused("is not a shard, expected runs made by", bb.merge, runs, error=MergeError)


def rules_of(folder):
    """What `report --rules` says of one run: {(score, rule): value}."""
    (table,) = json.loads(call("report", "--rules", folder, "--format", "json"))["tables"]
    return {(row["score"], row["rule"]): row["run_1"] for row in table["rows"]}


def test_every_rule_and_the_zero_row_of_the_ground_truth(tmp_path):
    pred, gt = make_set(tmp_path / "set", images=3)
    protocol = bb.Protocol.preset("bsds500").replace(thresholds=9)
    score = counted(pred, gt, protocol, out=tmp_path / "out").boundary_score()
    with_row = protocol.replace(thresholds=(0.0, *protocol.thresholds), ap_rule="edter")
    found = rules_of(tmp_path / "out")
    assert found["AP", "edter"] == counted(pred, gt, with_row).boundary_score().ap > score.ap
    assert (found["AP", "bsds"], found["ODS", "interpolated"]) == (score.ap, score.ods.f)
    (tmp_path / "set").rename(tmp_path / "gone")
    assert rules_of(tmp_path / "out") == {**found, ("AP", "edter"): None}


def test_rows_of_threshold_0_make_ap_that_of_the_programs(tmp_path):
    """By hand: of two runs' rows, cntR sumR cntP sumP, the second's is better at .25 alone."""
    grains = {
        "a": ["10 10 6 60", "8 10 8 12", "6 10 6 8"],
        "b": ["10 10 6 60", "7 10 7 8", "0 10 0 0"],
    }
    for grain, rows in grains.items():
        (tmp_path / grain).mkdir()
        lines = [f"{t / 4} {row}" for t, row in enumerate(rows)]
        (tmp_path / grain / "x_ev1.txt").write_text("\n".join(lines), "utf-8")
    call("merge", "--best-of", tmp_path / "a", tmp_path / "b", "-o", tmp_path / "out")
    found = bb.Evaluation.load(tmp_path / "out")
    assert found.records[0].counts["boundary"].matches[1].tolist() == [7, 10, 7, 8]
    assert rules_of(tmp_path / "out")["AP", "edter"] == found.boundary_score().ap
    assert not found.protocol.stated
