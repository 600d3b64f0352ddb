"""The entry points of a run: folders, the annotators of a data set, and any iterable of images.

Each entry point resolves its keywords into a `Plan`, lists the images of its source, and passes
both to `runs.engine.run_source`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence, Sized
from typing import Any, Unpack

from bsdsbench.arguments import kind_of_value
from bsdsbench.errors import DataError
from bsdsbench.loaders.pairing import ground_truths
from bsdsbench.metrics import registry
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.provenance import Provenance
from bsdsbench.runs.arrays import array_items
from bsdsbench.runs.engine import run_source
from bsdsbench.runs.keywords import HumanOptions, ItemOptions, RunOptions, StrPath, plan_call
from bsdsbench.runs.sources import (
    FileItem,
    RunHeader,
    check_truth,
    folder_header,
    list_items,
)


def evaluate(
    pred_dir: StrPath,
    gt_dir: StrPath,
    protocol: Protocol | str | None = None,
    metrics: str | Sequence[str] = registry.DEFAULT_METRICS,
    **options: Unpack[RunOptions],
) -> Evaluation:
    """Evaluate a folder of predictions against a folder of ground truth.

    The scores do not depend on workers, executor or shards.

    Parameters
    ----------
    pred_dir, gt_dir : path
        Folders with files of any formats, also in nested folders. Files are paired by image id.
    protocol : Protocol or str or None
        A Protocol or the name of a preset. Default: the protocol of the first metric.
    metrics : str or sequence of str
        Names of metrics that read the same kind of ground truth.
    **options : RunOptions
        Keywords of the run, described in `runs.keywords.RunKeywords`.

    Returns
    -------
    Evaluation
        Records and scores of the run.

    Raises
    ------
    DataError
        If a folder is empty, or an image or the set has a problem. Every problem is listed, and
        `out` keeps the records of the images without problems.

    Warns
    -----
    InputWarning
        If the first maps are inverted, flipped, swapped or too thick, if most maps of the set are
        inverted, or if all maps are zero everywhere.

    Examples
    --------
    >>> import tempfile
    >>> import bsdsbench as bb
    >>> from bsdsbench.loaders.sample import sample_ground_truth, sample_images
    >>> maps = bb.run("sobel", sample_images(), out=tempfile.mkdtemp()).maps
    >>> run = bb.evaluate(maps, sample_ground_truth(), "bsds500", workers=1)
    >>> round(run.boundary_score().ods.f, 3)
    0.619
    """
    plan = plan_call("evaluate", RunOptions, options, protocol, metrics)
    plan.refuse_out_in(pred_dir=pred_dir, gt_dir=gt_dir)
    ids = None
    if plan.task is not None:
        check_truth(plan.task, gt_dir, plan.protocol, plan.split_file)
        ids = None if plan.split_file else plan.task.ids or None
    items, absent = list_items(pred_dir, gt_dir, plan, ids)
    header = folder_header(items, plan, pred=pred_dir, gt=gt_dir)
    return run_source(items, plan, header.with_provenance(no_prediction=absent))


def evaluate_humans(
    gt_dir: StrPath,
    protocol: Protocol | str | None = None,
    metrics: str | Sequence[str] = registry.DEFAULT_METRICS,
    **options: Unpack[HumanOptions],
) -> Evaluation:
    """Score each annotator of a data set against the others: the human point in plots.

    Parameters
    ----------
    gt_dir : path
        Folder of ground truth. Every image needs two or more annotators.
    protocol : Protocol or str or None
        A Protocol or the name of a preset. Default: the protocol of the first metric.
    metrics : str or sequence of str
        Names of metrics that can score annotators.
    **options : HumanOptions
        Keywords of the run, described in `runs.keywords.RunKeywords`.

    Returns
    -------
    Evaluation
        Records and scores of the annotators, under the name "human".

    Raises
    ------
    DataError
        If an image or the set has a problem. Every problem is listed.

    Examples
    --------
    >>> import bsdsbench as bb
    >>> from bsdsbench.loaders.sample import sample_ground_truth
    >>> run = bb.evaluate_humans(sample_ground_truth(), workers=1)
    >>> round(run.boundary_score().ods.f, 3)
    0.81
    """
    plan = plan_call("evaluate_humans", HumanOptions, options, protocol, metrics)
    plan.refuse_out_in(gt_dir=gt_dir)
    folder = os.path.abspath(gt_dir) if plan.on_dask else gt_dir  # workers are in other folders
    items = [FileItem(p, "", form="humans") for p in ground_truths(folder, plan.split_file)]
    return run_source(items, plan, folder_header(items, plan, gt=gt_dir))


def evaluate_items(
    items: Iterable[tuple[Any, Any, Any]],
    protocol: Protocol | str | None = None,
    metrics: str | Sequence[str] = registry.DEFAULT_METRICS,
    **options: Unpack[ItemOptions],
) -> Evaluation:
    """Evaluate images from an iterable: a data set of another library, arrays in zarr, a generator.

    Each worker reads a few images at a time. The scores are those of files with the same values.

    Parameters
    ----------
    items : iterable of (id, prediction, truth)
        The image id is text or an integer. Prediction and truth have the forms that
        `StreamingEvaluator.update` accepts for one image.
    protocol : Protocol or str or None
        A Protocol or the name of a preset. Default: the protocol of the first metric.
    metrics : str or sequence of str
        Names of metrics that read the same kind of ground truth.
    **options : ItemOptions
        Keywords of the run, described in `runs.keywords.RunKeywords`.

    Returns
    -------
    Evaluation
        Records and scores of the run.

    Raises
    ------
    DataError
        If an image or the set has a problem. Every problem is listed, but an item that is not such
        a triple, or a repeated id, ends the run at once.

    Examples
    --------
    >>> import numpy as np
    >>> maps = (("a", np.eye(20), [np.eye(20)]), ("b", np.eye(20), [np.eye(20)]))
    >>> evaluate_items(maps, workers=1).boundary_score().ods.f
    1.0
    """
    if not isinstance(items, Iterable):
        raise DataError(f"items: {kind_of_value(items)}, expected an iterable of images")
    plan = plan_call("evaluate_items", ItemOptions, options, protocol, metrics, name="items")
    provenance = Provenance(pred_kind=plan.pred_kind, missing="error")
    total = len(items) if isinstance(items, Sized) else 0
    images = array_items(items, plan)
    return run_source(images, plan, RunHeader(str(plan.name), plan.protocol, provenance), total)
