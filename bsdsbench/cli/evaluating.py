"""Shared by `evaluate`, `run` and `merge`: a run's options, its tables, the images left out."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bsdsbench.cli.options import (
    format_option,
    metrics_option,
    protocol_options,
    quiet_option,
    workers_option,
)

if TYPE_CHECKING:
    from bsdsbench.runs.evaluation import Evaluation

_F = TypeVar("_F", bound=Callable[..., Any])


def run_options(on_error: str) -> Callable[[_F], _F]:
    """The options of a run that each verb which makes one has; `on_error` is the usual way."""
    options = (
        click.option("--name", help="The method's name in tables; default: as it is called."),
        metrics_option,
        click.option("--split-file", type=click.Path(), help="Ids to evaluate, one per line."),
        click.option(
            "--overlays",
            is_flag=True,
            help="Draw matched, false and missed pixels into OUT/overlays.",
        ),
        format_option("table", "json"),
        protocol_options(usual="default: that of the first metric, bsds500 for most"),
        click.option(
            "--on-error",
            type=click.Choice(["fail", "skip"]),
            default=on_error,
            show_default=True,
            help="Refuse bad images when all were tried, or leave them out and list them.",
        ),
        workers_option,
        click.option("--fresh", is_flag=True, help="Ignore what an earlier run in OUT has done."),
        quiet_option,
    )

    def decorate(function: _F) -> _F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def announce_compiling(quiet: bool) -> None:
    """Compile the kernels in a first run, and say on standard error that it takes longer."""
    import bsdsbench as bb

    if bb.kernels.never_compiled():
        if not quiet:
            print("first run: compiling the kernels, about 10 seconds", file=sys.stderr)
        from bsdsbench.kernels.warm import compile_once

        compile_once()


def show_run(run: Evaluation, form: str, out: str | None) -> int:
    """A run's tables and conventions, or its result.json; names what it left out.

    Returns the exit status.
    """
    from bsdsbench.cli.show import print_json, print_scores

    if form == "json":
        print_json(run.to_mapping())
    else:
        print_scores([run])
        if run.identity:
            print(f"set      {run.identity.describe()}")
        if out:
            print(f"results  {out}")
    for image_id, reason in run.failed.items():
        print(f"bsdsbench: left out {image_id!r}: {reason}", file=sys.stderr)
    return 2 if run.failed else 0


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


def check_overlays(metrics: Sequence[str], needs: str | None) -> None:
    """Raise UsageError before the run if there is no matching to draw, or nowhere to draw it."""
    from bsdsbench.metrics import registry
    from bsdsbench.report.overlays import matching_metric

    if not needs:
        raise click.UsageError("--overlays needs -o OUT")
    if not matching_metric(metrics):
        usual, found = registry.DEFAULT[0], ", ".join(metrics)
        raise click.UsageError(f"--overlays: no metric that matches pixels, as {usual} ({found})")


def write_overlays(run: Evaluation, out: str, quiet: bool) -> None:
    """A picture of each image's matched, false and missed pixels into OUT/overlays."""
    from bsdsbench.cli.progress import progress
    from bsdsbench.report import overlays

    with progress("overlays", quiet) as report:
        overlays.write_overlays(run, Path(out) / "overlays", progress=report)
