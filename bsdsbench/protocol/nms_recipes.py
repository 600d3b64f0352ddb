"""The parameters of edge non-maximum suppression (NMS), and recipes of published programs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from attrs import frozen

from bsdsbench.errors import ProtocolError
from bsdsbench.protocol.fields import (
    POSITIVE,
    clipped,
    one_of,
    option,
    read_packaged_toml,
    record_of,
    whole,
)
from bsdsbench.text import NUMBER, number_text


@frozen
class NMSParams:
    """The parameters of edge non-maximum suppression (`bsdsbench.transforms.maps`).

    Examples
    --------
    >>> nms_params("rcf").describe()
    'rcf: 2, 5, 1.01 (8 bit, not smoothed)'
    >>> str(NMSParams(radius=3))
    '3,5,1.01,smooth,8'
    """

    radius: int = option(
        1, "Pixels compared on each side along the normal.", whole(1, 99, "1 to 99 pixels")
    )
    border: int = option(5, "Pixels faded at the border.", whole(0, 9999, "0 to 9999 pixels"))
    multiplier: float = option(
        1.01, "A pixel survives if multiplier * value is not below its neighbours.", POSITIVE
    )
    smooth: bool = option(True, "The soft map is filtered once more before the comparison.")
    bits: int = option(
        8,
        "8 or 16: the result is rounded as a PNG of that depth would; 0: kept in float32.",
        one_of(0, 8, 16),
    )

    @property
    def recipe_name(self) -> str | None:
        """The name of the first recipe with these parameters, or None."""
        return next((name for name, recipe in RECIPES.items() if recipe == self), None)

    def __str__(self) -> str:
        """Return the name of the recipe, else the parameters, as `nms_params` parses them."""
        constants = (self.radius, self.border, number_text(self.multiplier))
        rounding = ("smooth" if self.smooth else "raw", self.bits)
        return self.recipe_name or ",".join(map(str, constants + rounding))

    def describe(self) -> str:
        """Describe the parameters, after the recipe's name if any: "hed: 1, 5, 1.01 (8 bit)"."""
        rounding = f"{self.bits} bit" if self.bits else "float"
        smoothing = "" if self.smooth else ", not smoothed"
        name = f"{self.recipe_name}: " if self.recipe_name else ""
        return f"{name}{self.radius}, {self.border}, {self.multiplier:g} ({rounding}{smoothing})"


def nms_params(value: object) -> Any:
    """Convert the user's value of the field `nms_params` to NMSParams.

    - "hed" or the name of another recipe: the parameters of that recipe
    - "3,5,1.01,smooth,8" or a list of these values: radius, border, multiplier, smooth or raw, bits
    - a mapping such as {"radius": 3}: the fields; those that are absent have their defaults

    Values of other types are returned unchanged, for the validator to reject. Raises ProtocolError
    for an unknown recipe, an unknown field or a wrong value.
    """
    if isinstance(value, Mapping):
        return record_of(NMSParams, value, "nms")
    text = ",".join(map(str, value)) if isinstance(value, list | tuple) else value
    if not isinstance(text, str):
        return value
    pattern = rf"(\d{{1,9}}),(\d{{1,9}}),({NUMBER}),(smooth|raw),(\d{{1,9}})"
    if constants := re.fullmatch(pattern, text):
        radius, border, multiplier, smoothing, bits = constants.groups()
        smooth = smoothing == "smooth"
        return NMSParams(int(radius), int(border), float(multiplier), smooth, int(bits))
    if text not in RECIPES:
        forms = f"{', '.join(RECIPES)}, or the constants radius,border,multiplier,smooth|raw,bits"
        raise ProtocolError(f"NMS recipe {clipped(text)}: expected one of {forms}")
    return RECIPES[text]


# Several recipes may have the same parameters; descriptions use the first name.
RECIPES: dict[str, NMSParams] = {
    name: nms_params(text) for name, text in read_packaged_toml("recipes.toml").items()
}
