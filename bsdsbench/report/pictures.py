"""Small pictures for a report: photographs as thumbnails, lines as palette PNG, several at a time.

A page of every picture of 200 images and three methods has 30 MB. So those come first that are
looked at first: by each method the worst and the best, and where two methods differ most; as many
as fit into `BUDGET`.
"""

from __future__ import annotations

import base64
import io
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import combinations, zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.bounded import png_bytes
from bsdsbench.files.errors import DataError
from bsdsbench.loaders.inputs import GroundTruth, Prediction
from bsdsbench.loaders.labels import seg2bdry
from bsdsbench.report.overlays import COLORS, Overlay, image_threshold, matching_metric, overlay
from bsdsbench.runs.evaluation import Evaluation, Progress
from bsdsbench.runs.run import available_cores
from bsdsbench.runs.sources import Sources, fault_of
from bsdsbench.scores.counts import ImageRecord

THUMBNAIL = 320  # longer side, pixels
THUMB = 120  # that of the table
QUALITY = 70
_OVERLAY_PALETTE = [(*color, 255 if i else 0) for i, color in enumerate(COLORS)]
_LEVELS = 8


def image_pictures(
    pred: Prediction, gt: GroundTruth, run: Evaluation, record: ImageRecord, ods_threshold: float
) -> dict[str, Any]:
    """A run's pictures of one image: pred, and overlays at its best and at the ODS threshold."""
    best = overlay(pred, gt, run, image_threshold(run, record), record)
    ods = overlay(pred, gt, run, ods_threshold, record)
    return {
        "pred": jpeg_uri(_gray(pred, run)),
        "best": _overlay_data(best),
        "ods": _overlay_data(ods),
    }


def gt_picture(gt: GroundTruth, photo: NDArray[np.uint8] | None) -> dict[str, Any]:
    """The annotators' boundaries of one image, darker where more agree, and its photograph.

    Also `thumb`, a small picture for the table; `paper` says that it has a transparent ground.
    """
    out = {"gt": gt_uri(gt), "size": [gt.shape[1], gt.shape[0]], "annotators": len(gt.boundaries)}
    if photo is None:
        return {**out, "thumb": out["gt"], "paper": True}
    return {**out, "photo": jpeg_uri(photo), "thumb": jpeg_uri(photo, THUMB)}


def gt_uri(gt: GroundTruth) -> str:
    """Share of annotators per pixel as a palette PNG with a transparent ground.

    Of label maps and masks their outlines.
    """
    share = np.mean(_lines(gt), axis=0)
    levels = np.ceil(share * (_LEVELS - 1)).astype(np.uint8)
    shades = np.linspace(190, 0, _LEVELS).astype(int)
    palette = [(v, v, v, 255 if i else 0) for i, v in enumerate(shades)]
    return _uri("png", png_bytes(levels, palette))


def _lines(gt: GroundTruth) -> list[NDArray[np.bool_]]:
    if gt.boundaries:
        return list(gt.boundaries)
    if "class_boundaries" in gt.parts:
        return [gt.class_boundaries.any(axis=0)]
    regions = gt.parts.get("labels", gt.parts.get("mask"))
    return [np.zeros(gt.shape, bool) if regions is None else seg2bdry(regions)]


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
    from bsdsbench.loaders.inputs import unit
    from bsdsbench.metrics.maps import prepare

    if pred.kind == "segs":
        soft: Any = np.mean([seg2bdry(s) for s in pred.segs], axis=0)
    else:
        soft = unit(prepare(pred.boundary_map(), run.protocol))
    return np.asarray(np.rint(255 * (1 - np.clip(soft, 0, 1))), np.uint8)


def _overlay_data(found: Overlay) -> dict[str, Any]:
    numbers = (found.threshold, found.recall, found.precision, found.f)
    return {
        "at": [round(v, 4) for v in numbers],
        "png": _uri("png", png_bytes(found.classes, _OVERLAY_PALETTE)),
    }


def _uri(kind: str, data: bytes) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"


BUDGET = 5_000_000  # characters; tables, values and scripts have room below 6 MB


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
    budget: int | None,
    progress: Progress | None = None,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Image id and pictures, in the order of ids, until they have `budget` characters.

    sources : run name -> its files; a run whose files are not as they were loses them
    named   : runs whose folders were given: a fault of theirs is raised; of others `notes` gets it
    """
    left, ods, records = dict(sources), dict[str, Any](), dict[str, dict[str, ImageRecord]]()
    for run in runs:
        if run.name in left:  # its overlays are drawn at this threshold, if it has any
            metric = matching_metric(run.metrics, run.protocol)
            ods[run.name] = run.score(metric.name).ods.threshold if metric else None
            records[run.name] = {r.image_id: r for r in run.records}

    def pictures(
        image_id: str, own: dict[str, Sources]
    ) -> tuple[dict[str, Any], dict[int, DataError]]:
        """One image's pictures, and what was wrong with a run's files."""
        out: dict[str, Any] = {"runs": {}}
        faults: dict[int, DataError] = {}
        for i, run in enumerate(runs):
            if run.name not in own:
                continue
            try:
                pred, gt = own[run.name].load(image_id, run)
                if "gt" not in out:
                    out.update(gt_picture(gt, own[run.name].photo(image_id, gt.shape)))
                record, at = records[run.name].get(image_id), ods[run.name]
                if record is not None and at is not None:
                    out["runs"][str(i)] = image_pictures(pred, gt, run, record, at)
            except DataError as error:
                faults[i] = error
        return out, faults

    used, done, workers = 0, 0, available_cores()
    waiting, ahead = iter(ids if left else ()), deque[tuple[str, Future[Any]]]()
    with ThreadPoolExecutor(workers) as pool:
        try:
            while budget is None or used < budget:
                while len(ahead) < 2 * workers and (k := next(waiting, None)) is not None:
                    ahead.append((k, pool.submit(pictures, k, dict(left))))
                if not ahead:
                    break
                image_id, future = ahead.popleft()
                found, faults = future.result()
                for i, error in faults.items():
                    run = runs[i]
                    if run.name in left:
                        if run.name in named:
                            raise error
                        notes.append(f"no pictures: {run.name}: {fault_of(run, error)}")
                        del left[run.name]
                mine = found["runs"].items()
                found["runs"] = {i: each for i, each in mine if runs[int(i)].name in left}
                used, done = used + _size(found), done + 1
                yield image_id, found
                if progress:
                    fitting = done if budget is None else round(done * budget / max(used, 1))
                    total = len(ids) if budget is None else min(len(ids), max(done, fitting))
                    progress(done, total, image_id)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _size(found: Any) -> int:
    """Characters of the pictures in nested values."""
    if isinstance(found, Mapping):
        return sum(map(_size, found.values()))
    return len(found) if isinstance(found, str) else 0
