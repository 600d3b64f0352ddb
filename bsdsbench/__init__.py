"""bsdsbench: the BSDS500 contour and segmentation benchmark, exact and fast.

>>> import tempfile
>>> import bsdsbench as bb
>>> from bsdsbench.loaders.sample import sample_ground_truth, sample_images
>>> found = bb.run("sobel", sample_images(), gt=sample_ground_truth(), out=tempfile.mkdtemp())
>>> round(found.evaluation.boundary_score().ods.f, 3)
0.619

Names are imported when first used, so that `import bsdsbench` and the command line start at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_PACKAGES = {
    "bsdsbench.scores.curve": ("OperatingPoint", "PRCurve"),
    "bsdsbench.scores.ratios": ("f_measure", "ratio"),
    "bsdsbench.metrics.assign": ("assign",),
    "bsdsbench.metrics.boundary": (
        "Match",
        "boundary_counts",
        "boundary_score",
        "match_boundaries",
    ),
    "bsdsbench.comparison.compare": ("Comparison", "compare"),
    "bsdsbench.diagnosis.doctor": ("Finding", "doctor"),
    "bsdsbench.files.errors": ("DataError", "ShapeError"),
    "bsdsbench.runs.evaluation": ("Evaluation",),
    "bsdsbench.loaders.inputs": ("GroundTruth", "Prediction"),
    "bsdsbench.integrations.detectors": ("DetectorRun", "run"),
    "bsdsbench.loaders.labels": ("seg2bdry",),
    "bsdsbench.loaders": ("load_ground_truth", "load_prediction"),
    "bsdsbench.metrics.maps": ("nms", "thin"),
    "bsdsbench.metrics.pixel": ("pixel_counts", "pixel_score"),
    "bsdsbench.plotting": ("DETCurveDisplay", "PRCurveDisplay", "ROCCurveDisplay"),
    "bsdsbench.protocol.protocol": ("NMSParams", "Protocol"),
    "bsdsbench.protocol.tasks": ("Task",),
    "bsdsbench.scores.counts": ("Counts", "ImageRecord", "Score"),
    "bsdsbench.metrics.base": ("Column", "Metric"),
    "bsdsbench.metrics.region.counting": ("region_counts",),
    "bsdsbench.metrics.region.metric": ("region_score",),
    "bsdsbench.runs.merging": ("merge",),
    "bsdsbench.runs.run": ("evaluate", "evaluate_humans", "evaluate_items"),
    "bsdsbench.runs.streaming": ("StreamingEvaluator",),
}
_HOME = {name: package for package, names in _PACKAGES.items() for name in names}
_MODULES = {
    "boundary": "metrics.boundary",
    "contour": "metrics.contour",
    "crispness": "metrics.crispness",
    "curves": "curves",
    "explain": "diagnosis.explain",
    "integrations": "integrations",
    "kernels": "kernels",
    "plotting": "plotting",
    "report": "report",
    "saliency": "metrics.saliency",
    "segmentation": "metrics.segmentation",
    "semantic": "metrics.semantic",
    "superpixels": "metrics.superpixel",
}

__all__ = sorted([*_HOME, "curves", "__version__"])


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"bsdsbench.{_MODULES[name]}")
    if name not in _HOME:
        raise AttributeError(f"module 'bsdsbench' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
