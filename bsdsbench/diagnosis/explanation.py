"""What `explain` found: trials of causes, which of them give the target, and that in a sentence.

A target is met where a score of all images agrees with it to the digits given. Pairs of causes, and
what no known program does, are tried in such numbers that some lie within half a hundredth of
anything: they count for targets of four digits alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import inf, isnan
from typing import Any

from bsdsbench.protocol.fields import HOME_MADE

FINEST = 1e-6  # targets are not taken to be known better than this
FINE = 5e-5  # four digits
LIKELY_FIRST = ("as it is", "reading", "images", "setting")
Number = float | str  # a text says its digits: "0.760" is not "0.76"


@dataclass(frozen=True, slots=True)
class Trial:
    """What is done differently, the scores that gives, and the largest distance to a target.

    kind : one of LIKELY_FIRST; exact : of all images, else estimated from n_images of them
    """

    label: str
    kind: str
    n_causes: int
    who: str
    scores: dict[str, float]
    gap: float
    exact: bool
    n_images: int
    reached: bool


def trial(
    targets: Mapping[str, Number],
    label: str,
    kind: str,
    scores: Mapping[str, float],
    *,
    n_causes: int = 1,
    who: str = "",
    exact: bool = True,
    n_images: int = 0,
) -> Trial:
    """A trial, of one cause on all images unless said otherwise."""
    gaps = [abs(scores[m] - float(t)) for m, t in targets.items()]
    reach = [resolution(t) for t in targets.values()]
    known = n_causes < 2 and HOME_MADE not in who
    near = all(g <= r * (1 + 1e-9) for g, r in zip(gaps, reach, strict=True))
    reached = exact and near and (known or min(reach) <= FINE)
    gap = max(inf if isnan(g) else g for g in gaps)
    asked = {m: scores[m] for m in targets}
    return Trial(label, kind, n_causes, who, asked, gap, exact, n_images, reached)


def resolution(value: Number) -> float:
    """Half a unit of the last digit of a number as it is printed, 1e-6 or more."""
    text = value if isinstance(value, str) else f"{value:.10f}".rstrip("0")
    return max(float(Decimal(5).scaleb(int(Decimal(text).as_tuple().exponent) - 1)), FINEST)


@dataclass(frozen=True, slots=True)
class Explanation:
    """All trials, the best first, and what they come to; `complete` unless the time was up."""

    targets: dict[str, Number]
    base: dict[str, float]
    trials: tuple[Trial, ...]
    complete: bool
    seconds: float
    n_images: int

    @property
    def fitting(self) -> tuple[Trial, ...]:
        """Every trial that meets every target: one identifies the cause, several do not."""
        return tuple(t for t in self.trials if t.reached)

    @property
    def answer(self) -> Trial | None:
        """The likeliest trial that meets every target, or None."""
        return next(iter(self.fitting), None)

    def sentence(self) -> str:
        """The finding in one sentence, to be pasted."""
        found = self.answer
        asked = ", ".join(f"{m.upper()} {shown(v)}" for m, v in self.targets.items())
        own = ", ".join(f"{m.upper()} {self.base[m]:.4f}" for m in self.targets)
        if found is None:
            late = "" if self.complete else " in the time given"
            start = (
                f"The target ({asked}) is not reachable by any known reading of these "
                f"{self.n_images} images{late}"
            )
            near = self.trials[0]
            some = "" if near.exact else f" (estimated on {near.n_images} images)"
            return f"{start}; the nearest is {near.label}, off by {near.gap:.4f}{some}."
        if not found.n_causes:
            return f"The run already has the target ({asked}): {own}."
        if len(self.fitting) > 1:
            labels = [repr(t.label) for t in self.fitting]
            more = f" and {len(labels) - 3} more" if len(labels) > 3 else ""
            return (
                f"{len(labels)} readings fit the target ({asked}), so none is identified: "
                f"{', '.join(labels[:3])}{more}. This run has {own}. More measures or digits "
                "in the target may tell them apart."
            )
        moved = ", ".join(
            f"{m.upper()} from {self.base[m]:.4f} to {found.scores[m]:.4f} "
            f"({found.scores[m] - self.base[m]:+.4f})"
            for m in self.targets
        )
        by = f"; used by {found.who}" if found.who else ""
        return f"This run reaches the target ({asked}) with {found.label!r}: {moved}{by}."


def shown(value: Number) -> str:
    """A target with its own digits."""
    return value if isinstance(value, str) else f"{value:.6f}".rstrip("0")


def ranked(trials: Iterable[Trial]) -> tuple[Trial, ...]:
    """Those that meet the targets first, the likeliest of them before others; then the nearest."""

    def key(t: Trial) -> tuple[Any, ...]:
        likely = (t.n_causes, LIKELY_FIRST.index(t.kind)) if t.reached else ()
        return (not t.reached, *likely, t.gap)

    return tuple(sorted(trials, key=key))
