"""Reading the files that list the images of a split."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from unicodedata import normalize

from bsdsbench.errors import PairingError
from bsdsbench.io import PathLike, file_errors, read_bytes
from bsdsbench.loaders.formats.pictures import id_of
from bsdsbench.loaders.formats.text_tables import decode_text
from bsdsbench.text import show

_MARKS = "\"',; \t\x1a"  # around an id: quotes, separators, and the last character of DOS files


def read_split(path: PathLike, known: Collection[str] = ()) -> list[str]:
    """Return the image ids that a split file lists, in the order of the file and without repeats.

    `split_lines` describes the file, the `known` ids and the errors.
    """
    return list(dict.fromkeys(map(id_of, split_lines(path, known))))


def split_lines(path: PathLike, known: Collection[str] = ()) -> list[str]:
    """Return the lines of a split file, each an id or the path of a file, without "# comments".

    The file has one id or file name per line. Unless a line is one of the `known` ids, what tables
    and Windows add is removed: quotes, separators at the end, a second column with the same id, and
    backslashes between folders.

    Raises FileFormatError if the file cannot be read, and PairingError if it lists no image.
    """
    with file_errors(path, "one id per line"):
        text = decode_text(read_bytes(path))
    lines = list[str]()
    for row in map(str.strip, text.splitlines()):
        is_known = row in known or id_of(row) in known
        line = row if is_known else _without_marks(row)
        if line and (is_known or line[0] != "#"):
            lines.append(line)
    if not lines:
        raise PairingError(f"{show(path)}: lists no image, expected one id per line")
    return lines


def _without_marks(row: str) -> str:
    """Return a line of a split without quotes and separators, and with slashes between folders.

    A line without folders, of several columns that all give the same id, becomes this id.

    >>> _without_marks('"a.jpg","a.png"'), _without_marks("images\\\\a b.jpg")
    ('a', 'images/a b.jpg')
    """
    line = row.strip(_MARKS).replace("\\", "/")
    if "/" in line:
        return line
    for separators in ("\t", "[,;]", r"[\s,;]+"):
        ids = [id_of(column.strip(_MARKS)) for column in re.split(separators, line)]
        are_same = len({*ids}) == 1
        if len(ids) > 1 and are_same:
            return ids[0]
    return line


def names_in_path(line: str) -> list[str]:
    """Return the names in a line of a split: ["data", "a", "0"] for "./data/a/0.png"."""
    *folders, name = normalize("NFC", line).replace("\\", "/").rstrip("/").split("/")
    return [*(show(folder) for folder in folders if folder not in ("", ".")), id_of(name)]


def listed_frames(lines: Iterable[str], ids: Collection[str]) -> set[str]:
    """Return the ids of the frames that the lines of a split list, such as "SEQUENCE/FRAME".

    A line may name a frame, with more or fewer leading folders than its id, but at least one; or a
    sequence, for all its frames. A line that fits none of the known `ids` is returned as an id.

    >>> sorted(listed_frames(["data/a/0.png", "b"], ["a/0", "a/1", "b/0", "b/1"]))
    ['a/0', 'b/0', 'b/1']
    """
    # What a line may end in -> the ids that it means. The frame "a/b/c" is meant by "a/b/c" and
    # "b/c" ("c" alone could be of any sequence) or, for its sequence, by "a/b" and "b"
    ids_of_end: dict[str, set[str]] = {}
    for image_id in ids:
        parts = image_id.split("/")
        for k in range(len(parts) - 1):
            for end in (parts[k:], parts[k:-1]):
                ids_of_end.setdefault("/".join(end), set()).add(image_id)
    wanted = set[str]()
    for line in lines:
        parts = names_in_path(line)
        ends = ["/".join(parts[k:]) for k in range(len(parts))]  # the longest, the line, first
        known_ends = [end for end in ends if end in ids_of_end]
        wanted |= ids_of_end[known_ends[0]] if known_ends else {ends[0]}
    return wanted
