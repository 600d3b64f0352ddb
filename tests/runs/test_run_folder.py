"""A run's folder as others may hand it over: damaged, mixed, planted; records that were damaged."""

import io
import json
import shutil
import struct
import zipfile

import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.files.errors import LINE, DataError, FileFormatError
from bsdsbench.files.writing import MANIFEST, write_results
from bsdsbench.runs import record_store
from bsdsbench.runs.record_store import unpack_records
from bsdsbench.runs.run_folder import load_run
from tests.helpers.making import make_set
from tests.helpers.runs import counted, refused

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
    """The folder with other content in some of its files, and a manifest that fits them."""
    named = {name.replace("_", "."): data for name, data in files.items()}
    both = {name: (out / name).read_bytes() for name in ("result.json", "counts.npz")} | named
    write_results(out, both.items())
    return out


def changed_counts(out, change):
    """The bytes of counts.npz with its arrays changed in place or by name."""
    with np.load(out / "counts.npz") as found:
        arrays = dict(found)
    change(arrays)
    data = io.BytesIO()
    np.savez_compressed(data, **arrays)
    return data.getvalue()


def test_results_of_two_protocols_are_never_mixed(out, tiny, tmp_path):
    bb.evaluate(*tiny, FIVE.replace(max_dist=0.02), workers=1, out=tmp_path / "other")
    (out / "counts.npz").write_bytes((tmp_path / "other" / "counts.npz").read_bytes())
    for read in (bb.Evaluation.load, load_run):
        refused(r"counts\.npz: is not what manifest\.json names", read, out, error=FileFormatError)


def test_a_run_that_was_not_finished_is_no_folder_of_official_files(out):
    (out / "result.json").unlink()
    (out / MANIFEST).write_text(json.dumps({"schema": "bsdsbench.manifest/1", "state": "x"}))
    refused("the run was not finished", load_run, out, error=FileFormatError)


def test_files_of_another_metric_do_not_stay(out, tiny):
    assert (out / "eval_bdry.txt").exists()
    bb.evaluate(*tiny, FIVE, metrics=("pixel",), workers=1, out=out)
    assert not (out / "eval_bdry.txt").exists()
    assert not list((out / "per_image").iterdir())
    assert bb.Evaluation.load(out).metrics == ("pixel",)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"protocol": []}, r"protocol is \[\], expected an object"),
        ({"protocol": {"max_dist": "x"}}, "max_dist 'x': expected a fraction"),
        ({"protocol": {"nothing": 1}}, "protocol field 'nothing'"),
        ({"name": 3}, "name is 3, expected text"),
        ({"name": "\ud800"}, "name is .*, expected text"),
        ({"provenance": "x"}, "provenance is 'x', expected an object"),
        ({"failed": {"a": 1}}, "a is 1, expected text"),
        ({"n_images": 7}, r"n_images is not the 6 of counts\.npz"),
        ({"n_images": -1}, "n_images is -1, expected a whole number"),
        ({"schema": "other"}, "expected schema"),
    ],
)
def test_fields_of_result_json_have_types_and_ranges(out, change, words):
    content = {**json.loads((out / "result.json").read_text("utf-8")), **change}
    replaced(out, result_json=json.dumps(content).encode())
    with pytest.raises(DataError, match=rf"result\.json: .*{words}") as caught:
        bb.Evaluation.load(out)
    assert len(str(caught.value)) <= LINE


