"""Images outside a run: a target may come from another split, or from all splits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bsdsbench.diagnosis.causes import Choice, choices
from bsdsbench.diagnosis.rule_variants import Table
from bsdsbench.files.errors import DataError
from bsdsbench.loaders.pairing import SPLITS, grouped, pair
from bsdsbench.metrics import registry
from bsdsbench.runs.evaluation import Evaluation
from bsdsbench.runs.sources import Sources
from bsdsbench.scores.curve import four_counts

MOST = 400  # images beside those of the run that are counted
METRIC = registry.DEFAULT[0]


@dataclass(frozen=True, slots=True)
class Group:
    """Images that are not in the run: where they are, in words, and their files."""

    label: str
    sources: Sources


def groups_beside(run: Evaluation, sources: Sources) -> list[Group]:
    """Images with prediction and ground truth in the run's folders, and in those of other splits.

    Folders of other splits stand beside both of the run's, under one name (val, test ...). None for
    a run whose folders are not known or that another user made.
    """
    pred, gt = run.place("pred"), run.place("gt")
    if not pred or not gt:
        return []
    here = Path(str(pred)), Path(str(gt))
    places = [("the images of the folders that are not in the run", *here)]
    for name in sorted(SPLITS - {here[1].name}):
        other = here[0].parent / name, here[1].parent / name
        if other[0].is_dir() and other[1].is_dir():
            places.append((f"the images of the split {name}", *other))
    found = []
    for label, pred_dir, gt_dir in places:
        pairs = _pairs(pred_dir, gt_dir, sources, set(sources.pairs))
        if pairs and len(pairs) <= MOST:
            more = Sources(pairs, {}, sources.pred_kind, sources.metric)
            found.append(Group(label, more))
    return found


def _pairs(pred: Path, gt: Path, sources: Sources, known: set[str]) -> dict[str, Any]:
    try:
        kinds = {"pred_kind": sources.pred_kind, "gt_kind": sources.metric.gt_kind}
        _, preds, gts, _ = grouped(pred, gt, **kinds)
        wanted = (preds.keys() & gts.keys()) - known
        return {p.image_id: p for p in pair(pred, gt, ids=wanted, **kinds)} if wanted else {}
    except DataError:
        return {}


def counted(
    run: Evaluation,
    group: Group,
    workers: int,
    in_time: Callable[[], bool],
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Image id -> counts (T, 4) of a group as the run counts; {} if the time is up or one fails."""
    found: dict[str, Any] = {}
    metric = registry.get(METRIC)

    def one(image_id: str) -> None:
        if not in_time():
            return
        try:
            pred, gt = group.sources.load(image_id, run)
            counts: Any = metric.count(pred, gt, run.protocol, None)
            found[image_id] = four_counts(counts)
        except DataError:
            return
        if progress:
            progress(len(found), len(group.sources.pairs))

    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(one, group.sources.pairs):
            pass
    return found if len(found) == len(group.sources.pairs) else {}


def other_choices(
    ids: Sequence[str],
    own: Table,
    group: Group,
    counts: Mapping[str, Any],
    gt_dir: Path | None,
    sets: Mapping[str, Sequence[str]],
) -> tuple[Table, list[Choice]]:
    """The table of the run's images and the group's; which of them may have been meant.

    First the group alone, then all, then what split files and known sets name. Choices among the
    run's own images are left out: they have been looked at.
    """
    every = [*ids, *counts]
    rows = np.concatenate([own.counts, np.stack(list(counts.values()))])
    table = Table(rows, own.thresholds, own.operator)
    found = [
        Choice(group.label, np.arange(len(ids), len(every)), True),
        Choice(f"all {len(every)} images, with {group.label}", np.arange(len(every)), True),
    ]
    found += [c for c in choices(every, gt_dir, sets) if c.named]
    new = {tuple(c.images.tolist()): c for c in reversed(found) if c.images.max() >= len(ids)}
    return table, list(reversed(list(new.values())))
