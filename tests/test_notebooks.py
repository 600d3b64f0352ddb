"""The notebooks of the site run from top to bottom, and show what a reader should see."""

import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
sys.path.insert(0, str(DOCS))

from making import notebook  # noqa: E402
from making.notebook import CURVES, Cell, executed, figure_of, page  # noqa: E402


@pytest.mark.process
@pytest.mark.slow
def test_results_notebook(detectors_once, monkeypatch):
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


@pytest.mark.process
@pytest.mark.slow
def test_curves_notebook(monkeypatch, tmp_path):
    monkeypatch.setenv("MPLBACKEND", "agg")
    ran = list(executed(CURVES))
    cells = [cell for cell in ran if isinstance(cell, Cell)]
    said = "".join(cell.printed for cell in cells)
    for line in (
        "FPR 0.40, TPR 0.80; recall 0.80, precision 0.67",
        "roc dominates: B\npr dominates: B",
        "0.5 0.375 0.318 0.286 0.265 0.25",
        "I: ROC 0.8125, PR 0.5198\nII: ROC 0.8750, PR 0.0385",
        "AUC 0.68, EER 0.40",
        "FPR 0.275, recall 0.450",
    ):
        assert line in said
    drawn = [figure for cell in cells if (figure := figure_of(cell.value)) is not None]
    assert len(drawn) == len(cells) - 1
    monkeypatch.setattr(notebook, "executed", lambda path: iter(ran))  # once
    text = page(tmp_path, CURVES)
    assert len(list((tmp_path / "figures").glob("curves_*.svg"))) == len(drawn)
    assert text.count("![") == len(drawn)
