"""Compiles the boundary kernels in two processes at once, before the first image needs them."""

from __future__ import annotations

import gc
import signal
from multiprocessing import get_all_start_methods, get_context
from typing import Any

import numpy as np


def compile_once() -> None:
    """Compile what the boundary benchmark runs.

    One half is left to a second process and read from the disk by all who need it. Should that
    process fail, they compile it themselves.
    """
    from numba.core.registry import cpu_target

    gc.disable()  # a compiler makes many objects that live on
    # A fork shares what numba imports to compile
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()
    way: Any = get_context("fork" if "fork" in get_all_start_methods() else "spawn")
    second = way.Process(target=others, daemon=True)
    second.start()
    matching()
    second.join()
    gc.freeze()  # the first look at all of them would take 0.4 s
    gc.enable()


def nothing() -> tuple[Any, Any]:
    """Steps and a truth without pixels, made without a kernel."""
    from bsdsbench.kernels.matching.graph import disk, empty_tiles
    from bsdsbench.kernels.matching.matching import Steps, Truth

    shape, start, none = (1, 1), np.zeros(2, np.int64), np.empty(0, np.int32)
    tiles, near = empty_tiles(shape, 1), np.zeros((1, 1), np.uint64)
    steps = Steps(start, none, np.empty(0, np.bool_), False, none, tiles[0])
    return steps, Truth(shape, start, none, tiles, disk(1.0, shape), near)


def matching() -> None:
    """What matches pixels."""
    from bsdsbench.kernels.matching.matching import match_all

    match_all(*nothing(), 0, np.zeros(1, np.int64))


def others() -> None:
    """What orders events for the first half, before that needs it; what adds up, thresholds, thins
    and counts a few pixels, and finds those within reach."""
    from numba import typeof

    from bsdsbench.kernels.matching.matching import (
        add_runs,
        batches,
        new_order,
        steps_within_reach,
        truth,
    )
    from bsdsbench.kernels.thinning import thinning_events
    from bsdsbench.kernels.thresholding import levels

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends it without a word
    steps, none = nothing()
    given = steps, steps.pixel, steps.pixel, new_order(steps, none)
    batches.compile(tuple(map(typeof, given)))
    add_runs(none.near, np.zeros(64, np.int64), steps.start)
    soft = np.eye(4)
    events = thinning_events(levels(soft, np.array([0.5])), 1)
    steps_within_reach(*events, truth(soft[None] > 0, 1.0), gt_enters=False)
