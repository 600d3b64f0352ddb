"""boundaryBench, regionBench and allBench of the official MATLAB benchmark (BSR/bench)."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bsdsbench.integrations.compat.shared import (
    evaluate_ids,
    picture_ids,
    protocol_of,
    write_official,
)
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs.evaluation import Evaluation
from bsdsbench.scores.counts import ImageRecord


def boundaryBench(  # noqa: N802
    imgDir: str | Path,
    gtDir: str | Path,
    inDir: str | Path,
    outDir: str | Path,
    nthresh: int = 99,
    maxDist: float = 0.0075,
    thinpb: bool = True,
    *,
    workers: int | None = None,
) -> Evaluation:
    """Boundary benchmark of a folder of results, with the official arguments and files.

    Parameters
    ----------
    imgDir : path
        Folder of pictures; their names say which images are evaluated.
    gtDir, inDir : path
        Folders of ground truth (.mat) and of results: soft maps (.png), `ucm2` or `segs` (.mat).
    outDir : path
        Gets eval_bdry.txt, eval_bdry_thr.txt, eval_bdry_img.txt and ID_ev1.txt of every image.
    nthresh : int
        Number of even thresholds; `segs` have those of their segmentations.
    maxDist : float
        Match tolerance, a fraction of the image diagonal.
    thinpb : bool
        Thin the thresholded maps before matching.
    workers : int, optional
        Images at a time; by default all cores.

    Returns
    -------
    Evaluation
        The run; the MATLAB function returns nothing.

    Raises
    ------
    DataError
        For missing or broken files, all of them listed.

    Notes
    -----
    The matching is the optimum, where the original's is random: cntR and cntP are never below the
    original's except for ties. Files in outDir are overwritten, where the original keeps
    them and computes nothing.

    Examples
    --------
    >>> import tempfile
    >>> import bsdsbench as bb
    >>> from bsdsbench.integrations.compat import boundaryBench
    >>> from bsdsbench.loaders.sample import sample_ground_truth, sample_images
    >>> maps = bb.run("sobel", sample_images(), out=tempfile.mkdtemp()).maps
    >>> out = tempfile.mkdtemp()
    >>> run = boundaryBench(sample_images(), sample_ground_truth(), maps, out, workers=1)
    >>> round(run.boundary_score().ods.f, 3)
    0.619
    """
    protocol = protocol_of(nthresh, maxDist, thinpb)
    return _bench((imgDir, gtDir, inDir, outDir), protocol, ("boundary",), workers)


def regionBench(  # noqa: N802
    imgDir: str | Path,
    gtDir: str | Path,
    inDir: str | Path,
    outDir: str | Path,
    nthresh: int = 99,
    *,
    strict: bool = False,
    workers: int | None = None,
) -> Evaluation:
    """Region benchmark (covering, PRI, VOI) of segmentations, with the official files.

    Parameters
    ----------
    imgDir, gtDir, inDir, outDir : path
        As in `boundaryBench`; results are `ucm2` or `segs`.
    nthresh : int
        Number of even thresholds of `ucm2`.
    strict : bool
        As the original has it: the sums of each image are rounded to six digits before they are
        added up, since the original writes them to files and reads them back.
    workers : int, optional
        Images at a time; by default all cores.

    Returns
    -------
    Evaluation
        The run. outDir gets eval_cover.txt, eval_cover_th.txt, eval_cover_img.txt, eval_RI_VOI.txt
        and eval_RI_VOI_thr.txt.

    Raises
    ------
    DataError
        For missing or broken files, all of them listed.

    Notes
    -----
    With `strict` the tables of the official self-test are met in every printed digit, without it
    within 1e-5.

    Examples
    --------
    >>> import tempfile
    >>> import bsdsbench as bb
    >>> from bsdsbench.integrations.compat import regionBench
    >>> from bsdsbench.loaders.sample import sample_ground_truth, sample_images
    >>> def bright(image):
    ...     return [(image[..., 1] > 128) + 1]
    >>> maps = bb.run(bright, sample_images(), out=tempfile.mkdtemp()).maps
    >>> out = tempfile.mkdtemp()
    >>> run = regionBench(sample_images(), sample_ground_truth(), maps, out, workers=1)
    >>> round(run.region_score().covering.ods, 3)
    0.388
    """
    protocol = protocol_of(nthresh, 0.0075, True)
    return _bench((imgDir, gtDir, inDir, outDir), protocol, ("region",), workers, strict)


def allBench(*arguments: Any, strict: bool = False, **options: Any) -> Evaluation:  # noqa: N802
    """`boundaryBench` and `regionBench` in one pass.

    Parameters
    ----------
    *arguments, **options : various
        Those of `boundaryBench`.
    strict : bool
        As in `regionBench`.

    Returns
    -------
    Evaluation
        The run, with the metrics boundary and region.

    Raises
    ------
    DataError
        For missing or broken files, all of them listed.

    Examples
    --------
    >>> import tempfile
    >>> import bsdsbench as bb
    >>> from bsdsbench.integrations.compat import allBench
    >>> from bsdsbench.loaders.sample import sample_ground_truth, sample_images
    >>> def bright(image):
    ...     return [(image[..., 1] > 128) + 1]
    >>> maps = bb.run(bright, sample_images(), out=tempfile.mkdtemp()).maps
    >>> run = allBench(sample_images(), sample_ground_truth(), maps, tempfile.mkdtemp(), workers=1)
    >>> run.metrics
    ('boundary', 'region')
    """
    bound = inspect.signature(boundaryBench).bind(*arguments, **options)
    bound.apply_defaults()
    *folders, nthresh, max_dist, thin = bound.args
    protocol = protocol_of(nthresh, max_dist, thin)
    return _bench(folders, protocol, ("boundary", "region"), bound.kwargs["workers"], strict)


def _bench(
    folders: Sequence[str | Path],
    protocol: Protocol,
    metrics: tuple[str, ...],
    workers: int | None,
    strict: bool = False,
) -> Evaluation:
    """folders : pictures, ground truth, results, output"""
    images, gt, pred, out = folders
    run = evaluate_ids(pred, gt, picture_ids(images), protocol, metrics, workers)
    if strict:
        run = replace(run, records=[_six_digits(record) for record in run.records])
    write_official(run, out)
    return run


def _six_digits(record: ImageRecord) -> ImageRecord:
    """The record with its region sums as they come back from text files of six digits."""
    counts: Any = record.counts["region"]
    names = ("covered_gt", "covered_pred", "best_covered_gt", "pri", "voi")
    rounded = {
        name: np.vectorize(lambda v: float(f"{v:g}"))(getattr(counts, name)) for name in names
    }
    return replace(record, counts={**record.counts, "region": replace(counts, **rounded)})
