"""The line under a table: printed, read back to an equal protocol, explained word by word."""

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bsdsbench.errors import ProtocolError
from bsdsbench.protocol.nms_recipes import RECIPES
from bsdsbench.protocol.protocol import Protocol, preset_names
from bsdsbench.protocol.signature import Severity, Signature
from bsdsbench.scores.curve import AP_RULES
from tests.helpers.runs import call

BSDS = Protocol.preset("bsds500")
LINE = (
    "bsdsbench 0.2.0|bsds500-test:200/200|gt:fa866d15|ann:all|pred:soft8|thr:99|tol:.0075d|"
    "match:1to1|nms:none|thin|ap:bsds"
)


def test_the_line_of_the_main_benchmark():
    mine = Signature(BSDS, "bsds500-test:200/200", "fa866d15", pred="soft8", version="0.2.0")
    assert str(mine) == LINE
    assert Signature.parse(LINE) == mine


def test_words_are_explained():
    assert Signature.parse(LINE).decode()[1:4] == [
        ("bsds500-test:200/200", "All 200 images of bsds500-test."),
        ("gt:fa866d15", "The fingerprint of the ground truth begins with fa866d15."),
        ("ann:all", "All annotators count."),
    ]


def test_every_preset_round_trips_in_a_short_line():
    for name in preset_names():
        mine = Signature(Protocol.preset(name), set="set:7")
        assert len(str(mine)) < 200
        assert Signature.parse(str(mine)) == mine


CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "thresholds": st.sampled_from(
            [
                *(5, 99, "8bit", "deepcrack", (0.1, 0.25), (0.0, 0.5), (0.0, *BSDS.thresholds)),
                *((0.001, 0.999), "0.1..0.9/50", (0.1, 0.2, 0.25, 0.3, 0.9)),
            ]
        ),
        "max_dist": st.floats(1e-6, 0.5),
        "max_dist_px": st.none() | st.floats(0, 30) | st.integers(0, 30),
        "thin": st.booleans(),
        "nms": st.booleans(),
        "nms_params": st.sampled_from([*RECIPES, {"radius": 7}, {"multiplier": 1.07, "bits": 16}]),
        "invert": st.booleans(),
        "gt_threshold": st.none() | st.floats(0.1, 1) | st.just(1),
        "gt_kind": st.sampled_from(["boundaries", "labels"]),
        "ap_rule": st.sampled_from([*AP_RULES]),
        "ods_rule": st.sampled_from(["interpolated", "maximum"]),
        "operator": st.sampled_from([">=", ">"]),
        "options": st.sampled_from(
            [
                {"semantic": {"classes": ("a|b", 'c"%,', "d=:e"), "radius": 2, "first": None}},
                {"saliency": {"beta2": 1, "cap": "max"}, "other-f": {"radius": 2, "rule": "x=|"}},
                {"saliency": {"beta2": 1.0}, "depth": {"invalid": "none"}},
                {"contour": {"empty": "inf", "spacing": (2, 1.0)}},
            ]
        ),
    },
)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(preset_names()), CHANGES)
@pytest.mark.slow
def test_any_protocol_round_trips(name, changes):
    """The name apart, which moves no score."""
    mine = Signature(Protocol.preset(name).replace(**changes), "a set:3/4", "abcd")
    read = Signature.parse(str(mine))
    assert read.differences(mine) == []
    assert str(read) == str(mine)
    assert len(read.decode()) == len(read.words())
    assert read.sentence()


def test_numbers_are_compared_as_numbers():
    two, twice = (
        Signature(BSDS.replace(max_dist_px=n, options={"saliency": {"beta2": n}})) for n in (2, 2.0)
    )
    assert two.protocol == twice.protocol
    assert str(two) == str(twice) == str(Signature.parse(str(two)))
    assert two.differences(twice) == []
    written = Signature.parse(LINE.replace(".0075d", "2.0px") + "|saliency.beta2=2.0")
    assert [d.field for d in written.differences(two)] == ["set"]


