"""The sample that `scripts/make_sample.py` makes: shipped in a wheel, or beside it in a checkout.

The sample is in BSDS layout: images/test/ID.jpg and groundTruth/test/ID.mat with three to five
annotators. A checkout also has results/METHOD/ID.png or .mat; `bsdsbench run` makes the maps.
"""

from __future__ import annotations

from pathlib import Path

from bsdsbench.errors import DataError

DETECTORS = ("canny", "sobel", "structure-tensor")


def sample_root() -> Path:
    """Return the folder that holds the sample's images and groundTruth.

    This is `_sample` of an installed package, or datasets/sample of a checkout. Raises DataError if
    neither is there.
    """
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
    """Return the folder of a method's output on the sample, results/METHOD of a checkout.

    Methods are DETECTORS, structure-tensor-raw and watershed-ucm. Raises DataError if there is no
    such folder. An installed wheel has none; a checkout has those that `bsdsbench run` made.
    """
    folder = sample_root() / "results" / method
    if not folder.is_dir():
        raise DataError(
            f"{folder}: only a checkout has results of the sample; make them with "
            f"`bsdsbench run {method} {sample_images()} -o OUT`"
        )
    return folder
