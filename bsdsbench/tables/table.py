"""Tables of results, the formatting of their cells, and their conversion to plain text.

Plain text is as wide as the terminal, or WIDTH in a pipe or file. A table that is too wide first
gets short headings, then narrower gaps. If it is still too wide, it is split into blocks of
columns, each with the row labels. Numbers are never cut; text longer than its column is wrapped.
"""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from operator import attrgetter, itemgetter
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from bsdsbench.errors import DataError
from bsdsbench.text import show

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

UNDEFINED = "-"
WIDTH = 120  # characters per line if the output is not a terminal
_MIN_TEXT_WIDTH = 8  # minimum width of a wrapped text column, in characters


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with an optional confidence interval, mark or standard deviation."""

    value: float | None
    low: float | None = None  # lower and upper end of the interval
    high: float | None = None
    mark: str = ""  # a letter, a star or a word printed after the number, as a superscript
    comparable: bool = True  # False to exclude the number from the choice of the column's best
    spread: float | None = None  # for a mean: its standard deviation or standard error
    n: int | None = None  # for a mean: the number of values


Cell = float | int | str | Estimate | None


@dataclass(slots=True)
class PrintedCell:
    """A cell as printed text, together with its numbers."""

    text: str  # the text, or the formatted number
    line: str  # `text`, `span` and the mark, separated by blanks
    # Python numbers; None if undefined, or if the cell is text. `low` and `high` are both defined,
    # or both None.
    numbers: Estimate
    span: str = ""  # the formatted interval, such as "[0.779, 0.797]"
    best: bool = False  # True for the best number of its column


@dataclass(frozen=True, slots=True)
class Field:
    """The description of one column of a table."""

    key: str  # the name in CSV, JSON and data frames, unique in a table
    heading: str  # the printed heading
    short: str = ""  # a shorter heading for narrow columns
    format: str = ""  # a format specification, or "p" for p-values; "" for a column of text
    higher_is_better: bool | None = None  # None if values are not ranked
    paper: bool = True  # False to leave the column out of LaTeX

    @property
    def arrow(self) -> str:
        """Return " ↑" if higher is better, " ↓" if lower is better, otherwise ""."""
        return {True: " ↑", False: " ↓", None: ""}[self.higher_is_better]

    def text(self, value: float | None) -> str:
        """Format a number of this column, with four decimals if it is a p-value (format "p").

        None (undefined) becomes "-".
        """
        if value is None:
            return UNDEFINED
        if self.format == "p":
            return f"{value:.4f}" if value >= 0.0001 else "<0.0001"
        return format(value, self.format)


@dataclass(frozen=True, slots=True)
class Note:
    """A note below a table, about some of its columns or about the whole table."""

    text: str
    # Keys of the columns it is about. If the table has none of them, the note is dropped.
    columns: tuple[str, ...] = ()
    names_columns: bool = False  # True to print the headings of these columns before the text
    needed: bool = False  # True to print the note in LaTeX even if it is long


@dataclass(eq=False, repr=False)
class Table:
    """A table of results with title, notes and signatures."""

    key: str  # the name in file names, JSON and `to_dataframe`
    title: str
    columns: Sequence[Field]
    rows: Sequence[Sequence[Cell]]
    _: KW_ONLY
    caption: str = ""  # the line below the table on how the numbers were computed
    reading: str = ""  # the line after the caption on how the files were interpreted
    # One sequence of notes per row, or () for none. The headings of their columns are printed too.
    row_notes: Sequence[Sequence[Note]] = ()
    notes: Sequence[str | Note] = ()
    signatures: Sequence[str] = ()  # the last lines below the table; a comment in LaTeX
    sentence: str = ""  # the caption in LaTeX, by default the title
    n_labels: int = 1  # number of leading columns that label a row; each block of columns has them
    aside: bool = False  # True to leave the table out of `summary` and of notebooks
    # Key of a column. Rows with equal cells in it form a group, and each group has its own best.
    ranked_within: str = ""
    ranked: bool = True  # False to mark no number as the best: the rows are not comparable
    asked: bool = False  # True if the user chose the columns; even columns without values are shown

    def __repr__(self) -> str:
        return f"<Table {self.key}: {len(self.rows)} rows, {len(self.columns)} columns>"

    def __str__(self) -> str:
        """Return the table as text, at most 120 characters wide."""
        return to_text([self])

    def _repr_html_(self) -> str:
        """Return the table as HTML for notebooks."""
        from bsdsbench.tables.templating import load_template

        shown = self.for_people
        (lines,) = lines_below_tables([shown])
        return load_template("html").render(table=shown, under=lines)

    def to_dataframe(self) -> pd.DataFrame:
        """Convert the table to a pandas DataFrame, with NaN for undefined values.

        Raises DataError if pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            message = "data frames need pandas: install the extra bsdsbench[pandas]"
            raise DataError(message) from None
        columns: dict[str, list[Any]] = {}
        for key, cells in self.plain().items():
            columns[key] = [math.nan if cell is None else cell for cell in cells]
        return pd.DataFrame(columns)

    @property
    def lines_below(self) -> list[str]:
        """Return the lines below the table: caption, `reading`, notes and signatures."""
        lines = self.caption, self.reading, *self.note_lines, *self.signatures
        return list(map(show, filter(None, lines)))

    @property
    def all_notes(self) -> list[Note]:
        """Return the notes on rows (`row_notes`), then all other notes.

        Notes on rows that have the same text are merged into one, about those of their columns that
        the table has. If it has none of them, the note is dropped.
        """
        keys_by_text: dict[str, set[str]] = {}  # text of a note -> keys of its columns
        for notes_on_row in self.row_notes:
            for note in notes_on_row:
                keys_by_text.setdefault(note.text, set()).update(note.columns)
        all_notes = []
        for text, keys in keys_by_text.items():
            columns = tuple(c.key for c in self.columns if c.key in keys)
            if columns:
                all_notes.append(Note(text, columns, names_columns=True))
        for other in self.notes:
            all_notes.append(Note(other) if isinstance(other, str) else other)
        return all_notes

    @property
    def note_lines(self) -> list[str]:
        """Return all notes as text; one that names columns is "- under HEADING, HEADING: TEXT"."""
        lines = []
        for note in self.all_notes:
            line = note.text
            if note.names_columns:
                headings = [c.heading for c in self.columns if c.key in note.columns]
                line = f"- under {', '.join(headings)}: {line}"
            lines.append(line)
        return lines

    def only(self, numbers: Sequence[int]) -> Table:
        """Return a copy with only the columns at these indices, and without notes on the others."""
        columns = [self.columns[k] for k in numbers]
        keys = {c.key for c in columns}
        notes = []
        for note in self.notes:
            if isinstance(note, str) or not note.columns or keys.intersection(note.columns):
                notes.append(note)
        rows = [[row[k] for k in numbers] for row in self.rows]
        n_labels = sum(k < self.n_labels for k in numbers)
        return replace(self, columns=columns, rows=rows, notes=notes, n_labels=n_labels)

    def without(self, *fields: Field) -> Table:
        """Return a copy without these columns, and without notes on them alone."""
        return self.only([k for k, field in enumerate(self.columns) if field not in fields])

    @property
    def for_people(self) -> Table:
        """Return the table to print, without number columns that have no defined value.

        Notes on an omitted column say that it is not shown. Columns of p-values are kept. If the
        user chose the columns, or if no number column has a value, all columns are kept.
        """
        measured, empty = list[int](), list[int]()  # indices of columns
        for k, column in enumerate(self.columns):
            if column.format in ("", "p"):  # text, or p-values
                continue
            measured.append(k)
            cells = map(itemgetter(k), self.printed_cells)
            if {*map(attrgetter("numbers.value"), cells)} <= {None}:
                empty.append(k)
        if self.asked or len(empty) in (0, len(measured)):  # `asked`: the user chose the columns
            return self
        heading_of_empty = {self.columns[k].key: self.columns[k].heading for k in empty}
        notes = list[str | Note]()
        for note in self.all_notes:  # also those on rows
            if not note.names_columns:  # printed without the headings of its columns
                notes.append(note)
                continue
            headings = [heading_of_empty[key] for key in note.columns if key in heading_of_empty]
            keys = tuple(key for key in note.columns if key not in heading_of_empty)
            if headings:
                notes.append(f"- not shown, {', '.join(headings)}: {note.text}")
            if keys:
                notes.append(replace(note, columns=keys))
        # `notes` has those on rows too: without `row_notes=()` they would be printed twice
        shown = [k for k in range(len(self.columns)) if k not in empty]
        return replace(self, notes=notes, row_notes=()).only(shown)

    @cached_property
    def printed_cells(self) -> list[list[PrintedCell]]:
        """Return the formatted cells of each row, with `best` set for the best of each column.

        Undefined numbers and those with comparable=False never are the best. If `ranked_within` is
        the key of a column, each group of rows with equal cells in it has its own best. Numbers
        that are printed like the best are marked too, but not the only number of a group.
        """
        printed: list[list[PrintedCell]] = []
        for cells in self.rows:
            printed.append(list(map(_printed_cell, self.columns, cells)))
        labels: list[Cell] = [None] * len(self.rows)  # rows with equal labels are one group
        for k, column in enumerate(self.columns):
            if column.key == self.ranked_within:
                labels = [row[k] for row in self.rows]
        for k, column in enumerate(self.columns):
            if column.higher_is_better is None or not self.ranked:
                continue
            competitors_by_label: dict[Cell, list[tuple[float, PrintedCell]]] = {}
            for label, row in zip(labels, printed, strict=True):
                value = row[k].numbers.value  # None if it is undefined, or if the cell is text
                if value is not None and row[k].numbers.comparable:
                    competitors_by_label.setdefault(label, []).append((value, row[k]))
            choose_best = max if column.higher_is_better else min
            for competitors in competitors_by_label.values():
                if len(competitors) == 1:  # there is nothing to compare it with
                    continue
                best, _ = choose_best(competitors, key=itemgetter(0))
                for value, printed_cell in competitors:  # a cell of `printed`
                    printed_cell.best = column.text(value) == column.text(best)
        return printed

    @cached_property
    def widths(self) -> list[int]:
        """Return the width of the widest cell of each column, in characters, without headings."""
        from rich.cells import cell_len

        widths = [0] * len(self.columns)
        for row in self.printed_cells:
            for k, cell in enumerate(row):
                widths[k] = max(widths[k], cell_len(cell.line))
        return widths

    def heading(self, column: int, short: bool) -> str:
        """Return the heading of a column, given by its index.

        The short heading is used if `short` is True, there is one, and the long heading is wider
        than the cells of the column.
        """
        field = self.columns[column]
        width = len(field.heading)
        if field.higher_is_better is False:
            width += 2  # a blank and the arrow
        is_short = short and field.short and width > self.widths[column]
        return show(field.short if is_short else field.heading)

    def plain(self) -> dict[str, list[Any]]:
        """Return the unformatted columns: {key: list with one value per row}.

        Undefined numbers are None. A column of numbers, KEY, is followed by the columns KEY_low and
        KEY_high (interval), KEY_mark (letter, star or word after the number), KEY_spread
        (standard deviation or standard error of a mean) and KEY_n (number of values of a mean). Of
        these, columns without any value are left out.
        """
        columns = {}
        for k, column in enumerate(self.columns):
            if not column.format:  # a column of text
                columns[column.key] = [row[k] for row in self.rows]
                continue
            cells = [row[k].numbers for row in self.printed_cells]
            columns[column.key] = [cell.value for cell in cells]
            for name in ("low", "high", "mark", "spread", "n"):
                values = [getattr(cell, name) for cell in cells]
                if any(v not in (None, "") for v in values):
                    columns[f"{column.key}_{name}"] = values
        return columns


