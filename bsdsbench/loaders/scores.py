"""Labels and scores from a text file with two columns."""

from __future__ import annotations

import csv
import io
import sys
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.bounded import FaultError, listed, read_bytes, reading
from bsdsbench.files.errors import FileFormatError

F8 = NDArray[np.float64]
MAX_BYTES = 128 << 20
_EXPECTED = "expected a label and a score in each row"
_NAMES = {
    "label": ("label", "labels", "y", "y_true", "target", "class", "gt"),
    "score": ("score", "scores", "y_score", "y_pred", "pred", "prob", "probability", "confidence"),
}


def read_scores(path: str | Path) -> tuple[F8, F8]:
    """Labels and scores, f8 (n,) each, from a CSV file; "-" reads standard input.

    Comma, semicolon, tab or blanks separate the columns. A first row of words is a header: columns
    called label and score (or y_true, y_score, target, confidence ...) may then stand in any order
    among others. Without a header there are two columns, the label first.
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


def _lines(data: bytes) -> Iterator[tuple[int, str]]:
    """The lines that are not empty, with their numbers: a list of them would take many times the
    size of the text."""
    text = io.TextIOWrapper(io.BytesIO(data), "utf-8-sig")
    return ((k, line) for k, line in enumerate(text, 1) if line.strip())


def _parse(data: bytes) -> tuple[F8, F8]:
    at, first = next(_lines(data), (0, ""))
    if not first:
        raise FaultError(f"no rows, {_EXPECTED}")
    mark = next((m for m in ",;\t" if m in first), None)
    names = _cells(first, mark)
    header = not any(_is_number(name) for name in names)
    columns = _columns(names) if header else (0, 1)
    if not header and len(names) != 2:
        raise FaultError(f"{len(names)} columns and no header, {_EXPECTED}")
    rows = (line for _, line in _lines(data))
    try:
        # a quoted cell may go over lines
        if header and any(len(row) != len(names) for row in _rows(rows, mark)):
            raise ValueError
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            table = np.loadtxt(
                (line for _, line in _lines(data)),
                delimiter=mark,
                skiprows=int(header),
                usecols=columns if header else None,
                ndmin=2,
                comments=None,
                quotechar='"',
            )
    except UnicodeDecodeError:
        raise
    except ValueError:
        raise FaultError(_fault(data, mark, at if header else 0, columns, len(names))) from None
    if table.size == 0:
        raise FaultError(f"a header and no rows, {_EXPECTED}")
    if table.shape[1] != 2:
        raise FaultError(f"{table.shape[1]} columns, {_EXPECTED}")
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


def _fault(data: bytes, mark: str | None, skip: int, columns: tuple[int, int], width: int) -> str:
    """What is wrong with the first row that has not `width` cells, or no numbers in `columns`."""
    for number, line in _lines(data):
        cells = _cells(line, mark)
        if number <= skip:
            continue
        if len(cells) != width:
            return f"line {number}: {len(cells)} columns, expected {width}"
        for k in columns:
            if not _is_number(cells[k]):
                return f"line {number}: {cells[k].strip()[:40]!r} is not a number, {_EXPECTED}"
    return f"not a table of numbers, {_EXPECTED}"


def _rows(lines: Iterable[str], mark: str | None) -> Iterator[list[str]]:
    if mark is None:
        return map(str.split, lines)
    return csv.reader(map(str.rstrip, lines), delimiter=mark)


def _cells(line: str, mark: str | None) -> list[str]:
    return next(_rows([line], mark))


def _is_number(text: str) -> bool:
    try:
        return float(text) is not None
    except ValueError:
        return False
