"""Which pixels were matched, as pictures: matched green, false orange, missed blue.

Overlays come from the matching itself (`boundary_match_maps`), so their pixels add up to the
counts of the scores. Colours are Okabe and Ito's, told apart with any colour vision.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bsdsbench.core.errors import DataError
from bsdsbench.core.files import png_bytes, write_atomic
from bsdsbench.core.inputs import GroundTruth, Prediction
from bsdsbench.core.precision_recall import f_measure, image_best_index, ratio
from bsdsbench.core.records import ImageRecord
from bsdsbench.loaders import Pair, load_ground_truth, load_prediction, pair
from bsdsbench.loaders.photos import find_photos, photos_beside, read_photo
from bsdsbench.loaders.reading import show
from bsdsbench.metrics.boundary import BoundaryMatchMaps, boundary_match_maps
from bsdsbench.runs.compressed import image_ids
from bsdsbench.runs.evaluation import Evaluation

NOTHING, MATCHED, FALSE, MISSED = range(4)
COLORS = ((255, 255, 255), (0, 158, 115), (213, 94, 0), (0, 114, 178))
PALE = 0.62  # how far a picture under an overlay is drawn towards white
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True, eq=False)
class Overlay:
    """One image at one threshold. classes : (H, W) uint8 of NOTHING, MATCHED, FALSE, MISSED."""

    threshold: float
    precision: float
    recall: float
    f: float
    classes: NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class Sources:
    """Where the files of a run are: image id -> pair, image id -> picture (may lack some)."""

    pairs: dict[str, Pair]
    photos: dict[str, Path]
    pred_kind: str = "soft"

    def load(self, image_id: str, run: Evaluation) -> tuple[Prediction, GroundTruth]:
        """Prediction and ground truth of an image, as the run read them. Raises DataError."""
        found = self.pairs[image_id]
        gt = load_ground_truth(found, **run.protocol.gt_options())
        if not found.pred_paths:
            return Prediction(image_id, soft=np.zeros(gt.shape, np.uint8)), gt
        return load_prediction(found, kind=self.pred_kind), gt

    def photo(self, image_id: str, shape: tuple[int, int]) -> NDArray[np.uint8] | None:
        """The picture, or None if there is none of that size."""
        if image_id not in self.photos:
            return None
        pixels = read_photo(self.photos[image_id])
        return pixels if pixels.shape[:2] == shape else None


def find_sources(
    run: Evaluation,
    pred_dir: str | os.PathLike[str] | None = None,
    gt_dir: str | os.PathLike[str] | None = None,
    images_dir: str | os.PathLike[str] | None = None,
    pred_kind: str | None = None,
) -> Sources:
    """The files a run was made from: the given folders, or those its provenance names.

    Without images_dir the pictures are looked for beside the ground truth (BSDS layout). pred_kind
    is "soft" or "labels", None to tell by the thresholds of the counts. Raises DataError if the
    folders are not known, are gone, or lack an image of the run.
    """
    pred = pred_dir or run.provenance.get("pred")
    gt = gt_dir or run.provenance.get("gt")
    if not pred or not gt:
        raise DataError(f"{run.name}: where its predictions and ground truth are is not known")
    wanted = set(image_ids(run.records))
    pred_kind = pred_kind or _kind(run)
    pairs = {p.image_id: p for p in _pairs(Path(pred), Path(gt), wanted, pred_kind)}
    lost = sorted(wanted - pairs.keys())
    if lost:
        raise DataError(f"{show(pred)}: no files of image {lost[0]!r}, expected those of the run")
    folder = images_dir or photos_beside(gt)
    return Sources(pairs, find_photos(folder) if folder else {}, pred_kind)


def _kind(run: Evaluation) -> str:
    """Segmentations have the thresholds 1 .. n, soft maps those of the protocol."""
    counts = next((r.boundary for r in run.records if r.boundary is not None), None)
    if counts is None or np.array_equal(counts.thresholds, run.protocol.threshold_array()):
        return "soft"
    return "labels"


def _pairs(pred: Path, gt: Path, wanted: set[str], pred_kind: str) -> list[Pair]:
    """Pairs of the wanted images only: a run may have been made with a split file."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        split = Path(folder) / "ids.txt"
        split.write_text("".join(f"{i}\n" for i in sorted(wanted)), "utf-8")
        return pair(pred, gt, split_file=split, missing="zero", pred_kind=pred_kind)


