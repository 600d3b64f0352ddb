"""May runs be compared: one rule, and everything that asks it answers alike."""

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench import Severity, comparability
from bsdsbench.comparison.gate import Baseline, check
from bsdsbench.comparison.published import why_not_beside
from bsdsbench.loaders.labels import seg2bdry
from bsdsbench.metrics import registry
from bsdsbench.plotting import plot_runs
from bsdsbench.protocol.tasks import Task, tasks
from bsdsbench.results.at_threshold import at_threshold_of
from bsdsbench.results.comparability import pair_differences
from bsdsbench.results.score_tables import score_tables
from bsdsbench.results.storage import Provenance
from bsdsbench.runs.merge import best_of
from tests.helpers.runs import FAST, refused
from tests.helpers.simulated import simulated_run

BSDS = bb.Protocol.preset("bsds500").replace(thresholds=5)
OTHERS = {
    "max_dist": 0.02,
    "thin": False,
    "operator": ">",
    "ap_rule": "endpoints",
    "ods_rule": "maximum",
    "thresholds": 6,
    "regions_from_soft": True,
    "clean": True,
    "normalise": True,
    "gt_thin": True,
}


def items():
    rng = np.random.default_rng(0)
    mask = np.zeros((30, 40), bool)
    mask[5:20, 5:30] = True
    soft = np.clip(mask + rng.normal(0, 0.4, (3, *mask.shape)), 0, 1)
    return [(f"i{k}", each, mask) for k, each in enumerate(soft)]


@cache
def run_of(metrics, *changes):
    protocol = BSDS.replace(**{name: OTHERS[name] for name in changes})
    name = "+".join(changes) or "plain"
    return bb.evaluate_items(items(), protocol, metrics=metrics.split(), name=name, **FAST)


def allowed(function, *args, **options):
    """False where a call is refused."""
    try:
        function(*args, **options)
    except bb.DataError:
        return False
    return True


@pytest.mark.parametrize("field", OTHERS)
@pytest.mark.parametrize("metrics", ["boundary", "pixel", "boundary pixel", "crispness"])
def test_one_question_has_one_answer(metrics, field):
    runs = [run_of(metrics), run_of(metrics, field)]
    (difference,) = comparability(*runs)
    used = any(
        field in registry.get(m).used(registry.get(m).options_of(BSDS)) for m in metrics.split()
    )
    assert difference.field == field
    assert difference.severity is (Severity.FORBIDS if used else Severity.IGNORED)
    answers = [
        allowed(bb.compare, runs, n_boot=2),
        allowed(bb.compare, runs, n_boot=2, test="permutation"),
        allowed(plot_runs, runs) if runs[0].with_curve else not used,
        allowed(check, runs[1], Baseline.of(runs[0])) if not used else not used,
        not any("not comparable" in note for note in score_tables(runs)[0].note_lines),
    ]
    table = score_tables(runs)[0]
    answers.append(table.ranked)  # only comparable rows have a best
    if metrics == "boundary" and field != "thresholds":
        answers.append(allowed(best_of, runs))
    assert answers == [not used] * len(answers)


def test_only_metrics_of_both_are_looked_at():
    """The tolerance moves boundary, which one run alone has."""
    wide = run_of("pixel", "max_dist")
    assert [d.severity for d in comparability(run_of("boundary pixel"), wide)] == [Severity.IGNORED]
    (difference,) = comparability(run_of("boundary"), run_of("pixel"))
    assert (difference.field, difference.severity) == ("metrics", Severity.FORBIDS)


def test_every_pair_is_asked():
    """The first differs from none, as nothing is known of it; the others do from one another."""
    runs = [replace(run_of("boundary", *c), name=str(k)) for k, c in enumerate(((), ("max_dist",)))]
    unstated = bb.Protocol(name="unstated", thresholds=BSDS.thresholds)
    pairs = pair_differences([replace(runs[0], name="files", protocol=unstated), *runs])
    assert [(p.a, p.b, p.difference.field) for p in pairs] == [("0", "1", "max_dist")]


# ---- ground truth --------------------------------------------------------------------------------


def truths(segments, **more):
    """Ground truths of equal boundaries, with these segmentations beside them or without."""
    for k in range(2):
        labels = np.zeros((20, 30), int)
        labels[:, 10 + k : 20], labels[:, 20:] = 1, 2
        others = () if segments is None else (np.array(segments)[labels],)
        yield bb.GroundTruth(f"i{k}", (seg2bdry(labels),), others or None, **more)


def run_on(gts, metrics, name):
    """One prediction against some truths."""
    pred = np.zeros((20, 30), int)
    pred[:, 10:] = 1
    triples = [(gt.image_id, bb.Prediction(gt.image_id, segs=(pred,)), gt) for gt in gts]
    return bb.evaluate_items(triples, BSDS, metrics=metrics, name=name, **FAST)


