"""Per-class boundaries: drawing, options, files, means."""

import imageio.v3 as iio
import numpy as np
import pytest
from attrs import evolve
from scipy.io import savemat

import bsdsbench as bb
from bsdsbench.errors import DataError, PairingError
from bsdsbench.loaders.pairing import Pair
from bsdsbench.loaders.readers import read_truth
from bsdsbench.loaders.reading import Kind, ReadOptions
from bsdsbench.metrics.semantic import (
    SemanticMetric,
    SemanticOptions,
    _prepare_classes,
    class_boundaries,
)
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import MatchCounts, value_at
from tests.helpers.counting import counts_of, score_of
from tests.helpers.making import cells
from tests.helpers.runs import refused
from tests.reference import thinning

PARAMS = SemanticOptions(classes=("cat", "dog", "sheep"), first=1)
PROTO = Protocol(
    name="pets",
    thresholds=(0.25, 0.5, 0.75),
    max_dist_px=1.5,
    thin=False,
    options={"semantic": PARAMS},
)
KILLED = PROTO.replace(options={"semantic": {"interior": "kill"}})


def labels():
    """24 x 30: a cat, a dog touching it, an ignored strip, background."""
    a = np.zeros((24, 30), np.uint8)
    a[4:18, 3:12] = 1
    a[6:20, 12:22] = 2
    a[:, 27:] = 255
    return a


@pytest.mark.parametrize(
    ("pred", "protocol", "words"),
    [
        (np.zeros((2, 24, 30), np.float32), PROTO, r"expected \(3, rows, columns\)"),
        (np.zeros((3, 24, 31), np.float32), PROTO, r"\(24, 31\), expected \(24, 30\)"),
        (np.zeros((3, 24, 30), np.float32), KILLED, "expected labels"),
        (labels(), Protocol.preset("bsds500"), "semantic classes .*expected class names"),
    ],
)
def test_shapes_and_protocol_are_checked(pred, protocol, words):
    truth = bb.GroundTruth("a", class_boundaries=class_boundaries(labels(), PARAMS))
    with pytest.raises(DataError, match=words):
        counts_of("semantic", bb.Prediction("a", classes=pred), truth, protocol)


@pytest.fixture
def folders(tmp_path):
    """Ground truth as PNG labels; the prediction is right on `a` and empty on `b`."""
    gt, pred = tmp_path / "gt", tmp_path / "pred"
    gt.mkdir(), pred.mkdir()
    for name in ("a", "b"):
        iio.imwrite(gt / f"{name}.png", labels())
        drawn = class_boundaries(labels(), PARAMS) * (name == "a")
        np.save(pred / f"{name}.npy", drawn.astype(np.float32))
    return pred, gt


def evaluated(pred, gt, protocol=PROTO, **options):
    return bb.evaluate(pred, gt, protocol, metrics="semantic", workers=1, **options)


def test_folders_and_means(folders):
    run = evaluated(*folders)
    score = run.score("semantic")
    assert list(score.per_class) == ["cat", "dog"]
    assert score.absent == ("sheep",)
    # each class: half of the ground truth found, all predictions right
    assert score.per_class["cat"].ods.f == pytest.approx(2 / 3)
    assert score.ods_mean == pytest.approx(2 / 3)
    assert [r.image_id for r in run.records] == ["a", "b"]


def test_maps_that_are_no_probabilities_are_named(folders):
    np.save(folders[0] / "a.npy", 9 * np.load(folders[0] / "a.npy") - 4)
    with pytest.raises(DataError, match=r"a\.npy: soft map of class cat: values from -4.*sigmoid"):
        evaluated(*folders)


