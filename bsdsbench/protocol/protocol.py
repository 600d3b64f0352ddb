"""The constants of a benchmark: a frozen `Protocol`, and the named presets of protocols/*.toml."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.arguments import given_list, given_path, kind_of_value
from bsdsbench.files.bounded import MAX_TOML_BYTES, parse_toml, read_text, reading
from bsdsbench.files.errors import ProtocolError, clip, did_you_mean
from bsdsbench.protocol.contour_params import ContourParams
from bsdsbench.protocol.field_ranges import (
    CONTOUR,
    FIELDS,
    MAX_THRESHOLDS,
    NMS,
    SALIENCY,
    SEMANTIC,
    check_fields,
    clipped,
)
from bsdsbench.protocol.nms_recipes import RECIPES
from bsdsbench.protocol.object_params import SaliencyParams, SemanticParams
from bsdsbench.protocol.plain_values import plain_fields, short, toml_text

UNSTATED = "unstated"  # the name of a protocol of which only the thresholds are known
UNSTATED_GRID = "unstated-thresholds"  # and of one of which not even these are


def even_thresholds(count: int) -> tuple[float, ...]:
    """linspace(1/(T+1), 1 - 1/(T+1), T): the official default grid (boundaryBench.m)."""
    return tuple(np.linspace(1 / (count + 1), 1 - 1 / (count + 1), count).tolist())


def byte_thresholds() -> tuple[float, ...]:
    """k/255 for k = 1 .. 255: every level of an 8-bit picture but the trivial zero."""
    return tuple((np.arange(1, 256) / 255).tolist())


@dataclass(frozen=True, slots=True)
class NMSParams:
    """Edge non-maximum suppression as a data set's users run it (see bsdsbench.metrics.soft_maps).

    Parameters
    ----------
    radius, border : int
        Pixels compared on each side along the normal; pixels faded at the border.
    multiplier : float
        A pixel survives if multiplier * value is not below its neighbours.
    smooth : bool
        Filter the soft map once more before the comparison.
    bits : int
        8 or 16: the result is rounded as a PNG of that depth would; 0: kept in float32.
    """

    radius: int = 1
    border: int = 5
    multiplier: float = 1.01
    smooth: bool = True
    bits: int = 8

    @classmethod
    def recipe(cls, name: str) -> NMSParams:
        """The constants of a recipe (bsdsbench.protocol.nms_recipes). Raises ProtocolError."""
        if name not in RECIPES:
            raise ProtocolError(f"NMS recipe {name!r}: expected one of {', '.join(RECIPES)}")
        return cls(*RECIPES[name].constants)

    def describe(self) -> str:
        """The constants in a few words, with the name of their recipe."""
        depth = f"{self.bits} bit" if self.bits else "float"
        smooth = "" if self.smooth else ", not smoothed"
        name = f"{self.recipe_name}: " if self.recipe_name else ""
        return f"{name}{self.radius}, {self.border}, {self.multiplier:g} ({depth}{smooth})"

    @property
    def recipe_name(self) -> str | None:
        """The first recipe with these constants, or None."""
        mine = (self.radius, self.border, self.multiplier, self.smooth, self.bits)
        return next((name for name, r in RECIPES.items() if r.constants == mine), None)


@dataclass(frozen=True, slots=True)
class Protocol:
    """How a prediction is turned into counts. Equal protocols give comparable scores.

    Parameters
    ----------
    name : str
        Its name; a changed preset carries a star.
    version : int
        Raised whenever a constant of the preset changes.
    thresholds : tuple of float
        Increasing, in [0, 1]; in a file or in `replace` also an int (that many even ones) or "8bit"
        (k/255). With operator ">=" a threshold 0 stands for the whole image, every pixel on and not
        thinned, as EDTER's programs add it.
    max_dist : float
        Match tolerance, a fraction of the image diagonal.
    max_dist_px : float or None
        The same in pixels; overrides max_dist when set.
    thin : bool
        Thin each thresholded map to one pixel before matching.
    clean : bool
        Then drop pixels without one of the eight neighbours.
    gt_thin : bool
        Thin each annotator's map to one pixel before matching.
    normalise : bool
        Divide each map by its largest value, before NMS.
    nms : bool
        Apply edge NMS to the soft map before thresholding. Off in the presets of data sets, as only
        the user knows whether the files on disk have had it.
    nms_params : NMSParams
        The constants `nms` uses; also the name of a recipe.
    invert : bool
        The prediction is dark on bright (1 - value is taken).
    gt_invert : bool
        Ground-truth pictures are dark boundaries on bright ground.
    gt_threshold : float or None
        Gray ground-truth pictures are boundary from this value in (0, 1] on; None refuses gray.
    gt_kind : str
        "boundaries", or "labels" for ground-truth pictures and arrays of region labels.
    ap_rule : str
        How AP is read off the curve, a name of bsdsbench.scores.curve_rules.AP_RULES.
    ods_rule : str
        "interpolated" between thresholds, or "maximum" over the thresholds.
    operator : str
        ">=" or ">": which values are on at a threshold.
    semantic : SemanticParams or None
        Options of per-class boundaries, or None where there are no classes.
    contour : ContourParams or None
        Options of the measures of masks and label maps, or None for their defaults.
    saliency : SaliencyParams or None
        Options of salient objects, or None where there are none.
    regions_from_soft : bool
        Region measures close soft boundary maps into regions at each threshold.

    Raises
    ------
    ProtocolError
        Naming the field, for a value out of its range.
    """

    name: str = "custom"
    version: int = 1
    thresholds: tuple[float, ...] = even_thresholds(99)
    max_dist: float = 0.0075
    max_dist_px: float | None = None
    thin: bool = True
    clean: bool = False
    gt_thin: bool = False
    normalise: bool = False
    nms: bool = False
    nms_params: NMSParams = NMSParams()
    invert: bool = False
    gt_invert: bool = False
    gt_threshold: float | None = None
    gt_kind: str = "boundaries"
    ap_rule: str = "bsds"
    ods_rule: str = "interpolated"
    operator: str = ">="
    semantic: SemanticParams | None = None
    contour: ContourParams | None = None
    saliency: SaliencyParams | None = None
    regions_from_soft: bool = False

    def __post_init__(self) -> None:
        given: Any = self.thresholds
        if isinstance(given, np.ndarray):
            given = tuple(given_list(given, "thresholds", "numbers"))
        if isinstance(given, str) and given == "8bit":
            given = byte_thresholds()
        elif isinstance(given, int) and not isinstance(given, bool):
            if not 1 <= given <= MAX_THRESHOLDS:
                raise ProtocolError(
                    f"thresholds {clip(str(given), 40)}: expected 1 to {MAX_THRESHOLDS} of them"
                )
            given = even_thresholds(given)
        try:
            object.__setattr__(self, "thresholds", tuple(float(t) for t in given))
        except (TypeError, ValueError, OverflowError):
            raise ProtocolError(
                f"thresholds {clipped(given)}: expected a number of them, a list, or '8bit'"
            ) from None
        if isinstance(self.nms_params, str):
            object.__setattr__(self, "nms_params", NMSParams.recipe(self.nms_params))
        for name, kind in _TABLES.items():
            value = getattr(self, name)
            if isinstance(value, Mapping):
                object.__setattr__(self, name, _nested(kind, value))
        self._check()
        if self.name in preset_names() and not self._is_preset(self.name):
            raise ProtocolError(
                f"name {self.name!r}: a preset's, whose fields differ; expected another name, "
                f"'{self.name}*' for a changed form, or Protocol.preset({self.name!r})"
            )

    def _check(self) -> None:
        """Every field in its range; the first that is not is named. Raises ProtocolError."""
        check_fields(self, FIELDS)
        for name, kind, rules, prefix in (
            ("nms_params", NMSParams, NMS, "nms "),
            ("semantic", SemanticParams, SEMANTIC, ""),
            ("contour", ContourParams, CONTOUR, "contour "),
            ("saliency", SaliencyParams, SALIENCY, ""),
        ):
            value = getattr(self, name)
            if isinstance(value, kind):
                check_fields(value, rules, prefix)
            elif name == "nms_params" or value is not None:
                expected = f"the entries of {kind.__name__}"
                raise ProtocolError(f"{name} {clipped(value)}: expected {expected}")

    @property
    def stated(self) -> bool:
        """False for others' result files, of which nothing but the thresholds is known."""
        return self.name not in (UNSTATED, UNSTATED_GRID)

    @property
    def whole_image(self) -> bool:
        """True if the first threshold is 0 and stands for the whole image."""
        return self.thresholds[0] == 0 and self.operator == ">="

    @classmethod
    def preset(cls, name: str) -> Protocol:
        """The named protocol shipped with the package, read once: protocols do not change.

        Raises ProtocolError for an unknown name.
        """
        return _shipped(_preset_name(name))

    @classmethod
    def of(cls, protocol: Protocol | str | Path | None) -> Protocol:
        """The protocol meant: one, the name of one or its .toml file; None is bsds500.

        Raises as `load`.
        """
        if protocol is None:
            return cls.preset("bsds500")
        if not isinstance(protocol, Protocol | str | Path):
            raise ProtocolError(
                f"protocol: {kind_of_value(protocol)}, expected a Protocol or the name of a preset"
            )
        if isinstance(protocol, str) and protocol in _preset_names():
            return cls.preset(protocol)
        return protocol if isinstance(protocol, Protocol) else cls.load(protocol)

    @classmethod
    def load(cls, name_or_path: str | Path) -> Protocol:
        """A preset by name, or the protocol in a .toml file.

        A file may hold `base = "bsds500"` and only the fields it changes.
        Raises ProtocolError for what is neither, FileFormatError for a broken file.
        """
        path = given_path(name_or_path, "protocol")
        if path.suffix != ".toml":
            return cls.preset(str(name_or_path))
        text = read_text(path, "a protocol file", MAX_TOML_BYTES)
        return cls.from_toml(text, str(path))

    @classmethod
    def from_toml(cls, text: str, source: str = "protocol") -> Protocol:
        """A protocol from TOML text; `source` names it in errors."""
        with reading(source, "a protocol in TOML"):
            values = parse_toml(text.encode("utf-8", "surrogatepass"))
        try:
            return cls.from_mapping(values)
        except ProtocolError as error:
            raise ProtocolError(f"{source}: {error}") from None

    @classmethod
    def stored(cls, values: Mapping[str, Any]) -> Protocol:
        """The protocol of a saved run: as `from_mapping`, but a preset's name whose fields were
        others then, in an earlier version, gets a star."""
        name = values.get("name") if isinstance(values, Mapping) else None
        if not isinstance(name, str) or name not in preset_names():
            return cls.from_mapping(values)
        return cls.from_mapping({**values, "name": name + "*"}).named(name)

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Protocol:
        """A protocol from a TOML or JSON mapping. Raises ProtocolError for unknown names."""
        if not isinstance(values, Mapping):
            raise ProtocolError(f"protocol {clipped(values)}: expected fields and values")
        rest = dict(values)
        base = cls.preset(str(rest.pop("base"))) if "base" in rest else None
        _known(cls, rest)
        return base.replace(**rest) if base else cls(**rest)

    def replace(self, **changes: Any) -> Protocol:
        """A copy with some fields changed.

        What differs from the preset it is named after has a star behind its name: derived from the
        fields, so that a change undone loses it. `name` may be changed too, but not to a preset's.
        A mapping given for nms_params, semantic or contour changes only the entries it names.
        """
        _known(type(self), changes)
        for name, kind in _TABLES.items():
            given = changes.get(name)
            if isinstance(given, Mapping):
                old = getattr(self, name)
                changes[name] = _nested(kind, {**(plain_fields(old) if old else {}), **given})
        if "name" in changes:
            return replace(self, **changes)
        plain = self.name.removesuffix("*")
        changed = replace(self, **{**changes, "name": plain + "*"})
        if plain in preset_names():
            return changed.named(plain)
        same = self.name == plain and replace(self, name=changed.name) == changed
        return self if same else changed

    def named(self, name: str) -> Protocol:
        """A copy of that name, with a star behind it if it is a preset's and the fields differ."""
        star = name in preset_names() and not self._is_preset(name)
        return replace(self, name=name + "*" if star else name)

    def _is_preset(self, name: str) -> bool:
        return replace(self, name=name + "*") == _starred(name)

    def to_mapping(self) -> dict[str, Any]:
        """Plain values for JSON; `from_mapping` reads them back to an equal protocol."""
        return plain_fields(self)

    def to_toml(self) -> str:
        """TOML text that `from_toml` reads back to an equal protocol."""
        return toml_text(self.to_mapping())

    def differences(self, other: Protocol) -> list[str]:
        """What makes scores under the two incomparable, one line per field; empty if nothing.

        The name is not a difference, and nms_params only where NMS is applied.
        """
        mine, theirs = self.to_mapping(), other.to_mapping()
        skip = {"name", "version"} | (set() if self.nms and other.nms else {"nms_params"})
        if not (self.stated and other.stated):
            known = UNSTATED_GRID not in (self.name, other.name)
            skip = mine.keys() - ({"thresholds"} if known else set())
        return [
            f"{key}: {short(mine[key])} / {short(theirs[key])}"
            for key in mine
            if key not in skip and mine[key] != theirs[key]
        ]

    def describe(self) -> str:
        """One line with everything that moves a score, for printing beside it."""
        t, px = self.thresholds, self.max_dist_px
        grid = f"{len(t)} thresholds {t[0]:.4g}..{t[-1]:.4g}"
        if self.name == UNSTATED_GRID:
            return "protocol and thresholds not stated"
        if not self.stated:
            row = ", the first of them the whole image" if self.whole_image else ""
            return f"{grid}{row}; the rest of the protocol is not stated"
        parts = [
            grid,
            f"max_dist {self.max_dist:g} of the diagonal" if px is None else f"max_dist {px:g} px",
            "thinned" if self.thin else "not thinned",
        ]
        parts.append(f"NMS {self.nms_params.describe()}" if self.nms else "no NMS")
        if self.operator != ">=":
            parts.append(f"value {self.operator} threshold")
        for field, words in (
            ("clean", "single pixels dropped"),
            ("gt_thin", "ground truth thinned"),
            ("normalise", "divided by its maximum"),
            ("invert", "inverted"),
        ):
            if getattr(self, field):
                parts.append(words)
        if self.gt_invert:
            parts.append("ground truth inverted")
        if self.gt_threshold is not None:
            parts.append(f"ground truth from {self.gt_threshold:g} on")
        if self.gt_kind != "boundaries":
            parts.append("ground truth from labels")
        if self.regions_from_soft:
            parts.append("regions from soft maps")
        if self.semantic:
            parts.append(self.semantic.describe())
        if self.contour:
            parts.append(self.contour.describe())
        if self.ods_rule != "interpolated":
            parts.append(f"ODS rule {self.ods_rule}")
        return f"{self.name} v{self.version}: {'; '.join([*parts, f'AP rule {self.ap_rule}'])}"

    def gt_options(self) -> dict[str, Any]:
        """What `load_ground_truth` has to know."""
        return {
            "gt_invert": self.gt_invert,
            "gt_threshold": self.gt_threshold,
            "kind": self.gt_kind,
        }

    def threshold_array(self) -> NDArray[np.float64]:
        """thresholds as f8 (T,)."""
        return np.array(self.thresholds, np.float64)

    def cuts(self) -> NDArray[np.float64]:
        """f8 (T,): a pixel is on at threshold i where its value in float64 >= cuts()[i].

        The thresholds themselves, or with operator ">" the next larger numbers.
        """
        thresholds = self.threshold_array()
        return thresholds if self.operator == ">=" else np.nextafter(thresholds, np.inf)

    def radius(self, shape: tuple[int, int]) -> float:
        """The match tolerance in pixels for an image of `shape` (rows, columns)."""
        if self.max_dist_px is not None:
            return self.max_dist_px
        return self.max_dist * math.hypot(*shape)


