"""What must hold for any two segmentations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bsdsbench.metrics.region.counting import region_counts

SHAPES = st.tuples(st.integers(1, 7), st.integers(1, 9))


@st.composite
def maps(draw, count, labels=5):
    shape = draw(SHAPES)
    elements = st.integers(0, labels)
    return [draw(hnp.arrays(np.int64, shape, elements=elements)) for _ in range(count)]


@settings(max_examples=40)
@given(maps(3), st.randoms(use_true_random=False))
@pytest.mark.slow
def test_permuting_labels_changes_nothing(three, random):
    seg, *gts = three

    def renamed(labels, zero):
        names = random.sample([*range(-50, 0), *range(1, 50)], 6)
        return np.array([zero, *names[1:]])[labels]

    counts = region_counts(seg, gts)
    assert region_counts(renamed(seg, 0), [renamed(g, 0) for g in gts]).equals(counts)
    # Only two rules of the adapted Rand error know the label 0 from others.
    again = region_counts(renamed(seg, 90), [renamed(g, 91) for g in gts])
    for name in set(again) - {"are_skimage", "are_cremi"}:
        assert np.array_equal(again[name], getattr(counts, name)), name
