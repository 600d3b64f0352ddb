"""Every form of ground truth."""

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat
from scipy.sparse import csc_matrix

from bsdsbench.files.errors import FileFormatError
from bsdsbench.loaders import Pair, load_ground_truth, read_truth
from bsdsbench.loaders.labels import seg2bdry
from bsdsbench.protocol.protocol import Protocol
from tests.helpers.runs import refused

EDGE = np.array([[0, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]], bool)
LABELS = np.array([[1, 1, 2, 2], [1, 1, 2, 3], [1, 4, 4, 3]])


def _bsds(path, annotators):
    cells = np.empty((1, len(annotators)), object)
    cells[0, :] = annotators
    savemat(path, {"groundTruth": cells}, do_compression=True)
    return path


def test_bsds_mat_has_all_annotators(tmp_path):
    first = {"Segmentation": LABELS.astype(np.uint16), "Boundaries": EDGE.astype(np.uint8)}
    second = {"Segmentation": LABELS * 2, "Boundaries": np.zeros_like(EDGE)}
    gt = load_ground_truth(_bsds(tmp_path / "2018.mat", [first, second]))
    assert gt.image_id == "2018"
    assert gt.shape == (3, 4)
    np.testing.assert_array_equal(gt.boundaries, [EDGE, np.zeros_like(EDGE)])
    np.testing.assert_array_equal(gt.segmentations, [LABELS, LABELS * 2])
    assert {b.dtype for b in gt.boundaries} == {np.dtype(bool)}
    assert {s.dtype for s in gt.segmentations} == {np.dtype(np.int32)}


@pytest.mark.parametrize("form", ["a cell of structs", "an array of structs"])
def test_bsds_mat_of_version_7_3_is_the_same(tmp_path, form):
    """As MATLAB lays it out: references to what stands in #refs#, columns first."""
    h5py = pytest.importorskip("h5py")
    turned = LABELS[::-1, ::-1].copy()
    annotators = [(LABELS, EDGE), (turned, seg2bdry(turned))]
    fields = [{"Segmentation": a.astype(np.uint16), "Boundaries": b} for a, b in annotators]
    with h5py.File(tmp_path / "a.mat", "w", userblock_size=512) as file:

        def stored(where, values):
            item = file.create_dataset(where, data=values.T.astype(np.uint16))
            kind = "logical" if values.dtype == bool else "uint16"
            item.attrs["MATLAB_class"] = np.bytes_(kind)
            return item.ref

        if form == "a cell of structs":
            refs = np.empty((2, 1), h5py.ref_dtype)
            for k, each in enumerate(fields):
                group = file.create_group(f"#refs#/{k}")
                group.attrs["MATLAB_class"] = np.bytes_("struct")
                for name, values in each.items():
                    stored(f"#refs#/{k}/{name}", values)
                refs[k, 0] = group.ref
            cell = file.create_dataset("groundTruth", data=refs)
            cell.attrs["MATLAB_class"] = np.bytes_("cell")
        else:
            group = file.create_group("groundTruth")
            group.attrs["MATLAB_class"] = np.bytes_("struct")
            for name in fields[0]:
                refs = np.empty((2, 1), h5py.ref_dtype)
                refs[:, 0] = [stored(f"#refs#/{name}{k}", f[name]) for k, f in enumerate(fields)]
                group.create_dataset(name, data=refs)
    found = load_ground_truth(tmp_path / "a.mat")
    same = load_ground_truth(_bsds(tmp_path / "b.mat", fields))
    for name in ("boundaries", "segmentations"):
        np.testing.assert_array_equal(getattr(found, name), getattr(same, name))
    np.testing.assert_array_equal(found.segmentations, [LABELS, turned])


def test_bsds_mat_with_only_segmentations_or_only_boundaries(tmp_path):
    gt = load_ground_truth(_bsds(tmp_path / "a.mat", [{"Segmentation": LABELS}]))
    np.testing.assert_array_equal(gt.boundaries, [seg2bdry(LABELS)])
    gt = load_ground_truth(_bsds(tmp_path / "b.mat", [{"Boundaries": csc_matrix(EDGE)}]))
    np.testing.assert_array_equal(gt.boundaries, [EDGE])
    assert gt.segmentations == ()


