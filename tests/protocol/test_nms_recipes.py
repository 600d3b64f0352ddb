"""Each NMS recipe: its constants, and how it is applied, beside the plain definition."""

import numpy as np
import pytest
from attrs import astuple
from scipy import ndimage

from bsdsbench.errors import ProtocolError
from bsdsbench.protocol.nms_recipes import RECIPES
from bsdsbench.protocol.protocol import Protocol
from bsdsbench.transforms.maps import prepare
from tests.reference.nms import edge_nms


@pytest.fixture(scope="module")
def soft():
    """Ridges of all directions, 60 x 75 pixels, float32."""
    noise = ndimage.gaussian_filter(np.random.default_rng(8).random((60, 75)), 2.5)
    return np.clip((noise - noise.min()) / np.ptp(noise), 0, 1).astype(np.float32)


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_is_the_plain_definition_with_its_constants(name, soft):
    protocol = Protocol(nms=True, nms_params=name)
    params = protocol.nms_params
    assert str(params) == params.recipe_name == next(k for k, v in RECIPES.items() if v == params)
    *constants, bits = astuple(params)
    plain, margin = edge_nms(soft, *constants)
    found = prepare(soft, protocol)
    if bits:
        assert found.dtype == np.uint8
        off = np.abs(found - np.floor(plain * 255 + 0.5)) > 1.0
    else:
        assert found.dtype == np.float32
        off = np.abs(found - plain) > 1e-5
    # ties fall either way, and so may an angle near a jump of its formula
    assert (off & (np.abs(margin) > 1e-4)).sum() <= 0.002 * soft.size
    assert 0.02 < np.count_nonzero(found) / found.size < 0.9


def test_recipes_of_other_constants_give_other_maps(soft):
    made = {r: prepare(soft, Protocol(nms=True, nms_params=str(r))) for r in RECIPES.values()}
    assert len({maps.tobytes() for maps in made.values()}) == len(made) == 12
    with pytest.raises(ProtocolError, match=r"bdcn.*hed, rcf"):
        Protocol(nms_params="bdcn")
