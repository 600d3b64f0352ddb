"""Small pictures for a report: photographs as thumbnails, lines as palette PNG, several at a time.

What a pixel is at every threshold (matched, false, missed) is packed as byte planes, which the page
draws on a canvas at the threshold of its slider.

A page of every picture of 200 images and three methods has 30 MB. So those come first that are
looked at first: by each method the worst and the best, and where two methods differ most; as many
as fit into `BUDGET`, and at most `MOST`: nobody looks through a thousand small pictures, which take
longer to draw than everything else.
"""

from __future__ import annotations

import base64
import io
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import combinations, zip_longest
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.arguments import Bool
from bsdsbench.comparison.lost_scores import metric_with_errors
from bsdsbench.errors import DataError
from bsdsbench.images import GroundTruth, Prediction, without_void
from bsdsbench.io import png_bytes
from bsdsbench.loaders.labels import seg2bdry
from bsdsbench.metrics.error_classes import ERROR_CODES, pixel_classes
from bsdsbench.metrics.optional import CutsSoftMaps
from bsdsbench.metrics.soft_pixels import FALSE_PIXEL, MATCHED_PIXEL, SoftPixels
from bsdsbench.report.overlays import (
    COLORS,
    OPACITY,
    VOID,
    drawn_metric,
    load_image,
    matching_metric,
    soft_pixels,
    soft_scores,
    void_stripes,
)
from bsdsbench.report.regions import RegionOverlay, region_overlays
from bsdsbench.results.evaluation import Evaluation, Progress
from bsdsbench.runs.engine import available_cores
from bsdsbench.runs.sources import Sources, fault_of, files_changed
from bsdsbench.scores.counts import ImageRecord
from bsdsbench.scores.curve import PRCurve

THUMBNAIL = 320  # longer side, pixels
THUMB = 120  # that of the table
QUALITY, FULL_QUALITY = 70, 90
EFFORT, SERVED_EFFORT = 6, 1  # of deflating; less where nothing is kept: a third of the time
BUDGET = 5_000_000  # characters; tables, values and scripts have room below 6 MB
MOST = 200  # images
_LEVELS = 8


def _gt_picture(
    gt: GroundTruth,
    photo: NDArray[np.uint8] | None,
    side: int | None = THUMBNAIL,
    void: Bool | None = None,
) -> dict[str, object]:
    """The annotators' boundaries of one image, darker where more agree, and its photograph.

    Of label maps their outlines, of masks the masks. `truth` says in words what is drawn, `void` is
    what is counted nowhere. Also `thumb`, a small picture for the table; `paper` says that it has a
    transparent ground.
    """
    lines, words = annotated_shares(gt)
    levels = np.ceil(lines * (_LEVELS - 1)).astype(np.uint8)
    shades = np.linspace(190, 0, _LEVELS).astype(int)
    drawn = _uri(
        "png", png_bytes(levels, [(v, v, v, 255 if i else 0) for i, v in enumerate(shades)])
    )
    out = {"gt": drawn, "size": [gt.shape[1], gt.shape[0]], "truth": f"ground truth, {words}"}
    if void is not None:
        palette = (0, 0, 0, 0), (*COLORS[VOID], round(255 * OPACITY))
        out["void"] = _uri("png", png_bytes(void.astype(np.uint8), palette))
    if photo is None:
        return {**out, "thumb": drawn, "paper": True}
    return {**out, "photo": _jpeg_uri(photo, side), "thumb": _jpeg_uri(photo, THUMB)}


class AnnotatedLines(NamedTuple):
    """The share of annotators who drew each pixel, f8 (H, W), or outlines, with a caption."""

    lines: NDArray[np.float64]
    words: str


