"""Options of metrics that have classes or masks: what their programs do differently."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SemanticParams:
    """Per-class boundaries (see bsdsbench.metrics.semantic).

    classes  : the names in the order of their labels
    first    : the label of the first class; the others follow without a gap
    ids      : or the label of each class, where there are gaps; other labels up to the largest are
               of no class
    ignore   : label of pixels that belong to nothing, or -1 for none; also several labels
    radius   : half width of the boundaries drawn from label maps, pixels; 0 is the one-pixel rule
    ignored_rule : with a radius, ignored pixels are never boundary and no side of one ("drop"), or
               a strip of them that is thin enough is boundary, as py-edge-eval draws ("span")
    interior : "keep"; or "kill": predictions inside a region of their class, further from its
               boundary than the tolerance, are taken out after thinning; "kill_first": before it
    absent   : "count" the predictions of a class in images without it, or "skip" such images
    instances : boundaries between instances of one class count too (needs an instance map)
    instance_from : the smallest value of an instance map that is an instance (Cityscapes: 1000)
    thin_gt  : boundaries of the ground truth are thinned
    border   : pixels along the border that have no part in it
    border_rule : "crop" them off both sides, so that the tolerance is that of what is left; or
               "ignore": labels get a frame of the ignored label, predictions are 0 there; the
               tolerance is that of the full size
    scale    : the ground truth is scaled to this, by the nearest pixel as imresize
    scaled   : "labels" are scaled and then drawn, or their "boundaries" once they are drawn
    resize   : predictions of another size than the ground truth: "refuse", "nearest" as Pillow, or
               "bicubic" as MATLAB's imresize
    """

    classes: tuple[str, ...] = ()
    first: int = 0
    ids: tuple[int, ...] = ()
    ignore: int | tuple[int, ...] = 255
    radius: int = 0
    ignored_rule: str = "drop"
    interior: str = "keep"
    absent: str = "count"
    instances: bool = False
    instance_from: int = 1
    thin_gt: bool = False
    border: int = 0
    border_rule: str = "crop"
    scale: float = 1.0
    scaled: str = "labels"
    resize: str = "refuse"

    def __post_init__(self) -> None:
        for name in ("classes", "ids", "ignore"):
            if isinstance(getattr(self, name), list):
                object.__setattr__(self, name, tuple(getattr(self, name)))

    def describe(self) -> str:
        """What moves a score, in a few words."""
        parts = [f"{len(self.classes)} classes, interior {self.interior}, absent {self.absent}"]
        if self.radius:
            parts.append(f"radius {self.radius}")
        if self.ignored_rule != "drop":
            parts.append(f"ignored labels {self.ignored_rule}")
        if self.instances:
            parts.append("instances apart")
        if self.thin_gt:
            parts.append("ground truth thinned")
        if self.border:
            parts.append(f"border of {self.border} {self.border_rule}")
        if self.scale != 1:
            parts.append(f"{self.scaled} scaled by {self.scale:g}")
        if self.resize != "refuse":
            parts.append(f"resized {self.resize}")
        return ", ".join(parts)

    @property
    def class_labels(self) -> tuple[int, ...]:
        """The label of each class."""
        return self.ids or tuple(range(self.first, self.first + len(self.classes)))

    @property
    def ignored(self) -> tuple[int, ...]:
        """The labels of pixels that belong to nothing, none for -1."""
        given = self.ignore if isinstance(self.ignore, tuple) else (self.ignore,)
        return tuple(label for label in given if label >= 0)


@dataclass(frozen=True, slots=True)
class SaliencyParams:
    """Salient objects (see bsdsbench.metrics.saliency). The defaults are PySODMetrics' rules.

    beta2    : beta^2 of F
    stretch  : each map that is not constant is stretched to 0 .. 1 first
    levels   : the level of a strength p: "floor" of 255 p, or 255 p "round"ed, halves up
    operator : IoU, Dice and BER at one threshold are of strengths ">" or ">=" 0.5
    cap      : the adaptive threshold is min(2 mean, 1), or with "max" min(2 mean, the largest p)
    e_divisor : the E-measure's sum is divided by "pixels-1", or by "pixels"
    centroid : a centroid half way between two pixels goes to the "even" one, or "up" (S-measure)
    """

    beta2: float = 0.3
    stretch: bool = True
    levels: str = "floor"
    operator: str = ">"
    cap: str = "one"
    e_divisor: str = "pixels-1"
    centroid: str = "even"

    def describe(self) -> str:
        """What moves a score, in a few words."""
        cap = "1" if self.cap == "one" else "max"
        parts = [
            "maps stretched to 0 .. 1" if self.stretch else "maps as they are",
            f"levels {'floor(255 p)' if self.levels == 'floor' else 'round(255 p)'}, >=",
            f"IoU, Dice, BER at p {self.operator} 0.5",
            f"beta^2 {self.beta2:g}",
            f"adaptive min(2 mean, {cap})",
            f"E by {self.e_divisor}",
            f"centroid {self.centroid}",
        ]
        return "; ".join(parts)
