"""Where the shipped sample is: inside an installed wheel, or beside the package in a checkout.

The sample is in BSDS layout: images/test/ID.jpg, groundTruth/test/ID.mat with three to five
annotators, and results/METHOD/ID.png or .mat. `scripts/make_sample.py` makes it.
"""

from __future__ import annotations

from pathlib import Path

from bsdsbench.core.errors import DataError

DETECTORS = ("canny", "sobel", "structure-tensor")


def sample_root() -> Path:
    """The folder of images, groundTruth and results. Raises DataError if it is not there."""
    package = Path(__file__).resolve().parents[1]
    for root in (package / "_sample", package.parent / "datasets" / "sample"):
        if (root / "groundTruth").is_dir():
            return root
    raise DataError(
        f"{package / '_sample'}: no sample data, expected the folder of an installed wheel or "
        "datasets/sample of a checkout"
    )


def sample_ground_truth() -> Path:
    """The folder of the sample's annotations, one .mat per image."""
    return sample_root() / "groundTruth" / "test"


def sample_results(method: str) -> Path:
    """The folder of one method's output: one of DETECTORS, structure-tensor-raw, watershed-ucm."""
    return sample_root() / "results" / method


__all__ = ["DETECTORS", "sample_ground_truth", "sample_results", "sample_root"]
