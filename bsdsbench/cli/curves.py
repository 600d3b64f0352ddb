"""The command `curves`, which computes curves from labels and scores."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click import FloatRange, IntRange

from bsdsbench.cli import options as opt
from bsdsbench.cli.shared import (
    command,
    is_given,
    log,
    option_values,
    print_json,
    refuse_given,
    show_tables,
)

if TYPE_CHECKING:
    from bsdsbench.curves.ranked import Variant
    from bsdsbench.curves.samples import LabelReading

# --convention -> parameter of the command `curves` -> the value used by that program
_CONVENTIONS: dict[str, dict[str, Any]] = {
    "vlfeat": {"ties": "sample", "reading": "sign", "include_inf": False, "scale": "log"},
    "prec_rec": {"quantiles": True, "kind": "both"},
    "sklearn": {"ties": "merge", "reading": "auto", "include_inf": True, "scale": "normal"},
}
# Options that apply only to curves ranked by score, and options that imply --quantiles
_RANKING_OPTIONS = ("ties", "reading", "include_inf", "interpolate", "normalize_prior", "stable")
_QUANTILE_OPTIONS = ("num_thresholds", "instance_count", "strict")


def _parse_points(
    ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]
) -> list[list[tuple[float, ...]]]:
    """Parse the values of --points or --counts, each of which is a curve.

    For example, "0,0.5;0.75,1" gives [(0.0, 0.5), (0.75, 1.0)]: semicolons separate points, commas
    the numbers of a point. The option's metavar, such as "FPR,TPR;...", determines how many numbers
    a point has. Raises BadParameter if a curve has no point, if a point has more or fewer numbers,
    or if a number is not finite.
    """
    names = str(param.metavar).partition(";")[0]
    numbers_per_point = names.count(",") + 1
    curves = []
    for text in texts:
        try:
            points = [tuple(map(float, p.split(","))) for p in text.split(";") if p.strip()]
        except ValueError:
            points = []  # refused below
        numbers = [number for point in points for number in point]
        sizes = {len(point) for point in points}
        if sizes != {numbers_per_point} or not all(map(math.isfinite, numbers)):
            expected = f"expected {names}, points between semicolons"
            raise click.BadParameter(f"{text!r}: {expected}", ctx, param)
        curves.append(points)
    return curves


def _number_or_column(
    ctx: click.Context, param: click.Parameter, text: str | None
) -> float | str | None:
    """Convert the value of --instance-count to a float, or keep it if it is a column name."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


