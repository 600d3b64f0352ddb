"""The kernels are plain Python underneath: with the JIT off they give the same numbers."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from bsdsbench.kernels.matching.matching import match_steps, prepare_truth
from bsdsbench.kernels.regions.contingency import value_pairs
from bsdsbench.kernels.thinning import thin_map, thinning_changes
from bsdsbench.kernels.thresholding import confusion, levels

SCRIPT = """
import json, numba, sys
import numpy as np
from bsdsbench.kernels.regions.contingency import value_pairs
from bsdsbench.kernels.matching.matching import match_steps, prepare_truth
from bsdsbench.kernels.thinning import thin_map, thinning_changes
from bsdsbench.kernels.thresholding import confusion, levels
assert numba.config.DISABLE_JIT
labels = np.arange(-20, 20).repeat(3) << 40
arrays = [*value_pairs(labels, labels[::-1].copy())]
np.seterr(over="ignore")  # words of bits wrap around
spec = json.loads(sys.argv[1])
values, thresholds = np.array(spec["values"]), np.array(spec["thresholds"])
level = levels(values, thresholds)
bytes_level = levels((values * 255).astype(np.uint8), thresholds)
counts = confusion(values, values > 0.7, thresholds)
byte_counts = confusion((values * 255).astype(np.uint8), values > 0.7, thresholds)
changes = thinning_changes(level, len(thresholds))
arrays += [level, bytes_level, *counts, *byte_counts, *changes, thin_map(values > 0.3)]
arrays += match_steps(changes, prepare_truth((values > 0.7)[None], 2.5))
print(json.dumps([a.tolist() for a in arrays]))
"""


@pytest.mark.process
def test_same_numbers_without_jit():
    values = np.random.default_rng(1).random((9, 12))
    thresholds = np.linspace(0.2, 0.8, 4)
    spec = {"values": values.tolist(), "thresholds": thresholds.tolist()}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT, json.dumps(spec)],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    level = levels(values, thresholds)
    as_bytes = (values * 255).astype(np.uint8)
    labels = np.arange(-20, 20).repeat(3) << 40
    arrays = [*value_pairs(labels, labels[::-1].copy())]
    arrays += [level, levels(as_bytes, thresholds)]
    arrays += [*confusion(values, values > 0.7, thresholds)]
    arrays += [*confusion(as_bytes, values > 0.7, thresholds)]
    changes = thinning_changes(level, 4)
    arrays += [*changes, thin_map(values > 0.3)]
    arrays += match_steps(changes, prepare_truth((values > 0.7)[None], 2.5))
    assert json.loads(done.stdout) == [a.tolist() for a in arrays]
