"""A folder of raw maps to a folder of thin ones."""

from __future__ import annotations

from pathlib import Path

from bsdsbench.errors import DataError
from bsdsbench.io import Progress, png_bytes, write_atomic
from bsdsbench.loaders import load_prediction
from bsdsbench.loaders.formats.pictures import FORMATS, id_of
from bsdsbench.loaders.pairing import find_files
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.text import show
from bsdsbench.transforms.maps import prepare


def nms_files(
    source: str | Path, target: str | Path, protocol: Protocol, progress: Progress | None = None
) -> int:
    """Write the NMS of every soft map in a folder as PNG into another; returns how many.

    The other is made, and files of the same name are replaced, each whole or not at all. The depth
    is nms_params.bits, 8 where that is 0. Raises DataError with all faults together, for files that
    hold no soft map, two files of one id, or a target that is the source.
    """
    source, target = Path(source), Path(target)
    files = [p for p in find_files(source, FORMATS) if p.parent == source]
    if not files:
        raise DataError(f"{show(source)}: no soft maps, expected a folder of them")
    if target.resolve() == source.resolve():
        raise DataError(f"{show(target)}: the same as the input, expected another folder")
    made, faults = dict[str, Path](), list[DataError]()
    for path in files:
        if made.setdefault(id_of(path), path) is not path:
            faults.append(DataError(f"{show(path)}: {made[id_of(path)].name} has the same id"))
    protocol = protocol.replace(nms=True, nms_params={"bits": protocol.nms_params.bits or 8})
    for done, (image_id, path) in enumerate(made.items(), 1):
        try:
            pixels = prepare(load_prediction(path).soft, protocol)
            write_atomic(target / f"{image_id}.png", png_bytes(pixels))
        except DataError as error:
            faults.append(error)
        if progress:
            progress(done, len(made), path.name)
    if faults:
        raise DataError.collect(faults)
    return len(made)
