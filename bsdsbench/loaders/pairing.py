"""Pairing of predictions with ground truth by image id.

The image id is the file name without its suffix; the file may be in any subfolder. An image may
have several files (annotators, or predicted label maps) if they are named by an `Arrangement`.

"Side" means either the predictions or the ground truth. Each side gets the arrangement that makes
the most ids match the other side or, if there is a split, the split. Numbered files may instead be
video frames, if their numbers have leading zeros (ID/00.png, ID_001.png) or start above 1; they
count as annotators only if a split lists their ids. An id is rejected as ambiguous if its files
follow several arrangements, or if an unassigned file may be one more annotator.

If the same file names occur in several folders, and both sides have these folders, the images are
frames of sequences, with ids SEQUENCE/FRAME. A split then lists such ids, or whole sequences.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from itertools import product, starmap
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import normalize

from bsdsbench.errors import Fix, InputWarning, PairingError, Problem, Setting, warn
from bsdsbench.io import PathLike, errors_naming, read_bytes
from bsdsbench.loaders.formats.pictures import FORMATS, find_files, id_of
from bsdsbench.loaders.formats.text_tables import decode_text
from bsdsbench.loaders.renaming import suggest_renaming
from bsdsbench.text import counted, grouped, listed, show

Files = dict[str, list[Path]]
Split = PathLike | Collection[str] | None
SEVERAL = (
    "several files for: {}; expected one, or all of them annotators as ID_1, ID_2 .., ID/NAME or "
    "ANNOTATOR/ID.seg (frames, and ground truth alone: with a split file; folders of other things: "
    "give one of them)"
)
# Endings of file names after an image id: "_1"; "_gt1" or "_gt_1"
_NUMBER = re.compile(r"(?<=.)[_.-]\d+$")
_WORD_AND_NUMBER = re.compile(r"(?<=.)[_.-][A-Za-z]+[_.-]?\d+$")
# Trailing numbers that look like numbers of video frames: 0, 00, 01, 001 .. in a folder per image;
# only three digits or more if images share a folder, because _0 and _01 may be annotators there
_ZEROS_IN_FOLDER = re.compile(r"(?<!\d)0\d*$")
_ZEROS_BESIDE = re.compile(r"(?<!\d)0\d\d+$")


class Arrangement(Enum):
    """A rule that extracts the image id from a path. In a tie, the first rule is used."""

    ONE = "ID"  # one file per image; several only as ANNOTATOR/ID.seg (BSDS300)
    NUMBERED = "ID_1"  # also ID-1, ID.1, ID_0, ID_01
    WORDED = "ID_gt1"  # a word and a number, also ID_annotator2
    FOLDERS = "ID/NAME"

    def id_in(self, parts: Sequence[str]) -> str:
        """Return the image id of a file under this arrangement.

        `parts` are the names of the file's folders, outermost first, and the file name without its
        suffix. The id is the last folder (FOLDERS, as in ID/NAME), the name (ONE), or the name
        without an ending as "_1" (NUMBERED, also FOLDERS without a folder) or "_gt1" (WORDED).
        """
        if self is Arrangement.FOLDERS and len(parts) > 1:
            return parts[-2]
        if self is Arrangement.ONE:
            return parts[-1]
        ending = _WORD_AND_NUMBER if self is Arrangement.WORDED else _NUMBER
        return ending.sub("", parts[-1])


@dataclass(frozen=True)
class Layout:
    """The number of files per image in the predictions or the ground truth, and their naming."""

    least: int = 1  # the smallest number of files of an image
    most: int = 1  # the largest number of files of an image
    first: str = ""  # the first of several file names, such as "ID_1"; ID stands for the image id
    last: str = ""  # the last of these names
    sequences: int = 0  # the number of sequences, if ids are SEQUENCE/FRAME

    def describe(self) -> str:
        """Describe the layout, or return "" if there is one file per image and no sequences.

        >>> Layout(3, 5, "ID_0", "ID_4").describe()
        '3 to 5 files per image: ID_0 .. ID_4'
        >>> Layout(sequences=2).describe(), Layout().describe()
        ('2 sequences', '')
        """
        number = f"{self.least} to {self.most}" if self.least < self.most else f"{self.most}"
        files = f"{number} files per image: {self.first} .. {self.last}" if self.most > 1 else ""
        sequences = counted(self.sequences, "sequence") if self.sequences else ""
        return ", ".join(filter(None, (files, sequences)))

    @classmethod
    def of_files(cls, files: Mapping[str, Sequence[Path]]) -> Layout:
        """Count the files of the images: `files` maps image ids to files, () if an image has none.

        Images without files are ignored. `first` and `last` are the file names of the image with
        the most files, with ID in place of its id: "ID_1", "ID/NAME" or "FOLDER/ID".
        """
        n_files, sequences = list[int](), set[str]()
        for image_id, paths in files.items():
            sequence, slash, _ = image_id.rpartition("/")  # an id may be SEQUENCE/FRAME
            if paths:
                n_files.append(len(paths))
                if slash:
                    sequences.add(sequence)
        if max(n_files, default=1) == 1:
            return cls(sequences=len(sequences))
        image_id = max(files, key=lambda i: len(files[i]))  # the image with the most files
        names = [_name_with_placeholder(path, image_id) for path in files[image_id]]
        least, most = min(n_files), max(n_files)
        return cls(least, most, first=names[0], last=names[-1], sequences=len(sequences))

    @classmethod
    def from_mapping(cls, values: object) -> Layout | None:
        """Rebuild a layout from a dict of its fields; None if one is missing or of a wrong type."""
        if not isinstance(values, Mapping):
            return None
        types = {field.name: type(field.default) for field in fields(cls)}
        stored: dict[str, Any] = {name: values.get(name) for name in types}
        return cls(**stored) if all(isinstance(stored[n], types[n]) for n in types) else None


def _name_with_placeholder(path: Path, image_id: str) -> str:
    """Return a file's name with ID for the image id: "ID_1", "ID/NAME" or "FOLDER/ID"."""
    name, folder = id_of(path), show(path.parent.name)
    if name == image_id:
        return f"{folder}/ID"
    return f"ID/{name}" if folder == image_id else name.replace(image_id, "ID", 1)


