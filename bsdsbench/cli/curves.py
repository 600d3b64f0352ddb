"""The verb for labels and scores: curves."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from attrs import evolve
from click import argument
from click.core import ParameterSource

from bsdsbench.cli.shared import (
    add_option,
    choice,
    flag,
    path,
    print_json,
    printed,
    refuse,
    say,
    show_tables,
    verb,
    words,
)

if TYPE_CHECKING:
    from bsdsbench.curves.points import AnyCurve, AxesKind, CurvePoints
    from bsdsbench.curves.samples import LabelReading
    from bsdsbench.loaders.formats.scores import LabelsAndScores
    from bsdsbench.tables.table import Table

# What a program does where one may choose, by the parameters of the verb
_CONVENTIONS: dict[str, dict[str, Any]] = {
    "vlfeat": {"ties": "sample", "reading": "sign", "include_inf": False, "scale": "log"},
    "prec_rec": {"quantiles": True, "kind": "both"},
    "sklearn": {"ties": "merge", "reading": "auto", "include_inf": True, "scale": "normal"},
}
# The axes of each kind, from left to right
_SPACES: dict[str, tuple[AxesKind, ...]] = {
    "pr": ("pr",),
    "roc": ("roc",),
    "det": ("det",),
    "both": ("roc", "pr"),
}
_RATES = {
    "pr": ("recall", "precision"),
    "roc": ("fpr", "tpr"),
    "det": ("fpr", "fnr"),
    "both": ("fpr", "tpr", "precision"),
}
# Of the axes: the numbers of a curve of samples, those of points, with their headings
_NUMBERS = {
    "pr": {"ap": "ap", "auc": "auc (trapezoids)", "ap_11": "ap 11", "chance": "chance"},
    "roc": {"auc": "auc", "eer": "eer", "eer_threshold": "eer threshold"},
    "det": {"eer": "eer", "eer_threshold": "eer threshold"},
}
_POINT_NUMBERS = {
    "pr": {"area": "auc (counts)", "chance": "chance"},
    "roc": {"auc": "auc"},
    "det": {"auc": "auc of ROC"},
}
# Options that mean something for samples alone, for quantiles, and for one kind of curve
_OF_SAMPLES = ("ties", "reading", "include_inf", "interpolate", "normalize_prior", "stable")
_OF_QUANTILES = ("num_thresholds", "instance_count", "strict")


class _Curve(NamedTuple):
    """A curve of the call: its forms by their axes, its points, and the samples it is of."""

    name: str
    forms: dict[AxesKind, Any]
    points: CurvePoints
    sample: LabelsAndScores | None = None


class _Total(click.ParamType):
    """A whole number above 0; 1e4 is one."""

    name = "N"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not (number >= 0 and number.is_integer()):
            self.fail(f"{value!r}: expected a whole number such as 1000 or 1e4", param, ctx)
        return int(number)


class _Tuples(click.ParamType):
    """Points, such as 0,0.5;0.75,1: numbers between commas, points between semicolons."""

    def __init__(self, metavar: str) -> None:
        self.name, self.size = metavar, metavar.count(",") + 1

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[tuple[float, ...]]:
        points = []
        for text in filter(None, map(str.strip, value.split(";"))):
            try:
                points.append(tuple(map(float, text.split(","))))
            except ValueError:
                points.append(())
            if len(points[-1]) != self.size or not all(map(math.isfinite, points[-1])):
                self.fail(f"{text!r}: expected {self.name}, points between semicolons", param, ctx)
        if not points:
            self.fail("no point, expected at least one", param, ctx)
        return points


def _variant(ctx: click.Context, param: click.Parameter, text: str) -> str:
    from bsdsbench.curves.ranked import variant_of

    return variant_of(text)


@verb
@argument("files", nargs=-1, type=click.Path(), metavar="[SCORES.csv]...")
@choice("--kind", "Kind of curve; both: ROC and PR side by side.", words=tuple(_SPACES))
@add_option(
    "--points",
    "Points of ROC space in place of a file, such as '0,0.5;0.75,1'; may be repeated.",
    type=_Tuples("FPR,TPR"),
    multiple=True,
    metavar="FPR,TPR;...",
)
@add_option(
    "--counts",
    "Points given as counts, such as '5,5,15,95;10,30,10,70'; may be repeated.",
    type=_Tuples("TP,FP,FN,TN"),
    multiple=True,
    metavar="TP,FP,FN,TN;...",
)
@words("--names", "Names of the curves; default: of the files.", metavar="A,B")
@path(
    "-o",
    "--out",
    "A picture (.png, .svg, .pdf) or the points of the curve (.csv); may be repeated.",
    multiple=True,
    metavar="FILE",
)
@choice(
    "--convention",
    "Take the options that a program has: vlfeat (vl_pr, vl_roc, vl_det), prec_rec or sklearn; "
    "they are printed, and those given beside it come first.",
    words=("none", *_CONVENTIONS),
)
@flag("--areas", "Print every AP and AUC variant by name.")
@flag("--steps", "Print every point: threshold, counts, rates, F; always of points given.")
@flag("--hull", "Add the convex hull in ROC space, which in PR space is the achievable curve.")
@flag("--crossings", "Say which curve dominates, or where two cross, and mark it.")
@flag("--between", "Add the points at each whole number of true positives (Davis, Goadrich).")
@choice(
    "--labels",
    "reading",
    "binary: 0 negative, else positive; sign: < 0 negative, 0 left out. "
    "larger: the larger of two values is positive. "
    "auto: labels of 0 and 1, of -1 and 1, or of -1, 0 and 1 (0 left out).",
    words=("auto", "binary", "sign", "larger"),
)
@flag(
    "--include-inf/--exclude-inf",
    "Scores of -inf: ranked last, or never retrieved (VLFeat); default: never with --ties sample.",
    default=None,
)
@choice(
    "--ties",
    "How to treat equal scores: one point, or (VLFeat) one per row of the file.",
    words=("merge", "sample"),
)
@add_option(
    "--num-positives",
    "Total of positives, in place of those of a file.",
    type=_Total(),
    metavar="N",
)
@add_option(
    "--num-negatives",
    "Total of negatives; points of --points need both for PR.",
    type=_Total(),
    metavar="N",
)
@add_option("--normalize-prior", "PR as if this share were positive.", type=float, metavar="SHARE")
@flag("--interpolate", "PR: the largest precision at this or a higher recall (VLFeat).")
@flag("--stable", "Points in the order of the file, nan for those never retrieved (VLFeat).")
@add_option(
    "--plot",
    "Axes of ROC: fptp, tntp, tptn, fpfn as VLFeat calls them (x, then y), tpfp ..., or in "
    "words, such as 'TPR over FPR'; the area is that of the variant.",
    default="fptp",
    callback=_variant,
    metavar="XY",
)
@choice("--scale", "Axes of DET.", words=("normal", "log"))
@flag("--chance/--no-chance", "Draw the line of a random ranking.", default=True)
@flag("--quantiles", "One point at each quantile of the scores; labels may be shares (prec_rec).")
@add_option("--num-thresholds", "Number of quantiles; default: 100 at most.", type=_Total())
@add_option(
    "--instance-count",
    "Instances that a row stands for, a number or a column; its label counts the positives.",
    metavar="N|COLUMN",
)
@add_option(
    "--cluster",
    "Column of what belongs together, such as a patient: DeLong's intervals and p are of clusters.",
    metavar="COLUMN",
)
@flag("--strict", "Quantiles: predict where score > threshold, without the smallest score.")
@choice("--style", "look", "Size of the picture.", words=("screen", "column", "page"))
@printed("table", "csv", "json")
def curves_verb(
    files: tuple[str, ...], kind: str, out: tuple[str, ...], form: str, **options: Any
) -> None:
    """Draw PR, ROC or DET curves of labels and scores, or of points.

    SCORES.csv has a label and a score per row ("-": stdin). Labels are 0 and 1, -1 and 1, or true
    and false. The summary numbers of the curves are printed; several go into one picture. Of
    several files with the same labels in the same order, and with --kind roc, the areas under the
    ROC curves are printed with 95 % intervals and DeLong's test of each pair.
    """
    from bsdsbench.tables.forms import to_mappings

    if not _given("kind"):  # of these there is one kind that has them
        kind = "roc" if _given("plot") else "det" if _given("scale") else kind
    options = {**options, "kind": kind}
    convention = _with_convention(options)
    kind = options["kind"]
    _check(kind, files, options, out)
    drawn = _curves_of_files(files, kind, options) + _curves_of_points(kind, options)
    names = options["names"] or [curve.name for curve in drawn]
    if len(names) != len(drawn):
        raise click.UsageError(f"--names: {len(names)} names, expected {len(drawn)}")
    for k, name in enumerate(names):  # a file that is given twice
        names[k] = f"{name} ({k + 1})" if name in names[:k] else name
    drawn = [curve._replace(name=name) for curve, name in zip(drawn, names, strict=True)]
    for target in out:
        _write(target, drawn, kind, options)
    samples = {curve.name: curve.sample for curve in drawn if curve.sample is not None}
    shown = [_numbers(drawn, kind, options)]
    if listed := [c for c in drawn if options["steps"] or c.sample is None]:
        shown.append(_points_table(listed))
    if options["areas"]:
        shown += _areas_tables(drawn, options)
    if options["crossings"] and len(drawn) > 1:
        shown.append(_crossings_table(drawn, kind))
    if samples and not options["quantiles"] and (kind == "roc" or len(samples) > 1):
        roc = _roc_tables(samples, options["reading"])
        if options["ties"] == "sample" or options["include_inf"] is False:
            words = "Of all rows, -inf as the smallest score, equal scores as one point."
            for table in roc:
                table.notes = [words]
        shown += roc
    if form == "json":
        rows_of = {table["key"]: table["rows"] for table in to_mappings(shown)}
        head = {"kind": kind, "ties": options["ties"]}
        print_json(head | ({"convention": convention} if convention else {}) | rows_of)
        return
    show_tables(shown[:1] if form == "csv" else shown, None, form)
    if convention:
        line = f"convention {options['convention']}: {' '.join(convention)}"
        if form == "csv":
            say(line)
        else:
            print(f"\n{line}")


def _given(name: str) -> bool:
    source = click.get_current_context().get_parameter_source(name)
    return source is ParameterSource.COMMANDLINE


def _with_convention(options: dict[str, Any]) -> list[str]:
    """Return the options with the convention's values in place of those not given."""
    chosen = _CONVENTIONS.get(options["convention"], {})
    params = {param.name: param for param in click.get_current_context().command.params}
    lines = []
    for name, value in chosen.items():
        if not _given(name) and not (name == "kind" and options["kind"] != "pr"):
            options[name] = value
        value, param = options[name], params[name]
        if isinstance(value, bool):
            lines.append(param.opts[0] if value else param.secondary_opts[0])
        else:
            lines.append(f"{param.opts[0]} {value}")
    options["quantiles"] = options["quantiles"] or any(map(_given, _OF_QUANTILES))
    return lines


