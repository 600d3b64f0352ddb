"""The slides' example of 20 and 2000 samples, and the VLFeat tutorial's pictures."""

from typing import Any

import numpy as np

from bsdsbench import curves
from bsdsbench.plotting import DETCurveDisplay, PRCurveDisplay, ROCCurveDisplay
from bsdsbench.plotting.palette import PALETTE
from bsdsbench.plotting.style import root_figure, style
from note.parts import Row, Section, draw, new_row, number, spaces


def tutorial_sections() -> list[Section]:
    """The slides' areas, then PR, ROC and DET as the tutorial shows them."""
    return [areas(), vl_pr(), vl_roc(), vl_det()]


def areas() -> Section:
    """20 positives, 2000 negatives: more area in ROC space, less in PR space."""
    positives, negatives = 20, 2000
    one = np.array([0, 0, 0.75, 1]), np.array([0, 0.5, 1, 1])
    two = np.array([0, 0.25, 1]), np.array([0, 1, 1])
    counts = [(tpr * positives, fpr * negatives) for fpr, tpr in (one, two)]
    closed = [curves.davis_goadrich_area(*c, positives) for c in counts]
    unit = curves.auccalculator_areas(*counts[0], positives, negatives)[0]
    fine = [curves.interpolate_pr(tp * 100, fp * 100, positives * 100) for tp, fp in counts]
    step = curves.auc_pr(*curves.interpolate_pr(*counts[0], positives), rule="step")
    with style():
        roc, pr = spaces()
        for k, (c, f) in enumerate(zip((one, two), fine, strict=True)):
            draw(roc, *c, k, f"curve {'I' * (k + 1)}, {curves.auc_roc(*c):.4g}", marker=".")
            draw(pr, f.recall, f.precision, k, f"curve {'I' * (k + 1)}, {closed[k]:.4f}")
        roc.legend(loc="lower right")
        pr.legend(loc="upper right")
    return Section(
        "Slides: 20 positives, 2000 negatives",
        "Curve I is (0,0) (0,.5) (.75,1) (1,1), inferred from the picture; curve II is (0,0) "
        "(.25,1) (1,1). The one with the larger area in ROC space has the smaller one in PR space.",
        rows=[
            # 0.8125: the slides round half up.
            Row("AUC-ROC of I", "0.813", f"{curves.auc_roc(*one) + 1e-9:.3f}"),
            Row("AUC-ROC of II", "0.875", f"{curves.auc_roc(*two):.3f}"),
            Row(
                "AUC-PR of I",
                "0.514",
                f"{closed[0]:.4f}",
                f"Closed form; {unit:.4f} by AUCCalculator's rule, {step:.4f} by steps. The slides "
                "do not give the exact corners.",
            ),
            Row("AUC-PR of II (1/26)", "0.038", f"{closed[1]:.3f}"),
        ],
        figures=[("areas", "Both curves in both spaces.", root_figure(roc))],
    )


def samples() -> tuple[np.ndarray, np.ndarray]:
    """20 positives and 100 negatives with normal scores two deviations apart."""
    rng = np.random.default_rng(7)
    labels = np.r_[np.ones(20), -np.ones(100)]
    return labels, rng.normal(size=120) + labels


def _row_of(displays: list[Any], titles: list[str]) -> Any:
    """Displays of any kind side by side."""
    axes = new_row(len(displays))
    for ax, display, title in zip(axes, displays, titles, strict=True):
        ax.set_box_aspect(1)
        display.plot(ax, color=PALETTE[0])
        ax.set_title(title)
    return root_figure(axes[0])


