"""What a first call of each metric compiles: processor seconds with an empty and with a full cache.

python scripts/bench/first_call.py [METRIC ...] [--rounds 3] [--kernels]

A process a call counts one made image in one thread; medians. `--kernels` lists the kernels that
were compiled, with the seconds of each (those that it calls are part of it).
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from bsdsbench.metrics import registry

CALL = """
import json, sys
from numba.core import event
from scripts.stored_numbers import ONE, made, made_runs

import bsdsbench as bb

name = sys.argv[1]
edges = [("boundary", "edges", "bsds500"), ("crispness", "edges", "crispness-seval")]
calls = {m: (kind, protocol) for m, kind, protocol in made_runs() if kind != "instances"}
calls |= {m: (kind, protocol) for m, kind, protocol in edges}
calls |= {"region": ("regions", "bsds500"), "instances": ("instances", "masks")}
kind, protocol = calls[name]
with event.install_recorder("numba:compile") as recorder:
    bb.evaluate_items(list(made(kind))[:1], protocol, metrics=name, **ONE)
begun, seconds = [], []
for when, e in recorder.buffer:
    if e.is_start:
        begun.append(when)
    else:
        seconds.append((e.data["dispatcher"].__name__, when - begun.pop()))
print(json.dumps(seconds))
"""
ROOT = Path(__file__).resolve().parents[2]
METRICS = list(registry.BUILT_IN)


def measured(metric, cache):
    """Processor seconds of a call, and the kernels that it compiled with the seconds of each."""
    paths = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))
    env = os.environ | {"NUMBA_CACHE_DIR": cache, "PYTHONPATH": paths}
    words, pipe = [sys.executable, "-W", "ignore", "-c", CALL, metric], subprocess.PIPE
    child = subprocess.Popen(words, cwd="/", env=env, stdout=pipe, text=True)
    line = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"{metric}: status {status}")
    return usage.ru_utime + usage.ru_stime, json.loads(line)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("metrics", nargs="*", default=METRICS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kernels", action="store_true")
    given = parser.parse_args()
    print("| metric | first call, s | second, s | kernels |", "|---|---|---|---|", sep="\n")
    for metric in given.metrics:
        first, second = [], []
        for _ in range(given.rounds):
            with tempfile.TemporaryDirectory() as cache:
                seconds, kernels = measured(metric, cache)
                first.append(seconds)
                second.append(measured(metric, cache)[0])
        medians = [f"{statistics.median(column):.1f}" for column in (first, second)]
        print("|", " | ".join([metric, *medians, str(len(kernels))]), "|", flush=True)
        if given.kernels:
            for name, seconds in sorted(kernels, key=lambda item: -item[1]):
                print(f"  {seconds:6.2f} {name}")


if __name__ == "__main__":
    main()
