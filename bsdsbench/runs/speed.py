"""A detector's time per image, measured by `bsdsbench run`, as a column of score tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bsdsbench.tables.table import Cell, Column, Table

KEY = "detector"  # under which a run's provenance has it


@dataclass(frozen=True, slots=True)
class Speed:
    """Median milliseconds per image, the warm-up left out, and the machine they belong to."""

    ms_per_image: float
    machine: str

    def to_mapping(self) -> dict[str, Any]:
        """Plain values, as a run's provenance has them."""
        return {"ms_per_image": round(self.ms_per_image, 3), "machine": self.machine}


def speed_of(run: Any) -> Speed | None:
    """What was measured of a run, or None. Files may hold anything there."""
    found = run.provenance.get(KEY)
    if not isinstance(found, Mapping):
        return None
    value, machine = found.get("ms_per_image"), found.get("machine")
    if not isinstance(value, int | float) or not (0 <= value < math.inf):
        return None
    return Speed(float(value), str(machine or "machine not named"))


def speeds_of(names: Sequence[str], runs: Sequence[Any]) -> dict[str, Speed]:
    """Name -> what was measured, for the runs that have it."""
    found = zip(names, map(speed_of, runs), strict=True)
    return {name: speed for name, speed in found if speed}


def with_speeds(table: Table, speeds: Mapping[str, Speed]) -> Table:
    """The table with a column of times, for rows (by their first cell) that have one.

    Times of different machines are shown and not ranked. Without any the table stays as it is.
    """
    mine = {str(row[0]): speeds[str(row[0])] for row in table.rows if str(row[0]) in speeds}
    if not mine:
        return table
    machines = sorted({speed.machine for speed in mine.values()})
    rank = False if len(machines) == 1 else None
    column = Column("ms_per_image", "ms per image", "ms", ".1f", rank)
    rows: list[list[Cell]] = [
        [*row, mine[str(row[0])].ms_per_image if str(row[0]) in mine else None]
        for row in table.rows
    ]
    how = "median time of the detector on one image, warm-up left out"
    notes = [f"ms per image: {how}; {machines[0]}."]
    if len(machines) > 1:
        notes = [f"ms per image: {how}, on different machines."]
        notes += [f"Machine of {name}: {speed.machine}." for name, speed in mine.items()]
    return Table(
        *(table.key, table.title, [*table.columns, column], rows),
        caption=table.caption,
        notes=[*notes, *table.notes],
        n_labels=table.n_labels,
        aside=table.aside,
    )
