"""
Scores in a training loop, without files
========================================

Validation after every epoch, without files: predictions come one by one, scores at the end.
"""

# %%
# A "network" that looks at a coarser scale of the gradient in each epoch stands in for yours.

import matplotlib.pyplot as plt
import numpy as np
from scipy import ndimage as ndi

import bsdsbench as bb
from bsdsbench.loaders.formats.photos import read_photo
from bsdsbench.loaders.sample import sample_ground_truth, sample_images

ids = ("town1", "fruit1", "reef1")
photos = {i: read_photo(sample_images() / f"{i}.jpg").mean(axis=2) / 255 for i in ids}
truths = {i: bb.load_ground_truth(sample_ground_truth() / f"{i}.mat") for i in ids}
# Nine thresholds are enough to watch; the final number takes all 99.
proto = bb.Protocol.preset("bsds500").replace(thresholds=9, nms=True)


def loss(prob, drawn):
    """The binary cross entropy of every pixel, with the share of annotators as label."""
    label, prob = np.mean(drawn, axis=0), np.clip(prob, 1e-3, 1 - 1e-3)
    return -(label * np.log(prob) + (1 - label) * np.log(1 - prob)).mean()


def predict(photo, epoch):
    gradient = ndi.gaussian_gradient_magnitude(photo, 0.6 + 0.6 * epoch)
    return np.clip(gradient * (1 + epoch) * 4, 0, 1)


history = []
for epoch in range(4):
    evaluator, losses = bb.StreamingEvaluator(proto), []
    for image_id in ids:
        prob = predict(photos[image_id], epoch)
        evaluator.update(prob, truths[image_id], image_id=image_id)
        losses.append(loss(prob, truths[image_id].boundaries))
    history.append(evaluator.compute().boundary_score().ods.f)
    print(f"epoch {epoch}: ODS {history[-1]:.4f}, loss {np.mean(losses):.4f}")

# %%
# ODS rises once, and falls as the gradient is blurred too much: epoch 1 is the one to keep. The
# loss would choose epoch 0. It looks at each pixel at its own place and at its value, without
# tolerance, thinning or a choice of threshold, so a lower loss need not be a higher ODS: choose the
# checkpoint by the score that you report, on a validation set.
#
# `merge` joins the evaluators of several processes: counts are additive, so the result does not
# depend on which process saw which image. For PyTorch use ``bsdsbench.integrations.torchmetrics``.

fig, ax = plt.subplots(figsize=(5, 3), layout="constrained")
ax.plot(history, marker="o")
ax.set(title="ODS after each epoch", xlabel="epoch", ylabel="ODS", xticks=range(4))
plt.show()
