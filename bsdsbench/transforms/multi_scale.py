"""Multi-scale testing: the mean of a detector's maps of an image at several scales.

This follows the test programs of RCF and later methods. The image is resized by each scale, the
detector is called, its map is resized back to the size of the image, and the maps are averaged,
before any NMS. Resizing is bilinear or cubic, without antialiasing, as in OpenCV and PyTorch. With
`flip` the detector is called on the mirrored image too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from bsdsbench.arguments import F8
from bsdsbench.errors import DataError
from bsdsbench.images import check_soft_map, unit
from bsdsbench.protocol.fields import is_number, number_text
from bsdsbench.transforms.resize import resample

# Converts an (H, W, 3) uint8 image to soft maps or labels
Detector = Callable[[NDArray[np.uint8]], Any]
Resize = Literal["bilinear", "cubic"]
MAX_SCALE, MAX_SCALES = 8, 16
# The scales of these methods' test programs
SCALES = {
    "rcf": (0.5, 1.0, 1.5),
    "pidinet": (0.5, 1.0, 1.5),
    "uaed": (0.6, 1.0, 1.6),
    "edter": (0.5, 0.75, 1.0, 1.25, 1.5, 1.75),
}


@frozen
class MultiScale:
    """The settings of calls of a detector at several scales.

    Parameters
    ----------
    scales : tuple of float
        Factors for the sides of an image.
    flip : bool
        Call the detector on the mirrored image too.
    resize : "bilinear" or "cubic"
        The kernel for images and maps.

    Examples
    --------
    >>> import numpy as np
    >>> gray = MultiScale((0.5, 1.0, 1.5)).of(lambda image: image[..., 0] / 255)
    >>> picture = np.full((7, 9, 3), 51, np.uint8)
    >>> bool(np.allclose(gray(picture), 0.2))
    True
    """

    scales: tuple[float, ...] = (1.0,)
    flip: bool = False
    resize: Resize = "bilinear"

    @classmethod
    def given(
        cls, scales: str | float | Sequence[float] | None, flip: bool, resize: str
    ) -> MultiScale | None:
        """Build the settings from options, or return None for a single call of the detector.

        `scales` are numbers, their text, or a name of `SCALES`. Raises DataError for other values.
        """
        values: Any = [1.0] if scales is None else scales
        if isinstance(values, str):
            values = SCALES.get(values.strip().lower(), values.split(","))
        try:
            numbers = tuple(float(v) for v in (values if not is_number(values) else [values]))
        except (TypeError, ValueError):
            numbers = ()
        in_range = all(0 < v <= MAX_SCALE for v in numbers)
        if not in_range or not 1 <= len({*numbers}) == len(numbers) <= MAX_SCALES:
            raise DataError(
                f"scales {scales!r}: expected 1 to {MAX_SCALES} different numbers up to "
                f"{MAX_SCALE}, such as .5,1,1.5, or one of {', '.join(SCALES)}"
            )
        if resize not in get_args(Resize):
            raise DataError(f"resize {resize!r}: expected one of {', '.join(get_args(Resize))}")
        if numbers == (1.0,) and not flip:
            return None
        return cls(numbers, flip, "cubic" if resize == "cubic" else "bilinear")

    def __str__(self) -> str:
        """Return the text in signatures and in run.json: ".5,1,1.5,flip,cubic"."""
        words = [number_text(scale) for scale in self.scales]
        if self.flip:
            words.append("flip")
        if self.resize == "cubic":
            words.append("cubic")
        return ",".join(words)

    def of(self, detector: Detector) -> Detector:
        """Return a detector that calls `detector` at every scale and returns the mean map."""

        def mean_map(image: NDArray[np.uint8]) -> F8:
            """Return the mean of the maps at all scales, float64 (H, W) in [0, 1]."""
            shape = image.shape[:2]
            maps = list[F8]()
            for scale in self.scales:
                resized = image
                if scale != 1:
                    rows, cols = (max(1, int(np.rint(side * scale))) for side in shape)
                    values = resample(image, (rows, cols), self.resize, scale)
                    resized = np.clip(np.rint(values), 0, 255).astype(np.uint8)
                for is_mirrored in (False, True) if self.flip else (False,):
                    view = np.ascontiguousarray(resized[:, ::-1] if is_mirrored else resized)
                    soft = _check_answer(detector(view), view.shape[:2])
                    soft = soft[:, ::-1] if is_mirrored else soft
                    maps.append(resample(soft, shape, self.resize) if scale != 1 else soft)
            return np.clip(np.mean(maps, axis=0), 0.0, 1.0)

        return mean_map


def _check_answer(answer: object, shape: tuple[int, ...]) -> F8:
    """Convert a detector's soft map to float64 in [0, 1]. Raises DataError for anything else."""
    array = np.asarray(answer)
    if isinstance(answer, list | tuple) or array.dtype.kind in "iO" or array.dtype.itemsize > 8:
        raise DataError("returned labels, expected soft maps at several scales")
    if array.shape != shape:
        raise DataError(f"returned shape {array.shape} for a picture of {shape}")
    return np.asarray(unit(check_soft_map(array, "soft map")), np.float64)
