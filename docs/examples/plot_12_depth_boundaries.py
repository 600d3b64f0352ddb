"""
Depth boundaries of three models
================================

SI-F1, DBE and matched edges of depth maps, and which setting gives a published number.
"""

# %%
# A room: boxes at several depths in front of a wall. One model is sharp but a pixel off, one is
# smooth. The third is the smooth one with an unknown scale and shift, like a network of relative
# depth.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy import ndimage as ndi

import bsdsbench as bb

out = Path(tempfile.mkdtemp())
rng = np.random.default_rng(3)
y, x = np.mgrid[:96, :128]


def room():
    depth = 6.0 + x / 128
    for _ in range(5):
        top, left = rng.integers(5, 60), rng.integers(5, 90)
        high, wide = rng.integers(15, 35, 2)
        depth[top : top + high, left : left + wide] = rng.uniform(1.5, 5)
    return depth


models = {
    "sharp, a pixel off": lambda d: np.roll(d, 1, axis=1),
    "smooth": lambda d: ndi.gaussian_filter(d, 1.5),
    "smooth, relative": lambda d: 0.3 * ndi.gaussian_filter(d, 1.5) + 4,
}
for folder in ("gt", *models):
    (out / folder).mkdir()
for k in range(6):
    depth = room()
    steps = np.abs(np.diff(depth, axis=1, append=depth[:, -1:])) > 0.3
    steps |= np.abs(np.diff(depth, axis=0, append=depth[-1:])) > 0.3
    np.savez(out / "gt" / f"room{k}.npz", depth=depth, edges=steps)
    for name, model in models.items():
        np.save(out / name / f"room{k}.npy", model(depth))

# %%
# The option ``measures`` selects what the metric ``depth`` computes. SI-F1 demands a step between
# the same two pixels; DBE is the distance between edges in pixels.

proto = bb.Protocol.preset("depth").replace(options={"depth": {"measures": ("si", "dbe", "edges")}})
runs = {
    name: bb.evaluate(out / name, out / "gt", proto, metrics="depth", name=name, workers=1)
    for name in models
}
for run in runs.values():
    print(run.summary())

# %%
# The depth of one room, and below it the soft edges that are matched.

from bsdsbench.metrics.depth import log_steps  # noqa: E402

truth = np.load(out / "gt" / "room0.npz")
fig, axes = plt.subplots(2, 4, figsize=(8, 3.4), layout="constrained")
shown = {"Ground truth": truth["depth"]} | {n: np.load(out / n / "room0.npy") for n in models}
for (above, below), (name, depth) in zip(axes.T, shown.items(), strict=True):
    above.imshow(depth, cmap="magma")
    above.set(title=name, xticks=[], yticks=[])
    below.imshow(
        truth["edges"] if name == "Ground truth" else log_steps(depth), cmap="gray_r", vmax=0.5
    )
    below.set(xticks=[], yticks=[])
plt.show()

# %%
# Precision and recall of the matched edges, as the threshold on the step varies.

ax = None
for name, run in runs.items():
    ax = bb.PRCurveDisplay.from_evaluation(run, name=name).plot(ax).ax_
ax.legend(loc="upper right", fontsize=8)
plt.show()

# %%
# A paper prints another number for the relative model. Which setting gives it? ``explain`` tries
# the values of each option that programs use, on the images.

from bsdsbench.diagnosis.explain import explain  # noqa: E402

aligned = proto.replace(options={"depth": {"align": "scale-shift"}})
theirs = bb.evaluate(
    out / "smooth, relative", out / "gt", aligned, metrics="depth", workers=1
).score("depth")
target = {"depth.si_f1": round(theirs.si_f1, 4)}
told = explain(runs["smooth, relative"], target, seconds=3600)
print(told.sentence())
