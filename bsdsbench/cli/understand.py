"""The commands to understand scores: doctor, compare, errors, worst, explain, plot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click import FloatRange, IntRange, argument

from bsdsbench.cli.explanation import explanation_as_json, print_explanation
from bsdsbench.cli.output import print_json, progress, say, show_tables
from bsdsbench.cli.shared import (
    PROTOCOL,
    Arguments,
    add_option,
    as_flag,
    bootstrap_options,
    by_option,
    choice,
    cluster_option,
    command,
    flag,
    format_option,
    ground_truth_option,
    grouping_options,
    labels_option,
    methods_option,
    names_option,
    path,
    protocol_from,
    protocol_options,
    published_option,
    refuse,
    require_runs_or_methods,
    resolve_run_options,
    run_option,
    runs_argument,
    runs_or_methods,
    table_options,
    with_arguments,
    word_list,
)

if TYPE_CHECKING:
    from bsdsbench.comparison.comparison import Comparison
    from bsdsbench.comparison.methods import MethodComparison
    from bsdsbench.protocol.signature import Signature
    from bsdsbench.results.evaluation import Evaluation
    from bsdsbench.tables.table import Table


@command
@argument("pred_dir", type=click.Path())
@ground_truth_option
@run_option("task")
@run_option("split_file")
@run_option("pred_kind")
@word_list("--metrics", "", metavar="M,M")
@protocol_options
@format_option("text", "json")
@with_arguments
def doctor_command(args: Arguments) -> int:
    """Check names, sizes, value range, polarity and NMS of the inputs.

    Give --split-file, --pred-kind and the options of the protocol as for `evaluate`. The exit
    status is 2 if there are errors, and 0 if there are only warnings.
    """
    import bsdsbench as bb

    resolve_run_options(args)
    options = args.only("protocol", "metrics", "split_file", "pred_kind")
    with progress("doctor", "steps") as report:
        findings = bb.doctor(args.pred_dir, args.gt, progress=report, **options)
    write = partial(as_flag, command_name="evaluate")  # fixes name options of `evaluate`
    if args.form == "json":
        print_json([asdict(finding) | {"fix": finding.fixes(write)} for finding in findings])
    else:
        lines = [finding.line(write=write) for finding in findings]
        paragraphs = findings.reading, *lines, findings.note, findings.summary()
        print(*filter(None, paragraphs), sep="\n")
        print(f"protocol {args.protocol.describe()}")
    return 2 if any(finding.level == "error" for finding in findings) else 0


@command
@runs_or_methods
@methods_option
@names_option
@bootstrap_options
@add_option("--level", "Confidence level of the intervals.", type=float, default=0.95)
@choice(
    "--test",
    "Test for the p-values. Intervals always come from the bootstrap.",
    choices=("bootstrap", "permutation"),
)
@flag("--ranks", "Also show ranks, with intervals over the bootstrap samples, and P(A beats B).")
@flag("--common", "Compare only the images that all runs share.")
@flag("--force", "Compare even if protocols or ground truth differ.")
@grouping_options
@cluster_option
@by_option
@table_options
@with_arguments
def compare_command(args: Arguments) -> None:
    """Test whether the differences between runs are real.

    Runs are compared image by image (paired). The tables show differences, bootstrap intervals and
    p-values. OUT is the folder of a run, or a folder with official ID_ev1.txt files of any program.
    FILE is a run that `share` wrote, or its URL, https://... ref:NAME is a reference run on BSDS500
    test: ref:sauge-l, ref:cob, ref:hed, ref:se ...

    With --method each method is one or more runs, such as seeds. The tables show means with their
    spread, and intervals over images and runs.
    """
    from bsdsbench.comparison.comparison_tables import left_out_of
    from bsdsbench.results.score_tables import with_left_out

    require_runs_or_methods(args)
    options = args.only("n_boot", "seed", "level", "common", "force", "cluster")
    compared = _compare(args, options, test=args.test)
    if args.columns is not None:
        compared = compared.only(args.columns)
    comparison = compared.on_all_images
    if args.form == "json" and args.out is None:
        print_json(_comparison_as_json(compared, args.by))
    else:
        tables = _comparison_tables(compared, args)
        if args.form == "csv":  # CSV has no notes: the images left out become a table
            tables = with_left_out(tables, comparison.left_out)
        show_tables(tables, args.out, args.form)
    if args.form != "table" or args.out:
        for note in left_out_of(comparison):
            say(note.text)
        for line in comparison.notes:
            say(line)


def _comparison_as_json(compared: _Compared, by: str | None) -> dict[str, object]:
    """Return a comparison as plain values, with those of its slices by the column `by`."""
    plain = dict(compared.on_all_images.to_mapping())
    if by:
        plain["by"] = by
        plain["slices"] = {name: part.to_mapping() for name, part in compared.slices.items()}
    return plain


def _comparison_tables(compared: _Compared, args: Arguments) -> list[Table]:
    """Return the tables of a comparison, then of its slices (--by), then of ranks (--ranks)."""
    from bsdsbench.comparison.methods import MethodComparison
    from bsdsbench.comparison.ranks import rank_tables
    from bsdsbench.comparison.slice_comparison import compared_table

    comparison, slices = compared
    if isinstance(comparison, MethodComparison):
        tables = comparison.tables(args.spread)
    else:
        tables = comparison.tables()
    if args.by:
        tables.append(replace(compared_table(slices, args.by), reading=comparison.reading))
    if args.ranks:
        tables += rank_tables({"": comparison})
        if args.by:
            tables += rank_tables(slices, args.by)
    return tables


class _Compared(NamedTuple):
    """A comparison of runs or methods.

    `slices` has the comparison on the images of each slice of --by, by the name of the slice.
    """

    on_all_images: Comparison | MethodComparison
    slices: Mapping[str, Comparison | MethodComparison]

    def only(self, columns: list[str]) -> _Compared:
        """Return the comparison of these scores alone."""
        slices = {name: in_slice.only(columns) for name, in_slice in self.slices.items()}
        return _Compared(self.on_all_images.only(columns), slices)


def _compare(args: Arguments, options: dict[str, Any], **run_options: Any) -> _Compared:
    """Compare the runs, or the methods of --method, on all images and in the slices of --by.

    `options` are keywords of both `bb.compare` and `bb.compare_methods`, `run_options` of
    `bb.compare` alone. Methods of one run each are compared as runs. Raises UsageError if --names
    or --test is given for methods of several runs.
    """
    import bsdsbench as bb
    from bsdsbench.comparison.method import methods_of, runs_of, with_runs
    from bsdsbench.comparison.slice_comparison import compare_slices
    from bsdsbench.results.given_runs import as_runs

    runs = args.runs
    names = args.names
    methods = methods_of(args.method)
    if methods and all(method.n_runs == 1 for method in methods):
        runs = tuple(text.partition("=")[2] for text in args.method)
        names = [method.name for method in methods]
        methods = []
    loaded = as_runs(runs_of(methods) or runs, names, args.groups, args.group_by)
    on_all_images: Comparison | MethodComparison
    with progress("compare", "samples") as report:
        if methods:
            refuse(("names", "test"), "--method")
            methods = with_runs(methods, loaded)
            on_all_images = bb.compare_methods(methods, progress=report, **options)
        else:
            options = {**options, **run_options}
            on_all_images = bb.compare(loaded, progress=report, **options)
    slices = compare_slices(loaded, args.by, methods, **options) if args.by else {}
    return _Compared(on_all_images, slices)


@command
@runs_argument
@names_option
@bootstrap_options
@run_option("workers")
@grouping_options
@by_option
@table_options
@with_arguments
def errors_command(args: Arguments) -> None:
    """Show where the score is lost: missed and false pixels by class.

    Missed pixels are suppressed (matched at the lowest threshold), near a false pixel, or absent.
    False pixels are duplicates beside an annotated pixel, near an annotated pixel, or background.
    Recall is also shown for pixels that one annotator alone, some, or all annotators drew. Each
    class has its share with an interval, and dODS, the rise of ODS if that class alone is repaired.

    A run made with `evaluate --errors` has the counts. The maps of other runs are matched again.
    """
    from bsdsbench.comparison.lost_scores import error_slices_table, error_table, lost_scores
    from bsdsbench.io import as_json, write_atomic
    from bsdsbench.results.score_names import select

    runs = _count_error_classes(args)
    losses = [lost_scores(run, args.n_boot, args.seed) for run in runs]
    slice_table = error_slices_table(runs, args.by) if args.by else None
    if args.form == "json":
        plain: Any = losses[0] if len(losses) == 1 else losses
        if slice_table:
            plain = {"runs": losses, "slices": slice_table.plain()}
        if args.out:
            write_atomic(Path(args.out), as_json(plain))
        else:
            print_json(plain)
        return
    tables = [error_table(runs, losses)]
    if slice_table:
        tables.append(slice_table)
    if args.columns:
        tables = select(tables, args.columns)
    show_tables(tables, args.out, args.form)


def _count_error_classes(args: Arguments) -> list[Evaluation]:
    """Load the runs, and count the error classes of those that lack them.

    Runs whose files cannot be read again are reported and left out. Raises DataError with all
    their errors if no run is left.
    """
    from bsdsbench.comparison.lost_scores import with_errors
    from bsdsbench.errors import DataError
    from bsdsbench.results.given_runs import as_runs

    counted_runs = []
    failures = []
    for run in as_runs(args.runs, args.names, args.groups, args.group_by):
        try:
            with progress(f"errors of {run.name}") as report:
                counted_runs.append(with_errors(run, args.workers, report))
        except DataError as error:
            failures.append(error)
    if not counted_runs:
        raise DataError.collect(failures)
    for failure in failures:
        say(str(failure))
    return counted_runs


@command
@click.argument("runs", nargs=-1, type=click.Path(), metavar="[OUT [OUT]]")
@methods_option
@add_option("-n", "--number", "Number of images to list.", type=IntRange(1), default=10)
@add_option("--metric", "Metric to show; default: the first metric of the runs.")
@add_option(
    "--by",
    "Sort by this score, such as error.absent (error classes are counted if need be); or list the "
    "worst images of each group of this column.",
    metavar="SCORE|COLUMN",
)
@grouping_options
@flag("--overlays", "Draw the matched, false and missed pixels of these images to OUT/overlays.")
@path(
    "--figure",
    "Draw the images, their ground truth and the runs' maps side by side to this file, with ids "
    "and F: .pdf, .svg or .png.",
)
@add_option("--rows", "Number of images in the figure.", type=IntRange(1, 12), default=6)
@choice("--style", "look", "Width of the figure: a page or a column.", choices=("page", "column"))
@labels_option
@table_options
@with_arguments
def worst_command(args: Arguments) -> None:
    """List the worst images of a run, or where two runs differ most.

    Each row has the path of its overlay. Rows are sorted by --by, or else by the first of
    --columns. With --method, the scores of an image are means over the runs of the method.
    """
    from bsdsbench.comparison.method import Spread, folders_of, methods_of, runs_of, with_runs
    from bsdsbench.comparison.published import labelled_runs
    from bsdsbench.report.worst import worst_figure, worst_table
    from bsdsbench.results.given_runs import as_runs
    from bsdsbench.results.groups import group_columns

    require_runs_or_methods(args)
    paths = args.runs
    methods = methods_of(args.method)
    if methods:
        paths = tuple(folder for _, folders in folders_of(args.method) for folder in folders)
    loaded = as_runs(runs_of(methods) or paths, None, args.groups, args.group_by)
    loaded = labelled_runs(paths, loaded, args.labels)
    columns = args.columns
    group_by = None  # the column of groups, with its limits, if --by names one
    if args.by and args.by.partition("=")[0] in group_columns(loaded[0].records):
        group_by = args.by
    elif args.by is not None:
        columns = [args.by, *(columns or [])]
        loaded = _with_error_class(loaded, args.by)
    tabulate = partial(
        worst_table,
        with_runs(methods, loaded) or loaded,
        list(map(Path, paths)),
        metric=args.metric,
        columns=columns,
        spread=Spread(args.spread),
    )
    with progress("overlays") as report:
        table = tabulate(n=args.number, draw=args.overlays, progress=report, of_each=group_by)
    if args.figure:
        ids = [str(row[0]) for row in tabulate(n=args.rows).rows]
        worst_figure(loaded, ids, Path(args.figure), args.look)
        say(f"wrote {args.figure}", progress=True)
    show_tables([table], args.out, args.form)


def _with_error_class(runs: list[Evaluation], score: str) -> list[Evaluation]:
    """Return the runs, with error classes counted if `score` is an error class.

    Raises DataError for a `score` error.NAME that is no error class.
    """
    from bsdsbench.comparison.lost_scores import with_errors
    from bsdsbench.metrics.base import ERROR_COLUMNS
    from bsdsbench.results.score_names import unknown_score

    classes = [column.key for column in ERROR_COLUMNS]
    if score.startswith("error.") and score not in classes:
        raise unknown_score(score, classes)
    if not score.endswith(tuple(classes)):
        return runs
    with progress("errors") as report:
        return [with_errors(run, progress=report) for run in runs]


@command
@argument("run", metavar="[OUT|PRED_DIR]", required=False, type=click.Path())
@add_option(
    "--between",
    "Compare two signatures or run folders: the differences, and what they usually cost.",
    nargs=2,
    metavar="SIG SIG",
)
@path("--gt", "Ground-truth folder; default: that of OUT.")
@add_option(
    "--target",
    "A published value: ods=0.788, ois=0.808, ap=0.840; METRIC.SCORE=VALUE of another metric. May "
    "be repeated.",
    multiple=True,
    metavar="MEASURE=VALUE",
)
@protocol_options
@run_option("split_file")
@run_option("pred_kind")
@add_option("--seconds", "Approximate time limit.", type=FloatRange(1), default=60.0)
@run_option("workers")
@format_option("table", "json")
@with_arguments
def explain_command(args: Arguments) -> int:
    """Find which setting gives the published score.

    OUT is the folder of an earlier run, whose protocol and inputs are used. Otherwise give PRED_DIR
    and --gt. Scores by other AP and ODS rules, and of subsets of the images (known sets and split
    files), are computed from the counts. For another tolerance, NMS, thinning, matching, annotators
    or thresholds the images are counted again, a few images first. For another metric (--target
    depth.si_f1=0.42) its options and columns are tried. A target is reached if a score agrees with
    it to all digits of the target. The last line is a sentence to paste. The exit status is 0 if a
    setting of a known program reaches the target, else 1.

    With --between nothing is counted: the words of two signatures are compared.
    """
    from bsdsbench.comparison.published import published_with
    from bsdsbench.diagnosis.explain import explain, find_metric, load_run_with_files, parse_targets
    from bsdsbench.results.storage import is_run

    if args.between:
        return _print_differences(*map(_load_signature, args.between))
    if args.run is None:
        raise click.UsageError("give OUT or PRED_DIR, or --between SIG SIG")
    if is_run(Path(args.run)):
        refuse((*PROTOCOL, "split_file", "pred_kind"), "OUT, whose own protocol and files count")
    targets = parse_targets(args.target)
    metric, target_values = find_metric(targets)
    base = protocol_from(args, [metric])
    options = args.only("split_file", "pred_kind", "workers")
    with progress("explain: count") as report:
        evaluation, sources = load_run_with_files(
            args.run, args.gt, base, metric=metric, progress=report, **options
        )
    with progress("explain") as report:
        explanation = explain(
            evaluation,
            targets,
            sources=sources,
            published=published_with(metric, target_values),
            seconds=args.seconds,
            workers=args.workers,
            progress=report,
        )
    if args.form == "json":
        print_json(explanation_as_json(explanation, target_values, evaluation.read_as))
    else:
        print_explanation(explanation, metric, target_values, evaluation)
    return 0 if explanation.answer and explanation.answer.in_use else 1


def _print_differences(a: Signature, b: Signature) -> int:
    """Print the differences between two signatures that matter, and return the exit status.

    The status is 1 if there are such differences, else 0.
    """
    from bsdsbench.protocol.signature import Severity

    differences = a.differences(b)
    lines = [d.line() for d in differences if d.severity is not Severity.IGNORED]
    print("\n".join(lines) or "no known difference: the scores are comparable")
    return 1 if lines else 0


def _load_signature(text: str) -> Signature:
    """Return the signature of the run that `text` names, or else parse `text` as a signature.

    A text with "|" is a signature. A run is an existing path, a URL, or ref:NAME.
    """
    import bsdsbench as bb
    from bsdsbench.protocol.signature import Signature
    from bsdsbench.results.references import PREFIX
    from bsdsbench.results.sharing import ADDRESSES

    if "|" in text or not (Path(text).exists() or text.startswith((*ADDRESSES, PREFIX))):
        return Signature.parse(text)
    return bb.Evaluation.load(text).signature


@command
@runs_or_methods
@methods_option
@flag("--each-run", "Draw a thin curve for every run of a --method, in place of mean and band.")
@path("-o", "--out", "Output file: .pdf, .svg or .png.", required=True)
@names_option
@labels_option
@published_option
@flag(
    "--human/--no-human",
    "Mark human agreement on BSDS500; default: mark it if the runs are of its test images.",
    default=None,
)
@flag("--ap", "Show AP in the legend, and published AP if its rule is the same.")
@choice(
    "--kind",
    "Kind of plot: PR curves, F over the threshold, ODS over the tolerance, reliability diagram, "
    "box plot of the scores of single images, or ranks over bootstrap samples.",
    choices=("pr", "f", "tolerance", "reliability", "box", "ranks"),
)
@add_option(
    "--metric",
    "Metric to plot; default: the first metric of the run with a curve. For box and ranks, "
    "METRIC.SCORE.",
    metavar="M",
)
@choice(
    "--style",
    "look",
    "Size of the figure: for a screen, a column of a paper (3.3 in), its full width (6.9 in), or a "
    "slide.",
    choices=("screen", "column", "page", "slide"),
)
@flag("--force", "Draw even if the runs or the published results are not comparable.")
@grouping_options
@add_option(
    "--by",
    "Draw slices in place of curves: the scores of the groups of this column, with intervals, or "
    "their ranks.",
    metavar="COLUMN[=X,X]",
)
@bootstrap_options
@cluster_option
@with_arguments
def plot_command(args: Arguments) -> None:
    """Draw the curves of runs in one figure.

    The curves are PR curves with lines of equal F, or another --kind. With --method, the runs of a
    method, such as seeds, are drawn as a mean curve with a band. OUT is the folder of a run, or a
    folder with official files (eval_bdry_thr.txt or ID_ev1.txt) of any program. FILE is a run that
    `share` wrote, or its URL; ref:NAME is a reference run. --published alone draws published
    curves.
    """
    from bsdsbench.plotting import plot_slices
    from bsdsbench.results.given_runs import as_runs

    if args.kind != "pr":
        refuse(("published", "human", "ap"), f"--kind {args.kind}")
    if args.kind == "ranks":
        _plot_ranks(args)
    elif args.by:
        refuse(("n_boot", "seed", "cluster"), f"--kind {args.kind}, only with ranks")
        refuse(("published", "human", "ap", "kind", "force", "method"), "--by")
        loaded = as_runs(args.runs, args.names, args.groups, args.group_by)
        plot_slices(loaded, args.by, metric=args.metric, look=args.look, path=args.out)
    else:
        refuse(("n_boot", "seed", "cluster"), f"--kind {args.kind}, only with ranks")
        _plot_curves(args)
    print(args.out)


def _plot_ranks(args: Arguments) -> None:
    """Draw the ranks of runs or methods over bootstrap samples, in each slice of --by if given."""
    from bsdsbench.plotting import plot_ranks

    require_runs_or_methods(args)
    refuse(("labels", "spread", "each_run"), "--kind ranks")
    compared = _compare(args, args.only("n_boot", "seed", "cluster", "force"))
    comparisons = compared.slices or compared.on_all_images
    plot_ranks(comparisons, args.metric, look=args.look, path=args.out)


def _plot_curves(args: Arguments) -> None:
    """Draw the curves of runs, methods and published results, and describe published curves."""
    from bsdsbench.comparison.method import methods_of
    from bsdsbench.plotting import plot_runs
    from bsdsbench.plotting.figures import published_curves_of

    published = args.published or ()
    options = args.only("human", "kind", "metric", "ap", "force", "labels", "spread", "each_run")
    plot_runs(
        args.runs,
        args.names,
        methods=methods_of(args.method),
        published=published,
        look=args.look,
        path=args.out,
        **options,
    )
    for row in published_curves_of(published, args.labels):
        if row.curve:
            say(f"{row.label}: {row.curve.describe()}")
