"""Verbs to understand scores: doctor, compare, worst, explain, plot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click import FloatRange, IntRange, argument

from bsdsbench.cli.shared import (
    PROTOCOL,
    add_option,
    as_flag,
    bootstrap,
    by_column,
    choice,
    cluster_option,
    flag,
    grouping,
    labels_option,
    methods_option,
    names_option,
    one_of_runs_and_methods,
    path,
    print_json,
    printed,
    progress,
    protocol,
    protocol_from,
    published,
    refuse,
    run_option,
    runs,
    runs_or_methods,
    say,
    settle,
    show_tables,
    tables,
    truth,
    verb,
    words,
)

if TYPE_CHECKING:
    from bsdsbench.comparison.comparison import Comparison
    from bsdsbench.comparison.methods import MethodComparison
    from bsdsbench.protocol.signature import Signature

LINES = 9  # that explain prints, and the run as it is


@verb
@argument("pred_dir", type=click.Path())
@truth
@run_option("task")
@run_option("split_file")
@run_option("pred_kind")
@words("--metrics", "", metavar="M,M")
@protocol
@printed("text", "json")
def doctor_verb(pred_dir: str, form: str, **options: Any) -> int:
    """Check names, sizes, value range, polarity and NMS of the inputs.

    Give --split-file, --pred-kind and the options of
    the protocol as for `evaluate`. Exit status 2 if there are errors, 0 if there are only warnings.
    """
    import bsdsbench as bb

    settle(options)
    del options["task"]
    with progress("doctor", "steps") as report:
        findings = bb.doctor(pred_dir, options.pop("gt"), progress=report, **options)
    write = partial(as_flag, verb="evaluate")  # options that a run is to have
    if form == "json":
        print_json([asdict(finding) | {"fix": finding.fixes(write)} for finding in findings])
    else:
        lines = [finding.line(write=write) for finding in findings]
        shown = findings.reading, *lines, findings.note, findings.summary()
        print(*filter(None, shown), sep="\n")
        print(f"protocol {options['protocol'].describe()}")
    return 2 if any(finding.level == "error" for finding in findings) else 0


@verb
@runs_or_methods
@methods_option
@names_option
@bootstrap
@add_option("--level", "Confidence level of the intervals.", type=float, default=0.95)
@choice(
    "--test",
    "Test for the p-values; intervals come from the bootstrap.",
    words=("bootstrap", "permutation"),
)
@flag("--ranks", "Ranks too, with intervals over the samples, and P(A beats B).")
@flag("--common", "Compare on the images that all runs have.")
@flag("--force", "Compare even if protocols or ground truth differ.")
@grouping
@cluster_option
@by_column
@tables
def compare_verb(
    runs: tuple[str, ...],
    method: tuple[str, ...],
    spread: str,
    ranks: bool,
    names: list[str] | None,
    out: str | None,
    form: str,
    columns: list[str] | None,
    groups: str | None,
    group_by: str | None,
    by: str | None,
    **options: object,
) -> None:
    """Test whether the differences between runs are real.

    Runs are compared image by image (paired): differences, bootstrap intervals, p-values. OUT is
    the folder of a run, or a folder with official ID_ev1.txt files by any program; FILE is a run
    that `share` wrote, or its address, https://...; ref:NAME is a reference run on BSDS500 test:
    ref:sauge-l, ref:cob, ref:hed, ref:se ...

    With --method each method is one or more runs, such as seeds: means with their spread, and
    intervals over images and runs.
    """
    from bsdsbench.comparison.comparison_tables import left_out_of
    from bsdsbench.comparison.methods import MethodComparison
    from bsdsbench.comparison.ranks import rank_tables
    from bsdsbench.comparison.slices import compared_table
    from bsdsbench.results.score_tables import with_left_out

    one_of_runs_and_methods(runs, method)
    compared, slices = _compared(runs, method, names, groups, group_by, by, options)
    if columns is not None:
        compared = compared.only(columns)
        slices = {name: one.only(columns) for name, one in slices.items()}
    if form == "json" and out is None:
        plain = {name: one.to_mapping() for name, one in slices.items()}
        print_json(compared.to_mapping() | ({"by": by, "slices": plain} if by else {}))
    else:
        shown = compared.tables(spread) if isinstance(compared, MethodComparison) else None
        by_slice = [replace(compared_table(slices, by), reading=compared.reading)] if by else []
        ranked = rank_tables({"": compared}) if ranks else []
        ranked += rank_tables(slices, by) if ranks and by else []
        shown = [*(shown or compared.tables()), *by_slice, *ranked]
        if form == "csv":  # which has no notes
            shown = with_left_out(shown, compared.left_out)
        show_tables(shown, out, form)
    if form != "table" or out:
        for note in (*(note.text for note in left_out_of(compared)), *compared.notes):
            say(note)


class _Compared(NamedTuple):
    """Runs or methods compared: on all images, and on each group of them by its name."""

    whole: Comparison | MethodComparison
    slices: Mapping[str, Comparison | MethodComparison]


def _compared(
    runs: tuple[str, ...],
    method: tuple[str, ...],
    names: list[str] | None,
    groups: str | None,
    group_by: str | None,
    by: str | None,
    options: dict[str, Any],
) -> _Compared:
    """Return the comparison of the runs or methods named on the command line, made by `compare`."""
    import bsdsbench as bb
    from bsdsbench.comparison.method import methods_of, runs_of, with_runs
    from bsdsbench.comparison.slices import compare_slices
    from bsdsbench.results.given_runs import as_runs

    methods = methods_of(method)
    if methods and all(one.n_runs == 1 for one in methods):  # as runs of these names
        runs, names = tuple(spec.partition("=")[2] for spec in method), [m.name for m in methods]
        methods = []
    loaded = as_runs(runs_of(methods) or runs, names, groups, group_by)
    whole: Comparison | MethodComparison
    with progress("compare", "samples") as report:
        if methods:
            refuse(("names", "test"), "--method")
            options.pop("test", None)
            methods = with_runs(methods, loaded)
            whole = bb.compare_methods(methods, progress=report, **options)
        else:
            whole = bb.compare(loaded, progress=report, **options)
    return _Compared(whole, compare_slices(loaded, by, methods, **options) if by else {})


@verb
@runs
@names_option
@bootstrap
@run_option("workers")
@grouping
@by_column
@tables
def errors_verb(
    runs: tuple[str, ...],
    names: list[str] | None,
    out: str | None,
    form: str,
    columns: list[str] | None,
    workers: int | None,
    groups: str | None,
    group_by: str | None,
    by: str | None,
    **options: Any,
) -> None:
    """Show where the score is lost: missed and false pixels by class.

    Missed pixels are suppressed (matched at the lowest threshold), near a false pixel, or absent;
    false ones are duplicates beside an annotated pixel, near one, or background; and how much is
    found of what one annotator alone, some, or all drew. Each class has its share with an interval,
    and dODS, by how much ODS rises where that class alone is repaired.

    A run made with `evaluate --errors` has the counts; of others the maps are matched again.
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

    counted, faults = [], []
    for run in as_runs(runs, names, groups, group_by):
        try:
            with progress(f"errors of {run.name}") as report:
                counted.append(with_errors(run, workers, report))
        except DataError as error:
            faults.append(error)
    if not counted:
        raise DataError.collect(faults)
    for fault in faults:
        say(str(fault))
    losses = [lost_scores(run, **options) for run in counted]
    slices = [error_slices_table(counted, by)] if by else []
    if form == "json":
        plain: Any = losses[0] if len(losses) == 1 else losses
        plain = {"runs": losses, "slices": slices[0].plain()} if by else plain
        text = as_json(plain)
        write_atomic(Path(out), text) if out else print(text, end="")
        return
    shown = [error_table(counted, losses), *slices]
    show_tables(select(shown, columns) if columns else shown, out, form)


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
@grouping
@flag("--overlays", "Draw matched, false and missed pixels of these images into OUT/overlays.")
@path("--figure", "A grid of picture, ground truth and runs with ids and F: .pdf, .svg or .png.")
@add_option("--rows", "Images of the figure.", type=IntRange(1, 12), default=6)
@choice("--style", "look", "Width of the figure: a page or a column.", words=("page", "column"))
@labels_option
@tables
def worst_verb(
    runs: tuple[str, ...],
    method: tuple[str, ...],
    spread: str,
    number: int,
    metric: str | None,
    by: str | None,
    overlays: bool,
    figure: str | None,
    rows: int,
    look: str,
    labels: dict[str, str],
    columns: list[str] | None,
    groups: str | None,
    group_by: str | None,
    **shown: Any,
) -> None:
    """List the worst images of a run, or where two differ most.

    Each row has the path of its overlay. Rows are sorted by --by, or else by the first of
    --columns. With --method an image has the mean over the method's runs.
    """
    from bsdsbench.comparison.lost_scores import with_errors
    from bsdsbench.comparison.method import folders_of, methods_of, runs_of, with_runs
    from bsdsbench.comparison.method_tables import Spread
    from bsdsbench.comparison.published import labelled_runs
    from bsdsbench.metrics.base import ERROR_COLUMNS
    from bsdsbench.report.worst import worst_figure, worst_table
    from bsdsbench.results.given_runs import as_runs
    from bsdsbench.results.groups import group_columns

    one_of_runs_and_methods(runs, method)
    given = folders_of(method) or [("", [run]) for run in runs]
    methods = methods_of(method)
    runs = tuple(folder for _, folders in given for folder in folders)
    loaded = as_runs(runs_of(methods) or runs, None, groups, group_by)
    loaded, folders = labelled_runs(runs, loaded, labels), list(map(Path, runs))
    known, group_of = group_columns(loaded[0].records), None
    if by in known or (by or "").partition("=")[0] in known:
        by, group_of = None, by
    if by is not None:
        columns = [by, *(columns or [])]
        if by.endswith(tuple(column.key for column in ERROR_COLUMNS)):
            with progress("errors") as report:
                loaded = [with_errors(run, progress=report) for run in loaded]
    listed = with_runs(methods, loaded) or loaded
    of_runs: Any = {"columns": columns, "spread": Spread(spread)}
    with progress("overlays") as report:
        table = worst_table(
            listed, folders, number, metric, overlays, report, of_each=group_of, **of_runs
        )
    if figure:
        first = worst_table(listed, folders, rows, metric, **of_runs)
        worst_figure(loaded, [str(row[0]) for row in first.rows], Path(figure), look)
        say(f"wrote {figure}", progress=True)
    show_tables([table], **shown)


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
@protocol
@run_option("split_file")
@run_option("pred_kind")
@add_option("--seconds", "Approximate time limit.", type=FloatRange(1), default=60.0)
@run_option("workers")
@printed("table", "json")
def explain_verb(
    run: str | None,
    between: tuple[str, str] | None,
    gt: str | None,
    target: tuple[str, ...],
    seconds: float,
    workers: int | None,
    form: str,
    **options: Any,
) -> int:
    """Find which setting gives the published score.

    OUT is the folder of an earlier run, whose protocol and inputs are used. Otherwise give PRED_DIR
    and --gt. Other AP and ODS rules and images of a split are computed from the counts; tolerance,
    NMS, thinning, matching, annotators and thresholds are counted again, on a few images first. For
    another metric (--target depth.si_f1=0.42) its options and columns are tried. A target is
    reached if a score agrees with it to the digits given. The last line is a sentence to paste.
    Exit status 0 if a setting reaches the target, else 1.

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

    if between:
        return _explain_between(*map(_signature, between))
    if run is None:
        raise click.UsageError("give OUT or PRED_DIR, or --between SIG SIG")
    if is_run(Path(run)):
        refuse((*PROTOCOL, "split_file", "pred_kind"), "OUT, whose own protocol and files count")
    wanted = parse_targets(target)
    metric, plain = metric_of(wanted)
    used = protocol_from(options, [metric])
    with progress("explain: count") as report:
        options |= {"metric": metric, "workers": workers, "progress": report}
        loaded, sources = run_of(run, gt, used, **options)
    with progress("explain") as report:
        more: Any = {"seconds": seconds, "workers": workers, "progress": report}
        rows = published_with(metric, plain)
        explanation = explain(loaded, wanted, sources=sources, published=rows, **more)
    counted = [t for t in explanation.trials if t.exact]  # estimates are named nowhere
    shown = [t for k, t in enumerate(counted) if k < LINES or t.reached or t.label == "as it is"]
    if form == "json":
        trials = [asdict(trial) for trial in shown]
        numbers = {measure: float(v) for measure, v in plain.items()}
        answer = {"trials": trials, "sentence": explanation.sentence()}
        search: dict[str, Any] = {"seconds": explanation.seconds, "complete": explanation.complete}
        search["not_counted"] = explanation.not_counted
        search["pairs_not_counted"] = explanation.pairs_not_counted
        search |= {"reading": loaded.read_as}
        print_json({"targets": numbers, **answer, **search})
    else:
        for row in explanation.published:
            print(f"published     {row}")
        print("target        " + "  ".join(f"{in_capitals(m)} {v}" for m, v in plain.items()))
        for trial in shown:
            scores = "  ".join(f"{in_capitals(m)} {trial.scores[m]:.4f}" for m in plain)
            sign = " " if not trial.reached else "=" if trial.in_use else "~"
            print(f"{sign} off {trial.gap:.4f}  {scores}  {trial.label}")
        print(f"protocol {describe([metric], loaded.protocol)}")
        lines = loaded.read_as, explanation.partly_line, explanation.late_line
        print(*filter(None, [*lines, explanation.sentence()]), sep="\n")
    return 0 if explanation.answer and explanation.answer.in_use else 1


def _explain_between(first: Signature, second: Signature) -> int:
    """Print how two signatures differ, and return the exit status: 1 if they do."""
    from bsdsbench.protocol.signature import Severity

    differences = first.differences(second)
    lines = [d.line() for d in differences if d.severity is not Severity.IGNORED]
    print("\n".join(lines) or "no known difference: the scores are comparable")
    return 1 if lines else 0


def _signature(text: str) -> Signature:
    """Return the signature that a text holds, or that of the run in a folder."""
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
@published
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
    words=("pr", "f", "tolerance", "reliability", "box", "ranks"),
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
    words=("screen", "column", "page", "slide"),
)
@flag("--force", "Draw even if the runs or the published results are not comparable.")
@grouping
@add_option(
    "--by",
    "Draw slices in place of curves: the groups of this column, with intervals; or their ranks.",
    metavar="COLUMN[=X,X]",
)
@bootstrap
@cluster_option
def plot_verb(
    runs: tuple[str, ...],
    method: tuple[str, ...],
    out: str,
    names: list[str] | None,
    groups: str | None,
    group_by: str | None,
    by: str | None,
    n_boot: int,
    seed: int,
    cluster: str | None,
    **options: Any,
) -> None:
    """Draw the curves of runs in one picture.

    They are PR curves with lines of equal F, or another --kind. With --method a method of several
    runs, such as seeds, is one mean curve with a band. OUT is the folder of a run, or a
    folder with official files (eval_bdry_thr.txt or ID_ev1.txt) by any program. FILE is a run that
    `share` wrote, or its address; ref:NAME is a reference run. --published alone draws published
    curves.
    """
    from bsdsbench.comparison.method import methods_of
    from bsdsbench.plotting import plot_ranks, plot_runs, plot_slices
    from bsdsbench.plotting.figures import published_curves_of
    from bsdsbench.results.given_runs import as_runs

    kind = options["kind"]
    if kind != "pr":
        refuse(("published", "human", "ap"), f"--kind {kind}")
    if kind == "ranks":
        one_of_runs_and_methods(runs, method)
        refuse(("labels", "spread", "each_run"), "--kind ranks")
        sampling = {"n_boot": n_boot, "seed": seed, "cluster": cluster, "force": options["force"]}
        compared = _compared(runs, method, names, groups, group_by, by, sampling)
        shown = compared.slices or compared.whole
        plot_ranks(shown, options["metric"], look=options["look"], path=out)
        print(out)
        return
    refuse(("n_boot", "seed", "cluster"), f"--kind {kind}, only with ranks")
    if by:
        refuse(("published", "human", "ap", "kind", "force", "method"), "--by")
        loaded = as_runs(runs, names, groups, group_by)
        plot_slices(loaded, by, metric=options["metric"], look=options["look"], path=out)
        print(out)
        return
    published = options.pop("published") or ()
    plot_runs(runs, names, methods=methods_of(method), published=published, path=out, **options)
    for row in published_curves_of(published, options["labels"]):
        if row.curve:
            say(f"{row.label}: {row.curve.describe()}")
    print(out)
