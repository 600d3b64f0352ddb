"""For every metric: small made images of its kind, plain counts and scores, a writer of files."""

from functools import cache, partial
from pathlib import Path

import imageio.v3 as iio
import numpy as np
from scipy.io import savemat
from sklearn.metrics import auc

import bsdsbench as bb
from bsdsbench.images import Lines
from bsdsbench.loaders.formats.line_files import (
    GRID,
    _draw_annotated_lines,
    draw_lines,
    parse_annotated_lines,
)
from bsdsbench.metrics import registry
from bsdsbench.testing import MetricCase
from tests.helpers.making import edge_map, noisy_map
from tests.helpers.masks import blobs
from tests.helpers.runs import write_maps
from tests.reference import depth as slow_depth
from tests.reference import lines as slow_lines
from tests.reference import matching, occlusion, scores, semantic, superpixels, thinning
from tests.reference import regions as slow_regions

FOUR = ("matched_gt", "total_gt", "matched_pred", "total_pred")
FEW = bb.Protocol(thresholds=(0.0, 0.1, 0.3, 0.5, 0.7), max_dist_px=1.5)
# Made label maps are noise, of which a label lies in many pieces.
LABELS_ARE_ONE = bb.Protocol.preset("bsds500").replace(options={"superpixel": {"components": 0}})
SHAPES = ((24, 33), (30, 26), (21, 40))
IDS = ("a", "b", "c")


def made(of_image):
    """Three unequal images: (prediction, ground truth) by a function of id, generator, shape."""
    rng = np.random.default_rng(8)
    return [of_image(k, rng, shape) for k, shape in zip(IDS, SHAPES, strict=True)]


def soft_and_edges(image_id, rng, shape):
    edges = edge_map(rng, shape)
    drawn = tuple(np.roll(edges, a, axis=a % 2) for a in range(2))
    return bb.Prediction(image_id, soft=noisy_map(rng, edges)), bb.GroundTruth(image_id, drawn)


def soft_and_mask(image_id, rng, shape):
    mask = blobs(rng, shape, 2, 4) > 0
    wrong = rng.random(shape) < 0.05  # on the other side of every threshold near .5
    soft = np.clip(150 * (mask ^ wrong) + 105 * rng.random(shape), 0, 255).astype(np.uint8)
    return bb.Prediction(image_id, soft=soft), bb.GroundTruth(image_id, mask=mask)


def classes(image_id, rng, shape):
    labels = blobs(rng, shape, 3, 4).astype(np.uint8)
    moved = np.roll(labels, (1, 2), (0, 1))
    moved[:4, :5] = 0
    return bb.Prediction(image_id, classes=moved), bb.GroundTruth(image_id, labels=labels)


def regions(maps, image_id, rng, shape):
    """Two annotators; a prediction of `maps` label maps, one finer than the other; a photo."""
    drawn = [blobs(rng, shape, n, 3).astype(np.int32) + 1 for n in (4, 3)]
    segs = tuple(1 + drawn[0] + 5 * blobs(rng, shape, n + 1, 3) for n in range(maps))
    photo = rng.integers(0, 256, (*shape, 3), np.uint8)
    truth = bb.GroundTruth(image_id, tuple(map(bb.seg2bdry, drawn)), tuple(drawn), photo=photo)
    return bb.Prediction(image_id, segs=tuple(s.astype(np.int32) for s in segs)), truth


def oriented(image_id, rng, shape):
    pred, gt = soft_and_edges(image_id, rng, shape)
    turns = [rng.uniform(-np.pi, np.pi, shape) for _ in range(3)]
    return (
        bb.Prediction(image_id, soft=pred.soft / 255, angles=turns[0]),
        bb.GroundTruth(image_id, gt.boundaries, angles=tuple(turns[1:])),
    )


def lines_of(shape):
    """Lines (N, 4) in a grid of 128 and their scores; annotated lines as x y x y."""
    rng = np.random.default_rng(shape[0])
    lines, drawn = rng.uniform(5, 120, (6, 4)), np.array([0.97, 0.9, 0.7, 0.65, 0.5, 0.3])
    rows, cols = shape
    return lines, drawn, lines[:4, [1, 0, 3, 2]] / 128 * [cols, rows, cols, rows] + 0.4


