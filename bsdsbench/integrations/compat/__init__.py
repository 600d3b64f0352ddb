"""Entry points that scripts already call, with the names of four programs around BSDS500.

=================  ==============================================================================
module             replaces
=================  ==============================================================================
`bench_matlab`     boundaryBench, regionBench, allBench of the official MATLAB benchmark
`edges_toolbox`    edgesEvalDir, edgesEvalImg of the structured edge detection toolbox
`py_bsds`          evaluate_boundaries, pr_evaluation of py-bsds500
`py_edge_eval`     BSDS500Evaluator of pyEdgeEval
`py_edge_classes`  SBDEvaluator, CityscapesEvaluator of pyEdgeEval
=================  ==============================================================================

Arguments, defaults, return values and output files follow the documented interfaces; the matching
is this package's. `strict=True` reproduces the originals' quirks in numbers and files, but not
their randomised matching. Written from documentation and result tables, without any of the
programs' code.
"""

from __future__ import annotations

from bsdsbench.integrations.compat.bench_matlab import allBench, boundaryBench, regionBench
from bsdsbench.integrations.compat.edges_toolbox import edgesEvalDir, edgesEvalImg
from bsdsbench.integrations.compat.py_bsds import (
    compute_rec_prec_f1,
    evaluate_boundaries,
    evaluate_boundaries_bin,
    evaluate_boundaries_fast,
    pr_evaluation,
)
from bsdsbench.integrations.compat.py_edge_classes import CityscapesEvaluator, SBDEvaluator
from bsdsbench.integrations.compat.py_edge_eval import BSDS500Evaluator

__all__ = [
    "BSDS500Evaluator",
    "CityscapesEvaluator",
    "SBDEvaluator",
    "allBench",
    "boundaryBench",
    "compute_rec_prec_f1",
    "edgesEvalDir",
    "edgesEvalImg",
    "evaluate_boundaries",
    "evaluate_boundaries_bin",
    "evaluate_boundaries_fast",
    "pr_evaluation",
    "regionBench",
]
