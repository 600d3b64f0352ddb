"""Tables of results: their content, their cells as printed text, and whole tables as plain text.

A table has fields (its columns), rows of cells, and lines of text around them. A cell is a number,
an `Estimate` (a number with an interval or a mark), text, or None if the value is undefined.

Plain text is as wide as the terminal, or WIDTH in a pipe or file. A table that is too wide first
gets short headings, then narrower gaps. A table that is still too wide is split into blocks of
columns, each with the row labels. Numbers are never cut; text longer than the width is folded.
"""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import IO, Any, NamedTuple

from bsdsbench.text import show

UNDEFINED = "-"
WIDTH = 120  # characters of a line if the output is not a terminal
_MIN_TEXT_WIDTH = 8  # characters of a folded column of text


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with an interval, a mark, or a spread.

    mark       : a letter, a star or a word, raised after the number
    comparable : False if the number is of a different kind than its column, so that it is not best
    spread     : the standard deviation or error if the number is a mean of `n` numbers
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    mark: str = ""
    comparable: bool = True
    spread: float | None = None
    n: int | None = None


Cell = float | int | str | Estimate | None


@dataclass(slots=True)
class PrintedCell:
    """A cell as text for people, with its numbers.

    text : the text or number
    line : `text`, `span` and `mark` in one line
    span : the interval, such as "[0.779, 0.797]", or ""
    mark : the mark after the number, or ""
    best : True if the number is the best of its column
    value, low, high, spread, n : numbers of Python's own types, None if undefined
    """

    text: str
    line: str
    span: str = ""
    mark: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    best: bool = False
    spread: float | None = None
    n: int | None = None


@dataclass(frozen=True, slots=True)
class Field:
    """The description of one column of a table.

    key     : the name for programs, unique in a table
    heading : the heading for people, clear without its neighbours
    short   : a shorter heading for narrow columns, or ""
    format  : as in `format()`, or "p" for a p-value; "" for a column of text
    higher_is_better : None if neither direction is better
    paper   : False if LaTeX leaves the column out
    """

    key: str
    heading: str
    short: str = ""
    format: str = ""
    higher_is_better: bool | None = None
    paper: bool = True

    @property
    def arrow(self) -> str:
        """Return the sign of the better direction, which follows the heading, or ""."""
        return {True: " ↑", False: " ↓", None: ""}[self.higher_is_better]

    def text(self, value: float | None) -> str:
        """Format a number of this column. An undefined number is "-"."""
        if value is None:
            return UNDEFINED
        if self.format == "p":
            return f"{value:.4f}" if value >= 0.0001 else "<0.0001"
        return format(value, self.format)


@dataclass(frozen=True, slots=True)
class Note:
    """A line below a table about some of its columns.

    columns : keys of the columns; the note is dropped if all of them are, and kept if () is given
    headed  : the text is printed after the headings of the columns
    needed  : LaTeX prints the note even if it is long
    """

    text: str
    columns: tuple[str, ...] = ()
    headed: bool = False
    needed: bool = False


