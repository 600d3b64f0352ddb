"""Superpixels: do small regions follow the annotated borders, and are they even?

Definition. Two variants of undersegmentation error, achievable segmentation accuracy and boundary
recall compare the label map with one annotator's map (`measures`). Compactness is computed from the
label map alone, explained variation from the label map and the image.

Conventions. Each distinct label is one region, even if it is not connected (option `components`).
The mean, minimum and maximum over annotators are reported. Scores are means over images.

Source. Stutz, Hermans and Leibe, "Superpixels: an evaluation of the state of the art", CVIU 2018.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import ArrayLike

from bsdsbench.arguments import Bools, Floats, as_numbers
from bsdsbench.errors import DataError, InputWarning, Setting
from bsdsbench.images import GroundTruth, Map, Prediction, same_shape
from bsdsbench.metrics.base import IMAGES, Arrays, Column, ValuesMetric
from bsdsbench.metrics.label_maps import NEIGHBOURS, PRED_SIDE, as_label_map, number_pieces
from bsdsbench.metrics.region.overlap_table import Annotators, OverlapTable, number_regions
from bsdsbench.protocol.fields import option
from bsdsbench.protocol.protocol import Protocol, captions
from bsdsbench.scores.counts import Stack
from bsdsbench.scores.ratios import ratio
from bsdsbench.text import join_names


def measures(labels: ArrayLike, gt: ArrayLike) -> dict[str, float]:
    """Compare superpixels with the regions of one annotator.

    Let a_i be the area of superpixel i, b_j the area of annotated region j, n_ij the area of their
    overlap, N the number of pixels, and G the number of annotated regions.

    - "ue": undersegmentation error (Neubert and Protzel, Forum Bildverarbeitung 2012), in [0, 1],
      0 is best: (1/N) sum_j sum_i min(n_ij, a_i - n_ij), over the i that overlap j. If a superpixel
      straddles the border of region j, its smaller part counts as error.
    - "ue_levin": undersegmentation error (Levinshtein et al., TurboPixels, PAMI 2009), 0 is best,
      may exceed 1: (1/G) sum_j (sum of a_i over the i that overlap j, minus b_j) / b_j. Stutz's
      code divides by the largest gt label + 1, not G: the error is lower if labels have gaps.
    - "asa": achievable segmentation accuracy (Liu et al., Entropy rate superpixels, CVPR 2011), in
      (0, 1], 1 is best: (1/N) sum_i max_j n_ij. This is the fraction of pixels labelled correctly
      if each superpixel gets the label of the region it overlaps most.
    - "recall": boundary recall (Ren and Malik, ICCV 2003, as computed by Stutz, Hermans and Leibe,
      CVIU 2018), in [0, 1], 1 is best: the fraction of annotated boundary pixels that have a
      superpixel boundary pixel in the square window of half width 0.0025 of the diagonal; 0 if
      there is no annotated boundary. Pixels on both sides of a border are boundary pixels, and
      matching is not one to one. With the one-sided boundaries of `bsdsbench.seg2bdry`, it is up to
      0.07 lower.

    Parameters
    ----------
    labels, gt : array_like
        Integers (H, W), the superpixel and the annotated region of each pixel.

    Returns
    -------
    dict
        Name of the measure -> value.

    Raises
    ------
    DataError
        If an array is not a label map, or the shapes differ.

    Examples
    --------
    >>> gt, moved = np.zeros((2, 40, 60), int)
    >>> gt[:, 30:] = 1
    >>> moved[:, 31:] = 1  # the border is off by one column
    >>> {name: round(value, 3) for name, value in measures(moved, gt).items()}
    {'ue': 0.033, 'ue_levin': 0.517, 'asa': 0.983, 'recall': 0.5}
    """
    from bsdsbench.kernels.matching.graph import within_reach

    # The overlaps n_ij as a sparse matrix (CSR) with a row for each superpixel i and a column for
    # each annotated region j. Superpixel i has the overlaps row_starts[i] : row_starts[i + 1]
    table = OverlapTable.of_map(labels, Annotators.of([gt]))
    row_starts, region, overlap = table.cells  # `region`: j of each overlap
    region_area = table.gts.col_area  # b_j
    superpixel_area = np.repeat(table.row_area, np.diff(row_starts))  # a_i of each overlap
    smaller_part = np.minimum(overlap, superpixel_area - overlap)
    covered = np.bincount(region, superpixel_area, region_area.size)  # of each region, sum of a_i
    largest_overlap = np.maximum.reduceat(overlap, row_starts[:-1])  # of each superpixel
    predicted, annotated = _draw_borders(np.asarray(labels)), _draw_borders(np.asarray(gt))
    radius = _recall_radius(predicted.shape)
    # The window has 2 R + 1 rows; within_reach takes the half width of each, here R for a square
    half_widths = np.full(2 * radius + 1, radius, np.int32)
    is_near = within_reach(predicted, half_widths)  # pixels with a predicted boundary in the window
    return {
        "ue": float(smaller_part.sum() / table.n_pixels),
        "ue_levin": float(((covered - region_area) / region_area).mean()),
        "asa": int(largest_overlap.sum()) / table.n_pixels,
        "recall": float(ratio((is_near & annotated).sum(), annotated.sum())),
    }


def _draw_borders(labels: Map) -> Bools:
    """Mark the pixels whose label differs from one of their four neighbours, bool (H, W)."""
    borders = np.zeros(labels.shape, np.bool_)
    differs_below, differs_right = labels[1:] != labels[:-1], labels[:, 1:] != labels[:, :-1]
    borders[1:] |= differs_below
    borders[:-1] |= differs_below
    borders[:, 1:] |= differs_right
    borders[:, :-1] |= differs_right
    return borders


def _recall_radius(shape: tuple[int, ...]) -> int:
    """Return the radius of boundary recall in pixels: 0.0025 of the image diagonal, rounded.

    As in Stutz's code, 0.0025 is a 32-bit float, which is slightly smaller: for a diagonal of 600,
    the radius is 1, not 2. It is half the width of a square window.
    """
    share = float(np.float32(0.0025))
    diagonal = math.sqrt(sum(n * n for n in shape))
    return math.floor(share * diagonal + 0.5)


def compactness(labels: ArrayLike) -> float:
    """Compute the compactness of superpixels; higher is more compact.

    Compactness is (1/N) sum_i a_i (4 pi a_i / P_i^2) for areas a_i, perimeters P_i and N pixels.
    The perimeter is the number of pixel edges between superpixel i and other superpixels or the
    outside of the image. A square has the highest compactness, pi/4. Source: Schick, Fischer and
    Stiefelhagen, ICPR 2012.

    Parameters
    ----------
    labels : array_like
        Integers (H, W), the superpixel of each pixel.

    Returns
    -------
    float
        In (0, pi/4].

    Raises
    ------
    DataError
        If `labels` is not a label map.
    """
    label_map = as_label_map(labels)
    flat, area, _ = number_regions(label_map)  # superpixel of each pixel, area of each superpixel
    padded = np.pad(flat.reshape(label_map.shape), 1, constant_values=-1)
    n_sides = np.zeros(padded.shape, np.int64)  # per pixel, edges on its superpixel's border
    for axis, offset in ((0, 1), (0, -1), (1, 1), (1, -1)):  # the four neighbours
        n_sides += padded != np.roll(padded, offset, axis)
    perimeter = np.bincount(flat, np.ravel(n_sides[1:-1, 1:-1]))
    return float((area * (4 * np.pi * area / perimeter**2)).sum() / flat.size)


def explained_variation(labels: ArrayLike, image: ArrayLike) -> float:
    """Compute the fraction of the image's variance explained by superpixel means; 1 is best.

    This is sum_i a_i (mu_i - mu)^2 / sum_x (I(x) - mu)^2, where both sums include all channels, and
    mu_i and mu are the means of superpixel i and of the image. Source: Moore et al., CVPR 2008.

    Parameters
    ----------
    labels : array_like
        Integers (H, W), the superpixel of each pixel.
    image : array_like
        (H, W) or (H, W, C), any number type.

    Returns
    -------
    float
        In [0, 1]; 0 if the image is a single colour.

    Raises
    ------
    DataError
        If `image` is not finite or does not have two or three axes, `labels` is not a label map, or
        sizes differ.
    """
    label_map = as_label_map(labels)
    pixels = as_numbers(image, "image")
    if pixels.ndim not in (2, 3):
        raise DataError(f"image: shape {pixels.shape}, expected (H, W) or (H, W, C)")
    if not np.isfinite(pixels).all():
        raise DataError("image: NaN or infinite values, expected finite numbers")
    same_shape(pixels.shape[:2], label_map.shape, "image")
    flat, area, _ = number_regions(label_map)  # superpixel of each pixel, area of each superpixel
    explained = total = 0.0
    for channel in np.moveaxis(pixels.reshape(flat.size, -1), 1, 0):
        centred = channel - channel.mean()
        means = np.bincount(flat, centred) / area
        explained += float((area * means**2).sum())
        total += float((centred**2).sum())
    return min(1.0, float(ratio(explained, total)))


@frozen
class SuperpixelOptions:
    """The definition of a superpixel."""

    components: int | None = option(
        None,
        "0: each label is a superpixel, even in several pieces. 8 or 4: each 8- or 4-connected "
        "component of a label is one. none: as 0, with a warning if many labels have several "
        "pieces.",
        NEIGHBOURS,
        lambda value: None if value == "none" else value,
        caption={
            8: "each 8-connected component of a label is a superpixel",
            4: "each 4-connected component of a label is a superpixel",
        },
    )


# Above this mean number of connected pieces per label, labels are assumed to be reused. Maps in
# which a few labels have stray pixels stay below it
_REUSED = 1.5


def superpixels(labels: ArrayLike, opt: SuperpixelOptions) -> Map:
    """Return the superpixel of each pixel of a label map (H, W).

    If `opt.components` is 4 or 8, each connected component of a label is a superpixel; otherwise
    each label is one. Unless the user has set `components` to 0, DataError is raised if the labels
    were probably truncated to 8 bits, so that several superpixels have the same label: all 8-bit
    numbers but at most one are in use, and there are more 8-connected components than labels.
    """
    label_map = as_label_map(labels, PRED_SIDE)
    if opt.components:
        return number_pieces(label_map, opt.components)
    n_labels = np.unique(label_map).size
    # 0 .. 255 or, if superpixels are numbered from 1, 1 .. 255
    has_all_bytes = label_map.min() >= 0 and label_map.max() == 255 and n_labels >= 255
    if not has_all_bytes or opt.components == 0:
        return label_map
    n_pieces = int(number_pieces(label_map, 8).max())
    if n_pieces <= n_labels:
        return label_map
    raise DataError(
        f"{PRED_SIDE}: {n_labels} labels up to 255 in {n_pieces} pieces (more superpixels than 8 "
        "bits have numbers?), expected each superpixel in one piece: save 16 or 32 bits",
        fix=(
            Setting("superpixel.components", 8, "takes each piece as one"),
            Setting("superpixel.components", 0, "takes each label as one"),
        ),
    )


_OVER_ANNOTATORS = ("mean", "min", "max")
_MEASURES = ("ue", "ue_levin", "asa", "recall")


class SuperpixelMetric(ValuesMetric[SuperpixelOptions]):
    """Superpixels: how well small regions follow the annotated borders, and how even they are."""

    name, title, reads, options = "superpixel", "Superpixels", "regions", SuperpixelOptions
    version = 2
    segmentations = photo = True
    uses = ("gt_kind", "empty_gt")
    columns = (
        Column("ue.mean", "UE", lower=True),
        Column("ue_levin.mean", "UE (Levinshtein)", "UE-L", lower=True),
        Column("asa.mean", "ASA"),
        Column("recall.mean", "boundary recall", "BR"),
        Column("compactness", "compactness", "CO"),
        Column("variation", "explained variation", "EV", undefined="no pictures were found"),
        *(
            Column(f"{measure}.{kind}", f"{measure} {kind}", lower=measure[0] == "u", shown="never")
            for measure in _MEASURES
            for kind in _OVER_ANNOTATORS[1:]
        ),
        Column("n_superpixels", "superpixels", "K", digits=0, shown="own", score=False),
        Column("n_pieces", "pieces", digits=0, shown="own", score=False),
        IMAGES,
    )
    image_columns = (columns[0], *columns[2:4])

    def count(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: SuperpixelOptions
    ) -> Arrays:
        """Compute the measures of one image, and count its superpixels and connected components.

        Returns the values of `measures`, such as `ue` (undersegmentation error), as float64 (3,):
        mean, minimum and maximum over annotators; `n_superpixels` and `n_pieces`, the numbers of
        labels (or components, if these are the superpixels) and of 8-connected components;
        `compactness`; and `variation`, the explained variation of the photo, which is NaN if there
        is no photo. Raises DataError if the prediction is not exactly one label map, or if its
        labels were probably truncated to 8 bits.
        """
        if len(pred.segs) != 1:
            raise DataError(f"{pred.where}: {len(pred.segs)} label maps, expected one")
        if not gt.segmentations:
            fix = Setting("gt_kind", "labels", "for region labels")
            raise DataError(f"{gt.where}: boundaries, expected label maps of regions", fix=fix)
        labels = superpixels(pred.segs[0], opt)  # (H, W), the number of each pixel's superpixel
        per_annotator = [measures(labels, regions) for regions in gt.segmentations]
        counts: dict[str, Any] = {
            "n_superpixels": np.unique(labels).size,
            "n_pieces": number_pieces(labels, neighbours=8).max(),  # they are numbered from 1
        }
        for name in _MEASURES:
            values = [measured[name] for measured in per_annotator]
            counts[name] = np.array([np.mean(values), min(values), max(values)])
        has_photo = "photo" in gt.parts
        variation = explained_variation(labels, gt.photo) if has_photo else np.nan
        return {**counts, "compactness": compactness(labels), "variation": variation}

    def check_set(
        self, ids: Sequence[str], stack: Stack, opt: SuperpixelOptions
    ) -> list[InputWarning]:
        """Warn if labels seem to be used for several superpixels, and `components` is unset.

        A map is listed if it has over _REUSED (1.5) 8-connected components per label on average.
        """
        is_reused = stack["n_pieces"] > _REUSED * stack["n_superpixels"]
        if opt.components is not None or not is_reused.any():
            return []
        names = join_names([ids[i] for i in np.flatnonzero(is_reused).tolist()], 3)
        share = f"{is_reused.sum()} of {len(ids)} maps"
        message = f"labels of {share} lie in several pieces each [{names}]"
        fix = (
            Setting("superpixel.components", 8, "takes each piece as a superpixel"),
            Setting("superpixel.components", 0, "each label, as here"),
        )
        return [InputWarning(message, fix=fix)]

    def values(self, counts: Stack, opt: SuperpixelOptions) -> dict[str, Floats]:
        """Return the measures of N images, (N,) each: "compactness", "ue.mean", "ue.min" .."""
        single = ("compactness", "variation", "n_superpixels", "n_pieces")
        values = {name: counts[name] for name in single}
        for name in _MEASURES:
            for k, summary in enumerate(_OVER_ANNOTATORS):
                values[f"{name}.{summary}"] = counts[name][:, k]
        return values

    def describe(self, protocol: Protocol, opt: SuperpixelOptions) -> str:
        """Describe what counts as a superpixel, and the conventions of the measures."""
        kind = captions(opt).get("components", "each label is one, also in several pieces")
        return (
            f"superpixels: {kind}; means over annotators, then over images; boundary recall within "
            "0.0025 of the diagonal"
        )
