"""Edge NMS as published programs run it, by name: `--nms rcf`, `nms_params = "rcf"`.

The constants are (radius, border, multiplier, smooth, bits) of `NMSParams`; bits 0 keeps float32.
Names with equal constants are one recipe under several names; a protocol is described by the first.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Recipe:
    """Constants of an edge NMS, and the program they were read in."""

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
