"""Our side of each row of scripts/bench/peers.py can be called, also without the other packages."""

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).parents[2] / "scripts/bench/peers.py"


@pytest.mark.slow
def test_our_call_of_each_row_gives_a_number(monkeypatch):
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), "", "64"])
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.setenv(name, "1")  # the script sets them; this restores them
    names = runpy.run_path(str(SCRIPT))
    rows = names["ROWS"].strip().replace("\\\n", "").split("\n")
    assert len(rows) > 10
    for row in rows:
        what, ours = (cell.strip() for cell in row.split(" | ")[:2])
        assert np.isfinite(float(eval(ours, names))), what