@dataclass(eq=False, repr=False)
class Table:
    """A titled table.

    caption    : how the numbers were made (protocol, signature); printed with every table
    reading    : what the files were read as; in a paper it follows the caption
    row_notes  : the notes of each row, which are dropped with the row and printed after the
        headings of their columns; equal notes of several rows are printed once
    notes      : lines below the table; text if they are about the whole table
    signatures : the last lines below the table, in LaTeX a comment
    sentence   : the caption in a paper; default: the title
    n_labels   : number of the first columns that name a row; each block of a split table has them
    aside      : left out of a summary of all tables
    ranked_within : the key of a column; the best value is marked within the rows of each of its
        labels, or of all rows if it is ""
    asked      : the user chose the columns, so that empty ones are shown too
    """

    key: str
    title: str
    columns: Sequence[Field]
    rows: Sequence[Sequence[Cell]]
    _: KW_ONLY
    caption: str = ""
    reading: str = ""
    row_notes: Sequence[Sequence[Note]] = ()
    notes: Sequence[str | Note] = ()
    signatures: Sequence[str] = ()
    sentence: str = ""
    n_labels: int = 1
    aside: bool = False
    ranked_within: str = ""
    asked: bool = False

    @property
    def lines_below(self) -> list[str]:
        """Return the lines below the table: caption, reading, notes and signatures."""
        lines = self.caption, self.reading, *self.note_lines, *self.signatures
        return [show(line) for line in lines if line]

    @property
    def all_notes(self) -> list[str | Note]:
        """Return the notes of rows, then the notes of the table.

        Equal texts of several rows are merged into one note on all their columns.
        """
        keys_by_text: dict[str, set[str]] = {}
        for note in chain(*self.row_notes):
            keys_by_text.setdefault(note.text, set()).update(note.columns)
        row_notes: list[str | Note] = []
        for text, keys in keys_by_text.items():
            columns = tuple(c.key for c in self.columns if c.key in keys)
            if columns:
                row_notes.append(Note(text, columns, headed=True))
        return [*row_notes, *self.notes]

    @property
    def note_lines(self) -> list[str]:
        """Return all notes as text."""
        return [self.line_of(note) for note in self.all_notes]

    def line_of(self, note: str | Note) -> str:
        """Return a note as text, after the headings of its columns if it is headed."""
        if not isinstance(note, Note):
            return note
        headings = ", ".join(c.heading for c in self.columns if c.key in note.columns)
        return f"- under {headings}: {note.text}" if note.headed else note.text

    def only(self, kept: Sequence[int]) -> Table:
        """Return the table with these columns in this order. Notes on other columns are dropped."""
        columns = [self.columns[k] for k in kept]
        keys = {c.key for c in columns}
        notes = [
            note
            for note in self.notes
            if isinstance(note, str) or not note.columns or not keys.isdisjoint(note.columns)
        ]
        rows = [[row[k] for k in kept] for row in self.rows]
        return replace(self, columns=columns, rows=rows, notes=notes)

    @property
    def for_people(self) -> Table:
        """Return the table without the columns of numbers that are undefined in all rows.

        Headed notes then name the columns that are not shown. The table stays as it is if the user
        chose the columns, or if all columns of numbers are undefined.
        """
        empty_keys = set[str]()
        filled_keys = set[str]()
        for k, column in enumerate(self.columns):
            if column.format not in ("", "p"):
                is_empty = all(row[k].value is None for row in self.printed_cells)
                (empty_keys if is_empty else filled_keys).add(column.key)
        if self.asked or not (empty_keys and filled_keys):
            return self
        heading_of = {c.key: c.heading for c in self.columns}
        notes = list[str | Note]()
        for note in self.all_notes:
            if isinstance(note, Note) and note.headed and not empty_keys.isdisjoint(note.columns):
                headings = ", ".join(heading_of[key] for key in note.columns if key in empty_keys)
                notes.append(f"- not shown, {headings}: {note.text}")
                shown_keys = tuple(key for key in note.columns if key not in empty_keys)
                if shown_keys:
                    notes.append(replace(note, columns=shown_keys))
            else:
                notes.append(note)
        columns = [k for k, c in enumerate(self.columns) if c.key not in empty_keys]
        return replace(self, notes=notes, row_notes=()).only(columns)

    @cached_property
    def printed_cells(self) -> list[list[PrintedCell]]:
        """Return the cells as text for people, a list per row. All forms of output use them."""
        printed = [
            [_printed_cell(column, cell) for column, cell in zip(self.columns, row, strict=True)]
            for row in self.rows
        ]
        self._mark_best(printed)
        return printed

    def _mark_best(self, printed: Sequence[Sequence[PrintedCell]]) -> None:
        """Set `best` of the best cells of each column that has a better direction.

        Cells compete within `ranked_within`. A cell without competitors is not best.
        """
        label_columns = [k for k, c in enumerate(self.columns) if c.key == self.ranked_within]
        for k, column in enumerate(self.columns):
            if column.higher_is_better is None:
                continue
            competitors: dict[Any, list[PrintedCell]] = {}
            for row, cells in zip(self.rows, printed, strict=True):
                if getattr(row[k], "comparable", True) and cells[k].value is not None:
                    labels = tuple(row[label_column] for label_column in label_columns)
                    competitors.setdefault(labels, []).append(cells[k])
            best_of = max if column.higher_is_better else min
            for group in competitors.values():
                best = best_of(group, key=attrgetter("value")).value
                for cell in group:
                    cell.best = len(group) > 1 and cell.value == best

    @cached_property
    def widths(self) -> list[int]:
        """Return the number of characters of the longest cell of each column."""
        from rich.cells import cell_len

        widths = [0] * len(self.columns)
        for row in self.printed_cells:
            for k, cell in enumerate(row):
                widths[k] = max(widths[k], cell_len(cell.line))
        return widths

    def heading(self, column: int, short: bool) -> str:
        """Return the heading of the column with this number.

        With `short`, the short heading replaces a heading that would widen the column.
        """
        field = self.columns[column]
        width = len(field.heading)
        if field.higher_is_better is False:
            width += 2  # an arrow is added
        if short and field.short and width > self.widths[column]:
            return show(field.short)
        return show(field.heading)

    def plain(self) -> dict[str, list[Any]]:
        """Return the columns for programs, at full precision, None if undefined.

        KEY_low, KEY_high, KEY_mark, KEY_spread and KEY_n follow a column KEY that has them.
        """
        columns = {}
        for k, column in enumerate(self.columns):
            if not column.format:
                columns[column.key] = [row[k] for row in self.rows]
                continue
            for name in ("value", "low", "high", "mark", "spread", "n"):
                values = [getattr(row[k], name) for row in self.printed_cells]
                if name == "value":
                    columns[column.key] = values
                elif any(v not in (None, "") for v in values):
                    columns[f"{column.key}_{name}"] = values
        return columns


