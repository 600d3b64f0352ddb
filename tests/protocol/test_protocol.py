"""Presets, files, overrides: what a protocol holds and how it is read and printed."""

import math
import re

import pytest

from bsdsbench.files.errors import FileFormatError, ProtocolError
from bsdsbench.metrics import registry
from bsdsbench.protocol.constants import even_thresholds
from bsdsbench.protocol.protocol import Protocol, preset_names, preset_text
from bsdsbench.protocol.settings import RECIPES, NMSParams
from bsdsbench.protocol.signature import parse_overrides
from tests.helpers.runs import call, refused

NAMES = preset_names()


def test_there_are_presets_and_they_are_sorted():
    assert {"bsds500", "nyudv2", "sbd", "saliency"} <= set(NAMES)
    assert sorted(NAMES) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_preset_round_trips_and_names_its_source(name, tmp_path):
    preset = Protocol.preset(name)
    assert preset.name == name
    second = ("biped", "uded", "sbd", "cityscapes", "cityscapes-raw", "saliency")
    assert preset.version == (2 if name in second else 1)
    assert re.search(r"^#.*(19|20)\d\d|^# .*as cityscapes", preset_text(name), re.M)
    assert Protocol.from_mapping(preset.to_mapping()) == preset
    file = tmp_path / "mine.toml"
    file.write_text(preset.to_toml(), "utf-8")
    assert Protocol.load(file) == preset


@pytest.mark.parametrize("name", NAMES)
def test_a_preset_is_one_object(name):
    assert Protocol.of(name) is Protocol.load(name) is Protocol.preset(name)
    hash(Protocol.preset(name))  # nothing in it can change


# The presets whose constants are stated below; a new one comes with a test of its own.
STATED = [
    *("biped", "boundary-iou-cityscapes", "boundary-iou-coco", "brind", "bsds300", "bsds500"),
    *("cityscapes", "cityscapes-raw", "crack", "crack-aiu", "crispness-ceval", "crispness-seval"),
    *("davis", "deepcrack", "masks", "mdbd-boundaries", "mdbd-edges", "mtl-nyud", "mtl-pascal"),
    *("mtl-pascal-mti", "nyudv2", "occlusion", "pascal-context", "rindnet", "saliency", "sbd"),
    *("sbd-reannotated", "sbd-reannotated-raw", "sbd-seal", "sbd-seal-raw", "skeleton", "strict"),
    *("uded", "wireframe"),
]


def test_preset_constants():
    """Tolerance, thinning and NMS of each data set, from its paper."""
    rows = {n: Protocol.preset(n) for n in STATED}
    tolerance = {n: p.max_dist for n, p in rows.items() if p.max_dist != 0.0075}
    assert tolerance == {
        **dict.fromkeys(("cityscapes", "cityscapes-raw"), 0.0035),
        **dict.fromkeys(("sbd", "sbd-seal", "sbd-seal-raw"), 0.02),
        **dict.fromkeys(("nyudv2", "mtl-nyud"), 0.011),
        "skeleton": 0.01,
        "strict": 0.003,
        "wireframe": 0.01,
    }
    multiplier = {n: p.nms_params.multiplier for n, p in rows.items()}
    assert {n: m for n, m in multiplier.items() if m != 1.01} == {"biped": 1.03, "uded": 1.04}
    assert [n for n, p in rows.items() if p.nms] == [
        *("crispness-seval", "mtl-nyud", "mtl-pascal", "occlusion", "skeleton")
    ]
    assert [n for n, p in rows.items() if not p.thin] == [
        *("boundary-iou-cityscapes", "boundary-iou-coco", "cityscapes-raw", "crack-aiu"),
        *("crispness-ceval", "davis", "deepcrack", "masks", "occlusion", "saliency"),
        *("sbd-reannotated-raw", "sbd-seal-raw", "wireframe"),
    ]
    assert len(rows["sbd"].options["semantic"]["classes"]) == 20
    assert len(rows["cityscapes"].options["semantic"]["classes"]) == 19


