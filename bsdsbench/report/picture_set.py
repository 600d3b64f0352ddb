"""Which images of a report have pictures, and their drawing, several at a time.

A page of every picture of 200 images and three methods has 30 MB. So those come first that are
looked at first: by each method the worst and the best, and where two methods differ most; as many
as fit into `BUDGET`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import combinations, zip_longest
from typing import Any

from bsdsbench.files.errors import DataError
from bsdsbench.report.overlays import overlay_metric
from bsdsbench.report.pictures import gt_picture, image_pictures
from bsdsbench.runs.evaluation import Evaluation, Progress
from bsdsbench.runs.executors import available_cores
from bsdsbench.runs.sources import Sources, fault_of

BUDGET = 5_000_000  # characters; tables, values and scripts have room below 6 MB


def by_interest(ids: Sequence[str], values: Sequence[Mapping[str, float]]) -> list[str]:
    """All images: in turn the next worst and best by each column, the next largest difference.

    values : one column of each run that compares, image id -> value
    """
    rankings = []
    for column in values:
        up = sorted(column, key=lambda k: (column[k], k))
        rankings += [up, up[::-1]]
    for a, b in combinations(values, 2):
        gap = {k: abs(a[k] - b[k]) for k in a.keys() & b.keys()}
        rankings.append(sorted(gap, key=lambda k: (-gap[k], k)))
    turns = (k for turn in zip_longest(*rankings) for k in turn if k is not None)
    wanted = dict.fromkeys([*turns, *ids])
    return [k for k in wanted if k in set(ids)]


class PictureSet:
    """The pictures of the runs that have files.

    sources : run name -> its files; a run whose files are not as they were loses them
    named   : runs whose folders were given: a fault of theirs is raised; of others `notes` gets it
    """

    def __init__(
        self,
        runs: Sequence[Any],
        sources: Mapping[str, Sources],
        named: Collection[str],
        notes: list[str],
    ) -> None:
        self.runs, self.sources, self.named, self.notes = runs, dict(sources), named, notes
        mine = [run for run in runs if run.name in sources]
        self._ods = {run.name: _ods_threshold(run) for run in mine}
        self._records = {run.name: {r.image_id: r for r in run.records} for run in mine}

    def draw(
        self, ids: Sequence[str], budget: int | None, progress: Progress | None = None
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Image id and pictures, in the order of ids, until they have `budget` characters."""
        used, done, workers = 0, 0, available_cores()
        waiting, ahead = iter(ids if self.sources else ()), deque[tuple[str, Future[Any]]]()
        with ThreadPoolExecutor(workers) as pool:
            try:
                while budget is None or used < budget:
                    while len(ahead) < 2 * workers and (k := next(waiting, None)) is not None:
                        ahead.append((k, pool.submit(self._pictures, k, dict(self.sources))))
                    if not ahead:
                        break
                    image_id, future = ahead.popleft()
                    found = self._sound(*future.result())
                    used, done = used + _size(found), done + 1
                    yield image_id, found
                    if progress:
                        fitting = done if budget is None else round(done * budget / max(used, 1))
                        total = len(ids) if budget is None else min(len(ids), max(done, fitting))
                        progress(done, total, image_id)
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def _sound(self, found: dict[str, Any], faults: dict[str, DataError]) -> dict[str, Any]:
        """The pictures without those of runs that have lost their files, here or before."""
        for name, error in faults.items():
            if name not in self.sources:
                continue
            if name in self.named:
                raise error
            run = next(run for run in self.runs if run.name == name)
            self.notes.append(f"no pictures: {name}: {fault_of(run, error)}")
            del self.sources[name]
        kept = {i: mine for i, mine in found["runs"].items() if self._name(i) in self.sources}
        return {**found, "runs": kept}

    def _name(self, index: str) -> str:
        return str(self.runs[int(index)].name)

    def _pictures(
        self, image_id: str, sources: Mapping[str, Sources]
    ) -> tuple[dict[str, Any], dict[str, DataError]]:
        """One image's pictures, and what was wrong with a run's files."""
        out: dict[str, Any] = {"runs": {}}
        faults: dict[str, DataError] = {}
        for i, run in enumerate(self.runs):
            if run.name not in sources:
                continue
            try:
                if "gt" not in out:
                    out.update(gt_picture(sources[run.name], run, image_id))
                record, ods = self._records[run.name].get(image_id), self._ods[run.name]
                if record is not None and ods is not None:
                    out["runs"][str(i)] = image_pictures(sources[run.name], run, record, ods)
            except DataError as error:
                faults[run.name] = error
        return out, faults


def _ods_threshold(run: Evaluation) -> float | None:
    """Where the overlays of a run are drawn, or None if it has none."""
    try:
        found: float | None = run.score(overlay_metric(run).name).ods.threshold
    except DataError:
        return None
    return found


def _size(found: Any) -> int:
    """Characters of the pictures in nested values."""
    if isinstance(found, Mapping):
        return sum(map(_size, found.values()))
    return len(found) if isinstance(found, str) else 0
