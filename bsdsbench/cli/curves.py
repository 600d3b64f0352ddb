"""The command for labels and scores: curves."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from attrs import evolve
from click import argument
from click.core import ParameterSource

from bsdsbench.cli.curve_tables import SPACES_OF_KIND, NamedCurve, curve_tables
from bsdsbench.cli.output import print_json, say, show_tables
from bsdsbench.cli.shared import (
    Given,
    add_option,
    choice,
    flag,
    format_option,
    path,
    refuse,
    verb,
    word_list,
)

if TYPE_CHECKING:
    from bsdsbench.curves.points import AnyCurve
    from bsdsbench.loaders.formats.scores import LabelsAndScores

# The choices of other programs, as values of the options of `curves`
_CONVENTIONS: dict[str, dict[str, Any]] = {
    "vlfeat": {"ties": "sample", "reading": "sign", "include_inf": False, "scale": "log"},
    "prec_rec": {"quantiles": True, "kind": "both"},
    "sklearn": {"ties": "merge", "reading": "auto", "include_inf": True, "scale": "normal"},
}
# The rates in a .csv file of each --kind
_RATES = {
    "pr": ("recall", "precision"),
    "roc": ("fpr", "tpr"),
    "det": ("fpr", "fnr"),
    "both": ("fpr", "tpr", "precision"),
}
# Options that need samples, and options that imply --quantiles
_OF_SAMPLES = ("ties", "reading", "include_inf", "interpolate", "normalize_prior", "stable")
_OF_QUANTILES = ("num_thresholds", "instance_count", "strict")


class _Total(click.ParamType):
    """A number of samples: a whole number of at least 0, also written as 1e4."""

    name = "N"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parse the number. Anything else is an error of the command line."""
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not (number >= 0 and number.is_integer()):
            self.fail(f"{value!r}: expected a whole number such as 1000 or 1e4", param, ctx)
        return int(number)


class _Tuples(click.ParamType):
    """Points such as "0,0.5;0.75,1". Commas separate numbers, semicolons separate points."""

    def __init__(self, metavar: str) -> None:
        self.name = metavar
        self.size = metavar.count(",") + 1

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[tuple[float, ...]]:
        """Parse the points, each with as many numbers as the metavar has."""
        points: list[tuple[float, ...]] = []
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


def _parse_variant(ctx: click.Context, param: click.Parameter, text: str) -> str:
    """Parse the axes of --plot."""
    from bsdsbench.curves.ranked import parse_variant

    return parse_variant(text)


@verb
@argument("files", nargs=-1, type=click.Path(), metavar="[SCORES.csv]...")
@choice("--kind", "Kind of curve; both: ROC and PR side by side.", choices=tuple(SPACES_OF_KIND))
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
@word_list("--names", "Names of the curves; default: of the files.", metavar="A,B")
@path(
    "-o",
    "--out",
    "A figure (.png, .svg, .pdf) or the points of the curve (.csv); may be repeated.",
    multiple=True,
    metavar="FILE",
)
@choice(
    "--convention",
    "Take the options that a program has: vlfeat (vl_pr, vl_roc, vl_det), prec_rec or sklearn; "
    "they are printed, and those given beside it come first.",
    choices=("none", *_CONVENTIONS),
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
    choices=("auto", "binary", "sign", "larger"),
)
@flag(
    "--include-inf/--exclude-inf",
    "Scores of -inf: ranked last, or never retrieved (VLFeat); default: never with --ties sample.",
    default=None,
)
@choice(
    "--ties",
    "How to treat equal scores: one point, or (VLFeat) one per row of the file.",
    choices=("merge", "sample"),
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
    callback=_parse_variant,
    metavar="XY",
)
@choice("--scale", "Axes of DET.", choices=("normal", "log"))
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
@choice("--style", "look", "Size of the figure.", choices=("screen", "column", "page"))
@format_option("table", "csv", "json")
def curves_verb(given: Given) -> None:
    """Draw PR, ROC or DET curves of labels and scores, or of points.

    SCORES.csv has a label and a score per row ("-": stdin). Labels are 0 and 1, -1 and 1, or true
    and false. The summary numbers of the curves are printed; several curves go into one figure. If
    several files have the same labels in the same order, or with --kind roc, the areas under the
    ROC curves are printed with 95 % intervals and DeLong's test of each pair.
    """
    from bsdsbench.tables.forms import to_mappings

    if not _is_given("kind"):  # --plot and --scale belong to one kind of curve each
        if _is_given("plot"):
            given.kind = "roc"
        elif _is_given("scale"):
            given.kind = "det"
    convention = _apply_convention(given)
    _check_options(given)
    curves = _curves_of_files(given) + _curves_of_points(given)
    curves = _rename_curves(curves, given.names)
    for target in given.out:
        _write(target, curves, given)
    tables = curve_tables(curves, given)
    if given.form == "json":
        rows_by_table = {table["key"]: table["rows"] for table in to_mappings(tables)}
        settings = given.only("kind", "ties")
        if convention:
            settings["convention"] = convention
        print_json(settings | rows_by_table)
        return
    show_tables(tables[:1] if given.form == "csv" else tables, None, given.form)
    if convention:
        line = f"convention {given.convention}: {' '.join(convention)}"
        if given.form == "csv":
            say(line)
        else:
            print(f"\n{line}")


