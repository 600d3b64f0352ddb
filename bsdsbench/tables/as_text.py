"""Tables fitted to the terminal's width, or as wide as needed in a pipe or file.

A table too wide first gets short headings, then narrower gaps, and at last is split into blocks of
columns, each with the row labels. A number is never cut; only text longer than the width is folded.
"""

from __future__ import annotations

import io
import os
import textwrap
from collections.abc import Sequence
from typing import IO, Any

from bsdsbench.tables.table import Table, words_under

_NARROWEST = 8  # a folded column of text
_LONG_WORD = 60  # a signature, which is copied in one piece


def to_text(tables: Sequence[Table], width: int | None = None) -> str:
    """The tables as plain text; `width` None: as wide as the content needs."""
    out = io.StringIO()
    print_tables(tables, out, width)
    return out.getvalue()


def print_tables(tables: Sequence[Table], file: IO[str], width: int | None = None) -> None:
    """Print to `file`; on a terminal the best of a column is bold and `width` its own.

    What consecutive tables have to say alike is printed once, under the last of them.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

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
    for i, (table, words) in enumerate(zip(tables, words_under(tables), strict=True)):
        if i:
            console.print()
        if table.title:
            console.print(table.title, style="bold")
        blocks, short, gap = _blocks(table, width)
        for k, block in enumerate(blocks):
            if k:
                console.print()
            drawn = RichTable(
                box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=gap == 2
            )
            for c in block:
                number = table.columns[c].is_number
                side: Any = "right" if number else "left"
                drawn.add_column(
                    Text(_head(table, c, short)), justify=side, no_wrap=number, overflow="fold"
                )
            for row in table.drawn:
                cells = (Text(row[c].line, "bold" if row[c].best else "") for c in block)
                drawn.add_row(*cells)
            whole, least = _widths(table, block, short, gap)
            console.width = max(width or whole, least)
            with console.capture() as capture:
                console.print(drawn)
            # Blanks at the ends of lines are noise in a file and a difference in a snapshot.
            for line in capture.get().rstrip("\n").split("\n"):
                file.write(line.rstrip() + "\n")
        for text in ["", *words] if words else []:
            file.write("\n".join(_wrapped(text, width)) + "\n")


def _wrapped(text: str, width: int | None) -> list[str]:
    if width is None or max(map(len, text.split()), default=0) > min(width, _LONG_WORD):
        return [text]
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]


def _blocks(table: Table, width: int | None) -> tuple[list[list[int]], bool, int]:
    """The columns of each block, whether its headings are short, and the gap between columns."""
    every = list(range(len(table.columns)))
    for short, gap in ((False, 3), (True, 3), (True, 2)):
        if width is None or _widths(table, every, short, gap)[0] <= width:
            return [every], short, gap
    labels = every[: table.n_labels]
    out = [list(labels)]
    for c in every[table.n_labels :]:
        full = _widths(table, [*out[-1], c], True, 3)[0] > (width or 0)
        if full and len(out[-1]) > len(labels):
            out.append(list(labels))
        out[-1].append(c)
    return out, True, 3


def _widths(table: Table, columns: Sequence[int], short: bool, gap: int) -> tuple[int, int]:
    """Characters of a line, and of the narrowest that cuts no number."""
    from rich.cells import cell_len

    whole = least = gap * (len(columns) - 1)
    for c in columns:
        texts = [_head(table, c, short), *(row[c].line for row in table.drawn)]
        widest = max(map(cell_len, texts))
        whole += widest
        least += widest if table.columns[c].is_number else min(widest, _NARROWEST)
    return whole, least


def _head(table: Table, column: int, short: bool) -> str:
    down = table.columns[column].higher_is_better is False
    return table.heading(column, short) + (" ↓" if down else "")