# recipe: radius, border, multiplier, smoothed first, bits; read in the named programs
RECIPE_CONSTANTS = {
    "hed": (1, 5, 1.01, True, 8),
    "rcf": (2, 5, 1.01, False, 8),
    "rcf-nyud": (4, 5, 1.01, False, 8),
    "cats": (1, 4, 1.01, True, 8),
    "cats-nyud": (4, 4, 1.01, True, 8),
    "dexined": (1, 5, 1.03, False, 8),
    "teed": (1, 5, 1.04, False, 8),
    "edter": (1, 5, 1.01, True, 8),
    "edter-nyud": (2, 5, 1.01, True, 8),
    "rindnet": (1, 5, 1.01, True, 8),
    "pidinet": (1, 5, 1.01, True, 8),
    "skeleton": (1, 5, 1.01, False, 0),
    "seism": (1, 5, 1.01, False, 0),
    "occlusion": (1, 5, 1.01, False, 0),
    "se": (1, 5, 1.01, False, 0),
    "crack": (2, 5, 1.01, False, 0),
    "crispness": (2, 5, 1.01, False, 0),
    "strict": (1, 5, 1.01, False, 8),
    "plain": (1, 0, 1.0, False, 0),
}


def test_recipes_are_what_their_programs_do():
    assert {name: recipe.constants for name, recipe in RECIPES.items()} == RECIPE_CONSTANTS
    for name, constants in RECIPE_CONSTANTS.items():
        params = Protocol(nms_params=name).nms_params
        assert params == NMSParams(*constants)
        first = next(k for k, v in RECIPE_CONSTANTS.items() if v == constants)
        assert params.recipe_name == first
    with pytest.raises(ProtocolError, match="NMS recipe 'bdcn': expected one of hed, rcf"):
        Protocol(nms_params="bdcn")


@pytest.mark.parametrize(
    ("words", "radius", "bits", "on"),
    [
        (["--nms", "preds"], 1, 8, True),
        (["preds", "--nms", "rcf"], 2, 8, True),
        (["preds", "--nms=crack", "--set", "nms_params.bits=8"], 2, 8, True),
        (["preds", "--nms", "--protocol", "bsds500"], 1, 8, True),
        (["preds"], 1, 8, False),
    ],
)
def test_nms_is_a_flag_and_an_option(words, radius, bits, on):
    from bsdsbench.cli.options import PROTOCOL_FIELDS, protocol_from
    from bsdsbench.cli.verb_evaluate import command

    given = command.make_context("evaluate", [*words, "--gt", "gt"]).params
    assert given["pred_dir"] == "preds"
    protocol = protocol_from(**{name: given[name] for name in PROTOCOL_FIELDS})
    assert (protocol.nms, protocol.nms_params.radius, protocol.nms_params.bits) == (
        on,
        radius,
        bits,
    )


def test_thresholds_of_the_official_grid_and_of_bytes():
    grid = Protocol.preset("bsds500").thresholds
    assert len(grid) == 99
    assert grid[0] == pytest.approx(0.01)
    assert grid[-1] == pytest.approx(0.99)
    levels = Protocol.preset("saliency").thresholds
    assert levels == tuple(k / 255 for k in range(1, 256))
    assert Protocol(thresholds=5).thresholds == even_thresholds(5)


def test_radius_is_a_fraction_of_the_diagonal_unless_given_in_pixels():
    preset = Protocol.preset("bsds500")
    assert preset.radius((321, 481)) == pytest.approx(0.0075 * math.sqrt(321**2 + 481**2))
    assert preset.replace(max_dist_px=3).radius((321, 481)) == 3


