"""The settings of a benchmark: the class `Protocol`, and named presets in presets/*.toml."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from attr import asdict  # tuples become lists, unlike with attrs.asdict
from attrs import evolve, frozen

from bsdsbench.arguments import Floats, kind_of_value
from bsdsbench.errors import ProtocolError
from bsdsbench.protocol.fields import (
    DEFAULT,
    MAX_THRESHOLDS,
    TEXT,
    abbreviate,
    accepting,
    check_field_names,
    clipped,
    even_thresholds,
    is_number,
    one_of,
    one_or_several,
    option,
    parse_thresholds,
    plain,
    read_packaged_toml,
    read_toml,
    record_of,
    several_of,
    tidy,
    whole,
)
from bsdsbench.protocol.nms_recipes import NMSParams, nms_params
from bsdsbench.scores.curve import AP_RULES, ODS_RULES
from bsdsbench.tables.read_only import ReadOnlyDict
from bsdsbench.text import did_you_mean, is_path, join_names

MAX_PX = 1_000
# Names of protocols of other programs' results, of which only the thresholds, or nothing, is known
UNSTATED, UNSTATED_GRID = "unstated", "unstated-thresholds"
# Fields in which a protocol with the name of a preset may differ from the preset
NOT_OF_PRESETS = ("name", "nms", "nms_params")
# Fields that change scores, grouped by what they affect
MAPS = ("invert", "normalise", "nms", "nms_params")  # the soft map
READ = ("invert", "normalise", "gt_invert", "gt_threshold")  # the meaning of pixel values
ANNOTATED = ("gt_invert", "gt_threshold", "gt_kind", "empty_gt")
CURVE = ("thresholds", "operator", "ap_rule", "ods_rule")
MATCHING = ("max_dist", "max_dist_px", "thin", "clean", "gt_thin")
MATCHED = (*MAPS, *ANNOTATED, *CURVE, *MATCHING)


def _default_of(record: object, field: attrs.Attribute[Any]) -> object:
    """Return the default of a field of an attrs instance. It may depend on earlier fields."""
    default: Any = field.default
    if not isinstance(default, attrs.Factory):  # type: ignore[arg-type]
        return default
    return default.factory(record) if default.takes_self else default.factory()


def captions(record: Any) -> dict[str, str]:
    """Describe the values of an attrs instance in words, as a dict from field name to caption.

    Fields without a caption are left out. The metadata "caption" of a field is one of these:

    - a function that takes the instance and returns the caption
    - a mapping from values to captions; values that are not in it have no caption
    - a format string, in which {} is replaced by the value, or by the values of a tuple separated
      by commas; the default value has no caption
    """
    texts = {}
    for field in attrs.fields(type(record)):
        value = getattr(record, field.name)
        caption = field.metadata.get("caption", "")
        if callable(caption):
            text = caption(record)
        elif isinstance(caption, Mapping):
            text = caption.get(value)
        elif value == _default_of(record, field):
            text = ""
        else:
            text = caption.format(", ".join(map(str, value)) if isinstance(value, tuple) else value)
        if text:
            texts[field.name] = text
    return texts


def _freeze_options(options: object) -> Mapping[str, Mapping[str, Any]]:
    """Convert metric options to read-only dicts, such as {"depth": {"crop": 1}}.

    `options` maps names of metrics to their options. These are either a mapping, in which None and
    DEFAULT ("default") mean that an option is not set, or an instance of the metric's options
    class, in which fields with their default values are not set.

    The result has only options that are set, and only metrics with such options, so that protocols
    are equal if they have the same effect. Lists become tuples. Raises ProtocolError if `options`
    has another form.
    """

    def as_tuples(value: object) -> object:
        return tuple(map(as_tuples, value)) if isinstance(value, list | tuple) else value

    fault = f"options {clipped(options)}: expected a table for each metric"
    if not isinstance(options, Mapping):
        raise ProtocolError(fault)
    tables: dict[str, Any] = {}
    for name, values in options.items():
        if attrs.has(type(values)):  # an instance of an options class
            fields = [(f, getattr(values, f.name)) for f in attrs.fields(type(values))]
            values = {f.name: value for f, value in fields if value != _default_of(values, f)}
        if not isinstance(values, Mapping) or not all(isinstance(k, str) for k in (name, *values)):
            raise ProtocolError(fault)
        given = {key: as_tuples(plain(value)) for key, value in values.items()}
        if changed := {key: v for key, v in given.items() if v not in (None, DEFAULT)}:
            tables[name] = ReadOnlyDict(changed)
    return ReadOnlyDict(tables)


@frozen(repr=False)
class Protocol:
    """All settings of counting and scoring. Runs with equal protocols have comparable scores.

    `bsdsbench protocols` lists the fields with their defaults and meanings. A wrong value raises
    ProtocolError, which names the field.

    Examples
    --------
    >>> protocol = Protocol.preset("bsds500").replace(max_dist=0.011)
    >>> protocol.name, protocol.max_dist
    ('bsds500*', 0.011)
    """

    name: str = option("custom", "Name; that of a changed preset ends in a star.", TEXT)
    version: int = option(
        1,
        "Raised whenever a constant of the preset changes.",
        whole(1, 10**6, "a whole number from 1"),
    )
    thresholds: tuple[float, ...] = option(
        even_thresholds(99),
        "Increasing values in [0, 1]; or their number, if they are evenly spaced; FROM..TO/N; "
        "8bit (k/255); seism (0.001, 0.01 .. 0.99, 0.999); or deepcrack (0, 0.01 .. 0.99). With "
        "operator >=, a threshold of 0 turns every pixel on, and the map is not thinned.",
        accepting(
            lambda v: (
                any(x > 0 for x in v)
                and all(0 <= x <= 1 for x in v)
                and all(a < b for a, b in pairwise(v))
                and len(v) <= MAX_THRESHOLDS
            ),
            f"at most {MAX_THRESHOLDS} increasing values in [0, 1], one or more above 0",
        ),
        parse_thresholds,
        caption=lambda p: (
            f"{len(p.thresholds)} thresholds {p.thresholds[0]:.4g}..{p.thresholds[-1]:.4g}"
        ),
    )
    max_dist: float | tuple[float, ...] = option(
        0.0075,
        "Match tolerance, as a fraction of the image diagonal. If there are several, the first "
        "gives the scores, and each has its own columns.",
        several_of(
            lambda v: 0 < v < 1, "a fraction of the diagonal in (0, 1) (pixels are max_dist_px)"
        ),
        one_or_several,
        caption=lambda p: (
            f"max_dist {', '.join(map('{:g}'.format, p.tolerances))}"
            f" {'of the diagonal' if p.max_dist_px is None else 'px'}"
        ),
    )
    max_dist_px: float | tuple[float, ...] | None = option(
        None,
        "Match tolerance in pixels; overrides max_dist if set.",
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
        "Apply edge NMS to the soft map before thresholding. Off in the presets of data sets, "
        "because only the user knows whether it was already applied to the files.",
        caption=lambda p: f"NMS {p.nms_params.describe()}" if p.nms else "no NMS",
    )
    nms_params: NMSParams = option(  # noqa: RUF009
        NMSParams(),
        "Constants of NMS, or the name of a recipe.",
        accepting(lambda v: isinstance(v, NMSParams), "a recipe, or the entries of NMSParams"),
        nms_params,
    )
    operator: str = option(
        ">=",
        'Whether a value equal to the threshold is on (">=") or off (">").',
        one_of(">=", ">"),
        caption="value {} threshold",
    )
    clean: bool = option(
        False,
        "After thinning, drop pixels that have none of their eight neighbours.",
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
        False, "The prediction is dark on bright: 1 - value is used.", caption="inverted"
    )
    gt_invert: bool = option(
        False,
        "Boundaries, or objects, of the ground truth are dark on a bright background.",
        caption="ground truth inverted",
    )
    gt_threshold: float | None = option(
        None,
        "In gray ground-truth images, values from this one in (0, 1] on are boundary; none refuses "
        "gray images.",
        accepting(lambda v: v is None or (is_number(v) and 0 < v <= 1), "a value in (0, 1]"),
        caption="ground truth from {:g} on",
    )
    gt_kind: str = option(
        "boundaries",
        '"boundaries", or "labels" if ground-truth images and arrays hold region labels.',
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
        f"Rule for AP, the area under the curve: {', '.join(AP_RULES)}.",
        one_of(*AP_RULES),
        caption=lambda p: f"AP rule {p.ap_rule}",
    )
    options: Mapping[str, Any] = attrs.field(
        factory=dict,
        converter=_freeze_options,
        hash=False,
        metadata={
            "help": "The given options of each metric, by the name of the metric; read-only. In a "
            "file, each metric has a table such as [saliency]. The metric checks its options."
        },
    )

    def __attrs_post_init__(self) -> None:
        """Check that a protocol with the name of a preset has the values of that preset.

        If anything differs, ProtocolError is raised, unless a star at the end of the name
        ("bsds500*") marks a changed preset. A star is removed if nothing differs. Two things do not
        count as a difference: the NMS fields (NOT_OF_PRESETS), as only the user knows whether NMS
        was already applied; and further tolerances after the preset's, which gives the scores.
        """
        plain_name = self.name.removesuffix("*")
        if plain_name not in preset_names():
            return
        preset = _unnamed_preset(plain_name)  # a copy with another name
        changed = {n for n in self.names() if getattr(self, n) != getattr(preset, n)}
        changed -= {*NOT_OF_PRESETS}
        # Further tolerances are no difference. The unit is the same if max_dist_px, in pixels, is
        if self.max_dist_px == preset.max_dist_px and self.tolerances[0] == preset.tolerances[0]:
            changed.discard("max_dist")
        if changed and self.name == plain_name:
            fault = f"a preset of other constants ({join_names(sorted(changed), 3)})"
            preset_forms = f"Protocol.preset({plain_name!r}), base = {plain_name!r} in a file"
            expected = f"expected {preset_forms}, or a name that is no preset's"
            raise ProtocolError(f"name {plain_name!r}: {fault}, {expected}")
        object.__setattr__(self, "name", f"{plain_name}*" if changed else plain_name)

    def __repr__(self) -> str:
        """Return one line, as printed under tables."""
        return f"<Protocol {self.describe()}>"

    @property
    def stated(self) -> bool:
        """True unless the protocol is unknown, as it may be for results of other programs."""
        return self.name not in (UNSTATED, UNSTATED_GRID)

    @property
    def whole_image(self) -> bool:
        """True if the first threshold is 0 and the operator ">=", so that every pixel is on."""
        return self.thresholds[0] == 0 and self.operator == ">="

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of the fields."""
        return tuple(attrs.fields_dict(cls))

    @classmethod
    def preset(cls, name: str) -> Protocol:
        """Return the preset with this name. Raises ProtocolError if there is none."""
        if not isinstance(name, str) or name not in preset_names():
            known = f"{', '.join(preset_names())}{did_you_mean(str(name), preset_names())}"
            expected = f"expected a .toml file or one of {known}"
            raise ProtocolError(f"protocol {kind_of_value(name)}: {expected}")
        return _preset(name)

    @classmethod
    def load(cls, protocol: Protocol | str | Path | None) -> Protocol:
        """Return a protocol given as a Protocol, a .toml file or a preset name. None means bsds500.

        A file has either all fields of a protocol, or a line such as `base = "bsds500"` and the
        fields to change (see `from_mapping`). Raises ProtocolError if the preset is unknown or the
        file has wrong fields, and FileFormatError if the file cannot be read.
        """
        if isinstance(protocol, Protocol):
            return protocol
        if protocol is None or (isinstance(protocol, str) and protocol in preset_names()):
            return cls.preset(protocol or "bsds500")
        if not is_path(protocol):
            expected = "a Protocol, the name of a preset or a .toml file"
            raise ProtocolError(f"protocol {kind_of_value(protocol)}: expected {expected}")
        path = Path(protocol)
        if path.suffix.lower() != ".toml":
            return cls.preset(str(path))  # raises, as it is no preset, and lists the presets
        values = read_toml(path, "a protocol in TOML")
        try:
            return cls.from_mapping(values)
        except ProtocolError as error:
            raise ProtocolError(f"{path}: {error}") from None

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Protocol:
        """Build a protocol from a mapping of field names to plain values.

        Absent fields get their defaults or, if the key "base" names a preset, the preset's values.
        A key that is not a field but has a table as its value is the name of a metric, and the
        table has its options, such as {"saliency": {"beta2": 1}}.

        Without "base", the name may still be that of a preset, such as "bsds500". A mapping with
        all keys of the preset's file is a complete protocol; if its values differ, it is named
        "bsds500*", a changed preset. If keys are absent, no value may differ, because their
        defaults could be mistaken for the preset's values.

        Raises ProtocolError if a field is unknown, or if a value is wrong or may not differ.
        """
        if not isinstance(values, Mapping):
            raise ProtocolError(f"protocol {clipped(values)}: expected fields and values")
        known = {*cls.names(), "base"}
        # Metric -> its options, as in the section [depth] of a file
        tables = {n: v for n, v in values.items() if n not in known and isinstance(v, Mapping)}
        fields = {n: v for n, v in values.items() if n not in tables}
        fields["options"] = {**_freeze_options(fields.get("options", {})), **tables}
        if "base" in fields:
            return cls.preset(fields.pop("base")).replace(**fields)
        if fields.get("name") in preset_names():
            keys_in_file = read_packaged_toml(f"presets/{fields['name']}.toml").keys()
            # The keys of a file are fields and, for sections of options, metrics
            if keys_in_file <= fields.keys() | fields["options"].keys():
                fields["name"] += "*"  # the constructor removes it if no value differs
        return record_of(cls, fields, "protocol")

    def replace(self, **changes: Any) -> Protocol:
        """Return a copy of the protocol with the given fields changed.

        If nms_params, or a metric in options, is given as a mapping, the entries that are not in
        it keep their values. The value None resets an option to its default. A new max_dist resets
        max_dist_px, which would override it, unless that is given too.

        A star is added to the name to mark the copy as changed ("bsds500*"), unless `changes` has a
        name, nothing changes, or the copy differs from the preset with this name only in the NMS
        fields (nms, nms_params). Raises ProtocolError if a field is unknown or a value is wrong.
        """
        if not changes:
            return self
        check_field_names(type(self), changes, "protocol")
        if "max_dist" in changes:
            changes.setdefault("max_dist_px", None)
        nms_params, options = changes.get("nms_params"), changes.get("options")
        if isinstance(nms_params, Mapping):
            changes["nms_params"] = asdict(self.nms_params) | dict(nms_params)
        if isinstance(options, Mapping):
            merged = dict(self.options)
            for metric, table in options.items():
                if isinstance(table, Mapping):
                    merged[metric] = {**self.options.get(metric, {}), **table}
                else:  # an instance of the metric's options class, which replaces all options
                    merged[metric] = table
            changes["options"] = merged
        if "name" in changes:
            return evolve(self, **changes)
        plain_name = self.name.removesuffix("*")
        starred = f"{plain_name}*"
        if plain_name in preset_names():
            # With a star, the constructor accepts changes. It removes the star if nothing differs
            return evolve(self, **changes, name=starred)
        copy = evolve(self, **changes)
        return copy if copy == self else evolve(copy, name=starred)

    def to_mapping(self) -> dict[str, object]:
        """Return the fields as a dict of plain values. `from_mapping` converts it back."""
        return asdict(self)

    def changed(self, other: Protocol) -> dict[str, tuple[Any, Any]]:
        """Return the settings that differ between two protocols, except name and version.

        Returns a dict from setting name, as in `leaves`, to (value in this protocol, value in
        `other`). An option that a protocol does not set is DEFAULT.
        """
        if self == other:
            return {}
        settings, other_settings = self.leaves(), other.leaves()
        changed: dict[str, tuple[Any, Any]] = {}
        for key in {**settings, **other_settings}:
            value, other_value = settings.get(key, DEFAULT), other_settings.get(key, DEFAULT)
            if value != other_value and key not in ("name", "version"):
                changed[key] = value, other_value
        return changed

    def leaves(self) -> dict[str, object]:
        """Return all settings as a flat dict from names to values. Tuples become lists.

        The parameters of NMS and the options of metrics that are set have dotted names, such as
        "nms_params.radius" and "depth.crop".
        """
        settings = asdict(self)
        tables = {"nms_params": settings.pop("nms_params"), **settings.pop("options")}
        for name, table in tables.items():
            settings |= {f"{name}.{key}": value for key, value in table.items()}
        return settings

    def describe(self, used: Collection[str] | None = None, more: Iterable[str] = ()) -> str:
        """Describe the settings that can change a score, in one line: "bsds500 v1: ...; ...".

        If the settings are not known (`stated` is False), only the thresholds are described, or
        nothing if they are not known either.

        Parameters
        ----------
        used : collection of str, optional
            Names of the fields to describe. By default, all fields and the options of all metrics.
        more : iterable of str
            Descriptions of further settings, appended if `used` is given.
        """
        if self.name == UNSTATED_GRID:
            return "protocol and thresholds not stated"
        caption_of = captions(self)
        if not self.stated:
            note = ", the first of them the whole image" if self.whole_image else ""
            return f"{caption_of['thresholds']}{note}; the rest of the protocol is not stated"
        settings = []
        for name, text in caption_of.items():
            if used is None or name in used:
                settings.append(text)
        if used is None:
            for metric, table in self.options.items():
                options = ", ".join(f"{key} {abbreviate(value)}" for key, value in table.items())
                settings.append(f"{metric}: {options}")
        else:
            settings += more
        return f"{self.name} v{self.version}: {'; '.join(settings)}"

    def threshold_array(self) -> Floats:
        """Return the T thresholds as a float64 array (T,)."""
        return np.array(self.thresholds, np.float64)

    def cuts(self) -> Floats:
        """Return the smallest map value that counts as boundary at each of the T thresholds, (T,).

        With the operator ">", it is the next float64 number above the threshold.
        """
        thresholds = np.array(self.thresholds)
        return thresholds if self.operator == ">=" else np.nextafter(thresholds, np.inf)

    @property
    def tolerances(self) -> tuple[float, ...]:
        """The matching tolerances: max_dist_px in pixels; if it is None, max_dist as fractions."""
        values = self.max_dist if self.max_dist_px is None else self.max_dist_px
        return values if isinstance(values, tuple) else (values,)

    @property
    def tolerance_names(self) -> tuple[str, ...]:
        """The names of the tolerances, such as "0.0075" or "2px", as in the score ODS@2px."""
        unit = "" if self.max_dist_px is None else "px"
        return tuple(f"{tidy(v)}{unit}" for v in self.tolerances)

    def radii(self, shape: tuple[int, ...]) -> tuple[float, ...]:
        """Return all matching tolerances in pixels for an image of this shape (rows, columns).

        Tolerances are fractions of the image diagonal, unless max_dist_px is set.
        """
        scale = math.hypot(*shape) if self.max_dist_px is None else 1.0
        return tuple(np.multiply(scale, self.tolerances).tolist())

    def radius(self, shape: tuple[int, ...]) -> float:
        """Return the first matching tolerance in pixels for an image of this shape."""
        return self.radii(shape)[0]


@cache
def preset_names() -> tuple[str, ...]:
    """Return the names of all presets, sorted."""
    folder = resources.files("bsdsbench.protocol.presets")
    return tuple(sorted(p.name[:-5] for p in folder.iterdir() if p.name.endswith(".toml")))


def preset_text(name: str) -> str:
    """Return the TOML text of a preset, with comments. Raises ProtocolError if it is unknown."""
    Protocol.preset(name)  # raises if it is unknown
    folder = resources.files("bsdsbench.protocol.presets")
    return folder.joinpath(f"{name}.toml").read_text("utf-8")


@cache
def _unnamed_preset(name: str) -> Protocol:
    """Return a copy of the preset `name` that is named "preset".

    A new protocol with the name of a preset is compared with this copy when it is created. If the
    copy had that name too, creating it would need the same comparison, in an endless recursion.
    """
    return Protocol.from_mapping({**read_packaged_toml(f"presets/{name}.toml"), "name": "preset"})


@cache
def _preset(name: str) -> Protocol:
    """Return the preset with this name."""
    return evolve(_unnamed_preset(name), name=name)
