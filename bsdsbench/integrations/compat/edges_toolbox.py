"""edgesEvalDir and edgesEvalImg of the structured edge detection toolbox."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.writing import write_atomic
from bsdsbench.integrations.compat.shared import evaluate_ids, protocol_of, write_official
from bsdsbench.loaders import load_ground_truth, load_prediction
from bsdsbench.loaders.official_txt import format_ev1, format_rows
from bsdsbench.metrics.boundary import boundary_counts, boundary_match_maps
from bsdsbench.scores.curve import PRCurve

Scores = tuple[float, float, float, float, float, float, float, float, float]


def edgesEvalDir(  # noqa: N802
    resDir: str | Path,
    gtDir: str | Path,
    *,
    thrs: int | Sequence[float] = 99,
    maxDist: float = 0.0075,
    thin: bool = True,
    cleanup: bool = False,
    pDistr: Any = None,
    strict: bool = False,
    workers: int | None = None,
) -> Scores:
    """Precision and recall of a folder of edge maps, with the toolbox's outputs and files.

    Parameters
    ----------
    resDir, gtDir : path
        Folders of edge maps and of ground truth.
    thrs : int or sequence of float
        Number of even thresholds, or their values.
    maxDist : float
        Match tolerance, a fraction of the image diagonal.
    thin : bool
        Thin the thresholded maps before matching.
    cleanup : bool
        Delete the ID_ev1.txt files at the end. The edge maps are never deleted here; the original
        deletes them too.
    pDistr : object
        Accepted and not used; see `workers`.
    strict : bool
        As the toolbox has it: results in RESDIR-eval are returned without a new evaluation,
        eval_bdry_thr.txt descends in recall and has no recall twice, R50 is NaN where the curve
        never falls to precision 0.5 from above.
    workers : int, optional
        Images at a time; by default all cores.

    Returns
    -------
    tuple of nine float
        odsF, odsP, odsR, odsT, oisF, oisP, oisR, AP, R50.

    Raises
    ------
    DataError
        For missing or broken files, all of them listed.

    Notes
    -----
    The files go to RESDIR-eval. The maps are taken as they are: apply NMS before, as there.

    Examples
    --------
    >>> import tempfile
    >>> import bsdsbench as bb
    >>> from bsdsbench.integrations.compat import edgesEvalDir
    >>> from bsdsbench.loaders.sample import sample_ground_truth, sample_images
    >>> maps = bb.run("sobel", sample_images(), out=tempfile.mkdtemp()).maps
    >>> ODS, _, _, _, OIS, _, _, AP, R50 = edgesEvalDir(maps, sample_ground_truth())
    >>> print(f"{ODS:.3f} {OIS:.3f} {AP:.3f}")
    0.619 0.704 0.593
    """
    out = Path(f"{str(resDir).rstrip('/')}-eval")
    if strict and (out / "eval_bdry.txt").is_file():
        return _stored(out)
    run = evaluate_ids(resDir, gtDir, None, protocol_of(thrs, maxDist, thin), workers=workers)
    score = run.boundary_score()
    write_official(run, out)
    r50 = score.edges_r50
    if strict:
        write_atomic(out / "eval_bdry_thr.txt", format_rows(_distinct(score.curve)))
        if score.curve.precision.max() < 0.5:
            r50 = math.nan
    if cleanup:
        for path in out.glob("*_ev1.txt"):
            path.unlink()
    ods, ois = score.ods, score.ois
    threshold = math.nan if ods.threshold is None else ods.threshold
    return (
        *(ods.f, ods.precision, ods.recall, threshold),
        *(ois.f, ois.precision, ois.recall),
        *(0.0 if math.isnan(score.ap) else score.ap, r50),  # one point: the official area is 0
    )


def edgesEvalImg(  # noqa: N802
    E: NDArray[Any] | str | Path,
    G: Sequence[NDArray[Any]] | str | Path,
    *,
    out: str | Path = "",
    thrs: int | float | Sequence[float] = 99,
    maxDist: float = 0.0075,
    thin: bool = True,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], Any]:
    """Counts of one edge map at every threshold, and the picture of the matches.

    Parameters
    ----------
    E : array or path
        Edge map (H, W) in [0, 1] or uint8, or its file.
    G : sequence of arrays or path
        One map of 0 and 1 per annotator, or the ground-truth file.
    out : path, optional
        A file for the counts, in the format of ID_ev1.txt.
    thrs, maxDist, thin : various
        As in `edgesEvalDir`; one float is one threshold.

    Returns
    -------
    thrs, cntR, sumR, cntP, sumP : arrays (T,)
        Thresholds, and the integer counts of the benchmark.
    V : array (H, W, 3) of float or None
        With one threshold the matches: green matched, blue false, red missed, paler where fewer
        annotators miss them. None with several thresholds.

    Raises
    ------
    DataError
        For unusable maps; ShapeError where sizes differ.

    Examples
    --------
    >>> import numpy as np
    >>> line = np.zeros((20, 30)); line[10] = 1
    >>> thrs, cntR, sumR, cntP, sumP, V = edgesEvalImg(line, [line], thrs=3)
    >>> cntR.tolist(), sumR.tolist()
    ([30, 30, 30], [30, 30, 30])
    """
    pred = load_prediction(E) if isinstance(E, str | Path) else E
    gts = load_ground_truth(G) if isinstance(G, str | Path) else list(G)
    protocol = protocol_of(thrs, maxDist, thin)
    found = boundary_counts(pred, gts, protocol)
    if out:
        write_atomic(Path(out), format_ev1(found))
    picture = None
    if found.thresholds.size == 1:
        maps = boundary_match_maps(pred, gts, protocol, float(found.thresholds[0]))
        picture = np.ones((*maps.true_pred.shape, 3))
        missed = maps.missed_gt.mean(axis=0)
        picture[..., 1] -= missed
        picture[..., 2] -= missed
        picture[maps.false_pred] = (0, 0, 1)
        picture[maps.true_pred] = (0, 1, 0)
    counts = (found.matched_gt, found.total_gt, found.matched_pred, found.total_pred)
    return (found.thresholds, *counts, picture)


def _distinct(curve: PRCurve) -> list[tuple[float, ...]]:
    """Rows of thresh R P F in descending recall, the first of equal recalls."""
    _, first = np.unique(curve.recall, return_index=True)
    columns = (curve.thresholds, curve.recall, curve.precision, curve.f)
    return list(zip(*(c[first[::-1]].tolist() for c in columns), strict=True))


def _stored(out: Path) -> Scores:
    """The nine outputs from the files of an earlier evaluation."""
    from bsdsbench.loaders.official_txt import read_rows
    from bsdsbench.scores.curve import edges_r50

    t, r, p, f, r_ois, p_ois, f_ois, ap = read_rows(out / "eval_bdry.txt", 8)[0].tolist()
    table = read_rows(out / "eval_bdry_thr.txt", 4)
    curve = PRCurve(table[:, 0], table[:, 2], table[:, 1])
    r50 = edges_r50(curve) if curve.precision.max() >= 0.5 else math.nan
    return f, p, r, t, f_ois, p_ois, r_ois, ap, r50
