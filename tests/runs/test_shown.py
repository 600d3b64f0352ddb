"""Results that people look at: one line, tables at several widths, data frames, tidy CSV."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

import bsdsbench as bb
from bsdsbench.core.render.as_csv import to_csv
from bsdsbench.core.render.as_text import to_text
from bsdsbench.runs.score_tables import image_table, score_tables
from tests.runs.simulated import simulated_run

SNAPSHOTS = Path(__file__).parents[1] / "snapshots"


@pytest.fixture(scope="module")
def runs():
    return [
        simulated_run("structure tensor", 30, quality=0.4, seed=1, pixel=True),
        simulated_run("Canny", 30, quality=0.0, seed=2, pixel=True),
    ]


@pytest.fixture(scope="module")
def found(runs):
    return bb.compare(runs, n_boot=100)


@pytest.fixture(scope="module")
def tables(runs, found):
    return {
        "one-run": score_tables(runs[:1]),
        "two-runs": score_tables(runs),
        "comparison": found.tables(),
    }


@pytest.mark.parametrize("width", [60, 80, 120, None])
@pytest.mark.parametrize("name", ["one-run", "two-runs", "comparison"])
def test_tables_as_they_were_looked_at(tables, name, width):
    """Delete a file of tests/snapshots and run again to renew it; then look at it."""
    text = to_text(tables[name], width)
    path = SNAPSHOTS / f"{name}-{width or 'pipe'}.txt"
    if not path.exists():
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")
    numbers = [t for table in tables[name] for r in range(len(table.rows)) for t in table.texts(r)]
    for number in numbers:
        for part in re.findall(r"[-+<]?\d\S*\d", number):
            assert part in text


def test_every_table_as_csv_is_read_by_pandas(tables, runs):
    pandas = pytest.importorskip("pandas")
    several = [t for found in tables.values() for t in found] + [image_table(runs[0])]
    for table in several:
        frame = pandas.read_csv(io.StringIO(to_csv(table)))
        assert len(frame) == len(table.rows)
        for column in table.columns:
            assert pandas.api.types.is_numeric_dtype(frame[column.key]) == column.is_number


def test_a_repr_is_one_line_with_the_scores(runs, found):
    ods = f"{runs[0].boundary_score().ods.f:.3f}"
    for thing in (runs[0], runs[0].boundary_score(), found):
        assert "\n" not in repr(thing)
        assert len(repr(thing)) < 200
        assert ods.rstrip("0")[:4] in repr(thing)
    assert "30 images" in repr(runs[0])


def test_html_and_summary_hold_the_scores(runs, found):
    for thing in (runs[0], found, runs[0].pixel_score()):
        for text in (thing._repr_html_(), thing.summary()):
            assert f"{runs[0].pixel_score().ods.f:.4f}"[:5] in text
    assert "<table" in found._repr_html_()


def test_data_frames(runs, found):
    pytest.importorskip("pandas")
    scores = runs[0].to_dataframe()
    assert scores.loc[0, "ods"] == runs[0].boundary_score().ods.f
    images = runs[0].to_dataframe("images")
    assert images["boundary_f"].tolist() == [p.f for _, p in runs[0].boundary_score().per_image]
    differences = found.to_dataframe("differences")
    assert differences.loc[0, "difference_low"] == found.differences[0].low
    assert found.to_dataframe().loc[1, "method"] == "Canny"
    with pytest.raises(bb.DataError, match="table 'nope': expected one of scores, differences"):
        found.to_dataframe("nope")


def test_folders_stand_for_runs(runs, tmp_path):
    for i, run in enumerate(runs):
        run.save(tmp_path / str(i) / "out")
    paths = [tmp_path / "0" / "out", str(tmp_path / "1" / "out")]
    assert bb.compare(paths, n_boot=50).names == ("structure tensor", "Canny")
    assert bb.compare([runs[0], paths[1]], n_boot=50).names == ("structure tensor", "Canny")
    with pytest.raises(bb.DataError, match="expected a list, such as"):
        bb.compare(str(paths[0]), str(paths[1]))
