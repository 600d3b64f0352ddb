"""bsdsbench plot: the precision-recall curves of runs in one picture."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from bsdsbench.cli.options import choice, names_option, published_option, quiet_option, refuse, verb

ONLY_PR = ("published", "human", "band", "ap")


@verb("plot", short_help="Draw the curves of runs in one picture.")
@click.argument("runs", nargs=-1, type=click.Path(), metavar="[OUT|ref:NAME]...")
@click.option(
    "-o", "--out", required=True, type=click.Path(), help="Output file: .pdf, .svg or .png."
)
@names_option
@published_option
@click.option(
    "--human/--no-human",
    default=None,
    help="Mark human agreement on BSDS500; default: if the runs are of its test images.",
)
@click.option(
    "--ap", is_flag=True, help="Show AP in the legend, published ones where the rule is the same."
)
@click.option("--band", is_flag=True, help="Draw a 95 % bootstrap band around each curve.")
@choice(
    "--kind",
    of=("pr", "f", "scatter", "reliability"),
    help="PR curves, F over threshold, two runs image by image, or bins of calibration.",
)
@click.option(
    "--metric", metavar="M", help="Metric to plot; default: the first of the run with a curve."
)
@choice(
    "--style",
    "look",
    of=("screen", "column", "page"),
    help="Size: for a screen, one column of a paper (3.3 in), or its full width (6.9 in).",
)
@click.option("--grey", is_flag=True, help="Use greys and dashes that print without colour.")
@click.option(
    "--force", is_flag=True, help="Draw even if protocols differ or published results do not fit."
)
@quiet_option
def command(
    runs: tuple[str, ...],
    out: str,
    names: list[str] | None,
    published: list[str] | None,
    human: bool | None,
    ap: bool,
    band: bool,
    kind: str,
    metric: str | None,
    quiet: bool,
    **options: Any,
) -> int:
    """Draw runs as PR curves with lines of equal F (or another --kind) into one file.

    OUT is the folder of a run, or a folder with official files (eval_bdry_thr.txt or ID_ev1.txt)
    by any program. ref:NAME is a reference run. --published alone draws published curves.
    """
    from bsdsbench.plotting import plot_f, plot_runs, plot_scatter
    from bsdsbench.plotting.run_figures import published_curves_of
    from bsdsbench.runs.evaluation import load_runs

    if kind != "pr":
        refuse(ONLY_PR, f"--kind {kind}")
    loaded = load_runs(runs, names)
    if kind in ("f", "reliability"):
        plot_f(loaded, path=out, metric=metric, kind=kind, **options)
    elif kind == "scatter":
        plot_scatter(loaded, path=out, metric=metric, **options)
    else:
        plot_runs(
            loaded,
            human=human,
            published=published or (),
            path=out,
            metric=metric,
            ap=ap,
            bands=_bands(loaded, metric, quiet) if band else None,
            **options,
        )
        for result in published_curves_of(published or ()):
            if result.curve:
                print(f"bsdsbench: {result.label}: {result.curve.describe()}", file=sys.stderr)
    print(out)
    return 0


def _bands(runs: Sequence[Any], metric: str | None, quiet: bool) -> list[Any]:
    from bsdsbench.cli.evaluating import progress
    from bsdsbench.comparison.curve_band import bootstrap_band

    bands: list[Any] = []
    with progress("plot: bands", quiet, "runs") as report:
        for run in runs:
            bands.append(bootstrap_band(run, metric))
            report(len(bands), len(runs), run.name)
    return bands
