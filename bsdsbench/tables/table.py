"""One table of results: its content, each cell as people read it, and the table as text.

A table is fields, rows of cells, and the words around them. A cell is a number, an `Estimate` (a
number with its interval, or with a mark after it), text, or None where the value is undefined.

As text it fits the terminal, or WIDTH in a pipe or file. A table too wide first gets short
headings, then narrower gaps, and at last is split into blocks of columns, each with the row labels.
A number is never cut; only text longer than the width is folded.
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
from typing import IO, Any

from bsdsbench.text import show

UNDEFINED = "-"
WIDTH = 120  # where there is no terminal
_NARROWEST = 8  # a folded column of text


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with the interval around it, and a mark after it, raised (a letter, a star, a word).

    comparable : False for a number of another kind than its field: it is never the best
    spread     : the standard deviation or error of a mean of `n` numbers, written after it
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
class Drawn:
    """A cell as people read it: text or number, interval ("[0.779, 0.797]" or ""), mark; all three
    in one line; and its numbers, of Python's own types, None where undefined."""

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
    """What one column of a table holds.

    key     : for programs, once in a table; heading : for people, clear without its neighbours
    short   : the heading where space is scarce
    format  : as in `format()`, or "p" for a p-value; "" for a column of text
    higher_is_better : None for no direction; paper : False for what a paper has no room for
    """

    key: str
    heading: str
    short: str = ""
    format: str = ""
    higher_is_better: bool | None = None
    paper: bool = True

    @property
    def arrow(self) -> str:
        """The direction as a sign after a heading: up, down, or nothing."""
        return {True: " ↑", False: " ↓", None: ""}[self.higher_is_better]

    def text(self, value: float | None) -> str:
        """Return a number as it is printed, "-" for an undefined one."""
        if value is None:
            return UNDEFINED
        if self.format == "p":
            return f"{value:.4f}" if value >= 0.0001 else "<0.0001"
        return format(value, self.format)


