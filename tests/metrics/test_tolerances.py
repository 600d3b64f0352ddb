"""Several tolerances in one run: each is its single run, and all know them."""

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import bsdsbench as bb
from bsdsbench.errors import ProtocolError
from bsdsbench.plotting import plot_runs
from bsdsbench.protocol.protocol import Protocol, preset_names
from bsdsbench.protocol.signature import Severity, Signature
from tests.helpers.making import make_set
from tests.helpers.runs import call, counted, refused

FIVE = Protocol.preset("bsds500").replace(thresholds=5)
KINDS = {"max_dist": (0.0075, 0.03, 0.00375), "max_dist_px": (1.0, 2.0, 4.0)}
MORE = [{}, {"clean": True}, {"thresholds": "0+5", "ap_rule": "edter"}, {"thin": False}]


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    return make_set(tmp_path_factory.mktemp("tolerances"))


@pytest.fixture(scope="module")
def runs(images, tmp_path_factory):
    """The run at three tolerances, those at each by the name of the tolerance, and their folder."""
    out = tmp_path_factory.mktemp("out")
    several = FIVE.replace(max_dist=KINDS["max_dist"])
    three = counted(*images, several, out=out / "three", name="mine")
    alone = {}
    for name, value in zip(several.tolerance_names, several.tolerances, strict=True):
        alone[name] = counted(*images, FIVE.replace(max_dist=value), out=out / name)
    return three, alone, out


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    pred=arrays.arrays(np.uint8, (12, 15), elements=st.sampled_from([0, 0, 0, 60, 130, 255])),
    truth=arrays.arrays(np.bool_, (2, 12, 15), elements=st.sampled_from([False, False, True])),
    kind=st.sampled_from(sorted(KINDS)),
    more=st.sampled_from(MORE),
)
def test_each_is_its_single_run_and_matched_pixels_rise(pred, truth, kind, more):
    scale = 20 if kind == "max_dist" else 1
    tolerances = [scale * value for value in KINDS[kind]]
    several = FIVE.replace(**{kind: tolerances, "empty_gt": "count", **more})
    counts = bb.boundary_counts(pred, list(truth), several)
    tables = [counts.matches, *counts.other_matches]
    for value, table in zip(tolerances, tables, strict=True):
        one = bb.boundary_counts(pred, list(truth), several.replace(**{kind: value}))
        np.testing.assert_array_equal(table, one.matches)
        np.testing.assert_array_equal(counts.thresholds, one.thresholds)
    for smaller, larger in pairwise([tables[k] for k in np.argsort(tolerances)]):
        assert (larger[:, 0] >= smaller[:, 0]).all()  # the pairs of all annotators
        np.testing.assert_array_equal(larger[:, 1::2], smaller[:, 1::2])
    one_annotator = bb.boundary_counts(pred, list(truth[:1]), several)
    tables = [one_annotator.matches, *one_annotator.other_matches]
    for smaller, larger in pairwise([tables[k] for k in np.argsort(tolerances)]):
        assert (larger[:, ::2] >= smaller[:, ::2]).all()


def test_each_column_is_its_single_run_bit_for_bit(runs):
    three, alone, _ = runs
    score = three.boundary_score()
    for name, run in alone.items():
        single, key = run.boundary_score(), name.replace(".", "_")
        assert score[f"ods@{key}"] == single.ods
        assert score[f"ois@{key}"] == single.ois
        assert score[f"ap@{key}"] == single.ap
    first = next(iter(alone.values())).boundary_score()
    for name in ("ods", "ois", "ap", "r50"):
        assert score[name] == first[name]
    assert score["ods@mean"] == np.mean([run.boundary_score().ods.f for run in alone.values()])
    assert score["ap@mean"] == np.mean([run.boundary_score().ap for run in alone.values()])


def test_official_files_and_records_are_those_of_the_first(runs):
    three, alone, out = runs
    (first, *_) = alone
    for name in ("eval_bdry.txt", "eval_bdry_thr.txt", "eval_bdry_img.txt"):
        assert (out / "three" / name).read_bytes() == (out / first / name).read_bytes()
    again = bb.Evaluation.load(out / "three")
    assert again.equals(three)
    assert json.dumps(again.scores()) == json.dumps(three.scores())


