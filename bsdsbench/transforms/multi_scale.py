"""Multi-scale testing: the average of a detector's maps of an image at several scales.

As in the test code of RCF and later methods, the image is resized by each scale factor, and the
detector's map of it is resized back to the original size. The maps are averaged before any NMS.
Resizing is bilinear or cubic, without antialiasing, as in OpenCV and PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast, get_args

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from bsdsbench.arguments import Floats, check_word
from bsdsbench.errors import DataError
from bsdsbench.images import check_soft_map, one_map, to_unit_range
from bsdsbench.protocol.fields import is_number
from bsdsbench.text import number_text
from bsdsbench.transforms.resize import Resize, resample

# Converts an (H, W, 3) uint8 image to soft maps or labels
Detector = Callable[[NDArray[np.uint8]], Any]

MAX_SCALE, MAX_SCALES = 8, 16
# The scales used in each method's test code
SCALES = {
    "rcf": (0.5, 1.0, 1.5),
    "pidinet": (0.5, 1.0, 1.5),
    "uaed": (0.6, 1.0, 1.6),
    "edter": (0.5, 0.75, 1.0, 1.25, 1.5, 1.75),
}


@frozen
class MultiScale:
    """The settings of multi-scale testing."""

    scales: tuple[float, ...] = (1.0,)  # scale factors for height and width
    flip: bool = False  # call the detector on the mirrored image too
    resize: Resize = "bilinear"  # interpolation of images and maps

    @classmethod
    def given(
        cls, scales: str | float | Sequence[float] | None, flip: bool, resize: str
    ) -> MultiScale | None:
        """Build the settings from user options; None for one call at scale 1 without mirroring.

        scales: a number, several numbers, text such as ".5,1,1.5", a key of SCALES, or None for 1.
        flip: whether to call the detector on the mirrored image too.
        resize: "bilinear" or "cubic".

        Raises DataError for another `resize`, or if `scales` are not 1 to MAX_SCALES distinct
        numbers above 0 and at most MAX_SCALE.
        """
        values: Any = 1.0 if scales is None else scales
        if isinstance(values, str):
            values = SCALES.get(values.strip().lower(), values.split(","))
        elif is_number(values):
            values = [values]
        try:
            numbers = tuple(float(value) for value in values)
        except (TypeError, ValueError):
            numbers = ()  # refused below
        are_in_range = all(0 < scale <= MAX_SCALE for scale in numbers)
        are_different = len(set(numbers)) == len(numbers)
        if not are_in_range or not are_different or not 1 <= len(numbers) <= MAX_SCALES:
            raise DataError(
                f"scales {scales!r}: expected 1 to {MAX_SCALES} different numbers up to "
                f"{MAX_SCALE}, such as 0.5,1,1.5, or one of {', '.join(SCALES)}"
            )
        kernel = cast(Resize, check_word(resize, "resize", get_args(Resize)))
        return None if numbers == (1.0,) and not flip else cls(numbers, flip, kernel)

    def __str__(self) -> str:
        """Return the settings as text for signatures and run.json: ".5,1,1.5,flip,cubic"."""
        words = [number_text(scale) for scale in self.scales]
        words += ["flip"] if self.flip else []
        words += ["cubic"] if self.resize == "cubic" else []
        return ",".join(words)

    def of(self, detector: Detector) -> Detector:
        """Wrap a detector into one that averages its maps over all scales.

        The new detector takes an image uint8 (H, W, 3) and returns float64 (H, W) in [0, 1]. If
        `flip` is True, the average includes the maps of the mirrored image, mirrored back. It
        raises DataError if `detector` does not return soft maps of the size of its image.
        """

        def mean_map(image: NDArray[np.uint8]) -> Floats:
            """Average the maps of `detector` over all scales and, if `flip`, both orientations."""
            shape = image.shape[:2]
            maps = list[Floats]()  # (H, W) each
            for scale in self.scales:
                scaled = self._scale_image(image, scale)  # resized by the factor `scale`
                scaled_maps = [_detect(detector, scaled)]
                if self.flip:  # mirrored, then mirrored back
                    scaled_maps.append(_detect(detector, scaled[:, ::-1])[:, ::-1])
                if scale != 1:
                    scaled_maps = [resample(m, shape, self.resize) for m in scaled_maps]
                maps += scaled_maps
            # Cubic interpolation may leave the range from 0 to 1
            return np.clip(np.mean(maps, axis=0), 0.0, 1.0)

        return mean_map

    def _scale_image(self, image: NDArray[np.uint8], scale: float) -> NDArray[np.uint8]:
        """Resize an image (H, W, 3) by a factor, to at least one row and one column."""
        if scale == 1:
            return image
        rows, cols = (max(1, int(np.rint(side * scale))) for side in image.shape[:2])
        resized = resample(image, (rows, cols), self.resize, scale)
        return np.clip(np.rint(resized), 0, 255).astype(np.uint8)


def _detect(detector: Detector, image: NDArray[np.uint8]) -> Floats:
    """Call a detector on an image (H, W, 3) and return its soft map, float64 (H, W) in [0, 1].

    Raises DataError if the detector returns a map of another size, or labels: a list, a tuple, or
    an array of integers other than uint8 and uint16.
    """
    answer = detector(np.ascontiguousarray(image))
    array, shape = np.asarray(answer), image.shape[:2]
    is_soft = array.dtype.kind in "bf" or array.dtype in (np.uint8, np.uint16)
    if isinstance(answer, list | tuple) or not is_soft:
        raise DataError("the detector returned labels, expected soft maps at several scales")
    if array.shape != shape:
        raise DataError(f"the detector returned shape {array.shape} for a picture of {shape}")
    return np.asarray(
        to_unit_range(check_soft_map(one_map(array, "soft map"), "soft map")), np.float64
    )
