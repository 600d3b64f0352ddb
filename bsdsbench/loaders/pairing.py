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
    """A rule for the image id in a path. Of equally suitable rules, the first one is used."""

    ONE = "ID"
    NUMBERED = "ID_1"
    WORDED = "ID_gt1"
    FOLDERS = "ID/NAME"

    def id_in(self, parts: Sequence[str]) -> str:
        """Return the image id that a file has under this arrangement.

        `parts` are the names of the file's folders, outermost first, and then the file's own name
        without its suffix. The id is:

        - ONE: the file name
        - NUMBERED, WORDED: the file name without an ending such as "_1" or "_gt1", if it has one
        - FOLDERS: the innermost folder; a file outside of any folder is treated as NUMBERED
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
        """Find out how many files the images of one side have, and how these files are named.

        `files` maps each image id to its files, which may be none. The names `first` and `last` are
        those of the image that has the most files.
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
        first, *_, last = (_name_with_placeholder(path, image_id) for path in files[image_id])
        return cls(min(n_files), max(n_files), first, last, len(sequences))

    @classmethod
    def from_mapping(cls, values: object) -> Layout | None:
        """Rebuild a layout from a mapping of its field names to their values.

        Returns None if a field is missing or has the wrong type.
        """
        if not isinstance(values, Mapping):
            return None
        stored: dict[str, Any] = {field.name: values.get(field.name) for field in fields(cls)}
        has_types = [isinstance(stored[f.name], type(f.default)) for f in fields(cls)]
        return cls(**stored) if all(has_types) else None


def _name_with_placeholder(path: Path, image_id: str) -> str:
    """Return a file's name with ID for the image id: "ID_1", "ID/NAME" or "FOLDER/ID"."""
    name, folder = id_of(path), show(path.parent.name)
    if name == image_id:
        return f"{folder}/ID"
    return f"ID/{name}" if folder == image_id else name.replace(image_id, "ID", 1)


class FilesOfSide(NamedTuple):
    """The files of one side, which is either the predictions or the ground truth."""

    files: Files  # maps each image id to its paths in natural order
    ambiguous: set[str]  # ids that must be refused: it is unclear which files belong to the image


class Grouping(NamedTuple):
    """The files of both sides, grouped by image id."""

    wanted: set[str] | None  # the ids that the split names, or None if there is no split
    pred: FilesOfSide
    gt: FilesOfSide


@dataclass(frozen=True)
class Pair:
    """The files of one image, in natural order of their names."""

    image_id: str
    # Several paths are label maps. If there is no path, an empty prediction is scored.
    pred_paths: tuple[Path, ...]
    gt_paths: tuple[Path, ...]  # several paths are annotators


class _File(NamedTuple):
    """A file of the predictions or of the ground truth."""

    path: Path
    root: Path  # the folder that was searched: that of all files, or that of one class
    # The folders between root and file, outermost first, and the file's name without suffix. For
    # frames of sequences there is a single entry, "SEQUENCE/FRAME".
    parts: tuple[str, ...]

    def end(self, depth: int) -> str:
        """Return the last `depth` parts, joined by slashes."""
        return "/".join(self.parts[-depth:])


