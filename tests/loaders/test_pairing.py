"""Which prediction belongs to which ground truth, and every fault at once."""

import os
import sys
from pathlib import Path

import pytest

from bsdsbench.errors import DataError, InputWarning, PairingError
from bsdsbench.loaders.formats.photos import find_photos
from bsdsbench.loaders.formats.pictures import find_files
from bsdsbench.loaders.pairing import Pair, ground_truths, pair
from bsdsbench.loaders.readers import read_truth
from bsdsbench.loaders.reading import Kind, ReadOptions
from bsdsbench.loaders.split_files import read_split
from tests.helpers.runs import refused

MISSING_FIXES = "(missing='zero' counts empty maps; missing='skip' leaves them out)"


class Tree:
    """Empty files, since pairing never opens them, and what they pair to."""

    def __init__(self, root):
        self.root, self.pred, self.gt = root, root / "pred", root / "gt"

    def make(self, side, *names):
        for name in names:
            path = side / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        return self

    def preds(self, *names):
        return self.make(self.pred, *names)

    def gts(self, *names):
        return self.make(self.gt, *names)

    def split(self, text):
        (self.root / "ids.txt").write_bytes(text if isinstance(text, bytes) else text.encode())
        return self.root / "ids.txt"

    def truths(self, found):
        return {p.image_id: [q.relative_to(self.gt).as_posix() for q in p.gt_paths] for p in found}

    def pairs(self, **options):
        found = pair(self.pred, self.gt, **options)
        truths = self.truths(found)
        preds = {p.image_id: p.pred_paths for p in found}
        return {
            i: ([p.relative_to(self.pred).as_posix() for p in preds[i]], truths[i]) for i in truths
        }

    def problems(self, **options):
        with pytest.raises(DataError, match=r"\S") as caught:
            pair(self.pred, self.gt, **options)
        assert all(line.isprintable() for line in map(str, caught.value.problems))
        return [
            line.replace(str(self.root) + os.sep, "") for line in map(str, caught.value.problems)
        ]


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


def test_letters_whose_accents_are_stored_apart_are_the_same(tree):
    tree.preds("Z\u00fcrich.png", "u\u0308/0.png").gts("Zu\u0308rich.png", "\u00fc/0.png")
    assert list(tree.pairs()) == ["0", "Z\u00fcrich"]
    tree.preds("b/0.png").gts("b/0.png")
    assert list(tree.pairs(pred_kind="classes")) == ["Z\u00fcrich", "b/0", "\u00fc/0"]
    split = tree.split("u\u0308/0\n")
    assert list(tree.pairs(split=split, pred_kind="classes")) == ["\u00fc/0"]


def test_any_mix_of_suffixes_and_folders_sorted_by_id(tree):
    tree.preds("b.png", "deep/er/a.mat", "c.v2.NPY", "notes.txt", ".hidden.png")
    tree.gts("a.mat", "x/b.mat", "c.v2.png", ".git/a.png", "Thumbs.db")
    assert tree.pairs() == {
        "a": (["deep/er/a.mat"], ["a.mat"]),
        "b": (["b.png"], ["x/b.mat"]),
        "c.v2": (["c.v2.NPY"], ["c.v2.png"]),
    }


@pytest.mark.parametrize("kind", ["soft", "labels"])
@pytest.mark.parametrize(
    "names", [["7_1", "7_2", "8_1"], ["7/a", "7/b"], ["7_gt1", "7_gt2"], ["00", "01"], ["5"]]
)
def test_files_named_alike_on_both_sides_are_an_image_each(tree, names, kind):
    tree.preds(*(f"{name}.npy" for name in names))
    tree.gts(*(f"deep/{name}.png" for name in names))
    found = tree.pairs(pred_kind=kind)
    assert [truths for _, truths in found.values()] == [[f"deep/{name}.png"] for name in names]
    assert found == tree.pairs(pred_kind=kind, split=tuple(found))


# --- annotators


