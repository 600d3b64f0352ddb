"""Region records to curves and scores. Pure: no disk, no kernels.

Official rules (collect_eval_reg.m), T thresholds:

- Covering: sums of covered and total area over images. ODS: the best single threshold, the first of
  ties. OIS: each image at its best threshold, the last of ties. Best: every annotated region with
  its best over all thresholds.
- PRI and VOI: means over images. ODS: the best of the mean curve, the first of ties. OIS: the mean
  of each image's best.

SEISM (PAMI 2016). Objects and parts, and pairs of pixels: per threshold the mean precision and the
mean recall over images, F of the means; ODS is its maximum, OIS the F of the means at each image's
threshold of best F, both the first of ties. AP: precision at 101 recall levels, outside ignored.
Humans: the published agreement (precision .6724, recall .4739) is a mean over left-out annotators
as well; sums of counts give less, as annotators with many regions agree less. `fop_summed` has it.
The other measures: means over images, ODS and OIS as for VOI; distances as a share of the image.
`others` has the errors, `similarities` 1 - error under SEISM's names and its normalised VOI.
VOI split and merge are taken at the thresholds that are best in VOI, so that they sum to its ODS
and OIS: each alone is least at an end of the grid.
A measure that always falls or rises with the threshold has its ODS at the end of the grid, which
says nothing of the method: `at_grid_end`.
Sums run in the order of the image ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import attrgetter
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.metrics.base import counts_by_id
from bsdsbench.metrics.region.region_record import RegionCounts
from bsdsbench.scores.counts import ImageRecord, frozen
from bsdsbench.scores.precision_recall import (
    OperatingPoint,
    PRCurve,
    average_precision,
    f_measure,
    one_point,
    or_none,
    ratio,
)
from bsdsbench.tables.read_only import ReadOnly, ReadOnlyDict
from bsdsbench.tables.result_object import ShownScore

F8 = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class MeasureScore(ReadOnly):
    """A measure of a data set: the best at one threshold, the mean of each image's best, the curve.

    curve is f8 (T,), its value at each threshold. at_grid_end: the first or the last of several
    thresholds is as good as any: the best says more of the grid than of the method.
    """

    ods: float
    ods_threshold: float
    ois: float
    curve: F8
    at_grid_end: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "curve", frozen(self.curve, np.float64))

    def to_mapping(self) -> dict[str, float | None]:
        """ods, ods_threshold, ois, None where undefined; and at_grid_end, true, where it is."""
        out: dict[str, float | None]
        out = {"ods": self.ods, "ods_threshold": self.ods_threshold, "ois": self.ois}
        if np.isnan(self.ods):  # runs of older versions lack some measures
            return dict.fromkeys(out)
        return {**out, "at_grid_end": True} if self.at_grid_end else out


@dataclass(frozen=True, slots=True, eq=False)
class CoveringScore(ReadOnly):
    """Covering of the ground truth: ODS, OIS, Best, and the curve, f8 (T,)."""

    ods: float
    ods_threshold: float
    ois: float
    best: float
    curve: F8

    def __post_init__(self) -> None:
        object.__setattr__(self, "curve", frozen(self.curve, np.float64))

    def to_mapping(self) -> dict[str, float]:
        """ods, ods_threshold, ois, best."""
        return {
            "ods": self.ods,
            "ods_threshold": self.ods_threshold,
            "ois": self.ois,
            "best": self.best,
        }


@dataclass(frozen=True, slots=True, eq=False)
class FScore:
    """A precision-recall measure whose data-set values are means over images.

    ap is NaN where the curve is one point: label maps have no area.
    """

    ods: OperatingPoint
    ois: OperatingPoint
    ap: float
    curve: PRCurve

    def to_mapping(self) -> dict[str, float | None]:
        """ods, ois (F) and ap, and where the ODS is: threshold, recall, precision."""
        return {
            "ods": self.ods.f,
            "ois": self.ois.f,
            "ap": or_none(self.ap),
            "ods_threshold": float(self.ods.threshold or 0.0),
            "ods_recall": self.ods.recall,
            "ods_precision": self.ods.precision,
        }


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RegionScore(ReadOnly, ShownScore):
    """The region benchmark of a data set.

    Parameters
    ----------
    thresholds : array
        The thresholds of the curve.
    n_images : int
        Number of images.
    covering, pri, voi : CoveringScore or MeasureScore
        The official measures.
    fop, pair_f : FScore
        Objects and parts; precision-recall over pairs of pixels.
    fop_summed : OperatingPoint
        Objects and parts from counts summed over images, at its best threshold.
    others : dict of str to MeasureScore
        Name -> MeasureScore, errors and distances, 0 is best: bgm, hamming_gt, hamming_pred,
        van_dongen (shares of the image area), bce, gce, lce, voi_per_log_area; the adapted Rand
        errors are_region, are_skimage, are_cremi; voi_split and voi_merge, which sum to voi.
    similarities : dict of str to MeasureScore
        SEISM's name -> MeasureScore, 1 is best: nvoi, dhd (hamming_gt), sdhd (hamming_pred), vd
        (van_dongen), bgm, bce, gce, lce.
    per_image : tuple of tuple of str, dict of str to float
        (image id, each measure's best and its threshold), in id order.
    """

    thresholds: F8
    n_images: int
    covering: CoveringScore
    pri: MeasureScore
    voi: MeasureScore
    fop: FScore
    fop_summed: OperatingPoint
    pair_f: FScore
    others: Mapping[str, MeasureScore] = field(default_factory=dict)
    similarities: Mapping[str, MeasureScore] = field(default_factory=dict)
    per_image: tuple[tuple[str, dict[str, float]], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "thresholds", frozen(self.thresholds, np.float64))
        for name in ("others", "similarities"):
            object.__setattr__(self, name, ReadOnlyDict(getattr(self, name)))

    def to_mapping(self) -> dict[str, Any]:
        """The `region` object of result.json."""
        named = {name: getattr(self, name) for name in ("covering", "pri", "voi", "fop", "pair_f")}
        mapped = {name: s.to_mapping() for name, s in {**named, **self.others}.items()}
        mapped["fop"]["summed"] = self.fop_summed.f
        similar = {name: s.to_mapping() for name, s in self.similarities.items()}
        return {**mapped, "similarities": similar, "n_images": self.n_images}

    def curves(self) -> dict[str, F8]:
        """Every measure at each threshold: name -> f8 (T,), `thresholds` first."""
        out = {"thresholds": self.thresholds}
        for name in ("covering", "pri", "voi"):
            out[name] = getattr(self, name).curve
        for name in ("fop", "pair"):
            curve = (self.fop if name == "fop" else self.pair_f).curve
            out[f"{name}_precision"], out[f"{name}_recall"] = curve.precision, curve.recall
            out[f"{name}_f"] = curve.f
        return {**out, **{name: score.curve for name, score in self.others.items()}}

    def official_rows(self) -> dict[str, list[tuple[float, ...]]]:
        """The five official tables: file name -> rows in the official column order."""
        cover, pri, voi = self.covering, self.pri, self.voi
        images: list[tuple[float, ...]] = [
            (i, row["covering_threshold"], row["covering"], row["covering_pred"])
            for i, (_, row) in enumerate(self.per_image, 1)
        ]
        best = (pri.ods_threshold, pri.ods, pri.ois, voi.ods_threshold, voi.ods, voi.ois)
        t = self.thresholds.tolist()
        return {
            "eval_cover.txt": [(cover.ods_threshold, cover.ods, cover.ois, cover.best)],
            "eval_cover_th.txt": list(zip(t, cover.curve.tolist(), strict=True)),
            "eval_cover_img.txt": images,
            "eval_RI_VOI.txt": [best],
            "eval_RI_VOI_thr.txt": list(
                zip(t, pri.curve.tolist(), voi.curve.tolist(), strict=True)
            ),
        }


def region_score(records: Iterable[ImageRecord]) -> RegionScore:
    """Score records that carry region counts, in any order.

    Parameters
    ----------
    records : sequence of ImageRecord
        One record per image.

    Returns
    -------
    RegionScore
        Covering, PRI, VOI and more.

    Raises
    ------
    DataError
        For no records, one without region counts, or different thresholds (sets of segmentations of
        unequal length).

    References
    ----------
    Source: collect_eval_reg.m; SEISM (see the module).

    Examples
    --------
    >>> import bsdsbench as bb
    >>> run = bb.evaluate("ucm2", "groundTruth", metrics="region")    # doctest: +SKIP
    >>> bb.region_score(run.records).covering.ods                     # doctest: +SKIP
    0.588
    """
    named: dict[str, RegionCounts] = counts_by_id(records, "region")
    images = list(named.values())
    return RegionScore(
        thresholds=images[0].thresholds,
        n_images=len(images),
        covering=_covering(images),
        pri=_score(images, lambda c: c.pri, highest=True),
        voi=_score(images, lambda c: c.voi),
        fop=_f_score(images, fop_curve),
        fop_summed=_fop_summed(images),
        pair_f=_f_score(images, pair_curve),
        others={
            name: _score(images, value, by=attrgetter("voi") if name in VOI_PARTS else value)
            for name, value in ERRORS.items()
        },
        similarities={
            name: _score(images, value, highest=True) for name, value in SIMILARITIES.items()
        },
        per_image=tuple((image_id, image_row(c)) for image_id, c in named.items()),
    )


def _van_dongen(c: RegionCounts) -> F8:
    return ratio(c.hamming_gt + c.hamming_pred, 2 * c.total_gt)


def _voi_per_log_area(c: RegionCounts) -> F8:
    return ratio(c.voi, np.log2(max(int(c.n_pixels), 1)))


VOI_PARTS = "voi_split", "voi_merge"  # taken where VOI is best
ADAPTED_RAND = "are_region", "are_skimage", "are_cremi"

# One image's value at each threshold; 0 is best.
ERRORS: Mapping[str, Callable[[RegionCounts], F8]] = MappingProxyType(
    {
        "bgm": lambda c: ratio(c.bgm, c.total_gt),
        "hamming_gt": lambda c: ratio(c.hamming_gt, c.total_gt),
        "hamming_pred": lambda c: ratio(c.hamming_pred, c.total_gt),
        "van_dongen": _van_dongen,
        "bce": lambda c: c.bce,
        "gce": lambda c: c.gce,
        "lce": lambda c: c.lce,
        "voi_per_log_area": _voi_per_log_area,
        **{name: attrgetter(name) for name in (*VOI_PARTS, *ADAPTED_RAND)},
    }
)


# SEISM's names of the errors that it prints as 1 - x.
SIMILAR_TO: Mapping[str, str] = MappingProxyType(
    {
        **{"dhd": "hamming_gt", "sdhd": "hamming_pred", "vd": "van_dongen"},
        **{name: name for name in ("bgm", "bce", "gce", "lce")},
    }
)


def _similarity(error: str) -> Callable[[RegionCounts], F8]:
    return lambda c: 1 - ERRORS[error](c)


# One image's value at each threshold as SEISM prints it, under its names; 1 is best.
SIMILARITIES: Mapping[str, Callable[[RegionCounts], F8]] = MappingProxyType(
    {
        "nvoi": lambda c: c.nvoi,
        **{name: _similarity(error) for name, error in SIMILAR_TO.items()},
    }
)


def fop_curve(c: RegionCounts) -> PRCurve:
    """One image's objects-and-parts precision and recall at each threshold."""
    return PRCurve(c.thresholds, c.fop_precision, c.fop_recall)


def pair_curve(c: RegionCounts) -> PRCurve:
    """One image's precision and recall over pairs of pixels, means over annotators."""
    return PRCurve(c.thresholds, c.pair_precision, c.pair_recall)


def _fold(arrays: Sequence[Any]) -> Any:
    """The sum in the order given: the same bits whatever computed the parts."""
    return reduce(np.add, arrays)


def _covering(images: Sequence[RegionCounts]) -> CoveringScore:
    total = _fold([c.total_gt for c in images])
    curve = ratio(_fold([c.covered_gt for c in images]), total)
    best = int(np.argmax(curve))
    at_best = [c.covered_gt[_last_best(ratio(c.covered_gt, c.total_gt))] for c in images]
    return CoveringScore(
        ods=float(curve[best]),
        ods_threshold=float(images[0].thresholds[best]),
        ois=float(ratio(_fold(at_best), total[0])),
        best=float(ratio(_fold([c.best_covered_gt for c in images]), total[0])),
        curve=curve,
    )


def _score(
    images: Sequence[RegionCounts],
    value: Callable[[RegionCounts], F8],
    highest: bool = False,
    by: Callable[[RegionCounts], F8] | None = None,
) -> MeasureScore:
    """by: the measure whose best thresholds are taken, if not those of `value` itself."""
    pick = np.argmax if highest else np.argmin
    values = [value(c) for c in images]
    deciding = [by(c) for c in images] if by else values
    curve = _fold(values) / len(images)
    mean = _fold(deciding) / len(images)
    best = int(pick(mean))
    bests = [v[pick(d)] for v, d in zip(values, deciding, strict=True)]
    return MeasureScore(
        float(curve[best]),
        float(images[0].thresholds[best]),
        float(_fold(bests) / len(images)),
        curve,
        at_grid_end=bool(curve.size > 1 and mean[best] in (mean[0], mean[-1])),
    )


def _f_score(images: Sequence[RegionCounts], curve_of: Callable[[RegionCounts], PRCurve]) -> FScore:
    curves = [curve_of(c) for c in images]
    mean = PRCurve(
        images[0].thresholds,
        _fold([c.precision for c in curves]) / len(images),
        _fold([c.recall for c in curves]) / len(images),
    )
    at = [int(np.argmax(c.f)) for c in curves]
    precision = float(_fold([c.precision[k] for c, k in zip(curves, at, strict=True)]))
    recall = float(_fold([c.recall[k] for c, k in zip(curves, at, strict=True)]))
    return FScore(
        ods=_point(mean, int(np.argmax(mean.f))),
        ois=_operating(None, precision / len(images), recall / len(images)),
        ap=float("nan") if one_point(mean.recall) else average_precision(mean),
        curve=mean,
    )


def _fop_summed(images: Sequence[RegionCounts]) -> OperatingPoint:
    precision = ratio(
        _fold([c.fop_pred for c in images]), _fold([c.fop_pred_candidates for c in images])
    )
    recall = ratio(_fold([c.fop_gt for c in images]), _fold([c.fop_gt_candidates for c in images]))
    curve = PRCurve(images[0].thresholds, precision, recall)
    return _point(curve, int(np.argmax(curve.f)))


def _point(curve: PRCurve, k: int) -> OperatingPoint:
    return _operating(float(curve.thresholds[k]), float(curve.precision[k]), float(curve.recall[k]))


def _operating(threshold: float | None, precision: float, recall: float) -> OperatingPoint:
    return OperatingPoint(threshold, precision, recall, float(f_measure(precision, recall)))


def image_row(c: RegionCounts) -> dict[str, float]:
    """One image's bests, at the first threshold of ties (as eval_cover_img.txt has it)."""
    covering, fop = ratio(c.covered_gt, c.total_gt), fop_curve(c).f
    at, at_pri, at_voi, at_fop = (int(np.argmax(v)) for v in (covering, c.pri, -c.voi, fop))
    return {
        "covering": float(covering[at]),
        "covering_threshold": float(c.thresholds[at]),
        "covering_pred": float(ratio(c.covered_pred, c.total_pred)[at]),
        "pri": float(c.pri[at_pri]),
        "pri_threshold": float(c.thresholds[at_pri]),
        "voi": float(c.voi[at_voi]),
        "voi_threshold": float(c.thresholds[at_voi]),
        "fop": float(fop[at_fop]),
        "fop_threshold": float(c.thresholds[at_fop]),
        **{name: float(getattr(c, name)[at_voi]) for name in VOI_PARTS},
        **_lowest(c, ADAPTED_RAND),
    }


def _lowest(c: RegionCounts, names: Sequence[str]) -> dict[str, float]:
    """Each error's least value, and its threshold."""
    out: dict[str, float] = {}
    for name in names:
        values = getattr(c, name)
        at = int(np.argmin(values))
        out |= {name: float(values[at]), f"{name}_threshold": float(c.thresholds[at])}
    return out


def _last_best(values: F8) -> int:
    return int(values.size - 1 - np.argmax(values[::-1]))
