"""Small pictures for a report: photographs as thumbnails, lines as palette PNG, several at a time.

A page of every picture of 200 images and three methods has 30 MB. So those come first that are
looked at first: by each method the worst and the best, and where two methods differ most; as many
as fit into `BUDGET`, and at most `MOST`: nobody looks through a thousand small pictures, which take
longer to draw than everything else.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations, zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.errors import DataError
from bsdsbench.images import GroundTruth, Prediction
from bsdsbench.io import png_bytes
from bsdsbench.loaders.labels import seg2bdry
from bsdsbench.report.overlays import COLORS, matching_metric, overlay
from bsdsbench.results.evaluation import Evaluation, Progress
from bsdsbench.runs.executors import available_cores
from bsdsbench.runs.sources import Sources, fault_of

THUMBNAIL = 320  # longer side, pixels
THUMB = 120  # that of the table
QUALITY = 70
BUDGET = 5_000_000  # characters; tables, values and scripts have room below 6 MB
MOST = 200  # images
_OVERLAY_PALETTE = [(*color, 255 if i else 0) for i, color in enumerate(COLORS)]
_LEVELS = 8


def gt_picture(gt: GroundTruth, photo: NDArray[np.uint8] | None) -> dict[str, Any]:
    """The annotators' boundaries of one image, darker where more agree, and its photograph.

    Of label maps and masks their outlines. Also `thumb`, a small picture for the table; `paper`
    says that it has a transparent ground.
    """
    if gt.boundaries:
        lines = np.mean(gt.boundaries, axis=0)
    elif "class_boundaries" in gt.parts:
        lines = gt.class_boundaries.any(axis=0)
    else:
        regions = gt.parts.get("labels", gt.parts.get("mask"))
        lines = np.zeros(gt.shape) if regions is None else seg2bdry(regions)
    levels = np.ceil(lines * (_LEVELS - 1)).astype(np.uint8)
    shades = np.linspace(190, 0, _LEVELS).astype(int)
    drawn = _uri(
        "png", png_bytes(levels, [(v, v, v, 255 if i else 0) for i, v in enumerate(shades)])
    )
    out = {"gt": drawn, "size": [gt.shape[1], gt.shape[0]], "annotators": len(gt.boundaries)}
    if photo is None:
        return {**out, "thumb": drawn, "paper": True}
    return {**out, "photo": jpeg_uri(photo), "thumb": jpeg_uri(photo, THUMB)}


def jpeg_uri(pixels: NDArray[np.uint8], side: int = THUMBNAIL) -> str:
    """A picture at most `side` pixels long, (H, W) gray or (H, W, 3)."""
    from PIL import Image

    image = Image.fromarray(pixels)
    image.thumbnail((side, side))
    out = io.BytesIO()
    image.save(out, "JPEG", quality=QUALITY, optimize=True)
    return _uri("jpeg", out.getvalue())


def _gray(pred: Prediction, run: Evaluation) -> NDArray[np.uint8]:
    """The prediction as it is thresholded, dark lines on white; segmentations: their share."""
    from bsdsbench.images import unit
    from bsdsbench.transforms.maps import prepare

    if pred.kind == "segs":
        soft: Any = np.mean([seg2bdry(s) for s in pred.segs], axis=0)
    else:
        soft = unit(prepare(pred.boundary_map(), run.protocol))
    return np.asarray(np.rint(255 * (1 - np.clip(soft, 0, 1))), np.uint8)


def _uri(kind: str, data: bytes) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"


def by_interest(ids: Sequence[str], values: Sequence[Mapping[str, float]]) -> list[str]:
    """All images: in turn the next worst and best by each column, the next largest difference.

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


def draw_pictures(
    runs: Sequence[Any],
    sources: Mapping[str, Sources],
    named: Collection[str],
    notes: list[str],
    ids: Sequence[str],
    full: bool,
    progress: Progress | None = None,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Image id and pictures, in the order of ids: of all (full), or what `MOST` and `BUDGET` allow.

    sources : run name -> its files
    named   : runs whose folders were given: a fault of theirs is raised; of others `notes` gets it
    """
    drawn = []  # number and run; at what threshold its overlays are, if it has any; its records
    for i, run in enumerate(runs):
        if run.name in sources:
            metric = matching_metric(run)
            ods: Any = metric and run.score(metric.name).ods.threshold
            drawn.append((str(i), run, ods, {r.image_id: r for r in run.records}))

    def pictures(image_id: str) -> tuple[dict[str, Any], list[Any]]:
        """One image's pictures, and the runs with what was wrong with their files."""
        out, faults = dict[str, Any](runs={}), []
        for number, run, ods, records in drawn:
            if image_id not in sources[run.name].pairs:  # the run left it out
                continue
            try:
                pred, gt = sources[run.name].load(image_id, run.protocol)
                if "gt" not in out:
                    photo = sources[run.name].photo(image_id, gt.shape)
                    out.update(gt_picture(gt, photo))
                if image_id in records and ods is not None:
                    mine: dict[str, Any] = {"pred": jpeg_uri(_gray(pred, run))}
                    for kind, threshold in (("best", None), ("ods", ods)):
                        *at, classes = overlay(pred, gt, run, records[image_id], threshold)
                        png = _uri("png", png_bytes(classes, _OVERLAY_PALETTE))
                        mine[kind] = {"at": [round(v, 4) for v in at], "png": png}
                    out["runs"][number] = mine
            except DataError as error:
                faults.append((run, error))
        return out, faults

    used, faulty, ids = 0, set(), ids[: (len(ids) if full else MOST) * bool(drawn)]
    pool = ThreadPoolExecutor(available_cores())
    try:
        made = zip(ids, pool.map(pictures, ids), strict=True)
        for done, (image_id, (found, faults)) in enumerate(made, 1):
            for run, error in faults:
                if run.name in named:
                    raise error
                if run.name not in faulty:
                    faulty.add(run.name)
                    notes.append(f"no pictures: {run.name}: {fault_of(run, error)}")
            if "gt" in found:
                yield image_id, found
            if progress:
                progress(done, len(ids), image_id)
            used += len(repr(found))
            if used >= BUDGET and not full:
                break
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
