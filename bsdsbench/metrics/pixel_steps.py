"""The class of each pixel of an image (right, false, missed) at every threshold or in every part.

Overlays and the viewer draw these classes. They cover the pixels that a metric counts: matched
boundaries, thresholded soft maps, masks and classes, centre lines. Void pixels have no class.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.arguments import F8, I8, Bool
from bsdsbench.images import Map, without_void
from bsdsbench.scores.ratios import f_beta, ratio

# 4 to 9 are the classes of errors, see `error_classes`
MATCHED_PIXEL, FALSE_PIXEL, MISSED_PIXEL = 1, 2, 3
OTHER_PIXEL = 10  # both false and missed: predicted as a different class or object
NEAR_BOTH, NEAR_PRED, NEAR_GT = 11, 12, 13  # within the buffer of lines


class LargestError(NamedTuple):
    """The outline pixel of an object farthest from the other map's outline, and the pixel of that
    outline nearest to it."""

    row: int
    col: int
    to_row: int
    to_col: int
    distance: float  # in the unit of `spacing`


class StepScores(NamedTuple):
    """The scores of an image at each step, f8 (T,) each; F is NaN if both maps are empty."""

    recall: F8
    precision: F8
    f: F8


class DrawnSteps(NamedTuple):
    """The classes of an image's pixels at T steps, which are thresholds or parts (such as classes).

    Parameters
    ----------
    thresholds : array
        f8 (T,), increasing; the numbers of the parts if steps are parts.
    matches : array
        i8 (T, 4): matched and all annotated pixels, matched and all predicted pixels.
    n_changes : array
        u2 (H, W), number of changes of each pixel's class from step to step.
    steps, classes : array
        u2 and u1 (changes,), pixel after pixel: the step at which a pixel changes, and its class
        from then on (0 is no class).
    n_annotators : int
        Number of annotators over which `matches` is summed; each pixel is drawn once.
    beta2 : float
        beta^2 of F.
    areas : bool
        False if only lines are drawn, which hide little of the image.
    parts : tuple of str
        The names of the parts; () if steps are thresholds.
    measure : str
        The name under which F is shown.
    marks : tuple of LargestError or None
        The largest error of each part, if distances are measured.
    """

    thresholds: F8
    matches: I8
    n_changes: NDArray[np.uint16]
    steps: NDArray[np.uint16]
    classes: NDArray[np.uint8]
    n_annotators: int = 1
    beta2: float = 1.0
    areas: bool = True
    parts: tuple[str, ...] = ()
    measure: str = "F"
    marks: tuple[LargestError | None, ...] = ()

    def at(self, k: int) -> NDArray[np.uint8]:
        """Return the classes of the pixels at the k-th step, u1 (H, W)."""
        ends = np.cumsum(self.n_changes, dtype=np.int64)
        before = np.concatenate([[0], np.cumsum(self.steps <= k)])
        starts = ends - self.n_changes.ravel()
        n_made = before[ends] - before[starts]
        classes = np.append(self.classes, np.uint8(0))[np.where(n_made > 0, starts + n_made, 0) - 1]
        return classes.reshape(self.n_changes.shape)

    @property
    def scores(self) -> StepScores:
        """Compute recall, precision and F of the image at each step."""
        matched_gt, total_gt, matched_pred, total_pred = self.matches.T
        recall, precision = ratio(matched_gt, total_gt), ratio(matched_pred, total_pred)
        f = f_beta(precision, recall, self.beta2)
        return StepScores(recall, precision, np.where(total_gt + total_pred > 0, f, np.nan))

    @property
    def best(self) -> int:
        """The step of the largest F, the first one if several are equal."""
        return int(np.nan_to_num(self.scores.f).argmax())


class Changes(NamedTuple):
    """The changes of all pixels, as in the fields of `DrawnSteps` with the same names."""

    n_changes: NDArray[np.uint16]
    steps: NDArray[np.uint16]
    classes: NDArray[np.uint8]


def changes_of(
    classes: NDArray[np.uint8], shape: tuple[int, ...], places: I8 | slice = slice(None)
) -> Changes:
    """Convert classes at each step to changes.

    `classes` is u1 (P, T), for the pixels with the flat indices `places`, by default for all pixels
    of the `shape`.
    """
    before = np.zeros_like(classes)
    before[:, 1:] = classes[:, :-1]
    changes = classes != before
    n_changes = np.zeros(shape, np.uint16)
    n_changes.reshape(-1)[places] = np.count_nonzero(changes, axis=1)
    changed = np.flatnonzero(changes)
    steps = (changed % classes.shape[1]).astype(np.uint16)
    return Changes(n_changes, steps, classes.ravel()[changed])


def steps_of_soft(
    thresholds: F8, reached: Map, masks: Bool, valid: Bool | None = None, beta2: float = 1.0
) -> DrawnSteps:
    """Compare a soft map with the masks (A, H, W) of annotators at every threshold.

    A pixel is right if it is on and any annotator marked it, false if it is on and none did,
    missed if it is off and any did.

    Parameters
    ----------
    thresholds : array
        f8 (T,), increasing.
    reached : array
        Integers (H, W), the number of thresholds that each pixel reaches; or bool (T, H, W), one
        map for each step if the maps are not nested, such as boundaries of segmentations.
    masks, valid, beta2
        The pixels that each annotator marked, the pixels that count (None: all), and beta^2 of F.
    """
    n_steps, masks, reached = thresholds.size, *(without_void(m, valid) for m in (masks, reached))
    counted = np.ones(masks.shape[1:], bool) if valid is None else valid

    def n_on(mask: Bool) -> I8:
        if reached.ndim == 3:
            return np.count_nonzero(reached & mask, axis=(1, 2))
        return np.bincount(reached[mask], minlength=n_steps + 1)[::-1].cumsum()[::-1][1:]

    right = np.sum([n_on(mask) for mask in masks], axis=0)
    totals = np.full_like(right, np.count_nonzero(masks)), right, len(masks) * n_on(counted)
    marked = masks.any(axis=0)
    while_on = np.where(marked, np.uint8(MATCHED_PIXEL), np.uint8(FALSE_PIXEL))
    while_off = np.where(marked, np.uint8(MISSED_PIXEL), np.uint8(0))
    if reached.ndim == 3:
        classes = np.where(reached, while_on, while_off).reshape(n_steps, -1).T
        changes = changes_of(classes, marked.shape)
    else:  # each pixel is on until its level, and off afterwards
        first = np.where(reached > 0, while_on, while_off)
        changed = np.stack([first > 0, (reached > 0) & (reached < n_steps)], axis=-1)
        steps = np.stack([np.zeros_like(reached), reached], axis=-1)[changed].astype(np.uint16)
        both = np.stack([first, while_off], axis=-1)[changed]
        changes = Changes(changed.sum(axis=-1, dtype=np.uint16), steps, both)
    matches = np.stack([right, *totals], axis=-1)
    return DrawnSteps(thresholds, matches, *changes, len(masks), beta2)
