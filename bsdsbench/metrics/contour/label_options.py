"""Options for label maps: their content, and the contour measures with their sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bsdsbench.metrics.contour.pairs import CONVENTIONS
from bsdsbench.protocol.settings import (
    HOME_MADE,
    LABEL,
    NAMES,
    POSITIVE,
    POSITIVES,
    Settings,
    each,
    floats,
    is_number,
    one_of,
    setting,
    whole,
)

PERCENTS = (90.0, 95.0, 99.0)  # those that have columns
GROUPS = ("boundary-iou", "davis", "bf", "distance", "nsd", "fom", "trimap", "cldice")


def _unit_words(options: Any) -> str:
    of = f"{len(options.classes)} classes" if options.classes else "masks"
    if options.unit == "class":
        return of
    of = f"instances of {of}" if options.classes else "instances"
    return f"{of} paired by {'IoU > 0.5' if options.unit == 'instance' else 'number'}"


@dataclass(frozen=True, slots=True)
class LabelOptions(Settings):
    """What label maps hold: masks, classes or instances."""

    classes: tuple[str, ...] = setting(
        (),
        "The names in the order of their labels; none: masks of 0 and 1, or 0 and 255.",
        NAMES,
        describe=_unit_words,
    )
    first: int = setting(
        0, "The label of the first class; the others follow without a gap, and 0 is nothing.", LABEL
    )
    ignore: int = setting(
        255,
        "Label of ground-truth pixels that are cleared on both sides, or -1 for none.",
        whole(-1, 2**31 - 1, "a label, or -1"),
        others={255: "PASCAL VOC, Cityscapes", 0: "scripts that ignore 0", -1: "scripts without"},
    )
    unit: str = setting(
        "class",
        '"class": one mask per class and image; "instance": instances, paired where their '
        'intersection over union is above 0.5; "id": instances, paired by their number.',
        one_of("class", "instance", "id"),
    )
    divisor: int = setting(
        0,
        "Instance maps hold class x divisor + instance; 0: one class, everything but 0 is the "
        "number of an instance.",
        whole(0, 2**31 - 1, "a whole number from 0"),
    )

    @property
    def class_names(self) -> tuple[str, ...]:
        """The classes, or the one of masks and instances without classes."""
        if self.classes:
            return self.classes
        return ("mask",) if self.unit == "class" else ("instances",)


def _spacing_words(options: Any) -> str:
    down, right = options.spacing
    return "" if down == right == 1 else f"spacing {down:g} x {right:g}"


@dataclass(frozen=True, slots=True)
class ContourOptions(LabelOptions):
    """What label maps hold, and the measures with their sizes."""

    spacing: tuple[float, float] = setting(
        (1.0, 1.0),
        "Row and column step, the unit of distances and tolerances.",
        POSITIVES,
        (lambda v: len(v) == 2, "two steps, of rows and columns"),
        read=floats,
        describe=_spacing_words,
    )
    empty: str = setting(
        "skip",
        "What empty masks give, a name of bsdsbench.metrics.contour.CONVENTIONS.",
        one_of(*CONVENTIONS),
        others={
            "skip": "MONAI, surface-distance",
            "perfect": "DAVIS, scripts that count both empty as right",
            **dict.fromkeys(("inf", "diagonal", "zero"), HOME_MADE),
        },
        describe=lambda o: f"empty masks: {o.empty} ({CONVENTIONS[o.empty].words})",
    )
    groups: tuple[str, ...] = setting(
        GROUPS[:-1],
        f"The measures, of {', '.join(GROUPS)}.",
        (lambda v: isinstance(v, tuple) and set(v) <= set(GROUPS), "groups of measures"),
    )
    boundary_sizes: tuple[float, ...] = setting(
        (0.02,),
        "Widths of Boundary IoU, fractions of the diagonal, or pixels from 1 on.",
        POSITIVES,
        read=floats,
    )
    davis_bounds: tuple[float, ...] = setting(
        (0.008, 3.0, 5.0, 9.0, 12.0),
        "Radii of F, fractions of the diagonal, or pixels from 1 on.",
        POSITIVES,
        read=floats,
    )
    bf_theta: float = setting(
        0.0075,
        "Radius of the BF score, a fraction of the diagonal, or pixels from 1 on.",
        POSITIVE,
        others={0.0075: "MATLAB's bfscore", 2.0: "scripts in pixels", 5.0: "scripts in pixels"},
    )
    percent: float = setting(
        95.0,
        "Of the robust Hausdorff distance.",
        (lambda v: is_number(v) and v in PERCENTS, "90, 95 or 99"),
    )
    tolerances: tuple[float, ...] = setting(
        (1.0, 2.0),
        "Of NSD, in the unit of `spacing`.",
        each((lambda v: is_number(v) and 0 <= v <= 1e6, ""), "numbers from 0"),
        read=floats,
    )
    pratt_alpha: float = setting(1 / 9, "Of the figure of merit.", POSITIVE)
    trimap_widths: tuple[float, ...] = setting((3.0, 10.0), "Pixels.", POSITIVES, read=floats)

    def measures(self) -> tuple[str, ...]:
        """The names of all measures, in the order of the columns of the counts."""
        percent = f"hd{self.percent:g}"
        of = {
            "boundary-iou": [
                f"{name}@{size:g}" for size in self.boundary_sizes for name in ("biou", "biou-min")
            ],
            "davis": [f"f@{b:g}" for b in self.davis_bounds],
            "bf": ["bf"],
            "distance": [
                *("hd", f"{percent}-pooled", f"{percent}-directed", f"{percent}-area"),
                *("assd-pooled", "assd-directed"),
            ],
            "nsd": [f"nsd-{f}@{t:g}" for t in self.tolerances for f in ("area", "counts", "mean")],
            "fom": ["fom"],
            "trimap": [f"trimap@{w:g}" for w in self.trimap_widths],
            "cldice": ["cldice"],
        }
        return ("iou", *(name for g in GROUPS if g in self.groups for name in of[g]))