@pytest.mark.parametrize("metrics", ["region", "superpixel", ("boundary", "region")])
def test_segmentations_count_where_a_metric_reads_them(metrics):
    one, other, same = (
        run_on(truths(labels), metrics, name)
        for labels, name in (((0, 1, 2), "one"), ((0, 1, 0), "other"), ((0, 1, 2), "same"))
    )
    assert one.identity.fingerprint == other.identity.fingerprint  # version 1
    (difference,) = comparability(one, other)
    assert (difference.field, difference.image) == ("truth", "i0")
    assert difference.severity is Severity.FORBIDS
    assert comparability(one, same) == []
    for run in (bb.compare, plot_runs) if "boundary" in metrics else (bb.compare,):
        with pytest.raises(bb.DataError, match="one, other: ground truth of image 'i0' differs"):
            run([one, other])


def test_boundaries_do_not_ask_what_they_were_drawn_from():
    """As PNG, or as a .mat file with the segmentations, the truth of boundaries is one."""
    with_and_without = [
        run_on(truths(labels), "boundary", str(labels)) for labels in (None, (0, 1, 2), (0, 1, 0))
    ]
    assert pair_differences(with_and_without) == []


def test_what_is_no_run_is_refused():
    run = bb.evaluate_items([("a", np.eye(9), [np.eye(9)])], **FAST)
    task = next(iter(tasks().values()))
    for pair in ((1, 2), (run, None), (run, "out/a"), (task, run)):
        refused("^comparability: .*, expected runs", comparability, *pair)
    for runs in (1, [1], "a"):
        refused("^runs: .*, expected a list|^runs: .*, expected runs", bb.compare, runs)


def test_a_run_put_together_without_whole_truths_is_not_refused(tmp_path):
    new = run_on(truths((0, 1, 2)), "region", "new")
    records = [replace(record, whole_truth="") for record in new.records]
    other = replace(new, name="other", records=records)
    assert comparability(other, new) == []
    loaded = bb.Evaluation.load(new.save(tmp_path))
    assert [r.whole_truth for r in loaded.records] == [r.whole_truth for r in new.records]


@pytest.mark.parametrize("part", ["labels", "instances"])
@pytest.mark.parametrize(("low", "high"), [(1, 1 + 2**32), (-1, 2**32 - 1), (0, 2**62)])
def test_labels_that_four_bytes_wrap_are_not_equal(part, low, high):
    plain = {"labels": np.ones((1, 2), int)}
    marks = [
        bb.GroundTruth("a", **{**plain, part: np.array([[value, 2]])}).fingerprints()
        for value in (low, high)
    ]
    assert marks[0].listed == marks[1].listed
    assert marks[0].whole != marks[1].whole


@pytest.mark.parametrize("kind", ["u1", "i2", "u2", "i4", "i8", "u8", "f4", "f8"])
def test_the_type_of_labels_is_no_difference(kind):
    labels = np.arange(12).reshape(3, 4)
    edges = np.eye(3, 4, dtype=bool)
    for parts in ({"labels": labels}, {"boundaries": (edges,), "segmentations": (labels,)}):
        kinds = {} if kind[0] == "f" and "labels" not in parts else {"kind": kind}
        typed = {
            k: tuple(x.astype(kinds.get("kind", x.dtype)) for x in v) if k == "segmentations" else v
            for k, v in parts.items()
        }
        typed |= {"labels": labels.astype(kind)} if "labels" in parts else {}
        assert bb.GroundTruth("a", **typed).fingerprint == bb.GroundTruth("a", **parts).fingerprint


# ---- images and tasks ----------------------------------------------------------------------------


def test_images_that_a_run_was_told_to_leave_out_are_said():
    run = simulated_run("all", 8)
    some = replace(run, name="some", records=run.records[2:])
    failed = {record.image_id: "no such file" for record in run.records[:2]}
    severities = [
        comparability(run, replace(some, **more))[0].severity
        for more in (
            {},
            {"failed": failed},
            {"provenance": Provenance(missing="skip")},
            {"provenance": Provenance(empty_gt=(*failed,))},
            {"failed": {"im0000": "no such file"}},
        )
    ]
    said, forbids = Severity.SAID, Severity.FORBIDS
    assert severities == [forbids, said, said, said, forbids]
    compared = bb.compare([run, replace(some, failed=failed)], n_boot=5)
    assert compared.n_images == 6
    assert "2 images are not in every run, such as 'im0000'" in compared.notes[0]
    with pytest.raises(bb.DataError, match=r"not in every run.*\(common=True"):
        bb.compare([run, some], n_boot=5)


def test_a_task_is_compared_with_as_a_run_is():
    task = tasks()["bsds500-test/boundary"]
    assert comparability(bb.Evaluation.load("ref:hed"), task) == []
    (difference,) = comparability(simulated_run("a", 8), task)
    assert (difference.field, difference.severity) == ("images", Severity.FORBIDS)
    assert why_not_beside(simulated_run("a", 8), task.name).startswith("8 images, but published")


def test_a_task_that_states_only_a_fingerprint_is_the_set_of_the_run():
    run = bb.evaluate_items([("a", np.eye(20), [np.eye(20)])], workers=1)
    task = Task("mine/boundary", "bsds500", fingerprint=run.identity.fingerprint)
    assert comparability(run, task) == []
    other = Task("mine/boundary", "bsds500", fingerprint="0" * 16)
    assert [difference.field for difference in comparability(run, other)] == ["truth"]


