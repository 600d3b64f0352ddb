"""Depth boundaries as their programs describe them, one pair of pixels after another."""

import math
import warnings

import numpy as np
from scipy import ndimage
from skimage.feature import canny

LEFT, TOP, RIGHT, BOTTOM = range(4)


def inverted(depth):
    """1 / max(depth, 1e-6); a NaN stays one."""
    out = []
    for row in np.asarray(depth, float):
        out.append([v if v != v else 1 / max(v, 1e-6) for v in row])
    return out


def quotient(a, b):
    if a != a or b != b:
        return math.nan
    if b == 0:
        return math.inf if a > 0 else math.nan
    return a / b


def pairs(shape):
    """(direction, pixel that should be nearer, its neighbour)."""
    for y in range(shape[0]):
        for x in range(shape[1]):
            if x + 1 < shape[1]:
                yield LEFT, (y, x), (y, x + 1)
                yield RIGHT, (y, x + 1), (y, x)
            if y + 1 < shape[0]:
                yield TOP, (y, x), (y + 1, x)
                yield BOTTOM, (y + 1, x), (y, x)


def edges(depth, t):
    """{(direction, nearer, other)} beyond a ratio."""
    d = inverted(depth)
    return {
        (way, a, b)
        for way, a, b in pairs(np.shape(depth))
        if quotient(d[a[0]][a[1]], d[b[0]][b[1]]) > t
    }


def mean_share(found, side, strict):
    """The mean over directions of the share that is found, of those that have edges; or None."""
    shares = []
    for way in range(4):
        n = sum(e[0] == way for e in side)
        if n or strict:
            shares.append(sum(e[0] == way for e in side & found) / max(n, 1))
    return sum(shares) / len(shares) if shares else None


def at_ratio(pred, gt, t, invalid, strict):
    """F1, precision, recall; None where there is nothing to divide by, unless strict."""
    p, g = (
        {edge for edge in edges(m, t) if not (invalid[edge[1]] or invalid[edge[2]])}
        for m in (pred, gt)
    )
    precision, recall = mean_share(g, p, strict), mean_share(p, g, strict)
    if recall is None:
        return None, precision, recall
    found = precision or 0
    f = 2 * found * recall / (found + recall) if found + recall else 0
    return f, precision, recall


def over(values, weights):
    there = [(v, w) for v, w in zip(values, weights, strict=True) if v is not None]
    return sum(v * w for v, w in there) / sum(w for _, w in there) if there else math.nan


def si(pred, gt, ratios=(1.05, 1.25, 10), invalid=None, strict=True):
    """si_f1, si_precision, si_recall, weighted by the ratio, and _plain."""
    invalid = np.zeros(np.shape(gt), bool) if invalid is None else invalid
    at = np.linspace(*ratios)
    rows = [at_ratio(pred, gt, t, invalid, strict) for t in at]
    out = {}
    for k, name in enumerate(("si_f1", "si_precision", "si_recall")):
        column = [row[k] for row in rows]
        out[name], out[f"{name}_plain"] = over(column, at), over(column, np.ones(at.size))
    return out


def matte_recall(pred, mask, ratios=(1.05, 1.25, 10), strict=True):
    """Recall of the outline of a mask by suppressed edges."""
    h, w = mask.shape
    d = inverted(pred)
    true = {(way, a, b) for way, a, b in pairs(mask.shape) if mask[a] and not mask[b]}
    at, rows = np.linspace(*ratios), []
    for t in at:
        kept = set()
        across = [[((y, x), (y, x + 1)) for x in range(w - 1)] for y in range(h)]
        down = [[((y, x), (y + 1, x)) for y in range(h - 1)] for x in range(w)]
        lines = [(way, line) for line in across for way in (LEFT, RIGHT)]
        lines += [(way, line) for line in down for way in (TOP, BOTTOM)]
        for way, line in lines:
            run = []
            for first, second in [*line, (None, None)]:
                near, far = (first, second) if way in (LEFT, TOP) else (second, first)
                value = quotient(d[near[0]][near[1]], d[far[0]][far[1]]) if near else 0
                if value > t:
                    run.append((value, (way, near, far)))
                elif run:
                    best = max(v for v, _ in run)
                    kept.add(next(edge for v, edge in run if v == best))
                    run = []
        rows.append(mean_share(kept, true, strict))
    return over(rows, at)


def stretched(depth):
    """Zeros and what is infinite are NaN; 0 .. 1."""
    d = np.array(depth, float)
    d[(d == 0) | ~np.isfinite(d)] = np.nan
    if np.isnan(d).all():
        return d
    d = d - np.nanmin(d)
    with np.errstate(invalid="ignore"):
        return d / np.nanmax(d)


def _canny_edges(depth, low=0.15, high=0.3):
    with warnings.catch_warnings(), np.errstate(invalid="ignore"):
        warnings.simplefilter("ignore")
        return canny(stretched(depth), math.sqrt(2), low, high, mode="constant")


def both_canny(depth):
    d = np.array(depth, float)
    d[d == 0] = np.nan
    return _canny_edges(d, 0.1, 0.2) | _canny_edges(1 / d, 0.1, 0.2)


def distance(drawn):
    """To the nearest edge, infinite where there is none."""
    if not drawn.any():
        return np.full(drawn.shape, np.inf)
    return ndimage.distance_transform_edt(~drawn)


def dbe(pred, gt, radius=10.0, mask=None):
    """Accuracy and completeness of two maps of edges, as iBims-1 has them; mask: its own."""
    if not gt.any():
        return math.nan, math.nan
    mask = np.ones(gt.shape, bool) if mask is None else mask
    to_gt, to_pred = distance(gt), distance(pred)
    near = pred & (to_gt < radius) & mask
    if not near.any():
        return radius, radius
    masked = np.where(mask, to_gt, 0)
    total = np.minimum(masked[pred], radius).sum() + np.minimum(to_pred[gt], radius).sum()
    return masked[near].mean(), total / (pred.sum() + gt.sum())


def dbe_sharp(pred, gt, radius=10.0):
    """The form of SharpDepth; 10 and 10 where nothing is predicted near the truth."""
    if not gt.any():
        return math.nan, math.nan
    to_gt, to_pred = distance(gt), distance(pred)
    near = pred & (to_gt < radius)
    return (to_gt[near].mean(), to_pred[gt].mean()) if near.any() else (radius, radius)


def log_steps(depth):
    """|log depth difference| to the larger of the right and lower neighbour, at most 1."""
    h, w = np.shape(depth)
    out = np.zeros((h, w))
    for y in range(h):
        for x in range(w):
            here = max(depth[y][x], 1e-6)
            at = [(y, x + 1)] * (x + 1 < w) + [(y + 1, x)] * (y + 1 < h)
            others = [depth[v][u] for v, u in at]
            steps = [abs(math.log(here) - math.log(max(o, 1e-6))) for o in others]
            out[y, x] = min(max(steps, default=0), 1)
    return out


def aligned(pred, gt, how):
    """By numpy's least squares."""
    turn = how.startswith("disparity")
    a, b = (1 / np.maximum(m, 1e-6) if turn else np.array(m, float) for m in (pred, gt))
    columns = [a.ravel()] + [np.ones(a.size)] * how.endswith("shift")
    fit = np.linalg.lstsq(np.stack(columns, axis=1), b.ravel(), rcond=None)[0]
    out = (np.stack(columns, axis=1) @ fit).reshape(a.shape)
    return 1 / np.maximum(out, 1e-6) if turn else out
