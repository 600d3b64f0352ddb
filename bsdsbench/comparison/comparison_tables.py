"""Tables of a comparison of runs: scores and, for several runs, differences and wins."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Column
from bsdsbench.results.references import PAIRS_LOST
from bsdsbench.results.score_names import parse_score
from bsdsbench.results.score_tables import (
    METHOD,
    PART,
    left_out_notes,
    signature_lines,
    table_column,
    undefined_notes,
)
from bsdsbench.tables.table import Cell, Estimate, Field, Note, Table
from bsdsbench.text import counted

if TYPE_CHECKING:
    from bsdsbench.comparison.comparison import ComparedScores, Comparison, ScoreDifference

# The tests that Holm's method corrects together, see `comparison.correct_families`
_OVER_PAIRS = " over the pairs of each score"
_OVER_PARTS = " over the pairs and parts of each score"


def comparison_tables(compared: Comparison) -> list[Table]:
    """Return the tables of a comparison, restricted to the scores in `scores_shown`.

    - The overall scores of each run, and the differences between each pair of runs.
    - For each metric with per-part scores (parts are classes, for example): these scores and their
      differences.
    - The numbers of images on which the first run of each pair wins, ties and loses.

    For a single run, the tables of differences and of wins are left out.
    """
    # The metric of per-part scores, or "" for the overall scores of all metrics -> the scores
    scores_of_tables: dict[str, list[str]] = {"": []}
    for score in compared.scores_shown:
        name = parse_score(score)
        metric = name.metric if name.part else ""
        scores_of_tables.setdefault(metric, []).append(score)
    tables = []
    for metric, scores in scores_of_tables.items():
        if scores:
            tables.append(_score_table(compared, scores, metric))
            if len(compared.names) > 1:
                tables.append(_difference_table(compared, scores, metric))
    if len(compared.names) > 1:
        tables.append(_image_table(compared))
    test = ""
    if compared.test == "permutation":
        unit = compared.cluster or "image"
        test = f"; p-values from exchanging the two results of each {unit}"
    caption = (
        f"{compared.n_images} images{clusters_phrase(compared)}, "
        f"{compared.n_boot} bootstrap samples, seed {compared.seed}, "
        f"{compared.percent} percentile intervals{test}. Protocol: {compared.protocol}"
    )
    signatures = signature_lines(compared.names, compared.signatures)
    return [
        replace(table, caption=caption, reading=compared.reading, signatures=signatures)
        for table in tables
    ]


def _only_metric(scores: Sequence[str]) -> str:
    """Return the title of the metric if all scores belong to the same one; otherwise "".

    A table with such a title does not repeat the metric in its headings. Default metrics also give
    "", because headings never name them.
    """
    metrics = {score.partition(".")[0] for score in scores}
    if len(metrics) != 1 or metrics & {*registry.DEFAULT_METRICS}:
        return ""
    return registry.get(metrics.pop()).title


def clusters_phrase(compared: ComparedScores) -> str:
    """Return " in N clusters (COLUMN)" to follow a number of images; "" if images were drawn."""
    return f" in {compared.n_clusters} clusters ({compared.cluster})" if compared.cluster else ""


def left_out_of(compared: ComparedScores) -> list[Note]:
    """Return notes on the images that each run or method left out."""
    n_images = compared.n_images
    left_out = {name: (n_images, compared.left_out.get(name, {})) for name in compared.names}
    return left_out_notes(left_out)


def _notes_of(compared: Comparison, scores: Sequence[str]) -> list[str | Note]:
    """Return the notes on left-out images, the notes of the comparison, and those on `scores`."""
    coverage = coverage_lines(compared.coverage, scores)
    return [*left_out_of(compared), *compared.notes, *coverage]


def coverage_lines(coverage: Mapping[str, str], scores: Sequence[str]) -> list[str]:
    """Return notes on those of the `scores` that are means over different numbers of values.

    `coverage`, a result of `fewer_values`, maps the name of such a score to text with the numbers:
    "9 images in A, 10 images in B". Scores with the same text share a line.
    """
    headings_by_text: dict[str, list[str]] = {}
    for score in scores:
        if score in coverage:
            headings_by_text.setdefault(coverage[score], []).append(heading(score))
    reason = "undefined values are left out, so the means are over different objects"
    return [
        f"{', '.join(headings)}: means over {numbers}; {reason}"
        for numbers, headings in headings_by_text.items()
    ]


def score_cells(compared: Comparison) -> dict[tuple[str, str], Estimate]:
    """Return the table cell of each run and shown score, as a dict by (run name, score name)."""
    scores, runs = compared.scores_shown, compared.names
    return {(run, score): _score_cell(compared, run, score) for score in scores for run in runs}


def _score_cell(compared: Comparison, name: str, score: str) -> Estimate:
    """Return a run's score with its interval and, if several runs are compared, its letters."""
    interval = compared.interval_of(name, score)
    letters = compared.letters[score][compared.names.index(name)] if len(compared.names) > 1 else ""
    return Estimate(interval.value, interval.low, interval.high, letters)


