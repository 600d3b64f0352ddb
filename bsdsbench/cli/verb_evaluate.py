"""bsdsbench evaluate: a folder of predictions and a folder of ground truth to scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bsdsbench.cli.evaluating import (
    announce_compiling,
    left_out,
    load_plotting,
    run_options,
    shard,
    show_run,
    write_plots,
)
from bsdsbench.cli.options import (
    ProtocolCommand,
    pred_kind_option,
    protocol_from,
    protocol_options,
    refuse,
    split_protocol,
)

ONLY_PREDICTIONS = ("name", "missing", "pred_kind", "shard")
ONLY_SOFT = ("nms", "invert")


@click.command("evaluate", cls=ProtocolCommand, short_help="Score a folder of predictions.")
@click.argument("pred_dir", required=False, type=click.Path())
@run_options
@protocol_options("default: that of the first metric, bsds500 for most")
@click.option(
    "--metrics",
    default="boundary",
    show_default=True,
    metavar="M,M",
    help="Any of boundary, region, pixel; or contour, segmentation, aiu, wireframe, occlusion, "
    "which have their own presets. Other metrics have their own verbs.",
)
@pred_kind_option
@click.option(
    "--humans", is_flag=True, help="Score each annotator against the others; without PRED_DIR."
)
@click.option(
    "--overlays", is_flag=True, help="Draw matched, false and missed pixels into OUT/overlays."
)
def command(pred_dir: str | None, form: str, quiet: bool, **options: Any) -> int:
    """Evaluate PRED_DIR (soft boundary maps or segmentations) against human annotations.

    --max-dist A:B:N evaluates at N tolerances from A to B.

    Ground-truth pictures that are gray need --set gt_threshold=0.5, those of region labels --set
    gt_kind=labels. With --metrics region, --set regions_from_soft=true closes soft maps to regions.
    """
    import bsdsbench as bb
    from bsdsbench.cli.progress import progress

    humans = options.pop("humans")
    if humans == (pred_dir is not None):
        raise click.UsageError("give PRED_DIR, or --humans without one")
    if humans:
        refuse((*ONLY_PREDICTIONS, *ONLY_SOFT, "overlays"), "--humans, which reads no predictions")
    overlays = options.pop("overlays")
    if overlays and not options["out"]:
        raise click.UsageError("--overlays needs -o OUT")
    fields, options = split_protocol(options)
    tolerances = fields["max_dist"] if ":" in (fields["max_dist"] or "") else None
    if tolerances and humans:
        raise click.UsageError("--max-dist A:B:N does not go with --humans")
    if tolerances:
        refuse(("overlays",), "--max-dist A:B:N")
    options["metrics"] = [m.strip() for m in options["metrics"].split(",") if m.strip()]
    if overlays:
        _check_overlays(options["metrics"])
    fields["max_dist"] = None if tolerances else fields["max_dist"]
    protocol = protocol_from(**fields, metrics=options["metrics"])
    options["shard"] = shard(options["shard"])
    announce_compiling(quiet)
    if options["out"]:
        load_plotting()
    with progress("evaluate", quiet) as report:
        if tolerances:
            from bsdsbench.cli.tolerances import sweep

            return sweep(str(pred_dir), protocol, tolerances, form, report, options)
        if humans:
            options = {k: v for k, v in options.items() if k not in ONLY_PREDICTIONS}
            run = bb.evaluate_humans(protocol=protocol, progress=report, **options)
        else:
            run = bb.evaluate(pred_dir, protocol=protocol, progress=report, **options)
    if options["out"]:
        write_plots(run, options["out"])
    if overlays:
        from bsdsbench.report.overlays import write_overlays

        with progress("overlays", quiet) as report:
            write_overlays(run, Path(options["out"]) / "overlays", progress=report)
    show_run(run, form, options["out"])
    return left_out(run)


def _check_overlays(metrics: list[str]) -> None:
    """Raise UsageError before the run if none of the metrics has a matching to draw."""
    from bsdsbench.metrics import registry
    from bsdsbench.report.overlays import matching_metric

    if not matching_metric(registry.chosen(metrics)):
        found = ", ".join(metrics)
        raise click.UsageError(f"--overlays: no metric that matches pixels, as boundary ({found})")
