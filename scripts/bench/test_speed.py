"""Speed, by pytest-benchmark: `just bench`, later `just bench --benchmark-compare`; -k WORD: some.

What others compute too is timed by peers.py, whole commands by commands.py.

Images are every tenth of BSDS500 val where BSDSBENCH_BSDS500 names it, else one of the sample.
"""

import os
from pathlib import Path

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter, zoom

import bsdsbench as bb
from bsdsbench.detectors.baselines import baseline
from bsdsbench.loaders.formats.photos import read_photo
from bsdsbench.loaders.sample import sample_ground_truth, sample_images, sample_results
from scripts import stored_numbers

BSDS500 = os.environ.get("BSDSBENCH_BSDS500")
BSDS = bb.Protocol.preset("bsds500")


@pytest.fixture(scope="module")
def images():
    """Soft maps and their annotators, (A, H, W) bool."""
    if not BSDS500:
        soft = baseline("structure-tensor-raw")(read_photo(sample_images() / "town1.jpg"))
        return [(soft, bb.load_ground_truth(sample_ground_truth() / "town1.mat").boundaries)]
    names = sorted(Path(BSDS500, "groundTruth/val").glob("*.mat"))[::10]
    ucm2 = [bb.load_prediction(Path(BSDS500, "ucm2/val", path.name)) for path in names]
    truths = [bb.load_ground_truth(path).boundaries for path in names]
    return [(pred.boundary_map(), gts) for pred, gts in zip(ucm2, truths, strict=True)]


def count(cases, protocol=BSDS):
    for soft, gts in cases:
        bb.boundary_counts(soft, list(gts), protocol)


def timed(benchmark, function, *given):
    function(*given)  # compiles
    benchmark(function, *given)


@pytest.mark.parametrize("thresholds", [9, 33, 99, 255, 999])
def test_thresholds(benchmark, images, thresholds):
    timed(benchmark, count, images, BSDS.replace(thresholds=thresholds))


@pytest.mark.parametrize("annotators", [1, 2, 3])
def test_annotators(benchmark, images, annotators):
    timed(benchmark, count, [(soft, gts[:annotators]) for soft, gts in images])


@pytest.mark.parametrize("size", [0.5, 1, 2])
def test_sizes(benchmark, images, size):
    soft, gts = images[0]
    lines = [bb.thin(zoom(gt.astype(np.uint8), size, order=0) > 0) for gt in gts]
    timed(benchmark, count, [(np.clip(zoom(soft.astype(float), size, order=1), 0, 1), lines)])


def unit(values):
    return (values - values.min()) / np.ptp(values)


@pytest.mark.parametrize("kind", ["blurred by 1", "blurred by 2", "noise", "ones", "64 x 64"])
def test_maps(benchmark, images, kind):
    soft, gts = images[0]
    if kind.startswith("blurred"):
        soft = unit(gaussian_filter(soft.astype(float), int(kind[-1])))
    elif kind == "noise":
        soft = np.random.default_rng(0).random(soft.shape)
    elif kind == "ones":
        soft = np.ones(soft.shape)
    else:
        soft, gts = soft[:64, :64], [gt[100:164, 100:164] for gt in gts[:1]]
    timed(benchmark, count, [(soft, gts)])


@pytest.mark.parametrize("method", ["structure-tensor", "structure-tensor-raw"])
def test_maps_of_the_sample(benchmark, method):
    cases = [
        (
            bb.load_prediction(path).boundary_map(),
            bb.load_ground_truth(sample_ground_truth() / f"{path.stem}.mat").boundaries,
        )
        for path in sorted(sample_results(method).iterdir())
    ]
    timed(benchmark, count, cases)


@pytest.mark.parametrize("function", [bb.nms, bb.thin, bb.pixel_counts])
def test_one_map(benchmark, images, function):
    soft, gts = images[0]
    given = {bb.thin: [soft > 0.3], bb.pixel_counts: [soft, list(gts)]}
    timed(benchmark, function, *given.get(function, [soft]))


@pytest.mark.parametrize(("radius", "weight"), [(4, 5), (8, 20), (11, 5), (11, 55)])
def test_assign(benchmark, images, radius, weight):
    """Labels for training: lines as thick as a network's, and one annotator."""
    soft, gts = images[0]
    soft = unit(gaussian_filter(soft.astype(float), 2))
    costs = {"metric": "l1", "pred_value": soft, "weight": -weight}
    timed(benchmark, lambda: bb.assign(soft > 0.1, gts[0], radius, **costs))


def test_regions(benchmark):
    segs = bb.load_ground_truth(sample_ground_truth() / "town1.mat").segmentations
    timed(benchmark, bb.region_counts, segs, segs)


@pytest.mark.parametrize(("metric", "kind", "protocol"), list(stored_numbers.made_runs()))
def test_metric(benchmark, metric, kind, protocol):
    """Six images of about 480x640, of blobs of some pixels."""
    items = list(stored_numbers.made(kind, 8))
    options = {"metrics": metric, **stored_numbers.ONE}
    timed(benchmark, lambda: bb.evaluate_items(items, protocol, **options))
