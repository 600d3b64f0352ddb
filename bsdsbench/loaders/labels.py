"""Label maps to boundaries."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.arguments import Bool, given_array
from bsdsbench.errors import ShapeError


def seg2bdry(labels: NDArray[Any], valid: Bool | None = None) -> Bool:
    """Return the boundary pixels of a label map, at image size.

    A pixel is boundary where its label differs from the pixel below, to the right or diagonally
    below-right; neighbours outside the image count as equal, and so do void ones.

    Parameters
    ----------
    labels : array
        (H, W), any integer or bool dtype; the values only need to differ between regions.
    valid : array or None
        (H, W) bool, False where pixels are void, which are no boundary; default: none is.

    Returns
    -------
    array
        Bool (H, W); an empty map gives an empty map.

    Raises
    ------
    ShapeError
        Unless 2-D.

    References
    ----------
    Source: official seg2bdry.m, 'imageSize'.

    Examples
    --------
    >>> import numpy as np
    >>> import bsdsbench as bb
    >>> bb.seg2bdry(np.array([[1, 1, 2], [1, 1, 2]])).astype(int).tolist()
    [[0, 1, 0], [0, 1, 0]]
    """
    labels = given_array(labels, "label map")
    if labels.ndim != 2:
        raise ShapeError(f"label map: shape {labels.shape}, expected (H, W)")
    edge = np.zeros(labels.shape, np.bool_)
    for pixel, neighbour in (
        (np.s_[:-1], np.s_[1:]),
        (np.s_[:, :-1], np.s_[:, 1:]),
        (np.s_[:-1, :-1], np.s_[1:, 1:]),
    ):
        differs = labels[pixel] != labels[neighbour]
        edge[pixel] |= differs if valid is None else differs & valid[pixel] & valid[neighbour]
    return edge
