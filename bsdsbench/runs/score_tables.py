"""Scores of runs as tables: a table per metric, a row per run; and values image by image."""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Column
from bsdsbench.runs.run_identity import incomparable, reference_notes
from bsdsbench.scores.counts import at
from bsdsbench.tables import table as model
from bsdsbench.tables.table import Cell, Estimate, Table

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
    found = {}
    for name, run in zip(names, runs, strict=True):
        if speed := speed_of(run):
            found[name] = speed
    return found


def joined_speed(runs: Sequence[Any]) -> dict[str, Any] | None:
    """What the shards of a detector's run measured, as one: the median of their medians.

    None, which is no speed, where a shard has none or they are of several machines.
    """
    found = [speed for speed in map(speed_of, runs) if speed]
    if len(found) < len(runs) or len({speed.machine for speed in found}) > 1:
        return None
    taken = [run.provenance[KEY].get("taken_over") for run in runs]
    middle = statistics.median(speed.ms_per_image for speed in found)
    return {
        **Speed(middle, found[0].machine).to_mapping(),
        "taken_over": sum(n for n in taken if isinstance(n, int)),
    }


def with_speeds(table: Table, speeds: Mapping[str, Speed]) -> Table:
    """The table with a column of times, for rows (by their first cell) that have one.

    Times of different machines are shown and not ranked. Without any the table stays as it is.
    """
    mine = {str(row[0]): speeds[str(row[0])] for row in table.rows if str(row[0]) in speeds}
    if not mine:
        return table
    machines = sorted({speed.machine for speed in mine.values()})
    rank = False if len(machines) == 1 else None
    column = model.Field("ms_per_image", "ms per image", "ms", ".1f", rank, paper=False)
    rows: list[list[Cell]] = [
        [*row, mine[str(row[0])].ms_per_image if str(row[0]) in mine else None]
        for row in table.rows
    ]
    how = "median time of the detector on one image, warm-up left out"
    notes = [f"ms per image: {how}; {machines[0]}."]
    if len(machines) > 1:
        notes = [f"ms per image: {how}, on different machines."]
        notes += [f"ms per image: {name} on {speed.machine}." for name, speed in mine.items()]
    return replace(table, columns=[*table.columns, column], rows=rows, notes=[*notes, *table.notes])


METHOD = model.Field("method", "Method")
GRID_END = "grid end"  # beside an ODS at the first or the last threshold
AT_GRID_END = (
    f"[{GRID_END}] the first or the last threshold is as good as any: this ODS says nothing of the "
    "method."
)


def score_tables(
    runs: Sequence[Any],
    names: Sequence[str] | None = None,
    extra: Sequence[tuple[str, Mapping[str, Any], Mapping[str, str]]] = (),
    notes: Sequence[str] = (),
) -> list[Table]:
    """One table per metric: a row per run, then the extra rows that have scores of it.

    A run alone is shown with all that its metrics show, several with what compares. Runs of
    `bsdsbench run` have a last column, milliseconds per image.

    names : one per run, in place of their own
    extra : further rows, such as published results: name, scores as in result.json, and a word for
            each score that is of another kind than the column; it is shown and is never the best
    notes : further lines under each table
    """
    names = [run.name for run in runs] if names is None else names
    how = made_how(runs, names)
    how["notes"] += notes
    first, n_rows = runs[0], len(runs) + len(extra)
    identity, n = getattr(first, "identity", None), len(getattr(first, "records", ()))
    where = identity.describe() if identity and identity.name else f"{n} images" if n else ""
    shown = f"{n_rows} methods" if n_rows > 1 else "scores"
    how["sentence"] = f"{shown}{where and f' on {where}'}, protocol {first.protocol.name}"
    by_metric: dict[str, list[tuple[str, Any]]] = {}
    for name, run in zip(names, runs, strict=True):
        for metric, score in run.scores().items():
            by_metric.setdefault(metric, []).append((name, score))
    alone, marks = n_rows == 1, {name: words for name, _, words in extra}
    speeds = speeds_of(names, runs)
    tables = []
    for metric, mine in by_metric.items():
        found, n_own = registry.get(metric), len(mine)
        mine += [(name, scores[metric]) for name, scores, _ in extra if metric in scores]
        table = _table(metric, found.title, found.columns, mine, n_own, alone, how, marks)
        tables.append(with_speeds(table, speeds))
        if not alone or not first.records:
            continue
        inner, ends = [], {}
        for name, path in found.parts(first.protocol, found.options_of(first.protocol)).items():
            score = part_of(mine[0][1], path)
            if score is not None:
                inner.append((name, score))
                if score.get("at_grid_end"):
                    ends[name] = {"ods": GRID_END}
        if inner:
            more = {**how, "notes": [*how["notes"], AT_GRID_END] if ends else how["notes"]}
            words = f"{metric}-parts", f"{found.title}, part by part", found.part_columns
            tables.append(_table(*words, inner, len(inner), True, more, ends))
    return tables


