"""Hostile files and folders of every kind from a seed, each in a process that is watched.

    python scripts/fuzz hostile --count 50000 --seed 0

Each input must be read, or refused in short printable lines, without a traceback, a warning, a
number that is not the sound one's, a write outside its folder, a word on the screen, more than
ten seconds of processor time or more memory than docs/evidence/robustness.md states. Input N is
made from (seed, N) alone: --first N --count 1 is input N again. Exit status 1 if anything failed.
"""

import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

SECONDS_PER_INPUT = 10.0  # of processor time
SECONDS_TO_HANG = 120.0  # of any time, on a machine that others use too
MEMORY_BOUND = 1536 << 20  # growth of one process over its start, whatever the input claims


def all_attempts(folder: Path) -> dict[str, object]:
    """Every kind of input by name."""
    import claims
    import files
    import results

    found: dict[str, object] = {}
    for module in (files, claims, results):
        below = folder / module.__name__
        below.mkdir()
        found |= module.attempts(below)
    return found


def child(first: int, last: int, seed: int, folder: Path) -> None:
    """Try inputs first..last-1; one JSON line before and after each, on the real stdout."""
    report = os.fdopen(os.dup(1), "w", buffering=1)
    leak = os.open(folder / "screen.txt", os.O_CREAT | os.O_RDWR | os.O_TRUNC)
    os.dup2(leak, 1)
    os.dup2(leak, 2)
    found = all_attempts(folder)  # also warms up every import
    names = sorted(found)
    os.ftruncate(leak, 0)
    start = _peak()
    for number in range(first, last):
        name, rng = names[number % len(names)], random.Random(f"{seed}/{number}")
        report.write(json.dumps({"begin": number, "name": name}) + "\n")
        began = time.process_time()
        verdict, why = found[name](rng)  # type: ignore[operator]
        seconds = time.process_time() - began
        if os.fstat(leak).st_size:
            verdict, why = "failed", f"wrote to the screen: {os.pread(leak, 300, 0)!r}"
            os.ftruncate(leak, 0)
        if verdict != "failed" and seconds > SECONDS_PER_INPUT:
            verdict, why = "failed", f"took {seconds:.1f} s"
        if verdict != "failed" and _peak() - start > MEMORY_BOUND:
            verdict, why = "failed", f"grew by {(_peak() - start) >> 20} MiB"
        line = {"end": number, "verdict": verdict, "why": why, "seconds": seconds}
        report.write(json.dumps({**line, "grown": _peak() - start}) + "\n")


def _peak() -> int:
    """The most memory this process ever held, bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


class Tally:
    """What happened to the inputs of each kind."""

    def __init__(self) -> None:
        self.verdicts: dict[str, Counter[str]] = {}
        self.slowest: dict[str, float] = {}
        self.failures: list[tuple[int, str, str]] = []
        self.grown = 0

    def add(self, name: str, number: int, verdict: str, why: str, seconds: float) -> None:
        self.verdicts.setdefault(name, Counter())[verdict] += 1
        self.slowest[name] = max(self.slowest.get(name, 0.0), seconds)
        if verdict == "failed":
            self.failures.append((number, name, why))
            print(f"input {number} ({name}): {why}", flush=True)
        if not (number + 1) % 1000:
            print(f"{number + 1} inputs, {len(self.failures)} failures so far", flush=True)

    def table(self) -> str:
        """One row per kind and the sum."""
        rows = [f"{'kind':24} inputs  slowest  verdicts"]
        total: Counter[str] = Counter()
        for name, count in sorted(self.verdicts.items()):
            rows.append(self._row(name, count, self.slowest[name]))
            total += count
        rows.append(self._row("all", total, max(self.slowest.values(), default=0.0)))
        rows.append(f"memory: grew by at most {self.grown / 2**20:.0f} MiB")
        return "\n".join(rows)

    @staticmethod
    def _row(name: str, count: Counter[str], slowest: float) -> str:
        said = ", ".join(f"{n} {verdict}" for verdict, n in sorted(count.items()))
        return f"{name:24} {sum(count.values()):6}  {slowest:5.1f} s  {said}"


def run(first: int, count: int, seed: int) -> list[str]:
    """Try `count` inputs in child processes; one that dies or hangs is replaced. The failures."""
    tally = Tally()
    at, last = first, first + count
    while at < last:
        at = one_child(at, last, seed, tally)
    print(tally.table())
    return [f"input {number} ({name}): {why}" for number, name, why in tally.failures]


def one_child(first: int, last: int, seed: int, tally: Tally) -> int:
    """Run a child from `first`; the number of the next input to do."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz_"))
    command = [sys.executable, str(Path(__file__).parent), "hostile", "--child", str(folder)]
    command += ["--first", str(first), "--count", str(last - first), "--seed", str(seed)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    watch = Watchdog(process)
    current: tuple[int, str] | None = None
    done = first
    try:
        for line in process.stdout or ():
            watch.alive()
            event = json.loads(line)
            if "begin" in event:
                current = (event["begin"], event["name"])
            else:
                number, name = current or (event["end"], "?")
                tally.grown = max(tally.grown, event["grown"])
                tally.add(name, number, event["verdict"], event["why"], event["seconds"])
                current, done = None, number + 1
        process.wait()
    finally:
        watch.stop()
        process.kill()
        process.communicate()
        shutil.rmtree(folder, ignore_errors=True)
    if current is not None:
        why = "hang" if watch.killed else f"crash, exit status {process.returncode}"
        tally.add(current[1], current[0], "failed", why, SECONDS_TO_HANG * watch.killed)
        return current[0] + 1
    if process.returncode or done == first:
        tally.failures.append((done, "child", f"exit status {process.returncode}"))
        return last
    return done


class Watchdog:
    """Kills a process that has not reported for SECONDS_TO_HANG (thrice that at the start)."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process, self.killed = process, False
        self.deadline = time.monotonic() + 3 * SECONDS_TO_HANG
        self._stopped = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()

    def alive(self) -> None:
        self.deadline = time.monotonic() + SECONDS_TO_HANG

    def stop(self) -> None:
        self._stopped.set()
        self.thread.join()

    def _watch(self) -> None:
        while not self._stopped.wait(0.5):
            if time.monotonic() > self.deadline:
                self.killed = True
                self.process.kill()
                return
