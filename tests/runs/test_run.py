"""Runs: the same bits however they are carried out, faults that name their file, what goes on."""

import logging
import os
import shutil
import signal
import threading
import time
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import nullcontext
from multiprocessing import get_context
from pathlib import Path
from threading import Event
from types import SimpleNamespace

import attrs
import imageio.v3 as iio
import numpy as np
import pytest
from PIL import Image

import bsdsbench as bb
from bsdsbench.errors import DataError, InputWarning, MergeError, PairingError
from bsdsbench.metrics.boundary import BoundaryMetric
from bsdsbench.runs import dask_cluster, engine
from bsdsbench.runs.keywords import RunKeywords
from bsdsbench.runs.sources import find_sources
from tests.helpers.making import edge_map, make_set, noisy_map
from tests.helpers.runs import bits, counted, refused, stored, write_maps

ROOT = Path(__file__).parents[2]
TEN = bb.Protocol.preset("bsds500").replace(thresholds=10)
NAMES = [f"im{k}" for k in range(8)]


@pytest.mark.process
@pytest.mark.slow
def test_any_worker_number_and_executor_give_the_same_bits(tiny, tmp_path):
    options = {"one": {"workers": 1}, "two": {"workers": 2}, "nine": {"workers": 9}}
    options["threads"] = {"workers": 9, "executor": "thread"}
    options["processes"] = {"workers": 2, "executor": "process"}
    with ThreadPoolExecutor(2) as own, ProcessPoolExecutor(1, get_context("spawn")) as other:
        options |= {"own": {"executor": own}, "other": {"executor": other}}
        for name, how in options.items():
            metrics = ("boundary", "pixel")
            run = bb.evaluate(*tiny, TEN, metrics=metrics, out=tmp_path / name, **how)
            assert len(run.records) == 6
    first = bits(tmp_path / "one")
    assert {"result.json", "counts.npz", "eval_bdry.txt", "per_image/im000_ev1.txt"} <= set(first)
    for name in options:
        assert bits(tmp_path / name) == first, name


def test_an_unchanged_image_is_not_evaluated_again(tiny, tmp_path):
    pred, gt = tiny
    how = {"protocol": TEN, "out": tmp_path / "out"}
    counted(pred, gt, **how)
    iio.imwrite(pred / "im002.png", np.full((40, 52), 255, np.uint8))
    again = counted(pred, gt, **how)
    assert again.kept == 5
    assert again.equals(counted(pred, gt, TEN))
    for changed in ({"fresh": True}, {"protocol": TEN.replace(max_dist=0.02)}):
        assert counted(pred, gt, **{**how, **changed}).kept == 0


@pytest.mark.parametrize("parts", [2, 9])
def test_shards_join_to_the_undivided_run(tiny, parts, tmp_path):
    for i in range(1, parts + 1):
        counted(*tiny, TEN, shard=(i, parts), out=tmp_path / f"{i}")
    joined = bb.merge([bb.Evaluation.load(tmp_path / f"{i}") for i in range(1, parts + 1)])
    whole = counted(*tiny, TEN)
    assert joined.equals(whole)
    assert joined.scores() == whole.scores()


OTHERS = {
    "name": {"name": "other"},
    "protocol": {"protocol": TEN.replace(thin=False)},
    "metrics": {"metrics": "pixel"},
    "shards 1/2, 3/3": {"shard": (3, 3)},
    "ground truth": {},
    "list of images": {},
}


@pytest.mark.parametrize("change", OTHERS)
def test_shards_that_do_not_belong_together_are_refused(tiny, tmp_path, change):
    pred, gt = tiny
    options = {"protocol": TEN, "shard": (2, 2), **OTHERS[change]}
    one = counted(pred, gt, TEN, shard=(1, 2))
    if change == "ground truth":
        path = sorted((gt / "im000").iterdir())[0]  # an image of the first part
        iio.imwrite(path, iio.imread(path)[::-1])
    elif change == "list of images":
        options["split_file"] = tmp_path / "ids"
        options["split_file"].write_text("im000\nim001\nim002\nim003")
    other = counted(pred, gt, **options)
    refused(change, bb.merge, [one, other], error=MergeError)