def pair(
    pred_dir: PathLike | None,
    gt_dir: PathLike,
    split: Split = None,
    missing: str = "error",
    **options: Any,
) -> list[Pair]:
    """Pair each image's prediction with its ground truth, and return the pairs sorted by id.

    - missing: what to do if a ground truth has no prediction. "error" raises PairingError, "zero"
      returns a pair without `pred_paths`, and "skip" leaves the image out.
    - pred_dir, gt_dir, split, options: the parameters of `group_files`

    Raises PairingError, which reports all of these problems at once:

    - an id is ambiguous (see the top of this module)
    - an id of the split has no ground truth or, if there is no split, a prediction has none
    - a prediction is missing, and `missing` is "error"
    - `pred_dir` is given, but no image has a prediction
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
    pairs = []
    for image_id in sorted(gts if missing == "zero" else shared):
        pairs.append(Pair(image_id, tuple(preds.get(image_id, ())), tuple(gts[image_id])))
    return pairs


def ground_truths(gt_dir: PathLike, split: Split = None) -> list[Pair]:
    """List a ground-truth folder's images, or those of `split`, as pairs without a prediction."""
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
    """Group the files of the predictions and of the ground truth by image id.

    If the files are frames of sequences, the id is SEQUENCE/FRAME. Otherwise, an `Arrangement` is
    chosen for each side, which says what part of a path is the id. The two arrangements are chosen
    so that as many ids as possible occur on both sides or, if there is a split, in the split.

    - pred_dir: the folder of predictions, or None to group the ground truth alone
    - split: the wanted image ids, or the path of a file that lists ids or file names, or None
    - pred_kind: the kind of the predictions. If it is "labels", several files may belong to one
      image. If it is "classes", `pred_dir` may have a subfolder for each of the `classes`.
    - gt_kind: the kind of the ground truth. If it is "annotators", several files may belong to one
      image.
    - sequences: True to treat folders as sequences even if every file name occurs only once

    Raises PairingError if a folder has no files of a known format, or if the files may be frames
    of sequences as well as several files of an image.
    """
    roots = [] if pred_dir is None else [Path(pred_dir)]
    if roots and pred_kind == "classes":
        roots = _find_class_folders(roots[0], classes) or roots
    pred_files: list[_File] = []
    for root in roots:
        pred_files += _list_files(root)
    gt_files = _list_files(Path(gt_dir))
    if split is None and not sequences:  # the usual case: one file an image, named alike
        pred_by_name = {file.parts[-1]: [file.path] for file in pred_files}
        gt_by_name = {file.parts[-1]: [file.path] for file in gt_files}
        are_alike = pred_by_name.keys() == gt_by_name.keys()
        if are_alike and len(pred_files) == len(gt_files) == len(gt_by_name):
            return Grouping(None, FilesOfSide(pred_by_name, set()), FilesOfSide(gt_by_name, set()))
    pred_several, gt_several = pred_kind == "labels", gt_kind == "annotators"
    is_path = isinstance(split, str | os.PathLike)
    lines = _read_lines(split) if isinstance(split, str | os.PathLike) else split
    depth = _find_depth(pred_files, gt_files, lines, pred_several and gt_several, sequences)
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
    """Return the image ids that the files would have under each arrangement of files.

    If `several` is False, an image can have only one file, and ONE is the only arrangement.
    """
    possible = list(Arrangement) if several else [Arrangement.ONE]
    return {rule: {rule.id_in(file.parts) for file in files} for rule in possible}


def _find_class_folders(folder: Path, classes: Sequence[str]) -> list[Path]:
    """Return the subfolders of the classes, in their order, or [] unless every class has one.

    They may be named after the `classes`, or class_001, class_002 and so on as in the SBD code.
    """
    numbered = [f"class_{number:03d}" for number in range(1, len(classes) + 1)]
    for names in (classes, numbered):
        class_folders = [folder / name for name in names]
        if all(map(Path.is_dir, class_folders)):
            return class_folders
    return []


def _list_files(root: Path) -> list[_File]:
    """List the files of known formats below a folder, or raise PairingError if there are none."""
    paths = find_files(root, FORMATS)
    if not paths:
        raise PairingError(f"{show(root)}: no folder with files {', '.join(FORMATS)}")
    files = []
    for path in paths:
        folders = map(show, path.parts[len(root.parts) : -1])
        files.append(_File(path, root, (*folders, id_of(path))))
    return files


def _find_depth(
    pred: Sequence[_File],
    gt: Sequence[_File],
    lines: Collection[str] | None,
    both_several: bool,
    sequences: bool,
) -> int:
    """Return how many names at the end of a path form the image id.

    The depth is 1 for independent images, whose id is the file name. It is larger for frames of
    sequences: at depth 2, for example, the id is FOLDER/NAME.

    Depths above 1 are only tried if a file name occurs in several folders of one side, or if
    `sequences` is True. The result is the smallest such depth at which no two files of a side have
    the same id and at least one id occurs on both sides. (If there are no predictions, at least one
    id must occur in the split.) If no depth meets these conditions, the result is 1.

    - lines: the lines of the split, or None if there is no split
    - both_several: True if an image may have several files on both sides. FOLDER may then be the
      id as well, so files are only taken as frames if the split names frames.

    Raises PairingError in two cases: files may be either frames or several files of an image, and
    no split decides which; or `sequences` is True and no depth above 1 is found, although the
    ground truth has several folders.
    """
    names_repeat = _ends_repeat(pred, 1) or _ends_repeat(gt, 1)
    deepest = max(len(file.parts) for file in (*pred, *gt)) if names_repeat or sequences else 1
    for depth in range(2, deepest + 1):
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
    """Return True if two files below the same root have the same last `depth` parts."""
    return len({(file.root, file.end(depth)) for file in files}) < len(files)


