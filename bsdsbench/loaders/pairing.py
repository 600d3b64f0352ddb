"""Pairing of predictions with ground truth by image id.

The image id is the file's name without its suffix, in any folder below the given one. Several files
of ground truth are annotators of one image in these layouts only:

| layout | what says so |
|---|---|
| ID_1.png, ID_2.png: numbers without leading zeros | the ids of the predictions or of a split |
| ID/NAME.png | the same; of frames (numbers from 0, or with zeros before them), only a split |
| ID/1.png .. ID/n.png, in several folders that hold all files | itself |
| ANNOTATOR/ID.seg (BSDS300) | the format |

An id whose files are of two layouts is doubled. A split's folder is never an id. Predicted label
maps may use the first two.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from bsdsbench.files.bounded import PathLike, listed, read_text, show
from bsdsbench.files.errors import DataError, FileFormatError, PairingError, is_text
from bsdsbench.loaders.formats import FORMATS, id_of

MISSING = ("error", "zero", "skip")
SPLITS = {"train", "val", "test", "training", "validation", "testing", "trainval"}
NUMBERED = re.compile(r"(.+)_[1-9]\d*")
Files = dict[str, list[Path]]
ONE_SET = (
    "one, or annotators in one folder: ID_1, ID_2 ..; ANNOTATOR/ID.seg; ID/NAME, with a split file "
    "if there are no predictions or the names end in numbers from 0, or with zeros before them"
)


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

    Raises PairingError that lists every missing, extra and doubled id and every wrong path.
    """
    wanted, preds, gts, problems = grouped(pred_dir, gt_dir, split_file, pred_kind, **how)
    order = sorted(gts if wanted is None else wanted)
    counts = {*order}
    if missing == "error":
        lacking = sorted(counts & gts.keys() - preds.keys())
        problems += _fault(pred_dir, "no prediction for", lacking)
    problems += _fault(gt_dir, "no ground truth for", sorted(counts - gts.keys()))
    if wanted is None:
        extra = sorted(preds.keys() - gts.keys())
        problems += _fault(pred_dir, "predictions without ground truth", extra)
    if not problems and pred_dir is not None and not preds.keys() & counts:
        problems.append(f"{show(pred_dir)}: no prediction for any image, expected at least one")
    if problems and preds and not preds.keys() & gts.keys():
        problems.append(
            f"no name is on both sides: predictions are named {listed(sorted(preds), 3)}; "
            f"ground truth {listed(sorted(gts), 3)}"
        )
    elif problems and (splits := sorted(SPLITS & set(os.listdir(gt_dir)))):
        problems.append(
            f"{show(gt_dir)}: holds the folders {', '.join(splits)}; "
            "give one of them, or a split file"
        )
    if problems:
        raise PairingError("\n".join(problems), problems)
    chosen = order if missing == "zero" else sorted(counts & preds.keys())
    return [Pair(i, tuple(preds.get(i, ())), tuple(gts[i])) for i in chosen]


def _fault(folder: PathLike | None, what: str, ids: list[str]) -> list[str]:
    return [f"{show(folder)}: {what}: {listed(ids)} ({len(ids)} in all)"] if ids else []


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
) -> tuple[set[str] | None, Files, Files, list[str]]:
    """The ids that count (None: all), the files of both sides by id, and the doubled ids' faults.

    pred_dir   : None for the ground truth alone
    split_file : the images that count; without it every ground truth needs a prediction and every
                 prediction a ground truth
    pred_kind  : "soft"; "labels", where several files may belong to one image; or "classes", where
                 `classes` may each have a folder
    gt_kind    : "annotators", where several files may belong to one image, or one of one file each
    ids        : the images that count, in place of a split file

    All wrong paths are listed in one error.
    """
    found: list[Any] = []
    faults: list[DataError] = []
    steps: tuple[Any, ...] = (
        (read_split, split_file if ids is None else None),
        (find_files, pred_dir, FORMATS, "predictions"),
        (find_files, gt_dir, FORMATS, "ground truth"),
    )
    for read, given, *how in steps:
        try:
            found.append(None if given is None else read(given, *how))
        except PairingError as error:
            faults.append(error)
    if faults:
        raise PairingError.collect(faults)
    counts = found[0] if ids is None else ids
    wanted = None if counts is None else set(counts)
    names = (
        _names(found[1] or (), pred_dir, pred_kind == "labels"),
        _names(found[2], gt_dir, gt_kind == "annotators"),
    )
    preds = _by_id(names[0], {*chain(*names[1].values())} if wanted is None else wanted)
    gts = _by_id(names[1], {*chain(*names[0].values())} if wanted is None else wanted)
    if pred_dir is None and wanted is None and any(len(paths) > 1 for paths in gts.values()):
        annotated: Files = {}
        for path, (_, _, folder) in names[1].items():
            annotated.setdefault(folder, []).append(path)
        if all(
            folder and {id_of(p) for p in paths} == {str(k + 1) for k in range(len(paths))}
            for folder, paths in annotated.items()
        ):
            gts = annotated
    folders: Sequence[str] = ()  # of the classes, also by the SBD programs' names
    if pred_dir is not None and pred_kind == "classes":
        both = classes, [f"class_{k:03d}" for k in range(1, len(classes) + 1)]
        folders = next((c for c in both if all(Path(pred_dir, x).is_dir() for x in c)), ())
    if folders:
        preds = {}
        for folder in folders:
            for path in find_files(Path(pred_dir or "", folder), FORMATS):
                preds.setdefault(id_of(path), []).append(path)

    lines: list[str] = []
    for root, side, expected in (
        (pred_dir, preds, "one of each class" if folders else "one"),
        (gt_dir, gts, ONE_SET),
    ):
        wrong = []
        for key in sorted(side if wanted is None else side.keys() & wanted):
            fine = is_set(key, side[key], frames=side is preds or wanted is not None)
            if folders and side is preds:
                fine = [p.relative_to(root or "").parts[0] for p in side[key]] == [*folders]
            if not fine:
                files = listed([str(path) for path in side[key]], 3)
                wrong.append(f"{key}: {len(side[key])} files ({files}), expected {expected}")
        more = [f"and {len(wrong) - 10} more doubled ids"] if len(wrong) > 10 else []
        lines += wrong[:10] + more
    return wanted, preds, gts, lines