class FilesOfSide(NamedTuple):
    """The files of one side (the predictions or the ground truth)."""

    files: Files  # maps each image id, in sorted order, to its paths in natural order
    ambiguous: set[str]  # ids to reject, because it is unclear which files belong to the image


class Grouping(NamedTuple):
    """The files of both sides, grouped by image id."""

    wanted: set[str] | None  # the ids listed in the split, or None if there is no split
    pred: FilesOfSide
    gt: FilesOfSide


@dataclass(frozen=True)
class Pair:
    """The files of one image, in natural order of their names."""

    image_id: str
    # Several files are label maps. If there is no file, an empty prediction is scored.
    pred_paths: tuple[Path, ...]
    gt_paths: tuple[Path, ...]  # several files are one per annotator


# Advice for a JSON file in place of a folder
_COCO = (
    "COCO's JSON: for predictions and ground truth, with --metrics contour or segmentation",
    "in Python: evaluate_items of loaders.formats.coco.CocoItems",
)


class _File(NamedTuple):
    """A file of the predictions or of the ground truth."""

    path: Path
    root: Path  # the searched folder: that of all files, or that of one class
    # The folders between root and file, outermost first, and the file name without its suffix. A
    # frame of a sequence has a single entry, "SEQUENCE/FRAME".
    parts: tuple[str, ...]

    def end(self, depth: int) -> str:
        """Return the last `depth` parts, joined by slashes."""
        return "/".join(self.parts[-depth:])


