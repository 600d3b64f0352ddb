"""Errors a user can cause. All are one line: the file, what it has, what was expected."""

from __future__ import annotations

from collections.abc import Sequence

LINE = 600  # characters of a message


def one_line(text: str) -> str:
    """`text` with control, bidi and undecodable characters escaped, so that a line stays a line."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def clip(text: str, limit: int = LINE) -> str:
    """`text`, or its beginning and its end where it is longer than `limit`."""
    if len(text) <= limit:
        return text
    end = limit // 3
    return f"{text[: limit - end - 5]} ... {text[-end:]}"


class DataError(ValueError):
    """Input that cannot be evaluated. `problems` holds one line per fault of the run.

    What a line quotes may hold anything and be long; lines are made printable and short here, and
    stay one line each.

    Parameters
    ----------
    message : str
        What is wrong, in one line.
    problems : sequence of str
        One line per fault of the run; by default the message.
    """

    def __init__(self, message: str, problems: Sequence[str] = ()) -> None:
        self.problems: tuple[str, ...] = tuple(
            clip(one_line(line)) for line in problems or (message,)
        )
        super().__init__("\n".join(self.problems))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.args[0], self.problems)

    @classmethod
    def collect(cls, errors: Sequence[DataError]) -> DataError:
        """Join many errors into one that lists every problem, in the order given."""
        problems = [line for error in errors for line in error.problems]
        return cls("\n".join(problems), problems)


class ShapeError(DataError):
    """Arrays whose sizes do not fit together.

    Parameters
    ----------
    message : str
        What is wrong, in one line.
    problems : sequence of str
        One line per fault of the run; by default the message.
    """


class FileFormatError(DataError):
    """A file that cannot be read as what it should be."""


class PairingError(DataError):
    """Predictions and ground truth that do not pair one to one."""


class ProtocolError(DataError):
    """A protocol that does not exist, or a value out of its range."""


class MergeError(DataError):
    """Runs or shards that do not belong together."""


class RunLockedError(DataError):
    """Another run is writing to the same output folder."""
