"""Options for label maps: their content, and the contour measures with their sizes."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from bsdsbench.metrics.contour.pairs import CONVENTIONS
from bsdsbench.protocol.fields import (
    HOME_MADE,
    LABEL,
    NAMES,
    POSITIVE,
    POSITIVES,
    check,
    is_number,
    numbers,
    one_of,
    option,
    some_of,
    whole,
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


def _unit_words(options: Any) -> str:
    of = f"{len(options.classes)} classes" if options.classes else "masks"
    if options.unit == "class":
        return of
    of = f"instances of {of}" if options.classes else "instances"
    return f"{of} paired by {'IoU > 0.5' if options.unit == 'instance' else 'number'}"


@frozen
class LabelOptions:
    """What label maps hold: masks, classes or instances."""

    classes: tuple[str, ...] = option(
        (),
        "The names in the order of their labels; none: masks of 0 and 1, or 0 and 255.",
        NAMES,
        caption=_unit_words,
    )
    first: int = option(
        0, "The label of the first class; the others follow without a gap, and 0 is nothing.", LABEL
    )
    ignore: int = option(
        255,
        "Label of ground-truth pixels that are cleared on both sides, or -1 for none.",
        whole(-1, 2**31 - 1, "a label, or -1"),
        others={255: "PASCAL VOC, Cityscapes", 0: "scripts that ignore 0", -1: "scripts without"},
    )
    unit: str = option(
        "class",
        '"class": one mask per class and image; "instance": instances, paired where their '
        'intersection over union is above 0.5; "id": instances, paired by their number.',
        one_of("class", "instance", "id"),
    )
    divisor: int = option(
        0,
        "Instance maps hold class x divisor + instance; 0: one class, what is "
        "above 0 is the number of an instance.",
        whole(0, 2**31 - 1, "a whole number from 0"),
    )

    @property
    def labels(self) -> range:
        """Those of the classes."""
        return range(self.first, self.first + len(self.classes))

    @property
    def class_names(self) -> tuple[str, ...]:
        """The classes, or the one of masks and instances without classes."""
        if self.classes:
            return self.classes
        return ("mask",) if self.unit == "class" else ("instances",)


def _steps(value: Any) -> Any:
    """Two steps; one number is both."""
    given = value if isinstance(value, list | tuple) else [value]
    found = tuple(float(v) if is_number(v) else v for v in given)
    return found * 2 if len(found) == 1 else found


def _spacing_words(options: Any) -> str:
    down, right = options.spacing
    return "" if down == right == 1 else f"spacing {down:g} x {right:g}"


SPACING = option(
    (1.0, 1.0),
    "Row and column step, or one number for both: the unit of distances and tolerances.",
    [POSITIVES, check(lambda v: len(v) == 2, "two steps, of rows and columns, or one for both")],
    _steps,
    caption=_spacing_words,
)


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
        """All measures, in the order of the columns of the counts, each with its name in `TABLE`
        and its size."""
        found = {"iou": ("iou", 0.0), "dice": ("dice", 0.0)}
        for group in (g for g in GROUPS if g in self.groups):
            names, option = _MEASURES[group]
            sizes = getattr(self, option)
            for size in sizes if isinstance(sizes, tuple) else (sizes,):
                for name in names:
                    mark = f"@{size:g}" if isinstance(sizes, tuple) else ""
                    found[name.replace("%", f"{size:g}") + mark] = (name, size)
        return found
