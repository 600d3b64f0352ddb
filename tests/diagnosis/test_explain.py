"""Explaining a score: planted differences are the first answer; each reading is what it says."""

import json
import shutil

import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.diagnosis.causes import counting_changes, iterate_rules
from bsdsbench.diagnosis.explain import Search, explain, load_run_with_files, parse_targets
from bsdsbench.diagnosis.explanation import Explanation, Trial, rank_trials
from bsdsbench.errors import DataError
from bsdsbench.metrics import registry
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.curve import PRCurve
from tests.helpers.crops import crops
from tests.helpers.making import make_set
from tests.helpers.runs import call, counted, refused

pytestmark = pytest.mark.filterwarnings("ignore::bsdsbench.errors.InputWarning")
BASE = Protocol.preset("bsds500").replace(thresholds=9)
BOUNDARY = registry.get("boundary")


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    """Raw maps of crops of one sample image."""
    folders = crops(tmp_path_factory.mktemp("raw"), "structure-tensor-raw", ("fruit1",))
    return counted(*folders, BASE)


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """Four small made images of two annotators."""
    return counted(*make_set(tmp_path_factory.mktemp("many") / "set", images=4), BASE)


def scores_of(run):
    found = run.boundary_score()
    return {"ods": found.ods.f, "ois": found.ois.f, "ap": found.ap}


def evaluated(run, **changes):
    """The scores of a run's maps under another protocol."""
    protocol = run.protocol.replace(**changes)
    return scores_of(counted(run.provenance.pred, run.provenance.gt, protocol))


def many_to_one(run, changes):
    """The scores of a run with pixels matched any number of times, as the matching counts them."""
    from bsdsbench.diagnosis.causes import many_to_one_counts
    from bsdsbench.runs.sources import find_sources

    files, protocol = find_sources(run), run.protocol.replace(**changes)
    records = [
        bb.ImageRecord(
            r.image_id,
            r.size,
            {"boundary": many_to_one_counts(*files.load(r.image_id, run.protocol), protocol)},
        )
        for r in run.records
    ]
    return scores_of(bb.Evaluation(protocol, "many", records))


SETTINGS = {
    "max_dist 0.02": {"max_dist": 0.02},
    "NMS rcf (2, 5, 1.01 (8 bit, not smoothed))": {"nms": True, "nms_params": "rcf"},
    "thin False": {"thin": False},
    "thresholds 33": {"thresholds": 33},
    "operator >": {"operator": ">"},
}


def explained(run, targets, seconds=600, **options):
    return explain(run, targets, workers=1, seconds=seconds, **options)


@pytest.mark.slow
@pytest.mark.parametrize("label", SETTINGS)
def test_one_setting_is_the_first_answer(raw, label):
    """With the scores that evaluating so gives."""
    truth = evaluated(raw, **SETTINGS[label])
    told = explained(raw, truth)
    if truth == scores_of(raw):
        assert told.answer.label == "as it is"
        return
    assert (told.answer.label, told.answer.n_causes, told.answer.exact) == (label, 1, True)
    assert told.answer.gap == 0
    assert any(t.label == "as it is" for t in told.trials)
    assert f"with {label!r}: ODS from" in told.sentence()


def test_a_setting_without_the_asked_score_is_no_fault(raw):
    """With the operator ">" there is no point at threshold 0, without which edter gives no AP."""
    protocol = BASE.replace(thresholds=(0.0, 0.3, 0.6), ap_rule="edter")
    run = counted(raw.provenance.pred, raw.provenance.gt, protocol)
    labels = {trial.label for trial in explained(run, {"ap": "0.5"}).trials}
    assert "operator >" not in labels
    assert "operator > + AP rule bsds" in labels


@pytest.mark.slow
@pytest.mark.parametrize(
    ("label", "changes"),
    [("many-to-one matching", {}), ("many-to-one matching of unthinned maps", {"thin": False})],
)
def test_many_to_one_matching_is_found(raw, label, changes):
    assert explained(raw, many_to_one(raw, changes)).answer.label == label


@pytest.mark.slow
@pytest.mark.parametrize(
    ("label", "drawn"),
    [
        ("the first annotator alone", lambda maps: maps[:1]),
        ("all annotators drawn into one map", lambda maps: maps.any(axis=0)[None]),
    ],
)
def test_other_annotators_are_found(raw, label, drawn, tmp_path):
    truth = np.load(f"{raw.provenance.gt}/fruit1.npy")
    np.save(tmp_path / "fruit1.npy", drawn(truth))
    other = counted(raw.provenance.pred, tmp_path, BASE)
    assert explained(raw, scores_of(other)).answer.label == label


