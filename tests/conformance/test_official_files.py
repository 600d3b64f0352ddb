"""Every official table, read and written again, byte for byte."""

import os
from pathlib import Path

import pytest

from bsdsbench.loaders.official_txt import COLUMNS, format_rows, read_rows, read_run_folder

BENCH = os.environ.get("BSDSBENCH_BSDS500_BENCH")
pytestmark = pytest.mark.skipif(not BENCH, reason="BSDSBENCH_BSDS500_BENCH is not set")


@pytest.mark.parametrize("test", range(1, 6))
def test_round_trip(test):
    folder = Path(str(BENCH)) / f"test_{test}"
    tables = sorted(folder.glob("eval_*.txt"))
    assert tables
    for path in tables:
        rows = read_rows(path, COLUMNS[path.name])
        assert format_rows(rows).encode() == path.read_bytes(), path.name


def test_a_whole_folder():
    found = read_run_folder(Path(str(BENCH)) / "test_1")
    assert set(found) == {*COLUMNS, "ev1"}
    assert found["eval_bdry.txt"][0, 3] == 0.704632
    assert found["eval_bdry_thr.txt"].shape == (5, 4)
    assert found["ev1"] == {}
