"""Other curves as pictures: F over threshold, ROC, DET."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator
from numpy.typing import ArrayLike

from bsdsbench.curves import DETResult, ROCResult, det, roc
from bsdsbench.curves.ranked import VARIANTS
from bsdsbench.curves.results import Variant
from bsdsbench.files.errors import DataError
from bsdsbench.plotting.curve_display import (
    F8,
    ROOM,
    CurveDisplay,
    apart,
    curve_of,
    pair,
    visible_points,
)
from bsdsbench.plotting.style import name_axes, new_axes
from bsdsbench.scores.curve import OperatingPoint

if TYPE_CHECKING:
    from bsdsbench.runs.evaluation import Evaluation

Scale = Literal["normal", "log"]
STAR: dict[str, Any] = {"marker": "*", "markersize": 11, "markeredgewidth": 0.7}
# Rates at which normal-deviate axes have their ticks.
_RATES = (1e-4, 0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99)
_RATE_NAMES = {
    "tn": "True negative rate",
    "tp": "True positive rate",
    "fp": "False positive rate",
    "fn": "False negative rate",
}


class FThresholdDisplay(CurveDisplay):
    """F over threshold. thresholds, f : (T,); best : the point to mark, or None."""

    axis_names = "Threshold", "F-measure"
    corner = "lower center"

    def __init__(
        self,
        thresholds: ArrayLike,
        f: ArrayLike,
        *,
        name: str = "",
        best: OperatingPoint | None = None,
    ) -> None:
        self.thresholds, self.f = pair(thresholds, f, "thresholds", "f", least=0)
        self.name, self.best = name, best

    @classmethod
    def from_evaluation(
        cls, run: Evaluation, name: str | None = None, metric: str | None = None
    ) -> FThresholdDisplay:
        """F of a run's score at each threshold, with its ODS point.

        Parameters
        ----------
        run : Evaluation
            The run.
        name : str or None
            Its name in the legend; default: the run's.
        metric : str or None
            A metric with a precision-recall curve; default: the run's first.

        Returns
        -------
        FThresholdDisplay
            The display, not drawn yet.

        Raises
        ------
        DataError
            If the run has no counts of that metric.
        """
        score = run.score(curve_of(run, metric))
        shown = run.name if name is None else name
        return cls(score.curve.thresholds, score.curve.f, name=shown, best=score.ods)

    def _new_axes(self) -> Axes:
        return new_axes(square=False, size=3.4)

    def _points(self) -> tuple[F8, F8]:
        return self.thresholds, self.f

    def _marked(self) -> tuple[float, float] | None:
        best = self.best
        return None if best is None or best.threshold is None else (best.threshold, best.f)


class ROCCurveDisplay(CurveDisplay):
    """A ROC curve on any of VLFeat's four pairs of axes, its chance line and its EER.

    Parameters
    ----------
    fpr, tpr : array_like
        (K,) along the curve.
    name : str
        The name in tables and legends.
    auc, eer : float or None
        Numbers, or None for none.
    plot : str
        X axis, then y axis: "fptp", "tntp", "tptn", "fpfn".

    Raises
    ------
    DataError
        For another `plot`, arrays of different lengths or without points.

    Examples
    --------
    >>> import bsdsbench as bb
    >>> shown = bb.ROCCurveDisplay.from_scores([1, -1, 1], [0.9, 0.5, 0.4], name="mine")
    >>> shown.name, shown.tpr.tolist()
    ('mine', [0.0, 0.5, 0.5, 1.0])
    """

    curve_of = staticmethod(roc)
    number = "AUC", "auc"
    room = ROOM
    mark = STAR

    def __init__(
        self,
        fpr: ArrayLike,
        tpr: ArrayLike,
        *,
        name: str = "",
        auc: float | None = None,
        eer: float | None = None,
        plot: Variant = "fptp",
    ) -> None:
        if plot not in VARIANTS:
            raise DataError(f"plot {plot!r}: expected one of {', '.join(VARIANTS)}")
        self.fpr, self.tpr = pair(fpr, tpr, "fpr", "tpr")
        self.name, self.auc, self.eer, self.variant = name, auc, eer, plot
        self.axis_names = _RATE_NAMES[plot[:2]], _RATE_NAMES[plot[2:]]
        self.corner = {"fptp": "lower right", "fpfn": "upper right"}.get(plot, "lower left")

    @classmethod
    def from_curve(cls, curve: ROCResult, name: str = "") -> ROCCurveDisplay:
        """The curve and numbers of a result.

        Parameters
        ----------
        curve : ROCResult
            What `curves.roc` gives (not a stable one).
        name : str
            Its name in the legend.

        Returns
        -------
        ROCCurveDisplay
            The display, not drawn yet.
        """
        return cls(curve.fpr, curve.tpr, name=name, auc=curve.auc, eer=curve.eer, plot=curve.plot)

    def _points(self) -> tuple[F8, F8]:
        rate = {"fp": self.fpr, "tp": self.tpr, "tn": 1 - self.fpr, "fn": 1 - self.tpr}
        return visible_points(rate[self.variant[:2]], rate[self.variant[2:]])

    def _random(self) -> tuple[Any, Any]:
        return (0, 1), (0, 1) if self.variant == "fptp" else (1, 0)

    def _marked(self) -> tuple[float, float] | None:
        e = self.eer
        if e is None or not np.isfinite(e):
            return None
        return {"fptp": (e, 1 - e), "fpfn": (e, e)}.get(self.variant, (1 - e, 1 - e))


class DETCurveDisplay(CurveDisplay):
    """Miss rate against false alarm rate, on normal-deviate axes or (VLFeat) log-log axes.

    Normal scores of both classes give a straight line on normal-deviate axes. Rates of 0 and 1
    lie at infinity: the axes end just beyond the smallest rate that the curve can have.

    Parameters
    ----------
    fpr, fnr : array_like
        (K,) along the curve.
    name : str
        The name in tables and legends.
    eer : float or None
        Number, or None.
    scale : str
        "normal" or "log".

    Raises
    ------
    DataError
        For another `scale`, arrays of different lengths or without points.

    Examples
    --------
    >>> import bsdsbench as bb
    >>> shown = bb.DETCurveDisplay.from_scores([1, -1, 1], [0.9, 0.5, 0.4])
    >>> shown.fpr.shape
    (4,)
    """

    curve_of = staticmethod(det)
    number = "EER", "eer"
    mark = STAR

    def __init__(
        self,
        fpr: ArrayLike,
        fnr: ArrayLike,
        *,
        name: str = "",
        eer: float | None = None,
        scale: Scale = "normal",
    ) -> None:
        if scale not in ("normal", "log"):
            raise DataError(f"scale {scale!r}: expected 'normal' or 'log'")
        self.fpr, self.fnr = pair(fpr, fnr, "fpr", "fnr")
        self.name, self.eer, self.scale = name, eer, scale
        self.corner = "upper right" if scale == "normal" else "lower left"

    @classmethod
    def from_scores(
        cls, labels: ArrayLike, scores: ArrayLike, name: str = "", scale: Scale = "normal", **o: Any
    ) -> DETCurveDisplay:
        """The curve of labels and scores.

        Parameters
        ----------
        labels : array
            (N,), as of `curves.det`.
        scores : array
            (N,), higher for true ones.
        name : str
            Its name in the legend.
        scale : str
            "normal" deviates, or "log".
        **o : object
            Options of `curves.det`.

        Returns
        -------
        DETCurveDisplay
            The display, not drawn yet.
        """
        return cls.from_curve(det(labels, scores, **o), name, scale)

    @classmethod
    def from_curve(
        cls, curve: DETResult, name: str = "", scale: Scale = "normal"
    ) -> DETCurveDisplay:
        """The curve and EER of a result.

        Parameters
        ----------
        curve : DETResult
            What `curves.det` gives (not a stable one).
        name : str
            Its name in the legend.
        scale : str
            "normal" deviates, or "log".

        Returns
        -------
        DETCurveDisplay
            The display, not drawn yet.
        """
        return cls(curve.fpr, curve.fnr, name=name, eer=curve.eer, scale=scale)

    def _lowest(self) -> float:
        """A power of ten below every rate of the curve that is neither 0 nor 1."""
        both = np.r_[self.fpr, self.fnr]
        inner = both[(both > 0) & (both < 1)]
        smallest = min(float(inner.min()), float(1 - inner.max())) if inner.size else 0.1
        return float(max(10.0 ** np.floor(np.log10(smallest)), 1e-9))

    def _reach(self) -> float:
        """Down to the lowest rate."""
        return -self._lowest()

    def _points(self) -> tuple[F8, F8]:
        """x and y, rates of 0 and 1 moved to just outside the axes."""
        low = self._lowest() / 4
        x, y = (np.clip(r, low, 1 - low) for r in (self.fpr, self.fnr))
        u, v = (_deviate(r) if self.scale == "normal" else np.log10(r) for r in (x, y))
        keep = apart((u - u.min()) / max(np.ptp(u), 1e-9), (v - v.min()) / max(np.ptp(v), 1e-9))
        return x[keep], y[keep]

    def _set_axes(self, ax: Axes, empty: bool = True, iso_f: bool | None = None) -> None:
        """Both rates, on the scale asked for."""
        percent = ", %" if self.scale == "normal" else ""
        name_axes(ax, f"False alarm rate (FPR){percent}", f"Miss rate (FNR){percent}")
        low = self._lowest()
        if empty and self.scale == "log":
            ax.set(xscale="log", yscale="log", xlim=(low, 1), ylim=(low, 1))
        elif empty:
            ax.set_xscale("function", functions=(_deviate, _undeviate))
            ax.set_yscale("function", functions=(_deviate, _undeviate))
            ax.set(xlim=(low, _RATES[-1]), ylim=(low, _RATES[-1]))
            ticks = [t for t in _RATES if t >= low]
            for axis in (ax.xaxis, ax.yaxis):
                axis.set_ticks(ticks, [f"{100 * t:g}" for t in ticks])
                axis.set_minor_locator(NullLocator())

    def _random(self) -> tuple[Any, Any]:
        """Where miss rate and false alarm rate add up to 1."""
        x = 10 ** np.linspace(np.log10(self._lowest()), 0, 300)[:-1]
        x = np.r_[x[x < 0.5], 0.5, 1 - x[x < 0.5][::-1]]
        return x, 1 - x

    def _marked(self) -> tuple[float, float] | None:
        return (self.eer, self.eer) if self.eer is not None and 0 < self.eer < 1 else None


def _deviate(rate: Any) -> Any:
    from scipy.special import ndtri

    # The scale is also asked about limits outside (0, 1).
    return ndtri(np.clip(rate, 1e-12, 1 - 1e-12))


def _undeviate(value: Any) -> Any:
    from scipy.special import ndtr

    return ndtr(value)
