"""Pairing of predictions with ground truth by image id.

The image id is the file's name without its suffix, in any folder below the given one. Several files
may belong to one image, as annotators or as predicted label maps, in these arrangements only:

| arrangement | recognised by |
|---|---|
| ID_1.png, ID_2.png (also ID-1, ID.1, ID_0, ID_01) | the ids of the other side or of a split |
| ID_gt1.png, ID_annotator2.png: a word and a number | the same |
| ID/NAME.png | the same |
| ANNOTATOR/ID.seg (BSDS300) | the format |

A side has the arrangement in which most ids are known from the other side, or from the split.
Numbered files may also be the frames of a video: numbers from 0 in folders ID/NAME or with zeros
before them, ID_001, numbers that start above 1. Such files are annotators only if a split names
their ids. An id is refused if its files have several arrangements, or if it would be read in part,
because a file left over may be another annotator.

If names repeat over folders that both sides have, the images are frames of sequences, and the id is
the path SEQUENCE/FRAME. A split file lists such ids, or sequences.
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
    """The part of a file's path that is the image id. If several members fit, the first applies."""

    ONE = "ID"
    NUMBERED = "ID_1"
    WORDED = "ID_gt1"
    FOLDERS = "ID/NAME"

    def id_in(self, parts: Sequence[str]) -> str:
        """Return the image id of a file, from the names of its folders and its file name."""
        if self is Arrangement.FOLDERS and len(parts) > 1:
            return parts[-2]
        if self is Arrangement.ONE:
            return parts[-1]
        marks = _WORD_AND_NUMBER if self is Arrangement.WORDED else _NUMBER
        return marks.sub("", parts[-1])


@dataclass(frozen=True)
class Layout:
    """How the files of one side form images.

    An image has `least` to `most` files. Several files of an image are named `first` to `last`.
    `sequences` is the number of sequences if ids are SEQUENCE/FRAME, else 0.
    """

    least: int = 1
    most: int = 1
    first: str = ""
    last: str = ""
    sequences: int = 0

    def describe(self) -> str:
        """Describe the layout in words. Return "" for one file per image with the id as its name.

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
        """Derive the layout from each image's files. Ids with a slash are SEQUENCE/FRAME."""
        n_files = [len(paths) for paths in files.values() if paths]
        sequences = {i.rpartition("/")[0] for i, paths in files.items() if paths and "/" in i}
        if max(n_files, default=1) == 1:
            return cls(sequences=len(sequences))
        image_id = max(files, key=lambda i: len(files[i]))
        examples = []
        for path in (files[image_id][0], files[image_id][-1]):
            name = id_of(path)
            folder = show(path.parent.name)
            if name == image_id:
                examples.append(f"{folder}/ID")
            elif folder == image_id:
                examples.append(f"ID/{name}")
            else:
                examples.append(name.replace(image_id, "ID", 1))
        return cls(min(n_files), max(n_files), examples[0], examples[1], len(sequences))

    @classmethod
    def from_mapping(cls, values: object) -> Layout | None:
        """Rebuild a layout from `dataclasses.asdict`, or return None for any other value."""
        if not isinstance(values, Mapping):
            return None
        numbers = [values.get(name) for name in ("least", "most", "sequences")]
        names = [values.get(name) for name in ("first", "last")]
        if not all(isinstance(n, int) for n in numbers):
            return None
        if not all(isinstance(n, str) for n in names):
            return None
        return cls(**{f.name: values[f.name] for f in fields(cls)})


class FilesOfSide(NamedTuple):
    """The files of predictions, or of ground truth, by image id.

    `doubled` are the ids of several files that have no common arrangement.
    """

    files: Files
    doubled: set[str]
    layout: Layout


class Grouping(NamedTuple):
    """The files of both sides, and the wanted ids: None if all ids are wanted."""

    wanted: set[str] | None
    pred: FilesOfSide
    gt: FilesOfSide


@dataclass(frozen=True)
class Pair:
    """The files of one image.

    `pred_paths` is empty if a missing prediction counts as zero. Several prediction files are label
    maps, several ground-truth files are annotators, in natural order of their names.
    """

    image_id: str
    pred_paths: tuple[Path, ...]
    gt_paths: tuple[Path, ...]