def test_a_file_may_change_only_some_fields(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('base = "bsds500"\nmax_dist = 0.011\n[nms_params]\nradius = 2\n')
    mine = Protocol.load(file)
    assert mine == Protocol.preset("bsds500").replace(max_dist=0.011, nms_params={"radius": 2})
    assert mine.name == "bsds500*"
    assert mine.nms_params == NMSParams(radius=2)


def test_overrides_reach_every_kind_of_field():
    changes = parse_overrides(
        [
            "max_dist=0.011",
            "thin=false",
            "nms_params.radius=2",
            "nms-params.bits=0",
            "name=mine",
            "thresholds=[0.2, 0.5]",
            "max_dist_px=none",
            "semantic.interior=keep",
            "semantic.absent=default",
            "saliency.beta2=.5",
            "depth.measures=dbe, edges",
            "contour.boundary_sizes=.02,.05",
            "contour.groups=davis",
        ]
    )
    mine = Protocol.preset("sbd").replace(**changes)
    assert (mine.max_dist, mine.thin, mine.name) == (0.011, False, "mine")
    assert mine.nms_params == NMSParams(radius=2, bits=0)
    assert mine.thresholds == (0.2, 0.5)
    assert mine.options["semantic"]["interior"] == "keep"
    assert len(mine.options["semantic"]["classes"]) == 20
    assert mine.options["saliency"] == {"beta2": 0.5}
    assert mine.options["depth"]["measures"] == ("dbe", "edges")
    assert mine.options["contour"]["boundary_sizes"] == (0.02, 0.05)
    assert registry.get("contour").options_of(mine).groups == ("davis",)
    assert "absent" not in mine.options["semantic"]


def test_differences_leave_out_what_moves_no_score():
    a = Protocol.preset("bsds500")
    assert a.differences(a.replace(name="other")) == []
    assert a.differences(a.replace(nms_params={"radius": 2})) == []
    assert a.differences(Protocol.preset("nyudv2")) == ["max_dist: 0.0075 / 0.011"]
    on = a.replace(nms=True)
    assert len(on.differences(on.replace(nms_params={"radius": 2}))) == 1
    assert a.differences(on) == ["nms: False / True"]


@pytest.mark.parametrize(
    ("preset", "grid"), [("crack", "0.0001..0.9999"), ("wireframe", "0.5..0.9999")]
)
def test_the_last_threshold_is_not_rounded(preset, grid):
    assert f" thresholds {grid};" in Protocol.preset(preset).describe()


def test_describe_says_what_moves_a_score():
    line = Protocol.preset("nyudv2").replace(nms=True, thin=False, invert=True).describe()
    assert line == (
        "nyudv2* v1: 99 thresholds 0.01..0.99; max_dist 0.011 of the diagonal; not thinned; "
        "NMS hed: 1, 5, 1.01 (8 bit); inverted; AP rule bsds"
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_dist": 0}, "max_dist 0: expected a fraction"),
        ({"max_dist_px": -1}, "max_dist_px -1: expected pixels"),
        ({"thresholds": [0.5, 0.2]}, "strictly increasing"),
        ({"thresholds": []}, "thresholds"),
        ({"thresholds": 0}, "thresholds 0"),
        ({"thresholds": "many"}, "thresholds 'many'"),
        ({"thin": "no"}, "thin 'no': expected true or false"),
        ({"gt_threshold": 0}, "gt_threshold 0: expected a value in (0, 1]"),
        ({"gt_kind": "edges"}, "gt_kind 'edges'"),
        ({"ap_rule": "coco"}, "ap_rule 'coco'"),
        ({"ods_rule": "best"}, "ods_rule 'best': expected 'interpolated' or 'maximum'"),
        ({"operator": "<"}, "operator '<': expected '>=' or '>'"),
        ({"thresholds": [0]}, "thresholds (0.0,): expected values in [0, 1], one or more above"),
        ({"nms_params": {"radius": 0}}, "nms radius 0"),
        ({"nms_params": {"bits": 12}}, "nms bits 12: expected 0, 8 or 16"),
        ({"nms_params": {"width": 1}}, "'width': expected one of radius"),
        ({"nms_params": {"bit": 8}}, "nms field 'bit': expected one of radius, border"),
        ({"nms_params": {"bit": 8}}, "smooth, bits; did you mean 'bits'?"),
        ({"semantic": {"radius": 1}}, "protocol field 'semantic': expected one of name"),
        ({"options": 3}, "options 3: expected a table for each metric"),
        ({"options": {"semantic": 3}}, "options {'semantic': 3}: expected a table of options"),
        ({"options": {"semantic": {"first": {}}}}, "semantic first {}: expected a number, text"),
        ({"tolerance": 1}, "'tolerance': expected one of name"),
        ({"version": True}, "version True"),
    ],
)
def test_values_out_of_range_are_named(changes, message):
    with pytest.raises(ProtocolError, match=re.escape(message)):
        Protocol.preset("bsds500").replace(**changes)


@pytest.mark.parametrize(
    "value", [None, True, -1, 0, 10**12, math.nan, math.inf, "x", "", [], [0.5, "x"], {}, {"a": 1}]
)
def test_any_wrong_value_of_any_field_is_a_protocol_error(value):
    """Whatever a file holds: a protocol that checks out, or one line that names the field."""
    base = Protocol.preset("sbd").to_mapping()
    base |= base.pop("options")
    for outer in (*base, "options"):
        inner = base[outer] if isinstance(base.get(outer), dict) else {"": None}
        for name in ("", *filter(None, inner)):
            wrong = value if not name else {**base[outer], name: value}
            try:
                read = Protocol.from_mapping({**base, outer: wrong})
            except ProtocolError as error:
                assert "\n" not in str(error)  # noqa: PT017
            else:
                assert Protocol.from_mapping(read.to_mapping()) == read


