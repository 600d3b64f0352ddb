"""Pairing of predictions with ground truth by image id.

The image id is the file's name without its suffix, in any folder below the given one. Several files
may belong to one image, as annotators or as predicted label maps, in these arrangements only:

| arrangement | recognised by |
|---|---|
| ID_1.png, ID_2.png (also ID-1, ID.1, ID_0, ID_01) | the ids of the other side, or of a split |
| ID_gt1.png, ID_annotator2.png: a word and a number | the same |
| ID/NAME.png | the same |
| ANNOTATOR/ID.seg (BSDS300) | the format |

"Side" means the predictions or the ground truth. A side has the arrangement by which most of its
ids also exist on the other side, or in the split. Numbered files may also be the frames of a video,
if their numbers have leading zeros (ID/00.png, ID_001.png) or start above 1. Such files are
annotators only if a split names their ids. An id is refused if its files have several arrangements,
or if a file is left over that may be one more annotator.

If the same file names occur in several folders, and both sides have these folders, the images are
frames of sequences, and the id is the path SEQUENCE/FRAME. A split lists such ids, or sequences.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from glob import glob
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from bsdsbench.errors import PairingError
from bsdsbench.io import PathLike, errors_naming, read_bytes
from bsdsbench.loaders.formats.pictures import FORMATS, IMAGE_SUFFIXES, id_of
from bsdsbench.text import counted, listed, show

Files = dict[str, list[Path]]
Split = PathLike | Collection[str] | None
SEVERAL = (
    "several files for: {}; expected one, or all of them annotators as ID_1, ID_2 .., ID/NAME or "
    "ANNOTATOR/ID.seg (frames, and ground truth alone: with a split file)"
)
# Endings of file names after an image id: "_1"; "_gt1" or "_gt_1"
_NUMBER = re.compile(r"(?<=.)[_.-]\d+$")
_WORD_AND_NUMBER = re.compile(r"(?<=.)[_.-][A-Za-z]+[_.-]?\d+$")
# Numbers at the end of a name that number the frames of a video: 0, 00, 01, 001 .. in a folder of
# the image's own; with three digits or more among other images, where annotators may be _0 and _01
_FRAME_IN_FOLDER = re.compile(r"(?<!\d)0\d*$")
_FRAME_BESIDE = re.compile(r"(?<!\d)0\d\d+$")


class Arrangement(Enum):
    """The part of a path that is the image id. Among equally good members the first is taken."""

    ONE = "ID"
    NUMBERED = "ID_1"
    WORDED = "ID_gt1"
    FOLDERS = "ID/NAME"

    def id_in(self, parts: Sequence[str]) -> str:
        """Return the image id of a file with these `parts`: its folders, and its name.

        - ONE: the name
        - NUMBERED, WORDED: the name without an ending such as "_1" or "_gt1", if it has one
        - FOLDERS: the innermost folder; a file that lies in no folder is treated as NUMBERED
        """
        if self is Arrangement.FOLDERS and len(parts) > 1:
            return parts[-2]
        name = parts[-1]
        if self is Arrangement.ONE:
            return name
        ending = _WORD_AND_NUMBER if self is Arrangement.WORDED else _NUMBER
        return ending.sub("", name)


@dataclass(frozen=True)
class Layout:
    """The number of files per image on one side, and their names."""

    least: int = 1  # the smallest number of files of an image
    most: int = 1  # the largest number of files of an image
    first: str = ""  # the name of the first of several files, such as "ID_1"; ID is the image id
    last: str = ""  # the name of the last of them
    sequences: int = 0  # the number of sequences, if ids are SEQUENCE/FRAME

    def describe(self) -> str:
        """Describe the layout, or return "" if every image has one file, without sequences.

        >>> Layout(3, 5, "ID_0", "ID_4").describe()
        '3 to 5 files an image: ID_0 .. ID_4'
        >>> Layout(sequences=2).describe(), Layout().describe()
        ('2 sequences', '')
        """
        phrases = []
        if self.most > 1:
            number = f"{self.least} to {self.most}" if self.least < self.most else f"{self.most}"
            phrases.append(f"{number} files an image: {self.first} .. {self.last}")
        if self.sequences:
            phrases.append(counted(self.sequences, "sequence"))
        return ", ".join(phrases)

    @classmethod
    def of_files(cls, files: Mapping[str, Sequence[Path]]) -> Layout:
        """Return the layout of {image id: its files}. Images without files are ignored.

        The files of the image with most files are the example: `first` and `last`.
        """
        n_files = []
        sequences = set()
        for image_id, paths in files.items():
            if paths:
                n_files.append(len(paths))
                if "/" in image_id:  # SEQUENCE/FRAME
                    sequences.add(image_id.rpartition("/")[0])
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
        """Rebuild a layout from its fields by name, or return None if they are not all there."""
        if not isinstance(values, Mapping):
            return None
        stored: dict[str, Any] = {field.name: values.get(field.name) for field in fields(cls)}
        has_types = [isinstance(stored[f.name], type(f.default)) for f in fields(cls)]
        return cls(**stored) if all(has_types) else None


class FilesOfSide(NamedTuple):
    """The files of the predictions, or of the ground truth."""

    files: Files  # image id -> paths, in natural order
    ambiguous: set[str]  # ids that are refused: their files may not be those of one image

    @property
    def layout(self) -> Layout:
        """The number of files per image, and their names."""
        return Layout.of_files(self.files)


class Grouping(NamedTuple):
    """The files of both sides, grouped by image id."""

    wanted: set[str] | None  # the ids that a split names; None without a split: all are wanted
    pred: FilesOfSide
    gt: FilesOfSide


@dataclass(frozen=True)
class Pair:
    """The files of one image, in natural order of their names."""

    image_id: str
    pred_paths: tuple[Path, ...]  # several are label maps; none: an empty prediction is scored
    gt_paths: tuple[Path, ...]  # several are annotators


class _File(NamedTuple):
    """A file of the predictions or of the ground truth."""

    path: Path
    root: Path  # the folder in which files were searched for: of all files, or of a class
    # The folders between root and file, outermost first, and the file's name without suffix. For
    # frames of sequences there is a single entry, "SEQUENCE/FRAME".
    parts: tuple[str, ...]

    def end(self, depth: int) -> str:
        """Return the last `depth` parts as a path."""
        return "/".join(self.parts[-depth:])


def pair(
    pred_dir: PathLike | None,
    gt_dir: PathLike,
    split: Split = None,
    missing: str = "error",
    **options: Any,
) -> list[Pair]:
    """Pair each image's prediction with its ground truth, and return the pairs sorted by id.

    `missing` decides what happens to a ground truth without a prediction: "error" raises
    PairingError, "zero" returns a pair without `pred_paths`, and "skip" leaves the image out. The
    other parameters are those of `group_files`.

    Raises PairingError with all problems at once: ids that are refused, ids of the split (without a
    split, predictions) that have no ground truth, and no prediction at all although `pred_dir` is
    given.
    """
    wanted, pred, gt = group_files(pred_dir, gt_dir, split, **options)
    preds, gts = pred.files, gt.files
    shared = gts.keys() & preds.keys()
    faults = [(pred_dir, SEVERAL, pred.ambiguous), (gt_dir, SEVERAL, gt.ambiguous)]
    if pred_dir and (missing == "error" or not shared):
        faults.append((pred_dir, "no prediction for: {}", gts.keys() - shared))
    faults.append((gt_dir, "no ground truth for: {}", (wanted or preds.keys()) - gts.keys()))
    problems = []
    for folder, fault, ids in faults:
        if ids:
            examples = f"{listed(sorted(ids))} ({len(ids)} in all)"
            problems.append(f"{show(folder)}: {fault.format(examples)}")
    if problems:
        raise PairingError("", problems)
    chosen = gts if missing == "zero" else shared
    return [Pair(i, tuple(preds.get(i, ())), tuple(gts[i])) for i in sorted(chosen)]


def ground_truths(gt_dir: PathLike, split: Split = None) -> list[Pair]:
    """Return the images of a ground-truth folder as pairs without a prediction, as `pair` does."""
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
    """Group the files of predictions and ground truth by image id.

    The id is SEQUENCE/FRAME if the files are frames of sequences. Otherwise each side has an
    `Arrangement`, which says what part of a path is the id. The two are chosen so that as many ids
    as possible are on both sides, or in the split; among equals the first in the Enum is taken.

    - pred_dir: None for the ground truth alone
    - split: ids of the wanted images, or a file that lists ids or file names; None for all
    - pred_kind: "soft", "labels" (several files may belong to one image) or "classes" (each of the
      `classes` may have a folder, CLASS or class_001, class_002 ..)
    - gt_kind: "annotators" (several files may belong to one image), or a kind with one file
    - sequences: treat folders as sequences even if no file name occurs twice
    """
    pred_files: list[_File] = []
    for root in _find_prediction_folders(pred_dir, pred_kind, classes):
        pred_files += _list_files(root)
    gt_files = _list_files(Path(gt_dir))
    pred_several, gt_several = pred_kind == "labels", gt_kind == "annotators"
    is_path = isinstance(split, str | os.PathLike)
    lines = _read_lines(split) if isinstance(split, str | os.PathLike) else split
    both_several = pred_several and gt_several
    depth = _find_depth(pred_files, gt_files, lines, both_several, sequences)
    if depth > 1:  # the id is the path SEQUENCE/FRAME, and each frame has one file
        pred_several = gt_several = False
        pred_files = [file._replace(parts=(file.end(depth),)) for file in pred_files]
        gt_files = [file._replace(parts=(file.end(depth),)) for file in gt_files]
    pred_ids = _ids_by_arrangement(pred_files, pred_several)
    gt_ids = _ids_by_arrangement(gt_files, gt_several)
    pred_names, gt_names = pred_ids[Arrangement.ONE], gt_ids[Arrangement.ONE]
    wanted = None
    if lines is not None and depth > 1:
        wanted = _resolve_split(lines, pred_names | gt_names)
    elif lines is not None:
        wanted = {id_of(line) if is_path else line for line in lines}

    def count_known_ids(arrangements: tuple[Arrangement, Arrangement]) -> int:
        pred, gt = pred_ids[arrangements[0]], gt_ids[arrangements[1]]
        return len(pred & gt) if wanted is None else len(pred & wanted) + len(gt & wanted)

    # The files are grouped by the id that these arrangements give
    pred_by, gt_by = max(product(pred_ids, gt_ids), key=count_known_ids)
    pred_doubtful, gt_doubtful = set[str](), set[str]()
    if pred_several:
        known = gt_ids[gt_by] if wanted is None else wanted
        pred_doubtful = _find_doubtful_ids(pred_files, pred_by, known, gt_names)
    if gt_several:
        known = pred_ids[pred_by] if wanted is None else wanted
        gt_doubtful = _find_doubtful_ids(gt_files, gt_by, known, pred_names)
    return Grouping(
        wanted,
        _group_by_id(pred_files, pred_by, wanted, pred_doubtful, may_be_frames=False),
        _group_by_id(gt_files, gt_by, wanted, gt_doubtful, may_be_frames=wanted is None),
    )


def _ids_by_arrangement(files: Sequence[_File], several: bool) -> dict[Arrangement, set[str]]:
    """Return the ids that the files have by each arrangement; without `several`, by ONE alone."""
    ids = {}
    for arrangement in Arrangement if several else (Arrangement.ONE,):
        ids[arrangement] = {arrangement.id_in(file.parts) for file in files}
    return ids


def _find_prediction_folders(
    pred_dir: PathLike | None, pred_kind: str, classes: Sequence[str]
) -> list[Path]:
    """Return the folders that hold the predictions, or [] if `pred_dir` is None.

    There is one folder, `pred_dir`, except if `pred_kind` is "classes" and every class has a folder
    of its own in `pred_dir`: CLASS, or class_001, class_002 .. as in SBD's programs.
    """
    if pred_dir is None:
        return []
    folder = Path(pred_dir)
    if pred_kind == "classes" and classes:
        numbered = [f"class_{number:03d}" for number in range(1, len(classes) + 1)]
        for names in (classes, numbered):
            class_folders = [folder / name for name in names]
            if all(map(Path.is_dir, class_folders)):
                return class_folders
    return [folder]


def _list_files(root: Path) -> list[_File]:
    """List the files with known suffixes below a folder, at any depth, in natural order.

    Raises PairingError if there are none, or no such folder.
    """
    paths = find_files(root, FORMATS)
    if not paths:
        raise PairingError(f"{show(root)}: no folder with files {', '.join(FORMATS)}")
    n_above = len(root.parts)
    return [_File(p, root, (*map(show, p.parts[n_above:-1]), id_of(p))) for p in paths]


def _find_depth(
    pred: Sequence[_File],
    gt: Sequence[_File],
    lines: Collection[str] | None,
    both_several: bool,
    sequences: bool,
) -> int:
    """Return how many names at the end of a path form the id: 1, or more for frames of sequences.

    Depth 2, for example, makes FOLDER/NAME the id. Larger depths than 1 are only tried if a file
    name occurs in several folders of one side, or with `sequences`. The smallest depth is returned
    at which no two files of a side have the same id, and some id is on both sides (in the split,
    whose `lines` are given, if there are no predictions); if there is none, 1.

    If images may have several files on both sides (`both_several`), FOLDER may as well be the id.
    Then only a split that names frames makes them frames, and without a split PairingError is
    raised. With `sequences` it is also raised if the ground truth has several folders and the
    predictions have others.
    """
    names_repeat = _ends_repeat(pred, 1) or _ends_repeat(gt, 1)
    deepest = max(len(file.parts) for file in (*pred, *gt))
    for depth in range(2, deepest + 1) if names_repeat or sequences else ():
        if _ends_repeat(pred, depth) or _ends_repeat(gt, depth):
            continue
        pred_frames = {file.end(depth) for file in pred if len(file.parts) > 1}
        gt_frames = {file.end(depth) for file in gt if len(file.parts) > 1}
        split_frames = gt_frames & _resolve_split(lines or (), gt_frames, of_folders=False)
        shared = pred_frames & gt_frames if pred else split_frames
        if shared and (split_frames or not both_several):
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


def _ends_repeat(files: Sequence[_File], depth: int) -> bool:
    """Return True if two files below one root have the same last `depth` parts."""
    return len({(file.root, file.end(depth)) for file in files}) < len(files)


def _resolve_split(lines: Iterable[str], ids: Collection[str], of_folders: bool = True) -> set[str]:
    """Return the ids SEQUENCE/FRAME that the lines of a split name.

    A line is a whole id, or the end of one, from a folder on. With `of_folders` it may also name a
    sequence, which means all its frames. The line may begin with further folders and end with a
    suffix; both are ignored. A line that names none of `ids` is returned without its suffix, so
    that it is reported as missing.
    """
    ids_of_path: dict[str, set[str]] = {}  # end of an id, or of its sequence -> all such ids
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
        named = {"/".join(parts)}
        for k in range(len(parts)):  # the longest end first
            end = "/".join(parts[k:])
            if end in ids_of_path:
                named = ids_of_path[end]
                break
        wanted |= named
    return wanted


def _find_doubtful_ids(
    files: Sequence[_File], arrangement: Arrangement, known: set[str], other_names: set[str]
) -> set[str]:
    """Return the known ids of which a file may be one more annotator that was not assigned to them.

    Such a file belongs to no known id by `arrangement`, but to one by another arrangement; so may
    ID_bob if ID_1 exists. `known` are the ids of the split, or, without a split, of the other side.
    A file that has one of `other_names`, the names on the other side, is an image of its own.
    """
    ids = set[str]()
    for file in files:
        name = file.parts[-1]
        if arrangement.id_in(file.parts) in known or name in other_names:
            continue
        ids |= {a.id_in(file.parts) for a in Arrangement}
        if arrangement in (Arrangement.NUMBERED, Arrangement.WORDED):
            ids |= {name[: separator.start()] for separator in re.finditer("[_.-]", name)}
    return ids & known


def _group_by_id(
    files: Sequence[_File],
    arrangement: Arrangement,
    wanted: set[str] | None,
    doubtful: set[str],
    may_be_frames: bool,
) -> FilesOfSide:
    """Group the files of a side by image id, and find the ids that must be refused.

    These are the `doubtful` ids, and ids with several files (or several for a class) if

    - the files differ in folder, format or the word in their name (`_is_one_image`), or
    - with `may_be_frames`, they look like the frames of a video: a file has a number with leading
      zeros (`_Ending.is_frame`), or the side's numbers start above 1.

    wanted: the ids to keep, or None for all.
    """
    groups: dict[str, list[_File]] = {}
    roots: list[Path] = []  # several if classes have folders
    for file in files:
        if file.root not in roots:
            roots.append(file.root)
        image_id = arrangement.id_in(file.parts)
        if wanted is None or image_id in wanted:
            groups.setdefault(image_id, []).append(file)
    by_id: Files = {}
    endings_by_id: dict[str, list[_Ending]] = {}
    numbers = []
    for image_id, group in groups.items():
        by_id[image_id] = [file.path for file in group]
        if [file.root for file in group] == roots:  # one file, or one for each class
            continue
        endings = [_parse_ending(image_id, file, arrangement) for file in group]
        numbers += [int(ending.number) for ending in endings if len(ending.word) == 1]  # "_1"
        endings_by_id[image_id] = endings
    start_above_1 = min(numbers, default=0) > 1
    ambiguous = doubtful & by_id.keys()
    for image_id, endings in endings_by_id.items():
        look_like_frames = start_above_1 or any(ending.is_frame for ending in endings)
        is_one_image = _is_one_image(by_id[image_id], endings, arrangement)
        if not is_one_image or (may_be_frames and look_like_frames):
            ambiguous.add(image_id)
    return FilesOfSide(by_id, ambiguous)


def _is_one_image(
    paths: Sequence[Path], endings: Sequence[_Ending], arrangement: Arrangement
) -> bool:
    """Return True if files with the same id may be the annotators of one image.

    They must have the same folder, suffix, and word in the ending of their names. In the
    arrangement ONE, they must be ANNOTATOR/ID.seg in folders that lie side by side.
    """
    formats = {path.suffix.lower() for path in paths}
    folders = {path.parent for path in paths}
    if arrangement is Arrangement.ONE:
        if formats != {".seg"}:
            return False
        folders = {folder.parent for folder in folders}
    return len(folders) == len(formats) == len({ending.word for ending in endings}) == 1


class _Ending(NamedTuple):
    """The ending of a file name after the image id, such as "_gt1"; "" if the id is the folder."""

    word: str  # the ending without the number, "_gt"; a single separator, "_", if there is no word
    number: str  # the digits at the end, "1"
    is_frame: bool  # True if the number begins with a zero, as the numbers of video frames may


def _parse_ending(image_id: str, file: _File, arrangement: Arrangement) -> _Ending:
    """Split the ending of a file name after the image id into word and number."""
    name = file.parts[-1]
    if arrangement is Arrangement.FOLDERS and len(file.parts) > 1:
        return _Ending("", "", _FRAME_IN_FOLDER.search(name) is not None)
    ending = name.removeprefix(image_id)
    word = ending.rstrip("0123456789")
    return _Ending(word, ending[len(word) :], _FRAME_BESIDE.search(ending) is not None)


def read_split(path: PathLike) -> list[str]:
    """Return the image ids in a split file in the order of the file, each once.

    The file has one id or file name per line; empty lines and # comments are ignored. Raises
    FileFormatError if the file cannot be read, and PairingError if it lists no image.
    """
    return list(dict.fromkeys(map(id_of, _read_lines(path))))


def _read_lines(path: PathLike) -> list[str]:
    """Return the lines of a split file without surrounding blanks, empty lines and # comments."""
    with errors_naming(path, "one id per line"):
        lines = [line.strip() for line in read_bytes(path).decode("utf-8-sig").splitlines()]
    entries = [line for line in lines if line and line[0] != "#"]
    if not entries:
        raise PairingError(f"{show(path)}: lists no image, expected one id per line")
    return entries


