"""Optional abilities of a metric, as typing protocols: a metric with the method has the ability."""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from numpy.typing import ArrayLike

from bsdsbench.errors import Fix, InputWarning
from bsdsbench.images import GroundTruth, Map, Prediction
from bsdsbench.metrics.pixel_steps import DrawnSteps
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import Evidence, Score, Stack
from bsdsbench.scores.curve import PRCurve

OptIn = TypeVar("OptIn", contravariant=True)  # the class of a metric's options
Arrays = Mapping[str, ArrayLike]  # counts of an image by name
Texts = Iterator[tuple[str, str]]  # file name and text
Symptoms = Iterator[tuple[str, str, Fix]]  # (code, problem, remedy)


@typing.runtime_checkable
class HumanForm(typing.Protocol[OptIn]):
    """A metric that can compare annotators, for the "human" point of precision-recall plots."""

    def count_humans(self, gt: GroundTruth, protocol: Protocol, opt: OptIn) -> Arrays:
        """Count each annotator against the others; raise DataError for fewer than two."""


@typing.runtime_checkable
class LinksImages(typing.Protocol):
    """A metric that scores an image with regard to others, such as a frame to its sequence."""

    def link_images(self, stack: Stack) -> Stack:
        """Return the stack with all that the score of an image needs of the other images."""


@typing.runtime_checkable
class CompletesScore(typing.Protocol):
    """A metric that adds to the scores of a data set what resamples of it do not have."""

    def complete(self, scores: dict[str, Any], stack: Stack) -> dict[str, Any]:
        """Return the completed scores; raise DataError if the counts cannot give scores."""


@typing.runtime_checkable
class ResultFiles(typing.Protocol[OptIn]):
    """A metric that writes further files into the folder of a run."""

    def files(
        self, score: Score, ids: Sequence[str], stack: Stack, protocol: Protocol, opt: OptIn
    ) -> Texts:
        """Yield (file name, text) for each file."""


@typing.runtime_checkable
class OfficialTables(typing.Protocol):
    """A metric that reads scores from the tables that the official program writes."""

    def reported(self, tables: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the scores in tables (file name -> array), or None if it has none of them."""


@typing.runtime_checkable
class DrawsPixels(typing.Protocol[OptIn]):
    """A metric that can show which pixels are correct, false and missed, if not by its counter."""

    def pixel_steps(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: OptIn
    ) -> DrawnSteps:
        """Classify each pixel as correct, false or missed, in the same way as `count` does."""


@typing.runtime_checkable
class ShowsLabels(typing.Protocol[OptIn]):
    """A metric that can tell what labels mean only after all label maps of a set have been seen."""

    def label_evidence(self, labels: Map, opt: OptIn, truth: bool) -> Evidence:
        """Return what a label map (H, W), annotated if `truth`, shows about its labels' meaning."""


@typing.runtime_checkable
class ChecksSet(typing.Protocol[OptIn]):
    """A metric that checks the counts of all images of a set together."""

    def check_set(self, ids: Sequence[str], stack: Stack, opt: OptIn) -> list[InputWarning]:
        """Return warnings about the counts; raise DataError if they cannot give scores."""


@typing.runtime_checkable
class CurveOfPixels(typing.Protocol):
    """A metric that can add to its curve the row at which every pixel is predicted."""

    def with_whole_image(self, curve: PRCurve, stack: Stack) -> PRCurve:
        """Return the curve with that row. `stack` holds the stacked counts of the images."""


@typing.runtime_checkable
class Diagnosed(typing.Protocol[OptIn]):
    """A metric that reports what looks wrong in an image although it can be evaluated."""

    def symptoms(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: OptIn
    ) -> Symptoms:
        """Yield (code, problem, fix) for each symptom."""


def whole_curve(metric: object, curve: PRCurve, stack: Stack) -> PRCurve:
    """Return the metric's curve, completed by `CurveOfPixels.with_whole_image` if it has that."""
    return metric.with_whole_image(curve, stack) if isinstance(metric, CurveOfPixels) else curve
