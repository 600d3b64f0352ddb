"""What the command `explain` prints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from bsdsbench.cli.shared import print_json

if TYPE_CHECKING:
    from bsdsbench.diagnosis.explanation import Explanation
    from bsdsbench.results.evaluation import Evaluation

# The number of settings that explain prints, beside those that reach the target and the run itself
_MAX_TRIALS = 9


def print_explanation(
    explanation: Explanation,
    metric: str,
    target_values: Mapping[str, float | str],
    evaluation: Evaluation,
    form: str,
) -> None:
    """Print an explanation: published rows, the target, trials, the protocol, and the answer.

    target_values: score of the metric -> its target, as the user wrote it.
    form: "json", or "table" for a line per trial. A trial that reaches the target has the sign "="
        if a known program has its setting, else "~".

    The trials are those counted on all images: the first _MAX_TRIALS, all that reach the target,
    and the run as it is.
    """
    from bsdsbench.diagnosis.explanation import capitalise
    from bsdsbench.metrics.registry import describe

    exact_trials = [trial for trial in explanation.trials if trial.exact]
    trials = [
        trial
        for k, trial in enumerate(exact_trials)
        if k < _MAX_TRIALS or trial.reached or trial.label == "as it is"
    ]
    if form == "json":
        fields = ("seconds", "complete", "not_counted", "pairs_not_counted")
        print_json(
            {
                "targets": {measure: float(text) for measure, text in target_values.items()},
                "trials": [asdict(trial) for trial in trials],
                "sentence": explanation.sentence(),
                **{field: getattr(explanation, field) for field in fields},
                "reading": evaluation.read_as,
            }
        )
        return
    for row in explanation.published:
        print(f"published     {row}")
    wanted = "  ".join(f"{capitalise(m)} {text}" for m, text in target_values.items())
    print(f"target        {wanted}")
    for trial in trials:
        scores = "  ".join(f"{capitalise(m)} {trial.scores[m]:.4f}" for m in target_values)
        sign = " "
        if trial.reached:
            sign = "=" if trial.in_use else "~"
        print(f"{sign} off {trial.gap:.4f}  {scores}  {trial.label}")
    print(f"protocol {describe([metric], evaluation.protocol)}")
    lines = evaluation.read_as, explanation.partly_line, explanation.late_line
    print(*filter(None, [*lines, explanation.sentence()]), sep="\n")