@pytest.mark.parametrize(
    "truths",
    [
        {"7": ["7_1.png", "7_2.png", "7_10.png"], "8": ["8_1.png"]},
        {"img_1": ["img_1_1.png", "img_1_2.png"], "img_2": ["img_2_1.png"]},
        {"7": ["test/7/ann.png", "test/7/bob.png"], "8": ["test/8/1.png", "test/8/2.png"]},
        {"7": ["color/1102/7.seg", "color/1105/7.seg"]},  # BSDS300
        {"1": ["7/1.png"], "2": ["7/2.png"], "7": ["7.png"]},
        {"7": ["7_1.png", "7_2.png"], "8": ["8/ann.png", "8/bob.png"], "9": ["9.png"]},
    ],
)
def test_the_ids_of_the_other_side_say_which_files_are_annotators(tree, truths):
    tree.preds(*(f"{image_id}.png" for image_id in truths))
    tree.gts(*(name for names in truths.values() for name in names[::-1]))
    assert {image_id: found[1] for image_id, found in tree.pairs().items()} == truths
    for split in (tree.split("\n".join(truths)), tuple(truths)):
        alone = ground_truths(tree.gt, split)
        assert tree.truths(alone) == truths
        assert not any(p.pred_paths for p in alone)


@pytest.mark.parametrize("missing", ["error", "skip"])
@pytest.mark.parametrize(
    "names",
    [
        ["v1.png", "v1_1.png", "v1_2.png"],
        ["v1.png", "v1/ann.png", "v1/bob.png"],
        ["color/1102/v1.seg", "gray/1105/v1.seg"],
        ["v1_1.png", "v1_2.mat"],
        ["a/v1_1.png", "b/v1_2.png"],
        ["a/v1.png", "b/v1.png"],
    ],
)
def test_files_of_two_layouts_are_no_annotators(tree, names, missing):
    """A split does not choose between them."""
    tree.preds("v1.png").gts(*names)
    for split in (None, ["v1"]):
        first = tree.problems(missing=missing, split=split)[0]
        assert first.startswith("gt: several files for: v1 (1 in")


@pytest.mark.parametrize("names", [["0.png", "1.png"], ["00001.png", "00002.png"]])
@pytest.mark.parametrize("word", ["", "frame"])
def test_frames_are_annotators_only_where_a_split_says_so(tree, names, word):
    frames = [f"v1/{word}{name}" for name in names]
    tree.preds("v1.png").gts(*frames)
    assert tree.problems(missing="skip")[0].startswith("gt: several files for: v1 (1 in")
    assert tree.pairs(split=["v1"])["v1"][1] == frames


def test_a_missing_prediction_keeps_its_annotators_together(tree):
    tree.preds("7.png").gts("7/1.png", "7/2.png", "8/1.png", "8/2.png")
    assert tree.problems() == [f"pred: no prediction for: 8 (1 in all) {MISSING_FIXES}"]
    assert tree.pairs(missing="zero")["8"] == ([], ["8/1.png", "8/2.png"])
    assert list(tree.pairs(missing="skip")) == ["7"]


@pytest.mark.parametrize(
    ("names", "doubled"),
    [
        (["train/a.mat", "val/b.mat", "val/c.mat"], False),
        (["img_5001.mat", "img_5002.mat"], False),  # NYUDv2
        (["2007_000063.png", "2007_000068.png", "2008_000002.png"], False),  # VOC
        (["aachen/aachen_1.png", "bonn/bonn_1.png"], False),
        (["edges/12.png", "edges/31.png", "depth/12.png", "depth/31.png"], True),
        (["7/1.png", "7/2.png", "8/1.png", "8/2.png"], True),
        (["color/1102/7.seg", "gray/1102/7.seg"], True),
    ],
)
def test_ground_truth_alone_is_not_grouped_by_a_guess(tree, names, doubled):
    tree.gts(*names)
    if doubled:
        refused("several files", ground_truths, tree.gt, error=PairingError)
    else:
        assert sorted(tree.truths(ground_truths(tree.gt)).values()) == [[name] for name in names]


@pytest.mark.parametrize("count", [0, 2])
@pytest.mark.parametrize("kind", ["mask", "lines", "oriented", "depth-map"])
def test_what_has_one_ground_truth_takes_no_other_number(kind, count):
    files = tuple(map(Path, ("a.npz", "b.npz")[:count]))
    refused(f"^7: {count} ", read_truth, Pair("7", (), files), kind, ReadOptions(Kind.MASK))


