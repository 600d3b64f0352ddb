"""bsdsbench: the BSDS500 contour and segmentation benchmark, exact and fast.

>>> import tempfile
>>> import bsdsbench as bb
>>> from bsdsbench.loaders.sample import sample_ground_truth, sample_images
>>> found = bb.run("sobel", sample_images(), gt=sample_ground_truth(), out=tempfile.mkdtemp())
>>> round(found.evaluation.boundary_score().ods.f, 3)
0.619

Names are imported when first used, so that `import bsdsbench` and the command line start at once.
"""

from typing import TYPE_CHECKING

from bsdsbench.lazy import lazy_getattr

if TYPE_CHECKING:
    from bsdsbench import curves as curves
    from bsdsbench import integrations as integrations
    from bsdsbench import kernels as kernels
    from bsdsbench import plotting as plotting
    from bsdsbench import report as report
    from bsdsbench.comparison.compare import compare as compare
    from bsdsbench.comparison.comparison import Comparison as Comparison
    from bsdsbench.comparison.method import Method as Method
    from bsdsbench.comparison.slices import Slices as Slices
    from bsdsbench.comparison.slices import compare_slices as compare_slices
    from bsdsbench.comparison.slices import slice_tables as slice_tables
    from bsdsbench.comparison.slices import slices_of as slices_of
    from bsdsbench.detectors.detector_runs import DetectorRun as DetectorRun
    from bsdsbench.detectors.detector_runs import run as run
    from bsdsbench.diagnosis import explain as explain
    from bsdsbench.diagnosis.checks import Finding as Finding
    from bsdsbench.diagnosis.doctor import doctor as doctor
    from bsdsbench.errors import DataError as DataError
    from bsdsbench.errors import ShapeError as ShapeError
    from bsdsbench.images import GroundTruth as GroundTruth
    from bsdsbench.images import Prediction as Prediction
    from bsdsbench.integrations.training_labels import assign as assign
    from bsdsbench.loaders.labels import seg2bdry as seg2bdry
    from bsdsbench.loaders.readers import load_ground_truth as load_ground_truth
    from bsdsbench.loaders.readers import load_prediction as load_prediction
    from bsdsbench.metrics import contour as contour
    from bsdsbench.metrics import saliency as saliency
    from bsdsbench.metrics.base import Column as Column
    from bsdsbench.metrics.base import Metric as Metric
    from bsdsbench.metrics.boundary import boundary_counts as boundary_counts
    from bsdsbench.metrics.boundary import boundary_score as boundary_score
    from bsdsbench.metrics.error_classes import boundary_errors as boundary_errors
    from bsdsbench.metrics.matches import Match as Match
    from bsdsbench.metrics.matches import match_boundaries as match_boundaries
    from bsdsbench.metrics.pixel import pixel_counts as pixel_counts
    from bsdsbench.metrics.region.counting import region_counts as region_counts
    from bsdsbench.plotting import DETCurveDisplay as DETCurveDisplay
    from bsdsbench.plotting import PRCurveDisplay as PRCurveDisplay
    from bsdsbench.plotting import ROCCurveDisplay as ROCCurveDisplay
    from bsdsbench.protocol.nms_recipes import NMSParams as NMSParams
    from bsdsbench.protocol.protocol import Protocol as Protocol
    from bsdsbench.protocol.signature import Difference as Difference
    from bsdsbench.protocol.signature import Severity as Severity
    from bsdsbench.protocol.tasks import Task as Task
    from bsdsbench.results.comparability import comparability as comparability
    from bsdsbench.results.evaluation import Evaluation as Evaluation
    from bsdsbench.runs.arrays import evaluate_items as evaluate_items
    from bsdsbench.runs.engine import evaluate as evaluate
    from bsdsbench.runs.engine import evaluate_humans as evaluate_humans
    from bsdsbench.runs.merge import merge as merge
    from bsdsbench.runs.streaming import StreamingEvaluator as StreamingEvaluator
    from bsdsbench.scores.counts import Counts as Counts
    from bsdsbench.scores.counts import ImageRecord as ImageRecord
    from bsdsbench.scores.counts import MatchCounts as MatchCounts
    from bsdsbench.scores.counts import OperatingPoint as OperatingPoint
    from bsdsbench.scores.counts import Score as Score
    from bsdsbench.scores.curve import BoundaryScore as BoundaryScore
    from bsdsbench.scores.curve import PRCurve as PRCurve
    from bsdsbench.scores.ratios import f_measure as f_measure
    from bsdsbench.scores.ratios import ratio as ratio
    from bsdsbench.transforms.maps import nms as nms
    from bsdsbench.transforms.maps import thin as thin

__version__ = "0.1.0"

_PACKAGES = {
    "scores.curve": "BoundaryScore PRCurve",
    "scores.ratios": "f_measure ratio",
    "integrations.training_labels": "assign",
    "metrics.boundary": "boundary_counts boundary_score",
    "metrics.matches": "Match match_boundaries",
    "metrics.error_classes": "boundary_errors",
    "comparison.compare": "compare",
    "comparison.comparison": "Comparison",
    "comparison.method": "Method",
    "comparison.slices": "Slices compare_slices slice_tables slices_of",
    "diagnosis.doctor": "doctor",
    "diagnosis.checks": "Finding",
    "errors": "DataError ShapeError",
    "results.comparability": "comparability",
    "results.evaluation": "Evaluation",
    "images": "GroundTruth Prediction",
    "detectors.detector_runs": "DetectorRun run",
    "loaders.labels": "seg2bdry",
    "loaders.readers": "load_ground_truth load_prediction",
    "transforms.maps": "nms thin",
    "metrics.pixel": "pixel_counts",
    "plotting": "DETCurveDisplay PRCurveDisplay ROCCurveDisplay",
    "protocol.nms_recipes": "NMSParams",
    "protocol.protocol": "Protocol",
    "protocol.signature": "Difference Severity",
    "protocol.tasks": "Task",
    "scores.counts": "Counts ImageRecord MatchCounts OperatingPoint Score",
    "metrics.base": "Column Metric",
    "metrics.region.counting": "region_counts",
    "runs.merge": "merge",
    "runs.engine": "evaluate evaluate_humans",
    "runs.arrays": "evaluate_items",
    "runs.streaming": "StreamingEvaluator",
}
_HOME = {name: package for package, names in _PACKAGES.items() for name in names.split()}
_MODULES = {name: f"metrics.{name}" for name in ("contour", "saliency")}
_MODULES |= {name: name for name in ("curves", "integrations", "kernels", "plotting", "report")}
_MODULES["explain"] = "diagnosis.explain"

__all__ = sorted([*_HOME, "curves", "__version__"])
if not TYPE_CHECKING:  # it would give every name the type Any
    __getattr__ = lazy_getattr(__name__, _HOME, _MODULES)


def __dir__() -> list[str]:
    return list(__all__)
