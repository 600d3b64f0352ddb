"""The constants of a benchmark: a frozen `Protocol`, and the named presets of protocols/*.toml."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import MISSING, dataclass, replace
from functools import cache
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.arguments import given_list, given_path, kind_of_value
from bsdsbench.files.bounded import MAX_TOML_BYTES, parse_toml, read_text, reading
from bsdsbench.files.errors import ProtocolError, clip, did_you_mean
from bsdsbench.protocol.settings import (
    BOOL,
    HOME_MADE,
    TEXT,
    NMSParams,
    Settings,
    clipped,
    is_int,
    is_number,
    one_of,
    option_tables,
    optional,
    setting,
    short,
    toml_text,
    whole,
)
from bsdsbench.scores.curve import AP_RULES, ODS_RULES
from bsdsbench.tables.read_only import ReadOnlyDict

MAX_THRESHOLDS = 32_767  # what the kernels count in 16 bits
MAX_PX = 1_000
DEFAULT = "default"  # an option that is not given
UNSTATED = "unstated"  # the name of a protocol of which only the thresholds are known
UNSTATED_GRID = "unstated-thresholds"  # and of one of which not even these are


def even_thresholds(count: int) -> tuple[float, ...]:
    """linspace(1/(T+1), 1 - 1/(T+1), T): the official default grid (boundaryBench.m)."""
    return tuple(np.linspace(1 / (count + 1), 1 - 1 / (count + 1), count).tolist())


def byte_thresholds() -> tuple[float, ...]:
    """k/255 for k = 1 .. 255: every level of an 8-bit picture but the trivial zero."""
    return tuple((np.arange(1, 256) / 255).tolist())


# Grids that have a name, in files and signatures.
GRIDS = {
    "8bit": byte_thresholds(),
    "seism": (0.001, *(k / 100 for k in range(1, 100)), 0.999),  # of its programs for contours
}


def _thresholds(given: Any) -> tuple[float, ...]:
    """Thresholds from a number of even ones, a name, or their values. Raises ProtocolError."""
    if isinstance(given, np.ndarray):
        given = tuple(given_list(given, "thresholds", "numbers"))
    if isinstance(given, str) and given in GRIDS:
        return GRIDS[given]
    if is_int(given):
        if not 1 <= given <= MAX_THRESHOLDS:
            raise ProtocolError(
                f"thresholds {clip(str(given), 40)}: expected 1 to {MAX_THRESHOLDS} of them"
            )
        return even_thresholds(given)
    try:
        return tuple(float(t) for t in given)
    except (TypeError, ValueError, OverflowError):
        raise ProtocolError(
            f"thresholds {clipped(given)}: expected a number of them, a list, '8bit' or 'seism'"
        ) from None


@dataclass(frozen=True, slots=True, repr=False)
class Protocol(Settings):
    """How a prediction is turned into counts. Equal protocols give comparable scores.

    A value out of its range raises ProtocolError, which names the field.
    """

    name: str = setting("custom", "Its name; a changed preset carries a star.", TEXT)
    version: int = setting(
        1,
        "Raised whenever a constant of the preset changes.",
        whole(1, 10**6, "a whole number from 1"),
    )
    thresholds: tuple[float, ...] = setting(
        even_thresholds(99),
        'Increasing, in [0, 1]; also an int (that many even ones), "8bit" (k/255) or "seism" '
        '(.001, .01 .. .99, .999). With operator ">=" a threshold 0 stands for the whole image, '
        "every pixel on and not thinned.",
        (
            lambda v: any(x > 0 for x in v) and all(0 <= x <= 1 for x in v),
            "values in [0, 1], one or more above 0",
        ),
        (lambda v: all(a < b for a, b in pairwise(v)), "strictly increasing values"),
        (lambda v: len(v) <= MAX_THRESHOLDS, f"at most {MAX_THRESHOLDS} values"),
        read=_thresholds,
        others=dict.fromkeys(("8bit", 100, 50, 33, 25, 20, 19, 10, 9, 5), "nthresh of the run"),
        describe=lambda p: (
            f"{len(p.thresholds)} thresholds {p.thresholds[0]:.4g}..{p.thresholds[-1]:.4g}"
        ),
    )
    max_dist: float = setting(
        0.0075,
        "Match tolerance, a fraction of the image diagonal.",
        (lambda v: is_number(v) and 0 < v < 1, "a fraction in (0, 1) of the diagonal"),
        others={
            0.0075: "BSDS500 and most programs",
            0.011: "NYUDv2 programs",
            0.01: "SEISM on PASCAL, skeletons, wireframes",
            0.02: "SBD, Cityscapes (raw)",
            0.0035: "Cityscapes (thin)",
            0.003: "SDPED (strict)",
            0.002: "KITTI-DE, DDAD-DE",
            **dict.fromkeys((0.005, 0.015), HOME_MADE),
        },
        describe=lambda p: (
            f"max_dist {p.max_dist:g} of the diagonal"
            if p.max_dist_px is None
            else f"max_dist {p.max_dist_px:g} px"
        ),
    )
    max_dist_px: float | None = setting(
        None,
        "The same in pixels; overrides max_dist when set.",
        optional((lambda v: is_number(v) and 0 <= v <= MAX_PX, f"pixels, 0 to {MAX_PX}")),
    )
    thin: bool = setting(
        True,
        "Thin each thresholded map to one pixel before matching.",
        BOOL,
        others={False: "CEval, raw forms of SBD", True: "the benchmark"},
        describe={True: "thinned", False: "not thinned"},
    )
    nms: bool = setting(
        False,
        "Apply edge NMS to the soft map before thresholding. Off in the presets of data sets, as "
        "only the user knows whether the files on disk have had it.",
        BOOL,
        describe=lambda p: f"NMS {p.nms_params.describe()}" if p.nms else "no NMS",
    )
    nms_params: NMSParams = setting(
        NMSParams(),
        "The constants `nms` uses; also the name of a recipe.",
        (lambda v: isinstance(v, NMSParams), "the entries of NMSParams"),
        read=NMSParams.read,
    )
    operator: str = setting(
        ">=",
        '">=" or ">": which values are on at a threshold.',
        one_of(">=", ">"),
        others={">": "SEISM, DeepCrack"},
        describe="value {} threshold",
    )
    clean: bool = setting(
        False,
        "After thinning drop pixels without one of the eight neighbours.",
        BOOL,
        describe="single pixels dropped",
    )
    gt_thin: bool = setting(
        False,
        "Thin each annotator's map to one pixel before matching.",
        BOOL,
        describe="ground truth thinned",
    )
    normalise: bool = setting(
        False,
        "Divide each map by its largest value, before NMS.",
        BOOL,
        describe="divided by its maximum",
    )
    invert: bool = setting(
        False, "The prediction is dark on bright (1 - value is taken).", BOOL, describe="inverted"
    )
    gt_invert: bool = setting(
        False,
        "Ground-truth pictures are dark boundaries on bright ground.",
        BOOL,
        describe="ground truth inverted",
    )
    gt_threshold: float | None = setting(
        None,
        "Gray ground-truth pictures are boundary from this value in (0, 1] on; None refuses gray.",
        optional((lambda v: is_number(v) and 0 < v <= 1, "a value in (0, 1]")),
        describe="ground truth from {:g} on",
    )
    gt_kind: str = setting(
        "boundaries",
        '"boundaries", or "labels" for ground-truth pictures and arrays of region labels.',
        one_of("boundaries", "labels"),
        describe="ground truth from labels",
    )
    empty_gt: str = setting(
        "error",
        'Images whose ground truth has no boundary: "error", "count" (their false positives count) '
        'or "skip".',
        one_of("error", "count", "skip"),
        describe={
            "count": "images without ground-truth boundaries count",
            "skip": "images without ground-truth boundaries left out",
        },
    )
    regions_from_soft: bool = setting(
        False,
        "Region measures close soft boundary maps into regions at each threshold.",
        BOOL,
        describe="regions from soft maps",
    )
    ods_rule: str = setting(
        "interpolated",
        '"interpolated" between thresholds, or "maximum" over the thresholds.',
        one_of(*ODS_RULES),
        describe="ODS rule {}",
    )
    ap_rule: str = setting(
        "bsds",
        "How AP is read off the curve, a name of bsdsbench.scores.curve.AP_RULES.",
        one_of(*AP_RULES),
        describe=lambda p: f"AP rule {p.ap_rule}",
    )
    options: Mapping[str, Any] = setting(
        MISSING,
        "Metric to its own options, those that are given, read-only. In a file each is a table, "
        "`[saliency]`. The metric checks them (`Metric.options_of`).",
        read=option_tables,
        default_factory=ReadOnlyDict,
        hash=False,
    )

    def __post_init__(self) -> None:
        Settings.__post_init__(self)
        if self.name in preset_names() and not self._is_preset(self.name):
            raise ProtocolError(
                f"name {self.name!r}: a preset's, whose fields differ; expected another name, "
                f"'{self.name}*' for a changed form, or Protocol.preset({self.name!r})"
            )

    def __repr__(self) -> str:
        """One line, as printed under tables."""
        return f"<Protocol {self.describe()}>"

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
        """The named protocol shipped with the package. Raises ProtocolError for an unknown name.

        Parameters
        ----------
        name : str
            One of `bsdsbench protocols`.

        Examples
        --------
        >>> import bsdsbench as bb
        >>> bb.Protocol.preset("bsds500").max_dist
        0.0075
        """
        return _shipped(_preset_name(name))

    @classmethod
    def of(cls, protocol: Protocol | str | Path | None) -> Protocol:
        """The resolved protocol: one, the name of one or its .toml file; None is bsds500.

        Raises as `load`.

        Parameters
        ----------
        protocol : Protocol, str, path or None
            What a caller gave.
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
        Raises ProtocolError for anything else, FileFormatError for a broken file.

        Parameters
        ----------
        name_or_path : str or path
            Such as "bsds500" or "mine.toml".

        Examples
        --------
        >>> import bsdsbench as bb
        >>> bb.Protocol.load("biped").nms_params.multiplier
        1.03
        """
        path = given_path(name_or_path, "protocol")
        if path.suffix != ".toml":
            return cls.preset(str(name_or_path))
        text = read_text(path, "a protocol file", MAX_TOML_BYTES)
        return cls.from_toml(text, str(path))

    @classmethod
    def from_toml(cls, text: str, source: str = "protocol") -> Protocol:
        r"""A protocol from TOML text; `source` names it in errors.

        Parameters
        ----------
        text : str
            The content of a file.
        source : str
            Its name.

        Examples
        --------
        >>> import bsdsbench as bb
        >>> bb.Protocol.from_toml('base = "bsds500"\nmax_dist = 0.011').max_dist
        0.011
        """
        with reading(source, "a protocol in TOML"):
            values = parse_toml(text.encode("utf-8", "surrogatepass"))
        try:
            return cls.from_mapping(values)
        except ProtocolError as error:
            raise ProtocolError(f"{source}: {error}") from None

    @classmethod
    def stored(cls, values: Mapping[str, Any]) -> Protocol:
        """The protocol of a saved run: as `from_mapping`, but a preset's name whose fields were
        others then, in an earlier version, gets a star.

        Earlier versions wrote null for options that were not given.

        Parameters
        ----------
        values : mapping
            As written by `to_mapping`.
        """
        if not isinstance(values, Mapping):
            return cls.from_mapping(values)
        known = cls.names()
        kept = {k: v for k, v in values.items() if v is not None or k in known}
        name = kept.get("name")
        if not isinstance(name, str) or name not in preset_names():
            return cls.from_mapping(kept)
        return cls.from_mapping({**kept, "name": name + "*"}).named(name)

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Protocol:
        """A protocol from a TOML or JSON mapping; a table that is no field holds options.

        Raises ProtocolError for unknown names.

        Parameters
        ----------
        values : mapping
            Field -> plain value.
        """
        if not isinstance(values, Mapping):
            raise ProtocolError(f"protocol {clipped(values)}: expected fields and values")
        rest = _with_options(values)
        base = cls.preset(str(rest.pop("base"))) if "base" in rest else None
        cls.check_names(rest, "protocol ")
        return base.replace(**rest) if base else cls(**rest)

    def replace(self, **changes: Any) -> Protocol:
        """A copy with some fields changed.

        What differs from the preset it is named after has a star behind its name: derived from the
        fields, so reverting the change removes it. `name` may change too, but not to a preset's.
        A mapping given for nms_params or for the options of a metric changes only the entries it
        names; an option that is None is the default again.

        Parameters
        ----------
        **changes : object
            Field -> value.

        Returns
        -------
        Protocol
            The copy.

        Examples
        --------
        >>> import bsdsbench as bb
        >>> bb.Protocol.preset("bsds500").replace(max_dist=0.011).name
        'bsds500*'
        """
        self.check_names(changes, "protocol ")
        given = changes.get("nms_params")
        if isinstance(given, Mapping):
            changes["nms_params"] = {**self.nms_params.to_mapping(), **given}
        given = changes.get("options")
        if isinstance(given, Mapping):
            changes["options"] = dict(self.options) | {
                name: {**self.options.get(name, {}), **t} if isinstance(t, Mapping) else t
                for name, t in given.items()
            }
        return replace(self, **changes) if "name" in changes else self._changed(changes)

    def _changed(self, changes: Mapping[str, Any]) -> Protocol:
        plain = self.name.removesuffix("*")
        changed = replace(self, **{**changes, "name": plain + "*"})
        if plain in preset_names():
            return changed.named(plain)
        same = self.name == plain and replace(self, name=changed.name) == changed
        return self if same else changed

    def with_options(self, options: Mapping[str, Any]) -> Protocol:
        """A copy with these options and no others.

        Parameters
        ----------
        options : mapping
            Name of a metric -> its options.

        Returns
        -------
        Protocol
            The copy.
        """
        return self._changed({"options": options})

    def named(self, name: str) -> Protocol:
        """A copy of that name, with a star behind it if it is a preset's and the fields differ.

        Parameters
        ----------
        name : str
            Of a preset, or another one.

        Returns
        -------
        Protocol
            The copy.
        """
        star = name in preset_names() and not self._is_preset(name)
        return replace(self, name=name + "*" if star else name)

    def _is_preset(self, name: str) -> bool:
        return replace(self, name=name + "*") == _starred(name)

    def to_toml(self) -> str:
        """TOML text that `from_toml` reads back to an equal protocol.

        Returns
        -------
        str
            A whole file.
        """
        values = self.to_mapping()
        options = values.pop("options")
        return toml_text(values | options)

    def leaves(self) -> dict[str, Any]:
        """Plain values by name, those of tables as "nms_params.radius", "saliency.beta2".

        Returns
        -------
        dict
            Name -> plain value.
        """
        values = self.to_mapping()
        options = values.pop("options")
        tables = {k: v for k, v in values.items() if isinstance(v, dict)} | options
        out = {k: v for k, v in values.items() if k not in tables}
        inner = {f"{name}.{k}": v for name, table in tables.items() for k, v in table.items()}
        return out | inner

    def differences(self, other: Protocol) -> list[str]:
        """What makes scores incomparable, a line per field; nms_params only where there is NMS.

        Parameters
        ----------
        other : Protocol
            The one to compare with.

        Returns
        -------
        list of str
            Empty if scores are comparable.

        Examples
        --------
        >>> import bsdsbench as bb
        >>> bb.Protocol.preset("bsds500").differences(bb.Protocol.preset("nyudv2"))
        ['max_dist: 0.0075 / 0.011']
        """
        mine, theirs = self.leaves(), other.leaves()
        keys = [k for k in {**mine, **theirs} if k not in ("name", "version")]
        if not (self.nms and other.nms):
            keys = [k for k in keys if not k.startswith("nms_params.")]
        if not (self.stated and other.stated):
            keys = [] if UNSTATED_GRID in (self.name, other.name) else ["thresholds"]
        pairs = [(k, mine.get(k, DEFAULT), theirs.get(k, DEFAULT)) for k in keys]
        return [f"{key}: {short(a)} / {short(b)}" for key, a, b in pairs if a != b]

    def describe(self, used: Collection[str] | None = None, more: Iterable[str] = ()) -> str:
        """One line with everything that moves a score, for printing beside it.

        used : the fields that scores depend on; without it all, and the options as they are
        more : what the metrics say of their own

        Parameters
        ----------
        used : collection of str, optional
            The fields that scores depend on; default: all, and the options as they are.
        more : iterable of str
            What the metrics say of their own.

        Returns
        -------
        str
            Without a full stop.

        Examples
        --------
        >>> import bsdsbench as bb
        >>> bb.Protocol.preset("nyudv2").describe().split("; ")[1]
        'max_dist 0.011 of the diagonal'
        """
        if self.name == UNSTATED_GRID:
            return "protocol and thresholds not stated"
        words = self.words()
        if not self.stated:
            row = ", the first of them the whole image" if self.whole_image else ""
            if self.name == UNSTATED_GRID:
                return "thresholds and protocol not stated"
            return f"{words['thresholds']}{row}; the rest of the protocol is not stated"
        if used is None:
            more = [
                f"{name}: {', '.join(f'{k} {short(v)}' for k, v in table.items())}"
                for name, table in self.options.items()
            ]
        said = [text for name, text in words.items() if used is None or name in used]
        return f"{self.name} v{self.version}: {'; '.join([*said, *more])}"

    def gt_options(self) -> dict[str, Any]:
        """What `load_ground_truth` has to know.

        Returns
        -------
        dict
            Keyword arguments.
        """
        return {
            "gt_invert": self.gt_invert,
            "gt_threshold": self.gt_threshold,
            "kind": self.gt_kind,
            "empty": self.empty_gt != "error",
        }

    def threshold_array(self) -> NDArray[np.float64]:
        """thresholds as f8 (T,).

        Returns
        -------
        array
            f8 (T,).
        """
        return np.array(self.thresholds, np.float64)

    def cuts(self) -> NDArray[np.float64]:
        """f8 (T,): a pixel is on at threshold i where its value in float64 >= cuts()[i].

        The thresholds themselves, or with operator ">" the next larger numbers.

        Returns
        -------
        array
            f8 (T,).

        Examples
        --------
        >>> import bsdsbench as bb
        >>> bb.Protocol(thresholds=(0.25, 0.5)).cuts().tolist()
        [0.25, 0.5]
        """
        thresholds = self.threshold_array()
        return thresholds if self.operator == ">=" else np.nextafter(thresholds, np.inf)

    def radius(self, shape: tuple[int, int]) -> float:
        """The match tolerance in pixels for an image of `shape` (rows, columns).

        Parameters
        ----------
        shape : tuple of int
            (rows, columns).

        Returns
        -------
        float
            Pixels.

        Examples
        --------
        >>> import bsdsbench as bb
        >>> round(bb.Protocol.preset("bsds500").radius((321, 481)), 2)
        4.34
        """
        if self.max_dist_px is not None:
            return self.max_dist_px
        return self.max_dist * math.hypot(*shape)


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


def _with_options(values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields, with the tables that are none of them in `options`."""
    known = (*Protocol.names(), "base")
    tables = {k: v for k, v in values.items() if k not in known and isinstance(v, Mapping)}
    rest = {k: v for k, v in values.items() if k not in tables}
    given = rest.get("options", {})
    if tables and isinstance(given, Mapping):
        rest["options"] = {**given, **tables}
    return rest


@cache
def _starred(name: str) -> Protocol:
    """The preset under its name with a star, which any protocol may have."""
    values = parse_toml(preset_text(name).encode())
    return Protocol(**{**_with_options(values), "name": name + "*"})


def preset_names() -> list[str]:
    """The presets that `Protocol.preset` knows, sorted."""
    return list(_preset_names())


@cache
def _preset_names() -> tuple[str, ...]:
    folder = resources.files("bsdsbench.protocol.presets")
    return tuple(sorted(p.name[:-5] for p in folder.iterdir() if p.name.endswith(".toml")))