# --- several predictions


def test_label_maps_of_one_image(tree):
    tree.preds("7/1.png", "7/2.png", "8_1.png").gts("7.mat", "8.mat")
    assert tree.pairs(pred_kind="labels")["7"][0] == ["7/1.png", "7/2.png"]
    assert "pred: no prediction for: 7, 8 (2 in all)" in tree.problems()


@pytest.mark.parametrize(
    ("names", "kept"),
    [
        (["cat/a.png", "dog/a.png"], True),
        (["cat/a.png", "dog/b.png"], False),
        (["cat/x/a.png", "cat/y/a.png", "dog/b.png"], False),
    ],
)
def test_a_folder_for_each_class(tree, names, kept):
    tree.preds(*names).gts("a.mat")
    options = {"pred_kind": "classes", "gt_kind": "classes", "classes": ("cat", "dog")}
    if kept:
        assert tree.pairs(**options)["a"][0] == names
    else:
        assert "several files for: a" in tree.problems(**options)[0]


# --- faults


def test_every_fault_at_once(tree):
    tree.preds("a.png", "a.mat", "b.png", "x.png").gts("a.mat", "b.mat", "b/b.mat")
    tree.gts(*(f"m{k:02}.mat" for k in range(31)))
    first, second, third, last = tree.problems()
    assert first.startswith("pred: several files for: a (1 in all); expected one")
    assert second.startswith("gt: several files for: b (1 in all); expected one")
    assert first.endswith("(a: a.mat, a.png)")
    assert second.endswith("(b: b.mat, b/b.mat)")
    assert third.endswith(f"m09 and 21 more (31 in all) {MISSING_FIXES}")
    assert last == "gt: no ground truth for: x (1 in all)"


def test_the_folders_of_a_program_are_given_one_by_one(tree):
    tree.preds("mat/a.mat", "png/a.png").gts("a.mat")
    assert "folders of other things: give one of them) (a: mat/a.mat, png/a" in tree.problems()[0]


@pytest.mark.parametrize(
    ("preds", "gts", "example"),
    [
        (["f_0", "f_1", "f_2"], ["f_1", "f_2", "f_3"], "f_0 and f_1"),
        (["0001x", "0002x"], ["0000x", "0001x"], "0001x and 0000x"),
        (["f_0", "f_1"], ["f_1", "f_2", "f_3"], ""),
        (["f_2", "f_3"], ["f_1", "f_2"], ""),
        (["a_pred"], ["a_true"], ""),
        (["101", "102"], ["201", "202"], ""),
        (["x1", "x2", "x3"], ["1y", "2y"], ""),
    ],
)
def test_names_that_are_numbered_otherwise_are_told_apart(tree, preds, gts, example):
    tree.preds(*(f"{name}.png" for name in preds)).gts(*(f"{name}.mat" for name in gts))
    last = tree.problems(gt_kind="mask", missing="skip")[-1]
    words = f"(names are numbered from 0 and from 1, as {example}: rename one side)"
    assert last.endswith(words if example else "in all)")


@pytest.mark.parametrize(
    ("preds", "gts", "split", "options", "last"),
    [
        (["a_pred.png"], ["a.mat"], None, {"missing": "skip"}, "no ground truth for: a_pred"),
        (["a.png"], ["a.mat", "b.mat"], "b", {"missing": "zero"}, "pred: no prediction for: b"),
        (["a.png"], ["a.mat"], "# nothing\n", {}, "ids.txt: lists no image"),
        (["a.png"], ["a.mat"], b"\xff\xfe\0", {}, "ids.txt: is damaged"),
        (
            ["a.txt"],
            ["a.mat"],
            None,
            {},
            "pred: has no files in a supported format, expected a folder",
        ),
        (["a.png"], [], None, {}, "gt: does not exist, expected a folder of .png"),
    ],
)
def test_the_last_line_says_what_may_be_wrong(tree, preds, gts, split, options, last):
    tree.preds(*preds).gts(*gts)
    found = tree.problems(split=None if split is None else tree.split(split), **options)
    assert last in found[-1]


