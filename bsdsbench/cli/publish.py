"""The commands to publish with: report, view, share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from click import argument

from bsdsbench.cli.output import progress, say, show_tables
from bsdsbench.cli.shared import (
    Arguments,
    add_option,
    bootstrap_options,
    command,
    flag,
    grouping_options,
    labels_option,
    methods_option,
    names_option,
    path,
    published_option,
    refuse,
    require_runs_or_methods,
    runs_argument,
    runs_or_methods,
    slice_cluster_option,
    slicing_option,
    summary_option,
    table_options,
    with_arguments,
)

if TYPE_CHECKING:
    from bsdsbench.comparison.method import Method
    from bsdsbench.results.evaluation import Evaluation
    from bsdsbench.tables.table import Table

_MAX_CITATION_BYTES = 1 << 16
# Options that only a page takes
_PAGE_OPTIONS = ("title", "images_dir", "pred_dirs", "pictures", "full_pictures", "n_boot", "seed")


@command
@runs_or_methods
@methods_option
@add_option(
    "--history",
    "Show the scores of these runs over time, by their dates, or else by their names (v2 before "
    "v10): as a table, as a page with a figure (-o FILE.html), or as the figure (.pdf, .svg, "
    ".png). May be repeated.",
    multiple=True,
    is_eager=True,
    metavar="'out/v*'",
)
@table_options
@flag("--rules", "Show AP by every rule in use, and ODS by both rules.")
@names_option
@labels_option
@published_option
@add_option("--title", "Title of the page; default: the names.", default="", show_default=False)
@path("--gt", "gt_dir", "Ground-truth folder; default: the folder that the run names.")
@path("--images", "images_dir", "Folder of the images; default: beside the ground truth.")
@path(
    "--pred",
    "pred_dirs",
    "Folder of predictions, once per run in the same order; default: those that the runs name.",
    multiple=True,
)
@flag("--pictures/--no-pictures", "Show images on the page.", default=True)
@flag(
    "--full-pictures",
    "Show every image; default: at most 200 images or 5 MB, the worst, the best and those on which "
    "the runs differ most.",
)
@flag("--force", "Show published results or a --history even if they are not comparable.")
@grouping_options
@slicing_option
@slice_cluster_option
@summary_option
@bootstrap_options
@with_arguments
def report_command(args: Arguments) -> None:
    """Write runs as a page or as tables.

    A page (-o FILE.html) is one self-contained file. OUT is the folder of a run, or a folder with
    official files of any program. FILE is a run that `share` wrote, or its URL. ref:NAME is a
    reference run. Tables go to standard output, or to a file of their format. With --method each
    row is a method of one or more runs, such as seeds, with the mean and its spread.

    --rules needs the row of threshold 0 for the rule edter. It is computed from the ground truth,
    and the value is "-" if the ground truth is not found.
    """
    from bsdsbench.comparison.published import labelled_runs
    from bsdsbench.errors import DataError
    from bsdsbench.results.given_runs import as_runs

    args.published = args.published or ()
    if args.history:
        _show_history(args)
        return
    require_runs_or_methods(args)
    if args.method:
        _show_methods(args)
        return
    loaded = as_runs(args.runs, args.names, **args.only("groups", "group_by"))
    loaded = labelled_runs(args.runs, loaded, args.labels, args.published)
    if args.rules:
        _show_ap_rules(loaded, args)
    elif args.form != "html":
        _show_run_tables(loaded, args)
    elif not args.out:
        raise DataError("--format html: expected -o FILE.html")
    else:
        _write_page(loaded, args)


def _show_ap_rules(runs: Sequence[Evaluation], args: Arguments) -> None:
    """Show the tables of --rules: AP by every rule in use, and ODS by both rules."""
    from bsdsbench.diagnosis.ap_rules import build_rules_tables

    refuse((*_PAGE_OPTIONS, "by", "published", "force", "columns"), "--rules")
    show_tables(build_rules_tables(runs, args.gt_dir), args.out, args.form)


def _show_run_tables(runs: Sequence[Evaluation], args: Arguments) -> None:
    """Show the tables of runs. In CSV, which has no notes, images left out become a table."""
    from bsdsbench.results.score_tables import with_left_out

    if args.cluster and not args.by:
        raise click.UsageError("--cluster: expected --by, or a page (-o FILE.html)")
    refuse((*_PAGE_OPTIONS, "gt_dir"), "tables, only with a page (-o FILE.html)")
    tables = _run_tables(runs, args)
    if args.form == "csv":
        tables = with_left_out(tables, {run.name: run.left_out for run in runs})
    show_tables(tables, args.out, args.form)


def _write_page(runs: Sequence[Evaluation], args: Arguments) -> None:
    """Write the page of labelled runs to the file `args.out`."""
    from bsdsbench.report import write_report

    refuse(("columns", "summary"), "a page (-o FILE.html), which has all of them")
    # Only published results are still to be renamed: the runs have their labels already
    published_keys = {key.lower() for key in args.published}
    args.labels = {key: text for key, text in args.labels.items() if key in published_keys}
    args.pred_dirs = list(args.pred_dirs) or None
    others = ("gt_dir", "published", "labels", "force", "by", "cluster")
    options = args.only(*_PAGE_OPTIONS, *others)
    with progress("report") as report:
        notes = write_report(runs, args.out, progress=report, **options)
    for note in notes:
        say(note)
    print(args.out)


def _show_methods(args: Arguments) -> None:
    """Show the tables of --method. In CSV, which has no notes, images left out become a table."""
    from bsdsbench.comparison.method import methods_of, runs_of, with_runs
    from bsdsbench.results.given_runs import as_runs
    from bsdsbench.results.score_tables import with_left_out

    refuse((*_PAGE_OPTIONS, "gt_dir", "rules", "names", "cluster", "summary"), "--method")
    methods = methods_of(args.method)
    grouped_runs = as_runs(runs_of(methods), **args.only("groups", "group_by"))
    methods = with_runs(methods, grouped_runs)
    tables = _method_tables(methods, args)
    if args.form == "csv":
        tables = with_left_out(tables, {method.name: method.left_out for method in methods})
    show_tables(tables, args.out, args.form)


def _run_tables(runs: Sequence[Evaluation], args: Arguments) -> list[Table]:
    """Return the tables of runs, in this order:

    - scores, with the published results of --published
    - classes of errors, for runs that counted them, unless --columns is given
    - slices, for each column of --by
    - summaries of the images' own scores, with --summary
    """
    from bsdsbench.comparison.lost_scores import error_table, lost_scores, metric_with_errors
    from bsdsbench.comparison.published import published_beside
    from bsdsbench.comparison.slices import slice_tables
    from bsdsbench.report import score_tables
    from bsdsbench.results.summaries import Summary, summary_tables

    columns = args.columns
    extra, notes = published_beside(args.published, runs, args.force, args.labels)
    tables = score_tables(runs, extra=extra, notes=notes, columns=columns)
    runs_with_classes = [run for run in runs if metric_with_errors(run) is not None]
    if runs_with_classes and columns is None:
        losses = [lost_scores(run, args.n_boot, args.seed) for run in runs_with_classes]
        tables.append(error_table(runs_with_classes, losses))
    tables += slice_tables(runs, args.by, columns, args.cluster)
    if args.summary:
        tables += summary_tables(runs, Summary(args.summary), columns)
    return tables


def _method_tables(methods: Sequence[Method], args: Arguments) -> list[Table]:
    """Return a table of the methods' mean scores, and one for each column of --by.

    The first table also shows the published results of --published.
    """
    from bsdsbench.comparison.method import Spread, runs_of
    from bsdsbench.comparison.methods import means_table
    from bsdsbench.comparison.published import labelled_runs, published_beside
    from bsdsbench.comparison.slice_comparison import means_by_slice

    published, labels, columns = args.published, args.labels, args.columns
    spread = Spread(args.spread)
    labelled_runs((), (), labels, published)  # raises DataError if a label names no published key
    extra, notes = published_beside(published, runs_of(methods), args.force, labels)
    means = means_table(methods, spread, columns, extra, notes)
    return [means, *(means_by_slice(methods, column, spread, columns) for column in args.by)]


def _show_history(args: Arguments) -> None:
    """Show the scores of --history: as a page or a figure in the file `args.out`, else as tables.

    Raises UsageError for options that a history does not take.
    """
    from pathlib import Path

    from bsdsbench.io import write_atomic
    from bsdsbench.report.history import history_of, history_page, history_table, plot_history

    unsupported = ("gt_dir", "rules", "published", "method", "labels", "groups", "group_by")
    refuse((*_PAGE_OPTIONS, *unsupported, "by", "cluster", "summary"), "--history")
    history = history_of([*args.history, *args.runs], args.names, args.force)
    if args.out and args.form == "figure":
        plot_history(history, args.columns, path=args.out)
        print(args.out)
    elif args.out and args.form == "html":
        write_atomic(Path(args.out), history_page(history, args.columns))
        print(args.out)
    else:
        show_tables([history_table(history, args.columns)], args.out, args.form)


@command
@runs_argument
@names_option
@labels_option
@add_option(
    "--port", "Port of the URL; 0 takes any free port.", type=click.IntRange(0, 65535), default=0
)
def view_command(
    runs: tuple[str, ...], names: list[str] | None, labels: dict[str, str], port: int
) -> None:
    """Look at every image of runs in a browser, at all thresholds.

    Open the printed URL: it shows the page of `report` with all images in full size, read from
    the folders of the runs. The page is served to this machine only, until Ctrl-C. Nothing is
    written.
    """
    from bsdsbench.comparison.published import labelled_runs
    from bsdsbench.errors import DataError
    from bsdsbench.report.server import view
    from bsdsbench.results.given_runs import as_runs

    loaded = labelled_runs(runs, as_runs(runs, names), labels)
    try:
        server = view(loaded, port)
    except OSError as error:
        raise DataError(f"port {port}: {error.strerror}") from None
    with server:
        for note in server.notes:
            say(note)
        print(server.address, flush=True)
        say("Ctrl-C ends it")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            say("ended")


@command
@argument("run", metavar="OUT", type=click.Path())
@path("-o", "--out", "The file to write, such as mine.bsds.npz.", required=True)
@add_option(
    "--licence", "The licence of the counts, such as CC-BY-4.0.", default="", metavar="TEXT"
)
@add_option(
    "--citation",
    "How to cite the run: a text, or a file that holds it, such as mine.bib.",
    default="",
    metavar="TEXT|FILE",
)
def share_command(run: str, out: str, licence: str, citation: str) -> None:
    """Export a run as one small file to share.

    The file holds the counts of every image, the protocol, the signature and the fingerprint of the
    ground truth, but no maps, annotations or paths. The file or its URL can be used wherever a
    command takes ref:NAME. To have the file verified, append # and the printed sha256 to the URL.
    """
    import hashlib
    from pathlib import Path

    import bsdsbench as bb
    from bsdsbench.io import read_bytes

    if citation and Path(citation).is_file():
        citation = read_bytes(citation, _MAX_CITATION_BYTES).decode("utf-8", "replace")
    evaluation = bb.Evaluation.load(run)
    data = evaluation.share(out, licence, citation).read_bytes()
    print(f"{out}: {evaluation.name}, {len(evaluation.records)} images, {len(data)} bytes")
    print(f"sha256   {hashlib.sha256(data).hexdigest()}")
    if not licence:
        say("no --licence is given: others are not told what they may do with the counts")
