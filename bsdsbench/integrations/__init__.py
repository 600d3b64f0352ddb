"""Adapters for other programs: pytest, torch, torchmetrics, detectors, other benchmarks."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    """Modules are imported when first used: `bb.integrations.torch` needs torch."""
    if name in ("compat", "detectors", "torch", "torchmetrics"):
        return import_module(f"bsdsbench.integrations.{name}")
    raise AttributeError(f"module 'bsdsbench.integrations' has no attribute {name!r}")
