"""The first images of a run that show something, whose maps are checked for mistakes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bsdsbench.errors import DataError, InputWarning, InvertedWarning, describe_unexpected, warn
from bsdsbench.images import GroundTruth
from bsdsbench.metrics import registry
from bsdsbench.runs.keywords import Plan
from bsdsbench.runs.sanity import LOOKS, Look, first_look

# Images that show something are searched among this many, since the first 40 slices of a volume may
# be empty. Those beyond the first LOOKS are read again for it
_MOST_SEARCHED = 100


class FirstLooks:
    """Collects the maps of a run's first images, and warns of mistakes once there are enough.

    An image whose ground truth is the same everywhere tells nothing about orientation, labels or
    void values. Therefore the first LOOKS other images are checked or, if there are none among the
    first _MOST_SEARCHED, the first LOOKS images.
    """

    def __init__(self, plan: Plan) -> None:
        """Begin to collect the maps of a run."""
        self.plan = plan
        self.n_seen = 0
        self.are_checked = self.warned_inverted = False  # the latter: maps look inverted
        self.shown: list[Look] = []  # of images that show something
        self.others: list[Look] = []  # of others among the first LOOKS

    def add(self, look: Look | None, read_again: Callable[[], Look | None] | None) -> None:
        """Add the next image, and check the images as soon as there are enough.

        look: its maps; None beyond the first LOOKS images, and if it has none.
        read_again: returns its maps; None if it has no prediction or could not be counted.
        """
        if self.are_checked:
            return
        self.n_seen += 1
        if self.n_seen > LOOKS and read_again is not None:
            look = read_again()
        if look is not None and _shows_something(look.gt):
            self.shown.append(look)
        elif look is not None and self.n_seen <= LOOKS:
            self.others.append(look)
        if len(self.shown) == LOOKS or self.n_seen == _MOST_SEARCHED:
            self.check()

    def check(self) -> None:
        """Warn of mistakes in the images, unless this was done before."""
        if self.are_checked:
            return
        self.are_checked = True
        plan, looks = self.plan, self.shown or self.others
        try:
            # `plan.unused`: fields of the protocol that affect no score of the run
            warnings = first_look(looks, plan.protocol, plan.unused, plan.metric_groups[0].metrics)
        except Exception as error:  # a bug in a metric's own search for mistakes, as of a plug-in
            fault = describe_bug(error, plan)
            if plan.on_error == "fail":
                raise DataError(fault) from error
            warnings = [InputWarning(fault)]
        for warning in warnings:
            warn(warning)
        self.warned_inverted = InvertedWarning in map(type, warnings)


def _shows_something(gt: GroundTruth) -> bool:
    """Return True if some map of a ground truth, except that of valid pixels, is not constant."""
    for name, part in gt.parts.items():
        for values in part if isinstance(part, tuple) else (part,):
            is_map = isinstance(values, np.ndarray) and values.ndim >= 2
            if name != "valid" and (not is_map or (values != values.flat[:1]).any()):
                return True
    return False


def describe_bug(error: Exception, plan: Plan) -> str:
    """Return the message for an unexpected exception of a run, which is a bug or lack of memory."""
    if isinstance(error, MemoryError):
        return "not enough memory for this image"
    packages = {type(registry.get(m)).__module__.partition(".")[0] for m in plan.metrics}
    return describe_unexpected(error, packages | {"bsdsbench"})
