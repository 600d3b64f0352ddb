"""Crispness: how thin the raw edges are, and what thickness costs.

Average crispness is the mean over images of sum(NMS map) / sum(raw map), with the NMS constants of
the crispness papers (2, 5, 1.01). SEval is the standard evaluation (NMS, then thinning), CEval the
one without either, in which thick edges pay in precision. All three take the raw maps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.core.errors import DataError, ProtocolError
from bsdsbench.core.precision_recall import BoundaryScore, ratio
from bsdsbench.core.protocol import NMSParams, Protocol
from bsdsbench.core.softmap import as_float32, invert, nms
from bsdsbench.loaders import load_prediction
from bsdsbench.runs.evaluation import Evaluation


@dataclass(frozen=True, slots=True, eq=False)
class Crispness:
    """Average crispness with each image's own, and the two evaluations."""

    average: float
    per_image: tuple[tuple[str, float], ...]
    seval: Evaluation
    ceval: Evaluation

    def scores(self) -> tuple[BoundaryScore, BoundaryScore]:
        """SEval and CEval."""
        return self.seval.boundary_score(), self.ceval.boundary_score()

    def to_mapping(self) -> dict[str, Any]:
        """Plain values for JSON."""
        seval, ceval = self.scores()
        return {
            "average_crispness": self.average,
            "seval": seval.to_mapping(),
            "ceval": ceval.to_mapping(),
            "protocols": [self.seval.protocol.to_mapping(), self.ceval.protocol.to_mapping()],
            "per_image": dict(self.per_image),
        }


def image_crispness(soft: NDArray[Any], params: NMSParams | None = None) -> float:
    """sum(NMS map) / sum(raw map) of one soft map (H, W); 0 for an empty or all-zero map.

    params : the constants of crispness-seval if None. With smooth the NMS map holds the smoothed
    strengths, as in the programs the published numbers come from. No rounding to bytes.
    Source: Huang et al., "Unmixing Convolutional Features for Crisp Edge Detection", PAMI 2021.
    """
    p = params or Protocol.preset("crispness-seval").nms_params
    raw = as_float32(soft)
    thin = nms(raw, p.radius, p.border, p.multiplier, p.smooth)
    return float(ratio(thin.sum(dtype=np.float64), raw.sum(dtype=np.float64)))


def crispness(
    pred_dir: str | Path,
    gt_dir: str | Path,
    *,
    changes: dict[str, Any] | None = None,
    out: str | Path | None = None,
    **options: Any,
) -> Crispness:
    """Average crispness, SEval and CEval of a folder of raw maps.

    changes : fields of both protocols to change, as for `Protocol.replace`
    out     : the two evaluations are saved in its folders seval and ceval
    options : as for `evaluate` (workers, split_file, missing, progress, ..)
    Raises DataError for predictions that are no soft maps, ProtocolError if `changes` would make
    the two evaluations one.
    """
    from bsdsbench.loaders import pair
    from bsdsbench.runs.runner import evaluate

    changes = changes or {}
    if {"nms", "thin"} & changes.keys():
        raise ProtocolError("crispness: nms and thin are what SEval and CEval differ in")
    protocols = {
        k: Protocol.preset(f"crispness-{k}").replace(**changes) for k in ("seval", "ceval")
    }
    pairing = {k: v for k, v in options.items() if k in ("split_file", "missing")}
    params, flip = protocols["seval"].nms_params, protocols["seval"].invert
    per_image = []
    for each in pair(pred_dir, gt_dir, **pairing):
        if not each.pred_paths:
            continue
        soft = load_prediction(each.pred_paths, each.image_id).soft
        if soft is None:
            raise DataError(
                f"{each.pred_paths[0]}: no soft map, expected the raw map of a detector"
            )
        per_image.append((each.image_id, image_crispness(invert(soft) if flip else soft, params)))
    if not per_image:
        raise DataError(f"{pred_dir}: no predictions, expected at least one")
    runs = {
        k: evaluate(pred_dir, gt_dir, p, out=Path(out) / k if out else None, **options)
        for k, p in protocols.items()
    }
    average = float(np.mean([value for _, value in per_image]))
    return Crispness(average, tuple(per_image), runs["seval"], runs["ceval"])


def tolerance_sweep(
    pred_dir: str | Path,
    gt_dir: str | Path,
    protocol: Protocol,
    max_dists: Sequence[float],
    **options: Any,
) -> list[tuple[float, Evaluation]]:
    """Evaluate at each tolerance: (max_dist, Evaluation) in the order given.

    options as for `evaluate`, but for `out`. Raises ProtocolError for an empty list.
    """
    from bsdsbench.runs.runner import evaluate

    if not len(max_dists):
        raise ProtocolError("max_dist: no values, expected at least one tolerance")
    if protocol.max_dist_px is not None:
        raise ProtocolError("max_dist_px: given, expected max_dist as that is what changes")
    return [
        (float(d), evaluate(pred_dir, gt_dir, protocol.replace(max_dist=float(d)), **options))
        for d in max_dists
    ]


def parse_range(text: str) -> tuple[float, ...]:
    """ "0.001:0.02:10" -> 10 evenly spaced values from 0.001 to 0.02. Raises ProtocolError."""
    parts = text.split(":")
    try:
        low, high, count = float(parts[0]), float(parts[1]), int(parts[2])
    except (ValueError, IndexError):
        raise ProtocolError(f"{text!r}: expected FIRST:LAST:COUNT, such as 0.001:0.02:10") from None
    if len(parts) != 3 or not 0 < low < high < 1 or not 2 <= count <= 1000:
        raise ProtocolError(f"{text!r}: expected 0 < FIRST < LAST < 1 and a COUNT from 2 to 1000")
    return tuple(np.linspace(low, high, count).tolist())
