"""Pairing of predictions with ground truth by image id.

The image id is the file's name without its suffix, in any folder below the given one. Several files
of ground truth are annotators of one image in these layouts only:

| layout | what says so |
|---|---|
| ID_1.png, ID_2.png: numbers without leading zeros | the ids of the predictions or of a split |
| ID/NAME.png | the same; of numbers from 0, which may be a video's frames, only a split |
| ID/1.png .. ID/n.png, in several folders that hold all files | itself |
| ANNOTATOR/ID.seg (BSDS300) | the format |

One layout holds for the whole folder, and one that gives an id other files makes that id doubled.
A split's folder is never an id. Label-map predictions may use the first two.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from bsdsbench.files.arguments import given_path, given_word
from bsdsbench.files.bounded import listed, read_text, show
from bsdsbench.files.errors import DataError, FileFormatError, PairingError, is_text
from bsdsbench.loaders.formats import GROUND_TRUTH_SUFFIXES, PREDICTION_SUFFIXES, id_of

MISSING = ("error", "zero", "skip")
DIGITS = re.compile(r"(\d+)")
NUMBERED = re.compile(r"(.+)_[1-9]\d*")
SPLITS = {"train", "val", "test", "training", "validation", "testing", "trainval"}
Files = dict[str, list[Path]]
Folder = str | os.PathLike[str]
ONE_SET = (
    "one, or annotators in one folder: ID_1, ID_2 ..; ANNOTATOR/ID.seg; ID/NAME, with a split file "
    "if there are no predictions or the names are numbers from 0"
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
    pred_dir: Folder | None,
    gt_dir: Folder,
    split_file: Folder | None = None,
    missing: str = "error",
    pred_kind: str = "soft",
    *,
    gt_kind: str = "annotators",
    classes: Sequence[str] = (),
    ids: Collection[str] | None = None,
) -> list[Pair]:
    """Pair every image's prediction with its ground truth, sorted by id.

    pred_dir   : None for the ground truth alone
    split_file : the images that count, one id or file name per line; empty lines and lines that
                 start with # are skipped. Without it every ground truth needs a prediction and
                 every prediction a ground truth
    missing    : a ground truth without prediction is an "error", a pair without pred_paths
                 ("zero"), or left out ("skip")
    pred_kind  : "soft"; "labels", where several files may belong to one image; or "classes", where
                 `classes` may each have a folder
    gt_kind    : "annotators", where several files may belong to one image, or one of one file each
    ids        : the images that count, in place of a split file

    Hidden files and unknown suffixes are passed over; linked folders are followed once. Raises
    PairingError that lists every missing, extra and doubled id and every wrong path.
    """
    given_word(missing, "missing", MISSING)
    gt_dir = given_path(gt_dir, "gt_dir")
    pred_dir = None if pred_dir is None else given_path(pred_dir, "pred_dir")

    def say(folder: Folder | None, ids: list[str], what: str) -> None:
        if ids:
            problems.append(f"{show(folder)}: {what}: {listed(ids)} ({len(ids)} in all)")

    wanted, preds, gts, problems = grouped(
        pred_dir, gt_dir, split_file, pred_kind, gt_kind=gt_kind, classes=classes, ids=ids
    )
    order = sorted(gts if wanted is None else wanted)
    if missing == "error":
        say(pred_dir, [i for i in order if i in gts and i not in preds], "no prediction for")
    say(gt_dir, [i for i in order if i not in gts], "no ground truth for")
    if wanted is None:
        say(pred_dir, sorted(preds.keys() - gts.keys()), "predictions without ground truth")
    if not problems and pred_dir is not None and not preds.keys() & set(order):
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
    return [
        Pair(i, tuple(preds.get(i, ())), tuple(gts[i]))
        for i in order
        if i in preds or missing == "zero"
    ]


def ground_truths(
    gt_dir: Folder, split_file: Folder | None = None, ids: Collection[str] | None = None
) -> list[Pair]:
    """Every image of a ground-truth folder as a pair without prediction; see `pair`."""
    return pair(None, gt_dir, split_file, "zero", ids=ids)


def grouped(
    pred_dir: Folder | None,
    gt_dir: Folder,
    split_file: Folder | None = None,
    pred_kind: str = "soft",
    *,
    gt_kind: str = "annotators",
    classes: Sequence[str] = (),
    ids: Collection[str] | None = None,
) -> tuple[set[str] | None, Files, Files, list[str]]:
    """The ids that count (None: all), the files of both sides by id, and the doubled ids' faults.

    The layouts that share most ids are taken; all wrong paths are listed in one error.
    """
    problems: list[str] = []
    found: list[list[Path]] = []
    wanted = None if ids is None else set(ids)
    try:
        if split_file is not None and ids is None:
            wanted = set(read_split(split_file))
    except PairingError as error:
        problems += error.problems
    for folder, what, suffixes in (
        (pred_dir, "predictions", PREDICTION_SUFFIXES),
        (gt_dir, "ground truth", GROUND_TRUTH_SUFFIXES),
    ):
        try:
            found.append([] if folder is None else find_files(folder, suffixes))
            if folder is not None and not found[-1]:
                problems.append(f"{show(folder)}: no {what}, expected files {', '.join(suffixes)}")
        except PairingError as error:
            problems += error.problems
    if problems:
        raise PairingError("\n".join(problems), problems)
    pred_files, gt_files = found
    pred_root, gt_root = Path(pred_dir or ""), Path(gt_dir)
    pred_names, gt_names = ({id_of(path) for path in side} for side in (pred_files, gt_files))
    pred_ways = _ways(pred_files, pred_root, gt_names if wanted is None else wanted)
    gt_ways = _ways(gt_files, gt_root, pred_names if wanted is None else wanted)
    pred_ways = pred_ways[: 3 if pred_kind == "labels" else 1]
    gt_ways = gt_ways[: 3 if gt_kind == "annotators" else 1]
    folders: list[str] = []  # of the classes: by their names, or class_001 .. as the SBD programs
    if pred_kind == "classes":
        numbered = [f"class_{k:03d}" for k in range(1, len(classes) + 1)]
        each = (list(classes), numbered)
        folders = next((n for n in each if all((pred_root / x).is_dir() for x in n)), [])
    if folders:
        mine = [path for path in pred_files if _top(path, pred_root) in folders]
        mine.sort(key=lambda path: folders.index(_top(path, pred_root)))
        pred_ways = _ways(mine, pred_root, ())[:1]

    def shared(sides: tuple[Files, Files]) -> int:
        ids = sides[0].keys() & sides[1].keys() if wanted is None else wanted
        return sum(len(side.keys() & ids) for side in sides)

    preds, gts = max(product(pred_ways, gt_ways), key=shared)
    if pred_dir is not None or wanted is not None:
        preds = _completed(preds, pred_ways, gt_names)
        gts = _completed(gts, gt_ways, pred_names)
    elif any(len(paths) > 1 for paths in gts.values()):
        folders_of = gt_ways[-1]  # of 1.png .. n.png, if these are all files
        if sum(map(len, folders_of.values())) == len(gt_files) and all(
            {id_of(p) for p in paths} == {str(k + 1) for k in range(len(paths))}
            for paths in folders_of.values()
        ):
            gts = folders_of

    lines: list[str] = []
    for side, expected in ((preds, "one of each class" if folders else "one"), (gts, ONE_SET)):
        wrong = []
        for key in sorted(side if wanted is None else side.keys() & wanted):
            paths = side[key]
            if side is preds and folders:
                fine = [_top(path, pred_root) for path in paths] == folders
            else:
                fine = is_set(key, paths, frames=side is preds or wanted is not None)
            if not fine:
                files = listed([str(path) for path in paths], 3)
                wrong.append(f"{key}: {len(paths)} files ({files}), expected {expected}")
        lines += wrong[:10]
        if len(wrong) > 10:
            lines.append(f"and {len(wrong) - 10} more doubled ids")
    return wanted, preds, gts, lines


def _ways(files: Iterable[Path], root: Path, known: Collection[str]) -> list[Files]:
    """Image id -> files by name, by number and by folder; the name of a file that has a known id
    is the only one it goes by."""
    by_name, by_number, by_folder = ways = [Files(), Files(), Files()]
    for path in files:
        name = id_of(path)
        by_name.setdefault(name, []).append(path)
        if name in known:
            continue
        if match := NUMBERED.fullmatch(name):
            by_number.setdefault(match[1], []).append(path)
        if path.parent != root and path.parent.name.lower() not in SPLITS:
            by_folder.setdefault(show(path.parent.name), []).append(path)
    return ways


def _completed(chosen: Files, ways: Sequence[Files], others: Collection[str]) -> Files:
    """`chosen`, the files outside it by name, and with each id the files that other layouts give
    it: together they are no set.

    others : names on the other side; files of these names are images of their own
    """
    found = {key: list(files) for key, files in chosen.items()}
    used = {path for files in chosen.values() for path in files}
    for key, files in ways[0].items():
        if rest := [path for path in files if path not in used]:
            found.setdefault(key, []).extend(rest)
    for key, way in product(found, ways[1:]):
        rivals = [path for path in way.get(key, ()) if id_of(path) not in others]
        found[key] = sorted({*found[key], *rivals}, key=natural) if rivals else found[key]
    return found


def is_set(image_id: str, paths: Sequence[Path], frames: bool = False) -> bool:
    """True for one file, and for the files of one image in one layout.

    frames : also for numbers in a folder that begin with 0, as a video's do
    """
    names = [id_of(path) for path in paths]
    places: set[object] = set()
    for name, path in zip(names, paths, strict=True):
        suffix = path.suffix.lower()
        if name != image_id:
            match = NUMBERED.fullmatch(name)
            places.add((path.parent, suffix, bool(match and match[1] == image_id)))
        else:  # color and gray of BSDS300 are two places
            places.add((len(path.parts), path.parent.parent) if suffix == ".seg" else path)
    video = all(map(str.isdecimal, names)) and any(name[0] == "0" for name in names)
    return len(paths) == 1 or (
        len(places) == 1
        and len(set(names)) == (1 if image_id in names else len(names))
        and (frames or not video or image_id in names)
    )


def _top(path: Path, root: Path) -> str:
    return path.relative_to(root).parts[0]


def read_split(path: str | os.PathLike[str]) -> list[str]:
    """The image ids of a split file, in its order, each once. Raises PairingError."""
    try:
        text = read_text(path, "one id per line")
    except FileFormatError as error:
        raise PairingError(str(error)) from None
    lines = (line.strip() for line in text.splitlines())
    ids = list(dict.fromkeys(id_of(s.replace("\\", "/")) for s in lines if s and s[0] != "#"))
    if not ids:
        raise PairingError(f"{show(path)}: lists no image, expected one id per line")
    return ids


def find_files(folder: Folder, suffixes: Collection[str]) -> list[Path]:
    """Every file below `folder` with one of `suffixes` (any case), sorted by path.

    Hidden names are passed over; a folder reached a second time through links is not read again.
    """

    def fail(error: OSError) -> None:
        raise error

    root = Path(folder)
    found: list[Path] = []
    seen: set[tuple[int, int]] = set()
    try:
        if not root.is_dir():
            there = os.path.lexists(root)
            what = "is a file, expected the folder that holds it" if there else "no such folder"
            raise PairingError(f"{show(root)}: {what}")
        for here, folders, names in os.walk(root, onerror=fail, followlinks=True):
            info = os.stat(here)
            if (info.st_dev, info.st_ino) in seen:
                folders.clear()
                continue
            seen.add((info.st_dev, info.st_ino))
            folders[:] = [name for name in folders if name[0] != "."]
            found += [
                Path(here, name)
                for name in names
                if name[0] != "." and os.path.splitext(name)[1].lower() in suffixes
            ]
    except OSError as error:
        where = show(error.filename or root)
        raise PairingError(f"{where}: cannot be listed ({error.strerror})") from None
    bad = [show(path) for path in found if not is_text(os.path.relpath(path, root))]
    if bad:
        raise PairingError(f"{listed(bad, 3)}: not UTF-8, expected names that are")
    return sorted(found, key=natural)


def natural(path: Path) -> tuple[object, ...]:
    """Sort key: numbers in a path by value, so that ID_2 comes before ID_10."""
    text = os.fspath(path)
    parts = DIGITS.split(text)
    return (*(int(part) if k % 2 else part for k, part in enumerate(parts)), text)
