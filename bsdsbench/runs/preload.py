"""What worker processes need, done once in the server that they are forked from.

Importing this runs the metrics named in BSDSBENCH_PRELOAD (with commas between) on their examples,
so that their kernels are compiled, or read from numba's cache, once and not in every worker.
"""

import contextlib
import os

import bsdsbench.runs.job  # noqa: F401
from bsdsbench.metrics import registry

VARIABLE = "BSDSBENCH_PRELOAD"

for _name in filter(None, os.environ.get(VARIABLE, "").split(",")):
    with contextlib.suppress(Exception):  # the server lives on; the worker says what is wrong
        _metric = registry.get(_name)
        _metric.count(*_metric.example())
