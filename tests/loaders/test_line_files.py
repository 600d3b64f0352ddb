"""Files of lines, of oriented edges and of depth: every form, default, limit and refusal."""

import struct

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from bsdsbench import io as bounded
from bsdsbench.errors import FileFormatError
from bsdsbench.images import Lines
from bsdsbench.loaders.formats.depth_files import binarise_matte
from bsdsbench.loaders.formats.line_files import GRID, _draw_annotated_lines, draw_lines
from bsdsbench.loaders.formats.line_files import _sample_line as samples
from bsdsbench.loaders.formats.pictures import read_arrays
from bsdsbench.loaders.pairing import Pair
from bsdsbench.loaders.readers import read_prediction, read_truth
from bsdsbench.loaders.reading import Kind, ReadOptions
from tests.helpers.runs import refused

ENDS = np.array([[0.0, 1, 8, 17], [2, 3, 30, 40], [5, 5, 6, 60]])  # row column row column
XY = ENDS[:, [1, 0, 3, 2]] + 1  # x y x y, counted from 1
SCORES = np.array([0.9, 0.5, 0.25])
LINES = {"lines": ENDS, "score": SCORES}
TRUE = {"lines": XY, "size": [40, 70]}
ANGLE = np.arange(12.0).reshape(3, 4) / 10
EDGE = np.array([[0, 1, 0, 2], [0, 0, 0, 0], [0, 0, 3, 0]])
DEPTH = np.arange(6.0).reshape(2, 3)
INF = np.where(EDGE, np.inf, 0)


def cells(*items):
    out = np.empty((1, len(items)), object)
    out[0, :] = items
    return out


@pytest.fixture
def read(tmp_path):
    """What is read of a file of these arrays, for a picture of 20 x 30."""

    def call(kind, pred, content, suffix=".npz"):
        path = tmp_path / "gt" / f"a{suffix}"
        path.parent.mkdir(exist_ok=True)
        savemat(path, content) if suffix == ".mat" else np.savez(path, **content)
        if pred:
            found = read_prediction(Pair("7", (path,), ()), kind, (20, 30))
        else:
            found = read_truth(Pair("7", (), (path,)), kind, ReadOptions(Kind.LINES))
        assert (found.image_id, found.path) == ("7", path)
        return found

    return call


# --- lines


@pytest.mark.parametrize("more", [None, 0, 1])
def test_predicted_lines_in_any_form(read, more):
    """(N, 4), (N, 2, 2), or with the kind of each end (N, 2, 3)."""
    given = ENDS if more is None else ENDS.reshape(3, 2, 2)
    given = np.concatenate([given, np.full((3, 2, 1), 77)], 2) if more else given
    found = read("lines", True, {"lines": given, "score": SCORES[:, None]})
    assert found.lines.ends.tolist() == ENDS.tolist()
    assert found.lines.scores.tolist() == SCORES.tolist()
    assert (found.lines.junctions, found.lines.grid) == (None, None)
    assert np.array_equal(found.soft, draw_lines(Lines(ENDS, SCORES), (20, 30), GRID))


def test_a_grid_and_values_at_their_limits(read):
    found = read("lines", True, LINES | {"grid": [40, 70]})
    assert found.lines.grid == (40, 70)
    assert np.array_equal(found.soft, draw_lines(Lines(ENDS, SCORES), (20, 30), (40, 70)))


@pytest.mark.parametrize(
    ("scores", "count"), [([0.9, 0.5, 0.9], 2), ([0.9] * 3, 1), ([0.9, 0.5, 0.5], 3)]
)
def test_lines_repeat_from_the_first_score_on(read, scores, count):
    found = read("lines", True, {"lines": ENDS, "score": scores})
    drawn = draw_lines(Lines(ENDS[:count], np.array(scores[:count])), (20, 30), GRID)
    assert np.array_equal(found.soft, drawn)
    assert len(found.lines.ends) == 3


@pytest.mark.parametrize("columns", [2, 3])
def test_junctions_with_their_scores(read, columns):
    points = np.array([[1.0, 2, 50], [3, 4, 60]])[:, :columns]
    found = read("lines", True, LINES | {"juncs": points, "juncs_score": [[0.25], [0.75]]})
    assert found.lines.junctions.tolist() == [[1, 2, 0.25], [3, 4, 0.75]]


