"""The commands to publish with: report, view, share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from click import argument

from bsdsbench.cli.output import progress, say, show_tables
from bsdsbench.cli.shared import (
    Given,
    add_option,
    bootstrap_options,
    flag,
    grouping_options,
    labels_option,
    methods_option,
    names_option,
    one_of_runs_and_methods,
    path,
    published_option,
    refuse,
    runs_argument,
    runs_or_methods,
    slice_cluster_option,
    slicing_option,
    summary_option,
    table_options,
    verb,
)

if TYPE_CHECKING:
    from bsdsbench.comparison.method import Method
    from bsdsbench.results.evaluation import Evaluation
    from bsdsbench.tables.table import Table

_MAX_CITATION_BYTES = 1 << 16
# Options that only a page takes
_PAGE_OPTIONS = ("title", "images_dir", "pred_dirs", "pictures", "full_pictures", "n_boot", "seed")


@verb
@runs_or_methods
@methods_option
@add_option(
    "--history",
    "Scores over these runs in order of their dates, or else of their names (v2 before v10): a "
    "table, a page with a figure (-o FILE.html), or the figure (.pdf, .svg, .png). May be "
    "repeated.",
    multiple=True,
    is_eager=True,
    metavar="'out/v*'",
)
@table_options
@flag("--rules", "Show AP by every rule in use, and ODS by both.")
@names_option
@labels_option
@published_option
@add_option("--title", "Title of a page; default: the names.", default="", show_default=False)
@path("--gt", "gt_dir", "Ground-truth folder; default: the run's own.")
@path("--images", "images_dir", "Folder of the images; default: beside the ground truth.")
@path(
    "--pred",
    "pred_dirs",
    "Folder of predictions, one per run in the same order; default: the runs' own.",
    multiple=True,
)
@flag("--pictures/--no-pictures", "Show the images.", default=True)
@flag(
    "--full-pictures",
    "Show every image; default: at most 200 or 5 MB, the worst, the best, those that differ most.",
)
@flag("--force", "Show published results also beside runs of other images, or any --history.")
@grouping_options
@slicing_option
@slice_cluster_option
@summary_option
@bootstrap_options
def report_verb(given: Given) -> None:
    """Write runs as a page, or as tables.

    A page (-o FILE.html) is one self-contained file. OUT is the folder of a run, or a folder with
    official files by any program; FILE is a run that `share` wrote, or its URL; ref:NAME is a
    reference run. Tables go to standard output or a file of their format. With --method each row is
    a method of one or more runs, such as seeds, with the mean and its spread.

    For --rules, the threshold-0 row that the rule edter needs is computed from the ground truth; if
    the ground truth is not found the value is "-".
    """
    from bsdsbench.comparison.method import methods_of, runs_of, with_runs
    from bsdsbench.comparison.published import labelled_runs
    from bsdsbench.diagnosis.ap_rules import rules_tables
    from bsdsbench.errors import DataError
    from bsdsbench.report import write_report
    from bsdsbench.results.given_runs import as_runs
    from bsdsbench.results.score_tables import with_left_out

    out, form, given.published = given.out, given.form, given.published or ()
    if given.history:
        not_for_history = ("gt_dir", "rules", "published", "method", "labels", "groups", "group_by")
        refuse((*_PAGE_OPTIONS, *not_for_history, "by", "cluster", "summary"), "--history")
        _show_history(given)
        return
    one_of_runs_and_methods(given)
    groups = given.only("groups", "group_by")
    if given.method:
        refuse((*_PAGE_OPTIONS, "gt_dir", "rules", "names", "cluster", "summary"), "--method")
        methods = methods_of(given.method)
        methods = with_runs(methods, as_runs(runs_of(methods), **groups))
        tables = _method_tables(methods, given)
        if form == "csv":  # CSV has no notes: the images left out become a table
            tables = with_left_out(tables, {entry.name: entry.left_out for entry in methods})
        show_tables(tables, out, form)
        return
    loaded = as_runs(given.runs, given.names, **groups)
    loaded = labelled_runs(given.runs, loaded, given.labels, given.published)
    if given.rules:
        refuse((*_PAGE_OPTIONS, "by", "published", "force", "columns"), "--rules")
        show_tables(rules_tables(loaded, given.gt_dir), out, form)
    elif form != "html":
        if given.cluster and not given.by:
            raise click.UsageError("--cluster: expected --by, or a page (-o FILE.html)")
        refuse((*_PAGE_OPTIONS, "gt_dir"), "tables, only with a page (-o FILE.html)")
        tables = _run_tables(loaded, given)
        if form == "csv":  # CSV has no notes: the images left out become a table
            tables = with_left_out(tables, {run.name: run.left_out for run in loaded})
        show_tables(tables, out, form)
    elif not out:
        raise DataError("--format html: expected -o FILE.html")
    else:
        refuse(("columns", "summary"), "a page (-o FILE.html), which has all of them")
        # The runs have their labels already
        published_keys = {key.lower() for key in given.published}
        given.labels = {k: v for k, v in given.labels.items() if k in published_keys}
        given.pred_dirs = list(given.pred_dirs) or None
        others = "gt_dir", "published", "labels", "force", "by", "cluster"
        options = given.only(*_PAGE_OPTIONS, *others)
        with progress("report") as report:
            notes = write_report(loaded, out, progress=report, **options)
        for note in notes:
            say(note)
        print(out)


def _run_tables(runs: Sequence[Evaluation], given: Given) -> list[Table]:
    """Return tables of scores beside published results, of error classes, slices and summaries.

    Error classes are left out if --columns is given.
    """
    from bsdsbench.comparison.lost_scores import error_table, lost_scores, metric_with_errors
    from bsdsbench.comparison.published import published_beside
    from bsdsbench.comparison.slices import slice_tables
    from bsdsbench.report import score_tables
    from bsdsbench.results.summaries import Summary, summary_tables

    columns = given.columns
    extra, notes = published_beside(given.published, runs, given.force, given.labels)
    tables = score_tables(runs, extra=extra, notes=notes, columns=columns)
    runs_with_classes = [run for run in runs if metric_with_errors(run) is not None]
    if runs_with_classes and columns is None:
        losses = [lost_scores(run, given.n_boot, given.seed) for run in runs_with_classes]
        tables.append(error_table(runs_with_classes, losses))
    tables += slice_tables(runs, given.by, columns, given.cluster)
    if given.summary:
        tables += summary_tables(runs, Summary(given.summary), columns)
    return tables


def _method_tables(methods: Sequence[Method], given: Given) -> list[Table]:
    """Return a table of the methods' means beside published results, and one for each --by."""
    from bsdsbench.comparison.method import Spread, runs_of
    from bsdsbench.comparison.methods import means_table
    from bsdsbench.comparison.published import labelled_runs, published_beside
    from bsdsbench.comparison.slices import means_by_slice

    published, labels, columns = given.published, given.labels, given.columns
    spread = Spread(given.spread)
    labelled_runs((), (), labels, published)  # raises DataError if a label names no published key
    extra, notes = published_beside(published, runs_of(methods), given.force, labels)
    means = means_table(methods, spread, columns, extra, notes)
    return [means, *(means_by_slice(methods, column, spread, columns) for column in given.by)]


