"""Make the pictures of a report: photos (JPEG), lines (palette PNG), pixel classes (byte planes).

The byte planes hold the class of each pixel (matched, false, missed) at every threshold. The page
draws them on a canvas at the threshold set by its slider. The pictures of 200 images and three
methods take 30 MB, so a page has only as many as fit into `html.BUDGET`, and at most `html.MOST`.
"""

from __future__ import annotations

import base64
import io
import zlib
from collections.abc import Mapping, Sequence
from itertools import chain, combinations, zip_longest
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsdsbench.arguments import Bools
from bsdsbench.errors import DataError
from bsdsbench.images import GroundTruth, Prediction, to_unit_range
from bsdsbench.io import png_bytes
from bsdsbench.loaders.labels import seg2bdry
from bsdsbench.metrics.error_classes import ERROR_CODES
from bsdsbench.metrics.pixel_steps import OverlaySteps
from bsdsbench.report import overlays
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.runs.sources import Sources, fault_of
from bsdsbench.text import quantity
from bsdsbench.transforms.maps import prepare

THUMBNAIL = 320  # longer side of a reduced picture, in pixels
THUMB = 120  # longer side of a picture in the table of images, in pixels
QUALITY, FULL_QUALITY = 70, 90  # JPEG quality of reduced and of full-size pictures
EFFORT, SERVED_EFFORT = 3, 1  # zlib levels; level 6 takes twice the time for 6 % fewer bytes
_N_LEVELS = 8  # gray levels of annotated boundaries


def _gt_pictures(
    gt: GroundTruth, photo: NDArray[np.uint8] | None, side: int | None, void: Bools | None
) -> dict[str, object]:
    """Make the pictures of one image's ground truth and photo, as a JSON-serializable dict.

    "gt" is the ground truth: transparent where no annotator drew, darker where more annotators did.
    "truth" is its caption, and "size" is [width, height]. "void" shows the uncounted pixels `void`.
    The longer side of "photo" is reduced to `side` pixels, and "thumb" is a thumbnail of it.
    Without a photo, "thumb" is the ground truth, and "paper" (it needs a white background) is True.
    If `side` is None, the photo has its full size, and there is no thumbnail.
    """
    shares, caption = annotated_shares(gt)  # (H, W), fraction of annotators who drew a pixel
    levels = np.ceil(shares * (_N_LEVELS - 1)).astype(np.uint8)  # 0: drawn by nobody; up to 7
    grays = np.linspace(190, 0, _N_LEVELS).astype(int)  # light gray to black
    # Color of each level: (red, green, blue, opacity). Level 0, without a line, is transparent
    palette = [(gray, gray, gray, 255 if k else 0) for k, gray in enumerate(grays)]
    gt_url = data_url("png", png_bytes(levels, palette))
    size = [gt.shape[1], gt.shape[0]]
    pictures: dict[str, object] = {"gt": gt_url, "truth": f"ground truth, {caption}", "size": size}
    if void is not None:
        opacity = round(255 * overlays.OPACITY)
        void_color = (*overlays.COLORS[overlays.VOID_CLASS], opacity)
        palette_of_void = ((0, 0, 0, 0), void_color)  # transparent where pixels count
        pictures["void"] = data_url("png", png_bytes(void.astype(np.uint8), palette_of_void))
    if photo is not None:
        pictures["photo"] = _jpeg_url(photo, side)
        if side is not None:
            pictures["thumb"] = _jpeg_url(photo, THUMB)
    elif side is not None:
        pictures |= {"thumb": gt_url, "paper": True}
    return pictures


class AnnotatedLines(NamedTuple):
    """The fraction of annotators who drew each pixel, float64 (H, W), and a caption for it."""

    lines: NDArray[np.float64]
    caption: str


def annotated_shares(gt: GroundTruth) -> AnnotatedLines:
    """Return the fraction of annotators who drew each pixel of a ground truth, with a caption.

    If there are no boundary maps, the fraction is 1 or 0, drawn from the first of these that
    exists: class boundaries, outlines of the label map, mask. It is 0 everywhere if none exists.
    """
    if gt.boundaries:
        caption = quantity(len(gt.boundaries), "annotator")
        return AnnotatedLines(np.mean(gt.boundaries, axis=0), caption)
    if "class_boundaries" in gt.parts:
        n_classes = int(gt.class_boundaries.any(axis=(1, 2)).sum())
        noun = "class" if n_classes == 1 else "classes"
        is_drawn = gt.class_boundaries.any(axis=0)  # (n_classes, H, W) -> (H, W)
        return AnnotatedLines(is_drawn.astype(float), f"boundaries of {n_classes} {noun}")
    if "labels" in gt.parts:
        return AnnotatedLines(seg2bdry(gt.labels).astype(float), "outlines")
    if "mask" in gt.parts:
        return AnnotatedLines(gt.mask.astype(float), "mask")
    return AnnotatedLines(np.zeros(gt.shape), "which is not drawn")


