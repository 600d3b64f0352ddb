"""The pictures of the pages in docs/understand, one function a page."""

from __future__ import annotations

import tempfile

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import norm

import bsdsbench as bb
from bsdsbench import curves
from bsdsbench.loaders.sample import sample_ground_truth, sample_images
from bsdsbench.scores.curve import AP_RULES, area
from drawing.common import FALSE, LINE, MATCHED, MISSED, OTHER, legend, picture, plain, square


def _row(
    ax: Axes, y: float, columns: dict[int, tuple[float, ...]], name: str, last: int = 12
) -> None:
    """A row of pixels, twelve if not said otherwise, some of them filled."""
    for x in range(1, last + 1):
        ax.add_patch(square(x, y, columns.get(x, (1, 1, 1))))
    ax.text(0.2, y, name, ha="right", va="center")


def _numbered(ax: Axes, left: float, top: float, last: int = 12) -> None:
    for x in range(1, last + 1):
        ax.text(x, 0.2, str(x), ha="center", va="center", color="0.35", size=8)
    ax.set(xlim=(left, last + 1), ylim=(-0.1, top))
    plain(ax)


@picture(6.6, 1.8)
def matching(figure: Figure) -> None:
    ax = figure.subplots()
    _row(ax, 3, {2: MATCHED, 6: MATCHED, 7: FALSE}, "predicted")
    _row(ax, 1, {3: MATCHED, 6: MATCHED}, "annotated")
    for a, b in ((2, 3), (6, 6)):
        ax.plot([a, b], [2.5, 1.5], color="0.3")
    ax.plot([7, 6.15], [2.5, 1.5], color="0.6", ls=":")
    ax.text(7.2, 2, "no partner left: pixel 6 is taken", va="center", color="0.3")
    _numbered(ax, -1.6, 3.6)
    legend(ax, ("matched", "false"))


@picture(6.6, 2.2)
def annotators(figure: Figure) -> None:
    ax = figure.subplots()
    _row(ax, 5, {2: MATCHED, 6: MATCHED}, "annotator A")
    _row(ax, 3, {2: MATCHED, 6: MATCHED, 9: FALSE}, "predicted")
    _row(ax, 1, {6: MATCHED, 11: MISSED}, "annotator B")
    for x, low, high in ((2, 3.5, 4.5), (6, 3.5, 4.5), (6, 1.5, 2.5)):
        ax.plot([x, x], [low, high], color="0.3")
    ax.text(6.3, 4, "3 annotated pixels matched", va="center", color="0.3")
    ax.text(6.3, 2, "2 predicted pixels matched: pixel 6 counts once", va="center", color="0.3")
    _numbered(ax, -2.2, 5.6)
    legend(ax)


@picture(6.6, 2.3)
def lost_score(figure: Figure) -> None:
    ax = figure.subplots()
    pale = (0.9, 0.9, 0.9)
    predicted = {2: MATCHED, 3: FALSE, 6: pale, 12: FALSE, 19: FALSE}
    _row(ax, 5, predicted, "predicted", 20)
    _row(ax, 3, {2: MATCHED, 6: MISSED, 10: MISSED, 15: MISSED}, "annotator A", 20)
    _row(ax, 1, {2: MATCHED, 6: MISSED}, "annotator B", 20)
    ax.text(6, 5, ".3", ha="center", va="center", size=8)
    for x, name in ((3, "duplicate"), (12, "near"), (19, "background")):
        ax.text(x, 6, name, ha="center", va="center", size=8, color=FALSE)
    for x, name in ((6, "suppressed"), (10, "near"), (15, "absent")):
        ax.text(x, 4, name, ha="center", va="center", size=8, color=MISSED)
    _numbered(ax, -3.4, 6.5, 20)
    legend(ax)


@picture(6.4, 2.8)
def sums(figure: Figure) -> None:
    ax = figure.subplots()
    each = [bb.f_measure(m / n, m / k) for m, n, k in ((90, 100, 100), (1, 10, 5))]
    whole = bb.f_measure(91 / 110, 91 / 105)
    names = (
        "image 1:\n100 pixels",
        "image 2:\n5 pixels",
        "mean of\nthe two F",
        "F of the\nsummed counts",
    )
    bars = ax.bar(
        names, [*each, sum(each) / 2, whole], color=["0.7", "0.7", OTHER, LINE], width=0.6
    )
    ax.bar_label(bars, fmt="%.2f", padding=2)
    ax.set(ylabel="F", ylim=(0, 1.05), title="Five pixels have half the weight in the mean")
    ax.grid(False, axis="x")


