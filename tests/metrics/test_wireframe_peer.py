"""sAP against the package line-seg-eval, where it is installed.

It takes a distance equal to the limit as near, where L-CNN's program does not: the made coordinates
have no such distance. Its F^H takes lines one by one as they are ranked and is no peer of ours.
"""

import numpy as np
import pytest

from tests.metrics.test_wireframe import metric_of

core = pytest.importorskip("line_seg_eval.core")


def test_structural_ap_is_that_of_line_seg_eval():
    for seed in range(300):
        rng = np.random.default_rng(seed)
        images, peer = [], core.LINEeval_endpoints([5, 10, 15])
        for _ in range(rng.integers(1, 6)):
            true = rng.uniform(0, 128, (rng.integers(1, 8), 4))
            near = true[rng.integers(0, len(true), rng.integers(1, 20))]
            # A network's grid ends there; points far outside it are refused
            found = (near + rng.normal(0, 1.5, near.shape)).clip(0, 128)
            found = found[:, [2, 3, 0, 1]] if seed % 2 else found
            scores = -np.sort(-rng.integers(0, 30, len(found)) / 30)
            images.append((found, scores, true))
            f4 = [np.array(a.reshape(-1, 2, 2), np.float32, order="C") for a in (found, true)]
            labels = [np.zeros(len(a), np.int32) for a in (found, true)]
            peer.update(f4[0], scores, labels[0], f4[1], labels[1])
        peer.accumulate()
        found, n = metric_of(images), peer.total_gt
        for limit in (5, 10, 15):
            ranked = peer.eval_data[str(limit)]
            theirs = peer._calc_ap(ranked["tp"], ranked["fp"], n) / 100
            assert found[f"sap{limit}"] == pytest.approx(theirs, abs=1e-7), (seed, limit)
