"""The plots of a run, drawn by a second process that imports matplotlib during the counting."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

_MODULES = (
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_svg",
    "bsdsbench.plotting.figures",
)
_CODE = "from bsdsbench.plotting.beside import draw_named; draw_named()"


@contextmanager
def plots_beside(out: str | None) -> Iterator[None]:
    """Draw pr.png and pr.svg of the run that the block saves in OUT; on leaving they are there.

    Should the second process fail, they are drawn here. Without OUT there are none.
    """
    if not out:
        yield
        return
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    quiet = subprocess.DEVNULL
    # -P: what lies in the current folder is not to be imported
    words = [sys.executable, "-P", "-c", _CODE]
    with subprocess.Popen(
        words, env=env, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet
    ) as second:
        try:
            yield
        except BaseException:
            second.kill()
            raise
        second.communicate(os.fsencode(out))
    if second.returncode:
        _draw(out)


def draw_named() -> None:
    """Import all that draws, then draw the run in the folder that standard input names."""
    gc.disable()  # imports allocate many long-lived objects
    for module in _MODULES:
        import_module(module)

    _draw(os.fsdecode(sys.stdin.buffer.read()))
    os._exit(0)  # there is nothing to tidy up


def _draw(out: str) -> None:
    from bsdsbench.plotting.figures import plot_result
    from bsdsbench.results.evaluation import Evaluation

    plot_result(Evaluation.load(out), Path(out))
