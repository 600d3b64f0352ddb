"""The page with sliders: one map matched at many thresholds and tolerances, for the browser."""

from __future__ import annotations

import base64
import json

import numpy as np
from imageio.v3 import imread, imwrite
from numpy.typing import NDArray

import bsdsbench as bb
from bsdsbench.loaders.sample import sample_ground_truth, sample_images, sample_results
from bsdsbench.plotting.style import PIXEL_COLORS

IMAGE, ANNOTATOR = "town1", 0
CROP = np.s_[60:220, 120:360]
THRESHOLDS = [k / 20 for k in range(1, 17)]  # above, no pixel is left
TOLERANCES = (1, 2, 3, 4.34, 6, 8)  # pixels; 4.34 is 0.0075 of the diagonal of 321 x 481
START = {"threshold": 9, "tolerance": 3}


def picture(pixels: NDArray[np.uint8]) -> str:
    """A PNG as the address of an image."""
    return "data:image/png;base64," + base64.b64encode(
        imwrite("<bytes>", pixels, extension=".png")
    ).decode("ascii")


def flags(values: NDArray[np.bool_]) -> str:
    """One character a pixel: 1 if it has a partner."""
    return "".join("01"[int(v)] for v in values)


def steps() -> dict[str, object]:
    """What the page shows: the pixels at each threshold, and which of them match.

    Returns
    -------
    dict
        rows, cols; gt: flat indices; steps: for each threshold the flat indices of the thinned
        map, and for each tolerance the flags of both.
    """
    image = imread(sample_images() / f"{IMAGE}.jpg")[CROP]
    soft = imread(sample_results("structure-tensor") / f"{IMAGE}.png")[CROP] / 255
    gt = bb.load_ground_truth(sample_ground_truth() / f"{IMAGE}.mat").boundaries[ANNOTATOR][CROP]
    made = []
    for threshold in THRESHOLDS:
        pred = bb.thin(soft >= threshold)
        matched = [bb.match_boundaries(pred, gt, max_dist_px=each) for each in TOLERANCES]
        made.append(
            {
                "threshold": threshold,
                "pred": np.flatnonzero(pred).tolist(),
                "p": [flags(m.pred_match[pred] >= 0) for m in matched],
                "g": [flags(m.gt_match[gt] >= 0) for m in matched],
            }
        )
    pale = 255 - (255 - image.astype(np.uint16)) // 3
    return {
        "rows": gt.shape[0],
        "cols": gt.shape[1],
        "gt": np.flatnonzero(gt).tolist(),
        "tolerances": TOLERANCES,
        "start": START,
        "colors": PIXEL_COLORS,
        "pictures": {
            "picture": picture(pale.astype(np.uint8)),
            "map": picture((255 - 120 * soft).astype(np.uint8)),
        },
        "steps": made,
    }


def html() -> str:
    """The part of the page that moves; `sliders.js` reads the data."""
    return f"""<div class="sliders">
<form>
<label>Threshold <input type="range" name="threshold" min="0" max="{len(THRESHOLDS) - 1}">
<output name="shown_threshold"></output></label>
<label>Tolerance in pixels <input type="range" name="tolerance" min="0" max="{len(TOLERANCES) - 1}">
<output name="shown_tolerance"></output></label>
<label>Behind the pixels <select name="behind">
<option value="picture">the picture</option><option value="map">the map</option>
<option value="none">nothing</option></select></label>
</form>
<canvas role="img" aria-label="The pixels of the map and of the annotation"></canvas>
<svg viewBox="0 0 220 220" role="img" aria-label="The precision-recall curve"></svg>
<p class="legend"></p>
<p class="counts" aria-live="polite"></p>
<script type="application/json">{json.dumps(steps(), separators=(",", ":"))}</script>
</div>
"""
