"""COCO's JSON against pycocotools on made data; what is wrong with a file in one line."""

import json
import sys
import warnings

import imageio.v3 as iio
import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.errors import FileFormatError, InputWarning
from bsdsbench.loaders.formats import coco
from bsdsbench.loaders.formats.coco import DIVISOR, CocoItems
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
    flat = drawn.ravel(order="F")
    ends = [0, *np.flatnonzero(np.diff(flat, prepend=False)), flat.size]
    return {"size": list(drawn.shape), "counts": np.diff(ends).tolist()}


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
    maps = {name: gt for name, _, gt in CocoItems(*files)}
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
                    expected[y, x] = 5 * DIVISOR - 2  # a dog
        np.testing.assert_array_equal(maps[f"im{key}"], expected)
    assert (maps["im2"] == 5 * DIVISOR - 2).any()


def test_the_command_line(files, tmp_path):
    words = ("evaluate", files[0], "--gt", files[1], "--metrics", "contour,segmentation", "--quiet")
    told = call(*words, "-o", tmp_path / "out", "--workers", 1)
    assert "PQ" in told
    assert bb.Evaluation.load(tmp_path / "out").image_ids == ["im1", "im2"]
    with pytest.raises(Exception, match="--missing: cannot be combined with COCO's JSON"):
        call(*words, "--missing", "zero")


def test_without_pycocotools_it_says_so(files, monkeypatch):
    monkeypatch.setitem(sys.modules, "pycocotools", None)
    refused(r"install the extra bsdsbench\[coco\]", lambda: list(CocoItems(*files)))


# --- by hand, on pictures of 4 x 6 pixels


def patch(category, top, left, rows, cols, **more):
    """A rectangle as an annotation of the image 5."""
    drawn = np.zeros((4, 6), bool)
    drawn[top : top + rows, left : left + cols] = True
    found = {"image_id": 5, "category_id": category, "segmentation": run_lengths(drawn, False)}
    return found | more


@pytest.fixture
def small(tmp_path):
    """Writes two files of these annotations; categories not in the order of their ids."""

    def write(truth=(), results=(), image=None, name=None):
        image = {"id": 5, "file_name": "deep/a.b.jpg", "height": 4, "width": 6} | (image or {})
        kinds = [{"id": 9, "name": "tree"}, {"id": 2, "name": "cat"}, {"id": 4}]
        pred, gt = tmp_path / "pred.json", tmp_path / (name or "gt.json")
        given = {"images": [image], "categories": kinds, "annotations": list(truth)}
        gt.write_text(json.dumps(given))
        pred.write_text(json.dumps(list(results)))
        return pred, gt

    return write


@pytest.mark.parametrize(
    ("part", "swapped"),
    [("categories", [{"id": 9, "name": "cat"}]), ("images", [{"id": 5, "file_name": "x/c.png"}])],
)
def test_predictions_that_number_things_otherwise(small, part, swapped):
    """A name that the truth gives to another id is refused; names that it does not have are not."""
    pred, gt = small()
    truth = json.loads(gt.read_text())
    truth["images"].append({"id": 6, "file_name": "c.jpg", "height": 4, "width": 6})
    gt.write_text(json.dumps(truth))
    pred.write_text(json.dumps({"annotations": [], part: [{"id": 5, "name": "tv"}]}))
    assert len(CocoItems(pred, gt)) == 2
    pred.write_text(json.dumps({"annotations": [], part: swapped}))
    refused("in the ground truth", CocoItems, pred, gt, error=FileFormatError)


@pytest.mark.parametrize(
    ("truth", "first", "second", "top"),
    [
        (True, (0, 0, 4, 4), (0, 2, 1, 3), 2),  # the smaller
        (True, (0, 0, 1, 4), (0, 2, 1, 4), 2),  # of one size the later
        (True, (0, 2, 1, 3, 1), (0, 0, 4, 4), 2),  # a crowd lies below
        (False, (0, 0, 4, 4), (0, 2, 1, 3), 2),  # no score is 1: the later
        (False, (0, 0, 4, 4, 0.5), (0, 2, 1, 3, 0.25), 1),
        (False, (0, 0, 4, 4), (0, 2, 1, 3, 0.75), 1),
        (False, (0, 0, 4, 4, 1.5), (0, 2, 1, 3), 1),
    ],
)
def test_which_of_two_lies_on_top(small, truth, first, second, top):
    """At row 0, column 2, which both have; a fifth number is the score, or 1 for a crowd."""
    word = "iscrowd" if truth else "score"
    both = [patch(2, *p[:4], **({word: p[4]} if p[4:] else {})) for p in (first, second)]
    files = small(both) if truth else small([], both)
    (name, pred, gt), *others = CocoItems(*files)
    assert (name, others) == ("a.b", [])
    crowd = truth and (first, second)[top - 1][4:] == (1,)
    assert (gt if truth else pred)[0, 2] == (49_999 if crowd else 10_000 + top)
    assert not (pred if truth else gt).any()


