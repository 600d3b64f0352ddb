"""Counts to curves and scores. Pure: no disk, no kernels.

Every precision and recall, of one image or of a data set, is made by `ratio` from integer sums;
a mean of ratios is never taken. Rules: the official collect_eval_bdry.m (ODS, OIS, AP) and the
edges toolbox (R50).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsdsbench.core.errors import DataError
from bsdsbench.core.records import BoundaryCounts, ImageRecord, PixelCounts, frozen
from bsdsbench.runs.compressed import Records

if TYPE_CHECKING:
    from bsdsbench.curves import ROCResult

F8 = NDArray[np.float64]
RECALL_LEVELS = np.arange(101) / 100
PerImage = tuple[tuple[str, "OperatingPoint"], ...]
_STEPS = np.arange(100) / 99


def ratio(numerator: ArrayLike, denominator: ArrayLike) -> F8:
    """numerator / denominator as float64, with 0/0 = 0. The one place where ratios are made.

    Scalars or arrays of equal (or broadcastable) shape; returns a float64 array of that shape.
    """
    num = np.asarray(numerator, np.float64)
    den = np.asarray(denominator, np.float64)
    out = np.zeros(np.broadcast_shapes(num.shape, den.shape))
    np.divide(num, den, out=out, where=den != 0)
    return out


def f_measure(precision: ArrayLike, recall: ArrayLike) -> F8:
    """2PR / (P + R), with 0/0 = 0; float64, numbers or arrays of one shape."""
    p = np.asarray(precision, np.float64)
    r = np.asarray(recall, np.float64)
    return ratio(2 * p * r, p + r)


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """A point of a PR curve: precision, recall and F in [0, 1], and where it is.

    `threshold` is None where each image has its own (OIS).
    """

    threshold: float | None
    precision: float
    recall: float
    f: float

    def to_mapping(self) -> dict[str, float]:
        """For result.json: recall before precision, the threshold only where there is one."""
        out = {} if self.threshold is None else {"threshold": self.threshold}
        return {**out, "recall": self.recall, "precision": self.precision, "f": self.f}


@dataclass(frozen=True, slots=True, eq=False)
class PRCurve:
    """Precision, recall and F at each threshold, f8 (T,), thresholds increasing."""

    thresholds: F8
    precision: F8
    recall: F8

    def __post_init__(self) -> None:
        for name in ("thresholds", "precision", "recall"):
            object.__setattr__(self, name, frozen(getattr(self, name), np.float64))

    @property
    def f(self) -> F8:
        """F at each threshold, f8 (T,)."""
        return f_measure(self.precision, self.recall)


def pr_curve(counts: BoundaryCounts | PixelCounts) -> PRCurve:
    """The PR curve of one image's counts or of a sum of many."""
    if isinstance(counts, BoundaryCounts):
        recall = ratio(counts.matched_gt, counts.total_gt)
        precision = ratio(counts.matched_pred, counts.total_pred)
    else:
        recall = ratio(counts.tp, counts.tp + counts.fn)
        precision = ratio(counts.tp, counts.tp + counts.fp)
    return PRCurve(counts.thresholds, precision, recall)


def best_point(curve: PRCurve) -> OperatingPoint:
    """The point of largest F, with 100 linear steps between neighbouring thresholds.

    Recall, precision and threshold are interpolated together; of equal bests the first stays.
    Source: maxF in collect_eval_bdry.m.
    """
    t, p, r, f = interpolated_best(curve.thresholds, curve.precision, curve.recall)
    return OperatingPoint(float(t), float(p), float(r), float(f))


