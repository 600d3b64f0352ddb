"""Hostile input for everything that reads: `python scripts/fuzz KIND --count N --seed S`.

hostile    damaged files, and files that claim much, N of them: each is read, or refused in short
           printable lines that name it, without a traceback, a warning, a word on stdout, a
           number that is not the sound file's, over ten seconds of processor time or over BOUND of
           memory. Input K is made from (S, K) alone: --first K --count 1 makes it again.
large      the same of files that decode to as much as loaders allow, or more, each once

--only WORDS: targets whose names hold this. Exit status 1 if anything failed. What commands leave
that are killed is in tests/runs/test_interrupted.py.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from targets import Target, large, table

SECONDS = 10.0  # of processor time for an input
HANG = 600.0  # of any time, on a machine that others use too
BOUND = 1536 << 20  # growth of a process over its start, as docs/evidence/robustness.md states


def peak() -> int:
    """The most memory this process ever held, bytes, as Linux tells it."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def attempts(targets: list[Target], seed: int, first: int, pipe: Connection) -> None:
    """In a fork: tell what came of each input."""
    start = peak()
    with tempfile.TemporaryFile() as screen, open(os.devnull, "wb") as nowhere:
        os.dup2(screen.fileno(), 1), os.dup2(nowhere.fileno(), 2)  # libtiff writes to the second
        for number, target in enumerate(targets, first):
            data = target.make(random.Random(f"{seed}/{number}"))
            began = time.process_time()
            verdict = target.attempt(data)
            if (seconds := time.process_time() - began) > SECONDS:
                verdict = f"took {seconds:.1f} s"
            if peak() - start > BOUND:
                verdict = f"grew by {(peak() - start) >> 20} MiB"
            if screen.seek(0, os.SEEK_END):
                verdict = "wrote to the screen"
                screen.truncate(0)
            pipe.send(verdict)


def hostile(targets: Mapping[str, Target], first: int, count: int, seed: int) -> list[str]:
    """Try `count` inputs; a process that dies or hangs is replaced. The failures."""
    verdicts: dict[str, Counter[str]] = {name: Counter() for name in targets}
    names = [sorted(targets)[number % len(targets)] for number in range(first, first + count)]
    failures, done = [], 0
    while done < count:
        ours, theirs = multiprocessing.Pipe(duplex=False)
        given = [targets[n] for n in names[done:]], seed, first + done, theirs
        child = multiprocessing.get_context("fork").Process(target=attempts, args=given)
        child.start()
        theirs.close()
        while done < count:
            verdict = ""
            with suppress(EOFError):
                verdict = ours.recv() if ours.poll(HANG) else ""
            if not verdict:  # it has ended, or hangs
                child.kill()
                child.join()
                verdict = f"exit status {child.exitcode}"
            fine = verdict in ("loaded", "refused")
            verdicts[names[done]][verdict if fine else "failed"] += 1
            if not fine:
                failures.append(f"input {first + done} ({names[done]}): {verdict}")
            done += 1
            if child.exitcode is not None:
                break
        child.join()
    for name, found in sorted(verdicts.items()):
        print(f"{name:24}", dict(found))
    return failures


def main() -> int:
    form: Any = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("scripts/fuzz", description=__doc__, formatter_class=form)
    parser.add_argument("kind", choices=["hostile", "large"])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fuzz_") as folder:
        if args.kind == "hostile":
            found = table(Path(folder), args.only)
            failures = hostile(found, args.first, args.count, args.seed)
        else:
            each = large(Path(folder), args.only).items()
            failures = [line for name, one in each for line in hostile({name: one}, 0, 1, 0)]
    print(*failures[:30], f"{len(failures)} failures", sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
