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
ids also exist on the other side, or in the split. Numbered files may also be the frames of a video:
ID/0.png, ID/00.png and so on, names with leading zeros such as ID_001, or numbers that start above
1. Such files are annotators only if a split names their ids. An id is refused if its files have
several arrangements, or if a file is left over that may be one more annotator.

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
from itertools import chain, product
from pathlib import Path
from typing import Any, NamedTuple

from bsdsbench.errors import PairingError
from bsdsbench.io import PathLike, read_bytes, reading
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
        """Return the image id of a file, whose path is `parts`: folders, then name without suffix.

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
    sequences: int = 0  # the number of sequences if ids are SEQUENCE/FRAME

    def describe(self) -> str:
        """Describe the number of files per image and the number of sequences.

        Returns "" if every image has one file and there are no sequences.

        >>> Layout(3, 5, "ID_0", "ID_4").describe()
        '3 to 5 files an image: ID_0 .. ID_4'
        >>> Layout(sequences=2).describe(), Layout().describe()
        ('2 sequences', '')
        """
        number = f"{self.least} to {self.most}" if self.least < self.most else f"{self.most}"
        several = f"{number} files an image: {self.first} .. {self.last}" if self.most > 1 else ""
        frames = counted(self.sequences, "sequence") if self.sequences else ""
        return ", ".join(filter(None, (several, frames)))

    @classmethod
    def of_files(cls, files: Mapping[str, Sequence[Path]]) -> Layout:
        """Derive the layout from a mapping of each image id to its files.

        `first` and `last` become the first and the last file of the image with most files, with ID
        in place of the image id: "ID_1", "ID/NAME" or "ANNOTATOR/ID". Images without files are
        ignored. An id with a slash is SEQUENCE/FRAME.
        """
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
        """Rebuild a layout from its fields by name, as `dataclasses.asdict` returns them.

        Returns None if the value is not a mapping, or if a field is missing or has a wrong type.
        """
        if not isinstance(values, Mapping):
            return None
        stored: dict[str, Any] = {field.name: values.get(field.name) for field in fields(cls)}
        has_types = [isinstance(stored[f.name], type(f.default)) for f in fields(cls)]
        return cls(**stored) if all(has_types) else None


class FilesOfSide(NamedTuple):
    """The files of the predictions, or of the ground truth."""

    files: Files  # image id -> paths, in natural order
    # ids that are refused: their files may not be one image, or one more file may belong to them
    doubled: set[str]
    layout: Layout


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


def pair(
    pred_dir: PathLike | None,
    gt_dir: PathLike,
    split: Split = None,
    missing: str = "error",
    **kinds: Any,
) -> list[Pair]:
    """Pair each image's prediction with its ground truth, and return the pairs sorted by id.

    `missing` decides what happens to a ground truth without a prediction: "error" raises
    PairingError, "zero" returns a pair without `pred_paths`, and "skip" leaves the image out. The
    other parameters are passed to `group_files`.

    Raises PairingError, with all problems at once, also if an id is refused (see the module), if an
    id of the split or, without a split, a prediction has no ground truth, and if `pred_dir` is
    given but no image has a prediction.
    """
    wanted, pred, gt = group_files(pred_dir, gt_dir, split, **kinds)
    preds, gts = pred.files, gt.files
    shared = gts.keys() & preds.keys()
    faults = [(pred_dir, SEVERAL, pred.doubled), (gt_dir, SEVERAL, gt.doubled)]
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
    pred_roots = _find_prediction_folders(pred_dir, pred_kind, classes)
    sides = [list(chain(*map(_list_files, pred_roots))), _list_files(Path(gt_dir))]
    several = pred_kind == "labels", gt_kind == "annotators"
    is_path = isinstance(split, str | os.PathLike)
    lines = _read_lines(split) if isinstance(split, str | os.PathLike) else split
    depth = _find_depth(sides, lines, several, sequences)
    if depth > 1:  # the id is the path SEQUENCE/FRAME, and each frame has one file
        several = False, False
        sides = [[f._replace(parts=("/".join(f.parts[-depth:]),)) for f in side] for side in sides]
    ids: list[dict[Arrangement, set[str]]] = []  # of each side: arrangement -> its ids
    for side, may_be_several in zip(sides, several, strict=True):
        arrangements = Arrangement if may_be_several else (Arrangement.ONE,)
        ids.append({a: {a.id_in(file.parts) for file in side} for a in arrangements})
    names = [ids_of_side[Arrangement.ONE] for ids_of_side in ids]
    wanted = None
    if lines is not None and depth > 1:
        wanted = _resolve_split(lines, names[0] | names[1])
    elif lines is not None:
        wanted = {id_of(line) if is_path else line for line in lines}
    # Number of known ids for each pair of arrangements
    n_known = {
        (a, b): len(pred & gt) if wanted is None else len(pred & wanted) + len(gt & wanted)
        for (a, pred), (b, gt) in product(ids[0].items(), ids[1].items())
    }
    chosen = max(n_known, key=n_known.__getitem__)
    grouped = []
    for k, side in enumerate(sides):
        other = 1 - k
        known = ids[other][chosen[other]] if wanted is None else wanted
        doubtful = _find_doubtful_ids(side, chosen[k], known, names[other]) if several[k] else set()
        grouped.append(_group_by_id(side, chosen[k], wanted, doubtful, is_truth=k == 1))
    return Grouping(wanted, *grouped)


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
    sides: Sequence[Sequence[_File]],
    lines: Collection[str] | None,
    several: tuple[bool, bool],
    sequences: bool,
) -> int:
    """Return how many names at the end of a path form the id: 1, or more for frames of sequences.

    Depth 2, for example, makes FOLDER/NAME the id. Larger depths than 1 are only tried if a file
    name occurs in several folders of one side, or with `sequences`. The smallest depth is returned
    at which no two files of a side have the same id, and some id is on both sides (in the split, if
    there are no predictions); if there is none, 1.

    sides: files of the predictions, and of the ground truth. lines: the lines of the split, if any.
    several: for each side, True if an image may have several files.

    If both sides may have several files, FOLDER may as well be the id. Then only a split that names
    frames makes them frames, and without a split PairingError is raised. With `sequences` it is
    also raised if the ground truth has several folders and the predictions have others.
    """
    pred, gt = sides
    deepest = max(len(file.parts) for side in sides for file in side)
    names_repeat = any(len({(f.root, f.parts[-1]) for f in side}) < len(side) for side in sides)
    depths = range(2, deepest + 1) if names_repeat or sequences else ()
    for depth in depths:
        ends = [{(f.root, "/".join(f.parts[-depth:])) for f in side} for side in sides]
        if any(len(end) < len(side) for end, side in zip(ends, sides, strict=True)):
            continue  # two files of a side have the same end
        pred_frames, gt_frames = ({end for _, end in side if "/" in end} for side in ends)
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
    """Return the ids SEQUENCE/FRAME that the lines of a split name.

    A line is a whole id, or the end of one that begins after a slash and still has a folder. With
    `of_folders` it may also name a sequence, which means all its frames. The line may begin with
    further folders and end with a suffix; both are ignored. A line that names none of `ids` is
    returned without its suffix, so that it is reported as missing.
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
        ends = ("/".join(parts[k:]) for k in range(len(parts)))  # the longest first
        matches = (ids_of_path[end] for end in ends if end in ids_of_path)
        wanted |= next(matches, {"/".join(parts)})
    return wanted