def _printed_cell(column: Field, cell: Cell) -> PrintedCell:
    """Format one cell of a column, and convert its numbers to Python numbers (None if undefined).

    For example, the mean of five numbers with a spread becomes "0.780 ± 0.004 (5)". An interval is
    left out if either end is undefined.
    """
    if isinstance(cell, str):
        text = show(cell)  # in printable characters
        return PrintedCell(text, text, Estimate(None))
    estimate = cell if isinstance(cell, Estimate) else Estimate(cell)
    given: list[Any] = [estimate.value, estimate.low, estimate.high]
    numbers = []
    for number in given:
        if hasattr(number, "item"):  # a number of numpy
            number = number.item()
        is_undefined = number is None or math.isnan(number)
        numbers.append(None if is_undefined else number)
    value, low, high = numbers
    text, span = column.text(value), ""
    if value is not None and estimate.spread is not None:
        text += f" ± {column.text(estimate.spread)} ({estimate.n})"
    if low is None or high is None:
        low = high = None
    else:
        span = f"[{column.text(low)}, {column.text(high)}]"
    mark = show(estimate.mark)
    line = " ".join(filter(None, (text, span, mark)))
    python_estimate = replace(estimate, value=value, low=low, high=high, mark=mark)
    return PrintedCell(text, line, python_estimate, span)


