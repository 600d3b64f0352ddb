"""The constants of edge NMS, and those of published programs by name: `--nms rcf`.

Names with equal constants are one recipe under several names; a protocol is described by the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from bsdsbench.files.errors import ProtocolError
from bsdsbench.protocol.settings import BOOL, Settings, is_number, one_of, setting, whole


@dataclass(frozen=True, slots=True)
class NMSParams(Settings):
    """Edge non-maximum suppression as a data set's users run it: `bsdsbench.metrics.soft_maps`."""

    called: ClassVar[str] = "nms "

    radius: int = setting(
        1, "Pixels compared on each side along the normal.", whole(1, 99, "1 to 99 pixels")
    )
    border: int = setting(5, "Pixels faded at the border.", whole(0, 9999, "0 to 9999 pixels"))
    multiplier: float = setting(
        1.01,
        "A pixel survives if multiplier * value is not below its neighbours.",
        (lambda v: is_number(v) and 0 < v <= 1e6, "a number above 0"),
    )
    smooth: bool = setting(True, "Filter the soft map once more before the comparison.", BOOL)
    bits: int = setting(
        8,
        "8 or 16: the result is rounded as a PNG of that depth would; 0: kept in float32.",
        one_of(0, 8, 16),
    )

    @classmethod
    def recipe(cls, name: str) -> NMSParams:
        """The constants of a recipe. Raises ProtocolError."""
        if name not in RECIPES:
            raise ProtocolError(f"NMS recipe {name!r}: expected one of {', '.join(RECIPES)}")
        return cls(*RECIPES[name].constants)

    @classmethod
    def read(cls, given: Any) -> Any:
        """The constants from the name of a recipe, or from their values."""
        if isinstance(given, str):
            return cls.recipe(given)
        return cls.from_mapping(given) if isinstance(given, Mapping) else given

    def describe(self) -> str:
        """The constants in a few words, with the name of their recipe."""
        depth = f"{self.bits} bit" if self.bits else "float"
        smooth = "" if self.smooth else ", not smoothed"
        name = f"{self.recipe_name}: " if self.recipe_name else ""
        return f"{name}{self.radius}, {self.border}, {self.multiplier:g} ({depth}{smooth})"

    @property
    def recipe_name(self) -> str | None:
        """The first recipe with these constants, or None."""
        mine = (self.radius, self.border, self.multiplier, self.smooth, self.bits)
        return next((name for name, r in RECIPES.items() if r.constants == mine), None)


@dataclass(frozen=True, slots=True)
class Recipe:
    """The constants of `NMSParams` in their order, and the program they were read in."""

    constants: tuple[int, int, float, bool, int]
    source: str


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
