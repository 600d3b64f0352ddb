"""The commands for understanding scores: doctor, compare, errors, worst, explain, plot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click import FloatRange, IntRange

from bsdsbench.cli import options as opt
from bsdsbench.cli.flags import as_flag
from bsdsbench.cli.shared import (
    PROTOCOL_OPTIONS,
    command,
    log,
    option_values,
    print_json,
    progress,
    protocol_from,
    refuse_given,
    require_runs_or_methods,
    resolve_inputs,
    show_tables,
)
from bsdsbench.errors import DataError
from bsdsbench.io import as_json, write_atomic

if TYPE_CHECKING:
    from bsdsbench.comparison.comparison import Comparison
    from bsdsbench.diagnosis.explanation import Explanation
    from bsdsbench.results.evaluation import Evaluation

_MAX_TRIALS = 9  # trials printed by `explain`, in addition to those that reach the target


class _DoctorArguments(opt.Options):
    pred_dir: str = opt.add_argument(type=click.Path())
    gt: str | None = opt.ground_truth_option
    task: str | None = opt.run_option("task")
    split_file: str | None = opt.run_option("split_file")
    pred_kind: str | None = opt.run_option("pred_kind")
    metrics: list[str] | None = opt.metrics_option
    protocol: opt.ProtocolOptions = opt.add_options(opt.ProtocolOptions)
    output_format: str = opt.format_option("text", "json")


@command  # its arguments and options are those that _DoctorArguments declares
def doctor_command(args: _DoctorArguments) -> int:
    """Check names, sizes, value range, polarity and NMS of the inputs.

    Give --split-file, --pred-kind and the options of the protocol as for `evaluate`. The exit
    status is 2 if there are errors, and 0 if there are only warnings.
    """
    import bsdsbench as bb

    if args.pred_dir.lower().endswith(".json"):
        raise click.UsageError(
            f"{args.pred_dir}: expected a folder (`evaluate` checks COCO's JSON)"
        )
    # A task gives its metric, protocol and ground-truth folder, in place of what is not given
    inputs = resolve_inputs(opt.EvaluationOptions(**vars(args)))  # those shared with `evaluate`
    options = option_values(args, ("split_file", "pred_kind"))
    options |= {"protocol": inputs.protocol, "metrics": inputs.metrics}
    with progress("doctor", "steps") as report:
        findings = bb.doctor(args.pred_dir, str(inputs.gt), progress=report, **options)
    # Settings that a finding suggests are written as options of `evaluate`, such as "--nms"
    write_setting = partial(as_flag, command_name="evaluate")
    if args.output_format == "json":
        print_json([asdict(f) | {"fix": f.fixes(write_setting)} for f in findings])
    else:
        # The list has attributes, "" if there is nothing to say: `reading`, how values in the files
        # were interpreted, and `note`, a remark on the scores. The summary counts the errors
        lines = [finding.line(write=write_setting) for finding in findings]
        lines = [findings.reading, *lines, findings.note, findings.summary()]
        print("\n".join(filter(None, lines)))
        print(f"protocol {inputs.protocol.describe()}")
    return 2 if any(finding.level == "error" for finding in findings) else 0


class _CompareArguments(opt.Options):
    runs: tuple[str, ...] = opt.runs_argument()
    methods: opt.MethodOptions = opt.add_options(opt.MethodOptions)
    names: list[str] | None = opt.names_option
    bootstrap: opt.BootstrapOptions = opt.add_options(opt.BootstrapOptions)
    level: float = opt.add_option("Confidence level of the intervals.", type=float, default=0.95)
    test: str = opt.choice(
        "Test for the p-values. Intervals always come from the bootstrap.",
        choices=("bootstrap", "permutation"),
    )
    ranks: bool = opt.flag(
        "Also show ranks, with intervals over the bootstrap samples, and P(A beats B)."
    )
    common: bool = opt.flag("Compare only the images that all runs share.")
    force: bool = opt.flag("Compare even if protocols or ground truth differ.")
    grouping: opt.GroupingOptions = opt.add_options(opt.GroupingOptions)
    cluster: str | None = opt.cluster_option
    by: str | None = opt.by_option
    tables: opt.TableOptions = opt.add_options(opt.TableOptions)


@command  # its arguments and options are those that _CompareArguments declares
def compare_command(args: _CompareArguments) -> None:
    """Test whether the differences between runs are real.

    Runs are compared image by image (paired). The tables show differences, bootstrap intervals and
    p-values. OUT is the folder of a run, or a folder with official ID_ev1.txt files of any program.
    FILE is a run that `share` wrote, or its URL, https://... ref:NAME is a reference run on BSDS500
    test: ref:sauge-l, ref:cob, ref:hed, ref:se ...

    With --method each method is one or more runs, such as seeds. The tables show means with their
    spread, and intervals over images and runs.
    """
    from bsdsbench.comparison.comparison_tables import left_out_notes_of
    from bsdsbench.comparison.ranks import rank_tables
    from bsdsbench.comparison.slices import compared_table

    options = option_values(args, ("n_boot", "seed", "level", "common", "force", "cluster"))
    slices = _compare(args, options, args.test)
    out, output_format, columns = args.tables.out, args.tables.output_format, args.tables.columns
    if columns is not None:
        slices = {name: in_slice.only(columns) for name, in_slice in slices.items()}
    comparison = slices.pop("")  # on all images
    slice_column = (args.by or "").partition("=")[0]  # without the limits of ranges
    if output_format == "json" and out is None:
        plain = dict(comparison.to_mapping())
        if args.by:
            plain["by"] = args.by
            plain["slices"] = {name: in_slice.to_mapping() for name, in_slice in slices.items()}
        print_json(plain)
    else:
        tables = comparison.tables(args.methods.spread)
        if args.by:
            table_of_slices = compared_table(slices, slice_column)
            # `reading` is a line under the table: how values in the files were interpreted
            tables.append(replace(table_of_slices, reading=comparison.reading))
        if args.ranks:
            tables += rank_tables({"": comparison})  # of one nameless slice, all images
            if args.by:
                tables += rank_tables(slices, slice_column)
        show_tables(tables, out, output_format, comparison.left_out)
    # A table on the terminal ends with the notes. Otherwise, they go to standard error
    if output_format != "table" or out:
        for note in left_out_notes_of(comparison):
            log(note.text)
        for line in comparison.notes:
            log(line)


def _compare(
    args: _CompareArguments | _PlotArguments, options: dict[str, Any], test: str = "bootstrap"
) -> dict[str, Comparison]:
    """Compare the runs, or the methods of --method, on all images and in each slice of --by.

    A method has one or more runs, such as seeds, which --method NAME=FOLDERS names. A slice is a
    group of images, such as a scene. Returns {name of the slice: comparison}, where "" stands for
    all images.

    options: keywords of `bb.compare`, such as "seed".
    test: the test for p-values, "bootstrap" or "permutation".
    """
    import bsdsbench as bb
    from bsdsbench.comparison.method import as_methods, load_methods
    from bsdsbench.comparison.slices import compare_slices

    require_runs_or_methods(args.runs, args.methods.method)
    if args.methods.method:
        refuse_given(("names",), "--method")  # NAME=FOLDERS has the name
    given = load_methods(args.methods.method) or args.runs
    methods = as_methods(given, args.names, **option_values(args.grouping))
    if args.by and len(methods) == 1:
        name, one = methods[0].name, "run" if methods[0].n_runs == 1 else "method"
        fix = f"`bsdsbench report OUT --by {args.by}` shows the scores of one run by slice"
        raise DataError(f"{name}: one {one}, expected two to compare by slice", fix=fix)
    options = {**options, "test": test}
    with progress("compare", "samples") as report:
        compared = {"": bb.compare(methods, progress=report, **options)}
    return compared | (compare_slices(methods, args.by, **options) if args.by else {})


class _ErrorsArguments(opt.Options):
    runs: tuple[str, ...] = opt.runs_argument(required=True)
    names: list[str] | None = opt.names_option
    bootstrap: opt.BootstrapOptions = opt.add_options(opt.BootstrapOptions)
    workers: int | None = opt.run_option("workers")
    tables: opt.TableOptions = opt.add_options(opt.TableOptions)


@command  # its arguments and options are those that _ErrorsArguments declares
def errors_command(args: _ErrorsArguments) -> None:
    """Show where the score is lost: missed and false pixels by class.

    Missed pixels are suppressed (matched at the lowest threshold), near a false pixel, or absent.
    False pixels are duplicates beside an annotated pixel, near an annotated pixel, or background.
    Recall is also shown for pixels that one annotator alone, some, or all annotators drew. Each
    class has its share with an interval, and dODS, the rise of ODS if that class alone is repaired.

    A run made with `evaluate --errors` has the counts. The maps of other runs are matched again.
    """
    from bsdsbench.comparison.lost_scores import error_table, lost_scores, with_errors
    from bsdsbench.results.given_runs import as_runs
    from bsdsbench.results.score_names import select

    counted_runs = []  # with the number of pixels of each class
    failures = []  # errors of runs whose files cannot be read again
    for run in as_runs(args.runs, args.names):
        try:
            with progress(f"errors of {run.name}") as report:
                counted_runs.append(with_errors(run, args.workers, report))
        except DataError as error:
            failures.append(error)
    if not counted_runs:
        raise DataError.collect(failures)  # one error that lists all; the exit status is 2
    for failure in failures:  # of some runs; the others are shown, and the exit status is 0
        log(str(failure))
    # A dict for each run: the share of each class, with its interval and dODS ("delta_ods")
    losses = [lost_scores(run, **option_values(args.bootstrap)) for run in counted_runs]
    out, output_format, columns = args.tables.out, args.tables.output_format, args.tables.columns
    if output_format != "json":
        tables = [error_table(counted_runs, losses)]
        show_tables(select(tables, columns) if columns else tables, out, output_format)
        return
    plain: Any = losses[0] if len(losses) == 1 else losses  # one dict per run
    if out:
        write_atomic(Path(out), as_json(plain))
    else:
        print_json(plain)


class _WorstArguments(opt.Options):
    runs: tuple[str, ...] = opt.add_argument("[OUT [OUT]]", nargs=-1, type=click.Path())
    methods: opt.MethodOptions = opt.add_options(opt.MethodOptions)
    number: int = opt.add_option(
        "Number of images to list.", "-n", "--number", type=IntRange(1), default=10
    )
    metric: str | None = opt.add_option("Metric to show; default: the first metric of the runs.")
    by: str | None = opt.add_option(
        "Sort by this score, such as error.absent (error classes are counted if need be); or list "
        "the worst images of each group of this column.",
        metavar="SCORE|COLUMN",
    )
    grouping: opt.GroupingOptions = opt.add_options(opt.GroupingOptions)
    overlays: bool = opt.flag(
        "Draw the matched, false and missed pixels of these images to OUT/overlays."
    )
    figure: str | None = opt.path(
        "Draw the images, their ground truth and the runs' maps side by side to this file, with "
        "ids and F: .pdf, .svg or .png."
    )
    rows: int = opt.add_option("Number of images in the figure.", type=IntRange(1, 12), default=6)
    look: str = opt.choice(
        "Width of the figure: a page or a column.", "--style", choices=("page", "column")
    )
    labels: dict[str, str] = opt.labels_option
    tables: opt.TableOptions = opt.add_options(opt.TableOptions)


@command  # its arguments and options are those that _WorstArguments declares
def worst_command(args: _WorstArguments) -> None:
    """List the worst images of a run, or where two runs differ most.

    Each row has the path of its overlay. Rows are sorted by --by, or else by the first of
    --columns. With --method, the scores of an image are means over the runs of the method.
    """
    from bsdsbench.comparison.lost_scores import with_errors
    from bsdsbench.comparison.method import Method, Spread, all_runs, parse_methods, replace_runs
    from bsdsbench.comparison.published import labelled_runs
    from bsdsbench.metrics.base import ERROR_COLUMNS
    from bsdsbench.report.worst import worst_figure, worst_table
    from bsdsbench.results.given_runs import as_runs
    from bsdsbench.results.groups import group_columns

    require_runs_or_methods(args.runs, args.methods.method)
    # Name of a method -> the folders of its runs; {} if the runs are not given by --method
    folders_of_methods = parse_methods(args.methods.method)
    methods = [Method(name, of_method) for name, of_method in folders_of_methods.items()]
    folders = [*args.runs, *chain(*folders_of_methods.values())]  # of all runs; one part is empty
    given_runs = all_runs(methods) if methods else args.runs  # in the order of `folders`
    runs = as_runs(given_runs, None, **option_values(args.grouping))  # and groups their images
    runs = labelled_runs(folders, runs, args.labels)  # renames them by --label
    columns, records = args.tables.columns, runs[0].records
    # --by is a column of groups, such as "scene" or (with limits of bins) "size=0,1024", or a score
    is_by_group = (args.by or "").partition("=")[0] in group_columns(records)
    if args.by and not is_by_group:
        columns = [args.by, *(columns or [])]  # the first score is the one that sorts the images
        keys = tuple(column.key for column in ERROR_COLUMNS)
        if args.by.startswith("error.") or args.by.endswith(keys):  # of a class of errors
            with progress("errors") as report:
                runs = [with_errors(run, progress=report) for run in runs]
    methods = replace_runs(methods, runs)  # put the changed runs into them; [] if there are none
    keywords: Any = {"metric": args.metric, "columns": columns}
    keywords["spread"] = Spread(args.methods.spread)  # of the scores of a method's runs
    tabulate = partial(worst_table, methods or runs, list(map(Path, folders)), **keywords)
    group_column = args.by if is_by_group else None  # lists the worst images of each of its groups
    with progress("overlays") as report:
        table = tabulate(n=args.number, draw=args.overlays, progress=report, of_each=group_column)
    if args.figure:  # whose images are the first ones of a table with --rows rows
        ids = [str(row[0]) for row in tabulate(n=args.rows).rows]  # the first cell is the id
        worst_figure(runs, ids, Path(args.figure), args.look)
        log(f"wrote {args.figure}", progress=True)
    show_tables([table], args.tables.out, args.tables.output_format)


class _ExplainArguments(opt.Options):
    run: str | None = opt.add_argument("[OUT|PRED_DIR]", required=False, type=click.Path())
    between: tuple[str, str] | None = opt.add_option(
        "Compare two signatures or run folders: the differences, and what they usually cost.",
        nargs=2,
        metavar="SIG SIG",
    )
    gt: str | None = opt.path("Ground-truth folder; default: that of OUT.")
    target: tuple[str, ...] = opt.repeatable(
        "A published value: ods=0.788, ois=0.808, ap=0.840; METRIC.SCORE=VALUE of another metric. "
        "May be repeated.",
        metavar="MEASURE=VALUE",
    )
    protocol: opt.ProtocolOptions = opt.add_options(opt.ProtocolOptions)
    split_file: str | None = opt.run_option("split_file")
    pred_kind: str | None = opt.run_option("pred_kind")
    seconds: float = opt.add_option("Approximate time limit.", type=FloatRange(1), default=60.0)
    workers: int | None = opt.run_option("workers")
    output_format: str = opt.format_option("table", "json")


@command  # its arguments and options are those that _ExplainArguments declares
def explain_command(args: _ExplainArguments) -> int:
    """Find which setting gives the published score.

    OUT is the folder of an earlier run, whose protocol and inputs are used. Otherwise give PRED_DIR
    and --gt. Settings that need no new counts are tried first: other rules for AP and ODS, and
    subsets of the images (known sets and split files). For another tolerance, NMS, thinning,
    matching, annotators or thresholds the images are counted again, a few images first. For the
    scores of another metric (--target depth.si_f1=0.42), its options and columns are tried.

    A target is reached if a score agrees with it to all digits of the target. The last line is a
    sentence to paste into a paper or an issue. The exit status is 0 if a setting that a known
    program uses reaches the target, else 1.

    With --between nothing is counted: the settings in two signatures are compared.
    """
    from bsdsbench.comparison.published import published_with
    from bsdsbench.diagnosis.explain import explain, find_metric, load_run_with_files, parse_targets
    from bsdsbench.results.storage import is_run

    if args.between:
        return _print_differences(args.between)
    if args.run is None:
        raise click.UsageError("give OUT or PRED_DIR, or --between SIG SIG")
    if is_run(Path(args.run)):
        conflict = "OUT, whose own protocol and files count"
        refuse_given((*PROTOCOL_OPTIONS, "split_file", "pred_kind"), conflict)
    targets = parse_targets(args.target)  # such as {"depth.si_f1": "0.42"}
    metric, target_values = find_metric(targets)  # then "depth", {"si_f1": "0.42"}
    protocol = protocol_from(args.protocol, [metric])
    options = option_values(args, ("split_file", "pred_kind", "workers")) | {"metric": metric}
    # The run of OUT, or of the maps in PRED_DIR, which are counted first
    with progress("explain: count") as report:
        loaded = load_run_with_files(args.run, args.gt, protocol, progress=report, **options)
    options = option_values(args, ("seconds", "workers"))
    options["sources"] = loaded.sources  # its files, to count them again with other settings
    options["published"] = published_with(metric, target_values)  # results with the same scores
    with progress("explain") as report:
        explanation = explain(loaded.run, targets, progress=report, **options)
    _print_explanation(explanation, metric, target_values, loaded.run, args.output_format)
    answer = explanation.answer  # the most likely setting that reaches the targets, or None
    is_explained = answer is not None and answer.in_use  # by a program that is in use
    return 0 if is_explained else 1


def _print_explanation(
    explanation: Explanation,
    metric: str,
    target_values: Mapping[str, float | str],
    evaluation: Evaluation,
    output_format: str,
) -> None:
    """Print which settings give the published scores, as text or JSON.

    A trial is a setting with its scores; the trials most likely to explain the targets come first.
    Only trials on all images are printed: the first _MAX_TRIALS (9), all others that reach the
    targets, and the unchanged run. In text, a trial's line has the largest difference between a
    score and its target ("off"), the scores, and the setting. If it reaches the targets, the line
    begins with "=" if a known program uses the setting, otherwise with "~".

    target_values: score, such as "ods" -> target as the user wrote it.
    """
    from bsdsbench.diagnosis.explanation import capitalise
    from bsdsbench.metrics.registry import describe

    exact_trials = [trial for trial in explanation.trials if trial.exact]  # on all images
    trials = exact_trials[:_MAX_TRIALS]
    for trial in exact_trials[_MAX_TRIALS:]:
        if trial.reached or trial.n_causes == 0:  # the number of changes
            trials.append(trial)
    if output_format == "json":
        # The duration, and which settings or how many pairs of them were not counted, if any
        fields = ("seconds", "complete", "not_counted", "pairs_not_counted")
        plain: dict[str, Any] = {"targets": {k: float(text) for k, text in target_values.items()}}
        plain |= {"trials": list(map(asdict, trials)), "sentence": explanation.sentence()}
        plain |= {field: getattr(explanation, field) for field in fields}
        print_json({**plain, "reading": evaluation.read_as})  # how file values were interpreted
        return
    for row in explanation.published:
        print(f"published     {row}")
    targets = [f"{capitalise(measure)} {text}" for measure, text in target_values.items()]
    print(f"target        {'  '.join(targets)}")
    for trial in trials:
        scores = "  ".join(f"{capitalise(m)} {trial.scores[m]:.4f}" for m in target_values)
        reached_sign = "=" if trial.in_use else "~"
        sign = reached_sign if trial.reached else " "
        print(f"{sign} off {trial.gap:.4f}  {scores}  {trial.label}")
    print(f"protocol {describe([metric], evaluation.protocol)}")
    # Settings tried on some images only, and those not tried for lack of time or files
    counted_lines = explanation.partly_counted_line, explanation.not_counted_line
    last_lines = evaluation.read_as, *counted_lines, explanation.sentence()
    print("\n".join(filter(None, last_lines)))  # lines may be ""


def _print_differences(between: tuple[str, str]) -> int:
    """Print the differences between two signatures that can change a score.

    An argument that contains "|" is a signature. Otherwise, an existing path, a URL or ref:NAME is
    a run whose signature is used. Returns the exit status: 1 if there are differences, otherwise 0.
    """
    import bsdsbench as bb
    from bsdsbench.protocol.signature import Severity, Signature
    from bsdsbench.results.references import REF_PREFIX
    from bsdsbench.results.sharing import is_address

    signatures = []
    for text in between:
        is_run = Path(text).exists() or text.startswith(REF_PREFIX) or is_address(text)
        if is_run and "|" not in text:  # a bar separates the words of a signature
            signatures.append(bb.Evaluation.load(text).signature)
        else:
            signatures.append(Signature.parse(text))
    differences = signatures[0].differences(signatures[1])
    lines = [d.line() for d in differences if d.severity is not Severity.IGNORED]
    print("\n".join(lines) or "no known difference: the scores are comparable")
    return 1 if lines else 0


class _PlotArguments(opt.Options):
    runs: tuple[str, ...] = opt.runs_argument()
    methods: opt.MethodOptions = opt.add_options(opt.MethodOptions)
    each_run: bool = opt.flag(
        "Draw a thin curve for every run of a --method, in place of mean and band."
    )
    out: str = opt.path("Output file: .pdf, .svg or .png.", "-o", "--out", required=True)
    names: list[str] | None = opt.names_option
    labels: dict[str, str] = opt.labels_option
    published: list[str] = opt.published_option
    human: bool | None = opt.flag(
        "Mark human agreement on BSDS500; default: mark it if the runs are of its test images.",
        "--human/--no-human",
        default=None,
    )
    ap: bool = opt.flag("Show AP in the legend, and published AP if its rule is the same.")
    kind: str = opt.choice(
        "Kind of plot: PR curves, F over the threshold, ODS over the tolerance, reliability "
        "diagram, box plot of the scores of single images, or ranks over bootstrap samples.",
        choices=("pr", "f", "tolerance", "reliability", "box", "ranks"),
    )
    metric: str | None = opt.add_option(
        "Metric to plot; default: the first metric of the run with a curve. For box and ranks, "
        "METRIC.SCORE.",
        metavar="M",
    )
    look: str = opt.choice(
        "Size of the figure: for a screen, a column of a paper (3.3 in), its full width (6.9 in), "
        "or a slide.",
        "--style",
        choices=("screen", "column", "page", "slide"),
    )
    force: bool = opt.flag("Draw even if the runs or the published results are not comparable.")
    grouping: opt.GroupingOptions = opt.add_options(opt.GroupingOptions)
    by: str | None = opt.add_option(
        "Draw slices in place of curves: the scores of the groups of this column, with intervals, "
        "or their ranks.",
        metavar="COLUMN[=X,X]",
    )
    bootstrap: opt.BootstrapOptions = opt.add_options(opt.BootstrapOptions)
    cluster: str | None = opt.cluster_option


@command  # its arguments and options are those that _PlotArguments declares
def plot_command(args: _PlotArguments) -> None:
    """Draw the curves of runs in one figure.

    The curves are PR curves with lines of equal F, or another --kind. With --method, the runs of a
    method, such as seeds, are drawn as a mean curve with a band. OUT is the folder of a run, or a
    folder with official files (eval_bdry_thr.txt or ID_ev1.txt) of any program. FILE is a run that
    `share` wrote, or its URL; ref:NAME is a reference run. --published alone draws published
    curves.
    """
    from bsdsbench.comparison.method import load_methods
    from bsdsbench.plotting import plot_ranks, plot_runs, plot_slices
    from bsdsbench.plotting.figures import published_curves_of
    from bsdsbench.results.given_runs import as_runs

    _refuse_unused(args)
    figure: Any = {"metric": args.metric, "look": args.look, "path": args.out}
    if args.kind == "ranks":
        compared = _compare(args, option_values(args, ("n_boot", "seed", "cluster", "force")))
        if args.by:
            del compared[""]  # of all images
        plot_ranks(compared, args.metric, look=args.look, path=args.out)
    elif args.by:
        runs = as_runs(args.runs, args.names, **option_values(args.grouping))
        plot_slices(runs, args.by, **figure)
    else:
        methods = load_methods(args.methods.method)  # from texts NAME=FOLDERS; [] without --method
        same_names = ("human", "kind", "ap", "force", "labels", "spread", "each_run", "published")
        options = option_values(args, same_names) | figure  # all keywords of `plot_runs`
        plot_runs(args.runs, args.names, methods=methods, **options)
        for row in published_curves_of(args.published, args.labels):
            if row.curve:
                log(f"{row.label}: {row.curve.describe()}")
    print(args.out)


def _refuse_unused(args: _PlotArguments) -> None:
    """Raise UsageError if the user gave an option that this kind of figure does not use."""
    if args.kind != "pr":  # published results have only precision and recall
        refuse_given(("published", "human", "ap"), f"--kind {args.kind}")
    if args.kind != "ranks":  # the only kind with bootstrap samples
        refuse_given(("n_boot", "seed", "cluster"), f"--kind {args.kind}, only with ranks")
    if not (args.by or args.cluster):  # which name the groups of images to use
        refuse_given(("groups", "group_by"), "a figure without --by or --cluster")
    if args.kind == "ranks":
        refuse_given(("labels", "spread", "each_run"), "--kind ranks")
    elif args.by:  # draws one score of runs in each slice, and no curves of any kind
        refuse_given(("published", "human", "ap", "kind", "force", "method"), "--by")
