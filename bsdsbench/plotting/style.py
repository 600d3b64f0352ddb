"""One style for every picture: rc settings, axes, legends, lines of equal F, reproducible files.

Figures are made by pyplot, so that `plt.show()` and notebooks show them; those for a file, in other
threads and where there is no display without it.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from bsdsbench.files.errors import DataError
from bsdsbench.files.writing import write_atomic
from bsdsbench.plotting.palette import ISO_LEVELS, iso_f_points, line_of

GREY = "#7F7F7F"
_ISO = "_iso-f"  # a label that legends leave out
_FEW = 7  # curves in a legend inside the axes
_LETTERS = 44  # of a name in a legend


class Look(NamedTuple):
    """Width in inches (None: as each picture likes), font in points, lines in points."""

    width: float | None
    font: float
    line: float


#: For the screen, one column of a paper, or its full width, with the legend beside the axes.
LOOKS = {"screen": Look(None, 9, 1.6), "column": Look(3.3, 7.5, 1.2), "page": Look(6.9, 8, 1.3)}
_STYLE: ContextVar[tuple[str, bool]] = ContextVar("style", default=("screen", False))
_FOR_FILE: ContextVar[bool] = ContextVar("for_file", default=False)
_signed: WeakKeyDictionary[Figure, str] = WeakKeyDictionary()

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
# Kind of file -> metadata without a clock, and the field that takes signatures.
_FILES: dict[str, tuple[dict[str, Any], str]] = {
    "pdf": ({"CreationDate": None}, "Subject"),
    "svg": ({"Date": None}, "Description"),
    "png": ({}, "Description"),
}


@contextmanager
def style(look: str | None = None, grey: bool | None = None) -> Iterator[None]:
    """The rc settings of every picture, from matplotlib's defaults, undone on leaving.

    look, grey : one of `LOOKS`; greys and dashes for print; default: of the style around this one
    """
    if look is not None and look not in LOOKS:
        raise DataError(f"style {look!r}: expected one of {', '.join(LOOKS)}")
    was_look, was_grey = _STYLE.get()
    look = look or was_look
    token = _STYLE.set((look, was_grey if grey is None else grey))
    _, font, line = LOOKS[look]
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


def is_grey() -> bool:
    """Whether pictures are drawn without colour now."""
    return _STYLE.get()[1]


def next_style(ax: Axes, name: str) -> dict[str, Any]:
    """Colour and dash of the next curve on `ax`, no other one's there."""
    colors = [
        to_hex(line.get_color()).upper() for line in ax.lines if np.size(line.get_xdata()) > 1
    ]
    color, dashes = line_of(name, [c for c in colors if c != GREY], is_grey())
    return {"color": color, "linestyle": (0, dashes) if dashes else "-"}


@contextmanager
def for_file(on: bool = True) -> Iterator[None]:
    """Figures made meanwhile are for a file: pyplot, which would keep and show them, has none."""
    token = _FOR_FILE.set(on or _FOR_FILE.get())
    try:
        yield
    finally:
        _FOR_FILE.reset(token)


def new_axes(height: float = 4.4, ratio: float = 1.0) -> Axes:
    """The axes of a new figure, `ratio` as wide as high; a page's width is filled."""
    look = _STYLE.get()[0]
    width = LOOKS[look].width
    size = (ratio * height, height)
    if width is not None:
        size = (width, width / (1.9 if look == "page" else ratio))
    figure = None
    if not _FOR_FILE.get() and threading.current_thread() is threading.main_thread():
        import matplotlib.pyplot as plt

        with suppress(ImportError):  # windows were asked for, and there is no display
            figure = plt.figure(figsize=size, layout="constrained")
    ax = (figure or Figure(figsize=size, layout="constrained")).add_subplot()
    if ratio == 1 and look != "page":
        ax.set_box_aspect(1)
    return ax


def untouched(ax: Axes) -> bool:
    """Whether nothing has been drawn on `ax` and nobody has set its limits."""
    return not ax.has_data() and ax.get_autoscalex_on() and ax.get_autoscaley_on()


def name_axes(ax: Axes, x: str, y: str) -> None:
    """Label the axes that have no label yet."""
    ax.set_xlabel(ax.get_xlabel() or x, parse_math=False)
    ax.set_ylabel(ax.get_ylabel() or y, parse_math=False)