def wires(image_id, rng, shape):
    lines, drawn, annotated = lines_of(shape)
    soft, ends = draw_lines(Lines(lines, drawn), shape, GRID), annotated[:, [1, 0, 3, 2]]
    mine = Lines(lines, drawn, np.column_stack([lines[:, :2], drawn]))
    points = np.column_stack([lines[:4, :2] + 0.3, np.zeros(4)])
    parsed = parse_annotated_lines({"lines": annotated, "size": np.array(shape)}, Path())
    true = Lines(parsed["lines"].ends, np.zeros(4), points, (128, 128))
    truth = bb.GroundTruth(image_id, (_draw_annotated_lines(ends, shape),), lines=true)
    return bb.Prediction(image_id, soft=soft, lines=mine), truth


def depths(image_id, rng, shape):
    """Steps, a noisy copy moved by a pixel, edges where the steps are."""
    depth = 1.0 + blobs(rng, shape, 3, 4)
    drawn = (np.abs(np.diff(depth, axis=1, append=depth[:, -1:])) > 0,)
    moved = np.roll(depth, 1, axis=1) * (1 + 0.05 * rng.random(shape))
    valid = rng.random(shape) < 0.9
    truth = bb.GroundTruth(image_id, drawn, depth=depth, valid=valid)
    return bb.Prediction(image_id, depth=moved), truth


def folders(*names):
    """A writer of maps in two folders: of a field of the prediction, and of the ground truth."""

    def write(images, root):
        return tuple(
            write_maps(root / side, {one.image_id: drawn(one, name) for one in ones})
            for side, name, ones in zip("pg", names, zip(*images, strict=True), strict=True)
        )

    def drawn(one, name):
        values = getattr(one, name)
        return np.stack(values) if name == "boundaries" else values

    return write


EDGES, MASKS, CLASSES = (
    folders(*names) for names in (("soft", "boundaries"), ("soft", "mask"), ("classes", "labels"))
)


def depth_folders(images, root):
    (root / "g").mkdir()
    for _, gt in images:
        maps = {"depth": gt.depth, "edges": gt.boundaries[0], "valid": gt.valid}
        np.savez(root / "g" / f"{gt.image_id}.npz", **maps)
    return write_maps(root / "p", {p.image_id: p.depth for p, _ in images}), root / "g"


def region_folders(images, root):
    pred, gt, photos = (root / name for name in ("p", "groundTruth/val", "images/val"))
    for folder in (pred, gt, photos):
        folder.mkdir(parents=True)
    for p, g in images:
        iio.imwrite(photos / f"{g.image_id}.png", g.photo)
        np.savez(pred / f"{p.image_id}.npz", segs=np.stack(p.segs))
        cells = np.empty((1, 2), object)
        pairs = zip(g.boundaries, g.segmentations, strict=True)
        cells[0, :] = [{"Boundaries": b, "Segmentation": s} for b, s in pairs]
        savemat(gt / f"{g.image_id}.mat", {"groundTruth": cells})
    return pred, gt


def oriented_folders(images, root):
    (root / "p").mkdir(), (root / "g").mkdir()
    for pred, gt in images:
        np.savez(root / "p" / f"{pred.image_id}.npz", edge=pred.soft, ori=pred.angles)
        cells = np.empty((1, 2), object)
        cells[0, :] = [np.dstack(pair) for pair in zip(gt.boundaries, gt.angles, strict=True)]
        savemat(root / "g" / f"{gt.image_id}.mat", {"gtStruct": {"gt_theta": cells}})
    return root / "p", root / "g"


def line_folders(images, root):
    (root / "p").mkdir(), (root / "g").mkdir()
    for pred, _ in images:
        lines, drawn, annotated = lines_of(pred.shape)
        maps = {"lines": lines.reshape(-1, 2, 2), "score": drawn}
        np.savez(root / "p" / f"{pred.image_id}.npz", **maps, juncs=lines[:, :2], juncs_score=drawn)
        truth = {"lines": annotated, "size": pred.shape, "junc": lines[:4, :2] + 0.3}
        savemat(root / "g" / f"{pred.image_id}.mat", truth)
    return root / "p", root / "g"


def four_columns(on, gt, protocol, radius):
    """FOUR of a map of boundaries (H, W), by scipy's matching with each annotator."""
    bmap = thinning.thin(on) if protocol.thin else on
    found = [matching.optimum(bmap, g, radius, k)[1] for k, g in enumerate(gt.boundaries)]
    hit = {at for pairs in found for at, _ in pairs}
    return sum(map(len, found)), sum(int(b.sum()) for b in gt.boundaries), len(hit), int(bmap.sum())


