"""Salient object detection: how well a soft map marks the pixels of a mask, without tolerance.

Measures of one image are in `SaliencyCounts`; `saliency_score` makes those of a data set. Two
ways to get there are in use and give different numbers, so the names tell them apart: `*_mean` is
the mean over images of the image's value (at each threshold, where there are thresholds, and then
the best one), `*_sum` is one ratio of the counts added over images. `max_f_pr` is a third: F of the
mean precision and the mean recall.

Thresholds are the levels 0 .. 255 of the map as an 8-bit picture, `>=`; a float map is rounded to
8 bits for them, and taken as it is for all else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsdsbench.core.errors import DataError, ShapeError
from bsdsbench.core.inputs import GroundTruth, Prediction
from bsdsbench.core.precision_recall import ratio
from bsdsbench.core.protocol import Protocol, SaliencyParams
from bsdsbench.core.records import ArrayRecord, ImageRecord, frozen
from bsdsbench.core.softmap import as_float32, invert, quantise
from bsdsbench.metrics.base import Column, Metric, counts_in_order
from bsdsbench.metrics.sampling import MeanSampler

F8 = NDArray[np.float64]
BETA2 = 0.3
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, eq=False)
class SaliencyCounts(ArrayRecord):
    """One image: counts at 256 levels and at the adaptive threshold, and its own measures.

    tp, fp : i8 (257,), last the adaptive threshold min(2 mean, max); half_tp, half_fp : i8 () at
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


@dataclass(frozen=True, slots=True)
class SaliencyScore:
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

    def to_mapping(self) -> dict[str, Any]:
        """Name -> number."""
        return asdict(self)


def f_beta(tp: ArrayLike, fp: ArrayLike, positives: ArrayLike, beta2: float = BETA2) -> F8:
    """(1 + b2) P R / (b2 P + R) from counts, with 0/0 = 0 (Achanta et al., CVPR 2009: b2 = 0.3)."""
    tp = np.asarray(tp)
    return _f_of(ratio(tp, tp + np.asarray(fp)), ratio(tp, positives), beta2)


def _f_of(precision: F8, recall: F8, beta2: float) -> F8:
    return ratio((1 + beta2) * precision * recall, beta2 * precision + recall)


def e_measure(tp: ArrayLike, fp: ArrayLike, positives: ArrayLike, pixels: ArrayLike) -> F8:
    """Enhanced alignment of a binary map with the mask (Fan et al., IJCAI 2018), from counts.

    With g = mask - its mean and m = map - its mean the alignment is a = 2 g m / (g g + m m), and
    the measure the mean of (1 + a)^2 / 4 over all pixels. There are only four kinds of pixel, so
    their counts are enough. An empty mask gives the share of map pixels that are off, a full one
    the share that are on. (The authors' program divides by pixels - 1; the paper, and this, by
    pixels.)
    """
    tp, fp, pos, n = np.broadcast_arrays(
        *(np.asarray(a, np.float64) for a in (tp, fp, positives, pixels))
    )
    mean_g, mean_m = ratio(pos, n), ratio(tp + fp, n)
    total = np.zeros(tp.shape)
    kinds = ((1, 1, tp), (0, 1, fp), (1, 0, pos - tp), (0, 0, n - pos - fp))
    for in_mask, in_map, count in kinds:
        g, m = in_mask - mean_g, in_map - mean_m
        total += count * (1 + ratio(2 * g * m, g * g + m * m)) ** 2 / 4
    constant = np.where(pos == 0, n - tp - fp, tp + fp)
    return ratio(np.where((pos == 0) | (pos == n), constant, total), n)


def s_measure(soft: NDArray[Any], mask: NDArray[np.bool_], alpha: float = 0.5) -> float:
    """Structure measure of a soft map (Fan et al., ICCV 2017): alpha object + (1 - alpha) region.

    soft (H, W) in [0, 1], mask (H, W) bool. Standard deviations divide by n - 1. The four regions
    around the centroid of the mask are weighted by their area, as the authors' program does. An
    empty mask gives 1 - mean(soft), a full one mean(soft); negative values become 0.
    """
    soft, mask = np.asarray(soft, np.float64), np.asarray(mask, bool)
    share = mask.mean()
    if share == 0:
        return float(1 - soft.mean())
    if share == 1:
        return float(soft.mean())
    inside, outside = _object_similarity(soft[mask]), _object_similarity(1 - soft[~mask])
    by_object = share * inside + (1 - share) * outside
    return max(0.0, float(alpha * by_object + (1 - alpha) * _region_similarity(soft, mask)))


