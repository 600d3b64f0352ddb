"""ROC, PR and DET curves of any labels and scores, with a name for every convention.

- pr, roc, det: curves and summary numbers, with one point per score or per sample (VLFeat)
- CurvePoints: points from rates or counts
- threshold_curve: weighted or fractional targets at quantiles of the scores (Schroedl)
- roc_to_pr, pr_to_roc: conversion of points between the two spaces
- roc_convex_hull, achievable_pr, interpolate_pr: points above and between points
- dominates, crossings, meeting: comparison of two curves
- auc_pr, auc_roc, davis_goadrich_area, auccalculator_areas: areas, each rule by name
- delong: test of the difference between two areas under ROC curves of the same samples
- area_table: every AP and AUC variant of the same data, with its name

All of them raise ShapeError if arrays that belong together differ in length, and DataError if a
value is NaN or out of its range: rates and shares 0 to 1, counts that do not fall, totals above 0.
"""

from bsdsbench.curves.areas import (
    AreaRow,
    area_table,
    auc_pr,
    auc_roc,
    auccalculator_areas,
    davis_goadrich_area,
)
from bsdsbench.curves.geometry import (
    PRPoints,
    ROCPoints,
    achievable_pr,
    crossings,
    dominates,
    interpolate_pr,
    pr_to_roc,
    roc_convex_hull,
    roc_to_pr,
)
from bsdsbench.curves.points import CurvePoints, Meeting, ThresholdCurve, meeting, threshold_curve
from bsdsbench.curves.ranked import PRResult, ROCResult, det, pr, roc
from bsdsbench.curves.roc_difference import DeLongResult, delong

__all__ = ["AreaRow", "CurvePoints", "DeLongResult", "Meeting", "PRPoints", "PRResult"]
__all__ += ["ROCPoints", "ROCResult", "ThresholdCurve", "achievable_pr", "area_table", "auc_pr"]
__all__ += ["auc_roc", "auccalculator_areas", "crossings", "davis_goadrich_area", "delong", "det"]
__all__ += ["dominates", "interpolate_pr", "meeting", "pr", "pr_to_roc", "roc", "roc_convex_hull"]
__all__ += ["roc_to_pr", "threshold_curve"]