def test_shards_of_two_folders_of_predictions_are_said(tiny, tmp_path):
    """Both epochs' folders are called maps, so the name of the run does not tell them apart."""
    pred, gt = tiny
    parts = []
    for k, epoch in enumerate(("10", "20"), 1):
        shutil.copytree(pred, tmp_path / epoch / "maps")
        parts.append(counted(tmp_path / epoch / "maps", gt, TEN, shard=(k, 2)))
    with pytest.warns(InputWarning, match="10/maps, .*20/maps, expected the same maps"):
        bb.merge(parts)
    parts = [counted(f"{pred}{end}", gt, TEN, shard=(k, 2)) for k, end in ((1, ""), (2, "/"))]
    bb.merge(parts)  # one folder, written in two ways


def test_a_tolerance_in_percent_is_refused(tiny):
    words = r"0.75: 75% .*expected at most 0.1 \(max_dist=0.0075 for 0.75 %; max_dist_px=... for a"
    refused(words, counted, *tiny, TEN.replace(max_dist=0.75))
    assert counted(*tiny, TEN.replace(max_dist=0.75), metrics="pixel").records  # not used


def test_shards_lack_or_come_twice_and_options_do_not_go_together(tiny):
    one, whole = counted(*tiny, TEN, shard=(1, 2)), counted(*tiny, TEN)
    for words, parts in {"1/2, 1/2": [one, one], "1/2": [one], "1/2, None": [one, whole]}.items():
        refused(f"shards {words}, expected 1/2, 2/2", bb.merge, parts, error=MergeError)
    refused("is not a shard, expected runs made by", bb.merge, [whole], error=MergeError)
    refused("merge: 'out', expected the shards of a run", bb.merge, ["out"], error=MergeError)
    refused("merge: no runs, expected the shards", bb.merge, [], error=MergeError)
    refused("saliency", counted, *tiny, metrics="saliency", pred_kind="labels")
    refused("saliency, boundary: read", counted, *tiny, metrics=("boundary", "saliency"))
    for folder in tiny:
        refused("is inside", counted, *tiny, TEN, out=folder / "deep" / "out")
        assert not (folder / "deep").exists()


@pytest.mark.process
def test_every_bad_file_is_named_and_nothing_is_written(tiny, tmp_path):
    pred, gt = tiny
    (pred / "im001.png").write_bytes((pred / "im001.png").read_bytes()[:60])
    iio.imwrite(pred / "im003.png", np.zeros((52, 40), np.uint8))
    for name, value in (("im004", np.nan), ("im005", 254.0)):
        (pred / f"{name}.png").unlink()
        np.save(pred / f"{name}.npy", np.full((40, 52), value))
    with pytest.raises(bb.DataError, match="transposed") as caught:
        bb.evaluate(pred, gt, TEN, workers=2, out=tmp_path / "out")
    lines = zip(
        ("im001.png", "im003.png", "im004.npy", "im005.npy"),
        map(str, caught.value.problems),
        strict=True,
    )
    assert all(name in line for name, line in lines)
    assert not (tmp_path / "out" / "result.json").exists()
    run = counted(pred, gt, TEN, out=tmp_path / "out", on_error="skip")
    assert run.image_ids == ["im000", "im002"]
    assert sorted(run.failed) == ["im001", "im003", "im004", "im005"]


def test_missing_predictions(tiny):
    pred, gt = tiny
    (pred / "im002.png").unlink()
    refused("im002", counted, pred, gt, TEN, error=PairingError)
    assert len(counted(pred, gt, TEN, missing="skip").records) == 5
    zero = counted(pred, gt, TEN, missing="zero")
    assert zero.records[2].form == "none"
    assert zero.records[2].counts["boundary"].total_pred.tolist() == [0] * 10
    assert zero.records[2].counts["boundary"].total_gt[0] > 0


