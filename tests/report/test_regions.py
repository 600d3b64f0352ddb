"""Pictures of masks, classes and objects: their pixels are those that the metric compares."""

import imageio.v3 as iio
import numpy as np
import pytest
from scipy.ndimage import binary_erosion
from scipy.spatial.distance import directed_hausdorff

import bsdsbench as bb
from bsdsbench.metrics import registry
from bsdsbench.metrics.pixel_steps import PixelClass
from bsdsbench.report import write_report
from bsdsbench.report.overlays import COLORS, pixel_steps, write_overlays
from bsdsbench.report.pictures import _pack_steps, annotated_shares
from bsdsbench.runs.sources import find_sources
from tests.helpers.runs import call, refused, write_maps
from tests.report.test_planes import unpack

MATCHED, FALSE, MISSED, OTHER, *_ = PixelClass

THREE = ["organ", "tumour", "cyst"]
GT = np.array([[0, 1, 1, 1, 0, 3], [0, 1, 2, 2, 0, 3], [0, 1, 2, 2, 0, 0]])
PRED = np.array([[1, 1, 1, 0, 0, 0], [0, 1, 2, 1, 0, 3], [0, 1, 2, 2, 3, 3]])


def classes_protocol(metric, **options):
    given = {"classes": THREE, "first": 1, **options}
    return bb.Protocol.preset("masks").replace(options={metric: given})


def compared(pred, gt, metric="contour", protocol=None):
    protocol = protocol or classes_protocol(metric)
    run = bb.evaluate_items([("a", pred, gt)], protocol, metrics=[metric], workers=1)
    return run, run.records[0]


def folders(tmp_path, pred, gt):
    return [
        write_maps(tmp_path / name, {"a": maps.astype(np.uint8)})
        for name, maps in (("pred", pred), ("gt", gt))
    ]


@pytest.mark.parametrize("metric", ["contour", "segmentation"])
def test_classes_counted_by_hand(tmp_path, metric):
    places = folders(tmp_path, PRED, GT)
    run = bb.evaluate(*places, classes_protocol(metric), metrics=[metric], workers=1)
    drawn = pixel_steps(*find_sources(run).load("a", run.protocol), run)
    assert drawn.parts == ("all classes", *THREE)
    n, m, f, s, o = 0, MATCHED, FALSE, MISSED, OTHER
    organ = [[f, m, m, s, n, n], [n, m, n, f, n, n], [n, m, n, n, n, n]]
    tumour = [[n] * 6, [n, n, m, s, n, n], [n, n, m, m, n, n]]
    cyst = [[n, n, n, n, n, s], [n, n, n, n, n, m], [n, n, n, n, f, f]]
    every = [[f, m, m, s, n, s], [n, m, m, o, n, m], [n, m, m, m, f, f]]
    classes = [drawn.at(k) for k in range(4)]
    for k, expected in enumerate((every, organ, tumour, cyst)):
        assert classes[k].tolist() == expected, drawn.parts[k]
    of_class = run.score(metric).per_class
    for part, dice in zip(drawn.parts[1:], drawn.scores.f[1:], strict=True):
        assert dice == pytest.approx(of_class[part]["dice"], abs=1e-12)
    np.testing.assert_array_equal(unpack(_pack_steps(drawn)), classes)


def test_void_is_drawn_on_neither_side(tmp_path):
    gt = np.where(np.arange(6) == 1, 255, GT)
    places = folders(tmp_path, PRED, gt)
    run = bb.evaluate(*places, classes_protocol("contour"), metrics=["contour"], workers=1)
    drawn = pixel_steps(*find_sources(run).load("a", run.protocol), run)
    assert not any(drawn.at(k)[:, 1].any() for k in range(4))


@pytest.mark.parametrize("metric", ["contour", "segmentation", "instances"])
def test_objects_are_right_where_they_are_paired(tmp_path, metric):
    gt = np.array([[7, 7, 7, 0, 0, 4, 4], [7, 7, 7, 0, 0, 4, 4]])
    pred = np.array([[3, 3, 3, 3, 0, 0, 5], [3, 3, 3, 0, 9, 9, 0]])  # 3 is 7; 4 has no partner
    options = {} if metric == "instances" else {"unit": "instance"}
    protocol = bb.Protocol.preset("masks").replace(options={metric: options})
    run = bb.evaluate(*folders(tmp_path, pred, gt), protocol, metrics=[metric], workers=1)
    drawn = pixel_steps(*find_sources(run).load("a", run.protocol), run)
    n, m, f, s, o = 0, MATCHED, FALSE, MISSED, OTHER
    assert drawn.at(0).tolist() == [[m, m, m, f, n, s, o], [m, m, m, n, f, o, s]]


