"""Reference runs: the stored boundary counts of 12 methods on the test images of BSDS500.

`ref:NAME` can be used in place of a run's folder. SEISM (Pont-Tuset and Marques, PAMI 2016) stores
these counts, version 3: every image at every parameter of the method, matched by the official
randomised solver. There are no maps, so nothing can be counted again.

For each method the file has its `parameter` (T,) as text. matched_gt, unmatched predicted pixels
and total_pred are stored as differences along T, split into planes of bytes. `ids` (N,) and
`total_gt` (N,) are shared.
"""

from __future__ import annotations

from collections.abc import Mapping
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
from bsdsbench.runs.run_identity import PREFIX, SOURCE, references
from bsdsbench.scores.counts import ImageRecord
from bsdsbench.scores.curve import curve_counts

SET = "bsds500-test"
_PARTS = ("matched_gt", "unmatched_pred", "total_pred")
_SHIFTS = (0, 8, 16)
Arrays = dict[str, NDArray[Any]]


def reference_parts(name: str) -> tuple[Protocol, str, tuple[ImageRecord, ...], dict[str, Any]]:
    """Protocol, name, records and provenance of `ref:NAME`. Raises DataError for another name."""
    key = name.removeprefix(PREFIX).lower()
    if key not in references():
        known = ", ".join(references())
        raise DataError(
            f"{name}: no such reference run, expected {PREFIX} and one of {known}"
            f"{did_you_mean(key, references())}"
        )
    about, arrays = references()[key], _stored()
    parameter = arrays[f"{key}.parameter"]
    thresholds = axis_of(parameter)
    protocol = Protocol.preset("bsds500").replace(ods_rule="maximum")
    if about.form != "segmentations":
        protocol = protocol.replace(thresholds=tuple(thresholds.tolist()))
    truths = next(known.images for known in shipped_sets() if known.name == SET)
    hit, missed, total = (_unpacked(arrays, f"{key}.{part}") for part in _PARTS)
    records = []
    for i, image_id in enumerate(arrays["ids"].tolist()):
        truth = np.full(len(parameter), arrays["total_gt"][i], np.int64)
        four = np.column_stack([hit[i], truth, total[i] - missed[i], total[i]])
        counts = curve_counts(thresholds, four)
        named = {registry.DEFAULT[0]: counts}
        mark = truths[image_id]
        records.append(ImageRecord(image_id, (0, 0), named, truth=mark, form=_FORMS[about.form]))
    origin = {"reference": key, "source": SOURCE, "about": about.describe(len(parameter))}
    return protocol, f"{PREFIX}{key}", tuple(records), origin


_FORMS = {"contours": "contours", "hierarchy": "ucm2", "segmentations": "segs"}


def axis_of(parameter: NDArray[Any]) -> NDArray[np.float64]:
    """Thresholds for a curve: the parameters where they lie in (0, 1), else 1 .. T."""
    try:
        values = parameter.astype(np.float64)
    except ValueError:  # combinations
        values = np.array([np.inf])
    inside = values.min() > 0 and values.max() < 1
    return values if inside else np.arange(1.0, parameter.size + 1)


def packed(stored: Mapping[str, Mapping[str, NDArray[Any]]]) -> bytes:
    """The bytes of references.npz of method -> ids, parameter and the four counts (N, T)."""
    first = next(iter(stored.values()))
    out: Arrays = {"ids": first["ids"], "total_gt": first["total_gt"][:, 0]}
    for key, counts in stored.items():
        if (counts["total_gt"] != out["total_gt"][:, None]).any() or (
            counts["ids"] != out["ids"]
        ).any():
            raise DataError(f"{key}: other images or annotations than the first, expected the same")
        out[f"{key}.parameter"] = counts["parameter"]
        missed = counts["total_pred"] - counts["matched_pred"]
        for part, values in zip(
            _PARTS, (counts["matched_gt"], missed, counts["total_pred"]), strict=True
        ):
            steps = np.diff(values.T.astype(np.int64), axis=0, prepend=0)
            folded = np.where(steps < 0, -2 * steps - 1, 2 * steps)
            out[f"{key}.{part}"] = np.stack([folded >> k & 255 for k in _SHIFTS]).astype(np.uint8)
    buffer = BytesIO()
    np.savez_compressed(buffer, **out)  # type: ignore[arg-type]
    return buffer.getvalue()


@lru_cache(maxsize=1)
def _stored() -> Arrays:
    data = resources.files("bsdsbench.runs").joinpath("references.npz").read_bytes()
    with np.load(BytesIO(data)) as file:
        return dict(file)


def _unpacked(arrays: Arrays, name: str) -> NDArray[np.int64]:
    """Counts (N, T) from the planes of bytes of their steps (3, T, N)."""
    folded = sum(
        plane << k for k, plane in zip(_SHIFTS, arrays[name].astype(np.int64), strict=True)
    )
    steps = np.where(folded & 1, -(folded + 1) // 2, folded // 2)
    return np.ascontiguousarray(steps.cumsum(axis=0).T)
