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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.metrics.region.region_record import RegionCounts
from bsdsbench.scores.counts import Stack, frozen
from bsdsbench.scores.curve import OperatingPoint, PRCurve, average_precision, best, best_point
from bsdsbench.scores.ratios import Weights, f_measure, or_none, ratio, weighted_mean, weighted_sum
from bsdsbench.tables.read_only import ReadOnly, ReadOnlyDict
from bsdsbench.tables.result_object import ShownScore

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]


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
    at_grid_end: bool

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
            "ods_threshold": self.ods.threshold,
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

    Examples
    --------
    >>> import numpy as np
    >>> import bsdsbench as bb
    >>> labels = np.repeat([[1, 2]], 4, axis=0)
    >>> record = bb.ImageRecord("a", (4, 2), {"region": bb.region_counts([labels], [labels])})
    >>> score = bb.region_score([record])
    >>> score.covering.ods, score.voi.ods
    (1.0, 0.0)
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
        named = {name: getattr(self, name) for name in ("covering", "pri", "voi", "fop", "pair_f")}
        mapped = {name: s.to_mapping() for name, s in {**named, **self.others}.items()}
        mapped["fop"]["summed"] = self.fop_summed.f
        similar = {name: s.to_mapping() for name, s in self.similarities.items()}
        return {**mapped, "similarities": similar, "n_images": self.n_images}

    def curves(self) -> dict[str, F8]:
        """Every measure at each threshold: name -> f8 (T,), `thresholds` first.

        Returns
        -------
        dict
            Name -> array, each (T,).
        """
        out = {"thresholds": self.thresholds}
        for name in ("covering", "pri", "voi"):
            out[name] = getattr(self, name).curve
        for name in ("fop", "pair"):
            curve = (self.fop if name == "fop" else self.pair_f).curve
            out[f"{name}_precision"], out[f"{name}_recall"] = curve.precision, curve.recall
            out[f"{name}_f"] = curve.f
        return {**out, **{name: score.curve for name, score in self.others.items()}}

    def official_rows(self) -> dict[str, list[tuple[float, ...]]]:
        """The five official tables: file name -> rows in the official column order.

        Returns
        -------
        dict
            File name -> rows.
        """
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


def _van_dongen(c: RegionCounts) -> F8:
    return ratio(c.hamming_gt + c.hamming_pred, 2 * c.total_gt)


def _voi_per_log_area(c: RegionCounts) -> F8:
    """VOI / log2(N), in [0, 1]; 0 for a single pixel. Source: Meila 2007."""
    return ratio(c.voi, np.log2(c.n_pixels)[..., None])


VOI_PARTS = "voi_split", "voi_merge"  # taken where VOI is best
ADAPTED_RAND = "are_region", "are_skimage", "are_cremi"

# The value of an image, or of a stack of them, at each threshold; 0 is best.
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
    {"nvoi": lambda c: c.nvoi, **{name: _similarity(error) for name, error in SIMILAR_TO.items()}}
)


def fop_curve(c: Any) -> PRCurve:
    """Objects-and-parts precision and recall of one image, or of each of a stack."""
    return PRCurve(c.thresholds, c.fop_precision, c.fop_recall)


def pair_curve(c: Any) -> PRCurve:
    """The same over pairs of pixels, means over annotators."""
    return PRCurve(c.thresholds, c.pair_precision, c.pair_recall)


# What is a mean over images: its values, whether the largest is best, and the measure whose best
# thresholds are taken.
MEASURES: Mapping[str, tuple[Callable[[Any], F8], bool, str]] = MappingProxyType(
    {
        "pri": (attrgetter("pri"), True, "pri"),
        "voi": (attrgetter("voi"), False, "voi"),
        **{n: (value, False, "voi" if n in VOI_PARTS else n) for n, value in ERRORS.items()},
        **{
            f"similarities.{n}": (value, True, f"similarities.{n}")
            for n, value in SIMILARITIES.items()
        },
    }
)


@dataclass(frozen=True, slots=True)
class RegionCurves:
    """The region measures of S weighted data sets at each threshold: all scores come of them.

    covering (S, T), fop, pair_f and fop_summed (stacks of S curves), means (measure -> (S, T))
    """

    covering: F8
    fop: PRCurve
    pair_f: PRCurve
    fop_summed: PRCurve
    means: Mapping[str, F8]

    @classmethod
    def of(cls, c: Any, weights: Weights) -> RegionCurves:
        """From a stack of counts, as attributes."""

        def ratio_of_sums(top: F8, bottom: I8) -> F8:
            return ratio(weighted_sum(weights, top), weighted_sum(weights, bottom))

        def mean_curve(curve: PRCurve) -> PRCurve:
            p, r = (weighted_mean(weights, a) for a in (curve.precision, curve.recall))
            return PRCurve(c.thresholds, p, r)

        n = weights.sum(axis=1)[:, None]
        return cls(
            ratio_of_sums(c.covered_gt, c.total_gt),
            mean_curve(fop_curve(c)),
            mean_curve(pair_curve(c)),
            PRCurve(
                c.thresholds,
                ratio_of_sums(c.fop_pred, c.fop_pred_candidates),
                ratio_of_sums(c.fop_gt, c.fop_gt_candidates),
            ),
            {name: ratio(weighted_sum(weights, m[0](c)), n) for name, m in MEASURES.items()},
        )


