"""Values of PySODMetrics on small maps, for tests/metrics/pysodmetrics.json.

Usage: python scripts/pysodmetrics_values.py tests/metrics/pysodmetrics.json, in an environment with
pysodmetrics (its bounds on numpy and scikit-image exclude the versions the tests run with).
"""

import base64
import json
import sys
import warnings
from importlib.metadata import version

import numpy as np
from scipy import ndimage

HANDLERS = {"f": "FmeasureHandler", "iou": "IOUHandler", "dice": "DICEHandler", "ber": "BERHandler"}


def blob(rng, shape, sigma):
    """Smooth noise from 0 to 1."""
    field = ndimage.gaussian_filter(rng.standard_normal(shape), sigma)
    return (field - field.min()) / (field.max() - field.min())


def cases():
    """(name, map, mask), both (H, W) uint8: like a network's, and degenerate."""
    rng = np.random.default_rng(0)
    for k in range(6):
        shape = (int(rng.integers(18, 26)), int(rng.integers(20, 33)))
        truth = blob(rng, shape, 4)
        gray = (255 * np.clip((truth - 0.5) * 6 + 0.5, 0, 1)).astype(np.uint8)
        soft = np.clip(0.7 * truth + 0.3 * blob(rng, shape, 2) + rng.uniform(-0.1, 0.1), 0, 1)
        yield (
            f"network {k}",
            (255 * (soft * 0.6 + 0.1 if k % 3 == 0 else soft)).astype(np.uint8),
            gray,
        )
    shape = (17, 22)
    soft = (255 * blob(rng, shape, 3)).astype(np.uint8)
    some = np.where(blob(rng, shape, 4) > 0.5, 255, 0).astype(np.uint8)
    zero = np.zeros(shape, np.uint8)
    square, point = zero.copy(), zero.copy()
    square[4:10, 11:15], point[3, 4] = 129, 255
    yield "empty mask", soft, zero
    yield "mask of 128", soft, zero + 128
    yield "full mask", soft, zero + 255
    yield "empty map", zero, some
    yield "full map", zero + 255, some
    yield "flat map", zero + 90, some
    yield "both empty", zero, zero
    yield "both full", zero + 255, zero + 255
    yield "one pixel", soft, point
    yield "centroid half way", soft, square


def values(pred, gt, normalize):
    """Every measure of one map: numbers, and curves over the thresholds 255 .. 0."""
    import py_sod_metrics as peer

    modes = {"with_dynamic": True, "with_adaptive": True, "with_binary": True}
    counted = {name: getattr(peer, handler)(**modes) for name, handler in HANDLERS.items()}
    both = (
        peer.FmeasureV2(counted),
        peer.Smeasure(),
        peer.Emeasure(),
        peer.WeightedFmeasure(),
        peer.MAE(),
    )
    given = (pred, gt) if normalize else (pred / 255, gt > 128)
    for measure in both:
        measure.step(*given, normalize=normalize)
    f, s, e, w, m = (measure.get_results() for measure in both)
    out = {"s_measure": s["sm"], "weighted_f": w["wfm"], "mae": m["mae"]}
    out |= {"e_curve": e["em"]["curve"], "adaptive_e": e["em"]["adp"]}
    for name in HANDLERS:
        out[f"{name}_curve"], out[f"adaptive_{name}"] = f[name]["dynamic"], f[name]["adaptive"]
        out[f"{name}_at_half"] = f[name]["binary"]
    return {name: np.asarray(value, float).round(12).tolist() for name, value in out.items()}


def packed(array):
    """Bytes as text."""
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")


def main(path):
    """Write the file."""
    warnings.simplefilter("ignore")
    rows = []
    for name, pred, gt in cases():
        row = {"name": name, "shape": pred.shape, "map": packed(pred), "mask": packed(gt)}
        for form, normalize in (("stretched", True), ("as_is", False)):
            found = values(pred, gt, normalize)
            # of each curve of 256 numbers every eighth, the mean and the extremes
            for key in [k for k in found if k.endswith("_curve")]:
                curve = found.pop(key)
                found[key] = curve[::8]
                found[f"{key}_summary"] = [float(np.mean(curve)), max(curve), min(curve)]
            row[form] = found
        rows.append(row)
    made_by = f"pysodmetrics {version('pysodmetrics')}, numpy {np.__version__}"
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"made_by": made_by, "cases": rows}, file)
        file.write("\n")


if __name__ == "__main__":
    main(sys.argv[1])