@picture(6.4, 3.2)
def ods_ois(figure: Figure) -> None:
    ax = figure.subplots()
    t, gt = np.array([0.25, 0.5, 0.75]), 10
    matched, predicted = np.array([[9, 8, 4], [8, 5, 1]]), np.array([[18, 10, 4], [10, 5, 1]])
    for k in range(2):
        f = 2 * matched[k] / (predicted[k] + gt)
        ax.plot(t, f, "o--", color="0.55", lw=1, label="one image" if k == 0 else None)
        ax.plot(
            t[f.argmax()], f.max(), "o", color=OTHER, ms=9, label="its best" if k == 0 else None
        )
        ax.text(t[-1] + 0.012, f[-1], f"image {k + 1}", va="center")
    f = 2 * matched.sum(0) / (predicted.sum(0) + 2 * gt)
    ax.plot(t, f, "o-", color=LINE, label="both images, counts summed")
    ax.text(t[-1] + 0.012, f[-1], "sum", va="center", color=LINE)
    ax.annotate("ODS: best of the sum", (0.5, f[1]), (0.52, 0.86), arrowprops={"arrowstyle": "->"})
    ax.set(xlabel="threshold", ylabel="F", xlim=(0.22, 0.85), ylim=(0, 1), xticks=t)
    ax.legend(loc="lower left")


@picture(6.6, 3.0)
def ap(figure: Figure) -> None:
    left, right = figure.subplots(1, 2)
    recall, precision = [0.8, 0.4], [0.4, 0.8]
    left.plot(recall, precision, "o-", color=LINE)
    left.fill_between(recall, precision, color=LINE, alpha=0.15, lw=0)
    for x in (0.2, 0.9):
        left.text(x, 0.2, "what\ncounts\nhere?", ha="center", color="0.35", size=8)
    left.set(
        xlabel="recall",
        ylabel="precision",
        xlim=(0, 1.03),
        ylim=(0, 1.05),
        title="Two measured points",
    )
    curve = bb.PRCurve([0.3, 0.6], precision, recall, [False, False])
    whole = curve.with_whole_image(0.03)
    areas = [float(area(whole if rule == "edter" else curve, rule)) for rule in AP_RULES]
    bars = right.barh([*AP_RULES][::-1], areas[::-1], color=LINE)
    right.bar_label(bars, fmt="%.3f", padding=3)
    right.set(title="Areas under them, by rule", xlim=(0, 1))
    right.grid(False, axis="y")


@picture(6.6, 3.1)
def roc_pr(figure: Figure) -> None:
    left, right = figure.subplots(1, 2)
    fpr = np.linspace(0, 1, 400)
    tpr = norm.sf(norm.isf(np.maximum(fpr, 1e-9)) - 2.2)
    left.plot(fpr, tpr, color="0.3")
    left.plot(0.1, 0.8, "o", color="black")
    left.set(
        title="ROC: one curve for both", xlabel="false positive rate", ylabel="true positive rate"
    )
    for negatives, colour in ((100, LINE), (10_000, OTHER)):
        points = curves.roc_to_pr(fpr[1:], tpr[1:], 100, negatives)
        right.plot(points.recall, points.precision, color=colour, label=f"100 : {negatives:,}")
        at = curves.roc_to_pr([0.1], [0.8], 100, negatives)
        right.plot(at.recall, at.precision, "o", color=colour)
    right.set(
        title="PR: positives to negatives", xlabel="recall", ylabel="precision", ylim=(0, 1.03)
    )
    right.legend(loc="lower left")


@picture(6.0, 3.2)
def interpolation(figure: Figure) -> None:
    ax = figure.subplots()
    line = curves.interpolate_pr([5, 10], [5, 30], positives=20)
    fine = curves.interpolate_pr([500, 1000], [500, 3000], positives=2000)
    ax.plot(
        [0.25, 0.5], [0.5, 0.25], "--", color=OTHER, label="straight line: no threshold reaches it"
    )
    ax.plot(fine.recall, fine.precision, color=LINE, label="counts in proportion")
    ax.plot(line.recall, line.precision, "o", color=LINE, ms=4)
    for name, x, y in (("A", 0.25, 0.5), ("B", 0.5, 0.25)):
        ax.plot(x, y, "o", color="black")
        ax.annotate(name, (x, y), xytext=(6, 6), textcoords="offset points", weight="bold")
    ax.set(xlabel="recall", ylabel="precision", ylim=(0.2, 0.55), xlim=(0.23, 0.53))
    ax.legend(loc="upper right", bbox_to_anchor=(1, 0.97))


