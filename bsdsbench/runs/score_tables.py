"""Runs beside each other: what may be compared, and their scores as tables."""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bsdsbench.files.errors import DataError
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Column
from bsdsbench.protocol.tasks import tasks
from bsdsbench.runs.references import Reference, references
from bsdsbench.scores.counts import at
from bsdsbench.tables import table as model
from bsdsbench.tables.table import Cell, Estimate, Table, select

KEY = "detector"  # under which a run's provenance has what `bsdsbench run` measured
MUST_AGREE = ("max_dist", "max_dist_px", "ap_rule")  # of a reference run's protocol
METHOD = model.Field("method", "Method")
GRID_END = "grid end"  # beside an ODS at the first or the last threshold
AT_GRID_END = (
    f"[{GRID_END}] the first or the last threshold is as good as any: this ODS says nothing of the "
    "method."
)


# ---- what may be compared ------------------------------------------------------------------------


def reference_of(run: Any) -> Reference | None:
    """What the reference run `run` is; None for any other run."""
    key = run.provenance.get("reference") if isinstance(run.provenance, Mapping) else None
    return references().get(key) if isinstance(key, str) else None


def by_rules_of(runs: list[Any]) -> list[Any]:
    """The runs, with the AP and ODS rules of the first other run given to reference runs.

    Their counts allow any rule, except that combinations of parameters cannot be interpolated.
    """
    about = list(map(reference_of, runs))
    if None not in about or not runs[about.index(None)].protocol.stated:
        return runs
    own, fitted = runs[about.index(None)].protocol, []
    for run, reference in zip(runs, about, strict=True):
        if reference is not None:
            rule = own.ods_rule if reference.ordered else "maximum"
            run = replace(run, protocol=run.protocol.replace(ap_rule=own.ap_rule, ods_rule=rule))
        fitted.append(run)
    return fitted


def incomparable(a: Any, b: Any) -> list[str]:
    """The differences of protocol that make the scores of two runs incomparable, one per line.

    A reference run has its own parameters and was matched and thinned by its program. Only its
    tolerance and AP rule are compared, and `by_rules_of` sets the latter. Edge NMS may be done
    beforehand as well, so that it is no difference.
    """
    lines = [line for line in a.protocol.differences(b.protocol) if not line.startswith("nms")]
    if reference_of(a) is None and reference_of(b) is None:
        return lines
    return [line for line in lines if line.partition(":")[0] in MUST_AGREE]


def reference_notes(names: Sequence[str], runs: Sequence[Any]) -> list[str]:
    """A line about each reference run among these."""
    lines, odd = [], []
    for name, run in zip(names, runs, strict=True):
        if about := reference_of(run):
            lines.append(f"{name}: reference run, {run.provenance['about']}.")
            odd += [] if about.ordered else [name]
    if odd and len({run.protocol.ods_rule for run in runs}) > 1:
        lines.append(
            f"{', '.join(odd)}: ODS is the best of the combinations; that of other runs is "
            "interpolated."
        )
    return lines


def not_beside(run: Any, name: str) -> str:
    """Why results of the task `name` cannot be compared with `run`; "" if they can.

    If the run's ground truth is known, its fingerprint decides. For other runs, such as result
    files of other programs, protocol and number of images must be those of the task.
    """
    if name in [task.name for task in run.tasks]:
        return ""
    where = name.partition("/")[0]
    task, preset, identity = tasks()[name], run.protocol.name, run.identity
    if run.protocol.stated and preset != task.protocol and reference_of(run) is None:
        return f"protocol {preset}, but published results are of {task.protocol}"
    if identity and (task.fingerprint is None or identity.fingerprint != task.fingerprint):
        return f"{identity.describe()}, but published results are of {where}"
    if len(run.records) not in (0, task.images):
        theirs = f"{task.images} images" if task.images else "images"
        return f"{len(run.records)} images, but published results are of the {theirs} of {where}"
    return ""


