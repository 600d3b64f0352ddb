"""Pairing of predictions with ground truth by image id.

The image id is the file's name without its suffix, in any folder below the given one. Several files
may belong to one image, as annotators or as predicted label maps, in these arrangements only:

| arrangement | what says so |
|---|---|
| ID_1.png, ID_2.png (also ID-1, ID.1, ID_0, ID_01) | the ids of the other side or of a split |
| ID_gt1.png, ID_annotator2.png: a word and a number | the same |
| ID/NAME.png | the same |
| ANNOTATOR/ID.seg (BSDS300) | the format |

Of frames (folders ID/NAME with numbers from 0 or with zeros before them; ID_001; numbers that start
above 1) only a split says that they are annotators. A side has the arrangement in which most of its
ids are known from the other side, or from the split. An id is refused whose files are of several
arrangements, or that would be read in part: what is left over may be another annotator.

Where names repeat over folders that both sides have, the images are frames of sequences, and the
id is the path SEQUENCE/FRAME. A split file lists such ids, or sequences.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from glob import glob
from itertools import chain, product
from operator import attrgetter, getitem
from pathlib import Path
from typing import Any, NamedTuple

from bsdsbench.errors import PairingError
from bsdsbench.io import PathLike, read_bytes, reading
from bsdsbench.loaders.formats.pictures import FORMATS, id_of
from bsdsbench.text import counted, listed, show

Files = dict[str, list[Path]]
Split = PathLike | Collection[str] | None
SEVERAL = (
    "several files for: {}; expected one, or all of them annotators as ID_1, ID_2 .., ID/NAME or "
    "ANNOTATOR/ID.seg (frames, and ground truth alone: with a split file)"
)
_NUMBER = re.compile(r"(?<=.)[_.-]\d+$")
_WORD_AND_NUMBER = re.compile(r"(?<=.)[_.-][A-Za-z]+[_.-]?\d+$")
_FRAME_IN_FOLDER = re.compile(r"(?<!\d)0\d*$")
_FRAME_BESIDE = re.compile(r"(?<!\d)0\d\d+$")


class Arrangement(Enum):
    """The part of a file's path that is the image id; the first of several that fit is meant."""

    ONE = "ID"
    NUMBERED = "ID_1"
    WORDED = "ID_gt1"
    FOLDERS = "ID/NAME"

    def id_in(self, parts: Sequence[str]) -> str:
        """Return the id of a file, given the names of its folders and its own."""
        if self is Arrangement.FOLDERS and len(parts) > 1:
            return parts[-2]
        if self is Arrangement.ONE:
            return parts[-1]
        marks = _WORD_AND_NUMBER if self is Arrangement.WORDED else _NUMBER
        return marks.sub("", parts[-1])


@dataclass(frozen=True)
class Layout:
    """The way in which the files of one side became images.

    An image has `least` to `most` files; where there are several they are called `first` to `last`.
    `sequences` are folders of frames, where ids are SEQUENCE/FRAME; else 0.
    """

    least: int = 1
    most: int = 1
    first: str = ""
    last: str = ""
    sequences: int = 0

    def describe(self) -> str:
        """Return in words what is not one file an image with the id as its name; else "".

        >>> Layout().describe()
        ''
        >>> Layout(3, 5, "ID_0", "ID_4").describe()
        '3 to 5 files an image: ID_0 .. ID_4'
        >>> Layout(sequences=2).describe()
        '2 sequences'
        """
        number = f"{self.least} to {self.most}" if self.least < self.most else f"{self.most}"
        several = f"{number} files an image: {self.first} .. {self.last}" if self.most > 1 else ""
        frames = counted(self.sequences, "sequence") if self.sequences else ""
        return ", ".join(filter(None, (several, frames)))

    @classmethod
    def of_files(cls, files: Mapping[str, Sequence[Path]]) -> Layout:
        """Return how the files of a side became images: the files of each id, of some one or more.

        An id with "/" in it is SEQUENCE/FRAME.
        """
        sizes, sequences = list[int](), set[str]()
        for image_id, paths in files.items():
            if paths:
                sizes.append(len(paths))
                sequences |= {image_id.rpartition("/")[0]} if "/" in image_id else set()
        if max(sizes, default=1) == 1:
            return cls(sequences=len(sequences))
        image_id = max(files, key=lambda i: len(files[i]))
        examples = []
        for path in (files[image_id][0], files[image_id][-1]):
            name, folder = id_of(path), show(path.parent.name)
            if name == image_id:
                name = f"{folder}/ID"
            else:
                name = f"ID/{name}" if folder == image_id else name.replace(image_id, "ID", 1)
            examples.append(name)
        return cls(min(sizes), max(sizes), examples[0], examples[1], len(sequences))

    @classmethod
    def from_mapping(cls, values: object) -> Layout | None:
        """Return the layout that `dataclasses.asdict` wrote; None for anything else."""
        if not isinstance(values, Mapping):
            return None
        numbers = [values.get(name) for name in ("least", "most", "sequences")]
        names = [values.get(name) for name in ("first", "last")]
        sound = all(isinstance(n, int) for n in numbers) and all(isinstance(n, str) for n in names)
        return cls(**{f.name: values[f.name] for f in fields(cls)}) if sound else None