class ScoresByPart(NamedTuple):
    """The scores of a table with one row per part of a metric, such as a class."""

    columns: dict[str, Column]  # key of a table column -> the metric's column
    scores: dict[str, dict[str, str]]  # part -> key of a table column -> METRIC.PART.SCORE


def group_by_part(scores: Sequence[str]) -> ScoresByPart:
    """Group the scores of one metric by part, such as a class.

    The names are METRIC.PART.SCORE. Overall scores (METRIC.SCORE) get the part "".
    """
    columns: dict[str, Column] = {}
    by_part: dict[str, dict[str, str]] = {}
    for score in scores:
        name = parse_score(score)
        key = table_column(name.column, 3).key
        columns[key] = name.column
        by_part.setdefault(name.part, {})[key] = score
    return ScoresByPart(columns, by_part)


def _score_table(compared: Comparison, scores: Sequence[str], metric: str) -> Table:
    """Build a table of scores with one row per run, or per part and run for the scores of parts.

    Each cell holds a score, its interval and, if several runs are compared, its letters. If the
    curve of an AP starts above recall 0, a note on its column lists the runs. In a table of parts,
    such as classes, the best run of each part is marked; for a single run it has no column of runs.

    scores : METRIC.SCORE of any metrics, or METRIC.PART.SCORE of one metric
    metric : the metric whose parts are shown, or "" for overall scores
    """
    has_pairs = len(compared.names) > 1
    title = "" if metric else _only_metric(compared.scores)
    samples = f"{compared.n_boot:,} bootstrap samples of {counted(compared.n_images, 'image')}"
    sentence = f"Scores with {compared.percent} intervals from {samples}"
    table_title, correction = f"Scores with intervals{title and f' ({title})'}", ""
    if metric:
        sentence = ""  # the title is more precise
        table_title = f"{registry.get(metric).title}, part by part, with intervals"
        correction = _OVER_PARTS
    fields: dict[str, Field] = {}
    columns: dict[str, Column] = {}  # key of a table column -> the metric's column
    scores_by_part: dict[str, dict[str, str]] = {}  # part -> key of a table column -> score
    keys_by_late_start: dict[str, list[str]] = {}  # note -> keys of the columns of AP
    for score in scores:
        name = parse_score(score)
        field = table_column(name.column, 3) if metric else score_field(score, title)
        fields[field.key], columns[field.key] = field, name.column
        scores_by_part.setdefault(name.part, {})[field.key] = score
        if score in compared.late_starts:
            keys_by_late_start.setdefault(compared.late_starts[score], []).append(field.key)
    labels = [PART] * bool(metric) + [METHOD] * (has_pairs or not metric)
    rows: list[list[Cell]] = []
    row_notes = []
    for part, score_by_key in scores_by_part.items():
        for run in compared.names:
            cells = {key: _score_cell(compared, run, score) for key, score in score_by_key.items()}
            rows.append([*map({PART: part, METHOD: run}.get, labels), *map(cells.get, fields)])
            row_notes.append(undefined_notes(columns, {k: _defined(cells.get(k)) for k in fields}))
    notes: list[str | Note] = []
    if has_pairs:
        letters_note = "Runs that share a letter do not differ significantly"
        notes.append(f"{letters_note} (Holm{correction}, {1 - compared.level:.2g}).")
    for line, keys in keys_by_late_start.items():
        notes.append(Note(f"{line}.", tuple(dict.fromkeys(keys)), names_columns=True))
    return Table(
        f"{metric}-parts" if metric else "scores",
        table_title,
        [*labels, *fields.values()],
        rows,
        notes=[*notes, *_notes_of(compared, scores)],
        row_notes=row_notes,
        n_labels=len(labels),
        ranked_within=PART.key if metric else "",
        sentence=sentence,
    )


