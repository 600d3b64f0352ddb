"""The base class of metrics: `count` counts one image, `scores` computes all scores from counts.

No other code computes scores. `scores(stack, weights)` takes the counts of N images and weights
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
from functools import partial
from operator import itemgetter
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

import numpy as np
from attrs import frozen
from numpy.typing import ArrayLike, NDArray

from bsdsbench.arguments import F8
from bsdsbench.errors import DataError, Fix, ProtocolError, describe_unexpected
from bsdsbench.images import GroundTruth, Map, Prediction, same_shape
from bsdsbench.loaders.reading import Kind, Readings, ReadOptions
from bsdsbench.protocol.fields import IGNORE, captions, record_of
from bsdsbench.protocol.protocol import READ, Protocol
from bsdsbench.scores.counts import (
    ImageRecord,
    MatchCounts,
    Score,
    Stack,
    part_of,
    sample_scores,
    stack_counts,
    value_at,
)
from bsdsbench.scores.curve import PRCurve
from bsdsbench.scores.error_scores import AGREEMENT, COUNTED, FALSE, MISSED, error_scores
from bsdsbench.scores.ratios import Weights, weighted_mean, weighted_sum

Opt = TypeVar("Opt")  # the class of a metric's options, None if it has none
OptIn = TypeVar("OptIn", contravariant=True)  # the same, in protocols of optional abilities
Arrays = Mapping[str, ArrayLike]  # counts of an image by name
ScoreTree: TypeAlias = "Mapping[str, NDArray[Any] | PRCurve | ScoreTree | None]"
Counter = Callable[..., MatchCounts]  # `boundary_counts`, or a function that counts more
Texts = Iterator[tuple[str, str]]  # file name and text
Symptoms = Iterator[tuple[str, str, Fix]]  # (code, problem, remedy)
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

    `counts` maps each score to these numbers, (S,) each. `unit` is what is counted, as "images".
    """
    return {
        key: {unit: np.stack(np.broadcast_arrays(n_included, n_all), axis=-1)}
        for key, (n_included, n_all) in counts.items()
    }


def image_means(weights: Weights, values: Mapping[str, F8]) -> dict[str, Any]:
    """Compute the weighted means over images, without the images whose value is NaN.

    `weights` (S, N) say how often each image occurs in each data set, `values` are name -> (N,).
    Returns name -> (S,), and "over": how many images each mean includes; {} without values.
    """
    if not values:
        return {}
    columns = np.column_stack(list(values.values()))  # (N, values)
    means = dict(zip(values, weighted_mean(weights, columns).T, strict=True))
    n_defined = weighted_sum(weights, ~np.isnan(columns)).T  # (values, S)
    n_images = weights.sum(axis=1)
    counts = {name: (n, n_images) for name, n in zip(values, n_defined, strict=True)}
    return {**means, "over": over("images", counts)}


@frozen
class FilesRead:
    """What the files of predictions and ground truth hold, as a metric's options say."""

    labels: Kind = Kind.CLASSES  # of label maps: classes, instances, objects by number, or masks
    # Values in ground-truth files whose pixels are not counted in either map. Readers of masks and
    # annotators make them the part `valid`, bool (H, W), False there; label maps keep their labels
    void: tuple[float, ...] = ()
    classes: tuple[str, ...] = ()  # if a prediction has one file for each class
    instances: bool = False  # True if the instance maps of the ground truth are read too
    sequences: bool = False  # True if images are frames with ids SEQUENCE/FRAME


@frozen
class VoidOptions:
    """The option of metrics that leave out void pixels."""

    ignore: tuple[float, ...] = IGNORE


# The scores of `error_scores`, such as "error.absent"
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


