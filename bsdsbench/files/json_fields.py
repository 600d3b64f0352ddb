"""Fields of a JSON object, each of a type and in a range; anything else is a FaultError."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

from bsdsbench.files.bounded import FaultError, listed
from bsdsbench.files.errors import clip, is_text

MAX_TEXT = 4096
MAX_WHOLE = 2**53


def only(found: Mapping[str, Any], known: Collection[str]) -> None:
    """Refuse an object that has a field which is not `known`."""
    unknown = sorted(set(found) - set(known))
    if unknown:
        raise FaultError(f"has fields {listed(unknown, 3)}, expected {', '.join(known)}")


def text(found: Mapping[str, Any], name: str, limit: int = MAX_TEXT) -> str:
    """A text of at most `limit` characters that can be written as UTF-8."""
    value = _given(found, name)
    if not isinstance(value, str) or len(value) > limit or not is_text(value):
        raise _wrong(name, value, f"text of at most {limit} characters")
    return value


def whole(found: Mapping[str, Any], name: str, low: int = 0, high: int = MAX_WHOLE) -> int:
    """A whole number in low .. high."""
    value = _given(found, name)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise _wrong(name, value, f"a whole number from {low} to {high}")
    return value


def number(found: Mapping[str, Any], name: str) -> float:
    """A finite number."""
    value = _given(found, name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise _wrong(name, value, "a number")
    return float(value)


def table(found: Mapping[str, Any], name: str) -> dict[str, Any]:
    """An object."""
    value = _given(found, name)
    if not isinstance(value, dict):
        raise _wrong(name, value, "an object")
    return value


def numbers(found: Mapping[str, Any], name: str) -> dict[str, float]:
    """An object of finite numbers."""
    return {key: number(table(found, name), key) for key in table(found, name)}


def texts(found: Mapping[str, Any], name: str) -> dict[str, str]:
    """An object of texts."""
    return {key: text(table(found, name), key, 1 << 20) for key in table(found, name)}


def _given(found: Mapping[str, Any], name: str) -> Any:
    if name not in found:
        raise FaultError(f"has no {name!r}, expected it")
    return found[name]


def _wrong(name: str, value: Any, expected: str) -> FaultError:
    return FaultError(f"{clip(name, 80)} is {clip(repr(value), 60)}, expected {expected}")
