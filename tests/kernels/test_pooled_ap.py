"""Rankings of copies of images, summed by hand."""

from fractions import Fraction

import numpy as np
import pytest

from bsdsbench.kernels.curves import sum_interpolated_precision


@pytest.mark.parametrize(
    ("scores", "hits", "weights", "ranking"),
    [
        ([0.5, 0.5], [1, 0], [2, 0], [1, 0, 1, 0]),  # copies follow each other
        ([0.6, 0.5], [1, 0], [2, 0], [1, 1, 0, 0]),  # the copies of one score first
        ([0.6, 0.5], [0, 1], [3, 0], [0, 0, 0, 1, 1, 1]),
        ([0.6, 0.5], [1, 1], [0, 2], []),  # a set without the image
    ],
)
def test_copies_of_an_image_in_a_ranking(scores, hits, weights, ranking):
    found = sum_interpolated_precision(
        np.zeros(2, np.int64), np.array(scores), np.array(hits, bool)[:, None], np.array([weights])
    )
    precision = [Fraction(sum(ranking[: r + 1]), r + 1) for r in range(len(ranking))]
    expected = sum(max(precision[r:]) for r, hit in enumerate(ranking) if hit)
    assert found.tolist() == [[pytest.approx(float(expected), rel=1e-15)]]


def test_images_of_one_score_stand_one_after_the_other():
    image, score = np.array([0, 1]), np.array([0.5, 0.5])
    hits = np.array([[True], [False]])
    found = sum_interpolated_precision(image, score, hits, np.array([[1, 1], [2, 1], [1, 2]]))
    assert found.ravel().tolist() == [1, 2, 1]