def _printed_cell(column: Field, cell: Cell) -> PrintedCell:
    """Format one cell of a column. An interval with an undefined end is left out."""
    if isinstance(cell, str):
        return PrintedCell(show(cell), show(cell))
    estimate = cell if isinstance(cell, Estimate) else Estimate(cell)
    value, low, high = map(_defined, (estimate.value, estimate.low, estimate.high))
    text = column.text(value)
    mark = show(estimate.mark)
    if value is not None and estimate.spread is not None:
        text += f" ± {column.text(estimate.spread)} ({estimate.n})"
    if low is None or high is None:
        low = high = None
        span = ""
    else:
        span = f"[{column.text(low)}, {column.text(high)}]"
    line = " ".join(filter(None, (text, span, mark)))
    return PrintedCell(
        text, line, span, mark, value, low, high, spread=estimate.spread, n=estimate.n
    )


def _defined(value: Any) -> float | None:
    """Return a number of Python or numpy as a number of Python, or None if it is None or NaN."""
    number = value.item() if hasattr(value, "item") else value
    return None if number is None or math.isnan(number) else number


def lines_below_tables(tables: Sequence[Table]) -> list[list[str]]:
    """Return the lines below each table. Equal lines stand below the last table that has them.

    Tables marked `aside` may be folded away, so they share no lines with other tables.
    """
    lines_by_table = []
    for i, table in enumerate(tables):
        lines_before, lines_after = set[str](), set[str]()
        for k, neighbour in enumerate(tables):
            if k != i and neighbour.aside == table.aside:
                (lines_before if k < i else lines_after).update(neighbour.lines_below)
        new_lines, shared_lines = list[str](), list[str]()
        for line in table.lines_below:
            if line not in lines_after:
                (shared_lines if line in lines_before else new_lines).append(line)
        lines_by_table.append(new_lines + shared_lines)
    return lines_by_table


# ---- as text ------------------------------------------------------------------------------------


def to_text(tables: Sequence[Table], width: int | None = None) -> str:
    """Convert tables to plain text of `width` characters per line, by default WIDTH."""
    out = io.StringIO()
    print_tables(tables, out, width)
    return out.getvalue()


