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
import os
import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import IO, Any, NamedTuple

from bsdsbench.files.bounded import show
from bsdsbench.files.errors import DataError

UNDEFINED = "-"
WIDTH = 120  # where there is no terminal
_NARROWEST = 8  # a folded column of text
_LONG_WORD = 60  # a signature, which is copied in one piece


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with the interval around it, and a mark after it, raised (a letter, a star, a word).

    comparable : False for a number of another kind than its field: it is never the best
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    mark: str = ""
    comparable: bool = True


Cell = float | int | str | Estimate | None


class Drawn(NamedTuple):
    """A cell as people read it: text or number, interval ("[0.779, 0.797]" or ""), mark; and its
    numbers, of Python's own types, None where undefined."""

    text: str
    span: str = ""
    mark: str = ""
    best: bool = False
    value: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def line(self) -> str:
        """All of it, without emphasis."""
        return " ".join(filter(None, self[:3]))


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
        """A number as it is printed; undefined ones are "-"."""
        if value is None:
            return UNDEFINED
        if self.format == "p":
            return f"{value:.4f}" if value >= 0.0001 else "<0.0001"
        return format(value, self.format)


@dataclass(eq=False, repr=False)
class Table:
    """A titled table.

    caption    : how the numbers were made (protocol, signature); printed with every table
    notes      : printed under the table; signatures : last, in LaTeX a comment; a line each
    sentence   : the caption in a paper; default: the title
    n_labels   : the first columns, which say what a row is and stay with each part of a split table
    aside      : left out where a person reads all tables at once
    """

    key: str
    title: str
    columns: Sequence[Field]
    rows: Sequence[Sequence[Cell]]
    _: KW_ONLY
    caption: str = ""
    notes: Sequence[str] = ()
    signatures: Sequence[str] = ()
    sentence: str = ""
    n_labels: int = 1
    aside: bool = False

    def __repr__(self) -> str:
        return f"<Table {self.key}: {len(self.rows)} rows, {len(self.columns)} columns>"

    @property
    def words(self) -> list[str]:
        """What is printed under the table, a line each."""
        return [show(t) for t in (self.caption, *self.notes, *self.signatures) if t]

    def only(self, kept: Sequence[int]) -> Table:
        """The table of these columns, in this order, without the notes on others alone."""
        columns = [self.columns[k] for k in kept]
        gone = {c.heading for c in self.columns} - {c.heading for c in columns}
        notes = []
        for note in self.notes:
            headings, _, said = note.removeprefix("- under ").partition(":")
            left = [heading for heading in headings.split(", ") if heading not in gone]
            if left:
                under = ", ".join(left)
                notes.append(note if under == headings else f"- under {under}:{said}")
        rows = [[row[k] for k in kept] for row in self.rows]
        return replace(self, columns=columns, rows=rows, notes=notes)

    @cached_property
    def drawn(self) -> list[list[Drawn]]:
        """Every cell as people read it, a list per row. All forms are made of it."""
        out: list[list[Drawn]] = [[] for _ in self.rows]
        for c, column in enumerate(self.columns):
            values = [row[c] for row in self.rows]
            cells = [x if isinstance(x, str | Estimate) else Estimate(x) for x in values]
            ranked = [_known(x.value) for x in cells if isinstance(x, Estimate) and x.comparable]
            known = [v for v in ranked if v is not None]
            best = None
            if column.higher_is_better is not None and len(known) > 1:
                best = max(known) if column.higher_is_better else min(known)
            for drawn, x in zip(out, cells, strict=True):
                if isinstance(x, str):
                    drawn.append(Drawn(show(x)))
                    continue
                value, low, high = _known(x.value), _known(x.low), _known(x.high)
                span = f"[{column.text(low)}, {column.text(high)}]"
                if low is None or high is None:
                    low, high, span = None, None, ""
                at_best = best is not None and x.comparable and value == best
                text, mark = column.text(value), show(x.mark)
                drawn.append(Drawn(text, span, mark, at_best, value, low, high))
        return out

    def heading(self, column: int, short: bool) -> str:
        """The heading of a column, its short one where the long would make the column wider."""
        of = self.columns[column]
        widest = max((len(row[column].line) for row in self.drawn), default=0)
        long = len(of.heading) + 2 * (of.higher_is_better is False)  # with an arrow
        return show(of.short if short and of.short and long > widest else of.heading)

    def plain(self) -> dict[str, list[Any]]:
        """Column by column for programs, at full precision, None if undefined; KEY_low, KEY_high
        and KEY_mark follow a column KEY that has them."""
        out: dict[str, list[Any]] = {}
        for c, column in enumerate(self.columns):
            cells = [row[c] for row in self.drawn]
            if not column.format:
                out[column.key] = [row[c] for row in self.rows]
                continue
            out[column.key] = [of.value for of in cells]
            for name in ("low", "high", "mark"):
                values = [getattr(of, name) for of in cells]
                if any(v not in (None, "") for v in values):
                    out[f"{column.key}_{name}"] = values
        return out


