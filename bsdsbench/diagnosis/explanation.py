"""The results of a search for the settings behind a published score, and the conclusion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import InitVar, dataclass

import numpy as np

from bsdsbench.protocol.fields import HOME_MADE
from bsdsbench.text import quantity, rounding_error

MOST_PUBLISHED = 5  # the maximum number of published results that the conclusion names
FOUR_DECIMALS = 5e-5  # the rounding error of a number with four decimals
# Kinds of trials: no change, another rule or column, a subset of the images, another setting
LIKELY_FIRST = ("as it is", "reading", "images", "setting")
Number = float | str  # a string keeps the published decimals: "0.760" is not "0.76"


def capitalise(measure: str) -> str:
    """Return a score's name in capitals ("ODS"), or unchanged if it has a dot (METRIC.SCORE)."""
    return measure if "." in measure else measure.upper()


@dataclass(slots=True)
class Trial:
    """A change, the scores it gives, and their difference from the targets (published scores)."""

    label: str  # the change in words
    kind: str  # one of LIKELY_FIRST
    scores: dict[str, float]  # target -> score under the change; other scores are dropped
    targets: InitVar[Mapping[str, Number]]  # target -> published value; not stored
    who: str = ""  # the programs that make this change, if known
    n_causes: int = 1  # the number of changes, 0 for the unchanged run
    exact: bool = True  # False if the scores are estimated from `n_images` of the images
    n_images: int = 0
    gap: float = 0.0  # the largest absolute difference between a score and its target
    reached: bool = False

    def __post_init__(self, targets: Mapping[str, Number]) -> None:
        """Drop scores without a target (a published value), and set `gap` and `reached`.

        A trial reaches the targets if its scores are exact (from all images), and each differs from
        its target by at most half a unit in the last decimal of the target. A pair of changes
        (`n_causes` is 2), or a change that only home-made scripts make (`in_use` is False), can
        agree with targets of few decimals by chance. It reaches them only if, in addition, at least
        one of the targets has four or more decimals.
        """
        self.scores = {name: self.scores[name] for name in targets}
        values, scores = list(targets.values()), list(self.scores.values())
        gaps = np.abs(np.array(scores) - np.array(list(map(float, values))))
        half_units = np.array(list(map(rounding_error, values)))
        self.gap = float(gaps.max())
        # The tolerance accepts a gap of exactly half a unit despite floating-point error
        agrees = self.exact and bool((gaps <= half_units * (1 + 1e-9)).all())
        is_likely = self.n_causes < 2 and self.in_use
        self.reached = agrees and (is_likely or bool(half_units.min() <= FOUR_DECIMALS))

    @property
    def in_use(self) -> bool:
        """False if only home-made scripts are known to make this change."""
        return HOME_MADE not in self.who


def rank_trials(trials: Iterable[Trial]) -> tuple[Trial, ...]:
    """Sort trials by how likely they are to explain the targets.

    Trials that reach the targets come first, sorted by the number of changes, the kind (in the
    order of LIKELY_FIRST) and the gap. The other trials follow, sorted by gap.
    """

    def key(trial: Trial) -> tuple[float, ...]:
        if trial.reached:
            return 0, trial.n_causes, LIKELY_FIRST.index(trial.kind), trial.gap
        return 1, trial.gap

    return tuple(sorted(trials, key=key))


