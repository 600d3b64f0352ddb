"""Possible causes of a different score: other scoring rules, other settings, other images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from attrs import evolve

from bsdsbench.arguments import Ints
from bsdsbench.curves.areas import auc_pr
from bsdsbench.errors import DataError, ProtocolError
from bsdsbench.images import GroundTruth, Map, Prediction
from bsdsbench.loaders.sets.identity import shipped_sets
from bsdsbench.loaders.split_files import read_split
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Metric
from bsdsbench.metrics.boundary import threshold_changes, truth_maps, whole_image_counts
from bsdsbench.metrics.optional import whole_curve
from bsdsbench.metrics.semantic import dilate
from bsdsbench.protocol.fields import HOME_MADE, in_use
from bsdsbench.protocol.nms_recipes import RECIPES
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.protocol.signature import Severity, Signature
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.score_names import score_name
from bsdsbench.results.score_tables import curves_of, difference_notes, reading_line
from bsdsbench.runs.keywords import StrPath
from bsdsbench.runs.sources import Sources, find_sources
from bsdsbench.scores.counts import MatchCounts
from bsdsbench.scores.curve import (
    AP_RULES,
    ODS_RULES,
    PRCurve,
    area,
    average_precision,
    best,
)
from bsdsbench.tables.table import Cell, Field, Table
from bsdsbench.text import grouped

MAX_SPLIT_FILES = 50


# ---- other rules: the same counts give another score ---------------------------------------------

PROGRAMS_OF_AP_RULES = {
    "bsds": "the BSDS500 and edges programs",
    "edter": "EDTER, UAED, MuGE, SAUGE",
    "endpoints": "plot-edge-pr-curves",
    "seism": "SEISM and multi-task learning (InvPT, ATRC)",
    "sbd": "the SBD programs, Area",
    "101-point": "the SBD programs, AP; COCO-style scripts",
}


class OtherScores(NamedTuple):
    """Scores computed from the same counts by another rule, or read from another column."""

    label: str  # the rule, or the headings of the columns
    who: str  # the programs that use the rule, or "" for a column
    scores: dict[str, float]  # the scores that this changes, such as "ods" or the key of a target


def iterate_rules(run: PRCurve, images: PRCurve, whole: PRCurve) -> Iterator[OtherScores]:
    """Yield ODS and AP by every rule that programs use, and the means over images.

    Each item has one score, such as OtherScores("AP rule seism", "SEISM ...", {"ap": 0.74}).

    run : the curve of the run, with T points
    images : the curves of the N images, as arrays (N, T)
    whole : `run`, with an additional point at threshold 0 if that is known, for the rules of AP
    """
    bsds, seism = "the BSDS500 programs", "SEISM, skeval"
    sklearn_ap, sklearn_auc = "scikit-learn's average precision", "numpy's and scikit-learn's auc"
    order = np.argsort(run.recall, kind="stable")
    p, r = run.precision[order], run.recall[order]  # by ascending recall
    rules = [  # (score, description of the rule, programs that use it, value)
        ("ods", "ODS at a threshold, not interpolated", seism, best(run, "maximum").f),
        ("ods", "ODS interpolated between thresholds", bsds, best(run, "interpolated").f),
        ("ods", "ODS as mean of the images' F", HOME_MADE, float(images.f.mean(axis=0).max())),
        ("ois", "OIS as mean of the images' best F", HOME_MADE, float(images.f.max(axis=1).mean())),
        ("ap", "AP as mean of the images' AP", HOME_MADE, float(area(images).mean())),
        ("ap", "AP as a step sum", sklearn_ap, auc_pr(p, r, rule="step")),
        ("ap", "AP as a trapezoid sum", sklearn_auc, auc_pr(p, r, rule="trapezoid")),
    ]
    for rule, programs in PROGRAMS_OF_AP_RULES.items():
        rules.append(("ap", f"AP rule {rule}", programs, float(average_precision(whole, rule))))
    for score, label, who, value in rules:
        yield OtherScores(label, who, {score: float(value)})


def iterate_other_columns(
    metric: Metric, targets: Mapping[str, Any], scores: Mapping[str, float]
) -> Iterator[OtherScores]:
    """Yield the scores of a run from other columns that the published numbers may come from.

    A metric may have several columns for the same quantity, the name under which papers report a
    score: the columns "ece" and "ece_mean" are the variants "" and "_mean" of the quantity "ece",
    and a published ECE may be either. One item is yielded for each variant that has a score for
    every target, including the variant of the targets themselves. Its `scores` map each target to
    the score in this variant, such as {"ece": score of "ece_mean"}, and its label lists the
    headings of the columns. It names no program (`who`), as a column is no rule of one.

    Nothing is yielded if the targets are of several parts of the metric (such as classes), or if
    the column of a target is of no quantity.

    targets : column key -> published value
    scores : column key -> score of the run
    """
    # Split each name into metric, part (such as a class) and column; None if it is unknown
    names = [score_name(f"{metric.name}.{target}") for target in targets]
    prefixes = {f"{name.part}." if name and name.part else "" for name in names}
    if len(prefixes) != 1:  # targets of several parts
        return
    (prefix,) = prefixes  # "road." if the keys are those of the class "road", "" for no class
    columns = {prefix + c.key: c for c in metric.columns if c.quantity}
    if not targets.keys() <= columns.keys():
        return
    known_keys: dict[tuple[str, str], str] = {}  # (variant "_mean", quantity "ece") -> "ece_mean"
    for key, column in columns.items():
        variant = column.key.replace(column.quantity, "", 1)  # what the key has beside it
        known_keys.setdefault((variant, column.quantity), key)
    for variant in dict.fromkeys(variant for variant, _ in known_keys):
        keys = [known_keys.get((variant, columns[target].quantity), "") for target in targets]
        if all(key in scores for key in keys):
            label = ", ".join(columns[key].heading for key in keys)
            other_scores = {t: scores[key] for t, key in zip(targets, keys, strict=True)}
            yield OtherScores(label, who="", scores=other_scores)


# ---- tables of every rule ------------------------------------------------------------------------


def add_whole_image(
    files: Sources, protocol: Protocol, curve: PRCurve, stack: Mapping[str, Ints]
) -> PRCurve:
    """Return a run's curve with an additional point at threshold 0, where every pixel is predicted.

    This point is counted from the ground truth of all images in `files`. `stack["matches"]` has the
    counts of N images at the T other thresholds, which are ascending and above 0, (N, T, 4):
    matched and all annotated pixels, matched and all predicted pixels.
    """
    matches = stack["matches"].sum(axis=0)  # (T, 4), over the images
    matches_at_0 = np.zeros(4, np.int64)
    for image_id in files.items:
        truth = files.truth(image_id, protocol)
        gt_maps = truth_maps(truth, protocol)
        valid = truth.parts.get("valid")  # None if all pixels count
        matches_at_0 = matches_at_0 + whole_image_counts(gt_maps, valid)
    return PRCurve.of_counts(np.r_[0.0, curve.thresholds], np.vstack([matches_at_0, matches]))


def build_rules_tables(runs: Sequence[Evaluation], gt_dir: StrPath | None = None) -> list[Table]:
    """Return a table of AP and ODS by every rule that programs use, for each metric with curves.

    A table has one column for each run, and one row for each rule. If parts of the metric, such as
    classes, have curves too, there is a row for each rule and part. A cell is None if the run has
    no such curve, or if the rule cannot be applied to it. Some rules need the ground truth, in
    `gt_dir` or, by default, in the folder recorded in the run. The last column says in words what
    the rule is.
    """
    # Notes on all differences but those of the rules, by which the rows of the table differ
    ruled = []
    for run in runs:
        old = run.protocol
        protocol = old.replace(ap_rule="bsds", ods_rule="interpolated", name=old.name)
        ruled.append(replace(run, protocol=protocol))
    reading, notes = reading_line(runs), difference_notes(ruled)
    tables = []
    for metric in dict.fromkeys(metric for run in runs for metric in run.metrics):
        values_of_runs = []  # for each run: part -> (score, rule) -> value
        for run in runs:
            curves = curves_of(run, metric) if metric in run.metrics else {}  # part -> curve
            values = {p: _apply_rules(run, metric, p, curve, gt_dir) for p, curve in curves.items()}
            values_of_runs.append(values)
        parts = dict.fromkeys(part for values in values_of_runs for part in values)
        if not parts:  # no run has a curve of this metric
            continue
        has_named_parts = any(parts)  # the part "" is the metric as a whole
        labels = [Field("score", "Score"), Field("rule", "Rule")]
        labels += [Field("part", "Curve")] if has_named_parts else []
        run_columns = [Field(f"run_{k}", run.name, format=".4f") for k, run in enumerate(runs, 1)]
        rows: list[list[Cell]] = []
        for score, descriptions in (("AP", AP_RULES), ("ODS", ODS_RULES)):
            for (rule, description), part in product(descriptions.items(), parts):
                row: list[Cell] = [score, rule, part] if has_named_parts else [score, rule]
                row += [values.get(part, {}).get((score, rule)) for values in values_of_runs]
                rows.append([*row, description])
        key, title = "rules", "Rules"
        if metric not in registry.DEFAULT_METRICS:
            key, title = f"rules-{metric}", f"Rules, {metric}"
        fields = [*labels, *run_columns, Field("what", "What it is")]
        n_labels = len(labels)
        table = Table(key, title, fields, rows, reading=reading, notes=notes, n_labels=n_labels)
        tables.append(table)
    if not tables:
        raise DataError(f"{', '.join(run.name for run in runs)}: no curve, expected one to read")
    return tables


def _apply_rules(
    run: Evaluation, metric: str, part: str, curve: PRCurve, gt_dir: StrPath | None
) -> Mapping[tuple[str, str], float | None]:
    """Return AP and ODS of a curve by every rule: {("AP" or "ODS", rule): value or None}.

    `part` is what the curve belongs to, such as a class, or "" for the metric as a whole.

    The AP rule "edter" needs the point of the curve at threshold 0, where every pixel is predicted;
    without it, its value is None. The rule "step" uses the point if it is known, but not for the
    metric "boundary", whose own AP by this rule is that of its thresholds only. Some metrics know
    the point from their counts. For the metric "boundary" it is counted from the ground truth in
    `gt_dir` (None: the folder recorded in the run).
    """
    is_boundary = metric in registry.DEFAULT_METRICS  # ("boundary",)
    curve_from_0 = curve
    if not run.records:  # official result files, which do not say whether they have the point
        curve = curve_from_0 = replace(curve, whole_image=bool(curve.thresholds[0] == 0))
    elif not part:  # for parts, the point is not known
        stack = run.stack(metric)
        curve_from_0 = whole_curve(registry.get(metric), curve, stack)
        # The thresholds 1, 2, ... are numbers of the levels of segmentations, without such a point
        if is_boundary and not curve_from_0.whole_image and curve.thresholds[-1] <= 1:
            with suppress(DataError):  # there is no ground truth
                files = find_sources(run, gt_dir=gt_dir, metric=metric)
                curve_from_0 = add_whole_image(files, run.protocol, curve, stack)
    curve_of_rule = {"edter": curve_from_0, "step": curve if is_boundary else curve_from_0}
    numbers: dict[tuple[str, str], float | None] = {}
    for rule in AP_RULES:
        ap = float(area(curve_of_rule.get(rule, curve), rule))
        numbers["AP", rule] = None if np.isnan(ap) else ap
    return numbers | {("ODS", rule): float(best(curve, rule).f) for rule in ODS_RULES}


# ---- settings: images must be counted again ------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class CountingChange:
    """A different way to count images."""

    kind: str  # the changed option; two changes of the same kind exclude each other
    label: str  # the change in words
    who: str  # the programs that count in this way
    # Changes of the protocol, applied one after the other: mappings from field name to value
    changes: tuple[Mapping[str, Any], ...] = ()
    annotators: Literal["all", "first", "union"] = "all"  # "union": the union of all annotations
    many_to_one: bool = False  # True if a pixel may be matched any number of times
    n_causes: int = 1  # 2 for a pair of changes

    def on(self, protocol: Protocol) -> Protocol:
        """Return the changed protocol. Raises ProtocolError if fields of it are incompatible."""
        for change in self.changes:
            protocol = protocol.replace(**change)
        return protocol

    def differs(self, protocol: Protocol, metric: Metric) -> bool:
        """Return True if the change may affect how `metric` counts images under `protocol`.

        It does not if it leaves all fields and options that the counts depend on as they are.
        Returns False, too, if the changed fields are incompatible with the rest of the protocol.
        """
        try:
            after = self.on(protocol)
            options_after = metric.options_of(after)
        except ProtocolError:
            return False
        if self.annotators != "all" or self.many_to_one:
            return True  # a run counts all annotators, and matches pixels one-to-one
        if options_after != metric.options_of(protocol):
            return True
        # Compare the other fields by their signatures, which state what the scores depend on:
        # differences without effect, as in the parameters of an NMS that is off, are IGNORED.
        # Options were compared above, and the name of the protocol does not matter.
        signature = Signature(evolve(protocol, name="any", options={}))
        signature_after = Signature(evolve(after, name="any", options={}))
        differences = signature.differences(signature_after)
        return any(d.severity is not Severity.IGNORED for d in differences)

    def truth(self, gt: GroundTruth) -> GroundTruth:
        """Return the ground truth that is counted under this change, according to `annotators`.

        It is `gt` itself ("all"), what the first annotator drew ("first"), or a single boundary map
        with the pixels that any annotator marked ("union").
        """
        if self.annotators == "first":
            # What annotators draw, of which `parts` has a tuple with an item for each annotator
            names = gt.parts.keys() & {"boundaries", "segmentations"}
            return gt.replace(**{name: gt.parts[name][:1] for name in names})
        if self.annotators == "union":
            union = np.logical_or.reduce(gt.boundaries)
            # None removes the annotators' regions, which have no union
            return gt.replace(boundaries=(union,), segmentations=None)
        return gt

    def with_other(self, other: CountingChange) -> CountingChange | None:
        """Return the change that makes both changes, or None if they exclude each other.

        They do if they have the same kind, such as "nms", or change the same field of the protocol.
        So at most one of the two chooses annotators, and at most one matches many-to-one. Their
        changes are of different fields, so that either order gives the same protocol.
        """
        fields = {field for change in self.changes for field in change}
        other_fields = {field for change in other.changes for field in change}
        # Two changes of "options" are compatible, because `Protocol.replace` merges them
        changed_by_both = (fields & other_fields) - {"options"}
        if self.kind == other.kind or changed_by_both:
            return None
        return CountingChange(
            kind=f"{self.kind} + {other.kind}",
            label=f"{self.label} + {other.label}",
            who=f"{self.who}; {other.who}",
            changes=other.changes + self.changes,
            annotators=other.annotators if self.annotators == "all" else self.annotators,
            many_to_one=self.many_to_one or other.many_to_one,
            n_causes=2,
        )


def counting_changes(metric: Metric) -> Iterator[CountingChange]:
    """Yield the changes that make a metric count as known programs do.

    These are other values of the metric's options and of the protocol's fields, such as the
    tolerance and NMS, and, depending on the metric, many-to-one matching and the use of one
    annotation instead of all. Some may be what a run does already; the caller leaves these out.

    Each has a kind (the changed option), a label, the programs that count so (HOME_MADE if only
    scripts of users do), and a tuple of dicts with the changed fields of the protocol.
    """
    if metric.options:
        for name, value, who in in_use(metric.options, metric.name):  # as listed in in_use.toml
            text = ", ".join(map(str, value)) if isinstance(value, tuple) else value
            key = f"{metric.name}.{name}"
            change: dict[str, Any] = {"options": {metric.name: {name: value}}}
            yield CountingChange(key, f"{key} {text}", who, (change,))
    if metric.name in registry.DEFAULT_METRICS:  # boundary
        who = f"{HOME_MADE} with a distance transform"
        yield CountingChange("matching", "many-to-one matching", who, many_to_one=True)
        label = "many-to-one matching of unthinned maps"
        yield CountingChange("matching", label, who, ({"thin": False},), many_to_one=True)
    for name, value, who in in_use(Protocol, "protocol"):
        if name in metric.uses:  # the fields of the protocol that change the metric's counts
            change = {name: value}
            if name == "max_dist":  # a fixed tolerance in pixels would take precedence
                change["max_dist_px"] = None
            yield CountingChange(name, f"{name} {value}", who, (change,))
    if "nms" in metric.uses:
        who = "maps that had it already, or never"  # in words, as no program is known
        yield CountingChange("nms", "no NMS", who, ({"nms": False},))
        # RECIPES: name of a program -> the parameters of its NMS. Programs whose NMS has the same
        # parameters share one change, which names all of them
        names_by_recipe = grouped((recipe, name) for name, recipe in RECIPES.items())
        for recipe, names in names_by_recipe.items():
            parameters = recipe.describe().partition(": ")[2]  # without the name
            label = f"NMS {names[0]} ({parameters})"
            nms_change = {"nms": True, "nms_params": names[0]}
            yield CountingChange("nms", label, ", ".join(names), (nms_change,))
    if metric.reads in ("annotators", "soft"):
        who = "scripts that read one annotation"
        yield CountingChange("annotators", "the first annotator alone", who, annotators="first")
        label = "all annotators drawn into one map"
        yield CountingChange("annotators", label, who, annotators="union")


def many_to_one_counts(
    pred: Map | Prediction, gts: Sequence[Map] | GroundTruth, protocol: Protocol
) -> MatchCounts:
    """Count boundary pixels with many-to-one instead of one-to-one matching, at every threshold.

    A predicted pixel is correct if any annotator's pixel lies within the tolerance; an annotated
    pixel is detected if any predicted pixel does. Incorrect reimplementations of the benchmark
    count this way, which does not penalise thick edges or double responses: the ODS F of HED's
    first 40 maps rises from 0.7657 to 0.8038.
    """
    pred, truth = Prediction.of(pred), GroundTruth.of(gts)
    gt_maps = truth_maps(truth, protocol)  # (A, H, W)
    shape = gt_maps.shape[1:]
    radius = protocol.radius(shape)  # in pixels
    # The boundary map at each threshold, from the highest down, as `changes`: the pixels that enter
    # or leave it from one threshold to the next, first of all an empty map
    valid = truth.parts.get("valid")
    thresholds, changes, _ = threshold_changes(pred, shape, protocol, valid=valid)
    n_annotators = gt_maps.sum(axis=0, dtype=np.int64)  # number that marked each pixel, (H, W)
    is_correct = dilate(n_annotators > 0, radius)  # if predicted
    predicted = np.zeros(shape, bool)
    counts = np.empty((thresholds.size, 4), np.int64)
    for k in range(thresholds.size):
        step = slice(changes.start[k], changes.start[k + 1])
        predicted.flat[changes.pixel[step]] = changes.added[step]
        matched_gt = n_annotators[dilate(predicted, radius)].sum()
        matched_pred = np.count_nonzero(predicted & is_correct)
        row = matched_gt, n_annotators.sum(), matched_pred, np.count_nonzero(predicted)
        counts[-1 - k] = row  # by ascending threshold
    return MatchCounts(thresholds, counts)


# ---- images --------------------------------------------------------------------------------------


def find_named_subsets(ids: Sequence[str], place: str | Path | None) -> dict[str, Ints]:
    """Find the subsets of a run's images that are listed by a known data set or a split file.

    ids : the ids of the run's images
    place : the ground-truth folder, or None. If it exists, split files (.txt, .lst) are searched
        for in this folder and in its two parent folders

    Returns {description of the subset: ascending indices of its images in `ids`, int64 (n,)}. A
    subset is left out if it is empty, contains all images, or equals an earlier one.
    """
    # Name of a data set (in a list of this package) or split -> the ids of its images
    known_sets = {name: list(images) for name, images in shipped_sets().items()}
    gt_dir = Path(place) if place else None
    if gt_dir and gt_dir.is_dir():
        for folder in (gt_dir, *gt_dir.parents[:2]):
            paths = sorted([*folder.glob("*.txt"), *folder.glob("*.lst")])
            for path in paths[:MAX_SPLIT_FILES]:  # a folder may have one text file per image
                with suppress(DataError, OSError):  # a text file that is no list of ids
                    known_sets.setdefault(f"the split file {path.name}", read_split(path))
    index_of_id = {image_id: k for k, image_id in enumerate(ids)}
    subsets: dict[str, Ints] = {}
    for name, members in known_sets.items():
        shared = {index_of_id[image_id] for image_id in members if image_id in index_of_id}
        indices = np.array(sorted(shared), np.int64)
        is_new = not any(np.array_equal(indices, other) for other in subsets.values())
        if 0 < indices.size < len(ids) and is_new:
            subsets[f"the images of {name} only"] = indices
    return subsets
