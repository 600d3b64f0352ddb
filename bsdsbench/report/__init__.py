"""Reports: tables as Markdown, LaTeX and CSV, and one self-contained HTML page."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOME = {
    "comparison_mapping": "rows",
    "comparison_tables": "rows",
    "score_tables": "rows",
    "to_csv": "tables",
    "to_latex": "tables",
    "to_markdown": "tables",
    "write_report": "html",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'bsdsbench.report' has no attribute {name!r}")
    value = getattr(import_module(f"bsdsbench.report.{_HOME[name]}"), name)
    globals()[name] = value
    return value
