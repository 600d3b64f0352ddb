"""Score a run at the best threshold of another run."""

from __future__ import annotations

from bsdsbench.errors import DataError
from bsdsbench.metrics import registry
from bsdsbench.protocol.signature import Severity
from bsdsbench.results.comparability import pair_differences
from bsdsbench.results.evaluation import Evaluation
from bsdsbench.results.score_tables import METHOD, reading_line
from bsdsbench.tables.table import Field, Note, Table


def at_threshold_of(run: Evaluation, other: Evaluation) -> list[Table]:
    """Score a run at the ODS threshold of another run, for example one on a validation set.

    Returns one table for each metric that has a curve in both runs. It shows precision, recall and
    F of `run` at the ODS threshold of `other`, and the ODS of `run` at its own best threshold.
    """
    only_alike = "a threshold holds for one protocol and kind of maps"
    for pair in pair_differences([other, run]):
        difference = pair.difference
        # Images and annotations may differ, but not the scale of the predictions. A difference is
        # IGNORED if no score depends on it
        is_essential = difference.of_protocol or difference.field in ("pred", "reading")
        if is_essential and difference.severity is not Severity.IGNORED:
            raise DataError(f"{pair.line()}; {only_alike}")
    text = f"P, R, F: at the ODS threshold of {other.name}; ODS: at the best threshold of this run."
    notes: list[str | Note] = [Note(text, ("p", "r", "f", "ods"))]
    if shared := {*run.image_ids} & {*other.image_ids}:
        reason = "so its threshold was not chosen independently."
        notes.append(f"{len(shared)} images are also in {other.name}, {reason}")
    columns = [METHOD, Field("threshold", f"threshold of {other.name}", "threshold", ".3f")]
    columns += [Field(key, key.upper(), "", ".4f") for key in ("p", "r", "f", "ods")]
    columns.append(Field("ods_threshold", "ODS threshold", "threshold", ".3f"))
    tables = []
    for metric in [name for name in run.with_curve if name in other.with_curve]:  # P-R curves
        score, other_score = run.score(metric), other.score(metric)
        grids = other_score.curve.thresholds, score.curve.thresholds
        spans = [f"{grid[0]:g} to {grid[-1]:g}" for grid in grids]  # such as "0.01 to 0.99"
        # For segmentations, thresholds are numbers of levels, whose range can differ
        if spans[0] != spans[1]:
            differing = f"{other.name}, {run.name}: thresholds from {spans[0]} / {spans[1]}"
            raise DataError(f"{differing}; {only_alike}")
        point = score.curve.at(other_score.ods.threshold)
        row = [run.name, point.threshold, point.precision, point.recall, point.f]
        table = Table(
            f"{metric}-at-threshold",
            f"{registry.get(metric).title}, at the threshold that was best on {other.name}",
            columns,
            [[*row, score.ods.f, score.ods.threshold]],
            notes=notes,
            reading=reading_line([run, other]),
            signatures=[f"Signature of {other.name}: {other.signature}"],
        )
        tables.append(table)
    if not tables:
        raise DataError(f"{other.name}: no metric with thresholds, expected one of {run.name}")
    return tables
