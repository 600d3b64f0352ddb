"""Which prediction belongs to which ground truth, and every fault at once."""

import os
import sys
from pathlib import Path

import pytest

from bsdsbench.files.errors import PairingError
from bsdsbench.loaders import Pair, ground_truths, pair, read_truth
from bsdsbench.loaders.pairing import find_files, read_split
from bsdsbench.loaders.photos import find_photos
from bsdsbench.protocol.protocol import Protocol
from tests.helpers.runs import refused


class Tree:
    """Makes empty files: pairing never opens them."""

    def __init__(self, root):
        self.root = root
        self.pred, self.gt = root / "pred", root / "gt"

    def pred_files(self, *names):
        self._make(self.pred, names)

    def gt_files(self, *names):
        self._make(self.gt, names)

    def _make(self, folder, names):
        for name in names:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()

    def split(self, *ids):
        (self.root / "ids.txt").write_text("\n".join(ids))

    def alone(self, **options):
        found = ground_truths(self.gt, **options)
        assert not any(p.pred_paths for p in found)
        return {p.image_id: [q.relative_to(self.gt).as_posix() for q in p.gt_paths] for p in found}

    def problems(self, **options):
        with pytest.raises(PairingError, match=r"\S") as caught:
            pair(self.pred, self.gt, **options)  # type: ignore[arg-type]
        assert str(caught.value) == "\n".join(caught.value.problems)
        assert all(line.isprintable() for line in caught.value.problems)
        return [line.replace(str(self.root) + os.sep, "") for line in caught.value.problems]

    def shape(self, **options):
        return {
            p.image_id: (
                [q.relative_to(self.pred).as_posix() for q in p.pred_paths],
                [q.relative_to(self.gt).as_posix() for q in p.gt_paths],
            )
            for p in pair(self.pred, self.gt, **options)  # type: ignore[arg-type]
        }


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


def test_any_mix_of_suffixes_and_folders_sorted_by_id(tree):
    tree.pred_files("b.png", "deep/er/a.mat", "c.v2.NPY", "notes.txt", ".hidden.png")
    tree.gt_files("a.mat", "x/b.mat", "c.v2.png", ".git/a.png", "Thumbs.db")
    assert tree.shape() == {
        "a": (["deep/er/a.mat"], ["a.mat"]),
        "b": (["b.png"], ["x/b.mat"]),
        "c.v2": (["c.v2.NPY"], ["c.v2.png"]),
    }


@pytest.mark.parametrize(
    "truths",
    [
        {"7": ["7_1.png", "7_2.png", "7_10.png"], "8": ["8_1.png"]},
        {"img_1": ["img_1_1.png", "img_1_2.png"], "img_2": ["img_2_1.png"]},
        {"7": ["test/7/ann.png", "test/7/bob.png"], "8": ["test/8/1.png", "test/8/2.png"]},
        {"7": ["color/1102/7.seg", "color/1105/7.seg"]},  # BSDS300
        {"a": ["a.png"], "a_1": ["a_1.png"], "a_2": ["a_2.png"]},
        {"1": ["7/1.png"], "2": ["7/2.png"], "7": ["7.png"]},
    ],
)
def test_the_ids_of_the_other_side_say_which_files_are_annotators(tree, truths):
    tree.pred_files(*(f"{image_id}.png" for image_id in truths))
    tree.gt_files(*(name for names in truths.values() for name in names[::-1]))
    assert {image_id: found[1] for image_id, found in tree.shape().items()} == truths
    tree.split(*truths)
    assert tree.alone(split_file=tree.root / "ids.txt") == truths


AMBIGUOUS = {
    "frames of a video": ["v1/0.png", "v1/1.png"],
    "frames with leading zeros": ["v1/00001.png", "v1/00002.png"],
    "frames in one folder": ["v1_00001.png", "v1_00002.png"],
    "an own file beside numbered ones": ["v1.png", "v1_1.png", "v1_2.png"],
    "an own file beside a folder": ["v1.png", "v1/ann.png", "v1/bob.png"],
    "color and gray": ["color/1102/v1.seg", "gray/1105/v1.seg"],
    "two suffixes": ["v1_1.png", "v1_2.mat"],
    "numbers in two folders": ["a/v1_1.png", "b/v1_2.png"],
    "folders of one name": ["a/v1/ann.png", "b/v1/bob.png"],
    "one file in two folders": ["a/v1.png", "b/v1.png"],
}


