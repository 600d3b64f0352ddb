"""Structures of masks: are vessels, roads and cracks connected, and is their length found?

Definition. Topology compares skeletons (clDice), the numbers of components (b0) and holes (b1), and
the Euler characteristic b0 - b1. A hole is a background component that does not reach the outside.
Completeness (correctness) is the fraction of annotated (predicted) centre line pixels that have a
pixel of the other line within a buffer; one pixel may match several. Quality is the number of
matched predicted pixels, divided by all predicted pixels plus the unmatched annotated ones.

Conventions. Foreground and background have opposite connectivities (8 and 4), and everything
outside an image or a patch is background. Void pixels are first removed from both masks; a hole
that this creates counts in both. Patches of only void pixels are excluded. Topological errors are
averaged over patches, then over images; counts of centre line pixels are summed over images.

Source. Shit et al., clDice, CVPR 2021; Berger et al., 2024 (arXiv 2412.14619); Wiedemann, Heipke,
Mayer and Jamet, "Empirical evaluation of automatically extracted road axes", 1998; Mnih and Hinton,
ECCV 2010.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from attrs import frozen
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, NDArray

from bsdsbench.arguments import Floats, Ints
from bsdsbench.errors import DataError, Setting
from bsdsbench.images import GroundTruth, Prediction, binary_map, one_map, without_void
from bsdsbench.kernels.distances.limits import with_tolerance
from bsdsbench.loaders.labels import void_levels
from bsdsbench.metrics.base import IMAGES, Arrays, Column, Symptoms, ValuesMetric
from bsdsbench.metrics.contour.measures import cldice
from bsdsbench.metrics.contour.outlines import skeleton_pixels
from bsdsbench.metrics.contour.pixel_outcomes import draw_masks
from bsdsbench.metrics.label_maps import SPACING, MapPair
from bsdsbench.metrics.pixel_steps import OverlaySteps
from bsdsbench.protocol.fields import IGNORE, accepting, is_number, one_of, option, whole
from bsdsbench.protocol.protocol import MAPS, Protocol
from bsdsbench.scores.counts import Stack
from bsdsbench.scores.ratios import defined_f, defined_ratio
from bsdsbench.transforms.maps import prepare, to_unit_range

THRESHOLD = option(
    0.5,
    "A soft map is foreground where it is at least this.",
    accepting(lambda v: is_number(v) and 0 < v <= 1, "a number above 0, at most 1"),
    caption=lambda o: f"p >= {o.threshold:g}",
)


@frozen
class TopologyOptions:
    """The connectivity of components, and the patches in which they are counted."""

    threshold: float = THRESHOLD
    connectivity: int = option(
        8,
        "Neighbours of a foreground pixel, 8 or 4; background pixels have the other number.",
        one_of(8, 4),
        caption=lambda o: f"foreground {o.connectivity}-connected",
    )
    patch: int = option(
        0,
        "Side in pixels of the square patches in which components are counted, as many as fit from "
        "the top left corner; 0 for the whole image.",
        whole(0, 9999, "0 to 9999 pixels"),
        caption=lambda o: f"in patches of {o.patch} x {o.patch}" if o.patch else "in whole images",
    )
    stride: int = option(
        0,
        "Step in pixels from one patch to the next; 0 places them side by side.",
        whole(0, 9999, "0 to 9999 pixels"),
        caption="a patch every {} pixels",
    )
    ignore: tuple[float, ...] = IGNORE


@frozen
class CcqOptions:
    """How centre lines are obtained, and the buffer within which their pixels match."""

    buffer: float = option(
        3.0,
        "How far a matched pixel may be from the other line, in the unit of `spacing`.",
        accepting(lambda v: isinstance(v, float) and 0 <= v <= 1e6, "a number from 0"),
        caption=lambda o: f"buffer {o.buffer:g}",
    )
    spacing: tuple[float, float] = SPACING
    lines: str = option(
        "skeleton",
        'Thin masks to their "skeleton" by scikit-image\'s skeletonize, or take them as centre '
        'lines that are "given".',
        one_of("skeleton", "given"),
        caption={"skeleton": "masks skeletonised", "given": "centre lines as given"},
    )
    threshold: float = THRESHOLD
    ignore: tuple[float, ...] = IGNORE


StructureOptions = TypeVar("StructureOptions", bound=TopologyOptions | CcqOptions)


class _ThresholdedMetric(ValuesMetric[StructureOptions]):
    """Base class of metrics that threshold a soft map once, and compare it with a mask."""

    reads, default_protocol, void, void_option = "mask", "masks", True, "ignore"
    uses = (*MAPS, "gt_invert", "gt_threshold")

    def symptoms(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: StructureOptions
    ) -> Symptoms:
        """Yield (code, problem, fix) for a likely mistake in a predicted map.

        - "void": a map of unsigned integers (a mask from a picture) has exactly three values, of
          which one may mark void pixels, such as 255 beside 0 and 1, or 128 beside 0 and 255. Only
          annotations may mark them.
        - "weak": no value reaches `opt.threshold`, but not all are 0

        Images without an annotated object are not checked.
        """
        if not gt.mask.any():
            return
        # Most maps have more than three values in every 16th row, and need not be searched further
        has_few = pred.soft.dtype.kind == "u" and np.unique(pred.soft[::16]).size <= 3
        levels = np.unique(pred.soft).tolist() if has_few else []
        if len(levels) == 3 and void_levels(levels):
            listing = ", ".join(map(str, levels))
            problem = f"the map has the values {listing}: is one a void?"
            yield "void", problem, "write masks of two values, as a void is annotated in the truth"
        # By the protocol, maps are inverted or normalised first; void pixels (not valid) become 0
        valid = gt.parts.get("valid")
        strongest = to_unit_range(prepare(pred.soft, protocol, valid).max(initial=0))  # in [0, 1]
        if 0 < strongest < opt.threshold:
            fix = Setting("normalise", True, "divides each map by its maximum")
            yield "weak", f"no value reaches the threshold {opt.threshold:g}", fix


def _foregrounds(
    pred: Prediction, gt: GroundTruth, protocol: Protocol, threshold: float
) -> MapPair:
    """Binarise the prediction at `threshold`, and return it with the annotated mask, both bool.

    threshold: in [0, 1], the smallest value of the foreground; 8-bit values are divided by 255.

    The protocol may invert or normalise the prediction first. Void pixels become background in both
    maps.
    """
    valid = gt.parts.get("valid")
    soft = prepare(pred.soft, protocol, valid)
    return MapPair(to_unit_range(soft) >= threshold, without_void(gt.mask, valid))


def betti_numbers(mask: ArrayLike, connectivity: int = 8, patch: int = 0, stride: int = 0) -> Ints:
    """Compute b0, b1 and the Euler characteristic of a mask, or of each of its patches.

    b0 is the number of components, b1 the number of holes, and b0 - b1 the Euler characteristic.

    Parameters
    ----------
    mask : array_like
        (H, W), bool, 0 and 1, or 0 and 255. Everything outside a patch counts as background.
    connectivity : int
        Connectivity of the foreground, 8 or 4 (scikit-image's 2 or 1); the background uses the
        other.
    patch, stride : int
        Side length of the square patches in pixels (0: the whole mask), and step between patches
        (0: side by side). Only patches that lie inside the mask are used, in raster order.

    Returns
    -------
    array
        int64 (patches, 3): b0, b1 and Euler characteristic of each patch; (0, 3) if none fits.

    Raises
    ------
    DataError
        If `mask` is not binary or not (H, W), or `connectivity` is neither 8 nor 4.

    Examples
    --------
    >>> ring = np.pad(np.pad(np.zeros((1, 1), bool), 1, constant_values=True), 1)
    >>> betti_numbers(ring).tolist(), betti_numbers(ring, patch=3, stride=2).tolist()
    ([[1, 1, 0]], [[1, 0, 1], [1, 0, 1], [1, 0, 1], [1, 0, 1]])
    """
    from scipy.ndimage import label

    if connectivity not in (8, 4):
        raise DataError(f"connectivity {connectivity!r}, expected 8 or 4")
    binary = binary_map(one_map(mask, "mask"), "mask")
    rows, cols = (patch, patch) if patch else binary.shape
    if not binary.size or rows > binary.shape[0] or cols > binary.shape[1]:
        return np.zeros((0, 3), np.int64)
    # The patches of a row are labelled as a stack (patches, rows, columns). The structuring element
    # connects a pixel to four or eight neighbours of the same patch, and to no other patch
    neighbours = np.zeros((3, 3, 3), bool)
    neighbours[1] = [[0, 1, 0], [1, 1, 1], [0, 1, 0]] if connectivity == 4 else 1
    numbers = []
    windows = sliding_window_view(binary, (rows, cols))  # (row, column, rows, cols)
    for patches in windows[:: stride or rows, :: stride or cols]:
        padded = np.pad(patches, ((0, 0), (1, 1), (1, 1))).view(np.uint8)
        components = label(padded, neighbours)[0]
        # Components are numbered through the stack, so b0 is the increase of the largest number so
        # far: after patches with 2, 0 and 3 components, it is 2, 2 and 5
        largest = np.maximum.accumulate(components.max(axis=(1, 2)))
        b0 = np.diff(largest, prepend=0)
        euler = _euler_characteristics(padded, connectivity)  # b0 - b1
        numbers.append(np.stack([b0, b0 - euler, euler], axis=1))
    return np.concatenate(numbers)


def _euler_characteristics(masks: NDArray[np.uint8], connectivity: int) -> Ints:
    """Compute the Euler characteristic of each of N masks (N, H, W) of 0 and 1, as int64 (N,).

    It is computed from the numbers of 2 x 2 windows with one foreground pixel, with three, and with
    two diagonally opposite ones (Gray, "Local properties of binary images in two dimensions",
    1971). The outermost rows and columns of the masks must be 0.
    """
    top_left, top_right = masks[:, :-1, :-1], masks[:, :-1, 1:]
    bottom_left, bottom_right = masks[:, 1:, :-1], masks[:, 1:, 1:]
    n_on = top_left + bottom_left + top_right + bottom_right
    is_diagonal = (n_on == 2) & (top_left == bottom_right)
    n_one = np.count_nonzero(n_on == 1, axis=(1, 2))
    n_three = np.count_nonzero(n_on == 3, axis=(1, 2))
    n_diagonal = np.count_nonzero(is_diagonal, axis=(1, 2))
    # The contour around a component makes four quarter turns, that around a hole four in the other
    # sense. A window with one pixel is a turn, one with three a turn back. Two diagonal pixels are
    # two turns if they are apart (4-connected), and two turns back if they touch (8-connected)
    sign = 1 if connectivity == 4 else -1
    return np.asarray((n_one - n_three + 2 * sign * n_diagonal) // 4)


class TopologyMetric(_ThresholdedMetric[TopologyOptions]):
    """Components and holes: errors of Betti numbers and Euler characteristic, and clDice."""

    name, title, options = "topology", "Topology", TopologyOptions
    columns = (
        *(
            Column(key, f"{words} error", lower=True, digits=3, undefined="no patch fits")
            for key, words in (("b0", "b0"), ("b1", "b1"), ("euler", "Euler"))
        ),
        Column("cldice", "clDice", undefined="both masks of every image are empty"),
        IMAGES,
    )
    image_columns = columns[:4]

    def count(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: TopologyOptions
    ) -> Arrays:
        """Count the topological errors and the skeleton pixels of one image.

        errors : int64 (3,), the absolute differences of b0 (components), b1 (holes) and the Euler
            characteristic (b0 - b1) between the two masks, summed over the patches with at least
            one pixel that is not void. By default, the whole mask is the only patch.
        patches : int (), the number of these patches
        skeleton : int64 (2, 2), for the predicted and the annotated mask, the pixels of its centre
            line that lie in the other mask, and all of them
        """
        masks = _foregrounds(pred, gt, protocol, opt.threshold)
        patches = {"connectivity": opt.connectivity, "patch": opt.patch, "stride": opt.stride}
        errors = np.abs(betti_numbers(masks.pred, **patches) - betti_numbers(masks.gt, **patches))
        if "valid" in gt.parts:
            n_valid_components = betti_numbers(gt.valid, **patches)[:, 0]
            errors = errors[n_valid_components > 0]  # drop patches of only void pixels
        # Label maps for `skeleton_pixels`: 0 on the mask, -1 (no label) elsewhere
        pred_label, gt_label = masks.pred.astype(np.int8) - 1, masks.gt.astype(np.int8) - 1
        return {
            "errors": errors.sum(axis=0),
            "patches": len(errors),
            "skeleton": skeleton_pixels(pred_label, gt_label, 1)[0],
        }

    def pixel_steps(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: TopologyOptions
    ) -> OverlaySteps:
        """Classify each pixel of the two masks as correct, false or missed, for an overlay."""
        return draw_masks(*_foregrounds(pred, gt, protocol, opt.threshold))

    def values(self, counts: Stack, opt: TopologyOptions) -> dict[str, Floats]:
        """Compute the mean errors over patches and clDice of N images, (N,) each.

        The errors are those in b0 (components), b1 (holes) and the Euler characteristic. They are
        NaN if the image has no patch, and clDice is NaN if both masks are empty.
        """
        b0, b1, euler = defined_ratio(counts["errors"], counts["patches"][:, None]).T
        return {"b0": b0, "b1": b1, "euler": euler, "cldice": cldice(counts["skeleton"])}


def _within_buffer(lines: MapPair, opt: CcqOptions) -> MapPair:
    """Mark the pixels within the buffer of the predicted line, and of the annotated line.

    A pixel is within it if the distance to the nearest pixel of the line is at most `opt.buffer`,
    in the unit of `opt.spacing`, the (height, width) of a pixel.
    """
    from bsdsbench.kernels.matching.graph import within_reach

    (height, width), (rows, cols) = opt.spacing, lines.gt.shape
    radius = with_tolerance(opt.buffer)  # slightly larger, so that rounding errors do not decide
    # A disk around a pixel: one row (column) beyond the radius, but not more than the image has
    most_down, most_right = min(int(radius / height) + 1, rows), min(int(radius / width) + 1, cols)
    down = height * np.abs(np.arange(-most_down, most_down + 1))
    right = width * np.arange(1, most_right + 1)
    is_in_disk = np.hypot(down[:, None], right) <= radius  # right half, without the middle column
    half_widths = np.count_nonzero(is_in_disk, axis=1).astype(np.int32)  # of its rows
    half_widths = half_widths[down <= radius]  # [0, 1, 0] for radius 1 with square pixels
    near_pred = within_reach(np.ascontiguousarray(lines.pred), half_widths)
    return MapPair(near_pred, within_reach(np.ascontiguousarray(lines.gt), half_widths))


class CcqMetric(_ThresholdedMetric[CcqOptions]):
    """Completeness, correctness and quality of centre lines within a buffer."""

    name, title, options = "ccq", "Centre lines", CcqOptions
    columns = (
        Column("completeness", "completeness", "compl.", undefined="nothing is annotated"),
        Column("correctness", "correctness", "corr.", undefined="nothing is predicted"),
        Column("quality", "quality", undefined="nothing is annotated or predicted"),
        Column("f", "F", undefined="nothing is annotated or predicted"),
        IMAGES,
    )
    image_columns, summed = (columns[2], *columns[:2]), ("matched", "total")

    def count(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: CcqOptions
    ) -> Arrays:
        """Count the matched pixels and all pixels of the centre lines of one image.

        Returns `matched`, the line pixels within the buffer of the other map's lines, and `total`,
        all line pixels. Both have two integers, for the predicted and for the annotated lines.
        """
        from skimage.morphology import skeletonize

        lines = _foregrounds(pred, gt, protocol, opt.threshold)
        if opt.lines == "skeleton":
            lines = MapPair(*map(skeletonize, lines))
        near = _within_buffer(lines, opt)
        count = np.count_nonzero  # a tenth of the time of a sum
        matched = [count(lines.pred & near.gt), count(lines.gt & near.pred)]
        return {"matched": matched, "total": [count(lines.pred), count(lines.gt)]}

    def pooled(self, sums: Stack, opt: CcqOptions) -> dict[str, Floats]:
        """Compute completeness, correctness, quality and F of S data sets, (S,) each.

        A ratio is NaN if its denominator is 0. F is NaN if neither map has lines, and 0 if only one
        of them has.
        """
        matched, total = sums["matched"], sums["total"]
        # Columns: of the predicted lines (correctness), of the annotated lines (completeness)
        shares = defined_ratio(matched, total)
        n_missed = total[:, 1] - matched[:, 1]
        return {
            "completeness": shares[:, 1],
            "correctness": shares[:, 0],
            "quality": defined_ratio(matched[:, 0], total[:, 0] + n_missed),
            "f": defined_f(shares),
        }
