"""DeLong's test against its definition pair by pair, and by its coverage."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bsdsbench.curves import delong, roc
from bsdsbench.errors import DataError
from tests.helpers.runs import call
from tests.reference import delong as slow

PAIRS = st.integers(4, 25).flatmap(
    lambda n: st.tuples(
        st.permutations([0, 0, 1, 1] + [k % 2 for k in range(n - 4)]),
        *[st.lists(st.integers(0, 6), min_size=n, max_size=n)] * 2,
    )
)


@pytest.mark.slow
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
    found = delong([-1, -1, 0, 1, 1], [1, 2, 9, 2, 3], [1, 2, 0, 2, 3], reading="sign")
    assert found[:3] == (0.875, 0.875, 0.0)
    assert math.isnan(found.p)


@pytest.mark.parametrize(
    ("labels", "level", "names"),
    [([0, 1, 1], 0.95, "2 positives and 1 negatives"), ([0, 0, 1, 1], 1, "level: 1")],
)
def test_what_cannot_be_tested_is_refused(labels, level, names):
    with pytest.raises(DataError, match=names):
        delong(labels, labels, labels, level=level)


def test_clusters_of_one_sample_give_the_numbers_without():
    rng = np.random.default_rng(3)
    labels, one = rng.integers(0, 2, 40), rng.random(40)
    other = one + rng.normal(0, 0.3, 40)
    plain = delong(labels, one, other)
    single = delong(labels, one, other, clusters=np.arange(40))
    np.testing.assert_allclose(single.covariance, plain.covariance, rtol=1e-12)


def test_copies_in_clusters_are_one_sample():
    """Obuchowski's variance by its definition, and copies that tell nothing new."""
    rng = np.random.default_rng(4)
    labels, one = np.repeat([0, 1], 15), rng.random(30)
    other, patients = rng.random(30), rng.integers(0, 12, 30)
    covariance = delong(labels, one, other, clusters=patients).covariance
    for k, scores in enumerate((one, other)):
        positive, negative = scores[labels == 1], scores[labels == 0]
        wins = positive[:, None] > negative
        area = wins.mean()
        up, down = wins.mean(axis=1) - area, wins.mean(axis=0) - area
        groups = np.unique(patients)
        a = np.array([up[patients[labels == 1] == g].sum() for g in groups])
        b = np.array([down[patients[labels == 0] == g].sum() for g in groups])
        with_positives = np.unique(patients[labels == 1]).size
        with_negatives, n = np.unique(patients[labels == 0]).size, groups.size
        variance = with_positives / (with_positives - 1) * (a**2).sum() / 15**2
        variance += with_negatives / (with_negatives - 1) * (b**2).sum() / 15**2
        variance += 2 * n / (n - 1) * (a * b).sum() / 15**2
        assert covariance[k, k] == pytest.approx(variance, rel=1e-12)
    copies = [np.repeat(x, 4) for x in (labels, one, other)]
    clustered = delong(*copies, clusters=np.repeat(np.arange(30), 4))
    assert clustered.p == pytest.approx(delong(labels, one, other).p, rel=1e-9)
    assert delong(*copies).p < clustered.p
    maps = delong(labels, one, other, clusters=patients.reshape(5, 6))
    assert maps.p == delong(labels, one, other, clusters=patients).p


def test_one_cluster_has_no_variance():
    labels, scores = [0, 0, 1, 1], [1, 2, 3, 4]
    with pytest.raises(DataError, match="clusters: one has all"):
        delong(labels, scores, scores, clusters=["a"] * 4)
    for missing in ("", None, math.nan):
        with pytest.raises(DataError, match="clusters: 2 missing"):
            delong(labels, scores, scores, clusters=np.array([missing, "a", "b", ""], object))
    with pytest.raises(DataError, match="clusters: shape"):
        delong(labels, scores, scores, clusters=["a", "b"])


def test_the_command_line_reads_clusters(tmp_path):
    rows = [f"{k % 2},{(k * 7) % 11},p{k // 4}" for k in range(24)]
    (tmp_path / "a.csv").write_text("\n".join(["label,score,patient", *rows]), "utf-8")
    plain, clustered = (
        json.loads(call("curves", tmp_path / "a.csv", "--kind", "roc", "--format", "json", *more))
        for more in ((), ("--cluster", "patient"))
    )
    assert plain["roc_areas"][0]["auc"] == clustered["roc_areas"][0]["auc"]
    assert plain["roc_areas"][0]["auc_low"] != clustered["roc_areas"][0]["auc_low"]
