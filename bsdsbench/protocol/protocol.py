"""The constants of a benchmark: a frozen `Protocol`, and the named presets of presets/*.toml."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from attr import asdict  # tuples become lists, unlike with attrs.asdict
from attrs import evolve, field, frozen

from bsdsbench.arguments import F8, kind_of_value
from bsdsbench.errors import ProtocolError
from bsdsbench.protocol.fields import (
    DEFAULT,
    NUMBER,
    POSITIVE,
    TEXT,
    abbreviated,
    accepting,
    captions,
    check_names,
    clipped,
    default_of,
    is_int,
    is_number,
    number_text,
    one_of,
    one_or_several,
    option,
    read_toml,
    record_of,
    several_of,
    shipped,
    tidy,
    whole,
)
from bsdsbench.scores.curve import AP_RULES, ODS_RULES
from bsdsbench.tables.read_only import ReadOnlyDict
from bsdsbench.text import did_you_mean, listed

MAX_THRESHOLDS = 32_767  # what the kernels count in 16 bits
MAX_PX = 1_000
UNSTATED = "unstated"  # the name of a protocol of which only the thresholds are known
UNSTATED_GRID = "unstated-thresholds"  # and of one of which not even these are
# What a preset's name does not stand for: the user alone knows whether the maps had NMS already.
NOT_OF_PRESETS = ("name", "nms", "nms_params")
# Fields of the protocol that move scores: all that change a soft map or the reading of annotators,
# all that make a curve's numbers, and with them those of matching.
MAPS = ("invert", "normalise", "nms", "nms_params")
READ = ("invert", "normalise", "gt_invert", "gt_threshold")  # what values mean
ANNOTATED = ("gt_invert", "gt_threshold", "gt_kind", "empty_gt")
CURVE = ("thresholds", "operator", "ap_rule", "ods_rule")
MATCHING = ("max_dist", "max_dist_px", "thin", "clean", "gt_thin")
MATCHED = (*MAPS, *ANNOTATED, *CURVE, *MATCHING)


def even_thresholds(count: int) -> tuple[float, ...]:
    """Return linspace(1/(T+1), 1 - 1/(T+1), T), the default grid of boundaryBench.m."""
    return tuple(np.linspace(1 / (count + 1), 1 - 1 / (count + 1), count).tolist())


# Grids that have a name, in files and signatures.
GRIDS = {
    "8bit": tuple((np.arange(1, 256) / 255).tolist()),  # all levels of a picture but the trivial 0
    "seism": (0.001, *(k / 100 for k in range(1, 100)), 0.999),  # of its programs for contours
    "deepcrack": tuple(k / 100 for k in range(100)),  # no linspace: ten differ in the last digit
}


def _thresholds_of(given: Any) -> tuple[float, ...]:
    """Return the thresholds that a file, the command line or a signature writes.

    They are a count of even ones, a name of GRIDS, "FROM..TO/N" or values; "0+" before a text adds
    the whole image.
    """
    try:
        if isinstance(given, str):
            if given in GRIDS:
                return GRIDS[given]
            if given.startswith("0+"):
                return (0.0, *_thresholds_of(given[2:]))
            if ".." in given:
                low, high, count = re.split(r"\.\.|/", given)
                points = min(int(count), MAX_THRESHOLDS + 1)
                return tuple(np.linspace(float(low), float(high), points).tolist())
            if not given.isdecimal():
                return tuple(map(float, given.removeprefix("at ").split(",")))
            given = int(given)
        if not is_int(given):
            return tuple(map(float, given))
        if 1 <= given <= MAX_THRESHOLDS:
            return even_thresholds(given)
    except (TypeError, ValueError, ArithmeticError):
        pass
    raise ProtocolError(
        f"thresholds {clipped(given)}: expected a number of them, 1 to {MAX_THRESHOLDS}, values, "
        f"FROM..TO/N or one of {', '.join(GRIDS)}"
    )


def thresholds_text(values: tuple[float, ...]) -> str:
    """Return the shortest text that stands for these values, to the last bit."""
    count = len(values)
    for name, grid in {**GRIDS, str(count): even_thresholds(count)}.items():
        if values == grid:
            return name
    if values[0] == 0 and count > 1:
        return f"0+{thresholds_text(values[1:])}"
    if count > 4 and values == tuple(np.linspace(values[0], values[-1], count).tolist()):
        return f"{values[0]}..{values[-1]}/{count}"
    return "at " + ",".join(map(number_text, values))


@frozen
class NMSParams:
    """Edge non-maximum suppression as a data set's users run it: `bsdsbench.transforms.maps`.

    Examples
    --------
    >>> nms_params("rcf").describe()
    'rcf: 2, 5, 1.01 (8 bit, not smoothed)'
    >>> str(NMSParams(radius=3))
    '3,5,1.01,smooth,8'
    """

    radius: int = option(
        1, "Pixels compared on each side along the normal.", whole(1, 99, "1 to 99 pixels")
    )
    border: int = option(5, "Pixels faded at the border.", whole(0, 9999, "0 to 9999 pixels"))
    multiplier: float = option(
        1.01, "A pixel survives if multiplier * value is not below its neighbours.", POSITIVE
    )
    smooth: bool = option(True, "The soft map is filtered once more before the comparison.")
    bits: int = option(
        8,
        "8 or 16: the result is rounded as a PNG of that depth would; 0: kept in float32.",
        one_of(0, 8, 16),
    )

    @property
    def recipe_name(self) -> str | None:
        """The first recipe with these constants, or None."""
        return next((name for name, recipe in RECIPES.items() if recipe == self), None)

    def __str__(self) -> str:
        """Return the recipe or the constants, as `nms_params` of a protocol reads them."""
        constants = (self.radius, self.border, number_text(self.multiplier))
        rounding = ("smooth" if self.smooth else "raw", self.bits)
        return self.recipe_name or ",".join(map(str, constants + rounding))

    def describe(self) -> str:
        """Return the constants in words, with their recipe: "hed: 1, 5, 1.01 (8 bit)"."""
        depth = f"{self.bits} bit" if self.bits else "float"
        smooth = "" if self.smooth else ", not smoothed"
        name = f"{self.recipe_name}: " if self.recipe_name else ""
        return f"{name}{self.radius}, {self.border}, {self.multiplier:g} ({depth}{smooth})"


def nms_params(given: object) -> Any:
    """Return the constants that a recipe's name, their text or its parts, or a table stands for."""
    if isinstance(given, Mapping):
        return record_of(NMSParams, given, "nms")
    text = ",".join(map(str, given)) if isinstance(given, list | tuple) else given
    if not isinstance(text, str):
        return given
    pattern = rf"(\d{{1,9}}),(\d{{1,9}}),({NUMBER}),(smooth|raw),(\d{{1,9}})"
    if constants := re.fullmatch(pattern, text):
        radius, border, factor, smoothing, bits = constants.groups()
        return NMSParams(int(radius), int(border), float(factor), smoothing == "smooth", int(bits))
    if text not in RECIPES:
        raise ProtocolError(
            f"NMS recipe {clipped(text)}: expected one of {', '.join(RECIPES)}, or the constants "
            "radius,border,multiplier,smooth|raw,bits"
        )
    return RECIPES[text]


