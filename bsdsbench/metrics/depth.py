"""Depth boundaries: do the steps of a predicted depth map lie where the true steps lie?

The option `measures` selects some of these; other options cover what programs do differently.

- "si", scale-invariant boundary F1: neighbouring pixels whose inverse depths differ by more than a
  ratio, in each of four directions and at each ratio, the same pair in both maps. At one ratio,
  recall is the mean over the directions of both / true, precision that of both / predicted. Source:
  Bochkovskii et al., Depth Pro, ICLR 2025, boundary_metrics.py.
- "matte": the recall of a matte's outline by the predicted edges. In each run of edges along a row
  (column) only the largest is kept. "si" keeps all of them, so the two cannot be read together.
- "dbe", depth boundary error in pixels: accuracy, how far predicted edges are from true ones, and
  completeness, by Canny edges. Source: Koch et al., iBims-1, ECCV workshops 2018; SharpDepth.
- "edges": soft edges of the predicted depth, matched one to one with the true edges as in
  `boundary`. Source: Talker et al., Mind the Edge, CVPR 2024 (KITTI-DE, DDAD-DE).

Columns are means over images, and over the ratios, weighted by the ratio. In `*_plain` all ratios
have the same weight; `*_pooled` are computed from sums over the images.

Everything is computed in float64. A depth is taken as 1e-6 where it is less; a NaN makes no edge.
Without "edges" the curve of a run is that of "si" over the ratios, of summed pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.errors import DataError
from bsdsbench.loaders.inputs import GroundTruth, Prediction
from bsdsbench.metrics.base import IMAGES, Column, Metric, Tree, over
from bsdsbench.metrics.boundary import (
    CURVE_COLUMNS,
    MatchMaps,
    boundary_counts,
    boundary_match_maps,
)
from bsdsbench.metrics.depth_maps import (
    DepthOptions,
    annotated,
    canny_edges,
    dbe_parts,
    inverse,
    matched_inputs,
    prepared,
)
from bsdsbench.protocol.protocol import CURVE, MAPS, MATCHING, Protocol
from bsdsbench.scores.counts import Stack
from bsdsbench.scores.curve import curve_scores, four_counts
from bsdsbench.scores.ratios import (
    Weights,
    defined_ratio,
    f_measure,
    ratio,
    weighted_mean,
    weighted_sum,
)

F8 = NDArray[np.float64]


@contextmanager
def _named(gt: GroundTruth) -> Iterator[None]:
    """What is missing is said with the file's name."""
    try:
        yield
    except DataError as error:
        raise type(error)(f"{gt.where}: {error}") from None


def _share(pairs: NDArray[Any], of: int, strict: bool) -> F8:
    """Mean over the directions of both / pairs of one side, (..., R, 4, 3) -> (..., R)."""
    sums = ratio(pairs[..., 0], pairs[..., of]).sum(axis=-1)
    return ratio(sums, 4) if strict else defined_ratio(sums, (pairs[..., of] > 0).sum(axis=-1))


def _over_ratios(values: F8, weights: F8) -> F8:
    """The weighted mean over the ratios at which there is a value, (..., R) -> (...)."""
    there = ~np.isnan(values)
    total = (there * weights).sum(axis=-1)
    mean = ratio((np.where(there, values, 0.0) * weights).sum(axis=-1), total)
    return np.where(total > 0, mean, np.nan)


def _values(stack: Mapping[str, Any], opt: DepthOptions) -> dict[str, F8]:
    """The values of images (N,), or of sums of images (S,), by their keys without `_pooled`."""
    ratios, out, at = np.linspace(*opt.ratios), dict[str, F8](), dict[str, F8]()
    if "si" in stack:
        recall, precision = (_share(stack["si"], of, opt.strict) for of in (2, 1))
        f = f_measure(np.nan_to_num(precision), np.nan_to_num(recall))
        at["si_f1"] = np.where(np.isnan(recall), np.nan, f)  # where the truth has no edge
        at |= {"si_precision": precision, "si_recall": recall}
    if "matte" in stack:
        at["matte_recall"] = _share(stack["matte"], 1, opt.strict)
    for key, values in at.items():
        out[key] = _over_ratios(values, ratios)
        out[f"{key}_plain"] = _over_ratios(values, np.ones(ratios.size))
        for k, r in enumerate(ratios):
            word = f"{r:.4f}".rstrip("0").rstrip(".").replace(".", "_")
            out[f"{key}@{word}"] = values[..., k]
    if "dbe_n" in stack:
        sums, n = stack["dbe_sum"], stack["dbe_n"]
        near, both = (ratio(sums[..., k], n[..., k]) for k in range(2))
        none = n[..., 0] == 0
        # "sharpdepth" counts edges of the truth alone
        both = np.where(none & (n[..., 1] > n[..., 2]), opt.radius, both)
        near = np.where(none, opt.radius, near)
        for key, value in (("dbe_accuracy", near), ("dbe_completeness", both)):
            out[key] = np.where(n[..., 2] > 0, value, np.nan)
    return out


_MEASURED = (
    ("si_f1", "SI-F1", "SI-F1"),
    ("si_precision", "SI precision", "SI P"),
    ("si_recall", "SI recall", "SI R"),
    ("matte_recall", "SI recall of mattes", "matte R"),
    ("dbe_accuracy", "DBE accuracy", "DBE acc"),
    ("dbe_completeness", "DBE completeness", "DBE comp"),
)


