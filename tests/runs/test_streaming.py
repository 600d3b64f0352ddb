"""Streaming against `evaluate` on the same files, bit for bit, however the images are split."""

import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

import bsdsbench as bb
from bsdsbench.errors import InputWarning, InvertedWarning
from bsdsbench.loaders.pairing import pair
from bsdsbench.loaders.readers import load_ground_truth, load_prediction
from bsdsbench.loaders.sample import sample_ground_truth, sample_results
from bsdsbench.metrics import registry
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs import streaming
from bsdsbench.runs.arrays import named_id
from bsdsbench.runs.engine import count
from tests.helpers.runs import refused


def test_an_id_may_be_text_or_an_integer_of_any_library():
    assert list(map(named_id, ("a", 3, np.int64(3), np.array(3)))) == ["a", "3", "3", "3"]


def test_equal_maps_score_one():
    evaluator = bb.StreamingEvaluator("bsds500")
    for image_id in ("a", "b"):
        evaluator.update(np.eye(20), [np.eye(20)], image_id=image_id)
    run = evaluator.compute()
    assert run.boundary_score().ods.f == 1.0
    table = run.per_image("boundary")
    assert (table.columns[1].key, table.rows[0][:2]) == ("ods", ["a", 1.0])


@pytest.mark.parametrize("channels", [2, 3, 4])
def test_one_image_of_several_channels_is_no_batch_of_its_rows(channels):
    rgb = np.repeat(np.eye(20)[:, :, None], channels, axis=2)
    refused(rf"\(20, 20, {channels}\), expected \(H, W\), or \(B, H, W\)",
            bb.StreamingEvaluator().update, rgb, rgb)  # fmt: skip
    for shape in ((8, 9, channels), (20, 1, 20, channels)):  # small maps; one annotator
        tiny = bb.StreamingEvaluator()
        tiny.update(np.ones((shape[0], *shape[-2:])), np.ones(shape))
        assert len(tiny.compute().records) == shape[0]


def test_images_without_pixels_are_refused():
    refused("ground truth of shape .0, 8", bb.StreamingEvaluator().update, *np.zeros((2, 3, 0, 8)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda soft, drawn: (soft[:, ::-1], drawn), "fits its ground truth only mirrored left"),
        (lambda soft, drawn: (soft, ~drawn), r"on which the map is darker \(gt_invert=True"),
        (lambda soft, drawn: (soft, drawn), None),
        (lambda soft, drawn: (1 - soft, drawn), None),  # `compute` says that it is inverted
        (lambda soft, drawn: (np.full_like(soft, 0.5), drawn), None),  # nothing is learnt
    ],
)
def test_a_turned_map_and_inverted_truth_are_said_of_the_first_images(change, words):
    drawn = np.zeros((80, 100), bool)
    drawn[10:60, [12, 50]] = drawn[[10, 60], 12:50] = True
    soft, truth = change(gaussian_filter(drawn.astype(float), 1), drawn)
    evaluator = bb.StreamingEvaluator()
    with pytest.warns(InputWarning, match=words) if words else warnings.catch_warnings():
        evaluator.update(soft, [truth])


def test_a_second_epoch_without_reset_is_said():
    truths = [np.eye(20), np.eye(20, k=3), np.eye(20, k=5)]
    evaluator = bb.StreamingEvaluator("bsds500")
    for truth in truths:
        evaluator.update(truth, [truth])
    evaluator.compute()
    for truth in truths[:2]:
        evaluator.update(truth, [truth])
    evaluator.compute()  # no second pass yet
    evaluator.update(truths[2], [truths[2]])
    with pytest.warns(InputWarning, match="came 2 times, in the same order: call reset"):
        evaluator.compute()


def test_inverted_maps_are_warned_of_and_empty_ones_are_not():
    truth = np.eye(20)
    evaluator = bb.StreamingEvaluator("bsds500")
    evaluator.update(np.zeros((20, 20)), [truth])
    evaluator.compute()  # as early in training
    evaluator.reset()
    for k in range(3):
        evaluator.update(1 - 0.9 * np.eye(20, k=k), [np.eye(20, k=k)])
    with pytest.warns(InvertedWarning, match=r"3 of 3 maps are darker on the ground truth"):
        evaluator.compute()


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    """Three images as arrays: (id, soft map, annotators), and what `evaluate` says of the files."""
    folder = tmp_path_factory.mktemp("split")
    pairs = pair(sample_results("structure-tensor"), sample_ground_truth())
    chosen = pairs[:3]
    split = folder / "ids.txt"
    split.write_text("\n".join(p.image_id for p in chosen))
    run = bb.evaluate(
        sample_results("structure-tensor"),
        sample_ground_truth(),
        "bsds500",
        split_file=split,
        workers=1,
        executor="thread",
    )
    images = []
    for p in chosen:
        gts = load_ground_truth(p.gt_paths).boundaries
        images.append((p.image_id, load_prediction(p.pred_paths).soft, list(gts)))
    return images, run


