"""Errors that a user can cause, each one line: the file, what it has, what was expected."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def visible(text: str, spaces: bool = True) -> str:
    r"""`text` with what is not seen as escapes: control, bidirectional and zero-width characters,
    line ends and lone surrogates; wide spaces stay, unless `spaces` is false.

    >>> visible("a\x1b[31mb\u202ec\n")
    'a\\x1b[31mb\\u202ec\\n'
    """
    shown = ""
    for c in text:
        wide = spaces and c.isspace() and c > "\x85" and c not in "\u2028\u2029"
        shown += c if c.isprintable() or wide else c.encode("unicode_escape").decode("ascii")
    return shown


LINE = 600  # characters of a message


def clip(text: str, limit: int = LINE) -> str:
    """`text`, or its beginning and its end where it is longer than `limit`."""
    if len(text) <= limit:
        return text
    end = limit // 3
    return f"{text[: limit - end - 5]} ... {text[-end:]}"


class DataError(ValueError):
    """Input that cannot be evaluated.

    What a line quotes may hold anything and be long; lines are made printable and short here.

    Parameters
    ----------
    message : str
        What is wrong, in one line.
    problems : sequence of str
        One line per fault of the run; by default the message.

    Examples
    --------
    >>> error = DataError("two faults", ["a.png: one", "b.png: two"])
    >>> len(error.problems)
    2
    """

    def __init__(self, message: str, problems: Sequence[str] = ()) -> None:
        lines = [clip(visible(line, spaces=False)) for line in problems or (message,)]
        self.problems: tuple[str, ...] = tuple(lines)
        super().__init__("\n".join(self.problems))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.args[0], self.problems)

    @classmethod
    def collect(cls, errors: Iterable[DataError]) -> DataError:
        """Errors as one that lists every problem, in the order given."""
        return cls("", [line for error in errors for line in error.problems])


class ShapeError(DataError):
    """Arrays whose sizes do not fit together; a DataError."""


class FileFormatError(DataError):
    """A file that cannot be read as what it should be."""


class EmptyTruthError(FileFormatError):
    """Ground truth in which nobody drew a boundary."""


class PairingError(DataError):
    """Predictions and ground truth that do not pair one to one."""


class ProtocolError(DataError):
    """A protocol that does not exist, or a value out of its range."""


class MergeError(DataError):
    """Runs or shards that do not belong together."""


class RunLockedError(DataError):
    """Another run is writing to the same output folder."""


class InputWarning(UserWarning):
    """Input that can be evaluated but looks wrong: inverted, mirrored, of other images."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """ "; did you mean X?" for the known word most like this one, or ""."""
    from difflib import get_close_matches

    near = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""


def grouped(problems: Sequence[str], few: int = 3) -> list[str]:
    """Problems with the equal faults of more than `few` files as one line each, which names `few`.

    Lines are "FILE: what is wrong"; two are equal where only the file and numbers differ.

    >>> grouped(["a.png: value 3, expected 0 .. 1", "b.png: value 4, expected 0 .. 1"], few=1)
    ['2 files: value 3, expected 0 .. 1 (such as a.png)']
    """
    kinds: dict[str, list[str]] = {}
    for line in dict.fromkeys(problems):
        _, colon, what = line.partition(": ")
        kinds.setdefault(re.sub(r"[0-9][0-9.e+-]*", "#", what) if colon else line, []).append(line)
    out = []
    for lines in kinds.values():
        if len(lines) > few:
            parts = [line.partition(": ") for line in lines]
            files = ", ".join(file for file, *_ in parts[:few])
            lines = [f"{len(lines)} files: {parts[0][2]} (such as {files})"]
        out += lines
    return out


def is_text(value: str) -> bool:
    """True for text that can be written as UTF-8: without what stands for undecodable bytes."""
    return re.search("[\ud800-\udfff]", value) is None
