"""Depth maps ready to be measured: options, alignment, edges, distances of edges.

Everything is float64. A depth is taken as 1e-6 where it is less; a NaN makes no edge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from bsdsbench.files.errors import DataError
from bsdsbench.loaders.depth_files import matte_mask
from bsdsbench.loaders.inputs import GroundTruth, Prediction, cut_map, same_shape
from bsdsbench.protocol.fields import HOME_MADE, POSITIVE, check, is_number, one_of, option, some_of

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
Bool = NDArray[np.bool_]

MEASURES = ("si", "matte", "dbe", "edges")
NEAREST = 1e-6
SIGMA = 2**0.5
# Thresholds of Canny in the two forms of DBE
CANNY = {"ibims": (0.15, 0.3), "sharpdepth": (0.1, 0.2)}


@frozen
class DepthOptions:
    """What the files hold, which measures are made, and the rules in which programs differ."""

    measures: tuple[str, ...] = option(
        ("si",),
        f"The measures to compute, of {', '.join(MEASURES)}.",
        some_of(*MEASURES, least=1),
        caption=lambda o: ", ".join(o.measures),
    )
    pred_holds: str = option(
        "depth",
        'Predictions hold "depth", or "inverse" depth (disparity).',
        one_of("depth", "inverse"),
        caption={"inverse": "predictions are inverse depth"},
        others={"inverse": "networks of disparity", "depth": "networks of depth"},
    )
    gt_holds: str = option(
        "depth",
        'An annotation of one map holds "depth", "inverse" depth, "edges" or a "matte".',
        one_of("depth", "inverse", "edges", "matte"),
        caption={"inverse": "truth is inverse depth"},
        others={"inverse": "data sets of disparity", "depth": "data sets of depth"},
    )
    pred_scale: float = option(
        1.0, "Predicted values are divided by it.", POSITIVE, caption="predictions / {:g}"
    )
    gt_scale: float = option(
        1.0, "Annotated values are divided by it.", POSITIVE, caption="truth / {:g}"
    )
    align: str = option(
        "none",
        'How each prediction is fitted to the truth by least squares: "none"; '
        '"scale" or "scale-shift" of depth; "disparity-scale" or '
        '"disparity-scale-shift" of inverse depth.',
        one_of("none", "scale", "scale-shift", "disparity-scale", "disparity-scale-shift"),
        caption=lambda o: f"alignment {o.align}",
        others={
            "none": "Depth Pro",
            "scale": "scripts for metric depth",
            "scale-shift": "Marigold and others of affine-invariant depth",
            "disparity-scale": HOME_MADE,
            "disparity-scale-shift": "MiDaS, Depth Anything",
        },
    )
    invalid: str = option(
        "truth",
        "Which invalid pixels (NaN, infinite, 0 or less, masked out) are left out: "
        'those of the "truth", those of either map ("both"), or "none".',
        one_of("truth", "both", "none"),
        caption=lambda o: f"invalid pixels: {o.invalid}",
        others={"none": "ml-depth-pro", "truth": "scripts with a mask", "both": HOME_MADE},
    )
    strict: bool = option(
        False,
        "Treat empty input as the programs do: a direction or an image without "
        "edges counts 0, instead of being left out of the means. In DBE an invalid "
        "pixel is at distance 0 from the truth, instead of being left out.",
        caption={
            True: "as the programs where nothing is there",
            False: "empty directions left out",
        },
        others={True: "ml-depth-pro, the iBims-1 program", False: "scripts that leave empty out"},
    )
    ratios: tuple[float, float, int] = option(
        (1.05, 1.25, 10),
        "The first and the last ratio of si and matte, and how many evenly spaced ones.",
        check(
            lambda v: (
                isinstance(v, tuple)
                and len(v) == 3
                and all(map(is_number, v))
                and 1 <= v[0] <= v[1] <= 1e6
                and v[2] in range(1, 101)
            ),
            "two ratios from 1 and their number, 1 to 100",
        ),
        caption=lambda o: f"{o.ratios[2]} ratios {o.ratios[0]:g} .. {o.ratios[1]:g}",
        others={
            (1.05, 1.25, 10): "Depth Pro",
            **dict.fromkeys(((1.05, 1.25, 5), (1.1, 1.25, 10), (1.05, 1.5, 10)), HOME_MADE),
        },
    )
    dbe: str = option(
        "ibims",
        'The form of DBE. "ibims": Canny at .15 and .3 against the true edges, '
        'distances both ways, truncated at `radius`. "sharpdepth": Canny at .1 and '
        ".2 on depth and inverse depth of both maps, completeness one way and not "
        "truncated.",
        one_of(*CANNY),
        caption=lambda o: f"DBE {o.dbe}" if "dbe" in o.measures else "",
        others={"ibims": "iBims-1, P2ORM", "sharpdepth": "SharpDepth"},
    )
    radius: float = option(
        10.0,
        "Pixels at which distances of DBE are truncated.",
        POSITIVE,
        caption=lambda o: f"within {o.radius:g} px" if "dbe" in o.measures else "",
        others={10.0: "iBims-1", 5.0: HOME_MADE, 20.0: HOME_MADE},
    )
    gt_edges: str = option(
        "annotated",
        'True edges for matching and for DBE\'s form ibims: "annotated", or "canny" on true depth.',
        one_of("annotated", "canny"),
        caption={"canny": "true edges by Canny"},
        others={"canny": "scripts for data sets without edges", "annotated": "iBims-1"},
    )
    pred_edges: str = option(
        "log-depth",
        'Soft edges of a prediction: "log-depth", |log depth difference| to the '
        'right or the lower neighbour, the larger one, at most 1; or "canny" as in '
        "DBE.",
        one_of("log-depth", "canny"),
        caption=lambda o: f"edges by {o.pred_edges}" if "edges" in o.measures else "",
        others={"canny": "MindTheEdge and DBE", "log-depth": "Depth Pro's ratios"},
    )
    crop: tuple[int, ...] = option(
        (),
        "The part that counts: first row, end row, first column, end column; default: all.",
        check(
            lambda v: (
                isinstance(v, tuple)
                and all(isinstance(n, int) and n >= 0 for n in v)
                and (not v or (len(v) == 4 and v[0] < v[1] and v[2] < v[3]))
            ),
            "first row, end, first column and end, or none",
        ),
        caption=lambda o: (
            f"rows {o.crop[0]}-{o.crop[1]}, columns {o.crop[2]}-{o.crop[3]}" if o.crop else ""
        ),
        others={(153, 371, 44, 1197): "MindTheEdge on KITTI-DE"},
    )


@dataclass(frozen=True, slots=True, eq=False)
class DepthMaps:
    """An image ready to be measured, float64 and cropped: depths, validity, true edges and matte.

    Unknown depths are NaN in `raw_*`, on which Canny works.
    """

    pred: F8
    raw_pred: F8
    gt: F8 | None
    raw_gt: F8 | None
    valid: Bool
    edges: tuple[Bool, ...]
    matte: Bool | None

    def true(self, name: str = "gt") -> F8:
        """The true depth, "gt" or "raw_gt". Raises DataError where there is none."""
        found: F8 | None = getattr(self, name)
        if found is None:
            raise DataError(
                "no true depth, expected one for the measures chosen (depth.measures=edges where "
                "there are only edges)"
            )
        return found


def prepared(pred: NDArray[Any], gt: GroundTruth, at: DepthOptions) -> DepthMaps:
    """The maps as the options say: what they hold, scale, crop, alignment, validity."""
    same_shape(pred.shape, gt.shape)
    rows, cols = pred.shape
    top, end, left, right = at.crop or (0, rows, 0, cols)
    if end > rows or right > cols:
        raise DataError(f"{rows} x {cols}, expected the crop {at.crop} in it")
    cut = slice(top, end), slice(left, right)
    edges = tuple(np.asarray(b[cut]) != 0 for b in gt.boundaries)
    matte, given = (gt.parts[k][cut] if k in gt.parts else None for k in ("mask", "depth"))
    if given is not None and at.gt_holds == "edges" and not edges:
        edges, given = (cut_map(given, (127, 0, 0), "edges"),), None
    if given is not None and at.gt_holds == "matte" and matte is None:
        matte, given = matte_mask(given), None
    depth, there, known = _depth(pred[cut], at.pred_holds, at.pred_scale)
    valid = np.ones(depth.shape, bool)
    truth = raw_truth = None
    if given is not None:
        truth, true_there, valid = _depth(given, at.gt_holds, at.gt_scale)
        raw_truth = np.where(true_there, truth, np.nan)
    if "valid" in gt.parts:
        valid = valid & (gt.valid[cut] != 0)
    if truth is not None and raw_truth is not None:
        depth = _aligned(depth, truth, known & valid, at.align)
        if at.invalid != "none":
            raw_truth[~valid] = np.nan
    elif at.align != "none":
        raise DataError(f"no depth, expected one to align by (depth.align={at.align})")
    if at.invalid != "truth":
        valid = valid & known if at.invalid == "both" else np.ones(depth.shape, bool)
    return DepthMaps(depth, np.where(there, depth, np.nan), truth, raw_truth, valid, edges, matte)


def _depth(values: NDArray[Any], holds: str, scale: float) -> tuple[F8, Bool, Bool]:
    """Depths, where there is a number but 0, and where that is a depth, above 0."""
    given = values.astype(np.float64) / scale
    there = np.isfinite(given) & (given != 0)
    return (inverse(given) if holds == "inverse" else given), there, there & (given > 0)


def _aligned(depth: F8, truth: F8, known: Bool, align: str) -> F8:
    """The prediction fitted to the truth by least squares over known pixels.

    Without two different values there is no shift, without any pixel no fit.
    """
    if align == "none" or not known.any():
        return depth
    turned = align.startswith("disparity")
    x, y = (inverse(d) if turned else d for d in (depth, truth))
    a, b = x[known], y[known]
    shift, middle = 0.0, float(a.mean()) if align.endswith("shift") else 0.0
    spread = float(np.sum((a - middle) * (a - middle)))
    if middle and spread > 0:
        factor = float(np.sum((a - middle) * b)) / spread
        shift = float(b.mean()) - factor * middle
    else:
        factor = float(np.sum(a * b)) / float(np.sum(a * a))
    fitted = factor * x + shift
    return inverse(fitted) if turned else fitted


def inverse(depth: F8) -> F8:
    """1 / depth, of 1e-6 where it is less; NaN stays. By rows, as the kernels are compiled for."""
    return np.ascontiguousarray(1 / np.maximum(depth, NEAREST))


def canny_edges(depth: F8, form: str) -> Bool:
    """Canny edges of a depth map, in form sharpdepth also of its inverse; NaN is no depth."""
    from skimage.feature import canny

    with np.errstate(divide="ignore", invalid="ignore"):
        maps = [depth] if form == "ibims" else [depth, 1 / depth]
    return np.logical_or.reduce([canny(_unit(m), SIGMA, *CANNY[form]) for m in maps])


def _unit(values: F8) -> F8:
    """Stretched to 0 .. 1 by what is finite; flat maps become NaN, which has no edges."""
    if np.isinf(values).any():
        values = np.where(np.isfinite(values), values, np.nan)
    low, high = np.fmin.reduce(values, axis=None), np.fmax.reduce(values, axis=None)
    if not high > low:
        return np.full(values.shape, np.nan)
    out = values - low
    out /= high - low
    return out


def annotated(maps: DepthMaps, at: DepthOptions) -> tuple[Bool, ...]:
    """The true edges that `gt_edges` asks for."""
    if at.gt_edges == "canny":
        return (canny_edges(maps.true("raw_gt"), at.dbe),)
    if not maps.edges:
        raise DataError(
            "no edges, expected annotated ones for the measures dbe and edges, or "
            "depth.gt_edges=canny"
        )
    return maps.edges


def dbe_parts(pred: Bool, gt: Bool, valid: Bool, at: DepthOptions) -> tuple[F8, I8]:
    """`dbe_sum` and `dbe_n` of two maps of edges."""
    if not at.strict:
        pred, gt = pred & valid, gt & valid
    to_gt, to_pred = _distances(pred, gt), _distances(gt, pred)
    counted = valid[pred] if at.strict else np.ones(to_gt.size, bool)
    near = (to_gt < at.radius) & counted
    if at.dbe == "ibims":
        parts = np.minimum(np.where(counted, to_gt, 0.0), at.radius)
        parts = np.concatenate([parts, np.minimum(to_pred, at.radius)])
    else:
        parts = np.minimum(to_pred, np.hypot(*pred.shape))
    numbers = np.array([np.count_nonzero(near), parts.size, to_pred.size])
    return np.array([to_gt[near].sum(), parts.sum()]), numbers


def _distances(a: Bool, b: Bool) -> F8:
    """From each pixel of a, row by row, to the nearest of b; infinite where there is none."""
    from bsdsbench.kernels.distances import nearest

    sides = []
    for drawn in (a, b):
        rows, cols = np.nonzero(drawn)
        sides += [np.array([0, rows.size]), rows.astype(np.int32), cols.astype(np.int32)]
    return np.asarray(np.sqrt(nearest(*sides, 1.0, 1.0)))


def matched_inputs(
    maps: DepthMaps, gt: GroundTruth, at: DepthOptions
) -> tuple[Prediction, GroundTruth]:
    """The soft edges of the prediction and the true edges, as the metric boundary takes them."""
    if at.pred_edges == "canny":
        soft = canny_edges(maps.raw_pred, at.dbe).astype(np.float64)
    else:
        soft = log_steps(np.where(maps.valid, maps.pred, np.nan))
    drawn = tuple(edges & maps.valid for edges in annotated(maps, at))
    pred = Prediction(gt.image_id, soft=soft * maps.valid)
    return pred, GroundTruth(gt.image_id, drawn, path=gt.path)


def log_steps(depth: F8) -> F8:
    """|log depth difference| to the right or lower neighbour, the larger, 0 .. 1; (H, W).

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
