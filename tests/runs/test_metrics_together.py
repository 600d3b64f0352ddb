"""Each metric of a run reads the files, and asks of the whole set, what it does alone."""

import re
import sys
from itertools import permutations

import imageio.v3 as iio
import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.cli import main
from tests.helpers.runs import FAST

MASKS = bb.Protocol.preset("masks")
OF_LABELS = "contour", "segmentation", "instances"
PIECES = "has one number, {}, for several pieces"


def nuclei(value, n=3, pieces=2, side=24):
    """Images of pieces of one value, and predictions moved by a row."""
    for k in range(n):
        drawn = np.zeros((side, side + 6), np.uint8)
        drawn[2:8, 3 : 9 + k] = value
        drawn[12:18, 14:20] = value * (pieces - 1)
        yield f"n{k}", np.roll(drawn, 1, 0), drawn


def numbered(n=3):
    """The same with a number for each piece."""
    for image_id, pred, drawn in nuclei(1, n):
        below = np.arange(len(drawn))[:, np.newaxis] > 9
        yield image_id, pred * (1 + below), drawn * (1 + below)


def with_options(**options):
    return MASKS.replace(options=options)


def written(folder, items):
    """The folders of both sides."""
    folders = folder / "pred", folder / "gt"
    for path in folders:
        path.mkdir()
    for image_id, *maps in items:
        for path, drawn in zip(folders, maps, strict=True):
            iio.imwrite(path / f"{image_id}.png", drawn)
    return folders


def in_one(items, metrics, _):
    return bb.evaluate_items(list(items), MASKS, metrics, **FAST)


def in_iterator(items, metrics, _):
    return bb.evaluate_items(items, MASKS, metrics, **FAST)


def in_stream(items, metrics, _):
    stream = bb.StreamingEvaluator(MASKS, metrics=metrics)
    for image_id, pred, truth in items:
        stream.update(pred, truth, image_id)
    return stream.compute()


def in_shards(items, metrics, folder):
    """Each shard is saved and read back."""
    sides, parts = written(folder, items), []
    for part in (1, 2, 3):
        out = folder / f"part{part}"
        bb.evaluate(*sides, MASKS, metrics=metrics, shard=(part, 3), out=out, **FAST)
        parts.append(bb.Evaluation.load(out))
    return bb.merge(parts)


@pytest.mark.parametrize("way", [in_one, in_iterator, in_stream, in_shards])
@pytest.mark.parametrize("metrics", [*permutations(OF_LABELS, 2), OF_LABELS])
@pytest.mark.parametrize("value", [255])
def test_masks_in_pieces_are_refused_wherever_instances_are_asked_for(
    value, metrics, way, tmp_path
):
    if "instances" not in metrics:
        assert way(nuclei(value), metrics, tmp_path)
        return
    with pytest.raises(bb.DataError) as refused:
        way(nuclei(value), metrics, tmp_path)
    lines = str(refused.value).splitlines()
    assert len(lines) == 2  # a side each
    for line, side in zip(lines, ("prediction", "ground truth"), strict=True):
        assert f"its {side}, like all others, {PIECES.format(value)}" in line
        assert "instances.components=8" in line


@pytest.mark.parametrize("options", [{"components": 8}, {"components": 0}])
def test_either_answer_gives_each_metric_the_scores_of_its_own_run(options):
    protocol = with_options(instances=options)
    together = bb.evaluate_items(nuclei(255), protocol, OF_LABELS, **FAST)
    for name in OF_LABELS:
        alone = bb.evaluate_items(nuclei(255), protocol, name, **FAST)
        assert together.scores()[name] == alone.scores()[name]


def test_masks_of_one_piece_are_sound_for_all():
    """As those of one object a video."""
    together = bb.evaluate_items(nuclei(255, pieces=1), MASKS, OF_LABELS, **FAST)
    for name in OF_LABELS:
        alone = bb.evaluate_items(nuclei(255, pieces=1), MASKS, name, **FAST)
        assert together.scores()[name] == alone.scores()[name]
    assert together.read_as == (
        "Read as: predictions masks (white is the object), 3 files; truth masks (white is the "
        "object), 3 files; by instances predictions instance maps, 3 files; truth instance maps, "
        "3 files"
    )


def test_one_says_that_they_are_instances_and_the_other_asks():
    """Both read numbers; one is told that a number is an object, whatever its pieces."""
    protocol = with_options(
        instances={"components": 0}, segmentation={"unit": "instance"}, contour={"unit": "id"}
    )
    for metrics in permutations(OF_LABELS):
        with pytest.raises(bb.DataError, match=r"segmentation\.components=8") as refused:
            bb.evaluate_items(nuclei(255), protocol, metrics, **FAST)
        assert "instances.components" not in str(refused.value)


def test_a_void_of_one_metric_is_no_number_to_it_alone():
    """Of 0, 127 and 255, `instances` leaves one number in pieces, `segmentation` two numbers."""
    items = list(nuclei(255))
    for _, _, truth in items:
        truth[20:22, 2:5] = 127
    protocol = with_options(instances={"ignore": 127}, segmentation={"unit": "instance"})
    both = ("segmentation", "instances")
    for metrics in ("instances", both, both[::-1]):
        with pytest.raises(bb.DataError, match=re.escape(PIECES.format(255))):
            bb.evaluate_items(items, protocol, metrics, **FAST)


def test_numbers_are_no_masks_wherever_masks_are_asked_for():
    assert bb.evaluate_items(numbered(), MASKS, "instances", **FAST)
    items = [(i, 3 * pred, 3 * truth) for i, pred, truth in numbered()]
    for metrics in permutations(("contour", "instances")):
        with pytest.raises(bb.DataError, match="values from 0 to 6, expected 0 and 1"):
            bb.evaluate_items(items, MASKS, metrics, **FAST)


def test_a_third_value_is_one_line_with_the_options_of_all_metrics():
    items = [(i, pred / 255, truth) for i, pred, truth in nuclei(255)]
    for _, _, truth in items:
        truth[20:22, 2:5] = 127
    names = ("ccq", "saliency", "topology")
    for metrics in permutations(names):
        with pytest.raises(bb.DataError) as refused:
            bb.evaluate_items(items, MASKS, metrics, **FAST)
        (line,) = str(refused.value).splitlines()
        assert all(f"{name}.ignore=127" in line for name in names)
        assert line.count("gt_threshold=0.5") == 1


@pytest.mark.parametrize("again", [False, True])
def test_what_each_metric_was_shown_is_kept(tmp_path, again):
    """In the records of a run that goes on, and in its result."""
    protocol = with_options(instances={"components": 0})
    sides, out = written(tmp_path, nuclei(255)), tmp_path / "out"
    runs = [
        bb.evaluate(*sides, protocol, metrics=OF_LABELS, out=out, **FAST) for _ in range(1 + again)
    ]
    saved = bb.Evaluation.load(out)
    assert runs[-1].kept == 3 * again
    for record, loaded in zip(runs[0].records, saved.records, strict=True):
        assert loaded.others == record.others
        assert list(record.others) == ["instances"]
    assert saved.read_as == runs[0].read_as


def test_on_the_command_line(tmp_path, capsys, monkeypatch):
    pred, gt = map(str, written(tmp_path, nuclei(255)))
    for names in permutations(OF_LABELS):
        options = "--gt", gt, "--protocol", "masks", "--metrics", ",".join(names)
        monkeypatch.setattr(sys, "argv", ["bsdsbench", "evaluate", pred, *options])
        with pytest.raises(SystemExit) as stopped:
            main()
        assert stopped.value.code == 2
        assert "--set instances.components=8" in capsys.readouterr().err
