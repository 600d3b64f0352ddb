"""The style of every figure: colours and dashes, rc settings, axes, legends, reproducible files.

The colour of a curve depends on its position in the call, the colour of a pixel on whether it is
matched. Plots, the report and overlays use the same colours. The report needs colours only, so
matplotlib is imported inside functions. Figures are made with pyplot, so that `plt.show()` and
notebooks show them, but without pyplot if they are for a file, made in another thread, or if there
is no display.
"""

from __future__ import annotations

import io
import textwrap
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from bsdsbench.errors import DataError
from bsdsbench.io import write_atomic

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

# In the order of the curves of a figure. Any two differ by at least 40 (CIEDE2000), so that nobody
# confuses them in a legend. No eighth colour differs as much and is legible on white and on black.
PALETTE = ("#0072B2", "#FF9619", "#7D007D", "#7DC800", "#E196C8", "#7D3200", "#004B19")
# Lengths of dash and gap in line widths; empty: solid. After the last colour of the palette, curves
# use the first colours again with the next dashes.
DASHES: tuple[tuple[float, ...], ...] = (
    *((), (5, 2), (1, 1.5), (5, 2, 1, 2)),
    *((9, 3), (3, 1, 3, 3), (9, 2, 1, 2, 1, 2)),
)
GREY = "#7F7F7F"
HUMAN = "#2E7D32"
# Pixels of a matching in every overlay
PIXEL_COLORS = {"matched": "#009E73", "false": "#D55E00", "missed": "#0072B2"}
# Classes of missed and of false pixels, in shades of the two colours
ERROR_COLORS = {
    **{"suppressed": "#56B4E9", "near_missed": "#0072B2", "absent": "#2A2A8C"},
    **{"duplicate": "#F0B400", "near_false": "#D55E00", "background": "#8C1D04"},
}
OTHER_COLOR = "#CC79A7"  # pixels of another class or object
# Pixels within the buffer of both lines or of one line, in pale shades of the pixel colours
BUFFER_COLORS = {"both lines": "#BFE7DC", "the predicted": "#F4D7BF", "the annotated": "#BFDCEC"}
VOID_COLOR = "#555555"  # stripes over pixels that are not counted
_MAX_LETTERS = 44
# Locations of a legend inside the axes, in order of preference. The values are the shares of the
# free width and height that are left and below of the legend.
_LOCATIONS = {
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
    """Colour (#RRGGBB) and dashes of a curve, as in DASHES. Unpacks as color, dashes."""

    color: str
    dashes: tuple[float, ...]


class _Sizes(NamedTuple):
    """The sizes of a look. Font and line are in points.

    width : of the figure in inches, or None if each kind of figure has its own width
    aspect : width in heights of a figure whose legend is beside the axes, or None
    letters : characters in a line of the legend
    """

    width: float | None
    font: float
    line: float
    aspect: float | None = None
    n_colors: int = len(PALETTE)
    letters: int = _MAX_LETTERS


# For the screen, one column of a paper, its full width, or a slide of 16:9 read from afar
_SIZES = {
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
# Kind of file -> metadata without the time, and the field for signatures
_FILES: dict[str, tuple[dict[str, Any], str]] = {
    "pdf": ({"CreationDate": None}, "Subject"),
    "svg": ({"Date": None}, "Description"),
    "png": ({}, "Description"),
}


class _Style(NamedTuple):
    """The settings of the enclosing `style` block."""

    look: str  # a key of `_SIZES`
    for_file: bool
    settings_made: bool  # matplotlib's rc settings are those of the look


_NO_STYLE = _Style("screen", False, False)
_STYLE: ContextVar[_Style] = ContextVar("style", default=_NO_STYLE)
#: Figures of `new_axes`, with their size without a legend beside the axes
_own_sizes: WeakKeyDictionary[Figure, tuple[float, float]] = WeakKeyDictionary()
#: Of axes: name and title of each curve, with the title of the axes that they made
_titles: WeakKeyDictionary[Axes, list[tuple[tuple[str, str], str]]] = WeakKeyDictionary()
#: A line of text on what each figure shows, which `save` writes into the metadata.
figure_notes: WeakKeyDictionary[Figure, str] = WeakKeyDictionary()


def curve_lines(n_curves: int, n_colors: int = len(PALETTE)) -> list[CurveLine]:
    """Return a colour and dashes for each of `n_curves` curves."""
    lines = []
    for k in range(n_curves):
        dashes = DASHES[k // n_colors % len(DASHES)]
        lines.append(CurveLine(PALETTE[k % n_colors], dashes))
    return lines


@contextmanager
def style(look: str | None = None, file: bool = False) -> Iterator[None]:
    """Apply the package's rc settings, on top of matplotlib's defaults, within a `with` block.

    look : "screen", "column", "page" or "slide"; default: the look of the enclosing block, or
        "screen"
    file : the figures are for a file, so that they are made without pyplot, which would keep and
        show them

    Raises DataError if `look` is unknown.
    """
    import matplotlib as mpl

    outer = _STYLE.get()
    look = look or outer.look
    if look not in _SIZES:
        raise DataError(f"style {look!r}: expected one of {', '.join(_SIZES)}")
    token = _STYLE.set(_Style(look, file or outer.for_file, True))
    _, font, line, *_ = _SIZES[look]
    sizes: dict[Any, Any] = {
        "font.size": font,
        "axes.titlesize": font + 1,
        "legend.fontsize": font - 1,
        "lines.linewidth": line,
        "axes.linewidth": line / 2,
    }
    try:
        if outer.settings_made and look == outer.look:  # making them takes 5 ms
            yield
        else:
            with mpl.rc_context():
                mpl.rcdefaults()
                mpl.rcParams.update({**_RC, **sizes})
                yield
    finally:
        _STYLE.reset(token)


def next_style(ax: Axes) -> dict[str, object]:
    """Return colour and line style for the next curve on `ax`, as arguments of `Axes.plot`.

    Grey lines, single points and dots on a curve are not counted as curves.
    """
    from matplotlib.colors import to_hex

    n_drawn = 0
    for line in ax.lines:
        is_point = np.size(line.get_xdata()) <= 1
        is_grey = to_hex(line.get_color()).upper() == GREY
        is_dots = line.get_linestyle() == "None" and line.get_marker() == "o"
        if not (is_point or is_grey or is_dots):
            n_drawn += 1
    color, dashes = curve_lines(n_drawn + 1, _SIZES[_STYLE.get().look].n_colors)[-1]
    return {"color": color, "linestyle": (0, dashes) if dashes else "-"}


def new_axes(height: float = 4.4, ratio: float = 1.0) -> Axes:
    """Return the axes of a new figure that is `height` inches high and `ratio` times as wide.

    Looks other than "screen" have a fixed width, and `height` is ignored.
    """
    sizes = _SIZES[_STYLE.get().look]
    width, aspect = sizes.width, sizes.aspect
    size = (ratio * height, height) if width is None else (width, width / (aspect or ratio))
    figure = _new_figure(size)
    _own_sizes[figure] = size
    ax = figure.add_subplot()
    if ratio == 1 and aspect is None:
        ax.set_box_aspect(1)
    return ax


def new_row(n: int) -> list[Axes]:
    """Return `n` square axes side by side in a new figure."""
    if n == 1:
        return [new_axes()]
    width = _SIZES[_STYLE.get().look].width or n * 4.7
    row = _new_figure((width, width / n - 0.05)).subplots(1, n)
    for ax in row:
        ax.set_box_aspect(1)
    return list(row)


def _new_figure(size: tuple[float, float]) -> Figure:
    """Return a figure of this (width, height) in inches.

    It is a figure of pyplot, unless it is for a file, is made in another thread than the main one,
    or there is no display.
    """
    from matplotlib.figure import Figure

    arguments: Any = {"figsize": size, "layout": "constrained"}
    if not _STYLE.get().for_file and threading.current_thread() is threading.main_thread():
        import matplotlib.pyplot as plt

        with suppress(ImportError):  # the backend needs a display, and there is none
            return plt.figure(**arguments)
    return Figure(**arguments)


def draw_figure(
    draw: Callable[[Axes], object],
    path: str | Path | None = None,
    look: str | None = None,
    note: str = "",
) -> Figure:
    """Return a figure with one axes, which the function `draw` fills.

    `draw` takes its colours from `next_style` and makes its legend with `legend`.

    path : also write the figure to this .pdf, .svg or .png file
    look : see `style`
    note : text for the metadata of the file
    """
    with style(look, path is not None):
        ax = new_axes(3.4, 1.35)
        draw(ax)
        figure = ax.figure.figure
        figure_notes[figure] = note
        return save(figure, path)


def prepare_layout(ax: Axes) -> None:
    """Make matplotlib leave room for the labels and legends of subplots.

    Figures with a layout engine, and axes that are not subplots, are not changed.
    """
    figure = ax.figure.figure
    if figure.get_layout_engine() is None and ax.get_subplotspec() is not None:
        figure.set_layout_engine("constrained")


def add_title(ax: Axes, name: str, title: str) -> None:
    """Add a curve's title to the titles already on `ax`, unless the user has set a title.

    Titles of several curves stand below each other, each after the name of its curve.
    """
    titles = _titles.setdefault(ax, [])
    current = ax.get_title()
    if current and (not titles or current != titles[-1][1]):
        return  # the user's title
    curves = [curve for curve, _ in titles] + [(name, title)]
    lines = [f"{n}: {t}" if n and len(curves) > 1 else t for n, t in curves]
    letters = ax.get_window_extent().width / ax.figure.figure.dpi * 72 / (0.58 * font_size())
    wrapped = [textwrap.fill(line, max(int(letters), 16)) for line in lines]
    ax.set_title("\n".join(wrapped), parse_math=False)
    titles.append(((name, title), ax.get_title()))


def figure_width() -> float:
    """Return the width in inches of a figure in the current look; "screen" has that of a page."""
    return _SIZES[_STYLE.get().look].width or 6.9


def marker_scale() -> float:
    """Return the size of markers in the current look, relative to the look "screen"."""
    return font_size() / _SIZES["screen"].font


def font_size() -> float:
    """Return the font size in points of the current look."""
    return _SIZES[_STYLE.get().look].font


def untouched(ax: Axes) -> bool:
    """Return True if nothing has been drawn on `ax` and its limits have not been set."""
    return not ax.has_data() and ax.get_autoscalex_on() and ax.get_autoscaley_on()


def draw_iso_f(ax: Axes, beta2: float = 1.0) -> None:
    """Draw lines of equal F on a precision-recall plot, labelled at the right edge.

    The x axis is recall. `beta2` is the weight of recall in F = (1 + beta2) P R / (beta2 P + R).
    """
    from matplotlib.collections import LineCollection

    label: Any = {"textcoords": "offset points", "va": "center", "fontsize": "small"}
    label |= {"color": "#4C7A5B", "annotation_clip": False}
    paths = []
    for f in np.arange(1, 10) / 10:
        inverse = (1 + beta2) / f  # = beta2 / R + 1 / P
        # Even steps of log(recall / precision) give many points where the line bends most
        log_ratio = np.linspace(-np.log((inverse - 1) / beta2), np.log(inverse - beta2), 201)
        recall = (beta2 + np.exp(log_ratio)) / inverse
        precision = (1 + beta2 * np.exp(-log_ratio)) / inverse
        paths.append(np.c_[recall, precision])
        ax.annotate(f"F={f:g}", (1, 1 / (inverse - beta2)), (3, 0), **label)
    # Matplotlib ignores collections when it places a legend
    lines = LineCollection(paths, colors="#B7D7C2", linewidths=0.7, zorder=1.1)
    ax.add_collection(lines, autolim=False)


def legend(ax: Axes, handles: Sequence[Artist]) -> None:
    """Draw a legend that hides no curve, in place of an earlier legend.

    Of handles with equal labels only the last one gets an entry. The legend is inside the axes if
    there is room, otherwise beside the axes, or below them in the look "column".
    """
    entries: dict[str, Artist] = {}
    for handle in handles:
        label = str(handle.get_label())
        if label[0] != "_":
            entries.pop(label, None)
            entries[label] = handle
    figure: Any = ax.figure.figure  # the whole figure, also if the axes lie in a subfigure
    size = _own_sizes.get(figure)
    old_legends = [ax.get_legend(), *(figure.legends if size else ())]
    for old_legend in filter(None, old_legends):
        old_legend.remove()
    trial = _wrap_texts(ax.legend(entries.values(), entries, loc="lower left"))
    location = None if _STYLE.get().look == "page" else _free_location(ax, trial)
    trial.remove()
    if location is not None:
        _wrap_texts(ax.legend(handles=entries.values(), labels=entries, loc=location))
        if size:
            figure.set_size_inches(size)
    elif size is None:
        _draw_legend_of_foreign_axes(ax, entries)
    else:
        _draw_outside_legend(figure, size, entries)


def _draw_legend_of_foreign_axes(ax: Axes, entries: dict[str, Artist]) -> None:
    """Draw a legend to the right of axes that the user made. The figure keeps its size.

    The gap leaves room for the labels of the lines of equal F.
    """
    from matplotlib.transforms import ScaledTranslation

    figure: Any = ax.figure.figure
    gap = ScaledTranslation(3.2 * font_size() / 72, 0, figure.dpi_scale_trans)
    arguments: Any = {"loc": "upper left", "frameon": False, "borderaxespad": 0}
    arguments |= {"bbox_to_anchor": (1, 1), "bbox_transform": ax.transAxes + gap}
    _wrap_texts(ax.legend(entries.values(), entries, **arguments), 32)


def _draw_outside_legend(
    figure: Any, size: tuple[float, float], entries: dict[str, Artist]
) -> None:
    """Draw a legend beside the axes of a figure of ours, or below them in the look "column".

    In the looks "column" and "screen" the figure grows, from its (width, height) `size` in inches.
    A legend that is too high beside the axes gets a smaller font.
    """
    look = _STYLE.get().look
    location = "outside lower left" if look == "column" else "outside right upper"
    arguments: Any = {"handles": entries.values(), "labels": entries, "frameon": False}
    arguments["loc"] = location
    drawn_legend = _wrap_texts(figure.legend(**arguments))
    excess = drawn_legend.get_window_extent().height / (0.96 * size[1] * figure.dpi)
    if look != "column" and excess > 1:
        drawn_legend.remove()
        smaller = (font_size() - 1) / excess
        drawn_legend = _wrap_texts(figure.legend(**arguments, fontsize=smaller))
    extent = drawn_legend.get_window_extent()
    if look == "column":
        figure.set_size_inches(size[0], size[1] + extent.height / figure.dpi)
    elif look == "screen":  # leave the axes as much room as without a legend
        figure.set_size_inches(1.15 * size[1] + extent.width / figure.dpi, size[1])


def _wrap_texts(legend: Legend, letters: int = 0) -> Legend:
    """Wrap the texts of a legend in place, turn formulas off, and return the legend.

    letters : characters per line, by default those of the look
    """
    letters = letters or _SIZES[_STYLE.get().look].letters
    for text in legend.get_texts():
        text.set(text=textwrap.fill(text.get_text(), letters, break_on_hyphens=False))
        text.set_parse_math(False)
    return legend


def _free_location(ax: Axes, legend: Legend) -> Any:
    """Return the first location inside the axes at which the legend covers no line.

    Returns None if there is none, or if the legend takes 95 % of the width or 75 % of the height.
    """
    legend_box = legend.get_window_extent()
    axes_box = ax.get_window_extent()
    margin = 1.5 * font_size() * ax.figure.figure.dpi / 72
    # Width and height of the legend as fractions of the axes
    size = np.array(
        [
            (legend_box.width + margin) / axes_box.width,
            (legend_box.height + margin) / axes_box.height,
        ]
    )
    if size[0] > 0.95 or size[1] > 0.75:
        return None
    points = [np.zeros((0, 2))]
    steps = np.linspace(0, 1, 33)[:, None, None]  # points along a segment of a line
    for line in ax.lines:
        path = line.get_transform().transform_path(line.get_path())
        vertices = ax.transAxes.inverted().transform(path.vertices)
        points.append(vertices)
        points.append((vertices[:-1] * (1 - steps) + vertices[1:] * steps).reshape(-1, 2))
    points_on_lines = np.concatenate(points)
    clearance = 0.02
    for location, free_share in _LOCATIONS.items():
        lower_left = np.array(free_share) * (1 - size)
        above = points_on_lines > lower_left - clearance
        below = points_on_lines < lower_left + size + clearance
        if not (above & below).all(axis=1).any():
            return location
    return None


def save(fig: Figure, path: str | Path | None) -> Figure:
    """Write a figure to the .pdf, .svg or .png file `path`, if it is not None. Returns the figure.

    The file is reproducible, and its metadata has the text of `figure_notes`. Raises DataError if
    the suffix is different or the folder does not exist.
    """
    if path is None:
        return fig
    path = Path(path)
    kind = path.suffix.lower().lstrip(".")
    if kind not in _FILES:
        raise DataError(f"{path}: suffix {path.suffix!r}, expected .pdf, .svg or .png")
    if not path.parent.is_dir():
        raise DataError(f"{path}: folder {path.parent} does not exist, expected an existing one")
    write_atomic(path, drawn_bytes(fig, kind), durable=False)
    return fig


def drawn_bytes(fig: Figure, kind: str) -> bytes:
    """Return a figure as the bytes of a file of this kind: "pdf", "svg" or "png"."""
    metadata, note_field = _FILES[kind]
    if figure_notes.get(fig):
        metadata = {**metadata, note_field: figure_notes[fig]}
    buffer = io.BytesIO()
    with style():
        fig.savefig(buffer, format=kind, metadata=metadata)
    return buffer.getvalue()