def test_bsds_mat_faults(tmp_path):
    savemat(tmp_path / "a.mat", {"groundTruth": np.empty((1, 0), object)})
    refused(r"a\.mat: no annotators", load_ground_truth, tmp_path / "a.mat", error=FileFormatError)
    with pytest.raises(FileFormatError, match="groundTruth 1 has no Boundaries"):
        load_ground_truth(_bsds(tmp_path / "b.mat", [{"Other": EDGE}]))
    with pytest.raises(FileFormatError, match="no boundary pixel in any of 2 annotations"):
        load_ground_truth(_bsds(tmp_path / "c.mat", [{"Boundaries": EDGE & False}] * 2))
    turned = [{"Boundaries": EDGE}, {"Boundaries": EDGE.T}]
    with pytest.raises(FileFormatError, match=r"sizes 3 x 4, 4 x 3 \(rows x columns\)"):
        load_ground_truth(_bsds(tmp_path / "d.mat", turned))


@pytest.mark.parametrize("white", [True, np.uint8(1), np.uint8(255)])
def test_plain_pictures(tmp_path, white):
    path = tmp_path / ("a.npy" if white is True else "a.png")
    np.save(path, EDGE) if white is True else Image.fromarray(EDGE * white).save(path)
    gt = load_ground_truth(path)
    np.testing.assert_array_equal(gt.boundaries, [EDGE])
    inverted = load_ground_truth(path, gt_invert=True)
    np.testing.assert_array_equal(inverted.boundaries, [~EDGE])


def test_one_picture_per_annotator(tmp_path):
    paths = (tmp_path / "7_1.png", tmp_path / "7_2.png")
    Image.fromarray(EDGE).save(paths[0])
    Image.fromarray(~EDGE).save(paths[1])
    gt = load_ground_truth(Pair("7", (), paths))
    assert gt.image_id == "7"
    np.testing.assert_array_equal(gt.boundaries, [EDGE, ~EDGE])
    Image.fromarray(EDGE.T).save(paths[1])
    with pytest.raises(FileFormatError, match=r"7_2\.png: annotations of sizes 3 x 4, 4 x 3"):
        load_ground_truth(paths)


def test_gray_is_refused_or_cut_where_told(tmp_path):
    gray = np.array([[0, 100, 200], [255, 0, 0]], np.uint8)
    Image.fromarray(gray).save(tmp_path / "a.png")
    with pytest.raises(FileFormatError, match=r"uint8 with values from 0 to 255, .*gt_threshold"):
        load_ground_truth(tmp_path / "a.png")
    gt = load_ground_truth(tmp_path / "a.png", gt_threshold=0.5)
    np.testing.assert_array_equal(gt.boundaries[0], gray >= 127.5)
    for other, half in ((gray / 255, 0.5), (gray.astype(np.uint16) * 257, 32767.5)):
        np.save(tmp_path / "b.npy", other)
        found = load_ground_truth(tmp_path / "b.npy", gt_threshold=0.5)
        np.testing.assert_array_equal(found.boundaries[0], other >= half)


def test_label_pictures(tmp_path):
    Image.fromarray(LABELS.astype(np.uint8)).save(tmp_path / "a.png")
    gt = load_ground_truth(tmp_path / "a.png", kind="labels")
    np.testing.assert_array_equal(gt.boundaries, [seg2bdry(LABELS)])
    np.testing.assert_array_equal(gt.segmentations, [LABELS])


def test_files_of_several_annotators_are_not_of_one_image(tmp_path):
    files = [tmp_path / "a_1.npy", tmp_path / "a_2.npy"]
    for path in files:
        np.save(path, np.ones((2, 3, 4), bool))
    assert len(load_ground_truth(files[0]).boundaries) == 2
    refused("a_1.npy: 2 annotators", load_ground_truth, files, error=FileFormatError)


def test_numpy_one_and_several_annotators(tmp_path):
    np.save(tmp_path / "a.npy", EDGE.astype(np.float32))
    np.testing.assert_array_equal(load_ground_truth(tmp_path / "a.npy").boundaries, [EDGE])
    np.save(tmp_path / "b.npy", np.stack([EDGE, ~EDGE]))
    np.testing.assert_array_equal(load_ground_truth(tmp_path / "b.npy").boundaries, [EDGE, ~EDGE])
    np.save(tmp_path / "c.npy", np.zeros((0, 3, 4)))
    refused("no annotators", load_ground_truth, tmp_path / "c.npy", error=FileFormatError)
    np.save(tmp_path / "d.npy", np.full((2, 3), np.nan))
    refused("from nan to nan", load_ground_truth, tmp_path / "d.npy", error=FileFormatError)
    refused("x: no annotators", load_ground_truth, [], image_id="x", error=FileFormatError)


