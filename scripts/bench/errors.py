"""What the classes of errors cost beside plain counts: pairs of runs in turn, and the ratio.

    python scripts/bench/errors.py MAPS GT [--annotators 6] [--images 100] [--rounds 5]

MAPS and GT are folders as `evaluate` reads them. With `--annotators` the ground truth is that of
the images that so many people drew at least, of which as many are kept; these images are repeated
under other names until there are `--images`. Processor seconds on one worker. The bar is 1.6.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy.io import savemat

import bsdsbench as bb
from bsdsbench.loaders.pairing import ground_truths


def write_subset(maps: Path, gt: Path, folder: Path, n_annotators: int, n_images: int) -> None:
    """Write maps/ and gt/ of images with that many annotators."""
    truths = {}
    for pair in ground_truths(gt):
        truth = bb.load_ground_truth(pair.gt_paths[0])
        if len(truth.boundaries) >= n_annotators:
            truths[pair.image_id] = truth.boundaries[:n_annotators]
    for side in ("maps", "gt"):
        (folder / side).mkdir()
    named = itertools.islice(itertools.cycle(truths.items()), n_images)
    for k, (image_id, boundaries) in enumerate(named):
        (soft,) = maps.glob(f"{image_id}.*")
        shutil.copy(soft, folder / "maps" / f"{k:04}{soft.suffix}")
        cells = np.empty((1, n_annotators), object)
        cells[0] = [{"Boundaries": boundary} for boundary in boundaries]
        savemat(folder / "gt" / f"{k:04}.mat", {"groundTruth": cells}, do_compression=True)


def seconds(maps: Path, gt: Path, errors: bool) -> float:
    """Return the processor time of one run."""
    begin = time.process_time()
    bb.evaluate(maps, gt, errors=errors, workers=1, missing="skip")
    return time.process_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("maps", type=Path)
    parser.add_argument("gt", type=Path)
    for name, default in (("annotators", 0), ("images", 100), ("rounds", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    maps, gt = given.maps, given.gt
    with tempfile.TemporaryDirectory() as name:
        if given.annotators:
            folder = Path(name)
            write_subset(maps, gt, folder, given.annotators, given.images)
            maps, gt = folder / "maps", folder / "gt"
        times: dict[bool, list[float]] = {False: [], True: []}
        for _ in range(given.rounds + 1):  # the first compiles and fills caches
            for errors, of_kind in times.items():
                of_kind.append(seconds(maps, gt, errors))
    plain, with_errors = (of_kind[1:] for of_kind in times.values())
    ratio = statistics.median(b / a for a, b in zip(plain, with_errors, strict=True))
    medians = [f"{statistics.median(of_kind):.2f} s" for of_kind in (plain, with_errors)]
    print(f"evaluate {medians[0]}, with errors {medians[1]}: {ratio:.2f}")


if __name__ == "__main__":
    main()
