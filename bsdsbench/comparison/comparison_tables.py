"""A comparison as tables: scores; of several runs also differences, and image by image."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from bsdsbench.files.bounded import counted
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Column
from bsdsbench.runs.references import PAIRS_LOST
from bsdsbench.runs.score_tables import METHOD, signature_lines, table_column, why_undefined
from bsdsbench.scores.ratios import short
from bsdsbench.tables.table import Cell, Estimate, Field, Table


def comparison_tables(found: Any) -> list[Table]:
    """The tables of a `Comparison`, of the scores that it shows."""
    scores, several = found.shown or found.scores, len(found.names) > 1
    alpha, level = 1 - found.level, f"{100 * found.level:g} %"
    images = counted(found.n_images, "image")
    metrics = {score.partition(".")[0] for score in found.scores}
    # The title of the one metric that all are of stands once, not in every heading.
    (name,) = metrics if len(metrics) == 1 else ("",)
    alone = registry.get(name).title if name and name not in registry.DEFAULT else ""
    swapped = "; p by permutation of the two results of each image"
    how: dict[str, Any] = {
        "caption": f"{found.n_images} images, {found.n_boot} bootstrap samples, seed {found.seed}, "
        f"{level} percentile intervals{swapped if found.test == 'permutation' else ''}. "
        f"Protocol: {found.protocol}",
        "signatures": signature_lines(found.names, found.signatures) if found.signatures else [],
    }

    # scores
    rows, values = list[list[Cell]](), list[dict[str, Any]]()
    for i, run in enumerate(found.names):
        rows.append([run])
        values.append({})
        for score in scores:
            own, mark = found.interval_of(run, score), found.letters[score][i] if several else ""
            rows[-1].append(Estimate(own.value, own.low, own.high, mark))
            values[-1][score] = None if own.value != own.value else own.value
    notes = [f"Runs that share a letter do not differ significantly (Holm, {alpha:.2g})."] * several
    fields = {score: _column(score, alone) for score in scores}
    known = {fields[score].key: column for score in scores if (column := column_of(score))}
    keyed = [{fields[score].key: value for score, value in row.items()} for row in values]
    columns = [METHOD, *fields.values()]
    title = f"Scores with intervals{f' ({alone})' if alone else ''}"
    sentence = f"Scores with {level} intervals from {found.n_boot:,} bootstrap samples of {images}"
    undefined = why_undefined(known, keyed)
    how |= {"sentence": sentence, "notes": [*notes, *undefined, *found.notes]}
    tables = [Table("scores", title, columns, rows, **how)]
    if not several:
        return tables

    # differences
    pair = [Field("a", "A"), Field("b", "B")]
    columns = [
        *pair,
        Field("score", "Score"),
        Field("difference", f"A - B [{level} interval]", "A - B", "+.4f"),
        Field("p", "p", "", "p"),
        Field("p_holm", "p (Holm)", "", "p"),
        Field("least", "Smallest detectable difference", "least", ".4f"),
    ]
    rows, here = [], [d for d in found.differences if d.score in scores]
    for d in here:
        gap = Estimate(d.value, d.low, d.high, "~" if d.solver else "")
        corrected = Estimate(d.p_holm, mark="*" if d.significant(found.level) else "")
        rows.append([d.a, d.b, heading(d.score, alone), gap, d.p, corrected, d.least])
    notes = [f"* significant at {alpha:.2g} after Holm's correction over the pairs of each score."]
    first = [d for d in here if d.score == here[0].score]
    detectable = [d.least for d in first if not math.isnan(d.least)]
    if least := sorted(short(gap, 3 if gap >= 0.001 else 4) for gap in detectable):
        span = least[0] if least[0] == least[-1] else f"{least[0]} to {least[-1]}, by pair,"
        what = heading(first[0].score, alone)
        notes.append(
            f"With these images a difference in {what} of {span} is found four times of five (p "
            f"below {alpha:.2g} before Holm's correction), a smaller one less often."
        )
    if reach := sorted(short(d.solver_moves, 4) for d in here if d.solver):
        span = reach[0] if reach[0] == reach[-1] else f"{reach[0]} to {reach[-1]}, by row"
        notes.append(
            f"~ below {span}, what the official matching can move: it is random and loses about "
            f"{PAIRS_LOST} pairs in a map. Such a difference is not starred."
        )
    if found.test == "bootstrap" and any((d.low > 0 or d.high < 0) != (d.p < alpha) for d in here):
        notes.append(
            f"Near p = {alpha:.2g}, or of few images, an interval and its p may disagree about 0: "
            "the interval is read between samples; p counts those beyond 0, and one more. The p "
            "decides."
        )
    sentence = f"Differences between methods, with {level} intervals and p, on {images}"
    how |= {"sentence": sentence, "notes": [*notes, *found.notes], "n_labels": 3}
    tables.append(Table("differences", "Differences", columns, rows, **how))

    # image by image
    columns = [
        *pair,
        Field("metric", "Metric"),
        Field("wins", "A wins", "wins", "d"),
        Field("ties", "Ties", "ties", "d"),
        Field("losses", "A loses", "loses", "d"),
        Field("effect", "Effect d", "d", "+.3f"),
    ]
    rows = [[p.a, p.b, p.metric, *p.record, p.effect_size] for p in found.images]
    compared = dict.fromkeys(p.metric for p in found.images)
    by = [f"{m}: {registry.get(m).image_columns[0].heading}" for m in compared]
    note = f"Images are compared by {', '.join(by)}; d is the mean difference over its standard "
    how["notes"] = [f"{note}deviation.", *found.notes]
    how["sentence"] = f"On how many of {images} method A is better than B"
    tables.append(Table("images", "Image by image", columns, rows, **how))
    return tables


def heading(score: str, alone: str = "") -> str:
    """METRIC.SCORE for people: ODS for the default metric or one that is `alone`, "Regions: PRI
    ODS" for others."""
    return _column(score, alone).heading


def column_of(score: str) -> Column | None:
    """The metric's column of METRIC.SCORE, or None."""
    metric, _, key = score.partition(".")
    columns = registry.get(metric).columns if metric in registry.names() else ()
    return next((c for c in columns if c.key == key), None)


def lower_is_better(score: str) -> bool:
    """Whether a smaller value of METRIC.SCORE is the better one."""
    column = column_of(score)
    return column is not None and column.lower


def _column(score: str, alone: str = "") -> Field:
    metric, found = score.partition(".")[0], column_of(score)
    assert found is not None  # scores come from metrics
    mine = table_column(found, 3, f"{metric}_")
    if alone or metric in registry.DEFAULT:
        return mine
    title = f"{registry.get(metric).title}: {found.heading}"
    return replace(mine, heading=title, short=found.short or found.heading)
