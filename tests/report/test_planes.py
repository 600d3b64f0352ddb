"""Byte planes of the viewer: unpacked here by their description, they are the matching."""

import base64
import zlib

import attrs
import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.comparison.lost_scores import with_errors
from bsdsbench.images import GroundTruth, Prediction
from bsdsbench.kernels.matching.matching import match_maps
from bsdsbench.loaders.sample import sample_ground_truth, sample_results
from bsdsbench.metrics.boundary import rebuild_maps, threshold_changes, truth_maps
from bsdsbench.metrics.error_classes import pixel_classes
from bsdsbench.report.overlays import pixel_steps
from bsdsbench.report.pictures import ImagePictures, _pack_steps
from bsdsbench.runs.sources import find_sources


def unpack(drawn):
    """uint8 (T, H, W), by `_pack_steps` and the docstring of `OverlaySteps`."""
    width, height = drawn["size"]
    plain = np.frombuffer(zlib.decompress(base64.b64decode(drawn["planes"])), np.uint8).astype(int)
    pixels, n = width * height, drawn["n"]
    counts = plain[:pixels] + 256 * plain[pixels : 2 * pixels]
    steps = plain[2 * pixels : 2 * pixels + n] + 256 * plain[2 * pixels + n : 2 * (pixels + n)]
    states = plain[2 * (pixels + n) :]
    assert counts.sum() == n == states.size
    out = np.zeros((len(drawn["thresholds"]), pixels), np.uint8)
    change = 0
    for pixel, count in enumerate(counts):
        for _ in range(count):
            out[steps[change] :, pixel] = states[change]
            change += 1
    return out.reshape(-1, height, width)


def matched_classes(pred, gts, protocol, threshold):
    """What each pixel is by the matching at one threshold: matched 1, false 2, missed 3."""
    pred, gt_maps = Prediction.of(pred), truth_maps(GroundTruth.of(gts), protocol)
    shape = gt_maps.shape[1:]
    thresholds, changes, _ = threshold_changes(pred, shape, protocol)
    bmap = rebuild_maps(changes, shape)[np.flatnonzero(thresholds == threshold)[0]]
    matched, missed = np.zeros(shape, bool), np.zeros(shape, bool)
    for annotator, gt in enumerate(gt_maps):
        pred_at, gt_at = match_maps(bmap, gt, protocol.radius(shape), annotator)
        matched.flat[pred_at] = True
        missed.flat[np.setdiff1d(np.flatnonzero(gt), gt_at)] = True
    return np.select([matched, bmap, missed], [1, 2, 3])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    where = sample_results("canny"), sample_ground_truth()
    three = tmp_path_factory.mktemp("three") / "ids"
    three.write_text("fruit1\nherd2\nlake1")
    protocol = bb.Protocol("bsds500").replace(thresholds=17)
    return bb.evaluate(*where, protocol, split_file=three, workers=1)


@pytest.mark.slow
@pytest.mark.parametrize("errors", [False, True])
def test_every_threshold_is_the_matching_at_it(run, errors):
    used = with_errors(run, workers=1) if errors else run
    sources, record = find_sources(used), used.records[2]
    pred, gt = sources.load(record.image_id, used.protocol)
    steps, counts = pixel_steps(pred, gt, used), record.counts["boundary"]
    drawn = _pack_steps(steps)
    planes = unpack(drawn)
    assert drawn["thresholds"] == pytest.approx(counts.thresholds, rel=1e-5)
    assert drawn["classes"] == errors
    np.testing.assert_array_equal(steps.matches, counts["matches"])
    for k, threshold in enumerate(counts.thresholds):
        np.testing.assert_array_equal(planes[k], steps.at(k))
        plain = np.select([planes[k] > 6, planes[k] > 3], [2, 3], planes[k].astype(int))
        expected = matched_classes(pred, gt, used.protocol, threshold)
        np.testing.assert_array_equal(plain, expected, str(threshold))
        if errors:
            false = np.bincount(planes[k].ravel(), minlength=10)[7:10]
            assert false.tolist() == counts["false"][k].tolist()
    assert drawn["matchedGt"] == counts.matched_gt.tolist()
    assert drawn["totalGt"] == counts.total_gt[0]


@pytest.mark.parametrize(
    "changes",
    [
        {"thin": False},
        {"thresholds": (0.0, 0.2, 0.5, 0.9)},
        {"clean": True},
        {"thresholds": 300},
        {"invert": True},
    ],
)
def test_protocols_of_all_kinds(changes):
    rng = np.random.default_rng(5)
    protocol = bb.Protocol(max_dist_px=2.0, **{"thresholds": 9, **changes})
    soft = np.round(rng.random((20, 27)) ** 2, 2)
    gts = [rng.random((20, 27)) < share for share in (0.1, 0.05, 0)]
    run = bb.evaluate_items([("a", soft, gts)], protocol, workers=1)
    counts, truth = run.records[0].counts["boundary"], bb.GroundTruth("a", boundaries=tuple(gts))
    drawn = _pack_steps(pixel_steps(bb.Prediction("a", soft=soft), truth, run))
    planes, n = unpack(drawn), len(drawn["thresholds"])
    assert n == counts.thresholds.size - protocol.whole_image
    for k in range(0, n, 4):
        expected = matched_classes(soft, gts, protocol, counts.thresholds[-n:][k])
        np.testing.assert_array_equal(planes[k], expected)
    assert drawn["matchedGt"] == counts.matched_gt[-n:].tolist()


def test_segmentations_that_do_not_nest():
    rng = np.random.default_rng(1)
    segs = tuple(rng.integers(0, 3, (12, 15)) for _ in range(4))
    pred, gts = bb.Prediction("a", segs=segs), [rng.random((12, 15)) < 0.2]
    protocol = bb.Protocol(max_dist_px=1.5)
    steps = pixel_classes(pred, gts, protocol, errors=False)["steps"]
    for k, threshold in enumerate(steps.thresholds):
        expected = matched_classes(pred, gts, protocol, threshold)
        np.testing.assert_array_equal(steps.at(k), expected)


def test_other_files_than_those_of_the_run_are_named(run):
    sources = find_sources(run)
    first, second = run.image_ids[:2]
    items = {**sources.items, first: sources.items[second]}
    other = attrs.evolve(sources, items=items)
    drawn, faults = ImagePictures([run], {run.name: other}, full=False)(first)
    assert drawn["runs"] == {}
    ((_, error),) = faults
    assert str(error).startswith(f"{first}: ")
    assert "other counts than those of" in str(error)
