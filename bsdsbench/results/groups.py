"""Group images by attributes such as scene, patient or size.

The attributes come from a CSV file, a mapping or a data frame with a row per image, or from the
image ids by a regular expression with named groups. A column holds numbers if all its values are
numbers, else text. A number with leading zeros (007) is text. A column divides the images by its
values. A column of more than four different numbers is cut at its quartiles, or at given limits.
"""

from __future__ import annotations

import csv
import io
import math
import os
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from numbers import Real
from typing import Any, NamedTuple

import attrs
import numpy as np

from bsdsbench.arguments import I8, kind_of_value
from bsdsbench.errors import DataError, Setting
from bsdsbench.io import FaultError, read_bytes, reading
from bsdsbench.loaders.formats.pictures import id_of
from bsdsbench.loaders.pairing import natural
from bsdsbench.scores.counts import ImageRecord, Value
from bsdsbench.text import listed, show

Rows = dict[str, dict[str, Value]]  # image id -> column -> value
ID_COLUMNS = ("image", "image_id", "id")
_MAX_BYTES = 1 << 26
EACH = "each"  # COLUMN=each: every number is a group of its own
NO_VALUE = "no value"
_FEW = 4  # different numbers that are not cut
_MIN_FRAMES = 3
_NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_FRAME = re.compile(r"(.*?[^0-9])[0-9]+([^0-9]*)", re.S)  # a number after other characters
FRAME_PATTERN = r"(?P<sequence>.+?)[/_. -]?[0-9]+[^0-9]*$"


class _GroupTable(NamedTuple):
    """A table of groups: its source for errors, the image id of each row, and its columns."""

    source: str
    ids: list[str]
    columns: dict[str, list[Any]]


def group_rows(
    ids: Sequence[str],
    groups: object = None,
    group_by: str | None = None,
    others: Collection[str] | None = (),
) -> Rows:
    """Return the values of every image by column.

    Parameters
    ----------
    ids : sequence of str
        The images.
    groups : path, mapping or data frame, optional
        The table: a CSV file whose column image (image_id, id), or else the first, has the ids; a
        data frame with such a column or with the ids as index; a mapping of ids to a value or to
        {column: value}, of columns to {id: value}, or of columns to lists, with one of ids.
    group_by : str, optional
        A regular expression with named groups, found in each id.
    others : collection of str or None
        Images beside these that rows may name; None: any.

    Raises
    ------
    DataError
        For an image without a row, a row without an image, a column or an image twice.

    Examples
    --------
    >>> group_rows(["s1_01", "s2_01"], group_by="(?P<scene>s.)_")
    {'s1_01': {'scene': 's1'}, 's2_01': {'scene': 's2'}}
    """
    tables = [] if groups is None else [_table_of(groups, ids)]
    tables += [] if group_by is None else [_table_by(group_by, ids)]
    rows: Rows = {image_id: {} for image_id in ids}
    for table in tables:
        places = _places(table, rows, others)
        for column, given in table.columns.items():
            values = _values(given, f"{table.source}: column {column!r}")
            if any(column in row for row in rows.values()):
                raise DataError(f"{table.source}: column {column!r} is there twice, expected once")
            for image_id, place in places.items():
                rows[image_id][column] = values[place]
    return rows


def _places(table: _GroupTable, rows: Rows, others: Collection[str] | None) -> dict[str, int]:
    """Return the row number of each image.

    Raises DataError if an image has no row or several rows, or if a row names an unknown image.
    """
    places: dict[str, int] = {}
    faults = []
    known = None if others is None else {*rows, *others}
    ids = []
    for name in table.ids:
        plain = name.replace("\\", "/")
        stem = f"{os.path.dirname(plain)}/{id_of(plain)}".removeprefix("/")
        candidates = (name, plain, stem, id_of(plain))
        ids.append(next((c for c in candidates if c in (known or rows)), name))
    if twice := [name for name, n in Counter(ids).items() if n > 1]:
        faults.append(f"{table.source}: {len(twice)} images have several rows: {listed(twice)}")
    places = {image_id: place for place, image_id in enumerate(ids) if image_id in rows}
    if lacking := [image_id for image_id in rows if image_id not in places]:
        faults.append(
            f"{table.source}: no row for {len(lacking)} of {len(rows)} images: {listed(lacking)}"
        )
    if known is not None and (odd := [name for name in ids if name not in known]):
        faults.append(f"{table.source}: {len(odd)} rows have no image: {listed(odd)}")
    if faults:
        raise DataError(problems=[f"{fault}; expected a row for each image" for fault in faults])
    return places


