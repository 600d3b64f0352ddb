"""Group images by attributes such as scene, patient or size.

The attributes come from a CSV file, a mapping or a data frame with one row per image, or from the
image ids by a regular expression with named groups. The images are grouped by the values in one
column. If it has more than four distinct numbers, it is binned at its quartiles or at given limits.
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

from bsdsbench.arguments import Ints, kind_of_value
from bsdsbench.errors import DataError, Problem, Setting
from bsdsbench.io import FaultError, file_errors, read_bytes
from bsdsbench.loaders.formats.pictures import id_of, natural_sort_key
from bsdsbench.loaders.formats.text_tables import decode_text, separator_of, with_decimal_points
from bsdsbench.scores.counts import ImageRecord, Value
from bsdsbench.text import join_names, show

Rows = dict[str, dict[str, Value]]  # image id -> column -> value
ID_COLUMNS = ("image", "image_id", "id")
_MAX_BYTES = 1 << 26
EACH = "each"  # COLUMN=each: every distinct number is a group
NO_VALUE = "no value"
_MOST_UNCUT = 4  # up to this many distinct numbers are not binned
_MIN_FRAMES = 3  # the smallest number of frames in a sequence
_NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
# Missing values of R, pandas and Excel in lower case, beside numbers and among clusters
_MISSING_WORDS = {"na", "n/a", "#n/a", "<na>", "nan", "nat", "null", "none", "-"}
_FRAME = re.compile(r"(.*?[^0-9])[0-9]+([^0-9]*)", re.S)  # an id with one number, not at its start
FRAME_PATTERN = r"(?P<sequence>.+?)[/_. -]?[0-9]+[^0-9]*$"


class _GroupTable(NamedTuple):
    """A table of groups with one row per image, before the values are converted."""

    source: str  # the file or the argument, for error messages
    ids: list[str]  # the image of each row, as the table writes it
    columns: dict[str, list[Any]]  # column name -> the value of each row


def group_rows(
    ids: Sequence[str],
    groups: object = None,
    group_by: str | None = None,
    others: Collection[str] | None = (),
) -> Rows:
    """Collect the grouping attributes of every image from a table, from the image ids, or both.

    ids: the ids of the images.
    groups: a table with one row per image. Its ids may include a folder and a file suffix. It is

        - a CSV file, whose id column is named image, image_id or id; otherwise the first column
        - a data frame, whose id column has one of these names; otherwise the index
        - {id: group} or {id: {column: value}}
    group_by: a regular expression that is searched for in each image id. Each named group becomes
        a column.
    others: ids of further images that the table may contain. None allows any id.

    Returns {image id: {column: value}}. The values of a column are floats if all of them are
    numbers, otherwise strings. Missing values are None.

    Raises DataError if an image has no row or several rows, if a row names an unknown image, or if
    a column occurs twice.
    """
    rows: Rows = {image_id: {} for image_id in ids}
    tables = []
    if groups is not None:
        tables.append(_read_groups(groups))
    if group_by is not None:
        tables.append(_match_pattern(group_by, ids))
    for table in tables:
        row_numbers = _find_rows(table, rows, others)  # image id -> index of its row
        for column, raw_values in table.columns.items():
            label = f"{table.source}: column {column!r}"  # for error messages
            values = [group_value(raw_value, label) for raw_value in raw_values]
            # In a column of numbers, words such as "NA" are missing values: [2, "10", "NA"] becomes
            # [2.0, 10.0, None], but ["a", "10", "NA"] remains as it is
            without_words = [None if _is_missing(value) else value for value in values]
            known = [value for value in without_words if value is not None]
            # A text with leading zeros, such as "007", is no number
            are_numbers = [isinstance(v, float) or _NUMBER.fullmatch(v) for v in known]
            if known and all(are_numbers):
                # Texts such as "1e999" are infinite as floats: `group_value` checks them once more
                values = [
                    None if v is None else group_value(float(v), label) for v in without_words
                ]
            else:
                values = [None if value is None else text_of(value) for value in values]
            if any(column in row for row in rows.values()):
                raise DataError(f"{label} is there twice, expected once")
            for image_id, number in row_numbers.items():
                rows[image_id][column] = values[number]
    return rows


def _find_rows(
    table: _GroupTable, images: Collection[str], others: Collection[str] | None
) -> dict[str, int]:
    """Find the row of each of the `images` in a table: {image id: index of the row}.

    The table may also have rows for the ids in `others`, or for any id if `others` is None. These
    rows are ignored. Raises one DataError that lists images with no row or with several rows, and
    rows whose id is neither in `images` nor in `others`.
    """
    allowed = None if others is None else {*images, *others}  # None: any id
    known = images if allowed is None else allowed
    ids = []  # those that the names in the table stand for
    for name in table.ids:
        # "a/b.png", which may have backslashes, is the first of "a/b.png", "a/b" and "b" that is
        # known; a name of which none is known stays as it is
        path = name.replace("\\", "/")
        file_id = id_of(path)  # without folder and suffix
        without_suffix = f"{os.path.dirname(path)}/{file_id}".removeprefix("/")
        spellings = (name, path, without_suffix, file_id)
        known_spellings = [spelling for spelling in spellings if spelling in known]
        ids.append(known_spellings[0] if known_spellings else name)
    row_numbers = {image_id: number for number, image_id in enumerate(ids) if image_id in images}
    repeated = [image_id for image_id, n in Counter(ids).items() if n > 1 and image_id in images]
    lacking = [image_id for image_id in images if image_id not in row_numbers]
    unknown = [] if allowed is None else [name for name in ids if name not in allowed]
    problems = []
    for names, fault in (
        (repeated, f"{len(repeated)} images have several rows"),
        (lacking, f"no row for {len(lacking)} of {len(images)} images"),
        (unknown, f"{len(unknown)} rows have no image"),
    ):
        if names:
            has = f"{fault}: {join_names(names)}; expected a row for each image"
            problems.append(Problem(table.source, has, names=tuple(names)))
    if problems:
        raise DataError(problems=problems)
    return row_numbers


def _match_pattern(pattern: str, ids: Sequence[str]) -> _GroupTable:
    """Search for a regular expression in every image id; each named group becomes a column."""
    source = f"group_by {pattern!r}"
    try:
        compiled = re.compile(pattern)
    except (re.error, TypeError, RecursionError, OverflowError) as error:
        raise DataError(f"{source}: {error}, expected a regular expression") from None
    if not compiled.groupindex:
        raise DataError(f"{source}: names no group, expected some, such as (?P<scene>.+)_[0-9]+")
    columns: dict[str, list[Any]] = {name: [] for name in compiled.groupindex}  # named groups
    unmatched = []
    for image_id in ids:
        match = compiled.search(image_id)
        if match is None:
            unmatched.append(image_id)
        else:
            for name, values in columns.items():
                values.append(match[name])  # None if the group did not take part in the match
    if unmatched:
        fault = f"is not found in {join_names(unmatched)}, expected it in every image's id"
        raise DataError(f"{source}: {fault}")
    return _GroupTable(source, list(ids), columns)


def _read_groups(groups: Any) -> _GroupTable:
    """Convert the argument `groups` of `group_rows` to a table with one row per image.

    It is the path of a CSV file, a data frame of pandas (with a column of image ids, the first name
    of ID_COLUMNS that occurs, or with the ids as its index), or a mapping {id: group} or {id:
    {column: value}}. A mapping {id: group} becomes a single column with the name "group".

    Raises DataError for anything else, or if the name of a column occurs twice.
    """
    if isinstance(groups, Mapping):
        keys, values = [str(key) for key in groups], list(groups.values())
        if not all(isinstance(value, Mapping) for value in values):
            return _GroupTable("groups", keys, {"group": values})
        names = dict.fromkeys(name for row in values for name in row)
        by_name = {str(name): [row.get(name) for row in values] for name in names}
        return _GroupTable("groups", keys, by_name)
    if isinstance(groups, str | os.PathLike):
        source = show(groups)
        header, *columns = _read_csv(groups)
    elif hasattr(groups, "columns") and hasattr(groups, "itertuples"):  # a data frame
        source = "groups"
        if not {*ID_COLUMNS} & {str(name).lower() for name in groups.columns}:
            if getattr(groups.index, "nlevels", 1) > 1:
                fault = "a data frame with an index of several levels, expected ids"
                raise DataError(f"groups: {fault}")
            groups = groups.rename_axis(ID_COLUMNS[0]).reset_index()
        header = [str(name) for name in groups.columns]
        columns = [list(groups.iloc[:, k]) for k in range(groups.shape[1])]
    else:
        kind = kind_of_value(groups)
        raise DataError(f"groups: {kind}, expected a CSV file, a mapping or a data frame of pandas")
    if repeated := [name for name, n in Counter(header).items() if n > 1]:
        raise DataError(f"{source}: column {repeated[0]!r} is there twice, expected once")
    by_name = dict(zip(header, columns, strict=True))
    id_columns = [name for name in header if name.lower() in ID_COLUMNS]
    id_column = min(id_columns, key=lambda name: ID_COLUMNS.index(name.lower()))
    return _GroupTable(source, list(map(str, by_name.pop(id_column))), by_name)


def _read_csv(path: str | os.PathLike[str]) -> list[list[str]]:
    """Read a table of groups from a UTF-8 CSV file with a header, separated by ",", ";" or tabs.

    The ids are in the first column, unless another has a name in ID_COLUMNS. A first column without
    a name is then left out: pandas writes the numbers of rows there. Beside another separator, a
    comma is the decimal mark. Blank lines, and comments (#) of one cell, are skipped.

    Returns the names of the columns, and then one list for each column, with the cells of its rows.
    """
    with file_errors(path, "a table of groups"):
        try:
            text = decode_text(read_bytes(path, _MAX_BYTES))
        except UnicodeDecodeError:
            raise FaultError("not UTF-8 text, expected a CSV table of groups") from None
        lines_of_table = (line for line in text.splitlines() if line.strip() and line[0] != "#")
        separator = separator_of(next(lines_of_table, ""), ",")  # "," if the line has none
        if separator != ",":  # then "1,5" is a number
            text = with_decimal_points(text)
        stream = io.StringIO(text, newline="")
        lines = csv.reader(stream, delimiter=separator, skipinitialspace=True)
        rows: list[list[str]] = []
        for row in lines:
            cells = [cell.strip() for cell in row]
            # A blank line, one of separators only, or a comment without a separator
            if not any(cells) or (len(cells) == 1 and cells[0].startswith("#")):
                continue
            rows.append(cells)
            n = len(rows[0])  # of the header
            if len(cells) != n:
                raise FaultError(f"line {lines.line_num}: {len(cells)} columns, expected {n}")
        while rows and not any(cells[-1] for cells in rows):  # separators at the ends of lines
            rows = [cells[:-1] for cells in rows]
        header = rows[0] if rows else []
        if len(header) < 2 or "" in header[1:]:
            expected = "expected a header of an id column and others"
            raise FaultError(f"first line {join_names(header) or 'missing'}, {expected}")
    if not {*ID_COLUMNS} & {*map(str.lower, header)}:  # then those of the first column
        header[0] = ID_COLUMNS[0]
    elif not header[0]:  # the numbers of rows, as pandas writes them
        rows = [cells[1:] for cells in rows]
        header = rows[0]
    return [header, *([row[k] for row in rows[1:]] for k in range(len(header)))]


def group_value(raw_value: object, what: str) -> Value:
    """Convert a raw value in a table of groups to a float, a string, or None if it is missing.

    Numbers become floats. None, NaN and blank text become None. Anything else, including bools and
    numbers written as text, becomes a string without surrounding blanks. Raises DataError for an
    infinite number; `what` starts the message, and names the table and the column.
    """
    if isinstance(raw_value, Real) and not isinstance(raw_value, bool):
        number = float(raw_value)
        if math.isinf(number):
            raise DataError(f"{what}: {number}, expected finite numbers")
        return None if math.isnan(number) else number
    text = "" if raw_value is None else show(raw_value).strip()
    return text or None


def _is_missing(value: Value) -> bool:
    """Return True for None and for a word that stands for a missing value, such as "NA"."""
    return value is None or (isinstance(value, str) and value.lower() in _MISSING_WORDS)


def text_of(value: Value) -> str:
    """Format a grouping value for printing: 2019.0 becomes "2019", and None "no value"."""
    if value is None:
        return NO_VALUE
    return f"{value:.12g}" if isinstance(value, float) else value


def records_with_groups(rows: Rows, records: Sequence[ImageRecord], name: str) -> list[ImageRecord]:
    """Return copies of records with the groups in `rows` added to their existing groups.

    Raises DataError (with `name`, the run) if a record already has another value in a column.
    """
    grouped = []
    for record in records:
        row = rows[record.image_id]
        if differing := [c for c in row if c in record.groups and record.groups[c] != row[c]]:
            fault = f"another value in its column {differing[0]!r} ({record.groups[differing[0]]})"
            raise DataError(f"{name}: {record.image_id} has {fault}, expected each column once")
        grouped.append(replace(record, groups={**record.groups, **row}))
    return grouped


@attrs.frozen(eq=False)
class Partition:
    """The N images of a run, divided into G groups by the values in one column."""

    column: str
    names: tuple[str, ...]  # (G,): names of the groups, in the order of their values
    members: Ints  # (N,): the group of each image, as an index into `names`

    def weights(self) -> Ints:
        """Return the indicator matrix int64 (G, N): 1 if image n is in group g, otherwise 0."""
        return (self.members == np.arange(len(self.names))[:, None]).astype(np.int64)

    def images_of(self, group: int) -> Ints:
        """Return the indices of the images in a group (given by its index), in ascending order."""
        return np.flatnonzero(self.members == group)


def group_columns(records: Sequence[ImageRecord]) -> list[str]:
    """List the columns by which the images can be grouped, in order of first occurrence."""
    return list(dict.fromkeys(column for record in records for column in record.groups))


def partition(records: Sequence[ImageRecord], by: str, uncut: bool = False) -> Partition:
    """Divide images into groups by their values in a column of `ImageRecord.groups`.

    Images without a value form the last group, "no value".

    by: the column, as COLUMN, COLUMN=LIMIT,LIMIT... or COLUMN=each.

        - With limits (size=0,1024,9216), each group is a range that includes its lower limit.
        - Without limits, a column of numbers with more than four distinct values is divided at
          its quartiles, unless `by` is COLUMN=each or `uncut` is True.
        - Otherwise each distinct value is a group: numbers in ascending order, then texts in
          natural order.
    uncut: True to make each distinct value a group, no matter how many there are.
    """
    known = group_columns(records)
    if not isinstance(by, str):
        raise DataError(f"column {kind_of_value(by)}: expected its name")
    column, _, limits = by.partition("=")
    if not known:
        settings = Setting("groups", "FILE.csv"), Setting("group_by", "REGEX")
        raise DataError(f"column {column!r}: these images have no groups", fix=settings)
    if column not in known:
        raise DataError(f"column {column!r}: expected one of {join_names(known)}")
    values = [record.groups.get(column) for record in records]
    if limits and limits != EACH:
        words = [word.strip() for word in limits.split(",") if word.strip()]
        edges = [float(word) for word in words if _NUMBER.fullmatch(word)]
        if not edges or len(edges) < len(words) or edges != sorted({*edges}):
            expected = f"expected numbers that rise, as {column}=0,1024, or {column}={EACH}"
            raise DataError(f"{column}={limits}: {expected}")
        return _divide(column, values, edges, open_ended=True)  # below the first, above the last
    numbers = [v for v in values if isinstance(v, float)]
    texts = sorted({v for v in values if isinstance(v, str)}, key=natural_sort_key)
    may_cut = not uncut and limits != EACH
    if may_cut and not texts and len(set(numbers)) > _MOST_UNCUT:
        quartiles = np.quantile(numbers, (0.25, 0.5, 0.75)).tolist()
        edges = []
        for quartile, next_quartile in pairwise((*quartiles, math.inf)):
            # Without a number between two quartiles, the group between them would be empty
            if any(quartile <= number < next_quartile for number in numbers):
                edges.append(quartile)
        return _divide(column, values, edges, open_ended=False)
    distinct: list[Value] = [*sorted(set(numbers)), *texts]  # each is a group
    if None in values:
        distinct.append(None)
    group_of_value = {value: k for k, value in enumerate(distinct)}
    members = np.array([group_of_value[v] for v in values], np.int64)
    return Partition(column, tuple(map(text_of, distinct)), members)


def _divide(
    column: str, values: Sequence[Value], edges: Sequence[float], *, open_ended: bool
) -> Partition:
    """Bin images by a column of numbers. Each bin that contains an image becomes a group.

    values : the number of each image, a float, or text such as "007", if the column has numbers
        with leading zeros. Images without a number (None) form the last group.
    edges : the limits between bins, in ascending order. A bin includes its lower limit.
    open_ended : True for limits given by the user: the first and the last bin have no outer limit.
        False for quartiles: the bins extend from the smallest to the largest value, which is
        included.
    """
    for value in values:
        if isinstance(value, str) and not _NUMBER.fullmatch(value.lstrip("0") or "0"):  # "000"
            raise DataError(f"column {column!r}: {value!r} is text, expected numbers to cut")
    numbers = np.array([math.nan if value is None else float(value) for value in values])
    low, high = (-math.inf, math.inf) if open_ended else (np.nanmin(numbers), np.nanmax(numbers))
    # The bins are between these edges, `low` and `high`. A quartile may be the minimum, `low`
    inner_edges = [edge for edge in edges if edge > low]
    limits = map(text_of, [float(low), *inner_edges, float(high)])
    names = [f"[{start}, {end})" for start, end in pairwise(limits)]
    if open_ended:  # instead of "[-inf, 1024)"
        names[0] = f"below {text_of(inner_edges[0])}"
    else:  # the last bin includes the maximum: "[20, 31]"
        names[-1] = f"{names[-1].removesuffix(')')}]"
    # Bin k has the numbers with inner_edges[k - 1] <= number < inner_edges[k]
    bins = np.searchsorted(inner_edges, numbers, side="right")
    bins[np.isnan(numbers)] = len(names)  # one more bin, for images without a number
    # The indices of the non-empty bins, and the position of each image's bin among these
    used, members = np.unique(bins, return_inverse=True)
    names.append(NO_VALUE)
    return Partition(column, tuple(names[k] for k in used), members)


def image_clusters(records: Sequence[ImageRecord], column: str) -> Partition:
    """Divide images into clusters with equal values in a column, in order of first occurrence.

    Images of a cluster, such as frames of one video, are not independent, so a bootstrap resamples
    whole clusters.
    """
    groups = partition(records, column, uncut=True)  # one group for each value, even of numbers
    # Images without a value have nothing in common, and "NA" would make them one cluster
    if lacking := [r.image_id for r in records if _is_missing(r.groups.get(groups.column))]:
        words = [name for name in groups.names if _is_missing(name)]
        fault = f"no value for {join_names(lacking)}, expected one for each image"
        fix = f"if {join_names(words)} is a cluster: another name for it" if words else ()
        raise DataError(f"column {groups.column!r}: {fault}", fix=fix)
    order = list(dict.fromkeys(groups.members.tolist()))  # group numbers by first occurrence
    new_number = np.argsort(order)  # inverts the permutation: old group number -> position in it
    members = new_number[groups.members]
    return Partition(groups.column, tuple(groups.names[k] for k in order), members)


def frames_note(records: Sequence[ImageRecord]) -> str:
    """Return a line that recommends clusters if most images look like video frames, otherwise "".

    Ids of frames differ only in their last number. At least two sequences of _MIN_FRAMES or more
    frames must together contain more than half of all images.
    """
    # A match for an id with a single number, whose groups are the texts before and after it
    matches = [_FRAME.fullmatch(record.image_id) for record in records]
    # (text before the number, text after it) -> number of images; ("a/frame", "") for a/frame012
    n_images = Counter(match.groups() for match in matches if match)
    sequences = {stem: n for stem, n in n_images.items() if n >= _MIN_FRAMES}
    n_frames = sum(sequences.values())
    if len(sequences) < 2 or 2 * n_frames <= len(records):
        return ""
    before, after = next(iter(sequences))  # the first as an example: "a/frameNUMBER"
    known = group_columns(records)
    option = f"by one of {', '.join(known)}" if known else f"group_by {FRAME_PATTERN!r}"
    return (
        f"{n_frames} of {len(records)} images look like frames of {len(sequences)} sequences "
        f"({show(before)}NUMBER{show(after)} ...): if they are, a cluster for each ({option}) "
        "makes the intervals right"
    )