class _File(NamedTuple):
    """A file below one of its side's folders. `parts` are the folders' names, then its own."""

    path: Path
    root: Path
    parts: tuple[str, ...]


_PARTS, _PATH, _ROOT = map(attrgetter, ("parts", "path", "root"))


def pair(
    pred_dir: PathLike | None,
    gt_dir: PathLike,
    split: Split = None,
    missing: str = "error",
    **kinds: Any,
) -> list[Pair]:
    """Pair every image's prediction with its ground truth, sorted by id.

    A ground truth without prediction is an error, gives a pair without `pred_paths`
    (missing="zero"), or is left out (missing="skip"). `kinds` are pred_kind, gt_kind, classes and
    sequences of `group_files`. Raises PairingError that lists every missing, extra and doubled id.
    """
    wanted, pred, gt = group_files(pred_dir, gt_dir, split, **kinds)
    preds, gts = pred.files, gt.files
    shared = gts.keys() & preds.keys()
    needs_all = pred_dir and (missing == "error" or not shared)
    problems = []
    for folder, fault, ids in (
        (pred_dir, SEVERAL, pred.doubled),
        (gt_dir, SEVERAL, gt.doubled),
        (pred_dir, "no prediction for: {}", gts.keys() - shared if needs_all else ()),
        (gt_dir, "no ground truth for: {}", (wanted or preds.keys()) - gts.keys()),
    ):
        if ids:
            examples = f"{listed(sorted(ids))} ({len(ids)} in all)"
            problems.append(f"{show(folder)}: {fault.format(examples)}")
    if problems:
        raise PairingError("", problems)
    chosen = gts if missing == "zero" else shared
    return [Pair(i, tuple(preds.get(i, ())), tuple(gts[i])) for i in sorted(chosen)]


