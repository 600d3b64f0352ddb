"""boundaryBench, regionBench and allBench of the official MATLAB benchmark (BSR/bench)."""

from __future__ import annotations

from pathlib import Path

from bsdsbench.integrations.compat.shared import (
    evaluate_ids,
    picture_ids,
    protocol_of,
    write_official,
)
from bsdsbench.runs.evaluation import Evaluation


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
    original's but for ties. Files that are in outDir are written anew, where the original keeps
    them and computes nothing.

    Examples
    --------
    >>> from bsdsbench.integrations.compat import boundaryBench
    >>> boundaryBench("images/test", "groundTruth/test", "png", "eval")    # doctest: +SKIP
    """
    return _bench(imgDir, gtDir, inDir, outDir, nthresh, maxDist, thinpb, ("boundary",), workers)


def regionBench(  # noqa: N802
    imgDir: str | Path,
    gtDir: str | Path,
    inDir: str | Path,
    outDir: str | Path,
    nthresh: int = 99,
    *,
    workers: int | None = None,
) -> Evaluation:
    """Region benchmark (covering, PRI, VOI) of segmentations, with the official files.

    Parameters
    ----------
    imgDir, gtDir, inDir, outDir : path
        As in `boundaryBench`; results are `ucm2` or `segs`.
    nthresh : int
        Number of even thresholds of `ucm2`.
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
    The original writes each image's sums with six digits and reads them back before it adds them
    up; here they are added as they are. The tables agree within 1e-5.

    Examples
    --------
    >>> from bsdsbench.integrations.compat import regionBench
    >>> regionBench("images/test", "groundTruth/test", "ucm2", "eval")    # doctest: +SKIP
    """
    return _bench(imgDir, gtDir, inDir, outDir, nthresh, 0.0075, True, ("region",), workers)


def allBench(  # noqa: N802
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
    """`boundaryBench` and `regionBench` in one pass.

    Parameters
    ----------
    imgDir, gtDir, inDir, outDir, nthresh, maxDist, thinpb, workers : various
        As in `boundaryBench`.

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
    >>> from bsdsbench.integrations.compat import allBench
    >>> allBench("images/test", "groundTruth/test", "ucm2", "eval")    # doctest: +SKIP
    """
    both = ("boundary", "region")
    return _bench(imgDir, gtDir, inDir, outDir, nthresh, maxDist, thinpb, both, workers)


def _bench(
    images: str | Path,
    gt: str | Path,
    pred: str | Path,
    out: str | Path,
    thresholds: int,
    max_dist: float,
    thin: bool,
    metrics: tuple[str, ...],
    workers: int | None,
) -> Evaluation:
    protocol = protocol_of(thresholds, max_dist, thin)
    run = evaluate_ids(pred, gt, picture_ids(images), protocol, metrics, workers)
    write_official(run, out)
    return run
