"""Which files are one image's: annotators by any number, sequences by their folders."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bsdsbench.errors import PairingError
from bsdsbench.loaders.formats.pictures import natural_sort_key
from bsdsbench.loaders.pairing import Layout, group_files, pair


def made(root, *names):
    for name in names:
        path = Path(root, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return root


def truths_of(pairs, root):
    return {p.image_id: [q.relative_to(root).as_posix() for q in p.gt_paths] for p in pairs}


MARKS = ("_0", "_1"), ("_01", "_02"), ("-1", "-2"), (".1", ".2"), ("_gt1", "_gt2"), ("_a0", "_a1")
MARKS += (("_annotator2", "_annotator10"), ("_gt_1", "_gt_2"))


@pytest.mark.parametrize("missing", ["error", "zero", "skip"])
@pytest.mark.parametrize("by", ["preds", "split"])
@pytest.mark.parametrize("marks", MARKS)
def test_annotators_by_any_number(tmp_path, marks, by, missing):
    ids = ("11", "img_2", "c.v2")
    names = {i: [f"{i}{mark}.png" for mark in marks] for i in ids}
    pred, gt = made(tmp_path / "p", *(f"{i}.png" for i in ids)), tmp_path / "g"
    made(gt, *(name for group in names.values() for name in group[::-1]))
    pairs = pair(pred, gt, ids if by == "split" else None, missing)
    assert truths_of(pairs, gt) == names


@pytest.mark.parametrize("marks", MARKS)
def test_label_maps_by_any_number(tmp_path, marks):
    pred = made(tmp_path / "p", *(f"{i}{mark}.png" for i in "ab" for mark in marks))
    gt = made(tmp_path / "g", "a.mat", "b.mat")
    pairs = pair(pred, gt, pred_kind="labels")
    assert [[q.name for q in p.pred_paths] for p in pairs] == [
        [f"{i}{mark}.png" for mark in marks] for i in "ab"
    ]


@pytest.mark.parametrize("missing", ["error", "zero", "skip"])
@pytest.mark.parametrize("split", [None, ("7", "8")])
@pytest.mark.parametrize(
    "names",
    [
        ["7_1.png", "7_2.png", "7_bob.png", "8_1.png"],
        ["7_gt1.png", "7_2.png", "8_gt1.png"],
        ["7_1.png", "7-2.png", "8_1.png"],
        ["7.png", "7_0.png", "8.png"],
        ["7.png", "7_gt0.png", "8.png"],
        ["7/1.png", "7/2.png", "7_3.png", "8/1.png"],
    ],
)
def test_an_id_is_never_read_in_part(tmp_path, names, split, missing):
    pred, gt = made(tmp_path / "p", "7.png", "8.png"), made(tmp_path / "g", *names)
    with pytest.raises(PairingError, match=r"g: several files for: 7 \(1 in all\)"):
        pair(pred, gt, split, missing)


@pytest.mark.parametrize(
    "names",
    [
        ["0001_00012", "0001_00013"],
        ["000002_10", "000002_11", "000003_10"],  # KITTI
        ["4101_left_0382", "4101_left_0383", "4101_right_0382"],
        ["2007_000063", "2007_1", "2008_1"],
        ["img", "img_1", "img_2"],
    ],
)
@pytest.mark.parametrize("pred_kind", ["soft", "labels"])
def test_ids_with_numbers_at_their_end_stay_ids(tmp_path, names, pred_kind):
    pred = made(tmp_path / "p", *(f"{n}.png" for n in names))
    gt = made(tmp_path / "g", *(f"{n}.png" for n in names))
    for split in (None, names, names[1:]):
        pairs = pair(pred, gt, split, pred_kind=pred_kind)
        assert [p.image_id for p in pairs] == sorted(split or names)
        assert {len(p.gt_paths) for p in pairs} == {1}
    (pred / f"{names[0]}.png").unlink()
    assert len(pair(pred, gt, missing="zero", pred_kind=pred_kind)) == len(names)


@pytest.mark.parametrize("names", [["7_000", "7_001"], ["7_00010", "7_00011"], ["7_10", "7_11"]])
def test_frames_of_an_id_are_annotators_only_where_a_split_says_so(tmp_path, names):
    pred, gt = made(tmp_path / "p", "7.png"), made(tmp_path / "g", *(f"{n}.png" for n in names))
    with pytest.raises(PairingError, match=r"several files for: 7 .*with a split file"):
        pair(pred, gt)
    assert len(pair(pred, gt, ["7"])[0].gt_paths) == 2


IDS = st.lists(st.from_regex(r"[a-c]{1,2}([_.-]?[0-9]{1,2})?", fullmatch=True), min_size=1)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_all_files_of_an_id_or_an_error_that_names_it(tmp_path_factory, data):
    """However annotators are named and numbered, and whatever else lies in the folder."""
    ids = sorted(set(data.draw(IDS)))
    counts = {i: data.draw(st.integers(1, 3)) for i in ids}
    first, zeros = data.draw(st.integers(0, 1)), data.draw(st.integers(1, 2))
    word = data.draw(st.sampled_from(["_", "-", ".", "_gt", "_a", "/", "/ann"]))
    root = tmp_path_factory.mktemp("case")
    truth = {
        i: [f"{i}{word}{k:0{zeros}}.png" for k in range(first, first + n)]
        for i, n in counts.items()
    }
    preds = data.draw(st.sets(st.sampled_from(ids), min_size=1))
    split = data.draw(st.none() | st.just(sorted(preds)))
    missing = data.draw(st.sampled_from(["error", "zero", "skip"]))
    pred, gt = made(root / "p", *(f"{i}.png" for i in preds)), root / "g"
    made(gt, *(name for names in truth.values() for name in names))
    pairs, fault = dict[str, list[str]](), ""
    try:
        pairs = truths_of(pair(pred, gt, split, missing), gt)
    except PairingError as error:
        fault = str(error)
    if fault:
        assert any(i in fault for i in ids)
    else:
        assert {i: pairs[i] for i in preds} == {i: truth[i] for i in preds}


# --- sequences

FRAMES = ("A/00000.png", "A/00001.png", "B/00000.png", "B/00001.png", "B/00002.png")
PATHS = [name.removesuffix(".png") for name in FRAMES]


@pytest.mark.parametrize("gt_kind", ["annotators", "classes", "mask"])
def test_frames_that_repeat_over_the_same_folders_have_paths_as_ids(tmp_path, gt_kind):
    pred = made(tmp_path / "p" / "480p", *FRAMES)
    gt = made(tmp_path / "g", *FRAMES)
    for folder in (pred, tmp_path / "p"):
        pairs = pair(folder, gt, gt_kind=gt_kind)
        assert [p.image_id for p in pairs] == PATHS
    assert Layout.of_files(group_files(pred, gt).gt.files).describe() == "2 sequences"
    (pred / "A/00001.png").unlink()
    with pytest.raises(PairingError, match=r"no prediction for: A/00001 \(1 in all\)"):
        pair(pred, gt)
    assert pair(pred, gt, missing="zero")[1].pred_paths == ()
    assert pair(pred, gt, PATHS, "skip")[0].image_id == "A/00000"  # as a run names its images


def test_a_split_lists_frames_or_sequences(tmp_path):
    pred, gt = made(tmp_path / "p", *FRAMES), made(tmp_path / "g", *FRAMES)
    split = tmp_path / "s.txt"
    for lines, ids in (
        ("B\n", PATHS[2:]),
        ("A\nB/00001\n", [*PATHS[:2], PATHS[3]]),
        ("/Annotations/480p/A/00001.png\n", ["A/00001"]),
    ):
        split.write_text(lines)
        assert [p.image_id for p in pair(pred, gt, split)] == ids
    split.write_text("A\nC\nB/00009\n")
    with pytest.raises(PairingError, match="no ground truth for: B/00009, C "):
        pair(pred, gt, split)


def test_frames_or_label_maps_of_an_image_is_asked(tmp_path):
    pred, gt = made(tmp_path / "p", *FRAMES), made(tmp_path / "g", *FRAMES)
    with pytest.raises(PairingError, match=r"A/00000 may be a frame .* split file with ids as"):
        pair(pred, gt, pred_kind="labels")
    assert len(pair(pred, gt, PATHS, pred_kind="labels")) == 5
    assert [len(p.gt_paths) for p in pair(pred, gt, ["A", "B"], pred_kind="labels")] == [2, 3]


def test_sequences_are_asked_for_where_no_name_repeats(tmp_path):
    names = ["A/a_0.png", "A/a_1.png", "B/b_0.png"]
    pred, gt = made(tmp_path / "p", *names), made(tmp_path / "g", *names)
    assert [p.image_id for p in pair(pred, gt, gt_kind="classes")] == ["a_0", "a_1", "b_0"]
    ids = [p.image_id for p in pair(pred, gt, gt_kind="classes", sequences=True)]
    assert ids == ["A/a_0", "A/a_1", "B/b_0"]
    flat = made(tmp_path / "f", "a_0.png", "a_1.png", "b_0.png")
    with pytest.raises(PairingError, match=r"g: several folders, .*FRAME \(A/a_0 beside a_0\)"):
        pair(flat, gt, gt_kind="classes", sequences=True)


def test_the_layout_is_said(tmp_path):
    pred = made(tmp_path / "p", "7.png", "8.png")
    gt = made(tmp_path / "g", *(f"{i}_{k}.png" for i in "78" for k in range(5)))
    groups = group_files(pred, gt)
    assert Layout.of_files(groups.pred.files) == Layout()
    five = Layout.of_files(groups.gt.files).describe()
    assert five == "5 files per image: ID_0 .. ID_4"
    (gt / "7_4.png").unlink()
    made(gt, "9/x.png", "9/y.png")
    made(pred, "9.png")
    fewer = Layout.of_files(group_files(pred, gt).gt.files).describe()
    assert fewer == "2 to 5 files per image: ID_0 .. ID_4"


def test_numbers_are_sorted_by_value():
    assert sorted(["A/10", "A/9", "A/010"], key=natural_sort_key)[0] == "A/9"