def interpolated_best(
    thresholds: F8, precision: F8, recall: F8
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """`best_point` for arrays (..., T): threshold, precision, recall and F of shape (...).

    thresholds is (T,). Needs (..., 100 T) float64 of memory: resample in chunks.
    """
    if precision.shape[-1] == 1:
        p, r = precision[..., 0], recall[..., 0]
        return np.broadcast_to(thresholds[0], p.shape), p, r, f_measure(p, r)

    def between(values: F8) -> F8:
        low, high = values[..., :-1, None], values[..., 1:, None]
        steps = high * _STEPS + low * (1 - _STEPS)
        return steps.reshape(*steps.shape[:-2], -1)

    p, r, t = between(precision), between(recall), between(thresholds)
    f = f_measure(p, r)
    best = np.argmax(f, axis=-1)
    pick = best[..., None]
    p, r, f = (np.take_along_axis(a, pick, -1)[..., 0] for a in (p, r, f))
    return t[best], p, r, f


def image_best_index(counts: BoundaryCounts | PixelCounts) -> int:
    """The first threshold index of maximal F of one image, no interpolation (the OIS rule)."""
    return _best_index(pr_curve(counts))


def _best_index(curve: PRCurve) -> int:
    return int(np.argmax(curve.f))


def optimal_image_scale(counts: Sequence[BoundaryCounts | PixelCounts]) -> OperatingPoint:
    """OIS: each image gives its counts at its own best threshold; sums, then one P, R and F.

    Source: collect_eval_bdry.m. No images give zeros.
    """
    chosen = [_at(c, image_best_index(c)) for c in counts]
    return _scale_point(reduce(add, chosen)) if chosen else OperatingPoint(None, 0.0, 0.0, 0.0)


def _scale_point(total: Any) -> OperatingPoint:
    """P, R and F of counts at one threshold."""
    curve = pr_curve(total)
    return OperatingPoint(
        None, float(curve.precision[0]), float(curve.recall[0]), float(curve.f[0])
    )


def _at(counts: Any, index: int) -> Any:
    values = {
        name: array[index : index + 1] if array.ndim else array
        for name, array in counts.arrays().items()
    }
    return type(counts)(**{**values, "thresholds": np.ones(1)})


def average_precision(curve: PRCurve) -> float:
    """The official area: precision linear at recall 0, 0.01 .. 1, zero outside, sum x 0.01.

    Of equal recalls the first is kept; fewer than two distinct recalls give 0.
    Source: Area_PR in collect_eval_bdry.m.
    """
    recall, first = np.unique(curve.recall, return_index=True)
    if recall.size < 2:
        return 0.0
    levels = np.interp(RECALL_LEVELS, recall, curve.precision[first], left=0.0, right=0.0)
    return float(levels.sum() * 0.01)


def recall_at_precision(curve: PRCurve, precision: float = 0.5) -> float:
    """R50: recall interpolated over the distinct precisions at max(0.5, the lowest precision).

    0 where the curve never reaches that precision. Source: edges toolbox.
    """
    distinct, first = np.unique(curve.precision, return_index=True)
    target = max(precision, float(distinct[0]))
    return float(np.interp(target, distinct, curve.recall[first], right=0.0))


@dataclass(frozen=True, slots=True, eq=False)
class BoundaryScore:
    """The boundary benchmark of a data set; all scores in [0, 1].

    ods, ois  : best F at one threshold of all images, and at each image's own
    ap, r50   : area under the PR curve; recall at precision 0.5
    curve     : counts summed over the images, at each threshold
    per_image : (image id, its best point), in id order
    """

    ods: OperatingPoint
    ois: OperatingPoint
    ap: float
    r50: float
    n_images: int
    curve: PRCurve
    per_image: tuple[tuple[str, OperatingPoint], ...]

    def to_mapping(self) -> dict[str, Any]:
        """The `boundary` object of result.json."""
        return {
            "ods": self.ods.to_mapping(),
            "ois": self.ois.to_mapping(),
            "ap": self.ap,
            "r50": self.r50,
            "n_images": self.n_images,
        }


@dataclass(frozen=True, slots=True, eq=False)
class PixelScore:
    """The pixel benchmark of a data set, without tolerance; all scores in [0, 1].

    ods, ois, ap, curve, per_image : as in `BoundaryScore`
    auc_roc, eer : area under the ROC curve; equal error rate, NaN where it is undefined
    mae          : mean absolute error of the soft maps
    """

    ods: OperatingPoint
    ois: OperatingPoint
    ap: float
    auc_roc: float
    eer: float
    mae: float
    n_images: int
    curve: PRCurve
    per_image: tuple[tuple[str, OperatingPoint], ...]

    def to_mapping(self) -> dict[str, Any]:
        """The `pixel` object of result.json."""
        return {
            "ods": self.ods.to_mapping(),
            "ois": self.ois.to_mapping(),
            "ap": self.ap,
            "auc_roc": self.auc_roc,
            "eer": None if math.isnan(self.eer) else self.eer,
            "mae": self.mae,
            "n_images": self.n_images,
        }


def boundary_score(records: Iterable[ImageRecord]) -> BoundaryScore:
    """Score records that carry boundary counts, in any order.

    Images without a boundary pixel on either side count as zeros. Raises DataError for no records,
    one without boundary counts, or different thresholds. Source: collect_eval_bdry.m; R50: edges
    toolbox.
    """
    total, ois, per_image = _summed(records, "boundary")
    curve = pr_curve(total)
    return BoundaryScore(
        ods=best_point(curve),
        ois=ois,
        ap=average_precision(curve),
        r50=recall_at_precision(curve),
        n_images=len(per_image),
        curve=curve,
        per_image=per_image,
    )


def pixel_score(records: Iterable[ImageRecord]) -> PixelScore:
    """Score records that carry pixel counts, in any order. Raises as `boundary_score`.

    The area under ROC joins the measured points with (0, 0) and (1, 1) by straight lines; the EER
    is where that line has equal rates of false positives and false negatives. One class missing:
    area 0; EER 1 without positives, 0 without negatives.
    """
    total, ois, per_image = _summed(records, "pixel")
    curve = pr_curve(total)
    roc = _roc(total)
    return PixelScore(
        ods=best_point(curve),
        ois=ois,
        ap=average_precision(curve),
        auc_roc=roc.auc,
        eer=roc.eer,
        mae=float(ratio(total.abs_error_sum, total.n_pixels)),
        n_images=len(per_image),
        curve=curve,
        per_image=per_image,
    )


def _roc(counts: PixelCounts) -> ROCResult:
    """The ROC curve through the measured points, from (0, 0) to (1, 1)."""
    # Imported here: the curves make their ratios with this module.
    from bsdsbench.curves import Ranking, roc_from_ranking

    positives, negatives = counts.tp[0] + counts.fn[0], counts.fp[0] + counts.tn[0]
    return roc_from_ranking(
        Ranking.from_counts(
            counts.thresholds, counts.tp, counts.fp, positives, negatives, complete=True
        )
    )


def _summed(records: Iterable[ImageRecord], metric: str) -> tuple[Any, OperatingPoint, PerImage]:
    """The sum of all counts, OIS, and each image's best point: in one go, holding no counts."""
    total: Any = None
    at_best: Any = None
    per_image = []
    for image_id, counts in counts_in_order(records, metric):
        curve = pr_curve(counts)
        best = _at(counts, _best_index(curve))
        total = counts if total is None else total + counts
        at_best = best if at_best is None else at_best + best
        per_image.append((image_id, best_point(curve)))
    return total, _scale_point(at_best), tuple(per_image)


def counts_in_order(records: Iterable[ImageRecord], metric: str) -> Iterator[tuple[str, Any]]:
    """(image id, counts) in id order.

    Raises DataError for no records, one without such counts, or different thresholds.
    """
    if not isinstance(records, Records):
        records = sorted(records, key=lambda r: r.image_id)
    thresholds = None
    for record in records:
        counts = record.counts().get(metric)
        if counts is None:
            break
        found = counts.arrays()["thresholds"].tobytes()
        if thresholds not in (None, found):
            raise DataError(f"{metric} scores: images have different thresholds, expected the same")
        thresholds = found
        yield record.image_id, counts
    else:
        if thresholds is not None:
            return
    raise DataError(f"{metric} scores: expected every record to have {metric} counts")


def counts_by_id(records: Iterable[ImageRecord], metric: str) -> dict[str, Any]:
    """image_id -> counts, in id order. Raises as `counts_in_order`."""
    return dict(counts_in_order(records, metric))