def test_the_name_of_a_preset_stays_where_its_tolerance_is_first():
    bsds = Protocol.preset("bsds500")
    assert bsds.replace(max_dist=[0.0075, 0.00375]).name == "bsds500"
    assert bsds.replace(max_dist=[0.00375, 0.0075]).name == "bsds500*"
    assert bsds.replace(max_dist_px=[1, 2]).name == "bsds500*"
    assert bsds.replace(max_dist=[0.0075]) == bsds
    loaded = Protocol.from_mapping(bsds.replace(max_dist=[0.0075, 0.00375]).to_mapping())
    assert loaded.tolerances == (0.0075, 0.00375)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"max_dist": [0.0075, 0.00375]}, "tol:.0075d,.00375d"),
        ({"max_dist": [0.0075, 0.00375, 0.001875]}, "tol:.0075d,.00375d,.001875d"),
        ({"max_dist_px": [1, 2, 4]}, "tol:1px,2px,4px"),
        ({"max_dist_px": 0}, "tol:0px"),
    ],
)
def test_the_signature_says_them_and_is_read_back(changes, text):
    protocol = Protocol.preset("bsds500").replace(**changes)
    line = str(Signature(protocol))
    assert f"|{text}|" in line
    assert Signature.parse(line).protocol == protocol


def test_faults_name_what_is_wrong(images):
    base = Protocol.preset("bsds500")
    for value in ([], [0.01, 0.01], [0.01, 2], ["a"], [0.01] * 20, [[0.1, 0.2], 0.3]):
        refused("max_dist ", base.replace, max_dist=value, error=ProtocolError)
    refused("max_dist_px", base.replace, max_dist_px=[1, -1], error=ProtocolError)
    for text in ("1px,.01d", "1px,", "4"):
        line = f"bsdsbench 1|set:3|tol:{text}"
        refused("expected a number and d or px", Signature.parse, line, error=ProtocolError)
    words = "metric crispness: counts at one tolerance, not at 1px, 2px"
    two = FIVE.replace(max_dist_px=[1, 2])
    refused(words, counted, *images, two, metrics="crispness")
    assert counted(*images, two, metrics=("boundary", "pixel")).metrics == ("boundary", "pixel")


@pytest.mark.parametrize("option", ["--max-dist", "--max-dist-px"])
def test_the_command_line_has_a_column_for_each(images, option, tmp_path):
    pred, gt = images
    value = {"--max-dist": ".0075,.00375,.001875", "--max-dist-px": "1,2,4"}[option]
    keys = {"--max-dist": ["0_0075", "0_00375", "0_001875"], "--max-dist-px": ["1px", "2px", "4px"]}
    words = ["--gt", gt, "--thresholds", "5", "--workers", "1", "--executor", "thread", "--quiet"]
    call("evaluate", pred, *words, option, value, "-o", tmp_path / "out")
    text = call("report", tmp_path / "out", "--format", "csv")
    shown = call("report", tmp_path / "out", "--format", "markdown")
    for score in ("ods", "ois", "ap"):
        for key in [*keys[option], "mean"]:
            assert f"{score}@{key}" in text
            assert f"{score.upper()}@{key.replace('0_', '.')}" in shown
    second = keys[option][1].replace("_", ".")
    some = call("report", tmp_path / "out", "--columns", f"ods@{second}", "--format", "csv")
    assert f"ods@{keys[option][1]}" in some
    assert f"ods@{keys[option][2]}" not in some
    both = ["--max-dist", "0.01", "--max-dist-px", "2"]
    with pytest.raises(Exception, match="give --max-dist or --max-dist-px, not both"):
        call("evaluate", pred, *words, *both)
    call("evaluate", pred, *words, "--protocol", "crack-px", "--max-dist", "0.01")


