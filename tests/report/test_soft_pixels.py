"""Pictures of soft maps against masks: their pixels are the run's counts."""

import re
import shutil

import imageio.v3 as iio
import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.metrics import registry
from bsdsbench.metrics.pixel_steps import PixelClass
from bsdsbench.report import write_report
from bsdsbench.report.overlays import (
    COLORS,
    VOID_CLASS,
    chosen_threshold,
    drawn_metric,
    pixel_steps,
    write_overlays,
)
from bsdsbench.report.pictures import ImagePictures
from bsdsbench.runs.sources import find_sources
from tests.helpers.runs import call, counted, refused, write_maps
from tests.report.test_planes import unpack

MATCHED, FALSE, MISSED, _ = PixelClass

SHAPE = (23, 31)


def soft_set(root, n=1, dtype=np.uint8):
    """Folders of soft maps, masks, and fields of view without the first rows."""
    rng = np.random.default_rng(3)
    soft, masks, views = {}, {}, {}
    for k in range(n):
        mask = rng.random(SHAPE) < 0.3
        strength = np.clip(0.5 * mask + rng.random(SHAPE) * 0.6, 0, 1)
        soft[f"i{k}"] = (
            strength.astype(dtype)
            if np.dtype(dtype).kind == "f"
            else (np.iinfo(dtype).max * strength).astype(dtype)
        )
        masks[f"i{k}"], views[f"i{k}"] = mask, np.arange(SHAPE[0])[:, None] * np.ones(SHAPE) > 4
    sides = {"maps": soft, "truth": masks, "views": views}
    return [write_maps(root / name, maps) for name, maps in sides.items()]


def numbers(run, name):
    """True, false and missed pixels of an image at every threshold, from the counts of the run."""
    counts = run.records[0].counts[name]
    if name == "saliency":
        tp, fp = (counts[side][:-1] for side in ("tp", "fp"))
        return tp, fp, counts["positives"] - tp
    return counts["tp"], counts["fp"], counts["fn"]


SOFT = ["pixel", "aiu", "saliency"]


@pytest.mark.parametrize("metric", SOFT)
@pytest.mark.parametrize("void", [False, True])
@pytest.mark.parametrize("dtype", ["u1", "u2", "f4"])
def test_pixels_of_every_threshold_are_the_counts(tmp_path, metric, void, dtype):
    maps, truth, views = soft_set(tmp_path, dtype=dtype)
    options = {"valid_dir": views} if void else {}
    run = counted(maps, truth, metrics=metric, **options)
    drawn, faults = ImagePictures([run], {run.name: find_sources(run)}, full=True)("i0")
    assert faults == []
    assert ("void" in drawn) == void
    planes = unpack(drawn["runs"]["0"])
    for k, expected in enumerate(zip(*numbers(run, metric), strict=True)):
        assert [(planes[k] == code).sum() for code in (MATCHED, FALSE, MISSED)] == [*expected]
    if void:
        assert not planes[:, :5].any()
    files = find_sources(run).load("i0", run.protocol)
    steps = pixel_steps(*files, run)
    np.testing.assert_array_equal([steps.at(k) for k in range(len(planes))], planes)
    assert steps.best == drawn["runs"]["0"]["best"]
    if key := {"pixel": "ods", "saliency": "max_f_mean"}.get(metric):
        best = run.image_scores(metric)["i0"][key]
        assert steps.scores.f[steps.best] == pytest.approx(best)


@pytest.mark.parametrize("operator", [">=", ">"])
def test_a_threshold_of_0_and_pixels_on_it(tmp_path, operator):
    protocol = bb.Protocol(thresholds=(0.0, 0.2, 0.6, 1.0), operator=operator)
    soft = np.array([[0, 51, 153], [255, 254, 0]], np.uint8)
    places = [
        write_maps(tmp_path / name, {"i0": maps})
        for name, maps in (("maps", soft), ("truth", np.array([[255, 0, 255], [255, 0, 0]])))
    ]
    run = counted(*places, protocol, "pixel")
    drawn, _ = ImagePictures([run], {run.name: find_sources(run)}, full=True)("i0")
    planes = unpack(drawn["runs"]["0"])
    for k, expected in enumerate(zip(*numbers(run, "pixel"), strict=True)):
        assert [(planes[k] == code).sum() for code in (MATCHED, FALSE, MISSED)] == [*expected]


