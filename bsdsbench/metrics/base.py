"""The base class of metrics: `count` counts one image, `scores` computes all scores from counts.

Scores are computed nowhere else. `scores(stack, weights)` takes the counts of N images and weights
(S, N): how often each image occurs in each of S data sets. Ones give the data set itself,
multinomial draws a bootstrap, `1 - eye(N)` a jackknife, and `eye(N)` the scores of each image.

No module outside `bsdsbench.metrics` names a metric. The registry finds them, including those of
other packages in the entry point group `bsdsbench.metrics`.
"""

from __future__ import annotations

import typing
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from attrs import frozen
from numpy.typing import ArrayLike, NDArray

from bsdsbench.arguments import F8
from bsdsbench.errors import DataError, ProtocolError, describe_unexpected
from bsdsbench.images import GroundTruth, Map, Prediction, same_shape
from bsdsbench.loaders.reading import Kind, Reading, Readings
from bsdsbench.metrics.optional import Arrays as Arrays
from bsdsbench.metrics.optional import Counter as Counter
from bsdsbench.metrics.optional import HumanForm
from bsdsbench.metrics.optional import ScoreTree as ScoreTree
from bsdsbench.metrics.optional import Symptoms as Symptoms
from bsdsbench.metrics.optional import Texts as Texts
from bsdsbench.protocol.fields import VOIDS, captions, listed_values, option, record_of
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import (
    ImageRecord,
    Score,
    Stack,
    part_of,
    sample_scores,
    stack_counts,
    value_at,
)
from bsdsbench.scores.error_scores import AGREEMENT, COUNTED, FALSE, MISSED, error_scores
from bsdsbench.scores.ratios import Weights, weighted_mean, weighted_sum

Opt = TypeVar("Opt")  # the class of a metric's options, None if it has none
AT_ODS = "f_at_ods"  # an image's F at the threshold that is best for its run
_BLOCK = 128  # images scored one by one in a single call: weights (128, 128)

# `Metric.reads` -> (kind of ground truth, kinds of predictions with the default first)
READS = {
    "annotators": ("annotators", ("soft", "labels")),
    "regions": ("annotators", ("labels",)),
    "soft": ("annotators", ("soft",)),
    "mask": ("mask", ("soft",)),
    "classes": ("classes", ("classes",)),
    "depth": ("depth-map", ("depth-map",)),
    "lines": ("lines", ("lines",)),
    "oriented": ("oriented", ("oriented",)),
}
# kind of predictions or ground truth -> the meaning of the values in its files
_KINDS = {
    "soft": Kind.SOFT,
    "labels": Kind.REGIONS,
    "annotators": Kind.BOUNDARIES,
    "mask": Kind.MASK,
    "depth-map": Kind.DEPTH,
    "lines": Kind.LINES,
    "oriented": Kind.BOUNDARIES,
}


@dataclass(frozen=True, slots=True)
class Column:
    """A score, and how tables show it.

    Parameters
    ----------
    key : str
        The path of the score in a `ScoreTree`, such as "ap" or "ods.threshold". The path of a
        point of a curve stands for its F.
    heading, short : str
        The heading of the column, and a shorter one for narrow tables.
    lower : bool
        True if smaller values are better.
    digits : int
        Decimals in the table of one run; tables of several runs have one less.
    shown : str
        "always", "own" (only in the table of one run), "several" (only in tables of several runs)
        or "never" (only in files and gates).
    score : bool
        False for values that are no scores, such as a threshold or a number of images.
    undefined : str
        Why the score can be undefined, for a note under the table.
    quantity : str
        The name under which papers report the score. `explain` compares a reported number with all
        columns of the same quantity.
    pooled : bool
        True if a `ValuesMetric` computes it from the counts summed over images, False if it is the
        mean of the images' values.

    Examples
    --------
    >>> Column("ods", "ODS").digits
    4
    """

    key: str
    heading: str
    short: str = ""
    lower: bool = False
    digits: int = 4
    shown: str = "always"
    score: bool = True
    undefined: str = "nothing in these images defines it"
    quantity: str = ""
    pooled: bool = False


Over = dict[str, dict[str, NDArray[Any]]]  # score -> unit -> values included and all, (S, 2)


def over(unit: str, counts: Mapping[str, tuple[ArrayLike, ArrayLike]]) -> Over:
    """Build the entry "over" of `scores`: how many values each mean includes, and of how many.

    counts: score -> (number included, number of all), each (S,).
    unit: what is counted, such as "images".

    Tables, result.json and comparisons show the numbers if some values are left out.
    """
    return {
        key: {unit: np.stack(np.broadcast_arrays(n_included, n_all), axis=-1)}
        for key, (n_included, n_all) in counts.items()
    }


