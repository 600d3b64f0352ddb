"""What a metric is: `count` makes one image's counts, `scores` makes every number from counts.

Nothing else scores. `scores(stack, weights)` takes the counts of N images and weights (S, N), how
often each image is in each of S data sets. Ones are the data set itself, multinomial draws a
bootstrap, `1 - eye(N)` a jackknife, and `eye(N)` gives the images' own values.

Nothing outside `bsdsbench.metrics` names a metric; the registry finds them, also those of other
packages in the entry point group `bsdsbench.metrics`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, ClassVar

import numpy as np
from attrs import frozen

from bsdsbench.arguments import F8
from bsdsbench.errors import DataError, Fix, ProtocolError
from bsdsbench.images import GroundTruth, Map, Prediction, same_shape
from bsdsbench.loaders.reading import Kind, Reading, Readings
from bsdsbench.protocol.fields import LABELS, captions, listed_labels, option, record_of
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import ImageRecord, Score, Stack, one_of, stacked
from bsdsbench.scores.curve import PRCurve
from bsdsbench.scores.error_scores import AGREEMENT, COUNTED, FALSE, MISSED, error_scores
from bsdsbench.scores.evidence import UNKNOWN, Evidence
from bsdsbench.scores.ratios import Weights, weighted_mean, weighted_sum

AT_ODS = "f_at_ods"  # an image's F at the threshold that is best for its run
Tree = dict[str, Any]  # of counts, or of scores, see `Metric.scores`
Counter = Callable[..., Mapping[str, Any]]  # `boundary_counts`, or what counts more
Texts = Iterator[tuple[str, str]]  # file name and text
Symptoms = Iterator[tuple[str, str, Fix]]  # code, words, what fixes it
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
# What the files of predictions hold that are no soft maps, and those of truths, by their kind
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


def over(unit: str, counts: Mapping[str, tuple[Any, Any]]) -> Tree:
    """For `scores`, under "over": of each mean, over how many of how many it is, (S,) each.

    Where it is over fewer than there are, tables, result.json and comparisons say so.
    """
    return {
        key: {unit: np.stack(np.broadcast_arrays(n, of), axis=-1)}
        for key, (n, of) in counts.items()
    }


def image_means(weights: Weights, values: Mapping[str, F8]) -> Tree:
    """For `scores`: the mean over images of each value (N,), and under "over" of how many."""
    if not values:
        return {}
    columns, n_images = np.column_stack(list(values.values())), weights.sum(axis=1)
    means = weighted_mean(weights, columns).T
    n_defined = weighted_sum(weights, ~np.isnan(columns)).T
    counts = {key: (n, n_images) for key, n in zip(values, n_defined, strict=True)}
    return dict(zip(values, means, strict=True)) | {"over": over("images", counts)}


IGNORE = option(
    (),
    "Values of the ground truth's files that are void: their pixels are counted nowhere, on either "
    "side. One or several; -1 or none: no value is.",
    LABELS,
    listed_labels,
    caption=lambda o: f"void: {', '.join(map(str, o.ignore))}" if o.ignore else "",
)


@frozen
class VoidOptions:
    """The pixels that are counted nowhere."""

    ignore: tuple[int, ...] = IGNORE


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


class Metric(ABC):
    """One benchmark. Instances have no state; the registry makes one of each class.

    Attributes
    ----------
    name, title : str
        "boundary"; what its table is headed.
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
    shared, ragged : tuple of str
        Counts that all images hold in common (thresholds), and those that differ in length.
    default_protocol : str or None
        The preset that is meant where none is given; None: one must be given.
    options : type or None
        Its own options, a frozen attrs class (`protocol.fields`); a table of its name in a
        protocol, `--set NAME.FIELD=VALUE`. A changed default is a new `version`. With one named
        `instances` that is on the ground truth's instance maps are read too.
    void : bool
        True if it counts nothing where `GroundTruth.valid` is False; ground truth with that part
        is refused by others.
    uses : tuple of str
        The fields of a protocol that move its scores; signature and caption say no others.

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
    shared: ClassVar[tuple[str, ...]] = ("thresholds",)
    ragged: ClassVar[tuple[str, ...]] = ()
    default_protocol: ClassVar[str | None] = "bsds500"
    options: ClassVar[type[Any] | None] = None
    void: ClassVar[bool] = False
    uses: ClassVar[tuple[str, ...]] = ()
    gt_kind: ClassVar[str]
    pred_kinds: ClassVar[tuple[str, ...]]
    curved: ClassVar[bool]  # there is a column of a curve's best point

    def __init_subclass__(cls) -> None:
        cls.gt_kind, cls.pred_kinds = READS[cls.reads]
        if not cls.image_columns:  # images are compared and listed by one
            cls.image_columns = tuple(column for column in cls.columns if column.score)[:1]
        if "count_with" in cls.__dict__:
            cls.columns = (*cls.columns[:-1], *ERROR_COLUMNS, cls.columns[-1])
        cls.curved = any(c.key == "ods" for c in (*cls.columns, *cls.image_columns))

    @abstractmethod
    def count(self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: Any) -> Tree:
        """One image's counts: name -> array. No disk. Raises DataError.

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
    def scores(self, stack: Stack, weights: Weights, protocol: Protocol, opt: Any) -> Tree:
        """Every score of S weighted data sets. NaN stands for an undefined one.

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

    # What a metric may add.

    def count_humans(self, gt: GroundTruth, protocol: Protocol, opt: Any) -> Tree:
        """Each annotator against the others, the "human" point of precision-recall plots.

        Raises DataError where there is no such form. Sources: Martin et al. 2004; Pont-Tuset and
        Marques, PAMI 2016.
        """
        raise DataError(f"metric {self.name!r}: has no human form")

    def parts(self, protocol: Protocol, opt: Any) -> Mapping[str, tuple[str, ...]]:
        """Parts of the score that have a table of their own: name -> path in the score."""
        return {}

    def files(
        self, score: Score, ids: Sequence[str], stack: Stack, protocol: Protocol, opt: Any
    ) -> Texts:
        """Further files of a run's folder: name and text."""
        return iter(())

    def symptoms(self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: Any) -> Symptoms:
        """What looks wrong in an image that can be counted: code, words, what fixes it."""
        return iter(())

    def fits(self, pred: Prediction, gt: GroundTruth, opt: Any) -> bool:
        """False if a prediction of that size cannot be compared with the ground truth."""
        return pred.shape == gt.shape

    def describe(self, protocol: Protocol, opt: Any) -> str:
        """Its own conventions in words, printed under the scores; or ""."""
        return "; ".join(captions(opt).values()) if opt else ""

    def usual(self, opt: Any) -> tuple[str, ...] | None:
        """Keys of the columns that tables show where none are asked for; None: all of them."""
        return None

    def used(self, opt: Any) -> tuple[str, ...]:
        """The fields of a protocol that move its scores with these options."""
        return self.uses

    def class_names(self, opt: Any) -> tuple[str, ...]:
        """The classes whose maps are a prediction's files; none where it is one file."""
        return ()

    def void_values(self, opt: Any) -> tuple[int, ...]:
        """Return the values of truth files whose pixels are counted nowhere, on either side.

        They are False in the part `valid` of the ground truth (bool, (H, W)), which is there
        exactly where a metric that reads masks or annotators names some; label maps keep theirs.
        """
        return () if self.reads == "classes" else getattr(opt, "ignore", ())

    def label_kind(self, opt: Any) -> Kind:
        """Return what label maps hold with these options: classes, instances or masks."""
        return Kind.CLASSES

    def label_evidence(self, labels: Map, opt: Any, truth: bool) -> Evidence:
        """Return what a label map (H, W) of one side shows that only its whole set decides."""
        return UNKNOWN

    def in_sequences(self, opt: Any) -> bool:
        """True if images are frames, whose ids are SEQUENCE/FRAME."""
        return False

    def check_set(self, ids: Sequence[str], stack: Stack, opt: Any) -> None:
        """Raise DataError for a whole set, not a shard, of which no scores can be made."""
        return

    def ap_rule(self, protocol: Protocol, opt: Any) -> str:
        """Return the rule by which AP is read off its curves."""
        return protocol.ap_rule

    def with_whole_image(self, curve: PRCurve, stack: Stack) -> PRCurve:
        """Return the curve of all images, with a row of all pixels on where counts tell it."""
        return curve

    def has_curve(self, opt: Any) -> bool:
        """True if the score has a precision-recall curve, `curve`."""
        return self.curved

    def draws(self, opt: Any) -> bool:
        """True if its matched pixels can be drawn, see `match_maps`."""
        return type(self).match_maps is not Metric.match_maps and self.has_curve(opt)

    def match_maps(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: Any, threshold: float
    ) -> Any:
        """The pixels that `count` counts at one threshold, a `MatchMaps`."""
        raise DataError(f"metric {self.name!r}: matches no pixels")

    def count_with(
        self, counter: Counter, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: Any
    ) -> Tree:
        """Count as `count`, with a function in place of `boundary_counts`, which counts more.

        A metric that has this can count the classes of errors (`boundary_errors`).
        """
        raise DataError(f"metric {self.name!r}: matches no pixels")

    def reported(self, tables: Mapping[str, Any]) -> dict[str, Any] | None:
        """The scores in official tables, {file name: rows}; None without such tables."""
        return None

    # What every metric has.

    @property
    def reads_whole_truth(self) -> bool:
        """False where boundaries stand for the segmentations that they were made of."""
        return self.segmentations or self.gt_kind != "annotators"

    @property
    def has_errors(self) -> bool:
        """True if its missed and false pixels have classes."""
        return type(self).count_with is not Metric.count_with

    def all_scores(self, stack: Stack, weights: Weights, protocol: Protocol) -> Tree:
        """`scores`, and those of the classes of errors where these were counted."""
        scores = self.scores(stack, weights, protocol, self.options_of(protocol))
        return scores | error_scores(stack, weights, protocol) if COUNTED in stack else scores

    def count_image(
        self,
        pred: Prediction | None,
        gt: GroundTruth,
        protocol: Protocol,
        counter: Counter | None = None,
    ) -> Tree:
        """`count`, or `count_humans` without a prediction. Raises DataError for other sizes.

        counter : for `count_with`, where the metric has it
        """
        opt = self.options_of(protocol)
        if "valid" in gt.parts and not self.void:
            raise DataError(
                f"{gt.where}: has void pixels, which metric {self.name} cannot leave out"
            )
        if pred is None:
            return self.count_humans(gt, protocol, opt)
        if not self.fits(pred, gt, opt):
            same_shape(pred.shape, gt.shape, pred.where)
        if counter is not None and self.has_errors:
            return self.count_with(counter, pred, gt, protocol, opt)
        return self.count(pred, gt, protocol, opt)

    def readings(self, protocol: Protocol, pred_kind: str) -> Readings:
        """Return what options say about the files of both sides; `pred_kind` as in a run."""
        opt = self.options_of(protocol)
        labels, void = self.label_kind(opt), self.void_values(opt)
        names = f"{self.name}.ignore" if hasattr(opt, "ignore") else "", self.name
        kind = _KINDS.get(self.gt_kind, labels)
        if kind is Kind.BOUNDARIES and protocol.gt_kind == "labels":
            kind = Kind.REGIONS
        pred = _KINDS.get(pred_kind, labels)
        return Readings(
            Reading(pred, None, void, protocol.invert, protocol.normalise, False, *names),
            Reading(kind, protocol.gt_threshold, void, protocol.gt_invert, False, True, *names),
        )

    def options_of(self, protocol: Protocol) -> Any:
        """Its options in a protocol, None if it has none. Raises ProtocolError for wrong ones."""
        given = protocol.options.get(self.name, {})
        if self.options is None:
            if given:
                raise ProtocolError(f"options {self.name!r}: this metric has none, expected none")
            return None
        return record_of(self.options, given, self.name)

    def stack(self, images: Sequence[Mapping[str, Any]]) -> dict[str, Map]:
        """The counts of one or more images: name -> (N, ...). Raises ShapeError if they differ."""
        return stacked(images, self.shared, self.ragged)

    def score(self, records: Sequence[ImageRecord], protocol: Protocol) -> Score:
        """The score of a data set: `scores` with weights of one.

        Raises DataError for no records, one without counts of this metric, or different thresholds.
        """
        _, counts = zip(*counts_in_order(records, self.name), strict=True)
        return self.score_of(self.stack(counts), protocol)

    def score_of(self, stack: Stack, protocol: Protocol) -> Score:
        """The score of the counts of a data set."""
        n = len(stack[min(stack.keys() - self.shared)])
        once = np.ones((1, n), np.int64)
        found = one_of(self.all_scores(stack, once, protocol))
        return Score({**found, "n_images": n})

    def image_scores(self, stack: Stack, protocol: Protocol) -> Iterator[Tree]:
        """`scores` with each image as a data set of one, of B images at a time: arrays (B,)."""
        some = dict(stack)
        own = stack.keys() - self.shared
        n = len(stack[min(own)])
        for first in range(0, n, _BLOCK):
            for name in own:
                some[name] = stack[name][first : first + _BLOCK]
            yield self.all_scores(some, np.eye(min(_BLOCK, n - first), dtype=np.int64), protocol)


