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
        palette = (0, 0, 0, 0), (*COLORS[VOID_STATE], round(255 * OPACITY))
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
        self.errors, self.runs = errors or None, []  # number and run; its records
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
                sources, metric = self.sources[run.name], drawn_metric(run)
                pred, gt = sources.load_of_run(run, records[image_id], metric)
                if "gt" not in drawn:
                    photo = sources.photo(image_id, gt.shape)
                    drawn.update(_gt_picture(gt, photo, self.side, void_stripes(gt, run)))
                if metric is not None:
                    planes = _planes(pixel_steps(pred, gt, run, self.errors), self.effort)
                    gray = _jpeg_uri(_gray(pred, run), self.side)
                    drawn["runs"][number] = {"pred": gray, **planes}
            except DataError as error:
                faults.append((run, error))
        if faults:
            words = (f"no pictures of {run.name}: {fault_of(run, error)}" for run, error in faults)
            drawn["fault"] = "; ".join(words)
        return drawn, faults


def _planes(steps: DrawnSteps, effort: int = EFFORT) -> dict[str, object]:
    """Return what each pixel of an image is at every step, in a form for JSON.

    `planes` is base64 of deflated bytes: `n_changes`, low bytes, then high bytes, then those of
    `steps`, then `classes`. `sums` are matched and all predicted pixels, where several annotators
    are summed. `marks` are [row, col, to_row, to_col, distance], or None.
    """
    pairs = [(n, n >> 8) for n in (steps.n_changes, steps.steps)]
    planes = [plane.astype(np.uint8).tobytes() for pair in pairs for plane in pair]
    packed = zlib.compress(b"".join([*planes, steps.classes.tobytes()]), effort)
    matched_gt, total_gt, *of_pred = steps.matches.T.tolist()
    sums = {"sums": of_pred, "annotators": steps.n_annotators}
    parts = {"parts": steps.parts, "marks": steps.marks or None}
    return {
        **(sums if steps.n_annotators > 1 else {}),
        **(parts if steps.parts else {}),
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
    """Image id and pictures, in the order of ids: of all (full), or what `MOST` and `BUDGET` allow.

    named : runs whose folders were given: a fault of theirs is raised; of others `notes` gets it
    """
    used, faulty = 0, dict[str, list[str]]()
    ids = ids[: (len(ids) if full else MOST) * bool(pictures.runs)]
    pool = ThreadPoolExecutor(available_cores())
    try:
        made = zip(ids, pool.map(pictures, ids), strict=True)
        for done, (image_id, (pictures_of_image, faults)) in enumerate(made, 1):
            for run, error in faults:
                if run.name in named:
                    raise error
                faulty.setdefault(run.name, []).append(fault_of(run, error))
            used += len(repr(pictures_of_image))
            if used > BUDGET and done > 1 and not full:
                break
            yield image_id, pictures_of_image
            if progress:
                progress(done, len(ids), image_id)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    for name, (first, *more) in faulty.items():
        others = f" (and {len(more)} more images)" * bool(more)
        notes.append(f"no pictures: {name}: {first}{others}")
