"""Pairing of predictions with ground truth by image id.

The image id is the file's name without its suffix, in any folder below the given one. Ground truth
may also be one file per annotator: `ID/any.png` (a folder per image), `ID_1.png, ID_2.png`, or .seg
files of one name in several folders (BSDS300: a folder per annotator). The ids of the other side
decide the layout of the whole folder, so an id that itself ends in `_1` is safe. Label-map
predictions may use the same three layouts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bsdsbench.files.arguments import given_path, given_word
from bsdsbench.files.bounded import listed, read_bytes, show
from bsdsbench.files.errors import DataError, FileFormatError, PairingError, is_text
from bsdsbench.loaders.formats import GROUND_TRUTH_SUFFIXES, PREDICTION_SUFFIXES, id_of

MISSING = ("error", "zero", "skip")
MAX_FILES = 5_000_000
DIGITS = re.compile(r"(\d+)")
NUMBERED = re.compile(r"(.+)_\d+")
Layout = Callable[[Path, Path, Collection[str]], str]
SPLITS = {"train", "val", "test", "training", "validation", "testing"}


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
    pred_dir: str | os.PathLike[str],
    gt_dir: str | os.PathLike[str],
    split_file: str | os.PathLike[str] | None = None,
    missing: str = "error",
    pred_kind: str = "soft",
    *,
    gt_kind: str = "annotators",
    classes: Sequence[str] = (),
    ids: Collection[str] | None = None,
) -> list[Pair]:
    """Pair every image's prediction with its ground truth, sorted by id.

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
    pred_root, gt_root = given_path(pred_dir, "pred_dir"), given_path(gt_dir, "gt_dir")
    wanted, pred_files, gt_files = _listings(pred_root, gt_root, split_file)
    wanted = set(ids) if ids is not None else wanted
    names = wanted if wanted is not None else possible_ids(gt_files)
    per_class = _per_class(pred_files, pred_root, classes) if pred_kind == "classes" else {}
    preds = per_class or group(
        pred_files, pred_root, names, LAYOUTS if pred_kind == "labels" else LAYOUTS[:1]
    )
    layouts = LAYOUTS if gt_kind == "annotators" else LAYOUTS[:1]
    gts = group(gt_files, gt_root, wanted if wanted is not None else set(preds), layouts)
    ids = sorted(gts if wanted is None else wanted)
    lost = [i for i in ids if i in gts and i not in preds]
    mine = {k: v for k, v in preds.items() if wanted is None or k in wanted}
    problems = _lacking(mine, classes) if per_class else _doubled(mine)
    problems += _doubled({k: gts[k] for k in ids if k in gts})
    if missing == "error":
        problems += _say(pred_root, lost, "no prediction for")
    problems += _say(gt_root, [i for i in ids if i not in gts], "no ground truth for")
    if wanted is None:
        problems += _say(
            pred_root, sorted(set(preds) - set(gts)), "predictions without ground truth"
        )
    if not problems and not set(ids) & set(preds):
        problems.append(f"{show(pred_root)}: no prediction for any image, expected at least one")
    if problems:
        problems += _hints(gt_root, preds, gts)
        raise PairingError("\n".join(problems), problems)
    return [
        Pair(i, tuple(preds.get(i, ())), tuple(gts[i]))
        for i in ids
        if i in preds or missing == "zero"
    ]


def ground_truths(
    gt_dir: str | os.PathLike[str], split_file: str | os.PathLike[str] | None = None
) -> list[Pair]:
    """Every image of a ground-truth folder as a pair without prediction, sorted by id.

    Without a split file the layout is the one without doubled names in which most images have
    several files; a file is an image of its own where none has. Raises PairingError, as `pair`.
    """
    root = given_path(gt_dir, "gt_dir")
    files = find_files(root, GROUND_TRUTH_SUFFIXES)
    if not files:
        known = ", ".join(GROUND_TRUTH_SUFFIXES)
        raise PairingError(f"{show(root)}: no ground truth, expected files {known}")
    if split_file is None:
        groups = max(
            (group(files, root, (), [layout]) for layout in LAYOUTS),
            key=lambda found: (
                not _doubled(found),
                sum(len(paths) > 1 for paths in found.values()),
            ),
        )
        wanted = sorted(groups)
    else:
        wanted = sorted(read_split(split_file))
        groups = group(files, root, wanted, LAYOUTS)
    problems = _doubled({k: groups[k] for k in wanted if k in groups})
    problems += _say(root, [k for k in wanted if k not in groups], "no ground truth for")
    if problems:
        raise PairingError("\n".join(problems), problems)
    return [Pair(k, (), tuple(groups[k])) for k in wanted]


