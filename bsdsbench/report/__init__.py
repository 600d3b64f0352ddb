"""Reports: one self-contained HTML page of runs, and pictures of what matched."""

from bsdsbench.files.late import late

_HOME = {
    "comparison_tables": "comparison.comparison_tables",
    "score_tables": "runs.score_tables",
    "to_csv": "tables.forms",
    "to_latex": "tables.forms",
    "to_markdown": "tables.forms",
    "write_report": "report.html",
}

__all__ = sorted(_HOME)
__getattr__ = late(__name__, _HOME)
