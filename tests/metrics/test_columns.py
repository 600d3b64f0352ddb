"""Columns' defaults, and scores by their keys."""

import copy

import pytest

from bsdsbench.metrics.columns import Column, Score


def test_larger_is_better_unless_said():
    assert not Column("f", "F").lower


def test_scores_of_a_part():
    score = Score({"voi.ods": 1.5, "voi.ois": 1.25, "f": 0.5}, 3)
    part = score.voi
    assert (part.ods, part.ois, part.n_images) == (1.5, 1.25, 3)
    assert (part.values, score.f) == ({"ods": 1.5, "ois": 1.25}, 0.5)
    with pytest.raises(AttributeError, match=r"score 'pri': expected one of voi\.ods, voi\.ois, f"):
        _ = score.pri
    with pytest.raises(AttributeError, match=r"^_repr_png_$"):
        _ = score._repr_png_
    assert copy.copy(score).values == score.values
