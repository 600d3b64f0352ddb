"""Every saliency measure against stored values of PySODMetrics 1.6.2."""

import base64
import json
from pathlib import Path

import numpy as np
import pytest

from bsdsbench.metrics import saliency as measures
from bsdsbench.metrics.saliency import SaliencyMetric, SaliencyOptions, saliency_counts
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import ImageRecord

STORED = json.loads((Path(__file__).parent / "pysodmetrics.json").read_text("utf-8"))


def saliency_score(images, rules):
    records = [ImageRecord(str(k), (1, 1), {"saliency": c}) for k, c in enumerate(images)]
    return SaliencyMetric().score(records, Protocol(options={"saliency": rules}))


def unpacked(case, key):
    return np.frombuffer(base64.b64decode(case[key]), np.uint8).reshape(case["shape"])


def ours(pred, gt, stretch):
    """The same names, from the counts of one image and from its score."""
    rules = SaliencyOptions(stretch=stretch)
    mask = gt > 128
    counts = saliency_counts(pred, mask, rules)
    score = saliency_score([counts], rules)
    positives, pixels = counts.positives, counts.pixels
    one = {name: np.atleast_1d(value)[None] for name, value in counts.items()}
    one |= {name: one[name][0] for name in ("half_tp", "half_fp", "positives", "pixels")}
    measured = measures._curves(one, 0.3)
    curves = {name: measured[name][0] for name in ("f", "iou", "dice", "ber")}
    half = curves["f"][-1]
    curves = {name: curve[:256] for name, curve in curves.items()}
    curves["e"] = measures.e_measure(counts.tp[:256], counts.fp[:256], positives, pixels)
    out = {name: getattr(score, f"{name}_mean") for name in ("s_measure", "weighted_f", "mae")}
    for name, curve in curves.items():
        down = curve[::-1]
        out[f"{name}_curve"] = down[::8]
        best = getattr(score, f"{'min' if name == 'ber' else 'max'}_{name}_mean")
        ends = (down.max(), best) if name == "ber" else (best, down.min())
        out[f"{name}_curve_summary"] = [getattr(score, f"mean_{name}_mean"), *ends]
        out[f"adaptive_{name}"] = getattr(score, f"adaptive_{name}_mean")
        if name in ("iou", "dice", "ber"):
            out[f"{name}_at_half"] = getattr(score, f"{name}_mean")
    out["f_at_half"] = half
    return out


def agree(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=0, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("case", STORED["cases"], ids=lambda c: c["name"])
@pytest.mark.parametrize("stretch", [True, False])
def test_stored_values(case, stretch):
    expected = case["stretched" if stretch else "as_is"]
    agree(ours(unpacked(case, "map"), unpacked(case, "mask"), stretch), expected)


def test_what_differs_from_the_peer_is_defined():
    """An empty quarter, for which it has NaN, has no weight; one pixel is divided by 1."""
    soft = np.random.default_rng(0).random((9, 12))
    corner = np.zeros((9, 12), bool)
    corner[-1, -1] = True
    assert np.isfinite(measures.s_measure(soft, corner))
    assert measures.s_measure(corner.astype(float), corner) == pytest.approx(1.0)
    assert measures.e_measure(1, 0, 1, 1) == 1.0


def test_float_maps_of_bytes_have_the_levels_of_the_bytes():
    levels = np.arange(256, dtype=np.uint8).reshape(8, 32)
    rules = SaliencyOptions(stretch=False)
    for value in (levels, levels / 255, (levels / 255).astype(np.float32)):
        found = np.floor(measures.strengths(value, rules) * 255)
        assert np.array_equal(found, levels)
