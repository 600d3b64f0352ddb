"""The constants of edge NMS, and those of published programs by name: `--nms rcf`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from attrs import astuple, field, frozen

from bsdsbench.files.errors import ProtocolError
from bsdsbench.protocol.fields import (
    BOOL,
    check,
    is_number,
    number_text,
    one_of,
    real,
    record_of,
    whole,
)


@frozen
class NMSParams:
    """Edge non-maximum suppression as a data set's users run it: `bsdsbench.metrics.maps`.

    Parameters
    ----------
    radius : int
        Pixels compared on each side along the normal.
    border : int
        Pixels faded at the border.
    multiplier : float
        A pixel survives if multiplier * value is not below its neighbours.
    smooth : bool
        Filter the soft map once more before the comparison.
    bits : int
        8 or 16: the result is rounded as a PNG of that depth would; 0: kept in float32.

    Examples
    --------
    >>> NMSParams.recipe("rcf").describe()
    'rcf: 2, 5, 1.01 (8 bit, not smoothed)'
    >>> str(NMSParams(radius=3))
    '3,5,1.01,smooth,8'
    """

    radius: int = field(default=1, validator=whole(1, 99, "1 to 99 pixels"))
    border: int = field(default=5, validator=whole(0, 9999, "0 to 9999 pixels"))
    multiplier: float = field(
        default=1.01,
        converter=real,
        validator=check(lambda v: is_number(v) and 0 < v <= 1e6, "a number above 0"),
    )
    smooth: bool = field(default=True, validator=BOOL)
    bits: int = field(default=8, validator=one_of(0, 8, 16))

    @classmethod
    def recipe(cls, name: str) -> NMSParams:
        """The constants of a recipe. Raises ProtocolError.

        Parameters
        ----------
        name : str
            Such as "hed" or "rcf".
        """
        if name not in RECIPES:
            raise ProtocolError(
                f"NMS recipe {name!r}: expected one of {', '.join(RECIPES)}, or the constants "
                "radius,border,multiplier,smooth|raw,bits"
            )
        return cls(*RECIPES[name].constants)

    @property
    def recipe_name(self) -> str | None:
        """The first recipe with these constants, or None."""
        mine = astuple(self)
        return next((name for name, r in RECIPES.items() if r.constants == mine), None)

    def __str__(self) -> str:
        """The recipe or the constants, as `nms_params` reads them."""
        how = "smooth" if self.smooth else "raw"
        return (
            self.recipe_name
            or f"{self.radius},{self.border},{number_text(self.multiplier)},{how},{self.bits}"
        )

    def describe(self) -> str:
        """The constants in a few words, with the name of their recipe.

        Returns
        -------
        str
            Such as "hed: 1, 5, 1.01 (8 bit)".
        """
        depth = f"{self.bits} bit" if self.bits else "float"
        smooth = "" if self.smooth else ", not smoothed"
        name = f"{self.recipe_name}: " if self.recipe_name else ""
        return f"{name}{self.radius}, {self.border}, {self.multiplier:g} ({depth}{smooth})"


def nms_params(given: Any) -> Any:
    """The constants from the name of a recipe, from their text or from a table."""
    if isinstance(given, str) and given.count(",") == 4:
        given = given.split(",")
    if isinstance(given, list | tuple) and len(given) == 5 and given[3] in ("smooth", "raw"):
        try:
            radius, border, bits = (int(given[k]) for k in (0, 1, 4))
            given = NMSParams(radius, border, float(given[2]), given[3] == "smooth", bits)
        except ValueError as error:
            raise ProtocolError(f"nms {','.join(map(str, given))}: {error}") from None
    if isinstance(given, str):
        return NMSParams.recipe(given)
    return record_of(NMSParams, given, "nms") if isinstance(given, Mapping) else given


class Recipe(NamedTuple):
    """The constants of `NMSParams` in their order, and the program they were read in."""

    constants: tuple[int, int, float, bool, int]
    source: str


# Names with equal constants are one recipe; a protocol is described by the first of them.
RECIPES: dict[str, Recipe] = {
    "hed": Recipe((1, 5, 1.01, True, 8), "HED, nms_process.m and EvalEdge.m; also FCL-Net"),
    "rcf": Recipe((2, 5, 1.01, False, 8), "RCF, edge_nms.m, BSDS500 and Multicue"),
    "rcf-nyud": Recipe((4, 5, 1.01, False, 8), "RCF, edge_nms.m, the comment on NYUD"),
    "cats": Recipe((1, 4, 1.01, True, 8), "CATS, eval_edge.m, BSDS500"),
    "cats-nyud": Recipe((4, 4, 1.01, True, 8), "CATS, eval_edge.m, NYUD"),
    "dexined": Recipe((1, 5, 1.03, False, 8), "DexiNed, the author in issue 8"),
    "teed": Recipe((1, 5, 1.04, False, 8), "TEED, the author in issue 21"),
    "edter": Recipe((1, 5, 1.01, True, 8), "EDTER, eval_bsds.m; also EdgeNAT"),
    "edter-nyud": Recipe((2, 5, 1.01, True, 8), "EDTER, eval_nyud.m; also EdgeNAT"),
    "rindnet": Recipe((1, 5, 1.01, True, 8), "RINDNet, eval.m"),
    "pidinet": Recipe((1, 5, 1.01, True, 8), "PiDiNet, from a derived copy of its script"),
    "skeleton": Recipe((1, 5, 1.01, False, 0), "skeval, nms.m"),
    "seism": Recipe((1, 5, 1.01, False, 0), "SEISM, read_one_cont_png.m; multi-task learning"),
    "occlusion": Recipe((1, 5, 1.01, False, 0), "DOOBNet, edge_nms.m; also P2ORM"),
    "se": Recipe((1, 5, 1.01, False, 0), "structured edges, edgesDetect"),
    "crack": Recipe((2, 5, 1.01, False, 0), "pavement-crack-detection, crack_nms.m"),
    "crispness": Recipe((2, 5, 1.01, False, 0), "average crispness, eval_crispness.m"),
    "strict": Recipe((1, 5, 1.01, False, 8), "SDPED, benchmarkBoundary.m"),
    "plain": Recipe((1, 0, 1.0, False, 0), "the comparison alone"),
}
