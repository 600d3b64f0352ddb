"""Pairing of predictions with ground truth by image id.

The image id is the file's name without its suffix, in any folder below the given one. Several files
of ground truth are annotators of one image in these layouts only:

| layout | what says so |
|---|---|
| ID_1.png, ID_2.png: numbers without leading zeros | the ids of the predictions or of a split |
| ID/NAME.png | the same; of frames (numbers from 0, or with zeros before them), only a split |
| ID/1.png .. ID/n.png, in several folders that hold all files | itself |
| ANNOTATOR/ID.seg (BSDS300) | the format |

So a file gives the ids that it may have, the known ids choose, and an id whose files are not of one
layout is doubled. A split's folder is never an id. Predicted label maps may use the first two.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from bsdsbench.files.bounded import PathLike, listed, read_bytes, reading, show
from bsdsbench.files.errors import DataError, FileFormatError, PairingError, is_text
from bsdsbench.loaders.formats import FORMATS, id_of

SPLITS = {"train", "val", "test", "training", "validation", "testing", "trainval"}
Files = dict[str, list[Path]]
ONE = "one, or annotators as ID_1, ID_2 .., ID/NAME or ANNOTATOR/ID.seg (alone: with a split file)"


@dataclass(frozen=True, slots=True)
class Pair:
    """One image: its id, its prediction's files (none where missing counts as zero), its truth's.

    Several prediction files are label maps, several ground-truth files are annotators, in natural
    order of their names.
    """

    image_id: str
    pred_paths: tuple[Path, ...]
    gt_paths: tuple[Path, ...]

    @property
    def gt_path(self) -> Path:
        """Its one ground-truth file. Raises DataError for none and several."""
        if len(self.gt_paths) != 1:
            fault = f"{len(self.gt_paths)} ground-truth files, expected one"
            raise DataError(f"{self.image_id}: {fault}")
        return self.gt_paths[0]


def pair(
    pred_dir: PathLike | None,
    gt_dir: PathLike,
    split_file: PathLike | None = None,
    missing: str = "error",
    pred_kind: str = "soft",
    **how: Any,
) -> list[Pair]:
    """Pair every image's prediction with its ground truth, sorted by id.

    missing : a ground truth without prediction is an "error", a pair without pred_paths ("zero"),
              or left out ("skip")
    how     : gt_kind, classes and ids, as the others for `grouped`

    Raises PairingError that lists every missing, extra and doubled id.
    """
    wanted, preds, gts, doubled = grouped(pred_dir, gt_dir, split_file, pred_kind, **how)
    counts, problems = set(gts) if wanted is None else wanted, []
    lacking, extra = counts & gts.keys() - preds.keys(), preds.keys() - gts.keys()
    none = pred_dir is not None and not counts & preds.keys()
    for folder, what, ids, side in (
        (pred_dir, "several files for", doubled[0], preds),
        (gt_dir, "several files for", doubled[1], gts),
        (pred_dir, "no prediction for", lacking if none or missing == "error" else (), None),
        (gt_dir, "no ground truth for", counts - gts.keys(), None),
        (
            pred_dir,
            "predictions without ground truth",
            extra if none or wanted is None else (),
            None,
        ),
    ):
        if ids:
            first, *_ = names = sorted(ids)
            line = f"{show(folder)}: {what}: {listed(names)} ({len(names)} in all)"
            such = listed([str(path) for path in side[first]], 3) if side else ""
            problems.append(f"{line}, such as {such}; expected {ONE}" if side else line)
    if problems and (splits := sorted(SPLITS & set(os.listdir(gt_dir)))):
        holds = f"holds the folders {', '.join(splits)}; give one of them, or a split file"
        problems.append(f"{show(gt_dir)}: {holds}")
    if problems:
        raise PairingError("\n".join(problems), problems)
    chosen = counts if missing == "zero" else counts & preds.keys()
    return [Pair(i, tuple(preds.get(i, ())), tuple(gts[i])) for i in sorted(chosen)]


def ground_truths(
    gt_dir: PathLike, split_file: PathLike | None = None, ids: Collection[str] | None = None
) -> list[Pair]:
    """Every image of a ground-truth folder as a pair without prediction; see `pair`."""
    return pair(None, gt_dir, split_file, "zero", ids=ids)


def grouped(
    pred_dir: PathLike | None,
    gt_dir: PathLike,
    split_file: PathLike | None = None,
    pred_kind: str = "soft",
    *,
    gt_kind: str = "annotators",
    classes: Sequence[str] = (),
    ids: Collection[str] | None = None,
) -> tuple[set[str] | None, Files, Files, list[set[str]]]:
    """The ids that count (None: all), the files of both sides by id, and both sides' doubled ids.

    pred_dir   : None for the ground truth alone
    split_file : the images that count; without it every ground truth needs a prediction and every
                 prediction a ground truth
    pred_kind  : "soft"; "labels", where several files may belong to one image; or "classes", where
                 `classes` may each have a folder, of its name or class_001, class_002 ..
    gt_kind    : "annotators", where several files may belong to one image, or one of one file each
    ids        : the images that count, in place of a split file
    """
    if ids is None and split_file is not None:
        ids = read_split(split_file)
    wanted = None if ids is None else set(ids)
    folders = [] if pred_dir is None else [Path(pred_dir)]
    if pred_dir is not None and pred_kind == "classes":
        sbd = [f"class_{k:03d}" for k in range(1, len(classes) + 1)]  # as its programs name them
        for named in (sbd, classes):
            each = [Path(pred_dir, name) for name in named]
            folders = each if each and all(map(Path.is_dir, each)) else folders
    preds = [path for folder in folders for path in find_files(folder, FORMATS, "predictions")]
    names: list[dict[Path, list[str]]] = []  # the ids that a file may have
    for root, paths, several in (
        (pred_dir, preds, pred_kind == "labels"),
        (gt_dir, find_files(gt_dir, FORMATS, "ground truth"), gt_kind == "annotators"),
    ):
        names.append({path: [id_of(path)] for path in paths})
        for path, likely in names[-1].items() if several else ():
            before, folder = re.sub(r"(?<=.)_[1-9]\d*$", "", likely[0]), path.parent
            is_id = folder != Path(root or "") and folder.name.lower() not in SPLITS
            likely += [before, show(folder.name) if is_id else before]
    sides: list[Files] = []
    for own, other in (names, names[::-1]):
        known = {*chain(*other.values())} if wanted is None else wanted
        layouts = [len(known.intersection(layout)) for layout in zip(*own.values(), strict=True)]
        side = Files()
        for path, likely in own.items():  # without a known id by the layout in which most are known
            key = next(filter(known.__contains__, likely), likely[layouts.index(max(layouts))])
            side.setdefault(key, []).append(path)
        sides.append(side)
    doubled = [
        {key for key in side if not is_set(key, side[key], side is sides[0] or wanted is not None)}
        for side in sides
    ]
    if pred_dir is None and wanted is None and doubled[1]:  # each folder numbers its annotators
        scenes = Files()
        for path, likely in names[1].items():
            scenes.setdefault(likely[-1], []).append(path)
        if all(
            sorted(map(id_of, paths)) == sorted(str(k + 1) for k in range(len(paths)))
            for paths in scenes.values()
        ):
            sides[1], doubled[1] = scenes, set[str]()
    if len(folders) > 1:  # one of each class
        doubled[0] = {
            key
            for key, paths in sides[0].items()
            if [f for f in folders for path in paths if path.is_relative_to(f)] != folders
        }
    return wanted, sides[0], sides[1], [d if wanted is None else d & wanted for d in doubled]


def is_set(image_id: str, paths: Sequence[Path], frames: bool) -> bool:
    """True for one file, and for the files of one image in one layout.

    frames : also for names that end in numbers from 0, or with zeros before them, as a video's do
    """
    names = [id_of(path) for path in paths]
    own, ends = image_id in names, [re.search(r"\d+$", name) for name in names]
    video = all(ends) and any(end and end[0][0] == "0" for end in ends)
    suffixes = {path.suffix.lower() for path in paths}
    # color and gray of BSDS300 are two places
    places = {path.parent.parent if own else path.parent for path in paths}
    alike = suffixes == {".seg"} if own else len(suffixes) == 1 and (frames or not video)
    return len(paths) == 1 or (alike and len(places) == 1)


def read_split(path: PathLike) -> list[str]:
    """The image ids of a split file, in its order, each once. Raises PairingError.

    One id or file name per line; empty lines and lines that start with # are passed over.
    """
    try:
        with reading(path, "one id per line"):
            text = read_bytes(path).decode("utf-8-sig")
    except FileFormatError as error:
        raise PairingError(str(error)) from None
    lines = (line.strip() for line in text.splitlines())
    ids = list(dict.fromkeys(id_of(s.replace("\\", "/")) for s in lines if s and s[0] != "#"))
    if not ids:
        raise PairingError(f"{show(path)}: lists no image, expected one id per line")
    return ids


def find_files(folder: PathLike, suffixes: Collection[str], what: str = "") -> list[Path]:
    """Every file below `folder` with one of `suffixes` (any case), in natural order of paths.

    Hidden names are passed over; a folder reached a second time through links is not read again.
    Raises PairingError, also for no file where it is said `what` is expected.
    """

    def fail(error: OSError) -> None:
        gone = isinstance(error, FileNotFoundError)
        fault = "no such folder" if gone else f"cannot be listed ({error.strerror})"
        raise PairingError(f"{show(error.filename)}: {fault}")

    found: list[Path] = []
    seen: set[str] = set()
    for here, folders, names in os.walk(folder, onerror=fail, followlinks=True):
        real = os.path.realpath(here)
        folders[:] = [] if real in seen else [name for name in folders if name[0] != "."]
        for name in [] if real in seen else names:
            if name[0] != "." and os.path.splitext(name)[1].lower() in suffixes:
                found.append(Path(here, name))
        seen.add(real)
    if bad := [show(path) for path in found if not (path.name.isascii() or is_text(path.name))]:
        raise PairingError(f"{listed(bad, 3)}: not UTF-8, expected names that are")
    if what and not found:
        raise PairingError(f"{show(folder)}: no {what}, expected files {', '.join(suffixes)}")
    return sorted(found, key=_natural)


def _natural(path: Path) -> tuple[object, ...]:
    """Numbers in a path by value, so that ID_2 comes before ID_10."""
    parts: list[Any] = re.split(r"(\d+)", os.fspath(path))
    parts[1::2] = map(int, parts[1::2])
    return (*parts, os.fspath(path))
