"""Labels and scores from a text file with two columns."""

from __future__ import annotations

import csv
import io
import sys
from array import array
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.bounded import FaultError, listed, read_bytes, reading
from bsdsbench.files.errors import FileFormatError

F8 = NDArray[np.float64]
MAX_BYTES = 128 << 20
_TRUTH = {"false": 0, "true": 1}  # labels in words
_EXPECTED = "expected a label and a score in each row"
_NAMES = {
    "label": ("label", "labels", "y", "y_true", "target", "class", "gt"),
    "score": ("score", "scores", "y_score", "y_pred", "pred", "prob", "probability", "confidence"),
}


def read_scores(path: str | Path) -> tuple[F8, F8]:
    """Labels and scores, f8 (n,) each, from a CSV file; "-" reads standard input.

    Comma, semicolon, tab or blanks separate the columns. A first row of words is a header: columns
    called label and score (or y_true, y_score, target, confidence ...) may then stand in any order
    among others. Without a header there are two columns, the label first. true and false
    are labels 1 and 0.
    """
    if str(path) == "-":
        given = getattr(sys.stdin, "buffer", sys.stdin).read(MAX_BYTES + 1)
        data = given.encode("utf-8", "surrogatepass") if isinstance(given, str) else given
        if len(data) > MAX_BYTES:
            raise FileFormatError(f"-: more than {MAX_BYTES} bytes, expected fewer")
    else:
        data = read_bytes(path, MAX_BYTES)
    with reading(path, "a table of labels and scores"):
        try:
            return _parse(data)
        except UnicodeDecodeError:
            raise FaultError(f"not UTF-8 text, {_EXPECTED}") from None


def _parse(data: bytes) -> tuple[F8, F8]:
    """One pass, since a list of the rows would take many times the size of the text."""
    text = io.TextIOWrapper(io.BytesIO(data), "utf-8-sig")
    first = next((line for line in text if line.strip()), "")
    if not first:
        raise FaultError(f"no rows, {_EXPECTED}")
    mark = next((m for m in ",;\t" if m in first), None)
    text.seek(0)
    at = 0

    def lines() -> Iterator[str]:
        nonlocal at
        for at, line in enumerate(text, 1):  # noqa: B007
            if line.strip():
                yield line.rstrip()

    rows = csv.reader(lines(), delimiter=mark) if mark else map(str.split, lines())
    names = next(rows)
    header = not any(_is_number(name) for name in names)
    columns = _columns(names) if header else (0, 1)
    if not header and len(names) != 2:
        raise FaultError(f"{len(names)} columns and no header, {_EXPECTED}")
    values = array("d")
    for row in rows if header else chain([names], rows):
        if len(row) != len(names):
            raise FaultError(f"line {at}: {len(row)} columns, expected {len(names)}")
        try:
            label = row[columns[0]].strip()
            values.extend((float(_TRUTH.get(label.lower(), label)), float(row[columns[1]])))
        except ValueError:
            label = label if label.lower() not in _TRUTH else "0"
            cell = next(c for c in (label, row[columns[1]].strip()) if not _is_number(c))[:40]
            raise FaultError(f"line {at}: {cell!r} is not a number, {_EXPECTED}") from None
    table = np.array(values).reshape(-1, 2)
    if not len(table):
        raise FaultError(f"a header and no rows, {_EXPECTED}")
    bad = np.isnan(table).any(axis=1)
    if bad.any():
        raise FaultError(f"{int(bad.sum())} rows with NaN, {_EXPECTED}")
    return table[:, 0].copy(), table[:, 1].copy()


def _columns(names: list[str]) -> tuple[int, int]:
    """Where the label and the score stand in the header."""
    known = [name.strip().lower() for name in names]
    labels, scores = ([k for k, n in enumerate(known) if n in words] for words in _NAMES.values())
    if len(labels) == len(scores) == 1:
        return labels[0], scores[0]
    if len(names) == 2 and not labels and not scores:
        return 0, 1
    raise FaultError(
        f"columns {listed([n.strip() for n in names])}, "
        "expected one called label and one called score"
    )


def _is_number(text: str) -> bool:
    try:
        return float(text) is not None
    except ValueError:
        return False