@pytest.mark.parametrize("missing", ["error", "skip"])
@pytest.mark.parametrize("names", AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_files_that_may_be_something_else_are_no_annotators(tree, names, missing):
    tree.pred_files("v1.png")
    tree.gt_files(*names)
    assert "v1" in tree.problems(missing=missing)[0]


def test_an_own_file_beside_numbered_ones_in_a_numbered_folder(tree):
    tree.pred_files("v1.png", "v2.png")
    tree.gt_files("v1.png", "v1_1.png", "v1_2.png", "v2_1.png", "v2_2.png")
    assert tree.problems()[0].startswith("v1: 3 files")


@pytest.mark.parametrize(
    "names", [["7_1.png", "7_2.png", "8_1.png"], ["7/a.png", "7/b.png", "8/a.png"]]
)
def test_ground_truth_outside_the_layout_is_not_passed_over(tree, names):
    tree.pred_files("7.png", "8.png")
    tree.gt_files(*names, "test/9.png")
    assert tree.problems()[0] == "pred: no prediction for: 9 (1 in all)"
    tree.pred_files("9.png")
    assert [len(gts) for _, gts in tree.shape().values()] == [2, 1, 1]


@pytest.mark.parametrize("names", list(AMBIGUOUS.values())[3:], ids=list(AMBIGUOUS)[3:])
def test_a_split_file_does_not_choose_between_two_layouts(tree, names):
    tree.pred_files("v1.png")
    tree.gt_files(*names)
    tree.split("v1")
    (line,) = tree.problems(split_file=tree.root / "ids.txt")
    assert line.startswith(f"v1: {len(names)} files (")
    with pytest.raises(PairingError, match="v1: "):
        ground_truths(tree.gt, tree.root / "ids.txt")


def test_a_split_file_says_that_a_folder_is_one_image(tree):
    tree.pred_files("v1.png")
    tree.gt_files("v1/0.png", "v1/1.png")
    tree.split("v1")
    assert tree.shape(split_file=tree.root / "ids.txt")["v1"][1] == ["v1/0.png", "v1/1.png"]


@pytest.mark.parametrize(
    "names",
    [
        ["train/a.mat", "val/b.mat", "val/c.mat"],
        ["val/1.png", "val/2.png"],
        ["img_5001.mat", "img_5002.mat"],  # NYUDv2
        ["RGB_001.png", "RGB_002.png"],  # BIPED
        ["2007_000063.png", "2007_000068.png", "2008_000002.png"],  # VOC
        ["aachen/aachen_1.png", "bonn/bonn_1.png"],
        ["7_1.png", "7_2.png"],
        ["7/7a.png", "7/7b.png"],
    ],
)
def test_ground_truth_alone_is_an_image_a_file(tree, names):
    tree.gt_files(*names)
    assert sorted(tree.alone().values()) == [[name] for name in names]


@pytest.mark.parametrize(
    "truths",
    [
        {"7": ["7/1.png", "7/2.png"], "8": ["8/1.png", "8/2.png", "8/3.png"]},
        {"7": ["color/1102/7.seg", "color/1105/7.seg"], "8": ["color/1102/8.seg"]},
    ],
)
def test_layouts_of_annotators_that_need_no_proof(tree, truths):
    tree.gt_files(*(name for names in truths.values() for name in names))
    assert tree.alone() == truths


@pytest.mark.parametrize(
    "names",
    [
        ["edges/12.png", "edges/31.png", "depth/12.png", "depth/31.png"],
        ["v1/0.png", "v1/1.png", "v2/0.png", "v2/1.png"],
        ["train/1.png", "train/2.png", "val/1.png", "val/2.png"],
        ["7/1.png", "8/1.png", "9.png"],
        ["color/1102/7.seg", "gray/1102/7.seg"],
    ],
)
def test_ground_truth_alone_is_not_grouped_by_a_guess(tree, names):
    tree.gt_files(*names)
    with pytest.raises(PairingError, match="2 files"):
        ground_truths(tree.gt)


@pytest.mark.parametrize("count", [0, 2])
@pytest.mark.parametrize("kind", ["mask", "lines", "oriented", "depth-map"])
def test_what_has_one_ground_truth_takes_no_other_number(kind, count):
    files = tuple(map(Path, ("a.npz", "b.npz")[:count]))
    fault = f"7: {count} ground-truth files, expected one"
    refused(fault, read_truth, Pair("7", (), files), kind, Protocol())


def test_a_missing_prediction_keeps_its_annotators_together(tree):
    tree.pred_files("7.png")
    tree.gt_files("7/1.png", "7/2.png", "8/1.png", "8/2.png")
    assert tree.problems() == ["pred: no prediction for: 8 (1 in all)"]
    assert tree.shape(missing="zero")["8"] == ([], ["8/1.png", "8/2.png"])
    assert list(tree.shape(missing="skip")) == ["7"]


def test_label_maps_of_one_image_in_a_folder(tree):
    tree.pred_files("7/1.png", "7/2.png", "8/1.png")
    tree.gt_files("7.mat", "8.mat")
    assert tree.shape(pred_kind="labels")["7"][0] == ["7/1.png", "7/2.png"]
    assert "pred: no prediction for: 7, 8 (2 in all)" in tree.problems(pred_kind="soft")


def test_every_fault_at_once(tree):
    tree.pred_files("a.png", "a.mat", "b.png", "x.png")
    tree.gt_files("a.mat", "b.mat", "b/b.mat", "c.mat")
    first, second, *others = tree.problems()
    assert first == "a: 2 files (pred/a.mat, pred/a.png), expected one".replace("/", os.sep)
    assert second.startswith("b: 2 files (gt/b.mat, gt/b/b.mat), expected".replace("/", os.sep))
    assert others == [
        "pred: no prediction for: c (1 in all)",
        "pred: predictions without ground truth: x (1 in all)",
    ]


def test_long_lists_are_cut(tree):
    tree.pred_files("00.png")
    tree.gt_files(*(f"{k:02}.mat" for k in range(31)))
    (line,) = tree.problems()
    assert line.endswith("09, 10 and 20 more (30 in all)")


def test_split_file_chooses(tree):
    tree.pred_files("a.png", "b.png", "extra.png", "extra.mat")
    tree.gt_files("a.mat", "b.mat", "c.mat", "d.mat")
    split = tree.root / "ids.txt"
    split.write_bytes(b"\xef\xbb\xbf# wanted\r\n\r\nb\r\n images/test/a.jpg \r\nb\r\n")
    assert list(tree.shape(split_file=split)) == ["a", "b"]
    split.write_text("a\nc\nzz\n../../d\n")
    assert tree.problems(split_file=split) == [
        "pred: no prediction for: c, d (2 in all)",
        "gt: no ground truth for: zz (1 in all)",
    ]


def test_split_file_faults(tree):
    tree.pred_files("a.png")
    tree.gt_files("a.mat")
    split = tree.root / "ids.txt"
    assert tree.problems(split_file=split) == [
        "ids.txt: cannot be opened (No such file or directory)"
    ]
    split.write_text("# nothing\n\n")
    assert tree.problems(split_file=split) == ["ids.txt: lists no image, expected one id per line"]
    split.write_bytes(b"\xff\xfe\x00")
    assert tree.problems(split_file=split) == ["ids.txt: not UTF-8 text, expected one id per line"]


def test_split_keeps_its_order(tmp_path):
    (tmp_path / "ids.txt").write_text("10\n2\n10.png\n1\\3.jpg\n")
    assert read_split(tmp_path / "ids.txt") == ["10", "2", "3"]


def test_wrong_paths_of_both_sides(tree):
    tree.root.joinpath("pred").touch()
    assert tree.problems() == [
        "pred: is a file, expected the folder that holds it",
        "gt: no such folder",
    ]


def test_empty_folders(tree):
    tree.pred_files("readme.txt")
    tree.gt.mkdir()
    first, second = tree.problems()
    assert first.startswith("pred: no predictions, expected files .png, .tif")
    assert second.endswith(".dpt, .seg")


def test_nothing_in_common_shows_both_ways_of_naming(tree):
    tree.pred_files("a_pred.png", "b_pred.png")
    tree.gt_files("a.mat", "b.mat")
    assert tree.problems()[-1] == (
        "no name is on both sides: predictions are named a_pred, b_pred; ground truth a, b"
    )
    assert tree.problems(missing="skip")[-1].startswith("no name is on both sides")


def test_a_ground_truth_of_all_splits_is_hinted_at(tree):
    tree.pred_files("a.png")
    tree.gt_files("test/a.mat", "train/b.mat", "val/c.mat")
    assert tree.problems()[-1] == (
        "gt: holds the folders test, train, val; give one of them, or a split file"
    )


def test_no_prediction_at_all(tree):
    tree.pred_files("a.png")
    tree.gt_files("a.mat", "b.mat")
    (tree.root / "ids.txt").write_text("b\n")
    (line,) = tree.problems(split_file=tree.root / "ids.txt", missing="zero")
    assert line == "pred: no prediction for any image, expected at least one"


def test_unknown_policy():
    with pytest.raises(ValueError, match="missing 'maybe': expected one of error, zero, skip"):
        pair(".", ".", missing="maybe")


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights")
def test_links_in_a_circle_end(tree):
    tree.pred_files("a.png", "sub/b.png")
    tree.gt_files("a.mat", "b.mat")
    (tree.pred / "sub" / "up").symlink_to(tree.pred)
    (tree.pred / "self").symlink_to(tree.pred / "self")
    (tree.pred / "dangling").symlink_to(tree.root / "nothing")
    assert list(tree.shape()) == ["a", "b"]


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights")
def test_a_linked_folder_is_followed(tree):
    tree.gt_files("a.mat")
    (tree.root / "elsewhere").mkdir()
    (tree.root / "elsewhere" / "a.png").touch()
    tree.pred.symlink_to(tree.root / "elsewhere")
    assert tree.shape() == {"a": (["a.png"], ["a.mat"])}


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="names that only Linux has")
def test_hostile_names_pair_and_stay_printable(tree):
    names = ["new\nline", "<b>&'\"", "..x", "esc\x1b[2J"]
    visible = [n for n in names if not n.startswith(".")]
    tree.pred_files(*(f"{n}.png" for n in names))
    tree.gt_files(*(f"{n}.mat" for n in names))
    found = pair(tree.pred, tree.gt)
    assert len(found) == len(visible)
    assert all(p.image_id.isprintable() and p.image_id.encode() for p in found)
    for name in names:
        (tree.gt / f"{name}.mat").unlink()
    tree.gt_files("other.mat")
    assert any("new\\nline" in line for line in tree.problems())
    tree.pred_files("sur\udcff.png")
    assert any("not UTF-8" in line for line in tree.problems())


