"""Results that people look at: one line, tables at several widths, data frames, tidy CSV."""

import io
from dataclasses import replace

import pytest

import bsdsbench as bb
from bsdsbench.metrics import registry
from bsdsbench.results.score_tables import score_tables
from bsdsbench.tables.forms import to_csv, to_html
from bsdsbench.tables.table import print_tables, to_text
from tests.helpers.metric_cases import case_of
from tests.helpers.runs import FAST, refused
from tests.helpers.simulated import simulated_run
from tests.helpers.snapshots import same_as_stored


@pytest.fixture(scope="module")
def runs():
    return [
        simulated_run("structure tensor", 30, quality=0.4, seed=1, pixel=True),
        simulated_run("Canny", 30, quality=0.0, seed=2, pixel=True),
    ]


@pytest.fixture(scope="module")
def found(runs):
    return bb.compare(runs, n_boot=100)


@pytest.mark.slow
def test_tables_of_every_metric_as_they_were_looked_at():
    """What `evaluate` and `compare` print of three images, and of the first one thrice, at two
    widths."""
    parts = {80: {}, 120: {}}
    for metric in registry.BUILT_IN:
        case = case_of(metric)
        items = [(pred.image_id, pred, gt) for pred, gt in case.images]
        how = {"metrics": metric, "name": "mine", **FAST}
        run = bb.evaluate_items(items, case.protocol, **how)
        same = [replace(record, counts=run.records[0].counts) for record in run.records]
        found = bb.compare([run, replace(run, name="other", records=tuple(same))], n_boot=99)
        shown = {"evaluate": score_tables([run]), "compare": found.tables()}
        for width, texts in parts.items():
            for verb, tables in shown.items():
                text = to_text([t for t in tables if not t.aside], width)
                texts[f"{verb}, {metric}"] = text
                lines = [x for x in text.splitlines() if not x.startswith("Signature")]
                assert max(map(len, lines)) <= width
    for width, texts in parts.items():
        same_as_stored(f"tables_{width}", texts)


def test_words_that_tables_share_are_printed_once_under_the_last(found):
    lines = to_text(found.tables()).splitlines()
    (at,) = (i for i, line in enumerate(lines) if line.startswith("Signature of each"))
    assert at == len(lines) - 1
    (own,) = (i for i, line in enumerate(lines) if line.startswith("Runs that share a letter"))
    assert own < lines.index("Differences")
    assert to_html(found.tables()).count("Signature of each") == 1
    folded = [replace(table, aside=k > 0) for k, table in enumerate(found.tables())]
    assert to_html(folded).count("Signature of each") == 2  # also where all are seen


def test_a_reader_that_has_ended_is_an_error_and_no_exit(runs):
    class Closed(io.StringIO):
        def flush(self):
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        print_tables(score_tables(runs), Closed())


def test_every_table_as_csv_is_read_by_pandas(runs, found):
    pandas = pytest.importorskip("pandas")
    for table in [*score_tables(runs), *found.tables(), runs[0].per_image("boundary")]:
        frame = pandas.read_csv(io.StringIO(to_csv(table)))
        assert len(frame) == len(table.rows)
        for column in table.columns:
            assert pandas.api.types.is_numeric_dtype(frame[column.key]) == bool(column.format)


def test_a_score_is_one_line_a_text_a_page_and_a_frame(runs):
    pandas = pytest.importorskip("pandas")
    score = bb.Score({"ods": {"threshold": 0.2, "f": 0.5}, "ap": float("nan"), "n_images": 2})
    assert repr(score) == "Score(ods=0.5, ap=-, n_images=2)"
    assert "<table" in score._repr_html_()
    assert "ods.threshold     0.2" in score.summary()
    assert isinstance(score.to_dataframe(), pandas.DataFrame)
    found = bb.curves.roc([1, -1, 1, -1], [0.9, 0.8, 0.7, 0.1])
    assert repr(found).startswith("ROCResult(auc=0.75, eer=0.5")
    assert found.to_dataframe()["tp"].tolist() == found.tp.tolist() == [0, 1, 1, 2, 2]
    assert found.to_dataframe("numbers").set_index("number").loc["positives", "value"] == 2


def test_data_frames(runs, found):
    pytest.importorskip("pandas")
    scores = runs[0].to_dataframe()
    assert scores.loc[0, "ods"] == runs[0].boundary_score().ods.f
    images = runs[0].per_image("boundary").to_dataframe()
    own = runs[0].image_scores("boundary").values()
    assert images["ods"].tolist() == [values["ods"] for values in own]
    differences = found.to_dataframe("differences")
    assert differences.loc[0, "difference_low"] == found.differences[0].low
    assert found.to_dataframe().loc[1, "method"] == "Canny"
    refused("table 'nope': expected one of scores, differences", found.to_dataframe, "nope")
