"""The doctor's findings: errors and warnings with their files, and the images they are based on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from bsdsbench.files.bounded import listed
from bsdsbench.runs.evaluation import Progress

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault: its code, "error" or "warning", what it is, the files, and what fixes it.

    Parameters
    ----------
    code : str
        Short name of the kind of fault.
    level : str
        "error" or "warning".
    message : str
        What is wrong, in one line.
    files : tuple of str
        The files concerned.
    fix : str
        The option or the step that fixes it.

    Examples
    --------
    >>> finding = Finding("inverted", "error", "maps are dark on bright", fix="--invert")
    >>> finding.level, finding.fix
    ('error', '--invert')
    """

    code: str
    level: str
    message: str
    files: tuple[str, ...] = ()
    fix: str = ""

    def line(self, limit: int = 3) -> str:
        """One printable line.

        Parameters
        ----------
        limit : int
            How many files to name.

        Returns
        -------
        str
            Level, message, files and remedy.
        """
        where = f" [{listed(list(self.files), limit)}]" if self.files else ""
        fix = f" -> {self.fix}" if self.fix else ""
        return f"{self.level}: {self.code}: {self.message}{where}{fix}"


class Findings(list[Finding]):
    """What `doctor` found, errors first.

    n_images : images with both files; n_measured : how many of them the slower measurements took
    (polarity, thickness, traces of JPEG, shift); all were read for names, sizes and values.
    """

    n_images: int = 0
    n_measured: int = 0
    what: str = "polarity, thickness, JPEG traces and shift measured on"

    def summary(self) -> str:
        """One line: how many errors and warnings, and on how much they rest."""
        errors = sum(f.level == "error" for f in self)
        warnings = len(self) - errors
        counts = f"{counted(errors, 'error')}, {counted(warnings, 'warning')}"
        return (
            f"{counts if self else 'nothing found'}; {counted(self.n_images, 'image')} read, "
            f"{self.what} {self.n_measured} of them"
        )


def counted(n: int, what: str) -> str:
    """ "1 image", "2 images"."""
    return f"{n} {what}{'' if n == 1 else 's'}"


class Steps:
    """Counts what is begun: each call hands its argument on."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self.total, self.done, self.progress = total, 0, progress

    def __call__(self, thing: _T) -> _T:
        self.done += 1
        if self.progress:
            self.progress(self.done, self.total, str(thing))
        return thing
