"""The plots of a run, drawn by a second process: matplotlib takes longer to import than numba."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any


@contextmanager
def plots_in(out: str | None) -> Iterator[Callable[[Any], None] | None]:
    """Give what begins to draw a run's pr.png and pr.svg into OUT; on leaving they are there.

    Should the second process fail, they are drawn here.
    """
    if not out:
        yield None
        return
    begun = []
    code = "from bsdsbench.plotting.beside import draw; draw()"
    with second_python(code, stdin=subprocess.PIPE) as other:

        def begin(run: Any) -> None:
            from bsdsbench.scores.counts import Counts, ImageRecord

            begun.append(run)
            # Scores in place of counts, which take much longer to send
            scores = {name: run.score(name) for name in run.metrics}
            records, none = [], dict.fromkeys(scores, Counts())
            for r in run.records:
                records.append(ImageRecord(r.image_id, r.size, none, truth=r.truth, form=r.form))
            with suppress(BrokenPipeError), other.stdin as stream:
                pickle.dump((replace(run, records=records, reported=scores), out), stream)

        try:
            yield begin
        finally:
            if not begun:
                other.kill()
    if begun and other.returncode:
        from bsdsbench.plotting.figures import plot_result

        plot_result(begun[0], Path(out))


def second_python(code: str, stdin: int = subprocess.DEVNULL) -> Any:
    """A `subprocess.Popen` that runs `code` with the modules of this process.

    It shows nothing and does not look for garbage.
    """
    path = os.pathsep.join(filter(None, sys.path))
    # Python puts the current folder first, as an empty word: what lies there is not to be imported
    begin = "import gc, sys; gc.disable(); sys.path[:] = filter(None, sys.path); "
    words, env = [sys.executable, "-c", begin + code], {**os.environ, "PYTHONPATH": path}
    quiet = subprocess.DEVNULL
    return subprocess.Popen(words, env=env, stdin=stdin, stdout=quiet, stderr=quiet)


def draw() -> None:
    """Draw the run that comes from standard input, after the import of all that draws."""
    import matplotlib.backends.backend_agg
    import matplotlib.backends.backend_svg
    import matplotlib.style  # noqa: F401 - it would import them late

    from bsdsbench.plotting.figures import plot_result

    run, out = pickle.load(sys.stdin.buffer)
    plot_result(run, Path(out))
    os._exit(0)  # there is nothing to tidy up
