"""A grid of pictures with captions, for a paper."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

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
        # All lengths are in inches. Positions are measured from the lower left corner. A line of
        # text is 1 em high, and gets more for its margins
        width = figure_width()
        em = font_size() / 72  # 72 points per inch
        left_margin = 1.6 * em  # for the labels of the rows, which are rotated
        caption_height = 1.5 * em
        cell_width = (width - left_margin) / len(headings)
        letters = max(letters_in(cell_width, LETTER_WIDTH), 4)
        wrapped_headings = [textwrap.fill(heading, letters) for heading in headings]
        n_heading_lines = 1 + max(heading.count("\n") for heading in wrapped_headings)
        top_margin = n_heading_lines * 1.4 * em
        max_row_height = (_PAGE_HEIGHT - top_margin) / len(rows)
        # The height of a 3:2 picture, or less if the rows would not fit on one page
        image_height = min(2 / 3 * cell_width, max_row_height - caption_height)
        row_height = image_height + caption_height
        height = top_margin + len(rows) * row_height
        figure = Figure((width, height))

        def write(
            x: float, y: float, text: str, va: str, size: str = "medium", rotation: float = 0
        ) -> None:
            """Write a text, centred horizontally at `x` and aligned vertically (`va`) at `y`."""
            arguments: Any = {"va": va, "ha": "center", "fontsize": size, "rotation": rotation}
            figure.text(x / width, y / height, text, parse_math=False, **arguments)

        centers = [left_margin + (k + 0.5) * cell_width for k in range(len(headings))]
        for center, heading in zip(centers, wrapped_headings, strict=True):
            write(center, height - 0.2 * em, heading, va="top")
        for j, (label, pictures) in enumerate(rows.items()):
            bottom = height - top_margin - j * row_height - image_height
            write(0.7 * em, bottom + image_height / 2, label, va="center", rotation=90)
            image_width = cell_width - 0.06  # leaves a gap between columns
            for center, (pixels, caption) in zip(centers, pictures, strict=True):
                left = center - image_width / 2
                ax = figure.add_axes(
                    (left / width, bottom / height, image_width / width, image_height / height)
                )
                ax.imshow(pixels, interpolation="none")
                ax.set_axis_off()
                write(center, bottom - 0.15 * em, caption, va="top", size="small")
        return save(figure, path)
