"""The plots of a run, drawn by a second process that imports matplotlib during the counting."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import typing
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import IO

_MODULES = (
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_svg",
    "matplotlib.style",
    "bsdsbench.plotting.figures",
    "bsdsbench.protocol.presets",
    "bsdsbench.results.evaluation",
)
_CODE = "from bsdsbench.plotting.beside import _draw_named; _draw_named()"


@contextmanager
def plots_beside(out: str | None) -> Iterator[Callable[[], None]]:
    """Give the function that begins to draw the run saved in OUT: pr.png and pr.svg.

    On leaving the block they are there; should the second process fail, they are drawn here.
    Without OUT there are none.
    """
    if not out:
        yield lambda: None
        return
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    quiet = subprocess.DEVNULL
    # -P: what lies in the current folder is not to be imported
    words = [sys.executable, "-P", "-c", _CODE]
    with subprocess.Popen(
        words, env=env, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet
    ) as second:
        saved = typing.cast(IO[bytes], second.stdin)

        def begin() -> None:
            with suppress(BrokenPipeError), saved:
                saved.write(os.fsencode(out))

        try:
            yield begin
        except BaseException:
            if not saved.closed:
                second.kill()
            raise
    if second.returncode:
        _draw(out)


def _draw_named() -> None:
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
