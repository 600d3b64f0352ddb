"""Warm calls of each metric on six made images of about 480x640: processor time, medians.

python scripts/bench/warm.py [METRIC ...] [--times 8] [--rounds 15] [--against OTHER/bin/python]

One thread, from arrays to scores. Another checkout, whose environment is named, is called in turn,
each in a process of its own, and the ratio of the medians is printed.
"""

import argparse
import statistics
import subprocess
import sys

SERVED = """
import sys, time
from pathlib import Path

import bsdsbench as bb

sys.path.insert(0, str(Path(bb.__file__).parents[1]))
from scripts.stored_numbers import ONE, made, made_runs

times = int(sys.argv[1])
cases = {}
for metric, kind, protocol in made_runs():
    cases[f"{metric} {kind}"] = (kind, protocol, {"metrics": metric, **ONE})
print(",".join(cases), flush=True)
for line in sys.stdin:
    kind, protocol, options = cases[line.strip()]
    items = list(made(kind, times))
    bb.evaluate_items(items, protocol, **options)  # compiles
    print(flush=True)
    while sys.stdin.readline().strip():
        begin = time.process_time()
        bb.evaluate_items(items, protocol, **options)
        print(time.process_time() - begin, flush=True)
    print(flush=True)
"""


def asked(child, line):
    """The answer of a process that runs SERVED."""
    child.stdin.write(line + "\n")
    child.stdin.flush()
    return child.stdout.readline()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("metrics", nargs="*")
    parser.add_argument("--times", type=int, default=8, help="8: images of about 480x640")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--against")
    given = parser.parse_args()
    pythons = [sys.executable, given.against] if given.against else [sys.executable]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    words = ["-W", "ignore", "-c", SERVED, str(given.times)]
    children = [subprocess.Popen([python, *words], cwd="/", **pipes) for python in pythons]
    cases = [child.stdout.readline().strip().split(",") for child in children]
    heads = ["metric, images", *["ms"] * len(pythons), *["ratio"] * (len(pythons) > 1)]
    print(f"| {' | '.join(heads)} |", "|---" * len(heads) + "|", sep="\n")
    for case in cases[0]:
        if (given.metrics and case.split()[0] not in given.metrics) or case not in cases[-1]:
            continue
        for child in children:
            asked(child, case)
        rounds = [[float(asked(c, "again")) for c in children] for _ in range(given.rounds)]
        for child in children:
            asked(child, "")
        medians = [statistics.median(column) for column in zip(*rounds, strict=True)]
        cells = [f"{1000 * median:.1f}" for median in medians]
        if given.against:
            cells.append(f"{medians[0] / medians[1]:.2f}")
        print(f"| {' | '.join([case, *cells])} |", flush=True)
    for child in children:
        child.stdin.close()
        child.wait()


if __name__ == "__main__":
    main()
