"""The official result files: fixed columns of numbers, each written as C's `%10g`.

| file | columns |
|---|---|
| eval_bdry.txt | bestT bestR bestP bestF R_max P_max F_max Area_PR; SBD's programs append AP |
| eval_bdry_thr.txt | thresh R P F |
| eval_bdry_img.txt | index bestT bestR bestP bestF |
| eval_cover.txt, _th.txt, _img.txt | bestT ODS OIS Best; thresh R; index bestT bestR bestP |
| eval_RI_VOI.txt, _thr.txt | tRI RI RI_ois tVOI VOI VOI_ois; thresh RI VOI |
| ID_ev1.txt | thresh cntR sumR cntP sumP |

Recall comes before precision in these files, and nowhere else in the package. Other programs write
the same files with `%f`, commas or semicolons, decimal commas, more or fewer columns, descending
thresholds or missing rows; the readers accept all this.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bsdsbench.arguments import Floats, Ints
from bsdsbench.errors import FileFormatError, InputWarning, Problem, warn
from bsdsbench.io import FaultError, PathLike, file_errors, read_bytes
from bsdsbench.loaders.formats.pictures import id_of
from bsdsbench.loaders.formats.text_tables import decode_text, with_decimal_points
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
# Smallest number of columns. Some programs write eval_bdry.txt without Area_PR (7 numbers), or with
# 4 to 6 numbers of which only 4 have a known meaning, and eval_bdry_thr.txt without F
AT_LEAST = {"eval_bdry.txt": 4, "eval_bdry_thr.txt": 3}
SBD_COLUMNS = 9  # eval_bdry.txt of the SBD programs: Area_PR by the AP rule sbd, AP by 101-point
PER_IMAGE = "per_image"
EV1, EV1_COLUMNS = "_ev1.txt", 5
MAX_TEXT_BYTES = 16 << 20


def format_rows(rows: object) -> str:
    """Format rows (n, k) of numbers as text: `%10g`, separated by a space, one line per row."""
    table = np.asarray(rows, float)
    line_format = " ".join(["%10g"] * table.shape[-1]) + "\n"
    table_format = line_format * len(table)
    return table_format % tuple(table.ravel().tolist())


def _read_rows(path: PathLike, columns: int, least: int | None = None) -> Floats:
    """Read the first `columns` numbers of each row of a text file, as float64 (N, columns).

    A row must have at least `least` numbers (None: all); missing ones become NaN. Empty lines and
    lines that start with # or % are ignored, and commas count as spaces, unless they are decimal
    marks (`with_decimal_points`). Raises FileFormatError if a row is too short or holds other text,
    or if there are no rows.
    """
    data = read_bytes(path, MAX_TEXT_BYTES)
    least = least or columns
    rows = []
    with file_errors(path, "rows of numbers"):
        text = with_decimal_points(decode_text(data)).replace(",", " ").replace(";", " ")
        for number, line in enumerate(text.splitlines(), 1):
            words = line.split()
            if not words or words[0][0] in "#%":
                continue
            if len(words) < least:
                raise FaultError(f"line {number} has {len(words)} numbers, expected {least}")
            try:
                numbers = [float(word) for word in words[:columns]]
            except ValueError:
                fault = f"line {number} has {show(line)[:40]!r}, expected numbers"
                raise FaultError(fault) from None
            rows.append(numbers + [np.nan] * (columns - len(numbers)))
        if not rows:
            raise FaultError(f"has no rows, expected {columns} numbers in each")
    return np.array(rows, np.float64)


def _check_shares(name: str, rows: Floats) -> None:
    """Check that recall, precision, F, covering and PRI in a table are shares from 0 to 1.

    `rows` (N, columns) are those of the file `name`. In a curve (eval_bdry_thr.txt), an undefined
    precision where nothing is found becomes 0 in place, as the official program writes it. Raises
    FaultError for any other NaN in a curve, for a share above 1, and for a negative number. Gives
    an InputWarning if the columns of recall and precision seem to be exchanged.
    """
    # Before the scores, tables of images have an index and a threshold, others a threshold
    scores = rows[:, 2:] if name.endswith("_img.txt") else rows[:, 1:]
    # Of these tables PRI is a share, in the columns before a threshold or VOI
    n_shares = {"eval_RI_VOI.txt": 2, "eval_RI_VOI_thr.txt": 1}.get(name)
    shares = scores[:, :n_shares]
    if (shares > 1).any():
        top = f"values up to {np.nanmax(shares):g}, expected shares from 0 to 1"
        raise FaultError(top, fix="divide percentages by 100")
    if (scores < -1e-6).any():  # VOI of equal maps may be -2e-16
        raise FaultError(f"values down to {np.nanmin(scores):g}, expected none below 0")
    if name != "eval_bdry_thr.txt":
        return
    thresholds, recall, precision = rows.T[:3]  # the columns are threshold, R, P and F
    rows[(recall == 0) & np.isnan(precision), 2:] = 0  # P and F; `precision` is a view of `rows`
    if np.isnan(rows[:, :3]).any():
        raise FaultError("NaN in a threshold, recall or precision, expected numbers")
    # With a threshold from 0 to 1, recall falls and precision mostly rises
    if thresholds[-1] <= 1 and recall[-1] > recall[0] and precision[-1] < precision[0]:
        has = f"{name}: recall rises and precision falls with the threshold"
        warn(InputWarning(has, fix="the columns are thresh R P F: are R and P exchanged?"))


def _read_ev1(path: PathLike) -> MatchCounts:
    """Read the counts of one image from its file ID_ev1.txt, sorted by ascending threshold.

    A row has a threshold and four pixel counts: matched and all pixels of the ground truth, matched
    and all pixels of the prediction.
    """
    rows = _read_rows(path, EV1_COLUMNS)
    rows = rows[np.argsort(rows[:, 0], kind="stable")]  # by the threshold
    counts = rows[:, 1:]  # (T, 4)
    with file_errors(path, "an official ev1 table"):  # turns a FaultError into a FileFormatError
        # float64 holds every whole number up to 2**53
        is_count = (counts == np.rint(counts)) & (counts >= 0) & (counts <= 2**53)
        if not np.isfinite(rows).all() or not is_count.all():
            raise FaultError("invalid counts, expected a threshold and four pixel counts in a row")
        # sumR, all pixels of the ground truth, is the same at each threshold, and sumP, all pixels
        # of the prediction, changes. If it is the other way round, the columns were exchanged
        if np.ptp(counts[:, 1]) > 0 and np.ptp(counts[:, 3]) == 0:
            has = "sumR changes with the threshold and sumP does not"
            raise FaultError(f"{has}, expected the columns thresh cntR sumR cntP sumP")
        return MatchCounts(rows[:, 0], counts.astype(np.int64))


def _read_summary(path: Path) -> Floats:
    """Read eval_bdry.txt as float64 (N, 8), or (N, 9) with the AP that SBD's programs append."""
    rows = _read_rows(path, SBD_COLUMNS, AT_LEAST[path.name])  # NaN for missing numbers
    if np.isnan(rows[:, 8]).all():
        rows = rows[:, :8]
    # Without the 7th number, F_max, the meaning of the 5th and 6th differs between programs
    if np.isnan(rows[:, 6]).all():
        rows[:, 4:] = np.nan
    return rows


