"""The note's worked examples: sections 2 to 5.

Numbers and small tables are those the note prints; pictures are drawn here, from data written here
or drawn at random where the note gives none.
"""

from typing import Any

import numpy as np

from bsdsbench import curves
from bsdsbench.plotting.palette import PALETTE
from bsdsbench.plotting.style import root_figure, style
from note.parts import Row, Section, draw, fraction, grid, new_row, number, pair, spaces


def examples() -> list[Section]:
    """In the order of the note."""
    return [
        confusion_matrix(),
        crossing_by_hand(),
        hull(),
        interpolation(),
        skewed_classes(),
        one_picture(),
        two_pictures(),
    ]


def confusion_matrix() -> Section:
    """3.2.1: ten people, one confusion matrix, one point in each space."""
    tp, fp, fn, tn = 4, 2, 1, 3
    precision, recall = curves.roc_to_pr([fp / (fp + tn)], [tp / (tp + fn)], tp + fn, fp + tn)
    with style():
        roc, pr = spaces()
        draw(roc, [fp / (fp + tn)], recall, 0, marker="o")
        draw(pr, recall, precision, 0, marker="o")
        roc.annotate("(2/5, 4/5)", (0.43, 0.8), va="center")
        pr.annotate("(4/5, 2/3)", (0.77, 0.667), va="center", ha="right")
    return Section(
        "Note 2, 3.1 and 3.2.1: one confusion matrix, one point in each space",
        "Ten people, five of them ill; a test calls six ill, four of them rightly. The best corner "
        "is the upper left one in ROC space, the upper right one in PR space.",
        rows=[
            Row("point in ROC space", "(2/5, 4/5)", f"({fraction(fp / 5)}, {fraction(tp / 5)})"),
            Row(
                "point in PR space",
                "(4/5, 2/3)",
                f"({fraction(recall[0])}, {fraction(precision[0])})",
            ),
        ],
        tables=[
            (
                "Confusion matrix",
                ["", "ill (5)", "well (5)"],
                [["called ill (6)", "TP 4", "FP 2"], ["called well (4)", "FN 1", "TN 3"]],
            )
        ],
        figures=[("confusion", "The same counts in both spaces.", root_figure(roc))],
    )


def crossing_by_hand() -> Section:
    """3.3.1: two PR curves of five points each, moved to ROC space."""
    red = [0.8, 0.7, 0.5, 0.4, 0.2], [0.1, 0.2, 0.4, 0.6, 0.8]
    blue = [0.9, 0.7, 0.5, 0.4, 0.3], [0.1, 0.2, 0.3, 0.6, 0.8]
    cross = curves.crossings(blue, red, space="pr", lines="straight")
    met = ", ".join(pair(r, p) for p, r in zip(*cross, strict=True))
    better = [
        name
        for low, high in ((0, 0.2), (0.2, 0.6), (0.6, 0.8))
        for name, a, b in (("blue", blue, red), ("red", red, blue))
        if curves.dominates(a, b, space="pr", within=(low, high))
    ]
    rates = [curves.pr_to_roc(*c, 5, 5, check=False) for c in (red, blue)]
    with style():
        roc, pr = spaces()
        for k, ((p, r), (x, y)) in enumerate(zip((blue, red), rates[::-1], strict=True)):
            draw(pr, r, p, k, ("blue", "red")[k], marker=".")
            draw(roc, x, y, k, marker=".")
        roc.set_xlim(-0.05, 3.4)
        roc.axvspan(1, 3.4, color="#F2D7D5", zorder=0.5)
        roc.annotate("FPR above 1:\nimpossible", (2.2, 0.15), ha="center")
        pr.legend(loc="lower left")
    return Section(
        "Note 3.3.1 (and slides): dominance carries over",
        "Two curves given by five PR points each, with 5 positives and 5 negatives. Where one is "
        "above the other in PR space, it is above in the same range of recall in ROC space.",
        rows=[
            Row("the curves meet at (recall, precision)", "(0.2, 0.7), (0.6, 0.4)", met),
            Row("above in 0-0.2, 0.2-0.6, 0.6-0.8", "blue, red, blue", ", ".join(better)),
            Row(
                "last points: precision 0.2 and 0.3 at recall 0.8",
                "drawn like the others",
                f"FPR {number(rates[0].fpr[-1])} and {number(rates[1].fpr[-1])}: impossible",
                "They cannot be had with 5 negatives: they mean 16 and 9.3 false positives. "
                "Recall 0.1 of 5 positives is half a true positive.",
            ),
        ],
        figures=[("crossing", "Five points each, as given; straight lines.", root_figure(roc))],
    )


