"""Reports: one self-contained HTML page of runs, and overlays of the matched pixels."""

from typing import TYPE_CHECKING

from bsdsbench.lazy import lazy_getattr

if TYPE_CHECKING:
    from bsdsbench.comparison.comparison_tables import comparison_tables as comparison_tables
    from bsdsbench.report.html import write_report as write_report
    from bsdsbench.results.score_tables import score_tables as score_tables
    from bsdsbench.tables.forms import to_csv as to_csv
    from bsdsbench.tables.forms import to_latex as to_latex
    from bsdsbench.tables.forms import to_markdown as to_markdown

_HOME = {
    "comparison_tables": "comparison.comparison_tables",
    "score_tables": "results.score_tables",
    "to_csv": "tables.forms",
    "to_latex": "tables.forms",
    "to_markdown": "tables.forms",
    "write_report": "report.html",
}

__all__ = sorted(_HOME)
if not TYPE_CHECKING:  # it would give every name the type Any
    __getattr__ = lazy_getattr(__name__, _HOME)
