"""The picture of each metric's page, and the first picture of Home and README."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import ndimage

import bsdsbench as bb
from bsdsbench.detectors.baselines import baseline
from bsdsbench.loaders.labels import seg2bdry
from bsdsbench.metrics import contour
from bsdsbench.metrics.instances_metric import instance_counts
from bsdsbench.metrics.structures import betti_numbers
from bsdsbench.plotting import ReliabilityDisplay
from bsdsbench.report.overlays import paint_image, pixel_steps
from drawing.common import (
    FALSE,
    LINE,
    MATCHED,
    MISSED,
    OTHER,
    legend,
    photo,
    picture,
    plain,
    sample_run,
    soft_map,
    square,
    truth,
)

PART = (slice(60, 220), slice(120, 340))


def _matched(name: str) -> Any:
    """What each pixel of a picture is at the sample's ODS threshold."""
    run = sample_run()
    steps = pixel_steps(bb.Prediction(name, soft=soft_map(name)), truth(name), run)
    ods = run.boundary_score().ods.threshold
    return steps.at(int(np.abs(steps.thresholds - ods).argmin()))


def _overlay(ax: Axes, name: str, part: Any = (slice(None), slice(None))) -> None:
    pred = bb.Prediction(name, soft=soft_map(name))
    _, at_ods = paint_image(pred, truth(name), sample_run(), photo(name))
    ax.imshow(at_ods.pixels[part], interpolation="nearest")
    plain(ax)
    legend(ax)


def _image(ax: Axes, pixels: Any, title: str, **how: Any) -> None:
    ax.imshow(pixels, interpolation="nearest", **how)
    ax.set_title(title)
    plain(ax)


@picture(6.2, 2.9)
def first_picture(figure: Figure) -> None:
    left, right = figure.subplots(1, 2, width_ratios=(1.0, 1.35))
    score = sample_run().boundary_score()
    bb.PRCurveDisplay.from_evaluation(sample_run(), name="structure tensor").plot(left)
    left.get_legend().remove()  # the title says it
    left.set_title(f"Precision and recall\nof a detector: ODS {score.ods.f:.3f}")
    _overlay(right, "fruit1", PART)
    right.set_title(f"The pixels behind it,\nat threshold {score.ods.threshold:.2f}")


@picture(6.6, 2.4)
def boundary(figure: Figure) -> None:
    axes = figure.subplots(1, 3)
    soft = soft_map("fruit1")
    classes = _matched("fruit1")
    _image(axes[0], soft[PART], "soft map", cmap="gray_r")
    _image(axes[1], np.isin(classes, (1, 2))[PART], "cut and thinned", cmap="gray_r")
    _overlay(axes[2], "fruit1", PART)
    axes[2].set_title("matched with the annotators")


REGIONS = (
    np.array([[1, 1, 1, 2, 2, 2]] * 4),
    np.array([[1, 1, 3, 3, 2, 2]] * 4),
)


@picture(6.4, 2.2)
def region(figure: Figure) -> None:
    for ax, labels, title in zip(
        figure.subplots(1, 2),
        REGIONS,
        ("annotated: 2 regions", "predicted: 3 regions"),
        strict=True,
    ):
        _image(ax, labels, title, cmap="Pastel1", vmin=1, vmax=9)
        for value in np.unique(labels):
            rows, columns = np.nonzero(labels == value)
            size = f"{'ABC'[value - 1]}: {rows.size}"
            ax.text(columns.mean(), rows.mean(), size, ha="center", va="center")


@picture(4.4, 2.9)
def pixel(figure: Figure) -> None:
    ax = figure.subplots()
    gt, pred = np.zeros((2, 4, 6), bool)
    gt[1:3, 1:4] = pred[1:3, 2:5] = True
    for (row, column), _ in np.ndenumerate(gt):
        hit, wanted = pred[row, column], gt[row, column]
        colour = MATCHED if hit and wanted else FALSE if hit else MISSED if wanted else (1, 1, 1)
        ax.add_patch(square(column, row, colour))
    ax.set(xlim=(-0.6, 5.6), ylim=(3.6, -0.6))
    plain(ax)
    legend(ax)
    ax.set_title("A mask shifted by one pixel: 4 matched, 2 false, 2 missed")


