"""`data get` on the command line, and the verbs that take a set from the cache."""

import json
import shutil

import attrs
import click
import pytest
from click.testing import CliRunner

from bsdsbench.cli import cli
from bsdsbench.errors import DataError
from bsdsbench.loaders.sample import sample_ground_truth, sample_images
from bsdsbench.loaders.sets import identity, public_sets
from bsdsbench.protocol import tasks
from bsdsbench.protocol.protocol import Protocol
from tests.helpers.from_nothing import commands, walk
from tests.helpers.runs import call
from tests.test_readme import README

TASK = "bsds500-test/boundary"
IDS = ("fruit1", "town1")


@pytest.fixture
def archive(tmp_path, monkeypatch):
    """An archive of two images, which are BSDS500's test split here; an empty cache."""
    for part, files in (("groundTruth", sample_ground_truth()), ("images", sample_images())):
        (tmp_path / "packed" / part / "test").mkdir(parents=True)
        for name in IDS:
            (path,) = files.glob(f"{name}.*")
            shutil.copy(path, tmp_path / "packed" / part / "test")
    images = identity.folder_fingerprints(truth(tmp_path), Protocol.preset("bsds500"))
    known = {"bsds500-test": images}
    task = attrs.evolve(
        tasks.tasks()[TASK], fingerprint=identity.set_fingerprint(images), images=len(images)
    )
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(identity, "shipped_sets", lambda: known)
    monkeypatch.setitem(tasks.tasks(), TASK, task)
    return shutil.make_archive(str(tmp_path / "set"), "gztar", tmp_path / "packed")


def truth(tmp_path):
    return tmp_path / "packed" / "groundTruth" / "test"


def called(*words):
    return CliRunner().invoke(cli, list(map(str, words)), standalone_mode=False)


def test_the_licence_is_said_first_and_the_folder_last(archive):
    done = called("data", "get", "bsds500", "--url", archive)
    assert done.exception is None
    assert "licence: for non-commercial research" in done.stderr
    assert done.stdout.strip() == str(public_sets.cache_folder() / "bsds500")
    assert call("data", "check").split()[0] == "bsds500"


def test_a_set_without_an_address_is_three_lines(archive):
    done = called("data", "get", "cityscapes")
    assert done.return_value == 2
    assert len(done.stdout.splitlines()) == 3
    assert "Register" in done.stdout.splitlines()[2]


def test_no_network_is_one_line(archive):
    with pytest.raises(DataError) as error:
        call("data", "get", "bsds500", "--url", "http://127.0.0.1:1/none.zip")
    assert len(error.value.problems) == 1
    assert "127.0.0.1:1/none.zip" in str(error.value)
    assert called("data", "check").return_value == 1


@pytest.mark.parametrize(
    "words",
    [
        ("evaluate", "maps", "--task", TASK),
        ("doctor", "maps", "--task", TASK),
        ("run", "sobel", "--task", TASK, "-o", "out"),
    ],
)
def test_without_the_set_a_line_says_how_to_get_it(archive, words):
    with pytest.raises(DataError, match="bsdsbench data get bsds500"):
        call(*words)


@pytest.mark.parametrize("words", [("evaluate", "maps"), ("doctor", "maps")])
def test_neither_ground_truth_nor_task(words):
    with pytest.raises(click.UsageError, match=r"--gt FOLDER, or a --task"):
        call(*words)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* thin edges")  # those of Sobel, with NMS
def test_with_the_set_in_the_cache_its_name_is_enough(archive, tmp_path):
    call("data", "get", "bsds500", "--url", archive)
    few = ("--workers", 1, "--quiet")
    shown = call("run", "sobel", "--task", TASK, "-o", tmp_path / "sobel", *few)
    assert f"task     {TASK}" in shown
    maps = tmp_path / "sobel" / "maps"
    given = json.loads(call("evaluate", maps, "--task", TASK, "--format", "json", *few))
    asked = call("evaluate", maps, "--gt", truth(tmp_path), "--format", "json", *few)
    assert given["scores"] == json.loads(asked)["scores"]
    assert "protocol bsds500" in call("doctor", maps, "--task", TASK, "--quiet")
    with pytest.raises(click.UsageError, match="IMAGES"):
        call("run", "sobel", "-o", tmp_path / "other")
    thin = json.loads(call("evaluate", maps, "--task", TASK, "--nms", "--format", "json", *few))
    assert (thin["tasks"], thin["scores"] == given["scores"]) == ([TASK], False)
    lacking = shutil.copytree(truth(tmp_path), tmp_path / "truth")
    (lacking / "fruit1.mat").unlink()
    others = ("--images", sample_images(), "--gt", lacking, "--task", TASK, "-o", tmp_path / "no")
    with pytest.raises(DataError, match="expected bsds500-test"):
        call("run", "sobel", *others[1:])


@pytest.mark.process
@pytest.mark.slow
def test_from_nothing_to_scores_in_three_commands(tmp_path):
    assert [words[:3] for words in commands(README)] == [
        ["python3", "-m", "venv"],
        ["bsdsbench", "data", "get"],
        ["bsdsbench", "evaluate", "maps"],
    ]
    got, scored = walk(README, tmp_path)
    assert got.strip() == str(tmp_path / "cache" / "bsdsbench" / "data" / "bsds500")
    assert "bsds500-test, 4 of 4 images" in scored
    assert (tmp_path / "out" / "mine" / "result.json").is_file()
