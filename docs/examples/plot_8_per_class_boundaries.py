"""
Boundaries of two classes
=========================

Score each class's boundaries separately, as on SBD and Cityscapes, and average over classes.
"""

# %%
# Two classes on a small synthetic scene: a disc (1) and a bar (2) on background (0). The
# prediction has the disc right and the bar shifted by four pixels.

import tempfile
from pathlib import Path

import imageio.v3 as iio
import matplotlib.pyplot as plt
import numpy as np

import bsdsbench as bb

out = Path(tempfile.mkdtemp())
y, x = np.mgrid[:120, :180]


def scene(shift):
    labels = np.zeros((120, 180), np.uint8)
    labels[(y - 60) ** 2 + (x - 50) ** 2 < 30**2] = 1
    labels[20:100, 120 + shift : 140 + shift] = 2
    return labels


for folder, shift in (("gt", 0), ("pred", 4)):
    (out / folder).mkdir()
    iio.imwrite(out / folder / "scene.png", scene(shift))

# %%
# A custom protocol uses the boundaries drawn from the labels without thinning them.

proto = bb.Protocol(
    name="two shapes",
    max_dist=0.01,
    thin=False,
    options={"semantic": {"classes": ("disc", "bar"), "first": 1}},
)
run = bb.evaluate(out / "pred", out / "gt", proto, metrics="semantic", workers=1)
score = run.score("semantic")
found = score.to_mapping()
for name, each in found["per_class"].items():
    print(f"{name:5s} F {each['ods']['f']:.3f}")
print(f"mean  F {found['ods_mean']:.3f}")

# %%
# The tolerance is 2.2 pixels here: the disc is found, the long sides of the bar are missed.

fig, axes = plt.subplots(1, 2, figsize=(7, 2.6), layout="constrained")
for ax, folder, title in zip(
    axes, ("gt", "pred"), ("Ground truth", "Prediction: the bar is shifted"), strict=True
):
    ax.imshow(iio.imread(out / folder / "scene.png"), cmap="viridis")
    ax.set(title=title, xticks=[], yticks=[])
plt.show()
