"""Make the tables of a comparison: scores and, for several runs, differences and images."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Column
from bsdsbench.results.footers import notes_on_left_out, signature_lines, undefined_notes
from bsdsbench.results.references import PAIRS_LOST
from bsdsbench.results.score_names import score_name
from bsdsbench.results.score_tables import METHOD, PART, table_column
from bsdsbench.scores.ratios import short
from bsdsbench.tables.table import Cell, Estimate, Field, Note, Table
from bsdsbench.text import counted

if TYPE_CHECKING:
    from bsdsbench.comparison.comparison import Comparison, ScoreDifference
    from bsdsbench.comparison.methods import MethodComparison


def comparison_tables(compared: Comparison) -> list[Table]:
    """Return the tables of a comparison for the scores that it shows."""
    metrics = {score.partition(".")[0] for score in compared.scores}
    # The title of the one metric that all are of stands once, not in every heading.
    (name,) = metrics if len(metrics) == 1 else ("",)
    alone = registry.get(name).title if name and name not in registry.DEFAULT_METRICS else ""
    unit = compared.cluster or "image"
    swapped = f"; p-values from exchanging the two results of each {unit}"
    clustered = f" in {compared.n_clusters} clusters ({compared.cluster})" * bool(compared.cluster)
    caption = (
        f"{compared.n_images} images{clustered}, {compared.n_boot} bootstrap samples, "
        f"seed {compared.seed}, {compared.percent} percentile intervals"
        f"{swapped if compared.test == 'permutation' else ''}. Protocol: {compared.protocol}"
    )
    whole, parts = list[str](), dict[str, list[str]]()
    for score in compared.scores_shown:
        named = score_name(score)
        (parts.setdefault(named.metric, []) if named and named.part else whole).append(score)
    several = len(compared.names) > 1
    tables = []
    if whole:
        tables.append(_score_table(compared, whole, alone))
    if whole and several:
        tables.append(_difference_table(compared, whole, alone))
    for metric, scores in parts.items():
        tables.append(_part_table(compared, metric, scores))
        if several:
            tables.append(_difference_table(compared, scores, metric, by_part=True))
    if several:
        tables.append(_image_table(compared))
    signed = signature_lines(compared.names, compared.signatures) if compared.signatures else []
    words: Any = {"caption": caption, "reading": compared.reading, "signatures": signed}
    return [replace(table, **words) for table in tables]


def left_out_of(compared: Comparison | MethodComparison) -> list[Note]:
    """Return notes on the images that runs or methods left out."""
    n = compared.n_images
    return notes_on_left_out(
        {name: (n, compared.left_out.get(name, {})) for name in compared.names}
    )


def _notes_of(compared: Comparison, scores: Sequence[str]) -> list[str | Note]:
    """Return the notes of a table of these scores."""
    fewer = coverage_lines(compared.coverage, scores)
    return [*left_out_of(compared), *compared.notes, *fewer]


def coverage_lines(coverage: Mapping[str, str], scores: Sequence[str]) -> list[str]:
    """Return a line for scores whose means are over different numbers of values in the runs."""
    headings: dict[str, list[str]] = {}
    for score in filter(coverage.__contains__, scores):
        headings.setdefault(coverage[score], []).append(heading(score))
    rest = "undefined values are left out, so the means are over different objects"
    return [f"{', '.join(h)}: means over {counts}; {rest}" for counts, h in headings.items()]


def _score_cell(compared: Comparison, run: int, score: str) -> Estimate:
    """Return a run's score with its interval and letter. `run` is the number of the run."""
    interval = compared.interval_of(compared.names[run], score)
    letter = compared.letters[score][run] if len(compared.names) > 1 else ""
    return Estimate(interval.value, interval.low, interval.high, letter)


def _letters_note(compared: Comparison, over: str = "") -> str:
    """Explain the letters. `over` says over what p-values are corrected."""
    alpha = 1 - compared.level
    return f"Runs that share a letter do not differ significantly (Holm{over}, {alpha:.2g})."


