"""The commands to understand scores: doctor, compare, errors, worst, explain, plot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click import FloatRange, IntRange, argument

from bsdsbench.cli.output import print_json, progress, say, show_tables
from bsdsbench.cli.shared import (
    PROTOCOL,
    Given,
    add_option,
    as_flag,
    bootstrap_options,
    by_option,
    choice,
    cluster_option,
    flag,
    format_option,
    ground_truth_option,
    grouping_options,
    labels_option,
    methods_option,
    names_option,
    one_of_runs_and_methods,
    path,
    protocol_from,
    protocol_options,
    published_option,
    refuse,
    resolve_run_options,
    run_option,
    runs_argument,
    runs_or_methods,
    table_options,
    verb,
    word_list,
)

if TYPE_CHECKING:
    from bsdsbench.comparison.comparison import Comparison
    from bsdsbench.comparison.methods import MethodComparison
    from bsdsbench.protocol.signature import Signature

_MAX_TRIALS = 9  # that explain prints, beside those that reach the target and the run as it is


@verb
@argument("pred_dir", type=click.Path())
@ground_truth_option
@run_option("task")
@run_option("split_file")
@run_option("pred_kind")
@word_list("--metrics", "", metavar="M,M")
@protocol_options
@format_option("text", "json")
def doctor_verb(given: Given) -> int:
    """Check names, sizes, value range, polarity and NMS of the inputs.

    Give --split-file, --pred-kind and the options of
    the protocol as for `evaluate`. Exit status 2 if there are errors, 0 if there are only warnings.
    """
    import bsdsbench as bb

    resolve_run_options(given)
    options = given.only("protocol", "metrics", "split_file", "pred_kind")
    with progress("doctor", "steps") as report:
        findings = bb.doctor(given.pred_dir, given.gt, progress=report, **options)
    write = partial(as_flag, verb="evaluate")  # fixes name options of `evaluate`
    if given.form == "json":
        print_json([asdict(finding) | {"fix": finding.fixes(write)} for finding in findings])
    else:
        lines = [finding.line(write=write) for finding in findings]
        paragraphs = findings.reading, *lines, findings.note, findings.summary()
        print(*filter(None, paragraphs), sep="\n")
        print(f"protocol {given.protocol.describe()}")
    return 2 if any(finding.level == "error" for finding in findings) else 0


@verb
@runs_or_methods
@methods_option
@names_option
@bootstrap_options
@add_option("--level", "Confidence level of the intervals.", type=float, default=0.95)
@choice(
    "--test",
    "Test for the p-values; intervals come from the bootstrap.",
    choices=("bootstrap", "permutation"),
)
@flag("--ranks", "Ranks too, with intervals over the samples, and P(A beats B).")
@flag("--common", "Compare on the images that all runs have.")
@flag("--force", "Compare even if protocols or ground truth differ.")
@grouping_options
@cluster_option
@by_option
@table_options
def compare_verb(given: Given) -> None:
    """Test whether the differences between runs are real.

    Runs are compared image by image (paired): differences, bootstrap intervals, p-values. OUT is
    the folder of a run, or a folder with official ID_ev1.txt files by any program; FILE is a run
    that `share` wrote, or its URL, https://...; ref:NAME is a reference run on BSDS500 test:
    ref:sauge-l, ref:cob, ref:hed, ref:se ...

    With --method each method is one or more runs, such as seeds: means with their spread, and
    intervals over images and runs.
    """
    from bsdsbench.comparison.comparison_tables import left_out_of
    from bsdsbench.comparison.methods import MethodComparison
    from bsdsbench.comparison.ranks import rank_tables
    from bsdsbench.comparison.slices import compared_table
    from bsdsbench.results.score_tables import with_left_out

    one_of_runs_and_methods(given)
    by, out, form = given.by, given.out, given.form
    options = given.only("n_boot", "seed", "level", "common", "force", "cluster")
    comparison, slices = _compare(given, options, test=given.test)
    if given.columns is not None:
        comparison = comparison.only(given.columns)
        slices = {name: in_slice.only(given.columns) for name, in_slice in slices.items()}
    if form == "json" and out is None:
        plain = comparison.to_mapping()
        if by:
            plain["by"] = by
            plain["slices"] = {name: in_slice.to_mapping() for name, in_slice in slices.items()}
        print_json(plain)
    else:
        if isinstance(comparison, MethodComparison):
            tables = comparison.tables(given.spread)
        else:
            tables = comparison.tables()
        if by:
            tables.append(replace(compared_table(slices, by), reading=comparison.reading))
        if given.ranks:
            tables += rank_tables({"": comparison})
        if given.ranks and by:
            tables += rank_tables(slices, by)
        if form == "csv":  # CSV has no notes: the images left out become a table
            tables = with_left_out(tables, comparison.left_out)
        show_tables(tables, out, form)
    if form != "table" or out:
        for note in left_out_of(comparison):
            say(note.text)
        for line in comparison.notes:
            say(line)


class _Compared(NamedTuple):
    """A comparison of runs or methods on all images, and one for each slice by its name."""

    on_all_images: Comparison | MethodComparison
    slices: Mapping[str, Comparison | MethodComparison]


def _compare(given: Given, options: dict[str, Any], **run_options: Any) -> _Compared:
    """Compare the runs or methods that are named on the command line, also in the slices of --by.

    `options` are keywords of `bb.compare` and `bb.compare_methods`, `run_options` of the first
    alone. Methods of one run each are compared as runs.
    """
    import bsdsbench as bb
    from bsdsbench.comparison.method import methods_of, runs_of, with_runs
    from bsdsbench.comparison.slices import compare_slices
    from bsdsbench.results.given_runs import as_runs

    runs, names, by, methods = given.runs, given.names, given.by, methods_of(given.method)
    if methods and all(entry.n_runs == 1 for entry in methods):
        runs = tuple(text.partition("=")[2] for text in given.method)
        names = [entry.name for entry in methods]
        methods = []
    loaded = as_runs(runs_of(methods) or runs, names, given.groups, given.group_by)
    on_all_images: Comparison | MethodComparison
    with progress("compare", "samples") as report:
        if methods:
            refuse(("names", "test"), "--method")
            methods = with_runs(methods, loaded)
            on_all_images = bb.compare_methods(methods, progress=report, **options)
        else:
            options = {**options, **run_options}
            on_all_images = bb.compare(loaded, progress=report, **options)
    return _Compared(on_all_images, compare_slices(loaded, by, methods, **options) if by else {})


@verb
@runs_argument
@names_option
@bootstrap_options
@run_option("workers")
@grouping_options
@by_option
@table_options
def errors_verb(given: Given) -> None:
    """Show where the score is lost: missed and false pixels by class.

    Missed pixels are suppressed (matched at the lowest threshold), near a false pixel, or absent.
    False pixels are duplicates beside an annotated pixel, near an annotated pixel, or background.
    Recall is also shown for pixels that one annotator alone, some, or all annotators drew. Each
    class has its share with an interval, and dODS, the rise of ODS if that class alone is repaired.

    A run made with `evaluate --errors` has the counts; the maps of other runs are matched again.
    """
    from bsdsbench.comparison.lost_scores import (
        error_slices_table,
        error_table,
        lost_scores,
        with_errors,
    )
    from bsdsbench.errors import DataError
    from bsdsbench.io import as_json, write_atomic
    from bsdsbench.results.given_runs import as_runs
    from bsdsbench.results.score_names import select

    runs_with_classes = []
    failures = []
    by, out, columns = given.by, given.out, given.columns
    for run in as_runs(given.runs, given.names, given.groups, given.group_by):
        try:
            with progress(f"errors of {run.name}") as report:
                runs_with_classes.append(with_errors(run, given.workers, report))
        except DataError as error:
            failures.append(error)
    if not runs_with_classes:
        raise DataError.collect(failures)
    for failure in failures:
        say(str(failure))
    losses = [lost_scores(run, given.n_boot, given.seed) for run in runs_with_classes]
    slice_table = error_slices_table(runs_with_classes, by) if by else None
    if given.form == "json":
        plain: Any = losses[0] if len(losses) == 1 else losses
        if slice_table:
            plain = {"runs": losses, "slices": slice_table.plain()}
        if out:
            write_atomic(Path(out), as_json(plain))
        else:
            print_json(plain)
        return
    tables = [error_table(runs_with_classes, losses)]
    if slice_table:
        tables.append(slice_table)
    show_tables(select(tables, columns) if columns else tables, out, given.form)


@verb
@click.argument("runs", nargs=-1, type=click.Path(), metavar="[OUT [OUT]]")
@methods_option
@add_option("-n", "--number", "Number of images to list.", type=IntRange(1), default=10)
@add_option("--metric", "Metric to show; default: the first that the runs have.")
@add_option(
    "--by",
    "The score that sorts, such as error.absent (classes of errors are counted if need be); or a "
    "column of groups, of each of which the images are listed.",
    metavar="SCORE|COLUMN",
)
@grouping_options
@flag("--overlays", "Draw matched, false and missed pixels of these images into OUT/overlays.")
@path("--figure", "A grid of image, ground truth and runs with ids and F: .pdf, .svg or .png.")
@add_option("--rows", "Images of the figure.", type=IntRange(1, 12), default=6)
@choice("--style", "look", "Width of the figure: a page or a column.", choices=("page", "column"))
@labels_option
@table_options
def worst_verb(given: Given) -> None:
    """List the worst images of a run, or where two differ most.

    Each row has the path of its overlay. Rows are sorted by --by, or else by the first of
    --columns. With --method an image has the mean over the method's runs.
    """
    from bsdsbench.comparison.lost_scores import with_errors
    from bsdsbench.comparison.method import Spread, folders_of, methods_of, runs_of, with_runs
    from bsdsbench.comparison.published import labelled_runs
    from bsdsbench.metrics.base import ERROR_COLUMNS
    from bsdsbench.report.worst import worst_figure, worst_table
    from bsdsbench.results.given_runs import as_runs
    from bsdsbench.results.groups import group_columns
    from bsdsbench.results.score_names import unknown_score

    one_of_runs_and_methods(given)
    runs, methods, by, columns = given.runs, methods_of(given.method), given.by, given.columns
    if methods:
        runs = tuple(folder for _, folders in folders_of(given.method) for folder in folders)
    loaded = as_runs(runs_of(methods) or runs, None, given.groups, given.group_by)
    loaded = labelled_runs(runs, loaded, given.labels)
    # --by names a column of groups, or else the score that sorts
    group_by_name = by if (by or "").partition("=")[0] in group_columns(loaded[0].records) else None
    if by is not None and group_by_name is None:
        columns = [by, *(columns or [])]
        classes = [column.key for column in ERROR_COLUMNS]
        if by.startswith("error.") and by not in classes:
            raise unknown_score(by, classes)
        if by.endswith(tuple(classes)):
            with progress("errors") as report:
                loaded = [with_errors(run, progress=report) for run in loaded]
    entries = with_runs(methods, loaded) or loaded
    options: Any = {"metric": given.metric, "columns": columns, "spread": Spread(given.spread)}
    tabulate = partial(worst_table, entries, list(map(Path, runs)), **options)
    with progress("overlays") as report:
        table = tabulate(
            n=given.number, draw=given.overlays, progress=report, of_each=group_by_name
        )
    if given.figure:
        worst = tabulate(n=given.rows)
        ids = [str(row[0]) for row in worst.rows]
        worst_figure(loaded, ids, Path(given.figure), given.look)
        say(f"wrote {given.figure}", progress=True)
    show_tables([table], given.out, given.form)


@verb
@argument("run", metavar="[OUT|PRED_DIR]", required=False, type=click.Path())
@add_option(
    "--between",
    "Compare two signatures or run folders: what differs and what it costs.",
    nargs=2,
    metavar="SIG SIG",
)
@path("--gt", "Ground-truth folder; default: the one of OUT.")
@add_option(
    "--target",
    "The published value: ods=0.788, ois=0.808, ap=0.840; METRIC.SCORE of another metric.",
    multiple=True,
    metavar="MEASURE=VALUE",
)
@protocol_options
@run_option("split_file")
@run_option("pred_kind")
@add_option("--seconds", "Approximate time limit.", type=FloatRange(1), default=60.0)
@run_option("workers")
@format_option("table", "json")
def explain_verb(given: Given) -> int:
    """Find which setting gives the published score.

    OUT is the folder of an earlier run, whose protocol and inputs are used. Otherwise give PRED_DIR
    and --gt. Other AP and ODS rules and images of a split are computed from the counts. For another
    tolerance, NMS, thinning, matching, annotators or thresholds the images are counted again, a few
    images first. For another metric (--target depth.si_f1=0.42) its options and columns are tried.
    A target is reached if a score agrees with it to the digits given. The last line is a sentence
    to paste. Exit status 0 if a setting reaches the target, else 1.

    With --between nothing is counted: the words of two signatures are compared.
    """
    from bsdsbench.comparison.published import published_with
    from bsdsbench.diagnosis.explain import (
        explain,
        in_capitals,
        metric_of,
        parse_targets,
        run_of,
    )
    from bsdsbench.metrics.registry import describe
    from bsdsbench.results.storage import is_run

    run = given.run
    if given.between:
        return _print_differences(*map(_load_signature, given.between))
    if run is None:
        raise click.UsageError("give OUT or PRED_DIR, or --between SIG SIG")
    if is_run(Path(run)):
        refuse((*PROTOCOL, "split_file", "pred_kind"), "OUT, whose own protocol and files count")
    targets = parse_targets(given.target)
    metric, target_values = metric_of(targets)
    base = protocol_from(given, [metric])
    options = given.only("split_file", "pred_kind", "workers")
    with progress("explain: count") as report:
        evaluation, sources = run_of(run, given.gt, base, metric=metric, progress=report, **options)
    with progress("explain") as report:
        explanation = explain(
            evaluation,
            targets,
            sources=sources,
            published=published_with(metric, target_values),
            seconds=given.seconds,
            workers=given.workers,
            progress=report,
        )
    exact_trials = [trial for trial in explanation.trials if trial.exact]
    trials = [
        trial
        for k, trial in enumerate(exact_trials)
        if k < _MAX_TRIALS or trial.reached or trial.label == "as it is"
    ]
    if given.form == "json":
        print_json(
            {
                "targets": {measure: float(text) for measure, text in target_values.items()},
                "trials": [asdict(trial) for trial in trials],
                "sentence": explanation.sentence(),
                "seconds": explanation.seconds,
                "complete": explanation.complete,
                "not_counted": explanation.not_counted,
                "pairs_not_counted": explanation.pairs_not_counted,
                "reading": evaluation.read_as,
            }
        )
    else:
        for row in explanation.published:
            print(f"published     {row}")
        wanted = "  ".join(f"{in_capitals(m)} {text}" for m, text in target_values.items())
        print(f"target        {wanted}")
        for trial in trials:
            scores = "  ".join(f"{in_capitals(m)} {trial.scores[m]:.4f}" for m in target_values)
            sign = " " if not trial.reached else "=" if trial.in_use else "~"
            print(f"{sign} off {trial.gap:.4f}  {scores}  {trial.label}")
        print(f"protocol {describe([metric], evaluation.protocol)}")
        lines = evaluation.read_as, explanation.partly_line, explanation.late_line
        print(*filter(None, [*lines, explanation.sentence()]), sep="\n")
    return 0 if explanation.answer and explanation.answer.in_use else 1


def _print_differences(a: Signature, b: Signature) -> int:
    """Print how two signatures differ, and return the exit status: 1 if they differ, else 0."""
    from bsdsbench.protocol.signature import Severity

    differences = a.differences(b)
    lines = [d.line() for d in differences if d.severity is not Severity.IGNORED]
    print("\n".join(lines) or "no known difference: the scores are comparable")
    return 1 if lines else 0


def _load_signature(text: str) -> Signature:
    """Return the signature of the run that `text` names, or else parse `text` as a signature."""
    import bsdsbench as bb
    from bsdsbench.protocol.signature import Signature
    from bsdsbench.results.references import PREFIX
    from bsdsbench.results.sharing import ADDRESSES

    if "|" in text or not (Path(text).exists() or text.startswith((*ADDRESSES, PREFIX))):
        return Signature.parse(text)
    return bb.Evaluation.load(text).signature


@verb
@runs_or_methods
@methods_option
@flag("--each-run", "Of a --method every run's own curve, thin, in place of the mean and its band.")
@path("-o", "--out", "Output file: .pdf, .svg or .png.", required=True)
@names_option
@labels_option
@published_option
@flag(
    "--human/--no-human",
    "Mark human agreement on BSDS500; default: if the runs are of its test images.",
    default=None,
)
@flag("--ap", "Show AP in the legend, published ones where the rule is the same.")
@choice(
    "--kind",
    "PR curves, F over threshold, ODS over the tolerance, bins of calibration, boxes of the "
    "images' own scores, or ranks over bootstrap samples.",
    choices=("pr", "f", "tolerance", "reliability", "box", "ranks"),
)
@add_option(
    "--metric",
    "Metric to plot; default: the first of the run with a curve; of box and ranks METRIC.SCORE.",
    metavar="M",
)
@choice(
    "--style",
    "look",
    "Size: for a screen, one column of a paper (3.3 in), its full width (6.9 in), or a slide.",
    choices=("screen", "column", "page", "slide"),
)
@flag("--force", "Draw even if the runs or the published results are not comparable.")
@grouping_options
@add_option(
    "--by",
    "Draw slices in place of curves: the groups of this column, with intervals; or their ranks.",
    metavar="COLUMN[=X,X]",
)
@bootstrap_options
@cluster_option
def plot_verb(given: Given) -> None:
    """Draw the curves of runs in one figure.

    The curves are PR curves with lines of equal F, or another --kind. With --method a method of
    several runs, such as seeds, is one mean curve with a band. OUT is the folder of a run, or a
    folder with official files (eval_bdry_thr.txt or ID_ev1.txt) by any program. FILE is a run that
    `share` wrote, or its URL; ref:NAME is a reference run. --published alone draws published
    curves.
    """
    from bsdsbench.comparison.method import methods_of
    from bsdsbench.plotting import plot_ranks, plot_runs, plot_slices
    from bsdsbench.plotting.figures import published_curves_of
    from bsdsbench.results.given_runs import as_runs

    kind, runs, names = given.kind, given.runs, given.names
    to_file = {"look": given.look, "path": given.out}
    if kind != "pr":
        refuse(("published", "human", "ap"), f"--kind {kind}")
    if kind == "ranks":
        one_of_runs_and_methods(given)
        refuse(("labels", "spread", "each_run"), "--kind ranks")
        compared = _compare(given, given.only("n_boot", "seed", "cluster", "force"))
        plot_ranks(compared.slices or compared.on_all_images, given.metric, **to_file)
        print(given.out)
        return
    refuse(("n_boot", "seed", "cluster"), f"--kind {kind}, only with ranks")
    if given.by:
        refuse(("published", "human", "ap", "kind", "force", "method"), "--by")
        loaded = as_runs(runs, names, given.groups, given.group_by)
        plot_slices(loaded, given.by, metric=given.metric, **to_file)
        print(given.out)
        return
    published = given.published or ()
    options = given.only("human", "kind", "metric", "ap", "force", "labels", "spread", "each_run")
    methods = methods_of(given.method)
    plot_runs(runs, names, methods=methods, published=published, **to_file, **options)
    for row in published_curves_of(published, given.labels):
        if row.curve:
            say(f"{row.label}: {row.curve.describe()}")
    print(given.out)
