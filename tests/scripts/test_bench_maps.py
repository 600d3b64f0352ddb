"""What the benchmark makes of an image: another grid, a part, a mirrored continuation."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts" / "bench"))
import maps
from measures import Case


@pytest.fixture
def image():
    gt = np.zeros((1, 30, 40), bool)
    gt[0, 12] = True
    return Case("a", np.random.default_rng(0).random((30, 40)), gt)


def test_upsampled_lines_stay_one_pixel_wide(image):
    large = maps.upsampled(image, 90, 120)
    assert large.soft.shape == (90, 120)
    assert large.gts.shape == (1, 90, 120)
    assert large.gts.sum(axis=1).max() == 1
    assert large.gts.sum() > 110  # thinning takes a little off the ends


def test_a_crop_is_the_middle(image):
    part = maps.cropped(image, 10, 20)
    assert np.array_equal(part.soft, image.soft[10:20, 10:30])
    assert part.gts.sum() == 20


def test_a_mirrored_image_repeats_its_lines(image):
    assert maps.mirrored(image, 60, 80).gts.sum() == 2 * 80


def test_scene_has_boundaries_of_every_class_on_few_pixels():
    labels, soft = maps.scene(3, 64, 128)
    assert set(np.unique(labels)) <= {0, 1, 2}
    assert soft.shape == (3, 64, 128)
    assert soft.max() <= 1
