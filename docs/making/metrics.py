"""The index of metrics, and what each says of itself: scores, options, settings.

The page of a metric, docs/metrics/NAME.md, includes its tables.
"""

from __future__ import annotations

import inspect
from typing import Any

import attrs

from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Column, Metric
from bsdsbench.protocol.protocol import Protocol
from making.reference import cell

DIRECTION = {True: "lower", False: "higher"}


def pages() -> dict[str, str]:
    """File name -> text: the table of the index, and the tables of each metric."""
    metrics = [registry.get(name) for name in registry.BUILT_IN]
    found = {f"{metric.name}.txt": tables(metric) for metric in metrics}
    rows = ["| metric | what it measures | predictions | protocol |", "|---|---|---|---|"]
    for metric in metrics:
        said = (inspect.getdoc(type(metric)) or metric.title).split("\n\n")[0]
        preset = f"`{metric.default_protocol}`" if metric.default_protocol else "must be named"
        rows.append(
            f"| [{metric.name}]({metric.name}.md) | {cell(said)} "
            f"| {', '.join(metric.pred_kinds)} | {preset} |"
        )
    return {**found, "index.txt": "\n".join(rows) + "\n"}


def usual(field: Any) -> str:
    """Return the default of an option: in its words, or as Python writes it, set as code."""
    return str(field.metadata.get("usual", f"`{field.default!r}`"))


def tables(metric: Metric) -> str:
    """Scores, options and settings, as the metric declares them."""
    preset = metric.default_protocol
    usual_keys = metric.usual(metric.options_of(Protocol.preset(preset))) if preset else None
    scores = [c for c in metric.columns if c.score]
    first = [c for c in scores if c.shown != "never" and (not usual_keys or c.key in usual_keys)]
    others = [c for c in scores if c not in first]
    lines = _scores(metric, first)
    if others:
        chosen = "`--columns KEY` shows any of them"
        lines += _folded(f"{len(others)} more scores", [f"{chosen}.", "", *_scores(metric, others)])
    if metric.options:
        fields = attrs.fields(metric.options)
        rows = ["| field | default | meaning |", "|---|---|---|"]
        rows += [f"| `{f.name}` | {usual(f)} | {cell(f.metadata['help'])} |" for f in fields]
        lines += ["", f"Options (`--set {metric.name}.FIELD=VALUE`):", ""]
        lines += rows if len(fields) <= 8 else _folded(f"{len(fields)} options", rows)
    if metric.uses:
        used = ", ".join(f"`{name}`" for name in metric.uses)
        lines += ["", f"Settings of the protocol that affect it: {used}."]
    else:
        lines += ["", "No setting of the protocol affects it, only its own options."]
    return "\n".join(lines) + "\n"


def _scores(metric: Metric, columns: list[Column]) -> list[str]:
    """A row for each score."""
    shown = {"always": "yes", "own": "one run", "several": "several runs", "never": "files only"}
    head = ["| score | in tables | better | key in result.json |", "|---|---|---|---|"]
    return head + [
        f"| {c.heading} | {shown[c.shown]} | {DIRECTION[c.lower]} | `{metric.name}.{c.key}` |"
        for c in columns
    ]


def _folded(title: str, lines: list[str]) -> list[str]:
    """Lines that a reader unfolds."""
    start = ["", "```{raw} html", f"<details><summary>{title}</summary>", "```", ""]
    return [*start, *lines, "", "```{raw} html", "</details>", "```", ""]
