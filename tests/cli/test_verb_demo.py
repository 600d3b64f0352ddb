"""bsdsbench demo: the main job on the shipped sample, here on pieces of four of its images."""

import json
import shlex

import imageio.v3 as iio
import numpy as np
import pytest
from click.testing import CliRunner

from bsdsbench import Evaluation
from bsdsbench.cli import cli
from bsdsbench.loaders import sample
from tests.helpers.crops import PIECE, annotations

IDS = ("fruit1", "herd1", "leaves1", "town1")


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    root = tmp_path_factory.mktemp("sample")
    images, truth = root / "images" / "test", root / "groundTruth" / "test"
    images.mkdir(parents=True), truth.mkdir(parents=True)
    for image_id in IDS:
        photo = iio.imread(sample.sample_images() / f"{image_id}.jpg")[PIECE]
        iio.imwrite(images / f"{image_id}.png", photo)
        np.save(truth / f"{image_id}.npy", np.stack([a[PIECE] for a in annotations(image_id)]))
    return root


@pytest.fixture(scope="module")
def ran(small, tmp_path_factory):
    out = tmp_path_factory.mktemp("demo") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sample, "sample_root", lambda: small)
        arguments = ["demo", "-o", str(out), "--workers", "1", "--quiet"]
        return CliRunner().invoke(cli, arguments, standalone_mode=False), out


@pytest.mark.slow
def test_demo_ranks_the_detectors_by_ods(ran):
    result, out = ran
    assert result.exception is None
    scores = {}
    for method in sample.DETECTORS:
        run = Evaluation.load(out / method)
        assert [record.image_id for record in run.records] == sorted(IDS)
        stored = json.loads((out / method / "result.json").read_text("utf-8"))
        assert stored["scores"]["boundary"]["ods"]["f"] == run.boundary_score().ods.f
        scores[run.name] = run.boundary_score().ods.f
    best_first = sorted(scores, key=lambda name: -scores[name])
    table = result.output.split("\nDifferences")[0].splitlines()
    rows = [line for line in table if any(line.strip().startswith(name) for name in scores)]
    assert [next(n for n in scores if row.strip().startswith(n)) for row in rows] == best_first
    assert f"{scores[best_first[0]]:.3f}" in rows[0]
    assert "only 4 images" in result.output
    for name in ("pr.png", "f_threshold.png"):
        assert (out / name).read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_the_first_two_commands_it_suggests_work(ran):
    result, _ = ran
    lines = [line.strip() for line in result.output.splitlines()]
    commands = [line for line in lines if line.startswith("bsdsbench ")]
    assert [shlex.split(line)[1] for line in commands] == [
        "run",
        "doctor",
        "report",
        "data",
        "evaluate",
    ]
    made = CliRunner().invoke(cli, shlex.split(commands[0])[1:], standalone_mode=False)
    assert made.exception is None
    found = CliRunner().invoke(cli, shlex.split(commands[1])[1:], standalone_mode=False)
    assert found.exception is None
    assert "--nms" in found.output
