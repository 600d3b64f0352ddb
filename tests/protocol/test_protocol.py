"""Presets, files, overrides: what a protocol holds and how it is read and printed."""

import json
import math
import pickle
import re
import tomllib

import attrs
import numpy as np
import pytest

from bsdsbench.cli.options import ProtocolOptions
from bsdsbench.cli.shared import protocol_from
from bsdsbench.errors import FileFormatError, ProtocolError
from bsdsbench.metrics import registry
from bsdsbench.protocol.fields import even_thresholds, in_use
from bsdsbench.protocol.nms_recipes import NMSParams
from bsdsbench.protocol.protocol import Protocol, preset_names, preset_text
from bsdsbench.protocol.signature import Signature, parse_overrides
from bsdsbench.protocol.tasks import Task, tasks
from tests.helpers.runs import call, refused

NAMES = preset_names()
BSDS = Protocol.preset("bsds500")
OPTIONS = {n: registry.get(n).options for n in registry.BUILT_IN if registry.get(n).options}


def test_a_preset_names_its_source_and_is_read_back():
    for name in NAMES:
        preset = Protocol.preset(name)
        second = ("biped", "uded", "sbd", "cityscapes", "cityscapes-raw", "saliency",
                  "davis", "boundary-iou-coco")  # fmt: skip
        assert (preset.name, preset.version) == (name, 2 if name in second else 1)
        assert re.search(r"^#.*(19|20)\d\d|^# .*as cityscapes", preset_text(name), re.M)
        assert Protocol.load(name) is preset
        for again in (
            Protocol.from_mapping(preset.to_mapping()),
            Protocol.from_mapping(tomllib.loads(preset_text(name))),
            pickle.loads(pickle.dumps(preset)),
            attrs.evolve(preset),
        ):
            assert again == preset
            assert hash(again) == hash(preset)


def test_preset_constants():
    """Tolerance, thinning and NMS of each data set, from its paper."""
    rows = {n: Protocol.preset(n) for n in NAMES}
    tolerance = {n: p.max_dist for n, p in rows.items() if p.max_dist != 0.0075}
    assert tolerance == {
        **dict.fromkeys(("cityscapes", "cityscapes-raw"), 0.0035),
        **dict.fromkeys(("sbd", "sbd-seal", "sbd-seal-raw"), 0.02),
        **dict.fromkeys(("nyudv2", "mtl-nyud"), 0.011),
        **dict.fromkeys(("skeleton", "wireframe"), 0.01),
        **dict.fromkeys(("depth", "kitti-de", "ddad-de", "ibims1", "sintel"), 0.002),
        "strict": 0.003,
        "sdped": (0.003, 0.0075),
    }
    multiplier = {n: p.nms_params.multiplier for n, p in rows.items()}
    assert {n: m for n, m in multiplier.items() if m != 1.01} == {"biped": 1.03, "uded": 1.04}
    assert [n for n, p in rows.items() if p.nms] == [
        *("crispness-seval", "mtl-nyud", "mtl-pascal", "occlusion", "skeleton")
    ]


THRESHOLDS = {
    "99": (99, even_thresholds(99)),
    "8bit": ("8bit", tuple(k / 255 for k in range(1, 256))),
    "0.0001..0.9999/99": ([*np.linspace(0.0001, 0.9999, 99)], Protocol.preset("crack").thresholds),
    "deepcrack": ("deepcrack", tuple(k / 100 for k in range(100))),
    "seism": ("seism", (0.001, *(k / 100 for k in range(1, 100)), 0.999)),
    "0+5": ([0, *even_thresholds(5)], (0.0, *even_thresholds(5))),
    "at .2,.5": (np.array([0.2, 0.5]), (0.2, 0.5)),
    ".2,.5": ([0.2, 0.5], (0.2, 0.5)),
}


@pytest.mark.parametrize("text", THRESHOLDS)
def test_thresholds_are_read_in_each_form(text):
    given, values = THRESHOLDS[text]
    for each in (given, text):
        assert Protocol(thresholds=each).thresholds == values
    assert protocol_from(ProtocolOptions(thresholds=text)).thresholds == values


