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

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from attrs import frozen

from bsdsbench.arguments import Bools, Floats, Ints
from bsdsbench.errors import DataError, Setting
from bsdsbench.images import GroundTruth, Map, Prediction, same_shape
from bsdsbench.kernels import depth_pairs
from bsdsbench.loaders.formats.depth_files import binarise_matte
from bsdsbench.loaders.reading import binarise
from bsdsbench.metrics.base import IMAGES, Arrays, Column, Counter, ScoreTree, ValuesMetric
from bsdsbench.metrics.boundary import CURVE_COLUMNS, boundary_counts
from bsdsbench.metrics.contour.outlines import pixel_distances
from bsdsbench.metrics.optional import Symptoms
from bsdsbench.protocol.fields import POSITIVE, accepting, is_int, one_of, option, some_of
from bsdsbench.protocol.protocol import CURVE, MAPS, MATCHING, Protocol
from bsdsbench.scores.counts import Stack, key_at
from bsdsbench.scores.curve import curve_scores
from bsdsbench.scores.ratios import Weights, defined_mean, defined_ratio, f_measure, ratio

_RATIOS = np.linspace(1.05, 1.25, 10)  # thresholds at which neighbours have an edge (SI)
RADIUS = 10.0  # distance in pixels at which DBE is truncated
# `symptoms` reports a map if more than this fraction of its pixels has no depth, if its correlation
# with the true depth is below this, or if the scales differ by more than this factor
_UNKNOWN_SHARE, _INVERSE_CORRELATION, _OTHER_SCALE = 0.01, -0.3, 20
_MEASURES = ("si", "matte", "dbe", "edges")
_SMALLEST_DEPTH = 1e-6  # smaller depths are set to this
_SIGMA = 2**0.5  # of the Gaussian of the Canny detector, in pixels
# (low, high) thresholds of the Canny detector in the two published implementations of DBE
_CANNY = {"ibims": (0.15, 0.3), "sharpdepth": (0.1, 0.2)}


def _is_crop(value: tuple[int, ...]) -> bool:
    """Return True for () (no crop) or a nonempty (first row, end row, first column, end column)."""
    if len(value) != 4 or not all(is_int(n) and n >= 0 for n in value):
        return value == ()
    return bool(value[0] < value[1] and value[2] < value[3])


@frozen
class DepthOptions:
    """The content of the files, the measures, and the rules on which published programs differ."""

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
        'How each prediction is fitted to the truth by least squares: "none"; "scale" or '
        '"scale-shift" of depth; "disparity-scale" or "disparity-scale-shift" of inverse depth.',
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
        "counts 0 instead of being left out of the means, and in the completeness of DBE's form "
        "ibims an invalid pixel has distance 0 from the truth instead of being left out.",
        caption={
            True: "as the programs where nothing is there",
            False: "empty directions left out",
        },
    )
    dbe: str = option(
        "ibims",
        'The form of DBE. "ibims": Canny at 0.15 and .3 against the true edges, distances both '
        'ways, truncated at 10 pixels. "sharpdepth": Canny at .1 and .2 on depth and inverse depth '
        "of both maps, completeness one way and not truncated.",
        one_of(*_CANNY),
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
        'Soft edges of a prediction: "log-depth", |log depth difference| to the right or the lower '
        'neighbour, the larger one, at most 1; or "canny" as in DBE.',
        one_of("log-depth", "canny"),
        caption=lambda o: f"edges by {o.pred_edges}" if "edges" in o.measures else "",
    )
    crop: tuple[int, ...] = option(
        (),
        "Part of the image to evaluate: first row, end row, first column, end column; default: "
        "all.",
        accepting(_is_crop, "first row, end, first column and end, or none"),
        caption=lambda o: (
            f"rows {o.crop[0]}-{o.crop[1]}, columns {o.crop[2]}-{o.crop[3]}" if o.crop else ""
        ),
    )

    @property
    def matches_edges(self) -> bool:
        """True if the measure "edges" is computed: depth edges are matched one to one."""
        return "edges" in self.measures