def _object_similarity(values: F8) -> float:
    """2 x / (x x + 1 + s): high where the values are high and even."""
    mean = values.mean()
    spread = values.std(ddof=1) if values.size > 1 else 0.0
    return float(2 * mean / (mean * mean + 1 + spread + _EPS))


def _region_similarity(soft: F8, mask: NDArray[np.bool_]) -> float:
    """Structural similarity of the four quarters around the mask's centroid, weighted by area."""
    rows, cols = np.nonzero(mask)
    y, x = (
        int(np.floor(i.mean() + 1 + 0.5)) for i in (rows, cols)
    )  # rows and columns before the cut
    total = 0.0
    for part in (np.s_[:y, :x], np.s_[:y, x:], np.s_[y:, :x], np.s_[y:, x:]):
        if soft[part].size:
            total += soft[part].size * _similarity(soft[part], mask[part].astype(np.float64))
    return total / soft.size


def _similarity(a: F8, b: F8) -> float:
    """Structural similarity without its constants: 4 ab cov / ((aa + bb) (var + var))."""
    mean_a, mean_b, n = a.mean(), b.mean(), max(a.size - 1, 1)
    da, db = a - mean_a, b - mean_b
    top = 4 * mean_a * mean_b * (da * db).sum() / n
    bottom = (mean_a**2 + mean_b**2) * ((da * da).sum() + (db * db).sum()) / n
    if top != 0:
        return float(top / (bottom + _EPS))
    return 1.0 if bottom == 0 else 0.0


def weighted_f(soft: NDArray[Any], mask: NDArray[np.bool_], beta2: float = 1.0) -> float:
    """Weighted F (Margolin, Zelnik-Manor, Tal, CVPR 2014): errors blurred along the object and
    counted less the nearer they are to it.

    soft (H, W) in [0, 1], mask (H, W) bool. Off the mask an error is first replaced by the one at
    the nearest mask pixel; a Gaussian (7 x 7, sigma 5, zeros outside) blurs the errors; a mask
    pixel takes the smaller of the two; off the mask errors weigh 2 - 0.5^(distance / 5). An empty
    mask gives 0.
    """
    from scipy import ndimage

    mask = np.asarray(mask, bool)
    if not mask.any():
        return 0.0
    error = np.abs(np.asarray(soft, np.float64) - mask)
    distance, nearest = ndimage.distance_transform_edt(~mask, return_indices=True)
    near = error[tuple(nearest)]
    y, x = np.indices((7, 7)) - 3
    kernel = np.exp(-(x * x + y * y) / (2 * 5.0**2))
    blurred = ndimage.correlate(near, kernel / kernel.sum(), mode="constant")
    weighted = np.where(mask, np.minimum(error, blurred), error * (2 - 0.5 ** (distance / 5)))
    hit = mask.sum() - weighted[mask].sum()
    recall, precision = ratio(hit, mask.sum()), ratio(hit, hit + weighted[~mask].sum())
    return float(_f_of(precision, recall, beta2))


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
    value, mask = as_float32(soft).astype(np.float64), np.asarray(mask, bool)
    if value.shape != mask.shape:
        raise ShapeError(f"{what}: map {value.shape}, expected the mask's {mask.shape}")
    if not value.size:
        raise DataError(f"{what}: empty image, expected at least one pixel")
    if (params or SaliencyParams()).stretch and value.max() > value.min():
        value = (value - value.min()) / (value.max() - value.min())
    levels = quantise(value, 8)
    tp, fp = (_at_least(levels[where]) for where in (mask, ~mask))
    adaptive = value >= min(2 * value.mean(), value.max())
    half = value >= 0.5
    return SaliencyCounts(
        np.append(tp, (adaptive & mask).sum()),
        np.append(fp, (adaptive & ~mask).sum()),
        (half & mask).sum(),
        (half & ~mask).sum(),
        mask.sum(),
        np.array(mask.size),
        np.abs(value - mask).sum(),
        np.array(s_measure(value, mask)),
        np.array(weighted_f(value, mask)),
    )


def _at_least(levels: NDArray[np.uint8]) -> NDArray[np.int64]:
    """How many values are >= k, for k = 0 .. 255."""
    return np.cumsum(np.bincount(levels.ravel(), minlength=256)[::-1])[::-1]


