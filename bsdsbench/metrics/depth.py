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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.errors import DataError
from bsdsbench.loaders.inputs import GroundTruth, Prediction
from bsdsbench.metrics.base import IMAGES, Column, Metric, over
from bsdsbench.metrics.boundary import (
    CURVE_COLUMNS,
    MatchMaps,
    boundary_counts,
    boundary_match_maps,
)
from bsdsbench.metrics.depth_maps import (
    DepthOptions,
    canny_edges,
    dbe_parts,
    dbe_truth,
    depth_symptoms,
    inverse,
    matched_inputs,
    prepared,
    true_depth,
)
from bsdsbench.protocol.constants import CURVE, MAPS, MATCHING
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import Counts, Stack
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


def depth_counts(
    pred: NDArray[Any], gt: GroundTruth, protocol: Protocol, at: DepthOptions
) -> Counts:
    """Count one image: pairs, distances and matched edges, of the measures asked for.

    pred : (H, W) numbers; gt : its `depth`, and where there are `boundaries`, `valid`, `mask`

    si      : i8 (R, 4, 3), pairs in both maps, in pred, in gt at each ratio; directions are left,
        top, right, bottom: which of the two pixels is nearer
    matte   : i8 (R, 4, 2), edges of the matte that are found, and all
    dbe_sum : f8 (2,), distances summed for accuracy, for completeness
    dbe_n   : i8 (3,), how many were summed, and edges of the truth
    thresholds, matched_gt .. total_pred : (T,), of matched edges, as `boundary_counts`

    Raises ShapeError for unequal sizes, DataError where the truth lacks what a measure needs.
    """
    maps, ratios = prepared(pred, gt, at), at.ratio_array()
    found: dict[str, Any] = {}
    if "si" in at.measures:
        from bsdsbench.kernels.depth_pairs import ratio_pairs

        depth = inverse(maps.pred), inverse(true_depth(maps))
        found["si"] = ratio_pairs(*depth, maps.valid, ratios)
    if "matte" in at.measures:
        from bsdsbench.kernels.depth_pairs import thinned_pairs

        if maps.matte is None:
            raise DataError("no matte, expected one for the measure matte (depth.gt_holds)")
        found["matte"] = thinned_pairs(inverse(maps.pred), maps.matte, ratios)
    if "dbe" in at.measures:
        edges = canny_edges(maps.raw_pred, at.dbe)
        found["dbe_sum"], found["dbe_n"] = dbe_parts(edges, dbe_truth(maps, at), maps.valid, at)
    if "edges" in at.measures:
        found |= boundary_counts(*matched_inputs(maps, gt, at), protocol)
    return Counts(**found)


def _share(pairs: NDArray[Any], of: int, strict: bool) -> F8:
    """Mean over the directions of both / pairs of one side, (..., R, 4, 3) -> (..., R)."""
    there = pairs[..., of] > 0
    sums = ratio(pairs[..., 0], pairs[..., of]).sum(axis=-1)
    if strict:
        return ratio(sums, 4)
    return defined_ratio(sums, there.sum(axis=-1))


def _over_ratios(values: F8, weights: F8) -> F8:
    """The weighted mean over the ratios at which there is a value, (..., R) -> (...)."""
    there = ~np.isnan(values)
    total = (there * weights).sum(axis=-1)
    mean = ratio((np.where(there, values, 0.0) * weights).sum(axis=-1), total)
    return np.where(total > 0, mean, np.nan)


def _si_at(pairs: NDArray[Any], strict: bool) -> dict[str, F8]:
    """F1, precision and recall at each ratio, (..., R): NaN where the truth has no edge."""
    recall, precision = _share(pairs, 2, strict), _share(pairs, 1, strict)
    f = np.where(
        np.isnan(recall), np.nan, f_measure(np.nan_to_num(precision), np.nan_to_num(recall))
    )
    return {"si_f1": f, "si_precision": precision, "si_recall": recall}


def _values(stack: Mapping[str, Any], opt: DepthOptions) -> dict[str, F8]:
    """The values of images (N,), or of sums of images (S,), by their keys without `_pooled`."""
    ratios, out, at = opt.ratio_array(), dict[str, F8](), dict[str, F8]()
    if "si" in stack:
        at |= _si_at(stack["si"], opt.strict)
    if "matte" in stack:
        at["matte_recall"] = _share(stack["matte"], 1, opt.strict)
    for key, values in at.items():
        out[key] = _over_ratios(values, ratios)
        out[f"{key}_plain"] = _over_ratios(values, np.ones(ratios.size))
        out |= {f"{key}@{_word(r)}": values[..., k] for k, r in enumerate(ratios)}
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


def _word(ratio_: float) -> str:
    return f"{ratio_:.4f}".rstrip("0").rstrip(".").replace(".", "_")


def _columns() -> tuple[Column, ...]:
    si = {"si_f1": "SI-F1", "si_precision": "SI precision", "si_recall": "SI recall"}
    errors = {"dbe_accuracy": "DBE accuracy", "dbe_completeness": "DBE completeness"}
    ratios = {**si, "matte_recall": "SI recall of mattes"}
    short = {"si_precision": "SI P", "si_recall": "SI R", "matte_recall": "matte R",
             "dbe_accuracy": "DBE acc", "dbe_completeness": "DBE comp"}  # fmt: skip
    every = {**ratios, **errors}
    return (
        *(
            Column(k, h, short.get(k, h), lower=k in errors, digits=4, quantity=k)
            for k, h in every.items()
        ),
        *(
            Column(f"{k}_plain", f"{h}, not weighted", shown="never", quantity=k)
            for k, h in ratios.items()
        ),
        *(
            Column(f"{k}_pooled", f"{h} of sums", lower=k in errors, shown="never", quantity=k)
            for k, h in every.items()
        ),
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
    columns = (*_columns(), *CURVE_COLUMNS, IMAGES)
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
    ) -> Counts:
        found: Counts = self._named(depth_counts, pred, gt, protocol, opt)
        return found

    def _named(self, function: Any, pred: Prediction, gt: GroundTruth, *more: Any) -> Any:
        """Call it; what the truth lacks is said with its file's name."""
        if pred.depth is None:
            raise DataError(f"{pred.path or pred.image_id}: no depth map, expected one")
        try:
            return function(pred.depth, gt, *more)
        except DataError as error:
            raise type(error)(f"{gt.path or gt.image_id}: {error}") from None

    def scores(
        self, stack: Stack, weights: Weights, protocol: Protocol, opt: DepthOptions
    ) -> dict[str, Any]:
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
        def drawn(depth: NDArray[Any], gt: GroundTruth) -> MatchMaps:
            soft, truth = matched_inputs(prepared(depth, gt, opt), gt, opt)
            return boundary_match_maps(soft, truth, protocol, threshold)

        found: MatchMaps = self._named(drawn, pred, gt)
        return found

    def symptoms(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: DepthOptions
    ) -> Iterator[tuple[str, str, str]]:
        """Inverse depth, another scale, unknown pixels, a truth without steps."""
        yield from depth_symptoms(prepared(np.asarray(pred.depth), gt, opt), opt)
