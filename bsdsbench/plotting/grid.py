"""A grid of pictures with captions, for a paper."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from bsdsbench.plotting.style import LETTER_WIDTH, figure_width, font_size, letters_in, save, style

_PAGE_HEIGHT = 9.0  # height of the text area of a page, in inches


def draw_grid(
    headings: Sequence[str],
    rows: Mapping[str, Sequence[tuple[NDArray[np.uint8], str]]],
    path: str | Path,
    look: str = "page",
) -> Figure:
    """Draw a grid of pictures, and write it to the file `path`. Pixels are not interpolated.

    headings : the text above each column
    rows : label at the left of a row, such as an image id -> for each column, (picture (H, W, 3),
        caption); from top to bottom
    path : a .pdf, .svg or .png file
    look : the width of the figure: "page" (full text width of a paper) or "column"
    """
    with style(look, file=True):
        cell_width = figure_width() / len(headings)  # inches
        letters = max(letters_in(cell_width, LETTER_WIDTH), 4)
        # Room for pictures of 3:2 with a line for each caption, and for headings of a few lines
        row_height = 2 / 3 * cell_width + 1.5 * font_size() / 72
        height = min(_PAGE_HEIGHT, row_height * len(rows) + 5 * font_size() / 72)
        figure = Figure((figure_width(), height), layout="constrained")
        grid = figure.subplots(len(rows), len(headings), squeeze=False)
        for cells, (label, pictures) in zip(grid, rows.items(), strict=True):
            cells[0].set_ylabel(label, parse_math=False)
            for ax, (pixels, caption) in zip(cells, pictures, strict=True):
                ax.imshow(pixels, interpolation="none")
                ax.set(xticks=[], yticks=[])
                ax.spines[:].set_visible(False)
                ax.set_xlabel(caption, fontsize="small", parse_math=False)
        for ax, heading in zip(grid[0], headings, strict=True):
            ax.set_title(textwrap.fill(heading, letters), fontsize="medium", parse_math=False)
        return save(figure, path)
