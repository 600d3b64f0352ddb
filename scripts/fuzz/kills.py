"""Kill commands at random moments and look at every file they leave.

    python scripts/fuzz kills --count 300 --seed 0

A scenario is a folder as it was before and a command: a first run, a resumed one, a run with
another protocol over a finished one, `run` anew, again, with another detector and with a baseline,
a merge into a new and into an old folder, a report, and savings over each other.
The command is started and its process, a worker or both get TERM, KILL or INT. Then

- each reader gives exactly the result of before, that of the command, or one line;
- files of the user's in the folders are as they were;
- the command, given again, leaves every file as an undisturbed one does: results, official tables,
  per_image, maps, manifests, reports, and no file more.

Times and what was taken over are no results. Exit status 1 if anything else was found.
"""

import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import imageio.v3 as iio
import numpy as np

import bsdsbench as bb
from bsdsbench.cli.evaluating import write_plots
from bsdsbench.files.errors import DataError
from bsdsbench.integrations.baselines import baseline
from bsdsbench.report.html import write_report
from bsdsbench.runs.record_store import FOLDER, LOG
from bsdsbench.runs.run_folder import load_run
from bsdsbench.scores.counts import BoundaryCounts, ImageRecord

IMAGES = 8
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
OTHER = ("timing.json", ".lock", ".origin")  # no results
MINE = ("notes.txt", "per_image/mine.txt", "maps/mine.txt")
FIVE = bb.Protocol.preset("bsds500").replace(thresholds=5)
WIDE = FIVE.replace(max_dist=0.03)
Work = Callable[[Path, int], object]


@dataclass(frozen=True)
class Scenario:
    """What is there before, the command, and where its results go."""

    before: Work
    command: Work
    out: str = "out"


def bright(image: np.ndarray) -> np.ndarray:
    """A detector."""
    return image.mean(axis=2) / 255


def dark(image: np.ndarray) -> np.ndarray:
    """Another one."""
    return 1 - image.mean(axis=2) / 255


def make_data(root: Path) -> None:
    """Pictures, maps and ground truth under `root`."""
    rng = np.random.default_rng(0)
    for name in ("images", "gt", "pred"):
        (root / name).mkdir()
    for k in range(IMAGES):
        picture = rng.integers(0, 256, (40, 50, 3), dtype=np.uint8)
        iio.imwrite(root / "images" / f"im{k}.png", picture)
        iio.imwrite(root / "pred" / f"im{k}.png", picture[..., 0])
        iio.imwrite(root / "gt" / f"im{k}.png", (rng.random((40, 50)) < 0.1).astype(np.uint8) * 255)


def evaluated(data: Path, protocol: bb.Protocol, root: Path, workers: int, **more: object) -> None:
    """`evaluate -o OUT`, plots and all."""
    out = root / str(more.pop("out", "out"))
    options = {"workers": workers, "out": out, **more}
    run = bb.evaluate(data / "pred", data / "gt", protocol, name="made", **options)
    write_plots(run, str(out))


