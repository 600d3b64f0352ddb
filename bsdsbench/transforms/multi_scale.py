"""Multi-scale testing: the mean of a detector's maps of a picture at several sizes.

As in the test programs of RCF and of those after it: the picture is resized by each scale, the
detector is called, its map is resized back to the picture's size, and the maps are averaged, before
any NMS. Resizing is bilinear, or by the cubic kernel, without antialiasing, as OpenCV and PyTorch
do it. With `flip` the mirrored picture is a second one at each scale.
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
from bsdsbench.transforms.resize import resampled

# From an (H, W, 3) uint8 picture to soft maps or labels
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
    """How a detector is called at several scales.

    Parameters
    ----------
    scales : tuple of float
        By which a picture's sides are multiplied.
    flip : bool
        The mirrored picture counts too.
    resize : "bilinear" or "cubic"
        The kernel for pictures and maps.

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
        """Return what a caller asks for; None where that is one call of the detector.

        `scales` are numbers, their text, or a name of `SCALES`. Raises DataError.
        """
        values: Any = [1.0] if scales is None else scales
        if isinstance(values, str):
            values = SCALES.get(values.strip().lower(), values.split(","))
        try:
            several = tuple(float(v) for v in (values if not is_number(values) else [values]))
        except (TypeError, ValueError):
            several = ()
        fit = all(0 < v <= MAX_SCALE for v in several) and len({*several}) == len(several)
        if not fit or not 1 <= len(several) <= MAX_SCALES:
            raise DataError(
                f"scales {scales!r}: expected 1 to {MAX_SCALES} different numbers up to "
                f"{MAX_SCALE}, such as .5,1,1.5, or one of {', '.join(SCALES)}"
            )
        if resize not in get_args(Resize):
            raise DataError(f"resize {resize!r}: expected one of {', '.join(get_args(Resize))}")
        if several == (1.0,) and not flip:
            return None
        return cls(several, flip, "cubic" if resize == "cubic" else "bilinear")

    def __str__(self) -> str:
        """Return the text of signatures and of run.json: ".5,1,1.5,flip,cubic"."""
        words = [*map(number_text, self.scales), *["flip"] * self.flip]
        return ",".join([*words, *["cubic"] * (self.resize == "cubic")])

    def of(self, detector: Detector) -> Detector:
        """Return the detector that calls `detector` at every scale and gives the mean, float64."""

        def called(picture: NDArray[np.uint8]) -> F8:
            shape, maps = picture.shape[:2], list[F8]()
            for scale in self.scales:
                sides = [max(1, int(np.rint(side * scale))) for side in shape]
                seen = picture
                if scale != 1:
                    resized = resampled(picture, (sides[0], sides[1]), self.resize, scale)
                    seen = np.clip(np.rint(resized), 0, 255).astype(np.uint8)
                for mirrored in (False, True)[: 1 + self.flip]:
                    given = np.ascontiguousarray(seen[:, ::-1] if mirrored else seen)
                    soft = _soft(detector(given), given.shape[:2])
                    soft = soft[:, ::-1] if mirrored else soft
                    maps.append(resampled(soft, shape, self.resize) if scale != 1 else soft)
            return np.clip(np.mean(maps, axis=0), 0.0, 1.0)

        return called


def _soft(answer: object, shape: tuple[int, ...]) -> F8:
    """Return a detector's soft map as float64 in [0, 1]. Raises DataError for anything else."""
    array = np.asarray(answer)
    if isinstance(answer, list | tuple) or array.dtype.kind in "iO" or array.dtype.itemsize > 8:
        raise DataError("returned labels, expected soft maps at several scales")
    if array.shape != shape:
        raise DataError(f"returned shape {array.shape} for a picture of {shape}")
    return np.asarray(unit(check_soft_map(array, "soft map")), np.float64)
