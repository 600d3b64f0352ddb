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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.errors import DataError
from bsdsbench.loaders.inputs import GroundTruth, Prediction
from bsdsbench.metrics.boundary import boundary_counts, boundary_match_maps
from bsdsbench.metrics.columns import Column, nested
from bsdsbench.metrics.curve_metric import CurveMetric, CurveScore, MatchingMetric, MatchMaps
from bsdsbench.metrics.depth_maps import (
    MEASURES,
    DepthOptions,
    canny_edges,
    dbe_parts,
    dbe_truth,
    depth_symptoms,
    inverse,
    log_steps,
    matched_inputs,
    prepared,
    true_depth,
)
from bsdsbench.protocol.constants import CURVE, MAPS, MATCHING
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import Counts, Stack, count_field, thresholds_field
from bsdsbench.scores.ratios import (
    Weights,
    defined_ratio,
    f_measure,
    ratio,
    weighted_mean,
    weighted_sum,
)

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
_FOUR = ("thresholds", "matched_gt", "total_gt", "matched_pred", "total_pred")


@dataclass(frozen=True, slots=True, eq=False)
class DepthCounts(Counts):
    """Pairs, distances and matched edges of one image; what is not measured is zero.

    thresholds, matched_gt .. total_pred : (T,), of matched edges, or without these of si, where
        they are the ratios and pairs
    ratios : f8 (R,); measured : i8 (4,), 1 for each of `MEASURES` that was made
    strict : i8 (), radius : f8 (), the options of these names
    si     : i8 (R, 4, 3), pairs in both maps, in pred, in gt; directions are left, top, right,
        bottom: which of the two pixels is nearer
    matte  : i8 (R, 4, 2), edges of the matte that are found, and all
    dbe_sum: f8 (2,), distances summed for accuracy, for completeness
    dbe_n  : i8 (3,), how many were summed, and edges of the truth

    Adds over images.
    """

    thresholds: F8 = thresholds_field()
    matched_gt: I8 = count_field(at_most="total_gt")
    total_gt: I8 = count_field()
    matched_pred: I8 = count_field(at_most="total_pred")
    total_pred: I8 = count_field()
    ratios: F8 = count_field("R", np.float64, shared=True)
    measured: I8 = count_field("4", shared=True)
    strict: I8 = count_field("", shared=True)
    radius: F8 = count_field("", np.float64, shared=True)
    si: I8 = count_field("R 4 3")
    matte: I8 = count_field("R 4 2")
    dbe_sum: F8 = count_field("2", np.float64)
    dbe_n: I8 = count_field("3")


def depth_counts(
    pred: NDArray[Any], gt: GroundTruth, protocol: Protocol, at: DepthOptions
) -> DepthCounts:
    """Count one image.

    pred : (H, W) numbers; gt : its `depth`, and where there are `boundaries`, `valid`, `mask`

    Raises ShapeError for unequal sizes, DataError where the truth lacks what a measure needs.
    """
    maps = prepared(pred, gt, at)
    ratios = at.ratio_array()
    si, matte = np.zeros((ratios.size, 4, 3), np.int64), np.zeros((ratios.size, 4, 2), np.int64)
    dbe_sum, dbe_n = np.zeros(2), np.zeros(3, np.int64)
    if "si" in at.measures:
        from bsdsbench.kernels.depth_pairs import ratio_pairs

        si = ratio_pairs(inverse(maps.pred), inverse(true_depth(maps)), maps.valid, ratios)
    if "matte" in at.measures:
        from bsdsbench.kernels.depth_pairs import thinned_pairs

        if maps.matte is None:
            raise DataError("no matte, expected one for the measure matte (depth.gt_holds)")
        matte = thinned_pairs(inverse(maps.pred), maps.matte, ratios)
    if "dbe" in at.measures:
        dbe_sum, dbe_n = dbe_parts(
            canny_edges(maps.raw_pred, at.dbe), dbe_truth(maps, at), maps.valid, at
        )
    if "edges" in at.measures:
        four: dict[str, Any]
        four = boundary_counts(*matched_inputs(maps, gt, at), protocol).arrays()
    else:
        both, found, true = (si[..., k].sum(axis=1) for k in range(3))
        four = dict(zip(_FOUR, (ratios, both, true, both, found), strict=True))
    return DepthCounts(
        **four,
        ratios=ratios,
        measured=np.isin(MEASURES, at.measures).astype(np.int64),
        strict=np.array(int(at.strict)),
        radius=np.array(at.radius),
        si=si,
        matte=matte,
        dbe_sum=dbe_sum,
        dbe_n=dbe_n,
    )


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


def _values(stack: Mapping[str, Any], part: str = "") -> dict[str, F8]:
    """The values of images (N,), or of sums of images (S,), by their keys without `_pooled`."""
    strict, ratios = bool(stack["strict"]), stack["ratios"]
    made, out = dict(zip(MEASURES, stack["measured"], strict=True)), dict[str, F8]()
    at: dict[str, F8] = {}
    if made["si"]:
        at |= _si_at(stack["si"], strict)
    if made["matte"]:
        at["matte_recall"] = _share(stack["matte"], 1, strict)
    for key, values in at.items():
        out[key] = _over_ratios(values, ratios)
        out[f"{key}_plain"] = _over_ratios(values, np.ones(ratios.size))
        out |= {f"{key}@{_word(r)}": values[..., k] for k, r in enumerate(ratios)}
    if made["dbe"]:
        sums, n = stack["dbe_sum"], stack["dbe_n"]
        near, both = (ratio(sums[..., k], n[..., k]) for k in range(2))
        none = n[..., 0] == 0
        # "sharpdepth" counts edges of the truth alone
        both = np.where(none & (n[..., 1] > n[..., 2]), stack["radius"], both)
        for key, value in (("dbe_accuracy", np.where(none, stack["radius"], near)),
                           ("dbe_completeness", both)):  # fmt: skip
            out[key] = np.where(n[..., 2] > 0, value, np.nan)
    return out


