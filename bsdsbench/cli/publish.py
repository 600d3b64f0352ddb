"""The commands to publish with: report, view, share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
from click import argument

from bsdsbench.cli.output import progress, say, show_tables
from bsdsbench.cli.shared import (
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
def report_verb(
    runs: tuple[str, ...],
    method: tuple[str, ...],
    spread: str,
    history: tuple[str, ...],
    out: str | None,
    form: str,
    columns: list[str] | None,
    rules: bool,
    names: list[str] | None,
    groups: str | None,
    group_by: str | None,
    by: tuple[str, ...],
    cluster: str | None,
    summary: str | None,
    **options: Any,
) -> None:
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

    options["published"] = options["published"] or ()
    if history:
        not_for_history = ("gt_dir", "rules", "published", "method", "labels", "groups", "group_by")
        refuse((*_PAGE_OPTIONS, *not_for_history, "by", "cluster", "summary"), "--history")
        _show_history([*history, *runs], names, columns, out, form, options["force"])
        return
    one_of_runs_and_methods(runs, method)
    if method:
        refuse((*_PAGE_OPTIONS, "gt_dir", "rules", "names", "cluster", "summary"), "--method")
        methods = methods_of(method)
        methods = with_runs(methods, as_runs(runs_of(methods), None, groups, group_by))
        tables = _method_tables(methods, spread, columns, by, options)
        if form == "csv":  # CSV has no notes: the images left out become a table
            tables = with_left_out(tables, {entry.name: entry.left_out for entry in methods})
        show_tables(tables, out, form)
        return
    loaded = labelled_runs(
        runs, as_runs(runs, names, groups, group_by), options["labels"], options["published"]
    )
    if rules:
        refuse((*_PAGE_OPTIONS, "by", "published", "force", "columns"), "--rules")
        show_tables(rules_tables(loaded, options["gt_dir"]), out, form)
    elif form != "html":
        if cluster and not by:
            raise click.UsageError("--cluster: expected --by, or a page (-o FILE.html)")
        refuse((*_PAGE_OPTIONS, "gt_dir"), "tables, only with a page (-o FILE.html)")
        tables = _run_tables(loaded, columns, by, cluster, options)
        if summary:
            from bsdsbench.results.summaries import Summary, summary_tables

            tables += summary_tables(loaded, Summary(summary), columns)
        if form == "csv":  # CSV has no notes: the images left out become a table
            tables = with_left_out(tables, {run.name: run.left_out for run in loaded})
        show_tables(tables, out, form)
    elif not out:
        raise DataError("--format html: expected -o FILE.html")
    else:
        refuse(("columns", "summary"), "a page (-o FILE.html), which has all of them")
        # The runs have their labels already
        published_keys = {key.lower() for key in options["published"]}
        options["labels"] = {k: v for k, v in options["labels"].items() if k in published_keys}
        options["pred_dirs"] = list(options["pred_dirs"]) or None
        with progress("report") as report:
            notes = write_report(loaded, out, by=by, cluster=cluster, progress=report, **options)
        for note in notes:
            say(note)
        print(out)


def _run_tables(
    runs: Sequence[Evaluation],
    columns: list[str] | None,
    by: tuple[str, ...],
    cluster: str | None,
    options: dict[str, Any],
) -> list[Table]:
    """Return tables of scores beside published results, of error classes, and of slices.

    Error classes are left out if `columns` is given. Of `options`, the keys "published", "labels",
    "force", "n_boot" and "seed" are used.
    """
    from bsdsbench.comparison.lost_scores import error_table, lost_scores, metric_with_errors
    from bsdsbench.comparison.published import published_beside
    from bsdsbench.comparison.slices import slice_tables
    from bsdsbench.report import score_tables

    published, labels = options["published"], options["labels"]
    extra, notes = published_beside(published, runs, options["force"], labels)
    tables = score_tables(runs, extra=extra, notes=notes, columns=columns)
    runs_with_classes = [run for run in runs if metric_with_errors(run) is not None]
    if runs_with_classes and columns is None:
        losses = [lost_scores(run, options["n_boot"], options["seed"]) for run in runs_with_classes]
        tables.append(error_table(runs_with_classes, losses))
    return [*tables, *slice_tables(runs, by, columns, cluster)]


def _method_tables(
    methods: Sequence[Method],
    spread: str,
    columns: list[str] | None,
    by: tuple[str, ...],
    options: dict[str, Any],
) -> list[Table]:
    """Return a table of the methods' means beside published results, and one for each --by.

    Of `options`, the keys "published", "labels" and "force" are used.
    """
    from bsdsbench.comparison.method import Spread, runs_of
    from bsdsbench.comparison.methods import means_table
    from bsdsbench.comparison.published import labelled_runs, published_beside
    from bsdsbench.comparison.slices import means_by_slice

    published, labels = options["published"], options["labels"]
    kind = Spread(spread)
    labelled_runs((), (), labels, published)  # raises DataError if a label names no published key
    extra, notes = published_beside(published, runs_of(methods), options["force"], labels)
    means = means_table(methods, kind, columns, extra, notes)
    return [means, *(means_by_slice(methods, column, kind, columns) for column in by)]


def _show_history(
    folders: list[str],
    names: list[str] | None,
    columns: list[str] | None,
    out: str | None,
    form: str,
    force: bool,
) -> None:
    """Print the history of scores as a table, or write the table, a page or a figure to `out`."""
    from pathlib import Path

    from bsdsbench.io import write_atomic
    from bsdsbench.report.history import history_of, history_page, history_table, plot_history

    history = history_of(folders, names, force)
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
def view_verb(
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
def share_verb(run: str, out: str, licence: str, citation: str) -> None:
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
