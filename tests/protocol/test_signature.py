"""The line under a table: printed, read back to an equal protocol, explained word by word."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bsdsbench.files.errors import ProtocolError
from bsdsbench.protocol.decoder import decode, sentence
from bsdsbench.protocol.protocol import Protocol, preset_names
from bsdsbench.protocol.settings import RECIPES
from bsdsbench.protocol.signature import Signature
from bsdsbench.scores.curve import AP_RULES
from tests.helpers.runs import call

BSDS = Protocol.preset("bsds500")
LINE = (
    "bsdsbench 0.2.0|bsds500-test:200/200|gt:fa866d15|ann:all|pred:soft8|thr:99|tol:.0075d|"
    "match:1to1|nms:none|thin|ap:bsds"
)


def test_the_line_of_the_main_benchmark():
    found = Signature(BSDS, "bsds500-test", 200, 200, "fa866d159ac180a9", "all", "soft8")
    assert str(found).partition("|")[2] == LINE.partition("|")[2]
    read = Signature.parse(LINE)
    assert (read.protocol, read.version, read.set_name) == (BSDS, "0.2.0", "bsds500-test")
    assert (read.n_images, read.set_size, read.gt, read.pred) == (200, 200, "fa866d15", "soft8")
    assert str(read) == LINE


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_round_trips(name):
    preset = Protocol.preset(name)
    line = str(Signature(preset, n_images=7))
    assert "\n" not in line
    assert Signature.parse(line) == Signature(preset, n_images=7)


CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "thresholds": st.sampled_from(
            [5, 99, "8bit", (0.1, 0.25), (0.0, 0.5), (0.0, *BSDS.thresholds), (0.001, 0.999)]
        ),
        "max_dist": st.floats(1e-6, 0.5),
        "max_dist_px": st.none() | st.floats(0, 30),
        "thin": st.booleans(),
        "nms": st.booleans(),
        "nms_params": st.sampled_from([*RECIPES, {"radius": 7}, {"multiplier": 1.07, "bits": 16}]),
        "invert": st.booleans(),
        "gt_invert": st.booleans(),
        "gt_threshold": st.none() | st.floats(0.1, 1),
        "gt_kind": st.sampled_from(["boundaries", "labels"]),
        "ap_rule": st.sampled_from([*AP_RULES]),
        "ods_rule": st.sampled_from(["interpolated", "maximum"]),
        "operator": st.sampled_from([">=", ">"]),
        "regions_from_soft": st.booleans(),
        "options": st.sampled_from(
            [
                {"semantic": {"classes": ("a|b", 'c"%,', "d=:e"), "radius": 2, "first": None}},
                {"saliency": {"beta2": 1, "cap": "max"}, "other-f": {"radius": 2, "rule": "x=|"}},
            ]
        ),
    },
)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(preset_names()), CHANGES)
@pytest.mark.slow
def test_any_protocol_round_trips(name, changes):
    """The name apart, which moves no score."""
    protocol = Protocol.preset(name).replace(**changes)
    line = str(Signature(protocol, "a set", 3, 4, "abcd"))
    read = Signature.parse(line)
    assert read.protocol.differences(protocol) == []
    assert read.differences(Signature(protocol, "a set", 3, 4, "abcd")) == []
    assert str(read) == line


def test_a_name_of_one_s_own_is_not_kept():
    mine = Protocol(name="mine", max_dist=0.02)
    read = Signature.parse(str(Signature(mine))).protocol
    assert read.differences(mine) == []


def test_differences_in_words():
    other = BSDS.replace(max_dist=0.011, ap_rule="endpoints", thin=False, nms=True)
    a = Signature(BSDS, "bsds500-val", 100, 100, pred="soft8")
    b = Signature(other, "bsds500-val", 99, 100, match="1toN")
    found = {d.key: d for d in a.differences(b)}
    assert list(found) == ["set", "tol", "match", "nms", "thin", "ap"]
    assert found["tol"].line() == "tolerance: .0075d / .011d; a larger one raises every score"
    assert ".8038 against .7657" in found["match"].line()
    assert (found["nms"].b, found["thin"].a, found["ap"].b) == ("hed", "thin", "endpoints")
    assert a.differences(a) == []


def test_words_that_only_one_has():
    a, b = Signature(BSDS), Signature(BSDS.replace(operator=">", gt_threshold=0.5))
    lines = [d.line() for d in a.differences(b)]
    assert lines[0].startswith("threshold operator: as the preset / >")
    assert lines[1] == "gt_threshold: as the preset / 0.5"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("bsdsbench 0.2.0", "other", "expected 'bsdsbench VERSION"),
        ("200/200", "all", "expected SET:N/M or set:N"),
        ("thr:99", "thr:many", "thr:many: expected a number"),
        ("tol:.0075d", "tol:4", "tol:4: expected a number and d or px"),
        ("tol:.0075d", "tol:xd", "tol: 'x', expected a number"),
        ("nms:none", "nms:bdcn", "NMS recipe 'bdcn'"),
        ("nms:none", "nms:1,2", "expected a recipe, or radius"),
        ("ap:bsds", "ap:coco", "ap_rule 'coco'"),
        ("thin|", "thin|colour:red|", "colour:red: expected one of"),
        ("thin|", "thin|colour=red|", "protocol field 'colour'"),
        ("thr:99", "proto:biped.1|thr:99", "made with version 1 of biped, expected 2"),
        ("thr:99", "proto:x.1|thr:99", "protocol 'x'"),
    ],
)
def test_faults_are_named(old, new, message):
    with pytest.raises(ProtocolError) as caught:
        Signature.parse(LINE.replace(old, new))
    assert message in str(caught.value)


def test_options_are_words_where_they_differ_from_the_preset():
    sbd = Protocol.preset("sbd")
    changed = sbd.replace(options={"semantic": {"interior": None, "radius": 2}, "other": {"k": 1}})
    line = str(Signature(changed))
    assert line.endswith("|ap:sbd|semantic.radius=2|other.k=1|semantic.interior=default")
    assert Signature.parse(line).protocol == changed
    lines = [d.line() for d in Signature(sbd).differences(Signature(changed))]
    assert lines[2] == "semantic.interior: as the preset / default"


def test_words_of_what_is_not_used_are_left_out():
    """They are the preset's when the line is read, and differ from nothing."""
    unused = frozenset({*Protocol.names(), "semantic"} - {"invert"})
    changed = Protocol.preset("saliency").replace(
        max_dist=0.02, invert=True, options={"saliency": {"beta2": 0.5}, "semantic": {"radius": 1}}
    )
    mine = Signature(changed, n_images=3, pred="soft8", version="0.2.0", unused=unused)
    line = "bsdsbench 0.2.0|set:3|gt:?|ann:all|pred:soft8|proto:saliency.2|invert=true|"
    assert str(mine) == line + "saliency.beta2=0.5"
    read = Signature.parse(str(mine))
    assert str(read) == str(mine)
    options = {"saliency": {"beta2": 0.5}}
    assert read.protocol == Protocol.preset("saliency").replace(invert=True, options=options)
    whole = Signature(changed.replace(max_dist=0.03, thin=True, ap_rule="sbd"), n_images=3)
    assert [d.key for d in whole.differences(mine)] == []
    other = changed.with_options({"saliency": {"beta2": 1}}).replace(invert=False, max_dist=0.03)
    keys = {d.key for d in Signature(other, n_images=3).differences(read)}
    assert keys == {"saliency.beta2", "invert"}