def counts_equal(a, b):
    """All but the fingerprints, which are of files or of arrays."""
    one, other = ([replace(r, fingerprint="") for r in run.records] for run in (a, b))
    return all(x.equals(y) for x, y in zip(one, other, strict=True))


def test_one_by_one_equals_evaluate_bit_for_bit(sample):
    images, run = sample
    ev = bb.StreamingEvaluator("bsds500")
    for name, soft, gts in reversed(images):
        ev.update(soft, gts, image_id=name)
    assert counts_equal(ev.compute(), run)
    assert ev.compute().scores() == run.scores()
    assert len(ev) == 3
    ev.reset()
    refused("no images yet", ev.compute)


def test_a_batch_of_lists_or_arrays_equals_single_images(sample):
    images, run = sample
    names = [name for name, _, _ in images]
    ev = bb.StreamingEvaluator()
    ev.update([soft for _, soft, _ in images], [g for _, _, g in images], image_id=names)
    assert counts_equal(ev.compute(), run)
    soft = np.stack([images[0][1]] * 2)[:, None]  # (2, 1, H, W)
    batch = bb.StreamingEvaluator()
    batch.update(soft, [np.stack(images[0][2]).astype(np.uint8), images[0][2]])
    for record in batch.compute().records:
        assert record.counts["boundary"].equals(run.records[0].counts["boundary"])


def test_ranks_merge_to_the_same_bits_after_pickling(sample):
    images, run = sample
    ranks = [bb.StreamingEvaluator(), bb.StreamingEvaluator()]
    for i, (name, soft, gts) in enumerate(images):
        ranks[i % 2].update(soft, gts, image_id=name)
    a, b = (pickle.loads(pickle.dumps(r)) for r in ranks)
    assert counts_equal(b.merge(a).compute(), run)
    refused("in both, expected each once$", b.merge, a)
    with pytest.raises(bb.DataError, match="protocols or metrics differ"):
        a.merge(bb.StreamingEvaluator(Protocol(thresholds=5)))


def test_threads_number_the_images_they_add_at_once(monkeypatch):
    both = Barrier(2, timeout=120)

    def at_once(*given, **keywords):
        both.wait()  # both updates have their provisional numbers
        return count(*given, **keywords)

    monkeypatch.setattr(streaming, "count", at_once)
    ev = bb.StreamingEvaluator(bb.Protocol(thresholds=2))
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(ev.update, [np.eye(9)] * 2, [[np.eye(9)]] * 2) for _ in "ab"]:
            done.result()
    assert ev.compute().image_ids == [f"image{k:06d}" for k in range(4)]


class Tensor:
    """What a torch tensor of bfloat16 on a device looks like to us."""

    def __init__(self, array, dtype="torch.bfloat16"):
        self.array, self.dtype, self.ndim = array, dtype, array.ndim

    def detach(self):
        return self

    cpu = detach

    def float(self):
        return Tensor(self.array, "torch.float32")

    def numpy(self):
        if self.dtype == "torch.bfloat16":
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self.array


def test_tensors_are_taken_as_arrays():
    soft = np.zeros((9, 14), np.float32)
    soft[4] = 0.5
    ev = bb.StreamingEvaluator(Protocol(thresholds=(0.5,), max_dist_px=1))
    ev.update(Tensor(soft), [Tensor(soft > 0)], image_id="t")
    (record,) = ev.compute().records
    assert record.counts["boundary"].matched_pred.tolist() == [14]
    (match,) = bb.assign(Tensor(soft > 0), [Tensor(soft > 0)], 1, pred_value=Tensor(soft))
    assert match.cost == 7  # 14 times 0.5


def test_a_batch_with_a_fault_adds_nothing():
    ev = bb.StreamingEvaluator(Protocol(thresholds=(0.5,)))
    soft, gt = np.zeros((5, 8)), np.eye(5, 8, dtype=bool)
    with pytest.raises(bb.DataError, match="expected"):
        ev.update([soft, soft], [[gt], [np.ones((8, 5), bool)]], image_id=["a", "b"])
    assert len(ev) == 0
    ev.update(soft, gt.astype(np.uint8) * 255, image_id="a")
    refused("a: this image is already there", ev.update, soft, gt, image_id="a")
    with pytest.raises(bb.ShapeError, match=r"ground truths: .*, expected 2"):
        ev.update([soft, soft], [[gt]])
    refused("image ids: of type set", ev.update, [soft, soft], [[gt], [gt]], image_id={"a", "b"})
    ev.update([soft, soft], [[gt], [gt]], image_id={"d": 1, "c": 0}.keys())  # which has an order
    unsized = type("Lazy", (), {"__getitem__": [[gt], [gt]].__getitem__})()  # without a length
    refused("ground truths: of type Lazy", ev.update, [soft, soft], unsized)
    refused("b: .*values 2, 3.*gt_kind=", ev.update, soft, gt + 2, image_id="b")
    refused("metrics", bb.StreamingEvaluator, metrics=("edges",))


