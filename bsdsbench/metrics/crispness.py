"""Crispness: how thin are the raw edges of a network, and what does their thickness cost?

Definition. Average crispness is the mean over images of sum(NMS map) / sum(raw map). SEval is the
boundary benchmark with NMS (the protocol's nms_params) and thinning. CEval uses neither, so thick
edges lose precision.

Conventions. All three scores use the raw maps. The NMS of average crispness (2, 5, 1.01) compares
the values of the unsmoothed map, so that a map with lines one pixel wide scores about 1; only the
orientation comes from a smoothed map. All-zero maps are left out of the mean.

Source. Ye, Xu, Huang, Yi and Cai, "Delving into Crispness: Guided Label Refinement for Crisp Edge
Detection", TIP 2023 (arXiv 2306.15172), and its program eval_crispness.m.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bsdsbench.arguments import F8
from bsdsbench.images import GroundTruth, Map, Prediction, without_void
from bsdsbench.metrics.base import IMAGES, Arrays, Column, ScoreTree, VoidOptions, image_means
from bsdsbench.metrics.boundary import CurveMetric, boundary_counts
from bsdsbench.protocol.protocol import MATCHED, Protocol
from bsdsbench.scores.counts import Stack
from bsdsbench.scores.ratios import Weights, defined_ratio
from bsdsbench.transforms.maps import as_float32, invert, nms

_PARTS = {"seval": "SEval", "ceval": "CEval"}


class CrispnessMetric(CurveMetric[VoidOptions]):
    """How thin the raw maps of a detector are: average crispness, SEval and CEval in one run."""

    name = "crispness"
    title = "Crispness"
    options, void, void_option = VoidOptions, True, "ignore"
    reads = "soft"
    default_protocol = "crispness-seval"
    columns = (
        Column("average", "Average crispness", "AC"),
        *(
            # The table of a single run shows these in its table of parts.
            Column(
                f"{part}.{k}", f"{title} {k.upper()}", f"{title[0]} {k.upper()}", shown="several"
            )
            for part, title in _PARTS.items()
            for k in ("ods", "ois", "ap")
        ),
        IMAGES,
    )
    curve_names = _PARTS
    image_columns = (
        Column("average", "crispness"),
        Column("seval.ods", "SEval F"),
        Column("ceval.ods", "CEval F"),
    )
    uses = tuple(field for field in MATCHED if field not in ("nms", "thin"))

    def count(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: VoidOptions
    ) -> Arrays:
        """Count the strength that NMS keeps, and the matches of both evaluations.

        thresholds : f8 (T,)
        kept, total : f8 (), sums of the map after NMS and of the raw map
        seval, ceval : i8 (T, 4), the `matches` of `boundary_counts`
        """
        counts: dict[str, Any] = {"thresholds": protocol.threshold_array()}
        for part in _PARTS:
            rule = protocol.replace(nms=part == "seval", thin=part == "seval")
            counts[part] = boundary_counts(pred, gt, rule).matches
        raw = invert(pred.soft) if protocol.invert else pred.soft
        counts["kept"], counts["total"] = _crispness_sums(without_void(raw, gt.parts.get("valid")))
        return counts

    def scores(
        self, stack: Stack, weights: Weights, protocol: Protocol, opt: VoidOptions
    ) -> ScoreTree:
        """Return the scores of SEval and CEval, and the mean crispness of maps that are not 0."""
        share = defined_ratio(stack["kept"], stack["total"])
        curves = super().scores(stack, weights, protocol, opt)
        return {**curves, **image_means(weights, {"average": share})}

    def describe(self, protocol: Protocol, opt: VoidOptions) -> str:
        """Describe how the two evaluations differ."""
        return f"SEval thinned after NMS {protocol.nms_params.describe()}, CEval neither"


def _crispness_sums(soft: Map) -> F8:
    """Compute sum(NMS map) and sum(raw map) of one soft map (H, W), f8 (2,)."""
    raw = as_float32(soft)
    thin = nms(raw, radius=2, border=5, multiplier=1.01, smooth=False)
    return np.array([map_.sum(dtype=np.float64) for map_ in (thin, raw)])


def image_crispness(soft: Map) -> float:
    """Compute sum(NMS map) / sum(raw map) of a soft map with bright edges; NaN if all are 0.

    Examples
    --------
    >>> import numpy as np
    >>> thin, thick = np.zeros((2, 30, 40), np.float32)
    >>> thin[:, 20], thick[:, 18:23] = 1, [0.6, 0.8, 1, 0.8, 0.6]
    >>> round(image_crispness(thin), 2), round(image_crispness(thick), 2)
    (0.8, 0.21)
    """
    return float(defined_ratio(*_crispness_sums(soft)))
