"""Displays: PR, ROC and DET curves, F against threshold, ODS against tolerance, calibration."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator
from numpy.typing import ArrayLike

from bsdsbench.arguments import Floats, check_word
from bsdsbench.comparison.published import PublishedResult, find_published
from bsdsbench.curves import davis_goadrich_area, det, interpolate_pr, pr, roc
from bsdsbench.curves.points import AnyCurve, CurvePoints, to_space
from bsdsbench.curves.ranked import RATE_NAMES, VARIANTS, PRResult, Variant
from bsdsbench.errors import DataError
from bsdsbench.metrics import registry
from bsdsbench.plotting.curve_display import ROOM, CurveDisplay, Drawing
from bsdsbench.plotting.style import draw_iso_f
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.scores.counts import OperatingPoint, Score, key_at
from bsdsbench.scores.curve import PRCurve
from bsdsbench.scores.ratios import f_beta, ratio

# Arguments of `Axes.plot` for a ring that marks a ranking whose top-scored sample is negative
_RING: dict[str, Any] = {"marker": "o", "markersize": 7, "markerfacecolor": "none"}
_RING |= {"clip_on": False, "label": "negatives ranked first"}
# With this many positives, straight lines between points at whole TPs look like a smooth curve
_SMOOTH_POSITIVES = 500
_SMALLEST_LIMIT = 1e-9  # DET axes never begin below this rate
# Ticks of normal-deviate axes
_RATE_TICKS = (1e-4, 0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99)


@dataclass(eq=False, repr=False)
class PRCurveDisplay(CurveDisplay):
    """The precision-recall curve of a run, or of labels and scores, with iso-F lines.

    `from_predictions` and `from_curve` interpolate TP and FP counts linearly between points (Davis
    and Goadrich 2006). A ring at (0, 0) marks a curve whose top-scored samples are negative.

    Parameters
    ----------
    recall, precision : array_like
        (K,), in the order of the curve.
    name : str
        Text for the legend.
    title : str
        Title of a figure with only this curve.
    best : OperatingPoint or None
        The point to mark, such as the ODS point of a run. Its F is shown in the legend.
    ap : float or None
        The average precision, shown in the legend.
    chance : float or None
        The precision of a random ranking, drawn as a horizontal line.
    auc : float or None
        The area under the curve, shown in the legend for curves given by points, which have no AP.

    Examples
    --------
    >>> shown = PRCurveDisplay.from_predictions([1, -1, 1], [0.9, 0.5, 0.4], name="made")
    >>> shown.ax_.get_xlabel(), shown.line_.get_label()
    ('Recall', 'made (AP 0.833)')
    """

    arrays, axes, space = ("recall", "precision"), ("Recall", "Precision"), "pr"
    curve_of = staticmethod(pr)
    number = "ap"
    marker_style = _RING
    recall: Any
    precision: Any
    _: KW_ONLY
    ap: float | None = None
    chance: float | None = None
    auc: float | None = None

    @classmethod
    def of_run(cls, run: Evaluation, name: str | None = None, metric: str | None = None) -> Self:
        """Create the display of a run's curve with its ODS point, without drawing it.

        `metric` defaults to the run's first metric with a curve. Raises DataError if there is none,
        or if `metric` has no curve.
        """
        score = run.score(metric_with_curve(run, metric))
        curve, best = score["curve"], _best_point(score)  # the latter is the ODS point
        display = cls(curve.recall, curve.precision, name=name or run.name, best=best)
        # The points of some reference runs (ref:NAME) are combinations of parameters, in no order
        display.joined = run.reference is None or run.reference.ordered
        display.beta2 = _beta2(run, metric)  # beta^2 of the metric's F-measure, for iso-F lines
        return display

    @classmethod
    def from_published(cls, published: PublishedResult | str, ap: bool = False) -> Self:
        """Create the display of a published result with its ODS point, without drawing it.

        `published` may be its key, such as "hed". If `ap` is True, the legend also shows its AP.
        Raises DataError for an unknown key, or if the package stores no curve of this result.
        """
        if isinstance(published, str):
            (published,) = find_published([published])
        curve = published.curve
        if curve is None:
            raise DataError(f"published {published.key!r}: no curve is stored, expected one with")
        name = f"{published.label}, AP {published.boundary['ap']:.3f}" if ap else published.label
        return cls(curve.recall, curve.precision, name=name, best=curve.ods)

    @classmethod
    def from_curve(cls, curve: AnyCurve, name: str = "", **arguments: object) -> Self:
        """Create the PR display of any curve object of this package without drawing it.

        `name` is the text for the legend. `arguments` are fields of the display, such as "title";
        they replace those computed here. The line depends on the curve:

        - of labels and scores (PRResult or ROCResult): TP and FP are interpolated between its
          points, if its precision is TP / (TP + FP); the title has the AP and areas
        - given points of a curve (CurvePoints) with known numbers of positives and negatives: TP
          and FP are interpolated between them; the title has the area
        - any other curve: its points are drawn as they are
        """
        converted = to_space(curve, "pr")  # a PRResult, CurvePoints or PRCurve (of a run)
        computed: dict[str, object] = {}  # fields of the display
        if isinstance(converted, PRResult):
            computed = _fields_of_ranking(converted)
        # The area is NaN if TP and FP are unknown, or if they fall from one point to the next, so
        # that the points are in no order that a line can follow
        if not isinstance(converted, CurvePoints) or np.isnan(converted.area):
            return super().from_curve(converted, name, **{**computed, **arguments})
        # `interpolate_pr` adds a point at each whole TP, which are few if there are 4 positives.
        # With all counts times 125, the rates are the same, and 500 TPs are whole. The factor is
        # whole, so that whole counts stay whole
        scale = np.ceil(_SMOOTH_POSITIVES / converted.positives)
        tp, fp = scale * converted.tp, scale * converted.fp
        computed = interpolate_pr(tp, fp, scale * converted.positives)._asdict()
        computed["auc"] = converted.area
        computed["title"] = f"AUC (counts interpolated) {100 * converted.area:.1f} %"
        display = super().from_curve(converted, name, **{**computed, **arguments})
        display.original_points = converted.recall, converted.precision  # marked by dots
        display.number = "auc"  # the field that the legend shows in place of "ap"
        return display

    def _drawing(self) -> Drawing:
        """Return the points of the PR curve, with its best point, or its chance line and a ring.

        The best point is that of a run. The chance line is that of labels and scores, and a ring at
        (0, 0) says that all samples with the highest score are negative.
        """
        recall, precision, best = self.recall, self.precision, self.best
        if best is not None:  # the curve of a run, without points at (0, 0), where nothing matches
            is_matched = (precision > 0) | (recall > 0)
            best_point = best.recall, best.precision
            return Drawing(recall[is_matched], precision[is_matched], point=best_point)
        if self.chance is None:
            return Drawing(recall, precision)
        starts_at_0 = recall.size > 0 and recall[0] == 0 and precision[0] == 0
        ring = (0.0, 0.0) if starts_at_0 else None
        chance_line = (0, 1), (self.chance, self.chance)
        return Drawing(recall, precision, chance_line, ring, dots=self.original_points)

    def _prepare(self, ax: Axes) -> None:
        """Set the limits of empty axes, and draw iso-F lines."""
        self.room = 0.0 if self.chance is None else ROOM
        super()._prepare(ax)
        draw_iso_f(ax, self.beta2)


def _fields_of_ranking(curve: PRResult) -> dict[str, object]:
    """Return the fields "title", "recall" and "precision" for the display of labels and scores.

    The title has the AP, the area under the curve and the 11-point AP, in percent. Recall and
    precision have points added at each whole TP, because TP and FP change linearly between two
    points (Davis and Goadrich 2006). If they do not, the two are left out: straight lines remain.
    """
    tp, fp, positives = curve.tp, curve.fp, curve.positives
    is_predicted = tp + fp > 0  # otherwise precision is 0/0
    precision_of_counts = ratio(tp, tp + fp)
    # Not if `curves.pr` took the largest precision at this or a higher recall, or computed it for
    # another fraction of positives
    is_of_counts = np.allclose(curve.precision[is_predicted], precision_of_counts[is_predicted])
    fields: dict[str, object] = {}
    areas = {"AP": curve.ap}
    if positives and is_of_counts:
        fields |= interpolate_pr(tp, fp, positives)._asdict()  # recall and precision
        areas["AUC (counts interpolated)"] = davis_goadrich_area(tp, fp, positives)
    else:  # straight lines between the points
        areas["AUC (trapezoids)"] = curve.auc
    areas["AP11"] = curve.ap_11
    texts = []
    for name, area in areas.items():
        texts.append(f"{name} -" if np.isnan(area) else f"{name} {100 * area:.1f} %")
    return {**fields, "title": ", ".join(texts)}


@dataclass(eq=False, repr=False)
class FThresholdDisplay(CurveDisplay):
    """The curve of F-measure against threshold.

    Parameters
    ----------
    thresholds, f : array_like
        (T,), the points of the curve.
    name : str
        Text for the legend.
    best : OperatingPoint or None
        The point to mark, such as the ODS point of a run. Its F is shown in the legend.
    """

    arrays, axes, room = ("thresholds", "f"), ("Threshold", "F-measure"), 0.0
    size = (3.4, 1.35)
    thresholds: Any
    f: Any

    @classmethod
    def of_run(cls, run: Evaluation, name: str | None = None, metric: str | None = None) -> Self:
        """Create the display of a run's F against threshold, without drawing it.

        The ODS point is marked. `metric` defaults to the run's first metric with a curve. Raises
        DataError if there is none, if `metric` has no curve, or if the run is a published reference
        whose curve is parametrised by something other than a threshold.
        """
        # A reference run of segmentations has a point for each value of a parameter of the program,
        # such as the number of regions, and no thresholds
        if run.reference and run.reference.form == "segmentations":
            parameter = run.reference.parameter
            raise DataError(f"{run.name}: {parameter}, expected thresholds for F over threshold")
        score = run.score(metric_with_curve(run, metric))
        curve = score["curve"]  # with the fields thresholds, recall and precision
        f = f_beta(curve.precision, curve.recall, _beta2(run, metric))
        return cls(curve.thresholds, f, name=name or run.name, best=_best_point(score))

    def _drawing(self) -> Drawing:
        """Return the curve, with its best point if the threshold of that point is known."""
        point = None
        if self.best and self.best.threshold is not None:
            point = self.best.threshold, self.best.f
        return Drawing(self.thresholds, self.f, point=point)


@dataclass(eq=False, repr=False)
class ROCCurveDisplay(CurveDisplay):
    """A ROC curve with a chance line and a star at the equal error rate (EER).

    Parameters
    ----------
    fpr, tpr : array_like
        (K,), in the order of the curve.
    name : str
        Text for the legend.
    auc : float or None
        The area under the curve, shown in the legend.
    eer : float or None
        The equal error rate, marked by the star.
    kind : str
        The rates on the x and y axes: two two-letter codes, such as "fptp" (x: FPR, y: TPR). See
        `plot` of `curves.roc`.

    Examples
    --------
    >>> import bsdsbench as bb
    >>> shown = bb.ROCCurveDisplay.from_predictions([1, -1, 1], [0.9, 0.5, 0.4], name="mine")
    >>> shown.name, shown.tpr.tolist()
    ('mine', [0.0, 0.5, 0.5, 1.0])
    """

    arrays, space = ("fpr", "tpr"), "roc"
    curve_of = staticmethod(roc)
    number = "auc"
    fpr: Any
    tpr: Any
    _: KW_ONLY
    auc: float | None = None
    eer: float | None = None
    kind: Variant = "fptp"

    def __post_init__(self) -> None:
        """Check the kind and the arrays, and label the axes with the names of the two rates."""
        kind = check_word(self.kind, "kind", VARIANTS)
        x_label, y_label = (RATE_NAMES[rate][0].capitalize() for rate in (kind[:2], kind[2:]))
        self.axes = x_label, y_label
        super().__post_init__()

    @classmethod
    def from_curve(cls, curve: AnyCurve, name: str = "", **arguments: object) -> Self:
        """Create the display of any curve object of this package without drawing it.

        The axes are those chosen by the argument `plot` of `curves.roc`; default: "fptp". `name`
        is the text for the legend, and `arguments` are fields of the display.
        """
        kind = getattr(curve, "plot", "fptp")
        return super().from_curve(curve, name, **{"kind": kind, **arguments})

    def _drawing(self) -> Drawing:
        """Return the curve on the axes of `kind`, the chance line, and the star at the EER.

        `kind` names the rates on the x and y axes, such as "fptp" (x = FPR, y = TPR).
        """
        x_rate, y_rate = self.kind[:2], self.kind[2:]
        rates = {"fp": self.fpr, "tp": self.tpr, "tn": 1 - self.fpr, "fn": 1 - self.tpr}
        star = None
        if self.eer is not None and not np.isnan(self.eer):
            at_eer = {"fp": self.eer, "tp": 1 - self.eer, "tn": 1 - self.eer, "fn": self.eer}
            star = at_eer[x_rate], at_eer[y_rate]
        # For a random ranking TPR = FPR and TNR = FNR, so the line rises for these pairs of rates
        is_rising = self.kind in ("fptp", "tpfp", "tnfn", "fntn")
        diagonal = (0, 1), (0, 1) if is_rising else (1, 0)
        return Drawing(rates[x_rate], rates[y_rate], diagonal, star)


@dataclass(eq=False, repr=False)
class DETCurveDisplay(CurveDisplay):
    """A DET curve: miss rate against false alarm rate, on normal-deviate or log-log axes.

    If the scores of both classes are normally distributed, the curve is a straight line on
    normal-deviate axes. The axes start at a power of ten below the smallest rate of the curve. A
    star marks the equal error rate.

    Parameters
    ----------
    fpr, fnr : array_like
        (K,), in the order of the curve.
    name : str
        Text for the legend.
    eer : float or None
        The equal error rate, shown in the legend and marked by the star.
    scale : str
        "normal", or "log" as in VLFeat.

    Examples
    --------
    >>> import bsdsbench as bb
    >>> shown = bb.DETCurveDisplay.from_predictions([1, -1, 1], [0.9, 0.5, 0.4])
    >>> shown.fpr.shape
    (4,)
    """

    arrays, space = ("fpr", "fnr"), "det"
    curve_of = staticmethod(det)
    number = "eer"
    fpr: Any
    fnr: Any
    _: KW_ONLY
    eer: float | None = None
    scale: Literal["normal", "log"] = "normal"

    def __post_init__(self) -> None:
        """Check the fields, label the axes, and set `lowest`, the lower limit of both axes.

        It is the largest power of ten that exceeds no rate and no distance of a rate from 1: 0.001
        for rates from 0.004 to 0.9, and 0.1 for a single rate of 0.5. Rates of 0 and 1, which have
        no place on these scales, do not count. The limit is at least 1e-9.
        """
        # `plot_curves` refuses displays of several kinds, so that scales are not mixed
        self.kind = check_word(self.scale, "scale", ("normal", "log"))
        percent = ", %" if self.scale == "normal" else ""
        self.axes = f"False alarm rate (FPR){percent}", f"Miss rate (FNR){percent}"
        super().__post_init__()  # checks the arrays
        all_rates = np.r_[self.fpr, self.fnr]
        rates = all_rates[(all_rates > 0) & (all_rates < 1)]
        smallest_distance = min(rates.min(), 1 - rates.max()) if rates.size else 0.1  # to 0 or 1
        power_of_ten = 10.0 ** np.floor(np.log10(smallest_distance))
        self.lowest = float(max(power_of_ten, _SMALLEST_LIMIT))

    def _drawing(self) -> Drawing:
        """Return the curve, the chance line FNR = 1 - FPR, and the star at the equal error rate.

        There is no star if the EER is unknown, 0 or 1. The axes cannot show rates of 0 and 1, so
        points with such rates are moved just outside the limits.
        """
        from scipy.special import ndtr  # the standard normal CDF

        outside = self.lowest / 4  # any rate below `lowest`, where the axes begin, would do
        x = np.clip(self.fpr, outside, 1 - outside)
        y = np.clip(self.fnr, outside, 1 - outside)
        # Evenly spaced normal deviates (inverse of the CDF), so that the line is smooth on the axes
        deviates = np.linspace(_deviate(outside), -_deviate(outside), 300)
        fpr_of_chance = ndtr(deviates)
        star = (self.eer, self.eer) if self.eer is not None and 0 < self.eer < 1 else None
        return Drawing(x, y, chance=(fpr_of_chance, 1 - fpr_of_chance), point=star)

    def _prepare(self, ax: Axes) -> None:
        """Set the scales and limits of empty axes. Normal-deviate axes get ticks in percent."""
        low = self.lowest
        if self.scale == "log":
            ax.set(xscale="log", yscale="log", xlim=(low, 1), ylim=(low, 1))
            return
        from scipy.special import ndtr

        to_and_from_deviates = _deviate, ndtr  # the inverse of the normal CDF, and the CDF
        ax.set_xscale("function", functions=to_and_from_deviates)
        ax.set_yscale("function", functions=to_and_from_deviates)
        ax.set(xlim=(low, _RATE_TICKS[-1]), ylim=(low, _RATE_TICKS[-1]))
        ticks = [tick for tick in _RATE_TICKS if tick >= low]
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_ticks(ticks, [f"{100 * tick:g}" for tick in ticks])
            axis.set_minor_locator(NullLocator())


def _deviate(rate: ArrayLike) -> Floats:
    """Convert rates to normal deviates by the inverse of the standard normal CDF.

    Rates are clipped to [1e-12, 1 - 1e-12], because matplotlib also passes rates of 0 and 1, whose
    deviates are infinite, and values outside [0, 1].
    """
    from scipy.special import ndtri  # takes 0.1 s to import, and PR curves do not need it

    return np.asarray(ndtri(np.clip(rate, 1e-12, 1 - 1e-12)))


@dataclass(eq=False, repr=False)
class ToleranceDisplay(CurveDisplay):
    """The curve of ODS against tolerance, the largest distance at which pixels match.

    Parameters
    ----------
    tolerances, f : array_like
        (D,), the tolerances in any order, and the ODS at each of them.
    name : str
        Text for the legend.
    unit : str
        The unit of the tolerances, "fraction of the diagonal" or "pixels".
    """

    arrays = ("tolerances", "f")
    size = (3.4, 1.35)
    line_style: ClassVar[dict[str, Any]] = {"marker": "o", "markersize": 4}  #: of each tolerance
    tolerances: Any
    f: Any
    _: KW_ONLY
    unit: str = "fraction of the diagonal"

    def __post_init__(self) -> None:
        """Check the arrays, sort them by tolerance, and label the axes."""
        super().__post_init__()
        order = np.argsort(self.tolerances)
        self.tolerances, self.f = self.tolerances[order], self.f[order]
        self.axes = f"Tolerance ({self.unit})", "ODS"
        self.kind = self.unit

    @classmethod
    def of_run(cls, run: Evaluation, name: str | None = None, metric: str | None = None) -> Self:
        """Create the display of a run evaluated at several tolerances, without drawing it.

        `metric` defaults to the run's first metric with an ODS at each tolerance. Raises DataError
        if there is none, or if `metric` has no such scores.
        """
        keys = [key_at("ods", tolerance) for tolerance in run.protocol.tolerance_names]
        unit = cls.unit if run.protocol.max_dist_px is None else "pixels"
        for candidate in [metric] if metric else run.metrics:
            score = run.score(candidate)
            if all(key in score for key in keys):
                f = [score[key].f for key in keys]
                return cls(run.protocol.tolerances, f, name=name or run.name, unit=unit)
        tolerances = ", ".join(run.protocol.tolerance_names)
        has = f"{run.name}: was counted at the tolerance {tolerances} only, expected several"
        # As text, because the commands that plot have no such option
        python = "max_dist=[0.0075, 0.00375]"
        raise DataError(has, fix=f"evaluate with {python}, or --max-dist 0.0075,0.00375")

    def _prepare(self, ax: Axes) -> None:
        """Set the limits of the y axis to 0 and 1."""
        ax.set_ylim(0, 1)


@dataclass(eq=False, repr=False)
class ReliabilityDisplay(CurveDisplay):
    """A reliability diagram: the fraction of annotated pixels against the value of a soft map.

    Parameters
    ----------
    value, marked : array_like
        (B,), the mean value of the map and the fraction of pixels marked by annotators in each bin
        of values; NaN for empty bins. See the metric `calibration`.
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
    ece: float | None = None

    @classmethod
    def of_run(cls, run: Evaluation, name: str | None = None, metric: str | None = None) -> Self:
        """Create the reliability diagram of all pixels of a run's images, without drawing it.

        `metric` defaults to the run's first metric with a reliability diagram, such as
        "calibration". Raises DataError if there is none, or if `metric` has no such diagram.
        """
        for candidate in [metric] if metric else run.metrics:
            score = run.score(candidate)
            if "reliability" in score:
                bins = score.reliability
                return cls(bins.value, bins.marked, name=name or run.name, ece=score.ece)
        raise DataError(f"{run.name}: no metric of it has bins, expected one that has")

    def _drawing(self) -> Drawing:
        """Return the non-empty bins, and the diagonal of perfect calibration."""
        filled = ~np.isnan(self.value)
        return Drawing(self.value[filled], self.marked[filled], chance=((0, 1), (0, 1)))