def pair(
    pred_dir: PathLike | None,
    gt_dir: PathLike,
    split: Split = None,
    missing: str = "error",
    gt_name: str = "ground truth",
    **options: Any,
) -> list[Pair]:
    """Pair each image's prediction with its ground truth, and return the pairs sorted by id.

    - split: the wanted image ids, or a file that lists them; None for all images
    - missing: what to do with a ground truth that has no prediction. "error" raises PairingError,
      "zero" returns a pair without `pred_paths`, and "skip" leaves the image out.
    - gt_name: what the files in `gt_dir` are called in errors
    - options: the kinds of the files, and other keywords of `group_files`

    Raises a single PairingError that lists ambiguous ids, whose files may not all belong to one
    image; ids of the split (or, without a split, of predictions) without ground truth; and missing
    predictions, if `missing` is "error" or no image has a prediction.
    """
    wanted, pred, gt = group_files(pred_dir, gt_dir, split, **options)
    preds, gts = pred.files, gt.files  # image id -> paths
    shared = gts.keys() & preds.keys()
    problems: list[Problem] = []

    def report(
        folder: PathLike | None, fault: str, ids: Collection[str], fixes: Sequence[Fix]
    ) -> None:
        """Add a problem of the files in a folder; {} in `fault` stands for the affected ids."""
        names = sorted(ids)
        has = f"{show(folder)}: {fault.format(f'{listed(names)} ({len(names)} in all)')}"
        problems.append(Problem(has=has, fix=tuple(fixes), names=tuple(names)))

    for folder, side in ((pred_dir, pred), (gt_dir, gt)):
        if side.ambiguous:
            example = min(side.ambiguous)
            files = [show(os.path.relpath(path, folder)) for path in side.files.get(example, ())]
            report(folder, SEVERAL, side.ambiguous, [f"{example}: {listed(files, 3)}"])
    unpredicted = gts.keys() - shared
    # Without `pred_dir`, the ground truth is listed alone. If no image has a prediction, the names
    # are probably wrong, so this is an error whatever `missing` is, and counting zeros no remedy
    if unpredicted and pred_dir and (missing == "error" or not shared):
        zero = Setting("missing", "zero", "counts empty maps")
        fixes = [zero, Setting("missing", "skip", "leaves them out")] if shared else []
        report(pred_dir, "no prediction for: {}", unpredicted, fixes)
    needed = wanted or preds.keys()  # the ids that must have a ground truth
    without_truth = needed - gts.keys()
    if without_truth:
        renaming = suggest_renaming(needed, gts.keys())
        report(gt_dir, f"no {gt_name} for: {{}}", without_truth, [renaming] if renaming else [])
    if problems:
        raise PairingError("", problems)
    pairs = []
    for image_id in gts if missing == "zero" else sorted(shared):  # `gts` are sorted by id
        pairs.append(Pair(image_id, tuple(preds.get(image_id, ())), tuple(gts[image_id])))
    return pairs


