"""The notebooks of docs/ run from top to bottom, and show what a reader should see.

A small runner in place of a Jupyter kernel: each cell is executed, and the value of its last
expression is shown as a notebook would, by `_repr_html_` or `repr`.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[1] / "docs"


def executed(path: Path) -> list[tuple[str, str, Any]]:
    """For each code cell: what it printed, what it showed, and the value shown."""
    names: dict[str, Any] = {"__name__": "__main__"}
    out = []
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        printed, value = io.StringIO(), None
        with contextlib.redirect_stdout(printed):
            exec(compile(tree, str(path), "exec"), names)
            if last is not None:
                value = eval(compile(ast.Expression(last.value), str(path), "eval"), names)
        html = getattr(value, "_repr_html_", None)
        shown = (html and html()) or ("" if value is None else repr(value))
        out.append((printed.getvalue(), shown, value))
    return out


@pytest.mark.parametrize("path", sorted(DOCS.glob("*.ipynb")), ids=lambda p: p.stem)
def test_a_notebook_is_stored_without_output(path):
    cells = json.loads(path.read_text("utf-8"))["cells"]
    assert all(not c["outputs"] for c in cells if c["cell_type"] == "code")


def test_results_notebook(monkeypatch):
    pandas = pytest.importorskip("pandas")
    monkeypatch.setenv("MPLBACKEND", "agg")
    run, line, comparison, differences, images, legend = executed(DOCS / "results.ipynb")
    assert "<caption>Boundaries</caption>" in run[1]
    assert "canny" in run[1]
    assert line[0].startswith("<Evaluation 'canny', 16 images: boundary ODS 0.697")
    assert line[0].count("\n") == 1
    assert comparison[1].count("<table") == 3
    assert isinstance(differences[2], pandas.DataFrame)
    assert differences[2].loc[0, "difference"] == pytest.approx(0.0777, abs=1e-4)
    assert images[2]["f"].is_monotonic_increasing
    curves = [x for x in legend[2].axes.lines if not x.get_label().startswith("_")]
    assert len({x.get_color() for x in curves}) == 2
