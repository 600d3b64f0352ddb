"""Wireframes from files of L-CNN's layout, beside a plain definition of its programs."""

import imageio.v3 as iio
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from scipy.io import savemat

import bsdsbench as bb
from bsdsbench.cli import cli
from bsdsbench.loaders.line_maps import score_map, truth_map
from bsdsbench.protocol.protocol import Protocol
from tests.helpers.runs import counted, refused
from tests.reference import lines as slow
from tests.reference import matching

SHAPE = (38, 57)


def lines_of(seed, count=14):
    """Predicted lines (N, 2, 2) in the grid, scores with padding at the end, annotated x y x y."""
    rng = np.random.default_rng(seed)
    lines = rng.uniform(-2, 130, (count, 2, 2))
    scores = np.sort(rng.choice([0.2, 0.55, 0.65, 0.92, 0.96, 0.992, 0.9996], count))[::-1].copy()
    scores[0] = 0.99995
    lines[-2:], scores[-2:] = lines[:2], scores[:2]  # a network's output is filled up so
    rows, cols = SHAPE
    annotated = lines.reshape(-1, 4)[: count // 2, [1, 0, 3, 2]] / 128 * [cols, rows, cols, rows]
    annotated = np.clip(annotated + rng.normal(0, 0.8, annotated.shape), 0, [cols, rows] * 2)
    return lines, scores, annotated


def write(root, seeds, suffix):
    """Predictions as .npz or .mat, ground truth as .mat with its pictures beside it."""
    for folder in ("pred", "gt", "images"):
        (root / folder).mkdir()
    for seed in seeds:
        lines, scores, annotated = lines_of(seed)
        name = f"{seed:08d}"
        if suffix == "npz":
            np.savez(root / "pred" / f"{name}.npz", lines=lines, score=scores)
        else:
            four = {"lines": lines.reshape(-1, 4), "score": scores}
            savemat(root / "pred" / f"{name}.mat", four)
        savemat(root / "gt" / f"{name}.mat", {"lines": annotated})
        iio.imwrite(root / "images" / f"{name}.png", np.zeros((*SHAPE, 3), np.uint8))
    return root / "pred", root / "gt"


def expected(seeds):
    """Rows of TP, predicted, annotated at each threshold, by loops and scipy's assignment."""
    rows = np.zeros((12, 3), int)
    for seed in seeds:
        lines, scores, annotated = lines_of(seed)
        truth = slow.annotated(annotated, *SHAPE)
        for k, cut in enumerate(slow.CUTS):
            found = slow.predicted(slow.kept(lines.reshape(-1, 4), scores, cut), *SHAPE)
            tp = matching.cardinality(found, truth, 0.01 * np.hypot(*SHAPE))
            rows[k] += tp, found.sum(), truth.sum()
    return rows


@pytest.mark.parametrize("suffix", ["npz", "mat"])
def test_a_folder_of_lines_is_what_the_programs_make_of_it(tmp_path, suffix):
    seeds = (3, 4, 5)
    run = counted(*write(tmp_path, seeds, suffix), metrics="wireframe")
    assert run.protocol == Protocol.preset("wireframe")
    score = run.score("wireframe")
    rows = expected(seeds)
    tp, found, n = rows.T
    total = sum(r.counts["wireframe"].total_pred for r in run.records)
    np.testing.assert_array_equal(total, found)
    np.testing.assert_allclose(score.curve.recall, tp / n, rtol=0, atol=1e-15)
    fh, aph = slow.heat(tp, found - tp, n[0])
    assert score.fh == pytest.approx(fh, abs=1e-12)
    assert score.aph == pytest.approx(aph, abs=1e-12)
    assert "F^H" in run.summary()


@given(st.integers(0, 10_000))
def test_drawn_lines_are_those_of_the_loops(seed):
    lines, scores, annotated = lines_of(seed, 6)
    drawn = score_map(lines.reshape(-1, 4)[:4], scores[:4], SHAPE)
    for cut in (0.0, 0.5, 0.95):
        kept = slow.kept(lines.reshape(-1, 4)[:4], scores[:4], cut)
        np.testing.assert_array_equal(drawn > cut, slow.predicted(kept, *SHAPE))
    where = truth_map(annotated[:, [1, 0, 3, 2]], SHAPE)
    np.testing.assert_array_equal(where, slow.annotated(annotated, *SHAPE))


def test_recalls_and_precisions_are_sorted_apart():
    """Precision .5 belongs to recall .4 here, and is paired with .6: the programs' rule."""
    assert slow.heat([6, 4], [2, 4], 10) == pytest.approx((2 * 0.6 * 0.5 / 1.1, 0.4 * 0.75 + 0.1))


def test_lines_of_no_and_of_little_length():
    assert truth_map([[3, 3, 3, 3]], (5, 5)).sum() == 0
    assert np.argwhere(truth_map([[3, 3, 3, 3.9]], (5, 5))).tolist() == [[2, 3]]
    assert np.argwhere(truth_map([[0, -2, 0, -1]], (5, 5))).tolist() == [[0, 0]]
    assert truth_map(np.zeros((0, 4)), (5, 5)).sum() == 0
    refused("a line up to row 6, column 3, expected it inside", truth_map, [[1, 3, 6, 3]], (5, 5))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"lines": np.zeros((3, 5)), "score": np.zeros(3)}, r"lines of shape \(3, 5\), expected"),
        ({"lines": np.zeros((3, 4)), "score": np.zeros(2)}, "3 lines and 2 scores"),
        ({"lines": np.zeros((3, 4)), "score": np.full(3, 7.0)}, "scores up to 7"),
        ({"lines": np.full((3, 4), np.nan), "score": np.zeros(3)}, "NaN or beyond"),
        ({"juncs": np.zeros((3, 2))}, "has juncs, expected an array lines"),
        (
            {"lines": np.zeros((3, 4)), "score": np.zeros(3), "grid": [0, 4]},
            "grid 0 x 4, expected rows",
        ),
    ],
)
def test_files_that_are_no_lines(tmp_path, content, message):
    pred, gt = write(tmp_path, (3,), "npz")
    np.savez(pred / "00000003.npz", **content)
    refused(message, bb.evaluate, pred, gt, metrics="wireframe", executor="thread", workers=1)


