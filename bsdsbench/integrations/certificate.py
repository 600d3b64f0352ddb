"""Compare this installation with the official self-test: five images and the MATLAB tables."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bsdsbench.files.errors import DataError
from bsdsbench.integrations.compat.bench_matlab import allBench, boundaryBench
from bsdsbench.loaders.official_txt import COLUMNS, read_rows
from bsdsbench.runs.evaluation import Progress

# The official matching is random; one image varies more than the sum. Region tables, made from sums
# of six digits as the original's, may differ in the last of their own six.
TOLERANCES = {
    **dict.fromkeys(("eval_bdry.txt", "eval_bdry_thr.txt"), 0.001),
    "eval_bdry_img.txt": 0.0015,
    **dict.fromkeys(("eval_cover.txt", "eval_cover_th.txt", "eval_cover_img.txt"), 1e-5),
    **dict.fromkeys(("eval_RI_VOI.txt", "eval_RI_VOI_thr.txt"), 1e-5),
}
RELATIVE = ("eval_cover", "eval_RI_VOI")
RESULTS = {"test_1": "ucm2", "test_2": "png", "test_3": "segs", "test_4": "segs", "test_5": "segs"}


@dataclass(frozen=True, slots=True)
class CertificateRow:
    """One official table compared with ours.

    Parameters
    ----------
    test, table : str
        Name of the test and of its table.
    numbers : int
        How many numbers the table has.
    largest : float
        The largest difference; relative for region tables.
    allowed : float
        The difference that is allowed.
    """

    test: str
    table: str
    numbers: int
    largest: float
    allowed: float

    @property
    def passed(self) -> bool:
        """Whether the largest difference is allowed."""
        return self.largest <= self.allowed


def certificate(folder: str | Path, progress: Progress | None = None) -> tuple[CertificateRow, ...]:
    """Run the official self-test and compare every table.

    Parameters
    ----------
    folder : path
        bench/data of the BSDS500 archive: images, groundTruth, png, segs, ucm2, test_1 .. test_5.
    progress : callable or None
        Called with (kinds of prediction done, all of them, the kind).

    Returns
    -------
    tuple of CertificateRow
        One row per table, in the order of the tests.

    Raises
    ------
    DataError
        If folders are missing, or files are broken.

    Examples
    --------
    >>> from bsdsbench.integrations.certificate import certificate
    >>> all(row.passed for row in certificate("BSR/bench/data"))    # doctest: +SKIP
    True
    """
    root = Path(folder)
    needed = ("images", "groundTruth", *dict.fromkeys(RESULTS.values()), *RESULTS)
    lost = [name for name in needed if not (root / name).is_dir()]
    if lost:
        raise DataError(
            f"{root}: no {', '.join(lost)}, expected the folder bench/data of the BSDS500 archive"
        )
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        kinds = list(dict.fromkeys(RESULTS.values()))
        for done, kind in enumerate(kinds, 1):
            folders = (root / "images", root / "groundTruth", root / kind, Path(scratch) / kind)
            if kind == "png":
                boundaryBench(*folders, 5)
            else:
                allBench(*folders, 5, strict=True)
            if progress:
                progress(done, len(kinds), kind)
        for test, kind in RESULTS.items():
            for table in TOLERANCES:
                if (root / test / table).is_file():
                    rows.append(_row(test, table, root / test, Path(scratch) / kind))
    return tuple(rows)


def _row(test: str, table: str, official: Path, ours: Path) -> CertificateRow:
    wanted = read_rows(official / table, COLUMNS[table])
    found = read_rows(ours / table, COLUMNS[table])
    if wanted.shape != found.shape:
        return CertificateRow(test, table, wanted.size, np.inf, TOLERANCES[table])
    off = np.abs(found - wanted)
    if table.startswith(RELATIVE):
        off = np.divide(off, np.abs(wanted), out=off, where=wanted != 0)
    return CertificateRow(test, table, wanted.size, float(off.max()), TOLERANCES[table])