@pytest.mark.parametrize("missing", ["error", "zero", "skip"])
def test_photos_beside_their_masks_are_no_truth(tree, missing):
    """Predictions have the names of the photos, of which `missing` would leave out the masks."""
    tree.preds("n (1).png", "n (2).png").gts("n (1).jpg", "n (2).jpg", "n (1)_mask.png")
    options = {"missing": missing, "gt_kind": "mask"}
    if missing == "skip":  # one of two has a mask
        assert len(tree.pairs(**options)) == 2
    tree.gts("n (2)_mask.png")
    (line,) = tree.problems(**options)
    assert "(n (1)_mask lies beside n (1): give a folder of the masks alone" in line
    tree.gts("n (1)_flip.png", "n (2)_flip.png")
    for mask in tree.gt.glob("*_mask.png"):
        mask.unlink()
    if missing == "skip":
        assert len(tree.pairs(**options)) == 2


def test_several_label_maps_of_an_image_are_told_how_they_are_read(tree):
    tree.preds("a/1.png", "a/2.png", "b/1.png", "b/2.png").gts("a.mat", "b.mat")
    hint = "pred_kind='labels' if they are label maps of several levels"
    assert hint in "".join(tree.problems(pred_kind="soft"))


def test_numbers_with_other_leading_zeros_are_not_said_to_start_elsewhere(tree):
    tree.preds("0001.png", "0002.png", "0010.png").gts("1.mat", "2.mat", "10.mat")
    words = "(names are numbered with other leading zeros, as 0001 and 1: rename one side)"
    assert tree.problems()[-1].endswith(words)


def test_a_split_does_not_hide_that_frames_are_numbered_otherwise(tree):
    tree.preds("f_0.png", "f_1.png", "f_2.png").gts("f_1.mat", "f_2.mat", "f_3.mat")
    words = r"pred and .*gt: names are numbered from 0 and from 1, as f_0 and f_1: rename one side"
    with pytest.warns(InputWarning, match=words):
        assert list(tree.pairs(split=["f_1", "f_2"], gt_kind="mask")) == ["f_1", "f_2"]
    tree.preds("f_3.png")
    tree.pairs(split=["f_1", "f_2"], gt_kind="mask")  # warnings are errors


def test_the_ending_of_annotators_is_no_reason_to_rename(tree):
    ids = ["im1", "im2", "im3"]
    tree.preds(*(f"{i}.png" for i in ids)).gts(*(f"{i}_gt1.png" for i in ids))
    assert list(tree.pairs(split=ids)) == ids  # warnings are errors


def test_a_split_file_chooses_and_keeps_its_order(tree):
    tree.preds("a.png", "b.png", "extra.png", "extra.mat").gts("a.mat", "b.mat", "c.mat", "d.mat")
    split = tree.split(b"\xef\xbb\xbf# wanted\r\n\r\nb\r\n images/test/a.jpg \r\nb\r\n")
    assert list(tree.pairs(split=split)) == ["a", "b"]
    assert tree.problems(split=tree.split("a\nc\nzz\n../../d\n")) == [
        f"pred: no prediction for: c, d (2 in all) {MISSING_FIXES}",
        "gt: no ground truth for: zz (1 in all)",
    ]
    assert read_split(tree.split("10\n2\n10.png\n")) == ["10", "2"]
    path = tree.split("")
    path.write_bytes("10\r\n2\r\n".encode("utf-16"))  # as shells of Windows redirect output
    assert read_split(path) == ["10", "2"]


@pytest.mark.parametrize(
    "text",
    [
        "images\\a.jpg\r\nC:\\My data\\b.jpg\r\n",
        "images\\a.jpg gt\\a.png\nimages/b.jpg gt/b.png",
        "a.jpg a.png\nb.jpg\tb.png",
        "'a.png',\n\"b.png\",\n\x1a",
    ],
)
def test_a_split_file_of_tables_and_windows(tree, text):
    tree.preds("a.png", "b.png").gts("a.mat", "b.mat", "c.mat")
    assert list(tree.pairs(split=tree.split(text))) == ["a", "b"]


@pytest.mark.parametrize(
    "text", ["a 1\nb -1", "image,split\na,test\nb,train", '{"test": ["a"]}', "A"]
)
def test_a_split_file_of_another_form_is_named(tree, text):
    tree.preds("a.png", "b.png").gts("a.mat", "b.mat")
    assert "as ids.txt lists them: expected one id" in tree.problems(split=tree.split(text))[-1]


