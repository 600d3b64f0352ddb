"""A metric of another package gets what ours have: only its file and its entry point are new."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import imageio.v3 as iio
import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


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


@pytest.fixture(scope="module")
def call(site):
    def run(*arguments, status=0):
        path = os.pathsep.join([str(site), str(ROOT)])
        done = subprocess.run(
            [sys.executable, *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": path, "PYTEST_ADDOPTS": ""},  # no coverage floor
        )
        assert done.returncode == status, done.stderr
        return done.stdout + done.stderr

    return run


@pytest.fixture(scope="module")
def runs(call, data, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs")
    for name in ("good", "poor"):
        text = call(*evaluate(data, name), "-o", out / name, "--workers", "2")
        assert "DAVIS boundary F" in text
    return out


def evaluate(data, name):
    options = ("--gt", data / "gt", "--metrics", "davis-f", "--thresholds", "9", "--quiet")
    return ("-m", "bsdsbench", "evaluate", data / name, *options)


def contents(folder):
    return {
        p.relative_to(folder): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and p.name not in ("timing.json", ".lock") and ".records" not in p.parts
    }


def test_it_counts_what_its_definition_says(runs):
    found = json.loads((runs / "good" / "result.json").read_text())
    assert found["metrics"] == ["davis-f"]
    score = found["scores"]["davis-f"]
    assert score["ods"]["f"] > 0.95
    assert set(found["images"][0]["davis-f"]) == {"threshold", "recall", "precision", "f"}
    arrays = np.load(runs / "good" / "counts.npz")
    assert arrays["davis-f.total_gt"].shape == (9, 9)


def test_shards_merged_and_a_resumed_run_have_the_same_bytes(call, data, runs, tmp_path):
    parts = [tmp_path / f"part{i}" for i in (1, 2, 3)]
    for i, part in enumerate(parts, 1):
        call(*evaluate(data, "good"), "-o", part, "--shard", f"{i}/3", "--workers", "1")
    call("-m", "bsdsbench", "merge", *parts, "-o", tmp_path / "whole")
    assert contents(tmp_path / "whole") == contents(runs / "good")
    again = tmp_path / "again"
    shutil.copytree(runs / "good" / ".records", again / ".records")
    log = again / ".records" / "records"
    os.truncate(log, log.stat().st_size // 2)
    call(*evaluate(data, "good"), "-o", again, "--workers", "2")
    assert contents(again) == contents(runs / "good")


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
    line = call("-m", "bsdsbench", "explain", "--between", runs / "poor", out, status=1)
    assert "davis-f.bound" in line

    file.write_text('base = "bsds500"\nthresholds = 9\n[davis-f]\nbound = 0.05\nfill = false\n')
    options = ("--gt", data / "gt", "--metrics", "davis-f", "--quiet")
    for given in (("--protocol", file), ("--signature", stored["signature"])):
        again = tmp_path / given[0]
        call("-m", "bsdsbench", "evaluate", data / "poor", *options, *given, "-o", again)
        assert contents(again) == contents(out)
    for wrong, message in (
        ("davis-f.bound=2", "davis-f bound 2: expected a fraction in (0, 1)"),
        ("davis-f.fil=true", "did you mean 'fill'?"),
        ("davis.fill=true", "options 'davis': expected the name of a metric"),
    ):
        assert message in call(*evaluate(data, "poor"), "--set", wrong, status=2)


def test_compare_check_plot_and_report_have_its_labels(call, runs, tmp_path):
    good, poor = runs / "good", runs / "poor"
    text = call("-m", "bsdsbench", "compare", good, poor, "--n-boot", "200")
    assert "davis-f" in text
    baseline = tmp_path / "baseline.json"
    call("-m", "bsdsbench", "check", good, "--baseline", baseline, "--update")
    assert "davis-f.ods" in call("-m", "bsdsbench", "check", good, "--baseline", baseline)
    worse = call("-m", "bsdsbench", "check", poor, "--baseline", baseline, status=1)
    assert "FAIL davis-f.ods" in worse
    call("-m", "bsdsbench", "plot", good, poor, "-o", tmp_path / "pr.png")
    assert (tmp_path / "pr.png").stat().st_size > 10_000
    call("-m", "bsdsbench", "report", good, poor, "-o", tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text("utf-8")
    assert "DAVIS boundary F" in page
    assert "Pixels" not in page


def test_it_keeps_the_contract_of_metrics(call):
    tests = Path(__file__).with_name("check_davis_boundary.py")
    told = call("-m", "pytest", "-q", "-p", "no:cacheprovider", tests)
    assert "10 passed, 1 skipped" in told  # no plain definition of its counts


def test_what_it_does_not_have_is_said_in_one_line(call, data, runs):
    told = call(*evaluate(data, "good")[:-1], "--overlays", "-o", runs / "good", status=2)
    assert "no metric that matches pixels" in told
    told = call(
        *("-m", "bsdsbench", "evaluate", "--humans", "--gt", data / "gt", "--metrics", "davis-f"),
        status=2,
    )
    assert "'davis-f': has no human form" in told


def test_a_metric_that_cannot_be_loaded_is_named(call, site, data, tmp_path):
    broken = tmp_path / "site" / "broken-1.0.dist-info"
    broken.mkdir(parents=True)
    (broken / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (broken / "entry_points.txt").write_text("[bsdsbench.metrics]\nbroken = nowhere:Metric\n")
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r})\n"
        "from bsdsbench.metrics import registry\n"
        "try:\n    registry.get('broken')\nexcept Exception as e:\n    print(type(e).__name__, e)\n"
    )
    assert "DataError metric 'broken': nowhere:Metric cannot be loaded" in call("-c", program)