def matched(pred, gt, protocol):
    """Counts of pixels, thinned and matched with each annotator; row 0 is the whole image."""
    radius, found = protocol.radius(gt.shape), []
    soft = pred.soft / (255 if pred.soft.dtype == np.uint8 else 1)
    for t in protocol.thresholds:
        on = soft > t if protocol.operator == ">" else soft >= t
        rule = protocol if t else protocol.replace(thin=False)
        found.append(four_columns(on, gt, rule, radius))
    return dict(zip(FOUR, np.transpose(found), strict=True))


def matched_unthinned(pred, gt, protocol):
    """CEval: the raw map, neither thinned nor suppressed."""
    four = matched(pred, gt, protocol.replace(thin=False))
    return {"ceval": np.transpose([four[name] for name in FOUR])}


def matched_with_angles(pred, gt, protocol):
    truths = zip(gt.boundaries, gt.angles, strict=True)
    radius = protocol.radius(gt.shape)
    rows = occlusion.counts(
        pred.soft, pred.angles, list(truths), protocol.thresholds, radius, protocol.thin
    )
    return dict(zip((*FOUR, "right_gt", "right_pred"), rows.T[1:], strict=True))


def matched_classes(pred, gt, protocol):
    """Boundaries of each class up to a pixel wide on both sides, matched one to one."""
    each = []
    for k in range(3):
        drawn, truth = (
            semantic.disk_boundary(m == k, np.ones(m.shape, bool), 1)
            for m in (pred.classes, gt.labels)
        )
        share = protocol.max_dist_px / np.hypot(*truth.shape)
        rule = {"max_dist": share, "thin": False, "interior": "keep"}
        inside = gt.labels == k
        each.append(semantic.counts(255 * drawn, truth, inside, protocol.thresholds, **rule))
    return dict(zip(FOUR, np.moveaxis(each, 2, 0), strict=True))


def region_sums(pred, gt, protocol):
    return slow_regions.sums(pred.segs, gt.segmentations)


def superpixel_measures(pred, gt, protocol):
    each = [superpixels.measures(pred.segs[0], g) for g in gt.segmentations]
    return {name: [f([one[name] for one in each]) for f in (np.mean, min, max)] for name in each[0]}


def at_their_places(pred, gt, protocol):
    """tp, fp, fn, tn over annotators, and the sum of absolute errors."""
    cut = [pred.soft >= round(255 * t, 9) for t in protocol.thresholds]
    rows = [
        [sum(int(np.sum(x & y)) for g in gt.boundaries for x, y in [(on ^ a, g ^ b)]) for on in cut]
        for a, b in ((False, False), (False, True), (True, False), (True, True))
    ]
    error = sum(np.abs(pred.soft / 255 - g).sum() for g in gt.boundaries)
    return {**dict(zip(("tp", "fp", "fn", "tn"), rows, strict=True)), "abs_error_sum": error}


def of_curve(counts, protocol, four=FOUR, part=""):
    rows = [np.transpose([c[name] for name in four]) for c in counts]
    found = scores.curve_scores(counts[0].thresholds, rows, protocol)
    return {part + key: value for key, value in found.items()}


def of_pixels(counts, protocol):
    total = {n: sum(getattr(c, n) for c in counts) for n in ("tp", "fp", "fn", "tn")}
    tpr, fpr = (total[a] / (total[a] + total[b]) for a, b in (("tp", "fn"), ("fp", "tn")))
    area = auc([0, *fpr[::-1], 1], [0, *tpr[::-1], 1])
    error = sum(c.abs_error_sum for c in counts) / sum(v[0] for v in total.values())
    rows = [np.transpose([c.tp, c.tp + c.fn, c.tp, c.tp + c.fp]) for c in counts]
    found = scores.curve_scores(counts[0].thresholds, rows, protocol)
    tp, fp, hit, other = (total[n] for n in ("tp", "fp", "fn", "tn"))
    sums = [((tp + hit)[0], (fp + other)[0]), *zip(tp, fp, strict=True)]
    curve = [(p / sums[0][0], p / max(p + n, 1), True) for p, n in sums]
    ap = scores.step_sum(curve)  # of pixels the average precision
    return {**found, "ap": ap, "auc_roc": area, "mae": float(error)}


