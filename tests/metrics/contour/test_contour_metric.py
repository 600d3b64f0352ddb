"""From folders of label maps, masks and instance maps to scores, comparisons, gates and reports."""

import json
import re
from pathlib import Path

import imageio.v3 as iio
import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.metrics import registry
from bsdsbench.metrics.contour import ContourOptions, measure
from bsdsbench.metrics.label_maps import LabelOptions
from bsdsbench.metrics.label_metric import _read_maps
from bsdsbench.metrics.segmentation import segmentation_counts
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.results.score_tables import score_tables
from bsdsbench.tables.forms import to_text
from tests.helpers.counting import counts_of
from tests.helpers.masks import blobs
from tests.helpers.runs import refused
from tests.reference import contours as ref

CLASSES = ("sky", "tree", "house", "lake")
METRICS = ("contour", "segmentation")


def write(folder, maps):
    folder.mkdir()
    for name, labels in maps.items():
        iio.imwrite(folder / f"{name}.png", labels.astype(np.uint8))
    return folder


@pytest.fixture(scope="module")
def maps():
    """Ground truth with ignored rows and an image without the last class; two predictions."""
    rng = np.random.default_rng(0)
    gt, near, far = {}, {}, {}
    for k in range(5):
        labels = blobs(rng, (40, 56), 4, 4)
        if k == 0:
            labels[labels == 3] = 0
        near[f"im{k}"] = np.roll(labels, 1, 0)
        far[f"im{k}"] = np.roll(labels, (3, 5), (0, 1))
        marked = labels.copy()
        marked[:3] = 255
        gt[f"im{k}"] = marked
    return gt, near, far


@pytest.fixture(scope="module")
def folders(maps, tmp_path_factory):
    root = tmp_path_factory.mktemp("labels")
    gt, near, far = (write(root / n, m) for n, m in zip(("gt", "near", "far"), maps, strict=True))
    tables = "".join(f"[{metric}]\nclasses = {[*CLASSES]}\n" for metric in METRICS)
    (root / "mine.toml").write_text('base = "masks"\n' + tables, "utf-8")
    return root, gt, near, far


@pytest.fixture(scope="module")
def runs(folders):
    root, gt, near, far = folders
    protocol = bb.Protocol.load(root / "mine.toml")
    return [bb.evaluate(p, gt, protocol, metrics=METRICS, workers=1) for p in (near, far)]


def test_means_are_over_images_and_then_over_classes(runs, maps):
    gt, near, _ = maps
    score = runs[0].score("contour")
    of = {
        "biou@0_02": "biou",
        "hd95-directed": "hd%-directed",
        "nsd-area@2": "nsd-area",
        "f@3": "f",
    }
    sizes = {"nsd-area": 2, "f": 3}
    expected = {
        key: [measure(name, near[k], gt[k], sizes.get(name), classes=4, ignore=255) for k in gt]
        for key, name in of.items()
    }
    for key, rows in expected.items():
        per_class = np.nanmean(rows, axis=0)
        assert score[key] == pytest.approx(per_class.mean()), key
        found = [score.per_class[name][key] for name in CLASSES]
        assert found == pytest.approx(per_class), key
    assert score.per_class["lake"].n_images == 4
    assert [*score.pairs.values()] == [19, 0, 0]