class DepthMaps(NamedTuple):
    """The maps of one image after conversion to depth, cropping and alignment, each (H, W)."""

    pred: Floats  # predicted depth
    known: Bools  # True where the stored prediction is finite and above 0
    pred_for_canny: Floats  # `pred` with NaN where the stored value was 0 or not finite
    gt: Floats | None  # ground-truth depth; None if there is none
    gt_for_canny: Floats | None  # `gt` likewise; also NaN at pixels that `invalid` excludes
    valid: Bools  # True for the pixels that are evaluated
    edges: tuple[Bools, ...]  # annotated edges, one map per annotator; () if there are none
    matte: Bools | None  # mask of the annotated object; None if there is none

    def true_edges(self, by: str, opt: DepthOptions) -> tuple[Bools, ...]:
        """Return bool edges (H, W), "annotated" by each annotator, or one map by "canny"."""
        if by == "canny":
            return (_canny_edges(_require_annotation(self.gt_for_canny, "depth"), opt.dbe),)
        return _require_annotation(self.edges or None, "edges")


_Annotation = TypeVar("_Annotation")  # type of an image's depth, edges or matte


def _require_annotation(annotation: _Annotation | None, what: str) -> _Annotation:
    """Return `annotation`, or raise DataError if it is None; `what` is its name in the message."""
    if annotation is None:
        raise DataError(f"ground truth: no {what}, expected {what} for these depth.measures")
    return annotation


def _prepare_depth_maps(pred: Map, gt: GroundTruth, opt: DepthOptions) -> DepthMaps:
    """Crop the maps (H, W) of one image, convert them to depth and align the prediction.

    The depth of a pixel is known if its stored value is finite and above 0. By `opt.invalid`, these
    pixels are evaluated (`DepthMaps.valid`):

    - "truth": those that are True in `gt.valid` and have a known true depth, if it has these maps
    - "both": those of "truth" that also have a known predicted depth
    - "none": all

    The maps for Canny's detector keep negative depths, but have NaN where nothing was stored: a 0,
    or no finite number. Raises ShapeError if the sizes differ, and DataError if the crop exceeds
    the image or if there is no true depth to align to.
    """
    same_shape(pred.shape, gt.shape)
    rows, cols = pred.shape
    top, bottom, left, right = opt.crop or (0, rows, 0, cols)
    if bottom > rows or right > cols:
        raise DataError(f"prediction: {rows} x {cols}, expected the crop {opt.crop} in it")
    window = slice(top, bottom), slice(left, right)
    parts = {k: part[window] for k, part in gt.parts.items() if k in ("depth", "mask", "valid")}
    edges = tuple(np.asarray(drawn[window]) != 0 for drawn in gt.boundaries)
    # A file of one map was read as depth; `gt_holds` may say that the map is edges or a matte
    if "depth" in parts and opt.gt_holds == "edges" and not edges:
        values = parts.pop("depth")
        cut = 127 / 255 if values.dtype == np.uint8 else 0  # in 8 bits, edges are 128 .. 255
        edges = (binarise(values, cut, "ground truth"),)
    elif "depth" in parts and opt.gt_holds == "matte" and "mask" not in parts:
        parts["mask"] = binarise_matte(parts.pop("depth"), "ground truth")
    if "depth" not in parts and opt.align != "none":
        raise DataError(f"ground truth: no depth, which depth.align = {opt.align} needs")
    depth, is_number, is_known = _to_depth(pred[window], opt.pred_holds, opt.pred_scale)
    everywhere = np.ones(depth.shape, bool)
    valid = parts["valid"] != 0 if "valid" in parts else everywhere
    gt_depth = gt_for_canny = None
    if "depth" in parts:
        gt_depth, is_gt_number, is_gt_known = _to_depth(parts["depth"], opt.gt_holds, opt.gt_scale)
        valid = valid & is_gt_known
        depth = _align(depth, gt_depth, is_known & valid, opt.align)
        is_for_canny = is_gt_number if opt.invalid == "none" else is_gt_number & valid
        gt_for_canny = np.where(is_for_canny, gt_depth, np.nan)
    valid_by_option = {"truth": valid, "both": valid & is_known, "none": everywhere}
    return DepthMaps(
        pred=depth,
        known=is_known,
        pred_for_canny=np.where(is_number, depth, np.nan),
        gt=gt_depth,
        gt_for_canny=gt_for_canny,
        valid=valid_by_option[opt.invalid],
        edges=edges,
        matte=parts.get("mask"),
    )


