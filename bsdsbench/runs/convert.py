"""Folders of raw maps to folders of thin ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bsdsbench.files.bounded import png_bytes, write_atomic
from bsdsbench.files.errors import DataError
from bsdsbench.loaders import load_prediction
from bsdsbench.loaders.formats import FORMATS, id_of
from bsdsbench.loaders.pairing import find_files
from bsdsbench.metrics.maps import prepare
from bsdsbench.protocol.protocol import Protocol


def nms_files(
    source: str | Path,
    target: str | Path,
    protocol: Protocol,
    *,
    progress: Callable[[int, int, str], None] | None = None,
) -> int:
    """Write the NMS of a soft map, or of every one in a folder, as PNG; returns how many.

    target : a .png file for a file, a folder for a folder; it is made, and files of the same name
             are replaced, each whole or not at all
    The depth is nms_params.bits, 8 where that is 0. Raises DataError with all faults together, for
    files that hold no soft map, two files of one id, or a target that is the source.
    """
    source, target = Path(source), Path(target)
    if not source.exists():
        raise DataError(f"{source}: no such file or folder, expected soft maps")
    if source.is_dir():
        files = [p for p in find_files(source, FORMATS) if p.parent == source]
        goals = [target / f"{id_of(p)}.png" for p in files]
    else:
        files, goals = [source], [target]
        if target.suffix.lower() != ".png":
            raise DataError(f"{target}: expected a .png file, as the input is a file")
    if not files:
        raise DataError(f"{source}: no soft maps, expected at least one")
    doubled = sorted({g.name for g in goals if goals.count(g) > 1})
    if doubled or any(g.exists() and g.samefile(f) for f, g in zip(files, goals, strict=True)):
        where = f"two files for {doubled[0]}" if doubled else "the same as the input"
        raise DataError(f"{target}: {where}, expected another place for the result")
    bits = protocol.nms_params.bits or 8
    protocol = protocol.replace(nms=True, nms_params={"bits": bits})
    goals[0].parent.mkdir(parents=True, exist_ok=True)
    faults = []
    for done, (path, goal) in enumerate(zip(files, goals, strict=True), 1):
        try:
            soft = load_prediction(path).soft
            write_atomic(goal, png_bytes(prepare(soft, protocol)))
        except DataError as error:
            faults.append(error)
        if progress:
            progress(done, len(files), path.name)
    if faults:
        raise DataError.collect(faults)
    return len(files)