def test_wrong_options_are_reported_together(tiny):
    wrong = {
        **{"metrics": ("edges",), "missing": "maybe", "shard": (3, 2), "workers": 0, "out": 3},
        **{"name": "n\udcff", "executor": "cloud", "on_error": None, "progress": "yes"},
    }
    with pytest.raises(bb.DataError) as caught:
        bb.evaluate(*tiny, TEN, **wrong)
    for name in wrong:
        assert sum(line.startswith(name) for line in map(str, caught.value.problems)) == 1, name
    with pytest.raises(TypeError, match="no_such"):
        bb.evaluate(*tiny, TEN, no_such=1)


class PathOfBytes(os.PathLike):
    """A path like those that os.scandir gives for a folder in bytes."""

    def __fspath__(self):
        return b"maps"


@pytest.mark.parametrize("path", ["", "a\0b", b"maps", None, ["maps"], PathOfBytes(), Path("a\0b")])
def test_a_path_is_text_that_may_name_a_file(tiny, path):
    """An empty one would be the current folder, which nobody has named."""
    pred, gt = tiny
    refused("pred_dir .*: expected a path", bb.evaluate, path, gt, TEN)
    if path is not None:
        refused("protocol .*: expected", bb.Protocol.load, path)
    refused("folder: .*expected a path", bb.Evaluation.load, path)
    refused("folder: .*expected a path", bb.evaluate(pred, gt, TEN, workers=1).save, path)
    if path is not None:
        refused("out .*: expected a path", bb.evaluate, pred, gt, TEN, out=path)


def test_a_folder_of_pictures_that_is_not_there_is_refused(tiny, tmp_path):
    for folder in (tmp_path / "none", tiny[0] / "im000.png"):
        refused("is not a folder, expected one of pictures", counted, *tiny, TEN, images_dir=folder)


def test_names_of_metrics_may_come_from_an_iterator(tiny):
    run = counted(*tiny, TEN, metrics=iter(["pixel", "boundary"]))
    assert run.metrics == ("boundary", "pixel")


def test_what_is_hashed_is_what_is_decoded(tiny, monkeypatch):
    """Each file is read once: one that changes meanwhile is counted as it was, or is a fault."""
    opened = []
    monkeypatch.setattr(
        "bsdsbench.io.open",
        lambda path, *rest: opened.append(str(path)) or open(path, *rest),  # noqa: SIM115
        raising=False,
    )
    counted(*tiny, TEN)
    assert len(opened) == len(set(opened)) >= 12


def test_a_fault_of_ours_costs_one_image(tiny, monkeypatch):
    real = BoundaryMetric.count

    def faulty(metric, pred, *more):
        if pred.image_id == "im003":
            raise ZeroDivisionError("by zero")
        return real(metric, pred, *more)

    monkeypatch.setattr(BoundaryMetric, "count", faulty)
    run = counted(*tiny, TEN, on_error="skip")
    assert list(run.failed) == ["im003"]
    assert "unexpected ZeroDivisionError" in run.failed["im003"]
    assert "(a bug in bsdsbench, in base.py, line " in run.failed["im003"]


def test_folders_are_found_from_anywhere_and_after_all_was_moved(tmp_path, monkeypatch):
    root = tmp_path / "work"
    make_set(root, images=2)
    monkeypatch.chdir(root)
    run = bb.evaluate("pred", "gt", TEN, workers=1, out="runs/mine")
    assert run.provenance.pred == "pred"
    assert str(tmp_path) not in (root / "runs" / "mine" / "result.json").read_text("utf-8")
    monkeypatch.chdir(tmp_path)
    assert len(find_sources(bb.Evaluation.load("work/runs/mine")).items) == 2
    again = bb.Evaluation.load("work/runs/mine").save(tmp_path / "copy")
    root.rename(tmp_path / "elsewhere")
    assert len(find_sources(bb.Evaluation.load("elsewhere/runs/mine")).items) == 2
    refused("work/pred|pred", find_sources, bb.Evaluation.load(again))