class _Depth(NamedTuple):
    """A depth map, and two masks that describe the stored values, each (H, W)."""

    depth: Floats
    is_number: Bools  # True if the stored value is finite and not 0
    is_known: Bools  # True if the stored value is finite and above 0


def _to_depth(values: Map, holds: str, scale: float) -> _Depth:
    """Convert stored values to depth: value / scale, or scale / value if `holds` is "inverse"."""
    scaled = values.astype(np.float64) / scale
    is_number = np.isfinite(scaled) & (scaled != 0)
    depth = _inverse(scaled) if holds == "inverse" else scaled
    return _Depth(depth, is_number, is_number & (scaled > 0))


def _align(depth: Floats, true: Floats, known: Bools, align: str) -> Floats:
    """Fit a predicted depth map to the ground-truth depth `true` by least squares.

    The fit uses the pixels where `known` is True, and is applied to all pixels. If there are none,
    or `align` is "none", `depth` is returned unchanged. The model is factor * depth ("scale") or
    factor * depth + shift ("scale-shift"; a constant prediction gets no shift). Models called
    "disparity-..." are fitted to 1 / depth.
    """
    if align == "none" or not known.any():
        return depth
    in_disparity = align.startswith("disparity")
    pred, target = (_inverse(depth), _inverse(true)) if in_disparity else (depth, true)
    x, y = pred[known], target[known]
    centred = x - x.mean()
    squares = np.sum(centred * centred)  # 0 if the prediction is constant
    if align.endswith("shift") and squares > 0:
        factor = np.sum(centred * y) / squares
        shift = y.mean() - factor * x.mean()
    else:
        factor, shift = np.sum(x * y) / np.sum(x * x), 0.0
    fitted = factor * pred + shift
    return _inverse(fitted) if in_disparity else fitted


def _inverse(depth: Floats) -> Floats:
    """Return 1 / depth, float64 in C order. Depths below 1e-6 are set to 1e-6; NaN stays NaN."""
    return np.ascontiguousarray(1 / np.maximum(depth, _SMALLEST_DEPTH))


def _canny_edges(depth: Floats, form: str) -> Bools:
    """Detect edges in a depth map (H, W) with the Canny settings of the depth boundary error.

    `form` selects the published implementation: "ibims" uses the edges of the depth, "sharpdepth"
    the union of the edges of depth and 1 / depth, with lower thresholds. NaN pixels form no edge.
    """
    from skimage.feature import canny

    maps = [depth]
    if form == "sharpdepth":
        with np.errstate(divide="ignore", invalid="ignore"):
            maps.append(1 / depth)  # infinite at 0
    thresholds = _CANNY[form]  # of the gradient of maps whose finite values are stretched to 0 .. 1
    edges = np.zeros(depth.shape, bool)
    for values in maps:
        # Smoothing spreads NaN, and no gradient of NaN exceeds a threshold: no edge is near it
        finite = np.where(np.isfinite(values), values, np.nan)
        low, high = np.fmin.reduce(finite, axis=None), np.fmax.reduce(finite, axis=None)
        if high > low:  # a map with fewer than two distinct finite values has no edge
            edges |= canny((finite - low) / (high - low), _SIGMA, *thresholds, mode="constant")
    return edges


class DbeParts(NamedTuple):
    """Sums of edge distances in pixels. Both are undefined if n[2], the true edges, is 0."""

    sums: Floats  # (2,): [accuracy, completeness]
    n: Ints  # (3,): [distances in sums[0], distances in sums[1], ground-truth edge pixels]


