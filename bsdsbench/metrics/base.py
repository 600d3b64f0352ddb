"""What a metric is: everything that differs between one benchmark and another, in one object.

A metric says what it needs of the inputs, counts one image, makes scores of many counts, and names
the columns they are shown in. Nothing outside `bsdsbench.metrics` names one; the registry finds
them by name, those of other packages by the entry point group `bsdsbench.metrics`.
"""

from __future__ import annotations

import typing
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.arguments import given_list, kind_of_value
from bsdsbench.files.errors import DataError
from bsdsbench.loaders.inputs import GroundTruth, Prediction
from bsdsbench.metrics.sampling import CurveSampler, Sampler
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.ap_rules import area, rows_of_counts
from bsdsbench.scores.counts import ArrayRecord, BoundaryCounts, ImageRecord
from bsdsbench.scores.precision_recall import (
    CurveCounts,
    OperatingPoint,
    PRCurve,
    best_index,
    best_point,
    best_row,
    curve_of,
    four_counts,
    one_point,
    or_none,
    point_of,
    pr_curve,
)
from bsdsbench.tables.read_only import ReadOnly
from bsdsbench.tables.result_object import ShownScore

I8 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Column:
    """A value of a score, or of one image, and how it is shown.

    Parameters
    ----------
    key : str
        Its path in `to_mapping()`, as "ods" or "covering.ods"; a point of a PR curve stands for its
        F, its other numbers are "ods.threshold", "ods.precision", "ods.recall".
    heading : str
        Over the column.
    short : str
        The same where space is scarce.
    lower : bool
        True where a smaller value is the better one.
    digits : int
        Decimals in a run's own table; tables of several runs have one less.
    shown : str
        "always", "own" (only in a run's own table) or "never" (only in files and gates).
    score : bool
        False for what is no score: a threshold, a number of images.
    """

    key: str
    heading: str
    short: str = ""
    lower: bool = False
    digits: int = 4
    shown: str = "always"
    score: bool = True


class Score(typing.Protocol):
    """What `Metric.score` gives: plain values, undefined ones as None or NaN."""

    @property
    def n_images(self) -> int: ...
    def to_mapping(self) -> dict[str, Any]: ...


class Metric(ABC):
    """One benchmark. Instances have no state; the registry makes one of each class.

    Attributes
    ----------
    name, title : str
        "boundary"; what its table is headed.
    version : int
        Raised when its counts change; records of other versions are counted again.
    pred_kinds : tuple of str
        What a prediction may be, the default first: "soft" (boundary maps, ucm2, segs), "labels"
        (label maps), "classes" (class maps).
    gt_kind : str
        What is read of the ground truth: "annotators" (boundaries and segmentations of each),
        "classes" (labels or boundaries of classes), "mask" (one binary mask).
    photo : bool
        True if the picture itself is of use (`GroundTruth.photo`, None if not found).
    counts_type : type
        Frozen arrays; those of all images go to counts.npz under NAME.FIELD.
    columns : tuple of Column
        Every score, in the order of tables.
    image_columns : tuple of Column
        What the report shows of an image; images are compared by the first.
    part_columns : tuple of Column
        The columns of those tables, see `parts`.
    default_protocol : str or None
        The preset that is meant where none is given; None: one must be given.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    version: ClassVar[int] = 1
    pred_kinds: ClassVar[tuple[str, ...]] = ("soft", "labels")
    gt_kind: ClassVar[str] = "annotators"
    photo: ClassVar[bool] = False
    counts_type: ClassVar[type[ArrayRecord]]
    columns: ClassVar[tuple[Column, ...]]
    image_columns: ClassVar[tuple[Column, ...]]
    part_columns: ClassVar[tuple[Column, ...]] = ()
    default_protocol: ClassVar[str | None] = "bsds500"

    @abstractmethod
    def count(self, pred: Prediction, gt: GroundTruth, protocol: Protocol) -> ArrayRecord:
        """One image's counts. No disk. Raises DataError."""

    @abstractmethod
    def score(self, records: Iterable[ImageRecord], protocol: Protocol) -> Any:
        """The score of a data set, an object as `Score`. Pure. Raises DataError for no records."""

    @abstractmethod
    def image_values(self, counts: Any) -> dict[str, float]:
        """One image's own values, by the keys of `image_columns` and more."""

    @abstractmethod
    def sampler(self, records: Sequence[ImageRecord], protocol: Protocol) -> Sampler:
        """What a bootstrap resamples: the scores of many weightings of the images at once."""

    @abstractmethod
    def example(self) -> tuple[Prediction, GroundTruth, Protocol]:
        """A tiny problem, by which a worker warms up."""

    def count_humans(self, gt: GroundTruth, protocol: Protocol) -> ArrayRecord:
        """Each annotator against the others. Raises DataError where there is no such form."""
        raise DataError(f"metric {self.name!r}: has no human form")

    def check(self, protocol: Protocol) -> None:
        """Raise ProtocolError if the protocol lacks what the metric needs."""
        return

    def fits(self, pred: Prediction, gt: GroundTruth, protocol: Protocol) -> bool:
        """False if a prediction of that size cannot be compared with the ground truth."""
        return pred.shape == gt.shape

    def describe(self, protocol: Protocol) -> str:
        """The conventions in words, to be printed under the scores."""
        return f"protocol {protocol.describe()}"

    def files(
        self, score: Any, records: Sequence[ImageRecord], protocol: Protocol
    ) -> Iterator[tuple[str, str]]:
        """Further files of a run's folder: name and text."""
        return iter(())

    def parts(self, score: Any) -> Mapping[str, Any]:
        """Scores within the score that have a table of their own: name -> score."""
        return {}

    def has_tables(self, tables: Mapping[str, Any]) -> bool:
        """True if official tables, {file name: rows}, hold scores of this metric."""
        return False

    def reported(self, tables: Mapping[str, Any], run: str) -> Any:
        """The score that official tables hold. Raises DataError, naming `run`."""
        raise DataError(f"{run}: metric {self.name} has no official tables")

    def same_truth(self, a: Any, b: Any) -> bool:
        """False if the counts of one image cannot come from the same ground truth."""
        return True


