"""Hostile input for everything that reads: `python scripts/fuzz KIND --count N --seed S`.

hostile    damaged files, and files that claim much, N of them: each is read, or refused in short
           printable lines that name it, without a traceback, a warning, a word on stdout, a
           number that is not the sound file's, over ten seconds of processor time or over BOUND of
           memory. Input K is made from (S, K) alone: --first K --count 1 makes it again.
large      files that decode to as much as loaders allow, or more: memory stays below BOUND
guided     by coverage, N seconds of each target, with atheris (`pip install atheris`); inputs that
           fail are left in fuzz_found

--only WORDS: targets whose names hold this. Exit status 1 if anything failed. What commands leave
that are killed is in tests/runs/test_interrupted.py.
"""

from __future__ import annotations

import argparse
import faulthandler
import importlib
import json
import multiprocessing
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from targets import Target

SECONDS = 10.0  # of processor time for an input
HANG = 120.0  # of any time, on a machine that others use too
BOUND = 1536 << 20  # growth of a process over its start, as docs/evidence/robustness.md states
KEEP = Path("fuzz_found")
OUTPUTS = "screen", "told"


def peak() -> int:
    """The most memory this process ever held, bytes."""
    found = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return found if sys.platform == "darwin" else found * 1024


def in_a_fork(function: Callable[..., None], *given: object) -> int:
    """Run in a process of its own; its exit status."""
    process = multiprocessing.get_context("fork").Process(target=function, args=given)
    process.start()
    process.join()
    return process.exitcode or 0


# ---- hostile


def try_inputs(table: Mapping[str, Target], first: int, last: int, seed: int, folder: Path) -> None:
    """In a fork: a line in `report` before each input and one after it."""
    screen, told = (os.open(folder / n, os.O_CREAT | os.O_RDWR | os.O_APPEND) for n in OUTPUTS)
    os.dup2(screen, 1), os.dup2(told, 2)  # libtiff writes to the second
    names, start = sorted(table), peak()
    with (folder / "report").open("w", buffering=1) as report:
        for number in range(first, last):
            name = names[number % len(names)]
            print(json.dumps([number, name]), file=report)
            faulthandler.dump_traceback_later(HANG, exit=True, file=told)
            began = time.process_time()
            verdict, why = table[name].attempt(random.Random(f"{seed}/{number}"))
            seconds = time.process_time() - began
            faulthandler.cancel_dump_traceback_later()
            if said := os.pread(screen, 300, 0):
                verdict, why = "failed", f"wrote to the screen: {said!r}"
                os.ftruncate(screen, 0)
            elif seconds > SECONDS:
                verdict, why = "failed", f"took {seconds:.1f} s"
            elif peak() - start > BOUND:
                verdict, why = "failed", f"grew by {(peak() - start) >> 20} MiB"
            print(json.dumps([number, name, verdict, why]), file=report)


def hostile(table: Mapping[str, Target], first: int, count: int, seed: int) -> list[str]:
    """Try `count` inputs; a process that dies or hangs is replaced. The failures."""
    verdicts: dict[str, Counter[str]] = {name: Counter() for name in table}
    failures, at = [], first
    while at < first + count:
        with tempfile.TemporaryDirectory(prefix="fuzz_") as name:
            folder = Path(name)
            status = in_a_fork(try_inputs, table, at, first + count, seed, folder)
            lines = [json.loads(line) for line in (folder / "report").read_text().splitlines()]
            if status:
                told = (folder / OUTPUTS[1]).read_text("utf-8", "replace")[:2000]
                lines.append([*lines[-1][:2], "failed", f"exit status {status} {told}"])
        for number, name, verdict, why in (line for line in lines if len(line) == 4):
            verdicts[name][verdict] += 1
            if verdict == "failed":
                failures.append(f"input {number} ({name}): {why}")
        at = lines[-1][0] + 1
    for name, found in sorted(verdicts.items()):
        print(f"{name:24}", ", ".join(f"{n} {verdict}" for verdict, n in sorted(found.items())))
    return failures


