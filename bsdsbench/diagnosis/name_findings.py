"""Findings of the doctor about names: files without a partner, renamed ones, several of an id."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bsdsbench.diagnosis.findings import Finding, counted
from bsdsbench.files.errors import PairingError
from bsdsbench.loaders.formats import GROUND_TRUTH_SUFFIXES, PREDICTION_SUFFIXES
from bsdsbench.loaders.pairing import LAYOUTS, find_files, group, one_set, possible_ids, read_split

Files = dict[str, list[Path]]


def listing(
    pred_dir: Path, gt_dir: Path, split_file: str | Path | None, pred_kind: str
) -> tuple[Files, Files]:
    """image id -> its files, of predictions and of ground truth, in order of the id."""
    pred_files = find_files(pred_dir, PREDICTION_SUFFIXES)
    gt_files = find_files(gt_dir, GROUND_TRUTH_SUFFIXES)
    for folder, files in ((pred_dir, pred_files), (gt_dir, gt_files)):
        if not files:
            raise PairingError(f"{folder}: no files that can be read, expected some")
    wanted = set(read_split(split_file)) if split_file else None
    layouts = LAYOUTS if pred_kind == "labels" else LAYOUTS[:1]
    preds = group(pred_files, pred_dir, wanted or possible_ids(gt_files), layouts)
    gts = group(gt_files, gt_dir, wanted or set(preds), LAYOUTS)
    if wanted:
        preds, gts = ({i: side[i] for i in side if i in wanted} for side in (preds, gts))
    return dict(sorted(preds.items())), dict(sorted(gts.items()))


def unmatched(preds: Files, gts: Files) -> list[Finding]:
    """Images without a prediction, and predictions without an image."""
    missing = [i for i in gts if i not in preds]
    extra = [i for i in preds if i not in gts]
    if not missing and not extra:
        return []
    common = len(gts) - len(missing)
    if missing and extra and common < len(gts) / 2:
        count = counted(len(extra), "prediction")
        if longer := _renamed(missing, extra):
            message = f"names of {count} differ from the ids by {longer!r}"
            return [Finding("names", "error", message, tuple(extra), "rename the files to ID.png")]
        message = (
            f"only {common} of {len(gts)} images have a prediction, and {count} no ground truth: "
            "two different splits?"
        )
        return [Finding("split", "error", message, tuple(extra), "give --gt of the same split")]
    found = []
    if missing:
        message = f"{len(missing)} of {len(gts)} images have no prediction"
        fix = "predict them, or --split-file with the ids, or --missing zero|skip"
        found.append(Finding("missing", "error", message, tuple(missing), fix))
    if extra:
        message = f"{counted(len(extra), 'prediction')} without ground truth"
        fix = "check the split, or --split-file with the ids that count"
        found.append(Finding("extra", "error", message, tuple(extra), fix))
    return found


def _renamed(missing: Sequence[str], extra: Sequence[str]) -> str:
    """What was put before or after every id, or "" if it is not that."""
    first = [(e, i) for i in missing[:1] for e in extra if i in e]
    for name, image_id in first:
        before, _, after = name.partition(image_id)
        if all(f"{before}{i}{after}" in set(extra) for i in missing):
            return f"{before}*{after}"
    return ""


def doubled(preds: Files, gts: Files, pred_kind: str) -> list[Finding]:
    """Images with several files where there should be one, in names that may differ in case."""
    found = []
    labels = pred_kind == "labels"
    for what, side, several in (("prediction", preds, labels), ("ground truth", gts, True)):
        same: dict[str, list[Path]] = {}
        for image_id, paths in side.items():
            same.setdefault(image_id.casefold(), []).extend(paths)
        files = tuple(
            str(p)
            for paths in same.values()
            if len(paths) > 1 and not (several and one_set(paths))
            for p in paths
        )
        if files:
            message = f"more than one {what} file for an image"
            fix = "leave one file for each image"
            found.append(Finding("doubled", "error", message, files, fix))
    return found