def test_differences_in_words():
    other = BSDS.replace(max_dist=0.011, ap_rule="endpoints", thin=False, nms=True, operator=">")
    a = Signature(BSDS, "bsds500-val:100/100", pred="soft8")
    b = Signature(other.replace(gt_threshold=0.5), "bsds500-val:99/100", match="1toN")
    found = {d.field: d for d in a.differences(b)}
    words = ["set", "max_dist", "match", "nms", "thin", "operator", "ap_rule", "gt_threshold"]
    assert list(found) == words
    assert [found[word].of_protocol for word in words] == [w not in ("set", "match") for w in words]
    assert found["max_dist"].line() == "tolerance: .0075d / .011d; a larger one raises every score"
    assert "0.8038 against 0.7657" in found["match"].line()
    assert (found["nms"].theirs, found["thin"].ours) == ("hed", "thin")
    assert found["ap_rule"].theirs == "endpoints"
    assert found["operator"].line().startswith("threshold operator: >= / >")
    assert found["gt_threshold"].fault() == "protocols differ in gt_threshold: none / 0.5"
    assert found["max_dist"].fault().startswith("protocols differ in max_dist (tolerance: .0075d")
    assert found.pop("nms").severity is Severity.SAID
    assert {difference.severity for difference in found.values()} == {Severity.FORBIDS}
    assert a.differences(a) == []


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("bsdsbench 0.2.0", "other", "'other"),
        ("200/200", "all", "bsds500-test:all"),
        ("tol:.0075d", "tol:4", "tol:4"),
        ("nms:none", "nms:bdcn", "'bdcn'"),
        ("nms:none", "nms:a,2,1,raw,8", "a,2,1,raw,8"),
        ("thin|", "thin|thr:9|", "thr:9"),
        ("thr:99", "proto:biped.1|thr:99", "version 1 of biped"),
    ],
)
def test_faults_are_named(old, new, named):
    with pytest.raises(ProtocolError, match="signature") as caught:
        Signature.parse(LINE.replace(old, new))
    assert named in str(caught.value)


def test_presets_that_differ_in_a_field_without_a_word_differ():
    """Neither is changed, so that no line names the field."""
    a, b = (Signature(Protocol.preset(name)) for name in ("bsds500", "skeleton"))
    fields = {d.field for d in a.differences(b) if d.severity is Severity.FORBIDS}
    changed = {name for name in a.protocol.changed(b.protocol) if "." not in name}
    assert fields == changed - {"nms"}
    assert changed - set(a.texts()) - set(b.texts())


def test_words_of_what_is_not_used_are_left_out():
    """They are the preset's when the line is read, and differ from nothing."""
    unused = frozenset({*Protocol.names(), "semantic"} - {"invert"})
    changed = Protocol.preset("saliency").replace(
        max_dist=0.02, invert=True, options={"saliency": {"beta2": 0.5}, "semantic": {"radius": 1}}
    )
    mine = Signature(changed, set="set:3", pred="soft8", version="0.2.0", unused=unused)
    line = "bsdsbench 0.2.0|set:3|gt:?|ann:all|pred:soft8|proto:saliency.2|invert=true|"
    assert str(mine) == line + "saliency.beta2=0.5"
    read = Signature.parse(str(mine))
    assert str(read) == str(mine)
    options = {"saliency": {"beta2": 0.5}}
    assert read.protocol == Protocol.preset("saliency").replace(invert=True, options=options)
    whole = Signature(changed.replace(max_dist=0.03, thin=True, ap_rule="sbd"), set="set:3")
    ignored = {"max_dist", "thin", "ap_rule"}
    assert {(d.field, d.severity) for d in whole.differences(mine)} == {
        (field, Severity.IGNORED) for field in ignored
    }
    other = attrs.evolve(changed, options={"saliency": {"beta2": 1}}).replace(
        invert=False, max_dist=0.03
    )
    differing = Signature(other, set="set:3").differences(read)
    fields = {d.field for d in differing if d.severity is Severity.FORBIDS}
    assert fields == {"saliency.beta2", "invert"}


def test_every_word_has_a_meaning_of_its_own():
    for name in preset_names():
        wide = Protocol.preset(name).replace(max_dist=0.123, max_dist_px=None)
        signature = Signature(wide, set="set:7")
        found = signature.decode()
        assert [word for word, _ in found] == signature.words()
        meanings = [meaning for _, meaning in found]
        assert len({*meanings}) == len(meanings)
        assert all(m.endswith(".") and not m[0].islower() and "{" not in m for m in meanings)
        assert "7 images" in signature.sentence()
        assert "max_dist 0.123 of the diagonal" in signature.sentence()


def test_the_sentence_says_what_the_line_says():
    assert Signature.parse(LINE).sentence() == (
        "Scores were computed with bsdsbench 0.2.0 on all 200 images of bsds500-test against all "
        "annotators, by the protocol bsds500 (99 thresholds 0.01..0.99; matching one to one with "
        "max_dist 0.0075 of the diagonal; no NMS; thinned; AP rule bsds)."
    )
    shown = call("protocols", LINE.replace("ap:bsds", "ap:edter"))
    assert "AP follows the rule edter: as bsds, with the row of threshold 0" in shown
