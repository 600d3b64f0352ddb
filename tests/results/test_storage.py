"""A run's folder as others may hand it over: damaged, mixed, planted; records that were damaged."""

import io
import json
import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.errors import DataError, FileFormatError, RunLockedError
from bsdsbench.io import digest, locked
from bsdsbench.metrics.boundary import BoundaryMetric
from bsdsbench.results import storage as folder
from bsdsbench.results.storage import Records, pack_record, unpack_record, unpack_records
from bsdsbench.scores.counts import ImageRecord
from bsdsbench.text import LINE
from tests.helpers.making import make_set
from tests.helpers.metric_cases import case_of
from tests.helpers.runs import bits, counted, refused, stored

MATCHED = ("boundary", "semantic", "occlusion", "wireframe", "depth")
FIVE = bb.Protocol.preset("bsds500").replace(thresholds=5)


@pytest.fixture(scope="module")
def counted_once(tmp_path_factory):
    root = tmp_path_factory.mktemp("counted")
    counted(*make_set(root), FIVE, metrics=("boundary", "pixel"), out=root / "out")
    return root / "out"


@pytest.fixture
def out(counted_once, tmp_path):
    return shutil.copytree(counted_once, tmp_path / "out")


def replaced(out, **files):
    """The folder with other content in some of its files, and a hash that fits it."""
    for name, data in files.items():
        (out / name.replace("_", ".")).write_bytes(data)
    result = json.loads((out / "result.json").read_text("utf-8"))
    result["files"] = {"counts.npz": digest((out / "counts.npz").read_bytes())}
    (out / "result.json").write_text(json.dumps(result), "utf-8")
    return out


def test_a_result_names_its_counts(out, tiny, tmp_path):
    bb.evaluate(*tiny, FIVE.replace(max_dist=0.02), workers=1, out=tmp_path / "other")
    (out / "counts.npz").write_bytes((tmp_path / "other" / "counts.npz").read_bytes())
    words = r"result\.json: does not belong to this counts\.npz"
    refused(words, bb.Evaluation.load, out, error=FileFormatError)


@pytest.mark.parametrize("left", ["records.db", ".result.json"])
def test_a_run_that_was_not_finished_is_no_folder_of_official_files(out, left):
    (out / left).touch()
    (out / "result.json").unlink()
    refused("an unfinished run", bb.Evaluation.load, out, error=FileFormatError)


def test_files_of_an_earlier_result_do_not_stay(out, tiny):
    assert (out / "eval_bdry.txt").exists()
    (out / "pr.png").touch()
    (out / "mine.txt").write_text("mine")
    bb.evaluate(*tiny, FIVE, metrics=("pixel",), workers=1, out=out)
    assert not (out / "eval_bdry.txt").exists()
    assert not (out / "pr.png").exists()
    assert not list((out / "per_image").iterdir())
    assert (out / "mine.txt").exists()
    assert bb.Evaluation.load(out).metrics == ("pixel",)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"protocol": {"max_dist": "x"}}, "max_dist 'x': expected a fraction"),
        ({"name": 3}, "name is 3, expected text"),
        ({"n_images": 7}, "n_images is not the 6 of the counts"),
        ({"schema": "other"}, "schema 'other', expected 'bsdsbench"),
    ],
)
def test_fields_of_result_json_have_types_and_ranges(out, change, words):
    content = {**json.loads((out / "result.json").read_text("utf-8")), **change}
    replaced(out, result_json=json.dumps(content).encode())
    with pytest.raises(DataError, match=rf"result\.json: .*{words}") as caught:
        bb.Evaluation.load(out)
    assert len(str(caught.value)) <= LINE


def test_limits_hold_when_writing_too(out, tmp_path, monkeypatch):
    """What is over them could not be read back; the table of images may be left out."""
    run = bb.Evaluation.load(out)
    monkeypatch.setattr("bsdsbench.io.MAX_VALUES", 300)
    assert bb.Evaluation.load(run.save(tmp_path / "few")).equals(run)
    monkeypatch.setattr(folder, "MAX_IMAGES", 5)
    refused("counts of 6 images", run.save, tmp_path / "none")
    assert not (tmp_path / "none" / "counts.npz").exists()


@pytest.mark.parametrize("row", ["[1.5]", "2.5", '{"scene": [1.5]}', '{"scene": {}}'])
def test_groups_that_are_no_mapping_of_numbers_and_text(out, row):
    run = bb.Evaluation.load(out)
    arrays = folder.arrays_of_run(run)
    arrays["groups"] = np.array(['{"scene": "day"}'] * (len(run.records) - 1) + [row])
    refused("groups that are neither numbers nor text", folder.records_of_arrays, arrays)