@picture(5.6, 3.6)
def superpixel(figure: Figure) -> None:
    ax = figure.subplots()
    picture_ = photo("fruit1")
    labels = baseline("slic")(picture_)[-1]
    shown = 255 - (255 - picture_.astype(float)) * 0.55
    shown[seg2bdry(labels)] = (90, 90, 90)
    edges = truth("fruit1").boundaries[0].astype(bool)
    shown[ndimage.binary_dilation(edges)] = np.array(MATCHED) * 255
    ax.imshow(shown.astype(np.uint8)[PART])
    ax.set_title("SLIC superpixels (grey) and one annotator's boundaries (green)")
    plain(ax)


@picture(7.4, 2.6)
def semantic(figure: Figure) -> None:
    labels = np.zeros((30, 45), int)
    labels[18:] = 1
    labels[6:24, 10:20] = 2
    left, *others = figure.subplots(1, 3)
    _image(left, labels, "labels: sky, road, person", cmap="Pastel1", vmin=0, vmax=8)
    for ax, value, name in zip(others, (1, 2), ("road", "person"), strict=True):
        _image(ax, seg2bdry(labels == value), f"boundary of {name}", cmap="gray_r")


@picture(6.6, 2.3)
def saliency(figure: Figure) -> None:
    one, two, three = figure.subplots(1, 3)
    rows, columns = np.mgrid[:60, :90]
    mask = (rows - 30) ** 2 + (columns - 45) ** 2 < 18**2
    soft = np.clip(1.1 - np.hypot(rows - 28, columns - 48) / 30, 0, 1)
    _image(one, mask, "mask", cmap="gray")
    _image(two, soft, "saliency map", cmap="gray")
    levels = np.arange(256)
    cut = np.floor(soft * 255)[None] >= levels[:, None, None]
    hit = (cut & mask).sum(axis=(1, 2))
    p, r = hit / np.maximum(cut.sum(axis=(1, 2)), 1), hit / mask.sum()
    f = 1.3 * p * r / np.maximum(0.3 * p + r, 1e-12)
    three.plot(levels, f, color=LINE)
    three.plot(f.argmax(), f.max(), "o", color=OTHER)
    three.set(title=f"max F {f.max():.3f}", xlabel="level", ylabel="F, beta² = 0.3", ylim=(0, 1))


@picture(7.4, 2.8)
def crispness(figure: Figure) -> None:
    raw = soft_map("fruit1", "structure-tensor-raw").astype(np.float32)
    part = (slice(100, 180), slice(160, 280))
    thin = bb.nms(raw, radius=2, border=5, multiplier=1.01, smooth=False)
    share = float(thin.sum() / raw.sum())
    left, right = figure.subplots(1, 2)
    _image(left, raw[part], "raw map", cmap="gray_r")
    _image(right, thin[part], f"after NMS: {share:.2f} of the sum is left", cmap="gray_r")


@picture(6.6, 3.0)
def contour_of_masks(figure: Figure) -> None:
    rows, columns = np.mgrid[:60, :80]
    gt = (rows - 30) ** 2 + (columns - 36) ** 2 < 20**2
    pred = (rows - 30) ** 2 + (columns - 44) ** 2 < 20**2
    left, right = figure.subplots(1, 2)
    for mask, colour, name in ((gt, LINE, "annotated"), (pred, OTHER, "predicted")):
        left.contour(mask, [0.5], colors=[colour])
        left.plot([], [], color=colour, label=name)
    far = contour.measure("hd", pred, gt)
    left.set_title(f"outlines, {far:.0f} pixels apart at most")
    left.set_aspect("equal")
    shells = [mask & ~ndimage.binary_erosion(mask, iterations=5) for mask in (gt, pred)]
    shown = np.ones((*gt.shape, 3))
    for shell, colour in ((shells[0], LINE), (shells[1], OTHER)):
        shown[shell] = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    shown[shells[0] & shells[1]] = MATCHED
    iou = (shells[0] & shells[1]).sum() / (shells[0] | shells[1]).sum()
    _image(right, shown, f"bands of 5 pixels: Boundary IoU {iou:.2f}")
    plain(left)
    left.legend(loc="upper center", bbox_to_anchor=(0.5, 0.05), ncols=2)
    legend(right)


