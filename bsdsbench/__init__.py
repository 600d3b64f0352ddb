"""bsdsbench: the BSDS500 contour and segmentation benchmark, exact and fast.

>>> import bsdsbench as bb
>>> run = bb.evaluate("results/hed", "BSDS500/data/groundTruth/test")    # doctest: +SKIP
>>> run.boundary_score().ods.f                                           # doctest: +SKIP

Names are imported when first used, so that `import bsdsbench` and the command line start at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_ROOMS = {
    "bsdsbench.aggregate": (
        "BoundaryScore",
        "OperatingPoint",
        "PixelScore",
        "PRCurve",
        "boundary_score",
        "f_measure",
        "pixel_score",
        "ratio",
    ),
    "bsdsbench.boundary": ("Match", "boundary_counts", "match_boundaries", "thin"),
    "bsdsbench.comparison": ("Comparison", "compare"),
    "bsdsbench.diagnosis": ("Finding", "doctor"),
    "bsdsbench.errors": ("DataError", "ShapeError"),
    "bsdsbench.evaluation": ("Evaluation",),
    "bsdsbench.inputs": ("GroundTruth", "Prediction"),
    "bsdsbench.labels": ("seg2bdry",),
    "bsdsbench.loaders": ("load_ground_truth", "load_prediction"),
    "bsdsbench.softmap": ("nms",),
    "bsdsbench.pixel": ("pixel_counts",),
    "bsdsbench.plotting": (
        "DETCurveDisplay",
        "PRCurveDisplay",
        "PRScoresDisplay",
        "ROCCurveDisplay",
    ),
    "bsdsbench.protocol": ("NMSParams", "Protocol"),
    "bsdsbench.records": ("BoundaryCounts", "ImageRecord", "PixelCounts", "RegionCounts"),
    "bsdsbench.region": ("region_counts",),
    "bsdsbench.region_scores": ("RegionScore", "region_score"),
    "bsdsbench.runner": ("evaluate", "evaluate_humans", "merge"),
    "bsdsbench.streaming": ("StreamingEvaluator",),
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names}
_MODULES = (
    "boundary",
    "crispness",
    "curves",
    "explain",
    "kernels",
    "plotting",
    "report",
    "saliency",
    "semantic",
    "superpixels",
)

__all__ = sorted([*_HOME, "curves", "__version__"])


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"bsdsbench.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'bsdsbench' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
