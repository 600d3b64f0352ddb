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
    VOID_CLASS,
    drawn_metric,
    pixel_steps,
    void_pixels,
)
from bsdsbench.results.evaluation import Evaluation, Progress
from bsdsbench.runs.engine import available_cores
from bsdsbench.runs.sources import Sources, fault_of
from bsdsbench.scores.counts import ImageRecord
from bsdsbench.text import counted

THUMBNAIL = 320  # longer side of a reduced picture, in pixels
THUMB = 120  # longer side of a picture in the table of images, in pixels
QUALITY, FULL_QUALITY = 70, 90  # JPEG quality of reduced and of full-size pictures
EFFORT, SERVED_EFFORT = 6, 1  # zlib levels; a served page needs speed rather than small data
BUDGET = 5_000_000  # characters, which leave room for tables, values and scripts below 6 MB
MOST = 200  # images
_LEVELS = 8  # gray levels of annotated lines


def _gt_pictures(
    gt: GroundTruth,
    photo: NDArray[np.uint8] | None,
    side: int | None,
    void: Bool | None,
) -> dict[str, object]:
    """Return the pictures of the ground truth of one image, as data URLs for JSON.

    photo : uint8 (H, W) or (H, W, 3), or None
    side  : the longer side to which the photo is reduced, or None for full size
    void  : (H, W), True at pixels that are not counted, or None

    The keys are:

    gt    : the annotated lines, darker where more annotators agree, on a transparent background
    size  : [width, height] of the image
    truth : a caption for "gt"
    void, photo : the void pixels in gray, and the photo, if given
    thumb : a small picture for the table of images: the photo, or "gt" if there is no photo
    paper : True if "thumb" is "gt", which needs a white background; otherwise missing
    """
    shares, caption = annotated_shares(gt)
    levels = np.ceil(shares * (_LEVELS - 1)).astype(np.uint8)
    grays = np.linspace(190, 0, _LEVELS).astype(int)
    # (red, green, blue, opacity); level 0, without a line, is transparent
    palette = [(gray, gray, gray, 255 if k else 0) for k, gray in enumerate(grays)]
    gt_url = data_url("png", png_bytes(levels, palette))
    pictures = {
        "gt": gt_url,
        "size": [gt.shape[1], gt.shape[0]],
        "truth": f"ground truth, {caption}",
    }
    if void is not None:
        void_palette = (0, 0, 0, 0), (*COLORS[VOID_CLASS], round(255 * OPACITY))
        pictures["void"] = data_url("png", png_bytes(void.astype(np.uint8), void_palette))
    if photo is None:
        return {**pictures, "thumb": gt_url, "paper": True}
    return {**pictures, "photo": _jpeg_url(photo, side), "thumb": _jpeg_url(photo, THUMB)}


class AnnotatedLines(NamedTuple):
    """The fraction of annotators who drew each pixel.

    lines : float64 (H, W), the fractions
    words : a caption that describes them
    """

    lines: NDArray[np.float64]
    words: str


def annotated_shares(gt: GroundTruth) -> AnnotatedLines:
    """Return the fraction of annotators who drew each pixel of a ground truth, with a caption.

    If the ground truth has no boundaries by annotators, the fraction is 1 on the boundaries of any
    class. If there are no such boundaries either, it is 1 on the outlines of the label map or,
    without a label map, inside the mask. It is 0 elsewhere.
    """
    if gt.boundaries:
        caption = counted(len(gt.boundaries), "annotator")
        return AnnotatedLines(np.mean(gt.boundaries, axis=0), caption)
    if "class_boundaries" in gt.parts:
        n_classes = int(gt.class_boundaries.any(axis=(1, 2)).sum())
        noun = "class" if n_classes == 1 else "classes"
        is_drawn = gt.class_boundaries.any(axis=0)  # (classes, H, W) -> (H, W)
        return AnnotatedLines(is_drawn.astype(float), f"boundaries of {n_classes} {noun}")
    if "labels" in gt.parts:
        return AnnotatedLines(seg2bdry(gt.labels).astype(float), "outlines")
    if "mask" in gt.parts:
        return AnnotatedLines(gt.mask.astype(float), "mask")
    return AnnotatedLines(np.zeros(gt.shape), "which is not drawn")


def _jpeg_url(pixels: NDArray[np.uint8], side: int | None) -> str:
    """Return a picture, uint8 (H, W) or (H, W, 3), as the data URL of a JPEG file.

    side : the length in pixels to which the longer side is reduced. None keeps the size, and takes
        a higher quality
    """
    from PIL import Image

    image = Image.fromarray(pixels)
    if side is not None:
        image.thumbnail((side, side))
    out = io.BytesIO()
    image.save(out, "JPEG", quality=QUALITY if side else FULL_QUALITY, optimize=side is not None)
    return data_url("jpeg", out.getvalue())


