"""What `explain` found: trials of readings, which of them are findings, and that in a sentence.

A reading that is named in advance and gives the target is a finding. If several do, none is
identified. What nothing names, such as the first so many images, is tried by the hundred, so some
of it is near any number: such a hit is a coincidence, whatever it is off by. So is a pair of
causes, and what no known program does, when so many were tried that a hit by chance is likely.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import erf, inf, nan, sqrt
from typing import Any

import numpy as np

from bsdsbench.protocol.fields import HOME_MADE

FINEST = 1e-6  # targets are not taken to be known better than this
PRIOR = {"as it is": 0, "reading": 1, "images": 2, "setting": 3, "some images": 4}
BY_CHANCE = "some images"  # the kind that nothing names
LIKELY = 0.05  # from this chance on a hit of what no program is known to do is no finding
FINE = 5e-5  # a target of four digits is met by chance less often


@dataclass(frozen=True, slots=True)
class Trial:
    """One reading of the run: what is done differently, and the scores that gives.

    label  : the causes in words; n_causes : how many, 0 for the run as it is
    kind   : a key of PRIOR; who : whose programs do so
    scores : measure -> value, of all images where `exact`, else estimated from n_images of them
    gap    : the largest distance to a target
    reached : every target is met to the digits it is given with
    settles : that ends the search: a hit that is hardly by chance
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
    settles: bool
    tried: int = 0
    chance: float = 0.0

    @property
    def coincidence(self) -> bool:
        """True for a hit that says nothing."""
        invented = self.n_causes > 1 or HOME_MADE in self.who
        return self.reached and (self.kind == BY_CHANCE or (invented and self.chance > LIKELY))


def trial(
    targets: Mapping[str, float], label: str, kind: str, scores: Mapping[str, float], **more: Any
) -> Trial:
    """A trial of one cause on all images, unless `more` says otherwise."""
    gaps = {m: abs(scores[m] - t) for m, t in targets.items()}
    close = all(gaps[m] <= resolution(t) * (1 + 1e-9) for m, t in targets.items())
    gap = float(np.nan_to_num(max(gaps.values()), nan=inf))
    given: dict[str, Any] = {"n_causes": 1, "who": "", "exact": True, "n_images": 0, **more}
    reached = given["exact"] and close
    fine = HOME_MADE not in given["who"] or min(map(resolution, targets.values())) <= FINE
    settles = reached and kind != BY_CHANCE and fine
    return Trial(
        label, kind, scores=dict(scores), gap=gap, reached=reached, settles=settles, **given
    )


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
        if found.chance > LIKELY:
            by += (
                f"; of {found.tried} readings tried one fits by chance with probability "
                f"{found.chance:.2g}"
            )
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

    Their scores are taken as normal with their own means and covariances. Where these are too alike
    to tell, the least probable of the targets counts alone.
    """
    table = np.array([[t.scores.get(name, nan) for name in targets] for t in alike])
    table = table[np.isfinite(table).all(axis=1)]
    if len(table) < 2:
        return 1.0
    away = np.array(list(targets.values())) - table.mean(axis=0)
    reach = np.array([resolution(v) for v in targets.values()])
    spread = np.maximum(table.std(axis=0), 1e-12)
    single = [
        0.5 * (erf((d + r) / s / sqrt(2)) - erf((d - r) / s / sqrt(2)))
        for d, r, s in zip(away, reach, spread, strict=True)
    ]
    with np.errstate(divide="ignore", invalid="ignore"):  # scores that do not move
        scaled = np.corrcoef(table / spread, rowvar=False).reshape(len(reach), -1)
    scaled = np.nan_to_num(scaled) * (1 - 1e-6) + 1e-6 * np.eye(len(reach))
    far = away / spread
    density = np.exp(-0.5 * far @ np.linalg.solve(scaled, far))
    density /= np.sqrt((2 * np.pi) ** len(reach) * np.linalg.det(scaled))
    least = min(*single, float(density * np.prod(2 * reach / spread)), 1 - 1e-12)
    return float(-np.expm1(len(alike) * np.log1p(-least)))
