"""The curves of the command `curves`, and their tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

from bsdsbench.cli.output import say

if TYPE_CHECKING:
    from bsdsbench.cli.shared import Given
    from bsdsbench.curves.points import AxesKind, CurvePoints
    from bsdsbench.curves.samples import LabelReading
    from bsdsbench.loaders.formats.scores import LabelsAndScores
    from bsdsbench.tables.table import Table

# The axes of each --kind, from left to right
SPACES_OF_KIND: dict[str, tuple[AxesKind, ...]] = {
    "pr": ("pr",),
    "roc": ("roc",),
    "det": ("det",),
    "both": ("roc", "pr"),
}
# By axes, the summary numbers of curves of samples: attribute of the curve -> heading
_NUMBERS = {
    "pr": {"ap": "ap", "auc": "auc (trapezoids)", "ap_11": "ap 11", "chance": "chance"},
    "roc": {"auc": "auc", "eer": "eer", "eer_threshold": "eer threshold"},
    "det": {"eer": "eer", "eer_threshold": "eer threshold"},
}
# The same of curves that were given as points, or made with --quantiles
_POINT_NUMBERS = {
    "pr": {"area": "auc (counts)", "chance": "chance"},
    "roc": {"auc": "auc"},
    "det": {"auc": "auc of ROC"},
}


class NamedCurve(NamedTuple):
    """A curve to print or draw.

    `forms` holds the curve by its axes. `sample` is None if the curve was given as points.
    """

    name: str
    forms: dict[AxesKind, Any]
    points: CurvePoints
    sample: LabelsAndScores | None = None


def curve_tables(curves: Sequence[NamedCurve], given: Given) -> list[Table]:
    """Return the table of summary numbers, and the tables that the options ask for."""
    tables = [_summary_table(curves, given)]
    with_steps = [curve for curve in curves if given.steps or curve.sample is None]
    if with_steps:
        tables.append(_points_table(with_steps))
    if given.areas:
        tables += _areas_tables(curves, given)
    if given.crossings and len(curves) > 1:
        tables.append(_crossings_table(curves, given.kind))
    samples = {curve.name: curve.sample for curve in curves if curve.sample is not None}
    if samples and not given.quantiles and (given.kind == "roc" or len(samples) > 1):
        roc_tables = _roc_tables(samples, given.reading)
        if given.ties == "sample" or given.include_inf is False:
            for table in roc_tables:
                table.notes = [
                    "Of all rows, -inf as the smallest score, equal scores as one point."
                ]
        tables += roc_tables
    return tables


def _summary_table(curves: Sequence[NamedCurve], given: Given) -> Table:
    """Return the table of the summary numbers, such as AP and AUC, with a row per curve."""
    from bsdsbench.tables.table import Field, Table

    cells: dict[str, dict[str, Any]] = {}
    fields = {key: Field(key, key, "", "g") for key in ("positives", "negatives")}
    fields["points"] = Field("points", "points", "", "d")
    for curve in curves:
        row: dict[str, Any] = {"points": curve.points.thresholds.size}
        cells[curve.name] = row
        for key in ("positives", "negatives"):
            row[key] = getattr(curve.points, key)
        for axes, form in curve.forms.items():
            numbers = _POINT_NUMBERS if _is_of_points(curve, given) else _NUMBERS
            for attribute, title in numbers[axes].items():
                key = f"{axes}_{attribute}" if given.kind == "both" else attribute
                heading = f"{axes.upper()} {title}" if given.kind == "both" else title
                row[key] = getattr(form, attribute)
                fields[key] = Field(key, heading, "", ".6g")
            if given.hull:
                hull = curve.points.hull()
                if axes == "pr":
                    row["achievable"] = hull.area
                    fields["achievable"] = Field("achievable", "achievable", "", ".6g")
                else:
                    row["hull"] = hull.auc
                    fields["hull"] = Field("hull", "hull auc", "", ".6g")
    rows = [[name, *(row.get(key) for key in fields)] for name, row in cells.items()]
    return Table("curves", "", [Field("name", "name"), *fields.values()], rows)


def _is_of_points(curve: NamedCurve, given: Given) -> bool:
    """Return True if a curve has points only: it was given as points, or made of quantiles."""
    return curve.sample is None or bool(given.quantiles)


def _points_table(curves: Sequence[NamedCurve]) -> Table:
    """Return the table of points: thresholds, counts and rates."""
    from bsdsbench.scores.ratios import f_measure
    from bsdsbench.tables.table import Field, Table

    keys = ("threshold", "tp", "fp", "fn", "tn", "fpr", "tpr", "precision", "f")
    headings = {"tpr": "recall", "f": "F"}
    rows: list[list[Any]] = []
    for curve in curves:
        p = curve.points
        counts = p.tp, p.fp, p.positives - p.tp, p.negatives - p.fp
        f = f_measure(p.precision, p.recall)
        for row in zip(p.thresholds, *counts, p.fpr, p.tpr, p.precision, f, strict=True):
            rows.append([curve.name, *row])
    fields = [Field(key, headings.get(key, key), "", ".4g") for key in keys]
    if all(curve.sample is None for curve in curves):  # points have no thresholds
        del fields[0]
        rows = [[name, *row] for name, _, *row in rows]
    return Table("points", "Points", [Field("name", "name"), *fields], rows)


def _crossings_table(curves: Sequence[NamedCurve], kind: str) -> Table:
    """Return the table of pairs: which curve dominates, or at which points they cross."""
    from bsdsbench.curves.points import meeting
    from bsdsbench.tables.table import Field, Table

    rows = []
    for a, b in combinations(curves, 2):
        for axes in SPACES_OF_KIND[kind]:
            dominant, crossings = meeting(a.points, b.points, axes)
            verdict = {
                "first": f"{a.name} dominates",
                "second": f"{b.name} dominates",
                "equal": "equal",
                "neither": "they cross",
            }[dominant]
            if axes == "pr":
                template = "recall {:.4g}, precision {:.4g}"
                points = map(template.format, crossings.recall, crossings.precision)
            else:
                template = "FPR {:.4g}, TPR {:.4g}"
                points = map(template.format, crossings.fpr, crossings.tpr)
            space = "PR" if axes == "pr" else "ROC"
            rows.append([a.name, b.name, space, verdict, "; ".join(points) or "-"])
    fields = [Field(key, key) for key in ("a", "b", "space", "relation", "where")]
    return Table("crossings", "Domination and crossings", fields, rows, n_labels=2)


def _areas_tables(curves: Sequence[NamedCurve], given: Given) -> list[Table]:
    """Return a table of every variant of AP and AUC for curves of samples, and one for points."""
    from bsdsbench.curves.areas import area_table, point_areas
    from bsdsbench.curves.points import to_pr_form

    sample_curves = [curve for curve in curves if not _is_of_points(curve, given)]
    sample_areas = []
    for curve in sample_curves:
        if curve.sample is not None:
            labels, scores = curve.sample.labels, curve.sample.scores
            sample_areas.append(area_table(labels, scores, reading=given.reading))
    point_curves = [curve for curve in curves if _is_of_points(curve, given)]
    areas_of_points = []
    for curve in point_curves:
        p = curve.points
        to_pr_form(p)  # raises DataError if the totals are not known
        areas_of_points.append(point_areas(p.tp, p.fp, p.positives, p.negatives))
    tables = []
    if sample_areas:
        columns = ("points", "ties", "rule")
        tables.append(_table_of_areas("areas", sample_curves, sample_areas, columns))
    if areas_of_points:
        tables.append(_table_of_areas("point_areas", point_curves, areas_of_points, ("rule",)))
    return tables


def _table_of_areas(
    key: str, curves: Sequence[NamedCurve], areas: Sequence[Sequence[Any]], columns: Sequence[str]
) -> Table:
    """Return a table with a row per variant of the area and a column of values per curve.

    `areas` holds the same variants for every curve. `columns` are attributes of a variant.
    """
    from bsdsbench.tables.table import Field, Table

    headings = [curve.name for curve in curves] if len(curves) > 1 else ["value"]
    fields = [Field("number", "number")]
    fields += [Field(f"value_{k}", heading, "", ".6g") for k, heading in enumerate(headings)]
    fields += [Field(column, column) for column in columns]
    rows = []
    for variants in zip(*areas, strict=True):  # one variant of every curve
        description = [getattr(variants[0], column) for column in columns]
        rows.append([variants[0].name, *(area.value for area in variants), *description])
    return Table(key, "", fields, rows)


def _roc_tables(samples: dict[str, LabelsAndScores], reading: LabelReading) -> list[Table]:
    """Return the areas under ROC curves with 95 % intervals, and DeLong's test of each pair.

    Only pairs with equal labels are tested. Returns [] and prints a line if no interval exists.
    """
    from bsdsbench.curves import delong
    from bsdsbench.errors import DataError
    from bsdsbench.tables.table import Estimate, Field, Table

    area_rows: list[list[Any]] = []
    pair_rows: list[list[Any]] = []
    try:
        for name, (labels, scores, _, clusters) in samples.items():
            roc = delong(labels, scores, scores, reading=reading, clusters=clusters)
            half_width = NormalDist().inv_cdf(0.975) * math.sqrt(roc.covariance[0, 0])
            low, high = max(roc.auc - half_width, 0.0), min(roc.auc + half_width, 1.0)
            area_rows.append([name, Estimate(roc.auc, low, high)])
        for (name_a, a), (name_b, b) in combinations(samples.items(), 2):
            if a.labels.tolist() == b.labels.tolist() and a.clusters == b.clusters:
                test = delong(a.labels, a.scores, b.scores, reading=reading, clusters=a.clusters)
                difference = Estimate(test.difference, test.low, test.high)
                pair_rows.append([name_a, name_b, difference, test.p])
            else:
                say(
                    f"{name_a}, {name_b}: other labels, or in another order, so their areas are "
                    "not compared"
                )
    except DataError as error:
        say(f"no intervals of areas under ROC curves: {error}")
        return []
    fields = [Field("name", "name"), Field("auc", "auc [95 % interval]", "", ".4f")]
    tables = [Table("roc_areas", "Areas under the ROC curves", fields, area_rows)]
    if pair_rows:
        difference_field = Field("difference", "a - b [95 % interval]", "", "+.4f")
        fields = [Field("a", "a"), Field("b", "b"), difference_field, Field("p", "p", "", "p")]
        title = "Differences of these areas (DeLong's test)"
        tables.append(Table("differences", title, fields, pair_rows, n_labels=2))
    return tables
