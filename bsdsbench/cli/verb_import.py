"""bsdsbench import: verify results that somebody exported, and take them over."""

from __future__ import annotations

import click

from bsdsbench.cli.options import verb


@verb("import", short_help="Verify exported results: scores from counts, hash, task.")
@click.argument("folder", type=click.Path())
@click.option("--task", metavar="NAME|FILE", help="The task that all of them are to be of.")
@click.option("-o", "--out", type=click.Path(), help="Write each run into a folder here.")
def command(folder: str, task: str | None, out: str | None) -> int:
    """Verify the results in FOLDER, of one run or of several, as `bsdsbench export` wrote them.

    Every file must be as its manifest says; scores, tables and files of the format must follow from
    the counts, the hash must be that of the counts, and the run must be of the tasks it says. It
    does not show that the counts come from any maps: for that, evaluate the maps.
    """
    from pathlib import Path

    from bsdsbench.files.errors import DataError
    from bsdsbench.loaders.official_txt import safe_name
    from bsdsbench.protocol.tasks import Task
    from bsdsbench.report.exports import check_import

    found = check_import(folder)
    wanted = Task.load(task) if task else None
    other = [run.name for run in found if wanted is not None and wanted not in run.tasks]
    if wanted is not None and other:
        raise DataError.collect(
            [DataError(f"{n}: not of {wanted.name}, expected it") for n in other]
        )
    for run in found:
        print(f"{run.name}: {', '.join(t.name for t in run.tasks)}, {run!r}")
        if out:
            print(run.save(Path(out) / safe_name(run.name)))
    return 0