def _defined(cell: Estimate | None) -> float | None:
    """Return the number in a cell, or None if it is undefined."""
    return None if cell is None or cell.value is None or math.isnan(cell.value) else cell.value


_PAIR = (Field("a", "A"), Field("b", "B"))


def difference_fields(level: str) -> list[Field]:
    """Return the columns of a table of differences. `level` is text, such as "95 %"."""
    return [
        *_PAIR,
        Field("score", "Score"),
        Field("difference", f"A - B [{level} interval]", "A - B", "+.4f"),
        Field("p", "p", "", "p"),
        Field("p_holm", "p (Holm)", "", "p"),
        Field("least", "Smallest detectable difference", "least", ".4f"),
    ]


def difference_cells(d: ScoreDifference, level: float) -> list[Cell]:
    """Return the last four cells of a difference's row in a table of differences.

    They are the difference with its interval, p, p after Holm's correction, and the smallest
    difference that would be significant with probability 0.8.

    The official benchmark's matching of pixels is randomized. "~" marks a difference so small that
    this matching alone may cause it. "*" marks a significant difference: p after correction
    is below 1 - level, and there is no "~".
    """
    value = Estimate(d.value, d.low, d.high, "~" if d.solver else "")
    corrected = Estimate(d.p_holm, mark="*" if d.significant(level) else "")
    return [value, d.p, corrected, d.least]


def holm_note(level: float, scores: Sequence[str]) -> str:
    """Return the note on what "*" marks, and on the tests that Holm's method corrected together.

    level: the confidence level. scores: the scores in the table, such as "boundary.ods".
    """
    has_parts = any(parse_score(score).part for score in scores)
    tests = _OVER_PARTS if has_parts else _OVER_PAIRS
    return f"* significant at {1 - level:.2g} after Holm's correction{tests}."


def _difference_table(compared: Comparison, scores: Sequence[str], metric: str) -> Table:
    """Build the table of differences in scores: one row per score and pair of runs.

    scores : METRIC.SCORE of any metrics, or METRIC.PART.SCORE of one metric
    metric : the metric whose parts, such as classes, are compared, or "" for overall scores. The
        parts have a column of their own
    """
    title = _only_metric(compared.scores)
    differences = [d for d in compared.differences if d.score in scores]
    fields = difference_fields(compared.percent)
    if metric:
        differences.sort(key=lambda d: scores.index(d.score))
        fields.insert(3, PART)
    rows: list[list[Cell]] = []
    for d in differences:
        name = parse_score(d.score)
        labels = [name.column.heading, name.part] if metric else [heading(d.score, title)]
        rows.append([d.a, d.b, *labels, *difference_cells(d, compared.level)])
    notes = [
        holm_note(compared.level, scores),
        *([] if metric else _detectable_note(compared, differences, title)),
        *_solver_and_interval_notes(compared, differences),
        *_notes_of(compared, scores),
    ]
    numbers = f"{compared.percent} intervals and p, on {counted(compared.n_images, 'image')}"
    return Table(
        f"{metric}-differences" if metric else "differences",
        f"{registry.get(metric).title}, differences part by part" if metric else "Differences",
        fields,
        rows,
        notes=notes,
        n_labels=4 if metric else 3,
        sentence=f"Differences between methods, with {numbers}",
    )