def test_a_ground_truth_without_a_size(tmp_path):
    pred, gt = write(tmp_path, (3,), "npz")
    (tmp_path / "images" / "00000003.png").unlink()
    with pytest.raises(bb.DataError, match="no size, expected size"):
        bb.evaluate(pred, gt, metrics="wireframe", executor="thread", workers=1)
    savemat(gt / "00000003.mat", {"lines": [[5.0, 5, 9, 9]], "size": [20, 30]})
    run = bb.evaluate(pred, gt, metrics="wireframe", executor="thread", workers=1)
    assert run.records[0].size == (20, 30)


def test_no_prediction_counts_as_no_lines(tmp_path):
    pred, gt = write(tmp_path, (3, 4), "npz")
    (pred / "00000003.npz").unlink()
    run = bb.evaluate(pred, gt, metrics="wireframe", missing="zero", executor="thread", workers=1)
    assert run.records[0].counts["wireframe"].total_pred.sum() == 0
    assert run.records[0].counts["wireframe"].total_gt.min() > 0


def test_the_command_line_takes_the_preset_of_the_metric(tmp_path):
    pred, gt = write(tmp_path, (3,), "npz")
    given = ["evaluate", str(pred), "--gt", str(gt), "--metrics", "wireframe"]
    done = CliRunner().invoke(cli, [*given, "--quiet", "--executor", "thread"])
    assert "F^H" in done.stdout
    assert "proto:wireframe.1" in done.stdout