def _check(kind: str, files: Sequence[str], options: Mapping[str, Any], out: Sequence[str]) -> None:
    """Raise UsageError for options that mean nothing together."""
    n = len(files) + len(options["points"]) + len(options["counts"])
    if not n:
        raise click.UsageError("give SCORES.csv, --points or --counts")
    if n > 1 and any(target.endswith(".csv") for target in out):
        raise click.UsageError(f"-o FILE.csv: points of {n} files, expected one file")
    if options["quantiles"]:
        refuse((*_OF_SAMPLES, "num_positives", "num_negatives"), "--quantiles")
    if kind not in ("pr", "both"):
        refuse(("interpolate", "normalize_prior"), f"--kind {kind}")
    if kind not in ("roc", "both"):
        refuse(("plot",), f"--kind {kind}")
    if kind != "det":
        refuse(("scale",), f"--kind {kind}")
    if options["counts"] and n == len(options["counts"]):
        refuse(("num_positives", "num_negatives"), "--counts, which have their totals")
    if not files:
        refuse((*_OF_SAMPLES, *_OF_QUANTILES, "quantiles"), "points alone")


def _curves_of_files(files: Sequence[str], kind: str, options: Mapping[str, Any]) -> list[_Curve]:
    """Read the files and make their curves. Raises DataError, which names the file."""
    from bsdsbench.curves.points import in_space, points_of
    from bsdsbench.errors import DataError
    from bsdsbench.loaders.formats.scores import read_scores

    stems = ["stdin" if file == "-" else Path(file).stem for file in files]
    names = stems if len({*stems}) == len(stems) else files
    count = options["instance_count"]
    column = None if count is None or _is_number(count) else count
    drawn = []
    for file, name in zip(files, names, strict=True):
        sample = read_scores(file, column, options["cluster"])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                forms = {axes: _curve_of(sample, axes, options) for axes in _SPACES[kind]}
                ordered = {axes: in_space(curve, axes) for axes, curve in forms.items()}
                points = points_of(next(iter(ordered.values())))
                if options["between"]:
                    points = points.with_between()
            except DataError as error:
                raise DataError(evolve(error.problems[0], file=file)) from None
        for line in dict.fromkeys(str(warning.message) for warning in caught):
            say(f"{file}: {line}")
        drawn.append(_Curve(name, forms, points, sample))
    return drawn


