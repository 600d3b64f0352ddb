"""Options of metrics: checked, settled, described, read from files and from runs saved before."""

import re

import attrs
import numpy as np
import pytest

from bsdsbench.errors import ProtocolError
from bsdsbench.metrics import registry
from bsdsbench.metrics.saliency import SaliencyOptions
from bsdsbench.protocol.protocol import MATCHED, Protocol, _default_of
from bsdsbench.protocol.signature import parse_overrides, preset_names

METRICS = [registry.get(name) for name in registry.BUILT_IN]
CONTOUR = registry.get("contour")


def test_presets_are_settled():
    for name in preset_names():
        preset = Protocol.preset(name)
        assert (
            registry.complete_options(preset) is preset
            or registry.complete_options(preset) == preset
        )
        assert registry.complete_options(preset).to_mapping() == preset.to_mapping()


@pytest.mark.parametrize("metric", METRICS, ids=lambda m: m.name)
def test_every_option_is_explained_and_its_default_stands_for_itself(metric):
    assert set(metric.uses) <= set(Protocol.names())
    if metric.options is None:
        return
    given = {"classes": ("a", "b")} if metric.name == "semantic" else {}  # it has no default
    record = metric.options(**given)
    for f in attrs.fields(metric.options):
        if f.name in given:
            continue
        assert getattr(record, f.name) == _default_of(record, f)
        assert f.metadata["help"].endswith("."), f.name


def test_what_is_said_by_default_is_not_kept():
    preset = Protocol.preset("saliency")
    explicit = preset.replace(options={"saliency": {"beta2": 0.3, "stretch": True}})
    assert explicit.name == "saliency*"
    assert registry.complete_options(explicit) == preset
    half = registry.complete_options(preset.replace(options={"saliency": {"beta2": 0.5}}))
    assert (half.name, half.options) == ("saliency*", {"saliency": {"beta2": 0.5}})
    assert registry.complete_options(half.replace(options={"saliency": {"beta2": 0.3}})) == preset
    given = Protocol(options={"saliency": SaliencyOptions(beta2=0.5)})
    assert given.options == half.options
    assert {given, registry.complete_options(given)} == {given}
    with pytest.raises(TypeError, match="read-only"):
        given.options["saliency"]["beta2"] = 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"saliency": {"beta2": -1}}, "saliency beta2 -1.0: expected a number above 0"),
        ({"saliency": {"beta": 1}}, "saliency field 'beta': expected one of beta2, stretch"),
        ({"saliancy": {"beta2": 1}}, "options 'saliancy': expected the name of a metric, one of"),
        ({"saliancy": {"beta2": 1}}, "did you mean 'saliency'?"),
        ({"region": {"beta2": 1}}, "options 'region': this metric has no options"),
        ({"semantic": {"first": 1}}, "semantic classes (): expected class names: set semantic.c"),
        ({"semantic": {"classes": ["a", "a"]}}, "semantic classes"),
        ({"contour": {"empty": "none"}}, "contour empty"),
        ({"contour": {"spacing": [1, 1, 1]}}, "contour spacing"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(ProtocolError, match=re.escape(message)):
        registry.complete_options(Protocol(options=options))


@pytest.mark.parametrize(
    "value", [True, -1, 0, 10**12, float("nan"), "x", [], [0.5, "x"], [[1]], {"a": 1}]
)
def test_any_wrong_value_of_any_option_is_a_protocol_error(value):
    for metric in METRICS:
        for name in [f.name for f in attrs.fields(metric.options)] if metric.options else ():
            try:
                read = registry.complete_options(Protocol(options={metric.name: {name: value}}))
            except ProtocolError as error:
                assert "\n" not in str(error)  # noqa: PT017
            else:
                assert registry.complete_options(read) == read


def test_a_caption_says_what_the_metric_uses():
    saliency = Protocol.preset("saliency").replace(max_dist=0.02, invert=True)
    line = registry.describe(["saliency"], saliency)
    assert line.startswith("saliency* v2: inverted; beta^2 0.3; maps stretched to 0 .. 1")
    assert registry.unused_settings(
        ["saliency"], Protocol(options={"semantic": {"radius": 1}})
    ) == ({*Protocol.names(), "semantic"} - {"invert", "gt_invert", "gt_threshold"})
    mask = Protocol.preset("masks")
    assert registry.unused_settings(["superpixel", "boundary"], mask) == {*Protocol.names()} - {
        *MATCHED
    }


def test_files_and_set_change_the_options_named(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('base = "sbd"\n[semantic]\nradius = 2\n[saliency]\nbeta2 = 1\n')
    mine = Protocol.load(file).replace(**parse_overrides(["semantic.interior=keep"]))
    settled = registry.complete_options(mine)
    assert settled.options["saliency"] == {"beta2": 1}
    assert settled.options["semantic"].keys() == {"classes", "first", "radius", "absent"}
    assert settled.options["semantic"]["radius"] == 2
    assert "interior" in Protocol.preset("sbd").options["semantic"]


def test_a_signature_of_depth_names_matching_only_where_edges_are_matched():
    words = [
        Protocol.preset("depth").replace(**parse_overrides([f"depth.measures={what}"]))
        for what in ("si", "dbe", "si,edges")
    ]
    said = [registry.describe(("depth",), protocol) for protocol in words]
    assert ["max_dist" in text for text in said] == [False, False, True]
    assert ["AP rule" in text for text in said] == [False, False, True]


def test_metrics_that_share_a_class_of_options_have_their_own():
    class Other(type(registry.get("segmentation"))):
        name = "other"

    given = {"segmentation": {"ignore": 7}, "other": {"ignore": 9}}
    protocol = Protocol.preset("masks").replace(options=given)
    metrics = registry.get("segmentation"), Other()
    assert [m.options_of(protocol).ignore for m in metrics] == [7, 9]


def test_options_may_hold_the_numbers_of_numpy():
    """Such as the steps in the header of a medical image."""
    of_numpy = {
        "spacing": np.array([0.5, 0.75]),
        "ignore": np.uint8(255),
        "classes": np.array(["a"]),
    }
    plain = {"spacing": (0.5, 0.75), "ignore": 255, "classes": ("a",)}
    made = [Protocol.preset("masks").replace(options={"contour": o}) for o in (of_numpy, plain)]
    assert made[0] == made[1]
    assert made[0].to_mapping() == made[1].to_mapping()
    fields = {"max_dist_px": (2, 5), "thin": False, "thresholds": (0.25, 0.5), "version": 2}
    of_numpy = {name: np.asarray(value) for name, value in fields.items()}
    assert Protocol(**of_numpy) == Protocol(**fields)
    radius = {"nms_params": {"radius": np.int64(3)}}
    assert Protocol().replace(**radius, **of_numpy).nms_params.radius == 3
