"""Files of depth maps -> inputs. Values are kept as they are in the file.

| what | file |
|---|---|
| predicted depth | a picture (16 bits, float), .npy, or .npz, .mat, .h5, .dpt with one map, or one of the names below |
| annotated depth | the same; or .npz, .mat, .h5 with `depth` and what there is of `edges`, `valid`, `matte`; or the struct `data` of iBims-1 |

The metric's options say what the values mean: depth or its inverse, a scale, edges, a matte.
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.arguments import Bool
from bsdsbench.io import FaultError, check_size
from bsdsbench.loaders.formats.pictures import to_plane
from bsdsbench.loaders.reading import binarise
from bsdsbench.text import listed

_PREDICTED = ("pred_depths", "pred_depth", "depth_pred", "disparity", "pred", "prediction")
_DEPTHS = ("depth", *_PREDICTED, "")
# Maps in iBims-1's struct with 1 at valid pixels
_VALID_NAMES = ("valid", "mask_invalid", "mask_transp")
_MATTE = 0.1  # pixels above this fraction are in the object (ml-depth-pro)
_DPT_MARK = 202021.25  # the first number of a .dpt file


def parse_predicted_depth(
    arrays: Mapping[str, object], shape: tuple[int, int]
) -> dict[str, object]:
    """Return {"depth": (H, W)}, the depth map of a file, as arguments of Prediction.

    `arrays` are the variables of the file by name. Readers of other predictions need `shape`.
    """
    return {"depth": _find_depth_map(arrays, needed=True)}


def parse_annotated_depth(arrays: Mapping[str, object], path: Path) -> dict[str, object]:
    """Return the maps of an annotated depth file as arguments of GroundTruth.

    - boundaries: the pixels of `edges` that are not 0, as one annotator's map, or () without edges
    - depth: the depth map; None if the file has edges or a matte instead
    - valid: the pixels that are not 0 in any map of _VALID_NAMES, or None without such a map
    - mask: the pixels at which `matte` is above a tenth, or None without a matte

    `arrays` are the variables of the file by name; in iBims-1's files they are the fields of the
    struct `data`. Readers of other ground truth need `path`.
    """
    struct = arrays.get("data")
    variables = struct if isinstance(struct, dict) else arrays
    names = [name for name in (*_VALID_NAMES, "edges", "matte") if name in variables]
    maps = {name: to_plane(variables[name], name) for name in names}
    valid_maps = [maps[name] != 0 for name in _VALID_NAMES if name in maps]
    return {
        "boundaries": (maps["edges"] != 0,) if "edges" in maps else (),
        "depth": _find_depth_map(variables, needed=not maps.keys() & {"edges", "matte"}),
        "valid": np.logical_and.reduce(valid_maps) if valid_maps else None,
        "mask": binarise_matte(maps["matte"]) if "matte" in maps else None,
    }


def binarise_matte(matte: NDArray[Any]) -> Bool:
    """Return the object of a matte (H, W): bool (H, W), True above a tenth of white."""
    return binarise(matte, _MATTE, "matte")


def _find_depth_map(variables: Mapping[str, object], needed: bool) -> NDArray[Any] | None:
    """Return the depth map (H, W) among the variables of a file.

    This is the only array, if the depth is `needed`, or else the first array named in _DEPTHS.
    Without such an array, returns None, or raises FaultError if the depth is needed.
    """
    arrays = {name: a for name, a in variables.items() if isinstance(a, np.ndarray)}
    is_single = needed and len(arrays) == 1
    for name in arrays if is_single else _DEPTHS:
        if name in arrays:
            return to_plane(arrays[name], "depth")
    if needed:
        raise FaultError(f"has {listed(sorted(arrays))}, expected one array, or one named depth")
    return None


def decode_dpt(data: bytes) -> NDArray[np.float32]:
    """Return the depth map in a .dpt file of MPI Sintel, float32 (rows, columns).

    The file holds, little-endian: the float32 202021.25, columns and rows as int32, then the values
    as float32, row by row.
    """
    head = np.frombuffer(data[:12].ljust(12), [("mark", "<f4"), ("size", "<i4", 2)])[0]
    if head["mark"] != np.float32(_DPT_MARK):
        raise FaultError("does not start with 202021.25, expected a .dpt file of MPI Sintel")
    cols, rows = head["size"].tolist()
    check_size((rows, cols), 4)
    if min(rows, cols) < 1 or len(data) != 12 + 4 * rows * cols:
        fault = f"{len(data)} bytes for {rows} x {cols} pixels"
        raise FaultError(f"{fault}, expected 12 and 4 each")
    return np.frombuffer(data[12:], "<f4").reshape(rows, cols).astype(np.float32)
