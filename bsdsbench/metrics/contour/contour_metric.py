"""Contours of masks as a metric, so that runs, `compare`, `check` and `report` can use them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.errors import DataError
from bsdsbench.loaders.inputs import GroundTruth, Prediction
from bsdsbench.metrics.base import Metric
from bsdsbench.metrics.columns import Column, within
from bsdsbench.metrics.contour.label_options import ContourOptions, LabelOptions
from bsdsbench.metrics.contour.pairs import CONVENTIONS, SIDES
from bsdsbench.metrics.contour.totals import ContourCounts, contour_counts
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import Stack
from bsdsbench.scores.ratios import (
    Weights,
    defined_mean,
    defined_ratio,
    f_measure,
    ratio,
    weighted_sum,
)
from bsdsbench.tables.result_object import ShownScore

F8 = NDArray[np.float64]
# Sizes that have columns; measures at others are in result.json only.
_SHELLS = {0.02: "2%", 0.005: "0.5%", 0.01: "1%"}
_RADII = {0.008: "0.8%", 1: "1 px", 2: "2 px", 3: "3 px", 5: "5 px", 9: "9 px", 12: "12 px"}
_TOLERANCES = (0.5, 1, 2, 3, 5, 10)
_WIDTHS = (1, 2, 3, 5, 10, 20)


def key_of(measure: str) -> str:
    """A measure's key: its name, without the points that divide the paths of keys."""
    return measure.replace(".", "_")


def _columns() -> tuple[Column, ...]:
    found = [Column("iou", "IoU", quantity="iou")]
    for size, words in _SHELLS.items():
        key = key_of(f"biou@{size:g}")
        found.append(Column(key, f"Boundary IoU {words}", f"BIoU {words}", quantity=key))
        least = f"min of IoU, BIoU {words}"
        found.append(
            Column(key_of(f"biou-min@{size:g}"), least, f"min {words}", shown="own", quantity=key)
        )
    found += [
        Column(key_of(f"f@{r:g}"), f"F {words}", quantity="f@") for r, words in _RADII.items()
    ]
    found += [Column("bf", "BF"), Column("hd", "HD", lower=True, digits=3)]
    for kind in ("pooled", "directed", "area"):
        words = f"HD95 {kind}"
        key = f"hd95-{kind}"
        found.append(Column(key, words, words, lower=True, digits=3, quantity="hd95"))
    for kind in ("pooled", "directed"):
        words = f"ASSD {kind}"
        found.append(Column(f"assd-{kind}", words, lower=True, digits=3, quantity="assd"))
    for tolerance in _TOLERANCES:
        for form in ("area", "counts", "mean"):
            name = f"nsd-{form}@{tolerance:g}"
            own = f"nsd@{tolerance:g}"
            found.append(Column(key_of(name), f"NSD {form} {tolerance:g}", quantity=own))
    found.append(Column("fom", "FOM"))
    found += [Column(key_of(f"trimap@{w:g}"), f"trimap IoU {w:g} px") for w in _WIDTHS]
    found.append(Column("cldice", "clDice"))
    return tuple(found)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ContourScore(ShownScore):
    """Means over the images (or instances) of each class, and then over the classes.

    values    : key of a measure -> its mean over the classes in which it is defined, or None
    per_class : name -> `ClassContours`
    pooled    : "iou", "biou@SIZE", "f@RADIUS" of the pixels of all images together, meaned over
                the classes
    pairs     : masks compared, that were in both maps, in the prediction, the ground truth alone
    empty     : the convention for empty masks
    """

    values: dict[str, float | None]
    per_class: dict[str, ClassContours]
    pooled: dict[str, float | None]
    pairs: tuple[int, int, int]
    empty: str
    n_images: int

    def to_mapping(self) -> dict[str, Any]:
        return {
            **self.values,
            "pooled": self.pooled,
            "pairs": dict(zip(("both", "pred_only", "gt_only"), self.pairs, strict=True)),
            "empty_masks": self.empty,
            "per_class": {name: part.to_mapping() for name, part in self.per_class.items()},
            "n_images": self.n_images,
        }


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ClassContours(ShownScore):
    """One class: key of a measure -> its mean over images or instances, or None; how many."""

    values: dict[str, float | None]
    n_images: int

    def to_mapping(self) -> dict[str, Any]:
        return {**self.values, "n_images": self.n_images}