def print_tables(tables: Sequence[Table], file: IO[str], width: int | None = None) -> None:
    """Print tables as plain text to `file`.

    width : characters per line; default: those of the terminal, or WIDTH

    On a terminal the best value of a column is bold. Equal lines of several tables are printed
    once, below the last of these tables.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    tables = [table.for_people for table in tables]
    settings: Any = {"highlight": False, "markup": False, "emoji": False, "soft_wrap": True}
    console = Console(file=file, **settings)
    width = width or (console.width if console.is_terminal else WIDTH)
    for i, (table, lines) in enumerate(zip(tables, lines_below_tables(tables), strict=True)):
        if i:
            console.print()
        if table.title:
            console.print(show(table.title), style="bold")
        layout = _layout(table, width)
        for k, block in enumerate(_blocks(table, layout, width)):
            if k:
                console.print()
            rich_table = RichTable(
                box=box.SIMPLE_HEAD,
                show_edge=False,
                pad_edge=False,
                collapse_padding=layout.gap == 2,
            )
            for c in block.columns:
                is_number = bool(table.columns[c].format)
                rich_table.add_column(
                    Text(layout.headings[c]),
                    justify="right" if is_number else "left",
                    no_wrap=is_number,
                    overflow="fold",
                )
            for row in table.printed_cells:
                cells = [row[c] for c in block.columns]
                rich_table.add_row(*(Text(c.line, "bold" if c.best else "") for c in cells))
            console.width = block.line_width
            with console.capture() as capture:
                console.print(rich_table)
            # Blanks at the ends of lines are noise in a file and a difference in a snapshot.
            for line in capture.get().rstrip("\n").split("\n"):
                file.write(line.rstrip() + "\n")
        for line in ["", *lines] if lines else []:
            if "|" not in line:  # a signature stays in one piece, to be copied
                line = textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)
            file.write(line + "\n")


class _Layout(NamedTuple):
    """The headings of a table, its column widths (with the gap), and the gap between columns."""

    headings: list[str]
    widths: list[int]
    gap: int


class _Block(NamedTuple):
    """Some columns of a table by number, which are printed side by side."""

    columns: list[int]
    line_width: int


def _layout(table: Table, width: int) -> _Layout:
    """Choose headings and gap so that the table fits `width`, if possible.

    Long headings are preferred, then short headings, then short headings with a gap of 2. If
    nothing fits, the headings are short and the gap is 3.
    """
    for short, gap in ((False, 3), (True, 3), (True, 2)):
        layout = _layout_with(table, short, gap)
        if sum(layout.widths) - gap <= width:
            return layout
    return _layout_with(table, short=True, gap=3)


def _layout_with(table: Table, short: bool, gap: int) -> _Layout:
    """Return the layout with long or short headings and this gap."""
    from rich.cells import cell_len

    headings = []
    widths = []
    for k, field in enumerate(table.columns):
        heading = table.heading(k, short)
        if field.higher_is_better is False:
            heading += " ↓"
        headings.append(heading)
        widths.append(max(cell_len(heading), table.widths[k]) + gap)
    return _Layout(headings, widths, gap)


def _blocks(table: Table, layout: _Layout, width: int) -> list[_Block]:
    """Split the columns of a table into blocks no wider than `width`. Each has the row labels.

    A block of a single wide column is wider. Columns of text may be folded.
    """
    n_labels, widths, gap = table.n_labels, layout.widths, layout.gap
    blocks: list[list[int]] = [[]]
    for column in range(len(widths)):
        used = sum(widths[k] for k in blocks[-1])
        if len(blocks[-1]) > n_labels and used + widths[column] - gap > width:
            blocks.append(list(range(n_labels)))
        blocks[-1].append(column)
    sized_blocks = []
    for columns in blocks:
        min_width = -gap
        for k in columns:
            is_text = not table.columns[k].format
            min_width += min(widths[k], _MIN_TEXT_WIDTH + gap) if is_text else widths[k]
        sized_blocks.append(_Block(columns, max(width, min_width)))
    return sized_blocks