def _table_by(pattern: str, ids: Sequence[str]) -> _GroupTable:
    """Return a table with a column for each named group of a regular expression on the ids.

    Raises DataError if the expression is bad, has no named group, or does not match an id.
    """
    source = f"group_by {pattern!r}"
    try:
        compiled = re.compile(pattern)
    except (re.error, TypeError, RecursionError, OverflowError) as error:
        raise DataError(f"{source}: {error}, expected a regular expression") from None
    if not compiled.groupindex:
        raise DataError(f"{source}: names no group, expected some, such as (?P<scene>.+)_[0-9]+")
    matches = {image_id: compiled.search(image_id) for image_id in ids}
    if odd := [image_id for image_id, match in matches.items() if match is None]:
        raise DataError(f"{source}: is not found in {listed(odd)}, expected it in every image's id")
    columns = {}
    for column in compiled.groupindex:
        columns[column] = [match and match[column] for match in matches.values()]
    return _GroupTable(source, list(ids), columns)


def _table_of(groups: Any, ids: Collection[str]) -> _GroupTable:
    """Convert a CSV file, a data frame or a mapping to a table.

    Raises DataError for other types.
    """
    if isinstance(groups, str | os.PathLike):
        return _read_csv(groups)
    if hasattr(groups, "columns") and hasattr(groups, "itertuples"):  # of pandas, or like it
        names = list(map(str, groups.columns))
        _once(names, "groups")
        columns = {name: list(groups.iloc[:, k]) for k, name in enumerate(names)}
        if not {*ID_COLUMNS} & {*names}:
            return _GroupTable("groups", list(map(str, groups.index)), columns)
        return _with_ids("groups", columns)
    if not isinstance(groups, Mapping):
        kind = kind_of_value(groups)
        raise DataError(f"groups: {kind}, expected a CSV file, a mapping or a data frame")
    values = list(groups.values())
    if all(isinstance(value, Mapping) for value in values):
        if not any(key in ids for key in groups):  # by column
            images = dict.fromkeys(str(i) for of_images in values for i in of_images)
            named = [{str(i): v for i, v in of_images.items()} for of_images in values]
            columns = {str(c): list(map(v.get, images)) for c, v in zip(groups, named, strict=True)}
            return _GroupTable("groups", list(images), columns)
        keys = dict.fromkeys(column for row in values for column in row)
        columns = {str(column): [row.get(column) for row in values] for column in keys}
        return _GroupTable("groups", list(map(str, groups)), columns)
    if all(hasattr(value, "__len__") and not isinstance(value, str | Mapping) for value in values):
        return _with_ids("groups", {str(column): list(v) for column, v in groups.items()})
    return _GroupTable("groups", list(map(str, groups)), {"group": values})


def _with_ids(source: str, columns: dict[str, list[Any]], first: bool = False) -> _GroupTable:
    """Take the column of ids out of the columns. With `first` it may be the first column.

    Raises DataError if there is no column of ids, or if the columns have different lengths.
    """
    named = next((name for name in ID_COLUMNS if name in columns), None)
    if named is None and not first:
        expected = f"expected one of image ids: {', '.join(ID_COLUMNS)}"
        raise DataError(f"{source}: columns {listed(list(columns))}, {expected}")
    if len({len(values) for values in columns.values()}) > 1:
        raise DataError(f"{source}: columns of different lengths, expected a value an image")
    named = named or next(iter(columns))
    ids = [str(image_id) for image_id in columns[named]]
    return _GroupTable(source, ids, {c: v for c, v in columns.items() if c != named})


def _read_csv(path: str | os.PathLike[str]) -> _GroupTable:
    """Read a CSV file with a header. The separator is a comma, a semicolon or a tab."""
    expected = "expected a header of an id column and others"
    with reading(path, "a table of groups"):
        try:
            text = read_bytes(path, _MAX_BYTES).decode("utf-8-sig")
        except UnicodeDecodeError:
            raise FaultError("not UTF-8 text, expected a CSV table of groups") from None
        head = text.lstrip().partition("\n")[0]
        mark = next((m for m in ",;\t" if m in head), ",")
        lines = csv.reader(io.StringIO(text, newline=""), delimiter=mark, skipinitialspace=True)
        rows = []
        for row in lines:
            cells = list(map(str.strip, row))
            if any(cells):
                rows.append(cells)
                if len(cells) != len(rows[0]):
                    raise FaultError(
                        f"line {lines.line_num}: {len(cells)} columns, expected {len(rows[0])}"
                    )
        if not rows or len(rows[0]) < 2 or "" in rows[0]:
            raise FaultError(f"first line {listed(rows[0]) if rows else 'missing'}, {expected}")
        _once(rows[0], "")
        columns = {name: [row[k] for row in rows[1:]] for k, name in enumerate(rows[0])}
        return _with_ids(show(path), columns, first=True)


