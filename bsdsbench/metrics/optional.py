"""What a metric may offer beside `Metric`: whichever class has the methods offers it."""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from numpy.typing import ArrayLike, NDArray

from bsdsbench.errors import Fix, InputWarning
from bsdsbench.images import GroundTruth, Map, Prediction
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import Evidence, MatchCounts, Score, Stack
from bsdsbench.scores.curve import PRCurve

if TYPE_CHECKING:
    from bsdsbench.metrics.pixel_steps import DrawnSteps

Arrays = Mapping[str, ArrayLike]  # counts of an image by name
ScoreTree: TypeAlias = "Mapping[str, NDArray[Any] | PRCurve | ScoreTree | None]"
Counter = Callable[..., MatchCounts]  # `boundary_counts`, or a function that counts more
Texts = Iterator[tuple[str, str]]  # file name and text
Symptoms = Iterator[tuple[str, str, Fix]]  # code, words, what fixes it

_Opt = TypeVar("_Opt", contravariant=True)  # of a metric


@typing.runtime_checkable
class HumanForm(typing.Protocol[_Opt]):
    """Annotators can be compared with one another: the "human" point of precision-recall plots.

    Sources: Martin et al. 2004; Pont-Tuset and Marques, PAMI 2016.
    """

    def count_humans(self, gt: GroundTruth, protocol: Protocol, opt: _Opt) -> Arrays:
        """Count each annotator of an image against the others. Raises DataError."""


@typing.runtime_checkable
class ResultFiles(typing.Protocol[_Opt]):
    """The folder of a run holds further files."""

    def files(
        self, score: Score, ids: Sequence[str], stack: Stack, protocol: Protocol, opt: _Opt
    ) -> Texts:
        """Yield the name and the text of each file."""


@typing.runtime_checkable
class OfficialTables(typing.Protocol):
    """Scores can be read from the tables that the official program writes."""

    def reported(self, tables: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the scores in tables {file name: rows}; None if these are not among them."""


@typing.runtime_checkable
class DrawsPixels(typing.Protocol[_Opt]):
    """Right, false and missed pixels of an image can be drawn.

    Metrics of matched boundaries need not have it: their counter (`has_errors`) tells those pixels.
    """

    def pixel_steps(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: _Opt
    ) -> DrawnSteps:
        """Return what each pixel is as `count` counts it."""


@typing.runtime_checkable
class ShowsLabels(typing.Protocol[_Opt]):
    """A metric whose label maps need evidence of the whole set before their meaning is known."""

    def label_evidence(self, labels: Map, opt: _Opt, truth: bool) -> Evidence:
        """Return what a label map (H, W) of one side shows that only its whole set decides."""


@typing.runtime_checkable
class ChecksSet(typing.Protocol[_Opt]):
    """The counts of all images together can look wrong."""

    def check_set(self, ids: Sequence[str], stack: Stack, opt: _Opt) -> list[InputWarning]:
        """Return what looks wrong with the counts of a whole set, not a shard.

        Raises DataError where no scores can be made of them.
        """


@typing.runtime_checkable
class CurveOfPixels(typing.Protocol[_Opt]):
    """A metric with one curve of all pixels, with its own rule for AP and a row of all pixels."""

    def ap_rule(self, protocol: Protocol, opt: _Opt) -> str:
        """Return the rule by which AP is read off its curve."""

    def with_whole_image(self, curve: PRCurve, stack: Stack) -> PRCurve:
        """Return the curve of all images, with a row of all pixels on."""


@typing.runtime_checkable
class Diagnosed(typing.Protocol[_Opt]):
    """The doctor asks the metric for what looks wrong in an image that can be counted."""

    def symptoms(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: _Opt
    ) -> Symptoms:
        """Yield the code of each symptom, its words, and what fixes it."""
