"""The commands for publishing: report, view, share."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from bsdsbench.cli import options as opt
from bsdsbench.cli.shared import (
    command,
    log,
    option_values,
    progress,
    refuse_given,
    require_runs_or_methods,
    show_tables,
)
from bsdsbench.errors import DataError
from bsdsbench.io import read_bytes

if TYPE_CHECKING:
    from bsdsbench.results.evaluation import Evaluation

# Options that only a page (-o FILE.html) takes
_PAGE_OPTIONS = ("images_dir", "pred_dirs", "pictures", "full_pictures", "n_boot", "seed")


class _ReportArguments(opt.Options):
    runs: tuple[str, ...] = opt.runs_argument()
    methods: opt.MethodOptions = opt.add_options(opt.MethodOptions)
    history: tuple[str, ...] = opt.repeatable(
        "Show the scores of these runs over time, by their dates, or else by their names (v2 "
        "before v10): as a table, or as a figure (-o FILE.pdf, .svg or .png). May be repeated.",
        is_eager=True,
        metavar="'out/v*'",
    )
    tables: opt.TableOptions = opt.add_options(opt.TableOptions)
    rules: bool = opt.flag("Show AP by every rule in use, and ODS by both rules.")
    names: list[str] | None = opt.names_option
    labels: dict[str, str] = opt.labels_option
    published: list[str] = opt.published_option
    gt_dir: str | None = opt.path(
        "Ground-truth folder; default: the folder that the run names.", "--gt"
    )
    images_dir: str | None = opt.path(
        "Folder of the images; default: beside the ground truth.", "--images"
    )
    pred_dirs: tuple[str, ...] = opt.path(
        "Folder of predictions, once per run in the same order; default: those that the runs name.",
        "--pred",
        multiple=True,
    )
    pictures: bool = opt.flag("Show images on the page.", "--pictures/--no-pictures", default=True)
    full_pictures: bool = opt.flag(
        "Show every image; default: at most 200 images or 5 MB, the worst, the best and those on "
        "which the runs differ most."
    )
    force: bool = opt.flag("Show published results or a --history even if they are not comparable.")
    grouping: opt.GroupingOptions = opt.add_options(opt.GroupingOptions)
    slicing: opt.SliceOptions = opt.add_options(opt.SliceOptions)
    summary: str | None = opt.summary_option
    bootstrap: opt.BootstrapOptions = opt.add_options(opt.BootstrapOptions)


@command  # its arguments and options are those that _ReportArguments declares
def report_command(args: _ReportArguments) -> None:
    """Write runs as a page or as tables.

    A page (-o FILE.html) is one self-contained file. OUT is the folder of a run, or a folder with
    official files of any program. FILE is a run that `share` wrote, or its URL. ref:NAME is a
    reference run. Tables go to standard output, or to a file of their format. With --method each
    row is a method of one or more runs, such as seeds, with the mean and its spread.

    --rules shows AP and ODS as the programs of several papers compute them. AP by the rule edter
    includes threshold 0, at which every pixel is predicted. Counts that lack this threshold are
    completed from the ground truth; if it is not found, the value is "-".
    """
    from bsdsbench.comparison.published import labelled_runs
    from bsdsbench.results.given_runs import as_runs

    if args.history:  # runs over time
        _show_history(args)
        return
    require_runs_or_methods(args.runs, args.methods.method)
    if args.methods.method:
        _show_methods(args)
        return
    # The options of `grouping` give the groups of images, such as scenes, that slices are made of
    loaded = as_runs(args.runs, args.names, **option_values(args.grouping))
    # Renamed by --label KEY=TEXT. A key may also be one of --published, whose rows come beside
    runs = labelled_runs(args.runs, loaded, args.labels, args.published)
    out, output_format = args.tables.out, args.tables.output_format
    if args.rules:
        from bsdsbench.diagnosis.causes import build_rules_tables

        refuse_given((*_PAGE_OPTIONS, "by", "published", "force", "columns"), "--rules")
        # The folder completes counts without threshold 0, which AP by the rule edter includes
        show_tables(build_rules_tables(runs, args.gt_dir), out, output_format)
    elif output_format != "html":
        _show_run_tables(runs, args)
    elif not out:
        raise DataError("--format html needs -o FILE.html")
    else:
        _write_page(runs, out, args)


def _show_run_tables(runs: Sequence[Evaluation], args: _ReportArguments) -> None:
    """Print the tables of runs, or write them to the file given with -o.

    There are always tables of scores, with rows for the results of --published. Further tables show
    the error classes (unless --columns is given, and only for runs that counted them), the scores
    in each slice, a group of images, of --by, and summaries of the per-image scores (--summary). In
    CSV, the tables of runs get a last column with the images that were left out.
    """
    from bsdsbench.comparison.published import published_beside
    from bsdsbench.results.score_tables import difference_notes, metric_with_errors, score_tables

    slicing, columns = args.slicing, args.tables.columns
    # Clusters, such as patients, are for intervals, which of the tables only those of --by have
    if slicing.cluster and not slicing.by:
        raise click.UsageError("--cluster needs --by COLUMN or -o FILE.html")
    refuse_given((*_PAGE_OPTIONS, "gt_dir"), "tables, only with a page (-o FILE.html)")
    # With --force, also results that are not comparable with the runs: the notes say why
    published = published_beside(args.published, runs, args.force, args.labels)
    tables = score_tables(runs, extra=published.rows, notes=published.notes, columns=columns)
    # Runs whose missed and false pixels were counted by class, as `evaluate --errors` does
    with_classes = [run for run in runs if metric_with_errors(run) is not None]
    if with_classes and columns is None:
        from bsdsbench.comparison.lost_scores import error_table, lost_scores

        tables.append(error_table(with_classes, list(map(lost_scores, with_classes))))
    if slicing.by:
        from bsdsbench.comparison.slices import slice_tables

        tables += slice_tables(runs, slicing.by, columns, slicing.cluster)
    if args.summary:
        from bsdsbench.results.image_tables import Summary, summary_tables

        tables += summary_tables(runs, Summary(args.summary), columns)
    if args.tables.output_format == "csv":  # it has no notes
        for line in difference_notes(runs):
            log(line)
    left_out = {run.name: run.left_out for run in runs}
    show_tables(tables, args.tables.out, args.tables.output_format, left_out)


def _write_page(runs: Sequence[Evaluation], out: str, args: _ReportArguments) -> None:
    """Write an HTML report of the runs to the file `out`, and print its path."""
    from bsdsbench.report import write_report

    refuse_given(("columns", "summary"), "a page (-o FILE.html), which has all of them")
    names = (*_PAGE_OPTIONS, "gt_dir", "published", "force", "by", "cluster")
    options = option_values(args, names)  # the values of these options, keywords of `write_report`
    # --label KEY=TEXT renames runs and published results. The runs have their new names already, so
    # only the labels of published results are left. Their keys are all in lower case
    published_keys = {key.lower() for key in args.published}
    options["labels"] = {key: text for key, text in args.labels.items() if key in published_keys}
    with progress("report") as report:
        notes = write_report(runs, out, progress=report, **options)
    for note in notes:
        log(note)
    print(out)


def _show_methods(args: _ReportArguments) -> None:
    """Print the mean scores of methods (sets of runs), or write them to the file given with -o."""
    from bsdsbench.comparison.method import Spread, all_runs, as_methods, load_methods
    from bsdsbench.comparison.method_tables import means_table
    from bsdsbench.comparison.published import labelled_runs, published_beside

    unsupported = (*_PAGE_OPTIONS, "gt_dir", "rules", "names", "groups", "group_by", "cluster")
    refuse_given((*unsupported, "summary"), "--method")
    refuse_given(("by",), "--method; `compare --method ... --by COLUMN` compares methods by group")
    # From texts NAME=FOLDERS, such as 'hed=out/seed*'
    methods = as_methods(load_methods(args.methods.method))
    # --label KEY=TEXT can only rename published results here, as methods have names: raise
    # DataError for any other key. There are no runs to rename
    labelled_runs(given=(), runs=(), labels=args.labels, published=args.published)
    published = published_beside(args.published, all_runs(methods), args.force, args.labels)
    spread, columns = Spread(args.methods.spread), args.tables.columns
    table = means_table(methods, spread, columns, published.rows, published.notes)
    left_out = {method.name: method.left_out for method in methods}
    show_tables([table], args.tables.out, args.tables.output_format, left_out)


def _show_history(args: _ReportArguments) -> None:
    """Show how scores changed over the runs of --history and any runs given as arguments.

    The suffix of -o selects a figure (.pdf, .svg, .png) or a table. Without -o, the table is
    printed.
    """
    from bsdsbench.report.history import history_of, history_table, plot_history

    unsupported = ("gt_dir", "rules", "published", "method", "labels", "groups", "group_by")
    refuse_given((*_PAGE_OPTIONS, *unsupported, "by", "cluster", "summary"), "--history")
    runs = history_of([*args.history, *args.runs], args.names, args.force)
    out, output_format, columns = args.tables.out, args.tables.output_format, args.tables.columns
    if out and output_format == "figure":
        plot_history(runs, columns, path=out)
        print(out)
    else:
        show_tables([history_table(runs, columns)], out, output_format)


class _ViewArguments(opt.Options):
    runs: tuple[str, ...] = opt.runs_argument(required=True)
    names: list[str] | None = opt.names_option
    labels: dict[str, str] = opt.labels_option
    port: int = opt.add_option(
        "Port of the URL; 0 takes any free port.", type=click.IntRange(0, 65535), default=0
    )


@command  # its arguments and options are those that _ViewArguments declares
def view_command(args: _ViewArguments) -> None:
    """Look at every image of runs in a browser, at all thresholds.

    Open the printed URL: it shows the page of `report` with all images in full size, read from
    the folders of the runs. The page is served to this machine only, until Ctrl-C. Nothing is
    written.
    """
    from bsdsbench.comparison.published import labelled_runs
    from bsdsbench.report.server import ViewServer
    from bsdsbench.results.given_runs import as_runs

    loaded = labelled_runs(args.runs, as_runs(args.runs, args.names), args.labels)
    try:
        server = ViewServer(loaded, args.port)
    except OSError as error:
        raise DataError(f"port {args.port}: {error.strerror}") from None
    with server:
        for note in server.notes:
            log(note)
        print(server.address, flush=True)
        log("Ctrl-C ends it")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            log("ended")


class _ShareArguments(opt.Options):
    run: str = opt.add_argument("OUT", type=click.Path())
    out: str = opt.path("The file to write, such as mine.bsds.npz.", "-o", "--out", required=True)
    licence: str = opt.add_option(
        "The licence of the counts, such as CC-BY-4.0.", default="", metavar="TEXT"
    )
    citation: str = opt.add_option(
        "How to cite the run: a text, or a file that holds it, such as mine.bib.",
        default="",
        metavar="TEXT|FILE",
    )


@command  # its arguments and options are those that _ShareArguments declares
def share_command(args: _ShareArguments) -> None:
    """Export a run as one small file to share.

    The file holds the counts of every image, the protocol, the signature and the fingerprint of the
    ground truth, but no maps, annotations or paths. The file or its URL can be used wherever a
    command takes ref:NAME. To have the file verified, append # and the printed sha256 to the URL.
    """
    import hashlib

    import bsdsbench as bb

    citation = args.citation
    if os.path.isfile(citation):
        citation = read_bytes(citation, 1 << 16).decode("utf-8", "replace")
    evaluation = bb.Evaluation.load(args.run)
    data = evaluation.share(args.out, args.licence, citation).read_bytes()
    print(f"{args.out}: {evaluation.name}, {len(evaluation.records)} images, {len(data)} bytes")
    print(f"sha256   {hashlib.sha256(data).hexdigest()}")
    if not args.licence:
        log("no --licence, such as CC-BY-4.0, is given: nobody may use the counts without one")
