"""What the doctor says of edges that are answered more than once: one-to-one matching counts the
second answer as false, a distance transform hides it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bsdsbench.core.errors import DataError
from bsdsbench.core.precision_recall import f_measure, four_counts, ratio
from bsdsbench.core.protocol import Protocol
from bsdsbench.diagnosis.findings import Finding

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
        f"edges are answered more than once: ODS about {own:.2f} one to one, as the benchmark "
        f"matches, {many:.2f} many to one, as home-made scripts with a distance transform do"
    )
    fix = "thin the maps (--nms); do not compare with numbers of such scripts"
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
