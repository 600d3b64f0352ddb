"""The notebooks of docs/ run from top to bottom, and show what a reader should see.

A small runner in place of a Jupyter kernel: each cell is executed, and the value of its last
expression is shown as a notebook would, by `_repr_html_` or `repr`.
"""

import ast
import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[1] / "docs"


def executed(path):
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


@pytest.mark.slow
def test_results_notebook(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    run, line, comparison, difference, images, legend = executed(DOCS / "results.ipynb")
    assert "<caption>Boundaries</caption>" in run[1]
    assert "scharr" in run[1]
    assert line[0].startswith("<Evaluation 'scharr', 16 images: boundary ODS 0.6")
    assert line[0].count("\n") == 1
    assert comparison[1].count("<table") == 3
    value, low, high, p = difference[2]
    assert low < value < high
    assert 0 < p <= 1
    assert [f for _, f in images[2]] == sorted(f for _, f in images[2])
    curves = [x for x in legend[2].axes.lines if not x.get_label().startswith("_")]
    assert len({x.get_color() for x in curves}) == 2