def of_cracks(counts, protocol):
    return {"aiu": np.mean([(c.tp / np.maximum(c.tp + c.fp + c.fn, 1)).mean() for c in counts])}


def of_crispness(counts, protocol):
    found = {"average": np.mean([c.kept / c.total for c in counts])}
    for part in ("seval", "ceval"):
        own = scores.curve_scores(counts[0].thresholds, [c[part] for c in counts], protocol)
        found |= {f"{part}.{key}": value for key, value in own.items()}
    return found


def of_orientations(counts, protocol):
    found = {}
    right = ("matched_gt", "total_gt", "right_pred")
    four = {"edge": FOUR, "orientation": (*right, FOUR[3]), "accuracy": (*right, FOUR[2])}
    for part, names in four.items():
        found |= of_curve(counts, protocol, names, part=f"{part}.")
    return found


def of_classes(counts, protocol):
    """The mean over classes of their own benchmarks."""
    n = len(protocol.options["semantic"]["classes"])
    t, each = counts[0].thresholds, []
    for k in range(n):
        rows = [np.transpose([c[name][k] for name in FOUR]) for c in counts]
        each.append(scores.curve_scores(t, rows, protocol))
    return {f"{key}_mean": np.mean([one[key] for one in each]) for key in ("ods", "ois", "ap")}


def of_wires(counts, protocol):
    tp, found = (sum(getattr(c, n) for c in counts) for n in ("matched_pred", "total_pred"))
    fh, aph = slow_lines.heat(tp, found - tp, sum(c.total_gt[0] for c in counts))
    images = [(*lines_of(shape)[:2], slow_truth(shape)) for shape in SHAPES]
    sap = {f"sap{k}": slow_lines.structural(images, k) for k in (5, 10, 15)}
    return {"fh": fh, "aph": aph, **sap, **of_curve(counts, protocol)}


def slow_truth(shape):
    """Pixels counted from 1 on the grid."""
    (rows, cols), annotated = shape, lines_of(shape)[2]
    return [
        [(y1 - 1) * 128 / rows, (x1 - 1) * 128 / cols, (y2 - 1) * 128 / rows, (x2 - 1) * 128 / cols]
        for x1, y1, x2, y2 in annotated
    ]


def of_depths(counts, protocol):
    """Means over images: of recall over ratios and directions that have edges; of distances."""
    recalls = []
    for c in counts:
        at = [[both / of for both, _, of in ways if of] for ways in c.si.tolist()]
        recalls.append(np.mean([np.mean(shares) for shares in at if shares]))
    dbe = [c.dbe_sum[0] / c.dbe_n[0] for c in counts]
    means = {"si_recall_plain": np.mean(recalls), "dbe_accuracy": np.mean(dbe)}
    return {**means, **of_curve(counts, protocol)}


def pairs_and_edges(pred, gt, protocol):
    """Pairs beyond a ratio by direction, of valid pixels; matched soft edges."""
    at = np.linspace(1.05, 1.25, 10)
    both = np.zeros((10, 4, 3), int)
    for k, t in enumerate(at):
        sides = [slow_depth.edges(m, t) for m in (pred.depth, gt.depth)]
        p, g = ({e for e in side if gt.valid[e[1]] and gt.valid[e[2]]} for side in sides)
        for column, side in enumerate((p & g, p, g)):
            for way, _, _ in side:
                both[k, way, column] += 1
    steps = np.where(gt.valid, pred.depth, np.nan)
    level = np.log(steps)
    soft = np.zeros(steps.shape)
    soft[:, :-1] = np.nan_to_num(np.abs(np.diff(level, axis=1)))
    soft[:-1] = np.maximum(soft[:-1], np.nan_to_num(np.abs(np.diff(level, axis=0))))
    drawn = bb.GroundTruth("a", (gt.boundaries[0] & gt.valid,))
    found = matched(bb.Prediction("a", soft=np.minimum(soft, 1)), drawn, protocol)
    return {"si": both, **found}


def of_superpixels(counts, protocol):
    found = {f"{n}.mean": np.mean([getattr(c, n)[0] for c in counts]) for n in ("ue", "asa")}
    alone = {n: np.mean([getattr(c, n) for c in counts]) for n in ("compactness", "variation")}
    return {**found, **alone}


