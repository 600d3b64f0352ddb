"""Pairing of predictions with ground truth by image id.

The image id is the file name without its suffix; the file may be in any subfolder. An image may
have several files (annotators, or predicted label maps) if they are named by an `Arrangement`.

"Side" means either the predictions or the ground truth. Each side gets the arrangement that makes
the most ids match the other side or, if there is a split, the split. Numbered files may instead be
video frames; they count as annotators only if a split lists their ids. An id is rejected as
ambiguous if it is unclear which files are its annotations (`_select_files`).

If the same file names occur in several folders, and both sides have these folders, the images are
frames of sequences, with ids SEQUENCE/FRAME. A split then lists such ids, or whole sequences.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import normalize

from bsdsbench.errors import Fix, InputWarning, PairingError, Problem, Setting, warn
from bsdsbench.io import PathLike
from bsdsbench.loaders.formats.pictures import FORMATS, find_files, id_of
from bsdsbench.loaders.renaming import suggest_renaming, suggest_truth_alone
from bsdsbench.loaders.split_files import listed_frames, names_in_path, split_lines
from bsdsbench.text import grouped, join_names, quantity, show

Files = dict[str, list[Path]]
Split = PathLike | Collection[str] | None
_ON_SEVERAL = (
    "; expected one, or all of them annotators as ID_1, ID_2 .., ID/NAME or ANNOTATOR/ID.seg "
    "(frames, and ground truth alone: with a split file; folders of other things: give one of them)"
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
        sequences = quantity(self.sequences, "sequence") if self.sequences else ""
        return ", ".join(filter(None, (files, sequences)))

    @classmethod
    def of_files(cls, files: Mapping[str, Sequence[Path]]) -> Layout:
        """Count the files of the images: `files` maps image ids to files, () if an image has none.

        Images without files are ignored. `first` and `last` are the file names of the image with
        the most files, with ID in place of its id: "ID_1", "ID/NAME" or "FOLDER/ID".
        """
        sequences = set[str]()
        counts = list[int]()  # files of each image that has any
        for image_id, paths in files.items():
            if paths:
                counts.append(len(paths))
                sequence, slash, _ = image_id.rpartition("/")  # an id may be SEQUENCE/FRAME
                if slash:
                    sequences.add(sequence)
        n_sequences, most = len(sequences), max(counts, default=1)
        if most == 1:  # one file per image, the default of all other fields
            return cls(sequences=n_sequences)
        image_id = max(files, key=lambda i: len(files[i]))  # the image with the most files
        names = [_name_with_placeholder(path, image_id) for path in files[image_id]]
        return cls(min(counts), most, first=names[0], last=names[-1], sequences=n_sequences)

    @classmethod
    def from_mapping(cls, values: object) -> Layout | None:
        """Rebuild a layout from a dict of its fields; None if one is missing or of a wrong type."""
        if not isinstance(values, Mapping):
            return None
        stored = dict[str, Any]()
        for field in fields(cls):
            stored[field.name] = values.get(field.name)
            if not isinstance(stored[field.name], type(field.default)):
                return None
        return cls(**stored)


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
    # The folders between root and file, outermost first, and the file name without its suffix; for
    # a frame of a sequence "SEQUENCE/FRAME" alone
    parts: tuple[str, ...]

    def end(self, n_parts: int) -> str:
        """Return the last `n_parts` parts, joined by slashes."""
        return "/".join(self.parts[-n_parts:])


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

    Raises a single PairingError that lists ambiguous ids, ids of the split (or, without a split, of
    predictions) without ground truth, and missing predictions.
    """
    wanted, pred, gt = group_files(pred_dir, gt_dir, split, **options)
    preds, gts = pred.files, gt.files  # image id -> paths
    shared = gts.keys() & preds.keys()
    problems: list[Problem] = []
    for folder, side in ((pred_dir, pred), (gt_dir, gt)):
        if side.ambiguous:
            example = min(side.ambiguous)
            files = [show(os.path.relpath(path, folder)) for path in side.files.get(example, ())]
            advice: list[Fix] = [f"{example}: {join_names(files, 3)}"]
            if side is pred and options.get("pred_kind") == "soft":
                labels = Setting("pred_kind", "labels", "if they are label maps of several levels")
                advice.append(labels)
            if side is pred and options.get("pred_kind") == "classes" and options.get("classes"):
                names = join_names([show(name) for name in options["classes"]], 3)
                advice.append(f"boundaries of each class: in folders {names}, or class_001 ..")
            fault, ids = "several files for", side.ambiguous
            problems.append(_problem_of(folder, fault, ids, advice, _ON_SEVERAL))
    unpredicted = gts.keys() - preds.keys()
    # Without `pred_dir`, the ground truth is listed alone. If no image has a prediction, the names
    # are probably wrong, so this is an error whatever `missing` is, and counting zeros no remedy
    # Nor is either a remedy if the images with a prediction are perhaps photos beside their masks
    has_masks = options.get("gt_kind") in ("mask", "classes")
    masks_alone = suggest_truth_alone(shared, unpredicted) if has_masks and pred_dir else ""
    if unpredicted and pred_dir and (missing == "error" or not shared or masks_alone):
        fixes: list[Fix] = [masks_alone] if masks_alone else []
        if shared and not masks_alone:
            fixes.append(Setting("missing", "zero", "counts empty maps"))
            fixes.append(Setting("missing", "skip", "leaves them out"))
        problems.append(_problem_of(pred_dir, "no prediction for", unpredicted, fixes))
    needed = wanted or preds.keys()  # the ids that must have a ground truth
    without_truth = needed - gts.keys()
    if without_truth:
        renaming = suggest_renaming(needed, gts.keys())
        advice = [renaming] if renaming else []
        if without_truth == wanted and isinstance(split, str | os.PathLike):
            advice.append(f"as {show(split)} lists them: expected one id or file name per line")
        problems.append(_problem_of(gt_dir, f"no {gt_name} for", without_truth, advice))
    if problems:
        raise PairingError("", problems)
    pairs = []
    # `missing` is "zero" to keep images that have no prediction
    for image_id in sorted(gts if missing == "zero" else shared):
        pairs.append(Pair(image_id, tuple(preds.get(image_id, ())), tuple(gts[image_id])))
    return pairs


