"""The images that `doctor` examines: reading them, and measuring their values.

Each image gets the codes of its problems. The limits are far from the values of sound maps:
`thickness` is 0.00 to 0.56 for thinned maps and 0.99 for raw maps; `_jpeg_ratio` is below 1.13 for
sound maps and above 1.29 for JPEG at quality 92. No sample map has a value of exactly k/100.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from bsdsbench.arguments import F8
from bsdsbench.errors import DataError, Problem
from bsdsbench.images import GroundTruth, Prediction
from bsdsbench.loaders.pairing import Grouping, Pair
from bsdsbench.loaders.reading import Readings
from bsdsbench.metrics import registry
from bsdsbench.metrics.base import Metric
from bsdsbench.metrics.optional import Symptom
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.runs import sanity
from bsdsbench.runs.sources import FileItem
from bsdsbench.scores.counts import ImageRecord

FEW_VALUES = 10  # a map with fewer distinct values gives a curve with few points
THICK, THIN = 0.8, 0.6  # `thickness` is above THICK for raw maps and below THIN for thinned maps
JPEG = 1.2  # a larger `_jpeg_ratio` means JPEG compression
HUNDREDTHS = 0.01  # a larger `_share_on_hundredths` means rounded values
REACH = 16  # largest displacement searched, in rows and in columns
CORRELATED = 0.05  # if the correlation with the ground truth is lower, displacement is not measured
CHANCE = 3  # standard errors; no sound crop of 64 to 321 rows exceeds 3 with a ratio above 1.2
JPEG_BLOCK = 8  # rows and columns of a JPEG block
LEAST_SPAN = 8  # a block whose values (0 .. 255) do not span more is nearly constant
HIGH_FREQUENCY = 5  # a DCT coefficient (u, v) is of high frequency if u + v is at least this
VANISHING = 0.6  # a DCT coefficient vanishes if its absolute value is below this


@dataclass(slots=True)
class ExaminedImage:
    """What the doctor knows about one image."""

    image_id: str
    file: str  # the name of its first prediction file
    sizes: str  # the sizes of prediction and image, in words
    codes: set[str]  # the problems of this image, keys of CHECKS
    annotators: int = 0  # the number of annotators of boundaries
    # The flip or rotation with which the map fits the ground truth far better, in words, or ""
    orientation: str = ""
    # Of the map and of the ground truth, float32; None if one of them is constant
    thumbnails: tuple[sanity.Thumbnail, sanity.Thumbnail] | None = None
    maps: sanity.Look | None = None  # None unless the slow measurements were made


@dataclass(slots=True)
class ExaminedInputs:
    """The prediction and ground-truth files, the images read, and the problems found in reading."""

    metric: Metric
    protocol: Protocol
    kind: str  # kind of predictions, such as "soft"
    grouping: Grouping  # the files of each image
    # Images whose sizes fit, with hints on how to interpret their values; they have no counts
    records: list[ImageRecord] = field(default_factory=list)
    # Images with slow measurements, with their counts
    measured: list[ImageRecord] = field(default_factory=list)
    images: list[ExaminedImage] = field(default_factory=list)  # images that could be read
    unread: list[Problem] = field(default_factory=list)  # errors of images that could not be read
    refused: list[str] = field(default_factory=list)  # reasons why the metric cannot count an image
    symptoms: dict[Symptom, list[str]] = field(default_factory=dict)  # -> files that show it

    @property
    def readings(self) -> Readings:
        """The `Readings`: how the metric interprets the prediction and ground-truth files."""
        return self.metric.readings(self.protocol, self.kind)

    def read_image(self, image_id: str, measure: bool) -> None:
        """Read an image as `evaluate` does, and store what the checks need in the fields.

        If it cannot be read, only its error is added to `unread`. If `measure` is True, and the
        prediction has the size of the image, it is counted too; boundary maps are also measured.
        """
        protocol, metric = self.protocol, self.metric
        paths = tuple(self.grouping.pred.files[image_id])
        gt_paths = tuple(self.grouping.gt.files[image_id])
        if self.kind not in ("labels", "classes"):  # only these may have several files per image
            paths = paths[:1]
        item = FileItem(image_id, Pair(image_id, paths, gt_paths), self.kind)
        try:
            (same_reading,) = registry.group_by_reading([metric.name], protocol, self.kind)
            prediction, gt = item.load(same_reading, protocol)
        except DataError as error:
            self.unread.append(error.problems[0])
            return
        pred = cast(Prediction, prediction)
        fits = metric.fits(pred, gt, metric.options_of(protocol))
        code_of_size = "transposed" if pred.shape == gt.shape[::-1] else "resized"
        codes = set[str]() if fits else {code_of_size}
        pred_size, gt_size = " x ".join(map(str, pred.shape)), " x ".join(map(str, gt.shape))
        sizes = f"{pred_size} for an image of {gt_size}"
        image = ExaminedImage(image_id, paths[0].name, sizes, codes)
        self.images.append(image)
        if fits:
            sides = sanity.evidence_of(pred, gt, metric, protocol, metric.cuts_at_thresholds)
            record = ImageRecord(image_id, gt.shape, form=pred.form, pred=sides.pred, gt=sides.gt)
            self.records.append(record)
        if metric.name in registry.DEFAULT_METRICS:
            measure &= self._measure_boundaries(image, pred, gt, measure)
        if measure and fits:
            self._count(image, pred, gt)

    def _count(self, image: ExaminedImage, pred: Prediction, gt: GroundTruth) -> None:
        """Count an image for `measured`, and list its file under its symptoms in `symptoms`.

        Symptoms are signs of a wrong option. If the metric cannot count the image, only the reason
        is stored, in `refused`.
        """
        metric, opt = self.metric, self.metric.options_of(self.protocol)
        try:
            counts = {metric.name: metric.count(pred, gt, self.protocol, opt)}
        except DataError as error:
            self.refused.append(str(error.problems[0]))
            return
        self.measured.append(ImageRecord(gt.image_id, gt.shape, counts))
        for symptom in sanity.find_symptoms(pred, gt, self.protocol, [metric]):
            self.symptoms.setdefault(symptom, []).append(image.file)

    def _measure_boundaries(
        self, image: ExaminedImage, pred: Prediction, gt: GroundTruth, measure: bool
    ) -> bool:
        """Find the problems of a boundary map, and add their codes to `image.codes`.

        Returns True if the map and the ground truth can be compared. That needs a soft map of the
        size of the ground truth, and that neither is constant; otherwise, only each of them is
        checked. If `measure` is True, the slow measurements are made too.
        """
        image.annotators = len(gt.boundaries)
        maps = sanity.look_at(pred, gt, self.protocol)
        if not maps.soft.size:
            return False
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
            return False
        small_pred, small_truth = sanity.thumbnail(maps.soft), sanity.thumbnail(maps.truth)
        image.orientation = sanity.best_orientation(small_pred, small_truth)
        image.thumbnails = small_pred.astype(np.float32), small_truth.astype(np.float32)
        if measure:
            image.maps = maps
            image.codes |= _find_slow_problems(image.file, maps, self.protocol)
        return True


# ---- measurements of maps, float64 (H, W) in [0, 1] ----------------------------------------------


def _find_slow_problems(file: str, maps: sanity.Look, protocol: Protocol) -> set[str]:
    """Return the codes of the problems of a boundary map that are slow to find.

    If the prediction is not a soft map but, for example, a ucm2, only the file suffix is checked.
    """
    codes = {"jpeg"} if file.lower().endswith((".jpg", ".jpeg")) else set()
    if maps.pred.kind != "soft":
        return codes
    if _jpeg_ratio(maps.soft) > JPEG:
        codes.add("jpeg")
    thick = sanity.thickness(maps.soft)
    takes_raw_maps = protocol.nms or not protocol.thin
    if takes_raw_maps and thick < THIN:
        codes.add("thinned")
    if not takes_raw_maps and thick > THICK:
        codes.add("raw")
    # Some thresholds of MATLAB's linspace differ from k/100 in the last bit, so that rounding
    # decides whether a value of k/100 reaches them
    is_matlab_grid = any(0 < abs(t - round(t, 2)) < 1e-9 for t in protocol.thresholds)
    may_be_rounded = is_matlab_grid and maps.pred.soft.dtype.kind == "f" and not protocol.nms
    if may_be_rounded and _share_on_hundredths(maps.pred.soft) > HUNDREDTHS:
        codes.add("grid-values")
    return codes


def _share_on_hundredths(soft: NDArray[Any]) -> float:
    """Return the fraction of values in (0, 1) that are k/100 in their dtype; 0 without values."""
    values = soft[(soft > 0) & (soft < 1)]
    if not values.size:
        return 0.0
    nearest_hundredths = np.round(values.astype(np.float64), 2).astype(values.dtype)
    return float(np.mean(values == nearest_hundredths))


def _jpeg_ratio(soft: F8) -> float:
    """Measure the traces of JPEG compression in a map (H, W). Above 1.2, it was compressed.

    JPEG rounds many high-frequency DCT coefficients of its 8 x 8 blocks to 0. The result is the
    fraction of such coefficients that vanish on JPEG's block grid, divided by the larger of the
    fractions on two displaced grids, where JPEG causes no zeros.

    Returns 1 (no trace) if no coefficient vanishes on one of the grids, or if the fraction on
    JPEG's grid is not larger by at least CHANCE standard errors.
    """
    shares = _compute_vanishing_shares(soft)
    largest = 0.0  # largest mean share on a displaced grid
    for top, left in ((4, 4), (3, 5)):  # row and column where a displaced grid starts
        displaced_shares = _compute_vanishing_shares(soft[top:, left:])
        if not (shares.any() and displaced_shares.any()):
            return 1.0
        variance = shares.var() / shares.size + displaced_shares.var() / displaced_shares.size
        if shares.mean() - displaced_shares.mean() < CHANCE * np.sqrt(variance):
            return 1.0
        largest = max(largest, displaced_shares.mean())
    return float(shares.mean() / largest)


def _compute_vanishing_shares(soft: F8) -> F8:
    """Compute the fraction of high-frequency DCT coefficients that vanish in each 8 x 8 block.

    The map, (H, W) in [0, 1], is scaled to 0 .. 255 as in JPEG files. Coefficient (u, v) is of high
    frequency if u + v >= HIGH_FREQUENCY, and vanishes if its absolute value is below VANISHING.
    Incomplete blocks, and blocks whose values span at most LEAST_SPAN, are left out. Returns
    float64 (blocks,), one fraction per remaining block.
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
    """Cross-correlate a boundary map with its ground truth at all shifts of up to REACH pixels.

    truth : (H, W), the number of annotators that marked each pixel

    Both arrays are centred to zero mean and blurred (Gaussian, sigma 1). Returns an array
    (2 * REACH + 1, 2 * REACH + 1): entry [REACH + dy, REACH + dx] is the correlation, -1 to 1, if
    the map is displaced dy rows down and dx columns right of the ground truth. All entries are 0
    if one of the arrays is constant.
    """
    from scipy import fft, ndimage

    a = ndimage.gaussian_filter(soft - soft.mean(), 1.0)
    b = ndimage.gaussian_filter(truth - truth.mean(), 1.0)
    norm = np.sqrt((a * a).sum() * (b * b).sum())
    # Pad by REACH, so that content shifted out of the map does not wrap around
    shape = [fft.next_fast_len(side + REACH, real=True) for side in a.shape]
    spectrum = fft.rfft2(a, shape) * fft.rfft2(b, shape).conj()
    products = fft.irfft2(spectrum, shape)  # one entry per shift; negative shifts are at the end
    shifts = np.arange(-REACH, REACH + 1)
    products = products[np.ix_(shifts % shape[0], shifts % shape[1])]
    return np.divide(products, norm, out=np.zeros_like(products), where=norm > 0)