class DepthMetric(Metric):
    """Depth boundaries: SI boundary F1, DBE, and depth edges matched one to one."""

    name = "depth"
    title = "Depth boundaries"
    version = 2
    reads = "depth"
    default_protocol = "depth"
    options = DepthOptions
    uses = (*MAPS, *CURVE, *MATCHING)
    columns = (
        *(Column(k, h, s, lower=k.startswith("dbe"), quantity=k) for k, h, s in _MEASURED),
        *(
            Column(f"{k}_plain", f"{h}, not weighted", shown="never", quantity=k)
            for k, h, _ in _MEASURED[:4]
        ),
        *(
            Column(f"{k}_pooled", f"{h} of sums", "", k.startswith("dbe"), 4, "never", quantity=k)
            for k, h, _ in _MEASURED
        ),
        *CURVE_COLUMNS,
        IMAGES,
    )
    image_columns = (
        Column("si_f1", "SI-F1"),
        Column("dbe_accuracy", "DBE acc", lower=True, digits=3),
        Column("dbe_completeness", "DBE comp", lower=True, digits=3),
        Column("ods", "F"),
    )

    def used(self, opt: DepthOptions) -> tuple[str, ...]:
        """None unless edges are matched."""
        return self.uses if self.has_curve(opt) else ()

    def has_curve(self, opt: DepthOptions) -> bool:
        return "edges" in opt.measures

    def count(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: DepthOptions
    ) -> Tree:
        """Pairs, distances and matched edges, of the measures asked for.

        si i8 (R, 4, 3), pairs in both maps, in pred, in gt at each ratio; directions are left, top,
        right, bottom: which of the two pixels is nearer; matte i8 (R, 4, 2), edges of the matte
        that are found, and all; dbe_sum f8 (2,), distances summed for accuracy, for completeness;
        dbe_n i8 (3,), how many were summed, and edges of the truth; thresholds, matched_gt ..
        total_pred (T,), of matched edges, as `boundary_counts`.
        """
        found: Tree = {}
        depth = pred.depth
        with _named(gt):
            maps, ratios = prepared(depth, gt, opt), np.linspace(*opt.ratios)
            if "si" in opt.measures:
                from bsdsbench.kernels.depth_pairs import ratio_pairs

                both = inverse(maps.pred), inverse(maps.true())
                found["si"] = ratio_pairs(*both, maps.valid, ratios)
            if "matte" in opt.measures:
                from bsdsbench.kernels.depth_pairs import thinned_pairs

                if maps.matte is None:
                    raise DataError("no matte, expected one for the measure matte (depth.gt_holds)")
                found["matte"] = thinned_pairs(inverse(maps.pred), maps.matte, ratios)
            if "dbe" in opt.measures:
                edges = canny_edges(maps.raw_pred, opt.dbe)
                if opt.dbe == "sharpdepth":
                    truth = canny_edges(maps.true("raw_gt"), opt.dbe)
                else:
                    truth = np.logical_or.reduce(annotated(maps, opt))
                found["dbe_sum"], found["dbe_n"] = dbe_parts(edges, truth, maps.valid, opt)
            if "edges" in opt.measures:
                found |= boundary_counts(*matched_inputs(maps, gt, opt), protocol)
        return found

    def scores(self, stack: Stack, weights: Weights, protocol: Protocol, opt: DepthOptions) -> Tree:
        """Means over images, `*_pooled` of the sums, and those of a curve for matched edges."""
        sums = {n: weighted_sum(weights, a) for n, a in stack.items() if n not in self.shared}
        each, n = _values(stack, opt), weights.sum(axis=1)
        found: dict[str, Any] = {key: weighted_mean(weights, value) for key, value in each.items()}
        for key, value in _values(sums, opt).items():
            if f"{key}_plain" in found or key.startswith("dbe"):
                found[f"{key}_pooled"] = value
        there = {key: (weighted_sum(weights, ~np.isnan(v)), n) for key, v in each.items()}
        found["over"] = over("images", there)
        if self.has_curve(opt):
            found |= curve_scores(stack["thresholds"], four_counts(stack), weights, protocol)
        return found

    def match_maps(
        self,
        pred: Prediction,
        gt: GroundTruth,
        protocol: Protocol,
        opt: DepthOptions,
        threshold: float,
    ) -> MatchMaps:
        depth = pred.depth
        with _named(gt):
            soft, truth = matched_inputs(prepared(depth, gt, opt), gt, opt)
            return boundary_match_maps(soft, truth, protocol, threshold)

    def symptoms(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: DepthOptions
    ) -> Iterator[tuple[str, str, str]]:
        """Inverse depth, another scale, unknown pixels, a truth without steps."""
        maps = prepared(pred.depth, gt, opt)
        unknown = np.isnan(maps.raw_pred) & maps.valid
        if unknown.mean() > 0.01:
            words = "over 1 % of the prediction is 0, NaN or infinite where the truth is known"
            yield "unknown", words, "fill it, or --set depth.invalid=both"
        if maps.gt is None:
            return
        both = maps.valid & ~unknown
        a, b = inverse(maps.pred[both]), inverse(maps.gt[both])
        if a.size < 2 or a.std() == 0 or b.std() == 0:
            yield "flat", "prediction or truth has one depth", "check the files"
            return
        if np.corrcoef(np.log(a), np.log(b))[0, 1] < -0.3:
            other = "depth" if opt.pred_holds == "inverse" else "inverse"
            fix = f"--set depth.pred_holds={other}"
            yield "inverse", "depth falls where the truth's rises", fix
        elif not 0.05 < float(np.median(a / b)) < 20:
            words = "depths are of another scale than the truth's"
            fix = "--set depth.pred_scale=..., or depth.align=scale (si needs neither)"
            yield "scale", words, fix
