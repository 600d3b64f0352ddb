"""Calls that a type checker accepts; `test_face.py` checks this file, it is never run."""

from pathlib import Path
from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import bsdsbench as bb
from bsdsbench.metrics.contour import boundary_iou

run = bb.evaluate("maps", Path("gt"), "bsds500", ("boundary", "region"), workers=2, out="out")
assert_type(run, bb.Evaluation)
assert_type(bb.evaluate("maps", "gt", metrics="region", shard=(1, 4)), bb.Evaluation)
assert_type(bb.evaluate_humans("gt", workers=1, split_file="ids.txt"), bb.Evaluation)
assert_type(bb.evaluate_items([("a", np.eye(9), [np.eye(9)])], name="mine"), bb.Evaluation)
detector_run = bb.run("canny", "images", out="out", gt="gt", on_error="fail", tag="epoch 3")
assert_type(detector_run, bb.DetectorRun)
assert_type(detector_run.evaluation, bb.Evaluation | None)
assert_type(bb.merge([run, run]), bb.Evaluation)
assert_type(bb.compare([run, "out/other"], n_boot=100, seed=1), bb.Comparison)
evaluator = bb.StreamingEvaluator("bsds500", metrics=["boundary"], classes=None, on_error="fail")
evaluator.update(np.eye(9), [np.eye(9)], image_id="a")
assert_type(evaluator.compute(), bb.Evaluation)
assert_type(evaluator.merge(evaluator), bb.StreamingEvaluator)
findings = bb.doctor("maps", "gt", looked_at=4)
assert_type(findings[0].code, str)
protocol = bb.Protocol.preset("bsds500").replace(max_dist=0.011)
assert_type(protocol, bb.Protocol)
counts = bb.boundary_counts(np.eye(9), [np.eye(9)], protocol)
assert_type(counts, bb.MatchCounts)
match = bb.match_boundaries(np.eye(9), np.eye(9), max_dist_px=1.5)
assert_type(match, bb.Match)
assert_type(match.n_matched, int)
score = run.boundary_score()
assert_type(score, bb.BoundaryScore)
assert_type(score.ods, bb.OperatingPoint)
assert_type(run.boundary_score().ods.f, float)
assert_type(score.ois.threshold, float | None)
assert_type(score.r50, float)
assert_type(score.curve, bb.PRCurve)
assert_type(bb.boundary_score(counts).ap, float)
assert_type(score.curve.at(0.5).precision, float)
assert_type(bb.PRCurveDisplay.from_evaluation(run, name="HED"), bb.PRCurveDisplay)
assert_type(bb.curves.pr([0, 1], [0.2, 0.8]), bb.curves.PRResult)
assert_type(bb.curves.roc([0, 1], [0.2, 0.8], ties="sample"), bb.curves.ROCResult)
assert_type(boundary_iou(np.eye(9), np.eye(9), 0.02), float)
assert_type(boundary_iou(np.eye(9), np.eye(9), classes=2), NDArray[np.float64])