def _problem_of(
    folder: PathLike | None, fault: str, ids: Collection[str], fixes: Sequence[Fix], rest: str = ""
) -> Problem:
    """Return the problem that images have a fault: "FOLDER: FAULT: ID, ID (2 in all)REST"."""
    names = sorted(ids)
    has = f"{show(folder)}: {fault}: {join_names(names)} ({len(names)} in all){rest}"
    return Problem(has=has, fix=tuple(fixes), names=tuple(names))


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
    lines: Collection[str] | None = None  # of the split
    wanted: set[str] | None = None  # the image ids that they list
    if isinstance(split, str | os.PathLike):  # a file of ids or file names
        names = {name for file in (*pred_files, *gt_files) for name in file.parts}
        lines = split_lines(split, names)
        wanted = {line if line in names else id_of(line) for line in lines}
    elif split is not None:
        lines, wanted = split, set(split)
    # Whether an image may have several files on a side: label maps, or one file per annotator
    pred_several, gt_several = pred_kind == "labels", gt_kind == "annotators"
    n_parts = _count_id_parts(pred_files, gt_files, lines, pred_several and gt_several, sequences)
    if n_parts > 1:  # frames: the id is the end of the path, SEQUENCE/FRAME, and each has one file
        pred_several = gt_several = False
        pred_files = [file._replace(parts=(file.end(n_parts),)) for file in pred_files]
        gt_files = [file._replace(parts=(file.end(n_parts),)) for file in gt_files]
        if lines is not None:
            wanted = listed_frames(lines, {file.parts[0] for file in (*pred_files, *gt_files)})
    preds, gts = _group_by_rule(pred_files, pred_several), _group_by_rule(gt_files, gt_several)
    rules = _choose_arrangements(preds, gts, wanted)
    pred_side, gt_side = _Side(roots, preds, rules.pred), _Side([Path(gt_dir)], gts, rules.gt)
    if wanted is not None and pred_side.ids != gt_side.ids:
        difference = suggest_renaming(pred_side.ids, gt_side.ids)
        if difference:
            warn(InputWarning(f"{show(pred_dir)} and {show(gt_dir)}: {difference}"))
    # Several ground-truth files of an image may be video frames, unless a split lists the image
    return Grouping(
        wanted,
        pred=_select_files(pred_side, gt_side, wanted, may_be_frames=False),
        gt=_select_files(gt_side, pred_side, wanted, may_be_frames=wanted is None),
    )


_Groups = Mapping[Arrangement, Mapping[str, Sequence[_File]]]  # rule -> image id -> files


class _Side(NamedTuple):
    """The predictions or the ground truth, grouped by the id that each rule takes from a path."""

    roots: list[Path]  # the searched folders, several if each class has one
    groups_by_rule: _Groups
    rule: Arrangement  # the chosen one

    @property
    def ids(self) -> Collection[str]:
        """The image ids under the chosen rule."""
        return self.groups_by_rule[self.rule].keys()


class _Arrangements(NamedTuple):
    """The arrangement of each side."""

    pred: Arrangement
    gt: Arrangement


