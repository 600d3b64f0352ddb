"""The images that the doctor examines: reading them, and measuring their values.

Each image gets the codes of its problems. The thresholds are far from the values of sound maps.
Thinned maps are 0.00 to 0.56 thick and raw maps 0.99. JPEG traces are below 1.13 in sound maps and
above 1.29 at quality 92. No map of the sample has a value of exactly k/100.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from bsdsbench.arguments import F8
from bsdsbench.errors import DataError, Fix, Problem
from bsdsbench.images import GroundTruth, Prediction
from bsdsbench.loaders.pairing import Files, Pair
from bsdsbench.loaders.reading import Readings
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Metric
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs.sanity import (
    Thumbnail,
    best_orientation,
    evidence_of,
    find_symptoms,
    look_at,
    thickness,
    thumbnail,
)
from bsdsbench.runs.sources import FileItem
from bsdsbench.scores.counts import ImageRecord

FEW_VALUES = 10  # a map with fewer has a curve with few points
THICK, THIN = 0.8, 0.6  # `thickness` of raw maps is above the first, of thinned maps below the last
JPEG = 1.2  # a larger `_jpeg_ratio` is a trace of JPEG
HUNDREDTHS = 0.01  # a larger `_share_on_hundredths` means rounded values
REACH = 16  # pixels, the largest displacement in rows and in columns
CHANCE = 3  # standard errors; no sound crop of 64 to 321 rows exceeds 3 with a ratio above 1.2
JPEG_BLOCK = 8  # rows and columns of the blocks that JPEG compresses
LEAST_SPAN = 8  # of the values 0 .. 255 of a block; a block that spans less is nearly constant
HIGH_FREQUENCY = 5  # a cosine coefficient is high if its two frequencies add up to at least this
VANISHING = 0.6  # a cosine coefficient vanishes if its absolute value is below this


@dataclass(slots=True)
class ExaminedImage:
    """What the doctor knows of one image."""

    image_id: str
    file: str  # the name of its first prediction file
    sizes: str  # the sizes of prediction and image, in words
    codes: set[str]  # the problems of this image, keys of CHECKS
    annotators: int = 0  # the number of annotators of boundaries
    # How the map must be turned to fit the ground truth far better, such as "mirrored ...", or ""
    orientation: str = ""
    # Of the map and of the ground truth, float32. None if either is constant.
    thumbnails: tuple[Thumbnail, Thumbnail] | None = None
    maps: MeasuredMaps | None = None  # of an image that is measured further


@dataclass(frozen=True, slots=True)
class MeasuredMaps:
    """The data of an image that is measured further."""

    pred: Prediction
    gt: GroundTruth
    soft: F8  # (H, W) in [0, 1]: the prediction's map as the protocol reads it
    truth: F8  # (H, W): the number of annotators that marked each pixel


@dataclass(slots=True)
class ExaminedInputs:
    """The files of both sides, the images read, and the problems met while reading."""

    metric: Metric
    protocol: Protocol
    kind: str  # of predictions
    preds: Files  # image id -> files, sorted by id
    gts: Files
    # Ids of several files that cannot be told to be one image, of predictions and of ground truth
    doubled: tuple[set[str], set[str]]
    n_measured: int = 0  # images that were measured further
    # The images whose sizes fit, with what their files say of the meaning of values, without counts
    records: list[ImageRecord] = field(default_factory=list)
    # The images that were measured further, with counts; empty for the boundary metric
    counted_images: list[ImageRecord] = field(default_factory=list)
    images: list[ExaminedImage] = field(default_factory=list)  # those that could be read
    unread: list[Problem] = field(default_factory=list)  # of images that could not be read
    refused: list[str] = field(default_factory=list)  # why the metric cannot count an image
    # (code, problem, remedy) of the metric's images -> file names
    symptoms: dict[tuple[str, str, Fix], list[str]] = field(default_factory=dict)

    @property
    def readings(self) -> Readings:
        """The readings of the files of both sides."""
        return self.metric.readings(self.protocol, self.kind)

    def read_image(self, image_id: str, measure: bool) -> None:
        """Read an image as `evaluate` does, and add what the checks need to the fields.

        An image that cannot be read is only added to `unread`. If `measure` is True and the sizes
        fit, the image is also measured (boundary maps) or counted (other metrics).
        """
        protocol, metric = self.protocol, self.metric
        paths = tuple(self.preds[image_id])
        if self.kind not in ("labels", "classes"):  # which may have several files
            paths = paths[:1]
        item = FileItem(image_id, Pair(image_id, paths, tuple(self.gts[image_id])), self.kind)
        try:
            (same_reading,) = registry.group_by_reading([metric.name], protocol, self.kind)
            prediction, gt = item.load(same_reading, protocol)
        except DataError as error:
            self.unread.append(error.problems[0])
            return
        pred = cast(Prediction, prediction)
        fits = metric.fits(pred, gt, metric.options_of(protocol))
        is_uneven = any(b.shape != gt.shape for b in gt.boundaries)
        codes = set[str]()
        if is_uneven:
            codes.add("annotators")
        elif not fits:
            codes.add("transposed" if pred.shape == gt.shape[::-1] else "resized")
        pred_size, gt_size = " x ".join(map(str, pred.shape)), " x ".join(map(str, gt.shape))
        sizes = f"{pred_size} for an image of {gt_size}"
        image = ExaminedImage(image_id, paths[0].name, sizes, codes)
        self.images.append(image)
        if fits and not is_uneven:
            sides = evidence_of(pred, gt, metric, protocol, metric.cuts_at_thresholds)
            record = ImageRecord(image_id, gt.shape, form=pred.form, pred=sides.pred, gt=sides.gt)
            self.records.append(record)
        if metric.name in registry.DEFAULT_METRICS:
            self._measure_boundaries(image, pred, gt, measure)
        elif measure and fits:
            self._count(image, pred, gt)

    def _count(self, image: ExaminedImage, pred: Prediction, gt: GroundTruth) -> None:
        """Count an image, and collect its symptoms.

        If the metric cannot count the image, only the reason is added to `refused`.
        """
        metric, opt = self.metric, self.metric.options_of(self.protocol)
        try:
            counts = {metric.name: metric.count(pred, gt, self.protocol, opt)}
        except DataError as error:
            self.refused.append(str(error.problems[0]))
            return
        self.counted_images.append(ImageRecord(gt.image_id, gt.shape, counts))
        self.n_measured += 1
        for symptom in find_symptoms(pred, gt, metric, self.protocol):
            self.symptoms.setdefault(symptom, []).append(image.file)

    def _measure_boundaries(
        self, image: ExaminedImage, pred: Prediction, gt: GroundTruth, measure: bool
    ) -> None:
        """Find the problems of a boundary map, and add their codes to `image.codes`.

        `measure` also takes the measurements that are slow. If the prediction has no soft map,
        nothing is measured. If the map cannot be compared with the ground truth, only the
        measurements that do not compare the two are taken.
        """
        image.annotators = len(gt.boundaries)
        maps = look_at(pred, gt, self.protocol)
        if not maps.soft.size:
            return
        shares_of_boundary = [boundary_map.mean() for boundary_map in gt.boundaries]
        if all(shares_of_boundary) and np.mean(shares_of_boundary) > 0.5:
            image.codes.add("gt-polarity")
        if not maps.soft.any():
            image.codes.add("zero")
        if maps.soft.max() == maps.soft.min() > 0:
            image.codes.add("saturated")
        if pred.kind == "soft" and len(np.unique(pred.soft)) < FEW_VALUES:
            image.codes.add("few-values")
        if not maps.measured:
            return
        small_pred, small_truth = thumbnail(maps.soft), thumbnail(maps.truth)
        image.orientation = best_orientation(small_pred, small_truth)
        image.thumbnails = small_pred.astype(np.float32), small_truth.astype(np.float32)
        if measure:
            self.n_measured += 1
            image.maps = MeasuredMaps(pred, gt, maps.soft, maps.truth)
            image.codes |= _find_slow_problems(image.file, image.maps, self.protocol)


# ---- measurements of maps, float64 (H, W) in [0, 1] ----------------------------------------------


def _find_slow_problems(file: str, maps: MeasuredMaps, protocol: Protocol) -> set[str]:
    """Return the codes of the problems of a boundary map that take longer to find.

    A prediction that is not a soft map, such as a ucm2, is judged by the suffix of its file alone.
    """
    codes = {"jpeg"} if file.lower().endswith((".jpg", ".jpeg")) else set()
    if maps.pred.kind != "soft":
        return codes
    if _jpeg_ratio(maps.soft) > JPEG:
        codes.add("jpeg")
    thick = thickness(maps.soft)
    takes_raw_maps = protocol.nms or not protocol.thin
    if takes_raw_maps and thick < THIN:
        codes.add("thinned")
    if not takes_raw_maps and thick > THICK:
        codes.add("raw")
    # MATLAB's linspace, 0.01 .. 0.99, differs from k/100 by less than 1e-9 at some thresholds, so
    # that rounding decides whether a value of k/100 is predicted there
    is_matlab_grid = any(0 < abs(t - round(t, 2)) < 1e-9 for t in protocol.thresholds)
    may_be_rounded = is_matlab_grid and maps.pred.soft.dtype.kind == "f" and not protocol.nms
    if may_be_rounded and _share_on_hundredths(maps.pred.soft) > HUNDREDTHS:
        codes.add("grid-values")
    return codes


def _share_on_hundredths(soft: NDArray[Any]) -> float:
    """Return the share of values that are exactly k/100, rounded to the dtype of the map.

    Only values strictly between 0 and 1 count. If there are none, the share is 0.
    """
    values = soft[(soft > 0) & (soft < 1)]
    if not values.size:
        return 0.0
    nearest_hundredths = np.round(values.astype(np.float64), 2).astype(values.dtype)
    return float(np.mean(values == nearest_hundredths))


def _jpeg_ratio(soft: F8) -> float:
    """Measure how strongly a map (H, W) bears the traces of JPEG compression.

    JPEG rounds many high cosine coefficients of its 8 x 8 blocks to 0. The ratio compares the share
    of coefficients that vanish in JPEG's own blocks with the larger share in two displaced grids of
    blocks, in which JPEG leaves no zeros. A ratio above the constant JPEG means that the map was
    compressed.

    Returns 1, which means no trace, if nothing vanishes on one of the grids, or if the shares
    differ by less than CHANCE standard errors.
    """
    shares = _compute_vanishing_shares(soft)
    largest = 0.0  # mean share of a displaced grid
    for top, left in ((4, 4), (3, 5)):  # where the displaced grids start
        displaced_shares = _compute_vanishing_shares(soft[top:, left:])
        if not (shares.any() and displaced_shares.any()):
            return 1.0
        variance = shares.var() / shares.size + displaced_shares.var() / displaced_shares.size
        if shares.mean() - displaced_shares.mean() < CHANCE * np.sqrt(variance):
            return 1.0
        largest = max(largest, displaced_shares.mean())
    return float(shares.mean() / largest)


def _compute_vanishing_shares(soft: F8) -> F8:
    """Compute, for each 8 x 8 block of a map, the share of high cosine coefficients that vanish.

    The map, (H, W) in [0, 1], is scaled to 0 .. 255 as in JPEG files. Incomplete and nearly
    constant blocks are left out. The constants HIGH_FREQUENCY, VANISHING and LEAST_SPAN define what
    is high, what vanishes, and what is nearly constant. Returns float64 (blocks,).
    """
    from scipy.fft import dctn

    rows, cols = soft.shape[0] // JPEG_BLOCK, soft.shape[1] // JPEG_BLOCK  # of complete blocks
    complete = 255 * soft[: rows * JPEG_BLOCK, : cols * JPEG_BLOCK]
    blocks = (
        complete.reshape(rows, JPEG_BLOCK, cols, JPEG_BLOCK)
        .swapaxes(1, 2)
        .reshape(-1, JPEG_BLOCK, JPEG_BLOCK)
    )
    blocks = blocks[np.ptp(blocks, axis=(1, 2)) > LEAST_SPAN]  # (blocks, 8, 8)
    if not blocks.size:
        return np.zeros(0)
    coefficients = dctn(blocks, axes=(1, 2), norm="ortho")
    is_high = np.add.outer(np.arange(JPEG_BLOCK), np.arange(JPEG_BLOCK)) >= HIGH_FREQUENCY
    vanishes = np.abs(coefficients) < VANISHING
    return np.asarray(vanishes[:, is_high].mean(axis=1))


def _correlate_shifts(soft: F8, truth: F8) -> F8:
    """Correlate a map with its ground truth for all shifts of up to REACH rows and columns.

    truth : (H, W), the number of annotators that marked each pixel

    The mean of either is subtracted, and both are blurred. Returns (2 * REACH + 1, 2 * REACH + 1),
    from -1 to 1: the entry [REACH + dy, REACH + dx] assumes that the map lies dy rows below and dx
    columns to the right of the ground truth. All entries are 0 if either is constant.
    """
    from scipy import fft, ndimage

    a = ndimage.gaussian_filter(soft - soft.mean(), 1.0)
    b = ndimage.gaussian_filter(truth - truth.mean(), 1.0)
    norm = np.sqrt((a * a).sum() * (b * b).sum())
    # In a smaller transform, content shifted out of the map would return on the other side
    shape = [fft.next_fast_len(side + REACH, real=True) for side in a.shape]
    spectrum = fft.rfft2(a, shape) * fft.rfft2(b, shape).conj()
    products = fft.irfft2(spectrum, shape)  # for every shift; negative shifts are at the end
    shifts = np.arange(-REACH, REACH + 1)
    products = products[np.ix_(shifts % shape[0], shifts % shape[1])]
    return np.divide(products, norm, out=np.zeros_like(products), where=norm > 0)


class Displacement(NamedTuple):
    """The displacement of a map from its ground truth, in fractional rows and columns."""

    rows: float
    columns: float


def find_displacement(maps: Sequence[tuple[F8, F8]], least: float) -> Displacement | None:
    """Find the displacement from the ground truth that all maps have in common.

    maps : for each image, the map (H, W), and the number of annotators that marked each pixel (H,
        W)
    least : the smallest correlation, averaged over the images, of maps that fit the ground truth

    Returns None if the maps do not fit the ground truth at any shift.
    """
    surface = np.mean([_correlate_shifts(soft, truth) for soft, truth in maps], axis=0)
    return _locate_peak(surface) if surface.max() >= least else None


def find_quarter_displacements(maps: Sequence[tuple[F8, F8]], least: float) -> list[Displacement]:
    """Find the displacement of each quarter of the maps that fits; see `find_displacement`.

    The quarters are upper left, upper right, lower left and lower right, in this order.
    """
    displacements = []
    for is_lower, is_right in product((False, True), repeat=2):
        crops = []
        for soft, truth in maps:
            rows, cols = soft.shape[0] // 2, soft.shape[1] // 2
            y = slice(rows, None) if is_lower else slice(rows)
            x = slice(cols, None) if is_right else slice(cols)
            crops.append((soft[y, x], truth[y, x]))
        displacements.append(find_displacement(crops, least))
    return [displacement for displacement in displacements if displacement]


def _locate_peak(surface: F8) -> Displacement:
    """Return the displacement at which the correlation peaks, to a fraction of a pixel.

    Along either axis, the peak is the vertex of the parabola through the largest entry of
    `_correlate_shifts` and its two neighbours. Returns (0, 0) if the largest entry is on the rim.
    """
    y, x = np.unravel_index(np.argmax(surface), surface.shape)
    if y in (0, 2 * REACH) or x in (0, 2 * REACH):
        return Displacement(0.0, 0.0)
    # Boundaries of label maps lie half a pixel above and to the left of the edge
    rows = y - REACH - 0.5 + _vertex(*surface[y - 1 : y + 2, x])
    columns = x - REACH - 0.5 + _vertex(*surface[y, x - 1 : x + 2])
    return Displacement(float(rows), float(columns))


def _vertex(before: float, top: float, after: float) -> float:
    """Return where the parabola through (-1, before), (0, top), (1, after) peaks, 0 for a line."""
    bend = before - 2 * top + after
    return (before - after) / (2 * bend) if bend else 0.0