def _show_history(given: Given) -> None:
    """Print the history of scores as a table, or write the table, a page or a figure to `out`."""
    from pathlib import Path

    from bsdsbench.io import write_atomic
    from bsdsbench.report.history import history_of, history_page, history_table, plot_history

    out, form, columns = given.out, given.form, given.columns
    history = history_of([*given.history, *given.runs], given.names, given.force)
    if out and form == "figure":
        plot_history(history, columns, path=out)
    elif out and form == "html":
        write_atomic(Path(out), history_page(history, columns))
    else:
        show_tables([history_table(history, columns)], out, form)
        return
    print(out)


@verb
@runs_argument
@names_option
@labels_option
@add_option(
    "--port", "Port of the URL; 0: any that is free.", type=click.IntRange(0, 65535), default=0
)
def view_verb(given: Given) -> None:
    """Look at every image of runs in a browser, at all thresholds.

    Open the printed URL: it shows the page of `report` with all images in full size, read from
    the folders of the runs. The page is served to this machine only, until Ctrl-C. Nothing is
    written.
    """
    from bsdsbench.comparison.published import labelled_runs
    from bsdsbench.errors import DataError
    from bsdsbench.report.server import view
    from bsdsbench.results.given_runs import as_runs

    loaded = labelled_runs(given.runs, as_runs(given.runs, given.names), given.labels)
    try:
        server = view(loaded, given.port)
    except OSError as error:
        raise DataError(f"port {given.port}: {error.strerror}") from None
    with server:
        for note in server.notes:
            say(note)
        print(server.address, flush=True)
        say("Ctrl-C ends it")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            say("ended")


@verb
@argument("run", metavar="OUT", type=click.Path())
@path("-o", "--out", "The file to write, such as mine.bsds.npz.", required=True)
@add_option("--licence", "The terms of the counts, such as CC-BY-4.0.", default="", metavar="TEXT")
@add_option(
    "--citation",
    "The text to cite the run by, or a file that holds it, such as mine.bib.",
    default="",
    metavar="TEXT|FILE",
)
def share_verb(given: Given) -> None:
    """Export a run as one small file to share.

    The file holds the counts of every image, the protocol, the signature and the fingerprint of the
    ground truth, but no maps, annotations or paths. The file or its URL can be used wherever a
    command takes ref:NAME. To have the file verified, append # and the printed sha256 to the URL.
    """
    import hashlib
    from pathlib import Path

    import bsdsbench as bb
    from bsdsbench.io import read_bytes

    out, licence, citation = given.out, given.licence, given.citation
    if citation and Path(citation).is_file():
        citation = read_bytes(citation, _MAX_CITATION_BYTES).decode("utf-8", "replace")
    evaluation = bb.Evaluation.load(given.run)
    data = evaluation.share(out, licence, citation).read_bytes()
    print(f"{out}: {evaluation.name}, {len(evaluation.records)} images, {len(data)} bytes")
    print(f"sha256   {hashlib.sha256(data).hexdigest()}")
    if not licence:
        say("no --licence is given: others are not told what they may do with the counts")
