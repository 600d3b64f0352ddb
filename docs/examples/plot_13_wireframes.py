"""
Two line detectors on one wireframe
===================================

Straight lines against annotated ones: by their ends (sAP) and by their pixels (F^H, AP^H).
"""

# %%
# A house of nine lines, in pixels. Two detectors find it: one is exact but finds every line in two
# halves, one finds whole lines whose ends are off by a few pixels.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import bsdsbench as bb

out = Path(tempfile.mkdtemp())
size = (256, 320)  # rows, columns
rng = np.random.default_rng(1)
house = np.array(
    [
        *([60, 120, 60, 230], [60, 230, 240, 230], [240, 230, 240, 120], [60, 120, 240, 120]),
        *([60, 120, 150, 50], [150, 50, 240, 120], [130, 230, 130, 170], [130, 170, 170, 170]),
        [170, 170, 170, 230],
    ],
    float,
)  # x y x y
middle = (house[:, :2] + house[:, 2:]) / 2
found = {
    "halves": np.r_[np.c_[house[:, :2], middle], np.c_[middle, house[:, 2:]]],
    "whole": house + rng.normal(0, 2.5, house.shape),
}
(out / "gt").mkdir()
np.savez(out / "gt" / "house.npz", lines=house + 1, size=size)  # counted from 1
for name, lines in found.items():
    (out / name).mkdir()
    score = 1 - np.geomspace(5e-5, 0.4, len(lines))  # sure of the first ones, as networks are
    np.savez(out / name / "house.npz", lines=lines[:, [1, 0, 3, 2]], score=score)

# %%
# The files are in pixels of the picture, not on a network's grid, which an option states. The
# pixels of the halves are all correct, but their ends are all wrong.

proto = bb.Protocol.preset("wireframe").replace(options={"wireframe": {"lines_in": "image"}})
for name in found:
    run = bb.evaluate(out / name, out / "gt", proto, metrics="wireframe", name=name, workers=1)
    print(run.summary())

# %%
# The annotated lines, and the lines of both detectors. Dots are ends of lines.

fig, axes = plt.subplots(1, 3, figsize=(8, 2.6), layout="constrained")
for ax, (name, lines) in zip(axes, {"annotated": house, **found}.items(), strict=True):
    for x1, y1, x2, y2 in lines:
        ax.plot([x1, x2], [y1, y2], "o-", ms=3, lw=1.2)
    ax.set(title=name, xlim=(0, size[1]), ylim=(size[0], 0), xticks=[], yticks=[], aspect="equal")
plt.show()
