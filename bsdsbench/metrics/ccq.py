"""Completeness, correctness and quality of thin structures: roads, cracks, vessels, neurites.

A pixel of a centre line is matched where the other centre line is within the buffer, any number of
them by one pixel (relaxed recall and precision). Source: Wiedemann, Heipke, Mayer and Jamet,
"Empirical evaluation of automatically extracted road axes", 1998.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from bsdsbench.loaders.inputs import GroundTruth, Prediction, same_shape
from bsdsbench.metrics.base import IMAGES, Column, Metric, Tree
from bsdsbench.metrics.label_maps import SPACING
from bsdsbench.metrics.topology import THRESHOLD, masks_of
from bsdsbench.protocol.fields import HOME_MADE, check, one_of, option
from bsdsbench.protocol.protocol import MAPS, Protocol
from bsdsbench.scores.counts import Stack
from bsdsbench.scores.ratios import Weights, defined_f, defined_ratio, weighted_sum


@frozen
class Options:
    """What the lines are, and how near is near."""

    buffer: float = option(
        3.0,
        "How far a matched pixel may be from the other line, in the unit of `spacing`.",
        check(lambda v: isinstance(v, float) and 0 <= v <= 1e6, "a number from 0"),
        caption=lambda o: f"buffer {o.buffer:g}",
        others={3.0: "Mnih and Hinton", 2.0: HOME_MADE, 5.0: HOME_MADE},
    )
    spacing: tuple[float, float] = SPACING
    lines: str = option(
        "skeleton",
        'Masks are thinned to their "skeleton" by scikit-image\'s skeletonize, or they are centre '
        'lines as they are ("given").',
        one_of("skeleton", "given"),
        caption={"skeleton": "masks skeletonised", "given": "centre lines as given"},
        others={"skeleton": "programs on masks", "given": "programs on centre lines"},
    )
    threshold: float = THRESHOLD


class CcqMetric(Metric):
    """Completeness, correctness and quality of centre lines within a buffer.

    Scores: of the pixels of all images together. Quality is matched predicted pixels over predicted
    pixels and unmatched annotated ones.
    """

    name, title, reads, options = "ccq", "Centre lines", "mask", Options
    default_protocol = "masks"
    uses = (*MAPS, "gt_threshold")
    columns = (
        Column("completeness", "completeness", "compl.", undefined="nothing is annotated"),
        Column("correctness", "correctness", "corr.", undefined="nothing is predicted"),
        Column("quality", "quality", undefined="nothing is annotated or predicted"),
        Column("f", "F", undefined="nothing is annotated or predicted"),
        IMAGES,
    )
    image_columns = (columns[2], *columns[:2])

    def count(self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: Options) -> Tree:
        """matched i8 (2,), total i8 (2,): pixels of the predicted and of the annotated line."""
        from skimage.morphology import skeletonize

        from bsdsbench.kernels.graph import within_reach

        masks = masks_of(pred, gt, protocol, opt.threshold)
        same_shape(masks[0].shape, masks[1].shape, pred.where)
        lines = [m if opt.lines == "given" else skeletonize(m) for m in masks]
        steps = zip(opt.spacing, masks[1].shape, strict=True)
        down, right = (s * np.arange(min(int(opt.buffer / s) + 1, n) + 1) for s, n in steps)
        rows = np.concatenate([down[:0:-1], down])  # of the disk around a pixel
        half = (np.hypot(rows[:, None], right[1:]) <= opt.buffer).sum(axis=1).astype(np.int32)
        disk = half[rows <= opt.buffer]
        near = [within_reach(np.ascontiguousarray(m), disk) for m in lines[::-1]]
        matched = [(m & n).sum() for m, n in zip(lines, near, strict=True)]
        return {"matched": matched, "total": [m.sum() for m in lines]}

    def scores(self, stack: Stack, weights: Weights, protocol: Protocol, opt: Options) -> Tree:
        matched, total = (weighted_sum(weights, stack[name]) for name in ("matched", "total"))
        share = defined_ratio(matched, total)
        missed = total[:, 1] - matched[:, 1]
        return {
            "completeness": share[:, 1],
            "correctness": share[:, 0],
            "quality": defined_ratio(matched[:, 0], total[:, 0] + missed),
            "f": defined_f(share),
        }
