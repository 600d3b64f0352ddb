"""Calibration of soft maps: are 70 % of the pixels with the value 0.7 marked?

Definition. Pixels are sorted into bins by their value p. The gap of a bin is the difference between
its mean p and the share of its pixels that the annotators marked. ECE is the mean of the gaps
weighted by the pixels of the bins, ACE their unweighted mean, MCE the largest gap.

Conventions. Each annotator counts as a copy of the image. Void pixels are in no bin, and a bin
without pixels has no gap. ECE, ACE and MCE use the pixels of all images together; `*_mean` are
means over images.

Source. Guo, Pleiss, Sun and Weinberger, "On calibration of modern neural networks", ICML 2017;
Barfoot et al., 2025 (arXiv 2506.03942), and MONAI for ACE.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import frozen

from bsdsbench.arguments import F8
from bsdsbench.images import (
    GroundTruth,
    Map,
    Prediction,
    annotated_masks,
    same_shape,
)
from bsdsbench.kernels.distances.limits import RELATIVE_TOLERANCE, with_tolerance
from bsdsbench.metrics.base import IMAGES, Arrays, Column, ScoreTree, ValuesMetric
from bsdsbench.metrics.pixel_steps import DrawnSteps, steps_of_soft
from bsdsbench.protocol.fields import IGNORE, one_of, option, whole
from bsdsbench.protocol.protocol import ANNOTATED, MAPS, Protocol
from bsdsbench.scores.counts import Stack
from bsdsbench.scores.ratios import Weights, defined_mean, defined_ratio, weighted_sum
from bsdsbench.transforms.maps import prepare, unit

_FLOAT32 = 1e-6  # the share by which .7 and 1 - .3 as float32 differ from .7, and some more
_SIDE: dict[str, Any] = {"left": "right", "right": "left"}  # of `searchsorted`


@frozen
class CalibrationOptions:
    """The bins of the calibration error, and the pixels that are sorted into them."""

    bins: int = option(
        15,
        "Number of bins of equal width from 0 to 1.",
        whole(1, 1000, "1 to 1000 bins"),
        caption=lambda o: f"{o.bins} bins",
    )
    closed: str = option(
        "left",
        'The end that belongs to a bin: with "left", a value on the edge of two bins is in the '
        'upper bin, with "right" in the lower one.',
        one_of("left", "right"),
        caption="bins closed on the {}",
    )
    of: str = option(
        "foreground",
        '"foreground" compares p with the annotated foreground; "decision" compares max(p, 1 - p) '
        "with whether the decision p >= 0.5 agrees with the annotation.",
        one_of("foreground", "decision"),
        caption={"foreground": "p of the foreground", "decision": "max(p, 1 - p) of the decision"},
    )
    ignore: tuple[float, ...] = IGNORE


def _bin_edges(soft: Map, bins: int, closed: str) -> F8:
    """Return the edges between bins of equal width, float64 (bins - 1,).

    The edges are moved by the largest rounding error of the values of the map, so that a value on
    an edge falls into the bin that is `closed` at this end: down for "left", up for "right".
    """
    error = _FLOAT32 if soft.dtype == np.float32 else RELATIVE_TOLERANCE
    edges = np.arange(1, bins) / bins
    return edges / with_tolerance(1, error) if closed == "left" else with_tolerance(edges, error)


class CalibrationMetric(ValuesMetric[CalibrationOptions]):
    """Calibration errors of soft maps against one or several annotators: ECE, ACE, MCE.

    ECE, ACE and MCE come from the pixels of all images together, `*_mean` from each image.
    `reliability` has, for each bin, the mean `value`, the share of its pixels that are `marked`,
    and its share of all `pixels`.
    """

    name, title, reads, options = "calibration", "Calibration", "soft", CalibrationOptions
    default_protocol = "calibration"
    void = takes_masks = True
    void_option = "ignore"
    uses = (*MAPS, *ANNOTATED)
    columns = (
        *(Column(k, k.upper(), lower=True, quantity=k, pooled=True) for k in ("ece", "ace", "mce")),
        *(
            Column(f"{k}_mean", f"mean {k.upper()}", lower=True, shown="own", quantity=k)
            for k in ("ece", "ace", "mce")
        ),
        IMAGES,
    )
    image_columns = columns[:3]

    def count(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: CalibrationOptions
    ) -> Arrays:
        """Count the pixels of each of B bins, summed over annotators.

        pixels, marked : int64 (B,), all pixels of a bin, and those that annotators marked
        value : float64 (B,), sum of p over the pixels of a bin

        If `opt.of` is "decision", p is max(p, 1 - p), and the pixels whose decision (p >= 0.5)
        agrees with the annotator count as marked.
        """
        masks, valid = annotated_masks(gt), gt.parts.get("valid")
        soft = prepare(pred.soft, protocol, valid)
        p, edges = unit(soft), _bin_edges(soft, opt.bins, opt.closed)
        same_shape(p.shape, masks.shape[1:], pred.where)
        n_annotators, n_marked = len(masks), masks.sum(axis=0)
        if valid is not None:
            p, n_marked = p[valid], n_marked[valid]
        if opt.of == "decision":
            n_marked = np.where(p >= 0.5, n_marked, n_annotators - n_marked)
            p = np.maximum(p, 1 - p)
        bin_of = np.searchsorted(edges, p.ravel(), _SIDE[opt.closed])
        pixels, value, marked = (
            np.bincount(bin_of, of_pixel, opt.bins)
            for of_pixel in (None, p.ravel(), n_marked.ravel())
        )
        return {
            "pixels": n_annotators * pixels,
            "marked": marked.astype(np.int64),
            "value": n_annotators * value,
        }

    def pixel_steps(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: CalibrationOptions
    ) -> DrawnSteps:
        """Return the right, false and missed pixels, with the edges of the bins as thresholds.

        With a single bin the threshold is one half.
        """
        valid, bins = gt.parts.get("valid"), max(opt.bins, 2)
        soft = prepare(pred.soft, protocol, valid)
        edges = _bin_edges(soft, bins, opt.closed)
        n_reached = np.searchsorted(edges, unit(soft), _SIDE[opt.closed])
        return steps_of_soft(np.arange(1, bins) / bins, n_reached, annotated_masks(gt), valid)

    def values(self, counts: Stack, opt: CalibrationOptions) -> dict[str, F8]:
        """Compute the errors (N,) from counts (N, B); NaN if no pixel is counted.

        Each error has the keys of both columns, such as `ece` and `ece_mean`.
        """
        n, difference = counts["pixels"], np.abs(counts["value"] - counts["marked"])
        gap = defined_ratio(difference, n)  # (N, B), NaN for an empty bin
        errors = {
            "ece": defined_ratio(difference.sum(axis=1), n.sum(axis=1)),
            "ace": defined_mean(gap),
            "mce": np.fmax.reduce(gap, axis=1),
        }
        return {**errors, **{f"{key}_mean": error for key, error in errors.items()}}

    def scores(
        self, stack: Stack, weights: Weights, protocol: Protocol, opt: CalibrationOptions
    ) -> ScoreTree:
        """Return the errors (S,) and `reliability`, whose arrays are (S, B); see the class."""
        n, marked, value = (
            weighted_sum(weights, stack[name]) for name in ("pixels", "marked", "value")
        )
        reliability = {
            "value": defined_ratio(value, n),
            "marked": defined_ratio(marked, n),
            "pixels": defined_ratio(n, n.sum(axis=1, keepdims=True)),
        }
        return {**super().scores(stack, weights, protocol, opt), "reliability": reliability}
