"""One style for every picture: colours and dashes, rc settings, axes, legends, reproducible files.

A curve's colour follows from its place in the call, a pixel's from whether it is matched; they are
the same in plots, in the report and in overlays. The report needs the colours alone, so matplotlib
is imported where a picture is drawn. Figures are made by pyplot, so that `plt.show()` and notebooks
show them, but without it if they are for a file, in other threads, or where there is no display.
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

# In the order of the curves of a picture. Any two are at least 40 apart (CIEDE2000), so that nobody
# takes one for the other in a legend; no eighth colour that is legible on white and on black is.
PALETTE = ("#0072B2", "#FF9619", "#7D007D", "#7DC800", "#E196C8", "#7D3200", "#004B19")
# Lengths of dash and gap in line widths; empty: solid. The curves after the last colour have the
# first colours again with the next dashes.
DASHES: tuple[tuple[float, ...], ...] = (
    *((), (5, 2), (1, 1.5), (5, 2, 1, 2)),
    *((9, 3), (3, 1, 3, 3), (9, 2, 1, 2, 1, 2)),
)
GREY, HUMAN = "#7F7F7F", "#2E7D32"
# Pixels of a matching, in every overlay
PIXEL_COLORS = {"matched": "#009E73", "false": "#D55E00", "missed": "#0072B2"}
# Of false and of missed pixels by class, shades of their colours
ERROR_COLORS = {
    **{"suppressed": "#56B4E9", "near_missed": "#0072B2", "absent": "#2A2A8C"},
    **{"duplicate": "#F0B400", "near_false": "#D55E00", "background": "#8C1D04"},
}
OTHER_COLOR = "#CC79A7"  # of pixels of another class or object
# Of what lies within the buffer of two lines, or of one of them alone: pale colours of the pixels
BUFFER_COLORS = {"both lines": "#BFE7DC", "the predicted": "#F4D7BF", "the annotated": "#BFDCEC"}
VOID_COLOR = "#555555"  # of stripes over pixels that are counted nowhere
_MAX_LETTERS = 44
# Places of a legend inside the axes, the first that is free is taken: name, left and lower side
_PLACES = {
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
    width: float | None  # of the figure in inches; None: each kind of picture has its own
    font: float  # points
    line: float  # points
    aspect: float | None = None  # width in heights, where the legend is beside the axes
    n_colors: int = len(PALETTE)
    letters: int = _MAX_LETTERS  # in a line of a legend


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
signed: WeakKeyDictionary[Figure, str] = WeakKeyDictionary()


def curve_lines(n_curves: int, n_colors: int = len(PALETTE)) -> list[CurveLine]:
    """Return the lines of the curves of a picture in the order of the call."""
    lines = []
    for k in range(n_curves):
        dashes = DASHES[k // n_colors % len(DASHES)]
        lines.append(CurveLine(PALETTE[k % n_colors], dashes))
    return lines


@contextmanager
def style(look: str | None = None, file: bool = False) -> Iterator[None]:
    """Apply the package's rc settings, on top of matplotlib's defaults, within a `with` block.

    look : "screen", "column", "page" or "slide"; default: that of the enclosing block, or "screen"
    file : figures are for a file, and are made without pyplot, which would keep and show them
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
    """Return colour and line style, arguments of `Axes.plot`, for the next curve on `ax`."""
    from matplotlib.colors import to_hex

    n_drawn = 0
    for line in ax.lines:
        is_curve = np.size(line.get_xdata()) > 1 and to_hex(line.get_color()).upper() != GREY
        n_drawn += is_curve and (line.get_linestyle(), line.get_marker()) != ("None", "o")
    color, dashes = curve_lines(n_drawn + 1, _SIZES[_STYLE.get().look].n_colors)[-1]
    return {"color": color, "linestyle": (0, dashes) if dashes else "-"}


def new_axes(height: float = 4.4, ratio: float = 1.0) -> Axes:
    """Return the axes of a new figure that is `height` inches high and `ratio` times as wide.

    The styles but "screen" have a fixed width instead.
    """
    look = _STYLE.get().look
    width, aspect, size = _SIZES[look].width, _SIZES[look].aspect, (ratio * height, height)
    if width is not None:
        size = (width, width / (aspect or ratio))
    figure = _new_figure(size)
    _own_sizes[figure] = size
    ax = figure.add_subplot()
    if ratio == 1 and aspect is None:
        ax.set_box_aspect(1)
    return ax


