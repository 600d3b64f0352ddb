"""The door to pyEdgeEval against pyEdgeEval 0.2.8: what it draws, counts and returns, cell by cell.

`.ci/peers` installs it. Its matching is an approximation, so that matched pixels are not compared;
its thinning stops too early, so that its other thinning takes the place, see the page of the door.
"""

import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.integrations.compat import CityscapesEvaluator, SBDEvaluator
from bsdsbench.integrations.compat.py_edge_eval import named_scores
from bsdsbench.metrics.boundary import boundary_score
from bsdsbench.metrics.class_maps import prepare_classes
from bsdsbench.metrics.semantic import SemanticMetric, semantic_counts
from bsdsbench.scores.counts import BoundaryCounts, ImageRecord
from tests.helpers.masks import blobs

cv2 = pytest.importorskip("cv2")
pytestmark = pytest.mark.filterwarnings("ignore")  # its own


@pytest.fixture
def thinned_to_the_end(monkeypatch):
    """Its `bwmorph_thin`, which it does not call, for its `binary_thin`."""
    thin = theirs("preprocess").bwmorph_thin
    for name in ("edge_tools.mask2edge_loop", "common.multi_label.evaluate_boundaries"):
        monkeypatch.setattr(theirs(name), "binary_thin", thin)


def theirs(name):
    """One of its modules, or a skip."""
    return pytest.importorskip(f"pyEdgeEval.{name}", exc_type=ImportError)


def label_maps(seed, labels, smallest):
    """Labels and numbers of instances, 0 where there is none; specks, strips along the border."""
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(smallest, smallest + 30, 2))
    smooth = rng.choice([0, 2, 4, 8])
    found = rng.choice(labels, 6)[blobs(rng, shape, 6, smooth)]
    if seed % 3 == 0:
        edge = int(rng.integers(1, 8))
        found[: int(rng.integers(1, 8))] = labels[-1]
        found[:, -edge:] = labels[-2]
    return found, 1 + blobs(rng, shape, 4, rng.choice([1, 3, 6]))


def evaluator(kind, tmp_path, thin, **options):
    found = kind(tmp_path, tmp_path, thin=thin)
    found.set_eval_params(**options)
    return found


@pytest.mark.parametrize("thin", [True, False])
@pytest.mark.parametrize("instances", [True, False])
@pytest.mark.parametrize("block", range(6))
def test_drawn_boundaries_of_sbd(block, instances, thin, tmp_path, thinned_to_the_end):
    tools, multi = theirs("edge_tools"), theirs("common.multi_label")
    onehot = theirs("utils").mask2onehot
    door = evaluator(SBDEvaluator, tmp_path, thin, instance_sensitive=instances)
    params = SemanticMetric().options_of(door.protocol())
    for seed in range(50 * block, 50 * block + 50):
        labels, parts = label_maps(seed, [0, 1, 2, 15, 20], 22)
        codes = np.where(labels > 0, 100 * labels + parts, 0)
        keys, numbers = np.unique(codes, return_inverse=True)
        numbers = numbers.reshape(labels.shape) + (keys[0] > 0)
        categories = keys[keys > 0] // 100
        framed = multi.add_ignore_pixel(labels.copy(), border_px=5, ignore_id=21)
        masks = onehot(framed, labels=list(range(22)))
        how = {"ignore_indices": [21], "radius": 1 if thin else 2, "thin": thin}
        if instances:
            ids = multi.convert_inst_seg(numbers, categories, np.unique(categories))
            how |= {"inst_mask": ids, "inst_labelIds": list(range(1, 21))}
        draw = tools.loop_instance_mask2edge if instances else tools.loop_mask2edge
        expected = draw(mask=masks, **how)[1:21]
        soft = np.ones((20, *labels.shape), np.uint8)
        maps, truth, _ = prepare_classes(soft, labels, params, instances=numbers)
        assert np.array_equal(truth, expected != 0), seed
        cleared = [multi.add_ignore_pixel(m.copy(), border_px=5, ignore_id=0) for m in soft]
        assert np.array_equal(maps, cleared), seed