def saliency_score(images: Sequence[SaliencyCounts], beta2: float = BETA2) -> SaliencyScore:
    """The measures of a data set; float sums fold in the order given.

    Raises DataError if there are no images.
    """
    if not images:
        raise DataError("saliency score: no images, expected at least one")

    def column(name: str) -> NDArray[Any]:
        return np.array([getattr(c, name) for c in images])

    tp, fp = column("tp"), column("fp")
    pos, n = column("positives")[:, None], column("pixels")[:, None]
    f, e = f_beta(tp, fp, pos, beta2), e_measure(tp, fp, pos, n)
    f_sum = f_beta(tp.sum(0), fp.sum(0), pos.sum(), beta2)
    mean_p, mean_r = ratio(tp, tp + fp).mean(0), ratio(tp, pos).mean(0)
    hit, false = column("half_tp"), column("half_fp")
    union, sizes = pos[:, 0] + false, pos[:, 0] + hit + false
    return SaliencyScore(
        n_images=len(images),
        mae_mean=float(ratio(column("abs_error_sum"), n[:, 0]).mean()),
        mae_sum=float(ratio(column("abs_error_sum").sum(), n.sum())),
        max_f_mean=float(f.mean(0)[:256].max()),
        max_f_pr=float(_f_of(mean_p, mean_r, beta2)[:256].max()),
        max_f_sum=float(f_sum[:256].max()),
        adaptive_f_mean=float(f.mean(0)[256]),
        adaptive_f_sum=float(f_sum[256]),
        s_measure_mean=float(column("s_measure").mean()),
        max_e_mean=float(e.mean(0)[:256].max()),
        adaptive_e_mean=float(e.mean(0)[256]),
        weighted_f_mean=float(column("weighted_f").mean()),
        iou_mean=float(ratio(hit, union).mean()),
        iou_sum=float(ratio(hit.sum(), union.sum())),
        dice_mean=float(ratio(2 * hit, sizes).mean()),
        dice_sum=float(ratio(2 * hit.sum(), sizes.sum())),
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
        Column("mae_mean", "MAE", lower=True),
        Column("max_f_mean", "max F"),
        Column("adaptive_f_mean", "adaptive F", "adp F"),
        Column("weighted_f_mean", "weighted F", "wF"),
        Column("s_measure_mean", "S"),
        Column("max_e_mean", "max E"),
        Column("adaptive_e_mean", "adaptive E", "adp E"),
        Column("iou_mean", "IoU"),
        Column("dice_mean", "Dice"),
        Column("mae_sum", "MAE of sums", lower=True, shown="never"),
        Column("max_f_pr", "max F of mean P, R", shown="never"),
        Column("max_f_sum", "max F of sums", shown="never"),
        Column("adaptive_f_sum", "adaptive F of sums", shown="never"),
        Column("iou_sum", "IoU of sums", shown="never"),
        Column("dice_sum", "Dice of sums", shown="never"),
        Column("n_images", "images", digits=0, shown="own", score=False),
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
        return saliency_score(images, _params(protocol).beta2)

    def image_values(self, counts: SaliencyCounts) -> dict[str, float]:
        """The image's best F over the levels, MAE, S and weighted F."""
        f = f_beta(counts.tp, counts.fp, counts.positives)[:256]
        return {
            "max_f": float(f.max()),
            "mae": float(ratio(counts.abs_error_sum, counts.pixels)),
            "s_measure": float(counts.s_measure),
            "weighted_f": float(counts.weighted_f),
        }

    def sampler(self, records: Sequence[ImageRecord], protocol: Protocol) -> MeanSampler:
        """The means over images, and the best of mean curves."""
        counts: list[Any] = [r.counts[self.name] for r in records]
        tp, fp = (np.stack([getattr(c, k) for c in counts]) for k in ("tp", "fp"))
        pos, n = (np.array([[getattr(c, k)] for c in counts]) for k in ("positives", "pixels"))
        f, e = f_beta(tp, fp, pos, _params(protocol).beta2), e_measure(tp, fp, pos, n)
        error = np.array([c.abs_error_sum for c in counts])
        hit = np.array([c.half_tp for c in counts])
        union = pos[:, 0] + np.array([c.half_fp for c in counts])
        return MeanSampler(
            {
                "mae_mean": ratio(error, n[:, 0]),
                "adaptive_f_mean": f[:, 256],
                "weighted_f_mean": [c.weighted_f for c in counts],
                "s_measure_mean": [c.s_measure for c in counts],
                "adaptive_e_mean": e[:, 256],
                "iou_mean": ratio(hit, union),
                "dice_mean": ratio(2 * hit, union + hit),
            },
            {"max_f_mean": f[:, :256], "max_e_mean": e[:, :256]},
        )

    def describe(self, protocol: Protocol) -> str:
        """The conventions that the numbers depend on."""
        params = _params(protocol)
        stretched = ", maps stretched to 0 .. 1" if params.stretch else ""
        return (
            f"protocol {protocol.name} v{protocol.version}: levels 0 .. 255, >=; beta^2 "
            f"{params.beta2:g}; adaptive min(2 mean, max); IoU and Dice at 0.5{stretched}"
        )

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