def find_files(folder: PathLike, suffixes: Collection[str]) -> list[Path]:
    """List the files at any depth below `folder` that have one of the suffixes, in natural order.

    `suffixes` are in lower case, such as ".png", and match upper case too. Hidden files and folders
    are ignored, links are followed. Returns [] if there is no such folder.
    """
    names = sorted(glob("**/*", root_dir=folder, recursive=True), key=natural_sort_key)
    return [Path(folder, n) for n in names if os.path.splitext(n)[1].lower() in suffixes]


def natural_sort_key(name: str) -> str:
    """Return a sort key that orders the numbers in names by value: ID_2 before ID_10."""
    return re.sub(r"\d+", lambda number: number[0].zfill(20), name)


def find_photos(folder: PathLike, ids: Collection[str] | None = None) -> dict[str, Path]:
    """Return the photos in a folder and below it, by image id (the file name without its suffix).

    `ids` are the images to search for, or None for all. Raises PairingError for two photos of one.
    """
    photos: dict[str, Path] = {}
    for path in find_files(folder, IMAGE_SUFFIXES):
        name = id_of(path)
        if ids is None or name in ids:
            if name in photos:
                both = f"{show(photos[name])} and {show(path)}"
                raise PairingError(f"{show(name)}: two pictures, {both}, expected one")
            photos[name] = path
    return photos


def find_photo_folder(gt_dir: PathLike) -> Path | None:
    """Return the folder with the photos that belong to a ground-truth folder, or None.

    In the BSDS layout, .../images/test belongs to .../groundTruth/test (or ground_truth).
    """
    gt_path = Path(gt_dir).absolute()
    parts = [re.sub(r"(?i)^ground_?truth$", "images", part) for part in gt_path.parts]
    folder = Path(*parts)
    return folder if folder.is_dir() and folder != gt_path else None
