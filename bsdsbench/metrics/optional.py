"""Optional abilities of a metric, as protocols: a class that has the methods has the ability."""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence
from typing import Any

from bsdsbench.errors import InputWarning
from bsdsbench.images import GroundTruth, Map, Prediction
from bsdsbench.metrics.base import OptIn, Symptoms, Texts
from bsdsbench.metrics.pixel_steps import DrawnSteps
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.scores.counts import Evidence, Score, Stack
from bsdsbench.scores.curve import PRCurve


@typing.runtime_checkable
class ResultFiles(typing.Protocol[OptIn]):
    """Writes further files into the folder of a run."""

    def files(
        self, score: Score, ids: Sequence[str], stack: Stack, protocol: Protocol, opt: OptIn
    ) -> Texts:
        """Yield (file name, text) of each file."""


@typing.runtime_checkable
class OfficialTables(typing.Protocol):
    """Reads scores from the tables that the official program writes."""

    def reported(self, tables: Mapping[str, Any]) -> dict[str, Any] | None:
        """Parse scores from `tables` (file name -> array); None if it has none of them."""


@typing.runtime_checkable
class DrawsPixels(typing.Protocol[OptIn]):
    """Draws the right, false and missed pixels; with `has_errors` the counter provides them."""

    def pixel_steps(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: OptIn
    ) -> DrawnSteps:
        """Return the class of each pixel (right, false, missed), as `count` counts it."""


@typing.runtime_checkable
class ShowsLabels(typing.Protocol[OptIn]):
    """Needs evidence from the label maps of a whole set before their meaning is known."""

    def label_evidence(self, labels: Map, opt: OptIn, truth: bool) -> Evidence:
        """Return the evidence in one label map (H, W); `truth` says that it is annotated."""


@typing.runtime_checkable
class ChecksSet(typing.Protocol[OptIn]):
    """Checks the counts of all images of a set together."""

    def check_set(self, ids: Sequence[str], stack: Stack, opt: OptIn) -> list[InputWarning]:
        """Return warnings about a whole set's counts; raise DataError if they give no scores."""


@typing.runtime_checkable
class CurveOfPixels(typing.Protocol):
    """Has one curve of pixels, whose counts also give the row in which every pixel is on."""

    def with_whole_image(self, curve: PRCurve, stack: Stack) -> PRCurve:
        """Return the curve with an additional row, in which every pixel is on."""


@typing.runtime_checkable
class Diagnosed(typing.Protocol[OptIn]):
    """Tells the doctor what looks wrong in an image that can be counted."""

    def symptoms(
        self, pred: Prediction, gt: GroundTruth, protocol: Protocol, opt: OptIn
    ) -> Symptoms:
        """Yield (code, problem, remedy) of each symptom."""


def whole_curve(metric: object, curve: PRCurve, stack: Stack) -> PRCurve:
    """Return a curve of a metric with the row in which every pixel is on, if its counts give it."""
    return metric.with_whole_image(curve, stack) if isinstance(metric, CurveOfPixels) else curve
