"""Preparation of an image's depth maps by the options of `depth`: convert, crop and align."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
from attrs import frozen

from bsdsbench.arguments import F8, Bool
from bsdsbench.errors import DataError
from bsdsbench.images import GroundTruth, Map, same_shape
from bsdsbench.loaders.formats.depth_files import binarise_matte
from bsdsbench.loaders.reading import binarise
from bsdsbench.protocol.fields import POSITIVE, accepting, is_int, one_of, option, some_of

_MEASURES = ("si", "matte", "dbe", "edges")
NEAREST = 1e-6  # smaller depths are set to this
SIGMA = 2**0.5  # of the Gaussian of the Canny detector, in pixels
# (low, high) thresholds of the Canny detector in the two published implementations of DBE
CANNY = {"ibims": (0.15, 0.3), "sharpdepth": (0.1, 0.2)}


def _is_crop(value: tuple[int, ...]) -> bool:
    """Return True for () (no crop) or a nonempty (first row, end row, first column, end column)."""
    if value == ():
        return True
    if len(value) != 4 or not all(is_int(n) and n >= 0 for n in value):
        return False
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

    pred: F8  # predicted depth
    known: Bool  # True where the stored prediction is finite and above 0
    raw_pred: F8  # input of Canny: `pred` with NaN where the stored value was 0 or not finite
    gt: F8 | None  # ground-truth depth; None if there is none
    raw_gt: F8 | None  # the same for `gt`; also NaN at invalid pixels, if invalid is not "none"
    valid: Bool  # True for the pixels that are evaluated
    edges: tuple[Bool, ...]  # annotated edges, one map per annotator; () if there are none
    matte: Bool | None  # mask of the annotated object; None if there is none

    def true_edges(self, opt: DepthOptions) -> tuple[Bool, ...]:
        """Return the ground-truth edges: bool (H, W) for each annotator.

        If `opt.gt_edges` is "canny", they are the edges of the true depth, a single map.
        """
        if opt.gt_edges == "canny":
            return (canny_edges(require(self.raw_gt, "depth"), opt.dbe),)
        return require(self.edges or None, "edges")


_Annotation = TypeVar("_Annotation")  # type of an image's depth, edges or matte


def require(annotation: _Annotation | None, what: str) -> _Annotation:
    """Return `annotation`, or raise DataError if it is None; `what` is its name in the message."""
    if annotation is None:
        raise DataError(f"ground truth: no {what}, expected {what} for these depth.measures")
    return annotation


def prepare_depth_maps(pred: Map, gt: GroundTruth, opt: DepthOptions) -> DepthMaps:
    """Crop the maps (H, W) of one image, convert them to depth and align the prediction.

    The depth of a pixel is known if its value is finite and above 0. `opt.invalid` decides which
    pixels are evaluated (`DepthMaps.valid`):

    - "truth": pixels that are True in `gt.valid` and whose ground-truth depth is known. Without a
      ground-truth depth map, only `gt.valid` is used; without either, all pixels are evaluated.
    - "both": as "truth", and the predicted depth must also be known
    - "none": all pixels

    Raises ShapeError if the sizes differ, and DataError if the crop exceeds the image or if there
    is no true depth to align to.
    """
    same_shape(pred.shape, gt.shape)
    rows, cols = pred.shape
    top, bottom, left, right = opt.crop or (0, rows, 0, cols)
    if bottom > rows or right > cols:
        raise DataError(f"prediction: {rows} x {cols}, expected the crop {opt.crop} in it")
    window = slice(top, bottom), slice(left, right)
    edges = tuple(np.asarray(drawn[window]) != 0 for drawn in gt.boundaries)
    matte = gt.parts["mask"][window] if "mask" in gt.parts else None
    gt_values = gt.parts["depth"][window] if "depth" in gt.parts else None
    if gt_values is not None:  # a file of one map is read as depth, even if it holds edges or matte
        if opt.gt_holds == "edges" and not edges:
            cut = 127 / 255 if gt_values.dtype == np.uint8 else 0  # edges are above it
            edges, gt_values = (binarise(gt_values, cut, "ground truth"),), None
        elif opt.gt_holds == "matte" and matte is None:
            matte, gt_values = binarise_matte(gt_values, "ground truth"), None
    if gt_values is None and opt.align != "none":
        raise DataError(f"ground truth: no depth, which depth.align = {opt.align} needs")
    # is_number: the stored value is finite and not 0; is_known: it is also above 0
    depth, is_number, is_known = _to_depth(pred[window], opt.pred_holds, opt.pred_scale)
    everywhere = np.ones(depth.shape, bool)
    valid = gt.valid[window] != 0 if "valid" in gt.parts else everywhere
    gt_depth = raw_gt = None  # raw maps, for edge detection, are NaN where there is no depth
    if gt_values is not None:
        gt_depth, is_gt_number, is_gt_known = _to_depth(gt_values, opt.gt_holds, opt.gt_scale)
        valid = valid & is_gt_known
        depth = _align(depth, gt_depth, is_known & valid, opt.align)
        raw_gt = np.where(is_gt_number, gt_depth, np.nan)
        if opt.invalid != "none":
            raw_gt[~valid] = np.nan
    if opt.invalid == "both":
        valid = valid & is_known
    elif opt.invalid == "none":
        valid = everywhere
    raw_pred = np.where(is_number, depth, np.nan)
    return DepthMaps(depth, is_known, raw_pred, gt_depth, raw_gt, valid, edges, matte)


class _Depth(NamedTuple):
    """A depth map, and two masks that describe the stored values, each (H, W)."""

    depth: F8
    is_number: Bool  # True if the stored value is finite and not 0
    is_known: Bool  # True if the stored value is finite and above 0


def _to_depth(values: Map, holds: str, scale: float) -> _Depth:
    """Convert stored values to depth: value / scale, or scale / value if `holds` is "inverse"."""
    scaled = values.astype(np.float64) / scale
    is_number = np.isfinite(scaled) & (scaled != 0)
    depth = inverse(scaled) if holds == "inverse" else scaled
    return _Depth(depth, is_number, is_number & (scaled > 0))


def _align(depth: F8, true: F8, known: Bool, align: str) -> F8:
    """Fit a predicted depth map to the ground-truth depth `true` by least squares.

    The fit uses the pixels where `known` is True, and is applied to all pixels. The model is
    factor * depth ("scale") or factor * depth + shift ("scale-shift"; a constant prediction gets no
    shift). Models called "disparity-..." are fitted to 1 / depth.
    """
    if align == "none" or not known.any():
        return depth
    in_disparity = align.startswith("disparity")
    pred, target = (inverse(depth), inverse(true)) if in_disparity else (depth, true)
    x, y = pred[known], target[known]
    centred = x - x.mean()
    squares = np.sum(centred * centred)  # 0 if the prediction is constant
    if align.endswith("shift") and squares > 0:
        factor = np.sum(centred * y) / squares
        shift = y.mean() - factor * x.mean()
    else:
        factor, shift = np.sum(x * y) / np.sum(x * x), 0.0
    fitted = factor * pred + shift
    return inverse(fitted) if in_disparity else fitted


def inverse(depth: F8) -> F8:
    """Return 1 / depth, float64 in C order. Depths below 1e-6 are set to 1e-6; NaN stays NaN."""
    return np.ascontiguousarray(1 / np.maximum(depth, NEAREST))


def canny_edges(depth: F8, form: str) -> Bool:
    """Detect edges in a depth map (H, W) with the Canny settings of the depth boundary error.

    `form` selects the published implementation: "ibims" uses the edges of the depth, "sharpdepth"
    the union of the edges of depth and 1 / depth, with lower thresholds. NaN pixels form no edge.
    """
    from skimage.feature import canny

    maps = [depth]
    if form == "sharpdepth":
        with np.errstate(divide="ignore", invalid="ignore"):
            maps.append(1 / depth)
    thresholds = CANNY[form]  # of the gradient, of maps whose finite values are stretched to 0 .. 1
    edges = np.zeros(depth.shape, bool)
    for values in maps:
        finite = np.where(np.isfinite(values), values, np.nan)
        low, high = np.fmin.reduce(finite, axis=None), np.fmax.reduce(finite, axis=None)
        if high > low:  # a map with fewer than two distinct finite values has no edge
            edges |= canny((finite - low) / (high - low), SIGMA, *thresholds, mode="constant")
    return edges