def test_pooled_boundaries_are_those_of_all_images():
    """By class: the outlines of both images; 0 of a class that one side has, none of no side."""
    rng = np.random.default_rng(2)
    gt = [blobs(rng, (20, 30), 2, 3) for _ in range(2)]
    pred = [np.roll(a, 2, 1) for a in gt]
    gt[1][4:7, 4:9] = 2
    at = ContourOptions(classes=(*"abcd",), boundary_sizes=(1, 2), davis_bounds=(1, 3))
    evaluator = bb.StreamingEvaluator(bb.Protocol(options={"contour": at}), "contour")
    for k in range(2):
        evaluator.update(pred[k], gt[k], str(k))
    found = dict(evaluator.compute().score("contour").pooled)
    assert sorted(found) == ["biou@1", "biou@2", "dice", "f@1", "f@3", "iou"]
    shares = []
    for k in range(3):
        drawn = [np.concatenate([a.ravel() == k for a in maps]) for maps in (pred, gt)]
        shares.append(2 * np.sum(drawn[0] & drawn[1]) / np.sum(drawn))
    assert found["dice"] == pytest.approx(np.mean(shares))
    for width in (1, 2):
        shells = [
            [np.concatenate([ref.shell(a == k, width) for a in maps]) for maps in (pred, gt)]
            for k in range(3)
        ]
        expected = np.mean([ref.iou(*both) for both in shells])
        assert found[f"biou@{width}"] == pytest.approx(expected)
    for radius in (1, 3):
        values = [0.0]
        for k in range(2):
            ways = [ref.both_ways(ref.side, pred[i] == k, gt[i] == k) for i in range(2)]
            values.append(ref.f_of(*map(np.concatenate, zip(*ways, strict=True)), radius))
        assert found[f"f@{radius}"] == pytest.approx(np.mean(values))


@pytest.mark.parametrize(
    ("options", "label"),
    [
        ({"classes": ("a", "b")}, -1),
        ({"classes": ("a", "b"), "ignore": -1}, -1),
        ({"classes": ("a", "b"), "first": 1}, -1),
        ({"classes": ("a", "b"), "unit": "instance", "divisor": 1000}, -1),
        ({"unit": "instance"}, 0),
        ({}, 0),
    ],
)
def test_a_missing_prediction_is_nothing(options, label):
    """Of no class, whatever is ignored; every pixel of the truth is missed."""
    truth = bb.GroundTruth("a", labels=np.zeros((2, 3), np.uint8))
    pred = bb.Prediction("a", classes=np.zeros((1, 2, 3), bool))
    mine, true, _ = _read_maps(pred, truth, ContourOptions(**options))
    assert (mine.tolist(), true.tolist()) == ([[label] * 3] * 2, [[0] * 3] * 2)
    truth = bb.GroundTruth("a", labels=np.full((2, 3), 1001 if "divisor" in options else 1))
    table = segmentation_counts(*_read_maps(pred, truth, at := LabelOptions(**options)))
    assert table.confusion[:-1, -1].sum() == 6
    assert table.fn.sum() == (at.unit == "instance")


@pytest.mark.parametrize(
    ("pred", "gt", "options", "line"),
    [
        ([[0, 7]], [[0, 1]], {}, "p.png: label 7, expected 0 .. 1, or 255 (ignored)"),
        ([[0, 2]], [[0, 2]], {}, "p.png: label 2, expected 0 .. 1, or 255 (ignored) (first=1 if 0"),
        ([[0, 1]], [[0, 7]], {"classes": ()}, "g.png: values other than 0 and 1"),
        ([[[0.5, 0]]], [[0, 1]], {}, "p.png: values that are not whole numbers, float64"),
    ],
)
def test_a_fault_names_the_file_that_has_it(pred, gt, options, line):
    at = bb.Protocol(options={"contour": ContourOptions(**{"classes": ("a", "b"), **options})})
    mine = bb.Prediction("im", Path("p.png"), classes=np.array(pred))
    true = bb.GroundTruth("im", path=Path("g.png"), labels=np.array(gt))
    refused(f"^{re.escape(line)}", counts_of, "contour", mine, true, at)
    bare = bb.GroundTruth("im", path=Path("g.png"))
    refused(r"^g\.png: has nothing, expected labels", _read_maps, mine, bare, ContourOptions())


@pytest.mark.parametrize(
    ("pred", "gt", "causes"),
    [
        *(([[0, 1]], [[0, 1]], []), ([[0, 1, 255]], [[0, 1, 1]], ["ignored"])),
        *(([[0, 255]], [[0, 255]], []), ([[2, 3]], [[0, 1]], ["classes"])),
    ],
)
def test_what_label_maps_show_of_wrong_options(pred, gt, causes):
    maps = bb.Prediction("a", classes=np.array(pred)), bb.GroundTruth("a", labels=np.array(gt))
    at = ContourOptions(classes=CLASSES)
    assert [
        cause for cause, _, _ in registry.get("contour").symptoms(*maps, Protocol(), at)
    ] == causes