def test_every_form_on_disk_gives_the_same(folders, tmp_path):
    want = evaluated(*folders)
    per_class, as_labels, as_mat = tmp_path / "classes", tmp_path / "labels", tmp_path / "mat"
    as_labels.mkdir(), as_mat.mkdir()
    for k, name in enumerate(PARAMS.classes):
        (per_class / name).mkdir(parents=True)
        for image_id in ("a", "b"):
            array = np.load(folders[0] / f"{image_id}.npy")[k]
            iio.imwrite(per_class / name / f"{image_id}.png", (255 * array).astype(np.uint8))
    for image_id in ("a", "b"):
        iio.imwrite(as_labels / f"{image_id}.png", labels() * (image_id == "a"))
        drawn = cells(class_boundaries(labels(), PARAMS))
        struct = {"Boundaries": drawn, "Segmentation": labels(), "CategoriesPresent": [1, 2]}
        savemat(as_mat / f"{image_id}.mat", {"GTcls": struct})
    for pred, gt in ((per_class, folders[1]), (as_labels, folders[1]), (folders[0], as_mat)):
        got = evaluated(pred, gt)
        for a, b in zip(got.records, want.records, strict=True):
            assert a.counts["semantic"].equals(b.counts["semantic"])
    assert evaluated(folders[0], as_mat, KILLED).records
    (per_class / "dog" / "b.png").unlink()
    with pytest.raises(
        PairingError, match=r"several files for: b .*in folders cat, dog, sheep, or"
    ):
        evaluated(per_class, folders[1])


def test_instances_from_files(tmp_path):
    """Label maps with instance maps beside them, and SBD's cls and inst; folders of classes."""
    gt, inst, pred = tmp_path / "labels", tmp_path / "instances", tmp_path / "pred"
    gt.mkdir(), inst.mkdir()
    a = np.zeros((24, 30), np.uint8)
    a[4:18, 3:21] = 1
    instances = np.where(a > 0, 1001, 7).astype(np.uint16)
    instances[4:18, 12:21] = 1002
    iio.imwrite(gt / "a.png", a)
    iio.imwrite(inst / "a.png", instances)
    proto = PROTO.replace(
        options={"semantic": {"instances": True, "instance_from": 1000, "radius": 1}}
    )
    params = SemanticMetric().options_of(proto)
    drawn = class_boundaries(a, params, instances)
    assert drawn[0][10, 11]
    assert not class_boundaries(a, params)[0][10, 11]
    for name, edges in zip(params.classes, drawn, strict=True):
        (pred / name).mkdir(parents=True)
        iio.imwrite(pred / name / "a.png", 255 * edges.astype(np.uint8))
    run = bb.evaluate(pred, gt, proto, metrics="semantic", workers=1)
    cat = run.records[0].counts["semantic"]
    assert cat.matched_gt[0].tolist() == cat.total_gt[0].tolist() == [int(drawn[0].sum())] * 3


def test_with_a_frame_the_framed_labels_are_drawn():
    """Without instances a framed map is drawn as if it were the map; spans do not leave it."""
    params = evolve(PARAMS, radius=2, ignored_rule="span")
    whole = labels()
    framed = np.full_like(whole, 255)
    framed[4:-4, 4:-4] = whole[4:-4, 4:-4]
    drawn = class_boundaries(whole, evolve(params, border=4, border_rule="ignore"))
    assert np.array_equal(drawn, class_boundaries(framed, params))
    assert not np.array_equal(drawn, class_boundaries(whole, params))


@pytest.fixture
def sbd(tmp_path):
    """A cat of two instances; a pixel that is a boundary of the class and of no instance."""
    cls, inst = tmp_path / "cls", tmp_path / "inst"
    cls.mkdir(), inst.mkdir()
    a = np.zeros((24, 30), np.uint8)
    a[4:18, 3:21] = 1
    apart = np.where(a > 0, 1 + (np.arange(30) >= 12), 0)
    plain = class_boundaries(a, PARAMS)
    plain[0, 20, 25] = True
    outlines = [class_boundaries((apart == v).astype(np.uint8), PARAMS)[0] for v in (1, 2)]
    savemat(cls / "a.mat", {"GTcls": {"Boundaries": cells(plain), "Segmentation": a}})
    struct = {"Segmentation": apart, "Boundaries": cells(outlines), "Categories": [1, 1]}
    savemat(inst / "a.mat", {"GTinst": struct})
    pred = tmp_path / "pred"
    pred.mkdir()
    np.save(pred / "a.npy", plain.astype(np.float32))
    return pred, cls, plain, outlines, struct


def cat_pixels(pred, cls, protocol):
    run = bb.evaluate(pred, cls, protocol, metrics="semantic", workers=1)
    (total,) = set(run.records[0].counts["semantic"].total_gt[0].tolist())
    return total


def test_boundaries_of_sbd_may_be_one_per_class(sbd):
    """The refined annotations have as many Boundaries as classes, whatever Categories says."""
    _, cls, plain, outlines, struct = sbd
    struct = struct | {"Boundaries": cells([outlines[0], plain[0], 0 * plain[0]])}
    savemat(cls.parent / "inst" / "a.mat", {"GTinst": struct})
    truth = read_truth(Pair("a", (), (cls / "a.mat",)), "classes", ReadOptions(Kind.CLASSES), True)
    expected = [outlines[0], plain[0], np.zeros_like(plain[0])]
    assert np.array_equal(truth.class_boundaries, expected)


