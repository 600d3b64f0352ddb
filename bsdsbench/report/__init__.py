"""Reports: one self-contained HTML page of runs, and overlays of the matched pixels."""

from typing import TYPE_CHECKING

from bsdsbench.lazy import lazy_getattr

if TYPE_CHECKING:
    from bsdsbench.report.html import write_report as write_report

__all__ = ["write_report"]
if not TYPE_CHECKING:  # it would give the name the type Any
    __getattr__ = lazy_getattr(__name__, {"write_report": "report.html"})
