"""
Two segmenters by the contours of their regions
===============================================

Boundary IoU, F, Hausdorff and surface distances of regions, with intervals and significance.
"""

# %%
# Two of scikit-image's segmenters run on eight images of the sample. Each region of the first
# annotator is an object, and so is each predicted region; objects are paired where their
# intersection over union is above one half. An unmatched object is compared with an empty mask.

import matplotlib.pyplot as plt
import numpy as np
from skimage.segmentation import felzenszwalb, slic

import bsdsbench as bb
from bsdsbench.loaders.formats.photos import read_photo
from bsdsbench.loaders.sample import sample_ground_truth, sample_images

instances = {"unit": "instance", "ignore": -1}
protocol = bb.Protocol.preset("masks").replace(
    name="regions",
    options={"contour": instances, "segmentation": instances},
)
segmenters = {
    "felzenszwalb": lambda image: felzenszwalb(image, scale=1600, sigma=0.8, min_size=400),
    "slic": lambda image: slic(image, n_segments=25, start_label=0),
}
runs = []
for name, segment in segmenters.items():
    stream = bb.StreamingEvaluator(protocol, metrics=("contour", "segmentation"), name=name)
    for path in sorted(sample_images().glob("*1.jpg")):
        truth = bb.load_ground_truth(sample_ground_truth() / f"{path.stem}.mat").segmentations[0]
        labels = np.asarray(segment(read_photo(path)))
        stream.update(
            bb.Prediction(path.stem, classes=labels.astype(np.int32) + 1),
            bb.GroundTruth(path.stem, labels=truth.astype(np.int32) + 1),
            image_id=path.stem,
        )
    runs.append(stream.compute())

# %%
# ``pairs`` counts the objects with a partner, and the objects of each map without one. An object
# without a partner has the overlap 0 and no distance. Distances are means over the pairs, so those
# of slic below, over 15 pairs, say nothing of the objects that it missed.

for run in runs:
    print(run.name, run.score("contour").pairs.to_mapping())

# %%
# A bootstrap over images gives each score an interval, and each difference one with a p-value.

found = bb.compare(runs, n_boot=2000, seed=0)
for key in (
    "contour.iou",
    "contour.biou@0_02",
    "contour.f@3",
    "contour.hd95-pooled",
    "contour.assd-directed",
    "contour.nsd-area@2",
    "segmentation.pq",
):
    a, b = (found.interval_of(run.name, key) for run in runs)
    d = found.difference_of(runs[0].name, runs[1].name, key)
    print(
        f"{key:22} {a.value:8.3f} [{a.low:.3f}, {a.high:.3f}]  {b.value:8.3f} "
        f"[{b.low:.3f}, {b.high:.3f}]  difference {d.value:+.3f}, p {d.p:.3f}"
    )

# %%
# The scores between 0 and 1 as a picture: a dot is a score, a line its interval.

shown = ("contour.iou", "contour.biou@0_02", "contour.f@3", "contour.nsd-area@2", "segmentation.pq")
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
for k, run in enumerate(runs):
    ends = [found.interval_of(run.name, key) for key in shown]
    rows = np.arange(len(shown)) + 0.2 * k
    ax.hlines(rows, [e.low for e in ends], [e.high for e in ends], color=f"C{k}")
    ax.plot([e.value for e in ends], rows, "o", color=f"C{k}", label=run.name)
ax.set(title="felzenszwalb is better by every score", xlim=(0, 1), xlabel="score")
ax.set_yticks(np.arange(len(shown)) + 0.1, shown)
ax.invert_yaxis()
ax.legend(loc="upper right")
plt.show()
