"""
One detector under ten settings: how ODS moves
==============================================

One detector, one data set, ten settings that papers and programs use. The maps never change; the
ODS does. This is why two programs give one method different scores, and why every
table here has a signature.
"""

# %%
# The detector is the colour structure tensor, before suppression: its ridges are as wide as a
# network's. Three pictures of the sample keep this page short.

import shutil
import tempfile
import warnings
from pathlib import Path

import matplotlib.pyplot as plt

import bsdsbench as bb
from bsdsbench.loaders.sample import sample_ground_truth, sample_images

out = Path(tempfile.mkdtemp())
images, truth = out / "images", out / "truth"
images.mkdir()
truth.mkdir()
for name in ("town1", "lake1", "leaves1"):
    shutil.copy(sample_images() / f"{name}.jpg", images)
    shutil.copy(sample_ground_truth() / f"{name}.mat", truth)
maps = bb.run("structure-tensor-raw", images, out=out / "raw").maps

# %%
# Each row changes one thing. The first five differ in what is done to the map, the next three in
# the tolerance, the last two in how the best threshold is found. The warning about raw maps without
# NMS is switched off: two of the rows are meant to show them.

warnings.filterwarnings("ignore", message=".*broad edges")
bsds = bb.Protocol.preset("bsds500")
hed = bsds.replace(nms=True)
settings = {
    "raw maps, thinned": bsds,
    "raw maps, not thinned": bsds.replace(thin=False),
    "NMS of HED: radius 1, 1.01": hed,
    "NMS of TEED: 1.04, not smoothed": bsds.replace(nms=True, nms_params="teed"),
    "NMS of the crack programs: radius 2": bsds.replace(nms=True, nms_params="crack"),
    "NMS, tolerance of NYUDv2: 0.011": hed.replace(max_dist=0.011),
    "NMS, tolerance of SBD: 0.02": hed.replace(max_dist=0.02),
    "NMS, strict tolerance: 0.003": hed.replace(max_dist=0.003),
    "NMS, 5 thresholds": hed.replace(thresholds=5),
    "NMS, best threshold not interpolated": hed.replace(ods_rule="maximum"),
}
scores = {}
for words, protocol in settings.items():
    scores[words] = bb.evaluate(maps, truth, protocol, workers=1).boundary_score().ods.f
    print(f"{words:38} {scores[words]:.4f}")

# %%
# The line is the ODS of the benchmark's own settings for suppressed maps. A method can gain or lose
# more by a setting than most papers report as progress.

fig, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
words = list(scores)[::-1]
ax.plot([scores[w] for w in words], range(len(words)), "o", color="#0072B2")
ax.axvline(scores["NMS of HED: radius 1, 1.01"], color="#D55E00", linewidth=1)
ax.set_yticks(range(len(words)), words)
ax.set_xlabel("ODS of the same maps")
ax.grid(axis="x", alpha=0.3)
plt.show()

# %%
# `bsdsbench explain OUT --target ods=VALUE` goes the other way: it finds the settings under which
# your maps have the number that somebody else got.