def test_panoptic_by_hand(small, tmp_path):
    """Numbers are red + 256 green + 65536 blue; what no segment has is ignored in the truth."""
    rgb = np.zeros((4, 6, 3), np.uint8)
    rgb[0], rgb[1], rgb[2, 0] = (1, 2, 3), (3, 2, 1), (0, 0, 7)
    (tmp_path / "gt").mkdir()
    iio.imwrite(tmp_path / "gt" / "x.png", rgb)
    segments = [
        {"id": 3 + 2 * 256 + 65536, "category_id": 9},
        {"id": 1 + 2 * 256 + 3 * 65536, "category_id": 2},
        {"id": 7 * 65536, "category_id": 2, "iscrowd": 1},
    ]
    given = {"image_id": 5, "file_name": "deep/x.png", "segments_info": segments}
    _, path = small([given])
    ((_, pred, gt),) = CocoItems(path, path)
    rows = [[10_002] * 6, [30_001] * 6]
    assert gt.tolist() == [*rows, [49_999] + [40_000] * 5, [40_000] * 6]
    assert pred.tolist() == [*rows, [10_003] + [0] * 5, [0] * 6]
    iio.imwrite(tmp_path / "gt" / "x.png", rgb[:, :5])
    refused(r"x\.png: shape \(4, 5, 3\), expected \(4, 6\) and RGB",
            lambda: list(CocoItems(path, path)))  # fmt: skip


def test_a_categorys_crowd_is_the_last_one(small, tmp_path):
    """Of three crowds the two of one category: the first excuses nothing."""
    rgb = np.zeros((4, 6, 3), np.uint8)
    rgb[:3, :, 0] = [[1], [2], [3]]
    (tmp_path / "gt").mkdir()
    iio.imwrite(tmp_path / "gt" / "x.png", rgb)
    segments = [{"id": k, "category_id": c, "iscrowd": 1} for k, c in ((1, 2), (2, 9), (3, 2))]
    _, path = small([{"image_id": 5, "file_name": "x.png", "segments_info": segments}])
    ((_, _, gt),) = CocoItems(path, path)
    assert gt[:, 0].tolist() == [49_996, 49_997, 49_999, 40_000]


@pytest.mark.parametrize(
    ("size", "fits"),
    [((1, 1), True), ((1.0, 10**8), True), ((4, 0), False), ((1, 10**8 + 1), False)],
)  # fmt: skip
def test_sizes_that_an_image_may_have(small, size, fits):
    files = small(image=dict(zip(("height", "width"), size, strict=True)))
    if fits:
        assert CocoItems(*files).images == {5: ("a.b", size)}
    else:
        refused(f"gt.json: .*{size[0]}x{size[1]}", CocoItems, *files, error=FileFormatError)


@pytest.mark.parametrize(
    ("image", "words"),
    [
        ({"height": "4"}, "an image of height '4' and width 6, expected whole numbers"),
        ({"width": 6.5}, "an image of height 4 and width 6.5, expected whole"),
    ],
)
def test_sizes_that_are_no_numbers_are_refused(small, image, words):
    refused(f"gt.json: {words}", CocoItems, *small(image=image), error=FileFormatError)


def test_images_of_one_name_in_two_folders_keep_their_folders(tmp_path):
    size, path = {"height": 4, "width": 6}, tmp_path / "gt.json"
    for names, expected in (
        (("a/1.jpg", "b/1.jpg", "2.jpg"), ["a/1", "b/1", "2"]),
        (("a/1.jpg", "b/2.jpg"), ["1", "2"]),
    ):
        images = [{"id": k, "file_name": name, **size} for k, name in enumerate(names)]
        path.write_text(json.dumps({"images": images, "categories": [], "annotations": []}))
        assert [name for name, _, _ in CocoItems(path, path)] == expected
    path.write_text(json.dumps({"images": [], "categories": [], "annotations": []}))
    refused("gt.json: lists no images", CocoItems, path, path, error=FileFormatError)


