"""Workers that die, and a Dask cluster that loses one."""

import contextlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from concurrent.futures import CancelledError, Executor, Future
from pathlib import Path
from types import SimpleNamespace

import pytest

import bsdsbench as bb
from bsdsbench.loaders import pair
from bsdsbench.runs import executors
from bsdsbench.runs.executors import Waiting, _Pool, _pool, outcomes
from bsdsbench.runs.job import Failure, Job
from bsdsbench.runs.record_store import RecordStore
from tests.helpers.making import make_set
from tests.helpers.metric_cases import case_of
from tests.helpers.processes import gone
from tests.helpers.runs import bits, counted, refused

ROOT = Path(__file__).parents[2]


@pytest.fixture
def masks(tmp_path):
    """Folders of three soft maps and masks: their metric needs no kernels, so workers start soon"""
    return case_of("saliency").write(tmp_path)


def jobs_of(tiny):
    proto = bb.Protocol.preset("bsds500").replace(thresholds=5)
    return [Job(p, proto, ("boundary",)) for p in pair(*tiny)]


DEADLY = """
import os
import sys

if "--multiprocessing-fork" in sys.orig_argv:
    import bsdsbench.runs.job as job

    def deadly(each):
        if each.pair.image_id == "im003":
            os._exit(9)
        return job.ImageRecord(each.pair.image_id, (40, 52), {})

    job._evaluate = deadly
"""


@pytest.mark.parametrize("seconds", [0.0, 1e9])
@pytest.mark.process
def test_an_image_that_kills_its_worker_is_blamed_and_the_others_are_done(
    tiny, tmp_path, monkeypatch, seconds
):
    """A sitecustomize makes every worker die when it meets image im003, alone or among others.

    Of the others it makes empty records, which needs no kernels."""
    monkeypatch.setattr(executors, "TASK_SECONDS", seconds)
    monkeypatch.setattr(executors, "TASKS_PER_WORKER", 1)
    (tmp_path / "sitecustomize.py").write_text(DEADLY)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(ROOT)]))
    monkeypatch.setenv("BSDSBENCH_START_METHOD", "spawn")
    found = list(outcomes(jobs_of(tiny), "process", 2))
    failed = [o for o in found if isinstance(o, Failure)]
    assert [f.image_id for f in failed] == ["im003"]
    assert "worker process died" in failed[0].problems[0]
    assert sorted(o.image_id for o in found) == [f"im{k:03d}" for k in range(6)]