def ground_truths(gt_dir: PathLike, split: Split = None) -> list[Pair]:
    """List the images of a ground-truth folder as pairs without prediction; see `pair`."""
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
        The folders. `pred_dir` is None for the ground truth alone.
    split : path, collection of str or None
        Ids of the wanted images, or a file that lists them. None: every ground truth needs a
        prediction and every prediction a ground truth.
    pred_kind : str
        "soft", "labels" (several files may belong to one image) or "classes" (each class may have
        a folder of its name, or class_001, class_002 ..).
    gt_kind : str
        "annotators" (several files may belong to one image), or a kind with one file per image.
    classes : sequence of str
        Names of the classes.
    sequences : bool
        Treat folders as sequences even if no file name repeats.
    """
    roots = _prediction_folders(pred_dir, pred_kind, classes), [Path(gt_dir)]
    sides = [list(chain(*map(_files_below, side))) for side in roots]
    is_file = isinstance(split, str | os.PathLike)
    lines = _read_lines(split) if isinstance(split, str | os.PathLike) else split
    several = pred_kind == "labels", gt_kind == "annotators"
    depth = _find_depth(sides, lines, several, sequences)
    if depth > 1:  # the id is the path SEQUENCE/FRAME, and each frame has one file
        several = False, False
        sides = [[f._replace(parts=("/".join(f.parts[-depth:]),)) for f in s] for s in sides]
    ids: list[dict[Arrangement, set[str]]] = []  # of each side: arrangement -> its ids
    for side, may_be_several in zip(sides, several, strict=True):
        fitting = Arrangement if may_be_several else (Arrangement.ONE,)
        parts = list(map(_PARTS, side))
        ids.append({a: set(map(a.id_in, parts)) for a in fitting})
    names = [side_ids[Arrangement.ONE] for side_ids in ids]
    wanted = None
    if lines is not None and depth > 1:
        wanted = _resolve_split(lines, names[0] | names[1])
    elif lines is not None:
        wanted = {id_of(line) if is_file else line for line in lines}
    chosen = _best_arrangements(ids, wanted)
    grouped = []
    for k, side in enumerate(sides):
        other = 1 - k
        known = ids[other][chosen[other]] if wanted is None else wanted
        doubtful = _find_doubtful_ids(side, chosen[k], known, names[other]) if several[k] else set()
        grouped.append(_group_by_id(side, chosen[k], wanted, doubtful, is_truth=k == 1))
    return Grouping(wanted, *grouped)


def _prediction_folders(
    pred_dir: PathLike | None, pred_kind: str, classes: Sequence[str]
) -> list[Path]:
    """Return the prediction folder, or the folders of the classes if each class has a folder."""
    # As SBD's programs name the folders of classes
    numbered = list(map("class_{:03d}".format, range(1, len(classes) + 1)))
    folders = [] if pred_dir is None else [Path(pred_dir)]
    for names in (numbered, classes) if pred_kind == "classes" else ():
        class_folders = [Path(pred_dir or "", name) for name in names]
        if class_folders and all(map(Path.is_dir, class_folders)):
            folders = class_folders
    return folders


def _files_below(root: Path) -> list[_File]:
    """List the files of a folder. Raises PairingError if there are none."""
    paths = find_files(root, FORMATS)
    if not paths:
        raise PairingError(f"{show(root)}: no folder with files {', '.join(FORMATS)}")
    n_above = len(root.parts)
    return [_File(p, root, (*map(show, p.parts[n_above:-1]), id_of(p))) for p in paths]


def _find_depth(
    sides: Sequence[Sequence[_File]],
    lines: Collection[str] | None,
    several: tuple[bool, bool],
    sequences: bool,
) -> int:
    """Return how many parts at the end of a path form the id: more than one for sequences.

    `lines` are the lines of a split, `several` tells for each side whether an image may have
    several files. Raises PairingError if frames of sequences may also be several files of an image.
    """
    pred, gt = sides
    deepest = max(map(len, map(_PARTS, chain(*sides))))
    names_repeat = any(len({(f.root, f.parts[-1]) for f in side}) < len(side) for side in sides)
    for depth in range(2, deepest + 1) if names_repeat or sequences else ():
        paths = [{(f.root, "/".join(f.parts[-depth:])) for f in side} for side in sides]
        if [*map(len, paths)] != [*map(len, sides)]:
            continue
        pred_frames, gt_frames = ({path for _, path in side if "/" in path} for side in paths)
        split_frames = gt_frames & _resolve_split(lines or (), gt_frames, of_folders=False)
        shared = pred_frames & gt_frames if pred else split_frames
        if shared and (split_frames or not all(several)):
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


def _resolve_split(lines: Iterable[str], ids: Collection[str], of_folders: bool = True) -> set[str]:
    """Return the ids SEQUENCE/FRAME that the lines of a split name, and the lines that name none. A
    line is an id with any folders before it or, with `of_folders`, a sequence.
    """
    ids_of_path: dict[str, set[str]] = {}
    for image_id in ids:
        parts = image_id.split("/")
        for k in range(len(parts) - 1):
            ids_of_path.setdefault("/".join(parts[k:]), set()).add(image_id)
            if of_folders:
                ids_of_path.setdefault("/".join(parts[k:-1]), set()).add(image_id)
    wanted = set[str]()
    for line in lines:
        *folders, name = line.replace("\\", "/").rstrip("/").split("/")
        parts = [*(show(folder) for folder in folders if folder not in ("", ".")), id_of(name)]
        tails = ("/".join(parts[k:]) for k in range(len(parts)))
        matches = (ids_of_path[tail] for tail in tails if tail in ids_of_path)
        wanted |= next(matches, {"/".join(parts)})
    return wanted


def _best_arrangements(
    ids: Sequence[dict[Arrangement, set[str]]], wanted: set[str] | None
) -> tuple[Arrangement, ...]:
    """Return both sides' arrangements, chosen so that most ids are wanted or shared."""

    def n_known(arrangements: tuple[Arrangement, ...]) -> int:
        pred, gt = map(getitem, ids, arrangements)
        return len(pred & gt) if wanted is None else len(pred & wanted) + len(gt & wanted)

    return max(product(*ids), key=n_known)


def _find_doubtful_ids(
    files: Sequence[_File], arrangement: Arrangement, known: set[str], other_names: set[str]
) -> set[str]:
    """Return the known ids that may lack a file, because an unused file may belong to them.
    `other_names` are the file names of the other side, which are images of their own.
    """
    ids = set[str]()
    for file in files:
        name = file.parts[-1]
        if arrangement.id_in(file.parts) not in known and name not in other_names:
            ids |= {a.id_in(file.parts) for a in Arrangement}
            if arrangement in (Arrangement.NUMBERED, Arrangement.WORDED):  # ID_1 and ID_bob
                ids |= {name[: mark.start()] for mark in re.finditer("[_.-]", name)}
    return ids & known


