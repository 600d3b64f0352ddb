"""Runs from folders: ours (result.json), or official result files, whichever program wrote them.

ID_ev1.txt files hold the counts of each image, so a folder of them is a whole Evaluation, to be
compared and bootstrapped like one's own. From eval_*.txt alone come a curve and scores.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.core.errors import DataError, FileFormatError
from bsdsbench.core.precision_recall import (
    BoundaryScore,
    OperatingPoint,
    PRCurve,
    average_precision,
    best_point,
    recall_at_precision,
)
from bsdsbench.core.protocol import Protocol, even_thresholds
from bsdsbench.core.records import BoundaryCounts, ImageRecord
from bsdsbench.loaders.official_txt import read_run_folder
from bsdsbench.runs.evaluation import Evaluation

UNKNOWN = "official files, protocol not stated"


@dataclass(frozen=True, slots=True, eq=False)
class ReportedRun:
    """A run known by its official tables only: scores and a curve, no image's counts."""

    name: str
    protocol: Protocol
    tables: dict[str, Any]
    provenance: dict[str, Any] = field(default_factory=dict)
    records: tuple[ImageRecord, ...] = ()

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics there are tables of."""
        boundary = "eval_bdry_thr.txt" in self.tables or "eval_bdry.txt" in self.tables
        region = "eval_cover.txt" in self.tables or "eval_RI_VOI.txt" in self.tables
        return ("boundary",) * boundary + ("region",) * region

    def boundary_score(self) -> BoundaryScore:
        """The scores of eval_bdry.txt where it is there, of the curve otherwise.

        Raises DataError if there is no curve.
        """
        if "eval_bdry_thr.txt" not in self.tables:
            raise DataError(f"{self.name}: no eval_bdry_thr.txt, expected it for a curve")
        thresholds, recall, precision = self.tables["eval_bdry_thr.txt"][:, :3].T
        curve = PRCurve(thresholds, precision, recall)
        ods, ois, ap = best_point(curve), None, average_precision(curve)
        if "eval_bdry.txt" in self.tables:
            t, r, p, f, r_max, p_max, f_max, ap = self.tables["eval_bdry.txt"][0].tolist()
            ods, ois = OperatingPoint(t, p, r, f), OperatingPoint(None, p_max, r_max, f_max)
        images = self.tables.get("eval_bdry_img.txt", np.zeros((0, 5)))
        per_image = tuple(
            (f"{row[0]:.0f}", OperatingPoint(row[1], row[3], row[2], row[4]))
            for row in images.tolist()
        )
        unknown = OperatingPoint(None, float("nan"), float("nan"), float("nan"))
        r50 = recall_at_precision(curve)
        return BoundaryScore(ods, ois or unknown, ap, r50, len(images), curve, per_image)

    def scores(self) -> dict[str, Any]:
        """Like `Evaluation.scores`, with what the tables hold."""
        out: dict[str, Any] = {}
        if "eval_bdry_thr.txt" in self.tables:
            out["boundary"] = self.boundary_score().to_mapping()
        region: dict[str, Any] = {}
        if "eval_cover.txt" in self.tables:
            _, ods, ois, best = self.tables["eval_cover.txt"][0].tolist()
            region["covering"] = {"ods": ods, "ois": ois, "best": best}
        if "eval_RI_VOI.txt" in self.tables:
            _, ri, ri_ois, _, voi, voi_ois = self.tables["eval_RI_VOI.txt"][0].tolist()
            region["pri"] = {"ods": ri, "ois": ri_ois}
            region["voi"] = {"ods": voi, "ois": voi_ois}
        return {**out, "region": region} if region else out


def load_run(folder: str | Path, name: str | None = None) -> Evaluation | ReportedRun:
    """A run from its folder: ours, or anyone's official files.

    `name` replaces the name that is stored, or the folder's. Raises FileFormatError if it is
    neither.
    """
    from dataclasses import replace

    path = Path(folder)
    if (path / "result.json").exists():
        run = Evaluation.load(path)
        return replace(run, name=name) if name else run
    if not path.is_dir():
        raise FileFormatError(f"{path}: not a folder, expected the folder of a finished run")
    tables = read_run_folder(path)
    counts = tables.pop("ev1")
    shown = name or path.resolve().name
    if counts:
        return _from_ev1(counts, shown, path)
    thresholds = tables.get("eval_bdry_thr.txt", np.zeros((0, 4)))[:, 0]
    return ReportedRun(shown, _protocol(thresholds), tables, {"official": str(path)})


def from_official(folder: str | Path, name: str | None = None) -> Evaluation:
    """An Evaluation from a folder of official ID_ev1.txt files.

    Image sizes are not in those files and are (0, 0). Raises FileFormatError if there are none,
    or if their thresholds differ.
    """
    path = Path(folder)
    counts = read_run_folder(path)["ev1"]
    if not counts:
        raise FileFormatError(f"{path}: no ID_ev1.txt file, expected one per image")
    return _from_ev1(counts, name or path.resolve().name, path)


def load_runs(folders: Iterable[str | Path], names: Iterable[str] | None = None) -> list[Any]:
    """Runs (Evaluation or ReportedRun) from folders, each with a name of its own.

    Raises DataError listing every bad folder.
    """
    paths = [Path(f) for f in folders]
    given: list[str | None] = list(names) if names else [None] * len(paths)
    if len(given) != len(paths):
        raise DataError(f"{len(given)} names for {len(paths)} runs, expected one each")
    runs: list[Any] = []
    faults: list[DataError] = []
    for path, name in zip(paths, given, strict=True):
        try:
            runs.append(load_run(path, name))
        except DataError as error:
            faults.append(error)
    if faults:
        raise DataError.collect(faults)
    return _told_apart(runs, paths)


def _told_apart(runs: list[Any], paths: list[Path]) -> list[Any]:
    """Runs of one name get their folder's name beside it."""
    from dataclasses import replace

    names = [run.name for run in runs]
    return [
        replace(run, name=f"{run.name} ({path})") if names.count(run.name) > 1 else run
        for run, path in zip(runs, paths, strict=True)
    ]


def _from_ev1(counts: dict[str, BoundaryCounts], name: str, path: Path) -> Evaluation:
    first = next(iter(counts.values())).thresholds
    for image_id, found in counts.items():
        if found.thresholds.shape != first.shape or not np.allclose(found.thresholds, first):
            raise FileFormatError(f"{path}: thresholds of {image_id!r} differ from the others'")
    grid = _grid(first)
    records = tuple(
        ImageRecord(
            image_id,
            (0, 0),
            boundary=BoundaryCounts(grid, c.matched_gt, c.total_gt, c.matched_pred, c.total_pred),
        )
        for image_id, c in counts.items()
    )
    return Evaluation(_protocol(grid), name, records, {"official": str(path), "note": UNKNOWN})


def _grid(printed: NDArray[np.float64]) -> NDArray[np.float64]:
    """The even grid where the thresholds are that one as printed with six digits."""
    even = np.array(even_thresholds(printed.size))
    return even if np.allclose(printed, even, rtol=0, atol=2e-6) else printed


def _protocol(thresholds: NDArray[np.float64]) -> Protocol:
    """The benchmark's own constants with these thresholds; what else was used is not known."""
    preset = Protocol.preset("bsds500")
    valid = thresholds.size > 0 and bool(np.all((thresholds > 0) & (thresholds <= 1)))
    if not valid or not np.all(np.diff(thresholds) > 0):
        return preset
    return preset.replace(thresholds=tuple(_grid(thresholds).tolist()))


__all__ = ["ReportedRun", "from_official", "load_run", "load_runs"]
