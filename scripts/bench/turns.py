"""Whole commands of two installations in turn: wall time, medians of five, and their ratio.

python scripts/bench/turns.py OTHER/bin/python [WORD] [--rounds 5]

The other one is an environment with another state of this package. BSDSBENCH_BSDS500 names the data
(val: 100 images, taken twice under other names for 200). Results of both must have equal counts.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import imageio.v3 as iio
import numpy as np

import bsdsbench as bb

ROOT = Path(os.environ["BSDSBENCH_BSDS500"])


def data(folder):
    """gt, ucm2 and png of 200 images; five of them in few/; one in one/."""
    for path in sorted((ROOT / "groundTruth/val").glob("*.mat")):
        soft = bb.load_prediction(ROOT / "ucm2/val" / path.name).boundary_map()
        top = np.iinfo(soft.dtype).max if soft.dtype.kind == "u" else 1
        for name in (path.stem, f"{path.stem}b"):
            places = {"gt": path, "ucm2": ROOT / "ucm2/val" / path.name}
            for kind, source in places.items():
                for part in ("all", "few", "one"):
                    there = folder / part / kind
                    there.mkdir(parents=True, exist_ok=True)
                    if part == "all" or len(list(there.iterdir())) < {"few": 5, "one": 1}[part]:
                        (there / f"{name}.mat").symlink_to(source)
            (folder / "all/png").mkdir(exist_ok=True)
            iio.imwrite(folder / f"all/png/{name}.png", np.uint8(np.rint(255.0 * soft / top)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("other")
    parser.add_argument("word", nargs="?", default="")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    pythons = {"this": sys.executable, "other": given.other}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data(folder)

        def evaluate(part, kind, *more):
            pred, gt = folder / part / kind, folder / part / "gt"
            return ["-m", "bsdsbench", "evaluate", pred, "--gt", gt, "--quiet", *more]

        two = ("--workers", "2")
        rows = {
            "--help": ["-m", "bsdsbench", "--help"],
            "import bsdsbench": ["-c", "import bsdsbench"],
            "one image": evaluate("one", "ucm2"),
            "five images, nothing compiled": evaluate("few", "ucm2"),
            "200 images, ucm2, 1 worker": evaluate("all", "ucm2", "--workers", "1"),
            "200 images, ucm2, 2 workers": evaluate("all", "ucm2", *two),
            "200 images, png, 2 workers": evaluate("all", "png", *two),
        }
        print("| command | this, s | other, s | ratio |", "|---|---|---|---|", sep="\n")
        for what, words in rows.items():
            if given.word not in what:
                continue
            times = {who: [] for who in pythons}
            for k in range(given.rounds + 1):
                for who, python in pythons.items():
                    out = folder / who
                    shutil.rmtree(out, ignore_errors=True)
                    env = dict(os.environ)
                    if "nothing" in what:
                        shutil.rmtree(folder / "cache", ignore_errors=True)
                        env["NUMBA_CACHE_DIR"] = str(folder / "cache")
                    call = [python, *map(str, words), *(["-o", str(out)] * ("evaluate" in words))]
                    begin = time.perf_counter()
                    done = subprocess.run(call, env=env, capture_output=True, text=True, cwd=name)
                    if done.returncode:
                        raise SystemExit(f"{what}: {done.stderr}")
                    times[who] += [time.perf_counter() - begin] * (k > 0)  # the first compiles
            if "evaluate" in words:
                tables = [(folder / who / "eval_bdry_thr.txt").read_bytes() for who in pythons]
                if tables[0] != tables[1]:
                    raise SystemExit(f"{what}: the tables differ")
            mine, other = (statistics.median(times[who]) for who in pythons)
            print(f"| {what} | {mine:.2f} | {other:.2f} | {mine / other:.2f} |", flush=True)


if __name__ == "__main__":
    main()