def _group_by_id(
    files: Sequence[_File],
    arrangement: Arrangement,
    wanted: set[str] | None,
    doubtful: set[str],
    is_truth: bool,
) -> FilesOfSide:
    """Group the files of a side by image id. Ids whose files belong to different images are
    doubled, and so are `doubtful` ids.
    """
    groups: dict[str, list[_File]] = {}
    for file in files:
        image_id = arrangement.id_in(file.parts)
        if wanted is None or image_id in wanted:
            groups.setdefault(image_id, []).append(file)
    roots = [*dict.fromkeys(map(_ROOT, files))]
    marks_by_id = {}  # of the ids that have not just one file, or one file for each class
    for image_id, group in groups.items():
        if [*map(_ROOT, group)] != roots:
            marks_by_id[image_id] = [_parse_mark(image_id, file, arrangement) for file in group]
    all_marks = chain.from_iterable(marks_by_id.values())
    numbers = [int(mark.number) for mark in all_marks if len(mark.word) == 1]
    may_be_frames = is_truth and wanted is None
    start_above_1 = min(numbers, default=0) > 1
    doubled = set()
    for image_id, marks in marks_by_id.items():
        paths = list(map(_PATH, groups[image_id]))
        are_frames = may_be_frames and (start_above_1 or any(mark.is_frame for mark in marks))
        if are_frames or not _is_one_image(paths, marks, arrangement):
            doubled.add(image_id)
    by_id = {image_id: list(map(_PATH, group)) for image_id, group in groups.items()}
    return FilesOfSide(by_id, doubled | doubtful & by_id.keys(), Layout.of_files(by_id))


def _is_one_image(paths: Sequence[Path], marks: Sequence[_Mark], arrangement: Arrangement) -> bool:
    """Return True if the files share folder, format and word, as the files of one image do."""
    formats = {path.suffix.lower() for path in paths}
    folders = {path.parent for path in paths}
    if arrangement is Arrangement.ONE:  # ANNOTATOR/ID.seg
        if formats != {".seg"}:
            return False
        folders = {folder.parent for folder in folders}
    return len(folders) == len(formats) == len({mark.word for mark in marks}) == 1


class _Mark(NamedTuple):
    """The end of a file name after the id, such as "_gt" and "1"; empty in a folder ID."""

    word: str
    number: str
    is_frame: bool


def _parse_mark(image_id: str, file: _File, arrangement: Arrangement) -> _Mark:
    """Parse the end of a file name after the image id."""
    name = file.parts[-1]
    if arrangement is Arrangement.FOLDERS and len(file.parts) > 1:
        return _Mark("", "", _FRAME_IN_FOLDER.search(name) is not None)
    ending = name.removeprefix(image_id)
    word = ending.rstrip("0123456789")
    return _Mark(word, ending[len(word) :], _FRAME_BESIDE.search(ending) is not None)


def read_split(path: PathLike) -> list[str]:
    """Return the image ids of a split file, in its order and without repetition. Raises DataError.

    The file has one id or file name per line. Empty lines and lines that start with # are ignored.
    """
    return list(dict.fromkeys(map(id_of, _read_lines(path))))


def _read_lines(path: PathLike) -> list[str]:
    """Return the lines of a split file that name images or sequences. Raises DataError."""
    with reading(path, "one id per line"):
        lines = map(str.strip, read_bytes(path).decode("utf-8-sig").splitlines())
    entries = [line for line in lines if line and line[0] != "#"]
    if not entries:
        raise PairingError(f"{show(path)}: lists no image, expected one id per line")
    return entries


def find_files(folder: PathLike, suffixes: Collection[str]) -> list[Path]:
    """List the files below `folder` with one of `suffixes` (any case), in natural order.

    Hidden files are ignored, links are followed.
    """
    names = glob("**/*", root_dir=folder, recursive=True)
    matching = [name for name in names if os.path.splitext(name)[1].lower() in suffixes]
    return list(map(Path(folder).joinpath, sorted(matching, key=natural)))


def natural(name: str) -> str:
    """Return a sort key that orders the numbers in names by value: ID_2 before ID_10."""
    return re.sub(r"\d+", lambda number: number[0].zfill(20), name)