def dbe_parts(pred: Bools, gt: Bools, valid: Bools, opt: DepthOptions) -> DbeParts:
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
    is_valid = valid[pred]  # of each predicted edge pixel; False only if `opt.strict` kept it
    accuracy_distances = to_gt[(to_gt < RADIUS) & is_valid]
    if opt.dbe == "ibims":
        pred_distances = np.minimum(np.where(is_valid, to_gt, 0.0), RADIUS)
        completeness_distances = np.concatenate([pred_distances, np.minimum(to_pred, RADIUS)])
    else:
        completeness_distances = np.minimum(to_pred, np.hypot(*pred.shape))
    sums = np.array([accuracy_distances.sum(), completeness_distances.sum()])
    numbers = [accuracy_distances.size, completeness_distances.size, to_pred.size]  # and true edges
    return DbeParts(sums, np.array(numbers))


def log_steps(depth: Floats) -> Floats:
    """Compute the soft edges of a depth map: the log depth difference between neighbours.

    Parameters
    ----------
    depth : array
        float64 (H, W). Depths below 1e-6 are set to 1e-6. A difference from NaN counts as 0.

    Returns
    -------
    array
        float64 (H, W), the larger of each pixel's absolute differences from its right and its lower
        neighbour, capped at 1.

    Examples
    --------
    >>> log_steps(np.array([[1.0, 1.0, np.e**0.5]])).tolist()
    [[0.0, 0.5, 0.0]]
    """
    log_depth = np.log(np.maximum(depth, _SMALLEST_DEPTH))
    steps = np.zeros(depth.shape)
    with np.errstate(invalid="ignore"):
        steps[:, :-1] = np.fmax(steps[:, :-1], np.abs(np.diff(log_depth, axis=1)))
        steps[:-1] = np.fmax(steps[:-1], np.abs(np.diff(log_depth, axis=0)))
    return np.minimum(steps, 1.0)