def _set(name, at, value):
    def change(arrays):
        arrays[name] = arrays[name].copy()
        arrays[name][at] = value

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_set("boundary.matched_gt", 0, -1), "boundary.matched_gt: from -1 to .*, expected counts"),
        (_set("boundary.total_pred", 0, 0), "boundary.matched_pred: more than there are"),
        (_set("pixel.abs_error_sum", 1, np.nan), "pixel.abs_error_sum: has NaN"),
        (_set("pixel.abs_error_sum", 1, np.inf), "pixel.abs_error_sum: not finite numbers"),
        (_set("boundary.thresholds", 0, 0.5), "boundary.thresholds: not increasing"),
        (lambda a: a.pop("pixel.abs_error_sum"), "pixel: has .*expected exactly thresholds"),
        (lambda a: a.pop("sizes"), "has no sound array 'sizes'"),
        (lambda a: a.update(more=a["sizes"]), "has an array 'more', expected METRIC.FIELD"),
        (lambda a: a.update({"none.x": a["sizes"]}), "none"),
        (lambda a: a.update({"pixel.tp": a["pixel.tp"] * 0.5}), "pixel.tp: float64, expected w"),
        (lambda a: a.update({"pixel.tp": a["pixel.tp"][:3]}), "expected one row per image"),
        (lambda a: a.update(ids=a["ids"][:, None]), "of different lengths"),
        (_set("sizes", 0, -3), "sizes: from -3 to"),
    ],
)
def test_counts_have_fields_types_and_ranges(out, change, words):
    replaced(out, counts_npz=changed_counts(out, change))
    with pytest.raises(DataError, match=rf"counts\.npz: .*{words}") as caught:
        bb.Evaluation.load(out)
    assert len(str(caught.value)) <= LINE


def test_a_planted_header_asks_for_nothing(out):
    head = "{'descr': '<i8', 'fortran_order': False, 'shape': (100000, 1000000), }"
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        raw = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head) + 1) + head.encode() + b"\n"
        archive.writestr("boundary.total_gt.npy", raw + bytes(80))
    replaced(out, counts_npz=data.getvalue())
    with pytest.raises(FileFormatError, match=r"80 bytes for \(100000, 1000000\) int64"):
        bb.Evaluation.load(out)


def test_counts_that_are_not_whole_are_one_line(tmp_path):
    path = tmp_path / "counts.npz"
    for data in (b"", b"PK", b"x" * 100, b"PK\x05\x06" + bytes(18), b"\x80\x04\x95"):
        path.write_bytes(data)
        refused(r"counts\.npz: ", unpack_records, path, error=FileFormatError)


@pytest.mark.parametrize("inside", ["pred", "gt"])
def test_results_inside_a_folder_that_is_read_are_refused_at_once(tiny, inside):
    pred, gt = tiny
    out = {"pred": pred, "gt": gt}[inside] / "deep" / "out"
    with pytest.raises(DataError, match=r"out: lies in the folder of the .* expected a folder els"):
        bb.evaluate(pred, gt, FIVE, workers=1, out=out)
    assert not out.parent.exists()
    run = bb.evaluate(pred, gt, FIVE, workers=1, out=pred.parent / "pred_out")
    assert len(run.records) == 6


def test_names_that_are_not_utf8_are_refused_before_the_run(tiny, tmp_path):
    pred, gt = tiny
    refused(r"name 'n.udcff': expected text in UTF-8", bb.evaluate, pred, gt, FIVE, name="n\udcff")
    try:
        (pred / "im000.png").rename(pred / "im\udcff.png")
    except OSError:
        pytest.skip("this file system has no such names")
    refused(r"im.udcff\.png: not UTF-8, expected names that are", bb.evaluate, pred, gt, FIVE)


def test_a_full_disk_is_named_with_its_path(tmp_path, monkeypatch):
    from bsdsbench.files import writing as files

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device") as caught:
        files.write_atomic(tmp_path / "a.txt", b"x")
    assert caught.value.filename == str(tmp_path / "a.txt")
    assert not list(tmp_path.iterdir())


def test_counts_that_decode_to_more_than_a_file_may(tmp_path, monkeypatch):
    """Gigabytes of zeros in some megabytes, and millions of images of nothing; here a little of
    both, over bounds that are small."""
    path = tmp_path / "counts.npz"
    monkeypatch.setattr(record_store, "MAX_DECODED_BYTES", 5 << 20)
    np.savez_compressed(path, **{"boundary.total_gt": np.zeros((70, 10_000), np.int64)})
    assert path.stat().st_size < 1 << 14
    refused(r"counts\.npz: decodes to more than 5242880 bytes", unpack_records, path)
    monkeypatch.setattr(record_store, "MAX_IMAGES", 200)
    about = {"sizes": np.zeros((201, 2), np.int64), "fingerprints": np.zeros(201, "U1")}
    np.savez_compressed(path, ids=np.arange(201).astype("U8"), **about)
    refused("has 201 images, expected at most 200", unpack_records, path)
