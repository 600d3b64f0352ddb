"""The fields of a `Protocol`: what they hold, thresholds, and the edge NMS of programs by name."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import attrs
import numpy as np
from attrs import astuple, field, frozen

from bsdsbench.files.arguments import given_list
from bsdsbench.files.errors import ProtocolError
from bsdsbench.protocol.fields import (
    BOOL,
    DEFAULT,
    HOME_MADE,
    TEXT,
    changed,
    check,
    clipped,
    is_int,
    is_number,
    number_text,
    one_of,
    real,
    real_or_none,
    record_of,
    whole,
)
from bsdsbench.scores.curve import AP_RULES, ODS_RULES
from bsdsbench.tables.read_only import ReadOnlyDict

MAX_THRESHOLDS = 32_767  # what the kernels count in 16 bits
MAX_PX = 1_000
# Fields of the protocol that move scores: all that change a soft map or the reading of annotators,
# all that make a curve's numbers, and with them those of matching.
MAPS = ("invert", "normalise", "nms", "nms_params")
ANNOTATED = ("gt_invert", "gt_threshold", "gt_kind", "empty_gt")
CURVE = ("thresholds", "operator", "ap_rule", "ods_rule")
MATCHING = ("max_dist", "max_dist_px", "thin", "clean", "gt_thin")
MATCHED = (*MAPS, *ANNOTATED, *CURVE, *MATCHING)


def even_thresholds(count: int) -> tuple[float, ...]:
    """linspace(1/(T+1), 1 - 1/(T+1), T): the official default grid (boundaryBench.m)."""
    return tuple(np.linspace(1 / (count + 1), 1 - 1 / (count + 1), count).tolist())


# Grids that have a name, in files and signatures.
GRIDS = {
    "8bit": tuple((np.arange(1, 256) / 255).tolist()),  # all levels of a picture but the trivial 0
    "seism": (0.001, *(k / 100 for k in range(1, 100)), 0.999),  # of its programs for contours
    "deepcrack": tuple(k / 100 for k in range(100)),  # no linspace: ten differ in the last digit
}


def thresholds_of(given: Any) -> Any:
    """Thresholds from what a file, the command line or a signature says of them.

    given : how many even ones; a name of GRIDS; {from, to, n} or the text "FROM..TO/N" for evenly
            spaced ones; values; as text with "0+" before it, which adds the whole image

    Raises ProtocolError.
    """
    if isinstance(given, np.ndarray):
        given = given_list(given, "thresholds", "numbers")
    try:
        if isinstance(given, str):
            return _read(given)
        if isinstance(given, Mapping):
            if set(given) != {"from", "to", "n"}:
                raise ValueError
            return _spaced(given["from"], given["to"], given["n"])
        if is_int(given):
            return even_thresholds(_count(given))
        return tuple(float(t) for t in given)
    except (TypeError, ValueError, OverflowError):
        raise ProtocolError(
            f"thresholds {clipped(given)}: expected a number of them, 1 to {MAX_THRESHOLDS}, "
            f"values, {{ from, to, n }} or one of {', '.join(GRIDS)}"
        ) from None


def _read(text: str) -> tuple[float, ...]:
    if text in GRIDS:
        return GRIDS[text]
    if text.startswith("0+"):
        return (0.0, *_read(text[2:]))
    if ".." in text:
        first, _, rest = text.partition("..")
        last, _, count = rest.partition("/")
        return _spaced(float(first), float(last), int(count))
    if text.isdecimal():
        return even_thresholds(_count(int(text)))
    return tuple(float(part) for part in text.removeprefix("at ").split(","))


def _count(count: Any) -> int:
    if not is_int(count) or not 1 <= count <= MAX_THRESHOLDS:
        raise ValueError
    return int(count)


def _spaced(first: Any, last: Any, count: Any) -> tuple[float, ...]:
    if not (is_number(first) and is_number(last)):
        raise ValueError
    return tuple(np.linspace(first, last, _count(count)).tolist())


def thresholds_text(values: tuple[float, ...]) -> str:
    """The shortest text that `thresholds_of` reads as these values, to the last bit."""
    for name, grid in GRIDS.items():
        if values == grid:
            return name
    if values[0] == 0 and len(values) > 1:
        return f"0+{thresholds_text(values[1:])}"
    count = len(values)
    if values == even_thresholds(count):
        return str(count)
    if count > 4 and values == _spaced(values[0], values[-1], count):
        return f"{values[0]}..{values[-1]}/{count}"
    return "at " + ",".join(number_text(v) for v in values)


@frozen
class NMSParams:
    """Edge non-maximum suppression as a data set's users run it: `bsdsbench.metrics.maps`.

    Parameters
    ----------
    radius : int
        Pixels compared on each side along the normal.
    border : int
        Pixels faded at the border.
    multiplier : float
        A pixel survives if multiplier * value is not below its neighbours.
    smooth : bool
        Filter the soft map once more before the comparison.
    bits : int
        8 or 16: the result is rounded as a PNG of that depth would; 0: kept in float32.

    Examples
    --------
    >>> NMSParams.recipe("rcf").describe()
    'rcf: 2, 5, 1.01 (8 bit, not smoothed)'
    >>> str(NMSParams(radius=3))
    '3,5,1.01,smooth,8'
    """

    radius: int = field(default=1, validator=whole(1, 99, "1 to 99 pixels"))
    border: int = field(default=5, validator=whole(0, 9999, "0 to 9999 pixels"))
    multiplier: float = field(
        default=1.01,
        converter=real,
        validator=check(lambda v: is_number(v) and 0 < v <= 1e6, "a number above 0"),
    )
    smooth: bool = field(default=True, validator=BOOL)
    bits: int = field(default=8, validator=one_of(0, 8, 16))

    @classmethod
    def recipe(cls, name: str) -> NMSParams:
        """The constants of a recipe. Raises ProtocolError.

        Parameters
        ----------
        name : str
            Such as "hed" or "rcf".
        """
        if name not in RECIPES:
            raise ProtocolError(
                f"NMS recipe {name!r}: expected one of {', '.join(RECIPES)}, or the constants "
                "radius,border,multiplier,smooth|raw,bits"
            )
        return cls(*RECIPES[name].constants)

    @property
    def recipe_name(self) -> str | None:
        """The first recipe with these constants, or None."""
        mine = astuple(self)
        return next((name for name, r in RECIPES.items() if r.constants == mine), None)

    def __str__(self) -> str:
        """The recipe or the constants, as `nms_params` reads them."""
        how = "smooth" if self.smooth else "raw"
        return (
            self.recipe_name
            or f"{self.radius},{self.border},{number_text(self.multiplier)},{how},{self.bits}"
        )

    def describe(self) -> str:
        """The constants in a few words, with the name of their recipe.

        Returns
        -------
        str
            Such as "hed: 1, 5, 1.01 (8 bit)".
        """
        depth = f"{self.bits} bit" if self.bits else "float"
        smooth = "" if self.smooth else ", not smoothed"
        name = f"{self.recipe_name}: " if self.recipe_name else ""
        return f"{name}{self.radius}, {self.border}, {self.multiplier:g} ({depth}{smooth})"


def nms_params(given: Any) -> Any:
    """The constants from the name of a recipe, from their text or from a table."""
    if isinstance(given, str) and given.count(",") == 4:
        given = given.split(",")
    if isinstance(given, list | tuple) and len(given) == 5 and given[3] in ("smooth", "raw"):
        try:
            radius, border, bits = (int(given[k]) for k in (0, 1, 4))
            given = NMSParams(radius, border, float(given[2]), given[3] == "smooth", bits)
        except ValueError as error:
            raise ProtocolError(f"nms {','.join(map(str, given))}: {error}") from None
    if isinstance(given, str):
        return NMSParams.recipe(given)
    return record_of(NMSParams, given, "nms") if isinstance(given, Mapping) else given


class Recipe(NamedTuple):
    """The constants of `NMSParams` in their order, and the program they were read in."""

    constants: tuple[int, int, float, bool, int]
    source: str


# Names with equal constants are one recipe; a protocol is described by the first of them.
RECIPES: dict[str, Recipe] = {
    "hed": Recipe((1, 5, 1.01, True, 8), "HED, nms_process.m and EvalEdge.m; also FCL-Net"),
    "rcf": Recipe((2, 5, 1.01, False, 8), "RCF, edge_nms.m, BSDS500 and Multicue"),
    "rcf-nyud": Recipe((4, 5, 1.01, False, 8), "RCF, edge_nms.m, the comment on NYUD"),
    "cats": Recipe((1, 4, 1.01, True, 8), "CATS, eval_edge.m, BSDS500"),
    "cats-nyud": Recipe((4, 4, 1.01, True, 8), "CATS, eval_edge.m, NYUD"),
    "dexined": Recipe((1, 5, 1.03, False, 8), "DexiNed, the author in issue 8"),
    "teed": Recipe((1, 5, 1.04, False, 8), "TEED, the author in issue 21"),
    "edter": Recipe((1, 5, 1.01, True, 8), "EDTER, eval_bsds.m; also EdgeNAT"),
    "edter-nyud": Recipe((2, 5, 1.01, True, 8), "EDTER, eval_nyud.m; also EdgeNAT"),
    "rindnet": Recipe((1, 5, 1.01, True, 8), "RINDNet, eval.m"),
    "pidinet": Recipe((1, 5, 1.01, True, 8), "PiDiNet, from a derived copy of its script"),
    "skeleton": Recipe((1, 5, 1.01, False, 0), "skeval, nms.m"),
    "seism": Recipe((1, 5, 1.01, False, 0), "SEISM, read_one_cont_png.m; multi-task learning"),
    "occlusion": Recipe((1, 5, 1.01, False, 0), "DOOBNet, edge_nms.m; also P2ORM"),
    "se": Recipe((1, 5, 1.01, False, 0), "structured edges, edgesDetect"),
    "crack": Recipe((2, 5, 1.01, False, 0), "pavement-crack-detection, crack_nms.m"),
    "crispness": Recipe((2, 5, 1.01, False, 0), "average crispness, eval_crispness.m"),
    "strict": Recipe((1, 5, 1.01, False, 8), "SDPED, benchmarkBoundary.m"),
    "plain": Recipe((1, 0, 1.0, False, 0), "the comparison alone"),
}


def option_tables(given: Any) -> Mapping[str, Mapping[str, Any]]:
    """Metric -> its options that are not the default, read-only. Raises ProtocolError."""
    if not isinstance(given, Mapping):
        raise ProtocolError(f"options {clipped(given)}: expected a table for each metric")
    tables = {}
    for name, table in given.items():
        values = changed(table) if attrs.has(type(table)) else table
        if not isinstance(values, Mapping) or not all(isinstance(k, str) for k in (name, *values)):
            raise ProtocolError(f"options {clipped({name: table})}: expected a table of options")
        kept = {k: _option(v, f"{name} {k}") for k, v in values.items() if v not in (None, DEFAULT)}
        if kept:
            tables[name] = ReadOnlyDict(kept)
    return ReadOnlyDict(tables)


def _option(value: Any, what: str) -> Any:
    if isinstance(value, list | tuple):
        return tuple(_option(v, what) for v in value)
    if not isinstance(value, str | int | float):
        raise ProtocolError(f"{what} {clipped(value)}: expected a number, text or a list of them")
    return value


@frozen
class Constants:
    """The fields of a `Protocol`, which says what they mean."""

    name: str = field(default="custom", validator=TEXT)
    version: int = field(default=1, validator=whole(1, 10**6, "a whole number from 1"))
    thresholds: tuple[float, ...] = field(
        default=even_thresholds(99),
        converter=thresholds_of,
        validator=[
            check(
                lambda v: any(x > 0 for x in v) and all(0 <= x <= 1 for x in v),
                "values in [0, 1], one or more above 0",
            ),
            check(lambda v: all(a < b for a, b in pairwise(v)), "strictly increasing values"),
            check(lambda v: len(v) <= MAX_THRESHOLDS, f"at most {MAX_THRESHOLDS} values"),
        ],
        metadata={
            "others": dict.fromkeys(
                ("8bit", 100, 50, 33, 25, 20, 19, 10, 9, 5), "nthresh of the run"
            ),
            "caption": lambda p: (
                f"{len(p.thresholds)} thresholds {p.thresholds[0]:.4g}..{p.thresholds[-1]:.4g}"
            ),
        },
    )
    max_dist: float = field(
        default=0.0075,
        converter=real,
        validator=check(
            lambda v: is_number(v) and 0 < v < 1,
            "a fraction in (0, 1) of the diagonal; in pixels it is max_dist_px",
        ),
        metadata={
            "others": {
                0.0075: "BSDS500 and most programs",
                0.011: "NYUDv2 programs",
                0.01: "SEISM on PASCAL, skeletons, wireframes",
                0.02: "SBD, Cityscapes (raw)",
                0.0035: "Cityscapes (thin)",
                0.003: "SDPED (strict)",
                0.002: "KITTI-DE, DDAD-DE",
                **dict.fromkeys((0.005, 0.015), HOME_MADE),
            },
            "caption": lambda p: (
                f"max_dist {p.max_dist:g} of the diagonal"
                if p.max_dist_px is None
                else f"max_dist {p.max_dist_px:g} px"
            ),
        },
    )
    max_dist_px: float | None = field(
        default=None,
        converter=real_or_none,
        validator=check(
            lambda v: v is None or (is_number(v) and 0 <= v <= MAX_PX), f"pixels, 0 to {MAX_PX}"
        ),
    )
    thin: bool = field(
        default=True,
        validator=BOOL,
        metadata={
            "others": {False: "CEval, raw forms of SBD", True: "the benchmark"},
            "caption": {True: "thinned", False: "not thinned"},
        },
    )
    nms: bool = field(
        default=False,
        validator=BOOL,
        metadata={"caption": lambda p: f"NMS {p.nms_params.describe()}" if p.nms else "no NMS"},
    )
    nms_params: NMSParams = field(
        default=NMSParams(),
        converter=nms_params,
        validator=check(
            lambda v: isinstance(v, NMSParams), "a recipe, or the entries of NMSParams"
        ),
    )
    operator: str = field(
        default=">=",
        validator=one_of(">=", ">"),
        metadata={"others": {">": "SEISM, DeepCrack"}, "caption": "value {} threshold"},
    )
    clean: bool = field(
        default=False, validator=BOOL, metadata={"caption": "single pixels dropped"}
    )
    gt_thin: bool = field(
        default=False, validator=BOOL, metadata={"caption": "ground truth thinned"}
    )
    normalise: bool = field(
        default=False, validator=BOOL, metadata={"caption": "divided by its maximum"}
    )
    invert: bool = field(default=False, validator=BOOL, metadata={"caption": "inverted"})
    gt_invert: bool = field(
        default=False, validator=BOOL, metadata={"caption": "ground truth inverted"}
    )
    gt_threshold: float | None = field(
        default=None,
        converter=real_or_none,
        validator=check(lambda v: v is None or (is_number(v) and 0 < v <= 1), "a value in (0, 1]"),
        metadata={"caption": "ground truth from {:g} on"},
    )
    gt_kind: str = field(
        default="boundaries",
        validator=one_of("boundaries", "labels"),
        metadata={"caption": "ground truth from labels"},
    )
    empty_gt: str = field(
        default="error",
        validator=one_of("error", "count", "skip"),
        metadata={
            "caption": {
                "count": "images without ground-truth boundaries count",
                "skip": "images without ground-truth boundaries left out",
            }
        },
    )
    regions_from_soft: bool = field(
        default=False, validator=BOOL, metadata={"caption": "regions from soft maps"}
    )
    ods_rule: str = field(
        default="interpolated", validator=one_of(*ODS_RULES), metadata={"caption": "ODS rule {}"}
    )
    ap_rule: str = field(
        default="bsds",
        validator=one_of(*AP_RULES),
        metadata={"caption": lambda p: f"AP rule {p.ap_rule}"},
    )
    options: Mapping[str, Any] = field(factory=dict, converter=option_tables, hash=False)