class FilesOfSide(NamedTuple):
    """The files of predictions, or of ground truth, by image id.

    doubled : ids that have several files without being of one arrangement
    """

    files: Files
    doubled: set[str]
    layout: Layout


class Grouping(NamedTuple):
    """Both sides, and the ids that count; wanted is None where all do."""

    wanted: set[str] | None
    pred: FilesOfSide
    gt: FilesOfSide


@dataclass(frozen=True)
class Pair:
    """One image: its id, its prediction's files (none where missing counts as zero), its truth's.

    Several prediction files are label maps, several ground-truth files are annotators, in natural
    order of their names.
    """

    image_id: str
    pred_paths: tuple[Path, ...]
    gt_paths: tuple[Path, ...]


class _File(NamedTuple):
    """A file below one of its side's folders; parts are the names of its folders and its own."""

    path: Path
    root: Path
    parts: tuple[str, ...]


_PARTS, _ROOT = attrgetter("parts"), attrgetter("root")


def pair(
    pred_dir: PathLike | None,
    gt_dir: PathLike,
    split: Split = None,
    missing: str = "error",
    **kinds: Any,
) -> list[Pair]:
    """Pair every image's prediction with its ground truth, sorted by id.

    missing : a ground truth without prediction is an "error", a pair without pred_paths ("zero"),
              or left out ("skip")
    kinds   : pred_kind, gt_kind, classes and sequences, as for `group_files`

    Raises PairingError that lists every missing, extra and doubled id.
    """
    wanted, pred, gt = group_files(pred_dir, gt_dir, split, **kinds)
    preds, gts = pred.files, gt.files
    both, problems = gts.keys() & preds.keys(), []
    needed = pred_dir and (missing == "error" or not both)
    for folder, fault, names in (
        (pred_dir, SEVERAL, pred.doubled),
        (gt_dir, SEVERAL, gt.doubled),
        (pred_dir, "no prediction for: {}", gts.keys() - both if needed else ()),
        (gt_dir, "no ground truth for: {}", (wanted or preds.keys()) - gts.keys()),
    ):
        if names:
            ids = f"{listed(sorted(names))} ({len(names)} in all)"
            problems.append(f"{show(folder)}: {fault.format(ids)}")
    if problems:
        raise PairingError("", problems)
    chosen = gts if missing == "zero" else both
    return [Pair(i, tuple(preds.get(i, ())), tuple(gts[i])) for i in sorted(chosen)]


def ground_truths(gt_dir: PathLike, split: Split = None) -> list[Pair]:
    """Every image of a ground-truth folder as a pair without prediction; see `pair`."""
    return pair(None, gt_dir, split, "zero")


def group_files(
    pred_dir: PathLike | None,
    gt_dir: PathLike,
    split: Split = None,
    pred_kind: str = "soft",
    gt_kind: str = "annotators",
    classes: Sequence[str] = (),
    sequences: bool = False,
) -> Grouping:
    """Group the files of both sides by image.

    Parameters
    ----------
    pred_dir, gt_dir : path
        The folders; no `pred_dir` for the ground truth alone.
    split : path, collection of str or None
        The images that count, ids or a file of them; without it every ground truth needs a
        prediction and every prediction a ground truth.
    pred_kind : str
        "soft"; "labels", where several files may belong to one image; or "classes", where
        `classes` may each have a folder, of its name or class_001, class_002 ..
    gt_kind : str
        "annotators", where several files may belong to one image, or one of one file each.
    sequences : bool
        Folders are sequences also where no name repeats.
    """
    roots = _prediction_folders(pred_dir, pred_kind, classes), [Path(gt_dir)]
    sides = [list(chain(*map(_files_below, side))) for side in roots]
    from_file = isinstance(split, str | os.PathLike)
    lines = _lines_of(split) if isinstance(split, str | os.PathLike) else split
    several = pred_kind == "labels", gt_kind == "annotators"
    depth = _depth(sides, lines, several, sequences)
    if depth > 1:
        several = False, False
        sides = [[f._replace(parts=("/".join(f.parts[-depth:]),)) for f in s] for s in sides]
    ids: list[dict[Arrangement, set[str]]] = []
    for side, may_be in zip(sides, several, strict=True):
        fitting = Arrangement if may_be else (Arrangement.ONE,)
        parts = list(map(_PARTS, side))
        ids.append({a: set(map(a.id_in, parts)) for a in fitting})
    names = [side[Arrangement.ONE] for side in ids]
    wanted = None
    if lines is not None and depth > 1:
        wanted = _wanted_paths(lines, names[0] | names[1])
    elif lines is not None:
        wanted = {id_of(line) if from_file else line for line in lines}
    chosen = _arrangements(ids, wanted)
    made = []
    for k, side in enumerate(sides):
        known = ids[1 - k][chosen[1 - k]] if wanted is None else wanted
        doubtful = _doubtful(side, chosen[k], known, names[1 - k]) if several[k] else set()
        made.append(_files_by_id(side, chosen[k], wanted, doubtful, is_truth=k == 1))
    return Grouping(wanted, *made)