def ground_truths(gt_dir: PathLike, split: Split = None) -> list[Pair]:
    """List the images of a ground-truth folder (or of `split`) as pairs without a prediction."""
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
    """Group prediction files and ground-truth files by image id.

    If the images are frames of sequences, the id is SEQUENCE/FRAME. Otherwise, each side has an
    `Arrangement`, a rule that takes the id from a path: from ID.png, ID_1.png or ID/NAME.png. The
    two are chosen so that as many ids as possible are on both sides or, with a split, in the split.

    - pred_dir: the folder of predictions, or None to group the ground truth alone
    - split: the wanted image ids, or a file that lists ids or file names, or None
    - pred_kind: "labels" allows several files per image, and "classes" a subfolder for each of
      `classes`
    - gt_kind: "annotators" allows several files per image
    - sequences: True to treat folders as sequences even if every file name occurs only once

    Raises PairingError if a folder has no files of a known format, or if it is unclear whether
    files are frames or several files of one image.
    """
    roots = [] if pred_dir is None else [Path(pred_dir)]
    if roots and pred_kind == "classes":
        roots = _find_class_folders(roots[0], classes) or roots
    # Each file has `parts`: the folders below its root, and its name without suffix
    pred_files: list[_File] = []
    for root in roots:
        pred_files += _list_files(root)
    gt_files = _list_files(Path(gt_dir))
    if split is None and not sequences:  # the usual case: one file per image, with the same names
        sides = []
        for files in (pred_files, gt_files):
            by_name = Files()
            for file in files:
                by_name[file.parts[-1]] = [file.path]
            sides.append(FilesOfSide(dict(sorted(by_name.items())), ambiguous=set()))
        pred, gt = sides
        are_same_names = pred.files.keys() == gt.files.keys()
        if are_same_names and len(pred_files) == len(gt_files) == len(gt.files):
            return Grouping(None, pred, gt)
    lines: Collection[str] | None = None
    wanted: set[str] | None = None
    if isinstance(split, str | os.PathLike):  # a file of ids or file names
        lines = _read_lines(split)
        wanted = set(map(id_of, lines))
    elif split is not None:
        lines, wanted = split, set(split)
    # Whether an image may have several files on a side: label maps, or one file per annotator
    pred_several, gt_several = pred_kind == "labels", gt_kind == "annotators"
    depth = _find_depth(pred_files, gt_files, lines, pred_several and gt_several, sequences)
    if depth > 1:  # frames: the id is the end of the path, SEQUENCE/FRAME, and each has one file
        pred_several = gt_several = False
        pred_files = [file._replace(parts=(file.end(depth),)) for file in pred_files]
        gt_files = [file._replace(parts=(file.end(depth),)) for file in gt_files]
        if lines is not None:
            wanted = _resolve_split(lines, {file.parts[0] for file in (*pred_files, *gt_files)})
    # Arrangement -> image id -> files. Under ONE (one file per image), the ids are the file names
    preds, gts = _group_by_rule(pred_files, pred_several), _group_by_rule(gt_files, gt_several)
    pred_rule, gt_rule = _choose_arrangements(preds, gts, wanted)
    pred_ids, gt_ids = preds[pred_rule].keys(), gts[gt_rule].keys()
    may_differ = wanted is not None and pred_ids != gt_ids
    if may_differ and (difference := suggest_renaming(pred_ids, gt_ids)):
        warn(InputWarning(f"{show(pred_dir)} and {show(gt_dir)}: {difference}"))
    pred_names, gt_names = preds[Arrangement.ONE].keys(), gts[Arrangement.ONE].keys()
    # Several ground-truth files of an image may be video frames, unless a split lists the image
    gt_roots, is_unlisted = [Path(gt_dir)], wanted is None
    return Grouping(
        wanted,
        _select_files(preds, pred_rule, roots, wanted, gt_ids, gt_names, may_be_frames=False),
        _select_files(gts, gt_rule, gt_roots, wanted, pred_ids, pred_names, is_unlisted),
    )


class _Arrangements(NamedTuple):
    """The arrangement of each side."""

    pred: Arrangement
    gt: Arrangement


def _choose_arrangements(
    preds: Mapping[Arrangement, Mapping[str, Sequence[_File]]],
    gts: Mapping[Arrangement, Mapping[str, Sequence[_File]]],
    wanted: set[str] | None,
) -> _Arrangements:
    """Return the arrangements of the predictions and of the ground truth with the most known ids.

    `preds` and `gts` map arrangement -> image id -> files. Known ids are those of the split
    (`wanted`), on either side; without a split (None), those that both sides have. In a tie, the
    arrangement that `Arrangement` lists first is returned.
    """

    def count_known_ids(chosen: _Arrangements) -> int:
        pred_ids, gt_ids = preds[chosen.pred].keys(), gts[chosen.gt].keys()
        if wanted is None:
            return len(pred_ids & gt_ids)
        return len(pred_ids & wanted) + len(gt_ids & wanted)

    return max(starmap(_Arrangements, product(preds, gts)), key=count_known_ids)


def _group_by_rule(
    files: Sequence[_File], several: bool
) -> dict[Arrangement, dict[str, list[_File]]]:
    """Group files by image id, once for each `Arrangement`, a rule that takes the id from a path.

    Returns a dict from arrangement to a dict from image id to its files. If `several` is False, an
    image has one file, and the only arrangement is ONE: the id is the file name without its suffix.
    """
    rules = Arrangement if several else [Arrangement.ONE]
    return {rule: grouped((rule.id_in(file.parts), file) for file in files) for rule in rules}


