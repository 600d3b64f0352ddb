"""Errors caused by input. Each is one line: the file, what it contains, what was expected."""

from __future__ import annotations

import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Collection, Iterable, Sequence

import attrs

from bsdsbench.text import escape_unprintable, shorten


def _hashable(value: object) -> object:
    """Convert a list to a tuple, and return any other value unchanged."""
    return tuple(value) if isinstance(value, list) else value


@attrs.frozen(slots=False)
class Setting:
    """An option and its value, to be written in the syntax of Python or of the command line.

    >>> str(Setting("nms")), str(Setting("pred_kind", "labels", "for region labels"))
    ('nms=True', "pred_kind='labels' for region labels")
    """

    name: str  # in Python: a keyword, a field of the protocol, or METRIC.OPTION
    # The suggested value, a list for several values, or `...` if the user has to choose it
    value: object = attrs.field(default=True, converter=_hashable)
    effect: str = ""  # what it does, in words that follow the option, such as "for region labels"
    beside: tuple[Setting, ...] = ()  # options that must be set together with this one

    def __str__(self) -> str:
        return self.line(lambda setting: f"{setting.name}={setting.shown()}")

    def line(self, write: Callable[[Setting], str]) -> str:
        """Return this option, the options that must be set with it, and their effect on one line.

        For example, "a=1 and b=2 for region labels". `write` formats a single option in the syntax
        of Python or of the command line.
        """
        return f"{' and '.join(map(write, (self, *self.beside)))} {self.effect}".rstrip()

    def shown(self) -> str:
        """Return the value as Python code; a tuple is written as a list, Ellipsis as "..."."""
        if isinstance(self.value, tuple):
            return repr(list(self.value))
        return "..." if self.value is ... else repr(self.value)


Fix = Setting | str  # an option, or an instruction in words


@attrs.frozen(slots=False)
class Problem:
    """A fault in an input, as one line: the file, what it contains, and what was expected.

    >>> str(Problem("a.png", "gray values", "a mask", (Setting("gt_threshold", 0.5),)))
    'a.png: gray values, expected a mask (gt_threshold=0.5)'
    """

    file: str = ""  # the file, or another name of the input; "" if `has` names it
    has: str = ""  # what the input contains, or a whole sentence
    expected: str = ""  # what it should contain
    fix: tuple[Fix, ...] = ()  # alternative remedies
    names: tuple[str, ...] = ()  # all affected files or images, if the line lists only some of them

    def __str__(self) -> str:
        return self.line()

    def line(self, write: Callable[[Setting], str] | None = None) -> str:
        """Return "FILE: HAS, expected EXPECTED (FIXES)" as one line of printable text, clipped.

        `write` formats the fixes that are a Setting; the default is Python syntax.
        """
        text = ": ".join(filter(None, (self.file, self.has)))
        text += f", expected {self.expected}" if self.expected else ""
        text += f" ({self.fixes(write)})" if self.fix else ""
        return shorten(escape_unprintable(text, keep_spaces=False))

    def fixes(self, write: Callable[[Setting], str] | None = None) -> str:
        """Return the suggested fixes on one line, separated by semicolons.

        `write` formats the fixes that are a Setting; the default is Python syntax.
        """
        return "; ".join(
            fix.line(write) if write and isinstance(fix, Setting) else str(fix) for fix in self.fix
        )

    def with_file(self, file: str) -> Problem:
        """Return a copy of this problem with `file` set and removed from the start of `has`.

        A problem that already has a file, or whose `has` mentions `file` elsewhere, is returned
        unchanged.
        """
        has = self.has.removeprefix(f"{file}: ")
        if self.file or file in has:
            return self
        return attrs.evolve(self, file=file, has=has)


def _to_problem(message: str | Problem, fix: Fix | Sequence[Fix] = ()) -> Problem:
    """Convert a message and its suggested fixes to a Problem. A Problem is returned unchanged."""
    if isinstance(message, Problem):
        return message
    fixes = (fix,) if isinstance(fix, Setting | str) else tuple(fix)
    return Problem(has=message, fix=fixes)


