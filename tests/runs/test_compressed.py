"""Records kept in compressed blocks read like a tuple, and take little memory."""

from __future__ import annotations

import dataclasses
import gc
import random
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bsdsbench.files.errors import DataError, MergeError
from bsdsbench.metrics.region.region_record import RegionCounts
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs import compressed as packing
from bsdsbench.runs.compressed import (
    RecordCollector,
    Records,
    gathered,
    pack_records,
    unpack_records,
)
from bsdsbench.runs.evaluation import Evaluation
from bsdsbench.runs.runner import merge
from bsdsbench.scores.counts import BoundaryCounts, ImageRecord
from tests.runs.simulated import simulated_run

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(params=[1, 4])
def small_blocks(monkeypatch, request):
    monkeypatch.setattr(packing, "BLOCK", request.param)


def some(n: int) -> list[ImageRecord]:
    run = simulated_run("a", n, pixel=True)
    return [replace(r, fingerprint=f"{i:x}", seconds=i / 8) for i, r in enumerate(run.records)]


def assert_same(found, expected) -> None:
    assert [(r.image_id, r.seconds) for r in found] == [(r.image_id, r.seconds) for r in expected]
    assert all(a.equals(b) for a, b in zip(found, expected, strict=True))


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 30])
def test_blocks_read_like_a_tuple_whatever_the_order_of_arrival(n) -> None:
    expected = some(n)
    for seed in range(5):
        arrived = random.Random(seed).sample(expected, n) if seed else expected
        kept = gathered(arrived)
        assert isinstance(kept, Records) == (n >= 2 * packing.BLOCK)
        assert len(kept) == n
        assert_same(kept, expected)
        assert_same([kept[i] for i in range(-n, n)], expected * 2)
        assert_same(kept[1::2], expected[1::2])
        assert packing.image_ids(kept) == [r.image_id for r in expected]
        with pytest.raises(IndexError):
            kept[n]
        for record in expected:
            assert packing.record_of(kept, record.image_id).equals(record)
        assert packing.record_of(kept, "zz") is None
        assert packing.record_of(kept, "") is None


@settings(deadline=None, max_examples=15)
@given(st.permutations(range(12)), st.integers(1, 5))
def test_the_bytes_do_not_depend_on_the_order_of_arrival(order, block) -> None:
    records = some(12)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "BLOCK", block)
        kept = gathered(records[i] for i in order)
        assert pack_records(kept) == pack_records(gathered(records))


@pytest.mark.usefixtures("small_blocks")
def test_numpy_reads_the_same_arrays_from_blocks_and_from_a_tuple(tmp_path) -> None:
    long_id = replace(some(1)[0], image_id="im9999-with-a-much-longer-name")
    records = [*some(20), long_id]
    files = {"blocks": pack_records(gathered(records)), "tuple": pack_records(records)}
    for name, data in files.items():
        (tmp_path / f"{name}.npz").write_bytes(data)
    with np.load(tmp_path / "blocks.npz") as a, np.load(tmp_path / "tuple.npz") as b:
        assert a.files == b.files
        for key in b.files:
            assert a[key].dtype == b[key].dtype
            np.testing.assert_array_equal(a[key], b[key])
    assert_same(unpack_records(tmp_path / "blocks.npz"), [replace(r, seconds=0) for r in records])


@pytest.mark.usefixtures("small_blocks")
def test_scores_files_and_merges_are_those_of_plain_records(tmp_path, monkeypatch) -> None:
    records, protocol = some(23), Protocol.preset("bsds500")
    packed = Evaluation(protocol, "x", records, {"images": "d"})
    assert isinstance(packed.records, Records)
    shards = [Evaluation(protocol, "x", records[i::3], {"images": "d"}) for i in range(3)]
    named = [
        replace(s, provenance={"images": "d", "shard": f"{i}/3"}) for i, s in enumerate(shards, 1)
    ]
    packed.save(tmp_path / "packed")
    merge(named).save(tmp_path / "merged")
    with monkeypatch.context() as patch:
        patch.setattr(packing, "BLOCK", 1000)
        plain = Evaluation(protocol, "x", records, {"images": "d"})
        assert isinstance(plain.records, tuple)
        plain.save(tmp_path / "plain")
        assert packed.scores() == plain.scores()
        assert packed.equals(plain)
    files = {p.relative_to(tmp_path / "plain") for p in (tmp_path / "plain").rglob("*.*")}
    for name in files:
        whole = (tmp_path / "packed" / name).read_bytes()
        assert (tmp_path / "merged" / name).read_bytes() == whole
        if name.suffix != ".npz":
            assert (tmp_path / "plain" / name).read_bytes() == whole
    assert Evaluation.load(tmp_path / "packed").equals(plain)
    assert (shards[0] + shards[1] + shards[2]).equals(plain)


@pytest.mark.usefixtures("small_blocks")
def test_an_image_that_is_there_twice_is_found_in_blocks_too() -> None:
    records = some(15)
    with pytest.raises(MergeError, match="image 'im0004' is there twice"):
        Evaluation(Protocol.preset("bsds500"), "x", [*records, records[4]])


@pytest.mark.usefixtures("small_blocks")
def test_images_with_different_numbers_of_thresholds_are_kept_as_they_are() -> None:
    def record(i: int) -> ImageRecord:
        ones = np.ones(i % 3 + 1, np.int64)
        counts = BoundaryCounts(np.arange(1.0, ones.size + 1), ones, ones, ones, ones)
        return ImageRecord(f"{i:02d}", (3, 5), {"boundary": counts})

    expected = [record(i) for i in range(20)]
    assert_same(gathered(expected), expected)


def test_many_records_take_less_than_a_kilobyte_each() -> None:
    """As they are they take more than five."""
    records = some(64)
    collector = RecordCollector()
    tracemalloc.start()
    try:
        kept = []
        for i in range(2048):
            own = BoundaryCounts(**records[i % 64].counts["boundary"].arrays())  # copies
            collector.add(ImageRecord(f"{i:05d}", (3, 5), {"boundary": own}))
            if i % 512 == 511:
                gc.collect()
                kept.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert kept[-1] - kept[0] < 1000 * (2048 - 512)


@pytest.mark.heavy
def test_the_parent_of_a_long_run_stays_flat() -> None:
    """From 1,000 to 10,000 images it grows by less than 1 KB per image, results written."""
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "scale.py", "--images", "10000"],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(ROOT)},
    )
    parent = {
        row.split()[0]: float(row.split()[-2])
        for row in done.stdout.splitlines()
        if row.endswith("MB")
    }
    assert parent["10000"] - parent["1000"] < 9
    assert parent["saved"] - parent["1000"] < 30


def test_nothing_is_written_where_a_score_cannot_be_made(tmp_path) -> None:
    """Boundary counts fit, region counts do not: no official file of the boundaries either."""
    good = simulated_run("a", 1).records[0]
    records = []
    for i, n in enumerate((2, 3)):
        fields = {f.name: np.zeros(n) for f in dataclasses.fields(RegionCounts)}
        one = RegionCounts(**{**fields, "n_pixels": 15, "best_covered_gt": 0.0})
        records.append(replace(good, image_id=f"{i}", counts={**good.counts, "region": one}))
    run = Evaluation(Protocol.preset("bsds500"), "x", records)
    with pytest.raises(DataError, match="region scores: images have different thresholds"):
        run.save(tmp_path / "out")
    assert not (tmp_path / "out").exists()
