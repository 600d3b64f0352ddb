"""Labels and scores from a text file with two columns."""

from __future__ import annotations

import csv
import io
import sys
from array import array
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bsdsbench.arguments import F8
from bsdsbench.io import FaultError, read_bytes, reading
from bsdsbench.text import listed

_MAX_BYTES = 128 << 20
_TRUTH = {"false": "0", "true": "1"}  # labels in words
_EXPECTED = "expected a label and a score in each row"
_NAMES = (
    ("label", "labels", "y", "y_true", "target", "class", "gt"),
    ("score", "scores", "y_score", "y_pred", "pred", "prob", "probability", "confidence"),
)


class LabelsAndScores(NamedTuple):
    """A label and a score of each sample, (n,) each; the number of instances, and the cluster."""

    labels: F8
    scores: F8
    counts: F8 | None = None
    clusters: tuple[str, ...] | None = None


def read_scores(
    path: str | Path, count: str | None = None, cluster: str | None = None
) -> LabelsAndScores:
    """Return labels and scores of a CSV file; "-" reads standard input.

    Comma, semicolon, tab or blanks separate the columns. A first row of words is a header: columns
    called label and score (or y_true, y_score, target, confidence ...) may then stand in any order
    among others. Without a header there are two columns, the label first. true and false
    are labels 1 and 0. `count` is the name of a column of instances, `cluster` of what belongs
    together, if one is to be read.
    """
    if str(path) == "-":
        given = getattr(sys.stdin, "buffer", sys.stdin).read(_MAX_BYTES + 1)
        data = given.encode("utf-8", "surrogatepass") if isinstance(given, str) else given
    else:
        data = read_bytes(path, _MAX_BYTES)
    with reading(path, "a table of labels and scores"):
        if len(data) > _MAX_BYTES:
            raise FaultError(f"more than {_MAX_BYTES} bytes, expected fewer")
        try:
            return _parse(data, count, cluster)
        except UnicodeDecodeError:
            raise FaultError(f"not UTF-8 text, {_EXPECTED}") from None


def _parse(data: bytes, count: str | None, cluster: str | None) -> LabelsAndScores:
    """Read in one pass, since a list of the rows would take many times the size of the text."""
    text = io.TextIOWrapper(io.BytesIO(data), "utf-8-sig")
    first = next((line for line in text if line.strip()), "")
    mark = next((m for m in ",;\t" if m in first), " ")
    text.seek(0)
    lines = csv.reader(map(str.rstrip, text), delimiter=mark, skipinitialspace=True)
    rows: Iterator[list[str]] = filter(None, lines)
    names = [name.strip() for name in next(rows, ())]
    columns: Sequence[int] = (0, 1)
    if not names:
        raise FaultError(f"no rows, {_EXPECTED}")
    if any(_is_number(name) for name in names):
        if len(names) != 2:
            raise FaultError(f"{len(names)} columns and no header, {_EXPECTED}")
        rows = chain([names], rows)
    else:
        known = [[k for k, n in enumerate(names) if n.lower() in words] for words in _NAMES]
        if [len(places) for places in known] == [1, 1]:
            columns = [places[0] for places in known]
        elif len(names) != 2 or any(known):
            expected = "expected one called label and one called score"
            raise FaultError(f"columns {listed(names)}, {expected}")
    for name in filter(None, (count, cluster)):
        if name not in names:
            raise FaultError(f"columns {listed(names)}, expected one called {name!r}")
    if count is not None:
        columns = [*columns, names.index(count)]
    place = None if cluster is None else names.index(cluster)
    values, clusters = array("d"), list[str]()
    for row in rows:
        if len(row) != len(names):
            where = f"line {lines.line_num}"
            raise FaultError(f"{where}: {len(row)} columns, expected {len(names)}")
        clusters += [] if place is None else [row[place].strip()]
        label = row[columns[0]]
        row[columns[0]] = _TRUTH.get(label.strip().lower(), label)
        try:
            values.extend([float(row[k]) for k in columns])
        except ValueError:
            cell = next(row[k].strip()[:40] for k in columns if not _is_number(row[k]))
            raise FaultError(
                f"line {lines.line_num}: {cell!r} is not a number, {_EXPECTED}"
            ) from None
    table = np.array(values).reshape(-1, len(columns))
    if not len(table):
        raise FaultError(f"a header and no rows, {_EXPECTED}")
    if bad := int(np.isnan(table).any(axis=1).sum()):
        raise FaultError(f"{bad} rows with NaN, {_EXPECTED}")
    labels, scores, *counts = (column.copy() for column in table.T)
    n_instances = counts[0] if counts else None
    return LabelsAndScores(labels, scores, n_instances, tuple(clusters) or None)


def _is_number(text: str) -> bool:
    try:
        return float(text) is not None
    except ValueError:
        return False