# ---- large


def load_large(path: Path, how: str, report: Path) -> None:
    """In a fork: what came of a file, and the bytes it took."""
    import warnings

    from bsdsbench.files.errors import DataError
    from bsdsbench.loaders import load_ground_truth, load_prediction

    warnings.simplefilter("error")
    start = peak()
    try:
        _ = load_ground_truth(path) if how == "truth" else load_prediction(path, kind=how)
        found = "loaded"
    except DataError as error:
        found = str(error).partition(": ")[2]
    report.write_text(json.dumps([peak() - start, found]))


def large(only: str) -> list[str]:
    """Write each file in one fork and load it in another. The failures."""
    from large import CASES, write

    failures = []
    with tempfile.TemporaryDirectory(prefix="fuzz_large_") as folder:
        for name, (how, *what) in CASES.items():
            if only not in name:
                continue
            path, report = Path(folder) / name, Path(folder) / "report"
            status = in_a_fork(write, path, *what) or in_a_fork(load_large, path, how, report)
            if status:
                failures.append(f"{name}: exit status {status}")
                continue
            grown, found = json.loads(report.read_text())
            size = path.stat().st_size
            path.unlink()
            print(f"{name:18} {how:7} {size >> 20:6} MiB took {grown >> 20:5} MiB  {found}")
            if grown > BOUND:
                failures.append(f"{name}: took {grown} bytes, expected at most {BOUND}")
    return failures


# ---- guided


def guide(name: str, seconds: int) -> None:
    """In a process that libFuzzer ends."""
    import atheris

    import bsdsbench.kernels as kernels

    for path in Path(kernels.__path__[0]).glob("*.py"):  # which numba cannot compile when followed
        importlib.import_module(f"bsdsbench.kernels.{path.stem}")
    with atheris.instrument_imports(include=["bsdsbench"]):
        from targets import table

        folder = Path(tempfile.mkdtemp(prefix="fuzz_guided_"))
        target = table(folder, name)[name]
    corpus = folder / "corpus"
    corpus.mkdir()
    for number in range(20):
        (corpus / f"seed{number}").write_bytes(target.make(random.Random(number)))

    def one(data: bytes) -> None:
        verdict, why = target.verdict(data)
        if verdict == "failed":
            raise AssertionError(why)

    options = [f"-max_total_time={seconds}", f"-rss_limit_mb={(BOUND >> 20) + 400}"]
    options += ["-max_len=65536", f"-timeout={SECONDS * 2:.0f}", f"-artifact_prefix={KEEP}/"]
    atheris.Setup([sys.argv[0], *options, str(corpus)], one)
    atheris.Fuzz()


def guided(names: list[str], seconds: int) -> list[str]:
    """Fuzz each target in a process of its own. The failures."""
    KEEP.mkdir(exist_ok=True)
    failures = []
    for name in names:
        words = [sys.executable, str(Path(__file__).parent), "guide", "--only", name]
        words += ["--count", str(seconds)]
        found = subprocess.run(words, capture_output=True, text=True)
        lines = found.stderr.splitlines()
        print(f"{name:24}", next((line for line in lines if line.startswith("Done ")), "failed"))
        if found.returncode:
            failures.append("\n".join([name, *lines[-25:]]))
    return failures


def main() -> int:
    form: Any = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("scripts/fuzz", description=__doc__, formatter_class=form)
    parser.add_argument("kind", choices=["hostile", "large", "guided", "guide"])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    if args.kind == "guide":
        guide(args.only, args.count)
    if args.kind == "large":
        failures = large(args.only)
    else:
        from targets import table

        with tempfile.TemporaryDirectory(prefix="fuzz_") as folder:
            found = table(Path(folder), args.only)
            if args.kind == "guided":
                failures = guided(sorted(found), args.count)
            else:
                failures = hostile(found, args.first, args.count, args.seed)
    print(*failures[:30], f"{len(failures)} failures", sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
