"""Make the pictures of a report: photos as thumbnails, lines as palette PNG, pixels as byte planes.

The byte planes hold the class of each pixel (matched, false, missed) at every threshold. The page
draws them on a canvas at the threshold of its slider.

A page with all pictures of 200 images and three methods has 30 MB. So the page starts with the
worst and the best images of each method, and those on which two methods differ most. It has as many
as fit into `BUDGET`, and at most `MOST`: more take long to draw, and nobody looks at all of them.
"""

from __future__ import annotations

import base64
import io
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations, zip_longest
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.arguments import Bool
from bsdsbench.errors import DataError
from bsdsbench.images import GroundTruth, Prediction
from bsdsbench.io import png_bytes
from bsdsbench.loaders.labels import seg2bdry
from bsdsbench.metrics.error_classes import ERROR_CODES
from bsdsbench.metrics.pixel_steps import DrawnSteps
from bsdsbench.report.overlays import (
    COLORS,
    OPACITY,
    VOID_STATE,
    drawn_metric,
    pixel_steps,
    void_stripes,
)
from bsdsbench.results.evaluation import Evaluation, Progress
from bsdsbench.runs.engine import available_cores
from bsdsbench.runs.sources import Sources, fault_of
from bsdsbench.scores.counts import ImageRecord
from bsdsbench.text import counted

THUMBNAIL = 320  # longer side of a picture in pixels
THUMB = 120  # the same of a picture in the table
QUALITY, FULL_QUALITY = 70, 90  # of JPEG
EFFORT, SERVED_EFFORT = 6, 1  # zlib levels; a served page needs speed rather than small data
BUDGET = 5_000_000  # characters, which leave room for tables, values and scripts below 6 MB
MOST = 200  # images
_LEVELS = 8  # gray levels of annotated lines


def _gt_picture(
    gt: GroundTruth,
    photo: NDArray[np.uint8] | None,
    side: int | None = THUMBNAIL,
    void: Bool | None = None,
) -> dict[str, object]:
    """Return the pictures of one image's ground truth as data URLs, for JSON.

    "gt" holds the annotated lines, darker if more annotators agree, and "truth" a caption. "size"
    is (width, height), "thumb" a small picture for the table. "void" (stripes over pixels that are
    not counted) and "photo" are given if they exist. "paper" is True if the thumb is "gt", which
    has a transparent background.
    """
    lines, caption = annotated_shares(gt)
    levels = np.ceil(lines * (_LEVELS - 1)).astype(np.uint8)
    grays = np.linspace(190, 0, _LEVELS).astype(int)
    palette = [(gray, gray, gray, 255 if k else 0) for k, gray in enumerate(grays)]
    gt_uri = _uri("png", png_bytes(levels, palette))
    pictures = {
        "gt": gt_uri,
        "size": [gt.shape[1], gt.shape[0]],
        "truth": f"ground truth, {caption}",
    }
    if void is not None:
        void_palette = (0, 0, 0, 0), (*COLORS[VOID_STATE], round(255 * OPACITY))
        pictures["void"] = _uri("png", png_bytes(void.astype(np.uint8), void_palette))
    if photo is None:
        return {**pictures, "thumb": gt_uri, "paper": True}
    return {**pictures, "photo": _jpeg_uri(photo, side), "thumb": _jpeg_uri(photo, THUMB)}


class AnnotatedLines(NamedTuple):
    """The share of annotators who drew each pixel, f8 (H, W), with a caption."""

    lines: NDArray[np.float64]
    words: str


def annotated_shares(gt: GroundTruth) -> AnnotatedLines:
    """Return the lines to draw for a ground truth: boundaries, outlines of labels, or the mask."""
    if gt.boundaries:
        caption = counted(len(gt.boundaries), "annotator")
        return AnnotatedLines(np.mean(gt.boundaries, axis=0), caption)
    if "class_boundaries" in gt.parts:
        n_classes = int(gt.class_boundaries.any(axis=(1, 2)).sum())
        caption = f"boundaries of {n_classes} {'class' if n_classes == 1 else 'classes'}"
        return AnnotatedLines(gt.class_boundaries.any(axis=0).astype(float), caption)
    if "labels" in gt.parts:
        return AnnotatedLines(seg2bdry(gt.labels).astype(float), "outlines")
    if "mask" in gt.parts:
        return AnnotatedLines(gt.mask.astype(float), "mask")
    return AnnotatedLines(np.zeros(gt.shape), "which is not drawn")


def _jpeg_uri(pixels: NDArray[np.uint8], side: int | None = THUMBNAIL) -> str:
    """Return a (H, W) or (H, W, 3) picture as a JPEG data URL.

    `side` limits the longer side in pixels; None keeps the full size.
    """
    from PIL import Image

    image = Image.fromarray(pixels)
    if side is not None:
        image.thumbnail((side, side))
    out = io.BytesIO()
    image.save(out, "JPEG", quality=QUALITY if side else FULL_QUALITY, optimize=side is not None)
    return _uri("jpeg", out.getvalue())


def _gray(pred: Prediction, run: Evaluation) -> NDArray[np.uint8]:
    """Return the prediction as dark lines on white, as it is compared with thresholds.

    For segmentations a line is darker if more of them have it.
    """
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
    """Return an image file of type `kind`, such as "png", as a data URL."""
    return f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"


