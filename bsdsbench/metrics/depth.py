"""Depth boundaries: do the depth discontinuities of a prediction lie where the true ones lie?

Definition. The option `measures` selects any of these.

- "si", scale-invariant boundary F1: two neighbouring pixels form an edge in one of four directions
  if the ratio of their inverse depths exceeds a threshold ("ratio"). An edge is correct if the
  other map has the same edge at the same pair of pixels.
- "matte": the recall of a matte's outline by the predicted edges. In each run of edges along a row
  or column only the strongest is kept; "si" keeps all, so the two recalls are not comparable.
- "dbe", depth boundary error in pixels: the mean distance of predicted Canny edges from true edges
  (accuracy), and of true edges from predicted ones (completeness).
- "edges": soft edges of the predicted depth, matched one to one with the true edges as in
  `boundary`.

Conventions. Columns are means over images, and over the ratios weighted by the ratio (`*_plain`:
not weighted); `*_pooled` are computed from sums over the images. Depths below 1e-6 are set to 1e-6.
NaN pixels form no edge. The options cover the choices on which published programs differ.

Source. Bochkovskii et al., Depth Pro, ICLR 2025, boundary_metrics.py ("si", "matte"); Koch et al.,
iBims-1, ECCV workshops 2018, and SharpDepth ("dbe"); Talker et al., Mind the Edge, CVPR 2024,
KITTI-DE and DDAD-DE ("edges").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from bsdsbench.arguments import F8, I8, Bool
from bsdsbench.errors import Setting
from bsdsbench.images import GroundTruth, Map, Prediction
from bsdsbench.kernels import depth_pairs
from bsdsbench.metrics.base import IMAGES, Arrays, Column, Counter, ScoreTree, ValuesMetric
from bsdsbench.metrics.boundary import CURVE_COLUMNS, boundary_counts
from bsdsbench.metrics.contour.outlines import pixel_distances
from bsdsbench.metrics.depth_maps import (
    NEAREST,
    DepthOptions,
    canny_edges,
    inverse,
    prepare_depth_maps,
    require,
)
from bsdsbench.metrics.optional import Symptoms
from bsdsbench.protocol.protocol import CURVE, MAPS, MATCHING, Protocol
from bsdsbench.scores.counts import Stack
from bsdsbench.scores.curve import curve_scores
from bsdsbench.scores.ratios import Weights, defined_mean, defined_ratio, f_measure, ratio

_DEPTH_RATIOS = np.linspace(1.05, 1.25, 10)  # thresholds at which neighbours have an edge (SI)
RADIUS = 10.0  # distance in pixels at which DBE is truncated
# `symptoms` reports a map if more than this fraction of its pixels has no depth, if its correlation
# with the true depth is below this, or if the scales differ by more than this factor
_UNKNOWN_SHARE, _INVERSE_CORRELATION, _OTHER_SCALE = 0.01, -0.3, 20


class DbeParts(NamedTuple):
    """Sums of edge distances in pixels, and the number of distances in each sum."""

    sums: F8  # (2,): [accuracy, completeness]
    n: I8  # (3,): [distances in sums[0], distances in sums[1], ground-truth edge pixels]


def dbe_parts(pred: Bool, gt: Bool, valid: Bool, opt: DepthOptions) -> DbeParts:
    """Sum the distances between predicted and ground-truth edges for the depth boundary error.

    Accuracy uses the distance from each predicted edge pixel to the nearest ground-truth edge
    pixel, and ignores distances of RADIUS or more. Completeness depends on `opt.dbe`:

    - "ibims": distances in both directions, from each edge pixel of one map to the nearest edge
      pixel of the other, capped at RADIUS
    - "sharpdepth": distances from each ground-truth edge pixel to the nearest predicted one,
      capped at the image diagonal

    Parameters
    ----------
    pred, gt : array
        bool (H, W), the predicted and the ground-truth edges.
    valid : array
        bool (H, W). Edge pixels where it is False are removed from both maps. With `opt.strict`,
        they are kept; of these, predicted ones are ignored by accuracy, and count as distance 0 in
        the completeness of "ibims".
    opt : DepthOptions
        Its fields `dbe` and `strict` are used.

    Returns
    -------
    DbeParts
        The sums and the numbers of distances.
    """
    if not opt.strict:
        pred, gt = pred & valid, gt & valid
    # Distances from each edge pixel of one map to the nearest edge pixel of the other; inf if none
    to_gt, to_pred = pixel_distances(pred, gt), pixel_distances(gt, pred)
    is_valid = valid[pred]  # of each predicted edge pixel
    is_near = (to_gt < RADIUS) & is_valid
    if opt.dbe == "ibims":
        from_pred = np.minimum(np.where(is_valid, to_gt, 0.0), RADIUS)
        distances = np.concatenate([from_pred, np.minimum(to_pred, RADIUS)])
    else:
        distances = np.minimum(to_pred, np.hypot(*pred.shape))
    n = np.array([np.count_nonzero(is_near), distances.size, to_pred.size])
    return DbeParts(np.array([to_gt[is_near].sum(), distances.sum()]), n)


def log_steps(depth: F8) -> F8:
    """Compute the soft edges of a depth map (H, W): the log depth difference between neighbours.

    Returns float64 (H, W), the larger of each pixel's absolute differences from its right and its
    lower neighbour, capped at 1. Depths below 1e-6 are set to 1e-6. A difference from NaN is 0.

    Examples
    --------
    >>> log_steps(np.array([[1.0, 1.0, np.e**0.5]])).tolist()
    [[0.0, 0.5, 0.0]]
    """
    log_depth = np.log(np.maximum(depth, NEAREST))
    steps = np.zeros(depth.shape)
    with np.errstate(invalid="ignore"):
        steps[:, :-1] = np.fmax(steps[:, :-1], np.abs(np.diff(log_depth, axis=1)))
        steps[:-1] = np.fmax(steps[:-1], np.abs(np.diff(log_depth, axis=0)))
    return np.minimum(steps, 1.0)


def _mean_share(in_both: Map, in_map: Map, strict: bool) -> F8:
    """Compute the fraction of one map's edges that the other map has too, (..., R) for R ratios.

    This is the mean over four directions. If `strict` is True, a direction without edges counts as
    0. Otherwise it is left out, and the mean is NaN if no direction has edges.

    in_both, in_map (..., R, 4): number of edges that both maps have, and of all edges of the one
        map, at each ratio (threshold) in each direction.
    """
    if strict:
        return ratio(in_both, in_map).mean(axis=-1)
    return defined_mean(defined_ratio(in_both, in_map))


_SHARES = (
    Column("si_f1", "SI-F1", quantity="si_f1"),
    Column("si_precision", "SI precision", "SI P", quantity="si_precision"),
    Column("si_recall", "SI recall", "SI R", quantity="si_recall"),
    Column("matte_recall", "SI recall of mattes", "matte R", quantity="matte_recall"),
)
_ERRORS = (
    Column("dbe_accuracy", "DBE accuracy", "DBE acc", lower=True, quantity="dbe_accuracy"),
    Column(
        "dbe_completeness", "DBE completeness", "DBE comp", lower=True, quantity="dbe_completeness"
    ),
)


def _other_means(columns: Sequence[Column], key: str, words: str) -> Iterator[Column]:
    """Yield a column, hidden in tables, for another mean of each measure (key: MEASURE_`key`)."""
    for c in columns:
        name, title = f"{c.key}_{key}", f"{c.heading}{words}"
        yield Column(name, title, lower=c.lower, shown="never", quantity=c.key)


class DepthMetric(ValuesMetric[DepthOptions]):
    """Depth boundaries: SI boundary F1, DBE, and depth edges matched one to one."""

    name, title, reads, options = "depth", "Depth boundaries", "depth", DepthOptions
    default_protocol, version, void = "depth", 2, True
    uses = (*MAPS, *CURVE, *MATCHING)
    curved = cuts_at_thresholds = has_errors = True
    summed = ("si", "matte", "dbe_sum", "dbe_n")
    columns = (
        *_SHARES,
        *_ERRORS,
        *_other_means(_SHARES, "plain", ", not weighted"),
        *_other_means((*_SHARES, *_ERRORS), "pooled", " of sums"),
        *CURVE_COLUMNS,
        IMAGES,
    )
    image_columns = (
        Column("si_f1", "SI-F1"),
        Column("dbe_accuracy", "DBE acc", lower=True, digits=3),
        Column("dbe_completeness", "DBE comp", lower=True, digits=3),
        Column("ods", "F"),
    )

    def count(
        self,
        pred: Prediction,
        gt: GroundTruth,
        protocol: Protocol,
        opt: DepthOptions,
        counter: Counter = boundary_counts,
    ) -> Arrays:
        """Count the edges of one image for the measures in `opt.measures`.

        In the first two counts, an edge of a depth map is a pair of neighbouring pixels whose
        inverse depths differ by more than a ratio, one of R.

        si : int64 (R, 4, 3), the edges in both maps, in the prediction, and in the ground truth.
            Axis 1 is the position of the nearer pixel in the pair (left, top, right, bottom).
        matte : int64 (R, 4, 2), the pairs across the outline of the annotated object (matte) that
            are predicted edges, and all of them. Axis 1 is the position of the pixel inside.
        dbe_sum, dbe_n : float64 (2,), int64 (3,), the `DbeParts`
        thresholds, matches : for "edges", float64 (T,) and int64 (T, 4), the counts of `counter`,
            which is `boundary_counts` or a replacement that returns further arrays
        """
        counts: dict[str, Any] = {}
        # Maps of depth, cropped and aligned. `require` raises if a needed annotation is missing
        maps = prepare_depth_maps(pred.depth, gt, opt)
        inverse_pred = inverse(maps.pred)
        if "si" in opt.measures:
            inverse_gt = inverse(require(maps.gt, "depth"))
            counts["si"] = depth_pairs.ratio_pairs(
                inverse_pred, inverse_gt, maps.valid, _DEPTH_RATIOS
            )
        if "matte" in opt.measures:
            counts["matte"] = depth_pairs.count_hit_mask_edges(
                inverse_pred, require(maps.matte, "matte"), _DEPTH_RATIOS
            )
        # Canny's detector takes the `raw` maps, in which pixels without a depth are NaN
        if "dbe" in opt.measures:
            pred_edges = canny_edges(maps.raw_pred, opt.dbe)
            if opt.dbe == "sharpdepth":  # this program never uses annotated edges
                gt_edges = canny_edges(require(maps.raw_gt, "depth"), opt.dbe)
            else:  # those of any annotator
                gt_edges = np.logical_or.reduce(maps.true_edges(opt))
            dbe = dbe_parts(pred_edges, gt_edges, maps.valid, opt)
            counts["dbe_sum"], counts["dbe_n"] = dbe.sums, dbe.n
        if opt.matches_edges:  # one to one, as `boundary` does, where pixels are valid
            if opt.pred_edges == "canny":
                soft = canny_edges(maps.raw_pred, opt.dbe).astype(np.float64)
            else:  # the strength of an edge is the difference of log depths
                soft = log_steps(np.where(maps.valid, maps.pred, np.nan))
            drawn = tuple(edges & maps.valid for edges in maps.true_edges(opt))
            soft_edges = Prediction(gt.image_id, soft=soft * maps.valid)
            truth = GroundTruth(gt.image_id, drawn, path=gt.path)
            counts |= counter(soft_edges, truth, protocol)
        return counts

    def values(self, counts: Stack, opt: DepthOptions) -> dict[str, F8]:
        """Compute the measures of N images, (N,) each; undefined values are NaN.

        si_f1, si_precision, si_recall, matte_recall : means over the ratios (thresholds), weighted
            by the ratio. Without ground-truth edges, F is NaN, or 0 if `opt.strict` is True.
        si_f1_plain, si_f1@1_05 and so on : for each of these four, the mean with equal weights, and
            the value at every single ratio, here 1.05
        dbe_accuracy, dbe_completeness : the depth boundary errors in pixels
        """
        shares: dict[str, F8] = {}  # at each of R ratios, (N, R)
        if "si" in counts:
            in_both, in_pred, in_gt = np.moveaxis(counts["si"], -1, 0)
            recall = _mean_share(in_both, in_gt, opt.strict)
            precision = _mean_share(in_both, in_pred, opt.strict)
            f = f_measure(np.nan_to_num(precision), np.nan_to_num(recall))
            shares["si_f1"] = np.where(np.isnan(recall), np.nan, f)
            shares["si_precision"], shares["si_recall"] = precision, recall
        if "matte" in counts:
            in_both, in_gt = np.moveaxis(counts["matte"], -1, 0)
            shares["matte_recall"] = _mean_share(in_both, in_gt, opt.strict)
        values: dict[str, F8] = {}
        for key, share in shares.items():
            # Undefined values have no weight
            weights = np.where(np.isnan(share), 0.0, _DEPTH_RATIOS)
            total = (np.nan_to_num(share) * weights).sum(axis=-1)
            values[key] = defined_ratio(total, weights.sum(axis=-1))
            values[f"{key}_plain"] = defined_mean(share)
            for k, limit in enumerate(_DEPTH_RATIOS):
                # Keys have "_" instead of the decimal point: si_f1@1_05 is the value at ratio 1.05
                digits = f"{limit:.4f}".rstrip("0").rstrip(".").replace(".", "_")
                values[f"{key}@{digits}"] = share[..., k]
        if "dbe_n" in counts:
            n_near, n_distances, n_true = counts["dbe_n"].T
            means = ratio(counts["dbe_sum"].T, np.stack([n_near, n_distances]))  # (2, N)
            # RADIUS if no predicted edge is within it of a true edge, NaN without true edges
            means = np.where(n_true > 0, np.where(n_near == 0, RADIUS, means), np.nan)
            values["dbe_accuracy"], values["dbe_completeness"] = means
        return values

    def pooled(self, sums: Stack, opt: DepthOptions) -> dict[str, F8]:
        """Compute si_f1_pooled and so on: the measures of `values`, from counts of all images."""
        values = self.values(sums, opt)
        return {f"{c.key}_pooled": values[c.key] for c in (*_SHARES, *_ERRORS) if c.key in values}

    def used(self, opt: DepthOptions) -> tuple[str, ...]:
        """Return the names of the protocol's fields that affect the scores; none without edges."""
        return self.uses if opt.matches_edges else ()

    def scores(
        self, stack: Stack, weights: Weights, protocol: Protocol, opt: DepthOptions
    ) -> ScoreTree:
        """Compute the scores of the measures; those of "edges" are of a precision-recall curve."""
        scores = dict(super().scores(stack, weights, protocol, opt))
        if opt.matches_edges:
            scores |= curve_scores(stack["thresholds"], stack["matches"], weights, protocol)
        return scores

    def symptoms(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: DepthOptions
    ) -> Symptoms:
        """Yield (code, problem, fix) for each sign that the options do not fit the maps.

        "unknown" is of pixels that are evaluated; the others need true depth. A prediction that
        begins at 0 and ends at 1 or at white was probably stretched to its own range, which changes
        the ratios of depths ("stretched").
        """
        maps = prepare_depth_maps(pred.depth, gt, opt)
        is_unknown = ~maps.known & maps.valid
        if is_unknown.mean() > _UNKNOWN_SHARE:
            problem = "over 1 % of the predicted depths are 0, negative or not finite"
            yield "unknown", problem, Setting("depth.invalid", "both", "leaves it out")
        is_known = maps.valid & ~is_unknown
        if maps.gt is None or not is_known.any():
            return
        values = pred.depth
        is_stretched = values.min() == 0 and values.max() in (1, 255, 65535)
        if is_stretched and not opt.align.endswith("shift"):
            problem = f"the prediction goes from 0 to {values.max():g}: stretched to its range?"
            fix = Setting("depth.align", "scale-shift", "estimates the scale and the shift")
            yield "stretched", problem, fix
        # The maps correlate negatively if one of them is inverted, such as inverse depth
        log_pred = np.log(inverse(maps.pred[is_known]))
        log_gt = np.log(inverse(maps.gt[is_known]))
        covariance = ((log_pred - log_pred.mean()) * (log_gt - log_gt.mean())).mean()
        if covariance < _INVERSE_CORRELATION * log_pred.std() * log_gt.std():
            other = "depth" if opt.pred_holds == "inverse" else "inverse"
            fix = Setting("depth.pred_holds", other)
            yield "inverse", "depth decreases where the true depth increases", fix
        elif abs(np.median(log_pred - log_gt)) > np.log(_OTHER_SCALE):
            problem = "depths have a different scale from the truth"
            yield "scale", problem, Setting("depth.align", "scale", "estimates it; si needs none")