class ContourMetric(Metric):
    """Contours of masks: Boundary IoU, F, BF, surface distances, NSD, figure of merit, trimap."""

    name = "contour"
    title = "Contours of masks"
    pred_kinds = ("classes",)
    gt_kind = "classes"
    counts_type = ContourCounts
    default_protocol = "masks"
    options = ContourOptions
    uses = ()
    columns: ClassVar[tuple[Column, ...]] = (
        *_columns(),
        Column("pooled.iou", "IoU of all pixels", shown="never", quantity="iou"),
        Column("n_images", "images", "n", digits=0, shown="own", score=False),
    )
    part_columns: ClassVar[tuple[Column, ...]] = (
        *_columns(),
        Column("n_images", "masks", digits=0, shown="own", score=False),
    )
    image_columns: ClassVar[tuple[Column, ...]] = (
        Column("iou", "IoU"),
        Column("biou", "Boundary IoU", "BIoU"),
        Column("f", "F"),
    )

    def count(self, pred: Prediction, gt: GroundTruth, protocol: Protocol) -> ContourCounts:
        at = self.options_of(protocol)
        with faults_named(pred, gt):
            return contour_counts(*label_maps(pred, gt, at), at)

    def scores(self, stack: Stack, weights: Weights, protocol: Protocol) -> dict[str, F8]:
        """The means over images of each class, then over the classes; pooled.* of all pixels.

        KEY.n says over how many pairs of masks a mean is.
        """
        at, total = self.options_of(protocol), summed(stack, weights)
        over = total.value_count.sum(axis=1)
        means = defined_mean(np.moveaxis(defined_ratio(total.value_sum, total.value_count), 1, -1))
        out = {key_of(m): means[:, k] for k, m in enumerate(at.measures())}
        pooled = {f"pooled.{key}": defined_mean(v) for key, v in _pooled(total, at).items()}
        return {
            **out,
            **pooled,
            **{f"{key_of(m)}.n": over[:, k] for k, m in enumerate(at.measures())},
        }

    def result(
        self, values: Mapping[str, float], stack: Stack, ids: Sequence[str], protocol: Protocol
    ) -> ContourScore:
        at = self.options_of(protocol)
        keys = [key_of(m) for m in at.measures()]
        total = summed(stack, np.ones((1, len(ids)), np.int64))
        table = defined_ratio(total.value_sum, total.value_count)[0]
        per_class = {
            name: ClassContours(
                dict(zip(keys, map(_plain, table[k]), strict=True)),
                int(total.value_count[0, k].max(initial=0)),
            )
            for k, name in enumerate(at.class_names)
        }
        both, pred_only, gt_only = (int(x) for x in total.pairs[0].sum(axis=0))
        return ContourScore(
            {key: _plain(values[key]) for key in keys},
            per_class if len(per_class) > 1 else {},
            {key: _plain(value) for key, value in within(values, "pooled").items()},
            (both, pred_only, gt_only),
            at.empty,
            len(ids),
        )

    def parts(self, score: ContourScore) -> Mapping[str, Any]:
        return score.per_class

    def image_values(self, counts: ContourCounts) -> dict[str, float]:
        """Means over the classes of one image: IoU, Boundary IoU and F at their first sizes."""
        return {
            "iou": float(defined_mean(_defined_iou(counts.areas))),
            "biou": float(defined_mean(_defined_iou(counts.shells)[:, :1].ravel())),
            "f": float(defined_mean(_defined_f(counts)[:, :1].ravel())),
        }

    def symptoms(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol
    ) -> Iterator[tuple[str, str, str]]:
        at = self.options_of(protocol)
        yield from label_symptoms(pred, gt, at)
        undefined = np.isnan(CONVENTIONS[at.empty].one_distance or 0.0)
        if (
            undefined
            and "distance" in at.groups
            and self.count(pred, gt, protocol).pairs[:, 1:].any()
        ):
            words = "masks without a partner, which HD, HD95 and ASSD leave out"
            yield "left-out", words, "read them beside IoU, or --set contour.empty=diagonal"

    def describe(self, protocol: Protocol) -> str:
        """What was compared, what empty masks gave, and the order of the means."""
        over = "images" if self.options_of(protocol).unit == "class" else "instances"
        return f"{super().describe(protocol)}; means over {over}, then over classes"

    def example(self) -> tuple[Prediction, GroundTruth, Protocol]:
        labels = np.zeros((12, 16), np.uint8)
        labels[:, 8:] = 1
        options = {self.name: ContourOptions(classes=("left", "right"))}
        truth = GroundTruth("a", labels=labels)
        return Prediction("a", classes=labels), truth, Protocol(options=options)


