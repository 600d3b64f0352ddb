"""ROC, PR and DET curves for any labels and scores: every convention has a name.

pr, roc, det            curves and summary numbers, VLFeat's meanings; ties per sample or merged
rank, Ranking           the counts under them: one sort for all three (`pr_from_ranking`, ...)
threshold_curve         weighted or fractional targets at quantiles of the scores (Schroedl)
roc_to_pr, pr_to_roc    points between the two spaces
roc_convex_hull, achievable_pr, interpolate_pr   what lies between and above points
auc_pr, auc_roc, davis_goadrich_area, auccalculator_areas   areas, each rule by name
area_table              every AP and AUC variant of the same data, with its name
BinnedCurves            the streaming form: counts in bins, which add
dominates, crossings    one curve against another
"""

from __future__ import annotations

from bsdsbench.curves.areas import auc_pr, auc_roc, auccalculator_areas, davis_goadrich_area
from bsdsbench.curves.curve_table import AreaRow, area_table
from bsdsbench.curves.geometry import (
    achievable_pr,
    crossings,
    dominates,
    interpolate_pr,
    pr_to_roc,
    roc_convex_hull,
    roc_to_pr,
)
from bsdsbench.curves.ranked import (
    det,
    det_from_ranking,
    pr,
    pr_from_ranking,
    roc,
    roc_from_ranking,
)
from bsdsbench.curves.ranking import Ranking, rank
from bsdsbench.curves.results import DETResult, PRPoints, PRResult, ROCPoints, ROCResult
from bsdsbench.curves.thresholds import BinnedCurves, ThresholdCurve, threshold_curve

__all__ = [
    "AreaRow",
    "BinnedCurves",
    "DETResult",
    "PRPoints",
    "PRResult",
    "ROCPoints",
    "ROCResult",
    "Ranking",
    "ThresholdCurve",
    "achievable_pr",
    "area_table",
    "auc_pr",
    "auc_roc",
    "auccalculator_areas",
    "crossings",
    "davis_goadrich_area",
    "det",
    "det_from_ranking",
    "dominates",
    "interpolate_pr",
    "pr",
    "pr_from_ranking",
    "pr_to_roc",
    "rank",
    "roc",
    "roc_convex_hull",
    "roc_from_ranking",
    "roc_to_pr",
    "threshold_curve",
]
