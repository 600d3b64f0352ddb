"""The constants of a benchmark: a frozen `Protocol`, and the named presets of protocols/*.toml."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.errors import ProtocolError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def even_thresholds(count: int) -> tuple[float, ...]:
    """linspace(1/(T+1), 1 - 1/(T+1), T): the official default grid (boundaryBench.m)."""
    return tuple(np.linspace(1 / (count + 1), 1 - 1 / (count + 1), count).tolist())


@dataclass(frozen=True, slots=True)
class NMSParams:
    """Edge non-maximum suppression: radius and border in pixels, multiplier, smoothing before."""

    radius: int = 1
    border: int = 5
    multiplier: float = 1.01
    smooth: bool = True


@dataclass(frozen=True, slots=True)
class Protocol:
    """How a prediction is turned into counts. Equal protocols give comparable scores.

    thresholds  : increasing, in (0, 1]; an int in a file or in `replace` means that many even ones
    max_dist    : match tolerance, a fraction of the image diagonal
    max_dist_px : the same in pixels; overrides max_dist when set
    thin        : thin each thresholded map to one pixel before matching
    nms         : edge NMS of the soft map before thresholding, or None
    invert      : the prediction is dark on bright (1 - value is taken)
    gt_invert   : ground-truth pictures are dark boundaries on bright ground
    ap_rule     : "bsds" (101 recall levels, nothing outside the measured range)
    """

    name: str = "custom"
    version: int = 1
    thresholds: tuple[float, ...] = even_thresholds(99)
    max_dist: float = 0.0075
    max_dist_px: float | None = None
    thin: bool = True
    nms: NMSParams | None = None
    invert: bool = False
    gt_invert: bool = False
    ap_rule: str = "bsds"

    def __post_init__(self) -> None:
        if isinstance(self.thresholds, int):
            object.__setattr__(self, "thresholds", even_thresholds(self.thresholds))
        else:
            object.__setattr__(self, "thresholds", tuple(float(t) for t in self.thresholds))
        if isinstance(self.nms, Mapping):
            object.__setattr__(self, "nms", NMSParams(**self.nms))
        _check(self)

    @classmethod
    def preset(cls, name: str) -> Protocol:
        """The named protocol shipped with the package. Raises ProtocolError for an unknown name."""
        if name not in preset_names():
            raise ProtocolError(f"protocol {name!r}: expected one of {', '.join(preset_names())}")
        text = resources.files("bsdsbench.protocols").joinpath(f"{name}.toml").read_text("utf-8")
        return cls.from_mapping(tomllib.loads(text))

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Protocol:
        """A protocol from a TOML or JSON mapping. Raises ProtocolError for unknown names."""
        known = {f.name for f in fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            raise ProtocolError(f"protocol field {unknown[0]!r}: expected one of {sorted(known)}")
        try:
            return cls(**values)
        except TypeError as error:
            raise ProtocolError(f"protocol: {error}") from None

    def replace(self, **changes: Any) -> Protocol:
        """A copy with some fields changed; any change of a preset shows in `name` as `name*`."""
        changed = replace(self, **changes)
        if changed != self and "name" not in changes and not self.name.endswith("*"):
            changed = replace(changed, name=self.name + "*")
        return changed

    def to_mapping(self) -> dict[str, Any]:
        """Plain values for JSON; `from_mapping` reads them back to an equal protocol."""
        values = asdict(self)
        values["thresholds"] = list(self.thresholds)
        return values

    def threshold_array(self) -> NDArray[np.float64]:
        """thresholds as f8 (T,)."""
        return np.array(self.thresholds, np.float64)

    def radius(self, shape: tuple[int, int]) -> float:
        """The match tolerance in pixels for an image of `shape` (rows, columns)."""
        if self.max_dist_px is not None:
            return self.max_dist_px
        return self.max_dist * math.hypot(*shape)


def preset_names() -> list[str]:
    """The presets that `Protocol.preset` knows, sorted."""
    folder = resources.files("bsdsbench.protocols")
    return sorted(p.name[:-5] for p in folder.iterdir() if p.name.endswith(".toml"))


def _check(protocol: Protocol) -> None:
    t = protocol.thresholds
    if not t or any(not 0 < x <= 1 for x in t):
        raise ProtocolError("thresholds: expected at least one value, each in (0, 1]")
    if any(a >= b for a, b in zip(t, t[1:], strict=False)):
        raise ProtocolError("thresholds: expected strictly increasing values")
    if not 0 < protocol.max_dist < 1:
        raise ProtocolError(f"max_dist {protocol.max_dist}: expected a fraction in (0, 1)")
    if protocol.max_dist_px is not None and not 0 <= protocol.max_dist_px < math.inf:
        raise ProtocolError(f"max_dist_px {protocol.max_dist_px}: expected pixels, 0 or more")
    if protocol.ap_rule != "bsds":
        raise ProtocolError(f"ap_rule {protocol.ap_rule!r}: expected 'bsds'")
