"""Superpixels from folders: every measure by its function, the picture where there is one."""

from __future__ import annotations

import imageio.v3 as iio
import numpy as np
import pytest
from click.testing import CliRunner

import bsdsbench as bb
from bsdsbench.cli.verb_evaluate import command
from bsdsbench.metrics import superpixel as sp


@pytest.fixture
def folders(tmp_path):
    """Two images, two annotators each as label maps, pictures beside in BSDS layout."""
    pred = tmp_path / "superpixels"
    gt, photos = tmp_path / "groundTruth" / "val", tmp_path / "images" / "val"
    for folder in (pred, photos):
        folder.mkdir(parents=True)
    for k in range(2):
        rng = np.random.default_rng(k)
        y, x = np.mgrid[:24, :36]
        iio.imwrite(pred / f"i{k}.png", (1 + x // 6 + 6 * (y // 6)).astype(np.uint8))
        (gt / f"i{k}").mkdir(parents=True)
        for a, edge in enumerate((17, 19 + k)):
            iio.imwrite(gt / f"i{k}" / f"{a}.png", np.where(x < edge, 1, 2).astype(np.uint8))
        iio.imwrite(photos / f"i{k}.png", rng.integers(0, 256, (24, 36, 3), np.uint8))
    return pred, gt


PROTOCOL = bb.Protocol.preset("bsds500").replace(gt_kind="labels")


def test_scores_are_means_of_the_measures(folders):
    pred, gt = folders
    run = bb.evaluate(pred, gt, PROTOCOL, metrics="superpixel", workers=1)
    score = run.score("superpixel").to_mapping()
    per_image = []
    for k in range(2):
        labels = iio.imread(pred / f"i{k}.png")
        truths = [iio.imread(p) for p in sorted((gt / f"i{k}").iterdir())]
        per_image.append([sp.undersegmentation_error(labels, t) for t in truths])
    assert score["ue"]["mean"] == pytest.approx(np.mean(per_image))
    assert score["ue"]["max"] == pytest.approx(np.mean([max(v) for v in per_image]))
    assert score["n_superpixels"] == 24
    photo = iio.imread(folders[1].parents[1] / "images" / "val" / "i0.png")
    expected = sp.explained_variation(iio.imread(pred / "i0.png"), photo)
    assert float(run.records[0].counts["superpixel"].variation) == pytest.approx(expected)


def test_without_pictures_there_is_no_explained_variation(folders):
    pred, gt = folders
    for path in (gt.parents[1] / "images" / "val").iterdir():
        path.unlink()
    run = bb.evaluate(pred, gt, PROTOCOL, metrics="superpixel", workers=1)
    assert run.score("superpixel").to_mapping()["variation"] is None
    found = bb.compare([run, bb.Evaluation(run.protocol, "b", run.records)], n_boot=20)
    assert np.isnan(found.interval_of(run.name, "superpixel.variation").value)


def test_faults_are_one_line(folders, tmp_path):
    pred, gt = folders
    np.savez(pred / "i0.npz", segs=np.ones((2, 24, 36), np.int32))
    (pred / "i0.png").unlink()
    with pytest.raises(bb.DataError, match=r"i0\.npz: 2 label maps, expected one label map"):
        bb.evaluate(pred, gt, PROTOCOL, metrics="superpixel", workers=1)


def test_command_line(folders, tmp_path):
    pred, gt = folders
    arguments = [str(pred), "--gt", str(gt), "--quiet", "--workers", "1"]
    arguments += ["--metrics", "superpixel"]
    out = tmp_path / "out"
    result = CliRunner().invoke(
        command, [*arguments, "--set", "gt_kind=labels", "-o", str(out)], catch_exceptions=False
    )
    assert "boundary recall within" in result.stdout
    run = bb.Evaluation.load(out)
    assert f"{run.score('superpixel').to_mapping()['asa']['mean']:.4f}" in result.stdout