SEG = """format ascii cr
date Thu Apr 12 2001
image 7
user 1105
width 4
height 3
segments 3
gray 0
invert 0
flipflop 0
data
0 0 0 1
1 0 2 3
0 1 0 1
1 1 2 2
2 1 3 3
0 2 0 0
2 2 1 3
"""


def test_bsds300_seg(tmp_path):
    (tmp_path / "7.seg").write_text(SEG)
    gt = load_ground_truth(tmp_path / "7.seg")
    labels = np.array([[1, 1, 2, 2], [1, 1, 2, 3], [1, 3, 3, 3]])
    np.testing.assert_array_equal(gt.segmentations, [labels])
    np.testing.assert_array_equal(gt.boundaries, [seg2bdry(labels)])
    (tmp_path / "crlf.seg").write_bytes(SEG.replace("\n", "\r\n").encode())
    gt = load_ground_truth(tmp_path / "crlf.seg")
    np.testing.assert_array_equal(gt.segmentations, [labels])


def test_a_palette_s_colours_are_boundaries_and_its_indices_labels(tmp_path):
    picture = Image.fromarray(EDGE.astype(np.uint8)).convert("P")
    picture.putpalette([255, 255, 255, 0, 0, 0])
    picture.putdata(EDGE.astype(int).ravel().tolist())
    picture.save(tmp_path / "a.png")
    np.testing.assert_array_equal(load_ground_truth(tmp_path / "a.png").boundaries, [~EDGE])
    found = load_ground_truth(tmp_path / "a.png", kind="labels")
    np.testing.assert_array_equal(found.segmentations, [EDGE])
    classes = read_truth(Pair("a", (), (tmp_path / "a.png",)), "classes", Protocol())
    np.testing.assert_array_equal(classes.labels, EDGE)


@pytest.mark.parametrize("values", [(0, 1), (0, 255), (0, 65535), (1, 1), (255, 255)])
def test_two_values_that_are_boundaries(tmp_path, values):
    array = np.array([values, values[::-1]])
    np.save(tmp_path / "a.npy", array)
    np.testing.assert_array_equal(load_ground_truth(tmp_path / "a.npy").boundaries, [array > 0])


@pytest.mark.parametrize("values", [(0, 2), (0, 254), (7, 7), (1, 2), (-1, 1), (-1, 0), (1, 255)])
def test_other_values_are_gray(tmp_path, values):
    np.save(tmp_path / "a.npy", np.array([values, values[::-1], (0, 0)]))
    low, high = min(0, *values), max(0, *values)
    words = rf"a\.npy: .*int64 with values from {low} to {high}, expected .* 0 and 1"
    refused(words, load_ground_truth, tmp_path / "a.npy", error=FileFormatError)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_one_value_that_is_no_number(tmp_path, bad):
    np.save(tmp_path / "a.npy", np.array([[0, 1], [1, bad]]))
    for threshold in (None, 0.5):
        refused(
            r"a\.npy: .*(nan|inf)", load_ground_truth, tmp_path / "a.npy", gt_threshold=threshold
        )


@pytest.mark.parametrize(
    ("values", "cut"),
    [
        (np.uint8([0, 127, 128, 129, 255]), 3),
        (np.uint16([0, 128 * 257 - 1, 128 * 257, 128 * 257 + 1, 65535]), 3),
        (np.float64([0, 0.4, 0.5, 0.51, 1]), 3),
        (np.uint8([0, 0, 1, 1, 1]), 2),
        (np.uint16([0, 0, 1, 1, 1]), 2),
        (np.array([0, 0, 1, 1, 1], bool), 2),
        (np.uint16([0, 0, 255, 255, 255]), 2),
        (np.float64([0, 0, 255, 255, 255]), 2),
    ],
)
def test_where_a_mask_is_cut(tmp_path, values, cut):
    """Gray above 128 of 255; of two values all above 0; of floats above a half."""
    np.save(tmp_path / "a.npy", values[None])
    found = read_truth(Pair("a", (), (tmp_path / "a.npy",)), "mask", Protocol()).mask
    assert found.tolist() == [[False] * cut + [True] * (5 - cut)]
    np.save(tmp_path / "a.npy", values)
    words = r"a\.npy: an array of shape \(5,\), expected one mask \(H, W\)$"
    refused(words, read_truth, Pair("a", (), (tmp_path / "a.npy",)), "mask", Protocol())
