"""The plot of a calibration: the share of marked pixels over the values of a soft map."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from bsdsbench.errors import DataError
from bsdsbench.plotting.displays import CurveDisplay, Drawing
from bsdsbench.results.evaluation import Evaluation


@dataclass(eq=False, repr=False)
class ReliabilityDisplay(CurveDisplay):
    """A reliability diagram: the share of marked pixels in each bin of a soft map's values.

    Parameters
    ----------
    value, marked : array_like
        (B,) mean value and marked share of each bin, NaN for empty bins; see metric calibration.
    name : str
        In the legend.
    ece : float or None
        Expected calibration error, the number in the legend.
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
        """Return the diagram of the pixels of all images of a run.

        `metric` is by default the run's first metric with bins. Raises DataError if no metric has
        bins.
        """
        for candidate in [metric] if metric else run.metrics:
            if "reliability" in (score := run.score(candidate)):
                bins = score.reliability
                return cls(bins.value, bins.marked, name=name or run.name, ece=score.ece)
        raise DataError(f"{run.name}: no metric of it has bins, expected one that has")

    def _drawing(self) -> Drawing:
        """Return the bins that are not empty, with the diagonal of perfect calibration."""
        filled = ~np.isnan(self.value)
        return Drawing(self.value[filled], self.marked[filled], ((0, 1), (0, 1)), None)
