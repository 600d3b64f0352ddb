"""What a first call of each metric compiles: processor seconds with an empty and with a full cache.

python scripts/bench/first_call.py [METRIC ...] [--rounds 3] [--kernels]

A process a call counts one made image in one thread; medians. `--kernels` lists the kernels that
were compiled, with the seconds of each (those that it calls are part of it).
"""

import argparse
import json
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from bsdsbench.metrics import registry

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.stored_numbers import ONE, made, made_runs

CALL = """
import json, pickle, sys
from numba.core import event

import bsdsbench as bb

metric, call = sys.argv[1:]
with open(call, "rb") as file:
    items, protocol, options = pickle.load(file)
with event.install_recorder("numba:compile") as recorder:
    bb.evaluate_items(items, protocol, metrics=metric, **options)
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


def calls():
    """Kind of made images and protocol of each metric."""
    edges = [("boundary", "edges", "bsds500"), ("crispness", "edges", "crispness-seval")]
    of_metric = {m: (kind, protocol) for m, kind, protocol in made_runs() if kind != "instances"}
    of_metric |= {m: (kind, protocol) for m, kind, protocol in edges}
    return of_metric | {"region": ("regions", "bsds500"), "instances": ("instances", "masks")}


def measured(metric, call, cache):
    """Processor seconds of a call, and the kernels that it compiled with the seconds of each.

    Sources are translated to bytecode once, as in any installed package.
    """
    paths = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))
    env = os.environ | {"NUMBA_CACHE_DIR": cache, "PYTHONPATH": paths}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    words, pipe = [sys.executable, "-W", "ignore", "-c", CALL, metric, call], subprocess.PIPE
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
        kind, protocol = calls()[metric]
        first, second = [], []
        with tempfile.TemporaryDirectory() as folder:
            call = Path(folder, "call")
            call.write_bytes(pickle.dumps((list(made(kind))[:1], protocol, ONE)))
            for k in range(given.rounds):
                cache = str(Path(folder, str(k)))
                seconds, kernels = measured(metric, str(call), cache)
                first.append(seconds)
                second.append(measured(metric, str(call), cache)[0])
        medians = [f"{statistics.median(column):.1f}" for column in (first, second)]
        print("|", " | ".join([metric, *medians, str(len(kernels))]), "|", flush=True)
        if given.kernels:
            for name, seconds in sorted(kernels, key=lambda item: -item[1]):
                print(f"  {seconds:6.2f} {name}")


if __name__ == "__main__":
    main()
