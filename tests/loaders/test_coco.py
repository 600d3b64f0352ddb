"""COCO's JSON against pycocotools on made data; what is wrong with a file in one line."""

import json
import sys

import imageio.v3 as iio
import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.loaders.coco import DIVISOR, CocoItems
from tests.helpers.runs import call, refused

mask = pytest.importorskip("pycocotools.mask")
SHAPE = (40, 52)
NAMES = {3: "cat", 7: "dog", 9: "tree"}


def box(top, left, rows, cols):
    """A rectangle as a polygon."""
    return [float(v) for v in (left, top, left + cols, top, left + cols, top + rows, left,
                               top + rows)]  # fmt: skip


def run_lengths(drawn, packed):
    code = mask.encode(np.asfortranarray(drawn.astype(np.uint8)))
    if packed:
        return {"size": list(code["size"]), "counts": code["counts"].decode()}
    flat, counts, value = drawn.ravel(order="F"), [], False
    at = 0
    while at < flat.size:
        end = at
        while end < flat.size and flat[end] == value:
            end += 1
        counts.append(end - at)
        at, value = end, not value
    return {"size": list(drawn.shape), "counts": counts}


def ellipse(y, x, a, b):
    rows, cols = np.mgrid[: SHAPE[0], : SHAPE[1]]
    return ((rows - y) / a) ** 2 + ((cols - x) / b) ** 2 <= 1


@pytest.fixture
def files(tmp_path):
    """Two images: polygons, both kinds of run lengths, an overlap, a crowd; and results of them."""
    annotations = [
        {"image_id": 1, "category_id": 3, "segmentation": [box(4, 5, 20, 18)]},
        {"image_id": 1, "category_id": 3, "segmentation": [box(8, 9, 6, 6), box(20, 30, 7, 9)]},
        {"image_id": 1, "category_id": 9,
         "segmentation": run_lengths(ellipse(30, 40, 6, 9), True)},
        {"image_id": 2, "category_id": 7,
         "segmentation": run_lengths(ellipse(18, 20, 11, 8), False)},
        {"image_id": 2, "category_id": 7, "iscrowd": 1,
         "segmentation": run_lengths(ellipse(18, 26, 14, 12), False)},
    ]  # fmt: skip
    for k, each in enumerate(annotations, 1):
        each |= {"id": k, "iscrowd": each.get("iscrowd", 0), "area": 1, "bbox": [0, 0, 1, 1]}
    images = [{"id": k, "file_name": f"im{k}.jpg", "height": 40, "width": 52} for k in (1, 2)]
    kinds = [{"id": k, "name": name} for k, name in NAMES.items()]
    gt = tmp_path / "instances.json"
    gt.write_text(json.dumps({"images": images, "categories": kinds, "annotations": annotations}))
    results = [
        {"image_id": 1, "category_id": 3, "score": 0.9, "segmentation": [box(4, 6, 20, 18)]},
        {"image_id": 1, "category_id": 9, "score": 0.4,
         "segmentation": run_lengths(ellipse(30, 41, 7, 9), True)},
        {"image_id": 1, "category_id": 7, "score": 0.2, "segmentation": [box(5, 5, 30, 40)]},
        {"image_id": 2, "category_id": 7, "score": 0.7,
         "segmentation": run_lengths(ellipse(18, 21, 11, 8), True)},
    ]  # fmt: skip
    pred = tmp_path / "results.json"
    pred.write_text(json.dumps(results))
    return pred, gt


def decoded(path):
    """image -> (annotation, mask by pycocotools' own COCO class), in the file's order."""
    from pycocotools.coco import COCO

    found = COCO(str(path))
    return {key: [(a, found.annToMask(a) > 0) for a in found.imgToAnns[key]] for key in found.imgs}


def test_ground_truth_is_what_pycocotools_decodes(files, capsys):
    """Pixel by pixel: the smallest instance there, its class; a crowd only where nothing is."""
    maps = {name: gt for name, _, gt in CocoItems.of(*files)}
    classes = dict(zip(NAMES, range(1, 4), strict=True))
    for key, found in decoded(files[1]).items():
        expected = np.zeros(SHAPE, np.int32)
        for y in range(SHAPE[0]):
            for x in range(SHAPE[1]):
                here = [(a, m) for a, m in found if m[y, x] and not a["iscrowd"]]
                if here:
                    top = min(here, key=lambda am: am[1].sum())[0]
                    number = [a["id"] for a, _ in found].index(top["id"]) + 1
                    expected[y, x] = classes[top["category_id"]] * DIVISOR + number
                elif any(m[y, x] for a, m in found if a["iscrowd"]):
                    expected[y, x] = 4 * DIVISOR
        np.testing.assert_array_equal(maps[f"im{key}"], expected)
    assert (maps["im2"] == 4 * DIVISOR).any()


def test_the_higher_score_lies_on_top(files):
    pred = {name: found for name, found, _ in CocoItems.of(*files)}["im1"]
    listed = json.loads(files[0].read_text())
    drawn = [np.asarray(mask.decode(mask.merge(mask.frPyObjects(r["segmentation"], *SHAPE)))) > 0
             if isinstance(r["segmentation"], list) else
             np.asarray(mask.decode(r["segmentation"])) > 0
             for r in listed if r["image_id"] == 1]  # fmt: skip
    assert (pred[drawn[0]] == 1 * DIVISOR + 1).all()
    assert (pred[drawn[1] & ~drawn[0]] == 3 * DIVISOR + 2).all()
    assert (pred[drawn[2] & ~drawn[0] & ~drawn[1]] == 2 * DIVISOR + 3).all()