class CurvesArguments(opt.Options):
    """The arguments and options of `curves`, in the order of its help page."""

    files: tuple[str, ...] = opt.add_argument("[SCORES.csv]...", nargs=-1, type=click.Path())
    kind: str = opt.choice(
        "Kind of curve; both: ROC and PR side by side.", choices=("pr", "roc", "det", "both")
    )
    points: list[list[tuple[float, float]]] = opt.repeatable(
        "A curve given by its points in ROC space, such as '0,0.5;0.75,1'. May be repeated.",
        callback=_parse_points,
        metavar="FPR,TPR;...",
    )
    counts: list[list[tuple[float, float, float, float]]] = opt.repeatable(
        "A curve given by the counts of its points, such as '5,5,15,95;10,30,10,70'. May be "
        "repeated.",
        callback=_parse_points,
        metavar="TP,FP,FN,TN;...",
    )
    names: list[str] | None = opt.word_list(
        "Names of the curves; default: the names of the files.", metavar="A,B"
    )
    out: tuple[str, ...] = opt.path(
        "Write a figure (.png, .svg, .pdf), or the points of a single curve (.csv). May be "
        "repeated.",
        "-o",
        "--out",
        multiple=True,
        metavar="FILE",
    )
    convention: str = opt.choice(
        "Set the options as another program does: vlfeat (vl_pr, vl_roc, vl_det), prec_rec or "
        "sklearn. They are printed. Options that are also given override them.",
        choices=("none", *_CONVENTIONS),
    )
    areas: bool = opt.flag("Print every variant of AP and AUC by its name.")
    steps: bool = opt.flag(
        "Print every point: threshold, counts, rates, F; always done for points given."
    )
    hull: bool = opt.flag(
        "Add the convex hull of ROC space, which is the achievable curve in PR space."
    )
    crossings: bool = opt.flag(
        "Print which curve dominates, or where two curves cross, and mark crossings."
    )
    between: bool = opt.flag(
        "Add the points at each whole number of true positives (Davis, Goadrich)."
    )
    reading: LabelReading = opt.choice(
        "Meaning of labels. binary: 0 is negative, others are positive. sign: below 0 is negative, "
        "0 is left out. larger: the larger of two values is positive. auto: labels of 0 and 1, of "
        "-1 and 1, or of -1, 0 and 1 (0 is left out).",
        "--labels",
        choices=("auto", "binary", "sign", "larger"),
    )
    include_inf: bool | None = opt.flag(
        "Rank scores of -inf last, or never retrieve them (VLFeat); default: retrieve them unless "
        "--ties sample is given.",
        "--include-inf/--exclude-inf",
        default=None,
    )
    ties: str = opt.choice(
        "Points for equal scores: a single one, or one per row of the file (VLFeat).",
        choices=("merge", "sample"),
    )
    num_positives: float | None = opt.add_option(
        "Total number of positives, in place of that of the file.", type=FloatRange(0), metavar="N"
    )
    num_negatives: float | None = opt.add_option(
        "Total number of negatives. Curves of --points need both totals for PR.",
        type=FloatRange(0),
        metavar="N",
    )
    normalize_prior: float | None = opt.add_option(
        "Compute PR as if this share of the samples were positive.", type=float, metavar="SHARE"
    )
    interpolate: bool = opt.flag(
        "PR: take the largest precision at this or a higher recall (VLFeat)."
    )
    stable: bool = opt.flag("Keep the order of the file; points never retrieved are nan (VLFeat).")
    plot: Variant = opt.add_option(
        "Axes of ROC: fptp, tntp, tptn or fpfn, as VLFeat calls them (x, then y), tpfp ..., or in "
        "words, such as 'TPR over FPR'. The printed area is that under this variant.",
        default="fptp",
        metavar="XY",
    )
    scale: str = opt.choice("Scale of the axes of DET.", choices=("normal", "log"))
    chance: bool = opt.flag(
        "Draw the line of a random ranking.", "--chance/--no-chance", default=True
    )
    quantiles: bool = opt.flag(
        "A point at each quantile of the scores; labels may be shares (prec_rec)."
    )
    num_thresholds: int | None = opt.add_option(
        "Number of quantiles; default: at most 100.", type=IntRange(0, 10**7), metavar="N"
    )
    instance_count: float | str | None = opt.add_option(
        "Number of instances in each row: a number, or a column of the file. The label of a row is "
        "then the number of its positives.",
        callback=_number_or_column,
        metavar="N|COLUMN",
    )
    cluster: str | None = opt.add_option(
        "Column of rows that belong together, such as patient. DeLong's intervals and p-values are "
        "then those of clusters.",
        metavar="COLUMN",
    )
    strict: bool = opt.flag("Quantiles: predict if score > threshold, without the smallest score.")
    look: str = opt.choice("Size of the figure.", "--style", choices=("screen", "column", "page"))
    output_format: str = opt.format_option("table", "csv", "json")


@command  # its arguments and options are those that CurvesArguments declares
def curves_command(args: CurvesArguments) -> None:
    """Draw PR, ROC or DET curves of labels and scores, or of points.

    SCORES.csv has a label and a score in each row ("-" reads standard input). Labels are 0 and 1,
    -1 and 1, true and false, or yes and no. The summary numbers of the curves are printed. Several
    curves are drawn in one figure. With --kind roc, or if several files have the same labels, the
    areas under the ROC curves are printed with 95 % intervals and DeLong's test of each pair. It
    pairs rows by a column called id, image or file, or by their order.
    """
    from bsdsbench.cli.computed_curves import (
        compute_curves,
        curve_tables,
        draw_figure,
        write_points,
    )
    from bsdsbench.tables.forms import to_mappings

    args = _with_implied_options(args)  # such as --kind det if --scale is given
    _check_options(args)
    curves = compute_curves(args)
    for target in args.out:
        if target.endswith(".csv"):
            write_points(Path(target), curves[0], args)  # the only curve; others were refused
        else:
            draw_figure(target, curves, args)
        log(f"wrote {target}", progress=True)
    tables = curve_tables(curves, args)
    # Of --convention sklearn, for example, ["--ties merge", "--include-inf" ...]; of none []
    convention = _convention_flags(args)
    if args.output_format == "json":
        rows_by_table = {table["key"]: table["rows"] for table in to_mappings(tables)}
        settings = option_values(args, ("kind", "ties"))
        if convention:
            settings["convention"] = convention
        print_json(settings | rows_by_table)
        return
    # CSV holds one table: the summary numbers
    show_tables(tables[:1] if args.output_format == "csv" else tables, None, args.output_format)
    if convention:
        line = f"convention {args.convention}: {' '.join(convention)}"
        if args.output_format == "csv":
            log(line)  # to standard error, because standard output is a CSV table
        else:
            print(f"\n{line}")