def image_means(weights: Weights, values: Mapping[str, F8]) -> dict[str, Any]:
    """Compute the weighted means over images, without the images whose value is NaN.

    weights (S, N): how often each image occurs in each data set.
    values: name -> (N,), a value of each image.

    Returns name -> (S,), and "over": how many images each mean includes. Without values it is {}.
    """
    if not values:
        return {}
    columns = np.column_stack(list(values.values()))  # (N, values)
    n_images = weights.sum(axis=1)
    means = weighted_mean(weights, columns).T
    n_defined = weighted_sum(weights, ~np.isnan(columns)).T  # (values, S)
    n_of_all = {name: (n, n_images) for name, n in zip(values, n_defined, strict=True)}
    return dict(zip(values, means, strict=True)) | {"over": over("images", n_of_all)}


@frozen
class FilesRead:
    """What the files of predictions and ground truth hold, as a metric's options say.

    Parameters
    ----------
    labels : Kind
        The content of label maps: classes, instances, objects by their number, or masks.
    void : tuple of float
        Values in ground-truth files whose pixels are not counted in either map. Readers of masks
        and annotators turn them into the part `valid` of the ground truth, bool (H, W), False at
        these pixels; label maps keep their void labels.
    classes : tuple of str
        The classes, if a prediction has one file for each class; () if it is one file.
    instances : bool
        True if the instance maps of the ground truth are read too.
    sequences : bool
        True if images are frames with ids SEQUENCE/FRAME.
    """

    labels: Kind = Kind.CLASSES
    void: tuple[float, ...] = ()
    classes: tuple[str, ...] = ()
    instances: bool = False
    sequences: bool = False


IGNORE = option(
    (),
    "Value, or values, of the ground-truth files that mark void pixels, which are not counted on "
    "either side; -1 or none if there are no void pixels.",
    VOIDS,
    listed_values,
    caption=lambda o: f"void: {', '.join(map(str, o.ignore))}" if o.ignore else "",
)


@frozen
class VoidOptions:
    """The option of metrics that leave out void pixels."""

    ignore: tuple[float, ...] = IGNORE


def _error_columns() -> tuple[Column, ...]:
    """Return the columns of the scores of `error_scores`, such as "error.absent"."""
    groups = {  # group -> (names of its scores, their heading)
        "error": ((MISSED, "{} (of annotated)"), (FALSE, "{} (of predicted)")),
        "error_share": ((MISSED, "{} (of missed)"), (FALSE, "{} (of false)")),
        "agreement": ((AGREEMENT, "recall, drawn by {}"),),
        "delta_ods": (((*MISSED, *FALSE), "dODS, {}"), (AGREEMENT, "dODS, drawn by {}")),
    }
    columns = []
    for group, parts in groups.items():
        for names, heading in parts:
            for name in names:
                text = heading.format(name.replace("_", " "))
                lower = group != "agreement"
                columns.append(Column(f"{group}.{name}", text, lower=lower, shown="never"))
    return tuple(columns)


ERROR_COLUMNS = _error_columns()
IMAGES = Column("n_images", "images", "n", digits=0, shown="own", score=False)