def test_masks_that_were_cut_are_said_beside_those_of_two_values():
    mask = np.zeros((20, 30), np.uint8)
    mask[5:15, 5:25] = 255
    gray = np.where(mask, 200 + np.arange(30), np.arange(30)).astype(np.uint8)
    plain, cut, same = (
        bb.evaluate_items([("a", pred, mask)], "masks", metrics="contour", name=name, **FAST)
        for name, pred in (("plain", mask), ("cut", gray), ("same", mask // 255))
    )
    (difference,) = comparability(plain, cut)
    assert (difference.field, difference.severity) == ("reading", Severity.SAID)
    assert (difference.ours, difference.theirs) == ("two values", "gray, cut")
    assert comparability(plain, same) == []
    assert any("masks of predictions" in note for note in bb.compare([plain, cut], n_boot=2).notes)


NAMES = ["R50", "ODS", "AP", "images", "Method", "boundary", "- under ODS", "a: b", "ODS, AP", ":"]


@pytest.mark.parametrize("name", NAMES)
def test_a_run_named_like_a_column_keeps_its_notes(name):
    runs = [replace(run_of("boundary"), name=name), run_of("boundary", "max_dist")]
    for columns in (None, ["ods"], ["ap"], ["all"]):
        (table,) = score_tables(runs, columns=columns)
        assert sum(note.startswith(f"{name}: protocol bsds500*") for note in table.note_lines) == 1
    compared = bb.compare(runs, n_boot=2, force=True).only(["ods"])
    assert any(note.startswith(f"{name}, max_dist: protocols") for note in compared.notes)
    shown = compared.tables()[0].note_lines
    assert [line for line in shown if line in compared.notes] == list(compared.notes)


# ---- the threshold of another run ----------------------------------------------------------------

FORMS = {
    "soft8": lambda soft: np.round(soft * 255).astype(np.uint8),
    "soft16": lambda soft: np.round(soft * 65535).astype(np.uint16),
    "float": lambda soft: soft,
}


def run_in_form(form, name):
    """A run of the same maps, written in one form."""
    given = [(image_id, FORMS[form](soft), mask) for image_id, soft, mask in items()]
    return bb.evaluate_items(given, BSDS, name=name, **FAST)


@pytest.mark.parametrize("form", ["soft16", "float"])
def test_a_threshold_is_of_one_form_of_maps(form):
    val, run = run_in_form("soft8", "val"), run_in_form(form, "mine")
    assert at_threshold_of(run_in_form("soft8", "mine"), val)
    for runs in ((run, val), (val, run)):
        with pytest.raises(bb.DataError, match="kind of prediction: ") as error:
            at_threshold_of(*runs)
        line = str(error.value)
        assert "\n" not in line
        assert {"soft8", form} <= set(re.findall(r"\w+", line))


@pytest.mark.parametrize("field", ["invert", "normalise"])
def test_a_threshold_is_of_one_reading(field):
    changed = [(i, 1 - soft if field == "invert" else soft, mask) for i, soft, mask in items()]
    run = bb.evaluate_items(changed, BSDS.replace(**{field: True}), name="mine", **FAST)
    with pytest.raises(bb.DataError, match=f"{field}.*false / true"):
        at_threshold_of(run, run_in_form("float", "val"))


def segmentations(levels):
    """A run of label maps of so many levels, cut from the same maps."""
    given = []
    for image_id, soft, mask in items():
        cuts = np.linspace(0.2, 0.8, levels)
        given.append((image_id, bb.Prediction(image_id, segs=[(soft > c) + 1 for c in cuts]), mask))
    return bb.evaluate_items(given, BSDS, name=f"levels{levels}", **FAST)


def test_levels_of_segmentations_are_thresholds_of_themselves_alone():
    three, five, soft = segmentations(3), segmentations(5), run_in_form("soft8", "val")
    assert at_threshold_of(three, three)
    for runs in ((three, five), (five, three)):
        with pytest.raises(bb.DataError, match=r"thresholds from 1 to . / 1 to ."):
            at_threshold_of(*runs)
    for runs in ((three, soft), (soft, three)):
        with pytest.raises(bb.DataError, match=r"kind of prediction: .*segs"):
            at_threshold_of(*runs)


def test_a_threshold_of_ultrametric_maps_is_theirs():
    def ucm2(soft):
        doubled = np.zeros([2 * n + 1 for n in soft.shape])
        doubled[2::2, 2::2] = soft
        return doubled

    given = [(i, bb.Prediction(i, ucm2=ucm2(soft)), mask) for i, soft, mask in items()]
    run = bb.evaluate_items(given, BSDS, name="mine", **FAST)
    assert at_threshold_of(run, run)
    with pytest.raises(bb.DataError, match="kind of prediction: float / ucm2"):
        at_threshold_of(run, run_in_form("float", "val"))
