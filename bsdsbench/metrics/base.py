"""The base class of metrics: `count` counts one image, `scores` computes all scores from counts.

`scores(stack, weights)` takes the counts of N images, and weights (S, N): how often each image
occurs in each of S data sets. A row of ones gives the scores of the whole data set, multinomial
draws a bootstrap, the rows of `1 - eye(N)` a jackknife, and those of `eye(N)` the scores of each
image. No other code computes scores, and no module outside `bsdsbench.metrics` names a metric.

Most metrics inherit `scores`, from `ValuesMetric` (means over images, or from summed counts) or
`boundary.CurveMetric` (from precision-recall curves).
"""

from __future__ import annotations

import typing
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

import numpy as np
from attrs import frozen
from numpy.typing import ArrayLike, NDArray

from bsdsbench.arguments import Floats
from bsdsbench.errors import DataError, ProtocolError, describe_unexpected, with_file_of_side
from bsdsbench.images import GroundTruth, Map, Prediction, same_shape
from bsdsbench.loaders.reading import Kind, Readings, ReadOptions
from bsdsbench.metrics.optional import Arrays as Arrays
from bsdsbench.metrics.optional import CompletesScore, HumanForm, LinksImages
from bsdsbench.metrics.optional import Symptoms as Symptoms
from bsdsbench.metrics.optional import Texts as Texts
from bsdsbench.protocol.fields import IGNORE, defaults_of, record_of
from bsdsbench.protocol.protocol import READ, Protocol, captions
from bsdsbench.scores.counts import (
    Counts,
    ImageRecord,
    MatchCounts,
    Score,
    Stack,
    counts_by_image,
    nest,
    part_of,
    sample_scores,
    stack_counts,
    value_at,
)
from bsdsbench.scores.curve import PRCurve
from bsdsbench.scores.error_scores import AGREEMENT, COUNTED, FALSE, MISSED, error_scores
from bsdsbench.scores.ratios import Weights, defined_mean, weighted_mean, weighted_sum

