"""Salient object detection: how well a soft map marks the pixels of a mask, without tolerance.

Measures of one image are in `SaliencyCounts`; `saliency_score` makes those of a data set. Two
ways to get there are in use and give different numbers, so the names tell them apart: `*_mean` is
the mean over images of the image's value (at each threshold, where there are thresholds, and then
the best one), `*_sum` is one ratio of the counts added over images. `max_f_pr` is a third: F of the
mean precision and the mean recall.

Thresholds are the levels 0 .. 255 of the map as an 8-bit picture, `>=`. `max_*` is the largest
value of the mean curve over the levels, `mean_*` its mean, `adaptive_*` the value at each image's
own threshold; what has none of these words (IoU, Dice, BER) is at one half. The rules in which
programs differ are fields of `protocol.saliency`; the measures: bsdsbench.metrics.salient_measures.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.errors import DataError, ShapeError
from bsdsbench.loaders.inputs import GroundTruth, Prediction
from bsdsbench.metrics import salient_measures as measures
from bsdsbench.metrics.base import Column, Metric, counts_in_order
from bsdsbench.metrics.sampling import MeanSampler
from bsdsbench.metrics.soft_maps import invert
from bsdsbench.protocol.protocol import Protocol, SaliencyParams
from bsdsbench.scores.counts import ArrayRecord, ImageRecord, frozen
from bsdsbench.scores.precision_recall import ratio
from bsdsbench.tables.result_object import ShownScore

F8 = NDArray[np.float64]
LEVELS = 256


@dataclass(frozen=True, slots=True, eq=False)
class SaliencyCounts(ArrayRecord):
    """One image: counts at 256 levels and at the adaptive threshold, and its own measures.

    tp, fp : i8 (257,), last the adaptive threshold; half_tp, half_fp : i8 () at
    0.5; positives, pixels : i8 (), mask pixels and all pixels; abs_error_sum : f8 (), sum of
    |map - mask|; s_measure, weighted_f : f8 (). Measures of one image do not add; scores take the
    images one by one. Raises ShapeError for arrays of other shapes.
    """

    tp: NDArray[np.int64]
    fp: NDArray[np.int64]
    half_tp: NDArray[np.int64]
    half_fp: NDArray[np.int64]
    positives: NDArray[np.int64]
    pixels: NDArray[np.int64]
    abs_error_sum: F8
    s_measure: F8
    weighted_f: F8

    def __post_init__(self) -> None:
        floats = ("abs_error_sum", "s_measure", "weighted_f")
        for name in (f.name for f in fields(self)):
            array = frozen(getattr(self, name), np.float64 if name in floats else np.int64)
            expected = (257,) if name in ("tp", "fp") else ()
            if array.shape != expected:
                raise ShapeError(f"{name}: shape {array.shape}, expected {expected}")
            object.__setattr__(self, name, array)


@dataclass(frozen=True, slots=True, repr=False)
class SaliencyScore(ShownScore):
    """Measures of a data set; see the module for `_mean`, `_sum` and `_pr`."""

    n_images: int
    mae_mean: float
    mae_sum: float
    max_f_mean: float
    max_f_pr: float
    max_f_sum: float
    adaptive_f_mean: float
    adaptive_f_sum: float
    s_measure_mean: float
    max_e_mean: float
    adaptive_e_mean: float
    weighted_f_mean: float
    iou_mean: float
    iou_sum: float
    dice_mean: float
    dice_sum: float
    ber_mean: float
    ber_sum: float
    mean_f_mean: float
    mean_e_mean: float
    mean_iou_mean: float
    max_iou_mean: float
    adaptive_iou_mean: float
    mean_dice_mean: float
    max_dice_mean: float
    adaptive_dice_mean: float
    mean_ber_mean: float
    min_ber_mean: float
    adaptive_ber_mean: float

    def to_mapping(self) -> dict[str, Any]:
        """Name -> number."""
        return asdict(self)


def saliency_counts(
    soft: NDArray[Any],
    mask: NDArray[np.bool_],
    params: SaliencyParams | None = None,
    *,
    what: str = "saliency",
) -> SaliencyCounts:
    """All measures of one image.

    soft : (H, W) uint8, uint16 or float in [0, 1]; mask : (H, W) bool
    params : the conventions, those of the preset if None; what : names the image in errors
    Raises ShapeError if the sizes differ, DataError for an empty image.
    """
    rules, mask = params or SaliencyParams(), np.asarray(mask, bool)
    value = measures.strengths(soft, rules)
    if value.shape != mask.shape:
        raise ShapeError(f"{what}: map {value.shape}, expected the mask's {mask.shape}")
    if not value.size:
        raise DataError(f"{what}: empty image, expected at least one pixel")
    levels = measures.level_map(value, rules.levels)
    tp, fp = (_at_least(levels[where]) for where in (mask, ~mask))
    adaptive = value >= measures.adaptive_threshold(value, rules.cap)
    half = measures.at_half(value, rules.operator)
    return SaliencyCounts(
        np.append(tp, (adaptive & mask).sum()),
        np.append(fp, (adaptive & ~mask).sum()),
        (half & mask).sum(),
        (half & ~mask).sum(),
        mask.sum(),
        np.array(mask.size),
        np.abs(value - mask).sum(dtype=np.float64),
        np.array(measures.s_measure(value, mask, centroid=rules.centroid)),
        np.array(measures.weighted_f(value, mask)),
    )


def _at_least(levels: NDArray[np.uint8]) -> NDArray[np.int64]:
    """How many values are >= k, for k = 0 .. 255."""
    return np.cumsum(np.bincount(levels.ravel(), minlength=256)[::-1])[::-1]


@dataclass(frozen=True, slots=True, eq=False)
class _Stack:
    """The counts of N images as arrays: tp, fp (N, 257), the others (N,) or (N, 1)."""

    tp: NDArray[np.int64]
    fp: NDArray[np.int64]
    half: tuple[NDArray[np.int64], NDArray[np.int64]]
    positives: NDArray[np.int64]
    pixels: NDArray[np.int64]
    error: F8
    s_measure: F8
    weighted_f: F8

    @classmethod
    def of(cls, images: Sequence[SaliencyCounts]) -> _Stack:
        """From the counts of one image or more."""
        tp, fp, hit, false, pos, n, *floats = (
            np.array([getattr(c, f.name) for c in images]) for f in fields(SaliencyCounts)
        )
        return cls(tp, fp, (hit, false), pos, n, *floats)

    def values(self, rules: SaliencyParams) -> tuple[dict[str, F8], dict[str, F8]]:
        """Each image's numbers (N,), and its curves (N, 257), by their names in the score."""
        pos, n = self.positives[:, None], self.pixels[:, None]
        curves = {
            "f": measures.f_beta(self.tp, self.fp, pos, rules.beta2),
            "e": measures.e_measure(self.tp, self.fp, pos, n, rules.e_divisor),
            "iou": measures.iou(self.tp, self.fp, pos),
            "dice": measures.dice(self.tp, self.fp, pos),
            "ber": measures.balanced_error(self.tp, self.fp, pos, n),
        }
        numbers = {
            "mae": ratio(self.error, self.pixels),
            "s_measure": self.s_measure,
            "weighted_f": self.weighted_f,
            "iou": measures.iou(*self.half, self.positives),
            "dice": measures.dice(*self.half, self.positives),
            "ber": measures.balanced_error(*self.half, self.positives, self.pixels),
            **{f"adaptive_{name}": curve[:, LEVELS] for name, curve in curves.items()},
            **{f"mean_{name}": curve[:, :LEVELS].mean(1) for name, curve in curves.items()},
        }
        return numbers, {name: curve[:, :LEVELS] for name, curve in curves.items()}

    def summed(self, rules: SaliencyParams) -> dict[str, float]:
        """Ratios of counts added over the images."""
        tp, fp, pos, n = (a.sum(0) for a in (self.tp, self.fp, self.positives, self.pixels))
        hit, false = (a.sum() for a in self.half)
        f = measures.f_beta(tp, fp, pos, rules.beta2)
        positives = self.positives[:, None]
        mean_p = ratio(self.tp, self.tp + self.fp).mean(0)
        mean_r = ratio(self.tp, positives).mean(0)
        found = {
            "mae_sum": ratio(self.error.sum(), n),
            "max_f_sum": f[:LEVELS].max(),
            "max_f_pr": measures.f_of(mean_p, mean_r, rules.beta2)[:LEVELS].max(),
            "adaptive_f_sum": f[LEVELS],
            "iou_sum": measures.iou(hit, false, pos),
            "dice_sum": measures.dice(hit, false, pos),
            "ber_sum": measures.balanced_error(hit, false, pos, n),
        }
        return {name: float(value) for name, value in found.items()}