def _jpeg_url(pixels: NDArray[np.uint8], side: int | None) -> str:
    """Encode a picture as a JPEG data URL, its longer side reduced to `side` pixels (None: not)."""
    from PIL import Image

    image = Image.fromarray(pixels)
    if side is not None:
        image.thumbnail((side, side))
    out = io.BytesIO()
    image.save(out, "JPEG", quality=QUALITY if side else FULL_QUALITY, optimize=side is not None)
    return data_url("jpeg", out.getvalue())


def _draw_prediction(pred: Prediction, run: Evaluation) -> NDArray[np.uint8]:
    """Draw a prediction as dark lines on white, and return a uint8 (H, W) array.

    Segmentations and label maps are drawn by their outlines, darker where more of the
    segmentations have one. Any other prediction is drawn as the map that the protocol thresholds.
    """
    if pred.kind == "segs":
        darkness: Any = np.mean([seg2bdry(labels) for labels in pred.segs], axis=0)
    elif pred.kind == "classes":
        darkness = seg2bdry(pred.classes)
    else:
        darkness = to_unit_range(prepare(pred.boundary_map(), run.protocol))
    return np.asarray(np.rint(255 * (1 - np.clip(darkness, 0, 1))), np.uint8)


def data_url(kind: str, data: bytes) -> str:
    """Return the bytes of an image file of type `kind`, such as "png", as a data URL."""
    return f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"


def by_interest(ids: Sequence[str], scores_of_runs: Sequence[Mapping[str, float]]) -> list[str]:
    """Sort image ids so that the worst, the best and the most different images come first.

    The images are ranked by ascending and by descending score for each run, and by descending
    absolute difference for each pair of runs. The result takes the first image of every ranking,
    then the second of every ranking, and so on. Images without a score come last.

    scores_of_runs : for each run, image id -> main score
    """
    rankings: list[list[str]] = []
    for scores in scores_of_runs:
        ascending = sorted(scores, key=lambda image_id: (scores[image_id], image_id))
        rankings += [ascending, ascending[::-1]]
    for a, b in combinations(scores_of_runs, 2):
        difference = {image_id: abs(a[image_id] - b[image_id]) for image_id in a if image_id in b}
        rankings.append(sorted(difference, key=lambda image_id: (-difference[image_id], image_id)))
    in_turn = chain.from_iterable(zip_longest(*rankings))  # None past the end of a shorter ranking
    with_repetitions = [image_id for image_id in chain(in_turn, ids) if image_id is not None]
    return list(dict.fromkeys(with_repetitions))  # each id at its first position


class MadePictures(NamedTuple):
    """The pictures of an image, and the runs whose files could not be used.

    pictures : a JSON-serializable dict: the items of `_gt_pictures`, if the ground truth could be
        loaded; "runs", a dict from the index of a run (as a string) to its pictures ("pred", the
        prediction as a data URL, and the items of `_pack_steps`); and "fault", the reason, if any
        pictures are missing
    failures : (run, error) for each run whose files could not be used
    """

    pictures: dict[str, Any]
    failures: list[tuple[Evaluation, DataError]]