@pytest.mark.parametrize("thin", [True, False])
@pytest.mark.parametrize("instances", [True, False])
@pytest.mark.parametrize("block", range(3))
def test_drawn_boundaries_of_cityscapes(block, instances, thin, tmp_path, thinned_to_the_end):
    """Halved by Pillow as its evaluator reads them; even sizes, as those of Cityscapes."""
    from PIL import Image

    tools, onehot = theirs("edge_tools"), theirs("utils").mask2onehot
    known = theirs("datasets.cityscapes_attributes")
    door = evaluator(CityscapesEvaluator, tmp_path, thin, instance_sensitive=instances)
    params = SemanticMetric().options_of(door.protocol())
    for seed in range(40 * block, 40 * block + 40):
        labels, parts = label_maps(seed, [0, 7, 11, 24, 26, 33, 2, 3], 34)
        h, w = (n // 2 * 2 for n in labels.shape)
        labels, parts = labels[:h, :w], parts[:h, :w]
        there = np.isin(labels, known.CITYSCAPES_inst_labelIds) & (parts > 1)
        ids = np.where(there, 1000 * labels + parts, labels).astype(np.int32)
        how = {"ignore_indices": [2, 3], "radius": 1 if thin else 2, "thin": thin}
        if instances:
            how |= {"inst_mask": ids, "inst_labelIds": known.CITYSCAPES_inst_labelIds}
        draw = tools.loop_instance_mask2edge if instances else tools.loop_mask2edge
        edges = draw(mask=onehot(labels, known.CITYSCAPES_labelIds), **how)
        half = (w // 2, h // 2)
        expected = [
            np.asarray(Image.fromarray(edges[k]).resize(half, Image.Resampling.NEAREST)) != 0
            for k in params.class_labels
        ]
        soft = np.zeros((19, *half[::-1]), np.uint8)
        _, truth, _ = prepare_classes(soft, labels, params, instances=ids)
        assert np.array_equal(truth, expected), seed


@pytest.mark.parametrize("mode", ["pre-seal", "post-seal", "no instances", None])
@pytest.mark.parametrize("thin", [True, False])
def test_counted_pixels_of_sbd(mode, thin, tmp_path, thinned_to_the_end):
    """Annotated and predicted pixels at every threshold: frame, kill, skip, thinning, tolerance."""
    multi = theirs("common.multi_label")
    options = {"eval_mode": "post-seal", "instance_sensitive": False}
    if mode != "no instances":
        options = {"eval_mode": mode, "max_dist": 0.05}
    door = evaluator(SBDEvaluator, tmp_path, thin, apply_thinning=thin, **options)
    their = theirs("evaluators").SBDEvaluator(str(tmp_path), str(tmp_path), thin=thin)
    their.set_eval_params(apply_thinning=thin, **options)
    protocol = door.protocol(5)
    assert protocol.max_dist == their.max_dist
    params = SemanticMetric().options_of(protocol)
    assert params.instances == their.instance_sensitive
    moved = 0
    for seed in range(40):
        labels, parts = label_maps(seed, [0, 1, 2, 15], 30)
        rng = np.random.default_rng(seed)
        soft = (255 * cv2.GaussianBlur(rng.random((20, *labels.shape)), (0, 0), 1)).astype(np.uint8)
        _, truth, _ = prepare_classes(soft, labels, params, instances=parts)
        found = semantic_counts(soft, labels, protocol, instances=parts)
        framed = multi.add_ignore_pixel(labels.copy(), border_px=5, ignore_id=21)
        for k, name in enumerate(params.classes):
            pred = multi.add_ignore_pixel(soft[k] / 255, border_px=5, ignore_id=0)
            _, total_gt, matched_pred, total_pred = multi.evaluate_boundaries_threshold(
                thresholds=protocol.threshold_array(),
                pred=pred,
                gt=truth[k].astype(np.uint8),
                gt_seg=framed == k + 1,
                max_dist=their.max_dist,
                apply_thinning=thin,
                kill_internal=their.kill_internal,
                skip_if_nonexistent=their.skip_if_nonexistent,
            )
            if name not in found:
                assert their.skip_if_nonexistent
                assert not total_gt.any()
                assert not total_pred.any()
                continue
            assert np.array_equal(found[name].total_gt, total_gt), (seed, name)
            assert np.array_equal(found[name].total_pred, total_pred), (seed, name)
            assert (found[name].matched_pred >= matched_pred).all()
            moved += int(matched_pred.sum())
    assert moved > 0


def test_the_keys_and_values_of_its_metrics(tmp_path):
    """Its nine numbers of the same counts, with `strict`."""
    calculate = theirs("common.multi_label").calculate_metrics
    protocol = bb.Protocol(thresholds=19, ap_rule="sbd")
    thresholds = protocol.threshold_array()
    for seed in range(300):
        rng = np.random.default_rng(seed)
        images = {}
        for k in range(int(rng.integers(1, 5))):
            total_gt = int(rng.integers(1, 400))
            total_pred = np.sort(rng.integers(0, 500, 19))[::-1] * (rng.random() < 0.9)
            matched = np.minimum((total_pred * rng.random(19)).astype(int), total_gt)
            images[str(k)] = (matched, np.full(19, total_gt), matched, total_pred)
        samples = [{"name": name, "rows": rows} for name, rows in images.items()]
        expected = calculate(lambda sample: sample["rows"], 19, samples, nproc=1)[2]
        records = [
            ImageRecord(i, (9, 9), {"boundary": BoundaryCounts(thresholds, *four)})
            for i, four in images.items()
        ]
        found = named_scores(boundary_score(records, protocol), strict=True)
        assert list(found) == list(expected)
        for key, value in expected.items():
            assert found[key] == pytest.approx(value, rel=1e-12, abs=1e-12), (seed, key)