def _is_given(name: str) -> bool:
    """Return True if the user gave this option on the command line."""
    source = click.get_current_context().get_parameter_source(name)
    return source is ParameterSource.COMMANDLINE


def _apply_convention(given: Given) -> list[str]:
    """Set the options that --convention chooses and the user did not give, in place.

    A kind other than "pr" stays as it is. An option of quantiles also sets `quantiles`. Returns all
    options of the convention with their final values, as they are written on the command line.
    """
    values = _CONVENTIONS.get(given.convention, {})
    params = {param.name: param for param in click.get_current_context().command.params}
    flags = []
    for name, value in values.items():
        is_other_kind = name == "kind" and given.kind != "pr"
        if not _is_given(name) and not is_other_kind:
            setattr(given, name, value)
        param, value = params[name], getattr(given, name)
        if value is True:
            flags.append(param.opts[0])
        elif value is False:
            flags.append(param.secondary_opts[0])
        else:
            flags.append(f"{param.opts[0]} {value}")
    given.quantiles = given.quantiles or any(map(_is_given, _OF_QUANTILES))
    return flags


def _rename_curves(curves: Sequence[NamedCurve], names: Sequence[str] | None) -> list[NamedCurve]:
    """Give the curves the names of --names, by default their own. Repeated names get a number."""
    names = [*names] if names else [curve.name for curve in curves]
    if len(names) != len(curves):
        raise click.UsageError(f"--names: {len(names)} names, expected {len(curves)}")
    for k, name in enumerate(names):
        if name in names[:k]:
            names[k] = f"{name} ({k + 1})"
    return [curve._replace(name=name) for curve, name in zip(curves, names, strict=True)]


def _check_options(given: Given) -> None:
    """Raise UsageError for options that exclude each other or that the kind does not use."""
    kind, files = given.kind, given.files
    n = len(files) + len(given.points) + len(given.counts)
    if not n:
        raise click.UsageError("give SCORES.csv, --points or --counts")
    if n > 1 and any(target.endswith(".csv") for target in given.out):
        raise click.UsageError(f"-o FILE.csv: points of {n} files, expected one file")
    if given.quantiles:
        refuse((*_OF_SAMPLES, "num_positives", "num_negatives"), "--quantiles")
    if kind not in ("pr", "both"):
        refuse(("interpolate", "normalize_prior"), f"--kind {kind}")
    if kind not in ("roc", "both"):
        refuse(("plot",), f"--kind {kind}")
    if kind != "det":
        refuse(("scale",), f"--kind {kind}")
    if given.counts and n == len(given.counts):
        refuse(("num_positives", "num_negatives"), "--counts, which have their totals")
    if not files:
        refuse((*_OF_SAMPLES, *_OF_QUANTILES, "quantiles"), "points alone")


def _curves_of_files(given: Given) -> list[NamedCurve]:
    """Read the files and make their curves. Warnings are printed once per file.

    Raises DataError if a file or its labels cannot be used. The error names the file.
    """
    from bsdsbench.curves.points import points_of, to_space
    from bsdsbench.errors import DataError
    from bsdsbench.loaders.formats.scores import read_scores

    files = given.files
    stems = ["stdin" if file == "-" else Path(file).stem for file in files]
    names = stems if len({*stems}) == len(stems) else files
    instances = given.instance_count  # a number, or the name of a column
    count_column = None if instances is None or _is_number(instances) else instances
    file_curves = []
    for file, name in zip(files, names, strict=True):
        sample = read_scores(file, count_column, given.cluster)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                forms = {
                    axes: _curve_of(sample, axes, given) for axes in SPACES_OF_KIND[given.kind]
                }
                ordered = {axes: to_space(curve, axes) for axes, curve in forms.items()}
                points = points_of(next(iter(ordered.values())))
                if given.between:
                    points = points.with_between()
            except DataError as error:
                raise DataError(evolve(error.problems[0], file=file)) from None
        for line in dict.fromkeys(str(warning.message) for warning in caught):
            say(f"{file}: {line}")
        file_curves.append(NamedCurve(name, forms, points, sample))
    return file_curves