def test_annotated_lines(read, tmp_path, monkeypatch):
    found = read("lines", False, TRUE)
    assert np.array_equal(found.boundaries, [_draw_annotated_lines(ENDS + 1, (40, 70))])
    # on the grid of 128 x 128, by hand: rows x 128/40, columns x 128/70
    scale = np.array([3.2, 128 / 70, 3.2, 128 / 70])
    assert np.allclose(found.lines.ends, ENDS * scale, atol=1e-12)
    assert found.lines.scores.tolist() == [0, 0, 0]
    assert (found.lines.junctions, found.lines.grid) == (None, (128, 128))
    found = read("lines", False, TRUE | {"grid": [80, 35]})  # twice and half the image's size
    assert np.allclose(found.lines.ends, ENDS * [2, 0.5, 2, 0.5], atol=1e-12)
    assert found.lines.grid == (80, 35)
    own = {"lpos": ENDS.reshape(3, 2, 2) / 2, "grid": [64, 32], "junc": [[1.0, 2], [3, 4]]}
    found = read("lines", False, TRUE | own)
    assert (found.lines.ends.tolist(), found.lines.grid) == ((ENDS / 2).tolist(), (64, 32))
    assert found.lines.junctions.tolist() == [[1, 2, 0], [3, 4, 0]]
    (tmp_path / "images").mkdir()
    Image.new("L", (70, 40)).save(tmp_path / "images" / "a.jpg")
    assert read("lines", False, {"lines": XY}).shape == (40, 70)
    monkeypatch.setattr(bounded, "MAX_DECODED_BYTES", 40 * 70 - 1)
    refused(r"a\.npz: claims 40 x 70", read, "lines", False, TRUE)


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        ((0, 0), []),
        ((0.6, 0.8), [(0.6, 0.8)]),
        ((0, 2.1), [(0, 0), (0, 1.05), (0, 2.1)]),
        ((-3, 0), [(0, 0), (-1.5, 0), (-3, 0)]),
    ],
)
def test_as_many_samples_as_a_line_is_long(end, expected):
    found = samples(np.zeros(2), np.array(end, float))
    assert found.reshape(-1, 2).tolist() == [pytest.approx(point) for point in expected]


# --- oriented edges


@pytest.mark.parametrize("form", [".npz", "struct"])
def test_predicted_oriented_edges(read, form):
    maps = {"edge": EDGE / 3, "ori": ANGLE.astype(np.float32)}
    given = (maps,) if form == ".npz" else ({"edge_ori": maps}, ".mat")
    found = read("oriented", True, *given)
    assert (found.soft.tolist(), found.angles.dtype) == ((EDGE / 3).tolist(), np.float64)
    assert found.angles.tolist() == ANGLE.astype(np.float32).tolist()


PIECES = cells(np.array([[1.0, 4]]), np.array([[12]], np.int32))
BOTH = np.dstack([EDGE, ANGLE])


@pytest.mark.parametrize(
    ("content", "edges", "angles"),
    [
        ({"edge": EDGE, "ori": ANGLE}, [EDGE], [ANGLE]),
        ({"edge": [EDGE, EDGE * 0], "ori": [ANGLE, -ANGLE]}, [EDGE, EDGE * 0], [ANGLE, -ANGLE]),
        ({"gtStruct": {"gt_theta": BOTH}}, [EDGE], [ANGLE]),
        ({"gtStruct": {"gt_theta": cells(BOTH, -BOTH)}}, [EDGE, EDGE], [ANGLE, -ANGLE]),
        *(
            ({"bndinfo_pascal": {"OrientMap": ANGLE, "edges": edges}},
             [[[1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]]], [ANGLE])
            for edges in ({"indices": PIECES}, {"indices": [[1, 4, 12]]}, np.uint16([[1, 4, 12]]))
        ),
    ],
)  # fmt: skip
def test_annotated_oriented_edges(read, content, edges, angles):
    """PIOD's fragments hold pixels counted from 1 down the columns: 1, 4, 12 of 3 x 4."""
    found = read("oriented", False, content, ".mat")
    assert np.array_equal(found.boundaries, np.array(edges) != 0)
    assert np.array_equal(found.angles, angles)
    assert {a.dtype for a in found.angles} == {np.dtype(np.float64)}


# --- depth


def test_a_truth_of_one_map_is_its_depth_unless_it_says_what_it_is(read):
    found = read("depth-map", False, {"whatever": DEPTH})
    assert (found.depth.tolist(), found.boundaries) == (DEPTH.tolist(), ())
    assert "depth" not in read("depth-map", False, {"edges": DEPTH}).parts
    for name in ("edges", "matte", "valid"):
        found = read(
            "depth-map",
            False,
            {name: DEPTH / (1 if name == "edges" else 5), "disparity": DEPTH + 1},
        )
        assert found.depth.tolist() == (DEPTH + 1).tolist()
    ibims = {"data": {"depth": DEPTH, "mask_invalid": DEPTH > 1, "mask_transp": DEPTH != 3}}
    found = read("depth-map", False, ibims, ".mat")
    assert found.valid.tolist() == [[False, False, True], [False, True, True]]


def test_a_prediction_beside_the_true_depth_is_the_map_named_so(read):
    found = read("depth-map", True, {"depth": DEPTH, "pred": DEPTH + 1, "mask": DEPTH * 0})
    assert found.depth.tolist() == (DEPTH + 1).tolist()


