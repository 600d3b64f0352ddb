"""
Regions of a segmenter at eight scales
======================================

Covering, PRI and VOI of a segmenter at several scales.
"""

# %%
# Felzenszwalb and Huttenlocher's segmentation at eight scales, on two images. A detector may
# return a list of label maps, from coarse to fine.

import shutil
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from skimage.segmentation import mark_boundaries

import bsdsbench as bb
from bsdsbench.loaders.sample import sample_ground_truth, sample_images

out = Path(tempfile.mkdtemp())
(out / "images").mkdir()
for name in ("fruit1", "reef1"):
    shutil.copy(sample_images() / f"{name}.jpg", out / "images")

found = bb.run(
    "felzenszwalb",
    out / "images",
    gt=sample_ground_truth(),
    out=out / "fh",
    metrics=("boundary", "region"),
    workers=1,
)
score = found.evaluation.score("region")
print(f"covering: ODS {score.covering.ods:.3f}, OIS {score.covering.ois:.3f}")
print(f"PRI {score.pri.ods:.3f}   VOI {score.voi.ods:.3f} bits (lower is better)")

# %%
# Covering and VOI against the scale: here covering is best at scale 4, VOI at scale 3.

scales = np.arange(1, len(score.voi.curve) + 1)
fig, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
for ax, measure, title in zip(
    axes,
    (score.covering, score.voi),
    ("Covering, higher is better", "VOI in bits, lower is better"),
    strict=True,
):
    ax.plot(scales, measure.curve, marker="o")
    ax.set(title=title, xlabel="segmentation, coarse to fine")
plt.show()

# %%
# One image and its segmentation at two scales.

labels = bb.load_prediction(found.maps / "fruit1.mat").segs
photo = plt.imread(out / "images" / "fruit1.jpg")
fig, axes = plt.subplots(1, 3, figsize=(8, 2.4), layout="constrained")
axes[0].imshow(photo)
axes[0].set(title="The picture", xticks=[], yticks=[])
for ax, k, title in zip(axes[1:], (0, -1), ("Coarsest scale", "Finest scale"), strict=True):
    ax.imshow(mark_boundaries(photo, labels[k], color=(1, 0, 0.3), mode="inner"))
    ax.set(title=f"{title}: {labels[k].max()} regions", xticks=[], yticks=[])
plt.show()
