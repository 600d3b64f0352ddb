"""Facts about the map and the ground truth of one image, for the checks of `runs.sanity`.

Is the map darker on what is annotated, does it fit only after a flip, does it fit another image?
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from bsdsbench.arguments import Bools, Floats
from bsdsbench.images import GroundTruth, Map, Prediction, to_unit_range
from bsdsbench.loaders.labels import PIXEL_PAIRS, seg2bdry
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import Values

# The windows of `_smoothed` for the weights 1, 4, 6, 4, 1, and for the mean of 9 x 9 pixels, which
# is subtracted because all images share a coarse layout
_BLUR, _AROUND = ((2, 1),) * 4, ((3, 1), (3, 3))
# These limits are based on correlations between thumbnails on BSDS500 val and the sample: 0.22 to
# 0.85 between a map and its ground truth (0.03 for one map), up to 0.24 between a map and the
# ground truth of another image, and up to 0.26 between a flipped map and its ground truth.
_LEAST_FIT = 0.2  # the smallest correlation at which a map is considered to fit a ground truth
# Thumbnails of n random pixels hardly ever have a correlation above this value / sqrt(n), which is
# five standard deviations of the correlation
_FIT_OF_NOISE = 18.0
# A flip, or the ground truth of another image, fits a map "clearly better" if the correlation is at
# least this many times that of the unflipped map with the ground truth of its own image
_CLEARLY_BETTER = 2.0
# Maps whose `thickness` exceeds this value have broad edges. Raw maps have about 0.99, and maps
# thinned by NMS up to 0.88 (with a multiplier of 1.03 or more).
BROAD_EDGES = 0.95
# Name of a flip, whether it transposes a map, and by how many quarters it then turns it to the left
FLIPS = (
    ("mirrored left to right", True, 3),
    ("upside down", True, 1),
    ("turned by 180 degrees", False, 2),
    ("transposed", True, 0),
    ("turned to the left", False, 1),
    ("turned to the right", False, 3),
    ("transposed and turned by 180 degrees", True, 2),
)
# A map is inverted if 1 - value is more than this many times larger on the ground truth than off it
_MUCH_DARKER = 1.3
_DARKER_BY = 0.05  # a map seems inverted if its mean on the object is lower by more than this
_N_ERRORS = 3  # and by more than so many standard errors, as those of noise by chance are not


@dataclass(eq=False)
class CheckedImage:
    """The prediction and the ground truth of one image, and the facts that checks read of them.

    A fact is computed when a check first asks for it, and kept.
    """

    pred: Prediction
    gt: GroundTruth
    protocol: Protocol

    @cached_property
    def soft(self) -> Floats:
        """The boundary map (H, W) in [0, 1], inverted if the protocol inverts maps.

        It is (0, 0) without a soft map, and beside masks without boundaries: that shows objects.
        """
        is_of_objects = "mask" in self.gt.parts and not self.gt.boundaries
        if self.pred.kind not in ("soft", "ucm2") or is_of_objects:
            return np.zeros((0, 0))
        soft = to_unit_range(self.pred.boundary_map())
        return 1 - soft if self.protocol.invert else soft

    @cached_property
    def truth(self) -> Floats:
        """The number of annotators that mark each pixel, (H, W); (0, 0) without boundaries."""
        boundaries = self.gt.boundaries  # one map of bools per annotator
        return np.sum(boundaries, axis=0, dtype=np.float64) if boundaries else np.zeros((0, 0))

    @cached_property
    def is_comparable(self) -> bool:
        """True if `soft` and `truth` have the same shape, and neither is constant."""
        is_same_shape = self.soft.shape == self.truth.shape and self.soft.size > 0
        return is_same_shape and bool(np.ptp(self.soft) > 0 and np.ptp(self.truth) > 0)

    @cached_property
    def shows_areas(self) -> bool:
        """True if the boundaries of the ground truth are areas (or broad lines), such as masks."""
        return thickness(self.truth) > BROAD_EDGES

    @property
    def is_mostly_boundary(self) -> bool:
        """True if boundaries cover most pixels, as where dark lines on white are read as bright.

        They are as dense between small regions, which their map then shows, and in a small image or
        on a wide crack, where a map on a dark ground is brighter on them than elsewhere.
        """
        regions, boundaries = self.gt.parts.get("segmentations"), self.gt.boundaries
        if not self.truth.mean() > self.truth.max() / 2:
            return False
        if self.is_comparable and self.soft.mean() < 0.5 and not self.truth.all():
            on, off = self.soft[self.truth > 0], self.soft[self.truth == 0]
            if on.mean() > _MUCH_DARKER * off.mean():
                return False
        return not regions or bool(np.mean(seg2bdry(regions[0]) == boundaries[0]) < 0.5)

    @cached_property
    def has_dark_boundaries(self) -> bool:
        """True if the map is much darker on annotated boundaries than elsewhere.

        `soft` and `truth` are reduced to means of small blocks. "On" is the mean of the map over
        the blocks with a mark, "off" that over all others; False if either are missing. The map is
        much darker in two cases:

        - inverted map: its mean exceeds 0.5, and 1 - on is more than 1.3 times 1 - off
        - map of distances to the boundaries: its mean exceeds 0.1, and on is less than half of off.
          The limit of 0.1 excludes thin lines, which may lie off as they just miss annotated ones
        """
        brightness = _block_means(self.soft)
        is_marked = _block_means(self.truth) > 0
        if is_marked.all() or not is_marked.any():
            return False
        ground, mean = brightness[~is_marked], self.soft.mean()
        on, off = brightness[is_marked].mean(), ground.mean()
        if off - on <= _N_ERRORS * ground.std() / math.sqrt(np.count_nonzero(is_marked)):
            return False  # by chance
        is_inverted = mean > 0.5 and 1 - on > _MUCH_DARKER * (1 - off)
        has_distances = mean > 0.1 and on < off / 2
        return bool(is_inverted or has_distances)

    def is_truth_inverted(self) -> bool:
        """Return True if boundaries cover most pixels, and are probably no objects.

        The map must then be less than half as bright on them as elsewhere. But if it is dark on
        them and bright on the rest of the image, it is the map that is inverted.
        """
        on, off = self.soft[self.truth > 0], self.soft[self.truth == 0]
        if not self.is_mostly_boundary or not on.size or not off.size:
            return False
        return bool(2 * on.mean() < off.mean()) and not self.has_dark_boundaries

    @cached_property
    def white(self) -> int:
        """The largest integer of the dtype of a soft map; 1 for floats and masks."""
        dtype = self.pred.parts[self.pred.kind].dtype
        is_integer = self.pred.kind in ("soft", "ucm2") and dtype.kind == "u"
        return np.iinfo(dtype).max if is_integer else 1

    def _mean(self, values: Map) -> float:
        """Return the mean of some pixels in [0, 1], inverted if the protocol inverts soft maps."""
        mean = float(values.mean(dtype=np.float64)) / self.white
        # A mask has been inverted on reading if the protocol says so
        return 1 - mean if self.protocol.invert and self.pred.kind != "classes" else mean

    def is_dark_on_mask(self, least: float = 0) -> bool:
        """Return True if a soft map or mask is darker on the ground-truth mask than beside it.

        It is then probably inverted. Its mean on the mask must be lower than that beside it by more
        than _DARKER_BY and _N_ERRORS standard errors, and the latter must exceed `least`. If it is
        below 0.5, most pixels beside it must be brighter. The result is False for other
        predictions, such as label maps, and if the sizes differ. Void pixels are ignored.
        """
        values, mask = self.pred.parts[self.pred.kind], self.gt.mask
        is_mask = self.pred.kind == "classes" and values.max(initial=0) <= 1
        if not (is_mask or self.pred.kind == "soft") or values.shape != mask.shape:
            return False
        background = ~mask & self.gt.parts.get("valid", np.True_)
        if not mask.any() or not background.any():
            return False
        on_object = self._mean(values[mask])
        beside = self._mean(values[background])
        if on_object + _DARKER_BY >= beside or beside <= least:
            return False
        # What misses the object lies on a ground that is as dark, unlike that of an inverted map
        ground = values[background]
        is_ground_bright = beside > 0.5 or self._mean(np.median(ground)) > on_object
        error = ground.std() / self.white / math.sqrt(np.count_nonzero(mask))
        return is_ground_bright and bool(beside - on_object > _N_ERRORS * error)

    def polarity(self) -> Values:
        """Return DARK if a map or mask is probably inverted, LIGHT if not, NOTHING if unknown.

        Boundaries and objects should be bright on a dark ground. A map is DARK if its mean is high,
        but it is darker on the annotated boundaries or object than elsewhere. If the protocol
        inverts soft maps, the inverted one is meant. A map is unknown if it has no pixels, or if it
        is bright, but cannot be compared with boundaries, as their sizes differ or one of the two
        is constant.
        """
        pred = self.pred
        if 0 in pred.shape:
            return Values.NOTHING
        # In a ucm2 (2 H + 1, 2 W + 1), pixels are at odd rows and columns, and boundaries between
        # them. As in the BSDS benchmark, a pixel gets the boundary value below and right of it
        values = pred.ucm2[2::2, 2::2] if pred.kind == "ucm2" else pred.parts[pred.kind]
        if "mask" in self.gt.parts:  # the ground around the object must be bright to be DARK
            is_dark = self.is_dark_on_mask(least=0.5)
        elif self._mean(values) < 0.5:  # boundaries cover a small part of an image
            is_dark = False
        elif self.is_comparable:
            is_dark = self.has_dark_boundaries
        else:
            return Values.NOTHING
        return Values.DARK if is_dark else Values.LIGHT

    @cached_property
    def areas(self) -> Thumbnails | None:
        """Thumbnails of the prediction, and of the mask or labels of its ground truth.

        Of a soft map, the truth is the object (pixels that are not 0), on which it should be
        bright. Of a predicted mask or label map and its truth, the outlines of the regions are
        compared, because the numbers of labels cannot be correlated. The result is None for other
        predictions, if the truth has no mask or labels, and if the sizes differ.
        """
        pred = self.pred
        truth = self.gt.parts.get("mask", self.gt.parts.get("labels"))
        if truth is None or pred.kind not in ("soft", "classes") or pred.shape != truth.shape:
            return None
        step = 1 + min(truth.shape) // 200  # of large images, every second or third pixel is enough
        reduced_truth = truth[::step, ::step]
        if pred.kind == "soft":
            soft = to_unit_range(pred.soft[::step, ::step])  # floats in [0, 1], not inverted yet
            soft = 1 - soft if self.protocol.invert else soft
            return Thumbnails.of(pred.image_id, soft, reduced_truth != 0)
        if pred.classes.ndim > 2:  # one map per class
            return None
        outlines = _outlines(pred.classes[::step, ::step])
        return Thumbnails.of(pred.image_id, outlines, _outlines(reduced_truth))


class Thumbnails(NamedTuple):
    """Small arrays of an image's map and ground truth, scaled by `thumbnail` to unit norm.

    The sum of the products of the two is their correlation, which measures the fit.
    """

    image_id: str
    pred: Map  # (h, w), a thumbnail of the predicted map
    truth: Map  # (h, w), a thumbnail of its ground truth

    @classmethod
    def of(cls, image_id: str, pred: Floats | Bools, truth: Floats | Bools) -> Thumbnails:
        """Reduce two maps (H, W) of an image."""
        return cls(image_id, thumbnail(pred), thumbnail(truth))

    def best_orientation(self) -> str:
        """Return the name of the flip, such as "upside down", after which the map fits best.

        The result is "" unless the best flip has a correlation above each of these: twice
        (_CLEARLY_BETTER) that of the unflipped map, 0.2 (_LEAST_FIT), and 18 / sqrt(number of
        pixels) (_FIT_OF_NOISE), which random pixels hardly exceed.
        """
        noise = _FIT_OF_NOISE / math.sqrt(self.pred.size)
        correlation = float((self.pred * self.truth).sum())  # of the map as it is
        best, best_fit = "", max(_LEAST_FIT, noise, _CLEARLY_BETTER * correlation)
        if best_fit >= 1:  # no correlation exceeds 1
            return ""
        for name, transposes, quarters in FLIPS:
            flipped = np.rot90(self.pred.T if transposes else self.pred, quarters)
            if flipped.shape == self.truth.shape:  # transposing changes it, unless it is square
                fit = float((flipped * self.truth).sum())
                if fit > best_fit:
                    best, best_fit = name, fit
        return best


def _outlines(labels: Map) -> Bools:
    """Return a map (H, W), True at the pixels on both sides of every outline of a label map."""
    outlines = np.zeros(labels.shape, np.bool_)
    for pixel, neighbour in PIXEL_PAIRS:
        differs = labels[pixel] != labels[neighbour]
        outlines[pixel] |= differs
        outlines[neighbour] |= differs
    return outlines


def _block_means(values: Floats | Bools) -> Floats:
    """Return the means of a map over blocks of 4 x 4 pixels, or of 2 x 2 if H or W is below 200.

    Rows and columns behind the last whole block are left out.
    """
    side = 4 if min(values.shape) >= 200 else min(2, *values.shape)
    rows, cols = values.shape[0] // side * side, values.shape[1] // side * side  # of whole blocks
    # uint8 holds the sum of a block of bools, which is at most 16
    pixels: Map = values.view(np.uint8) if values.dtype == bool else values
    # Slices are added, because numpy's sums over short axes take five times as long
    sums_of_rows = pixels[0:rows:side, :cols]
    for k in range(1, side):
        sums_of_rows = sums_of_rows + pixels[k:rows:side, :cols]
    block_sums = sums_of_rows[:, ::side]
    for k in range(1, side):
        block_sums = block_sums + sums_of_rows[:, k::side]
    return np.asarray(block_sums / side**2)


def thumbnail(values: Floats | Bools) -> Floats:
    """Reduce an (H, W) map to a small array, so that maps can be compared quickly.

    It is downsampled and smoothed, its local mean over 9 x 9 pixels is subtracted, and it is scaled
    to unit norm: the sum of its squares is 1. The correlation of two such arrays is therefore the
    sum of their products. Constant maps become all zeros.
    """
    # `_smoothed` replaces scipy's filters, whose import takes longer than all of this
    small = _smoothed(_block_means(values), _BLUR)
    small = small - _smoothed(small, _AROUND)
    norm = float(np.sqrt((small * small).sum()))
    return small / norm if norm > 0 else small


def _smoothed(values: Floats, windows: Sequence[tuple[int, int]]) -> Floats:
    """Smooth an (H, W) map along both axes, repeating the values at the border beyond it.

    Each window (size, step) in turn replaces a value by the sum of `size` values that are `step`
    apart: four windows (2, 1) give the weights 1, 4, 6, 4, 1. Division by their sum comes last.
    """
    sizes, steps = np.transpose(windows)
    total_weight = int(sizes.prod())
    # A window shortens the lines by (size - 1) * step. Half of the sum is added at either end
    margin = int(((sizes - 1) * steps).sum()) // 2
    for _ in range(2):  # smooth the columns and transpose, then the rows, which restores the shape
        lines = values.take(np.arange(-margin, len(values) + margin), axis=0, mode="clip")
        for size, step in windows:
            n = len(lines) - (size - 1) * step
            sums = lines[:n]
            for k in range(1, size):
                sums = sums + lines[k * step : k * step + n]
            lines = sums
        values = (lines / total_weight).T
    return values


def find_swaps(thumbnails: Iterable[Thumbnails]) -> list[tuple[str, str]]:
    """Find maps that were probably saved under the name of another image.

    A map is reported if it and the ground truth of another image are each other's best match, and
    they match clearly better than the map and the ground truth of its own image. The match is the
    correlation of thumbnails of unit norm, of which only those of the same shape are compared.

    Returns pairs of ids: the image whose map is wrong, and the image whose ground truth the map
    fits. Two maps that were swapped with each other usually give two pairs.
    """
    swapped = []
    by_shape: dict[tuple[int, ...], list[Thumbnails]] = {}
    for image in thumbnails:
        by_shape.setdefault(image.pred.shape, []).append(image)
    for same_shape in by_shape.values():
        if len(same_shape) == 1:
            continue
        _, preds, truths = map(np.stack, zip(*same_shape, strict=True))  # ids, (n, h, w), (n, h, w)
        # (n, n): correlation, the sum of products, of each map (row) and each ground truth (column)
        fits = np.tensordot(preds, truths, ((1, 2), (1, 2)))
        # Two thumbnails of random pixels correlate by chance, less so if they have more pixels
        noise = _FIT_OF_NOISE / math.sqrt(preds[0].size)  # a correlation that chance hardly exceeds
        for k, best in enumerate(fits.argmax(axis=1).tolist()):  # map k fits this truth best
            is_mutual = fits[:, best].argmax() == k
            least_fit = max(_LEAST_FIT, noise, _CLEARLY_BETTER * fits[k, k])
            if best != k and is_mutual and fits[k, best] > least_fit:
                swapped.append((same_shape[k].image_id, same_shape[best].image_id))
    return swapped


def is_suppressed(soft: Floats) -> bool:
    """Return True if a soft map has gone through NMS, which leaves zeros beside its strong pixels.

    That is, if most of the strongest quarter of the positive pixels have three zeros or more among
    their eight neighbours. After NMS, 0.57 to 1 of them have, in raw maps none, however narrow, if
    those below a tenth of the maximum are left out, as a noise of 0 and 1 of 255 has zeros too.
    Binary lines of two pixels have them too, but are broad edges, which NMS may thin.
    """
    values = soft[soft > 0]
    if not values.size:
        return False
    zeros = np.pad(soft == 0, 1).astype(np.int8)
    rows = zeros[:-2] + zeros[1:-1] + zeros[2:]
    n_zeros = rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]  # in the 3 x 3 pixels around each
    least_strength = max(np.quantile(values, 0.75), values.max() / 10)
    has_zeros = np.mean(n_zeros[soft >= least_strength] >= 3) > 0.5
    return bool(has_zeros) and thickness(soft) <= BROAD_EDGES


def shows_regions(soft: Floats) -> bool:
    """Return True if a map (H, W) seems to hold labels: three values or more, in flat regions.

    That is, if most pixels above its lowest value equal those to the right and below. In a map of
    edges that are averages of several binary ones, a value is as thin as the lines. In squares
    of 8 x 8 pixels, as in maps enlarged eightfold, a share of 0.77 is equal; in those of the size
    of 500 superpixels of a BSDS image (17 x 17), 0.89.
    """
    pixels = soft[:-1, :-1]
    is_flat = (pixels == soft[1:, :-1]) & (pixels == soft[:-1, 1:])
    is_raised = pixels > soft.min(initial=1)
    values = pixels[is_raised]
    is_mask = not values.size or bool(values.min() == values.max())
    return not is_mask and bool(is_flat[is_raised].mean() > 0.85)


def thickness(soft: Floats) -> float:
    """Return the fraction of a soft map's strong pixels that lie in 2 x 2 squares of strong pixels.

    It is 0 for lines one pixel wide, and almost 1 for broad edges. A pixel is strong if its value
    is at or above a quantile of the positive values. The fraction is averaged over the quantiles
    0.5, 0.75 and 0.9. It is NaN if no value is positive.
    """
    values = soft[soft > 0]
    if not values.size:
        return math.nan
    fractions = []
    for level in np.quantile(values, (0.5, 0.75, 0.9)):
        strong = soft >= level
        squares = strong[:-1, :-1] & strong[1:, :-1] & strong[:-1, 1:] & strong[1:, 1:]
        # (H + 1, W + 1): entry (y, x) is the square whose bottom right pixel is (y, x)
        padded = np.pad(squares, 1)
        in_square = padded[:-1, :-1] | padded[1:, :-1] | padded[:-1, 1:] | padded[1:, 1:]
        fractions.append(in_square.sum() / strong.sum())
    return float(np.mean(fractions))