def test_compare_and_gate_know_them(runs, tmp_path):
    three, alone, out = runs
    found = bb.compare([three, three], names=["a", "b"], n_boot=20)
    assert "boundary.ods@0_03" in found.scores
    assert found.interval_of("a", "ods@0_03").value > 0
    assert found.only(["ODS@.03"]).shown == ("boundary.ods@0_03",)
    assert all(found.tables())
    (difference,) = bb.comparability(three, alone["0.0075"])
    assert (difference.field, difference.severity) == ("max_dist", Severity.SAID)
    assert "the main scores are at the first" in difference.line()
    with_first = bb.compare([three, alone["0.0075"]], names=["a", "b"], n_boot=20)
    assert "boundary.ods" in with_first.scores
    assert not [score for score in with_first.scores if "@" in score]
    (difference,) = bb.comparability(three, alone["0.03"])
    assert difference.severity is Severity.FORBIDS
    # The first tolerance is the same, but "ods@mean" is over others
    two = replace(three, protocol=three.protocol.replace(max_dist=three.protocol.max_dist[:2]))
    assert bb.comparability(three, two)[0].severity is Severity.FORBIDS
    baseline = tmp_path / "baseline.json"
    call("check", out / "three", "--baseline", baseline, "--update", "--quiet")
    assert "boundary.ods@0_03" in json.loads(baseline.read_text("utf-8"))["scores"]
    lines = call("check", out / "three", "--baseline", baseline)
    assert "boundary.ap@mean" in lines


def test_plot_of_ods_over_the_tolerance(runs, tmp_path):
    three, alone, _ = runs
    figure = plot_runs([three], kind="tolerance", path=tmp_path / "t.png")
    (line,) = [x for x in figure.axes[0].lines if str(x.get_label()).startswith("mine")]
    assert line.get_xdata().tolist() == sorted(KINDS["max_dist"])
    fs = [alone[str(value)].boundary_score().ods.f for value in sorted(KINDS["max_dist"])]
    assert line.get_ydata().tolist() == fs
    assert figure.axes[0].get_xlabel() == "Tolerance (fraction of the diagonal)"
    with pytest.raises(bb.DataError, match="expected several") as caught:
        plot_runs([alone["0.03"]], kind="tolerance")
    fixes = ("max_dist=[0.0075, 0.00375]", "--max-dist 0.0075,0.00375")  # in each language
    assert all(fix in str(caught.value) for fix in fixes)


def test_errors_and_humans_have_them_too(images, runs, tmp_path):
    three, _, _ = runs
    with_errors = counted(*images, three.protocol, errors=True)
    for one, other in zip(three.records, with_errors.records, strict=True):
        a, b = one.counts["boundary"], other.counts["boundary"]
        np.testing.assert_array_equal(a.other_matches, b.other_matches)
    (tmp_path / "ids.txt").write_text("\n".join(three.image_ids))
    split = tmp_path / "ids.txt"
    human = bb.evaluate_humans(images[1], three.protocol, split_file=split, workers=1)
    assert {"ods@0_0075", "ods@mean"} <= human.boundary_score().keys()


def test_shared_counts_have_them(runs, tmp_path):
    three, _, _ = runs
    assert bb.Evaluation.load(three.share(tmp_path / "a.npz")).equals(three)


def test_presets_of_several():
    several = {name for name in preset_names() if len(Protocol.preset(name).tolerances) > 1}
    assert several == {"sdped", "crack-px"}
    assert Protocol.preset("crack-px").tolerance_names == ("2px", "5px")
    strict = Protocol.preset("strict")
    assert Protocol.preset("sdped").tolerances[0] == strict.max_dist


def test_a_tolerance_below_a_pixel_is_warned_of(images, recwarn):
    for pixels, is_said in ((0.0075, True), (0, False), (1.5, False)):
        counted(*images, FIVE.replace(max_dist_px=pixels))
        texts = [str(recwarn.pop().message) for _ in range(len(recwarn))]
        assert ["only equal pixels match" in text for text in texts] == [True] * is_said


def test_csv_of_other_tolerances_is_said_and_latex_has_no_best(runs):
    _, _, out = runs
    one, other, *_ = sorted(map(str, out.iterdir()))
    assert "Protocols differ; such scores" in call("report", one, other, "--format", "csv")
    assert "textbf" not in call("report", one, other, "--format", "latex")
    assert "AP@mean: not computed for pred." in call("report", out / "three", one)
