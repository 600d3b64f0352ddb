"""Options of the contour measures: which, and at which sizes."""

from __future__ import annotations

from attrs import frozen

from bsdsbench.metrics.contour.pairs import CONVENTIONS
from bsdsbench.metrics.label_maps import SPACING, LabelOptions
from bsdsbench.protocol.fields import (
    HOME_MADE,
    POSITIVE,
    POSITIVES,
    check,
    is_number,
    numbers,
    one_of,
    option,
    some_of,
)

PERCENTS = (90.0, 95.0, 99.0)  # those that have columns
# Group -> its measures, names of `measures.TABLE`, and the option that has their sizes.
_ASSD, _NSD = ("assd-pooled", "assd-directed"), ("nsd-area", "nsd-counts", "nsd-mean")
_MEASURES = {
    "boundary-iou": (("biou", "biou-min"), "boundary_sizes"),
    "davis": (("f",), "davis_bounds"),
    "bf": (("bf",), "bf_theta"),
    "distance": (("hd", "hd%-pooled", "hd%-directed", "hd%-area", *_ASSD), "percent"),
    "nsd": (_NSD, "tolerances"),
    "fom": (("fom",), "pratt_alpha"),
    "trimap": (("trimap",), "trimap_widths"),
    "cldice": (("cldice",), "percent"),
}
GROUPS = tuple(_MEASURES)


def key_at(name: str, size: float) -> str:
    """The key of a measure at a size, without the points that divide the paths of keys."""
    return f"{name}@{size:g}".replace(".", "_")


@frozen
class ContourOptions(LabelOptions):
    """What label maps hold, and the measures with their sizes."""

    spacing: tuple[float, float] = SPACING
    empty: str = option(
        "skip",
        "What empty masks give, a name of bsdsbench.metrics.contour.CONVENTIONS.",
        one_of(*CONVENTIONS),
        caption=lambda o: f"empty masks: {o.empty} ({CONVENTIONS[o.empty].words})",
        others={
            "skip": "MONAI, surface-distance",
            "perfect": "DAVIS, scripts that count both empty as right",
            **dict.fromkeys(("inf", "diagonal", "zero"), HOME_MADE),
        },
    )
    groups: tuple[str, ...] = option(
        GROUPS[:-1], f"The measures, of {', '.join(GROUPS)}.", some_of(*GROUPS)
    )
    boundary_sizes: tuple[float, ...] = option(
        (0.02,),
        "Widths of Boundary IoU, fractions of the diagonal, or pixels from 1 on.",
        POSITIVES,
    )
    davis_bounds: tuple[float, ...] = option(
        (0.008, 3.0, 5.0, 9.0, 12.0),
        "Radii of F, fractions of the diagonal, or pixels from 1 on.",
        POSITIVES,
    )
    bf_theta: float = option(
        0.0075,
        "Radius of the BF score, a fraction of the diagonal, or pixels from 1 on.",
        POSITIVE,
        others={0.0075: "MATLAB's bfscore", 2.0: "scripts in pixels", 5.0: "scripts in pixels"},
    )
    percent: float = option(
        95.0,
        "Of the robust Hausdorff distance.",
        check(lambda v: is_number(v) and v in PERCENTS, "90, 95 or 99"),
    )
    tolerances: tuple[float, ...] = option(
        (1.0, 2.0),
        "Of NSD, in the unit of `spacing`.",
        numbers(lambda v: 0 <= v <= 1e6, "numbers from 0"),
    )
    pratt_alpha: float = option(1 / 9, "Of the figure of merit.", POSITIVE)
    trimap_widths: tuple[float, ...] = option((3.0, 10.0), "Pixels.", POSITIVES)

    def measures(self) -> dict[str, tuple[str, float]]:
        """All measures by their keys, in the order of the columns of the counts, each with its name
        in `TABLE` and its size."""
        found = {"iou": ("iou", 0.0), "dice": ("dice", 0.0)}
        for group, (names, sizes_option) in _MEASURES.items():
            sizes = getattr(self, sizes_option)
            for size in (sizes if isinstance(sizes, tuple) else (sizes,)) * (group in self.groups):
                for name in names:
                    one = name.replace("%", f"{size:g}")
                    found[one if size is sizes else key_at(name, size)] = (name, size)
        return found
