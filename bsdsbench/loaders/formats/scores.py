"""Reading a table of labels and scores, one sample per row, from a text file."""

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
from bsdsbench.errors import InputWarning, warn
from bsdsbench.io import FaultError, errors_naming, read_bytes
from bsdsbench.loaders.formats.text_tables import decode_text, separator_of, with_decimal_points
from bsdsbench.text import listed

_MAX_BYTES = 128 << 20
_NEGATIVE, _POSITIVE = "false f no n neg negative", "true t yes y pos positive"
_LABEL_WORDS = dict.fromkeys(_NEGATIVE.split(), "0") | dict.fromkeys(_POSITIVE.split(), "1")
_EXPECTED = "expected a label and a score in each row"
# The names of the label column and of the score column
_LABEL_NAMES = {"label", "labels", "y", "y_true", "target", "class", "gt"}
_SCORE_NAMES = {"score", "scores", "y_score", "y_pred", "y_prob", "y_proba", "pred", "prob"}
# These may also be decisions: beside another score they are not read. But a confidence beside them
# may be that in the decision, not in the positive class
_DECISION_NAMES = {"prediction", "predicted", "output"}
_SCORE_NAMES |= {"proba", "probability", "logit", "confidence"} | _DECISION_NAMES
_ID_NAMES = ("id", "image", "image_id", "sample", "case", "name", "file", "filename", "path")
_WEIGHTS = ("weight", "weights", "sample_weight", "sample_weights")
_METHOD_NAMES = ("method", "methods", "model", "classifier", "algorithm")


class LabelsAndScores(NamedTuple):
    """The n samples of a table of labels and scores."""

    labels: F8  # (n,)
    scores: F8  # (n,)
    counts: F8 | None = None  # (n,), how many instances each sample stands for; None: no column
    clusters: tuple[str, ...] | None = None  # (n,), the group of each sample; None: no column
    ids: tuple[str, ...] | None = None  # (n,), distinct; None: no column with a name in _ID_NAMES

    def in_order_of(self, other: LabelsAndScores) -> LabelsAndScores:
        """Return the samples in the order in which another file has their ids.

        They are returned unchanged if a file has no ids, or if the ids differ.
        """
        if self.ids == other.ids or not (self.ids and other.ids and {*self.ids} == {*other.ids}):
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

    Columns are separated by commas, semicolons, tabs or blanks. If no cell of the first row is a
    number, that row is a header with the names of a label column (label, y_true, target ...) and a
    score column (score, y_score, confidence ...). Without a header there are exactly two columns,
    the label first. The words true, yes and positive mean the label 1; false, no and negative 0.
    Beside another separator, a comma is the decimal mark. A column called id, image, file ... whose
    cells are distinct has the ids. A column of weights is not used, which gives an InputWarning, as
    does a column called method, model ... with several names.

    - count: name of the column with the number of instances that each sample stands for, if any
    - cluster: name of the column with each sample's group, such as a patient, if any

    Raises FileFormatError for a missing column, rows of unequal length, a cell that is not a
    number, NaN, or an input that is too large.
    """
    if str(path) == "-":
        content = getattr(sys.stdin, "buffer", sys.stdin).read(_MAX_BYTES + 1)
        data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    else:
        data = read_bytes(path, _MAX_BYTES)
    with errors_naming(path, "a table of labels and scores"):
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
    first_line = text.lstrip().partition("\n")[0]
    delimiter = separator_of(first_line, default=" ")  # ";", tab or ","
    if delimiter != ",":
        text = with_decimal_points(text)  # 0,5 becomes 0.5
    stream = io.StringIO(text, newline=None)  # which ends every line with "\n"
    lines = csv.reader(map(str.rstrip, stream), delimiter=delimiter, skipinitialspace=True)
    rows: Iterator[list[str]] = filter(None, lines)  # without empty lines
    names = [name.strip().lstrip("# ") for name in next(rows, ())]  # "# label" by numpy.savetxt
    if not names:
        raise FaultError(f"no rows, {_EXPECTED}")
    if any(map(_is_number, names)):
        rows = chain([names], rows)  # no header: the first row holds numbers
    # pandas names columns 0 and 1 by default. If all scores have a point, this "1" is hardly one
    if names == ["0", "1"] and all("." in line for line in text.split()[1:]):
        has = f"line 1: {first_line}, the sample of label 0 and score 1, or the header of pandas?"
        raise FaultError(f"{has}, {_EXPECTED}", fix=("write 0,1.0", "remove the line"))
    # Columns by index: label, score and, if given, count hold numbers; the others are text
    columns = _choose_columns(names, count, cluster)
    cluster_column = None if cluster is None else names.index(cluster)
    id_columns = [k for k, name in enumerate(names) if name.lower() in _ID_NAMES]
    others = [k for k in range(len(names)) if k not in (*columns, cluster_column)]
    method_columns = [k for k in others if names[k].lower() in _METHOD_NAMES]
    text_columns = (*id_columns, *method_columns, cluster_column)
    texts: dict[int, list[str]] = {k: [] for k in text_columns if k is not None}  # column -> cells
    values = array("d")  # the numbers of all rows, one after another; reshaped at the end
    for row in rows:
        if len(row) != len(names):
            fault = f"{len(row)} columns, expected {len(names)}"
            raise FaultError(f"line {lines.line_num}: {fault}")
        for k, cells in texts.items():
            cells.append(row[k].strip())
        label = row[columns[0]]
        row[columns[0]] = _LABEL_WORDS.get(label.strip().lower(), label)  # "true" becomes "1"
        try:
            values.extend([float(row[k]) for k in columns])
        except ValueError:
            raise FaultError(f"line {lines.line_num}: {_cell_fault(row, columns)}") from None
    for k in method_columns:
        if len(methods := sorted({*texts[k]})) > 1:
            fault = f"column {names[k]!r} is not used: the rows of {listed(methods, 3)} are pooled"
            warn(InputWarning(f"{fault} in one curve (a file for each gives several)"))
    table = np.array(values).reshape(-1, len(columns))  # (n, 2 or 3): label, score, count
    if not len(table):
        raise FaultError(f"a header and no rows, {_EXPECTED}")
    if n_nan := int(np.isnan(table).any(axis=1).sum()):
        raise FaultError(f"{n_nan} rows with NaN, {_EXPECTED}")
    # The ids are those of the first column of ids whose cells are distinct
    id_lists = [tuple(texts[k]) for k in id_columns if len({*texts[k]}) == len(texts[k])]
    return LabelsAndScores(
        labels=table[:, 0].copy(),
        scores=table[:, 1].copy(),
        counts=None if count is None else table[:, 2].copy(),
        clusters=None if cluster_column is None else tuple(texts[cluster_column]),
        ids=id_lists[0] if id_lists else None,
    )


def _cell_fault(row: Sequence[str], columns: Sequence[int]) -> str:
    """Describe the first cell of a row that is not a number; `columns` begins with the label's."""
    k = next(k for k in columns if not _is_number(row[k]))
    of_labels = "expected labels 0 and 1, -1 and 1, true and false, or yes and no"
    expected = of_labels if k == columns[0] else _EXPECTED
    return f"{row[k].strip()[:40]!r} is not a number, {expected}"


