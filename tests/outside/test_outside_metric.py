"""A metric of another package gets what ours have: only its file and its entry point are new."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import attrs
import imageio.v3 as iio
import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.metrics import registry
from bsdsbench.testing import MetricCase, MetricContract
from tests.helpers.runs import bits, command

HERE = ("--workers", "1", "--executor", "thread")
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


def disc(k, shape=(60, 80)):
    """The mask of a disc, and the distance from it."""
    rng = np.random.default_rng(k)
    y, x = np.mgrid[: shape[0], : shape[1]]
    centre = rng.integers(shape[0] // 3, shape[0] // 2), rng.integers(shape[1] // 3, shape[1] // 2)
    return np.hypot(y - centre[0], x - centre[1]) < rng.integers(6, 9 + shape[0] // 6)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Discs, and two methods: one a pixel off, one that is moved further and has a hole."""
    folder = tmp_path_factory.mktemp("data")
    for k in range(9):
        mask = disc(k)
        poor = np.roll(mask, 3 + k % 3, 1)
        poor[(disc(k).nonzero()[0].mean().astype(int)), :] &= k % 2 == 0
        for name, values in (("gt", mask), ("good", np.roll(mask, 1, 0)), ("poor", poor)):
            (folder / name).mkdir(exist_ok=True)
            iio.imwrite(folder / name / f"i{k}.png", values * np.uint8(255))
    return folder


def forget():
    """What was found of other packages, and what was loaded."""
    registry._entry_points.cache_clear()
    registry.get.cache_clear()
    registry.metric_hash.cache_clear()
    sys.modules.pop("davis_boundary", None)


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


def evaluate(data, name, *workers):
    options = ("--gt", data / "gt", "--metrics", "davis-f", "--quiet")
    return ("evaluate", data / name, *options, *(workers or HERE))


@pytest.fixture(scope="module")
def runs(call, data, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs")
    for name in ("good", "poor"):
        assert "DAVIS boundary F" in call(*evaluate(data, name), "-o", out / name)
    return out


def score_of(folder):
    return json.loads((folder / "result.json").read_text())["scores"]["davis-f"]


def test_evaluate_counts_what_its_definition_says(runs):
    assert score_of(runs / "good")["f"] > 0.95 > score_of(runs / "poor")["f"] > 0
    assert np.load(runs / "good" / "counts.npz")["davis-f.four"].shape == (9, 4)


@pytest.mark.slow
@pytest.mark.process
def test_workers(site, data, runs, tmp_path):
    """Two processes, to which the package is as new."""
    words = evaluate(data, "good", "--workers", "2", "--executor", "process")
    path = {"PYTHONPATH": os.pathsep.join([str(site), str(ROOT)]), "PYTEST_ADDOPTS": ""}
    command = [sys.executable, "-m", "bsdsbench", *map(str, words), "-o", str(tmp_path / "out")]
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT, env={**os.environ, **path})
    assert bits(tmp_path / "out") == bits(runs / "good")


@pytest.mark.slow
def test_every_verb_knows_it(call, data, runs, tmp_path):
    good, poor = runs / "good", runs / "poor"
    parts = [tmp_path / f"part{i}" for i in (1, 2)]
    for i, part in enumerate(parts, 1):
        call(*evaluate(data, "good"), "-o", part, "--shard", f"{i}/2")
    call("merge", *parts, "-o", tmp_path / "whole")
    assert bits(tmp_path / "whole") == bits(good)

    assert "davis-f" in call("compare", good, poor, "--n-boot", "100")
    made = bb.compare([bb.Evaluation.load(run) for run in (good, poor)], n_boot=100)
    interval = made.interval_of("good", "davis-f.f")
    assert interval.low <= interval.value <= interval.high

    gate = "--baseline", tmp_path / "baseline.json"
    call("check", good, *gate, "--update")
    assert "davis-f.f" in call("check", good, *gate)
    assert "FAIL davis-f.f" in call("check", poor, *gate, status=1)

    call("report", good, poor, "-o", tmp_path / "r.html", "--n-boot", "100")
    assert "DAVIS boundary F" in (tmp_path / "r.html").read_text("utf-8")

    call(*evaluate(data, "poor"), "--per-image", tmp_path / "cases.csv")
    rows = list(csv.DictReader((tmp_path / "cases.csv").read_text().splitlines()))
    assert [row["image"] for row in rows] == [f"i{k}" for k in range(9)]
    assert np.mean([float(row["f"]) for row in rows]) == pytest.approx(score_of(poor)["f"])

    told = call("worst", good, "--overlays", status=2)
    assert "for overlays (it has davis-f)" in told
    humans = ("--humans", "--gt", data / "gt", "--metrics", "davis-f", *HERE)
    assert "davis-f" in call("evaluate", *humans, status=2)


