"""ROC, PR and DET curves of any labels and scores, with a name for every convention.

- pr, roc, det: curves and summary numbers, with one point per score or per sample (VLFeat)
- CurvePoints: points built from rates or counts
- threshold_curve: weighted or fractional targets at quantiles of the scores (Schroedl)
- roc_to_pr, pr_to_roc: conversion of points between the two spaces
- roc_convex_hull, achievable_pr, interpolate_pr: convex hull, and interpolation between points
- dominates, crossings, meeting: comparison of two curves
- auc_pr, davis_goadrich_area, auccalculator_areas: areas by different rules
- delong: test of the difference between the areas under two ROC curves of the same samples
- area_table: every variant of AP and AUC for the same data, by name

All of them raise ShapeError if arrays that belong together differ in length. They raise DataError
if a value is NaN or invalid: rates and shares must be in [0, 1], counts along a curve must not
decrease, and class totals must be above 0.
"""

from bsdsbench.curves.areas import (
    AreaRow,
    area_table,
    auc_pr,
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
from bsdsbench.curves.points import CurvePoints, Meeting, meeting, threshold_curve
from bsdsbench.curves.ranked import PRResult, ROCResult, det, pr, roc
from bsdsbench.curves.roc_difference import DeLongResult, delong

__all__ = ["AreaRow", "CurvePoints", "DeLongResult", "Meeting", "PRPoints", "PRResult"]
__all__ += ["ROCPoints", "ROCResult", "achievable_pr", "area_table", "auc_pr"]
__all__ += ["auccalculator_areas", "crossings", "davis_goadrich_area", "delong", "det"]
__all__ += ["dominates", "interpolate_pr", "meeting", "pr", "pr_to_roc", "roc", "roc_convex_hull"]
__all__ += ["roc_to_pr", "threshold_curve"]
