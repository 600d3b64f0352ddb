"""Salient object detection: how well a soft map marks the pixels of a mask, without tolerance.

`saliency_counts` makes the measures of one image; `SaliencyMetric.scores` computes those of a data
set. Three ways are in use and give different numbers, so they have different names: `*_mean` is
the mean over images of the image's value (at each threshold, if there are any, and then the best
one), `*_sum` is one ratio of the summed counts, `max_f_pr` is F of the mean precision and mean
recall.

Thresholds are the levels 0 .. 255 of the map as an 8-bit picture, `>=`. `max_*` is the largest
value of the mean curve over the levels, `mean_*` its mean, `adaptive_*` the value at each image's
own threshold; names without these words (IoU, Dice, BER) are at one half. The rules in which
programs differ are `SaliencyOptions`. The measures are in bsdsbench.metrics.salient_measures.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from bsdsbench.files.errors import DataError, ShapeError
from bsdsbench.loaders.inputs import GroundTruth, Prediction, binary_map
from bsdsbench.metrics import salient_measures as measures
from bsdsbench.metrics.base import IMAGES, Column, Metric, Tree
from bsdsbench.metrics.maps import invert
from bsdsbench.protocol.fields import HOME_MADE, POSITIVE, one_of, option
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import Counts, Stack
from bsdsbench.scores.ratios import Weights, ratio, weighted_mean, weighted_sum

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
LEVELS = 256


@frozen
class SaliencyOptions:
    """What programs do differently. The defaults are PySODMetrics' rules."""

    beta2: float = option(
        0.3,
        "beta^2 of F.",
        POSITIVE,
        caption=lambda o: f"beta^2 {o.beta2:g}",
        others={0.3: "the field", 1.0: "F1 of other fields"},
    )
    stretch: bool = option(
        True,
        "Each map that is not constant is stretched to 0 .. 1 first.",
        caption={True: "maps stretched to 0 .. 1", False: "maps as they are"},
        others={True: "PySODMetrics", False: "scripts that take maps as they are"},
    )
    levels: str = option(
        "floor",
        'The level of a strength p: "floor" of 255 p, or 255 p "round"ed, halves up.',
        one_of("floor", "round"),
        caption=lambda o: f"levels {o.levels}(255 p), >=",
        others={"floor": "PySODMetrics", "round": "scripts on 8-bit pictures"},
    )
    operator: str = option(
        ">",
        'IoU, Dice and BER at one threshold are of strengths ">" or ">=" 0.5.',
        one_of(">", ">="),
        caption=lambda o: f"IoU, Dice, BER at p {o.operator} 0.5",
        others={">": "PySODMetrics", ">=": HOME_MADE},
    )
    cap: str = option(
        "one",
        'The adaptive threshold is min(2 mean, 1), or with "max" min(2 mean, the largest p).',
        one_of("one", "max"),
        caption={"one": "adaptive min(2 mean, 1)", "max": "adaptive min(2 mean, max)"},
        others={"one": "PySODMetrics", "max": HOME_MADE},
    )
    e_divisor: str = option(
        "pixels-1",
        'The E-measure\'s sum is divided by "pixels-1", or by "pixels".',
        one_of("pixels-1", "pixels"),
        caption=lambda o: f"E by {o.e_divisor}",
        others={"pixels-1": "PySODMetrics", "pixels": HOME_MADE},
    )
    centroid: str = option(
        "even",
        'A centroid half way between two pixels goes to the "even" one, or "up" (S-measure).',
        one_of("even", "up"),
        caption=lambda o: f"centroid {o.centroid}",
        others={"even": "PySODMetrics", "up": HOME_MADE},
    )


def saliency_counts(
    soft: NDArray[Any],
    mask: NDArray[np.bool_],
    params: SaliencyOptions | None = None,
    *,
    what: str = "saliency",
) -> Counts:
    """All measures of one image.

    tp, fp : i8 (257,), the levels and last the adaptive threshold; half_tp, half_fp : i8 () at 0.5;
    positives, pixels : i8 (), mask pixels and all pixels; abs_error_sum : f8 (), sum of
    |map - mask|; s_measure, weighted_f : f8 ().

    soft : (H, W) uint8, uint16 or float in [0, 1]; mask : (H, W) bool
    params : the conventions, those of the preset if None; what : names the image in errors
    Raises ShapeError if the sizes differ, DataError for an empty image.
    """
    rules, mask = params or SaliencyOptions(), binary_map(mask, what)
    value = measures.strengths(soft, rules.stretch)
    if value.shape != mask.shape:
        raise ShapeError(f"{what}: map {value.shape}, expected the mask's {mask.shape}")
    if not value.size:
        raise DataError(f"{what}: empty image, expected at least one pixel")
    scaled = value * 255 if rules.levels == "floor" else value * 255 + 0.5
    levels = np.floor(scaled).astype(np.uint8)
    each = (np.bincount(levels[where], minlength=LEVELS) for where in (mask, ~mask))
    tp, fp = (np.cumsum(n[::-1])[::-1] for n in each)  # from each level on
    adaptive = value >= float(min(2 * value.mean(), 1.0 if rules.cap == "one" else value.max()))
    half = value > 0.5 if rules.operator == ">" else value >= 0.5
    return Counts(
        tp=np.append(tp, (adaptive & mask).sum()),
        fp=np.append(fp, (adaptive & ~mask).sum()),
        half_tp=(half & mask).sum(),
        half_fp=(half & ~mask).sum(),
        positives=mask.sum(),
        pixels=mask.size,
        abs_error_sum=np.abs(value - mask).sum(dtype=np.float64),
        s_measure=measures.s_measure(value, mask, centroid=rules.centroid),
        weighted_f=measures.weighted_f(value, mask),
    )


