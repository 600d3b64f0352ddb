"""The text and the JSON that the command `explain` prints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bsdsbench.cli.shared import print_json

if TYPE_CHECKING:
    from bsdsbench.diagnosis.explanation import Explanation
    from bsdsbench.results.evaluation import Evaluation

_MAX_TRIALS = 9  # trials printed by `explain`, in addition to those that reach the target


def print_explanation(
    explanation: Explanation,
    metric: str,
    target_values: Mapping[str, float | str],
    evaluation: Evaluation,
    output_format: str,
) -> None:
    """Print which settings give the published scores, as text or JSON.

    A trial is a setting with its scores; trials come sorted, those first that are most likely to
    explain the targets. Only trials on all images are printed: the first _MAX_TRIALS (9), all
    others that reach the targets, and the unchanged run. In text, trials that reach the targets are
    marked with "=" if a known program uses the setting, otherwise with "~".

    target_values: score, such as "ods" -> target as the user wrote it.
    """
    from bsdsbench.diagnosis.explanation import capitalise
    from bsdsbench.metrics.registry import describe

    exact_trials = [trial for trial in explanation.trials if trial.exact]  # on all images
    trials = exact_trials[:_MAX_TRIALS]
    for trial in exact_trials[_MAX_TRIALS:]:
        if trial.reached or trial.label == "as it is":
            trials.append(trial)
    if output_format == "json":
        # The duration; were all settings tried; if not, which, and how many pairs of settings, were
        # left out for lack of time or files
        fields = ("seconds", "complete", "not_counted", "pairs_not_counted")
        plain: dict[str, Any] = {"targets": {k: float(text) for k, text in target_values.items()}}
        plain |= {"trials": list(map(asdict, trials)), "sentence": explanation.sentence()}
        plain |= {field: getattr(explanation, field) for field in fields}
        print_json({**plain, "reading": evaluation.read_as})
        return
    for row in explanation.published:
        print(f"published     {row}")
    targets = [f"{capitalise(measure)} {text}" for measure, text in target_values.items()]
    print(f"target        {'  '.join(targets)}")
    for trial in trials:
        scores = "  ".join(f"{capitalise(m)} {trial.scores[m]:.4f}" for m in target_values)
        sign = " "
        if trial.reached:
            sign = "=" if trial.in_use else "~"
        print(f"{sign} off {trial.gap:.4f}  {scores}  {trial.label}")
    print(f"protocol {describe([metric], evaluation.protocol)}")
    last_lines = (
        evaluation.read_as,  # how values in the files were interpreted
        explanation.partly_counted_line,  # how many settings were tried on some images only
        explanation.not_counted_line,  # the settings that were not tried, for lack of time or files
        explanation.sentence(),
    )
    print("\n".join(filter(None, last_lines)))  # lines may be ""


def print_differences(between: tuple[str, str]) -> int:
    """Print the differences between two signatures that can change a score.

    An argument that contains "|" is a signature. Otherwise, an existing path, a URL or ref:NAME is
    a run whose signature is used. Returns the exit status: 1 if there are differences, otherwise 0.
    """
    import bsdsbench as bb
    from bsdsbench.protocol.signature import Severity, Signature
    from bsdsbench.results.references import REF_PREFIX
    from bsdsbench.results.sharing import is_address

    signatures = []
    for text in between:
        is_run = Path(text).exists() or text.startswith(REF_PREFIX) or is_address(text)
        if is_run and "|" not in text:  # a bar separates the words of a signature
            signatures.append(bb.Evaluation.load(text).signature)
        else:
            signatures.append(Signature.parse(text))
    differences = signatures[0].differences(signatures[1])
    lines = [d.line() for d in differences if d.severity is not Severity.IGNORED]
    print("\n".join(lines) or "no known difference: the scores are comparable")
    return 1 if lines else 0