@picture(7.0, 2.5)
def segmentation(figure: Figure) -> None:
    gt = np.zeros((20, 30), int)
    gt[:, 12:] = 1
    gt[12:, 20:] = 2
    pred = np.zeros((20, 30), int)
    pred[:, 15:] = 1
    pred[10:, 20:] = 2
    one, two, three = figure.subplots(1, 3)
    _image(one, gt, "annotated", cmap="Pastel1", vmin=0, vmax=8)
    _image(two, pred, "predicted", cmap="Pastel1", vmin=0, vmax=8)
    iou = [((gt == k) & (pred == k)).sum() / ((gt == k) | (pred == k)).sum() for k in range(3)]
    bars = three.bar(["class 0", "class 1", "class 2"], iou, color=LINE)
    three.bar_label(bars, fmt="%.2f", label_type="center", color="white")
    three.axhline(np.mean(iou), color=OTHER, ls="--")
    three.set(title=f"IoU, mean {np.mean(iou):.2f}", ylim=(0, 1))


@picture(7.2, 2.6)
def aiu(figure: Figure) -> None:
    rows, columns = np.mgrid[:40, :60]
    line = 20 + 6 * np.sin(columns / 9)
    gt = np.abs(rows - line) < 1.5
    soft = np.exp(-((rows - line) ** 2) / 8)
    one, two, three = figure.subplots(1, 3)
    _image(one, gt, "annotated crack", cmap="gray_r")
    _image(two, soft, "soft map", cmap="gray_r")
    t = np.arange(1, 100) / 100
    iou = [((soft >= x) & gt).sum() / ((soft >= x) | gt).sum() for x in t]
    three.plot(t, iou, color=LINE)
    three.axhline(np.mean(iou), color=OTHER, ls="--")
    three.set(title=f"IoU, mean {np.mean(iou):.2f}", xlabel="threshold", ylim=(0, 1))


@picture(6.0, 2.4)
def topology(figure: Figure) -> None:
    rows, columns = np.mgrid[:40, :60]
    ring = np.abs(np.hypot(rows - 20, columns - 40) - 11) < 2.5
    gt = ring | ((np.abs(rows - 20) < 2.5) & (columns < 30))
    pred = gt & ~((np.abs(columns - 15) < 3) | ((np.abs(rows - 20) < 4) & (columns > 45)))
    for ax, mask, what in zip(
        figure.subplots(1, 2), (gt, pred), ("annotated", "predicted"), strict=True
    ):
        b0, b1, _ = betti_numbers(mask)[0]
        _image(ax, mask, f"{what}: b0 {b0}, b1 {b1}", cmap="gray_r")


@picture(5.2, 2.8)
def ccq(figure: Figure) -> None:
    ax, x = figure.subplots(), np.linspace(0, 60, 200)
    gt, pred = 10 + 4 * np.sin(x / 9), 11 + 4 * np.sin(x / 9) + np.maximum(x - 40, 0) ** 1.5 / 12
    ax.plot(x, gt, color="0.85", lw=26, solid_capstyle="butt")
    ax.plot(x, gt, color=MISSED, lw=2, label="annotated, with its buffer")
    for some, colour, name in ((x < 46, MATCHED, "correct"), (x >= 46, FALSE, "outside")):
        ax.plot(x[some], pred[some], color=colour, lw=2, label=name)
    ax.set_ylim(0, 22)
    ax.legend(loc="upper left")
    plain(ax)


