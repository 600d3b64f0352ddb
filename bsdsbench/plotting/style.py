"""One style for every picture: colours, rc settings, axes, iso-F lines, and reproducible files.

Figures are made by pyplot, so that `plt.show()` and notebooks show them; those for a file, in other
threads and where there is no display without it. `LOOKS` has the sizes: for the screen, one column
of a paper, or its full width.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bsdsbench.files.errors import DataError
from bsdsbench.files.writing import write_atomic
from bsdsbench.plotting.palette import ISO_LEVELS, iso_f_points, line_of

GREY = "#7F7F7F"
_ISO = "_iso-f"  # a label that legends leave out


@dataclass(frozen=True, slots=True)
class Look:
    """Sizes of a picture: width in inches (None: as each picture likes), font in points, lines.

    beside : the legend stands beside the axes, in a picture as wide as a page
    """

    width: float | None
    font: float
    line: float
    beside: bool = False


LOOKS = {
    "screen": Look(None, 9.0, 1.6),
    "column": Look(3.3, 7.5, 1.2),
    "page": Look(6.9, 8.0, 1.3, beside=True),
}
_LOOK: ContextVar[tuple[Look, bool]] = ContextVar("look", default=(LOOKS["screen"], False))
_FOR_FILE: ContextVar[bool] = ContextVar("for_file", default=False)
_taken: WeakKeyDictionary[Axes, list[str]] = WeakKeyDictionary()  # colours of curves
_grown: WeakKeyDictionary[Figure, tuple[float, float]] = WeakKeyDictionary()  # size before
_signed: WeakKeyDictionary[Figure, str] = WeakKeyDictionary()

_RC: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "figure.dpi": 100.0,
    "savefig.dpi": 200.0,
    "pdf.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "bsdsbench",
}
# Nothing in a saved file may depend on the clock.
_METADATA: dict[str, dict[str, Any]] = {
    "pdf": {"CreationDate": None},
    "svg": {"Date": None},
    "png": {},
}
_SIGNATURE = {"pdf": "Subject", "svg": "Description", "png": "Description"}


@contextmanager
def style(look: str | None = None, grey: bool | None = None) -> Iterator[None]:
    """The rc settings of every picture of this package, undone on leaving.

    Starts from matplotlib's defaults, so that a user's own settings do not change our files.

    look : one of `LOOKS`; default: that of the style around this one, outermost "screen"
    grey : greys and dashes that print without colour; default as for `look`
    """
    if look is not None and look not in LOOKS:
        raise DataError(f"style {look!r}: expected one of {', '.join(LOOKS)}")
    mine, was_grey = _LOOK.get()
    mine = mine if look is None else LOOKS[look]
    token = _LOOK.set((mine, was_grey if grey is None else grey))
    sizes: dict[Any, Any] = {
        "font.size": mine.font,
        "axes.titlesize": mine.font + 1,
        "legend.fontsize": mine.font - 1,
        "lines.linewidth": mine.line,
        "axes.linewidth": mine.line / 2,
    }
    try:
        with mpl.rc_context():
            mpl.rcdefaults()
            mpl.rcParams.update({**_RC, **sizes})
            yield
    finally:
        _LOOK.reset(token)


def is_grey() -> bool:
    """Whether pictures are drawn without colour now."""
    return _LOOK.get()[1]


def line_style(name: str, taken: Sequence[str] = ()) -> dict[str, Any]:
    """Colour and dash of a method's curve, as matplotlib takes them; see `palette.line_of`."""
    color, dashes = line_of(name, taken, is_grey())
    return {"color": color, "linestyle": (0, dashes) if dashes else "-"}


def next_style(ax: Axes, name: str) -> dict[str, Any]:
    """Colour and dash of the next curve on `ax`, no other one's there."""
    taken = _taken.setdefault(ax, [])
    found = line_style(name, taken)
    taken.append(found["color"])
    return found


@contextmanager
def for_file(on: bool = True) -> Iterator[None]:
    """Figures made meanwhile are for a file: pyplot, which would keep and show them, has none."""
    token = _FOR_FILE.set(on or _FOR_FILE.get())
    try:
        yield
    finally:
        _FOR_FILE.reset(token)


