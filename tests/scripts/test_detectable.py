"""The tables of docs/evidence/differences.md are what the script prints, its figures plain ones."""

import sys
from pathlib import Path

import numpy as np
import pytest

from bsdsbench.runs.run_folder import load_run

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import detectable  # noqa: E402

KEYS = ["mcg", "se", "ncut", "egb"]


def page_rows(start):
    """The cells of the rows of the page that begin so."""
    text = (ROOT / "docs" / "evidence" / "differences.md").read_text("utf-8")
    found = [line for line in text.splitlines() if line.startswith(f"| {start}")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in found]


def test_the_page_has_its_rows():
    """Of four methods by a tenth of the samples, to a thousandth; ranks and null as they are."""
    methods = [detectable.scores_of(key) for key in KEYS]
    for row in detectable.by_pair(KEYS, methods, 1000):
        name, *numbers, apart = (cell.strip() for cell in row.strip("| ").split("|"))
        (printed,) = [cells for cells in page_rows("") if set(cells[0].split(", ")) == set(
            name.split(", "))]  # fmt: skip
        assert [float(c) for c in printed[1:4]] == pytest.approx([*map(float, numbers)], abs=2e-3)
        assert printed[4][:6] == apart[:6]
    assert len(page_rows("")) >= 66 + 4 + 8 + 4
    told = [cells for cells in page_rows("") if "not detectable" in cells[-1]]
    assert all(float(c[1]) >= float(c[4][:6]) for c in told)


def test_an_error_is_the_standard_deviation_of_resampled_differences():
    """By a loop over drawn images, sums and the best F on the grid."""
    runs = [load_run(f"ref:{key}") for key in ("mcg", "se")]
    tables = [
        [np.stack([getattr(r.counts["boundary"], f) for r in run.records])
         for f in detectable.FIELDS] for run in runs
    ]  # fmt: skip
    rng = np.random.default_rng(5)

    def best(table, drawn):
        hit, of, right, all_ = (values[drawn].sum(axis=0) for values in table)
        recall, precision = hit / of, right / np.maximum(all_, 1)
        return np.nanmax(2 * recall * precision / np.maximum(recall + precision, 1e-12))

    draws = [rng.integers(0, 200, 100) for _ in range(400)]
    slow = np.std([best(tables[0], d) - best(tables[1], d) for d in draws])
    methods = [detectable.scores_of(key) for key in ("mcg", "se")]
    found = detectable.errors(detectable.draws(methods, 100, 2000))
    assert found["ods"][0] == pytest.approx(slow, rel=0.15)


def test_a_rescaled_run_has_nothing_new():
    """Its rows are rows of the run: at each threshold t those of the one nearest to t^(1/g)."""
    run = load_run("ref:se")
    moved = detectable.rescaled(run, np.random.default_rng(3))
    for a, b in zip(run.records[:5], moved.records[:5], strict=True):
        rows = {tuple(row) for row in _four(a).T.tolist()}
        assert {tuple(row) for row in _four(b).T.tolist()} <= rows
        assert (_four(a) != _four(b)).any()


def _four(record):
    return np.stack([getattr(record.counts["boundary"], f) for f in detectable.FIELDS])