def test_classes_need_no_file_and_logits_are_named():
    labels = np.arange(12).reshape(3, 4) % 3
    ev = bb.StreamingEvaluator(metrics="segmentation", classes=["a", "b", "c"])
    ev.update(labels, labels, image_id="x")
    assert [*ev.compute().score("segmentation").per_class] == ["a", "b", "c"]
    refused(r"expected \(H, W\), or \(B, H, W\)", ev.update, np.zeros((3, 3, 4)), labels)
    refused("boundary field .classes.: expected", bb.StreamingEvaluator, classes=["a"])
    for classes in ("cat", {"cat": 1, "none": 0}, {"none", "cat"}):  # sets have no order
        refused("expected names in a list", bb.StreamingEvaluator,
                metrics="segmentation", classes=classes)  # fmt: skip
    rows = [{"scene": "a"}, {"scene": "b"}]
    refused("groups: of type list, expected a mapping", ev.update,
            np.stack([labels] * 2), np.stack([labels] * 2), groups=rows)  # fmt: skip


def test_a_warning_points_to_the_callers_line():
    ev = bb.StreamingEvaluator("bsds500")
    empty = np.zeros((9, 9))
    for given in ((empty, [empty]), ([empty, empty], [[empty], [empty]])):
        with pytest.warns(InputWarning, match="left out") as caught:
            ev.update(*given)
        assert {warning.filename for warning in caught} == {__file__}


@pytest.mark.parametrize("one", [3, np.int64(3), np.array(3), np.uint8(3), "3"])
def test_items_and_updates_take_numbers_as_ids(one):
    maps, few = np.eye(9), bb.Protocol(thresholds=2)
    ev = bb.StreamingEvaluator(few)
    ev.update(maps, [maps], image_id=one)
    assert ev.compute().image_ids == ["3"]
    refused("3: this image is already there", ev.update, maps, [maps], image_id=3)
    assert bb.evaluate_items([(one, maps, [maps])], few, workers=1).image_ids == ["3"]
    refused("image ids: ", ev.update, [maps] * 2, [[maps]] * 2, image_id=one, error=bb.ShapeError)
    twice = [(one, maps, [maps]), ("3", maps, [maps])]
    refused("3: this image is already there", bb.evaluate_items, twice, few, workers=1)


@pytest.mark.parametrize("one", [True, 3.0, None, "", b"a", (1, 2), np.array([3, 4])])
def test_what_is_no_id_is_refused(one):
    items = [(one, np.eye(9), [np.eye(9)])]
    refused("item 1: image id .*expected text, or a whole number", bb.evaluate_items, items)


@pytest.mark.parametrize("other", [None, [], "rank 1"])
def test_only_evaluators_are_merged(other):
    refused("merge: .*expected a StreamingEvaluator", bb.StreamingEvaluator().merge, other)


@pytest.mark.parametrize("metric", ["segmentation", "contour", "instances"])
def test_an_axis_of_one_is_no_class(metric):
    """A batch of one, (1, H, W), has labels, masks of any form, or numbers of objects."""
    names = {} if metric == "instances" else {"classes": ["a", "b", "c"]}
    labels = np.kron([[0, 1, 2], [2, 0, 1]], np.ones((6, 6), np.int64))
    pairs = [(np.roll(labels, 1, 1), labels, names)]
    if names:
        gray = np.tile(np.arange(0, 216, 12, dtype=np.uint8), (12, 1))  # a mask that was resized
        pairs += [(gray, labels > 0, {}), (labels > 1.0, gray, {})]

    def scores(pred, gt, names):
        return bb.evaluate_items([(0, pred, gt)], metrics=metric, workers=1, **names).numbers()

    for pred, gt, options in pairs:
        plain = scores(pred, gt, options)
        alone = (None, (None, None), (..., None))  # (1, H, W), (1, 1, H, W), (H, W, 1)
        for each in ((pred, gt[None]), *((pred[axes], gt[axes]) for axes in alone)):
            assert scores(*each, options) == pytest.approx(plain, nan_ok=True)
        ev = bb.StreamingEvaluator(metrics=metric, **options)
        ev.update(pred[None, None], gt[None, None])
        assert ev.compute().numbers() == pytest.approx(plain, nan_ok=True)
    as_floats = labels[None] * 1.0  # a batch of one by a loader of images
    same = scores(labels, labels, names)
    assert scores(as_floats, as_floats, names) == pytest.approx(same, nan_ok=True)
    refused("expected a label map", scores, labels, np.stack([labels] * 3), names)