class Metric(ABC, Generic[Opt]):
    """The base class of metrics. Instances have no state; the registry makes one of each class.

    Optional abilities (a human form, further files, pictures) are in `bsdsbench.metrics.optional`.

    Attributes
    ----------
    name, title : str
        "boundary"; the heading of its table.
    version : int
        Increased when the counts change; records of other versions are counted again.
    reads : str
        What the metric compares, a key of `READS`: "annotators" (boundary maps or segmentations
        with those of each annotator), "mask", "classes" (label maps), "depth", "lines" ... It
        determines `gt_kind` and `pred_kinds`, the kinds of ground truth and predictions.
    segmentations : bool
        True if the annotators' segmentations are needed, not only their boundaries.
    photo : bool
        True if the image itself is used (`GroundTruth.photo`, None if not found).
    columns : tuple of Column
        Every score, in the order of tables.
    image_columns : tuple of Column
        The values shown for one image; images are compared by the first. Default: the first score.
    part_columns : tuple of Column
        The columns of the table of `parts`.
    numbers : tuple of Column
        Numbers of objects in its scores that are told under the table.
    shared, ragged : tuple of str
        Counts that are equal for all images (thresholds), and counts that differ in length.
    default_protocol : str or None
        The preset to use if the user names none; None if the user must name one.
    options : type or None
        The metric's own options, a frozen attrs class (`protocol.fields`). Users set them in the
        table of a protocol that has the metric's name, or by `--set NAME.FIELD=VALUE`. Increase
        `version` if a default changes.
    void_option : str
        The name of the option whose values are void in ground-truth files, or "".
    ap_option : str
        The name of the option that is its own rule of AP, or "" if the protocol's rule holds.
    beta2_option : str
        The name of the option that is beta^2 of its F, or "" if that is 1.
    curved : bool
        True if `scores` has one precision-recall curve with its scores: `curve`, `ods` ...
    cuts_at_thresholds : bool
        True if soft maps are binarised at the thresholds of the protocol.
    takes_masks : bool
        True if a mask may replace the only annotator, because pixels are counted, not boundaries.
    void : bool
        True if pixels are left out where `GroundTruth.valid` is False. Other metrics refuse ground
        truth that has this part.
    uses : tuple of str
        The fields of a protocol that affect the scores; signature and caption show only these.
    several_tolerances : bool
        True if it counts at each of several tolerances; others that use one refuse them.
    has_errors : bool
        True if its missed and false pixels have classes: `count` then takes a `counter`, which
        counts more than `boundary_counts`, and `columns` have those of `error_scores` too.

    Examples
    --------
    >>> from bsdsbench.metrics import registry
    >>> registry.get("region").pred_kinds
    ('soft', 'labels')
    """

    name: ClassVar[str]
    title: ClassVar[str]
    version: ClassVar[int] = 1
    reads: ClassVar[str] = "annotators"
    segmentations: ClassVar[bool] = False
    photo: ClassVar[bool] = False
    columns: ClassVar[tuple[Column, ...]] = ()
    image_columns: ClassVar[tuple[Column, ...]] = ()
    part_columns: ClassVar[tuple[Column, ...]] = ()
    numbers: ClassVar[tuple[Column, ...]] = ()
    shared: ClassVar[tuple[str, ...]] = ("thresholds",)
    ragged: ClassVar[tuple[str, ...]] = ()
    default_protocol: ClassVar[str | None] = "bsds500"
    options: ClassVar[type[Any] | None] = None
    void_option: ClassVar[str] = ""
    ap_option: ClassVar[str] = ""
    beta2_option: ClassVar[str] = ""
    curved: ClassVar[bool] = False
    cuts_at_thresholds: ClassVar[bool] = False
    takes_masks: ClassVar[bool] = False
    void: ClassVar[bool] = False
    uses: ClassVar[tuple[str, ...]] = ()
    several_tolerances: ClassVar[bool] = False
    has_errors: ClassVar[bool] = False
    gt_kind: ClassVar[str]
    pred_kinds: ClassVar[tuple[str, ...]]
    # False where boundaries stand for the segmentations that they were made of
    reads_whole_truth: ClassVar[bool]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.reads not in READS:
            words = ", ".join(READS)
            raise DataError(f"{cls.__name__}: reads {cls.reads!r}, expected one of {words}")
        cls.gt_kind, cls.pred_kinds = READS[cls.reads]
        cls.reads_whole_truth = cls.segmentations or cls.gt_kind != "annotators"
        if not cls.image_columns:  # images are compared and listed by one
            cls.image_columns = tuple(column for column in cls.columns if column.score)[:1]
        if "has_errors" in cls.__dict__:
            cls.columns = (*cls.columns[:-1], *ERROR_COLUMNS, cls.columns[-1])

    @abstractmethod
    def count(self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: Opt) -> Arrays:
        """Count one image, without reading files.

        Parameters
        ----------
        pred, gt : Prediction, GroundTruth
            The data to compare: `pred.soft`, `pred.classes`, `gt.boundaries`, `gt.labels` ...
        protocol : Protocol
            The constants; only the fields in `uses` matter.
        opt : object
            The metric's options in the protocol, or None.

        Returns
        -------
        mapping
            Count name -> array.

        Raises
        ------
        DataError
            If the data cannot be compared.
        """

    @abstractmethod
    def scores(self, stack: Stack, weights: Weights, protocol: Protocol, opt: Opt) -> ScoreTree:
        """Compute every score of S weighted data sets; undefined scores are NaN.

        Parameters
        ----------
        stack : dict of str to array
            Count name -> (N, ...), the counts of N images. Counts in `shared` have no first axis.
        weights : array
            Whole numbers (S, N): how often each image occurs in each data set.
        protocol : Protocol
            The constants; only the fields in `uses` matter.
        opt : object
            The metric's options in the protocol, or None.

        Returns
        -------
        dict
            Score name -> array (S,) or (S, T), a `PRCurve` of S curves, or a dict of these. The
            keys of `columns` are paths in it.
        """

    # Defaults that a metric may replace.

    def columns_of(self, keys: Collection[str]) -> tuple[Column, ...]:
        """Return the columns of scores with these keys.

        Some metrics have further columns for the keys of some protocols, such as several
        tolerances.
        """
        return self.columns

    def parts(self, protocol: Protocol, opt: Opt) -> Mapping[str, tuple[str, ...]]:
        """Return the parts that have a table of their own: name -> path in the scores."""
        return {}

    def fits(self, pred: Prediction, gt: GroundTruth, opt: Opt) -> bool:
        """Return True if `count` can take the sizes of the two sides."""
        return pred.shape == gt.shape

    def describe(self, protocol: Protocol, opt: Opt) -> str:
        """Describe the metric's own conventions, or return ""; printed under the scores."""
        return "; ".join(captions(opt).values()) if opt else ""

    def usual(self, opt: Opt) -> Sequence[str] | None:
        """Return the keys of the columns that tables show by default, or None for all columns."""
        return None

    def used(self, opt: Opt) -> tuple[str, ...]:
        """Return the fields of a protocol that affect the scores with these options."""
        return self.uses

    def files_read(self, opt: Opt) -> FilesRead:
        """Return what the files of predictions and ground truth hold with these options."""
        return FilesRead(void=getattr(opt, self.void_option) if self.void_option else ())

    def has_curve(self, opt: Opt) -> bool:
        """Tell whether the scores have a precision-recall curve, `curve`, with these options."""
        return self.curved

    # What every metric has.

    def ap_rule(self, protocol: Protocol) -> str:
        """Return the rule for AP: that of the option `ap_option`, or else the protocol's."""
        record = self.options_of(protocol) if self.ap_option else protocol
        return str(getattr(record, self.ap_option or "ap_rule"))

    def all_scores(self, stack: Stack, weights: Weights, protocol: Protocol) -> ScoreTree:
        """Compute `scores` and, if the counts have classes of errors, the scores of these.

        `stack` and `weights` are as in `scores`. An unexpected error in the metric of another
        package becomes a DataError that names the metric.
        """
        package = type(self).__module__.partition(".")[0]
        try:
            scores = self.scores(stack, weights, protocol, self.options_of(protocol))
        except Exception as error:
            if package == "bsdsbench" or isinstance(error, DataError):
                raise
            fault = describe_unexpected(error, {package})
            raise DataError(f"metric {self.name!r}: {fault}") from error
        errors = error_scores(stack, weights, protocol) if COUNTED in stack else {}
        return {**scores, **errors}

    def score_columns(
        self, tree: Mapping[str, object], protocol: Protocol | None
    ) -> Iterator[tuple[str, Column, Any]]:
        """Yield (key, column, value) of every score in a tree of scores, in the order of columns.

        If a protocol is given, the scores of the metric's parts, such as classes, follow with keys
        PART.KEY. Scores of parts that are columns of the metric too are not repeated.
        """
        for column in self.columns_of(tree):
            if column.score and (value := value_at(tree, column.key)) is not None:
                yield column.key, column, value
        if protocol is None:
            return
        own_keys = {column.key for column in self.columns_of(tree)}
        for part, path in self.parts(protocol, self.options_of(protocol)).items():
            scores = part_of(tree, path) or {}
            columns = {c.key: c for c in (*self.part_columns, *self.columns_of(scores))}
            for key, column in columns.items():
                value = value_at(scores, key)
                is_repeated = ".".join((*path, key)) in own_keys
                if column.score and value is not None and not is_repeated:
                    yield f"{part}.{key}", column, value

    def count_image(
        self,
        pred: Prediction | None,
        gt: GroundTruth,
        protocol: Protocol,
        counter: Counter | None = None,
    ) -> Arrays:
        """Count one image, or compare its annotators with each other if `pred` is None.

        A metric with `has_errors` counts by the `counter`, if one is given; other metrics take no
        notice of it. Raises DataError if the sizes differ, the metric cannot leave out void pixels,
        or it cannot compare annotators.
        """
        opt = self.options_of(protocol)
        if "valid" in gt.parts and not self.void:
            raise DataError(
                f"{gt.where}: has void pixels, which metric {self.name} cannot leave out"
            )
        if pred is None:
            if not isinstance(self, HumanForm):
                raise DataError(f"metric {self.name!r}: has no human form")
            return self.count_humans(gt, protocol, opt)
        if not self.fits(pred, gt, opt):
            same_shape(pred.shape, gt.shape, pred.where)
        count: Callable[..., Arrays] = self.count
        more = {"counter": counter} if counter is not None and self.has_errors else {}
        return count(pred, gt, protocol, opt, **more)

    def readings(self, protocol: Protocol, pred_kind: str) -> Readings:
        """Return how to read the files of predictions of this kind, and of the ground truth.

        `pred_kind` is one of `pred_kinds`, such as "soft". Void values and inversion come from the
        options and the protocol.
        """
        files = self.files_read(self.options_of(protocol))
        void_option = f"{self.name}.{self.void_option}" if self.void_option else ""
        gt_kind = _KINDS.get(self.gt_kind, files.labels)
        if gt_kind is Kind.BOUNDARIES and protocol.gt_kind == "labels":
            gt_kind = Kind.REGIONS
        pred = Reading(
            kind=_KINDS.get(pred_kind, files.labels),
            void=files.void,
            inverted=protocol.invert,
            normalised=protocol.normalise,
            truth=False,
            void_option=void_option,
            metric=self.name,
        )
        gt = Reading(
            kind=gt_kind,
            cut=protocol.gt_threshold,
            void=files.void,
            inverted=protocol.gt_invert,
            void_option=void_option,
            metric=self.name,
        )
        return Readings(pred, gt)

    def options_of(self, protocol: Protocol) -> Opt:
        """Return the metric's options in a protocol, or None if it has none.

        Raises ProtocolError if an option is unknown or has a wrong value.
        """
        given, options = protocol.options.get(self.name, {}), None
        if self.options is not None:
            options = record_of(self.options, given, self.name)
        elif given:
            raise ProtocolError(f"options {self.name!r}: this metric has none, expected none")
        return typing.cast(Opt, options)

    def stack(self, images: Sequence[Mapping[str, Any]]) -> dict[str, Map]:
        """Stack the counts of N images, name -> (N, ...).

        Counts in `shared` are not stacked; counts in `ragged` are filled up with NaN. Raises
        ShapeError if other shapes differ.
        """
        return stack_counts(images, self.shared, self.ragged)

    def score(self, records: Sequence[ImageRecord], protocol: Protocol) -> Score:
        """Compute the scores of a data set, in which each image occurs once.

        Raises DataError if there are no records, a record lacks counts of this metric, or the
        thresholds differ.
        """
        _, counts = zip(*counts_in_order(records, self.name), strict=True)
        return self.score_of(self.stack(counts), protocol)

    def score_of(self, stack: Stack, protocol: Protocol) -> Score:
        """Compute the scores of a data set from the stacked counts of its images."""
        n = len(stack[min(stack.keys() - self.shared)])
        once = np.ones((1, n), np.int64)
        return Score({**sample_scores(self.all_scores(stack, once, protocol)), "n_images": n})

    def image_scores(self, stack: Stack, protocol: Protocol) -> Iterator[ScoreTree]:
        """Yield the scores of single images, of up to _BLOCK at a time; arrays are (images,)."""
        block, per_image = dict(stack), stack.keys() - self.shared
        n = len(stack[min(per_image)])
        for first in range(0, n, _BLOCK):
            for name in per_image:
                block[name] = stack[name][first : first + _BLOCK]
            single = np.eye(min(_BLOCK, n - first), dtype=np.int64)  # each data set is one image
            yield self.all_scores(block, single, protocol)


def counts_in_order(
    records: Sequence[ImageRecord], metric: str
) -> list[tuple[str, Mapping[str, Any]]]:
    """Return (image id, counts) pairs of one metric, sorted by image id.

    Raises DataError if there are no records, or a record lacks counts of the metric.
    """
    for record in records:
        if metric not in record.counts:
            raise DataError(f"{metric} scores: {record.image_id} has no {metric} counts")
    if not records:
        raise DataError(f"{metric} scores: no records, expected at least one")
    counts = [(record.image_id, record.counts[metric]) for record in records]
    return sorted(counts, key=itemgetter(0))


def at_least_two(gt: GroundTruth, n_annotators: int) -> None:
    """Raise DataError if an image has fewer than two annotators."""
    if n_annotators < 2:
        raise DataError(f"{gt.where}: {n_annotators} annotator(s), expected two or more to compare")
