"""Optional methods of metrics, as typing protocols that `isinstance` checks."""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from numpy.typing import ArrayLike

from bsdsbench.errors import Fix, InputWarning
from bsdsbench.images import GroundTruth, Map, Prediction
from bsdsbench.metrics.pixel_steps import OverlaySteps
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import Evidence, Score, Stack
from bsdsbench.scores.curve import PRCurve

OptIn = TypeVar("OptIn", contravariant=True)  # the class of a metric's options
Arrays = Mapping[str, ArrayLike]  # the counts of an image: name -> array
Texts = Iterator[tuple[str, str]]  # (file name, text)
# (short code of the problem, its description, the suggested fix or fixes)
Symptom = tuple[str, str, Fix | tuple[Fix, ...]]
Symptoms = Iterator[Symptom]


@typing.runtime_checkable
class HumanForm(typing.Protocol[OptIn]):
    """A metric that can compare annotators: the human performance in precision-recall plots."""

    def count_humans(self, gt: GroundTruth, protocol: Protocol, opt: OptIn) -> Arrays:
        """Evaluate each of at least two annotators against the others."""


@typing.runtime_checkable
class LinksImages(typing.Protocol):
    """A metric whose score of an image depends on others, such as the frames of its sequence."""

    def link_images(self, stack: Stack) -> Stack:
        """Return the stack after adding to each image what its score needs from other images."""


@typing.runtime_checkable
class CompletesScore(typing.Protocol):
    """A metric that changes the scores of a data set, but not those of its resamples."""

    def complete(self, scores: dict[str, Any], stack: Stack) -> dict[str, Any]:
        """Return the changed scores; raise DataError if the counts cannot give scores."""


@typing.runtime_checkable
class ResultFiles(typing.Protocol[OptIn]):
    """A metric that writes additional files into the folder of a run."""

    def files(
        self, score: Score, ids: Sequence[str], stack: Stack, protocol: Protocol, opt: OptIn
    ) -> Texts:
        """Yield (file name, text) for each file."""


@typing.runtime_checkable
class OfficialTables(typing.Protocol):
    """A metric that can read scores from the result tables of the official program."""

    def reported(self, tables: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the scores in tables (file name -> array), or None if it knows none of them."""


@typing.runtime_checkable
class DrawsPixels(typing.Protocol[OptIn]):
    """A metric that classifies pixels for overlays by itself, without a `counter`."""

    def pixel_steps(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: OptIn
    ) -> OverlaySteps:
        """Classify each pixel as correct, false or missed, consistently with `count`."""


@typing.runtime_checkable
class ShowsLabels(typing.Protocol[OptIn]):
    """A metric that needs all label maps of a set to decide what their labels mean."""

    def label_evidence(self, labels: Map, opt: OptIn, truth: bool) -> Evidence:
        """Return the properties of a label map (H, W) by which its labels are interpreted.

        truth: True for a ground-truth map, False for a prediction.
        """


@typing.runtime_checkable
class ChecksSet(typing.Protocol[OptIn]):
    """A metric that checks the counts of all images of a set together."""

    def check_set(self, ids: Sequence[str], stack: Stack, opt: OptIn) -> list[InputWarning]:
        """Return warnings about the counts; raise DataError if they cannot give scores."""


@typing.runtime_checkable
class CurveOfPixels(typing.Protocol):
    """A metric that can extend its curve by the point at which every pixel is predicted."""

    def with_whole_image(self, curve: PRCurve, stack: Stack) -> PRCurve:
        """Return the extended curve. `stack` holds the counts of the images."""


@typing.runtime_checkable
class Diagnosed(typing.Protocol[OptIn]):
    """A metric that reports likely mistakes in images that can be evaluated."""

    def symptoms(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: OptIn
    ) -> Symptoms:
        """Yield (code, problem, fix) for each likely mistake."""


def whole_curve(metric: object, curve: PRCurve, stack: Stack) -> PRCurve:
    """Return the curve, extended to the whole image if the metric is a `CurveOfPixels`."""
    return metric.with_whole_image(curve, stack) if isinstance(metric, CurveOfPixels) else curve
