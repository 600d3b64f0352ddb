"""The curves that the command `curves` computes, its files and its tables."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
import click

from bsdsbench.cli.shared import log, option_values
from bsdsbench.curves import delong, det, pr, roc, threshold_curve
from bsdsbench.curves.areas import AreaRow, area_table, point_areas
from bsdsbench.curves.points import (
    AnyCurve,
    AxesKind,
    CurvePoints,
    check_totals,
    meeting,
    points_of,
)
from bsdsbench.curves.samples import LabelReading
from bsdsbench.errors import DataError, InputWarning
from bsdsbench.io import write_atomic
from bsdsbench.loaders.formats.scores import LabelsAndScores, read_scores
from bsdsbench.scores.ratios import f_measure
from bsdsbench.tables.table import Estimate, Field, Table

if TYPE_CHECKING:
    from bsdsbench.cli.curves import CurvesArguments

# --kind -> the axes to draw, from left to right
_AXES_OF_KIND: dict[str, tuple[AxesKind, ...]] = {
    "pr": ("pr",),
    "roc": ("roc",),
    "det": ("det",),
    "both": ("roc", "pr"),
}
_COMPUTE: dict[AxesKind, Callable[..., AnyCurve]] = {"pr": pr, "roc": roc, "det": det}
# --kind -> the rates written to a .csv file
_RATES_OF_KIND = {
    "pr": ("recall", "precision"),
    "roc": ("fpr", "tpr"),
    "det": ("fpr", "fnr"),
    "both": ("fpr", "tpr", "precision"),
}
# Axes -> summary numbers of curves computed from labels and scores: curve attribute -> heading
_NUMBERS_OF_SAMPLES = {
    "pr": {"ap": "ap", "auc": "auc (trapezoids)", "ap_11": "ap 11", "chance": "chance"},
    "roc": {"auc": "auc", "eer": "eer", "eer_threshold": "eer threshold"},
    "det": {"eer": "eer", "eer_threshold": "eer threshold"},
}
# The same for curves given by their points or made with --quantiles
_NUMBERS_OF_POINTS = {
    "pr": {"area": "auc (counts)", "chance": "chance"},
    "roc": {"auc": "auc"},
    "det": {"auc": "auc of ROC"},
}


class NamedCurve(NamedTuple):
    """A curve to print or draw.

    name: the unique name of the curve in tables and figures.
    curves_by_axes: axes of the --kind ("pr", "roc" or "det") -> the curve on these axes. It is a
        `CurvePoints` if the user gave the points or --quantiles; otherwise e.g. a `PRResult`.
    points: all points of the curve. With --between, they include points that these curves lack.
    points_are_given: True if the user gave the points (--points, --counts).
    samples: the labels and scores, or None if the user gave the points or --quantiles.
    """

    name: str
    curves_by_axes: dict[AxesKind, Any]
    points: CurvePoints
    points_are_given: bool
    samples: LabelsAndScores | None = None


def compute_curves(args: CurvesArguments) -> list[NamedCurve]:
    """Compute the curves of the files, then those given by points.

    They have the names in --names or, if it is not given, their own: those of the files, or
    "points". If an earlier curve has the same name, the position of the curve is appended, as in
    "x (2)".
    """
    curves = _curves_of_files(args) + _curves_of_points(args)
    names = [*args.names] if args.names else [curve.name for curve in curves]
    if len(names) != len(curves):
        raise click.UsageError(f"--names: {len(names)} names, expected {len(curves)}")
    for k, name in enumerate(names):
        if name in names[:k]:
            names[k] = f"{name} ({k + 1})"
    return [curve._replace(name=name) for curve, name in zip(curves, names, strict=True)]


def _curves_of_files(args: CurvesArguments) -> list[NamedCurve]:
    """Read the files of labels and scores, and compute a curve for each.

    Curves are named after the files without folder and suffix or, if two such names are equal, by
    the paths. Identical warnings are printed once per file. Raises DataError, which names the file,
    if a file or its labels cannot be used.
    """
    stems = ["stdin" if file == "-" else Path(file).stem for file in args.files]
    names = stems if len({*stems}) == len(stems) else args.files
    # --instance-count, the number of instances per row of the file, is a number or a column
    count_column = args.instance_count if isinstance(args.instance_count, str) else None
    curves = []
    for file, name in zip(args.files, names, strict=True):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            samples = read_scores(file, count_column, args.cluster)  # the last: groups of rows
            try:
                curves.append(_curve_of_samples(name, samples, args))
            except DataError as error:  # an error about arrays: one problem, without a file
                raise DataError(attrs.evolve(error.problems[0], file=file)) from None
        for line in dict.fromkeys(str(warning.message) for warning in caught):
            log(f"{file}: {line}")
    return curves


def _curve_of_samples(name: str, samples: LabelsAndScores, args: CurvesArguments) -> NamedCurve:
    """Compute the curve of labels and scores on the axes (PR, ROC or DET) selected by --kind.

    With --quantiles `NamedCurve.samples` is None, so that AP, EER and DeLong's test are left out:
    they need labels of classes, which may then be shares or numbers.
    """
    all_axes = _AXES_OF_KIND[args.kind]  # such as ("roc", "pr") for --kind both
    if args.quantiles:
        curve = _curve_at_quantiles(samples, args)  # points with the rates of all axes
        curves_by_axes: dict[AxesKind, Any] = dict.fromkeys(all_axes, curve)
    else:
        curves_by_axes = {axes: _ranked_curve(axes, samples, args) for axes in all_axes}
    points = points_of(curves_by_axes[all_axes[0]])  # TP and FP are equal on all axes
    if args.between:
        points = points.with_between()  # adds a point at each whole number of TP
    kept_samples = None if args.quantiles else samples
    return NamedCurve(name, curves_by_axes, points, points_are_given=False, samples=kept_samples)


def _ranked_curve(axes: AxesKind, samples: LabelsAndScores, args: CurvesArguments) -> AnyCurve:
    """Compute the PR, ROC or DET curve of samples ranked by score."""
    # "reading" (--labels): which labels are positive. "normalize_prior": their share in PR
    common = ["ties", "reading", "include_inf", "stable", "num_positives", "num_negatives"]
    special = {"pr": ["interpolate", "normalize_prior"], "roc": ["plot"], "det": []}
    keywords = option_values(args, common + special[axes])  # options with the names of keywords
    compute = _COMPUTE[axes]
    return compute(samples.labels, samples.scores, **keywords)


def _curve_at_quantiles(samples: LabelsAndScores, args: CurvesArguments) -> CurvePoints:
    """Compute the curve with points at quantiles of the scores.

    A row of the file is one instance, which may be positive in part: its label is that share, from
    0 to 1. But with --instance-count a row stands for several instances, and its label is the
    number of positive ones.
    """
    # A label that counts positives cannot be negative; -1 and 1 are labels of classes
    if args.instance_count is not None and (samples.labels < 0).any():
        raise DataError("labels below 0, expected the number of positives in each row")
    # One number for all rows or, if --instance-count names a column of the file, one per row
    instances: Any = args.instance_count if samples.counts is None else samples.counts
    keywords = option_values(args, ("num_thresholds", "strict"))
    return threshold_curve(samples.labels, samples.scores, instance_count=instances, **keywords)


def _curves_of_points(args: CurvesArguments) -> list[NamedCurve]:
    """Make a curve from each --points option, followed by a curve from each --counts option.

    The same curve is used on all axes. The totals (numbers of positives and negatives) are
    --num-positives and --num-negatives for --points, and are computed from the counts for --counts.
    """
    all_points = []  # one per curve
    n_positives = args.num_positives or math.nan
    n_negatives = args.num_negatives or math.nan
    for rates in args.points:  # pairs (FPR, TPR)
        fpr, tpr = zip(*rates, strict=True)
        all_points.append(CurvePoints.of_rates(fpr, tpr, n_positives, n_negatives))
    for counts in args.counts:  # quadruples (TP, FP, FN, TN)
        totals = {(tp + fn, fp + tn) for tp, fp, fn, tn in counts}
        if len(totals) > 1:
            sizes = " and ".join(f"{p:g} + {n:g}" for p, n in sorted(totals))
            expected = "expected the same for all points of a curve"
            raise click.UsageError(f"--counts: positives + negatives {sizes}, {expected}")
        tp, fp, _, _ = zip(*counts, strict=True)
        all_points.append(CurvePoints.of_counts(tp, fp, *totals.pop()))
    curves = []
    all_axes = _AXES_OF_KIND[args.kind]  # such as ("roc", "pr") for --kind both
    for k, points in enumerate(all_points, 1):
        if "pr" in all_axes:
            check_totals(points)  # precision needs the numbers of positives and negatives
        if args.between:
            points = points.with_between()  # adds one at each whole TP between two points
        name = "points" if len(all_points) == 1 else f"points {k}"
        # Points have all rates, so they are the curve on all axes too
        curves_by_axes: dict[AxesKind, Any] = dict.fromkeys(all_axes, points)
        curves.append(NamedCurve(name, curves_by_axes, points, points_are_given=True))
    return curves


def draw_figure(target: str, curves: Sequence[NamedCurve], args: CurvesArguments) -> None:
    """Write a figure of all curves to the file `target`.

    It has a plot for each of the axes of --kind, side by side, in which all curves are drawn. With
    --kind both, these are ROC and PR, and `curves_by_axes` of a curve is, for example,
    {"roc": ROCResult, "pr": PRResult}.
    """
    from bsdsbench.plotting import plot_spaces

    all_axes = _AXES_OF_KIND[args.kind]  # such as ("roc", "pr") for --kind both
    drawn: dict[str, Any] = {}  # name in the legend -> curve
    for curve in curves:
        if args.between:  # with a point at each whole number of true positives
            drawn[curve.name] = curve.points
        else:
            # `plot_spaces` takes one curve, and converts it to all axes by its TP and FP. For
            # --kind both it is the PR curve (the last of ROC and PR): --interpolate changes its
            # precision, which would be lost if a ROC curve were converted
            drawn[curve.name] = curve.curves_by_axes[all_axes[-1]]
    # "plot": the rates on ROC axes, such as "fptp". "scale": of DET axes. "look": of the figure
    options = option_values(args, ("hull", "chance", "plot", "scale", "look"))
    plot_spaces(drawn, target, spaces=all_axes, crossed=args.crossings, **options)


def write_points(path: Path, curve: NamedCurve, args: CurvesArguments) -> None:
    """Write a CSV file with a row per point: threshold, the rates of --kind, TP and FP.

    With --kind both, a curve was computed twice, as a ROC curve (which has no precision) and as a
    PR curve (which has no FPR). Each column is taken from the first that has it. A column that both
    lack is taken from `curve.points`, which has the same points with all rates. With --between, all
    columns are those of `curve.points`, as the computed curves lack the points that are added.
    """
    sources: list[Any] = [curve.points]  # to take columns from, the preferred ones first
    if not args.between:  # the computed curves, such as {"roc": ROCResult, "pr": PRResult}
        sources = [*curve.curves_by_axes.values(), curve.points]
    columns = {}
    thresholds = sources[0].thresholds
    if not all(map(math.isnan, thresholds)):  # a curve given by rates or counts has no thresholds
        columns["threshold"] = thresholds
    for name in (*_RATES_OF_KIND[args.kind], "tp", "fp"):  # such as recall, precision, tp, fp
        columns[name] = next(getattr(source, name) for source in sources if hasattr(source, name))
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    lines = [",".join(map(repr, row)) for row in rows]
    write_atomic(path, "\n".join([",".join(columns), *lines]) + "\n")


def curve_tables(curves: Sequence[NamedCurve], args: CurvesArguments) -> list[Table]:
    """Return the tables of the curves: summary numbers, points, areas and crossings.

    Points are listed for curves given by points or, with --steps, for all curves.

    The last tables show the areas under the ROC curves with confidence intervals, and their
    differences. They include the curves computed from labels and scores (`samples` is not None),
    and are left out if there is no such curve or, unless --kind is roc, only one. They ignore
    options that make the curves drop rows of the files, or give equal scores separate points; a
    note then says how the areas are computed.
    """
    tables = [_summary_table(curves, args.kind, args.hull)]
    listed_curves = [curve for curve in curves if args.steps or curve.points_are_given]
    if listed_curves:
        tables.append(_points_table(listed_curves))
    if args.areas:
        tables += _areas_tables(curves, args.reading)  # the reading: which labels are positive
    if args.crossings and len(curves) > 1:
        tables.append(_crossings_table(curves))
    samples = {curve.name: curve.samples for curve in curves if curve.samples is not None}
    if samples and (args.kind == "roc" or len(samples) > 1):
        roc_tables = _roc_tables(samples, args.reading)
        has_point_per_row = args.ties == "sample"
        drops_rows = args.include_inf is False  # --exclude-inf; None if the user did not choose
        if has_point_per_row or drops_rows:
            note = "Of all rows, -inf as the smallest score, equal scores as one point."
            for table in roc_tables:
                table.notes = [note]
        tables += roc_tables
    return tables


def _summary_table(curves: Sequence[NamedCurve], kind: str, hull: bool) -> Table:
    """Return the table of summary numbers, with a row per curve.

    For curves computed from labels and scores, the numbers are those of _NUMBERS_OF_SAMPLES, such
    as AP; for curves that have only points (`samples` is None), those of _NUMBERS_OF_POINTS. A cell
    is None if the curve lacks the number of its column. If `kind` is "both", headings begin with
    the axes ("PR ap").

    hull: add the area under the ROC convex hull or, on PR axes, under this hull in PR space, the
        achievable curve.
    """
    formats = {"positives": "g", "negatives": "g", "points": "d"}
    fields = {key: Field(key, key, format=number_format) for key, number_format in formats.items()}
    cells: list[dict[str, Any]] = []  # for each curve: key of a field -> value
    for curve in curves:
        row: dict[str, Any] = {
            "name": curve.name,
            "positives": curve.points.positives,
            "negatives": curve.points.negatives,
            "points": curve.points.thresholds.size,
        }
        numbers = _NUMBERS_OF_POINTS if curve.samples is None else _NUMBERS_OF_SAMPLES
        for axes, curve_on_axes in curve.curves_by_axes.items():  # both axes for --kind both
            for attribute, title in numbers[axes].items():  # such as "ap_11": "ap 11"
                key, heading = attribute, title
                if kind == "both":
                    key, heading = f"{axes}_{attribute}", f"{axes.upper()} {title}"
                row[key] = getattr(curve_on_axes, attribute)
                fields[key] = Field(key, heading, format=".6g")
            if hull and axes == "pr":
                row["achievable"] = curve.points.hull().area
                fields["achievable"] = Field("achievable", "achievable", format=".6g")
            elif hull:
                row["hull"] = curve.points.hull().auc
                fields["hull"] = Field("hull", "hull auc", format=".6g")
        cells.append(row)
    rows = [[row.get(key) for key in ("name", *fields)] for row in cells]
    return Table("curves", "", [Field("name", "name"), *fields.values()], rows)


def _points_table(curves: Sequence[NamedCurve]) -> Table:
    """Return the table of all points of the curves, with thresholds, counts and rates.

    The column of thresholds is left out if the user gave the points of all curves.
    """
    without_thresholds = all(curve.points_are_given for curve in curves)
    columns: dict[str, Any] = {}  # key -> a number per point, for one curve at a time
    rows: list[list[Any]] = []
    for curve in curves:
        points = curve.points
        columns = {} if without_thresholds else {"threshold": points.thresholds}
        columns |= {
            "tp": points.tp,
            "fp": points.fp,
            "fn": points.positives - points.tp,
            "tn": points.negatives - points.fp,
            "fpr": points.fpr,
            "tpr": points.tpr,
            "precision": points.precision,
            "f": f_measure(points.precision, points.recall),
        }
        rows += [[curve.name, *row] for row in zip(*columns.values(), strict=True)]
    headings = {"tpr": "recall", "f": "F"}
    fields = [Field(key, headings.get(key, key), format=".4g") for key in columns]
    return Table("points", "Points", [Field("name", "name"), *fields], rows)


def _crossings_table(curves: Sequence[NamedCurve]) -> Table:
    """Return a table that says which of two curves dominates the other, or where they cross.

    There is a row for each pair of curves in each space of --kind ("ROC" or "PR"). Its cells are
    the names of the two curves, the space, their relation, such as "x dominates" or "they cross",
    and the points where they cross, or "-" if there are none.
    """
    rows = []
    for a, b in combinations(curves, 2):
        text_of_relation = {"first": f"{a.name} dominates", "second": f"{b.name} dominates"}
        text_of_relation |= {"equal": "equal", "neither": "they cross"}
        for axes in a.curves_by_axes:
            # Which of the two dominates, as a key of `text_of_relation`, and where they cross
            relation, crossings = meeting(a.points, b.points, axes)
            if axes == "pr":
                space, template = "PR", "recall {:.4g}, precision {:.4g}"
                points = crossings.recall, crossings.precision
            else:  # DET curves are compared in ROC space
                space, template = "ROC", "FPR {:.4g}, TPR {:.4g}"
                points = crossings.fpr, crossings.tpr
            where = "; ".join(template.format(x, y) for x, y in zip(*points, strict=True))
            rows.append([a.name, b.name, space, text_of_relation[relation], where or "-"])
    fields = [Field(key, key) for key in ("a", "b", "space", "relation", "where")]
    return Table("crossings", "Domination and crossings", fields, rows, n_labels=2)


def _areas_tables(curves: Sequence[NamedCurve], reading: LabelReading) -> list[Table]:
    """Return the tables of --areas: AP and AUC as various programs and papers compute them.

    Each table has a column per curve. Curves that have only points, and no labels and scores
    (`samples` is None), get a table of their own, as most programs need the latter. Raises
    DataError if the numbers of positives and negatives of such a curve are unknown.

    reading: which labels are positive (--labels).
    """
    areas_of_samples: dict[str, Sequence[AreaRow]] = {}  # by the name of the curve
    areas_of_points: dict[str, Sequence[AreaRow]] = {}
    for curve in curves:
        samples, points = curve.samples, curve.points
        if samples is not None:
            # Warnings about the labels were given when the curve was computed
            with warnings.catch_warnings(action="ignore", category=InputWarning):
                areas = area_table(samples.labels, samples.scores, reading=reading)
            areas_of_samples[curve.name] = areas
        else:
            check_totals(points)
            counts = points.tp, points.fp, points.positives, points.negatives
            areas_of_points[curve.name] = point_areas(*counts)
    tables = []
    # The last argument: the properties of each way to compute an area, shown in the last columns
    if areas_of_samples:
        tables.append(_table_of_areas("areas", areas_of_samples, ("points", "ties", "rule")))
    if areas_of_points:
        tables.append(_table_of_areas("point_areas", areas_of_points, ("rule",)))
    return tables


def _table_of_areas(key: str, areas: dict[str, Sequence[AreaRow]], columns: Sequence[str]) -> Table:
    """Return a table of areas under curves, with a column per curve.

    A row is one way to compute the area, that of a program or paper. The first column, "number",
    names it, such as "scikit-learn average_precision_score".

    key: the key of the table.
    areas: name of a curve -> its areas, computed in the same ways and order for every curve.
    columns: the attributes of `AreaRow` that are shown in the last columns, such as "rule".
    """
    headings = list(areas) if len(areas) > 1 else ["value"]
    fields = [Field("number", "number")]
    fields += [Field(f"value_{k}", heading, format=".6g") for k, heading in enumerate(headings)]
    fields += [Field(column, column) for column in columns]
    rows = []
    for areas_of_curves in zip(*areas.values(), strict=True):  # of all curves, by one program
        values = [area.value for area in areas_of_curves]
        first = areas_of_curves[0]  # its name and `columns` are those of the other curves too
        rows.append([first.name, *values, *(getattr(first, column) for column in columns)])
    return Table(key, "", fields, rows)


def _roc_tables(samples: dict[str, LabelsAndScores], reading: LabelReading) -> list[Table]:
    """Return a table of the areas under ROC curves, and a table that compares each pair of them.

    If an interval cannot be computed, the reason is printed on standard error, and [] is returned.

    samples: name of a curve -> labels and scores, with the ids and clusters of the rows, if any.
    reading: which labels are positive (--labels).
    """
    area_rows: list[list[Any]] = []
    try:
        for name, labels_and_scores in samples.items():
            area_rows.append([name, _area_of_roc(labels_and_scores, reading)])
        pair_rows = _rows_of_pairs(samples, reading)
    except DataError as error:
        log(f"no intervals of areas under ROC curves: {error}")
        return []
    fields = [Field("name", "name"), Field("auc", "auc [95 % interval]", format=".4f")]
    tables = [Table("roc_areas", "Areas under the ROC curves", fields, area_rows)]
    if pair_rows:
        difference_field = Field("difference", "a - b [95 % interval]", format="+.4f")
        fields = [Field("a", "a"), Field("b", "b"), difference_field, Field("p", "p", format="p")]
        title = "Differences of these areas (DeLong's test)"
        # n_labels: the first two columns are the labels of a row
        tables.append(Table("differences", title, fields, pair_rows, n_labels=2))
    return tables


def _area_of_roc(samples: LabelsAndScores, reading: LabelReading) -> Estimate:
    """Return the area under a ROC curve with its 95 % interval."""
    labels, scores = samples.labels, samples.scores
    # DeLong's test of the curve with itself: covariance[0, 0] is the variance of the first area.
    # Warnings about the labels were given when the curve was computed
    with warnings.catch_warnings(action="ignore", category=InputWarning):
        test = delong(labels, scores, scores, reading=reading, clusters=samples.clusters)
    half_width = NormalDist().inv_cdf(0.975) * math.sqrt(test.covariance[0, 0])
    low, high = max(test.auc - half_width, 0.0), min(test.auc + half_width, 1.0)
    return Estimate(test.auc, low, high)


def _rows_of_pairs(samples: dict[str, LabelsAndScores], reading: LabelReading) -> list[list[Any]]:
    """Return [name, name, difference of the areas, p of DeLong's test] of each pair of curves.

    The test pairs the scores of the same row: by ids or, if a file has none, by their order. Pairs
    whose rows have other ids, labels or clusters are left out, which standard error reports.
    """
    rows: list[list[Any]] = []
    for (name_a, a), (name_b, b_in_file_order) in combinations(samples.items(), 2):
        b = b_in_file_order.in_order_of(a)  # unchanged if a file has no ids, or if the ids differ
        have_other_ids = a.ids and b.ids and a.ids != b.ids
        have_same_labels = a.labels.tolist() == b.labels.tolist() and a.clusters == b.clusters
        if have_same_labels and not have_other_ids:
            test = delong(a.labels, a.scores, b.scores, reading=reading, clusters=a.clusters)
            difference = Estimate(test.difference, test.low, test.high)
            rows.append([name_a, name_b, difference, test.p])
        else:
            reason = "other ids" if have_other_ids else "other labels, or in another order"
            log(f"{name_a}, {name_b}: {reason}, so their areas are not compared")
    return rows
