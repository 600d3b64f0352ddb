"""Wireframes as L-CNN's programs describe them: pixel by pixel, counted from 1, then cut to 0."""

import math

import numpy as np

CUTS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.97, 0.99, 0.995, 0.999, 0.9995, 0.9999)


def away_from_zero(value):
    """MATLAB's round."""
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


def points(y1, x1, y2, x2):
    """ceil(length) places on a line, ends included; a single one is the second end."""
    count = math.ceil(math.sqrt((x1 - x2) ** 2 + (y1 - y2) ** 2))
    if count == 1:
        return [(y2, x2)]
    return [
        (y1 + k * (y2 - y1) / (count - 1), x1 + k * (x2 - x1) / (count - 1)) for k in range(count)
    ]


def annotated(lines, height, width):
    """x1 y1 x2 y2 in pixels of the picture."""
    out = np.zeros((height, width), bool)
    for x1, y1, x2, y2 in lines:
        for y, x in points(y1, x1, y2, x2):
            out[max(away_from_zero(y), 1) - 1, max(away_from_zero(x), 1) - 1] = True
    return out


def predicted(lines, height, width, grid=128):
    """y1 x1 y2 x2 in a grid."""
    out = np.zeros((height, width), bool)
    for y1, x1, y2, x2 in lines:
        ends = y1 * height / grid, x1 * width / grid, y2 * height / grid, x2 * width / grid
        for y, x in points(*ends):
            row = min(max(away_from_zero(y - 0.5), 1), height)
            col = min(max(away_from_zero(x - 0.5), 1), width)
            out[row - 1, col - 1] = True
    return out


def kept(lines, scores, cut):
    """The lines above a score, of those before the first score comes again."""
    out = []
    for k, score in enumerate(scores):
        if k and score == scores[0]:
            break
        if score > cut:
            out.append(lines[k])
    return out


def heat(tp, fp, n):
    """F^H and AP^H from three lists, one entry a threshold."""
    recall = sorted(t / n for t in tp)
    precision = sorted((t / max(t + f, 1e-9) for t, f in zip(tp, fp, strict=True)), reverse=True)
    best = max(2 * p * r / (p + r) if p + r else 0 for p, r in zip(precision, recall, strict=True))
    return best, under(recall, precision)


def under(recall, precision):
    """The area under the envelope of a curve."""
    recall, precision = [0, *recall, 1], [0, *precision, 0]
    steps = range(len(recall) - 1)
    return sum((recall[k + 1] - recall[k]) * max(precision[k + 1 :]) for k in steps)


def without_padding(lines):
    """The lines before one that equals the first."""
    again = [k for k in range(1, len(lines)) if list(lines[k]) == list(lines[0])]
    return lines[: again[0]] if again else lines


def line_distance(a, b):
    """The smaller sum of squared distances of the ends, in either order."""
    (y1, x1, y2, x2), (v1, u1, v2, u2) = a, b
    same = (y1 - v1) ** 2 + (x1 - u1) ** 2 + (y2 - v2) ** 2 + (x2 - u2) ** 2
    turned = (y1 - v2) ** 2 + (x1 - u2) ** 2 + (y2 - v1) ** 2 + (x2 - u1) ** 2
    return min(same, turned)


def point_distance(a, b):
    return math.sqrt((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2)


def true_ones(found, true, limit, distance):
    """Whether each of the found, in order, is near a true one that none has taken."""
    taken, out = set(), []
    for one in found:
        gaps = [distance(one, other) for other in true]
        best = gaps.index(min(gaps)) if gaps else None
        good = best is not None and gaps[best] < limit and best not in taken
        taken |= {best} if good else set()
        out.append(good)
    return out


def structural(images, limit, distance=line_distance):
    """AP of (found, scores, true) of images, ranked together; None without anything true."""
    ranked, n = [], sum(len(true) for _, _, true in images)
    for found, scores, true in images:
        ranked += zip(scores, true_ones(found, true, limit, distance), strict=False)
    ranked.sort(key=lambda pair: -pair[0])
    return area_of([good for _, good in ranked], n)


def area_of(ranked, n):
    """The area under the curve of what is true in this order, of n true ones."""
    tp = np.cumsum(ranked).tolist()
    return under([t / n for t in tp], [t / k for k, t in enumerate(tp, 1)]) if n else None


def junction_ap(images, limit):
    """AP of (found, scores, true) of images: all go by falling score, those of no truth are out."""
    ranked = [
        (score, k, one)
        for k, (found, scores, true) in enumerate(images)
        for score, one in zip(scores, found if len(true) else (), strict=bool(len(true)))
    ]
    taken, good = set(), []
    for _, k, one in sorted(ranked, key=lambda found: -found[0]):
        gaps = [point_distance(one, other) for other in images[k][2]]
        best = gaps.index(min(gaps))
        good.append(gaps[best] < limit and (k, best) not in taken)
        taken |= {(k, best)} if good[-1] else set()
    return area_of(good, sum(len(true) for _, _, true in images))
