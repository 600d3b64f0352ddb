"""A table, or columns of numbers, as a pandas DataFrame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bsdsbench.files.errors import DataError
from bsdsbench.tables.table import Table, interval, mark, number


def to_frame(table: Table) -> Any:
    """One row per row; columns as in CSV. Raises DataError if pandas is not installed."""
    out: dict[str, list[Any]] = {}
    for c, column in enumerate(table.columns):
        cells = [row[c] for row in table.rows]
        if not column.is_number:
            out[column.key] = cells
            continue
        out[column.key] = _numbers([number(cell) for cell in cells])
        if table.has_intervals(c):
            ends = [interval(cell) or (None, None) for cell in cells]
            out[f"{column.key}_low"] = _numbers([e[0] for e in ends])
            out[f"{column.key}_high"] = _numbers([e[1] for e in ends])
        if table.has_marks(c):
            out[f"{column.key}_mark"] = [mark(cell) for cell in cells]
    return frame_of(out)


def frame_of(columns: Mapping[str, Any]) -> Any:
    """Columns, each (N,), by name. Raises DataError if pandas is not installed."""
    try:
        import pandas as pd
    except ImportError:
        raise DataError("data frames need pandas: install the extra bsdsbench[pandas]") from None
    return pd.DataFrame(dict(columns))


def _numbers(values: list[float | None]) -> list[float]:
    return [float("nan") if v is None else v for v in values]
