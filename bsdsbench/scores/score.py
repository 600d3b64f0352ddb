"""The score of a data set: numbers and curves by name, nested, read-only, to be looked at."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from bsdsbench.tables.result_object import ShownScore


class Score(ShownScore, Mapping[str, Any]):
    """Scores by name, as items and as attributes; a group of scores is a `Score` again.

    Undefined numbers are NaN here and None in `to_mapping()`, which leaves out curves.

    Parameters
    ----------
    values : dict
        Name -> number, text, array, curve, or a dict of these.

    Examples
    --------
    >>> score = Score({"ods": {"threshold": 0.2, "f": 0.5}, "ap": float("nan"), "n_images": 2})
    >>> score.ods.f, score["ods"]["threshold"]
    (0.5, 0.2)
    >>> score.to_mapping()
    {'ods': {'threshold': 0.2, 'f': 0.5}, 'ap': None, 'n_images': 2}
    """

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Any]) -> None:
        inner = {k: Score(v) if isinstance(v, Mapping) else v for k, v in values.items()}
        object.__setattr__(self, "_values", inner)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._values:
            raise AttributeError(f"score {name!r}: expected one of {', '.join(self._values)}")
        return self._values[name]

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{name}: a score is read-only")

    def __reduce__(self) -> tuple[Any, ...]:
        return Score, (self._values,)

    def to_mapping(self) -> dict[str, Any]:
        """The numbers as plain values, for JSON: undefined and infinite ones are None."""
        out: dict[str, Any] = {}
        for name, value in self.items():
            if isinstance(value, Score):
                out[name] = value.to_mapping()
            elif isinstance(value, float):
                out[name] = value if math.isfinite(value) else None
            elif isinstance(value, int | str):
                out[name] = value
            elif isinstance(value, tuple) and all(isinstance(v, str | int) for v in value):
                out[name] = list(value)
        return out


def one_of(tree: Mapping[str, Any], k: int = 0) -> dict[str, Any]:
    """The k-th data set's scores, of a tree of arrays and curves over S data sets."""
    out: dict[str, Any] = {}
    for name, value in tree.items():
        if isinstance(value, Mapping):
            out[name] = one_of(value, k)
        elif isinstance(value, np.ndarray):
            out[name] = value[k].item() if value.ndim == 1 else value[k]
        else:
            out[name] = value[k]
    return out


def at(tree: Mapping[str, Any], key: str) -> Any:
    """The value at a column's key, a path as "ods.threshold"; of a point of a curve its F.

    None where there is no such value.
    """
    value: Any = tree
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value.get("f") if isinstance(value, Mapping) else value