def made_how(runs: Sequence[Any], names: Sequence[str]) -> dict[str, Any]:
    """Caption, notes where the runs differ, and signatures: how the scores of a table were made."""
    ways: dict[str, list[str]] = {}
    for run, name in zip(runs, names, strict=True):
        ways.setdefault(f"protocol {registry.describe(run.metrics, run.protocol)}", []).append(name)
    signatures = signature_lines(names, [str(run.signature) for run in runs])
    notes, caption = reference_notes(names, runs), "; ".join(ways)
    if any([run.protocol != runs[0].protocol for run in runs]):
        lines = [f"{', '.join(who)}: {text}." for text, who in ways.items()]
        if any([incomparable(runs[0], run) for run in runs[1:]]):
            lines.insert(0, "Protocols differ; such scores are not comparable.")
        notes, caption = lines + notes, ""
    return {"caption": caption, "notes": notes, "signatures": signatures}


def signature_lines(names: Sequence[str], signatures: Sequence[str]) -> list[str]:
    """What to print of the runs' signatures: a line for each one that occurs; "" is left out."""
    who: dict[str, list[str]] = {}
    for name, line in zip(names, signatures, strict=True):
        who.setdefault(line, []).append(name)
    if len(names) > 1 and len(who) == 1 and signatures[0]:
        return [f"Signature of each: {signatures[0]}"]
    return [f"Signature of {', '.join(those)}: {line}" for line, those in who.items() if line]


# ---- what a detector takes -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Speed:
    """Median milliseconds per image, the warm-up left out, and the machine they belong to."""

    ms_per_image: float
    machine: str

    def to_mapping(self) -> dict[str, Any]:
        """Plain values, as a run's provenance has them."""
        return {"ms_per_image": round(self.ms_per_image, 3), "machine": self.machine}


def speeds_of(names: Sequence[str], runs: Sequence[Any]) -> dict[str, Speed]:
    """Name -> what was measured, for the runs that have it. Files may hold anything there."""
    speeds = {}
    for name, run in zip(names, runs, strict=True):
        found = run.provenance.get(KEY)
        value = found.get("ms_per_image") if isinstance(found, Mapping) else None
        if isinstance(value, int | float) and 0 <= value < math.inf:
            speeds[name] = Speed(float(value), str(found.get("machine") or "machine not named"))
    return speeds


def joined_speed(runs: Sequence[Any]) -> dict[str, Any] | None:
    """What the shards of a detector's run measured, as one: the median of their medians.

    None, which is no speed, where a shard has none or they are of several machines.
    """
    found = list(speeds_of(list(map(str, range(len(runs)))), runs).values())
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
    machines, rows = {speed.machine for speed in mine.values()}, list[list[Cell]]()
    for row in table.rows:
        speed = mine.get(str(row[0]))
        rows.append([*row, speed.ms_per_image if speed else None])
    notes = ["ms per image: median time of the detector on one image, warm-up left out"]
    if len(machines) > 1:
        notes[0] += ", on different machines."
        notes += [f"ms per image: {name} on {speed.machine}." for name, speed in mine.items()]
    else:
        notes[0] += f"; {machines.pop()}."
    rank = None if len(notes) > 1 else False
    column = model.Field("ms_per_image", "ms per image", "ms", ".1f", rank, paper=False)
    return replace(table, columns=[*table.columns, column], rows=rows, notes=[*notes, *table.notes])


# ---- tables --------------------------------------------------------------------------------------


