"""The doctor for metrics that read something else than boundaries.

Every pair is read as `evaluate` reads it. Sizes are compared, a few images are counted, and the
metric says what looks wrong in them (`Metric.symptoms`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bsdsbench.diagnosis.findings import Finding, Findings, counted
from bsdsbench.files.errors import DataError, PairingError
from bsdsbench.loaders import pair, read_prediction, read_truth
from bsdsbench.loaders.inputs import GroundTruth, Prediction
from bsdsbench.loaders.pairing import Pair
from bsdsbench.metrics.base import Metric
from bsdsbench.protocol.protocol import Protocol

Read = tuple[str, Prediction, GroundTruth]


def examine(
    pred_dir: Path,
    gt_dir: Path,
    metric: Metric,
    protocol: Protocol,
    pred_kind: str,
    split_file: str | Path | None = None,
    looked_at: int = 12,
) -> Findings:
    """What is wrong with the inputs of a metric, errors first."""
    kinds = {"pred_kind": pred_kind, "gt_kind": metric.gt_kind}
    names = metric.class_names(metric.options_of(protocol))
    try:
        pairs = pair(pred_dir, gt_dir, split_file, classes=names, **kinds)
    except PairingError as error:
        return Findings([Finding("names", "error", line) for line in error.problems])
    found: list[Finding] = []
    sound: list[Read] = []
    for each in pairs:
        try:
            pred, gt = _read(each, metric, protocol, pred_kind)
        except DataError as error:
            found.append(Finding("unreadable", "error", error.problems[0]))
            continue
        if metric.fits(pred, gt, metric.options_of(protocol)):
            sound.append((each.image_id, pred, gt))
        else:
            sizes = " for ".join(f"{a} x {b}" for a, b in (pred.shape, gt.shape))
            where = each.pred_paths[0].name if each.pred_paths else each.image_id
            fix = "predict at the size of the ground truth, or resize to it"
            found.append(Finding("sizes", "error", f"{sizes} of the truth", (where,), fix))
    chosen = sound[:: max(1, -(-len(sound) // looked_at))]
    found += _symptoms(chosen, metric, protocol)
    out = Findings(sorted(_together(found), key=lambda f: f.level != "error"))
    out.n_images, out.n_measured, out.what = len(pairs), len(chosen), "values looked at in"
    return out


def _read(
    each: Pair, metric: Metric, protocol: Protocol, pred_kind: str
) -> tuple[Prediction, GroundTruth]:
    gt = read_truth(
        each, metric.gt_kind, protocol, metric.reads_instances(metric.options_of(protocol))
    )
    n_classes = len(metric.class_names(metric.options_of(protocol))) or 1
    return read_prediction(each, pred_kind, gt.shape, n_classes), gt


def _symptoms(chosen: Sequence[Read], metric: Metric, protocol: Protocol) -> list[Finding]:
    """What counting refuses, and what the metric finds odd in half of the images or more."""
    found: list[Finding] = []
    odd: dict[tuple[str, str, str], list[str]] = {}
    opt = metric.options_of(protocol)
    for image_id, pred, gt in chosen:
        try:
            metric.count(pred, gt, protocol, opt)
        except DataError as error:
            found.append(Finding("refused", "error", error.problems[0]))
            continue
        for symptom in metric.symptoms(pred, gt, protocol, opt):
            odd.setdefault(symptom, []).append(pred.path.name if pred.path else image_id)
    return found + [
        Finding(code, "warning", f"{message} in {counted(len(names), 'image')}", tuple(names), fix)
        for (code, message, fix), names in odd.items()
        if 2 * len(names) >= len(chosen)
    ]


def _together(found: Sequence[Finding]) -> list[Finding]:
    """Findings of one code and message as one, with all their files."""
    same: dict[tuple[str, str, str, str], list[str]] = {}
    for f in found:
        same.setdefault((f.code, f.level, f.message, f.fix), []).extend(f.files)
    return [
        Finding(c, level, text, tuple(files), fix) for (c, level, text, fix), files in same.items()
    ]