def saliency_score(
    images: Sequence[SaliencyCounts], params: SaliencyParams | None = None
) -> SaliencyScore:
    """The measures of a data set; float sums fold in the order given.

    Raises DataError if there are no images.
    """
    if not images:
        raise DataError("saliency score: no images, expected at least one")
    rules = params or SaliencyParams()
    stack = _Stack.of(images)
    numbers, curves = stack.values(rules)
    best = {f"max_{name}": curve.mean(0).max() for name, curve in curves.items() if name != "ber"}
    best["min_ber"] = curves["ber"].mean(0).min()
    means = {name: value.mean() for name, value in numbers.items()} | best
    return SaliencyScore(
        n_images=len(images),
        **{f"{name}_mean": float(value) for name, value in means.items()},
        **stack.summed(rules),
    )


class SaliencyMetric(Metric):
    """Salient objects: MAE, F, E, S, weighted F, IoU and Dice of soft maps against masks."""

    name = "saliency"
    title = "Salient objects"
    pred_kinds = ("soft",)
    gt_kind = "mask"
    counts_type = SaliencyCounts
    default_protocol = "saliency"
    columns: ClassVar[tuple[Column, ...]] = (
        Column("mae_mean", "MAE", lower=True, digits=3),
        Column("max_f_mean", "max F", digits=3),
        Column("adaptive_f_mean", "adaptive F", "adp F", digits=3),
        Column("weighted_f_mean", "weighted F", "wF", digits=3),
        Column("s_measure_mean", "S", digits=3),
        Column("max_e_mean", "max E", digits=3),
        Column("adaptive_e_mean", "adaptive E", "adp E", digits=3),
        Column("mean_f_mean", "mean F", digits=3),
        Column("mean_e_mean", "mean E", digits=3),
        Column("iou_mean", "IoU", digits=3),
        Column("dice_mean", "Dice", digits=3),
        Column("ber_mean", "BER", lower=True, digits=3),
        *(
            Column(f"{form}_{name}_mean", f"{form} {title}", shown="never")
            for name, title in (("iou", "IoU"), ("dice", "Dice"))
            for form in ("mean", "max", "adaptive")
        ),
        *(
            Column(f"{form}_ber_mean", f"{form} BER", lower=True, shown="never")
            for form in ("mean", "min", "adaptive")
        ),
        Column("mae_sum", "MAE of sums", lower=True, shown="never"),
        Column("max_f_pr", "max F of mean P, R", shown="never"),
        Column("max_f_sum", "max F of sums", shown="never"),
        Column("adaptive_f_sum", "adaptive F of sums", shown="never"),
        Column("iou_sum", "IoU of sums", shown="never"),
        Column("dice_sum", "Dice of sums", shown="never"),
        Column("ber_sum", "BER of sums", lower=True, shown="never"),
        Column("n_images", "images", "n", digits=0, shown="own", score=False),
    )
    image_columns: ClassVar[tuple[Column, ...]] = (
        Column("max_f", "max F"),
        Column("mae", "MAE", lower=True),
        Column("s_measure", "S"),
        Column("weighted_f", "weighted F", "wF"),
    )

    def count(self, pred: Prediction, gt: GroundTruth, protocol: Protocol) -> SaliencyCounts:
        """See `saliency_counts`."""
        what = str(pred.path or pred.image_id)
        if pred.soft is None or gt.mask is None:
            raise DataError(f"{what}: expected one soft map and one mask")
        soft = invert(pred.soft) if protocol.invert else pred.soft
        return saliency_counts(soft, gt.mask, protocol.saliency, what=what)

    def score(self, records: Iterable[ImageRecord], protocol: Protocol) -> SaliencyScore:
        """See `saliency_score`."""
        images = [counts for _, counts in counts_in_order(records, self.name)]
        return saliency_score(images, _params(protocol))

    def image_values(self, counts: SaliencyCounts) -> dict[str, float]:
        """The image's best F over the levels, MAE, S and weighted F."""
        f = measures.f_beta(counts.tp, counts.fp, counts.positives)[:256]
        return {
            "max_f": float(f.max()),
            "mae": float(ratio(counts.abs_error_sum, counts.pixels)),
            "s_measure": float(counts.s_measure),
            "weighted_f": float(counts.weighted_f),
        }

    def sampler(self, records: Sequence[ImageRecord], protocol: Protocol) -> MeanSampler:
        """The means over images, and the best of mean curves."""
        stack = _Stack.of([cast(SaliencyCounts, r.counts[self.name]) for r in records])
        numbers, curves = stack.values(_params(protocol))
        means = {f"{name}_mean": value for name, value in numbers.items()}
        bests = {f"max_{name}_mean": curve for name, curve in curves.items() if name != "ber"}
        return MeanSampler(means, bests)

    def describe(self, protocol: Protocol) -> str:
        """The conventions that the numbers depend on."""
        return f"protocol {protocol.name} v{protocol.version}: {_params(protocol).describe()}"

    def same_truth(self, a: SaliencyCounts, b: SaliencyCounts) -> bool:
        """True if both have the same numbers of mask pixels."""
        return int(a.positives) == int(b.positives) and int(a.pixels) == int(b.pixels)

    def example(self) -> tuple[Prediction, GroundTruth, Protocol]:
        """A square."""
        soft = np.zeros((12, 16), np.uint8)
        soft[3:9, 5:9] = 200
        truth = GroundTruth("a", mask=soft > 0)
        return Prediction("a", soft=soft), truth, Protocol(saliency=SaliencyParams())


def _params(protocol: Protocol) -> SaliencyParams:
    return protocol.saliency or SaliencyParams()
