"""What looks wrong with the first images of a run: maps inverted, mirrored, of other images, thick.

What all images together show is a verdict of `loaders.reading`, also whether they are inverted,
which `polarity` measures of each. The doctor, which measures every image, asks the same functions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.arguments import F8
from bsdsbench.errors import Fix, InputWarning, Setting
from bsdsbench.images import GroundTruth, Prediction, few_lines, unit
from bsdsbench.loaders.reading import DARKER
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs.keywords import Plan
from bsdsbench.scores.counts import Values
from bsdsbench.text import listed

LOOKS = 4  # images that are looked at: neighbours by name are exchanged most often
Thumbnail = NDArray[np.floating[Any]]
_What = tuple[str, Fix | None]  # words for what maps have, and what mends it
FILLED: _What = (
    "have filled areas as ground truth, not lines",
    "metric contour for masks",
)
RAW: _What = "have broad edges, whose precision is low without NMS", Setting("nms")
# Inverted: what is missing to full brightness is so many times as much near the ground truth
MUCH_DARKER = 1.3
# Correlations of thumbnails, on BSDS500 val and the sample: 0.22 to 0.85 with the own ground truth
# (one map 0.03), up to 0.24 with those of other images and up to 0.26 in another position
AROUND = 9  # pixels a side whose mean is taken off: images are alike on a coarse scale
_ALIKE = 0.2
_CHANCE = 18.0  # five standard deviations of n smoothed random pixels are _CHANCE / sqrt(n)
BETTER = 2.0  # times as much as as it lies
_BROAD = 0.95  # `thickness`: raw maps have 0.99, thinned ones up to 0.88 (recipes of 1.03 and more)
FLIPS = (
    ("mirrored left to right", np.fliplr),
    ("upside down", np.flipud),
    ("turned by 180 degrees", partial(np.rot90, k=2)),
    ("transposed", np.transpose),
)


class Look(NamedTuple):
    """A prediction, its soft map in [0, 1] as the protocol takes it, and the annotators' marks.

    soft and truth are empty where there are none.
    measured : True if there are a map and marks of one size, neither of them constant
    """

    pred: Prediction
    soft: F8
    truth: F8
    measured: bool


def look_at(pred: Prediction, gt: GroundTruth, protocol: Protocol) -> Look:
    """Measure what `first_look` needs of an image."""
    soft = truth = np.zeros((0, 0))
    if pred.kind in ("soft", "ucm2"):
        soft = unit(pred.boundary_map())
        soft = 1 - soft if protocol.invert else soft
    if len(set(map(np.shape, gt.boundaries))) == 1:
        truth = np.sum(gt.boundaries, axis=0, dtype=np.float64)
    measured = soft.shape == truth.shape and soft.size > 0
    return Look(pred, soft, truth, measured and bool(np.ptp(soft) > 0 and np.ptp(truth) > 0))


def first_look(looks: Sequence[Look], plan: Plan) -> list[InputWarning]:
    """Return warnings about the first images of a run, of the first kind that occurs."""
    protocol = plan.protocol
    lines = protocol.thin and not protocol.nms and not {"nms", "max_dist"} & plan.unused
    wrong, thick = dict[_What, list[str]](), dict[_What, list[str]]()
    dark, small, soft = [], [], 0
    for look in looks:
        pred, bright, truth, measured = look
        if not measured:
            continue
        image_id = pred.image_id
        if _is_dark(look):
            dark.append(image_id)
        small.append((image_id, thumbnail(bright), thumbnail(truth)))
        if way := position(*small[-1][1:]):
            wrong.setdefault((f"fit their ground truth only {way}", None), []).append(image_id)
        if lines and pred.kind == "soft":
            soft += 1
            if thickness(bright) > _BROAD:
                what = FILLED if thickness(truth) > _BROAD else RAW
                thick.setdefault(what, []).append(image_id)
    if 2 * len(dark) > len(small):
        fix = Setting("invert", not protocol.invert)
        wrong = {(DARKER, fix): dark}
    elif not wrong:
        if elsewhere := list(map(" looks like ".join, swaps(small))):
            wrong = {("fit the ground truth of another image", None): elsewhere}
        for broad, ids in thick.items():
            if not wrong and 2 * len(ids) > soft:
                wrong = {broad: ids}
    warned = []
    for (words, mends), ids in wrong.items():
        line = f"{len(ids)} of {len(small)} maps looked at {words} [{listed(ids, 3)}]"
        warned.append(InputWarning(line, fix=mends or ()))
    return warned


def polarity(pred: Prediction, gt: GroundTruth, protocol: Protocol) -> Values:
    """Return whether a soft map is darker on the boundaries than off them, where that is known.

    Most maps are dark as a whole, which one look at their mean shows.
    """
    if pred.kind not in ("soft", "ucm2") or 0 in pred.shape:
        return Values.NOTHING
    soft = pred.soft if pred.kind == "soft" else pred.ucm2[2::2, 2::2]
    white = np.iinfo(soft.dtype).max if soft.dtype.kind == "u" else 1
    for part in (few_lines(soft), soft):  # a few are enough for most maps
        bright = float(part.mean()) / white
        if (1 - bright if protocol.invert else bright) < (0.25 if part is not soft else 0.5):
            return Values.LIGHT
    look = look_at(pred, gt, protocol)
    if not look.measured:
        return Values.NOTHING
    return Values.DARK if _is_dark(look) else Values.LIGHT


def _is_dark(look: Look) -> bool:
    """Return True for a bright map that is darker on the ground truth than off it."""
    if not look.soft.mean() > 0.5:  # as most maps
        return False
    dim, marked = 1 - _block_means(look.soft), _block_means(look.truth) > 0
    differs = marked.any() and not marked.all()
    return bool(differs and dim[marked].mean() > MUCH_DARKER * dim[~marked].mean())


# ---- geometry ------------------------------------------------------------------------------------


def _block_means(values: F8) -> F8:
    """Return the means of 4 x 4 pixels, of small images 2 x 2."""
    side = 4 if min(values.shape) >= 200 else min(2, *values.shape)
    rows, cols = values.shape[0] // side, values.shape[1] // side
    cut = values[: rows * side, : cols * side].reshape(rows, side, cols, side)
    return np.asarray(cut.mean(axis=(1, 3)))


def thumbnail(values: F8) -> F8:
    """Block means, smoothed, less their surroundings, of length 1.

    Sums of shifted copies in place of scipy's filters, whose import takes longer than all of this.
    """
    small = _smoothed(_block_means(values), (1, 4, 6, 4, 1))
    small = small - _smoothed(small, (1,) * AROUND)
    norm = float(np.sqrt((small * small).sum()))
    return small / norm if norm > 0 else small


def _smoothed(values: F8, weights: Sequence[float]) -> F8:
    for _ in range(2):
        wide = np.pad(values, ((len(weights) // 2,) * 2, (0, 0)), "edge")
        summed = np.zeros_like(values)
        for k, weight in enumerate(weights):
            summed += weight * wide[k : k + len(values)]
        values = (summed / sum(weights)).T
    return values


def position(pred: F8, want: F8) -> str:
    """Name the position in which a map fits its ground truth far better; "" if it is upright.

    Both are given as thumbnails. Only square ones are also transposed: others change their size.
    """
    fit, best = -math.inf, ""
    for name, turn in FLIPS if pred.shape[0] == pred.shape[1] else FLIPS[:-1]:
        fit, best = max((fit, best), (float((turn(pred) * want).sum()), name))
    upright = float((pred * want).sum())
    return best if fit > max(_ALIKE, _CHANCE / math.sqrt(pred.size), BETTER * upright) else ""


def swaps(looks: Iterable[tuple[str, Thumbnail, Thumbnail]]) -> list[tuple[str, str]]:
    """Return the maps that fit another image's ground truth: pairs of an image and that other one.

    A look is an image's id and the thumbnails of its map and of its ground truth. Each of the two
    must be the other's best: of the maps of one size, and of their ground truths.
    """
    swapped, sizes = [], dict[tuple[int, ...], list[tuple[str, Thumbnail, Thumbnail]]]()
    for look in looks:
        sizes.setdefault(look[1].shape, []).append(look)
    for same in sizes.values():
        ids, preds, truths = zip(*same, strict=True)
        fits = np.tensordot(np.stack(preds), np.stack(truths), ((1, 2), (1, 2)))
        for k, best in enumerate(fits.argmax(axis=1).tolist()):
            least = max(_ALIKE, _CHANCE / math.sqrt(preds[0].size), BETTER * fits[k, k])
            if best != k and fits[:, best].argmax() == k and fits[k, best] > least:
                swapped.append((ids[k], ids[best]))
    return swapped


def thickness(soft: F8) -> float:
    """Return the share of strong pixels that lie in a full 2 x 2 square of strong pixels.

    0 for one-pixel lines, 1 for broad edges; strong is above the median, the upper quartile and
    the upper tenth of the non-zero values, averaged. NaN for an empty map.
    """
    values, shares = soft[soft > 0], []
    if not values.size:
        return math.nan
    for level in np.quantile(values, (0.5, 0.75, 0.9)):
        strong = soft >= level
        full = np.pad(strong[:-1, :-1] & strong[1:, :-1] & strong[:-1, 1:] & strong[1:, 1:], 1)
        square = full[:-1, :-1] | full[1:, :-1] | full[:-1, 1:] | full[1:, 1:]
        shares.append(square.sum() / strong.sum())
    return float(np.mean(shares))