# ---- any iterable --------------------------------------------------------------------------------


def arrays(k):
    rng = np.random.default_rng(k)
    edges = edge_map(rng, (40, 52))
    return noisy_map(rng, edges), edges


def items(log=None):
    for k, name in enumerate(NAMES):
        if log is not None:
            log.append(name)
        pred, edges = arrays(k)
        yield name, pred, [edges]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("executor", "workers"),
    [("thread", 1), pytest.param("process", 2, marks=pytest.mark.process), ("thread", 3)],
)
def test_the_records_are_those_of_files(tmp_path, executor, workers):
    found = {name: arrays(k) for k, name in enumerate(NAMES)}
    files = counted(
        write_maps(tmp_path / "pred", {name: pred for name, (pred, _) in found.items()}),
        write_maps(tmp_path / "gt", {name: edges for name, (_, edges) in found.items()}),
    )
    run = bb.evaluate_items(items(), workers=workers, executor=executor)
    for a, b in zip(run.records, files.records, strict=True):
        assert (a.image_id, a.size, a.truth, a.form) == (b.image_id, b.size, b.truth, b.form)
        assert a.counts["boundary"].equals(b.counts["boundary"])


@pytest.mark.parametrize("workers", [1, 2])
def test_a_few_images_at_a_time(workers):
    log, most = [], []
    bb.evaluate_items(
        items(log), workers=workers, progress=lambda d, t, i: most.append(len(log) - d)
    )
    assert max(most) <= (engine.AHEAD * workers if workers > 1 else 1)
    assert len(log) == len(NAMES)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_generator_may_write_each_image_into_the_same_arrays(workers):
    maps = np.random.default_rng(3).random((9, 20, 30))
    soft, gt = np.zeros((20, 30)), np.zeros((20, 30), bool)

    def images():
        for k, values in enumerate(maps):
            soft[:], gt[:] = values, values > 0.9
            yield k, soft, gt

    expected = [(str(k), values, values > 0.9) for k, values in enumerate(maps)]
    found, wanted = (
        bb.evaluate_items(items, workers=workers, executor="thread")
        for items in (images(), expected)
    )
    assert found.equals(wanted)


def test_an_image_of_one_bit_is_taken_as_an_array():
    """numpy shows Pillow's white pixels as True of the byte 255."""
    edges = np.eye(20, 30, dtype=bool)
    run = bb.evaluate_items([("a", Image.fromarray(edges), edges)], workers=1)
    assert run.boundary_score().ods.f == 1


def test_it_goes_on_where_it_stopped(tmp_path):
    def broken():
        for k, item in enumerate(items()):
            if k == 5:
                raise OSError("the disk is gone")
            yield item

    refused("the disk is gone", bb.evaluate_items, broken(), workers=1, out=tmp_path, error=OSError)
    run = bb.evaluate_items(items(), workers=1, out=tmp_path)
    assert run.kept == 5
    assert run.equals(bb.evaluate_items(items(), workers=1))
    other = ((n, p, [~g for g in gts]) for n, p, gts in items())
    with pytest.warns(InputWarning, match="most pixels are boundary"):
        assert bb.evaluate_items(other, workers=1, out=tmp_path).kept == 0


