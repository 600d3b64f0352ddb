"""Groups of images: tables in every form, their faults, parts of a column, and who carries them."""

import json
from dataclasses import replace

import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.errors import DataError
from bsdsbench.results.groups import frames_note, group_rows, image_clusters, partition
from bsdsbench.results.storage import pack_record, unpack_record
from bsdsbench.scores.counts import ImageRecord
from tests.helpers.runs import call, counted, refused, write_maps
from tests.helpers.simulated import simulated_run

IDS = ("s1_01", "s1_02", "s2_01")
ROWS = {
    "s1_01": {"scene": "s1", "size": 10.0},
    "s1_02": {"scene": "s1", "size": 20.5},
    "s2_01": {"scene": "s2", "size": None},
}
TEXT = "image,scene,size\ns1_01,s1,10\ns1_02,s1,20.5\ns2_01,s2,\n"


def records(**columns):
    """A record for each place of columns of groups."""
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return [ImageRecord(f"{k:03}", (1, 1), groups=row) for k, row in enumerate(rows)]


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        "\ufeff" + TEXT.replace(",", ";").replace("\n", "\r\n"),
        TEXT.replace(",", "\t"),
        'name, "scene" , size\nval/s1_01.png,s1,10\n\ns2_01.png,s2,nan\ns1_02.mat,s1,2.05e1\n',
        "scene,size,id\ns1,10,s1_01\ns1,20.5,s1_02\ns2,,s2_01\n",
        TEXT.replace("image", ""),  # an index of pandas without a name
        TEXT.replace("image", ",image").replace("s1_", "0,s1_").replace("s2_", "1,s2_"),
        TEXT.replace(",", ";").replace(".", ","),
        TEXT.replace("s2,", "s2,NA"),  # by R
        "# by scene\n" + TEXT.replace("image", "Image").replace("\n", ",\n"),
        "# by scene\nscene;Image;size\ns1;s1_01;10\ns1;s1_02;20,5\ns2;s2_01;\n",
    ],
)
def test_a_csv_table_in_the_forms_that_programs_write(text, tmp_path):
    path = tmp_path / "groups.csv"
    path.write_bytes(text.replace("nan", "").encode())
    assert group_rows(IDS, path) == ROWS


def test_mappings_and_data_frames_are_the_same_table():
    lists = {c: [ROWS[i][c] for i in IDS] for c in ("scene", "size")}
    assert group_rows(IDS, ROWS) == ROWS
    assert group_rows(IDS, dict(zip(IDS, "aab", strict=True)))["s2_01"] == {"group": "b"}
    pd = pytest.importorskip("pandas")
    assert group_rows(IDS, pd.DataFrame(lists, index=IDS)) == ROWS
    assert group_rows(IDS, pd.DataFrame({"ID": IDS, **lists})) == ROWS
    nullable = pd.DataFrame({"id": IDS, **lists}).astype({"size": "Float64"})
    assert group_rows(IDS, nullable) == ROWS
    twice = pd.DataFrame([[1, 2]] * 3, columns=["a", "a"], index=IDS)
    refused("'a' is there twice", group_rows, IDS, twice)
    levels = pd.DataFrame(lists, index=pd.MultiIndex.from_arrays([IDS, IDS]))
    refused("index of several levels", group_rows, IDS, levels)


@pytest.mark.parametrize("as_key", [int, "{}.png".format, "val/{}".format, "val\\{}.mat".format])
def test_ids_that_are_numbers_or_file_names_are_not_taken_for_columns(as_key):
    groups = {as_key(7): {"scene": "a", 2: 1}, as_key(12): {"scene": "b"}}
    rows = {"7": {"scene": "a", "2": 1.0}, "12": {"scene": "b", "2": None}}
    assert group_rows(["7", "12"], groups) == rows


