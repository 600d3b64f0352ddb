"""The doctor's findings: errors and warnings with their files, and the images they are based on.

Those about names (files without a partner, renamed ones, several of an id), and about maps (level
ridges, values on thresholds, double edges, places).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from bsdsbench.diagnosis import symptoms
from bsdsbench.files.bounded import listed
from bsdsbench.files.errors import DataError
from bsdsbench.loaders.pairing import Files, grouped, is_set
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs.evaluation import Progress
from bsdsbench.runs.first_look import position, swaps
from bsdsbench.scores.curve import four_counts
from bsdsbench.scores.ratios import f_measure, ratio

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


def listing(
    pred_dir: Path, gt_dir: Path, split_file: str | Path | None, pred_kind: str
) -> tuple[Files, Files]:
    """image id -> its files, of predictions and of ground truth, in order of the id."""
    wanted, preds, gts, _ = grouped(pred_dir, gt_dir, split_file, pred_kind)
    if wanted:
        preds, gts = ({i: side[i] for i in side if i in wanted} for side in (preds, gts))
    return dict(sorted(preds.items())), dict(sorted(gts.items()))


def unmatched(preds: Files, gts: Files) -> list[Finding]:
    """Images without a prediction, and predictions without an image."""
    missing = [i for i in gts if i not in preds]
    extra = [i for i in preds if i not in gts]
    if not missing and not extra:
        return []
    common = len(gts) - len(missing)
    if missing and extra and common < len(gts) / 2:
        count = counted(len(extra), "prediction")
        if longer := _renamed(missing, extra):
            message = f"names of {count} differ from the ids by {longer!r}"
            return [Finding("names", "error", message, tuple(extra), "rename the files to ID.png")]
        message = (
            f"only {common} of {len(gts)} images have a prediction, and {count} no ground truth: "
            "two different splits?"
        )
        return [Finding("split", "error", message, tuple(extra), "give --gt of the same split")]
    found = []
    if missing:
        message = f"{len(missing)} of {len(gts)} images have no prediction"
        fix = "predict them, or --split-file with the ids, or --missing zero|skip"
        found.append(Finding("missing", "error", message, tuple(missing), fix))
    if extra:
        message = f"{counted(len(extra), 'prediction')} without ground truth"
        fix = "check the split, or --split-file with the ids that count"
        found.append(Finding("extra", "error", message, tuple(extra), fix))
    return found


def _renamed(missing: Sequence[str], extra: Sequence[str]) -> str:
    """What was put before or after every id, or "" if it is not that."""
    first = [(e, i) for i in missing[:1] for e in extra if i in e]
    for name, image_id in first:
        before, _, after = name.partition(image_id)
        if all(f"{before}{i}{after}" in set(extra) for i in missing):
            return f"{before}*{after}"
    return ""


def doubled(preds: Files, gts: Files, frames: bool = False) -> list[Finding]:
    """Images with several files where there should be one, in names that may differ in case."""
    found = []
    for what, side in (("prediction", preds), ("ground truth", gts)):
        same: dict[str, list[str]] = {}
        for image_id in side:
            same.setdefault(image_id.casefold(), []).append(image_id)
        files = tuple(
            str(p)
            for ids in same.values()
            if len(ids) > 1 or not is_set(ids[0], side[ids[0]], frames)
            for image_id in ids
            for p in side[image_id]
        )
        if files:
            message = f"more than one {what} file for an image"
            fix = "leave one file for each image"
            found.append(Finding("doubled", "error", message, files, fix))
    return found


# ODS that many-to-one matching adds: .03 to .11 for sound maps (BSDS500 val ucm2 .026, HED .038)
GAIN = 0.14
FEW = 4  # images that are matched
COARSE = 9  # thresholds that they are matched at


def many_to_one(cases: Sequence[Any], protocol: Protocol) -> list[Finding]:
    """Maps that would score far more if a pixel could be matched any number of times."""
    chosen = [c for c in cases if not c.faults][:: max(1, -(-len(cases) // FEW))]
    if not chosen or not protocol.thin:
        return []
    try:
        own, many = _scores(chosen, protocol.replace(thresholds=COARSE))
    except DataError:
        return []
    if many - own <= GAIN:
        return []
    message = (
        f"edges are detected more than once: ODS about {own:.2f} one to one, as the benchmark "
        f"matches, {many:.2f} many to one, as home-made scripts with a distance transform do"
    )
    fix = "thin the maps (--nms); do not compare with numbers from such scripts"
    return [Finding("many-to-one", "warning", message, tuple(c.file for c in chosen), fix)]


def _scores(cases: Sequence[Any], protocol: Protocol) -> tuple[float, float]:
    """ODS of a few images, matched one to one and many to one."""
    from bsdsbench.metrics.boundary import boundary_counts
    from bsdsbench.metrics.many_to_one import many_to_one_counts

    best = []
    for count in (boundary_counts, many_to_one_counts):
        total = np.sum([four_counts(count(c.pred, c.gt, protocol)) for c in cases], axis=0)
        found = f_measure(ratio(total[:, 2], total[:, 3]), ratio(total[:, 0], total[:, 1]))
        best.append(float(found.max()))
    return best[0], best[1]


# no map of the sample has a value of exactly k/100 or a level ridge
HUNDREDTHS = 0.01
LEVEL = 0.01


def level_ridges(cases: Sequence[Any], protocol: Protocol) -> list[Finding]:
    """Exactly horizontal ridges, which the NMS compares along themselves."""
    if not protocol.nms:
        return []
    found = [c for c in cases if symptoms.level_ridges(c.soft) > LEVEL]
    if not found:
        return []
    message = (
        f"{len(found)} of {len(cases)} maps have exactly horizontal ridges: NMS takes their "
        "orientation as 0 and leaves them thick, as every program of it does"
    )
    return [Finding("level-ridges", "warning", message, tuple(c.file for c in found))]


def grid_values(cases: Sequence[Any], protocol: Protocol) -> list[Finding]:
    """Values that are k/100, where the grid of thresholds is 0.01 .. 0.99 in MATLAB's bits."""
    grid = set(protocol.thresholds)
    off = sum(
        k / 100 not in grid and round(k / 100, 9) in {round(t, 9) for t in grid}
        for k in range(1, 100)
    )
    floats = [c for c in cases if c.pred.soft is not None and c.pred.soft.dtype.kind == "f"]
    found = [
        c
        for c in floats
        if c.pred.soft is not None and symptoms.on_hundredths(c.pred.soft) > HUNDREDTHS
    ]
    if not off or not found or protocol.nms:
        return []
    message = (
        f"{len(found)} of {len(floats)} float maps hold values of exactly k/100; the thresholds "
        f"are MATLAB's linspace, {off} of which differ from k/100 in the last bit: rounding "
        "decides whether such a value is on"
    )
    fix = "save the maps unrounded, or as 8 or 16 bit PNG"
    return [Finding("grid-values", "warning", message, tuple(c.file for c in found), fix)]