@pytest.mark.slow
def test_options_are_set_printed_stored_and_part_of_what_is_resumed(call, data, runs, tmp_path):
    out, file = tmp_path / "wide", tmp_path / "wide.toml"
    shutil.copytree(runs / "poor", out)
    text = call(*evaluate(data, "poor"), "-o", out, "--set", "davis-f.bound=.02")
    assert "bound 0.02" in text
    stored = json.loads((out / "result.json").read_text())
    assert stored["protocol"]["options"]["davis-f"] == {"bound": 0.02}
    target = stored["scores"]["davis-f"]["f"]
    assert target > score_of(runs / "poor")["f"]
    found = call("explain", runs / "poor", "--target", f"davis-f.f={target:.6f}", *HERE[:2])
    assert "0.02" in found  # the value that another program has
    file.write_text('base = "masks"\n[davis-f]\nbound = 0.02\nfill = false\n')
    options = ("--gt", data / "gt", "--metrics", "davis-f", "--quiet", *HERE)
    for given in (("--protocol", file), ("--signature", stored["signature"])):
        call("evaluate", data / "poor", *options, *given, "-o", tmp_path / given[0])
        assert score_of(tmp_path / given[0]) == stored["scores"]["davis-f"]
    for wrong, named in (("davis-f.bound=-2", "bound"), ("davis-f.fil=true", "'fill'")):
        assert named in call(*evaluate(data, "poor"), "--set", wrong, status=2)


class TestContract(MetricContract):
    """As the author of a metric tests it."""

    @pytest.fixture
    def case(self, call):
        images = []
        for k, name in enumerate("ab"):
            mask = disc(k, (60 + k, 80)).astype(np.uint8)
            moved = bb.Prediction(name, classes=np.roll(mask, 1 + k, 1))
            images.append((moved, bb.GroundTruth(name, labels=mask)))
        return MetricCase(registry.get("davis-f"), images, perfect=right)


def right(gt):
    return bb.Prediction(gt.image_id, classes=gt.labels), gt


@pytest.mark.process
@pytest.mark.slow
def test_the_test_that_the_page_shows_passes(tmp_path):
    """In a package of its own, whose module is the file that the page shows."""
    page = (ROOT / "docs" / "howto" / "own_metric.md").read_text("utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    (tmp_path / "test_davis.py").write_text(code)
    (tmp_path / "my_package").mkdir()
    shutil.copy(Path(__file__).with_name("davis_boundary.py"), tmp_path / "my_package" / "davis.py")
    info = tmp_path / "my_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
    named = re.search(r'^(davis-f) = "(.*)"$', page, re.M)
    (info / "entry_points.txt").write_text(f"[bsdsbench.metrics]\n{named[1]} = {named[2]}\n")
    path = {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)]), "PYTEST_ADDOPTS": ""}
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_davis.py"]
    done = subprocess.run(
        words, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, **path}
    )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


def test_images_are_counted_again_where_the_file_of_the_metric_was_changed(call, data, site):
    out, file = data / "changed", site / "davis_boundary.py"
    words = *evaluate(data, "good"), "-o", out
    assert "counted" not in call(*words)
    assert "9 of 9 images were counted before" in call(*words)
    before, text = bits(out), file.read_text()
    try:
        file.write_text(text.replace("math.ceil(", "2 * math.ceil("))
        forget()
        printed = call(*words)
        assert "the file of metric 'davis-f' was changed since its images were counted" in printed
        assert "counted before" not in printed
        assert bits(out)["counts.npz"] != before["counts.npz"]
        assert "was changed" not in call(*words)
    finally:
        file.write_text(text)
        forget()


