"""Tables as JSON: columns with their direction, one mapping per row, full precision."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from bsdsbench.tables.table import Cell, Estimate, Table, interval, number

SCHEMA = "bsdsbench.tables/1"


def to_json(tables: Sequence[Table]) -> str:
    """{"schema": ..., "tables": [...]}; undefined numbers are null."""
    content = {"schema": SCHEMA, "tables": [table_mapping(table) for table in tables]}
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def table_mapping(table: Table) -> dict[str, Any]:
    """A table as plain values."""
    return {
        "key": table.key,
        "title": table.title,
        "caption": table.caption,
        "notes": [*table.notes, *table.signatures],
        "columns": [
            {"key": c.key, "heading": c.heading, "higher_is_better": c.higher_is_better}
            for c in table.columns
        ],
        "rows": [
            {c.key: _plain(cell) for c, cell in zip(table.columns, row, strict=True)}
            for row in table.rows
        ],
    }


def _plain(cell: Cell) -> Any:
    if isinstance(cell, str):
        return cell
    value = _number(number(cell))
    if not isinstance(cell, Estimate):
        return value
    ends = interval(cell)
    out: dict[str, Any] = {"value": value}
    if ends:
        out.update(low=_number(ends[0]), high=_number(ends[1]))
    return {**out, "mark": cell.mark} if cell.mark else out


def _number(value: Any) -> Any:
    value = value.item() if hasattr(value, "item") else value
    return value if value is None or math.isfinite(value) else None
