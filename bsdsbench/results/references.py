"""Load runs that other programs counted: official files, and reference runs.

ID_ev1.txt files hold the counts of each image, so a folder of them is a complete Evaluation that
can be compared and bootstrapped. eval_*.txt files alone give a curve and scores.

A reference run `ref:NAME` can be used like the folder of a run. It has the boundary counts of a
method on the test images of BSDS500, for every image and every parameter of the method, matched by
the official randomised solver. The counts are from SEISM (Pont-Tuset and Marques, PAMI 2016),
version 3, with 12 methods, and from SAUGE (AAAI 2025), with its variants and granularities. There
are no maps, so nothing can be counted again.

references.npz has for each method its `parameter` (T,) as text; matched_gt, unmatched predicted
pixels and total_pred are stored as differences along T, split into planes of bytes. `ids` (N,) and
`total_gt` (N,) are shared.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Required, TypedDict

import numpy as np

from bsdsbench.arguments import F8
from bsdsbench.errors import DataError, FileFormatError
from bsdsbench.io import reading
from bsdsbench.loaders.formats.official_txt import SBD_COLUMNS, read_run_folder
from bsdsbench.loaders.sets.identity import shipped_sets
from bsdsbench.metrics import registry
from bsdsbench.metrics.optional import OfficialTables
from bsdsbench.protocol.protocol import UNSTATED, UNSTATED_GRID, Protocol
from bsdsbench.protocol.thresholds import even_thresholds
from bsdsbench.results.provenance import Provenance
from bsdsbench.scores.counts import ImageRecord, MatchCounts, Score
from bsdsbench.text import did_you_mean

if TYPE_CHECKING:
    from bsdsbench.results.evaluation import Evaluation

PREFIX, SET = "ref:", "bsds500-test"
SOLVER = "the official randomised solver"
# How much two runs of it differ in ODS; in an image, at most 19 of some thousands of counts.
SOLVER_MOVES = 0.0003
# How many pairs it loses in a map: 4 on average, 9 at most, in 33 maps of 5 images, 10 runs of each
PAIRS_LOST = 4
# What the stored counts of a reference run do not tell.
NOT_STATED = frozenset(["nms", "nms_params", "operator"])
_PARTS = ("matched_gt", "unmatched_pred", "total_pred")
SHIFTS = (0, 8, 16)
_FORMS = {"contours": "contours", "hierarchy": "ucm2", "segmentations": "segs"}


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference run: its form, parameters and source."""

    key: str  # what follows `ref:`
    name: str
    year: int | None
    form: str  # "contours", "segmentations", or "hierarchy" for thresholds of an ultrametric map
    parameter: str  # the method's own axis, in words
    paper: str  # where the method is described
    ordered: bool = True  # False if the axis is a list of combinations, not to be interpolated
    note: str = ""  # a remark about the counts
    # Who published the counts, with their licence
    source: str = "stored results of SEISM v3 (Pont-Tuset and Marques, PAMI 2016)"
    ods_rule: str = "maximum"  # of the scores that were published with the counts
    ap_rule: str = "bsds"


class RunArguments(TypedDict, total=False):
    """The arguments of an Evaluation that was read from files."""

    protocol: Required[Protocol]
    name: Required[str]
    records: Required[Sequence[ImageRecord]]
    provenance: Provenance
    reported: dict[str, Score]
    failed: dict[str, str]


@lru_cache(maxsize=1)
def references() -> dict[str, Reference]:
    """Return the reference runs by key, in the order of the shipped table (references.json)."""
    text = resources.files("bsdsbench.results").joinpath("references.json").read_text("utf-8")
    return {row["key"]: Reference(**row) for row in json.loads(text)}