def test_every_fault_of_items_is_named():
    good = list(items())
    bad = [("odd", np.zeros((3, 3)), [np.zeros((4, 4), bool)]), ("none", np.zeros(()), [None])]
    refused(r"Prediction(.|\n)*odd", bb.evaluate_items, [*good, *bad], workers=1)
    run = bb.evaluate_items([*good, *bad], workers=1, on_error="skip")
    assert set(run.failed) == {"odd", "none"}
    wrong = {
        "im0": [good[0]] * 2,
        "item 1": [3],
        "item 2: image id 3.5": [good[0], (3.5, 1, 2)],
        "items": 3,
        r"item 1: a tuple of 4, expected \(id": [(*good[0], None)],
        "im0: ground truth: no annotators, expected at least one": [(*good[0][:2], [])],
        "im0: ground truth: None, expected an array": [(*good[0][:2], None)],
        "im0: prediction: None, expected an array": [("im0", None, good[0][2])],
    }
    for words, given in wrong.items():
        refused(words, bb.evaluate_items, given, workers=1)


# ---- workers -------------------------------------------------------------------------------------


def counted_or_killed(item, *rest, real=engine.count):
    """As `count` where a map is too large for the memory: the system ends the process."""
    if item.image_id == "im003":
        os.kill(os.getpid(), signal.SIGKILL)
    return real(item, *rest)


def test_an_executor_that_was_shut_down_says_so(tiny):
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    words = r" died \(RuntimeError: cannot schedule new futures after shutdown; out of memory"
    refused(words, bb.evaluate, *tiny, TEN, executor=executor)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.process
def test_a_worker_that_dies_is_one_line_and_a_second_call_goes_on(tiny, tmp_path, monkeypatch):
    out = tmp_path / "out"
    monkeypatch.setattr(engine, "count", counted_or_killed)
    with pytest.raises(
        bb.DataError, match=r"worker process died .*im003.* images are kept"
    ) as caught:
        bb.evaluate(*tiny, TEN, workers=2, executor="process", out=out)
    assert len(caught.value.problems) == 1
    kept = stored(out)
    monkeypatch.undo()
    run = bb.evaluate(*tiny, TEN, workers=2, out=out)
    assert run.kept == len(kept)
    assert run.equals(counted(*tiny, TEN))


@pytest.mark.parametrize("asked", ["auto", "process"])
def test_without_semaphores_threads_are_taken_or_it_is_one_line(tiny, monkeypatch, asked):
    """As where /dev/shm is missing or read-only."""

    def refuse(*given):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(engine, "ProcessPoolExecutor", refuse)
    options = {"executor": asked, "workers": 9}
    if asked == "process":
        refused("executor 'process': .*, expected 'thread'", bb.evaluate, *tiny, **options)
    else:
        assert len(bb.evaluate(*tiny, TEN, **options).records) == 6


@pytest.mark.parametrize("workers", [8, 64])
def test_python_takes_threads_whatever_the_machine(tiny, monkeypatch, workers):
    """Processes need a script with a guard: they are taken where they are asked for."""
    monkeypatch.setattr(engine, "ProcessPoolExecutor", None)
    monkeypatch.setattr(engine, "available_cores", lambda: workers)
    monkeypatch.setattr("bsdsbench.runs.engine.BATCH_DIVISOR", 2)  # as if the images were thousands
    assert len(bb.evaluate(*tiny, TEN).records) == 6


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.0, 0.06])
def test_calls_that_a_worker_gets_several_at_a_time_keep_their_order(seconds):
    """After 0.1 s what is left of them is handed out again."""
    log = []

    def slowly(k):
        time.sleep(seconds)
        log.append(k)
        return -k

    calls = [(k,) for k in range(20)]
    with ThreadPoolExecutor(3) as executor:
        found = list(engine._map_in_order(slowly, calls, executor, 2, 4))
    assert found == [((k,), -k) for k in range(20)]
    assert sorted(log) == list(range(20))


@pytest.mark.slow
@pytest.mark.process
def test_many_images_go_to_processes_several_at_once_and_give_the_same(tmp_path, monkeypatch):
    square = np.zeros((8, 8), np.uint8)
    square[2:6, 3] = 255
    maps = {f"{k:04}": np.roll(square, k % 5, 1) for k in range(50)}
    folders = write_maps(tmp_path / "pred", maps), write_maps(tmp_path / "gt", maps)
    expected = bb.evaluate(*folders, TEN, workers=1)
    monkeypatch.setattr("bsdsbench.runs.engine.BATCH_DIVISOR", 20)
    monkeypatch.setattr(engine, "ThreadPoolExecutor", None)
    assert bb.evaluate(*folders, TEN, workers=2, executor="auto").equals(expected)


