"""Errors that a user can cause. Each is one line: the file, its contents, the expected contents."""

from __future__ import annotations

import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Collection, Iterable, Sequence

import attrs

from bsdsbench.text import clip, visible


def _hashable(value: object) -> object:
    """Convert a list to a tuple. Any other value is returned unchanged."""
    return tuple(value) if isinstance(value, list) else value


@attrs.frozen(slots=False)
class Setting:
    """An option with a value. Python and the command line write it differently.

    Parameters
    ----------
    name : str
        The option's name in Python: a keyword, a field of the protocol, or METRIC.OPTION.
    value : object
        The proposed value; several values are a list. `...` if the user has to find the value.
    effect : str
        The effect, in words that follow the option, such as "for region labels".
    beside : tuple of Setting
        Further options that are needed with this one. They have no `effect`.

    Examples
    --------
    >>> str(Setting("nms")), str(Setting("pred_kind", "labels", "for region labels"))
    ('nms=True', "pred_kind='labels' for region labels")
    """

    name: str
    value: object = attrs.field(default=True, converter=_hashable)
    effect: str = ""
    beside: tuple[Setting, ...] = ()

    def __str__(self) -> str:
        return self.line(lambda setting: f"{setting.name}={setting.shown()}")

    def line(self, write: Callable[[Setting], str]) -> str:
        """Return the setting as one line: the option, those beside it, and the effect.

        `write` formats an option.
        """
        return f"{' and '.join(map(write, (self, *self.beside)))} {self.effect}".rstrip()

    def shown(self) -> str:
        """Return the value as Python writes it."""
        if isinstance(self.value, tuple):
            return repr(list(self.value))
        return "..." if self.value is ... else repr(self.value)


Fix = Setting | str  # an option, or a step in words


@attrs.frozen(slots=False)
class Problem:
    """A fault of an input as one line: the file, its contents, and the expected contents.

    Parameters
    ----------
    file : str
        The file, or another name of the input; empty if `has` names it.
    has, expected : str
        The contents, and the expected contents. `has` may be a whole sentence.
    fix : tuple of Setting or str
        Alternative fixes: options, or steps in words.

    Examples
    --------
    >>> str(Problem("a.png", "gray values", "a mask", (Setting("gt_threshold", 0.5),)))
    'a.png: gray values, expected a mask (gt_threshold=0.5)'
    """

    file: str = ""
    has: str = ""
    expected: str = ""
    fix: tuple[Fix, ...] = ()

    def __str__(self) -> str:
        return self.line()

    def line(self, write: Callable[[Setting], str] | None = None) -> str:
        """Return one printable line. `write` formats options; by default as Python writes them."""
        text = ": ".join(filter(None, (self.file, self.has)))
        text += f", expected {self.expected}" if self.expected else ""
        text += f" ({self.fixes(write)})" if self.fix else ""
        return clip(visible(text, spaces=False))

    def fixes(self, write: Callable[[Setting], str] | None = None) -> str:
        """Return the fixes in words."""
        return "; ".join(
            fix.line(write) if write and isinstance(fix, Setting) else str(fix) for fix in self.fix
        )

    def of(self, file: str) -> Problem:
        """Return the problem with `file` as its file, unless it names a file already."""
        has = self.has.removeprefix(f"{file}: ")
        return self if self.file or file in has else attrs.evolve(self, file=file, has=has)


def _problem_of(message: str | Problem, fix: Fix | Sequence[Fix] = ()) -> Problem:
    """Convert a message in words, with its fixes, to a problem."""
    fixes = (fix,) if isinstance(fix, Setting | str) else tuple(fix)
    return message if isinstance(message, Problem) else Problem(has=message, fix=fixes)


