"""
One image from map to F
=======================

Thresholding, thinning, matching and tolerance, step by step on one image.
"""

# %%
# A soft map is cut at 99 thresholds. Each cut gives a map of boundary pixels, which is thinned to
# lines of one pixel, so that a thick line is not penalised for its width.

import matplotlib.pyplot as plt
import numpy as np

import bsdsbench as bb
from bsdsbench.detectors.baselines import baseline
from bsdsbench.loaders.formats.photos import read_photo
from bsdsbench.loaders.sample import sample_ground_truth, sample_images
from bsdsbench.plotting.style import PIXEL_COLORS

photo = read_photo(sample_images() / "fruit1.jpg")
soft = baseline("structure-tensor-raw")(photo)
part = (slice(90, 190), slice(150, 300))
fig, axes = plt.subplots(2, 2, figsize=(8, 5.6), layout="constrained")
on = soft >= 0.3
steps = {
    "The picture": photo[part],
    "Soft map": soft[part],
    "1. On at threshold 0.3": on[part],
    "2. Thinned": bb.thin(on)[part],
}
for ax, (title, picture) in zip(axes.flat, steps.items(), strict=True):
    ax.imshow(picture, cmap="gray_r")
    ax.set(title=title, xticks=[], yticks=[])
plt.show()

# %%
# The thin map is matched one to one with each annotator's map, within ``max_dist``: as many pairs
# as possible, and among those choices the least total distance.

truth = bb.load_ground_truth(sample_ground_truth() / "fruit1.mat").boundaries[0]
pred = bb.thin(on)
radius = bb.Protocol.preset("bsds500").radius(pred.shape)
match = bb.match_boundaries(pred, truth, radius)
print(f"tolerance {radius:.2f} pixels, {match.n_matched} pairs")

small = (slice(138, 176), slice(218, 288))
inside = np.zeros(pred.shape, bool)
inside[small] = True
fig, ax = plt.subplots(figsize=(6.6, 4.6), layout="constrained")
for flat in np.flatnonzero(pred & inside):
    row, col = divmod(int(flat), pred.shape[1])
    partner = int(match.pred_match.flat[flat])
    if partner >= 0:
        gt_row, gt_col = divmod(partner, pred.shape[1])
        ax.plot([col, gt_col], [row, gt_row], color="0.6", lw=1, zorder=1)
for found, marker, colour, name in (
    (pred & (match.pred_match >= 0), "s", PIXEL_COLORS["matched"], "predicted, matched"),
    (pred & (match.pred_match < 0), "s", PIXEL_COLORS["false"], "predicted, false"),
    (truth & (match.gt_match >= 0), "o", PIXEL_COLORS["matched"], "annotated, matched"),
    (truth & (match.gt_match < 0), "o", PIXEL_COLORS["missed"], "annotated, missed"),
):
    rows, cols = np.nonzero(found & inside)
    ax.scatter(cols, rows, marker=marker, s=26, color=colour, label=name, zorder=2)
ax.set_title("3. Matching: each line joins a predicted pixel and its partner")
ax.set(xticks=[], yticks=[])
ax.invert_yaxis()
ax.set_aspect("equal")
ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.02), ncols=2, frameon=False)
plt.show()

# %%
# Precision is the fraction of predicted pixels that are matched, recall the fraction of annotated
# pixels, from counts summed over all images. With a wider tolerance more pixels find a partner.

shares = []
radii = np.array([0.0, 1, 2, 3, 4.34, 6, 8, 12])
for r in radii:
    n = bb.match_boundaries(pred, truth, r).n_matched
    shares.append((n / pred.sum(), n / truth.sum()))
fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.plot(radii, shares, marker="o", label=["precision", "recall"])
ax.axvline(radius, color="0.6", ls="--")
ax.set(
    title="Tolerance: precision and recall of one image and one annotator",
    xlabel="largest distance of a pair, pixels (dashed: BSDS500)",
    ylabel="share of pixels",
)
ax.legend()
plt.show()