def _with_implied_options(args: CurvesArguments) -> CurvesArguments:
    """Return `args` with the options implied by --convention, --plot, --scale and quantile options.

    For example, --scale implies --kind det, and --num-thresholds implies --quantiles. Options that
    the user gave are not changed, but the value of --plot, such as "TPR over FPR", is converted to
    its short form, such as "fptp".
    """
    from bsdsbench.curves.ranked import parse_variant

    # The options of the named program, such as {"ties": "merge", "reading": "auto"} of "sklearn"
    implied = dict(_CONVENTIONS.get(args.convention, {}))
    if is_given("plot"):  # True if the user wrote --plot, the axes of a ROC curve
        implied["kind"] = "roc"
    elif is_given("scale"):  # of the axes of a DET curve
        implied["kind"] = "det"
    if any(map(is_given, _QUANTILE_OPTIONS)):
        implied["quantiles"] = True
    changes = {name: value for name, value in implied.items() if not is_given(name)}
    return args.replace(plot=parse_variant(args.plot), **changes)


def _convention_flags(args: CurvesArguments) -> list[str]:
    """Return the options that --convention sets, such as ["--ties merge", "--include-inf"].

    They have the values in use: an option that the user also gave has the user's value.
    """
    option_of_name = {param.name: param for param in click.get_current_context().command.params}
    flags = []
    for name in _CONVENTIONS.get(args.convention, {}):  # the names of the options that it sets
        value, option = getattr(args, name), option_of_name[name]
        if isinstance(value, bool):
            # Of --include-inf/--exclude-inf, the first is in `opts`, the second in `secondary_opts`
            flags.append((option.opts if value else option.secondary_opts)[0])
        else:
            flags.append(f"{option.opts[0]} {value}")
    return flags


def _check_options(args: CurvesArguments) -> None:
    """Raise UsageError if no curve is given, or if an option does not apply to the curves.

    `refuse_given` raises it if the user gave one of these options. _RANKING_OPTIONS (--ties,
    --labels ...) are for curves with a point per score, _QUANTILE_OPTIONS for curves with points at
    quantiles of the scores (--quantiles).
    """
    n_curves = len(args.files) + len(args.points) + len(args.counts)
    if not n_curves:
        raise click.UsageError("give SCORES.csv, --points or --counts")
    inputs = {Path(file).resolve() for file in args.files}
    for target in args.out:
        if Path(target).resolve() in inputs:
            raise click.UsageError(f"-o {target}: is one of the inputs, expected another file")
    if n_curves > 1 and any(target.endswith(".csv") for target in args.out):
        raise click.UsageError(f"-o FILE.csv: points of {n_curves} files, expected one file")
    totals = ("num_positives", "num_negatives")
    if args.quantiles:  # whose function takes the totals from the labels
        refuse_given((*_RANKING_OPTIONS, *totals), "--quantiles")
    if args.kind not in ("pr", "both"):  # they change the precision
        refuse_given(("interpolate", "normalize_prior"), f"--kind {args.kind}")
    if args.kind not in ("roc", "both"):  # --plot names the axes of a ROC curve
        refuse_given(("plot",), f"--kind {args.kind}")
    if args.kind != "det":  # --scale is that of the axes of a DET curve
        refuse_given(("scale",), f"--kind {args.kind}")
    are_all_counts = n_curves == len(args.counts)  # each point TP, FP, FN, TN has both totals
    if are_all_counts:
        refuse_given(totals, "--counts, which have their totals")
    if not args.files:  # points that are given need no ranking of scores
        refuse_given((*_RANKING_OPTIONS, *_QUANTILE_OPTIONS, "quantiles"), "points alone")
