"""
Evaluate a detector
===================

From a function that finds edges to ODS, OIS and AP, the curve, and the pixels behind them.
"""

# %%
# A detector is any function from a picture, (H, W, 3) uint8, to a soft map (H, W). `bb.run` calls
# it on every picture, keeps its maps with 16 bits, times it and evaluates it: here on eight images.

import shutil
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import bsdsbench as bb
from bsdsbench.loaders.sample import sample_ground_truth, sample_images

out = Path(tempfile.mkdtemp())
few = shutil.copytree(sample_images(), out / "images", ignore=shutil.ignore_patterns("*2.jpg"))


def brightness_steps(image):
    """The gradient of the brightness, far too simple."""
    gy, gx = np.gradient(image.mean(axis=2) / 255)
    return np.clip(3 * np.hypot(gy, gx), 0, 1)


simple = bb.run(brightness_steps, few, gt=sample_ground_truth(), out=out / "simple", workers=1)
score = simple.evaluation.boundary_score()
print(f"ODS {score.ods.f:.3f} at threshold {score.ods.threshold:.2f}")
print(f"OIS {score.ois.f:.3f}   AP {score.ap:.3f}   R50 {score.r50:.3f}")
print(f"{len(simple.milliseconds)} images, {simple.failed or 'none failed'}")

# %%
# A baseline in one line: one of scikit-image's detectors, by name.

better = bb.run("structure-tensor", few, gt=sample_ground_truth(), out=out / "better", workers=1)

# %%
# This plot shows both curves. Each thin line joins points with the same F.

ax = None
for run, name in ((better, "structure tensor"), (simple, "brightness steps")):
    shown = bb.PRCurveDisplay.from_evaluation(run.evaluation, name=name).plot(ax)
    ax = shown.ax_
ax.set_title("The structure tensor is above\nat every recall it reaches")
plt.show()

# %%
# One image, looked at closely: which pixels found a partner?

pred = bb.load_prediction(better.maps / "town1.png")
truth = bb.load_ground_truth(sample_ground_truth() / "town1.mat")
counts = bb.boundary_counts(pred, truth)
k = int(np.abs(counts.thresholds - 0.2).argmin())
print(f"at threshold {counts.thresholds[k]:.2f}:")
print(f"{counts.matched_pred[k]} of {counts.total_pred[k]} predicted pixels are right,")
print(f"{counts.matched_gt[k]} of {counts.total_gt[k]} annotated pixels are found")