def test_masks_of_any_form_in_one_call():
    mask = np.indices((12, 18))[1] > 7
    forms = [mask, mask.astype(np.uint8) * 255, mask * 1.0, np.where(mask, 0.9, 0.1)]
    items = [(k, np.roll(form, 1, 1), forms[k - 1]) for k, form in enumerate(forms)]
    plain = [(k, np.roll(mask, 1, 1), mask) for k in range(4)]
    runs = [bb.evaluate_items(given, metrics="contour", workers=1) for given in (items, plain)]
    assert runs[0].numbers() == runs[1].numbers()
    items[0] = 0, mask.astype(np.uint8), mask  # 1 is white, or hardly gray
    refused("0: its prediction has values up to 1", bb.evaluate_items, items, metrics="contour")


def test_images_that_two_ranks_number_alike_are_not_merged():
    ranks = [bb.StreamingEvaluator(Protocol(thresholds=(0.5,), max_dist_px=1)) for _ in range(2)]
    for rank in ranks:
        rank.update(np.eye(9), np.eye(9) > 0)
    refused("'image000000' is in both, .*give update the image_id", ranks[0].merge, ranks[1])


def test_one_hot_channels_are_no_batch():
    labels = np.kron([[0, 1, 2], [2, 0, 1]], np.ones((6, 6), np.int64))
    channels = np.stack([labels == k for k in range(3)])
    for metric in ("segmentation", "pixel"):
        ev = bb.StreamingEvaluator(metrics=metric)
        refused("ground truths: 3 maps that add up to one", ev.update, channels * 1.0, channels)
        ev.update(channels[:2], channels[:2])
        assert len(ev) == 2


def test_one_map_with_a_last_axis_of_one_is_one_image():
    ev = bb.StreamingEvaluator(Protocol(thresholds=(0.5,), max_dist_px=1))
    for maps in (np.eye(9)[..., None], np.eye(9)[None, ..., None]):
        ev.update(maps, maps > 0)
    assert [record.size for record in ev.compute().records] == [(9, 9)] * 2


def test_items_may_be_a_data_set_and_must_be_some():
    class DataSet:  # as of torch: without an end for `iter`
        def __len__(self):
            return 2

        def __getitem__(self, k):
            return k, np.eye(9), [np.eye(9)]

    assert bb.evaluate_items(DataSet(), workers=1).image_ids == ["0", "1"]
    refused("items: no images", bb.evaluate_items, iter(()))
    refused("items: .*expected an iterable", bb.evaluate_items, 3)


def test_region_labels_are_named_by_the_option_of_the_refusal():
    labels = np.kron([[0, 1], [2, 3]], np.ones((6, 6), np.int64))
    protocol = bb.Protocol.preset("bsds500").replace(gt_kind="labels")
    items, options = [(0, np.roll(labels, 1, 1), [labels])], {"metrics": "region"}
    refused("pred_kind='labels'", bb.evaluate_items, items, protocol, **options)
    run = bb.evaluate_items(items, protocol, pred_kind="labels", workers=1, **options)
    ev = bb.StreamingEvaluator(protocol, pred_kind="labels", **options)
    ev.update(*items[0][1:])
    counts = bb.region_counts(*items[0][1:])
    expected = registry.get("region").score(counts, protocol).covering.ods
    assert run.score("region").covering.ods == expected
    assert ev.compute().score("region").covering.ods == expected
    refused("differ", ev.merge, bb.StreamingEvaluator(protocol, **options), error=bb.DataError)


def test_a_field_of_the_protocol_is_no_keyword():
    refused(r"'max_dist'; set it in the protocol: .*replace\(max_dist=",
            bb.evaluate_items, [], max_dist=0.02, error=TypeError)  # fmt: skip


def test_items_take_names_of_classes():
    truth = np.indices((9, 9)).sum(0) % 2
    run = bb.evaluate_items([(0, truth, truth)], metrics="segmentation", classes=["no", "yes"])
    assert run.flat(per_class=True)["segmentation/yes/iou"] == 1
    refused("classes", bb.evaluate_items, [(0, truth, truth)], metrics="segmentation", classes="no")