@pytest.mark.parametrize("missing", ["error", "zero", "skip"])
@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("image\na\nb", "image (1 in all)"),
        ("file_name\na.png\nb.png", "file_name (1 in all)"),
        ('[\n "a",\n "b.png"\n]', "[, ] (2 in all)"),
        ('["a", "b.png"]', '["a", "b.png"] (1 in all) (as ids.txt lists them: expected one id'),
    ],
)
def test_the_header_of_a_split_and_json_are_named_as_images(tree, text, named, missing):
    tree.preds("a.png", "b.png", "c.png").gts("a.mat", "b.mat", "c.mat")
    (line,) = tree.problems(split=tree.split(text), missing=missing)
    assert line.startswith(f"gt: no ground truth for: {named}")


def test_known_ids_are_kept_as_a_split_lists_them(tree):
    names = ["id", "1,2", "a b", "New New", "#1", "b.png"] + (
        ["c\\d", "'e'"] if os.name == "posix" else []
    )
    tree.preds(*(f"{name}.png" for name in names)).gts(*(f"{name}.mat" for name in names))
    pairs = tree.pairs(split=tree.split("\n".join(names)))
    assert len(pairs) == len(names)
    tables = "a b.jpg\ta b.png\nNew New.jpg,New New.png\n1,2.jpg\t1,2.png"
    assert list(tree.pairs(split=tree.split(tables))) == ["1,2", "New New", "a b"]


# --- the file system


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights")
def test_linked_folders_are_followed(tree):
    tree.make(tree.root / "elsewhere", "a.png", "sub/b.png").gts("a.mat", "b.mat")
    tree.pred.symlink_to(tree.root / "elsewhere")
    (tree.pred / "self").symlink_to(tree.pred / "self")
    for name in ("here", "sub/up"):  # loops, of which two multiply
        (tree.pred / name).symlink_to(tree.pred)
    (tree.pred / "dangling").symlink_to(tree.root / "nothing")
    assert list(tree.pairs()) == ["a", "b"]


def test_a_folder_that_cannot_be_read_is_not_left_out(tree, monkeypatch):
    """A missing prediction may be counted as empty; one that was not seen must not."""
    tree.preds("a.png", "sub/b.png").gts("a.mat", "b.mat")

    def scandir(path, real=os.scandir):
        if os.path.basename(path) == "sub":
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    said = "pred/sub: cannot be read (Permission denied), expected a folder that can"
    assert tree.problems(missing="zero") == [said]


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="names that only Linux has")
def test_hostile_names_pair_and_stay_printable(tree):
    names = ["new\nline", "<b>&'\"", "..x", "esc\x1b[2J", "sur\udcff"]
    tree.preds(*(f"{n}.png" for n in names)).gts(*(f"{n}.mat" for n in names))
    assert len(found := tree.pairs()) == 4
    assert all(image_id.isprintable() for image_id in found)
    (tree.gt / "new\nline.mat").unlink()
    assert any("new\\nline" in line for line in tree.problems())


def test_natural_order_and_one_picture_of_a_name(tmp_path):
    names = ["2.png", "10.png", "a.png", "i9.png", "i10.png", "i\u0662.png", "x/b.jpg"]
    tree = Tree(tmp_path).make(tmp_path, *names[::-1])
    found = [p.name for p in find_files(tmp_path, (".png",))]
    assert found[:2] == ["2.png", "10.png"]
    assert found.index("i9.png") < found.index("i10.png")
    tree.make(tmp_path, "y/b.jpg")
    refused(r"x.b\.jpg and .*y.b\.jpg", find_photos, tmp_path, error=PairingError)
    assert list(find_photos(tmp_path, ["a"])) == ["a"]


def test_a_coco_file_in_place_of_a_folder_says_which_metric_reads_it(tree):
    tree.preds("a.png").gts("a.mat")
    annotations = tree.root / "instances.json"
    annotations.write_text("{}", "utf-8")
    for folders in ((annotations, tree.gt), (tree.pred, annotations)):
        refused("instances.json: is a file, .*COCO's JSON.*metrics contour", pair, *folders)