def _known(value: Any) -> float | None:
    value = value.item() if hasattr(value, "item") else value  # a number of numpy
    return None if value is None or math.isnan(value) else value


def key_meant(word: str, keys: Iterable[str]) -> str:
    """The word, or the first key that is of its kind: hd95-pooled of hd95, nsd-area@1 of nsd."""
    kinds = [key for key in keys if re.match(rf"{re.escape(word)}(?![^@-])", key)]
    return word if word in kinds or not kinds else kinds[0]


def select(tables: Sequence[Table], wanted: Sequence[str]) -> list[Table]:
    """The tables with these columns of numbers alone ("ods", "boundary.ods", or a heading), after
    those of text.

    Raises DataError for a key that no table has.
    """
    out: list[Table] = []
    found, known = set[str](), dict[str, int]()
    for table in tables:
        places = {c.key: k for k, c in enumerate(table.columns) if c.format}
        known |= places
        # Keys of parts of a score may be written with a point.
        keys = {word: word.removeprefix(f"{table.key}.").replace(".", "_") for word in wanted}
        heads = {c.heading.casefold(): c.key for c in table.columns if c.format}
        keys |= {word: heads[word.casefold()] for word in wanted if word.casefold() in heads}
        keys = {word: key_meant(key, places) for word, key in keys.items()}
        if chosen := {word: places[key] for word, key in keys.items() if key in places}:
            found |= chosen.keys()
            texts = [k for k, c in enumerate(table.columns) if not c.format]
            out.append(table.only([*texts, *dict.fromkeys(chosen.values())]))
    for word in wanted:
        if word not in found:
            raise DataError(f"column {word!r}: expected some of {', '.join(known)}")
    return out


def words_under(tables: Sequence[Table]) -> list[list[str]]:
    """What to print under each table, its own first; what several say alike under the last of them.

    A supplementary table may be folded away: it shares nothing with one that is not.
    """
    out = []
    for i, table in enumerate(tables):
        before, after = (
            {words for t in others if t.aside == table.aside for words in t.words}
            for others in (tables[:i], tables[i + 1 :])
        )
        out.append(sorted((x for x in table.words if x not in after), key=before.__contains__))
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

    colors: Any = None if os.environ.get("NO_COLOR") else "auto"
    plain: Any = {"highlight": False, "markup": False, "emoji": False, "soft_wrap": True}
    console = Console(file=file, color_system=colors, **plain)
    width = width or (console.width if console.is_terminal else WIDTH)
    for i, (table, words) in enumerate(zip(tables, words_under(tables), strict=True)):
        if i:
            console.print()
        if table.title:
            console.print(show(table.title), style="bold")
        for k, (columns, heads, gap, room) in enumerate(_blocks(table, width)):
            if k:
                console.print()
            drawn = RichTable(
                box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=gap == 2
            )
            for c, head in zip(columns, heads, strict=True):
                number = bool(table.columns[c].format)
                side: Any = "right" if number else "left"
                drawn.add_column(Text(head), justify=side, no_wrap=number, overflow="fold")
            for row in table.drawn:
                drawn.add_row(*(Text(row[c].line, "bold" if row[c].best else "") for c in columns))
            console.width = room
            with console.capture() as capture:
                console.print(drawn)
            # Blanks at the ends of lines are noise in a file and a difference in a snapshot.
            for line in capture.get().rstrip("\n").split("\n"):
                file.write(line.rstrip() + "\n")
        for text in ["", *words] if words else []:
            whole = max(map(len, text.split() or [""])) > min(width, _LONG_WORD)
            fold: Any = {"break_long_words": False, "break_on_hyphens": False}
            file.write((text if whole else textwrap.fill(text, width, **fold)) + "\n")


def _blocks(table: Table, width: int) -> list[tuple[list[int], list[str], int, int]]:
    """Columns, headings, the gap between columns, and characters of a line, of each block."""
    from rich.cells import cell_len

    def fitted(columns: list[int], short: bool, gap: int) -> tuple[int, Any]:
        """The characters that it needs, and the block within the width."""
        heads, whole, least = [], gap * (len(columns) - 1), gap * (len(columns) - 1)
        for c in columns:
            of = table.columns[c]
            heads.append(table.heading(c, short) + " ↓" * (of.higher_is_better is False))
            widest = max(map(cell_len, (heads[-1], *(row[c].line for row in table.drawn))))
            whole += widest
            least += widest if of.format else min(widest, _NARROWEST)
        return whole, (columns, heads, gap, max(width, least))

    every = list(range(len(table.columns)))
    for short, gap in ((False, 3), (True, 3), (True, 2)):
        needed, block = fitted(every, short, gap)
        if needed <= width:
            return [block]
    labels = every[: table.n_labels]
    out = [list(labels)]
    for c in every[table.n_labels :]:
        if fitted([*out[-1], c], True, 3)[0] > width and len(out[-1]) > len(labels):
            out.append(list(labels))
        out[-1].append(c)
    return [fitted(columns, True, 3)[1] for columns in out]