def _choose_columns(names: Sequence[str], count: str | None, cluster: str | None) -> list[int]:
    """Return the indices of the label column, the score column and, if given, the column `count`.

    names: the cells of the first row, which is a header unless one of them is a number.
    count, cluster: the names of further columns, or None. The column `cluster` holds text, which
        is not read with the numbers, so its index is not returned.

    The label column is the one called "label", "y_true" or another of _LABEL_NAMES; the score
    column is called "score", "y_pred" or another of _SCORE_NAMES. If no name is one of these, they
    are the first and the second of exactly two columns. For example, ("id", "score", "label")
    gives [2, 1].

    Raises FaultError if one of the columns is missing, or if there are several of labels or scores
    (other than decisions, such as "prediction" beside "score").
    A column of weights gives an InputWarning.
    """
    columns = [0, 1]  # without a header, or with two other names
    if any(map(_is_number, names)):
        if len(names) != 2:
            raise FaultError(f"{len(names)} columns and no header, {_EXPECTED}")
    else:
        label_columns = [k for k, name in enumerate(names) if name.lower() in _LABEL_NAMES]
        score_columns = [k for k, name in enumerate(names) if name.lower() in _SCORE_NAMES]
        # Decisions ("prediction", 0 or 1) are ignored beside a single column of scores. A column
        # "confidence" is no such score: it may be the confidence in the decision, of either class
        no_decisions = [k for k in score_columns if names[k].lower() not in _DECISION_NAMES]
        if len(no_decisions) == 1 and names[no_decisions[0]].lower() != "confidence":
            score_columns = no_decisions
        if len(label_columns) == len(score_columns) == 1:
            columns = label_columns + score_columns
        elif len(names) != 2 or label_columns or score_columns:
            expected = "expected one called label and one called score"
            # Advice to keep one of several; for a missing column there is none
            several, meaning = label_columns, "the truth"
            if len(score_columns) > len(label_columns):  # such as y_pred and y_prob
                several, meaning = score_columns, "the score of the positive class"
            fix = []
            if len(several) > 1:
                fix = [f"keep one of {listed([names[k] for k in several])}: {meaning}"]
            raise FaultError(f"columns {listed(names)}, {expected}", fix=fix)
    for name in (count, cluster):
        if name is not None and name not in names:
            raise FaultError(f"columns {listed(names)}, expected one called {name!r}")
    for name in names:
        if name.lower() in _WEIGHTS and name not in (count, cluster):
            warn(InputWarning(f"column {name!r} is not used: every row counts once"))
    return columns if count is None else [*columns, names.index(count)]


def _is_number(text: str) -> bool:
    """Return True if Python can convert the text to a float, including "nan" and "inf"."""
    try:
        float(text)
    except ValueError:
        return False
    return True
