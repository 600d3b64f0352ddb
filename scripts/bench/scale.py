"""Time and memory of evaluate, compare and report by the number of images: a Markdown row each.

python scripts/bench/scale.py [100 1000 10000]

Made images of 48x64 pixels, one annotator, two methods. Seconds of wall time and the peak of one
process, two workers, default options.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

import imageio.v3 as iio
import numpy as np
from scipy.ndimage import gaussian_filter


def write(folder, count):
    """Ground truth and two methods' maps."""
    rng = np.random.default_rng(0)
    for kind in ("gt", "one", "two"):
        (folder / kind).mkdir()
    for k in range(count):
        field = gaussian_filter(rng.random((48, 64)), 4)
        inside = field > np.median(field)
        edge = inside != np.roll(inside, 1, 1)
        iio.imwrite(folder / f"gt/{k}.png", np.uint8(255 * edge))
        for kind, blur in (("one", 0.7), ("two", 1.2)):
            soft = gaussian_filter(edge.astype(float), blur) + 0.1 * rng.random(edge.shape)
            iio.imwrite(folder / f"{kind}/{k}.png", np.uint8(255 * np.clip(soft, 0, 1)))


def measured(*words):
    """Wall time in seconds, and the peak in MB, of a call."""
    begin = time.perf_counter()
    call = [sys.executable, "-m", "bsdsbench", *map(str, words)]
    pid = os.posix_spawn(
        sys.executable,
        call,
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ],
    )
    _, status, usage = os.wait4(pid, 0)
    if status:
        raise SystemExit(f"{' '.join(call)}: status {status}")
    return f"{time.perf_counter() - begin:.1f} s, {usage.ru_maxrss / 1024:.0f} MB"


def main(counts):
    print("| images | evaluate | compare | report |", "|---|---|---|---|", sep="\n")
    for count in counts:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write(folder, count)
            rows = []
            for kind in ("one", "two"):
                words = ("evaluate", folder / kind, "--gt", folder / "gt", "--workers", "2")
                rows.append(measured(*words, "-o", folder / f"out/{kind}"))
            runs = (folder / "out/one", folder / "out/two")
            rows[1] = measured("compare", *runs)
            rows.append(measured("report", *runs, "-o", folder / "page.html"))
            print(f"| {count:,} | {' | '.join(rows)} |", flush=True)


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [100, 1000, 10_000, 20_000])
