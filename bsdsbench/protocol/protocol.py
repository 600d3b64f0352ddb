"""The constants of a benchmark: a frozen `Protocol`, and the named presets of presets/*.toml."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from functools import cache, cached_property
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from attr import asdict  # tuples become lists, unlike with attrs.asdict
from attrs import evolve, field, fields, frozen
from numpy.typing import NDArray

from bsdsbench.files.arguments import given_path, kind_of_value
from bsdsbench.files.bounded import MAX_TOML_BYTES, parse_toml, read_text, reading
from bsdsbench.files.errors import ProtocolError, did_you_mean
from bsdsbench.protocol.constants import (
    MAX_PX,
    MAX_THRESHOLDS,
    NMSParams,
    even_thresholds,
    nms_params,
    option_tables,
    thresholds_of,
)
from bsdsbench.protocol.fields import (
    DEFAULT,
    HOME_MADE,
    TEXT,
    captions,
    check,
    check_names,
    clipped,
    is_number,
    one_of,
    option,
    short,
    toml_text,
    whole,
)
from bsdsbench.scores.curve import AP_RULES, ODS_RULES

UNSTATED = "unstated"  # the name of a protocol of which only the thresholds are known
UNSTATED_GRID = "unstated-thresholds"  # and of one of which not even these are
# What a preset's name does not stand for: the user alone knows whether the maps had NMS already.
NOT_OF_PRESETS = ("name", "nms", "nms_params")


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
        "Increasing, in [0, 1]; also an int (that many even ones), { from, to, n }, 8bit (k/255), "
        "seism (.001, .01 .. .99, .999) or deepcrack (0, .01 .. .99). With operator >= a threshold "
        "0 stands for the whole image, every pixel on and not thinned.",
        [
            check(
                lambda v: any(x > 0 for x in v) and all(0 <= x <= 1 for x in v),
                "values in [0, 1], one or more above 0",
            ),
            check(lambda v: all(a < b for a, b in pairwise(v)), "strictly increasing values"),
            check(lambda v: len(v) <= MAX_THRESHOLDS, f"at most {MAX_THRESHOLDS} values"),
        ],
        thresholds_of,
        others=dict.fromkeys(("8bit", 100, 50, 33, 25, 20, 19, 10, 9, 5), "nthresh of the run"),
        caption=lambda p: (
            f"{len(p.thresholds)} thresholds {p.thresholds[0]:.4g}..{p.thresholds[-1]:.4g}"
        ),
    )
    max_dist: float = option(
        0.0075,
        "Match tolerance, a fraction of the image diagonal.",
        check(
            lambda v: is_number(v) and 0 < v < 1,
            "a fraction in (0, 1) of the diagonal; in pixels it is max_dist_px",
        ),
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
        caption=lambda p: (
            f"max_dist {p.max_dist:g} of the diagonal"
            if p.max_dist_px is None
            else f"max_dist {p.max_dist_px:g} px"
        ),
    )
    max_dist_px: float | None = option(
        None,
        "The same in pixels; overrides max_dist when set.",
        check(lambda v: v is None or (is_number(v) and 0 <= v <= MAX_PX), f"pixels, 0 to {MAX_PX}"),
    )
    thin: bool = option(
        True,
        "Thin each thresholded map to one pixel before matching.",
        others={False: "CEval, raw forms of SBD", True: "the benchmark"},
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
        check(lambda v: isinstance(v, NMSParams), "a recipe, or the entries of NMSParams"),
        nms_params,
    )
    operator: str = option(
        ">=",
        'Which values are on at a threshold: ">=" or ">".',
        one_of(">=", ">"),
        others={">": "SEISM, DeepCrack"},
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
        False, "Divide each map by its largest value, before NMS.", caption="divided by its maximum"
    )
    invert: bool = option(
        False, "The prediction is dark on bright (1 - value is taken).", caption="inverted"
    )
    gt_invert: bool = option(
        False,
        "Ground-truth pictures are dark boundaries on bright ground.",
        caption="ground truth inverted",
    )
    gt_threshold: float | None = option(
        None,
        "Gray ground-truth pictures are boundary from this value in (0, 1] on; none refuses gray.",
        check(lambda v: v is None or (is_number(v) and 0 < v <= 1), "a value in (0, 1]"),
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
        converter=option_tables,
        hash=False,
        metadata={
            "help": "Metric to its own options, those that are given, read-only. In a file each is "
            "a table, [saliency]. The metric checks them."
        },
    )

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
    def resolved(self) -> dict[tuple[str, type], Any]:
        """Metric and class of its options -> what `Metric.options_of` made of them, once."""
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
        return tuple(f.name for f in fields(cls))

    @classmethod
    def preset(cls, name: str) -> Protocol:
        """The named protocol shipped with the package. Raises ProtocolError for an unknown name."""
        return _shipped(_known(name))

    @classmethod
    def of(cls, protocol: Protocol | str | Path | None) -> Protocol:
        """A protocol, the one of that name or in that .toml file; None is bsds500. As `load`."""
        if isinstance(protocol, Protocol):
            return protocol
        if not isinstance(protocol, str | Path | None):
            raise ProtocolError(
                f"protocol: {kind_of_value(protocol)}, expected a Protocol or the name of a preset"
            )
        return cls.load("bsds500" if protocol is None else protocol)

    @classmethod
    def load(cls, name_or_path: str | Path) -> Protocol:
        """A preset by name, or that of a .toml file, which may hold `base = "bsds500"` and its
        changes.

        Raises ProtocolError for anything else, FileFormatError for a broken file.
        """
        path = given_path(name_or_path, "protocol")
        if path.suffix != ".toml":
            return cls.preset(str(name_or_path))
        return cls.from_toml(read_text(path, "a protocol file", MAX_TOML_BYTES), str(path))

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
        """That of a saved run: a preset's name whose fields were others then gets a star."""
        name = values.get("name") if isinstance(values, Mapping) else None
        plain = name.removesuffix("*") if isinstance(name, str) else ""
        if plain not in preset_names():
            return cls.from_mapping(values)
        return cls.from_mapping({**values, "name": plain + "*"}).named(plain)

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Protocol:
        """A protocol from plain values; `base` names a preset that the others change, and a table
        that is no field holds options. Raises ProtocolError for unknown names."""
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
        """A copy with some fields changed; what then differs from its preset has a star behind the
        name.

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
        return evolve(self, **changes) if "name" in changes else self._changed(changes)

    def _changed(self, changes: Mapping[str, Any]) -> Protocol:
        plain = self.name.removesuffix("*")
        starred = evolve(self, **{**changes, "name": plain + "*"})
        if plain in preset_names():
            return starred.named(plain)
        same = self.name == plain and evolve(self, name=starred.name) == starred
        return self if same else starred

    def with_options(self, options: Mapping[str, Any]) -> Protocol:
        """A copy with these options, metric -> its own, and no others."""
        return self._changed({"options": options})

    def named(self, name: str) -> Protocol:
        """A copy of that name, with a star behind it if it is a preset's and the fields differ."""
        star = name in preset_names() and not self._is_preset(name)
        wanted = name + "*" if star else name
        return self if wanted == self.name else evolve(self, name=wanted)

    def _is_preset(self, name: str) -> bool:
        kept = [n for n in self.names() if n not in NOT_OF_PRESETS]
        return all(getattr(self, n) == getattr(_starred(name), n) for n in kept)

    def to_mapping(self) -> dict[str, Any]:
        """Plain values, which `from_mapping` reads back to an equal protocol."""
        return asdict(self)

    def to_toml(self) -> str:
        """TOML text that `from_toml` reads back to an equal protocol."""
        values = self.to_mapping()
        return toml_text(values | values.pop("options"))

    def leaves(self) -> dict[str, Any]:
        """Plain values by name, those of tables as "nms_params.radius", "saliency.beta2"."""
        values = self.to_mapping()
        tables = {"nms_params": values.pop("nms_params"), **values.pop("options")}
        inner = {f"{name}.{k}": v for name, table in tables.items() for k, v in table.items()}
        return values | inner

    def differences(self, other: Protocol) -> list[str]:
        """What makes scores incomparable, a line per field; nms_params only where there is NMS."""
        mine, theirs = self.leaves(), other.leaves()
        keys = [k for k in {**mine, **theirs} if k not in ("name", "version")]
        if not (self.nms and other.nms):
            keys = [k for k in keys if not k.startswith("nms_params.")]
        if not (self.stated and other.stated):
            keys = [] if UNSTATED_GRID in (self.name, other.name) else ["thresholds"]
        pairs = [(k, mine.get(k, DEFAULT), theirs.get(k, DEFAULT)) for k in keys]
        return [f"{key}: {short(a)} / {short(b)}" for key, a, b in pairs if a != b]

    def describe(self, used: Collection[str] | None = None, more: Iterable[str] = ()) -> str:
        """One line with everything that moves a score: the fields `used` and what metrics say
        (`more`)."""
        if self.name == UNSTATED_GRID:
            return "protocol and thresholds not stated"
        words = captions(self)
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
        """What `load_ground_truth` has to know, as keyword arguments."""
        return {
            "gt_invert": self.gt_invert,
            "gt_threshold": self.gt_threshold,
            "kind": self.gt_kind,
            "empty": self.empty_gt != "error",
        }

    def threshold_array(self) -> NDArray[np.float64]:
        """thresholds as f8 (T,)."""
        return np.array(self.thresholds, np.float64)

    def cuts(self) -> NDArray[np.float64]:
        """f8 (T,): a pixel is on at threshold i where its value in float64 >= cuts()[i]."""
        thresholds = self.threshold_array()
        return thresholds if self.operator == ">=" else np.nextafter(thresholds, np.inf)

    def radius(self, shape: tuple[int, int]) -> float:
        """The match tolerance in pixels for an image of `shape` (rows, columns)."""
        if self.max_dist_px is not None:
            return self.max_dist_px
        return self.max_dist * math.hypot(*shape)


_PRESETS = resources.files("bsdsbench.protocol.presets")


@cache
def preset_names() -> tuple[str, ...]:
    """The presets that `Protocol.preset` knows, sorted."""
    return tuple(sorted(p.name[:-5] for p in _PRESETS.iterdir() if p.name.endswith(".toml")))


def preset_text(name: str) -> str:
    """The TOML text of a preset, with its comments. Raises ProtocolError for an unknown name."""
    return _PRESETS.joinpath(f"{_known(name)}.toml").read_text("utf-8")


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
