"""Which runs may be compared: ground truth of every kind, NMS, numbers, means over fewer values."""

from dataclasses import replace

import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.comparison.comparable import comparable
from bsdsbench.comparison.gate import Baseline, check
from bsdsbench.detectors.nms_folder import nms_files
from bsdsbench.metrics import registry
from bsdsbench.metrics.contour import ContourOptions
from tests.helpers.crops import crops
from tests.helpers.metric_cases import case_of
from tests.helpers.runs import counted
from tests.helpers.simulated import simulated_run

TEN = bb.Protocol.preset("bsds500").replace(thresholds=10)


def moved(value):
    """Every array of a ground truth, its lines too, by a pixel; the picture stays."""
    if isinstance(value, tuple):
        return tuple(map(moved, value))
    if isinstance(value, np.ndarray):
        return np.roll(value, 1, -1) if value.any() else np.eye(*value.shape, dtype=value.dtype)
    return replace(value, ends=value.ends + 1) if hasattr(value, "ends") else value


@pytest.mark.parametrize("metric", [m for m in registry.names() if m in registry.BUILT_IN])
def test_runs_on_other_ground_truth_are_not_compared(metric):
    case = case_of(metric)
    (pred, truth), *_ = case.images
    protocol = (case.protocol or bb.Protocol.preset("masks")).replace(empty_gt="count")
    names = truth.parts.keys() - {"photo"}
    other = truth.replace(**{name: moved(truth.parts[name]) for name in names})
    a, b, same = (
        bb.evaluate_items([("a", pred, gt)], protocol, metrics=(metric,), name=name, workers=1)
        for name, gt in (("a", truth), ("b", other), ("c", truth))
    )
    stream = bb.StreamingEvaluator(protocol, metrics=(metric,))
    stream.update(pred, truth, image_id="a")
    assert a.records[0].truth == stream.compute().records[0].truth != ""
    assert check(same, Baseline.of(a)).passed
    for run in (lambda: bb.compare([a, b], n_boot=2), lambda: check(b, Baseline.of(a))):
        with pytest.raises(bb.DataError, match="ground truth of image 'a'"):
            run()
    forced = bb.compare([a, b], n_boot=2, force=True)
    assert any("ground truth of image 'a'" in note for note in forced.notes)


SIX = ("fruit1", "herd2", "lake1", "leaves1", "reef1", "town1")


def test_nms_is_said_and_not_punished(tmp_path):
    raw, gt = crops(tmp_path, "structure-tensor-raw", SIX)
    nms_files(raw, tmp_path / "thin", TEN)
    before = replace(counted(tmp_path / "thin", gt, TEN), name="before")
    by_flag = replace(counted(raw, gt, TEN.replace(nms=True)), name="flag")
    assert by_flag.scores() == before.scores()
    for test in ("bootstrap", "permutation"):
        found = bb.compare([before, by_flag], n_boot=8, test=test)
        assert {d.value for d in found.differences if not np.isnan(d.value)} == {0}
        assert any("edge NMS: none / hed" in note for note in found.notes)
    assert any("edge NMS" in note for note in check(by_flag, Baseline.of(before)).notes)
    assert "|nms:hed|" in str(by_flag.signature)


def of_disks(name, found):
    """Ten images of one disk each, of which the first `found` are predicted, two pixels off."""
    y, x = np.mgrid[:30, :30]
    disk = ((y - 15) ** 2 + (x - 15) ** 2 < 64).astype(np.uint8)
    maps = [np.roll(disk, 2, 1) * (k < found) for k in range(10)]
    protocol = bb.Protocol(options={"contour": ContourOptions(groups=("distance", "davis"))})
    items = [(str(k), pred, disk) for k, pred in enumerate(maps)]
    return bb.evaluate_items(items, protocol, metrics=("contour",), name=name, workers=1)


def test_means_over_fewer_values_are_said():
    every, few = of_disks("every", 10), of_disks("few", 1)
    assert every.scores()["contour"]["hd"] == few.scores()["contour"]["hd"] == 2
    compared, checked = bb.compare([every, few], n_boot=5), check(few, Baseline.of(every))
    assert "iou" not in str([*compared.coverage])
    for notes in (compared.tables()[0].note_lines, checked.notes):
        (line,) = [note for note in notes if "means over" in note]
        assert "HD" in line
        assert "IoU" not in line
        assert {"10", "1"} <= set(line.replace(",", " ").split())
    same = bb.compare([every, replace(every, name="twin")], n_boot=5)
    assert not same.coverage
    assert not any("HD" in line for line in compared.only(["iou"]).tables()[0].note_lines)


def test_a_dropped_image_names_the_runs_that_lack_it():
    a = simulated_run("a", 4, quality=0.2, seed=3)
    b = replace(a, name="b", records=a.records[1:])
    c = replace(a, name="c", records=a.records[:-1])
    first, last = a.image_ids[0], a.image_ids[-1]
    dropped = [dict(run.failed) for run in comparable([a, b, c], common=True).runs]
    expected = {first: "not in b", last: "not in c"}
    assert dropped == [expected, {last: "not in c"}, {first: "not in b"}]


def test_runs_without_a_common_metric_are_not_to_be_forced():
    mask = np.eye(9, dtype=bool)
    contours = bb.evaluate_items([("im0000", mask, mask)], metrics="contour", name="m", workers=1)
    for force in (False, True):
        with pytest.raises(bb.DataError, match="a has boundary; m has contour; expected") as error:
            bb.compare([simulated_run("a", 1), contours], force=force)
        assert "force" not in str(error.value)
