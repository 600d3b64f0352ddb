"""Evidence in soft maps: whether any of their values counts."""

from __future__ import annotations

import numpy as np
from attrs import evolve

from bsdsbench.errors import Problem, Setting
from bsdsbench.images import Map, Prediction, few_lines, unit
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import Evidence, Values

# The largest value of a faint map, by the number of bytes per value. A faint map holds bytes of 0
# and 1, 8-bit values saved as 16 bit, or values divided by 255 twice. A single faint map may be an
# image without boundaries; a set of faint maps was saved wrongly, because every detector has
# stronger boundaries somewhere in a set.
_MAX_FAINT = {1: 9, 2: 255}


def _is_faint(soft: Map, protocol: Protocol, curve: bool = True) -> bool:
    """Return True if no value reaches the lowest threshold, or all values are small integers.

    `curve` is False for metrics without thresholds.
    """
    if protocol.normalise or soft.dtype == bool:
        return False
    max_faint = _MAX_FAINT[soft.dtype.itemsize] if soft.dtype.kind == "u" else -1
    lowest = min(filter(None, protocol.thresholds)) if curve else 0
    for lines in (few_lines(soft), soft):  # a few lines are enough for most maps
        top = lines.max(initial=0)
        if not (top <= max_faint or float(unit(np.asarray(top))) < lowest):
            return False
    return True


def soft_evidence(pred: Prediction, protocol: Protocol, curve: bool) -> Evidence:
    """Return the evidence of a prediction, with whether any value of its soft map counts.

    `curve` is False for metrics without thresholds. Arrays of floats are never faint: a network in
    training may give any numbers.
    """
    evidence = evolve(pred.evidence, maps=max(pred.evidence.maps, 1), file=pred.file)
    if pred.kind not in ("soft", "ucm2"):
        return evidence
    soft = pred.parts[pred.kind]
    if _is_faint(soft, protocol, curve) and (pred.path or soft.dtype.kind == "u"):
        return evolve(evidence, values=Values.FAINT, strongest=float(soft.max(initial=0)))
    return evolve(evidence, values=Values.STRONG)


def faint_problem(form: str, top: float) -> Problem:
    """Describe the problem of a set whose maps are all faint. `top` is its largest value."""
    full = {"soft8": 255, "soft16": 65535}.get(form, 1)
    may_be_labels = full > 1 and top > 1
    labels = (Setting("pred_kind", "labels", "reads region labels"),) if may_be_labels else ()
    return Problem(
        has=f"no value above {top:.4g}{f' of {full}' if full > 1 else ''} in any map (0/1 or "
        "labels saved as 8 bit, 8 bit saved as 16, divided by 255 twice?)",
        expected=f"strengths from 0 to {full}",
        fix=(
            Setting("normalise", True, "takes each map's largest value as 1"),
            *labels,
            "metric contour for masks and classes",
        ),
    )
