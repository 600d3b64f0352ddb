"""A folder of raw maps to a folder of thin ones."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bsdsbench.errors import DataError, Setting
from bsdsbench.images import Map, unit
from bsdsbench.io import Progress, png_bytes, write_atomic
from bsdsbench.loaders.formats.pictures import FORMATS, id_of
from bsdsbench.loaders.pairing import find_files
from bsdsbench.loaders.readers import load_prediction
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs.keywords import StrPath
from bsdsbench.text import listed, show
from bsdsbench.transforms.maps import prepare


def nms_files(
    source: StrPath | Sequence[StrPath],
    target: StrPath,
    protocol: Protocol,
    progress: Progress | None = None,
) -> int:
    """Write the NMS of every soft map in a folder as PNG into another; returns how many.

    Of several folders the mean of the maps of an image is taken. The other is made, and files of
    the same name are replaced, each whole or not at all. The depth is nms_params.bits, 8 where that
    is 0. Raises DataError with all faults together, for files that hold no soft map, two files of
    one id, folders of other images or sizes, or a target that is a source.
    """
    sources = [Path(folder) for folder in _listed(source)]
    target, faults = Path(target), list[DataError]()
    folders = [_maps_by_id(folder, faults) for folder in sources]
    if target.resolve() in [folder.resolve() for folder in sources]:
        raise DataError(f"{show(target)}: the same as the input, expected another folder")
    for folder, files in zip(sources, folders, strict=True):
        if other := sorted(files.keys() ^ folders[0].keys()):
            lacking = folder if other[0] not in files else sources[0]
            raise DataError(f"{show(lacking)}: no map of {listed(other)}")
    protocol = protocol.replace(nms=True, nms_params={"bits": protocol.nms_params.bits or 8})
    for done, image_id in enumerate(folders[0], 1):
        try:
            soft = _mean_map([files[image_id] for files in folders])
            write_atomic(target / f"{image_id}.png", png_bytes(prepare(soft, protocol)))
        except DataError as error:
            faults.append(error)
        if progress:
            progress(done, len(folders[0]), image_id)
    if faults:
        raise DataError.collect(faults)
    return len(folders[0])


def _listed(source: StrPath | Sequence[StrPath]) -> Sequence[StrPath]:
    """Return one folder or several as a sequence."""
    return [source] if isinstance(source, str | os.PathLike) else source


def refuse_maps_in(folder: StrPath) -> None:
    """Raise DataError if a folder for a result holds maps, which may be meant as one more input."""
    if Path(folder).is_dir() and find_files(Path(folder), FORMATS):
        raise DataError(
            f"{show(folder)}: holds maps, expected a new folder for the result",
            fix=Setting("out", ..., "names it, and takes this one as an input too"),
        )


def _maps_by_id(folder: Path, faults: list[DataError]) -> dict[str, Path]:
    """Return the files of a folder by image id; two of one id are put to the faults."""
    files = [p for p in find_files(folder, FORMATS) if p.parent == folder]
    if not files:
        raise DataError(f"{show(folder)}: no soft maps, expected a folder of them")
    by_id = dict[str, Path]()
    for path in files:
        if by_id.setdefault(id_of(path), path) is not path:
            faults.append(DataError(f"{show(path)}: {by_id[id_of(path)].name} has the same id"))
    return by_id


def _mean_map(paths: Sequence[Path]) -> Map:
    """Return the map of one file unchanged, or the mean of several maps of one size, in float64."""
    maps = [load_prediction(path).soft for path in paths]
    for path, soft in zip(paths, maps, strict=True):
        if soft.shape != maps[0].shape:
            sizes = f"{soft.shape}, {show(paths[0])} has {maps[0].shape}"
            raise DataError(f"{show(path)}: {sizes}, expected maps of one size to average")
    mean: Map = np.mean([unit(soft) for soft in maps], axis=0) if len(maps) > 1 else maps[0]
    return mean