@dataclass(frozen=True, slots=True)
class Explanation:
    """All trials, the most likely first, and the conclusion drawn from them."""

    targets: dict[str, Number]  # target (name of a score) -> published value
    base: dict[str, float]  # target -> the run's score
    trials: tuple[Trial, ...]  # in the order of `rank_trials`
    seconds: float  # the duration of the search
    n_images: int  # number of images of the run
    published: tuple[str, ...] = ()  # descriptions of published results that equal the targets
    # Labels of the settings that were not evaluated on all images because time ran out; for a run
    # without files, the kinds of all settings
    not_counted: tuple[str, ...] = ()
    pairs_not_counted: int = 0  # the number of pairs of settings for which time ran out
    files: bool = True  # False if only the run's counts are available, not its maps and gt

    @property
    def complete(self) -> bool:
        """True if all settings and all pairs of settings were evaluated on all images."""
        return not self.not_counted and not self.pairs_not_counted

    @property
    def partly_counted_line(self) -> str:
        """A line with the number of settings evaluated on only some images, or "" if none."""
        n_partly = sum(not trial.exact for trial in self.trials)
        line = "counted on some images only, without a match there; one may still fit"
        return f"{quantity(n_partly, 'more setting')} {line}" if n_partly else ""

    @property
    def not_counted_line(self) -> str:
        """A line of the settings not evaluated, for lack of time or files; "" if all were."""
        left_out = list(self.not_counted)
        if self.pairs_not_counted:
            left_out.append(f"{quantity(self.pairs_not_counted, 'pair')} of settings")
        reason = "within the time limit" if self.files else "because the files are not given"
        return f"not counted {reason}: {', '.join(left_out)}" if left_out else ""

    @property
    def fitting(self) -> tuple[Trial, ...]:
        """The trials that reach every target. The cause is identified only if there is one."""
        return tuple(t for t in self.trials if t.reached)

    @property
    def answer(self) -> Trial | None:
        """The most likely trial that reaches every target, or None if there is none."""
        return next(iter(self.fitting), None)

    def sentence(self) -> str:
        """Return the conclusion as text that can be pasted into a paper or an issue.

        It names any published results that equal the targets, and then says one of the following:

        - the unchanged run reaches the targets
        - one change reaches them, with the scores before and after, and the programs that make it
        - several changes reach them, so that the cause is not identified; it lists all of them
        - no change reaches them; it names the nearest one that was counted on all images

        Changes that no known program makes (`Trial.in_use` is False) are said to be such.
        """
        asked = ", ".join(f"{capitalise(t)} {value}" for t, value in self.targets.items())
        present = ", ".join(f"{capitalise(t)} {score:.4f}" for t, score in self.base.items())
        trial = self.answer  # the most likely trial that reaches every target
        if trial is None:
            limit = ""
            if not self.complete:  # a setting was not tried, for lack of time or of files
                limit = " in the given time" if self.files else " from their counts alone"
            # Trials are sorted by their gap; `exact` ones were counted on all images
            nearest = next(trial for trial in self.trials if trial.exact)
            text = (
                f"No known reading of these {self.n_images} images{limit} reaches the target "
                f"({asked}); the nearest one counted on all images is {nearest.label}, off by "
                f"{nearest.gap:.4f}."
            )
        elif not trial.n_causes:  # the trial is the unchanged run
            text = f"The run already has the target ({asked}): {present}."
        elif len(self.fitting) > 1:
            unused = " (no known program)"
            labels = [repr(t.label) + ("" if t.in_use else unused) for t in self.fitting]
            text = (
                f"{len(self.fitting)} readings fit the target ({asked}), so the right one is not "
                f"identified: {', '.join(labels)}. This run has {present}. More measures or digits "
                "in the target may tell them apart."
            )
        else:
            changed = ", ".join(
                f"{capitalise(target)} from {score:.4f} to {trial.scores[target]:.4f}"
                for target, score in self.base.items()
            )
            by = f"; used by {trial.who}" if trial.who else ""  # programs that make the change
            text = f"This run reaches the target ({asked}) with {trial.label!r}: {changed}{by}."
            if not trial.in_use:
                no_setting = f"No setting of a known program gives the target ({asked})"
                text = f"{no_setting}, but {trial.label!r} does: {changed}."
        n_more = len(self.published) - MOST_PUBLISHED  # many round to a target such as 0.9
        more = f" and {n_more} more" if n_more > 0 else ""
        names = ", ".join(self.published[:MOST_PUBLISHED])
        return f"Published with these numbers: {names}{more}. {text}" if names else text