def read_run_folder(folder: PathLike) -> dict[str, Any]:
    """Read the official tables in a folder, whichever program wrote them.

    Returns a dict from the name of each table in COLUMNS that exists to its rows, float64 (N,
    columns), with NaN for missing numbers. Tables with a row per threshold are sorted by threshold.
    The key "ev1" maps image ids to MatchCounts, the counts of one image at each threshold. They are
    read from ID_ev1.txt in the folder, or in its subfolder per_image or nms-eval (edges toolbox).
    Raises FileFormatError if there is none of these files, or if one is damaged.
    """
    root = Path(folder)
    tables = {}
    for name, n_columns in COLUMNS.items():
        if not (root / name).is_file():
            continue
        if name == "eval_bdry.txt":
            rows = _read_summary(root / name)
        else:
            rows = _read_rows(root / name, n_columns, AT_LEAST.get(name, n_columns))
        if name.endswith(("_thr.txt", "_th.txt")):
            rows = rows[np.argsort(rows[:, 0], kind="stable")]  # by the threshold
        tables[name] = rows
        with file_errors(root / name, "an official table"):
            _check_shares(name, tables[name])
    ev1: dict[str, MatchCounts] = {}
    for place in ("", f"{PER_IMAGE}/", "nms-eval/"):
        for path in sorted(root.glob(f"{place}*{EV1}")):
            image_id, counts = id_of(path.name[: -len(EV1)]), _read_ev1(path)
            if image_id in ev1 and not ev1[image_id].equals(counts):
                has = "counts differ from those of the same image in another folder"
                raise FileFormatError(Problem(show(path), has, fix=("remove one of them",)))
            ev1[image_id] = counts
    if not tables and not ev1:
        expected = f"a run (result.json), or official files ({next(iter(COLUMNS))} or ID{EV1})"
        fix = "to score a folder of maps: bsdsbench evaluate MAPS --gt GT -o OUT"
        raise FileFormatError(Problem(show(root), "is not the folder of a run", expected, (fix,)))
    return {**tables, "ev1": ev1}