class Displacement(NamedTuple):
    """The displacement of a map from its ground truth in pixels: down (rows), right (columns)."""

    rows: float
    columns: float


def find_displacement(maps: Sequence[tuple[F8, F8]]) -> Displacement | None:
    """Find the common displacement of all maps from the ground truth.

    `maps` has for each image its boundary map and the number of annotators that marked each pixel,
    both (H, W). Returns None if their correlation, averaged over the images, is below CORRELATED at
    every shift.
    """
    surface = np.mean([_correlate_shifts(soft, truth) for soft, truth in maps], axis=0)
    return _locate_peak(surface) if surface.max() >= CORRELATED else None


def find_quarter_displacements(maps: Sequence[tuple[F8, F8]]) -> list[Displacement]:
    """Find the displacements of the upper left, upper right, lower left and lower right quarters.

    `find_displacement` is applied to the same quarter of all `maps`. Quarters that do not fit the
    ground truth are left out.
    """
    displacements = []
    for is_lower, is_right in product((False, True), repeat=2):
        crops = []
        for soft, truth in maps:
            rows, cols = soft.shape[0] // 2, soft.shape[1] // 2
            y = slice(rows, None) if is_lower else slice(rows)
            x = slice(cols, None) if is_right else slice(cols)
            crops.append((soft[y, x], truth[y, x]))
        displacements.append(find_displacement(crops))
    return [displacement for displacement in displacements if displacement]


def _locate_peak(surface: F8) -> Displacement:
    """Return the sub-pixel displacement at the peak of `_correlate_shifts`, minus 0.5 in each axis.

    In each axis, the peak is the vertex of the parabola through the largest entry and its two
    neighbours. 0.5 is subtracted because boundaries drawn from label maps lie half a pixel above
    and to the left of the true edge. Returns (0, 0) if the largest entry is at the border.
    """
    y, x = np.unravel_index(np.argmax(surface), surface.shape)
    if y in (0, 2 * REACH) or x in (0, 2 * REACH):
        return Displacement(0.0, 0.0)
    rows = y - REACH - 0.5 + _vertex(*surface[y - 1 : y + 2, x])
    columns = x - REACH - 0.5 + _vertex(*surface[y, x - 1 : x + 2])
    return Displacement(float(rows), float(columns))


def _vertex(before: float, top: float, after: float) -> float:
    """Return the peak of the parabola through (-1, before), (0, top), (1, after); 0 for a line."""
    bend = before - 2 * top + after
    return (before - after) / (2 * bend) if bend else 0.0