@dataclass(frozen=True, slots=True)
class Note:
    """A line under a table that is about some of its columns, and leaves with the last of them.

    If it is `headed`, the headings of those that are shown stand before the text. A note about no
    column stays; one that is `needed` stands under a paper's table however long it is.
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
    row_notes  : of each row those that leave with it, headed; equal ones are one line
    notes      : printed under the table, as text where they are about all of it; signatures : last,
        in LaTeX a comment; a line each
    sentence   : the caption in a paper; default: the title
    n_labels   : the first columns, which say what a row is and stay with each part of a split table
    aside      : left out where a person reads all tables at once
    ranked_within : the key of the column of labels within which bests are marked, of each class
        apart; "": the best of all rows
    asked      : its columns were asked for, and are shown where they are empty too
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
    def words(self) -> list[str]:
        """The lines that are printed under the table."""
        lines = self.caption, self.reading, *self.note_lines, *self.signatures
        return [*map(show, filter(None, lines))]

    @property
    def all_notes(self) -> list[str | Note]:
        """Its notes, those of rows first."""
        keys_of: dict[str, set[str]] = {}
        for note in chain(*self.row_notes):
            keys_of.setdefault(note.text, set()).update(note.columns)
        of_rows: list[str | Note] = []
        for text, keys in keys_of.items():
            under = tuple(c.key for c in self.columns if c.key in keys)
            of_rows += [Note(text, under, headed=True)] * bool(under)
        return [*of_rows, *self.notes]

    @property
    def note_lines(self) -> list[str]:
        """The notes as text."""
        return [self.line_of(note) for note in self.all_notes]

    def line_of(self, note: str | Note) -> str:
        """Return a note as text."""
        if not isinstance(note, Note):
            return note
        named = ", ".join(c.heading for c in self.columns if c.key in note.columns)
        return f"- under {named}: {note.text}" if note.headed else note.text

    def only(self, kept: Sequence[int]) -> Table:
        """The table of these columns, in this order, without the notes on others alone."""
        columns = [self.columns[k] for k in kept]
        keys, notes = {c.key for c in columns}, []
        for note in self.notes:
            if isinstance(note, str) or not note.columns or not keys.isdisjoint(note.columns):
                notes.append(note)
        rows = [[row[k] for k in kept] for row in self.rows]
        return replace(self, columns=columns, rows=rows, notes=notes)

    @property
    def for_people(self) -> Table:
        """The table without columns that are empty in all rows, unless they were asked for."""
        empty, filled = set[str](), set[str]()
        for k, column in enumerate(self.columns):
            if column.format not in ("", "p"):
                values = [row[k].value for row in self.drawn]
                (empty if values.count(None) == len(values) else filled).add(column.key)
        if self.asked or not (empty and filled):
            return self
        headings, notes = {c.key: c.heading for c in self.columns}, list[str | Note]()
        for note in self.all_notes:
            if isinstance(note, Note) and note.headed and not empty.isdisjoint(note.columns):
                named = ", ".join(headings[key] for key in note.columns if key in empty)
                notes.append(f"- not shown, {named}: {note.text}")
                rest = tuple(key for key in note.columns if key not in empty)
                notes += [replace(note, columns=rest)] * bool(rest)
            else:
                notes.append(note)
        kept = [k for k, c in enumerate(self.columns) if c.key not in empty]
        return replace(self, notes=notes, row_notes=()).only(kept)

    @cached_property
    def drawn(self) -> list[list[Drawn]]:
        """Each cell as people read it, a list per row. All forms are made of it."""
        out: list[list[Drawn]] = []
        for row in self.rows:
            out.append([])
            for column, x in zip(self.columns, row, strict=True):
                if isinstance(x, str):
                    out[-1].append(Drawn(show(x), show(x)))
                    continue
                estimate = x if isinstance(x, Estimate) else Estimate(x)
                value, low, high = map(_known, (estimate.value, estimate.low, estimate.high))
                text, span, mark = column.text(value), "", show(estimate.mark)
                if value is not None and estimate.spread is not None:
                    text += f" ± {column.text(estimate.spread)} ({estimate.n})"
                if low is None or high is None:
                    low = high = None
                else:
                    span = f"[{column.text(low)}, {column.text(high)}]"
                line = " ".join(filter(None, (text, span, mark)))
                drawn = Drawn(
                    text, line, span, mark, value, low, high, spread=estimate.spread, n=estimate.n
                )
                out[-1].append(drawn)
        within = [k for k, c in enumerate(self.columns) if c.key == self.ranked_within]
        for c, column in enumerate(self.columns):
            ranked: dict[Any, list[Drawn]] = {}
            for row, cells in zip(self.rows, out, strict=True):
                if getattr(row[c], "comparable", True) and cells[c].value is not None:
                    ranked.setdefault(tuple(row[k] for k in within), []).append(cells[c])
            for group in ranked.values():
                if column.higher_is_better is not None and len(group) > 1:
                    best = max if column.higher_is_better else min
                    top = best(group, key=attrgetter("value")).value
                    for cell in group:
                        cell.best = cell.value == top
        return out

    @cached_property
    def widest(self) -> list[int]:
        """Characters of the longest cell of each column."""
        from rich.cells import cell_len

        out = [0] * len(self.columns)
        for row in self.drawn:
            for c, cell in enumerate(row):
                out[c] = max(out[c], cell_len(cell.line))
        return out

    def heading(self, column: int, short: bool) -> str:
        """The heading of a column, its short one where the long would make the column wider."""
        field = self.columns[column]
        long = len(field.heading) + 2 * (field.higher_is_better is False)  # with an arrow
        return show(
            field.short if short and field.short and long > self.widest[column] else field.heading
        )

    def plain(self) -> dict[str, list[Any]]:
        """Return the columns for programs, at full precision, None if undefined.

        KEY_low, KEY_high, KEY_mark, KEY_spread and KEY_n follow a column KEY that has them.
        """
        out = {}
        for c, column in enumerate(self.columns):
            if not column.format:
                out[column.key] = [row[c] for row in self.rows]
                continue
            for name in ("value", "low", "high", "mark", "spread", "n"):
                values = [getattr(row[c], name) for row in self.drawn]
                if name == "value" or any(v not in (None, "") for v in values):
                    out[column.key if name == "value" else f"{column.key}_{name}"] = values
        return out


def _known(value: Any) -> float | None:
    value = value.item() if hasattr(value, "item") else value  # a number of numpy
    return None if value is None or math.isnan(value) else value


def words_under(tables: Sequence[Table]) -> list[list[str]]:
    """Return the lines under each table; what several say alike stands under the last of them.

    A supplementary table may be folded away: it shares nothing with one that is not.
    """
    out = []
    for i, table in enumerate(tables):
        before, after = set[str](), set[str]()
        for k, other in enumerate(tables):
            if k != i and other.aside == table.aside:
                (before if k < i else after).update(other.words)
        alone, shared = list[str](), list[str]()
        for text in table.words:
            if text not in after:
                (shared if text in before else alone).append(text)
        out.append(alone + shared)
    return out


# ---- as text ------------------------------------------------------------------------------------


def to_text(tables: Sequence[Table], width: int | None = None) -> str:
    """The tables as plain text; `width` None: WIDTH."""
    out = io.StringIO()
    print_tables(tables, out, width)
    return out.getvalue()


def print_tables(tables: Sequence[Table], file: IO[str], width: int | None = None) -> None:
    """Print to `file`; on a terminal the best of a column is bold and the usual width its own.

    What consecutive tables have to say alike is printed once, under the last of them.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    tables = [table.for_people for table in tables]
    plain: Any = {"highlight": False, "markup": False, "emoji": False, "soft_wrap": True}
    console = Console(file=file, **plain)
    width = width or (console.width if console.is_terminal else WIDTH)
    for i, (table, words) in enumerate(zip(tables, words_under(tables), strict=True)):
        if i:
            console.print()
        if table.title:
            console.print(show(table.title), style="bold")
        heads, gap, blocks = _blocks(table, width)
        for k, (columns, room) in enumerate(blocks):
            if k:
                console.print()
            drawn = RichTable(
                box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=gap == 2
            )
            for c in columns:
                number = bool(table.columns[c].format)
                side: Any = "right" if number else "left"
                drawn.add_column(Text(heads[c]), justify=side, no_wrap=number, overflow="fold")
            for row in table.drawn:
                cells = []
                for c in columns:
                    cells.append(Text(row[c].line, "bold" if row[c].best else ""))
                drawn.add_row(*cells)
            console.width = room
            with console.capture() as capture:
                console.print(drawn)
            # Blanks at the ends of lines are noise in a file and a difference in a snapshot.
            for line in capture.get().rstrip("\n").split("\n"):
                file.write(line.rstrip() + "\n")
        for text in ["", *words] if words else []:
            fold: Any = {"break_long_words": False, "break_on_hyphens": False}
            whole = "|" in text  # a signature, which is copied in one piece
            file.write((text if whole else textwrap.fill(text, width, **fold)) + "\n")


def _blocks(table: Table, width: int) -> tuple[list[str], int, list[tuple[list[int], int]]]:
    """Headings, the gap between columns, and of each block its columns and characters of a line."""
    from rich.cells import cell_len

    for short, gap in ((False, 3), (True, 3), (True, 2), (True, 3)):
        heads, needs = [], []
        for c, field in enumerate(table.columns):
            heads.append(table.heading(c, short) + " ↓" * (field.higher_is_better is False))
            needs.append(max(cell_len(heads[c]), table.widest[c]) + gap)
        if sum(needs) - gap <= width:
            break
    n, blocks = table.n_labels, list[list[int]]([[]])
    for c in range(len(heads)):
        used = sum(map(needs.__getitem__, blocks[-1]))
        if len(blocks[-1]) > n and used + needs[c] - gap > width:
            blocks.append([*range(n)])
        blocks[-1].append(c)
    out = []
    for columns in blocks:
        least = -gap
        for c in columns:
            text = not table.columns[c].format
            least += min(needs[c], _NARROWEST + gap) if text else needs[c]
        out.append((columns, max(width, least)))
    return heads, gap, out
