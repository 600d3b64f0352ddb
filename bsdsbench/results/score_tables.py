"""Tables of scores, one per metric with one row per run, and the notes below tables of runs."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Column, Metric
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.protocol.signature import Severity
from bsdsbench.results.comparability import equal_counts_notes, pair_differences
from bsdsbench.results.score_names import select
from bsdsbench.scores.counts import part_of, value_at
from bsdsbench.scores.curve import PRCurve, describe_late_starts
from bsdsbench.scores.error_scores import COUNTED
from bsdsbench.tables.table import Cell, Estimate, Field, Note, Table
from bsdsbench.text import grouped, join_names, quantity, shorten

if TYPE_CHECKING:
    from bsdsbench.results.evaluation import Evaluation

METHOD, PART = Field("method", "Method"), Field("part", "Part")
IMAGE_COUNT = Field("images", "images", short="n", format="d")
MOST_NAMED = 20  # the maximum number of left-out images, and of reasons, that a note lists
_LONG_REASON = 50  # characters; longer reasons are cut before ", expected ..."
_GRID_END = "grid end"  # the mark of an ODS at the first or last threshold
_AT_GRID_END = f"[{_GRID_END}] no threshold is better than the first or the last one: this ODS says"
_AT_GRID_END += " nothing about the method."


class ExtraRow(NamedTuple):
    """A row of a table of scores that is not a run, such as a published result."""

    label: str  # in the column of methods
    scores_by_metric: Mapping[str, Mapping[str, Any]]  # metric -> scores as in result.json
    # Key of a score -> text to print after it, "" for none. A score that has a mark, even "", is
    # not comparable with the others, and never highlighted as the best of its column.
    marks: Mapping[str, str]


def metric_with_errors(run: Evaluation) -> Metric | None:
    """Return the first metric of a run with counts of error classes, or None if there is none."""
    counts = run.records[0].counts if run.records else {}
    return next((registry.get(m) for m in run.metrics if COUNTED in counts.get(m, ())), None)


class TableFooter(TypedDict):
    """What tables of the same runs share, mostly texts below them, as arguments of `Table`."""

    caption: str  # the protocol, or "" if the runs have different protocols
    reading: str  # how the files were interpreted
    notes: Sequence[str | Note]
    signatures: list[str]
    ranked: bool  # False if the runs are not comparable: no score is marked as the best


def table_footer(runs: Sequence[Evaluation], notes: Sequence[str | Note] = ()) -> TableFooter:
    """Return the texts below a table of runs, of which the given `notes` come first.

    The other notes list left-out images, differences between the runs, runs whose maps are averages
    over scales, the protocols if they differ, and the sources of reference runs and shared runs.
    """
    differences = difference_notes(runs) if len(runs) > 1 else []
    lines = [*differences, *missing_notes(runs)]
    if len(runs) > 1:
        lines += equal_counts_notes(runs)
    left_out = {}  # name of the run -> (number of counted images, {left-out image: reason})
    protocols, signatures = [], []  # pairs of a text and the name of the run
    for run in runs:
        left_out[run.name] = len(run.records), run.left_out
        protocols.append((f"protocol {run.described}", run.name))
        signatures.append((run.signature_line, run.name))
        if scales := run.signature.ms:
            lines.append(f"{run.name}: each map is the mean over the scales {scales}.")
    names_by_protocol = grouped(protocols)
    is_same = len(names_by_protocol) == 1
    if not is_same:
        lines += [f"{', '.join(names)}: {text}." for text, names in names_by_protocol.items()]
    return {
        "caption": f"protocol {runs[0].described}" if is_same else "",
        "reading": reading_line(runs),
        "notes": [*notes, *left_out_notes(left_out), *lines, *reference_notes(runs)],
        "signatures": signature_lines(signatures),
        "ranked": not differences,
    }


def missing_notes(runs: Sequence[Evaluation]) -> list[str]:
    """Return a line for each run in which missing predictions were counted as empty maps."""
    lines = []
    for run in runs:
        missing = []
        for record in run.records:
            if record.form == "none":  # the storage format of a missing prediction
                missing.append(record.image_id)
        if missing:
            share = f"{len(missing)} of {quantity(len(run.records), 'image')}"
            names = join_names(missing)
            lines.append(f"{run.name}: no prediction for {names}, counted as empty ({share}).")
    return lines


def image_numbers(runs: Sequence[Evaluation]) -> str:
    """Return the number of images of the runs, "5 images", or "5 to 6 images" if they differ."""
    sizes = set(map(len, map(attrgetter("records"), runs)))
    smallest = f"{min(sizes)} to " if min(sizes) < max(sizes) else ""
    return f"{smallest}{quantity(max(sizes), 'image')}"


def reference_notes(runs: Sequence[Evaluation]) -> list[str]:
    """Return a line about the source of each reference run and shared run, and about each shard.

    A reference run has the counts of a published method. If the runs have different ODS rules, a
    last line names those whose ODS cannot be interpolated: their counts are not at thresholds but
    at combinations of parameters of the method, which have no order.
    """
    lines: list[str] = []
    without_order: list[str] = []
    for run in runs:
        if run.reference:
            lines.append(f"{run.name}: reference run, {run.provenance.about}.")
            if not run.reference.ordered:
                without_order.append(run.name)
        elif run.provenance.licence or run.provenance.citation:
            line = f"{run.name}: shared counts, licence {run.provenance.licence or 'not stated'}"
            if run.provenance.citation:
                line += f"; cite: {' '.join(run.provenance.citation.split())}"
            lines.append(f"{line}.")
        if run.provenance.shard:
            part = f"shard {run.provenance.shard}, not all images"
            lines.append(f"{run.name}: {part}; `bsdsbench merge` joins the shards.")
    if without_order and len({run.protocol.ods_rule for run in runs}) > 1:
        rule = "ODS is the best of all combinations; for other runs it is interpolated."
        lines.append(f"{', '.join(without_order)}: {rule}")
    return lines


def difference_notes(runs: Sequence[Evaluation]) -> list[str]:
    """Describe the differences between runs that a table of the runs must mention.

    There is a line for each difference in images, and for each other difference that forbids a
    comparison. Differences in protocol that forbid it share one line, which is the first. Runs
    without a common metric get no line, because each metric has its own table.
    """
    protocols_differ = False
    lines = list[str]()
    for pair in pair_differences(runs):
        difference = pair.difference
        # FORBIDS to compare scores; others need a note (SAID) or not even this (IGNORED)
        forbids = difference.severity is Severity.FORBIDS
        if difference.of_protocol:  # a setting, such as the tolerance
            protocols_differ = protocols_differ or forbids
        elif forbids and difference.field != "metrics":  # "metrics": no metric in common
            lines.append(f"{pair.line()}; such scores are not comparable.")
        elif difference.field == "images":
            lines.append(f"{pair.line()}.")
    if protocols_differ:
        lines.insert(0, "Protocols differ; such scores are not comparable.")
    return lines


def reading_line(runs: Sequence[Evaluation]) -> str:
    """Describe how the files of the runs were interpreted (`Evaluation.read_as`).

    This is a line "Read as: ...". If the runs differ, it is "NAME, NAME read as: ...; NAME read as:
    ...", without the runs for which it is unknown ("").
    """
    names_by_line = grouped(map(attrgetter("read_as", "name"), runs))
    if len(names_by_line) == 1:
        return runs[0].read_as
    # After the names of runs, the "R" of "Read as" becomes lower case
    lines = [f"{', '.join(names)} r{line[1:]}" for line, names in names_by_line.items() if line]
    return "; ".join(lines)


def left_out_notes(left_out: Mapping[str, tuple[int, Mapping[str, str]]]) -> list[Note]:
    """Return notes on which images runs left out and why. Runs with the same text share a note.

    left_out : name of a run or method -> (number of counted images, {left-out image: reason}).
    """
    named_lines = []  # pairs of a line and the name of the run
    for name, (n, reasons) in left_out.items():
        if reasons:
            line = f"{n} of {n + len(reasons)} images; left out: {summarize_reasons(reasons)}."
            named_lines.append((line, name))
    notes = []
    for line, names in grouped(named_lines).items():
        text = f"{', '.join(names)}: {line}" if len(left_out) > 1 else line
        notes.append(Note(text, needed=True))
    return notes


def summarize_reasons(reasons: Mapping[str, str]) -> str:
    """List left-out images by reason: "a, c (empty), b (shape (9, 9), expected (8, 8))".

    A file name at the start of a reason is dropped, and a long reason is cut. At most MOST_NAMED
    reasons are listed, with at most MOST_NAMED images each.

    reasons : image id -> reason.
    """
    ids_by_reason: dict[str, list[str]] = {}
    for image_id, reason in reasons.items():
        file, _, problem = reason.partition(": ")  # of "FILE: PROBLEM"
        short_reason = problem if problem and image_id in file else reason
        if len(short_reason) > _LONG_REASON:
            short_reason = shorten(short_reason.partition(", expected ")[0], _LONG_REASON)
        ids_by_reason.setdefault(short_reason, []).append(image_id)
    texts = [f"{join_names(ids, MOST_NAMED)} ({reason})" for reason, ids in ids_by_reason.items()]
    line = ", ".join(texts[:MOST_NAMED])
    n_more = len(texts) - MOST_NAMED
    return f"{line}, and {n_more} other faults" if n_more > 0 else line


def signature_lines(signatures: Sequence[tuple[str, str]]) -> list[str]:
    """Return a line for each distinct signature: "Signature of NAME, NAME: SIGNATURE".

    If several runs all have the same signature, the line is "Signature of each: SIGNATURE". Runs
    whose signature is "" are left out. `signatures` has a pair (signature, name) for each run.
    """
    lines = []
    for signature, names in grouped(signatures).items():
        if signature:
            listed_names = "each" if 1 < len(names) == len(signatures) else ", ".join(names)
            lines.append(f"Signature of {listed_names}: {signature}")
    return lines


def undefined_notes(columns: Mapping[str, Column], cells: Mapping[str, Any]) -> list[Note]:
    """Return a note for each undefined score in a row of a table, with the possible reason.

    columns : key in the table -> column of the metric, which states the reason (`Column.undefined`)
    cells : the same keys -> the values of the row. Undefined ones are None, or absent
    """
    notes = []
    for key, column in columns.items():
        if column.score and cells.get(key) is None:  # thresholds are not scores
            notes.append(Note(f"{column.undefined}.", columns=(key,), names_columns=True))
    return notes


def with_left_out(
    tables: Sequence[Table], left_out: Mapping[str, Mapping[str, str]]
) -> list[Table]:
    """Add a last column with left-out images and reasons to tables, for CSV, which has no notes.

    A table without the column METHOD, which names the runs, is returned unchanged. So are all
    tables if no run has left out an image.

    left_out : name of a run -> {image id: reason}.
    """
    if not any(left_out.values()):
        return list(tables)
    extended = []
    for table in tables:
        if METHOD in table.columns:
            k = table.columns.index(METHOD)  # its cells are names of runs
            rows = [[*row, summarize_reasons(left_out.get(str(row[k]), {}))] for row in table.rows]
            columns = [*table.columns, Field("left_out", "Left out")]
            table = replace(table, columns=columns, rows=rows)
        extended.append(table)
    return extended


def curves_of(run: Evaluation, metric: str) -> dict[str, PRCurve]:
    """Return the precision-recall curves of a metric by class or other part; "" is the overall one.

    Parts without a curve are left out. A run without records has only the overall curve: official
    result files, from which such a run comes, have no parts.
    """
    curves = {}
    by_part = registry.get(metric).scores_by_part(run.score(metric), run.protocol)
    for part, scores in by_part.items():
        curve = scores.get("curve")
        if isinstance(curve, PRCurve) and (run.records or not part):
            curves[part] = curve
    return curves


def is_ap(score: str) -> bool:
    """Return True if a score, given by its key, is an average precision (AP)."""
    return score.rpartition(".")[2] in ("ap", "ap_mean")


def late_starts_note(runs: Sequence[Evaluation], metric: str) -> str:
    """Return a note on curves that start at a recall well above 0, or "" if there are none.

    `describe_late_starts` decides which do, and writes the text. Some AP rules count the area below
    that recall as 0. If the runs have different AP rules, "" is returned. A curve is named by its
    class or other part and, if there are several runs, by its run: "hed, liver".
    """
    if "ap_rule" not in registry.get(metric).uses:  # its AP starts at recall 0
        return ""
    ap_rules = set()
    curves: dict[str, PRCurve] = {}  # name of the curve -> curve
    for run in runs:
        ap_rules.add(run.protocol.ap_rule)
        for part, curve in curves_of(run, metric).items():
            run_name = run.name if len(runs) > 1 else ""
            curves[", ".join(filter(None, (run_name, part)))] = curve
    return describe_late_starts(curves, ap_rules.pop()) if len(ap_rules) == 1 else ""


def _add_times(table: Table, runs: Sequence[Evaluation]) -> Table:
    """Add a column with the detector's milliseconds per image, and a note on the machines.

    The first rows of the table must belong to `runs`. Times from different machines are not ranked.
    If no run has a time, the table is returned unchanged.
    """
    times: list[float | None] = [None] * len(table.rows)
    timed = []  # pairs of a machine and the name of a run
    for k, run in enumerate(runs):
        speed = run.provenance.detector or {}  # written by `bsdsbench run`, with JSON values
        milliseconds = speed.get("ms_per_image")
        if isinstance(milliseconds, int | float) and 0 <= milliseconds < math.inf:
            times[k] = float(milliseconds)
            timed.append((str(speed.get("machine") or "machine not named"), run.name))
    if not timed:
        return table
    names_by_machine = grouped(timed)
    have_several = len(names_by_machine) > 1
    machines = list(names_by_machine)
    if have_several:
        machines = [f"{', '.join(names)} on {m}" for m, names in names_by_machine.items()]
    higher_is_better = None if have_several else False  # None: not ranked
    note = "ms per image: median time of the detector on one image, warm-up left out"
    column = Field("ms_per_image", "ms per image", "ms", ".1f", higher_is_better, paper=False)
    notes = [Note(f"{note}; {'; '.join(machines)}.", (column.key,)), *table.notes]
    rows = [[*row, time] for row, time in zip(table.rows, times, strict=True)]
    return replace(table, columns=[*table.columns, column], rows=rows, notes=notes)


def score_tables(
    runs: Sequence[Evaluation],
    extra: Sequence[ExtraRow] = (),
    notes: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    intervals: Mapping[tuple[str, str], Estimate] = MappingProxyType({}),
) -> list[Table]:
    """Build a table of scores for each metric: one row per run, then the rows in `extra`.

    A table with a single row shows more columns than one that compares several rows. Scores of
    parts, such as classes, are in a second table, in which the best run of each part is marked. If
    `bsdsbench run` has timed a detector, a last column shows milliseconds per image.

    extra: further rows, such as published results, for the tables of the metrics that they have.
    notes: further lines below each table.
    columns: the columns to show, by key or heading, or ["all"]. Default: the main columns.
    intervals: (name of a run, METRIC.SCORE or METRIC.PART.SCORE) -> the score with its confidence
        interval, which replaces the score.

    Raises DataError if `columns` names a score that no table has.
    """
    n_rows = len(runs) + len(extra)
    is_single, has_chosen = n_rows == 1, columns is not None
    metric_names = dict.fromkeys(chain.from_iterable(map(attrgetter("metrics"), runs)))  # each once
    # A sentence about all tables: "2 methods on 200 images, protocol bsds500"
    contents = "scores" if is_single else f"{n_rows} methods"
    if runs[0].records:
        images = image_numbers(runs)
        is_known_set = not runs[0].signature.set.startswith("set:")  # "set:N" of an unknown one
        if is_known_set and images == image_numbers(runs[:1]):
            images = runs[0].set_line  # such as "bsds500-test, 200 of 200 images"
        contents += f" on {images}"
    contents += f", protocol {runs[0].protocol.name}"
    footer = table_footer(runs)  # the texts that all tables share
    common_notes = [*footer["notes"], *notes]
    tables = []
    for name in metric_names:
        metric = registry.get(name)
        # The runs that have the metric, and a row for each of these and for others
        its_runs, rows = [], []
        for run in runs:
            if name in run.metrics:
                its_runs.append(run)
                rows.append(_ScoreRow("", run.name, run.score(name).to_mapping(), {}))
        for label, scores_by_metric, marks in extra:
            if name in scores_by_metric:
                rows.append(_ScoreRow("", label, scores_by_metric[name], marks))
        number_lines = []  # the metric's numbers of objects in each row: "hed: 1,200 pairs."
        for row in rows:
            numbers = []
            for column in metric.numbers:
                if column.key in row.scores:
                    numbers.append(f"{row.scores[column.key]:,.0f} {column.key}")
            if numbers:
                number_lines.append(f"{row.method}: {', '.join(numbers)}.")
        parts = _part_rows(metric, its_runs, is_single)  # for a second table, of classes and so on
        # On a marked ODS of a part: the explanation of the mark
        mark_lines = [_AT_GRID_END] if any(map(attrgetter("marks"), parts)) else []
        for rows_of_table, before in ((rows, number_lines), (parts, mark_lines)):
            if not rows_of_table:
                continue
            table = _score_table(metric, its_runs, rows_of_table, is_single, has_chosen, intervals)
            table.notes = [*table.notes, *before, *common_notes]
            if rows_of_table is rows:
                table = _add_times(table, its_runs)
            table.caption, table.reading = footer["caption"], footer["reading"]
            table.signatures, table.ranked = footer["signatures"], footer["ranked"]
            table.sentence = f"{table.title}: {contents}"
            tables.append(table)
    return select(tables, columns) if columns and "all" not in columns else tables


class _ScoreRow(NamedTuple):
    """A row of a table of scores."""

    part: str  # of the metric, such as a class; "" for overall scores
    method: str  # the name of the run or of the published method
    scores: Mapping[str, Any]  # scores of one metric, or of a part of it, as in result.json
    marks: Mapping[str, str]  # see `ExtraRow.marks`


def _shown_columns(
    metric: Metric,
    protocol: Protocol,
    keys: Collection[str],
    has_parts: bool,
    is_single: bool,
    has_chosen: bool,
) -> dict[Field, Column]:
    """Return the columns of a table of scores of a metric, or of the scores of its parts.

    Of each, this is the field of the table and the column of the metric. Scores have one decimal
    more if the table is of a single run (`is_single`).

    A column is included if the scores in any row have its key, and the metric shows it by default,
    some only if the table is of a single run or only if it is of several. If the user has chosen
    columns (`has_chosen`), all columns that the scores have are included, to choose from them.

    keys : the keys of the scores of all rows, as in result.json: "ods", which holds a dict with
        "threshold" and so on, stands for the columns "ods" and "ods.threshold"
    """
    # Keys that the metric shows with these options; None if it shows all of its columns
    usual_keys = metric.usual(metric.options_of(protocol))
    shown_kinds = ("always", "own" if is_single else "several")  # values of `Column.shown`
    shown: dict[Field, Column] = {}
    columns = metric.columns_of(keys)
    if has_parts:  # beside columns of their own, those at further tolerances, which the keys tell
        columns = (*metric.part_columns, *(c for c in columns if c not in metric.columns))
    for column in columns:
        is_usual = not usual_keys or column.key in usual_keys
        is_shown = has_chosen or (is_usual and column.shown in shown_kinds)
        if is_shown and column.key.partition(".")[0] in keys:
            digits = column.digits if is_single else max(0, column.digits - 1)
            shown[table_column(column, digits)] = column
    return shown


def _score_table(
    metric: Metric,
    runs: Sequence[Evaluation],
    rows: Sequence[_ScoreRow],
    is_single: bool,
    has_chosen: bool,
    intervals: Mapping[tuple[str, str], Estimate],
) -> Table:
    """Build the table of a metric's overall scores, or of the scores of its parts.

    The columns of the parts, such as classes, and of the methods come first, and then those of
    `_shown_columns`. Notes say which scores are undefined, and which are means over only some
    images.

    runs : the runs that have the metric. In a table of overall scores, the first rows are theirs,
        in this order. The other rows are published results, whose undefined scores need no note.
    is_single : True if the overall table has a single row. Scores then have one decimal more, and
        a table of parts has no column of methods.
    intervals : (name of a run, METRIC.SCORE or METRIC.PART.SCORE) -> what replaces the score.
    """
    has_parts = rows[0].part != ""
    labels = [PART, METHOD] if has_parts else [METHOD]
    if has_parts and is_single:  # all rows are of the one method
        labels = [PART]
    # Keys of the scores in any row, each once, in order
    keys_of_rows = dict.fromkeys(chain.from_iterable(map(attrgetter("scores"), rows)))
    protocol = runs[0].protocol
    columns = _shown_columns(metric, protocol, keys_of_rows, has_parts, is_single, has_chosen)
    ap_keys: list[str] = []  # keys of the fields that hold an AP
    for field, column in columns.items():
        if is_ap(column.key):
            ap_keys.append(field.key)
    table_rows, row_notes = list[list[Cell]](), []
    for k, row in enumerate(rows):
        cells: list[Cell] = [row.part] if has_parts else []
        if METHOD in labels:
            cells.append(row.method)
        row_name = ", ".join(map(str, cells))  # such as "hed", "liver" or "liver, hed"
        prefix = f"{metric.name}.{row.part}." if has_parts else f"{metric.name}."
        scores: dict[str, Cell] = {}  # key of a field -> the score itself
        for field, column in columns.items():
            cell = scores[field.key] = value_at(row.scores, column.key)
            mark = row.marks.get(column.key)
            if mark is not None and isinstance(cell, int | float):  # never the best, even for ""
                cell = Estimate(cell, mark=f"[{mark}]" if mark else "", comparable=False)
            # With a confidence interval, if there is one
            cells.append(intervals.get((row.method, prefix + column.key), cell))
        is_published = k >= len(runs) and not has_parts
        row_notes.append(_notes_on_row(row, row_name, columns, scores, is_published))
        table_rows.append(cells)
    line = late_starts_note(runs, metric.name) if ap_keys else ""  # of curves, for their AP
    notes = [Note(f"{line}.", tuple(ap_keys), names_columns=True)] if line else []
    return Table(
        f"{metric.name}-parts" if has_parts else metric.name,
        f"{metric.title}, part by part" if has_parts else metric.title,
        [*labels, *columns],
        table_rows,
        notes=notes,
        row_notes=row_notes,
        n_labels=len(labels),
        ranked_within=PART.key if has_parts else "",  # the best run of each part is marked
    )


def _notes_on_row(
    row: _ScoreRow,
    row_name: str,
    columns: Mapping[Field, Column],
    scores: Mapping[str, Cell],
    is_published: bool,
) -> list[Note]:
    """Return notes on the scores of a row that are undefined, or that the run did not compute.

    Further notes are on means that leave out some images or classes. They are the only ones on a
    published result (`is_published`), whose undefined scores need no note.

    row_name : such as "hed", or "liver, hed" with a part
    scores : key of a field -> the score, None if it is undefined
    """
    # Score -> unit, such as "images" -> (number, number of all)
    numbers_of_means = row.scores.get("over", {})
    # With other settings, or in official tables, a run lacks scores that others have. A class that
    # never occurs lacks all of them, and these are undefined
    computed: dict[str, Column] = {}  # key of a field -> the column of the metric
    lacking: list[str] = []
    notes = []
    for field, column in columns.items():
        if row.part or column.key.partition(".")[0] in row.scores:
            computed[field.key] = column
        elif column.score:
            lacking.append(field.key)
        for unit, (n, n_all) in numbers_of_means.get(column.key, {}).items():
            line = f"means over {n:,} of {n_all:,} {unit} of {row_name}."
            notes.append(Note(line, (field.key,), names_columns=True))  # "DICE: means over"
    if is_published:
        return notes
    if lacking:
        notes.append(Note(f"not computed for {row_name}.", tuple(lacking), names_columns=True))
    return undefined_notes(computed, scores) + notes


def _part_rows(metric: Metric, runs: Sequence[Evaluation], is_single: bool) -> list[_ScoreRow]:
    """Return a table row for each part of a metric, such as a class, and run; grouped by part.

    Parts are in order of first occurrence. Runs without records are skipped. If the table is of
    several runs (`is_single` is False), a part is left out if the overall table already has columns
    for its scores (some metrics have one for each part), or if the metric has no columns for parts
    (`Metric.part_columns`). An ODS at the first or last threshold gets the mark "grid end".
    """
    part_key = ""  # the first score of a part, such as "dice"; "" if there is none
    for column in metric.part_columns:
        if column.score:
            part_key = column.key
            break
    overall_keys = set(map(attrgetter("key"), metric.columns))
    rows_by_part: dict[str, list[_ScoreRow]] = {}
    for run in runs:
        if not run.records:
            continue
        all_scores = run.score(metric.name).to_mapping()
        # Part -> the keys that lead to its scores, such as ("per_class", "liver")
        for part, path in metric.parts(run.protocol, metric.options_of(run.protocol)).items():
            scores = part_of(all_scores, path)
            # The overall table has the scores of parts if it has the first, "per_class.liver.dice"
            adds_scores = part_key and ".".join((*path, part_key)) not in overall_keys
            if scores is None or not (is_single or adds_scores):
                continue
            marks = {"ods": _GRID_END} if scores.get("at_grid_end") else {}
            rows_by_part.setdefault(part, []).append(_ScoreRow(part, run.name, scores, marks))
    return list(chain.from_iterable(rows_by_part.values()))


def table_column(column: Column, digits: int, prefix: str = "") -> Field:
    """Convert a metric's column to a table field with `digits` decimals.

    Its key is `prefix` plus the metric's key, with "_" instead of ".". Columns that are not scores,
    such as thresholds, are not ranked, and are left out of LaTeX (`paper`).
    """
    return Field(
        prefix + column.key.replace(".", "_"),
        column.heading,
        column.short,
        format=f".{digits}f",
        higher_is_better=not column.lower if column.score else None,  # `lower` is better
        paper=column.score,
    )
