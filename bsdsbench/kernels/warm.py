"""Compiles the boundary kernels in two processes at once, before the first image needs them."""

from __future__ import annotations

import gc

import numpy as np

from bsdsbench.kernels import never_compiled, second_python


def compile_once() -> None:
    """Compile what the boundary benchmark runs, where that was not done yet; else do nothing.

    One half is left to a second process and read from the disk by all who need it. Should that
    process fail, they compile it themselves.
    """
    if not never_compiled():
        return
    gc.disable()  # a compiler makes many objects that live on
    with second_python("from bsdsbench.kernels.warm import others; others()"):
        matching()
    gc.enable()


def matching() -> None:
    """What matches pixels, with ground truth that is made without a kernel."""
    from bsdsbench.kernels.graph import Disk
    from bsdsbench.kernels.matching import Truth, match_steps

    start, pixel, added = np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.bool_)
    words, cost = np.zeros((8, 8, 1, 1), np.uint64), np.zeros((1, 1), np.int64)
    reach = Disk(pixel, words, cost, 1)
    match_steps(start, pixel, added, Truth(1, words[0, :1], (0,), reach, words[0, 0]))


def others() -> None:
    """What thresholds and thins a few pixels, and finds those within reach."""
    from bsdsbench.kernels.matching import truth
    from bsdsbench.kernels.thinning import thinning_events
    from bsdsbench.kernels.thresholding import levels

    soft, thresholds = np.eye(4), np.array([0.5])
    thinning_events(levels(soft, thresholds), 1)
    truth(soft[None] > 0, 1.0)