@pytest.mark.slow
def test_two_settings_are_found_if_none_alone_will_do(raw):
    told = explained(raw, evaluated(raw, nms=True, max_dist=0.02))
    assert set(told.answer.label.split(" + ")) == {"NMS hed (1, 5, 1.01 (8 bit))", "max_dist 0.02"}
    assert told.answer.n_causes == 2


@pytest.mark.parametrize("rule", ["edter", "endpoints", "seism", "sbd", "101-point"])
def test_rules_of_ap_are_found(many, rule):
    thresholds = (0.0, *BASE.thresholds) if rule == "edter" else BASE.thresholds
    value = evaluated(many, ap_rule=rule, thresholds=thresholds)["ap"]
    told = explained(many, {"ap": value})
    assert told.answer.scores["ap"] == pytest.approx(value)
    if abs(value - told.base["ap"]) > 1e-6:
        assert told.answer.kind == "reading"
        assert f"AP rule {rule}" in [t.label for t in told.fitting]


def test_readings_by_hand():
    # two images; thresholds 1, 2. Sums: R 6/10, 2/10; P 6/12, 2/2
    counts = np.array([[[4, 5, 4, 6], [2, 5, 2, 2]], [[2, 5, 2, 6], [0, 5, 0, 0]]])
    at = np.array([0.1, 0.9])
    both = PRCurve.of_counts(at, counts.sum(axis=0))
    found = {}
    for label, _, scores in iterate_rules(both, PRCurve.of_counts(at, counts), both):
        (found[label],) = scores.values()

    mean_f = (2 * 4 / 6 * 4 / 5 / (4 / 6 + 4 / 5) + 2 * 2 / 6 * 2 / 5 / (2 / 6 + 2 / 5)) / 2
    fall = sum(1 - 0.5 * k / 40 for k in range(1, 41))
    expected = {
        "ODS at a threshold, not interpolated": 2 * 0.5 * 0.6 / (0.5 + 0.6),
        "ODS as mean of the images' F": mean_f,
        "OIS as mean of the images' best F": mean_f,
        # recall 0 -> 0.2 at P 1, 0.2 -> 0.6 at P 0.5; trapezoid: .2 to .6, mean P .75
        "AP as a step sum": 0.2 * 1 + 0.4 * 0.5,
        "AP as a trapezoid sum": 0.4 * 0.75,
        "AP rule bsds": (1 + fall) / 100,
    }
    assert {label: found[label] for label in expected} == pytest.approx(expected)


@pytest.mark.slow
def test_images_of_a_split_file_are_found_and_unnamed_ones_are_not_tried(many, tmp_path):
    pred, gt = (shutil.copytree(getattr(many.provenance, k), tmp_path / k) for k in ("pred", "gt"))
    (tmp_path / "mine.txt").write_text("im001\nim003\n", "utf-8")
    run = counted(pred, gt, BASE)
    truth = scores_of(counted(pred, gt, BASE, split_file=tmp_path / "mine.txt"))
    assert explained(run, truth).answer.label == "the images of the split file mine.txt only"
    (tmp_path / "first.txt").write_text("im000\nim001\n", "utf-8")
    first = scores_of(counted(pred, gt, BASE, split_file=tmp_path / "first.txt"))
    (tmp_path / "first.txt").unlink()
    assert explained(run, first, seconds=0.0).answer is None


@pytest.mark.parametrize("seconds", [0.0, 600.0])
@pytest.mark.slow
def test_what_no_reading_reaches_is_said(many, seconds):
    told = explained(many, {"ods": 0.123456}, seconds=seconds)
    assert told.answer is None
    assert told.complete == bool(seconds)
    assert "No known reading of these 4 images" in told.sentence()
    assert ("in the given time" in told.sentence()) != told.complete
    gaps = [t.gap for t in told.trials]
    assert gaps == sorted(gaps)


@pytest.mark.parametrize("n_counted", [0, 1, 30])
def test_settings_that_the_time_did_not_suffice_for_are_named(many, monkeypatch, n_counted):
    """The time is up after so many counts: each setting is counted on all images, or named."""
    whole, asked, count = set(), [], Search.count_images

    def timed(self, setting, at):
        asked.append(setting)
        if len(asked) > n_counted:
            self.end_time = -np.inf
        counts = count(self, setting, at)
        whole.update({setting.label} if counts and len(at) == len(many.records) else ())
        return counts

    monkeypatch.setattr(Search, "count_images", timed)
    told = explained(many, {"ods": 0.123456})
    every = {s.label for s in counting_changes(BOUNDARY) if s.differs(many.protocol, BOUNDARY)}
    assert not told.complete
    assert told.not_counted
    assert set(told.not_counted) == every - whole
    assert told.not_counted_line.startswith(
        f"not counted within the time limit: {told.not_counted[0]}, "
    )
    assert all(label in told.not_counted_line for label in told.not_counted)


