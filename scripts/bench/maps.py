"""Maps of other sizes, densities and kinds than BSDS500's, for scripts/bench boundary.

Times are milliseconds of one core, kernels compiled. A larger image can mean three things, kept
apart here: the same content in more pixels (upsampled), more content (tiled), less of it (cropped).
"""

from typing import Any

import numpy as np
from measures import Case, Values, against, tiled, timed
from scipy.ndimage import gaussian_filter, zoom

import bsdsbench as bb
from bsdsbench.kernels.thinning import thin, thinning_events
from bsdsbench.metrics.boundary import boundary_counts
from bsdsbench.metrics.saliency import saliency_counts
from bsdsbench.metrics.semantic import semantic_counts
from bsdsbench.protocol.protocol import Protocol

SETS = {  # images, rows, columns, annotators
    "BIPED test": (50, 720, 1280, 1),
    "NYUDv2 test": (654, 425, 560, 1),
    "BSDS500 test": (200, 321, 481, 5),
}
SEMANTIC = "semantic, 19 soft classes, 2048x1024"


def unit(soft: np.ndarray) -> np.ndarray:
    """Scaled to 0 .. 1."""
    soft = np.asarray(soft, np.float64)
    return (soft - soft.min()) / max(np.ptp(soft), 1e-12)


def upsampled(image: Case, rows: int, cols: int) -> Case:
    """The same content on another grid: soft map interpolated, annotated lines one pixel wide."""
    size = rows / image.soft.shape[0], cols / image.soft.shape[1]
    soft = np.clip(zoom(unit(image.soft), size, order=1), 0, 1)
    gts = np.stack([thin(zoom(gt.astype(np.uint8), size, order=0) > 0) for gt in image.gts])
    return Case(image.name, soft, gts)


def cropped(image: Case, rows: int, cols: int) -> Case:
    """The middle of an image."""
    top, left = (image.soft.shape[0] - rows) // 2, (image.soft.shape[1] - cols) // 2
    window = np.s_[top : top + rows, left : left + cols]
    gts = np.ascontiguousarray(np.stack([gt[window] for gt in image.gts]))
    return Case(image.name, np.ascontiguousarray(image.soft[window]), gts)


def mirrored(image: Case, rows: int, cols: int) -> Case:
    """An image continued by its mirror images."""
    gts = np.stack([tiled(gt, (rows, cols)) for gt in image.gts])
    return Case(image.name, tiled(image.soft, (rows, cols)), gts)


def mean_ms(images: list[Case], protocol: Protocol, repeat: int) -> float:
    """Milliseconds of counting, the mean over images."""
    spent = [timed(boundary_counts, c.soft, c.gts, protocol, repeat=repeat)[0] for c in images]
    return float(np.mean(spent))


def sizes(images: list[Case], protocol: Protocol, repeat: int, largest: int) -> Values:
    """By image size, tolerance in parts of the diagonal and in the first image's pixels."""
    fixed = protocol.replace(max_dist_px=images[0].radius(protocol))
    rows_of: Values = {}
    for factor in (0.5, 1.0, 2.0, 4.0):
        rows, cols = (int(factor * n) for n in images[0].soft.shape)
        if rows * cols > largest:
            break
        fitting = [c for c in images if c.soft.shape == images[0].soft.shape]
        ways = {"cropped": cropped} if factor <= 1 else {"upsampled": upsampled, "tiled": mirrored}
        row = rows_of[f"{cols}x{rows}"] = {}
        for name, make in ways.items():
            made = [make(c, rows, cols) for c in fitting]
            row[name] = mean_ms(made, protocol, repeat)
            row[f"{name}, fixed radius"] = mean_ms(made, fixed, repeat)
    return rows_of


