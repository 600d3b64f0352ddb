"""The doctor: find errors in the inputs before a long run.

Every file is read once, for sizes, values and the polarity of the ground truth. A few images spread
over the set are also measured, which is slower. A remedy that can be applied to the maps is
reported only if it raises the F of these images. `checks.CHECKS` has the messages, and
`measured_maps` the measurements.

The doctor cannot detect maps that were computed at a lower resolution and upsampled, because they
look like other blurred maps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from bsdsbench.arguments import check_number, check_path
from bsdsbench.diagnosis import checks
from bsdsbench.diagnosis.checks import ERROR, Findings
from bsdsbench.errors import DataError
from bsdsbench.loaders.pairing import Layout, group_files
from bsdsbench.metrics import registry
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.results.evaluation import Evaluation, Progress
from bsdsbench.results.score_tables import is_ap, late_starts_note
from bsdsbench.runs.keywords import Plan, RunKeywords, make_plan
from bsdsbench.text import quantity


def doctor(
    pred_dir: str | Path,
    gt_dir: str | Path,
    protocol: Protocol | str | None = None,
    *,
    split_file: str | Path | None = None,
    pred_kind: str | None = None,
    metrics: str | Sequence[str] = registry.DEFAULT_METRICS,
    looked_at: int = 12,
    progress: Progress | None = None,
) -> Findings:
    """Examine predictions and ground truth, and list the problems, errors first.

    Parameters
    ----------
    pred_dir, gt_dir : path
        Folders of predictions and of ground truth.
    protocol : Protocol or None
        The protocol that `evaluate` will use. Default: the metric's protocol.
    split_file : path or None
        A file with the ids of the images to examine.
    pred_kind : str or None
        "soft", or "labels" for images and arrays that hold label maps. Default: the kind that the
        metric expects.
    metrics : str or sequence of str
        The metrics that `evaluate` will use. Boundary maps are examined most closely; other metrics
        define their own checks.
    looked_at : int
        About how many images, evenly spread over the set, are also measured, which is slower.
    progress : callable or None
        Called with (done, total, name) before each image, and with the name "checks" at the end.

    Returns
    -------
    Findings
        A list of findings. Its attributes `reading` and `note` say how the files were interpreted,
        and whether AP is low because the curve starts at a high recall.

    Raises
    ------
    PairingError
        If a folder cannot be listed. A problem with a file is a finding, not an error.
    DataError
        If the metric does not take this kind of prediction.

    Examples
    --------
    >>> import tempfile
    >>> import bsdsbench as bb
    >>> from bsdsbench.loaders.sample import sample_ground_truth, sample_images
    >>> thick = bb.run("structure-tensor-raw", sample_images(), out=tempfile.mkdtemp()).maps
    >>> [finding.fixes() for finding in bb.doctor(thick, sample_ground_truth())]
    ['nms=True']
    """
    keywords = RunKeywords(pred_kind=pred_kind, split_file=split_file)
    options = make_plan(keywords, protocol, metrics)  # checks and defaults as in `evaluate`
    findings = Findings()
    readings, notes = dict[str, None](), dict[str, None]()  # distinct texts, in order
    for name in options.metrics:
        new = _examine_metric(name, options, pred_dir, gt_dir, looked_at, progress)
        # Problems such as a missing file are found once for each metric, and listed once
        findings += [finding for finding in new if finding not in findings]
        # Every metric reads the same images, so the numbers of the last one are kept
        findings.n_images, findings.n_measured = new.n_images, new.n_measured
        readings[new.reading] = notes[new.note] = None
    findings.sort(key=lambda finding: finding.level != ERROR)  # False, an error, sorts first
    findings.reading = "; ".join(filter(None, readings))
    findings.note = "; ".join(filter(None, notes))
    return findings


def _examine_metric(
    name: str,
    options: Plan,
    pred_dir: str | Path,
    gt_dir: str | Path,
    looked_at: int,
    progress: Progress | None,
) -> Findings:
    """Examine folders of predictions and ground truth for problems, as one metric reads them.

    All images with both a prediction and ground truth are read. About `looked_at` of them, evenly
    spread, are also measured. If one of these cannot be measured, the next image is used instead.

    name : the metric
    options : the protocol, split file and kind of predictions, as `evaluate` would use them

    Returns the findings in the order of the checks. Their `reading` says how the files were
    interpreted. Their `note` is set only if there is no error.
    """
    metric = registry.get(name)
    looked_at = int(check_number(looked_at, "looked_at", 1, 10**7, whole=True))
    files = metric.files_read(metric.options_of(options.protocol))  # what they should contain
    grouping = group_files(
        check_path(pred_dir, "pred_dir"),
        check_path(gt_dir, "gt_dir"),
        split=options.split_file,
        pred_kind=options.pred_kind,
        gt_kind=metric.gt_kind,
        classes=files.classes,
        sequences=files.sequences,
    )
    examination = checks.Examination(metric, options.protocol, options.pred_kind, grouping)
    ids = [image_id for image_id in grouping.gt.files if image_id in grouping.pred.files]
    spacing = max(1, math.ceil(len(ids) / looked_at))  # images from one measured image to the next
    for k, image_id in enumerate(ids):
        if progress:
            progress(k + 1, len(ids) + 1, image_id)  # one step more than images: the checks
        # Read every image, and measure it (which is slow) if fewer were measured than even spacing
        # requires so far: with a spacing of 10, image 20 if only two images were measured before
        measure = len(examination.measured) * spacing <= k
        examination.read_image(image_id, measure)
    if progress:
        progress(len(ids) + 1, len(ids) + 1, "checks")
    # Each check adds its findings, and may exclude images with an error from the later checks
    checks.check_image_names(examination)
    checks.check_files(examination)
    checks.check_values(examination)
    checks.check_fit(examination)
    findings = examination.findings
    findings.n_images = len(ids)
    findings.n_measured = len(examination.measured)
    # Describe how values were interpreted, from what was seen in the files (`records`), and how
    # many files an image has (layouts)
    layouts = Layout.of_files(grouping.pred.files), Layout.of_files(grouping.gt.files)
    findings.reading = examination.readings.describe(examination.records, *layouts)
    has_error = any(finding.level == ERROR for finding in findings)
    if examination.measured and not has_error and any(is_ap(c.key) for c in metric.columns):
        # Some AP rules count the precision below the smallest recall as 0, so that AP is low if the
        # curve starts at a high recall
        run = Evaluation(options.protocol, name="maps", records=examination.measured)
        try:
            if line := late_starts_note([run], name):
                images = quantity(findings.n_measured, "image")
                findings.note = f"note: of the {images} measured, {line}"
        except DataError as error:  # these images have no score
            examination.report("refused", words=error.problems[0])
    return findings
