"""Reference runs: the stored boundary counts of 12 methods on the test images of BSDS500.

`ref:NAME` can be used in place of a run's folder. SEISM (Pont-Tuset and Marques, PAMI 2016) stores
these counts, version 3: every image at every parameter of the method, matched by the official
randomised solver. There are no maps, so nothing can be counted again.

references.npz has for each method its `parameter` (T,) as text; matched_gt, unmatched predicted
pixels and total_pred are stored as differences along T, split into planes of bytes. `ids` (N,) and
`total_gt` (N,) are shared.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.errors import DataError, did_you_mean
from bsdsbench.loaders.identity import shipped_sets
from bsdsbench.metrics import registry
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import ImageRecord
from bsdsbench.scores.curve import curve_counts

PREFIX, SET = "ref:", "bsds500-test"
SOURCE = "stored results of SEISM v3 (Pont-Tuset and Marques, PAMI 2016)"
SOLVER = "the official randomised solver"
# How much that solver changes ODS; in an image, at most 19 of some thousands of counts.
SOLVER_MOVES = 0.0003
# What the stored counts of a reference run do not tell.
NOT_STATED = frozenset(["nms", "nms_params", "operator"])
PARTS = ("matched_gt", "unmatched_pred", "total_pred")
SHIFTS = (0, 8, 16)
MUST_AGREE = ("max_dist", "max_dist_px", "ap_rule")  # of a reference run's protocol
FORMS = {"contours": "contours", "hierarchy": "ucm2", "segmentations": "segs"}


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference run: its form, parameters and source.

    key       : what follows `ref:`
    form      : "contours", "segmentations", or "hierarchy" for thresholds of an ultrametric map
    parameter : the method's own axis, in words
    ordered   : False if the axis is a list of combinations, which cannot be interpolated
    paper     : where the method is described; note : a remark about the counts
    """

    key: str
    name: str
    year: int | None
    form: str
    parameter: str
    paper: str
    ordered: bool = True
    note: str = ""


@lru_cache(maxsize=1)
def references() -> dict[str, Reference]:
    """Key -> what it is, in the order of the shipped table (references.json)."""
    text = resources.files("bsdsbench.runs").joinpath("references.json").read_text("utf-8")
    return {row["key"]: Reference(**row) for row in json.loads(text)}


def reference_run(name: str) -> tuple[Any, ...]:
    """The run `ref:NAME` as an Evaluation's parts. Raises DataError for another name."""
    key = name.removeprefix(PREFIX).lower()
    if key not in references():
        known = ", ".join(references())
        raise DataError(
            f"{name}: no such reference run, expected {PREFIX} and one of {known}"
            f"{did_you_mean(key, references())}"
        )
    about, arrays = references()[key], _stored()
    parameter = arrays[f"{key}.parameter"]
    try:
        thresholds = parameter.astype(np.float64)
    except ValueError:  # combinations
        thresholds = np.array([np.inf])
    if thresholds.min() <= 0 or thresholds.max() >= 1:
        thresholds = np.arange(1.0, parameter.size + 1)
    protocol = Protocol.preset("bsds500").replace(ods_rule="maximum")
    if about.form != "segmentations":
        protocol = protocol.replace(thresholds=tuple(thresholds.tolist()))
    truths = shipped_sets()[SET]
    hit, missed, total = (_unpacked(arrays[f"{key}.{part}"]) for part in PARTS)
    records = []
    for i, image_id in enumerate(arrays["ids"].tolist()):
        truth = np.full(len(parameter), arrays["total_gt"][i], np.int64)
        four = np.column_stack([hit[i], truth, total[i] - missed[i], total[i]])
        named = {registry.DEFAULT[0]: curve_counts(thresholds, four)}
        mark, form = truths[image_id], FORMS[about.form]
        records.append(ImageRecord(image_id, (0, 0), named, truth=mark, form=form))
    told = f"{about.form}, {len(parameter)} {about.parameter}; {SOURCE}, matched by {SOLVER}"
    origin = {
        "reference": key,
        "source": SOURCE,
        "about": "; ".join(filter(None, [told, about.note])),
    }
    return protocol, f"{PREFIX}{key}", records, origin


def incomparable(a: Any, b: Any) -> list[str]:
    """The differences of protocol that make the scores of two runs incomparable, one per line.

    A reference run has its own parameters and was matched and thinned by its program. Only its
    tolerance and AP rule are compared, and `as_runs` sets the latter. Edge NMS may be done
    beforehand as well, so that it is no difference.
    """
    lines = [line for line in a.protocol.differences(b.protocol) if not line.startswith("nms")]
    if a.reference is None and b.reference is None:
        return lines
    return [line for line in lines if line.partition(":")[0] in MUST_AGREE]


@lru_cache(maxsize=1)
def _stored() -> dict[str, NDArray[Any]]:
    data = resources.files("bsdsbench.runs").joinpath("references.npz").read_bytes()
    with np.load(BytesIO(data)) as file:
        return dict(file)


def _unpacked(planes: NDArray[Any]) -> NDArray[np.int64]:
    """Counts (N, T) from the planes of bytes of their steps (3, T, N)."""
    folded = sum(plane << k for k, plane in zip(SHIFTS, planes.astype(np.int64), strict=True))
    steps = np.where(folded & 1, -(folded + 1) // 2, folded // 2)
    return np.ascontiguousarray(steps.cumsum(axis=0).T)