def _word(ratio_: float) -> str:
    return f"{ratio_:.4f}".rstrip("0").rstrip(".").replace(".", "_")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class DepthScore(CurveScore):
    """The measures of a data set by their keys in `measures`.

    curve, ods, ois, ap : of matched edges; without these of si over the ratios, of summed pairs,
    and then not among the scores
    """

    measures: Mapping[str, float]
    matched: bool

    def to_mapping(self) -> dict[str, Any]:
        base = CurveScore.to_mapping(self) if self.matched else {"n_images": self.n_images}
        return {**nested(self.measures), **base}


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


class DepthMetric(MatchingMetric):
    """Depth boundaries: SI boundary F1, DBE, and depth edges matched one to one."""

    name = "depth"
    title = "Depth boundaries"
    pred_kinds = ("depth-map",)
    gt_kind = "depth-map"
    counts_type = DepthCounts
    default_protocol = "depth"
    options = DepthOptions
    uses = (*MAPS, *CURVE, *MATCHING)
    columns: ClassVar[tuple[Column, ...]] = (*_columns(), *CurveMetric.columns)
    image_columns: ClassVar[tuple[Column, ...]] = (
        Column("si_f1", "SI-F1"),
        Column("dbe_accuracy", "DBE acc", lower=True, digits=3),
        Column("dbe_completeness", "DBE comp", lower=True, digits=3),
        Column("f", "F"),
    )

    def used(self, protocol: Protocol) -> tuple[str, ...]:
        """None unless edges are matched: the curve of SI has ratios in place of thresholds."""
        return self.uses if self.draws(protocol) else ()

    def draws(self, protocol: Protocol) -> bool:
        return "edges" in self.options_of(protocol).measures

    def count(self, pred: Prediction, gt: GroundTruth, protocol: Protocol) -> DepthCounts:
        return self._named(depth_counts, pred, gt, protocol, self.options_of(protocol))

    def _named(self, function: Any, pred: Prediction, gt: GroundTruth, *more: Any) -> Any:
        """Call it; what the truth lacks is said with its file's name."""
        if pred.depth is None:
            raise DataError(f"{pred.path or pred.image_id}: no depth map, expected one")
        try:
            return function(pred.depth, gt, *more)
        except DataError as error:
            raise type(error)(f"{gt.path or gt.image_id}: {error}") from None

    def scores(self, stack: Stack, weights: Weights, protocol: Protocol) -> dict[str, F8]:
        """Means over images, `*_pooled` of the sums, and those of a curve for matched edges."""
        shared = {n: stack[n] for n, what in DepthCounts.declared().items() if what.shared}
        sums = {n: weighted_sum(weights, a) for n, a in stack.items() if n not in shared}
        found = {key: weighted_mean(weights, value) for key, value in _values(stack).items()}
        for key, value in _values({**sums, **shared}).items():
            if f"{key}_plain" in found or key.startswith("dbe"):
                found[f"{key}_pooled"] = value
        return {**found, **super().scores(stack, weights, protocol)} if _matched(stack) else found

    def result(
        self, values: Mapping[str, float], stack: Stack, ids: Sequence[str], protocol: Protocol
    ) -> DepthScore:
        once = np.ones((1, len(ids)), np.int64)
        curve = {k: float(v[0]) for k, v in super().scores(stack, once, protocol).items()}
        own: Any = {k: v for k, v in values.items() if k not in curve}
        more: Any = {"measures": own, "matched": _matched(stack)}
        return DepthScore.of(curve, stack["thresholds"], self.four(stack), ids, protocol, **more)

    def image_values(self, counts: Any) -> dict[str, float]:
        """The measures that were made, and the best point of the image's curve."""
        nothing = dict.fromkeys((c.key for c in self.image_columns), float("nan"))
        found = {key: float(value) for key, value in _values(counts.arrays()).items()}
        return {**nothing, **found, **super().image_values(counts)}

    def match_maps(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, threshold: float
    ) -> MatchMaps:
        at = self.options_of(protocol)

        def drawn(depth: NDArray[Any], gt: GroundTruth) -> MatchMaps:
            soft, truth = matched_inputs(prepared(depth, gt, at), gt, at)
            return boundary_match_maps(soft, truth, protocol, threshold)

        found: MatchMaps = self._named(drawn, pred, gt)
        return found

    def symptoms(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol
    ) -> Iterator[tuple[str, str, str]]:
        """Inverse depth, another scale, unknown pixels, a truth without steps."""
        at = self.options_of(protocol)
        maps = prepared(np.asarray(pred.depth), gt, at)
        yield from depth_symptoms(maps, at)

    def example(self) -> tuple[Prediction, GroundTruth, Protocol]:
        depth = np.full((12, 16), 4.0)
        depth[3:9, 5:9] = 2.0
        truth = GroundTruth("a", (log_steps(depth) > 0,), depth=depth)
        options = {self.name: DepthOptions(measures=("si", "dbe", "edges"))}
        protocol = Protocol(thresholds=(0.3, 0.5), thin=False, options=options)
        return Prediction("a", depth=depth), truth, protocol


def _matched(stack: Stack) -> bool:
    return bool(stack["measured"][MEASURES.index("edges")])
