"""Reading a table of labels and scores, one sample per row, from a text file."""

from __future__ import annotations

import csv
import io
import re
import sys
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bsdsbench.arguments import Floats
from bsdsbench.errors import InputWarning, warn
from bsdsbench.io import FaultError, file_errors, read_bytes
from bsdsbench.loaders.formats.text_tables import (
    decode_text,
    points_of_thousands,
    separator_of,
    with_decimal_points,
)
from bsdsbench.text import join_names

_MAX_BYTES = 128 << 20
_COMMENT = re.compile(r"\s*#(.*)")
_NEGATIVE, _POSITIVE = "false f no n neg negative", "true t yes y pos positive"
_LABEL_WORDS = dict.fromkeys(_NEGATIVE.split(), "0") | dict.fromkeys(_POSITIVE.split(), "1")
_EXPECTED = "expected a label and a score in each row"
# The names of the label column and of the score column
_LABEL_NAMES = {"label", "labels", "y", "y_true", "target", "class", "gt"}
_SCORE_NAMES = {"score", "scores", "y_score", "y_pred", "y_prob", "y_proba", "pred", "prob"}
# Names of scores that may also be decisions
_DECISION_NAMES = {"prediction", "predicted", "output"}
_SCORE_NAMES |= {"proba", "probability", "logit", "confidence"} | _DECISION_NAMES
_ID_NAMES = ("id", "image", "image_id", "sample", "case", "name", "file", "filename", "path")
_WEIGHTS = ("weight", "weights", "sample_weight", "sample_weights")
# Names of columns whose rows are often meant to give a curve each
_GROUP_NAMES = {"method", "methods", "model", "classifier", "algorithm", "detector"}
_GROUP_NAMES |= {"split", "subset", "fold", "seed", "run", "epoch"}


class LabelsAndScores(NamedTuple):
    """The n samples of a table of labels and scores."""

    labels: Floats  # (n,)
    scores: Floats  # (n,)
    counts: Floats | None = None  # (n,), how many instances each sample stands for; None: no column
    clusters: tuple[str, ...] | None = None  # (n,), the group of each sample; None: no column
    ids: tuple[str, ...] | None = None  # (n,), distinct; None: no column with a name in _ID_NAMES

    def in_order_of(self, other: LabelsAndScores) -> LabelsAndScores:
        """Return the samples in the order in which another file has their ids.

        They are returned unchanged if a file has no ids, or if the ids differ.
        """
        if not self.ids or not other.ids or self.ids == other.ids:
            return self
        if {*self.ids} != {*other.ids}:
            return self
        row_of_id = {sample_id: row for row, sample_id in enumerate(self.ids)}
        order = [row_of_id[sample_id] for sample_id in other.ids]
        clusters = self.clusters and tuple(self.clusters[row] for row in order)
        counts = None if self.counts is None else self.counts[order]
        return LabelsAndScores(self.labels[order], self.scores[order], counts, clusters, other.ids)


def read_scores(
    path: str | Path, count: str | None = None, cluster: str | None = None
) -> LabelsAndScores:
    """Read a table of labels and scores from a text file, or from standard input if `path` is "-".

    Columns are separated by commas, semicolons, tabs or blanks; with another separator, a comma is
    the decimal mark. Lines of # are comments. If no cell of its first row is a number,
    that row is a header with the names of a label column (label, y_true, target ...) and a score
    column (score, y_score ...). Without a header there are exactly two columns, the label first.
    Labels may be words, such as yes and no. A column called id, image, file ... whose cells are
    distinct has the ids. An InputWarning names columns that are not used: weights, or several
    methods, splits, folds ...

    - count: name of the column with the number of instances that each sample stands for, if any
    - cluster: name of the column with each sample's group, such as a patient, if any

    Raises FileFormatError for missing columns, unequal rows, cells without number, or large input.
    """
    if str(path) == "-":
        content = getattr(sys.stdin, "buffer", sys.stdin).read(_MAX_BYTES + 1)
        # Text, where stdin has no bytes; "surrogatepass" leaves its errors to the decoding below
        data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    else:
        data = read_bytes(path, _MAX_BYTES)
    with file_errors(path, "a table of labels and scores"):
        if len(data) > _MAX_BYTES:
            raise FaultError(f"more than {_MAX_BYTES} bytes, expected fewer")
        try:
            return _parse_table(data, count, cluster)
        except UnicodeDecodeError:
            raise FaultError(f"not UTF-8 text, {_EXPECTED}") from None


