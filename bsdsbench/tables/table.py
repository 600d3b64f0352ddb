"""One table of results: its content only; the modules beside it draw it.

A table is columns, rows of cells, and the words around them. A cell is a number, an `Estimate` (a
number with its interval, or with a mark after it), text, or None where the value is undefined.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from bsdsbench.files.errors import DataError, visible

UNDEFINED = "-"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with the interval around it, and a mark after it (a letter, a star).

    Parameters
    ----------
    value : float
    low, high : float or None
        Ends of the interval; None for a number without one.
    mark : str
        Shown raised after the number.
    comparable : bool
        False for a number of another kind than its column: it is never the best.
    """

    value: float
    low: float | None = None
    high: float | None = None
    mark: str = ""
    comparable: bool = True


Cell = float | int | str | Estimate | None


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Parameters
    ----------
    key : str
        Name for programs: heading in CSV, key in JSON; occurs once in a table.
    heading : str
        Name for people, clear without its neighbours ("Covering OIS").
    short : str
        Heading where space is scarce; default: `heading`.
    format : str
        Format of a number as in `format()`, or "p" for a p-value. Empty: a column of text.
    higher_is_better : bool or None
        Direction of the column; None: it has none, and no cell is its best.
    """

    key: str
    heading: str
    short: str = ""
    format: str = ""
    higher_is_better: bool | None = None

    @property
    def is_number(self) -> bool:
        """Whether the column holds numbers."""
        return bool(self.format)

    def text(self, value: float | None) -> str:
        """A number as it is printed; undefined ones are "-"."""
        if value is None or math.isnan(value):
            return UNDEFINED
        if self.format == "p":
            return f"{value:.4f}" if value >= 0.0001 else "<0.0001"
        return format(value, self.format)


class Table:
    """A titled table.

    Parameters
    ----------
    key : str
        Name for programs and files ("boundary", "differences").
    title : str
    columns : sequence of Column
    rows : sequence of sequences of Cell
        As many cells as there are columns.
    caption : str
        How the numbers were made (protocol, signature); printed with every table.
    notes : sequence of str
        Printed under the table, one line each.
    signatures : sequence of str
        How the runs were made, a line each; printed last, in LaTeX a comment.
    sentence : str
        The caption in a paper; default: the title.
    n_labels : int
        How many of the first columns say what a row is; they stay with every part of a table that
        is split.
    aside : bool
        Left out where a person reads all tables at once; files and `to_dataframe` have it.

    Raises
    ------
    DataError
        A row of another length, a key that occurs twice, text in a column of numbers.

    Examples
    --------
    >>> columns = [Column("method", "Method"), Column("ods", "ODS", "", ".3f", True)]
    >>> table = Table("boundary", "Boundaries", columns, [["a", 0.5], ["b", None]])
    >>> table.texts(0), table.texts(1)
    (['a', '0.500'], ['b', '-'])
    """

    def __init__(
        self,
        key: str,
        title: str,
        columns: Sequence[Column],
        rows: Sequence[Sequence[Cell]],
        *,
        caption: str = "",
        notes: Sequence[str] = (),
        signatures: Sequence[str] = (),
        sentence: str = "",
        n_labels: int = 1,
        aside: bool = False,
    ) -> None:
        self.key, self.title, self.caption = key, visible(title), visible(caption)
        self.columns = tuple(columns)
        self.rows = tuple(tuple(row) for row in rows)
        self.notes = tuple(visible(note) for note in notes)
        self.signatures = tuple(visible(line) for line in signatures)
        self.sentence = visible(sentence) or self.title
        self.n_labels, self.aside = n_labels, aside
        keys = [c.key for c in self.columns]
        if len(set(keys)) < len(keys):
            raise DataError(f"table {key}: columns {', '.join(keys)}, expected each key once")
        for row in self.rows:
            if len(row) != len(keys):
                raise DataError(f"table {key}: {len(row)} cells, expected {len(keys)}")
            for column, cell in zip(self.columns, row, strict=True):
                if cell is not None and isinstance(cell, str) == column.is_number:
                    kind = "a number" if column.is_number else "text"
                    raise DataError(f"table {key}, {column.key}: {cell!r}, expected {kind}")

    def changed(
        self, columns: Sequence[Column], rows: Sequence[Sequence[Cell]], notes: Sequence[str] = ()
    ) -> Table:
        """The same table of other columns and rows, with notes before its own."""
        return Table(
            *(self.key, self.title, columns, rows),
            caption=self.caption,
            notes=[*notes, *self.notes],
            signatures=self.signatures,
            sentence=self.sentence,
            n_labels=self.n_labels,
            aside=self.aside,
        )

    @property
    def words(self) -> list[str]:
        """What is printed under the table, a line each."""
        return [text for text in (self.caption, *self.notes, *self.signatures) if text]

    def __repr__(self) -> str:
        return f"<Table {self.key}: {len(self.rows)} rows, {len(self.columns)} columns>"

    def text(self, row: int, column: int) -> str:
        """One cell as people read it: "-", "HED", "0.788", "0.788 [0.779, 0.797]"; no mark."""
        cell, of = self.rows[row][column], self.columns[column]
        if isinstance(cell, str):
            return visible(cell)
        span = interval(cell)
        ends = f" [{of.text(span[0])}, {of.text(span[1])}]" if span else ""
        return of.text(number(cell)) + ends

    def texts(self, row: int) -> list[str]:
        """All cells of a row as people read them."""
        return [self.text(row, c) for c in range(len(self.columns))]

    def is_best(self, row: int, column: int) -> bool:
        """Whether the cell holds the best number of its column."""
        best = self._best[column]
        return best is not None and _ranked(self.rows[row][column]) == best

    @cached_property
    def _best(self) -> list[float | None]:
        """The best of each column that has a direction and two numbers or more."""
        out: list[float | None] = []
        for c, column in enumerate(self.columns):
            known = [v for row in self.rows if (v := _ranked(row[c])) is not None]
            if column.higher_is_better is None or len(known) < 2:
                out.append(None)
            else:
                out.append(max(known) if column.higher_is_better else min(known))
        return out

    def has_intervals(self, column: int) -> bool:
        """Whether a cell of the column has an interval."""
        return any(interval(row[column]) for row in self.rows)

    def has_marks(self, column: int) -> bool:
        """Whether a cell of the column has a mark."""
        return any(mark(row[column]) for row in self.rows)


def read_at_once(tables: Sequence[Table]) -> list[Table]:
    """The tables without the supplementary ones."""
    return [table for table in tables if not table.aside]


def select(tables: Sequence[Table], wanted: Sequence[str]) -> list[Table]:
    """The tables with these columns of numbers alone, in this order, after those of text.

    wanted : keys, "ods" or with the table's "boundary.ods". A table that has none is left out.
    Raises DataError for a key that no table has.
    """
    out, found = [], set()
    for table in tables:
        places = {c.key: k for k, c in enumerate(table.columns) if c.is_number}
        chosen = [
            (word, k) for word in wanted if (k := _place(word, table.key, places)) is not None
        ]
        if chosen:
            found |= {word for word, _ in chosen}
            texts = [k for k, c in enumerate(table.columns) if not c.is_number]
            kept = [*texts, *dict.fromkeys(k for _, k in chosen)]
            rows = [[row[k] for k in kept] for row in table.rows]
            gone = tuple(f"{c.heading}: " for k, c in enumerate(table.columns) if k not in kept)
            smaller = table.changed([table.columns[k] for k in kept], rows)
            smaller.notes = tuple(note for note in table.notes if not note.startswith(gone))
            out.append(smaller)
    if lost := [word for word in wanted if word not in found]:
        known = dict.fromkeys(c.key for table in tables for c in table.columns if c.is_number)
        raise DataError(f"column {lost[0]!r}: expected some of {', '.join(known)}")
    return out


def _place(word: str, key: str, places: Mapping[str, int]) -> int | None:
    """Where a column is: keys of parts of a score may be written with a point."""
    own = word.removeprefix(f"{key}.").replace(".", "_")
    return places.get(own)


def number(cell: Cell) -> float | None:
    """The number in a cell; None for text and where it is undefined (None, NaN)."""
    value = cell.value if isinstance(cell, Estimate) else cell
    if value is None or isinstance(value, str) or math.isnan(value):
        return None
    return value


def _ranked(cell: Cell) -> float | None:
    return None if isinstance(cell, Estimate) and not cell.comparable else number(cell)


def interval(cell: Cell) -> tuple[float, float] | None:
    """The interval in a cell, or None."""
    if isinstance(cell, Estimate) and cell.low is not None and cell.high is not None:
        return cell.low, cell.high
    return None


def mark(cell: Cell) -> str:
    """The mark of a cell, or ""."""
    return cell.mark if isinstance(cell, Estimate) else ""


def arrow(column: Column) -> str:
    """Direction of a column as a sign: up, down, or nothing."""
    return {True: "↑", False: "↓", None: ""}[column.higher_is_better]