def _find_doubtful_ids(
    files: Sequence[_File], arrangement: Arrangement, known: set[str], other_names: set[str]
) -> set[str]:
    """Return the known ids to which a file may belong that was not assigned to them.

    By the `arrangement`, some files belong to no known id. If such a file belongs to a known id by
    another arrangement, it may be one more annotator of that image. So may ID_bob if ID_1 exists.

    known: the ids of the split, or, without a split, the ids on the other side.
    other_names: names of the files on the other side; a file with such a name is an image of its
        own, and no annotator.
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
    is_truth: bool,
) -> FilesOfSide:
    """Group the files of a side by image id, and find the ids that must be refused (`doubled`).

    These are the `doubtful` ids, and ids with several files (or several for a class) if

    - the files differ in folder, format or the word in their name (`_is_one_image`), or
    - they may be the frames of a video. This is only asked of ground truth without a split: a file
      has a number with leading zeros (`_Ending.is_frame`), or the side's numbers start above 1.

    wanted: the ids to keep, or None for all.
    """
    groups: dict[str, list[_File]] = {}
    for file in files:
        image_id = arrangement.id_in(file.parts)
        if wanted is None or image_id in wanted:
            groups.setdefault(image_id, []).append(file)
    roots = [*dict.fromkeys(file.root for file in files)]  # more than one if classes have folders
    endings_by_id = {}
    for image_id, group in groups.items():
        if [file.root for file in group] != roots:
            endings_by_id[image_id] = [_parse_ending(image_id, f, arrangement) for f in group]
    all_endings = chain.from_iterable(endings_by_id.values())
    numbers = [int(ending.number) for ending in all_endings if len(ending.word) == 1]  # "_1"
    may_be_frames = is_truth and wanted is None
    start_above_1 = min(numbers, default=0) > 1
    doubled = set()
    for image_id, endings in endings_by_id.items():
        paths = [file.path for file in groups[image_id]]
        are_frames = may_be_frames and (start_above_1 or any(e.is_frame for e in endings))
        if are_frames or not _is_one_image(paths, endings, arrangement):
            doubled.add(image_id)
    by_id = {image_id: [file.path for file in group] for image_id, group in groups.items()}
    return FilesOfSide(by_id, doubled | doubtful & by_id.keys(), Layout.of_files(by_id))


def _is_one_image(
    paths: Sequence[Path], endings: Sequence[_Ending], arrangement: Arrangement
) -> bool:
    """Return True if files with the same id may be the annotators of one image.

    They must have the same folder, the same suffix, and the same word in the ending of their names.
    In the arrangement ONE all names are equal, so the files must be ANNOTATOR/ID.seg in folders
    that lie side by side.
    """
    formats = {path.suffix.lower() for path in paths}
    folders = {path.parent for path in paths}
    if arrangement is Arrangement.ONE:
        if formats != {".seg"}:
            return False
        folders = {folder.parent for folder in folders}
    return len(folders) == len(formats) == len({ending.word for ending in endings}) == 1


class _Ending(NamedTuple):
    """The ending of a file name after the image id, such as "_gt1".

    If the id is the folder, word and number are "".
    """

    word: str  # the ending without the number, "_gt"; a single separator, "_", if there is no word
    number: str  # the digits at the end, "1"
    is_frame: bool  # True if the number begins with a zero, as the numbers of video frames may


def _parse_ending(image_id: str, file: _File, arrangement: Arrangement) -> _Ending:
    """Split the ending of a file name after the image id into word and number.

    A number that begins with 0 may number a frame; if the id is not a folder, only a number of
    three or more digits may, because annotators may be called ID_0 and ID_01.
    """
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
    with reading(path, "one id per line"):
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
    names = glob("**/*", root_dir=folder, recursive=True)
    matching = [name for name in names if os.path.splitext(name)[1].lower() in suffixes]
    return list(map(Path(folder).joinpath, sorted(matching, key=natural_sort_key)))


def natural_sort_key(name: str) -> str:
    """Return a sort key that orders the numbers in names by value: ID_2 before ID_10."""
    return re.sub(r"\d+", lambda number: number[0].zfill(20), name)


def find_photos(folder: PathLike, ids: Collection[str] | None = None) -> dict[str, Path]:
    """Return the photos in a folder and below it, by image id (the file name without its suffix).

    `ids` are the images to search for, or None for all; images without a photo are left out. Raises
    PairingError if an image has two photos.
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

    In the BSDS layout, .../images/test belongs to .../groundTruth/test: "images" replaces every
    folder name groundTruth or ground_truth (in any case) in the path. None means that the path has
    no such name, or that there is no such folder of photos.
    """
    gt_path = Path(gt_dir).absolute()
    parts = [re.sub(r"(?i)^ground_?truth$", "images", part) for part in gt_path.parts]
    folder = Path(*parts)
    return folder if folder.is_dir() and folder != gt_path else None
