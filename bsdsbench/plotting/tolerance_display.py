"""The plot of ODS over the tolerance of matching."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from bsdsbench.errors import DataError
from bsdsbench.metrics.boundary import tolerance_key
from bsdsbench.plotting.curve_display import CurveDisplay, Drawing
from bsdsbench.results.evaluation import Evaluation


@dataclass(eq=False, repr=False)
class ToleranceDisplay(CurveDisplay):
    """The curve of ODS over the tolerance of matching, the distance within which pixels match.

    tolerances, f : a tolerance and the ODS at it, (D,) each, in any order
    unit          : the unit of the tolerances, "fraction of the diagonal" or "pixels"
    """

    arrays = ("tolerances", "f")
    size = (3.4, 1.35)
    tolerances: Any
    f: Any
    _: KW_ONLY
    name: str = ""
    unit: str = "fraction of the diagonal"

    def __post_init__(self) -> None:
        """Check the arrays, sort them by tolerance in place, and set the labels of the axes."""
        super().__post_init__()
        order = np.argsort(self.tolerances)
        self.tolerances, self.f = self.tolerances[order], self.f[order]
        self.axes = f"Tolerance ({self.unit})", "ODS"
        self.kind = self.unit

    @classmethod
    def of_run(
        cls, run: Evaluation, name: str | None = None, metric: str | None = None
    ) -> ToleranceDisplay:
        """Return the display of a run that was evaluated at several tolerances, without drawing it.

        `name` is by default the run's name, `metric` the run's first metric that has an ODS at each
        tolerance. Raises DataError if `metric`, or every metric of the run, has a single tolerance.
        """
        keys = [tolerance_key("ods", tolerance) for tolerance in run.protocol.tolerance_names]
        unit = cls.unit if run.protocol.max_dist_px is None else "pixels"
        candidates = [metric] if metric else run.metrics
        for candidate in candidates:
            score = run.score(candidate)
            if score.keys() >= set(keys):
                f = [score[key].f for key in keys]
                return cls(run.protocol.tolerances, f, name=name or run.name, unit=unit)
        tolerances = ", ".join(run.protocol.tolerance_names)
        expected = "expected several, such as max_dist = .0075,.00375"
        raise DataError(f"{run.name}: counted at the tolerance {tolerances} alone, {expected}")

    def _drawing(self) -> Drawing:
        """Return the curve, without a chance line or a marked point."""
        return Drawing(self.tolerances, self.f, None, None)

    def _prepare(self, ax: Axes) -> None:
        """Set the limits of the y axis to 0 and 1. The x axis keeps matplotlib's limits."""
        ax.set_ylim(0, 1)

    def plot(
        self, ax: Axes | None = None, *, chance: bool = True, **line: object
    ) -> ToleranceDisplay:
        """Draw the curve like the base class, with a dot at each tolerance."""
        return super().plot(ax, chance=chance, **{"marker": "o", "markersize": 4, **line})
