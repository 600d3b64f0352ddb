"""Colours and dashes: of curves by the name of their method, of pixels by what became of them.
Lines of equal F.

The same in plots, in the report and in overlays.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Okabe and Ito's colours that read on white, then those farthest from all before them, also for
# eyes without the green receptor.
PALETTE = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#3333DD",
    "#555511", "#DD00FF", "#FF5566", "#AA0088", "#6611AA", "#664444", "#558822", "#005555",
    "#AA2244", "#CC77FF", "#8A8A5C", "#7F7FB8",
)  # fmt: skip
# For print without colour, neighbours far apart.
GREYS = (
    "#000000", "#8C8C8C", "#4D4D4D", "#A8A8A8", "#262626", "#757575", "#9A9A9A", "#606060",
    "#3A3A3A", "#B4B4B4", "#141414", "#818181",
)  # fmt: skip
# On and off in widths of the line; empty: solid.
DASHES: tuple[tuple[float, ...], ...] = ((), (5, 2), (1, 1.5), (5, 2, 1, 2))
SOLID = 7  # curves of a picture before the first dashed one
ISO_LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
HUMAN = "#2E7D32"
# Pixels of a matching, in every overlay.
PIXELS = {"matched": "#009E73", "false": "#D55E00", "missed": "#0072B2"}
# With it the detectors of `bsdsbench run` have colours of their own.
_SALT = b"20761"


def line_of(name: str, taken: Sequence[str], grey: bool = False) -> tuple[str, tuple[float, ...]]:
    """Colour and dashes of the next curve: by its method's name, unless the colour is taken.

    Greys go by order, as twelve of them cannot be told apart alone.
    """
    k = len(taken)
    if grey:
        return _free(GREYS, k, taken), DASHES[k % len(DASHES)]
    word = name.partition(" (")[0].casefold().replace("-", " ").replace("_", " ")
    digest = hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=4, salt=_SALT).digest()
    color = _free(PALETTE, int.from_bytes(digest, "big"), taken)
    return color, DASHES[k // SOLID % len(DASHES)]


def lines_of(names: Sequence[str]) -> list[tuple[str, tuple[float, ...]]]:
    """Colour and dashes of each curve of a picture."""
    out: list[tuple[str, tuple[float, ...]]] = []
    for name in names:
        out.append(line_of(name, [color for color, _ in out]))
    return out


def iso_f_points(f: float, count: int = 201) -> tuple[NDArray[Any], NDArray[Any]]:
    """Recall and precision (count,) of the line of equal F inside the unit square.

    In even steps of u = log(recall / precision), which are even along the curve where it bends.
    """
    u = np.linspace(-1, 1, count) * np.log(2 / f - 1)
    return f / 2 * (1 + np.exp(u)), f / 2 * (1 + np.exp(-u))


def _free(colors: Sequence[str], start: int, taken: Collection[str]) -> str:
    """The first free colour from `start` on; where none is, the first of them moved to grey."""
    rounds = 0
    while True:
        for k in range(len(colors)):
            color = colors[(start + k) % len(colors)]
            parts = (int(color[i : i + 2], 16) for i in (1, 3, 5))
            share = rounds / (rounds + 3)
            color = "#" + "".join(f"{round(v + (0x80 - v) * share):02X}" for v in parts)
            if color not in taken:
                return color
        rounds += 1