def annotated_shares(gt: GroundTruth) -> AnnotatedLines:
    """Return the drawing of a ground truth: boundaries, or the outlines of masks and labels."""
    if gt.boundaries:
        n_annotators = len(gt.boundaries)
        words = f"{n_annotators} annotator{'s' * (n_annotators > 1)}"
        return AnnotatedLines(np.mean(gt.boundaries, axis=0), words)
    if "class_boundaries" in gt.parts:
        n_classes = int(gt.class_boundaries.any(axis=(1, 2)).sum())
        words = f"boundaries of {n_classes} class{'es' * (n_classes != 1)}"
        return AnnotatedLines(gt.class_boundaries.any(axis=0).astype(float), words)
    if "labels" in gt.parts:
        return AnnotatedLines(seg2bdry(gt.labels).astype(float), "outlines")
    if "mask" in gt.parts:
        return AnnotatedLines(gt.mask.astype(float), "mask")
    return AnnotatedLines(np.zeros(gt.shape), "which is not drawn")


def _jpeg_uri(pixels: NDArray[np.uint8], side: int | None = THUMBNAIL) -> str:
    """A picture at most `side` pixels long, or in full size, (H, W) gray or (H, W, 3)."""
    from PIL import Image

    image = Image.fromarray(pixels)
    if side is not None:
        image.thumbnail((side, side))
    out = io.BytesIO()
    image.save(out, "JPEG", quality=QUALITY if side else FULL_QUALITY, optimize=side is not None)
    return _uri("jpeg", out.getvalue())


def _gray(pred: Prediction, run: Evaluation) -> NDArray[np.uint8]:
    """The prediction as it is thresholded, dark lines on white; segmentations: their share."""
    from bsdsbench.images import unit
    from bsdsbench.transforms.maps import prepare

    if pred.kind == "segs":
        soft: Any = np.mean([seg2bdry(s) for s in pred.segs], axis=0)
    elif pred.kind == "classes":
        soft = seg2bdry(pred.classes)
    else:
        soft = unit(prepare(pred.boundary_map(), run.protocol))
    return np.asarray(np.rint(255 * (1 - np.clip(soft, 0, 1))), np.uint8)


def _uri(kind: str, data: bytes) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"


def by_interest(ids: Sequence[str], values: Sequence[Mapping[str, float]]) -> list[str]:
    """Return all ids: by turns the next worst, the next best and the next largest difference.

    values : one column of each run that compares, image id -> value
    """
    rankings = []
    for column in values:
        up = sorted(column, key=lambda k: (column[k], k))
        rankings += [up, up[::-1]]
    for a, b in combinations(values, 2):
        gap = {k: abs(a[k] - b[k]) for k in a.keys() & b.keys()}
        rankings.append(sorted(gap, key=lambda k: (-gap[k], k)))
    turns = (k for turn in zip_longest(*rankings) for k in turn if k is not None)
    return list(dict.fromkeys([*turns, *ids]))


class ImagePictures:
    """Makes the pictures of an image in all runs, small or in full size."""

    def __init__(
        self,
        runs: Sequence[Evaluation],
        sources: Mapping[str, Sources],
        full: bool,
        errors: bool = False,
    ) -> None:
        """Take the runs, their files by name, and whether classes of errors are shown."""
        self.sources, self.side = sources, None if full else THUMBNAIL
        self.effort = SERVED_EFFORT if full else EFFORT
        self.errors, self.runs = errors, []  # number and run; its records
        for number, run in enumerate(runs):
            if run.name in sources:
                records = {record.image_id: record for record in run.records}
                self.runs.append((str(number), run, records))

    def __call__(self, image_id: str) -> tuple[dict[str, Any], list[tuple[Any, DataError]]]:
        """Return one image's pictures, and the runs with what was wrong with their files."""
        drawn, faults = dict[str, Any](runs={}), []
        for number, run, records in self.runs:
            if image_id not in records:  # the run left it out
                continue
            try:
                pred, gt = load_image(self.sources[run.name], run, records[image_id])
                if "gt" not in drawn:
                    photo = self.sources[run.name].photo(image_id, gt.shape)
                    drawn.update(_gt_picture(gt, photo, self.side, void_stripes(gt, run)))
                if planes := self._planes(pred, gt, run, records[image_id]):
                    gray = _jpeg_uri(_gray(pred, run), self.side)
                    drawn["runs"][number] = {"pred": gray, **planes}
            except DataError as error:
                faults.append((run, error))
        return drawn, faults

    def _planes(
        self, pred: Prediction, gt: GroundTruth, run: Evaluation, record: ImageRecord
    ) -> dict[str, object]:
        """Return what each pixel of an image is at every step; nothing where none is drawn."""
        metric: Any = drawn_metric(run)
        if metric is None:
            return {}
        if isinstance(metric, CutsSoftMaps):
            return _soft_planes(soft_pixels(pred, gt, run), self.effort)
        if matching_metric(run) is None:
            return _region_planes(region_overlays(pred, gt, run), self.effort)
        errors = self.errors or metric_with_errors(run) is not None
        return _pixel_planes(pred, gt, run, metric, record, errors, self.effort)


