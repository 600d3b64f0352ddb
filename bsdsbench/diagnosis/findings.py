"""The doctor's findings: a problem as an object, and the message and remedy of each kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bsdsbench.errors import Fix, Problem, Setting
from bsdsbench.text import counted, listed

ERROR, WARNING = "error", "warning"
FEW_VALUES = 10


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem with its kind, severity, files and remedy.

    Parameters
    ----------
    code, message : str
        The short name of the kind of problem, and a description in one line.
    level : str
        "error" (a score would be wrong or impossible) or "warning" (it may be intended).
    files : tuple of str
        The files concerned.
    fix : tuple of Setting or str
        The options or the steps that fix it, one or the other.

    Examples
    --------
    >>> print(Finding("inverted", "error", "dark on bright", fix=(Setting("invert"),)).line())
    error: inverted: dark on bright -> invert=True
    """

    code: str
    level: str
    message: str
    files: tuple[str, ...] = ()
    fix: tuple[Fix, ...] = ()

    def fixes(self, write: Callable[[Setting], str] | None = None) -> str:
        """Return the remedy in words; `write` formats options, by default as in Python."""
        return Problem(fix=self.fix).fixes(write)

    def line(self, limit: int = 3, write: Callable[[Setting], str] | None = None) -> str:
        """Return the finding as one line: "LEVEL: CODE: MESSAGE [FILES] -> REMEDY".

        At most `limit` files are named. `write` formats the options of the remedy, by default as in
        Python.
        """
        where = f" [{listed(list(self.files), limit)}]" if self.files else ""
        fix = f" -> {self.fixes(write)}" if self.fix else ""
        return f"{self.level}: {self.code}: {self.message}{where}{fix}"


class Findings(list[Finding]):
    """The findings of `doctor`, errors first.

    Attributes
    ----------
    n_images : int
        The number of images that were read.
    n_measured : int
        The number of images that took the slower measurements too.
    reading : str
        How the files of both sides are read, in one line.
    note : str
        The recall at which the curve starts, if AP is 0 below it; this is no problem. Else "".
    """

    n_images: int = 0
    n_measured: int = 0
    reading: str = ""
    note: str = ""

    def summary(self) -> str:
        """Return one line: the numbers of errors and warnings, and of images read and measured."""
        errors = sum(f.level == "error" for f in self)
        counts = f"{counted(errors, 'error')}, {counted(len(self) - errors, 'warning')}"
        return (
            f"{counts if self else 'nothing found'}; {counted(self.n_images, 'image')} read, "
            f"{self.n_measured} of them measured"
        )


# code -> (level, message, remedy). Metrics other than boundary name their own symptoms
# (`Diagnosed.symptoms`).
# fmt: off
CHECKS = {
    "names": (ERROR, "names of {preds} differ from the ids by {longer!r}",
        ("rename the files to ID.png",)),
    "split": (ERROR, "only {common} of {of} images have a prediction, and {preds} no ground "
        "truth: two different splits?",
        ("give the ground truth of the same split",)),
    "missing": (ERROR, "{n} of {of} images have no prediction",
        ("predict them", Setting("split_file", ..., "with the ids"),
         Setting("missing", "zero"), Setting("missing", "skip"))),
    "extra": (ERROR, "{preds} without ground truth",
        ("check the split", Setting("split_file", ..., "with the ids that count"))),
    "doubled": (ERROR, "more than one {what} file for an image",
        ("leave one file for each image",)),
    "unreadable": (ERROR, "{words}", ()),
    "annotators": (ERROR, "annotators of one image have several sizes",
        ("draw its annotations in one size",)),
    "transposed": (ERROR, "{n} of {of} predictions are transposed: rows and columns are exchanged",
        ("transpose them before saving",)),
    "resized": (ERROR, "{n} of {of} predictions have another size: {first.sizes}",
        ("predict at the size of the image", "resize them; no option does that")),
    "one-annotator": (WARNING, "one annotator per image, but {name} has several, all of whom count",
        ("give the original annotations", Setting("protocol", ..., "of your data set"))),
    "gt-polarity": (ERROR, "most ground-truth pixels are boundary: dark lines on white ground?",
        (Setting("gt_invert"),)),
    "values": (ERROR, "{words}", ()),
    "zero": (ERROR, "{maps} with zeros only", ("predict again",)),
    "saturated": (ERROR, "{maps} with one value everywhere", ("predict again",)),
    "few-values": (WARNING,
        f"{{maps}} with fewer than {FEW_VALUES} values: the curve has few points",
        ("save soft maps",)),
    "inverted": (ERROR,
        "{n} of {measured} maps are darker on the ground truth than off it; inverted, {tried}",
        ()),
    "mirrored": (ERROR, "{maps} fit the ground truth better {way}",
        ("turn them back before saving",)),
    "exchanged": (ERROR,
        "{maps} fit the ground truth of another image better, such as the map of {a} that of {b}",
        ("check the order of names and maps when saving",)),
    "raw": (WARNING, "{n} of {measured} maps have broad edges; with NMS, {tried}",
        (Setting("nms"),)),
    "thinned": (WARNING,
        "{n} of {measured} maps have thin lines, but this protocol expects raw maps",
        ("give the raw maps", Setting("nms", False, "if its NMS was applied already"))),
    "grid-values": (WARNING, "{n} of {measured} maps are floats with values of exactly k/100; the "
        "thresholds are MATLAB's linspace, many of which differ from k/100 in the last "
        "bit: rounding decides whether such a value is on",
        ("save the maps unrounded, or as 8 or 16 bit PNG",)),
    "jpeg": (WARNING, "{n} of {measured} maps have JPEG artefacts, which are false edges",
        ("save as PNG or .npy",)),
    "shift": (WARNING,
        "maps are shifted by about {dy:+.1f} rows and {dx:+.1f} columns; moved back, {tried}",
        ("move them back, or undo the network's padding or crop; no option does that",)),
    "scaled": (WARNING,
        "maps are displaced unevenly: by {dy:+.1f} rows and {dx:+.1f} columns in the upper left "
        "quarter, {dy2:+.1f} and {dx2:+.1f} in the lower right",
        ("predict at the size of the image, without padding or crop; no option does that",)),
    "refused": (ERROR, "{words}", ("give what is expected, or set another option of the metric",)),
}
# fmt: on
