"""
From a raw network output to a score
====================================

Networks produce edges several pixels thick. This page shows what thinning and non-maximum
suppression (NMS) do to them, and how `doctor` detects missing NMS.
"""

# %%
# The raw map of the structure tensor stands in for a network's output, on three images.

import shutil
import tempfile
import warnings
from pathlib import Path

import imageio.v3 as iio
import matplotlib.pyplot as plt
from skimage import data

import bsdsbench as bb
from bsdsbench.loaders.sample import sample_ground_truth, sample_images

out = Path(tempfile.mkdtemp())
images, truth = out / "images", out / "truth"
images.mkdir()
truth.mkdir()
for name in ("town1", "lake1", "leaves1"):
    shutil.copy(sample_images() / f"{name}.jpg", images)
    shutil.copy(sample_ground_truth() / f"{name}.mat", truth)
raw = bb.run("structure-tensor-raw", images, out=out / "raw")

# %%
# Run `doctor` before you spend an hour evaluating.

for finding in bb.doctor(raw.maps, truth):
    print(f"{finding.level}: {finding.message}")

# %%
# Evaluate with and without NMS. Without it a warning describes the maps. The protocol
# records the choice, and `compare` of the two runs has a note that they differ in it.

proto = bb.Protocol.preset("bsds500")
for nms in (False, True):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = bb.evaluate(raw.maps, truth, proto.replace(nms=nms), workers=1)
    for warning in caught:
        print(f"warning: {warning.message}")
    print(f"ODS {run.boundary_score().ods.f:.4f}   {run.protocol.describe()}")

# %%
# This is the same corner of one image, raw and after NMS.

soft = bb.load_prediction(raw.maps / "town1.png").boundary_map() / 65535
after = bb.nms(soft)
part = (slice(60, 160), slice(120, 260))
fig, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
for ax, picture, title in zip(
    axes, (soft, after), ("Raw: ridges several pixels wide", "After NMS: the crests"), strict=True
):
    ax.imshow(picture[part], cmap="gray_r", vmin=0, vmax=1)
    ax.set(title=title, xticks=[], yticks=[])
plt.show()

# %%
# Two real photographs: scikit-image's ``coffee`` and ``chelsea``, both CC0. There is no annotation
# and so no score. Look at the fur: the raw map is a grey haze there, and NMS turns it into many
# separate lines. On fur and grass a detector loses its precision.

photographs = {"coffee": data.coffee(), "cat": data.chelsea()}
photos = out / "photographs"
photos.mkdir()
for name, pixels in photographs.items():
    iio.imwrite(photos / f"{name}.png", pixels)
maps = bb.run("structure-tensor-raw", photos, out=out / "real").maps

fig, axes = plt.subplots(2, 3, figsize=(8, 4.0), layout="constrained")
for row, (name, pixels) in zip(axes, photographs.items(), strict=True):
    soft = bb.load_prediction(maps / f"{name}.png").boundary_map() / 65535
    row[0].imshow(pixels)
    row[1].imshow(soft, cmap="gray_r", vmin=0, vmax=1)
    row[2].imshow(bb.nms(soft), cmap="gray_r", vmin=0, vmax=1)
for ax, title in zip(axes[0], ("Photograph", "Raw map", "After NMS"), strict=True):
    ax.set_title(title)
for ax in axes.flat:
    ax.set(xticks=[], yticks=[])
plt.show()
