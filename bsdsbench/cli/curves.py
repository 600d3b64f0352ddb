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
    Arguments,
    add_option,
    choice,
    command,
    flag,
    format_option,
    path,
    refuse,
    with_arguments,
    word_list,
)

if TYPE_CHECKING:
    from bsdsbench.curves.points import AnyCurve, AxesKind
    from bsdsbench.loaders.formats.scores import LabelsAndScores

# --convention -> parameter of `curves` -> value, as the program has it
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
# Parameters that need labels and scores, and parameters that imply --quantiles
_OF_SAMPLES = ("ties", "reading", "include_inf", "interpolate", "normalize_prior", "stable")
_OF_QUANTILES = ("num_thresholds", "instance_count", "strict")


class _Total(click.ParamType):
    """A number of samples, such as 1000 or 1e4: a whole number of at least 0."""

    name = "N"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parse a number. Raises UsageError if it is negative, not whole, or no number."""
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not (number >= 0 and number.is_integer()):
            self.fail(f"{value!r}: expected a whole number such as 1000 or 1e4", param, ctx)
        return int(number)


class _Tuples(click.ParamType):
    """Points such as "0,0.5;0.75,1". Commas separate numbers, semicolons separate points.

    The numbers of a point are named by the metavar, such as "FPR,TPR".
    """

    def __init__(self, metavar: str) -> None:
        self.name = metavar
        self.size = metavar.count(",") + 1

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[tuple[float, ...]]:
        """Parse points of `self.size` finite numbers each.

        Raises UsageError for a text of another form, and if there is no point.
        """
        points = []
        for text in filter(None, map(str.strip, value.split(";"))):
            try:
                point = tuple(map(float, text.split(",")))
            except ValueError:
                point = (math.nan,)
            if len(point) != self.size or not all(map(math.isfinite, point)):
                self.fail(f"{text!r}: expected {self.name}, points between semicolons", param, ctx)
            points.append(point)
        if not points:
            self.fail("no point, expected at least one", param, ctx)
        return points


def _parse_variant(ctx: click.Context, param: click.Parameter, text: str) -> str:
    """Parse the axes of --plot to their short name, such as "tpfp"."""
    from bsdsbench.curves.ranked import parse_variant

    return parse_variant(text)


@command
@argument("files", nargs=-1, type=click.Path(), metavar="[SCORES.csv]...")
@choice("--kind", "Kind of curve; both: ROC and PR side by side.", choices=tuple(SPACES_OF_KIND))
@add_option(
    "--points",
    "A curve given by its points in ROC space, such as '0,0.5;0.75,1'. May be repeated.",
    type=_Tuples("FPR,TPR"),
    multiple=True,
    metavar="FPR,TPR;...",
)
@add_option(
    "--counts",
    "A curve given by the counts of its points, such as '5,5,15,95;10,30,10,70'. May be repeated.",
    type=_Tuples("TP,FP,FN,TN"),
    multiple=True,
    metavar="TP,FP,FN,TN;...",
)
@word_list("--names", "Names of the curves; default: the names of the files.", metavar="A,B")
@path(
    "-o",
    "--out",
    "Write a figure (.png, .svg, .pdf), or the points of a single curve (.csv). May be repeated.",
    multiple=True,
    metavar="FILE",
)
@choice(
    "--convention",
    "Set the options as another program does: vlfeat (vl_pr, vl_roc, vl_det), prec_rec or sklearn. "
    "They are printed. Options that are also given override them.",
    choices=("none", *_CONVENTIONS),
)
@flag("--areas", "Print every variant of AP and AUC by its name.")
@flag("--steps", "Print every point: threshold, counts, rates, F; always done for points given.")
@flag("--hull", "Add the convex hull of ROC space, which is the achievable curve in PR space.")
@flag("--crossings", "Print which curve dominates, or where two curves cross, and mark crossings.")
@flag("--between", "Add the points at each whole number of true positives (Davis, Goadrich).")
@choice(
    "--labels",
    "reading",
    "Meaning of labels. binary: 0 is negative, others are positive. sign: below 0 is negative, 0 "
    "is left out. larger: the larger of two values is positive. auto: labels of 0 and 1, of -1 and "
    "1, or of -1, 0 and 1 (0 is left out).",
    choices=("auto", "binary", "sign", "larger"),
)
@flag(
    "--include-inf/--exclude-inf",
    "Rank scores of -inf last, or never retrieve them (VLFeat); default: retrieve them unless "
    "--ties sample is given.",
    default=None,
)
@choice(
    "--ties",
    "Points for equal scores: a single one, or one per row of the file (VLFeat).",
    choices=("merge", "sample"),
)
@add_option(
    "--num-positives",
    "Total number of positives, in place of that of the file.",
    type=_Total(),
    metavar="N",
)
@add_option(
    "--num-negatives",
    "Total number of negatives. Curves of --points need both totals for PR.",
    type=_Total(),
    metavar="N",
)
@add_option(
    "--normalize-prior",
    "Compute PR as if this share of the samples were positive.",
    type=float,
    metavar="SHARE",
)
@flag("--interpolate", "PR: take the largest precision at this or a higher recall (VLFeat).")
@flag("--stable", "Keep the order of the file; points never retrieved are nan (VLFeat).")
@add_option(
    "--plot",
    "Axes of ROC: fptp, tntp, tptn or fpfn, as VLFeat calls them (x, then y), tpfp ..., or in "
    "words, such as 'TPR over FPR'. The printed area is that under this variant.",
    default="fptp",
    callback=_parse_variant,
    metavar="XY",
)
@choice("--scale", "Scale of the axes of DET.", choices=("normal", "log"))
@flag("--chance/--no-chance", "Draw the line of a random ranking.", default=True)
@flag("--quantiles", "A point at each quantile of the scores; labels may be shares (prec_rec).")
@add_option("--num-thresholds", "Number of quantiles; default: at most 100.", type=_Total())
@add_option(
    "--instance-count",
    "Number of instances in each row: a number, or a column of the file. The label of a row is "
    "then the number of its positives.",
    metavar="N|COLUMN",
)
@add_option(
    "--cluster",
    "Column of rows that belong together, such as patient. DeLong's intervals and p-values are "
    "then those of clusters.",
    metavar="COLUMN",
)
@flag("--strict", "Quantiles: predict if score > threshold, without the smallest score.")
@choice("--style", "look", "Size of the figure.", choices=("screen", "column", "page"))
@format_option("table", "csv", "json")
@with_arguments
def curves_command(args: Arguments) -> None:
    """Draw PR, ROC or DET curves of labels and scores, or of points.

    SCORES.csv has a label and a score in each row ("-" reads standard input). Labels are 0 and 1,
    -1 and 1, or true and false. The summary numbers of the curves are printed. Several curves are
    drawn in one figure. With --kind roc, or if several files have the same labels in the same
    order, the areas under the ROC curves are printed with 95 % intervals and DeLong's test of each
    pair.
    """
    from bsdsbench.tables.forms import to_mappings

    if not _is_given("kind"):  # --plot and --scale belong to one kind of curve each
        if _is_given("plot"):
            args.kind = "roc"
        elif _is_given("scale"):
            args.kind = "det"
    convention = _apply_convention(args)
    _check_options(args)
    curves = _rename_curves(_curves_of_files(args) + _curves_of_points(args), args.names)
    for target in args.out:
        _write_file(target, curves, args)
    tables = curve_tables(curves, args)
    if args.form == "json":
        rows_by_table = {table["key"]: table["rows"] for table in to_mappings(tables)}
        settings = args.only("kind", "ties")
        if convention:
            settings["convention"] = convention
        print_json(settings | rows_by_table)
        return
    show_tables(tables[:1] if args.form == "csv" else tables, None, args.form)
    if convention:
        line = f"convention {args.convention}: {' '.join(convention)}"
        if args.form == "csv":
            say(line)
        else:
            print(f"\n{line}")


def _is_given(name: str) -> bool:
    """Return True if the user gave this option on the command line."""
    source = click.get_current_context().get_parameter_source(name)
    return source is ParameterSource.COMMANDLINE


def _apply_convention(args: Arguments) -> list[str]:
    """Set the options that --convention chooses, unless the user gave them, in place.

    A kind other than "pr" is kept too. Options of quantiles also set `quantiles`. Returns all
    options of the convention with their final values, as they are written on the command line.
    """
    params = {param.name: param for param in click.get_current_context().command.params}
    flags = []
    for name, default in _CONVENTIONS.get(args.convention, {}).items():
        keeps_kind = name == "kind" and args.kind != "pr"
        if not _is_given(name) and not keeps_kind:
            setattr(args, name, default)
        value = getattr(args, name)
        param = params[name]
        if value is True:
            flags.append(param.opts[0])
        elif value is False:
            flags.append(param.secondary_opts[0])
        else:
            flags.append(f"{param.opts[0]} {value}")
    args.quantiles = args.quantiles or any(map(_is_given, _OF_QUANTILES))
    return flags


def _rename_curves(curves: Sequence[NamedCurve], names: Sequence[str] | None) -> list[NamedCurve]:
    """Return the curves with the names of --names, by default with their own names.

    A name that an earlier curve has gets a number. Raises UsageError if there are not as many names
    as curves.
    """
    names = [*names] if names else [curve.name for curve in curves]
    if len(names) != len(curves):
        raise click.UsageError(f"--names: {len(names)} names, expected {len(curves)}")
    for k, name in enumerate(names):
        if name in names[:k]:
            names[k] = f"{name} ({k + 1})"
    return [curve._replace(name=name) for curve, name in zip(curves, names, strict=True)]


def _check_options(args: Arguments) -> None:
    """Raise UsageError if there is no curve, or for options that the curves cannot use.

    These are options that exclude each other, that belong to another kind of curve, or that need a
    file of labels and scores while all curves are given as points.
    """
    n = len(args.files) + len(args.points) + len(args.counts)
    if not n:
        raise click.UsageError("give SCORES.csv, --points or --counts")
    if n > 1 and any(target.endswith(".csv") for target in args.out):
        raise click.UsageError(f"-o FILE.csv: points of {n} files, expected one file")
    if args.quantiles:
        refuse((*_OF_SAMPLES, "num_positives", "num_negatives"), "--quantiles")
    if args.kind not in ("pr", "both"):
        refuse(("interpolate", "normalize_prior"), f"--kind {args.kind}")
    if args.kind not in ("roc", "both"):
        refuse(("plot",), f"--kind {args.kind}")
    if args.kind != "det":
        refuse(("scale",), f"--kind {args.kind}")
    if args.counts and n == len(args.counts):
        refuse(("num_positives", "num_negatives"), "--counts, which have their totals")
    if not args.files:
        refuse((*_OF_SAMPLES, *_OF_QUANTILES, "quantiles"), "points alone")


def _curves_of_files(args: Arguments) -> list[NamedCurve]:
    """Read the files of labels and scores, and compute a curve for each.

    A curve is named by its file without suffix, or by the path if two names would be equal. Each
    warning is printed once per file. Raises DataError, which names the file, if a file or its
    labels cannot be used.
    """
    from bsdsbench.errors import DataError
    from bsdsbench.loaders.formats.scores import read_scores

    stems = ["stdin" if file == "-" else Path(file).stem for file in args.files]
    names = stems if len({*stems}) == len(stems) else args.files
    instances = args.instance_count  # a number, or the name of a column
    count_column = None if instances is None or _is_number(instances) else instances
    curves = []
    for file, name in zip(args.files, names, strict=True):
        sample = read_scores(file, count_column, args.cluster)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                curves.append(_curve_of_sample(name, sample, args))
            except DataError as error:
                raise DataError(evolve(error.problems[0], file=file)) from None
        for line in dict.fromkeys(str(warning.message) for warning in caught):
            say(f"{file}: {line}")
    return curves


def _curve_of_sample(name: str, sample: LabelsAndScores, args: Arguments) -> NamedCurve:
    """Compute the curve of labels and scores on all axes of the --kind."""
    from bsdsbench.curves.points import points_of, to_space

    forms = {axes: _curve_of(sample, axes, args) for axes in SPACES_OF_KIND[args.kind]}
    on_axes = [to_space(curve, axes) for axes, curve in forms.items()]
    points = points_of(on_axes[0])
    if args.between:
        points = points.with_between()
    return NamedCurve(name, forms, points, sample)


def _curve_of(sample: LabelsAndScores, axes: str, args: Arguments) -> AnyCurve:
    """Return the curve of labels and scores.

    - with --quantiles: points at quantiles of the scores, the same for all axes. Raises DataError
      if --instance-count is given and a label, the number of positives of a row, is negative.
    - otherwise: the "pr", "roc" or "det" curve, with the options that apply to these axes
    """
    from bsdsbench import curves
    from bsdsbench.errors import DataError

    if args.quantiles:
        instances = args.instance_count
        if instances is not None:
            if (sample.labels < 0).any():
                raise DataError("labels below 0, expected the number of positives in each row")
            instances = float(instances) if sample.counts is None else sample.counts
        return curves.threshold_curve(
            sample.labels,
            sample.scores,
            instance_count=instances,
            num_thresholds=args.num_thresholds,
            strict=args.strict,
        )
    accepted = ["ties", "reading", "include_inf", "stable", "num_positives", "num_negatives"]
    if axes == "pr":
        accepted += ["interpolate", "normalize_prior"]
    elif axes == "roc":
        accepted += ["plot"]
    curve_function: Callable[..., Any] = getattr(curves, axes)
    return curve_function(sample.labels, sample.scores, **args.only(*accepted))


def _curves_of_points(args: Arguments) -> list[NamedCurve]:
    """Make a curve of each --points and each --counts. Points come first.

    `args.points` holds a list of (FPR, TPR) per curve, `args.counts` a list of (TP, FP, FN, TN).
    --num-positives and --num-negatives are the totals of --points. The curve is the same on all
    axes of the --kind.

    Raises UsageError if the points of a --counts have different totals, and DataError if the axes
    need totals that are not given.
    """
    from bsdsbench.curves import CurvePoints
    from bsdsbench.curves.points import to_space

    all_points = []
    n_positives = args.num_positives or math.nan
    n_negatives = args.num_negatives or math.nan
    for rates in args.points:
        fpr, tpr = zip(*rates, strict=True)
        all_points.append(CurvePoints.of_rates(fpr, tpr, n_positives, n_negatives))
    for counts in args.counts:
        totals = {(tp + fn, fp + tn) for tp, fp, fn, tn in counts}
        if len(totals) > 1:
            sizes = " and ".join(f"{p:g} + {n:g}" for p, n in sorted(totals))
            expected = "expected the same for all points of a curve"
            raise click.UsageError(f"--counts: positives + negatives {sizes}, {expected}")
        tp, fp, _, _ = zip(*counts, strict=True)
        all_points.append(CurvePoints.of_counts(tp, fp, *totals.pop()))
    curves = []
    for k, points in enumerate(all_points):
        for axes in SPACES_OF_KIND[args.kind]:
            to_space(points, axes)  # raises DataError if the totals are not known
        if args.between:
            points = points.with_between()
        name = "points" if len(all_points) == 1 else f"points {k + 1}"
        forms: dict[AxesKind, Any] = dict.fromkeys(SPACES_OF_KIND[args.kind], points)
        curves.append(NamedCurve(name, forms, points))
    return curves


def _is_number(text: str) -> bool:
    """Return True if the text is a finite number."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _write_file(target: str, curves: Sequence[NamedCurve], args: Arguments) -> None:
    """Write the points of the only curve to a .csv file, or a figure of all curves to any other."""
    from bsdsbench.plotting import plot_spaces

    if target.endswith(".csv"):
        (curve,) = curves
        _write_curve_csv(target, curve, args.kind, args.between)
    else:
        # The last form of --kind both is that of PR, which also knows the rates of ROC
        curve_by_name: dict[str, Any] = {
            curve.name: curve.points if args.between else list(curve.forms.values())[-1]
            for curve in curves
        }
        plot_spaces(
            curve_by_name,
            target,
            spaces=SPACES_OF_KIND[args.kind],
            crossed=args.crossings,
            **args.only("hull", "chance", "plot", "scale", "look"),
        )
    say(f"wrote {target}", progress=True)


def _write_curve_csv(path: str, curve: NamedCurve, kind: str, interpolated: bool) -> None:
    """Write a curve to a CSV file: threshold, rates, true and false positives, a row per point.

    `kind` selects the rates (_RATES). The column of thresholds is left out if all are NaN. A column
    is read from the first form of the curve that has it, else from its points. If `interpolated`
    (--between), all columns are read from the points, which include those between thresholds.
    """
    from bsdsbench.io import write_atomic

    sources: list[Any] = [curve.points]
    if not interpolated:
        sources = [*curve.forms.values(), curve.points]
    columns = {}
    thresholds = sources[0].thresholds
    if not all(map(math.isnan, thresholds)):
        columns["threshold"] = thresholds
    for name in (*_RATES[kind], "tp", "fp"):
        columns[name] = next(getattr(source, name) for source in sources if hasattr(source, name))
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    lines = [",".join(map(repr, row)) for row in rows]
    write_atomic(Path(path), "\n".join([",".join(columns), *lines]) + "\n")