def _pixel_planes(
    pred: Prediction,
    gt: GroundTruth,
    run: Evaluation,
    metric: Any,
    record: ImageRecord,
    errors: bool,
    effort: int = EFFORT,
) -> dict[str, object]:
    """Return what each pixel of an image is at every threshold, in a form for JSON.

    Raises DataError if they are not the counts of the run.
    """
    protocol, counts = run.protocol, record.counts[metric.name]
    counter = partial(pixel_classes, errors=errors)
    shown = metric.count_with(counter, pred, gt, protocol, metric.options_of(protocol))
    classes, n_steps = shown["classes"], len(shown["thresholds"])
    is_false = (classes == FALSE_PIXEL) | (classes >= ERROR_CODES["duplicate"])
    columns = [np.count_nonzero(classes == MATCHED_PIXEL, axis=0)]
    columns.append(columns[0] + np.count_nonzero(is_false, axis=0))
    counted = counts.matched_pred[-n_steps:], counts.total_pred[-n_steps:]
    differ = np.flatnonzero(np.not_equal(columns, counted).any(axis=0))
    if differ.size:
        matched, of_run = columns[0][differ[0]], counted[0][differ[0]]
        raise files_changed(record.image_id, f"{matched} matched pixels, the run has {of_run}")
    curve = PRCurve.of_counts(counts.thresholds, counts.matches)
    return {
        **_packed_planes(_changes_of(shown["places"], classes, gt.shape), effort),
        "thresholds": [float(f"{t:.6g}") for t in shown["thresholds"]],
        "matchedGt": shown["matched_gt"].tolist(),
        "totalGt": int(shown["total_gt"]),
        "best": int(curve.f[-n_steps:].argmax()),
        "classes": bool(errors),
    }


class _Changes(NamedTuple):
    """What each pixel becomes, from step to step: thresholds, or the parts of a label map.

    n_changes : u2 (H, W), of each pixel how often it changes
    steps, classes : u2 and u1, of all these changes, pixel by pixel, the number of the step from
        which it holds, and the class: 0 nothing, 1 matched, 2 false, 3 missed, 4 to 9 the classes
        of errors, 10 of another class or object, 11 to 13 within the buffers of lines
    """

    n_changes: NDArray[np.uint16]
    steps: NDArray[np.uint16]
    classes: NDArray[np.uint8]


def _changes_of(
    places: NDArray[np.int64], classes: NDArray[np.uint8], shape: tuple[int, ...]
) -> _Changes:
    """Return the changes of the classes, u1 (P, T), of the pixels at `places`."""
    before = np.zeros_like(classes)
    before[:, 1:] = classes[:, :-1]
    changes = classes != before
    n_changes = np.zeros(shape, np.uint16)
    n_changes.flat[places] = np.count_nonzero(changes, axis=1)
    changed = np.flatnonzero(changes)
    steps = (changed % classes.shape[1]).astype(np.uint16)
    return _Changes(n_changes, steps, classes.ravel()[changed])


def _packed_planes(changes: _Changes, effort: int) -> dict[str, object]:
    """Return changes as bytes, in a form for JSON.

    `planes` is base64 of deflated bytes: `n_changes`, low bytes, then high bytes, then those of
    `steps`, then `classes`.
    """
    n_changes, steps, classes = changes
    planes = [plane.astype(np.uint8).tobytes() for n in (n_changes, steps) for plane in (n, n >> 8)]
    packed = zlib.compress(b"".join([*planes, classes.tobytes()]), effort)
    return {
        "planes": base64.b64encode(packed).decode("ascii"),
        "n": int(steps.size),
        "size": [n_changes.shape[1], n_changes.shape[0]],
    }


