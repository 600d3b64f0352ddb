"""BSDS500Evaluator of pyEdgeEval."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.errors import DataError
from bsdsbench.integrations.compat.shared import evaluate_ids, protocol_of, write_official
from bsdsbench.metrics.boundary import BoundaryScore
from bsdsbench.scores.curve import PRCurve


class BSDS500Evaluator:
    """Evaluate results on BSDS500 with pyEdgeEval's calls.

    Parameters
    ----------
    dataset_root : path
        The folder that holds groundTruth (and its folders val and test).
    pred_root : path
        Folder of the predictions, one picture per image.
    split : str
        "val" or "test".
    strict : bool
        As pyEdgeEval has it: ODS with 101 steps between thresholds instead of 100, an area over 100
        recall levels that leaves out recall 1, and an AP over these levels divided by 101.

    Raises
    ------
    DataError
        For another split.

    Examples
    --------
    >>> import tempfile
    >>> import bsdsbench as bb
    >>> from bsdsbench.integrations.compat import BSDS500Evaluator
    >>> from bsdsbench.loaders.sample import sample_images, sample_root
    >>> maps = bb.run("sobel", sample_images(), out=tempfile.mkdtemp()).maps
    >>> evaluator = BSDS500Evaluator(sample_root(), maps, split="test")
    >>> evaluator.set_eval_params(max_dist=0.0075)
    >>> found = evaluator.evaluate(thresholds=99, nproc=1, save_dir=tempfile.mkdtemp())
    >>> round(found["ODS_f1"], 3)
    0.619
    """

    GT_DIR = "groundTruth"

    def __init__(
        self,
        dataset_root: str | Path,
        pred_root: str | Path,
        split: str = "test",
        *,
        strict: bool = False,
    ) -> None:
        if split not in ("val", "test"):
            raise DataError(f"split {split!r}: expected val or test")
        self.dataset_root, self.pred_root = Path(dataset_root), Path(pred_root)
        self.split, self.strict = split, strict
        self.sample_names: list[str] | None = None
        self.set_eval_params()

    def set_sample_names(self, sample_names: Sequence[str] | None = None) -> None:
        """Choose the images; by default all of the split.

        Parameters
        ----------
        sample_names : sequence of str, optional
            Image ids.
        """
        self.sample_names = None if sample_names is None else list(sample_names)

    def set_eval_params(
        self,
        scale: float = 1.0,
        apply_thinning: bool = True,
        apply_nms: bool = False,
        max_dist: float = 0.0075,
    ) -> None:
        """Choose how images are evaluated.

        Parameters
        ----------
        scale : float
            Only 1: BSDS500 is evaluated at full size.
        apply_thinning : bool
            Thin the thresholded maps.
        apply_nms : bool
            Apply edge NMS to the maps first.
        max_dist : float
            Match tolerance, a fraction of the image diagonal.

        Raises
        ------
        DataError
            For another scale.
        """
        if scale != 1:
            raise DataError(f"scale {scale:g}: expected 1")
        self._params = {"max_dist": max_dist, "thin": apply_thinning, "nms": apply_nms}

    def evaluate(
        self,
        thresholds: int | Sequence[float] = 99,
        nproc: int | None = None,
        save_dir: str | Path | None = None,
        no_split_dir: bool = False,
    ) -> dict[str, float]:
        """Evaluate the images.

        Parameters
        ----------
        thresholds : int or sequence of float
            Number of even thresholds, or their values.
        nproc : int, optional
            Images at a time; by default all cores. It does not change the result.
        save_dir : path, optional
            Folder for the official result files.
        no_split_dir : bool
            The ground truth lies in groundTruth itself, not in a folder per split.

        Returns
        -------
        dict of str to float
            ODS_threshold, ODS_recall, ODS_precision, ODS_f1, OIS_recall, OIS_precision, OIS_f1,
            AUC, AP.

        Raises
        ------
        DataError
            For missing or broken files, all of them listed.
        """
        gt = self.dataset_root / self.GT_DIR
        if not no_split_dir and (gt / self.split).is_dir():
            gt = gt / self.split
        protocol = protocol_of(
            *(thresholds, self._params["max_dist"], self._params["thin"]), nms=self._params["nms"]
        )
        run = evaluate_ids(self.pred_root, gt, self.sample_names, protocol, workers=nproc)
        if save_dir is not None:
            write_official(run, save_dir)
        return named_scores(run.boundary_score(), self.strict)


def named_scores(score: BoundaryScore, strict: bool) -> dict[str, float]:
    """The nine numbers under pyEdgeEval's keys, with its quirks where `strict`."""
    ods, ois, area = score.ods, score.ois, score.ap
    best: Any = (ods.threshold, ods.recall, ods.precision, ods.f)
    if strict:
        best, area = _best_of_101(score.curve), _area_of_100(score.curve)
    names = ("ODS_threshold", "ODS_recall", "ODS_precision", "ODS_f1")
    return {
        **dict(zip(names, best, strict=True)),
        "OIS_recall": ois.recall,
        "OIS_precision": ois.precision,
        "OIS_f1": ois.f,
        "AUC": area,
        "AP": _best_beyond(score.curve, LEVELS if strict else np.append(LEVELS, 1.0)),
    }


LEVELS = np.arange(0, 1, 0.01)


def _best_beyond(curve: PRCurve, levels: NDArray[np.float64]) -> float:
    """Sum of the largest precision at each recall level or beyond it, / 101."""
    there = curve.recall >= levels[:, None]
    return float(np.where(there, curve.precision, 0.0).max(axis=1).sum() / 101)


def _best_of_101(curve: PRCurve) -> tuple[float, float, float, float]:
    """Threshold, recall, precision and F of the best of 101 points per interval."""
    share = np.linspace(0, 1, 101)
    columns = []
    for values in (curve.thresholds, curve.recall, curve.precision):
        between = values[:-1, None] * (1 - share) + values[1:, None] * share
        columns.append(between.ravel() if values.size > 1 else values)
    t, r, p = columns
    f = np.divide(2 * p * r, p + r, out=np.zeros_like(p), where=p + r > 0)
    k = int(np.argmax(f))
    return float(t[k]), float(r[k]), float(p[k]), float(f[k])


def _area_of_100(curve: PRCurve) -> float:
    """Sum of the precisions at recall 0, 0.01 .. 0.99, times 0.01; nothing outside the curve."""
    recall, first = np.unique(curve.recall, return_index=True)
    if recall.size < 2:
        return 0.0
    values = np.interp(LEVELS, recall, curve.precision[first], left=0.0, right=0.0)
    return float(values.sum() * 0.01)
