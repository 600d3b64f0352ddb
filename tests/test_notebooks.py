"""The notebook of the site runs from top to bottom, and shows what a reader should see."""

import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
sys.path.insert(0, str(DOCS))

from making.notebook import Cell, executed  # noqa: E402


@pytest.mark.process
@pytest.mark.slow
def test_results_notebook(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    cells = [cell for cell in executed() if isinstance(cell, Cell)]
    run, line, comparison, difference, images, legend = cells
    assert "<caption>Boundaries</caption>" in run.shown
    assert "scharr" in run.shown
    assert line.printed.startswith("<Evaluation 'scharr', 16 images: boundary ODS 0.6")
    assert comparison.shown.count("<table") == 3
    value, low, high, _ = difference.value
    assert low < value < high
    assert [f for _, f in images.value] == sorted(f for _, f in images.value)
    assert len(legend.value.get_texts()) >= 2