def unit_axes(ax: Axes, room: float = 0.0) -> None:
    """Axes from 0 to 1 with some room beyond."""
    ends, ticks = (-room, 1 + room), np.arange(11) / 10
    # In a column eleven numbers would touch.
    names = [f"{t:.1f}" if k % 2 == 0 else "" for k, t in enumerate(ticks)]
    ax.set(xlim=ends, ylim=ends)
    ax.set_xticks(ticks, names)
    ax.set_yticks(ticks, names)


def draw_iso_f(ax: Axes) -> None:
    """Draw the lines of equal F over recall and precision, once; labels stand at the right edge."""
    if any(found.get_label() == _ISO for found in ax.collections):
        return
    color, ink = ("#C8C8C8", "#6E6E6E") if is_grey() else ("#B7D7C2", "#4C7A5B")
    paths = [np.c_[iso_f_points(f)] for f in ISO_LEVELS]
    # A collection, which a legend may hide.
    ax.add_collection(
        LineCollection(paths, colors=color, linewidths=0.7, zorder=1.1, label=_ISO), autolim=False
    )
    size = 0.72 * mpl.rcParams["font.size"]
    for f in ISO_LEVELS:
        place: dict[str, Any] = {"xytext": (3, 0), "textcoords": "offset points", "va": "center"}
        at = (1, f / (2 - f))
        ax.annotate(f"F={f:g}", at, fontsize=size, color=ink, annotation_clip=False, **place)


def legend(ax: Axes, handles: Sequence[Any]) -> None:
    """A legend where it hides least, in the place of an earlier one; one entry for equal labels.

    Many entries, and those of a picture as wide as a page, stand beside the axes.
    """
    found = {handle.get_label(): handle for handle in reversed(handles)}
    names = [name for name in reversed(found) if not name.startswith("_")]
    shown = [found[name] for name in names]
    half = _LETTERS // 2
    short = [n if len(n) <= _LETTERS else f"{n[:half]}…{n[-half:]}" for n in names]
    figure = root_figure(ax)
    for old in (*figure.legends, ax.get_legend()):
        if old is not None:
            old.remove()
    page = _STYLE.get()[0] == "page"
    if not page and len(names) <= _FEW:
        made = ax.legend(shown, short, loc="best")
    else:
        made = figure.legend(shown, short, loc="outside right upper", frameon=False)
        if not page:
            width = made.get_window_extent().width / figure.dpi
            figure.set_size_inches(figure.get_figheight() + width, figure.get_figheight())
    for text in made.get_texts():
        text.set_parse_math(False)


def sign(
    figure: Figure,
    runs: Sequence[Any],
    names: Sequence[str] | None = None,
    more: Sequence[str] = (),
) -> None:
    """Note what a figure shows: `save` writes signatures of runs, and `more`, into its metadata."""
    shown = names or [run.name for run in runs]
    signed = [(n, getattr(run, "signature", "")) for n, run in zip(shown, runs, strict=True)]
    _signed[figure] = "\n".join([*(f"{name}: {line}" for name, line in signed if line), *more])


def save(fig: Figure, path: str | Path) -> Path:
    """Write `fig` as .pdf, .svg or .png, always the same bytes; what `sign` noted is in the
    metadata.

    Raises DataError for another suffix or a folder that does not exist.
    """
    path = Path(path)
    (data,) = pictures(fig, [path])
    if not path.parent.is_dir():
        raise DataError(f"{path}: folder {path.parent} does not exist, expected an existing one")
    write_atomic(path, data, durable=False)
    return path


def pictures(fig: Figure, paths: Sequence[Path]) -> list[bytes]:
    """The bytes that `save` writes to each of `paths`."""
    out = []
    for path in paths:
        kind = path.suffix.lower().lstrip(".")
        if kind not in _FILES:
            raise DataError(f"{path}: suffix {path.suffix!r}, expected .pdf, .svg or .png")
        metadata, field = _FILES[kind]
        signed = {field: _signed[fig]} if _signed.get(fig) else {}
        buffer = io.BytesIO()
        with style():
            fig.savefig(buffer, format=kind, metadata={**metadata, **signed})
        out.append(buffer.getvalue())
    return out


def root_figure(ax: Axes) -> Figure:
    """The figure that holds `ax`, also where it lies in a subfigure."""
    figure = ax.figure
    while not isinstance(figure, Figure):
        figure = figure.figure
    return figure