def test_a_file_may_change_only_some_fields(tmp_path):
    file = tmp_path / "mine.TOML"
    file.write_text(
        'base = "crack"\nmax_dist = 0.011\nthresholds = "0.01..0.99/9"\n[nms_params]\nborder = 2\n'
    )
    mine = Protocol.load(file)
    assert (mine.name, mine.gt_thin, mine.max_dist) == ("crack*", True, 0.011)
    assert mine.nms_params == NMSParams(2, 2, 1.01, False, 0)
    assert mine.thresholds == tuple(np.linspace(0.01, 0.99, 9).tolist())


def documented(kind, table):
    """(field, value) of each value that a class says in words or in code that it takes."""
    yield from ((name, value) for name, value, _ in in_use(kind, table))
    for f in attrs.fields(kind):
        if f.default is not None and not isinstance(f.default, attrs.Factory | NMSParams):
            yield f.name, f.default
        if isinstance(f.default, str) and f.name != "name":
            text = f.metadata.get("help", "")
            yield from ((f.name, word) for word in re.findall(r'"([\w>=-]+)"', text))


DOCUMENTED = [
    *(("", name, value) for name, value in documented(Protocol, "protocol")),
    *(("", "max_dist_px", value) for value in (None, 2, 2.5)),
    *(("", "gt_threshold", value) for value in (None, 0.5)),
    *(
        (metric, name, value)
        for metric in OPTIONS
        for name, value in documented(OPTIONS[metric], metric)
    ),
    *(("contour", "empty", word) for word in ("skip", "inf", "perfect")),
]


def settled(table, name, /, **changes):
    """A protocol with changes, and with the options of the metric of a table."""
    classes = {} if table != "semantic" or name == "classes" else {"classes": ["a"]}
    options = {"semantic": classes}
    if name == "components" and table in ("contour", "segmentation"):
        options[table] = {"unit": "instance"}  # the numbers are those of pieces of masks
    changed = Protocol(options=options).replace(**changes)
    return registry.complete_options(changed) if table else changed


def test_each_documented_value_may_be_given_in_each_way():
    for table, name, value in DOCUMENTED:
        value = ("a", "b") if name == "classes" else value
        key = f"{table}.{name}" if table else name
        given = settled(
            table, name, **{"options": {table: {name: value}}} if table else {name: value}
        )
        plain = "none" if value is None else list(value) if isinstance(value, tuple) else value
        forms = [json.dumps(plain), *([plain] if isinstance(plain, str) else [])]
        if isinstance(plain, list) and plain:
            forms.append(",".join(map(str, plain)))
        for form in forms:
            assert settled(table, name, **parse_overrides([f"{key}={form}"])) == given
        if table:
            record = registry.get(table).options_of(given)
            assert getattr(record, name) == value


def test_differences_leave_out_what_moves_no_score():
    def lines(a, b):
        return [d.line() for d in Signature(a).differences(Signature(b))]

    on = BSDS.replace(nms=True)
    assert lines(BSDS, BSDS.replace(name="other", nms_params={"radius": 2})) == []
    changed = lines(BSDS, Protocol.preset("nyudv2").replace(name="bsds500*"))
    assert changed == ["tolerance: .0075d / .011d; a larger one raises every score"]
    assert len(lines(on, on.replace(nms_params={"radius": 2}))) == 1
    assert lines(BSDS, on)[0].startswith("edge NMS: none / hed")


def test_describe_says_what_moves_a_score():
    line = Protocol.preset("nyudv2").replace(nms=True, thin=False, invert=True).describe()
    assert line == (
        "nyudv2* v1: 99 thresholds 0.01..0.99; max_dist 0.011 of the diagonal; not thinned; "
        "NMS hed: 1, 5, 1.01 (8 bit); inverted; AP rule bsds"
    )
    assert " thresholds 0.5..0.9999;" in Protocol.preset("wireframe").describe()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_dist": 2}, "max_dist 2.0.*max_dist_px"),
        ({"thresholds": [0.5, 0.2]}, "thresholds.*increasing"),
        ({"thresholds": 0}, "thresholds 0"),
        ({"thresholds": "0..1/99999"}, "thresholds.*at most 32767"),
        ({"ods_rule": "best"}, "ods_rule 'best': expected 'interpolated' or 'maximum'"),
        ({"nms_params": {"radius": 0}}, "nms radius 0"),
        ({"options": 3}, "options 3"),
        ({"options": OPTIONS["depth"]()}, "options .*a table for each metric"),
        ({"options": {"semantic": 3}}, "options .*semantic"),
        ({"version": True}, "version True"),
    ],
)
def test_values_out_of_range_are_named(changes, message):
    with pytest.raises(ProtocolError, match=message):
        BSDS.replace(**changes)


