"""The constants of a benchmark: a frozen `Protocol`, and the named presets of protocols/*.toml."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.arguments import given_path, kind_of_value
from bsdsbench.files.bounded import MAX_TOML_BYTES, parse_toml, read_text, reading
from bsdsbench.files.errors import ProtocolError, did_you_mean
from bsdsbench.protocol.constants import Constants
from bsdsbench.protocol.settings import Settings, clipped, short, toml_text

DEFAULT = "default"  # an option that is not given
UNSTATED = "unstated"  # the name of a protocol of which only the thresholds are known
UNSTATED_GRID = "unstated-thresholds"  # and of one of which not even these are


@dataclass(frozen=True, slots=True, repr=False)
class Protocol(Constants):
    """How a prediction is turned into counts. Equal protocols give comparable scores.

    A value out of its range raises ProtocolError, which names the field.

    Examples
    --------
    >>> protocol = Protocol.preset("bsds500").replace(max_dist=0.011)
    >>> protocol.name, protocol.max_dist
    ('bsds500*', 0.011)
    """

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
        name = str(kept.get("name")).removesuffix("*")
        if name not in preset_names():
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
        wanted = name + "*" if star else name
        return self if wanted == self.name else replace(self, name=wanted)

    def _is_preset(self, name: str) -> bool:
        preset, free = _starred(name), ("name", "nms", "nms_params")  # NMS may be done beforehand
        return all(getattr(self, n) == getattr(preset, n) for n in self.names() if n not in free)

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