def test_a_regular_expression_names_its_columns():
    rows = group_rows(IDS, group_by=r"(?P<scene>s\d)_(?P<frame>\d+)")
    assert rows["s1_02"] == {"scene": "s1", "frame": "02"}  # with zeros before it: text
    both = group_rows(IDS, {i: {"light": "day"} for i in IDS}, r"(?P<scene>s\d)_")
    assert both["s2_01"] == {"light": "day", "scene": "s2"}
    short = group_rows(["s1_01", "s2_01"], group_by="(?P<scene>s.)_")
    assert short == {"s1_01": {"scene": "s1"}, "s2_01": {"scene": "s2"}}


@pytest.mark.parametrize(
    ("groups", "group_by", "words"),
    [
        ({"s1_01": "a", "s1_02": "b"}, None, "no row for 1 of 3 images: s2_01"),
        ({**dict.fromkeys(IDS, "a"), "s9": "b"}, None, "1 rows have no image: s9"),
        ({**dict.fromkeys(IDS, "a"), "s1_01.png": "b"}, None, "several rows: s1_01"),
        ({i: {"scene": "a"} for i in IDS}, "(?P<scene>s.)", "'scene' is there twice"),
        ({"image": list(IDS), "a": [1, 2, 3]}, None, "no row for 3 of 3 images"),
        ({i: float("inf") for i in IDS}, None, "column 'group': inf, expected finite"),
        (3, None, "groups: 3, expected a CSV file, a mapping or a data frame of pandas"),
        (None, "s(.)", "names no group"),
        (None, "(?P<a>s1)_", "is not found in s2_01"),
        (None, "(?P<a>", "expected a regular expression"),
    ],
)
def test_what_is_no_row_for_each_image_is_refused(groups, group_by, words):
    with pytest.raises(DataError) as caught:
        group_rows(IDS, groups, group_by)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("image,scene,scene\na,1,2\n", "column 'scene' is there twice"),
        ("image,scene\na,1,2\n", "line 2: 3 columns, expected 2"),
        ("image\na\n", "expected a header"),
        ("image,\na,1\n", "expected a header"),
        (",image,\n0,a,1\n", "expected a header"),
        ("\xff\xfd", "not UTF-8"),
    ],
)
def test_a_broken_file_is_named(text, words, tmp_path):
    path = tmp_path / "groups.csv"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(DataError) as caught:
        group_rows(IDS, path)
    assert words in str(caught.value)
    assert str(path) in str(caught.value)


def test_numbers_are_cut_at_quartiles_or_where_one_says():
    images = records(size=[float(k) for k in range(8)], text=list("bbaa1122"))
    quarters = partition(images, "size")
    assert quarters.names == ("[0, 1.75)", "[1.75, 3.5)", "[3.5, 5.25)", "[5.25, 7]")
    assert quarters.members.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    cut = partition(images, "size=2,4,100")
    assert cut.names == ("below 2", "[2, 4)", "[4, 100)")
    assert cut.members.tolist() == [0, 0, 1, 1, 2, 2, 2, 2]
    from_zero = partition(records(size=[100.0 * k for k in range(6)]), "size=0,300")
    assert from_zero.names == ("[0, 300)", "[300, inf)")
    assert from_zero.members.tolist() == [0, 0, 0, 1, 1, 1]
    assert partition(images, "size=each").names == tuple("01234567")
    assert partition(images, "text").names == ("1", "2", "a", "b")
    assert cut.weights().sum(axis=0).tolist() == [1] * 8
    for words in ("size=", "size=4,2", "size=a", "size=0,x"):
        if words != "size=":
            refused("expected numbers that rise", partition, images, words)
    refused("text, expected numbers to cut", partition, images, "text=1,2")
    refused("expected one of size, text", partition, images, "light")
    refused("have no groups", partition, records(a=[]) or [ImageRecord("a", (1, 1))], "light")