class CurveMetric(Metric):
    """A metric with a precision-recall curve: ODS, OIS, AP, curves and bootstrap come with it.

    Its counts are `CurveCounts`: thresholds f8 (T,), matched_gt, total_gt, matched_pred and
    total_pred i8 (T,). Most need no more than `count` and `example`.
    """

    counts_type: ClassVar[type[ArrayRecord]] = BoundaryCounts
    columns: ClassVar[tuple[Column, ...]] = (
        Column("ods", "ODS"),
        Column("ods.threshold", "ODS threshold", "at", digits=3, shown="own", score=False),
        Column("ods.precision", "ODS P", "P", shown="own", score=False),
        Column("ods.recall", "ODS R", "R", shown="own", score=False),
        Column("ois", "OIS"),
        Column("ap", "AP"),
        Column("n_images", "images", "n", digits=0, shown="own", score=False),
    )
    image_columns: ClassVar[tuple[Column, ...]] = (
        Column("f", "F"),
        Column("precision", "P"),
        Column("recall", "R"),
        Column("threshold", "at", score=False),
    )

    def score(self, records: Iterable[ImageRecord], protocol: Protocol) -> CurveScore:
        """ODS, OIS, AP and the curve of summed counts."""
        return CurveScore(**curve_scores(counts_in_order(records, self.name), protocol))

    def image_values(self, counts: CurveCounts) -> dict[str, float]:
        """The image's best point: threshold, recall, precision, f."""
        return best_point(pr_curve(counts)).to_mapping()

    def sampler(self, records: Sequence[ImageRecord], protocol: Protocol) -> CurveSampler:
        """ods, ois and ap of summed counts."""
        return CurveSampler([r.counts[self.name] for r in records], protocol)

    def same_truth(self, a: CurveCounts, b: CurveCounts) -> bool:
        """True if both have the same numbers of annotated pixels."""
        return set(a.total_gt.tolist()) == set(b.total_gt.tolist())


@dataclass(frozen=True, slots=True, eq=False)
class MatchMaps(ReadOnly):
    """Which pixels are matched at one threshold, for overlays. All bool, read-only.

    true_pred, false_pred : (H, W), predicted pixels matched with some annotator, with none
    matched_gt, missed_gt : (A, H, W), each annotator's pixels that are matched, that are not
    """

    true_pred: NDArray[np.bool_]
    false_pred: NDArray[np.bool_]
    matched_gt: NDArray[np.bool_]
    missed_gt: NDArray[np.bool_]