@picture(6.0, 2.4)
def instances(figure: Figure) -> None:
    rows, columns = np.mgrid[:40, :60]
    disks = [np.hypot(rows - r, columns - c) < 8 for r, c in ((20, 12), (14, 36), (26, 48))]
    gt = np.sum([k * d for k, d in enumerate(disks, 1)], axis=0)
    pred = np.minimum(np.roll(gt, 1, 1), 2)
    score = instance_counts(pred, gt)
    one, two = figure.subplots(1, 2)
    aji = score.inside / score.joined
    titles = "annotated", f"two are one: AJI {aji[0]:.2f}, AJI+ {aji[1]:.2f}"
    for ax, labels, title in zip((one, two), (gt, pred), titles, strict=True):
        _image(ax, np.ma.masked_equal(labels, 0), title, cmap="Set2", vmin=1, vmax=8)


@picture(3.6, 3.4)
def calibration(figure: Figure) -> None:
    rng = np.random.default_rng(1)
    soft = rng.random((200, 200))
    gt = rng.random(soft.shape) < soft**1.6
    run = bb.evaluate_items([("a", soft, [gt])], "calibration", metrics="calibration", workers=1)
    ReliabilityDisplay.from_evaluation(run, name="made").plot(figure.subplots())


@picture(4.8, 3.2)
def wireframe(figure: Figure) -> None:
    ax = figure.subplots()
    annotated = [((5, 8), (70, 8)), ((70, 8), (70, 50)), ((5, 50), (70, 50))]
    predicted = [
        ((6, 9), (69, 7), MATCHED),
        ((71, 10), (70, 48), MATCHED),
        ((20, 20), (50, 40), FALSE),
    ]
    for a, b in annotated:
        ax.plot(*zip(a, b, strict=True), color="0.75", lw=6, solid_capstyle="round")
    ax.plot(*zip(*annotated[2], strict=True), color=MISSED, lw=6, alpha=0.5)
    for a, b, colour in predicted:
        ax.plot(*zip(a, b, strict=True), color=colour, lw=2)
    ax.set_aspect("equal")
    ax.invert_yaxis()
    ax.set_title("Annotated lines (wide) and predicted lines (narrow)")
    plain(ax)
    legend(ax)


@picture(5.2, 3.2)
def occlusion(figure: Figure) -> None:
    ax = figure.subplots()
    angle = np.linspace(0, 2 * np.pi, 13)[:-1]
    x, y = np.cos(angle), np.sin(angle)
    ax.fill(np.cos(np.linspace(0, 7, 99)), np.sin(np.linspace(0, 7, 99)), color="0.9")
    wrong = np.arange(12) % 4 == 3
    for turn, colour, name in ((1, MATCHED, "right side"), (-1, FALSE, "wrong side")):
        some = wrong if turn < 0 else ~wrong
        ax.quiver(
            x[some], y[some], -turn * y[some], turn * x[some], color=colour, label=name, scale=7
        )
    ax.set(xlim=(-1.5, 1.5), ylim=(-1.4, 1.4), title="The angle says which side is in front")
    ax.set_aspect("equal")
    plain(ax)
    ax.legend(loc="center")


@picture(6.6, 2.5)
def depth(figure: Figure) -> None:
    true = np.full((10, 12), 4.0)
    true[2:8, 3:9] = 2.0
    pred = np.full((10, 12), 4.0)
    pred[2:8, 3:8] = 2.0
    pred[4:6, 10] = 3.0
    one, two, three = figure.subplots(1, 3)
    for ax, shown, title in ((one, true, "true depth"), (two, pred, "predicted depth")):
        _image(ax, shown, title, cmap="Blues_r", vmin=0, vmax=5)
    _image(three, np.ones_like(true), "pairs beyond a ratio", cmap="gray", vmin=0, vmax=1)
    for axis in (0, 1):
        steps = [np.sign(np.diff(np.log(d), axis=axis)) for d in (pred, true)]
        for (row, column), sign in np.ndenumerate(steps[0]):
            wanted = steps[1][row, column]
            y, x = (row + 0.5, column) if axis == 0 else (row, column + 0.5)
            ends = ([x - 0.5, x + 0.5], [y, y]) if axis == 0 else ([x, x], [y - 0.5, y + 0.5])
            if sign or wanted:
                colour = MATCHED if sign == wanted else FALSE if sign else MISSED
                three.plot(*ends, color=colour, lw=3, solid_capstyle="butt")
    legend(three)
