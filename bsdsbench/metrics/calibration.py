"""Calibration of soft maps: are 70 % of the pixels with the value 0.7 marked?

Definition. Pixels are binned by their predicted value. `_calibration_errors` defines ECE, ACE and
MCE by the gap of each bin.

Conventions. Each annotator counts as a copy of the image. Void pixels are excluded, and bins
without pixels are ignored. ECE, ACE and MCE use the pixels of all images together; `*_mean` are
means over images.

Source. Guo, Pleiss, Sun and Weinberger, "On calibration of modern neural networks", ICML 2017;
Barfoot et al., 2025 (arXiv 2506.03942), and MONAI for ACE.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from bsdsbench.arguments import Floats
from bsdsbench.images import GroundTruth, Prediction, annotated_masks, same_shape
from bsdsbench.kernels.distances.limits import RELATIVE_TOLERANCE
from bsdsbench.metrics.base import IMAGES, Arrays, Column, Symptoms, ValuesMetric
from bsdsbench.protocol.fields import IGNORE, one_of, option, whole
from bsdsbench.protocol.protocol import ANNOTATED, MAPS, Protocol
from bsdsbench.scores.counts import Stack
from bsdsbench.scores.ratios import defined_mean, defined_ratio
from bsdsbench.transforms.maps import prepare, to_unit_range

_FLOAT32_ERROR = 1e-6  # relative error, slightly above that of 0.7 or 1 - 0.3 computed in float32


@frozen
class CalibrationOptions:
    """The bins of the calibration errors, and the void pixels to exclude."""

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
    ignore: tuple[float, ...] = IGNORE


class CalibrationMetric(ValuesMetric[CalibrationOptions]):
    """Calibration errors of soft maps against one or several annotators: ECE, ACE, MCE."""

    name, title, reads, options = "calibration", "Calibration", "soft", CalibrationOptions
    default_protocol = "calibration"
    void = takes_masks = True
    void_option = "ignore"
    uses = (*MAPS, *ANNOTATED)
    columns = (
        *(Column(k, k.upper(), lower=True, quantity=k) for k in ("ece", "ace", "mce")),
        *(
            Column(f"{k}_mean", f"mean {k.upper()}", lower=True, shown="own", quantity=k)
            for k in ("ece", "ace", "mce")
        ),
        IMAGES,
    )
    image_columns, summed = columns[:3], ("pixels", "marked", "value")

    def count(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: CalibrationOptions
    ) -> Arrays:
        """Count the pixels of one image in each of B bins, once for each annotator.

        Returns `pixels`, the number of pixels, and `marked`, the number of those annotated as
        positive, both int64 (B,); and `value` float64 (B,), the sum of the predicted values.
        """
        masks, valid = annotated_masks(gt), gt.parts.get("valid")
        soft = prepare(pred.soft, protocol, valid)
        same_shape(soft.shape, masks.shape[1:], pred.where)
        counted = np.ones(soft.shape, bool) if valid is None else valid
        n_annotators = len(masks)
        value = to_unit_range(soft)[counted]  # (pixels,), of each counted pixel
        n_marked = masks.sum(axis=0)[counted]  # (pixels,), the annotators who marked it
        # A value within the rounding error of the map's dtype from an edge of bins is on the edge:
        # edges are lowered if it belongs to the upper bin, and raised if to the lower one
        error = _FLOAT32_ERROR if soft.dtype == np.float32 else RELATIVE_TOLERANCE  # of float64
        edges = np.arange(1, opt.bins) / opt.bins  # without 0 and 1: the end bins are open there
        edges = edges / (1 + error) if opt.closed == "left" else edges * (1 + error)
        bin_of = np.searchsorted(edges, value, "right" if opt.closed == "left" else "left")
        return {
            "pixels": n_annotators * np.bincount(bin_of, minlength=opt.bins),
            "marked": np.bincount(bin_of, n_marked, opt.bins).astype(np.int64),
            "value": n_annotators * np.bincount(bin_of, value, opt.bins),
        }

    def symptoms(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: CalibrationOptions
    ) -> Symptoms:
        """Yield (code, problem, fix) if no value exceeds 1/255, but not all are 0."""
        soft = prepare(pred.soft, protocol, gt.parts.get("valid"))
        strongest = to_unit_range(soft.max(initial=0))
        if 0 < strongest <= 1 / 255:
            yield "weak", "no probability exceeds 1/255", "divided by 255 twice?"

    def values(self, counts: Stack, opt: CalibrationOptions) -> dict[str, Floats]:
        """Compute the errors of each image, (N,), from its counts (N, B)."""
        return {f"{name}_mean": error for name, error in _calibration_errors(counts).items()}

    def pooled(self, sums: Stack, opt: CalibrationOptions) -> dict[str, Floats]:
        """Compute the calibration errors (S,) and reliability diagrams from sums (S, B) in B bins.

        For each bin, "reliability.value" is the mean predicted value, "reliability.marked" the
        share of positive pixels, and "reliability.pixels" the bin's share of all pixels, (S, B).
        """
        n = sums["pixels"]
        return {
            **_calibration_errors(sums),
            "reliability.value": defined_ratio(sums["value"], n),
            "reliability.marked": defined_ratio(sums["marked"], n),
            "reliability.pixels": defined_ratio(n, n.sum(axis=1, keepdims=True)),
        }


def _calibration_errors(counts: Stack) -> dict[str, Floats]:
    """Compute ECE, ACE and MCE, (N,), from counts (N, B) in B bins; NaN if there are no pixels.

    The gap of a bin is the absolute difference between the mean predicted value and the share of
    positive pixels. The expected calibration error (ECE) is the mean gap weighted by the pixels of
    each bin, the average one (ACE) the unweighted mean, and the maximum one (MCE) the largest gap.
    """
    n_pixels = counts["pixels"]
    difference = np.abs(counts["value"] - counts["marked"])
    gap = defined_ratio(difference, n_pixels)  # (N, B), NaN for an empty bin
    ece = defined_ratio(difference.sum(axis=1), n_pixels.sum(axis=1))
    mce = np.fmax.reduce(gap, axis=1)  # the largest gap that is not NaN
    return {"ece": ece, "ace": defined_mean(gap), "mce": mce}
