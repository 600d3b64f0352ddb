"""The published results as one table with links to papers and sources."""

from __future__ import annotations

import re
from typing import Any

from bsdsbench.comparison.published import PublishedResult, published_results
from making.reference import cell

HEADS = ("key", "method", "year", "set", "ODS", "OIS", "AP", "AP rule", "other scores", "variant")
LAST = ("paper", "source")


def table() -> str:
    """One row for each result."""
    heads = (*HEADS, *LAST)
    rows = [heads, ["---"] * len(heads), *map(_row, published_results().values())]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def _row(result: PublishedResult) -> list[str]:
    scores = [_number(result.boundary.get(key)) for key in ("ods", "ois", "ap")]
    region = (
        f"{name} {key} {_number(value)}"
        for name, values in result.region.items()
        for key, value in values.items()
    )
    other = (f"{name} {_number(value)}" for name, value in result.other.items())
    notes = (result.input, result.variant, result.nms and f"NMS {result.nms}", result.note)
    source = re.match(r"([\w.-]+)[+/]([\w.-]+)", result.source)
    address = source and f"https://github.com/{source[1]}/{source[2]}"
    where = f"[{_text(result.source)}]({address})" if address else _linked(result.source)
    return [
        f"`{result.key}`" + (" (curve)" if result.curve else ""),
        _text(result.name),
        str(result.year or "-"),
        ", ".join(task.partition("/")[0] for task in result.tasks[:1]),
        *scores,
        result.ap_rule or "-",
        ", ".join((*region, *other)) or "-",
        _text("; ".join(filter(None, notes))) or "-",
        _linked(result.paper),
        where,
    ]


def _number(value: Any) -> str:
    return "-" if value is None else f"{value:g}"


def _text(words: str) -> str:
    return re.sub(r"(?<![\d.])\.(?=\d)", "0.", re.sub(r"([<*_\[\]])", r"\\\1", cell(words)))


def _linked(paper: str) -> str:
    """The text, with its arXiv number as a link."""
    return re.sub(r"arXiv (\d{4}\.\d{4,5})", r"[arXiv \1](https://arxiv.org/abs/\1)", _text(paper))
