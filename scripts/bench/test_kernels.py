"""The kernels over time: `just bench`, then `just bench --benchmark-compare`.

What scripts/bench boundary measures in full, on one image of the sample, for pytest-benchmark.
"""

import pytest

import bsdsbench as bb
from bsdsbench.integrations.baselines import baseline
from bsdsbench.loaders.photos import read_photo
from bsdsbench.loaders.sample import sample_ground_truth, sample_images


@pytest.fixture(scope="module")
def town():
    photo = read_photo(sample_images() / "town1.jpg")
    return baseline("structure-tensor-raw")(photo), bb.load_ground_truth(
        sample_ground_truth() / "town1.mat"
    )


@pytest.mark.parametrize("count", [bb.boundary_counts, bb.pixel_counts])
def test_counts(benchmark, town, count):
    count(*town)  # compiles
    benchmark(count, *town)


def test_regions(benchmark, town):
    segs = town[1].segmentations
    bb.region_counts(segs, segs)
    benchmark(bb.region_counts, segs, segs)


def test_nms(benchmark, town):
    bb.nms(town[0])
    benchmark(bb.nms, town[0])


def test_thin(benchmark, town):
    bb.thin(town[0] > 0.3)
    benchmark(bb.thin, town[0] > 0.3)
