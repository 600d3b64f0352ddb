"""Why a score is not the published one: try what people disagree on, one setting at a time.

Rules (AP, ODS, OIS, fewer thresholds) are read off the counts that are there. Settings (NMS,
tolerance, thinning, annotators) count the images again. If none of them alone reaches the target,
the nearest few are each combined with those of another kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np

from bsdsbench.core.errors import DataError
from bsdsbench.core.inputs import GroundTruth
from bsdsbench.core.precision_recall import (
    RECALL_LEVELS,
    PRCurve,
    average_precision,
    best_point,
    f_measure,
    image_best_index,
    optimal_image_scale,
    pr_curve,
)
from bsdsbench.core.protocol import Protocol
from bsdsbench.core.records import BoundaryCounts
from bsdsbench.loaders import pair
from bsdsbench.metrics import registry
from bsdsbench.runs.evaluation import Evaluation
from bsdsbench.runs.manifest import is_run
from bsdsbench.runs.sources import Sources, find_sources

Counts = Sequence[BoundaryCounts]
MEASURES = ("ods", "ois", "ap")
METRIC = registry.DEFAULT[0]
Progress = Callable[[int, int, str], None]


STARTS = 4  # single settings that pairs are made from
REACHED = 0.0005  # half of the last digit papers print


@dataclass(frozen=True, slots=True)
class Trial:
    """One combination of settings: what differs from the run explained, and the scores.

    gap : the largest distance to a target
    """

    label: str
    scores: dict[str, float]
    gap: float

    @property
    def reached(self) -> bool:
        """True if every target is met to the three digits papers print."""
        return self.gap <= REACHED


# ---- rules: other numbers from the same counts ---------------------------------------------------


def _ods_grid(counts: Counts) -> float:
    return float(pr_curve(reduce(add, counts)).f.max())


def _ods_mean(counts: Counts) -> float:
    return float(np.mean([pr_curve(c).f for c in counts], axis=0).max())


def _ods_mean_pr(counts: Counts) -> float:
    curves = [pr_curve(c) for c in counts]
    p, r = (np.mean([getattr(c, n) for c in curves], axis=0) for n in ("precision", "recall"))
    return float(f_measure(p, r).max())


def _ois_mean(counts: Counts) -> float:
    return float(np.mean([pr_curve(c).f[image_best_index(c)] for c in counts]))


def _ap_ends(counts: Counts) -> float:
    """The official rule with the points (0, 1) and (1, 0) added."""
    curve = pr_curve(reduce(add, counts))
    recall = np.concatenate(([1.0], curve.recall, [0.0]))
    precision = np.concatenate(([0.0], curve.precision, [1.0]))
    order = np.argsort(recall, kind="stable")
    recall, first = np.unique(recall[order], return_index=True)
    return float(np.interp(RECALL_LEVELS, recall, precision[order][first]).sum() * 0.01)


def _ap_envelope(counts: Counts) -> float:
    """The official rule on precision made non-increasing in recall, flat to recall 0."""
    curve = pr_curve(reduce(add, counts))
    best = [curve.precision[curve.recall >= level].max(initial=0.0) for level in RECALL_LEVELS]
    return float(np.sum(best) * 0.01)


def _ap_step(counts: Counts) -> float:
    """sum (R_k - R_k-1) P_k from recall 0, as scikit-learn's average precision."""
    curve = pr_curve(reduce(add, counts))
    order = np.argsort(curve.recall, kind="stable")
    return float(np.sum(np.diff(curve.recall[order], prepend=0.0) * curve.precision[order]))


def _ap_mean(counts: Counts) -> float:
    return float(np.mean([average_precision(pr_curve(c)) for c in counts]))


RULES: dict[str, dict[str, Callable[[Counts], float]]] = {
    "ods": {
        "ODS without interpolation": _ods_grid,
        "ODS as mean of the images' F": _ods_mean,
        "ODS as F of the images' mean P and R": _ods_mean_pr,
    },
    "ois": {"OIS as mean of the images' best F": _ois_mean},
    "ap": {
        "AP with end points (0,1), (1,0)": _ap_ends,
        "AP of the envelope": _ap_envelope,
        "AP as a step sum": _ap_step,
        "AP as mean of the images' AP": _ap_mean,
    },
}


