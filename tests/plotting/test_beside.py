"""The plots of a run by a second process: the same as here, also where that process fails."""

import subprocess

import pytest

import bsdsbench as bb
from bsdsbench.cli import score
from bsdsbench.cli.score import plots_beside
from bsdsbench.errors import DataError
from bsdsbench.metrics import registry
from bsdsbench.plotting import figures
from tests.helpers.metric_cases import case_of
from tests.helpers.simulated import simulated_run

pytestmark = pytest.mark.process
PLOTS = {"pr.png", "pr.svg"}


@pytest.fixture
def started(monkeypatch):
    """The processes that are started."""
    processes, start = [], subprocess.Popen

    def popen(*words, **pipes):
        processes.append(start(*words, **pipes))
        return processes[-1]

    monkeypatch.setattr(subprocess, "Popen", popen)
    return processes


def plots(folder):
    return {name: (folder / name).read_bytes() for name in PLOTS if (folder / name).exists()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "status"),
    [(score._DRAWING_PROGRAM, 0), ("1 / 0", 1), ("import sys; sys.stdin.read(1); 1 / 0", 1)],
    ids=["sound", "fails at once", "fails later"],
)
def test_the_plots_are_those_drawn_here(code, status, tmp_path, started, monkeypatch):
    run = simulated_run("one", 5)
    out, here = tmp_path / "a folder é", tmp_path / "here"
    here.mkdir()
    figures.plot_result(run, here)
    monkeypatch.setattr(score, "_DRAWING_PROGRAM", code)
    if not status:
        monkeypatch.setattr(figures, "plot_result", None)
    with plots_beside(str(out)) as begin:
        run.save(out)
        assert not plots(out)
        begin()
    assert [process.returncode for process in started] == [status]
    assert plots(out) == plots(here)
    assert plots(out).keys() == PLOTS


@pytest.mark.parametrize("metric", registry.BUILT_IN)
def test_a_run_of_any_metric_has_the_plots_of_its_curve_or_none(metric, tmp_path):
    run = case_of(metric).run.save(tmp_path)
    figures.plot_result(bb.Evaluation.load(run), tmp_path)
    assert plots(tmp_path).keys() == (PLOTS if bb.Evaluation.load(run).with_curve else set())


def test_it_is_ended_where_there_is_no_run(tmp_path, started):
    with pytest.raises(DataError, match="nothing"), plots_beside(str(tmp_path)):
        raise DataError("nothing was counted")
    assert [process.returncode for process in started] != [0]
    assert not plots(tmp_path)


@pytest.mark.slow
def test_a_run_that_is_saved_is_drawn_whatever_comes_after(tmp_path, started):
    simulated_run("one", 5).save(tmp_path)

    def save_and_fail():
        with plots_beside(str(tmp_path)) as begin:
            begin()
            raise DataError("a table that could not be written later")

    with pytest.raises(DataError, match="later"):
        save_and_fail()
    assert [process.returncode for process in started] == [0]
    assert plots(tmp_path).keys() == PLOTS


def test_without_a_folder_no_process_is_started(started):
    with plots_beside(None) as begin:
        begin()
    assert not started