def test_the_protocol_of_coco_s_maps(small):
    items = CocoItems(*small())
    how = {"classes": ["cat", "4", "tree"], "first": 1, "ignore": 4, "unit": "instance"}
    how |= {"divisor": 10_000}
    made = items.protocol(["contour", "segmentation"])
    expected = bb.Protocol.preset("masks").replace(options={"contour": how, "segmentation": how})
    assert made == expected
    assert items.protocol("contour") == items.protocol(["contour"])
    base = bb.Protocol.preset("bsds500")
    assert items.protocol(["contour"], base) == base.replace(options={"contour": how})


@pytest.mark.parametrize(
    ("truth", "results", "words"),
    [
        ([], [3], "pred.json: an entry 3, expected one with 'image_id'"),
        ([], [{"image_id": 6}], "pred.json: .*image_id 6, expected one of the listed images"),
        ([], [patch(3, 0, 0, 1, 1)], r"pred.json: category_id 3, expected .*\(2, 4, 9\)"),
        ([], [patch("2", 0, 0, 1, 1)], "pred.json: category_id '2', expected"),
        ([], [patch([2], 0, 0, 1, 1)], r"pred.json: category_id \[2\], expected"),
        ([patch(2, 0, 0, 1, 1, iscrowd="no")], [], "gt.json: iscrowd 'no', expected 0 or 1"),
        ([], [patch(2, 0, 0, 1, 1) | {"score": None}], "pred.json: score None, expected a number"),
        ([{"image_id": 5, "category_id": 2}], [], "gt.json: .*'segmentation'"),
        ([], [{"category_id": 2}], "pred.json: an entry has category_id, expected also 'image_id'"),
        (
            [{k: v for k, v in patch(2, 0, 0, 1, 1).items() if k != "category_id"}],
            [],
            "gt.json: an entry has image_id, segmentation, expected also 'category_id'",
        ),
        (
            [],
            [{"image_id": 5, "category_id": 2, "bbox": [0, 0, 1, 1], "score": 1}],
            "pred.json: an annotation of image 5 has only a box, expected a mask",
        ),
        *(
            ([patch(2, 0, 0, 1, 1) | {"segmentation": given}], [], f"gt.json: .*{words}")
            for given, words in (
                ({"counts": 3}, "image 5: a segmentation {'counts': 3}, expected polygons, or"),
                (None, "image 5: a segmentation None, expected"),
                ({"size": [4, 6], "counts": 3}, "counts 3, expected run lengths of 4 x 6"),
                ({"size": [4, 6], "counts": [4, 2]}, "counts of 6 pixels, expected"),
                ({"size": [4, 6], "counts": [25, -1]}, "counts of 24 pixels, expected"),
                ({"size": [4, 6], "counts": [2**62] * 4 + [24]}, "counts of 1.84467e.19 pixels"),
                ({"size": [4, 6], "counts": [23.5, 0.5]}, r"counts \[23.5, 0.5\], expected"),
                ({"size": [4, 6], "counts": "f1b"}, "counts of -1 pixels, expected"),
                ([[0, 0, 2, 2]], "a polygon of 4 numbers"),
                ([[[0, 0], [2, 0], [2, 2]]], r"a polygon \[\[0, 0\], "),
                ([[0, 0, 1e9, 0, 1e9, 2]], r"a polygon up to 1e\+09, expected it in 4 rows"),
                (box(0, 0, 2, 2), "image 5: a polygon 0.0, expected lists"),
                ([box(0, 0, 2, 2)[:7]], "a polygon of 7 numbers"),
                ([box(0, 0, 0.5, 0.75)], "within 0 .. 0.75, expected pixels"),
                ([box(0, 6, 2, 2)], "from x 6, y 0 on, expected it in 6 columns and 4 rows"),
                ([box(4, 0, 2, 2)], "from x 0, y 4 on"),
                ({"size": [6, 4], "counts": "f1b0"}, r"\(6, 4\), expected \(4, 6\)"),
            )
        ),
        (
            [{"image_id": 5, "file_name": "x.png", "segments_info": 3}],
            [],
            "segments_info 3, expected",
        ),
    ],
)
def test_annotations_that_are_none(small, truth, results, words):
    files = small(truth, results)
    refused(words, lambda: list(CocoItems(*files)), error=FileFormatError)


