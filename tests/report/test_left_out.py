"""Runs of other subsets of images: tables, pages, pictures and comparisons of any two."""

import json
from dataclasses import replace

import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.comparison.comparable import comparable
from bsdsbench.plotting import plot_runs
from bsdsbench.report import score_tables, write_report
from bsdsbench.report.worst import worst_table
from bsdsbench.tables.forms import FORMS, render
from tests.helpers.runs import call, command, counted, refused, write_maps
from tests.helpers.simulated import simulated_run


@pytest.fixture(scope="module")
def whole():
    few = bb.Protocol.preset("bsds500").replace(thresholds=9)
    return [simulated_run(n, 6, q, s, protocol=few) for n, q, s in (("a", 0.3, 1), ("b", 0, 2))]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_any_two_subsets_are_shown_and_compared_on_what_they_share(whole, tmp_path, seed):
    """100 pairs in all; every form and the page of some of them."""
    rng = np.random.default_rng(seed)
    for number in range(25):
        kept = rng.random((2, 6)) < 0.6
        kept[np.arange(2), rng.integers(0, 6, 2)] = True  # not none
        runs = [
            replace(run, records=[r for r, some in zip(run.records, row, strict=True) if some])
            for run, row in zip(whole, kept, strict=True)
        ]
        shared = int(kept.all(axis=0).sum())
        other = bool((kept[0] != kept[1]).any())
        tables = score_tables(runs)
        noted = [note for note in tables[0].note_lines if note.startswith("a, b: images: ")]
        assert len(noted) == other
        for form in {*FORMS} - {"csv"} if number < 5 else ():
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
        if number < 5:
            write_report(runs, tmp_path / "page.html", pictures=False, n_boot=5)
        if other:
            refused("images: .* of both", plot_runs, runs)


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