def _parse_table(data: bytes, count: str | None, cluster: str | None) -> LabelsAndScores:
    """Parse a table of labels and scores, one sample per row.

    `count` and `cluster` are the names of the columns with each sample's number of instances and
    with its group, if any.
    """
    text = decode_text(data)
    start = _find_start(text)
    first_line = text[start:].lstrip().partition("\n")[0]
    text = "\n" * text.count("\n", 0, start) + text[start:]  # the numbers of lines are kept
    delimiter = separator_of(first_line, default=" ")  # ";", tab or ","
    if delimiter != ",":
        text = with_decimal_points(text)  # 0,5 becomes 0.5
    stream = io.StringIO(text, newline=None)  # which ends every line with "\n"
    lines = csv.reader(map(str.rstrip, stream), delimiter=delimiter, skipinitialspace=True)
    rows: Iterator[list[str]] = filter(None, lines)  # without empty lines
    names = [name.strip().lstrip("# ") for name in next(rows, ())]
    if not names:
        raise FaultError(f"no rows, {_EXPECTED}")
    if any(map(_is_number, names)):
        rows = chain([names], rows)  # no header: the first row holds numbers
    # pandas names columns 0 and 1 by default. If all scores have a point, this "1" is hardly one
    if names == ["0", "1"] and all("." in line for line in text.split()[1:]):
        has = f"line 1: {first_line}, the sample of label 0 and score 1, or the header of pandas?"
        raise FaultError(f"{has}, {_EXPECTED}", fix=("write 0,1.0", "remove the line"))
    columns = _choose_columns(names, count, cluster)
    number_columns = [columns.label, columns.score]
    if columns.count is not None:
        number_columns.append(columns.count)
    text_columns = [*columns.ids, *columns.unused]
    if columns.cluster is not None:
        text_columns.append(columns.cluster)
    texts: dict[int, list[str]] = {k: [] for k in text_columns}  # column -> cells
    values = array("d")  # the numbers of all rows, one after another; reshaped at the end
    for row in rows:
        if row[0] == "#" or row[0].startswith("# "):  # a comment
            continue
        if len(row) != len(names):
            fault = f"{len(row)} columns, expected {len(names)}"
            raise FaultError(f"line {lines.line_num}: {fault}")
        for k, cells in texts.items():
            cells.append(row[k].strip())
        label = row[columns.label]
        row[columns.label] = _LABEL_WORDS.get(label.strip().lower(), label)  # "true" becomes "1"
        try:
            values.extend([float(row[k]) for k in number_columns])
        except ValueError:
            raise FaultError(f"line {lines.line_num}: {_cell_fault(row, number_columns)}") from None
    for k in columns.unused:
        _warn_of_unused(names[k], texts[k])
    table = np.array(values).reshape(-1, len(number_columns))  # (n, 2 or 3): label, score, count
    _check_numbers(table, text)
    # The ids are those of the first column of ids whose cells are distinct
    id_lists = [tuple(texts[k]) for k in columns.ids if len({*texts[k]}) == len(texts[k])]
    return LabelsAndScores(
        labels=table[:, 0].copy(),
        scores=table[:, 1].copy(),
        counts=None if columns.count is None else table[:, 2].copy(),
        clusters=None if columns.cluster is None else tuple(texts[columns.cluster]),
        ids=id_lists[0] if id_lists else None,
    )


def _check_numbers(table: Floats, text: str) -> None:
    """Raise FaultError if the table (n, 2 or 3) of a text is empty, has NaN or unclear points."""
    if not len(table):
        raise FaultError(f"a header and no rows, {_EXPECTED}")
    if n_nan := int(np.isnan(table).any(axis=1).sum()):
        raise FaultError(f"{n_nan} rows with NaN, {_EXPECTED}")
    if doubtful := points_of_thousands(table[:, 1], text):
        whole, cell = doubtful
        has = f"scores such as {cell} and {whole}: {cell.replace('.', '')}, or {float(cell):g}?"
        fix = "write whole numbers without points", "write three decimals everywhere"
        raise FaultError(f"{has}, {_EXPECTED}", fix=fix)


def _find_start(text: str) -> int:
    """Return where the table begins in a text: after comments, or at one that is its header.

    Above a row of numbers, "# label score" is a header, as `numpy.savetxt` writes it.
    """
    start, comments = 0, list[re.Match[str]]()
    while comment := _COMMENT.match(text, start):
        comments.append(comment)
        start = comment.end()
    cells = re.findall(r"[^\s,;]+", text[start:].lstrip().partition("\n")[0])
    if any(map(_is_number, cells)):
        for comment in comments:
            words = re.findall(r"[^\s,;]+", comment[1].lower())
            if len(words) == len(cells) and not _LABEL_NAMES.isdisjoint(words):
                start = comment.start(1)
    return start