@pytest.mark.parametrize("packed", [False, True])
def test_run_lengths_are_those_of_pycocotools(packed):
    rng = np.random.default_rng(5)
    for _ in range(300):
        drawn = rng.random(rng.integers(1, 70, 2)) < rng.choice([0, 0.02, 0.5, 1])
        drawn = np.pad(drawn, ((0, rng.integers(0, 500)), (0, rng.integers(0, 3))))
        counts = run_lengths(drawn, packed)["counts"]
        np.testing.assert_array_equal(coco._decode_runs(counts, drawn.shape, ""), drawn)


def test_masks_that_are_not_in_their_boxes_are_said(small, recwarn):
    """Run lengths along the rows, which have the area of the mask, lie elsewhere."""
    bbox, counts = [1, 1, 2, 3], [7, 2, 4, 2, 4, 2, 3]  # of the columns 1 and 2 of rows 1 to 3
    along_rows = patch(2, 1, 1, 3, 2, bbox=bbox)
    sound = patch(2, 1, 1, 3, 2, bbox=[*bbox])
    along_rows["segmentation"]["counts"] = counts
    for truth, n_said in (
        ([sound], 0),
        ([sound | {"bbox": [1, 1, 3, 4]}], 0),  # x and y of two corners
        ([sound | {"bbox": [0, 0, 1, 1]}], 0),  # not the box of a mask
        ([sound | {"bbox": [0, 0, 6, 4]}], 0),  # the whole image
        *(([sound | {"bbox": box}], 0) for box in (5, "abcd", [*"1234"], [1, 1, 2, 10**400])),
        ([along_rows], 1),
        ([along_rows, sound], 0),
    ):
        recwarn.clear()
        list(CocoItems(*small(truth)))
        assert len(recwarn) == n_said
    list(CocoItems(*small([along_rows])))
    assert "gt.json: 1 of 1 masks are not in their boxes" in str(recwarn.pop().message)


def test_categories_of_one_name_are_told_apart_and_of_one_id_are_refused(small):
    pred, gt = small()
    content = json.loads(gt.read_text())
    content["categories"] = [{"id": k, "name": name} for k, name in ((3, "a"), (1, "a"), (2, ""))]
    gt.write_text(json.dumps(content))
    assert CocoItems(pred, gt).categories == {1: "a (1)", 2: "2", 3: "a (3)"}
    for wrong, words in (
        ({"id": 3, "name": "b"}, "category 3 is listed twice"),
        ({"id": None}, "category id None, expected"),
    ):
        gt.write_text(json.dumps(content | {"categories": [*content["categories"], wrong]}))
        refused(f"gt.json: {words}", CocoItems, pred, gt, error=FileFormatError)


def test_an_image_without_a_file_s_name_is_called_by_its_number(small):
    _, gt = small()
    content = json.loads(gt.read_text())
    del content["images"][0]["file_name"]
    gt.write_text(json.dumps(content))
    assert [name for name, _, _ in CocoItems(gt, gt)] == ["5"]
    for text, words in (
        ('{"categories": [], "annotations": []}', "'images'"),
        ("[]", "is a list of results, .*exchange"),
    ):
        gt.write_text(text)
        refused(f"gt.json: .*{words}", CocoItems, gt, gt, error=FileFormatError)


# --- a panoptic JSON and its PNGs


@pytest.fixture
def panoptic(tmp_path):
    """Write a panoptic JSON of the segments of one image, and its picture."""

    def write(segments, entries=1, suffix="png", name="gt", **changes):
        rgb = np.zeros((4, 6, 3), np.uint8)
        rgb[0], rgb[1] = (7, 1, 0), (9, 0, 0)
        (tmp_path / name).mkdir(exist_ok=True)
        iio.imwrite(tmp_path / name / "x.png", rgb, extension=f".{suffix}")
        listed = [{"id": k, "category_id": 2, **changes} for k in segments]
        entry = {"image_id": 5, "file_name": "x.png", "segments_info": listed}
        path = tmp_path / f"{name}.json"
        given = {
            "images": [{"id": 5, "file_name": "x.jpg", "height": 4, "width": 6}],
            "categories": [{"id": 2, "name": "cat"}],
            "annotations": [entry] * entries,
        }
        path.write_text(json.dumps(given))
        return path

    return write


