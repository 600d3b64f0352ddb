"""Make datasets/sample: pictures, simulated annotators and three detectors, all from seeds.

    python scripts/make_sample.py [OUT]

Nothing is downloaded and no picture of anyone is used. The same versions of numpy, scipy,
scikit-image and the image codecs give the same bytes; other versions may differ in the last bit.
"""

import heapq
import io
import shutil
import sys
from pathlib import Path

import imageio.v3 as iio
import numpy as np
from sample_canvas import Canvas, fractal, unit
from sample_scenes import SCENES
from scipy import ndimage as ndi
from scipy.io import savemat
from skimage import measure, segmentation

import bsdsbench as bb
from bsdsbench.detectors.baselines import BASELINES, canny, sobel

PORTRAIT = {"leaves", "meadow"}
ROUNDS = 2  # pictures of each scene
SEED = 500
SMALLEST = 60  # pixels; nobody outlines less


def image_ids():
    """lake1, stones1 ... meadow2."""
    return [f"{scene.__name__}{k + 1}" for k in range(ROUNDS) for scene in SCENES]


def paint(image_id):
    """The scene of one image, and the generator for what follows it."""
    names = [scene.__name__ for scene in SCENES]
    number, k = names.index(image_id[:-1]), int(image_id[-1]) - 1
    rng = np.random.default_rng([SEED, k, number])
    canvas = Canvas((481, 321) if image_id[:-1] in PORTRAIT else (321, 481), rng)
    SCENES[number](canvas)
    return canvas, rng


def photograph(canvas, rng):
    """(H, W, 3) uint8: dappled light, wear, slight blur, grain, as a plain camera would give."""
    h, w = canvas.shape
    y, x = canvas.y / h - rng.uniform(0.2, 0.8), canvas.x / w - rng.uniform(0.2, 0.8)
    light = 1.08 + 0.2 * (rng.normal() * y + rng.normal() * x) - 0.25 * (y**2 + x**2)
    dapple = np.tanh(3 * ndi.gaussian_filter(fractal(rng, (h, w), 3.0), 1.0))
    wear = ndi.gaussian_filter(fractal(rng, (h, w), 1.4), 1.2)
    rough = np.where(canvas.labels > 0, 1.0, 0.35)  # the farthest is the smoothest
    light *= 1 + rough * (rng.uniform(0.05, 0.11) * dapple + rng.uniform(0.06, 0.11) * wear)
    rgb = ndi.gaussian_filter(unit(canvas.rgb), (*(rng.uniform(0.6, 1.2),) * 2, 0))
    grain = ndi.gaussian_filter(rng.standard_normal(rgb.shape), (0.5, 0.5, 0))
    grain += 0.5 * rng.standard_normal((h, w, 1))
    rgb = 0.05 + 0.88 * rgb * light[..., None] + rng.uniform(0.02, 0.045) * grain
    return np.round(255 * unit(rgb)).astype(np.uint8)


# ---- annotators ---------------------------------------------------------------------------------


def annotate(canvas, rng, detail):
    """One annotator's segmentation, labels 1..n.

    `detail` in [0, 1]: objects of higher salience are left to what is behind them. Outlines are
    smoothed and drift by one or two pixels, each annotator's in another way.
    """
    kept = np.arange(len(canvas.parent))
    limit = detail + 0.12 * rng.standard_normal(len(kept))
    for label in kept[1:]:
        missed = canvas.salience[label] > limit[label] or rng.random() < 0.06
        kept[label] = kept[canvas.parent[label]] if missed else label
    drawn = draw_by_hand(kept[canvas.labels], rng)
    regions = measure.label(drawn + 1, connectivity=1)
    sizes = np.bincount(regions.ravel())
    nearest = ndi.distance_transform_edt(
        sizes[regions] < SMALLEST, return_distances=False, return_indices=True
    )
    _, inverse = np.unique(regions[tuple(nearest)], return_inverse=True)
    return (inverse.reshape(regions.shape) + 1).astype(np.uint16)


def draw_by_hand(labels, rng):
    """Labels with their outlines smoothed and displaced by a slow random field."""
    smooth, drift = rng.uniform(0.8, 1.8), rng.uniform(0.9, 1.6)
    field = [ndi.gaussian_filter(rng.standard_normal(labels.shape), 9) for _ in range(2)]
    y, x = np.indices(labels.shape)
    at = (y + drift * field[0] / field[0].std(), x + drift * field[1] / field[1].std())
    best, drawn = np.zeros(labels.shape), np.zeros(labels.shape, np.int64)
    for label in np.unique(labels):
        share = ndi.gaussian_filter((labels == label).astype(float), smooth)
        drawn = np.where(share > best, label, drawn)
        best = np.maximum(share, best)
    return ndi.map_coordinates(drawn, at, order=0, mode="nearest")


def annotators(canvas, rng):
    """Three to five segmentations, from coarse to fine, in random order."""
    details = np.linspace(0.14, rng.uniform(0.7, 1.0), int(rng.integers(3, 6)))
    return [annotate(canvas, rng, detail) for detail in rng.permutation(details)]