def _figure(width: float, height: float) -> Figure:
    """A figure that pyplot knows, where it can be shown."""
    shape: dict[str, Any] = {"figsize": (width, height), "layout": "constrained"}
    if not _FOR_FILE.get() and threading.current_thread() is threading.main_thread():
        import matplotlib.pyplot as plt

        try:
            return plt.figure(**shape)
        except ImportError:  # windows were asked for, and there is no display
            pass
    return Figure(**shape)


def new_axes(square: bool = True, size: float = 4.4) -> Axes:
    """The axes of a new figure, `size` inches high on the screen.

    square : as wide as high, except on a page, whose width is filled
    """
    look = _LOOK.get()[0]
    ratio = 1.0 if square else 1.35
    width, height = ratio * size, size
    if look.width is not None:
        width, height = look.width, look.width / (1.9 if look.beside else ratio)
    ax = _figure(width, height).add_subplot()
    if square and not look.beside:
        ax.set_box_aspect(1)
    return ax


def untouched(ax: Axes) -> bool:
    """Whether nothing has been drawn on `ax` and nobody has set its limits."""
    return not ax.has_data() and ax.get_autoscalex_on() and ax.get_autoscaley_on()


def name_axes(ax: Axes, x: str, y: str) -> None:
    """Label the axes that have no label yet."""
    if not ax.get_xlabel():
        ax.set_xlabel(x, parse_math=False)
    if not ax.get_ylabel():
        ax.set_ylabel(y, parse_math=False)


def unit_axes(ax: Axes, x: str, y: str, empty: bool = True, room: float = 0.0) -> None:
    """Axes from 0 to 1 with some room, named; those in use keep their limits and names."""
    if empty:
        ends = (-room, 1 + room)
        ax.set(xlim=ends, ylim=ends, xticks=np.arange(11) / 10, yticks=np.arange(11) / 10)
        # In a column eleven numbers would touch.
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_ticklabels([f"{k / 10:.1f}" if k % 2 == 0 else "" for k in range(11)])
    name_axes(ax, x, y)


def draw_iso_f(ax: Axes) -> None:
    """Draw the lines of equal F = 2PR/(P+R) on axes with recall in x and precision in y, once.

    Labels stand at the right edge, outside unit axes.
    """
    if any(line.get_label() == _ISO for line in ax.lines):
        return
    color, ink = ("#C8C8C8", "#6E6E6E") if is_grey() else ("#B7D7C2", "#4C7A5B")
    for f in ISO_LEVELS:
        ax.plot(*iso_f_points(f), color=color, linewidth=0.7, zorder=1.1, label=_ISO)
        ax.annotate(
            f"F={f:g}",
            (1, f / (2 - f)),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize=_LOOK.get()[0].font * 0.72,
            color=ink,
            annotation_clip=False,
        )


