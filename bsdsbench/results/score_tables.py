"""Make tables of scores: a table per metric with a row per run, and tables with a row per image."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from bsdsbench.errors import DataError
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Column, Metric
from bsdsbench.protocol.signature import Severity
from bsdsbench.results.comparability import pair_differences
from bsdsbench.results.groups import group_columns, text_of
from bsdsbench.results.score_names import select
from bsdsbench.scores.counts import ImageRecord, part_of, value_at
from bsdsbench.scores.curve import PRCurve, describe_late_starts
from bsdsbench.tables import table as model
from bsdsbench.tables.table import Cell, Estimate, Note, Table
from bsdsbench.text import clip, counted, listed

if TYPE_CHECKING:
    from bsdsbench.results.evaluation import Evaluation

METHOD, PART = model.Field("method", "Method"), model.Field("part", "Part")
MOST_NAMED = 20  # images that are left out, in a note
_LONG_REASON = 50  # characters; what was expected is dropped from a longer one
_OF_MAPS = {"pred", "reading"}  # differences of what the predictions' files hold
GRID_END = "grid end"  # beside an ODS at the first or the last threshold
AT_GRID_END = (
    f"[{GRID_END}] no threshold is better than the first or the last one: this ODS says nothing "
    "about the method."
)
# A row: name, scores as in result.json, and a word for scores of another kind than their column
Row = tuple[str, Mapping[str, Any], Mapping[str, str]]


# ---- what stands under a table -------------------------------------------------------------------


def reference_notes(runs: Sequence[Evaluation]) -> list[str]:
    """Return a line about each reference run and each shared run, and on their ODS rules."""
    lines, odd, rules = [], [], set()
    for run in runs:
        rules.add(run.protocol.ods_rule)
        if reference := run.reference:
            lines.append(f"{run.name}: reference run, {run.provenance.about}.")
            odd += [] if reference.ordered else [run.name]
        elif run.provenance.licence or run.provenance.citation:
            licence = f"licence {run.provenance.licence or 'not stated'}"
            cited = " ".join((run.provenance.citation or "").split())
            lines.append(f"{run.name}: shared counts, {licence}{cited and f'; cite: {cited}'}.")
    if odd and len(rules) > 1:
        what = "ODS is the best of all combinations; for other runs it is interpolated."
        lines.append(f"{', '.join(odd)}: {what}")
    return lines


class TableFooter(TypedDict):
    """The texts below a table of scores, as keyword arguments of `Table`."""

    caption: str
    reading: str
    notes: Sequence[str | Note]
    signatures: list[str]


def table_footer(runs: Sequence[Evaluation]) -> TableFooter:
    """Return the texts below a table: how the scores were made, and in what the runs differ."""
    names_by_protocol: dict[str, list[str]] = {}
    lines = _differences_of(runs) if len(runs) > 1 else []
    for run in runs:
        names_by_protocol.setdefault(f"protocol {run.described}", []).append(run.name)
        if scales := run.signature.ms:
            lines.append(f"{run.name}: each map is the mean over the scales {scales}.")
    caption = "; ".join(names_by_protocol)
    if len(names_by_protocol) > 1:
        lines += [f"{', '.join(names)}: {text}." for text, names in names_by_protocol.items()]
        caption = ""
    signatures = [run.signature_line for run in runs]
    return {
        "caption": caption,
        "reading": reading_line(runs),
        "notes": [*left_out_notes(runs), *lines, *reference_notes(runs)],
        "signatures": signature_lines([run.name for run in runs], signatures),
    }


def _differences_of(runs: Sequence[Evaluation]) -> list[str]:
    """Return a line for each difference of two runs.

    Different protocols share one line, the first.
    """
    protocols_differ = False
    lines = list[str]()
    for pair in pair_differences(runs):
        forbids = pair.difference.severity is Severity.FORBIDS
        if pair.difference.of_protocol:
            protocols_differ = protocols_differ or forbids
        elif forbids and pair.difference.field != "metrics":  # these have tables of their own
            lines.append(f"{pair.line()}; such scores are not comparable.")
        elif pair.difference.field == "images":
            lines.append(f"{pair.line()}.")
    if protocols_differ:
        lines.insert(0, "Protocols differ; such scores are not comparable.")
    return lines


def reading_line(runs: Sequence[Evaluation]) -> str:
    """Describe how the files of the runs were read, with names if the runs differ."""
    read: dict[str, list[str]] = {}
    for run in filter(attrgetter("read_as"), runs):
        read.setdefault(run.read_as, []).append(run.name)
    if len(read) == 1 == len(runs) or [*map(len, read.values())] == [len(runs)]:
        return next(iter(read))
    return "; ".join(f"{', '.join(names)} r{line[1:]}" for line, names in read.items())


def left_out_notes(runs: Sequence[Evaluation]) -> list[Note]:
    """Return notes on the images that runs left out, see `notes_on_left_out`."""
    lacking = {run.name: (len(run.records), run.left_out) for run in runs}
    return notes_on_left_out(lacking)


def notes_on_left_out(lacking: Mapping[str, tuple[int, Mapping[str, str]]]) -> list[Note]:
    """Return notes on the images that runs lack, with reasons and the number of images they have.

    `lacking` maps the name of a run or method to its number of images and to image id -> reason.
    Runs that lack the same images share a note.
    """
    names: dict[str, list[str]] = {}
    for name, (n_images, reasons) in lacking.items():
        if reasons:
            n_all = n_images + len(reasons)
            line = f"{n_images} of {n_all} images; left out: {in_short(reasons)}."
            names.setdefault(line, []).append(name)
    several = len(lacking) > 1
    return [
        Note(f"{', '.join(who)}: " * several + line, needed=True) for line, who in names.items()
    ]


def _images_words(runs: Sequence[Evaluation]) -> str:
    """Return the number of images of runs in words, or the name of the set if it is known."""
    sizes = sorted({len(run.records) for run in runs})
    if len(sizes) > 1:
        return f"{sizes[0]} to {sizes[-1]} images"
    known = not runs[0].signature.set.startswith("set:")
    return runs[0].set_line if known else counted(sizes[0], "image")


def in_short(reasons: Mapping[str, str]) -> str:
    """List images with the reasons why they are left out, in brackets. File names are dropped.

    Examples
    --------
    >>> in_short({"a": "empty", "b": "p/b.png: shape (9, 9), expected (8, 8)", "c": "empty"})
    'a, c (empty), b (shape (9, 9), expected (8, 8))'
    """
    images: dict[str, list[str]] = {}
    for image_id, reason in reasons.items():
        file, _, fault = reason.partition(": ")
        why = fault if fault and image_id in file else reason
        if len(why) > _LONG_REASON:
            why = clip(why.partition(", expected ")[0], _LONG_REASON)
        images.setdefault(why, []).append(image_id)
    named = [f"{listed(ids, MOST_NAMED)} ({why})" for why, ids in images.items()]
    more = f", and {len(named) - MOST_NAMED} other faults" if len(named) > MOST_NAMED else ""
    return ", ".join(named[:MOST_NAMED]) + more


def with_left_out(
    tables: Sequence[Table], left_out: Mapping[str, Mapping[str, str]]
) -> list[Table]:
    """Add a column of left-out images and reasons to the tables with a row per run, for CSV.

    `left_out` is run -> image -> reason. If no run lacks images the tables are returned unchanged.
    """
    extended = list(tables)
    for k, table in enumerate(tables if any(left_out.values()) else ()):
        if METHOD in table.columns:
            place = table.columns.index(METHOD)
            rows = [[*row, in_short(left_out.get(str(row[place]), {}))] for row in table.rows]
            columns = [*table.columns, model.Field("left_out", "Left out")]
            extended[k] = replace(table, columns=columns, rows=rows)
    return extended


def signature_lines(names: Sequence[str], signatures: Sequence[str]) -> list[str]:
    """Return a line for each signature that occurs, with the names of its runs. "" is dropped."""
    who: dict[str, list[str]] = {}
    for name, line in zip(names, signatures, strict=True):
        who.setdefault(line, []).append(name)
    if len(names) > 1 and len(who) == 1 and signatures[0]:
        return [f"Signature of each: {signatures[0]}"]
    return [f"Signature of {', '.join(those)}: {line}" for line, those in who.items() if line]


def why_undefined(
    columns: Mapping[str, Column], values: Sequence[Mapping[str, Any]]
) -> list[list[Note]]:
    """Return notes for each row on why its scores are undefined.

    columns : the columns of the metric by their keys in the table
    values : the scores of each row
    """
    scores = {key: Note(f"{c.undefined}.", (key,), True) for key, c in columns.items() if c.score}
    return [[note for key, note in scores.items() if row[key] is None] for row in values]


def curves_of(run: Evaluation, metric: str) -> dict[str, PRCurve]:
    """Return the curves of a metric by part. The key of the overall curve is ""."""
    scorer, score = registry.get(metric), run.score(metric)
    parts = scorer.parts(run.protocol, scorer.options_of(run.protocol)) if run.records else {}
    curves = {}
    for part, path in {"": (), **parts}.items():
        curve = (part_of(score, path) or {}).get("curve")
        if isinstance(curve, PRCurve):
            curves[part] = curve
    return curves


def is_area(score: str) -> bool:
    """Return True for the key of an AP, which is an area under a curve."""
    return score.rpartition(".")[2] in ("ap", "ap_mean")


def late_starts_of(runs: Sequence[Evaluation], metric: str) -> str:
    """Return a note on runs whose AP counts 0 below the start of their curve, else ""."""
    curves, rules, scorer = {}, set(), registry.get(metric)
    for run in runs:
        rules.add(scorer.ap_rule(run.protocol))
        for part, curve in curves_of(run, metric).items():
            names = [run.name] * (len(runs) > 1) + [part] * bool(part)
            curves[", ".join(names)] = curve
    return describe_late_starts(curves, rules.pop()) if len(rules) == 1 else ""


# ---- what a detector takes -----------------------------------------------------------------------


def _with_times(table: Table, runs: Sequence[Evaluation]) -> Table:
    """Add the median milliseconds per image of `runs`, the first rows, as the last column.

    Times on different machines are not ranked. Without times the table is returned unchanged.
    """
    rows = [[*row, None] for row in table.rows]
    names_by_machine: dict[str, list[str]] = {}
    for run, row in zip(runs, rows, strict=False):
        speed = run.provenance.detector or {}
        value = speed.get("ms_per_image")
        if isinstance(value, int | float) and 0 <= value < math.inf:
            row[-1] = float(value)
            machine = str(speed.get("machine") or "machine not named")
            names_by_machine.setdefault(machine, []).append(run.name)
    if not names_by_machine:
        return table
    machines = list(names_by_machine)
    higher_is_better: bool | None = False
    if len(machines) > 1:
        machines = [f"{', '.join(names)} on {m}" for m, names in names_by_machine.items()]
        higher_is_better = None
    note = "ms per image: median time of the detector on one image, warm-up left out"
    column = model.Field("ms_per_image", "ms per image", "ms", ".1f", higher_is_better, paper=False)
    notes = [Note(f"{note}; {'; '.join(machines)}.", (column.key,)), *table.notes]
    return replace(table, columns=[*table.columns, column], rows=rows, notes=notes)


# ---- a row a run ---------------------------------------------------------------------------------


def score_tables(
    runs: Sequence[Evaluation],
    extra: Sequence[Row] = (),
    notes: Sequence[str] = (),
    columns: Sequence[str] | None = None,
) -> list[Table]:
    """Return one table per metric: a row per run, then the extra rows that have scores of it.

    A run alone is shown with all that its metrics show, several with what compares; the parts of
    their scores are in a table of their own, in which the best run of each part is marked. Runs of
    `bsdsbench run` have a last column, milliseconds per image.

    Parameters
    ----------
    runs : sequence of Evaluation
        A row each.
    extra : sequence of tuple
        Further rows, such as published results; a score with a word, "" too, is never the best.
    notes : sequence of str
        Further lines under each table.
    columns : sequence of str or None
        These alone, by key or heading; "all" for every one; default: the usual ones.
    """
    first, n_rows, tables = runs[0], len(runs) + len(extra), list[Table]()
    alone, sentence = n_rows == 1, "scores" if n_rows == 1 else f"{n_rows} methods"
    if first.records:
        sentence += f" on {_images_words(runs)}"
    sentence += f", protocol {first.protocol.name}"
    style = _Style(alone, columns is not None, sentence, table_footer(runs), notes)
    for metric in dict.fromkeys(chain(*map(attrgetter("metrics"), runs))):
        scorer, with_metric = registry.get(metric), [run for run in runs if metric in run.metrics]
        rows: list[Row] = [(run.name, run.score(metric).to_mapping(), {}) for run in with_metric]
        for name, by_metric, words in extra:
            if metric in by_metric:
                rows.append((name, by_metric[metric], words))
        # With those of tolerances that any of the rows has
        possible = scorer.columns_of(list(dict.fromkeys(chain(*[scores for _, scores, _ in rows]))))
        whole = _Rows(metric, scorer.title, possible, rows)
        tables.append(_with_times(_table_of(whole, scorer, with_metric, style), with_metric))
        if inner := _part_rows(scorer, with_metric, alone):
            title, parts = f"{scorer.title}, part by part", list(inner.values())
            by_part = _Rows(f"{metric}-parts", title, scorer.part_columns, parts, list(inner))
            tables.append(_table_of(by_part, scorer, with_metric, style))
    return select(tables, columns) if columns and "all" not in columns else tables


class _Style(NamedTuple):
    """What all tables of scores have in common.

    alone : there is one row; chosen : the columns are asked for; sentence : what the scores are of
    """

    alone: bool
    chosen: bool
    sentence: str
    made: TableFooter
    notes: Sequence[str]


class _Rows(NamedTuple):
    """The rows of a table, and the columns that it may have.

    `names` are the part and the run of each row, where rows are parts of scores.
    """

    key: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    names: Sequence[tuple[str, str]] = ()


def _table_of(given: _Rows, metric: Metric, runs: Sequence[Evaluation], style: _Style) -> Table:
    """Return the table of a metric's scores, or of the scores of its parts.

    `runs` have the first rows.
    """
    usual = metric.usual(metric.options_of(runs[0].protocol))
    kinds = ("always", "own" if style.alone else "several")
    known, shown = set().union(*[scores for _, scores, _ in given.rows]), dict[str, Column]()
    for c in given.columns:
        # Measures that nobody asked for are left out; undefined ones stay.
        is_usual = c.shown in kinds and (usual is None or c.key in usual)
        if c.key.partition(".")[0] in known and (style.chosen or is_usual):
            shown[c.key.replace(".", "_")] = c
    filled, labels = _filled(shown, given.rows), [METHOD]
    if given.names:
        labels = [PART, METHOD][: 2 - style.alone]
        for names, cells in zip(given.names, filled.cells, strict=True):
            cells[:1] = names[: len(labels)]
    lines, row_notes = list[str | Note](), filled.fewer
    of_runs = filled.scores[: len(given.names or runs)]
    for row, undefined in enumerate(why_undefined(shown, of_runs)):
        row_notes[row] = [*undefined, *row_notes[row]]
    areas = [key for key, c in shown.items() if is_area(c.key)]
    if areas and (line := late_starts_of(runs, metric.name)):
        lines.append(Note(f"{line}.", tuple(areas), headed=True))
    for name, scores, _ in given.rows if metric.numbers and not given.names else ():
        if numbers := [f"{scores[c.key]:,.0f} {c.key}" for c in metric.numbers if c.key in scores]:
            lines.append(f"{name}: {', '.join(numbers)}.")
    lines += [*style.made["notes"], *style.notes]
    if given.names and any(words for _, _, words in given.rows):
        lines.append(AT_GRID_END)
    fewer_digits = not style.alone
    fields = [*labels, *[table_column(c, max(0, c.digits - fewer_digits)) for c in shown.values()]]
    words: Any = {**style.made, "notes": lines, "sentence": f"{given.title}: {style.sentence}"}
    words |= {"n_labels": len(labels), "ranked_within": PART.key if given.names else ""}
    words["row_notes"] = row_notes
    return Table(given.key, given.title, fields, filled.cells, **words)


def _part_rows(
    metric: Metric, runs: Sequence[Evaluation], alone: bool
) -> dict[tuple[str, str], Row]:
    """Return the rows of a metric's parts by (part, run).

    With several runs, parts whose scores are columns of the overall table are left out.
    """
    rows: dict[str, dict[tuple[str, str], Row]] = {}  # by part
    keys, scores = {c.key for c in metric.columns}, [c.key for c in metric.part_columns if c.score]
    for run in runs:
        parts = metric.parts(run.protocol, metric.options_of(run.protocol)) if run.records else {}
        for part, path in parts.items():
            tree = part_of(run.score(metric.name).to_mapping(), path)
            if tree is None or not (alone or (scores and ".".join((*path, scores[0])) not in keys)):
                continue
            words = {"ods": GRID_END} if tree.get("at_grid_end") else {}
            row = part if alone else f"{part}, {run.name}", tree, words
            rows.setdefault(part, {})[part, run.name] = row
    return dict(chain.from_iterable(map(dict.items, rows.values())))


class _Filled(NamedTuple):
    """Of each row of a table the cells, the scores, and notes of means over some images alone."""

    cells: list[list[Cell]]
    scores: list[dict[str, Any]]
    fewer: list[list[Note]]


def _filled(columns: Mapping[str, Column], rows: Sequence[Row]) -> _Filled:
    """Return the cells, scores and notes of rows. `columns` are by their keys in the table."""
    filled = _Filled([], [], [])
    for name, scores, marks in rows:
        values: dict[str, Any] = {}
        cells: list[Cell] = [name]
        notes: list[Note] = []
        for key, column in columns.items():
            value = value_at(scores, column.key)
            values[key] = value
            mark = marks.get(column.key)
            if mark is not None and value is not None:
                value = Estimate(value, mark=f"[{mark}]" if mark else "", comparable=False)
            cells.append(value)
            for unit, (n, n_all) in scores.get("over", {}).get(column.key, {}).items():
                line = f"means over {n:,} of {n_all:,} {unit} of {name}."
                notes.append(Note(line, (key,), headed=True))
        filled.cells.append(cells)
        filled.scores.append(values)
        filled.fewer.append(notes)
    return filled


def table_column(column: Column, digits: int, before: str = "") -> model.Field:
    """Return the table column of a metric's column, with `digits` decimals.

    `before` is put before the key.
    """
    return model.Field(
        before + column.key.replace(".", "_"),
        column.heading,
        column.short,
        f".{digits}f",
        not column.lower if column.score else None,
        paper=column.score,
    )


def at_threshold_of(run: Evaluation, other: Evaluation) -> list[Table]:
    """Return tables of precision, recall and F of a run at the ODS threshold of another run.

    There is a table for each metric with a curve in both runs, which also has the ODS of `run`.
    Raises DataError if there is no such metric, or if the protocols or the kinds of maps differ.
    """
    for pair in pair_differences([other, run]):  # the images are others, NMS must not be
        difference = pair.difference
        decides = difference.of_protocol or difference.field in _OF_MAPS
        if decides and difference.severity is not Severity.IGNORED:
            raise DataError(f"{pair.line()}; a threshold holds for one protocol and kind of maps")
    columns = [METHOD, model.Field("threshold", f"threshold of {other.name}", "threshold", ".3f")]
    columns += [model.Field(key, key.upper(), "", ".4f") for key in ("p", "r", "f", "ods")]
    columns.append(model.Field("ods_threshold", "ODS threshold", "threshold", ".3f"))
    text = f"P, R, F: at the ODS threshold of {other.name}; ODS: at the best threshold of this run."
    notes: list[str | Note] = [Note(text, ("p", "r", "f", "ods"))]
    if both := {*run.image_ids} & {*other.image_ids}:
        notes.append(
            f"{len(both)} images are also in {other.name}, so its threshold was not chosen "
            "independently."
        )
    words: Any = {"notes": notes, "reading": reading_line([run, other])}
    words["signatures"] = [f"Signature of {other.name}: {other.signature}"]
    tables = []
    for metric in filter(other.with_curve.__contains__, run.with_curve):
        score, best = run.score(metric), other.score(metric)
        grids = [s.curve.thresholds[[0, -1]].tolist() for s in (best, score)]
        if grids[0] != grids[1]:  # of segmentations, whose thresholds are their levels
            spans = " / ".join("{:g} to {:g}".format(*grid) for grid in grids)
            differing = f"{other.name}, {run.name}: thresholds from {spans}"
            raise DataError(f"{differing}; a threshold holds for one protocol and kind of maps")
        point = score.curve.at(best.ods.threshold)
        row = [run.name, point.threshold, point.precision, point.recall, point.f]
        title = f"{registry.get(metric).title}, at the threshold that was best on {other.name}"
        rows, key = [[*row, score.ods.f, score.ods.threshold]], f"{metric}-at-threshold"
        tables.append(Table(key, title, columns, rows, **words))
    if not tables:
        raise DataError(f"{other.name}: no metric with thresholds, expected one of {run.name}")
    return tables


# ---- a row an image ------------------------------------------------------------------------------


def image_table(run: Evaluation) -> Table:
    """Return a table with a row per image: its size and its own scores under every metric.

    With several metrics the keys begin with the metric, such as "region_covering".
    """
    columns = [model.Field("image", "Image")]
    columns += [model.Field(key, key.capitalize(), "", "d") for key in ("rows", "columns")]
    rows: list[list[Cell]] = [[record.image_id, *record.size] for record in run.records]
    for metric in run.metrics:
        before, shown = f"{metric}_" * (len(run.metrics) > 1), registry.get(metric).image_columns
        columns += [table_column(c, c.digits, before) for c in shown]
        for row, values in zip(rows, run.image_scores(metric).values(), strict=True):
            row += [values.get(c.key) for c in shown]
    grouped = _group_fields(run.records, columns)
    for row, record in zip(rows, run.records, strict=True):
        row += _group_cells(record, grouped)
    columns += grouped
    _add_left_out(run, columns, rows)
    title = f"{run.name}, image by image"
    return Table("images", title, columns, rows, aside=True, **table_footer([run]))


def _group_fields(
    records: Sequence[ImageRecord], others: Sequence[model.Field]
) -> list[model.Field]:
    """Return a table column for every grouping attribute of the images.

    `others` are the columns already in the table. A group whose name is taken gets the key
    "group_NAME".
    """
    fields, taken = [], {field.key for field in others}
    for column in group_columns(records):
        is_number = all(isinstance(r.groups.get(column), float | None) for r in records)
        key = f"group_{column}" if column in taken else column
        number_format = ".6g" if is_number else ""
        fields.append(model.Field(key, column, "", number_format, paper=False))
    return fields


def _group_cells(record: ImageRecord, fields: Sequence[model.Field]) -> list[Cell]:
    """Return an image's values in the columns of its groups."""
    values = [(field, record.groups.get(field.heading)) for field in fields]
    return [value if field.format else value and text_of(value) for field, value in values]


