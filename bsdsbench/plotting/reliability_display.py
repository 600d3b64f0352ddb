"""The plot of a calibration: the share of marked pixels over the values of a soft map."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from bsdsbench.errors import DataError
from bsdsbench.plotting.curve_display import CurveDisplay, Drawing
from bsdsbench.results.evaluation import Evaluation


@dataclass(eq=False, repr=False)
class ReliabilityDisplay(CurveDisplay):
    """A reliability diagram: the fraction of marked pixels over the values of a soft map.

    Parameters
    ----------
    value, marked : array_like
        (B,), the mean value and the fraction of marked pixels in each bin of values, NaN for empty
        bins; see the metric `calibration`.
    name : str
        Text for the legend.
    ece : float or None
        The expected calibration error, shown in the legend.
    """

    arrays, axes = ("value", "marked"), ("Mean value", "Marked share")
    number = "ece"
    value: Any
    marked: Any
    _: KW_ONLY
    name: str = ""
    ece: float | None = None

    @classmethod
    def of_run(
        cls, run: Evaluation, name: str | None = None, metric: str | None = None
    ) -> ReliabilityDisplay:
        """Return the diagram of the pixels of all images of a run, without drawing it.

        `name` is by default the run's name, `metric` the run's first metric with a reliability
        diagram. Raises DataError if `metric`, or every metric of the run, lacks one.
        """
        candidates = [metric] if metric else run.metrics
        for candidate in candidates:
            score = run.score(candidate)
            if "reliability" in score:
                bins = score.reliability
                return cls(bins.value, bins.marked, name=name or run.name, ece=score.ece)
        raise DataError(f"{run.name}: no metric of it has bins, expected one that has")

    def _drawing(self) -> Drawing:
        """Return the bins that are not empty, and the diagonal, which is perfect calibration."""
        filled = ~np.isnan(self.value)
        return Drawing(self.value[filled], self.marked[filled], ((0, 1), (0, 1)), None)
