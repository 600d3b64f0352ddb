"""Made runs for tests of statistics and pictures: counts without any images."""

from functools import cache

import numpy as np

from bsdsbench.protocol.protocol import Protocol
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.scores.counts import Counts, ImageRecord, MatchCounts

SIZE = (321, 481)


def boundary_of(thresholds, *columns):
    """Counts of the boundary metric: thresholds and the four columns of matches."""
    return MatchCounts(thresholds, np.column_stack(columns).astype(np.int64))


def simulated_record(image_id, thresholds, hard, total_gt, quality, pixel=False):
    """One image: recall falls and precision rises with the threshold; `hard` pulls both down."""
    t = thresholds
    recall = 1 / (1 + np.exp((t - 0.45 - 0.1 * quality + 0.05 * hard) * 7))
    precision = 1 / (1 + np.exp(-(t - 0.15 - 0.1 * hard + 0.1 * quality) * 6))
    matched_gt = np.round(total_gt * recall).astype(np.int64)
    total_pred = np.maximum(np.round(total_gt / 5 * recall / np.maximum(precision, 0.05)), 1)
    matched_pred = np.round(total_pred * precision)
    boundary = boundary_of(
        t, matched_gt, np.full_like(matched_gt, total_gt), matched_pred, total_pred
    )
    counts = {"boundary": boundary}
    if pixel:
        fn, fp = total_gt - matched_gt, total_pred - matched_pred
        tn = SIZE[0] * SIZE[1] * 5 - matched_gt - fn - fp
        rows = dict(tp=matched_gt, fp=fp.astype(int), fn=fn, tn=tn.astype(int))
        counts["pixel"] = Counts(thresholds=t, **rows, abs_error_sum=1000.5 + hard)
    return ImageRecord(image_id, SIZE, counts)


@cache
def simulated_run(
    name, n_images=30, quality=0.0, seed=0, noise=0.5, protocol=None, pixel=False, images_seed=1000
):
    """A run whose images are the same (difficulty, ground truth) for one images_seed.

    It is made once for all tests, with the scores that it has computed."""
    proto = protocol or Protocol.preset("bsds500")
    images = np.random.default_rng(images_seed)
    mine = np.random.default_rng(seed)
    records = []
    for i in range(n_images):
        hard, total = images.normal(0, 1.0), int(images.integers(5000, 15000))
        own = hard + noise * mine.normal()
        records.append(
            simulated_record(f"im{i:04d}", proto.threshold_array(), own, total, quality, pixel)
        )
    return Evaluation(proto, name, tuple(records))