@pytest.mark.parametrize(("seconds", "arrays"), [(0.0, None), (1e9, None), (1e9, ())])
def test_images_that_take_little_time_go_several_to_a_task(monkeypatch, seconds, arrays):
    """Fewer towards the end, and those that hold arrays alone."""
    tasks, total, at_a_time = [], 400, 4
    monkeypatch.setattr(executors, "TASK_SECONDS", seconds)

    class Counting(Executor):
        def submit(self, task, work, jobs):
            tasks.append(len(jobs))
            future = Future()
            future.set_result(task(work, jobs))
            return future

    jobs = (SimpleNamespace(arrays=arrays, number=k) for k in range(total))
    find = executors._through(Counting(), Waiting(jobs), at_a_time, work=lambda job: job.number)
    assert sorted(find) == list(range(total))
    several = bool(seconds) and arrays is None
    assert tasks[0] == tasks[-1] == 1
    assert max(tasks) == (executors.MOST_JOBS if several else 1)
    left = total
    for count in tasks:
        assert count <= max(1, left // at_a_time)
        left -= count


METHODS = pytest.mark.parametrize(
    "method", [m for m in ("forkserver", "spawn") if m in multiprocessing.get_all_start_methods()]
)


def python(*words, **options):
    """A script in another process, and what it printed; several seconds on a busy machine."""
    done = subprocess.run(
        [sys.executable, *map(str, words)], capture_output=True, text=True, timeout=300, **options
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@METHODS
@pytest.mark.process
def test_a_script_needs_no_main_guard(masks, monkeypatch, method):
    """One that is read from standard input; the next test has one in a file."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("BSDSBENCH_START_METHOD", method)
    pred, gt = map(str, masks)
    script = (
        "import bsdsbench as bb\n"
        f"run = bb.evaluate({pred!r}, {gt!r}, metrics='saliency', workers=2)\n"
        "print(len(run.records))\n"
    )
    assert python("-", input=script) == "3\n"


@METHODS
@pytest.mark.process
def test_workers_import_nothing_from_the_current_folder(tiny, tmp_path, method):
    """A clone of another version, or a user's signal.py, may lie where the command is run. The
    script has no main guard. However they are started, workers give the same bytes."""
    (tmp_path / "bsdsbench").mkdir()
    (tmp_path / "bsdsbench" / "__init__.py").write_text("open('imported', 'w')")
    if sys.version_info >= (3, 11):
        (tmp_path / "signal.py").write_text("open('imported', 'w')")
    (tmp_path / "folder").mkdir()
    script = tmp_path / "folder" / "script.py"
    pred, gt, out = map(str, (*tiny, tmp_path / "out"))
    script.write_text(
        "import os\n"
        "import bsdsbench as bb\n"
        f"bb.evaluate({pred!r}, {gt!r}, workers=2, out={out!r})\n"
        "print(os.environ.get('PYTHONSAFEPATH'))\n"
    )
    own = {**os.environ, "PYTHONPATH": str(ROOT), "BSDSBENCH_START_METHOD": method}
    assert python(script, env=own, cwd=tmp_path) == "None\n"
    assert not (tmp_path / "imported").exists()
    counted(*tiny, out=tmp_path / "here")
    assert bits(tmp_path / "out") == bits(tmp_path / "here")


@pytest.mark.process
def test_workers_have_the_environment_of_their_parent(tmp_path):
    with _pool(1, ()) as pool:
        assert pool.submit(os.getenv, "PYTHONSAFEPATH").result() == os.environ.get("PYTHONSAFEPATH")


KILLED_AT_START = """
import os
import signal
import sys

count = {count!r}
if any({mark!r} in word for word in sys.orig_argv):
    with open({tally!r}, "a") as file:
        file.write("x")
    if os.path.getsize({tally!r}) <= count:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def killing(tmp_path, monkeypatch, method, count):
    """The first `count` helper processes that Python starts are killed at once."""
    marks = {"forkserver": "multiprocessing.forkserver", "spawn": "--multiprocessing-fork"}
    text = KILLED_AT_START.format(count=count, mark=marks[method], tally=str(tmp_path / "tally"))
    (tmp_path / "sitecustomize.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(ROOT)]))
    monkeypatch.setenv("BSDSBENCH_START_METHOD", method)


def evaluate(masks):
    pred, gt = map(str, masks)
    command = [sys.executable, "-m", "bsdsbench", "evaluate", pred, "--gt", gt, "--quiet"]
    command += ["--metrics", "saliency", "--workers", "2"]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=ROOT)


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@METHODS
@pytest.mark.process
def test_helpers_killed_while_starting_are_named_and_tried_again(
    masks, tmp_path, monkeypatch, method
):
    killing(tmp_path, monkeypatch, method, 1)
    done = evaluate(masks)
    assert done.returncode == 0, done.stderr
    assert "interrupted" not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@METHODS
@pytest.mark.process
def test_helpers_that_never_start_end_the_run_with_status_2(masks, tmp_path, monkeypatch, method):
    killing(tmp_path, monkeypatch, method, 1000)
    done = evaluate(masks)
    assert done.returncode == 2, done.stderr
    first, last = done.stderr.splitlines()
    assert "a worker process died while starting" in first
    assert "trying once again" in first
    assert "a worker process died while starting" in last
    assert "twice; expected memory and permission" in last
    if method == "spawn":
        assert "signal 9: out of memory?" in last


class Late:
    """A process whose end is noted a little after it."""

    asked = 0

    @property
    def exitcode(self):
        self.asked += 1
        return None if self.asked < 4 else -9


def test_the_end_of_a_worker_is_waited_for():
    pool = SimpleNamespace(children={1: Late()})
    assert _Pool.last_words(pool) == "signal 9: out of memory?"


QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": ROOT}


def start_scheduler(folder):
    """A Dask scheduler on a port that it chose itself, and its address once it listens."""
    told = folder / "scheduler.json"
    told.unlink(missing_ok=True)  # an earlier one's
    program = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--no-dashboard"]
    where = ["--host", "127.0.0.1", "--port", "0", "--scheduler-file", told]
    scheduler = subprocess.Popen([*program, *where], **QUIET)
    limit = time.monotonic() + 120
    while time.monotonic() < limit and scheduler.poll() is None:
        with contextlib.suppress(OSError, ValueError):  # not there yet, or half written
            return scheduler, json.loads(told.read_text())["address"]
        time.sleep(0.05)
    scheduler.kill()
    raise RuntimeError(f"the Dask scheduler did not start (status {scheduler.wait()})")


def stop(*processes):
    for process in processes:
        process.kill()
        process.wait()


class Cluster:
    """A scheduler and its workers; those that a test has killed start again where it needs them."""

    def __init__(self, folder):
        self.folder, self.scheduler, self.workers = folder, None, []

    def with_workers(self, count):
        """Address, workers, scheduler: there are so many at least, and it knows who was killed."""
        from distributed import Client

        if self.scheduler is None or self.scheduler.poll() is not None:
            stop(*self.workers)
            self.scheduler, self.address = start_scheduler(self.folder)
        self.workers = [w for w in self.workers if w.poll() is None]
        program = [sys.executable, "-m", "distributed.cli.dask_worker", self.address, "--no-nanny"]
        options = ["--nthreads", "1", "--no-dashboard", "--local-directory", self.folder]
        while len(self.workers) < count:
            self.workers.append(subprocess.Popen([*program, *options], **QUIET))
        with Client(self.address, timeout=60, set_as_default=False) as client:
            limit = time.monotonic() + 120
            while len(client.nthreads()) != len(self.workers) and time.monotonic() < limit:
                time.sleep(0.05)
            assert len(client.nthreads()) == len(self.workers)
        return self.address.replace("tcp://", "dask://"), self.workers, self.scheduler

    def without_workers(self):
        """The address."""
        stop(*self.workers)
        return self.with_workers(0)[0]


@pytest.fixture(scope="module")
def one_cluster(tmp_path_factory):
    pytest.importorskip("distributed", reason="no extra 'distributed'")
    found = Cluster(tmp_path_factory.mktemp("dask"))
    yield found
    stop(*found.workers, *filter(None, [found.scheduler]))


@pytest.fixture
def cluster(one_cluster):
    """Of two workers."""
    return one_cluster.with_workers(2)


@pytest.mark.filterwarnings("default")
@pytest.mark.process
def test_a_cluster_without_workers_is_one_line(one_cluster, tiny, monkeypatch):
    monkeypatch.setattr("bsdsbench.runs.cluster.PATIENCE", 1.0)
    with pytest.raises(bb.DataError, match="no workers there after 1 s, expected at least one"):
        bb.evaluate(*tiny, executor=one_cluster.without_workers())


@pytest.mark.filterwarnings("default")
@pytest.mark.process
@pytest.mark.parametrize("name", ["semantic", "saliency"])
def test_a_cluster_counts_classes_and_masks_alike(cluster, tmp_path, name):
    case = case_of(name)
    run = bb.evaluate(*case.write(tmp_path), case.protocol, metrics=name, executor=cluster[0])
    for record, counts in zip(run.records, case.counted(), strict=True):
        assert record.counts[name].equals(counts)


@pytest.mark.filterwarnings("default")
@pytest.mark.process
def test_relative_paths_reach_the_workers(cluster, tmp_path, monkeypatch):
    make_set(tmp_path / "few", images=3)
    monkeypatch.chdir(tmp_path / "few")
    assert len(bb.evaluate("pred", "gt", executor=cluster[0]).records) == 3


@pytest.mark.filterwarnings("default")
@pytest.mark.process
def test_workers_that_do_not_see_the_files_are_named(cluster, tiny):
    from dataclasses import replace

    (job, *_) = jobs_of(tiny)
    elsewhere = replace(job, pair=replace(job.pair, gt_paths=(Path("/none/a.png"),)))
    with pytest.raises(bb.DataError, match=r"does not see /none/a\.png, .* \(2 of 2 workers\)"):
        list(outcomes([elsewhere], cluster[0], 2))


@pytest.mark.filterwarnings("default")
@pytest.mark.process
def test_a_dask_cluster_that_loses_a_worker_gives_the_same_bits(cluster, tmp_path):
    address, workers, _ = cluster
    many = make_set(tmp_path / "many", images=40)
    counted(*many, out=tmp_path / "here")

    def kill_one(done, total, image_id):
        if done == 8:
            workers[0].kill()

    bb.evaluate(*many, executor=address, out=tmp_path / "there", progress=kill_one)
    assert workers[0].wait(60) != 0
    assert bits(tmp_path / "there") == bits(tmp_path / "here")


@pytest.mark.filterwarnings("default")
@pytest.mark.process
def test_a_scheduler_that_goes_is_one_line_and_what_was_done_is_kept(one_cluster, tmp_path, capfd):
    address, _, scheduler = one_cluster.with_workers(1)
    many = make_set(tmp_path / "many", images=60)

    def kill(done, total, image_id):
        if done == 3:
            scheduler.kill()

    with pytest.raises(bb.DataError, match="the Dask scheduler has gone; what was done is kept"):
        bb.evaluate(*many, executor=address, out=tmp_path / "out", progress=kill)
    with contextlib.closing(RecordStore(tmp_path / "out")) as kept:
        assert len(kept.known) >= 3
    assert "Traceback" not in "".join(capfd.readouterr())


@pytest.mark.slow
def test_no_scheduler_is_one_line(tiny, monkeypatch):
    pytest.importorskip("distributed", reason="the extra 'distributed' is not installed")
    monkeypatch.setattr("bsdsbench.runs.cluster.ANSWER_SECONDS", 0.5)
    refused("no Dask scheduler answers", bb.evaluate, *tiny, executor="dask://127.0.0.1:1")


@pytest.mark.parametrize("address", ["dask://127.0.0.1", "dask://", "dask://a b:1", "dask:x", 3])
def test_an_address_that_is_none_is_one_line(tiny, address):
    refused(r"expected (dask://HOST:PORT|process, thread)", bb.evaluate, *tiny, executor=address)


@pytest.mark.parametrize(
    "fault", [FileNotFoundError(2, "No such file or directory"), ImportError("no")]
)
def test_without_semaphores_it_works_in_threads_and_says_so(tiny, monkeypatch, caplog, fault):
    """As where /dev/shm is missing or read-only."""
    import _multiprocessing

    class Refused:
        SEM_VALUE_MAX = 1

        def __new__(cls, *given):
            raise fault

    monkeypatch.setattr(_multiprocessing, "SemLock", Refused)
    run = bb.evaluate(*tiny, workers=2)
    assert len(run.records) == 6
    assert "no processes here (semaphores: " in caplog.text
    assert "working in threads" in caplog.text


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.process
def test_the_tracker_of_semaphores_says_nothing_after_a_kill(masks, tmp_path):
    """A parent that is killed, and a tracker that fails over what is gone already."""
    script = (
        "import os, sys, signal, bsdsbench as bb\n"
        "from multiprocessing import resource_tracker as t\n"
        "def die(done, total, image_id):\n"
        "    t.register('/not-there', 'semaphore')\n"
        "    os.write(t._resource_tracker._fd, b'UNREGISTER:/never:semaphore\\n')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        f"pred, gt = {list(map(str, masks))!r}\n"
        "bb.evaluate(pred, gt, metrics='saliency', workers=2, progress=die)\n"
    )
    with (tmp_path / "err").open("wb") as err:
        command = [sys.executable, "-c", script]
        killed = subprocess.Popen(command, stderr=err, cwd=ROOT, start_new_session=True)
        assert killed.wait() == -signal.SIGKILL
    assert gone(killed.pid)  # the tracker ends after its parent
    assert (tmp_path / "err").read_text() == ""


class _Client:
    """What `_ready` asks a Dask client."""

    def __init__(self, version):
        self.version, self.given = version, []

    def wait_for_workers(self, count, timeout):
        pass

    def run(self, function, *given):
        (versions, lost) = function(*given)
        return {"tcp://w1": (versions, lost), "tcp://w2": (versions | self.version, lost)}

    def nthreads(self):
        return {"tcp://w1": 2, "tcp://w2": 3}


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ({"bsdsbench": "0.0.9"}, r"w2 has bsdsbench 0\.0\.9, expected "),
        ({"kernels": "1, 0"}, "w2 has kernels 1, 0, expected "),
        ({"metric boundary": "0"}, "w2 has metric boundary 0, expected "),
    ],
)
def test_workers_of_another_version_are_refused_before_the_work(tiny, version, words):
    from bsdsbench.runs.cluster import _ready, run_job_as, version_of

    jobs, here = deque(jobs_of(tiny)), version_of(("boundary",))
    assert _ready(_Client({}), "dask://a:1", jobs, here) == 5
    with pytest.raises(bb.DataError, match=words):
        _ready(_Client(version), "dask://a:1", jobs, here)
    late = run_job_as(here | version, jobs[0])  # a worker that joined after the check
    assert isinstance(late, Failure)
    assert "im000: a worker has " in late.problems[0]
    assert run_job_as(here, jobs[0]).image_id == "im000"


@pytest.mark.parametrize("how", ["cancelled", "raised"])
def test_a_cluster_that_is_lost_is_one_line(tiny, how):
    from bsdsbench.runs.cluster import _Watch

    client = SimpleNamespace(status="running", nthreads=lambda: {"w": 1})

    class Lost(Executor):
        def submit(self, *given):
            future = Future()
            if how == "cancelled":
                future.cancel()
                future.set_running_or_notify_cancel()
            else:
                future.set_exception(CancelledError("lost"))
            threading.Timer(0.3, lambda: setattr(client, "status", "connecting")).start()
            return future

    with pytest.raises(bb.DataError, match="the Dask scheduler has gone") as caught:
        list(executors._through(Lost(), Waiting(jobs_of(tiny)), 9, _Watch(client, "dask://a:1")))
    assert len(caught.value.problems) == 1
