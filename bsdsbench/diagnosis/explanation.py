"""What a search for the settings of a published score has tried, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import InitVar, dataclass

import numpy as np

from bsdsbench.protocol.fields import HOME_MADE
from bsdsbench.text import counted

FINEST = 1e-6  # no target is taken to be known more precisely
FINE = 5e-5  # half a unit of the fourth digit
LIKELY_FIRST = ("as it is", "reading", "images", "setting")
Number = float | str  # a text shows how many digits were published: "0.760" is not "0.76"


def capitalise(measure: str) -> str:
    """Return "ODS" for "ods"; the name of another metric's score, with a dot, as it is."""
    return measure if "." in measure else measure.upper()


@dataclass(slots=True)
class Trial:
    """A change, the scores that it gives, and their distance from the targets."""

    label: str  # the change in words
    kind: str  # one of LIKELY_FIRST
    scores: dict[str, float]  # target -> score; scores that are no targets are not kept
    targets: InitVar[Mapping[str, Number]]  # target -> published value; not kept
    who: str = ""  # the programs or people that do so, if known
    n_causes: int = 1  # the number of changes, 0 for the run as it is
    exact: bool = True  # the scores are those of all images, not estimated from `n_images`
    n_images: int = 0
    gap: float = 0.0  # the largest distance of a score to its target
    # All scores are exact and agree with the targets to their digits. Pairs of changes, and changes
    # that no known program makes, also need a target of four digits.
    reached: bool = False

    def __post_init__(self, targets: Mapping[str, Number]) -> None:
        self.scores = {t: self.scores[t] for t in targets}
        gaps = np.array([abs(self.scores[t] - float(value)) for t, value in targets.items()])
        half_units = np.array([resolution(value) for value in targets.values()])
        self.gap = float(gaps.max())
        # The slack lets a gap of exactly half a unit agree in spite of rounding errors
        agrees = self.exact and bool((gaps <= half_units * (1 + 1e-9)).all())
        is_likely = self.n_causes < 2 and self.in_use
        self.reached = agrees and (is_likely or bool(half_units.min() <= FINE))

    @property
    def in_use(self) -> bool:
        """True if a known program makes the change."""
        return HOME_MADE not in self.who


def resolution(value: Number) -> float:
    """Return the rounding error of a published number: half a unit in its last decimal place.

    The text "0.760" has three decimals, and the float 0.760 is taken to have two. The result is
    never smaller than FINEST.
    """
    text = value if isinstance(value, str) else f"{value:.10f}".rstrip("0")
    return max(0.5 * 10.0 ** -len(text.partition(".")[2]), FINEST)


def rank_trials(trials: Iterable[Trial]) -> tuple[Trial, ...]:
    """Sort trials by how likely they explain the targets.

    Trials that meet the targets come first, sorted by their number of causes, then by their kind in
    the order of LIKELY_FIRST, and then by their gap. The other trials follow, sorted by their gap.
    """

    def key(trial: Trial) -> tuple[float, ...]:
        if trial.reached:
            return 0, trial.n_causes, LIKELY_FIRST.index(trial.kind), trial.gap
        return 1, trial.gap

    return tuple(sorted(trials, key=key))


