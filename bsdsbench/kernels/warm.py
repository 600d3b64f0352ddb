"""Compile the boundary kernels ahead of the first image, in two processes in parallel."""

from __future__ import annotations

import signal
from multiprocessing import get_all_start_methods, get_context
from typing import Any

import numpy as np


def compile_once() -> None:
    """Compile the kernels of the boundary benchmark into the on-disk cache; blocks until done.

    This process compiles the kernels that match pixels, and a child process all others, which takes
    as long. Kernels already in the cache are only loaded. If the child fails, nothing is raised:
    worker processes compile what is missing.
    """
    from bsdsbench.kernels.jit import IS_TESTED

    if IS_TESTED:  # with this version of numba, kernels are compiled by compiler.py
        from bsdsbench.kernels.compiler import import_compiler

        import_compiler()  # before the child is forked, which then need not import it again
    # Windows cannot fork, and starts a new process
    context: Any = get_context("fork" if "fork" in get_all_start_methods() else "spawn")
    child = context.Process(target=_compile_remaining_kernels, daemon=True)
    child.start()
    _compile_matching()
    child.join()


def _compile_matching() -> None:
    """Compile the kernels that match predicted with annotated pixels, by calling them once.

    numba compiles a kernel at its first call, for the types of the arguments, whatever their values
    are. So the input is the smallest one with the types of a real input: a map of one pixel, which
    is off, at one threshold and for one annotator. It has no pixel to match.
    """
    from bsdsbench.kernels.matching.graph import disk, number_vertices
    from bsdsbench.kernels.matching.matching import PredictedMaps, Steps, Truth, match_all

    shape = (1, 1)
    no_bits = np.zeros((1, 1), np.uint64)  # the map, with 64 pixels of a row in each word
    # The pixels that are on, which is none, numbered as the vertices of a graph
    vertices = number_vertices(no_bits[None], cols=1, reach=1)
    no_vertex = np.zeros(0, np.uint32)
    steps = Steps(  # the predicted map at one threshold: no vertex enters or leaves it
        start=np.zeros(2, np.int64),  # first and end of its changes, which are none
        vertex=no_vertex,
        enters=np.zeros(0, np.bool_),
        on_at_start=no_vertex,
    )
    radius_of_1 = disk(1.0, shape)  # the pixels at most 1 px away
    # `drawn` are the annotated pixels, and `near` those within the radius of one of them
    truth = Truth(shape, 1, vertices, radius_of_1, drawn=no_bits, near=no_bits)
    match_all(PredictedMaps(vertices, steps), truth)


def _compile_remaining_kernels() -> None:
    """Compile the kernels of thresholds, thinning and counts, by calling them.

    This runs in a child process, while its parent compiles the kernels that match pixels. A kernel
    is compiled for the types of its arguments, so a map of 4 x 4 pixels and one threshold suffice.
    """
    from bsdsbench.kernels.bits import count_set_bits
    from bsdsbench.kernels.thinning import thinning_changes
    from bsdsbench.kernels.thresholding import levels

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends this process without a message
    count_set_bits(np.zeros((1, 1), np.uint64))
    soft = np.eye(4)
    thinning_changes(levels(soft, np.array([0.5])), 1)
