"""Occlusion boundaries from files of PIOD's and BSDS ownership's layout, beside plain loops."""

import numpy as np
import pytest
from PIL import Image

import bsdsbench as bb
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.transforms.resize import bilinear
from tests.helpers.counting import counts_of
from tests.helpers.metric_cases import case_of
from tests.helpers.runs import counted

SHAPE = (24, 33)
FEW = Protocol.preset("occlusion").replace(thresholds=(0.2, 0.5, 0.8))


def occlusion_counts(soft, angles, edges, gt_angles, protocol):
    truth = bb.GroundTruth("a", edges, angles=gt_angles)
    return counts_of("occlusion", bb.Prediction("a", soft=soft, angles=angles), truth, protocol)


def columns(c):
    names = ("matched_gt", "total_gt", "matched_pred", "total_pred", "right_gt", "right_pred")
    return np.stack([c.thresholds, *(getattr(c, name) for name in names)], axis=1)


def test_the_table_of_an_image(tmp_path):
    out = tmp_path / "out"
    run = counted(*case_of("occlusion").write(tmp_path), metrics="occlusion", out=out)
    assert run.protocol == Protocol.preset("occlusion")
    for record in run.records:
        written = np.loadtxt(out / "per_image" / f"{record.image_id}_ev1_occ.txt")
        np.testing.assert_allclose(written, columns(record.counts["occlusion"]), atol=1e-6)
    assert (out / "accuracy" / "eval_bdry.txt").is_file()


def test_the_right_side_by_hand():
    """Two matched pixels, of angles a quarter turn off and a little more; recall is the edges'."""
    edge, soft = np.zeros((9, 9), bool), np.zeros((9, 9))
    edge[2, 2:4], soft[2, 2:4], soft[7, 7] = True, 0.9, 0.9
    gt_angle, angle = np.zeros((9, 9)), np.zeros((9, 9))
    angle[2, 2], angle[2, 3] = 1.57, 1.58
    protocol = FEW.replace(nms=False, thresholds=(0.5,))
    c = occlusion_counts(soft, angle, [edge], [gt_angle], protocol)
    assert columns(c).tolist() == [[0.5, 2, 2, 2, 3, 1, 1]]
    # a second annotator who drew the same, facing the other way
    both = occlusion_counts(soft, angle, [edge, edge], [gt_angle, gt_angle + np.pi], protocol)
    assert columns(both).tolist() == [[0.5, 4, 4, 2, 3, 2, 2]]
    # one who drew the same, facing the same way: pairs count twice, predicted pixels once
    alike = occlusion_counts(soft, angle, [edge, edge], [gt_angle, gt_angle], protocol)
    assert columns(alike).tolist() == [[0.5, 4, 4, 2, 3, 2, 1]]
    turned = occlusion_counts(soft, angle + 2 * np.pi, [edge], [gt_angle - 4 * np.pi], protocol)
    assert turned.right_pred.tolist() == [1]


@pytest.mark.parametrize("wanted", [(17, 25), (48, 61), (24, 33)])
def test_maps_of_another_size_are_resized_bilinearly(wanted):
    """As Pillow does, which antialiases too; inside, as it treats the border differently."""
    soft = np.random.default_rng(0).random(SHAPE)
    image = Image.fromarray(soft.astype(np.float32))
    peer = np.asarray(image.resize(wanted[::-1], Image.Resampling.BILINEAR), np.float64)
    np.testing.assert_allclose(bilinear(soft, wanted)[3:-3, 3:-3], peer[3:-3, 3:-3], atol=2e-6)
    angle, angles = np.random.default_rng(1).uniform(-np.pi, np.pi, (2, *SHAPE))
    small, turned = bilinear(soft > 0.9, wanted) > 0, bilinear(angle, wanted)
    c = occlusion_counts(soft, angles, [small], [turned], FEW)
    again = occlusion_counts(
        bilinear(soft, wanted), bilinear(angles, wanted), [small], [turned], FEW
    )
    np.testing.assert_array_equal(columns(c), columns(again))


def test_a_quarter_turn_is_still_the_same_side():
    turn = np.array([[0, np.pi / 2, 1.6, np.pi, 4.7, 3 * np.pi / 2, 2 * np.pi, 3 * np.pi]])
    row, protocol = np.ones((1, 8)), FEW.replace(nms=False, thin=False, max_dist_px=0)
    for angle, gt_angle in ((turn, 0 * turn), (0 * turn, turn)):
        c = occlusion_counts(row, angle, [row > 0], [gt_angle], protocol)
        assert (c.total_pred[0], c.right_gt[0]) == (8, 4)


def test_a_transposed_prediction_is_not_one_at_another_scale():
    edge, angle = np.eye(6, 9) > 0, np.zeros((6, 9))
    with pytest.raises(bb.DataError, match="transposed"):
        occlusion_counts(edge.T * 0.9, angle.T, [edge], [angle], FEW)
