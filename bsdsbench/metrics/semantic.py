"""Per-class boundaries: each class is a boundary benchmark of its own, then the mean over classes.

Arrays: a label map is (H, W) integer; boundaries of all classes are (C, H, W), bool for ground
truth and soft (or bool) for a prediction, classes in the order of `protocol.semantic.classes`.

Options (protocol.semantic, see SemanticParams): `interior = "kill"` takes predictions out that lie
in a region of their class further from its boundary than the tolerance; `absent = "skip"` leaves an
image out of the classes it does not have. `protocol.thin` chooses the thin or the raw form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsdsbench.core.errors import DataError, PairingError, ProtocolError, ShapeError
from bsdsbench.core.precision_recall import BoundaryScore
from bsdsbench.core.protocol import Protocol, SemanticParams
from bsdsbench.core.records import BoundaryCounts, ImageRecord
from bsdsbench.runs.evaluation import Evaluation


@dataclass(frozen=True, slots=True, eq=False)
class SemanticScore:
    """Scores per class (only classes the ground truth has) and their means.

    absent : the classes without a single ground-truth boundary pixel; they are not in the means
    """

    per_class: dict[str, BoundaryScore]
    absent: tuple[str, ...]
    ods_mean: float
    ois_mean: float
    ap_mean: float

    def to_mapping(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "ods_mean": self.ods_mean,
            "ois_mean": self.ois_mean,
            "ap_mean": self.ap_mean,
            "absent": list(self.absent),
            "per_class": {name: score.to_mapping() for name, score in self.per_class.items()},
        }


def class_boundaries(labels: NDArray[Any], params: SemanticParams) -> NDArray[np.bool_]:
    """The boundary of every class of a label map.

    labels : (H, W) integer; params names the labels (first, first + 1, ..) and the one to ignore
    Returns bool (C, H, W). With radius 0 a pixel is boundary of a class where it and the pixel
    below, to the right or below-right are not both in the class or both out of it (the rule of
    seg2bdry); with radius r, where the other side of the class's outline is at most r pixels away.
    Ignored pixels are on no side and never boundary. Raises ShapeError unless 2-D, DataError for
    a label that is no class.
    """
    labels = np.asarray(labels)
    if labels.ndim != 2 or labels.dtype.kind not in "iu":
        raise ShapeError(
            f"label map: {labels.dtype} of shape {labels.shape}, expected integer (rows, columns)"
        )
    valid = labels != params.ignore
    draw = _outline if params.radius == 0 else _band
    wanted = range(params.first, params.first + len(params.classes))
    present = set(np.unique(labels[valid]).tolist())
    strange = sorted(present - set(wanted) - {0})
    if strange:
        raise DataError(
            f"label map: label {strange[0]}, expected {wanted[0]} .. {wanted[-1]}, 0 or "
            f"{params.ignore} (ignored)"
        )
    out = np.zeros((len(wanted), *labels.shape), bool)
    for k, label in enumerate(wanted):
        if label in present:
            out[k] = draw(labels == label, valid, params.radius)
    return out


def _outline(mask: NDArray[np.bool_], valid: NDArray[np.bool_], _: int) -> NDArray[np.bool_]:
    edge = np.zeros(mask.shape, bool)
    for dy, dx in ((1, 0), (0, 1), (1, 1)):
        here = np.s_[: mask.shape[0] - dy, : mask.shape[1] - dx]
        there = np.s_[dy:, dx:]
        edge[here] |= (mask[here] != mask[there]) & valid[here] & valid[there]
    return edge


def _band(mask: NDArray[np.bool_], valid: NDArray[np.bool_], radius: int) -> NDArray[np.bool_]:
    inside, outside = mask & valid, ~mask & valid
    near = np.zeros(mask.shape, bool)
    for side, other in ((inside, outside), (outside, inside)):
        near |= side & (_distance_to(other) <= radius)
    return near


def _distance_to(target: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Pixels to the nearest target pixel; infinite if there is none."""
    from scipy import ndimage

    if not target.any():
        return np.full(target.shape, np.inf)
    distance: NDArray[np.float64] = ndimage.distance_transform_edt(~target)
    return distance