def _choose_arrangements(preds: _Groups, gts: _Groups, wanted: set[str] | None) -> _Arrangements:
    """Return the arrangements of the predictions and of the ground truth with the most known ids.

    Known ids are those of the split (`wanted`), on either side; without a split (None), those that
    both sides have. In a tie, the arrangement that `Arrangement` lists first is returned.
    """
    n_known: dict[_Arrangements, int] = {}  # number of known ids under each two arrangements
    for pred_rule, gt_rule in product(preds, gts):
        pred_ids, gt_ids = preds[pred_rule].keys(), gts[gt_rule].keys()
        if wanted is None:
            n_ids = len(pred_ids & gt_ids)
        else:
            n_ids = len(pred_ids & wanted) + len(gt_ids & wanted)
        n_known[_Arrangements(pred_rule, gt_rule)] = n_ids
    return max(n_known, key=n_known.__getitem__)  # the first in a tie


def _group_by_rule(
    files: Sequence[_File], several: bool
) -> dict[Arrangement, dict[str, list[_File]]]:
    """Group files by image id, once for each `Arrangement`: {arrangement: {image id: files}}.

    If `several` is False, an image has one file, and the only arrangement is ONE (the file name).
    """
    rules = Arrangement if several else [Arrangement.ONE]
    return {rule: grouped((rule.id_in(file.parts), file) for file in files) for rule in rules}


def _find_class_folders(folder: Path, classes: Sequence[str]) -> list[Path]:
    """Return the subfolder of each class, in the order of `classes`, or [] if any is missing."""
    # As in the SBD code: class_001, class_002 and so on
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
        parts = list[str]()  # the folders below `root`, and the name without suffix
        for folder in path.parts[len(root.parts) : -1]:
            parts.append(normalize("NFC", show(folder)))
        files.append(_File(path, root, (*parts, id_of(path))))
    if not files:
        is_file = os.path.isfile(root)  # False for a path that is too long, unlike Path.is_file
        has = "does not exist"
        if os.path.exists(root):
            has = "is a file" if is_file else "has no files in a supported format"
        fix = _COCO if root.suffix.lower() == ".json" and is_file else ()
        raise PairingError(Problem(show(root), has, f"a folder of {', '.join(FORMATS)}", fix))
    return files


def _count_id_parts(
    pred: Sequence[_File],
    gt: Sequence[_File],
    lines: Collection[str] | None,
    both_several: bool,
    sequences: bool,
) -> int:
    """Return how many of the last parts of a path form the image id: 1 for NAME, 2 for FOLDER/NAME.

    It is 1 for independent images, and more for frames of sequences. Frames are considered only if
    a file name occurs in several folders of one side, or if `sequences` is True. The result is then
    the smallest number with which the ids of each side are unique, if the two sides (or, without
    predictions, the ground truth and the split) share one of these ids, and else 1.

    - lines: the lines of the split, or None
    - both_several: True if an image may have several files on both sides, such as label maps and
      annotations. FOLDER/NAME may then be a frame, or a file of the image FOLDER. It is a frame
      only if the split lists FOLDER/NAME.

    Raises PairingError if a split is needed to decide this, or if `sequences` is True and there are
    no frames.
    """
    if not (sequences or _ends_repeat(pred, 1) or _ends_repeat(gt, 1)):
        return 1
    most_parts = max(len(file.parts) for file in (*pred, *gt))
    n_parts = 2
    while n_parts <= most_parts and (_ends_repeat(pred, n_parts) or _ends_repeat(gt, n_parts)):
        n_parts += 1  # a/b is not unique if there are x/a/b and y/a/b
    # The files that may be frames: in folders, and with unique ids
    frames = [file for file in gt if len(file.parts) > 1 and n_parts <= most_parts]
    shared = {file.end(n_parts) for file in frames}
    if pred:
        shared &= {file.end(n_parts) for file in pred}
    listed_ends = {"/".join(names_in_path(line)[-2:]) for line in lines or ()}  # FOLDER/NAME
    split_lists_frames = any(file.end(2) in listed_ends for file in frames)
    if shared and (split_lists_frames or (pred and not both_several)):
        return n_parts
    if shared and pred and lines is None:  # a frame, or a file of the image FOLDER
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


def _ends_repeat(files: Sequence[_File], n_parts: int) -> bool:
    """Return True if two files below the same root have the same last `n_parts` parts."""
    return len({(file.root, file.end(n_parts)) for file in files}) < len(files)


