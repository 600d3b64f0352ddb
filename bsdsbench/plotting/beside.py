"""The child process that draws a run's plots: it imports matplotlib while its parent evaluates."""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from pathlib import Path

_MODULES = (
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_svg",
    "matplotlib.style",
    "bsdsbench.plotting.figures",
    "bsdsbench.protocol.presets",
    "bsdsbench.results.evaluation",
)


def draw_from_stdin() -> None:
    """Import matplotlib, read a run's folder from standard input, draw the run's plots, and exit.

    This is what the child process of `cli.score.plots_beside` does. It imports matplotlib while its
    parent evaluates the run, and waits until the parent sends the folder of the saved run.
    """
    gc.disable()  # imports allocate many long-lived objects
    for module in _MODULES:  # matplotlib and what reads and draws a run
        import_module(module)

    draw(os.fsdecode(sys.stdin.buffer.read()))
    os._exit(0)  # skips the cleanup of the interpreter, which takes time


def draw(out: str) -> None:
    """Draw the plots of the run saved in the folder `out`."""
    from bsdsbench.plotting.figures import plot_result
    from bsdsbench.results.evaluation import Evaluation

    plot_result(Evaluation.load(out), Path(out))