def _resolve_split(lines: Iterable[str], ids: Collection[str], of_folders: bool = True) -> set[str]:
    """Return the ids of the frames that the lines of a split name.

    - lines: each line is an id SEQUENCE/FRAME, or the end of an id if it starts at one of the id's
      folders. A line may begin with further folders and end with a file suffix; both are ignored.
    - ids: all known ids
    - of_folders: True if a line may also name a sequence, which stands for all its frames

    A line that names none of `ids` is returned as an id itself, without its suffix, so that it is
    later reported as missing.
    """
    # Maps each end of an id, and each end of a sequence's path, to all ids that have it
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
    """Return the known ids that may have one more annotator, whose file was not assigned to them.

    Such a file belongs to no known id under `arrangement`, but belongs to one under another
    arrangement. If the arrangement is ID_1 or ID_gt1, a file such as ID_bob counts as well.

    - known: the ids of the split or, if there is no split, the ids of the other side
    - other_names: the file names on the other side. A file that has one of these names is an image
      of its own, not an annotator.
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

    The `doubtful` ids are refused. An id that has several files (or several files for one class) is
    also refused in two cases:

    - The files differ in folder, format or the word in their name (see `_is_one_image`).
    - `may_be_frames` is True and the files look like the frames of a video: the number in one of
      their names has leading zeros (see `_Ending.is_frame`), or no number on the side is 0 or 1.

    - arrangement: the arrangement that gives the ids
    - wanted: the ids to keep, or None to keep all ids
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

    The files must have the same folder, the same suffix, and the same word in the endings of their
    names. Under ONE, however, they must be ANNOTATOR/ID.seg in folders with the same parent folder.
    """
    formats = {path.suffix.lower() for path in paths}
    folders = {path.parent for path in paths}
    if arrangement is Arrangement.ONE:
        if formats != {".seg"}:
            return False
        folders = {folder.parent for folder in folders}
    return len(folders) == len(formats) == len({ending.word for ending in endings}) == 1


class _Ending(NamedTuple):
    """The ending of a file name after the image id, such as "_gt1"."""

    word: str  # the ending without its number, such as "_gt" or "_"; "" if the id is the folder
    number: str  # the digits at the end, such as "1"
    is_frame: bool  # True if the number has leading zeros, as the numbers of video frames often do


def _parse_ending(image_id: str, file: _File, arrangement: Arrangement) -> _Ending:
    """Split what follows the image id in a file name into a word and a number: "_gt" and "1"."""
    name = file.parts[-1]
    if arrangement is Arrangement.FOLDERS and len(file.parts) > 1:
        return _Ending("", "", _FRAME_IN_FOLDER.search(name) is not None)
    ending = name.removeprefix(image_id)
    word = ending.rstrip("0123456789")
    return _Ending(word, ending[len(word) :], _FRAME_BESIDE.search(ending) is not None)


def read_split(path: PathLike) -> list[str]:
    """Return the image ids that a split file lists, in the order of the file and without repeats.

    The file has one id or file name per line; empty lines and # comments are ignored. Raises
    FileFormatError if the file cannot be read, and PairingError if it lists no image.
    """
    return list(dict.fromkeys(map(id_of, _read_lines(path))))


def _read_lines(path: PathLike) -> list[str]:
    """Return the lines of a split file, stripped and without empty lines and # comments."""
    with errors_naming(path, "one id per line"):
        lines = [line.strip() for line in read_bytes(path).decode("utf-8-sig").splitlines()]
    entries = [line for line in lines if line and line[0] != "#"]
    if not entries:
        raise PairingError(f"{show(path)}: lists no image, expected one id per line")
    return entries


def find_files(folder: PathLike, suffixes: Collection[str]) -> list[Path]:
    """List the files at any depth below `folder` that have one of the suffixes, in natural order.

    `suffixes` are given in lower case, such as ".png", and also match upper case. Hidden files and
    folders are ignored, and links are followed. Returns [] if the folder does not exist.
    """
    files = []
    for name in sorted(glob("**/*", root_dir=folder, recursive=True), key=natural_sort_key):
        if os.path.splitext(name)[1].lower() in suffixes:
            files.append(Path(folder, name))
    return files


def natural_sort_key(name: str) -> str:
    """Return a key for sorting names by the values of their numbers: ID_2 comes before ID_10."""
    return re.sub(r"\d+", lambda number: number[0].zfill(20), name)


def find_photos(folder: PathLike, ids: Collection[str] | None = None) -> dict[str, Path]:
    """Find the photos at any depth below a folder, and return a dict from image id to path.

    The image id is the file name without its suffix. `ids` are the images to search for, or None
    for all; images without a photo are left out. Raises PairingError if an image has two photos.
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
    """Return the folder with the photos that belong to a ground-truth folder in the BSDS layout.

    There, the photos of .../groundTruth/test (or ground_truth/test) are in .../images/test. Returns
    None if the path has no such name, or if there is no such folder of photos.
    """
    gt_path = Path(gt_dir).absolute()
    parts = [re.sub(r"(?i)^ground_?truth$", "images", part) for part in gt_path.parts]
    folder = Path(*parts)
    return folder if folder.is_dir() and folder != gt_path else None
