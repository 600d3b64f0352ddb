"""The fields of a protocol as plain values, as TOML and in a line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any


def plain_fields(record: Any) -> dict[str, Any]:
    """A dataclass of values and of one level of dataclasses as JSON has them: tuples as lists."""
    values = asdict(record)
    for name, value in values.items():
        if isinstance(value, tuple):
            values[name] = list(value)
        elif isinstance(value, dict):
            values[name] = {k: list(v) if isinstance(v, tuple) else v for k, v in value.items()}
    return values


def short(value: Any) -> str:
    """A value for one line: a long list by its length and ends."""
    if isinstance(value, list) and len(value) > 4:
        return f"{len(value)} of {value[0]:g} .. {value[-1]:g}"
    return str(value)


def toml_text(values: Mapping[str, Any]) -> str:
    """TOML of plain values and one level of tables; None is left out, as TOML has none."""
    tables = {k: v for k, v in values.items() if isinstance(v, dict)}
    lines = [
        f"{k} = {json.dumps(v, ensure_ascii=False)}"
        for k, v in values.items()
        if v is not None and k not in tables
    ]
    for name, table in tables.items():
        lines += ["", f"[{name}]", toml_text(table).rstrip()]
    return "\n".join(lines) + "\n"