@pytest.mark.parametrize("spacing", [(1.0, 1.0), (0.5, 2.0)])
@pytest.mark.parametrize("seed", range(12))
def test_the_largest_error_is_the_hausdorff_distance(seed, spacing):
    rng = np.random.default_rng(seed)
    pred, gt = (rng.random((2, 17, 23)) < 0.04).astype(np.uint8)
    gt[5:12, 4:15] = pred[6:12, 7:15] = 1
    metric = registry.get("contour")
    protocol = bb.Protocol.preset("masks").replace(options={"contour": {"spacing": list(spacing)}})
    pred_map, truth = bb.Prediction("a", classes=pred), bb.GroundTruth("a", labels=gt)
    steps = metric.pixel_steps(pred_map, truth, protocol, metric.options_of(protocol))
    (error,) = steps.marks
    rims = [np.argwhere(m & ~binary_erosion(m)) for m in (pred > 0, gt > 0)]
    in_units = [rim * spacing for rim in rims]
    expected = max(directed_hausdorff(*in_units)[0], directed_hausdorff(*in_units[::-1])[0])
    assert error.distance == pytest.approx(expected, abs=1e-12)
    ends = np.array(error[:4]).reshape(2, 2)
    assert np.hypot(*((ends[0] - ends[1]) * spacing)) == pytest.approx(expected, abs=1e-12)
    sides = [[end.tolist() in rim.tolist() for rim in rims] for end in ends]
    assert [True, False] in sides or [False, True] in sides or [True, True] in sides


def test_no_outline_has_no_largest_error():
    run, _ = compared(np.zeros((4, 5), np.uint8), np.eye(4, 5, dtype=np.uint8))
    pred, gt = bb.Prediction("a", classes=np.zeros((4, 5), np.uint8)), None
    gt = bb.GroundTruth("a", labels=np.eye(4, 5, dtype=np.uint8))
    assert pixel_steps(pred, gt, run).marks == (None,) * 4


def test_files_of_overlays_and_what_has_changed(tmp_path):
    places = folders(tmp_path, PRED, GT)
    run = bb.evaluate(*places, classes_protocol("contour"), metrics=["contour"], workers=1)
    written = write_overlays(run, tmp_path / "overlays")
    assert [path.name for path in written] == [
        "a_pixels.png",
        *[f"a_pixels_{name}.png" for name in THREE],
    ]
    pixels = iio.imread(written[2])  # tumour, whose outlines are a pixel apart
    assert (pixels == COLORS[MATCHED]).all(axis=2).any()
    iio.imwrite(tmp_path / "pred" / "a.png", GT.astype(np.uint8))
    refused("a: other counts than those of", write_overlays, run, tmp_path / "x")


@pytest.mark.slow
def test_the_page_and_the_grid_show_masks(tmp_path):
    places = folders(tmp_path, PRED, GT)
    for name in ("one", "two"):
        out = tmp_path / name
        protocol = classes_protocol("contour")
        bb.evaluate(*places, protocol, metrics=["contour"], workers=1, out=out, name=name)
    runs = [str(tmp_path / name) for name in ("one", "two")]
    assert write_report(runs, tmp_path / "r.html", n_boot=20) == []
    text = (tmp_path / "r.html").read_text("utf-8")
    assert '"truth":"ground truth, outlines"' in text
    assert '"parts":["all classes","organ","tumour","cyst"]' in text
    assert "missed by an annotator" not in text
    call("worst", *runs, "--figure", tmp_path / "grid.svg")
    assert "Dice" in (tmp_path / "grid.svg").read_text("utf-8")
    assert "a_pixels.png" in call("worst", *runs, "--overlays")


@pytest.mark.parametrize(
    ("truth", "words"),
    [
        ({"boundaries": (np.eye(3, dtype=bool),)}, "1 annotator"),
        ({"boundaries": (np.eye(3, dtype=bool),) * 4}, "4 annotators"),
        ({"labels": np.eye(3, dtype=np.uint8)}, "outlines"),
        ({"class_boundaries": np.eye(3, dtype=bool)[None]}, "boundaries of 1 class"),
        ({"depth": np.ones((3, 3))}, "which is not drawn"),
    ],
)
def test_words_of_the_ground_truth(truth, words):
    assert annotated_shares(bb.GroundTruth("a", **truth)).caption == words


def test_a_mask_cut_from_a_soft_map_is_drawn(tmp_path):
    soft = np.array([[0, 120, 130, 255], [0, 0, 200, 20]])
    places = folders(tmp_path, soft, np.array([[0, 1, 1, 0], [0, 1, 1, 0]]) * 255)
    run = bb.evaluate(*places, metrics=["topology"], workers=1)
    drawn = pixel_steps(*find_sources(run).load("a", run.protocol), run)
    n, m, f, s = 0, MATCHED, FALSE, MISSED
    assert drawn.at(0).tolist() == [[n, s, m, f], [n, s, m, n]]
    assert drawn.marks == (None,)