def hull() -> Section:
    """3.3.2: hull in ROC space, achievable curve in PR space."""
    positives, negatives = 20, 40
    fp, tp = np.array([0, 2, 4, 10, 12, 25, 40]), np.array([0, 8, 9, 13, 18, 19, 20])
    fpr, tpr = fp / negatives, tp / positives
    best = curves.roc_convex_hull(fpr, tpr)
    achievable = curves.achievable_pr(fpr, tpr, positives, negatives)
    plain = curves.interpolate_pr(tp, fp, positives)
    with style():
        roc, pr = spaces()
        draw(roc, fpr, tpr, 0, "points", marker="o", markersize=4)
        draw(roc, *best, 1, "hull", linestyle="--")
        draw(pr, plain.recall, plain.precision, 0, "count-linear")
        draw(pr, achievable.recall, achievable.precision, 1, "achievable", linestyle="--")
        pr.plot(tpr[1:], tp[1:] / (tp + fp)[1:], "o", color=PALETTE[0], markersize=4)
        roc.legend(loc="lower right")
        pr.legend(loc="lower left")
    above = curves.dominates(best, (fpr, tpr)) and not curves.dominates((fpr, tpr), best)
    return Section(
        "Note 3.3.2 (and slides): convex hull and achievable PR curve",
        "The points are ours: the documents give only pictures. The hull of the ROC points, seen "
        "in PR space, is the best curve that mixing these classifiers can reach.",
        rows=[
            Row("hull is nowhere below the points", "yes", "yes" if above else "no"),
            Row(
                "area of the achievable curve is the larger one",
                "yes",
                "yes" if curves.auc_pr(*achievable) > curves.auc_pr(*plain) else "no",
            ),
            Row(
                "numbers of the three criteria for a hull (slides)",
                "2, 3, 4",
                "1, 2, 3",
                "The numbering of the list was lost on the slide.",
            ),
        ],
        figures=[("hull", "Seven points, their hull, and both in PR space.", root_figure(roc))],
    )


def interpolation() -> Section:
    """3.3.2 and slides: count-linear interpolation between A and B."""
    tp_a, fp_a, tp_b, fp_b, positives = 5, 5, 10, 30, 20
    precision, recall = curves.interpolate_pr([tp_a, tp_b], [fp_a, fp_b], positives)
    printed = ["0.500", "0.375", "0.318", "0.286", "0.265", "0.250"]
    rows = [
        Row(f"precision at recall {number(r, 2)}", text, f"{p:.3f}")
        for p, r, text in zip(precision, recall, printed, strict=True)
    ]
    rows.append(
        Row(
            "new points TP_A + x for x from 1 to",
            "TP_B - TP_A",
            "TP_B - TP_A - 1",
            "x = TP_B - TP_A is B itself: between 5 and 10 lie four new points, as the table has.",
        )
    )
    with style():
        (ax,) = new_row(1)
        draw(ax, recall, precision, 0, "count-linear", marker="o", markersize=4)
        draw(ax, recall[[0, -1]], precision[[0, -1]], 1, "straight: too good", linestyle="--")
        ax.set(xlabel="Recall", ylabel="Precision")
        ax.legend()
    return Section(
        "Note 3.3.2 (and slides): interpolation between two points",
        "20 positives, 2000 negatives; A has TP 5, FP 5, B has TP 10, FP 30. Counts move on a "
        "straight line (5 negatives for each positive), precision on a hyperbola.",
        rows=rows,
        figures=[("interpolation", "The correct curve and the straight line.", root_figure(ax))],
    )