def _shares_at_ratios(counts: Stack, strict: bool) -> dict[str, Floats]:
    """Compute F, precision and recall of depth edges of N images at R ratios: measure -> (N, R).

    Precision and recall are means of the shares in four directions. A direction without edges is
    left out, and the mean is NaN if no direction has any. If `strict`, such a direction counts 0.

    counts: "si" and "matte" of `DepthMetric.count`, or one of them.
    """

    def mean_share(n_in_both: Ints, n_in_map: Ints) -> Floats:
        """Return the mean over directions of numbers of edges (N, R, 4), divided; (N, R)."""
        if strict:
            return ratio(n_in_both, n_in_map).mean(axis=-1)
        return defined_mean(defined_ratio(n_in_both, n_in_map))

    shares: dict[str, Floats] = {}
    if "si" in counts:
        in_both, in_pred, in_gt = np.moveaxis(counts["si"], -1, 0)  # (N, R, directions) each
        recall, precision = mean_share(in_both, in_gt), mean_share(in_both, in_pred)
        f = f_measure(np.nan_to_num(precision), np.nan_to_num(recall))  # undefined: 0
        shares["si_f1"] = np.where(np.isnan(recall), np.nan, f)
        shares["si_precision"], shares["si_recall"] = precision, recall
    if "matte" in counts:
        in_both, in_gt = np.moveaxis(counts["matte"], -1, 0)
        shares["matte_recall"] = mean_share(in_both, in_gt)
    return shares


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

        Returns the counts of the selected measures. In the first two, an edge of a depth map is a
        pair of neighbouring pixels whose inverse depths differ by more than a ratio, one of R.

        si : int64 (R, 4, 3), the edges in both maps, in the prediction, and in the ground truth.
            Axis 1 is the position of the nearer pixel in the pair (left, top, right, bottom).
        matte : int64 (R, 4, 2), the pairs across the outline of the annotated object (a mask that
            was binarised) that are predicted edges, and all. Axis 1: position of the pixel inside
        dbe_sum : float64 (2,), for both parts of the depth boundary error, accuracy (from predicted
            edges to true ones) and completeness, the sums of distances in pixels
        dbe_n : int64 (3,), the numbers of distances in these sums, and of true edge pixels
        thresholds, matches : for "edges", float64 (T,) and int64 (T, 4), the counts of `counter`,
            which is `boundary_counts` or a replacement that returns further arrays
        """
        counts: dict[str, Any] = {}
        maps = _prepare_depth_maps(pred.depth, gt, opt)  # cropped, of depth, aligned
        inverse_pred = _inverse(maps.pred)
        if "si" in opt.measures:
            inverse_gt = _inverse(_require_annotation(maps.gt, "depth"))
            counts["si"] = depth_pairs.ratio_pairs(inverse_pred, inverse_gt, maps.valid, _RATIOS)
        if "matte" in opt.measures:
            counts["matte"] = depth_pairs.count_hit_mask_edges(
                inverse_pred, _require_annotation(maps.matte, "matte"), _RATIOS
            )
        if "dbe" in opt.measures:
            pred_edges = _canny_edges(maps.pred_for_canny, opt.dbe)
            # The program "sharpdepth" never uses annotated edges
            by = "canny" if opt.dbe == "sharpdepth" else opt.gt_edges
            gt_edges = np.logical_or.reduce(maps.true_edges(by, opt))  # of any annotator
            counts["dbe_sum"], counts["dbe_n"] = dbe_parts(pred_edges, gt_edges, maps.valid, opt)
        if opt.matches_edges:  # one to one, as the boundary benchmark does, among valid pixels
            if opt.pred_edges == "canny":
                soft = _canny_edges(maps.pred_for_canny, opt.dbe).astype(np.float64)
            else:  # the log difference of a depth from its neighbours; none from an invalid pixel
                soft = log_steps(np.where(maps.valid, maps.pred, np.nan))
            drawn = tuple(edges & maps.valid for edges in maps.true_edges(opt.gt_edges, opt))
            valid_soft = Prediction(gt.image_id, soft=soft * maps.valid)
            counts |= counter(valid_soft, GroundTruth(gt.image_id, drawn, path=gt.path), protocol)
        return counts

    def values(self, counts: Stack, opt: DepthOptions) -> dict[str, Floats]:
        """Compute the measures of N images, (N,) each; undefined values are NaN.

        si_f1, si_precision, si_recall, matte_recall : means over the ratios (thresholds), weighted
            by the ratio. Without ground-truth edges, F is NaN, or 0 if `opt.strict` is True.
        si_f1_plain, si_f1@1_05 and so on : for each of these four, the mean with equal weights, and
            the value at every single ratio, here 1.05
        dbe_accuracy, dbe_completeness : the depth boundary errors in pixels
        """
        values: dict[str, Floats] = {}
        for key, share in _shares_at_ratios(counts, opt.strict).items():
            # As in Depth Pro, a value has its ratio, 1.05 .. 1.25, as weight; undefined ones have 0
            weights = np.where(np.isnan(share), 0.0, _RATIOS)
            total = (np.nan_to_num(share) * weights).sum(axis=-1)
            values[key] = defined_ratio(total, weights.sum(axis=-1))
            values[f"{key}_plain"] = defined_mean(share)
            for k, edge_ratio in enumerate(_RATIOS):
                digits = f"{edge_ratio:.4f}".rstrip("0").rstrip(".")
                values[key_at(key, digits)] = share[..., k]  # si_f1@1_05 is the value at 1.05
        if "dbe_n" in counts:
            # The number of distances in each of both sums, and of true edge pixels, (N,) each
            n_accuracy, n_completeness, n_true = counts["dbe_n"].T
            means = ratio(counts["dbe_sum"].T, np.stack([n_accuracy, n_completeness]))  # (2, N)
            # If no predicted edge is within RADIUS of a true one, both errors are RADIUS
            means = np.where(n_accuracy == 0, RADIUS, means)
            means = np.where(n_true > 0, means, np.nan)  # undefined without true edges
            values["dbe_accuracy"], values["dbe_completeness"] = means
        return values

    def pooled(self, sums: Stack, opt: DepthOptions) -> dict[str, Floats]:
        """Compute si_f1_pooled and so on: the measures of `values`, from counts of all images."""
        values = self.values(sums, opt)
        return {f"{c.key}_pooled": values[c.key] for c in (*_SHARES, *_ERRORS) if c.key in values}

    def used(self, opt: DepthOptions) -> tuple[str, ...]:
        """Return the names of the protocol's fields that affect the scores; none without edges."""
        return self.uses if opt.matches_edges else ()

    def scores(
        self, stack: Stack, weights: Weights, protocol: Protocol, opt: DepthOptions
    ) -> ScoreTree:
        """Compute the scores of the measures in `opt.measures` for S data sets, as arrays (S,).

        stack: counts of N images. weights (S, N): how often each occurs in each data set.
        """
        scores = dict(super().scores(stack, weights, protocol, opt))  # of all but "edges"
        if opt.matches_edges:  # "edges": ODS and other scores of a precision-recall curve
            scores |= curve_scores(stack["thresholds"], stack["matches"], weights, protocol)
        return scores

    def symptoms(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: DepthOptions
    ) -> Symptoms:
        """Yield (code, problem, fix) for each sign that the options do not fit the maps.

        - "unknown": over 1 % of the image's pixels are evaluated but have no predicted depth
        - "inverse": the log depths of the two maps have a correlation below -0.3
        - "scale": the median ratio of predicted to ground-truth depth is above 20 or below 1/20
        - "stretched": the prediction was probably stretched to its own range, from 0 to 1 or white

        The last three need a ground-truth depth map; "scale" is not reported beside "inverse".
        """
        maps = _prepare_depth_maps(pred.depth, gt, opt)
        is_unknown = ~maps.known & maps.valid
        if is_unknown.mean() > _UNKNOWN_SHARE:
            problem = "over 1 % of the predicted depths are 0, negative or not finite"
            yield "unknown", problem, Setting("depth.invalid", "both", "leaves it out")
        if maps.gt is None:
            return
        is_known = maps.valid & ~is_unknown & np.isfinite(maps.gt)  # in both maps
        if not is_known.any():
            return
        values = pred.depth  # as stored: the whole image, before any conversion
        is_stretched = values.min() == 0 and values.max() in (1, 255, 65535)
        if is_stretched and not opt.align.endswith("shift"):
            problem = f"the prediction goes from 0 to {values.max():g}: stretched to its range?"
            fix = Setting("depth.align", "scale-shift", "estimates the scale and the shift")
            yield "stretched", problem, fix
        # The maps correlate negatively if one of them is inverted, such as inverse depth
        log_pred = np.log(np.maximum(maps.pred[is_known], _SMALLEST_DEPTH))
        log_gt = np.log(np.maximum(maps.gt[is_known], _SMALLEST_DEPTH))
        log_ratio = log_pred - log_gt
        is_far = np.abs(log_ratio) > np.log(_OTHER_SCALE)  # by a factor of more than 20
        log_pred -= log_pred.mean()
        log_gt -= log_gt.mean()
        covariance = (log_pred * log_gt).mean()
        variances = (log_pred**2).mean() * (log_gt**2).mean()
        if covariance < _INVERSE_CORRELATION * math.sqrt(variances):
            other = "depth" if opt.pred_holds == "inverse" else "inverse"
            fix = Setting("depth.pred_holds", other)
            yield "inverse", "depth decreases where the true depth increases", fix
        # Find the median, which takes longer, only if at least half of the ratios are as far
        elif 2 * is_far.sum() >= is_far.size and abs(np.median(log_ratio)) > np.log(_OTHER_SCALE):
            problem = "depths have a different scale from the truth"
            yield "scale", problem, Setting("depth.align", "scale", "estimates it; si needs none")
