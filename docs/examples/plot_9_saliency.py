"""
Two saliency maps of one object
===============================

MAE, F, S, E and weighted F of saliency maps.
"""

# %%
# Two maps of one object: one sharp and slightly too large, one blurred.

import tempfile
from pathlib import Path

import imageio.v3 as iio
import matplotlib.pyplot as plt
import numpy as np
from scipy import ndimage as ndi

import bsdsbench as bb

out = Path(tempfile.mkdtemp())
y, x = np.mgrid[:120, :160]
truth = ((y - 60) / 35) ** 2 + ((x - 80) / 45) ** 2 < 1
maps = {
    "too large": ndi.binary_dilation(truth, iterations=5).astype(float),
    "blurred": ndi.gaussian_filter(truth.astype(float), 8),
}
(out / "gt").mkdir()
iio.imwrite(out / "gt" / "object.png", truth.astype(np.uint8) * 255)
for name, soft in maps.items():
    (out / name).mkdir()
    iio.imwrite(out / name / "object.png", np.rint(255 * soft).astype(np.uint8))

# %%
# Which one is better depends on the measure: the blurred map by F, E and S, the mask that is too
# large by MAE and weighted F. Each score is defined on the page of the metric, see
# :doc:`/metrics/saliency`; ``run.score("saliency")`` has the other averages too.

shown = {
    "mae_mean": "MAE (lower is better)",
    "max_f_mean": "max F",
    "weighted_f_mean": "weighted F",
    "max_e_mean": "max E",
    "s_measure_mean": "S",
}
scores = {
    name: bb.evaluate(out / name, out / "gt", "saliency", metrics="saliency", workers=1)
    .score("saliency")
    .to_mapping()
    for name in maps
}
print(f"{'':22}", *(f"{name:>10}" for name in maps))
for key, heading in shown.items():
    print(f"{heading:22}", *(f"{scores[name][key]:10.3f}" for name in maps))

# %%
# The annotated mask, and both maps.

fig, axes = plt.subplots(1, 3, figsize=(8, 2.3), layout="constrained")
pictures = {
    "Ground truth": truth,
    "A mask too large": maps["too large"],
    "Blurred": maps["blurred"],
}
for ax, (title, picture) in zip(axes, pictures.items(), strict=True):
    ax.imshow(picture, cmap="gray", vmin=0, vmax=1)
    ax.set(title=title, xticks=[], yticks=[])
plt.show()
