"""Options of the measures of masks and label maps: the table [contour] of a protocol."""

from __future__ import annotations

from dataclasses import dataclass, fields

CONTOUR_GROUPS = (*("boundary-iou", "davis", "bf", "distance", "nsd", "fom", "trimap", "cldice"),)


@dataclass(frozen=True, slots=True)
class ContourParams:
    """What masks and label maps are, and the sizes of the measures (bsdsbench.metrics.contour).

    classes : the names in the order of their labels; none: masks of 0 and 1, or 0 and 255
    first   : the label of the first class; the others follow without a gap, and 0 is nothing
    ignore  : label of ground-truth pixels that are cleared on both sides, or -1 for none
    unit    : "class": one mask per class and image; "instance": instances, paired where their
              intersection over union is above 0.5; "id": instances, paired by their number
    divisor : instance maps hold class x divisor + instance; 0: one class, everything but 0 is the
              number of an instance
    spacing : row and column step, the unit of distances and tolerances
    empty   : what empty masks give, a name of bsdsbench.metrics.contour.CONVENTIONS
    groups  : the measures, of "boundary-iou", "davis", "bf", "distance", "nsd", "fom", "trimap",
              "cldice"
    boundary_sizes : widths of Boundary IoU, fractions of the diagonal, or pixels from 1 on
    davis_bounds   : radii of F, fractions of the diagonal, or pixels from 1 on
    bf_theta       : radius of the BF score, a fraction of the diagonal, or pixels from 1 on
    percent        : of the robust Hausdorff distance
    tolerances     : of NSD, in the unit of `spacing`
    pratt_alpha    : of the figure of merit
    trimap_widths  : pixels
    """

    classes: tuple[str, ...] = ()
    first: int = 0
    ignore: int = 255
    unit: str = "class"
    divisor: int = 0
    spacing: tuple[float, float] = (1.0, 1.0)
    empty: str = "skip"
    groups: tuple[str, ...] = ("boundary-iou", "davis", "bf", "distance", "nsd", "fom", "trimap")
    boundary_sizes: tuple[float, ...] = (0.02,)
    davis_bounds: tuple[float, ...] = (0.008, 3.0, 5.0, 9.0, 12.0)
    bf_theta: float = 0.0075
    percent: float = 95.0
    tolerances: tuple[float, ...] = (1.0, 2.0)
    pratt_alpha: float = 1 / 9
    trimap_widths: tuple[float, ...] = (3.0, 10.0)

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, list | tuple):
                values = (float(v) if type(v) is int else v for v in value)
                object.__setattr__(self, field.name, tuple(values))

    @property
    def class_names(self) -> tuple[str, ...]:
        """The classes, or the one of masks and instances without classes."""
        if self.classes:
            return self.classes
        return ("mask",) if self.unit == "class" else ("instances",)

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
        return ("iou", *(name for g in CONTOUR_GROUPS if g in self.groups for name in of[g]))

    def describe(self) -> str:
        """Everything that moves a score, in a few words."""
        of = f"{len(self.classes)} classes" if self.classes else "masks"
        if self.unit != "class":
            of = f"instances of {of}" if self.classes else "instances"
            of += " paired by IoU > 0.5" if self.unit == "instance" else " paired by number"
        down, right = self.spacing
        steps = "" if down == right == 1 else f", spacing {down:g} x {right:g}"
        return f"{of}{steps}, empty masks: {self.empty}"


__all__ = ["CONTOUR_GROUPS", "ContourParams"]