def _detectable_note(
    compared: Comparison, differences: Sequence[ScoreDifference], title: str
) -> list[str]:
    """Return a note with the smallest difference in the first score that can be detected.

    It states the range over all pairs of runs. Returns [] if the value is undefined for every pair.
    """
    score = differences[0].score
    detectable = [d.least for d in differences if d.score == score and not math.isnan(d.least)]
    texts = sorted(f"{least:.3f}" if least >= 0.001 else f"{least:.4f}" for least in detectable)
    if not texts:
        return []
    span = texts[0] if texts[0] == texts[-1] else f"{texts[0]} to {texts[-1]}, by pair,"
    return [
        f"With these images, a difference in {heading(score, title)} of {span} is "
        f"detected four times out of five (p below {1 - compared.level:.2g} before Holm's "
        "correction); smaller differences are detected less often."
    ]


def _solver_and_interval_notes(
    compared: Comparison, differences: Sequence[ScoreDifference]
) -> list[str]:
    """Return footnotes for a table of differences.

    - What "~" means, if any difference has this mark.
    - Why an interval and its p-value may disagree, if any pair does: the interval excludes 0 but
      the uncorrected p is not significant, or the reverse. Only for bootstrap p-values.
    """
    notes = []
    if reach := sorted(f"{d.solver_moves:.4f}" for d in differences if d.solver):
        span = reach[0] if reach[0] == reach[-1] else f"{reach[0]} to {reach[-1]}, by row"
        notes.append(
            f"~ below {span}, by which the official matching itself can move a score: it is "
            f"randomised and misses about {PAIRS_LOST} pairs per map. Such differences get no star."
        )
    alpha = 1 - compared.level
    disagree = any((d.low > 0 or d.high < 0) != (d.p < alpha) for d in differences)
    if compared.test == "bootstrap" and disagree:
        notes.append(
            f"Near p = {alpha:.2g}, or with few images, an interval and its p-value may disagree "
            "about 0: the interval is interpolated between samples, while p counts the samples "
            "beyond 0 plus one. The p-value decides."
        )
    return notes


def _image_table(compared: Comparison) -> Table:
    """Build the table of wins, ties and losses per image: one row per metric and pair of runs.

    Images are compared by the metric's first per-image score.
    """
    fields = [
        *_PAIR,
        Field("metric", "Metric"),
        Field("wins", "A wins", "wins", "d"),
        Field("ties", "Ties", "ties", "d"),
        Field("losses", "A loses", "loses", "d"),
        Field("effect", "Effect d", "d", "+.3f"),
    ]
    rows: list[list[Cell]] = [
        [pair.a, pair.b, pair.metric, *pair.record, pair.effect_size] for pair in compared.images
    ]
    metrics = dict.fromkeys(pair.metric for pair in compared.images)
    scores = ", ".join(f"{m}: {registry.get(m).image_columns[0].heading}" for m in metrics)
    note = f"Images are compared by {scores}; d is the mean difference over its standard deviation."
    return Table(
        "images",
        "Image by image",
        fields,
        rows,
        notes=[note, *_notes_of(compared, ())],
        n_labels=3,
        sentence=f"On how many of {counted(compared.n_images, 'image')} method A is better than B",
    )


def heading(score: str, title: str = "") -> str:
    """Return the column heading of a score: "ODS" or "Regions: PRI ODS"; see `score_field`."""
    return score_field(score, title).heading


def score_field(score: str, title: str = "") -> Field:
    """Return the table column of a score, METRIC.SCORE or METRIC.PART.SCORE, with three decimals.

    The heading is that of the score, such as "ODS"; for a part, such as a class, "Dice of PART".
    The title of the metric precedes it ("Regions: PRI ODS"), with two exceptions: default metrics
    are never named, and if `title` is not "", the title of the table already names the metric.
    """
    metric, part, column = parse_score(score)
    # The key of the column names metric and part, because a table may show the scores of several
    key_prefix = f"{metric}_{part}_" if part else f"{metric}_"
    field = table_column(column, digits=3, prefix=key_prefix)
    if part:
        short_heading = f"{column.short or column.heading} of {part}"
        field = replace(field, heading=f"{column.heading} of {part}", short=short_heading)
    if title or metric in registry.DEFAULT_METRICS:
        return field
    full_heading = f"{registry.get(metric).title}: {field.heading}"
    return replace(field, heading=full_heading, short=field.short or field.heading)