def test_runs_of_two_sources_of_a_metric_are_not_merged_and_compared_with_a_word(
    call, data, site, runs, tmp_path
):
    """Also where the change moves no count; a shard put together in Python says no source."""
    file, parts = site / "davis_boundary.py", [tmp_path / "part1", tmp_path / "part2"]
    text = file.read_text()
    call(*evaluate(data, "good"), "-o", parts[0], "--shard", "1/2")
    try:
        file.write_text(text + "# another edition\n")
        forget()
        call(*evaluate(data, "good"), "-o", parts[1], "--shard", "2/2")
        merged = call("merge", *parts, "-o", tmp_path / "whole", status=2)
        assert (
            "its source of plug-in metrics differs from that of run 1 (davis-f was changed)"
            in merged
        )
        call(*evaluate(data, "poor"), "-o", tmp_path / "later")
        compared = call("compare", runs / "good", tmp_path / "later", "--n-boot", 20)
        assert "source of metric davis-f:" in compared
    finally:
        file.write_text(text)
        forget()
    shards = [bb.Evaluation.load(part) for part in parts]
    earlier = replace(shards[1], provenance=attrs.evolve(shards[1].provenance, sources=None))
    assert len(bb.merge([shards[0], earlier]).records) == 9


def test_a_changed_file_that_the_metric_imports_counts_too(tmp_path, monkeypatch):
    package, info = tmp_path / "my_package", tmp_path / "my_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[bsdsbench.metrics]\nmine = my_package.davis:Mine\n")
    files = {
        "__init__": "",
        "davis": 'from my_package.base import Base\n\nclass Mine(Base):\n    name = "mine"\n',
        "base": Path(__file__).with_name("davis_boundary.py").read_text()
        + "\nfrom my_package import near\n\nclass Base(DavisBoundary):\n    pass\n",
        "near": "from my_package.more import far\n",
        "more": "def far():\n    return 1\n",
        "other": "",
    }
    package.mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    hashes = []
    for changed in ("", "davis", "base", "near", "more", "other"):
        for name, text in files.items():
            (package / f"{name}.py").write_text(text + "# changed\n" * (name == changed))
        forget()
        for name in files:
            sys.modules.pop(f"my_package.{name}", None)
        sys.modules.pop("my_package", None)
        hashes.append(registry.metric_hash("mine"))
    assert len({*hashes[:-1]}) == 5
    assert hashes[-1] == hashes[0]  # a file that it does not import
    monkeypatch.undo()
    forget()


IN_FILE = r" in davis_boundary\.py, line"


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("import math\n", "import math\nmath.nothing\n", f"AttributeError.*{IN_FILE}"),
        ("import math\n", "import math!\n", r"SyntaxError.*davis_boundary\.py, line 4"),
        ('"classes", Davis', '"labels", Davis', "reads 'labels', expected one of annotators"),
        ('"davis-f", "DAVIS', '"davis", "DAVIS', "no Metric of that name"),
        ('"DAVIS boundary F", "classes"', '"", "classes"', "has no title"),
        ("    def count(", "    def counted(", "abstract"),
        ('        return {"four": four}', "        return 1 / 0", f"ZeroDivisionError.*{IN_FILE}"),
        ("        own = shares", "        own = shade", f"NameError.*{IN_FILE}"),
        ("    image_columns", "    def parts(self, *_): return _[7]\n    image_columns", IN_FILE),
    ],
)
def test_a_fault_in_the_file_of_a_metric_names_it(call, data, site, old, new, fault):
    file = site / "davis_boundary.py"
    text = file.read_text()
    assert old in text
    try:
        file.write_text(text.replace(old, new))
        forget()
        assert re.search(fault, call(*evaluate(data, "good"), status=2))
    finally:
        file.write_text(text)
        forget()


def test_a_metric_that_cannot_be_loaded_is_named(monkeypatch, tmp_path):
    broken = tmp_path / "site" / "broken-1.0.dist-info"
    broken.mkdir(parents=True)
    (broken / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (broken / "entry_points.txt").write_text("[bsdsbench.metrics]\nbroken = nowhere:Metric\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    forget()
    with pytest.raises(bb.DataError, match="'broken': nowhere:Metric"):
        registry.get("broken")
    monkeypatch.undo()
    forget()