def place_legend(ax: Axes, handles: Sequence[Any], loc: Any = "lower left") -> None:
    """A legend at `loc` where it hides no curve; else beneath the axes, or beside them on a page.

    It takes the place of an earlier one. loc None: never inside. Names too long for the place are
    cut in the middle.
    """
    names, figure = [h.get_label() for h in handles], root_figure(ax)
    shape = _without_legend(ax, figure)
    width, height = shape
    if _LOOK.get()[0].beside:
        _shorten(_plain(figure.legend(handles, names, loc="outside right upper")), 0.55 * width)
        return
    if loc is not None and len(handles) <= 7:
        inside = {"frameon": True, "framealpha": 0.85, "edgecolor": "none"}
        legend = _plain(ax.legend(handles, names, loc=loc, **inside))
        if _width(legend) < ax.bbox.width / figure.dpi and not _hides(legend, ax):
            return
        legend.remove()
    # The axes keep their size.
    columns, width = (2, max(width, 5.0)) if width > 4 else (1, width)
    beneath: dict[str, Any] = {"handles": handles, "labels": names, "loc": "outside lower center"}
    legend = _plain(figure.legend(ncols=columns, **beneath))
    if columns > 1 and _width(legend) > width:
        legend.remove()
        columns, legend = 1, _plain(figure.legend(**beneath))
    row = 0.0165 * _LOOK.get()[0].font + 0.04
    figure.set_size_inches(width, height + 0.1 + row * -(-len(handles) // columns))
    _shorten(legend, width - 0.15 if columns == 1 else width)
    _grown[figure] = shape


def _without_legend(ax: Axes, figure: Figure) -> tuple[float, float]:
    """Remove our legend, and the room made for it; the figure's size then, in inches."""
    for legend in (*figure.legends, ax.get_legend()):
        if legend is not None:
            legend.remove()
    if figure in _grown:
        figure.set_size_inches(_grown.pop(figure))
    width, height = figure.get_size_inches()
    return float(width), float(height)


def _width(legend: Any) -> float:
    """Inches, measured without a layout, which would warn of what finds no room."""
    return float(legend.get_window_extent().width / legend.figure.dpi)


def _shorten(legend: Any, room: float) -> None:
    """Cut the middle out of the names for which a legend of one column is wider than `room`."""
    over = (_width(legend) - room) * legend.figure.dpi
    if over <= 0:
        return
    texts = legend.get_texts()
    limit = max(text.get_window_extent().width for text in texts) - over
    for text in texts:
        name, width = text.get_text(), text.get_window_extent().width
        kept = int(len(name) * min(limit / max(width, 1), 1))
        while width > limit and kept > 2:
            text.set_text(
                f"{name[: kept - kept // 2]}\N{HORIZONTAL ELLIPSIS}{name[-(kept // 2) :]}"
            )
            width, kept = text.get_window_extent().width, kept - 1


def _plain(legend: Any) -> Any:
    """The legend with its names as text: dollars in them are no formula."""
    for text in legend.get_texts():
        text.set_parse_math(False)
    return legend


def _hides(legend: Any, ax: Axes) -> bool:
    """Whether anything but a line of equal F passes under the legend."""
    _lay_out(root_figure(ax))
    box = legend.get_window_extent()
    lines = [line for line in ax.lines if line.get_label() != _ISO]
    dots = [line for line in lines if line.get_marker() not in ("", "None", None)]
    paths = [line.get_transform().transform_path(line.get_path()) for line in lines]
    bands = [b.get_transform().transform_path(p) for b in ax.collections for p in b.get_paths()]
    return (
        any(path.intersects_bbox(box, filled=False) for path in paths)
        or any(path.intersects_bbox(box, filled=True) for path in bands)
        or any(dot.get_window_extent().overlaps(box) for dot in dots)
    )


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
    """Write `fig` as .pdf, .svg or .png: the same figure gives the same bytes, whole or not at all.

    The signatures of its runs (`sign`) stand in the metadata: Subject of a PDF, Description of SVG
    and PNG.

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
    kinds = [path.suffix.lower().lstrip(".") for path in paths]
    for path, kind in zip(paths, kinds, strict=True):
        if kind not in _METADATA:
            raise DataError(f"{path}: suffix {path.suffix!r}, expected .pdf, .svg or .png")
    with style(), _laid_out(fig):
        return [_file(fig, kind) for kind in kinds]


def _file(fig: Figure, kind: str) -> bytes:
    buffer = io.BytesIO()
    signed = _signed.get(fig)
    more = {_SIGNATURE[kind]: signed} if signed else {}
    fig.savefig(buffer, format=kind, metadata={**_METADATA[kind], **more})
    return buffer.getvalue()


def _lay_out(fig: Figure) -> None:
    """Give everything its place as drawing does, without the drawing, which takes as long again."""
    engine = fig.get_layout_engine()
    if engine is not None:
        engine.execute(fig)
    for ax in fig.axes:
        ax.apply_aspect()
    fig.stale = False


@contextmanager
def _laid_out(fig: Figure) -> Iterator[None]:
    """Keep a layout that is still true: savefig makes one, and draws twice, for each file."""
    engine = fig.get_layout_engine()
    if fig.stale:
        _lay_out(fig)
    fig.set_layout_engine(None)
    try:
        yield
    finally:
        fig.set_layout_engine(engine)
        fig.stale = False  # savefig puts back what it changes


def root_figure(ax: Axes) -> Figure:
    """The figure that holds `ax`, also where it lies in a subfigure."""
    figure = ax.figure
    while not isinstance(figure, Figure):
        figure = figure.figure
    return figure