def lines_below_tables(tables: Sequence[Table]) -> list[list[str]]:
    """Return the lines to print below each table, without repeating lines that tables share.

    A shared line is printed only below the last table that has it, after the lines of only this
    table. Tables marked `aside` can be collapsed in HTML, so they share lines only with each other.
    """
    # (aside, line) -> index of the first and of the last table that has the line
    first_table: dict[tuple[bool, str], int] = {}
    last_table: dict[tuple[bool, str], int] = {}
    for number, table in enumerate(tables):
        for line in table.lines_below:
            first_table.setdefault((table.aside, line), number)
            last_table[table.aside, line] = number
    lines_by_table = []
    for number, table in enumerate(tables):
        single, shared = list[str](), list[str]()  # the lines to print below this table
        for line in table.lines_below:
            if number != last_table[table.aside, line]:
                continue
            if number == first_table[table.aside, line]:
                single.append(line)
            else:
                shared.append(line)
        lines_by_table.append(single + shared)
    return lines_by_table


def to_text(tables: Sequence[Table], width: int | None = None) -> str:
    """Convert tables to plain text of `width` characters per line, by default WIDTH."""
    out = io.StringIO()
    print_tables(tables, out, width)
    return out.getvalue()


def print_tables(tables: Sequence[Table], file: IO[str], width: int | None = None) -> None:
    """Print tables as plain text: for each table its title, blocks of columns, and lines below.

    On a terminal, the title and the best value of each column are bold.

    width : characters per line; by default the width of the terminal, or WIDTH without a terminal
    """
    from rich.console import Console

    class TableConsole(Console):
        def on_broken_pipe(self) -> None:  # called in `except BrokenPipeError`
            raise  # this error again, where rich would exit with status 1

    # Without columns that have no values
    shown_tables = list(map(attrgetter("for_people"), tables))
    settings: Any = {"highlight": False, "markup": False, "emoji": False, "soft_wrap": True}
    console = TableConsole(file=file, **settings)
    if not width:
        width = console.width if console.is_terminal else WIDTH
    lines_by_table = lines_below_tables(shown_tables)  # notes, signatures ..., each printed once
    for i, (table, lines) in enumerate(zip(shown_tables, lines_by_table, strict=True)):
        if i:
            console.print()
        if table.title:
            console.print(show(table.title), style="bold")
        layout = _layout(table, width)
        for k, block in enumerate(layout.blocks):  # columns that fit side by side
            if k:
                console.print()
            _print_block(table, layout, block, width, console)
        if lines:
            console.print()
        for line in lines:
            # A signature, "bsdsbench 0.2.0|thr:99|...", is not wrapped, so that it can be copied
            if "|" in line:
                file.write(line + "\n")
            else:
                options: Any = {"break_long_words": False, "break_on_hyphens": False}
                file.write(textwrap.fill(line, width, **options) + "\n")


