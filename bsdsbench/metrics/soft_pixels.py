"""Right, false and missed pixels of a soft map, at every threshold at which its metric cuts it.

They are what overlays and the viewer draw. A pixel is right if it is on and some annotator marked
it, false if it is on and none did, missed if it is off and some did. Void is nothing on either
side.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.arguments import F8, I8, Bool
from bsdsbench.images import Map, without_void

MATCHED_PIXEL, FALSE_PIXEL, MISSED_PIXEL = 1, 2, 3


class SoftPixels(NamedTuple):
    """A soft map at thresholds, and the masks it is compared with.

    Parameters
    ----------
    thresholds : array
        f8 (T,), increasing.
    reached : array
        Integers (H, W): how many of the thresholds each pixel reaches. Of several maps that need
        not nest, such as the boundaries of segmentations, bool (T, H, W): the map of each.
    masks : array
        Bool (A, H, W), what each annotator marked.
    valid : array or None
        Bool (H, W), the pixels that are counted.
    beta2 : float
        beta^2 of F.
    """

    thresholds: F8
    reached: Map
    masks: Bool
    valid: Bool | None = None
    beta2: float = 1.0

    @property
    def matches(self) -> I8:
        """Return matched and all marked pixels, matched and all pixels that are on, i8 (T, 4).

        They are summed over annotators.
        """
        masks = without_void(self.masks, self.valid)
        right = np.sum([self._number_on(mask) for mask in masks], axis=0)
        counted = np.ones(masks.shape[1:], bool) if self.valid is None else self.valid
        on, marked = len(masks) * self._number_on(counted), np.count_nonzero(masks)
        return np.stack([right, np.full_like(right, marked), right, on], axis=-1)

    def _number_on(self, mask: Bool) -> I8:
        """Return how many pixels of a mask (H, W) are on at each threshold."""
        if self.reached.ndim == 3:
            return np.count_nonzero(self.reached & mask, axis=(1, 2))
        of_levels = np.bincount(self.reached[mask], minlength=self.thresholds.size + 1)
        return of_levels[::-1].cumsum()[::-1][1:]

    def classes(self, k: int) -> NDArray[np.uint8]:
        """Return what each pixel is at the k-th threshold, u1 (H, W), 0 for nothing."""
        on = self.reached[k] if self.reached.ndim == 3 else self.reached > k
        while_on, while_off = self.states()
        return np.where(without_void(on, self.valid), while_on, while_off)

    def states(self) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """Return what each pixel is while it is on, and while it is off, u1 (H, W) each."""
        marked = without_void(self.masks, self.valid).any(axis=0)
        while_on = np.where(marked, np.uint8(MATCHED_PIXEL), np.uint8(FALSE_PIXEL))
        return while_on, np.where(marked, np.uint8(MISSED_PIXEL), np.uint8(0))
