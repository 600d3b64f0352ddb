"""The interface of a metric: everything that differs between benchmarks, in one object.

A metric states the inputs it needs, counts one image, computes scores from many counts, and names
their columns. Nothing outside `bsdsbench.metrics` names a metric; the registry finds them, also
those of other packages in the entry point group `bsdsbench.metrics`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bsdsbench.files.arguments import given_list, kind_of_value
from bsdsbench.files.errors import DataError, ProtocolError, ShapeError
from bsdsbench.loaders.inputs import GroundTruth, Prediction
from bsdsbench.metrics.columns import Column, Score
from bsdsbench.protocol.fields import captions, record_of
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import Counts, ImageRecord, Stack
from bsdsbench.scores.ratios import Weights

F8 = NDArray[np.float64]


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
    options : type or None
        Its own options, a frozen attrs class (`protocol.fields`); a table of its name in a
        protocol, `--set NAME.FIELD=VALUE`. A changed default is a new `version`.
    uses : tuple of str
        The fields of a protocol that move its scores; signature and caption say no others.

    Examples
    --------
    >>> from bsdsbench.metrics import registry
    >>> metric = registry.get("region")
    >>> metric.gt_kind, metric.pred_kinds
    ('annotators', ('soft', 'labels'))
    >>> prediction, truth, protocol = metric.example()
    >>> metric.fits(prediction, truth, protocol)
    True
    """

    name: ClassVar[str]
    title: ClassVar[str]
    version: ClassVar[int] = 1
    pred_kinds: ClassVar[tuple[str, ...]] = ("soft", "labels")
    gt_kind: ClassVar[str] = "annotators"
    photo: ClassVar[bool] = False
    counts_type: ClassVar[type[Counts]]
    columns: ClassVar[tuple[Column, ...]]
    image_columns: ClassVar[tuple[Column, ...]]
    part_columns: ClassVar[tuple[Column, ...]] = ()
    default_protocol: ClassVar[str | None] = "bsds500"
    options: ClassVar[type[Any] | None] = None
    uses: ClassVar[tuple[str, ...]] = Protocol.names()

    @abstractmethod
    def count(self, pred: Prediction, gt: GroundTruth, protocol: Protocol) -> Counts:
        """One image's counts. No disk. Raises DataError.

        Parameters
        ----------
        pred : Prediction
            One image's prediction.
        gt : GroundTruth
            Its ground truth.
        protocol : Protocol
            Its settings and options.
        """

    @abstractmethod
    def scores(self, stack: Stack, weights: Weights, protocol: Protocol) -> dict[str, F8]:
        """Every score of weighted data sets, by the keys of `columns` and more, each (S,).

        The one place where scores are computed. NaN stands for an undefined score.

        Parameters
        ----------
        stack : dict of str to array
            Field -> (N, ...), shared fields as they are, see `Counts.stacked`.
        weights : array
            (S, N), how often each of N images is in each of S data sets, see `scores.ratios`.
        protocol : Protocol
            Its settings and options.
        """

    @abstractmethod
    def image_values(self, counts: Any) -> dict[str, float]:
        """One image's own values, by the keys of `image_columns` and more.

        Parameters
        ----------
        counts : Counts
            One image's.
        """

    def values_of_images(self, counts: Sequence[Any]) -> list[dict[str, float]]:
        """`image_values` of each of several images; a metric may have a quicker way.

        Parameters
        ----------
        counts : sequence of Counts
            Of images with the same shared fields.

        Returns
        -------
        list of dict
            In their order.
        """
        return [self.image_values(c) for c in counts]

    def score(self, records: Iterable[ImageRecord], protocol: Protocol) -> Any:
        """The score of a data set: `scores` with weights of one, as an object to look at.

        Raises DataError for no records, one without counts of this metric, or different thresholds.

        Parameters
        ----------
        records : sequence of ImageRecord
            One for each image.
        protocol : Protocol
            Its settings and options.

        Returns
        -------
        object
            With `n_images`, `to_mapping()` and the columns' keys as attributes.
        """
        ids, images = zip(*counts_in_order(records, self.name), strict=True)
        stack = self.stack(images)
        found = self.scores(stack, np.ones((1, len(images)), np.int64), protocol)
        values = {key: float(value[0]) for key, value in found.items()}
        return self.result(values, stack, ids, protocol)

    def result(
        self, values: Mapping[str, float], stack: Stack, ids: Sequence[str], protocol: Protocol
    ) -> Any:
        """What `score` gives, an object with `n_images` and `to_mapping()`.

        Parameters
        ----------
        values : dict of str to float
            What `scores` gives for weights of one.
        stack : dict of str to array
            Field -> (N, ...), see `Counts.stacked`.
        ids : sequence of str
            Image ids, in the order of the stack.
        protocol : Protocol
            Its settings and options.

        Returns
        -------
        object
            The score that users see.
        """
        return Score(values, len(ids))

    def stack(self, images: Sequence[Any]) -> Stack:
        """The counts of one or more images as arrays. Raises DataError if they do not fit.

        Parameters
        ----------
        images : sequence of Counts
            One for each image.

        Returns
        -------
        dict
            Field -> array, see `Counts.stacked`.
        """
        try:
            return self.counts_type.stacked(images)
        except ShapeError as error:
            raise DataError(f"{self.name} scores: {error}") from None

    @abstractmethod
    def example(self) -> tuple[Prediction, GroundTruth, Protocol]:
        """A tiny problem, by which a worker warms up."""

    def count_humans(self, gt: GroundTruth, protocol: Protocol) -> Counts:
        """Each annotator against the others. Raises DataError where there is no such form.

        Parameters
        ----------
        gt : GroundTruth
            Its ground truth.
        protocol : Protocol
            Its settings and options.
        """
        raise DataError(f"metric {self.name!r}: has no human form")

    def check(self, protocol: Protocol) -> None:
        """Raise ProtocolError if the protocol lacks what the metric needs.

        Parameters
        ----------
        protocol : Protocol
            Its settings and options.
        """
        return

    def fits(self, pred: Prediction, gt: GroundTruth, protocol: Protocol) -> bool:
        """False if a prediction of that size cannot be compared with the ground truth.

        Parameters
        ----------
        pred : Prediction
            One image's prediction.
        gt : GroundTruth
            Its ground truth.
        protocol : Protocol
            Its settings and options.

        Returns
        -------
        bool
            True if `count` accepts their sizes.
        """
        return pred.shape == gt.shape

    def options_of(self, protocol: Protocol) -> Any:
        """Its options in a protocol. Raises ProtocolError for an unknown one and a wrong value.

        Parameters
        ----------
        protocol : Protocol
            Its settings and options.

        Returns
        -------
        object
            The checked record, made once a protocol.
        """
        if self.options is None:
            raise ProtocolError(f"options {self.name!r}: this metric has none, expected none")
        made = protocol.resolved
        if self.options not in made:
            given = protocol.options.get(self.name, {})
            made[self.options] = record_of(self.options, given, self.name)
        return made[self.options]

    def describe(self, protocol: Protocol) -> str:
        """Its own conventions in words, printed under the scores beside what it uses; or "".

        Parameters
        ----------
        protocol : Protocol
            Its settings and options.

        Returns
        -------
        str
            One line, or "".
        """
        return "; ".join(captions(self.options_of(protocol)).values()) if self.options else ""

    def used(self, protocol: Protocol) -> tuple[str, ...]:
        """The fields of a protocol that move its scores with these options: `uses`, or fewer.

        Parameters
        ----------
        protocol : Protocol
            Its settings and options.

        Returns
        -------
        tuple of str
            Names of fields.
        """
        return self.uses

    def class_names(self, protocol: Protocol) -> tuple[str, ...]:
        """The classes whose maps are a prediction's files; none where it is one file.

        Parameters
        ----------
        protocol : Protocol
            Its settings and options.

        Returns
        -------
        tuple of str
            In the order of the labels.
        """
        return ()

    def reads_instances(self, protocol: Protocol) -> bool:
        """True if the ground truth's instance maps are read too.

        Parameters
        ----------
        protocol : Protocol
            Its settings and options.

        Returns
        -------
        bool
            False for most metrics.
        """
        return False

    def files(
        self, score: Any, records: Sequence[ImageRecord], protocol: Protocol
    ) -> Iterator[tuple[str, str]]:
        """Further files of a run's folder: name and text.

        Parameters
        ----------
        score : object
            What `score` gives.
        records : sequence of ImageRecord
            One for each image.
        protocol : Protocol
            Its settings and options.

        Returns
        -------
        iterator of tuple of str, str
            Name and text of each file.
        """
        return iter(())

    def parts(self, score: Any) -> Mapping[str, Any]:
        """Scores within the score that have a table of their own: name -> score.

        Parameters
        ----------
        score : object
            What `score` gives.

        Returns
        -------
        dict
            Name -> score; empty for most metrics.
        """
        return {}

    def has_tables(self, tables: Mapping[str, Any]) -> bool:
        """True if official tables, {file name: rows}, hold scores of this metric.

        Parameters
        ----------
        tables : dict
            File name -> rows.

        Returns
        -------
        bool
            True if `reported` can read them.
        """
        return False

    def reported(self, tables: Mapping[str, Any], run: str) -> Any:
        """The score that official tables hold. Raises DataError, naming `run`.

        Parameters
        ----------
        tables : dict
            File name -> rows.
        run : str
            A name for messages.
        """
        raise DataError(f"{run}: metric {self.name} has no official tables")

    def symptoms(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol
    ) -> Iterator[tuple[str, str, str]]:
        """What looks wrong in an image that can be counted.

        Parameters
        ----------
        pred : Prediction
            One image's prediction.
        gt : GroundTruth
            Its ground truth.
        protocol : Protocol
            Its settings and options.

        Returns
        -------
        iterator of tuple of str
            (code, words, what fixes it).
        """
        return iter(())

    def same_truth(self, a: Any, b: Any) -> bool:
        """False if the counts of one image cannot come from the same ground truth.

        Parameters
        ----------
        a, b : Counts
            Of one image in two runs.

        Returns
        -------
        bool
            True if nothing speaks against it.
        """
        return True