class MatchingMetric(CurveMetric):
    """A curve metric whose matched pixels can be drawn."""

    @abstractmethod
    def match_maps(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, threshold: float
    ) -> MatchMaps:
        """The pixels that `count` counts at one threshold."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class CurveScore(ShownScore):
    """Scores of a metric with a PR curve; all in [0, 1].

    Parameters
    ----------
    ods, ois : OperatingPoint
        Best F at one threshold of all images, and at each image's own.
    ap : float
        Area under the PR curve; NaN where the curve is one point (label maps).
    n_images : int
        Number of images.
    curve : PRCurve
        Counts summed over the images, at each threshold.
    per_image : tuple of tuple of str, OperatingPoint
        (image id, its best point), in id order.
    """

    ods: OperatingPoint
    ois: OperatingPoint
    ap: float
    n_images: int
    curve: PRCurve
    per_image: tuple[tuple[str, OperatingPoint], ...]

    def more(self) -> dict[str, Any]:
        """Scores beside ODS, OIS and AP, as plain values."""
        return {}

    def to_mapping(self) -> dict[str, Any]:
        """The metric's object in result.json."""
        return {
            "ods": self.ods.to_mapping(),
            "ois": self.ois.to_mapping(),
            "ap": or_none(self.ap),
            **self.more(),
            "n_images": self.n_images,
        }


def curve_scores(images: Iterable[tuple[str, CurveCounts]], protocol: Protocol) -> dict[str, Any]:
    """The fields of a `CurveScore` from the (image id, counts) of at least one image."""
    thresholds, total = np.zeros(0), np.zeros((0, 4), np.int64)
    at_best = np.zeros(4, np.int64)
    per_image: list[tuple[str, OperatingPoint]] = []
    for image_id, counts in images:
        four, curve = four_counts(counts), pr_curve(counts)
        total = total + four if per_image else four
        thresholds = counts.thresholds
        at_best = at_best + four[best_index(curve)]
        per_image.append((image_id, best_point(curve)))
    curve = curve_of(thresholds, total)
    rows = rows_of_counts(thresholds, total, protocol.operator)
    return {
        "ods": best_point(curve) if protocol.ods_rule == "interpolated" else best_row(curve),
        "ois": point_of(at_best),
        "ap": float("nan") if one_point(curve.recall) else area(rows, protocol.ap_rule),
        "n_images": len(per_image),
        "curve": curve,
        "per_image": tuple(per_image),
    }


def counts_in_order(records: Iterable[ImageRecord], metric: str) -> Iterator[tuple[str, Any]]:
    """(image id, counts of a metric) in id order.

    Raises DataError for no records, one without such counts, or different thresholds.
    """
    if not getattr(records, "in_id_order", False):
        records = given_list(records, "records", "ImageRecords")
        for record in records:
            if not isinstance(record, ImageRecord):
                raise DataError(f"records: {kind_of_value(record)}, expected ImageRecords")
        records = sorted(records, key=lambda r: r.image_id)
    thresholds = None
    for record in records:
        counts = record.counts.get(metric)
        if counts is None:
            break
        found = counts.arrays().get("thresholds", np.zeros(0)).tobytes()
        if thresholds not in (None, found):
            raise DataError(f"{metric} scores: images have different thresholds, expected the same")
        thresholds = found
        yield record.image_id, counts
    else:
        if thresholds is not None:
            return
        raise DataError(f"{metric} scores: no records, expected at least one")
    raise DataError(f"{metric} scores: expected every record to have {metric} counts")


def counts_by_id(records: Iterable[ImageRecord], metric: str) -> dict[str, Any]:
    """image_id -> counts, in id order. Raises as `counts_in_order`."""
    return dict(counts_in_order(records, metric))


def column_values(columns: Sequence[Column], mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Key of each column -> its number in a score's `to_mapping()`; None where undefined."""
    return {c.key: _value_at(mapping, c.key.split(".")) for c in columns}


def _value_at(value: Any, path: Sequence[str]) -> float | None:
    for part in path:
        value = value.get(part) if isinstance(value, Mapping) else None
    if isinstance(value, Mapping):
        value = value.get("f")
    return None if value is None or value != value else value


def at_least_two(gt: GroundTruth, found: int) -> None:
    """Raise DataError unless there are annotators to compare."""
    if found < 2:
        raise DataError(
            f"{gt.path or gt.image_id}: {found} annotator(s), expected two or more to compare"
        )
