"""bsdsbench semantic: per-class boundaries."""

from __future__ import annotations

from typing import Any

import click

from bsdsbench.cli.options import (
    ProtocolCommand,
    format_option,
    one_worker_option,
    protocol_from,
    protocol_options,
    quiet_option,
)


@click.command(
    "semantic", cls=ProtocolCommand, short_help="Boundaries of every class, and their mean."
)
@click.argument("pred_dir", type=click.Path())
@click.option("--gt", "gt_dir", required=True, type=click.Path(), help="Ground-truth folder.")
@click.option("-o", "--out", type=click.Path(), help="Folder for results, one folder per class.")
@protocol_options
@one_worker_option
@quiet_option
@format_option("table", "json")
def command(
    pred_dir: str,
    gt_dir: str,
    out: str | None,
    workers: int,
    quiet: bool,
    form: str,
    **options: Any,
) -> int:
    """Score the boundaries of every class, and their mean: `--protocol sbd` or `cityscapes`.

    PRED_DIR has label maps (ID.png), arrays (ID.npy of classes x rows x columns), or one folder of
    soft maps per class. Options such as `--set semantic.interior=kill`, `--no-thin`.
    """
    from pathlib import Path

    from bsdsbench.cli.progress import progress
    from bsdsbench.cli.show import print_json, print_scores
    from bsdsbench.metrics.semantic import evaluate_semantic, semantic_score

    protocol = protocol_from(**options)
    with progress("semantic", quiet) as report:
        runs = evaluate_semantic(pred_dir, gt_dir, protocol, workers=workers, progress=report)
    score = semantic_score(runs)
    if out:
        for name, run in runs.items():
            run.save(Path(out) / name)
    if form == "json":
        print_json({"protocol": protocol.to_mapping(), **score.to_mapping()})
        return 0
    print_scores([run for name, run in runs.items() if name in score.per_class])
    print(
        f"mean of {len(score.per_class)} classes: ODS {score.ods_mean:.4f}, "
        f"OIS {score.ois_mean:.4f}, AP {score.ap_mean:.4f}"
    )
    if score.absent:
        print(f"not in the ground truth: {', '.join(score.absent)}")
    print(f"protocol {protocol.describe()}")
    return 0
