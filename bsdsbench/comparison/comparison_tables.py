"""A comparison as tables and as plain values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bsdsbench.files.bounded import counted
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Column
from bsdsbench.runs.references import SOLVER, SOLVER_MOVES
from bsdsbench.runs.score_tables import (
    METHOD,
    signature_lines,
    table_column,
    why_undefined,
)
from bsdsbench.scores.ratios import or_none, short
from bsdsbench.tables.table import Cell, Estimate, Field, Table

_PAIR = [Field("a", "A"), Field("b", "B")]


def comparison_tables(found: Any) -> list[Table]:
    """Scores with intervals; of several runs differences, wins and losses; then further scores."""
    shown = list(found.shown)
    more = [s for s in found.scores if s not in shown]
    several = len(found.names) > 1
    tables = [_scores(found, shown or more)]
    tables += [_differences(found, shown or more), _images(found)] * several
    if shown and more:
        tables += [_differences(found, more, aside=True)] * several
        tables.append(_scores(found, more, aside=True))
    return tables


def _made_how(found: Any, notes: Sequence[str]) -> dict[str, Any]:
    """Caption and notes of a table: each has them all, as each may be pasted alone."""
    swapped = "; p by permutation of the two results of each image"
    caption = (
        f"{found.n_images} images, {found.n_boot} bootstrap samples, seed {found.seed}, "
        f"{_percent(found)} percentile intervals{swapped if found.test == 'permutation' else ''}. "
        f"Protocol: {found.protocol}"
    )
    signed = signature_lines(found.names, found.signatures) if found.signatures else []
    return {"caption": caption, "notes": [*notes, *found.notes], "signatures": signed}


def _scores(found: Any, scores: Sequence[str], aside: bool = False) -> Table:
    several, alone = len(found.names) > 1, _alone(found)
    rows: list[list[Cell]] = []
    for i, name in enumerate(found.names):
        own = [found.interval_of(name, score) for score in scores]
        marks = [found.letters[score][i] if several else "" for score in scores]
        cells = [Estimate(x.value, x.low, x.high, m) for x, m in zip(own, marks, strict=True)]
        rows.append([name, *cells])
    note = f"Runs that share a letter do not differ significantly (Holm, {1 - found.level:.2g})."
    values = [{s: or_none(found.interval_of(n, s).value) for s in scores} for n in found.names]
    known = [replace(c, key=s) for s in scores if (c := column_of(s))]
    columns = [METHOD, *(_column(score, alone) for score in scores)]
    title = "More scores" if aside else "Scores"
    sentence = (
        f"{title} with {_percent(found)} intervals from {found.n_boot:,} bootstrap samples of "
        f"{counted(found.n_images, 'image')}"
    )
    headed = f"{title} with intervals{f' ({alone})' if alone else ''}"
    key = "more-scores" if aside else "scores"
    how = _made_how(found, [*([note] if several else []), *why_undefined(known, values)])
    return Table(key, headed, columns, rows, sentence=sentence, aside=aside, **how)


def _differences(found: Any, scores: Sequence[str], aside: bool = False) -> Table:
    alpha, alone = 1 - found.level, _alone(found)
    columns = [
        *_PAIR,
        Field("score", "Score"),
        Field("difference", f"A - B [{_percent(found)} interval]", "A - B", "+.4f"),
        Field("p", "p", "", "p"),
        Field("p_holm", "p (Holm)", "", "p"),
        Field("least", "Smallest detectable difference", "least", ".4f"),
    ]
    here = [d for d in found.differences if d.score in scores]
    rows: list[list[Cell]] = []
    for d in here:
        gap = Estimate(d.value, d.low, d.high, "~" if d.solver else "")
        corrected = Estimate(d.p_holm, mark="*" if d.p_holm < alpha else "")
        rows.append([d.a, d.b, heading(d.score, alone), gap, d.p, corrected, d.least])
    notes = [f"* significant at {alpha:.2g} after Holm's correction over the pairs of each score."]
    notes += _told(here, alone)
    if found.test == "bootstrap" and any((d.low > 0 or d.high < 0) != (d.p < alpha) for d in here):
        notes.append(
            f"Near p = {alpha:.2g}, or of few images, an interval and its p may disagree about 0: "
            "the interval is read between samples; p counts those beyond 0, and one more. The p "
            "decides."
        )
    title = "More differences" if aside else "Differences"
    images = counted(found.n_images, "image")
    sentence = f"{title} between methods, with {_percent(found)} intervals and p, on {images}"
    about: dict[str, Any] = {"sentence": sentence, "n_labels": 3, "aside": aside}
    key = "more-differences" if aside else "differences"
    return Table(key, title, columns, rows, **about, **_made_how(found, notes))


def _told(differences: Sequence[Any], alone: str) -> list[str]:
    """What these images can tell of the first score, and what a solver's chance may have made."""
    first = [d for d in differences if d.score == differences[0].score]
    least = sorted(short(d.least) for d in first if not math.isnan(d.least))
    notes = []
    if least:
        span = least[0] if least[0] == least[-1] else f"{least[0]} to {least[-1]}, by pair,"
        score = heading(first[0].score, alone)
        notes.append(f"With these images a difference in {score} below {span} cannot be detected.")
    if any(d.solver for d in differences):
        notes.append(
            f"~ below {short(SOLVER_MOVES, 4)}, what {SOLVER} of a reference run can move."
        )
    return notes


def _images(found: Any) -> Table:
    columns = [
        *_PAIR,
        Field("metric", "Metric"),
        Field("wins", "A wins", "wins", "d"),
        Field("ties", "Ties", "ties", "d"),
        Field("losses", "A loses", "loses", "d"),
        Field("effect", "Effect d", "d", "+.3f"),
    ]
    rows = [[p.a, p.b, p.metric, *p.record, p.effect_size] for p in found.images]
    values = dict.fromkeys(p.metric for p in found.images)
    by = ", ".join(f"{m}: {registry.get(m).image_columns[0].heading}" for m in values)
    note = f"Images are compared by {by}; d is the mean difference over its standard deviation."
    how = _made_how(found, [note])
    sentence = f"On how many of {counted(found.n_images, 'image')} method A is better than B"
    return Table("images", "Image by image", columns, rows, **how, sentence=sentence, n_labels=3)


def heading(score: str, alone: str = "") -> str:
    """METRIC.SCORE for people: ODS for the default metric or one that is `alone`, "Regions: PRI
    ODS" for others."""
    return _column(score, alone).heading


def _alone(found: Any) -> str:
    """The title of the one metric that all scores are of, which headings then need not repeat."""
    metrics = {score.partition(".")[0] for score in found.scores}
    (name,) = metrics if len(metrics) == 1 else ("",)
    return registry.get(name).title if name and name not in registry.DEFAULT else ""


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


def _percent(found: Any) -> str:
    return f"{100 * found.level:g} %"
