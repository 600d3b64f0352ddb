"""Results that travel: formats by their own validators, what import refuses, a board."""

import csv
import io
import json
import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import imageio.v3 as iio
import numpy as np
import pytest
import yaml

import bsdsbench as bb
from bsdsbench.files.writing import digest
from bsdsbench.loaders.identity import folder_fingerprints, set_fingerprint
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.report.exports import check_import, export
from bsdsbench.runs.record_store import content_hash
from tests.helpers.making import make_set
from tests.helpers.runs import call, command, counted, refused

ROOT = Path(__file__).parents[2]
SCHEMA = Path(__file__).parent / "schemas" / "every_eval_ever.json"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A task of six made images, and a run of it: (folder, task, run)."""
    root = tmp_path_factory.mktemp("made")
    pred, gt = make_set(root)
    marks = folder_fingerprints(gt, Protocol.preset("bsds500"))
    task = root / "task.toml"
    task.write_text(
        'name = "tiny/boundary"\nprotocol = "bsds500"\nimages = 6\n'
        f'fingerprint = "{set_fingerprint(marks)}"\n'
    )
    return root, task, counted(pred, gt, task=task, name="mine: <1>")


def test_every_eval_ever_by_its_schema(made, tmp_path):
    """The schema is that of every-eval-ever 0.3.0 (MIT, see its LICENSE beside it)."""
    jsonschema = pytest.importorskip("jsonschema")
    (folder,) = export([made[2]], "eee", tmp_path, n_boot=50)
    found = json.loads((folder / "every_eval_ever.json").read_text("utf-8"))
    validator = jsonschema.Draft7Validator(json.loads(SCHEMA.read_text("utf-8")))
    assert [e.message for e in validator.iter_errors(found)] == []
    del found["evaluation_results"][0]["metric_config"]["lower_is_better"]
    assert list(validator.iter_errors(found))
    scores = {
        r["metric_config"]["metric_id"]: r["score_details"] for r in found["evaluation_results"]
    }
    ods = scores["bsdsbench.boundary.ods"]
    assert ods["score"] == made[2].boundary_score().ods.f
    interval = bb.compare([made[2]], n_boot=50).interval_of("mine: <1>", "ods")
    told = ods["uncertainty"]["confidence_interval"]
    assert (told["lower"], told["upper"]) == (interval.low, interval.high)
    details = found["eval_library"]["additional_details"]
    assert details["task"] == "tiny/boundary v1"
    assert details["counts_sha256"] == content_hash(made[2].records)


def test_the_hubs_yaml_and_csv_have_the_same_numbers(made, tmp_path):
    run, score = made[2], made[2].boundary_score()
    (hub,) = export([run], "hf", tmp_path / "hf", dataset="acme/tiny")
    entries = yaml.safe_load((hub / ".eval_results" / "tiny-boundary.yaml").read_text("utf-8"))
    values = {e["dataset"]["task_id"]: e["value"] for e in entries}
    assert values["tiny-boundary-ods"] == score.ods.f
    assert values["tiny-boundary-ap"] == score.ap
    assert {e["dataset"]["id"] for e in entries} == {"acme/tiny"}
    assert all(content_hash(run.records) in e["notes"] for e in entries)
    (folder,) = export([run], "csv", tmp_path / "csv")
    rows = list(csv.DictReader(io.StringIO((folder / "results.csv").read_text("utf-8"))))
    assert {r["score"]: float(r["value"]) for r in rows}["ods"] == score.ods.f
    assert {r["task"] for r in rows} == {"tiny/boundary"}
    for name in ("result.json", "results.csv"):
        assert str(made[0]) not in (folder / name).read_text("utf-8")  # no folders of ours


@pytest.mark.slow
def test_import_takes_what_export_wrote(made, tmp_path):
    for to in ("csv", "eee"):
        call("export", _saved(made, tmp_path), "--to", to, "-o", tmp_path / to)
        told = call("import", tmp_path / to, "--task", made[1], "-o", tmp_path / f"in-{to}")
        assert "tiny/boundary" in told
        (folder,) = (tmp_path / f"in-{to}").iterdir()
        again = bb.Evaluation.load(folder)
        assert again.equals(made[2])
        assert not again.own
    refused("does not belong to bsds500-test/boundary", call, "import", tmp_path / "csv",
            "--task", "bsds500-test/boundary")  # fmt: skip


def _saved(made, tmp_path):
    return made[2].save(tmp_path / "run")


def _altered(folder, name, change):
    """Alter a file, and its hash in the manifest with it, as somebody who cheats would."""
    data = change((folder / name).read_text("utf-8")).encode()
    (folder / name).write_bytes(data)
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    manifest["files"][name] = digest(data)
    (folder / "manifest.json").write_text(json.dumps(manifest))


def test_import_refuses_what_does_not_follow(made, tmp_path):
    run = made[2]
    ods = json.dumps(run.boundary_score().ods.f)
    better = str(round(float(ods), 3) + 0.01)

    def fresh(to="csv"):
        shutil.rmtree(tmp_path / "x", ignore_errors=True)
        return export([run], to, tmp_path / "x", dataset="a/b", n_boot=50)[0]

    (fresh() / "results.csv").write_text("task\n")
    refused("results.csv: is not what manifest.json names", check_import, tmp_path / "x")
    _altered(fresh(), "result.json", lambda t: t.replace(ods, better))
    refused("scores do not follow from counts.npz", check_import, tmp_path / "x")
    _altered(fresh(), "result.json", lambda t: t.replace('"counts": "', '"counts": "0'))
    refused("counts: not the hash of counts.npz", check_import, tmp_path / "x")
    _altered(fresh(), "result.json", lambda t: t.replace('[\n  "tiny/b', '[\n  "huge/b'))
    refused("tasks do not follow", check_import, tmp_path / "x")
    for to, name in (
        *(("csv", "results.csv"), ("eee", "every_eval_ever.json")),
        ("hf", ".eval_results/tiny-boundary.yaml"),
    ):
        _altered(fresh(to), name, lambda t: t.replace(ods, better))
        refused(f"{name}: does not follow from counts.npz", check_import, tmp_path / "x")
    refused("no manifest.json, expected a folder", check_import, made[0])


def test_what_cannot_be_exported(made, tmp_path):
    nameless = replace(made[2], provenance={})
    refused("belongs to no task, expected a run of", export, [nameless], "csv", tmp_path)
    refused("expected the data set on the hub", export, [made[2]], "hf", tmp_path)
    refused("expected one of hf, eee, csv", export, [made[2]], "xml", tmp_path)


def test_the_hash_is_of_the_content(made):
    records = made[2].records
    other = [replace(r, fingerprint="0" * 32, seconds=9.0) for r in records]
    assert content_hash(records) == content_hash(other)
    for change in ({"image_id": "zz"}, {"truth": "0" * 16}, {"size": (1, 2)}):
        assert content_hash([*records[:-1], replace(records[-1], **change)]) != content_hash(
            records
        )
    assert content_hash(records[:-1]) != content_hash(records)


def git(place, *words):
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "init.defaultBranch=main"]
    done = subprocess.run(
        ["git", *who, *words], cwd=place, check=True, capture_output=True, text=True
    )
    return done.stdout


QUICK = {"evaluate": ["--workers=1"], "report": ["--n-boot=20"]}
ASKS = """#!/bin/sh
printf '%s\\0' "$@" > "$PIPES/asked"
read status < "$PIPES/told"
exit "$status"
"""


@pytest.fixture
def shell(tmp_path, monkeypatch):
    """Runs a script whose calls of bsdsbench come to this process."""
    for pipe in ("asked", "told"):
        os.mkfifo(tmp_path / pipe)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "bsdsbench").write_text(ASKS)
    (tmp_path / "bin" / "bsdsbench").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    monkeypatch.setenv("PIPES", str(tmp_path))

    def few(runs, n_boot, **more):
        return bb.compare(runs, n_boot=20, **more)

    monkeypatch.setattr("bsdsbench.report.exports.compare", few)

    def run(script, folder):
        monkeypatch.chdir(folder)
        words = ["sh", "-c", 'sh; status=$?; printf "ended\\0" > "$PIPES/asked"; exit $status']
        process = subprocess.Popen(words, stdin=subprocess.PIPE, text=True)
        process.stdin.write(script)
        process.stdin.close()
        while (words := (tmp_path / "asked").read_text().split("\0")[:-1]) != ["ended"]:
            done = command(*words, *QUICK.get(words[0], ()))
            (tmp_path / "told").write_text(f"{done.returncode}\n")
        assert process.wait() == 0, done.stderr

    return run


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no sh")
@pytest.mark.slow
@pytest.mark.process
def test_a_board_by_pull_requests(made, tmp_path, shell, monkeypatch):
    """A bare repository, a maintainer, a contributor: maps come by a branch, the documented script
    recounts them by the rules of main, the page is rebuilt; rules of the branch do not count."""
    root, task, _ = made
    hub, board, mine = tmp_path / "hub.git", tmp_path / "board", tmp_path / "mine"
    git(tmp_path, "init", "--bare", hub)
    git(tmp_path, "clone", hub, board)
    blocks = re.findall(
        r"```sh\n(.*?)```", (ROOT / "docs" / "howto" / "leaderboard.md").read_text(), re.S
    )
    (script,) = [block for block in blocks if "--task" in block]
    (board / "score.sh").write_text(script)
    shutil.copy(task, board / "task.toml")
    shutil.copytree(root / "pred", board / "methods" / "first" / "maps")
    (board / ".gitignore").write_text("runs/\n")
    git(board, "checkout", "-b", "main")
    git(board, "add", "-A")
    git(board, "commit", "-m", "board")
    git(board, "push", "origin", "main")

    git(tmp_path, "clone", "-b", "main", hub, mine)
    git(mine, "checkout", "-b", "second")
    maps = mine / "methods" / "second" / "maps"
    maps.mkdir(parents=True)
    for path in (root / "gt").iterdir():
        drawn = iio.imread(path / "1.png")
        iio.imwrite(maps / f"{path.name}.png", np.where(drawn > 0, 255, 0).astype(np.uint8))
    loose = (mine / "task.toml").read_text().replace('"bsds500"', '"nyudv2"')
    (mine / "task.toml").write_text(loose)  # another tolerance would be nice
    git(mine, "add", "-A")
    git(mine, "commit", "-m", "second")
    git(mine, "push", "origin", "second")

    (tmp_path / "temp").mkdir()
    monkeypatch.setenv("GT", str(root / "gt"))
    monkeypatch.setenv("RUNNER_TEMP", str(tmp_path / "temp"))

    def workflow(branch):
        git(board, "fetch", "origin")
        git(board, "checkout", "-B", "work", f"origin/{branch}")
        shell(git(board, "show", "origin/main:score.sh"), board)
        return json.loads((board / "site" / "leaderboard.json").read_text("utf-8"))

    assert [r["name"] for r in workflow("main")[0]["rows"]] == ["first"]
    (found,) = workflow("second")
    assert found["task"] == "tiny/boundary"
    assert [r["name"] for r in found["rows"]] == ["second", "first"]
    assert "tol:.0075d" in found["rows"][0]["note"]  # main's rules
    git(board, "checkout", "origin/main", "--", "task.toml")
    git(board, "add", "-A")
    git(board, "commit", "-m", "merge second")
    git(board, "push", "origin", "work:main")
    git(mine, "fetch", "origin")
    page = git(mine, "show", "origin/main:site/index.html")
    assert "second" in page
    assert page.count('<path class="curve"') == 2
    git(mine, "checkout", "-B", "main", "origin/main")
    assert {run.name for run in check_import(mine / "results")} == {"first", "second"}
    altered = mine / "results" / "second" / "counts.npz"
    altered.write_bytes(altered.read_bytes()[:-1])
    refused("counts.npz: is not what manifest.json names", check_import, mine / "results")


def test_runs_of_one_name_are_told_apart_by_their_folders(made, tmp_path):
    folders = [made[2].save(tmp_path / name / "maps") for name in ("canny", "sobel")]
    found = export(folders, "csv", tmp_path / "out")
    assert [run.name for run in check_import(tmp_path / "out")] == [
        "mine: <1> (canny/maps)",
        "mine: <1> (sobel/maps)",
    ]
    assert len(found) == 2
    refused("expected a different name", export, [made[2]] * 2, "csv", tmp_path / "out")
