"""Adapted Rand error by the three rules for the label 0. Nothing else computes it.

Each rule changes three sums of squared areas: of the cells n(i,j), of the segmentation's regions
and of the annotator's regions. A sum minus the number of pixels is twice the number of pixel pairs
in one region.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bsdsbench.metrics.region.contingency_table import Table

RULES = ("region", "skimage", "cremi")


class Squares(NamedTuple):
    """Sums of squared areas: of cells, of the segmentation's regions, of the annotator's."""

    both: int
    pred: int
    truth: int


def adapted_rand_errors(table: Table, annotator: int, squares: Squares) -> tuple[float, ...]:
    """The error against one annotator by each of `RULES`."""
    region = error_of(*sums_by_rule(table, annotator, squares, "region"))
    cremi = error_of(*sums_by_rule(table, annotator, squares, "cremi"))
    if table.gts.zero[annotator] < 0:
        return region, region, cremi
    return region, error_of(*sums_by_rule(table, annotator, squares, "skimage")), cremi


def sums_by_rule(
    table: Table, annotator: int, squares: Squares, zero: str
) -> tuple[float, float, float]:
    """What a rule makes of the sums: a share of the pairs is the first over another."""
    both, pred, truth = squares
    dropped = 0
    if zero != "region" and table.gts.zero[annotator] >= 0:
        lost, dropped = _of_zero_column(table, annotator)
        both, pred, truth = both - lost.both, pred - lost.pred, truth - lost.truth
    if zero != "cremi":
        pixels = table.n_pixels - dropped
        return both - pixels, pred - pixels, truth - pixels
    if table.zero < 0:
        return both, pred, truth
    lost, n_alone = _of_zero_row(table, annotator)
    extra = n_alone / table.n_pixels
    return both - lost.both + extra, pred - lost.pred + extra, truth


def error_of(both: float, pred: float, truth: float, alpha: float = 0.5) -> float:
    """1 - F, 0 where there is no pair on both sides; alpha is the weight of the truth's pairs."""
    weight = alpha * truth + (1 - alpha) * pred
    return 1.0 - both / weight if weight else 0.0


def _of_zero_column(table: Table, annotator: int) -> tuple[Squares, int]:
    """What the sums lose with the annotator's label 0, and its pixels."""
    column = table.gts.zero[annotator]
    at = np.flatnonzero(table.cols == column)
    n = table.counts[at]
    area = table.row_area()[np.searchsorted(table.indptr, at, side="right") - 1]
    pixels = int(table.gts.col_area[column])
    rest = area - n
    return Squares(int(n @ n), int(area @ area - rest @ rest), pixels**2), pixels


def _of_zero_row(table: Table, annotator: int) -> tuple[Squares, int]:
    """What the sums lose with the segmentation's label 0 in the annotator's regions other than 0,
    and its pixels there."""
    cells = slice(*table.indptr[table.zero : table.zero + 2])
    first, last = table.gts.col_start[annotator : annotator + 2]
    cols = table.cols[cells]
    n = table.counts[cells]
    n = n[(cols >= first) & (cols < last) & (cols != table.gts.zero[annotator])]
    pixels = int(n.sum())
    return Squares(int(n @ n), pixels**2, 0), pixels
