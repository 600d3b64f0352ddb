"""Classes of errors of whole runs: every metric that matches pixels, storage, shards, the verb."""

import json
import re
from dataclasses import replace

import imageio.v3 as iio
import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.comparison.lost_scores import with_errors
from bsdsbench.metrics import registry
from bsdsbench.plotting.style import ERROR_COLORS
from bsdsbench.report import write_report
from bsdsbench.report.overlays import write_overlays
from bsdsbench.scores.error_scores import FALSE
from tests.helpers.making import make_set
from tests.helpers.metric_cases import case_of
from tests.helpers.runs import call, command, counted, refused

MATCHING = [name for name in registry.names() if registry.get(name).has_errors]
PROTOCOL = bb.Protocol(thresholds=(0.1, 0.22, 0.23), max_dist_px=1.0)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return make_set(tmp_path_factory.mktemp("set"), images=4, annotators=3)


@pytest.fixture(scope="module")
def both(folders, tmp_path_factory):
    """The folders of a run with the classes of errors, and of one without."""
    root = tmp_path_factory.mktemp("runs")
    outs = [root / name for name in ("with", "without")]
    for out, errors in zip(outs, (True, False), strict=True):
        counted(*folders, PROTOCOL, out=out, errors=errors, name=out.name)
    return outs


def test_all_that_draw_matched_pixels_have_classes_of_errors():
    assert {"boundary", "semantic", "occlusion", "wireframe", "depth"} == {*MATCHING}


@pytest.mark.parametrize("name", MATCHING)
def test_classes_add_up_beside_the_same_counts(name):
    case = case_of(name)
    items = [(pred.image_id, pred, gt) for pred, gt in case.images]
    protocol = case.run.protocol
    run = bb.evaluate_items(items, protocol, name, errors=True, workers=1)
    for record, before in zip(run.records, case.run.records, strict=True):
        counts = record.counts[name]
        for key, numbers in before.counts[name].items():
            np.testing.assert_array_equal(counts[key], numbers, err_msg=key)
        matched_gt, total_gt, matched_pred, total_pred = np.moveaxis(counts["matches"], -1, 0)
        np.testing.assert_array_equal(counts.missed.sum(axis=-1), total_gt - matched_gt)
        np.testing.assert_array_equal(counts.false.sum(axis=-1), total_pred - matched_pred)
    score = run.score(name)
    assert score.numbers().items() >= {("n_images", len(items))}
    assert {"error", "error_share", "agreement", "delta_ods"} <= score.keys()
    assert "error" not in case.run.score(name)


def test_other_metrics_refuse(folders):
    refused("pixel matches no pixels", counted, *folders, metrics="pixel", errors=True)


def test_a_depth_run_without_edges_matches_no_pixels():
    depth = np.full((20, 30), 4.0)
    depth[5:15, 8:20] = 2
    run = bb.evaluate_items([("a", depth, depth)], "depth", metrics="depth", workers=1)
    refused("depth matches no pixels", with_errors, run)


def test_runs_are_stored_resumed_merged_and_streamed_with_the_classes(folders, both, tmp_path):
    whole = bb.Evaluation.load(both[0])
    counts = [record.counts["boundary"] for record in whole.records]
    assert all("missed" in own for own in counts)
    again = counted(*folders, PROTOCOL, out=both[0], errors=True, name="with")
    assert again.kept == len(whole.records)
    parts = [counted(*folders, PROTOCOL, errors=True, shard=(k, 2)) for k in (1, 2)]
    for record, own in zip(bb.merge(parts).records, counts, strict=True):
        assert record.counts["boundary"].equals(own)
    odd = counted(*folders, PROTOCOL, shard=(2, 2))
    refused("classes of errors", bb.merge, [parts[0], odd])
    ev, plain = bb.StreamingEvaluator(PROTOCOL, errors=True), bb.StreamingEvaluator(PROTOCOL)
    refused("differ", ev.merge, plain)
    ev.update(np.eye(9), [np.eye(9)])
    assert ev.compute().records[0].counts["boundary"].missed.tolist() == [[0, 0, 0]] * 3


def test_classes_are_counted_again_from_the_files_of_a_run(folders, both):
    whole, without = map(bb.Evaluation.load, both)
    found = with_errors(without)
    for record, expected in zip(found.records, whole.records, strict=True):
        assert record.counts["boundary"].equals(expected.counts["boundary"])
    other = PROTOCOL.replace(max_dist_px=3.0)
    changed = bb.Evaluation(other, "changed", without.records, without.provenance)
    refused("im000: other counts than those of changed", with_errors, changed)


