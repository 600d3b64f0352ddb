"""Runs from official result files, whichever program wrote them.

ID_ev1.txt files hold the counts of each image, so a folder of them is a whole Evaluation, to be
compared and bootstrapped like your own. eval_*.txt alone give a curve and scores.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.errors import DataError, FileFormatError
from bsdsbench.loaders.official_txt import SBD_COLUMNS, read_run_folder
from bsdsbench.metrics import registry
from bsdsbench.protocol.protocol import UNSTATED, UNSTATED_GRID, Protocol, even_thresholds
from bsdsbench.scores.counts import Counts, ImageRecord, Score


@dataclass(frozen=True, eq=False)
class ReportedRun:
    """A run known by its official tables only: scores and a curve, no image's counts."""

    name: str
    protocol: Protocol
    tables: dict[str, Any]
    provenance: dict[str, Any] = field(default_factory=dict)
    # What an Evaluation has, and is not known here
    records: tuple[ImageRecord, ...] = ()
    tasks: tuple[Any, ...] = ()
    identity: None = None
    reference: None = None
    signature: str = ""
    signature_line: str = ""
    set_line: str = ""

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics there are tables of."""
        return tuple(self._scores)

    @cached_property
    def _scores(self) -> dict[str, Score]:
        """Metric -> what the tables hold of it. Raises DataError where they lack something."""
        every = ((m, registry.get(m).reported(self.tables)) for m in registry.names())
        try:
            return {m: Score(found) for m, found in every if found is not None}
        except DataError as error:
            raise DataError(f"{self.name}: {error}") from None

    @property
    def described(self) -> str:
        """How the scores are made, in words."""
        return registry.describe(self.metrics, self.protocol)

    @property
    def with_curve(self) -> tuple[str, ...]:
        """Those of its metrics that have a precision-recall curve."""
        return registry.with_curve(self.metrics, self.protocol)

    def score(self, metric: str) -> Any:
        """What the tables say of a metric. Raises DataError if there are none of it."""
        if metric not in self._scores:
            raise DataError(f"{self.name}: no official tables of {metric}, expected them")
        return self._scores[metric]

    def scores(self) -> dict[str, Any]:
        """Like `Evaluation.scores`, with what the tables hold."""
        return {metric: score.to_mapping() for metric, score in self._scores.items()}


def reported_run(folder: str | Path, name: str | None = None) -> tuple[Any, ...] | ReportedRun:
    """A run from a folder of official files: an Evaluation's parts where they have its counts.

    Image sizes are not in those files and are (0, 0). Raises FileFormatError if there are no
    official files, damaged ones, or if their thresholds differ.
    """
    path = Path(folder)
    tables = read_run_folder(path)
    counts, bare = tables.pop("ev1"), np.zeros((0, 4))
    first = next(iter(counts.values())).thresholds if counts else None
    printed = tables.get("eval_bdry_thr.txt", bare)[:, 0] if first is None else first
    # The even grid where the thresholds are that one as printed with six digits; a row of threshold
    # 0 before the grid stays before it
    zero = int(printed.size > 1 and printed[0] == 0)
    even = np.array(even_thresholds(printed.size - zero))
    near = np.allclose(printed[zero:], even, rtol=0, atol=2e-6)
    grid: NDArray[np.float64] = np.r_[[0.0] * zero, even] if near else printed
    valid = bool(np.all((grid >= 0) & (grid <= 1))) and grid.max(initial=0) > 0
    protocol = Protocol(name=UNSTATED_GRID)
    if valid and np.all(np.diff(grid) > 0):
        protocol = Protocol(name=UNSTATED, thresholds=tuple(grid.tolist()))
    shown, origin, records = name or path.resolve().name, {"official": str(path)}, []
    if first is None:
        if tables.get("eval_bdry.txt", bare).shape[1] == SBD_COLUMNS:
            protocol = protocol.replace(ap_rule="sbd", name=protocol.name)
        return ReportedRun(shown, protocol, tables, origin)
    origin["note"] = "official files, protocol not stated"
    for image_id, found in counts.items():
        if found.thresholds.shape != first.shape or not np.allclose(found.thresholds, first):
            raise FileFormatError(f"{path}: thresholds of {image_id!r} differ from the others'")
        own = {registry.DEFAULT[0]: Counts(**{**found, "thresholds": grid})}
        records.append(ImageRecord(image_id, (0, 0), own))
    return protocol, shown, records, origin
