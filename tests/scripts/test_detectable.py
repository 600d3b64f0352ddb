"""The table of detectable differences in docs/understand is what the script prints."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import detectable  # noqa: E402


@pytest.fixture
def stored():
    if "BSDSBENCH_SPEC" not in os.environ:
        pytest.skip("BSDSBENCH_SPEC is not set: the stored counts are not available")
    return Path(os.environ["BSDSBENCH_SPEC"]).parent / "reference"


@pytest.mark.slow
def test_the_page_has_its_rows(stored):
    """By a tenth of the samples, to a thousandth."""
    page = (ROOT / "docs" / "understand" / "significance.md").read_text("utf-8").splitlines()
    for row in detectable.rows(stored, 1000):
        found = [float(cell) for cell in row.strip("| ").split("|")]
        (printed,) = [line for line in page if line.startswith(f"| {found[0]:g} |")]
        assert [float(c) for c in printed.strip("| ").split("|")] == pytest.approx(found, abs=2e-3)


@pytest.mark.slow
def test_an_error_is_the_standard_deviation_of_resampled_differences(stored):
    """By a loop over drawn images, sums and the best F on the grid."""
    one, two = (np.load(stored / f"seism-{name}.npz") for name in ("MCG", "SE"))
    rng = np.random.default_rng(5)

    def best(z, drawn):
        hit, of, right, all_ = (z[f][drawn].sum(axis=0) for f in detectable.FIELDS)
        recall, precision = hit / of, right / np.maximum(all_, 1)
        return np.nanmax(2 * recall * precision / np.maximum(recall + precision, 1e-12))

    draws = [rng.integers(0, 200, 100) for _ in range(400)]
    slow = np.std([best(one, d) - best(two, d) for d in draws])
    methods = [detectable.method(stored / f"seism-{name}.npz") for name in ("MCG", "SE")]
    assert detectable.errors(methods, 100, 2000)["ods"][0] == pytest.approx(slow, rel=0.15)
