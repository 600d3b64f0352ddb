"""Overlays: their pixels add up to the counts, and each is where the hand count says."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from skimage.io import imsave

import bsdsbench as bb
from bsdsbench.loaders.photos import find_photos, photos_beside, read_photo
from bsdsbench.report import write_report
from bsdsbench.report.overlays import (
    COLORS,
    FALSE,
    MATCHED,
    MISSED,
    draw_overlays,
    find_sources,
    image_threshold,
    paint,
    with_legend,
    write_overlays,
)
from bsdsbench.report.pictures import by_interest
from tests.helpers.runs import counted, refused
from tests.helpers.simulated import boundary_of

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


def faults(runs, page, **options):
    """What a page lacks; not where its pictures are from, which it says too."""
    notes = write_report(runs, page, n_boot=10, **options)
    return [note for note in notes if not note.startswith("pictures of ")]


def test_pixels_are_where_the_hand_count_says(made):
    run, folders, _, gt = made
    sources = find_sources(run)
    assert sources.photos == {"a": folders[2] / "a.png"}
    by_kind = {kind: (found, photo) for _, kind, found, photo in draw_overlays(run, sources)}
    best, photo = by_kind["best"]
    assert best.threshold == 0.6
    assert image_threshold(run, run.records[0]) == 0.6
    assert (best.precision, best.recall) == (1.0, 0.6)
    rows, cols = np.nonzero(best.classes == MATCHED)
    assert set(rows) == {4}
    assert cols.tolist() == list(range(2, 8))
    missed = (best.classes == MISSED) & gt
    assert np.nonzero(missed)[1].tolist() == [8, 9, 10, 11]
    assert not (best.classes == FALSE).any()
    assert photo.shape == (*SHAPE, 3)


def test_sums_are_the_counts_at_every_threshold(made):
    run = made[0]
    sources = find_sources(run)
    for _, _, found, _ in draw_overlays(run, sources):
        counts = run.records[0].counts["boundary"]
        k = list(counts.thresholds).index(found.threshold)
        assert (found.classes == MATCHED).sum() == counts.matched_pred[k]
        on = counts.total_pred[k]
        assert ((found.classes == MATCHED) | (found.classes == FALSE)).sum() == on


@pytest.mark.filterwarnings("ignore:.*filled areas as ground truth")
@pytest.mark.parametrize(
    ("truth", "changes"),
    [
        (np.where(np.arange(14) < 6, 90, 200), {"gt_threshold": 0.5}),  # gray, cut at 127.5
        (np.where(np.arange(14) < 6, 3, 7), {"gt_kind": "labels"}),
    ],
)
def test_ground_truth_is_read_as_the_run_read_it(tmp_path, truth, changes):
    for folder, row in (("maps", np.arange(14) * 10), ("gt", truth)):
        (tmp_path / folder).mkdir()
        pixels = np.broadcast_to(row, SHAPE).astype(np.uint8)
        imsave(tmp_path / folder / "a.png", pixels, check_contrast=False)
    run = counted(tmp_path / "maps", tmp_path / "gt", PROTOCOL.replace(**changes))
    sources = find_sources(run)
    _, gt = sources.load("a", run)
    assert (
        gt.boundaries[0].sum() * len(gt.boundaries) == run.records[0].counts["boundary"].total_gt[0]
    )
    assert len(list(draw_overlays(run, sources))) == 2


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


def test_sources_that_are_not_there(made, tmp_path):
    run, folders, _, _ = made
    blank = bb.Evaluation(run.protocol, "x", run.records)
    refused("x: where its predictions and ground truth are", find_sources, blank)
    assert find_sources(blank, folders[0], folders[1]).photos
    (folders[1] / "a.png").unlink()
    refused("no ground truth", find_sources, run)
    assert photos_beside(tmp_path / "maps") is None
    assert list(find_photos(folders[2])) == ["a"]
    (folders[2] / "b.jpg").write_bytes(b"not a picture")
    refused(r"b\.jpg", read_photo, folders[2] / "b.jpg")


def test_files_that_changed_since_the_run_are_refused(made, tmp_path):
    run, folders, pred, _ = made
    imsave(folders[0] / "a.png", np.where(pred, 255, 0).astype(np.uint8), check_contrast=False)
    with pytest.raises(bb.DataError, match=r"a: .* matched pixels, the run has"):
        write_overlays(changed_counts(run), tmp_path / "x")
    notes = write_report([changed_counts(run)], tmp_path / "r.html", n_boot=10)
    assert "no pictures: maps: a: " in "".join(notes)
    assert (tmp_path / "r.html").exists()


@pytest.mark.parametrize("damage", [lambda f: f.write_bytes(b"no picture"), Path.unlink])
def test_a_page_names_faulty_files_and_not_where_they_lie(made, tmp_path, damage):
    run, folders, _, _ = made
    damage(folders[1] / "a.png")
    (note,) = faults([run], tmp_path / "r.html")
    assert re.search(rf"no pictures: (maps: )?{folders[1].name}", note)
    assert str(folders[1].parent) not in (tmp_path / "r.html").read_text("utf-8")


def test_a_folder_that_was_given_and_does_not_fit_is_an_error(made, tmp_path):
    run, folders, pred, _ = made
    page, other, gone = tmp_path / "r.html", tmp_path / "other", tmp_path / "gone"
    other.mkdir()
    for words in ({"pred_dirs": [gone]}, {"gt_dir": gone}, {"images_dir": gone}):
        with pytest.raises(bb.DataError, match="gone: no such folder, expected one for the pic"):
            write_report([run], page, n_boot=10, **words)
    refused(r"other: no .*expected", write_report, [run], page, n_boot=10, pred_dirs=[other])
    imsave(other / "a.png", np.where(pred, 0, 255).astype(np.uint8), check_contrast=False)
    with pytest.raises(bb.DataError, match=r"a: .* matched pixels, the run has"):
        write_report([run], page, n_boot=10, pred_dirs=[other])
    assert not page.exists()
    given = {"pred_dirs": [folders[0]], "gt_dir": folders[1], "images_dir": folders[2]}
    assert faults([run], page, **given) == []


def changed_counts(run):
    """The run as it would be had its one image matched a pixel less."""
    c = run.records[0].counts["boundary"]
    less = boundary_of(c.thresholds, c.matched_gt - 1, c.total_gt, c.matched_pred - 1, c.total_pred)
    return replace(run, records=(replace(run.records[0], counts={"boundary": less}),))


@pytest.mark.parametrize(("width", "rows"), [(200, 1), (140, 2)])
def test_a_legend_stands_beneath_the_pixels(width, rows):
    classes = np.random.default_rng(0).integers(0, 4, (40, width)).astype(np.uint8)
    pixels = paint(classes)
    found = with_legend(pixels)
    np.testing.assert_array_equal(found[:40], pixels)
    below = found[40:]
    assert below.shape == (15 * rows, width, 3)
    for k, color in enumerate(COLORS[1:]):
        per_row = -(-3 // rows)
        at = below[15 * (k // per_row) :][:15, 66 * (k % per_row) :][:, :66]
        assert (at == color).all(axis=2).sum() == 9 * 8
        assert (at.max(axis=2) < 100).any()  # its word


def sized_runs(tmp_path, count, names):
    """Runs of some images of noise, with pictures that JPEG cannot make small."""
    rng = np.random.default_rng(1)
    folders = [tmp_path / n for n in (*names, "groundTruth/test", "images/test")]
    for folder in folders:
        folder.mkdir(parents=True)
    for i in range(count):
        gt = np.zeros((60, 80), np.uint8)
        gt[10 + i, 5:70] = 255
        imsave(folders[-2] / f"i{i}.png", gt, check_contrast=False)
        imsave(folders[-1] / f"i{i}.png", rng.integers(0, 255, (60, 80, 3)).astype(np.uint8))
        for k in range(len(names)):
            soft = np.where(rng.random(gt.shape) < 0.02 * (1 + i * (k + 1) % 5), 200, 0) | gt // 2
            imsave(folders[k] / f"i{i}.png", soft.astype(np.uint8), check_contrast=False)
    return [counted(folder, folders[-2], PROTOCOL) for folder in folders[: len(names)]]


@pytest.mark.slow
def test_a_report_draws_what_is_looked_at_first_within_its_budget(tmp_path, monkeypatch):
    runs = sized_runs(tmp_path, 12, ("m", "n"))
    values = [{k: row["ods"] for k, row in run.image_scores("boundary").items()} for run in runs]
    whole, some = tmp_path / "whole.html", tmp_path / "some.html"
    assert faults(runs, whole) == []
    monkeypatch.setattr("bsdsbench.report.html.BUDGET", 60_000)
    assert faults(runs, some) == []
    text = some.read_text("utf-8")
    drawn = {int(i) for i in re.findall(r'id="pictures-(\d+)"', text)}
    assert 3 <= len(drawn) < 12
    assert f"{len(drawn)} of 12 images have pictures here" in text
    assert "images have pictures here" not in whole.read_text("utf-8")
    ids = list(runs[0].image_ids)
    expected = by_interest(ids, values)[: len(drawn)]
    assert {ids[i] for i in drawn} == set(expected)
    assert min(values[0], key=lambda k: (values[0][k], k)) == expected[0]
    assert text.count("data:image/jpeg") < whole.read_text("utf-8").count("data:image/jpeg")
    assert faults(runs, some, full_pictures=True) == []
    assert some.read_bytes() == whole.read_bytes()  # also whatever threads did


def test_images_are_ordered_by_interest():
    """Worst and best by each run in turn, then the largest difference; the rest follow."""
    a = {"w": 0.1, "x": 0.9, "y": 0.5, "z": 0.5}
    b = {"w": 0.6, "x": 0.7, "y": 0.55, "z": 0.95}
    assert by_interest("vwxyz", [a, b]) == ["w", "x", "y", "z", "v"]
    assert by_interest("vwxyz", [a]) == ["w", "x", "y", "z", "v"]
    assert by_interest("vwxyz", [b]) == ["y", "z", "w", "x", "v"]
    assert by_interest("ab", []) == ["a", "b"]


def test_label_maps_are_told_by_their_thresholds(tmp_path):
    labels = np.ones(SHAPE, np.uint8)
    labels[4:] = 2
    for folder, pixels in (("maps", labels), ("gt", (labels == 2) * np.uint8(255))):
        (tmp_path / folder).mkdir()
        imsave(tmp_path / folder / "a.png", pixels, check_contrast=False)
    run = counted(tmp_path / "maps", tmp_path / "gt", pred_kind="labels")
    assert run.records[0].counts["boundary"].thresholds.tolist() == [1.0]
    assert find_sources(run).pred_kind == "labels"
    assert len(write_overlays(run, tmp_path / "o")) == 2
    assert faults([run], tmp_path / "r.html") == []
