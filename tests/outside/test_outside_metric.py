"""A metric of another package gets what ours have: only its file and its entry point are new."""

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import imageio.v3 as iio
import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.metrics import registry
from tests.helpers.metric_contract import MetricContract
from tests.helpers.runs import command

HERE = ("--workers", "1", "--executor", "thread")
ROOT = Path(__file__).parents[2]
AUTHORS = "tests.outside.check_davis_boundary"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The package as pip leaves it: its module, and a dist-info with the entry point."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(Path(__file__).with_name("davis_boundary.py"), folder)
    info = folder / "davis_boundary-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: davis-boundary\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[bsdsbench.metrics]\ndavis-f = davis_boundary:DavisBoundary\n"
    )
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Discs, and two methods: one near, one that is blurred and moved."""
    folder = tmp_path_factory.mktemp("data")
    for name in ("gt", "good", "poor"):
        (folder / name).mkdir()
    for k in range(9):
        rng = np.random.default_rng(k)
        y, x = np.mgrid[:60, :80]
        away = np.hypot(y - rng.integers(25, 35), x - rng.integers(30, 50)) - rng.integers(12, 20)
        for name, values in (
            ("gt", away < 0),
            ("good", 1 / (1 + np.exp(away / 2))),
            ("poor", 1 / (1 + np.exp((np.roll(away, 4, 1) + 2 * rng.random(away.shape)) / 4))),
        ):
            pixels = np.rint(255 * np.asarray(values, float)).astype(np.uint8)
            iio.imwrite(folder / name / f"i{k}.png", pixels)
    return folder


def forget():
    """What was found of other packages, and what was loaded."""
    registry._others.cache_clear()
    registry.get.cache_clear()
    for name in ("davis_boundary", AUTHORS):
        sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def process(site):
    """Python in a process of its own, where the package is installed."""

    def run(*arguments):
        path = os.pathsep.join([str(site), str(ROOT)])
        done = subprocess.run(
            [sys.executable, *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": path, "PYTEST_ADDOPTS": ""},  # no coverage floor
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    return run


@pytest.fixture(scope="module")
def call(site):
    """The command line in this process, where the package is installed meanwhile."""

    def run(*words, status=0):
        done = command(*words)
        assert done.returncode == status, done.stderr
        return done.stdout + done.stderr

    sys.path.insert(0, str(site))
    forget()
    yield run
    sys.path.remove(str(site))
    forget()


@pytest.fixture(scope="module")
def runs(call, process, data, tmp_path_factory):
    """One by a command with two workers, one in this process."""
    out = tmp_path_factory.mktemp("runs")
    text = process("-m", "bsdsbench", *evaluate(data, "good", "--workers", 2), "-o", out / "good")
    assert "DAVIS boundary F" in text
    assert "DAVIS boundary F" in call(*evaluate(data, "poor"), "-o", out / "poor")
    return out


def evaluate(data, name, *workers):
    options = ("--gt", data / "gt", "--metrics", "davis-f", "--thresholds", "9", "--quiet")
    return ("evaluate", data / name, *options, *(workers or HERE))


def contents(folder):
    return {
        p.relative_to(folder): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and p.name not in ("timing.json", ".lock") and ".records" not in p.parts
    }


@pytest.mark.process
def test_it_counts_what_its_definition_says(runs):
    found = json.loads((runs / "good" / "result.json").read_text())
    assert found["metrics"] == ["davis-f"]
    score = found["scores"]["davis-f"]
    assert score["ods"]["f"] > 0.95
    assert set(found["images"][0]["davis-f"]) == {"threshold", "recall", "precision", "f"}
    arrays = np.load(runs / "good" / "counts.npz")
    assert arrays["davis-f.total_gt"].shape == (9, 9)


@pytest.mark.slow
def test_shards_merged_and_a_resumed_run_have_the_same_bytes(call, data, runs, tmp_path):
    parts = [tmp_path / f"part{i}" for i in (1, 2, 3)]
    for i, part in enumerate(parts, 1):
        call(*evaluate(data, "good"), "-o", part, "--shard", f"{i}/3")
    call("merge", *parts, "-o", tmp_path / "whole")
    assert contents(tmp_path / "whole") == contents(runs / "good")
    again = tmp_path / "again"
    shutil.copytree(runs / "good" / ".records", again / ".records")
    log = again / ".records" / "records"
    os.truncate(log, log.stat().st_size // 2)
    call(*evaluate(data, "good"), "-o", again)
    assert contents(again) == contents(runs / "good")


@pytest.mark.slow
def test_its_options_are_set_printed_stored_and_part_of_what_is_resumed(call, data, runs, tmp_path):
    """By --set, by a file, by the signature that is printed; another value is counted again."""
    out, file = tmp_path / "wide", tmp_path / "wide.toml"
    shutil.copytree(runs / "poor", out)
    text = call(*evaluate(data, "poor"), "-o", out, "--set", "davis-f.bound=.05")
    assert "; AP rule bsds; boundaries within 0.05 of the diagonal" in text
    stored = json.loads((out / "result.json").read_text())
    assert stored["protocol"]["options"] == {"davis-f": {"bound": 0.05}}
    assert "|thr:9|ap:bsds|davis-f.bound=0.05" in stored["signature"]
    assert "tol:" not in stored["signature"]
    before = json.loads((runs / "poor" / "result.json").read_text())
    narrow, wide = (r["scores"]["davis-f"]["ods"]["f"] for r in (before, stored))
    assert wide > narrow
    line = call("explain", "--between", runs / "poor", out, status=1)
    assert "davis-f.bound" in line

    file.write_text('base = "bsds500"\nthresholds = 9\n[davis-f]\nbound = 0.05\nfill = false\n')
    options = ("--gt", data / "gt", "--metrics", "davis-f", "--quiet", *HERE)
    for given in (("--protocol", file), ("--signature", stored["signature"])):
        again = tmp_path / given[0]
        call("evaluate", data / "poor", *options, *given, "-o", again)
        assert contents(again) == contents(out)
    for wrong, message in (
        ("davis-f.bound=2", "davis-f bound 2.0: expected a fraction in (0, 1)"),
        ("davis-f.fil=true", "did you mean 'fill'?"),
        ("davis.fill=true", "options 'davis': expected the name of a metric"),
    ):
        assert message in call(*evaluate(data, "poor"), "--set", wrong, status=2)


@pytest.mark.slow
def test_compare_check_plot_and_report_have_its_labels(call, runs, tmp_path):
    good, poor = runs / "good", runs / "poor"
    text = call("compare", good, poor, "--n-boot", "200")
    assert "davis-f" in text
    baseline = tmp_path / "baseline.json"
    call("check", good, "--baseline", baseline, "--update")
    assert "davis-f.ods" in call("check", good, "--baseline", baseline)
    worse = call("check", poor, "--baseline", baseline, status=1)
    assert "FAIL davis-f.ods" in worse
    call("plot", good, poor, "-o", tmp_path / "pr.png")
    assert (tmp_path / "pr.png").stat().st_size > 10_000
    call("report", good, poor, "-o", tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text("utf-8")
    assert "DAVIS boundary F" in page
    assert "Pixels" not in page


class TestItsAuthorsTests(MetricContract):
    """The contract of metrics by the case that its author wrote, which has no plain definition of
    its counts and no matched pixels."""

    @pytest.fixture
    def case(self, call):
        return importlib.import_module(AUTHORS).CASE


@pytest.mark.slow
def test_what_it_does_not_have_is_said_in_one_line(call, data, runs):
    told = call(*evaluate(data, "good"), "--overlays", "-o", runs / "good", status=2)
    assert "no metric that matches pixels" in told
    told = call(
        *("evaluate", "--humans", "--gt", data / "gt", "--metrics", "davis-f", *HERE), status=2
    )
    assert "'davis-f': has no human form" in told


def test_a_metric_that_cannot_be_loaded_is_named(monkeypatch, tmp_path):
    broken = tmp_path / "site" / "broken-1.0.dist-info"
    broken.mkdir(parents=True)
    (broken / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (broken / "entry_points.txt").write_text("[bsdsbench.metrics]\nbroken = nowhere:Metric\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    forget()
    with pytest.raises(bb.DataError, match="'broken': nowhere:Metric cannot be loaded"):
        registry.get("broken")
    monkeypatch.undo()
    forget()
