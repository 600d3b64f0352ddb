"""Colours and dashes of curves, the same in plots and in the report."""

from __future__ import annotations

# Okabe and Ito's colours that read on white, darkest contrast between neighbours.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
# On and off in widths of the line; empty: solid. With the palette this gives 28 distinct lines, and
# the first seven differ by colour alone.
DASHES: tuple[tuple[float, ...], ...] = ((), (5, 2), (1, 1.5), (5, 2, 1, 2))
# For print without colour: twelve lines, the first four with dashes of their own.
GREYS = ("#000000", "#8C8C8C", "#5A5A5A")
ISO_LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
HUMAN = "#2E7D32"

# The colour and the dashes of each curve of a picture.
LINES = tuple((PALETTE[i % 7], DASHES[i // 7]) for i in range(28))
GREY_LINES = tuple((GREYS[i % 3], DASHES[i % 4]) for i in range(12))
