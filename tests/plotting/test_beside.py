"""The plots of a run by a second process: the same as here, also where that process fails."""

import pytest

from bsdsbench.files.errors import DataError
from bsdsbench.plotting import beside, figures
from bsdsbench.plotting.beside import plots_in
from tests.helpers.simulated import simulated_run

pytestmark = pytest.mark.process
RUN = simulated_run("one", 5)


@pytest.fixture
def drawn(tmp_path):
    """Folder -> its files, as they are drawn in this process."""
    (tmp_path / "here").mkdir()
    figures.plot_result(RUN, tmp_path / "here")
    return {path.name: path.read_bytes() for path in (tmp_path / "here").iterdir()}


@pytest.fixture
def out(tmp_path):
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_it_draws_what_is_drawn_here(drawn, out, monkeypatch):
    monkeypatch.setattr(figures, "plot_result", None)
    with plots_in(str(out)) as begin:
        begin(RUN)
    assert files(out) == drawn
    assert drawn.keys() == {"pr.png", "pr.svg"}


@pytest.mark.parametrize("code", ["1 / 0", "sys.stdin.buffer.read(9); 1 / 0"])
def test_where_it_fails_they_are_drawn_here(code, drawn, out, monkeypatch):
    second = beside.second_python
    monkeypatch.setattr(beside, "second_python", lambda _, **pipes: second(code, **pipes))
    with plots_in(str(out)) as begin:
        begin(RUN)
    assert files(out) == drawn


def test_without_a_run_it_is_ended(out, monkeypatch):
    made, second = [], beside.second_python
    monkeypatch.setattr(
        beside,
        "second_python",
        lambda *words, **pipes: made.append(second(*words, **pipes)) or made[0],
    )
    with pytest.raises(DataError, match="nothing"), plots_in(str(out)):
        raise DataError("nothing was counted")
    assert made[0].returncode not in (None, 0)
    assert files(out) == {}


def test_without_a_folder_there_is_none(monkeypatch):
    monkeypatch.setattr(beside, "second_python", None)
    with plots_in(None) as begin:
        assert begin is None
