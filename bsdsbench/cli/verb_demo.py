"""bsdsbench demo: evaluate, compare and plot three detectors on the shipped sample."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import click

from bsdsbench.cli.options import quiet_option, run_option, verb

NAMES = {"canny": "Canny", "sobel": "Sobel", "structure-tensor": "structure tensor"}


@verb("demo", short_help="Run the whole benchmark on the shipped sample.")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    default=Path("bsdsbench-demo"),
    show_default=True,
    help="Folder for results and plots.",
)
@run_option("workers")
@quiet_option
def command(out: Path, workers: int | None, quiet: bool) -> None:
    """Run, evaluate and compare three detectors on the shipped sample, and draw their curves.

    The sample is 16 synthetic images with three to five simulated annotators each; the detectors
    are built in (`bsdsbench run NAME`). Nothing is downloaded.
    """
    import bsdsbench as bb
    from bsdsbench.cli.evaluating import print_scores, progress
    from bsdsbench.loaders.sample import DETECTORS, sample_ground_truth, sample_images
    from bsdsbench.plotting import plot_f, plot_runs, plot_scatter

    runs = []
    for method in DETECTORS:
        with progress(method, quiet) as report:
            found = bb.run(
                *(method, sample_images()),
                gt=sample_ground_truth(),
                name=NAMES[method],
                workers=workers,
                out=out / method,
                progress=report,
            )
        runs.append(found.evaluation)
    runs.sort(key=lambda run: -run.boundary_score().ods.f)
    print_scores(runs)
    _print_differences(bb.compare(runs))
    with progress("human", quiet) as report:
        human = bb.evaluate_humans(sample_ground_truth(), workers=workers, progress=report)
    plots = [out / name for name in ("pr.png", "f_threshold.png", "images.png")]
    plot_runs(runs, human=human, path=plots[0])
    plot_f(runs, plots[1])
    plot_scatter([runs[1], runs[0]], plots[2])
    print("\nplots    " + "  ".join(map(str, plots)))
    print("results  " + "  ".join(str(out / method) for method in DETECTORS))
    _print_next(out, sample_images(), sample_ground_truth())


def _print_differences(found: Any) -> None:
    """Every pair of methods: what the second lacks, and whether more images could reverse it."""
    from bsdsbench.tables.table import Estimate, Field, Table, print_tables

    columns = [
        Field("pair", "Pair"),
        Field("ods", f"ODS [{found.level:.0%} interval]", "ODS", "+.4f"),
        Field("p", "p (Holm)", "p", "p"),
        Field("ap", "AP", "", "+.4f"),
        Field("wins", "Better on", "", "d"),
    ]
    rows = []
    for pair in found.images:
        ods = found.difference_of(pair.a, pair.b, "ods")
        ap = found.difference_of(pair.a, pair.b, "ap")
        row = [f"{pair.a} - {pair.b}", Estimate(ods.value, ods.low, ods.high)]
        rows.append([*row, ods.p_holm, ap.value, pair.record[0]])
    print()
    notes = [f"note: {note}" for note in found.notes]
    caption = f"first minus second, {found.n_images} images"
    table = Table("differences", "What differs", columns, rows, caption=caption, notes=notes)
    print_tables([table], sys.stdout)


def program() -> str:
    """What calls this bsdsbench in the shell it was called from."""
    beside = Path(sys.executable).with_name("bsdsbench")
    on_path = shutil.which("bsdsbench")
    if on_path and Path(on_path).absolute().parent == beside.parent:
        return "bsdsbench"
    if on_path := shutil.which(beside):
        return shlex.quote(_near(Path(on_path)))
    return f"{shlex.quote(_near(Path(sys.executable)))} -m bsdsbench"


def _near(path: Path) -> str:
    """The path as it is written from here, if it is below."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _print_next(out: Path, images: Path, truth: Path) -> None:
    """Four commands; the first three work unchanged."""
    from bsdsbench.loaders.sample import DETECTORS

    folders = " ".join(str(out / method) for method in DETECTORS)
    print("\nnext")
    for what, line in (
        (
            "maps several pixels wide, as networks give them",
            f"run structure-tensor-raw {_near(images)} -o {out / 'raw'}",
        ),
        (
            "they lose points without NMS; doctor finds that",
            f"doctor {out / 'raw' / 'maps'} --gt {_near(truth)}",
        ),
        ("one page with every table and plot", f"report {folders} -o {out / 'report.html'}"),
        (
            "your own method on BSDS500",
            "evaluate MY_MAPS --gt BSDS500/data/groundTruth/test -o my-method",
        ),
    ):
        print(f"  # {what}\n  {program()} {line}")