def _add_left_out(run: Evaluation, fields: list[model.Field], rows: list[list[Cell]]) -> None:
    """Add a column of reasons, and a row for each image that is left out, in place.

    Nothing is added if no image is left out.
    """
    if run.left_out:
        blank: list[Cell] = [None] * (len(fields) - 1)
        fields.append(model.Field("left_out", "Left out"))
        for row in rows:
            row.append("")
        rows += [[image_id, *blank, reason] for image_id, reason in run.left_out.items()]


# What is an ODS of a data set is the best F of an image.
_BEST_OF_IMAGE = {
    "ods": "best F",
    "ods.threshold": "best F at",
    "ods.precision": "P at best F",
    "ods.recall": "R at best F",
}


def per_image(run: Evaluation, metric: str) -> Table:
    """Return every score of every image: a row per image, then a row for each of its parts.

    `values` is part -> column -> value of each image. A score that is not measured with the run's
    options has no column; an undefined score is an empty cell.
    """
    values = run.image_values(metric)
    scorer, measured = registry.get(metric), dict.fromkeys(chain(*values.values()))
    columns: dict[str, Column] = {}
    for c in (*scorer.columns_of(list(measured)), *scorer.image_columns, *scorer.part_columns):
        if c.key in measured:
            named = _BEST_OF_IMAGE.get(c.key)
            columns.setdefault(c.key, replace(c, heading=named, short="") if named else c)
    labels = ["image", "part"][: 1 + (len(values) > 1)]
    fields = [model.Field(name, name.capitalize()) for name in labels]
    scored = [table_column(c, c.digits) for c in columns.values()]
    grouped = _group_fields(run.records, [*fields, *scored])
    fields += [*grouped, *scored]
    rows, none = [], [None] * len(run.records)
    for i, record in enumerate(run.records):
        of_groups = _group_cells(record, grouped)
        for part, by_column in values.items():
            cells = [by_column.get(key, none)[i] for key in columns]
            rows.append([*(record.image_id, part or None)[: len(labels)], *of_groups, *cells])
    _add_left_out(run, fields, rows)
    title = f"{scorer.title}, image by image"
    return Table(metric, title, fields, rows, n_labels=len(labels), **table_footer([run]))
