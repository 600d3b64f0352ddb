"""The first look at a run: are its first maps inverted, mirrored, exchanged or too thick?

`verdict` of `loaders.reading` judges all images together. It also decides whether the maps are
inverted, or none of their values counts, from the `soft_evidence` of each image. The doctor, which
measures every image, calls the same functions.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from attrs import evolve
from numpy.typing import NDArray

from bsdsbench.arguments import F8
from bsdsbench.errors import Fix, InputWarning, Setting
from bsdsbench.images import GroundTruth, Map, Prediction, few_lines, unit
from bsdsbench.loaders.reading import DARKER
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import Evidence, Values
from bsdsbench.text import listed

LOOKS = 4  # the first images by name, because neighbours by name are exchanged most often
Thumbnail = NDArray[np.floating[Any]]
_Finding = tuple[str, Fix | None]  # a description of the maps, and a fix
FILLED: _Finding = (
    "have filled areas as ground truth, not lines",
    "metric contour for masks",
)
RAW: _Finding = "have broad edges, whose precision is low without NMS", Setting("nms")
# A map is inverted if 1 - value is at least this many times larger on the ground truth than off it
MUCH_DARKER = 1.3
# Correlations of thumbnails, on BSDS500 val and the sample: 0.22 to 0.85 with the own ground truth
# (one map 0.03), up to 0.24 with those of other images and up to 0.26 in another position
AROUND = 9  # side of the square whose mean is subtracted, because images are alike coarsely
_ALIKE = 0.2  # least correlation of a map that fits
_CHANCE = 18.0  # five standard deviations of n smoothed random pixels are _CHANCE / sqrt(n)
BETTER = 2.0  # a better fit has at least this many times the correlation of the upright one
_BROAD = 0.95  # `thickness`: raw maps have 0.99, thinned ones up to 0.88 (recipes of 1.03 and more)
# The largest value of a faint map, by the number of bytes per value. A faint map holds bytes of 0
# and 1, 8-bit values saved as 16 bit, or values divided by 255 twice. A single faint map may be an
# image without boundaries; a set of faint maps was saved wrongly, because every detector has
# stronger boundaries somewhere in a set.
_MAX_FAINT = {1: 9, 2: 255}
FLIPS = (
    ("mirrored left to right", np.fliplr),
    ("upside down", np.flipud),
    ("turned by 180 degrees", partial(np.rot90, k=2)),
    ("transposed", np.transpose),
)


class Look(NamedTuple):
    """The measurements of one image for the first look.

    `soft` is the soft map in [0, 1], inverted if the protocol says so, and `truth` the number of
    annotators that mark each pixel; both are empty if the image has none. `measured` is True if
    both have one size and neither is constant.
    """

    pred: Prediction
    soft: F8
    truth: F8
    measured: bool


def look_at(pred: Prediction, gt: GroundTruth, protocol: Protocol) -> Look:
    """Measure an image for `first_look`."""
    soft = truth = np.zeros((0, 0))
    if pred.kind in ("soft", "ucm2"):
        soft = unit(pred.boundary_map())
        soft = 1 - soft if protocol.invert else soft
    if len(set(map(np.shape, gt.boundaries))) == 1:
        truth = np.sum(gt.boundaries, axis=0, dtype=np.float64)
    measured = soft.shape == truth.shape and soft.size > 0
    return Look(pred, soft, truth, measured and bool(np.ptp(soft) > 0 and np.ptp(truth) > 0))


def first_look(
    looks: Sequence[Look], protocol: Protocol, unused: Collection[str]
) -> list[InputWarning]:
    """Return warnings about the first images of a run. Only the most serious kind is returned.

    `unused` are the fields of the protocol that no score of the run depends on.
    """
    needs_lines = (
        protocol.thin and not protocol.nms and not {"nms", "max_dist"}.intersection(unused)
    )
    turned: dict[_Finding, list[str]] = {}
    thick: dict[_Finding, list[str]] = {}
    dark = []
    thumbnails = []
    n_soft = 0
    for pred, soft, truth, measured in looks:
        if not measured:
            continue
        image_id = pred.image_id
        if _is_dark(Look(pred, soft, truth, measured)):
            dark.append(image_id)
        small_map, small_truth = thumbnail(soft), thumbnail(truth)
        thumbnails.append((image_id, small_map, small_truth))
        if name := position(small_map, small_truth):
            turned.setdefault((f"fit their ground truth only {name}", None), []).append(image_id)
        if needs_lines and pred.kind == "soft":
            n_soft += 1
            if thickness(soft) > _BROAD:
                finding = FILLED if thickness(truth) > _BROAD else RAW
                thick.setdefault(finding, []).append(image_id)
    findings = turned
    if 2 * len(dark) > len(thumbnails):
        findings = {(DARKER, Setting("invert", not protocol.invert)): dark}
    elif not findings:
        swapped = [" looks like ".join(ids) for ids in find_swaps(thumbnails)]
        if swapped:
            findings = {("fit the ground truth of another image", None): swapped}
        else:
            most = [(finding, ids) for finding, ids in thick.items() if 2 * len(ids) > n_soft]
            findings = dict(most[:1])
    warnings = []
    for (description, fix), ids in findings.items():
        line = f"{len(ids)} of {len(thumbnails)} maps looked at {description} [{listed(ids, 3)}]"
        warnings.append(InputWarning(line, fix=fix or ()))
    return warnings


def _is_faint(soft: Map, protocol: Protocol, curve: bool = True) -> bool:
    """Return True if no value reaches the lowest threshold, or all values are small integers.
    `curve` is False for metrics without thresholds.
    """
    if protocol.normalise or soft.dtype == bool:
        return False
    max_faint = _MAX_FAINT[soft.dtype.itemsize] if soft.dtype.kind == "u" else -1
    lowest = min(filter(None, protocol.thresholds)) if curve else 0
    for lines in (few_lines(soft), soft):  # a few lines are enough for most maps
        top = lines.max(initial=0)
        if not (top <= max_faint or float(unit(np.asarray(top))) < lowest):
            return False
    return True


def soft_evidence(pred: Prediction, gt: GroundTruth, protocol: Protocol, curve: bool) -> Evidence:
    """Return the evidence of a prediction: whether any value of its soft map counts, and polarity.

    `curve` is False for metrics without thresholds. Arrays of floats are never faint: a network in
    training may give any numbers.
    """
    evidence = evolve(pred.evidence, maps=max(pred.evidence.maps, 1), file=pred.file)
    if pred.kind not in ("soft", "ucm2"):
        return evidence
    soft = pred.parts[pred.kind]
    shade = _polarity(pred, gt, protocol)
    if _is_faint(soft, protocol, curve) and (pred.path or soft.dtype.kind == "u"):
        strongest = float(soft.max(initial=0))
        return evolve(evidence, values=Values.FAINT | shade, strongest=strongest)
    return evolve(evidence, values=Values.STRONG | shade)


def _polarity(pred: Prediction, gt: GroundTruth, protocol: Protocol) -> Values:
    """Return DARK or LIGHT: whether a soft map is darker on the boundaries than off them.

    Return NOTHING if that cannot be measured. A dark mean already tells that a map is LIGHT, and
    most maps are dark.
    """
    if pred.kind not in ("soft", "ucm2") or 0 in pred.shape:
        return Values.NOTHING
    soft = pred.soft if pred.kind == "soft" else pred.ucm2[2::2, 2::2]
    white = np.iinfo(soft.dtype).max if soft.dtype.kind == "u" else 1
    for lines, limit in ((few_lines(soft), 0.25), (soft, 0.5)):  # a few lines are mostly enough
        mean = float(lines.mean()) / white
        if (1 - mean if protocol.invert else mean) < limit:
            return Values.LIGHT
    look = look_at(pred, gt, protocol)
    if not look.measured:
        return Values.NOTHING
    return Values.DARK if _is_dark(look) else Values.LIGHT


def _is_dark(look: Look) -> bool:
    """Return True for a bright map that is much darker on the ground truth than off it."""
    if not look.soft.mean() > 0.5:  # most maps are dark as a whole
        return False
    darkness = 1 - _block_means(look.soft)
    is_marked = _block_means(look.truth) > 0
    has_both = is_marked.any() and not is_marked.all()
    return bool(has_both and darkness[is_marked].mean() > MUCH_DARKER * darkness[~is_marked].mean())


# ---- geometry ------------------------------------------------------------------------------------


def _block_means(values: F8) -> F8:
    """Return the means of blocks of 4 x 4 pixels, or 2 x 2 for small images."""
    side = 4 if min(values.shape) >= 200 else min(2, *values.shape)
    rows, cols = values.shape[0] // side, values.shape[1] // side
    blocks = values[: rows * side, : cols * side].reshape(rows, side, cols, side)
    return np.asarray(blocks.mean(axis=(1, 3)))


def thumbnail(values: F8) -> F8:
    """Return block means, smoothed, minus the mean of their surroundings, with norm 1.

    Sums of shifted copies replace scipy's filters, whose import takes longer than the whole
    computation.
    """
    small = _smoothed(_block_means(values), (1, 4, 6, 4, 1))
    small = small - _smoothed(small, (1,) * AROUND)
    norm = float(np.sqrt((small * small).sum()))
    return small / norm if norm > 0 else small


def _smoothed(values: F8, weights: Sequence[float]) -> F8:
    """Convolve both axes with the normalised weights, with edges repeated."""
    for _ in range(2):
        padded = np.pad(values, ((len(weights) // 2,) * 2, (0, 0)), "edge")
        summed = np.zeros_like(values)
        for k, weight in enumerate(weights):
            summed += weight * padded[k : k + len(values)]
        values = (summed / sum(weights)).T
    return values


def position(pred: F8, truth: F8) -> str:
    """Name the position in which a map fits its ground truth best; "" if it is upright.

    Both arguments are thumbnails. Only square thumbnails are also transposed, because others would
    change shape.
    """
    best_fit = -math.inf
    best_name = ""
    for name, turn in FLIPS if pred.shape[0] == pred.shape[1] else FLIPS[:-1]:
        best_fit, best_name = max((best_fit, best_name), (float((turn(pred) * truth).sum()), name))
    upright = float((pred * truth).sum())
    return (
        best_name
        if best_fit > max(_ALIKE, _CHANCE / math.sqrt(pred.size), BETTER * upright)
        else ""
    )


def find_swaps(looks: Iterable[tuple[str, Thumbnail, Thumbnail]]) -> list[tuple[str, str]]:
    """Find maps that fit another image's ground truth. Return pairs (image, other image).

    Each look is an image's id and the thumbnails of its map and of its ground truth. Map and ground
    truth must fit each other best among all images of the same size.
    """
    looks_by_size: dict[tuple[int, ...], list[tuple[str, Thumbnail, Thumbnail]]] = {}
    for look in looks:
        looks_by_size.setdefault(look[1].shape, []).append(look)
    swapped = []
    for same_size in looks_by_size.values():
        ids, preds, truths = zip(*same_size, strict=True)
        # (n, n): correlation of each map with each ground truth
        fits = np.tensordot(np.stack(preds), np.stack(truths), ((1, 2), (1, 2)))
        for k, best in enumerate(fits.argmax(axis=1).tolist()):
            least = max(_ALIKE, _CHANCE / math.sqrt(preds[0].size), BETTER * fits[k, k])
            if best != k and fits[:, best].argmax() == k and fits[k, best] > least:
                swapped.append((ids[k], ids[best]))
    return swapped


def thickness(soft: F8) -> float:
    """Return the fraction of strong pixels that lie in a full 2 x 2 square of strong pixels.

    It is 0 for one-pixel lines and 1 for broad edges. Strong pixels are those above the median, the
    upper quartile and the upper tenth of the non-zero values; the three fractions are averaged. NaN
    for an empty map.
    """
    values = soft[soft > 0]
    fractions = []
    if not values.size:
        return math.nan
    for level in np.quantile(values, (0.5, 0.75, 0.9)):
        strong = soft >= level
        is_full_square = np.pad(
            strong[:-1, :-1] & strong[1:, :-1] & strong[:-1, 1:] & strong[1:, 1:], 1
        )
        in_full_square = (
            is_full_square[:-1, :-1]
            | is_full_square[1:, :-1]
            | is_full_square[:-1, 1:]
            | is_full_square[1:, 1:]
        )
        fractions.append(in_full_square.sum() / strong.sum())
    return float(np.mean(fractions))