def by_interest(ids: Sequence[str], values: Sequence[Mapping[str, float]]) -> list[str]:
    """Sort all ids by interest: in turn the worst, the best and the most different images.

    values : the main score of each run, image id -> value
    """
    rankings = []
    for scores in values:
        ascending = sorted(scores, key=lambda k: (scores[k], k))
        rankings += [ascending, ascending[::-1]]
    for a, b in combinations(values, 2):
        difference = {k: abs(a[k] - b[k]) for k in a.keys() & b.keys()}
        rankings.append(sorted(difference, key=lambda k: (-difference[k], k)))
    in_turn = (k for turn in zip_longest(*rankings) for k in turn if k is not None)
    return list(dict.fromkeys([*in_turn, *ids]))


class ImagePictures:
    """A function that makes the pictures of one image for all runs, small or in full size."""

    def __init__(
        self,
        runs: Sequence[Evaluation],
        sources: Mapping[str, Sources],
        full: bool,
        errors: bool = False,
    ) -> None:
        """Store what the pictures are made of.

        sources : the files of runs by name; runs without files have no pictures
        errors : always show classes of errors; otherwise only if a run has counted them
        """
        self.sources = sources
        self.side = None if full else THUMBNAIL
        self.effort = SERVED_EFFORT if full else EFFORT
        self.errors = errors or None
        # (number, run, records by image id)
        self.runs: list[tuple[str, Evaluation, dict[str, ImageRecord]]] = []
        for number, run in enumerate(runs):
            if run.name in sources:
                records = {record.image_id: record for record in run.records}
                self.runs.append((str(number), run, records))

    def __call__(self, image_id: str) -> tuple[dict[str, Any], list[tuple[Any, DataError]]]:
        """Return one image's pictures for JSON, and (run, error) of runs with unusable files."""
        pictures: dict[str, Any] = {"runs": {}}
        failures = []
        for number, run, records in self.runs:
            if image_id not in records:  # the run left the image out
                continue
            try:
                sources = self.sources[run.name]
                metric = drawn_metric(run)
                pred, gt = sources.load_of_run(run, records[image_id], metric)
                if "gt" not in pictures:
                    photo = sources.photo(image_id, gt.shape)
                    pictures.update(_gt_picture(gt, photo, self.side, void_stripes(gt, run)))
                if metric is not None:
                    planes = _planes(pixel_steps(pred, gt, run, self.errors), self.effort)
                    gray = _jpeg_uri(_gray(pred, run), self.side)
                    pictures["runs"][number] = {"pred": gray, **planes}
            except DataError as error:
                failures.append((run, error))
        if failures:
            lines = [f"no pictures of {run.name}: {fault_of(run, e)}" for run, e in failures]
            pictures["fault"] = "; ".join(lines)
        return pictures, failures


def _planes(steps: DrawnSteps, effort: int = EFFORT) -> dict[str, object]:
    """Return the class of each pixel of an image at every step, for JSON.

    `planes` is base64 of deflated bytes: the low bytes of `n_changes`, its high bytes, the low and
    high bytes of `steps`, then `classes`. `sums` are the matched and all predicted pixels, summed
    over annotators if there are several. `marks` are [row, col, to_row, to_col, distance], or None.
    """
    planes = []
    for numbers in (steps.n_changes, steps.steps):
        planes.append(numbers.astype(np.uint8).tobytes())
        planes.append((numbers >> 8).astype(np.uint8).tobytes())
    packed = zlib.compress(b"".join([*planes, steps.classes.tobytes()]), effort)
    matched_gt, total_gt, *pred_sums = steps.matches.T.tolist()
    optional: dict[str, object] = {}
    if steps.n_annotators > 1:
        optional |= {"sums": pred_sums, "annotators": steps.n_annotators}
    if steps.parts:
        optional |= {"parts": steps.parts, "marks": steps.marks or None}
    return {
        **optional,
        "planes": base64.b64encode(packed).decode("ascii"),
        "n": int(steps.steps.size),
        "size": steps.n_changes.shape[::-1],
        "thresholds": [float(f"{t:.6g}") for t in steps.thresholds],
        "matchedGt": matched_gt,
        "totalGt": total_gt if steps.parts else total_gt[0],
        "measure": steps.measure,
        "beta2": steps.beta2,
        "best": 0 if steps.parts else steps.best,
        "classes": bool(np.isin(steps.classes, list(ERROR_CODES.values())).any()),
        "areas": steps.areas,
    }


def draw_pictures(
    pictures: ImagePictures,
    named: Collection[str],
    notes: list[str],
    ids: Sequence[str],
    full: bool,
    progress: Progress | None = None,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (image id, pictures) in the order of `ids`, made in threads.

    named : names of runs whose folders the user gave. If their files cannot be used, DataError is
        raised; for other runs a note is appended to `notes`.
    full : draw all images, otherwise as many as `MOST` and `BUDGET` allow
    """
    n_characters = 0
    reasons_by_run: dict[str, list[str]] = {}
    if not pictures.runs:
        ids = []
    elif not full:
        ids = ids[:MOST]
    pool = ThreadPoolExecutor(available_cores())
    try:
        made = zip(ids, pool.map(pictures, ids), strict=True)
        for done, (image_id, (pictures_of_image, failures)) in enumerate(made, 1):
            for run, error in failures:
                if run.name in named:
                    raise error
                reasons_by_run.setdefault(run.name, []).append(fault_of(run, error))
            n_characters += len(repr(pictures_of_image))
            if n_characters > BUDGET and done > 1 and not full:
                break
            yield image_id, pictures_of_image
            if progress:
                progress(done, len(ids), image_id)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    for name, reasons in reasons_by_run.items():
        note = f"no pictures: {name}: {reasons[0]}"
        if len(reasons) > 1:
            note += f" (and {len(reasons) - 1} more images)"
        notes.append(note)