@pytest.mark.parametrize("kind", [np.float64, np.uint16])
def test_labels_of_sbd_may_be_stored_as_double(sbd, kind):
    """GTinst.Segmentation of the data set is double; a band is drawn from it."""
    pred, cls, _, _, struct = sbd
    apart = struct["Segmentation"]
    a = (apart > 0).astype(kind)
    savemat(cls / "a.mat", {"GTcls": {"Boundaries": cells([a, 0 * a, 0 * a]), "Segmentation": a}})
    savemat(
        cls.parent / "inst" / "a.mat", {"GTinst": struct | {"Segmentation": apart.astype(kind)}}
    )
    proto = PROTO.replace(options={"semantic": {"instances": True, "radius": 2}})
    drawn = class_boundaries(a.astype(int), SemanticMetric().options_of(proto), apart)
    assert cat_pixels(pred, cls, proto) == drawn[0].sum()


@pytest.mark.parametrize("categories", [[1], [1, 4], [0, 1]])
def test_instances_of_sbd_of_no_class_are_one_line(sbd, categories):
    pred, cls, _, _, struct = sbd
    savemat(cls.parent / "inst" / "a.mat", {"GTinst": struct | {"Categories": categories}})
    with pytest.raises(DataError, match=r"a\.mat: 2 Boundaries and . Categories, expected as many"):
        cat_pixels(pred, cls, PROTO.replace(options={"semantic": {"instances": True}}))


