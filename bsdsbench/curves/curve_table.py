"""Every AP and AUC that papers and libraries report, side by side on the same data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bsdsbench.curves.areas import auc_pr, auccalculator_areas, davis_goadrich_area, largest_beyond
from bsdsbench.curves.geometry import achievable_pr
from bsdsbench.curves.ranked import pr_from_ranking, roc_from_ranking
from bsdsbench.curves.ranking import Ranking, rank
from bsdsbench.curves.samples import F8, Pair, check_samples
from bsdsbench.files.errors import DataError
from bsdsbench.protocol.constants import even_thresholds
from bsdsbench.scores.curve import PRCurve, area
from bsdsbench.scores.ratios import ratio


@dataclass(frozen=True, slots=True)
class AreaRow:
    """One way to make one number of a ranking.

    Parameters
    ----------
    name : str
        Program or paper, and what it calls the number.
    space : str
        "PR" or "ROC".
    value : float
        The number; NaN where that program gives none (no positives, scores it rejects).
    points : str
        What a point of its curve is.
    ties : str
        What it does with equal scores.
    start : str
        What it puts at recall 0 (PR).
    rule : str
        How it adds up.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> row = curves.area_table([1, -1, 1], [0.9, 0.5, 0.4])[0]
    >>> row.name, round(row.value, 3)
    ('scikit-learn average_precision_score', 0.833)
    """

    name: str
    space: str
    value: float
    points: str
    ties: str
    start: str
    rule: str

    def to_mapping(self) -> dict[str, Any]:
        """Plain values, for JSON.

        Returns
        -------
        dict
            Name, value and who uses it.
        """
        return asdict(self)


def area_table(labels: ArrayLike, scores: ArrayLike, *, bins: int = 100) -> tuple[AreaRow, ...]:
    """Every AP and AUC variant of the same labels and scores, with its name and its rule.

    The values are those of scikit-learn 1.9, torchmetrics 1.9 (read, not run), VLFeat, the PASCAL
    VOC and COCO development kits, AUCCalculator and the BSDS benchmark, remade here from their
    definitions. Without positives every PR number is NaN.

    Parameters
    ----------
    labels, scores : array_like
        As in `pr`.
    bins : int
        Thresholds of the binned torchmetrics form, even on [0, 1].

    Returns
    -------
    tuple of AreaRow
        One row per variant.

    Raises
    ------
    DataError
        As `pr` does.

    Examples
    --------
    >>> from bsdsbench import curves
    >>> rows = curves.area_table([1, -1, 1], [0.9, 0.5, 0.4])
    >>> len(rows) > 5
    True
    """
    if bins < 2:
        raise DataError(f"bins {bins}: expected 2 or more")
    data = _Data(labels, scores, bins)
    rows = []
    for name, (value, words) in _VARIANTS.items():
        space = "ROC" if name in _IN_ROC_SPACE else "PR"
        number = float("nan") if space == "PR" and not data.merged.positives else value(data)
        rows.append(AreaRow(name, space, float(number), *words.split(" | ")))
    return tuple(rows)


class _Data:
    """The rankings the variants share, each made once."""

    def __init__(self, labels: ArrayLike, scores: ArrayLike, bins: int) -> None:
        positive, negative, s = check_samples(labels, scores)
        signs = positive.astype(np.int8) - negative.astype(np.int8)
        self.bins = bins
        self.unit = s.size == 0 or bool(s.min() >= 0 and s.max() <= 1)
        self.finite = bool(np.isfinite(s).all())
        self.merged = rank(signs, s, ties="merge")
        self.sample = rank(signs, s)
        # MATLAB and numpy sort -inf like any score.
        self.listed = rank(signs, s, include_inf=True)
        # torchmetrics squeezes scores that are no probabilities, in single precision.
        self.torch = self.merged if self.unit else rank(signs, _sigmoid(s), ties="merge")
        self.pr_merged = pr_from_ranking(self.merged)
        self.pr_sample = pr_from_ranking(self.sample)

    def sklearn(self, name: str) -> float:
        """A number of the merged PR curve; scikit-learn rejects infinite scores."""
        return float(getattr(self.pr_merged, name)) if self.finite else float("nan")

    def listed_points(self) -> Pair:
        """Precision and recall after each sample, without a conventional first point."""
        r = self.listed
        return ratio(r.tp[1:], r.tp[1:] + r.fp[1:]), ratio(r.tp[1:], r.positives)


def _sigmoid(s: Any) -> Any:
    with np.errstate(over="ignore"):
        return (1 / (1 + np.exp(-s.astype(np.float32)))).astype(np.float32)


def _at(ranking: Ranking, thresholds: F8) -> Pair:
    """Precision and recall for score >= each threshold."""
    k = np.searchsorted(-ranking.thresholds, -thresholds, side="right") - 1
    # Point 0 has threshold +inf but nothing predicted; an infinite threshold is never asked for.
    tp, fp = ranking.tp[k], ranking.fp[k]
    return ratio(tp, tp + fp), ratio(tp, ranking.positives)


def _sklearn_roc(d: _Data) -> float:
    if not d.finite or not d.merged.positives or not d.merged.negatives:
        return float("nan")
    return roc_from_ranking(d.merged).auc


def _torch_binned(d: _Data) -> float:
    precision, recall = _at(d.torch, np.linspace(0, 1, d.bins))
    return float(-np.dot(np.diff(np.r_[recall, 0]), precision))


def _coco(d: _Data) -> float:
    # COCO's own levels, rounding included: linspace, not i/100.
    return float(largest_beyond(*d.listed_points(), np.linspace(0, 1, 101)).mean())


def _pascal_2010(d: _Data) -> float:
    precision, recall = d.listed_points()
    return auc_pr(np.maximum.accumulate(precision[::-1])[::-1], recall, rule="step")


def _hull(d: _Data) -> float:
    p, n = d.merged.positives, d.merged.negatives
    if not n:
        return 1.0
    best = achievable_pr(d.merged.fp / n, d.merged.tp / p, p, n)
    return auc_pr(*best)


def _auccalculator(d: _Data) -> float:
    m = d.merged
    # A ranking without negatives has precision 1 everywhere.
    return auccalculator_areas(m.tp, m.fp, m.positives, m.negatives)[0] if m.negatives else 1.0


def _bsds(d: _Data) -> float:
    if not d.unit:
        return float("nan")
    thresholds = np.array(even_thresholds(99))
    return float(area(PRCurve(thresholds, *_at(d.merged, thresholds))))


_MERGED, _SAMPLE = "per distinct score | merged", "per sample | input order"
_IN_ROC_SPACE = ("scikit-learn roc_auc_score", "VLFeat roc auc")
# name -> value, and "points | ties | start | rule"
_VARIANTS: dict[str, tuple[Callable[[_Data], float], str]] = {
    "scikit-learn average_precision_score": (lambda d: d.sklearn("ap"), f"{_MERGED} | none | step"),
    "scikit-learn precision_recall_curve + auc": (
        lambda d: d.sklearn("auc"),
        f"{_MERGED} | (0, 1) | trapezoid",
    ),
    "torchmetrics AveragePrecision, exact": (
        lambda d: pr_from_ranking(d.torch).ap,
        f"{_MERGED} | (0, 1) | step",
    ),
    "torchmetrics AveragePrecision, binned": (
        _torch_binned,
        "per threshold, even on [0, 1] | by bin | (0, 1) | step",
    ),
    "VLFeat ap": (lambda d: d.pr_sample.ap, f"{_SAMPLE} | none | step"),
    "VLFeat auc": (lambda d: d.pr_sample.auc, f"{_SAMPLE} | (0, 1) | trapezoid"),
    "VLFeat ap, Interpolate": (
        lambda d: pr_from_ranking(d.sample, interpolate=True).ap,
        f"{_SAMPLE} | none | step under the envelope",
    ),
    "VLFeat ap_interp_11": (
        lambda d: d.pr_sample.ap_11,
        f"{_SAMPLE} | (0, 1) | mean of 11 recall levels",
    ),
    "PASCAL VOC 2007 AP": (
        lambda d: auc_pr(*d.listed_points(), rule="11-point"),
        f"{_SAMPLE} | none | mean of 11 recall levels",
    ),
    "PASCAL VOC 2010 AP": (_pascal_2010, f"{_SAMPLE} | none | step under the envelope"),
    "COCO AP": (_coco, f"{_SAMPLE} | none | mean of 101 recall levels"),
    "Davis-Goadrich, count-linear": (
        lambda d: davis_goadrich_area(d.merged.tp, d.merged.fp, d.merged.positives),
        f"{_MERGED}, count-linear inside"
        " | first precision flat; false positives that come first count | closed form",
    ),
    "Davis-Goadrich, achievable (ROC hull)": (
        _hull,
        "hull corners | merged | first precision flat | closed form",
    ),
    "AUCCalculator": (
        _auccalculator,
        "per distinct score and whole TP | merged, count-linear inside"
        " | first precision flat | trapezoid",
    ),
    "BSDS area, 99 thresholds": (
        _bsds,
        "per threshold | by threshold | 0 outside the recall range"
        " | linear at 101 recall levels, sum / 100",
    ),
    "scikit-learn roc_auc_score": (_sklearn_roc, f"{_MERGED} | (0, 0) | trapezoid"),
    "VLFeat roc auc": (
        lambda d: roc_from_ranking(d.sample).auc,
        f"{_SAMPLE} | (0, 0) | rectangles",
    ),
}
