"""Shared by the adapters: the protocol from their arguments, and the location of their files."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bsdsbench.files.errors import DataError
from bsdsbench.files.writing import write_atomic
from bsdsbench.loaders.pairing import find_files
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs.evaluation import Evaluation
from bsdsbench.runs.runner import evaluate


def protocol_of(thresholds: Any, max_dist: float, thin: Any, **changes: Any) -> Protocol:
    """The bsds500 protocol with these constants; thresholds are a number of them or their values.

    Raises ProtocolError for values out of range.
    """
    changes = {
        "thresholds": thresholds_of(thresholds),
        "max_dist": float(max_dist),
        "thin": bool(thin),
        **changes,
    }
    return Protocol.preset("bsds500").replace(**changes)


def thresholds_of(given: Any) -> int | tuple[float, ...]:
    """A number of thresholds, or their values, as a Protocol takes them."""
    if isinstance(given, int | np.integer):
        return int(given)
    return tuple(np.asarray(given, float).ravel().tolist())


def evaluate_ids(
    pred: str | Path,
    gt: str | Path,
    ids: Iterable[str] | None,
    protocol: Protocol,
    metrics: Sequence[str] = ("boundary",),
    workers: int | None = None,
) -> Evaluation:
    """`evaluate` for these image ids; None: every image of the ground truth."""
    options: dict[str, Any] = {"metrics": metrics, "workers": workers}
    if ids is None:
        return evaluate(pred, gt, protocol, **options)
    with tempfile.TemporaryDirectory() as folder:
        split = Path(folder) / "ids.txt"
        split.write_text("".join(f"{image_id}\n" for image_id in ids), "utf-8")
        return evaluate(pred, gt, protocol, split_file=split, **options)


def write_official(
    run: Evaluation, folder: str | Path, parts: Mapping[str, str] | None = None
) -> Path:
    """The official txt files of a run in one folder, ID_ev1.txt among them. Raises OSError.

    parts : of a run whose tables stand in folders of their own, these folders and their new names
    """
    out = Path(folder)
    with tempfile.TemporaryDirectory() as scratch:
        run.save(scratch)
        for source, target in (parts or {"": ""}).items():
            for path in sorted((Path(scratch) / source).rglob("*.txt")):
                write_atomic(out / target / path.name, path.read_bytes(), durable=False)
    return out


def picture_ids(folder: str | Path) -> list[str]:
    """Ids of the pictures of a folder. Raises DataError if there are none."""
    found = sorted({path.stem for path in find_files(folder, (".jpg", ".jpeg", ".png"))})
    if not found:
        raise DataError(f"{folder}: no pictures, expected one per image to evaluate")
    return found
