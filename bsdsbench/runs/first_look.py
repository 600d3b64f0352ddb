"""What is wrong with a set of inputs, seen before its first image is counted.

A few pairs are read, neighbours by name, and ground truth only where its file is small enough to
be empty: together below the work of three images. The doctor, which reads everything, asks the same
functions.

| fault | what happens |
|---|---|
| ground truth without a boundary pixel (`empty_gt = "error"`) | refused |
| every map below the lowest threshold, or of a few small integers | refused |
| every map zero; maps inverted, mirrored, of other images, or thick without NMS | a warning |
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.bounded import listed, show
from bsdsbench.files.errors import DataError, EmptyTruthError
from bsdsbench.loaders import read_prediction, read_truth
from bsdsbench.loaders.inputs import GroundTruth, Prediction
from bsdsbench.metrics import registry
from bsdsbench.metrics.maps import ALL_ZERO, faint_set, unit
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs.job import Job

F8 = NDArray[np.float64]
PLACES = 2  # where two neighbours are looked at
# What is empty packs to less, up to 2000 x 2000 pixels; larger ones are refused when they are read
EMPTY_BYTES = 4096
EMPTY_HDF5 = 16 * EMPTY_BYTES
PACKED = (".png", ".mat", ".npz", ".gif", ".webp", ".jpg", ".jpeg", ".seg")
COMPRESSED = (b"\x0f\0\0\0", b"\0\0\0\x0f")  # miCOMPRESSED, in either order of bytes
ONE_SEGMENT = re.compile(rb"^segments\s+1\s*$", re.MULTILINE)
# Inverted: what is missing to full brightness is so many times as much near the ground truth
DARKER = 1.3
# Correlations of thumbnails, on BSDS500 val and the sample: .22 to .85 with the own ground truth
# (one map .03), up to .24 with those of other images and up to .26 in another position
AROUND = 9  # pixels a side whose mean is taken off: images are alike on a coarse scale
ALIKE = 0.2
CHANCE = 18.0  # five standard deviations of n smoothed random pixels are CHANCE / sqrt(n)
BETTER = 2.0  # times as much as as it lies
BROAD = 0.95  # `thickness`: raw maps have 0.99, thinned ones up to 0.88 (recipes of 1.03 and more)


def first_look(jobs: Sequence[Job], on_error: str) -> list[str]:
    """Warnings about a run's inputs. Raises DataError for what must not be counted."""
    if not jobs or jobs[0].humans:
        return []
    if on_error == "fail" and jobs[0].protocol.empty_gt == "error":
        _refuse_empty(jobs)
    step = max(1, len(jobs) // PLACES)
    chosen = list(dict.fromkeys(k + d for k in range(0, len(jobs), step) for d in (0, 1)))
    looks = [look for k in chosen[: 2 * PLACES] if k < len(jobs) and (look := _look(jobs[k]))]
    zero = _refuse_faint(looks, jobs)
    looks = [look for look in looks if look.measured]
    invert = jobs[0].protocol.invert
    faults = (_inverted(looks, invert), _mirrored(looks), _exchanged(looks), _thick(looks, jobs[0]))
    return zero or next(filter(None, map(list, faults)), [])


# ---- ground truth --------------------------------------------------------------------------------


def _refuse_empty(jobs: Sequence[Job]) -> None:
    if registry.get(jobs[0].metrics[0]).gt_kind != "annotators":
        return
    faults = []
    for job in jobs:
        if all(map(_may_be_empty, job.pair.gt_paths)):
            try:
                read_truth(job.pair, "annotators", job.protocol)
            except EmptyTruthError as error:
                faults.append(error)
            except (DataError, OSError):  # the run says so in its turn
                continue
    if faults:
        raise DataError.collect(faults)


def _may_be_empty(path: Path) -> bool:
    """False for a file that is too large for what it holds to be empty, judged by its head."""
    kind = path.suffix.lower()
    try:
        size = os.stat(path).st_size
        if kind not in PACKED or size <= EMPTY_BYTES:
            return True
        with path.open("rb") as file:
            head = file.read(512)
    except OSError:
        return False
    if kind == ".seg":
        return ONE_SEGMENT.search(head) is not None
    if kind == ".npz":
        return head[8:10] == b"\0\0"  # stored, not deflated
    if head.startswith(b"MATLAB 7.3"):
        return size <= EMPTY_HDF5
    return kind == ".mat" and head[128:132] not in COMPRESSED


# ---- values --------------------------------------------------------------------------------------


def _refuse_faint(looks: Sequence[Look], jobs: Sequence[Job]) -> list[str]:
    """A warning where every map is zero; DataError where every one is faint."""
    curve = any("thresholds" in registry.get(m).uses for m in jobs[0].metrics)
    fault = faint_set(_predictions(looks, jobs), jobs[0].protocol, curve)
    if not fault or fault == ALL_ZERO:
        return [fault] if fault else []
    folder = next(job.pair.pred_paths[0].parent for job in jobs if job.pair.pred_paths)
    raise DataError(f"{show(folder)}: {fault}")


def _predictions(looks: Sequence[Look], jobs: Sequence[Job]) -> Iterator[Prediction]:
    """Those that were read, then all others."""
    known = {look.image_id for look in looks}
    yield from (look.pred for look in looks)
    for job in jobs:
        if job.pair.image_id not in known and (found := _look(job)):
            yield found.pred


# ---- geometry ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """A prediction, its soft map in [0, 1] as the protocol takes it, and the annotators' marks.

    soft and truth are empty where there are none.
    """

    image_id: str
    pred: Prediction
    soft: F8
    truth: F8

    @property
    def measured(self) -> bool:
        """True if there are a map and marks of one size, neither of them constant."""
        same = self.soft.shape == self.truth.shape and self.soft.size > 0
        return same and all(x.min() < x.max() for x in (self.soft, self.truth))


def _look(job: Job) -> Look | None:
    """None where the files cannot be read: the run says why."""
    if not job.pair.pred_paths:
        return None
    try:
        gt = read_truth(job.pair, registry.get(job.metrics[0]).gt_kind, job.protocol)
        pred = read_prediction(job.pair, job.pred_kind, gt.shape)
    except (DataError, OSError):
        return None
    return look_at(pred, gt, job.protocol)


def look_at(pred: Prediction, gt: GroundTruth, protocol: Protocol) -> Look:
    """What is measured of an image."""
    soft = truth = np.zeros((0, 0))
    if pred.soft is not None or pred.ucm2 is not None:
        soft = unit(pred.boundary_map())
        soft = 1 - soft if protocol.invert else soft
    if gt.boundaries and len({b.shape for b in gt.boundaries}) == 1:
        truth = reduce(np.add, gt.boundaries, np.zeros(gt.shape))
    return Look(pred.image_id, pred, soft, truth)


def _inverted(looks: Sequence[Look], invert: bool) -> Iterator[str]:
    """A warning if most maps are bright where nothing is marked, and darker where it is."""
    dark = []
    for look in looks:
        dim, marked = 1 - blocks(look.soft), blocks(look.truth) > 0
        if marked.all() or look.soft.mean() <= 0.5:
            continue
        if dim[marked].mean() > DARKER * dim[~marked].mean():
            dark.append(look.image_id)
    if 2 * len(dark) > len(looks):
        fix = "without invert=True?" if invert else "invert=True?"
        yield _said(f"are darker on the ground truth than off it: {fix}", dark, looks)


def _mirrored(looks: Sequence[Look]) -> Iterator[str]:
    found: dict[str, list[str]] = {}
    for look in looks:
        if way := position(look):
            found.setdefault(way, []).append(look.image_id)
    for way, ids in found.items():
        yield _said(f"fit their ground truth only {way}", ids, looks)


def _exchanged(looks: Sequence[Look]) -> Iterator[str]:
    if ids := [f"{a} looks like {b}" for a, b in swaps(looks)]:
        yield _said("fit the ground truth of another image", ids, looks)


def _thick(looks: Sequence[Look], job: Job) -> Iterator[str]:
    """A warning if most maps are broad where lines are matched and nothing thins them by NMS."""
    protocol = job.protocol
    found = map(registry.get, job.metrics)
    used = {name for m in found for name in m.used(m.options_of(protocol))}
    if protocol.nms or not (protocol.thin and {"nms", "max_dist"} <= used):
        return
    soft = [look for look in looks if look.pred.soft is not None]
    broad = [look.image_id for look in soft if thickness(look.soft) > BROAD]
    if 2 * len(broad) > len(soft):
        yield _said("have broad edges, whose precision is low without NMS: nms=True?", broad, looks)


def _said(what: str, ids: Sequence[str], looks: Sequence[Look]) -> str:
    return f"{len(ids)} of {len(looks)} maps looked at {what} [{listed(list(ids), 3)}]"


def blocks(values: F8) -> F8:
    """Means of 4 x 4 pixels, of small images 2 x 2."""
    rows, cols = values.shape
    side = 4 if min(rows, cols) >= 200 else min(2, rows, cols)
    part = values[: rows // side * side, : cols // side * side]
    tall = reduce(np.add, (part[k::side] for k in range(side)))
    return reduce(np.add, (tall[:, k::side] for k in range(side))) / side**2


def thumbnail(values: F8) -> F8:
    """`blocks`, smoothed, less their surroundings, of length 1.

    Sums of shifted copies in place of scipy's filters, whose import takes longer than all of this.
    """
    small = _smoothed(blocks(values), (1, 4, 6, 4, 1))
    small = small - _smoothed(small, (1,) * AROUND)
    norm = float(np.sqrt((small * small).sum()))
    return small / norm if norm > 0 else small


def _smoothed(values: F8, weights: Sequence[float]) -> F8:
    reach = len(weights) // 2
    for _ in range(2):
        n = len(values)
        wide = np.concatenate([values[:1]] * reach + [values] + [values[-1:]] * reach)
        summed = np.zeros_like(values)
        for k, weight in enumerate(weights):
            summed += weight * wide[k : k + n]
        values = (summed / sum(weights)).T
    return values


def position(look: Look) -> str:
    """How a map lies if it fits its ground truth far better so; "" if it is upright.

    "transposed" is asked of square images alone: of others it has another size.
    """
    pred, want = thumbnail(look.soft), thumbnail(look.truth)
    ways = FLIPS if pred.shape[0] == pred.shape[1] else FLIPS[:-1]
    fit, best = max((float((turn(pred) * want).sum()), name) for name, turn in ways)
    own = float((pred * want).sum())
    return best if fit > max(_alike(pred), BETTER * own) else ""


def _alike(small: F8) -> float:
    """A correlation of thumbnails that is no chance."""
    return max(ALIKE, CHANCE / math.sqrt(small.size))


def swaps(looks: Sequence[Look]) -> list[tuple[str, str]]:
    """(image, the one whose ground truth its map fits) of the maps that lie in another's place.

    Each of the two must be the other's best: of the maps of one size, and of their ground truths.
    """
    found: list[tuple[str, str]] = []
    sizes: dict[tuple[int, ...], list[Look]] = {}
    for look in looks:
        sizes.setdefault(look.soft.shape, []).append(look)
    for same in sizes.values():
        preds = np.stack([thumbnail(look.soft).ravel() for look in same])
        truths = np.stack([thumbnail(look.truth).ravel() for look in same])
        fits = preds @ truths.T
        for k, best in enumerate(fits.argmax(axis=1).tolist()):
            mutual = best != k and int(fits[:, best].argmax()) == k
            if mutual and fits[k, best] > max(_alike(preds[k]), BETTER * fits[k, k]):
                found.append((same[k].image_id, same[best].image_id))
    return found


def thickness(soft: F8) -> float:
    """Share of strong pixels that lie in a full 2 x 2 square of strong pixels.

    0 for one-pixel lines, 1 for broad edges; strong is above the median, the upper quartile and
    the upper tenth of the non-zero values, averaged. NaN for an empty map.
    """
    values = soft[soft > 0]
    if not values.size:
        return math.nan
    shares = []
    for level in np.quantile(values, (0.5, 0.75, 0.9)):
        strong = soft >= level
        full = strong[:-1, :-1] & strong[1:, :-1] & strong[:-1, 1:] & strong[1:, 1:]
        square = np.zeros(soft.shape, bool)
        for dy in (0, 1):
            for dx in (0, 1):
                square[dy : dy + full.shape[0], dx : dx + full.shape[1]] |= full
        shares.append(square.sum() / strong.sum())
    return float(np.mean(shares))


FLIPS: tuple[tuple[str, Callable[[F8], F8]], ...] = (
    ("mirrored left to right", np.fliplr),
    ("upside down", np.flipud),
    ("turned by 180 degrees", lambda a: np.rot90(a, 2)),
    ("transposed", np.transpose),
)
