"""What three tolerances cost beside one: pairs of runs in turn, their medians and the ratio.

python scripts/bench/tolerances.py MAPS GT [IMAGES]

MAPS and GT are folders as `evaluate` reads them; IMAGES of them are counted, by default 20. The run
at one tolerance has the largest of the three, which costs most. The bar is 2.2.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

import bsdsbench as bb
from bsdsbench.loaders.pairing import ground_truths

ROUNDS = 7
KINDS = {
    "fractions": {"max_dist": (0.0075, 0.00375, 0.001875)},
    "pixels": {"max_dist_px": (4, 2, 1)},
}


def seconds(maps, gt, split, protocol):
    """The time of one run in this process, on one worker."""
    begin = time.perf_counter()
    bb.evaluate(maps, gt, protocol, split_file=split, workers=1, missing="skip")
    return time.perf_counter() - begin


def main(maps, gt, images=20):
    preset = bb.Protocol.preset("bsds500")
    with tempfile.TemporaryDirectory() as folder:
        split = Path(folder, "ids.txt")
        ids = sorted(pair.image_id for pair in ground_truths(gt))[: int(images)]
        split.write_text("\n".join(ids))
        for name, several in KINDS.items():
            three = preset.replace(**several)
            one = preset.replace(**{field: values[0] for field, values in several.items()})
            times = {1: [], 3: []}
            for _ in range(ROUNDS + 1):  # the first compiles and fills caches
                times[1].append(seconds(maps, gt, split, one))
                times[3].append(seconds(maps, gt, split, three))
            medians = [f"{statistics.median(times[k][1:]):.2f} s" for k in (1, 3)]
            pairs = zip(times[3][1:], times[1][1:], strict=True)
            ratio = statistics.median(b / a for b, a in pairs)
            print(f"{name}: one {medians[0]}, three {medians[1]}, ratio {ratio:.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