@pytest.mark.parametrize(
    "value", [None, True, -1, 0, 10**12, math.nan, math.inf, "x", "", [], [0.5, "x"], {}, {"a": 1}]
)
def test_any_wrong_value_of_any_field_is_a_protocol_error(value):
    """Whatever a file holds: a protocol that checks out, or one line that names the field."""
    base = Protocol.preset("sbd").to_mapping()
    base |= base.pop("options")
    for outer in (*base, "options", "base"):
        inner = base[outer] if isinstance(base.get(outer), dict) else {}
        for name in ("", *inner):
            wrong = value if not name else {**base[outer], name: value}
            try:
                read = Protocol.from_mapping({**base, outer: wrong})
            except ProtocolError as error:
                assert "\n" not in str(error)  # noqa: PT017
            else:
                assert Protocol.from_mapping(read.to_mapping()) == read


def test_what_is_no_protocol_is_said_in_one_line(tmp_path):
    refused("'bsds'.*biped", Protocol.load, "bsds", error=ProtocolError)
    refused(r"gone\.toml", Protocol.load, tmp_path / "gone.toml", error=FileFormatError)
    file = tmp_path / "bad.toml"
    for text, kind in (("name = ", FileFormatError), ("max_dist = 2.0", ProtocolError)):
        file.write_text(text)
        refused(r"bad\.toml", Protocol.load, file, error=kind)
    for text in ("max_dist", "=3", "nms_params=1 nms_params.radius=2", "thin=true thin=false"):
        with pytest.raises(ProtocolError):
            BSDS.replace(**parse_overrides(text.split()))


def test_command_line_lists_and_shows():
    listed = call("protocols").splitlines()
    named = [line for line in listed if line.startswith("  ") and line[2] != " "]
    assert [line.split()[0] for line in named] == [*NAMES, *Protocol.names(), *tasks()]
    assert call("protocols", "nyudv2") == preset_text("nyudv2")
    found = json.loads(call("protocols", "--format", "json"))
    assert [Protocol.from_mapping(p) for p in found["protocols"]] == list(map(Protocol.load, NAMES))
    assert [Task.from_mapping(t) for t in found["tasks"]] == list(tasks().values())


def test_the_star_is_derived():
    preset = Protocol.preset("nyudv2")
    changed = preset.replace(max_dist=0.0075)
    for starred in (changed, Protocol("nyudv2*"), BSDS.replace(name="nyudv2*")):
        assert starred.name == "nyudv2*"
        assert starred.replace(max_dist=0.011, nms_params="hed") == preset
    assert preset.replace() is preset
    assert preset.replace(max_dist=0.011, nms=True).name == "nyudv2"
    mine = Protocol("mine")
    assert mine.replace(thin=True) == mine
    assert mine.replace(thin=False).name == "mine*"
    assert mine.replace(thin=False).replace(thin=True).name == "mine*"
    saved = Protocol.from_mapping({**preset.to_mapping(), "version": 9})
    assert (saved.name, saved.version) == ("nyudv2*", 9)


def test_a_presets_name_is_not_put_on_other_constants():
    """Protocol("nyudv2") would be BSDS500's constants under another data set's name."""
    for name in (name for name in NAMES if Protocol(f"{name}*").name == f"{name}*"):
        for made, given in (
            (Protocol, name),
            (lambda n: Protocol(name=n, thresholds=3), name),
            (lambda n: BSDS.replace(name=n), name),
            (lambda n: Protocol.from_mapping({"name": n}), name),
        ):
            with pytest.raises(ProtocolError, match=rf"{name}.*Protocol\.preset\('{name}'\)"):
                made(given)
        changed = Protocol.preset(name).replace(version=9)
        assert Protocol.from_mapping(changed.to_mapping()).name == f"{name}*"
        assert Protocol("mine").name == "mine"


def test_a_fraction_of_the_diagonal_replaces_pixels():
    """In silence, the tolerance of the preset would stay."""
    pixels = Protocol.preset("crack-px")
    changed = pixels.replace(max_dist=0.01)
    assert (changed.tolerances, changed.max_dist_px) == ((0.01,), None)
    assert pixels.replace(max_dist=0.01, max_dist_px=3).tolerances == (3,)