def _curve_of(sample: LabelsAndScores, axes: str, given: Given) -> AnyCurve:
    """Return the curve of labels and scores on these axes, or of their quantiles."""
    from bsdsbench import curves
    from bsdsbench.errors import DataError

    if given.quantiles:
        instances = given.instance_count
        if instances is not None:
            if (sample.labels < 0).any():
                raise DataError("labels below 0, expected the number of positives in each row")
            instances = float(instances) if sample.counts is None else sample.counts
        return curves.threshold_curve(
            sample.labels,
            sample.scores,
            instance_count=instances,
            num_thresholds=given.num_thresholds,
            strict=given.strict,
        )
    accepted = ["ties", "reading", "include_inf", "stable", "num_positives", "num_negatives"]
    if axes == "pr":
        accepted += ["interpolate", "normalize_prior"]
    elif axes == "roc":
        accepted += ["plot"]
    curve_function: Callable[..., Any] = getattr(curves, axes)
    return curve_function(sample.labels, sample.scores, **given.only(*accepted))


def _curves_of_points(given: Given) -> list[NamedCurve]:
    """Make the curves of --points and --counts.

    Raises UsageError if the counts of a curve have different totals, and DataError if PR needs
    totals that are not given.
    """
    from bsdsbench.curves import CurvePoints
    from bsdsbench.curves.points import to_space

    all_points = []
    n_positives = given.num_positives or math.nan
    n_negatives = given.num_negatives or math.nan
    for rates in given.points:
        fpr, tpr = zip(*rates, strict=True)
        all_points.append(CurvePoints.of_rates(fpr, tpr, n_positives, n_negatives))
    for counts in given.counts:
        totals = {(tp + fn, fp + tn) for tp, fp, fn, tn in counts}
        if len(totals) > 1:
            sizes = " and ".join(f"{p:g} + {n:g}" for p, n in sorted(totals))
            expected = "expected the same for all points of a curve"
            raise click.UsageError(f"--counts: positives + negatives {sizes}, {expected}")
        tp, fp, _, _ = zip(*counts, strict=True)
        all_points.append(CurvePoints.of_counts(tp, fp, *totals.pop()))
    curves = []
    for k, points in enumerate(all_points):
        for axes in SPACES_OF_KIND[given.kind]:
            to_space(points, axes)  # raises DataError if the totals are not known
        if given.between:
            points = points.with_between()
        name = "points" if len(all_points) == 1 else f"points {k + 1}"
        curves.append(NamedCurve(name, dict.fromkeys(SPACES_OF_KIND[given.kind], points), points))
    return curves


def _is_number(text: str) -> bool:
    """Return True if the text is a finite number."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _write(target: str, curves: Sequence[NamedCurve], given: Given) -> None:
    """Write the points of a single curve as .csv, or a figure of all curves."""
    from bsdsbench.plotting import plot_spaces

    if target.endswith(".csv"):
        (curve,) = curves
        _write_points(target, curve, given.kind, given.between)
    else:
        # The last form of --kind both is that of PR, which also knows the rates of ROC
        curve_by_name: dict[str, Any] = {
            curve.name: curve.points if given.between else list(curve.forms.values())[-1]
            for curve in curves
        }
        plot_spaces(
            curve_by_name,
            target,
            spaces=SPACES_OF_KIND[given.kind],
            crossed=given.crossings,
            **given.only("hull", "chance", "plot", "scale", "look"),
        )
    say(f"wrote {target}", progress=True)


def _write_points(target: str, curve: NamedCurve, kind: str, between: bool) -> None:
    """Write the thresholds, if the curve has any, and the rates and counts of its points."""
    from bsdsbench.io import write_atomic

    # Columns are read from the form of the curve on its axes if the form has them
    forms: list[Any] = [curve.points] if between else [*curve.forms.values(), curve.points]
    columns = {}
    thresholds = forms[0].thresholds
    if not all(map(math.isnan, thresholds)):
        columns["threshold"] = thresholds
    for name in (*_RATES[kind], "tp", "fp"):
        columns[name] = next(getattr(form, name) for form in forms if hasattr(form, name))
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    lines = [",".join(map(repr, row)) for row in rows]
    write_atomic(Path(target), "\n".join([",".join(columns), *lines]) + "\n")