class DataError(ValueError):
    """Input that cannot be evaluated.

    Each problem becomes one short, printable line of the message. `fix` suggests remedies for
    problems given as text.

    >>> error = DataError("", ["a.png: one", "b.png: two"])
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
        """Create the error from `problems` or, if there are none, from `message`."""
        self.problems = tuple(_to_problem(x, fix) for x in tuple(problems) or (message,))
        super().__init__("\n".join(map(str, self.problems)))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), ("", self.problems)

    @classmethod
    def collect(cls, errors: Iterable[DataError]) -> DataError:
        """Combine several errors into one that lists all their problems, in the same order."""
        return cls("", [problem for error in errors for problem in error.problems])


def refuse_unless_forced(
    faults: Sequence[str], forced: bool, consequence: str, effect: str
) -> None:
    """Raise one DataError that lists all `faults`, unless there are none or `forced` is True.

    - consequence: appended to each fault, such as "such scores are not comparable"
    - effect: what setting the option `force` would do, such as "shows them"; if "", the error does
      not suggest the option
    """
    if faults and not forced:
        problems = [f"{fault}; {consequence}" for fault in faults]
        raise DataError(problems=problems, fix=Setting("force", True, effect) if effect else ())


class ShapeError(DataError):
    """Arrays whose shapes are wrong or do not match."""


class FileFormatError(DataError):
    """A file that cannot be read in the expected format."""


class MissingPartError(DataError, AttributeError):
    """A prediction or ground truth without the part that was asked for."""


class EmptyTruthError(FileFormatError):
    """Ground truth in which no annotator drew a boundary."""


class PairingError(DataError):
    """Predictions and ground truth that cannot be paired by image."""


class ProtocolError(DataError):
    """An unknown protocol, or a protocol value that is invalid."""


class MergeError(DataError):
    """Runs or shards that do not belong together."""


class RunLockedError(DataError):
    """Another run is writing to the same output folder."""


class InputWarning(UserWarning):
    """Input that can be evaluated but looks wrong, such as inverted or mirrored maps."""

    def __init__(self, message: str | Problem, fix: Fix | Sequence[Fix] = ()) -> None:
        self.problem = _to_problem(message, fix)
        super().__init__(str(self.problem))


class InvertedWarning(InputWarning):
    """Soft maps that are darker on the ground truth than off it, so that they seem inverted."""


def warn(warning: InputWarning) -> None:
    """Issue a warning that points to the line of the innermost caller outside this package."""
    level = 1  # 1 is the line of this function itself, 2 that of its caller, and so on
    frame = sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("bsdsbench."):
        level += 1
        frame = frame.f_back
    warnings.warn(warning, stacklevel=level)


def locate_bug(error: BaseException, packages: Collection[str]) -> str:
    """Return the location of a bug as "PACKAGE, in FILE, line N".

    This is the innermost frame of the traceback in one of the `packages` (top-level names such as
    "bsdsbench"), or "" if there is none.
    """
    place = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package in packages:
            place = f"{package}, in {os.path.basename(frame.f_code.co_filename)}, line {line}"
    return place


def describe_unexpected(error: BaseException, packages: Collection[str]) -> str:
    """Describe an unexpected exception, which is a bug, on one line: type, message, location.

    The location is that of `locate_bug`, and is left out if there is none.
    """
    place = locate_bug(error, packages)
    bug = f" (a bug in {place})" if place else ""
    return f"unexpected {type(error).__name__}: {error}{bug}"


def with_file_of_side(error: DataError, pred: str, gt: str) -> DataError:
    """Add file names to an error that was raised by a function that knows only arrays.

    A problem (one line of the error) prints as "FILE: HAS, ...". If its text `has` begins with
    "prediction: ", this is replaced by the file `pred`, and "ground truth: " by the file `gt`. With
    pred = "a.png", "prediction: shape (2, 3)" becomes "a.png: shape (2, 3)". The array of a contour
    map is called "ucm2: ", which is kept after the file: "a.mat: ucm2: ...".

    Returns a new error of the same class or, if no problem changes, the error itself.
    """
    problems = list[Problem]()
    for problem in error.problems:
        side, _, has = problem.has.partition(": ")
        if not problem.file and side in ("prediction", "ground truth"):
            file = pred if side == "prediction" else gt
            problem = attrs.evolve(problem, file=file, has=has)
        elif side == "ucm2":
            problem = problem.with_file(pred)  # unchanged if it has a file already
        problems.append(problem)
    if problems == list(error.problems):
        return error
    same_class = type(error)  # such as ShapeError, a child of DataError
    return same_class(problems=problems)


def group_similar_problems(problems: Iterable[Problem]) -> list[list[Problem]]:
    """Group problems that differ only in file and numbers, in order of first appearance.

    "a.png: 3 values" and "b.png: 7 values" are similar. If a problem has no `file`, it is taken
    from the start of the text ("FILE: FAULT"). If the text names no file either, the problem is a
    group of its own. Repeated problems are dropped.
    """
    groups: dict[str | Problem, list[Problem]] = {}
    for problem in dict.fromkeys(problems):  # without repetitions
        file, colon, has = problem.has.partition(": ")
        if colon and not problem.file:
            problem = attrs.evolve(problem, file=file, has=has)
        text_without_numbers = re.sub(r"[0-9][0-9.e+-]*", "#", f"{problem.has}, {problem.expected}")
        key = text_without_numbers if problem.file else problem
        groups.setdefault(key, []).append(problem)
    return list(groups.values())


MANY_FILES = 10  # one line names up to this many files, and of more than this only three


def merge_similar_problems(problems: Iterable[Problem]) -> list[Problem]:
    """Replace each group of more than three problems that differ only in file and numbers by one.

    It is the first problem of the group. Its `file` gives the number of files and their names, of
    more than ten only the first three, and `names` has all of them.

    >>> faults = [Problem(file, f"value {k}", "0 .. 1") for k, file in enumerate("abcd", 3)]
    >>> print(*merge_similar_problems(faults))
    4 files (a, b, c, d): value 3, expected 0 .. 1
    """
    joined = []
    for group in group_similar_problems(problems):
        if len(group) > 3:
            names = tuple(problem.file for problem in group)
            files = ", ".join(names if len(names) <= MANY_FILES else (*names[:3], "..."))
            merged = attrs.evolve(group[0], file=f"{len(group)} files ({files})", names=names)
            group = [merged]
        joined += group
    return joined