def region_columns(stack: Stack, weights: Weights) -> dict[str, F8]:
    """Every region score of each weighted data set, (S,); thresholds under KEY_threshold."""
    c = SimpleNamespace(**stack)
    curves, t = RegionCurves.of(c, weights), c.thresholds
    images, samples = np.arange(len(c.pri)), np.arange(len(weights))
    total = weighted_sum(weights, c.total_gt[:, 0])
    best_one = curves.covering.argmax(axis=1)
    at_own = c.covered_gt[images, _last_best(ratio(c.covered_gt, c.total_gt))]
    out = {
        "covering.ods": curves.covering[samples, best_one],
        "covering.ods_threshold": t[best_one],
        "covering.ois": ratio(weighted_sum(weights, at_own), total),
        "covering.best": ratio(weighted_sum(weights, c.best_covered_gt), total),
        "fop.summed": curves.fop_summed.f.max(axis=1),
    }
    n = weights.sum(axis=1)
    for name, (value, highest, by) in MEASURES.items():
        deciding, _, _ = MEASURES[by]
        first_best = np.argmax if highest else np.argmin
        at = first_best(curves.means[by], axis=1)
        own = value(c)[images, first_best(deciding(c), axis=1)]
        out[f"{name}.ods"] = curves.means[name][samples, at]
        out[f"{name}.ods_threshold"] = t[at]
        out[f"{name}.ois"] = ratio(weighted_sum(weights, own), n)
    for name, mean, each in (
        ("fop", curves.fop, fop_curve(c)),
        ("pair_f", curves.pair_f, pair_curve(c)),
    ):
        out |= _f_columns(name, mean, each, weights)
    return out


def _f_columns(name: str, mean: PRCurve, each: PRCurve, weights: Weights) -> dict[str, F8]:
    """F of mean precision and mean recall: at one threshold, at each image's best, AP."""
    ods = best(mean, "maximum")
    images, at = np.arange(len(each.f)), each.f.argmax(axis=1)
    own_p, own_r = (weighted_mean(weights, a[images, at]) for a in (each.precision, each.recall))
    return {
        f"{name}.ods": ods.f,
        f"{name}.ods_threshold": ods.threshold,
        f"{name}.ods_recall": ods.recall,
        f"{name}.ods_precision": ods.precision,
        f"{name}.ois": f_measure(own_p, own_r),
        f"{name}.ois_recall": own_r,
        f"{name}.ois_precision": own_p,
        f"{name}.ap": average_precision(mean),
    }


def region_result(values: Mapping[str, float], stack: Stack, ids: Sequence[str]) -> RegionScore:
    """The score with these columns, and its curves."""
    c = SimpleNamespace(**stack)
    curves = RegionCurves.of(c, np.ones((1, len(ids)), np.int64))

    def measure(name: str) -> MeasureScore:
        curve = curves.means[name][0]
        by = curves.means[MEASURES[name][2]][0]
        found = values[f"{name}.ods_threshold"]
        at = by[np.searchsorted(c.thresholds, found)]
        ends = bool(curve.size > 1 and at in (by[0], by[-1]))
        return MeasureScore(values[f"{name}.ods"], found, values[f"{name}.ois"], curve, ends)

    def f_score(name: str, curve: PRCurve) -> FScore:
        t, p, r, own_p, own_r = (
            values[f"{name}.{k}"]
            for k in ("ods_threshold", "ods_precision", "ods_recall", "ois_precision", "ois_recall")
        )
        return FScore(
            OperatingPoint(t, p, r, values[f"{name}.ods"]),
            OperatingPoint(None, own_p, own_r, values[f"{name}.ois"]),
            values[f"{name}.ap"],
            PRCurve(c.thresholds, curve.precision[0], curve.recall[0]),
        )

    summed = curves.fop_summed
    one = PRCurve(c.thresholds, summed.precision[0], summed.recall[0])
    ods, at, ois, every = (values[f"covering.{k}"] for k in ("ods", "ods_threshold", "ois", "best"))
    rows = (SimpleNamespace(**_image(stack, i)) for i in range(len(ids)))
    return RegionScore(
        thresholds=c.thresholds,
        n_images=len(ids),
        covering=CoveringScore(ods, at, ois, every, curves.covering[0]),
        pri=measure("pri"),
        voi=measure("voi"),
        fop=f_score("fop", curves.fop),
        fop_summed=best_point(one, "maximum"),
        pair_f=f_score("pair_f", curves.pair_f),
        others={name: measure(name) for name in ERRORS},
        similarities={name: measure(f"similarities.{name}") for name in SIMILARITIES},
        per_image=tuple((i, image_row(row)) for i, row in zip(ids, rows, strict=True)),
    )


def _image(stack: Stack, i: int) -> dict[str, Any]:
    return {name: a if name == "thresholds" else a[i] for name, a in stack.items()}


def image_row(c: Any) -> dict[str, float]:
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


def _lowest(c: Any, names: Sequence[str]) -> dict[str, float]:
    """Each error's least value, and its threshold."""
    out: dict[str, float] = {}
    for name in names:
        values = getattr(c, name)
        at = int(np.argmin(values))
        out |= {name: float(values[at]), f"{name}_threshold": float(c.thresholds[at])}
    return out


def _last_best(values: F8) -> NDArray[np.intp]:
    """The last index of the largest value of each image (N, T)."""
    return values.shape[-1] - 1 - values[..., ::-1].argmax(axis=-1)