def _select_files(
    side: _Side, other: _Side, wanted: set[str] | None, may_be_frames: bool
) -> FilesOfSide:
    """Select the files of the images on one side, and collect the ids that are ambiguous.

    An image is ambiguous if a file of no image may be one more annotation of it, as a_bob.png
    beside a_1.png and a_2.png, or if its several files are perhaps not annotations of one image.
    `other` is the other side, and `wanted` the ids of the split; None keeps all.
    `may_be_frames` is True if several files of an image may instead be video frames.
    """
    known = other.ids if wanted is None else wanted
    other_names = other.groups_by_rule[Arrangement.ONE].keys()  # the file names of the other side
    paths: Files = {}
    several: dict[str, Sequence[_File]] = {}  # image id -> files, if there are several
    possible_owners = set[str]()  # ids of images to which a file of no known image may belong
    for image_id, files in sorted(side.groups_by_rule[side.rule].items()):
        if wanted is None or image_id in wanted:
            paths[image_id] = [file.path for file in files]
            if [file.root for file in files] != side.roots:  # not one file in each searched folder
                several[image_id] = files
        if image_id in known:
            continue
        for file in files:
            name = file.parts[-1]
            if name in other_names:  # another image, whose file the other side has
                continue
            # It may be named by any rule, not only by the chosen one of its side
            possible_owners.update(rule.id_in(file.parts) for rule in side.groups_by_rule)
            if side.rule in (Arrangement.NUMBERED, Arrangement.WORDED):
                # Beside ID_1 or ID_gt1, "a_b_bob" may be an annotation of "a" or "a_b"
                for separator in re.finditer("[_.-]", name):
                    possible_owners.add(name[: separator.start()])
    ambiguous = possible_owners.intersection(known, paths)
    return FilesOfSide(paths, ambiguous | _find_unclear(several, side.rule, may_be_frames))


def _find_unclear(
    images: Mapping[str, Sequence[_File]], rule: Arrangement, may_be_frames: bool
) -> set[str]:
    """Return the ids of the images whose several files are perhaps not annotations of one image.

    Annotations differ in a number or a name only, as ID_1 and ID_2, but not ID_1 and ID_gt2. If
    `may_be_frames` is True, they must not look like video frames: with leading zeros, or numbers
    that all exceed 1 (in all `images`), as annotators are numbered from 0 or 1.
    """
    endings_of: dict[str, list[_Ending]] = {}
    numbers = list[int]()  # those in the endings "_1", "_2" of all files
    for image_id, files in images.items():
        endings = [_parse_ending(image_id, file, rule) for file in files]
        numbers += [ending.number for ending in endings if ending.number is not None]
        endings_of[image_id] = endings
    start_above_1 = min(numbers, default=0) > 1
    unclear = set[str]()
    for image_id, endings in endings_of.items():
        patterns = {ending.pattern for ending in endings}
        is_series = len(patterns) == 1 and None not in patterns  # None: only one file is expected
        look_like_frames = start_above_1 or any(ending.has_leading_zeros for ending in endings)
        if not is_series or (may_be_frames and look_like_frames):
            unclear.add(image_id)
    return unclear


class _Ending(NamedTuple):
    """What distinguishes a file from the others of its image."""

    # The path with a star in place of what differs between annotators: "gt/ID_*.png",
    # "gt/ID/*.png" or "gt/*/ID.seg"; None if the image may have only one such file
    pattern: str | None
    number: int | None  # the number in "_1"; None for all others: "_gt1", ID/NAME, ANNOTATOR/ID.seg
    # True for a number like 001, as many video frames have it; in a folder per image also for 01
    has_leading_zeros: bool


def _parse_ending(image_id: str, file: _File, rule: Arrangement) -> _Ending:
    """Return what distinguishes a file from others of the image `image_id`, under a naming rule."""
    name, folder, suffix = file.parts[-1], file.path.parent, file.path.suffix.lower()
    if rule is Arrangement.FOLDERS and len(file.parts) > 1:  # ID/NAME
        has_zeros = _ZEROS_IN_FOLDER.search(name) is not None
        return _Ending(f"{folder}/*{suffix}", None, has_zeros)
    if rule is Arrangement.ONE:  # files of one name in several folders, which only BSDS300 has
        pattern = f"{folder.parent}/*/{name}{suffix}" if suffix == ".seg" else None
        return _Ending(pattern, None, has_leading_zeros=False)
    ending = name.removeprefix(image_id)  # "_1", "_gt1", or "" for ID alone
    word = ending.rstrip("0123456789")  # "_" or "_gt"
    number = int(ending.removeprefix(word)) if word in ("_", ".", "-") else None
    has_zeros = _ZEROS_BESIDE.search(ending) is not None
    return _Ending(f"{folder}/{image_id}{word}*{suffix}", number, has_zeros)