def test_what_is_no_protocol_is_said_in_one_line(tmp_path):
    with pytest.raises(ProtocolError, match=r"'bsds': expected a \.toml file or one of biped"):
        Protocol.load("bsds")
    with pytest.raises(FileFormatError, match=r"gone\.toml: cannot be opened \(No such file"):
        Protocol.load(tmp_path / "gone.toml")
    file = tmp_path / "bad.toml"
    file.write_text("name = ")
    refused(r"bad\.toml: not TOML", Protocol.load, file, error=FileFormatError)
    file.write_text("max_dist = 2.0")
    refused(r"bad\.toml: max_dist 2\.0", Protocol.load, file, error=ProtocolError)
    for text in ("max_dist", "=3", "nms_params=1 nms_params.radius=2"):
        with pytest.raises(ProtocolError, match="expected"):
            Protocol.preset("bsds500").replace(**parse_overrides([text]))


def test_command_line_lists_and_shows(tmp_path):
    import json

    from bsdsbench.protocol.tasks import Task, tasks

    listed = call("protocols").splitlines()
    named = [line for line in listed if line.startswith("  ") and line[2] != " "]
    assert [line.split()[0] for line in named] == [*NAMES, *tasks()]
    (nyud,) = [line for line in named if " nyudv2 " in line]
    assert nyud.split() == ["nyudv2", "v1", "NYUDv2", "boundaries;", "max_dist", "0.011"]
    mine = tmp_path / "mine.toml"
    mine.write_text('name = "mine"\nmax_dist = 0.02\n')
    shown = call("protocols", mine)
    assert "max_dist 0.02 of the diagonal" in shown
    assert "--nms means hed: 1, 5, 1.01 (8 bit)" in shown
    assert call("protocols", "nyudv2") == preset_text("nyudv2")
    toml = call("protocols", "sbd", "--format", "toml")
    assert Protocol.from_toml(toml) == Protocol.preset("sbd")
    found = json.loads(call("protocols", "--format", "json"))
    presets = [Protocol.from_mapping(p) for p in found["protocols"]]
    assert presets == [Protocol.preset(n) for n in NAMES]
    assert [Task.from_mapping(t) for t in found["tasks"]] == list(tasks().values())


def test_a_preset_s_name_means_its_fields():
    """Protocol("nyudv2") would be BSDS500's constants under another data set's name."""
    with pytest.raises(ProtocolError, match=r"^name 'nyudv2': a preset's, whose fields differ"):
        Protocol("nyudv2")
    with pytest.raises(ProtocolError, match=r"^name 'sbd'"):
        Protocol.preset("bsds500").replace(name="sbd")
    with pytest.raises(ProtocolError, match=r"^name 'biped'"):
        Protocol.from_mapping({"name": "biped", "max_dist": 0.011})
    fields = Protocol.preset("nyudv2").to_mapping()
    assert Protocol.from_mapping(fields) == Protocol.preset("nyudv2")
    assert Protocol("nyudv2*").name == "nyudv2*"


def test_the_star_is_derived():
    preset = Protocol.preset("nyudv2")
    changed = preset.replace(max_dist=0.0075)
    assert changed.name == "nyudv2*"
    assert changed.replace(max_dist=0.011) == preset
    assert preset.replace().name == preset.replace(max_dist=0.011).name == "nyudv2"
    assert Protocol("nyudv2*", max_dist=0.011).replace(thin=True).name == "nyudv2"
    mine = Protocol("mine")
    assert mine.replace(thin=True) == mine
    assert mine.replace(thin=False).name == "mine*"
    assert mine.named("nyudv2").name == "nyudv2*"
    assert changed.replace(max_dist=0.011).named("nyudv2") == preset


def test_a_saved_protocol_of_an_earlier_preset_gets_a_star():
    fields = Protocol.preset("sbd").to_mapping() | {"version": 1, "thin": False}
    found = Protocol.stored(fields)
    assert (found.name, found.version, found.thin) == ("sbd*", 1, False)
    same = Protocol.preset("sbd").to_mapping()
    assert Protocol.stored(same) == Protocol.preset("sbd")
    assert Protocol.stored(Protocol("mine").to_mapping()) == Protocol("mine")