def _find_class_folders(folder: Path, classes: Sequence[str]) -> list[Path]:
    """Return the subfolder of each class, in the order of `classes`, or [] if any is missing.

    It is named after the class or, as in the SBD code, class_001, class_002 and so on.
    """
    numbered = [f"class_{number:03d}" for number in range(1, len(classes) + 1)]
    for names in (classes, numbered):
        class_folders = [folder / name for name in names]
        if all(map(Path.is_dir, class_folders)):
            return class_folders
    return []


def _list_files(root: Path) -> list[_File]:
    """Return the files of known formats at any depth below `root`; PairingError if none exists."""
    files = []
    for path in find_files(root, FORMATS):
        folders = [normalize("NFC", show(part)) for part in path.parts[len(root.parts) : -1]]
        files.append(_File(path, root, (*folders, id_of(path))))
    if not files:
        is_file = os.path.isfile(root)  # False for a path that is too long, unlike Path.is_file
        has = "is a file" if is_file else "has no files in a supported format"
        has = has if os.path.exists(root) else "does not exist"
        fix = _COCO if root.suffix.lower() == ".json" and is_file else ()
        raise PairingError(Problem(show(root), has, f"a folder of {', '.join(FORMATS)}", fix))
    return files


def _find_depth(
    pred: Sequence[_File],
    gt: Sequence[_File],
    lines: Collection[str] | None,
    both_several: bool,
    sequences: bool,
) -> int:
    """Return how many of the last parts of its path form the id of an image.

    It is 1, the file name, for independent images, and 2 or more, such as FOLDER/NAME, for frames
    of sequences. These are considered only if a file name occurs in several folders of one side, or
    if `sequences` is True. The result is the smallest number with which the ids of each side are
    unique, and some id is on both sides (without predictions: in the split).

    - lines: the lines of the split, or None
    - both_several: True if an image may have several files on both sides, such as label maps and
      annotations. FOLDER/NAME may then be a frame, or a file of the image FOLDER. It is a frame
      only if the split lists FOLDER/NAME.

    Raises PairingError if a split is needed to decide this, or if `sequences` is True and there are
    no frames.
    """
    names_repeat = _ends_repeat(pred, 1) or _ends_repeat(gt, 1)
    deepest = max(len(file.parts) for file in (*pred, *gt)) if names_repeat or sequences else 1
    for depth in range(2, deepest + 1):
        if _ends_repeat(pred, depth) or _ends_repeat(gt, depth):
            continue  # not unique, as a/b of x/a/b and y/a/b
        # Ids of files in subfolders, such as SEQUENCE/FRAME
        pred_frames = {file.end(depth) for file in pred if len(file.parts) > 1}
        gt_frames = {file.end(depth) for file in gt if len(file.parts) > 1}
        # Those that the split lists. A line that is only a folder may be an image, and lists none
        listed_frames = gt_frames & _resolve_split(lines or (), gt_frames, of_folders=False)
        shared = pred_frames & gt_frames if pred else listed_frames
        if shared and (listed_frames or not both_several):
            return depth
        if shared and lines is None:  # a frame, or a file of the image FOLDER
            frame = min(shared)
            raise PairingError(
                f"{show(gt[0].root)}: {frame} may be a frame of a sequence, or one of several "
                f"files of an image; expected a split file with ids as {frame} (sequences) or "
                f"{frame.split('/')[-2]} (images)"
            )
    if sequences and len({file.path.parent for file in gt}) > 1:
        examples = [files[0].end(2) for files in (gt, pred) if files]  # FOLDER/NAME of each side
        raise PairingError(
            f"{show(gt[0].root)}: several folders, expected predictions with the same names of "
            "folders and files, SEQUENCE/FRAME",
            fix=[" beside ".join(examples)],
        )
    return 1


def _ends_repeat(files: Sequence[_File], depth: int) -> bool:
    """Return True if two files below the same root have the same last `depth` parts."""
    return len({(file.root, file.end(depth)) for file in files}) < len(files)