class ImagePictures:
    """A callable that makes the pictures of one image for all runs. It is thread-safe."""

    def __init__(
        self, runs: Sequence[Evaluation], sources: Mapping[str, Sources], full: bool
    ) -> None:
        """Set the runs, whose indices identify them in the pictures, and their files.

        `sources` maps the name of a run to its files; runs without files get no pictures. If `full`
        is True, photos and predictions are not reduced to THUMBNAIL pixels, and error classes are
        drawn even for runs that did not count them.
        """
        self.sources = sources
        self.side = None if full else THUMBNAIL  # longer side of photos; None: not reduced
        self.effort = SERVED_EFFORT if full else EFFORT  # zlib level: a server must answer fast
        # Argument of `pixel_steps`: None draws error classes only for runs that counted them
        self.errors = True if full else None
        self.runs = []  # of each run with files: its index as a string, the run, its records by id
        for number, run in enumerate(runs):
            if run.name in sources:
                record_of_image = {record.image_id: record for record in run.records}
                self.runs.append((str(number), run, record_of_image))

    def __call__(self, image_id: str) -> MadePictures:
        """Make the pictures of an image for all runs that counted it.

        The ground truth and the photo are those of the first run whose files can be loaded. A run
        without a metric whose pixels can be drawn (`drawn_metric`) gets no pictures of its own.
        Errors in the files of a run are returned as failures, not raised.
        """
        pictures: dict[str, Any] = {"runs": {}}
        failures = []
        for number, run, records in self.runs:
            if image_id not in records:  # the run left the image out
                continue
            try:
                sources = self.sources[run.name]
                metric = overlays.drawn_metric(run)
                pred, gt = sources.load_of_run(run, records[image_id], metric)
                if "gt" not in pictures:
                    photo = sources.photo(image_id, gt.shape)
                    void = overlays.void_pixels(gt, run)
                    pictures.update(_gt_pictures(gt, photo, self.side, void))
                if metric is not None:
                    steps = overlays.pixel_steps(pred, gt, run, self.errors)  # classes of pixels
                    pred_url = _jpeg_url(_draw_prediction(pred, run), self.side)
                    # A dict for JSON: the classes at every threshold as "planes", counts, ...
                    packed_steps = _pack_steps(steps, self.effort)
                    pictures["runs"][number] = {"pred": pred_url, **packed_steps}
            except DataError as error:
                failures.append((run, error))
        if failures:
            lines = [f"no pictures of {run.name}: {fault_of(run, e)}" for run, e in failures]
            pictures["fault"] = "; ".join(lines)
        return MadePictures(pictures, failures)


def _pack_steps(steps: OverlaySteps, effort: int = EFFORT) -> dict[str, object]:
    """Pack the class of each pixel at every step, and the counts, into a dict for the page's JSON.

    A step is a threshold or, for metrics without thresholds, a part such as an object class. The
    class of a pixel says whether it is matched, false or missed. page/1_base.js reads the dict.
    `effort` is the level of zlib.
    """
    # Three arrays of bytes: how often the class of each pixel changes, and for each change its step
    # and the new class. The 16-bit numbers of the first two are split into all low bytes, then all
    # high bytes, because these compress better
    planes = []
    for numbers in (steps.n_changes, steps.steps):
        low_bytes, high_bytes = numbers & 255, numbers >> 8
        planes += [low_bytes.astype(np.uint8), high_bytes.astype(np.uint8)]
    planes.append(steps.classes)
    packed = zlib.compress(b"".join(plane.tobytes() for plane in planes), effort)
    n_of_class = np.bincount(steps.classes, minlength=1 + max(ERROR_CODES.values()))
    # The counts at every step: four lists with one number per step
    matched_gt, total_gt, matched_pred, total_pred = steps.matches.T.tolist()
    optional: dict[str, object] = {}
    # The page counts the pixels that it draws. Sums over several annotators have to be stored
    if steps.n_annotators > 1:
        optional |= {"sums": [matched_pred, total_pred], "annotators": steps.n_annotators}
    if steps.parts:  # the largest error of each part: [row, col, to_row, to_col, distance] or None
        optional |= {"parts": steps.parts, "marks": steps.marks or None}
    return {
        **optional,
        "planes": base64.b64encode(packed).decode("ascii"),
        "n": steps.steps.size,  # number of changes of class, summed over pixels
        "size": steps.n_changes.shape[::-1],  # (width, height)
        "thresholds": [float(f"{t:.6g}") for t in steps.thresholds],  # or numbers of parts
        "matchedGt": matched_gt,
        "totalGt": total_gt if steps.parts else total_gt[0],  # equal at all thresholds
        "measure": steps.measure,  # the name of F, which the page computes with `beta2`
        "beta2": steps.beta2,
        "best": 0 if steps.parts else steps.best,  # the step shown first; 0 is all parts together
        # True if errors are divided into classes, such as duplicates
        "classes": any(n_of_class[code] > 0 for code in ERROR_CODES.values()),
        "areas": steps.areas,  # False if only lines are drawn, over which the photo stays visible
    }
