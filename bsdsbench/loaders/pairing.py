"""Pairing of predictions with ground truth by image id.

The image id is the file's name without its suffix, in any folder below the given one. Several files
of ground truth are annotators of one image in these layouts only:

| layout | what says so |
|---|---|
| ID_1.png, ID_2.png: numbers without leading zeros | the ids of the predictions or of a split |
| ID/NAME.png | the same; of frames (numbers from 0, or with zeros before them), only a split |
| ANNOTATOR/ID.seg (BSDS300) | the format |

So a side's files have an id in each layout, the layout in which most files have a known id is the
side's, and an id whose files are not of one layout is doubled. Beside folders ID/NAME there may be
files ID_1. Predicted label maps may use the first two.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from glob import glob
from itertools import chain
from pathlib import Path
from typing import Any

from bsdsbench.files.bounded import PathLike, listed, read_bytes, reading, show
from bsdsbench.files.errors import PairingError
from bsdsbench.loaders.formats import FORMATS, id_of

Files = dict[str, list[Path]]
Split = PathLike | Collection[str] | None
SEVERAL = (
    "several files for: {}; expected one, or annotators as ID_1, ID_2 .., ID/NAME or "
    "ANNOTATOR/ID.seg (alone: with a split file)"
)
FRAME = re.compile(r"(?<!\d)0\d*$")


@dataclass(frozen=True)
class Pair:
    """One image: its id, its prediction's files (none where missing counts as zero), its truth's.

    Several prediction files are label maps, several ground-truth files are annotators, in natural
    order of their names.
    """

    image_id: str
    pred_paths: tuple[Path, ...]
    gt_paths: tuple[Path, ...]


def pair(
    pred_dir: PathLike | None,
    gt_dir: PathLike,
    split: Split = None,
    missing: str = "error",
    **how: Any,
) -> list[Pair]:
    """Pair every image's prediction with its ground truth, sorted by id.

    missing : a ground truth without prediction is an "error", a pair without pred_paths ("zero"),
              or left out ("skip")
    how     : pred_kind, gt_kind and classes, as the others for `grouped`

    Raises PairingError that lists every missing, extra and doubled id.
    """
    wanted, preds, gts, doubled = grouped(pred_dir, gt_dir, split, **how)
    both, problems = gts.keys() & preds.keys(), []
    needed = pred_dir and (missing == "error" or not both)
    for folder, fault, names in (
        (pred_dir, SEVERAL, doubled[0]),
        (gt_dir, SEVERAL, doubled[1]),
        (pred_dir, "no prediction for: {}", gts.keys() - both if needed else ()),
        (gt_dir, "no ground truth for: {}", (wanted or preds.keys()) - gts.keys()),
    ):
        if names:
            found = f"{listed(sorted(names))} ({len(names)} in all)"
            problems.append(f"{show(folder)}: {fault.format(found)}")
    if problems:
        raise PairingError("", problems)
    chosen = gts if missing == "zero" else both
    return [Pair(i, tuple(preds.get(i, ())), tuple(gts[i])) for i in sorted(chosen)]


def ground_truths(gt_dir: PathLike, split: Split = None) -> list[Pair]:
    """Every image of a ground-truth folder as a pair without prediction; see `pair`."""
    return pair(None, gt_dir, split, "zero")


def grouped(
    pred_dir: PathLike | None,
    gt_dir: PathLike,
    split: Split = None,
    pred_kind: str = "soft",
    gt_kind: str = "annotators",
    classes: Sequence[str] = (),
) -> tuple[set[str] | None, Files, Files, list[set[str]]]:
    """The ids that count (None: all), their files on both sides, and both sides' doubled ids.

    pred_dir  : None for the ground truth alone
    split     : the images that count, ids or a file of them; without it every ground truth needs a
                prediction and every prediction a ground truth
    pred_kind : "soft"; "labels", where several files may belong to one image; or "classes", where
                `classes` may each have a folder, of its name or class_001, class_002 ..
    gt_kind   : "annotators", where several files may belong to one image, or one of one file each
    """
    ids = read_split(split) if isinstance(split, str | os.PathLike) else split
    wanted = None if ids is None else set(ids)
    folders = [] if pred_dir is None else [Path(pred_dir)]
    sbd = [f"class_{k + 1:03d}" for k in range(len(classes))]  # as its programs name them
    for named in (sbd, classes) if pred_kind == "classes" else ():
        each = [Path(pred_dir or "", name) for name in named]
        folders = each if each and all(map(Path.is_dir, each)) else folders
    roots = folders, [Path(gt_dir)]
    layouts: list[list[tuple[str, ...]]] = [[], []]  # the ids of each file, one for each layout
    files: list[list[Path]] = [[], []]
    for side, several in ((0, pred_kind == "labels"), (1, gt_kind == "annotators")):
        for root in roots[side]:
            paths = find_files(root, FORMATS)
            if not paths:
                raise PairingError(f"{show(root)}: no folder with files {', '.join(FORMATS)}")
            for path in paths:
                name, folder = id_of(path), path.parent
                before = re.sub(r"(?<=.)_[1-9]\d*$", "", name)
                within = before if folder == root else show(folder.name)
                layouts[side].append((name, before, within) if several else (name,))
            files[side] += paths
    sides: tuple[Files, Files] = {}, {}
    doubled: list[set[str]] = [set(), set()]
    for side, ids_of in enumerate(layouts):
        known = set(chain(*layouts[1 - side])) if wanted is None else wanted
        columns = zip(*ids_of, strict=True)
        best = max(columns, key=lambda ids: sum(map(known.__contains__, ids)), default=())
        for path, name in zip(files[side], best, strict=True):
            if wanted is None or name in wanted:
                sides[side].setdefault(name, []).append(path)
        for name, paths in sides[side].items():
            if len(paths) == len(roots[side]) == 1:
                continue
            names = [id_of(path) for path in paths]
            at = {path.parent.parent if name in names else path.parent for path in paths}
            formats = {path.suffix.lower() for path in paths}
            alike = len(at) == len(formats) == 1 and (formats == {".seg"} or name not in names)
            frames = side and wanted is None and any(map(FRAME.search, names))
            each = [root for root in roots[side] for path in paths if path.is_relative_to(root)]
            if each != roots[side] and (frames or not alike):
                doubled[side].add(name)
    return wanted, *sides, doubled


def read_split(path: PathLike) -> list[str]:
    """The image ids of a split file, in its order, each once. Raises DataError.

    One id or file name per line; empty lines and lines that start with # are passed over.
    """
    with reading(path, "one id per line"):
        lines = map(str.strip, read_bytes(path).decode("utf-8-sig").splitlines())
    ids = [id_of(line) for line in lines if line and line[0] != "#"]
    if not ids:
        raise PairingError(f"{show(path)}: lists no image, expected one id per line")
    return list(dict.fromkeys(ids))


def find_files(folder: PathLike, suffixes: Collection[str]) -> list[Path]:
    """Every file below `folder` with one of `suffixes` (any case), in natural order of paths.

    Hidden names are passed over, links followed.
    """
    names = glob("**/*", root_dir=folder, recursive=True)
    found = [name for name in names if os.path.splitext(name)[1].lower() in suffixes]
    # numbers by value, so that ID_2 comes before ID_10
    found.sort(key=lambda name: re.sub(r"\d+", lambda m: m[0].zfill(20), name))
    root = Path(folder)
    return [root / name for name in found]
