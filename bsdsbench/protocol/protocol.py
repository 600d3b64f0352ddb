"""The constants of a benchmark: a frozen `Protocol`, and the named presets of presets/*.toml."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from functools import cache, cached_property
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from attrs import evolve, field, frozen
from numpy.typing import NDArray

from bsdsbench.files.arguments import given_path, kind_of_value
from bsdsbench.files.bounded import MAX_TOML_BYTES, parse_toml, read_text, reading
from bsdsbench.files.errors import ProtocolError, did_you_mean
from bsdsbench.protocol.constants import MAX_PX, MAX_THRESHOLDS, even_thresholds, thresholds_of
from bsdsbench.protocol.fields import (
    BOOL,
    DEFAULT,
    HOME_MADE,
    TEXT,
    captions,
    changed,
    check,
    check_names,
    clipped,
    is_number,
    names,
    one_of,
    plain,
    real,
    real_or_none,
    short,
    toml_text,
    whole,
)
from bsdsbench.protocol.nms import NMSParams, nms_params
from bsdsbench.scores.curve import AP_RULES, ODS_RULES
from bsdsbench.tables.read_only import ReadOnlyDict

UNSTATED = "unstated"  # the name of a protocol of which only the thresholds are known
UNSTATED_GRID = "unstated-thresholds"  # and of one of which not even these are
# What a preset's name does not stand for: the user alone knows whether the maps had NMS already.
NOT_OF_PRESETS = ("name", "nms", "nms_params")


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


@frozen(repr=False)
class Protocol:
    """How a prediction is turned into counts. Equal protocols give comparable scores.

    A value out of its range raises ProtocolError, which names the field.

    Parameters
    ----------
    name : str
        Its name; a changed preset carries a star.
    version : int
        Raised whenever a constant of the preset changes.
    thresholds : tuple of float
        Increasing, in [0, 1]; also an int (that many even ones), {from, to, n}, "8bit" (k/255),
        "seism" (.001, .01 .. .99, .999) or "deepcrack" (0, .01 .. .99). With operator ">=" a
        threshold 0 stands for the whole image, every pixel on and not thinned.
    max_dist : float
        Match tolerance, a fraction of the image diagonal.
    max_dist_px : float or None
        The same in pixels; overrides max_dist when set.
    thin : bool
        Thin each thresholded map to one pixel before matching.
    nms : bool
        Apply edge NMS to the soft map before thresholding. Off in the presets of data sets, as
        only the user knows whether the files on disk have had it.
    nms_params : NMSParams
        The constants `nms` uses; also the name of a recipe.
    operator : str
        ">=" or ">": which values are on at a threshold.
    clean : bool
        After thinning drop pixels without one of the eight neighbours.
    gt_thin : bool
        Thin each annotator's map to one pixel before matching.
    normalise : bool
        Divide each map by its largest value, before NMS.
    invert : bool
        The prediction is dark on bright (1 - value is taken).
    gt_invert : bool
        Ground-truth pictures are dark boundaries on bright ground.
    gt_threshold : float or None
        Gray ground-truth pictures are boundary from this value in (0, 1] on; None refuses gray.
    gt_kind : str
        "boundaries", or "labels" for ground-truth pictures and arrays of region labels.
    empty_gt : str
        Images whose ground truth has no boundary: "error", "count" (their false positives count)
        or "skip".
    regions_from_soft : bool
        Region measures close soft boundary maps into regions at each threshold.
    ods_rule : str
        "interpolated" between thresholds, or "maximum" over the thresholds.
    ap_rule : str
        How AP is read off the curve, a name of bsdsbench.scores.curve.AP_RULES.
    options : mapping
        Metric to its own options, those that are given, read-only. In a file each is a table,
        `[saliency]`. The metric checks them (`Metric.options_of`).

    Examples
    --------
    >>> protocol = Protocol.preset("bsds500").replace(max_dist=0.011)
    >>> protocol.name, protocol.max_dist
    ('bsds500*', 0.011)
    """

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
        default="interpolated",
        validator=one_of(*ODS_RULES),
        metadata={"caption": "ODS rule {}"},
    )
    ap_rule: str = field(
        default="bsds",
        validator=one_of(*AP_RULES),
        metadata={"caption": lambda p: f"AP rule {p.ap_rule}"},
    )
    options: Mapping[str, Any] = field(factory=dict, converter=option_tables, hash=False)

    def __attrs_post_init__(self) -> None:
        if self.name in preset_names() and not self._is_preset(self.name):
            raise ProtocolError(
                f"name {self.name!r}: a preset's, whose fields differ; expected another name, "
                f"'{self.name}*' for a changed form, or Protocol.preset({self.name!r})"
            )

    def __repr__(self) -> str:
        """One line, as printed under tables."""
        return f"<Protocol {self.describe()}>"

    @cached_property
    def resolved(self) -> dict[type, Any]:
        """Class of a metric's options -> what `Metric.options_of` made of them, once."""
        return {}

    @property
    def stated(self) -> bool:
        """False for others' result files, of which nothing but the thresholds is known."""
        return self.name not in (UNSTATED, UNSTATED_GRID)

    @property
    def whole_image(self) -> bool:
        """True if the first threshold is 0 and stands for the whole image."""
        return self.thresholds[0] == 0 and self.operator == ">="

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The names of the fields."""
        return names(cls)

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
        return _shipped(_known(name))

    @classmethod
    def of(cls, protocol: Protocol | str | Path | None) -> Protocol:
        """A protocol, the one of that name or in that .toml file; None is bsds500. As `load`.

        Parameters
        ----------
        protocol : Protocol, str, path or None
            What a caller gave.
        """
        if isinstance(protocol, Protocol):
            return protocol
        if not isinstance(protocol, str | Path | None):
            raise ProtocolError(
                f"protocol: {kind_of_value(protocol)}, expected a Protocol or the name of a preset"
            )
        return cls.load("bsds500" if protocol is None else protocol)

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

        Parameters
        ----------
        values : mapping
            As written by `to_mapping`.
        """
        name = values.get("name") if isinstance(values, Mapping) else None
        plain = name.removesuffix("*") if isinstance(name, str) else ""
        if plain not in preset_names():
            return cls.from_mapping(values)
        return cls.from_mapping({**values, "name": plain + "*"}).named(plain)

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Protocol:
        """A protocol from a TOML or JSON mapping; a table that is no field holds options.

        Raises ProtocolError for unknown names.

        Parameters
        ----------
        values : mapping
            Field -> plain value; `base` names a preset that the others change.
        """
        if not isinstance(values, Mapping):
            raise ProtocolError(f"protocol {clipped(values)}: expected fields and values")
        known = (*cls.names(), "base")
        tables = {k: v for k, v in values.items() if k not in known and isinstance(v, Mapping)}
        rest = {k: v for k, v in values.items() if k not in tables}
        if isinstance(rest.get("options", {}), Mapping):
            rest["options"] = {**rest.get("options", {}), **tables}
        if "base" in rest:
            return cls.preset(rest.pop("base")).replace(**rest)
        check_names(cls, rest, "protocol")
        return cls(**rest)

    def replace(self, **changes: Any) -> Protocol:
        """A copy with some fields changed.

        What differs from the preset it is named after has a star behind its name: derived from the
        fields, so reverting the change removes it. NMS is no such difference. `name` may change
        too, but not to a preset's. A mapping given for nms_params or for the options of a metric
        changes only the entries it names; an option that is None is the default again.

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
        check_names(type(self), changes, "protocol")
        given = changes.get("nms_params")
        if isinstance(given, Mapping):
            changes["nms_params"] = plain(self.nms_params) | dict(given)
        given = changes.get("options")
        if isinstance(given, Mapping):
            changes["options"] = dict(self.options) | {
                name: {**self.options.get(name, {}), **t} if isinstance(t, Mapping) else t
                for name, t in given.items()
            }
        return evolve(self, **changes) if "name" in changes else self._changed(changes)

    def _changed(self, changes: Mapping[str, Any]) -> Protocol:
        plain = self.name.removesuffix("*")
        starred = evolve(self, **{**changes, "name": plain + "*"})
        if plain in preset_names():
            return starred.named(plain)
        same = self.name == plain and evolve(self, name=starred.name) == starred
        return self if same else starred

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
        wanted = name + "*" if star else name
        return self if wanted == self.name else evolve(self, name=wanted)

    def _is_preset(self, name: str) -> bool:
        preset = _starred(name)
        kept = [n for n in self.names() if n not in NOT_OF_PRESETS]
        return all(getattr(self, n) == getattr(preset, n) for n in kept)

    def to_mapping(self) -> dict[str, Any]:
        """Plain values, which `from_mapping` reads back to an equal protocol.

        Returns
        -------
        dict
            Field -> plain value.
        """
        values: dict[str, Any] = plain(self)
        return values

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
        tables = {"nms_params": values.pop("nms_params"), **values.pop("options")}
        inner = {f"{name}.{k}": v for name, table in tables.items() for k, v in table.items()}
        return values | inner

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

    def words(self) -> dict[str, str]:
        """Field -> what a caption says of it, without those of which it says nothing.

        Returns
        -------
        dict
            Field -> text.
        """
        return captions(self)

    def describe(self, used: Collection[str] | None = None, more: Iterable[str] = ()) -> str:
        """One line with everything that moves a score, for printing beside it.

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
def preset_names() -> tuple[str, ...]:
    """The presets that `Protocol.preset` knows, sorted."""
    folder = resources.files("bsdsbench.protocol.presets")
    return tuple(sorted(p.name[:-5] for p in folder.iterdir() if p.name.endswith(".toml")))


def preset_text(name: str) -> str:
    """The TOML text of a preset, with its comments. Raises ProtocolError for an unknown name."""
    folder = resources.files("bsdsbench.protocol.presets")
    return folder.joinpath(f"{_known(name)}.toml").read_text("utf-8")


def _known(name: Any) -> str:
    if not isinstance(name, str) or name not in preset_names():
        raise ProtocolError(
            f"protocol {kind_of_value(name)}: expected a .toml file or one of "
            f"{', '.join(preset_names())}{did_you_mean(str(name), preset_names())}"
        )
    return name


@cache
def _shipped(name: str) -> Protocol:
    return evolve(_starred(name), name=name)


@cache
def _starred(name: str) -> Protocol:
    """The preset under its name with a star, which any protocol may have."""
    values = parse_toml(preset_text(name).encode())
    return Protocol.from_mapping({**values, "name": name + "*"})
