"""Occlusion boundaries from files of PIOD's and BSDS ownership's layout, beside plain loops."""

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

import bsdsbench as bb
from bsdsbench.files.errors import ShapeError
from bsdsbench.metrics.imresize import bilinear
from bsdsbench.metrics.occlusion import occlusion_counts, same_side
from bsdsbench.protocol.protocol import Protocol
from tests.helpers.runs import counted, refused
from tests.reference import occlusion as slow

SHAPE = (24, 33)
FEW = Protocol.preset("occlusion").replace(thresholds=(0.2, 0.5, 0.8))


def scene(seed):
    """Edges and angles of one annotator, and a soft map near them with angles of its own."""
    rng = np.random.default_rng(seed)
    edge, angle = np.zeros(SHAPE, bool), np.zeros(SHAPE)
    edge[5:19, 8], edge[5, 8:25], edge[18, 8:25] = True, True, True
    angle[edge] = rng.uniform(-np.pi, np.pi, edge.sum())
    soft = np.zeros(SHAPE)
    soft[6:18, 9], soft[6, 9:22], soft[20, 9:26] = 0.9, 0.6, 0.35
    soft += 0.05 * rng.random(SHAPE)
    return edge, angle, soft.astype(np.float32), rng.uniform(-np.pi, np.pi, SHAPE)


def columns(c):
    names = ("matched_gt", "total_gt", "matched_pred", "total_pred", "right_gt", "right_pred")
    return np.stack([c.thresholds, *(getattr(c, name) for name in names)], axis=1)


def write_piod(root, seeds):
    (root / "pred").mkdir(parents=True)
    (root / "gt").mkdir()
    for seed in seeds:
        edge, angle, soft, angles = scene(seed)
        at = np.flatnonzero(edge.ravel(order="F")) + 1
        pieces = np.empty(2, object)
        pieces[:] = [at[:9].astype(float)[:, None], at[9:].astype(float)[:, None]]
        info = {"OrientMap": angle, "imsize": SHAPE, "ne": 2.0, "edges": {"indices": pieces}}
        savemat(root / "gt" / f"im{seed}.mat", {"bndinfo_pascal": info})
        savemat(root / "pred" / f"im{seed}.mat", {"edge_ori": {"edge": soft, "ori": angles}})
    return root / "pred", root / "gt"


def test_a_folder_of_piod(tmp_path):
    run = counted(*write_piod(tmp_path / "a", (1, 2)), metrics="occlusion", out=tmp_path / "out")
    assert run.protocol == Protocol.preset("occlusion")
    for seed, record in zip((1, 2), run.records, strict=True):
        edge, angle, soft, angles = scene(seed)
        value = bb.nms(soft, 1, 5, 1.01, False).astype(np.float64)
        cuts = np.arange(1, 100) / 100
        expected = slow.counts(value, angles, [(edge, angle)], cuts, 0.0075 * np.hypot(*SHAPE))
        found = columns(record.counts["occlusion"])
        np.testing.assert_array_equal(found[:, 1:], expected[:, 1:])
        written = np.loadtxt(tmp_path / "out" / "per_image" / f"im{seed}_ev1_occ.txt")
        np.testing.assert_allclose(written, expected, atol=1e-6)
    assert run.score("occlusion").edge.ods.f >= run.score("occlusion").orientation.ods.f > 0


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
    edge, angle, _, angles = scene(1)
    small, turned = bilinear(edge, wanted) > 0, bilinear(angle, wanted)
    c = occlusion_counts(soft, angles, [small], [turned], FEW)
    again = occlusion_counts(
        bilinear(soft, wanted), bilinear(angles, wanted), [small], [turned], FEW
    )
    np.testing.assert_array_equal(columns(c), columns(again))


def test_a_quarter_turn_is_still_the_same_side():
    turn = np.array([0, np.pi / 2, 1.6, np.pi, 4.7, 3 * np.pi / 2, 2 * np.pi, 3 * np.pi])
    expected = [True, True, False, False, False, True, True, False]
    assert same_side(turn, np.zeros(8)).tolist() == expected
    assert same_side(np.zeros(8), turn).tolist() == expected


def test_shapes_of_angles_are_those_of_their_maps():
    square, wide = np.zeros((5, 3)), np.zeros((3, 5))
    for soft, angles, gt_angle in ((wide, square, wide), (wide, wide, square)):
        words = r"shape \(5, 3\), transposed, expected \(3, 5\)"
        call = (soft, angles, [wide > 0], [gt_angle], FEW)
        refused(words, occlusion_counts, *call, error=ShapeError)
