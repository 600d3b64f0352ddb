"""Scores over runs: their order, the table and the picture."""

import csv
import io
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from click import UsageError

import bsdsbench as bb
from bsdsbench.errors import InputWarning
from bsdsbench.report.history import history_of, history_table, plot_history
from tests.helpers.runs import call, refused
from tests.helpers.simulated import simulated_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("history")
    for k, version in enumerate((10, 2, 1, 9)):
        simulated_run("detect", 6, quality=0.1 * version, seed=k).save(root / f"v{version}")
    return root


def test_the_order_is_that_of_numbers(folder):
    runs = history_of([f"{folder}/v*"])
    assert [run.name for run in runs] == ["v1", "v2", "v9", "v10"]
    figure = plot_history(runs)
    (line,) = figure.axes[0].lines
    assert list(line.get_ydata()) == [run.boundary_score().ods.f for run in runs]
    assert [t.get_text() for t in figure.axes[0].get_xticklabels()] == ["v1", "v2", "v9", "v10"]
    assert figure.axes[0].get_ylabel() == "ODS"
    unchanged = replace(runs[0], name="v1.1")  # as many versions are, which is no mistake
    assert not any("equal counts" in str(n) for n in history_table([*runs, unchanged]).notes)
    several = plot_history(runs, ["ods", "ap"])
    assert [line.get_label() for line in several.axes[0].lines] == ["ODS", "AP"]
    plt.close("all")


def test_the_order_is_that_of_dates_where_all_have_one(folder, tmp_path):
    from attrs import evolve

    days = {"v1": "2026-03-01", "v2": "2026-01-02", "v9": "2025-12-31", "v10": "2026-03-02"}
    for name, day in days.items():
        run = bb.Evaluation.load(folder / name)
        dated = evolve(run.provenance, date=f"{day}T10:00:00+00:00")
        replace(run, provenance=dated).save(tmp_path / name)
    runs = history_of([f"{tmp_path}/v*"])
    assert [run.name for run in runs] == ["v9", "v2", "v1", "v10"]
    table = history_table(runs).plain()
    assert table["date"] == [days[name] for name in table["method"]]
    ticks = plot_history(runs).axes[0].get_xticklabels()
    assert ticks[0].get_text() == "v9\n2025-12-31"
    replace(runs[0], provenance=evolve(runs[0].provenance, date=None)).save(tmp_path / "v9")
    assert [run.name for run in history_of([f"{tmp_path}/v*"])] == ["v1", "v2", "v9", "v10"]
    plt.close("all")


@pytest.mark.slow
def test_the_command_line(folder, tmp_path):
    pattern = f"{folder}/v*"
    rows = list(
        csv.DictReader(io.StringIO(call("report", "--history", pattern, "--format", "csv")))
    )
    assert [row["method"] for row in rows] == ["v1", "v2", "v9", "v10"]
    last = bb.Evaluation.load(folder / "v10").boundary_score()
    assert float(rows[-1]["boundary_ods"]) == last.ods.f
    # as a shell that expands the pattern gives it
    spread = [f"{folder}/v{k}" for k in (1, 10, 2, 9)]
    assert call("report", "--history", *spread) == call("report", "--history", pattern)
    for suffix, start in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")):
        file = tmp_path / f"history.{suffix}"
        call("report", "--history", pattern, "-o", file)
        assert file.read_bytes().startswith(start)


@pytest.mark.parametrize("columns", [None, ["all"]])
def test_runs_without_a_defined_score_have_no_plot(columns):
    empty = np.zeros((20, 20), np.uint8)
    with pytest.warns(InputWarning, match="nothing is predicted"):
        run = bb.evaluate_items([("a", empty, empty)], metrics=["contour"], name="void")
    assert history_table([run], columns).plain()["method"] == ["void"]
    with pytest.raises(bb.DataError, match="void: every score is undefined"):
        plot_history([run], columns)


def test_what_has_no_history_is_refused(folder, tmp_path):
    nyu = simulated_run("nyu", 6, protocol=bb.Protocol.preset("nyudv2"))
    nyu.save(tmp_path / "v3")
    refused("v1, v3: protocols differ in max_dist", history_of, [f"{folder}/v1", f"{tmp_path}/v3"])
    assert len(history_of([f"{folder}/v1", f"{tmp_path}/v3"], force=True)) == 2
    refused("--history: no folder fits", history_of, [f"{folder}/w*"])
    refused(
        "'odds': expected some of boundary.ods",
        plot_history,
        history_of([f"{folder}/v1"]),
        ["odds"],
    )
    with pytest.raises(UsageError, match="--published: cannot be combined with --history"):
        call("report", "--history", f"{folder}/v*", "--published", "hed")