def test_quartiles_make_no_empty_range():
    """The lower quartile is 2, and no number lies between it and the median, 5."""
    images = records(size=[1.0, 1.0, 1.0, 5.0, 5.0, 5.0, 5.0, 6.0, 7.0, 8.0])
    groups = partition(images, "size")
    assert groups.names == ("[1, 5)", "[5, 5.75)", "[5.75, 8]")
    assert groups.members.tolist() == [0, 0, 0, 1, 1, 1, 1, 2, 2, 2]


def test_few_numbers_and_lacking_values_are_groups_as_they_are():
    images = records(year=[2019.0, 2021.0, None, 2019.0], name=["s10", "s2", None, "s2"])
    assert partition(images, "year").names == ("2019", "2021", "no value")
    assert partition(images, "name").names == ("s2", "s10", "no value")
    refused("no value for 002", image_clusters, images, "name")
    fault = "no value for 000, 002.*if n/a is a cluster"
    refused(fault, image_clusters, records(name=["n/a", "b", "n/a", "c"]), "name")


def test_clusters_are_numbered_as_they_occur():
    groups = image_clusters(records(scene=list("cabca")), "scene")
    assert (groups.names, groups.members.tolist()) == (("c", "a", "b"), [0, 1, 2, 0, 1])


@pytest.mark.parametrize(
    ("ids", "is_said"),
    [
        ([f"s{k}_{f:03}" for k in range(3) for f in range(3)], True),
        ([f"SEQ{k}/{f:05}" for k in range(2) for f in range(4)], True),
        ([f"city_{k}_{f}_left" for k in "ab" for f in range(3)] + ["x", "y"], True),
        ([f"s{k}_{f}" for k in range(5) for f in range(2)], False),  # two each
        ([f"case_{k:03}" for k in range(40)], False),  # one sequence: numbered images
        ([f"{k}" for k in (3096, 8023, 12084, 14037, 16077)], False),  # as BSDS500 has them
        ([f"s{k}_{f}" for k in "ab" for f in range(3)] + list("uvwxyz"), False),  # not most
    ],
)
def test_names_of_frames_get_one_line(ids, is_said):
    note = frames_note([ImageRecord(i, (1, 1)) for i in ids])
    assert bool(note) == is_said
    assert "\n" not in note


# ---- who carries them ---------------------------------------------------------------------------

MAPS = {i: np.roll(np.eye(24), k, 1) for k, i in enumerate(IDS)}


@pytest.fixture
def folders(tmp_path):
    """Folders of predictions and of ground truth, and a table of groups."""
    (tmp_path / "groups.csv").write_text(TEXT, "utf-8")
    edges = {i: (m > 0).astype(np.uint8) * 255 for i, m in MAPS.items()}
    return [write_maps(tmp_path / side, edges) for side in ("pred", "gt")]


def groups_of(run):
    return {r.image_id: dict(r.groups) for r in run.records}


def test_a_run_keeps_them_whichever_way_it_goes(folders, tmp_path):
    table = tmp_path / "groups.csv"
    whole = counted(*folders, groups=table, out=tmp_path / "out")
    parts = [counted(*folders, groups=table, shard=(k, 2)) for k in (1, 2)]
    items = [(i, m, [m > 0]) for i, m in MAPS.items()]
    stream = bb.StreamingEvaluator(groups=table)
    updated = bb.StreamingEvaluator()
    for image_id, pred, gts in items:
        stream.update(pred, gts, image_id=image_id)
        updated.update(pred, gts, image_id=image_id, groups=ROWS[image_id])
    batch = bb.StreamingEvaluator()
    columns = {c: [ROWS[i][c] for i in IDS] for c in ("scene", "size")}
    batch.update([m for _, m, _ in items], [g for *_, g in items], list(IDS), columns)
    runs = [
        whole,
        bb.Evaluation.load(tmp_path / "out"),
        bb.merge(parts),
        counted(*folders, groups=table, executor="process"),
        counted(*folders, groups=table, out=tmp_path / "out"),  # kept records
        bb.evaluate_items(items, groups=ROWS, workers=1),
        stream.compute(),
        updated.compute(),
        batch.compute(),
        whole.with_groups(ROWS),  # again: the same values
    ]
    assert [groups_of(run) for run in runs] == [ROWS] * len(runs)
    shared = (
        bb.Evaluation.load(whole.share(tmp_path / "a.npz")) if hasattr(whole, "share") else whole
    )
    assert groups_of(shared) == ROWS
    stored = json.loads((tmp_path / "out" / "result.json").read_text("utf-8"))
    assert [row["groups"] for row in stored["images"]] == list(ROWS.values())


