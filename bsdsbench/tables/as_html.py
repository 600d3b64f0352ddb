"""Tables as HTML: for notebooks and the report. All text is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from bsdsbench.files.errors import visible
from bsdsbench.tables.table import Table, arrow, mark

_RIGHT = ' style="text-align: right"'
_LEFT = ' style="text-align: left"'


def to_html(tables: Sequence[Table]) -> str:
    """One <figure> per table; the best of a column is bold, marks are raised.

    Works without a style sheet; classes `number` and `best` are for one.
    """
    return "\n".join(_table(table) for table in tables)


def to_html_page(tables: Sequence[Table]) -> str:
    """A page of its own with the tables."""
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        f"<title>{_text(', '.join(t.title for t in tables))}</title>\n{to_html(tables)}\n</html>\n"
    )


def _table(table: Table) -> str:
    heads = "".join(
        f'<th scope="col"{_RIGHT if c.is_number else _LEFT}>'
        f"{_text(c.heading)}{' ' if arrow(c) else ''}{arrow(c)}</th>"
        for c in table.columns
    )
    rows = "".join(
        "<tr>" + "".join(_cell(table, r, c) for c in range(len(table.columns))) + "</tr>\n"
        for r in range(len(table.rows))
    )
    words = "".join(f"<small>{_text(t)}</small><br>" for t in table.words)
    return (
        f'<figure class="bsdsbench"><table data-key="{_text(table.key)}">'
        f"<caption>{_text(table.title)}</caption>\n"
        f"<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}</tbody></table>\n"
        f"<figcaption>{words}</figcaption></figure>"
    )


def _cell(table: Table, row: int, column: int) -> str:
    text = _text(table.text(row, column))
    if raised := mark(table.rows[row][column]):
        text += f"<sup>{_text(raised)}</sup>"
    if not table.columns[column].is_number:
        label = column < table.n_labels
        return f'<th scope="row"{_LEFT}>{text}</th>' if label else f"<td{_LEFT}>{text}</td>"
    best = table.is_best(row, column)
    text = f"<b>{text}</b>" if best else text
    return f'<td class="number{" best" if best else ""}"{_RIGHT}>{text}</td>'


def _text(text: str) -> str:
    return escape(visible(text))
