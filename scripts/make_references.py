"""Remake the published curves and the reference runs that ship with the package.

Usage: python scripts/make_references.py REFERENCE

REFERENCE holds curves.json and curves_pidinet.json (precision-recall curves as their authors or
collectors published them), and counts on the 200 test images of BSDS500: seism-NAME.npz (12
methods, from SEISM's stored results) and sauge-NAME.npz (variants of SAUGE; without "-definite" in
the name of the reference run). curves_read.json beside this script has curves that were read in
their authors' repositories. What is written: bsdsbench/comparison/curves.json, by the key of the
published result, and bsdsbench/results/references.npz.
"""

import json
import re
import sys
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.comparison.published import published_results
from bsdsbench.scores.curve import PRCurve, best

PACKAGE = Path(__file__).resolve().parents[1] / "bsdsbench"
READ = Path(__file__).with_name("curves_read.json")
PARTS = ("matched_gt", "unmatched_pred", "total_pred")  # arrays of references.npz
PRINTED = 1.01e-6  # the summary lines have six digits


def key_of(curve: dict[str, Any]) -> str:
    """The key of the published result that was read in the same folder."""
    file = curve["source"].split(" ")[-1].removesuffix("_bdry_thr.txt")
    for row in published_results().values():
        if "/" in file and re.search(rf"{re.escape(file)}_bdry\.txt", row.source):
            return row.key
    (key,) = [r.key for r in published_results().values() if r.name == curve["name"]]
    return key


def entry(curve: dict[str, Any]) -> dict[str, Any]:
    """A curve with its ODS point and the rule by which that is its summary line's."""
    columns = dict(zip(curve["columns"], np.array(curve["rows"]).T, strict=True))
    summary = dict(zip(curve["summary_columns"], curve["summary"], strict=True))
    grid = columns.get("threshold", np.arange(len(curve["rows"]), dtype=float))
    drawn = PRCurve(grid, columns["precision"], columns["recall"])
    rules = [
        rule
        for rule in ("maximum", "interpolated")
        if abs(float(best(drawn, rule).f) - summary["ods_f"]) < PRINTED
    ]
    found = {k: columns[k].tolist() for k in ("threshold", "recall", "precision") if k in columns}
    point = [summary[f"ods_{k}"] for k in ("recall", "precision", "f")]
    return {"source": curve["source"], "ods": point, "ods_rule": rules[0], **found}


def packed(stored: Mapping[str, Mapping[str, NDArray[Any]]]) -> bytes:
    """The bytes of references.npz of method -> ids, parameter and the four counts (N, T)."""
    first = next(iter(stored.values()))
    out: dict[str, NDArray[Any]] = {"ids": first["ids"], "total_gt": first["total_gt"][:, 0]}
    for key, counts in stored.items():
        assert (counts["ids"] == out["ids"]).all()
        assert (counts["total_gt"] == out["total_gt"][:, None]).all()
        out[f"{key}.parameter"] = counts.get("parameter", counts.get("threshold")).astype(str)
        found, missed = counts["total_pred"], counts["total_pred"] - counts["matched_pred"]
        for part, values in zip(PARTS, (counts["matched_gt"], missed, found), strict=True):
            steps = np.diff(values.T.astype(np.int64), axis=0, prepend=0)
            folded = np.where(steps < 0, -2 * steps - 1, 2 * steps)
            out[f"{key}.{part}"] = np.stack([folded >> k & 255 for k in (0, 8, 16)]).astype(
                np.uint8
            )
    buffer = BytesIO()
    np.savez_compressed(buffer, **out)
    return buffer.getvalue()


def reference_key(path: Path) -> str:
    """The name after `ref:` of a file of counts."""
    return path.stem.removeprefix("seism-").removesuffix("-definite").lower()


def main(reference: Path) -> None:
    files = reference / "curves.json", reference / "curves_pidinet.json", READ
    curves = [curve for file in files for curve in json.loads(file.read_text("utf-8"))]
    lines = [f'"{key_of(c)}": {json.dumps(entry(c), separators=(",", ":"))}' for c in curves]
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    (PACKAGE / "comparison" / "curves.json").write_text(text, "utf-8")
    paths = [*sorted(reference.glob("seism-*.npz")), *sorted(reference.glob("sauge-*.npz"))]
    stored = {reference_key(path): dict(np.load(path)) for path in paths}
    (PACKAGE / "results" / "references.npz").write_bytes(packed(stored))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
