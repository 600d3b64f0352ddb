"""One style for every picture: colours and dashes, rc settings, axes, legends, reproducible files.

A curve's colour follows from the name of its method, a pixel's from whether it is matched; they are
the same in plots, in the report and in overlays. The report needs the colours alone, so matplotlib
is imported where a picture is drawn. Figures are made by pyplot, so that `plt.show()` and notebooks
show them, but without it if they are for a file, in other threads, or where there is no display.
"""

from __future__ import annotations

import hashlib
import io
import re
import textwrap
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from bsdsbench.errors import DataError
from bsdsbench.io import write_atomic

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours that are legible on white; then each is the one farthest from all before
# it, also as seen with deuteranopia.
PALETTE = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#3333DD",
    "#555511", "#DD00FF", "#FF5566", "#AA0088", "#6611AA", "#664444", "#558822", "#005555",
    "#AA2244", "#CC77FF", "#8A8A5C", "#7F7FB8",
)  # fmt: skip
# Lengths of dash and gap in line widths; empty: solid
DASHES: tuple[tuple[float, ...], ...] = ((), (5, 2), (1, 1.5), (5, 2, 1, 2))
_SOLID_CURVES = 7  # of a picture, before the first dashed one
GREY, HUMAN = "#7F7F7F", "#2E7D32"
# Pixels of a matching, in every overlay
PIXEL_COLORS = {"matched": "#009E73", "false": "#D55E00", "missed": "#0072B2"}
# Of false and of missed pixels by class, shades of their colours
ERROR_COLORS = {
    **{"suppressed": "#56B4E9", "near_missed": "#0072B2", "absent": "#2A2A8C"},
    **{"duplicate": "#F0B400", "near_false": "#D55E00", "background": "#8C1D04"},
}
# Chosen so that the detectors of `bsdsbench run` get different colours
_SALT = b"20761"
_MAX_INSIDE = 7  # entries of a legend inside the axes
_MAX_LETTERS = 44  # in a line of a legend


class CurveLine(NamedTuple):
    """Colour (#RRGGBB) and dashes of a curve, as in DASHES. Unpacks as color, dashes."""

    color: str
    dashes: tuple[float, ...]


class _Sizes(NamedTuple):
    width: float | None  # of the figure in inches; None: each kind of picture has its own
    font: float  # points
    line: float  # points


