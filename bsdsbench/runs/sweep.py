"""The same predictions at many match tolerances."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bsdsbench.files.errors import ProtocolError
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs.evaluation import Evaluation
from bsdsbench.runs.runner import evaluate


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
