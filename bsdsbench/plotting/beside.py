"""Draw a run's plots in a child process, which imports matplotlib during the evaluation."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

_MODULES = (
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_svg",
    "matplotlib.style",
    "bsdsbench.plotting.figures",
    "bsdsbench.protocol.presets",
    "bsdsbench.results.evaluation",
)
_CODE = "from bsdsbench.plotting.beside import _draw_from_stdin; _draw_from_stdin()"


@contextmanager
def plots_beside(out: str | None) -> Iterator[Callable[[], None]]:
    """Start a child process that will draw the plots of the run to be saved in `out`.

    The child imports matplotlib, which is slow, while the `with` block evaluates the run. The block
    must call the yielded function once the run is saved; the child then draws pr.png and pr.svg
    into `out`. The `with` statement waits for them. If the child fails, this process draws them.

    If `out` is None, no process is started and the yielded function does nothing. If the block
    raises before it has called the function, the child is killed.
    """
    if not out:
        yield lambda: None
        return
    # It runs `_draw_from_stdin`, and finds the same modules, but (-P) none of the current folder
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-P", "-c", _CODE]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(
        command, env=env, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet
    ) as child:
        child_stdin: Any = child.stdin

        def start_drawing() -> None:
            """Send the run's folder to the child, which is waiting for it on standard input."""
            with suppress(BrokenPipeError), child_stdin:
                child_stdin.write(os.fsencode(out))

        try:
            yield start_drawing
        except BaseException:
            if not child_stdin.closed:  # it has no folder yet; otherwise it finishes its drawing
                child.kill()
            raise
    if child.returncode:  # Popen's `with` block has waited for the child to end
        _draw(out)


def _draw_from_stdin() -> None:
    """Import matplotlib, read a run's folder from standard input, draw the run's plots, and exit.

    This is what the child process of `plots_beside` does. It imports matplotlib while its parent
    evaluates the run, and waits until the parent sends the folder of the saved run.
    """
    gc.disable()  # imports allocate many long-lived objects
    for module in _MODULES:  # matplotlib and what reads and draws a run
        import_module(module)

    _draw(os.fsdecode(sys.stdin.buffer.read()))
    os._exit(0)  # skips the cleanup of the interpreter, which takes time


def _draw(out: str) -> None:
    """Draw the plots of the run saved in the folder `out`."""
    from bsdsbench.plotting.figures import plot_result
    from bsdsbench.results.evaluation import Evaluation

    plot_result(Evaluation.load(out), Path(out))
