"""Grids of thresholds, and the texts by which users and signatures name them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from bsdsbench.errors import ProtocolError
from bsdsbench.protocol.fields import clipped, is_int, number_text

MAX_THRESHOLDS = 32_767  # what the kernels count in 16 bits


def even_thresholds(count: int) -> tuple[float, ...]:
    """Return T evenly spaced thresholds from 1/(T+1) to 1 - 1/(T+1), as boundaryBench.m does."""
    return tuple(np.linspace(1 / (count + 1), 1 - 1 / (count + 1), count).tolist())


# Named grids of thresholds, in files and signatures
GRIDS = {
    "8bit": tuple((np.arange(1, 256) / 255).tolist()),  # all levels of an 8-bit image except 0
    "seism": (0.001, *(k / 100 for k in range(1, 100)), 0.999),  # of SEISM's contour programs
    "deepcrack": tuple(k / 100 for k in range(100)),  # linspace would differ in the last digit
}


def parse_thresholds(value: Any) -> tuple[float, ...]:
    """Convert thresholds as files, the command line and signatures write them.

    - 99 or "99": a number of even thresholds
    - a sequence of numbers: the thresholds
    - any other text: see `_parse_threshold_text`

    Raises ProtocolError for anything else. The order and range of the values are checked later.
    """
    try:
        if isinstance(value, str):
            if not value.isdecimal():
                return _parse_threshold_text(value)
            value = int(value)
        if not is_int(value):
            return tuple(map(float, value))
        if 1 <= value <= MAX_THRESHOLDS:
            return even_thresholds(value)
    except (TypeError, ValueError, ArithmeticError):
        pass
    raise ProtocolError(
        f"thresholds {clipped(value)}: expected a number of them, 1 to {MAX_THRESHOLDS}, values, "
        f"FROM..TO/N or one of {', '.join(GRIDS)}"
    )


def _parse_threshold_text(text: str) -> tuple[float, ...]:
    """Convert a text to thresholds.

    - "8bit": a grid in GRIDS, by its name
    - "0+TEXT": threshold 0, which stands for the whole image, and the thresholds of TEXT
    - "FROM..TO/N": N evenly spaced thresholds
    - ".1,.2" or "at .1,.2": the thresholds

    Raises ValueError for any other text.
    """
    if text in GRIDS:
        return GRIDS[text]
    if text.startswith("0+"):
        return (0.0, *parse_thresholds(text.removeprefix("0+")))
    if ".." in text:
        low, high, count = re.split(r"\.\.|/", text)
        n_points = min(int(count), MAX_THRESHOLDS + 1)  # too many are refused later
        return tuple(np.linspace(float(low), float(high), n_points).tolist())
    return tuple(map(float, text.removeprefix("at ").split(",")))


def format_thresholds(values: tuple[float, ...]) -> str:
    """Return a short text that `parse_thresholds` converts to exactly these values.

    It is the first of these that fits:

    - "8bit": the name of a grid
    - "99": the number of even thresholds
    - "0+99": 0, and the text of the other values
    - "0.1..0.9/9": more than 4 evenly spaced values
    - "at .1,.2": all values
    """
    count = len(values)
    for name, grid in {**GRIDS, str(count): even_thresholds(count)}.items():
        if values == grid:
            return name
    if values[0] == 0 and count > 1:
        return f"0+{format_thresholds(values[1:])}"
    if count > 4 and values == tuple(np.linspace(values[0], values[-1], count).tolist()):
        return f"{values[0]}..{values[-1]}/{count}"
    return "at " + ",".join(map(number_text, values))
