"""What the server does once for all the workers that it forks."""

import platform
import subprocess
import sys

import pytest

THREE_IMAGES = """
import resource
import numpy as np
import bsdsbench.runs.preload

for _ in range(3):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    arrays = [np.ones(450_000) for _ in range(4)]
    del arrays
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(faults)
"""


@pytest.mark.process
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other systems keep memory or not")
def test_the_memory_of_one_image_serves_the_next():
    line = [sys.executable, "-c", THREE_IMAGES]
    found = subprocess.run(line, capture_output=True, text=True, check=True)
    assert int(found.stdout) < 500  # pages: 3,500 hold the arrays