def _curve_of(sample: LabelsAndScores, axes: str, options: Mapping[str, Any]) -> AnyCurve:
    """Return the curve of samples that the options ask for."""
    from bsdsbench import curves
    from bsdsbench.errors import DataError

    if options["quantiles"]:
        count = options["instance_count"]
        if count is not None:
            if (sample.labels < 0).any():
                raise DataError("labels below 0, expected the number of positives in each row")
            count = float(count) if sample.counts is None else sample.counts
        more = {name: options[name] for name in ("num_thresholds", "strict")}
        return curves.threshold_curve(*sample[:2], instance_count=count, **more)
    known = ["ties", "reading", "include_inf", "stable", "num_positives", "num_negatives"]
    known += {"pr": ["interpolate", "normalize_prior"], "roc": ["plot"]}.get(axes, [])
    function: Callable[..., Any] = getattr(curves, axes)
    return function(*sample[:2], **{name: options[name] for name in known})


def _curves_of_points(kind: str, options: Mapping[str, Any]) -> list[_Curve]:
    """Make the curves of --points and --counts. Raises DataError, UsageError."""
    from bsdsbench.curves import CurvePoints
    from bsdsbench.curves.points import in_space

    made = []
    for points in options["points"]:
        totals = (options[name] or math.nan for name in ("num_positives", "num_negatives"))
        fpr, tpr = zip(*points, strict=True)
        made.append(CurvePoints.of_rates(fpr, tpr, *totals))
    for counts in options["counts"]:
        totals_of = {(tp + fn, fp + tn) for tp, fp, fn, tn in counts}
        if len(totals_of) > 1:
            sizes = " and ".join(f"{p:g} + {n:g}" for p, n in sorted(totals_of))
            expected = "expected the same for all points of a curve"
            raise click.UsageError(f"--counts: positives + negatives {sizes}, {expected}")
        tp, fp, _, _ = zip(*counts, strict=True)
        made.append(CurvePoints.of_counts(tp, fp, *totals_of.pop()))
    names = ["points"] if len(made) == 1 else [f"points {k + 1}" for k in range(len(made))]
    drawn = []
    for name, points in zip(names, made, strict=True):
        for axes in _SPACES[kind]:
            in_space(points, axes)  # for its fault where the totals are not known
        shown = points.with_between() if options["between"] else points
        drawn.append(_Curve(name, dict.fromkeys(_SPACES[kind], shown), shown))
    return drawn


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