def _part_table(compared: Comparison, metric: str, scores: Sequence[str]) -> Table:
    """Return the table of the scores of each part and run, with intervals and letters."""
    several = len(compared.names) > 1
    columns, scored = dict[str, Column](), dict[str, dict[str, str]]()
    for score in scores:
        if named := score_name(score):
            field = table_column(named.column, 3)
            columns[field.key] = named.column
            scored.setdefault(named.part, {})[field.key] = score
    rows, values = list[list[Cell]](), list[dict[str, Any]]()
    for part, by_key in scored.items():
        for k, run in enumerate(compared.names):
            cells = {key: _score_cell(compared, k, score) for key, score in by_key.items()}
            rows.append([part, *[run] * several, *map(cells.get, columns)])
            known = {key: c.value for key, c in cells.items() if c.value == c.value}
            values.append({key: known.get(key) for key in columns})
    fields = [PART, *[METHOD] * several, *(table_column(c, 3) for c in columns.values())]
    notes = [*[_letters_note(compared, OVER_PARTS)] * several, *_notes_of(compared, scores)]
    return Table(
        f"{metric}-parts",
        f"{registry.get(metric).title}, part by part, with intervals",
        fields,
        rows,
        notes=notes,
        row_notes=undefined_notes(columns, values),
        n_labels=1 + several,
        ranked_within=PART.key,
    )


OVER_PARTS = " over the pairs and parts of each score"


def _score_table(compared: Comparison, scores: Sequence[str], alone: str) -> Table:
    """Return the table of the scores of each run, with intervals and letters."""
    several = len(compared.names) > 1
    fields = {score: score_field(score, alone) for score in scores}
    columns = {fields[score].key: named.column for score in scores if (named := score_name(score))}
    rows, values = list[list[Cell]](), list[dict[str, Any]]()
    for i, run in enumerate(compared.names):
        rows.append([run])
        values.append({})
        for score in scores:
            cell = _score_cell(compared, i, score)
            rows[-1].append(cell)
            values[-1][fields[score].key] = cell.value if cell.value == cell.value else None
    letters = _letters_note(compared)
    samples = f"{compared.n_boot:,} bootstrap samples of {counted(compared.n_images, 'image')}"
    late = list[Note]()
    for line in dict.fromkeys(compared.late_starts.values()):
        areas = [score for score in scores if compared.late_starts.get(score) == line]
        keys = tuple(fields[score].key for score in areas)
        late += [Note(f"{line}.", keys, headed=True)] * bool(keys)
    return Table(
        "scores",
        f"Scores with intervals{f' ({alone})' if alone else ''}",
        [METHOD, *fields.values()],
        rows,
        notes=[*[letters] * several, *late, *_notes_of(compared, scores)],
        row_notes=undefined_notes(columns, values),
        sentence=f"Scores with {compared.percent} intervals from {samples}",
    )


_PAIR = (Field("a", "A"), Field("b", "B"))


def difference_fields(level: str) -> list[Field]:
    """Return the columns of a table of differences; `level` of the intervals is "95 %"."""
    return [
        *_PAIR,
        Field("score", "Score"),
        Field("difference", f"A - B [{level} interval]", "A - B", "+.4f"),
        Field("p", "p", "", "p"),
        Field("p_holm", "p (Holm)", "", "p"),
        Field("least", "Smallest detectable difference", "least", ".4f"),
    ]


def difference_cells(d: ScoreDifference, level: float) -> list[Cell]:
    """Return the cells of a difference: with its interval, p, p after Holm, and the detectable."""
    gap = Estimate(d.value, d.low, d.high, "~" if d.solver else "")
    corrected = Estimate(d.p_holm, mark="*" if d.significant(level) else "")
    return [gap, d.p, corrected, d.least]


def _difference_table(
    compared: Comparison, scores: Sequence[str], alone: str, by_part: bool = False
) -> Table:
    """The differences of each pair of runs, with what these images can tell."""
    columns, rows = difference_fields(compared.percent), list[list[Cell]]()
    columns[3:3] = [PART] * by_part
    places = {score: k for k, score in enumerate(scores)}
    shown = [d for d in compared.differences if d.score in places]
    if by_part:  # part after part, as in the table of scores
        shown.sort(key=lambda d: places[d.score])
    for d in shown:
        named, labels = score_name(d.score), [heading(d.score, alone)]
        if by_part and named:
            labels = [named.column.heading, named.part]
        rows.append([d.a, d.b, *labels, *difference_cells(d, compared.level)])
    images = counted(compared.n_images, "image")
    sentence = f"Differences between methods, with {compared.percent} intervals and p, on {images}"
    notes = [*_difference_notes(compared, shown, alone, by_part), *_notes_of(compared, scores)]
    words: Any = {"sentence": sentence, "notes": notes, "n_labels": 3 + by_part}
    if by_part:
        title = f"{registry.get(alone).title}, differences part by part"
        return Table(f"{alone}-differences", title, columns, rows, **words)
    return Table("differences", "Differences", columns, rows, **words)


