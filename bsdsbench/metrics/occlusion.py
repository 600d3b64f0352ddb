"""Occlusion boundaries: are they right, and does the prediction know which side is in front?

Definition. Edges are matched as in the boundary benchmark. A matched pair is right if the angles at
its two pixels, in radians, differ by at most a quarter turn: |a - b| modulo 2 pi is at most pi / 2,
or at least 3 pi / 2. Three curves (`OcclusionMetric.curves`) have ODS, OIS and AP by the rules of
the boundary benchmark.

Conventions. A predicted pixel that is in a (right) pair with several annotators counts once. If the
sizes differ, edges and angles are resized bilinearly to the size of the ground truth before NMS, as
in the official program; angles are interpolated as plain numbers, although they wrap around.

Source. DOOBNet (Wang, Wang, Li, ACCV 2018), EvaluateSingle.m and correspondOccPixels.m.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bsdsbench.arguments import Bools, Ints
from bsdsbench.images import GroundTruth, Map, Prediction, same_shape, to_unit_range
from bsdsbench.loaders.formats.official_txt import format_rows, safe_name
from bsdsbench.metrics.base import IMAGES, Arrays, Column, Counter, Texts
from bsdsbench.metrics.boundary import CurveMetric, rebuild_maps, threshold_changes, truth_maps
from bsdsbench.protocol.protocol import CURVE, MAPS, MATCHING, Protocol
from bsdsbench.scores.counts import MATCHED_PRED, TOTAL_PRED, Score, Stack
from bsdsbench.transforms.resize import bilinear

_PARTS = {"edge": "Edge", "orientation": "Orientation", "accuracy": "Accuracy"}


def _count_right_pairs(
    bmap: Bools, angles: Map, gt_maps: Bools, gt_angles: Sequence[Map], radius: float
) -> Ints:
    """Match a boundary map with each annotator's, and count pixels whose partner's angle agrees.

    angles (H, W), gt_angles (A of (H, W)): the boundary's angle at each pixel, in radians.

    A matched pair is right if its two angles differ by at most a quarter turn.

    Returns int64 (6,): matched and all annotated pixels, matched and all predicted pixels, then the
    annotated pixels in a right pair and the predicted pixels in a right pair. Annotated pixels are
    summed over annotators; predicted pixels need a pair with at least one annotator.
    """
    from bsdsbench.kernels.matching.matching import match_maps

    # For each predicted pixel: whether it is in any pair, and whether it is in a right one
    is_matched, is_right = np.zeros((2, bmap.size), bool)
    matched_gt = right_gt = 0
    for annotator, (gt_map, gt_angle) in enumerate(zip(gt_maps, gt_angles, strict=True)):
        pred_at, gt_at = match_maps(bmap, gt_map, radius, annotator)  # flat indices of pairs
        difference = np.abs(angles.flat[pred_at].astype(np.float64) - gt_angle.flat[gt_at])
        turn = np.mod(difference, 2 * np.pi)
        agrees = (turn <= np.pi / 2) | (turn >= 3 * np.pi / 2)  # at most a quarter turn apart
        is_matched[pred_at] = True
        is_right[pred_at[agrees]] = True
        matched_gt += pred_at.size
        right_gt += int(agrees.sum())
    total_gt, matched_pred, total_pred = np.count_nonzero(gt_maps), is_matched.sum(), bmap.sum()
    return np.array([matched_gt, total_gt, matched_pred, total_pred, right_gt, is_right.sum()])


class OcclusionMetric(CurveMetric[None]):
    """Occlusion boundaries and their orientation."""

    name, title, reads = "occlusion", "Occlusion boundaries", "oriented"
    default_protocol = "occlusion"
    uses = (*MAPS, *CURVE, *MATCHING)
    curve_paths, has_errors = {title: (part,) for part, title in _PARTS.items()}, True
    columns = (
        *(
            Column(
                f"{part}.{key}",
                f"{title} {key.upper()}",
                f"{title[0]}-{key.upper()}",
                shown="never" if part == "accuracy" else "always",
            )
            for part, title in _PARTS.items()
            for key in ("ods", "ois", "ap")
        ),
        IMAGES,
    )
    image_columns = (Column("orientation.ods", "orientation F"), Column("edge.ods", "edge F"))

    def count(
        self,
        pred: Prediction,
        gt: GroundTruth,
        protocol: Protocol,
        opt: None,
        counter: Counter | None = None,
    ) -> Arrays:
        """Count the matched pixels, and those in pairs whose angles agree, at each threshold.

        Two angles agree if they differ by at most a quarter turn. The prediction is first resized
        to the size of the ground truth. `counter` is a function like `boundary_counts` that returns
        further arrays, or None. Returns a dict with these arrays, and those of `counter`:

        thresholds, matches : float64 (T,), int64 (T, 4); the columns are matched and all annotated
            pixels, matched and all predicted pixels
        right_gt : int64 (T,), annotated pixels in a pair with agreeing angles, summed over
            annotators. The official program writes this number, but never uses it.
        right_pred : int64 (T,), predicted pixels in such a pair with at least one annotator

        If `protocol.whole_image`, the first threshold is 0 and stands for the whole image. It is
        not one of the T thresholds, because it needs no matching.
        """
        gt_maps = truth_maps(gt, protocol)
        shape = gt_maps.shape[1], gt_maps.shape[2]
        soft, angles = pred.soft, pred.angles
        if soft.shape == shape[::-1]:  # exchanged rows and columns, a mistake: raise unless H = W
            same_shape(soft.shape, shape)
        if soft.shape != shape:
            soft = np.clip(bilinear(to_unit_range(soft), shape), 0.0, 1.0)
        if angles.shape != shape:
            angles = bilinear(angles, shape)
        resized = Prediction(pred.image_id, soft=soft)
        # Thinned boundary maps, bool (T, H, W), at the thresholds above 0
        thresholds, changes, _ = threshold_changes(resized, shape, protocol)
        maps, radius = rebuild_maps(changes, shape), protocol.radius(shape)
        # Columns: matched_gt, total_gt, matched_pred, total_pred, right_gt, right_pred
        counts = np.zeros((thresholds.size, 6), np.int64)
        for k, bmap in enumerate(maps):
            if k and np.array_equal(bmap, maps[k - 1]):  # the same map has the same counts
                counts[k] = counts[k - 1]
            else:
                counts[k] = _count_right_pairs(bmap, angles, gt_maps, gt.angles, radius)
        further: Arrays = {}
        if counter is not None:
            further = counter(resized, gt, protocol.replace(thresholds=tuple(thresholds.tolist())))
        return {
            **further,
            "thresholds": thresholds,
            "matches": counts[:, :4],
            "right_gt": counts[:, 4],
            "right_pred": counts[:, 5],
        }

    def fits(self, pred: Prediction, gt: GroundTruth, opt: None) -> bool:
        """Return True: `count` resizes the prediction to the size of the ground truth."""
        return True

    def curves(self, stack: Stack, opt: None) -> dict[tuple[str, ...], Ints]:
        """Return the counts of the three curves, keyed by path, such as ("edge",).

        Counts are (N, T, 4): matched and all annotated pixels, matched and all predicted pixels.
        All three curves have the same recall, that of all pairs. Precision is

        - edge: matched predicted pixels / all predicted pixels
        - orientation: predicted pixels in a pair with agreeing angles / all predicted pixels
        - accuracy: predicted pixels in a pair with agreeing angles / matched predicted pixels
        """
        edge = stack["matches"]
        orientation = edge.copy()
        orientation[..., MATCHED_PRED] = stack["right_pred"]
        accuracy = orientation.copy()
        accuracy[..., TOTAL_PRED] = edge[..., MATCHED_PRED]
        return {("edge",): edge, ("orientation",): orientation, ("accuracy",): accuracy}

    def files(
        self, score: Score, ids: Sequence[str], stack: Stack, protocol: Protocol, opt: None
    ) -> Texts:
        """Yield (name, text) for the tables of each curve, and per_image/ID_ev1_occ.txt per image.

        The latter is a file of the official program. Its columns are the threshold, matched and all
        annotated pixels, matched and all predicted pixels, and the annotated and predicted pixels
        in pairs with agreeing angles (thresh cntR sumR cntP sumP cntR_occ cntP_occ).
        """
        yield from super().files(score, ids, stack, protocol, opt)
        counts = [stack[name] for name in ("matches", "right_gt", "right_pred")]
        for image_id, *columns in zip(ids, *counts, strict=True):
            table = np.column_stack([stack["thresholds"], *columns])
            yield f"per_image/{safe_name(image_id)}_ev1_occ.txt", format_rows(table)
