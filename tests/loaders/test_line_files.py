"""Files of lines and of oriented edges: every form, default, limit and refusal."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from bsdsbench.files import bounded
from bsdsbench.loaders.line_files import (
    drawn_lines,
    lines_prediction,
    lines_truth,
    oriented_prediction,
    oriented_truth,
    truth_lines,
)
from bsdsbench.loaders.line_maps import samples, score_map, truth_map
from bsdsbench.loaders.pairing import Pair
from tests.helpers.runs import refused

ENDS = np.array([[0.0, 1, 8, 17], [2, 3, 30, 40], [5, 5, 6, 60]])  # row column row column
SCORES = np.array([0.9, 0.5, 0.25])
ANGLE = np.arange(12.0).reshape(3, 4) / 10
EDGE = np.array([[0, 1, 0, 2], [0, 0, 0, 0], [0, 0, 3, 0]])


@pytest.fixture
def pred(tmp_path):
    """What is read of a file of these arrays, for a picture of 20 x 30."""

    def read(loader=lines_prediction, shape=(20, 30), **arrays):
        np.savez(tmp_path / "a.npz", **arrays)
        return loader(Pair("7", (tmp_path / "a.npz",), ()), shape)

    return read


@pytest.fixture
def truth(tmp_path):
    def read(loader=lines_truth, **arrays):
        path = tmp_path / "gt" / "a.npz"
        path.parent.mkdir(exist_ok=True)
        np.savez(path, **arrays)
        return loader(Pair("7", (), (path,)))

    return read


# --- predicted lines


@pytest.mark.parametrize("name", ["lines", "line"])
@pytest.mark.parametrize("word", ["score", "scores"])
@pytest.mark.parametrize("form", ["(N, 4)", "(N, 2, 2)", "(N, 2, 3)"])
def test_predicted_lines_in_any_form(pred, name, word, form):
    given = ENDS if form == "(N, 4)" else ENDS.reshape(3, 2, 2)
    if form == "(N, 2, 3)":
        given = np.concatenate([given, np.full((3, 2, 1), 77)], 2)
    found = pred(**{name: given, word: SCORES[:, None]})
    assert found.image_id == "7"
    assert found.path is not None
    assert found.lines.ends.tolist() == ENDS.tolist()
    assert found.lines.scores.tolist() == SCORES.tolist()
    assert (found.lines.junctions, found.lines.grid) == (None, None)
    assert np.array_equal(found.soft, score_map(ENDS, SCORES, (20, 30), (128, 128)))


def test_a_grid_of_its_own(pred):
    found = pred(lines=ENDS, score=SCORES, grid=np.array([40, 70]))
    assert found.lines.grid == (40, 70)
    assert np.array_equal(found.soft, score_map(ENDS, SCORES, (20, 30), (40, 70)))


@pytest.mark.parametrize(
    ("scores", "count"),
    [([0.9, 0.5, 0.25], 3), ([0.9, 0.5, 0.9], 2), ([0.9, 0.9, 0.9], 1), ([0.9, 0.5, 0.5], 3),
     ([0.0, 1.0, 0.5], 3)],
)  # fmt: skip
def test_lines_repeat_from_the_first_score_on(pred, scores, count):
    found = pred(lines=ENDS, score=np.array(scores))
    expected = score_map(ENDS[:count], scores[:count], (20, 30), (128, 128))
    assert np.array_equal(found.soft, expected)
    assert np.array_equal(drawn_lines(found.lines, (20, 30), (128, 128)), expected)
    assert len(found.lines.ends) == 3


@pytest.mark.parametrize("names", [("juncs", "juncs_score"), ("juncs_pred", "juncs_score")])
@pytest.mark.parametrize("columns", [2, 3])
def test_junctions_with_their_scores(pred, names, columns):
    points = np.array([[1.0, 2, 50], [3, 4, 60]])[:, :columns]
    more = dict(zip(names, (points, np.array([[0.25], [0.75]])), strict=True))
    found = pred(lines=ENDS, score=SCORES, **more)
    assert found.lines.junctions.tolist() == [[1, 2, 0.25], [3, 4, 0.75]]


def test_no_lines(pred):
    for shape in ((0, 4), (0, 2, 2), (0,), (0, 2, 3)):
        found = pred(lines=np.zeros(shape), score=np.zeros(0), juncs=np.zeros((0, 2)),
                     juncs_score=np.zeros(0))  # fmt: skip
        assert found.lines.ends.shape == (0, 4)
        assert found.lines.junctions.shape == (0, 3)
        assert not found.soft.any()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"score": SCORES[:2]}, "3 lines and 2 scores, expected as many"),
        ({"score": [0.5, 0.5, -0.01]}, r"scores up to 0\.5, expected values in \[0, 1\]"),
        ({"score": [0.5, np.nan, 0.5]}, r"scores up to nan, expected values in \[0, 1\]"),
        ({"score": ["a", "b", "c"]}, "expected numbers"),
        ({"lines": np.zeros((2, 6))}, r"lines of shape \(2, 6\), expected \(N, 4\) or \(N, 2, 2\)"),
        ({"lines": np.zeros((4, 3))}, r"lines of shape \(4, 3\), expected \(N, 4\)"),
        ({"lines": np.where(ENDS == 60, 1e6, ENDS)}, "NaN or beyond 1e"),
        ({"lines": np.where(ENDS == 60, np.nan, ENDS)}, "NaN or beyond 1e"),
        ({"juncs": np.zeros((2, 4))}, r"juncs of shape \(2, 4\), expected \(M, 2\)"),
        ({"juncs": np.zeros(2)}, r"juncs of shape \(2,\)"),
        ({"juncs": np.full((2, 2), 1e6)}, "NaN or beyond 1e"),
        ({"juncs": np.zeros((2, 2))}, "has juncs, lines, score, expected an array juncs_score"),
        ({"juncs": np.zeros((2, 2)), "juncs_score": [1.0]}, "2 junctions and 1 scores, expected"),
        ({"grid": [0, 5]}, "grid 0 x 5, expected rows and columns"),
        ({"grid": [5, 5.5]}, r"grid 5 x 5\.5, expected rows and columns"),
        ({"grid": [5]}, "grid 5 x 0, expected rows and columns"),
    ],
)
def test_predictions_that_are_no_lines(pred, change, words):
    given = {"lines": ENDS, "score": SCORES} | {k: np.array(v) for k, v in change.items()}
    refused(rf"a\.npz: .*{words}", pred, **given)


def test_values_at_their_limits_are_read(pred):
    found = pred(lines=np.where(ENDS == 60, 1e6 - 1, ENDS), score=np.array([0, 1, 0.5]))
    assert found.lines.ends.max() == 1e6 - 1
    assert pred(lines=ENDS, score=SCORES, grid=np.array([1, 1])).lines.grid == (1, 1)
    refused("has other, expected an array lines$", pred, other=ENDS)


# --- annotated lines

XY = ENDS[:, [1, 0, 3, 2]] + 1  # x y x y, counted from 1


def test_annotated_lines(truth):
    found = truth(lines=XY, size=np.array([40, 70]))
    drawn = truth_map(ENDS + 1, (40, 70))
    assert found.boundaries[0].shape == (40, 70)
    assert np.array_equal(found.boundaries[0], drawn)
    # on the grid of 128 x 128, by hand: rows x 128/40, columns x 128/70
    scale = np.array([3.2, 128 / 70, 3.2, 128 / 70])
    assert np.allclose(found.lines.ends, ENDS * scale, atol=1e-12)
    assert found.lines.scores.tolist() == [0, 0, 0]
    assert (found.lines.junctions, found.lines.grid) == (None, (128, 128))
    assert (found.image_id, found.path.name) == ("7", "a.npz")


def test_the_size_of_a_picture_of_lines_is_bounded(truth, monkeypatch):
    """A byte for each of 40 x 70 pixels; the file itself takes less."""
    monkeypatch.setattr(bounded, "MAX_DECODED_BYTES", 40 * 70)
    assert truth(lines=XY, size=np.array([40, 70])).boundaries[0].shape == (40, 70)
    monkeypatch.setattr(bounded, "MAX_DECODED_BYTES", 40 * 70 - 1)
    refused("claims 40 x 70 values of 1 bytes", truth, lines=XY, size=np.array([40, 70]))


def test_annotated_lines_on_a_grid_that_the_file_gives(truth):
    more = {"lpos": ENDS.reshape(3, 2, 2) / 2, "grid": np.array([64, 32])}
    found = truth(lines=XY, size=np.array([40, 70]), junc=np.array([[1.0, 2], [3, 4]]), **more)
    assert found.lines.ends.tolist() == (ENDS / 2).tolist()
    assert found.lines.grid == (64, 32)
    assert found.lines.junctions.tolist() == [[1, 2, 0], [3, 4, 0]]
    found = truth(lines=XY, size=np.array([40, 70]), juncs=np.array([[5.0, 6, 9]]))
    assert found.lines.junctions.tolist() == [[5, 6, 0]]


def test_true_lines_stay_on_the_grid():
    """From 0 to a little below 128, by the data set of L-CNN."""
    found = truth_lines(np.array([[0.0, 1, 20, 20], [11, 6, 100, 200]]), (20, 10))
    assert np.allclose(found, [[0, 0, 19 * 6.4, 127.9999], [64, 64, 127.9999, 127.9999]])


@pytest.mark.parametrize("suffix", [".png", ".jpg"])
def test_the_size_of_the_picture_beside(truth, tmp_path, suffix):
    (tmp_path / "images").mkdir()
    Image.new("L", (70, 40)).save(tmp_path / "images" / f"a{suffix}")
    assert truth(lines=XY).boundaries[0].shape == (40, 70)
    assert truth(lines=XY, size=np.array([50, 80])).boundaries[0].shape == (50, 80)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, r"no size, expected size \(rows, columns\) or the picture images/a\.png$"),
        ({"size": [20, 70]}, "a line up to row 31, column 41, expected it inside 20 x 70$"),
        ({"size": [10_000, 10_001]}, "claims 10000 x 10001 values, expected at most 100000000$"),
        ({"size": [40, 0]}, "size 40 x 0, expected rows and columns$"),
        ({"size": [40, 70], "lpos": np.zeros((2, 3))}, r"lines of shape \(2, 3\), expected"),
        ({"size": [40, 70], "junc": np.zeros((2, 4))}, r"junc of shape \(2, 4\), expected \(M, 2"),
    ],
)
def test_annotations_that_are_no_lines(truth, change, words):
    refused(rf"a\.npz: {words}", truth, lines=XY, **{k: np.array(v) for k, v in change.items()})


# --- oriented edges


def test_predicted_oriented_edges(pred, tmp_path):
    found = pred(oriented_prediction, edge=EDGE / 3, ori=ANGLE.astype(np.float32))
    assert found.soft.tolist() == (EDGE / 3).tolist()
    assert found.angles.dtype == np.float64
    assert found.angles.tolist() == ANGLE.astype(np.float32).tolist()
    savemat(tmp_path / "b.mat", {"edge_ori": {"edge": EDGE / 3, "ori": ANGLE}})
    path = tmp_path / "b.mat"
    found = oriented_prediction(Pair("7", (path,), ()), (3, 4))
    assert (found.image_id, found.path) == ("7", path)
    assert found.soft.tolist() == (EDGE / 3).tolist()
    assert found.angles.tolist() == ANGLE.tolist()


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"edge_ori": EDGE, "ori": ANGLE}, "edge_ori is no struct, expected one of edge and ori$"),
        ({"edge": EDGE}, r"has edge, expected an array ori$"),
        ({"edge": EDGE, "ori": ANGLE[0]}, r"ori of shape \(4,\)"),
        ({"edge": EDGE[None], "ori": ANGLE}, r"edge of shape \(1, 3, 4\)"),
        ({"edge": EDGE, "ori": ANGLE[:2]}, r"edge \(3, 4\) and ori \(2, 4\), expected one size$"),
        ({"edge": EDGE, "ori": np.where(EDGE, np.inf, 0)}, "angles that are NaN or infinite"),
    ],
)
def test_predictions_that_are_no_oriented_edges(pred, arrays, words):
    refused(rf"a\.npz: {words}", pred, oriented_prediction, **arrays)


def mat(tmp_path, content):
    savemat(tmp_path / "a.mat", content)
    return Pair("7", (), (tmp_path / "a.mat",))


@pytest.mark.parametrize("several", [False, True])
def test_annotated_oriented_edges(truth, several):
    edges, angles = np.stack([EDGE, EDGE * 0 + 1]), np.stack([ANGLE, -ANGLE])
    if not several:
        edges, angles = edges[0], angles[0]
    found = truth(oriented_truth, edge=edges, ori=angles.astype(np.float32))
    edges, angles = (a if several else a[None] for a in (edges, angles))
    assert np.array_equal(found.boundaries, edges != 0)
    assert [a.dtype for a in found.angles] == [np.dtype(np.float64)] * len(edges)
    assert np.array_equal(found.angles, angles.astype(np.float32))
    assert (found.image_id, found.path.name) == ("7", "a.npz")


@pytest.mark.parametrize("form", ["struct", "several", "bare"])
def test_piod(tmp_path, form):
    """Fragments hold pixels counted from 1 down the columns: 1, 4, 12 of 3 x 4."""
    pieces = np.empty((1, 2), object)
    pieces[0, 0], pieces[0, 1] = np.array([[1.0, 4]]), np.array([[12]], np.int32)
    one = np.array([[1, 4, 12]], np.uint16)
    edges = {"several": {"indices": pieces}, "struct": {"indices": one}, "bare": one}[form]
    info = {"OrientMap": ANGLE, "edges": edges}
    found = oriented_truth(mat(tmp_path, {"bndinfo_pascal": info}))
    assert found.boundaries[0].astype(int).tolist() == [[1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]]
    assert [a.tolist() for a in found.angles] == [ANGLE.tolist()]


def test_ownership(tmp_path):
    both = np.dstack([EDGE, ANGLE])
    cells = np.empty((1, 2), object)
    cells[0, 0], cells[0, 1] = both, np.dstack([EDGE[::-1], -ANGLE])
    found = oriented_truth(mat(tmp_path, {"gtStruct": {"gt_theta": cells}}))
    assert np.array_equal(found.boundaries, [EDGE != 0, EDGE[::-1] != 0])
    assert np.array_equal(found.angles, [ANGLE, -ANGLE])
    found = oriented_truth(mat(tmp_path, {"gtStruct": {"gt_theta": both}}))
    assert np.array_equal(found.boundaries, [EDGE != 0])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"bndinfo_pascal": {"OrientMap": ANGLE, "edges": {"indices": [[0.0, 4]]}}},
         "edges.indices outside OrientMap, expected pixels of it"),
        ({"bndinfo_pascal": {"OrientMap": ANGLE, "edges": {"indices": [[1.0, 13]]}}},
         "edges.indices outside OrientMap, expected pixels of it"),
        ({"bndinfo_pascal": {"OrientMap": ANGLE, "edges": {"indices": "text"}}},
         "bndinfo_pascal without edges.indices, expected those of PIOD"),
        ({"bndinfo_pascal": {"OrientMap": ANGLE}},
         "bndinfo_pascal without edges.indices, expected those of PIOD"),
        ({"bndinfo_pascal": {"OrientMap": ANGLE, "edges": {"indices": [[True]]}}},
         "bndinfo_pascal without edges.indices, expected those of PIOD"),
        ({"bndinfo_pascal": {"other": ANGLE}}, r"has other, expected an array OrientMap"),
        ({"gtStruct": {"gt_theta": ANGLE}}, r"gtStruct without gt_theta of \(H, W, 2\)"),
        ({"gtStruct": {"gt_theta": np.zeros((3, 4, 1, 2))}}, r"gtStruct without gt_theta of"),
        ({"gtStruct": {"gt_theta": np.empty((1, 0), object)}}, "no annotators, expected at least"),
        ({"gtStruct": 3, "edge": EDGE}, r"has edge, gtStruct, expected an array ori"),
        ({"bndinfo_pascal": 3, "edge": EDGE, "ori": ANGLE[:, :3]},
         r"edge \(3, 4\) and ori \(3, 3\), expected one size"),
        ({"edge": np.zeros((2, 2, 3, 4)), "ori": ANGLE}, r"edge of shape"),
        ({"edge": EDGE, "ori": ANGLE + np.nan}, "angles that are NaN or infinite"),
        ({"gtStruct": {"gt_theta": np.dstack([EDGE, ANGLE + np.inf])}}, "angles that are NaN or"),
    ],
)  # fmt: skip
def test_annotations_that_are_no_oriented_edges(tmp_path, content, words):
    refused(rf"a\.mat: {words}", oriented_truth, mat(tmp_path, content))


def test_no_array_at_all(tmp_path):
    savemat(tmp_path / "a.mat", {})
    pair = Pair("7", (Path(tmp_path / "a.mat"),), (tmp_path / "a.mat",))
    refused("a.mat: has nothing, expected an array lines$", lines_prediction, pair, (3, 4))
    refused("a.mat: has nothing, expected an array edge", oriented_truth, pair)


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        ((0, 0), []),
        ((0.6, 0.8), [(0.6, 0.8)]),
        ((0, 2), [(0, 0), (0, 2)]),
        ((0, 2.1), [(0, 0), (0, 1.05), (0, 2.1)]),
        ((-3, 0), [(0, 0), (-1.5, 0), (-3, 0)]),
    ],
)
def test_as_many_samples_as_a_line_is_long(end, expected):
    found = samples(np.zeros(2), np.array(end, float))
    assert found.reshape(-1, 2).tolist() == [pytest.approx(point) for point in expected]