class _Layout(NamedTuple):
    """The layout of a table's columns in plain text."""

    headings: list[str]
    widths: list[int]  # in characters, including the gap to the next column
    gap: int  # characters between two columns, 3 or 2
    blocks: list[list[int]]  # for each block, the indices of the columns printed side by side


def _print_block(
    table: Table, layout: _Layout, block: Sequence[int], width: int, console: Console
) -> None:
    """Print a block of columns. Text that is too long for its column is wrapped.

    `block` has the indices of the columns. Numbers are never wrapped, so lines may be longer than
    `width`, by as much as the numbers and _MIN_TEXT_WIDTH characters of each text need.
    """
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    # A gap is the padding of both columns and a blank separator: 3 characters, or 2 if collapsed
    rich_table = RichTable(
        box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=layout.gap == 2
    )
    # Each of the widths below includes the gap to the next column, which the last column lacks
    min_width = -layout.gap
    for c in block:
        is_number = bool(table.columns[c].format)
        rich_table.add_column(
            Text(layout.headings[c]),
            justify="right" if is_number else "left",
            no_wrap=is_number,
            overflow="fold",
        )
        min_column_width = layout.widths[c]
        if not is_number:
            min_column_width = min(min_column_width, _MIN_TEXT_WIDTH + layout.gap)
        min_width += min_column_width
    for row in table.printed_cells:
        cells = []
        for c in block:
            cells.append(Text(row[c].line, "bold" if row[c].best else ""))
        rich_table.add_row(*cells)
    console.width = max(width, min_width)
    with console.capture() as capture:
        console.print(rich_table)
    # Remove trailing blanks
    for line in capture.get().rstrip("\n").split("\n"):
        console.file.write(line.rstrip() + "\n")