def new_row(n: int, height: float = 4.4) -> list[Axes]:
    """Return `n` square axes side by side in a new figure."""
    if n == 1:
        return [new_axes(height)]
    width = _SIZES[_STYLE.get().look].width or n * (height + 0.3)
    row = _new_figure((width, width / n - 0.05)).subplots(1, n)
    for ax in row:
        ax.set_box_aspect(1)
    return list(row)


def _new_figure(size: tuple[float, float]) -> Figure:
    """Return a figure of that size in inches: of pyplot, but for files and in threads."""
    from matplotlib.figure import Figure

    arguments: Any = {"figsize": size, "layout": "constrained"}
    if not _STYLE.get().for_file and threading.current_thread() is threading.main_thread():
        import matplotlib.pyplot as plt

        with suppress(ImportError):  # a backend with windows, but there is no display
            return plt.figure(**arguments)
    return Figure(**arguments)


def draw_figure(
    draw: Callable[[Axes], object],
    path: str | Path | None = None,
    look: str | None = None,
    ratio: float = 1.35,
    note: str = "",
) -> Figure:
    """Return a figure of one axes that `draw` fills, in the style of all figures.

    Colours come from `next_style`, a legend from `legend`. A path gets it too, as .pdf, .svg or
    .png; `look` is that of `style`, `ratio` the width in heights, and `note` goes into the file's
    metadata.
    """
    with style(look, path is not None):
        ax = new_axes(3.4, ratio)
        draw(ax)
        figure = ax.figure.figure
        signed[figure] = note
        return save(figure, path)


def prepare_layout(ax: Axes) -> None:
    """Let the labels and legends of subplots have the room that they need.

    A figure that has a layout of its own, and axes at a place of their own, stay as they are.
    """
    figure = ax.figure.figure
    if figure.get_layout_engine() is None and ax.get_subplotspec() is not None:
        figure.set_layout_engine("constrained")


def add_title(ax: Axes, name: str, title: str) -> None:
    """Add a curve's title to the titles already on `ax`, unless the user set one.

    Titles of several curves stand under each other, each behind the name of its curve.
    """
    titles = _titles.setdefault(ax, [])
    before = ax.get_title()
    if before and (not titles or before != titles[-1][1]):
        return
    several = [f"{n}: {t}" if n and (titles or name != n) else t for (n, t), _ in titles]
    several.append(f"{name}: {title}" if name and titles else title)
    letters = ax.get_window_extent().width / ax.figure.figure.dpi * 72 / (0.58 * font_size())
    lines = [textwrap.fill(line, max(int(letters), 16)) for line in several]
    ax.set_title("\n".join(lines), parse_math=False)
    titles.append(((name, title), ax.get_title()))


def figure_width() -> float:
    """Return the figure width in inches of the current style, for screens that of a page."""
    return _SIZES[_STYLE.get().look].width or 6.9


def marker_scale() -> float:
    """Return how much larger markers are than on the screen, in the style in force."""
    return font_size() / _SIZES["screen"].font


def font_size() -> float:
    """Return the size of text in points, of the style in force."""
    return _SIZES[_STYLE.get().look].font


def untouched(ax: Axes) -> bool:
    """Return True if nothing has been drawn on `ax` and its limits have not been set."""
    return not ax.has_data() and ax.get_autoscalex_on() and ax.get_autoscaley_on()


def draw_iso_f(ax: Axes, beta2: float = 1.0) -> None:
    """Draw the lines of equal F over recall and precision; labels stand at the right edge.

    beta2 : the weight of recall in F, (1 + beta2) P R / (beta2 P + R)
    """
    from matplotlib.collections import LineCollection

    label: Any = {"textcoords": "offset points", "va": "center", "fontsize": "small"}
    label |= {"color": "#4C7A5B", "annotation_clip": False}
    paths = []
    for f in np.arange(1, 10) / 10:
        # Even steps of log(recall / precision) give even points where the line bends most
        whole = (1 + beta2) / f
        u = np.linspace(-np.log((whole - 1) / beta2), np.log(whole - beta2), 201)
        paths.append(np.c_[beta2 + np.exp(u), 1 + beta2 * np.exp(-u)] / whole)
        ax.annotate(f"F={f:g}", (1, 1 / (whole - beta2)), (3, 0), **label)
    # A collection, because legends are placed without regard to it
    lines = LineCollection(paths, colors="#B7D7C2", linewidths=0.7, zorder=1.1)
    ax.add_collection(lines, autolim=False)


