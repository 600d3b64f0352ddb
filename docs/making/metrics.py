"""The index of metrics, and what each says of itself: scores, options, settings.

The page of a metric, docs/metrics/NAME.md, includes its tables.
"""

from __future__ import annotations

import inspect
from typing import Any

import attrs

from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Metric
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
    scores = [c for c in metric.columns if c.score]
    lines = ["| score | in tables | better | key in result.json |", "|---|---|---|---|"]
    shown = {"always": "yes", "own": "one run", "several": "several runs", "never": "files only"}
    lines += [
        f"| {c.heading} | {shown[c.shown]} | {DIRECTION[c.lower]} | `{metric.name}.{c.key}` |"
        for c in scores
    ]
    if metric.options:
        lines += ["", f"Options (`--set {metric.name}.FIELD=VALUE`):", ""]
        lines += ["| field | default | meaning |", "|---|---|---|"]
        lines += [
            f"| `{f.name}` | {usual(f)} | {cell(f.metadata['help'])} |"
            for f in attrs.fields(metric.options)
        ]
    if metric.uses:
        used = ", ".join(f"`{name}`" for name in metric.uses)
        lines += ["", f"Settings of the protocol that affect it: {used}."]
    else:
        lines += ["", "No setting of the protocol affects it, only its own options."]
    return "\n".join(lines) + "\n"
