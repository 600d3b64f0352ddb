"""Crispness: how thin the raw edges are, and what thickness costs.

Average crispness is the mean over images of sum(NMS map) / sum(raw map). Its NMS (2, 5, 1.01)
compares the unsmoothed map, so that a one-pixel-thin map scores about 1; only the orientation comes
from a smoothed map. SEval is the standard evaluation with NMS (the protocol's nms_params) and
thinning. CEval uses neither, so thick edges lose precision. All three take the raw maps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.errors import DataError, ProtocolError
from bsdsbench.loaders.inputs import GroundTruth, Prediction
from bsdsbench.loaders.official_txt import boundary_files
from bsdsbench.metrics.base import Metric, counts_in_order
from bsdsbench.metrics.boundary import (
    BoundaryMetric,
    BoundaryScore,
    boundary_counts,
    boundary_result,
)
from bsdsbench.metrics.columns import Column, within
from bsdsbench.metrics.maps import as_float32, invert, nms
from bsdsbench.protocol.constants import MATCHED, NMSParams
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import (
    BoundaryCounts,
    Counts,
    ImageRecord,
    Stack,
    count_field,
    thresholds_field,
)
from bsdsbench.scores.curve import best_point, curve_columns, four_counts, pr_curve
from bsdsbench.scores.ratios import Weights, defined_ratio, weighted_mean
from bsdsbench.tables.result_object import ShownScore

# Ye et al., arXiv 2306.15172: their eval_crispness.m
CRISPNESS_NMS = NMSParams(radius=2, border=5, multiplier=1.01, smooth=False, bits=0)
I8 = NDArray[np.int64]
F8 = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class CrispnessCounts(Counts):
    """One image: how much the NMS keeps, and the counts of both evaluations.

    thresholds : f8 (T,)
    kept, total : f8 (), sums of the NMS map and of the raw map
    seval, ceval : i8 (T, 4), matched_gt, total_gt, matched_pred, total_pred

    Adds over images. Raises ShapeError for arrays of different lengths.
    """

    thresholds: F8 = thresholds_field()
    kept: F8 = count_field("", np.float64)
    total: F8 = count_field("", np.float64)
    seval: I8 = count_field("T 4")
    ceval: I8 = count_field("T 4")

    def counts_of(self, part: str) -> BoundaryCounts:
        """The boundary counts of "seval" or "ceval"."""
        return BoundaryCounts(self.thresholds, *getattr(self, part).T)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CrispnessScore(ShownScore):
    """Average crispness, the mean of the images' own, and the two evaluations.

    average is NaN where every map is empty; per_image : (image id, its crispness), in id order
    """

    average: float
    seval: BoundaryScore
    ceval: BoundaryScore
    n_images: int
    per_image: tuple[tuple[str, float], ...]

    def to_mapping(self) -> dict[str, Any]:
        return {
            "average": None if np.isnan(self.average) else self.average,
            "seval": self.seval.to_mapping(),
            "ceval": self.ceval.to_mapping(),
            "n_images": self.n_images,
        }


class CrispnessMetric(Metric):
    """How thin the raw maps of a detector are: average crispness, SEval and CEval in one run."""

    name = "crispness"
    title = "Crispness"
    pred_kinds = ("soft",)
    counts_type = CrispnessCounts
    default_protocol = "crispness-seval"
    columns: ClassVar[tuple[Column, ...]] = (
        Column("average", "Average crispness", "AC"),
        *(
            Column(f"{part}.{key}", f"{title} {key.upper()}", f"{title[0]} {key.upper()}")
            for part, title in (("seval", "SEval"), ("ceval", "CEval"))
            for key in ("ods", "ois", "ap")
        ),
        Column("n_images", "images", "n", digits=0, shown="own", score=False),
    )
    part_columns = BoundaryMetric.columns
    image_columns: ClassVar[tuple[Column, ...]] = (
        Column("crispness", "crispness"),
        Column("seval", "SEval F"),
        Column("ceval", "CEval F"),
    )

    uses = tuple(field for field in MATCHED if field not in ("nms", "thin"))

    def check(self, protocol: Protocol) -> None:
        """NMS and thinning of its own presets are not to be changed. Raises ProtocolError."""
        preset = protocol.name.removesuffix("*")
        if preset in ("crispness-seval", "crispness-ceval"):
            base = Protocol.preset(preset)
            if (protocol.nms, protocol.thin) != (base.nms, base.thin):
                raise ProtocolError(f"{preset}: nms and thin are what SEval and CEval differ in")

    def count(self, pred: Prediction, gt: GroundTruth, protocol: Protocol) -> CrispnessCounts:
        """Sums of the raw map and its NMS, and the boundary counts of SEval and CEval."""
        if pred.soft is None:
            raise DataError(
                f"{pred.path or pred.image_id}: no soft map, expected the raw map of a detector"
            )
        raw = invert(pred.soft) if protocol.invert else pred.soft
        kept, total = crispness_sums(raw, CRISPNESS_NMS)
        parts = [boundary_counts(pred, gt, p) for p in evaluations(protocol).values()]
        return CrispnessCounts(
            protocol.threshold_array(),
            np.array(kept),
            np.array(total),
            *(four_counts(c) for c in parts),
        )

    def scores(self, stack: Stack, weights: Weights, protocol: Protocol) -> dict[str, F8]:
        """The mean crispness of the images that have any strength; SEval, CEval."""
        share = defined_ratio(stack["kept"], stack["total"])
        out = {"average": weighted_mean(weights, share)}
        for part in ("seval", "ceval"):
            found = curve_columns(stack["thresholds"], stack[part], weights, protocol)
            out |= {f"{part}.{key}": value for key, value in found.items()}
        return out

    def result(
        self, values: Mapping[str, float], stack: Stack, ids: Sequence[str], protocol: Protocol
    ) -> CrispnessScore:
        parts = {
            part: boundary_result(
                within(values, part), stack["thresholds"], stack[part], ids, protocol
            )
            for part in ("seval", "ceval")
        }
        each = map(_share, stack["kept"], stack["total"])
        per_image = tuple(zip(ids, each, strict=True))
        return CrispnessScore(values["average"], **parts, n_images=len(ids), per_image=per_image)

    def image_values(self, counts: CrispnessCounts) -> dict[str, float]:
        best = {p: best_point(pr_curve(counts.counts_of(p))).f for p in ("seval", "ceval")}
        return {"crispness": _share(counts.kept, counts.total), **best}

    def parts(self, score: CrispnessScore) -> Mapping[str, Any]:
        return {"SEval": score.seval, "CEval": score.ceval}

    def describe(self, protocol: Protocol) -> str:
        """How the two evaluations differ."""
        return f"SEval thinned after NMS {protocol.nms_params.describe()}, CEval neither"

    def files(
        self, score: CrispnessScore, records: Sequence[ImageRecord], protocol: Protocol
    ) -> Iterator[tuple[str, str]]:
        for part in ("seval", "ceval"):
            images = ((k, c.counts_of(part)) for k, c in counts_in_order(records, self.name))
            for name, text in boundary_files(getattr(score, part), images):
                yield f"{part}/{name}", text

    def same_truth(self, a: CrispnessCounts, b: CrispnessCounts) -> bool:
        return set(a.ceval[:, 1].tolist()) == set(b.ceval[:, 1].tolist())

    def example(self) -> tuple[Prediction, GroundTruth, Protocol]:
        pred, gt, protocol = BoundaryMetric().example()
        return pred, gt, protocol.replace(nms=True)


def evaluations(protocol: Protocol) -> dict[str, Protocol]:
    """SEval with NMS and thinning, CEval with neither; all else as in `protocol`."""
    name = protocol.name.removesuffix("*").replace("-seval", "").replace("-ceval", "")
    return {
        "seval": protocol.replace(nms=True, thin=True).named(f"{name}-seval"),
        "ceval": protocol.replace(nms=False, thin=False).named(f"{name}-ceval"),
    }


def crispness_sums(soft: NDArray[Any], params: NMSParams) -> tuple[float, float]:
    """sum(NMS map) and sum(raw map) of one soft map (H, W)."""
    raw = as_float32(soft)
    thin = nms(raw, params.radius, params.border, params.multiplier, params.smooth)
    return float(thin.sum(dtype=np.float64)), float(raw.sum(dtype=np.float64))


def _share(kept: Any, total: Any) -> float:
    """kept / total; NaN for a map without any strength, which has no crispness."""
    return float(kept / total) if total else float("nan")


def image_crispness(soft: NDArray[Any], params: NMSParams | None = None) -> float:
    """sum(NMS map) / sum(raw map) of one soft map, bright on dark; undefined for an all-zero map.

    Parameters
    ----------
    soft : (H, W) array of uint8, uint16, bool or float in [0, 1]
    params : NMSParams, optional
        CRISPNESS_NMS (2, 5, 1.01, the map not smoothed) if None. Nothing is rounded to bytes.

    Returns
    -------
    float
        In [0, 1] without smoothing. NaN for an empty or all-zero map.

    Raises
    ------
    ShapeError, DataError
        For what is no soft map.

    References
    ----------
    Ye, Xu, Huang, Yi, Cai, "Delving into Crispness: Guided Label Refinement for Crisp Edge
    Detection", TIP 2023 (arXiv 2306.15172), and its program eval_crispness.m.

    Examples
    --------
    >>> import numpy as np
    >>> thin, thick = np.zeros((2, 30, 40), np.float32)
    >>> thin[:, 20], thick[:, 18:23] = 1, [0.6, 0.8, 1, 0.8, 0.6]
    >>> round(image_crispness(thin), 2), round(image_crispness(thick), 2)
    (0.8, 0.21)
    """
    return _share(*crispness_sums(soft, params or CRISPNESS_NMS))
