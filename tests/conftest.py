"""Kernels as they are now, and where the data are that may not be in the project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

KERNELS = Path(__file__).parents[1] / "bsdsbench" / "kernels"


def pytest_configure() -> None:
    """Forget compiled kernels older than any kernel's source.

    Numba compares a compiled function with its own file only, not with those of what it calls.
    """
    changed = max(source.stat().st_mtime for source in KERNELS.glob("*.py"))
    for index in KERNELS.glob("__pycache__/*.nbi"):
        if index.stat().st_mtime < changed:
            index.unlink(missing_ok=True)


def _folder(variable: str, what: str) -> Path:
    value = os.environ.get(variable)
    if not value:
        pytest.skip(f"{variable} is not set: {what} not available")
    path = Path(value)
    if not path.is_dir():
        pytest.fail(f"{variable}={value}: no such folder")
    return path


@pytest.fixture(scope="session")
def bsds500() -> Path:
    """The BSDS500 data: images/, groundTruth/, ucm2/ with a val folder in each."""
    return _folder("BSDSBENCH_BSDS500", "BSDS500 val images")


@pytest.fixture(scope="session")
def bsds500_bench() -> Path:
    """The official five-image self-test with its result tables test_1 .. test_5."""
    return _folder("BSDSBENCH_BSDS500_BENCH", "the official self-test")


@pytest.fixture
def tiny(tmp_path: Path) -> tuple[Path, Path]:
    """Six made images of 40 x 52 pixels with two annotators: (predictions, ground truth)."""
    from tests.making import make_set

    return make_set(tmp_path / "tiny")