def counts_in_order(records: Iterable[ImageRecord], metric: str) -> list[tuple[str, Any]]:
    """(image id, counts of a metric) in id order. Raises DataError for none, or missing counts."""
    found = given_list(records, "records", "ImageRecords")
    for record in found:
        if not isinstance(record, ImageRecord):
            raise DataError(f"records: {kind_of_value(record)}, expected ImageRecords")
        if metric not in record.counts:
            raise DataError(f"{metric} scores: expected every record to have {metric} counts")
    if not found:
        raise DataError(f"{metric} scores: no records, expected at least one")
    return [(r.image_id, r.counts[metric]) for r in sorted(found, key=lambda r: r.image_id)]


def at_least_two(gt: GroundTruth, found: int) -> None:
    """Raise DataError unless there are annotators to compare.

    How well the annotators agree is the "human" point of precision-recall plots: each one is
    evaluated against the others, counts are summed (Martin et al. 2004; Pont-Tuset and Marques,
    PAMI 2016). Each metric has its own form, `Metric.count_humans`.
    """
    if found < 2:
        raise DataError(
            f"{gt.path or gt.image_id}: {found} annotator(s), expected two or more to compare"
        )


def column_values(columns: Sequence[Column], mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Key of each column -> its number in a score's `to_mapping()`; None where undefined."""
    return {c.key: _value_at(mapping, c.key.split(".")) for c in columns}


def _value_at(value: Any, path: Sequence[str]) -> float | None:
    for part in path:
        value = value.get(part) if isinstance(value, Mapping) else None
    if isinstance(value, Mapping):
        value = value.get("f")
    return None if value is None or value != value else value
