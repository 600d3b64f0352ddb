"""Errors a user can cause. All are one line: the file, what it has, what was expected."""

from __future__ import annotations

from collections.abc import Sequence


class DataError(ValueError):
    """Input that cannot be evaluated. `problems` holds one line per fault of the run."""

    def __init__(self, message: str, problems: Sequence[str] = ()) -> None:
        self.problems: tuple[str, ...] = tuple(problems) or (message,)
        super().__init__(message)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.args[0], self.problems)

    @classmethod
    def collect(cls, errors: Sequence[DataError]) -> DataError:
        """Join many errors into one that lists every problem, in the order given."""
        problems = [line for error in errors for line in error.problems]
        return cls("\n".join(problems), problems)


class ShapeError(DataError):
    """Arrays whose sizes do not fit together."""


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