def _nested(values: Mapping[str, Any]) -> Tree:
    """Return values whose keys are paths ("pooled.aji") as nested dicts."""
    tree: Tree = {}
    for key, value in values.items():
        *groups, name = key.split(".")
        group = tree
        for part in groups:
            group = group.setdefault(part, {})
        group[name] = value
    return tree


class ValuesMetric(Metric):
    """A metric whose scores are values that every image has too.

    A column is the mean over the images in which it is defined; with `Column.pooled` it is the
    value of the counts summed over images.
    """

    @abstractmethod
    def values(self, counts: Stack, opt: Any) -> dict[str, F8]:
        """Return the values of N images, or N sums of images, from their counts (N, ...).

        The keys are those of `columns`, the values arrays (N,).
        """

    def scores(self, stack: Stack, weights: Weights, protocol: Protocol, opt: Any) -> Tree:
        pooled = {column.key for column in self.columns if column.pooled}
        of_images = self.values(stack, opt)
        scores = image_means(weights, {k: v for k, v in of_images.items() if k not in pooled})
        if pooled:
            sums = {name: weighted_sum(weights, counts) for name, counts in stack.items()}
            scores |= {k: v for k, v in self.values(sums, opt).items() if k in pooled}
        return _nested(scores)


def counts_in_order(records: Sequence[ImageRecord], metric: str) -> list[tuple[str, Any]]:
    """(image id, counts of a metric) in id order. Raises DataError for none, or missing counts."""
    found = []
    for record in records:
        if metric not in record.counts:
            raise DataError(f"{metric} scores: {record.image_id} has no {metric} counts")
        found.append((record.image_id, record.counts[metric]))
    if not found:
        raise DataError(f"{metric} scores: no records, expected at least one")
    return sorted(found, key=itemgetter(0))


def at_least_two(gt: GroundTruth, found: int) -> None:
    """Raise DataError unless there are annotators to compare, see `Metric.count_humans`."""
    if found < 2:
        raise DataError(f"{gt.where}: {found} annotator(s), expected two or more to compare")