# ---- a Dask cluster ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster():
    """The address of two workers in other processes, and a client that ends one."""
    distributed = pytest.importorskip("distributed", reason="no extra 'distributed'")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as found:
        yield found


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.process
def test_a_cluster_gives_the_same_bits(cluster, tmp_path, monkeypatch):
    """Of relative paths too: its workers run in other folders."""
    make_set(tmp_path / "few", images=3)
    monkeypatch.chdir(tmp_path / "few")
    address = cluster.scheduler_address.replace("tcp://", "dask://")
    groups = {f"im{k:03}": {"place": "ab"[k % 2]} for k in range(3)}
    there = bb.evaluate("pred", "gt", TEN, executor=address, out="there", groups=groups)
    counted("pred", "gt", TEN, out="here", groups=groups)
    assert bits(tmp_path / "few" / "there") == bits(tmp_path / "few" / "here")
    assert [record.groups["place"] for record in there.records] == ["a", "b", "a"]
    next(Path("pred").iterdir()).write_bytes(b"no picture")
    failed = bb.evaluate("pred", "gt", TEN, executor=address, on_error="skip").failed
    assert failed == counted("pred", "gt", TEN, on_error="skip").failed
    assert len(failed) == 1


@pytest.mark.filterwarnings("default")
@pytest.mark.process
@pytest.mark.parametrize("kind", ["cluster", "client", "tcp"])
def test_a_cluster_is_given_as_what_one_has(cluster, tiny, kind):
    from distributed import Client

    with Client(cluster, set_as_default=False) as client:
        given = {"cluster": cluster, "client": client, "tcp": cluster.scheduler_address}[kind]
        there = bb.evaluate(*tiny, TEN, executor=given)
        assert client.status == "running"
    assert there.equals(counted(*tiny, TEN))


@pytest.mark.filterwarnings("default")
@pytest.mark.process
def test_workers_of_another_version_are_named(cluster, tiny, monkeypatch):
    from distributed import Client

    address = cluster.scheduler_address.replace("tcp://", "dask://")
    monkeypatch.setattr(Client, "run", lambda self, function: {"tcp://w": "bsdsbench 0.0.9"})
    words = r"has bsdsbench 0\.0\.9, expected bsdsbench"
    refused(words, bb.evaluate, *tiny, TEN, executor=address)


def test_an_address_without_a_scheduler_leaves_the_loggers_as_they_were(tiny, monkeypatch):
    pytest.importorskip("distributed", reason="no extra 'distributed'")
    monkeypatch.setattr(dask_cluster, "ANSWER_SECONDS", 0.1)
    levels = {name: logging.getLogger(name).level for name in dask_cluster.NOISY}
    refused("no Dask scheduler", bb.evaluate, *tiny, TEN, executor="dask://127.0.0.1:9")
    assert {name: logging.getLogger(name).level for name in dask_cluster.NOISY} == levels


@pytest.mark.slow
def test_a_cluster_that_loses_all_workers_ends(monkeypatch):
    """Dask itself would wait for ever. Its client here has no workers, and calls that never end."""
    monkeypatch.setattr(dask_cluster, "PATIENCE", 0.1)
    inner = SimpleNamespace(submit=lambda *given: Future())
    info = {"scheduler_info": lambda: {"workers": {}}, "get_executor": lambda: inner}
    watched, over = (
        dask_cluster._WatchedExecutor(SimpleNamespace(status="running", **info)),
        Event(),
    )
    threading.Thread(target=watched.watch, args=(over,), daemon=True).start()
    calls = [(SimpleNamespace(image_id=name),) for name in NAMES]
    with pytest.raises(BrokenExecutor, match=r"died \(CancelledError.*: im0, im1, im2"):
        list(engine._map_in_order(len, calls, watched, 3))
    over.set()


