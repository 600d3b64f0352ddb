"""Overlays: their pixels add up to the counts, and each is where the hand count says."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from skimage.io import imsave

import bsdsbench as bb
from bsdsbench.loaders.formats.photos import read_photo
from bsdsbench.metrics.pixel_steps import PixelClass
from bsdsbench.report import write_report
from bsdsbench.report.overlays import COLORS, pixel_steps, write_overlays
from bsdsbench.report.pictures import by_interest
from bsdsbench.runs.sources import find_sources
from tests.helpers.runs import counted, refused
from tests.helpers.simulated import boundary_of

MATCHED, FALSE, MISSED, *_ = PixelClass

PROTOCOL = bb.Protocol(thresholds=(0.3, 0.6), max_dist_px=1.0)
SHAPE = (9, 14)


@pytest.fixture
def made(tmp_path):
    """One image: a line of 10 on row 4, found over 6 pixels; a false line of 3 on row 0, weak."""
    gt, pred = np.zeros(SHAPE, np.uint8), np.zeros(SHAPE, np.uint8)
    gt[4, 2:12] = 255
    pred[4, 2:8] = 200
    pred[0, 9:12] = 100
    folders = [tmp_path / n for n in ("maps", "groundTruth/test", "images/test")]
    for folder in folders:
        folder.mkdir(parents=True)
    photo = np.zeros((*SHAPE, 3), np.uint8)
    photo[..., 0] = 90
    for folder, pixels in zip(folders, (pred, gt, photo), strict=True):
        imsave(folder / "a.png", pixels, check_contrast=False)
    run = bb.evaluate(folders[0], folders[1], PROTOCOL, workers=1, executor="thread")
    return run, folders, pred > 0, gt > 0


def test_pixels_are_where_the_hand_count_says(made):
    run, folders, _, gt = made
    sources = find_sources(run)
    assert sources.photos == {"a": folders[2] / "a.png"}
    (record,), files = run.records, sources.load("a", run.protocol)
    steps = pixel_steps(*files, run)
    assert steps.thresholds[steps.best] == 0.6
    assert [of_all[steps.best] for of_all in steps.scores[:2]] == [0.6, 1.0]
    best = steps.at(steps.best)
    rows, cols = np.nonzero(best == MATCHED)
    assert set(rows) == {4}
    assert cols.tolist() == list(range(2, 8))
    missed = (best == MISSED) & gt
    assert np.nonzero(missed)[1].tolist() == [8, 9, 10, 11]
    assert not (best == FALSE).any()
    counts = record.counts["boundary"]
    for k in range(len(counts.thresholds)):
        classes = steps.at(k)
        assert (classes == MATCHED).sum() == counts.matched_pred[k]
        assert np.isin(classes, (MATCHED, FALSE)).sum() == counts.total_pred[k]


@pytest.mark.filterwarnings("ignore:.*filled areas as ground truth")
@pytest.mark.parametrize(
    ("truth", "changes"),
    [
        (np.where(np.arange(14) < 8, 90, 200), {"gt_threshold": 0.5}),  # gray, cut at 127.5
        (np.where(np.arange(14) < 6, 3, 7), {"gt_kind": "labels"}),
    ],
)
def test_ground_truth_is_read_as_the_run_read_it(tmp_path, truth, changes):
    for folder, row in (("maps", np.arange(14) * 10), ("gt", truth)):
        (tmp_path / folder).mkdir()
        pixels = np.broadcast_to(row, SHAPE).astype(np.uint8)
        imsave(tmp_path / folder / "a.png", pixels, check_contrast=False)
    run = counted(tmp_path / "maps", tmp_path / "gt", PROTOCOL.replace(**changes))
    _, gt = find_sources(run).load("a", run.protocol)
    assert (
        gt.boundaries[0].sum() * len(gt.boundaries) == run.records[0].counts["boundary"].total_gt[0]
    )
    assert len(write_overlays(run, tmp_path / "overlays")) == 2


def test_files_of_the_overlays(made, tmp_path):
    run, folders, _, _ = made
    written = write_overlays(run, tmp_path / "overlays")
    assert [p.name for p in written] == ["a_best.png", "a_ods.png"]
    pixels = read_photo(written[0])
    assert pixels[4, 3].tolist() == list(COLORS[MATCHED])
    assert pixels[4, 10].tolist() == list(COLORS[MISSED])
    assert pixels[8, 0].tolist() == [round(255 * 0.62 + 30 * 0.38)] * 3
    imsave(folders[2] / "a.png", np.zeros((3, 3, 3), np.uint8), check_contrast=False)
    odd = write_overlays(run, tmp_path / "white")
    assert read_photo(odd[0])[8, 0].tolist() == [255, 255, 255]


def test_sources_that_are_not_there(made):
    run, folders, _, _ = made
    blank = bb.Evaluation(run.protocol, "x", run.records)
    refused("x: where its predictions and ground truth are", find_sources, blank)
    assert find_sources(blank, folders[0], folders[1]).photos
    (folders[1] / "a.png").unlink()
    refused(
        "test: has no files in a supported format, expected a folder of .png", find_sources, run
    )
    (folders[2] / "b.jpg").write_bytes(b"not a picture")
    refused(r"b\.jpg", read_photo, folders[2] / "b.jpg")


def test_files_that_changed_since_the_run_are_refused(made, tmp_path):
    """On a page they are a note, unless their folder was given."""
    run, folders, _, _ = made
    page, c = tmp_path / "r.html", run.records[0].counts["boundary"]
    less = c.matched_gt - 1, c.total_gt, c.matched_pred - 1, c.total_pred
    counts = {"boundary": boundary_of(c.thresholds, *less)}
    record = replace(run.records[0], counts=counts, fingerprint="")
    changed = replace(run, records=(record,))
    words = "a: other counts than those of"
    refused(words, write_overlays, changed, tmp_path / "x")
    refused(words, write_report, [changed], page, n_boot=10, pred_dirs=folders[:1])
    for name in ("pred_dirs", "gt_dir", "images_dir"):
        gone = tmp_path / "gone"
        given = {name: [gone] if name == "pred_dirs" else gone}
        refused(
            "gone: (is not a folder|does not exist), ",
            write_report,
            [run],
            page,
            n_boot=10,
            **given,
        )
    assert not page.exists()
    (note,) = write_report([changed], page, n_boot=10)
    assert note.startswith("no pictures: maps: a: ")
    given = {"pred_dirs": [folders[0]], "gt_dir": folders[1], "images_dir": folders[2]}
    assert write_report([run], page, n_boot=10, **given) == []


@pytest.mark.parametrize("damage", [lambda f: f.write_bytes(b"no picture"), Path.unlink])
def test_a_page_names_faulty_files_and_not_where_they_lie(made, tmp_path, damage):
    run, folders, _, _ = made
    damage(folders[1] / "a.png")
    (note,) = write_report([run], tmp_path / "r.html", n_boot=10)
    assert re.search(rf"no pictures: (maps: )?{folders[1].name}", note)
    assert str(folders[1].parent) not in (tmp_path / "r.html").read_text("utf-8")


def test_one_damaged_file_leaves_the_others_their_pictures(tmp_path):
    (run,) = sized_runs(tmp_path, 3, ("maps",))
    for name in ("i1", "i2"):
        (tmp_path / "maps" / f"{name}.png").write_bytes(b"no picture")
    (note,) = write_report([run], tmp_path / "r.html", n_boot=10)
    assert re.match(r"no pictures: maps: maps/i[12]\.png: .* \(and 1 more images\)", note)
    text = (tmp_path / "r.html").read_text("utf-8")
    assert "1 of 3 images have pictures here" in text
    assert text.count('"fault":"no pictures of maps: maps/i') == 2


def sized_runs(tmp_path, count, names, image="i"):
    """Runs of some images of noise, with pictures that JPEG cannot make small."""
    rng = np.random.default_rng(1)
    folders = [tmp_path / n for n in (*names, "groundTruth/test", "images/test")]
    for folder in folders:
        folder.mkdir(parents=True)
    for i in range(count):
        gt = np.zeros((60, 80), np.uint8)
        gt[10 + i, 5:70] = 255
        imsave(folders[-2] / f"{image}{i}.png", gt, check_contrast=False)
        imsave(folders[-1] / f"{image}{i}.png", rng.integers(0, 255, (60, 80, 3)).astype(np.uint8))
        for k in range(len(names)):
            soft = np.where(rng.random(gt.shape) < 0.02 * (1 + i * (k + 1) % 5), 200, 0) | gt // 2
            imsave(folders[k] / f"{image}{i}.png", soft.astype(np.uint8), check_contrast=False)
    return [counted(folder, folders[-2], PROTOCOL) for folder in folders[: len(names)]]


@pytest.mark.slow
def test_a_report_draws_what_is_looked_at_first_within_its_budget(tmp_path, monkeypatch):
    runs = sized_runs(tmp_path, 12, ("m", "n"))
    values = [{k: row["ods"] for k, row in run.image_scores("boundary").items()} for run in runs]
    whole, some = tmp_path / "whole.html", tmp_path / "some.html"
    assert write_report(runs, whole, n_boot=10) == []
    monkeypatch.setattr("bsdsbench.report.html.BUDGET", 60_000)
    assert write_report(runs, some, n_boot=10) == []
    text = some.read_text("utf-8")
    drawn = {int(i) for i in re.findall(r'id="pictures-(\d+)"', text)}
    assert 3 <= len(drawn) < 12
    assert f"{len(drawn)} of 12 images have pictures here" in text
    assert "images have pictures here" not in whole.read_text("utf-8")
    ids = list(runs[0].image_ids)
    order = by_interest(ids, values)  # the worst and the best of each, then the largest difference
    a, b = (sorted(v, key=lambda k: (v[k], k)) for v in values)
    gap = max(ids, key=lambda k: (abs(values[0][k] - values[1][k]), -ids.index(k)))
    assert (
        order[: len(drawn)]
        == [*dict.fromkeys([a[0], a[-1], b[0], b[-1], gap, *order])][: len(drawn)]
    )
    assert {ids[i] for i in drawn} == {*order[: len(drawn)]}
    assert write_report(runs, some, full_pictures=True, n_boot=10) == []
    assert some.read_bytes() == whole.read_bytes()  # also whatever threads did
    monkeypatch.setattr("bsdsbench.report.html.MOST", 2)
    assert write_report(runs, some, n_boot=10) == []
    assert "2 of 12 images have pictures here" in some.read_text("utf-8")
    assert write_report(runs, some, full_pictures=True, n_boot=10) == []
    assert some.read_bytes() == whole.read_bytes()
