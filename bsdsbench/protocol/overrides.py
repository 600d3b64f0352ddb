"""`FIELD=VALUE` as people type it, to the changes that a protocol takes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from bsdsbench.files.bounded import parse_toml
from bsdsbench.files.errors import ProtocolError
from bsdsbench.protocol.protocol import DEFAULT, Protocol


def parse_overrides(items: Iterable[str]) -> dict[str, Any]:
    """`["max_dist=0.011", "nms_params.radius=2"]` -> the changes for `Protocol.replace`.

    Values are TOML (true, 0.011, [0.2, 0.5], "text"); anything else is taken as text. Options of a
    metric are `saliency.beta2=.5`, or `saliency.beta2=default`. Raises ProtocolError for an item
    without "=", and for a field that is given twice.
    """
    changes: dict[str, Any] = {}
    for item in items:
        key, equals, text = item.partition("=")
        table, dot, name = key.strip().rpartition(".")
        name, text = name.replace("-", "_"), text.strip()
        if not (equals and name and text and bool(dot) == bool(table)):
            raise ProtocolError(f"{item!r}: expected FIELD=VALUE")
        place: Any = changes
        if table and (own := table.replace("-", "_")) in Protocol.names():
            place, table = changes.setdefault(own, {}), own
        elif table:
            place = changes.setdefault("options", {})
            place = place.setdefault(table, {}) if isinstance(place, dict) else None
        if not isinstance(place, dict):
            raise ProtocolError(f"{item!r}: {table} is already given whole")
        if name in place:
            raise ProtocolError(f"{item!r}: {key.strip()} is given more than once")
        place[name] = None if table and text == DEFAULT else _override(text)
    return changes


def _override(text: str) -> Any:
    """TOML, also numbers without the zero before the point; other text as it is."""
    number = re.sub(r"^(-?)\.(?=[0-9])", r"\g<1>0.", text)
    try:
        return parse_toml(f"value = {number}".encode("utf-8", "surrogatepass"))["value"]
    except (ValueError, RecursionError):
        return None if text in ("none", "None") else text