def read_split(path: str | os.PathLike[str]) -> list[str]:
    """The image ids of a split file, in its order, each once. Raises PairingError."""
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except FileFormatError as error:
        raise PairingError(str(error)) from None
    except UnicodeDecodeError:
        raise PairingError(f"{show(path)}: is not UTF-8 text, expected one id per line") from None
    lines = (line.strip() for line in text.splitlines())
    ids = list(dict.fromkeys(id_of(s.replace("\\", "/")) for s in lines if s and s[0] != "#"))
    if not ids:
        raise PairingError(f"{show(path)}: lists no image, expected one id per line")
    return ids


def find_files(folder: str | os.PathLike[str], suffixes: Collection[str]) -> list[Path]:
    """Every file below `folder` with one of `suffixes` (any case), sorted by path.

    Hidden names are passed over; a folder reached a second time through links is not read again.
    Raises PairingError when the folder is missing, not a folder, or not readable.
    """
    root = Path(folder)
    _check_folder(root)
    found: list[Path] = []
    seen: set[tuple[int, int]] = set()
    pending = [root]
    try:
        while pending:
            here = pending.pop()
            info = here.stat()
            if (info.st_dev, info.st_ino) in seen:
                continue
            seen.add((info.st_dev, info.st_ino))
            with os.scandir(here) as entries:
                for entry in entries:
                    if entry.name.startswith("."):
                        continue
                    if _is_dir(entry):
                        pending.append(Path(entry.path))
                    elif os.path.splitext(entry.name)[1].lower() in suffixes:
                        found.append(Path(entry.path))
            if len(found) > MAX_FILES:
                raise PairingError(f"{show(root)}: more than {MAX_FILES} files, expected fewer")
    except OSError as error:
        raise PairingError(
            f"{show(error.filename or root)}: cannot be listed ({error.strerror})"
        ) from None
    bad = [show(path) for path in found if not is_text(os.path.relpath(path, root))]
    if bad:
        raise PairingError(f"{listed(bad, 3)}: not UTF-8, expected names that are")
    return sorted(found, key=natural)


def files_in(folder: str | os.PathLike[str], suffixes: Collection[str]) -> list[Path]:
    """The files right in `folder`, not below, with one of `suffixes`; else as `find_files`."""
    root = Path(folder)
    _check_folder(root)
    try:
        found = [p for p in root.iterdir() if p.suffix.lower() in suffixes and p.name[0] != "."]
    except OSError as error:
        raise PairingError(f"{show(root)}: cannot be listed ({error.strerror})") from None
    return sorted(found)


def natural(path: Path) -> tuple[object, ...]:
    """Sort key: numbers in a path by value, so that ID_2 comes before ID_10."""
    text = os.fspath(path)
    parts: list[object] = list(DIGITS.split(text))
    parts[1::2] = [int(str(number)[:300]) for number in parts[1::2]]
    return (*parts, text)


