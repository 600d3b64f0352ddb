"""DeLong's test against its definition pair by pair, and by its coverage."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bsdsbench.curves import delong, roc
from bsdsbench.errors import DataError
from tests.reference import delong as slow

PAIRS = st.integers(4, 25).flatmap(
    lambda n: st.tuples(
        st.permutations([0, 0, 1, 1] + [k % 2 for k in range(n - 4)]),
        *[st.lists(st.integers(0, 6), min_size=n, max_size=n)] * 2,
    )
)


@given(PAIRS)
def test_it_is_the_definition(drawn):
    labels, a, b = drawn
    found, (areas, covariance) = delong(labels, a, b), slow.covariance(labels, a, b)
    assert (found.auc, found.other) == pytest.approx(areas, abs=1e-12)
    assert found.auc == pytest.approx(roc(labels, a).auc, abs=1e-12)
    assert found.covariance == pytest.approx(covariance, abs=1e-12)
    variance = covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]
    if variance > 1e-9:
        z = (areas[0] - areas[1]) / math.sqrt(variance)
        assert found.p == pytest.approx(math.erfc(abs(z) / math.sqrt(2)), abs=1e-9)
        half = 1.959963984540054 * math.sqrt(variance)
        assert found.high - found.low == pytest.approx(2 * half, abs=1e-9)
    turned = delong(labels, b, a)
    assert turned.difference == pytest.approx(-found.difference)
    assert turned.p == pytest.approx(found.p, nan_ok=True)


def test_labels_of_three_values_and_equal_scores():
    found = delong([-1, -1, 0, 1, 1], [1, 2, 9, 2, 3], [1, 2, 0, 2, 3])
    assert found[:3] == (0.875, 0.875, 0.0)
    assert math.isnan(found.p)


@pytest.mark.parametrize(
    ("labels", "level", "names"),
    [([0, 1, 1], 0.95, "2 positives and 1 negatives"), ([0, 0, 1, 1], 1, "level 1")],
)
def test_what_cannot_be_tested_is_refused(labels, level, names):
    with pytest.raises(DataError, match=names):
        delong(labels, labels, labels, level=level)
