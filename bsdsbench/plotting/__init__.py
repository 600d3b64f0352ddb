"""Pictures: Display objects over computed results. The only package that imports matplotlib."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_DISPLAYS = (
    "DETCurveDisplay",
    "FThresholdDisplay",
    "PRCurveDisplay",
    "ROCCurveDisplay",
    "ReliabilityDisplay",
)
# Name -> module; imported when first used, so that matplotlib is loaded only for a picture.
_HOME = dict.fromkeys(("plot_curves", "plot_runs"), "figures") | dict.fromkeys(
    _DISPLAYS, "displays"
)

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'bsdsbench.plotting' has no attribute {name!r}")
    value = getattr(import_module(f"bsdsbench.plotting.{_HOME[name]}"), name)
    globals()[name] = value
    return value
