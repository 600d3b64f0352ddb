"""
A gate from Python
==================

Fail a pull request if a score drops below a stored baseline by more than a tolerance.
"""

# %%
# The baseline is a small JSON file in the repository of the method. A score may drop by 0.002;
# ``--tolerance`` sets another limit.

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import imageio.v3 as iio
import matplotlib.pyplot as plt
import numpy as np

import bsdsbench as bb
from bsdsbench.loaders.sample import sample_ground_truth, sample_images

out = Path(tempfile.mkdtemp())
few = shutil.copytree(sample_images(), out / "images", ignore=shutil.ignore_patterns("*2.jpg"))
truth = sample_ground_truth()
good = bb.run("sobel", few, gt=truth, out=out / "good", workers=1)


def check(*arguments):
    command = [sys.executable, "-m", "bsdsbench", "check", *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True)
    print(ran.stdout.strip() or ran.stderr.strip())
    print("exit status", ran.returncode)


check(out / "good", "--baseline", out / "baseline.json", "--update")
check(out / "good", "--baseline", out / "baseline.json")

# %%
# A change that blurs the maps.

(out / "blurred").mkdir()
for path in good.maps.glob("*.png"):
    soft = iio.imread(path).astype(float)
    worse = (soft + np.roll(soft, 3, 0) + np.roll(soft, 3, 1)) / 3
    iio.imwrite(out / "blurred" / path.name, worse.astype(np.uint16))
bb.evaluate(out / "blurred", truth, missing="skip", out=out / "bad", workers=1)
check(out / "bad", "--baseline", out / "baseline.json")

# %%
# ODS, OIS and R50 fall, AP rises. The curve of the blurred maps is lower, but it begins at a recall
# of 0.001 and the baseline's at 0.09. AP counts the recalls before a curve begins as 0.

from bsdsbench.plotting import plot_runs  # noqa: E402

plot_runs([good.evaluation, out / "bad"], ["baseline", "blurred"])
plt.show()

# %%
# In a workflow file:
#
# .. code-block:: yaml
#
#    - run: bsdsbench evaluate results/mine --gt data/groundTruth/val -o out/mine
#    - run: bsdsbench check out/mine --baseline baseline.json --statistical --junit score.xml
#
# With ``--statistical`` only a drop that a paired bootstrap calls significant fails.