def test_annotators_are_summed():
    rng = np.random.default_rng(1)
    gts = [rng.random(SHAPE) < share for share in (0.3, 0.1)]
    protocol, metric = bb.Protocol("bsds500"), registry.get("pixel")
    pred, truth = bb.Prediction("a", soft=rng.random(SHAPE)), bb.GroundTruth("a", tuple(gts))
    counts = bb.pixel_counts(pred, gts, protocol)
    soft = metric.pixel_steps(pred, truth, protocol, metric.options_of(protocol))
    np.testing.assert_array_equal(soft.thresholds, counts.thresholds)
    columns = counts.tp, counts.tp + counts.fn, counts.tp, counts.tp + counts.fp
    np.testing.assert_array_equal(soft.matches, np.stack(columns, axis=-1))
    marked = np.any(gts, axis=0)
    for k in range(len(soft.thresholds)):
        classes = soft.at(k)
        np.testing.assert_array_equal(np.isin(classes, (MATCHED, MISSED)), marked)


@pytest.mark.parametrize("metric", [*SOFT, "topology", "contour"])
def test_the_verbs_draw_every_metric_of_masks(tmp_path, metric):
    maps, truth, views = soft_set(tmp_path, 3)
    if metric == "contour":
        maps = shutil.copytree(truth, tmp_path / "masks")
    run = counted(maps, truth, metrics=metric, valid_dir=views, out=tmp_path / "out")
    assert write_report([run], tmp_path / "r.html", n_boot=10) == []
    text = (tmp_path / "r.html").read_text("utf-8")
    assert len(re.findall('"planes":"', text)) == 3
    assert len(re.findall('"void":"data:image/png', text)) == 3
    shown = call("worst", tmp_path / "out", "--overlays", "--quiet")
    assert "Overlays: green" in shown
    assert "gray void" in " ".join(shown.split())
    call("worst", tmp_path / "out", "--figure", tmp_path / "grid.svg", "--quiet")
    (first, *_) = sorted((tmp_path / "out" / "overlays").glob("i0_*"))
    pixels = iio.imread(first)
    assert (pixels[:5] == COLORS[VOID_CLASS]).all(axis=2).any()
    assert not (pixels[5:] == COLORS[VOID_CLASS]).all(axis=2).any()
    names = [path.name for path in write_overlays(run, tmp_path / "x", image_ids=["i1"])]
    of_set = chosen_threshold(run) is not None
    at_levels = ["i1_best.png", *["i1_ods.png"] * of_set]
    assert names == (at_levels if metric in SOFT else ["i1_pixels.png"])
    assert of_set == (metric in ("pixel", "saliency"))


def test_the_first_metric_of_a_run_is_drawn(tmp_path):
    maps, truth, _ = soft_set(tmp_path)
    run = counted(maps, truth, metrics=["ccq", "topology", "pixel"])
    assert drawn_metric(run) is registry.get("pixel")


@pytest.mark.parametrize("metric", ["saliency", "topology"])
def test_files_of_the_run_are_known_by_their_hash(tmp_path, monkeypatch, metric):
    maps, truth, views = soft_set(tmp_path)
    run = counted(maps, truth, metrics=metric, valid_dir=views, out=tmp_path / "out")

    def counted_again(*_):
        raise AssertionError

    with monkeypatch.context() as patch:
        patch.setattr(type(registry.get(metric)), "count", counted_again)
        write_overlays(bb.Evaluation.load(tmp_path / "out"), tmp_path / "x")
        patch.setattr("bsdsbench.runs.keywords.KERNEL_VERSION", "of another version")
        with pytest.raises(AssertionError):
            write_overlays(run, tmp_path / "x")
    monkeypatch.setattr("bsdsbench.runs.keywords.KERNEL_VERSION", "of another version")
    write_overlays(run, tmp_path / "x")
    iio.imwrite(truth / "i0.png", 255 - iio.imread(truth / "i0.png"))
    refused("i0: other counts than those of", write_overlays, run, tmp_path / "x")


def test_pages_of_soft_maps_keep_their_limit(tmp_path, monkeypatch):
    maps, truth, _ = soft_set(tmp_path, 12)
    run = counted(maps, truth, metrics="saliency")
    monkeypatch.setattr("bsdsbench.report.html.BUDGET", 40_000)
    write_report([run], tmp_path / "r.html", n_boot=10)
    blocks = re.findall(r'id="pictures-\d+">(.*?)</script>', (tmp_path / "r.html").read_text())
    assert 1 < len(blocks) < 12
    assert sum(map(len, blocks)) <= 40_000
