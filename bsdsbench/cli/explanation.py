"""The output of the command `explain`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bsdsbench.diagnosis.explanation import Explanation, Trial
    from bsdsbench.results.evaluation import Evaluation

# The number of settings that explain prints, beside those that reach the target and the run itself
_MAX_TRIALS = 9


def _trials_to_print(explanation: Explanation) -> list[Trial]:
    """Return the trials to print, of those that were counted on all images.

    These are the first _MAX_TRIALS, all that reach the target, and the run as it is.
    """
    exact_trials = [trial for trial in explanation.trials if trial.exact]
    return [
        trial
        for k, trial in enumerate(exact_trials)
        if k < _MAX_TRIALS or trial.reached or trial.label == "as it is"
    ]


def explanation_as_json(
    explanation: Explanation, target_values: Mapping[str, float | str], reading: str
) -> dict[str, object]:
    """Return an explanation as plain values for JSON.

    target_values: score of the metric -> its target, as the user wrote it.
    reading: a sentence on how the files were read.
    """
    return {
        "targets": {measure: float(text) for measure, text in target_values.items()},
        "trials": [asdict(trial) for trial in _trials_to_print(explanation)],
        "sentence": explanation.sentence(),
        "seconds": explanation.seconds,
        "complete": explanation.complete,
        "not_counted": explanation.not_counted,
        "pairs_not_counted": explanation.pairs_not_counted,
        "reading": reading,
    }


def print_explanation(
    explanation: Explanation,
    metric: str,
    target_values: Mapping[str, float | str],
    evaluation: Evaluation,
) -> None:
    """Print published rows, the target, a line per trial, the protocol, and the answer.

    `target_values` maps each score of the metric to its target, as the user wrote it. A trial that
    reaches the target has the sign "=" if a known program has its setting, else "~".
    """
    from bsdsbench.diagnosis.explanation import capitalise
    from bsdsbench.metrics.registry import describe

    for row in explanation.published:
        print(f"published     {row}")
    wanted = "  ".join(f"{capitalise(m)} {text}" for m, text in target_values.items())
    print(f"target        {wanted}")
    for trial in _trials_to_print(explanation):
        scores = "  ".join(f"{capitalise(m)} {trial.scores[m]:.4f}" for m in target_values)
        sign = " "
        if trial.reached:
            sign = "=" if trial.in_use else "~"
        print(f"{sign} off {trial.gap:.4f}  {scores}  {trial.label}")
    print(f"protocol {describe([metric], evaluation.protocol)}")
    lines = evaluation.read_as, explanation.partly_line, explanation.late_line
    print(*filter(None, [*lines, explanation.sentence()]), sep="\n")
