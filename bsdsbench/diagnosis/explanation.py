"""What `explain` found: trials of readings, which of them are findings, and that in a sentence.

A reading that is named in advance and gives the target is a finding. If several do, none is
identified. What nothing names, such as the first so many images, is tried by the hundred, so some
of it is near any number: such a hit is a coincidence, whatever it is off by. So is a pair of causes
when so many were tried that a hit by chance is likely.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import erf, inf, nan, sqrt
from typing import Any

import numpy as np

FINEST = 1e-6  # targets are not taken to be known better than this
PRIOR = {"as it is": 0, "reading": 1, "images": 2, "setting": 3, "some images": 4}
BY_CHANCE = "some images"  # the kind that nothing names
LIKELY = 0.05  # from this chance on a hit of two causes is no finding


@dataclass(frozen=True, slots=True)
class Trial:
    """One reading of the run: what is done differently, and the scores that gives.

    label  : the causes in words; n_causes : how many, 0 for the run as it is
    kind   : a key of PRIOR; who : whose programs do so
    scores : measure -> value, of all images where `exact`, else estimated from n_images of them
    gap    : the largest distance to a target
    reached : every target is met to the digits it is given with
    tried  : readings of its sort that were tried; chance : that one of them hits by chance
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
    tried: int = 0
    chance: float = 0.0

    @property
    def coincidence(self) -> bool:
        """True for a hit that says nothing."""
        some = self.kind == BY_CHANCE or (self.n_causes > 1 and self.chance > LIKELY)
        return self.reached and some


def trial(
    targets: Mapping[str, float], label: str, kind: str, scores: Mapping[str, float], **more: Any
) -> Trial:
    """A trial of one cause on all images, unless `more` says otherwise."""
    gaps = {m: abs(scores[m] - t) for m, t in targets.items()}
    close = all(gaps[m] <= resolution(t) * (1 + 1e-9) for m, t in targets.items())
    gap = float(np.nan_to_num(max(gaps.values()), nan=inf))
    given: dict[str, Any] = {"n_causes": 1, "who": "", "exact": True, "n_images": 0, **more}
    reached = given["exact"] and close
    return Trial(label, kind, scores=dict(scores), gap=gap, reached=reached, **given)


def resolution(value: float) -> float:
    """Half a unit of the last digit of a number as it is printed, 1e-6 or more.

    Examples
    --------
    >>> resolution(0.788), resolution(0.71046123)
    (0.0005, 1e-06)
    """
    digits = len(f"{value:.10f}".rstrip("0").partition(".")[2])
    return max(0.5 * 10.0**-digits, FINEST)


@dataclass(frozen=True, slots=True)
class Explanation:
    """All trials, the best first, coincidences last, and what they come to.

    complete : False if the time was up before every cause was tried
    """

    targets: dict[str, float]
    base: dict[str, float]
    trials: tuple[Trial, ...]
    complete: bool
    seconds: float
    n_images: int

    @property
    def answer(self) -> Trial | None:
        """The first trial that reaches every target and is no coincidence, or None."""
        return next(iter(self.fitting), None)

    @property
    def fitting(self) -> tuple[Trial, ...]:
        """Every trial that reaches every target: one identifies the reading, several do not."""
        return tuple(t for t in self.trials if t.reached and not t.coincidence)

    @property
    def coincidences(self) -> tuple[Trial, ...]:
        """Hits that say nothing."""
        return tuple(t for t in self.trials if t.coincidence)

    @property
    def tried(self) -> int:
        """Readings that were tried."""
        return sum(t.n_causes > 0 for t in self.trials)

    def sentence(self) -> str:
        """The finding in one sentence, to be pasted."""
        found = self.answer
        shown, own = (
            ", ".join(f"{m.upper()} {values[m]:.4f}" for m in self.targets)
            for values in (self.targets, self.base)
        )
        if found is None:
            return f"{self._nothing(shown)}{self._by_chance()}"
        if not found.n_causes:
            return f"The run already has the target: {own}."
        if len(self.fitting) > 1:
            labels = [repr(t.label) for t in self.fitting]
            more = f" and {len(labels) - 3} more" if len(labels) > 3 else ""
            return (
                f"{len(labels)} readings fit the target ({shown}), so none is identified: "
                f"{', '.join(labels[:3])}{more}. This run has {own}. More measures or digits "
                "in the target may tell them apart."
            )
        moved = ", ".join(
            f"{m.upper()} from {self.base[m]:.4f} to {found.scores[m]:.4f} "
            f"({found.scores[m] - self.base[m]:+.4f})"
            for m in self.targets
        )
        by = f"; used by {found.who}" if found.who else ""
        return f"This run reaches the target ({shown}) with {found.label!r}: {moved}{by}."

    def _nothing(self, shown: str) -> str:
        late = "" if self.complete else " in the time given"
        start = (
            f"The target ({shown}) is not reachable by any known reading of these "
            f"{self.n_images} images{late}"
        )
        near = next((t for t in self.trials if not t.reached), None)
        if near is None:
            return f"{start}."
        some = "" if near.exact else f" (estimated on {near.n_images} images)"
        return f"{start}; the nearest is {near.label}, off by {near.gap:.4f}{some}."

    def _by_chance(self) -> str:
        if not self.coincidences:
            return ""
        first, more = self.coincidences[0], len(self.coincidences) - 1
        other = f" and {more} more" if more else ""
        return (
            f" {first.label!r}{other} meets it, which is no finding: of {first.tried} such "
            f"readings that were tried one does by chance with probability {first.chance:.2g}."
        )


def ranked(trials: Sequence[Trial], targets: Mapping[str, float]) -> tuple[Trial, ...]:
    """Findings first, the likeliest of them before others, then the nearest, then coincidences.

    Of several trials of one label the last stays, which had most images, or one that reached the
    target. Choices of images that nothing names say nothing unless they reach it.
    """
    last = {t.label: t for t in trials}
    last |= {t.label: t for t in trials if t.reached}
    sorts: dict[tuple[bool, bool], list[Trial]] = {}
    for t in last.values():
        sorts.setdefault((t.kind == BY_CHANCE, t.n_causes > 1), []).append(t)
    known = [
        replace(t, tried=len(alike), chance=odds)
        for alike in sorts.values()
        for odds in [_chance(alike, targets)]
        for t in alike
        if t.reached or t.kind != BY_CHANCE
    ]

    def key(t: Trial) -> tuple[Any, ...]:
        sure = t.reached and not t.coincidence
        return (t.coincidence, not sure, *((t.n_causes, PRIOR[t.kind]) if t.reached else ()), t.gap)

    return tuple(sorted(known, key=key))


def _chance(alike: Sequence[Trial], targets: Mapping[str, float]) -> float:
    """How probable it is that some of these trials meet the targets if their scores are random.

    Their scores are taken as normal with their own mean and spread. Of several targets the least
    probable counts alone, as the scores of one reading go together: it is an upper bound.
    """
    least = 1.0
    for name, target in targets.items():
        values = np.array([t.scores.get(name, nan) for t in alike])
        values = values[np.isfinite(values)]
        spread = float(values.std()) if values.size > 1 else 0.0
        if spread == 0:
            continue
        low, high = (
            (target + side * resolution(target) - float(values.mean())) / spread for side in (-1, 1)
        )
        least = min(least, 0.5 * (erf(high / sqrt(2)) - erf(low / sqrt(2))))
    return float(-np.expm1(len(alike) * np.log1p(-min(least, 1 - 1e-12))))
