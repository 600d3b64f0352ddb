"""One style for every picture: colours and dashes, rc settings, axes, legends, reproducible files.

Colours are of curves by the name of their method, of pixels by what became of them; the same in
plots, in the report and in overlays. So matplotlib is imported where a picture is drawn. Figures
are made by pyplot, so that `plt.show()` and notebooks show them; those for a file, in other threads
and where there is no display without it.
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

from bsdsbench.files.bounded import write_atomic
from bsdsbench.files.errors import DataError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours that read on white, then those farthest from all before them, also for
# eyes without the green receptor.
PALETTE = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#3333DD",
    "#555511", "#DD00FF", "#FF5566", "#AA0088", "#6611AA", "#664444", "#558822", "#005555",
    "#AA2244", "#CC77FF", "#8A8A5C", "#7F7FB8",
)  # fmt: skip
# On and off in widths of the line; empty: solid.
DASHES: tuple[tuple[float, ...], ...] = ((), (5, 2), (1, 1.5), (5, 2, 1, 2))
SOLID = 7  # curves of a picture before the first dashed one
GREY, HUMAN = "#7F7F7F", "#2E7D32"
# Pixels of a matching, in every overlay.
PIXELS = {"matched": "#009E73", "false": "#D55E00", "missed": "#0072B2"}
# With it the detectors of `bsdsbench run` have colours of their own.
_SALT = b"20761"
_FEW = 7  # curves in a legend inside the axes
_LETTERS = 44  # of a line in a legend


class Look(NamedTuple):
    """Width in inches (None: as each picture likes), font in points, lines in points."""

    width: float | None
    font: float
    line: float


#: For the screen, one column of a paper, or its full width, with the legend beside the axes.
LOOKS = {"screen": Look(None, 9, 1.6), "column": Look(3.3, 7.5, 1.2), "page": Look(6.9, 8, 1.3)}
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
# The name of the look, and whether for a file.
_STYLE: ContextVar[tuple[str, bool]] = ContextVar("style", default=("screen", False))
#: What a figure shows, a line each: `save` writes it into the metadata.
signed: WeakKeyDictionary[Figure, str] = WeakKeyDictionary()


def line_of(name: str, taken: Sequence[str]) -> tuple[str, tuple[float, ...]]:
    """Colour and dashes of the next curve: by its method's name, unless the colour is taken.

    Where no colour is free, one comes again with other dashes.
    """
    word = re.sub("[-_]", " ", re.split(r", AP | \(", name)[0].casefold())
    digest = hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=4, salt=_SALT).digest()
    start = int.from_bytes(digest, "big") % len(PALETTE)
    color = min(PALETTE[start:] + PALETTE[:start], key=taken.count)
    return color, DASHES[len(taken) // SOLID % len(DASHES)]


def lines_of(names: Sequence[str]) -> list[tuple[str, tuple[float, ...]]]:
    """Colour and dashes of each curve of a picture."""
    out: list[tuple[str, tuple[float, ...]]] = []
    for name in names:
        out.append(line_of(name, [color for color, _ in out]))
    return out


@contextmanager
def style(look: str | None = None, file: bool = False) -> Iterator[None]:
    """The rc settings of every picture, from matplotlib's defaults, undone on leaving.

    look : one of `LOOKS`; default: that of the style around this one
    file : figures made meanwhile are for a file: pyplot, which would keep and show them, has none
    """
    import matplotlib as mpl

    was_look, was_file = _STYLE.get()
    look = look or was_look
    if look not in LOOKS:
        raise DataError(f"style {look!r}: expected one of {', '.join(LOOKS)}")
    token = _STYLE.set((look, file or was_file))
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


def next_style(ax: Axes, name: str) -> dict[str, Any]:
    """Colour and dash of the next curve on `ax`, no other one's there."""
    from matplotlib.colors import to_hex

    taken = []
    for line in ax.lines:
        color = to_hex(line.get_color()).upper()
        if np.size(line.get_xdata()) > 1 and color != GREY:
            taken.append(color)
    color, dashes = line_of(name, taken)
    return {"color": color, "linestyle": (0, dashes) if dashes else "-"}


def new_axes(height: float = 4.4, ratio: float = 1.0) -> Axes:
    """The axes of a new figure, `ratio` as wide as high; a page's width is filled."""
    from matplotlib.figure import Figure

    look, file = _STYLE.get()
    width, size = LOOKS[look].width, (ratio * height, height)
    if width is not None:
        size = (width, width / (1.9 if look == "page" else ratio))
    how: Any = {"figsize": size, "layout": "constrained"}
    figure = None
    if not file and threading.current_thread() is threading.main_thread():
        import matplotlib.pyplot as plt

        with suppress(ImportError):  # windows were asked for, and there is no display
            figure = plt.figure(**how)
    ax = (figure or Figure(**how)).add_subplot()
    if ratio == 1 and look != "page":
        ax.set_box_aspect(1)
    return ax


def untouched(ax: Axes) -> bool:
    """Whether nothing has been drawn on `ax` and nobody has set its limits."""
    return not ax.has_data() and ax.get_autoscalex_on() and ax.get_autoscaley_on()


def draw_iso_f(ax: Axes) -> None:
    """Draw the lines of equal F over recall and precision; labels stand at the right edge."""
    from matplotlib.collections import LineCollection

    beside: Any = {"textcoords": "offset points", "va": "center", "fontsize": "x-small"}
    beside |= {"color": "#4C7A5B", "annotation_clip": False}
    paths = []
    for f in np.arange(1, 10) / 10:
        # Even steps of log(recall / precision) are even along the line where it bends.
        u = np.linspace(-1, 1, 201) * np.log(2 / f - 1)
        paths.append(f / 2 * (1 + np.exp(np.c_[u, -u])))
        ax.annotate(f"F={f:g}", (1, f / (2 - f)), (3, 0), **beside)
    # A collection, which a legend may hide.
    lines = LineCollection(paths, colors="#B7D7C2", linewidths=0.7, zorder=1.1)
    ax.add_collection(lines, autolim=False)


def legend(ax: Axes, handles: Sequence[Any]) -> None:
    """A legend where it hides least, in the place of an earlier one; one entry for equal labels.

    Many entries, and those of a picture as wide as a page, stand beside the axes.
    """
    found: dict[str, Any] = {}
    for handle in handles:
        if (name := handle.get_label())[0] != "_":
            found.pop(name, None)  # of equal labels the last
            found[name] = handle
    figure: Any = ax.figure.figure  # also where the axes lie in a subfigure
    for old in (*figure.legends, ax.get_legend()):
        if old is not None:
            old.remove()
    page = _STYLE.get()[0] == "page"
    if not page and len(found) <= _FEW:
        made = ax.legend(found.values(), found, loc="best")
    else:
        made = figure.legend(found.values(), found, loc="outside right upper", frameon=False)
    for text in made.get_texts():
        text.set(text=textwrap.fill(text.get_text(), _LETTERS, break_on_hyphens=False))
        text.set_parse_math(False)
    if figure.legends and not page:  # room for the axes' own words too
        width = made.get_window_extent().width / figure.dpi
        figure.set_size_inches(1.15 * figure.get_figheight() + width, figure.get_figheight())


def save(fig: Figure, path: str | Path) -> Path:
    """Write `fig` as .pdf, .svg or .png, always the same bytes, with what it shows (`signed`).

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
