"""One table of results: its content, and each cell as people read it.

A table is fields, rows of cells, and the words around them. A cell is a number, an `Estimate` (a
number with its interval, or with a mark after it), text, or None where the value is undefined.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from bsdsbench.files.errors import DataError, visible

UNDEFINED = "-"


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
    """A cell as people read it: text or number, interval ("[0.779, 0.797]" or ""), mark."""

    text: str
    span: str = ""
    mark: str = ""
    best: bool = False

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
    def is_number(self) -> bool:
        """Whether the column holds numbers."""
        return bool(self.format)

    @property
    def arrow(self) -> str:
        """The direction as a sign: up, down, or nothing."""
        return {True: "↑", False: "↓", None: ""}[self.higher_is_better]

    def text(self, value: float | None) -> str:
        """A number as it is printed; undefined ones are "-"."""
        if value is None or math.isnan(value):
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
    Raises DataError for rows of another length, doubled keys, text in a column of numbers.
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

    def __post_init__(self) -> None:
        self.title, self.caption = visible(self.title), visible(self.caption)
        self.sentence = visible(self.sentence) or self.title
        self.columns, self.rows = tuple(self.columns), tuple(map(tuple, self.rows))
        self.notes = tuple(map(visible, self.notes))
        self.signatures = tuple(map(visible, self.signatures))
        keys = [c.key for c in self.columns]
        if len(set(keys)) < len(keys):
            raise DataError(f"table {self.key}: columns {', '.join(keys)}, expected each key once")
        for row in self.rows:
            if len(row) != len(keys):
                raise DataError(f"table {self.key}: {len(row)} cells, expected {len(keys)}")
            for c, cell in zip(self.columns, row, strict=True):
                if cell is not None and isinstance(cell, str) == c.is_number:
                    kind = "a number" if c.is_number else "text"
                    raise DataError(f"table {self.key}, {c.key}: {cell!r}, expected {kind}")

    def only(self, kept: Sequence[int]) -> Table:
        """The table of these columns, in this order, without the notes on others alone."""
        columns = [self.columns[k] for k in kept]
        gone = {c.heading for c in self.columns} - {c.heading for c in columns}
        notes = [
            note
            for note in self.notes
            if not gone.issuperset(note.removeprefix("- under ").partition(":")[0].split(", "))
        ]
        rows = [[row[k] for k in kept] for row in self.rows]
        return replace(self, columns=columns, rows=rows, notes=notes)

    @property
    def words(self) -> list[str]:
        """What is printed under the table, a line each."""
        return [text for text in (self.caption, *self.notes, *self.signatures) if text]

    def __repr__(self) -> str:
        return f"<Table {self.key}: {len(self.rows)} rows, {len(self.columns)} columns>"

    @cached_property
    def drawn(self) -> list[list[Drawn]]:
        """Every cell as people read it, a list per row. All forms but those for programs use it."""
        bests = []
        for c, column in enumerate(self.columns):
            of = [cell for cell in (number(row[c]) for row in self.rows) if cell.comparable]
            known = [cell.value for cell in of if cell.value is not None]
            ranked = column.higher_is_better is not None and len(known) > 1
            bests.append((max if column.higher_is_better else min)(known) if ranked else None)
        return [list(map(_drawn, self.columns, row, bests)) for row in self.rows]

    def heading(self, column: int, short: bool) -> str:
        """The heading of a column; its short one where the long would make the column wider."""
        of = self.columns[column]
        widest = max((len(row[column].line) for row in self.drawn), default=0)
        long = len(of.heading) + 2 * (of.higher_is_better is False)  # with an arrow
        return visible(of.short if short and of.short and long > widest else of.heading)

    def plain(self) -> dict[str, list[Any]]:
        """Column by column for programs, at full precision, None if undefined; KEY_low, KEY_high
        and KEY_mark follow a column KEY that has them."""
        out: dict[str, list[Any]] = {}
        for c, column in enumerate(self.columns):
            if not column.is_number:
                out[column.key] = [row[c] for row in self.rows]
                continue
            cells = [number(row[c]) for row in self.rows]
            out[column.key] = [cell.value for cell in cells]
            if any(cell.low is not None for cell in cells):
                out[f"{column.key}_low"] = [cell.low for cell in cells]
                out[f"{column.key}_high"] = [cell.high for cell in cells]
            if any(cell.mark for cell in cells):
                out[f"{column.key}_mark"] = [cell.mark for cell in cells]
        return out


def number(cell: Cell) -> Estimate:
    """The number in a cell, of Python's own type; its value is None if undefined, as for text."""
    if isinstance(cell, str):
        return Estimate(None)
    found = cell if isinstance(cell, Estimate) else Estimate(cell)
    value, low, high = (_known(v) for v in (found.value, found.low, found.high))
    if low is None or high is None:
        low = high = None
    return Estimate(value, low, high, found.mark, found.comparable)


def _known(value: Any) -> float | None:
    value = value.item() if hasattr(value, "item") else value  # a number of numpy
    return None if value is None or math.isnan(value) else value


def _drawn(column: Field, cell: Cell, best: float | None) -> Drawn:
    if isinstance(cell, str):
        return Drawn(visible(cell))
    found = number(cell)
    span = "" if found.low is None else f"[{column.text(found.low)}, {column.text(found.high)}]"
    is_best = best is not None and found.comparable and found.value == best
    return Drawn(column.text(found.value), span, visible(found.mark), is_best)


def words_under(tables: Sequence[Table]) -> list[list[str]]:
    """What to print under each table; what consecutive ones say alike once, under the last."""
    out = []
    for i, table in enumerate(tables):
        # A supplementary table may be folded away.
        near = [*tables[max(i - 1, 0) : i], None, *tables[i + 1 : i + 2]]
        words = [t.words if t and t.aside == table.aside else [] for t in near]
        before, after = words[0] if i else [], words[-1]
        # What it says alone comes first.
        out.append(sorted((x for x in table.words if x not in after), key=before.__contains__))
    return out


def read_at_once(tables: Sequence[Table]) -> list[Table]:
    """The tables without the supplementary ones."""
    return [table for table in tables if not table.aside]


def select(tables: Sequence[Table], wanted: Sequence[str]) -> list[Table]:
    """The tables with these columns of numbers alone ("ods", "boundary.ods"), after those of text.

    Raises DataError for a key that no table has.
    """
    out: list[Table] = []
    found: set[str] = set()
    for table in tables:
        places = {c.key: k for k, c in enumerate(table.columns) if c.is_number}
        # Keys of parts of a score may be written with a point.
        keys = {word: word.removeprefix(f"{table.key}.").replace(".", "_") for word in wanted}
        chosen = {word: places[key] for word, key in keys.items() if key in places}
        if chosen:
            found |= chosen.keys()
            texts = [k for k, c in enumerate(table.columns) if not c.is_number]
            out.append(table.only([*texts, *dict.fromkeys(chosen.values())]))
    if lost := [word for word in wanted if word not in found]:
        known = dict.fromkeys(c.key for table in tables for c in table.columns if c.is_number)
        raise DataError(f"column {lost[0]!r}: expected some of {', '.join(known)}")
    return out
