"""The records of a run in one file, against a plain dictionary."""

import os
from contextlib import closing
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bsdsbench as bb
from bsdsbench.files.errors import DataError
from bsdsbench.runs.record_store import FOLDER, HEAD, LOG, RecordStore, pack_records
from tests.helpers.runs import bits
from tests.helpers.simulated import simulated_run
from tests.runs.test_runner import TEN

RECORDS = simulated_run("one", 3, seed=1).records


def marked(number, mark):
    return replace(RECORDS[number], fingerprint=f"{mark:032x}")


def added(store, record):
    store.add(record, pack_records([record]))


def stored(out):
    """Image -> fingerprint of what can be loaded."""
    with closing(RecordStore(out)) as store:
        found = [store.load(r.image_id) for r in RECORDS]
        for r in filter(None, found):
            assert store.fingerprint(r.image_id) == r.fingerprint
            assert r.equals(replace(RECORDS[int(r.image_id[-1])], fingerprint=r.fingerprint))
    return {r.image_id: int(r.fingerprint, 16) for r in found if r}


ADD = st.tuples(st.just("add"), st.integers(0, 2), st.integers(0, 9))
FORGET = st.tuples(st.just("forget"), st.integers(0, 2), st.just(0))
OTHER = st.tuples(st.sampled_from(["clear", "reopen", "die"]), st.just(0), st.integers(0, 400))


@given(st.lists(st.one_of(ADD, ADD, FORGET, OTHER), max_size=12))
def test_it_is_a_dictionary_whatever_was_killed(tmp_path_factory, steps):
    """What is forgotten is gone once the file is closed, a kill brings it back."""
    out, told, on_disk = tmp_path_factory.mktemp("store"), {}, {}
    store = RecordStore(out)
    for step, number, value in (*steps, ("reopen", 0, 0)):
        name = RECORDS[number].image_id
        if step == "add":
            added(store, marked(number, value))
            told[name] = on_disk[name] = value
        elif step == "forget":
            store.forget([name])
            told.pop(name, None)
        elif step == "clear":
            store.clear()
            told, on_disk = {}, {}
        elif step == "reopen":
            store.close()
            assert stored(out) == told
            store, on_disk = RecordStore(out), dict(told)
        else:  # while the next record was written
            before = store.path.stat().st_size
            added(store, marked(0, 10))
            os.truncate(store.path, min(before + value, store.path.stat().st_size - 1))
            store._file.close()
            store, told = RecordStore(out), dict(on_disk)
    store.close()


def test_records_that_no_longer_count_leave_the_file(tmp_path):
    sizes = set()
    for mark in range(5):
        with closing(RecordStore(tmp_path)) as store:
            for number in range(3):
                added(store, marked(number, mark))
        sizes.add(store.path.stat().st_size)
    assert max(sizes) < 1.1 * min(sizes)  # fingerprints are compressed a little better or worse
    assert stored(tmp_path) == dict.fromkeys((r.image_id for r in RECORDS), 4)


@pytest.mark.slow
def test_damaged_records_are_counted_again(tiny, tmp_path):
    out = tmp_path / "out"
    run = bb.evaluate(*tiny, TEN, workers=1, out=out)
    expected, path = bits(out), out / FOLDER / LOG
    whole = path.read_bytes()
    size = HEAD + int(whole[54:66])
    second = whole[size : size + HEAD + int(whole[size + 54 : size + 66])]
    swapped = second[:HEAD] + whole[HEAD:size]
    for data in (b"", whole[:-1], whole[:200], whole[::-1], swapped, b"\xff" * 300, whole[1:]):
        path.write_bytes(data)
        again = bb.evaluate(*tiny, TEN, workers=1, out=out)
        assert again.equals(run)
        assert bits(out) == expected
        assert sorted(path.read_bytes()) == sorted(whole)


@pytest.mark.parametrize("kind", ["link", "hard link"])
def test_a_file_elsewhere_is_not_written(tmp_path, kind):
    mine, out = tmp_path / "mine", tmp_path / "out"
    mine.write_bytes(b"mine")
    (out / FOLDER).mkdir(parents=True)
    (os.symlink if kind == "link" else os.link)(mine, out / FOLDER / LOG)
    with closing(RecordStore(out)) as store:
        added(store, marked(0, 1))
    assert mine.read_bytes() == b"mine"
    assert stored(out) == {RECORDS[0].image_id: 1}


def test_what_is_no_file_is_refused(tmp_path):
    os.makedirs(tmp_path / FOLDER / LOG)
    with pytest.raises(DataError, match="records: not a file, expected the records of a run"):
        RecordStore(tmp_path)
