"""One-to-one assignment of boundary maps (H, W) or points (N, 2) at custom costs.

This is the boundary benchmark's matcher with custom costs: for training with one predicted pixel
per annotated pixel, for tracking junctions, for editing maps. It is not a metric and counts
nothing.

It finds the most pairs within the radius, and among those the least total cost. A hash of the two
indices breaks ties, so the result is a function of the input alone: it depends neither on threads
nor on the rest of a batch.

Memory: a problem takes about 150 bytes per predicted or annotated pixel and 16 bytes per stored
edge. At most 2^22 edges (64 MB) are stored; the others are discarded and found again when needed.
Lists of points with more than 2^22 pairs within the radius are refused; they take at most 400 MB.
Each thread solves one problem at a time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.arguments import (
    given_array,
    given_floats,
    given_list,
    given_number,
    given_whole,
    given_word,
)
from bsdsbench.files.errors import DataError, ShapeError
from bsdsbench.loaders.inputs import GroundTruth, binary_map, same_shape
from bsdsbench.protocol.constants import MAX_PX
from bsdsbench.scores.counts import frozen
from bsdsbench.tables.read_only import ReadOnly

# Kernels are imported where they are called, see boundary.py.
F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
Bool = NDArray[np.bool_]
Problem = tuple[Bool, Bool, tuple[F8, F8] | None]
METRICS = ("l2", "l1", "linf")
LARGEST = 1e15  # of a cost or a coordinate
_T = TypeVar("_T")
_V = TypeVar("_V")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Assignment(ReadOnly):
    """The pairs of one prediction and one annotator.

    Parameters
    ----------
    pred_index, gt_index : array
        i8 (K,), the pairs in order of `pred_index`: flat (row-major) indices of pixels, or indices
        of points.
    pred_shape, gt_shape : tuple of int
        The shape of the maps, or the number of points.
    cost : float
        Sum of the costs of the pairs.
    resolution : float
        `cost` is at most `n_matched * resolution` above the least one; it is the least one where
        costs are whole numbers and that is below 1.

    Examples
    --------
    >>> import bsdsbench as bb
    >>> found = bb.assign_points([[0, 0], [5, 5]], [[5, 6], [0, 1]], 3.0)
    >>> found.pred_index.tolist(), found.gt_index.tolist()
    ([0, 1], [1, 0])
    """

    pred_index: I8
    gt_index: I8
    pred_shape: tuple[int, ...]
    gt_shape: tuple[int, ...]
    cost: float
    resolution: float

    @property
    def n_matched(self) -> int:
        """Number of pairs."""
        return int(self.pred_index.size)

    @property
    def pred_match(self) -> I8:
        """i8, the index of the partner of each predicted pixel or point, -1 where there is none."""
        return _partners(self.pred_shape, self.pred_index, self.gt_index)

    @property
    def gt_match(self) -> I8:
        """The same from the side of the annotator."""
        return _partners(self.gt_shape, self.gt_index, self.pred_index)

    def __repr__(self) -> str:
        return f"Assignment({self.n_matched} pairs, cost {self.cost:.6g})"


def _partners(shape: tuple[int, ...], at: I8, partner: I8) -> I8:
    found = np.full(shape, -1, np.int64)
    found.flat[at] = partner
    found.flags.writeable = False
    return found


def assign(
    pred: NDArray[Any],
    gt: NDArray[Any] | Sequence[Any] | GroundTruth,
    radius: float,
    *,
    metric: str = "l2",
    cost: NDArray[Any] | None = None,
    pred_value: NDArray[Any] | None = None,
    weight: float = 1.0,
    gt_value: NDArray[Any] | Sequence[Any] | None = None,
    threads: int | None = None,
) -> Any:
    """Assign predicted pixels to annotated ones: most pairs first, then the least total cost.

    A pair within the radius costs its distance, or what `cost` says of its offset, plus
    `weight * pred_value` at the predicted pixel, plus `gt_value` at the annotated one.

    Parameters
    ----------
    pred : array
        (H, W) map of 0 and 1, or of 0 and 255 in uint8; or a batch (B, H, W).
    gt : array, sequence or GroundTruth
        For one image (H, W), or (A, H, W) or a list of A annotators; for a batch one of these for
        each image, which may differ in their number of annotators.
    radius : float
        Largest distance of a pair in pixels, 0 or more.
    metric : str
        How distances are taken: "l2" (Euclidean), "l1" or "linf".
    cost : array, optional
        (2R+1, 2R+1) costs with R the whole part of `radius`: what a pair costs whose annotated
        pixel lies (row - R, col - R) from the predicted one. Infinite where it is not allowed.
    pred_value, gt_value : array, optional
        Values with the shapes of `pred` and `gt`.
    weight : float
        Factor of `pred_value`; below 0 where large values are to be preferred.
    threads : int, optional
        Problems solved at the same time, without the interpreter's lock; default: one a processor.
        The result does not depend on it.

    Returns
    -------
    Assignment, or tuples of them
        For one image and (H, W) an Assignment; for annotators a tuple of A; for a batch a tuple
        with one of these for each image.

    Raises
    ------
    ShapeError
        If sizes differ.
    DataError
        For other values, or a radius above 1000.

    Notes
    -----
    Memory is bounded: some 150 bytes a boundary pixel and at most 64 MB of edges for each thread.

    References
    ----------
    Duff and Koster 2001, for the sparse assignment problem; Jonker and Volgenant 1987, for shortest
    augmenting paths.

    Examples
    --------
    >>> import numpy as np
    >>> import bsdsbench as bb
    >>> pred, gt = np.zeros((5, 7), bool), np.zeros((5, 7), bool)
    >>> pred[2, [1, 3]] = gt[2, 2] = True
    >>> bb.assign(pred, gt, 1).pred_match[2].tolist()
    [-1, 16, -1, -1, -1, -1, -1]
    >>> confidence = np.where(np.arange(7) == 3, 0.9, 0.5) * np.ones((5, 1))
    >>> found = bb.assign(pred, gt, 1, pred_value=confidence, weight=-5)
    >>> found.pred_match[2].tolist(), found.cost
    ([-1, -1, -1, 16, -1, -1, -1], -3.5)
    >>> bb.assign(pred, [gt, pred], 1)
    (Assignment(1 pairs, cost 1), Assignment(2 pairs, cost 0))
    """
    radius = given_number(radius, "radius", 0, MAX_PX)
    factor = given_number(weight, "weight", -LARGEST, LARGEST)
    given_word(metric, "metric", METRICS)
    table = None if cost is None else _given_table(cost, radius)
    preds = given_array(pred, "prediction")
    if preds.ndim not in (2, 3):
        raise ShapeError(f"prediction: shape {preds.shape}, expected (H, W) or (B, H, W)")
    batch = preds.ndim == 3
    values = None if pred_value is None else given_values(pred_value, "pred_value", factor)
    if values is not None:
        same_shape(values.shape, preds.shape, "pred_value")
    given = (gt, "ground truth"), (values, "pred_value"), (gt_value, "gt_value")
    of_images = (_each(one, len(preds), what) if batch else [one] for one, what in given)
    problems = [
        _problems(*image) for image in zip(preds if batch else [preds], *of_images, strict=True)
    ]
    costs = _offset_costs(radius, metric, table, preds.shape[-2:])
    flat = [problem for _, found in problems for problem in found]
    solved = iter(in_threads(partial(_assign_maps, costs), flat, threads))
    out = tuple(
        next(solved) if alone else tuple(islice(solved, len(found))) for alone, found in problems
    )
    return out if batch else out[0]


def _each(given: Any, n: int, what: str) -> list[Any]:
    """What belongs to each of n images; None for each if nothing is given."""
    if given is None:
        return [None] * n
    items = given_list(given, what, "one item for each image of the batch")
    if len(items) != n:
        raise ShapeError(f"{what}: {len(items)} items, expected {n}, one for each image")
    return items


def _problems(
    pred: NDArray[Any], gt: Any, pred_cost: F8 | None, gt_value: Any
) -> tuple[bool, list[Problem]]:
    """The problems of one image, and whether it has an annotator alone, not a list of them."""
    bmap = binary_map(pred, "prediction")
    alone, gts = _planes(gt.boundaries if isinstance(gt, GroundTruth) else gt, "ground truth")
    maps = [binary_map(one, "ground truth") for one in gts]
    for one in maps:
        same_shape(bmap.shape, one.shape)
    if pred_cost is None and gt_value is None:
        return alone, [(bmap, one, None) for one in maps]
    own = np.zeros(bmap.shape) if pred_cost is None else pred_cost
    if gt_value is None:
        nothing = np.zeros(bmap.shape)
        return alone, [(bmap, one, (own, nothing)) for one in maps]
    _, others = _planes(gt_value, "gt_value")
    if [o.shape for o in others] != [g.shape for g in maps]:
        raise ShapeError("gt_value: shape other than the ground truth's, expected the same")
    values = [given_values(other, "gt_value") for other in others]
    return alone, [(bmap, one, (own, v)) for one, v in zip(maps, values, strict=True)]


def _planes(given: Any, what: str) -> tuple[bool, list[NDArray[Any]]]:
    """Whether it is (H, W) alone; and that, or the planes of (A, H, W)."""
    array = given_array(given, what)
    if array.ndim not in (2, 3):
        raise ShapeError(f"{what}: shape {array.shape}, expected (H, W) or (A, H, W)")
    return array.ndim == 2, [array] if array.ndim == 2 else list(array)


def given_values(values: Any, what: str, factor: float = 1.0) -> F8:
    """Numbers times `factor` as float64, none too large to be added up."""
    array: F8 = factor * given_floats(values, what)
    if not (np.abs(array) <= LARGEST).all():
        raise DataError(f"{what}: NaN or values beyond {LARGEST:g}, expected finite numbers")
    return array


def _given_table(cost: Any, radius: float) -> F8:
    table: F8 = given_floats(cost, "cost")
    side = 2 * int(radius) + 1
    if table.shape != (side, side):
        raise ShapeError(
            f"cost: shape {table.shape}, expected {(side, side)} for radius {radius:g}"
        )
    given_values(np.where(table == np.inf, 0, table), "cost")
    return table


def _distance(dy: F8, dx: F8, metric: str) -> F8:
    if metric == "l2":
        return np.sqrt(dy * dy + dx * dx)
    dy, dx = np.abs(dy), np.abs(dx)
    return dy + dx if metric == "l1" else np.maximum(dy, dx)


def _offset_costs(radius: float, metric: str, table: F8 | None, shape: tuple[int, ...]) -> F8:
    """(2R+1, 2R+1) costs by offset, no larger than an image of `shape` needs; infinite beyond."""
    reach = min(int(radius), max(*shape, 1) - 1)
    step = np.arange(-reach, reach + 1.0)
    far = _distance(step[:, None], step, metric)
    if table is not None:
        off = int(radius) - reach
        table = table[off : len(table) - off, off : len(table) - off]
    return np.where(far <= radius, far if table is None else table, np.inf)


def _assign_maps(costs: F8, problem: Problem) -> Assignment:
    from bsdsbench.kernels.assigning import assign_maps

    pred, gt, values = problem
    pairs = assign_maps(pred, gt, costs, values)
    (row, col), (gt_row, gt_col) = (
        np.divmod(at, max(pred.shape[1], 1)) for at in (pairs.first, pairs.second)
    )
    paid = costs[gt_row - row + len(costs) // 2, gt_col - col + len(costs) // 2]
    if values is not None:
        paid = paid + values[0].flat[pairs.first] + values[1].flat[pairs.second]
    return _made(pairs, pred.shape, gt.shape, paid)


def _made(pairs: Any, pred_shape: Any, gt_shape: Any, paid: F8) -> Assignment:
    first, second = frozen(pairs.first, np.int64), frozen(pairs.second, np.int64)
    return Assignment(first, second, pred_shape, gt_shape, float(paid.sum()), pairs.resolution)


def in_threads(function: Callable[[_T], _V], items: Sequence[_T], threads: int | None) -> list[_V]:
    """function(item) of each, in `threads` threads; in their order. Default: one a processor."""
    if threads is not None:
        threads = given_whole(threads, "threads", 1)
    most = min(len(items), threads or os.cpu_count() or 1)
    if most < 2:
        return [function(item) for item in items]
    with ThreadPoolExecutor(most) as pool:
        return list(pool.map(function, items))


def assign_points(
    pred: NDArray[Any],
    gt: NDArray[Any],
    radius: float,
    *,
    metric: str = "l2",
    pred_value: NDArray[Any] | None = None,
    weight: float = 1.0,
    gt_value: NDArray[Any] | None = None,
) -> Assignment:
    """Assign points to points, such as junctions or key points, by the rules of `assign`.

    Parameters
    ----------
    pred, gt : array
        (N, 2) and (M, 2) coordinates, whole or not. An empty list has no points.
    radius : float
        Largest distance of a pair, 0 or more.
    metric : str
        How distances are taken: "l2" (Euclidean), "l1" or "linf".
    pred_value, gt_value : array, optional
        (N,) and (M,) values.
    weight : float
        Factor of `pred_value`.

    Returns
    -------
    Assignment
        Indices are those of the points.

    Raises
    ------
    ShapeError
        Unless (N, 2) and (M, 2), with values (N,) and (M,).
    DataError
        For other values, or more than 2^22 pairs within the radius.

    Notes
    -----
    Memory is bounded by the 2^22 pairs: at most 400 MB.

    Examples
    --------
    >>> import bsdsbench as bb
    >>> found = bb.assign_points([(0, 0), (0, 2.5)], [(0, 1), (0, -1), (9, 9)], 2)
    >>> found.pred_match.tolist(), found.gt_match.tolist(), found.cost
    ([1, 0], [1, 0, -1], 2.5)
    """
    from bsdsbench.kernels import assigning

    radius = given_number(radius, "radius", 0, LARGEST)
    factor = given_number(weight, "weight", -LARGEST, LARGEST)
    given_word(metric, "metric", METRICS)
    points = _given_points(pred, "prediction"), _given_points(gt, "ground truth")
    values = (
        _point_values(pred_value, points[0], "pred_value", factor),
        _point_values(gt_value, points[1], "gt_value", 1.0),
    )
    try:
        pairs = assigning.assign_points(*points, radius, METRICS.index(metric), values)
    except ValueError as error:
        raise DataError(str(error)) from None
    offset = points[0][pairs.first] - points[1][pairs.second]
    paid = _distance(offset[:, 0], offset[:, 1], metric)
    paid = paid + values[0][pairs.first] + values[1][pairs.second]
    return _made(pairs, (len(points[0]),), (len(points[1]),), paid)


def _given_points(points: Any, what: str) -> F8:
    found = given_values(points, what)
    if found.size == 0:
        found = found.reshape(0, 2)
    if found.ndim != 2 or found.shape[1] != 2:
        raise ShapeError(f"{what}: shape {found.shape}, expected (number of points, 2)")
    return np.ascontiguousarray(found)


def _point_values(value: Any, points: F8, what: str, factor: float) -> F8:
    found = np.zeros(len(points)) if value is None else given_values(value, what, factor)
    if found.shape != (len(points),):
        raise ShapeError(f"{what}: shape {found.shape}, expected {(len(points),)}")
    return found