def kill_interior(
    pred: NDArray[Any],
    mask: NDArray[np.bool_],
    boundary: NDArray[np.bool_],
    max_dist_px: float,
) -> NDArray[Any]:
    """One class's map, zero where it lies in its region further from its boundary than allowed."""
    return np.where(mask & (_distance_to(boundary) > max_dist_px), pred.dtype.type(0), pred)


def semantic_counts(
    pred: NDArray[Any],
    gt: NDArray[Any],
    protocol: Protocol,
    *,
    labels: NDArray[Any] | None = None,
) -> dict[str, BoundaryCounts]:
    """One image's boundary counts of every class.

    pred : (H, W) labels, or (C, H, W) soft maps or bool
    gt : (H, W) labels, or (C, H, W) bool boundaries; then `labels` gives the regions, which only
         `interior = "kill"` needs
    Returns class name -> counts, without the classes that `absent = "skip"` leaves out. Raises
    ShapeError if sizes do not fit, ProtocolError if the protocol has no classes.
    """
    from bsdsbench.metrics.boundary import boundary_counts

    params = _params(protocol)
    if gt.ndim == 2:
        labels = gt
    maps, truth = _as_classes(pred, params), _as_classes(gt, params).astype(bool)
    if maps.shape != truth.shape:
        raise ShapeError(f"prediction {maps.shape[1:]}, expected the size {truth.shape[1:]}")
    kill = params.interior == "kill"
    if kill and labels is None:
        raise DataError("ground truth: only boundaries, expected labels for interior = 'kill'")
    counts = {}
    for k, name in enumerate(params.classes):
        if params.absent == "skip" and not truth[k].any():
            continue
        soft = maps[k]
        if kill and labels is not None:
            radius = protocol.radius(truth[k].shape)
            soft = kill_interior(soft, labels == params.first + k, truth[k], radius)
        counts[name] = boundary_counts(soft, (truth[k],), protocol)
    return counts


def _as_classes(array: NDArray[Any], params: SemanticParams) -> NDArray[Any]:
    if array.ndim == 2:
        return class_boundaries(array, params)
    if array.ndim != 3 or array.shape[0] != len(params.classes):
        raise ShapeError(
            f"class maps: shape {array.shape}, expected ({len(params.classes)}, rows, columns)"
        )
    return array


def _params(protocol: Protocol) -> SemanticParams:
    if protocol.semantic is None:
        raise ProtocolError(
            f"protocol {protocol.name}: no classes, expected one such as sbd or cityscapes"
        )
    return protocol.semantic


def semantic_score(evaluations: Mapping[str, Evaluation]) -> SemanticScore:
    """Score each class and take the means over the classes that the ground truth has.

    evaluations : class name -> Evaluation. Raises DataError if no class has ground truth.
    """
    per_class, absent = {}, []
    for name, run in evaluations.items():
        if any(r.boundary is not None and r.boundary.total_gt.any() for r in run.records):
            per_class[name] = run.boundary_score()
        else:
            absent.append(name)
    if not per_class:
        raise DataError("semantic score: no class has a ground-truth boundary")
    scores = list(per_class.values())
    return SemanticScore(
        per_class,
        tuple(absent),
        ods_mean=float(np.mean([s.ods.f for s in scores])),
        ois_mean=float(np.mean([s.ois.f for s in scores])),
        ap_mean=float(np.mean([s.ap for s in scores])),
    )