def of_regions(counts, protocol):
    """The official sums and means, best at one threshold and at each image's own."""
    share = sum(c.covered_gt for c in counts) / sum(c.total_gt for c in counts)
    own = [c.covered_gt.argmax() for c in counts]
    picked = sum(c.covered_gt[k] for c, k in zip(counts, own, strict=True))
    return {
        "covering.ods": share.max(),
        "covering.ois": picked / sum(c.total_gt[0] for c in counts),
        "pri.ods": np.mean([c.pri for c in counts], axis=0).max(),
        "pri.ois": np.mean([c.pri.max() for c in counts]),
        "voi.ods": np.mean([c.voi for c in counts], axis=0).min(),
        "voi.ois": np.mean([c.voi.min() for c in counts]),
    }


PETS = {"classes": ("none", "cat", "dog")}


def masks(metric):
    return bb.Protocol.preset("masks").replace(options={metric: PETS})


CASES = {
    "boundary": (soft_and_edges, EDGES, FEW, of_curve, matched),
    "region": (partial(regions, 3), region_folders, None, of_regions, region_sums),
    "pixel": (soft_and_edges, EDGES, FEW, of_pixels, at_their_places),
    "superpixel": (
        *(partial(regions, 1), region_folders, LABELS_ARE_ONE),
        *(of_superpixels, superpixel_measures),
    ),
    "semantic": (
        *(classes, CLASSES),
        FEW.replace(thresholds=(0.3, 0.6), options={"semantic": {**PETS, "radius": 1}}, thin=False),
        *(of_classes, matched_classes),
    ),
    "saliency": (soft_and_mask, MASKS, None, None, None),
    "crispness": (
        *(soft_and_edges, EDGES, FEW.replace(nms=True)),
        *(of_crispness, matched_unthinned),
    ),
    "contour": (classes, CLASSES, masks("contour"), None, None),
    "segmentation": (classes, CLASSES, masks("segmentation"), None, None),
    "aiu": (soft_and_edges, EDGES, FEW, of_cracks, at_their_places),
    "wireframe": (wires, line_folders, None, of_wires, matched),
    "depth": (
        *(depths, depth_folders),
        FEW.replace(
            thresholds=(0.1, 0.3, 0.5), options={"depth": {"measures": ("si", "dbe", "edges")}}
        ),
        *(of_depths, pairs_and_edges),
    ),
    "occlusion": (
        *(oriented, oriented_folders, FEW.replace(thresholds=(0.2, 0.5))),
        *(of_orientations, matched_with_angles),
    ),
    "topology": (soft_and_mask, MASKS, None, None, None),
    "ccq": (soft_and_mask, MASKS, None, None, None),
    "instances": (classes, CLASSES, None, None, None),
    "calibration": (soft_and_edges, EDGES, None, None, None),
}


def right(gt):
    """The prediction that equals the truth of one annotator, in the form that the truth has."""
    has, name = gt.parts, gt.image_id
    drawn = has.keys() & {"boundaries", "segmentations", "angles"}
    one = gt.replace(**{part: has[part][:1] for part in drawn})
    if "depth" in has:
        return bb.Prediction(name, depth=gt.depth), gt
    if "labels" in has:
        return bb.Prediction(name, classes=gt.labels), gt
    if has.get("segmentations"):
        return bb.Prediction(name, segs=one.segmentations), one
    form = {"soft": (has["mask"] if "mask" in has else gt.boundaries[0]).astype(float)}
    if has.get("angles"):
        form["angles"] = gt.angles[0]
    if "lines" in has:
        true = gt.lines
        form["lines"] = Lines(true.ends, np.ones(len(true.ends)), true.junctions, true.grid)
    return bb.Prediction(name, **form), one


LEVEL_0 = ("mean_f_mean", "mean_iou_mean", "mean_dice_mean", "mean_ber_mean")  # all pixels are on
E = ("max_e_mean", "adaptive_e_mean", "mean_e_mean")  # N / (N - 1)
DBE = tuple(f"dbe_{k}{p}" for k in ("accuracy", "completeness") for p in ("", "_pooled"))
# The columns that are not 1 (of errors 0) where the prediction is right.
IMPERFECT = {
    "superpixel": ("compactness", "variation"),
    "saliency": (*LEVEL_0, *E),
    "crispness": ("average", "seval"),
    "depth": ("ods", "ois", "ap", *DBE),
}


@cache
def case_of(name):
    make, write, protocol, plain, counts = CASES[name]
    images = made(make)
    known = protocol, counts, plain, right, IMPERFECT.get(name, ()), partial(write, images)
    return MetricCase(registry.get(name), images, *known)