def _difference_notes(
    compared: Comparison, shown: Sequence[ScoreDifference], alone: str, by_part: bool
) -> Iterator[str]:
    """Yield the notes that a reader of the differences needs."""
    alpha, over = 1 - compared.level, OVER_PARTS if by_part else " over the pairs of each score"
    yield f"* significant at {alpha:.2g} after Holm's correction{over}."
    first = [d for d in shown if d.score == shown[0].score and not by_part]
    detectable = [d.least for d in first if not math.isnan(d.least)]
    if texts := sorted(short(gap, 3 if gap >= 0.001 else 4) for gap in detectable):
        span = texts[0] if texts[0] == texts[-1] else f"{texts[0]} to {texts[-1]}, by pair,"
        yield (
            f"With these images, a difference in {heading(first[0].score, alone)} of {span} is "
            f"detected four times out of five (p below {alpha:.2g} before Holm's correction); "
            "smaller differences are detected less often."
        )
    if reach := sorted(short(d.solver_moves, 4) for d in shown if d.solver):
        span = reach[0] if reach[0] == reach[-1] else f"{reach[0]} to {reach[-1]}, by row"
        yield (
            f"~ below {span}, by which the official matching itself can move a score: it is "
            f"randomised and misses about {PAIRS_LOST} pairs per map. Such differences get no star."
        )
    beside_0 = [(d.low > 0 or d.high < 0) != (d.p < alpha) for d in shown]
    if compared.test == "bootstrap" and any(beside_0):
        yield (
            f"Near p = {alpha:.2g}, or with few images, an interval and its p-value may disagree "
            "about 0: the interval is interpolated between samples, while p counts the samples "
            "beyond 0 plus one. The p-value decides."
        )


def _image_table(compared: Comparison) -> Table:
    """On how many images each run of a pair is the better one."""
    columns = [
        *_PAIR,
        Field("metric", "Metric"),
        Field("wins", "A wins", "wins", "d"),
        Field("ties", "Ties", "ties", "d"),
        Field("losses", "A loses", "loses", "d"),
        Field("effect", "Effect d", "d", "+.3f"),
    ]
    rows = list[list[Cell]]()
    for pair in compared.images:
        rows.append([pair.a, pair.b, pair.metric, *pair.record, pair.effect_size])
    metrics = dict.fromkeys(p.metric for p in compared.images)
    by = ", ".join(f"{m}: {registry.get(m).image_columns[0].heading}" for m in metrics)
    note = f"Images are compared by {by}; d is the mean difference over its standard deviation."
    sentence = f"On how many of {counted(compared.n_images, 'image')} method A is better than B"
    words: Any = {"sentence": sentence, "notes": [note, *_notes_of(compared, ())], "n_labels": 3}
    return Table("images", "Image by image", columns, rows, **words)


def heading(score: str, alone: str = "") -> str:
    """METRIC.SCORE for people: ODS for the default metric or one that is `alone`, "Regions: PRI
    ODS" for others."""
    return score_field(score, alone).heading


def score_field(score: str, alone: str = "") -> Field:
    """Return the column of METRIC.SCORE in a table of several metrics."""
    named = score_name(score)
    assert named is not None  # scores come from metrics
    metric, part, column = named
    field = table_column(column, 3, f"{metric}_")
    if part:
        brief = f"{column.short or column.heading} of {part}"
        field = table_column(column, 3, f"{metric}_{part}_")
        field = replace(field, heading=f"{column.heading} of {part}", short=brief)
    if alone or metric in registry.DEFAULT_METRICS:
        return field
    title = f"{registry.get(metric).title}: {field.heading}"
    return replace(field, heading=title, short=field.short or field.heading)
