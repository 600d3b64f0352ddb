"""The tests that its author would write: the contract of metrics, on two images of unequal size."""

import imageio.v3 as iio
import numpy as np
import pytest
from davis_boundary import DavisBoundary

import bsdsbench as bb
from tests.helpers.metric_contract import MetricCase, MetricContract


def disc(name, shape, radius):
    """A disc, and a map that is blurred and a pixel off."""
    y, x = np.mgrid[: shape[0], : shape[1]]
    away = np.hypot(y - shape[0] / 2, x - shape[1] / 2) - radius
    soft = np.rint(255 / (1 + np.exp(np.roll(away, 1, 1)))).astype(np.uint8)
    return bb.Prediction(name, soft=soft), bb.GroundTruth(name, mask=away < 0)


def write(folder):
    (folder / "pred").mkdir(), (folder / "gt").mkdir()
    for pred, gt in CASE.images:
        iio.imwrite(folder / "pred" / f"{pred.image_id}.png", pred.soft)
        iio.imwrite(folder / "gt" / f"{gt.image_id}.png", gt.mask * np.uint8(255))
    return folder / "pred", folder / "gt"


CASE = MetricCase(
    DavisBoundary(),
    images=[disc("a", (30, 41), 9), disc("b", (26, 33), 6), disc("c", (40, 28), 11)],
    protocol=bb.Protocol(thresholds=9),
    write=write,
)


class TestDavisBoundary(MetricContract):
    @pytest.fixture
    def case(self):
        return CASE
