"""What `evaluate` and the verbs of single metrics share: their options, one run, its tables."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bsdsbench.cli.options import format_option, quiet_option, workers_option

if TYPE_CHECKING:
    from bsdsbench.protocol.protocol import Protocol
    from bsdsbench.runs.evaluation import Evaluation

_F = TypeVar("_F", bound=Callable[..., Any])


def run_options(function: _F) -> _F:
    """--gt, -o and the options of a run that every metric has."""
    for option in reversed(
        (
            click.option(
                "--gt", "gt_dir", required=True, type=click.Path(), help="Ground-truth folder."
            ),
            click.option(
                "-o", "--out", type=click.Path(), help="Folder for results; a later run resumes it."
            ),
            click.option("--split-file", type=click.Path(), help="Ids to evaluate, one per line."),
            click.option("--name", help="The method's name in tables; default: the folder's name."),
            click.option(
                "--missing",
                type=click.Choice(["error", "zero", "skip"]),
                default="error",
                show_default=True,
                help="How to treat missing predictions.",
            ),
            click.option(
                "--on-error",
                type=click.Choice(["fail", "skip"]),
                default="fail",
                show_default=True,
                help="Stop at a bad image, or skip and list it.",
            ),
            workers_option,
            click.option(
                "--executor",
                default="process",
                show_default=True,
                metavar="E",
                help="Where to run: process, thread or dask://host:port.",
            ),
            click.option("--shard", default="1/1", metavar="I/N", help="Evaluate part I of N."),
            click.option("--fresh", is_flag=True, help="Ignore the records of an earlier run."),
            format_option("table", "json"),
            quiet_option,
        )
    ):
        function = option(function)
    return function


def evaluate_metric(
    metric: str,
    pred_dir: str,
    protocol: Protocol | None,
    *,
    form: str,
    quiet: bool,
    **options: Any,
) -> int:
    """Run one metric and print its tables: a verb of its own. Returns the exit status."""
    import bsdsbench as bb
    from bsdsbench.cli.progress import progress

    options["shard"] = shard(options["shard"])
    announce_compiling(quiet)
    with progress(metric, quiet) as report:
        run = bb.evaluate(pred_dir, protocol=protocol, metrics=metric, progress=report, **options)
    show_run(run, form, options["out"])
    return left_out(run)


def announce_compiling(quiet: bool) -> None:
    """Compile the kernels in a first run, and say on standard error that it takes longer."""
    import bsdsbench as bb

    if bb.kernels.never_compiled():
        if not quiet:
            print("first run: compiling the kernels, some 10 seconds", file=sys.stderr)
        from bsdsbench.kernels.warm import compile_once

        compile_once()


def show_run(run: Evaluation, form: str, out: str | None) -> None:
    """A run's tables and conventions, or its result.json."""
    from bsdsbench.cli.show import print_json, print_scores

    if form == "json":
        print_json(run.to_mapping())
        return
    print_scores([run])
    if run.identity:
        print(f"set      {run.identity.describe()}")
    if out:
        print(f"results  {out}")


def left_out(run: Evaluation) -> int:
    """Name the images that were left out; the exit status."""
    for image_id, reason in run.failed.items():
        print(f"bsdsbench: left out {image_id!r}: {reason}", file=sys.stderr)
    return 2 if run.failed else 0


def shard(text: str) -> tuple[int, int]:
    """I/N as two numbers. Raises DataError."""
    from bsdsbench.files.errors import DataError

    found = re.fullmatch("([0-9]{1,7})/([0-9]{1,7})", text)
    if not found:
        raise DataError(f"--shard {text!r}: expected I/N, such as 1/4")
    return int(found[1]), int(found[2])


def write_plots(run: Evaluation, out: str) -> None:
    """pr.png and pr.svg into OUT, if there is a precision-recall curve."""
    from bsdsbench.metrics import registry

    if registry.with_curve(run.metrics):
        from bsdsbench.plotting import plot_runs
        from bsdsbench.plotting.style import picture
        from bsdsbench.runs.drawn import write_drawn

        figure, names = plot_runs([run]), ("pr.png", "pr.svg")
        write_drawn([run], Path(out), names, [picture(figure, Path(name)) for name in names])


def load_plotting() -> None:
    """Import the plotting package beside the run, whose worker processes leave this one idle."""
    threading.Thread(target=import_module, args=("bsdsbench.plotting.run_figures",)).start()
