"""What the doctor says of a few maps: level ridges, and values on the grid of thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bsdsbench.core.protocol import Protocol
from bsdsbench.diagnosis import symptoms
from bsdsbench.diagnosis.findings import Finding

# no map of the sample has a value of exactly k/100 or a level ridge
HUNDREDTHS = 0.01
LEVEL = 0.01


def level_ridges(cases: Sequence[Any], protocol: Protocol) -> list[Finding]:
    """Exactly horizontal ridges, which the NMS compares along themselves."""
    if not protocol.nms:
        return []
    found = [c for c in cases if symptoms.level_ridges(c.soft) > LEVEL]
    if not found:
        return []
    message = (
        f"{len(found)} of {len(cases)} maps have exactly horizontal ridges: NMS takes their "
        "orientation as 0 and leaves them thick, as every program of it does"
    )
    return [Finding("level-ridges", "warning", message, tuple(c.file for c in found))]


def grid_values(cases: Sequence[Any], protocol: Protocol) -> list[Finding]:
    """Values that are k/100, where the grid of thresholds is 0.01 .. 0.99 in MATLAB's bits."""
    grid = set(protocol.thresholds)
    off = sum(
        k / 100 not in grid and round(k / 100, 9) in {round(t, 9) for t in grid}
        for k in range(1, 100)
    )
    floats = [c for c in cases if c.pred.soft is not None and c.pred.soft.dtype.kind == "f"]
    found = [
        c
        for c in floats
        if c.pred.soft is not None and symptoms.on_hundredths(c.pred.soft) > HUNDREDTHS
    ]
    if not off or not found or protocol.nms:
        return []
    message = (
        f"{len(found)} of {len(floats)} float maps hold values of exactly k/100; the thresholds "
        f"are MATLAB's linspace, {off} of which differ from k/100 in the last bit: rounding "
        "decides whether such a value is on"
    )
    fix = "save the maps unrounded, or as 8 or 16 bit PNG"
    return [Finding("grid-values", "warning", message, tuple(c.file for c in found), fix)]
