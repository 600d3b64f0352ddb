"""A table as tidy CSV: numbers alone in number columns, at full precision."""

from __future__ import annotations

import csv
import io

from bsdsbench.files.errors import visible
from bsdsbench.tables.table import Cell, Table, interval, mark, number

# A spreadsheet takes text that begins so for a formula.
_FORMULA = ("=", "+", "-", "@")


def to_csv(table: Table) -> str:
    """One table: a line of keys, then a line per row; undefined numbers are empty.

    A column KEY with intervals has KEY_low and KEY_high after it, one with marks KEY_mark.
    Text that a spreadsheet would take for a formula gets an apostrophe in front.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    spans = [table.has_intervals(c) for c in range(len(table.columns))]
    marks = [table.has_marks(c) for c in range(len(table.columns))]
    header = []
    for column, span, marked in zip(table.columns, spans, marks, strict=True):
        header += [column.key]
        header += [f"{column.key}_low", f"{column.key}_high"] if span else []
        header += [f"{column.key}_mark"] if marked else []
    writer.writerow(header)
    for row in table.rows:
        line: list[str] = []
        for cell, span, marked in zip(row, spans, marks, strict=True):
            line += [_value(cell)]
            line += [_number(v) for v in interval(cell) or (None, None)] if span else []
            line += [safe_text(mark(cell))] if marked else []
        writer.writerow(line)
    return out.getvalue()


def safe_text(text: str) -> str:
    """`text` that neither a terminal nor a spreadsheet obeys."""
    text = visible(text)
    return f"'{text}" if text.lstrip().startswith(_FORMULA) else text


def _value(cell: Cell) -> str:
    return safe_text(cell) if isinstance(cell, str) else _number(number(cell))


def _number(value: float | None) -> str:
    if value is None:
        return ""
    # item() of a numpy number: its repr names the type.
    return repr(value.item() if hasattr(value, "item") else value)
