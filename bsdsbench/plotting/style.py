"""The style of every figure: colours and dashes, rc settings, axes, legends, reproducible files.

Plots, the report and overlays use the same colours. The report needs colours only, so matplotlib is
imported inside functions.
"""

from __future__ import annotations

import io
import textwrap
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from bsdsbench.arguments import check_word
from bsdsbench.errors import DataError
from bsdsbench.io import write_atomic

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

# In the order of the curves of a figure. Any two differ by at least 40 (CIEDE2000), so that they
# are not confused in a legend. No eighth colour is as different and legible on white and on black.
PALETTE = ("#0072B2", "#FF9619", "#7D007D", "#7DC800", "#E196C8", "#7D3200", "#004B19")
# Lengths of dashes and gaps in line widths; empty: solid. After the last colour of the palette, the
# colours repeat with the next dashes.
DASHES: tuple[tuple[float, ...], ...] = (
    *((), (5, 2), (1, 1.5), (5, 2, 1, 2)),
    *((9, 3), (3, 1, 3, 3), (9, 2, 1, 2, 1, 2)),
)
GREY = "#7F7F7F"
HUMAN = "#2E7D32"
# Matched, false and missed pixels in all overlays
PIXEL_COLORS = {"matched": "#009E73", "false": "#D55E00", "missed": "#0072B2"}
# Error classes of missed and of false pixels, in shades of these two colours
ERROR_COLORS = {
    **{"suppressed": "#56B4E9", "near_missed": "#0072B2", "absent": "#2A2A8C"},
    **{"duplicate": "#F0B400", "near_false": "#D55E00", "background": "#8C1D04"},
}
OTHER_COLOR = "#CC79A7"  # pixels of another class or object
VOID_COLOR = "#555555"  # pixels that are not counted
LETTER_WIDTH = 0.62  # upper estimate of the width of a letter in font sizes, for strict limits
MEAN_LETTER_WIDTH = 0.58  # average estimate, for text that may be slightly too wide
# Locations of a legend inside the axes, in order of preference -> the fraction of the free width
# that is left of the legend, and of the free height that is below it
_LEGEND_LOCATIONS = {
    "lower left": (0.0, 0.0),
    "upper right": (1.0, 1.0),
    "lower right": (1.0, 0.0),
    "upper left": (0.0, 1.0),
    "lower center": (0.5, 0.0),
    "upper center": (0.5, 1.0),
    "center left": (0.0, 0.5),
    "center right": (1.0, 0.5),
    "center": (0.5, 0.5),
}


class CurveLine(NamedTuple):
    """The colour of a curve (#RRGGBB), and its dashes as in DASHES."""

    color: str
    dashes: tuple[float, ...]


class _Sizes(NamedTuple):
    """The sizes of a look (a style for one purpose, such as a column of a paper)."""

    width: float | None  # figure width in inches; None: each kind of figure has its own
    font: float  # font size in points
    line: float  # line width in points
    aspect: float | None = None  # width / height; None: each kind of figure has its own
    n_colors: int = len(PALETTE)  # number of colours before the dashes change
    letters: int = 44  # characters per line of the legend


# For the screen, one column of a paper, the full width of a paper, or a 16:9 slide
_SIZES_OF_LOOK = {
    "screen": _Sizes(None, 9, 1.6),
    "column": _Sizes(3.3, 7.5, 1.2),
    "page": _Sizes(6.9, 8, 1.3, 1.9),
    "slide": _Sizes(10.0, 17, 3.2, 16 / 9, 4, 26),
}
_RC: dict[Any, Any] = {
    "font.sans-serif": ["DejaVu Sans"],
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.6,
    "legend.edgecolor": "none",
    "savefig.dpi": 200.0,
    "pdf.fonttype": 42,
    "svg.hashsalt": "bsdsbench",
}
# Kind of file -> metadata that suppress the date, and the metadata field for `figure_notes`
_METADATA_OF_KIND: dict[str, tuple[dict[str, Any], str]] = {
    "pdf": ({"CreationDate": None}, "Subject"),
    "svg": ({"Date": None}, "Description"),
    "png": ({}, "Description"),
}


