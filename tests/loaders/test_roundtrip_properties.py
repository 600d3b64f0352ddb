"""What others write is what the loaders read, for any array."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image
from scipy.io import savemat

from bsdsbench.files.errors import DataError
from bsdsbench.loaders import load_ground_truth, load_prediction
from bsdsbench.loaders.formats import read_npy
from bsdsbench.loaders.labels import seg2bdry
from bsdsbench.loaders.matlab import read_mat
from bsdsbench.loaders.segtext import read_seg

SHAPES = hnp.array_shapes(min_dims=2, max_dims=2, max_side=9)
NUMBERS = st.one_of(
    hnp.integer_dtypes(), hnp.unsigned_integer_dtypes(), hnp.floating_dtypes(sizes=(32, 64))
)
ANY_ARRAY = NUMBERS.flatmap(lambda dtype: hnp.arrays(dtype, SHAPES))
many = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@many
@given(ANY_ARRAY, st.booleans())
def test_npy(tmp_path, array, fortran):
    np.save(tmp_path / "a.npy", np.asfortranarray(array) if fortran else array)
    found = read_npy(tmp_path / "a.npy")
    assert found.dtype == array.dtype.newbyteorder("=")
    np.testing.assert_array_equal(found, array)


@many
@given(ANY_ARRAY, st.booleans())
@pytest.mark.slow
def test_mat(tmp_path, array, packed):
    cell = np.empty((1, 2), object)
    cell[0, 0], cell[0, 1] = array, {"field": array}
    savemat(tmp_path / "a.mat", {"x": array, "cell": cell}, do_compression=packed)
    found = read_mat(tmp_path / "a.mat")
    for value in (found["x"], found["cell"][0], found["cell"][1]["field"]):
        assert value.dtype == array.dtype.newbyteorder("=")
        np.testing.assert_array_equal(value, array)


@many
@given(
    hnp.arrays(st.sampled_from([np.uint8, np.uint16]), SHAPES), st.sampled_from([".png", ".tif"])
)
@pytest.mark.slow
def test_pictures(tmp_path, array, suffix):
    Image.fromarray(array).save(tmp_path / f"a{suffix}")
    soft = load_prediction(tmp_path / f"a{suffix}").soft
    assert soft.dtype == array.dtype
    np.testing.assert_array_equal(soft, array)


@many
@given(hnp.arrays(np.int32, SHAPES, elements=st.integers(1, 4)))
def test_seg_text(tmp_path, labels):
    runs = "".join(f"{labels[r, c] - 1} {r} {c} {c}\n" for r, c in np.ndindex(*labels.shape))
    head = f"width {labels.shape[1]}\nheight {labels.shape[0]}\nsegments 4\ndata\n"
    (tmp_path / "a.seg").write_text(head + runs)
    np.testing.assert_array_equal(read_seg(tmp_path / "a.seg"), labels)


@many
@given(hnp.arrays(np.uint8, SHAPES, elements=st.integers(0, 3)))
def test_labels_become_the_boundaries_of_seg2bdry(tmp_path, labels):
    np.save(tmp_path / "a.npy", labels)
    if not seg2bdry(labels).any():
        with pytest.raises(DataError, match="no boundary pixel"):
            load_ground_truth(tmp_path / "a.npy", kind="labels")
        return
    gt = load_ground_truth(tmp_path / "a.npy", kind="labels")
    np.testing.assert_array_equal(gt.boundaries, [seg2bdry(labels)])
    np.testing.assert_array_equal(gt.segmentations, [labels])
