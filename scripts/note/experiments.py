"""The note's experiments: sections 6.2 to 6.4."""

import numpy as np

from bsdsbench import curves
from bsdsbench.plotting.style import root_figure, style
from note.parts import Row, Section, draw, fraction, number, pair, spaces


def experiments() -> list[Section]:
    """In the order of the note."""
    return [made_picture(), two_curves(), share_of_positives()]


def made_picture() -> Section:
    """6.2: the 32 x 32 picture whose default thresholds miss a grey level."""
    truth, picture = np.zeros((32, 32), bool), np.zeros((32, 32))
    truth[15:] = True
    for rows, level in (((0, 1), 64), ((15, 20), 64), ((20, 25), 128), ((25, 31), 192)):
        picture[slice(*rows)] = level
    default = curves.threshold_curve(truth, picture)
    full = curves.rank(truth, picture, ties="merge")
    pr, roc = curves.pr_from_ranking(full), curves.roc_from_ranking(full)
    with style():
        a, b = spaces()
        draw(a, roc.fpr, roc.tpr, 0, "all levels", marker="o", markersize=7)
        draw(b, pr.recall[1:], pr.precision[1:], 0, marker="o", markersize=7)
        draw(a, default.fpr, default.tpr, 1, "default thresholds", marker="s", markersize=4)
        draw(b, default.tpr, default.precision, 1, marker="s", markersize=4)
        a.legend(loc="lower right")
    point = (
        f"({fraction(roc.fpr[1])}, {fraction(roc.tpr[1])}) and precision {number(pr.precision[1])}"
    )
    return Section(
        "Note 6.2: a made picture of 32 x 32",
        "Rows 16 to 32 are object. prec_rec's default thresholds are quantiles of the scores. The "
        "note's photograph is not remade: its pictures stay where they are.",
        rows=[
            Row(
                "grey levels that get a point",
                "all (the result is what was wanted)",
                ", ".join(number(t) for t in default.thresholds),
                f"The quantiles miss the top level, 192; its point is {point}.",
            ),
            Row("figure numbers in 6.2", "6-9, 10, 11", "8-11, 12, 13", "Hard-coded numbers."),
        ],
        figures=[("made", "All grey levels, and the default thresholds.", root_figure(a))],
    )


