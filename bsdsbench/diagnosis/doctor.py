"""The doctor: errors in the inputs, found before a long run.

Names are compared first, then every file is read once, one image after the other; what is kept of
an image is numbers and two thumbnails. What takes a transform (polarity, thickness, traces of JPEG,
shift) is measured on a few images spread over the set. `checks.CHECKS` says what is made of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bsdsbench.diagnosis.checks import CHECKS, Inputs, Seen
from bsdsbench.files.arguments import given_path
from bsdsbench.files.bounded import counted, listed
from bsdsbench.metrics import registry
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs.evaluation import Progress
from bsdsbench.runs.run_options import RunOptions


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault: its code, "error" or "warning", what it is, the files, and what fixes it.

    Parameters
    ----------
    code, message : str
        Short name of the kind of fault; what is wrong, in one line.
    level : str
        "error" (a score would be wrong or impossible) or "warning" (it may be intended).
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
        """One printable line, with `limit` of the files."""
        where = f" [{listed(list(self.files), limit)}]" if self.files else ""
        fix = f" -> {self.fix}" if self.fix else ""
        return f"{self.level}: {self.code}: {self.message}{where}{fix}"


class Findings(list[Finding]):
    """What `doctor` found, errors first; n_measured of n_images took the slower measurements."""

    n_images: int = 0
    n_measured: int = 0

    def summary(self) -> str:
        """One line: how many errors and warnings, and on how much they rest."""
        errors = sum(f.level == "error" for f in self)
        counts = f"{counted(errors, 'error')}, {counted(len(self) - errors, 'warning')}"
        return (
            f"{counts if self else 'nothing found'}; {counted(self.n_images, 'image')} read, "
            f"{self.n_measured} of them measured"
        )


def doctor(
    pred_dir: str | Path,
    gt_dir: str | Path,
    protocol: Protocol | str | None = None,
    *,
    split_file: str | Path | None = None,
    pred_kind: str | None = None,
    metric: str = registry.DEFAULT[0],
    looked_at: int = 12,
    progress: Progress | None = None,
) -> Findings:
    """Examine predictions and ground truth; errors first, an empty list if all is well.

    Parameters
    ----------
    pred_dir, gt_dir : path
        Folders of predictions and of ground truth.
    protocol : Protocol or None
        What `evaluate` will be called with, as some faults depend on it; the metric's if None.
    split_file : path or None
        Only the ids in this file count.
    pred_kind : str or None
        "soft", or "labels" for pictures and arrays that hold label maps; default: what the metric
        expects.
    metric : str
        What the inputs are for; of others than boundaries the metric says what looks wrong.
    looked_at : int
        How many images the slower measurements take, spread over the set.
    progress : callable or None
        Called with (steps done, all steps, what comes next); a step is an image, or the checks.

    Raises
    ------
    PairingError
        If a folder cannot be listed; every fault of a file is a finding.
    DataError
        For a kind of prediction that the metric does not take.

    Examples
    --------
    >>> import tempfile
    >>> import bsdsbench as bb
    >>> from bsdsbench.loaders.sample import sample_ground_truth, sample_images
    >>> thick = bb.run("structure-tensor-raw", sample_images(), out=tempfile.mkdtemp()).maps
    >>> [finding.fix for finding in bb.doctor(thick, sample_ground_truth())]
    ['--nms']
    """
    options = RunOptions(
        protocol=protocol, metrics=(metric,), pred_kind=pred_kind, split_file=split_file
    )
    inputs = Inputs(registry.get(metric), options.protocol, str(options.pred_kind), split_file)
    inputs.group(given_path(pred_dir, "pred_dir"), given_path(gt_dir, "gt_dir"))
    both = [image_id for image_id in inputs.gts if image_id in inputs.preds]
    step = max(1, -(-len(both) // looked_at))
    for k, image_id in enumerate(both):
        if progress:
            progress(k + 1, len(both) + 1, image_id)
        inputs.look_at(image_id, closely=len(inputs.measured or inputs.counts) * step <= k)
    if progress:
        progress(len(both) + 1, len(both) + 1, "checks")
    found = Findings(sorted(_findings(inputs), key=lambda f: f.level != "error"))
    found.n_images, found.n_measured = len(both), len(inputs.measured or inputs.counts)
    return found


def _findings(inputs: Inputs) -> Iterator[Finding]:
    for check in CHECKS:
        for hits, words in check.looks(inputs):
            files = tuple(hit.file if isinstance(hit, Seen) else hit for hit in hits)
            for hit in hits:
                if isinstance(hit, Seen) and check.level == "error":
                    hit.faults.add(check.name)
            given = {"n": len(hits), **words}
            message, fix = check.says.format(**given), check.mends.format(**given)
            yield Finding(check.name, check.level, message, files, fix)
    for (code, words_, fix), files_ in inputs.odd.items():  # what the metric itself finds odd
        if 2 * len(files_) >= len(inputs.counts):
            message = f"{words_} in {counted(len(files_), 'image')}"
            yield Finding(code, "warning", message, tuple(files_), fix)