class _Style(NamedTuple):
    """The settings of the enclosing `style` block."""

    look: str = "screen"  # a key of `_SIZES_OF_LOOK`
    for_file: bool = False
    settings_made: bool = False  # True if matplotlib's rc settings are those of the look


_current_style: ContextVar[_Style] = ContextVar("style", default=_Style())  # noqa: B039 - immutable
#: Figure made by `new_axes` -> its (width, height) in inches without a legend outside the axes
_size_of_figure: WeakKeyDictionary[Figure, tuple[float, float]] = WeakKeyDictionary()
#: Axes -> (name, title) of each curve, and the title of the axes that was built from them
_titles_of_axes: WeakKeyDictionary[Axes, tuple[list[tuple[str, str]], str]] = WeakKeyDictionary()
#: Figure -> text, such as signatures of runs, that `save` writes into the metadata of the file
figure_notes: WeakKeyDictionary[Figure, str] = WeakKeyDictionary()


def curve_lines(n_curves: int, n_colors: int = len(PALETTE)) -> list[CurveLine]:
    """Return the lines of `n_curves` curves. Colours repeat with new dashes after `n_colors`."""
    return [
        CurveLine(PALETTE[k % n_colors], DASHES[k // n_colors % len(DASHES)])
        for k in range(n_curves)
    ]


@contextmanager
def style(look: str | None = None, file: bool = False) -> Iterator[None]:
    """Replace the user's rc settings with the style of this package inside a `with` block.

    look : "screen", "column" or "page" (one column or the full text width of a paper), or "slide".
        Default: the look of the enclosing block or, if there is none, "screen"
    file : True if figures are only written to files, here and in nested blocks. They are then made
        without pyplot, which would show them and keep them in memory

    Raises DataError if `look` is unknown.
    """
    import matplotlib as mpl

    outer = _current_style.get()  # the style of the enclosing block
    inner_look = check_word(look or outer.look, "style", _SIZES_OF_LOOK)
    font, line = _SIZES_OF_LOOK[inner_look].font, _SIZES_OF_LOOK[inner_look].line  # in points
    settings: dict[Any, Any] = {"lines.linewidth": line, "axes.linewidth": line / 2}
    settings |= {"font.size": font, "axes.titlesize": font + 1, "legend.fontsize": font - 1}
    inner = _Style(inner_look, for_file=file or outer.for_file, settings_made=True)
    token = _current_style.set(inner)
    try:
        if outer.settings_made and inner_look == outer.look:  # setting them again takes 5 ms
            yield
        else:
            with mpl.rc_context():
                mpl.rcdefaults()
                mpl.rcParams.update({**_RC, **settings})
                yield
    finally:
        _current_style.reset(token)


def next_style(ax: Axes) -> dict[str, object]:
    """Return the "color" and "linestyle" of the next curve on `ax`, as arguments of `Axes.plot`.

    They follow from the number of curves that the axes already have. Lines of one point, grey lines
    (such as chance lines) and dots without a line are not curves.
    """
    from matplotlib.colors import to_hex  # "#7f7f7f" for any name of a colour

    n_drawn = 0
    for line in ax.lines:
        is_point = np.size(line.get_xdata()) <= 1
        is_grey = to_hex(line.get_color()).upper() == GREY
        is_dots = line.get_linestyle() == "None" and line.get_marker() == "o"
        if not (is_point or is_grey or is_dots):
            n_drawn += 1
    n_colors = _SIZES_OF_LOOK[_current_style.get().look].n_colors  # then they repeat, with dashes
    color, dashes = curve_lines(n_drawn + 1, n_colors)[-1]
    return {"color": color, "linestyle": (0, dashes) if dashes else "-"}


def new_axes(height: float = 4.4, ratio: float = 1.0) -> Axes:
    """Make a figure with one axes, and return the axes.

    height : height of the figure in inches; used only by the look (style) "screen". In the others
        the width is fixed, such as that of a column, and the height follows
    ratio : width / height of the figure; ignored by the looks "page" and "slide", where it is
        fixed. In the other looks, a ratio of 1 makes the axes square
    """
    sizes = _SIZES_OF_LOOK[_current_style.get().look]
    size = (ratio * height, height)  # width, height
    if sizes.width is not None:  # in all looks but "screen"
        size = sizes.width, sizes.width / (sizes.aspect or ratio)  # `aspect` is width / height too
    figure = _empty_figure(size)
    _size_of_figure[figure] = size  # `legend` may make the figure larger
    ax = figure.add_subplot()
    if ratio == 1 and sizes.aspect is None:
        ax.set_box_aspect(1)
    return ax


def new_row(n: int) -> list[Axes]:
    """Make a figure with `n` square axes side by side, and return them from left to right."""
    if n == 1:
        return [new_axes()]
    # In inches. On the screen, axes are about as large as those of `new_axes`, 4.4, with a margin
    width = _SIZES_OF_LOOK[_current_style.get().look].width or n * 4.7
    # A little less than the width of each axes, which has a gap beside it
    height = width / n - 0.05
    row = _empty_figure((width, height)).subplots(1, n)
    for ax in row:
        ax.set_box_aspect(1)
    return list(row)


def new_figure(height: float) -> Figure:
    """Make an empty figure with the width of the look and this height in inches (slide: 16:9)."""
    width, is_slide = figure_width(), _current_style.get().look == "slide"
    return _empty_figure((width, width * 9 / 16 if is_slide else height))


def _empty_figure(size: tuple[float, float]) -> Figure:
    """Make a figure of this (width, height) in inches.

    It is made with pyplot, so that `plt.show()` and notebooks show it. If figures are only written
    to files (see `style`), outside the main thread, or without a display, pyplot is not used.
    """
    from matplotlib.figure import Figure

    arguments: Any = {"figsize": size, "layout": "constrained"}
    if not _current_style.get().for_file and threading.current_thread() is threading.main_thread():
        import matplotlib.pyplot as plt

        with suppress(ImportError):  # the backend needs a display
            return plt.figure(**arguments)
    return Figure(**arguments)


def add_title(ax: Axes, name: str, title: str) -> None:
    """Add the title of a curve to the title of `ax`, unless the user has set the latter.

    If the axes have several curves, the title of each begins on a new line, after the curve's name
    ("NAME: TITLE").
    """
    # The (name, title) of each curve so far, and the title of the axes that was made from them
    earlier_curves, title_so_far = _titles_of_axes.get(ax, ([], ""))
    if ax.get_title() not in ("", title_so_far):  # set by the user
        return
    curves = [*earlier_curves, (name, title)]
    width = ax.get_window_extent().width / ax.figure.figure.dpi  # inches
    letters = max(letters_in(width), 16)
    lines = [f"{n}: {t}" if n and len(curves) > 1 else t for n, t in curves]
    text = "\n".join(textwrap.fill(line, letters) for line in lines)
    ax.set_title(text, parse_math=False)
    _titles_of_axes[ax] = curves, ax.get_title()


def letters_in(width: float, letter_width: float = MEAN_LETTER_WIDTH) -> int:
    """Return how many letters, each `letter_width` font sizes wide, fit into a width in inches."""
    return int(width * 72 / (letter_width * font_size()))


def figure_width() -> float:
    """Return the width of figures in inches; "screen", which fixes none, has that of "page"."""
    return _SIZES_OF_LOOK[_current_style.get().look].width or 6.9


def marker_scale() -> float:
    """Return the size of markers in the current look, relative to the look "screen"."""
    return font_size() / _SIZES_OF_LOOK["screen"].font


def font_size() -> float:
    """Return the font size in points of the current look."""
    return _SIZES_OF_LOOK[_current_style.get().look].font


def draw_iso_f(ax: Axes, beta2: float = 1.0) -> None:
    """Draw iso-F lines for F = 0.1, 0.2, .. 0.9 on axes with recall (x) and precision (y).

    Along an iso-F line, F is constant. Its value is written at the right end, at recall 1.

    beta2 : beta^2 in F = (1 + beta^2) P R / (beta^2 P + R)
    """
    from matplotlib.collections import LineCollection

    label: Any = {"textcoords": "offset points", "va": "center", "fontsize": "small"}
    label |= {"color": "#4C7A5B", "annotation_clip": False}
    paths = []
    for f in np.arange(1, 10) / 10:
        # On the line, beta2 / R + 1 / P equals `inverse`. At R = 1, P is 1 / (inverse - beta2)
        inverse = (1 + beta2) / f
        # Equal steps of log(R / P) from P = 1 to R = 1 put the most points where the line bends
        log_ratio = np.linspace(-np.log((inverse - 1) / beta2), np.log(inverse - beta2), 201)
        recall = (beta2 + np.exp(log_ratio)) / inverse
        precision = (1 + beta2 * np.exp(-log_ratio)) / inverse
        paths.append(np.c_[recall, precision])
        ax.annotate(f"F={f:g}", (1, 1 / (inverse - beta2)), (3, 0), **label)
    # A collection, because `legend` and `next_style` consider only `ax.lines`
    lines = LineCollection(paths, colors="#B7D7C2", linewidths=0.7, zorder=1.1)
    ax.add_collection(lines, autolim=False)


def legend(ax: Axes, handles: Sequence[Artist]) -> None:
    """Draw a legend of the artists `handles` that hides no curve. It replaces an existing legend.

    Of several artists with the same label, the last one is listed; artists whose label begins with
    "_" are not. The legend is inside the axes if it covers no line there. Otherwise, and always in
    the look "page" (a style for the full width of a paper), it is outside.
    """
    from matplotlib.transforms import ScaledTranslation

    entries: dict[str, Artist] = {}
    for handle in handles:
        label = str(handle.get_label())
        if label[0] != "_":
            entries.pop(label, None)  # so that the last handle also comes last
            entries[label] = handle
    figure: Any = ax.figure.figure  # the whole figure, even if the axes are in a subfigure
    # Width and height in inches without a legend outside; None if `new_axes` did not make the axes
    size = _size_of_figure.get(figure)
    old_legends = [ax.get_legend()]
    if size:  # otherwise, legends outside the axes are the user's
        old_legends += figure.legends
    for old_legend in filter(None, old_legends):
        old_legend.remove()
    # Draw the legend once to measure its size
    trial = _wrap_texts(ax.legend(entries.values(), entries, loc="lower left"))
    location = None if _current_style.get().look == "page" else _free_location(ax, trial)
    trial.remove()
    if location is not None:
        _wrap_texts(ax.legend(entries.values(), entries, loc=location))
        if size:  # an earlier legend may have been outside, in a larger figure
            figure.set_size_inches(size)
    elif size is None:  # the user made the axes: draw the legend at their right
        # Leave room for the labels "F=0.1" of the iso-F lines, which take 3.2 font sizes
        gap = ScaledTranslation(3.2 * font_size() / 72, 0, figure.dpi_scale_trans)
        beside: Any = {"loc": "upper left", "frameon": False, "borderaxespad": 0}
        beside |= {"bbox_to_anchor": (1, 1), "bbox_transform": ax.transAxes + gap}
        _wrap_texts(ax.legend(entries.values(), entries, **beside), letters=32)
    else:
        _draw_outside_legend(figure, size, entries)


def _draw_outside_legend(
    figure: Figure, size: tuple[float, float], entries: dict[str, Artist]
) -> None:
    """Draw a legend (label -> artist) outside the axes of a figure made by `new_axes`.

    `size` is the width and height of the figure in inches without the legend. In the look "column"
    (of a paper), the legend is below the axes, and the figure becomes taller. In the other looks,
    it is at the right, in a smaller font if it is too tall; on the "screen" the figure grows too.
    """
    width, height = size
    look = _current_style.get().look
    is_below = look == "column"
    place: Any = {"loc": "outside lower left" if is_below else "outside right upper"}
    drawn_legend = _wrap_texts(figure.legend(entries.values(), entries, frameon=False, **place))
    available = 0.96 * height * figure.dpi  # height in pixels; 4 % is margin
    excess = drawn_legend.get_window_extent().height / available
    if excess > 1 and not is_below:
        drawn_legend.remove()
        # The letters of a legend have one point less than others. Its height is proportional
        place["fontsize"] = (font_size() - 1) / excess
        drawn_legend = _wrap_texts(figure.legend(entries.values(), entries, frameon=False, **place))
    extent = drawn_legend.get_window_extent()  # pixels
    if is_below:
        figure.set_size_inches(width, height + extent.height / figure.dpi)
    elif look == "screen":
        # Keep the axes as large as without a legend: as wide as high, and 15 % to be safe
        figure.set_size_inches(1.15 * height + extent.width / figure.dpi, height)


def _wrap_texts(legend: Legend, letters: int = 0) -> Legend:
    """Wrap the texts of a legend in place to `letters` per line (0: as the current look has)."""
    letters = letters or _SIZES_OF_LOOK[_current_style.get().look].letters
    for text in legend.get_texts():
        text.set(text=textwrap.fill(text.get_text(), letters, break_on_hyphens=False))
        text.set_parse_math(False)  # print "$" literally
    return legend


def _free_location(ax: Axes, legend: Legend) -> Any:
    """Return the first location, such as "lower left", at which a legend covers no line, or None.

    The legend must be drawn on `ax` already, so that its size is known. If it takes over 95 % of
    the width or 75 % of the height, the result is None too.
    """
    # 1.5 font sizes, of which matplotlib leaves half a size to the axes, in pixels of the figure
    margin = 1.5 * font_size() * ax.figure.figure.dpi / 72  # 72 points per inch
    # Width and height of the legend as fractions of those of the axes
    size = np.add(legend.get_window_extent().size, margin) / ax.get_window_extent().size
    if size[0] > 0.95 or size[1] > 0.75:
        return None
    # Points (x, y) along all lines, as fractions of the axes: the vertices, and 33 per segment
    points_of_lines = [np.zeros((0, 2))]  # for axes without lines
    weights = np.linspace(0, 1, 33)[:, None, None]  # (33, 1, 1), of points along each segment
    for line in ax.lines:
        path = line.get_transform().transform_path(line.get_path())  # in pixels
        vertices = ax.transAxes.inverted().transform(path.vertices)  # in fractions of the axes
        starts, ends = vertices[:-1], vertices[1:]  # (segments, 2)
        between = starts * (1 - weights) + ends * weights  # (33, segments, 2)
        points_of_lines += [vertices, between.reshape(-1, 2)]
    points = np.concatenate(points_of_lines)  # (points, 2)
    clearance = 0.02  # between the legend and the nearest point, as a fraction of the axes
    # free_share: the fractions of the free width and height that are left of and below the legend
    for location, free_share in _LEGEND_LOCATIONS.items():
        lower_left = np.array(free_share) * (1 - size)
        upper_right = lower_left + size
        # (points, 2): True if x, or y, is within the range that the legend covers
        is_within = (points > lower_left - clearance) & (points < upper_right + clearance)
        if not is_within.all(axis=1).any():
            return location
    return None


def save(fig: Figure, path: str | Path | None) -> Figure:
    """Write a figure to a .pdf, .svg or .png file unless `path` is None, and return the figure.

    Equal figures give identical files, because no date is written. Raises DataError if the suffix
    of `path` is unknown, or if its folder does not exist.
    """
    if path is None:
        return fig
    path = Path(path)
    kind = path.suffix.lower().lstrip(".")
    if kind not in _METADATA_OF_KIND:
        raise DataError(f"{path}: suffix {path.suffix!r}, expected .pdf, .svg or .png")
    if not path.parent.is_dir():
        raise DataError(f"{path}: folder {path.parent} does not exist, expected an existing one")
    write_atomic(path, drawn_bytes(fig, kind), durable=False)
    return fig


def drawn_bytes(fig: Figure, kind: str) -> bytes:
    """Return a figure as a "pdf", "svg" or "png" file, with its `figure_notes` in the metadata."""
    # For "svg": {"Date": None}, which omits the date, and "Description", the field of the notes
    metadata, note_field = _METADATA_OF_KIND[kind]
    if figure_notes.get(fig):
        metadata = {**metadata, note_field: figure_notes[fig]}
    buffer = io.BytesIO()
    with style():  # its settings of resolution and fonts apply when a figure is written
        fig.savefig(buffer, format=kind, metadata=metadata)
    return buffer.getvalue()