@dataclass(frozen=True, slots=True)
class Explanation:
    """All trials, the most likely first, and the conclusion drawn from them."""

    targets: dict[str, Number]  # target -> published value
    base: dict[str, float]  # target -> the run's score
    trials: tuple[Trial, ...]  # in the order of `rank_trials`
    seconds: float  # the time that the search took
    n_images: int  # of the run
    published: tuple[str, ...] = ()  # descriptions of published results that have the targets
    # Labels of the settings that were not counted on all images for want of time; for a run without
    # files, the kinds of all settings
    not_counted: tuple[str, ...] = ()
    pairs_not_counted: int = 0  # the number of pairs of settings that were not, for want of time
    files: bool = True  # False if only the run's counts are there, not its maps and ground truth

    @property
    def complete(self) -> bool:
        """True if all settings and all pairs of settings were counted."""
        return not self.not_counted and not self.pairs_not_counted

    @property
    def partly_counted_line(self) -> str:
        """The number of settings counted on some images only, in words, or "" for none."""
        n_partly = sum(not trial.exact for trial in self.trials)
        line = "counted on some images only, without a match there; one may still fit"
        return f"{counted(n_partly, 'more setting')} {line}" if n_partly else ""

    @property
    def not_counted_line(self) -> str:
        """The settings that were not counted, and why, in words, or "" if all were.

        With the run's files, time ran out. Without them, no setting can be counted, and their kinds
        are listed.
        """
        left_out = list(self.not_counted)
        if self.pairs_not_counted:
            left_out.append(f"{counted(self.pairs_not_counted, 'pair')} of settings")
        reason = "within the time limit" if self.files else "because the files are not given"
        return f"not counted {reason}: {', '.join(left_out)}" if left_out else ""

    @property
    def fitting(self) -> tuple[Trial, ...]:
        """The trials that meet every target; only a single one identifies the cause."""
        return tuple(t for t in self.trials if t.reached)

    @property
    def answer(self) -> Trial | None:
        """The most likely trial that meets every target, or None if no trial does."""
        return next(iter(self.fitting), None)

    def sentence(self) -> str:
        """Return the conclusion as a string that can be pasted into a paper or an issue.

        Published results that have the targets are named first. Then the conclusion names the trial
        that meets the targets, with the scores before and after the change and the programs that
        make it; or all of them, since the cause is not identified; or the nearest trial. If the run
        meets the targets as it is, it says so.
        """
        intro = ""
        if self.published:
            intro = f"Published with these numbers: {', '.join(self.published)}. "
        asked = ", ".join(f"{capitalise(t)} {value}" for t, value in self.targets.items())
        present = ", ".join(f"{capitalise(t)} {score:.4f}" for t, score in self.base.items())
        trial = self.answer
        if trial is None:
            return intro + self._sentence_of_nearest(asked)
        if not trial.n_causes:
            return f"{intro}The run already has the target ({asked}): {present}."
        if len(self.fitting) > 1:
            return intro + self._sentence_of_several(asked, present)
        return intro + self._sentence_of_cause(trial, asked)

    def _sentence_of_nearest(self, asked: str) -> str:
        """Return the conclusion if no trial meets the targets, which `asked` has in words."""
        limit = ""
        if not self.complete:
            limit = " in the given time" if self.files else " from their counts alone"
        nearest = next(trial for trial in self.trials if trial.exact)
        return (
            f"No known reading of these {self.n_images} images{limit} reaches the target "
            f"({asked}); the nearest one counted on all images is {nearest.label}, off by "
            f"{nearest.gap:.4f}."
        )

    def _sentence_of_several(self, asked: str, present: str) -> str:
        """Return the conclusion if several trials meet the targets.

        asked, present : the targets, and the scores of the run, in words
        """
        unused = " (no known program)"
        labels = [repr(t.label) + ("" if t.in_use else unused) for t in self.fitting]
        return (
            f"{len(self.fitting)} readings fit the target ({asked}), so the right one is not "
            f"identified: {', '.join(labels)}. This run has {present}. More measures or digits in "
            "the target may tell them apart."
        )

    def _sentence_of_cause(self, trial: Trial, asked: str) -> str:
        """Return the conclusion if a single trial meets the targets, which `asked` has in words."""
        changed = ", ".join(
            f"{capitalise(target)} from {score:.4f} to {trial.scores[target]:.4f}"
            for target, score in self.base.items()
        )
        if not trial.in_use:
            return (
                f"No setting of a known program gives the target ({asked}), but {trial.label!r} "
                f"does: {changed}."
            )
        by = f"; used by {trial.who}" if trial.who else ""
        return f"This run reaches the target ({asked}) with {trial.label!r}: {changed}{by}."