def overlay(
    pred: Prediction, gt: GroundTruth, run: Evaluation, threshold: float, record: ImageRecord
) -> Overlay:
    """The overlay of one image at the threshold of its counts that is nearest to `threshold`.

    Raises DataError if it does not add up to the counts: then the files have changed since.
    """
    if record.boundary is None:
        raise DataError(f"{record.image_id}: no boundary counts, expected them for an overlay")
    grid = record.boundary.thresholds
    k = int(np.argmin(np.abs(grid - threshold)))
    at = float(grid[k])
    maps = boundary_match_maps(pred, gt, run.protocol, at)
    counted = int(record.boundary.matched_pred[k]), int(record.boundary.matched_gt[k])
    found = int(maps.true_pred.sum()), int(maps.matched_gt.sum())
    if found != counted:
        raise DataError(
            f"{record.image_id}: {found} matched pixels, the run has {counted}; its files or its "
            "settings are not those of the run"
        )
    recall = ratio(maps.matched_gt.sum(), maps.matched_gt.sum() + maps.missed_gt.sum())
    precision = ratio(maps.true_pred.sum(), maps.true_pred.sum() + maps.false_pred.sum())
    f = f_measure(precision, recall)
    return Overlay(at, float(precision), float(recall), float(f), classes_of(maps))


def classes_of(maps: BoundaryMatchMaps) -> NDArray[np.uint8]:
    """(H, W) uint8: predictions matched or false; where there is none, pixels some annotator has
    and that are not matched for him."""
    out = np.zeros(maps.true_pred.shape, np.uint8)
    out[maps.missed_gt.any(axis=0)] = MISSED
    out[maps.false_pred] = FALSE
    out[maps.true_pred] = MATCHED
    return out


def image_threshold(record: ImageRecord) -> float:
    """The threshold of an image's largest F, no interpolation; the first of ties."""
    if record.boundary is None:
        raise DataError(f"{record.image_id}: no boundary counts, expected them for an overlay")
    return float(record.boundary.thresholds[image_best_index(record.boundary)])


def paint(classes: NDArray[np.uint8], photo: NDArray[np.uint8] | None = None) -> NDArray[np.uint8]:
    """An overlay as (H, W, 3) uint8, on white or on the paled picture."""
    colors = np.array(COLORS, np.uint8)
    if photo is None:
        return colors[classes]
    gray = photo.mean(axis=2, keepdims=True)
    ground = np.rint(255 * PALE + gray * (1 - PALE)).astype(np.uint8)
    return np.where((classes == NOTHING)[..., None], ground, colors[classes])


def draw_overlays(
    run: Evaluation, sources: Sources, progress: Progress | None = None
) -> Iterator[tuple[str, str, Overlay, NDArray[np.uint8] | None]]:
    """(image id, "best" or "ods", overlay, picture) of every image, in id order."""
    ods = run.boundary_score().ods.threshold or 0.0
    for done, record in enumerate(run.records, 1):
        pred, gt = sources.load(record.image_id, run)
        photo = sources.photo(record.image_id, gt.shape)
        for kind, at in (("best", image_threshold(record)), ("ods", ods)):
            yield record.image_id, kind, overlay(pred, gt, run, at, record), photo
        if progress:
            progress(done, len(run.records), record.image_id)


def write_overlays(
    run: Evaluation,
    out: str | os.PathLike[str],
    *,
    pred_dir: str | os.PathLike[str] | None = None,
    gt_dir: str | os.PathLike[str] | None = None,
    images_dir: str | os.PathLike[str] | None = None,
    pred_kind: str | None = None,
    progress: Progress | None = None,
) -> list[Path]:
    """Write ID_best.png and ID_ods.png of every image into `out`; returns their paths.

    best is the image's own threshold of largest F, ods the data set's. The folders default to
    those the run was made from. Raises DataError if files are gone, OSError.
    """
    from bsdsbench.loaders.official_txt import safe_name

    sources = find_sources(run, pred_dir, gt_dir, images_dir, pred_kind)
    written = []
    for image_id, kind, found, photo in draw_overlays(run, sources, progress):
        path = Path(out) / f"{safe_name(image_id)}_{kind}.png"
        write_atomic(path, png_bytes(paint(found.classes, photo)))
        written.append(path)
    return written