def two_curves() -> Section:
    """6.3: two rankings of 20 samples that cross once."""
    target = [1] * 10 + [0] * 10
    first = [1, 1, 2, 2, 0, 2, 3, 0, 0, 0, 2, 1, 1, 0, 0, 2, 1, 0, 0, 0]
    second = [1, 3, 2, 2, 0, 1, 1, 2, 2, 0, 3, 1, 1, 2, 2, 0, 0, 0, 0, 0]
    found = [curves.threshold_curve(target, s, strict=True) for s in (first, second)]
    points = [
        ", ".join(
            f"({fraction(r)}, {fraction(p)})" for r, p in zip(c.tpr, c.precision, strict=True)
        )
        for c in found
    ]
    roc = [(np.r_[0, c.fpr, 1], np.r_[0, c.tpr, 1]) for c in found]
    pr = [(np.r_[c.precision, 0.5], np.r_[c.tpr, 1]) for c in found]
    in_roc, in_pr = curves.crossings(*roc), curves.crossings(*pr, space="pr")
    drawn = [(np.r_[1, p[:-1], 0], np.r_[0, r[:-1], 1]) for p, r in pr]
    straight = curves.crossings(
        *[(p[:-1], r[:-1]) for p, r in drawn], space="pr", lines="straight", within=(0.1, 0.6)
    )
    with style():
        a, b = spaces()
        for k, (c, (x, y)) in enumerate(zip(found, roc, strict=True)):
            draw(a, x, y, k, f"score {k + 1}", marker=".")
            closed = curves.interpolate_pr(
                np.r_[10 * c.tpr, 10] * 50, np.r_[10 * c.fpr, 10] * 50, 500
            )
            draw(b, closed.recall, closed.precision, k)
            draw(b, drawn[k][1], drawn[k][0], k, linestyle=":", linewidth=1)
        draw(a, *in_roc, 6, marker="o", linestyle="none", markersize=4)
        draw(b, in_pr.recall, in_pr.precision, 6, marker="o", linestyle="none", markersize=4)
        a.legend(loc="lower right")
    return Section(
        "Note 6.3: two curves that cross",
        "20 samples, 10 positive, two integer scores, prec_rec with > for >=. Solid: count-linear; "
        "dotted: as the note draws them, straight and closed at (0, 1) and (1, 0).",
        rows=[
            Row("curve 1 (recall, precision)", "(1/10, 1), (2/5, 2/3), (3/5, 6/11)", points[0]),
            Row("curve 2 (recall, precision)", "(1/10, 1/2), (1/2, 5/8), (4/5, 8/13)", points[1]),
            Row(
                "they cross at (recall, precision)",
                pair(straight.recall[0], straight.precision[0], 4),
                pair(in_pr.recall[0], in_pr.precision[0], 4),
                "The figure joins PR points by straight lines, which is not the correct "
                f"interpolation; in ROC space they cross at {pair(in_roc.fpr[0], in_roc.tpr[0])}, "
                "the same recall.",
            ),
            Row(
                "end of the PR curves",
                "(1, 0)",
                "(1, 0.5)",
                "With everything predicted, precision is P/(P+N); it cannot be less there.",
            ),
            Row(
                "entries of the target",
                "19",
                str(len(target)),
                "The scores have 20 entries and the curve needs 10 negatives.",
            ),
            Row(
                "what the edited program changes",
                "> for >=",
                "> for >=, and no minimum",
                "It also drops the smallest score from the thresholds: no effect here, whose 0.25 "
                "quantile is the minimum. With > nothing predicts everything: the curves stop at "
                f"recall {number(found[0].tpr[-1])} and {number(found[1].tpr[-1])}.",
            ),
            Row("figure numbers in 6.3", "13, 14, 15", "15, 16, 17", "Hard-coded numbers."),
        ],
        figures=[
            ("two_curves", "Both scores in both spaces; dot: where they cross.", root_figure(a))
        ],
    )


def share_of_positives() -> Section:
    """6.4: a ramp of scores, the first t samples positive."""
    scores = np.tile(np.arange(100), 10)
    table, areas = [], {}
    for t in range(50, 1000, 100):
        labels = np.arange(1000) < t
        roc, pr = (f(labels, scores, ties="merge") for f in (curves.roc, curves.pr))
        areas[t] = roc.auc
        table.append([str(t), number(roc.auc), number(pr.ap)])
    with style():
        a, b = spaces()
        for k, t in enumerate((50, 450, 950)):
            c = curves.threshold_curve(np.arange(1000) < t, scores)
            draw(a, c.fpr, c.tpr, k, f"t = {t}")
            draw(b, c.tpr, c.precision, k)
        a.legend(loc="lower right")
    spread = ", ".join(number(areas[t]) for t in (50, 150, 250, 350, 450))
    mirrored = all(abs(areas[t] - areas[1000 - t]) < 1e-12 for t in areas)
    return Section(
        "Note 6.4: the share of positives",
        "Scores 0..99 ten times over; the first t of 1000 samples are positive, t = 50, 150 .. "
        f"950. t and 1000 - t give the same ROC area: {'yes' if mirrored else 'no'}.",
        rows=[
            Row(
                "ROC area as t grows to 450",
                "changes little",
                spread,
                "The positives also get other scores as t grows, so that this is no test of the "
                "share of positives alone.",
            ),
            Row(
                "range of the ROC area (section 4)",
                "0.5 to 1",
                "0 to 1",
                "0.5 is chance; all areas here are below it, the least "
                f"{number(min(areas.values()))}.",
            ),
        ],
        tables=[("Areas", ["t", "AUC-ROC", "AP"], table)],
        figures=[("share", "Three of the ten.", root_figure(a))],
    )