def _prediction_folders(
    pred_dir: PathLike | None, pred_kind: str, classes: Sequence[str]
) -> list[Path]:
    """Return the prediction folder, or the folders of its classes if each class has its own."""
    numbered = list(map("class_{:03d}".format, range(1, len(classes) + 1)))  # as SBD's programs
    folders = [] if pred_dir is None else [Path(pred_dir)]
    for names in (numbered, classes) if pred_kind == "classes" else ():
        of_classes = [Path(pred_dir or "", name) for name in names]
        if of_classes and all(map(Path.is_dir, of_classes)):
            folders = of_classes
    return folders


def _files_below(root: Path) -> list[_File]:
    """Return the files of a folder. Raises PairingError if it has none."""
    paths = find_files(root, FORMATS)
    if not paths:
        raise PairingError(f"{show(root)}: no folder with files {', '.join(FORMATS)}")
    above = len(root.parts)
    return [_File(p, root, (*map(show, p.parts[above:-1]), id_of(p))) for p in paths]


def _depth(
    sides: Sequence[Sequence[_File]],
    lines: Collection[str] | None,
    several: tuple[bool, bool],
    sequences: bool,
) -> int:
    """Return how many of the last parts of a path are the id: more than one for sequences.

    Raises PairingError where frames of sequences may as well be several files of an image.
    """
    pred, gt = sides
    deepest = max(map(len, map(_PARTS, chain(*sides))))
    repeated = any(len({(f.root, f.parts[-1]) for f in side}) < len(side) for side in sides)
    for depth in range(2, deepest + 1) if repeated or sequences else ():
        paths = [{(f.root, "/".join(f.parts[-depth:])) for f in side} for side in sides]
        if [*map(len, paths)] != [*map(len, sides)]:
            continue
        in_pred, in_gt = ({path for _, path in side if "/" in path} for side in paths)
        by_path = in_gt & _wanted_paths(lines or (), in_gt, of_folders=False)
        shared = in_pred & in_gt if pred else by_path
        if shared and (by_path or not all(several)):
            return depth
        if shared and lines is None:
            frame = min(shared)
            raise PairingError(
                f"{show(gt[0].root)}: {frame} may be a frame of a sequence, or one of several "
                f"files of an image; expected a split file with ids as {frame} (sequences) or "
                f"{frame.split('/')[-2]} (images)"
            )
    if sequences and len({file.path.parent for file in gt}) > 1:
        raise PairingError(
            f"{show(gt[0].root)}: several folders, expected predictions in the same ones, as "
            "SEQUENCE/FRAME"
        )
    return 1


def _wanted_paths(lines: Iterable[str], ids: Collection[str], of_folders: bool = True) -> set[str]:
    """Return the ids SEQUENCE/FRAME that lines of a split mean, and the lines that mean none.

    A line is an id with any folders before it, or, with `of_folders`, a sequence.
    """
    meant: dict[str, set[str]] = {}
    for image_id in ids:
        parts = image_id.split("/")
        for k in range(len(parts) - 1):
            meant.setdefault("/".join(parts[k:]), set()).add(image_id)
            if of_folders:
                meant.setdefault("/".join(parts[k:-1]), set()).add(image_id)
    wanted = set[str]()
    for line in lines:
        *above, name = line.replace("\\", "/").rstrip("/").split("/")
        parts = [*(show(part) for part in above if part not in ("", ".")), id_of(name)]
        tails = ("/".join(parts[k:]) for k in range(len(parts)))
        wanted |= next((meant[tail] for tail in tails if tail in meant), {"/".join(parts)})
    return wanted


