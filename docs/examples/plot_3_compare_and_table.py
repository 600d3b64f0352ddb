"""
Compare two methods and write the table
=======================================

Test whether the difference is real, and write the paper's table with the protocol beneath it.
"""

# %%
# Two detectors on eight images of the sample.

import shutil
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

import bsdsbench as bb
from bsdsbench.loaders.sample import sample_ground_truth, sample_images

out = Path(tempfile.mkdtemp())
few = shutil.copytree(sample_images(), out / "images", ignore=shutil.ignore_patterns("*2.jpg"))
runs = [
    bb.run(name, few, gt=sample_ground_truth(), out=out / name, workers=1).evaluation
    for name in ("scharr", "sobel")
]

# %%
# A paired bootstrap resamples the images for both methods together, so an image that is hard for
# both does not blur the difference.

found = bb.compare(runs, n_boot=2000, seed=0)
pair = found.difference_of(runs[0].name, runs[1].name, "boundary.ods")
print(f"ODS difference {pair.value:+.4f}, 95% interval {pair.low:+.4f}..{pair.high:+.4f}")
print(f"p = {pair.p_holm:.4f}")
for note in found.notes:
    print(note)

# %%
# The interval excludes 0, and p is just above 0.05: with eight images the two may disagree, and p
# decides. The difference is not significant here; on all 16 images it is.
#
# Image by image, most points lie near the diagonal.

effects = found.images[0].effects
_, ax = plt.subplots()
ax.plot([effect.b for effect in effects], [effect.a for effect in effects], "o")
ax.axline((0.5, 0.5), slope=1, color="grey")
ax.set(xlabel=runs[1].name, ylabel=runs[0].name, title="F per image: nearly the same")
plt.show()

# %%
# This writes the table in Markdown. The file suffix selects the format: `.md`, `.tex`, `.csv`,
# `.txt` or `.json`; with `.html` it is the whole report, a page with pictures.
#
# .. code-block:: sh
#
#    bsdsbench report out/scharr out/sobel -o table.md

import subprocess  # noqa: E402
import sys  # noqa: E402

folders = [str(out / "scharr"), str(out / "sobel")]
command = [sys.executable, "-m", "bsdsbench", "report", *folders, "-o", str(out / "table.md")]
subprocess.run([*command, "--quiet"], check=True, capture_output=True)
print((out / "table.md").read_text("utf-8")[:1200])