def test_the_verb_prints_one_object_a_run_and_a_table(both, tmp_path):
    one, two = (json.loads(call("errors", out, "--format=json", "--n-boot=99")) for out in both)
    assert {**one, "name": ""} == {**two, "name": ""}
    score = bb.Evaluation.load(both[0]).boundary_score()
    assert one["ods"] == score.ods.f
    for side, names in (
        ("missed", ("suppressed", "near", "absent")),
        ("false", ("duplicate", "near", "background")),
        ("agreement", ("alone", "some", "all")),
    ):
        assert (*one[side],) == names
        for numbers in one[side].values():
            assert [*numbers] == ["share", "low", "high", "delta_ods"]
    for side in ("missed", "false"):
        assert sum(n["share"] for n in one[side].values()) == pytest.approx(1)
    assert one["agreement"]["all"]["share"] == score.agreement["all"]
    assert one["missed"]["absent"]["delta_ods"] == score.delta_ods.absent
    call("errors", *both, "-o", tmp_path / "x.json", "--n-boot=99")
    assert json.loads((tmp_path / "x.json").read_text()) == [one, two]
    assert "Where ODS is lost" in call("errors", *both, "--n-boot=99")


def test_runs_without_maps_say_so(both):
    done = command("errors", "ref:hed")
    assert (done.returncode, done.stdout) == (2, "")
    assert "ref:hed: has counts and no maps" in done.stderr
    done = command("errors", both[0], "ref:hed", "--n-boot=99")
    assert (done.returncode, "ref:hed: has counts" in done.stderr) == (0, True)


def test_images_are_sorted_by_a_class_and_runs_compared_by_it(both):
    for out in both:
        found = json.loads(call("worst", out, "--by=error.background", "--format=json"))
        (table,) = found["tables"] if isinstance(found, dict) else found
        shares = [row["error_background_1"] for row in table["rows"]]
        assert shares == sorted(shares, reverse=True)
    refused("expected.*error[.]absent,", call, "worst", both[1], "--by=error.absnt")
    runs = [bb.Evaluation.load(both[0])] * 2
    difference = bb.compare(runs, ["a", "b"], n_boot=99).difference_of("a", "b", "error.absent")
    assert (difference.value, difference.p) == (0, 1)


@pytest.mark.slow
def test_reports_and_overlays_show_the_classes(both, tmp_path):
    page = tmp_path / "x.html"
    call("report", *both, "-o", page, "--n-boot=99")
    text = page.read_text("utf-8")
    assert text.count('class="losses"') == 1  # of the run that has them
    widths = re.findall(r'title="[a-z ]+" style="width: ([0-9.]+)%', text)
    assert len(widths) == 6
    assert sum(map(float, widths)) == pytest.approx(100, abs=0.05)
    assert "Where ODS is lost" in text
    assert "Where ODS is lost" in call("report", both[0], "--format=markdown")
    assert "Where ODS is lost" not in call("report", both[1], "--format=markdown")
    run = bb.Evaluation.load(both[0])
    drawn = iio.imread(write_overlays(run, tmp_path, image_ids=["im000"])[1]).reshape(-1, 3)
    counts = run.records[0].counts["boundary"]
    step = np.abs(counts.thresholds - run.boundary_score().ods.threshold).argmin()
    for name, pixels in zip(FALSE, counts.false[step], strict=True):
        color = list(bytes.fromhex(ERROR_COLORS[name][1:]))
        assert (drawn == color).all(axis=1).sum() == pixels, name


def test_the_table_of_errors_on_a_page_says_nothing_of_other_runs(both, tmp_path):
    """Of runs with other protocols, the lines below the table are about those with the classes."""
    run, without = map(bb.Evaluation.load, both)
    coarser = replace(without, protocol=without.protocol.replace(max_dist_px=2.0))
    page = tmp_path / "page.html"
    write_report([run, coarser], page, pictures=False, n_boot=9)
    (table,) = re.findall(r'data-key="errors".*?</figure>', page.read_text("utf-8"), re.S)
    assert "protocol" in table
    assert "without" not in table


def test_a_gate_holds_no_class_of_errors(both, tmp_path):
    """A class that is repaired raises the shares of the others, and a run may lack them."""
    call("check", both[0], "--baseline", tmp_path / "x.json", "--update")
    assert "delta_ods" not in (tmp_path / "x.json").read_text()
    assert "FAIL" not in call("check", both[1], "--baseline", tmp_path / "x.json")
