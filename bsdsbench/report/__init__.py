"""Reports: one self-contained HTML page of runs, and pictures of what matched."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOME = {
    "comparison_tables": "comparison.comparison_tables",
    "score_tables": "runs.score_tables",
    "to_csv": "tables.forms",
    "to_latex": "tables.forms",
    "to_markdown": "tables.forms",
    "write_report": "report.html",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'bsdsbench.report' has no attribute {name!r}")
    value = getattr(import_module(f"bsdsbench.{_HOME[name]}"), name)
    globals()[name] = value
    return value
