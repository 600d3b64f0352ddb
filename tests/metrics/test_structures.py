"""Topology, centre lines, objects and calibration against plain definitions, case by case."""

from functools import cache

import numpy as np
import pytest
from skimage.morphology import skeletonize

import bsdsbench as bb
from bsdsbench.metrics import registry
from bsdsbench.metrics.instances_metric import InstancesOptions, instance_counts
from bsdsbench.metrics.structures import betti_numbers
from tests.helpers.masks import nasty_masks, nasty_objects
from tests.reference import structures as plain

MASKS, OBJECTS = list(nasty_masks()), list(nasty_objects())


def counted(metric, pred, gt, **options):
    """Of one image."""
    found = registry.get(metric)
    protocol = bb.Protocol.preset(found.default_protocol).replace(options={metric: options})
    return found.count(pred, gt, protocol, found.options_of(protocol))


def scored(metric, pairs, **options):
    """The scores of images, and each image's own."""
    usual = bb.Protocol.preset(registry.get(metric).default_protocol)
    stream = bb.StreamingEvaluator(usual.replace(options={metric: options}), metric)
    for k, (pred, gt) in enumerate(pairs):
        stream.update(pred, gt, image_id=f"{k:04d}")
    run = stream.compute()
    return run.score(metric), [*run.image_scores(metric).values()]


def masks(pred, gt):
    return bb.Prediction("a", soft=pred), bb.GroundTruth("a", mask=gt)


@pytest.mark.slow
@pytest.mark.parametrize("connectivity", [4, 8])
@pytest.mark.parametrize(("patch", "stride"), [(0, 0), (4, 0), (5, 3)])
def test_betti_numbers_of_every_patch(connectivity, patch, stride):
    for name, pred, gt in MASKS[:: 2 if patch else 1]:
        found = counted(
            "topology", *masks(pred, gt), connectivity=connectivity, patch=patch, stride=stride
        )
        expected = plain.betti_errors(pred, gt, connectivity, patch, stride)
        if expected is None:
            assert found["patches"] == 0, name
        else:
            assert found["errors"] / found["patches"] == pytest.approx(expected, abs=1e-12), name


def test_betti_numbers_of_one_mask():
    for name, mask, _ in MASKS:
        for connectivity in (4, 8):
            b0, b1 = plain.betti(mask, connectivity)
            assert betti_numbers(mask, connectivity).tolist() == [[b0, b1, b0 - b1]], name


def test_cldice_is_that_of_its_authors_where_theirs_is_defined():
    """Shares of each skeleton inside the other mask; theirs is NaN without a skeleton."""
    score, own = scored("topology", [masks(p, g) for _, p, g in MASKS])
    expected = []
    for pred, gt in ((p, g) for _, p, g in MASKS):
        if not (pred.any() or gt.any()):
            expected.append(np.nan)
            continue
        both = (
            (p & skeletonize(g)).sum() / max(skeletonize(g).sum(), 1)
            for p, g in ((pred, gt), (gt, pred))
        )
        a, b = both
        expected.append(2 * a * b / (a + b) if a + b else 0.0)
    assert [found.get("cldice", np.nan) for found in own] == pytest.approx(expected, nan_ok=True)
    assert score.cldice == pytest.approx(np.nanmean(expected))
    assert score.over["cldice"]["images"] == (np.isfinite(expected).sum(), len(expected))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("buffer", "spacing", "lines"),
    [
        (0.0, (1, 1), "given"),
        (2.3, (1, 1), "skeleton"),
        (3.0, (0.7, 1.9), "given"),
        (40.0, (3, 1), "skeleton"),
    ],
)
def test_centre_lines(buffer, spacing, lines):
    totals = np.zeros(4)
    pairs = [masks(p, g) for _, p, g in MASKS]
    score, own = scored("ccq", pairs, buffer=buffer, spacing=spacing, lines=lines)
    for (name, pred, gt), found in zip(MASKS, own, strict=True):
        thin = [m if lines == "given" else skeletonize(m) for m in (pred, gt)]
        expected = plain.ccq(*thin, buffer, spacing)
        shown = [found.get(k, np.nan) for k in ("completeness", "correctness", "quality")]
        assert shown == pytest.approx(expected, nan_ok=True), name
        n, of = (int(m.sum()) for m in thin)
        hits = [round(share * k) if k else 0 for share, k in zip(expected, (of, n), strict=False)]
        totals += *hits, n, of
    found, right, n, of = totals
    assert score.completeness == pytest.approx(found / of)
    assert score.correctness == pytest.approx(right / n)
    assert score.quality == pytest.approx(right / (n + of - found))
    assert score.f == pytest.approx(2 / (of / found + n / right))


def test_a_soft_map_is_foreground_from_the_threshold_on():
    soft = np.array([[0, 127, 128, 255]], np.uint8)
    for at, n in ((0.5, 2), (127 / 255, 3), (1.0, 1)):
        found = counted("ccq", *masks(soft, np.ones((1, 4), bool)), threshold=at, lines="given")
        assert found["total"] == [n, 4]


