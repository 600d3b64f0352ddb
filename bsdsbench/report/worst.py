"""The images a run does worst on, or those two runs differ most on, with their overlays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bsdsbench.comparison.bootstrap import compared_by
from bsdsbench.comparison.comparable import comparable, labels_of
from bsdsbench.files.errors import DataError
from bsdsbench.loaders.official_txt import safe_name
from bsdsbench.metrics import registry
from bsdsbench.report.overlays import KINDS, Progress, matching_metric, write_overlays
from bsdsbench.runs.evaluation import Evaluation
from bsdsbench.runs.score_tables import made_how, table_column
from bsdsbench.tables.table import Cell, Field, Table


def worst_table(
    runs: Sequence[Evaluation],
    folders: Sequence[Path],
    n: int = 10,
    metric: str | None = None,
    draw: bool = False,
    progress: Progress | None = None,
    column: str | None = None,
) -> Table:
    """The n worst images of one run, or the n on which two differ most, the worst first.

    folders : of the runs; overlays lie there in `overlays`
    metric  : default: the first that all runs have; images are compared by its first image column
    column  : or by this one, its key or heading
    draw    : make the overlays of these images; otherwise those that are there are named

    Raises DataError for more than two runs, or without such a metric.
    """
    if not 1 <= len(runs) <= 2:
        raise DataError(f"worst: {len(runs)} runs, expected one, or two to compare")
    names = labels_of(runs, None)
    runs, _ = comparable(runs, names, common=True)
    shared = [m for m in runs[0].metrics if m in runs[-1].metrics]
    if (metric is not None and metric not in shared) or not shared:
        had = ", ".join(shared) or "none"
        raise DataError(f"{', '.join(names)}: metric {metric!r}, expected one they have: {had}")
    metric = metric or shared[0]
    by = registry.get(metric).image_columns[0]
    values: list[dict[str, Any]] = [compared_by(run, metric) for run in runs]
    if column is not None:
        word = column.removeprefix(f"{metric}.").casefold()
        like = [c for c in registry.get(metric).columns if word in (c.key, c.heading.casefold())]
        tables = [run.per_image(metric) for run in runs]
        keys = [[c.key for c in t.columns] for t in tables]
        like = [c for c in like if all(c.key.replace(".", "_") in own for own in keys)]
        if not like:
            raise DataError(f"column {column!r}: expected a score of {metric}, by key or heading")
        by = like[0]
        at = [own.index(by.key.replace(".", "_")) for own in keys]
        values = [  # parts of an image come after it
            {str(row[0]): math.nan if row[k] is None else row[k] for row in t.rows[::-1]}
            for t, k in zip(tables, at, strict=True)
        ]
    known = [i for i in values[0] if not any(math.isnan(v[i]) for v in values)]
    two = len(runs) == 2
    sign = -1 if by.lower else 1
    bad = {i: -abs(values[0][i] - values[1][i]) if two else sign * values[0][i] for i in known}
    chosen = sorted(known, key=lambda i: (bad[i], i))[:n]
    if draw:
        for run, folder in zip(runs, folders, strict=True):
            write_overlays(run, folder / "overlays", image_ids=chosen, progress=progress)
    columns = [Field("image", "Image")]
    for k, name in enumerate(names):
        mine = table_column(by, 4)
        columns.append(Field(f"{mine.key}_{k + 1}", f"{name}: {by.heading}", "", mine.format))
    if two:
        columns.append(Field("difference", "A - B", "", "+.4f"))
    columns += [Field(f"overlay_{k + 1}", "Overlay") for k in range(len(runs))]
    rows: list[list[Cell]] = []
    for image_id in chosen:
        found = [v[image_id] for v in values]
        name = f"{safe_name(image_id)}_{KINDS[0]}.png"
        paths = [folder / "overlays" / name for folder in folders]
        drawn = [str(path) if path.is_file() else "" for path in paths]
        rows.append([image_id, *found, *([found[0] - found[1]] if two else []), *drawn])
    missing = "No overlays yet: --overlays draws them for these images."
    drawable = all(matching_metric(run.metrics, run.protocol) for run in runs)
    notes = [missing] if drawable and not all(row[-1] for row in rows) else []
    title = f"Where {' and '.join(names)} differ most" if two else f"Worst images of {names[0]}"
    how = made_how(runs, names)
    how["notes"] = [*notes, *how["notes"]]
    return Table("worst", title, columns, rows, **how)
