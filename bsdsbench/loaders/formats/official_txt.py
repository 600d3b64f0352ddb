"""The official result files: fixed columns of numbers, each written as C's `%10g`.

| file | columns |
|---|---|
| eval_bdry.txt | bestT bestR bestP bestF R_max P_max F_max Area_PR; of SBD then AP |
| eval_bdry_thr.txt | thresh R P F |
| eval_bdry_img.txt | index bestT bestR bestP bestF |
| eval_cover.txt, _th.txt, _img.txt | bestT ODS OIS Best; thresh R; index bestT bestR bestP |
| eval_RI_VOI.txt, _thr.txt | tRI RI RI_ois tVOI VOI VOI_ois; thresh RI VOI |
| ID_ev1.txt | thresh cntR sumR cntP sumP |

Recall comes before precision here, and only here. The readers also accept what other programs
write: `%f`, commas, more or fewer columns, descending thresholds, dropped rows.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bsdsbench.arguments import F8, I8
from bsdsbench.errors import FileFormatError
from bsdsbench.io import FaultError, PathLike, read_bytes, reading
from bsdsbench.loaders.formats.pictures import id_of
from bsdsbench.scores.counts import MatchCounts
from bsdsbench.scores.curve import BoundaryScore, PRCurve, best
from bsdsbench.scores.ratios import BLOCK
from bsdsbench.text import show

COLUMNS = {
    "eval_bdry.txt": 8,
    "eval_bdry_thr.txt": 4,
    "eval_bdry_img.txt": 5,
    "eval_cover.txt": 4,
    "eval_cover_th.txt": 2,
    "eval_cover_img.txt": 4,
    "eval_RI_VOI.txt": 6,
    "eval_RI_VOI_thr.txt": 3,
}
# Some programs write no AP (7 numbers) or only four known numbers (4 to 6), and no F (3 numbers)
AT_LEAST = {"eval_bdry.txt": 4, "eval_bdry_thr.txt": 3}
SBD_COLUMNS = 9  # eval_bdry.txt of the SBD programs: Area by the rule sbd, then AP by 101-point
PER_IMAGE = "per_image"
EV1, EV1_COLUMNS = "_ev1.txt", 5
MAX_TEXT_BYTES = 16 << 20


def format_rows(rows: object) -> str:
    """Format rows of numbers as official text: `%10g` each, separated by one space."""
    table = np.asarray(rows, float)
    line = " ".join(["%10g"] * table.shape[-1]) + "\n"
    return line * len(table) % tuple(table.ravel().tolist())


def _read_rows(path: PathLike, columns: int, least: int | None = None) -> F8:
    """Read the first `columns` numbers of every row of a text file, float64 (N, columns).

    A row may have as few as `least` numbers; the others are NaN. Empty lines and lines that start
    with # or % are ignored. Commas count as spaces. Raises FileFormatError.
    """
    data = read_bytes(path, MAX_TEXT_BYTES)
    least = least or columns
    rows = []
    with reading(path, "rows of numbers"):
        text = data.decode("utf-8-sig").replace(",", " ")
        for number, line in enumerate(text.splitlines(), 1):
            words = line.split()
            if not words or words[0][0] in "#%":
                continue
            if len(words) < least:
                raise FaultError(f"line {number} has {len(words)} numbers, expected {least}")
            try:
                numbers = [float(word) for word in words[:columns]]
            except ValueError:
                line_text = show(line)[:40]
                raise FaultError(f"line {number} has {line_text!r}, expected numbers") from None
            rows.append(numbers + [np.nan] * (columns - len(numbers)))
        if not rows:
            raise FaultError(f"has no rows, expected {columns} numbers in each")
    return np.array(rows, np.float64)


def _ascending(rows: F8) -> F8:
    """Sort rows by their first column."""
    return rows[np.argsort(rows[:, 0], kind="stable")]


def _read_ev1(path: PathLike) -> MatchCounts:
    """Return the counts of an ID_ev1.txt, by ascending threshold. Raises FileFormatError."""
    rows = _ascending(_read_rows(path, EV1_COLUMNS))
    counts = rows[:, 1:]
    with reading(path, "an official ev1 table"):
        is_count = (counts == np.rint(counts)) & (counts >= 0) & (counts <= 2**53)
        if not np.isfinite(rows).all() or not is_count.all():
            raise FaultError("counts that are no numbers of pixels, expected thresh and four")
        return MatchCounts(rows[:, 0], counts.astype(np.int64))


def read_run_folder(folder: PathLike) -> dict[str, Any]:
    """Read the official tables in a folder, whichever program wrote them.

    Returns file name -> float64 (N, columns) for every eval_*.txt, with tables over thresholds in
    ascending order. "ev1" maps image ids to the MatchCounts of the files ID_ev1.txt in the folder
    or in its per_image/ or nms-eval/ (edges toolbox). Raises FileFormatError if there is no such
    file.
    """
    root = Path(folder)
    tables = {}
    for name, columns in COLUMNS.items():
        if (root / name).is_file():
            may_be_sbd = name == "eval_bdry.txt"
            n_columns = SBD_COLUMNS if may_be_sbd else columns
            rows = _read_rows(root / name, n_columns, AT_LEAST.get(name))
            if may_be_sbd and np.isnan(rows[:, columns:]).all():
                rows = rows[:, :columns]
            if may_be_sbd and np.isnan(rows[:, 6]).all():
                rows[:, 4:] = np.nan  # a fifth and a sixth number differ between programs
            tables[name] = _ascending(rows) if name.endswith(("_thr.txt", "_th.txt")) else rows
    ev1 = {}
    for place in ("", f"{PER_IMAGE}/", "nms-eval/"):
        for path in sorted(root.glob(f"{place}*{EV1}")):
            ev1[id_of(path.name[: -len(EV1)])] = _read_ev1(path)
    if not tables and not ev1:
        expected = f"{next(iter(COLUMNS))} or ID{EV1}"
        raise FileFormatError(f"{show(root)}: no official result file, expected {expected}")
    return {**tables, "ev1": ev1}


def boundary_files(
    score: BoundaryScore, ids: Sequence[str], thresholds: F8, matches: I8, rule: str
) -> Iterator[tuple[str, str]]:
    """Yield the name and text of the boundary tables, and of every image's ID_ev1.txt.

    `matches` int64 (N, T, 4) are the counts of the images `ids`. `rule` is the rule of their ODS.
    """
    curve: PRCurve = score["curve"]
    images = np.zeros((len(matches), 5))
    images[:, 0] = np.arange(1, len(matches) + 1)
    for k in range(0, len(matches), BLOCK):
        points = best(PRCurve.of_counts(thresholds, matches[k : k + BLOCK]), rule)
        images[k : k + BLOCK, 1:] = np.transpose(list(points.values()))
    _, *ois = score["ois"].values()
    table = np.column_stack([curve.thresholds, curve.recall, curve.precision, curve.f])
    best_points = [*score["ods"].values(), *ois, np.nan_to_num(score["ap"])]
    yield "eval_bdry.txt", format_rows([best_points])
    yield "eval_bdry_thr.txt", format_rows(table)
    yield "eval_bdry_img.txt", format_rows(images)
    for k in range(0, len(matches), BLOCK):
        block = matches[k : k + BLOCK]
        top = int(block.max(initial=0)) + 1
        if top < block.size:  # format each number once
            texts = np.array([b" %10g" % number for number in range(top)])[block]
        else:
            texts = np.char.mod(b" %10g", block)
        # A text has 11 or 12 letters; numpy pads with zero bytes
        row_type = [("t", "S10"), ("counts", texts.dtype, texts.shape[2:]), ("end", "S1")]
        rows = np.empty(block.shape[:2], row_type)
        rows["counts"], rows["end"] = texts, b"\n"
        rows["t"] = [f"{t:10g}" for t in thresholds]
        for image_id, image_row in zip(ids[k : k + BLOCK], rows, strict=True):
            text = image_row.tobytes().replace(b"\0", b"").decode()
            yield f"{PER_IMAGE}/{safe_name(image_id)}{EV1}", text


def safe_name(image_id: str) -> str:
    """Escape an id so that it can be part of a file name on every system.

    Separators and the like become %XX, and long names are cut. Different ids give different names.
    """
    name = re.sub(r'[%<>:"/\\|?*\x00-\x1f\x7f]', lambda m: f"%{ord(m[0]):02X}", image_id)
    encoded = name.encode("utf-8", "backslashreplace")
    if len(encoded) <= 200:
        return encoded.decode("utf-8")
    digest = hashlib.blake2b(encoded, digest_size=8).hexdigest()
    return encoded[:150].decode("utf-8", "ignore") + "-" + digest
