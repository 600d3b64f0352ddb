"""Found, missed and false objects: in scores, tables, files and by size."""

import csv
import json

import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.comparison.gate import Baseline
from bsdsbench.errors import DataError
from bsdsbench.metrics import registry
from bsdsbench.metrics.contour import ContourOptions
from bsdsbench.metrics.instances_metric import InstancesOptions, instance_counts
from bsdsbench.metrics.label_maps import LabelOptions
from bsdsbench.results.score_tables import score_tables
from tests.helpers.runs import call, write_maps


def lesions(*boxes, shape=(40, 60)):
    """A map with the numbers of boxes: (row, column, height, width)."""
    drawn = np.zeros(shape, np.int32)
    for k, (row, col, height, width) in enumerate(boxes, 1):
        drawn[row : row + height, col : col + width] = k
    return drawn


SMALL, MIDDLE, LARGE = (2, 2, 2, 2), (10, 5, 4, 5), (20, 20, 10, 20)
GT = [lesions(SMALL, MIDDLE, LARGE), lesions(MIDDLE), lesions()]
PRED = [
    lesions(MIDDLE, (21, 20, 10, 20), (2, 50, 3, 3)),
    lesions((30, 40, 4, 5)),
    lesions((1, 1, 2, 2)),
]


def made(**options):
    protocol = bb.Protocol.preset("masks").replace(options={"instances": options})
    items = [(f"c{k}", p, g) for k, (p, g) in enumerate(zip(PRED, GT, strict=True))]
    return bb.evaluate_items(items, protocol, "instances", name="mine", workers=1)


def test_objects_are_counted_by_hand():
    """Two of four are found, and three of five are false."""
    score = made().score("instances")
    assert (score.found, score.missed, score.false) == (2, 2, 3)
    assert (score.precision, score.recall) == (2 / 5, 2 / 4)


def test_the_table_says_so():
    (table,) = score_tables([made()])
    assert "mine: 2 found, 2 missed, 3 false." in table.note_lines
    plain = table.plain()
    assert [plain[k] for k in ("found", "missed", "false")] == [[2], [2], [3]]
    two = score_tables([made(), made(overlap="any")])[0]
    assert two.plain()["false"] == [3, 3]


def test_every_image_has_its_own():
    values = made().image_values("instances")[""]
    assert [values[k] for k in ("found", "missed", "false")] == [[2, 0, 0], [1, 1, 0], [1, 1, 1]]


def test_by_size_by_hand():
    """Below 10: one is missed, two are false; 10 to below 100: one of two; from 100: one found."""
    score = made(sizes=(10, 100)).score("instances")
    found = {name: (s.found, s.missed, s.false) for name, s in score.by_size.items()}
    assert found == {"below 10": (0, 1, 2), "10 to below 100": (1, 1, 1), "from 100": (1, 0, 0)}
    for k, key in enumerate(("found", "missed", "false")):
        assert sum(counts[k] for counts in found.values()) == score[key]
    assert score.by_size["10 to below 100"].recall == 0.5
    whole, plain = made(sizes=(10, 100)).score("instances"), made().score("instances")
    assert all(whole[key] == plain[key] for key in plain if key != "n_images")


def test_the_boundary_of_a_size_is_in_the_larger_class():
    counts = instance_counts(GT[0], GT[0], InstancesOptions(sizes=(4, 20)))
    assert counts.by_size[:, 0].tolist() == [[0, 0], [1, 1], [2, 2]]


@pytest.mark.parametrize("overlap", ["iou", "any", "one-to-one"])
@pytest.mark.parametrize("seed", range(5))
def test_sizes_add_up_to_all_objects(overlap, seed):
    rng = np.random.default_rng(seed)
    boxes = [np.column_stack([rng.integers(1, 30, (6, 2)), rng.integers(1, 9, (6, 2))])]
    boxes.append(boxes[0] + rng.integers(0, 2, (6, 4)))
    pred, gt = (lesions(*side.tolist()) for side in boxes)
    counts = instance_counts(pred, gt, InstancesOptions(overlap=overlap, sizes=(5, 9, 30), iou=0.2))
    assert counts.by_size.sum(axis=0).tolist() == counts.objects.tolist()


