"""bsdsbench: the BSDS500 contour and segmentation benchmark, exact and fast.

>>> import tempfile
>>> import bsdsbench as bb
>>> from bsdsbench.loaders.sample import sample_ground_truth, sample_images
>>> found = bb.run("sobel", sample_images(), gt=sample_ground_truth(), out=tempfile.mkdtemp())
>>> round(found.evaluation.boundary_score().ods.f, 3)
0.619

Names are imported when first used, so that `import bsdsbench` and the command line start at once.
"""

from bsdsbench.files.late import late

__version__ = "0.1.0"

_PACKAGES = {
    "scores.curve": "OperatingPoint PRCurve",
    "scores.ratios": "f_measure ratio",
    "metrics.assign": "assign",
    "metrics.boundary": "Match boundary_counts boundary_score match_boundaries",
    "comparison.compare": "Comparison compare",
    "diagnosis.doctor": "Finding doctor",
    "files.errors": "DataError ShapeError",
    "runs.comparability": "comparability",
    "runs.evaluation": "Evaluation",
    "loaders.inputs": "GroundTruth Prediction",
    "integrations.detectors": "DetectorRun run",
    "loaders.labels": "seg2bdry",
    "loaders": "load_ground_truth load_prediction",
    "metrics.maps": "nms thin",
    "metrics.pixel": "pixel_counts pixel_score",
    "plotting": "DETCurveDisplay PRCurveDisplay ROCCurveDisplay",
    "protocol.protocol": "NMSParams Protocol",
    "protocol.signature": "Difference Severity",
    "protocol.tasks": "Task",
    "scores.counts": "Counts ImageRecord Score",
    "metrics.base": "Column Metric",
    "metrics.region.counting": "region_counts",
    "metrics.region.metric": "region_score",
    "runs.merging": "merge",
    "runs.run": "evaluate evaluate_humans evaluate_items",
    "runs.streaming": "StreamingEvaluator",
}
_HOME = {name: package for package, names in _PACKAGES.items() for name in names.split()}
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
__getattr__ = late(__name__, _HOME, _MODULES)


def __dir__() -> list[str]:
    return list(__all__)