# Names with equal constants are one recipe; a protocol is described by the first of them.
RECIPES: dict[str, NMSParams] = {
    name: nms_params(text) for name, text in shipped("recipes.toml").items()
}


def _option_tables(given: Any) -> Mapping[str, Mapping[str, Any]]:
    """Return the options of each metric that are not the default, read-only."""

    def plain(value: object) -> object:
        return tuple(map(plain, value)) if isinstance(value, list | tuple) else value

    tables: dict[str, Any] = {}
    for name, table in given.items() if isinstance(given, Mapping) else [("", given)]:
        values = table
        if attrs.has(type(table)):
            fields = [(f, getattr(table, f.name)) for f in attrs.fields(type(table))]
            values = {f.name: value for f, value in fields if value != default_of(table, f)}
        if not isinstance(values, Mapping) or not all(isinstance(k, str) for k in (name, *values)):
            raise ProtocolError(f"options {clipped(given)}: expected a table for each metric")
        kept = {key: plain(v) for key, v in values.items() if v not in (None, DEFAULT)}
        tables |= {name: ReadOnlyDict(kept)} if kept else {}
    return ReadOnlyDict(tables)


@frozen(repr=False)
class Protocol:
    """How a prediction is turned into counts. Equal protocols give comparable scores.

    The fields, with their defaults and what they mean, are listed by `bsdsbench protocols`. A value
    out of its range raises ProtocolError, which names the field.

    Examples
    --------
    >>> protocol = Protocol.preset("bsds500").replace(max_dist=0.011)
    >>> protocol.name, protocol.max_dist
    ('bsds500*', 0.011)
    """

    name: str = option("custom", "Its name; a changed preset carries a star.", TEXT)
    version: int = option(
        1,
        "Raised whenever a constant of the preset changes.",
        whole(1, 10**6, "a whole number from 1"),
    )
    thresholds: tuple[float, ...] = option(
        even_thresholds(99),
        "Increasing, in [0, 1]; also an int (that many even ones), FROM..TO/N, 8bit (k/255), "
        "seism (0.001, 0.01 .. 0.99, 0.999) or deepcrack (0, 0.01 .. 0.99). With operator >= a "
        "threshold 0 stands for the whole image, every pixel on and not thinned.",
        accepting(
            lambda v: (
                any(x > 0 for x in v)
                and all(0 <= x <= 1 for x in v)
                and all(a < b for a, b in pairwise(v))
                and len(v) <= MAX_THRESHOLDS
            ),
            f"at most {MAX_THRESHOLDS} increasing values in [0, 1], one or more above 0",
        ),
        _thresholds_of,
        caption=lambda p: (
            f"{len(p.thresholds)} thresholds {p.thresholds[0]:.4g}..{p.thresholds[-1]:.4g}"
        ),
    )
    max_dist: float | tuple[float, ...] = option(
        0.0075,
        "Match tolerance, a fraction of the image diagonal. Of several the first gives the scores, "
        "and each has columns of its own.",
        several_of(
            lambda v: 0 < v < 1, "a fraction in (0, 1) of the diagonal; in pixels it is max_dist_px"
        ),
        one_or_several,
        caption=lambda p: (
            f"max_dist {', '.join(map('{:g}'.format, p.tolerances))}"
            f" {'of the diagonal' if p.max_dist_px is None else 'px'}"
        ),
    )
    max_dist_px: float | tuple[float, ...] | None = option(
        None,
        "The same in pixels; overrides max_dist when set.",
        attrs.validators.optional(several_of(lambda v: 0 <= v <= MAX_PX, f"pixels, 0 to {MAX_PX}")),
        one_or_several,
    )
    thin: bool = option(
        True,
        "Thin each thresholded map to one pixel before matching.",
        caption={True: "thinned", False: "not thinned"},
    )
    nms: bool = option(
        False,
        "Apply edge NMS to the soft map before thresholding. Off in the presets of data sets, as "
        "only the user knows whether the files on disk have had it.",
        caption=lambda p: f"NMS {p.nms_params.describe()}" if p.nms else "no NMS",
    )
    nms_params: NMSParams = option(  # noqa: RUF009
        NMSParams(),
        "The constants that NMS uses; also the name of a recipe.",
        accepting(lambda v: isinstance(v, NMSParams), "a recipe, or the entries of NMSParams"),
        nms_params,
    )
    operator: str = option(
        ">=",
        'Which values are on at a threshold: ">=" or ">".',
        one_of(">=", ">"),
        caption="value {} threshold",
    )
    clean: bool = option(
        False,
        "After thinning drop pixels without one of the eight neighbours.",
        caption="single pixels dropped",
    )
    gt_thin: bool = option(
        False,
        "Thin each annotator's map to one pixel before matching.",
        caption="ground truth thinned",
    )
    normalise: bool = option(
        False,
        "Divide each map by its largest value, before inversion and NMS.",
        caption="divided by its maximum",
    )
    invert: bool = option(
        False, "The prediction is dark on bright (1 - value is taken).", caption="inverted"
    )
    gt_invert: bool = option(
        False,
        "Boundaries, or objects, of the ground truth are dark on bright ground.",
        caption="ground truth inverted",
    )
    gt_threshold: float | None = option(
        None,
        "Gray ground-truth pictures are boundary from this value in (0, 1] on; none refuses gray.",
        accepting(lambda v: v is None or (is_number(v) and 0 < v <= 1), "a value in (0, 1]"),
        caption="ground truth from {:g} on",
    )
    gt_kind: str = option(
        "boundaries",
        '"boundaries", or "labels" for ground-truth pictures and arrays of region labels.',
        one_of("boundaries", "labels"),
        caption="ground truth from labels",
    )
    empty_gt: str = option(
        "error",
        'Images whose ground truth has no boundary: "error", "count" (their false positives count) '
        'or "skip".',
        one_of("error", "count", "skip"),
        caption={
            "count": "images without ground-truth boundaries count",
            "skip": "images without ground-truth boundaries left out",
        },
    )
    regions_from_soft: bool = option(
        False,
        "Region measures close soft boundary maps into regions at each threshold.",
        caption="regions from soft maps",
    )
    ods_rule: str = option(
        "interpolated",
        '"interpolated" between thresholds, or "maximum" over the thresholds.',
        one_of(*ODS_RULES),
        caption="ODS rule {}",
    )
    ap_rule: str = option(
        "bsds",
        f"How AP is read off the curve: {', '.join(AP_RULES)}.",
        one_of(*AP_RULES),
        caption=lambda p: f"AP rule {p.ap_rule}",
    )
    options: Mapping[str, Any] = field(
        factory=dict,
        converter=_option_tables,
        hash=False,
        metadata={
            "help": "Metric to its own options, those that are given, read-only. In a file each is "
            "a table, [saliency]. The metric checks them."
        },
    )

    def __attrs_post_init__(self) -> None:
        plain = self.name.removesuffix("*")
        if plain in preset_names():
            base = _fields_of(plain)
            changed = {n for n in self.names() if getattr(self, n) != getattr(base, n)}
            changed -= {*NOT_OF_PRESETS}
            if self.max_dist_px == base.max_dist_px and self.tolerances[0] == base.tolerances[0]:
                changed.discard("max_dist")  # further tolerances move no score of the preset's
            if changed and self.name == plain:
                raise ProtocolError(
                    f"name {plain!r}: a preset of other constants ({listed(sorted(changed), 3)}), "
                    f"expected Protocol.preset({plain!r}), base = {plain!r} in a file, or a name "
                    "that is no preset's"
                )
            star = "*" if changed else ""
            object.__setattr__(self, "name", plain + star)

    def __repr__(self) -> str:
        """One line, as printed under tables."""
        return f"<Protocol {self.describe()}>"

    @property
    def stated(self) -> bool:
        """False for result files of other programs, which state nothing but their thresholds."""
        return self.name not in (UNSTATED, UNSTATED_GRID)

    @property
    def whole_image(self) -> bool:
        """True if the first threshold is 0 and stands for the whole image."""
        return self.thresholds[0] == 0 and self.operator == ">="

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The names of the fields."""
        return tuple(attrs.fields_dict(cls))

    @classmethod
    def preset(cls, name: str) -> Protocol:
        """Return the protocol of that name. Raises ProtocolError for an unknown one."""
        return _shipped(_known(name))

    @classmethod
    def load(cls, protocol: Protocol | str | Path | None) -> Protocol:
        """Return a protocol unchanged, a preset by name, or the protocol of a .toml file.

        The file may hold `base = "bsds500"` and what it changes; None is bsds500.

        Raises ProtocolError for anything else, FileFormatError for a broken file.
        """
        if isinstance(protocol, Protocol):
            return protocol
        path = Path("bsds500" if protocol is None else str(protocol))
        if path.suffix != ".toml":
            return cls.preset(str(path))
        values = read_toml(path, "a protocol in TOML")
        try:
            return cls.from_mapping(values)
        except ProtocolError as error:
            raise ProtocolError(f"{path}: {error}") from None

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Protocol:
        """Return a protocol with these plain values. Raises ProtocolError for unknown names.

        `base` names a preset that the others change; a table that is no field holds the options of
        the metric of that name.
        """
        if not isinstance(values, Mapping):
            raise ProtocolError(f"protocol {clipped(values)}: expected fields and values")
        known = {*cls.names(), "base"}
        tables = {n: v for n, v in values.items() if n not in known and isinstance(v, Mapping)}
        rest = {n: v for n, v in values.items() if n not in tables}
        rest["options"] = {**_option_tables(rest.get("options", {})), **tables}
        if "base" in rest:
            return cls.preset(rest.pop("base")).replace(**rest)
        if rest.get("name") in preset_names():  # a preset's text with changes, or a saved one
            written = shipped(f"presets/{rest['name']}.toml").keys() - rest["options"].keys()
            rest["name"] += "*" * (written <= rest.keys())
        return record_of(cls, rest, "protocol")

    def replace(self, **changes: Any) -> Protocol:
        """Return a copy with changed fields; one that differs from its preset gets a starred name.

        A mapping given for nms_params or the options of a metric changes only the entries it names;
        an option that is None is the default again.
        """
        check_names(type(self), changes, "protocol")
        if isinstance(given := changes.get("nms_params"), Mapping):
            changes["nms_params"] = asdict(self.nms_params) | dict(given)
        if isinstance(given := changes.get("options"), Mapping):
            changes["options"] = dict(self.options) | {
                name: {**self.options.get(name, {}), **t} if isinstance(t, Mapping) else t
                for name, t in given.items()
            }
        starred = self.name.removesuffix("*") + "*"
        usual = starred if starred[:-1] in preset_names() else self.name
        made = evolve(self, **{"name": usual, **changes}) if changes else self
        return made if "name" in changes or made == self else evolve(made, name=starred)

    def to_mapping(self) -> dict[str, object]:
        """Return plain values, which `from_mapping` reads back to an equal protocol."""
        return asdict(self)

    def changed(self, other: Protocol) -> dict[str, tuple[Any, Any]]:
        """Return both values of each plain one that differs, but for name and version."""
        left, right, differing = self.leaves(), other.leaves(), {}
        for key in {**left, **right}:
            both = left.get(key, DEFAULT), right.get(key, DEFAULT)
            if both[0] != both[1] and key not in ("name", "version"):
                differing[key] = both
        return differing

    def leaves(self) -> dict[str, object]:
        """Return the values by name; values in tables as "nms_params.radius", "saliency.beta2"."""
        values = asdict(self)
        tables = {"nms_params": values.pop("nms_params"), **values.pop("options")}
        return values | {
            f"{name}.{k}": v for name, table in tables.items() for k, v in table.items()
        }

    def describe(self, used: Collection[str] | None = None, more: Iterable[str] = ()) -> str:
        """Return a line with everything that moves a score.

        Parameters
        ----------
        used : names of fields, optional
            The fields that count; by default all, and the options of all metrics.
        more : texts
            Further settings, of the metrics.
        """
        if self.name == UNSTATED_GRID:
            return "protocol and thresholds not stated"
        words = captions(self)
        if not self.stated:
            row = ", the first of them the whole image" if self.whole_image else ""
            return f"{words['thresholds']}{row}; the rest of the protocol is not stated"
        if used is None:
            more = [
                f"{name}: {', '.join(f'{k} {abbreviated(v)}' for k, v in table.items())}"
                for name, table in self.options.items()
            ]
        settings = [text for name, text in words.items() if used is None or name in used]
        return f"{self.name} v{self.version}: {'; '.join([*settings, *more])}"

    def threshold_array(self) -> F8:
        """Return the thresholds as f8 (T,)."""
        return np.array(self.thresholds, np.float64)

    def cuts(self) -> F8:
        """Return f8 (T,): a pixel is on at threshold i where its value in float64 >= cuts()[i]."""
        thresholds = self.threshold_array()
        return thresholds if self.operator == ">=" else np.nextafter(thresholds, np.inf)

    @property
    def tolerances(self) -> tuple[float, ...]:
        """The match tolerances as given: max_dist_px, or fractions of the diagonal."""
        given = self.max_dist if self.max_dist_px is None else self.max_dist_px
        return given if isinstance(given, tuple) else (given,)

    @property
    def tolerance_names(self) -> tuple[str, ...]:
        """The text of each tolerance after the @ of its scores: 0.0075, or 2px."""
        unit = "" if self.max_dist_px is None else "px"
        return tuple(f"{tidy(v)}{unit}" for v in self.tolerances)

    def radii(self, shape: tuple[int, ...]) -> tuple[float, ...]:
        """The match tolerances in pixels for an image of `shape` (rows, columns)."""
        scale = math.hypot(*shape) if self.max_dist_px is None else 1.0
        return tuple(scale * tolerance for tolerance in self.tolerances)

    def radius(self, shape: tuple[int, ...]) -> float:
        """The first match tolerance in pixels for an image of `shape` (rows, columns)."""
        return self.radii(shape)[0]


@cache
def preset_names() -> tuple[str, ...]:
    """Return the names of the presets, sorted."""
    folder = resources.files("bsdsbench.protocol.presets")
    return tuple(sorted(p.name[:-5] for p in folder.iterdir() if p.name.endswith(".toml")))


def preset_text(name: str) -> str:
    """Return the TOML text of a preset with its comments. Raises ProtocolError if unknown."""
    folder = resources.files("bsdsbench.protocol.presets")
    return folder.joinpath(f"{_known(name)}.toml").read_text("utf-8")


def _known(name: object) -> str:
    if not isinstance(name, str) or name not in preset_names():
        raise ProtocolError(
            f"protocol {kind_of_value(name)}: expected a .toml file or one of "
            f"{', '.join(preset_names())}{did_you_mean(str(name), preset_names())}"
        )
    return name


@cache
def _fields_of(name: str) -> Protocol:
    """Return the preset under another name, so that its own fields are not checked against it."""
    return Protocol.from_mapping({**shipped(f"presets/{name}.toml"), "name": "preset"})


@cache
def _shipped(name: str) -> Protocol:
    return evolve(_fields_of(name), name=name)