@typing.runtime_checkable
class HumanForm(typing.Protocol[OptIn]):
    """Compares annotators with each other, for the "human" point of precision-recall plots."""

    def count_humans(self, gt: GroundTruth, protocol: Protocol, opt: OptIn) -> Arrays:
        """Count each annotator against the others; raise DataError if there are fewer than two."""


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
        What the metric compares: "annotators" (boundary maps or segmentations with those of each
        annotator), "mask", "classes" (label maps), "depth", "lines" or another key of `READS`. It
        determines `gt_kind` and `pred_kinds`, the kinds of ground truth and predictions.
    segmentations, photo : bool
        True if the annotators' segmentations are needed, not only their boundaries; if the image
        itself is used (`GroundTruth.photo`, None if not found).
    columns : tuple of Column
        Every score, in the order of tables.
    image_columns, part_columns : tuple of Column
        The columns of the table of images, which are compared by the first (by default the first
        score alone), and of the table of `parts`.
    numbers : tuple of Column
        Numbers of objects among its scores, shown in a note under the table.
    shared, ragged : tuple of str
        Counts that are equal for all images (thresholds), and counts that differ in length.
    default_protocol : str or None
        The preset to use by default; None if the user must name one.
    options : type or None
        The metric's own options, a frozen attrs class (`protocol.fields`), set in a protocol's
        table of this name or by `--set NAME.FIELD=VALUE`. A changed default is a new `version`.
    void_option, usual_option, ap_option, beta2_option, matching_option : str
        Attributes of the options, "" if there is none: the values that are void in ground-truth
        files; the keys of the columns that tables show by default (without it, or if it is None,
        all); the metric's own rule of AP, in place of the protocol's; beta^2 of its F, otherwise 1;
        False if nothing is matched, so that there is no curve and no field of `uses` matters.
    curved : bool
        True if `scores` has one precision-recall curve with its scores: `curve`, `ods` ...
    curve_names : dict of str to str
        The key in `scores` of each of several curves -> its title. Each is a part of the scores.
    cuts_at_thresholds : bool
        True if soft maps are binarised at the thresholds of the protocol.
    takes_masks : bool
        True if a mask may replace the only annotator, because pixels are counted, not boundaries.
    void : bool
        True if void pixels, False in `GroundTruth.valid`, are left out. Other metrics refuse them.
    uses : tuple of str
        The fields of a protocol that affect the scores; signature and caption show only these.
    tolerance_scores : tuple of str
        Scores that have a column for each of several tolerances, such as "ods@0_00375". Metrics
        without them refuse several tolerances.
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
    usual_option: ClassVar[str] = ""
    ap_option: ClassVar[str] = ""
    beta2_option: ClassVar[str] = ""
    matching_option: ClassVar[str] = ""
    curved: ClassVar[bool] = False
    curve_names: ClassVar[Mapping[str, str]] = {}
    cuts_at_thresholds: ClassVar[bool] = False
    takes_masks: ClassVar[bool] = False
    void: ClassVar[bool] = False
    uses: ClassVar[tuple[str, ...]] = ()
    tolerance_scores: ClassVar[tuple[str, ...]] = ()
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
        """Count one image, without reading files; return count name -> array.

        `pred.soft`, `pred.classes`, `gt.boundaries`, `gt.labels` ... are the data. Only the fields
        of the protocol in `uses` matter; `opt` are the metric's options in it, or None. Raises
        DataError if the data cannot be compared.
        """

    @abstractmethod
    def scores(self, stack: Stack, weights: Weights, protocol: Protocol, opt: Opt) -> ScoreTree:
        """Compute every score of S weighted data sets; undefined scores are NaN.

        stack : count name -> (N, ...), the counts of N images; those in `shared` have no first axis
        weights : whole numbers (S, N): how often each image occurs in each data set

        Returns score name -> array (S,) or (S, T), a `PRCurve` of S curves, or a dict of these. The
        keys of `columns` are paths in it.
        """

    # Defaults that a metric may replace.

    def parts(self, protocol: Protocol, opt: Opt) -> Mapping[str, tuple[str, ...]]:
        """Return the parts that have a table of their own: name -> path in the scores."""
        return {title: (key,) for key, title in self.curve_names.items()}

    def fits(self, pred: Prediction, gt: GroundTruth, opt: Opt) -> bool:
        """Return True if `count` accepts a prediction of this size for this ground truth."""
        return pred.shape == gt.shape

    def describe(self, protocol: Protocol, opt: Opt) -> str:
        """Describe the metric's own conventions, or return ""; printed under the scores."""
        return "; ".join(captions(opt).values()) if opt else ""

    def files_read(self, opt: Opt) -> FilesRead:
        """Return what the files of predictions and ground truth hold with these options."""
        return FilesRead(void=getattr(opt, self.void_option) if self.void_option else ())

    # What every metric has.

    def used(self, opt: Opt) -> tuple[str, ...]:
        """Return the fields of a protocol that affect the scores with these options.

        They are `uses`, none without matching (`matching_option`), and if label maps are read as
        masks also the fields that say how.
        """
        if self.matching_option and not getattr(opt, self.matching_option):
            return ()
        reads_masks = self.files_read(opt).labels is Kind.MASK
        return (*self.uses, *READ) if reads_masks else self.uses

    def columns_of(self, keys: Collection[str]) -> tuple[Column, ...]:
        """Return `columns`, and a column for each of the keys that is a score at a tolerance."""
        at_tolerances = []
        for key in keys:
            score, _, tolerance = key.partition("@")
            if tolerance and score in self.tolerance_scores:
                heading = f"{score.upper()}@{tolerance}".replace("@0_", "@.")
                at_tolerances.append(Column(key, heading))
        return (*self.columns[:-1], *at_tolerances, self.columns[-1])

    def usual(self, opt: Opt) -> Sequence[str] | None:
        """Return the keys of the columns that tables show by default, or None for all columns."""
        return getattr(opt, self.usual_option) if self.usual_option else None

    def ap_rule(self, protocol: Protocol) -> str:
        """Return the rule for AP: that of the option `ap_option`, or else the protocol's."""
        record = self.options_of(protocol) if self.ap_option else protocol
        return str(getattr(record, self.ap_option or "ap_rule"))

    def all_scores(self, stack: Stack, weights: Weights, protocol: Protocol) -> ScoreTree:
        """Compute `scores` and, if the counts have classes of errors, the scores of these.

        An unexpected error in the metric of another package becomes a DataError that names it.
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

        With a protocol, the scores of parts (such as classes) follow, with keys PART.KEY, unless
        they are columns of the metric too.
        """
        overall = {column.key: column for column in self.columns_of(tree)}
        for key, column in overall.items():
            if column.score and (value := value_at(tree, key)) is not None:
                yield key, column, value
        if protocol is None:
            return
        for part, path in self.parts(protocol, self.options_of(protocol)).items():
            scores = part_of(tree, path) or {}
            columns = {c.key: c for c in (*self.part_columns, *self.columns_of(scores))}
            for key, column in columns.items():
                value = value_at(scores, key)
                is_repeated = ".".join((*path, key)) in overall
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

        Metrics without `has_errors` ignore the `counter`. Raises DataError if the sizes differ, or
        the metric cannot leave out void pixels or compare annotators.
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
        if counter is None or not self.has_errors:
            return self.count(pred, gt, protocol, opt)
        count: Callable[..., Arrays] = self.count
        return count(pred, gt, protocol, opt, counter=counter)

    def readings(self, protocol: Protocol, pred_kind: str) -> Readings:
        """Return how to read the files of both sides, as the protocol and the options say.

        `pred_kind` is the kind of predictions, one of `pred_kinds`, such as "soft".
        """
        files = self.files_read(self.options_of(protocol))
        void_option = f"{self.name}.{self.void_option}" if self.void_option else ""
        gt_kind = _KINDS.get(self.gt_kind, files.labels)
        if gt_kind is Kind.BOUNDARIES and protocol.gt_kind == "labels":
            gt_kind = Kind.REGIONS
        of_side = partial(ReadOptions, void=files.void, void_option=void_option, metric=self.name)
        return Readings(
            of_side(
                kind=_KINDS.get(pred_kind, files.labels),
                inverted=protocol.invert,
                normalised=protocol.normalise,
                truth=False,
            ),
            of_side(kind=gt_kind, cut=protocol.gt_threshold, inverted=protocol.gt_invert),
        )

    def options_of(self, protocol: Protocol) -> Opt:
        """Return the metric's options in a protocol, or None if it has none.

        Raises ProtocolError if an option is unknown or has a wrong value.
        """
        given = protocol.options.get(self.name, {})
        if self.options is None and given:
            raise ProtocolError(f"options {self.name!r}: this metric has none, expected none")
        options = record_of(self.options, given, self.name) if self.options else None
        return typing.cast(Opt, options)

    def stack(self, images: Sequence[Mapping[str, Any]]) -> dict[str, Map]:
        """Stack the counts of N images, name -> (N, ...), see `stack_counts`."""
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