def official(counts: Counts) -> dict[str, float]:
    """ODS, OIS and AP by the official rules."""
    curve: PRCurve = pr_curve(reduce(add, counts))
    return {
        "ods": best_point(curve).f,
        "ois": optimal_image_scale(list(counts)).f,
        "ap": average_precision(curve),
    }


# ---- settings: count again -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Setting:
    kind: str
    label: str
    changes: Mapping[str, Any]


def _settings() -> list[_Setting]:
    """What people disagree on. Two of one kind exclude each other."""
    found = [_Setting("nms", "no NMS", {"nms": False})]
    for radius, multiplier in ((1, 1.01), (2, 1.01), (1, 1.03), (1, 1.04), (1, 1.0)):
        params: dict[str, Any] = {"radius": radius, "multiplier": multiplier}
        label = f"NMS {radius}, 5, {multiplier:g}"
        found.append(_Setting("nms", label, {"nms": True, "nms_params": params}))
    for label, params in (
        ("NMS without smoothing first", {"smooth": False}),
        ("NMS kept in float", {"bits": 0}),
    ):
        found.append(_Setting("nms", label, {"nms": True, "nms_params": params}))
    for max_dist in (0.0035, 0.0075, 0.01, 0.011, 0.02):
        changes = {"max_dist": max_dist, "max_dist_px": None}
        found.append(_Setting("tolerance", f"max_dist {max_dist:g}", changes))
    for thin, label in ((True, "with thinning"), (False, "without thinning")):
        found.append(_Setting("thinning", label, {"thin": thin}))
    for count in (5, 25, 33, 50, 99):
        found.append(_Setting("thresholds", f"{count} thresholds", {"thresholds": count}))
    found.append(_Setting("thresholds", "255 thresholds k/255", {"thresholds": "8bit"}))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """What is explained: the files as the run read them, and the counts it made, if any.

    sources : the pairs and the kind of the predictions; run : a saved run, or one without records
    """

    sources: Sources
    run: Evaluation

    @property
    def counts(self) -> list[BoundaryCounts] | None:
        """The stored counts in the order of the pairs, or None where nothing was counted yet."""
        stored = {r.image_id: r.counts.get(METRIC) for r in self.run.records}
        found = [stored.get(image_id) for image_id in self.sources.pairs]
        return None if any(c is None for c in found) else [c for c in found if c is not None]

    def some(self, limit: int | None) -> Inputs:
        """The same with at most `limit` images, spread over the set."""
        pairs = self.sources.pairs
        step = max(1, -(-len(pairs) // limit)) if limit else 1
        kept = {k: pairs[k] for k in list(pairs)[::step]}
        return replace(self, sources=replace(self.sources, pairs=kept))


def count_images(
    inputs: Inputs, protocol: Protocol, *, annotators: str = "all", workers: int | None = None
) -> list[BoundaryCounts]:
    """Counts of every image under a protocol.

    annotators : "all", "first" (only one annotator an image), or "union" (drawn into one map)
    """
    from concurrent.futures import ThreadPoolExecutor

    from bsdsbench.runs.executors import available_cores

    metric = registry.get(METRIC)

    def one(image_id: str) -> BoundaryCounts:
        pred, gt = inputs.sources.load(image_id, inputs.run, protocol)
        counts: Any = metric.count(pred, _chosen(gt, annotators), protocol)
        return counts

    with ThreadPoolExecutor(workers or available_cores()) as pool:
        return list(pool.map(one, inputs.sources.pairs))


def _chosen(gt: GroundTruth, annotators: str) -> GroundTruth:
    if annotators == "first":
        return replace(gt, boundaries=gt.boundaries[:1], segmentations=())
    if annotators == "union":
        drawn = np.logical_or.reduce(gt.boundaries)
        return replace(gt, boundaries=(drawn,), segmentations=())
    return gt


def parse_targets(items: Sequence[str]) -> dict[str, float]:
    """`["ods=0.788", "ap=.84"]` -> {"ods": 0.788, "ap": 0.84}. Raises DataError."""
    targets = {}
    for item in (part for text in items for part in text.split(",")):
        name, equals, value = item.partition("=")
        name = name.strip().lower()
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        if not equals or name not in MEASURES or not 0 <= number <= 1:
            raise DataError(f"--target {item!r}: expected ods=, ois= or ap= and a number in [0, 1]")
        targets[name] = number
    if not targets:
        raise DataError("--target: none given, expected such as ods=0.788")
    return targets


def inputs_of(
    run: str | Path,
    gt_dir: str | Path | None,
    protocol: Protocol,
    *,
    split_file: str | Path | None = None,
    pred_kind: str = "soft",
) -> Inputs:
    """What a saved run was made from, or the given folders.

    Of a saved run its own protocol, images, kind of prediction and missing images are taken; the
    other arguments are for folders. Raises DataError if there is neither a saved run nor a ground
    truth, or the files are gone.
    """
    folder = Path(run)
    if is_run(folder):
        saved = Evaluation.load(folder)
        return Inputs(find_sources(saved, gt_dir=gt_dir, metric=METRIC), saved)
    if gt_dir is None:
        raise DataError(f"{run}: no saved run (result.json), expected one, or --gt GT_DIR")
    pairs = pair(folder, gt_dir, split_file=split_file, pred_kind=pred_kind)
    found = Sources({p.image_id: p for p in pairs}, {}, pred_kind, registry.get(METRIC).gt_kind)
    return Inputs(found, Evaluation(protocol, folder.name, ()))


def explain(
    inputs: Inputs,
    targets: Mapping[str, float],
    *,
    limit: int | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> list[Trial]:
    """Every trial, nearest to the targets first; the run as it is has the label "as it is".

    targets : measure ("ods", "ois", "ap") -> published value, such as {"ods": 0.788}
    limit   : count only so many images, spread over the set: a guess in less time
    Raises DataError for unknown measures and whatever the loaders find.
    """
    unknown = [m for m in targets if m not in MEASURES]
    if unknown or not targets:
        raise DataError(f"target {unknown[:1] or 'missing'}: expected any of {', '.join(MEASURES)}")
    inputs, protocol = inputs.some(limit), inputs.run.protocol

    def count(label: str, proto: Protocol, annotators: str = "all") -> Counts:
        if progress:
            progress(len(trials), 0, label)
        return count_images(inputs, proto, annotators=annotators, workers=workers)

    trials: list[Trial] = []
    trials += _by_rules("as it is", inputs.counts or count("as it is", protocol), targets)
    firsts: list[tuple[float, _Setting]] = []
    for setting in _settings():
        other = protocol.replace(**setting.changes)
        if protocol.differences(other):
            found = _by_rules(setting.label, count(setting.label, other), targets)
            firsts.append((found[0].gap, setting))
            trials += found
    for annotators in ("first", "union"):
        label = f"{annotators} of the annotators"
        trials += _by_rules(label, count(label, protocol, annotators), targets)
    if not any(t.reached for t in trials):
        best = sorted(firsts, key=lambda f: f[0])[:STARTS]
        for label, other in _pairs([setting for _, setting in best], protocol):
            trials += _by_rules(label, count(label, other), targets)
    return sorted(trials, key=lambda t: t.gap)


def _pairs(starts: Sequence[_Setting], protocol: Protocol) -> list[tuple[str, Protocol]]:
    """Each of the settings with each one of another kind, every pair once."""
    found: dict[frozenset[str], tuple[str, Protocol]] = {}
    for one in starts:
        begun = protocol.replace(**one.changes)
        for two in _settings():
            other = begun.replace(**two.changes)
            if one.kind == two.kind or not begun.differences(other):
                continue
            key = frozenset((one.label, two.label))
            found.setdefault(key, (f"{one.label} + {two.label}", other))
    return list(found.values())


def _by_rules(label: str, counts: Counts, targets: Mapping[str, float]) -> list[Trial]:
    """The trial by the official rules, then one for each other rule of a measure asked for."""
    scores = official(counts)
    trials = [_trial(label, scores, targets)]
    for measure in targets:
        for rule, compute in RULES[measure].items():
            name = rule if label == "as it is" else f"{label} + {rule}"
            trials.append(_trial(name, {**scores, measure: compute(counts)}, targets))
    return trials


def _trial(label: str, scores: dict[str, float], targets: Mapping[str, float]) -> Trial:
    return Trial(label, scores, max(abs(scores[m] - t) for m, t in targets.items()))