def _once(names: Sequence[str], source: str) -> None:
    """Raise FaultError if a column name is repeated."""
    if twice := [name for name, n in Counter(names).items() if n > 1]:
        line = f"column {twice[0]!r} is there twice, expected once"
        raise FaultError(f"{source}: {line}" if source else line)


def value_of(given: object, what: str) -> Value:
    """Convert a value to a float or to text.

    An empty value is None. Raises DataError for infinity.
    """
    if isinstance(given, Real) and not isinstance(given, bool):
        number = float(given)
        if math.isinf(number):
            raise DataError(f"{what}: {number}, expected finite numbers")
        return None if math.isnan(number) else number
    text = "" if given is None else show(given).strip()
    return text or None


def _values(given: Sequence[object], what: str) -> list[Value]:
    """Convert the values of a column: all to numbers if possible, else all to text."""
    values = [value_of(value, what) for value in given]
    known = [value for value in values if value is not None]
    if all(isinstance(value, float) or _NUMBER.fullmatch(value) for value in known):
        return [value if value is None else value_of(float(value), what) for value in values]
    return [value if value is None else text_of(value) for value in values]


def text_of(value: Value) -> str:
    """Return a value as it is printed: 2019, not 2019.0, and "no value" for None."""
    if value is None:
        return NO_VALUE
    return f"{value:.12g}" if isinstance(value, float) else value


def records_with(rows: Rows, records: Sequence[ImageRecord], name: str) -> list[ImageRecord]:
    """Add columns of groups to the records of the run `name`.

    Raises DataError if a record has a different value in one of the columns.
    """
    grouped = []
    for record in records:
        row = rows[record.image_id]
        if odd := [c for c in row if c in record.groups and record.groups[c] != row[c]]:
            raise DataError(
                f"{name}: {record.image_id} has another value in its column {odd[0]!r} "
                f"({record.groups[odd[0]]}), expected each column once"
            )
        grouped.append(replace(record, groups={**record.groups, **row}))
    return grouped


# ---- parts of a column ---------------------------------------------------------------------------


@attrs.frozen(eq=False)
class Partition:
    """The images of a run, divided by a column of their groups."""

    column: str
    names: tuple[str, ...]  # of the groups, in the order of their values
    members: I8  # (N,), the number of each image's group
    empty: tuple[str, ...] = ()  # groups that were asked for and have no image

    def weights(self) -> I8:
        """Return an array (G, N) that is 1 if the image is in the group, else 0."""
        return (self.members == np.arange(len(self.names))[:, None]).astype(np.int64)

    def images_of(self, group: int) -> I8:
        """Return the numbers of the images of a group."""
        return np.flatnonzero(self.members == group)


def group_columns(records: Sequence[ImageRecord]) -> list[str]:
    """Return the columns of the groups of images, in order of occurrence."""
    return list(dict.fromkeys(column for record in records for column in record.groups))


def partition(records: Sequence[ImageRecord], by: str, uncut: bool = False) -> Partition:
    """Divide images by a column.

    Parameters
    ----------
    records : sequence of ImageRecord
        The images.
    by : str
        The column; COLUMN=0,1024,9216 cuts its numbers there, COLUMN=each does not cut them.
    uncut : bool
        True if numbers are cut only where `by` says so.

    Raises
    ------
    DataError
        For a column that is not there, and cuts of text.

    Examples
    --------
    >>> images = [ImageRecord(f"{k}", (1, 1), groups={"size": 100.0 * k}) for k in range(6)]
    >>> sizes = partition(images, "size=0,300")
    >>> sizes.names, sizes.members.tolist()
    (('[0, 300)', '[300, inf)'), [0, 0, 0, 1, 1, 1])
    """
    known = group_columns(records)
    column, _, cuts = (by, "", "") if by in known else by.partition("=")
    if column not in known:
        had = f"expected one of {listed(known)}" if known else "these images have no groups"
        raise DataError(
            f"column {column!r}: {had}",
            fix=() if known else (Setting("groups", "FILE.csv"), Setting("group_by", "REGEX")),
        )
    values = [record.groups.get(column) for record in records]
    numbers = {v for v in values if isinstance(v, float)}
    if cuts and cuts != EACH:
        edges = _edges(cuts, column)
        return _cut(column, [_as_number(v, column) for v in values], edges, given=True)
    is_number = all(v is None or isinstance(v, float) for v in values)
    if is_number and len(numbers) > _FEW and not uncut and cuts != EACH:
        quartiles = np.unique(np.quantile([v for v in values if v is not None], (0.25, 0.5, 0.75)))
        return _cut(column, values, quartiles.tolist(), given=False)  # type: ignore[arg-type]
    texts = sorted({v for v in values if isinstance(v, str)}, key=natural)
    names: list[Value] = [*sorted(numbers), *texts, *[None] * (None in values)]
    places = {name: k for k, name in enumerate(names)}
    members = np.array([places[v] for v in values], np.int64)
    return Partition(column, tuple(map(text_of, names)), members)