def _resolve_split(lines: Iterable[str], ids: Collection[str], of_folders: bool = True) -> set[str]:
    """Return the ids of the frames that the lines of a split list, such as "SEQUENCE/FRAME".

    A line may have more leading folders than an id, or fewer, but at least one; a file suffix is
    ignored. If `of_folders` is True, a line may also name a sequence, which means all its frames. A
    line that fits none of the known `ids` is returned as an id, to be reported as missing later.

    >>> sorted(_resolve_split(["data/a/0.png", "b"], ["a/0", "a/1", "b/0", "b/1"]))
    ['a/0', 'b/0', 'b/1']
    """
    # End of an id -> ids. The id "a/b/c" has the ends "a/b/c" and "b/c" (a frame "c" alone could be
    # of any sequence) and, with `of_folders`, those of its sequence, "a/b" and "b"
    ids_of_end: dict[str, set[str]] = {}
    for image_id in ids:
        parts = image_id.split("/")
        for k in range(len(parts) - 1):  # the end begins at the folder `k`
            ids_of_end.setdefault("/".join(parts[k:]), set()).add(image_id)
            if of_folders:
                ids_of_end.setdefault("/".join(parts[k:-1]), set()).add(image_id)
    wanted = set[str]()
    for line in lines:
        *folders, name = normalize("NFC", line).replace("\\", "/").rstrip("/").split("/")
        # As in ids: unprintable characters of folders are escaped (show), the suffix is removed
        parts = [*(show(folder) for folder in folders if folder not in ("", ".")), id_of(name)]
        ends = ["/".join(parts[k:]) for k in range(len(parts))]  # of the line, the longest first
        known_ends = [end for end in ends if end in ids_of_end]
        wanted |= ids_of_end[known_ends[0]] if known_ends else {ends[0]}
    return wanted


def _select_files(
    groups_by_rule: Mapping[Arrangement, Mapping[str, Sequence[_File]]],
    arrangement: Arrangement,
    roots: Sequence[Path],
    wanted: set[str] | None,
    other_ids: Collection[str],
    other_names: Collection[str],
    may_be_frames: bool,
) -> FilesOfSide:
    """Select the files of the wanted images on one side, and collect the ambiguous ids.

    An arrangement takes the image id from a path: ID.png (ONE), ID_1.png (NUMBERED), ID_gt1.png
    (WORDED) or ID/NAME.png (FOLDERS).

    - groups_by_rule: arrangement -> image id -> files; those under `arrangement` are selected
    - roots: the searched folders, several if each class has one
    - wanted: the ids of the split; None keeps all
    - other_ids, other_names: the ids and the file names of the other side
    - may_be_frames: True if several files of an image may instead be video frames

    An id is ambiguous in three cases:

    - A left-over file may be one more annotation of the image (see `_possible_owners`).
    - Several files of the image (per class) do not form one series, such as ID_1, ID_2 .. in one
      folder.
    - Several files may be frames and look like frames: a number has leading zeros, or all numbers
      of this side exceed 1.
    """
    groups = groups_by_rule[arrangement]
    known = other_ids if wanted is None else wanted
    # Files of no known image, whose name (the last of `parts`) no file of the other side has
    left_over: list[_File] = []
    paths: Files = {}
    endings_by_id: dict[str, list[_Ending]] = {}  # what distinguishes the files of an image
    for image_id, files in sorted(groups.items()):
        if image_id not in known:
            left_over += [file for file in files if file.parts[-1] not in other_names]
        if wanted is None or image_id in wanted:
            paths[image_id] = [file.path for file in files]
            has_one_each = [file.root for file in files] == roots  # one file, or one for each class
            if not has_one_each:
                endings_by_id[image_id] = [_parse_ending(image_id, f, arrangement) for f in files]
    ambiguous = set[str]()
    for file in left_over:
        ambiguous |= _possible_owners(file, groups_by_rule.keys(), arrangement)
    ambiguous = ambiguous.intersection(known, paths)
    # The numbers in ID_1, ID_2 .. (-1: none). Annotators start at 0 or 1, and frames anywhere
    numbers = [e.number for endings in endings_by_id.values() for e in endings if e.number >= 0]
    start_above_1 = min(numbers, default=0) > 1
    for image_id, endings in endings_by_id.items():
        look_like_frames = start_above_1 or any(ending.has_leading_zeros for ending in endings)
        # Files of a series differ only in a number or a name, and have equal `series`; () is none
        is_series = len({ending.series for ending in endings}) == 1 and endings[0].series
        if not is_series or (may_be_frames and look_like_frames):
            ambiguous.add(image_id)
    return FilesOfSide(paths, ambiguous)


