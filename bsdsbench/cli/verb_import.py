"""bsdsbench import: verify exported results, and store them as runs."""

from __future__ import annotations

import click

from bsdsbench.cli.options import verb


@verb("import", short_help="Verify exported results: scores from counts, hash, task.")
@click.argument("folder", type=click.Path())
@click.option("--task", metavar="NAME|FILE", help="Refuse results that do not belong to this task.")
@click.option("-o", "--out", type=click.Path(), help="Store each run as a folder here.")
def command(folder: str, task: str | None, out: str | None) -> int:
    """Verify the results of one or several runs that `bsdsbench export` wrote into FOLDER.

    Every file must match its manifest, scores and tables must follow from the counts, the hash must
    match the counts, and the run must belong to its tasks. This does not prove that the counts come
    from any maps: to prove that, evaluate the maps.
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
            [DataError(f"{n}: does not belong to {wanted.name}, expected it to") for n in other]
        )
    for run in found:
        print(f"{run.name}: {', '.join(t.name for t in run.tasks)}, {run!r}")
        if out:
            print(run.save(Path(out) / safe_name(run.name)))
    return 0