def _names(
    files: Sequence[Path], root: PathLike | None, several: bool
) -> dict[Path, tuple[str, str, str]]:
    """What each file may go by, "" where it may not: its name, that before a number, its folder."""
    found = {}
    for path in files:
        name, number, folder = id_of(path), NUMBERED.fullmatch(id_of(path)), path.parent
        is_own = folder != Path(root or "") and folder.name.lower() not in SPLITS
        others = number[1] if number else "", show(folder.name) if is_own else ""
        found[path] = (name, *others) if several else (name, "", "")
    return found


def _by_id(files: dict[Path, tuple[str, str, str]], known: Collection[str]) -> Files:
    """The files of each id: the known one of a file's names, its own first; of a file that has none
    that of the layout in which most are known."""
    shared = [len({*ids} & {*known} - {""}) for ids in zip(*files.values(), strict=True)] or [0]
    usual, side = shared.index(max(shared)), Files()
    for path, ids in files.items():
        fits = ids[:1] if ids[0] in known else [i for i in ids if i and i in known]
        for key in fits or [ids[usual] or ids[0]]:
            side.setdefault(key, []).extend([path] * len(fits or "1"))  # of two ids: doubled
    return side


def is_set(image_id: str, paths: Sequence[Path], frames: bool = False) -> bool:
    """True for one file, and for the files of one image in one layout.

    frames : also for a folder of names that end in numbers from 0, or with zeros before them, as a
             video's do
    """
    if len(paths) == 1:
        return True
    names = [id_of(path) for path in paths]
    suffixes = {path.suffix.lower() for path in paths}
    if len(suffixes) > 1:
        return False
    if image_id in names:  # color and gray of BSDS300 are two places
        places = {(len(path.parts), path.parent.parent) for path in paths}
        return len({*names}) == len(places) == 1 and suffixes == {".seg"}
    ends = [re.search(r"\d+$", name) for name in names]
    video = all(ends) and any(end and end[0][0] == "0" for end in ends)
    one_place = len({path.parent for path in paths}) == 1 and len({*names}) == len(names)
    return one_place and (frames or not video)


def read_split(path: PathLike) -> list[str]:
    """The image ids of a split file, in its order, each once. Raises PairingError.

    One id or file name per line; empty lines and lines that start with # are passed over.
    """
    try:
        text = read_text(path, "one id per line")
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
        raise error

    root = Path(folder)
    found: list[Path] = []
    seen: set[str] = set()
    try:
        if not root.is_dir():
            there = os.path.lexists(root)
            fault = "is a file, expected the folder that holds it" if there else "no such folder"
            raise PairingError(f"{show(root)}: {fault}")
        for here, folders, names in os.walk(root, onerror=fail, followlinks=True):
            folders[:] = [name for name in folders if name[0] != "."]
            if (real := os.path.realpath(here)) in seen:
                folders.clear()
                continue
            seen.add(real)
            for name in names:
                if name[0] != "." and os.path.splitext(name)[1].lower() in suffixes:
                    found.append(Path(here, name))
    except OSError as error:
        where = show(error.filename or root)
        raise PairingError(f"{where}: cannot be listed ({error.strerror})") from None
    inside = [os.path.relpath(path, root) for path in found]
    bad = [show(path) for path in inside if not (path.isascii() or is_text(path))]
    if bad:
        raise PairingError(f"{listed(bad, 3)}: not UTF-8, expected names that are")
    if what and not found:
        raise PairingError(f"{show(root)}: no {what}, expected files {', '.join(suffixes)}")
    return sorted(found, key=_natural)


def _natural(path: Path) -> tuple[object, ...]:
    """Numbers in a path by value, so that ID_2 comes before ID_10."""
    parts: list[Any] = re.split(r"(\d+)", os.fspath(path))
    parts[1::2] = map(int, parts[1::2])
    return (*parts, os.fspath(path))
