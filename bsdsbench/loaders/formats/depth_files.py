"""Files of depth maps -> inputs.

| what | file |
|---|---|
| predicted depth | a picture (16 bits, float), .npy, or .npz, .mat, .h5, .dpt with one map, or one of the names below |
| annotated depth | the same; or .npz, .mat, .h5 with `depth` and what there is of `edges`, `valid`, `matte`; or the struct `data` of iBims-1 |

Values are kept as they are in the file: what they mean (depth or its inverse, a scale) the metric's
options say. A file of one map without a name may also hold edges or a matte; that too is an option.
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.arguments import Bool
from bsdsbench.io import FaultError, PathLike, ReadBytes, check_size, read_bytes, reading
from bsdsbench.loaders.formats.pictures import plane
from bsdsbench.loaders.masks import binarise
from bsdsbench.text import listed

_DEPTH_NAMES = (
    "depth",
    "pred_depths",
    "pred_depth",
    "depth_pred",
    "disparity",
    "pred",
    "prediction",
    "",
)
# Maps in iBims-1's struct with 1 at valid pixels
_VALID_NAMES = ("valid", "mask_invalid", "mask_transp")
_MATTE = 0.1  # pixels above this fraction are in the object (ml-depth-pro)
_DPT_MARK = 202021.25  # the first number of a .dpt file


def predicted_depth(arrays: Mapping[str, object], shape: tuple[int, int]) -> dict[str, object]:
    """Return the depth map of a file, as a part of a prediction. `shape` is not used."""
    return {"depth": _find_depth_map(arrays, needed=True)}


def annotated_depth(arrays: Mapping[str, object], path: Path) -> dict[str, object]:
    """Return the depth, edges, valid pixels and matte of a file, as parts of a ground truth."""
    inner = arrays.get("data")
    arrays = inner if isinstance(inner, dict) else arrays
    names = [name for name in (*_VALID_NAMES, "edges", "matte") if name in arrays]
    maps = {name: plane(arrays[name], name) for name in names}
    valid = [maps[name] != 0 for name in _VALID_NAMES if name in maps]
    return {
        "boundaries": (maps["edges"] != 0,) if "edges" in maps else (),
        "depth": _find_depth_map(arrays, needed=not maps.keys() & {"edges", "matte"}),
        "valid": np.logical_and.reduce(valid) if valid else None,
        "mask": matte_mask(maps["matte"]) if "matte" in maps else None,
    }


def matte_mask(matte: NDArray[Any]) -> Bool:
    """Return the pixels at which a matte is above a tenth of white. Raises DataError."""
    return binarise(matte, _MATTE, "matte")


def _find_depth_map(variables: Mapping[str, object], needed: bool) -> NDArray[Any] | None:
    """Return the only array, or the array with a name of depth, or None if there is none. Raises
    FaultError if the depth is `needed` and absent.
    """
    arrays = {k: a for k, a in variables.items() if isinstance(a, np.ndarray)}
    names = [*arrays] if len(arrays) == 1 and needed else [k for k in _DEPTH_NAMES if k in arrays]
    if needed and not names:
        raise FaultError(f"has {listed(sorted(arrays))}, expected one array, or one named depth")
    return plane(arrays[names[0]], "depth") if names else None


def read_dpt(path: PathLike, read: ReadBytes = read_bytes) -> NDArray[np.float32]:
    """Return the map of a .dpt file (MPI Sintel): a mark, columns, rows, then float32 by row."""
    data = read(path)
    with reading(path, "a depth map .dpt"):
        head = np.frombuffer(data[:12].ljust(12), [("mark", "<f4"), ("size", "<i4", 2)])[0]
        if head["mark"] != np.float32(_DPT_MARK):
            raise FaultError("does not start with 202021.25, expected a .dpt file of MPI Sintel")
        cols, rows = head["size"].tolist()
        check_size((rows, cols), 4)
        if min(rows, cols) < 1 or len(data) != 12 + 4 * rows * cols:
            fault = f"{len(data)} bytes for {rows} x {cols} pixels"
            raise FaultError(f"{fault}, expected 12 and 4 each")
        return np.frombuffer(data[12:], "<f4").reshape(rows, cols).astype(np.float32)