def summed(stack: Stack, weights: Weights) -> Any:
    """The counts of each weighted data set: every field (S, ...)."""
    return SimpleNamespace(**{name: weighted_sum(weights, stack[name]) for name in stack})


def _defined_iou(areas: NDArray[Any]) -> F8:
    """IoU of (..., 3) pixels, NaN where neither map has any."""
    return defined_ratio(areas[..., 0], areas[..., 1] + areas[..., 2] - areas[..., 0])


def _defined_f(counts: Any) -> F8:
    """F of the pixels of each class at each radius (..., C, R), NaN where neither map has any."""
    outline = counts.outline[..., None, :]
    share = ratio(counts.near, outline)
    return np.where(outline.any(axis=-1), f_measure(share[..., 0], share[..., 1]), np.nan)


def _pooled(counts: Any, at: ContourOptions) -> dict[str, F8]:
    """Measures of the pixels of all images together, (..., C) each."""
    out = {"iou": _defined_iou(counts.areas)}
    shells, near = _defined_iou(counts.shells), _defined_f(counts)
    if "boundary-iou" in at.groups:
        for k, size in enumerate(at.boundary_sizes):
            out[key_of(f"biou@{size:g}")] = shells[..., k]
    if "davis" in at.groups:
        for k, bound in enumerate(at.davis_bounds):
            out[key_of(f"f@{bound:g}")] = near[..., k]
    return out


def _plain(value: Any) -> float | None:
    """A number for JSON; None where it is undefined or infinite."""
    return float(value) if np.isfinite(value) else None


def label_symptoms(
    pred: Prediction, gt: GroundTruth, at: LabelOptions
) -> Iterator[tuple[str, str, str]]:
    """Classes that no pixel has in common, and a label to ignore that only predictions have."""
    mine, true = label_maps(pred, gt, at)
    if np.intersect1d(mine, true).size == 0:
        yield "classes", "no label is in both maps", "check the order of the classes and `first`"
    if (mine == at.ignore).any() and not (true == at.ignore).any():
        yield "ignored", f"the label to ignore ({at.ignore}) is predicted", "set `ignore`"


@contextmanager
def faults_named(pred: Prediction, gt: GroundTruth) -> Iterator[None]:
    """Faults found inside name the file: of the ground truth if they say so, or the prediction."""
    try:
        yield
    except DataError as error:
        side, _, fault = str(error).partition(": ")
        where: Prediction | GroundTruth = gt if side == SIDES[1] else pred
        text = fault if side in SIDES else str(error)
        raise type(error)(f"{where.path or where.image_id}: {text}") from None


def label_maps(
    pred: Prediction, gt: GroundTruth, at: LabelOptions
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Both label maps. A prediction may hold one bool map per class; a pixel in none is nothing.

    Raises DataError for anything else.
    """
    if gt.labels is None:
        raise DataError(f"{SIDES[1]}: no label map, expected masks, classes or instances")
    found = pred.classes
    if found is None or (found.ndim == 3 and found.any() and found.dtype != bool):
        shape = "no label map" if found is None else f"{found.dtype} maps of shape {found.shape}"
        raise DataError(f"{SIDES[0]}: {shape}, expected a label map (H, W)")
    if found.ndim == 2:
        return found, gt.labels
    nothing = 0
    if at.classes and at.first == 0:
        nothing = at.ignore
        if nothing < 0:
            raise DataError(f"{SIDES[0]}: pixels of no class, expected a label to ignore")
    some = found.any(axis=0)
    first = max(at.first, 1) if not at.classes else at.first
    labels = np.where(some, found.argmax(axis=0) + first, nothing)
    scale = at.divisor if at.divisor and at.unit != "class" else 1
    return labels * scale, gt.labels
