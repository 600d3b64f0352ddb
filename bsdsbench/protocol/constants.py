"""Thresholds and their names, and which fields of a protocol move which scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bsdsbench.files.arguments import given_list
from bsdsbench.files.errors import ProtocolError
from bsdsbench.protocol.fields import clipped, is_int, is_number, number_text

MAX_THRESHOLDS = 32_767  # what the kernels count in 16 bits
MAX_PX = 1_000
# Fields of the protocol that move scores: all that change a soft map or the reading of annotators,
# all that make a curve's numbers, and with them those of matching.
MAPS = ("invert", "normalise", "nms", "nms_params")
ANNOTATED = ("gt_invert", "gt_threshold", "gt_kind", "empty_gt")
CURVE = ("thresholds", "operator", "ap_rule", "ods_rule")
MATCHING = ("max_dist", "max_dist_px", "thin", "clean", "gt_thin")
MATCHED = (*MAPS, *ANNOTATED, *CURVE, *MATCHING)


def even_thresholds(count: int) -> tuple[float, ...]:
    """linspace(1/(T+1), 1 - 1/(T+1), T): the official default grid (boundaryBench.m)."""
    return tuple(np.linspace(1 / (count + 1), 1 - 1 / (count + 1), count).tolist())


# Grids that have a name, in files and signatures.
GRIDS = {
    "8bit": tuple((np.arange(1, 256) / 255).tolist()),  # all levels of a picture but the trivial 0
    "seism": (0.001, *(k / 100 for k in range(1, 100)), 0.999),  # of its programs for contours
    "deepcrack": tuple(k / 100 for k in range(100)),  # no linspace: ten differ in the last digit
}


def thresholds_of(given: Any) -> Any:
    """Thresholds from what a file, the command line or a signature says of them.

    given : how many even ones; a name of GRIDS; {from, to, n} or the text "FROM..TO/N" for evenly
            spaced ones; values; as text with "0+" before it, which adds the whole image

    Raises ProtocolError.
    """
    if isinstance(given, np.ndarray):
        given = given_list(given, "thresholds", "numbers")
    try:
        if isinstance(given, str):
            return _read(given)
        if isinstance(given, Mapping):
            if set(given) != {"from", "to", "n"}:
                raise ValueError
            return _spaced(given["from"], given["to"], given["n"])
        if is_int(given):
            return even_thresholds(_count(given))
        return tuple(float(t) for t in given)
    except (TypeError, ValueError, OverflowError):
        raise ProtocolError(
            f"thresholds {clipped(given)}: expected a number of them, 1 to {MAX_THRESHOLDS}, "
            f"values, {{ from, to, n }} or one of {', '.join(GRIDS)}"
        ) from None


def _read(text: str) -> tuple[float, ...]:
    if text in GRIDS:
        return GRIDS[text]
    if text.startswith("0+"):
        return (0.0, *_read(text[2:]))
    if ".." in text:
        first, _, rest = text.partition("..")
        last, _, count = rest.partition("/")
        return _spaced(float(first), float(last), int(count))
    if text.isdecimal():
        return even_thresholds(_count(int(text)))
    return tuple(float(part) for part in text.removeprefix("at ").split(","))


def _count(count: Any) -> int:
    if not is_int(count) or not 1 <= count <= MAX_THRESHOLDS:
        raise ValueError
    return int(count)


def _spaced(first: Any, last: Any, count: Any) -> tuple[float, ...]:
    if not (is_number(first) and is_number(last)):
        raise ValueError
    return tuple(np.linspace(first, last, _count(count)).tolist())


def thresholds_text(values: tuple[float, ...]) -> str:
    """The shortest text that `thresholds_of` reads as these values, to the last bit."""
    for name, grid in GRIDS.items():
        if values == grid:
            return name
    if values[0] == 0 and len(values) > 1:
        return f"0+{thresholds_text(values[1:])}"
    count = len(values)
    if values == even_thresholds(count):
        return str(count)
    if count > 4 and values == _spaced(values[0], values[-1], count):
        return f"{values[0]}..{values[-1]}/{count}"
    return "at " + ",".join(number_text(v) for v in values)