def test_sorted_ap_falls_in_straight_lines_as_in_the_program_of_its_authors():
    """One pair of IoU 0.5: level 1 up to it, then down to 0 at IoU 1; no step at 0.5."""
    assert instance_counts([[1, 1, 0]], [[1, 0, 0]]).sorted_ap == 0.75


@pytest.mark.slow
def test_aggregated_jaccard_indices_and_sorted_ap():
    for name, pred, gt in OBJECTS:
        found = instance_counts(pred, gt)
        sums = list(zip(found.inside.tolist(), found.joined.tolist(), strict=True))
        assert sums[0] == plain.aji(pred, gt), name
        ways = plain.pairings(pred, gt)
        assert sums[1] in [plain.jaccard(pred, gt, way) for way in ways], name
        assert sums[2][1] == ((pred > 0) | (gt > 0)).sum(), name
        n = [len(plain.objects(m)) for m in (pred, gt)]
        table = plain.iou_table(pred, gt) if all(n) else {}
        areas = [
            plain.sorted_ap([table[at] for at in way], *n) if any(n) else np.nan for way in ways
        ]
        assert any(found.sorted_ap == pytest.approx(a, nan_ok=True) for a in areas), name


@cache
def cases_of(components):
    """Name, masks or labels, and the plain overlaps of their objects."""
    cases = []
    for name, *maps in OBJECTS[::2]:
        plainly = maps
        if components:
            maps = [m > 0 for m in maps]
            plainly = [np.zeros(m.shape, int) for m in maps]
            for mask, labels in zip(maps, plainly, strict=True):
                for n, pixels in enumerate(plain.components(mask, components), 1):
                    labels[tuple(np.transpose(list(pixels)))] = n
        cases.append((name, maps, plain.overlaps(*plainly)))
    return cases


@pytest.mark.parametrize("overlap", ["any", "iou", "one-to-one"])
@pytest.mark.parametrize("iou", [0.5, 0.0, 0.2, 0.75])
@pytest.mark.parametrize("components", [0, 4, 8])
def test_found_objects(overlap, iou, components):
    options = InstancesOptions(overlap=overlap, iou=iou, components=components)
    for name, maps, pixels in cases_of(components):
        found = instance_counts(*maps, options)
        assert found.objects.tolist() == plain.found_objects(pixels, overlap, iou), name


def test_scores_of_objects_are_means_and_pooled():
    pairs = [(bb.Prediction("a", classes=p), bb.GroundTruth("a", labels=g)) for _, p, g in OBJECTS]
    score, own = scored("instances", pairs)
    counts = [instance_counts(p, g) for _, p, g in OBJECTS]
    aji = [c.inside / c.joined for c in counts if c.joined[0]]
    assert [score.aji, score.aji_plus, score.aji_union] == pytest.approx(np.mean(aji, axis=0))
    assert score.sorted_ap == pytest.approx(np.nanmean([c.sorted_ap for c in counts]))
    inside, joined, n = (sum(c[k] for c in counts) for k in ("inside", "joined", "objects"))
    assert [*score.pooled.values()] == pytest.approx(inside / joined)
    assert [score.recall, score.precision] == pytest.approx(n[:, 0] / n[:, 1])
    assert score.f1 == pytest.approx(2 / (1 / score.recall + 1 / score.precision))
    assert score.mean_f1 == pytest.approx(np.nanmean([one["f1"] for one in own]))


@pytest.mark.slow
@pytest.mark.parametrize("closed", ["left", "right"])
def test_calibration(closed):
    """Noise, constants, values on the edges of bins, bytes; one to three annotators."""
    rng, pairs, total = np.random.default_rng(55), [], 0
    for k, (_, a, b) in enumerate(MASKS):
        soft = (rng.random(a.shape), np.where(a, 0.75, 0.25), rng.integers(0, 9, a.shape) / 8, a)[
            k % 4
        ]
        soft = np.rint(255 * soft).astype(np.uint8) if k % 3 == 0 else soft
        drawn = (b, a, a ^ b)[: 1 + k % 3]
        pairs.append((bb.Prediction("a", soft=soft), bb.GroundTruth("a", drawn)))
        p = soft / 255 if soft.dtype == np.uint8 else soft.astype(float)
        expected = plain.calibration(p, drawn, 8, closed)
        found = counted("calibration", *pairs[-1], bins=8, closed=closed)
        assert [found[n] for n in ("pixels", "marked", "value")] == pytest.approx(expected), k
        total += expected
    score, own = scored("calibration", pairs, bins=8, closed=closed)
    assert (score.ece, score.ace, score.mce) == pytest.approx(plain.calibration_errors(*total))
    assert np.nan_to_num(score.reliability.marked) * total[0] == pytest.approx(total[1])
    assert score.reliability.pixels == pytest.approx(total[0] / total[0].sum())
    assert score.mce_mean == pytest.approx(np.mean([one["mce"] for one in own]))