def test_a_changed_instance_map_is_counted_again(tmp_path):
    """It lies beside the ground truth, and belongs to the image as its other files do."""
    labels = np.kron(np.arange(4, dtype=np.uint8).reshape(2, 2), np.ones((12, 12), np.uint8))
    for folder, name in (("pred", "labels"), ("set", "labels"), ("set", "instances")):
        write_maps(tmp_path / folder / name, {"a": labels, "b": labels})
    folders = tmp_path / "pred" / "labels", tmp_path / "set" / "labels"
    protocol = bb.Protocol.preset("sbd").replace(options={"semantic": {"instances": True}})
    how = {"protocol": protocol, "metrics": "semantic", "out": tmp_path / "out"}
    assert counted(*folders, **how).kept == 0
    write_maps(tmp_path / "set" / "instances", {"a": labels[::-1]})
    assert counted(*folders, **how).kept == 1


@pytest.mark.parametrize(("folder", "name"), [("hed/Val", "hed"), ("a/test/hed", "hed")])
def test_a_run_is_called_by_what_is_no_split(tiny, tmp_path, folder, name):
    shutil.copytree(tiny[0], tmp_path / folder)
    assert counted(tmp_path / folder, tiny[1], TEN).name == name


@pytest.mark.parametrize("humans", [False, True])
def test_dask_workers_get_absolute_paths(tiny, monkeypatch, humans):
    """They have other working folders. A path in a reason is as the caller gave it."""
    pred, gt = tiny
    monkeypatch.chdir(gt.parent)
    next(gt.rglob("*.png")).write_bytes(b"damaged")
    paths = []

    def spy(item, *arguments, **options):
        paths.extend(item.pair.gt_paths)
        return count(item, *arguments, **options)

    count = engine.count
    monkeypatch.setattr(engine, "count", spy)
    monkeypatch.setattr(engine, "_open_executor", lambda *_: nullcontext((None, 1)))
    options = {"executor": "tcp://127.0.0.1:9", "on_error": "skip"}
    if humans:
        Path("ids.txt").write_text("\n".join(folder.name for folder in gt.iterdir()))
        run = bb.evaluate_humans(gt.name, TEN, split_file="ids.txt", **options)
    else:
        run = bb.evaluate(pred.name, gt.name, TEN, **options)
    assert paths
    assert all(map(Path.is_absolute, paths))
    (reason,) = run.failed.values()
    assert f"{gt.name}{os.sep}" in reason
    assert str(gt) not in reason


def test_every_value_of_a_keyword_is_checked():
    """Also that of a flag, and a default where it is no value of its keyword; None is not given."""
    wrong = {"errors": "yes", "fresh": 1, "workers": 0, "missing": None, "shard": None}
    with pytest.raises(DataError) as caught:
        RunKeywords(**wrong, out=None, executor=None)
    lines = list(map(str, caught.value.problems))
    assert [line.partition(" ")[0] for line in lines] == [
        f.name for f in attrs.fields(RunKeywords) if f.name in wrong
    ]
    assert [line for line in lines if "expected True or False" in line] == [
        "errors 'yes': expected True or False",
        "fresh 1: expected True or False",
    ]


@pytest.mark.slow
def test_arrays_that_cannot_be_used_are_named_by_their_image():
    good, labels = np.eye(4, 5), np.full((4, 5), 7)
    faulty = [("one", 3.5 * good, good), ("two", good, labels), ("three", good, good)]
    with pytest.raises(DataError) as caught:
        bb.evaluate_items(faulty, workers=1)
    lines = [str(problem) for problem in caught.value.problems]
    assert [line.split(":")[0] for line in lines] == ["one", "two"]
    assert lines[0].startswith("one: soft map: values from 0 to 3.5, expected floats in [0, 1]")
