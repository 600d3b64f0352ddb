"""bsdsbench explain: find settings that reproduce a published score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bsdsbench.cli.options import (
    PROTOCOL_FIELDS,
    format_option,
    protocol_from,
    protocol_options,
    quiet_option,
    refuse,
    run_option,
    verb,
)

if TYPE_CHECKING:
    from bsdsbench.protocol.signature import Signature
    from bsdsbench.runs.evaluation import Evaluation


@verb("explain", short_help="Find which setting gives the published score.")
@click.argument("run", metavar="[OUT|PRED_DIR]", required=False, type=click.Path())
@click.option(
    "--between",
    nargs=2,
    metavar="SIG SIG",
    help="Compare two signatures or run folders: what differs and what it costs.",
)
@click.option(
    "--gt", "gt_dir", type=click.Path(), help="Ground-truth folder; default: that of OUT."
)
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="MEASURE=VALUE",
    help="The published value: ods=0.788, ois=.808, ap=.840; METRIC.SCORE of another metric.",
)
@protocol_options()
@click.option("--split-file", type=click.Path(), help="Ids to count, one per line.")
@run_option("pred_kind")
@click.option(
    "--seconds",
    type=click.FloatRange(1),
    default=60.0,
    show_default=True,
    help="Approximate time limit.",
)
@click.option(
    "--top", type=click.IntRange(1), default=10, show_default=True, help="Number of lines to show."
)
@run_option("workers")
@format_option("table", "json")
@quiet_option
def command(
    run: str | None,
    between: tuple[str, str] | None,
    gt_dir: str | None,
    targets: tuple[str, ...],
    split_file: str | None,
    pred_kind: str | None,
    seconds: float,
    top: int,
    workers: int | None,
    form: str,
    quiet: bool,
    **options: Any,
) -> int:
    """Find the setting that explains the difference from a published score.

    OUT is the folder of an earlier run: its protocol and inputs are taken. Otherwise PRED_DIR and
    --gt say what to count. Other AP and ODS rules and images of a split are read off the counts;
    tolerance, NMS, thinning, matching, annotators and thresholds are counted again, on a few images
    first. For another metric (--target depth.si_f1=.42) its own options and columns say what is in
    use. A target is reached where a score agrees with it to the digits given. The last line is a
    sentence to paste. Exit status 0 if a reading reaches the target, else 1.

    With --between nothing is counted: the words of two signatures are compared.
    """
    from dataclasses import asdict
    from pathlib import Path

    from bsdsbench.cli.evaluating import print_json, progress
    from bsdsbench.diagnosis.explain import explain, metric_of, parse_targets, run_of
    from bsdsbench.metrics.registry import describe
    from bsdsbench.runs.folder import is_run

    if between:
        return _between(*between)
    if run is None:
        raise click.UsageError("give OUT or PRED_DIR, or --between SIG SIG")
    if is_run(Path(run)):
        refuse(
            (*PROTOCOL_FIELDS, "split_file", "pred_kind"), "OUT, whose own protocol and files count"
        )
    wanted = parse_targets(targets)
    metric, plain = metric_of(wanted)
    with progress("explain: count", quiet) as report:
        found, sources = run_of(
            run,
            gt_dir,
            protocol_from(metrics=(metric,), **options),
            metric=metric,
            split_file=split_file,
            pred_kind=pred_kind,
            workers=workers,
            progress=report,
        )
    with progress("explain", quiet) as report:
        told = explain(
            found, wanted, sources=sources, seconds=seconds, workers=workers, progress=report
        )
    own = next(t for t in told.trials if t.label == "as it is")
    shown = told.trials[:top]
    shown = shown if own in shown else (*shown[:-1], own)
    published = "" if told.answer or plain != wanted else _known(found, plain)
    sentence = f"{told.sentence()} {published}".strip()
    if form == "json":
        asked = {m: float(v) for m, v in told.targets.items()}
        answer = {"sentence": sentence, "seconds": told.seconds, "complete": told.complete}
        print_json({"targets": asked, "trials": [asdict(t) for t in shown], **answer})
    else:
        print("target        " + "  ".join(f"{m.upper()} {v}" for m, v in plain.items()))
        for trial in shown:
            scores = "  ".join(f"{m.upper()} {trial.scores[m]:.4f}" for m in plain)
            some = "" if trial.exact else f" (estimated on {trial.n_images} images)"
            sign = "=" if trial.reached else " "
            print(f"{sign} off {trial.gap:.4f}  {scores}  {trial.label}{some}")
        print(f"protocol {describe([metric], found.protocol)}")
        print(sentence)
    return 0 if told.answer else 1


def _known(run: Evaluation, targets: dict[str, float | str]) -> str:
    """Whose published result the targets are, if they are one."""
    from bsdsbench.comparison.published import published_as
    from bsdsbench.diagnosis.explanation import resolution

    limit = {measure: resolution(value) for measure, value in targets.items()}
    return published_as({measure: float(v) for measure, v in targets.items()}, limit, run)


def _between(a: str, b: str) -> int:
    """What differs between two signatures, one line per word; status 0 if nothing does."""
    first, second = _signature(a), _signature(b)
    found = first.differences(second)
    for difference in found:
        print(difference.line())
    if not found:
        print("no known difference: the scores are comparable")
    return 1 if found else 0


def _signature(text: str) -> Signature:
    """A signature from its line, or that of the run in a folder."""
    from pathlib import Path

    from bsdsbench.protocol.signature import Signature
    from bsdsbench.runs.evaluation import Evaluation

    if "|" in text or not Path(text).is_dir():
        return Signature.parse(text)
    return Evaluation.load(text).signature
