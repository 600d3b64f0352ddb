"""
ROC and PR: areas that disagree
===============================

Two classifiers, 20 positives and 2000 negatives: the one with the larger area under the ROC curve
has the smaller one under the precision-recall curve. The example comes from the paper by Davis and
Goadrich (ICML 2006).
"""

# %%
# The corners of both ROC curves.

import matplotlib.pyplot as plt
import numpy as np

from bsdsbench import curves

positives, negatives = 20, 2000
one = np.array([0, 0, 0.75, 1]), np.array([0, 0.5, 1, 1])
two = np.array([0, 0.25, 1]), np.array([0, 1, 1])
for name, (fpr, tpr) in (("I", one), ("II", two)):
    area = curves.davis_goadrich_area(tpr * positives, fpr * negatives, positives)
    print(f"curve {name}: AUC-ROC {curves.auc_roc(fpr, tpr):.4f}, AUC-PR {area:.4f}")

# %%
# Straight lines do not join points of a PR curve: between two points precision follows a hyperbola,
# below the line where it falls and above the line where it rises. The package interpolates counts.

fig, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
for name, (fpr, tpr) in (("I", one), ("II", two)):
    axes[0].plot(fpr, tpr, marker="o", label=f"curve {name}")
    fine = curves.interpolate_pr(tpr * positives * 100, fpr * negatives * 100, positives * 100)
    axes[1].plot(fine.recall, fine.precision, label=f"curve {name}")
axes[0].set(title="ROC: curve II has more area", xlabel="false positive rate", ylabel="recall")
axes[1].set(title="PR: curve I has more area", xlabel="recall", ylabel="precision")
axes[0].legend()
plt.show()

# %%
# Many different quantities are called "AP" or "AUC". The package names each one; here are the
# first eight.

rng = np.random.default_rng(7)
labels = np.r_[np.ones(20), -np.ones(100)]
scores = rng.normal(size=120) + labels
for row in curves.area_table(labels, scores)[:8]:
    print(f"{row.value:.4f}  {row.name}")

# %%
# A DET curve stretches the corner in which good systems differ.

from bsdsbench import DETCurveDisplay  # noqa: E402

shown = DETCurveDisplay.from_predictions(labels, scores, name="the scores above").plot()
shown.ax_.set_title("Misses against false alarms, normal axes")
plt.show()