def wrong_places(cases: Sequence[Any]) -> list[Finding]:
    """Maps that lie mirrored or transposed, or belong to another image: all of them are asked."""
    cases = [c for c in cases if not c.faults and c.look.measured]
    ways: dict[str, list[Any]] = {}
    for case in cases:
        if way := position(case.look):
            ways.setdefault(way, []).append(case)
    found = []
    for way, turned in ways.items():
        message = f"{counted(len(turned), 'map')} would fit the ground truth better {way}"
        code = "transposed" if way == "transposed" else "mirrored"
        found.append(an_error(code, message, turned, "turn them back before saving"))
    by_id = {c.image_id: c for c in cases if not c.faults}
    if swapped := dict(swaps([c.look for c in by_id.values()])):
        a, b = next(iter(swapped.items()))
        message = (
            f"{counted(len(swapped), 'map')} would fit the ground truth of another image, such as "
            f"the map of {a} that of {b}"
        )
        fix = "check the order of names and maps where they are saved"
        found.append(an_error("exchanged", message, [by_id[i] for i in swapped], fix))
    return found


def an_error(code: str, message: str, cases: Sequence[Any], fix: str = "") -> Finding:
    """An error of these files; they are not measured any further."""
    for case in cases:
        case.faults.add(code)
    return Finding(code, "error", message, tuple(c.file for c in cases), fix)