@picture(6.6, 3.1)
def hull(figure: Figure) -> None:
    left, right = figure.subplots(1, 2)
    fpr, tpr = np.array([0.0, 0.5, 0.6]), np.array([0.5, 0.6, 1.0])
    corners = curves.roc_convex_hull(fpr, tpr)
    left.plot(corners.fpr, corners.tpr, color=LINE, label="hull")
    best = curves.achievable_pr(fpr, tpr, 10, 10)
    right.plot(best.recall, best.precision, color=LINE, label="achievable")
    points = curves.roc_to_pr(fpr, tpr, 10, 10)
    right.axvline(0.6, color="0.75", ls=":", lw=1)
    for k, name in enumerate("ABC"):
        left.plot(fpr[k], tpr[k], "o", color=OTHER if name == "B" else "black")
        left.annotate(name, (fpr[k], tpr[k]), xytext=(7, -10), textcoords="offset points")
        right.plot(
            points.recall[k], points.precision[k], "o", color=OTHER if name == "B" else "black"
        )
        right.annotate(
            name,
            (points.recall[k], points.precision[k]),
            xytext=(7, -10),
            textcoords="offset points",
        )
    left.set(
        title="ROC space",
        xlabel="false positive rate",
        ylabel="true positive rate",
        xlim=(-0.03, 1.05),
    )
    right.set(
        title="PR space", xlabel="recall", ylabel="precision", ylim=(0.4, 1.05), xlim=(0, 1.08)
    )
    left.legend(loc="lower right")
    right.legend(loc="lower left")


@picture(4.6, 4.0)
def eer_det(figure: Figure) -> None:
    ax = figure.subplots()
    rng = np.random.default_rng(1)
    scores = np.r_[rng.normal(1.8, 1, 400), rng.normal(0, 1, 400)]
    labels = np.repeat([1, -1], 400)
    bb.DETCurveDisplay.from_predictions(labels, scores, name="synthetic scores").plot(ax)
    eer = curves.roc(labels, scores).eer
    ax.set_title(f"Where both rates are equal: {eer:.3f}")


@picture(4.4, 3.2)
def auc(figure: Figure) -> None:
    ax = figure.subplots()
    positive, negative = (0.9, 0.6, 0.4), (0.7, 0.3, 0.2)
    for row, p in enumerate(positive):
        for column, n in enumerate(negative):
            right = p > n
            colour = (*MATCHED, 0.45) if right else (1, 1, 1, 1)
            ax.add_patch(square(column, row, colour))
            ax.text(column, row, f"{p} {'>' if right else '<'} {n}", ha="center", va="center")
    ax.plot([-0.5, -0.5, 0.5, 0.5, 2.5], [-0.5, 0.5, 0.5, 2.5, 2.5], color="black", lw=2)
    ax.set(xlim=(-0.6, 2.6), ylim=(-0.6, 2.6), title="7 of 9 pairs in order: area 7/9")
    ax.set_xticks(range(3), [f"negative {n}" for n in negative])
    ax.set_yticks(range(3), [f"positive {p}" for p in positive])
    ax.grid(False)


@picture(6.4, 2.9)
def significance(figure: Figure) -> None:
    ax = figure.subplots()
    with tempfile.TemporaryDirectory() as out:
        runs = [
            bb.run(name, sample_images(), gt=sample_ground_truth(), out=f"{out}/{name}").evaluation
            for name in ("scharr", "sobel")
        ]
    found = bb.compare(runs)
    d = found.difference_of("scharr", "sobel", "boundary.ods")
    stacks = [np.stack([_four(r) for r in run.records]) for run in runs]
    rng = np.random.default_rng(0)
    draws = rng.integers(0, 16, (4000, 16))
    values = [max(_f(stacks[0][k].sum(0))) - max(_f(stacks[1][k].sum(0))) for k in draws]
    ax.hist(values, bins=50, color=LINE, alpha=0.75)
    ax.axvline(0, color="black")
    ax.axvspan(d.low, d.high, color="0.5", alpha=0.15, lw=0)
    ax.set(
        xlabel="ODS of Scharr minus ODS of Sobel, 4000 bootstrap samples of 16 images", yticks=[]
    )
    ax.set_title(f"95 % interval {d.low:+.3f} to {d.high:+.3f} (shaded), p = {d.p_holm:.3f}")


def _four(record: bb.ImageRecord) -> np.ndarray:
    return record.counts["boundary"].matches.T


def _f(four: np.ndarray) -> np.ndarray:
    recall, precision = four[0] / np.maximum(four[1], 1), four[2] / np.maximum(four[3], 1)
    return 2 * precision * recall / np.maximum(precision + recall, 1e-12)


@picture(5.6, 2.8)
def limits(figure: Figure) -> None:
    ax = figure.subplots()
    radius = bb.Protocol.preset("bsds500").radius((321, 481))
    gt = np.zeros((100, 40), bool)
    gt[:, 20] = True
    shifts = np.arange(8)
    f = [
        bb.match_boundaries(np.roll(gt, int(s), axis=1), gt, radius).n_matched / 100 for s in shifts
    ]
    ax.plot(shifts, f, "o-", color=LINE)
    ax.axvline(radius, color=OTHER, ls="--")
    ax.text(5.15, 0.5, f"tolerance\n{radius:.2f} pixels", color=OTHER)
    ax.set(xlabel="a straight line, shifted by this many pixels", ylabel="F")
    ax.set_title("F does not see a shift within the tolerance")
