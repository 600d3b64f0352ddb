"""Tables of a comparison of runs: scores and, for several runs, differences and wins."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from bsdsbench.comparison.method import Spread
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
from bsdsbench.text import grouped, quantity

if TYPE_CHECKING:
    from bsdsbench.comparison.comparison import Comparison, ScoreDifference


def comparison_tables(compared: Comparison, spread: Spread = Spread.SD) -> list[Table]:
    """Return the tables of a comparison, restricted to the scores in `shown`.

    - If a method has several runs, the means over them with their spread.
    - The overall scores of each run, and the differences between each pair of runs.
    - For each metric with per-part scores (parts are classes, for example): these scores and their
      differences.
    - The numbers of images on which the first run of each pair wins, ties and loses, unless a
      method has several runs.

    For a single run, the tables of differences and of wins are left out.
    """
    # The metric of per-part scores, or "" for the overall scores of all metrics -> the scores
    scores_of_tables: dict[str, list[str]] = {"": []}  # the overall scores come first
    for score in compared.shown:
        metric, part, _ = parse_score(score)
        scores_of_tables.setdefault(metric if part else "", []).append(score)
    tables = [_means_table(compared, spread)] if compared.has_several_runs else []
    for metric, scores in scores_of_tables.items():
        if scores:
            tables.append(_score_table(compared, scores, metric))
            if len(compared.names) > 1:
                tables.append(_difference_table(compared, scores, metric))
    if compared.images:
        tables.append(_image_table(compared))
    images = quantity(compared.n_images, "image")
    if compared.cluster:  # clusters, groups of the images, are drawn together
        images += f" in {compared.n_clusters} clusters ({compared.cluster})"
    samples = f"{compared.n_boot} bootstrap samples"
    if compared.has_several_runs:
        samples += " of images and runs"
    method = f"{compared.percent} percentile intervals"
    if compared.test == "permutation":
        unit = compared.cluster or "image"
        method += f"; p-values from exchanging the two results of each {unit}"
    protocol = f"Protocol: {compared.protocol}"
    caption = f"{images}, {samples}, seed {compared.seed}, {method}. {protocol}"
    signatures = signature_lines([(s, name) for name, s in compared.signatures.items()])
    return [
        replace(table, caption=caption, reading=compared.reading, signatures=signatures)
        for table in tables
    ]


def _title_of_only_metric(scores: Sequence[str]) -> str:
    """Return the title of the metric if all scores belong to the same one; otherwise "".

    The title of the table then names the metric, so that its headings need not. The default
    metrics, such as "boundary", also give "", because headings never name them.
    """
    metrics = {score.partition(".")[0] for score in scores}
    if len(metrics) != 1 or metrics & {*registry.DEFAULT_METRICS}:
        return ""
    return registry.get(metrics.pop()).title


def _means_table(compared: Comparison, spread: Spread) -> Table:
    """Build the table of the mean over runs of each method and score, with the spread."""
    shown = compared.shown
    rows: list[list[Cell]] = []
    for name in compared.names:
        rows.append([name, *(compared.of_runs[name, score].cell(spread) for score in shown)])
    fields = [METHOD, *map(score_field, shown)]
    notes: list[str | Note] = [spread.note, *_notes_on_scores(compared, ())]
    # The caption in LaTeX, such as "Scores on 200 images: mean ± standard deviation over runs"
    sentence = f"Scores on {quantity(compared.n_images, 'image')}: {spread.words}"
    return Table("methods", "Scores of methods", fields, rows, notes=notes, sentence=sentence)


def left_out_notes_of(compared: Comparison) -> list[Note]:
    """Return notes on the images that each run or method left out."""
    n_images = compared.n_images
    left_out = {name: (n_images, compared.left_out.get(name, {})) for name in compared.names}
    return left_out_notes(left_out)


def _notes_on_scores(compared: Comparison, scores: Sequence[str]) -> list[str | Note]:
    """Return the notes on left-out images, the notes of the comparison, and those on `scores`."""
    coverage = coverage_lines(compared.coverage, scores)
    return [*left_out_notes_of(compared), *compared.notes, *coverage]


def coverage_lines(coverage: Mapping[str, str], scores: Sequence[str]) -> list[str]:
    """Return notes on those of the `scores` that are means over different numbers of values.

    `coverage`, a result of `unequal_coverage`, maps the name of such a score to text with the
    numbers: "9 images in A, 10 images in B". Scores with the same text share a line.
    """
    headings_by_text = grouped((coverage[s], heading(s)) for s in scores if s in coverage)
    reason = "undefined values are left out, so the means are over different objects"
    return [
        f"{', '.join(headings)}: means over {numbers}; {reason}"
        for numbers, headings in headings_by_text.items()
    ]


def score_cells(compared: Comparison) -> dict[tuple[str, str], Estimate]:
    """Return {(run name, score name): table cell} of the scores that tables show.

    A cell holds the score, its interval and, if several runs are compared, the letters of the run:
    runs that share a letter do not differ significantly.
    """
    shown, names = set(compared.shown), compared.names
    cells = {}
    for i in compared.intervals:
        if i.score in shown:
            letters = compared.letters[i.score][names.index(i.run)] if len(names) > 1 else ""
            cells[i.run, i.score] = Estimate(i.value, i.low, i.high, letters)
    return cells


def _score_table(compared: Comparison, scores: Sequence[str], metric: str) -> Table:
    """Build a table of scores with one row per run, or per part and run for the scores of parts.

    A part is a class, for example. Each cell holds a score, its interval and, if several runs are
    compared, its letters: runs that share a letter do not differ significantly.

    scores : METRIC.SCORE of any metrics, or METRIC.PART.SCORE of one metric
    metric : the metric whose parts are shown, or "" for overall scores
    """
    if metric:
        labels = [PART, METHOD] if len(compared.names) > 1 else [PART]
        title = f"{registry.get(metric).title}, part by part, with intervals"
        latex_caption = ""  # the title, which is more precise, becomes the caption
    else:
        labels = [METHOD]
        only_metric = _title_of_only_metric(compared.shown)  # "" if several, or the default
        title = "Scores with intervals" + (f" ({only_metric})" if only_metric else "")
        samples = f"{compared.n_boot:,} bootstrap samples of {quantity(compared.n_images, 'image')}"
        latex_caption = f"Scores with {compared.percent} intervals from {samples}"
    fields: dict[str, Field] = {}  # the columns by key, which all parts share
    definitions: dict[str, Column] = {}  # how the metric defines the score
    score_of: dict[tuple[str, str], str] = {}  # (part or "", key of a column) -> name of a score
    late_starts = []  # (text on curves that start above recall 0, key of the column of their AP)
    for score in scores:
        _, part, definition = parse_score(score)
        if metric:
            field = table_column(definition, digits=3)
        else:  # the heading names the metric, unless the title does
            field = score_field(score, in_title=only_metric != "")
        fields.setdefault(field.key, field)
        definitions.setdefault(field.key, definition)
        score_of[part, field.key] = score
        if text := compared.late_starts.get(score):
            late_starts.append((f"{text}.", field.key))
    cell_of = score_cells(compared)  # (run, score) -> the score with its interval and letters
    rows: list[list[Cell]] = []
    row_notes = []  # for each row, notes on its undefined scores
    for part, run in product(dict.fromkeys(part for part, _ in score_of), compared.names):
        row: list[Cell] = [part if label is PART else run for label in labels]
        defined = {}  # key of a column -> number
        for key in fields:
            score = score_of.get((part, key), "")  # "" if the part lacks it
            cell = cell_of.get((run, score))
            row.append(cell)
            if cell and cell.value is not None and not math.isnan(cell.value):
                defined[key] = cell.value
        rows.append(row)
        row_notes.append(undefined_notes(definitions, defined))
    notes: list[str | Note] = []
    if any(cell.mark for cell in cell_of.values()):  # a run without a p-value has no letter
        tests = " over the pairs and parts of each score" if metric else ""  # corrected together
        what = f"{'Methods' if compared.has_several_runs else 'Runs'} that share a letter"
        level = f"{1 - compared.level:.2g}"
        notes.append(f"{what} do not differ significantly (Holm{tests}, {level}).")
    for text, keys in grouped(late_starts).items():
        # The headings of these columns are printed before the text. Parts share a column
        notes.append(Note(text, tuple(dict.fromkeys(keys)), names_columns=True))
    return Table(
        f"{metric}-parts" if metric else "scores",
        title,
        [*labels, *fields.values()],
        rows,
        notes=[*notes, *_notes_on_scores(compared, scores)],
        row_notes=row_notes,
        n_labels=len(labels),
        ranked_within=PART.key if metric else "",  # each part has its own best run
        sentence=latex_caption,
    )


_PAIR_FIELDS = (Field("a", "A"), Field("b", "B"))


def difference_fields(level: str) -> list[Field]:
    """Return the columns of a table of differences. `level` is the text "95 %", for example."""
    return [
        *_PAIR_FIELDS,
        Field("score", "Score"),
        Field("difference", f"A - B [{level} interval]", "A - B", "+.4f"),
        Field("p", "p", "", "p"),
        Field("p_holm", "p (Holm)", "", "p"),
        Field("least", "Smallest detectable difference", "least", ".4f"),
    ]


def _difference_cells(d: ScoreDifference, level: float) -> list[Cell]:
    """Return the last four cells of a difference's row in a table of differences.

    They are the difference with its interval, p, p after Holm's correction, and the smallest
    difference that would be significant with probability 0.8. The official benchmark's matching of
    pixels is randomized. "~" marks a difference so small that this matching alone may cause it. "*"
    marks a significant difference: p after correction is below 1 - level, and there is no "~".
    """
    value = Estimate(d.value, d.low, d.high, "~" if d.solver else "")
    corrected = Estimate(d.p_holm, mark="*" if d.significant(level) else "")
    return [value, d.p, corrected, d.least]


def holm_note(level: float, families: str) -> str:
    """Return the note on what "*" marks, at a confidence level of the intervals.

    `families` names the tests that Holm's method corrected together, such as "pairs and parts".
    """
    correction = f"Holm's correction over the {families} of each score"
    return f"* significant at {1 - level:.2g} after {correction}."


def _difference_table(compared: Comparison, scores: Sequence[str], metric: str) -> Table:
    """Build a table of differences in scores: one row per score (of each part) and pair of runs.

    scores : METRIC.SCORE of any metrics, or METRIC.PART.SCORE of one metric
    metric : the metric whose parts, such as classes, are compared, or "" for overall scores
    """
    differences = [d for d in compared.differences if d.score in scores]
    # Run A, run B and the score, which label a row; then A - B with its interval, p, p after Holm's
    # correction, and the smallest difference that this test would detect
    *labels, difference, p, p_holm, least_detectable = difference_fields(compared.percent)
    rows: list[list[Cell]] = []
    # What "*" marks
    first_notes = [holm_note(compared.level, "pairs and parts" if metric else "pairs")]
    if metric:  # a row per score, part, and pair of runs
        labels.append(PART)
        key = f"{metric}-differences"
        title = f"{registry.get(metric).title}, differences part by part"
        differences.sort(key=lambda d: scores.index(d.score))  # those of one part come together
        for d in differences:
            _, part, column = parse_score(d.score)
            rows.append([d.a, d.b, column.heading, part, *_difference_cells(d, compared.level)])
    else:  # a row per score and pair of runs, in the order of the comparison
        key, title = "differences", "Differences"
        # A single metric is named by the title of the table of scores, which is above this one
        is_metric_named = _title_of_only_metric(compared.shown) != ""
        for d in differences:
            score_name = heading(d.score, in_title=is_metric_named)
            rows.append([d.a, d.b, score_name, *_difference_cells(d, compared.level)])
        first_score = heading(differences[0].score, in_title=is_metric_named)
        # For each pair, the smallest difference that is significant with probability 0.8
        of_score = [d for d in differences if d.score == differences[0].score]
        testable = [d for d in of_score if (d.a, d.b) not in compared.untestable]
        detectable = [d.least for d in testable if not math.isnan(d.p + d.least)]
        if detectable:
            ends = min(detectable), max(detectable)
            low, high = (f"{x:.3f}" if x >= 0.001 else f"{x:.4f}" for x in ends)  # not "0.000"
            span = low if low == high else f"{low} to {high}, by pair,"
            drawn = "images and runs" if compared.has_several_runs else "images"
            first_notes.append(
                f"With these {drawn}, a difference in {first_score} of {span} is detected four "
                f"times out of five (p below {1 - compared.level:.2g} before Holm's correction); "
                "smaller differences are detected less often."
            )
    doubts = _doubtful_notes(compared, differences)
    numbers_note = f"{compared.percent} intervals and p, on {quantity(compared.n_images, 'image')}"
    return Table(
        key,
        title,
        [*labels, difference, p, p_holm, least_detectable],
        rows,
        notes=[*first_notes, *doubts, *_notes_on_scores(compared, scores)],
        n_labels=len(labels),
        sentence=f"Differences between methods, with {numbers_note}",
    )


def _doubtful_notes(compared: Comparison, differences: Sequence[ScoreDifference]) -> list[str]:
    """Return notes on differences marked "~", and on intervals that disagree with their p-value."""
    notes = []
    alpha = 1 - compared.level
    # `solver`: the difference is below `solver_moves`, so that the official benchmark's matching of
    # pixels (its solver) may alone cause it, and is marked "~"
    limits = [d.solver_moves for d in differences if d.solver]
    if limits:
        low, high = f"{min(limits):.4f}", f"{max(limits):.4f}"
        span = low if low == high else f"{low} to {high}, by row"
        # PAIRS_LOST: pairs of pixels in an edge map that only an optimal matching finds
        notes.append(
            f"~ below {span}, by which the official matching itself can move a score: it is "
            f"randomised and misses about {PAIRS_LOST} pairs per map. Such differences get no star."
        )
    # An interval excludes 0 although the uncorrected p is not significant, or the reverse. The p of
    # methods with the same seeds counts no samples: it exchanges their runs
    by_samples = [d for d in differences if (d.a, d.b) not in compared.paired]
    disagrees = False
    for d in by_samples:
        excludes_0 = d.low > 0 or d.high < 0
        disagrees |= not math.isnan(d.p) and excludes_0 != (d.p < alpha)
    if compared.test == "bootstrap" and disagrees:
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
        *_PAIR_FIELDS,
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
        notes=[note, *_notes_on_scores(compared, ())],
        n_labels=3,
        sentence=f"On how many of {quantity(compared.n_images, 'image')} method A is better than B",
    )


def heading(score: str, in_title: bool = False) -> str:
    """Return the column heading of a score: "ODS" or, to name the metric, "Regions: PRI ODS".

    The metric is not named if it is one of the defaults, or if the title of the table names it
    (`in_title`).
    """
    return score_field(score, in_title).heading


def score_field(score: str, in_title: bool = False) -> Field:
    """Return the table column of a score, METRIC.SCORE or METRIC.PART.SCORE, with three decimals.

    The heading is "ODS", for example, or "Dice of PART" for a part such as a class. The title of
    the metric precedes it ("Regions: PRI ODS"), unless the metric is one of the defaults, or the
    title of the table names it (`in_title`). The short heading, which replaces it where the table
    is too wide, never names the metric.
    """
    metric, part, column = parse_score(score)  # `column`: how the metric shows this score
    # The key of the field names metric and part, because a table may show the scores of several
    key_prefix = f"{metric}_{part}_" if part else f"{metric}_"
    field = table_column(column, digits=3, prefix=key_prefix)
    long_heading, short_heading = field.heading, field.short  # "" for no short heading
    if part:
        long_heading = f"{column.heading} of {part}"
        short_heading = f"{column.short or column.heading} of {part}"
    if not in_title and metric not in registry.DEFAULT_METRICS:
        short_heading = short_heading or long_heading
        long_heading = f"{registry.get(metric).title}: {long_heading}"
    return replace(field, heading=long_heading, short=short_heading)
