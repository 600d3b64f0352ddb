"""Calls that a type checker must refuse, each in the line marked so; never run."""

import numpy as np

import bsdsbench as bb

bb.evaluate("maps", "gt", protcol="bsds500")  # wrong: no such keyword
bb.evaluate("maps", "gt", worker=3)  # wrong: no such keyword
bb.evaluate("maps", "gt", workers="two")  # wrong: another type
bb.evaluate("maps", "gt", missing="none")  # wrong: not one of the three words
bb.evaluate("maps", "gt", on_error="ignore")  # wrong: not one of the two words
bb.evaluate("maps", "gt", shard=4)  # wrong: a pair
bb.evaluate("maps", "gt", tag="x")  # wrong: a keyword of bb.run
bb.evaluate("maps")  # wrong: no ground truth
bb.evaluate("maps", "gt", 0.5)  # wrong: no protocol
bb.evaluate("maps", "gt").scroe("boundary")  # wrong: the result has a type
bb.evaluate_humans("gt", missing="zero")  # wrong: annotators are not missing
bb.evaluate_items("maps", split_file="ids.txt")  # wrong: items have no split file
bb.evaluate_items([("a", np.eye(9), [np.eye(9)])], progress=True)  # wrong: a function
bb.run("canny", "images")  # wrong: no folder for the maps
bb.run("canny", "images", out="out", resume="yes")  # wrong: a bool
bb.run("canny", "images", out="out").evaluation.score("boundary")  # wrong: may be None
bb.merge("out")  # wrong: several runs
bb.compare(["a", "b"], n_boots=100)  # wrong: no such keyword
bb.compare(["a", "b"], n_boot="many")  # wrong: a number
bb.StreamingEvaluator(metric="boundary")  # wrong: it is metrics
bb.StreamingEvaluator().update(np.eye(9))  # wrong: no ground truth
bb.StreamingEvaluator(on_error="warn")  # wrong: not one of the two words
bb.doctor("maps", "gt", metrics=None)  # wrong: a name
bb.match_boundaries(np.eye(9), np.eye(9))  # wrong: no tolerance
bb.boundary_counts(np.eye(9), [np.eye(9)], 0.5)  # wrong: no protocol
bb.curves.pr([0, 1], [0.2, 0.8], ties="merged")  # wrong: not one of the words
bb.curves.roc([0, 1], [0.2, 0.8], interpolate=True)  # wrong: a keyword of pr
print(bb.no_such_name)  # wrong: there is none
print(bb.plotting.no_such_name)  # wrong: there is none
print(bb.curves.no_such_name)  # wrong: there is none
print(bb.evaluate("a", "b").boundary_score().odds)  # wrong: it is ods
print(bb.evaluate("a", "b").boundary_score().ods.fmeasure)  # wrong: it is f
bb.OperatingPoint(0.5, 0.75, 0.6, 2 / 3)  # wrong: by name