def test_natural_order(tmp_path):
    for name in ("i10.png", "i9.png", "i\u0662.png", "10.png", "2.png", "a.png"):
        (tmp_path / name).touch()
    names = [p.name for p in find_files(tmp_path, (".png",))]
    assert names.index("2.png") < names.index("10.png") < names.index("i9.png")
    assert names.index("i9.png") < names.index("i10.png")


def test_unreadable_folder_is_one_line(tree, monkeypatch):
    tree.pred_files("a.png")
    tree.gt_files("a.mat")

    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "scandir", refuse)
    assert tree.problems() == [
        "pred: cannot be listed (Permission denied)",
        "gt: cannot be listed (Permission denied)",
    ]


def test_ground_truth_alone_lacks_an_id_or_a_folder(tree):
    tree.gt_files("7_1.png", "7_2.png", "8_1.png", "8_2.png")
    tree.split("8", "9")
    refused("9", ground_truths, tree.gt, tree.root / "ids.txt", error=PairingError)
    refused("none", ground_truths, tree.root / "none", error=PairingError)
    assert [len(p.gt_paths) for p in ground_truths(tree.gt, ids=("7", "8"))] == [2, 2]


@pytest.mark.parametrize(
    ("names", "kept"),
    [
        (["cat/a.png", "dog/a.png"], True),
        (["class_001/a.png", "class_002/sub/a.png"], True),
        (["cat/a.png", "dog/b.png"], False),
        (["cat/x/a.png", "cat/y/a.png", "dog/b.png"], False),
    ],
)
def test_a_folder_for_each_class(tree, names, kept):
    tree.pred_files(*names)
    tree.gt_files("a.mat")
    options = {"pred_kind": "classes", "gt_kind": "classes", "classes": ("cat", "dog")}
    if kept:
        assert tree.shape(**options)["a"][0] == names
    else:
        assert "a: " in tree.problems(**options)[0]


def test_two_pictures_of_one_name_are_refused_where_one_is_wanted(tmp_path):
    for name in ("x/a.jpg", "y/a.jpg", "x/b.jpg"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    refused(r"x.a\.jpg and .*y.a\.jpg", find_photos, tmp_path, error=PairingError)
    assert list(find_photos(tmp_path, ["b"])) == ["b"]


@pytest.mark.parametrize(("count", "more"), [(9, 0), (10, 0), (11, 1), (13, 3)])
def test_ten_doubled_ids_are_named(tree, count, more):
    tree.pred_files(*(f"{k:02}.png" for k in range(count)))
    tree.gt_files(*(f"{k:02}.{e}" for k in range(count) for e in ("mat", "png")))
    lines = tree.problems()
    assert len(lines) == min(count, 10) + (more > 0)
    assert lines[0].startswith("00: 2 files (")
    assert (lines[-1] == f"and {more} more doubled ids") == (more > 0)