def part_of(scores: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    """The scores of a part, None where there is none."""
    for step in path:
        scores = scores.get(step) if isinstance(scores, Mapping) else None  # type: ignore[assignment]
    return scores


def image_table(run: Any) -> Table:
    """One row per image: its size and its own values under every metric.

    Several metrics have their names in the keys ("region_covering").
    """
    several = len(run.metrics) > 1
    columns = [model.Field("image", "Image")]
    columns += [model.Field(key, key.capitalize(), "", "d") for key in ("rows", "columns")]
    rows: list[list[Cell]] = [[record.image_id, *record.size] for record in run.records]
    for metric in run.metrics:
        shown = registry.get(metric).image_columns
        columns += [table_column(c, c.digits, f"{metric}_" if several else "") for c in shown]
        for row, own in zip(rows, run.image_scores(metric).values(), strict=True):
            row += [own.get(c.key) for c in shown]
    title = f"{run.name}, image by image"
    return Table("images", title, columns, rows, aside=True, **made_how([run], [run.name]))


def per_image(run: Any, metric: str) -> Table:
    """Every score of every image under a metric: a row an image, then a row for each of its parts.

    What is not measured with the run's options has no column, what is undefined no value.
    """
    found = registry.get(metric)
    opt = found.options_of(run.protocol)
    stack = found.stack([r.counts[metric] for r in run.records])
    parts = {"": (), **found.parts(run.protocol, opt)}
    columns: dict[str, Column] = {}
    for c in (*found.columns, *found.image_columns, *found.part_columns):
        if c.key != "n_images":
            columns.setdefault(c.key, c)
    values: dict[tuple[str, str], list[Cell]] = {}
    for tree in found.image_scores(stack, run.protocol):
        for part, path in parts.items():
            for key in columns:
                value = at(part_of(tree, path) or {}, key)
                if value is not None:
                    values.setdefault((part, key), []).extend(value.tolist())
    there = dict.fromkeys(part for part, _ in values)
    shown = [c for key, c in columns.items() if any((part, key) in values for part in there)]
    labels = ["image", "part"] if len(there) > 1 else ["image"]
    none: list[Cell] = [None] * len(run.records)
    rows: list[list[Cell]] = [
        [
            *(image_id, part or None)[: len(labels)],
            *(values.get((part, c.key), none)[i] for c in shown),
        ]
        for i, image_id in enumerate(run.image_ids)
        for part in there
    ]
    return Table(
        metric,
        f"{found.title}, image by image",
        [
            *(model.Field(name, name.capitalize()) for name in labels),
            *(table_column(c, c.digits) for c in shown),
        ],
        rows,
        **made_how([run], [run.name]),
        n_labels=len(labels),
    )


def table_column(column: Column, digits: int, before: str = "") -> model.Field:
    """A metric's column as a column of a table."""
    return model.Field(
        before + column.key.replace(".", "_"),
        column.heading,
        column.short,
        f".{digits}f",
        not column.lower if column.score else None,
        paper=column.score,
    )


def made_how(runs: Sequence[Any], names: Sequence[str]) -> dict[str, Any]:
    """Caption, notes where the runs differ, and signatures: how the scores of a table were made."""
    ways: dict[str, list[str]] = {}
    for run, name in zip(runs, names, strict=True):
        ways.setdefault(f"protocol {registry.describe(run.metrics, run.protocol)}", []).append(name)
    signatures = signature_lines(names, [str(getattr(run, "signature", "")) for run in runs])
    known = reference_notes(names, runs)
    if len({run.protocol for run in runs}) < 2:
        return {"caption": "; ".join(ways), "notes": known, "signatures": signatures}
    lines = [f"{', '.join(who)}: {text}." for text, who in ways.items()]
    if any(incomparable(runs[0], run) for run in runs[1:]):
        lines = ["Protocols differ; such scores are not comparable.", *lines]
    return {"caption": "", "notes": [*lines, *known], "signatures": signatures}


def signature_lines(names: Sequence[str], signatures: Sequence[str]) -> list[str]:
    """What to print of the runs' signatures: a line for each one that occurs; "" is left out."""
    who: dict[str, list[str]] = {}
    for name, line in zip(names, signatures, strict=True):
        who.setdefault(line, []).append(name)
    if len(names) > 1 and len(who) == 1 and signatures[0]:
        return [f"Signature of each: {signatures[0]}"]
    return [f"Signature of {', '.join(those)}: {line}" for line, those in who.items() if line]


def why_undefined(columns: Sequence[Column], values: Sequence[Mapping[str, Any]]) -> list[str]:
    """A note for each reason why a score of some row is undefined."""
    reasons: dict[str, list[str]] = {}
    for c in columns:
        if c.score and any(found[c.key] is None for found in values):
            reasons.setdefault(c.undefined, []).append(c.heading)
    return [f"- under {', '.join(headings)}: {why}." for why, headings in reasons.items()]


def means_over(
    columns: Sequence[Column], scores: Sequence[tuple[str, Mapping[str, Any]]]
) -> list[str]:
    """A note for each mean of some row that is over fewer than there are: `Metric.over`."""
    notes: dict[tuple[str, str], list[str]] = {}
    for name, mapping in scores:
        for c in columns:
            for what, (n, of) in mapping.get("over", {}).get(c.key, {}).items():
                notes.setdefault((name, f"{n:,} of {of:,} {what}"), []).append(c.heading)
    return [f"{name}: means over {n}: {', '.join(those)}." for (name, n), those in notes.items()]


def _table(
    metric: str,
    title: str,
    columns: Sequence[Column],
    scores: Sequence[tuple[str, Mapping[str, Any]]],
    n_own: int,
    alone: bool,
    how: Mapping[str, Any],
    marks: Mapping[str, Mapping[str, str]] | None = None,
) -> Table:
    """n_own : rows of runs, before those of published results"""
    # Measures that nobody asked for are left out; undefined ones stay.
    asked = set().union(*(mapping for _, mapping in scores))
    kinds = ("always", "own") if alone else ("always",)
    shown = [c for c in columns if c.shown in kinds and c.key.partition(".")[0] in asked]
    less, rows, found = 0 if alone else 1, list[list[Cell]](), list[dict[str, Any]]()
    for name, mapping in scores:
        own, row = {c.key: at(mapping, c.key) for c in shown}, list[Cell]([name])
        for key, value in own.items():
            mark = (marks or {}).get(name, {}).get(key)
            marked = mark and value is not None
            row.append(Estimate(value, mark=f"[{mark}]", comparable=False) if marked else value)
        rows.append(row)
        found.append(own)
    notes = why_undefined(shown, found[:n_own])
    if any(own[c.key] is None for own in found[n_own:] for c in shown if c.score):
        notes.append("- of a published result: that number was not published.")
    notes += [*means_over(shown, scores), *how["notes"]]
    fields = [METHOD, *(table_column(c, max(0, c.digits - less)) for c in shown)]
    more = {**how, "notes": notes, "sentence": f"{title}: {how['sentence']}"}
    return Table(metric, title, fields, rows, **more)


# ---- as one flat list, METRIC.SCORE -> number ---------------------------------------------------


def flat_scores(scores: Mapping[str, Any]) -> dict[str, float]:
    """The `scores` object of result.json as {"boundary.ods": F, "region.covering.ods": ...}.

    A point of a PR curve is named by its F. Thresholds, counts of images and undefined scores are
    left out.
    """
    found = {}
    for metric, mapping in scores.items():
        for column in registry.get(metric).columns:
            value = at(mapping, column.key)
            if column.score and value is not None:
                found[f"{metric}.{column.key}"] = float(value)
    return found


def full_name(score: str, known: Collection[str]) -> str:
    """The known METRIC.SCORE that is meant by it or by SCORE alone; `score` itself if none is.

    SCORE alone is that of the default metric, or of the one metric that has it.

    Examples
    --------
    >>> full_name("ods", ["pixel.ods", "boundary.ods"]), full_name("mae", ["pixel.mae"])
    ('boundary.ods', 'pixel.mae')
    """
    alike = [name for name in known if name.partition(".")[2] == score]
    usual = f"{registry.DEFAULT[0]}.{score}"
    if score in known or not alike or (len(alike) > 1 and usual not in alike):
        return score
    return usual if usual in alike else alike[0]