def score_tables(
    runs: Sequence[Any],
    names: Sequence[str] | None = None,
    extra: Sequence[tuple[str, Mapping[str, Any], Mapping[str, str]]] = (),
    notes: Sequence[str] = (),
    columns: Sequence[str] | None = None,
) -> list[Table]:
    """One table per metric: a row per run, then the extra rows that have scores of it.

    A run alone is shown with all that its metrics show, several with what compares. Runs of
    `bsdsbench run` have a last column, milliseconds per image.

    names : one per run, in place of their own
    extra : further rows, such as published results: name, scores as in result.json, and a word for
            each score that is of another kind than the column; it is shown and is never the best
    notes : further lines under each table
    columns : these alone, by key or heading; "all" for every one; default: the usual ones
    """
    everything = columns is not None
    names = [run.name for run in runs] if names is None else names
    how, first, n_rows = made_how(runs, names), runs[0], len(runs) + len(extra)
    n, alone = len(first.records), n_rows == 1
    named = first.identity and first.identity.name
    where = f" on {first.identity.describe() if named else f'{n} images'}" if n or named else ""
    shown = "scores" if alone else f"{n_rows} methods"
    sentence = f"{shown}{where}, protocol {first.protocol.name}"
    by_metric: dict[str, list[tuple[str, Any]]] = {}
    for name, run in zip(names, runs, strict=True):
        for metric, score in run.scores().items():
            by_metric.setdefault(metric, []).append((name, score))
    marks = {name: words for name, _, words in extra}
    # A table: key, title, columns, rows, how many of these are of runs, words beside scores
    planned: list[tuple[str, str, Any, list[tuple[str, Any]], int, Mapping[str, Any]]] = []
    for metric, mine in by_metric.items():
        found, n_own = registry.get(metric), len(mine)
        mine += [(name, scores[metric]) for name, scores, _ in extra if metric in scores]
        usual = None if everything else found.usual(found.options_of(first.protocol))
        planned.append((metric, found.title, _kept(found.columns, usual, mine), mine, n_own, marks))
        inner: list[tuple[str, Any]] = []
        ends = {}
        parts = found.parts(first.protocol, found.options_of(first.protocol)) if alone and n else {}
        for name, path in parts.items():
            if (score := part_of(mine[0][1], path)) is not None:
                inner.append((name, score))
                if score.get("at_grid_end"):
                    ends[name] = {"ods": GRID_END}
        if inner:
            title = f"{found.title}, part by part"
            some = _kept(found.part_columns, usual, inner)
            planned.append((f"{metric}-parts", title, some, inner, len(inner), ends))
    if columns is not None and "all" not in columns:  # notes are of these alone
        chosen = {word.rpartition(".")[2].casefold() for word in columns}
        asked_for = [[c for c in p[2] if {c.key, c.heading.casefold()} & chosen] for p in planned]
        if len({c.key for each in asked_for for c in each}) >= len(columns):
            planned = [(*p[:2], each, *p[3:]) for p, each in zip(planned, asked_for, strict=True)]
    speeds, tables = speeds_of(names, runs), []
    for key, title, wanted, mine, n_own, words in planned:
        # Measures that nobody asked for are left out; undefined ones stay.
        asked = set().union(*[s for _, s in mine])
        kinds = ("always", "own" if alone else "several")
        some = [c for c in wanted if columns is not None or c.shown in kinds]
        own = [c for c in some if c.key.partition(".")[0] in asked]
        rows, values, fewer = list[list[Cell]](), list[dict[str, Any]](), dict[str, list[str]]()
        for name, mapping in mine:
            scored = {c.key: at(mapping, c.key) for c in own}
            marked = {k: words.get(name, {}).get(k, "") for k, v in scored.items() if v is not None}
            # What is said of every number of a published row is said once, after its name.
            once = len({*marked.values()}) == 1 and words is marks and next(iter(marked.values()))
            row = list[Cell]([f"{name} [{once}]" if once else name])
            for c in own:
                value, mark = scored[c.key], marked.get(c.key)
                said = "" if once else f"[{mark}]"
                row.append(Estimate(value, mark=said, comparable=False) if mark else value)
                for what, (some, of) in mapping.get("over", {}).get(c.key, {}).items():
                    line = f"{name}: means over {some:,} of {of:,} {what}"
                    fewer.setdefault(line, []).append(c.heading)
            rows.append(row)
            values.append(scored)
        lines = why_undefined(own, values[:n_own])
        theirs = [c for c in own if c.score and any([v[c.key] is None for v in values[n_own:]])]
        if theirs:
            under = ", ".join(c.heading for c in theirs)
            lines.append(f"- under {under}: of a published result, where it was not published.")
        lines += [f"{said}: {', '.join(those)}." for said, those in fewer.items()]
        lines += [*how["notes"], *notes]
        if key not in by_metric and words:
            lines.append(AT_GRID_END)
        fields = [METHOD, *[table_column(c, max(0, c.digits - (not alone))) for c in own]]
        more = {**how, "notes": lines, "sentence": f"{title}: {sentence}"}
        table = Table(key, title, fields, rows, **more)
        tables.append(with_speeds(table, speeds) if key in by_metric else table)
    return tables if columns is None or "all" in columns else select(tables, columns)