def evaluate_semantic(
    pred_dir: str | Path,
    gt_dir: str | Path,
    protocol: Protocol,
    *,
    name: str | None = None,
    workers: int = 1,
    progress: Callable[[int, int, str], None] | None = None,
) -> dict[str, Evaluation]:
    """Evaluate every class: class name -> Evaluation, whose `+`, `save` and scores work as ever.

    pred_dir : ID.png label maps, or ID.npy / ID.npz with (C, H, W) maps, or one folder per class
               (named as the class) with ID.png soft maps
    gt_dir   : ID.png label maps, ID.npy / ID.npz (labels, or (C, H, W) boundaries), or ID.mat with
               the SBD struct GTcls
    Raises PairingError if an image lacks its prediction, DataError with all faults of a run.
    """
    from concurrent.futures import ThreadPoolExecutor

    params = _params(protocol)
    truth = _files(Path(gt_dir))
    if not truth:
        raise PairingError(f"{gt_dir}: no label maps, expected .png, .npy, .npz or .mat files")
    source = _source(Path(pred_dir), params)
    missing = [i for i in truth if i not in source]
    if missing:
        raise PairingError(
            f"{pred_dir}: nothing for {', '.join(missing[:10])}"
            f"{' and more' if len(missing) > 10 else ''}, expected a prediction of every image"
        )

    def one(image_id: str) -> tuple[str, tuple[int, int], dict[str, BoundaryCounts]] | DataError:
        try:
            gt, labels = _load_truth(truth[image_id])
            pred = _load_maps(source[image_id])
            counts = semantic_counts(pred, gt, protocol, labels=labels)
        except DataError as error:
            return type(error)(f"{image_id}: {error}")
        return image_id, (gt.shape[-2], gt.shape[-1]), counts

    with ThreadPoolExecutor(max(1, workers)) as pool:
        results = []
        for image_id, result in zip(truth, pool.map(one, truth), strict=True):
            results.append(result)
            if progress:
                progress(len(results), len(truth), image_id)
    faults = [r for r in results if isinstance(r, DataError)]
    if faults:
        raise DataError.collect(faults)
    done = [r for r in results if not isinstance(r, DataError)]
    title = name or Path(pred_dir).resolve().name
    return {
        c: Evaluation(
            protocol,
            f"{title}: {c}",
            tuple(ImageRecord(i, size, counts[c]) for i, size, counts in done if c in counts),
        )
        for c in params.classes
    }


def _files(folder: Path) -> dict[str, Path]:
    from bsdsbench.loaders.pairing import files_in

    return {p.stem: p for p in files_in(folder, (".png", ".npy", ".npz", ".mat"))}


def _source(folder: Path, params: SemanticParams) -> dict[str, Sequence[Path]]:
    """image id -> its file, or its files in the order of the classes."""
    whole = _files(folder)
    if whole:
        return {image_id: (path,) for image_id, path in whole.items()}
    per_class = [_files(folder / name) for name in params.classes]
    ids = set(per_class[0]).intersection(*per_class)
    return {image_id: [files[image_id] for files in per_class] for image_id in sorted(ids)}


def _load_maps(paths: Sequence[Path]) -> NDArray[Any]:
    arrays = [_read_array(path) for path in paths]
    if len({a.shape for a in arrays}) > 1:
        raise ShapeError(f"{paths[0].name}: the classes' maps have several sizes, expected one")
    return arrays[0] if len(arrays) == 1 else np.stack(arrays)


def _read_array(path: Path) -> NDArray[Any]:
    from bsdsbench.loaders.arrays import read_npy, read_npz
    from bsdsbench.loaders.images import read_image

    if path.suffix.lower() == ".png":
        return read_image(path, indices=True)
    if path.suffix.lower() == ".npy":
        return read_npy(path)
    arrays = list(read_npz(path).values())
    if len(arrays) != 1:
        raise DataError(f"{path}: {len(arrays)} arrays, expected one")
    return arrays[0]


def _load_truth(path: Path) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Labels or boundaries, and labels where there are any."""
    from bsdsbench.loaders.matlab import read_mat

    if path.suffix.lower() != ".mat":
        array = _load_maps([path])
        return (array, array) if array.ndim == 2 else (array, None)
    struct = read_mat(path, ("GTcls",)).get("GTcls")
    if not isinstance(struct, dict) or not {"Boundaries", "Segmentation"} <= struct.keys():
        raise DataError(f"{path}: no struct GTcls with Boundaries and Segmentation")
    return np.stack([np.asarray(b) != 0 for b in struct["Boundaries"]]), struct["Segmentation"]