def _soft_planes(soft: SoftPixels, effort: int = EFFORT) -> dict[str, object]:
    """Return what each pixel of a soft map is at every threshold, for JSON.

    `sums` are matched and all pixels that are on, where several annotators are summed.
    """
    n_steps, (n_annotators, *shape) = soft.thresholds.size, soft.masks.shape
    if soft.reached.ndim == 3:  # the maps need not nest
        classes = np.stack([soft.classes(k).ravel() for k in range(n_steps)], axis=1)
        changes = _changes_of(np.arange(len(classes)), classes, tuple(shape))
    else:  # a pixel is on until its level, and then off
        while_on, while_off = soft.states()
        reached = np.minimum(without_void(soft.reached, soft.valid), n_steps)
        classes = np.stack([np.where(reached > 0, while_on, while_off), while_off], axis=-1)
        changed = np.stack([classes[..., 0] > 0, (reached > 0) & (reached < n_steps)], axis=-1)
        steps = np.stack([np.zeros_like(reached), reached], axis=-1).astype(np.uint16)
        n_changes = changed.sum(axis=-1, dtype=np.uint16)
        changes = _Changes(n_changes, steps[changed], classes[changed])
    matches = soft.matches
    sums = {"sums": matches[:, 2:].T.tolist(), "annotators": n_annotators}
    return {
        **_packed_planes(changes, effort),
        **(sums if n_annotators > 1 else {}),
        "thresholds": [float(f"{t:.6g}") for t in soft.thresholds],
        "matchedGt": matches[:, 0].tolist(),
        "totalGt": int(matches[0, 1]),
        "beta2": soft.beta2,
        "best": int(soft_scores(soft).f.argmax()),
        "classes": False,
        "areas": True,
    }


def _region_planes(overlays: Sequence[RegionOverlay], effort: int = EFFORT) -> dict[str, object]:
    """Return what each pixel is in each overlay of an image, all classes and each, for JSON.

    `marks` are [row, col, to_row, to_col, distance] of the largest errors, or None.
    """
    shape = overlays[0].classes.shape
    classes = np.stack([overlay.classes.ravel() for overlay in overlays], axis=1)
    places = np.flatnonzero(classes.any(axis=1))
    return {
        **_packed_planes(_changes_of(places, classes[places], shape), effort),
        "parts": [overlay.name for overlay in overlays],
        "thresholds": list(range(len(overlays))),
        "measure": overlays[0].measure,
        "matchedGt": [overlay.n_matched_gt for overlay in overlays],
        "totalGt": [overlay.n_gt for overlay in overlays],
        "marks": [overlay.error for overlay in overlays],
        "best": 0,
        "classes": False,
        "areas": True,
    }


def draw_pictures(
    pictures: ImagePictures,
    named: Collection[str],
    notes: list[str],
    ids: Sequence[str],
    full: bool,
    progress: Progress | None = None,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Image id and pictures, in the order of ids: of all (full), or what `MOST` and `BUDGET` allow.

    named : runs whose folders were given: a fault of theirs is raised; of others `notes` gets it
    """
    used, faulty, ids = 0, set(), ids[: (len(ids) if full else MOST) * bool(pictures.runs)]
    pool = ThreadPoolExecutor(available_cores())
    try:
        made = zip(ids, pool.map(pictures, ids), strict=True)
        for done, (image_id, (pictures_of_image, faults)) in enumerate(made, 1):
            for run, error in faults:
                if run.name in named:
                    raise error
                if run.name not in faulty:
                    faulty.add(run.name)
                    notes.append(f"no pictures: {run.name}: {fault_of(run, error)}")
            used += len(repr(pictures_of_image))
            if used > BUDGET and done > 1 and not full:
                break
            if "gt" in pictures_of_image:
                yield image_id, pictures_of_image
            if progress:
                progress(done, len(ids), image_id)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