def test_scores_are_those_of_pycocotools_overlaps(files):
    """PQ of made data without overlap, by mask.iou: matches above .5, halves of the rest."""
    gt, pred = json.loads(files[1].read_text()), json.loads(files[0].read_text())
    gt["annotations"] = [a for k, a in enumerate(gt["annotations"]) if k in (0, 2, 3)]
    files[1].write_text(json.dumps(gt))
    pred = [pred[k] for k in (0, 1, 3)]
    files[0].write_text(json.dumps(pred))

    def code(found):
        return (mask.merge(mask.frPyObjects(found, *SHAPE)) if isinstance(found, list)
                else mask.frPyObjects(found, *SHAPE) if isinstance(found["counts"], list)
                else found)  # fmt: skip

    qualities = {}
    for a, p in zip(gt["annotations"], pred, strict=True):
        overlap = float(mask.iou([code(p["segmentation"])], [code(a["segmentation"])], [0])[0, 0])
        assert overlap > 0.5
        qualities[a["category_id"]] = overlap
    items = CocoItems.of(*files)
    metrics = ("segmentation", "contour")
    run = bb.evaluate_items(items, items.protocol(metrics), metrics=metrics, workers=1)
    assert run.score("segmentation").to_mapping()["pq"] == pytest.approx(
        np.mean(list(qualities.values())), abs=1e-9
    )
    assert run.score("contour").to_mapping()["iou"] == pytest.approx(
        np.mean(list(qualities.values())), abs=1e-9
    )
    plain = CocoItems.of(*files, unit="class")
    only = metrics[:1]
    classes = bb.evaluate_items(plain, plain.protocol(only), metrics=only, workers=1)
    assert 0.5 < classes.score("segmentation").to_mapping()["mean_iou"] < 1


def test_panoptic_png(files, tmp_path):
    """The same maps as a panoptic file: numbers in RGB, black is ignored in ground truth only."""
    maps = {name: gt for name, _, gt in CocoItems.of(*files)}
    gt = json.loads(files[1].read_text())
    (tmp_path / "panoptic").mkdir()
    annotations = []
    for key in (1, 2):
        found, rgb, segments = maps[f"im{key}"], np.zeros((*SHAPE, 3), np.uint8), []
        for value in np.unique(found[found > 0]):
            number = int(value) * 7
            rgb[found == value] = number % 256, number // 256 % 256, number // 65536
            k = int(value) // DIVISOR
            crowd = int(k == 4)
            category = list(NAMES)[1 if crowd else k - 1]
            segments.append({"id": number, "category_id": category, "iscrowd": crowd})
        iio.imwrite(tmp_path / "panoptic" / f"im{key}.png", rgb)
        annotations.append(
            {"image_id": key, "file_name": f"im{key}.png", "segments_info": segments}
        )
    path = tmp_path / "panoptic.json"
    path.write_text(json.dumps({**gt, "annotations": annotations}))
    for (_, pred, truth), given in zip(CocoItems.of(path, path), maps.values(), strict=True):
        np.testing.assert_array_equal(truth // DIVISOR % 4, given // DIVISOR % 4)
        plain = given // DIVISOR != 4  # a prediction has no crowds
        np.testing.assert_array_equal((pred // DIVISOR)[plain], (given // DIVISOR)[plain])
        assert (truth[given == 0] == 4 * DIVISOR).all()
        assert (pred[given == 0] == 0).all()
        pairs = {(int(a), int(b)) for a, b in zip(pred.ravel(), given.ravel(), strict=True)}
        assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


def test_the_command_line(files, tmp_path):
    words = ("evaluate", files[0], "--gt", files[1], "--metrics", "contour,segmentation", "--quiet")
    told = call(*words, "-o", tmp_path / "out", "--workers", 1)
    assert "PQ" in told
    assert bb.Evaluation.load(tmp_path / "out").image_ids == ["im1", "im2"]
    with pytest.raises(Exception, match="--missing: not with COCO's JSON"):
        call(*words, "--missing", "zero")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.pop("images"), "no list 'images' of objects"),
        (lambda d: d["images"][0].update(height=-4), "an image of -4x52, expected 1 to"),
        (lambda d: d["annotations"][0].update(image_id=99), "of an image that is not listed"),
        (lambda d: d["annotations"][0].update(category_id=4), "category_id 4, expected one of"),
        (lambda d: d["annotations"][0].update(segmentation=3), "without segmentation"),
        (lambda d: d["annotations"][0].update(segmentation=[[1.0]]), "segmentation"),
        (
            lambda d: d["annotations"][0].update(segmentation={"size": [2, 2], "counts": [4]}),
            "expected",
        ),
    ],
)
def test_a_wrong_file_is_one_line(files, change, words):
    content = json.loads(files[1].read_text())
    change(content)
    files[1].write_text(json.dumps(content))

    def read():
        list(CocoItems.of(*files))

    refused(words, read)


def test_without_pycocotools_it_says_so(files, monkeypatch):
    monkeypatch.setitem(sys.modules, "pycocotools", None)
    refused(r"install the extra bsdsbench\[coco\]", lambda: list(CocoItems.of(*files)))