# For the screen, one column of a paper, or its full width with the legend beside the axes
_SIZES = {
    "screen": _Sizes(None, 9, 1.6),
    "column": _Sizes(3.3, 7.5, 1.2),
    "page": _Sizes(6.9, 8, 1.3),
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
# Name of the sizes, and whether the figure is for a file
_STYLE: ContextVar[tuple[str, bool]] = ContextVar("style", default=("screen", False))
#: A line of text on what each figure shows, which `save` writes into the metadata.
signed: WeakKeyDictionary[Figure, str] = WeakKeyDictionary()


def _next_line(name: str, taken: Sequence[str]) -> CurveLine:
    """Return the line of the next curve of a picture in which the colours `taken` are in use.

    The colour follows from the method's name, unless it is taken. If all colours are, one of the
    least used is repeated with other dashes.
    """
    word = re.sub("[-_]", " ", re.split(r", AP | \(", name)[0].casefold())
    digest = hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=4, salt=_SALT).digest()
    start = int.from_bytes(digest, "big") % len(PALETTE)
    color = min(PALETTE[start:] + PALETTE[:start], key=taken.count)
    return CurveLine(color, DASHES[len(taken) // _SOLID_CURVES % len(DASHES)])


def curve_lines(names: Sequence[str]) -> list[CurveLine]:
    """Return the line of each curve of a picture, by the names of the methods."""
    lines: list[CurveLine] = []
    for name in names:
        lines.append(_next_line(name, [line.color for line in lines]))
    return lines


@contextmanager
def style(look: str | None = None, file: bool = False) -> Iterator[None]:
    """Apply the package's rc settings, on top of matplotlib's defaults, within a `with` block.

    look : "screen", "column" or "page"; default: that of the enclosing block, or "screen"
    file : figures are for a file, and are made without pyplot, which would keep and show them
    """
    import matplotlib as mpl

    was_look, was_file = _STYLE.get()
    look = look or was_look
    if look not in _SIZES:
        raise DataError(f"style {look!r}: expected one of {', '.join(_SIZES)}")
    token = _STYLE.set((look, file or was_file))
    _, font, line = _SIZES[look]
    sizes: dict[Any, Any] = {
        "font.size": font,
        "axes.titlesize": font + 1,
        "legend.fontsize": font - 1,
        "lines.linewidth": line,
        "axes.linewidth": line / 2,
    }
    try:
        with mpl.rc_context():
            mpl.rcdefaults()
            mpl.rcParams.update({**_RC, **sizes})
            yield
    finally:
        _STYLE.reset(token)


def next_style(ax: Axes, name: str) -> dict[str, object]:
    """Return colour and line style, arguments of `Axes.plot`, for the next curve on `ax`."""
    from matplotlib.colors import to_hex

    taken = []
    for line in ax.lines:
        color = to_hex(line.get_color()).upper()
        if np.size(line.get_xdata()) > 1 and color != GREY:
            taken.append(color)
    color, dashes = _next_line(name, taken)
    return {"color": color, "linestyle": (0, dashes) if dashes else "-"}


def new_axes(height: float = 4.4, ratio: float = 1.0) -> Axes:
    """Return the axes of a new figure that is `height` inches high and `ratio` times as wide.

    The styles "column" and "page" have a fixed width instead.
    """
    look, _ = _STYLE.get()
    width, size = _SIZES[look].width, (ratio * height, height)
    if width is not None:
        size = (width, width / (1.9 if look == "page" else ratio))
    ax = _new_figure(size).add_subplot()
    if ratio == 1 and look != "page":
        ax.set_box_aspect(1)
    return ax


def new_row(n: int, height: float = 4.4) -> list[Axes]:
    """Return `n` square axes side by side in a new figure."""
    if n == 1:
        return [new_axes(height)]
    width = _SIZES[_STYLE.get()[0]].width or n * (height + 0.3)
    row = _new_figure((width, width / n - 0.05)).subplots(1, n)
    for ax in row:
        ax.set_box_aspect(1)
    return list(row)


def _new_figure(size: tuple[float, float]) -> Figure:
    """Return a figure of that size in inches: of pyplot, but for files and in threads."""
    from matplotlib.figure import Figure

    arguments: Any = {"figsize": size, "layout": "constrained"}
    if not _STYLE.get()[1] and threading.current_thread() is threading.main_thread():
        import matplotlib.pyplot as plt

        with suppress(ImportError):  # a backend with windows, but there is no display
            return plt.figure(**arguments)
    return Figure(**arguments)


def untouched(ax: Axes) -> bool:
    """Return True if nothing has been drawn on `ax` and its limits have not been set."""
    return not ax.has_data() and ax.get_autoscalex_on() and ax.get_autoscaley_on()


def draw_iso_f(ax: Axes, beta2: float = 1.0) -> None:
    """Draw the lines of equal F over recall and precision; labels stand at the right edge.

    beta2 : the weight of recall in F, (1 + beta2) P R / (beta2 P + R)
    """
    from matplotlib.collections import LineCollection

    label: Any = {"textcoords": "offset points", "va": "center", "fontsize": "x-small"}
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


def legend(ax: Axes, handles: Sequence[Any]) -> None:
    """Draw a legend where it hides least, in place of an earlier one, one entry for equal labels.

    With many entries, and in the style "page", it is beside the axes.
    """
    entries: dict[str, Any] = {}
    for handle in handles:
        if (label := handle.get_label())[0] != "_":
            entries.pop(label, None)  # of equal labels the last is kept
            entries[label] = handle
    figure: Any = ax.figure.figure  # also where the axes lie in a subfigure
    for old in (*figure.legends, ax.get_legend()):
        if old is not None:
            old.remove()
    page = _STYLE.get()[0] == "page"
    if not page and len(entries) <= _MAX_INSIDE:
        made = ax.legend(entries.values(), entries, loc="best")
    else:
        made = figure.legend(entries.values(), entries, loc="outside right upper", frameon=False)
    for text in made.get_texts():
        text.set(text=textwrap.fill(text.get_text(), _MAX_LETTERS, break_on_hyphens=False))
        text.set_parse_math(False)
    if figure.legends and not page:  # leave the axes as much room as without a legend
        width = made.get_window_extent().width / figure.dpi
        axes_width = 1.15 * figure.get_figheight() * len(figure.axes)
        figure.set_size_inches(axes_width + width, figure.get_figheight())


def save(fig: Figure, path: str | Path) -> Path:
    """Write `fig` as .pdf, .svg or .png, reproducibly and with its text of `signed` as metadata.

    Raises DataError for another suffix or a folder that does not exist.
    """
    path = Path(path)
    kind = path.suffix.lower().lstrip(".")
    if kind not in _FILES:
        raise DataError(f"{path}: suffix {path.suffix!r}, expected .pdf, .svg or .png")
    if not path.parent.is_dir():
        raise DataError(f"{path}: folder {path.parent} does not exist, expected an existing one")
    metadata, field = _FILES[kind]
    shows = {field: signed[fig]} if signed.get(fig) else {}
    buffer = io.BytesIO()
    with style():
        fig.savefig(buffer, format=kind, metadata={**metadata, **shows})
    write_atomic(path, buffer.getvalue(), durable=False)
    return path