def some_records(data: Path, root: Path, workers: int) -> None:
    """The records of a run that was killed: half of them."""
    evaluated(data, FIVE, root, 1, out="whole")
    (root / "out").mkdir()
    (root / "whole" / FOLDER).rename(root / "out" / FOLDER)
    shutil.rmtree(root / "whole")
    log = root / "out" / FOLDER / LOG
    os.truncate(log, log.stat().st_size // 2)


def detected(data: Path, detector: object, root: Path, workers: int) -> None:
    """`run -o OUT`."""
    options = {"gt": data / "gt", "protocol": FIVE, "workers": workers, "name": "made"}
    bb.run(detector, data / "images", out=root / "out", **options)


def shards(data: Path, root: Path, workers: int) -> None:
    for k in (1, 2):
        evaluated(data, FIVE, root, 1, shard=(k, 2), out=f"part{k}")


def merged(root: Path, workers: int) -> None:
    """`merge -o OUT`."""
    run = bb.merge([bb.Evaluation.load(root / f"part{k}") for k in (1, 2)])
    run.save(root / "out")
    write_plots(run, str(root / "out"))


def reported(root: Path, workers: int) -> None:
    """`report OUT -o OUT/report.html`."""
    write_report([load_run(root / "out")], root / "out" / "report.html", pictures=False, n_boot=20)


def both(*works: Work) -> Work:
    def work(root: Path, workers: int) -> None:
        for each in works:
            each(root, workers)

    return work


def nothing(root: Path, workers: int) -> None:
    pass


def made(protocol: bb.Protocol, shift: int, root: Path, workers: int) -> None:
    """A result of many images saved over what is there: nearly all of it is writing."""
    rng = np.random.default_rng(shift)
    records = []
    for k in range(60):
        total = rng.integers(50, 90, 5)
        part = total * (5 - np.arange(5)) // 10
        counts = BoundaryCounts(protocol.threshold_array(), part, total, part, part + shift)
        records.append(ImageRecord(f"im{k:03d}", (30, 40), {"boundary": counts}, f"{k:032x}"))
    bb.Evaluation(protocol, "made", records).save(root / "out")


def scenarios(data: Path) -> dict[str, Scenario]:
    one, other = partial(evaluated, data, FIVE), partial(evaluated, data, WIDE)
    a, b = partial(detected, data, bright), partial(detected, data, dark)
    canny = partial(detected, data, baseline("canny"))
    parts = partial(shards, data)
    small, large = partial(made, FIVE, 3), partial(made, WIDE, 20)
    return {
        "first": Scenario(nothing, one),
        "resume": Scenario(partial(some_records, data), one),
        "protocol": Scenario(one, other),
        "run": Scenario(nothing, a),
        "run again": Scenario(a, a),
        "run another": Scenario(a, b),
        "baseline": Scenario(b, canny),
        "merge": Scenario(parts, merged),
        "merge over": Scenario(both(parts, other), merged),
        "report": Scenario(one, reported),
        "report again": Scenario(both(one, reported), reported),
        "save": Scenario(small, large),
    }


# ---- what is in a folder, and what readers make of it


def content(root: Path) -> dict[str, str]:
    """Every file below a folder, hashed, without times and without what was taken over."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_file() and path.name not in OTHER:
            data = path.read_bytes().replace(str(root).encode(), b"")
            found[name] = hashlib.blake2b(_timeless(path, data)).hexdigest()
    return found


def _timeless(path: Path, data: bytes) -> bytes:
    if path.parent.name == FOLDER:  # times are inside
        return b""
    if path.name not in ("result.json", "manifest.json"):
        return data
    told = json.loads(data)
    told.get("provenance", {}).pop("detector", None)
    told.pop("signature", None)
    told.pop("places", None)  # relative, and the folders lie at different depths
    for image in told.get("about", {}).get("images", {}).values():
        image.pop("ms")
    told.get("files", {}).pop("result.json", None)  # its times
    return json.dumps(told).encode()


def readings(out: Path, data: Path) -> dict[str, str]:
    """What each reader makes of a folder: a text by which two results differ, or "one line"."""
    readers: dict[str, Callable[[], object]] = {
        "load": lambda: _scores(bb.Evaluation.load(out)),
        "per_image": lambda: _scores(bb.Evaluation.from_official(out / "per_image")),
        "official": lambda: _scores(bb.Evaluation.from_official(out)),
        "maps": lambda: _scores(bb.evaluate(out / "maps", data / "gt", FIVE, workers=1)),
    }
    found = {}
    for name, read in readers.items():
        try:
            found[name] = hashlib.blake2b(repr(read()).encode(), digest_size=12).hexdigest()
        except DataError as error:
            found[name] = "one line" if "\n" not in str(error) else f"lines: {error}"
    return found


def _scores(run: bb.Evaluation) -> object:
    return run.scores(), [r.counts["boundary"].total_pred.tolist() for r in run.records]


# ---- the killing


def run(first: int, count: int, seed: int, only: str = "") -> list[str]:
    """Kill `count` times; prints what was found and returns the failures."""
    failures: list[str] = []
    seen: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="kills_") as folder:
        data = Path(folder) / "data"
        data.mkdir()
        make_data(data)
        found = {k: s for k, s in scenarios(data).items() if only in k}
        turns = [list(found)[number % len(found)] for number in range(first, first + count)]
        for name in {*turns}:  # what is imported and compiled here is not in every child
            warm = Path(folder) / "warm" / name
            warm.mkdir(parents=True)
            both(found[name].before, found[name].command)(warm, 1)
        truths = {k: _truth(found[k], Path(folder) / k.replace(" ", "_"), data) for k in {*turns}}
        for number, name in enumerate(turns, first):
            rng = random.Random(f"{seed}/{number}")
            verdict, faults = _one(found[name], truths[name], Path(folder) / "now", data, rng)
            seen[verdict] += 1
            if not seen.total() % 25:
                print(f"{seen.total()} kills, {len(failures)} failures so far", flush=True)
            failures += [f"kill {number} ({name}, {verdict}): {fault}" for fault in faults]
    print(f"{count} kills:", dict(sorted(seen.items())))
    return failures


@dataclass(frozen=True)
class Truth:
    """A scenario without a kill: a copy of what is before, what is after, and how long it took."""

    folder: Path
    before: dict[str, str]
    after: dict[str, str]
    files: dict[str, str]
    seconds: float


def _truth(scenario: Scenario, folder: Path, data: Path) -> Truth:
    start, root = folder / "before", folder / "after"
    start.mkdir(parents=True)
    _child(partial(scenario.before, start, 1))
    for name in MINE:
        path = start / scenario.out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    shutil.copytree(start, root, symlinks=True)
    before, began = readings(start / scenario.out, data), time.monotonic()
    _child(partial(scenario.command, root, 1))
    seconds = time.monotonic() - began
    return Truth(start, before, readings(root / scenario.out, data), content(root), seconds)


def _one(
    scenario: Scenario, truth: Truth, now: Path, data: Path, rng: random.Random
) -> tuple[str, list[str]]:
    """One kill: how it went, and what is wrong."""
    shutil.rmtree(now, ignore_errors=True)
    shutil.copytree(truth.folder, now, symlinks=True)
    out, whom = now / scenario.out, rng.choice(("parent", "parent", "parent", "worker", "both"))
    workers = 1 if whom == "parent" and rng.random() < 0.9 else 2
    word = rng.choice(SIGNALS)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS[1:])  # until the child is ready
    pid = os.fork()
    if pid == 0:
        _work(partial(scenario.command, now, workers), blocked)
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    start_up = 1.5 if workers == 2 else 0.0  # of the pool
    time.sleep(rng.uniform(0, truth.seconds + start_up))
    _kill(pid, whom, word)
    status = _wait(pid)
    faults = _faults(readings(out, data), truth)
    faults += [f"{n} of the user's is gone" for n in MINE if not _mine(out / n)]
    _child(partial(scenario.command, now, 1))
    left = content(now)
    for name in sorted(left.keys() | truth.files.keys()):
        if left.get(name) != truth.files.get(name):
            state = "is not there" if name not in left else "differs"
            state = state if name in truth.files else "is left over"
            faults.append(f"after the command given again {name} {state}")
    ended = "ended" if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0 else "stopped"
    return f"{ended}, {signal.Signals(word).name} {whom}", faults


def _faults(found: dict[str, str], truth: Truth) -> list[str]:
    return [
        f"{name} reads what is neither result ({what})"
        for name, what in found.items()
        if what not in (truth.before[name], truth.after[name], "one line")
    ]


def _mine(path: Path) -> bool:
    return path.is_file() and path.read_text() == "mine"


def _work(work: Callable[[], object], unblocked: set[signal.Signals]) -> None:
    """In a child: do it and end, quietly, whatever comes."""
    status = 1
    try:
        os.setsid()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
        work()
        status = 0
    finally:
        os._exit(status)


def _child(work: Callable[[], object]) -> None:
    """Do it in a process of its own, so that nothing stays in this one."""
    pid = os.fork()
    if pid == 0:
        os.setsid()
        try:
            work()
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    assert status == 0, f"an undisturbed command failed ({status})"


def _kill(pid: int, whom: str, word: signal.Signals) -> None:
    """Send a signal to a process, to one of its workers, or to both."""
    below = _descendants(pid)
    targets = {"parent": [pid], "worker": below[-1:], "both": [*below[-1:], pid]}[whom]
    for each in targets:
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, word)


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            found += [int(child), *_descendants(int(child))]
    return found


def _wait(pid: int) -> int:
    """How a process ended; a command that goes on after the signal is waited for."""
    return os.waitpid(pid, 0)[1]