def test_interpolated_labels_are_seen_where_void_divides_the_classes():
    """A void pixel between two classes is no stripe of a label that lies between theirs."""
    truth = np.tile([0, 0, 0, 2, 2, 2], (20, 5))
    pred, valid = truth.copy(), np.ones(truth.shape, bool)
    pred[:, 3::3] = 1
    valid[:, 3::3] = False
    maps = bb.Prediction("a", classes=pred), bb.GroundTruth("a", labels=truth, valid=valid)
    at = ContourOptions(classes=("a", "b", "c"))
    causes = [cause for cause, *_ in registry.get("contour").symptoms(*maps, Protocol(), at)]
    assert causes == ["resized"]


def square(at, size=4):
    mask = np.zeros((20, 30), np.uint8)
    mask[5 : 5 + size, at : at + size] = size > 0
    return mask


@pytest.mark.slow
def test_distances_of_few_pairs_say_over_how_many(tmp_path):
    """90 of 100 objects are missed and one image is empty: 4.0, but of 10 of 101 pairs."""
    items = [(f"{k:03}", square(9, 4 * (k < 10)), square(5)) for k in range(100)]
    items.append(("none", square(0, 0), square(0, 0)))
    run = bb.evaluate_items(items, metrics="contour", workers=1, out=tmp_path)
    found = json.loads((tmp_path / "result.json").read_text())
    scores = found["scores"]["contour"]
    assert (scores["hd"], scores["over"]["hd"]) == (4, {"pairs": [10, 101]})
    assert scores["over"]["iou"] == {"pairs": [100, 101]}
    told = " ".join(run.summary().split())
    assert "under HD95 pooled, ASSD pooled: means over 10 of 101 pairs" in told
    own = [found["images"][k]["contour"] for k in (0, 50, 100)]
    sides = ("pairs.both", "pairs.pred_only", "pairs.gt_only")
    assert [[v[side] for side in sides] for v in own] == [[1, 0, 0], [0, 0, 1], [0, 0, 0]]


def test_classes_of_no_image_are_left_out_and_said():
    """Of three classes the second is missed in one of two images, the third is nowhere."""
    at = {"classes": ["a", "b", "c"]}
    protocol = Protocol.preset("masks").replace(options={"contour": at, "segmentation": at})
    items = [("x", square(9), square(5)), ("y", square(0, 0), square(5))]
    run = bb.evaluate_items(items, protocol, metrics=("contour", "segmentation"), workers=1)
    found, other = run.scores().values()
    assert found["over"]["hd"] == {"pairs": [3, 4], "classes": [2, 3]}
    parts = found["per_class"]
    assert parts["b"]["over"]["hd"] == {"pairs": [1, 2]}
    assert (parts["c"]["n_images"], parts["c"]["iou"]) == (0, None)
    assert found["iou"] == pytest.approx((parts["a"]["iou"] + parts["b"]["iou"]) / 2)
    assert other["over"]["mean_iou"] == {"classes": [2, 3]}


def test_tables_show_measures_at_every_size():
    options = {"tolerances": (4.0,), "boundary_sizes": (0.03,), "davis_bounds": (8.0,)}
    protocol = Protocol.preset("masks").replace(options={"contour": options})
    mask = np.zeros((40, 40), bool)
    mask[5:30, 8:31] = True
    items = [("a", np.roll(mask, 2, axis=0), mask), ("b", mask, mask)]
    run = bb.evaluate_items(items, protocol, metrics="contour")
    usual, whole = run.summary(), to_text(score_tables([run], columns=["all"]))
    assert "NSD area 4" in usual
    assert "Boundary IoU 3%" in usual
    assert all(heading in whole for heading in ("min 3%", "F 8 px", "NSD mean 4"))
    assert "contour.nsd-area@4" in bb.compare([run, run], names=["a", "b"], n_boot=20).scores