def _kept(
    columns: Sequence[Column], usual: Sequence[str] | None, rows: Sequence[tuple[str, Any]]
) -> Sequence[Column]:
    """The usual columns that some row defines; all if none are usual."""
    if usual is None:
        return columns
    there = [k for k in usual if any(at(scores, k) is not None for _, scores in rows)]
    return [c for c in columns if c.key in there]


def part_of(scores: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    """The scores of a part, None where there is none."""
    for step in path:
        scores = scores.get(step) if isinstance(scores, Mapping) else None  # type: ignore[assignment]
    return scores


def at_threshold_of(run: Any, other: Any) -> list[Table]:
    """Precision, recall and F of a run at the threshold that was best on another set, beside its
    ODS: a table for each metric of both with a curve. Raises DataError if there is none, or if the
    protocols differ."""
    if found := incomparable(run, other):
        raise DataError(f"{other.name}, {run.name}: protocols differ in {'; '.join(found)}")
    metrics = registry.with_curve(run.metrics, run.protocol)
    shared = [m for m in metrics if m in registry.with_curve(other.metrics, other.protocol)]
    if not shared:
        raise DataError(f"{other.name}: no metric with thresholds, expected one of {run.name}")
    both = {*run.image_ids} & {*other.image_ids}
    odd = f"{len(both)} images are in {other.name} too, so its threshold is not chosen apart."
    tables = []
    for metric in shared:
        mine, theirs = run.score(metric), other.score(metric).ods
        point = mine.curve.at(theirs.threshold)
        columns = [
            METHOD,
            model.Field("threshold", f"threshold of {other.name}", "threshold", ".3f"),
            *(model.Field(k, k.upper(), "", ".4f") for k in ("p", "r", "f")),
            model.Field("ods", "ODS", "", ".4f"),
            model.Field("ods_threshold", "ODS threshold", "at", ".3f"),
        ]
        row = [run.name, point.threshold, point.precision, point.recall, point.f]
        note = f"P, R, F: at the threshold of the ODS of {other.name}; ODS: at the best one here."
        tables.append(
            Table(
                f"{metric}-at-threshold",
                f"{registry.get(metric).title}, at the threshold that was best on {other.name}",
                columns,
                [[*row, mine.ods.f, mine.ods.threshold]],
                notes=[note, *([odd] if both else [])],
                signatures=[f"Signature of {other.name}: {other.signature}"],
            )
        )
    return tables


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


def why_undefined(columns: Sequence[Column], values: Sequence[Mapping[str, Any]]) -> list[str]:
    """A note for each reason why a score of some row is undefined."""
    reasons: dict[str, list[str]] = {}
    for c in columns:
        if c.score and any([found[c.key] is None for found in values]):
            reasons.setdefault(c.undefined, []).append(c.heading)
    return [f"- under {', '.join(headings)}: {why}." for why, headings in reasons.items()]


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


def heading_of(name: str) -> str:
    """The heading of METRIC.SCORE, "" without a column."""
    metric, _, key = name.partition(".")
    found = registry.get(metric).columns if metric in registry.names() else ()
    return next((c.heading for c in found if c.key == key), "")


def full_name(score: str, known: Collection[str]) -> str:
    """The known METRIC.SCORE that is meant by it or by SCORE alone; `score` itself if none is.

    SCORE alone is that of the default metric, or of the one metric that has it.

    Examples
    --------
    >>> full_name("ods", ["pixel.ods", "boundary.ods"]), full_name("mae", ["pixel.mae"])
    ('boundary.ods', 'pixel.mae')
    """
    alike = [name for name in known if name.partition(".")[2] == score]
    if not alike:  # by its heading
        alike = [name for name in known if heading_of(name).casefold() == score.casefold()]
    usual = f"{registry.DEFAULT[0]}.{score}"
    if score in known or not alike or (len(alike) > 1 and usual not in alike):
        return score
    return usual if usual in alike else alike[0]
