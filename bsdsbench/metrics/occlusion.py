"""Occlusion boundaries: edges matched as in the boundary benchmark, and their orientation.

A pair of the matching is right if the angles at its two pixels, in radians, differ by at most a
quarter turn: |a - b| modulo 2 pi is at most pi / 2, or at least 3 pi / 2. The counts at each
threshold give three curves, each with ODS, OIS and AP by the rules of the boundary benchmark:

| curve | recall | precision |
|---|---|---|
| edge | matched annotated / annotated | matched predicted / predicted |
| orientation | the same | predicted in a right pair / predicted |
| accuracy | the same | predicted in a right pair / matched predicted |

A predicted pixel counts once, however many annotators have it in a (right) pair. If sizes differ,
edges and angles are resized to the ground truth bilinearly before NMS. Source:
DOOBNet (Wang, Wang, Li, ACCV 2018), EvaluateSingle.m and correspondOccPixels.m.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.loaders.inputs import GroundTruth, Prediction, same_shape, soft_map, unit
from bsdsbench.loaders.official_txt import format_rows, safe_name
from bsdsbench.metrics.base import IMAGES, Column
from bsdsbench.metrics.boundary import (
    CurvesMetric,
    matched,
    replayed,
    threshold_events,
    truth_maps,
)
from bsdsbench.metrics.imresize import bilinear
from bsdsbench.protocol.protocol import CURVE, MAPS, MATCHING, Protocol
from bsdsbench.scores.counts import Counts, Score, Stack
from bsdsbench.scores.curve import FOUR

PARTS = {"edge": "Edge", "orientation": "Orientation", "accuracy": "Accuracy"}
COUNTS = (*FOUR, "right_gt", "right_pred")


class OcclusionMetric(CurvesMetric):
    """Occlusion boundaries and their orientation."""

    name = "occlusion"
    title = "Occlusion boundaries"
    reads = "oriented"
    default_protocol = "occlusion"
    uses = (*MAPS, *CURVE, *MATCHING)
    curve_names = PARTS
    columns = (
        *(
            Column(
                f"{part}.{key}",
                f"{title} {key.upper()}",
                f"{title[0]}-{key.upper()}",
                shown="never" if part == "accuracy" else "always",
            )
            for part, title in PARTS.items()
            for key in ("ods", "ois", "ap")
        ),
        IMAGES,
    )
    image_columns = (Column("orientation.ods", "orientation F"), Column("edge.ods", "edge F"))

    def count(self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: None) -> Counts:
        return occlusion_counts(pred.soft, pred.angles, gt.boundaries, gt.angles, protocol)

    def fits(self, pred: Prediction, gt: GroundTruth, opt: None) -> bool:
        """True: another size is resized."""
        return True

    def four(self, stack: Stack, part: str) -> NDArray[np.int64]:
        hit = stack["matched_pred" if part == "edge" else "right_pred"]
        of = stack["matched_pred" if part == "accuracy" else "total_pred"]
        return np.stack([stack["matched_gt"], stack["total_gt"], hit, of], axis=-1)

    def files(
        self, score: Score, ids: Sequence[str], stack: Stack, protocol: Protocol, opt: None
    ) -> Iterator[tuple[str, str]]:
        """Beside those of the curves ID_ev1_occ.txt of each image: thresh cntR sumR cntP sumP
        cntR_occ cntP_occ."""
        yield from super().files(score, ids, stack, protocol, opt)
        for i, image_id in enumerate(ids):
            table = np.column_stack([stack["thresholds"], *(stack[name][i] for name in COUNTS)])
            yield f"per_image/{safe_name(image_id)}_ev1_occ.txt", format_rows(table)


def occlusion_counts(
    soft: NDArray[Any],
    angles: NDArray[Any],
    boundaries: Sequence[NDArray[Any]],
    gt_angles: Sequence[NDArray[Any]],
    protocol: Protocol,
) -> Counts:
    """Matched pixels, and pixels in pairs of right orientation, of one image at every threshold.

    soft (H, W) as for `boundary_counts`, angles (H, W) in radians, of another size both are
    resized; one boundary map and one map of radians per annotator. A threshold stands for the
    pixels from it on, also where it is 0.

    Those of `boundary_counts`, and right_gt, right_pred i8 (T,): pixels in a pair of right
    orientation, summed over annotators, and with any annotator. The programs write right_gt and
    never use it. Raises ShapeError or DataError for maps of other shapes or values.
    """
    gt_maps = truth_maps(tuple(boundaries), protocol)
    shape = gt_maps.shape[1:]
    for one in gt_angles:
        same_shape(one.shape, shape)
    same_shape(angles.shape, soft.shape)
    if soft.shape != shape:
        size = (shape[0], shape[1])
        soft = np.clip(bilinear(unit(soft_map(soft)), size), 0.0, 1.0)
        angles = bilinear(angles, size)
    thresholds, events, _ = threshold_events(soft, shape, protocol)
    maps = replayed(events, shape)
    rows = np.zeros((thresholds.size, len(COUNTS)), np.int64)
    for k, bmap in enumerate(maps):
        if k and np.array_equal(bmap, maps[k - 1]):
            rows[k] = rows[k - 1]
            continue
        found, right = np.zeros((2, bmap.size), bool)
        matched_gt = right_gt = 0
        for annotator, (gt, gt_angle) in enumerate(zip(gt_maps, gt_angles, strict=True)):
            pred_at, gt_at = matched(bmap, gt, protocol.radius(bmap.shape), annotator)
            agree = same_side(np.ravel(angles)[pred_at], np.ravel(gt_angle)[gt_at])
            found[pred_at], right[pred_at[agree]] = True, True
            matched_gt += pred_at.size
            right_gt += int(agree.sum())
        total = np.count_nonzero(gt_maps), found.sum(), bmap.sum()
        rows[k] = matched_gt, *total, right_gt, right.sum()
    return Counts(thresholds=thresholds, **dict(zip(COUNTS, rows.T, strict=True)))


def same_side(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether angles in radians differ by at most a quarter turn.

    Examples
    --------
    >>> same_side(np.array([0.0, 0.0, 3.0]), np.array([1.5, 1.6, -3.0])).tolist()
    [True, False, True]
    """
    turn = np.mod(np.abs(np.asarray(a, np.float64) - np.asarray(b, np.float64)), 2 * np.pi)
    return np.asarray((turn <= np.pi / 2) | (turn >= 3 * np.pi / 2))
