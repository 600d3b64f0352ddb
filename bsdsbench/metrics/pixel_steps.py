"""The class of each pixel (correct, false positive, missed), for overlays and the viewer.

Classes are stored for a series of drawings, called steps. A step is a threshold or a part: an
object class or another item that the metric reports separately. Void pixels have no class.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.arguments import Bools, Floats, Ints
from bsdsbench.images import Map, without_void
from bsdsbench.scores.ratios import f_beta, ratio


class PixelClass(IntEnum):
    """The class of a pixel in a drawing. 0 is no class, 4 to 9 are those of `error_classes`."""

    MATCHED = 1
    FALSE = 2
    MISSED = 3
    OTHER = 10  # both false and missed: predicted as a different class or object


class LargestError(NamedTuple):
    """The outline pixel of an object that is farthest from the outline in the other map."""

    row: int
    col: int
    to_row: int  # row and column of the nearest pixel of the other outline
    to_col: int
    distance: float  # between the two pixels, in the unit of the metric's `spacing`


class StepScores(NamedTuple):
    """The scores of an image at T steps, (T,) each. F is NaN if both maps are empty."""

    recall: Floats
    precision: Floats
    f: Floats


class OverlaySteps(NamedTuple):
    """The class of each pixel at T steps (thresholds or parts), stored as changes between steps."""

    thresholds: Floats  # (T,), ascending; if the steps are parts, their numbers
    matches: Ints  # (T, 4): matched and all annotated pixels, matched and all predicted pixels
    n_changes: NDArray[np.uint16]  # (H, W), number of class changes of each pixel
    steps: NDArray[np.uint16]  # (changes,), step of each change; grouped by pixel in raster order
    classes: NDArray[np.uint8]  # (changes,), class of the pixel from that step on; 0: no class
    n_annotators: int = 1  # number of annotators that `matches` is summed over
    beta2: float = 1.0  # beta^2 of F
    areas: bool = True  # False if only lines are drawn, which hide little of the image
    parts: tuple[str, ...] = ()  # names of the parts; () if steps are thresholds
    measure: str = "F"  # the name under which F is displayed
    marks: tuple[LargestError | None, ...] = ()  # one per part, if distances are measured

    def at(self, k: int) -> NDArray[np.uint8]:
        """Return the `PixelClass` of each pixel at step `k` (from 0), uint8 (H, W); 0: no class."""
        # The changes starts[p] .. ends[p] - 1 belong to pixel p, in flat (row-major) order
        ends = np.cumsum(self.n_changes, dtype=np.int64)
        starts = ends - self.n_changes.ravel()
        # Of the first i changes, n_until_k[i] are made at step k or before
        n_until_k = np.concatenate([[0], np.cumsum(self.steps <= k)])
        n_made = n_until_k[ends] - n_until_k[starts]  # of each pixel
        classes = np.zeros(starts.size, np.uint8)
        has_changed = n_made > 0
        last_change = (starts + n_made - 1)[has_changed]
        classes[has_changed] = self.classes[last_change]
        return classes.reshape(self.n_changes.shape)

    @property
    def scores(self) -> StepScores:
        """The recall, precision and F of the image at each step, from `matches`."""
        matched_gt, total_gt, matched_pred, total_pred = self.matches.T
        recall, precision = ratio(matched_gt, total_gt), ratio(matched_pred, total_pred)
        f = f_beta(precision, recall, self.beta2)
        return StepScores(recall, precision, np.where(total_gt + total_pred > 0, f, np.nan))

    @property
    def best(self) -> int:
        """The index of the first step with the largest F; an undefined F counts as 0."""
        return int(np.nan_to_num(self.scores.f).argmax())


def steps_of_classes(
    thresholds: Floats,
    matches: Ints,
    classes: NDArray[np.uint8],
    shape: tuple[int, ...],
    pixel: Ints | slice = slice(None),
) -> OverlaySteps:
    """Store the classes of P pixels at T steps as a list of changes, starting from class 0.

    A pixel with the classes 1, 1, 3 has two changes: to 1 at step 0, and to 3 at step 2.

    thresholds, matches: as in `OverlaySteps`.
    classes: uint8 (P, T); 0 means no class.
    shape: (rows, columns) of the image.
    pixel: flat indices of the P pixels in the image, in ascending order; by default, all pixels.
    """
    n_pixels, n_steps = classes.shape
    is_change = classes != 0  # at step 0, and below at all others
    np.not_equal(classes[:, 1:], classes[:, :-1], out=is_change[:, 1:])
    change = np.flatnonzero(is_change)  # pixel by pixel, flat indices into `classes`
    start = np.searchsorted(change, n_steps * np.arange(n_pixels + 1))  # of each pixel
    n_changes = np.zeros(shape, np.uint16)
    n_changes.reshape(-1)[pixel] = np.diff(start)
    steps = (change % n_steps).astype(np.uint16)
    return OverlaySteps(thresholds, matches, n_changes, steps, classes.ravel()[change])


def steps_of_soft(
    thresholds: Floats, n_reached: Map, masks: Bools, valid: Bools | None = None, beta2: float = 1.0
) -> OverlaySteps:
    """Classify the pixels of a soft map at each of T ascending thresholds.

    A predicted pixel is correct if at least one annotator marked it, and false if none did. A pixel
    that is not predicted is missed if at least one annotator marked it, and otherwise has no class.

    n_reached: integers (H, W), number of thresholds at which each pixel is predicted. These are the
        lowest ones, steps 0 .. n_reached - 1.
    masks: bool (A, H, W), the pixels that each of A annotators marked.
    valid: bool (H, W), False at void pixels; None if no pixel is void.
    beta2: beta^2 of the F that is shown.
    """
    n_steps = thresholds.size
    masks, n_reached = without_void(masks, valid), without_void(n_reached, valid)
    # The class of each pixel while it is not predicted, and while it is
    is_marked = masks.any(axis=0)
    off_class = np.where(is_marked, np.uint8(PixelClass.MISSED), np.uint8(0))
    on_class = np.where(is_marked, np.uint8(PixelClass.MATCHED), np.uint8(PixelClass.FALSE))
    # A pixel has `on_class` until step n_reached, and `off_class` from then on. Before step 0 all
    # have class 0 (none), so there are at most two changes, listed by pixel
    first_class = np.where(n_reached > 0, on_class, off_class)
    turns_off = (n_reached > 0) & (n_reached < n_steps)
    is_change = np.stack([first_class > 0, turns_off], axis=-1)  # (H, W, 2)
    step_of_change = np.stack([np.zeros_like(n_reached), n_reached], axis=-1)
    new_class = np.stack([first_class, off_class], axis=-1)
    # Histograms of n_reached: marked pixels (once per annotator who marked them), and all pixels
    n_marked = masks.sum(axis=0).ravel()
    marked = np.bincount(n_reached.ravel(), n_marked, n_steps + 1).astype(np.int64)
    pixels = np.bincount(n_reached.ravel(), minlength=n_steps + 1)
    # Pixels with n_reached > k are predicted at step k: sum each histogram (T + 1,) from its end,
    # and leave out the sum from 0 on, that of all pixels
    matched = marked[::-1].cumsum()[::-1][1:]
    predicted = pixels[::-1].cumsum()[::-1][1:]
    annotated = np.full_like(matched, np.count_nonzero(masks))
    # All summed over annotators, so that predicted pixels count once for each of them, (T, 4)
    matches = np.stack([matched, annotated, matched, len(masks) * predicted], axis=-1)
    return OverlaySteps(
        thresholds,
        matches,
        n_changes=is_change.sum(axis=-1, dtype=np.uint16),
        steps=step_of_change[is_change].astype(np.uint16),
        classes=new_class[is_change],
        n_annotators=len(masks),
        beta2=beta2,
    )
