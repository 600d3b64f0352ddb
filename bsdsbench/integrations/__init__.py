"""Adapters for other programs: pytest, torchmetrics, detectors."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    """Modules are imported when first used: `bb.integrations.torchmetrics` needs torch."""
    if name in ("detectors", "torchmetrics"):
        return import_module(f"bsdsbench.integrations.{name}")
    raise AttributeError(f"module 'bsdsbench.integrations' has no attribute {name!r}")
