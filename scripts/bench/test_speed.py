"""Speed, by pytest-benchmark: `just bench`, later `just bench --benchmark-compare`; -k WORD: some.

What others compute too is timed by peers.py, whole commands by commands.py.

Images are every tenth of BSDS500 val where BSDSBENCH_BSDS500 names it, else one of the sample.
"""

import os
from pathlib import Path

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter, label, zoom

import bsdsbench as bb
from bsdsbench.integrations.baselines import baseline
from bsdsbench.loaders.photos import read_photo
from bsdsbench.loaders.sample import sample_ground_truth, sample_images
from bsdsbench.metrics import registry

BSDS500 = os.environ.get("BSDSBENCH_BSDS500")
BSDS = bb.Protocol.preset("bsds500")
CLASSES = {"classes": [f"class {k}" for k in range(19)], "first": 0}


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


@pytest.mark.parametrize("function", [bb.nms, bb.thin, bb.pixel_counts])
def test_one_map(benchmark, images, function):
    soft, gts = images[0]
    given = {bb.thin: [soft > 0.3], bb.pixel_counts: [soft, list(gts)]}
    timed(benchmark, function, *given.get(function, [soft]))


def test_regions(benchmark):
    segs = bb.load_ground_truth(sample_ground_truth() / "town1.mat").segmentations
    timed(benchmark, bb.region_counts, segs, segs)


def regions(shape, n):
    """n large regions, and the same moved by 3 pixels."""
    fields = np.random.default_rng(0).random((n, shape[0] // 8, shape[1] // 8))
    fields = gaussian_filter(fields, (0, 4, 4))
    labels = zoom(fields, (1, 8, 8), order=1).argmax(axis=0).astype(np.uint8)
    return np.roll(labels, 3, axis=0), labels


def counted(metric, pred, gt, protocol):
    bb.StreamingEvaluator(protocol, metrics=metric).update(pred, gt, image_id="a")


@pytest.mark.parametrize("metric", ["contour", "segmentation"])
@pytest.mark.parametrize("shape", [(512, 512), (1024, 2048)])
def test_label_maps(benchmark, metric, shape):
    pred, gt = regions(shape, 19)
    protocol = bb.Protocol.preset("masks").replace(options={metric: CLASSES})
    timed(benchmark, counted, metric, bb.Prediction("a", classes=pred), gt, protocol)


@pytest.mark.parametrize("metric", ["topology", "ccq", "instances", "calibration"])
def test_structures(benchmark, metric):
    """512 x 512: a network of lines, some 200 objects, a soft map."""
    field = gaussian_filter(np.random.default_rng(0).standard_normal((512, 512)), 4)
    lines, objects = np.abs(field) < 0.3 * field.std(), label(field > 0.2 * field.std())[0]
    pred, gt = {
        "instances": ({"classes": np.roll(objects, 2, 1)}, {"labels": objects}),
        "calibration": ({"soft": unit(field)}, {"boundaries": (field > 0,)}),
    }.get(metric, ({"soft": np.roll(lines, 2, 0)}, {"mask": lines}))
    protocol = bb.Protocol.preset("calibration" if metric == "calibration" else "masks")
    given = bb.Prediction("a", **pred), bb.GroundTruth("a", **gt), protocol
    found = registry.get(metric)
    timed(benchmark, found.count, *given, found.options_of(protocol))


@pytest.mark.parametrize("measure", ["si", "matte", "dbe", "edges"])
def test_depth(benchmark, measure):
    rng = np.random.default_rng(0)
    gt = 1 + 9 * np.kron(rng.random((12, 16)), np.ones((40, 40)))
    pred = gaussian_filter(gt, 1.0) * (1 + 0.01 * rng.random(gt.shape))
    edges = np.abs(np.diff(gt, axis=1, append=gt[:, -1:])) > 0
    truth = bb.GroundTruth("a", (edges,), depth=gt, mask=gt > 5)
    protocol = bb.Protocol.preset("depth").replace(options={"depth": {"measures": [measure]}})
    timed(benchmark, counted, "depth", bb.Prediction("a", depth=pred), truth, protocol)
