"""What a metric is: `count` makes one image's counts, `scores` makes every number from counts.

Nothing else scores. `scores(stack, weights)` takes the counts of N images and weights (S, N), how
often each image is in each of S data sets. Ones are the data set itself, multinomial draws a
bootstrap, `1 - eye(N)` a jackknife, and `eye(N)` gives the images' own values.

Nothing outside `bsdsbench.metrics` names a metric; the registry finds them, also those of other
packages in the entry point group `bsdsbench.metrics`.
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
from bsdsbench.errors import DataError, ProtocolError, unexpected
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

Opt = TypeVar("Opt")  # of a metric, None where it has none
AT_ODS = "f_at_ods"  # an image's F at the threshold that is best for its run
_BLOCK = 128  # images whose own values are made at a time: weights (128, 128)

# What a metric may read: kind of ground truth, kinds of predictions, the default first.
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
# What the values of files mean, by the kind of predictions or ground truth
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
    """A score, and how it is shown.

    Parameters
    ----------
    key : str
        Its path in the score, as "ap" or "ods.threshold"; a point of a curve stands for its F.
    heading, short : str
        Over the column; the same where space is scarce.
    lower : bool
        True where a smaller value is the better one.
    digits : int
        Decimals in a run's own table; tables of several runs have one less.
    shown : str
        "always", "own" (only in a run's own table), "several" (only in a table of several) or
        "never" (only in files and gates).
    score : bool
        False for what is no score: a threshold, a number of images.
    undefined, quantity : str
        Why it is undefined where it is, for a note under the table; its name in papers, by which
        `explain` takes each column of one quantity for the others.
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
    """Return what `scores` has under "over": how many values each mean includes, and of how many.

    Both are (S,). Tables, result.json and comparisons show them where some values are left out.
    """
    return {
        key: {unit: np.stack(np.broadcast_arrays(n_included, n_all), axis=-1)}
        for key, (n_included, n_all) in counts.items()
    }


def image_means(weights: Weights, values: Mapping[str, F8]) -> dict[str, Any]:
    """Return the mean over images of each value (N,), and under "over" how many it includes."""
    if not values:
        return {}
    columns, n_images = np.column_stack(list(values.values())), weights.sum(axis=1)
    means = weighted_mean(weights, columns).T
    n_defined = weighted_sum(weights, ~np.isnan(columns)).T
    counts = {key: (n, n_images) for key, n in zip(values, n_defined, strict=True)}
    return dict(zip(values, means, strict=True)) | {"over": over("images", counts)}


@frozen
class FilesRead:
    """What the files of both sides hold with some options of a metric.

    Parameters
    ----------
    labels : Kind
        What label maps hold: classes, instances, objects by their number or masks.
    void : tuple of float
        Values of truth files whose pixels are counted nowhere, on either side. They are False in
        the part `valid` of the ground truth (bool, (H, W)), which is there exactly where a metric
        that reads masks or annotators names some; label maps keep theirs.
    numbered : bool
        True if the pieces of masks are objects, which are numbered after they are read.
    classes : tuple of str
        The classes whose maps are a prediction's files; none where it is one file.
    instances : bool
        True if the ground truth's instance maps are read too.
    sequences : bool
        True if images are frames, whose ids are SEQUENCE/FRAME.
    """

    labels: Kind = Kind.CLASSES
    void: tuple[float, ...] = ()
    numbered: bool = False
    classes: tuple[str, ...] = ()
    instances: bool = False
    sequences: bool = False


IGNORE = option(
    (),
    "Values of the ground truth's files that are void: their pixels are counted nowhere, on either "
    "side. One or several; -1 or none: no value is.",
    VOIDS,
    listed_values,
    caption=lambda o: f"void: {', '.join(map(str, o.ignore))}" if o.ignore else "",
)


@frozen
class VoidOptions:
    """The pixels that are counted nowhere."""

    ignore: tuple[float, ...] = IGNORE


def _error_columns() -> tuple[Column, ...]:
    """Return the columns of `error_scores`."""
    groups = {
        "error": ((MISSED, "{} (of annotated)"), (FALSE, "{} (of predicted)")),
        "error_share": ((MISSED, "{} (of missed)"), (FALSE, "{} (of false)")),
        "agreement": ((AGREEMENT, "recall, drawn by {}"),),
        "delta_ods": (((*MISSED, *FALSE), "dODS, {}"), (AGREEMENT, "dODS, drawn by {}")),
    }
    columns = []
    for group, parts in groups.items():
        for names, heading in parts:
            for name in names:
                text, lower = heading.format(name.replace("_", " ")), group != "agreement"
                columns.append(Column(f"{group}.{name}", text, lower=lower, shown="never"))
    return tuple(columns)


ERROR_COLUMNS = _error_columns()
IMAGES = Column("n_images", "images", "n", digits=0, shown="own", score=False)


class Metric(ABC, Generic[Opt]):
    """One benchmark. Instances have no state; the registry makes one of each class.

    What it may offer beside is in `bsdsbench.metrics.optional`: a human form, files, pictures ...

    Attributes
    ----------
    name, title : str
        "boundary"; the heading of its table.
    version : int
        Raised when its counts change; records of other versions are counted again.
    reads : str
        What it compares, a key of `READS`: "annotators" (boundary maps or segmentations with those
        of each annotator), "mask", "classes" (label maps), "depth", "lines" ... From it come
        `gt_kind` and `pred_kinds`, what is read of the ground truth and what a prediction may be.
    segmentations : bool
        True if it reads the segmentations of annotators, and not their boundaries alone.
    photo : bool
        True if the picture itself is of use (`GroundTruth.photo`, None if not found).
    columns, image_columns, part_columns : tuple of Column
        Every score, in the order of tables; what is shown of an image, which are compared by the
        first (default: the first score); the columns of the table of its `parts`.
    numbers : tuple of Column
        Numbers of objects in its scores that are told under the table.
    shared, ragged : tuple of str
        Counts that all images hold in common (thresholds), and those that differ in length.
    default_protocol : str or None
        The preset that is meant where none is given; None: one must be given.
    options : type or None
        Its own options, a frozen attrs class (`protocol.fields`); a table of its name in a
        protocol, `--set NAME.FIELD=VALUE`. A changed default is a new `version`.
    void_option : str
        The name of the option whose values are void in truth files, or "".
    curved : bool
        True if `scores` has the scores of one precision-recall curve: `curve`, `ods` ...
    cuts_at_thresholds : bool
        True if soft maps are cut at the thresholds of the protocol.
    takes_masks : bool
        True if a mask may stand for the only annotator, as pixels are counted and no boundaries.
    void : bool
        True if it counts nothing where `GroundTruth.valid` is False; ground truth with that part
        is refused by others.
    uses : tuple of str
        The fields of a protocol that move its scores; signature and caption say no others.
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
        """Return the counts of one image, arrays by name. Reads no files. Raises DataError.

        Parameters
        ----------
        pred, gt : Prediction, GroundTruth
            What it reads: `pred.soft`, `pred.classes`, `gt.boundaries`, `gt.labels` ...
        protocol : Protocol
            The fields in `uses`.
        opt : object
            Its options in the protocol; None for a metric without any.
        """

    @abstractmethod
    def scores(self, stack: Stack, weights: Weights, protocol: Protocol, opt: Opt) -> ScoreTree:
        """Return every score of S weighted data sets. NaN stands for an undefined one.

        Parameters
        ----------
        stack : dict of str to array
            Name -> (N, ...), the counts of N images; those in `shared` as they are.
        weights : array
            Whole numbers (S, N), how often each image is in each data set.
        protocol, opt
            As `count` has them.

        Returns
        -------
        dict
            Name -> (S,) or (S, T), a `PRCurve` of S curves, or a dict of these. The keys of
            `columns` are paths in it.
        """

    # Defaults that a metric may replace.

    def columns_of(self, keys: Collection[str]) -> tuple[Column, ...]:
        """Return its columns, and those that only some protocols have, of the keys of a score."""
        return self.columns

    def parts(self, protocol: Protocol, opt: Opt) -> Mapping[str, tuple[str, ...]]:
        """Return the parts of the score that have a table of their own: name -> path in it."""
        return {}

    def fits(self, pred: Prediction, gt: GroundTruth, opt: Opt) -> bool:
        """Return False if a prediction of that size cannot be compared with the ground truth."""
        return pred.shape == gt.shape

    def describe(self, protocol: Protocol, opt: Opt) -> str:
        """Return the metric's own conventions in words, printed under the scores; or ""."""
        return "; ".join(captions(opt).values()) if opt else ""

    def usual(self, opt: Opt) -> Sequence[str] | None:
        """Return the keys of the columns that tables show by default; None for all of them."""
        return None

    def used(self, opt: Opt) -> tuple[str, ...]:
        """Return the fields of a protocol that move its scores with these options."""
        return self.uses

    def files_read(self, opt: Opt) -> FilesRead:
        """Return what the files of both sides hold with these options."""
        return FilesRead(void=getattr(opt, self.void_option) if self.void_option else ())

    def has_curve(self, opt: Opt) -> bool:
        """Return True if the score has a precision-recall curve, `curve`."""
        return self.curved

    # What every metric has.

    def all_scores(self, stack: Stack, weights: Weights, protocol: Protocol) -> ScoreTree:
        """Return `scores` and, if errors were counted, the scores of the error classes."""
        package = type(self).__module__.partition(".")[0]
        try:
            scores = self.scores(stack, weights, protocol, self.options_of(protocol))
        except Exception as error:
            if package == "bsdsbench" or isinstance(error, DataError):
                raise
            fault = unexpected(error, {package})
            raise DataError(f"metric {self.name!r}: {fault}") from error
        errors = error_scores(stack, weights, protocol) if COUNTED in stack else {}
        return {**scores, **errors}

    def score_columns(
        self, tree: Mapping[str, object], protocol: Protocol | None
    ) -> Iterator[tuple[str, Column, Any]]:
        """Yield the key, column and value of every score that a tree of scores has.

        Under a protocol those of its parts follow, whose keys are PART.KEY.
        """
        for column in self.columns_of(tree):
            if column.score and (value := value_at(tree, column.key)) is not None:
                yield column.key, column, value
        parts = self.parts(protocol, self.options_of(protocol)) if protocol else {}
        keys = {column.key for column in self.columns_of(tree)}
        for part, path in parts.items():
            scores = part_of(tree, path) or {}
            columns = {c.key: c for c in (*self.part_columns, *self.columns_of(scores))}
            for key, column in columns.items():
                value = value_at(scores, key)
                # Some metrics have the curves of their parts as columns too.
                if column.score and value is not None and ".".join((*path, key)) not in keys:
                    yield f"{part}.{key}", column, value

    def count_image(
        self,
        pred: Prediction | None,
        gt: GroundTruth,
        protocol: Protocol,
        counter: Counter | None = None,
    ) -> Arrays:
        """Count one image, or compare its annotators if there is no prediction.

        A counter goes to a metric that takes one (`has_errors`). Raises DataError where the sizes
        differ, or there is no human form.
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
        """Return what options say about the files of both sides; `pred_kind` as in a run."""
        opt = self.options_of(protocol)
        files = self.files_read(opt)
        names = f"{self.name}.{self.void_option}" if self.void_option else "", self.name
        kind = _KINDS.get(self.gt_kind, files.labels)
        if kind is Kind.BOUNDARIES and protocol.gt_kind == "labels":
            kind = Kind.REGIONS
        pred = _KINDS.get(pred_kind, files.labels)
        gt_options = files.void, protocol.gt_invert, False, True
        return Readings(
            Reading(pred, None, files.void, protocol.invert, protocol.normalise, False, *names),
            Reading(kind, protocol.gt_threshold, *gt_options, *names),
        )

    def options_of(self, protocol: Protocol) -> Opt:
        """Return its options in a protocol, None if it has none. Raises ProtocolError."""
        given, options = protocol.options.get(self.name, {}), None
        if self.options is not None:
            options = record_of(self.options, given, self.name)
        elif given:
            raise ProtocolError(f"options {self.name!r}: this metric has none, expected none")
        return typing.cast(Opt, options)

    def stack(self, images: Sequence[Mapping[str, Any]]) -> dict[str, Map]:
        """Return the counts of N images by name, (N, ...). Raises ShapeError if they differ."""
        return stack_counts(images, self.shared, self.ragged)

    def score(self, records: Sequence[ImageRecord], protocol: Protocol) -> Score:
        """Return the score of a data set: `scores` with weights of one.

        Raises DataError for no records, one without counts of this metric, or different thresholds.
        """
        _, counts = zip(*counts_in_order(records, self.name), strict=True)
        return self.score_of(self.stack(counts), protocol)

    def score_of(self, stack: Stack, protocol: Protocol) -> Score:
        """Return the score of the counts of a data set."""
        n = len(stack[min(stack.keys() - self.shared)])
        once = np.ones((1, n), np.int64)
        return Score({**sample_scores(self.all_scores(stack, once, protocol)), "n_images": n})

    def image_scores(self, stack: Stack, protocol: Protocol) -> Iterator[ScoreTree]:
        """Yield `scores` with each image as a data set of one, of B images at a time: (B,)."""
        block, by_image = dict(stack), stack.keys() - self.shared
        n = len(stack[min(by_image)])
        for first in range(0, n, _BLOCK):
            for name in by_image:
                block[name] = stack[name][first : first + _BLOCK]
            yield self.all_scores(block, np.eye(min(_BLOCK, n - first), dtype=np.int64), protocol)


def _nested(values: ScoreTree) -> ScoreTree:
    """Return a mapping with keys such as "pooled.aji" as nested mappings."""
    tree: dict[str, Any] = {}
    for key, value in values.items():
        *groups, name = key.split(".")
        group = tree
        for part in groups:
            group = group.setdefault(part, {})
        group[name] = value
    return tree


class ValuesMetric(Metric[Opt]):
    """A metric whose scores are means of values that each image has.

    A column is the mean over the images in which it is defined; with `Column.pooled` it is the
    value of the counts summed over images.
    """

    @abstractmethod
    def values(self, counts: Stack, opt: Opt) -> dict[str, F8]:
        """Return the values of N images, or N sums of images, from their counts (N, ...).

        The keys are those of `columns`, the values arrays (N,).
        """

    def scores(self, stack: Stack, weights: Weights, protocol: Protocol, opt: Opt) -> ScoreTree:
        pooled = {column.key for column in self.columns if column.pooled}
        of_images = self.values(stack, opt)
        scores = image_means(weights, {k: v for k, v in of_images.items() if k not in pooled})
        if pooled:
            sums = {name: weighted_sum(weights, counts) for name, counts in stack.items()}
            scores |= {k: v for k, v in self.values(sums, opt).items() if k in pooled}
        return _nested(scores)


def counts_in_order(
    records: Sequence[ImageRecord], metric: str
) -> list[tuple[str, Mapping[str, Any]]]:
    """Return (image id, counts of a metric) in the order of ids.

    Raises DataError for no records, or one without counts of the metric.
    """
    for record in records:
        if metric not in record.counts:
            raise DataError(f"{metric} scores: {record.image_id} has no {metric} counts")
    if not records:
        raise DataError(f"{metric} scores: no records, expected at least one")
    counts = [(record.image_id, record.counts[metric]) for record in records]
    return sorted(counts, key=itemgetter(0))


def at_least_two(gt: GroundTruth, n_annotators: int) -> None:
    """Raise DataError for an image with fewer than two annotators, see `HumanForm`."""
    if n_annotators < 2:
        raise DataError(f"{gt.where}: {n_annotators} annotator(s), expected two or more to compare")
