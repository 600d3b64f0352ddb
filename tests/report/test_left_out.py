"""Runs of other subsets of images: tables, pages, pictures and comparisons of any two."""

import json
from dataclasses import replace
from itertools import compress

import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.comparison.comparable import comparable
from bsdsbench.plotting import plot_runs
from bsdsbench.report import write_report
from bsdsbench.report.worst import worst_table
from bsdsbench.results.image_tables import Summary, summary_tables
from bsdsbench.results.score_tables import score_tables
from bsdsbench.tables.forms import TABLE_FORMATS, render
from tests.helpers.metric_cases import CASES
from tests.helpers.runs import call, command, counted, refused, write_maps
from tests.helpers.simulated import simulated_run


@pytest.fixture(scope="module")
def whole():
    few = bb.Protocol.preset("bsds500").replace(thresholds=9)
    return [simulated_run(n, 6, q, s, protocol=few) for n, q, s in (("a", 0.3, 1), ("b", 0, 2))]


def subset(run, kept):
    """A run of the images that are True in `kept`."""
    return replace(run, records=list(compress(run.records, kept)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_any_two_subsets_are_shown_and_compared_on_what_they_share(whole, tmp_path, seed):
    """50 pairs in all; every form and the page of some of them."""
    rng = np.random.default_rng(seed)
    for number in range(25):
        kept = rng.random((2, 6)) < 0.6
        kept[np.arange(2), rng.integers(0, 6, 2)] = True  # not none
        runs = [subset(run, row) for run, row in zip(whole, kept, strict=True)]
        shared = int(kept.all(axis=0).sum())
        other = bool((kept[0] != kept[1]).any())
        tables = score_tables(runs)
        noted = [note for note in tables[0].note_lines if note.startswith("a, b: images: ")]
        assert len(noted) == other
        for form in {*TABLE_FORMATS} - {"csv"} if number < 2 else ():
            assert render(tables, form)
        if not shared:
            refused("images are not in every run", comparable, runs, common=True)
            refused("images are not in every run", worst_table, runs, ())
            continue
        assert len(comparable(runs, common=True)[0][0].records) == shared
        assert len(worst_table(runs, ()).rows) == shared
        compared = bb.compare(runs, n_boot=5, common=True)
        assert compared.n_images == shared
        lacking = {name for name, row in zip("ab", kept, strict=True) if row.sum() > shared}
        assert compared.left_out.keys() == lacking
        if number < 2:
            write_report(runs, tmp_path / "page.html", pictures=False, n_boot=5)
        if other:
            refused("images: .* of both", plot_runs, runs)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bsdsbench.errors.InvertedWarning")  # maps of other images
@pytest.mark.parametrize("metric", [name for name in CASES if name != "boundary"])
def test_any_two_subsets_of_any_metric(metric, tmp_path):
    """96 pairs in all; classes and objects are in some of the images alone."""
    make, _, protocol, *_ = CASES[metric]
    shape, images, others = (24, 30), [], []
    for k in range(5):
        made, other = (make(f"i{k}", np.random.default_rng([k, s]), shape) for s in (0, 1))
        images.append((f"i{k}", made[0], made[1]))
        others.append((f"i{k}", other[0], made[1]))
    runs = [
        bb.evaluate_items(items, protocol, metrics=metric, workers=1, name=name)
        for name, items in (("a", images), ("b", others))
    ]
    rng = np.random.default_rng(len(metric))
    for number in range(6):
        kept = rng.random((2, 5)) < 0.5
        kept[np.arange(2), rng.integers(0, 5, 2)] = True  # not none
        pair = [subset(run, row) for run, row in zip(runs, kept, strict=True)]
        tables = [*score_tables(pair), *summary_tables(pair, Summary.IQR, None)]
        for form in {*TABLE_FORMATS} - {"csv"} if number < 2 else ():
            assert render(tables, form)
        if not kept.all(axis=0).any():
            refused("images are not in every run", bb.compare, pair, common=True)
            continue
        compared = bb.compare(pair, n_boot=5, common=True)
        assert compared.n_images == kept.all(axis=0).sum()
        assert json.dumps(compared.to_mapping(), allow_nan=False)
        assert render(compared.tables(), "latex")
        if number < 2:
            write_report(pair, tmp_path / "page.html", pictures=False, n_boot=5)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Three runs of one ground truth: of all images, and without one or another."""
    root = tmp_path_factory.mktemp("runs")
    maps = {name: np.roll(np.eye(24, dtype=bool), k, 0) for k, name in enumerate("abcd")}
    write_maps(root / "gt", maps)
    for name, left_out in (("all", ""), ("first", "a"), ("last", "d")):
        kept = {key: image for key, image in maps.items() if key not in left_out}
        counted(write_maps(root / name, kept), root / "gt", missing="skip", out=root / f"o-{name}")
    return root


@pytest.mark.slow
@pytest.mark.parametrize("names", [("all", "first"), ("first", "all"), ("first", "last")])
def test_folders_of_other_subsets_by_the_command(folders, names, tmp_path):
    outs = [folders / f"o-{name}" for name in names]
    for suffix in ("html", "md", "tex", "csv", "json", "txt"):
        sampling = ("--n-boot", 5) if suffix == "html" else ()
        call("report", *outs, "-o", tmp_path / f"r.{suffix}", *sampling)
        assert (tmp_path / f"r.{suffix}").stat().st_size
    page = (tmp_path / "r.html").read_text("utf-8")
    assert all(f'"id":"{image}"' in page for image in "abcd")
    done = command("compare", *outs, "--n-boot", 5, "--format", "json", "--quiet")
    found = json.loads(done.stdout)
    assert done.returncode == 0
    assert found["n_images"] == 4 - len({*names} - {"all"})
    assert "not in every run" in found["notes"][0]
    call("plot", *outs, "-o", tmp_path / "p.png")
    listed = call("worst", *outs, "--overlays")
    assert all((out / "overlays" / "b_best.png").exists() for out in outs)
    assert "overlays/b_best.png" in listed


def test_why_nothing_is_compared_is_said_in_python_and_on_the_command_line(whole, tmp_path):
    """`force` is the keyword, and --force the option."""
    wide = replace(whole[1], protocol=whole[1].protocol.replace(max_dist=0.02))
    notes = write_report([whole[0], wide], tmp_path / "r.html", n_boot=10)
    (line,) = [note for note in notes if note.startswith("no comparison: a, b: protocols differ")]
    assert line.endswith("(force compares them all the same)")