def vl_pr() -> Section:
    """PR curves: plain, with surrogate negatives, with a fixed prior, interpolated."""
    labels, scores = samples()
    options: list[tuple[str, dict[str, Any]]] = [
        ("plain", {}),
        ("9900 more negatives", {"num_negatives": 10_000}),
        ("prior 0.5", {"normalize_prior": 0.5}),
        ("interpolated", {"interpolate": True}),
    ]
    found = {name: curves.pr(labels, scores, **o) for name, o in options}
    plain = found["plain"]
    cut = scores.copy()
    cut[[3, 50]] = -np.inf
    hidden, stable = curves.pr(labels, cut), curves.pr(labels, cut, stable=True)
    perfect = curves.pr([1, 1, -1, 1], [4.0, 3, 2, 1]).precision
    with style():
        figure = _row_of([PRCurveDisplay.from_curve(c) for c in found.values()], list(found))
    table = [
        [name, number(c.auc, 4), number(c.ap, 4), number(c.ap_11, 4), number(c.chance, 4)]
        for name, c in found.items()
    ]
    return Section(
        "VLFeat tutorial: precision and recall",
        "20 positives and 100 negatives with random scores (ours: the tutorial's are random too).",
        rows=[
            Row(
                "points of a curve of 120 samples",
                "120",
                str(plain.recall.size),
                "tpr(k), tnr(k) count the k - 1 best samples: element 1 predicts nothing.",
            ),
            Row(
                "function that gives [recall, precision]",
                "vl_roc",
                "vl_pr",
                "Wrong name in the text.",
            ),
            Row(
                "effect of one more positive",
                "precision rises",
                "rises if below 1",
                f"After an ideal start it stays: {', '.join(number(p) for p in perfect)}.",
            ),
            Row(
                "samples of score -inf",
                "TNR is set to zero",
                "curve ends before them",
                f"{hidden.recall.size} points instead of 121; NaN in input order (stable), here "
                f"for {int(np.isnan(stable.recall).sum())} samples.",
            ),
            Row(
                "AP11 looks at recall",
                "> level",
                ">= level",
                "The code compares so, and the conventional (0, 1) point takes part: level 0 "
                "always gives 1.",
            ),
        ],
        tables=[("Areas", ["", "AUC", "AP", "AP11", "chance"], table)],
        figures=[("vl_pr", "The options of vl_pr.", figure)],
    )


def vl_roc() -> Section:
    """ROC curves on the four pairs of axes, and surrogate negatives."""
    labels, scores = samples()
    variants = ("fptp", "tntp", "tptn", "fpfn")
    found = {v: curves.roc(labels, scores, plot=v) for v in variants}
    wide = {v: curves.roc(labels, scores, plot=v, num_negatives=10_000) for v in variants}
    with style():
        figure = _row_of([ROCCurveDisplay.from_curve(c) for c in found.values()], list(found))
    table = [
        [v, number(found[v].auc, 4), number(wide[v].auc, 4), number(found[v].eer, 4)]
        for v in variants
    ]
    return Section(
        "VLFeat tutorial: ROC",
        "x axis, then y axis: rates of false and true positives and negatives; star: equal error "
        "rate; dashed: chance. Surrogate negatives do not extend the curve, so the default area "
        "shrinks.",
        rows=[
            Row(
                "what the ROC curve is",
                "TPR against TNR",
                "TPR against FPR",
                "That is the default plot; TNR is the tntp variant.",
            ),
            Row(
                "help: line of chance",
                "(1, 0) to (0, 1)",
                "(0, 0) to (1, 1)",
                "True on TNR and TPR axes; on the default ones (FPR, TPR) it rises.",
            ),
            Row(
                "help: y label of tptn",
                "false positive rate",
                "true negative rate",
                "A slip in the plotting code.",
            ),
        ],
        tables=[("Areas", ["axes", "area", "with 10 000 negatives", "EER"], table)],
        figures=[("vl_roc", "The four variants of vl_roc.", figure)],
    )


def vl_det() -> Section:
    """DET curve, log-log and on normal-deviate axes."""
    labels, scores = samples()
    d = curves.det(labels, scores)
    with style():
        figure = _row_of(
            [DETCurveDisplay.from_curve(d, scale="log"), DETCurveDisplay.from_curve(d)],
            ["log-log (vl_det)", "normal deviate"],
        )
    return Section(
        "VLFeat tutorial: DET",
        "Miss rate against false alarm rate. Normal scores give a straight line on normal-deviate "
        "axes, which vl_det does not have.",
        rows=[
            Row("FNR is the", "false alarm rate", "miss rate", "Swapped with FPR; so is the help."),
            Row(
                "a detector needs this plot as the small rate is",
                "FNR",
                "FPR",
                "Negatives are the vast majority.",
            ),
        ],
        figures=[("vl_det", "The same curve on both kinds of axes.", figure)],
    )