def skewed_classes() -> Section:
    """3.3.3: the same ranking quality looks different with few positives."""
    rng = np.random.default_rng(2006)
    labels = np.where(rng.random(20_000) < 0.005, 1, -1)
    with style():
        roc, pr = spaces()
        areas = []
        for k, gap in enumerate((2.6, 2.0)):
            scores = rng.normal(size=labels.size) + gap * (labels > 0)
            a, b = curves.roc(labels, scores), curves.pr(labels, scores)
            draw(roc, a.fpr, a.tpr, k, f"AUC {a.auc:.3f}")
            draw(pr, b.recall, b.precision, k, f"AP {b.ap:.3f}")
            areas.append((a.auc, b.ap))
        roc.legend(loc="lower right")
        pr.legend(loc="upper right")
    wider = areas[0][1] - areas[1][1] > areas[0][0] - areas[1][0]
    return Section(
        "Note 3.3.3: few positives",
        "The note shows curves of a cancer data set that it does not give; these are two random "
        "rankings with 0.5 % positives. Both look near the best corner in ROC space and far from "
        "it in PR space.",
        rows=[
            Row("the gap is wider in PR space", "yes", "yes" if wider else "no"),
            Row(
                "section that 5.3 refers to for these advantages",
                "3.3.2",
                "3.3.3",
                "Wrong cross-reference.",
            ),
        ],
        figures=[("skewed", "Two rankings with 100 positives in 20 000.", root_figure(roc))],
    )


TRUTH = np.array([[0, 0, 0, 0], [0, 1, 1, 0], [0, 1, 1, 0], [0, 0, 0, 0]])
GREY_LEVELS = np.array([[128, 0, 0, 0], [0, 255, 0, 0], [0, 64, 192, 0], [0, 0, 0, 64]])
NORMALISED = np.round(GREY_LEVELS / 255, 2)


def _at(truth: np.ndarray, picture: np.ndarray, threshold: float, strict: bool = False) -> Any:
    """TP, FP at one threshold."""
    hit = picture > threshold if strict else picture >= threshold
    return int((hit & (truth > 0)).sum()), int((hit & (truth == 0)).sum())


