"""Depth boundaries: do the steps of a predicted depth map lie where the true steps lie?

Definition. The option `measures` selects some of these.

- "si", scale-invariant boundary F1: two neighbouring pixels form an edge in one of four directions
  if their inverse depths differ by more than a ratio. An edge is right if the other map has it at
  the same pair of pixels. At each ratio, recall is the mean over the directions of common / true
  edges, precision the mean of common / predicted edges.
- "matte": the recall of a matte's outline by the predicted edges. In each run of edges along a row
  (column) only the largest is kept; "si" keeps all of them, so do not compare the two.
- "dbe", depth boundary error in pixels, by Canny edges: accuracy is the distance of predicted edges
  from true ones, completeness the distance of true edges from predicted ones.
- "edges": soft edges of the predicted depth, matched one to one with the true edges as in
  `boundary`.

Conventions. Columns are means over images and over the ratios, weighted by the ratio. In `*_plain`
all ratios have the same weight; `*_pooled` are computed from sums over the images. Everything is
computed in float64. Depths below 1e-6 are taken as 1e-6; a NaN makes no edge. If "edges" is not
among the measures, the curve of a run is the one of "si" over the ratios, from summed pairs. The
options cover the choices in which programs differ.

Source. Bochkovskii et al., Depth Pro, ICLR 2025, boundary_metrics.py ("si", "matte"); Koch et al.,
iBims-1, ECCV workshops 2018, and SharpDepth ("dbe"); Talker et al., Mind the Edge, CVPR 2024,
KITTI-DE and DDAD-DE ("edges").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np
from attrs import frozen

from bsdsbench.arguments import F8, I8, Bool
from bsdsbench.errors import DataError, Setting
from bsdsbench.images import GroundTruth, Map, Prediction, same_shape
from bsdsbench.kernels import depth_pairs
from bsdsbench.loaders.formats.depth_files import matte_mask
from bsdsbench.loaders.reading import binarise
from bsdsbench.metrics.base import (
    IMAGES,
    Arrays,
    Column,
    Counter,
    Metric,
    ScoreTree,
    Symptoms,
    image_means,
)
from bsdsbench.metrics.boundary import CURVE_COLUMNS, boundary_counts
from bsdsbench.metrics.contour.measures import pixel_distances
from bsdsbench.metrics.label_maps import faults_named
from bsdsbench.protocol.fields import POSITIVE, accepting, is_int, one_of, option, some_of
from bsdsbench.protocol.protocol import CURVE, MAPS, MATCHING, Protocol
from bsdsbench.scores.counts import Stack
from bsdsbench.scores.curve import curve_scores
from bsdsbench.scores.ratios import (
    Weights,
    defined_mean,
    defined_ratio,
    f_measure,
    ratio,
    weighted_sum,
)

_MEASURES = ("si", "matte", "dbe", "edges")
_RATIOS = np.linspace(1.05, 1.25, 10)  # of si and matte
NEAREST = 1e-6
RADIUS = 10.0  # pixels, at which distances of DBE are truncated
SIGMA = 2**0.5
# Thresholds of Canny in the two forms of DBE
CANNY = {"ibims": (0.15, 0.3), "sharpdepth": (0.1, 0.2)}


@frozen
class DepthOptions:
    """The content of the files, the measures, and the rules in which programs differ."""

    measures: tuple[str, ...] = option(
        ("si",),
        f"Measures to compute, any of {', '.join(_MEASURES)}.",
        some_of(*_MEASURES, least=1),
        caption=lambda o: ", ".join(o.measures),
    )
    pred_holds: str = option(
        "depth",
        'Predictions hold "depth", or "inverse" depth (disparity).',
        one_of("depth", "inverse"),
        caption={"inverse": "predictions are inverse depth"},
    )
    gt_holds: str = option(
        "depth",
        'An annotation of one map holds "depth", "inverse" depth, "edges" or a "matte".',
        one_of("depth", "inverse", "edges", "matte"),
        caption={"inverse": "truth is inverse depth"},
    )
    pred_scale: float = option(
        1.0, "Predicted values are divided by this number.", POSITIVE, caption="predictions / {:g}"
    )
    gt_scale: float = option(
        1.0, "Annotated values are divided by this number.", POSITIVE, caption="truth / {:g}"
    )
    align: str = option(
        "none",
        'How each prediction is fitted to the truth by least squares: "none"; '
        '"scale" or "scale-shift" of depth; "disparity-scale" or '
        '"disparity-scale-shift" of inverse depth.',
        one_of("none", "scale", "scale-shift", "disparity-scale", "disparity-scale-shift"),
        caption=lambda o: f"alignment {o.align}",
    )
    invalid: str = option(
        "truth",
        "Which invalid pixels (NaN, infinite, 0 or less, masked out) are left out: "
        'those of the "truth", those of either map ("both"), or "none".',
        one_of("truth", "both", "none"),
        caption=lambda o: f"invalid pixels: {o.invalid}",
    )
    strict: bool = option(
        False,
        "Treat empty input as the published programs do: a direction or an image without edges "
        "counts 0 instead of being left out of the means, and in DBE an invalid pixel has "
        "distance 0 from the truth instead of being left out.",
        caption={
            True: "as the programs where nothing is there",
            False: "empty directions left out",
        },
    )
    dbe: str = option(
        "ibims",
        'The form of DBE. "ibims": Canny at 0.15 and .3 against the true edges, '
        'distances both ways, truncated at 10 pixels. "sharpdepth": Canny at .1 and '
        ".2 on depth and inverse depth of both maps, completeness one way and not "
        "truncated.",
        one_of(*CANNY),
        caption=lambda o: f"DBE {o.dbe}" if "dbe" in o.measures else "",
    )
    gt_edges: str = option(
        "annotated",
        'True edges for matching and for DBE\'s form ibims: "annotated", or "canny" on true depth.',
        one_of("annotated", "canny"),
        caption={"canny": "true edges by Canny"},
    )
    pred_edges: str = option(
        "log-depth",
        'Soft edges of a prediction: "log-depth", |log depth difference| to the '
        'right or the lower neighbour, the larger one, at most 1; or "canny" as in '
        "DBE.",
        one_of("log-depth", "canny"),
        caption=lambda o: f"edges by {o.pred_edges}" if "edges" in o.measures else "",
    )
    crop: tuple[int, ...] = option(
        (),
        "Part of the image to evaluate: first row, end row, first column, end column; default: "
        "all.",
        accepting(
            lambda v: (
                len(v) in (0, 4)
                and all(is_int(n) and n >= 0 for n in v)
                and (v == () or (v[0] < v[1] and v[2] < v[3]))
            ),
            "first row, end, first column and end, or none",
        ),
        caption=lambda o: (
            f"rows {o.crop[0]}-{o.crop[1]}, columns {o.crop[2]}-{o.crop[3]}" if o.crop else ""
        ),
    )


class DepthMaps(NamedTuple):
    """The maps of one image after conversion, scaling, cropping and alignment, all (H, W).

    `raw_pred` and `raw_gt` are the depths that Canny works on, with NaN for unknown ones.
    """

    pred: F8
    raw_pred: F8
    gt: F8 | None
    raw_gt: F8 | None
    valid: Bool
    edges: tuple[Bool, ...]
    matte: Bool | None

    def true_edges(self, opt: DepthOptions) -> tuple[Bool, ...]:
        """Return the annotated edges, or Canny edges of the true depth, as `gt_edges` says.

        Raises DataError if the ground truth lacks them.
        """
        if opt.gt_edges == "canny":
            return (_canny_edges(wanted(self.raw_gt, "depth"), opt.dbe),)
        return wanted(self.edges or None, "edges")


_Part = TypeVar("_Part")  # of an image


def wanted(part: _Part | None, what: str) -> _Part:
    """Return a part of the ground truth. Raises DataError if it is missing; `what` names it."""
    if part is None:
        raise DataError(f"ground truth: no {what}, expected {what} for these depth.measures")
    return part


def prepared(pred: Map, gt: GroundTruth, opt: DepthOptions) -> DepthMaps:
    """Convert, scale, crop and align the maps of one image as the options say."""
    same_shape(pred.shape, gt.shape)
    rows, cols = pred.shape
    top, end, left, right = opt.crop or (0, rows, 0, cols)
    if end > rows or right > cols:
        raise DataError(f"prediction: {rows} x {cols}, expected the crop {opt.crop} in it")
    cut = slice(top, end), slice(left, right)
    edges = tuple(np.asarray(b[cut]) != 0 for b in gt.boundaries)
    matte, given = (gt.parts[k][cut] if k in gt.parts else None for k in ("mask", "depth"))
    if given is not None and opt.gt_holds == "edges" and not edges:
        edges, given = (binarise(given, (127, 0, 0), "edges"),), None
    if given is not None and opt.gt_holds == "matte" and matte is None:
        matte, given = matte_mask(given), None
    depth, is_number, known = _depth(pred[cut], opt.pred_holds, opt.pred_scale)
    truth: Any = None
    raw_truth, valid = truth, np.ones(depth.shape, bool)
    if given is not None:
        truth, gt_is_number, valid = _depth(given, opt.gt_holds, opt.gt_scale)
        raw_truth = np.where(gt_is_number, truth, np.nan)
    elif opt.align != "none":
        raise DataError(f"ground truth: no depth, expected one to align by ({opt.align})")
    if "valid" in gt.parts:
        valid = valid & (gt.valid[cut] != 0)
    if given is not None:
        depth = _aligned(depth, truth, known & valid, opt.align)
        if opt.invalid != "none":
            raw_truth[~valid] = np.nan
    if opt.invalid != "truth":
        valid = valid & known if opt.invalid == "both" else np.ones(depth.shape, bool)
    return DepthMaps(
        depth, np.where(is_number, depth, np.nan), truth, raw_truth, valid, edges, matte
    )


class _Depth(NamedTuple):
    """Depths (H, W), a mask of finite non-zero values, and a mask of values above 0."""

    depth: F8
    is_number: Bool
    known: Bool


def _depth(values: Map, holds: str, scale: float) -> _Depth:
    """Convert a map to depths; `holds` is "depth" or "inverse"."""
    given = values.astype(np.float64) / scale
    is_number = np.isfinite(given) & (given != 0)
    depth = inverse(given) if holds == "inverse" else given
    return _Depth(depth, is_number, is_number & (given > 0))


def _aligned(depth: F8, truth: F8, known: Bool, align: str) -> F8:
    """Fit the prediction to the truth by least squares over the known pixels.

    A constant prediction is only scaled; without known pixels it stays as it is.
    """
    if align == "none" or not known.any():
        return depth
    in_disparity = align.startswith("disparity")
    x, y = (inverse(d) if in_disparity else d for d in (depth, truth))
    a, b = x[known], y[known]
    middle = a.mean() if align.endswith("shift") else 0.0
    spread = np.sum((a - middle) * (a - middle))
    if middle and spread > 0:
        factor = np.sum((a - middle) * b) / spread
        shift = b.mean() - factor * middle
    else:
        factor, shift = np.sum(a * b) / np.sum(a * a), 0.0
    fitted = factor * x + shift
    return inverse(fitted) if in_disparity else fitted


def inverse(depth: F8) -> F8:
    """Return 1 / depth as a C-ordered array; depths below 1e-6 count as 1e-6, NaN stays."""
    return np.ascontiguousarray(1 / np.maximum(depth, NEAREST))


def _canny_edges(depth: F8, form: str) -> Bool:
    """Find the Canny edges of a depth map and, in the form "sharpdepth", of its inverse too.

    NaN makes no edges.
    """
    from skimage.feature import canny

    with np.errstate(divide="ignore", invalid="ignore"):
        maps = [depth] if form == "ibims" else [depth, 1 / depth]
    edges = [canny(_unit(m), SIGMA, *CANNY[form], mode="constant") for m in maps]
    return np.logical_or.reduce(edges)


def _unit(values: F8) -> F8:
    """Stretch the finite values to 0 .. 1. A constant map becomes NaN, and so has no edges."""
    values = np.where(np.isfinite(values), values, np.nan)
    low, high = np.fmin.reduce(values, axis=None), np.fmax.reduce(values, axis=None)
    if not high > low:
        return np.full(values.shape, np.nan)
    return (values - low) / (high - low)


class DbeParts(NamedTuple):
    """The counts `dbe_sum`, f8 (2,), and `dbe_n`, i8 (3,), see `DepthMetric.count`."""

    sums: F8
    n: I8


def dbe_parts(pred: Bool, gt: Bool, valid: Bool, opt: DepthOptions) -> DbeParts:
    """Sum the distances between two edge maps, from which depth boundary errors are computed."""
    if not opt.strict:
        pred, gt = pred & valid, gt & valid
    to_gt, to_pred = pixel_distances(pred, gt), pixel_distances(gt, pred)
    counted = valid[pred] if opt.strict else np.ones(to_gt.size, bool)
    near = (to_gt < RADIUS) & counted
    if opt.dbe == "ibims":
        parts = np.minimum(np.where(counted, to_gt, 0.0), RADIUS)
        parts = np.concatenate([parts, np.minimum(to_pred, RADIUS)])
    else:
        parts = np.minimum(to_pred, np.hypot(*pred.shape))
    numbers = np.array([np.count_nonzero(near), parts.size, to_pred.size])
    return DbeParts(np.array([to_gt[near].sum(), parts.sum()]), numbers)


class MatchedInputs(NamedTuple):
    """Soft predicted edges and true edges, the input of `boundary_counts`."""

    pred: Prediction
    gt: GroundTruth


def _matched_inputs(maps: DepthMaps, gt: GroundTruth, opt: DepthOptions) -> MatchedInputs:
    """Build the input of `boundary_counts` from the valid pixels: soft edges and true edges."""
    if opt.pred_edges == "canny":
        soft = _canny_edges(maps.raw_pred, opt.dbe).astype(np.float64)
    else:
        soft = log_steps(np.where(maps.valid, maps.pred, np.nan))
    drawn = tuple(edges & maps.valid for edges in maps.true_edges(opt))
    pred = Prediction(gt.image_id, soft=soft * maps.valid)
    return MatchedInputs(pred, GroundTruth(gt.image_id, drawn, path=gt.path))


def log_steps(depth: F8) -> F8:
    """Compute each pixel's larger step of log depth to the right or the lower neighbour.

    Steps above 1 become 1; the result is (H, W).

    Examples
    --------
    >>> log_steps(np.array([[1.0, 1.0, np.e**0.5]])).tolist()
    [[0.0, 0.5, 0.0]]
    """
    level, out = np.log(np.maximum(depth, NEAREST)), np.zeros(depth.shape)
    with np.errstate(invalid="ignore"):
        for part, axis in ((out[:, :-1], 1), (out[:-1], 0)):
            np.fmax(part, np.abs(np.diff(level, axis=axis)), out=part)
    return np.minimum(out, 1.0)


def _share(pairs: Map, side: int, strict: bool) -> F8:
    """Average common / all pairs of one side over the four directions.

    `pairs` is (..., R, 4, 3) and `side` the column of the denominator; the result is (..., R).
    """
    if strict:
        return ratio(pairs[..., 0], pairs[..., side]).mean(axis=-1)
    return defined_mean(defined_ratio(pairs[..., 0], pairs[..., side]))


def _values(stack: Mapping[str, Any], opt: DepthOptions) -> dict[str, F8]:
    """Compute the values (N,) of N images, or of N sums of images, from their counts (N, ...)."""
    by_key, per_ratio = {}, {}  # of the latter each is (N, R)
    if "si" in stack:
        recall, precision = (_share(stack["si"], side, opt.strict) for side in (2, 1))
        f = f_measure(np.nan_to_num(precision), np.nan_to_num(recall))
        per_ratio["si_f1"] = np.where(np.isnan(recall), np.nan, f)  # the truth has no edge
        per_ratio |= {"si_precision": precision, "si_recall": recall}
    if "matte" in stack:
        per_ratio["matte_recall"] = _share(stack["matte"], 1, opt.strict)
    for key, values in per_ratio.items():
        defined, filled = ~np.isnan(values), np.nan_to_num(values)
        for name, weights in ((key, _RATIOS), (f"{key}_plain", np.ones(_RATIOS.size))):
            total = (defined * weights).sum(axis=-1)
            by_key[name] = defined_ratio((filled * weights).sum(axis=-1), total)
        for k, r in enumerate(_RATIOS):
            word = f"{r:.4f}".rstrip("0").rstrip(".").replace(".", "_")
            by_key[f"{key}@{word}"] = values[..., k]
    if "dbe_n" in stack:
        sums, n = stack["dbe_sum"], stack["dbe_n"]
        none = n[..., 0] == 0
        for k, key in enumerate(("dbe_accuracy", "dbe_completeness")):
            value = np.where(none, RADIUS, ratio(sums[..., k], n[..., k]))
            by_key[key] = np.where(n[..., 2] > 0, value, np.nan)
    return by_key


_MEASURED = (
    ("si_f1", "SI-F1", "SI-F1"),
    ("si_precision", "SI precision", "SI P"),
    ("si_recall", "SI recall", "SI R"),
    ("matte_recall", "SI recall of mattes", "matte R"),
    ("dbe_accuracy", "DBE accuracy", "DBE acc"),
    ("dbe_completeness", "DBE completeness", "DBE comp"),
)


class DepthMetric(Metric[DepthOptions]):
    """Depth boundaries: SI boundary F1, DBE, and depth edges matched one to one."""

    name = "depth"
    title = "Depth boundaries"
    version = 2
    reads = "depth"
    default_protocol = "depth"
    options = DepthOptions
    void = True
    uses = (*MAPS, *CURVE, *MATCHING)
    curved = cuts_at_thresholds = has_errors = True
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
        """Return the fields that matching needs, none unless edges are matched."""
        return self.uses if self.has_curve(opt) else ()

    def has_curve(self, opt: DepthOptions) -> bool:
        return "edges" in opt.measures

    def count(
        self,
        pred: Prediction,
        gt: GroundTruth,
        protocol: Protocol,
        opt: DepthOptions,
        counter: Counter = boundary_counts,
    ) -> Arrays:
        """Count the pairs, distances and matched edges of one image for the chosen measures.

        si : i8 (R, 4, 3), pairs common to both maps, in pred, in gt at each ratio; the directions
            left, top, right, bottom name the nearer of the two pixels
        matte : i8 (R, 4, 2), edges of the matte that are found, and all
        dbe_sum : f8 (2,), sums of distances for accuracy and for completeness
        dbe_n : i8 (3,), the number of distances in each sum, and the number of true edge pixels
        thresholds, matches : f8 (T,), i8 (T, 4), matched edges as in `boundary_counts`
        """
        counts: dict[str, Any] = {}
        with faults_named(pred, gt):
            maps = prepared(pred.depth, gt, opt)
            if "si" in opt.measures:
                depth = inverse(maps.pred), inverse(wanted(maps.gt, "depth"))
                counts["si"] = depth_pairs.ratio_pairs(*depth, maps.valid, _RATIOS)
            if "matte" in opt.measures:
                matte = wanted(maps.matte, "matte")
                counts["matte"] = depth_pairs.count_hit_mask_edges(
                    inverse(maps.pred), matte, _RATIOS
                )
            if "dbe" in opt.measures:
                edges = _canny_edges(maps.raw_pred, opt.dbe)
                if opt.dbe == "sharpdepth":
                    truth = _canny_edges(wanted(maps.raw_gt, "depth"), opt.dbe)
                else:
                    truth = np.logical_or.reduce(maps.true_edges(opt))
                counts["dbe_sum"], counts["dbe_n"] = dbe_parts(edges, truth, maps.valid, opt)
            if "edges" in opt.measures:
                counts |= counter(*_matched_inputs(maps, gt, opt), protocol)
        return counts

    def scores(
        self, stack: Stack, weights: Weights, protocol: Protocol, opt: DepthOptions
    ) -> ScoreTree:
        """Return means over images, `*_pooled` scores of sums, and for edges the curve's scores."""
        sums = {n: weighted_sum(weights, a) for n, a in stack.items() if n not in self.shared}
        scores = image_means(weights, _values(stack, opt))
        for key, value in _values(sums, opt).items():
            if f"{key}_plain" in scores or key.startswith("dbe"):
                scores[f"{key}_pooled"] = value
        if self.has_curve(opt):
            scores |= curve_scores(stack["thresholds"], stack["matches"], weights, protocol)
        return scores

    def symptoms(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: DepthOptions
    ) -> Symptoms:
        """Yield (code, problem, remedy) for inverse depth, a different scale or unknown pixels."""
        maps = prepared(pred.depth, gt, opt)
        unknown = np.isnan(maps.raw_pred) & maps.valid
        if unknown.mean() > 0.01:
            problem = "over 1 % of the prediction is 0, NaN or infinite where the truth is known"
            yield "unknown", problem, Setting("depth.invalid", "both", "leaves it out")
        both = maps.valid & ~unknown
        if maps.gt is None or not both.any():
            return
        a, b = (np.log(inverse(m[both])) for m in (maps.pred, maps.gt))
        if ((a - a.mean()) * (b - b.mean())).mean() < -0.3 * a.std() * b.std():
            other = "depth" if opt.pred_holds == "inverse" else "inverse"
            fix = Setting("depth.pred_holds", other)
            yield "inverse", "depth decreases where the true depth increases", fix
        elif abs(np.median(a - b)) > np.log(20):
            problem = "depths have another scale than the truth"
            yield "scale", problem, Setting("depth.align", "scale", "estimates it; si needs none")
