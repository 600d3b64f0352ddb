"""Scores of runs as tables: a table a metric, a row a run; of every image; and as one flat list."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from bsdsbench.files.errors import DataError
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Column
from bsdsbench.runs.references import incomparable
from bsdsbench.runs.run_options import SPEED
from bsdsbench.scores.counts import at
from bsdsbench.tables import table as model
from bsdsbench.tables.table import Cell, Estimate, Table, key_meant, select

METHOD = model.Field("method", "Method")
GRID_END = "grid end"  # beside an ODS at the first or the last threshold
AT_GRID_END = (
    f"[{GRID_END}] the first or the last threshold is as good as any: this ODS says nothing of the "
    "method."
)
# A row: name, scores as in result.json, and a word for scores of another kind than their column
Row = tuple[str, Mapping[str, Any], Mapping[str, str]]


# ---- what stands under a table -------------------------------------------------------------------


def reference_notes(names: Sequence[str], runs: Sequence[Any]) -> list[str]:
    """A line about each reference run among these."""
    lines, odd = [], []
    for name, run in zip(names, runs, strict=True):
        if about := run.reference:
            lines.append(f"{name}: reference run, {run.provenance['about']}.")
            odd += [] if about.ordered else [name]
    if odd and len({run.protocol.ods_rule for run in runs}) > 1:
        what = "ODS is the best of the combinations; that of other runs is interpolated."
        lines.append(f"{', '.join(odd)}: {what}")
    return lines


def made_how(runs: Sequence[Any], names: Sequence[str]) -> dict[str, Any]:
    """Caption, notes where the runs differ, and signatures: how the scores of a table were made."""
    ways: dict[str, list[str]] = {}
    for run, name in zip(runs, names, strict=True):
        ways.setdefault(f"protocol {run.described}", []).append(name)
    notes, caption = reference_notes(names, runs), "; ".join(ways)
    if any([run.protocol != runs[0].protocol for run in runs]):
        lines = [f"{', '.join(who)}: {text}." for text, who in ways.items()]
        if any([incomparable(runs[0], run) for run in runs[1:]]):
            lines.insert(0, "Protocols differ; such scores are not comparable.")
        notes, caption = lines + notes, ""
    signatures = signature_lines(names, [run.signature_line for run in runs])
    return {"caption": caption, "notes": notes, "signatures": signatures}


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
        if c.score and any([found[c.key] is None for found in values]):
            reasons.setdefault(c.undefined, []).append(c.heading)
    return [f"- under {', '.join(headings)}: {why}." for why, headings in reasons.items()]


# ---- what a detector takes -----------------------------------------------------------------------


class Speed(NamedTuple):
    """Median milliseconds per image, the warm-up left out, and the machine they belong to."""

    ms_per_image: float
    machine: str


def speeds_of(names: Sequence[str], runs: Sequence[Any]) -> dict[str, Speed]:
    """Name -> what was measured, for the runs that have it. Files may hold anything there."""
    speeds = {}
    for name, run in zip(names, runs, strict=True):
        found = run.provenance.get(SPEED)
        value = found.get("ms_per_image") if isinstance(found, Mapping) else None
        if isinstance(value, int | float) and 0 <= value < math.inf:
            speeds[name] = Speed(float(value), str(found.get("machine") or "machine not named"))
    return speeds


def with_speeds(table: Table, speeds: Mapping[str, Speed]) -> Table:
    """The table with a column of times, for rows (by their first cell) that have one.

    Times of different machines are shown and not ranked. Without any the table stays as it is.
    """
    found = [speeds.get(str(row[0])) for row in table.rows]
    machines = {speed.machine for speed in found if speed}
    if not machines:
        return table
    apart = len(machines) > 1
    where = ", on different machines" if apart else f"; {machines.pop()}"
    notes = [f"ms per image: median time of the detector on one image, warm-up left out{where}."]
    rows = list[list[Cell]]()
    for row, speed in zip(table.rows, found, strict=True):
        rows.append([*row, speed.ms_per_image if speed else None])
        if speed and apart:
            notes.append(f"ms per image: {row[0]} on {speed.machine}.")
    rank = None if apart else False
    column = model.Field("ms_per_image", "ms per image", "ms", ".1f", rank, paper=False)
    return replace(table, columns=[*table.columns, column], rows=rows, notes=[*notes, *table.notes])


# ---- a row a run ---------------------------------------------------------------------------------


def score_tables(
    runs: Sequence[Any],
    names: Sequence[str] | None = None,
    extra: Sequence[Row] = (),
    notes: Sequence[str] = (),
    columns: Sequence[str] | None = None,
) -> list[Table]:
    """One table per metric: a row per run, then the extra rows that have scores of it.

    A run alone is shown with all that its metrics show, and their parts in a table of their own;
    several with what compares. Runs of `bsdsbench run` have a last column, milliseconds per image.

    names : one per run, in place of their own
    extra : further rows, such as published results; a score with a word is never the best
    notes : further lines under each table
    columns : these alone, by key or heading; "all" for every one; default: the usual ones
    """
    names = [run.name for run in runs] if names is None else names
    first, protocol, n_rows = runs[0], runs[0].protocol, len(runs) + len(extra)
    alone, scores = (
        n_rows == 1,
        [(name, run.scores()) for name, run in zip(names, runs, strict=True)],
    )
    sentence = "scores" if alone else f"{n_rows} methods"
    if first.records:
        named = not first.signature.set.startswith("set:")
        sentence += f" on {first.set_line if named else f'{len(first.records)} images'}"
    sentence += f", protocol {protocol.name}"
    how, speeds, tables = made_how(runs, names), speeds_of(names, runs), list[Table]()
    kinds = ("always", "own" if alone else "several")
    for found in map(registry.get, dict.fromkeys(m for _, own in scores for m in own)):
        metric, opt = found.name, found.options_of(protocol)
        rows: list[Row] = [(name, own[metric], {}) for name, own in scores if metric in own]
        usual, n_own, inner = found.usual(opt) if columns is None else None, len(rows), list[Row]()
        parts = found.parts(protocol, opt) if alone and first.records else {}
        for name, path in parts.items():
            if (score := part_of(rows[0][1], path)) is not None:
                inner.append((name, score, {"ods": GRID_END} if score.get("at_grid_end") else {}))
        rows += [(name, own[metric], words) for name, own, words in extra if metric in own]
        planned: list[Any] = [(metric, found.title, found.columns, rows, n_own)]
        if inner:
            title = f"{found.title}, part by part"
            planned.append((f"{metric}-parts", title, found.part_columns, inner, len(inner)))
        for key, title, every, those, n_runs in planned:
            # Measures that nobody asked for are left out; undefined ones stay.
            asked, shown = set().union(*[own for _, own, _ in those]), list[Column]()
            for c in every:
                here = c.shown in kinds or columns is not None
                if usual is not None:
                    defined = any([at(own, c.key) is not None for _, own, _ in those])
                    here = here and c.key in usual and defined
                if here and c.key.partition(".")[0] in asked:
                    shown.append(c)
            table = _scores(key, title, shown, those, n_runs, alone)
            told = {**how, "sentence": f"{title}: {sentence}"}
            told["notes"] = [*table.notes, *how["notes"], *notes]
            if key != metric and any([words for _, _, words in those]):
                told["notes"].append(AT_GRID_END)
            table = replace(table, **told)
            tables.append(with_speeds(table, speeds) if key == metric else table)
    return tables if columns is None or "all" in columns else select(tables, columns)


def _scores(
    key: str, title: str, columns: Sequence[Column], rows: Sequence[Row], n_own: int, alone: bool
) -> Table:
    """The cells of a table of scores, and notes on them; the first `n_own` rows are of runs."""
    cells, values, fewer = list[list[Cell]](), list[dict[str, Any]](), dict[str, list[str]]()
    for number, (name, scores, words) in enumerate(rows):
        scored = {c.key: at(scores, c.key) for c in columns}
        marks = [words.get(k, "") for k, v in scored.items() if v is not None]
        # What is said of every number of a published row is said once, after its name.
        once = number >= n_own and len({*marks}) == 1 and marks[0]
        row: list[Cell] = [f"{name} [{once}]" if once else name]
        for c in columns:
            value, mark = scored[c.key], words.get(c.key)
            said = "" if once else f"[{mark}]"
            marked = mark and value is not None
            row.append(Estimate(value, mark=said, comparable=False) if marked else value)
            for what, (some, of) in scores.get("over", {}).get(c.key, {}).items():
                line = f"means over {some:,} of {of:,} {what} of {name}"
                fewer.setdefault(line, []).append(c.heading)
        cells.append(row)
        values.append(scored)
    notes = why_undefined(columns, values[:n_own])
    theirs = [c.heading for c in columns if c.score and None in [v[c.key] for v in values[n_own:]]]
    if theirs:
        what = "of a published result, where it was not published."
        notes.append(f"- under {', '.join(theirs)}: {what}")
    notes += [f"- under {', '.join(those)}: {said}." for said, those in fewer.items()]
    fields = [METHOD, *[table_column(c, max(0, c.digits - (not alone))) for c in columns]]
    return Table(key, title, fields, cells, notes=notes)


def part_of(scores: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    """The scores of a part, None where there is none."""
    for step in path:
        scores = scores.get(step) if isinstance(scores, Mapping) else None  # type: ignore[assignment]
    return scores


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


def at_threshold_of(run: Any, other: Any) -> list[Table]:
    """Precision, recall and F of a run at the threshold that was best on another set, beside its
    ODS: a table for each metric of both with a curve. Raises DataError if there is none, or if the
    protocols differ."""
    if found := incomparable(run, other):
        raise DataError(f"{other.name}, {run.name}: protocols differ in {'; '.join(found)}")
    metrics = run.with_curve
    shared = [m for m in metrics if m in other.with_curve]
    if not shared:
        raise DataError(f"{other.name}: no metric with thresholds, expected one of {run.name}")
    columns = [
        METHOD,
        model.Field("threshold", f"threshold of {other.name}", "threshold", ".3f"),
        *(model.Field(k, k.upper(), "", ".4f") for k in ("p", "r", "f")),
        model.Field("ods", "ODS", "", ".4f"),
        model.Field("ods_threshold", "ODS threshold", "at", ".3f"),
    ]
    notes = [f"P, R, F: at the threshold of the ODS of {other.name}; ODS: at the best one here."]
    if both := {*run.image_ids} & {*other.image_ids}:
        odd = f"{len(both)} images are in {other.name} too"
        notes.append(f"{odd}, so its threshold is not chosen apart.")
    signed = [f"Signature of {other.name}: {other.signature}"]
    tables = []
    for metric in shared:
        mine = run.score(metric)
        point = mine.curve.at(other.score(metric).ods.threshold)
        row = [run.name, *(point.threshold, point.precision, point.recall, point.f)]
        title = f"{registry.get(metric).title}, at the threshold that was best on {other.name}"
        rows = [[*row, mine.ods.f, mine.ods.threshold]]
        key = f"{metric}-at-threshold"
        tables.append(Table(key, title, columns, rows, notes=notes, signatures=signed))
    return tables


# ---- a row an image ------------------------------------------------------------------------------


def image_table(run: Any) -> Table:
    """One row per image: its size and its own values under every metric.

    Several metrics have their names in the keys ("region_covering").
    """
    columns = [model.Field("image", "Image")]
    columns += [model.Field(key, key.capitalize(), "", "d") for key in ("rows", "columns")]
    rows: list[list[Cell]] = [[record.image_id, *record.size] for record in run.records]
    for metric in run.metrics:
        before, shown = f"{metric}_" * (len(run.metrics) > 1), registry.get(metric).image_columns
        columns += [table_column(c, c.digits, before) for c in shown]
        for row, own in zip(rows, run.image_scores(metric).values(), strict=True):
            row += [own.get(c.key) for c in shown]
    title = f"{run.name}, image by image"
    return Table("images", title, columns, rows, aside=True, **made_how([run], [run.name]))


def per_image(run: Any, metric: str, stack: Mapping[str, Any]) -> Table:
    """Every score of every image under a metric: a row an image, then a row for each of its parts.

    What is not measured with the run's options has no column, what is undefined no value.
    """
    found = registry.get(metric)
    parts = {"": (), **found.parts(run.protocol, found.options_of(run.protocol))}
    columns: dict[str, Column] = {}
    for c in (*found.columns, *found.image_columns, *found.part_columns):
        if c.key != "n_images":
            columns.setdefault(c.key, c)
    values: dict[str, dict[str, list[Cell]]] = {}
    for tree in found.image_scores(stack, run.protocol):
        for part, path in parts.items():
            for key in columns:
                value = at(part_of(tree, path) or {}, key)
                if value is not None:
                    values.setdefault(part, {}).setdefault(key, []).extend(value.tolist())
    shown = [c for key, c in columns.items() if any(key in own for own in values.values())]
    labels = ["image", "part"][: 1 + (len(values) > 1)]
    none: list[Cell] = [None] * len(run.records)
    rows: list[list[Cell]] = []
    for i, image_id in enumerate(run.image_ids):
        for part, own in values.items():
            cells = [own.get(c.key, none)[i] for c in shown]
            rows.append([*(image_id, part or None)[: len(labels)], *cells])
    fields = [model.Field(name, name.capitalize()) for name in labels]
    fields += [table_column(c, c.digits) for c in shown]
    title, how = f"{found.title}, image by image", made_how([run], [run.name])
    return Table(metric, title, fields, rows, **how, n_labels=len(labels))


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


def usual_scores(run: Any, metrics: Sequence[str], known: Sequence[str]) -> list[str]:
    """The METRIC.SCORE of these that tables show where none are asked for."""
    hidden = set()
    for metric in map(registry.get, metrics):
        usual = metric.usual(metric.options_of(run.protocol))
        for c in metric.columns:
            if c.shown == "never" or (usual is not None and c.key not in usual):
                hidden.add(f"{metric.name}.{c.key}")
    return [name for name in known if name not in hidden]


def full_name(score: str, known: Collection[str]) -> str:
    """The known METRIC.SCORE that is meant by it or by SCORE alone; `score` itself if none is.

    SCORE alone, a key or a heading, is that of the default metric, or of the one that has it; of
    several of a kind (hd95) it is the first (hd95-pooled).

    Examples
    --------
    >>> full_name("ods", ["pixel.ods", "boundary.ods"]), full_name("mae", ["pixel.mae"])
    ('boundary.ods', 'pixel.mae')
    """
    keyed, headed = list[str](), list[str]()
    for name in known:
        metric, _, key = name.partition(".")
        columns = registry.get(metric).columns if metric in registry.names() else ()
        headings = [c.heading.casefold() for c in columns if c.key == key]
        keyed += [name] * (key == score)
        headed += [name] * (score.casefold() in headings)
    alike, usual = keyed or headed, f"{registry.DEFAULT[0]}.{score}"
    if score not in known and not alike:
        bare = {name.partition(".")[2]: name for name in known}
        return bare.get(key_meant(score, bare), key_meant(score, known))
    if score in known or (len(alike) > 1 and usual not in alike):
        return score
    return usual if usual in alike else alike[0]
