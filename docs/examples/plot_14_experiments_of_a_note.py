"""
The experiments of a note on ROC and PR
=======================================

A note of 2013, "ROC and PR", ends with experiments in MATLAB (its section 6). They are made again
here, with what its figures get wrong.
"""

# %%
# The note's program is Schroedl's ``prec_rec``. Its thresholds are quantiles of the scores, and it
# takes shares of positives, or counts of instances, in place of labels. Here 1,000 rows of ten
# instances each; the more positives a row has, the higher its score.

import matplotlib.pyplot as plt
import numpy as np

from bsdsbench import curves

rng = np.random.default_rng(3)
positives = rng.integers(0, 11, 1000)
scores = positives + rng.normal(0, 3, 1000)
curve = curves.threshold_curve(positives, scores, instance_count=10, num_thresholds=20)
print(f"{curve.thresholds.size} thresholds, {curve.positives:.0f} positives of 10000")

# %%
# **A picture of 32 x 32 pixels** (6.2). Rows 16 to 32 are object. The default quantiles give no
# threshold to the highest grey level, 192, so that the point at recall 6/17 is missing in the
# note's figure. One point for each level has it.

truth, picture = np.zeros((32, 32), bool), np.zeros((32, 32))
truth[15:] = True
for first, last, level in ((0, 1, 64), (15, 20, 64), (20, 25, 128), (25, 31, 192)):
    picture[first:last] = level
quantiles, every = curves.threshold_curve(truth, picture), curves.pr(truth, picture)
print("thresholds of prec_rec:", quantiles.thresholds, "of every level:", every.thresholds[1:])

fig, ax = plt.subplots(figsize=(5, 3.4), layout="constrained")
ax.plot(every.recall[1:], every.precision[1:], "o-", markersize=8, label="every grey level")
ax.plot(quantiles.tpr, quantiles.precision, "s", label="quantiles")
ax.set(xlabel="recall", ylabel="precision", title="The highest grey level has no quantile")
ax.legend()
plt.show()

# %%
# **Two curves that cross** (6.3). Twenty samples, two scores, and ``>`` in place of ``>=``. The
# note joins points of the PR curve by straight lines and closes it at (1, 0). Straight lines are
# not the right interpolation: they cross at recall 0.48, the curves at 0.45, as in ROC space. And
# with everything predicted precision is P/(P + N), 0.5 here, never less.

target = np.repeat([1, 0], 10)
first = [1, 1, 2, 2, 0, 2, 3, 0, 0, 0, 2, 1, 1, 0, 0, 2, 1, 0, 0, 0]
second = [1, 3, 2, 2, 0, 1, 1, 2, 2, 0, 3, 1, 1, 2, 2, 0, 0, 0, 0, 0]
found = [curves.threshold_curve(target, score, strict=True) for score in (first, second)]
closed = [(np.r_[c.precision, 0.5], np.r_[c.tpr, 1]) for c in found]
in_roc = curves.crossings(*[(c.fpr, c.tpr) for c in found])
in_pr = curves.crossings(*closed, space="pr")
straight = curves.crossings(
    *[(np.r_[1, c.precision], np.r_[0, c.tpr]) for c in found],
    space="pr",
    within=(0.1, 0.6),
    lines="straight",
)
print(f"ROC: FPR {in_roc.fpr[0]:.3f}, recall {in_roc.tpr[0]:.3f}")
print(f"PR: recall {in_pr.recall[0]:.3f}, precision {in_pr.precision[0]:.4f}")
print(f"straight lines: recall {straight.recall[0]:.3f}, precision {straight.precision[0]:.4f}")

fig, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
for k, c in enumerate(found):
    axes[0].plot(np.r_[0, c.fpr, 1], np.r_[0, c.tpr, 1], ".-", label=f"score {k + 1}")
    fine = curves.interpolate_pr(np.r_[c.tpr, 1] * 500, np.r_[c.fpr, 1] * 500, 500)
    axes[1].plot(fine.recall, fine.precision, f"C{k}")
    axes[1].plot(np.r_[0, c.tpr, 1], np.r_[1, c.precision, 0], f"C{k}:", linewidth=1)
axes[0].plot(in_roc.fpr, in_roc.tpr, "ko")
axes[1].plot(in_pr.recall, in_pr.precision, "ko")
axes[0].set(title="ROC", xlabel="false positive rate", ylabel="recall")
axes[1].set(title="PR; dotted: as the note draws it", xlabel="recall", ylabel="precision")
axes[0].legend()
plt.show()

# %%
# **The share of positives** (6.4). Scores 0 to 99, ten times over; the first t of 1,000 samples
# are positive. The note says that the ROC curve changes little. In fact it changes: with t the
# scores of the positives change too. All areas are below 0.5, which is chance: an area goes from
# 0 to 1, not from 0.5.

ramp = np.tile(np.arange(100), 10)
print("   t  AUC-ROC      AP  share of positives")
for t in range(50, 1000, 100):
    labels = np.arange(1000) < t
    pr, roc = curves.pr(labels, ramp), curves.roc(labels, ramp)
    print(f"{t:4} {roc.auc:8.3f} {pr.ap:7.3f} {pr.chance:8.2f}")
