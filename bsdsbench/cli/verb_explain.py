"""bsdsbench explain: which setting brings a score to the published one."""

from __future__ import annotations

from typing import Any

import click

from bsdsbench.cli.options import (
    ProtocolCommand,
    format_option,
    pred_kind_option,
    protocol_from,
    protocol_options,
    quiet_option,
    workers_option,
)


@click.command(
    "explain", cls=ProtocolCommand, short_help="Which setting gives the published score."
)
@click.argument("run", metavar="OUT|PRED_DIR", type=click.Path())
@click.option("--gt", "gt_dir", type=click.Path(), help="Ground-truth folder; known for an OUT.")
@click.option(
    "--target",
    "targets",
    multiple=True,
    required=True,
    metavar="MEASURE=VALUE",
    help="The published value: ods=0.788, ois=.808, ap=.840.",
)
@protocol_options
@click.option("--split-file", type=click.Path(), help="Ids to count, one on a line.")
@pred_kind_option
@click.option("--images", "limit", type=click.IntRange(1), help="Try on so many images only.")
@click.option("--top", type=click.IntRange(1), default=10, show_default=True, help="Lines shown.")
@workers_option
@format_option("table", "json")
@quiet_option
def command(
    run: str,
    gt_dir: str | None,
    targets: tuple[str, ...],
    split_file: str | None,
    pred_kind: str | None,
    limit: int | None,
    top: int,
    workers: int | None,
    form: str,
    quiet: bool,
    **options: Any,
) -> int:
    """Try the settings people disagree on, and show which brings the score to the target.

    OUT is the folder of an earlier run: its protocol and inputs are taken. Otherwise PRED_DIR and
    --gt say what to count.
    """
    import sys
    from dataclasses import asdict

    from bsdsbench.cli.show import print_json
    from bsdsbench.diagnosis.explain import explain, inputs_of, parse_targets

    wanted = parse_targets(targets)
    inputs = inputs_of(
        run,
        gt_dir,
        protocol_from(**options),
        split_file=split_file,
        pred_kind=pred_kind or "soft",
    )

    def report(done: int, total: int, label: str) -> None:
        if not quiet:
            print(f"explain: {label}", file=sys.stderr, flush=True)

    trials = explain(inputs, wanted, limit=limit, workers=workers, progress=report)
    as_it_is = next(t for t in trials if t.label == "as it is")
    shown = trials[:top] if as_it_is in trials[:top] else [*trials[: top - 1], as_it_is]
    if form == "json":
        print_json([asdict(t) for t in shown])
        return 0
    print("target        " + "  ".join(f"{m.upper()} {v:.4f}" for m, v in wanted.items()))
    for trial in shown:
        scores = "  ".join(f"{m.upper()} {trial.scores[m]:.4f}" for m in wanted)
        print(f"{'=' if trial.reached else ' '} off {trial.gap:.4f}  {scores}  {trial.label}")
    if limit:
        print(f"counted on at most {limit} images: a guess, as the target is of the whole set")
    print(f"protocol {inputs.run.protocol.describe()}")
    return 0