# ---- regions ------------------------------------------------------------------------------------


def watershed_ucm(strength):
    """(2H+1, 2W+1) ultrametric contour map: watershed basins of `strength`, merged weakest
    boundary first; a contour's value is the height at which its two sides merge."""
    basins = segmentation.watershed(ndi.gaussian_filter(strength, 2.0)) - 1
    height = merge_heights(basins, strength)
    h, w = basins.shape
    ucm = np.zeros((2 * h + 1, 2 * w + 1))
    ucm[1:-1:2, 2:-1:2] = height[basins[:, :-1], basins[:, 1:]]
    ucm[2:-1:2, 1:-1:2] = height[basins[:-1], basins[1:]]
    crossing = ndi.maximum_filter(ucm, footprint=[[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    ucm[2:-1:2, 2:-1:2] = crossing[2:-1:2, 2:-1:2]
    return np.round(ucm, 2)


def merge_heights(basins, strength):
    """(n, n) height at which two basins become one, by mean strength of the common boundary."""
    n = int(basins.max()) + 1
    total, count = np.zeros((n, n)), np.zeros((n, n))
    for here, there in ((np.s_[:, :-1], np.s_[:, 1:]), (np.s_[:-1], np.s_[1:])):
        a, b = basins[here].ravel(), basins[there].ravel()
        value = np.maximum(strength[here], strength[there]).ravel()
        for one, two in ((a, b), (b, a)):
            np.add.at(total, (one, two), value)
            np.add.at(count, (one, two), 1)
    np.fill_diagonal(count, 0)
    height, members = np.zeros((n, n)), {i: [i] for i in range(n)}
    queue = [(total[i, j] / count[i, j], i, j) for i, j in np.argwhere(np.triu(count)).tolist()]
    heapq.heapify(queue)
    level = 0.0
    while len(members) > 1:
        mean, i, j = heapq.heappop(queue)
        if i not in members or j not in members or mean != total[i, j] / count[i, j]:
            continue  # an entry from before a merge
        level = max(level, mean)
        height[np.ix_(members[i], members[j])] = height[np.ix_(members[j], members[i])] = level
        members[i] += members.pop(j)
        for sums in (total, count):
            sums[i] += sums[j]
            sums[:, i] = sums[i]
        count[i, i] = 0
        for k in np.flatnonzero(count[i]).tolist():
            if k in members:
                low, high = min(i, k), max(i, k)
                heapq.heappush(queue, (total[low, high] / count[low, high], low, high))
    return height


# ---- files --------------------------------------------------------------------------------------


def mat_bytes(**variables):
    """A MATLAB 5 file without the date that savemat writes into its header."""
    buffer = io.BytesIO()
    savemat(buffer, variables, do_compression=True)
    return b"MATLAB 5.0 MAT-file, bsdsbench sample".ljust(116) + buffer.getvalue()[116:]


def png_bytes(soft):
    """An 8-bit gray PNG of values in [0, 1]."""
    gray = np.round(255 * unit(soft)).astype(np.uint8)
    return iio.imwrite("<bytes>", gray, extension=".png", optimize=True)


def ground_truth_bytes(segmentations):
    """BSDS500's nesting: a 1 x n cell of structs with Segmentation and Boundaries."""
    cell = np.empty((1, len(segmentations)), object)
    for i, labels in enumerate(segmentations):
        cell[0, i] = {
            "Segmentation": labels,
            "Boundaries": bb.thin(bb.seg2bdry(labels)).astype(np.uint8),
        }
    return mat_bytes(groundTruth=cell)


def make_image(image_id):
    """Every file of one image: path below the sample's folder -> bytes."""
    canvas, rng = paint(image_id)
    jpeg = iio.imwrite("<bytes>", photograph(canvas, rng), extension=".jpg", quality=88)
    image = iio.imread(jpeg, extension=".jpg")  # detectors see what a user sees
    raw, thin = (BASELINES[f"structure-tensor{kind}"](image) for kind in ("-raw", ""))
    return {
        f"images/test/{image_id}.jpg": jpeg,
        f"groundTruth/test/{image_id}.mat": ground_truth_bytes(annotators(canvas, rng)),
        f"results/canny/{image_id}.png": png_bytes(canny(image)),
        f"results/sobel/{image_id}.png": png_bytes(sobel(image)),
        f"results/structure-tensor/{image_id}.png": png_bytes(thin),
        f"results/structure-tensor-raw/{image_id}.png": png_bytes(raw),
        f"results/watershed-ucm/{image_id}.mat": mat_bytes(ucm2=watershed_ucm(raw)),
    }


def main(out):
    """Write the whole sample to `out`, replacing what this script wrote before."""
    for name in ("images", "groundTruth", "results"):
        shutil.rmtree(out / name, ignore_errors=True)
    for image_id in image_ids():
        for name, data in make_image(image_id).items():
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            (out / name).write_bytes(data)
        print(image_id, flush=True)


if __name__ == "__main__":
    default = Path(__file__).resolve().parent.parent / "datasets" / "sample"
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else default)
