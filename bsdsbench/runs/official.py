"""Runs from official result files, whichever program wrote them.

ID_ev1.txt files hold the counts of each image, so a folder of them is a whole Evaluation, to be
compared and bootstrapped like your own. eval_*.txt alone give a curve and scores.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.bounded import reading
from bsdsbench.files.errors import FileFormatError
from bsdsbench.loaders.official_txt import SBD_COLUMNS, read_run_folder
from bsdsbench.metrics import registry
from bsdsbench.protocol.protocol import UNSTATED, UNSTATED_GRID, Protocol, even_thresholds
from bsdsbench.scores.counts import Counts, ImageRecord, Score


def official_run(path: Path) -> dict[str, Any]:
    """A run from a folder of official files, as the arguments of an Evaluation.

    Image sizes are not in those files and are (0, 0). Raises FileFormatError if there are no
    official files, damaged ones, or if their thresholds differ.
    """
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
    protocol = Protocol(name=UNSTATED_GRID)
    if grid.size and grid[0] >= 0 and 0 < grid[-1] <= 1 and np.all(np.diff(grid) > 0):
        protocol = Protocol(name=UNSTATED, thresholds=tuple(grid.tolist()))
    records, reported, origin = list[ImageRecord](), dict[str, Score](), {"official": str(path)}
    if first is None:
        if tables.get("eval_bdry.txt", bare).shape[1] == SBD_COLUMNS:
            protocol = protocol.replace(ap_rule="sbd", name=protocol.name)
        with reading(path, "official tables"):
            for metric in map(registry.get, registry.names()):
                if (found := metric.reported(tables)) is not None:
                    reported[metric.name] = Score(found)
    else:
        origin["note"] = "official files, protocol not stated"
    for image_id, own in counts.items():
        if own.thresholds.shape != grid.shape or not np.allclose(own.thresholds, printed):
            raise FileFormatError(f"{path}: thresholds of {image_id!r} differ from the others'")
        named = {registry.DEFAULT[0]: Counts(**{**own, "thresholds": grid})}
        records.append(ImageRecord(image_id, (0, 0), named))
    about = {"protocol": protocol, "name": path.resolve().name, "provenance": origin}
    return {**about, "records": records, "reported": reported}
