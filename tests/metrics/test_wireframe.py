"""Wireframes from files of L-CNN's layout, beside a plain definition of its programs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.io import savemat

import bsdsbench as bb
from bsdsbench.images import Lines
from bsdsbench.loaders.formats.line_files import GRID, _draw_annotated_lines, draw_lines
from bsdsbench.protocol.protocol import Protocol
from tests.helpers.counting import counts_of
from tests.helpers.metric_cases import case_of
from tests.helpers.runs import refused
from tests.reference import lines as slow

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


@given(st.integers(0, 10_000))
def test_drawn_lines_are_those_of_the_loops(seed):
    lines, scores, annotated = lines_of(seed, 6)
    drawn = draw_lines(Lines(lines.reshape(-1, 4)[:4], scores[:4]), SHAPE, GRID)
    for cut in (0.0, 0.5, 0.95):
        kept = slow.kept(lines.reshape(-1, 4)[:4], scores[:4], cut)
        np.testing.assert_array_equal(drawn > cut, slow.predicted(kept, *SHAPE))
    where = _draw_annotated_lines(annotated[:, [1, 0, 3, 2]], SHAPE)
    np.testing.assert_array_equal(where, slow.annotated(annotated, *SHAPE))


def ranked_images(seed):
    """Predicted lines with equal scores, doubles and padding; few or no true ones."""
    rng = np.random.default_rng(seed)
    images = []
    for _ in range(rng.integers(1, 5)):
        true = rng.integers(0, 9, (rng.integers(0, 6), 4)) * 3.0
        n = rng.integers(0, 12)
        near = true[rng.integers(0, max(len(true), 1), n)] if len(true) else rng.random((n, 4))
        found = near + rng.choice([0, 0.5, 1, 2, 3, 5], near.shape) * rng.choice(
            [-1, 1], near.shape
        )
        found = found[:, [2, 3, 0, 1]] if seed % 2 else found
        if seed % 5 == 0 and n > 3:
            found[-2:] = found[0]
        images.append((found, -np.sort(-rng.integers(0, 6, n) / 5), true))
    return images


def shuffled(scores):
    """Other scores of the junctions, in no order."""
    return np.random.default_rng(len(scores)).permutation(scores)


def metric_of(images, protocol=None, **files):
    stream = bb.StreamingEvaluator(protocol, "wireframe")
    for k, (found, scores, true) in enumerate(images):
        juncs = [np.column_stack([found[:, :2], shuffled(scores)]),
                 np.column_stack([true[:, :2], np.zeros(len(true))])]  # fmt: skip
        blank = np.zeros((8, 9))
        stream.update(
            bb.Prediction("a", soft=blank, lines=Lines(found, scores, juncs[0])),
            bb.GroundTruth("a", (blank > 0,), lines=Lines(true, np.zeros(len(true)), juncs[1])),
            f"{k}",
        )
    return stream.compute().score("wireframe").to_mapping()


@pytest.mark.slow
def test_structural_ap_is_the_plain_one():
    undefined = 0
    for seed in range(100):
        images = ranked_images(seed)
        kept = [(slow.without_padding(f), s, t) for f, s, t in images]
        found = metric_of(images)
        undefined += found["msap"] is None
        for limit in (5, 10, 15):
            plain = slow.structural(kept, limit)
            assert found[f"sap{limit}"] == pytest.approx(plain, abs=1e-12), (seed, limit)
        points = [(f[:, :2], shuffled(s), t[:, :2]) for f, s, t in images]
        aps = [slow.junction_ap(points, d) for d in (0.5, 1, 2)]
        assert found["map_j"] == (pytest.approx(np.mean(aps)) if None not in aps else None)
    assert 3 < undefined < 100


def test_lines_of_the_network_and_of_the_image(tmp_path):
    """The same lines in both, and a file that says its grid: the same scores."""
    lines, scores, annotated = lines_of(4)
    flat, rows = lines.reshape(-1, 4), np.array([*SHAPE] * 2)
    (tmp_path / "gt").mkdir()
    turned = np.clip(annotated, 0, np.array(SHAPE * 2)[[1, 0, 3, 2]] - 1.6) + 1
    savemat(tmp_path / "gt" / "a.mat", {"lines": turned, "size": SHAPE})
    found = []
    for k, (coordinates, grid, option) in enumerate(
        (
            (flat, {}, "network"),
            (flat * rows / 128, {}, "image"),
            (flat * 2, {"grid": (256, 256)}, "image"),
        )
    ):
        folder = tmp_path / f"p{k}"
        folder.mkdir()
        np.savez(folder / "a.npz", lines=coordinates, score=scores, **grid)
        protocol = Protocol.preset("wireframe").replace(options={"wireframe": {"lines_in": option}})
        run = bb.evaluate(
            folder, tmp_path / "gt", protocol, metrics="wireframe", workers=1, executor="thread"
        )
        found.append(run.score("wireframe").to_mapping())
    assert found[0]["sap10"] > 0
    for other in found[1:]:
        assert {k: other[k] for k in ("fh", "aph", "sap5", "msap")} == pytest.approx(
            {k: found[0][k] for k in ("fh", "aph", "sap5", "msap")}
        )


def test_lines_of_no_and_of_little_length():
    assert _draw_annotated_lines([[3, 3, 3, 3]], (5, 5)).sum() == 0
    assert np.argwhere(_draw_annotated_lines([[3, 3, 3, 3.9]], (5, 5))).tolist() == [[2, 3]]
    assert np.argwhere(_draw_annotated_lines([[0, -2, 0, -1]], (5, 5))).tolist() == [[0, 0]]
    assert _draw_annotated_lines(np.zeros((0, 4)), (5, 5)).sum() == 0
    refused(
        "a line up to row 6, column 3, expected it inside",
        _draw_annotated_lines,
        [[1, 3, 6, 3]],
        (5, 5),
    )


def test_junctions_are_counted_where_both_sides_have_them():
    ends, points = np.array([[3.0, 3, 9, 9]]), np.array([[3.0, 3, 0.5]])
    blank = np.zeros((12, 16))
    for mine, true in ((points, None), (None, points), (points, points)):
        pred = bb.Prediction("a", soft=blank, lines=Lines(ends, np.array([0.9]), mine))
        truth = bb.GroundTruth("a", (blank > 0,), lines=Lines(ends, np.zeros(1), true))
        counts = counts_of("wireframe", pred, truth)
        assert len(counts.junctions) == (mine is true)
        assert np.isnan(counts.n_junctions) == (mine is not true)


def test_no_prediction_counts_as_no_lines(tmp_path):
    pred, gt = case_of("wireframe").write(tmp_path)
    min(pred.iterdir()).unlink()
    run = bb.evaluate(pred, gt, metrics="wireframe", missing="zero", executor="thread", workers=1)
    assert run.records[0].counts["wireframe"].total_pred.sum() == 0
    assert run.records[0].counts["wireframe"].total_gt.min() > 0


@pytest.mark.parametrize("suffix", ["npz", "mat"])
@pytest.mark.parametrize("lines_in", ["network", "image"])
@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (1, ""),
        (1 / 300, "all coordinates lie within 0 .. .*multiply by rows and columns"),
        (3, "lines up to row .*lines_in=image"),
    ],
)
def test_lines_beyond_their_grid_or_shares_of_it_are_refused(
    tmp_path, suffix, lines_in, factor, words
):
    """Sound lines reach the end of their grid: 128, or 240 x 300 pixels."""
    rows, columns = (240, 300) if lines_in == "image" else (128, 128)
    ends = np.array([[5, 7, rows, columns], [60, 80, 20, 30.5]]) * factor
    lines = {"lines": ends.reshape(-1, 2, 2), "score": np.array([0.9, 0.8])}
    (tmp_path / "p").mkdir(), (tmp_path / "g").mkdir()
    place = tmp_path / "p" / f"a.{suffix}"
    savemat(place, lines) if suffix == "mat" else np.savez(place, **lines)
    annotated = {"lines": np.array([[8.0, 6, 120, 200]]), "size": np.array([240, 300])}
    savemat(tmp_path / "g" / "a.mat", annotated)
    protocol = Protocol.preset("wireframe").replace(options={"wireframe": {"lines_in": lines_in}})
    run = tmp_path / "p", tmp_path / "g", protocol
    if words:
        refused(f"a.{suffix}: {words}", bb.evaluate, *run, metrics="wireframe", workers=1)
    else:
        assert bb.evaluate(*run, metrics="wireframe", workers=1).image_ids == ["a"]


def test_annotated_lines_that_are_shares_are_refused(tmp_path):
    (tmp_path / "p").mkdir(), (tmp_path / "g").mkdir()
    np.savez(tmp_path / "p" / "a.npz", lines=np.full((1, 4), 9.0), score=[0.5])
    savemat(tmp_path / "g" / "a.mat", {"lines": [[0.1, 0.2, 0.9, 1.0]], "size": [240, 300]})
    words = "a.mat: all coordinates of lines lie within 0 .. 1, expected pixels"
    run = tmp_path / "p", tmp_path / "g", "wireframe"
    refused(words, bb.evaluate, *run, metrics="wireframe", workers=1)


@pytest.mark.parametrize("change", ["scores", "ends", "grid"])
def test_images_are_counted_again_where_only_their_lines_changed(tmp_path, change):
    soft = np.zeros((64, 64))
    soft[[10, 40], 10:60] = 1
    ends = np.array([[10, 10, 10, 60], [40, 10, 40, 60]], float)
    truth = bb.GroundTruth(
        "a", boundaries=(soft > 0,), lines=Lines(ends[:1], np.ones(1), grid=(64, 64))
    )

    def sap_of(out, **changed):
        fields = {"ends": ends, "scores": np.array([0.9, 0.1]), "grid": (64, 64), **changed}
        pred = bb.Prediction("a", soft=soft, lines=Lines(**fields))
        run = bb.evaluate_items([("a", pred, truth)], metrics="wireframe", out=out, workers=1)
        return run.score("wireframe")["sap10"]

    others = {"scores": np.array([0.1, 0.9]), "ends": ends[::-1].copy(), "grid": (128, 128)}
    first = sap_of(tmp_path)
    again = sap_of(tmp_path, **{change: others[change]})
    assert again == sap_of(None, **{change: others[change]})
    assert first == 1
    assert again < 1