Opt = TypeVar("Opt")  # the class of a metric's options, None if it has none
ScoreTree: TypeAlias = "Mapping[str, NDArray[Any] | PRCurve | ScoreTree | None]"
Counter = Callable[..., MatchCounts]  # `boundary_counts`, or a function that adds further arrays
AT_ODS = "f_at_ods"  # an image's F at the threshold that is best for its run
_BLOCK = 128  # images that are scored individually in one call, with the weights eye(128)

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
# Kind of predictions or ground truth -> content of its files; not of label maps (`files_read`)
_CONTENT_OF_KIND = {
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
    """A column of score tables: a score, and how it is shown.

    Parameters
    ----------
    key : str
        The path of the score in the result of `scores`, such as "ap" or "ods.threshold". The path
        of a point of a curve, such as "ods", stands for the F-measure of this point.
    heading, short : str
        The heading of the column, and a shorter one for narrow tables.
    lower : bool
        True if smaller values are better.
    digits : int
        Decimals in the table of one run; tables of several runs show one fewer.
    shown : str
        "always", "own" (only in the table of one run), "several" (only in tables of several runs)
        or "never" (only in files and gates).
    score : bool
        False for values that are not scores, such as a threshold or a number of images.
    undefined : str
        The reason why the score can be undefined, for a note under the table.
    quantity : str
        The name under which papers report the score. `explain` compares a reported number with all
        columns of the same quantity.

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


# score -> unit -> (S, 2): the number of values that the mean includes, and the number of all values
Over = dict[str, dict[str, NDArray[Any]]]


def over(unit: str, counts: Mapping[str, tuple[ArrayLike, ArrayLike]]) -> Over:
    """Build the entry "over" of `scores`: how many values each mean includes, out of how many.

    unit: what is counted, such as "images".
    counts: score -> (number of values included, number of all values), each (S,) or a number.

    Returns score -> unit -> (S, 2), such as {"iou": {"images": array([[98, 100]])}}.
    """
    entry = {}
    for score, (n_included, n_all) in counts.items():
        entry[score] = {unit: np.stack(np.broadcast_arrays(n_included, n_all), axis=-1)}  # (S, 2)
    return entry


def image_means(weights: Weights, values: Mapping[str, Floats]) -> ScoreTree:
    """Return the mean of each score, (S,), over the images in which it is defined (not NaN).

    weights (S, N): how often each image occurs in each of S data sets.
    values: score -> (N,). If there are no scores, the result is {}. Otherwise it also has the entry
    "over": score -> "images" -> (S, 2), the images in the mean and all images.
    """
    if not values:
        return {}
    table = np.column_stack(list(values.values()))  # (N, scores)
    means = weighted_mean(weights, table)  # (S, scores)
    n_defined = weighted_sum(weights, ~np.isnan(table))  # (S, scores)
    n_images = weights.sum(axis=1)
    scores: dict[str, Any] = {name: means[:, k] for k, name in enumerate(values)}
    counts = {name: (n_defined[:, k], n_images) for k, name in enumerate(values)}
    return {**scores, "over": over("images", counts)}


def class_means(values: Mapping[str, Floats]) -> ScoreTree:
    """Return the mean of each score, (S,), over the classes in which it is defined (not NaN).

    values: score -> (S, C) for C classes in S data sets. The result also has the entry "over":
    score -> "classes" -> (S, 2), the classes in the mean and all classes.
    """
    counts = {name: ((~np.isnan(v)).sum(axis=1), v.shape[1]) for name, v in values.items()}
    means = {name: defined_mean(v) for name, v in values.items()}
    return {**means, "over": over("classes", counts)}


@frozen
class FilesRead:
    """What a metric expects in prediction and ground-truth files, given its options."""

    labels: Kind = Kind.CLASSES  # the content of label maps: classes, instances, objects or masks
    # Values of void pixels in ground-truth files. Label maps keep them as labels; in other maps
    # these pixels become False in `GroundTruth.valid`
    void: tuple[float, ...] = ()
    classes: tuple[str, ...] = ()  # names of the classes if a prediction has one file per class
    instances: bool = False  # True if the instance maps of the ground truth are read too
    sequences: bool = False  # True if images are frames with ids SEQUENCE/FRAME
    components: bool = False  # True if the connected components of masks are objects


@frozen
class VoidOptions:
    """Options of metrics that have a single one: the values of void pixels, which are left out."""

    ignore: tuple[float, ...] = IGNORE


# The scores by class of error, with keys such as "error.absent". There are classes of missed pixels
# (MISSED, such as "absent"), of false pixels (FALSE, such as "duplicate"), and of annotated pixels
# by the annotators who agree (AGREEMENT, such as "alone")
ERROR_COLUMNS = tuple(
    Column(
        f"{group}.{name}",
        heading.format(name.replace("_", " ")),
        lower=group != "agreement",
        shown="never",
    )
    for group, names, heading in (
        ("error", MISSED, "{} (of annotated)"),
        ("error", FALSE, "{} (of predicted)"),
        ("error_share", MISSED, "{} (of missed)"),
        ("error_share", FALSE, "{} (of false)"),
        ("agreement", AGREEMENT, "recall, drawn by {}"),
        ("delta_ods", (*MISSED, *FALSE), "dODS, {}"),
        ("delta_ods", AGREEMENT, "dODS, drawn by {}"),
    )
    for name in names
)
IMAGES = Column("n_images", "images", "n", digits=0, shown="own", score=False)


class Metric(ABC, Generic[Opt]):
    """The base class of metrics. Instances have no state; the registry makes one of each class.

    Optional methods, such as drawing pixels, are typing protocols in `bsdsbench.metrics.optional`.

    Attributes
    ----------
    name, title : str
        The name, such as "boundary", and the heading of the metric's table.
    version : int
        Increased whenever the counts change. Images counted by another version are counted again.
    reads : str
        What the metric compares, a key of `READS`. It determines `gt_kind` and `pred_kinds`, the
        kinds of ground truth and predictions.
    segmentations, photo : bool
        `segmentations`: True if the metric needs the annotators' segmentations, not only their
        boundaries. `photo`: True if it uses the photo (`GroundTruth.photo`, None if missing).
    columns : tuple of Column
        All scores, in the order in which tables show them.
    image_columns, part_columns : tuple of Column
        The columns of the per-image table, and of the table of `parts`, such as classes. Images are
        compared by the first of `image_columns`, whose default is the metric's first score alone.
    numbers : tuple of Column
        The scores that are numbers of objects, shown in a note under the table.
    shared, ragged : tuple of str
        `shared`: names of counts that are equal for all images, such as the thresholds. `ragged`:
        names of counts whose length differs between images.
    default_protocol : str or None
        The preset to use by default; None if the user must name one.
    options : type or None
        The metric's own options, a frozen attrs class (see `protocol.fields`). They are set in the
        protocol's table NAME or by `--set NAME.FIELD=VALUE`. A new default needs a new `version`.
    void_option : str
        The name of the option for the values of void pixels in ground-truth files, or "".
    curved : bool
        True if there is a single precision-recall curve: `scores` has the key "curve", and the
        curve's scores ("ods" ...) beside it.
    curve_paths : dict of str to tuple of str
        If there are several curves: title of the curve -> path of its scores in `scores`.
    cuts_at_thresholds : bool
        True if soft maps are binarised at the thresholds of the protocol.
    takes_masks : bool
        True if a mask may replace a single annotator, as pixels are counted, not boundaries.
    void : bool
        True if the metric can leave out void pixels; otherwise, images with void pixels are errors.
    uses : tuple of str
        The protocol's fields that affect the scores. Signatures and captions show only these.
    tolerance_scores : tuple of str
        Scores that get a column for each tolerance, such as "ods@0_00375", if there are several. If
        empty, the metric does not allow several tolerances.
    has_errors : bool
        True if missed and false pixels can be counted by class of error. Then `count` accepts a
        `counter` in place of `boundary_counts`, and `ERROR_COLUMNS` are added to `columns`.

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
    curve_paths: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    cuts_at_thresholds: ClassVar[bool] = False
    takes_masks: ClassVar[bool] = False
    void: ClassVar[bool] = False
    uses: ClassVar[tuple[str, ...]] = ()
    tolerance_scores: ClassVar[tuple[str, ...]] = ()
    has_errors: ClassVar[bool] = False
    gt_kind: ClassVar[str]
    pred_kinds: ClassVar[tuple[str, ...]]
    # False if the metric uses only the boundaries of the annotators' segmentations
    reads_whole_truth: ClassVar[bool]

    def __init_subclass__(cls) -> None:
        """Check `reads` of a new subclass, and set its attributes that depend on others.

        These are `gt_kind`, `pred_kinds` ("mask" -> "mask", ("soft",)), `reads_whole_truth` and, if
        empty, `image_columns` (first score). `has_errors` adds columns for the classes of errors.
        """
        super().__init_subclass__()
        if cls.reads not in READS:
            words = ", ".join(READS)
            raise DataError(f"{cls.__name__}: reads {cls.reads!r}, expected one of {words}")
        cls.gt_kind, cls.pred_kinds = READS[cls.reads]
        # Annotators' files may hold segmentations, but most metrics use only their boundaries
        cls.reads_whole_truth = cls.segmentations or cls.gt_kind != "annotators"
        if not cls.image_columns:
            cls.image_columns = tuple(column for column in cls.columns if column.score)[:1]
        if "has_errors" in cls.__dict__:  # not inherited, as then the columns are inherited too
            cls.columns = (*cls.columns[:-1], *ERROR_COLUMNS, cls.columns[-1])  # IMAGES stays last

    @abstractmethod
    def count(self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: Opt) -> Arrays:
        """Compute the counts of one image, and return them as a dict of arrays.

        The inputs are attributes such as `pred.soft`, `pred.classes`, `gt.boundaries` and
        `gt.labels`. Implementations must not read files. The counts may depend only on the
        protocol's fields in `uses`, and on `opt`, the metric's options (None if it has none).

        Raises DataError if `pred` and `gt` cannot be compared.
        """

    @abstractmethod
    def scores(self, stack: Stack, weights: Weights, protocol: Protocol, opt: Opt) -> ScoreTree:
        """Compute every score of S weighted data sets from the counts of their N images.

        stack: name -> counts (N, ...). Counts in `shared` have no image axis.
        weights: int (S, N), how often each image occurs in each data set.

        Returns nested mappings of arrays (S,): the score of the column "ods.threshold" is at
        ["ods"]["threshold"]. Curves may be included, as arrays (S, T) or as a `PRCurve` of S
        curves. Undefined scores are NaN.
        """

    # Subclasses may override the following methods.

    def parts(self, protocol: Protocol, opt: Opt) -> Mapping[str, tuple[str, ...]]:
        """Map everything scored separately, such as curves or classes, to its path in `scores`."""
        return self.curve_paths

    def fits(self, pred: Prediction, gt: GroundTruth, opt: Opt) -> bool:
        """Return True if `count` accepts the prediction's size for this ground truth."""
        return pred.shape == gt.shape

    def describe(self, protocol: Protocol, opt: Opt) -> str:
        """Describe the metric's conventions for the caption of tables; "" if it has none."""
        return "; ".join(captions(opt).values()) if opt else ""

    def files_read(self, opt: Opt) -> FilesRead:
        """Return what the metric expects in the files, given these options."""
        return FilesRead(void=getattr(opt, self.void_option) if self.void_option else ())

    # Few subclasses override the following methods.

    def used(self, opt: Opt) -> tuple[str, ...]:
        """Return the names of the protocol's fields that affect the scores, given these options.

        These are the fields in `uses` and, if the files contain masks, those that define which
        pixel values are the object, such as "gt_threshold".
        """
        reads_masks = self.files_read(opt).labels is Kind.MASK
        return (*self.uses, *READ) if reads_masks else self.uses

    def columns_of(self, keys: Collection[str]) -> tuple[Column, ...]:
        """Return `columns` and, before the number of images, one for each key SCORE@TOLERANCE.

        An example is "ods@0_0075". Keys whose SCORE is not in `tolerance_scores` are ignored.
        """
        at_tolerances = []
        for key in keys:
            score, _, tolerance = key.partition("@")
            if tolerance and score in self.tolerance_scores:
                # Keys have "_" for the decimal point: this one gets the heading "ODS@.0075"
                heading = f"{score.upper()}@{tolerance}".replace("@0_", "@.")
                at_tolerances.append(Column(key, heading))
        return (*self.columns[:-1], *at_tolerances, self.columns[-1])

    def usual(self, opt: Opt) -> Sequence[str] | None:
        """Return the keys of the columns that tables show by default, or None for all columns."""
        return None

    def beta2(self, opt: Opt) -> float:
        """Return beta^2 of the F-measure of the metric's curve."""
        return 1.0

    def all_scores(self, stack: Stack, weights: Weights, protocol: Protocol) -> ScoreTree:
        """Compute `scores` and, if `stack` has errors by class (in the key COUNTED), their scores.

        An unexpected exception in another package's metric becomes a DataError naming the metric.
        """
        package = type(self).__module__.partition(".")[0]
        try:
            scores = self.scores(stack, weights, protocol, self.options_of(protocol))
        except Exception as error:
            if package == "bsdsbench" or isinstance(error, DataError):
                raise  # unchanged, so that a fault in this package keeps its traceback
            fault = describe_unexpected(error, {package})
            raise DataError(f"metric {self.name!r}: {fault}") from error
        errors = error_scores(stack, weights, protocol) if COUNTED in stack else {}
        return {**scores, **errors}

    def scores_by_part(self, tree: ScoreTree, protocol: Protocol) -> dict[str, Mapping[str, Any]]:
        """Return the scores in `tree`, a result of `scores`, of each class or other part.

        The part "" has all of `tree`, with the overall scores. A part without scores has {}.
        """
        scores: dict[str, Mapping[str, Any]] = {"": tree}
        for part, path in self.parts(protocol, self.options_of(protocol)).items():
            scores[part] = part_of(tree, path) or {}
        return scores

    def score_columns(
        self, tree: Mapping[str, object], protocol: Protocol | None
    ) -> Iterator[tuple[str, Column, Any]]:
        """Yield (key, column, value) for every score in `tree`, the nested scores of a data set.

        Scores are in the order of columns. Columns that hold no score, such as thresholds, or have
        no value in `tree` are skipped. If a protocol is given, which the parts depend on, the
        scores of each part, such as a class, follow with keys PART.KEY ("road.iou").
        """
        overall = {column.key: column for column in self.columns_of(tree)}
        yield from _columns_with_scores(tree, overall)
        if protocol is None:
            return
        # "road" -> ("per_class", "road"): the scores of this class are tree["per_class"]["road"]
        for part, path in self.parts(protocol, self.options_of(protocol)).items():
            scores = part_of(tree, path) or {}  # {} if the part has no scores
            # A part may have columns of its own, and any of the columns of the whole
            columns = {c.key: c for c in (*self.part_columns, *self.columns_of(scores))}
            for key, column, value in _columns_with_scores(scores, columns):
                if ".".join((*path, key)) not in overall:  # else the whole had it: "seval.ods"
                    yield f"{part}.{key}", column, value

    def count_image(
        self,
        pred: Prediction | None,
        gt: GroundTruth,
        protocol: Protocol,
        counter: Counter | None = None,
    ) -> Arrays:
        """Count one image or, if `pred` is None, compare its annotators with each other.

        counter: a replacement for `boundary_counts` that also counts errors by class. Metrics
            without `has_errors` ignore it.

        Raises ShapeError if the sizes do not fit, and DataError if there are void pixels, which the
        metric cannot leave out, or if annotators cannot be compared or are fewer than two.
        """
        opt = self.options_of(protocol)
        if "valid" in gt.parts and not self.void:
            fault = f"has void pixels, which metric {self.name} cannot leave out"
            raise DataError(f"{gt.where}: {fault}")
        if pred is None:
            if not isinstance(self, HumanForm):
                raise DataError(f"metric {self.name!r}: cannot compare annotators")
            n = len(gt.segmentations if self.segmentations else gt.boundaries)  # of annotators
            if n < 2:
                fault = f"{gt.where}: {n} annotator(s), expected two or more to compare"
                raise DataError(fault, fix="if files are ID_1, ID_2 ..: a split file of the ids")
            return self.count_humans(gt, protocol, opt)
        if not self.fits(pred, gt, opt):  # raise: other sizes (a contour map has the double size)
            contours = pred.kind == "soft" and self.reads == "annotators"
            same_shape(pred.shape, gt.shape, pred.where, contours)
        count: Callable[..., Arrays] = self.count
        further = {"counter": counter} if counter and self.has_errors else {}
        try:
            return count(pred, gt, protocol, opt, **further)
        except DataError as error:  # put the file in place of "prediction" or "ground truth"
            raise with_file_of_side(error, pred.where, gt.where) from error.__cause__

    def readings(self, protocol: Protocol, pred_kind: str) -> Readings:
        """Return how to interpret the values in prediction files and in ground-truth files.

        pred_kind: one of `pred_kinds`, such as "soft".
        """
        files = self.files_read(self.options_of(protocol))
        # Label maps are not in the table: the metric's options decide what they contain
        content = _CONTENT_OF_KIND.get(pred_kind, files.labels)
        content_of_gt = _CONTENT_OF_KIND.get(self.gt_kind, files.labels)
        if content_of_gt is Kind.BOUNDARIES and protocol.gt_kind == "labels":
            content_of_gt = Kind.REGIONS  # annotators' maps are segmentations, not boundaries
        read = partial(
            ReadOptions,
            void=files.void,
            void_option=f"{self.name}.{self.void_option}" if self.void_option else "",
            metric=self.name,
            components=files.components,
        )
        pred = read(content, inverted=protocol.invert, normalised=protocol.normalise, truth=False)
        gt = read(
            content_of_gt,
            inverted=protocol.gt_invert,
            cut=protocol.gt_threshold,  # of gray masks; predicted ones are cut at one half
            allow_empty=protocol.empty_gt != "error",
            reads_regions=self.segmentations,
        )
        return Readings(pred, gt)

    def options_of(self, protocol: Protocol) -> Opt:
        """Return the metric's options as set in a protocol, or None if the metric has no options.

        Options that are not set get their defaults. Raises ProtocolError if an option is unknown or
        has an invalid value.
        """
        given = protocol.options.get(self.name, {})
        if self.options is None:
            if given:
                raise ProtocolError(f"options {self.name!r}: this metric has no options")
            return typing.cast(Opt, None)
        kind: Any = self.options
        record = record_of(kind, given, self.name) if given else defaults_of(kind, self.name)
        return typing.cast(Opt, record)

    def stack(self, images: Sequence[Mapping[str, Any]]) -> dict[str, Map]:
        """Stack the counts of N images by `stack_counts`: name -> (N, ...)."""
        return stack_counts(images, self.shared, self.ragged)

    def score(self, records: Sequence[ImageRecord] | Counts, protocol: Protocol) -> Score:
        """Compute the scores of a data set from one record per image, given in any order.

        The counts of a single image may take the place of records. Raises DataError if there are no
        records, if a record lacks counts of this metric, or if the images' thresholds differ.
        """
        counts = counts_by_image(records, self.name)
        return self.score_of(self.stack(list(counts.values())), protocol)

    def score_of(self, stack: Stack, protocol: Protocol) -> Score:
        """Compute the scores of a data set from the stacked counts of its images."""
        n_images = len(stack[min(stack.keys() - self.shared)])  # of any array with an image axis
        once = np.ones((1, n_images), np.int64)  # one data set, each image once
        scores = {**sample_scores(self.all_scores(stack, once, protocol)), "n_images": n_images}
        return Score(self.complete(scores, stack) if isinstance(self, CompletesScore) else scores)

    def image_scores(self, stack: Stack, protocol: Protocol) -> Iterator[ScoreTree]:
        """Yield the scores of each image as a data set of its own, for B images at a time.

        Each item is the result of `all_scores`, (B,), for the next B images (128, or the rest).
        """
        if isinstance(self, LinksImages):  # an image's score needs others, such as earlier frames
            stack = self.link_images(stack)
        block = dict(stack)
        per_image = stack.keys() - self.shared  # arrays with a row per image, unlike thresholds
        n_images = len(stack[min(per_image)])  # equal in all of them
        for first in range(0, n_images, _BLOCK):
            for name in per_image:
                block[name] = stack[name][first : first + _BLOCK]
            n_in_block = min(_BLOCK, n_images - first)
            weights = np.eye(n_in_block, dtype=np.int64)  # data set k is image k of the block
            yield self.all_scores(block, weights, protocol)


def _columns_with_scores(
    tree: Mapping[str, object], columns: Mapping[str, Column]
) -> Iterator[tuple[str, Column, Any]]:
    """Yield (key, column, value) for each of the columns that is a score and has a value."""
    for key, column in columns.items():
        value = value_at(tree, key)  # of "ods.threshold": tree["ods"]["threshold"], or None
        if column.score and value is not None:
            yield key, column, value


class ValuesMetric(Metric[Opt]):
    """A metric whose scores are means over images, or are computed from sums over images.

    `summed` names the counts that `pooled` needs.
    """

    summed: ClassVar[tuple[str, ...]] = ()

    def values(self, counts: Stack, opt: Opt) -> dict[str, Floats]:
        """Compute, for each of N images, the values of the scores that are means over images.

        Returns column key -> (N,); {}, the default, if no score is such a mean. Images for which a
        value is undefined (NaN) are left out of its mean.
        """
        return {}

    def pooled(self, sums: Stack, opt: Opt) -> ScoreTree:
        """Compute the other scores from the sums over images of the counts in `summed`, (S, ...).

        Returns column key -> (S,), which may be nested as in `scores`.
        """
        return {}

    def scores(self, stack: Stack, weights: Weights, protocol: Protocol, opt: Opt) -> ScoreTree:
        """Compute `values` and `pooled`, nested: the key "ue.min" is at ["ue"]["min"]."""
        sums = {k: weighted_sum(weights, stack[k]) for k in self.summed if k in stack}
        scores = {**image_means(weights, self.values(stack, opt)), **self.pooled(sums, opt)}
        return nest({tuple(key.split(".")): score for key, score in scores.items()})