def legend(ax: Axes, handles: Sequence[Artist]) -> None:
    """Draw a legend that hides no curve, in place of an earlier one, one entry for equal labels.

    It is inside the axes where there is room, else beside them, or below in the style "column".
    """
    from matplotlib.transforms import ScaledTranslation

    entries: dict[str, Artist] = {}
    for handle in handles:
        if (label := str(handle.get_label()))[0] != "_":
            entries.pop(label, None)  # of equal labels the last is kept
            entries[label] = handle
    figure: Any = ax.figure.figure  # also where the axes lie in a subfigure
    size = _own_sizes.get(figure)
    for old in (*(figure.legends if size else ()), ax.get_legend()):
        if old is not None:
            old.remove()
    look = _STYLE.get().look
    made = _wrapped(ax.legend(entries.values(), entries, loc="lower left"))
    place = None if look == "page" else _free_place(ax, made)
    made.remove()
    if place is not None:
        _wrapped(ax.legend(handles=entries.values(), labels=entries, loc=place))
        if size:
            figure.set_size_inches(size)
        return
    if size is None:  # room for the labels of the lines of equal F
        gap = ScaledTranslation(3.2 * font_size() / 72, 0, figure.dpi_scale_trans)
        arguments: Any = {"loc": "upper left", "frameon": False, "borderaxespad": 0}
        arguments |= {"bbox_to_anchor": (1, 1), "bbox_transform": ax.transAxes + gap}
        _wrapped(ax.legend(entries.values(), entries, **arguments), 32)
        return
    where = "outside lower left" if look == "column" else "outside right upper"
    beside: Any = {"handles": entries.values(), "labels": entries, "loc": where, "frameon": False}
    made = _wrapped(figure.legend(**beside))
    too_high = made.get_window_extent().height / (0.96 * size[1] * figure.dpi)
    if look != "column" and too_high > 1:
        made.remove()
        made = _wrapped(figure.legend(**beside, fontsize=(font_size() - 1) / too_high))
    shown = made.get_window_extent()
    width, height = shown.width / figure.dpi, shown.height / figure.dpi
    if look == "column":
        figure.set_size_inches(size[0], size[1] + height)
    elif look == "screen":  # leave the axes as much room as without a legend
        figure.set_size_inches(1.15 * size[1] + width, size[1])


def _wrapped(legend: Legend, letters: int = 0) -> Legend:
    """Wrap the texts of a legend, and read no formulas in them. Returns the legend."""
    letters = letters or _SIZES[_STYLE.get().look].letters
    for text in legend.get_texts():
        text.set(text=textwrap.fill(text.get_text(), letters, break_on_hyphens=False))
        text.set_parse_math(False)
    return legend


def _free_place(ax: Axes, legend: Legend) -> Any:
    """Return the first place inside the axes where the legend hides no line, None without one."""
    box, axes = legend.get_window_extent(), ax.get_window_extent()
    margin = 1.5 * font_size() * ax.figure.figure.dpi / 72
    wide, high = (box.width + margin) / axes.width, (box.height + margin) / axes.height
    if wide > 0.95 or high > 0.75:
        return None
    points = [np.zeros((0, 2))]
    for line in ax.lines:
        path = line.get_transform().transform_path(line.get_path())
        vertices = ax.transAxes.inverted().transform(path.vertices)
        steps = np.linspace(0, 1, 33)[:, None, None]
        points.append(vertices)
        points.append((vertices[:-1] * (1 - steps) + vertices[1:] * steps).reshape(-1, 2))
    on_lines = np.concatenate(points)
    for place, share in _PLACES.items():
        size = np.array([wide, high])
        first = np.array(share) * (1 - size)
        inside = (on_lines > first - 0.02) & (on_lines < first + size + 0.02)
        if not inside.all(axis=1).any():
            return place
    return None


def save(fig: Figure, path: str | Path | None) -> Figure:
    """Return `fig`, and if there is a path write it there as .pdf, .svg or .png.

    The file is reproducible, and has the text of `signed` as metadata. Raises DataError for another
    suffix or a folder that does not exist.
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
    """Return `fig` as a file of this kind, pdf, svg or png, see `save`."""
    metadata, field = _FILES[kind]
    shows = {field: signed[fig]} if signed.get(fig) else {}
    buffer = io.BytesIO()
    with style():
        fig.savefig(buffer, format=kind, metadata={**metadata, **shows})
    return buffer.getvalue()