def _best_point(score: Score) -> OperatingPoint:
    """Return the ODS point of a score. Its threshold is None if the score lacks one."""
    return OperatingPoint(**{"threshold": None, **score["ods"]})


def _beta2(run: Evaluation, metric: str | None) -> float:
    """Return beta^2 of the F-measure of `metric`, by default the first metric with a curve."""
    scorer = registry.get(metric_with_curve(run, metric))
    return scorer.beta2(scorer.options_of(run.protocol))


def metric_with_curve(run: Evaluation, metric: str | None = None) -> str:
    """Return `metric` or, if it is None, the run's first metric with a precision-recall curve.

    Metrics in `run.with_curve` come first, followed by others with a curve in alphabetical order.
    Raises DataError if `metric` or, if it is None, every metric of the run has no curve.
    """
    with_curve = list(run.with_curve)
    for name in sorted(run.metrics):
        if name not in with_curve and isinstance(run.score(name).get("curve"), PRCurve):
            with_curve.append(name)
    if with_curve and (not metric or metric in with_curve):
        return metric or with_curve[0]
    wanted = metric or ", ".join(run.metrics)
    expected = ", ".join(with_curve) or "a metric with a precision-recall curve"
    raise DataError(f"{run.name}: {wanted!r} has no curve, expected {expected}")
