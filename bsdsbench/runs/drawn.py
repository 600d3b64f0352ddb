"""Plots, overlays and reports beside the result they were drawn from: they go when it goes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bsdsbench.files.errors import DataError
from bsdsbench.files.locking import WAIT
from bsdsbench.files.manifest import DRAWN, Manifest, digest, is_run
from bsdsbench.files.writing import inside, write_atomic
from bsdsbench.runs.evaluation import Evaluation
from bsdsbench.runs.store import run_locked


def write_drawn(
    runs: Sequence[Any], folder: Path, names: Sequence[str], contents: Iterable[bytes | str]
) -> None:
    """Write files drawn from runs into `folder`, which may be that of one of them.

    Then its manifest names them, and the next result there deletes them. In the folder of another
    run they are files of the user's, and plots of a result that is no longer there are not written.
    Raises OSError, DataError for a link on the way, RunLockedError.
    """
    root = next((f for f in (folder, folder.absolute().parent) if is_run(f)), None)
    if root is None:
        for name, content in zip(names, contents, strict=True):
            write_atomic(inside(folder, name), content)
        return
    below = "" if root == folder else f"{folder.name}/"
    names = [f"{below}{name}" for name in names]
    with run_locked(root, WAIT):
        found = _manifest_of(root, runs)
        if found is None and set(names) <= set(DRAWN):
            return
        if found is not None:
            found.files.update(dict.fromkeys(names, ""))  # ours from before they are there
            found.write()
        for name, content in zip(names, contents, strict=True):
            data = content.encode("utf-8") if isinstance(content, str) else content
            write_atomic(inside(root, name), data)
            if found is not None:
                found.files[name] = digest(data)
        if found is not None:
            found.write()


def _manifest_of(folder: Path, runs: Sequence[Any]) -> Manifest | None:
    """The manifest of a folder that holds the result of one of the runs, else None."""
    try:
        there = Evaluation.load(folder)
    except DataError:
        return None
    mine = any(isinstance(run, Evaluation) and run.equals(there) for run in runs)
    return Manifest.read(folder) if mine else None