@pytest.mark.parametrize("name", preset_names())
def test_every_word_has_a_meaning_of_its_own(name):
    signature = Signature(Protocol.preset(name).replace(max_dist=0.123), n_images=7)
    found = decode(signature)
    assert [word for word, _ in found] == signature.words()
    meanings = [meaning for _, meaning in found]
    assert len({*meanings}) == len(meanings)
    assert all(m.endswith(".") and not m[0].islower() and "{" not in m for m in meanings)
    said = sentence(signature)
    assert "7 images" in said
    assert all(
        text in said for key, text in signature.protocol.words().items() if key == "max_dist"
    )


def test_the_sentence_says_what_the_line_says():
    assert sentence(Signature.parse(LINE)) == (
        "Scores were computed with bsdsbench 0.2.0 on all 200 images of bsds500-test against all "
        "annotators, by the protocol bsds500 (99 thresholds 0.01..0.99; matching one to one with "
        "max_dist 0.0075 of the diagonal; no NMS; thinned; AP rule bsds)."
    )


def test_the_command_line_explains_a_line():
    shown = call("protocols", LINE.replace("ap:bsds", "ap:edter"))
    assert (
        "Two matched pixels are at most this far apart: max_dist 0.0075 of the diagonal." in shown
    )
    assert "AP follows the rule edter: as bsds, with the row of threshold 0" in shown
    assert shown.splitlines()[-1].startswith("Scores were computed with bsdsbench 0.2.0 on all 200")