class DataError(ValueError):
    """Input that cannot be evaluated.

    Quoted parts of an input may hold anything and be long. Lines are made printable and short here.

    Parameters
    ----------
    message : str or Problem
        The problem in one line.
    problems : sequence of str or Problem
        All problems of the run; by default the message.
    fix : Setting, str or sequence of these
        Fixes for a message of text: options, or steps in words.

    Examples
    --------
    >>> error = DataError("two faults", ["a.png: one", "b.png: two"])
    >>> len(error.problems)
    2
    >>> print(DataError("a.png: is thick", fix=Setting("nms")))
    a.png: is thick (nms=True)
    """

    def __init__(
        self,
        message: str | Problem = "",
        problems: Iterable[str | Problem] = (),
        fix: Fix | Sequence[Fix] = (),
    ) -> None:
        self.problems = tuple(
            _problem_of(problem, fix) for problem in tuple(problems) or (message,)
        )
        super().__init__("\n".join(map(str, self.problems)))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), ("", self.problems)

    @classmethod
    def collect(cls, errors: Iterable[DataError]) -> DataError:
        """Join errors to one that lists every problem, in the given order."""
        return cls("", [problem for error in errors for problem in error.problems])


def refuse_unless_forced(
    faults: Sequence[str], allowed: bool, consequence: str, effect: str
) -> None:
    """Raise DataError for faults that `force` turns into notes, unless it is `allowed`.

    `consequence` follows each fault ("such scores are not comparable"), `effect` says what `force`
    does ("shows them").
    """
    if faults and not allowed:
        problems = [f"{fault}; {consequence}" for fault in faults]
        raise DataError(problems=problems, fix=Setting("force", True, effect))


class ShapeError(DataError):
    """Arrays whose sizes do not fit together."""


class FileFormatError(DataError):
    """A file that cannot be read in the expected format."""


class MissingPartError(DataError, AttributeError):
    """A prediction or ground truth without the part that was asked for."""


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

    def __init__(self, message: str | Problem, fix: Fix | Sequence[Fix] = ()) -> None:
        self.problem = _problem_of(message, fix)
        super().__init__(str(self.problem))


def warn(warning: InputWarning) -> None:
    """Issue a warning at the innermost line outside of this package on the call stack."""
    level, frame = 1, sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("bsdsbench."):
        level, frame = level + 1, frame.f_back
    warnings.warn(warning, stacklevel=level)


def place_of_bug(error: BaseException, packages: Collection[str]) -> str:
    """Return "PACKAGE, in FILE, line N" of the innermost line in these packages, or ""."""
    place = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package in packages:
            place = f"{package}, in {os.path.basename(frame.f_code.co_filename)}, line {line}"
    return place


def unexpected(error: BaseException, packages: Collection[str]) -> str:
    """Describe an unexpected exception, and its place in these packages."""
    place = place_of_bug(error, packages)
    return f"unexpected {type(error).__name__}: {error}" + (f" (a bug in {place})" if place else "")


def alike(problems: Iterable[Problem]) -> list[list[Problem]]:
    """Group problems that are equal except for the file and for numbers."""
    groups: dict[str | Problem, list[Problem]] = {}
    for problem in map(_with_file, dict.fromkeys(problems)):
        without_numbers = re.sub(r"[0-9][0-9.e+-]*", "#", f"{problem.has}, {problem.expected}")
        groups.setdefault(without_numbers if problem.file else problem, []).append(problem)
    return list(groups.values())


def grouped(problems: Iterable[Problem], few: int = 3) -> list[Problem]:
    """Join equal problems of more than `few` files to one problem, which names `few` files.

    >>> faults = [Problem(file, f"value {k}", "0 .. 1") for k, file in enumerate("abcd", 3)]
    >>> print(*grouped(faults))
    4 files (a, b, c ...): value 3, expected 0 .. 1
    """
    joined = []
    for group in alike(problems):
        if len(group) > few:
            files = ", ".join(problem.file for problem in group[:few])
            group = [attrs.evolve(group[0], file=f"{len(group)} files ({files} ...)")]
        joined += group
    return joined


def _with_file(problem: Problem) -> Problem:
    """Split a problem "FILE: fault" in words into its file and its fault."""
    file, colon, has = problem.has.partition(": ")
    return attrs.evolve(problem, file=file, has=has) if colon and not problem.file else problem