# What is shown -----------------------------------------------------------------------------------


def _write(target: str, drawn: Sequence[_Curve], kind: str, options: Mapping[str, Any]) -> None:
    """Write the points of one curve, or a picture of all."""
    from bsdsbench.io import write_atomic
    from bsdsbench.plotting import plot_spaces

    if target.endswith(".csv"):
        (curve,) = drawn
        forms = [curve.points] if options["between"] else [*curve.forms.values(), curve.points]
        thresholds = forms[0].thresholds
        names = ["threshold"] * (not all(map(math.isnan, thresholds)))
        columns = [thresholds] * len(names)
        for name in (*_RATES[kind], "tp", "fp"):
            names.append(name)
            columns.append(next(getattr(f, name) for f in forms if hasattr(f, name)))
        rows = zip(*(column.tolist() for column in columns), strict=True)
        lines = [",".join(map(repr, point)) for point in rows]
        write_atomic(Path(target), "\n".join([",".join(names), *lines]) + "\n")
    else:
        shown = {name: options[name] for name in ("hull", "chance", "plot", "scale", "look")}
        # That of PR has most to draw
        best = [c.points if options["between"] else [*c.forms.values()][-1] for c in drawn]
        named = dict(zip((curve.name for curve in drawn), best, strict=True))
        plot_spaces(named, target, spaces=_SPACES[kind], crossed=options["crossings"], **shown)
    say(f"wrote {target}", progress=True)


