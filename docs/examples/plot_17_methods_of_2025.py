"""
Compare with methods of 2025
============================

The package has the counts of SAUGE (AAAI 2025), image by image, and published curves and rows up
to 2026. You can share your own counts in one small file. Nothing is downloaded here, and no maps
are needed.
"""

# %%
# One figure with stored counts (`ref:`) and published curves, all on the 200 test images of
# BSDS500. On the command line: `bsdsbench plot out/mine ref:sauge-l ref:cob --published
# pidinet,xyw-net-voc -o pr.pdf`. The curves of SAUGE go on to recall 1: its program has a row of
# threshold 0, where every pixel is on.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

import bsdsbench as bb
from bsdsbench.comparison.published import published_results
from bsdsbench.plotting import plot_runs
from bsdsbench.results.given_runs import as_runs
from bsdsbench.runs.merge import best_of

runs = ["ref:sauge-l", "ref:sauge-b", "ref:cob", "ref:se"]
names = ["SAUGE-L (2025)", "SAUGE-B (2025)", "COB (2017)", "SE (2013)"]
plot_runs(runs, names, published=["pidinet", "xyw-net-voc", "rcf"], look="column")
plt.show()

# %%
# Is the newer one better on these images, or by chance? Counts of every image answer that; a
# published number alone cannot.

compared = bb.compare(runs[:3], names[:3], n_boot=1000)
for score in ("ods", "ap"):
    found = compared.difference_of("SAUGE-L (2025)", "SAUGE-B (2025)", score)
    interval = f"[{found.low:.4f}, {found.high:.4f}]"
    print(f"{score}  L - B {found.value:.4f} {interval}  p {found.p_holm:.4f}")

# %%
# AP depends on its rule. SAUGE's authors print the AP with the row of threshold 0 (`edter`), which
# is 0.02 higher than the benchmark's for the same counts: compare AP computed by one rule only.
# When a reference is compared with your run, it is scored by the rule of your run.

sauge = bb.Evaluation.load("ref:sauge-l")
for rule in ("edter", "bsds"):
    score = bb.boundary_score(sauge.records, sauge.protocol.replace(ap_rule=rule))
    print(f"AP of SAUGE-L by the rule {rule:6} {score.ap:.4f}")

# %%
# Methods with a granularity print the best of several outputs, chosen by the ground truth for every
# image and threshold (`bsdsbench merge OUT... --best-of -o BEST`). That is another number than the
# ODS of one output, and published results have separate rows for it.

keys = [f"ref:sauge-b-{g}" for g in ("0", *(f"0.{k}" for k in range(1, 10)), "1")]
outputs = as_runs(keys)
ods = [run.boundary_score().ods.f for run in outputs]
best = best_of(outputs, "SAUGE-B")
print(f"one output each   {min(ods):.4f} .. {max(ods):.4f}")
print(f"best of eleven    {best.boundary_score().ods.f:.4f}  {best.name}")

# %%
# Published results of 2025 and 2026, with how sure the source is. Rows without an AP rule come from
# sources that print no AP.

for row in published_results().values():
    if (row.year or 0) >= 2025 and row.tasks[0] == "bsds500-test/boundary":
        rule = row.ap_rule or "-"
        print(f"{row.key:34} {row.boundary['ods']:.4f}  {rule:6} {row.confidence:6} {row.variant}")

# %%
# Write your own run into one file that others compare with, also by its web address:
# `bsdsbench share out/mine -o mine.bsds.npz --licence CC-BY-4.0`, then
# `bsdsbench compare out/theirs https://example.org/mine.bsds.npz`. A reference stands in for it
# here.

file = Path(tempfile.mkdtemp(), "mine.bsds.npz")
sauge.share(file, licence="MIT", citation="SAUGE, AAAI 2025")
again = bb.Evaluation.load(file)
print(f"{file.stat().st_size // 1000} kB, bit-identical: {again.equals(sauge)}")

# %%
# Crisp edges are judged at smaller tolerances as well (`evaluate --max-dist .0075,.00375`), and
# multi-scale rows average a detector's maps of several sizes (`run --scales .5,1,1.5`).