def reference_run(name: str) -> RunArguments:
    """Return the reference run `ref:NAME` as arguments of an Evaluation.

    Raises DataError if there is no such reference run.
    """
    key = name.removeprefix(PREFIX).lower()
    if key not in references():
        known = ", ".join(references())
        raise DataError(
            f"{name}: no such reference run, expected {PREFIX} and one of {known}"
            f"{did_you_mean(key, references())}"
        )
    reference, counts = references()[key], []
    data = resources.files("bsdsbench.results").joinpath("references.npz").read_bytes()
    with np.load(BytesIO(data)) as file:
        parameter, ids, total_gt = file[f"{key}.parameter"], file["ids"].tolist(), file["total_gt"]
        for part in _PARTS:  # counts (N, T) from the planes of bytes of their steps (3, T, N)
            planes = zip(SHIFTS, file[f"{key}.{part}"].astype(np.int64), strict=True)
            folded = sum([plane << k for k, plane in planes])
            steps = np.where(folded & 1, -(folded + 1) // 2, folded // 2)
            counts.append(steps.cumsum(axis=0).T)
    matched_gt, unmatched_pred, total_pred = counts
    try:
        thresholds = parameter.astype(np.float64)
    except ValueError:  # combinations
        thresholds = np.array([np.inf])
    if thresholds.min() < 0 or thresholds.max() >= 1:
        thresholds = np.arange(1.0, parameter.size + 1)
    thresholds = _even_grid(thresholds)
    rules = {"ods_rule": reference.ods_rule, "ap_rule": reference.ap_rule}
    protocol = Protocol.preset("bsds500").replace(**rules)
    if reference.form != "segmentations":
        protocol = protocol.replace(thresholds=tuple(thresholds.tolist()))
    truths, records = shipped_sets()[SET], []
    for i, image_id in enumerate(ids):
        truth = np.full(len(parameter), total_gt[i], np.int64)
        matched_pred = total_pred[i] - unmatched_pred[i]
        rows = np.column_stack([matched_gt[i], truth, matched_pred, total_pred[i]])
        named = {registry.DEFAULT_METRICS[0]: MatchCounts(thresholds, rows)}
        form = _FORMS[reference.form]
        records.append(ImageRecord(image_id, (0, 0), named, truth=truths[image_id], form=form))
    source = f"{reference.source}, matched by {SOLVER}"
    counted = f"{reference.form}, {len(parameter)} {reference.parameter}; {source}"
    note = f"{counted}; {reference.note}" if reference.note else counted
    origin = Provenance(reference=key, source=reference.source, about=note)
    return {"protocol": protocol, "name": PREFIX + key, "records": records, "provenance": origin}


def official_run(path: Path) -> RunArguments:
    """Return a run from a folder of official files, as arguments of an Evaluation.

    The files do not hold image sizes, which are (0, 0). Raises FileFormatError if there are no
    official files, if they are damaged, or if their thresholds differ.
    """
    tables = read_run_folder(path)
    counts, bare = tables.pop("ev1"), np.zeros((0, 4))
    first = next(iter(counts.values())).thresholds if counts else None
    printed = tables.get("eval_bdry_thr.txt", bare)[:, 0] if first is None else first
    grid = _even_grid(printed)
    protocol = Protocol(name=UNSTATED_GRID)
    if grid.size and grid[0] >= 0 and 0 < grid[-1] <= 1 and np.all(np.diff(grid) > 0):
        protocol = Protocol(name=UNSTATED, thresholds=tuple(grid.tolist()))
    records, reported, origin = [], {}, Provenance(official=str(path))
    if first is None:
        if tables.get("eval_bdry.txt", bare).shape[1] == SBD_COLUMNS:
            protocol = protocol.replace(ap_rule="sbd", name=protocol.name)
        with reading(path, "official tables"):
            for metric in map(registry.get, registry.names()):
                scores = metric.reported(tables) if isinstance(metric, OfficialTables) else None
                if scores is not None:
                    reported[metric.name] = Score(scores)
    for image_id, of_image in counts.items():
        thresholds = of_image.thresholds
        if thresholds.shape != grid.shape or not np.allclose(thresholds, printed):
            raise FileFormatError(f"{path}: thresholds of {image_id!r} differ from the others'")
        named = {registry.DEFAULT_METRICS[0]: MatchCounts(grid, of_image.matches)}
        records.append(ImageRecord(image_id, (0, 0), named))
    return {
        "protocol": protocol,
        "name": path.resolve().name,
        "records": records,
        "provenance": origin,
        "reported": reported,
    }


def _even_grid(printed: F8) -> F8:
    """Return the exact even grid if the thresholds are that grid printed with six digits.

    Other thresholds are returned unchanged. A row of threshold 0 before the grid stays.
    """
    zero = int(printed.size > 1 and printed[0] == 0)
    even = np.r_[[0.0] * zero, even_thresholds(printed.size - zero)]
    return even if np.allclose(printed, even, rtol=0, atol=2e-6) else printed


def with_common_rules(runs: list[Evaluation]) -> list[Evaluation]:
    """Give reference runs the AP and ODS rules of the first run that is not a reference run.

    If all runs are reference runs, they get the rules of bsds500 if their AP rules differ. The runs
    are returned unchanged if their AP rules agree, or if the first run states no rules.
    """
    has_several_rules = len({run.protocol.ap_rule for run in runs}) > 1
    fallback = Protocol.preset("bsds500") if has_several_rules else None
    rules = next((run.protocol for run in runs if run.reference is None), fallback)
    if rules is None or not rules.stated:
        return runs
    aligned = []
    for run in runs:
        if run.reference is not None:
            # A curve without order has no other ODS than its maximum
            ods_rule = rules.ods_rule if run.reference.ordered else "maximum"
            protocol = run.protocol.replace(ap_rule=rules.ap_rule, ods_rule=ods_rule)
            run = replace(run, protocol=protocol)
        aligned.append(run)
    return aligned