class ValuesMetric(Metric[Opt]):
    """A metric whose scores are means over the images in which they are defined.

    The scores of columns with `pooled` are computed from the counts summed over images instead.
    """

    @abstractmethod
    def values(self, counts: Stack, opt: Opt) -> dict[str, F8]:
        """Compute the values of N images, or N sums of images, from their counts (N, ...).

        Returns arrays (N,) with the keys of `columns`.
        """

    def scores(self, stack: Stack, weights: Weights, protocol: Protocol, opt: Opt) -> ScoreTree:
        """Return each column's score (S,): a mean over images, or the value of summed counts."""
        pooled = {column.key for column in self.columns if column.pooled}
        per_image = self.values(stack, opt)
        scores = image_means(weights, {k: v for k, v in per_image.items() if k not in pooled})
        if pooled:
            per_image_names = stack.keys() - self.shared
            sums = {name: weighted_sum(weights, stack[name]) for name in per_image_names}
            scores |= {k: v for k, v in self.values(sums, opt).items() if k in pooled}
        tree: dict[str, Any] = {}  # "pooled.aji" becomes {"pooled": {"aji": ...}}
        for key, score in scores.items():
            *groups, name = key.split(".")
            group = tree
            for outer in groups:
                group = group.setdefault(outer, {})
            group[name] = score
        return tree


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
