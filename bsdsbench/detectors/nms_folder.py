"""Apply non-maximum suppression to a folder of soft maps."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bsdsbench.errors import DataError, InputWarning, Problem, Setting, warn
from bsdsbench.images import Map, to_unit_range
from bsdsbench.io import Progress, png_bytes, write_atomic
from bsdsbench.loaders.formats.pictures import FORMATS, find_files, id_of
from bsdsbench.loaders.readers import load_prediction
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs.fit import is_suppressed
from bsdsbench.runs.keywords import StrPath
from bsdsbench.runs.sanity import N_CHECKED, warning_of_maps
from bsdsbench.text import join_names, show
from bsdsbench.transforms.maps import prepare


def nms_files(
    source: StrPath | Sequence[StrPath],
    target: StrPath,
    protocol: Protocol,
    progress: Progress | None = None,
) -> int:
    """Apply NMS to the soft maps in a folder, write one PNG per image, and return their number.

    source: a folder, or several folders with maps of the same images, which are averaged first.
    target: folder for the PNGs. Files of the same names are replaced, unless they look like raw
        maps. Others cause a warning.
    protocol: its invert, normalise and nms_params are applied. The PNGs have nms_params.bits bits
        (8 if that is 0).
    progress: called after each image with (images done, number of images, image id).

    Raises DataError before anything is written if a folder has no maps, if `target` lies in one of
    the sources or has raw maps of the same names, or if the folders contain different images. If a
    file cannot be processed, the others still are; such errors, and two files with the same id, are
    raised together at the end. An InputWarning says if most of the first maps are thin already, or
    bright (inverted?).
    """
    folders = [source] if isinstance(source, str | os.PathLike) else source
    sources, target = [Path(folder) for folder in folders], Path(target)
    errors: list[DataError] = []  # also filled by `_maps_by_id`
    files_of_folders = [_maps_by_id(folder, errors) for folder in sources]  # image id -> path, each
    for folder in sources:
        if folder.resolve() in (target.resolve(), *target.resolve().parents):
            has = f"is inside the input {show(folder)}"
            raise DataError(f"{show(target)}: {has}, expected a folder outside it")
    ids = files_of_folders[0].keys()
    for folder, files in zip(sources, files_of_folders, strict=True):
        unpaired = sorted(files.keys() ^ ids)  # ids that only one of the two folders has
        if unpaired:
            incomplete = sources[0] if unpaired[0] in files else folder
            has = f"no map of {join_names(unpaired)}"
            raise DataError(Problem(show(incomplete), has, names=tuple(unpaired)))
    below = find_files(target, FORMATS) if target.is_dir() else []
    old = [path for path in below if path.parent == target]  # maps of earlier calls
    if others := sorted({id_of(path) for path in old} - ids):
        which = f"{show(target)}: also holds maps of earlier calls: {join_names(others)}"
        warn(InputWarning(f"{which}, expected only maps of {show(sources[0])}"))
    new_names = {f"{image_id}.png" for image_id in ids}
    _refuse_raw_maps([path for path in old if path.name in new_names])
    unthinned = protocol.replace(nms=False)  # inverts and normalises only
    protocol = protocol.replace(nms=True, nms_params={"bits": protocol.nms_params.bits or 8})
    thin, bright = list[str](), list[str]()  # those of the first N_CHECKED maps, by their ids
    for done, image_id in enumerate(ids, 1):
        try:
            soft = _mean_map([files[image_id] for files in files_of_folders])
            if done <= N_CHECKED:
                values = to_unit_range(prepare(soft, unthinned))
                if is_suppressed(values):
                    thin.append(image_id)
                if values.mean() > 2 / 3:
                    bright.append(image_id)
            thinned = prepare(soft, protocol)  # after inversion, normalisation and NMS
            write_atomic(target / f"{image_id}.png", png_bytes(thinned))
        except DataError as error:
            errors.append(error)
        if progress:
            progress(done, len(ids), image_id)
    n_checked = min(N_CHECKED, len(ids))
    for image_ids, has, fix in (
        (thin, "have thin edges already, which a second NMS breaks up", "give the raw maps"),
        (bright, "are bright, also off their edges", Setting("invert", not protocol.invert)),
    ):
        if 2 * len(image_ids) > n_checked:
            warn(warning_of_maps(has, image_ids, n_checked, fix))
    if errors:
        raise DataError.collect(errors)
    return len(ids)


def refuse_maps_in(folder: StrPath) -> None:
    """Raise DataError if the output folder of the command `nms --average` contains maps.

    The last folder that the user gives is taken as the output folder. If it contains maps, it is
    probably another input, and the user forgot to give an output folder.
    """
    if Path(folder).is_dir() and find_files(Path(folder), FORMATS):
        has = "holds maps, expected a new folder, as the last one is for the result"
        raise DataError(f"{show(folder)}: {has}")


def _refuse_raw_maps(replaced: Sequence[Path]) -> None:
    """Raise DataError if most of the first maps that would be replaced have not gone through NMS.

    They are probably inputs: a user may have taken the last folder for a second one.
    """
    checked = replaced[:N_CHECKED]
    n_raw = 0
    for path in checked:
        values = to_unit_range(load_prediction(path).soft)
        n_raw += bool(values.any()) and not is_suppressed(values)
    if 2 * n_raw > len(checked):
        has = f"would replace {join_names([path.name for path in replaced])}, no results of NMS"
        raise DataError(f"{show(replaced[0].parent)}: {has}, expected a new folder")


def _maps_by_id(folder: Path, errors: list[DataError]) -> dict[str, Path]:
    """Return {image id: path} of the maps directly in a folder.

    If two maps have the same id, the first is used, and an error is appended to `errors`.
    """
    files = [path for path in find_files(folder, FORMATS) if path.parent == folder]
    if not files:
        has = "has no soft maps" if folder.is_dir() else "does not exist"
        raise DataError(f"{show(folder)}: {has}, expected a folder of soft maps")
    path_of = dict[str, Path]()
    for path in files:
        first = path_of.setdefault(id_of(path), path)  # the first map of this id
        if first is not path:
            errors.append(DataError(f"{show(path)}: {first.name} has the same id"))
    return path_of


def _mean_map(paths: Sequence[Path]) -> Map:
    """Return the mean of an image's maps, in [0, 1]; a single map keeps its dtype and scale."""
    maps = [load_prediction(path).soft for path in paths]
    for path, soft in zip(paths, maps, strict=True):
        if soft.shape != maps[0].shape:
            sizes = f"{soft.shape}, {show(paths[0])} has {maps[0].shape}"
            raise DataError(f"{show(path)}: {sizes}, expected maps of one size to average")
    if len(maps) == 1:
        return maps[0]
    scaled = [to_unit_range(soft) for soft in maps]  # floats in [0, 1]
    return np.asarray(np.mean(scaled, axis=0))