def _numbers(drawn: Sequence[_Curve], kind: str, options: Mapping[str, Any]) -> Table:
    """Return the table of the summary numbers."""
    from bsdsbench.tables.table import Field, Table

    cells: dict[str, dict[str, Any]] = {}
    fields = {key: Field(key, key, "", "g") for key in ("positives", "negatives")}
    fields["points"] = Field("points", "points", "", "d")
    for curve in drawn:
        row = cells[curve.name] = {"points": curve.points.thresholds.size}
        for key in ("positives", "negatives"):
            row[key] = getattr(curve.points, key)
        for axes, form in curve.forms.items():
            of_points = curve.sample is None or options["quantiles"]
            before = f"{axes}_" * (kind == "both")
            for key, heading in (_POINT_NUMBERS if of_points else _NUMBERS)[axes].items():
                row[before + key] = getattr(form, key)
                head = f"{axes.upper()} {heading}" if before else heading
                fields[before + key] = Field(before + key, head, "", ".6g")
            if options["hull"]:
                hull = curve.points.hull()
                key, head = ("achievable", "achievable") if axes == "pr" else ("hull", "hull auc")
                row[key] = hull.area if axes == "pr" else hull.auc
                fields[key] = Field(key, head, "", ".6g")
    rows = [[name, *(row.get(key) for key in fields)] for name, row in cells.items()]
    return Table("curves", "", [Field("name", "name"), *fields.values()], rows)


def _points_table(drawn: Sequence[_Curve]) -> Table:
    """Return the table of points: thresholds, counts and rates."""
    from bsdsbench.scores.ratios import f_measure
    from bsdsbench.tables.table import Field, Table

    keys = ("threshold", "tp", "fp", "fn", "tn", "fpr", "tpr", "precision", "f")
    heads = {"tpr": "recall", "f": "F"}
    rows: list[list[Any]] = []
    for curve in drawn:
        p = curve.points
        counts = p.tp, p.fp, p.positives - p.tp, p.negatives - p.fp
        f = f_measure(p.precision, p.recall)
        for row in zip(p.thresholds, *counts, p.fpr, p.tpr, p.precision, f, strict=True):
            rows.append([curve.name, *row])
    fields = [Field(key, heads.get(key, key), "", ".4g") for key in keys]
    if all(curve.sample is None for curve in drawn):  # they have no thresholds
        del fields[0]
        rows = [[name, *row] for name, _, *row in rows]
    return Table("points", "Points", [Field("name", "name"), *fields], rows)


