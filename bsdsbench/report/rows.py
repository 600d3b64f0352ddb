"""What the tables hold: scores of runs, published scores, a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bsdsbench.comparison.compare import Comparison, Interval, column_of, lower_is_better
from bsdsbench.comparison.published import PublishedResult
from bsdsbench.metrics import registry
from bsdsbench.report.tables import Cell, Table
from bsdsbench.runs.score_list import flat_scores


def score_tables(
    runs: Sequence[Any], names: Sequence[str], published: Sequence[PublishedResult] = ()
) -> list[Table]:
    """One table per metric: a row per run, then a row per published method that has scores."""
    rows = [(name, flat_scores(run.scores())) for name, run in zip(names, runs, strict=True)]
    for result in published:
        rows.append((result.label, flat_scores(result.scores())))
    rules = {run.protocol.ap_rule for run in runs}
    own = rules.pop() if len(rules) == 1 else ""
    # An AP of another rule stands in the column with the name of its rule, and is never its best.
    marks = {r.label: r.ap_mark(own) for r in published if r.ap_mark(own)}
    tables = []
    for metric in dict.fromkeys(m for run in runs for m in run.metrics):
        columns = {c.key: c.heading for c in registry.get(metric).columns if c.shown == "always"}
        keys = [f"{metric}.{key}" for key in columns]
        mine = [(name, found) for name, found in rows if any(key in found for key in keys)]
        shown = [key for key in keys if any(key in found for _, found in mine)]
        ap = f"{metric}.ap"
        best = {
            key: _best(key, [f.get(key) for n, f in mine if key != ap or n not in marks])
            for key in shown
        }
        cells = [
            [
                Cell(name),
                *(
                    _score_cell(found.get(key), best[key], marks.get(name, "") if key == ap else "")
                    for key in shown
                ),
            ]
            for name, found in mine
        ]
        header = ["Method", *(columns[key.partition(".")[2]] for key in shown)]
        tables.append(Table(metric, header, cells, _notes(runs, names)))
    return tables


def comparison_tables(found: Comparison) -> list[Table]:
    """Scores with intervals and letters; differences with p-values; win, tie, loss per image."""
    percent = f"{100 * found.level:g} %"
    alpha = 1 - found.level
    notes = [
        f"{found.n_images} images, {found.n_boot} bootstrap samples, seed {found.seed}, "
        f"{percent} {found.interval} intervals. Protocol: {found.protocol}.",
        *found.notes,
    ]
    scores = Table(
        "scores",
        ["Method", *(title(s) for s in found.scores)],
        [_interval_row(found, name, i) for i, name in enumerate(found.names)],
        [
            *notes,
            f"Runs that share a letter do not differ significantly (Holm, {alpha:.2g}).",
        ],
    )
    if len(found.names) < 2:
        return [scores]
    differences = Table(
        "differences",
        ["A", "B", "Score", "A - B", f"{percent} interval", "p", "p (Holm)", ""],
        [
            [
                Cell(d.a),
                Cell(d.b),
                Cell(title(d.score)),
                Cell(f"{d.value:+.4f}", d.value),
                Cell(f"[{d.low:+.4f}, {d.high:+.4f}]"),
                Cell(p_text(d.p), d.p),
                Cell(p_text(d.p_holm), d.p_holm),
                Cell("*" if d.p_holm < alpha else ""),
            ]
            for d in found.differences
        ],
        [f"* significant at {alpha:.2g} after Holm's correction over the pairs of each score."],
    )
    metrics = dict.fromkeys(pair.metric for pair in found.images)
    images = Table(
        "images",
        ["A", "B", "Metric", "A wins", "Ties", "A loses", "Effect d"],
        [
            [
                Cell(pair.a),
                Cell(pair.b),
                Cell(pair.metric),
                *(Cell(str(n), n) for n in pair.record),
                Cell(f"{pair.effect_size:+.3f}", pair.effect_size),
            ]
            for pair in found.images
        ],
        [
            "Per image: "
            + ", ".join(f"{m}: {registry.get(m).image_columns[0].heading}" for m in metrics)
            + "; d is the mean difference over its deviation."
        ],
    )
    return [scores, differences, images]


def comparison_mapping(found: Comparison) -> dict[str, Any]:
    """A comparison as plain values for JSON."""
    return {
        "schema": "bsdsbench.comparison/1",
        "names": list(found.names),
        "n_images": found.n_images,
        "n_boot": found.n_boot,
        "seed": found.seed,
        "level": found.level,
        "interval": found.interval,
        "protocol": found.protocol,
        "notes": list(found.notes),
        "intervals": [_plain(i, ("run", "score", "value", "low", "high")) for i in found.intervals],
        "letters": {score: list(letters) for score, letters in found.letters.items()},
        "differences": [
            _plain(d, ("a", "b", "score", "value", "low", "high", "p", "p_holm"))
            for d in found.differences
        ],
        "images": [
            {
                **_plain(pair, ("a", "b", "metric")),
                "win_tie_loss": list(pair.record),
                "effect_size": pair.effect_size,
                "effects": [
                    _plain(e, ("image_id", "a", "b", "difference", "influence"))
                    for e in pair.effects
                ],
            }
            for pair in found.images
        ],
    }


def title(score: str) -> str:
    """METRIC.SCORE as a column: ODS for the default metric, metric and column for others."""
    metric, _, key = score.partition(".")
    column = column_of(score)
    heading = column.heading if column else key
    return heading if metric in registry.DEFAULT else f"{metric} {heading}"


def p_text(p: float) -> str:
    """A p-value for people."""
    return f"{p:.4f}" if p >= 0.0001 else "<0.0001"


def _interval_row(found: Comparison, name: str, index: int) -> list[Cell]:
    row = [Cell(name)]
    for score in found.scores:
        mine = found.interval_of(name, score)
        best = _best(score, [found.interval_of(other, score).value for other in found.names])
        letters = found.letters[score][index] if len(found.names) > 1 else ""
        row.append(Cell(_interval_text(mine), mine.value, mine.value == best, letters))
    return row


def _interval_text(i: Interval) -> str:
    return f"{i.value:.3f} [{i.low:.3f}, {i.high:.3f}]"


def _score_cell(value: float | None, best: float | None, mark: str = "") -> Cell:
    if value is None:
        return Cell("-")
    if mark:
        return Cell(f"{value:.3f} [{mark}]", value)
    return Cell(f"{value:.3f}", value, value == best)


def _best(score: str, values: Sequence[float | None]) -> float | None:
    """The best of a column of two or more."""
    known = [v for v in values if v is not None]
    if len(known) < 2:
        return None
    return min(known) if lower_is_better(score) else max(known)


def _notes(runs: Sequence[Any], names: Sequence[str]) -> list[str]:
    signed = [
        (n, s) for r, n in zip(runs, names, strict=True) if (s := getattr(r, "signature", ""))
    ]
    signatures = [f"Signature of {name}: {line}" for name, line in signed]
    protocols: dict[str, list[str]] = {}
    for run, name in zip(runs, names, strict=True):
        protocols.setdefault(run.protocol.describe(), []).append(name)
    if len(protocols) == 1:
        return [f"Protocol: {next(iter(protocols))}.", *signatures]
    return [
        "Protocols differ; such scores do not compare.",
        *(f"{', '.join(who)}: {text}." for text, who in protocols.items()),
        *signatures,
    ]


def _plain(record: Any, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names}