def _is_dir(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads round in a circle is neither
        return False


def _check_folder(root: Path) -> None:
    try:
        if root.is_dir():
            return
        there = os.path.lexists(root)
    except (OSError, ValueError) as error:
        raise PairingError(f"{show(root)}: cannot be opened ({show(error)})") from None
    if there:
        raise PairingError(f"{show(root)}: is a file, expected the folder that holds it")
    raise PairingError(f"{show(root)}: no such folder")


def _listings(
    pred_dir: Path, gt_dir: Path, split_file: str | os.PathLike[str] | None
) -> tuple[set[str] | None, list[Path], list[Path]]:
    """The split's ids and the files of both sides; all wrong paths in one error."""
    problems: list[str] = []
    wanted: set[str] | None = None
    found: list[list[Path]] = []
    try:
        wanted = None if split_file is None else set(read_split(split_file))
    except PairingError as error:
        problems += error.problems
    sides = (
        (pred_dir, "predictions", PREDICTION_SUFFIXES),
        (gt_dir, "ground truth", GROUND_TRUTH_SUFFIXES),
    )
    for folder, what, suffixes in sides:
        try:
            found.append(find_files(folder, suffixes))
            if not found[-1]:
                problems.append(f"{show(folder)}: no {what}, expected files {', '.join(suffixes)}")
        except (PairingError, FileFormatError) as error:
            problems += error.problems
    if problems:
        raise PairingError("\n".join(problems), problems)
    return wanted, found[0], found[1]


def _by_stem(path: Path, root: Path, wanted: Collection[str]) -> str:
    return id_of(path)


def _by_number(path: Path, root: Path, wanted: Collection[str]) -> str:
    stem = id_of(path)
    match = NUMBERED.fullmatch(stem)
    return match[1] if match and stem not in wanted else stem


def _by_folder(path: Path, root: Path, wanted: Collection[str]) -> str:
    return id_of(path) if path.parent == root else show(path.parent.name)


LAYOUTS = (_by_stem, _by_number, _by_folder)


def possible_ids(paths: Iterable[Path]) -> set[str]:
    """Every id that a ground-truth file could stand for, in any layout."""
    ids: set[str] = set()
    for path in paths:
        stem = id_of(path)
        match = NUMBERED.fullmatch(stem)
        ids.update((stem, show(path.parent.name), *((match[1],) if match else ())))
    return ids


def group(
    paths: Iterable[Path], root: Path, wanted: Collection[str], layouts: Iterable[Layout]
) -> dict[str, list[Path]]:
    """Files by image id, in the layout that finds most of the wanted ids; the first of equals."""
    best: dict[str, list[Path]] = {}
    most = -1
    for layout in layouts:
        groups: dict[str, list[Path]] = {}
        for path in paths:
            groups.setdefault(layout(path, root, wanted), []).append(path)
        hits = sum(key in groups for key in wanted)
        if hits > most:
            best, most = groups, hits
        if hits == len(wanted):
            break
    return best


def _per_class(paths: Iterable[Path], root: Path, classes: Sequence[str]) -> dict[str, list[Path]]:
    """Files by image id, in the order of the classes, where every class has a folder in `root`:
    by its name, or class_001 and so on."""
    numbered = [f"class_{k:03d}" for k in range(1, len(classes) + 1)]  # as the SBD programs do
    names = next((n for n in (classes, numbered) if all((root / x).is_dir() for x in n)), ())
    if not names:
        return {}
    rank = {name: k for k, name in enumerate(names)}
    groups: dict[str, list[Path]] = {}
    for path in paths:
        if path.relative_to(root).parts[0] in rank:
            groups.setdefault(id_of(path), []).append(path)
    return {
        image_id: sorted(found, key=lambda p: rank[p.relative_to(root).parts[0]])
        for image_id, found in groups.items()
    }


def _lacking(groups: dict[str, list[Path]], classes: Sequence[str]) -> list[str]:
    """Ids that have no map of some class, or two of one."""
    return [
        f"{image_id}: {len(found)} maps, expected one in the folder of each of the "
        f"{len(classes)} classes"
        for image_id, found in sorted(groups.items())
        if len(found) != len(classes)
    ]


def _doubled(groups: dict[str, list[Path]]) -> list[str]:
    """Ids whose files are not one set of label maps or annotators."""
    doubled = [k for k, v in sorted(groups.items()) if len(v) > 1 and not one_set(v)]
    lines = [
        f"{k}: {len(groups[k])} files ({listed([str(p) for p in groups[k]], 3)}), expected one"
        for k in doubled[:10]
    ]
    return lines + ([f"and {len(doubled) - 10} more doubled ids"] if len(doubled) > 10 else [])


def one_set(paths: list[Path]) -> bool:
    """True for files of one suffix and different names; .seg may share theirs (BSDS300)."""
    suffixes = {p.suffix.lower() for p in paths}
    return suffixes == {".seg"} or (
        len(suffixes) == 1 and len({p.stem for p in paths}) == len(paths)
    )


def _say(folder: str | os.PathLike[str], ids: list[str], what: str) -> list[str]:
    return [f"{show(folder)}: {what}: {listed(ids)} ({len(ids)} in all)"] if ids else []


def _hints(gt_dir: Path, preds: Collection[str], gts: Collection[str]) -> list[str]:
    """What probably went wrong when much is missing."""
    if not set(preds) & set(gts):
        return [
            f"no name is on both sides: predictions are named {listed(sorted(preds), 3)}; "
            f"ground truth {listed(sorted(gts), 3)}"
        ]
    splits = sorted(p.name for p in gt_dir.iterdir() if p.is_dir() and p.name.lower() in SPLITS)
    if splits:
        return [
            f"{show(gt_dir)}: holds the folders {', '.join(splits)}; "
            "give one of them, or a split file"
        ]
    return []