def _arrangements(
    ids: Sequence[dict[Arrangement, set[str]]], wanted: set[str] | None
) -> tuple[Arrangement, ...]:
    """Return both sides' arrangements, those in which most ids are known or wanted."""

    def known(two: tuple[Arrangement, ...]) -> int:
        pred, gt = map(getitem, ids, two)
        return len(pred & gt) if wanted is None else len(pred & wanted) + len(gt & wanted)

    return max(product(*ids), key=known)


def _doubtful(
    files: Sequence[_File], arrangement: Arrangement, known: set[str], others: set[str]
) -> set[str]:
    """Return the known ids that may be read in part, because a file left over could be theirs.

    others : names of files on the other side, which are images of their own
    """
    ids = set[str]()
    for file in files:
        name = file.parts[-1]
        if arrangement.id_in(file.parts) not in known and name not in others:
            ids |= {a.id_in(file.parts) for a in Arrangement}
            if arrangement in (Arrangement.NUMBERED, Arrangement.WORDED):  # ID_1 and ID_bob
                ids |= {name[: mark.start()] for mark in re.finditer("[_.-]", name)}
    return ids & known


def _files_by_id(
    files: Sequence[_File],
    arrangement: Arrangement,
    wanted: set[str] | None,
    doubtful: set[str],
    is_truth: bool,
) -> FilesOfSide:
    """Return the files of a side by id; ids of different images, or doubtful ones, are doubled."""
    groups: dict[str, list[_File]] = {}
    for file in files:
        image_id = arrangement.id_in(file.parts)
        if wanted is None or image_id in wanted:
            groups.setdefault(image_id, []).append(file)
    roots = [*dict.fromkeys(map(_ROOT, files))]
    several = {}
    for image_id, group in groups.items():
        if [*map(_ROOT, group)] != roots:  # one file, or one for each class
            several[image_id] = [_mark(image_id, file, arrangement) for file in group]
    numbers = [int(m.number) for marks in several.values() for m in marks if len(m.word) == 1]
    frames = is_truth and wanted is None and min(numbers, default=0) > 1
    doubled = set()
    for image_id, marks in several.items():
        paths = [file.path for file in groups[image_id]]
        by_annotator = arrangement is Arrangement.ONE  # ANNOTATOR/ID.seg
        folders = {path.parent.parent if by_annotator else path.parent for path in paths}
        formats = {path.suffix.lower() for path in paths}
        alike = len(folders) == len(formats) == len({mark.word for mark in marks}) == 1
        alike &= not by_annotator or formats == {".seg"}
        of_frames = is_truth and wanted is None and any(mark.is_frame for mark in marks)
        if frames or of_frames or not alike:
            doubled.add(image_id)
    by_id = {image_id: [file.path for file in group] for image_id, group in groups.items()}
    return FilesOfSide(by_id, doubled | doubtful & by_id.keys(), Layout.of_files(by_id))


class _Mark(NamedTuple):
    """The part of a file name after the id, such as "_gt" and "1"; empty inside of folders."""

    word: str
    number: str
    is_frame: bool


def _mark(image_id: str, file: _File, arrangement: Arrangement) -> _Mark:
    name = file.parts[-1]
    if arrangement is Arrangement.FOLDERS and len(file.parts) > 1:
        return _Mark("", "", _FRAME_IN_FOLDER.search(name) is not None)
    rest = name.removeprefix(image_id)
    word = rest.rstrip("0123456789")
    return _Mark(word, rest[len(word) :], _FRAME_BESIDE.search(rest) is not None)


def read_split(path: PathLike) -> list[str]:
    """Return the image ids of a split file, in its order, each once. Raises DataError.

    One id or file name per line; empty lines and lines that start with # are passed over.
    """
    return list(dict.fromkeys(map(id_of, _lines_of(path))))


def _lines_of(path: PathLike) -> list[str]:
    """Return the lines of a split file that name images or sequences. Raises DataError."""
    with reading(path, "one id per line"):
        lines = map(str.strip, read_bytes(path).decode("utf-8-sig").splitlines())
    named = [line for line in lines if line and line[0] != "#"]
    if not named:
        raise PairingError(f"{show(path)}: lists no image, expected one id per line")
    return named


def find_files(folder: PathLike, suffixes: Collection[str]) -> list[Path]:
    """Return every file below `folder` with one of `suffixes` (any case), in natural order.

    Hidden names are passed over, links followed.
    """
    names = glob("**/*", root_dir=folder, recursive=True)
    known = [name for name in names if os.path.splitext(name)[1].lower() in suffixes]
    return list(map(Path(folder).joinpath, sorted(known, key=natural)))


def natural(name: str) -> str:
    """Return a key that sorts names with their numbers by value: ID_2 before ID_10."""
    return re.sub(r"\d+", lambda number: number[0].zfill(20), name)
