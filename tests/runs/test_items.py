"""`evaluate_items` gives what `evaluate` gives of the same values; it reads its iterable lazily."""

from contextlib import closing

import numpy as np
import pytest

import bsdsbench as bb
from bsdsbench.loaders.inputs import Prediction
from bsdsbench.runs.executors import TASKS_PER_WORKER, Waiting
from bsdsbench.runs.record_store import FOLDER, HEAD, LOG, RecordStore
from tests.helpers.making import edge_map, noisy_map
from tests.helpers.runs import counted, refused, write_maps

NAMES = [f"im{k}" for k in range(8)]


def arrays(k):
    rng = np.random.default_rng(k)
    edges = edge_map(rng, (40, 52))
    return noisy_map(rng, edges), edges


@pytest.fixture
def folders(tmp_path):
    found = {name: arrays(k) for k, name in enumerate(NAMES)}
    return (
        write_maps(tmp_path / "pred", {name: pred for name, (pred, _) in found.items()}),
        write_maps(tmp_path / "gt", {name: edges for name, (_, edges) in found.items()}),
    )


def items(log=None):
    for k, name in enumerate(NAMES):
        if log is not None:
            log.append(name)
        pred, edges = arrays(k)
        yield name, pred, [edges]


@pytest.mark.parametrize(
    ("executor", "workers"),
    [("process", 1), pytest.param("process", 2, marks=pytest.mark.process), ("thread", 3)],
)
def test_the_records_are_those_of_files(folders, executor, workers):
    run = bb.evaluate_items(items(), workers=workers, executor=executor)
    files = counted(*folders)
    for a, b in zip(run.records, files.records, strict=True):
        assert (a.image_id, a.size) == (b.image_id, b.size)
        assert a.counts["boundary"].equals(b.counts["boundary"])
    assert [(r.truth, r.form) for r in run.records] == [(r.truth, r.form) for r in files.records]
    assert run.identity.fingerprint == files.identity.fingerprint


def test_a_few_images_at_a_time():
    log, most = [], []

    def watch(done, total, image_id):
        most.append(len(log) - done)

    bb.evaluate_items(items(log), workers=1, executor="thread", progress=watch)
    assert max(most) <= 1
    log.clear()
    most.clear()
    bb.evaluate_items(items(log), workers=2, executor="thread", progress=watch)
    assert max(most) <= TASKS_PER_WORKER * 2
    assert len(log) == len(NAMES)


def test_it_goes_on_where_it_stopped(tmp_path):
    def broken():
        for k, item in enumerate(items()):
            if k == 5:
                raise OSError("the disk is gone")
            yield item

    with pytest.raises(OSError, match="the disk is gone"):
        bb.evaluate_items(broken(), workers=1, out=tmp_path / "out")
    log = tmp_path / "out" / FOLDER / LOG
    with closing(RecordStore(tmp_path / "out")) as store:
        assert len(store.known) == 5
    damaged = bytearray(log.read_bytes())
    damaged[HEAD + 9] ^= 1
    log.write_bytes(damaged)
    run = bb.evaluate_items(items(), workers=1, out=tmp_path / "out")
    assert run.equals(bb.evaluate_items(items(), workers=1))
    assert run.kept == 4
    other = ((n, p, [~g for g in gts]) for n, p, gts in items())
    assert not bb.evaluate_items(other, workers=1, out=tmp_path / "out").equals(run)


def test_every_fault_is_named(tmp_path):
    good = list(items())
    bad = [("odd", np.zeros((3, 3)), [np.zeros((4, 4), bool)]), ("none", np.zeros(()), [None])]
    with pytest.raises(bb.DataError) as caught:
        bb.evaluate_items([*good, *bad], workers=1)
    assert len(caught.value.problems) == 2
    run = bb.evaluate_items([*good, *bad], workers=1, on_error="skip")
    assert set(run.failed) == {"odd", "none"}
    refused("this image is already there", bb.evaluate_items, [good[0], good[0]], workers=1)
    refused(r"item 1: .*expected \(id, prediction, truth\)", bb.evaluate_items, [3], workers=1)
    refused("item 1: id 3, expected text", bb.evaluate_items, [(3, 1, 2)], workers=1)
    refused("items: 'maps', expected", bb.evaluate_items, "maps")


def test_inputs_of_any_form():
    """A Prediction, an array of annotators, something that only looks like an array."""
    pred, edges = arrays(0)

    class Like:  # a zarr array, a tensor of another library
        def __array__(self, dtype=None, copy=None):
            return pred if dtype is None else pred.astype(dtype)

    forms = [
        ("a", Prediction("a", soft=pred), np.stack([edges, edges])),
        ("b", pred, [edges, edges]),
        ("c", Like(), edges[None].repeat(2, axis=0)),
    ]
    run = bb.evaluate_items(forms, workers=1)
    one, two, three = (r.counts["boundary"] for r in run.records)
    assert one.equals(two)
    assert two.equals(three)


def test_waiting_takes_as_much_as_is_asked_for():
    taken = []
    waiting = Waiting(taken.append(k) or k for k in range(1, 6))
    assert waiting
    assert (waiting.first, taken) == (1, [1])
    assert waiting.ahead(3) == 3
    assert taken == [1, 2, 3]
    first, second = waiting.popleft(), waiting.popleft()
    waiting.put_back([first, second])
    assert waiting.suspects == 2
    assert [waiting.popleft() for _ in range(5)] == [1, 2, 3, 4, 5]
    assert not waiting
    assert waiting.ahead(2) == 0


def test_bytes_of_0_and_1_are_refused_at_the_end(tmp_path):
    maps = [(name, np.eye(12, dtype="u1"), [np.eye(12)]) for name in NAMES[:3]]
    for out in (None, tmp_path / "out"):
        refused("no value above 1 of 255 in any map", bb.evaluate_items, maps, workers=1, out=out)
    run = bb.evaluate_items([*maps, ("bright", 255 * maps[0][1], maps[0][2])], workers=1)
    assert {r.form for r in run.records} == {"soft8"}
