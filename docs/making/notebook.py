"""The tutorial notebooks as pages: each cell, what it prints, shows and draws."""

from __future__ import annotations

import ast
import contextlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

TUTORIALS = Path(__file__).resolve().parents[1] / "tutorials"
NOTEBOOK, CURVES = (TUTORIALS / f"{name}.ipynb" for name in ("results", "curves"))


class Cell(NamedTuple):
    """A cell that ran: its source, what it printed, what it showed, and the value shown."""

    source: str
    printed: str
    shown: str
    value: Any


def executed(path: Path = NOTEBOOK) -> Iterator[str | Cell]:
    """The text of each Markdown cell; each code cell, run from top to bottom.

    In place of a Jupyter kernel: the value of a cell's last expression is shown as a notebook
    would, by `_repr_html_` or `repr`.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] != "code":
            yield source
            continue
        tree = ast.parse(source)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        printed, value = io.StringIO(), None
        with contextlib.redirect_stdout(printed):
            exec(compile(tree, str(path), "exec"), names)
            if last is not None:
                value = eval(compile(ast.Expression(last.value), str(path), "eval"), names)
        html = getattr(value, "_repr_html_", None)
        shown = (html and html()) or ("" if value is None else repr(value))
        yield Cell(source, printed.getvalue(), shown, value)


def figure_of(value: Any) -> Figure | None:
    """The figure of a value: of a figure itself, of a display, of an artist."""
    if isinstance(value, Figure):
        return value
    artist = getattr(value, "ax_", value)
    return getattr(getattr(artist, "axes", None), "figure", None)


def page(out: Path, path: Path = NOTEBOOK) -> str:
    """A notebook in MyST; pictures go below `out`."""
    parts = []
    for number, cell in enumerate(executed(path)):
        if isinstance(cell, str):
            parts.append(cell)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        if cell.printed:
            parts.append(f"```text\n{cell.printed.rstrip()}\n```")
        figure = figure_of(cell.value)
        if figure is not None:
            (out / "figures").mkdir(parents=True, exist_ok=True)
            name = f"figures/{path.stem}_{number}.svg"
            figure.savefig(out / name, metadata={"Date": None})
            image = f"![The picture that this cell draws]({name})"
            wide = figure.get_size_inches()[0] > 7.5  # scrolls on a phone
            parts.append(f":::{{container}} wide\n{image}\n:::" if wide else image)
        elif cell.shown.startswith("<"):
            parts.append(f"```{{raw}} html\n{cell.shown}\n```")
        elif cell.shown:
            parts.append(f"```text\n{cell.shown}\n```")
    plt.close("all")  # or the gallery takes it for a picture of its first page
    parts.append(
        f"{{download}}`Download this notebook <../tutorials/{path.name}>`. Other "
        "[tutorials](../tutorials/index.md); the [API](../reference/api.md)."
    )
    return "\n\n".join(parts) + "\n"