def format_boundary_tables(
    score: BoundaryScore, ids: Sequence[str], thresholds: Floats, matches: Ints, rule: str
) -> Iterator[tuple[str, str]]:
    """Yield (file name, text) of the official boundary tables of a run.

    These are eval_bdry.txt, _thr.txt and _img.txt, and per_image/ID_ev1.txt for each of N images.

    - score: the run's score, with its curve, ods, ois and ap
    - matches: (N, T, 4), the counts of the images `ids` at T `thresholds`: matched and all
      ground-truth pixels, matched and all predicted pixels
    - rule: the ODS rule, which also picks the best threshold of each image
    """
    curve: PRCurve = score["curve"]
    n_images = len(matches)
    image_rows = np.zeros((n_images, 5))  # index bestT bestR bestP bestF
    image_rows[:, 0] = np.arange(1, n_images + 1)
    for first in range(0, n_images, BLOCK):  # in blocks, to limit the memory
        block = slice(first, first + BLOCK)
        points = best(PRCurve.of_counts(thresholds, matches[block]), rule)  # of n images, (n,) each
        columns = [points["threshold"], points["recall"], points["precision"], points["f"]]
        image_rows[block, 1:] = np.column_stack(columns)
    curve_rows = np.column_stack([curve.thresholds, curve.recall, curve.precision, curve.f])
    ods, ois = score["ods"], score["ois"]
    summary = [ods["threshold"], ods["recall"], ods["precision"], ods["f"]]
    summary += [ois["recall"], ois["precision"], ois["f"], np.nan_to_num(score["ap"])]  # no NaN
    yield "eval_bdry.txt", format_rows([summary])
    yield "eval_bdry_thr.txt", format_rows(curve_rows)
    yield "eval_bdry_img.txt", format_rows(image_rows)
    starts = np.char.mod(b"%10g", thresholds)
    for first in range(0, n_images, BLOCK):
        counts = matches[first : first + BLOCK]  # (n, T, 4)
        largest = int(counts.max(initial=0))
        if largest < counts.size:  # counts recur: the text of each is made once
            texts = np.char.mod(b" %10g", np.arange(largest + 1))[counts]
        else:
            texts = np.char.mod(b" %10g", counts)
        # numpy fills short texts with zeros
        columns = [("threshold", starts.dtype), ("counts", texts.dtype, (4,)), ("end", "S1")]
        lines = np.empty(counts.shape[:2], columns)
        lines["threshold"], lines["counts"], lines["end"] = starts, texts, b"\n"
        for image_id, image_lines in zip(ids[first : first + BLOCK], lines, strict=True):
            text = image_lines.tobytes().replace(b"\0", b"").decode()
            yield f"{PER_IMAGE}/{safe_name(image_id)}{EV1}", text


def safe_name(image_id: str) -> str:
    """Escape an image id so that it can be part of a file name on every system.

    Path separators, reserved characters and control characters become %XX. A name of more than 200
    bytes becomes its first 150 bytes and a hash, so that names of different ids differ.
    """
    name = re.sub(r'[%<>:"/\\|?*\x00-\x1f\x7f]', lambda m: f"%{ord(m[0]):02X}", image_id)
    encoded = name.encode("utf-8", "backslashreplace")
    if len(encoded) <= 200:
        return encoded.decode("utf-8")
    digest = hashlib.blake2b(encoded, digest_size=8).hexdigest()
    return encoded[:150].decode("utf-8", "ignore") + "-" + digest