def _crossings_table(drawn: Sequence[_Curve], kind: str) -> Table:
    """Return the table of pairs: which curve dominates, or where they cross."""
    from bsdsbench.curves.points import meeting
    from bsdsbench.tables.table import Field, Table

    rows = []
    for a, b in combinations(drawn, 2):
        for axes in _SPACES[kind]:
            above, places = meeting(a.points, b.points, axes)
            verdict = {
                "first": f"{a.name} dominates",
                "second": f"{b.name} dominates",
                "equal": "equal",
                "neither": "they cross",
            }[above]
            names = ("recall", "precision") if axes == "pr" else ("fpr", "tpr")
            x, y = (getattr(places, name) for name in names)
            place = "recall {:.4g}, precision {:.4g}" if axes == "pr" else "FPR {:.4g}, TPR {:.4g}"
            where = "; ".join(map(place.format, x, y))
            space = "PR" if axes == "pr" else "ROC"
            rows.append([a.name, b.name, space, verdict, where or "-"])
    heads = {"a": "a", "b": "b", "space": "space", "relation": "relation", "where": "where"}
    fields = [Field(key, head) for key, head in heads.items()]
    return Table("crossings", "Domination and crossings", fields, rows, n_labels=2)


def _areas_tables(drawn: Sequence[_Curve], options: Mapping[str, Any]) -> list[Table]:
    """Return tables of every variant of AP and AUC, of curves of samples and of points."""
    from bsdsbench.curves.areas import area_table, point_areas
    from bsdsbench.curves.points import pr_form
    from bsdsbench.tables.table import Field, Table

    tables = []
    for key in ("areas", "point_areas"):
        of_points = key == "point_areas"
        curves = [c for c in drawn if (c.sample is None or options["quantiles"]) == of_points]
        ways = []
        for curve in curves:
            p = curve.points
            if of_points:
                pr_form(p)  # for its fault where the totals are not known
                ways.append(point_areas(p.tp, p.fp, p.positives, p.negatives))
            else:
                labels, scores = curve.sample[:2] if curve.sample else ((), ())
                ways.append(area_table(labels, scores, reading=options["reading"]))
        heads = [curve.name for curve in curves] if len(curves) > 1 else ["value"]
        fields = [Field("number", "number")]
        fields += [Field(f"value_{k}", head, "", ".6g") for k, head in enumerate(heads)]
        shown = ("points", "ties", "rule") if key == "areas" else ("rule",)
        fields += [Field(column, column) for column in shown]
        rows = []
        for a, *more in zip(*ways, strict=True):
            named = [getattr(a, column) for column in shown]
            rows.append([a.name, *(way.value for way in (a, *more)), *named])
        tables += [Table(key, "", fields, rows)] * bool(rows)
    return tables


def _roc_tables(samples: dict[str, LabelsAndScores], reading: LabelReading) -> list[Table]:
    """Areas under ROC curves with 95 % intervals, and DeLong's test of pairs of equal labels."""
    from bsdsbench.curves import delong
    from bsdsbench.errors import DataError
    from bsdsbench.tables.table import Estimate, Field, Table

    areas: list[list[Any]] = []
    pairs: list[list[Any]] = []
    try:
        for name, (labels, scores, _, clusters) in samples.items():
            alone = delong(labels, scores, scores, reading=reading, clusters=clusters)
            width = NormalDist().inv_cdf(0.975) * math.sqrt(alone.covariance[0, 0])
            low, high = max(alone.auc - width, 0.0), min(alone.auc + width, 1.0)
            areas.append([name, Estimate(alone.auc, low, high)])
        for a, b in combinations(samples, 2):
            (labels, scores), (others, other) = samples[a][:2], samples[b][:2]
            clusters, other_clusters = samples[a].clusters, samples[b].clusters
            if labels.tolist() == others.tolist() and clusters == other_clusters:
                d = delong(labels, scores, other, reading=reading, clusters=clusters)
                pairs.append([a, b, Estimate(d.difference, d.low, d.high), d.p])
            else:
                say(f"{a}, {b}: other labels, or in another order, so their areas are not compared")
    except DataError as error:
        say(f"no intervals of areas under ROC curves: {error}")
        return []
    fields = [Field("name", "name"), Field("auc", "auc [95 % interval]", "", ".4f")]
    tables = [Table("roc_areas", "Areas under the ROC curves", fields, areas)]
    if pairs:
        difference = Field("difference", "a - b [95 % interval]", "", "+.4f")
        fields = [Field("a", "a"), Field("b", "b"), difference, Field("p", "p", "", "p")]
        title = "Differences of these areas (DeLong's test)"
        tables.append(Table("differences", title, fields, pairs, n_labels=2))
    return tables