def one_picture() -> Section:
    """5.1: a 4 x 4 picture, its points in both spaces."""
    r = curves.rank(TRUTH > 0, NORMALISED, ties="merge")
    roc, pr = curves.roc_from_ranking(r), curves.pr_from_ranking(r)
    k = {t: int(np.flatnonzero(np.isclose(roc.thresholds, t))[0]) for t in (0.25, 0.5, 0.75, 1)}
    printed = {0.25: ("(1/6, 3/4)", "(3/4, 3/5)"), 0.5: ("(1/12, 1/2)", "(1/2, 2/3)")}
    printed[0.75] = ("(0, 1/2)", "(1/2, 2/5)")
    rows = []
    for t, (in_roc, in_pr) in printed.items():
        i = k[t]
        rows.append(
            Row(f"ROC point at {t}", in_roc, f"({fraction(roc.fpr[i])}, {fraction(roc.tpr[i])})")
        )
        reason = (
            "At 0.75 the two pixels left are both object (TP 2, FP 0): precision 1. The ROC point "
            "beside it, with FPR 0, already says so."
        )
        rows.append(
            Row(
                f"PR point at {t}",
                in_pr,
                f"({fraction(pr.recall[i])}, {fraction(pr.precision[i])})",
                reason if t == 0.75 else "",
            )
        )
    wrong = NORMALISED.copy()
    wrong[3, 3] = 1
    tp, fp = _at(TRUTH, wrong, 0.5)
    rows += [
        Row(
            "Table 4, last cell",
            "1",
            number(NORMALISED[3, 3], 2),
            f"Table 3 has 64 there, 64/255. With 1 the point at 0.5 would be FPR "
            f"{fraction(fp / 12)}, precision {fraction(tp / (tp + fp))}, not the printed one.",
        ),
        Row(
            "rule at threshold 0.25",
            ">",
            ">=",
            f"Table 5 has the 0.25 cells as 1; with > there would be TP "
            f"{_at(TRUTH, NORMALISED, 0.25, strict=True)[0]}, not 3.",
        ),
        Row(
            "number of points",
            "3",
            str(len(roc.thresholds) - 2),
            f"Threshold 1 gives one more: FPR {fraction(roc.fpr[k[1]])}, recall "
            f"{fraction(pr.recall[k[1]])}, precision {fraction(pr.precision[k[1]])}.",
        ),
        Row(
            "what ODS and OIS choose",
            "a threshold for the ground truth",
            "a threshold for the detector",
            "The ground truth of BSDS is binary already; ODS and OIS choose the detector's "
            "threshold for the data set or for each image.",
        ),
    ]
    with style():
        a, b = spaces()
        draw(a, roc.fpr[:-1], roc.tpr[:-1], 0, marker="o")
        draw(b, pr.recall[1:-1], pr.precision[1:-1], 0, marker="o")
        draw(b, [0.5], [0.4], 1, "as printed", marker="x", linestyle="none")
        b.legend(loc="lower left")
    return Section(
        "Note 5.1: points of one picture",
        "A 4 x 4 picture against a 2 x 2 object; pixels at or above a threshold count as object.",
        rows=rows,
        tables=[
            ("Table 2: ground truth", [""] * 4, grid(TRUTH)),
            ("Table 3: grey levels", [""] * 4, grid(GREY_LEVELS)),
            ("Table 4, corrected: divided by 255", [""] * 4, grid(NORMALISED)),
            ("Table 5: at 0.25", [""] * 4, grid((NORMALISED >= 0.25).astype(int))),
        ],
        figures=[("picture", "Thresholds 1, 0.75, 0.5, 0.25.", root_figure(a))],
    )


def two_pictures() -> Section:
    """5.2: counts are summed over pictures, then divided."""
    truth = TRUTH, np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
    second = np.array([[0.6, 0, 0, 0], [0.8, 0.4, 0, 0], [0, 0.7, 0.8, 0], [0, 0, 0, 0]])
    pictures = NORMALISED, second
    counts = [_at(t, p, 0.5) for t, p in zip(truth, pictures, strict=True)]
    strict = [_at(t, p, 0.5, strict=True) for t, p in zip(truth, pictures, strict=True)]
    tp, fp = (sum(c) for c in zip(*counts, strict=True))
    tp_strict, fp_strict = (sum(c) for c in zip(*strict, strict=True))
    mean = np.mean([a / (a + b) for a, b in counts])
    return Section(
        "Note 5.2: one curve for many pictures",
        "At each threshold TP, FP and FN are added over the pictures, then divided: not the mean "
        f"of the pictures' precisions (which would be {fraction(float(mean))}).",
        rows=[
            Row(
                "recall at 0.5",
                "(2+2)/(4+4)",
                "(" + "+".join(str(c[0]) for c in counts) + ")/(4+4)",
            ),
            Row(
                "precision at 0.5",
                "(2+2)/(3+4) = 4/7",
                f"({counts[0][0]}+{counts[1][0]})/({sum(counts[0])}+{sum(counts[1])})"
                f" = {fraction(tp / (tp + fp))}",
            ),
            Row(
                "Table 6 (= Table 2), last cell",
                "1",
                str(TRUTH[3, 3]),
                f"With 1 there would be five positives and recall {fraction(tp / 9)}.",
            ),
            Row(
                "rule at threshold 0.5",
                "not said",
                ">=",
                f"With > the pixel at 0.5 drops: precision {tp_strict}/{tp_strict + fp_strict}.",
            ),
        ],
        tables=[
            ("Table 8: ground truth", [""] * 4, grid(truth[1])),
            ("Table 9: detector", [""] * 4, grid(second)),
        ],
    )