@pytest.mark.parametrize("values", [np.uint8([[25, 26]]), np.int32([[0, 1]]), [[0.1, 0.1001]]])
def test_a_matte_is_cut_above_a_tenth(values):
    assert binarise_matte(np.array(values)).tolist() == [[False, True]]


BODY = DEPTH.astype("<f4").tobytes()


def dpt(cols=3, rows=2, body=BODY):
    return struct.pack("<fii", 202021.25, cols, rows) + body


def test_dpt_by_hand(tmp_path, monkeypatch):
    path = tmp_path / "a.dpt"
    path.write_bytes(dpt())
    found = read_arrays(path)[""]
    assert (found.dtype, found.tolist(), found.flags.writeable) == (np.float32, DEPTH.tolist(), 1)
    monkeypatch.setattr(bounded, "MAX_DECODED_BYTES", 23)
    refused(r"a\.dpt: claims 2 x 3", read_arrays, path)
    monkeypatch.undo()
    for data in (dpt()[:11], dpt()[:-1], dpt() + b"x", dpt(-3, -2), dpt(0, 5, b""), b"x" * 36):
        path.write_bytes(data)
        refused(r"a\.dpt: ", read_arrays, path, error=FileFormatError)


# --- what is refused, and which variable the line names

REFUSED = [
    *(
        ("lines", True, LINES | change, name)
        for change, name in (
            ({"score": SCORES[:2]}, "2 score for 3 places"),
            ({"lines": np.zeros((2, 6))}, "lines"),
            ({"lines": np.where(ENDS == 60, np.nan, ENDS)}, "lines with NaN"),
            ({"juncs": np.zeros((2, 2))}, "juncs_score"),
            ({"grid": [5, 5.5]}, r"grid 5 x 5\.5"),
        )
    ),
    ("lines", True, {"other": ENDS}, "other, .*lines"),
    ("lines", False, {"lines": XY}, r"images/a\.png"),
    *(
        ("lines", False, TRUE | change, name)
        for change, name in (
            ({"size": [20, 70]}, "row 31, column 41, .*20 x 70"),
            ({"size": [10_000, 10_001]}, "10000 x 10001"),
        )
    ),
    ("oriented", True, {"edge_ori": EDGE, "ori": ANGLE}, "is damaged"),
    ("oriented", True, {"edge": EDGE}, "edge, .*ori"),
    ("oriented", True, {"edge": EDGE / 3, "ori": ANGLE[:2]}, r"angles: shape \(2, 4\)"),
    *(
        ("oriented", False, {"bndinfo_pascal": {"OrientMap": ANGLE, **more}}, name)
        for more, name in (({"edges": {"indices": [[0.0, 4]]}}, "indices outside"), ({}, "indices"))
    ),
    ("oriented", True, {"": EDGE}, "has one array without a name, expected an array edge"),
    ("oriented", True, {"edge": EDGE / 3, "ori": ANGLE * 100}, "angles up to .*, expected radians"),
    ("oriented", False, {"edge": EDGE / 3, "ori": ANGLE}, "edge: values that are not whole"),
    (
        "oriented",
        False,
        {"edge": np.zeros((20, 30, 2)), "ori": np.zeros((20, 30, 2))},
        r"shape \(20, 30, 2\), expected the annotators first",
    ),
    ("oriented", False, {"gtStruct": {"gt_theta": cells()}}, "no annotators"),
    ("oriented", False, {"gtStruct": {"gt_theta": np.dstack([EDGE, INF])}}, "angles"),
    ("oriented", False, {"edge": EDGE, "ori": ANGLE[:, :3]}, r"angles: shape \(3, 3\)"),
    ("depth-map", True, {"a": DEPTH, "b": DEPTH}, "a, b"),
    ("depth-map", True, {"depth": DEPTH, "disparity": DEPTH}, "has depth, disparity, expected one"),
    ("depth-map", True, {"pred": DEPTH, "pred_depth": DEPTH}, "has pred_depth, pred, expected one"),
    ("depth-map", False, {"edges": DEPTH / 5}, "edges: values that are not whole"),
    ("depth-map", True, {"depth": DEPTH[0]}, r"depth of shape \(3,\)"),
    ("depth-map", False, {"edges": cells(DEPTH)}, "edges"),
    *(
        ("depth-map", False, {name: DEPTH[:, :2] > 1, "depth": DEPTH}, r"\(2, 2\)")
        for name in ("edges", "matte", "mask_transp")
    ),
]


@pytest.mark.parametrize(("kind", "pred", "content", "name"), REFUSED)
def test_what_is_refused_names_the_file_and_the_variable(read, kind, pred, content, name):
    values = map(np.asarray, content.values())
    suffix = ".mat" if any(v.dtype.hasobject for v in values) else ".npz"
    refused(rf"a\{suffix}: .*{name}", read, kind, pred, content, suffix, error=FileFormatError)
