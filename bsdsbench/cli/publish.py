"""The verb to publish with: report."""

from __future__ import annotations

from typing import Any

from click import option

from bsdsbench.cli.shared import (
    PAGE,
    bootstrap,
    names,
    path,
    progress,
    published,
    quiet,
    refuse,
    runs,
    say,
    show_tables,
    tables,
    verb,
)


@verb(short_help="Write runs as a page, or as tables.")
@runs
@tables
@option("--rules", is_flag=True, help="Show AP by every rule in use, and ODS by both.")
@names
@published
@option("--title", default="", show_default=False, help="Title; default: the names.")
@path("--gt", "gt_dir", help="Ground-truth folder; default: the run's own.")
@path("--images", "images_dir", help="Folder of the images; default: beside the ground truth.")
@path(
    "--pred",
    "pred_dirs",
    multiple=True,
    help="Folder of predictions, one per run in the same order; default: the runs' own.",
)
@option("--pictures/--no-pictures", default=True, help="Show the images.")
@option(
    "--full-pictures",
    is_flag=True,
    help="Show every image; default: the worst, the best and those that differ most, up to 5 MB.",
)
@option(
    "--human",
    is_flag=True,
    help="Mark human agreement on BSDS500, if the runs are of its test images.",
)
@option("--force", is_flag=True, help="Show published results also beside runs of other images.")
@bootstrap
@quiet
def report(
    runs: tuple[str, ...],
    out: str | None,
    form: str,
    columns: list[str] | None,
    rules: bool,
    names: list[str] | None,
    **options: Any,
) -> None:
    """Report runs: tables of their scores, or one self-contained page (-o FILE.html).

    OUT is the folder of a run, or a folder with official files by any program; ref:NAME is a
    reference run. Tables go to standard output or a file of their format.

    For --rules, the threshold-0 row that the rule edter needs is computed from the ground truth; if
    that is not found the value is "-".
    """
    from bsdsbench.comparison.published import published_beside
    from bsdsbench.files.errors import DataError
    from bsdsbench.report import score_tables, write_report
    from bsdsbench.runs.all_rules import rules_table
    from bsdsbench.runs.evaluation import as_runs

    page = (*PAGE, "n_boot", "seed")
    options["published"] = options["published"] or ()
    if rules:
        refuse((*page, "published", "force", "columns"), "--rules")
        show_tables([rules_table(as_runs(runs, names), options["gt_dir"])], out, form)
    elif form != "html":
        refuse((*page, "gt_dir"), "tables, only with a page (-o FILE.html)")
        loaded = as_runs(runs, names)
        extra, notes = published_beside(options["published"], loaded, options["force"])
        shown = score_tables(loaded, extra=extra, notes=notes, columns=columns)
        show_tables(shown, out, form)
    elif not out:
        raise DataError("--format html: expected -o FILE.html")
    else:
        refuse(("columns",), "a page (-o FILE.html)")
        loaded = as_runs(runs, names)
        options["pred_dirs"] = list(options["pred_dirs"]) or None
        with progress("report") as options["progress"]:
            said = write_report(loaded, out, **options)
        for note in said:
            say(note)
        print(out)