def _edges(cuts: str, column: str) -> list[float]:
    """Parse limits such as "0,1024,9216". Raises DataError if they are not increasing numbers."""
    words = [word.strip() for word in cuts.split(",") if word.strip()]
    edges = [float(word) for word in words if _NUMBER.fullmatch(word)]
    if not edges or len(edges) < len(words) or edges != sorted({*edges}):
        expected = f"expected numbers that rise, as {column}=0,1024, or {column}={EACH}"
        raise DataError(f"{column}={cuts}: {expected}")
    return edges


def _as_number(value: Value, column: str) -> float | None:
    """Convert a value to a number. Raises DataError if it is text."""
    if isinstance(value, str) and not _NUMBER.fullmatch(value.lstrip("0") or "0"):
        raise DataError(f"column {column!r}: {value!r} is text, expected numbers to cut")
    return value if value is None else float(value)


def _cut(
    column: str, values: Sequence[float | None], edges: Sequence[float], *, given: bool
) -> Partition:
    """Divide the images by a column of numbers at `edges`. Each range includes its lower limit.

    given : the user chose the edges, so that there is a range below the first one and no upper
        limit; otherwise the ranges begin and end with the smallest and the largest value
    """
    known = [v for v in values if v is not None]
    low, high = (-math.inf, math.inf) if given else (min(known), max(known))
    inner = [edge for edge in edges if edge > low]
    places = [-1 if v is None else int(np.searchsorted(inner, v, side="right")) for v in values]
    ends = [low, *inner, high]
    last = ")" if given else "]"
    names = [f"[{text_of(a)}, {text_of(b)})" for a, b in pairwise(ends)]
    names[-1] = names[-1][:-1] + last
    if given:
        names[0] = f"below {text_of(inner[0])}"
    names += [NO_VALUE]
    places = [len(names) - 1 if place < 0 else place for place in places]
    used = sorted({*places})
    empty = [names[k] for k in range(int(given), len(names) - 1) if k not in used]
    members = np.searchsorted(used, places).astype(np.int64)
    return Partition(column, tuple(names[k] for k in used), members, tuple(empty))


# ---- clusters ------------------------------------------------------------------------------------


def image_clusters(records: Sequence[ImageRecord], column: str) -> Partition:
    """Return the clusters of images by a column, in the order in which they occur.

    Raises DataError if the column is unknown or an image has no value.
    """
    groups = partition(records, column, uncut=True)
    if lacking := [r.image_id for r in records if r.groups.get(groups.column) is None]:
        raise DataError(
            f"column {groups.column!r}: no value for {listed(lacking)}, expected one for each image"
        )
    _, first, members = np.unique(groups.members, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.argsort(order)
    names = tuple(groups.names[k] for k in np.unique(groups.members)[order])
    return Partition(groups.column, names, rank[members])


def frames_note(records: Sequence[ImageRecord]) -> str:
    """Return a line of advice if most ids look like frames of videos, else "".

    Frames have ids that are equal but for a number. At least two sequences of three frames are
    needed.
    """
    stems = Counter(m.groups() for r in records if (m := _FRAME.fullmatch(r.image_id)))
    sequences = {stem: n for stem, n in stems.items() if n >= _MIN_FRAMES}
    frames = sum(sequences.values())
    if len(sequences) < 2 or 2 * frames <= len(records):
        return ""
    before, after = next(iter(sequences))
    known = group_columns(records)
    way = f"by one of {', '.join(known)}" if known else f"group_by {FRAME_PATTERN!r}"
    return (
        f"{frames} of {len(records)} images look like frames of {len(sequences)} sequences "
        f"({show(before)}NUMBER{show(after)} ...), which are not independent: a cluster for each "
        f"({way}) makes the intervals right"
    )
