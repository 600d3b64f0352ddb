"""Kill a writer at random moments over a finished run of another protocol, and read what is left.

    python scripts/kill_overwrites.py --kills 200 --seed 0

A child process saves two results of one set, under two protocols, over each other without end and
is killed. Every reader (load, compare, report, check, merge, plot, explain) must then give exactly
what it gives of the one result, of the other, or one line; never a mixture. Exit status 1 if not.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

import bsdsbench as bb
from bsdsbench.comparison.compare import compare
from bsdsbench.comparison.gate import Baseline, check
from bsdsbench.files.errors import DataError
from bsdsbench.runs.loading import load_run
from bsdsbench.scores.counts import BoundaryCounts, ImageRecord

IMAGES = 40


def made(max_dist: float, shift: int) -> bb.Evaluation:
    """Some made images; the two protocols differ in the tolerance, the counts in `shift`."""
    proto = bb.Protocol.preset("bsds500").replace(thresholds=9, max_dist=max_dist)
    rng = np.random.default_rng(shift)
    records = []
    for k in range(IMAGES):
        total = rng.integers(50, 90, 9)
        part = total * (9 - np.arange(9)) // 10
        counts = BoundaryCounts(proto.threshold_array(), part, total, part, part + shift)
        records.append(ImageRecord(f"im{k:03d}", (30, 40), {"boundary": counts}, f"{k:032x}"))
    where = {"images": "0", "shard": "1/1"}
    return bb.Evaluation(proto, "made", records, where)


RESULTS = (made(0.0075, 3), made(0.02, 20))


def child(out: Path) -> None:
    """Save the two results in turns until killed."""
    print("ready", flush=True)
    while True:
        for run in reversed(RESULTS):
            run.save(out)


def readers(base: Path) -> dict[str, Callable[[Path], object]]:
    """What reads a run's folder; each gives a text by which two results differ."""
    other = RESULTS[0]

    def report(out: Path) -> object:
        from bsdsbench.runs.loading import load_runs

        (run,) = load_runs([out])
        return run.scores(), run.protocol.describe(), run.to_json()

    def plot(out: Path) -> object:
        curve = load_run(out).boundary_score().curve
        return curve.precision.tolist(), curve.recall.tolist()

    return {
        "load": lambda out: bb.Evaluation.load(out).to_json(),
        "compare": lambda out: str(
            compare([load_run(out), other], ["one", "other"], n_boot=10, force=True)
        ),
        "report": report,
        "check": lambda out: [str(check(load_run(out), base / f"{k}.json")) for k in _same(out)],
        "merge": lambda out: bb.merge([bb.Evaluation.load(out)]).to_json(),
        "plot": plot,
    }


def _same(out: Path) -> list[int]:
    """Which of the baselines have the protocol of the run."""
    found = bb.Evaluation.load(out).protocol
    return [k for k, run in enumerate(RESULTS) if run.protocol == found]


def run(kills: int, seed: int) -> list[str]:
    """Kill and read `kills` times; prints what was found and returns the failures."""
    failures: list[str] = []
    seen: Counter[str] = Counter()
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="kill_") as folder:
        base, out = Path(folder), Path(folder) / "out"
        expected: dict[str, set[str]] = {}
        for k, result in enumerate(RESULTS):
            Baseline.of(result).save(base / f"{k}.json")
            result.save(out)
            for name, read in readers(base).items():
                expected.setdefault(name, set()).add(_mark(read(out)))
        assert all(len(marks) == 2 for name, marks in expected.items()), "the results do not differ"
        for number in range(kills):
            shutil.rmtree(out)
            RESULTS[0].save(out)
            _kill(out, rng)
            verdicts = {n: _verdict(r, out, expected[n]) for n, r in readers(base).items()}
            seen.update(set(verdicts.values()))
            for name, verdict in verdicts.items():
                if verdict == "mixture":
                    failures.append(f"kill {number}: {name} reads what is neither result")
            if len(set(verdicts.values())) > 1:
                failures.append(f"kill {number}: readers disagree: {verdicts}")
    print(f"{kills} kills:", dict(seen))
    return failures


def _mark(text: object) -> str:
    return hashlib.blake2b(repr(text).encode(), digest_size=16).hexdigest()


def _verdict(read: Callable[[Path], object], out: Path, expected: set[str]) -> str:
    try:
        return "whole" if _mark(read(out)) in expected else "mixture"
    except DataError as error:
        return "one line" if "\n" not in str(error) else "mixture"


def _kill(out: Path, rng: random.Random) -> None:
    """Start a writer and kill it some time after its first write."""
    command = [sys.executable, __file__, "--child", str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(rng.uniform(0, 0.4))
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args.child)
    failures = run(args.kills, args.seed)
    print(*failures[:20], f"{len(failures)} failures", sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