@pytest.mark.parametrize("sizes", [(0,), (100, 10), (10, 10), (2.5,), ("a",)])
def test_sizes_are_increasing_numbers_of_pixels(sizes):
    with pytest.raises(DataError, match="sizes"):
        made(sizes=sizes)


def test_sizes_are_parts_in_every_verb(tmp_path):
    write_maps(tmp_path / "pred", {f"c{k}": m.astype(np.uint8) for k, m in enumerate(PRED)})
    write_maps(tmp_path / "gt", {f"c{k}": m.astype(np.uint8) for k, m in enumerate(GT)})
    words = ("evaluate", tmp_path / "pred", "--gt", tmp_path / "gt", "--metrics", "instances")
    more = ("--set", "instances.sizes=10,100", "--quiet", "--workers", 1)
    table = call(*words, *more, "-o", tmp_path / "out", "--per-image", tmp_path / "images.csv")
    assert "2 found, 2 missed, 3 false" in table
    assert "from 100" in table
    with (tmp_path / "images.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [r["missed"] for r in rows if not r["part"]] == ["1.0", "1.0", "0.0"]
    assert [r["false"] for r in rows if r["part"] == "below 10"] == ["1.0", "0.0", "1.0"]
    stored = json.loads((tmp_path / "out" / "result.json").read_text())
    assert stored["scores"]["instances"]["missed"] == 2
    assert stored["scores"]["instances"]["by_size"]["from 100"]["found"] == 1
    run = bb.Evaluation.load(tmp_path / "out")
    assert Baseline.of(run).scores["instances.from 100.recall"] == 1


def test_instances_of_classes_are_counted_too():
    options = {"segmentation": {"classes": ("cat", "dog"), "unit": "instance"}}
    options["segmentation"] |= {"divisor": 1000, "first": 1}
    protocol = bb.Protocol.preset("masks").replace(options=options)
    gt, pred = (np.zeros((20, 30), np.int64) for _ in range(2))
    gt[:5, :5], gt[10:15, :5], gt[:5, 20:25] = 1001, 1002, 2001
    pred[:5, :5], pred[10:15, 10:15] = 1001, 2001
    run = bb.evaluate_items([("a", pred, gt)], protocol, "segmentation", workers=1, name="mine")
    score = run.score("segmentation")
    assert (score.found, score.missed, score.false) == (1, 2, 1)
    assert score.per_class["dog"].missed == 1
    (table, parts) = score_tables([run])
    assert "mine: 1 found, 2 missed, 1 false." in table.note_lines
    assert parts.plain()["false"] == [0, 1]


@pytest.mark.parametrize(
    ("metric", "options"),
    [("contour", ContourOptions), ("segmentation", LabelOptions), ("instances", InstancesOptions)],
)
def test_a_number_of_a_component_is_no_ignored_value(metric, options):
    """Void pixels have the value 2 in the file. The second of three components stays an object."""
    mask = np.minimum(lesions(SMALL, MIDDLE, LARGE), 1)
    truth = np.where(np.arange(60) == 59, 2, mask)
    instances = {} if metric == "instances" else {"unit": "instance"}
    counts = registry.get(metric).count(
        bb.Prediction("p", classes=mask),
        bb.GroundTruth("t", labels=truth),
        bb.Protocol(),
        options(components=8, ignore=2, **instances),
    )
    n_pairs = {
        "contour": lambda: counts["pairs"][:, 0],
        "segmentation": lambda: counts["tp"],
        "instances": lambda: counts["objects"][:1, 0],
    }[metric]()
    assert n_pairs.tolist() == [3]
