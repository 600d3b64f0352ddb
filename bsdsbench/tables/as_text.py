"""Tables fitted to the terminal's width, or as wide as needed in a pipe or file.

A table too wide first gets short headings, then narrower gaps, and at last is split into blocks of
columns, each with the row labels. A number is never cut; only text longer than the width is folded.
A caption that consecutive tables share is printed once, under the last of them.
"""

from __future__ import annotations

import io
import os
import textwrap
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any

from bsdsbench.files.errors import visible
from bsdsbench.tables.table import Table, mark

if TYPE_CHECKING:
    from rich.console import Console

_ENDLESS = 100_000
_NARROWEST = 8  # a folded column of text
_LONG_WORD = 60  # a signature, which is copied in one piece


def to_text(tables: Sequence[Table], width: int | None = None) -> str:
    """The tables as plain text; `width` None: as wide as the content needs."""
    out = io.StringIO()
    print_tables(tables, out, width)
    return out.getvalue()


def print_tables(tables: Sequence[Table], file: IO[str], width: int | None = None) -> None:
    """Print to `file`; on a terminal the best of a column is bold and `width` its own."""
    from rich.console import Console

    console = Console(
        file=file,
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=True,
    )
    if width is None and console.is_terminal:
        width = console.width
    console.width = width or _ENDLESS
    for i, table in enumerate(tables):
        if i:
            console.print()
        before, after = (_words(t) for t in (tables[:i][-1:], tables[i + 1 :][:1]))
        words = [text for text in _words([table]) if text not in after]
        _print(console, table, sorted(words, key=before.__contains__), width)


def _words(tables: Sequence[Table]) -> list[str]:
    return [text for table in tables for text in table.words]


def _print(console: Console, table: Table, words: Sequence[str], width: int | None) -> None:
    for k, drawn in enumerate(_blocks(console, table)):
        if k:
            console.print()
        elif table.title:
            console.print(table.title, style="bold")
        fitting, console.width = console.width, max(console.width, _least(console, drawn))
        with console.capture() as capture:
            console.print(drawn)
        console.width = fitting
        # Blanks at the ends of lines are noise in a file and a difference in a snapshot.
        for line in capture.get().rstrip("\n").split("\n"):
            console.file.write(line.rstrip() + "\n")
    lines = [line for text in words for line in _wrapped(text, width)]
    console.file.write("".join(f"{line}\n" for line in ("", *lines)) if lines else "")


def _wrapped(text: str, width: int | None) -> list[str]:
    if width is None or max(map(len, text.split())) > min(width, _LONG_WORD):
        return [text]
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _blocks(console: Console, table: Table) -> list[Any]:
    """The table in one piece, or in as few blocks of columns as fit."""
    every = range(len(table.columns))
    for short, close in ((False, False), (True, False), (True, True)):
        whole = _draw(table, every, short, close)
        if _fits(console, whole):
            return [whole]
    labels = list(every[: table.n_labels])
    out, block = [], list(labels)
    for c in every[table.n_labels :]:
        if len(block) > len(labels) and not _fits(console, _draw(table, [*block, c], True)):
            out.append(block)
            block = list(labels)
        block.append(c)
    return [_draw(table, block, True) for block in [*out, block]]


def _fits(console: Console, drawn: Any) -> bool:
    return _width(console, drawn) <= console.width


def _width(console: Console, drawn: Any) -> int:
    from rich.measure import Measurement

    endless = console.options.update(width=_ENDLESS)
    return Measurement.get(console, endless, drawn).maximum


def _least(console: Console, drawn: Any) -> int:
    """The width below which a number would be cut: columns of text folded, the others whole."""
    from rich.cells import cell_len

    texts = [c for c in drawn.columns if not c.no_wrap]
    widest = [max(cell_len(str(t)) for t in (c.header, *c.cells)) for c in texts]
    return _width(console, drawn) - sum(max(0, w - _NARROWEST) for w in widest)


def _draw(table: Table, columns: Sequence[int], short: bool, close: bool = False) -> Any:
    """A rich table of some of the columns; `close`: two blanks between them, not three."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    drawn = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=close)
    for c in columns:
        column = table.columns[c]
        drawn.add_column(
            Text(_heading(table, c, short)),
            justify="right" if column.is_number else "left",
            no_wrap=column.is_number,
            overflow="fold",
        )
    for r in range(len(table.rows)):
        cells = []
        for c in columns:
            best = table.is_best(r, c)
            cells.append(Text(_cell(table, r, c), style="bold" if best else ""))
        drawn.add_row(*cells)
    return drawn


def _cell(table: Table, row: int, column: int) -> str:
    return f"{table.text(row, column)} {visible(mark(table.rows[row][column]))}".rstrip()


def _heading(table: Table, c: int, short: bool) -> str:
    """The heading of a column; the short one where the other would make the column wider."""
    from rich.cells import cell_len

    column = table.columns[c]
    down = " ↓" if column.higher_is_better is False else ""
    long = visible(column.heading) + down
    if not (short and column.short):
        return long
    widest = max((cell_len(_cell(table, r, c)) for r in range(len(table.rows))), default=0)
    return long if cell_len(long) <= widest else visible(column.short) + down