def _possible_owners(
    file: _File, rules: Iterable[Arrangement], arrangement: Arrangement
) -> set[str]:
    """Return the ids of the images to which a left-over file may belong, perhaps as an annotation.

    Any of the `rules` may give its image id. If the files of this side are named ID_1 or ID_gt1,
    the id may also be any start of its name: "a" and "a_b" of "a_b_bob".
    """
    owners = {rule.id_in(file.parts) for rule in rules}
    if arrangement in (Arrangement.NUMBERED, Arrangement.WORDED):
        name = file.parts[-1]
        owners |= {name[: separator.start()] for separator in re.finditer("[_.-]", name)}
    return owners


class _Ending(NamedTuple):
    """The part of a path that distinguishes the files of an image.

    Files form a series if they differ only in a number (ID_1, ID_2), in the file name within the
    image's folder (ID/NAME), or in the folder (ANNOTATOR/ID.seg). They may then be its annotators.
    """

    # Folder, suffix and word (such as "_gt"), the same within a series; () if there is no series
    series: tuple[object, ...]
    number: int  # the number in "_1"; -1 for all others: "_gt1", ID/NAME and ANNOTATOR/ID.seg
    # True for a number like 001, as many video frames have it; in a folder per image also for 01
    has_leading_zeros: bool


def _parse_ending(image_id: str, file: _File, arrangement: Arrangement) -> _Ending:
    """Return what distinguishes a file from others of the image `image_id`, under `arrangement`.

    Only an ending of one separator and digits, such as "_1", has a number. The ending "_gt1" has
    the word "_gt", and -1 for the number.
    """
    name, folder, suffix = file.parts[-1], file.path.parent, file.path.suffix.lower()
    if arrangement is Arrangement.FOLDERS and len(file.parts) > 1:  # ID/NAME
        has_zeros = _ZEROS_IN_FOLDER.search(name) is not None
        return _Ending((folder, suffix), -1, has_zeros)
    if arrangement is Arrangement.ONE:  # files of one name in several folders
        is_bsds300 = suffix == ".seg"  # ANNOTATOR/ID.seg, the only such files that are a series
        return _Ending((folder.parent, suffix) if is_bsds300 else (), -1, has_leading_zeros=False)
    # ID_1 or ID_gt1, of which the ending "_1" or "_gt1" is left, or ID alone
    ending = name.removeprefix(image_id)
    word = ending.rstrip("0123456789")  # "_" or "_gt"
    number = int(ending.removeprefix(word)) if word in ("_", ".", "-") else -1
    return _Ending((folder, suffix, word), number, _ZEROS_BESIDE.search(ending) is not None)


def read_split(path: PathLike) -> list[str]:
    """Return the image ids that a split file lists, in the order of the file and without repeats.

    The file has one id or file name per line; empty lines and # comments are ignored. Raises
    FileFormatError if it cannot be read, and PairingError if it lists no image.
    """
    return list(dict.fromkeys(map(id_of, _read_lines(path))))


def _read_lines(path: PathLike) -> list[str]:
    """Return the lines of a split file without # comments and empty ones; PairingError if none."""
    with errors_naming(path, "one id per line"):
        lines = [line.strip() for line in decode_text(read_bytes(path)).splitlines()]
    entries = [line for line in lines if line and line[0] != "#"]
    if not entries:
        raise PairingError(f"{show(path)}: lists no image, expected one id per line")
    return entries