def _measured(c: Stack, beta2: float) -> tuple[dict[str, F8], dict[str, F8]]:
    """Of images, or of sums of them: numbers (N,), and curves with the adaptive value (N, 257)."""
    positives, pixels = c["positives"], c["pixels"]
    levels, half = (c["tp"], c["fp"], positives[:, None]), (c["half_tp"], c["half_fp"], positives)
    numbers = {
        "mae": ratio(c["abs_error_sum"], pixels),
        "iou": measures.iou(*half),
        "dice": measures.dice(*half),
        "ber": measures.balanced_error(*half, pixels),
    }
    return numbers, {
        "f": measures.f_beta(*levels, beta2),
        "iou": measures.iou(*levels),
        "dice": measures.dice(*levels),
        "ber": measures.balanced_error(*levels, pixels[:, None]),
    }


# key without "_mean", heading, short; the names of papers are those of `explain`
_SHOWN = (
    ("mae", "MAE", ""),
    ("max_f", "max F", ""),
    ("adaptive_f", "adaptive F", "adp F"),
    ("weighted_f", "weighted F", "wF"),
    ("s_measure", "S", ""),
    ("max_e", "max E", ""),
    ("adaptive_e", "adaptive E", "adp E"),
    ("mean_f", "mean F", ""),
    ("mean_e", "mean E", ""),
    ("iou", "IoU", ""),
    ("dice", "Dice", ""),
    ("ber", "BER", ""),
)
_SUMS = ("mae", "max_f", "adaptive_f", "iou", "dice", "ber")
_ERRORS = ("mae", "ber")


def _column(
    key: str, heading: str, of: str, short: str = "", digits: int = 4, shown: str = "never"
) -> Column:
    quantity = of if of in _SUMS else ""
    return Column(key, heading, short, of in _ERRORS, digits, shown, quantity=quantity)


class SaliencyMetric(Metric):
    """Salient objects: MAE, F, E, S, weighted F, IoU and Dice of soft maps against masks."""

    name = "saliency"
    title = "Salient objects"
    reads = "mask"
    default_protocol = "saliency"
    options = SaliencyOptions
    uses = ("invert", "gt_threshold")
    columns = (
        *(_column(f"{key}_mean", title, key, short, 3, "always") for key, title, short in _SHOWN),
        *(
            _column(f"{form}_{key}_mean", f"{form} {title}", key)
            for key, title, _ in _SHOWN[-3:]
            for form in ("mean", "min" if key in _ERRORS else "max", "adaptive")
        ),
        _column("max_f_pr", "max F of mean P, R", "max_f"),
        *(_column(f"{k}_sum", f"{title} of sums", k) for k, title, _ in _SHOWN if k in _SUMS),
        IMAGES,
    )
    image_columns = (
        Column("max_f_mean", "max F"),
        Column("mae_mean", "MAE", lower=True),
        Column("s_measure_mean", "S"),
        Column("weighted_f_mean", "weighted F", "wF"),
    )

    def count(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: SaliencyOptions
    ) -> Counts:
        soft = invert(pred.soft) if protocol.invert else pred.soft
        return saliency_counts(soft, gt.mask, opt, what=pred.where)

    def scores(
        self, stack: Stack, weights: Weights, protocol: Protocol, opt: SaliencyOptions
    ) -> Tree:
        """Means over images, the best of mean curves, and ratios of sums."""
        numbers, curves = _measured(stack, opt.beta2)
        sizes = stack["positives"][:, None], stack["pixels"][:, None]
        curves["e"] = measures.e_measure(stack["tp"], stack["fp"], *sizes, opt.e_divisor)
        numbers |= {name: stack[name] for name in ("s_measure", "weighted_f")}
        out = {}
        for name, curve in curves.items():
            numbers[f"adaptive_{name}"] = curve[:, LEVELS]
            numbers[f"mean_{name}"] = curve[:, :LEVELS].mean(axis=1)
            mean = weighted_mean(weights, curve[:, :LEVELS])
            best, way = (mean.min(axis=1), "min") if name in _ERRORS else (mean.max(axis=1), "max")
            out[f"{way}_{name}_mean"] = best
        out |= {f"{name}_mean": weighted_mean(weights, value) for name, value in numbers.items()}
        precision, recall = (
            ratio(stack["tp"], stack["tp"] + stack["fp"]),
            ratio(stack["tp"], sizes[0]),
        )
        means = weighted_mean(weights, precision), weighted_mean(weights, recall)
        out["max_f_pr"] = measures.f_of(*means, opt.beta2)[:, :LEVELS].max(axis=1)
        total = {name: weighted_sum(weights, values) for name, values in stack.items()}
        numbers, curves = _measured(total, opt.beta2)
        numbers["max_f"], numbers["adaptive_f"] = (
            curves["f"][:, :LEVELS].max(axis=1),
            curves["f"][:, LEVELS],
        )
        return {**out, **{f"{name}_sum": value for name, value in numbers.items()}}

    def symptoms(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: SaliencyOptions
    ) -> Iterator[tuple[str, str, str]]:
        """Dark objects on bright ground."""
        soft, mask = measures.strengths(pred.soft, False), gt.mask
        if mask.any() and not mask.all() and soft[mask].mean() < soft[~mask].mean() - 0.05:
            words = "the map is darker on the object than beside it"
            yield "inverted", words, f"--set invert={str(not protocol.invert).lower()}"