def _layout(table: Table, width: int) -> _Layout:
    """Choose the headings and gaps of a table, and divide its columns into blocks of `width`.

    The first of these layouts that fits in one block is used. If none fits, it is the second: a
    table of several blocks keeps the wider gaps.

    1. long headings, and gaps of 3 characters
    2. short headings, and gaps of 3 characters
    3. short headings, and gaps of 2 characters

    Every block starts with the first `n_labels` columns, which label the rows, and has at least one
    other column. These are printed again in each block.
    """
    from rich.cells import cell_len

    layouts = []
    for short, gap in ((False, 3), (True, 3), (True, 2)):
        headings, widths = [], []
        for k, field in enumerate(table.columns):
            arrow = " ↓" if field.higher_is_better is False else ""
            headings.append(table.heading(k, short) + arrow)
            widths.append(max(cell_len(headings[-1]), table.widths[k]) + gap)
        blocks: list[list[int]] = [[]]
        block_width = 0  # of the last block
        for k, column_width in enumerate(widths):
            fits = block_width + column_width - gap <= width  # the last column needs no gap
            if len(blocks[-1]) > table.n_labels and not fits:
                blocks.append(list(range(table.n_labels)))
                block_width = sum(widths[: table.n_labels])
            blocks[-1].append(k)
            block_width += column_width
        layouts.append(_Layout(headings, widths, gap, blocks))
        if sum(widths) - gap <= width:
            return layouts[-1]
    return layouts[1]