@pytest.mark.parametrize("seed", range(30))
def test_thin_ground_truth_of_sbd_by_its_definition(seed, tmp_path):
    """Random instances, also of several classes and overlapping: united, then thinned."""
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(6, 30, 2))
    count = int(rng.integers(1, 5))
    segmentation = rng.integers(0, count + 1, shape // np.array([3, 2]))
    segmentation = np.kron(segmentation, np.ones((3, 2), int))
    categories = rng.integers(1, 4, count)
    outlines = [
        class_boundaries((segmentation == v + 1).astype(np.uint8), PARAMS)[0] for v in range(count)
    ]
    of = np.append(0, categories)[segmentation]
    for folder in ("cls", "inst"):
        (tmp_path / folder).mkdir()
    drawn = {"Boundaries": cells(class_boundaries(of, PARAMS)), "Segmentation": of.astype(float)}
    savemat(tmp_path / "cls" / "a.mat", {"GTcls": drawn})
    struct = {"Boundaries": cells(outlines), "Categories": categories.astype(float)}
    struct["Segmentation"] = segmentation.astype(float)
    savemat(tmp_path / "inst" / "a.mat", {"GTinst": struct})
    proto = PROTO.replace(options={"semantic": {"instances": True, "thin_gt": True}})
    truth = read_truth(
        Pair("a", (), (tmp_path / "cls" / "a.mat",)), "classes", ReadOptions(Kind.CLASSES), True
    )
    params = SemanticMetric().options_of(proto)
    _, found, _ = _prepare_classes(np.zeros((3, *of.shape)), truth, params)
    for k in range(3):
        mine = [o for o, c in zip(outlines, categories, strict=True) if c == k + 1]
        union = np.any([np.zeros(of.shape, bool), *mine], axis=0)
        assert np.array_equal(found[k], thinning.thin(union))


def test_files_without_what_their_form_has_are_named(folders):
    pred, gt = folders
    first = sorted(pred.glob("*.npy"))[0]
    np.save(first, np.moveaxis(np.load(first), 0, -1))
    words = rf"{first.name}: shape \(.*, 3\), expected \(3, rows, columns\) \(numpy.moveaxis"
    refused(words, evaluated, pred, gt)
    savemat(gt.parent / "b.mat", {"GTcls": {"Segmentation": np.ones((4, 5))}})
    of_file = Pair("b", (), (gt.parent / "b.mat",))
    words = r"b\.mat: GTcls has Segmentation, expected Boundaries and Segmentation"
    refused(words, read_truth, of_file, "classes", ReadOptions(Kind.CLASSES))
    for array, words in (
        (np.full((2, 4, 5), 0.5), r"binary boundaries of classes .*numpy\.argmax\(array, axis=0\)"),
        (np.ones((1, 4, 5, 2)), r"shape \(1, 4, 5, 2\), expected a label map"),
    ):
        np.save(gt.parent / "c.npy", array)
        refused(
            words,
            read_truth,
            Pair("c", (), (gt.parent / "c.npy",)),
            "classes",
            ReadOptions(Kind.CLASSES),
        )


@pytest.mark.parametrize("how", ["nearest", "bicubic"])
def test_maps_of_another_size_are_resized_where_the_protocol_says_how(folders, how):
    pred, gt = folders
    for path in sorted(pred.glob("*.npy")):
        np.save(path, np.kron(np.load(path), np.ones((1, 2, 2), np.float32)))
    with pytest.raises(DataError, match=r"shape \(48, 60\), expected \(24, 30\)"):
        evaluated(pred, gt)
    found = evaluated(pred, gt, PROTO.replace(options={"semantic": {"resize": how}}))
    assert found.score("semantic").ods_mean > 0.6


def test_an_image_without_a_class_has_no_value():
    """Else the mean of the best F of those that it has: one of two."""
    metric = SemanticMetric()
    pred = bb.Prediction("a", classes=labels())
    for truth, expected in ((labels() * 0, np.nan), (labels(), 1.0)):
        truth = bb.GroundTruth("a", labels=truth)
        counts = counts_of("semantic", pred, truth, PROTO)
        stack = metric.stack([counts])
        (tree,) = metric.image_scores(stack, PROTO)
        found = [value_at(tree, key)[0] for key in ("ods_mean", "per_class.dog.ods")]
        assert found == pytest.approx([expected] * 2, nan_ok=True)


def test_images_without_a_class_may_be_skipped():
    pair = bb.Prediction("a", classes=labels()), bb.GroundTruth("a", labels=labels())
    for absent, counted in (("count", [1, 1, 1]), ("skip", [1, 1, 0])):
        protocol = PROTO.replace(options={"semantic": {"absent": absent}})
        assert counts_of("semantic", *pair, protocol).counted.tolist() == counted


def test_one_true_pixel_makes_a_class_part_of_the_mean():
    """Found (F 1), missed (F 0), and never there, where false alarms count for nothing."""
    four = [[[1], [0], [0]], [[1], [1], [0]], [[1], [0], [0]], [[1], [0], [5]]]
    counts = MatchCounts([0.5], np.moveaxis(four, 0, -1), counted=[1, 1, 1])
    score = score_of("semantic", counts, protocol=PROTO)
    assert (score.ods_mean, score.ois_mean, score.absent) == (0.5, 0.5, ("sheep",))


def test_boundaries_of_0_and_1_in_8_bits_are_refused():
    truth = bb.GroundTruth("a", class_boundaries=class_boundaries(labels(), PARAMS))
    drawn = truth.class_boundaries.astype(np.uint8)
    words = (
        r"no value above 1 of 255 in any map .*expected soft maps from 0 to 255 \(normalise=True"
    )
    refused(words, score_of_items, drawn, truth)
    assert score_of_items(255 * drawn, truth) == score_of_items(drawn > 0, truth) == 1


def score_of_items(pred, truth):
    """Return the mean ODS of one image."""
    run = bb.evaluate_items([("a", pred, truth)], PROTO, metrics="semantic", workers=1)
    return run.score("semantic").ods_mean


def test_one_label_too_many_may_be_a_background():
    labels = np.repeat(np.arange(4), 5)[None].repeat(9, axis=0)
    protocol = bb.Protocol.preset("bsds500").replace(options={"semantic": {"classes": list("abc")}})
    words = r"label 3, expected 0 \.\. 2 or .* \(semantic\.first=1 if 0 is the background"
    with pytest.raises(bb.DataError, match=words):
        bb.evaluate_items([("i", np.zeros((3, 9, 20)), labels)], protocol, "semantic", workers=1)


def test_a_run_without_any_boundary_can_be_printed():
    one_class = np.zeros((12, 16), np.uint8)
    run = bb.evaluate_items([("a", one_class, one_class)], PROTO, "semantic", workers=1)
    assert repr(run) == "<Evaluation 'items', 1 images: semantic mean ODS -, mean OIS -, mean AP ->"
    refused("no class has a ground-truth boundary", run.score, "semantic")
