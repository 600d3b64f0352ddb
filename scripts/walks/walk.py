"""What the walks share: commands that are shown and judged, and maps of the sample."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import imageio.v3 as iio
import numpy as np
from numpy.typing import NDArray

from bsdsbench.loaders.sample import sample_ground_truth, sample_images, sample_results

BIN = Path(sys.executable).parent
METHOD = "structure-tensor"
FEW = ("fruit1", "herd1", "herd2", "lake1")
SECONDS = 900


class Walk:
    """A user in an empty folder. `failures` has a line for each expectation that was not met."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.failures: list[str] = []

    def check(self, what: str, good: bool) -> None:
        """Note an expectation that is not met."""
        if not good:
            self.failures.append(f"NOT MET: {what}")
            print(f"NOT MET: {what}")

    def shell(self, line: str, *said: str, status: int | tuple[int, ...] = 0) -> str:
        """Run a line as it would be typed; what it prints must match every pattern of `said`."""
        print(f"\n$ {line}", flush=True)
        path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=self.root,
            env={**os.environ, "PATH": path, "COLUMNS": "150"},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        print(done.stdout + done.stderr, end="", flush=True)
        wanted = (status,) if isinstance(status, int) else status
        self.check(
            f"{line}: status {done.returncode}, expected {status}", done.returncode in wanted
        )
        text = done.stdout + done.stderr
        self.check(f"{line}: a traceback", "Traceback (most recent call" not in text)
        for pattern in said:
            found = re.search(pattern, " ".join(text.split()))
            self.check(f"{line}: expected {pattern!r} to be said", bool(found))
        return done.stdout

    def bsdsbench(self, line: str, *said: str, status: int | tuple[int, ...] = 0) -> str:
        """The same of `bsdsbench LINE`."""
        return self.shell(f"bsdsbench {line}", *said, status=status)

    def sample(self, maps: str, truth: str, images: str = "", ids: Iterable[str] = FEW) -> None:
        """Copies of the sample's maps, ground truth and pictures of a few images."""
        folders = ((sample_results(METHOD), maps), (sample_ground_truth(), truth))
        for source, name in (*folders, *([(sample_images(), images)] if images else [])):
            target = self.root / name
            target.mkdir(parents=True, exist_ok=True)
            for path in source.iterdir():
                if path.stem in ids:
                    shutil.copy(path, target)

    def changed(self, name: str, change: Callable[[NDArray[Any]], NDArray[Any]]) -> str:
        """A copy of the folder `maps` with changed maps, under another name."""
        target = self.root / name
        target.mkdir()
        for path in (self.root / "maps").iterdir():
            made = change(iio.imread(path))
            if made.dtype in (np.uint8, np.uint16):
                iio.imwrite(target / path.name, made)
            else:
                np.save(target / f"{path.stem}.npy", made)
        return name