def _warn_of_unused(name: str, cells: Sequence[str]) -> None:
    """Warn of a column that is not used, if it has weights, or names several groups of rows."""
    groups = sorted({*cells})
    if name.lower() in _WEIGHTS:
        if not {*groups} <= {"1", "1.0"}:
            warn(InputWarning(f"column {name!r} is not used: every row counts once"))
    elif 1 < len(groups) < max(3, len(cells)):  # as many as rows are rather numbers of rows
        fault = f"column {name!r} is not used: the rows of {join_names(groups, 3)} are pooled"
        warn(InputWarning(f"{fault} in one curve (a file for each gives several)"))


def _cell_fault(row: Sequence[str], columns: Sequence[int]) -> str:
    """Describe the first cell of these columns that is not a number; the first has the label."""
    faulty = next(column for column in columns if not _is_number(row[column]))
    expected = _EXPECTED
    if faulty == columns[0]:
        expected = "expected labels 0 and 1, -1 and 1, true and false, or yes and no"
    cell = row[faulty].strip()[:40]
    if cell.count(",") == 1 and "." not in cell:  # all commas may separate thousands
        expected = f"expected {cell.replace(',', '')}, or {cell.replace(',', '.')}"
    return f"{cell!r} is not a number, {expected}"


@dataclass(frozen=True)
class _Columns:
    """Indices of the columns of a table."""

    label: int
    score: int
    count: int | None
    cluster: int | None
    ids: list[int]
    unused: list[int]  # of weights and groups


def _choose_columns(names: Sequence[str], count: str | None, cluster: str | None) -> _Columns:
    """Choose the columns by the cells of the first row, a header unless one of them is a number.

    `count` and `cluster` are the names of further columns, or None. If there is no header, or no
    name of a label or score column, the first of exactly two columns has the label. If one of two
    has such a name, the other column is the other.

    Raises FaultError if one of the columns is missing, or if there are several of labels or scores.
    """
    label, score = 0, 1
    if not any(map(_is_number, names)):
        label_columns = [k for k, name in enumerate(names) if name.lower() in _LABEL_NAMES]
        score_columns = _find_score_columns(names)
        others = {*_ID_NAMES, *_WEIGHTS}.intersection(map(str.lower, names))
        if len(label_columns) == len(score_columns) == 1:
            label, score = label_columns[0], score_columns[0]
        elif len(names) == 2 and len(label_columns + score_columns) < 2 and not others:
            if label_columns:
                label = label_columns[0]
            elif score_columns:
                label = 1 - score_columns[0]  # the other of the columns 0 and 1
            score = 1 - label
        else:
            expected = "expected one called label and one called score"
            # Advice to keep one of several; for a missing column there is none
            several, meaning = label_columns, "the truth"
            if len(score_columns) > len(label_columns):  # such as y_pred and y_prob
                several, meaning = score_columns, "the score of the positive class"
            fix = []
            if len(several) > 1:
                fix = [f"keep one of {join_names([names[k] for k in several])}: {meaning}"]
            raise FaultError(f"columns {join_names(names)}, {expected}", fix=fix)
    elif len(names) != 2:
        raise FaultError(f"{len(names)} columns and no header, {_EXPECTED}")
    for name in (count, cluster):
        if name is not None and name not in names:
            raise FaultError(f"columns {join_names(names)}, expected one called {name!r}")
    count_column = None if count is None else names.index(count)
    cluster_column = None if cluster is None else names.index(cluster)
    used = (label, score, count_column, cluster_column)
    known = {*_GROUP_NAMES, *_WEIGHTS}
    unused = [k for k, name in enumerate(names) if name.lower() in known and k not in used]
    ids = [k for k, name in enumerate(names) if name.lower() in _ID_NAMES]
    return _Columns(label, score, count_column, cluster_column, ids, unused)


def _find_score_columns(names: Sequence[str]) -> list[int]:
    """Return the indices of the columns that may hold the scores, judged by their names.

    A column "prediction" may hold scores or decisions (0 or 1). Beside a single other column of
    scores it holds decisions, and is left out. But both are returned if the other is "confidence",
    which may be the confidence in the decision, of either class.
    """
    columns = [k for k, name in enumerate(names) if name.lower() in _SCORE_NAMES]
    no_decisions = [k for k in columns if names[k].lower() not in _DECISION_NAMES]
    if len(no_decisions) == 1 and names[no_decisions[0]].lower() != "confidence":
        return no_decisions
    return columns


def _is_number(text: str) -> bool:
    """Return True if Python can convert the text to a float, including "nan" and "inf"."""
    try:
        float(text)
    except ValueError:
        return False
    return True
