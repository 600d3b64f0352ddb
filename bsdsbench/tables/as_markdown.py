"""Tables as Markdown of GitHub's kind."""

from __future__ import annotations

from collections.abc import Sequence

from bsdsbench.files.errors import visible
from bsdsbench.tables.table import Table, arrow, mark

_ESCAPES = {c: "\\" + c for c in "\\`*_[]|#~$"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;"}


def to_markdown(tables: Sequence[Table]) -> str:
    """One table after the other; the best of a column is bold, marks are raised."""
    return "\n".join(_table(table) for table in tables)


def escape_markdown(text: str) -> str:
    """`text` as plain text inside a Markdown table."""
    return "".join(_ESCAPES.get(c, c) for c in visible(text))


def _table(table: Table) -> str:
    heads = [f"{escape_markdown(c.heading)} {arrow(c)}".rstrip() for c in table.columns]
    parts = [f"### {escape_markdown(table.title)}", ""] if table.title else []
    parts += [_line(heads), _line(["---:" if c.is_number else "---" for c in table.columns])]
    parts += [
        _line([_cell(table, r, c) for c in range(len(heads))]) for r in range(len(table.rows))
    ]
    for text in table.words:
        parts += ["", escape_markdown(text)]
    return "\n".join(parts) + "\n"


def _cell(table: Table, row: int, column: int) -> str:
    text = escape_markdown(table.text(row, column))
    text = f"**{text}**" if table.is_best(row, column) else text
    raised = mark(table.rows[row][column])
    return f"{text}<sup>{escape_markdown(raised)}</sup>" if raised else text


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