def _draw_prediction(pred: Prediction, run: Evaluation) -> NDArray[np.uint8]:
    """Draw a prediction as dark lines on white, uint8 (H, W).

    If the prediction is a soft map, the values are drawn that the protocol compares with
    thresholds, with black for 1. If it is a list of segmentations, an outline is darker the more
    segmentations share it.
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


def data_url(kind: str, data: bytes) -> str:
    """Return the content `data` of an image file of type `kind`, such as "png", as a data URL."""
    return f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"


def by_interest(ids: Sequence[str], values: Sequence[Mapping[str, float]]) -> list[str]:
    """Sort the images by how interesting they are to look at.

    ids    : all images
    values : for each run, image id -> main score

    First come the worst and the best image of each run, and the image on which each pair of runs
    differs most; then the images in second place, and so on. Images without a score come last.
    """
    rankings = []
    for scores in values:
        ascending = sorted(scores, key=lambda image_id: (scores[image_id], image_id))
        rankings += [ascending, ascending[::-1]]
    for a, b in combinations(values, 2):
        difference = {k: abs(a[k] - b[k]) for k in a.keys() & b.keys()}
        rankings.append(sorted(difference, key=lambda k: (-difference[k], k)))
    in_turn = []  # the first of each ranking, then the second of each, and so on
    for turn in zip_longest(*rankings):
        in_turn += [image_id for image_id in turn if image_id is not None]
    return list(dict.fromkeys([*in_turn, *ids]))


class MadePictures(NamedTuple):
    """The pictures of an image, and the runs whose files could not be used.

    pictures : a mapping for JSON. It has the keys of `_gt_pictures`, if the ground truth could be
        loaded; "runs", which maps the number of a run, as text, to "pred" (a data URL) and the keys
        of `_planes`; and "fault", a text, if any pictures are missing
    failures : (run, error) for each run whose files could not be used
    """

    pictures: dict[str, Any]
    failures: list[tuple[Evaluation, DataError]]


class ImagePictures:
    """A callable that makes the pictures of one image for all runs. Threads may share it."""

    def __init__(
        self, runs: Sequence[Evaluation], sources: Mapping[str, Sources], full: bool
    ) -> None:
        """Set how pictures are made.

        sources : run name -> its files. Runs that are missing here get no pictures
        full    : True for photos and predictions in full size, and for classes of errors even of
            runs that have not counted them
        """
        self.sources = sources
        self.side = None if full else THUMBNAIL
        self.effort = SERVED_EFFORT if full else EFFORT
        self.errors = True if full else None  # as `pixel_steps` takes it
        # (number of the run as text, run, its records by image id), for the runs with files
        self.runs: list[tuple[str, Evaluation, dict[str, ImageRecord]]] = []
        for number, run in enumerate(runs):
            if run.name in sources:
                records = {record.image_id: record for record in run.records}
                self.runs.append((str(number), run, records))

    def __call__(self, image_id: str) -> MadePictures:
        """Make the pictures of an image, with the ground truth of the first run that can load it.

        A DataError about the files of a run is not raised but returned among the failures.
        """
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
                    pictures.update(_gt_pictures(gt, photo, self.side, void_pixels(gt, run)))
                if metric is not None:
                    planes = _planes(pixel_steps(pred, gt, run, self.errors), self.effort)
                    pred_url = _jpeg_url(_draw_prediction(pred, run), self.side)
                    pictures["runs"][number] = {"pred": pred_url, **planes}
            except DataError as error:
                failures.append((run, error))
        if failures:
            lines = [f"no pictures of {run.name}: {fault_of(run, e)}" for run, e in failures]
            pictures["fault"] = "; ".join(lines)
        return MadePictures(pictures, failures)


def _planes(steps: DrawnSteps, effort: int = EFFORT) -> dict[str, object]:
    """Pack the class of each pixel of an image at every step, and the counts, for JSON.

    A step is a threshold, or a part: a class, or whatever else the metric scores separately. The
    page decodes the classes and draws them on a canvas.

    effort : the zlib level

    The keys are:

    planes     : byte planes, joined, deflated and encoded in base64. They are the low bytes of
        `steps.n_changes`, its high bytes, the low and the high bytes of `steps.steps`, and
        `steps.classes`
    n          : number of changes, the size of `steps.steps`
    size       : (width, height)
    thresholds : a number per step
    matchedGt  : number of matched annotated pixels at each step
    totalGt    : number of all annotated pixels; a list with a number per step if steps are parts
    measure, beta2, best, areas : as in `DrawnSteps`, but best is 0 if steps are parts
    classes    : True if any pixel has a class of errors
    sums, annotators : only if there are several annotators. "sums" holds the numbers of matched and
        of all predicted pixels, each a list over steps that is summed over annotators. "annotators"
        is the number of annotators
    parts, marks : only if steps are parts. "parts" holds their names, and "marks" the largest error
        of each part, [row, col, to_row, to_col, distance], or None
    """
    planes = []
    for numbers in (steps.n_changes, steps.steps):
        planes.append(numbers.astype(np.uint8).tobytes())  # keeps the low byte
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
    """Make the pictures of images in threads, and yield (image id, pictures) in the order of `ids`.

    pictures : makes the pictures of one image
    named    : names of the runs for which the user gave folders. If a file of such a run cannot be
        used, DataError is raised
    notes    : a list to which, at the end, a line is appended for each other run with an unusable
        file
    ids      : the images
    full     : True to make the pictures of all images. Otherwise the generator stops after MOST
        images, or earlier, when all pictures together would exceed BUDGET characters. It does not
        stop before the first image
    progress : called after each image with (images done, images to draw, image id)
    """
    n_characters = 0
    reasons_by_run: dict[str, list[str]] = {}
    drawn_ids = ids if full else ids[:MOST]
    if not pictures.runs:
        drawn_ids = []
    pool = ThreadPoolExecutor(available_cores())
    try:
        results_in_order = zip(drawn_ids, pool.map(pictures, drawn_ids), strict=True)
        for done, (image_id, made) in enumerate(results_in_order, 1):
            for run, error in made.failures:
                if run.name in named:
                    raise error
                reasons_by_run.setdefault(run.name, []).append(fault_of(run, error))
            n_characters += len(repr(made.pictures))
            if n_characters > BUDGET and done > 1 and not full:
                break
            yield image_id, made.pictures
            if progress:
                progress(done, len(drawn_ids), image_id)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    for name, reasons in reasons_by_run.items():
        note = f"no pictures: {name}: {reasons[0]}"
        if len(reasons) > 1:
            note += f" (and {len(reasons) - 1} more images)"
        notes.append(note)
