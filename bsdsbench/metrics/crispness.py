"""Crispness: how thin are the raw edges of a network, and what does their thickness cost?

Definition. Average crispness is the mean over images of sum(NMS map) / sum(raw map). SEval is the
boundary benchmark with NMS (the protocol's nms_params) and thinning. CEval uses neither, so thick
edges lose precision.

Conventions. All three scores use the raw maps. The NMS for average crispness (radius 2, border 5,
multiplier 1.01) compares values of the unsmoothed map, so that a map with lines one pixel wide
scores about 1; only the orientation comes from a smoothed map. All-zero maps are left out of the
mean.

Source. Ye, Xu, Huang, Yi and Cai, "Delving into Crispness: Guided Label Refinement for Crisp Edge
Detection", TIP 2023 (arXiv 2306.15172), and its program eval_crispness.m.
"""

from __future__ import annotations

import numpy as np

from bsdsbench.arguments import Floats
from bsdsbench.images import GroundTruth, Map, Prediction
from bsdsbench.metrics.base import IMAGES, Arrays, Column, VoidOptions
from bsdsbench.metrics.boundary import CurveMetric, boundary_counts
from bsdsbench.protocol.protocol import MATCHED, Protocol
from bsdsbench.scores.counts import Stack
from bsdsbench.scores.ratios import defined_ratio
from bsdsbench.transforms.maps import as_float32, nms, prepare

_PARTS = {"seval": "SEval", "ceval": "CEval"}
_PATHS = {title: (part,) for part, title in _PARTS.items()}


class CrispnessMetric(CurveMetric[VoidOptions]):
    """How thin the raw maps of a detector are: average crispness, SEval and CEval in one run."""

    name, title, reads, options = "crispness", "Crispness", "soft", VoidOptions
    default_protocol, void, void_option = "crispness-seval", True, "ignore"
    columns = (
        Column("average", "Average crispness", "AC"),
        *(  # shown in tables of several runs; the report of one run has a table of the curves
            Column(f"{part}.{key.lower()}", f"{title} {key}", f"{title[0]} {key}", shown="several")
            for part, title in _PARTS.items()
            for key in ("ODS", "OIS", "AP")
        ),
        IMAGES,
    )
    curve_paths = _PATHS
    image_columns = (
        Column("average", "crispness"),
        Column("seval.ods", "SEval F"),
        Column("ceval.ods", "CEval F"),
    )
    uses = tuple(field for field in MATCHED if field not in ("nms", "thin"))

    def count(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: VoidOptions
    ) -> Arrays:
        """Count the matched boundary pixels for SEval and CEval, and sum the map for crispness.

        SEval (standard evaluation) thins the map, CEval (crispness-emphasised) takes it as it is.
        Returns a dict with these arrays:

        thresholds : float64 (T,)
        seval, ceval : int64 (T, 4), matched and all annotated, matched and all predicted pixels:
            with the protocol's NMS and thinning (seval), and with neither (ceval)
        kept, total : float64 (), the sum of the map after and before an NMS with fixed settings;
            the crispness of the image is kept / total
        """
        for_seval = protocol.replace(nms=True, thin=True)
        for_ceval = protocol.replace(nms=False, thin=False)
        # As for CEval: inverted or normalised if the protocol says so, 0 at void pixels
        kept, total = _crispness_sums(prepare(pred.soft, for_ceval, gt.parts.get("valid")))
        return {
            "thresholds": protocol.threshold_array(),
            "seval": boundary_counts(pred, gt, for_seval).matches,
            "ceval": boundary_counts(pred, gt, for_ceval).matches,
            "kept": kept,
            "total": total,
        }

    def values(self, counts: Stack, opt: VoidOptions) -> dict[str, Floats]:
        """Return `average` (N,), the share of each map's sum that NMS keeps; NaN if all are 0."""
        return {"average": defined_ratio(counts["kept"], counts["total"])}

    def describe(self, protocol: Protocol, opt: VoidOptions) -> str:
        """Describe how the maps are thinned for SEval and for CEval."""
        return f"SEval thinned after NMS {protocol.nms_params.describe()}, CEval neither"


def _crispness_sums(soft: Map) -> Floats:
    """Sum a soft map (H, W) after non-maximum suppression (NMS), and before it, float64 (2,).

    The settings of this NMS are fixed (see the module's docstring), and not the protocol's.
    """
    raw = as_float32(soft)
    thin = nms(raw, radius=2, border=5, multiplier=1.01, smooth=False)
    return np.array([thin.sum(dtype=np.float64), raw.sum(dtype=np.float64)])
