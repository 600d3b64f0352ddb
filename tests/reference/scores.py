"""Scores of a data set by their plain definitions: loops over thresholds and levels. Slow."""

from itertools import pairwise

import numpy as np

NAN = float("nan")


def of_sums(a, b):
    return a / b if b else 0.0


def f_of(p, r):
    return 2 * p * r / (p + r) if p + r else 0.0


def curve_scores(thresholds, images, protocol):
    """ODS, OIS, AP and R50. images : a list of rows (matched_gt, total_gt, matched_pred,
    total_pred) for each image."""
    total = np.sum(images, axis=0)
    rows = [(of_sums(a, b), of_sums(c, d), d > 0) for a, b, c, d in total]
    own = np.sum([max(image, key=lambda row: f_of(*shares(row))) for image in images], axis=0)
    return {
        "ods": best_f(rows, protocol.ods_rule),
        "ois": f_of(*shares(own)),
        "ap": area(thresholds, rows, protocol),
        "r50": r50(rows),
    }


def shares(row):
    return of_sums(row[2], row[3]), of_sums(row[0], row[1])


def best_f(rows, rule):
    steps = [k / 99 for k in range(100)] if rule == "interpolated" and len(rows) > 1 else [0, 1]
    near = pairwise(rows) if len(rows) > 1 else [(rows[0], rows[0])]
    return max(
        f_of(b[1] * d + a[1] * (1 - d), b[0] * d + a[0] * (1 - d)) for a, b in near for d in steps
    )


def area(thresholds, rows, protocol):
    rule, whole = protocol.ap_rule, thresholds[0] == 0 and protocol.operator == ">="
    if rule == "step":
        return step_sum(rows)
    if (rows[0][0] > 0 and len({r for r, _, _ in rows}) == 1) or (rule == "edter" and not whole):
        return NAN
    points = [(r, p) if any_on or rule != "seism" else (0.0, 1.0) for r, p, any_on in rows]
    points = points[int(whole and rule != "edter") :]
    levels = [k / 100 for k in range(101)]
    if rule == "101-point":
        return sum(max([p for r, p in points if r >= x], default=0.0) for x in levels) / 101
    if rule == "endpoints":
        points = [(1.0, 0.0), *points, (0.0, 1.0)]
    kept = {}
    for r, p in points[::-1] if rule == "sbd" else points:
        kept.setdefault(r, p)
    line = sorted(kept.items())
    return sum(between(line, x) for x in levels) / 100 if len(line) > 1 else 0.0


def step_sum(rows):
    """Precision weighted by the rise of recall, from the highest threshold down."""
    total = reached = 0.0
    for recall, precision, _ in sorted(rows[::-1], key=lambda row: row[0]):
        total += (recall - reached) * precision
        reached = recall
    return total


def between(line, x):
    for (r0, p0), (r1, p1) in pairwise(line):
        if r0 <= x <= r1:
            return p1 if x == r1 else p0 + (p1 - p0) * (x - r0) / (r1 - r0)
    return 0.0


def r50(rows):
    at = next((k for k, (_, p, _) in enumerate(rows) if p >= 0.5), None)
    if at is None or (at == 0 and rows[0][1] != 0.5):
        return NAN
    (r1, p1, _), (r0, p0, _) = rows[at], rows[max(at - 1, 0)]
    return r1 if p1 == 0.5 else r0 + (r1 - r0) * (0.5 - p0) / (p1 - p0)
