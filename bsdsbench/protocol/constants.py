"""What fields of a `Protocol` hold: thresholds, the edge NMS of programs by name, options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from bsdsbench.files.arguments import given_list
from bsdsbench.files.errors import ProtocolError
from bsdsbench.protocol.fields import (
    DEFAULT,
    changed,
    check,
    clipped,
    is_int,
    is_number,
    number_text,
    one_of,
    option,
    record_of,
    whole,
)
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
    """Thresholds from what a file, the command line or a signature says of them: how many even
    ones, a name of GRIDS, {from, to, n}, "FROM..TO/N", values; "0+" before a text adds the whole
    image."""
    if isinstance(given, np.ndarray):
        given = given_list(given, "thresholds", "numbers")
    try:
        return _thresholds(given)
    except (TypeError, ValueError, ArithmeticError, LookupError):
        raise ProtocolError(
            f"thresholds {clipped(given)}: expected a number of them, 1 to {MAX_THRESHOLDS}, "
            f"values, {{ from, to, n }} or one of {', '.join(GRIDS)}"
        ) from None


def _thresholds(given: Any) -> tuple[float, ...]:
    if isinstance(given, str):
        if given in GRIDS:
            return GRIDS[given]
        if given.startswith("0+"):
            return (0.0, *_thresholds(given[2:]))
        if ".." in given:
            first, last, n = re.split(r"\.\.|/", given)
            given = {"from": float(first), "to": float(last), "n": int(n)}
        else:
            given = int(given) if given.isdecimal() else given.removeprefix("at ").split(",")
    if is_int(given):
        given = {"from": 1 / (given + 1), "to": 1 - 1 / (given + 1), "n": given}
    if not isinstance(given, Mapping):
        return tuple(float(t) for t in given)
    first, last, n = (given[key] for key in ("from", "to", "n"))
    real = is_number(first) and is_number(last)
    if len(given) > 3 or not (real and is_int(n) and 1 <= n <= MAX_THRESHOLDS):
        raise ValueError
    return tuple(np.linspace(first, last, n).tolist())


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
    if count > 4 and values == tuple(np.linspace(values[0], values[-1], count).tolist()):
        return f"{values[0]}..{values[-1]}/{count}"
    return "at " + ",".join(number_text(v) for v in values)


@attrs.frozen
class NMSParams:
    """Edge non-maximum suppression as a data set's users run it: `bsdsbench.metrics.maps`.

    Examples
    --------
    >>> NMSParams.recipe("rcf").describe()
    'rcf: 2, 5, 1.01 (8 bit, not smoothed)'
    >>> str(NMSParams(radius=3))
    '3,5,1.01,smooth,8'
    """

    radius: int = option(
        1, "Pixels compared on each side along the normal.", whole(1, 99, "1 to 99 pixels")
    )
    border: int = option(5, "Pixels faded at the border.", whole(0, 9999, "0 to 9999 pixels"))
    multiplier: float = option(
        1.01,
        "A pixel survives if multiplier * value is not below its neighbours.",
        check(lambda v: is_number(v) and 0 < v <= 1e6, "a number above 0"),
    )
    smooth: bool = option(True, "The soft map is filtered once more before the comparison.")
    bits: int = option(
        8,
        "8 or 16: the result is rounded as a PNG of that depth would; 0: kept in float32.",
        one_of(0, 8, 16),
    )

    @classmethod
    def recipe(cls, name: str) -> NMSParams:
        """The constants of a recipe, such as "hed" or "rcf". Raises ProtocolError."""
        if name not in RECIPES:
            raise ProtocolError(
                f"NMS recipe {name!r}: expected one of {', '.join(RECIPES)}, or the constants "
                "radius,border,multiplier,smooth|raw,bits"
            )
        return RECIPES[name]

    @property
    def recipe_name(self) -> str | None:
        """The first recipe with these constants, or None."""
        return next((name for name, recipe in RECIPES.items() if recipe == self), None)

    def __str__(self) -> str:
        """The recipe or the constants, as `nms_params` reads them."""
        how = "smooth" if self.smooth else "raw"
        return (
            self.recipe_name
            or f"{self.radius},{self.border},{number_text(self.multiplier)},{how},{self.bits}"
        )

    def describe(self) -> str:
        """The constants in a few words with the name of their recipe: "hed: 1, 5, 1.01 (8 bit)"."""
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
            return NMSParams(radius, border, float(given[2]), given[3] == "smooth", bits)
        except ValueError as error:
            raise ProtocolError(f"nms {','.join(map(str, given))}: {error}") from None
    if isinstance(given, str):
        return NMSParams.recipe(given)
    return record_of(NMSParams, given, "nms") if isinstance(given, Mapping) else given


# Constants and the program they were read in. Names with equal constants are one recipe; a protocol
# is described by the first of them.
RECIPES: dict[str, NMSParams] = {
    "hed": NMSParams(1, 5, 1.01, True, 8),  # HED, nms_process.m and EvalEdge.m; also FCL-Net
    "rcf": NMSParams(2, 5, 1.01, False, 8),  # RCF, edge_nms.m, BSDS500 and Multicue
    "rcf-nyud": NMSParams(4, 5, 1.01, False, 8),  # RCF, edge_nms.m, the comment on NYUD
    "cats": NMSParams(1, 4, 1.01, True, 8),  # CATS, eval_edge.m, BSDS500
    "cats-nyud": NMSParams(4, 4, 1.01, True, 8),  # CATS, eval_edge.m, NYUD
    "dexined": NMSParams(1, 5, 1.03, False, 8),  # DexiNed, the author in issue 8
    "teed": NMSParams(1, 5, 1.04, False, 8),  # TEED, the author in issue 21
    "edter": NMSParams(1, 5, 1.01, True, 8),  # EDTER, eval_bsds.m; also EdgeNAT
    "edter-nyud": NMSParams(2, 5, 1.01, True, 8),  # EDTER, eval_nyud.m; also EdgeNAT
    "rindnet": NMSParams(1, 5, 1.01, True, 8),  # RINDNet, eval.m
    "pidinet": NMSParams(1, 5, 1.01, True, 8),  # PiDiNet, from a derived copy of its script
    "skeleton": NMSParams(1, 5, 1.01, False, 0),  # skeval, nms.m
    "seism": NMSParams(1, 5, 1.01, False, 0),  # SEISM, read_one_cont_png.m; multi-task learning
    "occlusion": NMSParams(1, 5, 1.01, False, 0),  # DOOBNet, edge_nms.m; also P2ORM
    "se": NMSParams(1, 5, 1.01, False, 0),  # structured edges, edgesDetect
    "crack": NMSParams(2, 5, 1.01, False, 0),  # pavement-crack-detection, crack_nms.m
    "crispness": NMSParams(2, 5, 1.01, False, 0),  # average crispness, eval_crispness.m
    "strict": NMSParams(1, 5, 1.01, False, 8),  # SDPED, benchmarkBoundary.m
    "plain": NMSParams(1, 0, 1.0, False, 0),  # the comparison alone
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
