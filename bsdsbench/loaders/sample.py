"""The sample data set, made by `scripts/make_sample.py` and included in wheels and checkouts.

The sample has the layout of BSDS: images/test/ID.jpg and groundTruth/test/ID.mat with three to five
annotators. A checkout may also have results/METHOD/ID.png or .mat, which `bsdsbench run` makes.
"""

from __future__ import annotations

from pathlib import Path

from bsdsbench.errors import DataError

DETECTORS = ("canny", "sobel", "structure-tensor")


def sample_root() -> Path:
    """Return the folder of the sample, in the package or a checkout; DataError if there is none."""
    package = Path(__file__).resolve().parents[1]
    for root in (package / "_sample", package.parent / "datasets" / "sample"):
        if (root / "groundTruth").is_dir():
            return root
    raise DataError(
        f"{package / '_sample'}: no sample data, expected the folder of an installed wheel or "
        "datasets/sample of a checkout"
    )


def sample_ground_truth() -> Path:
    """Return the folder of the sample's annotations, one .mat per image."""
    return sample_root() / "groundTruth" / "test"


def sample_images() -> Path:
    """Return the folder of the sample's images."""
    return sample_root() / "images" / "test"


def sample_results(method: str) -> Path:
    """Return the folder of predictions for the sample by a method, such as "canny".

    Raises DataError unless this is a checkout in which `bsdsbench run` has made them.
    """
    folder = sample_root() / "results" / method
    if not folder.is_dir():
        raise DataError(
            f"{folder}: only a checkout has results of the sample; make them with "
            f"`bsdsbench run {method} {sample_images()} -o OUT`"
        )
    return folder
