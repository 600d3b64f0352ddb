"""The doctor's findings on maps: level ridges, values on thresholds, double edges, places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bsdsbench.diagnosis import symptoms
from bsdsbench.diagnosis.findings import Finding, counted
from bsdsbench.files.errors import DataError
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs.first_look import position, swaps
from bsdsbench.scores.curve import four_counts
from bsdsbench.scores.ratios import f_measure, ratio

# ODS that many-to-one matching adds: .03 to .11 for sound maps (BSDS500 val ucm2 .026, HED .038)
GAIN = 0.14
FEW = 4  # images that are matched
COARSE = 9  # thresholds that they are matched at


def many_to_one(cases: Sequence[Any], protocol: Protocol) -> list[Finding]:
    """Maps that would score far more if a pixel could be matched any number of times."""
    chosen = [c for c in cases if not c.faults][:: max(1, -(-len(cases) // FEW))]
    if not chosen or not protocol.thin:
        return []
    try:
        own, many = _scores(chosen, protocol.replace(thresholds=COARSE))
    except DataError:
        return []
    if many - own <= GAIN:
        return []
    message = (
        f"edges are detected more than once: ODS about {own:.2f} one to one, as the benchmark "
        f"matches, {many:.2f} many to one, as home-made scripts with a distance transform do"
    )
    fix = "thin the maps (--nms); do not compare with numbers from such scripts"
    return [Finding("many-to-one", "warning", message, tuple(c.file for c in chosen), fix)]


def _scores(cases: Sequence[Any], protocol: Protocol) -> tuple[float, float]:
    """ODS of a few images, matched one to one and many to one."""
    from bsdsbench.metrics.boundary import boundary_counts
    from bsdsbench.metrics.many_to_one import many_to_one_counts

    best = []
    for count in (boundary_counts, many_to_one_counts):
        total = np.sum([four_counts(count(c.pred, c.gt, protocol)) for c in cases], axis=0)
        found = f_measure(ratio(total[:, 2], total[:, 3]), ratio(total[:, 0], total[:, 1]))
        best.append(float(found.max()))
    return best[0], best[1]


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


def wrong_places(cases: Sequence[Any]) -> list[Finding]:
    """Maps that lie mirrored or transposed, or belong to another image: all of them are asked."""
    cases = [c for c in cases if not c.faults and c.look.measured]
    ways: dict[str, list[Any]] = {}
    for case in cases:
        if way := position(case.look):
            ways.setdefault(way, []).append(case)
    found = []
    for way, turned in ways.items():
        message = f"{counted(len(turned), 'map')} would fit the ground truth better {way}"
        code = "transposed" if way == "transposed" else "mirrored"
        found.append(an_error(code, message, turned, "turn them back before saving"))
    by_id = {c.image_id: c for c in cases if not c.faults}
    if swapped := dict(swaps([c.look for c in by_id.values()])):
        a, b = next(iter(swapped.items()))
        message = (
            f"{counted(len(swapped), 'map')} would fit the ground truth of another image, such as "
            f"the map of {a} that of {b}"
        )
        fix = "check the order of names and maps where they are saved"
        found.append(an_error("exchanged", message, [by_id[i] for i in swapped], fix))
    return found


def an_error(code: str, message: str, cases: Sequence[Any], fix: str = "") -> Finding:
    """An error of these files; they are not measured any further."""
    for case in cases:
        case.faults.add(code)
    return Finding(code, "error", message, tuple(c.file for c in cases), fix)