def densities(image: Case, protocol: Protocol, repeat: int) -> Values:
    """Thick, smooth and noisy maps: thinning alone, and the whole of counting."""
    rng, rows = np.random.default_rng(0), {}
    double, large = (upsampled(image, k * 321, k * 481) for k in (2, 4))
    raw = unit(gaussian_filter(large.gts.mean(0), 4)).astype(np.float32)
    smooth = unit(gaussian_filter(rng.random((1080, 1920)), 16))
    frame = upsampled(image, 1080, 1920)
    cases = {
        "as it is": image,
        "blurred by 1 px": Case("", unit(gaussian_filter(unit(image.soft), 1)), image.gts),
        "blurred by 2 px": Case("", unit(gaussian_filter(unit(image.soft), 2)), image.gts),
        "white noise": Case("", rng.random(image.soft.shape), image.gts),
        "962x642 blurred by 4 px": Case("", unit(gaussian_filter(double.soft, 4)), double.gts),
        "1924x1284 raw (lines 10 px thick)": Case("", raw, large.gts),
        "1924x1284 the same after NMS": Case("", bb.nms(raw), large.gts),
        "1920x1080 smooth (16 px)": Case("", smooth, frame.gts),
        "1920x1080 all ones": Case("", np.ones((1080, 1920)), frame.gts),
    }
    for name, case in cases.items():
        level = case.level(protocol)
        thinning, whole = against(
            repeat,
            lambda level=level: thinning_events(level, len(protocol.thresholds)),
            lambda case=case: boundary_counts(case.soft, case.gts, protocol),
        )
        on = float((level > 0).mean())
        rows[name] = {"pixels_on": on, "thinning": thinning, "all": whole}
    return rows


def scene(classes: int, rows: int = 1024, cols: int = 2048) -> tuple[np.ndarray, np.ndarray]:
    """Labels (H, W) uint8 of large regions, soft boundaries (C, H, W) float32, 40 px thick."""
    rng = np.random.default_rng(0)
    fields = rng.standard_normal((classes, rows // 8, cols // 8))
    widths = rng.uniform(2, 14, classes)
    fields = np.stack([gaussian_filter(f, w) for f, w in zip(fields, widths, strict=True)])
    fields /= fields.std(axis=(1, 2), keepdims=True)
    labels = np.kron(fields.argmax(0), np.ones((8, 8), np.int64)).astype(np.uint8)
    soft = np.empty((classes, rows, cols), np.float32)
    for k in range(classes):
        inside = np.roll(labels == k, (2, 3), (0, 1)).astype(np.float32)
        edge = abs(np.diff(inside, axis=0, prepend=inside[:1]))
        edge += abs(np.diff(inside, axis=1, prepend=inside[:, :1]))
        noise = gaussian_filter(rng.random((rows, cols)), 2)
        soft[k] = unit(gaussian_filter(edge, 14)) * (0.7 + 0.3 * noise)
    return labels, soft


def other_metrics(image: Case, repeat: int) -> Values:
    """An image of a semantic and of a saliency benchmark, and edge NMS."""
    labels, soft = scene(19)
    whole = Protocol.preset("cityscapes")  # at full size, from labels 0 .. 18 alone
    changes = {"ids": (), "ignore": (255,), "instances": False, "scale": 1.0}
    whole = whole.replace(options={"semantic": changes})
    thick = unit(gaussian_filter(unit(image.soft), 2)).astype(np.float32)
    mask, salient = np.zeros((300, 400), bool), np.zeros((300, 400))
    mask[80:200, 120:300] = True
    salient[:] = unit(gaussian_filter(mask.astype(float), 8))
    jobs = {
        SEMANTIC: lambda: semantic_counts(soft, labels, whole),
        "saliency, 400x300": lambda: saliency_counts(salient, mask),
        "edge NMS, 481x321": lambda: bb.nms(thick),
    }
    return {name: {"ms": against(repeat, job)[0]} for name, job in jobs.items()}


def waits(images: list[Case], protocol: Protocol, repeat: int, semantic_ms: float) -> Values:
    """What counting the images of a data set takes, from upsampled images of that size.

    semantic_ms : what an image takes that is like those of Cityscapes
    """

    def wait(count: int, height: int, width: int, ms: float) -> dict[str, Any]:
        size, seconds = f"{width}x{height}", ms * count / 1000
        return {"images": count, "size": size, "ms per image": ms, "one core, s": seconds}

    rows = {}
    for name, (count, height, width, annotators) in SETS.items():
        made = [upsampled(c, height, width) for c in images]
        made = [Case(c.name, c.soft, c.gts[:annotators]) for c in made]
        rows[name] = wait(count, height, width, mean_ms(made, protocol, repeat))
    rows["Cityscapes val, 19 soft classes"] = wait(500, 1024, 2048, semantic_ms)
    return rows