def test_a_run_without_files_names_the_kinds_of_settings_that_it_cannot_count():
    told = explain(bb.Evaluation.load("ref:hed"), {"ods": "0.79"}, workers=1)
    assert told.not_counted_line.startswith("not counted because the files are not given: ")
    assert {"thresholds", "max_dist", "thin", "matching"} <= set(told.not_counted)
    assert "these 200 images from their counts alone reaches" in told.sentence()


@pytest.mark.slow
def test_nothing_is_said_to_be_left_out_where_all_was_counted(many):
    told = explained(many, {"ods": f"{many.boundary_score().ods.f:.4f}"})
    assert told.complete
    assert told.not_counted_line == ""


@pytest.mark.slow
def test_from_a_saved_run_and_the_command_line(raw, tmp_path):
    raw.save(tmp_path / "out")
    run, _ = load_run_with_files(tmp_path / "out", None, Protocol())
    assert run.equals(raw)
    target = evaluated(raw, max_dist=0.011)["ods"]
    words = ["explain", tmp_path / "out", "--target", f"ods={target}", "--quiet", "--workers", "1"]
    lines = call(*words).splitlines()
    assert lines[1].startswith("= off 0.0000")
    assert lines[1].endswith("max_dist 0.011")
    assert "2 readings fit the target" in lines[-1]
    found = json.loads(call(*words, "--format", "json"))
    assert len(found["trials"]) <= 10
    assert found["sentence"] == lines[-1]


def test_between_two_signatures(many, tmp_path):
    many.save(tmp_path / "run")
    other = str(many.signature).replace("tol:.0075d", "tol:.011d").replace("|thin|", "|unthinned|")
    found = call("explain", "--between", tmp_path / "run", other).splitlines()
    assert [line.partition(":")[0] for line in found] == ["tolerance", "thinning"]
    same = call("explain", "--between", many.signature, many.signature)
    assert same.startswith("no known difference")


# ---- targets -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "score", "reached"),
    [
        ("0.76", 0.7561, True),
        ("0.7600", 0.7561, False),
        ("0.760", 0.7596, True),
        (0.76, 0.7499, False),
        ("0.7600", 0.75996, True),
    ],
)
def test_a_target_is_reached_where_the_digits_agree(target, score, reached):
    assert Trial("x", "setting", {"ods": score}, {"ods": target}).reached == reached


@pytest.mark.parametrize(
    ("who", "n_causes", "target", "finding"),
    [
        ("NYUDv2 programs", 1, "0.73", True),
        ("home-made scripts", 1, "0.73", False),
        ("SBD; NYUDv2 programs", 2, "0.731", False),
    ],
)
def test_what_no_program_does_is_no_finding_at_few_digits(who, n_causes, target, finding):
    hit = Trial("hit", "setting", {"ods": 0.73124}, {"ods": target}, who, n_causes)
    far = Trial("far", "setting", {"ods": 0.5}, {"ods": target})
    found = Explanation({"ods": target}, {"ods": 0.6}, rank_trials([far, hit]), 1.0, 9)
    assert (found.answer is not None) == finding
    assert found.trials[0].label == "hit"


@pytest.mark.parametrize("text", ["0.788", "ods=high", "ods=788", "ods=nan", "ods=.7,ods=.8", ""])
def test_targets_must_be_scores_in_range(text):
    with pytest.raises(DataError, match="target"):
        parse_targets([text])


@pytest.mark.parametrize(
    ("targets", "words"),
    [
        (None, "targets None: expected a dict of scores"),
        ("ods=.5", "targets 'ods=.5': expected a dict"),
        ([("ods", 0.5)], "targets of type list: expected a dict"),
        ({}, "targets of type dict: expected a dict of scores"),
        ({"ods": 78.8}, "target 'ods': 78.8, expected a number in .0, 1."),
        ({"ods": None}, "target 'ods': None, expected a number"),
        ({"ods": "high"}, "target 'ods': 'high', expected a number"),
        ({"ods": float("nan")}, "target 'ods': nan, expected a number"),
    ],
)
def test_targets_are_numbers_by_score(targets, words):
    refused(words, explain, bb.Evaluation.load("ref:hed"), targets)


def test_what_is_explained_is_an_evaluation(tmp_path):
    refused("run: of type .*, expected an Evaluation", explain, tmp_path, {"ods": 0.5})
    refused("seconds: 'x'", explain, bb.Evaluation.load("ref:hed"), {"ods": 0.5}, seconds="x")