def test_shards_of_other_tables_are_not_merged(folders):
    first = counted(*folders, group_by="(?P<scene>s.)", shard=(1, 2))
    second = counted(*folders, group_by="(?P<place>s.)", shard=(2, 2))
    refused("its columns of groups differs", bb.merge, [first, second])


def test_a_fault_of_the_table_comes_before_images_are_counted(folders, tmp_path):
    seen = []
    (tmp_path / "groups.csv").write_text("image,scene\ns1_01,a\n", "utf-8")
    with pytest.raises(DataError, match="no row for 2 of 3 images"):
        counted(*folders, groups=tmp_path / "groups.csv", progress=lambda *step: seen.append(step))
    assert not seen


def test_a_split_needs_the_rows_of_its_images_alone(folders, tmp_path):
    (tmp_path / "split.txt").write_text("s1_01\ns2_01\n", "utf-8")
    run = counted(*folders, groups=tmp_path / "groups.csv", split_file=tmp_path / "split.txt")
    assert groups_of(run) == {i: ROWS[i] for i in ("s1_01", "s2_01")}
    assert groups_of(run.with_groups(ROWS)) == groups_of(run)


def test_images_that_are_left_out_may_have_rows(folders, tmp_path):
    (folders[0] / "s1_02.png").unlink()
    run = counted(*folders, groups=tmp_path / "groups.csv", missing="skip", out=tmp_path / "o")
    assert [*groups_of(run)] == ["s1_01", "s2_01"]
    loaded = bb.Evaluation.load(tmp_path / "o")
    assert groups_of(loaded.with_groups(tmp_path / "groups.csv")) == groups_of(run)


def test_other_values_of_a_column_are_refused():
    run = simulated_run("a", 3).with_groups({f"im000{k}": {"scene": "a"} for k in range(3)})
    refused("another value", run.with_groups, {f"im000{k}": {"scene": "b"} for k in range(3)})


def test_a_record_packs_its_groups():
    record = replace(
        simulated_run("a", 1).records[0], groups={"scene": "é", "size": 1.5, "x": None}
    )
    assert dict(unpack_record(pack_record(record)).groups) == {"scene": "é", "size": 1.5, "x": None}


def test_images_tables_have_the_columns(folders, tmp_path):
    table = tmp_path / "groups.csv"
    call("evaluate", folders[0], "--gt", folders[1], "--groups", table, "-o", tmp_path / "out",
         "--per-image", tmp_path / "images.csv", "--workers", 1)  # fmt: skip
    lines = (tmp_path / "images.csv").read_text("utf-8").splitlines()
    assert lines[0].startswith("image,scene,size,ods")
    assert lines[3].startswith("s2_01,s2,,1.0")
    run = bb.Evaluation.load(tmp_path / "out")
    assert run.per_image("boundary").plain()["scene"] == ["s1", "s1", "s2"]


def test_the_torchmetrics_adapter_carries_them():
    pytest.importorskip("torchmetrics")
    from bsdsbench.integrations.torchmetrics import BenchmarkMetric

    named, updated = BenchmarkMetric(groups=ROWS), BenchmarkMetric()
    for image_id, m in MAPS.items():
        named.update(m, [m > 0], image_id=image_id)
        updated.update(m, [m > 0], image_id=image_id, groups=ROWS[image_id])
    assert groups_of(named.evaluation()) == groups_of(updated.evaluation()) == ROWS