def test_counts_that_decode_to_more_than_a_file_may(tmp_path, monkeypatch):
    """Gigabytes of zeros in some megabytes; here a little over a bound that is small."""
    data = io.BytesIO()
    monkeypatch.setattr(folder, "MAX_BYTES", 5 << 20)
    np.savez_compressed(data, **{"boundary.total_gt": np.zeros((70, 10_000), np.int64)})
    refused("decodes to more than 5242880 bytes", unpack_records, tmp_path, data.getvalue())


@pytest.mark.parametrize("name", MATCHED)
def test_runs_of_other_versions_are_refused_in_one_line(name, tmp_path):
    """They do not know whole truths."""
    run, out = case_of(name).run, tmp_path / "out"
    run.save(out)
    with np.load(out / "counts.npz") as file:
        arrays = dict(file)
    del arrays["whole_truths"]
    np.savez_compressed(out / "counts.npz", **arrays)
    content = json.loads((out / "result.json").read_text())
    content["files"]["counts.npz"] = digest((out / "counts.npz").read_bytes())
    (out / "result.json").write_text(json.dumps(content))
    refused(r"counts\.npz: .*of another version", bb.Evaluation.load, out)


# ---- what a run has done so far ------------------------------------------------------------------


def test_a_record_is_kept_as_it_is():
    arrays = {"none": np.zeros((0, 3), int), "parts": np.full((2, 1), np.nan), "n": np.array(2**53)}
    counts = {"boundary": arrays, "region": {"all": np.arange(6).reshape(2, 3)}}
    record = ImageRecord("a\n\udcff", (2, 3), counts, "mark", 0.0, "truth", "soft8")
    read = unpack_record(pack_record(record))
    assert (read.truth, read.form) == ("truth", "soft8")
    assert read.equals(record)


@pytest.mark.slow
def test_damaged_records_are_counted_again(tiny, tmp_path):
    out = tmp_path / "out"
    run = counted(*tiny, FIVE, out=out)
    expected, path = bits(out), out / "records.db"
    whole, rng = path.read_bytes(), np.random.default_rng(1)
    damaged = [b"", whole[:-1], whole[:200], whole[::-1], b"\xff" * 300, whole[1:]]
    for at in rng.integers(0, len(whole), 20):
        damaged.append(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    for data in damaged:
        path.write_bytes(data)
        assert counted(*tiny, FIVE, out=out).equals(run)
        assert bits(out) == expected


def test_a_full_disk_is_one_line_and_a_later_run_goes_on(tiny, tmp_path, monkeypatch):
    real, calls = Records.add, []

    def full(self, record, data):
        calls.append(record)
        if len(calls) > 3:
            raise sqlite3.OperationalError("database or disk is full")
        real(self, record, data)

    monkeypatch.setattr(Records, "add", full)
    with pytest.raises(OSError, match="disk is full") as caught:
        counted(*tiny, FIVE, out=tmp_path)
    assert caught.value.filename == str(tmp_path / "records.db")
    assert not (tmp_path / "result.json").exists()
    assert len(stored(tmp_path)) == 3
    monkeypatch.undo()
    assert counted(*tiny, FIVE, out=tmp_path).kept == 3


@pytest.mark.parametrize("stop", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_no_file_of_a_result_is_left_half_written(tiny, tmp_path, monkeypatch, stop):
    class Halved(str):
        def encode(self, *_):
            raise stop

    run, out = counted(*tiny, FIVE), tmp_path / "out"
    texts = iter([("eval_bdry.txt", "whole"), ("per_image/a.txt", Halved("half"))])
    monkeypatch.setattr(BoundaryMetric, "files", lambda *_: texts)
    with pytest.raises(type(stop)) as caught:
        run.save(out)
    if isinstance(stop, OSError):
        assert caught.value.filename == str(out / "per_image/a.txt")
    files = {path.name for path in out.rglob("*") if path.is_file()}
    assert files - {".lock", ".result.json"} == {"eval_bdry.txt"}


def in_another_thread(function):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function)


def test_the_second_run_on_one_folder_stops(tiny, tmp_path):
    with locked(tmp_path), locked(tmp_path):  # again by the same is no other writer
        other = in_another_thread(lambda: counted(*tiny, FIVE, out=tmp_path))
        refused("another run is writing to this folder", other.result, error=RunLockedError)
    assert in_another_thread(lambda: counted(*tiny, FIVE, out=tmp_path)).result().records
