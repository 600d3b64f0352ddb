"""Tables and figures go through LaTeX as they are written."""

import shutil
import subprocess

import pytest

from bsdsbench.plotting import plot_runs
from bsdsbench.results.score_tables import score_tables
from bsdsbench.tables.forms import render
from tests.helpers.simulated import simulated_run

HEAD = r"\documentclass{article}\usepackage{booktabs,graphicx}\begin{document}"
NAMES = ["plain", r"a_b & 50% #1 {x} $y$ \z ~^"]


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_tables_and_figures_compile(tmp_path):
    runs = [simulated_run(name, 8, seed=k, pixel=True) for k, name in enumerate(NAMES)]
    plot_runs(runs, path=tmp_path / "pr.pdf", look="column")
    body = render(score_tables(runs), "latex")
    text = "\n".join([HEAD, body, r"\includegraphics{pr.pdf}", r"\end{document}"])
    (tmp_path / "paper.tex").write_text(text, "utf-8")
    words = [
        "pdflatex",
        "-interaction=nonstopmode",
        "-halt-on-error",
        "-no-shell-escape",
        "paper.tex",
    ]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "paper.pdf").read_bytes().startswith(b"%PDF")
