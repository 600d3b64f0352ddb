"""ROC, PR and DET curves of any labels and scores: every convention by its name.

pr, roc, det            curves and summary numbers, VLFeat's meanings; ties per sample or merged
rank, Ranking           the counts under them: one sort for all three (`pr_from_ranking`, ...)
"""

from __future__ import annotations

from bsdsbench.curves.ranked import (
    det,
    det_from_ranking,
    pr,
    pr_from_ranking,
    roc,
    roc_from_ranking,
)
from bsdsbench.curves.ranking import Ranking, rank
from bsdsbench.curves.results import (
    DETResult,
    PRPoints,
    PRResult,
    ROCPoints,
    ROCResult,
    ThresholdCurve,
)

__all__ = [
    "DETResult",
    "PRPoints",
    "PRResult",
    "ROCPoints",
    "ROCResult",
    "Ranking",
    "ThresholdCurve",
    "det",
    "det_from_ranking",
    "pr",
    "pr_from_ranking",
    "rank",
    "roc",
    "roc_from_ranking",
]