_TABLES: dict[str, Any] = {
    "nms_params": NMSParams,
    "semantic": SemanticParams,
    "saliency": SaliencyParams,
    "contour": ContourParams,
}


def class_names(protocol: Protocol) -> tuple[str, ...]:
    """The classes of a protocol; none where it has no classes."""
    return protocol.semantic.classes if protocol.semantic else ()


@cache
def _shipped(name: str) -> Protocol:
    return Protocol.from_toml(preset_text(name), name)


def preset_text(name: str) -> str:
    """The TOML text of a preset, with its comments. Raises ProtocolError for an unknown name."""
    folder = resources.files("bsdsbench.protocol.presets")
    return folder.joinpath(f"{_preset_name(name)}.toml").read_text("utf-8")


def _preset_name(name: str) -> str:
    """The name, if it is a preset's; ProtocolError if not."""
    if not isinstance(name, str) or name not in _preset_names():
        raise ProtocolError(
            f"protocol {kind_of_value(name)}: expected a .toml file or one of "
            f"{', '.join(preset_names())}{did_you_mean(str(name), preset_names())}"
        )
    return name


def parse_overrides(items: Iterable[str]) -> dict[str, Any]:
    """`["max_dist=0.011", "nms_params.radius=2"]` -> the changes for `Protocol.replace`.

    Values are TOML (true, 0.011, [0.2, 0.5], "text"); anything else is taken as text. Raises
    ProtocolError for an item without "=", and for a field that is given twice.
    """
    changes: dict[str, Any] = {}
    for item in items:
        key, equals, text = item.partition("=")
        key, text = key.strip().replace("-", "_"), text.strip()
        if not equals or not key or not text:
            raise ProtocolError(f"{item!r}: expected FIELD=VALUE")
        try:
            value = parse_toml(f"value = {text}".encode("utf-8", "surrogatepass"))["value"]
        except (ValueError, RecursionError):
            value = None if text in ("none", "None") else text
        outer, dot, inner = key.partition(".")
        if dot:
            changes.setdefault(outer, {})
            if not isinstance(changes[outer], dict):
                raise ProtocolError(f"{item!r}: {outer} is already given whole")
        into, name = (changes[outer], inner) if dot else (changes, key)
        if name in into:
            raise ProtocolError(f"{item!r}: {key} is given more than once")
        into[name] = value
    return changes


@cache
def _starred(name: str) -> Protocol:
    """The preset under its name with a star, which any protocol may have."""
    values = parse_toml(preset_text(name).encode())
    return Protocol(**{**values, "name": name + "*"})


def preset_names() -> list[str]:
    """The presets that `Protocol.preset` knows, sorted."""
    return list(_preset_names())


@cache
def _preset_names() -> tuple[str, ...]:
    folder = resources.files("bsdsbench.protocol.presets")
    return tuple(sorted(p.name[:-5] for p in folder.iterdir() if p.name.endswith(".toml")))


def presets_with(table: str) -> list[str]:
    """The presets that have options of that name, as "semantic"."""
    return [name for name in preset_names() if getattr(Protocol.preset(name), table) is not None]


def _known(kind: type, values: Mapping[str, Any]) -> None:
    known = [f.name for f in fields(kind)]
    for name in values:
        if name not in known:
            raise ProtocolError(f"protocol field {name!r}: expected one of {', '.join(known)}")


def _nested(kind: Any, values: Mapping[str, Any]) -> Any:
    """A record of `kind` from a mapping."""
    _known(kind, values)
    return kind(**values)
