"""Reading files of depth maps. The values are kept as stored.

| content | file |
|---|---|
| predicted depth | an image (16 bits, float), .npy or .dpt; or .npz, .mat, .h5 with one map, or with a map that has one of the names below |
| annotated depth | the same; or .npz, .mat, .h5 with `depth` and optionally `edges`, `valid`, `matte`; or the struct `data` of iBims-1 |

The options of the metric say what the values mean: depth or inverse depth, scale, edges, matte.
"""  # noqa: E501

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.arguments import Bools
from bsdsbench.images import labels_to_integers
from bsdsbench.io import FaultError, check_size
from bsdsbench.loaders.formats.pictures import to_plane
from bsdsbench.loaders.reading import binarise
from bsdsbench.text import join_names

_PREDICTED = ("pred_depths", "pred_depth", "depth_pred", "disparity", "pred", "prediction")
_DEPTHS = ("depth", *_PREDICTED, "")
# Maps in iBims-1's struct with 1 at valid pixels
_VALID_NAMES = ("valid", "mask_invalid", "mask_transp")
_MATTE = 0.1  # pixels above this fraction of white belong to the object (ml-depth-pro)
_DPT_MARK = 202021.25  # the first number of a .dpt file


def parse_predicted_depth(
    arrays: Mapping[str, object], shape: tuple[int, int]
) -> dict[str, object]:
    """Return the depth map of a file as the keyword argument "depth" (H, W) of Prediction.

    A file with one array may give it any name. Among several arrays, the depth map is the one with
    a name in _DEPTHS, such as "depth", "pred" or "disparity". If several have such names, it is the
    one with "pred" in its name. FaultError is raised if this leaves several maps or none. `shape`
    is unused (common signature of the parsers).
    """
    known = [name for name in _DEPTHS if name in arrays]
    predicted = [name for name in known if "pred" in name] or known
    if len(predicted) > 1:
        raise FaultError(f"has {join_names(predicted)}, expected one of them: the predicted depth")
    chosen = {name: arrays[name] for name in predicted} or arrays
    return {"depth": _find_depth_map(chosen, needed=True)}


def parse_annotated_depth(arrays: Mapping[str, object], path: Path) -> dict[str, object]:
    """Convert the maps of an annotated depth file to keyword arguments of GroundTruth.

    - boundaries: one map, True where the variable `edges` is nonzero; () without it
    - depth: the depth map; None if the file has none, but `edges` or a `matte`
    - valid: True where all of `valid`, `mask_invalid` and `mask_transp` that are present are
      nonzero (1 at valid pixels in iBims-1); None if there are none
    - mask: True where the variable `matte` exceeds a tenth of white; None if there is none

    If the file has a struct `data` (iBims-1), its fields are used instead of the variables. `path`
    is unused (common signature of the parsers). Raises FaultError if there are no such maps.
    """
    data = arrays.get("data")
    variables = data if isinstance(data, dict) else arrays
    names = [name for name in (*_VALID_NAMES, "edges", "matte") if name in variables]
    maps = {name: to_plane(variables[name], name) for name in names}
    valid_maps = [maps[name] != 0 for name in _VALID_NAMES if name in maps]
    return {
        "boundaries": (labels_to_integers(maps["edges"], "edges") != 0,) if "edges" in maps else (),
        "depth": _find_depth_map(variables, needed=not maps.keys() & {"edges", "matte"}),
        "valid": np.logical_and.reduce(valid_maps) if valid_maps else None,
        "mask": binarise_matte(maps["matte"]) if "matte" in maps else None,
    }


def binarise_matte(matte: NDArray[Any], what: str = "matte") -> Bools:
    """Threshold a matte (an opacity map, named `what` in errors) at a tenth of white."""
    return binarise(matte, _MATTE, what)


def _find_depth_map(variables: Mapping[str, object], needed: bool) -> NDArray[Any] | None:
    """Return the (H, W) depth map of a file: its first variable with a name in _DEPTHS.

    The names begin with "depth". If `needed` is True, the only array of a file is accepted under
    any name, and FaultError is raised if there is no depth map. Otherwise, the result is then None.
    """
    arrays = {name: a for name, a in variables.items() if isinstance(a, np.ndarray)}
    names = [*arrays] if needed and len(arrays) == 1 else _DEPTHS
    for name in names:
        if name in arrays:
            return to_plane(arrays[name], "depth")
    if needed:
        has = f"has {join_names(sorted(arrays))}"
        raise FaultError(f"{has}, expected one array, or one named depth")
    return None


def decode_dpt(data: bytes) -> NDArray[np.float32]:
    """Decode a .dpt file of MPI Sintel to a depth map, float32 (rows, columns).

    The file is little-endian: the float32 202021.25, the numbers of columns and rows as int32, and
    the values as float32, row by row.
    """
    mark, cols, rows = struct.unpack("<fii", data[:12].ljust(12))  # padded if it is cut short
    if mark != _DPT_MARK:
        raise FaultError("does not start with 202021.25, expected a .dpt file of MPI Sintel")
    check_size((rows, cols), 4)
    if min(rows, cols) < 1 or len(data) != 12 + 4 * rows * cols:
        fault = f"{len(data)} bytes for {rows} x {cols} pixels"
        raise FaultError(f"{fault}, expected 12 and 4 each")
    return np.frombuffer(data[12:], "<f4").reshape(rows, cols).astype(np.float32)
