"""The doctor: errors in the inputs, found before a long run.

Names are compared first, then every file is read once (sizes, values). Properties that need a
transform (polarity, thickness, traces of JPEG, shift) are measured on a few images spread over the
set. Each finding lists its files and the fix. Errors make a score wrong or impossible; warnings may
be intended.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bsdsbench.diagnosis import symptoms
from bsdsbench.diagnosis.findings import (
    Files,
    Finding,
    Findings,
    Steps,
    an_error,
    counted,
    doubled,
    grid_values,
    level_ridges,
    listing,
    many_to_one,
    unmatched,
    wrong_places,
)
from bsdsbench.diagnosis.metric_doctor import examine
from bsdsbench.files.arguments import given_path
from bsdsbench.files.errors import DataError
from bsdsbench.loaders import load_ground_truth, load_prediction
from bsdsbench.loaders.formats import read_arrays
from bsdsbench.loaders.inputs import GroundTruth, Prediction
from bsdsbench.metrics import registry
from bsdsbench.metrics.maps import ALL_ZERO, faint_set
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs.evaluation import Progress
from bsdsbench.runs.first_look import Look, look_at, thickness
from bsdsbench.runs.run_options import kind_of, protocol_of

# Thresholds of the verdicts. They lie far from what sound maps give: thinned maps are 0.00 to 0.56
# thick and raw ones 0.99; JPEG traces are below 1.13 in sound maps and above 1.29 at quality 92;
# sound maps of three detectors and of UCMs are 0.00 to 0.39 pixels off.
THICK, THIN = 0.8, 0.6
JPEG = 1.2
SHIFT = 1.2
FEW_VALUES = 10
# Data sets whose images have many annotators, all of which count
MANY_ANNOTATORS = ("bsds500", "bsds300", "mdbd-edges", "mdbd-boundaries")
CORRELATED = 0.05
# Words of the loaders' refusals: the code and what fixes it
REASONS = {
    "label maps need pred_kind": ("labels", "--pred-kind labels"),
    "no boundary pixel in any": ("empty-truth", ""),
    "expected boundaries of 0 and 1": (
        "gt-values",
        "--set gt_threshold=0.5 for gray, --set gt_kind=labels for region labels",
    ),
}


@dataclass(slots=True)
class _Case:
    """A pair of files, read."""

    image_id: str
    pred: Prediction
    gt: GroundTruth
    look: Look
    faults: set[str] = field(default_factory=set)

    @property
    def file(self) -> str:
        return self.pred.path.name if self.pred.path else self.image_id

    @property
    def soft(self) -> NDArray[np.float64] | None:
        """The map as the protocol takes it, in [0, 1]; None where there is none."""
        return self.look.soft if self.look.soft.size else None

    def truth(self) -> NDArray[np.float64]:
        return self.look.truth


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
    pred_dir : path
        Folder of predictions.
    gt_dir : path
        Folder of ground truth.
    protocol : Protocol or None
        What `evaluate` will be called with, as some faults depend on it; bsds500 if None.
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
        Called with (steps done, all steps, what comes next); a step is an image, or a look at some.

    Returns
    -------
    list[Finding]
        What is wrong, the worst first; empty if nothing is.

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
    folders = given_path(pred_dir, "pred_dir"), given_path(gt_dir, "gt_dir")
    pred_kind = kind_of(pred_kind, [metric])
    if metric not in registry.DEFAULT:
        proto = protocol_of(protocol, [metric])
        return examine(*folders, registry.get(metric), proto, pred_kind, split_file, looked_at)
    protocol = Protocol.of(protocol)
    preds, gts = listing(*folders, split_file, pred_kind)
    found = [*unmatched(preds, gts), *doubled(preds, gts, frames=split_file is not None)]
    both = [i for i in gts if i in preds]
    looks = (_thickness, level_ridges, grid_values, _jpeg, _shift)
    step = Steps(len(both) + len(looks) + 1, progress)
    cases, unread = _read(map(step, both), preds, gts, protocol, pred_kind)
    found += unread
    found += _sizes(cases)
    found += _annotators(cases, protocol)
    found += _values(cases, protocol)
    sound = [c for c in cases if c.soft is not None and not c.faults]
    chosen = sound[:: max(1, -(-len(sound) // looked_at))]
    found += _polarity(chosen)
    found += wrong_places(sound)
    for look in map(step, looks):
        found += look(chosen, protocol)
    step(None)
    if all(f.level != "error" for f in found):
        found += many_to_one(chosen, protocol)
    out = Findings(sorted(found, key=lambda f: f.level != "error"))
    out.n_images, out.n_measured = len(both), len(chosen)
    return out


# ---- every file ----------------------------------------------------------------------------------


def _read(
    ids: Iterable[str], preds: Files, gts: Files, protocol: Protocol, pred_kind: str
) -> tuple[list[_Case], list[Finding]]:
    """The pairs that can be read, and a finding for each kind of file that cannot."""
    cases, ranges, broken = [], [], []
    for image_id in ids:
        try:
            gt = load_ground_truth(gts[image_id], image_id, **protocol.gt_options())
        except DataError as error:
            broken.append((gts[image_id][0].name, str(error)))
            continue
        path = preds[image_id][0]
        files = preds[image_id] if pred_kind == "labels" else path
        try:
            pred = load_prediction(files, image_id, pred_kind)
        except DataError as error:
            top = _largest(path)
            if 1 < top <= 255:
                ranges.append((path.name, top))
            else:
                broken.append((path.name, str(error)))
            continue
        cases.append(_Case(image_id, pred, gt, look_at(pred, gt, protocol)))
    found = []
    for text, names in _alike(broken):
        code, fix = next((v for k, v in REASONS.items() if k in text), ("unreadable", ""))
        found.append(Finding(code, "error", text, tuple(names), fix))
    if ranges:
        message = f"float values up to {max(t for _, t in ranges):g}, expected 0 .. 1"
        fix = "divide by 255, or save as 8-bit PNG"
        found.append(Finding("range", "error", message, tuple(n for n, _ in ranges), fix))
    return cases, found


def _alike(broken: Sequence[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    """(file, fault) pairs as (fault, files): one entry for faults that differ in numbers only."""
    kinds: dict[str, list[tuple[str, str]]] = {}
    for name, text in broken:
        what = text.partition(": ")[2] or text
        kinds.setdefault(re.sub(r"[0-9][0-9.e+-]*", "#", what), []).append((name, text))
    out = []
    for same in kinds.values():
        text = same[0][1]
        if len(same) > 1:
            text = f"{len(same)} files: {text.partition(': ')[2] or text}"
        out.append((text, [name for name, _ in same]))
    return out


def _largest(path: Path) -> float:
    """The largest value of a float array in a file, or -1 where there is none."""
    try:
        arrays = read_arrays(path).values()
    except DataError:
        return -1.0
    tops = [
        float(a.max())
        for a in arrays
        if isinstance(a, np.ndarray) and a.dtype.kind == "f" and a.size and a.min() >= 0
    ]
    return max(tops, default=-1.0)


def _sizes(cases: Sequence[_Case]) -> list[Finding]:
    turned, odd, mixed = [], [], []
    for case in cases:
        have, want = case.pred.shape, case.gt.shape
        if any(b.shape != want for b in case.gt.boundaries):
            mixed.append(case)
        elif have == want:
            continue
        elif have == want[::-1]:
            turned.append(case)
        else:
            odd.append(case)
    found = []
    if mixed:
        found.append(an_error("annotators", "annotators of one image have several sizes", mixed))
    if turned:
        message = f"{counted(len(turned), 'prediction')} transposed: rows and columns are exchanged"
        found.append(an_error("transposed", message, turned, "transpose them before saving"))
    if odd:
        have, want = odd[0].pred.shape, odd[0].gt.shape
        example = f"{have[0]} x {have[1]} for an image of {want[0]} x {want[1]}"
        if len(odd) == len(cases):
            message, code = f"every prediction is resized: {example}", "resized"
        else:
            message, code = f"mixed sizes: {len(odd)} of {len(cases)} differ: {example}", "sizes"
        found.append(
            an_error(code, message, odd, "predict at the size of the image, or resize to it")
        )
    return found


def _annotators(cases: Sequence[_Case], protocol: Protocol) -> list[Finding]:
    found: list[Finding] = []
    empty: list[tuple[_Case, list[int]]] = []
    dark: list[_Case] = []
    for case in cases:
        marks = [bool(b.any()) for b in case.gt.boundaries]
        if not all(marks):
            empty.append((case, [k + 1 for k, m in enumerate(marks) if not m]))
        elif np.mean([b.mean() for b in case.gt.boundaries]) > 0.5:
            dark.append(case)
    alone = all(len(c.gt.boundaries) == 1 for c in cases)
    if cases and alone and protocol.name.rstrip("*") in MANY_ANNOTATORS:
        message = f"one annotator an image, where {protocol.name} has several that all count"
        fix = "give --gt the original annotations, or --protocol of your data set"
        found.append(Finding("one-annotator", "warning", message, (), fix))
    if dark:
        message = "most ground-truth pixels are boundary: dark lines on bright ground?"
        found.append(an_error("gt-polarity", message, dark, "--set gt_invert=true"))
    if empty:
        names = tuple(f"{c.image_id} annotator {', '.join(map(str, k))}" for c, k in empty)
        message = f"an annotator has no boundary in {counted(len(empty), 'image')}"
        found.append(Finding("empty-annotator", "warning", message, names, "check the annotations"))
    return found


def _values(cases: Sequence[_Case], protocol: Protocol) -> list[Finding]:
    faint = faint_set([c.pred for c in cases], protocol)
    if faint and faint != ALL_ZERO:
        message, _, fix = faint.partition(": ")
        return [an_error("faint", message, cases, fix)]
    found: list[Finding] = []
    zero: list[_Case] = []
    full: list[_Case] = []
    few: list[_Case] = []
    for case in cases:
        soft = case.soft
        if soft is None or not soft.size:
            continue
        if soft.min() == soft.max():
            (zero if soft.max() == 0 else full).append(case)
        elif case.pred.soft is not None and len(np.unique(soft)) < FEW_VALUES:
            few.append(case)
    if zero:
        found.append(
            an_error("zero", f"{counted(len(zero), 'map')} with zeros only", zero, "predict again")
        )
    if full:
        message = f"{counted(len(full), 'map')} with one value everywhere (saturated?)"
        found.append(
            an_error("saturated", message, full, "save the sigmoid's output, not the logits")
        )
    if few:
        what = f"{counted(len(few), 'map')} with fewer than {FEW_VALUES} values"
        message = f"{what}: the curve has few points"
        names = tuple(c.file for c in few)
        found.append(Finding("few-values", "warning", message, names, "save soft maps"))
    return found


# ---- a few images --------------------------------------------------------------------------------


def _soft(case: _Case) -> NDArray[np.float64]:
    if case.soft is None:
        raise ValueError("a case without a soft map was chosen")
    return case.soft


def _polarity(cases: Sequence[_Case]) -> list[Finding]:
    """Inverted where the ground truth's neighbourhood is darker than the rest."""
    dark, bright_ground = [], []
    for case in cases:
        near, far = symptoms.near_and_far(_soft(case), case.truth())
        if near < far:
            dark.append(case)
            if np.median(_soft(case)) > 0.5:
                bright_ground.append(case)
    wrong = dark if len(dark) > len(cases) / 2 else bright_ground
    if not wrong:
        return []
    message = f"{len(wrong)} of {len(cases)} maps are darker on the ground truth than off it"
    return [an_error("inverted", message, wrong, "--invert")]