@pytest.mark.parametrize("side", ["gt", "pred"])
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"segments": (9,)}, r"x\.png: segment 263 is in the picture and not in .*SIDE\.json"),
        ({"segments": (263, 9, 12)}, r"x\.png: segment 12 is not in the picture and 1 times in"),
        ({"segments": (263, 9, 9)}, r"x\.png: segment 9 is in the picture and 2 times in"),
        ({"segments": (263, 9), "suffix": "jpeg"}, r"x\.png: is JPEG of mode RGB, expected a PNG"),
        ({"segments": (263, 9), "entries": 2}, r"SIDE\.json: image 5 \(x\) has 2 entries"),
        ({"segments": (263, 9), "category_id": 3}, r"SIDE\.json: category_id 3, expected"),
    ],
)
def test_a_panoptic_json_that_lies_is_refused(panoptic, side, given, words):
    sound = panoptic((263, 9), name="pred" if side == "gt" else "gt")
    wrong = panoptic(name=side, **given)
    files = (wrong, sound) if side == "pred" else (sound, wrong)
    refused(words.replace("SIDE", side), lambda: list(CocoItems(*files)), error=FileFormatError)


def test_every_image_has_an_entry_in_a_panoptic_json(panoptic):
    path = panoptic((263, 9))
    content = json.loads(path.read_text())
    content["images"].append({"id": 6, "file_name": "y.jpg", "height": 4, "width": 6})
    path.write_text(json.dumps(content))
    refused(r"gt\.json: image 6 \(y\) has 0 entries", CocoItems, path, path, error=FileFormatError)


@pytest.mark.parametrize("score", [{}, {"score": 0.7}, "unequal"])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_a_perfect_prediction_is_perfect_also_where_segments_overlap(small, seed, turned, score):
    rng = np.random.default_rng(seed)
    truth = [patch(2, *rng.integers(0, 3, 2).tolist(), *rng.integers(1, 4, 2).tolist())
             for _ in range(5)]  # fmt: skip
    truth += [patch(9, 0, 0, 4, 6, iscrowd=1)]
    scores = np.random.default_rng(seed).random(len(truth)).tolist()
    of_each = [{"score": value} if score == "unequal" else score for value in scores]
    results = [{**each, **known} for each, known in zip(truth, of_each, strict=True)]
    items = CocoItems(*small(truth, results[::-1] if turned else results))
    protocol = items.protocol(["segmentation"])
    run = bb.evaluate_items(items, protocol, metrics="segmentation", workers=1)
    assert run.score("segmentation").pq == 1


def test_objects_at_half_the_scale_of_the_other_file_are_said(tmp_path, recwarn):
    def masks(top, left, size):
        entries = []
        for number in (1, 2, 3):
            outline = [box(top, left, size, size)]
            entries.append({"image_id": number, "category_id": 1, "segmentation": outline})
        return entries

    images = [{"id": k, "file_name": f"{k}.jpg", "height": 8, "width": 8} for k in (1, 2, 3)]
    sides = {"whole": masks(2, 4, 4), "half": masks(1, 2, 2), "near": masks(0, 0, 3)}
    for name, entries in sides.items():
        content = {"images": images, "categories": [{"id": 1}]}
        (tmp_path / name).write_text(json.dumps(content | {"annotations": entries}))
    said = {}
    warnings.simplefilter("always")  # the same line twice
    for pred, gt in (("half", "whole"), ("whole", "half"), ("whole",) * 2, ("near", "half")):
        recwarn.clear()
        list(CocoItems(tmp_path / pred, tmp_path / gt))
        said[pred, gt] = [w.message for w in recwarn if isinstance(w.message, InputWarning)]
    assert [len(lines) for lines in said.values()] == [1, 1, 0, 0]
    for lines in list(said.values())[:2]:
        words = "half: all objects lie in the upper left 50% of the images, unlike those of"
        assert words in str(lines[0])


@pytest.mark.parametrize(
    ("scores", "is_said"),
    [
        ((0.9, 0.1, 0.05), True),
        ((0.9, 0.8, 0.1), False),  # most have a high score
        ((0.1, 0.05), False),  # not more than twice as many as annotated objects
        ((None,) * 3, False),
    ],
)
def test_results_for_an_ap_are_said(small, scores, is_said, recwarn):
    results = [patch(2, 0, k, 1, 1) | ({} if s is None else {"score": s})
               for k, s in enumerate(scores)]  # fmt: skip
    list(CocoItems(*small([patch(2, 0, 0, 1, 1)], results)))
    words = "pred.json: 2 of 3 results have scores below 0.3, and each counts"
    assert any(words in str(w.message) for w in recwarn) == is_said