def _thickness(cases: Sequence[_Case], protocol: Protocol) -> list[Finding]:
    """Raw maps that need NMS, or thin ones that must not have it."""
    soft = [c for c in cases if c.pred.soft is not None and "inverted" not in c.faults]
    measured = [(c, thickness(_soft(c))) for c in soft]
    raw = [c for c, t in measured if t > THICK]
    thin = [c for c, t in measured if t < THIN]
    if raw and not protocol.nms and protocol.thin:
        message = f"{len(raw)} of {len(soft)} maps have broad edges: never thinned by NMS"
        return [Finding("raw", "warning", message, tuple(c.file for c in raw), "--nms")]
    if thin and (protocol.nms or not protocol.thin):
        message = f"{len(thin)} of {len(soft)} maps are thinned already"
        fix = "leave out --nms" if protocol.nms else "give the raw maps to this protocol"
        return [Finding("thinned", "warning", message, tuple(c.file for c in thin), fix)]
    return []


def _jpeg(cases: Sequence[_Case], _: Protocol) -> list[Finding]:
    marked = [
        c
        for c in cases
        if c.file.lower().endswith((".jpg", ".jpeg"))
        or (c.pred.soft is not None and symptoms.jpeg_ratio(_soft(c)) > JPEG)
    ]
    if not marked:
        return []
    message = f"{len(marked)} of {len(cases)} maps have been through JPEG, which invents edges"
    return [
        Finding("jpeg", "warning", message, tuple(c.file for c in marked), "save as PNG or .npy")
    ]


def _shift(cases: Sequence[_Case], _: Protocol) -> list[Finding]:
    """A common displacement."""
    cases = [c for c in cases if not c.faults]
    if not cases:
        return []
    surfaces = [symptoms.correlation(_soft(c), c.truth()) for c in cases]
    total = np.mean(surfaces, axis=0)
    dy, dx = symptoms.shift_of(total)
    if max(abs(dy), abs(dx)) <= SHIFT or total.max() < CORRELATED:
        return []
    message = f"maps are shifted by about {dy:+.1f} rows and {dx:+.1f} columns"
    files = tuple(c.file for c in cases)
    return [Finding("shift", "warning", message, files, "undo the padding or crop of the network")]
